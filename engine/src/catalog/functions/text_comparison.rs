//! = <> < <= > >= over text, bpchar, name and bits, byte by byte.
//!
//! Equality is that of every deterministic collation. The order is that of C and POSIX only: whether a collation
//! allows it is the binder's to check (PostgreSQL: varlena.c, varstr_cmp).

use arrow::array::ArrayRef;

use super::comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, Relation, six};
use super::rows::{Text, to_bool};
use super::{EvalContext, EvalError, Function, Operand};
use crate::planted::{Bug, is_planted};
use crate::types::PgType::{Bit, Bool, Bpchar, Name, Text as TextType, Varbit};

fn texts<R: Relation>(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Text)>(operands, rows, |(a, b)| Ok(R::holds(a.as_bytes().cmp(b.as_bytes()))))
}

/// bcTruelen: trailing spaces do not count (varchar.c, bpchareq, bpcharlt).
fn padded_texts<R: Relation>(
    operands: &[Operand],
    rows: usize,
    context: &EvalContext<'_>,
) -> Result<ArrayRef, EvalError> {
    if is_planted(Bug::KeepBlanks) {
        return texts::<R>(operands, rows, context);
    }
    to_bool::<(Text, Text)>(operands, rows, |(a, b)| {
        Ok(R::holds(a.trim_end_matches(' ').as_bytes().cmp(b.trim_end_matches(' ').as_bytes())))
    })
}

pub(super) static ENTRIES: &[Function] = six! {
    TextType TextType "varlena.c text" texts;
    Bpchar Bpchar "varchar.c bpchar" padded_texts;
    Name Name "name.c name" texts;
    Name TextType "varlena.c nametext" texts;
    TextType Name "varlena.c textname" texts;
    Bit Bit "varbit.c bit" texts;
    Varbit Varbit "varbit.c bit" texts;
};
