//! Columns of numerics: the four array forms behind one view ([`NumericColumn`]) and one builder ([`NumericBuilder`]).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal64Array, Decimal128Array, Decimal256Array, Int16Array, NullBufferBuilder,
    StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Decimal256Type, Field, Fields, Int16Type, i256};

use super::MANTISSA_LIMIT;
use super::arithmetic::precision_and_scale;
use super::wide::WIDE_DIGITS_MAX;
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
    /// As `PerValue`, with values of more digits among them.
    Wide {
        mantissas: &'a [i256],
        scales: &'a [i16],
    },
}

impl<'a> NumericColumn<'a> {
    /// Panics if `array` has none of the four forms.
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
                let (mantissas, scales) = (columns.column(0), columns.column(1).as_primitive::<Int16Type>().values());
                match mantissas.data_type() {
                    DataType::Decimal256(..) => {
                        Self::Wide { mantissas: mantissas.as_primitive::<Decimal256Type>().values(), scales }
                    }
                    _ => Self::PerValue { mantissas: mantissas.as_primitive::<Decimal128Type>().values(), scales },
                }
            }
        }
    }

    pub fn fixed_scale(self) -> Option<u16> {
        match self {
            Self::Fixed64 { scale, .. } | Self::Fixed128 { scale, .. } => Some(scale),
            Self::PerValue { .. } | Self::Wide { .. } => None,
        }
    }

    /// The value at `row`; whatever is stored there if it is NULL.
    #[inline]
    pub fn get(self, row: usize) -> Numeric {
        match self {
            Self::Fixed64 { mantissas, scale } => Numeric::Finite { mantissa: i128::from(mantissas[row]), scale },
            Self::Fixed128 { mantissas, scale } => Numeric::Finite { mantissa: mantissas[row], scale },
            Self::PerValue { mantissas, scales } => match scales[row] {
                scale @ ..0 => special(scale),
                scale => Numeric::Finite { mantissa: mantissas[row], scale: scale.unsigned_abs() },
            },
            Self::Wide { mantissas, scales } => match scales[row] {
                scale @ ..0 => special(scale),
                // What was appended had one of the two forms.
                scale => Numeric::from_wide(mantissas[row], scale.unsigned_abs()).unwrap_or(Numeric::NaN),
            },
        }
    }
}

fn special(code: i16) -> Numeric {
    match code {
        CODE_POSITIVE_INFINITY => Numeric::PositiveInfinity,
        CODE_NEGATIVE_INFINITY => Numeric::NegativeInfinity,
        _ => Numeric::NaN,
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

/// The array types of the forms with a scale per value, the second with mantissas of 256 bits.
pub fn per_value_types() -> [DataType; 2] {
    [MANTISSA128, MANTISSA256].map(|mantissa| DataType::Struct(per_value_fields(mantissa)))
}

const MANTISSA128: DataType = DataType::Decimal128(FIXED128_DIGITS, 0);
const MANTISSA256: DataType = DataType::Decimal256(WIDE_DIGITS_MAX as u8, 0);

fn per_value_fields(mantissa: DataType) -> Fields {
    // NULL is the struct's own bit; the children have none.
    Fields::from(vec![Field::new("mantissa", mantissa, false), Field::new("scale", DataType::Int16, false)])
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
    Arc::new(StructArray::new(per_value_fields(MANTISSA128), vec![mantissas, scales], nulls))
}

fn wide_array(mantissas: Vec<i256>, scales: Vec<i16>, nulls: Option<NullBuffer>) -> ArrayRef {
    let mantissas: ArrayRef = Arc::new(Decimal256Array::new(mantissas.into(), None).with_data_type(MANTISSA256));
    let scales: ArrayRef = Arc::new(Int16Array::new(scales.into(), None));
    Arc::new(StructArray::new(per_value_fields(MANTISSA256), vec![mantissas, scales], nulls))
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
    Wide {
        mantissas: Vec<i256>,
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
            Values::Wide { mantissas, scales } => {
                mantissas.push(i256::ZERO);
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
                Values::Fixed64 { .. } | Values::Fixed128 { .. } | Values::PerValue { .. } | Values::Wide { .. } => {}
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
                Values::Fixed64 { .. } | Values::Fixed128 { .. } | Values::PerValue { .. } | Values::Wide { .. } => {}
            }
        }
        if value.is_wide() || matches!(self.values, Values::Wide { .. }) {
            return self.append_wide(value);
        }
        let (mantissas, scales) = self.per_value();
        let (mantissa, scale) = match value {
            Numeric::Finite { mantissa, scale } => (mantissa, scale.cast_signed()),
            Numeric::Wide { .. } => unreachable!("appended above"),
            Numeric::NaN => (0, CODE_NAN),
            Numeric::PositiveInfinity => (0, CODE_POSITIVE_INFINITY),
            Numeric::NegativeInfinity => (0, CODE_NEGATIVE_INFINITY),
        };
        mantissas.push(mantissa);
        scales.push(scale);
    }

    /// In the form with mantissas of 256 bits, after changing to it if need be.
    fn append_wide(&mut self, value: Numeric) {
        if !matches!(self.values, Values::Wide { .. }) {
            let (mantissas, scales) = self.per_value();
            let mantissas = mantissas.iter().map(|&mantissa| i256::from_i128(mantissa)).collect();
            self.values = Values::Wide { mantissas, scales: std::mem::take(scales) };
        }
        let Values::Wide { mantissas, scales } = &mut self.values else { unreachable!("changed above") };
        let (mantissa, scale) = match value.parts() {
            Some((mantissa, scale)) => (mantissa, scale.cast_signed()),
            None if value.is_nan() => (i256::ZERO, CODE_NAN),
            None if value.signum() > 0 => (i256::ZERO, CODE_POSITIVE_INFINITY),
            None => (i256::ZERO, CODE_NEGATIVE_INFINITY),
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
            Values::PerValue { .. } | Values::Wide { .. } => (Vec::new(), 0),
        };
        if matches!(self.values, Values::Fixed64 { .. } | Values::Fixed128 { .. }) {
            let scales = vec![fixed.cast_signed(); wide.len()];
            self.values = Values::PerValue { mantissas: wide, scales };
        }
        match &mut self.values {
            Values::PerValue { mantissas, scales } => (mantissas, scales),
            Values::Fixed64 { .. } | Values::Fixed128 { .. } | Values::Wide { .. } => {
                unreachable!("changed to the form per value above")
            }
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
            Values::Wide { mantissas, scales } => wide_array(mantissas, scales, nulls),
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
