//! Text as its place in the order of a collation that upstream has told (see [`crate::catalog::order`]), and back; text in
//! lower and upper case under a collation.
//!
//! No functions of PostgreSQL's: the binder and the planner put these where text is compared, ordered or reduced to an
//! extreme, and in place of lower, upper and ILIKE. Stable, so that nothing computed from a place outlives the execution.

use arrow::array::ArrayRef;

use super::rows::{Text, to_number, to_text};
use super::{EvalContext, EvalError, Function, Operand};
use crate::catalog::order::{Case, OrderView};
use crate::types::PgType::{Bpchar, Int8, Text as TextType};
use crate::types::{EnumType, Oid, Value};

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

/// Which of its two forms a sigma has may depend on what follows it.
const SIGMA: char = 'Σ';

fn folded(o: &[Operand], rows: usize, context: &EvalContext<'_>, case: Case) -> Result<ArrayRef, EvalError> {
    let (view, collation) = view(o, context)?;
    to_text::<(Text,)>(&o[..1], rows, |(text,), out| {
        if text.is_ascii() {
            fold_ascii(text, case, out);
        } else if case == Case::Lower && text.contains(SIGMA) {
            return Err(EvalError::Beyond("lower case of sigma".to_owned()));
        } else {
            view.fold(collation, text, case, out);
        }
        Ok(())
    })
}

fn fold_ascii(text: &str, case: Case, out: &mut String) {
    let start = out.len();
    out.push_str(text);
    match case {
        Case::Lower => out[start..].make_ascii_lowercase(),
        Case::Upper => out[start..].make_ascii_uppercase(),
    }
}

fn lower(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    folded(o, rows, context, Case::Lower)
}

fn upper(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    folded(o, rows, context, Case::Upper)
}

fn lower_ascii(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(text,), out| {
        fold_ascii(text, Case::Lower, out);
        Ok(())
    })
}

fn upper_ascii(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(text,), out| {
        fold_ascii(text, Case::Upper, out);
        Ok(())
    })
}

/// Text, collation → text in lower case.
pub static LOWER: Function =
    Function::stable("collation_lower", &[TextType, Int8], TextType, lower, "formatting.c str_tolower");
pub static UPPER: Function =
    Function::stable("collation_upper", &[TextType, Int8], TextType, upper, "formatting.c str_toupper");

/// Where the character classes are C's: other letters stay as they are.
pub static LOWER_ASCII: Function =
    Function::immutable("ascii_lower", &[TextType], TextType, lower_ascii, "formatting.c asc_tolower");
pub static UPPER_ASCII: Function =
    Function::immutable("ascii_upper", &[TextType], TextType, upper_ascii, "formatting.c asc_toupper");

fn labels(operands: &[Operand]) -> Result<EnumType, EvalError> {
    let number = match operands {
        [_, Operand::Scalar(Value::Int8(number))] => u32::try_from(*number).ok(),
        _ => None,
    };
    number.and_then(EnumType::of_number).ok_or_else(|| EvalError::Beyond("labels of no enum".to_owned()))
}

fn place(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let labels = labels(operands)?;
    to_number::<(Text,), i64>(&operands[..1], rows, |(text,)| {
        // A label newer than the catalog that the statement was bound with.
        labels.place(text).ok_or_else(|| EvalError::Beyond(format!("label of {}", labels.name())))
    })
}

fn label_at(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let labels = labels(operands)?;
    to_text::<(i64,)>(&operands[..1], rows, |(place,), out| {
        out.push_str(labels.label(place).unwrap_or_default());
        Ok(())
    })
}

fn label(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let labels = labels(operands)?;
    to_text::<(Text,)>(&operands[..1], rows, |(text,), out| match labels.place(text) {
        Some(_) => {
            out.push_str(text);
            Ok(())
        }
        None => Err(EvalError::Raises(format!("invalid input value for enum {}", labels.name()))),
    })
}

/// Label, number of the enum type → its place in the type's order.
pub static PLACE: Function = Function::immutable("enum_place", &[TextType, Int8], Int8, place, "enum.c enum_cmp");

/// The reverse.
pub static LABEL_AT: Function =
    Function::immutable("enum_label", &[Int8, Int8], TextType, label_at, "the reverse of enum_place");

/// Text, number of the enum type → the same, if it is one of the labels.
pub static LABEL: Function = Function::immutable("enum_in", &[TextType, Int8], TextType, label, "enum.c enum_in");

/// Text, collation → place.
pub static RANK: Function = Function::stable("collation_rank", &[TextType, Int8], Int8, rank, "varlena.c varstr_cmp");

/// Likewise of char(n).
pub static RANK_PADDED: Function =
    Function::stable("collation_rank", &[Bpchar, Int8], Int8, rank_padded, "varchar.c bpcharcmp");

/// Place, collation → text.
pub static TEXT_AT: Function =
    Function::stable("collation_text", &[Int8, Int8], TextType, text_at, "the reverse of collation_rank");
