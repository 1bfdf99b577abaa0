//! Row order as small integers: each sort key becomes codes whose unsigned order is the asked one, keys are packed
//! side by side into one machine word where they fit, and the words are sorted.
//!
//! Orders are PostgreSQL's: NaN greatest, -0 = 0, numerics and intervals by value, bpchar without trailing spaces,
//! text by bytes (the binder lets no other collation through). NULLS FIRST or LAST as asked.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType};

use crate::catalog::functions::EvalError;
use crate::planted::{Bug, is_planted};
use crate::types::access::{TextColumn, interval_of};
use crate::types::array::{ArrayView, compare};
use crate::types::numeric::NumericColumn;
use crate::types::{Interval, PgType};

/// How a sort key orders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// One code per row; all are below 2^`bits`.
#[derive(Debug)]
pub(super) struct Codes {
    codes: Vec<u64>,
    bits: u32,
}

impl Codes {
    pub(super) fn are_equal(&self, row: usize, other: usize) -> bool {
        self.codes[row] == self.codes[other]
    }
}

/// Codes of one sort key over all rows.
pub(super) fn codes(array: &ArrayRef, pg_type: PgType, direction: Direction) -> Result<Codes, EvalError> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let ascending = match absolute(array, pg_type)? {
        Some(values) => values,
        None => ranks(array, pg_type)?,
    };
    Ok(relative(ascending, nulls, direction))
}

/// Row numbers in the order of the keys, the first one leading; rows that are equal stay in order.
pub(super) fn sorted_rows(mut keys: Vec<Codes>, rows: usize) -> Vec<u32> {
    let row_bits = bits_for(rows.saturating_sub(1) as u64);
    // A key that is the same everywhere; besides, what is left shifts by less than a word.
    keys.retain(|key| key.bits > 0);
    // Rows stay in order among equals, so a last key that follows it anyway (a serial column) decides nothing.
    while keys.last().is_some_and(|key| key.codes.is_sorted()) {
        keys.pop();
    }
    // Keys that together exceed the widest word: the trailing ones are replaced by their joint rank.
    while keys.iter().map(|key| key.bits).sum::<u32>() > u128::BITS && keys.len() > 1 {
        let last = keys.pop().expect("more than one");
        let before = keys.pop().expect("more than one");
        keys.push(joint_rank(&before, &last, rows));
    }
    let key_bits: u32 = keys.iter().map(|key| key.bits).sum();
    if key_bits + row_bits <= u64::BITS {
        return sort_packed(&keys, rows, key_bits, row_bits);
    }
    if key_bits <= u64::BITS {
        let mut words: Vec<(u64, u32)> = pack::<u64>(&keys, rows).into_iter().zip(0..).collect();
        words.sort_unstable();
        return words.into_iter().map(|(_, row)| row).collect();
    }
    let mut words: Vec<(u128, u32)> = pack::<u128>(&keys, rows).into_iter().zip(0..).collect();
    words.sort_unstable();
    words.into_iter().map(|(_, row)| row).collect()
}

/// Keys and row number in one word.
fn sort_packed(keys: &[Codes], rows: usize, key_bits: u32, row_bits: u32) -> Vec<u32> {
    let mut words = pack::<u64>(keys, rows);
    if row_bits > 0 {
        for (row, word) in words.iter_mut().enumerate() {
            *word = *word << row_bits | row as u64;
        }
    }
    if !words.is_sorted() {
        if rows < RADIX_ROWS_MIN {
            words.sort_unstable();
        } else {
            radix_sort(&mut words, row_bits, row_bits + key_bits);
        }
    }
    let mask = (1u64 << row_bits) - 1;
    words.into_iter().map(|word| (word & mask) as u32).collect()
}

/// Below, comparing is faster than counting digits.
const RADIX_ROWS_MIN: usize = 1_024;
const DIGIT_BITS: u32 = 11;

/// Sorts by the bits from `low` to `high`, least significant digit first; stable.
fn radix_sort(words: &mut Vec<u64>, low: u32, high: u32) {
    let mut other = vec![0u64; words.len()];
    let digits = (high - low).div_ceil(DIGIT_BITS).max(1);
    let width = (high - low).div_ceil(digits);
    let mut shift = low;
    while shift < high {
        let bits = width.min(high - shift);
        let mask = (1u64 << bits) - 1;
        let mut starts = vec![0u32; (1 << bits) + 1];
        for word in words.iter() {
            starts[(word >> shift & mask) as usize + 1] += 1;
        }
        for digit in 0..1 << bits {
            starts[digit + 1] += starts[digit];
        }
        for word in words.iter() {
            let place = &mut starts[(word >> shift & mask) as usize];
            other[*place as usize] = *word;
            *place += 1;
        }
        std::mem::swap(words, &mut other);
        shift += bits;
    }
}

trait Word: Copy + Default + std::ops::Shl<u32, Output = Self> + std::ops::BitOr<Output = Self> + From<u64> {}
impl Word for u64 {}
impl Word for u128 {}

fn pack<W: Word>(keys: &[Codes], rows: usize) -> Vec<W> {
    let Some((first, rest)) = keys.split_first() else { return vec![W::default(); rows] };
    let mut words: Vec<W> = first.codes.iter().map(|code| W::from(*code)).collect();
    for key in rest {
        // Every key has a bit at least, so one of 64 bits is alone or in a wider word.
        for (word, code) in words.iter_mut().zip(&key.codes) {
            *word = *word << key.bits | W::from(*code);
        }
    }
    words
}

fn joint_rank(first: &Codes, second: &Codes, rows: usize) -> Codes {
    let mut words: Vec<((u64, u64), u32)> =
        first.codes.iter().copied().zip(second.codes.iter().copied()).zip(0..).collect();
    words.sort_unstable();
    let mut ranks = vec![0; rows];
    let mut rank = 0;
    for at in 0..words.len() {
        if at > 0 && words[at].0 != words[at - 1].0 {
            rank += 1;
        }
        ranks[words[at].1 as usize] = rank;
    }
    Codes { codes: ranks, bits: bits_for(rank) }
}

fn bits_for(largest: u64) -> u32 {
    u64::BITS - largest.leading_zeros()
}

/// Shifts codes down to start at 0, turns them round for DESC and finds a place for NULL.
fn relative(mut values: Vec<u64>, nulls: Option<&NullBuffer>, direction: Direction) -> Codes {
    let range = match nulls {
        None => values.iter().fold(None, widen),
        Some(nulls) => nulls.valid_indices().map(|row| &values[row]).fold(None, widen),
    };
    let Some((min, max)) = range else {
        values.fill(0);
        return Codes { codes: values, bits: 0 };
    };
    if direction.descending {
        values.iter_mut().for_each(|value| *value = max.wrapping_sub(*value));
    } else {
        values.iter_mut().for_each(|value| *value = value.wrapping_sub(min));
    }
    let Some(nulls) = nulls else { return Codes { codes: values, bits: bits_for(max - min) } };
    if max - min == u64::MAX {
        // No code is left for NULL: halve nothing, rank instead.
        let ranked = rank_by(values.len(), &|a, b| values[a].cmp(&values[b]));
        return relative(ranked, Some(nulls), Direction { descending: false, ..direction });
    }
    let (offset, null) = if direction.nulls_first && !is_planted(Bug::NullsLast) { (1, 0) } else { (0, max - min + 1) };
    for (row, value) in values.iter_mut().enumerate() {
        *value = if nulls.is_valid(row) { value.wrapping_add(offset) } else { null };
    }
    Codes { codes: values, bits: bits_for(max - min + 1) }
}

fn widen(range: Option<(u64, u64)>, value: &u64) -> Option<(u64, u64)> {
    Some(range.map_or((*value, *value), |(min, max)| (min.min(*value), max.max(*value))))
}

/// Codes that are comparable between batches, for types that fit 64 bits; what stands at a NULL means nothing.
pub(super) fn absolute(array: &ArrayRef, pg_type: PgType) -> Result<Option<Vec<u64>>, EvalError> {
    Ok(Some(match pg_type {
        PgType::Bool => array.as_boolean().values().iter().map(u64::from).collect(),
        PgType::Int2 => all_signed(array.as_primitive::<Int16Type>().values()),
        PgType::Int4 | PgType::Date => all_signed(array.as_primitive::<Int32Type>().values()),
        PgType::Int8 | PgType::Time | PgType::Timestamp | PgType::Timestamptz => {
            all_signed(array.as_primitive::<Int64Type>().values())
        }
        PgType::Float4 => {
            array.as_primitive::<Float32Type>().values().iter().map(|value| float_code(f64::from(*value))).collect()
        }
        PgType::Float8 => array.as_primitive::<Float64Type>().values().iter().map(|value| float_code(*value)).collect(),
        PgType::Numeric => match NumericColumn::of(array) {
            NumericColumn::Fixed64 { mantissas, .. } => all_signed(mantissas),
            NumericColumn::Fixed128 { .. } | NumericColumn::PerValue { .. } | NumericColumn::Wide { .. } => {
                return Ok(None);
            }
        },
        PgType::Text
        | PgType::Varchar
        | PgType::Bpchar
        | PgType::Name
        | PgType::Bit
        | PgType::Varbit
        | PgType::Interval
        | PgType::Uuid
        | PgType::Array(_)
        | PgType::Inet
        | PgType::Cidr
        | PgType::Bytea => return Ok(None),
        // An enum's labels are sorted by their places.
        PgType::Json | PgType::Jsonb | PgType::Enum(_) | PgType::Unknown => {
            return Err(unknown(pg_type));
        }
    }))
}

/// Turns codes round for DESC and puts NULLs at their end; a value may share the extreme code with NULL.
pub(super) fn directed(mut codes: Vec<u64>, values: &dyn Array, key: Direction) -> Vec<u64> {
    if key.descending {
        codes.iter_mut().for_each(|code| *code = !*code);
    }
    if let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0) {
        let null = if key.nulls_first { 0 } else { u64::MAX };
        codes.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, code)| *code = null);
    }
    codes
}

/// Refuses types whose order is not known here.
pub(super) fn check(pg_type: PgType) -> Result<(), EvalError> {
    match pg_type {
        PgType::Json | PgType::Jsonb | PgType::Enum(_) | PgType::Unknown => Err(unknown(pg_type)),
        _ => Ok(()),
    }
}

fn unknown(pg_type: PgType) -> EvalError {
    EvalError::Beyond(format!("order of {}", pg_type.name()))
}

fn all_signed<T: Copy + Into<i64>>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| signed((*value).into())).collect()
}

pub(super) fn signed(value: i64) -> u64 {
    value.cast_unsigned() ^ (1 << 63)
}

fn float_code(value: f64) -> u64 {
    let canonical = if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f64::NAN
    } else {
        value
    };
    let bits = canonical.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// PostgreSQL's float8_cmp_internal.
pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    float_code(a).cmp(&float_code(b))
}

/// Position among the distinct values, for types of any width.
fn ranks(array: &ArrayRef, pg_type: PgType) -> Result<Vec<u64>, EvalError> {
    let rows = array.len();
    Ok(match pg_type {
        PgType::Numeric => {
            let values = NumericColumn::of(array);
            rank_by(rows, &|a, b| values.get(a).cmp(values.get(b)))
        }
        PgType::Interval => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            let spans: Vec<i128> = values.values().iter().map(|value| interval_span(interval_of(*value))).collect();
            rank_by(rows, &|a, b| spans[a].cmp(&spans[b]))
        }
        PgType::Uuid => {
            let values = array.as_fixed_size_binary();
            rank_by(rows, &|a, b| values.value(a).cmp(values.value(b)))
        }
        PgType::Array(element) => {
            let values = array.as_binary::<i32>();
            // A NULL's bytes are none; its rank does not count.
            let view = |row: usize| values.is_valid(row).then(|| ArrayView::of(values.value(row)));
            rank_by(rows, &|a, b| match (view(a), view(b)) {
                (Some(a), Some(b)) => compare(element, a, b),
                (a, b) => a.is_none().cmp(&b.is_none()),
            })
        }
        PgType::Bytea | PgType::Inet | PgType::Cidr => {
            let values = array.as_binary::<i32>();
            rank_bytes(rows, &|row| values.value(row))
        }
        _ => text_ranks(array, pg_type),
    })
}

fn text_ranks(array: &ArrayRef, pg_type: PgType) -> Vec<u64> {
    let trim = |text: &str| if pg_type == PgType::Bpchar { text.trim_end_matches(' ').len() } else { text.len() };
    if let (DataType::Dictionary(..), TextColumn::Dictionary { keys, values }) =
        (array.data_type(), TextColumn::of(array))
        && values.len() <= array.len()
    {
        let entry = |entry: usize| &values.value(entry).as_bytes()[..trim(values.value(entry))];
        let entry_ranks = rank_bytes(values.len(), &entry);
        // A NULL's code means nothing and may be out of range.
        return keys.iter().map(|code| entry_ranks.get(*code as usize).copied().unwrap_or(0)).collect();
    }
    let texts = TextColumn::of(array);
    rank_bytes(array.len(), &|row| {
        if array.is_null(row) {
            return b"";
        }
        let text = texts.get(row);
        &text.as_bytes()[..trim(text)]
    })
}

/// Ranks by bytes; the first eight decide most comparisons without following a pointer.
fn rank_bytes<'a>(rows: usize, bytes: &dyn Fn(usize) -> &'a [u8]) -> Vec<u64> {
    let mut order: Vec<(u64, u32)> = (0..rows).map(|row| (prefix(bytes(row)), row as u32)).collect();
    let compare =
        |a: &(u64, u32), b: &(u64, u32)| a.0.cmp(&b.0).then_with(|| bytes(a.1 as usize).cmp(bytes(b.1 as usize)));
    order.sort_unstable_by(compare);
    let mut ranks = vec![0; rows];
    let mut rank = 0;
    for at in 0..rows {
        if at > 0 && compare(&order[at - 1], &order[at]).is_ne() {
            rank += 1;
        }
        ranks[order[at].1 as usize] = rank;
    }
    ranks
}

fn prefix(bytes: &[u8]) -> u64 {
    let mut prefix = [0; 8];
    let length = bytes.len().min(8);
    prefix[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(prefix)
}

fn rank_by(rows: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<u64> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_unstable_by(|a, b| compare(*a as usize, *b as usize));
    let mut ranks = vec![0; rows];
    let mut rank = 0;
    for at in 0..rows {
        if at > 0 && compare(order[at - 1] as usize, order[at] as usize).is_ne() {
            rank += 1;
        }
        ranks[order[at] as usize] = rank;
    }
    ranks
}

/// The number that intervals compare by: months of 30 days, days of 24 hours (PostgreSQL: timestamp.c interval_cmp_value).
pub(super) fn interval_span(interval: Interval) -> i128 {
    const DAY: i128 = 86_400_000_000;
    i128::from(interval.microseconds) + i128::from(interval.days) * DAY + i128::from(interval.months) * 30 * DAY
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, Int64Array, StringArray};

    const UP: Direction = Direction { descending: false, nulls_first: false };
    const DOWN: Direction = Direction { descending: true, nulls_first: true };

    fn order_of(array: ArrayRef, pg_type: PgType, direction: Direction) -> Vec<u32> {
        let rows = array.len();
        sorted_rows(vec![codes(&array, pg_type, direction).expect("ordered type")], rows)
    }

    #[test]
    fn integers_sort_in_both_directions_with_nulls_where_asked() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(i64::MIN), Some(i64::MAX), Some(3)]));
        assert_eq!(order_of(array.clone(), PgType::Int8, UP), [2, 0, 4, 3, 1]);
        assert_eq!(order_of(array.clone(), PgType::Int8, DOWN), [1, 3, 0, 4, 2]);
        let nulls_first = Direction { nulls_first: true, ..UP };
        assert_eq!(order_of(array, PgType::Int8, nulls_first), [1, 2, 0, 4, 3]);
    }

    #[test]
    fn nan_is_the_greatest_float_and_zeros_are_equal() {
        let array: ArrayRef =
            Arc::new(Float64Array::from(vec![f64::NAN, 0.0, -0.0, f64::INFINITY, -1.5, f64::NEG_INFINITY]));
        assert_eq!(order_of(array, PgType::Float8, UP), [5, 4, 1, 2, 3, 0]);
    }

    #[test]
    fn text_sorts_by_bytes_and_bpchar_without_padding() {
        let array: ArrayRef = Arc::new(StringArray::from(vec!["b", "abcdefghi", "abcdefgh", "", "Z", "a "]));
        assert_eq!(order_of(array.clone(), PgType::Text, UP), [3, 4, 5, 2, 1, 0]);
        let padded: ArrayRef = Arc::new(StringArray::from(vec!["b  ", "a", "a  ", "a\u{1}"]));
        assert_eq!(order_of(padded, PgType::Bpchar, UP), [1, 2, 3, 0]);
    }

    #[test]
    fn radix_and_comparison_agree_on_many_rows_and_two_keys() {
        let rows = 5_000;
        let a: Vec<i32> = (0..rows).map(|n| (n * 7919) % 97 - 40).collect();
        let b: Vec<i32> = (0..rows).map(|n| (n * 31337) % 1009).collect();
        let keys = vec![
            codes(&(Arc::new(Int32Array::from(a.clone())) as ArrayRef), PgType::Int4, DOWN).expect("int"),
            codes(&(Arc::new(Int32Array::from(b.clone())) as ArrayRef), PgType::Int4, UP).expect("int"),
        ];
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by_key(|row| (std::cmp::Reverse(a[*row as usize]), b[*row as usize]));
        assert_eq!(sorted_rows(keys, rows as usize), expected);
    }

    #[test]
    fn a_constant_key_before_one_of_all_bits_decides_nothing() {
        let constant: ArrayRef = Arc::new(Int64Array::from(vec![7, 7, 7]));
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, 0]));
        let key = |array: &ArrayRef| codes(array, PgType::Int8, UP).expect("int");
        assert_eq!(sorted_rows(vec![key(&constant), key(&wide)], 3), [1, 2, 0]);
        assert_eq!(sorted_rows(vec![key(&constant)], 3), [0, 1, 2]);
    }

    #[test]
    fn keys_wider_than_any_word_sort_by_rank() {
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, i64::MAX, i64::MIN]));
        let last: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MAX, i64::MIN, i64::MIN]));
        let key = |array: &ArrayRef| codes(array, PgType::Int8, UP).expect("int");
        assert_eq!(sorted_rows(vec![key(&wide), key(&wide), key(&last)], 4), [3, 1, 2, 0]);
    }
}
