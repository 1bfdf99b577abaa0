//! A [`Snapshot`]: the tables and the catalog that one statement sees. Never changes once made.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::{Catalog, RelationId};
use crate::table::TableVersion;
use crate::types::Lsn;

/// Tables at one moment of upstream (exactly the transactions visible to one `pg_current_snapshot()`).
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Everything up to here had been applied when it was made.
    pub applied: Lsn,
    pub catalog: Arc<Catalog>,
    /// Only tables whose state at this moment is known; others are answered upstream.
    pub tables: HashMap<RelationId, Arc<TableVersion>>,
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
    fn widening_crosses_the_epoch_in_both_directions() {
        let before = VisibilitySnapshot { xmin: 0, xmax: (1 << 32) - 5, in_progress: vec![] };
        assert_eq!(before.widen(3), (1 << 32) + 3);
        let after = VisibilitySnapshot { xmin: 0, xmax: (1 << 32) + 5, in_progress: vec![] };
        assert_eq!(after.widen(u32::MAX), (1 << 32) - 1);
        assert_eq!(after.widen(7), (1 << 32) + 7);
    }
}
