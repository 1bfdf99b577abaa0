//! Ids for numerics: mantissas as integers while all values share one scale, else by value.

use std::collections::HashMap;

use ahash::RandomState;
use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;

use super::integers::IntegerMap;
use super::{KeyTable, Purpose};
use crate::catalog::functions::EvalError;
use crate::types::Numeric;
use crate::types::numeric::{NumericColumn, POWERS_OF_TEN};

#[derive(Clone, Debug)]
pub(super) enum NumericMap {
    /// 64-bit mantissas at `scale`, None before the first batch.
    OneScale {
        mantissas: IntegerMap,
        scale: Option<u16>,
    },
    ByValue(ValueMap),
}

#[derive(Clone, Debug, Default)]
pub(super) struct ValueMap {
    ids: HashMap<Key, u32, RandomState>,
    /// By id: the value met first. NULL's entry is never looked at.
    shown: Vec<Numeric>,
    null: Option<u32>,
}

/// Of a normalized value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    mantissa: i128,
    /// What 128 bits do not hold of it.
    high: i128,
    /// Beyond [`u16`] for what is not finite, or has other digits.
    scale: u32,
}

impl Key {
    fn of(value: Numeric) -> Self {
        match value.normalized() {
            Numeric::Finite { mantissa, scale } => Self { mantissa, high: 0, scale: u32::from(scale) },
            Numeric::Wide { mantissa, scale } => {
                let (low, high) = mantissa.to_parts();
                Self { mantissa: low.cast_signed(), high, scale: u32::from(scale) + (1 << 17) }
            }
            Numeric::NaN => Self { mantissa: 0, high: 0, scale: 1 << 16 },
            Numeric::PositiveInfinity => Self { mantissa: 1, high: 0, scale: 1 << 16 },
            Numeric::NegativeInfinity => Self { mantissa: -1, high: 0, scale: 1 << 16 },
        }
    }
}

impl NumericMap {
    pub(super) fn new(rows: usize) -> Self {
        Self::OneScale { mantissas: IntegerMap::new(rows), scale: None }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::OneScale { mantissas, .. } => mantissas.len(),
            Self::ByValue(map) => map.shown.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::OneScale { mantissas, .. } => mantissas.bytes(),
            Self::ByValue(map) => map.shown.len() * 160,
        }
    }

    pub(super) fn assign(
        &mut self,
        array: &ArrayRef,
        nulls: Option<&NullBuffer>,
        purpose: Purpose,
    ) -> Result<Vec<u32>, EvalError> {
        let column = NumericColumn::of(array);
        if let (Self::OneScale { mantissas, scale }, NumericColumn::Fixed64 { mantissas: values, scale: own }) =
            (&mut *self, column)
            && scale.is_none_or(|scale| scale == own)
        {
            *scale = Some(own);
            return Ok(mantissas.assign(values, nulls, purpose));
        }
        let map = self.by_value();
        let mut ids = Vec::with_capacity(array.len());
        for row in 0..array.len() {
            let value = (!nulls.is_some_and(|nulls| nulls.is_null(row))).then(|| column.get(row));
            ids.push(map.id_of(value, purpose)?);
        }
        Ok(ids)
    }

    fn by_value(&mut self) -> &mut ValueMap {
        if let Self::OneScale { mantissas, scale } = self {
            let (entries, null) = mantissas.entries();
            let mut map = ValueMap { shown: vec![Numeric::ZERO; mantissas.len()], null, ..ValueMap::default() };
            for (mantissa, id) in entries {
                let value = Numeric::Finite { mantissa: i128::from(mantissa), scale: scale.unwrap_or(0) };
                map.ids.insert(Key::of(value), id);
                map.shown[id as usize] = value;
            }
            *self = Self::ByValue(map);
        }
        match self {
            Self::ByValue(map) => map,
            Self::OneScale { .. } => unreachable!("changed above"),
        }
    }

    pub(super) fn find(&self, array: &ArrayRef, nulls: Option<&NullBuffer>) -> Vec<u32> {
        let column = NumericColumn::of(array);
        if let (
            Self::OneScale { mantissas, scale: Some(scale) },
            NumericColumn::Fixed64 { mantissas: values, scale: own },
        ) = (self, column)
            && *scale == own
        {
            return mantissas.find(values, nulls);
        }
        let null = self.null().unwrap_or(KeyTable::NONE);
        let find = |row: usize| match nulls {
            Some(nulls) if nulls.is_null(row) => null,
            _ => self.find_one(column.get(row)),
        };
        (0..array.len()).map(find).collect()
    }

    /// The id of NULL, where it is a key that has been met.
    fn null(&self) -> Option<u32> {
        match self {
            Self::OneScale { mantissas, .. } => mantissas.null(),
            Self::ByValue(map) => map.null,
        }
    }

    fn find_one(&self, value: Numeric) -> u32 {
        match self {
            Self::ByValue(map) => map.ids.get(&Key::of(value)).copied().unwrap_or(KeyTable::NONE),
            Self::OneScale { mantissas, scale } => {
                let Numeric::Finite { mantissa, scale: own } = value.normalized() else { return KeyTable::NONE };
                let digits = scale.and_then(|scale| scale.checked_sub(own));
                let factor = digits.and_then(|digits| POWERS_OF_TEN.get(usize::from(digits)));
                let at_scale = factor.and_then(|factor| mantissa.checked_mul(*factor));
                let key = at_scale.and_then(|mantissa| i64::try_from(mantissa).ok());
                key.map_or(KeyTable::NONE, |key| mantissas.find_one(key))
            }
        }
    }
}

impl ValueMap {
    fn id_of(&mut self, value: Option<Numeric>, purpose: Purpose) -> Result<u32, EvalError> {
        let next = self.shown.len() as u32;
        let Some(value) = value else {
            if !purpose.takes_null() {
                return Ok(KeyTable::NONE);
            }
            if self.null.is_none() {
                self.null = Some(next);
                self.shown.push(Numeric::ZERO);
            }
            return Ok(self.null.unwrap_or(next));
        };
        let id = *self.ids.entry(Key::of(value)).or_insert(next);
        if id == next {
            self.shown.push(value);
        } else if purpose.shows() && self.shown[id as usize] != value {
            // 1.0 and 1.00 are one group; which of them PostgreSQL shows depends on its plan.
            return Err(EvalError::Beyond("grouping by equal numerics that print differently".to_owned()));
        }
        Ok(id)
    }
}
