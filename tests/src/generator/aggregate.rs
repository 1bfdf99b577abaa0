//! Aggregates of a wanted type, out of the engine's table.

use freshet_engine::catalog::functions::{Aggregate, AggregateFunction, all_aggregates};
use freshet_engine::types::PgType;

use super::expression::is_grouped;
use super::grammar::{Grammar, Scope};
use super::sentence::{Kind, Sentence};

fn is_float(pg_type: Option<PgType>) -> bool {
    matches!(pg_type, Some(PgType::Float4 | PgType::Float8))
}

/// How an argument is chosen so that the order in which rows are added up does not show.
fn is_order_free(function: AggregateFunction) -> bool {
    use AggregateFunction as F;
    match function {
        F::CountStar | F::Count | F::Min | F::Max | F::BoolAnd | F::BoolOr | F::RegrCount => true,
        F::BitAnd | F::BitOr | F::BitXor => true,
        F::PercentileCont | F::PercentileDisc | F::Mode => true,
        F::Sum | F::Avg | F::Spread(_) | F::StringAgg | F::ArrayAgg | F::Regression(_) => false,
    }
}

impl Grammar<'_> {
    /// With FILTER, DISTINCT, ORDER BY and WITHIN GROUP. None: no aggregate gives such a value.
    pub fn aggregate(&mut self, levels: &[Scope], pg_type: PgType) -> Option<Sentence> {
        let call = match pg_type {
            PgType::Enum(_) => self.extreme_label(levels, pg_type),
            _ => {
                let aggregate = self.chosen(pg_type)?;
                self.aggregate_call(levels, aggregate, true)?
            }
        };
        if !self.dice.percent(15) {
            return Some(call);
        }
        let filter = self.predicate(levels, 0);
        Some(Sentence::new(Kind::Value(pg_type)).with(call).then(" FILTER (WHERE ").with(filter).then(")"))
    }

    fn extreme_label(&mut self, levels: &[Scope], of: PgType) -> Sentence {
        let name = *self.dice.pick(&["min(", "max("]);
        let argument = self.value(levels, of, 1);
        Sentence::text(Kind::Value(of), name).with(argument).then(")")
    }

    /// As a window takes it: without DISTINCT and ORDER BY.
    pub fn plain_aggregate(&mut self, levels: &[Scope], pg_type: PgType) -> Option<Sentence> {
        if matches!(pg_type, PgType::Enum(_)) {
            return Some(self.extreme_label(levels, pg_type));
        }
        let aggregate = self.chosen(pg_type)?;
        let takes_order = matches!(aggregate.function, AggregateFunction::StringAgg | AggregateFunction::ArrayAgg);
        if aggregate.is_ordered_set() || takes_order {
            return None;
        }
        self.aggregate_call(levels, aggregate, false)
    }

    fn chosen(&mut self, pg_type: PgType) -> Option<&'static Aggregate> {
        let able: Vec<&Aggregate> = all_aggregates().filter(|aggregate| aggregate.result == pg_type).collect();
        (!able.is_empty()).then(|| *self.dice.pick(&able))
    }

    fn aggregate_call(&mut self, levels: &[Scope], aggregate: &Aggregate, is_free: bool) -> Option<Sentence> {
        let kind = Kind::Value(aggregate.result);
        let name = aggregate.name;
        if aggregate.function == AggregateFunction::CountStar {
            return Some(Sentence::text(kind, "count(*)"));
        }
        let of = aggregate.argument.unwrap_or_else(|| *self.dice.pick(&*super::values::TYPES));
        let argument = match is_float(aggregate.argument) && !is_order_free(aggregate.function) {
            true => self.exact_float(levels, aggregate, of)?,
            false => self.value(levels, of, 1),
        };
        if aggregate.is_ordered_set() {
            let first = if aggregate.function == AggregateFunction::Mode {
                ""
            } else {
                *self.dice.pick(&["0.5", "0", "1", "0.25"])
            };
            let how = *self.dice.pick(&["", " DESC"]);
            return Some(
                Sentence::text(kind, format!("{name}({first}) WITHIN GROUP (ORDER BY "))
                    .with(argument)
                    .then(format!("{how})")),
            );
        }
        let is_distinct = is_free && is_grouped(of) && self.dice.percent(20);
        let call = Sentence::text(kind, format!("{name}({}", if is_distinct { "DISTINCT " } else { "" }));
        Some(match aggregate.function {
            // Equal texts are interchangeable, and so is the order among them.
            AggregateFunction::StringAgg => {
                let column = self.column(levels, PgType::Text)?;
                call.then(format!("{column}, ',' ORDER BY {column})"))
            }
            AggregateFunction::ArrayAgg => {
                let column = self.column(levels, of).filter(|_| is_grouped(of))?;
                call.then(format!("{column} ORDER BY {column} NULLS FIRST)"))
            }
            AggregateFunction::Regression(_) | AggregateFunction::RegrCount => {
                let second = self.exact_float(levels, aggregate, PgType::Float8)?;
                call.with(argument).then(", ").with(second).then(")")
            }
            _ => call.with(argument).then(")"),
        })
    }

    /// A column of small floats, whose sum is the same in any order; for what is not a sum, only where last bits are free.
    fn exact_float(&mut self, levels: &[Scope], aggregate: &Aggregate, of: PgType) -> Option<Sentence> {
        let is_sum = matches!(
            aggregate.function,
            AggregateFunction::Sum | AggregateFunction::Avg | AggregateFunction::RegrCount
        );
        if !is_sum && !self.allows_last_bits() {
            return None;
        }
        let scope = levels.last()?;
        let able: Vec<&String> =
            scope.iter().filter(|column| column.pg_type == of && column.is_exact).map(|column| &column.text).collect();
        if able.is_empty() {
            return None;
        }
        let text = (*self.dice.pick(&able)).clone();
        Some(Sentence::text(Kind::Value(of), text))
    }
}
