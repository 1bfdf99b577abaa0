//! Values by type: tame ones, that most functions take, and wild ones at the edges of the type. And what certain arguments of
//! certain functions must be to mean anything.

use std::sync::LazyLock;

use freshet_engine::types::{Element, EnumType, PgType};

use super::dice::Dice;

/// Labels of the enum that every world has, in an order that is not that of their bytes.
const LABELS: [&str; 5] = ["new", "paid", "Shipped", "void", "a b"];

/// Without the OID that a world gives it: as a parameter it is of no declared type.
static STATE: LazyLock<PgType> =
    LazyLock::new(|| EnumType::of(0, 0, "state", &LABELS).map_or(PgType::Text, PgType::Enum));

/// What creates it.
pub(super) fn enum_setup() -> String {
    format!("CREATE TYPE state AS ENUM ('{}')", LABELS.join("', '"))
}

/// The types of columns and expressions.
pub(super) static TYPES: LazyLock<[PgType; 30]> = LazyLock::new(|| {
    [
        PgType::Int4,
        PgType::Int4,
        PgType::Int4,
        PgType::Text,
        PgType::Text,
        PgType::Numeric,
        PgType::Int2,
        PgType::Int8,
        PgType::Float8,
        PgType::Float4,
        PgType::Bool,
        PgType::Varchar,
        PgType::Bpchar,
        PgType::Date,
        PgType::Time,
        PgType::Timestamp,
        PgType::Timestamptz,
        PgType::Interval,
        PgType::Uuid,
        PgType::Bytea,
        PgType::Inet,
        PgType::Cidr,
        PgType::Varbit,
        PgType::Jsonb,
        PgType::Array(Element::Int4),
        PgType::Array(Element::Text),
        PgType::Numeric,
        PgType::Date,
        *STATE,
        *STATE,
    ]
});

/// Ordinary values. Floats are sums of few powers of two: however they are added, the sum is the same.
pub(super) fn tame(pg_type: PgType) -> &'static [&'static str] {
    match pg_type {
        PgType::Bool => &["true", "false"],
        PgType::Int2 | PgType::Int4 | PgType::Int8 => {
            &["0", "1", "2", "3", "4", "5", "7", "10", "-1", "-2", "12", "100"]
        }
        PgType::Float4 | PgType::Float8 => &["0", "1", "2", "0.5", "-1.5", "2.25", "3", "10", "-4", "0.125"],
        PgType::Numeric => &["0", "1", "2.50", "-1.25", "3.333", "10", "0.01", "7", "100.5", "-3"],
        PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name | PgType::Json | PgType::Unknown => {
            &["a", "b", "B", "ab", "", "a-b", "x", "Co", "co", "abc"]
        }
        PgType::Date => &["2024-01-01", "2024-02-29", "2024-03-31", "2023-12-31", "2024-03-10", "2000-01-01"],
        PgType::Time => &["00:00:00", "12:30:00", "23:59:59.5", "01:02:03.004005"],
        PgType::Timestamp => &[
            "2024-01-01 00:00:00",
            "2024-02-29 12:34:56.789",
            "2024-03-10 02:30:00",
            "2024-03-31 02:30:00",
            "2024-11-03 01:30:00",
            "2023-12-31 23:59:59.5",
        ],
        PgType::Timestamptz => &[
            "2024-01-01 00:00:00+00",
            "2024-03-10 06:59:59+00",
            "2024-03-10 07:00:00+00",
            "2024-03-31 00:30:00+00",
            "2024-11-03 05:30:00+00",
            "2024-11-03 06:30:00+00",
        ],
        PgType::Interval => &["1 day", "1 mon", "-1 day", "04:05:06.789", "00:00:00", "2 years 3 days", "15 minutes"],
        PgType::Uuid => &["00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
        PgType::Bit | PgType::Varbit => &["101", "1", "01", "10110001"],
        PgType::Inet => &[
            "10.1.2.3",
            "10.1.2.0/24",
            "10.1.2.3/24",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::1",
            "2001:db8::/32",
            "2001:db8::1:0:0:1/64",
            "::ffff:10.1.2.3",
            "255.255.255.255",
        ],
        PgType::Cidr => &["10.0.0.0/8", "10.1.2.0/24", "10.1.2.3/32", "0.0.0.0/0", "::/0", "2001:db8::/32", "::1/128"],
        PgType::Bytea => &["\\x", "\\x00ff", "\\x61", "\\x5c27"],
        PgType::Jsonb => {
            &["{\"a\": 1}", "[1, 2, \"x\"]", "null", "\"s\"", "{\"a\": {\"b\": [true]}, \"k\": \"v\"}", "1.50"]
        }
        PgType::Array(Element::Text | Element::Varchar) => &["{}", "{a,b}", "{NULL}", "{\"a b\",c,a}"],
        PgType::Array(Element::Int2 | Element::Int4 | Element::Int8 | Element::Numeric) => {
            &["{}", "{1,2,3}", "{NULL,1}", "{3}"]
        }
        PgType::Array(_) => &["{}"],
        PgType::Enum(_) => &LABELS,
    }
}

/// Values at the edges.
pub(super) fn wild(pg_type: PgType) -> &'static [&'static str] {
    match pg_type {
        PgType::Int2 => &["32767", "-32768"],
        PgType::Int4 => &["2147483647", "-2147483648", "65536"],
        PgType::Int8 => &["9223372036854775807", "-9223372036854775808", "4294967296"],
        PgType::Float4 => &["NaN", "Infinity", "-Infinity", "-0", "3.4e38", "1e-45", "0.1"],
        PgType::Float8 => &["NaN", "Infinity", "-Infinity", "-0", "1.7e308", "5e-324", "0.1", "1e15", "123456789.123"],
        PgType::Numeric => {
            &["NaN", "Infinity", "-Infinity", "0.000000000000000001", "99999999999999999999", "1e20", "-0.005"]
        }
        PgType::Text | PgType::Varchar | PgType::Unknown => {
            &["größe", "ÄB", "a%b_", "back\\slash", "it's", "  x ", "12", "2024-01-01", "tab\there", "日本"]
        }
        PgType::Bpchar => &["é", "x", "a  b"],
        PgType::Date => &["infinity", "-infinity", "0044-03-15 BC", "5874897-12-31", "1900-01-01"],
        PgType::Time => &["24:00:00", "23:59:59.999999"],
        PgType::Timestamp => {
            &["infinity", "-infinity", "0001-01-01 00:00:00 BC", "294276-12-31 23:59:59", "1883-11-18 12:00:00"]
        }
        PgType::Timestamptz => {
            &["infinity", "-infinity", "1883-11-18 17:00:00+00", "1900-01-01 12:00:00+00", "2037-06-01 12:00:00+00"]
        }
        PgType::Interval => &["1000000 hours", "-178000 years", "1 mon -40 days", "30 days 24:00:00"],
        PgType::Jsonb => &["{}", "[]", "{\"a\": null, \"ü\": 1e3}", "[[1], {\"a\": [2]}]"],
        PgType::Array(Element::Text) => &["{\"\",NULL,\"x,y\"}", "[2:3]={q,r}", "{{a,b},{c,d}}"],
        PgType::Array(Element::Int4) => &["{{1,2},{3,4}}", "[0:1]={5,6}", "{2147483647,NULL}"],
        other => tame(other),
    }
}

/// Texts that are no value of the type, or none that the next step takes: what they mean is an error, where somebody looks at it.
pub(super) fn wrong(pg_type: PgType) -> &'static [&'static str] {
    match pg_type {
        PgType::Bool => &["maybe", ""],
        PgType::Int2 => &["32768", "-32769", "1.5", "x", ""],
        PgType::Int4 => &["2147483648", "-2147483649", "1.5", "x", ""],
        PgType::Int8 => &["9223372036854775808", "1e3", "x", ""],
        PgType::Float4 => &["1e39", "1e-46", "1,5", "x"],
        PgType::Float8 => &["1e309", "1e-400", "1,5", "x"],
        PgType::Numeric => &["1e", "--1", "1 2", "x", ""],
        PgType::Date => &["2024-02-30", "2023-02-29", "2024-13-01", "24-00-01", "tomorrow-ish", ""],
        PgType::Time => &["24:00:01", "12:60:00", "25:00", "noonish"],
        PgType::Timestamp => &["2024-02-30 00:00:00", "2024-01-01 25:00:00", "294277-01-01 00:00:00", "x", ""],
        PgType::Timestamptz => {
            &["2024-02-30 00:00:00+00", "2024-01-01 00:00:00 Nowhere/City", "294277-01-01 00:00:00+00", ""]
        }
        PgType::Interval => &["1 fortnight", "178956971 years", "1 day 1 day", "5 ago", "P1", ""],
        PgType::Uuid => &["00000000-0000-0000-0000-00000000000", "g0000000-0000-0000-0000-000000000001", ""],
        PgType::Bit | PgType::Varbit => &["102", "x1g"],
        PgType::Inet => &["10.1.2", "10.1.2.3/33", "::1/129", "10.1.2.256", ""],
        PgType::Cidr => &["10.1.2.3/8", "::1/64", "10.0.0.0/33", ""],
        PgType::Bytea => &["\\x0", "\\xgg", "\\8"],
        PgType::Json | PgType::Jsonb => &["{a: 1}", "[1,]", "'x'", "1.e5", ""],
        PgType::Array(_) => &["{", "1,2", "{1,2", "[1:1]={1,2}", "{{1},{2,3}}", ""],
        PgType::Enum(_) => &["shipped", "", "NEW"],
        // Any text is one.
        PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name | PgType::Unknown => tame(pg_type),
    }
}

/// A value's text; None is NULL.
pub(super) fn any(dice: &mut Dice, pg_type: PgType, is_wild: bool) -> Option<&'static str> {
    if dice.percent(12) {
        return None;
    }
    Some(*if is_wild && dice.percent(40) { dice.pick(wild(pg_type)) } else { dice.pick(tame(pg_type)) })
}

/// A value of a column: few of them often.
pub(super) fn skewed(dice: &mut Dice, pg_type: PgType, is_wild: bool) -> Option<&'static str> {
    if dice.percent(15) {
        return None;
    }
    let from = if is_wild && dice.percent(30) { wild(pg_type) } else { tame(pg_type) };
    Some(from[dice.skewed(from.len())])
}

const UNITS: &[&str] =
    &["year", "quarter", "month", "week", "day", "hour", "minute", "second", "milliseconds", "decade", "century"];
const FIELDS: &[&str] = &[
    "year", "month", "day", "hour", "minute", "second", "epoch", "dow", "isodow", "doy", "week", "quarter", "isoyear",
    "century",
];
const DATE_PATTERNS: &[&str] = &[
    "YYYY-MM-DD HH24:MI:SS",
    "Mon DD, YYYY",
    "FMMonth FMDD",
    "Dy D ID",
    "IYYY-IW",
    "Q",
    "HH12:MI AM",
    "MS US",
    "DDD J",
    "YY",
];
const NUMBER_PATTERNS: &[&str] = &["999", "FM990.00", "0000", "9,999.99", "S99", "MI99", "99.9PR", "999th", "FM9.9"];
const ZONES: &[&str] = &["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata"];
const REGULAR: &[&str] = &["^a", "b$", "[a-c]+", "a|x", ".", "\\d", "^$", "o"];
const LIKES: &[&str] = &["a%", "%b%", "_", "", "%", "a\\%%", "%o", "A%"];
const SMALL: &[&str] = &["0", "1", "2", "3", "-1", "5"];

/// What the n-th argument (of that type) must be chosen from; None: anything of its type.
pub(super) fn constants_of(function: &str, argument: usize, of: &[PgType]) -> Option<&'static [&'static str]> {
    let is_number = |pg_type: &PgType| pg_type.category() == freshet_engine::types::TypeCategory::Numeric;
    Some(match (function, argument) {
        ("date_trunc", 0) => UNITS,
        ("date_part", 0) => FIELDS,
        ("date_trunc", 2) => ZONES,
        ("to_char", 1) if of.first().is_some_and(is_number) => NUMBER_PATTERNS,
        ("to_char", 1) => DATE_PATTERNS,
        ("to_timestamp" | "to_date", 0) if of.len() == 2 => {
            &["2024-02-29 13:14:15.678", "2024-01-05", "1999-12-31 23:59:59"]
        }
        ("to_timestamp", 1) => &["YYYY-MM-DD HH24:MI:SS.US", "YYYY-MM-DD"],
        ("to_number", 0) => &["12", "-3.5", "1,234.50", " 7", "12.", "0.05", "+4"],
        ("to_number", 1) => NUMBER_PATTERNS,
        ("to_date", 1) => &["YYYY-MM-DD"],
        ("timezone", 0) if of.first() == Some(&PgType::Text) => ZONES,
        ("date_bin", 0) => &["15 minutes", "1 day 2 hours", "7 days"],
        ("~" | "!~" | "~*" | "!~*" | "regexp_replace", 1) => REGULAR,
        ("substring", 1) if of.get(1) == Some(&PgType::Text) => REGULAR,
        ("regexp_replace", 3) => &["g", "", "i"],
        ("~~" | "!~~" | "~~*" | "!~~*" | "like" | "notlike", 1) => LIKES,
        ("encode" | "decode", 1) => &["hex", "base64", "escape"],
        ("convert_from" | "convert_to", 1) => &["UTF8"],
        ("format", 0) => &["%s-%s", "%L", "%L|%-9s|%7s", "%2$s %1$s", "%1$8s%%", "none"],
        ("chr", 0) => &["65", "97", "8364", "10"],
        ("make_date" | "make_timestamp" | "make_timestamptz", 0) => &["2024", "1999"],
        ("make_date" | "make_timestamp" | "make_timestamptz", 1) => &["1", "2", "12"],
        ("make_date" | "make_timestamp" | "make_timestamptz", 2) => &["1", "28", "29"],
        ("make_timestamp" | "make_timestamptz", 3 | 4) | ("make_time", 0 | 1) => &["0", "1", "23"],
        ("make_timestamp" | "make_timestamptz", 5) | ("make_time", 2) => &["0", "1.5", "59.25"],
        ("width_bucket", 3) => &["4", "10"],
        ("split_part", 2) => &["1", "2", "-1"],
        ("set_masklen", 1) => &["0", "8", "20", "24", "32", "-1"],
        ("factorial", 0) => &["0", "3", "10"],
        (
            "overlay" | "substring" | "substr" | "left" | "right" | "repeat" | "lpad" | "rpad" | "get_byte" | "get_bit",
            _,
        )
        | ("round" | "trunc" | "<<" | ">>", 1)
        | ("make_interval", _)
            if matches!(of.get(argument), Some(PgType::Int4 | PgType::Int8)) =>
        {
            SMALL
        }
        ("#>" | "#>>", 1) => &["{a}", "{a,b,0}", "{}", "{0}"],
        ("->" | "->>" | "?", 1) if of.get(1) == Some(&PgType::Text) => &["a", "k", "missing", ""],
        _ => return None,
    })
}
