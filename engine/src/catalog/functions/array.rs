//! Functions and operators on arrays, whatever their elements are: what is polymorphic in PostgreSQL is one kernel here,
//! and the binder decides which element types may take part. Not in the table of overloads: `binder/array.rs` knows them
//! by name.
//!
//! Elements are compared by their bytes, so those of numeric and float arrays are not compared here; in `array_parts` they are.

use std::cell::RefCell;
use std::sync::Arc;

use ahash::RandomState;
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, Int32Array, StringBuilder};
use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type};
use hashbrown::HashSet;

use super::rows::{Argument, Bytes, Text, before_row, end_of, to_text};
use super::vector::{Numbers, operand, wrong_operand};
use super::{EvalContext, EvalError, Function, Operand, Volatility};
use crate::types::PgType::{self, Bool, Int4, Int8, Text as TextType};
use crate::types::access::{TextColumn, array_of};
use crate::types::array::{ArrayView, write_element_text, write_text, write_vector};
use crate::types::build::ColumnBuilder;
use crate::types::encode::{ColumnEncoder, Format};
use crate::types::network::{Kind, Network};
use crate::types::{Element, Value};

/// A type that stands for any array in the entries below.
pub(super) const ANY: PgType = PgType::Array(Element::Text);

/// One row of an operand of array type; None: NULL.
pub(super) fn array_at<'a>(view: &Option<<Bytes as Argument>::View<'a>>, row: usize) -> Option<ArrayView<'a>> {
    let view = view.as_ref()?;
    let is_null = Bytes::nulls(view).is_some_and(|nulls| nulls.is_null(row));
    (!is_null).then(|| ArrayView::of(Bytes::at(view, row)))
}

pub(super) fn int_at(view: &Numbers<'_, i32>, row: usize) -> Option<i32> {
    match view {
        Numbers::Null => None,
        Numbers::Scalar(value) => Some(*value),
        Numbers::Column(values, nulls) => nulls.is_none_or(|nulls| nulls.is_valid(row)).then(|| values[row]),
    }
}

pub(super) fn text_at<'a>(view: &Option<<Text as Argument>::View<'a>>, row: usize) -> Option<&'a str> {
    let view = view.as_ref()?;
    let is_null = Text::nulls(view).is_some_and(|nulls| nulls.is_null(row));
    (!is_null).then(|| Text::at(view, row))
}

/// A number of the array's dimension, None where it has no such dimension.
fn of_dimension(
    operands: &[Operand],
    rows: usize,
    number: impl Fn(crate::types::array::Dimension) -> i32,
) -> Result<ArrayRef, EvalError> {
    let arrays = Bytes::view(operand(operands, 0)?)?;
    let dimensions = Numbers::new(operand(operands, 1)?)?;
    let value = |row| {
        let (array, wanted) = (array_at(&arrays, row)?, int_at(&dimensions, row)?);
        array.dimension(usize::try_from(wanted).ok()?.checked_sub(1)?).map(&number)
    };
    Ok(Arc::new((0..rows).map(value).collect::<Int32Array>()))
}

fn length(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    of_dimension(o, rows, |dimension| dimension.length)
}

fn upper(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    of_dimension(o, rows, |dimension| dimension.upper())
}

fn lower(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    of_dimension(o, rows, |dimension| dimension.lower)
}

fn cardinality(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let arrays = Bytes::view(operand(o, 0)?)?;
    let value = |row| array_at(&arrays, row).map(|array| array.len() as i32);
    Ok(Arc::new((0..rows).map(value).collect::<Int32Array>()))
}

fn depth(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let arrays = Bytes::view(operand(o, 0)?)?;
    let value = |row| array_at(&arrays, row).map(|array| array.depth() as i32).filter(|depth| *depth > 0);
    Ok(Arc::new((0..rows).map(value).collect::<Int32Array>()))
}

/// What `holds` says of each pair of arrays.
fn pairwise(
    operands: &[Operand],
    rows: usize,
    holds: impl Fn(ArrayView<'_>, ArrayView<'_>) -> bool,
) -> Result<ArrayRef, EvalError> {
    let (left, right) = (Bytes::view(operand(operands, 0)?)?, Bytes::view(operand(operands, 1)?)?);
    let value = |row| Some(holds(array_at(&left, row)?, array_at(&right, row)?));
    Ok(Arc::new((0..rows).map(value).collect::<BooleanArray>()))
}

/// array_contain_compare with matchall: a NULL is in nothing.
fn has_all(whole: ArrayView<'_>, part: ArrayView<'_>) -> bool {
    part.elements().all(|wanted| wanted.is_some() && whole.elements().any(|element| element == wanted))
}

fn contains(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    pairwise(o, rows, has_all)
}

fn is_contained(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    pairwise(o, rows, |part, whole| has_all(whole, part))
}

fn overlaps(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    pairwise(o, rows, |left, right| {
        right.elements().any(|wanted| wanted.is_some() && left.elements().any(|element| element == wanted))
    })
}

/// array_to_text: elements as they print, NULLs as the third argument, or not at all.
fn to_string(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let (arrays, separators) = (Bytes::view(operand(o, 0)?)?, Text::view(operand(o, 1)?)?);
    let nulls = if o.len() > 3 { Text::view(operand(o, 2)?)? } else { None };
    let mut texts = StringBuilder::with_capacity(rows, rows * 16);
    let mut joined = Vec::new();
    for row in 0..rows {
        before_row(row)?;
        let (Some(array), Some(separator)) = (array_at(&arrays, row), text_at(&separators, row)) else {
            texts.append_null();
            continue;
        };
        joined.clear();
        let mut is_first = true;
        for item in array.elements() {
            let null = text_at(&nulls, row);
            if item.is_none() && null.is_none() {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                joined.extend_from_slice(separator.as_bytes());
            }
            match item {
                Some(item) => write_element_text(item, element, context.settings, &mut joined),
                None => joined.extend_from_slice(null.unwrap_or_default().as_bytes()),
            }
            end_of(joined.len())?;
        }
        texts.append_value(std::str::from_utf8(&joined).map_err(|_| wrong_operand())?);
        end_of(texts.values_slice().len())?;
    }
    Ok(Arc::new(texts.finish()))
}

fn output(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let written = RefCell::new(Vec::new());
    to_text::<(Bytes,)>(&o[..1], rows, |(array,), out| {
        let mut written = written.borrow_mut();
        written.clear();
        write_text(array, element, context.settings, &mut written);
        out.push_str(std::str::from_utf8(&written).map_err(|_| wrong_operand())?);
        Ok(())
    })
}

/// The element type that the binder has put last, as its OID.
pub(super) fn element_of(operand: Option<&Operand>) -> Result<Element, EvalError> {
    match operand {
        Some(Operand::Scalar(Value::Int8(oid))) => {
            u32::try_from(*oid).ok().and_then(PgType::from_oid).and_then(Element::of).ok_or_else(wrong_operand)
        }
        _ => Err(wrong_operand()),
    }
}

/// `ARRAY[...]`.
fn construct(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?;
    let items = &o[..o.len() - 1];
    let columns: Vec<ArrayRef> = items
        .iter()
        .map(|item| match item {
            Operand::Column(array) => Arc::clone(array),
            Operand::Scalar(value) => array_of(value, element.pg_type(), rows),
        })
        .collect();
    let encoder = |column| ColumnEncoder::new(column, element.pg_type(), Format::Binary, context.settings);
    let mut encoders: Vec<ColumnEncoder<'_>> = columns.iter().map(encoder).collect();
    let nulls: Vec<_> = columns.iter().map(|column| column.logical_nulls()).collect();
    let mut arrays = BinaryBuilder::with_capacity(rows, rows * 32);
    let (mut elements, mut whole) = (Vec::new(), Vec::new());
    for row in 0..rows {
        elements.clear();
        whole.clear();
        encoders.iter_mut().for_each(|encoder| encoder.write(row, &mut elements));
        let has_null = nulls.iter().flatten().any(|nulls| nulls.is_null(row));
        write_vector(element, columns.len(), has_null, &elements, &mut whole);
        arrays.append_value(&whole);
    }
    Ok(Arc::new(arrays.finish()))
}

fn retyped(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let element = element_of(o.last())?.pg_type().oid().to_be_bytes();
    let arrays = Bytes::view(operand(o, 0)?)?;
    let mut all = BinaryBuilder::with_capacity(rows, rows * 32);
    let mut written = Vec::new();
    for row in 0..rows {
        let Some(view) = arrays.as_ref().filter(|view| !Bytes::nulls(view).is_some_and(|nulls| nulls.is_null(row)))
        else {
            all.append_null();
            continue;
        };
        written.clear();
        written.extend_from_slice(Bytes::at(view, row));
        // Behind the number of dimensions and whether there are NULLs.
        written.get_mut(8..12).ok_or_else(wrong_operand)?.copy_from_slice(&element);
        all.append_value(&written);
    }
    Ok(Arc::new(all.finish()))
}

/// The element at a subscript (array_get_element): NULL outside of the bounds, and of an array of other dimensions than one.
fn element_at(o: &[Operand], rows: usize, element: Element) -> Result<ArrayRef, EvalError> {
    let arrays = Bytes::view(operand(o, 0)?)?;
    let subscripts = Numbers::new(operand(o, 1)?)?;
    let found = |row| {
        let (array, subscript) = (array_at(&arrays, row)?, int_at(&subscripts, row)?);
        let dimension = array.dimension(0).filter(|_| array.depth() == 1)?;
        let place = usize::try_from(i64::from(subscript) - i64::from(dimension.lower)).ok()?;
        array.elements().nth(place)?
    };
    let mut column = ColumnBuilder::with_capacity(element.pg_type(), -1, rows);
    for row in 0..rows {
        match found(row) {
            Some(bytes) => column.append_binary(bytes)?,
            None => column.append_null(),
        }
    }
    Ok(column.finish())
}

/// Values that are compared with elements: numbers of any width, bytes, or addresses.
enum Probe<'a> {
    Int2(&'a [i16]),
    Int4(&'a [i32]),
    Int8(&'a [i64]),
    Bool(&'a BooleanArray),
    Text(TextColumn<'a>),
    Uuid(&'a arrow::array::FixedSizeBinaryArray),
    Network(&'a BinaryArray),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'a> {
    Number(i64),
    Bytes(&'a [u8]),
    Network(Network),
}

impl<'a> Probe<'a> {
    fn of(array: &'a ArrayRef) -> Result<Self, EvalError> {
        Ok(match array.data_type() {
            DataType::Int16 => Self::Int2(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Self::Int4(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Self::Int8(array.as_primitive::<Int64Type>().values()),
            DataType::Boolean => Self::Bool(array.as_boolean()),
            DataType::Utf8 | DataType::Dictionary(..) => Self::Text(TextColumn::of(array)),
            DataType::Binary => Self::Network(array.as_binary()),
            DataType::FixedSizeBinary(_) => Self::Uuid(array.as_fixed_size_binary()),
            _ => return Err(wrong_operand()),
        })
    }

    fn key(&self, row: usize) -> Key<'a> {
        match self {
            Self::Int2(values) => Key::Number(values[row].into()),
            Self::Int4(values) => Key::Number(values[row].into()),
            Self::Int8(values) => Key::Number(values[row]),
            Self::Bool(values) => Key::Number(values.value(row).into()),
            Self::Text(values) => Key::Bytes(values.get(row).as_bytes()),
            Self::Uuid(values) => Key::Bytes(values.value(row)),
            Self::Network(values) => Key::Network(Network::of_held(values.value(row))),
        }
    }

    /// An element as the keys of these values are.
    fn element_key<'e>(&self, bytes: &'e [u8]) -> Key<'e> {
        match self {
            Self::Text(_) | Self::Uuid(_) => Key::Bytes(bytes),
            // A cidr among the elements equals an inet. They were looked at when the array came.
            Self::Network(_) => Network::decode(Kind::Inet, bytes).map_or(Key::Bytes(bytes), Key::Network),
            Self::Int2(_) | Self::Int4(_) | Self::Int8(_) | Self::Bool(_) => Key::Number(number(bytes)),
        }
    }
}

/// A number of one, two, four or eight bytes.
fn number(bytes: &[u8]) -> i64 {
    let negative = bytes.len() > 1 && bytes[0] & 0x80 != 0;
    bytes.iter().fold(if negative { -1 } else { 0 }, |number, byte| number << 8 | i64::from(*byte))
}

/// From so many elements on, those of a constant array are hashed.
const HASHED_MIN: usize = 8;

/// `x = ANY (array)` (execExprInterp.c, ExecEvalScalarArrayOp): NULL if no element is equal and one is NULL.
fn equals_any(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let values = match operand(o, 0)? {
        Operand::Column(array) => Arc::clone(array),
        Operand::Scalar(Value::Null) => return null_in(operand(o, 1)?, rows),
        Operand::Scalar(value) => array_of(value, scalar_type(value)?, rows),
    };
    let probe = Probe::of(&values)?;
    let nulls = values.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let arrays = Bytes::view(operand(o, 1)?)?;
    if let Operand::Scalar(Value::Array(bytes)) = operand(o, 1)? {
        let array = ArrayView::of(bytes);
        let (count, has_null) = (array.len(), array.elements().any(|element| element.is_none()));
        let keys = || array.elements().flatten().map(|element| probe.element_key(element));
        let hashed: Option<HashSet<Key<'_>, RandomState>> = (count >= HASHED_MIN).then(|| keys().collect());
        let value = |row| {
            if is_null(row) {
                return (count == 0).then_some(false);
            }
            let key = probe.key(row);
            let is_found = hashed.as_ref().map_or_else(|| keys().any(|own| own == key), |hashed| hashed.contains(&key));
            (is_found || !has_null).then_some(is_found)
        };
        return Ok(Arc::new((0..rows).map(value).collect::<BooleanArray>()));
    }
    let value = |row| {
        let array = array_at(&arrays, row)?;
        if is_null(row) {
            return array.is_empty().then_some(false);
        }
        let key = probe.key(row);
        let mut has_null = false;
        for element in array.elements() {
            match element {
                Some(element) if probe.element_key(element) == key => return Some(true),
                Some(_) => {}
                None => has_null = true,
            }
        }
        (!has_null).then_some(false)
    };
    Ok(Arc::new((0..rows).map(value).collect::<BooleanArray>()))
}

fn null_in(array: &Operand, rows: usize) -> Result<ArrayRef, EvalError> {
    let arrays = Bytes::view(array)?;
    let value = |row| array_at(&arrays, row).filter(|array| array.is_empty()).map(|_| false);
    Ok(Arc::new((0..rows).map(value).collect::<BooleanArray>()))
}

fn scalar_type(value: &Value) -> Result<PgType, EvalError> {
    Ok(match value {
        Value::Bool(_) => Bool,
        Value::Int2(_) => PgType::Int2,
        Value::Int4(_) => Int4,
        Value::Int8(_) => Int8,
        Value::Date(_) => PgType::Date,
        Value::Timestamp(_) => PgType::Timestamp,
        Value::Timestamptz(_) => PgType::Timestamptz,
        Value::Text(_) => PgType::Text,
        Value::Uuid(_) => PgType::Uuid,
        Value::Network(_) => PgType::Inet,
        _ => return Err(wrong_operand()),
    })
}

macro_rules! subscripts {
    ($($element:ident),+) => {
        /// By element: array, subscript → element.
        static SUBSCRIPTS: &[Function] = &[$(
            Function::immutable(
                "subscript",
                &[PgType::Array(Element::$element), Int4],
                PgType::$element,
                |o, rows, _| element_at(o, rows, Element::$element),
                "arrayfuncs.c array_get_element",
            ),
        )+];
    };
}

subscripts!(
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Date,
    Timestamp,
    Timestamptz,
    Uuid,
    Inet,
    Cidr,
    Json,
    Jsonb
);

pub fn subscript(element: Element) -> &'static Function {
    &SUBSCRIPTS[element as usize]
}

/// Value, array → whether an element equals the value.
pub static EQUALS_ANY: Function = Function {
    is_strict: false,
    ..Function::immutable("equals_any", &[TextType, ANY], Bool, equals_any, "execExprInterp.c ExecEvalScalarArrayOp")
};

/// Items, element OID → array.
pub static CONSTRUCT: Function = Function {
    is_strict: false,
    ..Function::immutable("array", &[TextType], ANY, construct, "execExprInterp.c ExecEvalArrayExpr")
};

/// Array, OID of another element type whose values are the same → array of that.
pub static RETYPED: Function =
    Function::immutable("retyped", &[ANY, Int8], ANY, retyped, "execExprInterp.c ExecEvalArrayCoerce");

/// Array, element OID → text.
pub static ARRAY_TEXT: Function = Function {
    volatility: Volatility::Stable,
    ..Function::immutable("array_out", &[ANY, Int8], TextType, output, "arrayfuncs.c array_out")
};

/// Array, separator, text for NULL or none, element OID → text.
pub static TO_STRING: Function = Function {
    is_strict: false,
    volatility: Volatility::Stable,
    ..Function::immutable("array_to_string", &[ANY, TextType, Int8], TextType, to_string, "varlena.c array_to_text")
};

/// Those whose other arguments are integers, and the operators.
pub static FUNCTIONS: &[Function] = &[
    Function::immutable("array_length", &[ANY, Int4], Int4, length, "arrayfuncs.c array_length"),
    Function::immutable("array_upper", &[ANY, Int4], Int4, upper, "arrayfuncs.c array_upper"),
    Function::immutable("array_lower", &[ANY, Int4], Int4, lower, "arrayfuncs.c array_lower"),
    Function::immutable("cardinality", &[ANY], Int4, cardinality, "arrayfuncs.c array_cardinality"),
    Function::immutable("array_ndims", &[ANY], Int4, depth, "arrayfuncs.c array_ndims"),
    Function::immutable("@>", &[ANY, ANY], Bool, contains, "arrayfuncs.c arraycontains"),
    Function::immutable("<@", &[ANY, ANY], Bool, is_contained, "arrayfuncs.c arraycontained"),
    Function::immutable("&&", &[ANY, ANY], Bool, overlaps, "arrayfuncs.c arrayoverlap"),
];
