//! `text::bit(n)::bigint` and its like: the number that the first bits of a text are. Values of type bit are not held here;
//! this is for what turns a digest into a number.

use arrow::array::ArrayRef;

use super::rows::{Text, to_number};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Int4, Int8, Text as TextType};
use crate::types::Value;

/// Bits that the result has: those of the text (bit_in), cut to `length` or filled up with zeros (bit), as an unsigned
/// number.
fn leading_bits(text: &str, length: u32) -> Result<u64, EvalError> {
    let (digits, width) = match text.as_bytes() {
        [b'x' | b'X', digits @ ..] => (digits, 4),
        [b'b' | b'B', digits @ ..] => (digits, 1),
        digits => (digits, 1),
    };
    let (mut bits, mut taken) = (0u64, 0);
    for digit in digits {
        let value = char::from(*digit).to_digit(1 << width);
        let value = value.ok_or_else(|| EvalError::Raises("not a valid binary or hexadecimal digit".to_owned()))?;
        let used = width.min(length - taken);
        bits = bits.checked_shl(used).unwrap_or(0) | u64::from(value >> (width - used));
        taken += used;
    }
    Ok(bits.checked_shl(length - taken).unwrap_or(0))
}

fn length(operands: &[Operand]) -> Result<u32, EvalError> {
    match operands {
        [_, Operand::Scalar(Value::Int4(length))] => Ok(length.unsigned_abs()),
        _ => Err(EvalError::Beyond("bits without a length".to_owned())),
    }
}

fn int8(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let length = length(o)?;
    to_number::<(Text,), i64>(&o[..1], rows, |(text,)| Ok(leading_bits(text, length)?.cast_signed()))
}

fn int4(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let length = length(o)?;
    to_number::<(Text,), i32>(&o[..1], rows, |(text,)| Ok((leading_bits(text, length)? as u32).cast_signed()))
}

/// Text, number of bits (at most 64) → bigint.
pub static BITS_INT8: Function =
    Function::immutable("bits_to_int8", &[TextType, Int4], Int8, int8, "varbit.c bit_in, bit, bittoint8");
/// Text, number of bits (at most 32) → integer.
pub static BITS_INT4: Function =
    Function::immutable("bits_to_int4", &[TextType, Int4], Int4, int4, "varbit.c bit_in, bit, bittoint4");
