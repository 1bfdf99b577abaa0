//! corr, covar_*, regr_*: statistics of pairs (Y, X) of which neither is NULL (PostgreSQL: float.c float8_regr_accum).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::Float64Type;

use super::{Accumulator, Groups};
use crate::catalog::functions::{EvalError, Regression};

#[derive(Debug)]
pub(super) struct Regressions {
    /// None: regr_count.
    which: Option<Regression>,
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl State {
    /// False: PostgreSQL raises "value out of range: overflow".
    fn add(&mut self, y: f64, x: f64) -> bool {
        let before = *self;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before.count > 0.0 {
            let (dx, dy) = (x * self.count - self.x, y * self.count - self.y);
            let scale = 1.0 / (self.count * before.count);
            self.xx += dx * dx * scale;
            self.yy += dy * dy * scale;
            self.xy += dx * dy * scale;
            let x_was_finite = !before.x.is_infinite() && !x.is_infinite();
            let y_was_finite = !before.y.is_infinite() && !y.is_infinite();
            let overflows = ((self.x.is_infinite() || self.xx.is_infinite()) && x_was_finite)
                || ((self.y.is_infinite() || self.yy.is_infinite()) && y_was_finite)
                || (self.xy.is_infinite() && x_was_finite && y_was_finite);
            if overflows {
                return false;
            }
            for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
                if sum.is_infinite() {
                    *sum = f64::NAN;
                }
            }
        } else {
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
        }
        true
    }

    fn result(&self, which: Regression) -> Option<f64> {
        let least = if which == Regression::CovarSamp { 2.0 } else { 1.0 };
        if self.count < least {
            return None;
        }
        match which {
            Regression::Sxx => Some(self.xx),
            Regression::Syy => Some(self.yy),
            Regression::Sxy => Some(self.xy),
            Regression::AvgX => Some(self.x / self.count),
            Regression::AvgY => Some(self.y / self.count),
            Regression::CovarPop => Some(self.xy / self.count),
            Regression::CovarSamp => Some(self.xy / (self.count - 1.0)),
            Regression::Corr if self.xx == 0.0 || self.yy == 0.0 => None,
            Regression::Corr => Some(self.xy / (self.xx * self.yy).sqrt()),
            Regression::R2 | Regression::Slope | Regression::Intercept if self.xx == 0.0 => None,
            Regression::R2 if self.yy == 0.0 => Some(1.0),
            Regression::R2 => Some((self.xy * self.xy) / (self.xx * self.yy)),
            Regression::Slope => Some(self.xy / self.xx),
            Regression::Intercept => Some((self.y - self.x * self.xy / self.xx) / self.count),
        }
    }
}

impl Regressions {
    pub(super) fn new(which: Regression) -> Self {
        Self { which: Some(which), states: Vec::new() }
    }

    pub(super) fn count() -> Self {
        Self { which: None, states: Vec::new() }
    }
}

impl Accumulator for Regressions {
    fn update(&mut self, _: &Groups<'_>, _: Option<&ArrayRef>) -> Result<(), EvalError> {
        Err(EvalError::Beyond("a regression of one column".to_owned()))
    }

    fn update_all(&mut self, groups: &Groups<'_>, values: &[ArrayRef]) -> Result<(), EvalError> {
        let [y, x] = values else { return self.update(groups, None) };
        self.states.resize(groups.count, State::default());
        let (y, x) = (y.as_primitive::<Float64Type>(), x.as_primitive::<Float64Type>());
        let mut fits = true;
        for row in (0..groups.rows).filter(|row| y.is_valid(*row) && x.is_valid(*row)) {
            let group = groups.ids.map_or(0, |ids| ids[row] as usize);
            fits &= self.states[group].add(y.value(row), x.value(row)) || self.which.is_none();
        }
        if fits { Ok(()) } else { Err(EvalError::Raises("value out of range: overflow".to_owned())) }
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.states.resize(groups, State::default());
        Ok(match self.which {
            None => Arc::new(Int64Array::from_iter_values(self.states.iter().map(|state| state.count as i64))),
            Some(which) => Arc::new(self.states.iter().map(|state| state.result(which)).collect::<Float64Array>()),
        })
    }

    fn bytes(&self) -> usize {
        self.states.len() * size_of::<State>()
    }
}
