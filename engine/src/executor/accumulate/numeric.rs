//! sum and avg of numeric: exact; the sum's display scale is the largest of the inputs' (PostgreSQL: numeric.c
//! do_numeric_accum, numeric_sum, numeric_avg). Sums beyond 76 digits go upstream.

use arrow::array::ArrayRef;

use super::integer::{numeric_error, quotient};
use super::{Accumulator, Groups, Running, for_each_valid, nulls_of};
use crate::catalog::functions::EvalError;
use crate::types::Numeric;
use crate::types::numeric::{NumericBuilder, NumericColumn, POWERS_OF_TEN};

#[derive(Debug)]
pub(super) struct NumericSums {
    finish: Finish,
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
enum Finish {
    Sum,
    Average,
}

#[derive(Clone, Debug, Default)]
struct State {
    mantissa: i128,
    /// What the mantissa no longer held, and values of more digits.
    wide: Option<Box<Numeric>>,
    count: i64,
    scale: u16,
    has_nan: bool,
    has_positive_infinity: bool,
    has_negative_infinity: bool,
    /// The sum no longer fits the mantissa.
    is_beyond: bool,
}

impl State {
    #[inline]
    fn add_finite(&mut self, mantissa: i128, scale: u16) {
        self.count += 1;
        if self.scale == scale {
            match self.mantissa.checked_add(mantissa) {
                Some(sum) => self.mantissa = sum,
                None => self.set_aside(mantissa),
            }
            return;
        }
        self.add_scaled(mantissa, scale);
    }

    #[cold]
    fn add_scaled(&mut self, mantissa: i128, scale: u16) {
        let target = self.scale.max(scale);
        let sum = raised(self.mantissa, target - self.scale)
            .zip(raised(mantissa, target - scale))
            .and_then(|(sum, mantissa)| sum.checked_add(mantissa));
        match sum {
            Some(sum) => (self.mantissa, self.scale) = (sum, target),
            None => {
                let kept = std::mem::take(&mut self.mantissa);
                for (mantissa, scale) in [(kept, self.scale), (mantissa, scale)] {
                    self.add_wide(Numeric::of_i128(mantissa, scale));
                }
                self.scale = target;
            }
        }
    }

    /// The sum so far goes elsewhere; this one begins the next.
    #[cold]
    fn set_aside(&mut self, mantissa: i128) {
        let sum = std::mem::replace(&mut self.mantissa, mantissa);
        self.add_wide(Numeric::of_i128(sum, self.scale));
    }

    #[cold]
    fn add_wide(&mut self, value: Numeric) {
        match self.wide.as_ref().map_or(Ok(value), |sum| sum.add(value)) {
            Ok(sum) => self.wide = Some(Box::new(sum)),
            Err(_) => self.is_beyond = true,
        }
    }

    fn add(&mut self, value: Numeric) {
        match value {
            Numeric::Finite { mantissa, scale } => return self.add_finite(mantissa, scale),
            Numeric::Wide { .. } => self.add_wide(value),
            Numeric::NaN => self.has_nan = true,
            Numeric::PositiveInfinity => self.has_positive_infinity = true,
            Numeric::NegativeInfinity => self.has_negative_infinity = true,
        }
        self.count += 1;
    }

    fn sum(&self) -> Result<Numeric, EvalError> {
        if self.has_nan || (self.has_positive_infinity && self.has_negative_infinity) {
            return Ok(Numeric::NaN);
        }
        if self.has_positive_infinity {
            return Ok(Numeric::PositiveInfinity);
        }
        if self.has_negative_infinity {
            return Ok(Numeric::NegativeInfinity);
        }
        if self.is_beyond {
            return Err(EvalError::Beyond("numeric sum of more than 76 digits".to_owned()));
        }
        let sum = Numeric::of_i128(self.mantissa, self.scale);
        self.wide.as_ref().map_or(Ok(sum), |wide| wide.add(sum)).map_err(numeric_error)
    }
}

fn raised(mantissa: i128, digits: u16) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    mantissa.checked_mul(*POWERS_OF_TEN.get(usize::from(digits))?)
}

impl NumericSums {
    pub(super) fn sum() -> Self {
        Self { finish: Finish::Sum, states: Vec::new() }
    }

    pub(super) fn average() -> Self {
        Self { finish: Finish::Average, states: Vec::new() }
    }
}

impl Accumulator for NumericSums {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        let nulls = nulls_of(values);
        self.states.resize(groups.count, State::default());
        let states = &mut self.states;
        match NumericColumn::of(values.as_ref()) {
            NumericColumn::Fixed64 { mantissas, scale } => {
                for_each_valid(groups, nulls, |group, row| states[group].add_finite(i128::from(mantissas[row]), scale));
            }
            NumericColumn::Fixed128 { mantissas, scale } => {
                for_each_valid(groups, nulls, |group, row| states[group].add_finite(mantissas[row], scale));
            }
            column @ (NumericColumn::PerValue { .. } | NumericColumn::Wide { .. }) => {
                for_each_valid(groups, nulls, |group, row| states[group].add(column.get(row)));
            }
        }
        Ok(())
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        let Some(values) = values else { return Ok(false) };
        let column = NumericColumn::of(values.as_ref());
        running.run(&mut self.states, &State::default(), nulls_of(values), |state, row| state.add(column.get(row)));
        Ok(true)
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.states.resize(groups, State::default());
        let mut results = NumericBuilder::with_capacity(groups);
        for state in &self.states {
            results.append_option(match (state.count, self.finish) {
                (0, _) => None,
                (_, Finish::Sum) => Some(state.sum()?),
                (count, Finish::Average) => Some(quotient(state.sum()?, count)?),
            });
        }
        Ok(results.finish())
    }

    fn bytes(&self) -> usize {
        self.states.len() * size_of::<State>()
    }
}
