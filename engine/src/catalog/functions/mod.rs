//! The one table of operators, functions, casts and aggregates that are reproduced exactly.
//!
//! An entry names its argument types, result type, volatility, strictness, implementation (a kernel over whole
//! columns) and the PostgreSQL source it follows. A combination that is not here goes upstream.
//!
//! Overload resolution needs more than what is implemented: every candidate of the name in pg_catalog takes part
//! (PostgreSQL: Type Conversion). [`operator_candidates`] and [`function_candidates`] list all of them; one without
//! a [`Function`] may win, and then the statement goes upstream.

mod aggregates;
mod arithmetic;
mod array;
mod array_parts;
pub(crate) mod at_once;
mod bits;
mod bucket;
mod cast_number;
mod cast_text;
mod collation;
mod comparison;
mod count;
mod datetime;
mod float;
mod format;
mod json;
mod json_output;
mod network;
mod number_pattern;
mod numeric_arithmetic;
mod numeric_powers;
mod overlap;
mod pattern;
mod plain_json;
mod registry;
mod regular;
mod returning_rows;
mod rows;
pub mod setting;
mod text;
mod text_comparison;
mod vector;

pub use aggregates::{
    Aggregate, AggregateFunction, Regression, Spread, WindowFunction, aggregates, all_aggregates, window_function,
};
pub use array::{ARRAY_TEXT, CONSTRUCT, EQUALS_ANY, FUNCTIONS as ARRAY_FUNCTIONS, RETYPED, TO_STRING, subscript};
pub use array_parts::{COMPARISONS as ARRAY_COMPARISONS, PARTS as ARRAY_PARTS, SLICE, SPLITS};
pub use bits::{BITS_INT4, BITS_INT8};
pub use collation::{LABEL, LABEL_AT, LOWER, LOWER_ASCII, PLACE, RANK, RANK_PADDED, TEXT_AT, UPPER, UPPER_ASCII};
pub use count::{LIMIT, OFFSET};
pub use datetime::comparison::{BOUNDS, Bounds};
pub use json_output::{
    JSON_ARRAY, JSON_LIST, JSON_MEMBER, JSON_OBJECT, JSON_OBJECT_OF, JSON_RECORD, JSON_VALUE, JSONB_OF,
};
pub use registry::{
    ArgumentType, Candidate, Cast, CastContext, CastMethod, OtherType, all_functions, called_with_one_argument, cast,
    function_candidates, functions, length_coercion, operator_candidates, operators, output_function,
};
pub use returning_rows::{ENTRIES as ROWS_FUNCTIONS, RowsFunction, RowsKernel, SERIES, UNNEST, fields};

use arrow::array::ArrayRef;

use crate::types::{PgType, Value};

/// `pg_proc.provolatile`. Stable entries depend on the session's settings or on the statement's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    Immutable,
    /// Depends on settings that are part of every key (TimeZone, DateStyle...), not on time.
    Stable,
    /// Depends on the statement's or transaction's time: computed, never cached.
    Time,
}

/// An argument of a kernel: a column, or one value for all rows (never both NULL-typed surprises: a NULL scalar is `Value::Null`).
#[derive(Clone, Debug)]
pub enum Operand {
    Column(ArrayRef),
    Scalar(Value),
}

/// What a kernel may depend on besides its operands.
#[derive(Clone, Debug)]
pub struct EvalContext<'a> {
    pub settings: &'a crate::types::FormatSettings,
    /// Transaction timestamp (now()), microseconds since 2000-01-01 UTC, from upstream; None: not known, refuse.
    pub transaction_time: Option<i64>,
    /// The order of text under collations that are not bytewise; [`crate::Engine::run`] puts it there. None: refuse.
    pub orders: Option<&'a super::order::OrderView>,
}

/// Why an evaluation stopped: every case ends in a relay, upstream reports what is to be reported.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EvalError {
    /// PostgreSQL would raise an error here (overflow, division by zero, bad input...).
    #[error("{0}")]
    Raises(String),
    /// Correct in PostgreSQL, beyond what is held here (a numeric over 38 digits...).
    #[error("not computed here: {0}")]
    Beyond(String),
    /// Upstream has to tell first how these texts are ordered; then the same execution may succeed.
    #[error("the order of some texts is not known yet")]
    Unordered(std::sync::Arc<super::order::Missing>),
    /// Over the statement's budget of memory, rows or time, or cancelled.
    #[error("over budget: {0}")]
    OverBudget(&'static str),
}

impl From<crate::types::numeric::NumericError> for EvalError {
    fn from(error: crate::types::numeric::NumericError) -> Self {
        use crate::types::numeric::NumericError as E;
        match error {
            E::DivisionByZero | E::Raises(_) => Self::Raises(error.to_string()),
            E::Beyond | E::InDoubt => Self::Beyond(error.to_string()),
        }
    }
}

impl From<crate::types::text::ParseError> for EvalError {
    fn from(error: crate::types::text::ParseError) -> Self {
        use crate::types::text::ParseError as E;
        match error {
            E::Raises(text) => Self::Raises(text),
            E::DependsOnTime | E::Beyond(_) => Self::Beyond(error.to_string()),
        }
    }
}

/// Computes `rows` results. Scalars stand for every row; the result has exactly `rows` entries, NULLs included.
pub type Kernel = fn(&[Operand], usize, &EvalContext<'_>) -> Result<ArrayRef, EvalError>;

/// One operator, function or cast. For an operator `name` is its symbol and `arguments` has one (prefix) or two types.
#[derive(Debug)]
pub struct Function {
    pub name: &'static str,
    pub arguments: &'static [PgType],
    /// The last argument type may repeat (concat and its like).
    pub is_variadic: bool,
    pub result: PgType,
    pub volatility: Volatility,
    /// NULL in, NULL out (the kernel does it itself; the planner may use it).
    pub is_strict: bool,
    pub kernel: Kernel,
    /// Where PostgreSQL defines it: file and function.
    pub source: &'static str,
}

impl Function {
    /// Whether the result depends on the arguments alone. age(timestamptz, timestamptz) does not, though PostgreSQL says that
    /// it is immutable: it counts by the clock of the session's zone. Nor do powers of numeric, which have other decimals from
    /// one release to another.
    pub fn is_fixed(&self) -> bool {
        let is_by_clock = self.name == "age" && self.arguments.first() == Some(&PgType::Timestamptz);
        let is_power = matches!(self.name, "^" | "pow" | "power") && self.result == PgType::Numeric;
        self.volatility == Volatility::Immutable && !is_by_clock && !is_power
    }

    /// Whether it is a cast by the output function of the one type and the input function of the other.
    pub fn is_via_text(&self) -> bool {
        let [from] = self.arguments else { return false };
        let found = cast(*from, self.result).map(|cast| cast.method);
        matches!(found, Some(CastMethod::ViaText(function)) if std::ptr::eq(function, self))
    }

    /// Whether PostgreSQL folds a call of constants. Beside [`Function::is_fixed`] what it takes to be immutable though it hangs on
    /// settings or releases, or, by a collation, on what has been learnt here of its order and its letters.
    pub fn is_folded_upstream(&self) -> bool {
        let prints = matches!(self.arguments, [PgType::Float4 | PgType::Float8 | PgType::Bytea]) && self.is_via_text();
        let is_of_collation = [&LOWER, &UPPER, &RANK, &RANK_PADDED, &TEXT_AT].iter().any(|of| std::ptr::eq(*of, self));
        self.volatility == Volatility::Immutable || prints || is_of_collation
    }

    /// An immutable, strict entry: most are.
    pub(crate) const fn immutable(
        name: &'static str,
        arguments: &'static [PgType],
        result: PgType,
        kernel: Kernel,
        source: &'static str,
    ) -> Self {
        Self {
            name,
            arguments,
            is_variadic: false,
            result,
            volatility: Volatility::Immutable,
            is_strict: true,
            kernel,
            source,
        }
    }

    /// A strict entry that depends on the session's settings, not on time.
    pub(crate) const fn stable(
        name: &'static str,
        arguments: &'static [PgType],
        result: PgType,
        kernel: Kernel,
        source: &'static str,
    ) -> Self {
        Self { volatility: Volatility::Stable, ..Self::immutable(name, arguments, result, kernel, source) }
    }
}

#[cfg(test)]
mod tests;
