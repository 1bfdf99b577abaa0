//! [`Marks`]: the barrier that readers need since writes through this freshet were acknowledged, by table and by key.
//!
//! A mark is the number of a barrier that had not been sent when the write was acknowledged; whoever reads what may have been
//! written needs that one or a later one. Marks are never taken back: with the next barrier nobody has to wait for them.
//! They are kept in a fixed number of places, and what shares one waits for each other's writes.
//!
//! A write that is confined to keys of a column (`UPDATE t SET v = 1 WHERE id = 5`) marks those keys only, once readers have
//! asked by that column. Readers of other keys of it then need not wait; readers of the whole table do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use freshet_engine::catalog::RelationId;
use freshet_engine::planted::{Bug, is_planted};
use freshet_engine::result_cache::Keys;
use freshet_engine::types::KeyHash;
use parking_lot::Mutex;

use crate::replication::written::Touched;

/// Places of tables; a power of two.
const TABLE_PLACES: usize = 256;
/// Places of keys. Marks of the last few milliseconds count, so that few are shared.
const KEY_PLACES: usize = 1 << 13;
/// Columns by which the tables of one place are told apart.
const COLUMNS_MAX: usize = 8;
/// A column that nobody has asked by while so many barriers were sent goes for another. Else what is asked by in turn would drive out each
/// other, and nobody would be told apart.
const UNUSED_FOR: u64 = 4_096;

#[derive(Debug)]
pub(super) struct Marks {
    /// Of writes to relations that are not known.
    rows: AtomicU64,
    tables: Box<[TableMarks]>,
    keys: Box<[AtomicU64]>,
    /// The highest of all.
    newest: AtomicU64,
}

/// Of the tables that share a place.
#[derive(Debug, Default)]
struct TableMarks {
    /// Of all writes.
    any: AtomicU64,
    columns: ArcSwap<Vec<Arc<ColumnMarks>>>,
    /// Held while a write is entered, and while columns come and go: each write is either before a column's first mark or
    /// entered for it.
    entering: Mutex<()>,
}

/// A column that readers have asked by.
#[derive(Debug)]
struct ColumnMarks {
    table: RelationId,
    attnum: i16,
    /// Of writes that are not confined to keys of this column.
    others: AtomicU64,
    /// The mark of the table when it was last asked by.
    asked: AtomicU64,
}

impl Default for Marks {
    fn default() -> Self {
        let places = |count: usize| std::iter::repeat_with(AtomicU64::default).take(count).collect();
        Self {
            rows: AtomicU64::default(),
            tables: std::iter::repeat_with(TableMarks::default).take(TABLE_PLACES).collect(),
            keys: places(KEY_PLACES),
            newest: AtomicU64::default(),
        }
    }
}

impl Marks {
    /// A write to relations that are not known needs this barrier.
    pub(super) fn note_rows(&self, number: u64) {
        self.rows.fetch_max(number, Ordering::SeqCst);
        self.newest.fetch_max(number, Ordering::SeqCst);
    }

    /// Likewise a write to one table.
    pub(super) fn note_table(&self, touched: &Touched, number: u64) {
        let table = self.table(touched.relation);
        let entering = table.entering.lock();
        table.any.fetch_max(number, Ordering::SeqCst);
        for column in table.columns.load().iter().filter(|column| column.table == touched.relation) {
            match touched.keys(column.attnum) {
                Some(keys) => {
                    for key in keys {
                        let of = column.identity().wrapping_add(u64::from(is_planted(Bug::MarkWrongKey)));
                        self.keys[key.place(of, KEY_PLACES)].fetch_max(number, Ordering::SeqCst);
                    }
                }
                None => _ = column.others.fetch_max(number, Ordering::SeqCst),
            }
        }
        drop(entering);
        self.newest.fetch_max(number, Ordering::SeqCst);
    }

    /// The barrier that a reader of these relations needs who is confined to `keys`, if it is not `shown` anyway; and whether it
    /// would be a later one without them. From the first such question on, writes are told apart by those columns.
    pub(super) fn required(&self, relations: &[RelationId], keys: &Keys, shown: u64) -> (u64, bool) {
        let mut required = self.rows.load(Ordering::SeqCst);
        let mut is_confined = false;
        for relation in relations {
            let table = self.table(*relation);
            let mut of_table = table.any.load(Ordering::SeqCst);
            if of_table > shown && !keys.is_empty() {
                let by_key = self.by_key(table, *relation, keys, of_table);
                is_confined |= by_key < of_table;
                of_table = by_key;
            }
            required = required.max(of_table);
        }
        (required, is_confined)
    }

    /// Each column alone is enough to say that a write was to other rows.
    fn by_key(&self, table: &TableMarks, relation: RelationId, keys: &Keys, any: u64) -> u64 {
        let columns = table.columns.load();
        let mut required = any;
        for of in keys.of_table(relation) {
            let column = columns.iter().find(|column| column.table == relation && column.attnum == of.attnum);
            match column {
                Some(column) => {
                    column.asked.store(any, Ordering::Relaxed);
                    required = required.min(self.of_column(column, &of.keys));
                }
                None => table.follow(relation, of.attnum),
            }
        }
        required
    }

    fn of_column(&self, column: &ColumnMarks, keys: &[KeyHash]) -> u64 {
        let of_key = |key: &KeyHash| self.keys[key.place(column.identity(), KEY_PLACES)].load(Ordering::SeqCst);
        keys.iter().map(of_key).fold(column.others.load(Ordering::SeqCst), u64::max)
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    fn table(&self, relation: RelationId) -> &TableMarks {
        &self.tables[relation.0 as usize % TABLE_PLACES]
    }
}

impl TableMarks {
    /// Writes are told apart by this column from now on; those so far may have been to any key.
    fn follow(&self, table: RelationId, attnum: i16) {
        let _entering = self.entering.lock();
        let mut columns = Vec::clone(&self.columns.load());
        if columns.iter().any(|column| column.table == table && column.attnum == attnum) {
            return;
        }
        let any = self.any.load(Ordering::SeqCst);
        if columns.len() >= COLUMNS_MAX {
            let asked = |column: &Arc<ColumnMarks>| column.asked.load(Ordering::Relaxed);
            let Some(oldest) = (0..columns.len()).min_by_key(|at| asked(&columns[*at])) else { return };
            if asked(&columns[oldest]).saturating_add(UNUSED_FOR) > any {
                return;
            }
            columns.remove(oldest);
        }
        let (others, asked) = (AtomicU64::new(any), AtomicU64::new(any));
        columns.push(Arc::new(ColumnMarks { table, attnum, others, asked }));
        self.columns.store(Arc::new(columns));
    }
}

impl ColumnMarks {
    /// What tells its keys from those of other columns.
    fn identity(&self) -> u64 {
        u64::from(self.table.0) << 16 | u64::from(self.attnum as u16)
    }
}

#[cfg(test)]
mod tests {
    use freshet_engine::catalog::{Catalog, Collation, ColumnSchema, ReplicaIdentity, TableSchema};
    use freshet_engine::statement::{confined::confined, lexer};
    use freshet_engine::types::{FormatSettings, PgType};
    use freshet_engine::{PrepareContext, prepare};

    use super::*;
    use crate::replication::written::WrittenTable;

    const T: RelationId = RelationId(20_000);
    const OTHER: RelationId = RelationId(20_001);
    const OTHER_OF_PLACE: RelationId = RelationId(T.0 + TABLE_PLACES as u32);

    fn schema() -> Arc<TableSchema> {
        let column = |(at, name): (usize, &&str)| ColumnSchema {
            name: (*name).into(),
            attnum: at as i16 + 1,
            type_oid: 23,
            typmod: -1,
            pg_type: Some(PgType::Int4),
            not_null: true,
            collation: Collation::None,
        };
        let (schema, name) = ("public".into(), "t".into());
        let columns = ["id", "tenant", "v"].iter().enumerate().map(column).collect();
        let identity = ReplicaIdentity::Key(vec![0]);
        Arc::new(TableSchema { id: T, schema, name, columns, primary_key: vec![0], identity })
    }

    fn touched(sql: &str) -> Touched {
        let tokens = lexer::tokens(sql).expect("lexes");
        let written = WrittenTable::by(["t".to_owned()].into(), confined(&tokens));
        written.confined.map_or(Touched::whole(T), |confined| Touched::confined(&schema(), &confined, 0))
    }

    /// What a read of `t` with this condition is confined to.
    fn keys(condition: &str) -> Keys {
        let entry = freshet_engine::catalog::RelationEntry::Table(schema());
        let catalog = Catalog {
            version: 1,
            schemas: [("public".into(), [("t".into(), entry)].into()), ("pg_catalog".into(), [].into())].into(),
            tables: [(T, schema())].into(),
            ..Catalog::default()
        };
        let context = PrepareContext {
            catalog: &catalog,
            settings_id: 1,
            search_path: &["pg_catalog".into(), "public".into()],
            settings: &FormatSettings::default(),
            parameter_types: &[],
        };
        let prepared = prepare(&format!("SELECT v FROM t WHERE {condition}"), &context).expect("binds");
        Keys::of(&prepared.reads.scans, &[], &catalog)
    }

    /// Whether a reader of what barrier 1 showed has to wait.
    fn waits(marks: &Marks, relation: RelationId, keys: &Keys) -> bool {
        marks.required(&[relation], keys, 1).0 > 1
    }

    /// The number of the barrier that is due after each write here.
    fn write(marks: &Marks, sql: &str) {
        marks.note_table(&touched(sql), 2);
    }

    /// Marks for which readers have asked by these columns.
    fn asked(conditions: &[&str]) -> Marks {
        let marks = Marks::default();
        marks.note_table(&Touched::whole(T), 1);
        for condition in conditions {
            assert_eq!(marks.required(&[T], &keys(condition), 0), (1, false), "not told apart yet");
        }
        marks
    }

    #[test]
    fn a_confined_write_is_waited_for_by_readers_of_its_keys() {
        for (sql, waiting, others) in [
            ("UPDATE t SET v = 1 WHERE id = 5", "id = 5", "id = 6"),
            ("UPDATE t SET v = 1 WHERE id IN (5, 7)", "id = 7", "id = 6"),
            ("UPDATE t SET v = 1 WHERE id = 5", "id IN (4, 5)", "id IN (3, 4)"),
            ("DELETE FROM t WHERE id = 5 AND v = 3", "id = 5", "id = 6 AND v = 3"),
            ("INSERT INTO t (id, tenant, v) VALUES (5, 1, 1), (6, 1, 1)", "id = 6", "id = 7"),
            ("INSERT INTO t (id, v) VALUES (5, 1) ON CONFLICT (id) DO UPDATE SET v = 2", "id = 5", "id = 7"),
        ] {
            let marks = asked(&["id = 1"]);
            write(&marks, sql);
            assert!(waits(&marks, T, &keys(waiting)), "{sql}: {waiting}");
            assert!(!waits(&marks, T, &keys(others)), "{sql}: {others}");
            assert!(waits(&marks, T, &Keys::default()), "{sql}: the whole table");
            assert!(waits(&marks, T, &keys("id > 5")), "{sql}: a range");
            assert!(!waits(&marks, OTHER, &Keys::default()), "{sql}: another table");
            assert_eq!(marks.required(&[T], &keys(others), 1), (1, true));
            assert_eq!(marks.newest(), 2);
        }
    }

    #[test]
    fn a_write_that_may_be_to_any_key_is_waited_for_by_all() {
        for sql in [
            "UPDATE t SET v = 1",
            "UPDATE t SET v = 1 WHERE tenant = 5",
            "UPDATE t SET id = 6 WHERE id = 5",
            "UPDATE t SET v = 1 WHERE id = 5 OR v = 2",
            "INSERT INTO t SELECT 1, 2, 3",
            "INSERT INTO t VALUES (5, 1, 1)",
            "INSERT INTO t (id, tenant) VALUES (5, 1) ON CONFLICT (tenant) DO UPDATE SET v = 2",
        ] {
            let marks = asked(&["id = 1"]);
            write(&marks, sql);
            assert!(waits(&marks, T, &keys("id = 9")), "{sql}");
        }
        let marks = asked(&["id = 1"]);
        marks.note_rows(2);
        assert!(waits(&marks, T, &keys("id = 9")) && waits(&marks, OTHER, &Keys::default()));
    }

    #[test]
    fn one_of_several_columns_is_enough() {
        let marks = asked(&["id = 1", "tenant = 1"]);
        write(&marks, "UPDATE t SET v = 1 WHERE tenant = 5");
        assert!(!waits(&marks, T, &keys("tenant = 6 AND id = 9")));
        assert!(waits(&marks, T, &keys("tenant = 5 AND id = 9")));
        assert!(waits(&marks, T, &keys("id = 9")));
        write(&marks, "UPDATE t SET v = 1 WHERE tenant = 6 AND id = 8");
        assert!(waits(&marks, T, &keys("tenant = 6 AND id = 8")));
    }

    #[test]
    fn what_was_written_before_a_column_is_asked_by_counts_for_all_its_keys() {
        let marks = Marks::default();
        write(&marks, "UPDATE t SET v = 1 WHERE id = 5");
        assert!(waits(&marks, T, &keys("id = 9")), "it asks for the first time");
        assert!(waits(&marks, T, &keys("id = 9")), "it is not known which key was written");
        assert!(marks.required(&[T], &keys("id = 9"), 2).0 <= 2, "a barrier has been sent since");
        marks.note_table(&touched("UPDATE t SET v = 1 WHERE id = 5"), 3);
        assert!(marks.required(&[T], &keys("id = 9"), 2).0 <= 2);
        assert_eq!(marks.required(&[T], &keys("id = 5"), 2).0, 3);
    }

    #[test]
    fn columns_that_are_no_longer_told_apart_lose_nothing() {
        let marks = asked(&["id = 1"]);
        let table = marks.table(T);
        write(&marks, "UPDATE t SET v = 1 WHERE id = 5");
        let follow_others = || (0..COLUMNS_MAX as u32).for_each(|n| table.follow(RelationId(T.0 + 256 * (n + 1)), 1));
        follow_others();
        assert!(!waits(&marks, T, &keys("id = 9")), "in use, it is not driven out");
        marks.note_table(&Touched::whole(OTHER_OF_PLACE), 2 + UNUSED_FOR);
        follow_others();
        assert!(table.columns.load().iter().all(|column| column.table != T));
        assert!(waits(&marks, T, &keys("id = 9")));
        assert!(waits(&marks, T, &keys("id = 9")), "all writes before it was asked by again");
        assert_eq!(table.columns.load().len(), COLUMNS_MAX);
    }
}
