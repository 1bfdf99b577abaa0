//! JSON made of values (json.c and jsonb.c: to_json, json_build_object, json_agg and their like). Not in the table of overloads, whose
//! arguments are of any type: `binder/json.rs` knows them by name, and calls these kernels, whose operands are JSON already but for
//! the first one's.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringBuilder};

use super::rows::{Text, end_of, per_distinct, to_text};
use super::text::{from_nullable, variadic};
use super::vector::{operand, wrong_operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{self, Int8, Json, Jsonb, Text as TextType};
use crate::types::access::{null_array, value_at};
use crate::types::json;
use crate::types::{DateStyle, FormatSettings, Value};

/// The type of the first operand, which the binder has put last, as its OID.
fn type_of(operand: Option<&Operand>) -> Result<PgType, EvalError> {
    match operand {
        Some(Operand::Scalar(Value::Int8(oid))) => {
            u32::try_from(*oid).ok().and_then(PgType::from_oid).ok_or_else(wrong_operand)
        }
        _ => Err(wrong_operand()),
    }
}

/// datum_to_json: times in ISO 8601's style, whatever DateStyle is.
fn value(operands: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let from = type_of(operands.last())?;
    let settings = FormatSettings { date_style: DateStyle::Iso, ..context.settings.clone() };
    per_distinct(operands, rows, &|operands, rows| {
        let mut texts = StringBuilder::with_capacity(rows, rows * 16);
        let mut text = String::new();
        let given = operand(operands, 0)?;
        if matches!(given, Operand::Scalar(Value::Null)) {
            return Ok(null_array(Json, rows));
        }
        for row in 0..rows {
            text.clear();
            match given {
                Operand::Scalar(value) => json::write_value(value, from, &settings, &mut text)?,
                Operand::Column(column) if column.is_valid(row) => {
                    json::write_value(&value_at(column, from, row), from, &settings, &mut text)?;
                }
                Operand::Column(_) => {
                    texts.append_null();
                    continue;
                }
            }
            texts.append_value(&text);
            end_of(texts.values_slice().len())?;
        }
        Ok(Arc::new(texts.finish()))
    })
}

/// How an object is written.
struct Style {
    colon: &'static str,
    comma: &'static str,
}

const SPACED: Style = Style { colon: " : ", comma: ", " };
const COMPACT: Style = Style { colon: ":", comma: "," };

/// A key is a string, whatever JSON its value would be.
fn write_key(key: Option<&str>, out: &mut String) -> Result<(), EvalError> {
    match key {
        None => return Err(EvalError::Raises("a key of a JSON object is NULL".to_owned())),
        Some(string) if string.starts_with('"') => out.push_str(string),
        Some(other) => {
            out.push('"');
            out.push_str(other);
            out.push('"');
        }
    }
    Ok(())
}

fn write_object(pairs: &[Option<&str>], style: &Style, out: &mut String) -> Result<bool, EvalError> {
    out.push('{');
    for (number, pair) in pairs.chunks(2).enumerate() {
        let &[key, value] = pair else { return Err(wrong_operand()) };
        out.push_str(if number > 0 { style.comma } else { "" });
        write_key(key, out)?;
        out.push_str(style.colon);
        out.push_str(value.unwrap_or("null"));
    }
    out.push('}');
    Ok(true)
}

fn object(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    from_nullable(operands, rows, |pairs, out| write_object(pairs, &SPACED, out))
}

fn record(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    from_nullable(operands, rows, |pairs, out| write_object(pairs, &COMPACT, out))
}

fn array(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    from_nullable(operands, rows, |values, out| {
        out.push('[');
        for (number, value) in values.iter().enumerate() {
            out.push_str(if number > 0 { ", " } else { "" });
            out.push_str(value.unwrap_or("null"));
        }
        out.push(']');
        Ok(true)
    })
}

fn member(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    from_nullable(operands, rows, |pair, out| {
        let &[key, value] = pair else { return Err(wrong_operand()) };
        write_key(key, out)?;
        out.push_str(SPACED.colon);
        out.push_str(value.unwrap_or("null"));
        Ok(true)
    })
}

fn enclosed(operands: &[Operand], rows: usize, left: &str, right: &str) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(operands, rows, |(text,), out| {
        out.push_str(left);
        out.push_str(text);
        out.push_str(right);
        Ok(())
    })
}

fn list_of(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    enclosed(operands, rows, "[", "]")
}

fn object_of(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    enclosed(operands, rows, "{ ", " }")
}

fn canonical(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(operands, rows, |(text,), out| {
        out.push_str(&json::parse(text)?);
        Ok(())
    })
}

const JSON: &[PgType] = &[Json];

/// A value of any type, the type's OID → json.
pub static JSON_VALUE: Function = Function::stable("to_json", &[TextType, Int8], Json, value, "json.c datum_to_json");

/// Keys and values in turn → json.
pub static JSON_OBJECT: Function =
    Function { result: Json, ..variadic("json_build_object", JSON, object, "json.c json_build_object") };

/// Names and values in turn → json.
pub static JSON_RECORD: Function =
    Function { result: Json, ..variadic("row_to_json", JSON, record, "json.c composite_to_json") };

/// Values → json.
pub static JSON_ARRAY: Function =
    Function { result: Json, ..variadic("json_build_array", JSON, array, "json.c json_build_array") };

/// Key, value → what json_object_agg puts between its commas.
pub static JSON_MEMBER: Function = Function {
    is_strict: false,
    ..Function::immutable("json_member", &[Json, Json], TextType, member, "json.c json_object_agg_transfn")
};

/// What string_agg has made of values → json.
pub static JSON_LIST: Function = Function::immutable("json_agg", &[TextType], Json, list_of, "json.c json_agg_finalfn");

/// What string_agg has made of members → json.
pub static JSON_OBJECT_OF: Function =
    Function::immutable("json_object_agg", &[TextType], Json, object_of, "json.c json_object_agg_finalfn");

/// json → jsonb.
pub static JSONB_OF: Function = Function::immutable("jsonb", JSON, Jsonb, canonical, "jsonb.c jsonb_in");
