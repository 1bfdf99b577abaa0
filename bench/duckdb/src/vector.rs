//! Cells of a chunk's columns as text (duckdb.h: `duckdb_type`, `duckdb_string_t`, `duckdb_hugeint`).

use crate::Error;
use crate::api::{Api, Handle, ResultStruct};

/// How a column's cells lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int16,
    Int32,
    Int64,
    Int128,
    Float,
    Double,
    Text,
    Date,
    /// The type that holds it, and digits behind the point.
    Decimal(Width, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Two,
    Four,
    Eight,
    Sixteen,
}

/// The columns of a result; an error for a type that no workload has.
pub(crate) fn columns(api: &Api, result: &mut ResultStruct) -> Result<Vec<Kind>, Error> {
    let result = &raw mut *result;
    // SAFETY: the result lives through this function; so it does in the calls below.
    let count = unsafe { (api.column_count)(result) };
    (0..count)
        .map(|at| {
            // SAFETY: `at` is below the count of columns.
            let number = unsafe { (api.column_type)(result, at) };
            Ok(match number {
                1 => Kind::Bool,
                3 => Kind::Int16,
                4 => Kind::Int32,
                5 => Kind::Int64,
                10 => Kind::Float,
                11 => Kind::Double,
                13 => Kind::Date,
                16 => Kind::Int128,
                17 => Kind::Text,
                19 => decimal(api, result, at)?,
                other => return Err(Error::Statement(format!("a column of DuckDB's type {other}"))),
            })
        })
        .collect()
}

fn decimal(api: &Api, result: *mut ResultStruct, at: u64) -> Result<Kind, Error> {
    // SAFETY: as in `columns`; the type is destroyed here and nowhere else.
    let (scale, width) = unsafe {
        let mut kind = (api.column_logical_type)(result, at);
        let read = ((api.decimal_scale)(kind), (api.decimal_internal_type)(kind));
        (api.destroy_logical_type)(&raw mut kind);
        read
    };
    let width = match width {
        3 => Width::Two,
        4 => Width::Four,
        5 => Width::Eight,
        16 => Width::Sixteen,
        other => return Err(Error::Statement(format!("a decimal in DuckDB's type {other}"))),
    };
    Ok(Kind::Decimal(width, scale))
}

/// One cell; None for NULL. `column` and `row` are within the chunk, whose column has this kind.
pub(crate) fn cell(api: &Api, chunk: Handle, column: usize, kind: Kind, row: usize) -> Option<String> {
    // SAFETY: the caller's promise; the vector belongs to the chunk, which lives through the call. A validity mask, if
    // there is one, has a bit for each row; the data are as wide as the kind says.
    unsafe {
        let vector = (api.data_chunk_get_vector)(chunk, column as u64);
        let validity = (api.vector_get_validity)(vector);
        if !validity.is_null() && *validity.add(row / 64) >> (row % 64) & 1 == 0 {
            return None;
        }
        let cells = (api.vector_get_data)(vector);
        Some(match kind {
            Kind::Bool => if *cells.cast::<bool>().add(row) { "t" } else { "f" }.to_owned(),
            Kind::Int16 => (*cells.cast::<i16>().add(row)).to_string(),
            Kind::Int32 => (*cells.cast::<i32>().add(row)).to_string(),
            Kind::Int64 => (*cells.cast::<i64>().add(row)).to_string(),
            Kind::Int128 => cells.cast::<i128>().add(row).read_unaligned().to_string(),
            Kind::Float => (*cells.cast::<f32>().add(row)).to_string(),
            Kind::Double => (*cells.cast::<f64>().add(row)).to_string(),
            Kind::Date => date(*cells.cast::<i32>().add(row)),
            Kind::Text => text(cells.cast::<u8>().add(row * 16)),
            Kind::Decimal(width, scale) => {
                let unscaled = match width {
                    Width::Two => i128::from(*cells.cast::<i16>().add(row)),
                    Width::Four => i128::from(*cells.cast::<i32>().add(row)),
                    Width::Eight => i128::from(*cells.cast::<i64>().add(row)),
                    Width::Sixteen => cells.cast::<i128>().add(row).read_unaligned(),
                };
                scaled(unscaled, usize::from(scale))
            }
        })
    }
}

/// A sum over all cells of a column: every value, of a text its length. So that each is read.
pub(crate) fn checksum(api: &Api, chunk: Handle, column: usize, kind: Kind, rows: usize) -> u64 {
    /// # Safety
    /// There are so many cells of this type.
    unsafe fn sum<T: Copy>(cells: *const std::ffi::c_void, rows: usize, word: fn(T) -> u64) -> u64 {
        // SAFETY: the caller's promise; vectors are aligned for their type.
        let cells = unsafe { std::slice::from_raw_parts(cells.cast::<T>(), rows) };
        cells.iter().fold(0, |sum, cell| sum.wrapping_add(word(*cell)))
    }
    // SAFETY: as in `cell`.
    unsafe {
        let cells = (api.vector_get_data)((api.data_chunk_get_vector)(chunk, column as u64));
        match kind {
            Kind::Bool => sum::<u8>(cells, rows, u64::from),
            Kind::Int16 | Kind::Decimal(Width::Two, _) => sum::<i16>(cells, rows, |cell| cell as u64),
            Kind::Int32 | Kind::Date | Kind::Decimal(Width::Four, _) => sum::<i32>(cells, rows, |cell| cell as u64),
            Kind::Int64 | Kind::Decimal(Width::Eight, _) => sum::<i64>(cells, rows, |cell| cell as u64),
            Kind::Int128 | Kind::Decimal(Width::Sixteen, _) => sum::<[u64; 2]>(cells, rows, |[low, high]| low ^ high),
            Kind::Float => sum::<f32>(cells, rows, |cell| u64::from(cell.to_bits())),
            Kind::Double => sum::<f64>(cells, rows, f64::to_bits),
            Kind::Text => sum::<[u32; 4]>(cells, rows, |[length, ..]| u64::from(length)),
        }
    }
}

/// Length, then up to 12 bytes in place, or 4 bytes of them and a pointer to all.
///
/// # Safety
/// `at` is a `duckdb_string_t` whose chunk lives.
unsafe fn text(at: *const u8) -> String {
    // SAFETY: the caller's promise.
    let bytes = unsafe {
        let length = at.cast::<u32>().read_unaligned() as usize;
        let bytes = if length <= 12 { at.add(4) } else { at.add(8).cast::<*const u8>().read_unaligned() };
        std::slice::from_raw_parts(bytes, length)
    };
    String::from_utf8_lossy(bytes).into_owned()
}

fn scaled(unscaled: i128, scale: usize) -> String {
    if scale == 0 {
        return unscaled.to_string();
    }
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{fraction}", if unscaled < 0 { "-" } else { "" })
}

/// Days since 1970-01-01 as ISO (the civil calendar by eras of 400 years).
fn date(days: i32) -> String {
    let days = i64::from(days) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) =
        (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    let year = year_of_era + 400 * era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_and_dates_are_written_as_postgresql_writes_them() {
        assert_eq!(scaled(-5, 2), "-0.05");
        assert_eq!(scaled(123_456, 3), "123.456");
        assert_eq!(scaled(7, 0), "7");
        assert_eq!(
            ["1970-01-01", "2000-02-29", "1969-12-31"],
            [date(0), date(11_016), date(-1)].each_ref().map(|d| &**d)
        );
    }
}
