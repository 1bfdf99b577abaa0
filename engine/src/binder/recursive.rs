//! WITH RECURSIVE (parse_cte.c): a query that is a UNION whose right side reads its own rows, once and in a plain place.
//! Anything else that names itself, or a later query of the same list, is upstream's, to be answered or refused.

use crate::binder::common::{Meaning, Visible};
use crate::binder::query::Unknowns;
use crate::binder::select::{Selected, SelectedColumn};
use crate::binder::{Binder, Bound, BoundRelation, JoinKind, unsupported};
use crate::catalog::functions::CastContext;
use crate::reason::UpstreamReason;
use crate::statement::ast::{Body, CommonTable, Query, SetOperation};
use crate::types::PgType;

/// A query that is being bound and may read its own rows.
pub(super) struct Recursion {
    pub(super) columns: Vec<SelectedColumn>,
    pub(super) references: usize,
}

impl Binder<'_> {
    /// A query of a WITH RECURSIVE list; `later`: the names of those behind it.
    pub(super) fn recursive_query<'t>(
        &mut self,
        table: &'t CommonTable,
        later: impl Iterator<Item = &'t CommonTable>,
    ) -> Bound<Selected> {
        let mark = self.with.len();
        for hidden in later {
            self.with.push(Visible::new(&hidden.name, Meaning::Unusable("reference to a later WITH query")));
        }
        let own = self.with.len();
        self.with.push(Visible::new(&table.name, Meaning::Unusable("recursive reference in such a place")));
        let selected = match &table.query.body {
            Body::Set { operation: SetOperation::Union, is_all, left, right } => {
                self.enter_with(&table.query)?;
                let left = self.query(left, Unknowns::Stay)?;
                self.recursive_union(table, own, *is_all, left, right)?
            }
            _ => self.source(&table.query)?,
        };
        self.with.truncate(mark);
        Ok(selected)
    }

    fn recursive_union(
        &mut self,
        table: &CommonTable,
        own: usize,
        is_all: bool,
        left: Selected,
        right: &Query,
    ) -> Bound<Selected> {
        let number = self.recursions.len();
        let columns = self.known_columns(&left, table)?;
        self.recursions.push(Recursion { columns: columns.clone(), references: 0 });
        self.with[own].meaning = Meaning::Working(number);
        let right = self.query(right, Unknowns::Stay)?;
        if self.recursions[number].references == 0 {
            let combined = self.combined(SetOperation::Union, is_all, left, right)?;
            return self.arranged(combined, &table.query);
        }
        let query = &table.query;
        if !query.order_by.is_empty() || query.limit.is_some() || query.offset.is_some() {
            return Err(unsupported("ORDER BY or LIMIT in a recursive query"));
        }
        let sides = self.sides(SetOperation::Union, is_all, left, right)?;
        // analyzeCTE: what the first rows are like, all are.
        if sides.columns.iter().zip(&columns).any(|(overall, first)| overall.expr_type != first.expr_type) {
            return Err(UpstreamReason::LocalError("recursive query whose columns change their type".into()));
        }
        if self.recursions[number].references != 1 || readings(&sides.right, number) != 1 {
            return Err(unsupported("recursive reference in such a place"));
        }
        let (base, step) = (Box::new(sides.left), Box::new(sides.right));
        let types = sides.columns.iter().map(|column| column.expr_type).collect();
        let relation = BoundRelation::Recursive { base, step, is_all, number, columns: types };
        Ok(Selected { relation, columns: sides.columns })
    }

    /// determineRecursiveColTypes: the columns as the right side sees them.
    fn known_columns(&mut self, left: &Selected, table: &CommonTable) -> Bound<Vec<SelectedColumn>> {
        if table.columns.len() > left.columns.len() {
            return Err(UpstreamReason::UnknownColumn("more column aliases than columns".into()));
        }
        let mut known = Vec::with_capacity(left.columns.len());
        for (position, column) in left.columns.iter().enumerate() {
            let expr_type = match &column.untyped {
                Some(untyped) => self.coerce(untyped.clone(), PgType::Text, CastContext::Implicit)?.expr_type,
                None => column.expr_type,
            };
            let name = table.columns.get(position).map_or_else(|| column.name.clone(), |name| name.as_str().into());
            known.push(SelectedColumn::computed(name, expr_type));
        }
        Ok(known)
    }
}

/// How often the rows of the round before are read where every one of them is read as it is, which is a part of where
/// PostgreSQL allows it (checkWellFormedRecursionWalker).
fn readings(relation: &BoundRelation, number: usize) -> usize {
    match relation {
        BoundRelation::Working { number: own, .. } => usize::from(*own == number),
        BoundRelation::Filter { input, .. }
        | BoundRelation::Project { input, .. }
        | BoundRelation::Distinct { input, .. }
        | BoundRelation::Expand { input, .. }
        | BoundRelation::Sort { input, .. } => readings(input, number),
        BoundRelation::Aggregate { input, aggregates, .. } if aggregates.is_empty() => readings(input, number),
        BoundRelation::Join { kind: JoinKind::Inner | JoinKind::Cross, left, right, .. } => {
            readings(left, number) + readings(right, number)
        }
        BoundRelation::Join { kind: JoinKind::Left | JoinKind::PerRow | JoinKind::Lateral, left, .. }
        | BoundRelation::Match { left, .. } => readings(left, number),
        BoundRelation::Append { inputs, .. } => inputs.iter().map(|input| readings(input, number)).sum(),
        _ => 0,
    }
}
