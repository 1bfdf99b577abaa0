//! [`KeyTable`]: numbers the distinct keys of grouping, DISTINCT, joins and long IN lists: equal keys, one id.
//!
//! Each key column has a map of its own (integers, text, numerics, 128-bit keys) from value to column id; several
//! columns are folded pairwise, id by id. Equality is PostgreSQL's of the type: -0 = 0, NaN = NaN, numerics and
//! intervals by value, bpchar without trailing spaces. Ids count up in order of first appearance.

mod integers;
mod numerics;
mod pairs;
#[cfg(test)]
mod tests;
mod text;
mod wide;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};

use self::integers::IntegerMap;
use self::numerics::NumericMap;
use self::pairs::PairMap;
use self::text::TextMap;
use self::wide::WideMap;
use crate::catalog::functions::EvalError;
use crate::types::PgType;
use crate::types::array::ArrayView;
use crate::types::json::Json;

#[derive(Clone, Debug)]
pub(super) struct KeyTable {
    columns: Vec<KeyColumn>,
    /// `pairs[i]` folds column i + 1 onto the id of the columns before it.
    pairs: Vec<PairMap>,
}

/// What ids are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// NULL is a key like others. Keys are shown, so equal keys that print differently are refused.
    Groups,
    /// Likewise, of keys that nobody sees.
    Same,
    /// NULL equals nothing, not even NULL.
    Matches,
    /// What a DISTINCT aggregate takes in: NULL does not count, equal values that print differently are refused.
    Arguments,
}

impl Purpose {
    /// Whether NULL is a key.
    fn takes_null(self) -> bool {
        matches!(self, Self::Groups | Self::Same)
    }

    /// Whether it matters how a key prints.
    fn shows(self) -> bool {
        matches!(self, Self::Groups | Self::Arguments)
    }
}

#[derive(Clone, Debug)]
struct KeyColumn {
    pg_type: PgType,
    purpose: Purpose,
    map: ColumnMap,
}

#[derive(Clone, Debug)]
enum ColumnMap {
    Integers(IntegerMap),
    Floats(IntegerMap, Zeros),
    Numerics(NumericMap),
    Text(TextMap),
    Wide(WideMap),
}

/// Which zeros a float column has shown.
#[derive(Clone, Copy, Debug, Default)]
struct Zeros {
    positive: bool,
    negative: bool,
}

impl KeyTable {
    /// Not an id: a NULL under [`Purpose::Matches`], or a key that is not in the table.
    pub(super) const NONE: u32 = u32::MAX;

    /// `rows`: about how many will be added; bounds what is allocated for direct addressing.
    pub(super) fn new(types: &[PgType], purpose: Purpose, rows: usize) -> Result<Self, EvalError> {
        Self::with_purposes(types, vec![purpose; types.len()], rows)
    }

    /// Each column with a purpose of its own.
    pub(super) fn with_purposes(types: &[PgType], purposes: Vec<Purpose>, rows: usize) -> Result<Self, EvalError> {
        let column = |(pg_type, purpose): (&PgType, Purpose)| {
            Ok(KeyColumn { pg_type: *pg_type, purpose, map: ColumnMap::new(*pg_type, rows)? })
        };
        let columns = types.iter().zip(purposes).map(column).collect::<Result<Vec<_>, EvalError>>()?;
        let pairs = (1..types.len()).map(|_| PairMap::default()).collect();
        Ok(Self { columns, pairs })
    }

    /// A table of these keys, to find others in.
    pub(super) fn of_keys(types: &[PgType], keys: &[ArrayRef]) -> Result<Self, EvalError> {
        let rows = keys.first().map_or(0, |keys| keys.len());
        let mut table = Self::new(types, Purpose::Matches, rows)?;
        table.assign(keys, rows)?;
        table.settle();
        Ok(table)
    }

    /// All keys are there: from now on they are looked up, until more are added.
    pub(super) fn settle(&mut self) {
        for column in &mut self.columns {
            // Of floats the bits lie too far apart.
            if let ColumnMap::Integers(map) = &mut column.map {
                map.settle();
            }
        }
    }

    /// Without any, every row has the same key.
    pub(super) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Number of ids given so far.
    pub(super) fn len(&self) -> usize {
        match self.pairs.last() {
            Some(pairs) => pairs.len(),
            None => self.columns.first().map_or(0, |column| column.map.len()),
        }
    }

    /// About what the table occupies.
    pub(super) fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.map.bytes()).sum();
        columns + self.pairs.iter().map(PairMap::bytes).sum::<usize>()
    }

    /// The id of each row's key; a new key gets the next id.
    pub(super) fn assign(&mut self, keys: &[ArrayRef], rows: usize) -> Result<Vec<u32>, EvalError> {
        let mut ids: Option<Vec<u32>> = None;
        for (at, (column, array)) in self.columns.iter_mut().zip(keys).enumerate() {
            let own = column.assign(array, column.purpose)?;
            debug_assert_eq!(own.len(), rows, "one id per row");
            ids = Some(match ids {
                None => own,
                Some(before) => self.pairs[at - 1].assign(before, &own),
            });
        }
        if self.len() >= Self::NONE as usize - 1 {
            return Err(EvalError::OverBudget("distinct keys"));
        }
        Ok(ids.unwrap_or_else(|| vec![0; rows]))
    }

    /// The id of each row's key, or [`Self::NONE`].
    pub(super) fn find(&self, keys: &[ArrayRef], rows: usize) -> Result<Vec<u32>, EvalError> {
        let mut ids: Option<Vec<u32>> = None;
        for (at, (column, array)) in self.columns.iter().zip(keys).enumerate() {
            let own = column.find(array)?;
            ids = Some(match ids {
                None => own,
                Some(before) => self.pairs[at - 1].find(before, &own),
            });
        }
        Ok(ids.unwrap_or_else(|| vec![0; rows]))
    }
}

/// Refuses types whose keys cannot be told apart here.
pub(super) fn check(pg_type: PgType) -> Result<(), EvalError> {
    match pg_type {
        PgType::Array(element) if element.is_bytewise() => Ok(()),
        PgType::Json | PgType::Array(_) | PgType::Unknown => Err(unknown(pg_type)),
        _ => Ok(()),
    }
}

fn unknown(pg_type: PgType) -> EvalError {
    EvalError::Beyond(format!("equality of {}", pg_type.name()))
}

/// Rows where an id appears that is the next after `known` ids, in order: the first row of each new key.
pub(super) fn first_rows(ids: &[u32], known: usize, total: usize) -> Vec<u32> {
    let mut rows = Vec::with_capacity(total - known);
    let mut next = known as u32;
    for (row, id) in ids.iter().enumerate() {
        if *id == next {
            rows.push(row as u32);
            next += 1;
            if next as usize == total {
                break;
            }
        }
    }
    rows
}

impl ColumnMap {
    fn new(pg_type: PgType, rows: usize) -> Result<Self, EvalError> {
        Ok(match pg_type {
            PgType::Bool
            | PgType::Int2
            | PgType::Int4
            | PgType::Int8
            | PgType::Date
            | PgType::Time
            | PgType::Timestamp
            | PgType::Timestamptz => Self::Integers(IntegerMap::new(rows)),
            PgType::Float4 | PgType::Float8 => Self::Floats(IntegerMap::new(rows), Zeros::default()),
            PgType::Numeric => Self::Numerics(NumericMap::new(rows)),
            PgType::Text | PgType::Varchar | PgType::Name | PgType::Bpchar | PgType::Enum(_) | PgType::Bytea => {
                Self::Text(TextMap::default())
            }
            PgType::Bit | PgType::Varbit | PgType::Inet | PgType::Cidr | PgType::Jsonb => {
                Self::Text(TextMap::default())
            }
            PgType::Array(element) if element.is_bytewise() => Self::Text(TextMap::default()),
            PgType::Interval | PgType::Uuid => Self::Wide(WideMap::default()),
            PgType::Json | PgType::Array(_) | PgType::Unknown => return Err(unknown(pg_type)),
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Integers(map) | Self::Floats(map, _) => map.len(),
            Self::Numerics(map) => map.len(),
            Self::Text(map) => map.len(),
            Self::Wide(map) => map.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Integers(map) | Self::Floats(map, _) => map.bytes(),
            Self::Numerics(map) => map.bytes(),
            Self::Text(map) => map.bytes(),
            Self::Wide(map) => map.len() * 48,
        }
    }
}

impl KeyColumn {
    fn assign(&mut self, array: &ArrayRef, purpose: Purpose) -> Result<Vec<u32>, EvalError> {
        check_texts(array, self.pg_type)?;
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        match &mut self.map {
            ColumnMap::Integers(map) => match self.pg_type {
                PgType::Bool => Ok(map.assign(&bool_codes(array), nulls, purpose)),
                PgType::Int2 => Ok(map.assign(array.as_primitive::<Int16Type>().values(), nulls, purpose)),
                PgType::Int4 | PgType::Date => {
                    Ok(map.assign(array.as_primitive::<Int32Type>().values(), nulls, purpose))
                }
                _ => Ok(map.assign(array.as_primitive::<Int64Type>().values(), nulls, purpose)),
            },
            ColumnMap::Floats(map, zeros) => {
                let codes = float_codes(array, self.pg_type, zeros);
                if purpose.shows() && zeros.positive && zeros.negative {
                    return Err(EvalError::Beyond("grouping by 0 and -0".to_owned()));
                }
                Ok(map.assign(&codes, nulls, purpose))
            }
            ColumnMap::Numerics(map) => map.assign(array, nulls, purpose),
            ColumnMap::Text(map) => Ok(map.assign(array, self.pg_type, purpose)),
            ColumnMap::Wide(map) => map.assign(array, self.pg_type, nulls, purpose),
        }
    }

    fn find(&self, array: &ArrayRef) -> Result<Vec<u32>, EvalError> {
        check_texts(array, self.pg_type)?;
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(match &self.map {
            ColumnMap::Integers(map) => match array.data_type() {
                // By the array: the two sides of a join may be integers of different widths.
                arrow::datatypes::DataType::Boolean => map.find(&bool_codes(array), nulls),
                arrow::datatypes::DataType::Int16 => map.find(array.as_primitive::<Int16Type>().values(), nulls),
                arrow::datatypes::DataType::Int32 => map.find(array.as_primitive::<Int32Type>().values(), nulls),
                _ => map.find(array.as_primitive::<Int64Type>().values(), nulls),
            },
            ColumnMap::Floats(map, _) => {
                let is_single = *array.data_type() == arrow::datatypes::DataType::Float32;
                let pg_type = if is_single { PgType::Float4 } else { PgType::Float8 };
                map.find(&float_codes(array, pg_type, &mut Zeros::default()), nulls)
            }
            ColumnMap::Numerics(map) => map.find(array, nulls),
            ColumnMap::Text(map) => map.find(array, self.pg_type),
            ColumnMap::Wide(map) => map.find(array, self.pg_type, nulls),
        })
    }
}

/// jsonb is told apart by its text, which numbers of another scale make another one.
fn check_texts(array: &ArrayRef, pg_type: PgType) -> Result<(), EvalError> {
    if let PgType::Array(_) = pg_type {
        // A slice says that it may have NULLs where the array has some, and its bytes are others for that.
        let is_told_apart = |bytes: &[u8]| {
            ArrayView::of(bytes).has_bitmap() && ArrayView::of(bytes).elements().all(|item| item.is_some())
        };
        let arrays = array.as_binary_opt::<i32>();
        return match arrays.is_some_and(|arrays| arrays.iter().flatten().any(is_told_apart)) {
            true => Err(EvalError::Beyond("equality of slices of arrays with NULLs".to_owned())),
            false => Ok(()),
        };
    }
    if pg_type != PgType::Jsonb {
        return Ok(());
    }
    let dictionary = array.as_dictionary_opt::<Int32Type>();
    let texts = dictionary.map_or_else(|| array.as_string::<i32>(), |dictionary| dictionary.values().as_string());
    match texts.iter().flatten().all(|text| Json::of(text).is_plain()) {
        true => Ok(()),
        false => Err(EvalError::Beyond("equality of jsonb with numbers that end in 0".to_owned())),
    }
}

fn bool_codes(array: &ArrayRef) -> Vec<i16> {
    array.as_boolean().values().iter().map(i16::from).collect()
}

/// Bit patterns that are equal where the floats are (PostgreSQL: float.h float8_eq, hashfunc.c hashfloat8).
fn float_codes(array: &ArrayRef, pg_type: PgType, zeros: &mut Zeros) -> Vec<i64> {
    let mut code = |value: f64| {
        if value == 0.0 {
            if value.is_sign_negative() {
                zeros.negative = true;
            } else {
                zeros.positive = true;
            }
            return 0;
        }
        let canonical = if value.is_nan() { f64::NAN } else { value };
        canonical.to_bits().cast_signed()
    };
    match pg_type {
        PgType::Float4 => {
            // A NULL's slot holds 0; it must not count as a zero that was seen.
            let array = array.as_primitive::<Float32Type>();
            array.iter().map(|value| value.map_or(0, |value| code(f64::from(value)))).collect()
        }
        _ => array.as_primitive::<Float64Type>().iter().map(|value| value.map_or(0, &mut code)).collect(),
    }
}
