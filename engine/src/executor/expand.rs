//! Functions in FROM, called for each row of the input (PostgreSQL: nodeFunctionscan.c below a nested loop). Several stand side by
//! side as in ROWS FROM.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt32Array};

use super::batch::Batch;
use super::sets::Steps;
use super::{Batching, Flow, Run, Sink};
use crate::binder::RowsCall;
use crate::catalog::functions::{EvalError, RowsKernel};
use crate::planner::expression::type_of;
use crate::planner::node::Expand;
use crate::types::access::value_at;
use crate::types::array::ArrayView;
use crate::types::build::ColumnBuilder;
use crate::types::{PgType, Value};

/// Rows that are handed on together.
const ROWS: usize = 8_192;
/// What a row takes while it is made: its value, then its place in a column and in what is put beside it.
const ROW_BYTES: usize = size_of::<Value>() + 24;

/// Rows in the making, of one batch of the input.
struct Made {
    /// Of the input, by number in its batch.
    parents: Vec<u32>,
    columns: Vec<ColumnBuilder>,
    /// NULL beside a row without any.
    numbers: Vec<Option<i64>>,
}

impl Made {
    fn new(expand: &Expand) -> Self {
        let types = expand.functions.iter().flat_map(|call| &call.columns).map(|column| column.pg_type);
        let columns = types.map(|pg_type| ColumnBuilder::new(pg_type, -1)).collect();
        Self { parents: Vec::new(), columns, numbers: Vec::new() }
    }
}

impl Run<'_> {
    pub(super) fn expand(&self, expand: &Expand, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let mut largest = 0;
        self.run(&expand.input, Batching::Small, &mut |batch| {
            let mut arguments = Vec::with_capacity(expand.functions.len());
            for call in &expand.functions {
                let columns = call.arguments.iter().map(|argument| self.environment.evaluate_column(argument, &batch));
                arguments.push(columns.collect::<Result<Vec<ArrayRef>, _>>()?);
            }
            let mut made = Made::new(expand);
            let mut results: Vec<Vec<Value>> = vec![Vec::new(); expand.functions.len()];
            for row in 0..batch.rows {
                let mut rows = 0;
                for ((call, columns), values) in expand.functions.iter().zip(&arguments).zip(&mut results) {
                    values.clear();
                    self.call_for_row(call, columns, row, values, &mut largest)?;
                    rows = rows.max(values.len() / call.columns.len());
                }
                append(expand, &results, row, rows, &mut made);
                if made.parents.len() >= ROWS || row + 1 == batch.rows {
                    self.check_cancelled()?;
                    self.count_join_rows(made.parents.len())?;
                    let made = std::mem::replace(&mut made, Made::new(expand));
                    if !made.parents.is_empty() && sink(beside(&batch, expand, made)?)?.is_break() {
                        return Ok(Flow::Break(()));
                    }
                }
            }
            Ok(Flow::Continue(()))
        })
    }

    /// Counts what a function is about to give for one row of arguments, before it gives it: a huge array is over the budget
    /// while it still is an array. `largest`: what was counted before; rows are handed on, so that only more than that counts.
    fn charge_rows(&self, values: &[Value], largest: &mut usize) -> Result<(), EvalError> {
        let of_value = |value: &Value| match value {
            Value::Array(bytes) => ArrayView::of(bytes).len().saturating_mul(ROW_BYTES).saturating_add(bytes.len()),
            // A member of jsonb or a field of a text has two characters at least, most have more.
            Value::Text(text) => (text.len() / 4).saturating_mul(ROW_BYTES),
            _ => 0,
        };
        let bytes = values.iter().map(of_value).fold(0, usize::saturating_add);
        self.charge_growth(largest, bytes)
    }

    fn call_for_row(
        &self,
        call: &RowsCall,
        columns: &[ArrayRef],
        row: usize,
        out: &mut Vec<Value>,
        largest: &mut usize,
    ) -> Result<(), EvalError> {
        let values = columns.iter().zip(&call.arguments);
        let values: Vec<Value> =
            values.map(|(column, argument)| value_at(column.as_ref(), type_of(argument), row)).collect();
        if call.function.is_strict && values.iter().any(Value::is_null) {
            return Ok(());
        }
        match call.function.kernel {
            RowsKernel::Rows(rows) => {
                self.charge_rows(&values, largest)?;
                rows(&values, out)
            }
            RowsKernel::Series => {
                let pg_type = call.columns[0].pg_type;
                let mut steps = Steps::new(&values, pg_type, self.environment.context.settings)?;
                while let Some(number) = steps.next()? {
                    out.push(match pg_type {
                        PgType::Int4 => Value::Int4(number as i32),
                        PgType::Timestamp => Value::Timestamp(number),
                        PgType::Timestamptz => Value::Timestamptz(number),
                        _ => Value::Int8(number),
                    });
                    if out.len().is_multiple_of(ROWS) {
                        self.check_cancelled()?;
                        self.charge(ROWS * size_of::<Value>())?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// The rows of one input row; NULLs where a function has fewer.
fn append(expand: &Expand, results: &[Vec<Value>], parent: usize, rows: usize, made: &mut Made) {
    let is_padding = rows == 0 && expand.keeps_empty;
    for at in 0..if is_padding { 1 } else { rows } {
        made.parents.push(parent as u32);
        made.numbers.push((!is_padding).then_some(at as i64 + 1));
        let mut columns = made.columns.iter_mut();
        for (call, values) in expand.functions.iter().zip(results) {
            let width = call.columns.len();
            for place in 0..width {
                if let Some(column) = columns.next() {
                    column.append_value(values.get(at * width + place).unwrap_or(&Value::Null));
                }
            }
        }
    }
}

fn beside(batch: &Batch, expand: &Expand, made: Made) -> Result<Batch, EvalError> {
    let mut rows = batch.select(&Arc::new(UInt32Array::from(made.parents)))?;
    made.columns.into_iter().for_each(|column| rows.push_array(column.finish()));
    if expand.is_numbered {
        rows.push_array(Arc::new(Int64Array::from(made.numbers)));
    }
    Ok(rows)
}
