//! bit_and, bit_or, bit_xor of integers (pg_aggregate.dat: int2and and its kin, strict, without an initial value).

use std::sync::Arc;

use arrow::array::{ArrayRef, Int16Array, Int32Array, Int64Array};

use super::{Accumulator, Groups, for_each_valid, integers, nulls_of};
use crate::catalog::functions::{AggregateFunction, EvalError};
use crate::types::PgType;

#[derive(Debug)]
pub(super) struct Bits {
    combine: fn(i64, i64) -> i64,
    pg_type: Option<PgType>,
    /// By group, sign-extended, which none of the three can tell. None: no value yet.
    states: Vec<Option<i64>>,
}

impl Bits {
    pub(super) fn new(function: AggregateFunction, pg_type: Option<PgType>) -> Self {
        let combine: fn(i64, i64) -> i64 = match function {
            AggregateFunction::BitAnd => |a, b| a & b,
            AggregateFunction::BitOr => |a, b| a | b,
            _ => |a, b| a ^ b,
        };
        Self { combine, pg_type, states: Vec::new() }
    }

    fn take(&mut self, group: usize, value: i64) {
        let state = &mut self.states[group];
        *state = Some(state.map_or(value, |so_far| (self.combine)(so_far, value)));
    }
}

impl Accumulator for Bits {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.states.resize(groups.count, None);
        let value = integers(values);
        for_each_valid(groups, nulls_of(values), |group, row| self.take(group, value(row)));
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.states.resize(groups, None);
        let states = self.states.iter();
        Ok(match self.pg_type {
            Some(PgType::Int2) => Arc::new(states.map(|state| state.map(|bits| bits as i16)).collect::<Int16Array>()),
            Some(PgType::Int4) => Arc::new(states.map(|state| state.map(|bits| bits as i32)).collect::<Int32Array>()),
            _ => Arc::new(states.copied().collect::<Int64Array>()),
        })
    }

    fn bytes(&self) -> usize {
        self.states.len() * size_of::<Option<i64>>()
    }
}
