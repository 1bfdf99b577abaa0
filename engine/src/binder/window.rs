//! Window functions: transformWindowFuncCall, transformWindowDefinitions.

use crate::binder::coerce::{Needs, check_comparable, check_groupable, is_collatable};
use crate::binder::expression::{Clause, Level, unknown_function};
use crate::binder::relation::{WINDOW_BASE, any_column};
use crate::binder::typed::{CollationStrength, Typed, has_column};
use crate::binder::{
    Binder, Bound, BoundExpr, ExprType, FrameBound, SortKey, WindowCall, WindowFrame, WindowKind, unsupported,
};
use crate::catalog::Collation;
use crate::catalog::functions::{Aggregate, CastContext, WindowFunction, window_function};
use crate::reason::UpstreamReason;
use crate::statement::ast::{self, Call, Expr, Frame, FrameUnit, OrderItem, Over, Window};
use crate::types::{PgType, Value};

impl Binder<'_> {
    pub(super) fn window_call(
        &mut self,
        level: &mut Level,
        call: &Call,
        over: &Over,
        aggregates: &'static [&'static Aggregate],
    ) -> Bound<Typed> {
        let is_misplaced = !matches!(level.clause, Clause::Target | Clause::OrderBy)
            || level.inside_aggregate
            || level.inside_window
            || call.is_distinct
            || !call.order_by.is_empty()
            || !call.within_group.is_empty();
        if is_misplaced {
            return Err(unsupported("window function in this place"));
        }
        level.inside_window = true;
        let (function, arguments, filter, typed) = match window_function(&call.name) {
            Some(function) if aggregates.is_empty() => {
                if call.filter.is_some() || call.is_star || self.is_contested(call) {
                    return Err(unsupported("window function in this form"));
                }
                let (arguments, typed) = self.window_arguments(level, call, function)?;
                (WindowKind::Function(function), arguments, None, typed)
            }
            _ if aggregates.is_empty() => return Err(unknown_function(call, &[])),
            _ => {
                let (aggregate, strength) = self.aggregate_call(level, call, aggregates)?;
                let typed = (aggregate.expr_type, strength);
                let arguments = aggregate.argument.into_iter().chain(aggregate.extra).collect();
                (WindowKind::Aggregate(aggregate.function), arguments, aggregate.filter, typed)
            }
        };
        let window = self.window_named(level, over)?;
        let partition = self.partition(level, &window.partition_by)?;
        let order = self.window_order(level, &window.order_by)?;
        let frame = self.window_frame(level, window.frame.as_ref(), order.is_empty())?;
        level.inside_window = false;
        let (expr_type, strength) = typed;
        level.windows.push(WindowCall { function, arguments, filter, partition, order, frame, expr_type });
        let expr = BoundExpr::Column { index: WINDOW_BASE + level.windows.len() - 1, expr_type };
        Ok(Typed { expr, expr_type, strength, origin: None })
    }

    /// The arguments as the function takes them, and the result's type.
    fn window_arguments(
        &mut self,
        level: &mut Level,
        call: &Call,
        function: WindowFunction,
    ) -> Bound<(Vec<BoundExpr>, (ExprType, CollationStrength))> {
        let mut arguments = self.expressions(level, &call.arguments)?;
        let plain = |pg_type| (ExprType { pg_type, typmod: -1, collation: Collation::None }, CollationStrength::None);
        let wrong = |arguments: &[Typed]| unknown_function(call, arguments);
        use WindowFunction as F;
        match function {
            F::RowNumber | F::Rank | F::DenseRank | F::PercentRank | F::CumeDist => {
                if !arguments.is_empty() {
                    return Err(wrong(&arguments));
                }
                let is_share = matches!(function, F::PercentRank | F::CumeDist);
                Ok((Vec::new(), plain(if is_share { PgType::Float8 } else { PgType::Int8 })))
            }
            F::Ntile => {
                let [_] = arguments.as_slice() else { return Err(wrong(&arguments)) };
                let buckets = self.coerce(arguments.remove(0), PgType::Int4, CastContext::Implicit)?;
                Ok((vec![buckets.expr], plain(PgType::Int4)))
            }
            F::FirstValue | F::LastValue if arguments.len() == 1 => self.valued(arguments),
            F::NthValue if arguments.len() == 2 => self.valued(arguments),
            F::Lag | F::Lead if (1..=3).contains(&arguments.len()) => {
                if arguments.len() == 3 {
                    // anycompatible: the value and the default have one type.
                    let offset = arguments.remove(1);
                    let (unified, _, _) = self.unify(arguments)?;
                    arguments = unified;
                    arguments.insert(1, offset);
                }
                self.valued(arguments)
            }
            F::FirstValue | F::LastValue | F::NthValue | F::Lag | F::Lead => Err(wrong(&arguments)),
        }
    }

    /// A value of any type, then an int4, then the default.
    fn valued(&mut self, arguments: Vec<Typed>) -> Bound<(Vec<BoundExpr>, (ExprType, CollationStrength))> {
        if arguments[0].is_unknown() {
            return Err(unsupported("window function of an untyped value"));
        }
        let value = arguments[0].clone();
        let mut bound = Vec::with_capacity(arguments.len());
        for (position, argument) in arguments.into_iter().enumerate() {
            let argument =
                if position == 1 { self.coerce(argument, PgType::Int4, CastContext::Implicit)? } else { argument };
            bound.push(argument.expr);
        }
        let collation = match is_collatable(value.pg_type()) {
            true => self.input_collation(&[&value], value.pg_type())?.0,
            false => Collation::None,
        };
        let strength = if collation == Collation::None { CollationStrength::None } else { CollationStrength::Implicit };
        Ok((bound, (ExprType { pg_type: value.pg_type(), typmod: -1, collation }, strength)))
    }

    /// The window that OVER means; one that is built on another takes its partition and, unless it has its own, its order.
    fn window_named(&self, level: &Level, over: &Over) -> Bound<Window> {
        let find = |name: &String| {
            let found = level.named_windows.iter().find(|(known, _)| known == name);
            found.map(|(_, window)| window).ok_or_else(|| UpstreamReason::UnknownRelation(name.clone().into()))
        };
        match over {
            Over::Name(name) => self.window_based(level, find(name)?, 0),
            Over::Window(window) => self.window_based(level, window, 0),
        }
    }

    fn window_based(&self, level: &Level, window: &Window, depth: usize) -> Bound<Window> {
        let Some(base) = &window.base else { return Ok(window.clone()) };
        let found = level.named_windows.iter().position(|(known, _)| known == base);
        let Some(found) = found.filter(|_| depth < 16) else {
            return Err(UpstreamReason::UnknownRelation(base.clone().into()));
        };
        let base = self.window_based(level, &level.named_windows[found].1, depth + 1)?;
        let overrides = !window.partition_by.is_empty() || (!window.order_by.is_empty() && !base.order_by.is_empty());
        if overrides || base.frame.is_some() {
            return Err(unsupported("window that overrides another"));
        }
        let order_by = if window.order_by.is_empty() { base.order_by } else { window.order_by.clone() };
        Ok(Window { base: None, partition_by: base.partition_by, order_by, frame: window.frame.clone() })
    }

    fn partition(&mut self, level: &mut Level, items: &[Expr]) -> Bound<Vec<BoundExpr>> {
        let mut partition = Vec::new();
        for item in items {
            let typed = self.sorted_on(level, item)?;
            check_groupable(typed.expr_type, "PARTITION BY")?;
            partition.push(typed.expr);
        }
        Ok(partition)
    }

    fn window_order(&mut self, level: &mut Level, items: &[OrderItem]) -> Bound<Vec<SortKey>> {
        let mut order = Vec::new();
        for item in items {
            let typed = self.sorted_on(level, &item.expr)?;
            check_comparable(typed.expr_type, Needs::Order, "ORDER BY of a window")?;
            order.push(SortKey {
                expr: typed.expr,
                descending: item.descending,
                nulls_first: item.nulls_first.unwrap_or(item.descending),
            });
        }
        Ok(order)
    }

    /// An expression by SQL99's rules: neither an output column's name nor its number.
    fn sorted_on(&mut self, level: &mut Level, expr: &Expr) -> Bound<Typed> {
        let typed = self.expression(level, expr)?;
        if typed.is_unknown() { self.coerce(typed, PgType::Text, CastContext::Implicit) } else { Ok(typed) }
    }

    fn window_frame(&mut self, level: &mut Level, frame: Option<&Frame>, is_unordered: bool) -> Bound<WindowFrame> {
        let Some(Frame { unit, start, end }) = frame else {
            return Ok(WindowFrame {
                unit: FrameUnit::Range,
                start: FrameBound::UnboundedPreceding,
                end: FrameBound::CurrentRow,
            });
        };
        let rank = |bound: &ast::FrameBound| match bound {
            ast::FrameBound::UnboundedPreceding => 0,
            ast::FrameBound::Preceding(_) => 1,
            ast::FrameBound::CurrentRow => 2,
            ast::FrameBound::Following(_) => 3,
            ast::FrameBound::UnboundedFollowing => 4,
        };
        if rank(start) == 4 || rank(end) == 0 || (rank(start) >= 2 && rank(end) < rank(start)) {
            return Err(unsupported("frame that cannot be"));
        }
        if *unit == FrameUnit::Groups && is_unordered {
            return Err(unsupported("GROUPS without ORDER BY"));
        }
        let has_distance = [rank(start), rank(end)].iter().any(|rank| matches!(rank, 1 | 3));
        if *unit == FrameUnit::Range && has_distance {
            return Err(unsupported("RANGE with a distance"));
        }
        Ok(WindowFrame { unit: *unit, start: self.frame_bound(level, start)?, end: self.frame_bound(level, end)? })
    }

    fn frame_bound(&mut self, level: &mut Level, bound: &ast::FrameBound) -> Bound<FrameBound> {
        Ok(match bound {
            ast::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            ast::FrameBound::CurrentRow => FrameBound::CurrentRow,
            ast::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
            ast::FrameBound::Preceding(distance) => FrameBound::Preceding(self.distance(level, distance)?),
            ast::FrameBound::Following(distance) => FrameBound::Following(self.distance(level, distance)?),
        })
    }

    fn distance(&mut self, level: &mut Level, expr: &Expr) -> Bound<BoundExpr> {
        let typed = self.expression(level, expr)?;
        let distance = match typed.expr {
            BoundExpr::Literal { value: Value::Int4(distance), .. } => {
                let (expr_type, _) = self.plain_type(PgType::Int8)?;
                BoundExpr::Literal { value: Value::Int8(distance.into()), expr_type }
            }
            _ => self.coerce(typed, PgType::Int8, CastContext::Assignment)?.expr,
        };
        if has_column(&distance) || any_column(&distance, &|_| true) {
            return Err(unsupported("frame that differs by row"));
        }
        Ok(distance)
    }
}
