//! Brings what WHERE asks of a subquery for each row to the input of a join whose rows it is asked of. PostgreSQL tests a qual where the
//! relations that it reads are together (initsplan.c, distribute_qual_to_rels), whatever it asks for: of rows that the join would drop, too,
//! and what is said of those may be an error (two rows in place of a value, a division by zero).

use std::collections::BTreeSet;

use crate::binder::{BoundExpr, cannot_raise};
use crate::planner::expression::{columns_of, renumber};
use crate::planner::node::{Join, PlanNode, SideJoin, SideKind};
use crate::planner::rules::merge::placeholder;
use crate::planner::rules::padded::{Side, removes_padded};

/// Subqueries on their way, and what is asked of them: over the columns of the node that they hang on, then their own.
struct Hanging {
    /// The innermost first; each is asked beside those before it. What is on their left is elsewhere.
    subqueries: Vec<SideJoin>,
    predicates: Vec<BoundExpr>,
    /// How many columns they add.
    own: usize,
}

/// The join's rows of which the predicates, over its output, are true: if it is a subquery that hangs on a part of what is joined on its left,
/// asked, and decided by, there.
pub(super) fn brought_down(join: SideJoin, predicates: Vec<BoundExpr>) -> PlanNode {
    let is_asked = |predicate: &BoundExpr| columns_of(predicate).iter().any(|column| *column >= join.left.width());
    if predicates.is_empty() || !predicates.iter().all(is_asked) || !may_raise(&join, &predicates) {
        return PlanNode::SideJoin(join).filtered(predicates);
    }
    let (hanging, left) = Hanging::taken(join, predicates);
    if hanging.goes_below(&left) { hanging.placed(left) } else { hanging.here(left) }
}

/// Whether it is a subquery for each row, and asking it and those that the predicates read beside it, or deciding by them, may raise an error.
pub(super) fn may_raise(join: &SideJoin, predicates: &[BoundExpr]) -> bool {
    let mut needed: BTreeSet<usize> = predicates.iter().flat_map(columns_of).collect();
    let (mut next, mut found) = (Some(join), !predicates.iter().all(cannot_raise));
    while let Some(join) = next.filter(|join| is_subquery(join) && is_needed(join, &needed)) {
        found |= join.kind == SideKind::Single || !conditions(join).all(cannot_raise);
        needed.extend(conditions(join).flat_map(columns_of));
        needed.retain(|column| *column < join.left.width());
        next = match &*join.left {
            PlanNode::SideJoin(below) => Some(below),
            _ => None,
        };
    }
    found && is_subquery(join)
}

/// Whether one of its own columns is among those that are needed of it and what it hangs on.
fn is_needed(join: &SideJoin, needed: &BTreeSet<usize>) -> bool {
    needed.last().is_some_and(|last| *last >= join.left.width())
}

/// Whether each row of the left is given once, beside what is asked for it.
fn is_subquery(join: &SideJoin) -> bool {
    match join.kind {
        SideKind::Single | SideKind::Mark => true,
        SideKind::Left => join.is_per_row && !join.is_lateral,
        SideKind::Full | SideKind::Semi | SideKind::Anti => false,
    }
}

fn conditions(join: &SideJoin) -> impl Iterator<Item = &BoundExpr> {
    join.filters.iter().chain(&join.test)
}

fn beside(node: PlanNode, subqueries: Vec<SideJoin>) -> PlanNode {
    subqueries.into_iter().fold(node, |node, join| SideJoin { left: Box::new(node), ..join }.into())
}

impl Hanging {
    /// The subquery, with those below it that are asked for in the same breath, and what they hang on.
    fn taken(join: SideJoin, predicates: Vec<BoundExpr>) -> (Self, PlanNode) {
        let mut needed: BTreeSet<usize> = predicates.iter().flat_map(columns_of).collect();
        let (width, mut subqueries, mut node) = (join.width(), Vec::new(), PlanNode::SideJoin(join));
        loop {
            match node {
                PlanNode::SideJoin(mut join) if is_subquery(&join) && is_needed(&join, &needed) => {
                    needed.extend(conditions(&join).flat_map(columns_of));
                    needed.retain(|column| *column < join.left.width());
                    node = std::mem::replace(&mut *join.left, PlanNode::OneRow);
                    subqueries.push(join);
                }
                other => {
                    subqueries.reverse();
                    let own = width - other.width();
                    return (Self { subqueries, predicates, own }, other);
                }
            }
        }
    }

    /// The columns that they need of a node of that width.
    fn needed(&self, width: usize) -> BTreeSet<usize> {
        let all = self.subqueries.iter().flat_map(conditions).chain(&self.predicates).flat_map(columns_of);
        all.filter(|column| *column < width).collect()
    }

    /// Whether there is a join below of which one side has all that they need.
    fn goes_below(&self, node: &PlanNode) -> bool {
        match node {
            PlanNode::Filter { input, .. } => self.goes_below(input),
            PlanNode::Join(join) => self.input_of(join).is_some(),
            PlanNode::SideJoin(join) => self.side_of(join).is_some(),
            _ => false,
        }
    }

    fn input_of(&self, join: &Join) -> Option<usize> {
        let bases = join.bases();
        let needed = self.needed(bases[join.inputs.len()]);
        let input_at = |column: &usize| bases.partition_point(|base| base <= column) - 1;
        let (first, last) = (needed.first().map(input_at)?, needed.last().map(input_at)?);
        (first == last).then_some(first)
    }

    /// Which side of the join has all that they need, each of its rows as often as if nothing were padded there.
    fn side_of(&self, join: &SideJoin) -> Option<Side> {
        let (needed, left) = (self.needed(join.width()), join.left.width());
        let (is_of_left, is_of_right) = (*needed.last()? < left, *needed.first()? >= left);
        let removes = |side: Side| removes_padded(join, &self.predicates, side);
        match join.kind {
            SideKind::Full if is_of_right => removes(Side::Right).then_some(Side::Right),
            SideKind::Full => (is_of_left && removes(Side::Left)).then_some(Side::Left),
            SideKind::Left if is_of_right && !join.is_per_row => removes(Side::Right).then_some(Side::Right),
            _ => is_of_left.then_some(Side::Left),
        }
    }

    /// The node's columns and theirs, in that order, with all of it as far below as it goes.
    fn placed(self, node: PlanNode) -> PlanNode {
        match node {
            PlanNode::Filter { input, predicates } if self.goes_below(&input) => {
                self.placed(*input).filtered(predicates)
            }
            PlanNode::Join(join) if let Some(input) = self.input_of(&join) => self.placed_in(join, input),
            PlanNode::SideJoin(join) => match self.side_of(&join) {
                Some(Side::Right) if join.kind == SideKind::Full => self.placed_right(join),
                Some(Side::Right) => {
                    // Nothing is padded any more (prepjointree.c, reduce_outer_joins).
                    self.placed_in(Join::new(vec![*join.left, *join.right], join.filters), 1)
                }
                Some(_) => self.placed_left(join),
                None => self.here(PlanNode::SideJoin(join)),
            },
            other => self.here(other),
        }
    }

    fn here(self, node: PlanNode) -> PlanNode {
        beside(node, self.subqueries).filtered(self.predicates)
    }

    fn placed_in(mut self, mut join: Join, input: usize) -> PlanNode {
        let (bases, own) = (join.bases(), self.own);
        let (start, end, width) = (bases[input], bases[input + 1], bases[join.inputs.len()]);
        self.renumber(&|column| if column < width { column - start } else { column - width + (end - start) });
        let below = std::mem::replace(&mut join.inputs[input], PlanNode::OneRow);
        join.inputs[input] = self.placed(below);
        let moved = |column: usize| if column < end { column } else { column + own };
        join.filters.iter_mut().for_each(|filter| renumber(filter, &moved));
        in_order(PlanNode::Join(join), (0..width).map(moved).chain(end..end + own))
    }

    /// Of a full join whose rows without one of the right are removed: of the left join with its sides exchanged.
    fn placed_right(mut self, mut join: SideJoin) -> PlanNode {
        let (left_width, right_width, own) = (join.left.width(), join.right.width(), self.own);
        let exchanged = |column: usize| match column {
            column if column < left_width => column + right_width,
            column if column < left_width + right_width => column - left_width,
            column => column,
        };
        self.renumber(&exchanged);
        join.filters.iter_mut().for_each(|filter| renumber(filter, &exchanged));
        let (left, right) = (join.right, join.left);
        let node = self.placed_left(SideJoin { left, right, ..join });
        in_order(node, (0..left_width + right_width + own).map(exchanged))
    }

    fn placed_left(mut self, mut join: SideJoin) -> PlanNode {
        if join.kind == SideKind::Full {
            join.kind = SideKind::Left;
        }
        let (end, own, width) = (join.left.width(), self.own, join.width());
        self.renumber(&|column| if column < width { column } else { column - width + end });
        let below = std::mem::replace(&mut *join.left, PlanNode::OneRow);
        *join.left = self.placed(below);
        let moved = |column: usize| if column < end { column } else { column + own };
        join.filters.iter_mut().chain(&mut join.test).for_each(|filter| renumber(filter, &moved));
        in_order(PlanNode::SideJoin(join), (0..width).map(moved).chain(end..end + own))
    }

    fn renumber(&mut self, position: &dyn Fn(usize) -> usize) {
        let of_subqueries = self.subqueries.iter_mut().flat_map(|join| join.filters.iter_mut().chain(&mut join.test));
        of_subqueries.chain(&mut self.predicates).for_each(|expr| renumber(expr, position));
    }
}

fn in_order(node: PlanNode, places: impl Iterator<Item = usize>) -> PlanNode {
    let expressions: Vec<BoundExpr> = places.map(placeholder).collect();
    let is_so = expressions
        .iter()
        .enumerate()
        .all(|(at, expr)| matches!(expr, BoundExpr::Column { index, .. } if *index == at));
    if is_so { node } else { PlanNode::Project { input: Box::new(node), expressions } }
}
