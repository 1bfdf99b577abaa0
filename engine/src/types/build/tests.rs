//! Tests of `build`.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int32Type};
use proptest::prelude::*;

use super::*;
use crate::types::access::{self, TextColumn, value_at};
use crate::types::encode::{ColumnEncoder, Format};
use crate::types::network::{Family, Network};
use crate::types::{Interval, Numeric};

fn column(pg_type: PgType, typmod: i32, values: &[Value]) -> ArrayRef {
    let mut builder = ColumnBuilder::new(pg_type, typmod);
    values.iter().for_each(|value| builder.append_value(value));
    assert_eq!(builder.len(), values.len());
    builder.finish()
}

fn text_column<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    let values: Vec<Value> = values.into_iter().map(|value| Value::Text(value.into())).collect();
    column(PgType::Text, -1, &values)
}

#[test]
fn few_distinct_texts_become_a_dictionary() {
    let array = text_column((0..1000).map(|row| ["new", "paid", "shipped"][row % 3]));
    assert_eq!(array.as_dictionary::<Int32Type>().values().len(), 3);
    assert_eq!(TextColumn::of(&array).get(998), "shipped");
}

#[test]
fn many_distinct_texts_become_plain_strings() {
    let texts: Vec<String> = (0..2000).map(|row| format!("customer {row}")).collect();
    let array = text_column(texts.iter().map(String::as_str));
    assert_eq!(*array.data_type(), DataType::Utf8);
    for row in [0, 255, 256, 1024, 1999] {
        assert_eq!(TextColumn::of(&array).get(row), texts[row]);
    }
}

#[test]
fn nulls_before_the_first_text_survive_the_change_to_plain_strings() {
    let mut values = vec![Value::Null; 3];
    values.extend((0..2000).map(|row| Value::Text(row.to_string().into())));
    let array = column(PgType::Text, -1, &values);
    assert_eq!(*array.data_type(), DataType::Utf8);
    assert_eq!(array.null_count(), 3);
    assert_eq!(value_at(&array, PgType::Text, 3), Value::Text("0".into()));
}

#[test]
fn following_chunk_shares_the_dictionary_unless_a_value_is_new() {
    let first = text_column(["a", "b", "a"]);
    let mut same = ColumnBuilder::following(PgType::Text, -1, 2, &first);
    same.append_binary(b"b").unwrap();
    same.append_null();
    let same = same.finish();
    let values = |array: &ArrayRef| Arc::clone(array.as_dictionary::<Int32Type>().values());
    assert!(Arc::ptr_eq(&values(&first), &values(&same)));
    assert_eq!(value_at(&same, PgType::Text, 0), Value::Text("b".into()));

    let mut wider = ColumnBuilder::following(PgType::Text, -1, 2, &same);
    wider.append_binary(b"c").unwrap();
    wider.append_binary(b"a").unwrap();
    let wider = wider.finish();
    assert_eq!(values(&wider).len(), 3);
    assert_eq!(wider.as_dictionary::<Int32Type>().keys().values(), &[2, 0]);
}

#[test]
fn numerics_take_the_tightest_form_and_the_declared_one() {
    let form = |typmod: i32, texts: &[&str]| {
        let values: Vec<Value> = texts.iter().map(|text| Value::Numeric(Numeric::parse(text).unwrap())).collect();
        let array = column(PgType::Numeric, typmod, &values);
        for (row, value) in values.iter().enumerate() {
            assert_eq!(value_at(&array, PgType::Numeric, row), *value);
        }
        array.data_type().clone()
    };
    let typmod = |precision: i32, scale: i32| ((precision << 16) | (scale & 0x7ff)) + 4;
    assert_eq!(form(-1, &["1.50", "-2.25"]), DataType::Decimal64(18, 2));
    assert_eq!(form(-1, &["1.50", "1000000000000000000.00"]), DataType::Decimal128(38, 2));
    assert!(matches!(form(-1, &["1.50", "2.5"]), DataType::Struct(_)));
    assert!(matches!(form(typmod(10, 2), &["1.50", "NaN", "-Infinity"]), DataType::Struct(_)));
    assert_eq!(form(typmod(10, 2), &["1.50"]), DataType::Decimal64(18, 2));
    assert_eq!(form(typmod(20, 2), &["1.50"]), DataType::Decimal128(38, 2));
    assert_eq!(form(typmod(3, -2), &["12300"]), DataType::Decimal64(18, 0));
    assert_eq!(form(typmod(2, 5), &["0.00012"]), DataType::Decimal64(18, 5));
}

#[test]
fn malformed_bytes_append_nothing() {
    for pg_type in PgType::ALL {
        let mut builder = ColumnBuilder::new(pg_type, -1);
        let is_refused = builder.append_binary(&[0xff, 0, 0xfe]).is_err();
        assert_eq!(is_refused, pg_type != PgType::Bytea, "{}", pg_type.name());
        assert_eq!(builder.len(), usize::from(!is_refused), "{}", pg_type.name());
        let mut builder = ColumnBuilder::new(pg_type, -1);
        assert!(builder.append_text(b"\xff\0", &FormatSettings::default()).is_err() || pg_type == PgType::Bytea);
    }
}

#[test]
fn columns_of_different_forms_join() {
    let plain = text_column(["x"]);
    let plain = arrow::compute::cast(&plain, &DataType::Utf8).unwrap();
    let joined = access::concat(PgType::Text, &[text_column(["a", "b"]), plain]).unwrap();
    assert_eq!(value_at(&joined, PgType::Text, 2), Value::Text("x".into()));
    let numeric =
        |text: &str| column(PgType::Numeric, -1, &[Value::Numeric(Numeric::parse(text).unwrap()), Value::Null]);
    let joined = access::concat(PgType::Numeric, &[numeric("1.5"), numeric("1e30"), numeric("NaN")]).unwrap();
    assert_eq!(value_at(&joined, PgType::Numeric, 2), Value::Numeric(Numeric::parse("1e30").unwrap()));
    assert_eq!((joined.len(), joined.null_count()), (6, 3));
}

/// Values of a type over its whole range, extremes included.
fn value_of(pg_type: PgType) -> BoxedStrategy<Value> {
    const DAY: i64 = 86_400_000_000;
    let timestamp = prop_oneof![Just(i64::MAX), Just(i64::MIN), -200_000_000_000_000_000i64..9_000_000_000_000_000_000];
    match pg_type {
        PgType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        PgType::Int2 => any::<i16>().prop_map(Value::Int2).boxed(),
        PgType::Int4 => any::<i32>().prop_map(Value::Int4).boxed(),
        PgType::Int8 => any::<i64>().prop_map(Value::Int8).boxed(),
        PgType::Float4 => any::<u32>()
            .prop_map(|bits| Value::Float4(Some(f32::from_bits(bits)).filter(|v| !v.is_nan()).unwrap_or(f32::INFINITY)))
            .boxed(),
        PgType::Float8 => any::<u64>()
            .prop_map(|bits| {
                Value::Float8(Some(f64::from_bits(bits)).filter(|v| !v.is_nan()).unwrap_or(-f64::INFINITY))
            })
            .boxed(),
        PgType::Numeric => prop_oneof![
            8 => (any::<i64>(), 0u16..40).prop_map(|(m, scale)| Numeric::Finite { mantissa: i128::from(m), scale }),
            2 => (any::<i128>(), 0u16..60).prop_map(|(m, scale)| Numeric::Finite { mantissa: m / 10, scale }),
            1 => prop::sample::select(vec![Numeric::NaN, Numeric::PositiveInfinity, Numeric::NegativeInfinity]),
        ]
        .prop_map(Value::Numeric)
        .boxed(),
        PgType::Date => {
            prop_oneof![Just(i32::MAX), Just(i32::MIN), -2_400_000i32..2_900_000].prop_map(Value::Date).boxed()
        }
        PgType::Time => (0..=DAY).prop_map(Value::Time).boxed(),
        PgType::Timestamp => timestamp.prop_map(Value::Timestamp).boxed(),
        PgType::Timestamptz => timestamp.prop_map(Value::Timestamptz).boxed(),
        PgType::Interval => (-5000i32..5000, -5000i32..5000, -3 * DAY..3 * DAY)
            .prop_map(|(months, days, microseconds)| Value::Interval(Interval { months, days, microseconds }))
            .boxed(),
        PgType::Enum(labels) => {
            (0i64..3).prop_map(move |place| Value::Text(labels.label(place).unwrap_or_default().into())).boxed()
        }
        PgType::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        PgType::Bytea => prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Value::Bytea(bytes.into())).boxed(),
        PgType::Inet | PgType::Cidr => (any::<bool>(), any::<u8>(), any::<u128>(), 0u32..128)
            .prop_map(move |(is_v4, bits, address, zeros)| {
                let (family, width) = if is_v4 { (Family::V4, 32) } else { (Family::V6, 128) };
                let address = (address >> (128 - width)) >> zeros.min(width - 1);
                let network = Network { family, bits: bits % (family.width() + 1), address };
                Value::Network(if pg_type == PgType::Cidr { network.network() } else { network }.held().into())
            })
            .boxed(),
        PgType::Array(element) => {
            let item = prop_oneof![1 => Just(Value::Null), 5 => value_of(element.pg_type())];
            prop::collection::vec(item, 0..6)
                .prop_map(move |items| {
                    let mut elements = Vec::new();
                    items.iter().for_each(|item| array::write_element(item, element, &mut elements));
                    let mut whole = Vec::new();
                    let has_null = items.contains(&Value::Null);
                    array::write_vector(element, items.len(), has_null, &elements, &mut whole);
                    Value::Array(whole.into())
                })
                .boxed()
        }
        PgType::Bit | PgType::Varbit => "[01]{0,20}".prop_map(|text| Value::Text(text.into())).boxed(),
        PgType::Text
        | PgType::Varchar
        | PgType::Bpchar
        | PgType::Name
        | PgType::Json
        | PgType::Jsonb
        | PgType::Unknown => "[a-c]|[^\\x00]{0,8}".prop_map(|text| Value::Text(text.into())).boxed(),
    }
}

fn type_and_values() -> impl Strategy<Value = (PgType, Vec<Value>)> {
    prop::sample::select(PgType::ALL.to_vec()).prop_flat_map(|pg_type| {
        let value = prop_oneof![1 => Just(Value::Null), 5 => value_of(pg_type)];
        (Just(pg_type), prop::collection::vec(value, 0..40))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What one freshet writes, another could read as upstream's: values → column → cells → column → values.
    #[test]
    fn columns_round_trip_through_both_formats((pg_type, values) in type_and_values()) {
        let settings = FormatSettings::default();
        let original = column(pg_type, -1, &values);
        for format in [Format::Text, Format::Binary] {
            let mut encoder = ColumnEncoder::new(&original, pg_type, format, &settings);
            let mut builder = ColumnBuilder::new(pg_type, -1);
            for (row, value) in values.iter().enumerate() {
                prop_assert_eq!(&value_at(&original, pg_type, row), value);
                let mut cell = Vec::new();
                encoder.write(row, &mut cell);
                match (value, format) {
                    (Value::Null, _) => builder.append_null(),
                    (_, Format::Text) => builder.append_text(&cell[4..], &settings).unwrap(),
                    (_, Format::Binary) => builder.append_binary(&cell[4..]).unwrap(),
                }
            }
            let copy = builder.finish();
            for (row, value) in values.iter().enumerate() {
                prop_assert_eq!(&value_at(&copy, pg_type, row), value, "{:?}", format);
            }
        }
    }

    #[test]
    fn decoders_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for pg_type in PgType::ALL {
            let mut builder = ColumnBuilder::new(pg_type, -1);
            let appended = usize::from(builder.append_binary(&bytes).is_ok())
                + usize::from(builder.append_text(&bytes, &FormatSettings::default()).is_ok());
            prop_assert_eq!(builder.len(), appended);
            prop_assert_eq!(builder.finish().len(), appended);
        }
    }
}
