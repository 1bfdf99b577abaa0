//! Ids against a naive table, over batches that force every change of representation.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{DictionaryArray, Float64Array, Int16Array, Int32Array, Int64Array, StringArray};

use super::*;
use crate::types::access::value_at;
use crate::types::numeric::NumericBuilder;
use crate::types::{Numeric, Value};

/// Rows of several key columns as their debug text, which tells the test's values apart as `=` does.
fn texts(types: &[PgType], keys: &[ArrayRef], row: usize) -> Vec<Option<String>> {
    let cell = |(array, pg_type): (&ArrayRef, &PgType)| match value_at(array.as_ref(), *pg_type, row) {
        Value::Null => None,
        Value::Numeric(value) => Some(format!("{:?}", value.normalized())),
        value => Some(format!("{value:?}")),
    };
    keys.iter().zip(types).map(cell).collect()
}

/// Assigns and finds batch by batch, beside a naive table; once more with a table that is settled after each batch.
fn compare(types: &[PgType], purpose: Purpose, rows_expected: usize, batches: &[Vec<ArrayRef>]) {
    compare_as(types, purpose, rows_expected, batches, false);
    compare_as(types, purpose, rows_expected, batches, true);
}

fn compare_as(types: &[PgType], purpose: Purpose, rows_expected: usize, batches: &[Vec<ArrayRef>], settles: bool) {
    let mut table = KeyTable::new(types, purpose, rows_expected).expect("known types");
    let mut naive: HashMap<Vec<Option<String>>, u32> = HashMap::new();
    for keys in batches {
        let rows = keys[0].len();
        let before = table.len();
        let ids = table.assign(keys, rows).expect("assigned");
        let mut first = Vec::new();
        for row in 0..rows {
            let key = texts(types, keys, row);
            if purpose == Purpose::Matches && key.iter().any(Option::is_none) {
                assert_eq!(ids[row], KeyTable::NONE, "NULL matches nothing");
                continue;
            }
            let next = naive.len() as u32;
            let expected = *naive.entry(key).or_insert_with(|| {
                first.push(row as u32);
                next
            });
            assert_eq!(ids[row], expected, "row {row} of {types:?}");
        }
        if settles {
            table.settle();
        }
        assert_eq!(table.len(), naive.len());
        assert_eq!(first_rows(&ids, before, table.len()), first);
    }
    for keys in batches {
        let found = table.find(keys, keys[0].len()).expect("found");
        for (row, id) in found.iter().enumerate() {
            let key = texts(types, keys, row);
            assert_eq!(*id, naive.get(&key).copied().unwrap_or(KeyTable::NONE), "row {row} of {types:?}");
        }
    }
}

fn ints(values: impl IntoIterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int32Array>())
}

fn bigints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

#[test]
fn integers_stay_direct_grow_both_ways_and_are_hashed_at_last() {
    let batches = [
        vec![bigints((0..500).map(|n| n % 37))],
        vec![bigints((0..500).map(|n| 1_000 - n * 3))],
        vec![bigints((0..500).map(|n| n * 1_000_000_007))],
        vec![bigints([i64::MIN, i64::MAX, 0, -1, 5, i64::MIN])],
        vec![bigints((0..500).map(|n| n % 37))],
    ];
    compare(&[PgType::Int8], Purpose::Groups, 1_000, &batches);
    compare(&[PgType::Int8], Purpose::Matches, 0, &batches);
    let extremes = [vec![bigints([i64::MAX, i64::MAX - 1])], vec![bigints([i64::MAX - 3])], vec![bigints([i64::MIN])]];
    compare(&[PgType::Int8], Purpose::Groups, 10, &extremes);
}

#[test]
fn null_is_one_key_of_a_group_and_none_of_a_match() {
    let batches = [
        vec![ints([None, None])],
        vec![ints([Some(3), None, Some(4), Some(3)])],
        vec![ints([Some(900_000_000), None, Some(-900_000_000), Some(3)])],
    ];
    compare(&[PgType::Int4], Purpose::Groups, 10, &batches);
    compare(&[PgType::Int4], Purpose::Matches, 10, &batches);
}

#[test]
fn several_columns_fold_into_one_id_through_matrix_and_hash() {
    let batch = |rows: i32, spread: i32| {
        vec![
            ints((0..rows).map(|n| (n % 11 > 0).then_some(n * 7 % spread))),
            ints((0..rows).map(|n| (n % 13 > 0).then_some(n * 5 % (spread + 3)))),
            Arc::new((0..rows).map(|n| Some(format!("t{}", n % 5))).collect::<StringArray>()) as ArrayRef,
        ]
    };
    let batches = [batch(100, 4), batch(3_000, 60), batch(6_000, 2_500), batch(100, 4)];
    for purpose in [Purpose::Groups, Purpose::Matches] {
        compare(&[PgType::Int4, PgType::Int4, PgType::Text], purpose, 100, &batches);
    }
}

#[test]
fn text_is_one_key_space_over_dictionaries_and_plain_arrays() {
    let dictionary =
        |texts: Vec<Option<&str>>| -> ArrayRef { Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>()) };
    let plain = |texts: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
    let batches = [
        vec![dictionary(vec![Some("a"), Some("b"), None, Some("a")])],
        vec![plain(vec![Some("c"), None, Some("a"), Some("")])],
        vec![dictionary(vec![Some("z"), Some("c"), Some("b"), Some("")])],
    ];
    compare(&[PgType::Text], Purpose::Groups, 10, &batches);
    compare(&[PgType::Text], Purpose::Matches, 10, &batches);
    // A slice of a dictionary gives no id to entries that it does not use.
    let whole = dictionary(vec![Some("x"), Some("y"), Some("z"), Some("y")]);
    compare(&[PgType::Varchar], Purpose::Groups, 10, &[vec![whole.slice(1, 1)], vec![whole.slice(2, 2)], vec![whole]]);
}

#[test]
fn padding_of_bpchar_does_not_count() {
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a  ", "a", " a", "   ", ""]));
    let mut table = KeyTable::new(&[PgType::Bpchar], Purpose::Groups, 5).expect("bpchar");
    assert_eq!(table.assign(&[keys], 5).expect("assigned"), [0, 0, 1, 2, 2]);
}

#[test]
fn numerics_are_keys_by_value_in_every_form() {
    let array = |texts: &[&str]| -> ArrayRef {
        let parse = |text: &&str| (!text.is_empty()).then(|| Numeric::parse(text).expect("a numeric"));
        texts.iter().map(parse).collect::<NumericBuilder>().finish()
    };
    let batches = [
        vec![array(&["1.50", "2.00", "", "1.50"])],
        vec![array(&["1.5", "2", "NaN", "Infinity", "-Infinity", "NaN"])],
        vec![array(&["12345678901234567890123.5", "2.000"])],
    ];
    for purpose in [Purpose::Matches, Purpose::Same] {
        compare(&[PgType::Numeric], purpose, 10, &batches);
        compare(&[PgType::Numeric], purpose, 10, &batches[..1]);
        compare(&[PgType::Numeric], purpose, 10, &[vec![array(&["NaN", "", "1.5"])], vec![array(&["", "1.50"])]]);
    }
    let mut table = KeyTable::new(&[PgType::Numeric], Purpose::Groups, 10).expect("numeric");
    table.assign(&batches[0], 4).expect("one scale");
    assert!(table.assign(&batches[1], 6).is_err(), "1.50 and 1.5 would be one group of two faces");
    let fixed = KeyTable::of_keys(&[PgType::Numeric], &[array(&["1.50", "2.00"])]).expect("keys");
    assert_eq!(
        fixed.find(&[array(&["2", "1.5", "1.501", "NaN"])], 4).expect("found"),
        [1, 0, KeyTable::NONE, KeyTable::NONE]
    );
}

#[test]
fn floats_are_equal_as_postgresql_says() {
    let keys: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.5]));
    let table = KeyTable::of_keys(&[PgType::Float8], std::slice::from_ref(&keys)).expect("keys");
    assert_eq!(table.find(std::slice::from_ref(&keys), 5).expect("found"), [0, 0, 1, 1, 2]);
    let mut groups = KeyTable::new(&[PgType::Float8], Purpose::Groups, 5).expect("float8");
    assert!(groups.assign(&[keys], 5).is_err(), "0 and -0 would be one group of two faces");
}

#[test]
fn integers_of_another_width_find_their_keys() {
    let table = KeyTable::of_keys(&[PgType::Int8], &[bigints([5, 70_000])]).expect("keys");
    let narrow: ArrayRef = Arc::new(Int16Array::from(vec![5, 6]));
    assert_eq!(table.find(&[narrow], 2).expect("found"), [0, KeyTable::NONE]);
    assert_eq!(table.find(&[ints([Some(70_000), None])], 2).expect("found"), [1, KeyTable::NONE]);
}

#[test]
fn keys_that_are_settled_are_found_and_others_are_not() {
    // Too far apart for direct addressing, near enough for a bit each; then too far for that, too.
    for step in [200, 5_000] {
        let first = -10_000;
        let keys: ArrayRef = Arc::new((0..100).map(|n| first + n * step).collect::<Int64Array>());
        let mut table = KeyTable::of_keys(&[PgType::Int8], std::slice::from_ref(&keys)).expect("keys");
        let ColumnMap::Integers(map) = &table.columns[0].map else { panic!("integers") };
        assert_eq!(map.has_presence(), step == 200);
        assert_eq!(table.find(&[keys], 100).expect("found"), (0..100).collect::<Vec<_>>());
        let others = [first + 1, first - 1, first - 64, first - step, first + 100 * step, i64::MIN, i64::MAX, 0, 63];
        let others = others.map(|key| {
            if key.wrapping_sub(first).rem_euclid(step) == 0 && (first..first + 100 * step).contains(&key) {
                key + 1
            } else {
                key
            }
        });
        assert_eq!(table.find(&[bigints(others)], others.len()).expect("found"), vec![KeyTable::NONE; others.len()]);
        // What is added later is there as well.
        let more = bigints([first + 1, i64::MAX]);
        assert_eq!(table.assign(std::slice::from_ref(&more), 2).expect("assigned"), [100, 101]);
        assert_eq!(table.find(&[more], 2).expect("found"), [100, 101]);
    }
}
