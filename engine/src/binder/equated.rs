//! Whether a key of grouping sets is equated below them.
//!
//! PostgreSQL before 18 takes a column that WHERE or a join equates with a constant, or with another column, to be that above
//! grouping sets too, where a set may have made it NULL: such a key is left out of ORDER BY, DISTINCT and windows' keys
//! (pathkeys.c, pathkey_is_redundant; 18 tells the two apart by RTE_GROUP). So is one of two equal keys, and of a key that is a
//! constant nobody can tell what is computed from the key and what from the constant. Such statements are upstream's.

use std::collections::BTreeSet;

use crate::binder::common::Common;
use crate::binder::relation::{RIGHT_BASE, is_own_column};
use crate::binder::typed::{children, is_same};
use crate::binder::{BoundExpr, BoundRelation};

/// Where a column comes from: the address of the relation that makes it, and which one it is there.
type Origin = (usize, usize);

/// Whether one of these keys over `input` may be taken for something else above.
pub(super) fn is_any_equated(keys: &[BoundExpr], input: &BoundRelation, commons: &[Common]) -> bool {
    let walk = Walk { commons };
    let mut equated = BTreeSet::new();
    walk.equated(input, &mut equated);
    let origins: Vec<BTreeSet<Origin>> = keys.iter().map(|key| walk.of(key, input)).collect();
    let is_equal = |one: usize, other: usize| {
        let are_columns = [one, other].iter().all(|key| walk.is_column(&keys[*key], input));
        is_same(&keys[one], &keys[other]) || (are_columns && origins[one] == origins[other])
    };
    (0..keys.len()).any(|key| {
        origins[key].is_empty() || !origins[key].is_disjoint(&equated) || (0..key).any(|before| is_equal(before, key))
    })
}

struct Walk<'a> {
    commons: &'a [Common],
}

impl Walk<'_> {
    fn common(&self, index: usize) -> Option<&BoundRelation> {
        self.commons.get(index)?.relation()
    }

    /// Of all columns in an expression over the relation's output.
    fn of(&self, expr: &BoundExpr, relation: &BoundRelation) -> BTreeSet<Origin> {
        let mut origins = BTreeSet::new();
        self.add(expr, relation, &mut origins);
        origins
    }

    fn add(&self, expr: &BoundExpr, relation: &BoundRelation, origins: &mut BTreeSet<Origin>) {
        if let BoundExpr::Column { index, .. } = expr {
            self.add_column(*index, relation, origins);
        }
        children(expr).into_iter().for_each(|child| self.add(child, relation, origins));
    }

    fn add_column(&self, index: usize, relation: &BoundRelation, origins: &mut BTreeSet<Origin>) {
        let mut made_here = || {
            origins.insert((std::ptr::from_ref(relation).addr(), index));
        };
        match relation {
            // A column of an outer level is a constant here.
            _ if !is_own_column(index) && !matches!(relation, BoundRelation::Match { .. }) => {}
            BoundRelation::Filter { input, .. }
            | BoundRelation::Distinct { input, .. }
            | BoundRelation::DistinctOn { input, .. }
            | BoundRelation::Sort { input, .. }
            | BoundRelation::Limit { input, .. } => self.add_column(index, input, origins),
            BoundRelation::Window { input, .. } | BoundRelation::Expand { input, .. } if index < input.width() => {
                self.add_column(index, input, origins);
            }
            BoundRelation::Project { input, expressions } => match expressions.get(index) {
                Some(expr) => self.add(expr, input, origins),
                None => made_here(),
            },
            BoundRelation::Aggregate { input, groups, .. } => match groups.get(index) {
                Some(group) => self.add(group, input, origins),
                None => made_here(),
            },
            BoundRelation::Join { left, right, .. }
            | BoundRelation::Dependent { left, right, .. }
            | BoundRelation::Match { left, right, .. } => {
                let of_right = index.checked_sub(RIGHT_BASE).or_else(|| index.checked_sub(left.width()));
                match of_right {
                    Some(index) if is_own_column(index) => self.add_column(index, right, origins),
                    Some(_) => {}
                    None => self.add_column(index, left, origins),
                }
            }
            BoundRelation::Common { index: common, .. } => match self.common(*common) {
                Some(common) => self.add_column(index, common, origins),
                None => made_here(),
            },
            _ => made_here(),
        }
    }

    /// Whether the key is a column that nothing is computed from on its way.
    fn is_column(&self, expr: &BoundExpr, relation: &BoundRelation) -> bool {
        let BoundExpr::Column { index, .. } = expr else { return false };
        match relation {
            BoundRelation::Filter { input, .. }
            | BoundRelation::Distinct { input, .. }
            | BoundRelation::DistinctOn { input, .. }
            | BoundRelation::Sort { input, .. }
            | BoundRelation::Limit { input, .. } => self.is_column(expr, input),
            BoundRelation::Project { input, expressions } => {
                expressions.get(*index).is_some_and(|expr| self.is_column(expr, input))
            }
            BoundRelation::Join { left, right, .. } => {
                let (side, index) = match index.checked_sub(left.width()) {
                    Some(index) => (right, index),
                    None => (left, *index),
                };
                self.is_column(&BoundExpr::Column { index, expr_type: expr.expr_type() }, side)
            }
            BoundRelation::Common { index: common, .. } => {
                self.common(*common).is_none_or(|common| self.is_column(expr, common))
            }
            _ => true,
        }
    }

    /// What stands on either side of an equality anywhere below.
    fn equated(&self, relation: &BoundRelation, equated: &mut BTreeSet<Origin>) {
        match relation {
            BoundRelation::Filter { input, predicate } => self.add_equated(predicate, input, equated),
            BoundRelation::Join { condition, .. } | BoundRelation::Dependent { condition, .. } => {
                condition.iter().for_each(|condition| self.add_equated(condition, relation, equated));
            }
            BoundRelation::Match { condition, test, .. } => {
                let conditions = condition.iter().chain(test);
                conditions.for_each(|condition| self.add_equated(condition, relation, equated));
            }
            BoundRelation::Common { index, .. } => {
                self.common(*index).into_iter().for_each(|common| self.equated(common, equated));
            }
            _ => {}
        }
        relation.inputs().into_iter().for_each(|input| self.equated(input, equated));
    }

    /// Of equalities anywhere in it: PostgreSQL takes NOT away, and what all branches of an OR have out of it (prepqual.c).
    fn add_equated(&self, predicate: &BoundExpr, relation: &BoundRelation, equated: &mut BTreeSet<Origin>) {
        match predicate {
            // Of one value it is an equality (transformAExprIn); of several that become one when they are read, too, for all we know.
            BoundExpr::InList { operand, list, .. } if list.iter().all(|item| is_same(item, &list[0])) => {
                list.iter().chain([&**operand]).for_each(|side| self.add(side, relation, equated));
            }
            BoundExpr::Call { function, arguments, .. } if matches!(function.name, "=" | "<>") => {
                arguments.iter().for_each(|argument| self.add(argument, relation, equated));
            }
            _ => {}
        }
        children(predicate).into_iter().for_each(|part| self.add_equated(part, relation, equated));
    }
}
