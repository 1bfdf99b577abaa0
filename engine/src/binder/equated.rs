//! Whether a key of grouping sets is equated below them.
//!
//! PostgreSQL before 18 takes a column that WHERE or a join equates with a constant, or with another column, to be that above
//! grouping sets too, where a set may have made it NULL: such a key is left out of ORDER BY, DISTINCT and windows' keys
//! (pathkeys.c, pathkey_is_redundant; 18 tells the two apart by RTE_GROUP). So is one of two equal keys, and of a key that is a
//! constant nobody can tell what is computed from the key and what from the constant. Such statements are upstream's. A table's column that
//! is equated with other tables' columns alone, of which none is a key, is itself above as below: its class has no constant, and nothing
//! else that the rows are sorted by. Of what is no table's column it is not known whether PostgreSQL makes a constant of it: so it does of
//! VALUES with one row in a subquery that it pulls up, and of a value subquery that hangs on a level further out.

use std::collections::BTreeSet;

use crate::binder::common::Common;
use crate::binder::relation::{RIGHT_BASE, as_outer};
use crate::binder::typed::{children, is_same};
use crate::binder::{BoundExpr, BoundRelation, MatchKind};

/// Where a column comes from: the address of the relation that makes it, and which one it is there.
type Origin = (usize, usize);

/// Whether one of these keys over `input` may be taken for something else above.
pub(super) fn is_any_equated(keys: &[BoundExpr], input: &BoundRelation, commons: &[Common]) -> bool {
    let walk = Walk { commons };
    let mut equated = Equated::default();
    walk.equated(input, &mut equated);
    let origins: Vec<BTreeSet<Origin>> = keys.iter().map(|key| walk.of(key, input)).collect();
    let is_equal = |one: usize, other: usize| {
        let are_columns = [one, other].iter().all(|key| walk.is_column(&keys[*key], input));
        is_same(&keys[one], &keys[other]) || (are_columns && origins[one] == origins[other])
    };
    let is_taken_for_another = |key: usize| {
        let class = equated.class_of(&origins[key]);
        let is_alone = class.len() == origins[key].len();
        let has_other_key = || (0..keys.len()).any(|other| other != key && !class.is_disjoint(&origins[other]));
        !class.is_disjoint(&equated.unknown)
            || !is_alone && (!walk.is_column(&keys[key], input) || has_other_key())
            || (0..key).any(|before| is_equal(before, key))
    };
    (0..keys.len()).any(|key| origins[key].is_empty() || is_taken_for_another(key))
}

/// What equalities say of columns.
#[derive(Default)]
struct Equated {
    /// Two columns that are equal in all rows.
    pairs: Vec<[Origin; 2]>,
    /// Columns that are compared with anything else, or in another place.
    unknown: BTreeSet<Origin>,
}

impl Equated {
    /// All columns that are equal to one of these, themselves included.
    fn class_of(&self, origins: &BTreeSet<Origin>) -> BTreeSet<Origin> {
        let mut class = origins.clone();
        loop {
            let before = class.len();
            for pair in &self.pairs {
                if pair.iter().any(|origin| class.contains(origin)) {
                    class.extend(pair);
                }
            }
            if class.len() == before {
                return class;
            }
        }
    }
}

enum Source<'r> {
    /// A relation, by itself.
    MadeBy(&'r BoundRelation, usize),
    /// An expression over what a relation gives.
    Computed(&'r BoundExpr, &'r BoundRelation),
    /// A column of an outer level, which is a constant here.
    Outer,
    /// A column of a subquery that gives one value.
    Value(&'r BoundRelation, usize),
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
            self.add_source(*index, relation, origins);
        }
        children(expr).into_iter().for_each(|child| self.add(child, relation, origins));
    }

    fn add_source(&self, index: usize, relation: &BoundRelation, origins: &mut BTreeSet<Origin>) {
        match self.source(index, relation) {
            Source::MadeBy(relation, index) => {
                origins.insert((std::ptr::from_ref(relation).addr(), index));
            }
            Source::Computed(expr, input) => self.add(expr, input, origins),
            Source::Value(relation, index) => self.add_source(index, relation, origins),
            Source::Outer => {}
        }
    }

    /// Whether the key is a column that nothing is computed from on its way.
    fn is_column(&self, expr: &BoundExpr, relation: &BoundRelation) -> bool {
        let BoundExpr::Column { index, .. } = expr else { return false };
        self.is_made(*index, relation)
    }

    fn is_made(&self, index: usize, relation: &BoundRelation) -> bool {
        match self.source(index, relation) {
            Source::MadeBy(..) => true,
            Source::Computed(expr, input) => self.is_column(expr, input),
            Source::Value(relation, index) => self.is_made(index, relation),
            Source::Outer => false,
        }
    }

    /// The table's column that the expression is, if nothing is computed from it on its way.
    fn column(&self, expr: &BoundExpr, relation: &BoundRelation) -> Option<Origin> {
        let BoundExpr::Column { index, .. } = expr else { return None };
        match self.source(*index, relation) {
            Source::MadeBy(scan @ BoundRelation::Scan { .. }, index) => Some((std::ptr::from_ref(scan).addr(), index)),
            Source::Computed(expr, input) => self.column(expr, input),
            Source::MadeBy(..) | Source::Value(..) | Source::Outer => None,
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
                let is_value = matches!(relation, BoundRelation::Match { kind: MatchKind::Single, .. });
                match index.checked_sub(RIGHT_BASE).or_else(|| index.checked_sub(left.width())) {
                    Some(index) if is_value => Source::Value(right, index),
                    Some(index) => self.source(index, right),
                    None => self.source(index, left),
                }
            }
            BoundRelation::Values { rows, .. } if rows.len() == 1 => Source::Computed(&rows[0][index], relation),
            BoundRelation::Append { inputs, .. } if inputs.len() == 1 => self.source(index, &inputs[0]),
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
    fn equated(&self, relation: &BoundRelation, equated: &mut Equated) {
        match relation {
            BoundRelation::Filter { input, predicate } => self.add_conjuncts(predicate, input, equated),
            BoundRelation::Join { condition, .. } => {
                condition.iter().for_each(|condition| self.add_conjuncts(condition, relation, equated));
            }
            BoundRelation::Dependent { condition, .. } => {
                condition.iter().for_each(|condition| self.add_equated(condition, relation, equated));
            }
            BoundRelation::Match { condition, test, .. } => {
                let conditions = condition.iter().chain(test);
                conditions.for_each(|condition| self.add_conjuncts(condition, relation, equated));
            }
            BoundRelation::Common { index, .. } => {
                self.common(*index).into_iter().for_each(|common| self.equated(common, equated));
            }
            _ => {}
        }
        relation.inputs().into_iter().for_each(|input| self.equated(input, equated));
    }

    /// Of what all rows meet: equalities of two columns make them one class (equivclass.c).
    fn add_conjuncts(&self, predicate: &BoundExpr, relation: &BoundRelation, equated: &mut Equated) {
        match predicate {
            BoundExpr::And(parts) => parts.iter().for_each(|part| self.add_conjuncts(part, relation, equated)),
            BoundExpr::Call { function, arguments, .. } if function.name == "=" => {
                let columns = arguments.iter().map(|side| self.column(side, relation));
                match columns.collect::<Option<Vec<_>>>().as_deref() {
                    Some([one, other]) => equated.pairs.push([*one, *other]),
                    _ => self.add_equated(predicate, relation, equated),
                }
            }
            // What ties a subquery's rows to those around it where it is taken apart.
            BoundExpr::IsDistinct { left, right, negated: true, .. } => {
                let columns = [left, right].map(|side| self.of(side, relation));
                let pairs = columns[0].iter().flat_map(|one| columns[1].iter().map(|other| [*one, *other]));
                equated.pairs.extend(pairs);
                self.add_equated(predicate, relation, equated);
            }
            _ => self.add_equated(predicate, relation, equated),
        }
    }

    /// Of equalities anywhere in it: PostgreSQL takes NOT away, and what all branches of an OR have out of it (prepqual.c).
    fn add_equated(&self, predicate: &BoundExpr, relation: &BoundRelation, equated: &mut Equated) {
        match predicate {
            // Of one value it is an equality (transformAExprIn); of several that become one when they are read, too, for all we know.
            BoundExpr::InList { operand, list, .. } if list.iter().all(|item| is_same(item, &list[0])) => {
                list.iter().chain([&**operand]).for_each(|side| self.add(side, relation, &mut equated.unknown));
            }
            BoundExpr::Call { function, arguments, .. } if matches!(function.name, "=" | "<>") => {
                arguments.iter().for_each(|argument| self.add(argument, relation, &mut equated.unknown));
            }
            _ => {}
        }
        children(predicate).into_iter().for_each(|part| self.add_equated(part, relation, equated));
    }
}
