//! An expression while it is being bound: with its type, where its collation comes from, and whether it still is a bare column.

use crate::binder::relation::as_outer;
use crate::binder::{BoundExpr, ExprType};
use crate::catalog::{Collation, RelationId};
use crate::types::{PgType, Value};

/// How an expression came by its collation (PostgreSQL: Collation Support, parse_collate.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CollationStrength {
    None,
    Implicit,
    Explicit,
}

/// The table column that an output column is, for RowDescription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) table: RelationId,
    pub(super) attnum: i16,
}

#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) expr: BoundExpr,
    pub(super) expr_type: ExprType,
    pub(super) strength: CollationStrength,
    /// Only while the expression is the column itself.
    pub(super) origin: Option<Origin>,
}

impl Typed {
    pub(super) fn bool(expr: BoundExpr) -> Self {
        Self::plain(expr, PgType::Bool)
    }

    /// Of a type that has no collation and no modifier.
    pub(super) fn plain(expr: BoundExpr, pg_type: PgType) -> Self {
        let expr_type = ExprType { pg_type, typmod: -1, collation: Collation::None };
        Self { expr, expr_type, strength: CollationStrength::None, origin: None }
    }

    pub(super) fn literal(value: Value, expr_type: ExprType, strength: CollationStrength) -> Self {
        Self { expr: BoundExpr::Literal { value, expr_type }, expr_type, strength, origin: None }
    }

    pub(super) fn pg_type(&self) -> PgType {
        self.expr_type.pg_type
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.pg_type() == PgType::Unknown
    }

    /// An undecorated NULL.
    pub(super) fn is_null_literal(&self) -> bool {
        self.is_unknown() && matches!(&self.expr, BoundExpr::Literal { value: Value::Null, .. })
    }

    /// RelabelType: the same value under another type, modifier or collation.
    pub(super) fn relabelled(mut self, expr_type: ExprType) -> Self {
        if self.expr_type == expr_type {
            return self;
        }
        self.origin = None;
        self.expr_type = expr_type;
        self.expr.relabel(expr_type);
        self
    }

    /// With another collation.
    pub(super) fn collated(self, collation: Collation) -> Self {
        let expr_type = ExprType { collation, ..self.expr_type };
        let mut typed = self.relabelled(expr_type);
        typed.origin = None;
        typed
    }

    /// As COLLATE makes it.
    pub(super) fn under(self, collation: Collation) -> Self {
        Self { strength: CollationStrength::Explicit, ..self.collated(collation) }
    }
}

/// The direct parts of an expression.
pub(super) fn children(expr: &BoundExpr) -> Vec<&BoundExpr> {
    match expr {
        BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => Vec::new(),
        BoundExpr::Call { arguments, .. }
        | BoundExpr::Coalesce { arguments, .. }
        | BoundExpr::Extreme { arguments, .. } => arguments.iter().collect(),
        BoundExpr::And(items) | BoundExpr::Or(items) => items.iter().collect(),
        BoundExpr::Not(operand) | BoundExpr::IsNull { operand, .. } | BoundExpr::IsBool { operand, .. } => {
            vec![operand]
        }
        BoundExpr::IsDistinct { left, right, .. } => vec![left, right],
        BoundExpr::Case { branches, otherwise, .. } => {
            branches.iter().flat_map(|(when, then)| [when, then]).chain([&**otherwise]).collect()
        }
        BoundExpr::InList { operand, list, .. } => std::iter::once(&**operand).chain(list).collect(),
    }
}

pub(super) fn children_mut(expr: &mut BoundExpr) -> Vec<&mut BoundExpr> {
    match expr {
        BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => Vec::new(),
        BoundExpr::Call { arguments, .. }
        | BoundExpr::Coalesce { arguments, .. }
        | BoundExpr::Extreme { arguments, .. } => arguments.iter_mut().collect(),
        BoundExpr::And(items) | BoundExpr::Or(items) => items.iter_mut().collect(),
        BoundExpr::Not(operand) | BoundExpr::IsNull { operand, .. } | BoundExpr::IsBool { operand, .. } => {
            vec![operand]
        }
        BoundExpr::IsDistinct { left, right, .. } => vec![left, right],
        BoundExpr::Case { branches, otherwise, .. } => {
            branches.iter_mut().flat_map(|(when, then)| [when, then]).chain([&mut **otherwise]).collect()
        }
        BoundExpr::InList { operand, list, .. } => std::iter::once(&mut **operand).chain(list).collect(),
    }
}

/// How many nodes the expression has.
pub(super) fn size(expr: &BoundExpr) -> usize {
    1 + children(expr).into_iter().map(size).sum::<usize>()
}

/// It is made of literals alone.
pub(super) fn is_fixed(expr: &BoundExpr) -> bool {
    !matches!(expr, BoundExpr::Column { .. } | BoundExpr::Parameter { .. }) && children(expr).into_iter().all(is_fixed)
}

/// Whether any part is a column of the level itself (contain_vars_of_level); an aggregate's result counts as one.
pub(super) fn has_column(expr: &BoundExpr) -> bool {
    matches!(expr, BoundExpr::Column { index, .. } if as_outer(*index).is_none())
        || children(expr).into_iter().any(has_column)
}

/// equal(): the same expression over the same input.
pub(super) fn is_same(left: &BoundExpr, right: &BoundExpr) -> bool {
    use BoundExpr as B;
    let labels_agree = match (left, right) {
        (B::Column { index: a, expr_type: at }, B::Column { index: b, expr_type: bt }) => a == b && at == bt,
        (B::Parameter { index: a, expr_type: at }, B::Parameter { index: b, expr_type: bt }) => a == b && at == bt,
        // Not =, by which 0 and -0 are one.
        (B::Literal { value: a, expr_type: at }, B::Literal { value: b, expr_type: bt }) => {
            a.is_identical(b) && at == bt
        }
        (B::Call { function: a, expr_type: at, .. }, B::Call { function: b, expr_type: bt, .. }) => {
            std::ptr::eq(*a, *b) && at == bt
        }
        (B::And(_), B::And(_)) | (B::Or(_), B::Or(_)) | (B::Not(_), B::Not(_)) => true,
        (B::IsNull { negated: a, .. }, B::IsNull { negated: b, .. }) => a == b,
        (B::IsBool { expected: a, negated: an, .. }, B::IsBool { expected: b, negated: bn, .. }) => a == b && an == bn,
        (B::IsDistinct { equal: a, negated: an, .. }, B::IsDistinct { equal: b, negated: bn, .. }) => {
            std::ptr::eq(*a, *b) && an == bn
        }
        (B::Case { expr_type: a, .. }, B::Case { expr_type: b, .. }) => a == b,
        (B::Coalesce { call: a, expr_type: at, .. }, B::Coalesce { call: b, expr_type: bt, .. }) => a == b && at == bt,
        (B::Extreme { greatest: a, expr_type: at, .. }, B::Extreme { greatest: b, expr_type: bt, .. }) => {
            a == b && at == bt
        }
        (B::InList { equal: a, negated: an, .. }, B::InList { equal: b, negated: bn, .. }) => {
            std::ptr::eq(*a, *b) && an == bn
        }
        _ => false,
    };
    if !labels_agree {
        return false;
    }
    let (left, right) = (children(left), children(right));
    left.len() == right.len() && left.into_iter().zip(right).all(|(left, right)| is_same(left, right))
}
