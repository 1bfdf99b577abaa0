//! A [`Snapshot`]: the tables and the catalog that one statement sees. Never changes once made.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::catalog::{Catalog, Leaf, Partitioned, RelationId};
use crate::reason::UpstreamReason;
use crate::table::{Generation, TableVersion};
use crate::types::Lsn;

/// Tables at one moment of upstream (exactly the transactions visible to one `pg_current_snapshot()`).
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Everything up to here had been applied when it was made.
    pub applied: Lsn,
    pub catalog: Arc<Catalog>,
    /// Only tables whose state at this moment is known; others are answered upstream.
    pub tables: HashMap<RelationId, Arc<TableVersion>>,
    /// Tables whose rows are not here, but when they have last changed.
    pub tracked: HashMap<RelationId, Generation>,
}

impl Snapshot {
    /// The moment of another, with these tables of it.
    pub fn with_tables(&self, tables: HashMap<RelationId, Arc<TableVersion>>) -> Self {
        Self { applied: self.applied, catalog: Arc::clone(&self.catalog), tables, tracked: HashMap::new() }
    }

    /// What is the same at two moments of one catalog's version exactly if the relation's rows are. None: they are not known
    /// here.
    pub fn generation(&self, relation: RelationId) -> Option<Generation> {
        let version = self.tables.get(&relation).map(|version| version.generation);
        let materialized = || self.catalog.materialized.get(&relation).map(|view| Generation(Lsn(view.contents)));
        version.or_else(|| self.tracked.get(&relation).copied()).or_else(materialized)
    }

    /// Whether it is known of a table that is no union of others when it has last changed.
    pub fn knows(&self, relation: RelationId) -> bool {
        self.tables.contains_key(&relation) || self.tracked.contains_key(&relation)
    }
}

/// Puts partitioned tables together from their leaves; remembers the last one of each, for what is built upon it
/// (indexes, join sides) to be found again. One is of use as long as all its leaves are somebody's: it holds on to their
/// rows, but not to them, so that [`Self::sweep`] can tell when the mirror has let go of one.
#[derive(Debug, Default)]
pub struct Unions {
    made: Mutex<HashMap<RelationId, Made>>,
}

#[derive(Debug)]
struct Made {
    leaves: Vec<Weak<TableVersion>>,
    of: Arc<Partitioned>,
    union: Arc<TableVersion>,
}

impl Unions {
    /// The snapshot with the partitioned ones of `relations` as tables; without those that have tracked leaves. An error: of a
    /// leaf nothing is known.
    pub fn complete(&self, snapshot: Arc<Snapshot>, relations: &[RelationId]) -> Result<Arc<Snapshot>, UpstreamReason> {
        let wanted = relations.iter().filter_map(|relation| snapshot.catalog.partitioned.get(relation));
        let mut unions = Vec::new();
        for partitioned in wanted {
            if !partitioned.leaves.iter().all(|leaf| snapshot.knows(leaf.table)) {
                return Err(UpstreamReason::TableNotMirrored("a partition is not mirrored (yet)".into()));
            }
            let leaf = |leaf: &Leaf| snapshot.tables.get(&leaf.table).map(Arc::clone);
            let leaves: Option<Vec<_>> = partitioned.leaves.iter().map(leaf).collect();
            unions.extend(leaves.map(|leaves| (partitioned.schema.id, self.union(partitioned, leaves))));
        }
        if unions.is_empty() {
            return Ok(snapshot);
        }
        let mut completed = Arc::unwrap_or_clone(snapshot);
        completed.tables.extend(unions);
        Ok(Arc::new(completed))
    }

    fn union(&self, of: &Arc<Partitioned>, leaves: Vec<Arc<TableVersion>>) -> Arc<TableVersion> {
        let mut made = self.made.lock();
        if let Some(last) = made.get(&of.schema.id)
            && (Arc::ptr_eq(&last.of, of) || last.of == *of)
            && last.leaves.len() == leaves.len()
            // No other version can have the address while it is remembered.
            && last.leaves.iter().zip(&leaves).all(|(last, leaf)| std::ptr::eq(last.as_ptr(), Arc::as_ptr(leaf)))
        {
            return Arc::clone(&last.union);
        }
        let parts = leaves.iter().zip(&of.leaves).map(|(leaf, place)| (&**leaf, &place.columns[..]));
        let union = Arc::new(TableVersion::union(Arc::clone(&of.schema), parts));
        let leaves = leaves.iter().map(Arc::downgrade).collect();
        let replaced = made.insert(of.schema.id, Made { leaves, of: Arc::clone(of), union: Arc::clone(&union) });
        drop(made);
        drop(replaced);
        union
    }

    /// Lets go of those that nobody can ask for any more: a leaf was forgotten, demoted or changed, or the table is not in the
    /// catalog as it was.
    pub fn sweep(&self, catalog: &Catalog) {
        let is_of_use = |of: &RelationId, made: &Made| {
            catalog.partitioned.get(of).is_some_and(|now| Arc::ptr_eq(now, &made.of) || *now == made.of)
                && made.leaves.iter().all(|leaf| leaf.strong_count() > 0)
        };
        let mut made = self.made.lock();
        let swept: Vec<Made> = made.extract_if(|of, made| !is_of_use(of, made)).map(|(_, made)| made).collect();
        drop(made);
        drop(swept);
    }

    /// Lets go of what was put together: the tables are gone, or will be other ones.
    pub fn clear(&self) {
        let cleared = std::mem::take(&mut *self.made.lock());
        drop(cleared);
    }
}

/// `pg_current_snapshot()`: which transactions are visible (PostgreSQL: Transaction ID and Snapshot Information Functions).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VisibilitySnapshot {
    pub xmin: u64,
    pub xmax: u64,
    /// In progress between xmin and xmax, ascending, top-level only.
    pub in_progress: Vec<u64>,
}

impl VisibilitySnapshot {
    /// Whether a committed transaction is visible (the caller knows that it committed).
    pub fn sees(&self, xid: u64) -> bool {
        xid < self.xmin || (xid < self.xmax && self.in_progress.binary_search(&xid).is_err())
    }

    /// Whether every transaction that `earlier` sees is seen here too (as it is in any later snapshot).
    pub fn sees_all_of(&self, earlier: &Self) -> bool {
        let hides = |xid: &u64| *xid < earlier.xmax && earlier.in_progress.binary_search(xid).is_err();
        self.xmax >= earlier.xmax && !self.in_progress.iter().any(hides)
    }

    /// The text form `xmin:xmax:xip,xip,...`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let xmin = parts.next()?.parse().ok()?;
        let xmax = parts.next()?.parse().ok()?;
        let list = parts.next()?;
        let mut in_progress = Vec::new();
        for xid in list.split(',').filter(|part| !part.is_empty()) {
            in_progress.push(xid.parse().ok()?);
        }
        in_progress.sort_unstable();
        parts.next().is_none().then_some(Self { xmin, xmax, in_progress })
    }

    /// The 64-bit transaction id that a 32-bit one from the stream stands for: the one nearest to xmax
    /// (both are within 2^31 of each other; PostgreSQL: Preventing Transaction ID Wraparound Failures).
    pub fn widen(&self, xid: u32) -> u64 {
        let distance = xid.wrapping_sub(self.xmax as u32) as i32;
        self.xmax.wrapping_add_signed(i64::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{ReplicaIdentity, TableSchema};

    #[test]
    fn a_snapshot_sees_what_is_neither_in_progress_nor_later() {
        let snapshot = VisibilitySnapshot::parse("10:20:12,15").expect("well-formed");
        let seen: Vec<u64> = (8..22).filter(|xid| snapshot.sees(*xid)).collect();
        assert_eq!(seen, [8, 9, 10, 11, 13, 14, 16, 17, 18, 19]);
        assert!(VisibilitySnapshot::parse("10:20").is_none());
        assert!(VisibilitySnapshot::parse("10:20:x").is_none());
        assert!(VisibilitySnapshot::parse("10:20:").expect("empty list").in_progress.is_empty());
    }

    #[test]
    fn a_union_is_remembered_as_long_as_its_leaves_and_its_table_are_there() {
        let schema = |id| TableSchema {
            id: RelationId(id),
            schema: "public".into(),
            name: "t".into(),
            columns: Vec::new(),
            primary_key: Vec::new(),
            identity: ReplicaIdentity::Full,
        };
        let leaf = |id, lsn| Arc::new(TableVersion::empty(Arc::new(schema(id)), Generation(Lsn(lsn))));
        let (root, ids) = (RelationId(1), [RelationId(2), RelationId(3)]);
        let leaves = ids.map(|table| Leaf { table, columns: Vec::new() });
        let schema = Arc::new(schema(1));
        let partitioned = Partitioned { schema, levels: vec![root], leaves: leaves.into() };
        let partitioned = HashMap::from([(root, Arc::new(partitioned))]);
        let catalog = Arc::new(Catalog { partitioned, ..Catalog::default() });
        let unions = Unions::default();
        let mut tables = HashMap::from([(ids[0], leaf(2, 10)), (ids[1], leaf(3, 10))]);
        let union = |tables: &HashMap<RelationId, Arc<TableVersion>>| {
            let snapshot = Snapshot { catalog: Arc::clone(&catalog), tables: tables.clone(), ..Snapshot::default() };
            let completed = unions.complete(Arc::new(snapshot), &[root]).expect("all are known");
            Arc::downgrade(&completed.tables[&root])
        };
        let made = union(&tables);
        unions.sweep(&catalog);
        assert!(made.strong_count() > 0 && Weak::ptr_eq(&made, &union(&tables)), "put together once");
        tables.insert(ids[1], leaf(3, 20));
        unions.sweep(&catalog);
        assert_eq!(made.strong_count(), 0, "a leaf is gone");
        let made = union(&tables);
        unions.sweep(&catalog);
        assert!(made.strong_count() > 0);
        unions.sweep(&Catalog::default());
        assert_eq!(made.strong_count(), 0, "the table is gone");
    }

    #[test]
    fn widening_crosses_the_epoch_in_both_directions() {
        let before = VisibilitySnapshot { xmin: 0, xmax: (1 << 32) - 5, in_progress: vec![] };
        assert_eq!(before.widen(3), (1 << 32) + 3);
        let after = VisibilitySnapshot { xmin: 0, xmax: (1 << 32) + 5, in_progress: vec![] };
        assert_eq!(after.widen(u32::MAX), (1 << 32) - 1);
        assert_eq!(after.widen(7), (1 << 32) + 7);
    }
}
