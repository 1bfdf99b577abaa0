//! Evaluates a bound expression over a batch: kernels for calls, PostgreSQL's rules for what is evaluated at all.
//!
//! AND, OR, CASE and COALESCE evaluate an operand only on the rows that PostgreSQL would evaluate it on, because it
//! may raise an error there. An error on any row ends the statement's local execution.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{and_kleene, not, or_kleene};

use super::arrays::{self, assemble, constant_booleans, internal, null_bits, to_array, to_booleans, unify};
use super::batch::Batch;
use super::key_table::{self, KeyTable};
use crate::binder::{BoundExpr, cannot_raise};
use crate::catalog::functions::{EvalContext, EvalError, Function, Operand, at_once};
use crate::planner::expression::type_of;
use crate::planted::{Bug, is_planted};
use crate::types::access::value_at;
use crate::types::{PgType, Value};

/// What expressions may depend on besides the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Environment<'a> {
    pub(super) parameters: &'a [Value],
    pub(super) context: &'a EvalContext<'a>,
}

/// The value of an expression without columns.
pub(crate) fn constant(expr: &BoundExpr, parameters: &[Value], context: &EvalContext<'_>) -> Result<Value, EvalError> {
    let one_row = Batch::new(Vec::new(), 1);
    match (Environment { parameters, context }).evaluate(expr, &one_row)? {
        Operand::Scalar(value) => Ok(value),
        Operand::Column(array) => Ok(value_at(array.as_ref(), type_of(expr), 0)),
    }
}

impl Environment<'_> {
    /// The expression's values as a column of `batch.rows` rows.
    pub(super) fn evaluate_column(&self, expr: &BoundExpr, batch: &Batch) -> Result<ArrayRef, EvalError> {
        Ok(to_array(self.evaluate(expr, batch)?, type_of(expr), batch.rows))
    }

    pub(super) fn evaluate_booleans(&self, expr: &BoundExpr, batch: &Batch) -> Result<BooleanArray, EvalError> {
        to_booleans(self.evaluate(expr, batch)?, batch.rows)
    }

    /// A scalar stands for a value that is the same on all rows of the batch.
    pub(super) fn evaluate(&self, expr: &BoundExpr, batch: &Batch) -> Result<Operand, EvalError> {
        match expr {
            BoundExpr::Column { index, .. } => Ok(Operand::Column(batch.column(*index)?)),
            BoundExpr::Literal { value, .. } => Ok(Operand::Scalar(value.clone())),
            BoundExpr::Parameter { index, .. } => match self.parameters.get(*index) {
                Some(value) => Ok(Operand::Scalar(value.clone())),
                None => Err(EvalError::Beyond(format!("no value for ${}", index + 1))),
            },
            BoundExpr::Call { function, arguments, .. } => {
                let operands = self.evaluate_all(arguments, batch)?;
                self.call(function, &operands, batch.rows)
            }
            BoundExpr::And(operands) => self.and_or(operands, batch, Connective::And),
            BoundExpr::Or(operands) => self.and_or(operands, batch, Connective::Or),
            BoundExpr::Not(operand) => Ok(match self.evaluate(operand, batch)? {
                Operand::Scalar(Value::Bool(value)) => Operand::Scalar(Value::Bool(!value)),
                Operand::Scalar(_) => Operand::Scalar(Value::Null),
                column => booleans(not(&to_booleans(column, batch.rows)?).map_err(internal)?),
            }),
            BoundExpr::IsNull { operand, negated } => Ok(match self.evaluate(operand, batch)? {
                Operand::Scalar(value) => Operand::Scalar(Value::Bool(value.is_null() != *negated)),
                Operand::Column(array) => {
                    let nulls = null_bits(&array);
                    booleans(BooleanArray::new(if *negated { !&nulls } else { nulls }, None))
                }
            }),
            BoundExpr::IsBool { operand, expected, negated } => {
                let values = self.evaluate_booleans(operand, batch)?;
                let bits = is_bool(&values, *expected);
                Ok(booleans(BooleanArray::new(if *negated { !&bits } else { bits }, None)))
            }
            BoundExpr::IsDistinct { equal, left, right, negated } => {
                let bits = self.is_distinct(equal, [left, right], batch)?;
                Ok(booleans(BooleanArray::new(if *negated { !&bits } else { bits }, None)))
            }
            BoundExpr::Case { branches, otherwise, .. } => self.case(branches, otherwise, type_of(expr), batch),
            BoundExpr::Coalesce { arguments, .. } => self.coalesce(arguments, type_of(expr), batch),
            BoundExpr::Extreme { less, greatest, arguments, .. } => {
                self.extreme(less, *greatest, arguments, type_of(expr), batch)
            }
            BoundExpr::InList { equal, operand, list, negated } => {
                let found = self.in_list(equal, operand, list, batch)?;
                let found =
                    if is_planted(Bug::DropNull) { BooleanArray::new(found.values().clone(), None) } else { found };
                Ok(booleans(if *negated { not(&found).map_err(internal)? } else { found }))
            }
        }
    }

    /// Each may be as large as is allowed at once, and all of them live together.
    fn evaluate_all(&self, arguments: &[BoundExpr], batch: &Batch) -> Result<Vec<Operand>, EvalError> {
        let (mut operands, mut bytes) = (Vec::with_capacity(arguments.len()), 0);
        for argument in arguments {
            let operand = self.evaluate(argument, batch)?;
            if let (Operand::Column(made), false) = (&operand, matches!(argument, BoundExpr::Column { .. })) {
                bytes += arrays::variable_bytes(made);
                at_once::check(bytes)?;
            }
            operands.push(operand);
        }
        Ok(operands)
    }

    fn call(&self, function: &Function, operands: &[Operand], rows: usize) -> Result<Operand, EvalError> {
        if operands.iter().all(|operand| matches!(operand, Operand::Scalar(_))) {
            let array = (function.kernel)(operands, 1, self.context)?;
            return Ok(Operand::Scalar(value_at(array.as_ref(), function.result, 0)));
        }
        let array = (function.kernel)(operands, rows, self.context)?;
        debug_assert_eq!(array.len(), rows, "{} returns one value per row", function.name);
        Ok(Operand::Column(array))
    }

    fn and_or(&self, operands: &[BoundExpr], batch: &Batch, connective: Connective) -> Result<Operand, EvalError> {
        let mut result = constant_booleans(Some(connective.neutral()), batch.rows);
        for (at, operand) in operands.iter().enumerate() {
            if at == 0 || cannot_raise(operand) {
                let values = self.evaluate_booleans(operand, batch)?;
                result = if at == 0 { values } else { connective.combine(&result, &values)? };
                continue;
            }
            let undecided = connective.undecided(&result);
            if undecided.is_empty() {
                break;
            }
            let rows = Arc::new(UInt32Array::from(undecided));
            let values = self.evaluate_booleans(operand, &batch.select(&rows)?)?;
            result = connective.combine(&result, &scatter(&values, rows.values(), batch.rows, connective.neutral()))?;
        }
        Ok(booleans(result))
    }

    /// Set bit: the two differ, NULL being a value like any other.
    fn is_distinct(&self, equal: &Function, sides: [&BoundExpr; 2], batch: &Batch) -> Result<BooleanBuffer, EvalError> {
        let operands = [self.evaluate(sides[0], batch)?, self.evaluate(sides[1], batch)?];
        let equal = to_booleans(self.call(equal, &operands, batch.rows)?, batch.rows)?;
        let nulls = operands.map(|operand| match operand {
            Operand::Scalar(value) if value.is_null() => BooleanBuffer::new_set(batch.rows),
            Operand::Scalar(_) => BooleanBuffer::new_unset(batch.rows),
            Operand::Column(array) => null_bits(&array),
        });
        let differ = !&is_bool(&equal, Some(true));
        Ok(&differ & &!&(&nulls[0] & &nulls[1]))
    }

    fn case(
        &self,
        branches: &[(BoundExpr, BoundExpr)],
        otherwise: &BoundExpr,
        pg_type: PgType,
        batch: &Batch,
    ) -> Result<Operand, EvalError> {
        let mut pieces = Vec::new();
        let mut rest = Rest::all(batch);
        for (condition, result) in branches {
            if rest.rows.is_empty() {
                break;
            }
            let taken = is_bool(&self.evaluate_booleans(condition, &rest.batch)?, Some(true));
            let (chosen, left) = rest.split(&taken)?;
            if !chosen.rows.is_empty() {
                pieces.push((chosen.rows, self.evaluate_column(result, &chosen.batch)?));
            }
            rest = left;
        }
        if !rest.rows.is_empty() {
            pieces.push((rest.rows, self.evaluate_column(otherwise, &rest.batch)?));
        }
        whole(pieces, pg_type, batch.rows)
    }

    fn coalesce(&self, arguments: &[BoundExpr], pg_type: PgType, batch: &Batch) -> Result<Operand, EvalError> {
        let mut pieces = Vec::new();
        let mut rest = Rest::all(batch);
        for (at, argument) in arguments.iter().enumerate() {
            if rest.rows.is_empty() {
                break;
            }
            let values = self.evaluate_column(argument, &rest.batch)?;
            let nulls = null_bits(&values);
            let has_nulls = nulls.count_set_bits() > 0;
            if !has_nulls || at + 1 == arguments.len() {
                pieces.push((std::mem::take(&mut rest.rows), values));
                break;
            }
            let (left, chosen) = rest.split(&nulls)?;
            let keep = BooleanArray::new(!&nulls, None);
            let values = arrow::compute::filter(values.as_ref(), &keep).map_err(internal)?;
            if !chosen.rows.is_empty() {
                pieces.push((chosen.rows, values));
            }
            rest = left;
        }
        whole(pieces, pg_type, batch.rows)
    }

    /// NULLs do not count; of equal values the first stays (PostgreSQL: execExprInterp.c ExecEvalMinMax).
    fn extreme(
        &self,
        less: &Function,
        greatest: bool,
        arguments: &[BoundExpr],
        pg_type: PgType,
        batch: &Batch,
    ) -> Result<Operand, EvalError> {
        let mut best: Option<ArrayRef> = None;
        for argument in arguments {
            let value = self.evaluate_column(argument, batch)?;
            let Some(so_far) = best else {
                best = Some(value);
                continue;
            };
            let (a, b) = if greatest { (&so_far, &value) } else { (&value, &so_far) };
            let operands = [Operand::Column(a.clone()), Operand::Column(b.clone())];
            let better = is_bool(&to_booleans(self.call(less, &operands, batch.rows)?, batch.rows)?, Some(true));
            let choose = &(&better | &null_bits(&so_far)) & &!&null_bits(&value);
            let forms = unify(pg_type, vec![value, so_far])?;
            best = Some(zip(&BooleanArray::new(choose, None), &forms[0], &forms[1]).map_err(internal)?);
        }
        best.map(Operand::Column).ok_or_else(|| EvalError::Beyond("GREATEST of nothing".to_owned()))
    }

    fn in_list(
        &self,
        equal: &Function,
        operand: &BoundExpr,
        list: &[BoundExpr],
        batch: &Batch,
    ) -> Result<BooleanArray, EvalError> {
        let values = self.evaluate(operand, batch)?;
        let items = self.evaluate_all(list, batch)?;
        let is_constant = items.iter().all(|item| matches!(item, Operand::Scalar(_)));
        if let Operand::Column(array) = &values
            && is_constant
            && items.len() >= HASHED_LIST_MIN
            && equal.arguments[0] == equal.arguments[1]
            && key_table::check(equal.arguments[0]).is_ok()
        {
            return in_hashed_list(array, &items, equal.arguments[0]);
        }
        let mut found = constant_booleans(Some(false), batch.rows);
        for item in items {
            let matches = to_booleans(self.call(equal, &[values.clone(), item], batch.rows)?, batch.rows)?;
            found = or_kleene(&found, &matches).map_err(internal)?;
        }
        Ok(found)
    }
}

/// The pieces of a column put together.
fn whole(mut pieces: Vec<(Vec<u32>, ArrayRef)>, pg_type: PgType, rows: usize) -> Result<Operand, EvalError> {
    // A piece's rows ascend, so a single one is the whole in order.
    if pieces.len() == 1 {
        return Ok(Operand::Column(pieces.swap_remove(0).1));
    }
    Ok(Operand::Column(assemble(pg_type, &pieces, rows)?))
}

/// Shorter lists are compared item by item.
const HASHED_LIST_MIN: usize = 8;

fn in_hashed_list(array: &ArrayRef, items: &[Operand], pg_type: PgType) -> Result<BooleanArray, EvalError> {
    let mut has_null = false;
    let mut columns = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Operand::Scalar(Value::Null) => has_null = true,
            Operand::Scalar(value) => columns.push(crate::types::access::array_of(value, pg_type, 1)),
            Operand::Column(_) => unreachable!("the caller has seen that all are scalars"),
        }
    }
    let keys = arrays::concatenate(pg_type, &columns)?;
    let table = KeyTable::of_keys(&[pg_type], &[keys])?;
    let ids = table.find(std::slice::from_ref(array), array.len())?;
    let found = BooleanBuffer::collect_bool(ids.len(), |row| ids[row] != KeyTable::NONE);
    // Not found: unknown if the value or any item is NULL.
    let known = if has_null { found.clone() } else { !&null_bits(array) };
    Ok(BooleanArray::new(found, Some(NullBuffer::new(known))))
}

#[derive(Clone, Copy)]
enum Connective {
    And,
    Or,
}

impl Connective {
    /// The value that leaves the other operand's.
    fn neutral(self) -> bool {
        matches!(self, Self::And)
    }

    fn combine(self, left: &BooleanArray, right: &BooleanArray) -> Result<BooleanArray, EvalError> {
        match self {
            Self::And => and_kleene(left, right),
            Self::Or => or_kleene(left, right),
        }
        .map_err(internal)
    }

    /// The rows that a further operand can still change.
    fn undecided(self, values: &BooleanArray) -> Vec<u32> {
        let decided = is_bool(values, Some(!self.neutral()));
        (!&decided).set_indices_u32().collect()
    }
}

fn booleans(array: BooleanArray) -> Operand {
    Operand::Column(Arc::new(array))
}

/// Set bit: the value is `expected` (None: NULL).
pub(super) fn is_bool(values: &BooleanArray, expected: Option<bool>) -> BooleanBuffer {
    let nulls = values.nulls().map(|nulls| nulls.inner());
    let with_nulls = |bits: BooleanBuffer| match nulls {
        Some(valid) => &bits & valid,
        None => bits,
    };
    match expected {
        Some(true) => with_nulls(values.values().clone()),
        Some(false) => with_nulls(!values.values()),
        None => nulls.map_or_else(|| BooleanBuffer::new_unset(values.len()), |valid| !valid),
    }
}

/// `values` at `rows`, `elsewhere` at the others.
fn scatter(values: &BooleanArray, rows: &[u32], length: usize, elsewhere: bool) -> BooleanArray {
    let mut bits = vec![elsewhere; length];
    let mut valid = vec![true; length];
    for (at, row) in rows.iter().enumerate() {
        bits[*row as usize] = values.value(at);
        valid[*row as usize] = values.is_valid(at);
    }
    BooleanArray::new(BooleanBuffer::from(bits), Some(NullBuffer::from(valid)))
}

/// The rows of a batch that no branch has taken yet.
struct Rest {
    /// Positions in the whole batch, ascending.
    rows: Vec<u32>,
    batch: Batch,
}

impl Rest {
    fn all(batch: &Batch) -> Self {
        Self { rows: (0..batch.rows as u32).collect(), batch: batch.clone() }
    }

    /// The rows whose bit is set, and the others.
    fn split(self, bits: &BooleanBuffer) -> Result<(Self, Self), EvalError> {
        Ok((self.part(bits)?, self.part(&!bits)?))
    }

    fn part(&self, bits: &BooleanBuffer) -> Result<Self, EvalError> {
        if bits.count_set_bits() == bits.len() {
            return Ok(Self { rows: self.rows.clone(), batch: self.batch.clone() });
        }
        let chosen: Vec<u32> = bits.set_indices_u32().collect();
        let rows = chosen.iter().map(|at| self.rows[*at as usize]).collect();
        Ok(Self { rows, batch: self.batch.select(&Arc::new(UInt32Array::from(chosen)))? })
    }
}
