//! Functions in FROM: what each gives for one row of arguments. All are immutable; the strict ones give no rows for a NULL.

use super::EvalError;
use crate::types::array::{ArrayView, element_value};
use crate::types::json::{Kind, meant};
use crate::types::plain_json::{PlainJson, check_escapes};
use crate::types::{Element, PgType, Value};

/// One entry: a name that PostgreSQL resolves to this function for these types.
#[derive(Debug)]
pub struct RowsFunction {
    pub name: &'static str,
    pub arguments: &'static [PgType],
    /// How many of the last arguments may be left out.
    pub optional: usize,
    /// Names, where the function has named its results, and types.
    pub columns: &'static [(Option<&'static str>, PgType)],
    pub is_strict: bool,
    pub kernel: RowsKernel,
    /// Where PostgreSQL has it.
    pub source: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub enum RowsKernel {
    /// Appends the rows, one value per column.
    Rows(fn(&[Value], &mut Vec<Value>) -> Result<(), EvalError>),
    /// generate_series: the executor steps through it.
    Series,
}

/// A type that stands for any array, or for any that the executor steps through.
const ANY: PgType = PgType::Array(Element::Text);

const fn strict(
    name: &'static str,
    arguments: &'static [PgType],
    columns: &'static [(Option<&'static str>, PgType)],
    kernel: fn(&[Value], &mut Vec<Value>) -> Result<(), EvalError>,
    source: &'static str,
) -> RowsFunction {
    let kernel = RowsKernel::Rows(kernel);
    RowsFunction { name, arguments, optional: 0, columns, is_strict: true, kernel, source }
}

/// unnest, of any element type: the binder says which.
pub static UNNEST: RowsFunction =
    strict("unnest", &[ANY], &[(None, PgType::Text)], unnest, "arrayfuncs.c array_unnest");

/// generate_series over bounds that differ by row.
pub static SERIES: RowsFunction = RowsFunction {
    name: "generate_series",
    arguments: &[PgType::Int8, PgType::Int8, PgType::Int8],
    optional: 1,
    columns: &[(None, PgType::Int8)],
    is_strict: true,
    kernel: RowsKernel::Series,
    source: "int.c generate_series_step_int4, int8.c, timestamp.c",
};

const KEY: (Option<&str>, PgType) = (Some("key"), PgType::Text);

pub static ENTRIES: &[RowsFunction] = &[
    strict(
        "jsonb_array_elements",
        &[PgType::Jsonb],
        &[(Some("value"), PgType::Jsonb)],
        |arguments, out| elements(printed(arguments)?, out, as_json),
        "jsonfuncs.c elements_worker_jsonb",
    ),
    strict(
        "jsonb_array_elements_text",
        &[PgType::Jsonb],
        &[(Some("value"), PgType::Text)],
        |arguments, out| elements(printed(arguments)?, out, as_text),
        "jsonfuncs.c elements_worker_jsonb",
    ),
    strict(
        "jsonb_each",
        &[PgType::Jsonb],
        &[KEY, (Some("value"), PgType::Jsonb)],
        |arguments, out| members(printed(arguments)?, out, Some(as_json)),
        "jsonfuncs.c each_worker_jsonb",
    ),
    strict(
        "jsonb_each_text",
        &[PgType::Jsonb],
        &[KEY, (Some("value"), PgType::Text)],
        |arguments, out| members(printed(arguments)?, out, Some(as_text)),
        "jsonfuncs.c each_worker_jsonb",
    ),
    strict(
        "jsonb_object_keys",
        &[PgType::Jsonb],
        &[(None, PgType::Text)],
        |arguments, out| members(printed(arguments)?, out, None),
        "jsonfuncs.c jsonb_object_keys",
    ),
    strict(
        "json_array_elements",
        &[PgType::Json],
        &[(Some("value"), PgType::Json)],
        |arguments, out| elements(given(arguments)?, out, as_json),
        "jsonfuncs.c elements_worker",
    ),
    strict(
        "json_array_elements_text",
        &[PgType::Json],
        &[(Some("value"), PgType::Text)],
        |arguments, out| elements(given(arguments)?, out, as_text),
        "jsonfuncs.c elements_worker",
    ),
    strict(
        "json_each",
        &[PgType::Json],
        &[KEY, (Some("value"), PgType::Json)],
        |arguments, out| members(given(arguments)?, out, Some(as_json)),
        "jsonfuncs.c each_worker",
    ),
    strict(
        "json_each_text",
        &[PgType::Json],
        &[KEY, (Some("value"), PgType::Text)],
        |arguments, out| members(given(arguments)?, out, Some(as_text)),
        "jsonfuncs.c each_worker",
    ),
    strict(
        "json_object_keys",
        &[PgType::Json],
        &[(None, PgType::Text)],
        |arguments, out| members(given(arguments)?, out, None),
        "jsonfuncs.c json_object_keys",
    ),
    RowsFunction {
        name: "string_to_table",
        arguments: &[PgType::Text, PgType::Text, PgType::Text],
        optional: 1,
        columns: &[(None, PgType::Text)],
        is_strict: false,
        kernel: RowsKernel::Rows(split),
        source: "varlena.c text_to_table",
    },
];

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn unnest(arguments: &[Value], out: &mut Vec<Value>) -> Result<(), EvalError> {
    let [Value::Array(bytes), Value::Int8(oid)] = arguments else {
        return Err(EvalError::Beyond("unnest of such a value".to_owned()));
    };
    let element = u32::try_from(*oid).ok().and_then(PgType::from_oid);
    let element = element.ok_or_else(|| EvalError::Beyond("unnest of an unknown element type".to_owned()))?;
    for item in ArrayView::of(bytes).elements() {
        out.push(match item {
            Some(bytes) => element_value(element, bytes)?,
            None => Value::Null,
        });
    }
    Ok(())
}

fn as_json(value: PlainJson<'_>) -> Value {
    Value::Text(value.text().into())
}

fn as_text(value: PlainJson<'_>) -> Value {
    let mut text = String::new();
    if value.write_text(&mut text) { Value::Text(text.into()) } else { Value::Null }
}

/// jsonb: what it prints is json.
fn printed(arguments: &[Value]) -> Result<PlainJson<'_>, EvalError> {
    let text = arguments.first().and_then(text_of);
    text.map(PlainJson::of).ok_or_else(|| EvalError::Beyond("a function of json over another value".to_owned()))
}

/// json as it was given, whose escapes all have to mean something.
fn given(arguments: &[Value]) -> Result<PlainJson<'_>, EvalError> {
    let value = printed(arguments)?;
    check_escapes(value.text())?;
    Ok(value)
}

fn elements(value: PlainJson<'_>, out: &mut Vec<Value>, shown: fn(PlainJson<'_>) -> Value) -> Result<(), EvalError> {
    match value.kind() {
        Kind::Array => out.extend(value.elements().map(shown)),
        Kind::Object => return Err(EvalError::Raises("cannot extract elements from an object".to_owned())),
        _ => return Err(EvalError::Raises("cannot extract elements from a scalar".to_owned())),
    }
    Ok(())
}

/// Keys, with their values as they are shown, or alone.
fn members(
    value: PlainJson<'_>,
    out: &mut Vec<Value>,
    shown: Option<fn(PlainJson<'_>) -> Value>,
) -> Result<(), EvalError> {
    if value.kind() != Kind::Object {
        return Err(EvalError::Raises("cannot take what is no object apart".to_owned()));
    }
    for (key, value) in value.members() {
        out.push(Value::Text(meant(key).into()));
        out.extend(shown.map(|shown| shown(value)));
    }
    Ok(())
}

fn split(arguments: &[Value], out: &mut Vec<Value>) -> Result<(), EvalError> {
    let Some(text) = arguments.first().and_then(text_of) else { return Ok(()) };
    let separator = arguments.get(1).and_then(text_of);
    let null = arguments.get(2).and_then(text_of);
    fields(text, separator, |field| {
        out.push(if null == Some(field) { Value::Null } else { Value::Text(field.into()) });
    });
    Ok(())
}

/// split_text of varlena.c: no separator at all splits into characters, an empty one does not split, and an empty text
/// has no fields.
pub fn fields<'t>(text: &'t str, separator: Option<&str>, mut field: impl FnMut(&'t str)) {
    match separator {
        _ if text.is_empty() => {}
        None => text.char_indices().for_each(|(at, character)| field(&text[at..at + character.len_utf8()])),
        Some("") => field(text),
        Some(separator) => text.split(separator).for_each(field),
    }
}
