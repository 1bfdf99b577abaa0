//! Which changes a kept reply outlives: single rules with the expected verdict, and random histories where every reply that is
//! said to outlive them is computed anew and compared.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::super::*;
use crate::catalog::functions::{EvalContext, EvalError};
use crate::catalog::{
    Catalog, Collation, ColumnSchema, Leaf, Partitioned, RelationEntry, RelationId, ReplicaIdentity, TableSchema,
};
use crate::change_log::RowChanges;
use crate::executor::{Limits, RowBatch, RunContext, execute, parallel};
use crate::join_cache::JoinCache;
use crate::snapshot::{Snapshot, Unions};
use crate::table::build::{CellValue, ChunkBuilder};
use crate::table::key_changes::KeyChanges;
use crate::table::{Chunk, Generation, RowAt, TableDelta, TableVersion};
use crate::types::access::value_at;
use crate::types::{FormatSettings, Lsn, Numeric, PgType, Value};
use crate::{PrepareContext, Prepared, prepare};

pub(super) const T: RelationId = RelationId(1);
pub(super) const U: RelationId = RelationId(2);
pub(super) const WHOLE: RelationId = RelationId(3);
pub(super) const LOW: RelationId = RelationId(4);
pub(super) const HIGH: RelationId = RelationId(5);

pub(super) type Row = Vec<Value>;

/// t and u: id, tenant, day, name, n, amount (which follows from n); `whole` is partitioned into `low` and `high`, the latter with its columns the other way
/// round.
pub(super) struct World {
    pub(super) catalog: Arc<Catalog>,
    /// Of each table, its versions and what led to each.
    history: HashMap<RelationId, Vec<(Arc<TableVersion>, Option<Arc<RowChanges>>)>>,
    unions: Unions,
    generation: u64,
}

fn schema(id: RelationId, name: &str, is_reversed: bool) -> Arc<TableSchema> {
    let mut columns = vec![
        ("id", PgType::Int4),
        ("tenant", PgType::Int4),
        ("day", PgType::Date),
        ("name", PgType::Text),
        ("n", PgType::Int4),
        ("amount", PgType::Numeric),
    ];
    if is_reversed {
        columns.reverse();
    }
    let key = columns.iter().position(|(name, _)| *name == "id").expect("there");
    let column = |(at, (name, pg_type)): (usize, (&str, PgType))| ColumnSchema {
        name: name.into(),
        attnum: at as i16 + 1,
        type_oid: pg_type.oid(),
        typmod: if pg_type == PgType::Numeric { ((10 << 16) | 2) + 4 } else { -1 },
        pg_type: Some(pg_type),
        not_null: at == key,
        collation: if pg_type == PgType::Text { Collation::C } else { Collation::None },
    };
    Arc::new(TableSchema {
        id,
        schema: "public".into(),
        name: name.into(),
        columns: columns.into_iter().enumerate().map(column).collect(),
        primary_key: vec![key],
        identity: ReplicaIdentity::Key(vec![key]),
    })
}

pub(super) fn row(id: i32, tenant: Option<i32>, day: i32, name: &str, n: i32) -> Row {
    let tenant = tenant.map_or(Value::Null, Value::Int4);
    let amount = Value::Numeric(Numeric::Finite { mantissa: i128::from(n) * 37 - 100, scale: 2 });
    vec![Value::Int4(id), tenant, Value::Date(day), Value::Text(name.into()), Value::Int4(n), amount]
}

impl World {
    pub(super) fn new() -> Self {
        let tables = [(T, "t", false), (U, "u", false), (LOW, "low", false), (HIGH, "high", true)];
        let mut schemas: Vec<Arc<TableSchema>> = tables.map(|(id, name, turned)| schema(id, name, turned)).to_vec();
        let whole = schema(WHOLE, "whole", false);
        let leaves =
            vec![Leaf { table: LOW, columns: (0..6).collect() }, Leaf { table: HIGH, columns: (0..6).rev().collect() }];
        let partitioned = Partitioned { schema: Arc::clone(&whole), leaves, levels: vec![WHOLE] };
        schemas.push(whole);
        let entry = |schema: &Arc<TableSchema>| (schema.name.clone(), RelationEntry::Table(Arc::clone(schema)));
        let catalog = Catalog {
            version: 1,
            schemas: HashMap::from([
                ("public".into(), schemas.iter().map(entry).collect()),
                ("pg_catalog".into(), HashMap::new()),
            ]),
            tables: schemas.iter().map(|schema| (schema.id, Arc::clone(schema))).collect(),
            partitioned: HashMap::from([(WHOLE, Arc::new(partitioned))]),
            default_collation: Some(Collation::C),
            ..Catalog::default()
        };
        let empty = |schema: &Arc<TableSchema>| {
            let version = TableVersion::empty(Arc::clone(schema), Generation(Lsn(100)));
            (schema.id, vec![(Arc::new(version), None)])
        };
        let history = schemas.iter().filter(|schema| schema.id != WHOLE).map(empty).collect();
        Self { catalog: Arc::new(catalog), history, unions: Unions::default(), generation: 100 }
    }

    /// Changes of keys are entered, as the mirror does.
    fn entering() -> Self {
        let mut world = Self::new();
        for versions in world.history.values_mut() {
            for (version, _) in versions {
                let key_changes = Some(Arc::new(KeyChanges::new(version.generation)));
                *version = Arc::new(TableVersion { key_changes, ..TableVersion::clone(version) });
            }
        }
        world
    }

    fn head(&self, table: RelationId) -> Arc<TableVersion> {
        Arc::clone(&self.history[&table].last().expect("never empty").0)
    }

    fn is_reversed(table: RelationId) -> bool {
        table == HIGH
    }

    pub(super) fn place(&self, table: RelationId, id: i32) -> Option<RowAt> {
        let key = if Self::is_reversed(table) { 5 } else { 0 };
        self.head(table).find(&[key], &[Value::Int4(id)]).first().copied()
    }

    /// One transaction: rows of these keys go, these come.
    pub(super) fn change(&mut self, table: RelationId, gone: &[i32], come: &[Row]) {
        let base = self.head(table);
        let mut delta = TableDelta::new(Arc::clone(&base));
        gone.iter().filter_map(|id| self.place(table, *id)).for_each(|at| delta.delete(at));
        if !come.is_empty() {
            delta.insert(chunk(&base.schema, come, Self::is_reversed(table)));
        }
        self.generation += 10;
        let generation = Generation(Lsn(self.generation));
        let changes = RowChanges { generation, old: delta.deleted_rows(), new: delta.inserted().to_vec() };
        let entered = Some([&changes.old[..], &changes.new[..]]);
        base.key_changes.iter().for_each(|of| of.enter(generation, entered));
        let version = Arc::new(delta.apply(generation));
        self.history.get_mut(&table).expect("known").push((version, Some(Arc::new(changes))));
    }

    fn insert(&mut self, table: RelationId, row: Row) {
        self.change(table, &[], &[row]);
    }

    fn update(&mut self, table: RelationId, row: Row) {
        let Value::Int4(id) = row[0] else { panic!("a key") };
        self.change(table, &[id], &[row]);
    }

    fn delete(&mut self, table: RelationId, id: i32) {
        self.change(table, &[id], &[]);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let tables = self.history.keys().map(|table| (*table, self.head(*table))).collect();
        let snapshot = Snapshot {
            applied: Lsn(self.generation),
            catalog: Arc::clone(&self.catalog),
            tables,
            ..Snapshot::default()
        };
        let whole = self.unions.complete(Arc::new(snapshot), &[WHOLE]).expect("both leaves are there");
        Arc::unwrap_or_clone(whole)
    }

    pub(super) fn changes_between(
        &self,
        table: RelationId,
        after: Generation,
        through: Generation,
    ) -> Option<Vec<Arc<RowChanges>>> {
        let changes = self.history[&table].iter().filter_map(|(_, changes)| changes.clone());
        Some(changes.filter(|changes| changes.generation > after && changes.generation <= through).collect())
    }

    pub(super) fn prepare(&self, sql: &str) -> Prepared {
        let context = PrepareContext {
            catalog: &self.catalog,
            settings_id: 1,
            search_path: &["pg_catalog".into(), "public".into()],
            settings: &FormatSettings::default(),
            parameter_types: &[],
        };
        prepare(sql, &context).unwrap_or_else(|reason| panic!("{sql}: {reason}"))
    }

    pub(super) fn keep(&self, prepared: &Prepared, parameters: &[Value]) -> CachedReply {
        let last = AtomicU64::new(u64::MAX);
        // What raises an error is kept by nobody, and is not asked here for more.
        let _ = self.run_telling(parameters, 1, Some(&last), |context| execute(&prepared.plan, context));
        CachedReply {
            last: last.into_inner(),
            row_description: bytes::Bytes::new(),
            rows: Pieces::default(),
            row_count: 0,
            relations: prepared.plan.relations(),
            basis: Basis::of(prepared.plan.tables.iter().map(|table| table.table), &self.snapshot()),
            catalog_version: 1,
            folds_settings: false,
            elapsed_us: 1_000,
            reads: Some(Arc::clone(&prepared.reads)),
            parameters: parameters.into(),
            keys: Keys::of(&prepared.reads.scans, parameters, &self.catalog),
            barrier: 0,
            configuration: 0,
            keep: Keep::default(),
            share: Share::default(),
            found: Found::default(),
            repeated: Repeated::default(),
            withdrawn: Withdrawn::default(),
            attachment: Arc::new(()),
        }
    }

    fn outlives(&self, kept: &CachedReply) -> Result<(), Outdated> {
        let changes = |table, after, through| self.changes_between(table, after, through);
        kept.outlives(&self.snapshot(), &changes, &FormatSettings::default())
    }

    /// Sorted; an error is an answer too.
    pub(super) fn answer(&self, prepared: &Prepared, parameters: &[Value]) -> Result<Vec<String>, String> {
        self.run(parameters, 1, |context| execute(&prepared.plan, context).map(|batches| rows_of(prepared, &batches)))
    }

    /// As several threads compute it together; None if they do not.
    pub(super) fn answer_by_several(
        &self,
        prepared: &Prepared,
        parameters: &[Value],
    ) -> Result<Option<Vec<String>>, String> {
        let rows = |batches: Option<Vec<RowBatch>>| batches.map(|batches| rows_of(prepared, &batches));
        self.run(parameters, 3, |context| parallel::execute(&prepared.plan, context).map(rows))
    }

    fn run<T>(
        &self,
        parameters: &[Value],
        threads_max: usize,
        run: impl FnOnce(&RunContext<'_>) -> Result<T, EvalError>,
    ) -> Result<T, String> {
        self.run_telling(parameters, threads_max, None, run)
    }

    fn run_telling<T>(
        &self,
        parameters: &[Value],
        threads_max: usize,
        last: Option<&AtomicU64>,
        run: impl FnOnce(&RunContext<'_>) -> Result<T, EvalError>,
    ) -> Result<T, String> {
        let context = RunContext {
            snapshot: &self.snapshot(),
            parameters,
            eval: EvalContext { settings: &FormatSettings::default(), transaction_time: None, orders: None },
            limits: &Limits { threads_max, ..Limits::default() },
            join_cache: &JoinCache::new(0),
            cancelled: &Arc::new(AtomicBool::new(false)),
            changed: None,
            builds: None,
            last,
        };
        run(&context).map_err(|error| error.to_string())
    }
}

/// The rows as text, sorted.
pub(super) fn rows_of(prepared: &Prepared, batches: &[RowBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.rows {
            let outputs = batch.columns.iter().zip(&prepared.plan.output);
            let cells = outputs.map(|(array, output)| value_at(array.as_ref(), output.expr_type.pg_type, row));
            rows.push(format!("{:?}", cells.collect::<Vec<_>>()));
        }
    }
    rows.sort();
    rows
}

fn chunk(schema: &Arc<TableSchema>, rows: &[Row], is_reversed: bool) -> Arc<Chunk> {
    let mut builder = ChunkBuilder::new(Arc::clone(schema));
    for row in rows {
        for (at, value) in row.iter().enumerate() {
            let column = if is_reversed { row.len() - 1 - at } else { at };
            builder.append(column, CellValue::Value(value.clone())).expect("a value of the column's type");
        }
        builder.end_row();
    }
    Arc::new(builder.finish())
}

/// Tenants 1 to 3, two rows each.
fn filled() -> World {
    let mut world = World::new();
    for table in [T, U] {
        for id in 1..=6 {
            world.insert(table, row(id, Some((id + 1) / 2), 100 + id, &format!("name {id}"), 10 * id));
        }
    }
    world.insert(LOW, row(1, Some(1), 1, "low", 1));
    world.insert(HIGH, row(101, Some(1), 1, "high", 1));
    world
}

/// Whether the reply to `sql` outlives the change.
fn verdict(sql: &str, change: impl FnOnce(&mut World)) -> Result<(), Outdated> {
    let mut world = filled();
    let prepared = world.prepare(sql);
    let kept = world.keep(&prepared, &[]);
    assert!(kept.is_valid_at(&world.snapshot()), "{sql}");
    let before = world.answer(&prepared, &[]);
    change(&mut world);
    let verdict = world.outlives(&kept);
    if verdict.is_ok() {
        assert_eq!(before, world.answer(&prepared, &[]), "{sql}");
        assert!(kept.is_valid_at(&world.snapshot()), "it is known to be valid there from now on: {sql}");
    }
    verdict
}

#[test]
fn a_point_read_outlives_writes_to_other_rows_and_columns() {
    let sql = "SELECT n FROM t WHERE id = 1";
    assert_eq!(verdict(sql, |world| world.update(T, row(2, Some(1), 102, "name 2", 0))), Ok(()));
    assert_eq!(verdict(sql, |world| world.insert(T, row(7, Some(1), 0, "", 0))), Ok(()));
    assert_eq!(verdict(sql, |world| world.delete(T, 2)), Ok(()));
    assert_eq!(verdict(sql, |world| world.update(T, row(1, Some(9), 0, "other", 10))), Ok(()), "columns not read");
    assert_eq!(verdict(sql, |world| world.update(T, row(1, Some(1), 101, "name 1", 11))), Err(Outdated::Rows));
    assert_eq!(verdict(sql, |world| world.delete(T, 1)), Err(Outdated::Rows));
    assert_eq!(verdict(sql, |world| world.change(T, &[1], &[row(8, Some(1), 0, "", 10)])), Err(Outdated::Rows));
    let missing = "SELECT n FROM t WHERE id = 7";
    assert_eq!(verdict(missing, |world| world.insert(T, row(8, None, 0, "", 0))), Ok(()));
    assert_eq!(verdict(missing, |world| world.insert(T, row(7, None, 0, "", 0))), Err(Outdated::Rows));
    assert_eq!(verdict("SELECT n FROM t WHERE id = NULL", |world| world.delete(T, 1)), Ok(()));
}

#[test]
fn a_change_and_its_undoing_leave_a_reply_as_it_was() {
    let sql = "SELECT n, name FROM t WHERE tenant = 1";
    let undone = |world: &mut World| {
        world.delete(T, 1);
        world.insert(T, row(1, Some(1), 5, "name 1", 10));
    };
    assert_eq!(verdict(sql, undone), Ok(()));
}

#[test]
fn a_tenants_replies_outlive_other_tenants_writes() {
    for sql in [
        "SELECT * FROM t WHERE tenant = 1 ORDER BY id",
        "SELECT count(*), sum(n) FROM t WHERE tenant = 1",
        "SELECT name, count(*) FROM t WHERE tenant IN (1, 3) GROUP BY name",
        "SELECT id FROM t WHERE tenant = 1 AND n > 5 ORDER BY n LIMIT 3",
        "SELECT t.id, u.name FROM t JOIN u ON u.id = t.id AND u.tenant = t.tenant WHERE t.tenant = 1",
        "SELECT id FROM t WHERE tenant = 1 UNION ALL SELECT id FROM u WHERE tenant = 1",
        "WITH w AS (SELECT * FROM t WHERE tenant = 1) SELECT a.id, b.n FROM w a, w b",
        "SELECT id, row_number() OVER (ORDER BY id) FROM t WHERE tenant = 1",
    ] {
        assert_eq!(verdict(sql, |world| world.update(T, row(3, Some(2), 0, "x", 1_000))), Ok(()), "{sql}");
        assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(2), 0, "x", 1_000))), Ok(()), "{sql}");
        assert_eq!(verdict(sql, |world| world.insert(T, row(9, None, 0, "x", 1_000))), Ok(()), "{sql}: NULL");
        let moved = |world: &mut World| world.update(T, row(3, Some(1), 103, "name 3", 30));
        assert_eq!(verdict(sql, moved), Err(Outdated::Rows), "{sql}: a row comes from another tenant");
        let left = |world: &mut World| world.update(T, row(1, Some(2), 101, "name 1", 10));
        assert_eq!(verdict(sql, left), Err(Outdated::Rows), "{sql}: a row goes to another tenant");
    }
    let joined = "SELECT t.id, u.name FROM t JOIN u ON u.tenant = t.tenant WHERE t.tenant = 1";
    assert_eq!(verdict(joined, |world| world.insert(U, row(9, Some(2), 0, "x", 0))), Ok(()), "an implied constant");
    assert_eq!(verdict(joined, |world| world.insert(U, row(9, Some(1), 0, "x", 0))), Err(Outdated::Rows));
}

#[test]
fn the_first_rows_outlive_what_comes_behind_them() {
    // 60, 50 and 40 are the first.
    for sql in [
        "SELECT id FROM t ORDER BY n DESC LIMIT 3",
        "SELECT name FROM t ORDER BY n DESC, id LIMIT 2 OFFSET 1",
        "SELECT id FROM t WHERE n > 5 ORDER BY n DESC NULLS LAST FETCH FIRST 3 ROWS WITH TIES",
        "SELECT t.id FROM t JOIN u ON u.id = t.id ORDER BY t.n DESC LIMIT 3",
        "SELECT n FROM (SELECT id, n FROM t) s ORDER BY n DESC LIMIT 3",
    ] {
        assert_eq!(verdict(sql, |world| world.insert(T, row(7, Some(1), 0, "x", 39))), Ok(()), "{sql}");
        assert_eq!(verdict(sql, |world| world.delete(T, 1)), Ok(()), "{sql}");
        assert_eq!(verdict(sql, |world| world.update(T, row(2, Some(1), 102, "name 2", 30))), Ok(()), "{sql}");
        let verdict = |change: fn(&mut World)| verdict(sql, change);
        assert_eq!(verdict(|world| world.insert(T, row(7, Some(1), 0, "x", 40))), Err(Outdated::Rows), "{sql}: a tie");
        assert_eq!(verdict(|world| world.insert(T, row(7, Some(1), 0, "x", 70))), Err(Outdated::Rows), "{sql}");
        assert_eq!(verdict(|world| world.delete(T, 5)), Err(Outdated::Rows), "{sql}");
        let rises = |world: &mut World| world.update(T, row(1, Some(1), 101, "name 1", 45));
        assert_eq!(verdict(rises), Err(Outdated::Rows), "{sql}");
        let falls = |world: &mut World| world.update(T, row(5, Some(3), 105, "name 5", 20));
        assert_eq!(verdict(falls), Err(Outdated::Rows), "{sql}");
    }
    // There are not as many as are wanted, or what is ordered are groups.
    for sql in [
        "SELECT id FROM t ORDER BY n DESC LIMIT 7",
        "SELECT id FROM t ORDER BY n DESC",
        "SELECT tenant, max(n) FROM t GROUP BY tenant ORDER BY max(n) DESC LIMIT 1",
        "SELECT id FROM t ORDER BY n + 1 DESC LIMIT 3",
        "SELECT DISTINCT n FROM t ORDER BY n DESC LIMIT 3",
        "SELECT id, count(*) OVER () FROM t ORDER BY n DESC LIMIT 3",
    ] {
        assert_eq!(verdict(sql, |world| world.insert(T, row(7, Some(1), 0, "x", 5))), Err(Outdated::Rows), "{sql}");
    }
    // An error of a row behind the last is PostgreSQL's answer.
    for sql in [
        "SELECT t.id, s.y FROM t JOIN (SELECT id, 10 / n AS y FROM u) s ON s.id = t.id ORDER BY t.n DESC LIMIT 3",
        "SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE 10 / n > -1) ORDER BY n DESC LIMIT 3",
        "SELECT id, 10 / n FROM t ORDER BY n DESC LIMIT 3",
        "SELECT id FROM t ORDER BY n DESC, 10 / n LIMIT 3",
    ] {
        let behind = |world: &mut World| world.insert(T, row(7, Some(1), 0, "x", 5));
        assert_eq!(verdict(sql, behind), Err(Outdated::Rows), "{sql}");
    }
    let joined = "SELECT t.id, u.name FROM t JOIN u ON u.id = t.id ORDER BY t.n DESC LIMIT 3";
    assert_eq!(verdict(joined, |world| world.delete(U, 6)), Err(Outdated::Rows), "what they are joined with counts");
}

#[test]
fn a_range_of_days_outlives_todays_inserts() {
    let sql = "SELECT day, sum(n) FROM t WHERE day >= DATE '2000-04-01' AND day < DATE '2000-04-20' GROUP BY day";
    // Days count from 2000-01-01: 2000-04-11 is the 101st.
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(1), 400, "x", 1))), Ok(()));
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(1), 103, "x", 1))), Err(Outdated::Rows));
    assert_eq!(verdict(sql, |world| world.update(T, row(6, Some(1), 400, "x", 1))), Err(Outdated::Rows));
}

#[test]
fn a_count_outlives_updates_of_what_it_does_not_read() {
    let sql = "SELECT count(*) FROM t WHERE tenant = 1";
    assert_eq!(verdict(sql, |world| world.update(T, row(1, Some(1), 0, "x", 999))), Ok(()));
    assert_eq!(verdict(sql, |world| world.change(T, &[1], &[row(9, Some(1), 0, "", 0)])), Ok(()));
    assert_eq!(verdict(sql, |world| world.delete(T, 1)), Err(Outdated::Rows));
}

#[test]
fn what_cannot_be_told_counts_as_a_change() {
    // The value of the subquery is not kept: every row may pass.
    let sql = "SELECT id FROM t WHERE n > (SELECT max(n) FROM u WHERE tenant = 1)";
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(2), 0, "x", -5))), Err(Outdated::Rows));
    assert_eq!(verdict(sql, |world| world.update(T, row(6, Some(3), 106, "name 6", -5))), Err(Outdated::Rows));
    assert_eq!(verdict(sql, |world| world.insert(U, row(9, Some(2), 0, "x", 500))), Ok(()));
    assert_eq!(verdict(sql, |world| world.insert(U, row(9, Some(1), 0, "x", 500))), Err(Outdated::Rows));
    // PostgreSQL would raise an error for this row, whatever its tenant: the division costs less, so it comes first.
    let sql = "SELECT id FROM t WHERE 10 / n >= 0 AND tenant + 1 - 1 = 1";
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(2), 0, "x", 0))), Err(Outdated::Rows));
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(2), 0, "x", 1))), Ok(()));
    let sql = "SELECT id FROM t WHERE 10 / n >= 0 AND tenant = 1";
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(2), 0, "x", 0))), Ok(()), "the division comes second");
    // So with a value that is not kept: nobody knows for which rows it raises one.
    let sql = "SELECT id FROM t WHERE 10 / n >= (SELECT min(id) FROM u) AND tenant + 0 = 1";
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(2), 0, "x", 0))), Err(Outdated::Rows));
    let sql = "SELECT id FROM t WHERE 10 / n >= (SELECT min(id) FROM u) AND tenant = 1";
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(2), 0, "x", 0))), Ok(()), "the division comes second");
    // Anti-joins and outer joins: the absence of rows is read, too.
    let sql = "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.tenant = 2)";
    assert_eq!(verdict(sql, |world| world.delete(U, 1)), Ok(()));
    assert_eq!(verdict(sql, |world| world.delete(U, 3)), Err(Outdated::Rows));
    let sql = "SELECT t.id, u.n FROM t LEFT JOIN u ON u.id = t.id AND u.tenant = 2 WHERE t.tenant = 1";
    assert_eq!(verdict(sql, |world| world.insert(U, row(9, Some(2), 0, "", 0))), Err(Outdated::Rows));
    assert_eq!(verdict(sql, |world| world.insert(U, row(9, Some(1), 0, "", 0))), Ok(()));
}

#[test]
fn a_list_behind_what_may_raise_an_error_names_no_keys() {
    let world = filled();
    let names_keys = |sql: &str| !world.keep(&world.prepare(sql), &[]).keys.is_empty();
    // A list of five costs more than the division, which PostgreSQL computes first, whatever the tenant.
    let sql = "SELECT id FROM t WHERE 10 / n >= 0 AND tenant IN (1, 2, 3, 4, 5)";
    assert!(!names_keys(sql));
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(9), 0, "x", 0))), Err(Outdated::Rows));
    assert!(names_keys("SELECT id FROM t WHERE 10 / n >= 0 AND tenant IN (1, 2)"), "the list comes first");
    assert!(names_keys("SELECT id FROM t WHERE 10 / n >= 0 AND id = 1"));
    assert!(
        names_keys("SELECT id FROM t WHERE n > 3::bigint AND tenant = 1"),
        "integers are compared whatever their width"
    );
}

#[test]
fn partitions_are_read_by_their_own_columns() {
    let sql = "SELECT name, n FROM whole WHERE tenant = 1";
    for table in [LOW, HIGH] {
        let id = if table == LOW { 2 } else { 102 };
        assert_eq!(verdict(sql, |world| world.insert(table, row(id, Some(2), 0, "x", 1))), Ok(()));
        assert_eq!(verdict(sql, |world| world.insert(table, row(id, Some(1), 0, "x", 1))), Err(Outdated::Rows));
        assert_eq!(verdict(sql, |world| world.update(table, row(id - 1, Some(1), 9, "x", 1))), Err(Outdated::Rows));
    }
    assert_eq!(verdict(sql, |world| world.update(LOW, row(1, Some(1), 77, "low", 1))), Ok(()), "a day is not read");
    assert_eq!(verdict(sql, |world| world.update(HIGH, row(101, Some(1), 77, "high", 1))), Ok(()));
    assert_eq!(verdict(sql, |world| world.insert(T, row(9, Some(1), 0, "x", 1))), Ok(()), "another table");
}

#[test]
fn without_a_complete_log_nothing_outlives() {
    let mut world = filled();
    let prepared = world.prepare("SELECT n FROM t WHERE id = 1");
    let kept = world.keep(&prepared, &[]);
    let before = world.snapshot();
    world.insert(T, row(9, None, 0, "x", 1));
    let settings = FormatSettings::default();
    let ended = |_, _, _| None;
    assert_eq!(kept.outlives(&world.snapshot(), &ended, &settings), Err(Outdated::LogEnded));
    let nothing = |_, _, _| Some(Vec::new());
    assert_eq!(kept.outlives(&world.snapshot(), &nothing, &settings), Err(Outdated::LogEnded), "another log");
    assert_eq!(world.outlives(&kept), Ok(()));
    let changes = |table, after, through| world.changes_between(table, after, through);
    assert_eq!(kept.outlives(&before, &changes, &settings), Err(Outdated::Earlier));
    let unread = CachedReply { reads: None, ..world.keep(&prepared, &[]) };
    world.insert(T, row(10, None, 0, "x", 1));
    assert_eq!(world.outlives(&unread), Err(Outdated::Unread));
    let slow = CachedReply { elapsed_us: 0, ..world.keep(&prepared, &[]) };
    (0..300).for_each(|id| world.insert(T, row(100 + id, None, 0, "x", 1)));
    assert_eq!(world.outlives(&slow), Err(Outdated::TooManyChanges));
}

#[test]
fn a_point_read_outlives_any_number_of_writes_to_another_key() {
    for sql in [
        "SELECT n FROM t WHERE id = 1",
        "SELECT n FROM t WHERE id IN (1, 2) AND n > 0",
        "SELECT id FROM t WHERE name = 'x'",
    ] {
        // One key in some thousand shares the place of the one that is read, another in every process.
        let untouched = (0..5).filter(|other| is_untouched_by(sql, *other)).count();
        assert!(untouched >= 3, "{sql}: {untouched} of 5");
    }
}

/// Whether the reply outlives 2,000 writes to one other key without a look at the log; it never does one to its own.
fn is_untouched_by(sql: &str, other: i32) -> bool {
    let other = row(1_000 + other, None, 0, &format!("other {other}"), 1);
    let mut world = World::entering();
    world.insert(T, row(1, Some(1), 0, "x", 1));
    let prepared = world.prepare(sql);
    let kept = CachedReply { elapsed_us: 0, ..world.keep(&prepared, &[]) };
    let unread = CachedReply { elapsed_us: 0, keys: Keys::default(), ..world.keep(&prepared, &[]) };
    assert!(!kept.keys.is_empty(), "{sql}");
    world.insert(T, other.clone());
    assert!(!kept.is_untouched_at(&world.snapshot()), "nobody has asked by this column before: {sql}");
    assert_eq!(world.outlives(&kept), Ok(()), "by the log: {sql}");
    (0..2_000).for_each(|_| world.update(T, other.clone()));
    assert_eq!(world.outlives(&unread), Err(Outdated::TooManyChanges), "{sql}");
    let is_untouched = kept.is_untouched_at(&world.snapshot());
    assert_eq!(kept.is_valid_at(&world.snapshot()), is_untouched, "it is known from now on: {sql}");
    world.update(T, row(1, Some(1), 0, "x", 2));
    assert!(!kept.is_untouched_at(&world.snapshot()), "{sql}");
    let gone = CachedReply { elapsed_us: 0, ..world.keep(&prepared, &[]) };
    world.delete(T, 1);
    assert!(!gone.is_untouched_at(&world.snapshot()) && world.outlives(&gone).is_err(), "{sql}");
    is_untouched
}

/// A generator of its own, so that a run can be had again.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: i32) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as i32
    }
}

const STATEMENTS: [&str; 32] = [
    "SELECT n FROM t WHERE id = $1",
    "SELECT * FROM t WHERE tenant = $1",
    "SELECT id, n + 1 FROM t WHERE tenant = $1 AND n BETWEEN 3 AND 9",
    "SELECT count(*) FROM t WHERE tenant = $1",
    "SELECT name, sum(n), min(day) FROM t WHERE tenant = $1 GROUP BY name HAVING count(*) > 1",
    "SELECT id FROM t WHERE tenant IN (1, 4) AND name = 'b'",
    "SELECT id FROM t WHERE name IN ('a', 'c') AND tenant <> $1",
    "SELECT id FROM t WHERE tenant IS NULL OR n = $1",
    "SELECT id FROM t WHERE NOT (tenant = $1)",
    "SELECT id FROM t WHERE tenant IS DISTINCT FROM $1 AND name LIKE 'a%'",
    "SELECT id FROM t WHERE CASE WHEN tenant = $1 THEN n > 4 ELSE false END",
    "SELECT id FROM t WHERE day >= DATE '2000-01-04' AND day < DATE '2000-01-07' AND tenant = $1",
    "SELECT t.id, u.n FROM t JOIN u ON u.id = t.id WHERE t.tenant = $1 AND u.tenant = 2",
    "SELECT t.id, u.n FROM t LEFT JOIN u ON u.id = t.id AND u.tenant = 2 WHERE t.tenant = $1",
    "SELECT id FROM t WHERE tenant = $1 AND EXISTS (SELECT 1 FROM u WHERE u.tenant = t.tenant AND u.n > 5)",
    "SELECT id FROM t WHERE tenant = $1 AND id NOT IN (SELECT id FROM u WHERE tenant = 3)",
    "SELECT id FROM t WHERE tenant = $1 AND n > (SELECT avg(n) FROM u WHERE tenant = 2)",
    "SELECT id FROM t WHERE tenant = $1 UNION SELECT id FROM u WHERE tenant = $1",
    "SELECT id, rank() OVER (PARTITION BY name ORDER BY n) FROM t WHERE tenant = $1",
    "WITH w AS (SELECT * FROM t WHERE tenant = $1) SELECT a.id FROM w a JOIN w b ON a.n = b.n",
    "SELECT name, n FROM whole WHERE tenant = $1",
    "SELECT id, n FROM low WHERE tenant = $1 UNION ALL SELECT id, n FROM whole WHERE n > 3",
    "SELECT id, n FROM t WHERE id = $1 UNION ALL SELECT n, id FROM t WHERE tenant = 2",
    "SELECT id, n FROM t WHERE id IN ($1, 7) AND tenant < 5",
    "SELECT w.id, t.n FROM whole w JOIN t ON t.id = w.n WHERE w.tenant = $1",
    "SELECT id, name FROM t ORDER BY n DESC, id LIMIT 3",
    "SELECT id, name FROM t WHERE tenant < $1 ORDER BY n, id LIMIT 2 OFFSET 1",
    "SELECT id FROM t ORDER BY tenant NULLS FIRST, day, id LIMIT 5",
    "SELECT id FROM t ORDER BY tenant DESC NULLS LAST FETCH FIRST 3 ROWS WITH TIES",
    "SELECT t.id, u.name FROM t JOIN u ON u.id = t.id ORDER BY t.day, t.id LIMIT 4",
    "SELECT t.id, u.name FROM t LEFT JOIN u ON u.id = t.id AND u.n > 3 ORDER BY t.n DESC, t.id LIMIT 4",
    "SELECT id, n FROM whole WHERE tenant <> $1 ORDER BY day DESC, id, n LIMIT 6",
];

#[test]
fn whatever_is_said_to_outlive_random_changes_is_the_answer_after_them() {
    let mut dice = Dice(20_261_121);
    let mut verdicts: HashMap<&str, (usize, usize)> = HashMap::new();
    for round in 0..80 {
        let mut world = if round % 2 == 0 { World::entering() } else { World::new() };
        let rows = |dice: &mut Dice, id: i32| {
            let tenant = Some(dice.below(6)).filter(|tenant| *tenant > 0);
            row(id, tenant, dice.below(10), ["a", "b", "c", "ab"][dice.below(4) as usize], dice.below(12))
        };
        for table in [T, U, LOW, HIGH] {
            let first: Vec<Row> = (0..20).map(|id| rows(&mut dice, id)).collect();
            world.change(table, &[], &first);
        }
        let kept: Vec<_> = STATEMENTS
            .iter()
            .map(|sql| {
                let prepared = world.prepare(sql);
                let parameters: Vec<Value> =
                    prepared.plan.parameters.iter().map(|_| Value::Int4(1 + dice.below(5))).collect();
                (*sql, world.keep(&prepared, &parameters), world.answer(&prepared, &parameters), prepared, parameters)
            })
            .collect();
        for _ in 0..12 {
            let table = [T, T, U, LOW, HIGH][dice.below(5) as usize];
            let gone: Vec<i32> = (0..dice.below(3))
                .map(|_| dice.below(24))
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect();
            let come: Vec<i32> = gone.iter().copied().filter(|_| dice.below(3) > 0).collect();
            let fresh = (0..24).find(|id| world.place(table, *id).is_none()).filter(|_| dice.below(2) == 0);
            let come: Vec<Row> = come.into_iter().chain(fresh).map(|id| rows(&mut dice, id)).collect();
            world.change(table, &gone, &come);
            for (sql, reply, answer, prepared, parameters) in &kept {
                let (survived, ended) = verdicts.entry(sql).or_default();
                if world.outlives(reply).is_ok() {
                    *survived += 1;
                    assert_eq!(*answer, world.answer(prepared, parameters), "{sql} with {parameters:?}");
                    assert!(reply.is_valid_at(&world.snapshot()), "{sql}");
                } else {
                    *ended += 1;
                }
            }
        }
    }
    for sql in STATEMENTS {
        let (survived, ended) = verdicts[sql];
        assert!(survived > 20 && ended > 20, "{sql}: {survived} survived, {ended} did not: nothing was tested");
    }
}
