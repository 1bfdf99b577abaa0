//! Dates, times and time zones as PostgreSQL computes them: parse, write, truncate, extract, add.
//!
//! In: the integers of the table at the head of [`super`] and, where a zone matters, the session's settings.
//! Out: the same integers, text bytes, or a refusal. Rules follow src/backend/utils/adt/{datetime,timestamp,date}.c
//! of PostgreSQL 14 to 17; what differs between those releases is refused ([`DateTimeError::Beyond`]).
//! Input accepts the spellings that programs generate, not everything PostgreSQL's lenient lexer takes.

pub mod arithmetic;
pub mod calendar;
pub mod field;
pub mod input;
pub mod output;
pub mod pattern;
pub mod zone;

pub use input::{parse_date, parse_time, parse_timestamp, parse_timestamptz};
pub use output::{write_date, write_time, write_timestamp, write_timestamptz};

pub use super::text::ParseError;

/// Why a computation on date/time values has no result here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DateTimeError {
    /// PostgreSQL raises an error.
    #[error("{0}")]
    Raises(&'static str),
    /// PostgreSQL has an answer, or releases differ in it.
    #[error("not computed here: {0}")]
    Beyond(&'static str),
}

impl DateTimeError {
    pub(crate) const TIMESTAMP_RANGE: Self = Self::Raises("timestamp out of range");
    pub(crate) const DATE_RANGE: Self = Self::Raises("date out of range");
    pub(crate) const INTERVAL_RANGE: Self = Self::Raises("interval out of range");
}

impl From<DateTimeError> for ParseError {
    fn from(error: DateTimeError) -> Self {
        match error {
            DateTimeError::Raises(message) => Self::Raises(message.to_owned()),
            DateTimeError::Beyond(message) => Self::Beyond(message.to_owned()),
        }
    }
}
