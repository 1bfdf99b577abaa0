use std::cmp::Ordering;

use super::*;

fn number(text: &str) -> Numeric {
    Numeric::parse(text).unwrap()
}

fn text(result: Result<Numeric, NumericError>) -> String {
    result.map_or_else(|error| error.to_string(), |value| value.to_string())
}

/// Operands, then +, -, *, /, % as PostgreSQL 15 prints them.
const OPERATIONS: &[[&str; 7]] = &[
    ["1", "3", "4", "-2", "3", "0.33333333333333333333", "1"],
    ["10", "3", "13", "7", "30", "3.3333333333333333", "1"],
    ["-7.50", "2", "-5.50", "-9.50", "-15.00", "-3.7500000000000000", "-1.50"],
    ["0", "5.000", "5.000", "-5.000", "0.000", "0.00000000000000000000", "0.000"],
    ["NaN", "0", "NaN", "NaN", "NaN", "NaN", "NaN"],
    ["Infinity", "-2", "Infinity", "Infinity", "-Infinity", "-Infinity", "NaN"],
    ["2", "Infinity", "Infinity", "-Infinity", "Infinity", "0", "2"],
    ["1", "0", "1", "1", "0", "division by zero", "division by zero"],
];

#[test]
fn operators_agree_with_postgresql() {
    for [a, b, sum, difference, product, quotient, rest] in OPERATIONS {
        let (x, y) = (number(a), number(b));
        assert_eq!(text(x.add(y)), *sum, "{a} + {b}");
        assert_eq!(text(x.sub(y)), *difference, "{a} - {b}");
        assert_eq!(text(x.mul(y)), *product, "{a} * {b}");
        assert_eq!(text(x.div(y)), *quotient, "{a} / {b}");
        assert_eq!(text(x.rem(y)), *rest, "{a} % {b}");
    }
}

#[test]
fn values_order_with_nan_last() {
    let ascending = ["-Infinity", "-1e30", "-0.1", "0", "1e-40", "0.5", "1e37", "Infinity", "NaN"];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(number(a).cmp(number(b)), i.cmp(&j), "{a} against {b}");
        }
    }
    assert_eq!(number("1.50").cmp(number("1.5")), Ordering::Equal);
}

#[test]
fn binary_round_trips() {
    for value in
        ["0", "0.000", "1", "-1", "10000", "0.0001", "12345.678", "-99999999.99", "1e37", "1e-38", "NaN", "-Infinity"]
    {
        let mut bytes = Vec::new();
        number(value).encode_binary(&mut bytes);
        assert_eq!(Numeric::decode_binary(&bytes), Ok(number(value)), "{value}: {bytes:x?}");
    }
}
