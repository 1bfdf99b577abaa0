//! Whether a key of grouping sets is equated below them.
//!
//! PostgreSQL before 18 takes a column that WHERE or a join equates with a constant, or with another column, to be that above
//! grouping sets too, where a set may have made it NULL: such a key is left out of ORDER BY, DISTINCT and windows' keys
//! (pathkeys.c, pathkey_is_redundant; 18 tells the two apart by RTE_GROUP). So is one of two equal keys, and of a key that is a
//! constant nobody can tell what is computed from the key and what from the constant. Such statements are upstream's.

use std::collections::BTreeSet;

use crate::binder::common::Common;
use crate::binder::relation::{RIGHT_BASE, as_outer};
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

enum Source<'r> {
    /// A relation, by itself.
    MadeBy(&'r BoundRelation, usize),
    /// An expression over what a relation gives.
    Computed(&'r BoundExpr, &'r BoundRelation),
    /// A column of an outer level, which is a constant here.
    Outer,
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
            match self.source(*index, relation) {
                Source::MadeBy(relation, index) => {
                    origins.insert((std::ptr::from_ref(relation).addr(), index));
                }
                Source::Computed(expr, input) => self.add(expr, input, origins),
                Source::Outer => {}
            }
        }
        children(expr).into_iter().for_each(|child| self.add(child, relation, origins));
    }

    /// Whether the key is a column that nothing is computed from on its way.
    fn is_column(&self, expr: &BoundExpr, relation: &BoundRelation) -> bool {
        let BoundExpr::Column { index, .. } = expr else { return false };
        match self.source(*index, relation) {
            Source::MadeBy(..) => true,
            Source::Computed(expr, input) => self.is_column(expr, input),
            Source::Outer => false,
        }
    }

    /// Follows a column down to what makes it.
    fn source<'r>(&'r self, index: usize, relation: &'r BoundRelation) -> Source<'r> {
        let made_here = Source::MadeBy(relation, index);
        match relation {
            _ if as_outer(index).is_some() => Source::Outer,
            BoundRelation::Join { left, right, .. }
            | BoundRelation::Dependent { left, right, .. }
            | BoundRelation::Match { left, right, .. } => {
                match index.checked_sub(RIGHT_BASE).or_else(|| index.checked_sub(left.width())) {
                    Some(index) => self.source(index, right),
                    None => self.source(index, left),
                }
            }
            BoundRelation::Filter { input, .. }
            | BoundRelation::Distinct { input, .. }
            | BoundRelation::DistinctOn { input, .. }
            | BoundRelation::Sort { input, .. }
            | BoundRelation::Limit { input, .. } => self.source(index, input),
            BoundRelation::Window { input, .. } | BoundRelation::Expand { input, .. } if index < input.width() => {
                self.source(index, input)
            }
            BoundRelation::Project { input, expressions: made }
            | BoundRelation::Aggregate { input, groups: made, .. } => {
                made.get(index).map_or(made_here, |expr| Source::Computed(expr, input))
            }
            BoundRelation::Common { index: common, .. } => {
                self.common(*common).map_or(made_here, |common| self.source(index, common))
            }
            _ => made_here,
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
