//! [`KeyChanges`]: when rows with a key have last changed, in constant time and without a lock.
//!
//! Shared by all versions of a table from one copy on. Columns are followed from when somebody first asks: for each there is
//! a fixed number of places, and a row's change raises the place of its key, before the version with that change can be
//! read. Keys that share a place change together, as far as is known here: in doubt something changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use arrow::array::Array;
use parking_lot::Mutex;

use super::Chunk;
use crate::planted::{Bug, is_planted};
use crate::table::Generation;
use crate::types::access::{TextColumn, value_at};
use crate::types::{KeyHash, PgType};

/// Columns followed of one table. Statements tell rows of a table apart by one or two.
const COLUMNS_MAX: usize = 4;
/// Bytes of the log. A column that nobody has asked by for so long goes for another.
const UNUSED_FOR: u64 = 16 << 20;
/// Places of a column: about one for each row, so that few changes are taken for another key's.
const PLACES_MIN: usize = 1 << 12;
const PLACES_MAX: usize = 1 << 16;
/// A transaction that changes more rows counts for all keys: the change log tells more, for those who ask.
const ROWS_MAX: usize = 4_096;

#[derive(Debug)]
pub struct KeyChanges {
    columns: ArcSwap<Vec<Arc<Followed>>>,
    /// The generation up to which changes have been entered. Held while they are, and while a column is added: each change is
    /// either before a column's `since` or entered for it.
    entered: Mutex<Generation>,
}

/// One column.
#[derive(Debug)]
struct Followed {
    /// Index into the table's schema.
    column: usize,
    /// Changes up to here are not entered.
    since: Generation,
    /// Everything changed last.
    all: AtomicU64,
    /// The generation known to whoever asked last.
    asked: AtomicU64,
    places: Box<[AtomicU64]>,
}

impl KeyChanges {
    /// Of a table that has this generation.
    pub fn new(generation: Generation) -> Self {
        Self { columns: ArcSwap::default(), entered: Mutex::new(generation) }
    }

    /// Whether no row whose `column` is one of `keys` has changed after `known`, in any version that can be read by now. None:
    /// the column is not followed, or not since then.
    pub fn is_unchanged(&self, column: usize, keys: &[KeyHash], known: Generation) -> Option<bool> {
        let columns = self.columns.load();
        let followed = columns.iter().find(|followed| followed.column == column)?;
        followed.asked.store(known.0.0, Ordering::Relaxed);
        (known >= followed.since).then(|| {
            let is_old = |place: &AtomicU64| place.load(Ordering::SeqCst) <= known.0.0;
            is_old(&followed.all) && keys.iter().all(|key| is_old(&followed.places[followed.place(*key)]))
        })
    }

    /// From here on the column is followed, unless that many are in use. `rows`: of the table, about.
    pub fn follow(&self, column: usize, rows: usize) {
        let is_followed = |columns: &[Arc<Followed>]| columns.iter().any(|followed| followed.column == column);
        if is_followed(&self.columns.load()) {
            return;
        }
        let entered = self.entered.lock();
        let mut columns = Vec::clone(&self.columns.load());
        if is_followed(&columns) {
            return;
        }
        if columns.len() >= COLUMNS_MAX {
            let asked = |followed: &Arc<Followed>| followed.asked.load(Ordering::Relaxed);
            let Some(oldest) = (0..columns.len()).min_by_key(|at| asked(&columns[*at])) else { return };
            if asked(&columns[oldest]).saturating_add(UNUSED_FOR) > entered.0.0 {
                return;
            }
            columns.remove(oldest);
        }
        let places = rows.clamp(PLACES_MIN, PLACES_MAX).next_power_of_two();
        let places = std::iter::repeat_with(AtomicU64::default).take(places).collect();
        let asked = AtomicU64::new(entered.0.0);
        columns.push(Arc::new(Followed { column, since: *entered, all: AtomicU64::default(), asked, places }));
        self.columns.store(Arc::new(columns));
    }

    /// A change that leads to `generation`: these rows go, or come. None: it is not known which.
    pub fn enter(&self, generation: Generation, rows: Option<[&[Arc<Chunk>]; 2]>) {
        let mut entered = self.entered.lock();
        let is_small = |lists: &[&[Arc<Chunk>]; 2]| {
            lists.iter().flat_map(|chunks| chunks.iter()).map(|chunk| chunk.rows).sum::<usize>() <= ROWS_MAX
        };
        let rows = rows.filter(is_small);
        for followed in self.columns.load().iter() {
            match rows {
                Some(lists) => lists.into_iter().flatten().for_each(|chunk| followed.enter(generation, chunk)),
                None => followed.enter_all(generation),
            }
        }
        *entered = (*entered).max(generation);
    }

    pub fn bytes(&self) -> usize {
        let columns = self.columns.load();
        size_of::<Self>() + columns.iter().map(|followed| followed.places.len() * size_of::<AtomicU64>()).sum::<usize>()
    }
}

impl Followed {
    fn place(&self, key: KeyHash) -> usize {
        key.place(0, self.places.len())
    }

    fn enter(&self, generation: Generation, chunk: &Chunk) {
        if is_planted(Bug::ForgetKey) {
            return;
        }
        let Some(pg_type) = chunk.pg_type(self.column) else { return self.enter_all(generation) };
        let array = &chunk.columns[self.column];
        let is_text = matches!(pg_type, PgType::Text | PgType::Varchar | PgType::Enum(_));
        let texts = is_text.then(|| TextColumn::of(array));
        // No key equals NULL.
        for row in (0..chunk.rows).filter(|row| array.is_valid(*row)) {
            let key = match &texts {
                Some(texts) => Some(KeyHash::of_text(texts.get(row))),
                None => KeyHash::of(&value_at(array.as_ref(), pg_type, row)),
            };
            match key {
                Some(key) => _ = self.places[self.place(key)].fetch_max(generation.0.0, Ordering::SeqCst),
                None => self.enter_all(generation),
            }
        }
    }

    fn enter_all(&self, generation: Generation) {
        self.all.fetch_max(generation.0.0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array};

    use super::*;
    use crate::catalog::{Collation, ColumnSchema, RelationId, ReplicaIdentity, TableSchema};
    use crate::types::{Lsn, PgType};

    fn at(lsn: u64) -> Generation {
        Generation(Lsn(lsn))
    }

    fn rows(keys: &[Option<i32>]) -> Vec<Arc<Chunk>> {
        let column = ColumnSchema {
            name: "id".into(),
            attnum: 1,
            type_oid: 23,
            typmod: -1,
            pg_type: Some(PgType::Int4),
            not_null: false,
            collation: Collation::None,
        };
        let schema = TableSchema {
            id: RelationId(1),
            schema: "public".into(),
            name: "t".into(),
            columns: vec![column],
            primary_key: Vec::new(),
            identity: ReplicaIdentity::Full,
        };
        let array: ArrayRef = Arc::new(Int32Array::from(keys.to_vec()));
        vec![Arc::new(Chunk::new(&schema, vec![array], keys.len()))]
    }

    fn key(number: i64) -> [KeyHash; 1] {
        [KeyHash::of_integer(number)]
    }

    #[test]
    fn a_key_is_unchanged_until_a_row_of_it_goes_or_comes() {
        let changes = KeyChanges::new(at(10));
        assert_eq!(changes.is_unchanged(0, &key(1), at(10)), None, "not followed yet");
        changes.follow(0, 100);
        assert_eq!(changes.is_unchanged(0, &key(1), at(10)), Some(true));
        changes.enter(at(20), Some([&rows(&[Some(2)]), &rows(&[Some(3), None])]));
        assert_eq!(changes.is_unchanged(0, &key(1), at(10)), Some(true));
        assert_eq!(changes.is_unchanged(0, &key(2), at(10)), Some(false), "it went");
        assert_eq!(changes.is_unchanged(0, &key(3), at(10)), Some(false), "it came");
        assert_eq!(changes.is_unchanged(0, &key(3), at(20)), Some(true), "known since");
        assert_eq!(changes.is_unchanged(0, &[key(1)[0], key(3)[0]], at(10)), Some(false));
        assert_eq!(changes.is_unchanged(1, &key(1), at(10)), None, "another column");
        changes.enter(at(30), None);
        assert_eq!(changes.is_unchanged(0, &key(1), at(20)), Some(false), "nobody knows which rows");
        changes.enter(at(40), Some([&[], &rows(&vec![Some(2); ROWS_MAX])]));
        assert_eq!(changes.is_unchanged(0, &key(1), at(30)), Some(true));
        changes.enter(at(50), Some([&[], &rows(&vec![Some(2); ROWS_MAX + 1])]));
        assert_eq!(changes.is_unchanged(0, &key(1), at(40)), Some(false), "too many to be told apart");
    }

    #[test]
    fn what_changed_before_a_column_was_followed_is_not_known() {
        let changes = KeyChanges::new(at(10));
        changes.enter(at(20), Some([&[], &rows(&[Some(1)])]));
        changes.follow(0, 100);
        assert_eq!(changes.is_unchanged(0, &key(1), at(10)), None);
        assert_eq!(changes.is_unchanged(0, &key(1), at(20)), Some(true));
    }

    #[test]
    fn no_more_than_so_many_columns_are_followed() {
        let changes = KeyChanges::new(at(10));
        (0..10).for_each(|column| changes.follow(column, 10_000_000));
        assert_eq!(changes.is_unchanged(COLUMNS_MAX - 1, &key(1), at(10)), Some(true));
        assert_eq!(changes.is_unchanged(COLUMNS_MAX, &key(1), at(10)), None);
        assert!(changes.bytes() <= COLUMNS_MAX * PLACES_MAX * 8 + 200);
        // One that is not asked for goes for another, which is known from then on.
        changes.enter(at(20 + UNUSED_FOR), Some([&[], &[]]));
        let now = at(20 + UNUSED_FOR);
        (1..COLUMNS_MAX).for_each(|column| assert_eq!(changes.is_unchanged(column, &key(1), now), Some(true)));
        changes.follow(COLUMNS_MAX, 100);
        assert_eq!(changes.is_unchanged(COLUMNS_MAX, &key(1), at(10)), None);
        assert_eq!(changes.is_unchanged(COLUMNS_MAX, &key(1), now), Some(true));
        assert_eq!(changes.is_unchanged(0, &key(1), now), None);
        changes.follow(0, 100);
        assert_eq!(changes.is_unchanged(0, &key(1), now), None, "all are in use");
    }
}
