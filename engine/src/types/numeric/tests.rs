//! Tests of `numeric`.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::types::text::ParseError;

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
    ["2", "3", "5", "-1", "6", "0.66666666666666666667", "2"],
    ["9999", "9999.0001", "19998.0001", "-0.0001", "99980001.9999", "0.99999998999900000001", "9999.0000"],
    ["10000", "9999", "19999", "1", "99990000", "1.0001000100010001", "1"],
    ["9999", "10000", "19999", "-1", "99990000", "0.99990000000000000000", "9999"],
    ["0.00001", "3", "3.00001", "-2.99999", "0.00003", "0.000003333333333333333333", "0.00001"],
    ["0.0001", "0.9999", "1.0000", "-0.9998", "0.00009999", "0.00010001000100010001", "0.0001"],
    [
        "123456789012345678",
        "7",
        "123456789012345685",
        "123456789012345671",
        "864197523086419746",
        "17636684144620811",
        "1",
    ],
    [
        "1e30",
        "7",
        "1000000000000000000000000000007",
        "999999999999999999999999999993",
        "7000000000000000000000000000000",
        "142857142857142857142857142857",
        "1",
    ],
    [
        "7",
        "1e30",
        "1000000000000000000000000000007",
        "-999999999999999999999999999993",
        "7000000000000000000000000000000",
        "0.000000000000000000000000000007000000000000000000",
        "7",
    ],
    [
        "0.000000000000000000000000000001",
        "3",
        "3.000000000000000000000000000001",
        "-2.999999999999999999999999999999",
        "0.000000000000000000000000000003",
        "0.000000000000000000000000000000333333333333333333",
        "0.000000000000000000000000000001",
    ],
    ["-7.50", "2", "-5.50", "-9.50", "-15.00", "-3.7500000000000000", "-1.50"],
    ["7.5", "-2.00", "5.50", "9.50", "-15.000", "-3.7500000000000000", "1.50"],
    ["0", "5.000", "5.000", "-5.000", "0.000", "0.00000000000000000000", "0.000"],
    ["5.000", "0.0001", "5.0001", "4.9999", "0.0005000", "50000.000000000000", "0.0000"],
    ["99999999.99", "0.01", "100000000.00", "99999999.98", "999999.9999", "9999999999.00000000", "0.00"],
    ["-12345.678", "0.0007", "-12345.6773", "-12345.6787", "-8.6419746", "-17636682.857142857143", "-0.0006"],
    ["100", "8", "108", "92", "800", "12.5000000000000000", "4"],
    [
        "1234567890123456789012345.678",
        "1234567.891",
        "1234567890123456790246913.569",
        "1234567890123456787777777.787",
        "1524157876406035777640603576651.425098",
        "999999999289999993.214",
        "264320.915",
    ],
    ["NaN", "0", "NaN", "NaN", "NaN", "NaN", "NaN"],
    ["Infinity", "-2", "Infinity", "Infinity", "-Infinity", "-Infinity", "NaN"],
    ["-Infinity", "Infinity", "NaN", "-Infinity", "-Infinity", "NaN", "NaN"],
    ["Infinity", "0.0", "Infinity", "Infinity", "NaN", "division by zero", "division by zero"],
    ["2", "Infinity", "Infinity", "-Infinity", "Infinity", "0", "2"],
    ["1", "0", "1", "1", "0", "division by zero", "division by zero"],
    [
        "1",
        "1.000000000000000000000000000000",
        "2.000000000000000000000000000000",
        "0.000000000000000000000000000000",
        "1.000000000000000000000000000000",
        "1.000000000000000000000000000000",
        "0.000000000000000000000000000000",
    ],
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

/// Operand, digits, then round, trunc, ceil, floor as PostgreSQL 15 prints them.
const ROUNDINGS: &[(&str, i32, &str, &str, &str, &str)] = &[
    ("2.5", 0, "3", "2", "3", "2"),
    ("-2.5", 0, "-3", "-2", "-2", "-3"),
    ("0.5", 0, "1", "0", "1", "0"),
    ("1.005", 2, "1.01", "1.00", "2", "1"),
    ("-0.001", 2, "0.00", "0.00", "0", "-1"),
    ("15", -1, "20", "10", "15", "15"),
    ("14.99", -1, "10", "10", "15", "14"),
    ("999.9", -3, "1000", "0", "1000", "999"),
    ("499", -3, "0", "0", "499", "499"),
    ("1.5", 4, "1.5000", "1.5000", "2", "1"),
    ("0.00", -2, "0", "0", "0", "0"),
    ("-99999.995", 2, "-100000.00", "-99999.99", "-99999", "-100000"),
    ("NaN", 2, "NaN", "NaN", "NaN", "NaN"),
    ("Infinity", 0, "Infinity", "Infinity", "Infinity", "Infinity"),
    ("1e-30", 5, "0.00000", "0.00000", "1", "0"),
    ("123.456", -10, "0", "0", "124", "123"),
];

#[test]
fn rounding_agrees_with_postgresql() {
    for (a, digits, rounded, truncated, ceiling, floor) in ROUNDINGS {
        assert_eq!(text(number(a).round(*digits)), *rounded, "round({a}, {digits})");
        assert_eq!(text(number(a).trunc(*digits)), *truncated, "trunc({a}, {digits})");
        assert_eq!(number(a).ceil().to_string(), *ceiling, "ceil({a})");
        assert_eq!(number(a).floor().to_string(), *floor, "floor({a})");
    }
}

/// Value, precision, scale, then what numeric(precision, scale) holds, or None: field overflow.
const STORED: &[(&str, i32, i32, Option<&str>)] = &[
    ("999.994", 5, 2, Some("999.99")),
    ("999.995", 5, 2, None),
    ("-999.995", 5, 2, None),
    ("149", 3, -2, Some("100")),
    ("99949", 3, -2, Some("99900")),
    ("99950", 3, -2, None),
    ("0.000994", 2, 5, Some("0.00099")),
    ("0.000995", 2, 5, None),
    ("0", 2, 5, Some("0.00000")),
    ("NaN", 5, 2, Some("NaN")),
    ("Infinity", 5, 2, None),
    ("1.5", 10, 0, Some("2")),
    ("-0.4", 10, 0, Some("0")),
    ("12345678901234567890.123", 38, 10, Some("12345678901234567890.1230000000")),
];

#[test]
fn typmods_agree_with_postgresql() {
    for (a, precision, scale, expected) in STORED {
        let typmod = (precision << 16 | (scale & 0x7ff)) + 4;
        let stored = number(a).apply_typmod(typmod).ok().map(|value| value.to_string());
        assert_eq!(stored.as_deref(), *expected, "{a} as numeric({precision},{scale})");
    }
}

/// Value, then ::int8, ::float8, ::float4 (ERR: raises) and numeric_send's bytes.
const CONVERSIONS: &[(&str, &str, &str, &str, &str)] = &[
    ("2.5", "3", "2.5", "2.5", "000200000000000100021388"),
    ("-2.5", "-3", "-2.5", "-2.5", "000200004000000100021388"),
    ("32767.5", "32768", "32767.5", "32767.5", "000300010000000100030acf1388"),
    ("2147483647.4", "2147483647", "2147483647.4", "2.1474836e+09", "00040002000000010015128c0e3f0fa0"),
    ("2147483647.5", "2147483648", "2147483647.5", "2.1474836e+09", "00040002000000010015128c0e3f1388"),
    (
        "9223372036854775807",
        "9223372036854775807",
        "9.223372036854776e+18",
        "9.223372e+18",
        "0005000400000000039a0d2c0170156516af",
    ),
    (
        "9223372036854775807.5",
        "ERR",
        "9.223372036854776e+18",
        "9.223372e+18",
        "0006000400000001039a0d2c0170156516af1388",
    ),
    ("0.1", "0", "0.1", "0.1", "0001ffff0000000103e8"),
    ("1e37", "ERR", "1e+37", "1e+37", "0001000900000000000a"),
    (
        "123456789.123456789",
        "123456789",
        "123456789.12345679",
        "1.2345679e+08",
        "0006000200000009000109291a8504d2162e2328",
    ),
    ("1e-30", "0", "1e-30", "1e-30", "0001fff80000001e0064"),
    ("NaN", "ERR", "NaN", "NaN", "00000000c0000000"),
    ("-Infinity", "ERR", "-Infinity", "-Infinity", "00000000f0000020"),
    ("16777217", "16777217", "16777217", "1.6777216e+07", "0002000100000000068d1c31"),
    (
        "9007199254740993",
        "9007199254740993",
        "9.007199254740992e+15",
        "9.007199e+15",
        "0004000300000000232f07c8156203e1",
    ),
];

#[test]
fn conversions_agree_with_postgresql() {
    let printed = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut text = Vec::new();
        write(&mut text);
        String::from_utf8(text).unwrap()
    };
    for (a, whole, double, single, sent) in CONVERSIONS {
        let value = number(a);
        assert_eq!(value.to_i64().map_or("ERR".to_owned(), |whole| whole.to_string()), *whole, "{a}::int8");
        let float = value.to_f64().unwrap();
        assert_eq!(printed(&|out| crate::types::float::write_float8(float, 1, out)), *double, "{a}::float8");
        let float = value.to_f32().unwrap();
        assert_eq!(printed(&|out| crate::types::float::write_float4(float, 1, out)), *single, "{a}::float4");
        let mut bytes = Vec::new();
        value.encode_binary(&mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, *sent, "numeric_send({a})");
        assert_eq!(Numeric::decode_binary(&bytes), Ok(value), "{a}");
    }
}

#[test]
fn integers_round_half_away_from_zero_and_check_their_range() {
    assert_eq!(number("32767.4").to_i16(), Ok(32767));
    assert_eq!(number("32767.5").to_i16(), Err(NumericError::Raises("smallint out of range")));
    assert_eq!(number("-2147483648.5").to_i32(), Err(NumericError::Raises("integer out of range")));
    assert_eq!(number("-2147483648.4").to_i32(), Ok(i32::MIN));
}

#[test]
fn input_syntax_is_numeric_in_s() {
    for (input, expected) in
        [(" 1. ", "1"), (".5", "0.5"), ("+1e3", "1000"), ("1.50e1", "15.0"), ("1e-3", "0.001"), ("-inf", "-Infinity")]
    {
        assert_eq!(number(input).to_string(), expected);
    }
    for input in ["", ".", "-", "1e", "1 2", "1..2", "+nan", "0x10", "1_000", "e5"] {
        assert!(matches!(Numeric::parse(input), Err(ParseError::Raises(_))), "{input}");
    }
    // Right in PostgreSQL, but not held here.
    for input in ["1e38", "0.000000000000000000000000000000000000011111111111111111111111111111111111111111", "1e 5"] {
        assert!(matches!(Numeric::parse(input), Err(ParseError::Beyond(_))), "{input}");
    }
}

#[test]
fn results_beyond_38_digits_are_refused() {
    let large = number("99999999999999999999999999999999999999");
    assert_eq!(large.add(number("1")), Err(NumericError::Beyond));
    assert_eq!(large.mul(number("10")), Err(NumericError::Beyond));
    assert_eq!(large.round(1), Err(NumericError::Beyond));
    assert_eq!(large.div(number("0.1")), Err(NumericError::Beyond));
    assert_eq!(text(large.sub(number("1"))), "99999999999999999999999999999999999998");
    // The dividend needs 192 bits, the quotient does not.
    assert_eq!(text(large.div(large)), "1.00000000000000000000");
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
fn malformed_binary_is_refused() {
    let sent = |words: &[u16]| -> Vec<u8> { words.iter().flat_map(|word| word.to_be_bytes()).collect() };
    for words in [&[0u16, 0, 0][..], &[1, 0, 0, 0], &[0, 0, 0x1234, 0], &[0, 0, 0, 0x4000], &[1, 0, 0, 0, 10_000]] {
        assert!(matches!(Numeric::decode_binary(&sent(words)), Err(ParseError::Raises(_))), "{words:x?}");
    }
    assert!(matches!(Numeric::decode_binary(&sent(&[1, 0x7fff, 0, 0, 1])), Err(ParseError::Beyond(_))));
    // Digits below the display scale are cut off, as numeric_recv does.
    assert_eq!(Numeric::decode_binary(&sent(&[2, 0, 0, 2, 1, 2399])), Ok(number("1.23")));
}

fn finite() -> impl Strategy<Value = Numeric> {
    (any::<i64>(), 0u32..19, 0u16..25)
        .prop_map(|(mantissa, cut, scale)| (i128::from(mantissa) / power_of_ten(cut).unwrap(), scale))
        .prop_map(|(mantissa, scale)| Numeric::Finite { mantissa, scale })
}

proptest! {
    #[test]
    fn text_and_binary_round_trip(value in finite()) {
        prop_assert_eq!(number(&value.to_string()), value);
        let mut bytes = Vec::new();
        value.encode_binary(&mut bytes);
        prop_assert_eq!(Numeric::decode_binary(&bytes), Ok(value));
    }

    #[test]
    fn arithmetic_is_consistent(a in finite(), b in finite()) {
        if let Ok(sum) = a.add(b) {
            prop_assert_eq!(sum.sub(b).map(Numeric::normalized), Ok(a.normalized()));
        }
        prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
        prop_assert_eq!(a.cmp(b) == Ordering::Equal, a.normalized() == b.normalized());
        if let (Ok(quotient), Ok(rest)) = (a.div(b), a.rem(b)) {
            // a = trunc(a / b) × b + a % b, wherever the quotient is not rounded up to a whole number.
            let whole = quotient.trunc(0).and_then(|whole| whole.mul(b)).and_then(|product| product.add(rest));
            let is_rounded = quotient.trunc(0).is_ok_and(|whole| whole.cmp(quotient) == Ordering::Equal);
            if let (Ok(whole), true) = (whole, !is_rounded || rest.signum() == 0) {
                prop_assert_eq!(whole.cmp(a), Ordering::Equal);
            }
        }
    }

    #[test]
    fn parser_does_not_panic(text in "[ 0-9.eE+-]{0,60}|\\PC{0,12}") {
        let _ = Numeric::parse(&text);
    }
}
