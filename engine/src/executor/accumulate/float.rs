//! sum and avg of floats, in row order (PostgreSQL: float.c float4pl, float8pl, float8_accum, float8_avg).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array};
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::{Accumulator, Groups, Running, Seen, for_each_valid, nulls_of};
use crate::catalog::functions::EvalError;
use crate::catalog::functions::Spread;

fn overflow() -> EvalError {
    EvalError::Raises("value out of range: overflow".to_owned())
}

/// sum(float8).
#[derive(Debug, Default)]
pub(super) struct SumDouble {
    sums: Vec<f64>,
    seen: Seen,
}

impl Accumulator for SumDouble {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        let nulls = nulls_of(values);
        self.seen.mark(groups, nulls);
        // The first value replaces the state; -0 is the number that adding to changes nothing, not even a -0.
        self.sums.resize(groups.count, -0.0);
        let (sums, numbers) = (&mut self.sums, values.as_primitive::<Float64Type>().values());
        let mut overflowed = false;
        for_each_valid(groups, nulls, |group, row| {
            let sum = sums[group] + numbers[row];
            overflowed |= sum.is_infinite() && !sums[group].is_infinite() && !numbers[row].is_infinite();
            sums[group] = sum;
        });
        if overflowed { Err(overflow()) } else { Ok(()) }
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        let Some(values) = values else { return Ok(false) };
        let nulls = nulls_of(values);
        self.seen.run(running, nulls);
        let numbers = values.as_primitive::<Float64Type>().values();
        let mut overflowed = false;
        running.run(&mut self.sums, &-0.0, nulls, |sum, row| {
            let next = *sum + numbers[row];
            overflowed |= next.is_infinite() && !sum.is_infinite() && !numbers[row].is_infinite();
            *sum = next;
        });
        if overflowed { Err(overflow()) } else { Ok(true) }
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.sums.resize(groups, 0.0);
        Ok(Arc::new(Float64Array::new(self.sums.into(), self.seen.nulls(groups))))
    }

    fn bytes(&self) -> usize {
        self.sums.len() * 8 + self.seen.bytes()
    }
}

/// sum(float4): added as float4.
#[derive(Debug, Default)]
pub(super) struct SumSingle {
    sums: Vec<f32>,
    seen: Seen,
}

impl Accumulator for SumSingle {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        let nulls = nulls_of(values);
        self.seen.mark(groups, nulls);
        self.sums.resize(groups.count, -0.0);
        let (sums, numbers) = (&mut self.sums, values.as_primitive::<Float32Type>().values());
        let mut overflowed = false;
        for_each_valid(groups, nulls, |group, row| {
            let sum = sums[group] + numbers[row];
            overflowed |= sum.is_infinite() && !sums[group].is_infinite() && !numbers[row].is_infinite();
            sums[group] = sum;
        });
        if overflowed { Err(overflow()) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.sums.resize(groups, 0.0);
        Ok(Arc::new(Float32Array::new(self.sums.into(), self.seen.nulls(groups))))
    }

    fn bytes(&self) -> usize {
        self.sums.len() * 4 + self.seen.bytes()
    }
}

/// The Youngs-Cramer state of float8_accum.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    count: f64,
    sum: f64,
    squares: f64,
}

impl State {
    /// False: PostgreSQL raises "value out of range: overflow".
    fn add(&mut self, value: f64) -> bool {
        let before = *self;
        self.count += 1.0;
        self.sum += value;
        if before.count > 0.0 {
            let difference = value * self.count - self.sum;
            self.squares += difference * difference / (self.count * before.count);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                // A NaN does not excuse an overflow there.
                if !before.sum.is_infinite() && !value.is_infinite() {
                    return false;
                }
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        true
    }
}

/// Adds a column to the states.
fn add_floats(states: &mut Vec<State>, groups: &Groups<'_>, values: &ArrayRef) -> Result<(), EvalError> {
    let nulls = nulls_of(values);
    states.resize(groups.count, State::default());
    let mut fits = true;
    if *values.data_type() == DataType::Float32 {
        let numbers = values.as_primitive::<Float32Type>().values();
        for_each_valid(groups, nulls, |group, row| fits &= states[group].add(f64::from(numbers[row])));
    } else {
        let numbers = values.as_primitive::<Float64Type>().values();
        for_each_valid(groups, nulls, |group, row| fits &= states[group].add(numbers[row]));
    }
    if fits { Ok(()) } else { Err(overflow()) }
}

fn run_floats(states: &mut Vec<State>, running: &Running<'_>, values: &ArrayRef) -> Result<(), EvalError> {
    let mut fits = true;
    let initial = State::default();
    if *values.data_type() == DataType::Float32 {
        let numbers = values.as_primitive::<Float32Type>().values();
        running.run(states, &initial, nulls_of(values), |state, row| fits &= state.add(f64::from(numbers[row])));
    } else {
        let numbers = values.as_primitive::<Float64Type>().values();
        running.run(states, &initial, nulls_of(values), |state, row| fits &= state.add(numbers[row]));
    }
    if fits { Ok(()) } else { Err(overflow()) }
}

/// avg of floats (PostgreSQL: float.c float8_accum, float8_avg). Of the Youngs-Cramer state the average needs the sum and the
/// count; the third part, the sum of squared differences, only decides on overflow, which nothing below [`LARGE`] can reach. What
/// is not finite excuses any.
#[derive(Debug, Default)]
pub(super) struct Averages {
    states: Vec<Mean>,
}

/// With as many values as there are rows at most, squares of twice this do not add up to infinity.
const LARGE: f64 = 1e140;

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    /// True: the value may be too large for its square.
    #[inline]
    fn add(&mut self, value: f64) -> bool {
        self.sum += value;
        self.count += 1.0;
        let size = value.abs();
        (LARGE..f64::INFINITY).contains(&size)
    }
}

fn check_size(has_large: bool) -> Result<(), EvalError> {
    if has_large { Err(EvalError::Beyond("avg of very large floats".to_owned())) } else { Ok(()) }
}

impl Accumulator for Averages {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.states.resize(groups.count, Mean::default());
        let (states, nulls) = (&mut self.states[..], nulls_of(values));
        let mut has_large = false;
        if *values.data_type() == DataType::Float32 {
            let numbers = values.as_primitive::<Float32Type>().values();
            for_each_valid(groups, nulls, |group, row| has_large |= states[group].add(f64::from(numbers[row])));
        } else {
            let numbers = values.as_primitive::<Float64Type>().values();
            for_each_valid(groups, nulls, |group, row| has_large |= states[group].add(numbers[row]));
        }
        check_size(has_large)
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        let Some(values) = values else { return Ok(false) };
        let (initial, nulls) = (Mean::default(), nulls_of(values));
        let mut has_large = false;
        if *values.data_type() == DataType::Float32 {
            let numbers = values.as_primitive::<Float32Type>().values();
            running.run(&mut self.states, &initial, nulls, |state, row| has_large |= state.add(numbers[row].into()));
        } else {
            let numbers = values.as_primitive::<Float64Type>().values();
            running.run(&mut self.states, &initial, nulls, |state, row| has_large |= state.add(numbers[row]));
        }
        check_size(has_large).map(|()| true)
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.states.resize(groups, Mean::default());
        let average = |mean: &Mean| (mean.count > 0.0).then(|| mean.sum / mean.count);
        Ok(Arc::new(self.states.iter().map(average).collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.states.len() * size_of::<Mean>()
    }
}

/// Variance and standard deviation of floats (PostgreSQL: float.c float8_var_samp and its kin).
#[derive(Debug)]
pub(super) struct Moments {
    result: fn(&State) -> Option<f64>,
    states: Vec<State>,
}

impl Moments {
    pub(super) fn spread(which: Spread) -> Self {
        let result: fn(&State) -> Option<f64> = match which {
            Spread::VarPop => |state| (state.count > 0.0).then(|| state.squares / state.count),
            Spread::VarSamp => |state| (state.count > 1.0).then(|| state.squares / (state.count - 1.0)),
            Spread::StddevPop => |state| (state.count > 0.0).then(|| (state.squares / state.count).sqrt()),
            Spread::StddevSamp => |state| (state.count > 1.0).then(|| (state.squares / (state.count - 1.0)).sqrt()),
        };
        Self { result, states: Vec::new() }
    }
}

impl Accumulator for Moments {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        values.map_or(Ok(()), |values| add_floats(&mut self.states, groups, values))
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        values.map_or(Ok(()), |values| run_floats(&mut self.states, running, values))?;
        Ok(true)
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.states.resize(groups, State::default());
        Ok(Arc::new(self.states.iter().map(self.result).collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.states.len() * size_of::<State>()
    }
}
