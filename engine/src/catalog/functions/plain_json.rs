//! Operators and functions on json, which is held as the text that it was given as (see [`crate::types::plain_json`]).

use arrow::array::ArrayRef;

use super::rows::{Argument, Bytes, Text, to_number, to_text, to_text_or_null};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::Element;
use crate::types::PgType::{Array, Int4, Json, Text as TextType};
use crate::types::array::{ArrayView, element_str};
use crate::types::json::Kind;
use crate::types::plain_json::{PlainJson, Step, check_escapes};

const PATH: crate::types::PgType = Array(Element::Text);

/// What is asked for, as a path. None: a NULL in it, which leads nowhere.
trait Path: Argument {
    fn steps<'s>(item: Self::Item<'s>) -> Option<Vec<Step<'s>>>;
}

impl Path for Text {
    fn steps<'s>(key: Self::Item<'s>) -> Option<Vec<Step<'s>>> {
        Some(vec![Step { name: Some(key), index: None }])
    }
}

impl Path for i32 {
    fn steps<'s>(index: Self::Item<'s>) -> Option<Vec<Step<'s>>> {
        // INT_MIN stands for no number.
        Some(vec![Step { name: None, index: Some(index).filter(|index| *index != Self::MIN) }])
    }
}

impl Path for Bytes {
    fn steps<'s>(path: Self::Item<'s>) -> Option<Vec<Step<'s>>> {
        ArrayView::of(path).elements().map(|step| step.map(|step| Step::of(element_str(step)))).collect()
    }
}

/// get_worker. `is_text`: as `->>` has it.
fn part<A: Path>(operands: &[Operand], rows: usize, is_text: bool) -> Result<ArrayRef, EvalError> {
    to_text_or_null::<(Text, A)>(operands, rows, |(document, path), out| match A::steps(path) {
        Some(steps) => write_part(document, &steps, is_text, out),
        None => Ok(false),
    })
}

/// Whether there is anything.
fn write_part(document: &str, path: &[Step<'_>], is_text: bool, out: &mut String) -> Result<bool, EvalError> {
    check_escapes(document)?;
    let Some(found) = PlainJson::of(document).find(path)? else { return Ok(false) };
    let is_scalar = !matches!(found.kind(), Kind::Object | Kind::Array);
    if path.is_empty() && is_scalar && !(is_text && matches!(found.kind(), Kind::String | Kind::Null)) {
        // get_scalar: from where the input begins.
        out.push_str(document.trim_end_matches([' ', '\t', '\n', '\r']));
        return Ok(true);
    }
    if is_text {
        return Ok(found.write_text(out));
    }
    out.push_str(found.text());
    Ok(true)
}

macro_rules! parts {
    ($($name:ident: $argument:ty, $is_text:literal;)+) => {
        $(fn $name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
            part::<$argument>(o, rows, $is_text)
        })+
    };
}

parts! {
    field: Text, false;
    field_text: Text, true;
    element: i32, false;
    element_text: i32, true;
    path: Bytes, false;
    path_text: Bytes, true;
}

/// Of jsonb, too, whose canonical text is json.
pub(super) fn array_length(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_number::<(Text,), i32>(o, rows, |(document,)| {
        let value = PlainJson::of(document);
        match value.kind() {
            Kind::Array => Ok(value.elements().count() as i32),
            _ => Err(EvalError::Raises("cannot get array length of what is no array".to_owned())),
        }
    })
}

/// Likewise.
pub(super) fn type_of(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(document,), out| {
        out.push_str(PlainJson::of(document).kind().name());
        Ok(())
    })
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("->", &[Json, TextType], Json, field, "jsonfuncs.c json_object_field"),
    Function::immutable("->>", &[Json, TextType], TextType, field_text, "jsonfuncs.c json_object_field_text"),
    Function::immutable("->", &[Json, Int4], Json, element, "jsonfuncs.c json_array_element"),
    Function::immutable("->>", &[Json, Int4], TextType, element_text, "jsonfuncs.c json_array_element_text"),
    Function::immutable("#>", &[Json, PATH], Json, path, "jsonfuncs.c json_extract_path"),
    Function::immutable("#>>", &[Json, PATH], TextType, path_text, "jsonfuncs.c json_extract_path_text"),
    Function::immutable("json_array_length", &[Json], Int4, array_length, "jsonfuncs.c json_array_length"),
    Function::immutable("json_typeof", &[Json], TextType, type_of, "json.c json_typeof"),
];
