//! Operators and functions on jsonb, which is held as the canonical text that upstream prints (see [`crate::types::json`]).

use arrow::array::ArrayRef;

use super::comparison::{Greater, GreaterOrEqual, Less, LessOrEqual, Relation};
use super::plain_json::{array_length, type_of};
use super::rows::{Argument, Bytes, Text, to_bool, to_number, to_text, to_text_or_null};
use super::vector::operand;
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::Element;
use crate::types::Numeric;
use crate::types::PgType::{
    Array, Bool, Float4, Float8, Int2, Int4, Int8, Jsonb, Numeric as NumericType, Text as TextType,
};
use crate::types::array::{ArrayView, element_str};
use crate::types::json::{Json, Kind};
use crate::types::numeric::NumericBuilder;

const PATH: crate::types::PgType = Array(Element::Text);

/// `find` gives the part of a row's value that the other operand asks for; `write` appends it, or says that it is NULL.
fn part<A: Argument>(
    operands: &[Operand],
    rows: usize,
    find: impl for<'a> Fn(Json<'a>, A::Item<'_>) -> Option<Json<'a>>,
    write: impl Fn(Json<'_>, &mut String) -> bool,
) -> Result<ArrayRef, EvalError> {
    to_text_or_null::<(Text, A)>(operands, rows, |(value, wanted), out| {
        Ok(find(Json::of(value), wanted).is_some_and(|found| write(found, out)))
    })
}

fn as_json(value: Json<'_>, out: &mut String) -> bool {
    out.push_str(value.text());
    true
}

fn as_text(value: Json<'_>, out: &mut String) -> bool {
    value.write_text(out)
}

/// get_jsonb_path_all: a NULL in the path leads nowhere.
fn follow<'a>(value: Json<'a>, path: &[u8]) -> Option<Json<'a>> {
    ArrayView::of(path).elements().try_fold(value, |value, step| value.step(element_str(step?)))
}

/// A scalar is stored as an array of one, and this function does not tell.
fn element_at(value: Json<'_>, index: i32) -> Option<Json<'_>> {
    match value.kind() {
        Kind::Object => None,
        Kind::Array => value.at(index.into()),
        _ => matches!(index, 0 | -1).then_some(value),
    }
}

macro_rules! parts {
    ($($name:ident: $argument:ty, $find:expr, $write:ident;)+) => {
        $(fn $name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
            part::<$argument>(o, rows, $find, $write)
        })+
    };
}

parts! {
    field: Text, |value, key| value.get(key), as_json;
    field_text: Text, |value, key| value.get(key), as_text;
    element: i32, element_at, as_json;
    element_text: i32, element_at, as_text;
    path: Bytes, follow, as_json;
    path_text: Bytes, follow, as_text;
}

fn exists(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Text)>(o, rows, |(value, key)| Ok(Json::of(value).has(key)))
}

fn contains(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Text)>(o, rows, |(whole, part)| has(whole, part))
}

fn is_contained(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Text)>(o, rows, |(part, whole)| has(whole, part))
}

fn has(whole: &str, part: &str) -> Result<bool, EvalError> {
    Json::of(whole).contains(Json::of(part)).ok_or_else(|| EvalError::Beyond("long numbers in jsonb".to_owned()))
}

fn equal(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Text)>(o, rows, |(left, right)| is_equal(left, right))
}

fn not_equal(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Text)>(o, rows, |(left, right)| is_equal(left, right).map(|equal| !equal))
}

fn is_equal(left: &str, right: &str) -> Result<bool, EvalError> {
    Json::of(left).equals(Json::of(right)).ok_or_else(|| EvalError::Beyond("long numbers in jsonb".to_owned()))
}

fn ordered<R: Relation>(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Text)>(o, rows, |(left, right)| {
        let order = Json::of(left).order(Json::of(right));
        order.map(R::holds).ok_or_else(|| EvalError::Beyond("the order of texts or long numbers in jsonb".to_owned()))
    })
}

/// The texts of an array; a NULL among them is none (jsonb_exists_any and its like).
fn names(array: &[u8]) -> impl Iterator<Item = &str> {
    ArrayView::of(array).elements().flatten().map(element_str)
}

fn has_any(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Bytes)>(o, rows, |(value, keys)| Ok(names(keys).any(|key| Json::of(value).has(key))))
}

fn has_all(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text, Bytes)>(o, rows, |(value, keys)| Ok(names(keys).all(|key| Json::of(value).has(key))))
}

fn concatenated(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, Text)>(o, rows, |(left, right), out| {
        Json::of(left).write_concatenated(Json::of(right), out);
        Ok(())
    })
}

fn raises<T>(message: &str) -> Result<T, EvalError> {
    Err(EvalError::Raises(message.to_owned()))
}

fn written_without(value: &str, is_dropped: impl Fn(&str) -> bool, out: &mut String) -> Result<(), EvalError> {
    if Json::of(value).write_without(is_dropped, out) { Ok(()) } else { raises("cannot delete from scalar") }
}

fn without(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, Text)>(o, rows, |(value, key), out| written_without(value, |own| own == key, out))
}

fn without_all(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, Bytes)>(o, rows, |(value, keys), out| {
        // jsonb_delete_array.
        if ArrayView::of(keys).depth() > 1 {
            return raises("wrong number of array subscripts");
        }
        written_without(value, |own| names(keys).any(|key| own == key), out)
    })
}

fn without_element(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, i32)>(o, rows, |(value, index), out| match Json::of(value).kind() {
        Kind::Object => raises("cannot delete from object using integer index"),
        Kind::Array => {
            Json::of(value).write_without_element(index.into(), out);
            Ok(())
        }
        _ => raises("cannot delete from scalar"),
    })
}

fn pretty(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(value,), out| {
        Json::of(value).write_indented(0, out);
        Ok(())
    })
}

/// A scalar's number; JSON's null is none.
fn number_of(value: &str) -> Result<Numeric, EvalError> {
    match Json::of(value).kind() {
        Kind::Number => Ok(Numeric::parse(value)?),
        _ => raises("cannot cast jsonb to a number"),
    }
}

macro_rules! numbers {
    ($($name:ident: $to:ty, $convert:expr;)+) => {
        $(fn $name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
            to_number::<(Text,), $to>(o, rows, |(value,)| Ok($convert(number_of(value)?)?))
        })+
    };
}

numbers! {
    to_int2: i16, Numeric::to_i16;
    to_int4: i32, Numeric::to_i32;
    to_int8: i64, Numeric::to_i64;
    to_float4: f32, Numeric::to_f32;
    to_float8: f64, Numeric::to_f64;
}

fn to_numeric(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let texts = Text::view(operand(o, 0)?)?;
    let mut numbers = NumericBuilder::with_capacity(rows);
    for row in 0..rows {
        let text = texts
            .as_ref()
            .filter(|texts| Text::nulls(texts).is_none_or(|nulls| nulls.is_valid(row)))
            .map(|texts| Text::at(texts, row));
        numbers.append_option(text.map(number_of).transpose()?);
    }
    Ok(numbers.finish())
}

fn to_truth(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Text,)>(o, rows, |(value,)| match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => raises("cannot cast jsonb to boolean"),
    })
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("->", &[Jsonb, TextType], Jsonb, field, "jsonfuncs.c jsonb_object_field"),
    Function::immutable("->>", &[Jsonb, TextType], TextType, field_text, "jsonfuncs.c jsonb_object_field_text"),
    Function::immutable("->", &[Jsonb, Int4], Jsonb, element, "jsonfuncs.c jsonb_array_element"),
    Function::immutable("->>", &[Jsonb, Int4], TextType, element_text, "jsonfuncs.c jsonb_array_element_text"),
    Function::immutable("#>", &[Jsonb, PATH], Jsonb, path, "jsonfuncs.c jsonb_extract_path"),
    Function::immutable("#>>", &[Jsonb, PATH], TextType, path_text, "jsonfuncs.c jsonb_extract_path_text"),
    Function::immutable("?", &[Jsonb, TextType], Bool, exists, "jsonb_op.c jsonb_exists"),
    Function::immutable("@>", &[Jsonb, Jsonb], Bool, contains, "jsonb_op.c jsonb_contains"),
    Function::immutable("<@", &[Jsonb, Jsonb], Bool, is_contained, "jsonb_op.c jsonb_contained"),
    Function::immutable("=", &[Jsonb, Jsonb], Bool, equal, "jsonb_op.c jsonb_eq"),
    Function::immutable("<>", &[Jsonb, Jsonb], Bool, not_equal, "jsonb_op.c jsonb_ne"),
    Function::immutable("<", &[Jsonb, Jsonb], Bool, ordered::<Less>, "jsonb_op.c jsonb_lt"),
    Function::immutable("<=", &[Jsonb, Jsonb], Bool, ordered::<LessOrEqual>, "jsonb_op.c jsonb_le"),
    Function::immutable(">", &[Jsonb, Jsonb], Bool, ordered::<Greater>, "jsonb_op.c jsonb_gt"),
    Function::immutable(">=", &[Jsonb, Jsonb], Bool, ordered::<GreaterOrEqual>, "jsonb_op.c jsonb_ge"),
    Function::immutable("?|", &[Jsonb, PATH], Bool, has_any, "jsonb_op.c jsonb_exists_any"),
    Function::immutable("?&", &[Jsonb, PATH], Bool, has_all, "jsonb_op.c jsonb_exists_all"),
    Function::immutable("||", &[Jsonb, Jsonb], Jsonb, concatenated, "jsonfuncs.c jsonb_concat"),
    Function::immutable("-", &[Jsonb, TextType], Jsonb, without, "jsonfuncs.c jsonb_delete"),
    Function::immutable("-", &[Jsonb, PATH], Jsonb, without_all, "jsonfuncs.c jsonb_delete_array"),
    Function::immutable("-", &[Jsonb, Int4], Jsonb, without_element, "jsonfuncs.c jsonb_delete_idx"),
    Function::immutable("jsonb_pretty", &[Jsonb], TextType, pretty, "jsonfuncs.c jsonb_pretty"),
    Function::immutable("int2", &[Jsonb], Int2, to_int2, "jsonb.c jsonb_int2"),
    Function::immutable("int4", &[Jsonb], Int4, to_int4, "jsonb.c jsonb_int4"),
    Function::immutable("int8", &[Jsonb], Int8, to_int8, "jsonb.c jsonb_int8"),
    Function::immutable("float4", &[Jsonb], Float4, to_float4, "jsonb.c jsonb_float4"),
    Function::immutable("float8", &[Jsonb], Float8, to_float8, "jsonb.c jsonb_float8"),
    Function::immutable("numeric", &[Jsonb], NumericType, to_numeric, "jsonb.c jsonb_numeric"),
    Function::immutable("bool", &[Jsonb], Bool, to_truth, "jsonb.c jsonb_bool"),
    Function::immutable("jsonb_array_length", &[Jsonb], Int4, array_length, "jsonfuncs.c jsonb_array_length"),
    Function::immutable("jsonb_typeof", &[Jsonb], TextType, type_of, "json.c jsonb_typeof"),
];
