//! Which outer joins give no padded rows after all, because what is said above removes them.

use crate::binder::BoundExpr;
use crate::planner::expression::{columns_of, nonnullable};
use crate::planner::node::{PlanNode, SideJoin, SideKind};

/// A full join whose padded rows would not survive is one of a single side, or of none (prepjointree.c, reduce_outer_joins): what is said of
/// a side that is kept is computed for all its rows. True: that is the right one, of which the join stays full here, and everything
/// said above it.
pub(super) fn reduce_full(join: &mut SideJoin, predicates: &[BoundExpr]) -> bool {
    if join.kind != SideKind::Full {
        return false;
    }
    if removes_padded(join, predicates, Side::Left) {
        // If those of the other kind would not either, it goes on from here as any of its kind.
        join.kind = SideKind::Left;
        return false;
    }
    removes_padded(join, predicates, Side::Right)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Left,
    Right,
    /// What hangs on the join.
    Neither,
}

/// Whether the rows that have NULLs in place of a row of that side are removed.
pub(super) fn removes_padded(join: &SideJoin, predicates: &[BoundExpr], side: Side) -> bool {
    let (left_width, right_width) = (join.left.width(), join.right.width());
    let relation_of = |column: usize| match column.checked_sub(left_width) {
        None => (Side::Left, relation_of(&join.left, column)),
        Some(column) if column < right_width => (Side::Right, relation_of(&join.right, column)),
        Some(_) => (Side::Neither, std::ptr::null()),
    };
    predicates.iter().any(|predicate| nonnullable(predicate, &relation_of).iter().any(|(of, _)| *of == side))
}

/// The relation of FROM that a column belongs to, by its address: a table, or what is joined as one. Of what is computed of several, the
/// node that does.
fn relation_of(node: &PlanNode, column: usize) -> *const PlanNode {
    match node {
        PlanNode::Filter { input, .. } => relation_of(input, column),
        PlanNode::Project { input, expressions } => {
            let mut of = columns_of(&expressions[column]).into_iter().map(|column| relation_of(input, column));
            match of.next() {
                Some(first) if of.all(|other| other == first) => first,
                _ => node,
            }
        }
        PlanNode::Join(join) => {
            let (input, column) = join.input_at(column);
            relation_of(input, column)
        }
        PlanNode::SideJoin(join) => match join.side_at(column) {
            Some((side, column)) => relation_of(side, column),
            None => node,
        },
        _ => node,
    }
}
