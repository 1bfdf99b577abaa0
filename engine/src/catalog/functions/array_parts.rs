//! Functions that make arrays of arrays and elements, or look for elements: what is polymorphic in PostgreSQL is one kernel
//! here, told the element type as a last argument by `binder/array.rs`. Elements of all types, compared as their types do.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, BooleanArray, Int32Array};

use super::array::{ANY, array_at, element_of, int_at, text_at};
use super::regular::{match_in, split_in};
use super::returning_rows::fields;
use super::rows::{Argument, Bytes, Text};
use super::vector::{Numbers, operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Array, Bool, Int4, Text as TextType};
use crate::types::access::value_at;
use crate::types::array::{ArrayView, Dimension, compare, same_element, write_array, write_element};
use crate::types::{Element, Value};

/// One array per row, from what `make` appends to the elements of the row; None: NULL.
fn arrays(
    element: Element,
    rows: usize,
    mut make: impl FnMut(usize, &mut Made) -> Result<Option<()>, EvalError>,
) -> Result<ArrayRef, EvalError> {
    let mut arrays = BinaryBuilder::with_capacity(rows, rows * 32);
    let (mut made, mut whole) = (Made::default(), Vec::new());
    for row in 0..rows {
        made.clear();
        match make(row, &mut made)? {
            Some(()) => {
                // PostgreSQL raises an error, not the same everywhere.
                if made.lower == i32::MIN || made.lower.checked_add(made.count as i32).is_none() {
                    return Err(EvalError::Beyond("bounds of an array".to_owned()));
                }
                whole.clear();
                let dimension = Dimension { length: made.count as i32, lower: made.lower };
                write_array(element, dimension, made.has_null, &made.elements, &mut whole);
                arrays.append_value(&whole);
            }
            None => arrays.append_null(),
        }
    }
    Ok(Arc::new(arrays.finish()))
}

/// The elements of an array of one dimension in the making.
#[derive(Default)]
struct Made {
    elements: Vec<u8>,
    count: usize,
    has_null: bool,
    lower: i32,
}

impl Made {
    fn clear(&mut self) {
        self.elements.clear();
        (self.count, self.has_null, self.lower) = (0, false, 1);
    }

    fn push(&mut self, element: Option<&[u8]>) {
        match element {
            Some(bytes) => {
                self.elements.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                self.elements.extend_from_slice(bytes);
            }
            None => {
                self.elements.extend_from_slice(&(-1i32).to_be_bytes());
                self.has_null = true;
            }
        }
        self.count += 1;
    }

    /// All of an array, which has one dimension or none; its lower bound.
    fn push_all(&mut self, array: ArrayView<'_>) -> i32 {
        array.elements().for_each(|element| self.push(element));
        array.dimension(0).map_or(1, |dimension| dimension.lower)
    }
}

/// An element as it is stored; None: NULL.
fn bytes_of(operand: &Operand, element: Element, row: usize) -> Option<Vec<u8>> {
    let value = match operand {
        Operand::Column(array) => value_at(array.as_ref(), element.pg_type(), row),
        Operand::Scalar(value) => value.clone(),
    };
    if value.is_null() {
        return None;
    }
    let mut bytes = Vec::new();
    write_element(&value, element, &mut bytes);
    Some(bytes.split_off(4))
}

/// Of several dimensions: PostgreSQL answers or refuses, the kernels here do neither.
fn flat<'a>(array: Option<ArrayView<'a>>) -> Result<Option<ArrayView<'a>>, EvalError> {
    match array {
        Some(array) if array.depth() > 1 => Err(EvalError::Beyond("an array of several dimensions".to_owned())),
        other => Ok(other),
    }
}

/// array_append: a NULL array is an empty one.
fn append(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (views, item) = (Bytes::view(operand(o, 0)?)?, operand(o, 1)?);
    arrays(element, rows, |row, made| {
        if let Some(array) = flat(array_at(&views, row))? {
            made.lower = made.push_all(array);
        }
        made.push(bytes_of(item, element, row).as_deref());
        Ok(Some(()))
    })
}

/// array_prepend: the lower bound stays.
fn prepend(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (item, views) = (operand(o, 0)?, Bytes::view(operand(o, 1)?)?);
    arrays(element, rows, |row, made| {
        made.push(bytes_of(item, element, row).as_deref());
        if let Some(array) = flat(array_at(&views, row))? {
            made.lower = made.push_all(array);
        }
        Ok(Some(()))
    })
}

/// array_cat: NULL and empty arrays add nothing.
fn concatenate(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (left, right) = (Bytes::view(operand(o, 0)?)?, Bytes::view(operand(o, 1)?)?);
    arrays(element, rows, |row, made| {
        let sides = [flat(array_at(&left, row))?, flat(array_at(&right, row))?];
        if sides.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut filled = sides.into_iter().flatten().filter(|array| !array.is_empty());
        if let Some(first) = filled.next() {
            made.lower = made.push_all(first);
        }
        for array in filled {
            made.push_all(array);
        }
        Ok(Some(()))
    })
}

fn is_same(element: Element, a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same_element(element, a, b),
        (None, None) => true,
        _ => false,
    }
}

/// array_remove (array_replace_internal): NULL is NULL's equal here.
fn remove(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (views, unwanted) = (Bytes::view(operand(o, 0)?)?, operand(o, 1)?);
    arrays(element, rows, |row, made| {
        let Some(array) = flat(array_at(&views, row))? else { return Ok(None) };
        let unwanted = bytes_of(unwanted, element, row);
        let kept = array.elements().filter(|item| !is_same(element, *item, unwanted.as_deref()));
        kept.for_each(|item| made.push(item));
        made.lower = array.dimension(0).map_or(1, |dimension| dimension.lower);
        Ok(Some(()))
    })
}

fn replace(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (views, from, to) = (Bytes::view(operand(o, 0)?)?, operand(o, 1)?, operand(o, 2)?);
    arrays(element, rows, |row, made| {
        let Some(array) = array_at(&views, row) else { return Ok(None) };
        let array = flat(Some(array))?.unwrap_or(array);
        let (from, to) = (bytes_of(from, element, row), bytes_of(to, element, row));
        for item in array.elements() {
            made.push(if is_same(element, item, from.as_deref()) { to.as_deref() } else { item });
        }
        made.lower = array.dimension(0).map_or(1, |dimension| dimension.lower);
        Ok(Some(()))
    })
}

/// array_position: the subscript of the first equal element, from a subscript on if one is given.
fn position(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (views, wanted) = (Bytes::view(operand(o, 0)?)?, operand(o, 1)?);
    let start = if o.len() > 3 { Some(Numbers::new(operand(o, 2)?)?) } else { None };
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let Some(array) = flat(array_at(&views, row))? else {
            found.push(None);
            continue;
        };
        let start = match &start {
            None => i32::MIN,
            Some(start) => {
                int_at(start, row).ok_or_else(|| EvalError::Raises("initial position must not be null".to_owned()))?
            }
        };
        let wanted = bytes_of(wanted, element, row);
        let lower = array.dimension(0).map_or(1, |dimension| dimension.lower);
        let mut items = array.elements().zip(lower..);
        let is_it = |(item, at): &(Option<&[u8]>, i32)| *at >= start && is_same(element, *item, wanted.as_deref());
        found.push(items.find(is_it).map(|(_, at)| at));
    }
    Ok(Arc::new(Int32Array::from(found)))
}

fn positions(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (views, wanted) = (Bytes::view(operand(o, 0)?)?, operand(o, 1)?);
    arrays(Element::Int4, rows, |row, made| {
        let Some(array) = flat(array_at(&views, row))? else { return Ok(None) };
        let wanted = bytes_of(wanted, element, row);
        let lower = array.dimension(0).map_or(1, |dimension| dimension.lower);
        for (item, at) in array.elements().zip(lower..) {
            if is_same(element, item, wanted.as_deref()) {
                made.push(Some(&at.to_be_bytes()));
            }
        }
        Ok(Some(()))
    })
}

/// array_get_slice: what lies within the bounds, numbered from 1. A bound that is left out is the array's own: the binder
/// puts `false` in its place, as NULL means something else.
fn slice(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let views = Bytes::view(operand(o, 0)?)?;
    let bound = |at| match operand(o, at)? {
        Operand::Scalar(Value::Bool(_)) => Ok::<_, EvalError>(None),
        given => Ok(Some(Numbers::new(given)?)),
    };
    let (lower, upper) = (bound(1)?, bound(2)?);
    arrays(element, rows, |row, made| {
        let Some(array) = flat(array_at(&views, row))? else { return Ok(None) };
        let given = |bound: &Option<Numbers<'_, i32>>, own: i32| match bound {
            None => Some(own),
            Some(numbers) => int_at(numbers, row),
        };
        let own = array.dimension(0).unwrap_or(Dimension { length: 0, lower: 1 });
        let bounds = (given(&lower, own.lower), given(&upper, own.upper()));
        let (Some(lower), Some(upper)) = bounds else { return Ok(None) };
        let within = array.elements().zip(own.lower..).filter(|(_, at)| (lower..=upper).contains(at));
        within.for_each(|(item, _)| made.push(item));
        made.has_null = made.count > 0 && array.has_bitmap();
        Ok(Some(()))
    })
}

/// string_to_array: no separator splits into characters, an empty text has no fields.
fn split(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let (texts, separators) = (Text::view(operand(o, 0)?)?, Text::view(operand(o, 1)?)?);
    let nulls = if o.len() > 2 { Text::view(operand(o, 2)?)? } else { None };
    arrays(Element::Text, rows, |row, made| {
        let Some(text) = text_at(&texts, row) else { return Ok(None) };
        let null = text_at(&nulls, row);
        fields(text, text_at(&separators, row), |field| {
            made.push(Some(field.as_bytes()).filter(|_| null != Some(field)));
        });
        Ok(Some(()))
    })
}

/// From a text, a pattern and flags that may be left out: the elements that `write` makes; false: NULL. Strict.
fn by_pattern(
    o: &[Operand],
    rows: usize,
    write: impl Fn([&str; 3], &mut Made) -> Result<bool, EvalError>,
) -> Result<ArrayRef, EvalError> {
    let views = o.iter().map(Text::view).collect::<Result<Vec<_>, _>>()?;
    arrays(Element::Text, rows, |row, made| {
        let mut given = [None, None, Some("")];
        for (place, view) in given.iter_mut().zip(&views) {
            *place = text_at(view, row);
        }
        let [Some(text), Some(pattern), Some(flags)] = given else { return Ok(None) };
        Ok(write([text, pattern, flags], made)?.then_some(()))
    })
}

fn regexp_match(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    by_pattern(o, rows, |[text, pattern, flags], made| {
        match_in(text, pattern, flags, |part| made.push(part.map(str::as_bytes)))
    })
}

fn regexp_split(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    by_pattern(o, rows, |[text, pattern, flags], made| {
        split_in(text, pattern, flags, |part| made.push(Some(part.as_bytes())))?;
        Ok(true)
    })
}

/// What array_cmp finds, as `test` wants it.
fn compared(o: &[Operand], rows: usize, test: impl Fn(std::cmp::Ordering) -> bool) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (left, right) = (Bytes::view(operand(o, 0)?)?, Bytes::view(operand(o, 1)?)?);
    let value = |row| Some(test(compare(element, array_at(&left, row)?, array_at(&right, row)?)));
    Ok(Arc::new((0..rows).map(value).collect::<BooleanArray>()))
}

const INTS: crate::types::PgType = Array(Element::Int4);

macro_rules! lenient {
    ($name:literal, $arguments:expr, $result:expr, $kernel:expr, $source:literal) => {
        Function { is_strict: false, ..Function::immutable($name, $arguments, $result, $kernel, $source) }
    };
}

/// By name; arguments are array, elements of its type, and what is said, then the element's OID, which is not listed. `ANY`
/// stands for any array, text for any element.
pub static PARTS: &[Function] = &[
    lenient!("array_append", &[ANY, TextType], ANY, append, "array_userfuncs.c array_append"),
    lenient!("array_prepend", &[TextType, ANY], ANY, prepend, "array_userfuncs.c array_prepend"),
    lenient!("array_cat", &[ANY, ANY], ANY, concatenate, "array_userfuncs.c array_cat"),
    lenient!("array_remove", &[ANY, TextType], ANY, remove, "arrayfuncs.c array_remove"),
    lenient!("array_replace", &[ANY, TextType, TextType], ANY, replace, "arrayfuncs.c array_replace"),
    lenient!("array_position", &[ANY, TextType], Int4, position, "array_userfuncs.c array_position"),
    lenient!("array_position", &[ANY, TextType, Int4], Int4, position, "array_userfuncs.c array_position_start"),
    lenient!("array_positions", &[ANY, TextType], INTS, positions, "array_userfuncs.c array_positions"),
];

/// Array, lower and upper bound or `false`, element OID → array.
pub static SLICE: Function = lenient!("slice", &[ANY, Int4, Int4], ANY, slice, "arrayfuncs.c array_get_slice");

/// In no table of overloads for the sake of their results, arrays of texts: text, separator or pattern, and what may be left out.
pub static SPLITS: &[Function] = &[
    lenient!("string_to_array", TEXTS, ANY, split, "varlena.c text_to_array"),
    Function::immutable("regexp_match", TEXTS, ANY, regexp_match, "regexp.c regexp_match"),
    Function::immutable("regexp_split_to_array", TEXTS, ANY, regexp_split, "regexp.c regexp_split_to_array"),
];

const TEXTS: &[crate::types::PgType] = &[TextType, TextType, TextType];

/// By operator: arrays, element OID → whether.
pub static COMPARISONS: &[(&str, Function)] = &[
    (
        "=",
        Function::immutable(
            "array_eq",
            &[ANY, ANY],
            Bool,
            |o, n, _| compared(o, n, |c| c.is_eq()),
            "arrayfuncs.c array_eq",
        ),
    ),
    (
        "<>",
        Function::immutable(
            "array_ne",
            &[ANY, ANY],
            Bool,
            |o, n, _| compared(o, n, |c| c.is_ne()),
            "arrayfuncs.c array_ne",
        ),
    ),
    (
        "<",
        Function::immutable(
            "array_lt",
            &[ANY, ANY],
            Bool,
            |o, n, _| compared(o, n, |c| c.is_lt()),
            "arrayfuncs.c array_lt",
        ),
    ),
    (
        "<=",
        Function::immutable(
            "array_le",
            &[ANY, ANY],
            Bool,
            |o, n, _| compared(o, n, |c| c.is_le()),
            "arrayfuncs.c array_le",
        ),
    ),
    (
        ">",
        Function::immutable(
            "array_gt",
            &[ANY, ANY],
            Bool,
            |o, n, _| compared(o, n, |c| c.is_gt()),
            "arrayfuncs.c array_gt",
        ),
    ),
    (
        ">=",
        Function::immutable(
            "array_ge",
            &[ANY, ANY],
            Bool,
            |o, n, _| compared(o, n, |c| c.is_ge()),
            "arrayfuncs.c array_ge",
        ),
    ),
];
