//! Date/time functions, operators and conversions over whole columns.
//!
//! The computations are in [`crate::types::datetime`] and [`crate::types::interval`]; here are the loops, with one
//! zone cursor per column, and the entries. A unit, zone or pattern that differs by row is left to PostgreSQL.
//! CURRENT_TIMESTAMP is now(); CURRENT_DATE, LOCALTIME and LOCALTIMESTAMP are its casts to date, time and timestamp
//! (date.c: GetSQLCurrentDate and its kin). statement_timestamp() is
//! the same moment outside of a block; the binder refuses both in one statement, where they may differ by microseconds.

use arrow::array::ArrayRef;

use super::EvalError;
use crate::types::datetime::DateTimeError;

pub(super) mod arithmetic;
mod columns;
pub(super) mod comparison;
pub(super) mod conversion;
pub(super) mod parts;
pub(super) mod pattern;

type Evaluated = Result<ArrayRef, EvalError>;

impl From<DateTimeError> for EvalError {
    fn from(error: DateTimeError) -> Self {
        match error {
            DateTimeError::Raises(message) => Self::Raises(message.to_owned()),
            DateTimeError::Beyond(message) => Self::Beyond(message.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, AsArray, Int32Array, Int64Array, IntervalMonthDayNanoArray};
    use arrow::datatypes::{Decimal64Type, Int64Type, IntervalMonthDayNano};
    use jiff::tz::TimeZone;

    use super::*;
    use crate::catalog::functions::{EvalContext, Operand, functions, operators};
    use crate::types::numeric::numeric_at;
    use crate::types::{FormatSettings, Numeric, PgType, Value, text};

    fn call(name: &str, arguments: &[PgType], operands: &[Operand], rows: usize) -> Evaluated {
        let time_zone = TimeZone::get("America/New_York").expect("bundled zone");
        let settings = FormatSettings { time_zone, ..FormatSettings::default() };
        let named = if name.starts_with(|c: char| c.is_alphabetic()) { functions(name) } else { operators(name) };
        let function = named.iter().find(|function| function.arguments == arguments).expect("an entry");
        (function.kernel)(operands, rows, &EvalContext { settings: &settings, transaction_time: Some(0), orders: None })
    }

    fn scalar(pg_type: PgType, value: &str) -> Operand {
        Operand::Scalar(text::parse(pg_type, -1, value, &FormatSettings::default()).expect(value))
    }

    fn moments(values: &[Option<i64>]) -> Operand {
        Operand::Column(Arc::new(Int64Array::from(values.to_vec())))
    }

    #[test]
    fn null_rows_stay_null_and_are_not_computed() {
        // What a NULL row holds would raise.
        let times = Int64Array::new(vec![0, i64::MAX - 5, 86_400_000_000].into(), Some(vec![true, false, true].into()));
        let day = scalar(PgType::Interval, "1 day");
        let sum = call("+", &[PgType::Timestamp, PgType::Interval], &[Operand::Column(Arc::new(times)), day], 3)
            .expect("in range");
        let sum = sum.as_primitive::<Int64Type>();
        assert_eq!(sum.iter().collect::<Vec<_>>(), [Some(86_400_000_000), None, Some(172_800_000_000)]);
        let null = Operand::Scalar(Value::Null);
        let sum = call("+", &[PgType::Timestamp, PgType::Interval], &[moments(&[Some(0); 3]), null], 3).expect("NULLs");
        assert_eq!(sum.null_count(), 3);
    }

    #[test]
    fn scalars_stand_for_every_row() {
        let unit = scalar(PgType::Text, "MONTH");
        let at = scalar(PgType::Timestamp, "2024-02-29 12:00");
        let start = call("date_trunc", &[PgType::Text, PgType::Timestamp], &[unit, at], 4).expect("in range");
        let expected = text::parse(PgType::Timestamp, -1, "2024-02-01", &FormatSettings::default());
        assert_eq!(start.len(), 4);
        assert_eq!(expected, Ok(Value::Timestamp(start.as_primitive::<Int64Type>().value(3))));
    }

    #[test]
    fn extract_has_one_scale_unless_a_row_is_infinite() {
        let extract = |unit, column| {
            call("extract", &[PgType::Text, PgType::Timestamptz], &[scalar(PgType::Text, unit), column], 3)
                .expect("a column")
        };
        let hours = extract("hour", moments(&[Some(0), None, Some(i64::MAX)]));
        // New York is five hours behind.
        assert_eq!(hours.as_primitive::<Decimal64Type>().iter().collect::<Vec<_>>(), [Some(19), None, None]);
        let epochs = extract("epoch", moments(&[Some(1), None, Some(i64::MIN)]));
        assert_eq!(numeric_at(&epochs, 0), Some(Numeric::Finite { mantissa: 946_684_800_000_001, scale: 6 }));
        assert_eq!(numeric_at(&epochs, 1), None);
        assert_eq!(numeric_at(&epochs, 2), Some(Numeric::NegativeInfinity));
        let late = extract("epoch", moments(&[Some(9_000_000_000_000_000_000); 3]));
        assert_eq!(numeric_at(&late, 2), Some(Numeric::Finite { mantissa: 9_000_946_684_800_000_000, scale: 6 }));
        let julian = extract("julian", moments(&[Some(3_600_000_000 * 5 + 1); 3]));
        assert_eq!(numeric_at(&julian, 0).expect("a number").to_string(), "2451545.0000000000115740740740740741");
    }

    #[test]
    fn dates_and_moments_compare_in_the_sessions_zone() {
        let midnight = 5 * 3_600_000_000;
        let dates = Operand::Column(Arc::new(Int32Array::from(vec![Some(0), Some(0), Some(i32::MAX - 3), None])));
        let times = moments(&[Some(midnight), Some(midnight - 1), Some(i64::MAX), Some(0)]);
        let less = call("<", &[PgType::Date, PgType::Timestamptz], &[dates.clone(), times.clone()], 4).expect("truths");
        assert_eq!(less.as_boolean().iter().collect::<Vec<_>>(), [Some(false), Some(false), Some(true), None]);
        let equal = call("=", &[PgType::Timestamptz, PgType::Date], &[times, dates], 4).expect("truths");
        assert_eq!(equal.as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(false), Some(false), None]);
    }

    #[test]
    fn intervals_compare_by_length() {
        let month = IntervalMonthDayNano::new(1, 0, 0);
        let days = IntervalMonthDayNano::new(0, 30, 0);
        let column = |values| Operand::Column(Arc::new(IntervalMonthDayNanoArray::from(values)));
        let both = [PgType::Interval; 2];
        let operands =
            [column(vec![Some(month), Some(days), None]), column(vec![Some(days), Some(month), Some(month)])];
        let equal = call("=", &both, &operands, 3).expect("truths");
        assert_eq!(equal.as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(true), None]);
    }

    #[test]
    fn the_clock_is_the_transactions_or_none() {
        let now = call("now", &[], &[], 2).expect("known");
        assert_eq!(now.as_primitive::<Int64Type>().values(), &[0, 0]);
        let function = functions("now")[0];
        let unknown = EvalContext { settings: &FormatSettings::default(), transaction_time: None, orders: None };
        assert!(matches!((function.kernel)(&[], 1, &unknown), Err(EvalError::Beyond(_))));
    }
}
