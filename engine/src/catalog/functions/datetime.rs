//! Date/time functions, operators and conversions over whole columns.
//!
//! The computations are in [`crate::types::datetime`] and [`crate::types::interval`]; here are the loops, with one
//! zone cursor per column, and the entries. A unit, zone or pattern that differs by row is left to PostgreSQL.
//! CURRENT_TIMESTAMP is now(); CURRENT_DATE, LOCALTIME and LOCALTIMESTAMP are its casts to date, time and timestamp
//! (date.c: GetSQLCurrentDate and its kin). statement_timestamp() is not the transaction's time: not here.

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
