//! Tests of `numeric`.

use std::cmp::Ordering;

use arrow::datatypes::i256;
use num_bigint::BigInt;
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

/// Value, then sqrt, exp, ln and log as PostgreSQL 15 to 18 print them; empty: of more digits than are held.
const IRRATIONALS: &[[&str; 5]] = &[
    ["0", "0.000000000000000", "1.0000000000000000", "cannot take logarithm of zero", "cannot take logarithm of zero"],
    [
        "0.00",
        "0.000000000000000",
        "1.0000000000000000",
        "cannot take logarithm of zero",
        "cannot take logarithm of zero",
    ],
    ["1", "1.000000000000000", "2.7182818284590452", "0.0000000000000000", "0.0000000000000000"],
    ["2", "1.414213562373095", "7.3890560989306502", "0.6931471805599453", "0.3010299956639812"],
    ["3.00", "1.732050807568877", "20.085536923187668", "1.0986122886681097", "0.4771212547196624"],
    ["10", "3.162277660168379", "22026.465794806717", "2.3025850929940457", "1.0000000000000000"],
    ["16", "4.000000000000000", "8886110.5205078726", "2.7725887222397812", "1.2041199826559248"],
    ["0.25", "0.50000000000000000", "1.2840254166877415", "-1.3862943611198906", "-0.6020599913279624"],
    ["12345.678", "111.1111065555555", "value overflows numeric format", "9.4210613212918320", "4.0915149455092013"],
    ["1e-10", "0.000010000000000000000", "1.0000000001000000", "-23.025850929940457", "-10.000000000000000"],
    ["1e30", "1000000000000000.0", "value overflows numeric format", "69.077552789821371", "30.000000000000000"],
    ["0.5", "0.70710678118654752", "1.6487212707001281", "-0.6931471805599453", "-0.3010299956639812"],
    [
        "-1",
        "cannot take square root of a negative number",
        "0.3678794411714423",
        "cannot take logarithm of a negative number",
        "cannot take logarithm of a negative number",
    ],
    ["NaN", "NaN", "NaN", "NaN", "NaN"],
    ["Infinity", "Infinity", "Infinity", "Infinity", "Infinity"],
    [
        "-Infinity",
        "cannot take square root of a negative number",
        "0",
        "cannot take logarithm of a negative number",
        "cannot take logarithm of a negative number",
    ],
    ["50.5", "7.106335201775948", "8548134287298057692257.9", "3.9219733362813141", "1.7032913781186614"],
    [
        "-50.5",
        "cannot take square root of a negative number",
        "0.0000000000000000000001169845917706196",
        "cannot take logarithm of a negative number",
        "cannot take logarithm of a negative number",
    ],
    ["0.9", "0.94868329805051380", "2.4596031111569497", "-0.10536051565782630", "-0.04575749056067513"],
    ["1.1", "1.048808848170152", "3.0041660239464331", "0.09531017980432486", "0.04139268515822504"],
    ["1.0000001", "1.000000049999999", "2.7182821002872417", "0.00000009999999500000033", "0.00000004342944601885292"],
    [
        "22026.465794806716516957",
        "148.413159102576603421",
        "value overflows numeric format",
        "10.000000000000000000",
        "4.342944819032518277",
    ],
    ["22026.4658", "148.4131591200726", "value overflows numeric format", "10.0000000002357747", "4.3429448191349139"],
    ["2.302585092994046", "1.517427129385146", "10.000000000000003", "0.8340324452479559", "0.3622156886994633"],
    ["87", "9.327379053088815", "60760302250568721495223289381302760753", "4.4659081186545837", "1.9395192526186185"],
    [
        "123456789.123456789",
        "11111.11106611111",
        "value overflows numeric format",
        "18.631401767168018",
        "8.091514977603565",
    ],
];

/// Base, exponent, then the power in PostgreSQL 15 and in 18.
const POWERS: &[[&str; 4]] = &[
    ["0", "0", "1.0000000000000000", "1.0000000000000000"],
    ["0", "2", "0.0000000000000000", "0.0000000000000000"],
    ["0.00", "1.5", "0.0000000000000000", "0.0000000000000000"],
    ["2", "0.00", "1.0000000000000000", "1.0000000000000000"],
    ["2", "1", "2.0000000000000000", "2.0000000000000000"],
    ["5", "-1", "0.2000000000000000", "0.2000000000000000"],
    ["1.5", "10", "57.6650390625000000", "57.665039062500000"],
    ["0.1", "20", "0.0000000000000000", "0.000000000000000000010000000000000000"],
    ["3", "-5", "0.0041152263374486", "0.004115226337448560"],
    ["-2", "3", "-8.0000000000000000", "-8.0000000000000000"],
    [
        "-2",
        "0.5",
        "a negative number raised to a non-integer power yields a complex result",
        "a negative number raised to a non-integer power yields a complex result",
    ],
    ["0", "-1", "zero raised to a negative power is undefined", "zero raised to a negative power is undefined"],
    ["50", "1.000", "50.0000000000000000", "50.000000000000000"],
    ["20000", "2", "400000000.0000000000000000", "400000000.00000000"],
    ["1.05", "30", "4.3219423751506620", "4.3219423751506620"],
    ["1.05", "30.5", "4.4286730731483322", "4.4286730731483322"],
    ["2", "0.5", "1.4142135623730950", "1.4142135623730950"],
    ["100", "0.5", "10.000000000000000", "10.000000000000000"],
    ["0.01", "0.5", "0.10000000000000000", "0.10000000000000000"],
    ["1000", "0.3333333333", "9.9999999976974149", "9.9999999976974149"],
    ["20000", "1.5", "2828427.1247461901", "2828427.1247461901"],
    ["0.5", "17", "0.0000076293945313", "0.000007629394531250000"],
    ["0.5", "16", "0.0000152587890625", "0.00001525878906250000"],
    ["1.00000001", "100000000", "2.7182818148676362", "2.7182818148676362"],
    ["0.9999", "1000000", "0.0000000000000000", "0.00000000000000000000000000000000000000000003701520785752616"],
    ["1", "5553865443.08", "1.0000000000000000", "1.0000000000000000"],
    ["-1", "4294967297", "-1.0000000000000000", "-1.0000000000000000"],
    ["10", "-20", "0.0000000000000000", "0.000000000000000000010000000000000000"],
    ["NaN", "0", "1", "1"],
    ["1", "NaN", "1", "1"],
    ["Infinity", "-2", "0", "0"],
    ["-Infinity", "3", "-Infinity", "-Infinity"],
    ["-Infinity", "2", "Infinity", "Infinity"],
    ["0.5", "Infinity", "0", "0"],
    ["0.5", "-Infinity", "Infinity", "Infinity"],
    ["-1", "Infinity", "1", "1"],
    ["-2", "Infinity", "Infinity", "Infinity"],
    ["7.25", "-3.75", "0.0005939261884154180", "0.0005939261884154180"],
    ["0.000000000000000000001", "0.1", "0.007943282347242815021", "0.007943282347242815021"],
];

/// Base, value, then the logarithm.
const LOGARITHMS: &[[&str; 3]] = &[
    ["10", "1000", "3.0000000000000000"],
    ["2", "8", "3.0000000000000000"],
    ["2", "0.125", "-3.0000000000000000"],
    ["0.5", "10", "-3.3219280948873623"],
    ["1.1", "5", "16.886317030755086"],
    ["10", "1", "0.0000000000000000"],
    ["1", "10", "division by zero"],
    ["3", "0", "cannot take logarithm of zero"],
    ["-2", "4", "cannot take logarithm of a negative number"],
    ["2.00", "1024.000", "10.0000000000000000"],
    ["123456.789", "0.000001", "-1.1784311795024553"],
    ["NaN", "2", "NaN"],
    ["Infinity", "2", "0"],
    ["2", "Infinity", "Infinity"],
    ["Infinity", "Infinity", "NaN"],
    ["1.0000001", "2", "6931472.152173038"],
];

/// Roots of what takes all the digits that are held.
const LARGE_ROOTS: &[[&str; 2]] = &[
    ["99999999999999999999999999999999999999", "10000000000000000000"],
    ["9.0000000000000000000000000000000000000", "3.0000000000000000000000000000000000000"],
    ["86000000000000000000000000000000000000", "9273618495495703753"],
    ["85070591.730234615865843651857943", "9223.372036854775808000000000"],
];

#[test]
fn roots_and_logarithms_agree_with_postgresql() {
    for [value, root] in LARGE_ROOTS {
        assert_eq!(text(number(value).sqrt()), *root, "{value}");
    }
    for [value, root, exponential, logarithm, decimal] in IRRATIONALS {
        let x = number(value);
        let found = [x.sqrt(), x.exp(), x.ln(), number("10").log(x)];
        for (found, expected) in found.into_iter().zip([root, exponential, logarithm, decimal]) {
            let is_held = !expected.is_empty();
            assert!(is_held || found == Err(NumericError::Beyond), "{value}: {found:?}");
            assert!(!is_held || text(found) == *expected, "{value}: {found:?}, not {expected}");
        }
    }
    for [base, value, expected] in LOGARITHMS {
        assert_eq!(text(number(base).log(number(value))), *expected, "log({base}, {value})");
    }
}

#[test]
fn powers_have_the_scale_of_their_release() {
    for [base, exponent, until_15, from_16] in POWERS {
        let power = |scale| number(base).power(number(exponent), scale);
        assert_eq!(text(power(Some(PowerScale::SixteenDecimals))), *until_15, "{base} ^ {exponent}");
        assert_eq!(text(power(Some(PowerScale::SixteenDigits))), *from_16, "{base} ^ {exponent}");
        let unknown = if until_15 == from_16 { until_15 } else { "numeric of more digits than are held" };
        assert_eq!(text(power(None)), unknown, "{base} ^ {exponent}");
    }
}

#[test]
fn divisors_and_factorials_agree_with_postgresql() {
    let table = [
        ["12", "18.00", "6.00", "36.00"],
        ["-0.6", "0.45", "0.15", "1.80"],
        ["0", "0.00", "0.00", "0.00"],
        ["0", "-7.5", "7.5", "0.0"],
        ["4.0", "6", "2.0", "12.0"],
        ["NaN", "1", "NaN", "NaN"],
        ["Infinity", "0", "NaN", "NaN"],
        ["330", "462", "66", "2310"],
        ["-1.23", "-1.23", "1.23", "1.23"],
    ];
    for [a, b, divisor, multiple] in table {
        assert_eq!(text(number(a).gcd(number(b))), divisor, "gcd({a}, {b})");
        assert_eq!(text(number(a).lcm(number(b))), multiple, "lcm({a}, {b})");
    }
    assert_eq!(text(Numeric::factorial(0)), "1");
    assert_eq!(text(Numeric::factorial(33)), "8683317618811886495518194401280000000");
    assert_eq!(Numeric::factorial(34), Err(NumericError::Beyond));
    assert_eq!(text(Numeric::factorial(-1)), "factorial of a negative number is undefined");
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
    for input in ["1e76", "0.0011111111111111111111111111111111111111111111111111111111111111111111111111111", "1e 5"] {
        assert!(matches!(Numeric::parse(input), Err(ParseError::Beyond(_))), "{input}");
    }
}

#[test]
fn results_beyond_38_digits_are_wide() {
    let large = number("99999999999999999999999999999999999999");
    assert_eq!(text(large.add(number("1"))), "100000000000000000000000000000000000000");
    assert_eq!(text(large.mul(number("10"))), "999999999999999999999999999999999999990");
    assert_eq!(text(large.round(1)), "99999999999999999999999999999999999999.0");
    assert_eq!(text(large.div(number("0.1"))), "999999999999999999999999999999999999990.0");
    assert_eq!(text(large.mul(large)), "9999999999999999999999999999999999999800000000000000000000000000000000000001");
    // Digits that are not needed any more are given up again.
    assert!(!large.add(number("1")).and_then(|sum| sum.sub(number("1"))).unwrap().is_wide());
    assert_eq!(large.mul(large).and_then(|square| square.mul(number("10"))), Err(NumericError::Beyond));
    assert_eq!(number("1e75").add(number("9e75")), Err(NumericError::Beyond));
    assert_eq!(number("1e75").exp(), Err(NumericError::Beyond));
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
    assert!(matches!(Numeric::decode_binary(&sent(&[2, 12, 0, 0, 1, 10_000])), Err(ParseError::Raises(_))));
    assert_eq!(
        Numeric::decode_binary(&sent(&[2, 9, 0x4000, 2, 123, 4567])),
        Ok(number("-123456700000000000000000000000000000000.00"))
    );
    // Digits below the display scale are cut off, as numeric_recv does.
    assert_eq!(Numeric::decode_binary(&sent(&[2, 0, 0, 2, 1, 2399])), Ok(number("1.23")));
}

fn finite() -> impl Strategy<Value = Numeric> {
    let narrow = (any::<i64>(), 0u32..19, 0u16..25)
        .prop_map(|(mantissa, cut, scale)| (i128::from(mantissa) / power_of_ten(cut).unwrap(), scale))
        .prop_map(|(mantissa, scale)| Numeric::Finite { mantissa, scale });
    prop_oneof![3 => narrow, 2 => wide()]
}

/// Up to 76 digits.
fn wide() -> impl Strategy<Value = Numeric> {
    ("-?[0-9]{1,76}", 0u16..80).prop_filter_map("not zero with a sign", |(digits, scale)| {
        let mantissa = i256::from_string(&digits)?;
        Numeric::from_wide(mantissa, scale).ok()
    })
}

/// The same by arbitrary digits.
fn big(value: Numeric) -> (BigInt, u16) {
    let (mantissa, scale) = value.parts().unwrap();
    (mantissa.to_string().parse().unwrap(), scale)
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
    fn wide_arithmetic_is_that_of_arbitrary_digits(a in finite(), b in finite()) {
        let ((p, x), (q, y)) = (big(a), big(b));
        let scale = x.max(y);
        let ten = |digits: u16| BigInt::from(10).pow(u32::from(digits));
        let (p, q) = (p * ten(scale - x), q * ten(scale - y));
        let is_long = |number: &BigInt| number.magnitude().to_string().len() > 76;
        let is = |result: Result<Numeric, NumericError>, expected: BigInt, scale: u16| match result {
            Ok(result) => big(result) == (expected, scale),
            // Refused is what does not fit, or not on the way.
            Err(error) => error == NumericError::Beyond && [&expected, &p, &q].into_iter().any(is_long),
        };
        prop_assert!(is(a.add(b), &p + &q, scale));
        prop_assert!(is(a.sub(b), &p - &q, scale));
        prop_assert!(is(a.mul(b), big(a).0 * big(b).0, x + y));
        prop_assert_eq!(a.cmp(b), p.cmp(&q));
        if b.signum() != 0 {
            prop_assert!(is(a.rem(b), &p % &q, scale));
        }
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
