//! Variance and standard deviation of integers and numerics: exact sums, then numeric.c's division and square root
//! (numeric_stddev_internal). What exceeds the digits that are held goes upstream.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, i256};

use super::integer::{integers, numeric_error};
use super::{Accumulator, Groups, for_each_valid, nulls_of};
use crate::catalog::functions::{EvalError, Spread};
use crate::types::Numeric;
use crate::types::numeric::{NumericBuilder, NumericColumn};

#[derive(Debug)]
pub(super) struct ExactSpreads {
    which: Spread,
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    count: i64,
    sum: Numeric,
    squares: Numeric,
    is_special: bool,
    is_beyond: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { count: 0, sum: Numeric::ZERO, squares: Numeric::ZERO, is_special: false, is_beyond: false }
    }
}

impl State {
    fn add(&mut self, value: Numeric) {
        self.count += 1;
        if !value.is_finite() {
            self.is_special = true;
            return;
        }
        let sums = value.mul(value).and_then(|square| Ok((self.sum.add(value)?, self.squares.add(square)?)));
        match sums {
            Ok(sums) => (self.sum, self.squares) = sums,
            Err(_) => self.is_beyond = true,
        }
    }

    fn result(&self, which: Spread) -> Result<Option<Numeric>, EvalError> {
        let is_sample = matches!(which, Spread::VarSamp | Spread::StddevSamp);
        if self.count <= i64::from(is_sample) {
            return Ok(None);
        }
        if self.is_special {
            return Ok(Some(Numeric::NaN));
        }
        if self.is_beyond {
            return Err(EvalError::Beyond("variance of more digits than are held".to_owned()));
        }
        let count = Numeric::from_i64(self.count);
        let spread = || {
            let squared = self.sum.mul(self.sum)?;
            let numerator = count.mul(self.squares)?.sub(squared)?;
            if numerator.signum() <= 0 {
                return Ok(None);
            }
            let others = if is_sample { Numeric::from_i64(self.count - 1) } else { count };
            numerator.div(count.mul(others)?).map(Some)
        };
        let Some(variance) = spread().map_err(numeric_error)? else { return Ok(Some(Numeric::ZERO)) };
        match which {
            Spread::VarSamp | Spread::VarPop => Ok(Some(variance)),
            Spread::StddevSamp | Spread::StddevPop => square_root(variance).map(Some),
        }
    }
}

/// sqrt_var at the scale of the argument: rounded, half away from zero.
fn square_root(value: Numeric) -> Result<Numeric, EvalError> {
    let beyond = || EvalError::Beyond("square root of more digits than are held".to_owned());
    let Numeric::Finite { mantissa, scale } = value else { return Err(beyond()) };
    // One digit more than is kept, squared; the argument has `scale` of them already.
    let raised = i256::from_i128(10).checked_pow(u32::from(scale) + 2).ok_or_else(beyond)?;
    let radicand = i256::from_i128(mantissa).checked_mul(raised).ok_or_else(beyond)?;
    let root = integer_root(radicand).ok_or_else(beyond)?.to_i128().ok_or_else(beyond)?;
    Numeric::new((root + 5) / 10, scale).map_err(numeric_error)
}

/// The largest integer whose square is not larger; by Newton's method from above.
fn integer_root(radicand: i256) -> Option<i256> {
    let two = i256::from_i128(2);
    if radicand < two {
        return Some(radicand);
    }
    let bits = 256 - radicand.leading_zeros();
    let mut root = i256::from_i128(1) << (bits.div_ceil(2) as u8);
    loop {
        let next = root.checked_add(radicand.checked_div(root)?)?.checked_div(two)?;
        if next >= root {
            return Some(root);
        }
        root = next;
    }
}

impl ExactSpreads {
    pub(super) fn new(which: Spread) -> Self {
        Self { which, states: Vec::new() }
    }
}

impl Accumulator for ExactSpreads {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        let nulls = nulls_of(values);
        self.states.resize(groups.count, State::default());
        let states = &mut self.states;
        if matches!(values.data_type(), DataType::Int16 | DataType::Int32 | DataType::Int64) {
            let value = integers(values);
            for_each_valid(groups, nulls, |group, row| states[group].add(Numeric::from_i64(value(row))));
        } else {
            let column = NumericColumn::of(values.as_ref());
            for_each_valid(groups, nulls, |group, row| states[group].add(column.get(row)));
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.states.resize(groups, State::default());
        let mut results = NumericBuilder::with_capacity(groups);
        for state in &self.states {
            results.append_option(state.result(self.which)?);
        }
        Ok(results.finish())
    }

    fn bytes(&self) -> usize {
        self.states.len() * size_of::<State>()
    }
}
