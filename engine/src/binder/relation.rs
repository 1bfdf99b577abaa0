//! Walks over [`BoundRelation`]: widths, expressions, inputs, and references to outer levels.
//!
//! A column of an outer level is a `Column` whose index carries the level: such columns are in a relation only until the
//! level that they belong to has put it beside its own rows.

use crate::binder::typed::{children, children_mut};
use crate::binder::{AggregateCall, BoundExpr, BoundQuery, BoundRelation, ExprType, MatchKind, WindowCall};
use crate::catalog::Collation;
use crate::types::{PgType, Value};

/// Index of the first aggregate's result among an expression's columns, until grouping gives it its place.
pub(super) const AGGREGATE_BASE: usize = 1 << 32;
/// Likewise of window functions' results.
pub(super) const WINDOW_BASE: usize = 1 << 33;
/// Likewise of subqueries' answers.
pub(super) const SUBQUERY_BASE: usize = 1 << 34;
/// Likewise of GROUPING().
pub(super) const GROUPING_BASE: usize = 1 << 35;
/// In the comparison of IN: the subquery's columns.
pub(super) const RIGHT_BASE: usize = 1 << 36;
/// Columns of outer levels, `LEVEL_SPAN` for each level.
const OUTER_BASE: usize = 1 << 40;
const LEVEL_SPAN: usize = 1 << 20;
/// Parameters that stand for [`super::ScalarQuery`]s.
pub(super) const SCALAR_BASE: usize = 1 << 32;

/// How the column `index` of level `level` is called further in.
pub(super) fn outer_index(level: usize, index: usize) -> usize {
    debug_assert!(index < LEVEL_SPAN, "a column of a FROM clause");
    OUTER_BASE + level * LEVEL_SPAN + index
}

/// The level and column that an index stands for, if it is one of an outer level.
pub(super) fn as_outer(index: usize) -> Option<(usize, usize)> {
    let offset = index.checked_sub(OUTER_BASE)?;
    Some((offset / LEVEL_SPAN, offset % LEVEL_SPAN))
}

/// A column of the level's own FROM clause.
pub(super) fn is_own_column(index: usize) -> bool {
    index < AGGREGATE_BASE
}

/// Whether any part of the expression is a column that `test` picks.
pub(super) fn any_column(expr: &BoundExpr, test: &dyn Fn(usize) -> bool) -> bool {
    matches!(expr, BoundExpr::Column { index, .. } if test(*index))
        || children(expr).into_iter().any(|child| any_column(child, test))
}

pub(super) fn has_outer(expr: &BoundExpr) -> bool {
    any_column(expr, &|index| as_outer(index).is_some())
}

/// Renumbers columns.
pub(super) fn map_columns(expr: &mut BoundExpr, map: &dyn Fn(usize) -> usize) {
    if let BoundExpr::Column { index, .. } = expr {
        *index = map(*index);
    }
    children_mut(expr).into_iter().for_each(|child| map_columns(child, map));
}

impl BoundExpr {
    /// The 0 of `OFFSET 0`.
    pub(super) const NO_OFFSET: Self = Self::Literal {
        value: Value::Int8(0),
        expr_type: ExprType { pg_type: PgType::Int8, typmod: -1, collation: Collation::None },
    };
}

impl BoundRelation {
    /// The same rows, which no condition passes on its way down: `OFFSET 0`, as people write it for that.
    pub(super) fn fenced(self) -> Self {
        Self::Limit { input: Box::new(self), limit: None, offset: Some(BoundExpr::NO_OFFSET), with_ties: false }
    }

    /// What a fence is around, if it is one.
    pub(crate) fn within_fence(&self) -> Option<&Self> {
        match self {
            Self::Limit {
                input,
                limit: None,
                offset: Some(BoundExpr::Literal { value: Value::Int8(0), .. }),
                with_ties: false,
            } => Some(input),
            _ => None,
        }
    }

    /// Number of output columns.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::OneRow => 0,
            Self::Scan { columns, .. } => columns.len(),
            Self::Project { expressions, .. } => expressions.len(),
            Self::Join { left, right, .. } | Self::Dependent { left, right, .. } => left.width() + right.width(),
            Self::Match { kind, left, right, .. } => match kind {
                MatchKind::Semi | MatchKind::Anti => left.width(),
                MatchKind::Mark => left.width() + 1,
                MatchKind::Single => left.width() + right.width(),
            },
            Self::Aggregate { groups, aggregates, .. } => groups.len() + aggregates.len(),
            Self::Distinct { columns, .. }
            | Self::Append { columns, .. }
            | Self::SetOperation { columns, .. }
            | Self::Values { columns, .. } => columns.len(),
            Self::Window { input, calls } => input.width() + calls.len(),
            Self::Common { width, .. } => *width,
            Self::Series { .. } => 1,
            Self::Expand { input, functions, is_numbered, .. } => {
                let of_functions: usize = functions.iter().map(|call| call.columns.len()).sum();
                input.width() + of_functions + usize::from(*is_numbered)
            }
            Self::Recursive { columns, .. } | Self::Working { columns, .. } => columns.len(),
            Self::Filter { input, .. }
            | Self::DistinctOn { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. } => input.width(),
        }
    }

    /// Whether it has so many relations in each other; the root is the first.
    pub(super) fn is_deeper_than(&self, levels: usize) -> bool {
        levels == 0 || self.inputs().into_iter().any(|input| input.is_deeper_than(levels - 1))
    }

    pub(super) fn inputs(&self) -> Vec<&Self> {
        match self {
            Self::OneRow
            | Self::Scan { .. }
            | Self::Values { .. }
            | Self::Common { .. }
            | Self::Series { .. }
            | Self::Working { .. } => Vec::new(),
            Self::Recursive { base, step, .. } => vec![base, step],
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Distinct { input, .. }
            | Self::DistinctOn { input, .. }
            | Self::Window { input, .. }
            | Self::Expand { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. } => vec![input],
            Self::Join { left, right, .. }
            | Self::Dependent { left, right, .. }
            | Self::Match { left, right, .. }
            | Self::SetOperation { left, right, .. } => {
                vec![left, right]
            }
            Self::Append { inputs, .. } => inputs.iter().collect(),
        }
    }

    pub(super) fn inputs_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::OneRow
            | Self::Scan { .. }
            | Self::Values { .. }
            | Self::Common { .. }
            | Self::Series { .. }
            | Self::Working { .. } => Vec::new(),
            Self::Recursive { base, step, .. } => vec![base, step],
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Distinct { input, .. }
            | Self::DistinctOn { input, .. }
            | Self::Window { input, .. }
            | Self::Expand { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. } => vec![input],
            Self::Join { left, right, .. }
            | Self::Dependent { left, right, .. }
            | Self::Match { left, right, .. }
            | Self::SetOperation { left, right, .. } => {
                vec![left, right]
            }
            Self::Append { inputs, .. } => inputs.iter_mut().collect(),
        }
    }

    /// The node's own expressions.
    pub(super) fn expressions_mut(&mut self) -> Vec<&mut BoundExpr> {
        match self {
            Self::OneRow
            | Self::Scan { .. }
            | Self::Distinct { .. }
            | Self::Append { .. }
            | Self::SetOperation { .. }
            | Self::Common { .. }
            | Self::Recursive { .. }
            | Self::Working { .. } => Vec::new(),
            Self::Filter { predicate, .. } => vec![predicate],
            Self::Project { expressions, .. } => expressions.iter_mut().collect(),
            Self::Join { condition, .. } | Self::Dependent { condition, .. } => condition.iter_mut().collect(),
            Self::Match { condition, test, .. } => condition.iter_mut().chain(test).collect(),
            Self::Aggregate { groups, aggregates, .. } => {
                let calls = aggregates.iter_mut().flat_map(|call| {
                    let own = call.argument.iter_mut().chain(&mut call.extra).chain(&mut call.filter);
                    own.chain(call.order.iter_mut().map(|key| &mut key.expr))
                });
                groups.iter_mut().chain(calls).collect()
            }
            Self::DistinctOn { keys, .. } => keys.iter_mut().collect(),
            Self::Values { rows, .. } => rows.iter_mut().flatten().collect(),
            Self::Window { calls, .. } => calls.iter_mut().flat_map(WindowCall::expressions_mut).collect(),
            Self::Series { bounds, .. } => bounds.iter_mut().collect(),
            Self::Expand { functions, .. } => functions.iter_mut().flat_map(|call| &mut call.arguments).collect(),
            Self::Sort { keys, .. } => keys.iter_mut().map(|key| &mut key.expr).collect(),
            Self::Limit { limit, offset, .. } => limit.iter_mut().chain(offset).collect(),
        }
    }

    /// Whether any expression in it satisfies `test`.
    pub(super) fn any_expression(&mut self, test: &dyn Fn(&BoundExpr) -> bool) -> bool {
        self.expressions_mut().into_iter().any(|expr| test(expr))
            || self.inputs_mut().into_iter().any(|input| input.any_expression(test))
    }

    /// Changes every expression in it.
    pub(super) fn for_each_expression(&mut self, change: &mut dyn FnMut(&mut BoundExpr)) {
        self.expressions_mut().into_iter().for_each(&mut *change);
        self.inputs_mut().into_iter().for_each(|input| input.for_each_expression(change));
    }

    /// Whether it reads the rows of a recursion that it is a part of.
    pub(super) fn reads_working(&self) -> bool {
        fn reads(relation: &BoundRelation, within: &mut Vec<usize>) -> bool {
            match relation {
                BoundRelation::Working { number, .. } => !within.contains(number),
                BoundRelation::Recursive { base, step, number, .. } => {
                    within.push(*number);
                    let found = reads(base, within) || reads(step, within);
                    within.pop();
                    found
                }
                other => other.inputs().into_iter().any(|input| reads(input, within)),
            }
        }
        reads(self, &mut Vec::new())
    }

    /// Whether it depends on rows of outer levels.
    pub(super) fn is_correlated(&mut self) -> bool {
        self.any_expression(&has_outer)
    }
}

impl BoundQuery {
    /// Whether the outermost LIMIT, without an ORDER BY, is over a recursion.
    pub(crate) fn is_recursion_cut(&self) -> bool {
        fn limited(relation: &BoundRelation) -> Option<&BoundRelation> {
            match relation {
                BoundRelation::Limit { input, .. } => Some(input),
                BoundRelation::Project { input, .. } => limited(input),
                _ => None,
            }
        }
        fn is_sorted(relation: &BoundRelation) -> bool {
            match relation {
                BoundRelation::Sort { .. } => true,
                BoundRelation::Project { input, .. } => is_sorted(input),
                _ => false,
            }
        }
        fn recurs(relation: &BoundRelation) -> bool {
            matches!(relation, BoundRelation::Recursive { .. }) || relation.inputs().into_iter().any(recurs)
        }
        let is_recursive = |input: &BoundRelation| recurs(input) || self.commons.iter().any(recurs);
        limited(&self.root).is_some_and(|input| !is_sorted(input) && is_recursive(input))
    }
}

impl AggregateCall {
    /// All its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &BoundExpr> {
        let own = self.argument.iter().chain(&self.extra).chain(&self.filter);
        own.chain(self.order.iter().map(|key| &key.expr))
    }
}

impl WindowCall {
    /// All its expressions.
    pub fn expressions_mut(&mut self) -> Vec<&mut BoundExpr> {
        let bounds = [&mut self.frame.start, &mut self.frame.end].into_iter().filter_map(|bound| match bound {
            super::FrameBound::Preceding(distance) | super::FrameBound::Following(distance) => Some(distance),
            super::FrameBound::UnboundedPreceding
            | super::FrameBound::CurrentRow
            | super::FrameBound::UnboundedFollowing => None,
        });
        let keys = self.order.iter_mut().map(|key| &mut key.expr);
        self.arguments.iter_mut().chain(&mut self.filter).chain(&mut self.partition).chain(keys).chain(bounds).collect()
    }
}
