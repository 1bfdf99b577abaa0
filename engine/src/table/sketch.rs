//! [`Sketch`]: about how many different values a column has, for the order of joins.
//!
//! HyperLogLog (Flajolet and others, 2007): of each hash, some bits choose a register, which remembers the longest run
//! of zeros that the other bits have begun with. Sketches of chunks merge into one of the table. The error is some 3 %.

use arrow::array::ArrayRef;

use super::{Chunk, key};
use crate::types::PgType;

const REGISTER_BITS: u32 = 10;
const REGISTERS: usize = 1 << REGISTER_BITS;
/// Chunks of fewer rows, as transactions make them, have no sketch of their own: it would be larger than the rows.
pub const SKETCH_ROWS_MIN: usize = 1_024;

#[derive(Clone, Debug)]
pub struct Sketch {
    registers: Box<[u8; REGISTERS]>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { registers: Box::new([0; REGISTERS]) }
    }
}

impl Sketch {
    pub(super) fn of(array: &ArrayRef, pg_type: PgType, rows: usize) -> Self {
        let mut sketch = Self::default();
        key::hash_rows(&[(array, pg_type)], rows).into_iter().for_each(|hash| sketch.add(hash));
        sketch
    }

    fn add(&mut self, hash: u64) {
        // The hash of a key table's kind may be weak in single bits (MurmurHash3's finalizer).
        let mut bits = hash;
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        bits ^= bits >> 33;
        let register = &mut self.registers[(bits >> (64 - REGISTER_BITS)) as usize];
        let zeros = (bits << REGISTER_BITS).leading_zeros().min(64 - REGISTER_BITS) as u8;
        *register = (*register).max(zeros + 1);
    }

    pub fn merge(&mut self, other: &Self) {
        for (own, other) in self.registers.iter_mut().zip(other.registers.iter()) {
            *own = (*own).max(*other);
        }
    }

    /// NULL counts as a value.
    pub fn distinct(&self) -> f64 {
        let registers = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|register| 0.5_f64.powi(i32::from(*register))).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = self.registers.iter().filter(|register| **register == 0).count();
        if empty > 0 && estimate < 2.5 * registers {
            // Few values: by how many registers none has met.
            return registers * (registers / empty as f64).ln();
        }
        estimate
    }
}

impl Chunk {
    /// The sketch of a column over all rows of the chunk, dead ones included. None for columns that are not mirrored,
    /// and for small chunks: see [`Chunk::add_to`].
    pub fn sketch(&self, column: usize) -> Option<&Sketch> {
        self.told(column).map(|(sketch, _)| sketch)
    }

    /// About how many different values the column has in the chunk, NULL among them; None as for [`Chunk::sketch`].
    pub fn distinct(&self, column: usize) -> Option<f64> {
        self.told(column).map(|(_, distinct)| *distinct)
    }

    /// Likewise, if that is known already.
    pub fn known_distinct(&self, column: usize) -> Option<f64> {
        self.facts(column).sketch.get()?.as_ref().map(|(_, distinct)| *distinct)
    }

    fn told(&self, column: usize) -> Option<&(Sketch, f64)> {
        if self.rows < SKETCH_ROWS_MIN {
            return None;
        }
        let told = || {
            let sketch = Sketch::of(&self.columns[column], self.types[column]?, self.rows);
            let distinct = sketch.distinct();
            Some((sketch, distinct))
        };
        self.facts(column).sketch.get_or_init(told).as_ref()
    }

    /// Adds the column's values to `sketch`.
    pub fn add_to(&self, column: usize, sketch: &mut Sketch) {
        if let Some(own) = self.sketch(column) {
            sketch.merge(own);
        } else if let Some(pg_type) = self.types[column] {
            sketch.merge(&Sketch::of(&self.columns[column], pg_type, self.rows));
        }
    }

    pub(super) fn sketch_bytes(&self) -> usize {
        let facts = self.facts.get().map_or(&[][..], |facts| facts);
        facts.iter().filter(|facts| matches!(facts.sketch.get(), Some(Some(_)))).count() * REGISTERS
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    fn sketch_of(values: impl Iterator<Item = i64>) -> Sketch {
        let array: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        Sketch::of(&array, PgType::Int8, array.len())
    }

    #[test]
    fn counts_are_close_from_one_value_to_many() {
        for distinct in [1, 5, 25, 1_000, 10_000, 60_000] {
            let found = sketch_of((0..60_000).map(|n| n % distinct * 7)).distinct();
            let error = (found / distinct as f64 - 1.0).abs();
            assert!(error < 0.12, "{distinct}: {found}");
        }
    }

    #[test]
    fn merged_sketches_count_shared_values_once() {
        let mut merged = sketch_of(0..40_000);
        merged.merge(&sketch_of(20_000..60_000));
        assert!((merged.distinct() / 60_000.0 - 1.0).abs() < 0.12, "{}", merged.distinct());
    }
}
