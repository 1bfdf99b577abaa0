//! Tests of `table`.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::catalog::{Collation, ColumnSchema, RelationId, ReplicaIdentity};
use crate::types::access::value_at;
use crate::types::{Interval, Numeric};

/// Columns of these types, named c0, c1, ...; None is a column that is not mirrored.
pub(super) fn schema(types: &[Option<PgType>]) -> Arc<TableSchema> {
    let column = |(number, pg_type): (usize, &Option<PgType>)| ColumnSchema {
        name: format!("c{number}").into(),
        attnum: number as i16 + 1,
        type_oid: pg_type.map_or(9_999, PgType::oid),
        typmod: -1,
        pg_type: *pg_type,
        not_null: false,
        collation: Collation::None,
    };
    Arc::new(TableSchema {
        id: RelationId(1),
        schema: "public".into(),
        name: "t".into(),
        columns: types.iter().enumerate().map(column).collect(),
        primary_key: Vec::new(),
        identity: ReplicaIdentity::Full,
    })
}

fn chunk(schema: &Arc<TableSchema>, rows: &[Vec<Value>]) -> Arc<Chunk> {
    let mut builder = build::ChunkBuilder::new(Arc::clone(schema));
    for row in rows {
        for (column, value) in row.iter().enumerate() {
            builder.append(column, build::CellValue::Value(value.clone())).expect("a value of the column's type");
        }
        builder.end_row();
    }
    Arc::new(builder.finish())
}

fn table(schema: &Arc<TableSchema>, chunks: &[&[Vec<Value>]]) -> Arc<TableVersion> {
    let chunks = chunks.iter().map(|rows| chunk(schema, rows));
    Arc::new(TableVersion::from_chunks(Arc::clone(schema), chunks, Generation::default()))
}

fn rows(version: &TableVersion) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for chunk in version.chunks.iter() {
        for row in (0..chunk.chunk.rows).filter(|row| chunk.is_alive(*row)) {
            let value = |column: usize| match chunk.chunk.pg_type(column) {
                Some(pg_type) => value_at(chunk.chunk.columns[column].as_ref(), pg_type, row),
                None => Value::Null,
            };
            rows.push((0..version.schema.columns.len()).map(value).collect());
        }
    }
    assert_eq!(rows.len(), version.rows);
    rows
}

fn int(value: i32) -> Value {
    Value::Int4(value)
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

fn numeric(mantissa: i128, scale: u16) -> Value {
    Value::Numeric(Numeric::Finite { mantissa, scale })
}

/// A chunk of one column that is large enough to be indexed: `value` at row 20, NULL at 21, fillers around.
fn around(pg_type: PgType, value: Value, filler: impl Fn(i32) -> Value) -> Arc<TableVersion> {
    let mut values: Vec<Vec<Value>> = (0..40).map(|number| vec![filler(number)]).collect();
    values[20] = vec![value];
    values[21] = vec![Value::Null];
    table(&schema(&[Some(pg_type)]), &[&values])
}

#[test]
fn find_uses_postgresql_equality_of_each_type() {
    let at = vec![RowAt { chunk: 0, row: 20 }];
    let numerics = around(PgType::Numeric, numeric(150, 2), |n| numeric(i128::from(n), 0));
    assert_eq!(numerics.find(&[0], &[numeric(15, 1)]), at);
    assert_eq!(numerics.find(&[0], &[numeric(1500, 3)]), at);
    assert_eq!(numerics.find(&[0], &[numeric(3000, 2)]), vec![RowAt { chunk: 0, row: 30 }]);

    let floats = around(PgType::Float8, Value::Float8(-0.0), |n| Value::Float8(f64::from(n) + 1.0));
    assert_eq!(floats.find(&[0], &[Value::Float8(0.0)]), at);
    let floats = around(PgType::Float8, Value::Float8(f64::NAN), |n| Value::Float8(f64::from(n)));
    assert_eq!(floats.find(&[0], &[Value::Float8(-f64::NAN)]), at);

    let padded = around(PgType::Bpchar, text("ab  "), |n| text(&format!("x{n}")));
    assert_eq!(padded.find(&[0], &[text("ab")]), at);
    let plain = around(PgType::Text, text("ab  "), |n| text(&format!("x{n}")));
    assert_eq!(plain.find(&[0], &[text("ab")]), vec![]);
    assert_eq!(plain.find(&[0], &[text("ab  ")]), at);

    let month = Value::Interval(Interval { months: 1, days: 0, microseconds: 0 });
    let days = Value::Interval(Interval { months: 0, days: 29, microseconds: 86_400_000_000 });
    let intervals = around(PgType::Interval, month, |n| {
        Value::Interval(Interval { months: 0, days: 0, microseconds: i64::from(n) })
    });
    assert_eq!(intervals.find(&[0], &[days]), at);

    assert_eq!(floats.find(&[0], &[Value::Null]), vec![], "NULL equals nothing");
}

#[test]
fn zones_bound_each_type_and_ignore_nulls() {
    let zone = |version: &TableVersion| version.chunks[0].chunk.zone(0).cloned();
    let of = |min, max, nulls| Some(Zone { min, max, nulls });
    assert_eq!(zone(&around(PgType::Int4, int(-7), int)), of(int(-7), int(39), 1));
    let numbers = around(PgType::Numeric, numeric(-5, 1), |n| numeric(i128::from(n) * 10, 1));
    assert_eq!(zone(&numbers), of(numeric(-5, 1), numeric(390, 1), 1));
    let words = around(PgType::Text, text("zebra"), |n| text(&format!("a{n:02}")));
    assert_eq!(zone(&words), of(text("a00"), text("zebra"), 1));
    let floats = around(PgType::Float8, Value::Float8(f64::NAN), |n| Value::Float8(f64::from(n)));
    let Some(Zone { min: Value::Float8(0.0), max: Value::Float8(max), nulls: 1 }) = zone(&floats) else {
        panic!("floats are ordered")
    };
    assert!(max.is_nan(), "NaN is the greatest");
    let documents = around(PgType::Jsonb, text("1"), |_| text("{}"));
    assert_eq!(zone(&documents), None);
    let nothing = table(&schema(&[Some(PgType::Int4)]), &[&[vec![Value::Null], vec![Value::Null]]]);
    assert_eq!(zone(&nothing), of(Value::Null, Value::Null, 2));
    assert_eq!(nothing.find(&[0], &[int(1)]), vec![]);
}

#[test]
fn an_unmirrored_column_is_null_and_cannot_be_found_by() {
    let schema = schema(&[Some(PgType::Int4), None]);
    let version = table(&schema, &[&[vec![int(1), text("ignored")]]]);
    assert_eq!(rows(&version), vec![vec![int(1), Value::Null]]);
    assert_eq!(version.find(&[1], &[text("ignored")]), vec![]);
    assert_eq!(mirrored_columns(&schema), vec![0]);
}

#[test]
fn many_equal_keys_are_indexed_in_linear_time() {
    let schema = schema(&[Some(PgType::Text)]);
    let same = vec![vec![text("same")]; CHUNK_ROWS];
    let version = table(&schema, &[&same]);
    assert_eq!(version.find(&[0], &[text("same")]).len(), CHUNK_ROWS);
    assert_eq!(version.find(&[0], &[text("other")]), vec![]);
}

#[test]
fn rows_below_a_bound_are_counted_where_a_column_ascends() {
    let schema = schema(&[Some(PgType::Int4), Some(PgType::Int4), Some(PgType::Text)]);
    let values: Vec<_> = (0..100).map(|n| vec![int(n / 2 * 3), int(n % 7), text("t")]).collect();
    let chunk = chunk(&schema, &values);
    assert_eq!([0, 1, 2].map(|column| chunk.is_ascending(column)), [true, false, false]);
    for bound in -4..160_i64 {
        let below = |with_equal: bool| {
            let is_below = |n: &i64| n / 2 * 3 < bound || with_equal && n / 2 * 3 == bound;
            (0..100).filter(is_below).count()
        };
        assert_eq!(chunk.rows_below(0, bound, false), below(false));
        assert_eq!(chunk.rows_below(0, bound, true), below(true));
    }
    assert_eq!(chunk.ordinal_at(0, 99), Some(147));
}

#[test]
fn what_expressions_give_is_computed_once_for_few_of_them() {
    let schema = schema(&[Some(PgType::Text)]);
    let values: Vec<_> = (0..500).map(|n| vec![text(&format!("v{}", n % 250))]).collect();
    let (chunk, other) = (chunk(&schema, &values), chunk(&schema, &values));
    let computed = std::cell::Cell::new(0);
    let find = |name: &str, value: &str| {
        let compute = || {
            computed.set(computed.get() + 1);
            Ok::<_, String>(Some(chunk.columns[0].clone()))
        };
        chunk.rows_by_computed(name, (&text(value), PgType::Text), compute).expect("has no error")
    };
    let before = chunk.bytes();
    assert!(find("a", "v7").is_some_and(|rows| rows.contains(&7) && rows.contains(&257) && rows.len() < 20));
    assert!(find("a", "none").is_some_and(|rows| rows.len() < 20) && computed.get() == 1);
    assert!(chunk.bytes() > before);
    assert!(["b", "c", "d"].into_iter().all(|name| find(name, "v1").is_some()));
    assert_eq!((find("e", "v1"), computed.get()), (None, 4));
    let fails = chunk.rows_by_computed("a", (&text("v1"), PgType::Text), || Err("is not computed again"));
    assert!(fails.is_ok_and(|rows| rows.is_some()));
    let not_kept = other.rows_by_computed("a", (&text("v1"), PgType::Text), || Ok::<_, String>(None));
    assert_eq!((not_kept, other.bytes()), (Ok(None), before));
}

#[test]
fn single_row_changes_keep_the_number_of_chunks_logarithmic() {
    let schema = schema(&[Some(PgType::Int4), Some(PgType::Text)]);
    let base: Vec<_> = (0..1_000).map(|n| vec![int(n), text("base")]).collect();
    let mut version = table(&schema, &[&base]);
    for number in 1_000..3_000 {
        let mut delta = TableDelta::new(Arc::clone(&version));
        delta.insert(chunk(&schema, &[vec![int(number), text("new")]]));
        version = Arc::new(delta.apply(Generation::default()));
        assert!(version.chunks.len() <= 12, "{} chunks after {number} rows", version.chunks.len());
    }
    let keys: Vec<i32> = rows(&version)
        .iter()
        .map(|row| match row[0] {
            Value::Int4(key) => key,
            _ => panic!("not an integer"),
        })
        .collect();
    assert_eq!(keys, (0..3_000).collect::<Vec<_>>(), "in commit order");
}

#[test]
fn mostly_dead_chunks_are_rewritten_and_empty_ones_dropped() {
    let schema = schema(&[Some(PgType::Int4)]);
    let ranges: Vec<Vec<_>> =
        (0..3).map(|part| (part * 100..part * 100 + 100).map(|n| vec![int(n)]).collect()).collect();
    let mut version = table(&schema, &[&ranges[0], &ranges[1], &ranges[2]]);
    for number in 100..180 {
        let mut delta = TableDelta::new(Arc::clone(&version));
        let at = delta.find_one(&[0], &[int(number)]).expect("present");
        delta.delete(at);
        assert_eq!(delta.find_one(&[0], &[int(number)]), None);
        version = Arc::new(delta.apply(Generation::default()));
    }
    let stored: usize = version.chunks.iter().map(|chunk| chunk.chunk.rows).sum();
    assert!(stored <= 2 * version.rows, "{stored} stored for {} alive", version.rows);
    let expected: Vec<Vec<Value>> = (0..100).chain(180..300).map(|n| vec![int(n)]).collect();
    assert_eq!(rows(&version), expected);

    let mut delta = TableDelta::new(Arc::clone(&version));
    for number in (0..100).chain(180..300) {
        let at = delta.find_one(&[0], &[int(number)]).expect("present");
        delta.delete(at);
    }
    assert_eq!(delta.deleted_rows().iter().map(|chunk| chunk.rows).sum::<usize>(), 220);
    let empty = delta.apply(Generation::default());
    assert_eq!((empty.rows, empty.chunks.len()), (0, 0));
}

#[test]
fn copied_rows_come_back_range_by_range() {
    let schema = schema(&[Some(PgType::Int4), None, Some(PgType::Text)]);
    let mut first = TableBuilder::new(Arc::clone(&schema));
    let mut second = TableBuilder::new(Arc::clone(&schema));
    second.append_copy_row([Some(&3i32.to_be_bytes()[..]), None]).expect("a row");
    first.append_copy_row([Some(&1i32.to_be_bytes()[..]), Some(&b"one"[..])]).expect("a row");
    first.append_copy_row([Some(&2i32.to_be_bytes()[..]), Some(&b"two"[..])]).expect("a row");
    assert!(second.append_copy_row([None]).is_err(), "too few cells");
    assert!(TableBuilder::new(Arc::clone(&schema)).append_copy_row([Some(&b"abc"[..]), None]).is_err(), "no int4");
    assert_eq!((first.rows(), second.rows()), (2, 1));
    let version = TableVersion::of_ranges(schema, [first, second]);
    let row = |key, word: Option<&str>| vec![int(key), Value::Null, word.map_or(Value::Null, text)];
    assert_eq!(rows(&version), vec![row(1, Some("one")), row(2, Some("two")), row(3, None)]);
}

/// Each by itself it is found behind those that are deleted by then, not past all of them.
#[test]
fn many_identical_rows_are_deleted_in_linear_time() {
    let schema = schema(&[Some(PgType::Int4)]);
    let rows_of: Vec<Vec<Value>> = (0..40_000).map(|number| vec![int(number % 2)]).collect();
    let version = table(&schema, &[&rows_of, &rows_of, &rows_of]);
    let mut delta = TableDelta::new(version);
    for number in 2..120_000 {
        let at = delta.find_identical(&[0], vec![int(number % 2)]).expect("there are more");
        delta.delete(at);
    }
    assert_eq!(rows(&delta.apply(Generation::default())), [[int(0)], [int(1)]]);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<(Option<i32>, u8)>),
    /// Positions among the alive rows, modulo.
    Delete(Vec<usize>),
    Truncate,
}

fn any_step() -> impl Strategy<Value = Step> {
    let row = (proptest::option::weighted(0.9, 0..30i32), 0..6u8);
    prop_oneof![
        6 => proptest::collection::vec(row, 0..60).prop_map(Step::Insert),
        6 => proptest::collection::vec(any::<usize>(), 0..40).prop_map(Step::Delete),
        1 => Just(Step::Truncate),
    ]
}

proptest! {
    /// Every version of a random history holds the model's rows, in order, and finds them by key; old versions stay.
    #[test]
    fn versions_follow_a_model(steps in proptest::collection::vec(any_step(), 1..25)) {
        let schema = schema(&[Some(PgType::Int4), Some(PgType::Text)]);
        let mut versions = vec![(table(&schema, &[]), Vec::<Vec<Value>>::new())];
        for step in steps {
            let (version, mut model) = versions.last().expect("the empty table").clone();
            let mut delta = TableDelta::new(version);
            match step {
                Step::Insert(new) => {
                    let new: Vec<_> = new
                        .iter()
                        .map(|(key, word)| vec![key.map_or(Value::Null, int), text(&"w".repeat(usize::from(*word)))])
                        .collect();
                    delta.insert(chunk(&schema, &new));
                    model.extend(new);
                }
                Step::Delete(picks) => {
                    for pick in picks {
                        if model.is_empty() { break }
                        let values = model[pick % model.len()].clone();
                        let at = delta.find_identical(&[0, 1], values.clone()).expect("the model has it");
                        delta.delete(at);
                        // The first of several equal rows is found.
                        let first = model.iter().position(|row| *row == values).expect("it has");
                        model.remove(first);
                    }
                }
                Step::Truncate => {
                    delta.truncate();
                    model.clear();
                }
            }
            let next = Arc::new(delta.apply(Generation::default()));
            versions.push((next, model));
        }
        for (version, model) in &versions {
            prop_assert_eq!(&rows(version), model);
            for key in -1..30 {
                let expected = model.iter().filter(|row| row[0] == int(key)).count();
                prop_assert_eq!(version.find(&[0], &[int(key)]).len(), expected);
            }
            for word in 0..7 {
                let word = text(&"w".repeat(word));
                let expected = model.iter().filter(|row| row[1] == word && row[0] == int(3)).count();
                prop_assert_eq!(version.find(&[1, 0], &[word, int(3)]).len(), expected);
            }
        }
    }
}

#[test]
fn a_list_finds_each_row_once_and_ends_where_it_is_told_to() {
    let schema = schema(&[Some(PgType::Int4), Some(PgType::Text)]);
    let row = |n: i32| vec![Value::Int4(if n < 600 { 0 } else { n }), Value::Text(format!("t{}", n % 3).into())];
    let halves: [Vec<Vec<Value>>; 2] = [(0..500).map(row).collect(), (500..1_000).map(row).collect()];
    let version = table(&schema, &[&halves[0], &halves[1]]);
    let (zero, some, none, text) = (Value::Int4(0), Value::Int4(700), Value::Int4(-1), Value::Text("t1".into()));
    let all = |keys: &[(usize, &Value)]| {
        let found = version.find_each(keys, |_| Ok::<_, ()>(true));
        found.expect("no error").expect("it goes on")
    };
    assert_eq!(all(&[(0, &some), (0, &none), (0, &some)]), version.find(&[0], std::slice::from_ref(&some)));
    assert_eq!(all(&[(0, &Value::Null), (0, &none)]), []);
    let mut by_both = all(&[(0, &some), (1, &text), (1, &text)]);
    by_both.sort_unstable();
    by_both.dedup();
    assert_eq!(by_both.len(), 333 + usize::from(700 % 3 != 1));
    // The first value has more rows than are wanted: nothing is looked for after it, however often it is named.
    let repeated: Vec<(usize, &Value)> = (0..1_000).map(|_| (0, &zero)).chain([(0, &some)]).collect();
    let mut most = 0;
    let found = version.find_each(&repeated, |found| {
        most = most.max(found);
        Ok::<_, ()>(found <= 50)
    });
    assert_eq!(found, Ok(None));
    assert!(most <= 501, "{most}");
    assert_eq!(version.find_each(&repeated, |_| Err("cancelled")), Err("cancelled"));
}
