//! Columns of numerics: the three array forms behind one view ([`NumericColumn`]) and one builder ([`NumericBuilder`]).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal64Array, Decimal128Array, Int16Array, NullBufferBuilder, StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Field, Fields, Int16Type};

use super::MANTISSA_LIMIT;
use super::arithmetic::precision_and_scale;
use crate::types::Numeric;

/// Digits of a mantissa in Decimal64, and its largest scale.
pub const FIXED64_DIGITS: u8 = 18;
/// Digits of a mantissa in Decimal128, and its largest scale.
pub const FIXED128_DIGITS: u8 = 38;
const FIXED64_LIMIT: i128 = super::POWERS_OF_TEN[FIXED64_DIGITS as usize];

/// Scales that stand for special values in the scale-per-value form (the mantissa is 0 then).
const CODE_NAN: i16 = -1;
const CODE_POSITIVE_INFINITY: i16 = -2;
const CODE_NEGATIVE_INFINITY: i16 = -3;

/// The values of a numeric array in its form; NULLs are in `Array::nulls` of the array itself.
#[derive(Clone, Copy, Debug)]
pub enum NumericColumn<'a> {
    /// Every value has display scale `scale`.
    Fixed64 {
        mantissas: &'a [i64],
        scale: u16,
    },
    Fixed128 {
        mantissas: &'a [i128],
        scale: u16,
    },
    /// A negative scale codes NaN or an infinity; see [`NumericColumn::get`].
    PerValue {
        mantissas: &'a [i128],
        scales: &'a [i16],
    },
}

impl<'a> NumericColumn<'a> {
    /// Panics if `array` has none of the three forms.
    pub fn of(array: &'a dyn Array) -> Self {
        match array.data_type() {
            DataType::Decimal64(_, scale) => Self::Fixed64 {
                mantissas: array.as_primitive::<Decimal64Type>().values(),
                scale: u16::from(scale.unsigned_abs()),
            },
            DataType::Decimal128(_, scale) => Self::Fixed128 {
                mantissas: array.as_primitive::<Decimal128Type>().values(),
                scale: u16::from(scale.unsigned_abs()),
            },
            _ => {
                let columns = array.as_struct();
                Self::PerValue {
                    mantissas: columns.column(0).as_primitive::<Decimal128Type>().values(),
                    scales: columns.column(1).as_primitive::<Int16Type>().values(),
                }
            }
        }
    }

    pub fn fixed_scale(self) -> Option<u16> {
        match self {
            Self::Fixed64 { scale, .. } | Self::Fixed128 { scale, .. } => Some(scale),
            Self::PerValue { .. } => None,
        }
    }

    /// The value at `row`; whatever is stored there if it is NULL.
    #[inline]
    pub fn get(self, row: usize) -> Numeric {
        match self {
            Self::Fixed64 { mantissas, scale } => Numeric::Finite { mantissa: i128::from(mantissas[row]), scale },
            Self::Fixed128 { mantissas, scale } => Numeric::Finite { mantissa: mantissas[row], scale },
            Self::PerValue { mantissas, scales } => match scales[row] {
                CODE_NAN => Numeric::NaN,
                CODE_POSITIVE_INFINITY => Numeric::PositiveInfinity,
                CODE_NEGATIVE_INFINITY => Numeric::NegativeInfinity,
                scale => Numeric::Finite { mantissa: mantissas[row], scale: scale.unsigned_abs() },
            },
        }
    }
}

/// The value at `row` of a numeric array in any form; None: NULL. In a loop over rows use [`NumericColumn`].
pub fn numeric_at(array: &dyn Array, row: usize) -> Option<Numeric> {
    if array.is_null(row) {
        return None;
    }
    Some(NumericColumn::of(array).get(row))
}

/// The display scale that all values of a numeric array have, if its form fixes one.
pub fn fixed_scale(array: &dyn Array) -> Option<u16> {
    NumericColumn::of(array).fixed_scale()
}

/// The array type of the scale-per-value form.
pub fn per_value_type() -> DataType {
    DataType::Struct(per_value_fields())
}

fn per_value_fields() -> Fields {
    // NULL is the struct's own bit; the children have none.
    Fields::from(vec![
        Field::new("mantissa", DataType::Decimal128(FIXED128_DIGITS, 0), false),
        Field::new("scale", DataType::Int16, false),
    ])
}

/// An array of the form Decimal64; mantissas below 10^18, `scale` at most 18.
pub fn fixed64_array(mantissas: Vec<i64>, nulls: Option<NullBuffer>, scale: u16) -> ArrayRef {
    let form = DataType::Decimal64(FIXED64_DIGITS, arrow_scale(scale));
    Arc::new(Decimal64Array::new(mantissas.into(), nulls).with_data_type(form))
}

/// An array of the form Decimal128; mantissas below 10^38, `scale` at most 38.
pub fn fixed128_array(mantissas: Vec<i128>, nulls: Option<NullBuffer>, scale: u16) -> ArrayRef {
    let form = DataType::Decimal128(FIXED128_DIGITS, arrow_scale(scale));
    Arc::new(Decimal128Array::new(mantissas.into(), nulls).with_data_type(form))
}

fn arrow_scale(scale: u16) -> i8 {
    i8::try_from(scale).expect("a fixed scale is at most FIXED128_DIGITS")
}

fn per_value_array(mantissas: Vec<i128>, scales: Vec<i16>, nulls: Option<NullBuffer>) -> ArrayRef {
    let mantissas = fixed128_array(mantissas, None, 0);
    let scales: ArrayRef = Arc::new(Int16Array::new(scales.into(), None));
    Arc::new(StructArray::new(per_value_fields(), vec![mantissas, scales], nulls))
}

/// Collects numerics into the tightest form that holds them: starts as 64-bit mantissas at one scale and widens
/// when a value needs it.
#[derive(Debug)]
pub struct NumericBuilder {
    values: Values,
    nulls: NullBufferBuilder,
}

#[derive(Debug)]
enum Values {
    /// `scale` is None as long as there are only NULLs.
    Fixed64 {
        mantissas: Vec<i64>,
        scale: Option<u16>,
    },
    Fixed128 {
        mantissas: Vec<i128>,
        scale: u16,
    },
    PerValue {
        mantissas: Vec<i128>,
        scales: Vec<i16>,
    },
}

impl NumericBuilder {
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            values: Values::Fixed64 { mantissas: Vec::with_capacity(rows), scale: None },
            nulls: NullBufferBuilder::new(rows),
        }
    }

    /// For a column declared numeric(p,s): starts in the form that holds every value of that type, so that all
    /// chunks of a column have one form.
    pub fn for_typmod(typmod: i32, rows: usize) -> Self {
        let mut builder = Self::with_capacity(rows);
        let Some((precision, scale)) = precision_and_scale(typmod) else { return builder };
        let digits = precision.max(precision - scale);
        let Ok(scale) = u16::try_from(scale.max(0)) else { return builder };
        if digits <= i32::from(FIXED64_DIGITS) && scale <= u16::from(FIXED64_DIGITS) {
            builder.values = Values::Fixed64 { mantissas: Vec::with_capacity(rows), scale: Some(scale) };
        } else if scale <= u16::from(FIXED128_DIGITS) {
            builder.values = Values::Fixed128 { mantissas: Vec::with_capacity(rows), scale };
        }
        builder
    }

    pub fn append_null(&mut self) {
        self.nulls.append_null();
        match &mut self.values {
            Values::Fixed64 { mantissas, .. } => mantissas.push(0),
            Values::Fixed128 { mantissas, .. } => mantissas.push(0),
            Values::PerValue { mantissas, scales } => {
                mantissas.push(0);
                scales.push(0);
            }
        }
    }

    pub fn append_option(&mut self, value: Option<Numeric>) {
        match value {
            Some(value) => self.append(value),
            None => self.append_null(),
        }
    }

    #[inline]
    pub fn append(&mut self, value: Numeric) {
        self.nulls.append_non_null();
        if let Numeric::Finite { mantissa, scale } = value {
            match &mut self.values {
                Values::Fixed64 { mantissas, scale: Some(fixed) }
                    if *fixed == scale && mantissa.abs() < FIXED64_LIMIT =>
                {
                    return mantissas.push(mantissa as i64);
                }
                Values::Fixed128 { mantissas, scale: fixed } if *fixed == scale => return mantissas.push(mantissa),
                Values::Fixed64 { .. } | Values::Fixed128 { .. } | Values::PerValue { .. } => {}
            }
        }
        self.append_other(value);
    }

    /// The first value, a value that does not fit the present form, or any value of the form per value.
    fn append_other(&mut self, value: Numeric) {
        if let Numeric::Finite { mantissa, scale } = value {
            debug_assert!(mantissa.abs() < MANTISSA_LIMIT, "Numeric::new bounds mantissas");
            match &mut self.values {
                Values::Fixed64 { mantissas, scale: fixed }
                    if fixed.is_none_or(|fixed| fixed == scale) && scale <= u16::from(FIXED128_DIGITS) =>
                {
                    if mantissa.abs() < FIXED64_LIMIT && scale <= u16::from(FIXED64_DIGITS) {
                        *fixed = Some(scale);
                        return mantissas.push(mantissa as i64);
                    }
                    let mut wide = Vec::with_capacity(mantissas.capacity());
                    wide.extend(mantissas.iter().map(|&mantissa| i128::from(mantissa)));
                    wide.push(mantissa);
                    self.values = Values::Fixed128 { mantissas: wide, scale };
                    return;
                }
                Values::Fixed64 { .. } | Values::Fixed128 { .. } | Values::PerValue { .. } => {}
            }
        }
        let (mantissas, scales) = self.per_value();
        let (mantissa, scale) = match value {
            Numeric::Finite { mantissa, scale } => (mantissa, scale.cast_signed()),
            Numeric::NaN => (0, CODE_NAN),
            Numeric::PositiveInfinity => (0, CODE_POSITIVE_INFINITY),
            Numeric::NegativeInfinity => (0, CODE_NEGATIVE_INFINITY),
        };
        mantissas.push(mantissa);
        scales.push(scale);
    }

    /// The values in the form per value, after changing to it if need be.
    fn per_value(&mut self) -> (&mut Vec<i128>, &mut Vec<i16>) {
        let (wide, fixed) = match &mut self.values {
            Values::Fixed64 { mantissas, scale } => {
                (mantissas.iter().map(|&mantissa| i128::from(mantissa)).collect(), scale.unwrap_or(0))
            }
            Values::Fixed128 { mantissas, scale } => (std::mem::take(mantissas), *scale),
            Values::PerValue { .. } => (Vec::new(), 0),
        };
        if !matches!(self.values, Values::PerValue { .. }) {
            let scales = vec![fixed.cast_signed(); wide.len()];
            self.values = Values::PerValue { mantissas: wide, scales };
        }
        match &mut self.values {
            Values::PerValue { mantissas, scales } => (mantissas, scales),
            Values::Fixed64 { .. } | Values::Fixed128 { .. } => unreachable!("changed to the form per value above"),
        }
    }

    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn finish(mut self) -> ArrayRef {
        let nulls = self.nulls.finish();
        match self.values {
            Values::Fixed64 { mantissas, scale } => fixed64_array(mantissas, nulls, scale.unwrap_or(0)),
            Values::Fixed128 { mantissas, scale } => fixed128_array(mantissas, nulls, scale),
            Values::PerValue { mantissas, scales } => per_value_array(mantissas, scales, nulls),
        }
    }
}

impl FromIterator<Option<Numeric>> for NumericBuilder {
    fn from_iter<I: IntoIterator<Item = Option<Numeric>>>(values: I) -> Self {
        let values = values.into_iter();
        let mut builder = Self::with_capacity(values.size_hint().0);
        values.for_each(|value| builder.append_option(value));
        builder
    }
}
