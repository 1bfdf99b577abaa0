//! sum and avg of intervals: field by field, and that divided by the number of values (PostgreSQL: timestamp.c interval_pl, interval_avg).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::IntervalMonthDayNanoType;

use super::{Accumulator, Groups, Seen, for_each_valid, nulls_of};
use crate::catalog::functions::EvalError;
use crate::types::Interval;
use crate::types::access::{interval_native, interval_of};
use crate::types::interval::divide;

#[derive(Debug, Default)]
pub(super) struct SumIntervals {
    /// None: a field overflowed.
    sums: Vec<Option<Interval>>,
    /// How many values there were; None: nobody asks.
    counts: Option<Vec<u64>>,
    seen: Seen,
}

impl SumIntervals {
    pub(super) fn average() -> Self {
        Self { counts: Some(Vec::new()), ..Self::default() }
    }
}

fn add(a: Interval, b: Interval) -> Option<Interval> {
    Some(Interval {
        months: a.months.checked_add(b.months)?,
        days: a.days.checked_add(b.days)?,
        microseconds: a.microseconds.checked_add(b.microseconds)?,
    })
}

impl Accumulator for SumIntervals {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        let nulls = nulls_of(values);
        self.seen.mark(groups, nulls);
        self.sums.resize(groups.count, Some(Interval::default()));
        let (sums, spans) = (&mut self.sums, values.as_primitive::<IntervalMonthDayNanoType>().values());
        for_each_valid(groups, nulls, |group, row| {
            sums[group] = sums[group].and_then(|sum| add(sum, interval_of(spans[row])));
        });
        if let Some(counts) = &mut self.counts {
            counts.resize(groups.count, 0);
            for_each_valid(groups, nulls, |group, _| counts[group] += 1);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.sums.resize(groups, Some(Interval::default()));
        let out_of_range = || EvalError::Raises("interval out of range".to_owned());
        let sums: Option<Vec<Interval>> = self.sums.iter().copied().collect();
        let mut sums = sums.ok_or_else(out_of_range)?;
        for (sum, count) in sums.iter_mut().zip(self.counts.iter().flatten()).filter(|(_, count)| **count > 0) {
            *sum = divide(sum, *count as f64).map_err(|_| out_of_range())?;
        }
        let sums: Vec<_> = sums.into_iter().map(interval_native).collect();
        Ok(Arc::new(PrimitiveArray::<IntervalMonthDayNanoType>::new(sums.into(), self.seen.nulls(groups))))
    }

    fn bytes(&self) -> usize {
        let counts = self.counts.as_ref().map_or(0, |counts| counts.len() * size_of::<u64>());
        self.sums.len() * size_of::<Option<Interval>>() + counts + self.seen.bytes()
    }
}
