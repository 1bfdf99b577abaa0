//! Window functions: transformWindowFuncCall, transformWindowDefinitions.

use crate::binder::coerce::{Needs, check_comparable, check_groupable, is_collatable};
use crate::binder::expression::{Clause, Level, unknown_function};
use crate::binder::relation::{WINDOW_BASE, any_column};
use crate::binder::resolve::is_implicitly_coercible;
use crate::binder::typed::{CollationStrength, Typed, has_column};
use crate::binder::{
    Binder, Bound, BoundExpr, ExprType, FrameBound, SortKey, WindowCall, WindowFrame, WindowKind, unsupported,
};
use crate::catalog::Collation;
use crate::catalog::functions::{Aggregate, CastContext, WindowFunction, window_function};
use crate::reason::UpstreamReason;
use crate::statement::ast::{self, Call, Exclusion, Expr, Frame, FrameUnit, OrderItem, Over, Window};
use crate::types::{PgType, Value};

/// A window of the WINDOW clause.
pub(super) struct NamedWindow {
    name: String,
    window: Window,
    is_used: bool,
}

/// The WINDOW clause, before any of it is bound.
pub(super) fn named_windows(clause: &[(String, Window)]) -> Bound<Vec<NamedWindow>> {
    let mut named: Vec<NamedWindow> = Vec::with_capacity(clause.len());
    for (name, window) in clause {
        if named.iter().any(|earlier| earlier.name == *name) {
            return Err(unsupported("two windows of one name"));
        }
        named.push(NamedWindow { name: name.clone(), window: window.clone(), is_used: false });
    }
    Ok(named)
}

/// Windows that no call uses are not bound here, but PostgreSQL checks them.
pub(super) fn check_all_used(level: &Level) -> Bound<()> {
    match level.named_windows.iter().all(|named| named.is_used) {
        true => Ok(()),
        false => Err(unsupported("a window that is not used")),
    }
}

fn find_window(level: &Level, name: &str, before: usize) -> Bound<usize> {
    let found = level.named_windows[..before].iter().position(|named| named.name == name);
    found.ok_or_else(|| UpstreamReason::UnknownRelation(name.to_owned().into()))
}

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
        let frame = self.window_frame(level, window.frame.as_ref(), &order)?;
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
                    let (unified, common, _) = self.unify(arguments)?;
                    self.kept_domains.push(common.pg_type);
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
        self.note_modifier(value.expr_type);
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
    fn window_named(&self, level: &mut Level, over: &Over) -> Bound<Window> {
        match over {
            Over::Name(name) => {
                let named = level.named_windows.len();
                let at = find_window(level, name, named)?;
                level.named_windows[at].is_used = true;
                let window = level.named_windows[at].window.clone();
                self.window_based(level, &window, at)
            }
            Over::Window(window) => self.window_based(level, window, level.named_windows.len()),
        }
    }

    /// `before`: only the windows of the WINDOW clause before this one may be built on.
    fn window_based(&self, level: &mut Level, window: &Window, before: usize) -> Bound<Window> {
        let Some(base) = &window.base else { return Ok(window.clone()) };
        let at = find_window(level, base, before)?;
        level.named_windows[at].is_used = true;
        let base = level.named_windows[at].window.clone();
        let base = self.window_based(level, &base, at)?;
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

    fn window_frame(&mut self, level: &mut Level, frame: Option<&Frame>, order: &[SortKey]) -> Bound<WindowFrame> {
        let Some(Frame { unit, start, end, exclusion }) = frame else {
            return Ok(WindowFrame {
                unit: FrameUnit::Range,
                start: FrameBound::UnboundedPreceding,
                end: FrameBound::CurrentRow,
                exclusion: Exclusion::Nothing,
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
        if *unit == FrameUnit::Groups && order.is_empty() {
            return Err(unsupported("GROUPS without ORDER BY"));
        }
        let has_distance = [rank(start), rank(end)].iter().any(|rank| matches!(rank, 1 | 3));
        let by_value = match (unit, order) {
            (FrameUnit::Range, [key]) if has_distance => Some(key.expr.expr_type().pg_type),
            (FrameUnit::Range, _) if has_distance => {
                return Err(unsupported("RANGE with a distance over several keys"));
            }
            _ => None,
        };
        let (start, end) = (self.frame_bound(level, start, by_value)?, self.frame_bound(level, end, by_value)?);
        Ok(WindowFrame { unit: *unit, start, end, exclusion: *exclusion })
    }

    /// `by_value`: the type of the key that a RANGE distance is added to.
    fn frame_bound(
        &mut self,
        level: &mut Level,
        bound: &ast::FrameBound,
        by_value: Option<PgType>,
    ) -> Bound<FrameBound> {
        Ok(match bound {
            ast::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            ast::FrameBound::CurrentRow => FrameBound::CurrentRow,
            ast::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
            ast::FrameBound::Preceding(distance) => FrameBound::Preceding(self.distance(level, distance, by_value)?),
            ast::FrameBound::Following(distance) => FrameBound::Following(self.distance(level, distance, by_value)?),
        })
    }

    /// transformFrameOffsetClause.
    fn distance(&mut self, level: &mut Level, expr: &Expr, by_value: Option<PgType>) -> Bound<BoundExpr> {
        let typed = self.expression(level, expr)?;
        let distance = match (by_value, typed.expr) {
            (Some(key), expr) => {
                let to = distance_type(key, typed.expr_type.pg_type)?;
                self.coerce(Typed { expr, ..typed }, to, CastContext::Implicit)?.expr
            }
            (None, BoundExpr::Literal { value: Value::Int4(distance), .. }) => {
                let (expr_type, _) = self.plain_type(PgType::Int8)?;
                BoundExpr::Literal { value: Value::Int8(distance.into()), expr_type }
            }
            (None, expr) => self.coerce(Typed { expr, ..typed }, PgType::Int8, CastContext::Assignment)?.expr,
        };
        if has_column(&distance) || any_column(&distance, &|_| true) {
            return Err(unsupported("frame that differs by row"));
        }
        Ok(distance)
    }
}

/// The type of distance that the key's in_range takes for one of type `from`: the functions are those of pg_amproc.
fn distance_type(key: PgType, from: PgType) -> Bound<PgType> {
    let accepted: &[PgType] = match key {
        PgType::Int2 | PgType::Int4 => &[PgType::Int2, PgType::Int4, PgType::Int8],
        PgType::Int8 => &[PgType::Int8],
        PgType::Float4 | PgType::Float8 => &[PgType::Float8],
        PgType::Numeric => &[PgType::Numeric],
        PgType::Date | PgType::Time | PgType::Timestamp | PgType::Timestamptz | PgType::Interval => &[PgType::Interval],
        _ => &[],
    };
    let matches: Vec<PgType> = accepted.iter().copied().filter(|to| is_implicitly_coercible(from, *to)).collect();
    let preferred = if from == PgType::Unknown { key } else { from };
    match matches.as_slice() {
        [only] => Ok(*only),
        _ if matches.contains(&preferred) => Ok(preferred),
        _ => Err(unsupported(format!("RANGE over {} with a distance of {}", key.name(), from.name()))),
    }
}
