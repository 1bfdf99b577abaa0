//! Tests of `float`.

use super::*;
use crate::types::Numeric;

/// Input, then float8out with extra_float_digits 1, 0 and -5, then ::numeric (-: too long to show), as PostgreSQL 15
/// prints them.
const FLOAT8: &[(&str, &str, &str, &str, &str)] = &[
    ("0", "0", "0", "0", "0"),
    ("-0", "-0", "-0", "-0", "0"),
    ("1", "1", "1", "1", "1"),
    ("100", "100", "100", "100", "100"),
    ("0.1", "0.1", "0.1", "0.1", "0.1"),
    ("1e14", "100000000000000", "100000000000000", "1e+14", "100000000000000"),
    ("1e15", "1e+15", "1e+15", "1e+15", "1000000000000000"),
    ("123456789012345", "123456789012345", "123456789012345", "1.23456789e+14", "123456789012345"),
    ("1234567890123456", "1.234567890123456e+15", "1.23456789012346e+15", "1.23456789e+15", "1234567890123460"),
    ("999999999999999.9", "999999999999999.9", "1e+15", "1e+15", "1000000000000000"),
    ("0.0001", "0.0001", "0.0001", "0.0001", "0.0001"),
    ("0.00001", "1e-05", "1e-05", "1e-05", "0.00001"),
    ("1e20", "1e+20", "1e+20", "1e+20", "100000000000000000000"),
    ("1e-7", "1e-07", "1e-07", "1e-07", "0.0000001"),
    ("1.5e300", "1.5e+300", "1.5e+300", "1.5e+300", "beyond"),
    ("5e-324", "5e-324", "4.94065645841247e-324", "4.940656458e-324", "-"),
    ("1.7976931348623157e308", "1.7976931348623157e+308", "1.79769313486232e+308", "1.797693135e+308", "beyond"),
    ("2.2250738585072014e-308", "2.2250738585072014e-308", "2.2250738585072e-308", "2.225073859e-308", "-"),
    ("72057594037928190", "7.205759403792819e+16", "7.20575940379282e+16", "7.205759404e+16", "72057594037928200"),
    ("1.8014398509482752e16", "1.8014398509482752e+16", "1.80143985094828e+16", "1.801439851e+16", "18014398509482800"),
    ("1.094e22", "1.0940000000000001e+22", "1.094e+22", "1.094e+22", "10940000000000000000000"),
    ("9.5367431640625e-07", "9.5367431640625e-07", "9.5367431640625e-07", "9.536743164e-07", "0.00000095367431640625"),
    (
        "5.684341886080802e-14",
        "5.684341886080802e-14",
        "5.6843418860808e-14",
        "5.684341886e-14",
        "0.000000000000056843418860808",
    ),
    ("9007199254740993", "9.007199254740992e+15", "9.00719925474099e+15", "9.007199255e+15", "9007199254740990"),
    ("0.30000000000000004", "0.30000000000000004", "0.3", "0.3", "0.3"),
    ("100000000000000.5", "100000000000000.5", "100000000000000", "1e+14", "100000000000000"),
    ("100000000000001.5", "100000000000001.5", "100000000000002", "1e+14", "100000000000002"),
    ("NaN", "NaN", "NaN", "NaN", "NaN"),
    ("-Infinity", "-Infinity", "-Infinity", "-Infinity", "-Infinity"),
    ("1e23", "9.999999999999999e+22", "1e+23", "1e+23", "100000000000000000000000"),
    ("4503599627370496.5", "4.503599627370496e+15", "4.5035996273705e+15", "4.503599627e+15", "4503599627370500"),
];

const FLOAT4: &[(&str, &str, &str, &str, &str)] = &[
    ("0", "0", "0", "0", "0"),
    ("-0", "-0", "-0", "-0", "0"),
    ("1", "1", "1", "1", "1"),
    ("0.1", "0.1", "0.1", "0.1", "0.1"),
    ("99999", "99999", "99999", "1e+05", "99999"),
    ("999999", "999999", "999999", "1e+06", "999999"),
    ("1000000", "1e+06", "1e+06", "1e+06", "1000000"),
    ("1234567", "1.234567e+06", "1.23457e+06", "1e+06", "1234570"),
    ("0.0001", "0.0001", "0.0001", "0.0001", "0.0001"),
    ("0.00001", "1e-05", "1e-05", "1e-05", "0.00001"),
    ("3.4028235e38", "3.4028235e+38", "3.40282e+38", "3e+38", "340282000000000000000000000000000000000"),
    ("1e-45", "1e-45", "1.4013e-45", "1e-45", "0.0000000000000000000000000000000000000000000014013"),
    ("1.1754944e-38", "1.1754944e-38", "1.17549e-38", "1e-38", "0.0000000000000000000000000000000000000117549"),
    ("16777216", "1.6777216e+07", "1.67772e+07", "2e+07", "16777200"),
    ("33554432", "3.3554432e+07", "3.35544e+07", "3e+07", "33554400"),
    ("134217728", "1.3421773e+08", "1.34218e+08", "1e+08", "134218000"),
    ("119940670", "1.1994067e+08", "1.19941e+08", "1e+08", "119941000"),
    ("134217632", "1.3421763e+08", "1.34218e+08", "1e+08", "134218000"),
    ("0.3", "0.3", "0.3", "0.3", "0.3"),
    ("NaN", "NaN", "NaN", "NaN", "NaN"),
    ("Infinity", "Infinity", "Infinity", "Infinity", "Infinity"),
    ("123456.7", "123456.7", "123457", "1e+05", "123457"),
];

fn printed8(value: f64, extra_float_digits: i32) -> String {
    let mut out = Vec::new();
    write_float8(value, extra_float_digits, &mut out);
    String::from_utf8(out).unwrap()
}

fn printed4(value: f32, extra_float_digits: i32) -> String {
    let mut out = Vec::new();
    write_float4(value, extra_float_digits, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn float8_text_agrees_with_postgresql() {
    for (input, shortest, standard, short, numeric) in FLOAT8 {
        let value = parse_float8(input.as_bytes()).unwrap();
        assert_eq!(printed8(value, 1), *shortest);
        assert_eq!(printed8(value, 3), *shortest);
        assert_eq!(printed8(value, 0), *standard, "{input}");
        assert_eq!(printed8(value, -5), *short, "{input}");
        let converted = Numeric::from_f64(value).map_or("beyond".to_owned(), |value| value.to_string());
        assert!(converted == *numeric || *numeric == "-", "{input}::numeric is {converted}");
    }
}

#[test]
fn float4_text_agrees_with_postgresql() {
    for (input, shortest, standard, short, numeric) in FLOAT4 {
        let value = parse_float4(input.as_bytes()).unwrap();
        assert_eq!(printed4(value, 1), *shortest);
        assert_eq!(printed4(value, 0), *standard, "{input}");
        assert_eq!(printed4(value, -5), *short, "{input}");
        let converted = Numeric::from_f32(value).map_or("beyond".to_owned(), |value| value.to_string());
        assert_eq!(converted, *numeric, "{input}::numeric");
    }
}

#[test]
fn input_out_of_range_raises() {
    for input in ["1e309", "-1e400", "1e-400", "2.4e-324", "1e-5000"] {
        assert!(matches!(parse_float8(input.as_bytes()), Err(ParseError::Raises(_))), "{input}");
    }
    for input in ["3.4028236e38", "7e-46"] {
        assert!(matches!(parse_float4(input.as_bytes()), Err(ParseError::Raises(_))), "{input}");
    }
    assert_eq!(parse_float8(b"0e500"), Ok(0.0));
    assert_eq!(parse_float8(b"4.9e-324"), Ok(5e-324));
}

#[test]
fn input_syntax_is_float8in_s() {
    for (input, expected) in
        [("\t 1. \n", 1.0), (".5", 0.5), ("+1E+2", 100.0), ("-INF", f64::NEG_INFINITY), ("infinity", f64::INFINITY)]
    {
        assert_eq!(parse_float8(input.as_bytes()), Ok(expected));
    }
    for input in ["", " ", ".", "e5", "1e", "1e+", "1..2", "1 2", "1f", "infinit", "--1"] {
        assert!(matches!(parse_float8(input.as_bytes()), Err(ParseError::Raises(_))), "{input}");
    }
    // The C library reads these; whether PostgreSQL's builds agree is upstream's affair.
    for input in ["0x1p3", "-nan", "nan(1)"] {
        assert!(matches!(parse_float8(input.as_bytes()), Err(ParseError::Beyond(_))), "{input}");
    }
}

proptest::proptest! {
    #[test]
    fn shortest_text_reads_back(bits: u64) {
        let value = f64::from_bits(bits);
        let back = parse_float8(printed8(value, 1).as_bytes()).unwrap();
        proptest::prop_assert!(back.to_bits() == bits || value.is_nan());
    }

    #[test]
    fn shortest_float4_text_reads_back(bits: u32) {
        let value = f32::from_bits(bits);
        let back = parse_float4(printed4(value, 1).as_bytes()).unwrap();
        proptest::prop_assert!(back.to_bits() == bits || value.is_nan());
    }
}
