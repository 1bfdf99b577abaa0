//! Aggregates: names, argument and result types. Their execution is the executor's.
//!
//! Source of the table: PostgreSQL's pg_aggregate.dat and pg_proc.dat. An argument of another type (varchar, name...)
//! is first coerced by the rules for functions: max(varchar) is max(text).

use crate::types::PgType;

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
}

/// One aggregate over one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    pub name: &'static str,
    pub function: AggregateFunction,
    /// None: any type (`count(x)`), or no argument at all (`count(*)`, [`AggregateFunction::CountStar`]).
    pub argument: Option<PgType>,
    pub result: PgType,
}

/// The aggregates of that name, each type that the engine holds; empty if it is none, or none that is computed here.
/// Over other types PostgreSQL has more (money, oid, arrays...): an argument that is an untyped literal goes upstream.
pub fn aggregates(name: &str) -> &'static [&'static Aggregate] {
    match name {
        "count" => BY_NAME.count,
        "sum" => BY_NAME.sum,
        "avg" => BY_NAME.avg,
        "min" => BY_NAME.min,
        "max" => BY_NAME.max,
        "bool_and" => BY_NAME.bool_and,
        "every" => BY_NAME.every,
        "bool_or" => BY_NAME.bool_or,
        _ => &[],
    }
}

struct ByName {
    count: &'static [&'static Aggregate],
    sum: &'static [&'static Aggregate],
    avg: &'static [&'static Aggregate],
    min: &'static [&'static Aggregate],
    max: &'static [&'static Aggregate],
    bool_and: &'static [&'static Aggregate],
    every: &'static [&'static Aggregate],
    bool_or: &'static [&'static Aggregate],
}

macro_rules! aggregate_list {
    ($name:literal, $function:ident: $($argument:ident => $result:ident),+) => {
        &[$(&Aggregate {
            name: $name,
            function: AggregateFunction::$function,
            argument: Some(PgType::$argument),
            result: PgType::$result,
        }),+]
    };
}

static BY_NAME: ByName = ByName {
    count: &[
        &Aggregate { name: "count", function: AggregateFunction::CountStar, argument: None, result: PgType::Int8 },
        &Aggregate { name: "count", function: AggregateFunction::Count, argument: None, result: PgType::Int8 },
    ],
    sum: aggregate_list!("sum", Sum:
        Int8 => Numeric, Int4 => Int8, Int2 => Int8, Float4 => Float4, Float8 => Float8, Interval => Interval,
        Numeric => Numeric),
    avg: aggregate_list!("avg", Avg:
        Int8 => Numeric, Int4 => Numeric, Int2 => Numeric, Numeric => Numeric, Float4 => Float8, Float8 => Float8,
        Interval => Interval),
    min: aggregate_list!("min", Min:
        Int8 => Int8, Int4 => Int4, Int2 => Int2, Float4 => Float4, Float8 => Float8, Date => Date, Time => Time,
        Timestamp => Timestamp, Timestamptz => Timestamptz, Interval => Interval, Text => Text, Numeric => Numeric,
        Bpchar => Bpchar),
    max: aggregate_list!("max", Max:
        Int8 => Int8, Int4 => Int4, Int2 => Int2, Float4 => Float4, Float8 => Float8, Date => Date, Time => Time,
        Timestamp => Timestamp, Timestamptz => Timestamptz, Interval => Interval, Text => Text, Numeric => Numeric,
        Bpchar => Bpchar),
    bool_and: aggregate_list!("bool_and", BoolAnd: Bool => Bool),
    every: aggregate_list!("every", BoolAnd: Bool => Bool),
    bool_or: aggregate_list!("bool_or", BoolOr: Bool => Bool),
};

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
        assert!(aggregates("string_agg").is_empty());
    }
}
