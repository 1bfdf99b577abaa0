//! Folds the ids of two key columns into one id per distinct pair: a matrix while it is small, else a hash table.

use hashbrown::HashTable;

use super::KeyTable;
use super::integers::hash;

/// Cells of the matrix at most (4 MiB).
const MATRIX_CELLS_MAX: usize = 1 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct PairMap {
    /// By id.
    pairs: Vec<(u32, u32)>,
    cells: Cells,
}

#[derive(Clone, Debug)]
enum Cells {
    /// Row `left`, column `right`: id + 1, or 0. `columns` is a power of two.
    Matrix {
        rows: usize,
        columns: usize,
        cells: Vec<u32>,
    },
    Hashed(HashTable<(u64, u32)>),
}

impl Default for Cells {
    fn default() -> Self {
        Self::Matrix { rows: 0, columns: 0, cells: Vec::new() }
    }
}

impl PairMap {
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.pairs.len() * 8
            + match &self.cells {
                Cells::Matrix { cells, .. } => cells.len() * 4,
                Cells::Hashed(table) => table.capacity() * 18,
            }
    }

    /// Ids of the pairs (`left[i]`, `right[i]`), in place of `left`.
    pub(super) fn assign(&mut self, mut left: Vec<u32>, right: &[u32]) -> Vec<u32> {
        let largest =
            |ids: &[u32]| ids.iter().filter(|id| **id != KeyTable::NONE).max().map_or(0, |id| *id as usize + 1);
        self.make_room(largest(&left), largest(right));
        for (left, right) in left.iter_mut().zip(right) {
            *left = if *left == KeyTable::NONE || *right == KeyTable::NONE {
                KeyTable::NONE
            } else {
                self.id_of(*left, *right)
            };
        }
        left
    }

    fn id_of(&mut self, left: u32, right: u32) -> u32 {
        let next = self.pairs.len() as u32;
        let id = match &mut self.cells {
            Cells::Matrix { columns, cells, .. } => {
                let cell = &mut cells[left as usize * *columns + right as usize];
                if *cell == 0 {
                    *cell = next + 1;
                }
                *cell - 1
            }
            Cells::Hashed(table) => {
                let key = joined(left, right);
                let entry = table.entry(hash_pair(key), |(known, _)| *known == key, |(known, _)| hash_pair(*known));
                entry.or_insert((key, next)).get().1
            }
        };
        if id == next {
            self.pairs.push((left, right));
        }
        id
    }

    pub(super) fn find(&self, mut left: Vec<u32>, right: &[u32]) -> Vec<u32> {
        for (left, right) in left.iter_mut().zip(right) {
            *left = if *left == KeyTable::NONE || *right == KeyTable::NONE {
                KeyTable::NONE
            } else {
                self.find_one(*left, *right)
            };
        }
        left
    }

    fn find_one(&self, left: u32, right: u32) -> u32 {
        match &self.cells {
            Cells::Matrix { rows, columns, cells } => {
                if left as usize >= *rows || right as usize >= *columns {
                    return KeyTable::NONE;
                }
                cells[left as usize * *columns + right as usize].wrapping_sub(1)
            }
            Cells::Hashed(table) => {
                let key = joined(left, right);
                table.find(hash_pair(key), |(known, _)| *known == key).map_or(KeyTable::NONE, |(_, id)| *id)
            }
        }
    }

    /// Room for ids below `lefts` and `rights`.
    fn make_room(&mut self, lefts: usize, rights: usize) {
        let Cells::Matrix { rows, columns, .. } = &self.cells else { return };
        if lefts <= *rows && rights <= *columns {
            return;
        }
        let rows = lefts.max(*rows).next_power_of_two();
        let columns = rights.max(*columns).next_power_of_two();
        if rows.saturating_mul(columns) <= MATRIX_CELLS_MAX {
            let mut cells = vec![0; rows * columns];
            for (id, (left, right)) in self.pairs.iter().enumerate() {
                cells[*left as usize * columns + *right as usize] = id as u32 + 1;
            }
            self.cells = Cells::Matrix { rows, columns, cells };
            return;
        }
        let mut table = HashTable::with_capacity(self.pairs.len() * 2);
        for (id, (left, right)) in self.pairs.iter().enumerate() {
            let key = joined(*left, *right);
            table.insert_unique(hash_pair(key), (key, id as u32), |(known, _)| hash_pair(*known));
        }
        self.cells = Cells::Hashed(table);
    }
}

fn joined(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

fn hash_pair(key: u64) -> u64 {
    hash(key.cast_signed())
}
