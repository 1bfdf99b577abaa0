//! Conjuncts of WHERE that ask a subquery of a part of what is joined. PostgreSQL asks it of all rows of that part (initsplan.c,
//! distribute_qual_to_rels). The planner does so where the subquery hangs on the rows (its rule `hanging`); where it is computed from what
//! they say ([`super::dependent`]), those that the join has dropped are not known, and whether they raise an error neither.

use std::collections::BTreeSet;

use crate::binder::dependent::collect;
use crate::binder::harmless::is_quiet_relation;
use crate::binder::relation::is_own_column;
use crate::binder::subquery::{Asked, Subquery, asked};
use crate::binder::typed::children;
use crate::binder::{BoundExpr, BoundRelation, cannot_raise};
use crate::types::Value;

/// Whether the conjunct is about the rows of a part of `joined` alone, and what it asks of them may raise an error.
pub(super) fn may_raise_of_part(joined: &BoundRelation, part: &BoundExpr, subqueries: &[Subquery]) -> bool {
    let numbers = asked([part].into_iter(), subqueries);
    let mut columns = BTreeSet::new();
    collect_own(part, &mut columns);
    let mut is_quiet = cannot_raise(part);
    for subquery in numbers.iter().filter_map(|number| subqueries.get(*number)) {
        let mut tied = Vec::new();
        subquery.relation.clone().for_each_expression(&mut |expr| collect(expr, subquery.level, &mut tied));
        columns.extend(tied.into_iter().map(|(column, _)| column));
        is_quiet &= match &subquery.kind {
            Asked::Value => is_one_row(&subquery.relation),
            Asked::Exists => true,
            Asked::In(test) => {
                collect_own(test, &mut columns);
                cannot_raise(test)
            }
        };
        is_quiet &= is_quiet_relation(&subquery.relation);
    }
    !numbers.is_empty() && !is_quiet && is_of_part(joined, &columns)
}

fn collect_own(expr: &BoundExpr, columns: &mut BTreeSet<usize>) {
    if let BoundExpr::Column { index, .. } = expr
        && is_own_column(*index)
    {
        columns.insert(*index);
    }
    children(expr).into_iter().for_each(|child| collect_own(child, columns));
}

fn is_of_part(joined: &BoundRelation, columns: &BTreeSet<usize>) -> bool {
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else { return false };
    match joined {
        BoundRelation::Filter { input, .. } => is_of_part(input, columns),
        BoundRelation::Join { left, .. } | BoundRelation::Dependent { left, .. } => {
            *last < left.width() || *first >= left.width()
        }
        BoundRelation::Match { left, .. } => is_of_part(left, columns),
        _ => false,
    }
}

fn is_one_row(relation: &BoundRelation) -> bool {
    match relation {
        BoundRelation::Project { input, .. } => is_one_row(input),
        BoundRelation::Aggregate { groups, .. } => groups.is_empty(),
        BoundRelation::Limit {
            limit: Some(BoundExpr::Literal { value: Value::Int8(limit), .. }), with_ties, ..
        } => *limit <= 1 && !with_ties,
        BoundRelation::OneRow => true,
        _ => false,
    }
}
