//! Tests of `text`.

use super::*;

fn parsed(pg_type: PgType, typmod: i32, text: &str) -> Result<String, ParseError> {
    let settings = FormatSettings::default();
    let value = parse(pg_type, typmod, text, &settings)?;
    let mut out = Vec::new();
    write(&value, pg_type, &settings, &mut out);
    Ok(String::from_utf8(out).unwrap())
}

fn assert_accepts(pg_type: PgType, typmod: i32, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(parsed(pg_type, typmod, text).as_deref(), Ok(*expected), "{text:?}");
    }
}

fn assert_raises(pg_type: PgType, typmod: i32, cases: &[&str]) {
    for text in cases {
        assert!(matches!(parsed(pg_type, typmod, text), Err(ParseError::Raises(_))), "{text:?}");
    }
}

#[test]
fn boolean_takes_any_unique_prefix() {
    assert_accepts(PgType::Bool, -1, &[("t", "t"), (" TRU ", "t"), ("y", "t"), ("on", "t"), ("1", "t")]);
    assert_accepts(PgType::Bool, -1, &[("fals", "f"), ("No", "f"), ("of", "f"), ("OFF", "f"), ("0\n", "f")]);
    assert_raises(PgType::Bool, -1, &["", " ", "o", "truex", "11", "yess", "tru e"]);
}

#[test]
fn integers_take_decimal_digits_in_their_range() {
    assert_accepts(
        PgType::Int2,
        -1,
        &[(" -32768\t", "-32768"), ("+32767", "32767"), ("000000000000000000000000000001", "1")],
    );
    assert_raises(PgType::Int2, -1, &["32768", "-32769", "", "-", "1.0", "1e3", "0x10", "1_000", "12 3"]);
    assert_accepts(PgType::Int8, -1, &[("-9223372036854775808", "-9223372036854775808")]);
    assert_raises(PgType::Int8, -1, &["9223372036854775808", "99999999999999999999999999999999999999999999"]);
}

#[test]
fn varchar_and_bpchar_input_cuts_only_spaces() {
    assert_accepts(PgType::Varchar, 7, &[("äöü", "äöü"), ("abc   ", "abc"), ("ab", "ab")]);
    assert_raises(PgType::Varchar, 7, &["abcd", "äöüß"]);
    assert_accepts(PgType::Bpchar, 7, &[("a", "a  "), ("ä", "ä  "), ("abc  ", "abc"), ("", "   ")]);
    assert_raises(PgType::Bpchar, 7, &["abcd"]);
    assert_accepts(PgType::Bpchar, -1, &[("a ", "a ")]);
}

#[test]
fn casts_to_varchar_and_bpchar_cut_anything() {
    assert_eq!(truncate_varchar("äöüß", 7), "äöü");
    assert_eq!(truncate_varchar("abcdef", -1), "abcdef");
    assert_eq!(&*truncate_bpchar("abcdef", 7), "abc");
    assert_eq!(&*truncate_bpchar("a", 7), "a  ");
}

#[test]
fn name_is_cut_between_characters() {
    let long = "ä".repeat(32);
    assert_eq!(parsed(PgType::Name, -1, &long), Ok("ä".repeat(31)));
    assert_eq!(parsed(PgType::Name, -1, &"x".repeat(63)), Ok("x".repeat(63)));
}

#[test]
fn uuid_takes_hyphens_after_every_fourth_digit() {
    const UUID: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    for text in [
        UUID,
        "{A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11}",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
    ] {
        assert_eq!(parsed(PgType::Uuid, -1, text).as_deref(), Ok(UUID), "{text}");
    }
    let padded = format!(" {UUID}");
    let open = format!("{{{UUID}");
    let longer = format!("{UUID}-");
    assert_raises(PgType::Uuid, -1, &["", "{}", &padded, &open, &longer, "a0-eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]);
    assert_raises(PgType::Uuid, -1, &["a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11", "ä0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]);
}

#[test]
fn bytea_takes_hexadecimal_and_escapes() {
    assert_accepts(PgType::Bytea, -1, &[("\\x", "\\x"), ("\\xAb 0c", "\\xab0c"), ("a\\\\b", "\\x615c62")]);
    assert_accepts(PgType::Bytea, -1, &[("\\101\\377", "\\x41ff"), ("ä", "\\xc3a4"), ("\\\\x41", "\\x5c783431")]);
    assert_raises(PgType::Bytea, -1, &["\\x4", "\\x4 1", "\\xzz", "a\\b", "\\400", "\\37", "ab\\", "\\X41"]);
}

#[test]
fn bytea_output_escape_shows_printable_characters() {
    let mut out = Vec::new();
    write_bytea(b"a\\b\x00\x7e\x7f\xff", ByteaOutput::Escape, &mut out);
    assert_eq!(out, b"a\\\\b\\000~\\177\\377");
}

#[test]
fn a_numeric_typmod_rounds_and_checks() {
    let typmod = (5 << 16 | 2) + 4;
    assert_accepts(PgType::Numeric, typmod, &[("1.005", "1.01"), ("999.994", "999.99"), ("nan", "NaN")]);
    assert_raises(PgType::Numeric, typmod, &["999.995", "inf", "x"]);
}

#[test]
fn stored_json_is_taken_as_upstream_printed_it() {
    let settings = FormatSettings::default();
    let json = "{\"a\": 1}";
    assert_eq!(parse_stored(PgType::Jsonb, json, &settings), Ok(Value::Text(json.into())));
    let sent = [&[1], json.as_bytes()].concat();
    assert_eq!(crate::types::binary::decode_stored(PgType::Jsonb, &sent), Ok(Value::Text(json.into())));
    assert_eq!(parse_stored(PgType::Int4, "7", &settings), Ok(Value::Int4(7)));
}

#[test]
fn what_is_not_reproduced_is_beyond_and_not_an_error() {
    assert!(matches!(parsed(PgType::Json, -1, r#""\u0000""#), Err(ParseError::Beyond(_))));
    assert_eq!(parsed(PgType::Date, -1, "today"), Err(ParseError::DependsOnTime));
}
