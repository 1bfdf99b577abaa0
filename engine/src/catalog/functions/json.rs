//! Operators and functions on jsonb, which is held as the canonical text that upstream prints (see [`crate::types::json`]).

use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder};

use super::rows::{Argument, Bytes, Text, per_distinct, to_bool, to_number, to_text};
use super::vector::operand;
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::Element;
use crate::types::PgType::{Array, Bool, Int4, Jsonb, Text as TextType};
use crate::types::array::{ArrayView, element_str};
use crate::types::json::{Json, Kind};

const PATH: crate::types::PgType = Array(Element::Text);

fn is_null<A: Argument>(view: &A::View<'_>, row: usize) -> bool {
    A::nulls(view).is_some_and(|nulls| nulls.is_null(row))
}

/// `find` gives the part of a row's value that the other operand asks for; `write` appends it, or says that it is NULL.
fn part<A: Argument>(
    operands: &[Operand],
    rows: usize,
    find: impl for<'a> Fn(Json<'a>, A::Item<'_>) -> Option<Json<'a>>,
    write: impl Fn(Json<'_>, &mut String) -> bool,
) -> Result<ArrayRef, EvalError> {
    per_distinct(operands, rows, &|operands, rows| {
        let (values, wanted) = (Text::view(operand(operands, 0)?)?, A::view(operand(operands, 1)?)?);
        let mut texts = StringBuilder::with_capacity(rows, rows * 16);
        let (Some(values), Some(wanted)) = (values, wanted) else {
            (0..rows).for_each(|_| texts.append_null());
            return Ok(Arc::new(texts.finish()));
        };
        let mut text = String::new();
        for row in 0..rows {
            text.clear();
            let is_known = !is_null::<Text>(&values, row) && !is_null::<A>(&wanted, row);
            let found = if is_known { find(Json::of(Text::at(&values, row)), A::at(&wanted, row)) } else { None };
            if found.is_some_and(|found| write(found, &mut text)) {
                texts.append_value(&text);
            } else {
                texts.append_null();
            }
        }
        Ok(Arc::new(texts.finish()))
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

fn array_length(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_number::<(Text,), i32>(o, rows, |(value,)| match Json::of(value).kind() {
        Kind::Array => Ok(Json::of(value).elements().count() as i32),
        Kind::Object => Err(EvalError::Raises("cannot get array length of a non-array".to_owned())),
        _ => Err(EvalError::Raises("cannot get array length of a scalar".to_owned())),
    })
}

fn type_of(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(value,), out| {
        out.push_str(match Json::of(value).kind() {
            Kind::Object => "object",
            Kind::Array => "array",
            Kind::String => "string",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::Null => "null",
        });
        Ok(())
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
    Function::immutable("jsonb_array_length", &[Jsonb], Int4, array_length, "jsonfuncs.c jsonb_array_length"),
    Function::immutable("jsonb_typeof", &[Jsonb], TextType, type_of, "json.c jsonb_typeof"),
];
