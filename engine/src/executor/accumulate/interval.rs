//! sum of intervals: field by field (PostgreSQL: timestamp.c interval_pl).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::IntervalMonthDayNanoType;

use super::{Accumulator, Groups, Seen, for_each_valid, nulls_of};
use crate::catalog::functions::EvalError;
use crate::types::Interval;
use crate::types::access::{interval_native, interval_of};

#[derive(Debug, Default)]
pub(super) struct SumIntervals {
    /// None: a field overflowed.
    sums: Vec<Option<Interval>>,
    seen: Seen,
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
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.sums.resize(groups, Some(Interval::default()));
        let sums: Option<Vec<_>> = self.sums.iter().map(|sum| sum.map(interval_native)).collect();
        let sums = sums.ok_or_else(|| EvalError::Raises("interval out of range".to_owned()))?;
        Ok(Arc::new(PrimitiveArray::<IntervalMonthDayNanoType>::new(sums.into(), self.seen.nulls(groups))))
    }

    fn bytes(&self) -> usize {
        self.sums.len() * size_of::<Option<Interval>>() + self.seen.bytes()
    }
}
