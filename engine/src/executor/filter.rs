//! Keeps the rows on which all predicates are true.

use arrow::array::BooleanArray;
use arrow::buffer::BooleanBuffer;

use super::Run;
use super::batch::Batch;
use super::eval::{Environment, is_bool};
use crate::binder::{BoundExpr, cannot_raise};
use crate::catalog::functions::EvalError;

/// While more than one row in this many is left, computing a further predicate on all rows costs less than gathering.
const SPARSE: usize = 8;

impl Run<'_> {
    /// See [`Environment::filter`].
    pub(super) fn filter(
        &self,
        batch: Batch,
        predicates: &[BoundExpr],
        alive: Option<BooleanBuffer>,
        width: usize,
    ) -> Result<Batch, EvalError> {
        self.environment.filter(batch, predicates, alive, width)
    }
}

impl Environment<'_> {
    /// The first `width` columns of the rows. `alive`: set bit for rows that exist; None: all.
    pub(super) fn filter(
        &self,
        mut batch: Batch,
        predicates: &[BoundExpr],
        alive: Option<BooleanBuffer>,
        width: usize,
    ) -> Result<Batch, EvalError> {
        let mut keep = alive;
        for predicate in predicates {
            if let Some(bits) = &keep {
                let left = bits.count_set_bits();
                if !cannot_raise(predicate) || left * SPARSE < bits.len() {
                    batch = batch.filter(&BooleanArray::new(bits.clone(), None))?;
                    keep = None;
                }
            }
            if batch.rows == 0 {
                break;
            }
            let bits = is_bool(&self.evaluate_booleans(predicate, &batch)?, Some(true));
            keep = Some(match keep {
                Some(before) => &before & &bits,
                None => bits,
            });
        }
        batch.truncate(width);
        match keep {
            Some(bits) => batch.filter(&BooleanArray::new(bits, None)),
            None => Ok(batch),
        }
    }
}
