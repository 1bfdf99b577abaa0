//! count, bool_and, bool_or.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::buffer::BooleanBuffer;

use super::{Accumulator, Groups, Running, Seen, for_each_valid, nulls_of};
use crate::catalog::functions::EvalError;

/// int8inc and int8inc_any: all rows, or those that are not NULL.
#[derive(Debug, Default)]
pub(super) struct Count {
    counts: Vec<i64>,
}

impl Accumulator for Count {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        self.counts.resize(groups.count, 0);
        let counts = &mut self.counts;
        let nulls = values.and_then(nulls_of);
        match groups.ids {
            None => counts[0] += (groups.rows - nulls.map_or(0, |nulls| nulls.null_count())) as i64,
            Some(_) => for_each_valid(groups, nulls, |group, _| counts[group] += 1),
        }
        Ok(())
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        running.run(&mut self.counts, &0, values.and_then(nulls_of), |count, _| *count += 1);
        Ok(true)
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.counts.resize(groups, 0);
        Ok(Arc::new(Int64Array::from(self.counts)))
    }

    fn bytes(&self) -> usize {
        self.counts.len() * 8
    }
}

/// bool_and: none was false. bool_or: one was true.
#[derive(Debug)]
pub(super) struct Bools {
    decisive: bool,
    met: Vec<bool>,
    seen: Seen,
}

impl Bools {
    pub(super) fn all() -> Self {
        Self { decisive: false, met: Vec::new(), seen: Seen::default() }
    }

    pub(super) fn any() -> Self {
        Self { decisive: true, met: Vec::new(), seen: Seen::default() }
    }
}

impl Accumulator for Bools {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        let nulls = nulls_of(values);
        self.seen.mark(groups, nulls);
        self.met.resize(groups.count, false);
        let (met, decisive, bits) = (&mut self.met, self.decisive, values.as_boolean().values());
        for_each_valid(groups, nulls, |group, row| met[group] |= bits.value(row) == decisive);
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.met.resize(groups, false);
        let decisive = self.decisive;
        let bits = BooleanBuffer::from_iter(self.met.iter().map(|met| *met == decisive));
        Ok(Arc::new(BooleanArray::new(bits, self.seen.nulls(groups))))
    }

    fn bytes(&self) -> usize {
        self.met.len() + self.seen.bytes()
    }
}
