//! Tests of `encode`.

use proptest::prelude::*;

use super::*;
use crate::types::build::ColumnBuilder;
use crate::types::{Value, binary, text};

fn settings(zone: &str) -> FormatSettings {
    FormatSettings { time_zone: datetime::zone::named(zone).unwrap(), ..FormatSettings::default() }
}

/// The cells that a column of `values` gets, next to what the type's plain output function makes of each value.
fn assert_cells(pg_type: PgType, values: &[Value], format: Format, settings: &FormatSettings) {
    let mut builder = ColumnBuilder::new(pg_type, -1);
    values.iter().for_each(|value| builder.append_value(value));
    let column = builder.finish();
    let mut encoder = ColumnEncoder::new(&column, pg_type, format, settings);
    for (row, value) in values.iter().enumerate() {
        let mut expected = Vec::new();
        match format {
            Format::Text => text::write(value, pg_type, settings, &mut expected),
            Format::Binary => binary::write(value, pg_type, &mut expected),
        }
        let length = if value.is_null() { -1 } else { i32::try_from(expected.len()).unwrap() };
        expected.splice(0..0, length.to_be_bytes());
        let mut cell = Vec::new();
        encoder.write(row, &mut cell);
        assert_eq!(String::from_utf8_lossy(&cell), String::from_utf8_lossy(&expected), "{value:?}");
        assert_eq!(cell, expected, "{value:?}");
    }
}

#[test]
fn null_has_length_minus_one_in_every_type() {
    for pg_type in PgType::ALL {
        for format in [Format::Text, Format::Binary] {
            assert_cells(pg_type, &[Value::Null, Value::Null], format, &FormatSettings::default());
        }
    }
}

#[test]
fn column_that_is_not_mirrored_encodes_as_null() {
    let column: ArrayRef = std::sync::Arc::new(arrow::array::NullArray::new(1));
    let mut out = Vec::new();
    ColumnEncoder::new(&column, PgType::Text, Format::Text, &FormatSettings::default()).write(0, &mut out);
    assert_eq!(out, (-1i32).to_be_bytes());
}

#[test]
fn timestamps_outside_four_digit_years_take_the_long_way() {
    let settings = settings("America/New_York");
    let times = [i64::MAX, i64::MIN, -63_113_904_000_000_001, -63_082_281_600_000_000, 252_455_616_000_000_000, 0];
    for format in [Format::Text, Format::Binary] {
        assert_cells(PgType::Timestamp, &times.map(Value::Timestamp), format, &settings);
        assert_cells(PgType::Timestamptz, &times.map(Value::Timestamptz), format, &settings);
    }
}

#[test]
fn jsonb_carries_its_version_in_binary() {
    let values = [Value::Text("{\"a\": 1}".into()), Value::Null, Value::Text("[]".into())];
    assert_cells(PgType::Jsonb, &values, Format::Binary, &FormatSettings::default());
    // More values than rows: the dictionary is not rendered beforehand.
    let mut builder = ColumnBuilder::new(PgType::Jsonb, -1);
    values.iter().for_each(|value| builder.append_value(value));
    let slice = builder.finish().slice(2, 1);
    let mut cell = Vec::new();
    ColumnEncoder::new(&slice, PgType::Jsonb, Format::Binary, &FormatSettings::default()).write(0, &mut cell);
    assert_eq!(cell, b"\0\0\0\x03\x01[]");
}

#[test]
fn dates_print_as_single_values_do() {
    let days = [i32::MIN, i32::MAX, 0, 0, -1, 1, -730_119, -730_120, 2_921_939, 2_921_940, 9_657, i32::MIN];
    let orders = [DateStyle::Iso, DateStyle::German];
    for date_style in orders {
        let settings = FormatSettings { date_style, ..FormatSettings::default() };
        assert_cells(PgType::Date, &days.map(Value::Date), Format::Text, &settings);
    }
}

#[test]
fn rows_are_the_cells_of_their_columns() {
    // More rows than are taken at once, texts of all lengths, some of them NULL.
    let text = |n: usize| if n.is_multiple_of(7) { Value::Null } else { Value::Text("x".repeat(n % 90).into()) };
    let bytes = |n: usize| if n.is_multiple_of(5) { Value::Null } else { Value::Bytea(vec![n as u8; n % 70].into()) };
    let number = |n: usize| if n.is_multiple_of(3) { Value::Null } else { Value::Int8(n as i64 * 1_000_003) };
    let rows = 3 * BLOCK_ROWS + 1;
    let column = |pg_type, value: &dyn Fn(usize) -> Value| {
        let mut builder = ColumnBuilder::new(pg_type, -1);
        (0..rows).for_each(|row| builder.append_value(&value(row)));
        (builder.finish(), pg_type)
    };
    let columns = [column(PgType::Text, &text), column(PgType::Int8, &number), column(PgType::Bytea, &bytes)];
    let settings = FormatSettings::default();
    for format in [Format::Text, Format::Binary] {
        let encoder = |(array, pg_type): &(ArrayRef, PgType)| ColumnEncoder::new(array, *pg_type, format, &settings);
        let (mut one_by_one, mut together) = (b"before".to_vec(), b"before".to_vec());
        let mut encoders: Vec<_> = columns.iter().map(encoder).collect();
        for row in 0..rows {
            let start = one_by_one.len();
            one_by_one.extend_from_slice(&[b'D', 0, 0, 0, 0, 0, 3]);
            encoders.iter_mut().for_each(|encoder| encoder.write(row, &mut one_by_one));
            let length = (one_by_one.len() - start - 1) as u32;
            one_by_one[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        }
        write_rows(&mut columns.iter().map(encoder).collect::<Vec<_>>(), 0..rows, &mut together);
        assert_eq!(one_by_one, together);
    }
}

proptest! {
    #[test]
    fn floats_of_few_digits_print_as_single_values_do(
        floats in prop::collection::vec((-2_000_000_000_000_000i64..2_000_000_000_000_000, 0i32..16, 0i32..9), 1..50),
        digits in 0i32..=3,
    ) {
        let settings = FormatSettings { extra_float_digits: digits, ..FormatSettings::default() };
        let floats: Vec<f64> =
            floats.into_iter().map(|(n, cut, scale)| (n / 10i64.pow(cut as u32)) as f64 / 10f64.powi(scale)).collect();
        let doubles: Vec<Value> = floats.iter().map(|value| Value::Float8(*value)).collect();
        assert_cells(PgType::Float8, &doubles, Format::Text, &settings);
        let singles: Vec<Value> = floats.iter().map(|value| Value::Float4(*value as f32)).collect();
        assert_cells(PgType::Float4, &singles, Format::Text, &settings);
    }

    #[test]
    fn integers_print_as_rust_prints_them(values in prop::collection::vec(any::<i64>(), 1..50)) {
        let values: Vec<Value> = values.into_iter().map(Value::Int8).collect();
        assert_cells(PgType::Int8, &values, Format::Text, &FormatSettings::default());
    }

    #[test]
    fn decimals_print_as_single_values_do(
        mantissas in prop::collection::vec((-999_999_999_999_999_999i64..=999_999_999_999_999_999, 0u32..18), 1..50),
        scale in 0u16..=18,
    ) {
        let values: Vec<Value> = mantissas
            .into_iter()
            .map(|(mantissa, cut)| i128::from(mantissa / 10i64.pow(cut)))
            .map(|mantissa| Value::Numeric(crate::types::Numeric::Finite { mantissa, scale }))
            .collect();
        assert_cells(PgType::Numeric, &values, Format::Text, &FormatSettings::default());
        assert_cells(PgType::Numeric, &values, Format::Binary, &FormatSettings::default());
    }

    #[test]
    fn timestamps_print_as_single_values_do(
        times in prop::collection::vec((-70_000_000_000_000_000i64..260_000_000_000_000_000, 0u32..7), 1..50),
        zone in prop::sample::select(vec!["UTC", "America/New_York", "Asia/Kolkata", "Europe/Amsterdam"]),
    ) {
        let settings = settings(zone);
        let times: Vec<i64> = times.into_iter().map(|(time, cut)| time / 10i64.pow(cut) * 10i64.pow(cut)).collect();
        let local: Vec<Value> = times.iter().map(|&time| Value::Timestamp(time)).collect();
        assert_cells(PgType::Timestamp, &local, Format::Text, &settings);
        let zoned: Vec<Value> = times.iter().map(|&time| Value::Timestamptz(time)).collect();
        assert_cells(PgType::Timestamptz, &zoned, Format::Text, &settings);
    }
}
