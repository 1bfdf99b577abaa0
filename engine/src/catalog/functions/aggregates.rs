//! Aggregates: names, argument and result types. Their execution is the executor's.
//!
//! Source of the table: PostgreSQL's pg_aggregate.dat and pg_proc.dat. An argument of another type (varchar, name...)
//! is first coerced by the rules for functions: max(varchar) is max(text).

use crate::types::{Element, PgType};

/// Which aggregate; the argument's type decides the state and the result (PostgreSQL: pg_aggregate.dat).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    CountStar,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BoolAnd,
    BoolOr,
    BitAnd,
    BitOr,
    BitXor,
    /// variance and stddev.
    Spread(Spread),
    StringAgg,
    ArrayAgg,
    PercentileCont,
    PercentileDisc,
    Mode,
    RegrCount,
    Regression(Regression),
}

impl AggregateFunction {
    /// Counts, extremes and combined bits: there is one result over any values, in whatever order they come.
    fn is_plain(self) -> bool {
        matches!(
            self,
            Self::CountStar
                | Self::Count
                | Self::Min
                | Self::Max
                | Self::BoolAnd
                | Self::BoolOr
                | Self::BitAnd
                | Self::BitOr
                | Self::BitXor
                | Self::RegrCount
        )
    }

    /// Whether there is a result over any values of that type: no overflow, which sums of integers have after 2^31 rows of the greatest
    /// of them at the earliest.
    pub fn cannot_raise(self, argument: Option<PgType>) -> bool {
        match self {
            Self::StringAgg | Self::Mode => true,
            // Of arrays, of different bounds.
            Self::ArrayAgg => !matches!(argument, Some(PgType::Array(_))),
            // Months, days and microseconds of intervals have ends, too.
            Self::Sum | Self::Avg => !matches!(argument, Some(PgType::Float4 | PgType::Float8 | PgType::Interval)),
            _ => self.is_plain(),
        }
    }

    /// Whether the result over arguments of that type, to the last bit, depends on the order in which values are taken in.
    pub fn depends_on_order(self, argument: Option<PgType>) -> bool {
        match self {
            Self::Sum | Self::Avg | Self::Spread(_) => matches!(argument, Some(PgType::Float4 | PgType::Float8)),
            _ => !self.is_plain(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    VarSamp,
    VarPop,
    StddevSamp,
    StddevPop,
}

/// Of pairs (Y, X).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Regression {
    Corr,
    CovarPop,
    CovarSamp,
    AvgX,
    AvgY,
    Intercept,
    R2,
    Slope,
    Sxx,
    Sxy,
    Syy,
}

/// What is computed over a window and is no aggregate (PostgreSQL: windowfuncs.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
}

/// The window function of that name.
pub fn window_function(name: &str) -> Option<WindowFunction> {
    Some(match name {
        "row_number" => WindowFunction::RowNumber,
        "rank" => WindowFunction::Rank,
        "dense_rank" => WindowFunction::DenseRank,
        "percent_rank" => WindowFunction::PercentRank,
        "cume_dist" => WindowFunction::CumeDist,
        "ntile" => WindowFunction::Ntile,
        "lag" => WindowFunction::Lag,
        "lead" => WindowFunction::Lead,
        "first_value" => WindowFunction::FirstValue,
        "last_value" => WindowFunction::LastValue,
        "nth_value" => WindowFunction::NthValue,
        _ => return None,
    })
}

/// One aggregate over one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    pub name: &'static str,
    pub function: AggregateFunction,
    /// None: any type (`count(x)`), or no argument at all (`count(*)`, [`AggregateFunction::CountStar`]).
    pub argument: Option<PgType>,
    /// Further arguments.
    pub extra: &'static [PgType],
    pub result: PgType,
}

impl Aggregate {
    /// Written with WITHIN GROUP.
    pub fn is_ordered_set(&self) -> bool {
        matches!(
            self.function,
            AggregateFunction::PercentileCont | AggregateFunction::PercentileDisc | AggregateFunction::Mode
        )
    }
}

/// The aggregates of that name, each type that the engine holds; empty if it is none, or none that is computed here.
/// Over other types PostgreSQL has more (money, oid, arrays...): an argument that is an untyped literal goes upstream.
pub fn aggregates(name: &str) -> &'static [&'static Aggregate] {
    LISTS.iter().find(|list| list.first().is_some_and(|first| first.name == name)).copied().unwrap_or(&[])
}

/// Every aggregate, for reports.
pub fn all_aggregates() -> impl Iterator<Item = &'static Aggregate> {
    LISTS.iter().flat_map(|list| list.iter().copied())
}

macro_rules! aggregate_list {
    ($name:literal, $function:ident: $($argument:ident => $result:ident),+) => {
        &[$(&Aggregate {
            name: $name,
            function: AggregateFunction::$function,
            argument: Some(PgType::$argument),
            extra: &[],
            result: PgType::$result,
        }),+]
    };
}

/// float8 or numeric, by the argument.
macro_rules! spread_list {
    ($name:literal, $spread:ident) => {
        &[
            &spread($name, Spread::$spread, PgType::Int8, PgType::Numeric),
            &spread($name, Spread::$spread, PgType::Int4, PgType::Numeric),
            &spread($name, Spread::$spread, PgType::Int2, PgType::Numeric),
            &spread($name, Spread::$spread, PgType::Float4, PgType::Float8),
            &spread($name, Spread::$spread, PgType::Float8, PgType::Float8),
            &spread($name, Spread::$spread, PgType::Numeric, PgType::Numeric),
        ]
    };
}

const fn spread(name: &'static str, spread: Spread, argument: PgType, result: PgType) -> Aggregate {
    Aggregate { name, function: AggregateFunction::Spread(spread), argument: Some(argument), extra: &[], result }
}

const fn pair(name: &'static str, function: AggregateFunction, result: PgType) -> Aggregate {
    Aggregate { name, function, argument: Some(PgType::Float8), extra: &[PgType::Float8], result }
}

/// Of exactly this type: `anynonarray` takes what it is given.
const fn array_agg(element: Element) -> Aggregate {
    Aggregate {
        name: "array_agg",
        function: AggregateFunction::ArrayAgg,
        argument: Some(ARRAY_ELEMENTS[element as usize]),
        extra: &[],
        result: PgType::Array(element),
    }
}

/// `Element::pg_type`, for constants.
const ARRAY_ELEMENTS: [PgType; 17] = [
    PgType::Bool,
    PgType::Int2,
    PgType::Int4,
    PgType::Int8,
    PgType::Float4,
    PgType::Float8,
    PgType::Numeric,
    PgType::Text,
    PgType::Varchar,
    PgType::Date,
    PgType::Timestamp,
    PgType::Timestamptz,
    PgType::Uuid,
    PgType::Inet,
    PgType::Cidr,
    PgType::Json,
    PgType::Jsonb,
];

macro_rules! regression_list {
    ($name:literal, $regression:ident) => {
        &[&pair($name, AggregateFunction::Regression(Regression::$regression), PgType::Float8)]
    };
}

/// Of every type that has an order, with a value of the same type as the result.
macro_rules! ordered_list {
    ($name:literal, $function:ident) => {
        aggregate_list!($name, $function:
            Int2 => Int2, Int4 => Int4, Int8 => Int8, Float4 => Float4, Float8 => Float8, Numeric => Numeric,
            Text => Text, Varchar => Varchar, Bpchar => Bpchar, Date => Date, Time => Time, Timestamp => Timestamp,
            Timestamptz => Timestamptz, Interval => Interval, Bool => Bool, Uuid => Uuid, Inet => Inet,
            Cidr => Cidr)
    };
}

/// One list per name.
static LISTS: &[&[&Aggregate]] = &[
    &[
        &Aggregate {
            name: "count",
            function: AggregateFunction::CountStar,
            argument: None,
            extra: &[],
            result: PgType::Int8,
        },
        &Aggregate {
            name: "count",
            function: AggregateFunction::Count,
            argument: None,
            extra: &[],
            result: PgType::Int8,
        },
    ],
    aggregate_list!("sum", Sum:
        Int8 => Numeric, Int4 => Int8, Int2 => Int8, Float4 => Float4, Float8 => Float8, Interval => Interval,
        Numeric => Numeric),
    aggregate_list!("avg", Avg:
        Int8 => Numeric, Int4 => Numeric, Int2 => Numeric, Numeric => Numeric, Float4 => Float8, Float8 => Float8,
        Interval => Interval),
    aggregate_list!("min", Min:
        Int8 => Int8, Int4 => Int4, Int2 => Int2, Float4 => Float4, Float8 => Float8, Date => Date, Time => Time,
        Timestamp => Timestamp, Timestamptz => Timestamptz, Interval => Interval, Text => Text, Numeric => Numeric,
        Bpchar => Bpchar, Inet => Inet),
    aggregate_list!("max", Max:
        Int8 => Int8, Int4 => Int4, Int2 => Int2, Float4 => Float4, Float8 => Float8, Date => Date, Time => Time,
        Timestamp => Timestamp, Timestamptz => Timestamptz, Interval => Interval, Text => Text, Numeric => Numeric,
        Bpchar => Bpchar, Inet => Inet),
    aggregate_list!("bool_and", BoolAnd: Bool => Bool),
    aggregate_list!("bit_and", BitAnd: Int2 => Int2, Int4 => Int4, Int8 => Int8),
    aggregate_list!("bit_or", BitOr: Int2 => Int2, Int4 => Int4, Int8 => Int8),
    aggregate_list!("bit_xor", BitXor: Int2 => Int2, Int4 => Int4, Int8 => Int8),
    aggregate_list!("every", BoolAnd: Bool => Bool),
    aggregate_list!("bool_or", BoolOr: Bool => Bool),
    &[&Aggregate {
        name: "string_agg",
        function: AggregateFunction::StringAgg,
        argument: Some(PgType::Text),
        extra: &[PgType::Text],
        result: PgType::Text,
    }],
    &[
        &array_agg(Element::Bool),
        &array_agg(Element::Int2),
        &array_agg(Element::Int4),
        &array_agg(Element::Int8),
        &array_agg(Element::Float4),
        &array_agg(Element::Float8),
        &array_agg(Element::Numeric),
        &array_agg(Element::Text),
        &array_agg(Element::Varchar),
        &array_agg(Element::Date),
        &array_agg(Element::Timestamp),
        &array_agg(Element::Timestamptz),
        &array_agg(Element::Uuid),
        &array_agg(Element::Inet),
        &array_agg(Element::Cidr),
        &array_agg(Element::Json),
        &array_agg(Element::Jsonb),
    ],
    spread_list!("variance", VarSamp),
    spread_list!("var_samp", VarSamp),
    spread_list!("var_pop", VarPop),
    spread_list!("stddev", StddevSamp),
    spread_list!("stddev_samp", StddevSamp),
    spread_list!("stddev_pop", StddevPop),
    aggregate_list!("percentile_cont", PercentileCont: Float8 => Float8, Interval => Interval),
    ordered_list!("percentile_disc", PercentileDisc),
    ordered_list!("mode", Mode),
    &[&pair("regr_count", AggregateFunction::RegrCount, PgType::Int8)],
    regression_list!("corr", Corr),
    regression_list!("covar_pop", CovarPop),
    regression_list!("covar_samp", CovarSamp),
    regression_list!("regr_avgx", AvgX),
    regression_list!("regr_avgy", AvgY),
    regression_list!("regr_intercept", Intercept),
    regression_list!("regr_r2", R2),
    regression_list!("regr_slope", Slope),
    regression_list!("regr_sxx", Sxx),
    regression_list!("regr_sxy", Sxy),
    regression_list!("regr_syy", Syy),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_pg_aggregate() {
        let result = |name, argument| aggregates(name).iter().find(|a| a.argument == Some(argument)).map(|a| a.result);
        assert_eq!(result("sum", PgType::Int4), Some(PgType::Int8));
        assert_eq!(result("sum", PgType::Int8), Some(PgType::Numeric));
        assert_eq!(result("sum", PgType::Float4), Some(PgType::Float4));
        assert_eq!(result("avg", PgType::Float4), Some(PgType::Float8));
        assert_eq!(result("max", PgType::Bpchar), Some(PgType::Bpchar));
        assert_eq!(result("max", PgType::Bool), None);
        assert_eq!(aggregates("count").len(), 2);
        assert_eq!(result("array_agg", PgType::Date), Some(PgType::Array(Element::Date)));
        assert!(
            aggregates("array_agg")
                .iter()
                .all(|a| a.argument == Element::of(a.argument.unwrap()).map(Element::pg_type))
        );
        assert_eq!(result("stddev", PgType::Int4), Some(PgType::Numeric));
    }
}
