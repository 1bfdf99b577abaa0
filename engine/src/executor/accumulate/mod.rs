//! Aggregate states, one array of them per call, updated a column at a time. Results are PostgreSQL's, digit for
//! digit: see the source named at each state. Floats are added in row order, one state per group.

mod array;
mod bits;
mod count;
mod extreme;
mod float;
mod integer;
mod interval;
mod numeric;
mod ordered;
mod regression;
mod spread;
#[cfg(test)]
mod tests;

pub(super) use integer::{integers, quotient};

use arrow::array::{Array, ArrayRef};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use crate::catalog::functions::AggregateFunction;
use crate::catalog::functions::EvalError;
use crate::types::{PgType, Value};

/// Which group each row of an update belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups<'a> {
    /// One per row; None: all rows are of group 0.
    pub(super) ids: Option<&'a [u32]>,
    pub(super) rows: usize,
    /// Groups that exist by now.
    pub(super) count: usize,
    /// Groups that existed before this batch.
    pub(super) before: usize,
    /// Whether every group that is new in this batch has a row here (no FILTER or DISTINCT took rows away).
    pub(super) is_complete: bool,
}

/// Sorted rows whose groups take in what the groups before them in the partition have, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running<'a> {
    /// The group of each row, from 0 on without gaps.
    pub(super) groups: &'a [u32],
    /// By group: whether it begins a partition.
    pub(super) starts: &'a [bool],
    /// Set bit: the row passes FILTER. None: all do.
    pub(super) kept: Option<&'a BooleanBuffer>,
}

impl Running<'_> {
    /// Carries the states on from group to group and adds the rows that count.
    fn run<S: Clone>(
        &self,
        states: &mut Vec<S>,
        initial: &S,
        nulls: Option<&NullBuffer>,
        mut add: impl FnMut(&mut S, usize),
    ) {
        states.clear();
        states.reserve(self.starts.len());
        for (row, group) in self.groups.iter().enumerate() {
            let group = *group as usize;
            if group == states.len() {
                states.push(match states.last() {
                    Some(before) if !self.starts[group] => before.clone(),
                    _ => initial.clone(),
                });
            }
            let counts = nulls.is_none_or(|nulls| nulls.is_valid(row)) && self.kept.is_none_or(|kept| kept.value(row));
            if counts {
                add(&mut states[group], row);
            }
        }
    }
}

pub(super) trait Accumulator {
    /// `values` has one entry per row; only count(*) is without.
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError>;
    /// All rows at once, each group with those before it. False: not known how.
    fn run(&mut self, _running: &Running<'_>, _values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        Ok(false)
    }
    /// As `update`, for aggregates of several arguments.
    fn update_all(&mut self, groups: &Groups<'_>, values: &[ArrayRef]) -> Result<(), EvalError> {
        self.update(groups, values.first())
    }
    /// One result per group, `groups` of them.
    fn finish(self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError>;
    /// About what the states occupy.
    fn bytes(&self) -> usize;
}

/// The states for a function of an argument type; only of percentiles `result` says more.
pub(super) fn accumulator(
    function: AggregateFunction,
    argument: Option<PgType>,
    extra: &[Value],
    result: PgType,
) -> Result<Box<dyn Accumulator>, EvalError> {
    let unknown = || Err(EvalError::Beyond(format!("{function:?} of {argument:?}")));
    Ok(match (function, argument) {
        (AggregateFunction::CountStar, _) | (AggregateFunction::Count, None) => Box::new(count::Count::default()),
        (AggregateFunction::Count, Some(_)) => Box::new(count::Count::default()),
        (AggregateFunction::BoolAnd, Some(PgType::Bool)) => Box::new(count::Bools::all()),
        (AggregateFunction::BoolOr, Some(PgType::Bool)) => Box::new(count::Bools::any()),
        (
            AggregateFunction::BitAnd | AggregateFunction::BitOr | AggregateFunction::BitXor,
            Some(PgType::Int2 | PgType::Int4 | PgType::Int8),
        ) => Box::new(bits::Bits::new(function, argument)),
        (AggregateFunction::Sum, Some(PgType::Int2 | PgType::Int4)) => Box::new(integer::SumSmall::default()),
        (AggregateFunction::Sum, Some(PgType::Int8)) => Box::new(integer::SumBig::default()),
        (AggregateFunction::Avg, Some(PgType::Int2 | PgType::Int4 | PgType::Int8)) => {
            Box::new(integer::Average::default())
        }
        (AggregateFunction::Sum, Some(PgType::Float4)) => Box::new(float::SumSingle::default()),
        (AggregateFunction::Sum, Some(PgType::Float8)) => Box::new(float::SumDouble::default()),
        (AggregateFunction::Avg, Some(PgType::Float4 | PgType::Float8)) => Box::new(float::Floats::average()),
        (AggregateFunction::Sum, Some(PgType::Numeric)) => Box::new(numeric::NumericSums::sum()),
        (AggregateFunction::Avg, Some(PgType::Numeric)) => Box::new(numeric::NumericSums::average()),
        (AggregateFunction::Sum, Some(PgType::Interval)) => Box::new(interval::SumIntervals::default()),
        (AggregateFunction::Avg, Some(PgType::Interval)) => Box::new(interval::SumIntervals::average()),
        (AggregateFunction::Min, Some(pg_type)) => extreme::extreme(extreme::Which::Min, pg_type)?,
        (AggregateFunction::Max, Some(pg_type)) => extreme::extreme(extreme::Which::Max, pg_type)?,
        (AggregateFunction::Spread(spread), Some(PgType::Float4 | PgType::Float8)) => {
            Box::new(float::Floats::spread(spread))
        }
        (AggregateFunction::Spread(spread), Some(PgType::Int2 | PgType::Int4 | PgType::Int8 | PgType::Numeric)) => {
            Box::new(spread::ExactSpreads::new(spread))
        }
        (AggregateFunction::StringAgg, Some(PgType::Text)) => Box::new(ordered::Joined::default()),
        (AggregateFunction::ArrayAgg, Some(pg_type)) => match crate::types::Element::of(pg_type) {
            Some(element) => Box::new(array::Arrays::new(element)),
            None => return unknown(),
        },
        (AggregateFunction::RegrCount, _) => Box::new(regression::Regressions::count()),
        (AggregateFunction::Regression(which), _) => Box::new(regression::Regressions::new(which)),
        (
            AggregateFunction::PercentileCont | AggregateFunction::PercentileDisc | AggregateFunction::Mode,
            Some(pg_type),
        ) => Box::new(ordered::Chosen::new(function, pg_type, extra, result)?),
        _ => return unknown(),
    })
}

/// The NULLs of a column, if it has any.
fn nulls_of(values: &ArrayRef) -> Option<&NullBuffer> {
    values.nulls().filter(|nulls| nulls.null_count() > 0)
}

/// Calls `update(group, row)` for each row that is not NULL.
#[inline]
fn for_each_valid(groups: &Groups<'_>, nulls: Option<&NullBuffer>, mut update: impl FnMut(usize, usize)) {
    match (groups.ids, nulls) {
        (Some(ids), None) => ids.iter().enumerate().for_each(|(row, id)| update(*id as usize, row)),
        (Some(ids), Some(nulls)) => nulls.valid_indices().for_each(|row| update(ids[row] as usize, row)),
        (None, None) => (0..groups.rows).for_each(|row| update(0, row)),
        (None, Some(nulls)) => nulls.valid_indices().for_each(|row| update(0, row)),
    }
}

/// Which groups have taken in a value; the others' results are NULL. Costs nothing while there are no NULLs.
#[derive(Debug, Default)]
struct Seen {
    /// None: every group so far.
    flags: Option<Vec<bool>>,
    has_rows: bool,
}

impl Seen {
    fn mark(&mut self, groups: &Groups<'_>, nulls: Option<&NullBuffer>) {
        if self.flags.is_none() && nulls.is_none() && groups.is_complete {
            self.has_rows = self.has_rows || groups.rows > 0;
            return;
        }
        let before = if self.has_rows { groups.before } else { 0 };
        let flags = self.flags.get_or_insert_with(|| vec![true; before]);
        flags.resize(groups.count, false);
        for_each_valid(groups, nulls, |group, _| flags[group] = true);
    }

    fn run(&mut self, running: &Running<'_>, nulls: Option<&NullBuffer>) {
        let mut flags = Vec::new();
        running.run(&mut flags, &false, nulls, |seen, _| *seen = true);
        self.flags = Some(flags);
    }

    fn has(&self, group: usize) -> bool {
        match &self.flags {
            Some(flags) => flags.get(group).copied().unwrap_or(false),
            None => self.has_rows,
        }
    }

    fn nulls(&self, groups: usize) -> Option<NullBuffer> {
        let nulls = NullBuffer::from_iter((0..groups).map(|group| self.has(group)));
        (nulls.null_count() > 0).then_some(nulls)
    }

    fn bytes(&self) -> usize {
        self.flags.as_ref().map_or(0, Vec::len)
    }
}
