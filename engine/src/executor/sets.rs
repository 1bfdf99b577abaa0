//! Rows that come from several places, or from none: UNION ALL, INTERSECT, EXCEPT, DISTINCT ON, VALUES, generate_series,
//! and what the plan's parts have in common.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, UInt32Array};

use super::arrays::concatenate;
use super::batch::Batch;
use super::key_table::{KeyTable, Purpose, first_rows};
use super::{Batching, Flow, Run, Sink};
use crate::binder::BoundExpr;
use crate::catalog::functions::EvalError;
use crate::planner::expression::type_of;
use crate::planner::node::PlanNode;
use crate::statement::ast::SetOperation;
use crate::types::access::array_of;
use crate::types::datetime::arithmetic::{add_to_timestamp, add_to_timestamptz};
use crate::types::datetime::zone::OffsetCursor;
use crate::types::{Interval, PgType, Value};

/// Rows of a series that are put into one batch.
const SERIES_ROWS: usize = 8_192;

impl Run<'_> {
    pub(super) fn append(
        &self,
        inputs: &[PlanNode],
        batching: Batching,
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        for input in inputs {
            if self.run(input, batching, sink)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    /// The common rows, computed when they are first read.
    pub(super) fn common(
        &self,
        index: usize,
        columns: &[usize],
        batching: Batching,
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        let cell = &self.state.commons[index];
        if cell.get().is_none() {
            let node = &self.commons[index];
            let batches = self.collect(node)?;
            let whole = match self.concatenate(node, batches)? {
                Some(whole) => {
                    let gathered = whole.into_row_batch()?;
                    Batch::of_shared(gathered.columns, gathered.rows)
                }
                None => Batch::new(Vec::new(), 0),
            };
            let _ = cell.set(whole);
        }
        let Some(whole) = cell.get().filter(|whole| whole.rows > 0) else { return Ok(Flow::Continue(())) };
        let mut wanted = Batch::new(Vec::new(), whole.rows);
        columns.iter().for_each(|column| wanted.push_column_of(whole, *column));
        let mut offset = 0;
        while offset < wanted.rows {
            self.check_cancelled()?;
            let rows = batching.rows().min(wanted.rows - offset);
            if sink(wanted.slice(offset, rows))?.is_break() {
                return Ok(Flow::Break(()));
            }
            offset += rows;
        }
        Ok(Flow::Continue(()))
    }

    /// PostgreSQL: nodeSetOp.c. Rows are those of the left side.
    pub(super) fn set_operation(
        &self,
        operation: SetOperation,
        is_all: bool,
        sides: [&PlanNode; 2],
        types: &[PgType],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        let estimate = self.estimate(sides[0]);
        let mut table = KeyTable::new(types, Purpose::Groups, estimate)?;
        let Some(left) = self.concatenate(sides[0], self.collect(sides[0])?)? else {
            // PostgreSQL reads the right side all the same, up to version 17, and raises its errors.
            return self.run(sides[1], Batching::Whole, &mut |_| self.check_cancelled().map(Flow::Continue));
        };
        let keys = |batch: &Batch| (0..types.len()).map(|column| batch.column(column)).collect::<Result<Vec<_>, _>>();
        let ids = table.assign(&keys(&left)?, left.rows)?;
        let known = table.len();
        let first = first_rows(&ids, 0, known);
        let mut counts = vec![[0_usize; 2]; known];
        ids.iter().for_each(|id| counts[*id as usize][0] += 1);
        let _ = self.run(sides[1], Batching::Whole, &mut |batch| {
            self.check_cancelled()?;
            for id in table.assign(&keys(&batch)?, batch.rows)? {
                if let Some(counts) = counts.get_mut(id as usize) {
                    counts[1] += 1;
                }
            }
            Ok(Flow::Continue(()))
        })?;
        self.charge(table.bytes() + known * 16)?;
        let mut rows = Vec::new();
        for (first, [left, right]) in first.into_iter().zip(counts) {
            let copies = match (operation, is_all) {
                (SetOperation::Intersect, true) => left.min(right),
                (SetOperation::Intersect, false) => usize::from(right > 0),
                (SetOperation::Except, true) => left.saturating_sub(right),
                (SetOperation::Except, false) => usize::from(right == 0),
                (SetOperation::Union, _) => return Err(EvalError::Beyond("UNION as one operator".to_owned())),
            };
            rows.extend(std::iter::repeat_n(first, copies));
        }
        if rows.is_empty() { Ok(Flow::Continue(())) } else { sink(left.select(&Arc::new(UInt32Array::from(rows)))?) }
    }

    pub(super) fn distinct_on(
        &self,
        input: &PlanNode,
        keys: &[BoundExpr],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        let types: Vec<PgType> = keys.iter().map(type_of).collect();
        let mut table = KeyTable::new(&types, Purpose::Same, self.estimate(input))?;
        let mut charged = 0;
        self.run(input, Batching::Small, &mut |batch| {
            let keys = keys.iter().map(|key| self.environment.evaluate_column(key, &batch));
            let known = table.len();
            let ids = table.assign(&keys.collect::<Result<Vec<_>, _>>()?, batch.rows)?;
            self.charge_growth(&mut charged, table.bytes())?;
            let rows = first_rows(&ids, known, table.len());
            if rows.is_empty() {
                return Ok(Flow::Continue(()));
            }
            sink(batch.select(&Arc::new(UInt32Array::from(rows)))?)
        })
    }

    pub(super) fn values(
        &self,
        rows: &[Vec<BoundExpr>],
        types: &[PgType],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(types.len());
        for (column, pg_type) in types.iter().enumerate() {
            let mut cells = Vec::with_capacity(rows.len());
            for row in rows {
                cells.push(array_of(&self.constant(&row[column])?, *pg_type, 1));
            }
            columns.push(concatenate(*pg_type, &cells)?);
        }
        sink(Batch::new(columns, rows.len()))
    }

    /// generate_series (PostgreSQL: int.c, int8.c, timestamp.c). A NULL bound gives no rows.
    pub(super) fn series(&self, bounds: &[BoundExpr], pg_type: PgType, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let bounds = bounds.iter().map(|bound| self.constant(bound)).collect::<Result<Vec<_>, _>>()?;
        if bounds.iter().any(Value::is_null) {
            return Ok(Flow::Continue(()));
        }
        let mut values: Vec<i64> = Vec::with_capacity(SERIES_ROWS);
        let mut flush = |values: &mut Vec<i64>| {
            self.check_cancelled()?;
            self.count_join_rows(values.len())?;
            let rows = values.len();
            let full = std::mem::replace(values, Vec::with_capacity(SERIES_ROWS));
            let array: ArrayRef = match pg_type {
                PgType::Int4 => Arc::new(Int32Array::from_iter_values(full.iter().map(|value| *value as i32))),
                _ => Arc::new(Int64Array::from(full)),
            };
            if rows == 0 { Ok(Flow::Continue(())) } else { sink(Batch::new(vec![array], rows)) }
        };
        let mut steps = Steps::new(&bounds, pg_type, self.environment.context.settings)?;
        loop {
            steps.fill(&mut values)?;
            let is_full = values.len() == SERIES_ROWS;
            if flush(&mut values)?.is_break() {
                return Ok(Flow::Break(()));
            }
            if !is_full {
                return Ok(Flow::Continue(()));
            }
        }
    }

    pub(super) fn constant(&self, expr: &BoundExpr) -> Result<Value, EvalError> {
        super::eval::constant(expr, self.environment.parameters, self.environment.context)
    }
}

/// One value after the other.
pub(super) struct Steps {
    /// None: the end.
    next: Option<i64>,
    last: i64,
    step: Step,
}

enum Step {
    Number { step: i64, is_int4: bool },
    Span { span: Interval, is_back: bool, zone: Option<OffsetCursor> },
}

impl Steps {
    pub(super) fn new(
        bounds: &[Value],
        pg_type: PgType,
        settings: &crate::types::FormatSettings,
    ) -> Result<Self, EvalError> {
        let number = |value: &Value| match value {
            Value::Int4(value) => Ok(i64::from(*value)),
            Value::Int8(value) | Value::Timestamp(value) | Value::Timestamptz(value) => Ok(*value),
            _ => Err(EvalError::Beyond("a series of another type".to_owned())),
        };
        let zero = || EvalError::Raises("step size cannot equal zero".to_owned());
        let step = match bounds.get(2) {
            None => Step::Number { step: 1, is_int4: pg_type == PgType::Int4 },
            Some(Value::Interval(span)) => {
                let order = super::order::interval_span(*span);
                if order == 0 {
                    return Err(zero());
                }
                let zone = (pg_type == PgType::Timestamptz).then(|| OffsetCursor::new(&settings.time_zone));
                Step::Span { span: *span, is_back: order < 0, zone }
            }
            Some(value) => match number(value)? {
                0 => return Err(zero()),
                step => Step::Number { step, is_int4: pg_type == PgType::Int4 },
            },
        };
        let (first, last) = (number(&bounds[0])?, number(&bounds[1])?);
        let is_infinite = |value: i64| matches!(step, Step::Span { .. }) && (value == i64::MAX || value == i64::MIN);
        if is_infinite(first) || is_infinite(last) {
            return Err(EvalError::Beyond("a series without end".to_owned()));
        }
        Ok(Self { next: Some(first), last, step })
    }

    pub(super) fn next(&mut self) -> Result<Option<i64>, EvalError> {
        let Some(current) = self.next else { return Ok(None) };
        let is_back = match &self.step {
            Step::Number { step, .. } => *step < 0,
            Step::Span { is_back, .. } => *is_back,
        };
        if if is_back { current < self.last } else { current > self.last } {
            self.next = None;
            return Ok(None);
        }
        self.next = match &mut self.step {
            // A number that no longer fits ends the series.
            Step::Number { step, is_int4 } => {
                current.checked_add(*step).filter(|next| !*is_int4 || i32::try_from(*next).is_ok())
            }
            Step::Span { span, zone: None, .. } => Some(add_to_timestamp(current, span)?),
            Step::Span { span, zone: Some(cursor), .. } => Some(add_to_timestamptz(current, span, cursor)?),
        };
        Ok(Some(current))
    }

    /// Fills `values` up to a batch, less at the end.
    fn fill(&mut self, values: &mut Vec<i64>) -> Result<(), EvalError> {
        if let Step::Number { step, .. } = self.step {
            let Some(first) = self.next else { return Ok(()) };
            let steps = (i128::from(self.last) - i128::from(first)) / i128::from(step);
            // None if the end lies behind.
            let left = if (first > self.last) == (step < 0) || first == self.last { steps.max(0) + 1 } else { 0 };
            let rows = left.min(SERIES_ROWS as i128) as i64;
            // What there is lies between the bounds, whatever the product is on the way: modulo 2^64 it is exact.
            let at = |row: i64| first.wrapping_add(row.wrapping_mul(step));
            values.extend((0..rows).map(at));
            self.next = (left > i128::from(rows)).then(|| at(rows));
            return Ok(());
        }
        while values.len() < SERIES_ROWS
            && let Some(value) = self.next()?
        {
            values.push(value);
        }
        Ok(())
    }
}
