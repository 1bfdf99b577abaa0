//! The mirror against models: random transactions travel as pgoutput bytes through assembler and mirror, and every
//! version that a reader can ask for is compared with a plain list of rows.

mod catch_up;
mod model;
mod waiting;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proptest::prelude::*;

use model::{Op, any_op, perform, sorted};

use super::encoder;
use super::pgoutput::Cell;
use super::*;
use crate::catalog::{Catalog, Collation, ColumnSchema, RelationId, ReplicaIdentity, TableSchema};
use crate::reason::UpstreamReason;
use crate::snapshot::{Snapshot, VisibilitySnapshot};
use crate::table::{Generation, TableBuilder, TableVersion};
use crate::types::access::value_at;
use crate::types::{Lsn, PgType, Value};

/// A row of the test tables: (id int4, kind int4, secret of a type that is not mirrored, note text).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    id: i32,
    kind: i32,
    note: Option<String>,
}

/// Layout of the tuples in the stream: without a generated column, so that places are not the schema's.
const STREAM_COLUMNS: [(&str, u32); 4] = [("id", 23), ("kind", 23), ("note", 25), ("secret", 9_999)];

fn schema(oid: u32, identity: ReplicaIdentity) -> Arc<TableSchema> {
    let column = |number: usize, name: &str, type_oid: u32| ColumnSchema {
        name: name.into(),
        attnum: number as i16,
        type_oid,
        typmod: -1,
        pg_type: PgType::from_oid(type_oid),
        not_null: false,
        collation: Collation::None,
    };
    let (id, kind, generated) = (column(1, "id", 23), column(2, "kind", 23), column(3, "generated", 9_998));
    let columns = vec![id, kind, generated, column(4, "note", 25), column(5, "secret", 9_999)];
    let primary_key = match &identity {
        ReplicaIdentity::Key(key) => key.clone(),
        ReplicaIdentity::Full | ReplicaIdentity::Nothing => Vec::new(),
    };
    let (schema, name) = ("public".into(), format!("t{oid}").into());
    Arc::new(TableSchema { id: RelationId(oid), schema, name, columns, primary_key, identity })
}

fn by_id() -> ReplicaIdentity {
    ReplicaIdentity::Key(vec![0])
}

/// The other column first, to tell positions from order.
fn by_kind_and_id() -> ReplicaIdentity {
    ReplicaIdentity::Key(vec![1, 0])
}

fn describe(schema: &TableSchema) -> Vec<u8> {
    let identity = if schema.identity == ReplicaIdentity::Full { b'f' } else { b'd' };
    let columns: Vec<_> = STREAM_COLUMNS
        .iter()
        .map(|(name, type_oid)| {
            let is_key = match &schema.identity {
                ReplicaIdentity::Key(key) => key.contains(&schema.column(name).expect("a column")),
                ReplicaIdentity::Full | ReplicaIdentity::Nothing => true,
            };
            (is_key, *name, *type_oid, -1)
        })
        .collect();
    encoder::relation(schema.id.0, &schema.schema, &schema.name, identity, &columns)
}

/// The bytes of a row's cells.
struct Wire {
    id: [u8; 4],
    kind: [u8; 4],
    note: Option<String>,
}

impl Wire {
    fn of(row: &Row) -> Self {
        Self { id: row.id.to_be_bytes(), kind: row.kind.to_be_bytes(), note: row.note.clone() }
    }

    fn cells(&self) -> [Cell<'_>; 4] {
        let note = self.note.as_ref().map_or(Cell::Null, |note| Cell::Binary(note.as_bytes()));
        [Cell::Binary(&self.id), Cell::Binary(&self.kind), note, Cell::Text(b"hidden")]
    }

    fn key_cells(&self, schema: &TableSchema) -> [Cell<'_>; 4] {
        let mut cells = self.cells();
        for (cell, (name, _)) in cells.iter_mut().zip(STREAM_COLUMNS) {
            if !schema.primary_key.contains(&schema.column(name).expect("a column")) {
                *cell = Cell::Null;
            }
        }
        cells
    }
}

/// How PostgreSQL writes the changes of a table with this identity.
struct Stream<'a> {
    schema: &'a TableSchema,
    messages: Vec<Vec<u8>>,
}

impl Stream<'_> {
    fn insert(&mut self, row: &Row) {
        self.messages.push(encoder::insert(self.schema.id.0, &Wire::of(row).cells()));
    }

    /// `note_is_unchanged`: it lies out of line and is not sent.
    fn update(&mut self, old: &Row, new: &Row, note_is_unchanged: bool) {
        let (old_wire, new_wire) = (Wire::of(old), Wire::of(new));
        let mut cells = new_wire.cells();
        if note_is_unchanged {
            cells[2] = Cell::Unchanged;
            cells[3] = Cell::Unchanged;
        }
        let old_cells = match self.schema.identity {
            ReplicaIdentity::Full => Some((b'O', old_wire.cells())),
            _ if self.key(old) != self.key(new) => Some((b'K', old_wire.key_cells(self.schema))),
            _ => None,
        };
        let old_cells = old_cells.as_ref().map(|(kind, cells)| (*kind, &cells[..]));
        self.messages.push(encoder::update(self.schema.id.0, old_cells, &cells));
    }

    fn delete(&mut self, row: &Row) {
        let wire = Wire::of(row);
        let (kind, cells) = match self.schema.identity {
            ReplicaIdentity::Full => (b'O', wire.cells()),
            _ => (b'K', wire.key_cells(self.schema)),
        };
        self.messages.push(encoder::delete(self.schema.id.0, kind, &cells));
    }

    fn truncate(&mut self) {
        self.messages.push(encoder::truncate(&[self.schema.id.0]));
    }

    fn key(&self, row: &Row) -> Vec<i32> {
        self.schema.primary_key.iter().map(|column| if *column == 0 { row.id } else { row.kind }).collect()
    }
}

fn transaction(assembler: &mut Assembler, xid: u32, lsn: u64, messages: &[Vec<u8>]) -> UpstreamTransaction {
    let begin = encoder::begin(Lsn(lsn), xid);
    for message in std::iter::once(&begin).chain(messages) {
        assert!(assembler.push_bytes(message).expect("well-formed").is_none());
    }
    let commit = encoder::commit(Lsn(lsn), Lsn(lsn + 8));
    assembler.push_bytes(&commit).expect("well-formed").expect("complete")
}

fn copy(schema: &Arc<TableSchema>, rows: &[Row]) -> TableVersion {
    let mut builder = TableBuilder::new(Arc::clone(schema));
    for row in rows {
        let wire = Wire::of(row);
        let note = wire.note.as_deref().map(str::as_bytes);
        builder.append_copy_row([Some(&wire.id[..]), Some(&wire.kind[..]), note]).expect("a row");
    }
    TableVersion::of_ranges(Arc::clone(schema), [builder])
}

fn rows(version: &TableVersion) -> Vec<Row> {
    let mut rows = Vec::new();
    for chunk in version.chunks.iter() {
        for row in (0..chunk.chunk.rows).filter(|row| chunk.is_alive(*row)) {
            let value = |column: usize| {
                let pg_type = chunk.chunk.pg_type(column).expect("mirrored");
                value_at(chunk.chunk.columns[column].as_ref(), pg_type, row)
            };
            let (Value::Int4(id), Value::Int4(kind)) = (value(0), value(1)) else { panic!("not integers") };
            let note = match value(3) {
                Value::Text(note) => Some(note.to_string()),
                _ => None,
            };
            rows.push(Row { id, kind, note });
        }
    }
    assert_eq!(rows.len(), version.rows);
    rows.sort();
    rows
}

/// All transactions below `xmax`, without the listed ones.
fn seen(xmax: u64, in_progress: &[u64]) -> VisibilitySnapshot {
    let mut in_progress = in_progress.to_vec();
    in_progress.sort_unstable();
    VisibilitySnapshot { xmin: in_progress.first().copied().unwrap_or(xmax), xmax, in_progress }
}

/// A catalog of the tables that the mirror knows.
fn catalog(mirror: &Mirror) -> Arc<Catalog> {
    let tables = mirror.statuses().into_iter().map(|status| (status.schema.id, status.schema)).collect();
    Arc::new(Catalog { tables, ..Catalog::default() })
}

fn snapshot(mirror: &Mirror, visible: &VisibilitySnapshot, relations: &[u32]) -> Result<Snapshot, UpstreamReason> {
    let relations: Vec<_> = relations.iter().map(|oid| RelationId(*oid)).collect();
    mirror.snapshot_at(visible, Lsn(0), &relations, &catalog(mirror))
}

/// Mirrors `copied` as seen by `copied_at`.
fn copy_in(
    mirror: &Mirror,
    schema: &Arc<TableSchema>,
    copied: &[Row],
    copied_at: VisibilitySnapshot,
) -> Result<(), UpstreamReason> {
    let id = mirror.start_copy(Arc::clone(schema)).expect("admitted");
    mirror.finish_copy(id, copy(schema, copied), copied_at, Lsn(1000))
}

fn table(mirror: &Mirror, visible: &VisibilitySnapshot, oid: u32) -> Result<Arc<TableVersion>, UpstreamReason> {
    Ok(Arc::clone(&snapshot(mirror, visible, &[oid])?.tables[&RelationId(oid)]))
}

/// A mirror of one table whose copy holds `copied`, seen by all transactions below 100, at LSN 1000.
fn mirror_of(schema: &Arc<TableSchema>, copied: &[Row]) -> (Mirror, Assembler) {
    let mirror = Mirror::new(MirrorLimits::default());
    copy_in(&mirror, schema, copied, seen(100, &[])).expect("copied");
    let mut assembler = Assembler::new(1 << 20);
    assembler.push_bytes(&describe(schema)).expect("a relation");
    (mirror, assembler)
}

fn row(id: i32, note: &str) -> Row {
    Row { id, kind: 0, note: Some(note.to_string()) }
}

fn stream(schema: &TableSchema) -> Stream<'_> {
    Stream { schema, messages: Vec::new() }
}

// ---- random visibility ---------------------------------------------------------------------------------------------

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A snapshot is either exactly the transactions that are visible, per table, or refused; and refused only where
    /// they are no prefix of those applied to a table in use.
    #[test]
    fn snapshots_cut_by_visibility(
        touched in proptest::collection::vec(1..4u32, 1..12),
        hidden in proptest::collection::vec(any::<bool>(), 12),
        xmax in 100..114u64,
        retired in 0..14usize,
        together: bool,
    ) {
        let schemas = [schema(1, by_id()), schema(2, by_id())];
        let limits = MirrorLimits { versions_max: if together { 4 } else { 100 }, ..MirrorLimits::default() };
        let mirror = Mirror::new(limits);
        let mut assembler = Assembler::new(1 << 20);
        for schema in &schemas {
            copy_in(&mirror, schema, &[], seen(100, &[])).expect("copied");
            assembler.push_bytes(&describe(schema)).expect("a relation");
        }
        // Transaction n inserts row n into the tables whose bit is set.
        for (number, tables) in touched.iter().enumerate() {
            let mut messages = Vec::new();
            for (bit, schema) in schemas.iter().enumerate().filter(|(bit, _)| tables & (1 << bit) != 0) {
                let mut stream = stream(schema);
                stream.insert(&row(number as i32, &format!("in {bit}")));
                messages.append(&mut stream.messages);
            }
            mirror.apply(transaction(&mut assembler, 100 + number as u32, 2000 + 100 * number as u64, &messages));
        }
        let in_progress: Vec<u64> =
            (0..touched.len()).filter(|number| hidden[*number]).map(|number| 100 + number as u64).filter(|xid| *xid < xmax).collect();
        let visible = seen(xmax, &in_progress);
        // An earlier reader, who saw a part of it, has made versions superfluous.
        let earlier = seen(visible.xmin.min(100 + retired as u64), &[]);
        mirror.retire(&earlier);

        let sees = |number: usize| visible.sees(100 + number as u64);
        let mut is_prefix = true;
        for schema in &schemas {
            let bit = schema.id.0 - 1;
            let of_table: Vec<usize> =
                (0..touched.len()).filter(|number| touched[*number] & (1 << bit) != 0).collect();
            let prefix = of_table.iter().take_while(|number| sees(**number)).count();
            let is_cut = of_table[prefix..].iter().all(|number| !sees(*number));
            is_prefix &= is_cut;
            match table(&mirror, &visible, schema.id.0) {
                Ok(version) => {
                    prop_assert!(is_cut);
                    let ids: Vec<i32> = rows(&version).iter().map(|row| row.id).collect();
                    let expected: Vec<i32> = of_table[..prefix].iter().map(|number| *number as i32).collect();
                    prop_assert_eq!(ids, expected);
                }
                Err(reason) => {
                    prop_assert_eq!(reason, UpstreamReason::NotAPrefix);
                    prop_assert!(!is_cut || together);
                }
            }
        }
        if !together {
            prop_assert_eq!(snapshot(&mirror, &visible, &[1, 2]).is_ok(), is_prefix);
        }
        prop_assert_eq!(mirror.pending_after(&visible), (0..touched.len()).any(|number| !sees(number)));
    }

    /// The hand-over is exact whatever the copy saw, however LSN order and visibility differ.
    #[test]
    fn a_copy_takes_exactly_what_it_did_not_see(
        keys in proptest::collection::vec((0..6i32, any::<bool>()), 1..30),
        before_copy in 0..8usize,
        before_finish in 0..30usize,
        insert_lsn_slack in 0..8u64,
        is_long: bool,
    ) {
        // Each transaction sets one key. It can be visible only if the one before it on that key is.
        let schema = schema(3, by_id());
        let mirror = Mirror::new(MirrorLimits::default());
        let mut assembler = Assembler::new(1 << 20);
        assembler.push_bytes(&describe(&schema)).expect("a relation");
        let mut model: BTreeMap<i32, Row> = BTreeMap::new();
        let mut copied: BTreeMap<i32, Row> = BTreeMap::new();
        let mut blocked = std::collections::HashSet::new();
        let (mut in_progress, mut last_visible, mut transactions) = (Vec::new(), 0, Vec::new());
        for (number, (key, is_visible)) in keys.iter().enumerate() {
            let (xid, lsn) = (100 + number as u32, 2000 + 100 * number as u64);
            // Long ones are not left to the last round.
            let new = row(*key, &format!("by {xid}{}", " ".repeat(if is_long { 10_000 } else { 0 })));
            let mut stream = stream(&schema);
            match model.get(key) {
                Some(old) => stream.update(old, &new, false),
                None => stream.insert(&new),
            }
            // What was applied before the copy began was waited for: it is visible.
            let is_visible = number < before_copy || (*is_visible && !blocked.contains(key));
            if is_visible {
                copied.insert(*key, new.clone());
                last_visible = lsn;
            } else {
                blocked.insert(*key);
                in_progress.push(u64::from(xid));
            }
            model.insert(*key, new);
            transactions.push(transaction(&mut assembler, xid, lsn, &stream.messages));
        }
        let copied_at = seen(100 + keys.len() as u64, &in_progress);
        let insert_lsn = Lsn(last_visible + 8 + 100 * insert_lsn_slack);

        let mut transactions = transactions.into_iter();
        transactions.by_ref().take(before_copy).for_each(|transaction| mirror.apply(transaction));
        let id = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
        transactions.by_ref().take(before_finish).for_each(|transaction| mirror.apply(transaction));
        let version = copy(&schema, &copied.values().cloned().collect::<Vec<_>>());
        mirror.finish_copy(id, version, copied_at.clone(), insert_lsn).expect("followed");
        let mut generation = mirror.statuses()[0].generation;
        for transaction in transactions {
            mirror.apply(transaction);
            let next = mirror.statuses()[0].generation;
            prop_assert!(next >= generation);
            generation = next;
        }
        prop_assert_eq!(mirror.state(schema.id), Some(TableState::Mirrored));
        let all = table(&mirror, &seen(1000, &[]), 3).expect("all visible");
        prop_assert_eq!(rows(&all), model.values().cloned().collect::<Vec<_>>());
        // Under the copy's own snapshot the table is the copy.
        let then = table(&mirror, &copied_at, 3).expect("nothing later is visible");
        prop_assert_eq!(rows(&then), copied.values().cloned().collect::<Vec<_>>());
        prop_assert_eq!(then.generation == all.generation, rows(&then) == rows(&all));
    }
}

// ---- single cases -------------------------------------------------------------------------------------------------

/// Applies one transaction to a fresh mirror of `copied` and returns its rows, or why it was poisoned.
fn after(
    schema: &Arc<TableSchema>,
    copied: &[Row],
    change: impl FnOnce(&mut Stream<'_>),
) -> Result<Vec<Row>, TableState> {
    let (mirror, mut assembler) = mirror_of(schema, copied);
    let mut stream = stream(schema);
    change(&mut stream);
    mirror.apply(transaction(&mut assembler, 100, 2000, &stream.messages));
    match mirror.state(schema.id).expect("known") {
        TableState::Mirrored => Ok(rows(&table(&mirror, &seen(101, &[]), schema.id.0).expect("visible"))),
        state => Err(state),
    }
}

fn poisoned(why: &'static str) -> Result<Vec<Row>, TableState> {
    Err(TableState::Poisoned(why.into()))
}

#[test]
fn an_unchanged_toast_value_comes_from_the_row_under_the_old_key() {
    let schema = schema(7, by_id());
    let long = |id| row(id, "a long value");
    let moved = after(&schema, &[long(1)], |stream| stream.update(&long(1), &long(2), true));
    assert_eq!(moved, Ok(vec![long(2)]));
    let twice = after(&schema, &[], |stream| {
        stream.insert(&long(1));
        stream.update(&long(1), &long(2), true);
        stream.update(&long(2), &Row { kind: 9, ..long(2) }, true);
    });
    assert_eq!(twice, Ok(vec![Row { kind: 9, ..long(2) }]));
}

#[test]
fn rows_may_swap_keys_through_a_third_one() {
    let schema = schema(7, by_id());
    let swapped = after(&schema, &[row(1, "a"), row(2, "b")], |stream| {
        stream.update(&row(1, "a"), &row(3, "a"), false);
        stream.update(&row(2, "b"), &row(1, "b"), false);
        stream.update(&row(3, "a"), &row(2, "a"), false);
    });
    assert_eq!(swapped, Ok(vec![row(1, "b"), row(2, "a")]));
}

#[test]
fn full_identity_takes_one_of_several_equal_rows() {
    let schema = schema(7, ReplicaIdentity::Full);
    let same = || row(1, "same");
    let left = after(&schema, &[same(), same(), same()], |stream| {
        stream.delete(&same());
        stream.insert(&same());
        stream.insert(&same());
        stream.delete(&same());
        stream.update(&same(), &row(2, "other"), false);
    });
    assert_eq!(left, Ok(vec![same(), same(), row(2, "other")]));
    let too_many = after(&schema, &[same()], |stream| {
        stream.delete(&same());
        stream.delete(&same());
    });
    assert_eq!(too_many, poisoned("a changed row is not in the mirror"));
}

#[test]
fn many_equal_rows_in_one_transaction_take_linear_time() {
    let schema = schema(7, ReplicaIdentity::Full);
    let same = || row(1, "same");
    let left = after(&schema, &[], |stream| {
        (0..8_000).for_each(|_| stream.insert(&same()));
        (0..7_999).for_each(|_| stream.delete(&same()));
    });
    assert_eq!(left, Ok(vec![same()]));
}

#[test]
fn what_contradicts_the_mirror_poisons_the_table() {
    let schema = schema(7, by_id());
    let missing = "a changed row is not in the mirror";
    let one = [row(1, "a")];
    assert_eq!(after(&schema, &one, |stream| stream.delete(&row(2, "b"))), poisoned(missing));
    assert_eq!(after(&schema, &one, |stream| stream.update(&row(2, "b"), &row(2, "c"), false)), poisoned(missing));
    assert_eq!(
        after(&schema, &one, |stream| stream.insert(&row(1, "b"))),
        poisoned("an inserted key is already in the mirror")
    );
    assert_eq!(
        after(&schema, &one, |stream| (0..2).for_each(|_| stream.insert(&row(2, "b")))),
        poisoned("two rows with one key")
    );
    assert_eq!(
        after(&schema, &one, |stream| {
            stream.truncate();
            stream.delete(&row(1, "a"));
        }),
        poisoned(missing)
    );
    let malformed = after(&schema, &one, |stream| {
        let cells = [Cell::Binary(b"abc"), Cell::Binary(b"\0\0\0\0"), Cell::Null, Cell::Null];
        stream.messages.push(encoder::insert(7, &cells));
    });
    assert!(matches!(malformed, Err(TableState::Poisoned(_))), "{malformed:?}");
}

#[test]
fn a_poisoned_table_says_why_and_is_mirrored_again_after_a_new_copy() {
    let schema = schema(7, by_id());
    let (mirror, mut assembler) = mirror_of(&schema, &[]);
    let before = mirror.statuses()[0].generation;
    drop(mirror.poison(schema.id, "schema changed"));
    let refused = Err(UpstreamReason::TableNotMirrored("schema changed".into()));
    assert_eq!(table(&mirror, &seen(200, &[]), 7).map(|_| ()), refused);
    let mut changes = stream(&schema);
    changes.insert(&row(1, "ignored"));
    mirror.apply(transaction(&mut assembler, 100, 2000, &changes.messages));
    assert_eq!(mirror.applied(), Lsn(2008));

    let void = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
    let id = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
    let copying = Err(UpstreamReason::TableNotMirrored("being copied".into()));
    assert_eq!(table(&mirror, &seen(200, &[]), 7).map(|_| ()), copying);
    assert!(mirror.finish_copy(void, copy(&schema, &[]), seen(101, &[]), Lsn(1000)).is_err(), "another has begun");
    // Even at the same LSN the contents have a generation of their own.
    mirror.finish_copy(id, copy(&schema, &[row(1, "copied")]), seen(101, &[]), Lsn(1000)).expect("copied");
    assert!(mirror.statuses()[0].generation > before);
    assert_eq!(rows(&table(&mirror, &seen(101, &[]), 7).expect("mirrored")), vec![row(1, "copied")]);
    // A reader from before the copy is refused: he might not see what the copy saw.
    assert_eq!(table(&mirror, &seen(100, &[]), 7).map(|_| ()), Err(UpstreamReason::NotAPrefix));
}

#[test]
fn a_changed_layout_poisons_the_table() {
    let schema = schema(7, by_id());
    let altered: [(&str, &[(bool, &str, u32, i32)], u8); 6] = [
        ("new column \"extra\"", &[(true, "id", 23, -1), (false, "extra", 23, -1)], b'd'),
        ("column \"id\" has another type", &[(true, "id", 20, -1)], b'd'),
        ("column \"id\" is in another place", &[(false, "kind", 23, -1), (true, "id", 23, -1)], b'd'),
        ("column \"note\" is gone", &[(true, "id", 23, -1), (false, "kind", 23, -1)], b'd'),
        ("another replica identity", &[(true, "id", 23, -1), (true, "kind", 23, -1), (false, "note", 25, -1)], b'd'),
        ("another replica identity", &[(true, "id", 23, -1), (true, "kind", 23, -1), (true, "note", 25, -1)], b'f'),
    ];
    for (why, columns, identity) in altered {
        let (mirror, mut assembler) = mirror_of(&schema, &[]);
        let relation = encoder::relation(7, "public", "t7", identity, columns);
        let nulls = vec![Cell::Null; columns.len()];
        let insert = encoder::insert(7, &nulls);
        mirror.apply(transaction(&mut assembler, 100, 2000, &[relation, insert]));
        assert_eq!(mirror.state(schema.id), Some(TableState::Poisoned(why.into())));
    }
    // A column that is not mirrored may be absent: a generated one is not in the stream.
    let (mirror, mut assembler) = mirror_of(&schema, &[]);
    let columns = [(true, "id", 23, -1), (false, "kind", 23, -1), (false, "note", 25, -1)];
    let relation = encoder::relation(7, "public", "t7", b'd', &columns);
    let insert = encoder::insert(7, &[Cell::Text(b"5"), Cell::Text(b"6"), Cell::Text(b"seven")]);
    mirror.apply(transaction(&mut assembler, 100, 2000, &[relation, insert]));
    let version = table(&mirror, &seen(101, &[]), 7).expect("mirrored");
    assert_eq!(rows(&version), vec![Row { id: 5, kind: 6, note: Some("seven".to_string()) }]);
}

#[test]
fn a_transaction_over_the_limit_gives_up_its_largest_table_only() {
    let (large, small) = (schema(7, by_id()), schema(8, by_id()));
    let (mirror, _) = mirror_of(&large, &[]);
    copy_in(&mirror, &small, &[], seen(100, &[])).expect("copied");
    let mut assembler = Assembler::new(4_000);
    let mut messages = vec![describe(&large), describe(&small)];
    let mut changes = stream(&small);
    changes.insert(&row(1, "kept"));
    messages.append(&mut changes.messages);
    let mut changes = stream(&large);
    (0..1_000).for_each(|id| changes.insert(&row(id, "much")));
    messages.append(&mut changes.messages);
    mirror.apply(transaction(&mut assembler, 100, 2000, &messages));
    let why = "a transaction exceeded the size limit";
    assert_eq!(mirror.state(large.id), Some(TableState::Poisoned(why.into())));
    assert_eq!(rows(&table(&mirror, &seen(101, &[]), 8).expect("mirrored")), vec![row(1, "kept")]);
}

#[test]
fn too_many_changes_during_a_copy_give_it_up() {
    give_up_a_copy(MirrorLimits { copy_buffer_bytes_max: 500, ..MirrorLimits::default() });
    give_up_a_copy(MirrorLimits { bytes_max: 500, ..MirrorLimits::default() });
}

fn give_up_a_copy(limits: MirrorLimits) {
    let (schema, mirror) = (schema(7, by_id()), Mirror::new(limits));
    let mut assembler = Assembler::new(1 << 20);
    assembler.push_bytes(&describe(&schema)).expect("a relation");
    let id = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
    assert_eq!(mirror.given_up_because(id), None);
    for number in 0..20 {
        let mut changes = stream(&schema);
        changes.insert(&row(number, "new"));
        mirror.apply(transaction(&mut assembler, 100, 2000 + 100 * number as u64, &changes.messages));
    }
    assert_eq!(mirror.bytes(), 0);
    let why = UpstreamReason::TableNotMirrored("too many changes while it was copied".into());
    assert_eq!(mirror.given_up_because(id), Some(why.clone()));
    assert_eq!(mirror.finish_copy(id, copy(&schema, &[]), seen(100, &[]), Lsn(1000)), Err(why));
}

#[test]
fn over_the_memory_cap_the_table_with_the_fewest_reads_per_byte_becomes_tracked() {
    let many: Vec<Row> = (0..1_000).map(|id| row(id, "filler")).collect();
    let schemas = [schema(1, by_id()), schema(2, by_id()), schema(3, by_id())];
    let each = copy(&schemas[0], &many).bytes();
    let mirror = Mirror::new(MirrorLimits { bytes_max: each * 5 / 2 + 2_000, ..MirrorLimits::default() });
    mirror.set_weights(HashMap::from([(RelationId(1), 9.0), (RelationId(2), 7.0), (RelationId(3), 6.0)]));
    for schema in &schemas[..2] {
        copy_in(&mirror, schema, &many, seen(100, &[])).expect("copied");
    }
    assert!(mirror.room() < each);
    copy_in(&mirror, &schemas[2], &many, seen(100, &[])).expect("followed");
    assert_eq!(mirror.state(RelationId(3)), Some(TableState::Tracked(TrackedBecause::LacksRoom)));

    // It grows until its reads per byte are fewer than the other's.
    let mut assembler = Assembler::new(1 << 20);
    let mut changes = stream(&schemas[0]);
    (1_000..1_600).for_each(|id| changes.insert(&row(id, "growth")));
    changes.messages.insert(0, describe(&schemas[0]));
    changes.messages.insert(0, describe(&schemas[1]));
    mirror.apply(transaction(&mut assembler, 100, 2000, &changes.messages));
    assert_eq!(mirror.state(RelationId(1)), Some(TableState::Tracked(TrackedBecause::LacksRoom)));
    assert_eq!(mirror.state(RelationId(2)), Some(TableState::Mirrored));
    assert_eq!(mirror.tracked_because(&[RelationId(2), RelationId(1)]), Some(TrackedBecause::LacksRoom));
    assert_eq!(mirror.tracked_because(&[RelationId(2)]), None);

    // A tracked table has generations still.
    let mut changes = stream(&schemas[0]);
    changes.delete(&row(5, "filler"));
    mirror.apply(transaction(&mut assembler, 101, 2100, &changes.messages));
    let known = catalog(&mirror);
    let at = |visible: &VisibilitySnapshot| mirror.snapshot_at(visible, Lsn(0), &[RelationId(1)], &known);
    let (before, after) = (at(&seen(102, &[101])).expect("tracked"), at(&seen(102, &[])).expect("tracked"));
    assert!(after.tables.is_empty(), "no rows");
    assert_eq!(after.generation(RelationId(1)), Some(Generation(Lsn(2100))));
    assert_eq!(before.generation(RelationId(1)), Some(Generation(Lsn(2000))));
    assert!(mirror.is_newest(&after, &[RelationId(1)]) && !mirror.is_newest(&before, &[RelationId(1)]));
}

#[test]
fn what_reads_make_beside_the_rows_counts_against_the_cap() {
    let many: Vec<Row> =
        (0..1_000).map(|id| Row { id, kind: id * 7 % 1_000, note: Some(format!("note {id}")) }).collect();
    let schema = schema(7, by_id());
    let alone = copy(&schema, &many).bytes();
    let mirror = Mirror::new(MirrorLimits { bytes_max: alone + 3_000, ..MirrorLimits::default() });
    copy_in(&mirror, &schema, &many, seen(100, &[])).expect("copied");
    drop(mirror.recount());
    assert_eq!(mirror.state(schema.id), Some(TableState::Mirrored));
    let before = mirror.bytes();
    table(&mirror, &seen(100, &[]), 7).expect("mirrored").find(&[1], &[Value::Int4(3)]);
    assert_eq!(mirror.bytes(), before, "not counted yet");
    drop(mirror.recount());
    assert_eq!(mirror.state(schema.id), Some(TableState::Tracked(TrackedBecause::LacksRoom)));
    assert!(mirror.statuses()[0].bytes_once > before + 3_000, "it is known what it would take");
    assert_eq!(mirror.bytes(), 0);
}

#[test]
fn a_table_may_be_tracked_from_the_start() {
    let schema = schema(7, by_id());
    let mirror = Mirror::new(MirrorLimits::default());
    let copy = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
    let mut assembler = Assembler::new(1 << 20);
    let mut changes = stream(&schema);
    changes.messages.insert(0, describe(&schema));
    changes.insert(&row(1, "before"));
    mirror.apply(transaction(&mut assembler, 90, 900, &changes.messages));
    mirror.finish_tracked(copy, TrackedBecause::LacksRoom, seen(100, &[]), Lsn(1000)).expect("followed");
    let known = catalog(&mirror);
    let generation = || {
        let snapshot = mirror.snapshot_at(&seen(200, &[]), Lsn(0), &[RelationId(7)], &known).expect("tracked");
        snapshot.generation(RelationId(7))
    };
    assert_eq!(generation(), Some(Generation(Lsn(1000))));
    let mut changes = stream(&schema);
    changes.insert(&row(2, "after"));
    mirror.apply(transaction(&mut assembler, 101, 2100, &changes.messages));
    assert_eq!(generation(), Some(Generation(Lsn(2100))));
}

#[test]
fn only_what_has_been_applied_is_served() {
    let schema = schema(7, by_id());
    let (mirror, _) = mirror_of(&schema, &[]);
    let known = catalog(&mirror);
    let at = |required| mirror.snapshot_at(&seen(100, &[]), Lsn(required), &[schema.id], &known).map(|_| ());
    mirror.advance(Lsn(1500));
    mirror.advance(Lsn(1400));
    assert_eq!((mirror.applied(), at(1500)), (Lsn(1500), Ok(())));
    assert!(matches!(at(1501), Err(UpstreamReason::MirrorBehind(_))));
    drop(mirror.clear());
    assert_eq!(mirror.applied(), Lsn(0));
    assert!(matches!(at(0), Err(UpstreamReason::TableNotMirrored(_))));
}

#[test]
fn a_table_is_served_under_the_schema_it_was_copied_by_only() {
    let copied_by = schema(7, by_id());
    let (mirror, _) = mirror_of(&copied_by, &[]);
    let under = |schema: TableSchema| {
        let tables = std::iter::once((schema.id, Arc::new(schema))).collect();
        let catalog = Arc::new(Catalog { tables, ..Catalog::default() });
        mirror.snapshot_at(&seen(100, &[]), Lsn(0), &[RelationId(7)], &catalog).map(|_| ())
    };
    let mut altered = TableSchema::clone(&copied_by);
    assert_eq!(under(altered.clone()), Ok(()));
    altered.columns.swap(0, 1);
    assert!(matches!(under(altered), Err(UpstreamReason::TableNotMirrored(_))));
}

#[test]
fn a_transaction_received_again_is_ignored() {
    let schema = schema(7, by_id());
    let (mirror, mut assembler) = mirror_of(&schema, &[]);
    let mut changes = stream(&schema);
    changes.insert(&row(1, "once"));
    for _ in 0..2 {
        mirror.apply(transaction(&mut assembler, 100, 2000, &changes.messages));
    }
    assert_eq!(mirror.state(schema.id), Some(TableState::Mirrored));
    assert_eq!(rows(&table(&mirror, &seen(101, &[]), 7).expect("mirrored")), vec![row(1, "once")]);
}

#[test]
fn a_table_without_usable_identity_is_not_admitted() {
    let mirror = Mirror::new(MirrorLimits::default());
    assert!(mirror.start_copy(schema(7, ReplicaIdentity::Nothing)).is_err());
    assert!(mirror.start_copy(schema(7, ReplicaIdentity::Key(vec![0, 2]))).is_err(), "a key column is not mirrored");
    assert_eq!(mirror.state(RelationId(7)), None);
}

#[test]
fn a_stream_out_of_order_is_an_error() {
    use super::assemble::AssembleError;
    let schema = schema(7, by_id());
    let insert = encoder::insert(7, &Wire::of(&row(1, "a")).cells());
    let mut assembler = Assembler::new(1 << 20);
    assert_eq!(assembler.push_bytes(&insert).map(|_| ()), Err(AssembleError::UnknownRelation(7)));
    assembler.push_bytes(&describe(&schema)).expect("a relation");
    assert_eq!(assembler.push_bytes(&insert).map(|_| ()), Err(AssembleError::OutsideTransaction));
    assembler.push_bytes(&encoder::begin(Lsn(5), 1)).expect("a begin");
    assert_eq!(
        assembler.push_bytes(&encoder::insert(7, &[Cell::Null])).map(|_| ()),
        Err(AssembleError::WrongColumns(7, 1))
    );
    assert_eq!(assembler.push_bytes(&encoder::begin(Lsn(6), 2)).map(|_| ()), Err(AssembleError::NestedTransaction));
    assert_eq!(assembler.push_bytes(&encoder::commit(Lsn(6), Lsn(7))).map(|_| ()), Err(AssembleError::WrongCommit));
}

#[test]
fn a_transaction_may_change_many_tables_in_turn() {
    let mut assembler = Assembler::new(1 << 20);
    let schemas: Vec<_> = (1..=20).map(|oid| schema(oid, by_id())).collect();
    let mut messages: Vec<Vec<u8>> = schemas.iter().map(|schema| describe(schema)).collect();
    for id in 0..3 {
        for schema in &schemas {
            let mut changes = stream(schema);
            changes.insert(&row(id, "in turn"));
            messages.append(&mut changes.messages);
        }
    }
    let made = transaction(&mut assembler, 100, 2000, &messages);
    assert_eq!(made.tables.iter().map(|table| table.relation.0).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
    assert!(made.tables.iter().all(|table| table.changes.len() == 3));
}

#[test]
fn a_large_transaction_is_applied_as_a_whole() {
    let schema = schema(7, by_id());
    let (mirror, _) = mirror_of(&schema, &[]);
    let mut assembler = Assembler::new(1 << 30);
    assembler.push_bytes(&describe(&schema)).expect("a relation");
    let mut changes = stream(&schema);
    // Keys in no order; each row is then updated, and every third one deleted.
    let ids: Vec<i32> = (0..100_000).map(|number: i32| number.wrapping_mul(0x9e37_79b1_u32.cast_signed())).collect();
    ids.iter().for_each(|id| changes.insert(&row(*id, "first")));
    mirror.apply(transaction(&mut assembler, 100, 2000, &changes.messages));
    let mut changes = stream(&schema);
    for (number, id) in ids.iter().enumerate() {
        changes.update(&row(*id, "first"), &row(*id, "second"), false);
        if number % 3 == 0 {
            changes.delete(&row(*id, "second"));
        }
    }
    mirror.apply(transaction(&mut assembler, 101, 2100, &changes.messages));
    let version = table(&mirror, &seen(102, &[]), 7).expect("mirrored");
    assert_eq!(version.rows, 66_666);
    assert!(rows(&version).iter().all(|row| row.note.as_deref() == Some("second")));
    assert_eq!(version.find(&[0], &[Value::Int4(ids[4])]).len(), 1);
    assert_eq!(version.find(&[0], &[Value::Int4(ids[3])]).len(), 0);
    let stored: usize = version.chunks.iter().map(|chunk| chunk.chunk.rows).sum();
    assert!(stored < 140_000, "{stored} rows stored");
}

#[test]
fn transaction_ids_of_the_stream_are_widened_across_the_epoch() {
    let schema = schema(7, by_id());
    let epoch = 1u64 << 32;
    let mirror = Mirror::new(MirrorLimits::default());
    copy_in(&mirror, &schema, &[], seen(epoch - 2, &[])).expect("copied");
    let mut assembler = Assembler::new(1 << 20);
    assembler.push_bytes(&describe(&schema)).expect("a relation");
    for (number, xid) in [u32::MAX - 1, u32::MAX, 3, 4].into_iter().enumerate() {
        let mut changes = stream(&schema);
        changes.insert(&row(number as i32, "new"));
        mirror.apply(transaction(&mut assembler, xid, 2000 + 100 * number as u64, &changes.messages));
    }
    let count = |visible: VisibilitySnapshot| table(&mirror, &visible, 7).map(|version| version.rows);
    assert_eq!(count(seen(epoch - 2, &[])), Ok(0));
    assert_eq!(count(seen(epoch, &[epoch - 1])), Ok(1));
    assert_eq!(count(seen(epoch + 4, &[])), Ok(3));
    assert_eq!(count(seen(epoch + 5, &[])), Ok(4));
    assert_eq!(count(seen(epoch + 5, &[epoch - 1])), Err(UpstreamReason::NotAPrefix));
}

/// Transfers between two tables: no reader ever sees money made or lost.
#[test]
fn readers_see_whole_transactions_while_they_are_applied() {
    use std::sync::atomic::{AtomicU64, Ordering};
    const TRANSACTIONS: u32 = 400;
    let schemas = [schema(1, by_id()), schema(2, by_id())];
    let account = |kind| Row { id: 1, kind, note: None };
    let mirror = Mirror::new(MirrorLimits::default());
    let mut assembler = Assembler::new(1 << 20);
    for schema in &schemas {
        copy_in(&mirror, schema, &[account(1_000)], seen(100, &[])).expect("copied");
        assembler.push_bytes(&describe(schema)).expect("a relation");
    }
    let catalog = catalog(&mirror);
    let xmax = AtomicU64::new(100);
    let read = || {
        let visible = seen(xmax.load(Ordering::Acquire), &[]);
        let snapshot = match mirror.snapshot_at(&visible, Lsn(0), &[RelationId(1), RelationId(2)], &catalog) {
            Ok(snapshot) => snapshot,
            // Retired meanwhile.
            Err(reason) => return assert_eq!(reason, UpstreamReason::NotAPrefix),
        };
        let total: i32 = snapshot.tables.values().flat_map(|version| rows(version)).map(|row| row.kind).sum();
        assert_eq!(total, 2_000);
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while xmax.load(Ordering::Acquire) < u64::from(100 + TRANSACTIONS) {
                    read();
                }
            });
        }
        for number in 0..TRANSACTIONS as i32 {
            let mut messages = Vec::new();
            for (schema, sign) in schemas.iter().zip([-1, 1]) {
                let mut changes = stream(schema);
                changes.update(&account(1_000 + sign * number), &account(1_000 + sign * (number + 1)), false);
                messages.append(&mut changes.messages);
            }
            let number = number as u32;
            mirror.apply(transaction(&mut assembler, 100 + number, 2000 + 100 * u64::from(number), &messages));
            xmax.store(u64::from(101 + number), Ordering::Release);
            if number.is_multiple_of(16) {
                mirror.retire(&seen(u64::from(101 + number), &[]));
            }
        }
    });
    read();
    assert_eq!(mirror.statuses().iter().map(|status| status.rows).sum::<usize>(), 2);
}
