//! Ids for keys of 128 bits: intervals by their comparison value, and uuids.

use std::collections::HashMap;

use ahash::RandomState;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::IntervalMonthDayNanoType;

use super::{KeyTable, Purpose};
use crate::catalog::functions::EvalError;
use crate::executor::order::interval_span;
use crate::types::access::interval_of;
use crate::types::{Interval, PgType};

#[derive(Clone, Debug, Default)]
pub(super) struct WideMap {
    ids: HashMap<i128, u32, RandomState>,
    /// By id: the interval met first.
    shown: Vec<Interval>,
    null: Option<u32>,
    next: u32,
}

impl WideMap {
    pub(super) fn len(&self) -> usize {
        self.next as usize
    }

    pub(super) fn assign(
        &mut self,
        array: &ArrayRef,
        pg_type: PgType,
        nulls: Option<&NullBuffer>,
        purpose: Purpose,
    ) -> Result<Vec<u32>, EvalError> {
        let mut ids = Vec::with_capacity(array.len());
        for row in 0..array.len() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                ids.push(self.null_id(purpose));
                continue;
            }
            let (key, interval) = key_at(array, pg_type, row);
            let next = &mut self.next;
            let id = *self.ids.entry(key).or_insert_with(|| {
                *next += 1;
                *next - 1
            });
            if self.shown.len() <= id as usize {
                self.shown.resize(id as usize + 1, interval);
            }
            // '1 mon' and '30 days' are one group; which of them PostgreSQL shows depends on its plan.
            if purpose.shows() && self.shown[id as usize] != interval {
                return Err(EvalError::Beyond("grouping by equal intervals that print differently".to_owned()));
            }
            ids.push(id);
        }
        Ok(ids)
    }

    pub(super) fn find(&self, array: &ArrayRef, pg_type: PgType, nulls: Option<&NullBuffer>) -> Vec<u32> {
        let find = |row: usize| {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                return self.null.unwrap_or(KeyTable::NONE);
            }
            self.ids.get(&key_at(array, pg_type, row).0).copied().unwrap_or(KeyTable::NONE)
        };
        (0..array.len()).map(find).collect()
    }

    fn null_id(&mut self, purpose: Purpose) -> u32 {
        if !purpose.takes_null() {
            return KeyTable::NONE;
        }
        let next = &mut self.next;
        *self.null.get_or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }
}

fn key_at(array: &ArrayRef, pg_type: PgType, row: usize) -> (i128, Interval) {
    if pg_type == PgType::Interval {
        let interval = interval_of(array.as_primitive::<IntervalMonthDayNanoType>().value(row));
        return (interval_span(interval), interval);
    }
    let bytes: [u8; 16] = array.as_fixed_size_binary().value(row).try_into().expect("a uuid column is 16 bytes wide");
    (i128::from_be_bytes(bytes), Interval::default())
}
