//! Text as its place in the order of a collation that upstream has told (see [`crate::catalog::order`]), and back.
//!
//! No function of PostgreSQL's: the binder and the planner put these where text is compared, ordered or reduced to an
//! extreme. Stable, so that nothing computed from a place outlives the execution.

use arrow::array::ArrayRef;

use super::rows::{Text, to_number, to_text};
use super::{EvalContext, EvalError, Function, Operand};
use crate::catalog::order::OrderView;
use crate::types::PgType::{Bpchar, Int8, Text as TextType};
use crate::types::{Oid, Value};

fn view<'a>(operands: &[Operand], context: &'a EvalContext<'_>) -> Result<(&'a OrderView, Oid), EvalError> {
    match (operands, context.orders) {
        ([_, Operand::Scalar(Value::Int8(collation))], Some(view)) => Ok((view, *collation as Oid)),
        _ => Err(EvalError::Beyond("order of text without a collation".to_owned())),
    }
}

fn too_many() -> EvalError {
    EvalError::Beyond("the order of so many texts".to_owned())
}

fn rank(operands: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let (view, collation) = view(operands, context)?;
    to_number::<(Text,), i64>(&operands[..1], rows, |(text,)| view.rank(collation, text).ok_or_else(too_many))
}

/// Trailing spaces do not count (varchar.c, bpcharcmp).
fn rank_padded(operands: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let (view, collation) = view(operands, context)?;
    to_number::<(Text,), i64>(&operands[..1], rows, |(text,)| {
        view.rank(collation, text.trim_end_matches(' ')).ok_or_else(too_many)
    })
}

fn text_at(operands: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let (view, collation) = view(operands, context)?;
    to_text::<(i64,)>(&operands[..1], rows, |(rank,), out| {
        out.push_str(view.text(collation, rank));
        Ok(())
    })
}

/// Text, collation → place.
pub static RANK: Function = Function::stable("collation_rank", &[TextType, Int8], Int8, rank, "varlena.c varstr_cmp");

/// Likewise of char(n).
pub static RANK_PADDED: Function =
    Function::stable("collation_rank", &[Bpchar, Int8], Int8, rank_padded, "varchar.c bpcharcmp");

/// Place, collation → text.
pub static TEXT_AT: Function =
    Function::stable("collation_text", &[Int8, Int8], TextType, text_at, "the reverse of collation_rank");
