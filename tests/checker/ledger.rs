//! What is known of the registers and lists: acknowledged values, what readers have seen, and that all moments seen are
//! in one order.
//!
//! A *vector* is the value of every slot at one moment. Slots only grow, and PostgreSQL's snapshots follow each other, so
//! of two vectors that anybody saw one is nowhere smaller: two that are not so comparable are a long fork.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicI64;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Each register has a writer of its own.
pub(crate) const REGISTERS: usize = 8;
/// The register's value (kept in two tables) and its `solo` value.
pub(crate) const SLOTS: usize = 2 * REGISTERS;
/// Registers from this one on are written through freshet.
pub(crate) const FIRST_THROUGH: usize = 4;

pub(crate) type Vector = [i64; SLOTS];

/// Vectors kept to compare with.
const VECTORS_MAX: usize = 100_000;
/// How long the moment of an acknowledgement is remembered.
const HISTORY: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Slot {
    /// Values, and from when on reads must show them; oldest first.
    history: Mutex<VecDeque<(i64, Instant)>>,
}

#[derive(Default)]
pub(crate) struct Registers {
    slots: [Slot; SLOTS],
    /// The newest values that any finished read has shown.
    seen: Mutex<Vector>,
    /// Vectors by the sum of their values.
    chain: Mutex<BTreeMap<i64, Vector>>,
}

/// What was known when a read began.
pub(crate) struct Floor {
    pub(crate) at: Instant,
    pub(crate) acknowledged: Vector,
    /// Likewise, with what may be missed.
    pub(crate) newest: Vector,
    pub(crate) seen: Vector,
}

impl Registers {
    /// It may be missed for so long (`grace`).
    pub(crate) fn acknowledge(&self, slot: usize, value: i64, grace: Duration) {
        let now = Instant::now();
        let mut history = locked(&self.slots[slot].history);
        // Who shows this value shows those before it.
        history.iter_mut().for_each(|(_, from)| *from = (*from).min(now + grace));
        history.push_back((value, now + grace));
        while history.get(1).is_some_and(|(_, from)| *from < now.checked_sub(HISTORY).unwrap_or(now)) {
            history.pop_front();
        }
    }

    /// Nothing that was acknowledged may be missed any more.
    pub(crate) fn count_at_once(&self) {
        let now = Instant::now();
        for slot in &self.slots {
            locked(&slot.history).iter_mut().for_each(|(_, from)| *from = (*from).min(now));
        }
    }

    pub(crate) fn floor(&self) -> Floor {
        let at = Instant::now();
        let acknowledged = std::array::from_fn(|slot| self.acknowledged_at(slot, at).unwrap_or_default());
        let newest = |slot: usize| locked(&self.slots[slot].history).back().map(|(value, _)| *value);
        let newest = std::array::from_fn(|slot| newest(slot).unwrap_or_default());
        Floor { at, acknowledged, newest, seen: *locked(&self.seen) }
    }

    /// The newest value acknowledged at or before `at`, as far as remembered.
    pub(crate) fn acknowledged_at(&self, slot: usize, at: Instant) -> Option<i64> {
        let history = locked(&self.slots[slot].history);
        history.iter().rev().find(|(_, acknowledged)| *acknowledged <= at).map(|(value, _)| *value)
    }

    /// When the first value above `value` was acknowledged, as far as remembered.
    pub(crate) fn overtaken_at(&self, slot: usize, value: i64) -> Option<Instant> {
        let history = locked(&self.slots[slot].history);
        history.iter().find(|(acknowledged, _)| *acknowledged > value).map(|(_, at)| *at)
    }

    pub(crate) fn note_seen(&self, vector: &Vector) {
        let mut seen = locked(&self.seen);
        for (newest, value) in seen.iter_mut().zip(vector) {
            *newest = (*newest).max(*value);
        }
    }

    /// Puts a vector among all those seen; an error is one that it cannot be ordered with.
    pub(crate) fn order(&self, vector: &Vector) -> Result<(), Box<Vector>> {
        let sum = vector.iter().sum::<i64>();
        let mut chain = locked(&self.chain);
        let below = chain.range(..=sum).next_back().map(|(_, vector)| *vector);
        let above = chain.range(sum..).next().map(|(_, vector)| *vector);
        if let Some(below) = below.filter(|below| below.iter().zip(vector).any(|(below, value)| below > value)) {
            return Err(below.into());
        }
        if let Some(above) = above.filter(|above| above.iter().zip(vector).any(|(above, value)| above < value)) {
            return Err(above.into());
        }
        chain.insert(sum, *vector);
        if chain.len() > VECTORS_MAX {
            chain.pop_first();
        }
        Ok(())
    }
}

/// One list: numbers appended by its only writer, the oldest deleted now and then.
#[derive(Default)]
pub(crate) struct List {
    pub(crate) acknowledged: Mutex<Acknowledged>,
    /// The bound of a deletion that was begun.
    pub(crate) deleting: AtomicI64,
}

#[derive(Default)]
pub(crate) struct Acknowledged {
    /// Appended; the deleted ones are taken out.
    pub(crate) items: BTreeSet<i64>,
    /// Everything up to here was deleted.
    pub(crate) deleted: i64,
}

/// Items with this remainder by ten belong to transactions that are rolled back.
pub(crate) const ABORTED: i64 = 7;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
