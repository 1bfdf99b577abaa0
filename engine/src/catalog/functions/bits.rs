//! Bit strings, as digits (see [`crate::types::bits`]): operators, lengths, numbers. And `text::bit(n)::bigint` and its like in one
//! step: what turns a digest into a number.

use arrow::array::ArrayRef;

use super::rows::{Text, Truth, to_number, to_text};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Bit, Bool, Int4, Int8, Text as TextType, Varbit};
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

type Answer = Result<ArrayRef, EvalError>;

fn raise<T>(message: &str) -> Result<T, EvalError> {
    Err(EvalError::Raises(message.to_owned()))
}

/// Digit by digit, of two bit strings of one length.
fn combined(o: &[Operand], rows: usize, is_set: fn(bool, bool) -> bool) -> Answer {
    to_text::<(Text, Text)>(o, rows, |(left, right), out| {
        if left.len() != right.len() {
            return raise("bit strings of different sizes");
        }
        let pairs = left.bytes().zip(right.bytes());
        out.extend(pairs.map(|(left, right)| if is_set(left == b'1', right == b'1') { '1' } else { '0' }));
        Ok(())
    })
}

fn and(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    combined(o, rows, |left, right| left && right)
}

fn or(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    combined(o, rows, |left, right| left || right)
}

fn exclusive_or(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    combined(o, rows, |left, right| left != right)
}

fn not(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_text::<(Text,)>(o, rows, |(bits,), out| {
        out.extend(bits.bytes().map(|digit| if digit == b'1' { '0' } else { '1' }));
        Ok(())
    })
}

/// To the left, or by a negative number to the right; the length stays.
fn shifted(bits: &str, by: i64, out: &mut String) {
    let kept = bits.len() - usize::try_from(by.unsigned_abs()).map_or(bits.len(), |by| by.min(bits.len()));
    let zeros = std::iter::repeat_n('0', bits.len() - kept);
    if by < 0 {
        out.extend(zeros);
        out.push_str(&bits[..kept]);
    } else {
        out.push_str(&bits[bits.len() - kept..]);
        out.extend(zeros);
    }
}

fn shift_left(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_text::<(Text, i32)>(o, rows, |(bits, by), out| {
        shifted(bits, by.into(), out);
        Ok(())
    })
}

fn shift_right(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_text::<(Text, i32)>(o, rows, |(bits, by), out| {
        shifted(bits, -i64::from(by), out);
        Ok(())
    })
}

fn concatenated(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_text::<(Text, Text)>(o, rows, |(left, right), out| {
        out.push_str(left);
        out.push_str(right);
        Ok(())
    })
}

fn bits_of(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_number::<(Text,), i32>(o, rows, |(bits,)| Ok(bits.len() as i32))
}

fn octets_of(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_number::<(Text,), i32>(o, rows, |(bits,)| Ok(bits.len().div_ceil(8) as i32))
}

fn ones_of(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_number::<(Text,), i64>(o, rows, |(bits,)| Ok(bits.bytes().filter(|digit| *digit == b'1').count() as i64))
}

fn bit_at(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_number::<(Text, i32), i32>(o, rows, |(bits, at)| {
        let digit = usize::try_from(at).ok().and_then(|at| bits.as_bytes().get(at));
        digit.map_or_else(|| raise("bit index out of valid range"), |digit| Ok(i32::from(digit - b'0')))
    })
}

fn as_int4(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_number::<(Text,), i32>(o, rows, |(bits,)| match bits.len() {
        0..=32 => Ok((leading_bits(bits, bits.len() as u32)? as u32).cast_signed()),
        _ => raise("integer out of range"),
    })
}

fn as_int8(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_number::<(Text,), i64>(o, rows, |(bits,)| match bits.len() {
        0..=64 => Ok(leading_bits(bits, bits.len() as u32)?.cast_signed()),
        _ => raise("bigint out of range"),
    })
}

/// bit(n): a cast cuts or fills up, an assignment takes only what fits.
fn bit_with_modifier(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_text::<(Text, i32, Truth)>(o, rows, |(bits, length, is_explicit), out| {
        let length = usize::try_from(length).ok().filter(|length| *length > 0).unwrap_or(bits.len());
        if length != bits.len() && !is_explicit {
            return raise("bit string length does not match type");
        }
        out.push_str(&bits[..length.min(bits.len())]);
        out.extend(std::iter::repeat_n('0', length.saturating_sub(bits.len())));
        Ok(())
    })
}

fn varbit_with_modifier(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Answer {
    to_text::<(Text, i32, Truth)>(o, rows, |(bits, length, is_explicit), out| {
        let length = usize::try_from(length).ok().filter(|length| *length > 0).unwrap_or(bits.len());
        if length < bits.len() && !is_explicit {
            return raise("bit string too long for type bit varying");
        }
        out.push_str(&bits[..length.min(bits.len())]);
        Ok(())
    })
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("&", &[Bit, Bit], Bit, and, "varbit.c bit_and"),
    Function::immutable("|", &[Bit, Bit], Bit, or, "varbit.c bit_or"),
    Function::immutable("#", &[Bit, Bit], Bit, exclusive_or, "varbit.c bitxor"),
    Function::immutable("~", &[Bit], Bit, not, "varbit.c bitnot"),
    Function::immutable("<<", &[Bit, Int4], Bit, shift_left, "varbit.c bitshiftleft"),
    Function::immutable(">>", &[Bit, Int4], Bit, shift_right, "varbit.c bitshiftright"),
    Function::immutable("||", &[Varbit, Varbit], Varbit, concatenated, "varbit.c bitcat"),
    Function::immutable("length", &[Bit], Int4, bits_of, "varbit.c bitlength"),
    Function::immutable("bit_length", &[Bit], Int4, bits_of, "system_functions.sql bit_length(bit)"),
    Function::immutable("octet_length", &[Bit], Int4, octets_of, "varbit.c bitoctetlength"),
    Function::immutable("bit_count", &[Bit], Int8, ones_of, "varbit.c bit_bit_count"),
    Function::immutable("get_bit", &[Bit, Int4], Int4, bit_at, "varbit.c bitgetbit"),
    Function::immutable("int4", &[Bit], Int4, as_int4, "varbit.c bittoint4"),
    Function::immutable("int8", &[Bit], Int8, as_int8, "varbit.c bittoint8"),
    Function::immutable("bit", &[Bit, Int4, Bool], Bit, bit_with_modifier, "varbit.c bit"),
    Function::immutable("varbit", &[Varbit, Int4, Bool], Varbit, varbit_with_modifier, "varbit.c varbit"),
];
