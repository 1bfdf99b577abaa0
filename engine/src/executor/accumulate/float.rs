//! Aggregates of floats, in row order (PostgreSQL: float.c float4pl, float8pl, float8_accum and what is made of it).

use std::fmt::Debug;
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
        if let (None, None, [sum]) = (groups.ids, nulls, sums.as_mut_slice()) {
            let all = numbers.iter().fold(*sum, |sum, number| sum + number);
            // What was infinite on the way is so at the end, or no number.
            if all.is_finite() {
                *sum = all;
                return Ok(());
            }
        }
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

/// What an aggregate makes of floats, one by one.
pub(super) trait FloatState: Copy + Debug + Default {
    /// False: [`Self::refusal`].
    fn add(&mut self, value: f64) -> bool;
    fn refusal() -> EvalError;
}

/// The Youngs-Cramer state of float8_accum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl FloatState for Moments {
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

    fn refusal() -> EvalError {
        overflow()
    }
}

/// Of that state the average needs the sum and the count; the third part, the sum of squared differences, only decides on overflow,
/// which nothing below [`LARGE`] can reach. What is not finite excuses any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: f64,
    count: f64,
}

/// With as many values as there are rows at most, squares of twice this do not add up to infinity.
const LARGE: f64 = 1e140;

impl FloatState for Mean {
    #[inline]
    fn add(&mut self, value: f64) -> bool {
        self.sum += value;
        self.count += 1.0;
        let size = value.abs();
        !(LARGE..f64::INFINITY).contains(&size)
    }

    fn refusal() -> EvalError {
        EvalError::Beyond("avg of very large floats".to_owned())
    }
}

/// Average, variance and standard deviation of floats (PostgreSQL: float.c float8_accum, float8_avg, float8_var_samp and their kin).
#[derive(Debug)]
pub(super) struct Floats<S> {
    result: fn(&S) -> Option<f64>,
    states: Vec<S>,
}

impl Floats<Mean> {
    pub(super) fn average() -> Self {
        Self { result: |mean| (mean.count > 0.0).then(|| mean.sum / mean.count), states: Vec::new() }
    }
}

impl Floats<Moments> {
    pub(super) fn spread(which: Spread) -> Self {
        let result: fn(&Moments) -> Option<f64> = match which {
            Spread::VarPop => |state| (state.count > 0.0).then(|| unsigned(state.squares / state.count)),
            Spread::VarSamp => |state| (state.count > 1.0).then(|| unsigned(state.squares / (state.count - 1.0))),
            Spread::StddevPop => |state| (state.count > 0.0).then(|| unsigned((state.squares / state.count).sqrt())),
            Spread::StddevSamp => {
                |state| (state.count > 1.0).then(|| unsigned((state.squares / (state.count - 1.0)).sqrt()))
            }
        };
        Self { result, states: Vec::new() }
    }
}

/// PostgreSQL's NaN there is the constant; one that the processor makes has a sign, which a binary result shows.
fn unsigned(result: f64) -> f64 {
    if result.is_nan() { f64::NAN } else { result }
}

impl<S: FloatState> Accumulator for Floats<S> {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.states.resize(groups.count, S::default());
        let (states, nulls) = (&mut self.states[..], nulls_of(values));
        let mut fits = true;
        if let (DataType::Float64, None, None, [state]) = (values.data_type(), groups.ids, nulls, &mut *states) {
            // Not in memory, where each would wait for the one before to be written.
            let mut of_all = *state;
            values.as_primitive::<Float64Type>().values().iter().for_each(|number| fits &= of_all.add(*number));
            *state = of_all;
        } else if *values.data_type() == DataType::Float32 {
            let numbers = values.as_primitive::<Float32Type>().values();
            for_each_valid(groups, nulls, |group, row| fits &= states[group].add(f64::from(numbers[row])));
        } else {
            let numbers = values.as_primitive::<Float64Type>().values();
            for_each_valid(groups, nulls, |group, row| fits &= states[group].add(numbers[row]));
        }
        if fits { Ok(()) } else { Err(S::refusal()) }
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        let Some(values) = values else { return Ok(false) };
        let (initial, nulls) = (S::default(), nulls_of(values));
        let mut fits = true;
        if *values.data_type() == DataType::Float32 {
            let numbers = values.as_primitive::<Float32Type>().values();
            running.run(&mut self.states, &initial, nulls, |state, row| fits &= state.add(f64::from(numbers[row])));
        } else {
            let numbers = values.as_primitive::<Float64Type>().values();
            running.run(&mut self.states, &initial, nulls, |state, row| fits &= state.add(numbers[row]));
        }
        if fits { Ok(true) } else { Err(S::refusal()) }
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.states.resize(groups, S::default());
        Ok(Arc::new(self.states.iter().map(self.result).collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.states.len() * size_of::<S>()
    }
}
