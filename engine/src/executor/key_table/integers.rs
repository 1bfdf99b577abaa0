//! Ids for 64-bit integers: direct addressing while the keys lie close together, else a hash table.

use arrow::buffer::NullBuffer;
use hashbrown::HashTable;

use super::{KeyTable, Purpose};

/// Slots that a small table may always have: 16 KiB.
const DENSE_SLOTS_FREE: usize = 4_096;
/// Slots per expected row beyond that, and slots at most (64 MiB).
const DENSE_SLOTS_PER_ROW: usize = 8;
const DENSE_SLOTS_MAX: usize = 16 << 20;

/// Bits per key of a [`Presence`], and bits at most (8 MiB).
const PRESENCE_BITS_PER_KEY: usize = 512;
const PRESENCE_BITS_MAX: usize = 64 << 20;

#[derive(Clone, Debug)]
pub(super) struct IntegerMap {
    keys: Keys,
    /// Of hashed keys that are only looked up by now.
    presence: Option<Presence>,
    null: Option<u32>,
    next: u32,
    dense_max: usize,
}

#[derive(Clone, Debug)]
enum Keys {
    /// Slot `key - base`: id + 1, or 0.
    Dense {
        base: i64,
        slots: Vec<u32>,
    },
    Hashed(HashTable<(i64, u32)>),
}

/// Bit `key - base`: whether there is that key. Most keys that are looked for are often not there: a bit says so without the hash
/// table's cache misses, and rows that are sorted by the key, as those of an order's lines, ask for neighbouring bits.
#[derive(Clone, Debug)]
struct Presence {
    base: i64,
    bits: Vec<u64>,
}

impl Presence {
    /// None: the keys lie too far apart.
    fn of(keys: &HashTable<(i64, u32)>) -> Option<Self> {
        let base = keys.iter().map(|(key, _)| *key).min()?;
        let last = keys.iter().map(|(key, _)| *key).max()?;
        let bits = usize::try_from(i128::from(last) - i128::from(base) + 1).ok()?;
        if bits > keys.len().saturating_mul(PRESENCE_BITS_PER_KEY).min(PRESENCE_BITS_MAX) {
            return None;
        }
        let mut presence = Self { base, bits: vec![0; bits.div_ceil(64)] };
        for (key, _) in keys {
            let at = key.wrapping_sub(base) as usize;
            presence.bits[at / 64] |= 1 << (at % 64);
        }
        Some(presence)
    }

    #[inline]
    fn has(&self, key: i64) -> bool {
        let at = key.wrapping_sub(self.base) as u64;
        self.bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

impl IntegerMap {
    pub(super) fn new(rows: usize) -> Self {
        let dense_max = rows.saturating_mul(DENSE_SLOTS_PER_ROW).clamp(DENSE_SLOTS_FREE, DENSE_SLOTS_MAX);
        Self { keys: Keys::Dense { base: 0, slots: Vec::new() }, presence: None, null: None, next: 0, dense_max }
    }

    pub(super) fn len(&self) -> usize {
        self.next as usize
    }

    pub(super) fn bytes(&self) -> usize {
        let keys = match &self.keys {
            Keys::Dense { slots, .. } => slots.len() * 4,
            Keys::Hashed(table) => table.capacity() * 18,
        };
        keys + self.presence.as_ref().map_or(0, |presence| presence.bits.len() * 8)
    }

    /// All keys are there: from now on they are looked up, until more are added.
    pub(super) fn settle(&mut self) {
        if let Keys::Hashed(table) = &self.keys {
            self.presence = Presence::of(table);
        }
    }

    pub(super) fn assign<T: Copy + Ord + Into<i64>>(
        &mut self,
        values: &[T],
        nulls: Option<&NullBuffer>,
        purpose: Purpose,
    ) -> Vec<u32> {
        self.presence = None;
        let Some((min, max)) = range(values, nulls) else {
            // Only NULLs.
            let id = self.null_id(values.len(), purpose);
            return vec![id; values.len()];
        };
        self.make_room(min.into(), max.into());
        let null_count = nulls.map_or(0, NullBuffer::null_count);
        if null_count == 0 {
            return self.assign_valid(values);
        }
        let mut ids = Vec::with_capacity(values.len());
        let nulls = nulls.expect("counted above");
        for (row, value) in values.iter().enumerate() {
            ids.push(if nulls.is_valid(row) { self.id_of((*value).into()) } else { self.null_id(1, purpose) });
        }
        ids
    }

    fn assign_valid<T: Copy + Into<i64>>(&mut self, values: &[T]) -> Vec<u32> {
        let mut ids = Vec::with_capacity(values.len());
        match &mut self.keys {
            Keys::Dense { base, slots } => {
                let (base, mut next) = (*base, self.next);
                ids.extend(values.iter().map(|value| {
                    let slot = &mut slots[(*value).into().wrapping_sub(base) as usize];
                    if *slot == 0 {
                        next += 1;
                        *slot = next;
                    }
                    *slot - 1
                }));
                self.next = next;
            }
            Keys::Hashed(_) => ids.extend(values.iter().map(|value| self.id_of((*value).into()))),
        }
        ids
    }

    /// `key` lies in the range that there is room for.
    fn id_of(&mut self, key: i64) -> u32 {
        let next = &mut self.next;
        match &mut self.keys {
            Keys::Dense { base, slots } => {
                let slot = &mut slots[key.wrapping_sub(*base) as usize];
                if *slot == 0 {
                    *next += 1;
                    *slot = *next;
                }
                *slot - 1
            }
            Keys::Hashed(table) => {
                let entry = table.entry(hash(key), |(known, _)| *known == key, |(known, _)| hash(*known));
                entry
                    .or_insert_with(|| {
                        *next += 1;
                        (key, *next - 1)
                    })
                    .get()
                    .1
            }
        }
    }

    fn null_id(&mut self, rows: usize, purpose: Purpose) -> u32 {
        if !purpose.takes_null() || rows == 0 {
            return KeyTable::NONE;
        }
        let next = &mut self.next;
        *self.null.get_or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    pub(super) fn find<T: Copy + Into<i64>>(&self, values: &[T], nulls: Option<&NullBuffer>) -> Vec<u32> {
        let mut ids: Vec<u32> = match &self.keys {
            Keys::Dense { base, slots } => {
                let find = |value: &T| {
                    let offset = (*value).into().wrapping_sub(*base) as u64;
                    // 0 stands for no id and wraps to NONE.
                    slots.get(offset as usize).copied().unwrap_or(0).wrapping_sub(1)
                };
                values.iter().map(find).collect()
            }
            Keys::Hashed(table) => match &self.presence {
                None => values.iter().map(|value| find_hashed(table, (*value).into())).collect(),
                Some(presence) => {
                    let find = |key: i64| if presence.has(key) { find_hashed(table, key) } else { KeyTable::NONE };
                    values.iter().map(|value| find((*value).into())).collect()
                }
            },
        };
        if let Some(nulls) = nulls {
            let null = self.null.unwrap_or(KeyTable::NONE);
            ids.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, id)| *id = null);
        }
        ids
    }

    #[cfg(test)]
    pub(super) fn has_presence(&self) -> bool {
        self.presence.is_some()
    }

    /// The id of NULL, where it is a key that has been met.
    pub(super) fn null(&self) -> Option<u32> {
        self.null
    }

    pub(super) fn find_one(&self, key: i64) -> u32 {
        match &self.keys {
            Keys::Dense { base, slots } => {
                slots.get(key.wrapping_sub(*base) as u64 as usize).copied().unwrap_or(0).wrapping_sub(1)
            }
            Keys::Hashed(table) => find_hashed(table, key),
        }
    }

    /// The keys and their ids, and the id of NULL.
    pub(super) fn entries(&self) -> (Vec<(i64, u32)>, Option<u32>) {
        let entries = match &self.keys {
            Keys::Dense { base, slots } => {
                let used = slots.iter().enumerate().filter(|(_, slot)| **slot != 0);
                used.map(|(offset, slot)| (base.wrapping_add(offset as i64), *slot - 1)).collect()
            }
            Keys::Hashed(table) => table.iter().copied().collect(),
        };
        (entries, self.null)
    }

    /// Afterwards every key of the range has a slot, or keys are hashed.
    fn make_room(&mut self, min: i64, max: i64) {
        let Keys::Dense { base, slots } = &mut self.keys else { return };
        let (low, high) =
            if slots.is_empty() { (min, max) } else { (min.min(*base), max.max(*base + (slots.len() as i64 - 1))) };
        let needed = (i128::from(high) - i128::from(low) + 1) as u128;
        if needed <= slots.len() as u128 {
            return;
        }
        if needed <= self.dense_max as u128 {
            let needed = needed as usize;
            let shift = if slots.is_empty() { 0 } else { (*base - low) as usize };
            // Ascending keys would otherwise move the table for every batch.
            let up_to_max = (i128::from(i64::MAX) - i128::from(low) + 1) as u128;
            let roomy = (needed + needed / 2).min(self.dense_max).min(up_to_max.min(1 << 32) as usize);
            let mut wider = vec![0; roomy.max(needed)];
            wider[shift..shift + slots.len()].copy_from_slice(slots);
            (*base, *slots) = (low, wider);
            return;
        }
        let mut table = HashTable::with_capacity(self.next as usize * 2);
        for (key, id) in self.entries().0 {
            table.insert_unique(hash(key), (key, id), |(known, _)| hash(*known));
        }
        self.keys = Keys::Hashed(table);
    }
}

fn find_hashed(table: &HashTable<(i64, u32)>, key: i64) -> u32 {
    table.find(hash(key), |(known, _)| *known == key).map_or(KeyTable::NONE, |(_, id)| *id)
}

/// Smallest and largest of the values that are not NULL.
fn range<T: Copy + Ord>(values: &[T], nulls: Option<&NullBuffer>) -> Option<(T, T)> {
    match nulls {
        None => {
            let first = *values.first()?;
            Some(values.iter().fold((first, first), |(min, max), value| (min.min(*value), max.max(*value))))
        }
        Some(nulls) => {
            let mut rows = nulls.valid_indices();
            let first = values[rows.next()?];
            Some(rows.fold((first, first), |(min, max), row| (min.min(values[row]), max.max(values[row]))))
        }
    }
}

/// A full multiplication folded: every bit of the key reaches the bits that the table uses.
pub(super) fn hash(key: i64) -> u64 {
    let product = u128::from(key.cast_unsigned() ^ 0x9e37_79b9_7f4a_7c15) * 0xda94_2042_e4dd_58b5;
    (product >> 64) as u64 ^ product as u64
}
