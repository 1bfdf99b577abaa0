//! sum and avg of integers: exact, results as numeric.c int4_sum, numeric_poly_sum, int8_avg give them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type};

use super::{Accumulator, Groups, Running, Seen, for_each_valid, nulls_of};
use crate::catalog::functions::EvalError;
use crate::types::Numeric;
use crate::types::numeric::{NumericBuilder, NumericError};

/// sum(int2), sum(int4): bigint. 2^31 rows of any size cannot overflow it.
#[derive(Debug, Default)]
pub(super) struct SumSmall {
    sums: Vec<i64>,
    seen: Seen,
}

impl Accumulator for SumSmall {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.seen.mark(groups, nulls_of(values));
        self.sums.resize(groups.count, 0);
        add_small(&mut self.sums, groups, values);
        Ok(())
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        let Some(values) = values else { return Ok(false) };
        let (nulls, value) = (nulls_of(values), integers(values));
        self.seen.run(running, nulls);
        running.run(&mut self.sums, &0, nulls, |sum, row| *sum += value(row));
        Ok(true)
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.sums.resize(groups, 0);
        Ok(Arc::new(Int64Array::new(self.sums.into(), self.seen.nulls(groups))))
    }

    fn bytes(&self) -> usize {
        self.sums.len() * 8 + self.seen.bytes()
    }
}

fn add_small(sums: &mut [i64], groups: &Groups<'_>, values: &ArrayRef) {
    let nulls = nulls_of(values);
    match values.data_type() {
        DataType::Int16 => {
            let values = values.as_primitive::<Int16Type>().values();
            for_each_valid(groups, nulls, |group, row| sums[group] += i64::from(values[row]));
        }
        _ => {
            let values = values.as_primitive::<Int32Type>().values();
            match (groups.ids, nulls) {
                // Without a group to look up per row this is one wide addition after the other.
                (None, None) => sums[0] += values.iter().map(|value| i64::from(*value)).sum::<i64>(),
                (Some(ids), None) => {
                    for (id, value) in ids.iter().zip(values) {
                        sums[*id as usize] += i64::from(*value);
                    }
                }
                _ => for_each_valid(groups, nulls, |group, row| sums[group] += i64::from(values[row])),
            }
        }
    }
}

fn add_big(sums: &mut [i128], groups: &Groups<'_>, values: &ArrayRef) {
    let numbers = values.as_primitive::<Int64Type>().values();
    for_each_valid(groups, nulls_of(values), |group, row| sums[group] += i128::from(numbers[row]));
}

/// sum(int8): numeric of scale 0.
#[derive(Debug, Default)]
pub(super) struct SumBig {
    sums: Vec<i128>,
    seen: Seen,
}

impl Accumulator for SumBig {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.seen.mark(groups, nulls_of(values));
        self.sums.resize(groups.count, 0);
        add_big(&mut self.sums, groups, values);
        Ok(())
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        let Some(values) = values else { return Ok(false) };
        let (nulls, value) = (nulls_of(values), integers(values));
        self.seen.run(running, nulls);
        running.run(&mut self.sums, &0, nulls, |sum, row| *sum += i128::from(value(row)));
        Ok(true)
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.sums.resize(groups, 0);
        let mut results = NumericBuilder::with_capacity(groups);
        for (group, sum) in self.sums.iter().enumerate() {
            results.append_option(self.seen.has(group).then_some(Numeric::Finite { mantissa: *sum, scale: 0 }));
        }
        Ok(results.finish())
    }

    fn bytes(&self) -> usize {
        self.sums.len() * 16 + self.seen.bytes()
    }
}

/// avg(int2), avg(int4), avg(int8): numeric_div of the exact sum by the count.
#[derive(Debug, Default)]
pub(super) struct Average {
    small: Vec<i64>,
    big: Vec<i128>,
    counts: Vec<i64>,
}

impl Accumulator for Average {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.counts.resize(groups.count, 0);
        let (counts, nulls) = (&mut self.counts, nulls_of(values));
        match groups.ids {
            None => counts[0] += (groups.rows - nulls.map_or(0, |nulls| nulls.null_count())) as i64,
            Some(_) => for_each_valid(groups, nulls, |group, _| counts[group] += 1),
        }
        if *values.data_type() == DataType::Int64 {
            self.big.resize(groups.count, 0);
            add_big(&mut self.big, groups, values);
        } else {
            self.small.resize(groups.count, 0);
            add_small(&mut self.small, groups, values);
        }
        Ok(())
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        let Some(values) = values else { return Ok(false) };
        let (nulls, value) = (nulls_of(values), integers(values));
        running.run(&mut self.counts, &0, nulls, |count, _| *count += 1);
        running.run(&mut self.big, &0, nulls, |sum, row| *sum += i128::from(value(row)));
        Ok(true)
    }

    fn finish(self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        let mut results = NumericBuilder::with_capacity(groups);
        for group in 0..groups {
            let count = self.counts.get(group).copied().unwrap_or(0);
            if count == 0 {
                results.append_null();
                continue;
            }
            let small = self.small.get(group).copied().map_or(0, i128::from);
            let sum = self.big.get(group).copied().unwrap_or(0) + small;
            results.append(quotient(Numeric::Finite { mantissa: sum, scale: 0 }, count)?);
        }
        Ok(results.finish())
    }

    fn bytes(&self) -> usize {
        self.small.len() * 8 + self.big.len() * 16 + self.counts.len() * 8
    }
}

/// The integers of a column of any width.
pub(in crate::executor) fn integers(values: &ArrayRef) -> Box<dyn Fn(usize) -> i64 + '_> {
    match values.data_type() {
        DataType::Int16 => {
            let values = values.as_primitive::<Int16Type>().values();
            Box::new(|row| i64::from(values[row]))
        }
        DataType::Int32 => {
            let values = values.as_primitive::<Int32Type>().values();
            Box::new(|row| i64::from(values[row]))
        }
        _ => {
            let values = values.as_primitive::<Int64Type>().values();
            Box::new(|row| values[row])
        }
    }
}

/// numeric_div(sum, count).
pub(in crate::executor) fn quotient(sum: Numeric, count: i64) -> Result<Numeric, EvalError> {
    sum.div(Numeric::from_i64(count)).map_err(numeric_error)
}

pub(super) fn numeric_error(error: NumericError) -> EvalError {
    match error {
        NumericError::Beyond | NumericError::InDoubt => EvalError::Beyond(error.to_string()),
        NumericError::DivisionByZero | NumericError::Raises(_) => EvalError::Raises(error.to_string()),
    }
}
