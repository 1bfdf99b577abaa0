//! Aggregates: transformAggregateCall.

use crate::binder::coerce::{Needs, check_blanks, check_comparable, check_groupable};
use crate::binder::expression::{Level, unknown_function};
use crate::binder::relation::{
    AGGREGATE_BASE, GROUPING_BASE, SUBQUERY_BASE, any_column, as_outer, has_outer, is_own_column,
};
use crate::binder::resolve;
use crate::binder::subquery::{Asked, Subquery};
use crate::binder::typed::{CollationStrength, Typed, has_column, is_same};
use crate::binder::{AggregateCall, Binder, Bound, BoundExpr, ExprType, SortKey, unsupported};
use crate::catalog::Collation;
use crate::catalog::functions::{Aggregate, AggregateFunction, CastContext};
use crate::statement::ast::{Call, Expr, OrderItem};
use crate::types::{Element, PgType};

/// What stands in an aggregate's call.
pub(super) struct Parts {
    pub(super) arguments: Vec<Typed>,
    pub(super) filter: Option<BoundExpr>,
    pub(super) order: Vec<(Typed, SortKey)>,
}

impl Level {
    /// The aggregate's result; equal ones are computed once.
    pub(super) fn aggregated(&mut self, aggregate: AggregateCall, strength: CollationStrength) -> Typed {
        let expr_type = aggregate.expr_type;
        let known = self.aggregates.iter().position(|earlier| is_same_aggregate(earlier, &aggregate));
        let position = known.unwrap_or_else(|| {
            self.aggregates.push(aggregate);
            self.aggregates.len() - 1
        });
        let expr = BoundExpr::Column { index: AGGREGATE_BASE + position, expr_type };
        Typed { expr, expr_type, strength, origin: None }
    }
}

/// A constant, or parameter, that has the type that is asked of it.
pub(super) fn is_untyped_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::String(_) | Expr::Null | Expr::Parameter(_))
}

impl Binder<'_> {
    pub(super) fn aggregate(
        &mut self,
        level: &mut Level,
        call: &Call,
        known: &'static [&'static Aggregate],
    ) -> Bound<Typed> {
        if !level.clause.allows_aggregates() {
            return Err(unsupported("aggregate in this place"));
        }
        // A row that is there is never NULL, whatever its columns are.
        let may_be_row = call.name == "count" && !call.is_distinct && !self.is_contested(call);
        let row = if may_be_row { self.counted_row(level, &call.arguments)? } else { None };
        let star = row.as_ref().map(|_| Call { arguments: Vec::new(), is_star: true, ..call.clone() });
        let (mut aggregate, strength) = self.aggregate_call(level, star.as_ref().unwrap_or(call), known)?;
        if let Some(Some(mark)) = row {
            let is_there = BoundExpr::IsNull { operand: Box::new(mark), negated: true };
            aggregate.filter = Some(match aggregate.filter {
                Some(filter) => BoundExpr::And(vec![filter, is_there]),
                None => is_there,
            });
        }
        Ok(level.aggregated(aggregate, strength))
    }

    /// The call with its arguments as the aggregate takes them.
    pub(super) fn aggregate_call(
        &mut self,
        level: &mut Level,
        call: &Call,
        known: &'static [&'static Aggregate],
    ) -> Bound<(AggregateCall, CollationStrength)> {
        // Of a polymorphic one the type cannot be told.
        if call.within_group.iter().any(|item| is_untyped_constant(&item.expr)) {
            return Err(unsupported("aggregate of a constant of unknown type"));
        }
        let parts = self.aggregate_parts(level, call, |binder, level| match call.arguments.as_slice() {
            // Fractions, of whatever numbers, become float8 one by one (ArrayCoerceExpr); texts would not.
            [Expr::Array(items)]
                if !call.within_group.is_empty() && !items.iter().any(|item| matches!(item, Expr::String(_))) =>
            {
                Ok(vec![binder.array_of(level, items, Some((Element::Float8, -1)))?])
            }
            [Expr::Row { items, .. }] if call.name == "count" && call.is_distinct && !binder.is_contested(call) => {
                Ok(vec![binder.row_as_key(level, items)?])
            }
            arguments => binder.expressions(level, arguments),
        })?;
        let Parts { arguments, filter, order } = parts;
        let mut bound = match call.within_group.is_empty() {
            true => self.plain_aggregate(call, arguments, order, known)?,
            false => self.ordered_set(call, arguments, order, known)?,
        };
        bound.0.filter = filter;
        Ok(bound)
    }

    /// What stands in the call; `bind` gives its arguments.
    pub(super) fn aggregate_parts(
        &mut self,
        level: &mut Level,
        call: &Call,
        bind: impl FnOnce(&mut Self, &mut Level) -> Bound<Vec<Typed>>,
    ) -> Bound<Parts> {
        // Over a window the arguments may be aggregates of the grouped rows.
        let is_window = call.over.is_some();
        if level.inside_aggregate || level.inside_filter {
            return Err(unsupported("aggregate in this place"));
        }
        level.inside_aggregate = !is_window;
        let earlier = level.subqueries.len();
        let arguments = bind(self, level)?;
        level.inside_filter = true;
        let filter = call.filter.as_ref().map(|filter| self.condition(level, filter)).transpose()?;
        level.inside_filter = false;
        let order =
            self.order_within(level, if call.within_group.is_empty() { &call.order_by } else { &call.within_group })?;
        level.inside_aggregate = false;
        let parts = Parts { arguments, filter, order };
        // A separator or a fraction of an outer query's is not known here, whatever the aggregate belongs to.
        let names_outer_only = |argument: &Typed| has_outer(&argument.expr) && !has_column(&argument.expr);
        if parts.arguments.iter().any(names_outer_only) || self.is_of_outer(&parts, &mut level.subqueries[earlier..]) {
            return Err(unsupported("aggregate of an outer query"));
        }
        Ok(parts)
    }

    /// Whether the aggregate is one of a query further out: it names columns, in its own subqueries too, but none of this level
    /// (parse_agg.c, check_agg_arguments).
    fn is_of_outer(&self, parts: &Parts, subqueries: &mut [Subquery]) -> bool {
        let own_level = self.outer.len();
        let arguments = parts.arguments.iter().map(|argument| &argument.expr);
        let mut exprs = arguments.chain(&parts.filter).chain(parts.order.iter().map(|(_, key)| &key.expr));
        let is_answer = |index: usize| (SUBQUERY_BASE..GROUPING_BASE).contains(&index);
        let is_own = |index: usize| as_outer(index).is_none() && !is_answer(index);
        let mut names_own = exprs.clone().any(|expr| any_column(expr, &is_own));
        let mut names_outer = exprs.any(has_outer);
        for Subquery { relation, kind, .. } in subqueries {
            let mut names = |test: &dyn Fn(usize) -> bool| {
                relation
                    .any_expression(&|expr| any_column(expr, &|at| as_outer(at).is_some_and(|(level, _)| test(level))))
            };
            names_own |= names(&|level| level == own_level);
            names_outer |= names(&|level| level < own_level);
            if let Asked::In(comparison) = kind {
                names_own |= any_column(comparison, &is_own_column);
                names_outer |= has_outer(comparison);
            }
        }
        names_outer && !names_own
    }

    fn order_within(&mut self, level: &mut Level, items: &[OrderItem]) -> Bound<Vec<(Typed, SortKey)>> {
        let mut keys = Vec::new();
        for item in items {
            let typed = self.expression(level, &item.expr)?;
            let typed =
                if typed.is_unknown() { self.coerce(typed, PgType::Text, CastContext::Implicit)? } else { typed };
            check_comparable(typed.expr_type, Needs::Order, "ORDER BY of an aggregate")?;
            let key = SortKey {
                expr: typed.expr.clone(),
                descending: item.descending,
                nulls_first: item.nulls_first.unwrap_or(item.descending),
            };
            keys.push((typed, key));
        }
        Ok(keys)
    }

    fn plain_aggregate(
        &mut self,
        call: &Call,
        arguments: Vec<Typed>,
        order: Vec<(Typed, SortKey)>,
        known: &'static [&'static Aggregate],
    ) -> Bound<(AggregateCall, CollationStrength)> {
        if let Some(extreme) = self.enum_extreme(call, &arguments) {
            if call.is_distinct && !order.is_empty() {
                return Err(unsupported("DISTINCT aggregate of an enum in an order"));
            }
            let (aggregate, strength) = extreme?;
            let order = order.into_iter().map(|(_, key)| key).collect();
            return Ok((AggregateCall { order, ..aggregate }, strength));
        }
        let chosen =
            self.chosen_aggregate(call, &arguments, known).ok_or_else(|| unknown_function(call, &arguments))?;
        let mut arguments = arguments.into_iter();
        let argument = match (arguments.next(), chosen.argument) {
            (Some(argument), Some(to)) => Some(self.coerce(argument, to, CastContext::Implicit)?),
            (argument, _) => argument,
        };
        let mut extra = Vec::new();
        for (argument, to) in arguments.zip(chosen.extra) {
            extra.push(self.coerce(argument, *to, CastContext::Implicit)?);
        }
        if let (AggregateFunction::ArrayAgg, Some(argument)) = (chosen.function, &argument) {
            self.kept_domains.push(argument.pg_type());
            self.check_element_collation(argument.expr_type.collation)?;
        }
        let inputs: Vec<&Typed> = argument.iter().chain(&extra).collect();
        let (collation, strength) = match inputs.is_empty() {
            true => (Collation::None, CollationStrength::None),
            false => self.input_collation(&inputs, chosen.result)?,
        };
        let mut keys: Vec<SortKey> = order.into_iter().map(|(_, key)| key).collect();
        if let Some(argument) = &argument {
            if call.is_distinct {
                check_groupable(argument.expr_type, "DISTINCT aggregate")?;
            }
            if matches!(chosen.function, AggregateFunction::Min | AggregateFunction::Max) {
                check_comparable(argument.expr_type, Needs::Order, "aggregate")?;
                check_blanks(argument.expr_type, "aggregate")?;
            }
            // Rows are told apart by all arguments (nodeAgg.c, process_ordered_aggregate_multi).
            if call.is_distinct && chosen.function == AggregateFunction::RegrCount {
                return Err(unsupported("DISTINCT over several arguments"));
            }
            if call.is_distinct && (depends_on_order(chosen) || !keys.is_empty()) {
                self.order_distinct(argument, &extra, &mut keys)?;
            }
        }
        // These are what is taken in.
        if call.is_distinct && !depends_on_order(chosen) {
            keys.clear();
        }
        let expr_type = ExprType { pg_type: chosen.result, typmod: -1, collation };
        let aggregate = AggregateCall {
            function: chosen.function,
            argument: argument.map(|argument| argument.expr),
            extra: extra.into_iter().map(|argument| argument.expr).collect(),
            is_distinct: call.is_distinct,
            order: keys,
            filter: None,
            expr_type,
        };
        Ok((aggregate, strength))
    }

    /// DISTINCT sorts by the arguments, those that ORDER BY names first (transformDistinctClause), and takes the values in
    /// in that order.
    pub(super) fn order_distinct(&self, argument: &Typed, extra: &[Typed], keys: &mut Vec<SortKey>) -> Bound<()> {
        // findTargetlistEntrySQL99 looks through an implicit cast of the argument's: varchar to text.
        for key in keys.iter_mut().filter(|key| key.expr.expr_type().pg_type == PgType::Varchar) {
            let mut as_argument = key.expr.clone();
            as_argument.relabel(argument.expr_type);
            if is_same(&as_argument, &argument.expr) {
                key.expr = as_argument;
            }
        }
        let is_argument =
            |key: &SortKey| is_same(&key.expr, &argument.expr) || extra.iter().any(|e| is_same(&key.expr, &e.expr));
        if !keys.iter().all(is_argument) {
            return Err(unsupported("DISTINCT aggregate in another order than its arguments'"));
        }
        if extra.iter().any(|extra| has_column(&extra.expr)) {
            return Err(unsupported("DISTINCT aggregate of several columns"));
        }
        if !keys.iter().any(|key| is_same(&key.expr, &argument.expr)) {
            check_comparable(argument.expr_type, Needs::Order, "DISTINCT aggregate")?;
            keys.push(SortKey { expr: argument.expr.clone(), descending: false, nulls_first: false });
        }
        Ok(())
    }

    /// `name(direct) WITHIN GROUP (ORDER BY value)`.
    fn ordered_set(
        &mut self,
        call: &Call,
        direct: Vec<Typed>,
        mut order: Vec<(Typed, SortKey)>,
        known: &'static [&'static Aggregate],
    ) -> Bound<(AggregateCall, CollationStrength)> {
        let (Some((value, key)), true) = (order.pop(), order.is_empty()) else {
            return Err(unsupported("WITHIN GROUP of several columns"));
        };
        if call.is_distinct || !call.order_by.is_empty() || self.is_contested(call) {
            return Err(unsupported("ordered-set aggregate in this form"));
        }
        let fractions = if call.name == "mode" { 0 } else { 1 };
        let from = value.pg_type();
        let exact = known.iter().find(|aggregate| aggregate.argument == Some(from));
        // The others take anyelement, and their result is of it: a name stays one.
        let is_converted = call.name == "percentile_cont";
        let by_cast = || {
            let takes = |aggregate: &&&Aggregate| {
                aggregate.argument.is_some_and(|to| resolve::is_implicitly_coercible(from, to))
            };
            let mut fitting = known.iter().filter(takes);
            fitting.next().filter(|_| fitting.next().is_none())
        };
        let chosen =
            exact.or_else(|| by_cast().filter(|_| is_converted)).copied().filter(|_| direct.len() == fractions);
        let chosen = chosen.ok_or_else(|| unknown_function(call, std::slice::from_ref(&value)))?;
        self.note_modifier(value.expr_type);
        let argument = self.coerce(value, chosen.argument.unwrap_or(from), CastContext::Implicit)?;
        let mut extra = Vec::new();
        let mut result = chosen.result;
        for fraction in direct {
            if fraction.is_unknown() && !is_converted {
                // As good a float8 as an array of them; which, hangs on what is sorted (parse_func.c, func_select_candidate).
                return Err(unsupported("percentile_disc of an untyped fraction"));
            }
            let fraction = match fraction.pg_type() {
                // An array of results, one for each.
                PgType::Array(_) => {
                    let element = Element::of(chosen.result);
                    let element = element.ok_or_else(|| unsupported("array of percentiles of such a type"))?;
                    self.check_element_collation(argument.expr_type.collation)?;
                    result = PgType::Array(element);
                    self.kept_domains.push(argument.pg_type());
                    self.coerce(fraction, PgType::Array(Element::Float8), CastContext::Implicit)?
                }
                _ => self.coerce(fraction, PgType::Float8, CastContext::Implicit)?,
            };
            if any_column(&fraction.expr, &|_| true) {
                return Err(unsupported("percentile that differs by row"));
            }
            extra.push(fraction.expr);
        }
        let (collation, strength) = self.input_collation(&[&argument], chosen.result)?;
        let expr_type = match result {
            PgType::Array(element) => self.array_type(element)?,
            pg_type => ExprType { pg_type, typmod: -1, collation },
        };
        let aggregate = AggregateCall {
            function: chosen.function,
            order: vec![SortKey { expr: argument.expr.clone(), ..key }],
            argument: Some(argument.expr),
            extra,
            is_distinct: false,
            filter: None,
            expr_type,
        };
        Ok((aggregate, strength))
    }

    /// The resolution for functions, decided by the first argument; the others have one type in all candidates.
    fn chosen_aggregate(
        &self,
        call: &Call,
        arguments: &[Typed],
        known: &'static [&'static Aggregate],
    ) -> Option<&'static Aggregate> {
        let known = known.iter().copied();
        if call.is_star {
            let is_plain = arguments.is_empty() && !call.is_distinct && call.order_by.is_empty();
            return known.into_iter().find(|aggregate| is_plain && aggregate.function == AggregateFunction::CountStar);
        }
        let (argument, others) = arguments.split_first()?;
        let fits_others = |aggregate: &&'static Aggregate| {
            aggregate.extra.len() == others.len()
                && !aggregate.is_ordered_set()
                && others
                    .iter()
                    .zip(aggregate.extra)
                    .all(|(other, to)| resolve::is_implicitly_coercible(other.pg_type(), *to))
        };
        let known = known.filter(fits_others);
        // Over an untyped argument other candidates than those known here take part.
        if argument.is_unknown() {
            return None;
        }
        let from = argument.pg_type();
        let types: Vec<PgType> = arguments.iter().map(Typed::pg_type).collect();
        let is_count = |aggregate: &&Aggregate| aggregate.function == AggregateFunction::Count;
        if let Some(exact) = known.clone().find(|aggregate| aggregate.argument == Some(from) || is_count(aggregate)) {
            // What takes any type is no exact match: a user's may be one.
            let is_any = is_count(&exact) || exact.function == AggregateFunction::ArrayAgg;
            let is_safe = !self.is_contested_for(call, &types) || (self.is_pg_catalog_first() && !is_any);
            return is_safe.then_some(exact);
        }
        if self.is_contested_for(call, &types) {
            return None;
        }
        let takes =
            // array_agg is polymorphic: its argument is not coerced.
            |aggregate: &&Aggregate| {
                aggregate.function != AggregateFunction::ArrayAgg
                    && aggregate.argument.is_some_and(|to| resolve::is_implicitly_coercible(from, to))
            };
        let applicable: Vec<_> = known.filter(takes).collect();
        let is_preferred = |aggregate: &&&Aggregate| {
            aggregate.argument.is_some_and(|to| to.is_preferred() && to.category() == from.category())
        };
        let preferred: Vec<_> = applicable.iter().filter(is_preferred).copied().collect();
        let remaining = if preferred.is_empty() { applicable } else { preferred };
        if let [only] = remaining.as_slice() { Some(only) } else { None }
    }

    /// `GROUPING(...)`: which of the expressions a grouping set leaves out.
    pub(super) fn grouping_call(&mut self, level: &mut Level, items: &[Expr]) -> Bound<Typed> {
        if !level.clause.allows_aggregates() || level.inside_aggregate || level.inside_filter || items.len() > 31 {
            return Err(unsupported("GROUPING in this place"));
        }
        let items = self.expressions(level, items)?.into_iter().map(|item| item.expr).collect();
        level.groupings.push(items);
        let expr_type = ExprType { pg_type: PgType::Int4, typmod: -1, collation: Collation::None };
        let index = GROUPING_BASE + level.groupings.len() - 1;
        Ok(Typed {
            expr: BoundExpr::Column { index, expr_type },
            expr_type,
            strength: CollationStrength::None,
            origin: None,
        })
    }
}

fn depends_on_order(aggregate: &Aggregate) -> bool {
    aggregate.function.depends_on_order(aggregate.argument)
}

fn is_same_aggregate(left: &AggregateCall, right: &AggregateCall) -> bool {
    let same = |left: &Option<BoundExpr>, right: &Option<BoundExpr>| match (left, right) {
        (Some(left), Some(right)) => is_same(left, right),
        (None, None) => true,
        _ => false,
    };
    let same_key = |(a, b): (&SortKey, &SortKey)| {
        a.descending == b.descending && a.nulls_first == b.nulls_first && is_same(&a.expr, &b.expr)
    };
    left.function == right.function
        && left.is_distinct == right.is_distinct
        && left.expr_type == right.expr_type
        && same(&left.argument, &right.argument)
        && same(&left.filter, &right.filter)
        && left.extra.len() == right.extra.len()
        && left.extra.iter().zip(&right.extra).all(|(a, b)| is_same(a, b))
        && left.order.len() == right.order.len()
        && left.order.iter().zip(&right.order).all(same_key)
}
