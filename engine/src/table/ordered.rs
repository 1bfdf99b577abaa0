//! Rows of one chunk in the order of a column that does not ascend through it: what a narrow range of its values, or the first and last
//! of them, are found by.
//!
//! What the heap's order follows needs none: zones and binary search do. Others are sorted when narrow ranges or ends of them have been
//! asked for several times, a chunk at a time, so that no single statement waits for all of a large table.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use arrow::array::Array;

use super::Chunk;
use crate::types::PgType;

/// Smaller chunks are read through as quickly.
const ROWS_MIN: usize = if cfg!(debug_assertions) { 16 } else { 4_096 };
/// A range is narrow that has one row of so many.
const ROWS_PER_FOUND: usize = if cfg!(debug_assertions) { 2 } else { 32 };
/// Sorting a chunk takes as long as reading it through some fifty times.
const ASKED_MIN: u8 = if cfg!(debug_assertions) { 1 } else { 16 };
/// Columns that are kept sorted per chunk. Bounds what it costs in memory: two bytes a row each.
const COLUMNS_MAX: usize = 4;
/// Of a row's number within its chunk.
const ROW_BITS: u32 = 16;

const _: () = assert!(super::CHUNK_ROWS <= 1 << ROW_BITS);

/// By column, from the first narrow range on.
#[derive(Debug, Default)]
pub(super) struct OrderedRows(OnceLock<Box<[Ordered]>>);

#[derive(Debug, Default)]
struct Ordered {
    /// How often a narrow range or an end was asked for.
    asked: AtomicU8,
    /// Those whose value is not NULL. None within: they cannot be sorted here.
    rows: OnceLock<Option<Box<[u16]>>>,
}

impl OrderedRows {
    fn of(&self, column: usize, columns: usize) -> &Ordered {
        &self.0.get_or_init(|| (0..columns).map(|_| Ordered::default()).collect())[column]
    }

    fn made(&self) -> impl Iterator<Item = &[u16]> {
        self.0.get().into_iter().flatten().filter_map(|column| column.rows.get()?.as_deref())
    }

    pub(super) fn bytes(&self) -> usize {
        self.made().map(size_of_val).sum::<usize>() + self.0.get().map_or(0, |columns| size_of_val(&**columns))
    }
}

impl Chunk {
    /// The rows, in no order, whose values in the column lie between two, which are included, as [`crate::types::Value::ordinal`] gives
    /// them. `may_sort` is whether they may be sorted for that now, and no longer afterwards if they have been. None: they are not
    /// sorted, or the range is not narrow.
    pub(crate) fn rows_between(&self, column: usize, (low, high): (i64, i64), may_sort: &mut bool) -> Option<&[u16]> {
        if low > high {
            return Some(&[]);
        }
        let rows = self.ordered_rows(column, may_sort, || self.is_narrow(column, (low, high)))?;
        let found = self.between(column, rows, (low, high));
        self.is_few(found.len()).then_some(found)
    }

    /// The rows whose values in the column lie between two, which are included, by these values and, where they are equal, by their places:
    /// for whoever wants the first of them, or the last. Otherwise as [`Self::rows_between`]. None: they are not sorted.
    pub(crate) fn rows_in_order(&self, column: usize, ends: (i64, i64), may_sort: &mut bool) -> Option<&[u16]> {
        self.ordered_rows(column, may_sort, || true).map(|rows| self.between(column, rows, ends))
    }

    /// How many of these rows, which are in the column's order, have lesser values than one, or an equal one as well.
    pub(crate) fn rows_before(&self, column: usize, rows: &[u16], value: i64, with_equal: bool) -> usize {
        let of = |row: u16| self.ordinal_at(column, usize::from(row));
        rows.partition_point(|row| of(*row).is_some_and(|of| of < value || with_equal && of == value))
    }

    fn between<'r>(&self, column: usize, rows: &'r [u16], (low, high): (i64, i64)) -> &'r [u16] {
        if low > high {
            return &[];
        }
        let rows = &rows[self.rows_before(column, rows, low, false)..];
        &rows[..self.rows_before(column, rows, high, true)]
    }

    /// All rows whose value is not NULL. `is_worth`: whether what is asked for would be found sooner.
    fn ordered_rows(&self, column: usize, may_sort: &mut bool, is_worth: impl FnOnce() -> bool) -> Option<&[u16]> {
        if self.rows < ROWS_MIN || !self.types[column].is_some_and(PgType::is_ordinal) {
            return None;
        }
        let made = self.ordered.0.get().and_then(|columns| columns[column].rows.get());
        let rows = match made {
            Some(rows) => rows,
            None if *may_sort && is_worth() && self.is_asked_often(column) => {
                *may_sort = false;
                self.ordered.of(column, self.columns.len()).rows.get_or_init(|| self.sorted(column))
            }
            None => return None,
        };
        rows.as_deref()
    }

    /// Whether so many of its rows are worth picking out: more are read through as quickly.
    pub(crate) fn is_few(&self, rows: usize) -> bool {
        rows * ROWS_PER_FOUND <= self.rows
    }

    /// Whether the range is narrow if values lie as close together everywhere.
    fn is_narrow(&self, column: usize, (low, high): (i64, i64)) -> bool {
        let Some(zone) = self.zone(column) else { return false };
        let (Some(min), Some(max)) = (zone.min.ordinal(), zone.max.ordinal()) else { return false };
        let values = |from: i64, to: i64| (i128::from(to) - i128::from(from) + 1).max(0);
        // Beside infinite times nothing is wide: a range with two ends is taken for narrow, and what it finds decides.
        let is_endless = min == i64::MIN || max == i64::MAX;
        match is_endless {
            true => low > min && high < max,
            false => values(low.max(min), high.min(max)) * ROWS_PER_FOUND as i128 <= values(min, max),
        }
    }

    /// Asks once more, and says whether that is often enough.
    fn is_asked_often(&self, column: usize) -> bool {
        let asked = &self.ordered.of(column, self.columns.len()).asked;
        // Two that count at once may count for one: that does no harm.
        asked.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= ASKED_MIN
            && self.ordered.made().count() < COLUMNS_MAX
    }

    /// None: the values lie too far apart to be put beside row numbers.
    fn sorted(&self, column: usize) -> Option<Box<[u16]>> {
        let array = &self.columns[column];
        let valid = (0..self.rows).filter(|row| array.is_valid(*row));
        let values: Vec<(usize, i64)> =
            valid.map(|row| Some((row, self.ordinal_at(column, row)?))).collect::<Option<_>>()?;
        // Infinite times stand beside the others' ends, all of an end alike.
        let finite = || values.iter().map(|(_, value)| *value).filter(|value| !matches!(*value, i64::MIN | i64::MAX));
        let (min, max) = (finite().min().unwrap_or(0), finite().max().unwrap_or(0));
        if (i128::from(max) - i128::from(min) + 2) >> (i64::BITS - ROW_BITS) != 0 {
            return None;
        }
        let place = |value: i64| match value {
            i64::MIN => 0,
            i64::MAX => max.wrapping_sub(min).cast_unsigned() + 2,
            value => value.wrapping_sub(min).cast_unsigned() + 1,
        };
        let beside = |(row, value): &(usize, i64)| (place(*value) << ROW_BITS) | *row as u64;
        let mut keys: Vec<u64> = values.iter().map(beside).collect();
        keys.sort_unstable();
        Some(keys.into_iter().map(|key| key as u16).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::ArrayRef;

    use super::*;
    use crate::table::tests::schema;

    #[test]
    fn narrow_ranges_find_what_reading_through_finds() {
        let mut state = 11_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let narrow: Vec<Option<i32>> = (0..5_000).map(|_| (next(7) != 0).then(|| next(2_000) as i32 - 1_000)).collect();
        let wide: Vec<Option<i64>> = (0..5_000).map(|_| (next(7) != 0).then(|| (next(1 << 31) as i64) << 14)).collect();
        // Times of which some are infinite.
        let endless =
            |value: &Option<i64>| value.map(|value| [value, value, i64::MIN, i64::MAX][value as usize >> 14 & 3]);
        let endless: Vec<Option<i64>> = wide.iter().map(endless).collect();
        let arrays: [(PgType, ArrayRef, Vec<Option<i64>>); 3] = [
            (
                PgType::Date,
                Arc::new(narrow.iter().copied().collect::<arrow::array::Int32Array>()),
                narrow.iter().map(|value| value.map(i64::from)).collect(),
            ),
            (PgType::Timestamp, Arc::new(wide.iter().copied().collect::<arrow::array::Int64Array>()), wide),
            (PgType::Timestamptz, Arc::new(endless.iter().copied().collect::<arrow::array::Int64Array>()), endless),
        ];
        for (pg_type, array, values) in arrays {
            let chunk = Chunk::new(&schema(&[Some(pg_type)]), vec![array], values.len());
            let (mut found_some, mut is_refused) = (0, false);
            for _ in 0..300 {
                let low = values[next(5_000) as usize].unwrap_or(0).saturating_add(next(3) as i64 - 1);
                let high = values[next(5_000) as usize].unwrap_or(0);
                let near = low.saturating_add(high.saturating_sub(low).saturating_abs() / 50);
                for range in [(low, near), (low, high), (i64::MIN, low), (low, i64::MAX)] {
                    let naive: Vec<usize> = (0..values.len())
                        .filter(|row| values[*row].is_some_and(|value| range.0 <= value && value <= range.1))
                        .collect();
                    match chunk.rows_between(0, range, &mut true) {
                        Some(rows) => {
                            let mut rows: Vec<usize> = rows.iter().map(|row| usize::from(*row)).collect();
                            rows.sort_unstable();
                            assert_eq!(rows, naive, "{range:?}");
                            found_some += 1;
                        }
                        None => is_refused |= naive.len() * ROWS_PER_FOUND > values.len(),
                    }
                }
            }
            assert!(found_some > 100 && is_refused);
            assert_eq!(chunk.rows_between(0, (5, 4), &mut true), Some(&[][..]), "an empty range");
        }
    }

    #[test]
    fn rows_come_in_the_order_of_their_values_and_places() {
        let values: Vec<Option<i64>> = (0..90).map(|n| (n % 9 != 4).then_some(n * 7 % 30)).collect();
        let array: ArrayRef = Arc::new(values.iter().copied().collect::<arrow::array::Int64Array>());
        let chunk = Chunk::new(&schema(&[Some(PgType::Int8)]), vec![array], 90);
        assert_eq!(chunk.rows_in_order(0, (i64::MIN, i64::MAX), &mut false), None);
        for ends in [(i64::MIN, i64::MAX), (3, 20), (i64::MIN, 7), (29, 40), (8, 5)] {
            let mut expected: Vec<(i64, u16)> = (0..90).filter_map(|row| Some((values[row as usize]?, row))).collect();
            expected.retain(|(value, _)| ends.0 <= *value && *value <= ends.1);
            expected.sort_unstable();
            let rows: Vec<u16> = expected.iter().map(|(_, row)| *row).collect();
            assert_eq!(chunk.rows_in_order(0, ends, &mut true), Some(&rows[..]), "{ends:?}");
            let before = |limit: i64| expected.iter().filter(|(value, _)| *value < limit).count();
            assert_eq!(chunk.rows_before(0, &rows, 10, false), before(10));
            assert_eq!(chunk.rows_before(0, &rows, 10, true), before(11));
        }
    }

    #[test]
    fn what_cannot_be_sorted_is_read_through() {
        let ends = (0..100).map(|n| [i64::MIN + 1, i64::MAX, n][n as usize % 3]).collect::<arrow::array::Int64Array>();
        let chunk = Chunk::new(&schema(&[Some(PgType::Int8)]), vec![Arc::new(ends)], 100);
        assert_eq!(chunk.rows_between(0, (0, 1), &mut true), None);
        let text: ArrayRef = Arc::new((0..100).map(|n| Some(n.to_string())).collect::<arrow::array::StringArray>());
        let chunk = Chunk::new(&schema(&[Some(PgType::Text)]), vec![text], 100);
        assert_eq!(chunk.rows_between(0, (0, 1), &mut true), None);
        let few: ArrayRef = Arc::new((0..15).rev().collect::<arrow::array::Int64Array>());
        let chunk = Chunk::new(&schema(&[Some(PgType::Int8)]), vec![few], 15);
        assert_eq!(chunk.rows_between(0, (0, 1), &mut true), None);
        // One chunk at a time.
        let some: ArrayRef = Arc::new((0..1_000).rev().collect::<arrow::array::Int64Array>());
        let chunk = Chunk::new(&schema(&[Some(PgType::Int8)]), vec![some], 1_000);
        assert_eq!(chunk.rows_between(0, (0, 1), &mut false), None);
        let mut may_sort = true;
        assert_eq!(chunk.rows_between(0, (0, 1), &mut may_sort), Some(&[999, 998][..]));
        assert!(!may_sort);
    }
}
