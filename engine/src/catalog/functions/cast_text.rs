//! Casts to and from text types: declared casts, length coercions, and conversion by output and input function
//! (PostgreSQL: parse_coerce.c, CoerceViaIO).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};

use super::rows::{Argument, Text, Truth, end_of, per_distinct, to_text};
use super::vector::operand;
use super::{EvalContext, EvalError, Function, Operand, Volatility};

use crate::types::PgType::{self, Bool, Bpchar, Int4, Name, Text as TextType, Varchar};
use crate::types::Value;
use crate::types::access::{null_array, value_at};
use crate::types::build::ColumnBuilder;
use crate::types::text;

fn bool_text(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Truth,)>(o, rows, |(value,), out| {
        out.push_str(if value { "true" } else { "false" });
        Ok(())
    })
}

fn identity(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    if let Some(Operand::Column(array)) = o.first() {
        return Ok(array.clone());
    }
    to_text::<(Text,)>(o, rows, |(text,), out| {
        out.push_str(text);
        Ok(())
    })
}

fn bpchar_text(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(text,), out| {
        out.push_str(text.trim_end_matches(' '));
        Ok(())
    })
}

fn text_name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(text,), out| {
        out.push_str(text::truncate_name(text));
        Ok(())
    })
}

fn bpchar_name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(text,), out| {
        out.push_str(text::truncate_name(text).trim_end_matches(' '));
        Ok(())
    })
}

/// varchar(n): an explicit cast cuts, an assignment raises unless only spaces go.
fn varchar_with_modifier(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, i32, Truth)>(o, rows, |(text, typmod, is_explicit), out| {
        out.push_str(if is_explicit {
            text::truncate_varchar(text, typmod)
        } else {
            text::limit_varchar(text, typmod)?
        });
        Ok(())
    })
}

/// bpchar(n): likewise, then padded.
fn bpchar_with_modifier(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, i32, Truth)>(o, rows, |(text, typmod, is_explicit), out| {
        let cut = if is_explicit { text::truncate_varchar(text, typmod) } else { text::limit_bpchar(text, typmod)? };
        out.push_str(&text::pad_bpchar(cut, typmod));
        Ok(())
    })
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("text", &[Bool], TextType, bool_text, "bool.c booltext"),
    Function::immutable("text", &[Bpchar], TextType, bpchar_text, "oracle_compat.c rtrim1"),
    Function::immutable("text", &[Name], TextType, identity, "varlena.c name_text"),
    Function::immutable("varchar", &[Name], Varchar, identity, "varlena.c name_text"),
    Function::immutable("bpchar", &[Name], Bpchar, identity, "varchar.c name_bpchar"),
    Function::immutable("name", &[TextType], Name, text_name, "varlena.c text_name"),
    Function::immutable("name", &[Varchar], Name, text_name, "varlena.c text_name"),
    Function::immutable("name", &[Bpchar], Name, bpchar_name, "varchar.c bpchar_name"),
    Function::immutable("varchar", &[Varchar, Int4, Bool], Varchar, varchar_with_modifier, "varchar.c varchar"),
    Function::immutable("bpchar", &[Bpchar, Int4, Bool], Bpchar, bpchar_with_modifier, "varchar.c bpchar"),
];

/// A type as a parameter of a kernel.
trait Known {
    const TYPE: PgType;
}

/// What the type's output function prints.
fn output<T: Known>(operands: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    print(operands, rows, context, T::TYPE)
}

/// The same as a name, which is cut.
fn output_name<T: Known>(operands: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let printed = print(operands, rows, context, T::TYPE)?;
    text_name(&[Operand::Column(printed)], rows, context)
}

fn print(operands: &[Operand], rows: usize, context: &EvalContext<'_>, from: PgType) -> Result<ArrayRef, EvalError> {
    if from.is_text_like() {
        return identity(operands, rows, context);
    }
    per_distinct(operands, rows, &|operands, rows| {
        let mut bytes = Vec::with_capacity(rows * 8);
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        let nulls = match operand(operands, 0)? {
            Operand::Scalar(Value::Null) => return Ok(null_array(TextType, rows)),
            Operand::Scalar(value) => {
                for _ in 0..rows {
                    text::write(value, from, context.settings, &mut bytes);
                    ends.push(end_of(bytes.len())?);
                }
                None
            }
            Operand::Column(array) => {
                for row in 0..rows {
                    if array.is_valid(row) {
                        text::write(&value_at(array, from, row), from, context.settings, &mut bytes);
                    }
                    ends.push(end_of(bytes.len())?);
                }
                array.nulls().cloned()
            }
        };
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        let texts = StringArray::try_new(offsets, bytes.into(), nulls);
        Ok(Arc::new(texts.map_err(|error| EvalError::Beyond(error.to_string()))?))
    })
}

/// What the type's input function makes of the text, without a modifier.
fn input<T: Known>(operands: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    per_distinct(operands, rows, &|operands, rows| {
        let Some(texts) = Text::view(operand(operands, 0)?)? else { return Ok(null_array(T::TYPE, rows)) };
        let nulls = Text::nulls(&texts);
        let mut builder = ColumnBuilder::new(T::TYPE, -1);
        for row in 0..rows {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                builder.append_null();
            } else {
                builder.append_value(&text::parse(T::TYPE, -1, Text::at(&texts, row), context.settings)?);
            }
        }
        Ok(builder.finish())
    })
}

/// The entry that converts by output and input function; None: there is none, or none that is computed here.
pub(super) fn via_text(from: PgType, to: PgType) -> Option<&'static Function> {
    conversion::all().iter().find(|function| function.arguments == [from] && function.result == to)
}

/// Whether printing or reading the type depends on the session's settings. What is read is folded where PostgreSQL folds it.
const fn io_volatility(from: PgType, to: PgType) -> Volatility {
    use PgType::{Bytea, Date, Float4, Float8, Interval, Time, Timestamp, Timestamptz};
    let reads_time = matches!(to, Date | Time | Timestamp | Timestamptz | Interval);
    let prints = matches!(from, Float4 | Float8 | Bytea | Date | Timestamp | Timestamptz | Interval);
    if reads_time || prints { Volatility::Stable } else { Volatility::Immutable }
}

const fn converts(from: &'static [PgType; 1], result: PgType, kernel: super::Kernel) -> Function {
    Function {
        volatility: io_volatility(from[0], result),
        ..Function::immutable("", from, result, kernel, "execExprInterp.c EEOP_IOCOERCE")
    }
}

macro_rules! conversions {
    ($($known:ident),+) => {
        $(struct $known;
        impl Known for $known {
            const TYPE: PgType = PgType::$known;
        })+
        static VIA_TEXT: &[Function] = &[
            $(
                converts(&[PgType::$known], PgType::Text, output::<$known>),
                converts(&[PgType::$known], PgType::Varchar, output::<$known>),
                converts(&[PgType::$known], PgType::Bpchar, output::<$known>),
                converts(&[PgType::$known], PgType::Name, output_name::<$known>),
                converts(&[PgType::Text], PgType::$known, input::<$known>),
                converts(&[PgType::Varchar], PgType::$known, input::<$known>),
                converts(&[PgType::Bpchar], PgType::$known, input::<$known>),
                converts(&[PgType::Name], PgType::$known, input::<$known>),
            )+
        ];
    };
}

mod conversion {
    // The type markers have the types' names, which the parent module imports otherwise.
    use super::{Function, Known, PgType, converts, input, output, output_name};
    conversions! {
        Bool, Int2, Int4, Int8, Float4, Float8, Numeric, Date, Time, Timestamp, Timestamptz, Interval, Uuid, Bytea, Bit, Varbit, Inet,
        Cidr, Json, Jsonb
    }
    pub(super) fn all() -> &'static [Function] {
        VIA_TEXT
    }
}
