//! Functions on text, bpchar and bytea. Positions and lengths count characters of UTF-8.
//!
//! Case folding depends on the collation beyond ASCII: lower, upper and initcap refuse other characters.
//! A result that would be very long is refused before it is built.

use arrow::array::{ArrayRef, StringBuilder};
use std::sync::Arc;

use super::format::quoted;
use super::rows::{Argument, Bytes, Text, before_row, end_of, to_bool, to_bytes, to_number, to_text};
use super::{EvalContext, EvalError, Function, Operand, Volatility};
use crate::types::PgType::{Bool, Bpchar, Bytea, Int4, Int8, Text as TextType};

/// Longest text that a function makes out of short ones (repeat, lpad...), in bytes: more is upstream's.
pub(super) const RESULT_BYTES_MAX: usize = 16 << 20;

pub(super) fn not_ascii() -> EvalError {
    EvalError::Beyond("case of characters beyond ASCII".to_owned())
}

fn raise<T>(message: &str) -> Result<T, EvalError> {
    Err(EvalError::Raises(message.to_owned()))
}

/// A kernel of one expression: `text_kernel!(name, (types), |arguments, out| ...)`.
macro_rules! kernel {
    ($name:ident, $loop:ident::<($($argument:ty),+)>, $f:expr) => {
        fn $name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
            $loop::<($($argument,)+)>(o, rows, $f)
        }
    };
    ($name:ident, $loop:ident::<($($argument:ty),+), $result:ty>, $f:expr) => {
        fn $name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
            $loop::<($($argument,)+), $result>(o, rows, $f)
        }
    };
}

kernel!(concatenate, to_text::<(Text, Text)>, |(a, b), out| {
    out.push_str(a);
    out.push_str(b);
    Ok(())
});

kernel!(concatenate_bytes, to_bytes::<(Bytes, Bytes)>, |(a, b), out| {
    out.extend_from_slice(a);
    out.extend_from_slice(b);
    Ok(())
});

kernel!(lower, to_text::<(Text)>, |(text,), out| fold(text, out, str::make_ascii_lowercase));
kernel!(upper, to_text::<(Text)>, |(text,), out| fold(text, out, str::make_ascii_uppercase));
kernel!(initcap, to_text::<(Text)>, |(text,), out| fold(text, out, capitalise_words));

fn fold(text: &str, out: &mut String, change: impl Fn(&mut str)) -> Result<(), EvalError> {
    if !text.is_ascii() {
        return Err(not_ascii());
    }
    let start = out.len();
    out.push_str(text);
    change(&mut out[start..]);
    Ok(())
}

/// formatting.c, str_initcap: a word is a run of letters and digits.
fn capitalise_words(text: &mut str) {
    let mut in_word = false;
    for at in 0..text.len() {
        let character = &mut text[at..=at];
        if in_word {
            character.make_ascii_lowercase();
        } else {
            character.make_ascii_uppercase();
        }
        in_word = character.as_bytes()[0].is_ascii_alphanumeric();
    }
}

fn characters(text: &str) -> i64 {
    if text.is_ascii() { text.len() as i64 } else { text.chars().count() as i64 }
}

kernel!(length, to_number::<(Text), i32>, |(text,)| Ok(characters(text) as i32));
kernel!(length_unpadded, to_number::<(Text), i32>, |(text,)| Ok(characters(text.trim_end_matches(' ')) as i32));
kernel!(octet_length, to_number::<(Text), i32>, |(text,)| Ok(text.len() as i32));
kernel!(bit_length, to_number::<(Text), i32>, |(text,)| bits(text.len()));
kernel!(length_bytes, to_number::<(Bytes), i32>, |(bytes,)| Ok(bytes.len() as i32));
kernel!(bit_length_bytes, to_number::<(Bytes), i32>, |(bytes,)| bits(bytes.len()));

fn bits(octets: usize) -> Result<i32, EvalError> {
    i32::try_from(octets * 8).map_err(|_| EvalError::Raises("integer out of range".to_owned()))
}

/// The characters from number `from` (0 is the first) up to, not including, number `to`.
fn slice(text: &str, from: i64, to: i64) -> &str {
    let (from, to) = (from.max(0), to.max(0));
    if from >= to {
        return "";
    }
    let at = |number: i64| {
        if text.is_ascii() {
            return usize::try_from(number).unwrap_or(usize::MAX).min(text.len());
        }
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        text.char_indices().nth(number).map_or(text.len(), |(at, _)| at)
    };
    &text[at(from)..at(to)]
}

// varlena.c, text_substring.
kernel!(substring_from, to_text::<(Text, i32)>, |(text, from), out| {
    out.push_str(slice(text, i64::from(from) - 1, i64::MAX));
    Ok(())
});

kernel!(substring, to_text::<(Text, i32, i32)>, |(text, from, length), out| {
    if length < 0 {
        return raise("negative substring length not allowed");
    }
    let start = i64::from(from) - 1;
    out.push_str(slice(text, start, start + i64::from(length)));
    Ok(())
});

// varlena.c, text_left and text_right: a negative count leaves out so many at the other end.
kernel!(left, to_text::<(Text, i32)>, |(text, count), out| {
    let end = if count < 0 { characters(text) + i64::from(count) } else { i64::from(count) };
    out.push_str(slice(text, 0, end));
    Ok(())
});

kernel!(right, to_text::<(Text, i32)>, |(text, count), out| {
    if count == i32::MIN {
        return Err(EvalError::Beyond("right() of the least integer".to_owned()));
    }
    let start = if count < 0 { -i64::from(count) } else { characters(text) - i64::from(count) };
    out.push_str(slice(text, start, i64::MAX));
    Ok(())
});

// varlena.c, text_position: 1 is the first character, 0 is not found; the empty text is found at 1.
kernel!(position, to_number::<(Text, Text), i32>, |(text, part)| {
    Ok(text.find(part).map_or(0, |at| characters(&text[..at]) as i32 + 1))
});

kernel!(starts_with, to_bool::<(Text, Text)>, |(text, start)| Ok(text.starts_with(start)));

// oracle_compat.c, dotrim: a set of characters; spaces without one.
kernel!(trim, to_text::<(Text)>, |(text,), out| {
    out.push_str(text.trim_matches(' '));
    Ok(())
});
kernel!(trim_left, to_text::<(Text)>, |(text,), out| {
    out.push_str(text.trim_start_matches(' '));
    Ok(())
});
kernel!(trim_right, to_text::<(Text)>, |(text,), out| {
    out.push_str(text.trim_end_matches(' '));
    Ok(())
});
kernel!(trim_set, to_text::<(Text, Text)>, |(text, set), out| {
    out.push_str(text.trim_matches(|character| set.contains(character)));
    Ok(())
});
kernel!(trim_left_set, to_text::<(Text, Text)>, |(text, set), out| {
    out.push_str(text.trim_start_matches(|character| set.contains(character)));
    Ok(())
});
kernel!(trim_right_set, to_text::<(Text, Text)>, |(text, set), out| {
    out.push_str(text.trim_end_matches(|character| set.contains(character)));
    Ok(())
});

// varlena.c, replace_text: nothing is replaced by searching for nothing.
kernel!(replace, to_text::<(Text, Text, Text)>, |(text, from, to), out| {
    if from.is_empty() {
        out.push_str(text);
        return Ok(());
    }
    let start = out.len();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        out.push_str(&rest[..at]);
        out.push_str(to);
        check_length(out.len() - start)?;
        end_of(out.len())?;
        rest = &rest[at + from.len()..];
    }
    out.push_str(rest);
    Ok(())
});

// varlena.c, split_part: negative numbers count from the end.
kernel!(split_part, to_text::<(Text, Text, i32)>, |(text, separator, number), out| {
    if number == 0 {
        return raise("field position must not be zero");
    }
    let index = number.unsigned_abs() as usize - 1;
    let part = match (separator.is_empty(), number > 0) {
        (true, _) => (index == 0).then_some(text),
        (false, true) => text.split(separator).nth(index),
        // Separators are found from the left, also where they overlap.
        (false, false) => {
            let count = text.split(separator).count();
            count.checked_sub(index + 1).and_then(|at| text.split(separator).nth(at))
        }
    };
    out.push_str(part.unwrap_or_default());
    Ok(())
});

// oracle_compat.c, translate: the first occurrence in `from` counts; what has no counterpart is dropped.
kernel!(translate, to_text::<(Text, Text, Text)>, |(text, from, to), out| {
    for character in text.chars() {
        match from.chars().position(|candidate| candidate == character) {
            Some(at) => out.extend(to.chars().nth(at)),
            None => out.push(character),
        }
    }
    Ok(())
});

kernel!(reverse, to_text::<(Text)>, |(text,), out| {
    out.extend(text.chars().rev());
    Ok(())
});

fn check_length(bytes: usize) -> Result<(), EvalError> {
    if bytes > RESULT_BYTES_MAX { Err(EvalError::Beyond("a very long text".to_owned())) } else { Ok(()) }
}

kernel!(repeat, to_text::<(Text, i32)>, |(text, count), out| {
    let count = usize::try_from(count).unwrap_or(0);
    check_length(text.len().saturating_mul(count))?;
    if !text.is_empty() {
        out.extend(std::iter::repeat_n(text, count));
    }
    Ok(())
});

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

/// oracle_compat.c, lpad and rpad: to `length` characters, cut if there are more.
fn pad(text: &str, length: i32, fill: &str, side: Side, out: &mut String) -> Result<(), EvalError> {
    let length = i64::from(length.max(0));
    let missing = length - characters(text);
    if missing <= 0 || fill.is_empty() {
        out.push_str(slice(text, 0, length));
        return Ok(());
    }
    let missing = usize::try_from(missing).unwrap_or(usize::MAX);
    // As PostgreSQL reckons before it pads: four bytes a character.
    check_length(missing.saturating_mul(4).saturating_add(text.len()))?;
    if side == Side::Right {
        out.push_str(text);
    }
    out.extend(fill.chars().cycle().take(missing));
    if side == Side::Left {
        out.push_str(text);
    }
    Ok(())
}

kernel!(pad_left, to_text::<(Text, i32)>, |(text, length), out| pad(text, length, " ", Side::Left, out));
kernel!(pad_right, to_text::<(Text, i32)>, |(text, length), out| pad(text, length, " ", Side::Right, out));
kernel!(pad_left_fill, to_text::<(Text, i32, Text)>, |(text, length, fill), out| {
    pad(text, length, fill, Side::Left, out)
});
kernel!(pad_right_fill, to_text::<(Text, i32, Text)>, |(text, length, fill), out| {
    pad(text, length, fill, Side::Right, out)
});

kernel!(ascii, to_number::<(Text), i32>, |(text,)| Ok(text.chars().next().map_or(0, |character| character as i32)));

// oracle_compat.c, chr.
kernel!(chr, to_text::<(i32)>, |(code,), out| {
    let character = u32::try_from(code).ok().filter(|code| *code != 0).and_then(char::from_u32);
    match character {
        Some(character) => out.push(character),
        None => return raise("requested character not valid for encoding"),
    }
    Ok(())
});

kernel!(to_hex4, to_text::<(i32)>, |(number,), out| {
    out.push_str(&format!("{number:x}"));
    Ok(())
});
kernel!(to_hex8, to_text::<(i64)>, |(number,), out| {
    out.push_str(&format!("{number:x}"));
    Ok(())
});

fn write_md5(bytes: &[u8], out: &mut String) {
    use md5::Digest as _;
    write_hex(&md5::Md5::digest(bytes), out);
}

fn write_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
    }
}

// varlena.c, text_overlay.
kernel!(overlay_whole, to_text::<(Text, Text, i32)>, |(text, by, from), out| {
    overlay_in(text, by, from, characters(by) as i32, out)
});
kernel!(overlay, to_text::<(Text, Text, i32, i32)>, |(text, by, from, length), out| {
    overlay_in(text, by, from, length, out)
});

fn overlay_in(text: &str, by: &str, from: i32, length: i32, out: &mut String) -> Result<(), EvalError> {
    if from <= 0 {
        return raise("negative substring length not allowed");
    }
    let Some(end) = from.checked_add(length) else { return raise("integer out of range") };
    out.push_str(slice(text, 0, i64::from(from) - 1));
    out.push_str(by);
    out.push_str(slice(text, i64::from(end) - 1, i64::MAX));
    Ok(())
}

kernel!(quote_literal, to_text::<(Text)>, |(text,), out| {
    out.push_str(&quoted(text));
    Ok(())
});

// encode.c, binary_encode.
kernel!(encode, to_text::<(Bytes, Text)>, |(bytes, format), out| {
    match format.to_ascii_lowercase().as_str() {
        "hex" => write_hex(bytes, out),
        "escape" => bytes.iter().for_each(|byte| match byte {
            b'\\' => out.push_str("\\\\"),
            0 | 128.. => out.push_str(&format!("\\{byte:03o}")),
            plain => out.push(char::from(*plain)),
        }),
        "base64" => encode_base64(bytes, out),
        _ => return raise("unrecognized encoding"),
    }
    Ok(())
});

/// encode.c, pg_base64_encode: a line has 76 characters, the last one no end.
fn encode_base64(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const LINE_BYTES: usize = 57;
    for (number, line) in bytes.chunks(LINE_BYTES).enumerate() {
        if number > 0 {
            out.push('\n');
        }
        for three in line.chunks(3) {
            let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            let digit = |place: usize| char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]);
            (0..4).for_each(|place| out.push(if place <= three.len() { digit(place) } else { '=' }));
        }
    }
    // A full last line ends, too.
    if !bytes.is_empty() && bytes.len().is_multiple_of(LINE_BYTES) {
        out.push('\n');
    }
}

kernel!(md5_text, to_text::<(Text)>, |(text,), out| {
    write_md5(text.as_bytes(), out);
    Ok(())
});

kernel!(md5_bytes, to_text::<(Bytes)>, |(bytes,), out| {
    write_md5(bytes, out);
    Ok(())
});

/// Texts made of the texts of each row, which may be NULL. `write` appends one, or says that it is NULL.
pub(super) fn from_nullable(
    operands: &[Operand],
    rows: usize,
    write: impl Fn(&[Option<&str>], &mut String) -> Result<bool, EvalError>,
) -> Result<ArrayRef, EvalError> {
    let views = operands.iter().map(Text::view).collect::<Result<Vec<_>, _>>()?;
    let mut builder = StringBuilder::with_capacity(rows, rows * 16);
    let mut texts = Vec::with_capacity(views.len());
    let mut written = String::new();
    for row in 0..rows {
        before_row(row)?;
        texts.clear();
        texts.extend(views.iter().map(|view| {
            let view = view.as_ref()?;
            let is_null = Text::nulls(view).is_some_and(|nulls| nulls.is_null(row));
            (!is_null).then(|| Text::at(view, row))
        }));
        written.clear();
        if write(&texts, &mut written)? {
            builder.append_value(&written);
            end_of(builder.values_slice().len())?;
        } else {
            builder.append_null();
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// concat(): NULLs count as nothing.
fn concat(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    from_nullable(operands, rows, |parts, out| {
        for part in parts.iter().flatten() {
            out.push_str(part);
            end_of(out.len())?;
        }
        Ok(true)
    })
}

/// concat_ws(): a NULL separator makes NULL, NULL parts are left out with their separator.
fn concat_ws(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    from_nullable(operands, rows, |texts, out| {
        let Some((Some(separator), parts)) = texts.split_first() else { return Ok(false) };
        for (number, part) in parts.iter().flatten().enumerate() {
            if number > 0 {
                out.push_str(separator);
            }
            out.push_str(part);
            end_of(out.len())?;
        }
        Ok(true)
    })
}

const TEXT: &[crate::types::PgType] = &[TextType];
const TEXT_TEXT: &[crate::types::PgType] = &[TextType, TextType];
const TEXT_INT: &[crate::types::PgType] = &[TextType, Int4];

/// concat and concat_ws: not strict, stable because output functions may be.
pub(super) const fn variadic(
    name: &'static str,
    arguments: &'static [crate::types::PgType],
    kernel: super::Kernel,
    source: &'static str,
) -> Function {
    Function {
        is_variadic: true,
        is_strict: false,
        volatility: Volatility::Stable,
        ..Function::immutable(name, arguments, TextType, kernel, source)
    }
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("||", TEXT_TEXT, TextType, concatenate, "varlena.c textcat"),
    Function::immutable("||", &[Bytea, Bytea], Bytea, concatenate_bytes, "varlena.c byteacat"),
    variadic("concat", TEXT, concat, "varlena.c text_concat"),
    variadic("concat_ws", TEXT_TEXT, concat_ws, "varlena.c text_concat_ws"),
    Function::immutable("md5", TEXT, TextType, md5_text, "cryptohashfuncs.c md5_text"),
    Function::immutable("md5", &[Bytea], TextType, md5_bytes, "cryptohashfuncs.c md5_bytea"),
    Function::immutable(
        "overlay",
        &[TextType, TextType, Int4],
        TextType,
        overlay_whole,
        "varlena.c textoverlay_no_len",
    ),
    Function::immutable("overlay", &[TextType, TextType, Int4, Int4], TextType, overlay, "varlena.c textoverlay"),
    Function::immutable("quote_literal", TEXT, TextType, quote_literal, "quote.c quote_literal"),
    Function::immutable("encode", &[Bytea, TextType], TextType, encode, "encode.c binary_encode"),
    Function::immutable("lower", TEXT, TextType, lower, "oracle_compat.c lower"),
    Function::immutable("upper", TEXT, TextType, upper, "oracle_compat.c upper"),
    Function::immutable("initcap", TEXT, TextType, initcap, "oracle_compat.c initcap"),
    Function::immutable("length", TEXT, Int4, length, "varlena.c textlen"),
    Function::immutable("char_length", TEXT, Int4, length, "varlena.c textlen"),
    Function::immutable("character_length", TEXT, Int4, length, "varlena.c textlen"),
    Function::immutable("length", &[Bpchar], Int4, length_unpadded, "varchar.c bpcharlen"),
    Function::immutable("char_length", &[Bpchar], Int4, length_unpadded, "varchar.c bpcharlen"),
    Function::immutable("character_length", &[Bpchar], Int4, length_unpadded, "varchar.c bpcharlen"),
    Function::immutable("length", &[Bytea], Int4, length_bytes, "varlena.c byteaoctetlen"),
    Function::immutable("octet_length", TEXT, Int4, octet_length, "varlena.c textoctetlen"),
    Function::immutable("octet_length", &[Bpchar], Int4, octet_length, "varchar.c bpcharoctetlen"),
    Function::immutable("octet_length", &[Bytea], Int4, length_bytes, "varlena.c byteaoctetlen"),
    Function::immutable("bit_length", TEXT, Int4, bit_length, "system_functions.sql bit_length(text)"),
    Function::immutable("bit_length", &[Bytea], Int4, bit_length_bytes, "system_functions.sql bit_length(bytea)"),
    Function::immutable("substring", TEXT_INT, TextType, substring_from, "varlena.c text_substr_no_len"),
    Function::immutable("substr", TEXT_INT, TextType, substring_from, "varlena.c text_substr_no_len"),
    Function::immutable("substring", &[TextType, Int4, Int4], TextType, substring, "varlena.c text_substr"),
    Function::immutable("substr", &[TextType, Int4, Int4], TextType, substring, "varlena.c text_substr"),
    Function::immutable("left", TEXT_INT, TextType, left, "varlena.c text_left"),
    Function::immutable("right", TEXT_INT, TextType, right, "varlena.c text_right"),
    Function::immutable("position", TEXT_TEXT, Int4, position, "varlena.c textpos"),
    Function::immutable("strpos", TEXT_TEXT, Int4, position, "varlena.c textpos"),
    Function::immutable("starts_with", TEXT_TEXT, Bool, starts_with, "varlena.c text_starts_with"),
    Function::immutable("^@", TEXT_TEXT, Bool, starts_with, "varlena.c text_starts_with"),
    Function::immutable("btrim", TEXT, TextType, trim, "oracle_compat.c btrim1"),
    Function::immutable("ltrim", TEXT, TextType, trim_left, "oracle_compat.c ltrim1"),
    Function::immutable("rtrim", TEXT, TextType, trim_right, "oracle_compat.c rtrim1"),
    Function::immutable("btrim", TEXT_TEXT, TextType, trim_set, "oracle_compat.c btrim"),
    Function::immutable("ltrim", TEXT_TEXT, TextType, trim_left_set, "oracle_compat.c ltrim"),
    Function::immutable("rtrim", TEXT_TEXT, TextType, trim_right_set, "oracle_compat.c rtrim"),
    Function::immutable("replace", &[TextType, TextType, TextType], TextType, replace, "varlena.c replace_text"),
    Function::immutable("translate", &[TextType, TextType, TextType], TextType, translate, "oracle_compat.c translate"),
    Function::immutable("split_part", &[TextType, TextType, Int4], TextType, split_part, "varlena.c split_part"),
    Function::immutable("reverse", TEXT, TextType, reverse, "varlena.c text_reverse"),
    Function::immutable("repeat", TEXT_INT, TextType, repeat, "oracle_compat.c repeat"),
    Function::immutable("lpad", TEXT_INT, TextType, pad_left, "system_functions.sql lpad(text, int)"),
    Function::immutable("rpad", TEXT_INT, TextType, pad_right, "system_functions.sql rpad(text, int)"),
    Function::immutable("lpad", &[TextType, Int4, TextType], TextType, pad_left_fill, "oracle_compat.c lpad"),
    Function::immutable("rpad", &[TextType, Int4, TextType], TextType, pad_right_fill, "oracle_compat.c rpad"),
    Function::immutable("ascii", TEXT, Int4, ascii, "oracle_compat.c ascii"),
    Function::immutable("chr", &[Int4], TextType, chr, "oracle_compat.c chr"),
    Function::immutable("to_hex", &[Int4], TextType, to_hex4, "varlena.c to_hex32"),
    Function::immutable("to_hex", &[Int8], TextType, to_hex8, "varlena.c to_hex64"),
];
