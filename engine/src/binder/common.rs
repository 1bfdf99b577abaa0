//! WITH queries: bound once where they stand, computed once where they are read from several places.

use std::sync::Arc;

use crate::binder::query::Unknowns;
use crate::binder::select::SelectedColumn;
use crate::binder::{Binder, Bound, BoundRelation, unsupported};
use crate::reason::UpstreamReason;
use crate::statement::ast::{CommonTable, Query};

/// WITH queries in one list.
const WITH_QUERIES_MAX: usize = 64;

/// A name in sight.
pub(super) struct Visible {
    name: Arc<str>,
    /// Which of the binder's commons it is.
    index: usize,
}

pub(super) struct Common {
    /// None once it has been put in place of its only reference.
    relation: Option<BoundRelation>,
    columns: Vec<SelectedColumn>,
    references: usize,
    is_materialized: Option<bool>,
    is_correlated: bool,
}

impl Binder<'_> {
    /// Puts the WITH queries of `query` in sight, one by one: each sees those before it. How many there were before.
    pub(super) fn enter_with(&mut self, query: &Query) -> Bound<usize> {
        let before = self.with.len();
        if query.is_recursive {
            return Err(unsupported("WITH RECURSIVE"));
        }
        if query.with.len() > WITH_QUERIES_MAX {
            return Err(unsupported("too many WITH queries"));
        }
        for (position, table) in query.with.iter().enumerate() {
            if query.with[..position].iter().any(|earlier| earlier.name == table.name) {
                return Err(UpstreamReason::UnknownRelation("WITH query name specified more than once".into()));
            }
            self.bind_common(table)?;
        }
        Ok(before)
    }

    fn bind_common(&mut self, table: &CommonTable) -> Bound<()> {
        let mut selected = self.query(&table.query, Unknowns::BecomeText)?;
        if table.columns.len() > selected.columns.len() {
            return Err(UpstreamReason::UnknownColumn("more column aliases than columns".into()));
        }
        for (column, name) in selected.columns.iter_mut().zip(&table.columns) {
            column.name = name.as_str().into();
        }
        let is_correlated = selected.relation.is_correlated();
        self.commons.push(Common {
            relation: Some(selected.relation),
            columns: selected.columns,
            references: 0,
            is_materialized: table.is_materialized,
            is_correlated,
        });
        self.with.push(Visible { name: table.name.as_str().into(), index: self.commons.len() - 1 });
        Ok(())
    }

    /// The rows and columns that a name stands for, if it is a WITH query's (scanNameSpaceForCTE).
    pub(super) fn common(&mut self, name: &str) -> Bound<Option<(BoundRelation, Vec<SelectedColumn>)>> {
        let Some(index) = self.with.iter().rev().find(|visible| &*visible.name == name).map(|visible| visible.index)
        else {
            return Ok(None);
        };
        let common = &mut self.commons[index];
        common.references += 1;
        let columns = common.columns.clone();
        // What depends on outer rows is part of the query that it stands in.
        let relation = match common.is_correlated {
            true => common.relation.take().ok_or_else(|| unsupported("correlated WITH query used more than once"))?,
            false => BoundRelation::Common { index, width: columns.len() },
        };
        Ok(Some((relation, columns)))
    }

    /// Rows that several parts of the statement read.
    pub(super) fn shared(&mut self, mut relation: BoundRelation) -> Bound<BoundRelation> {
        if relation.is_correlated() {
            return Err(unsupported("grouping sets in a correlated subquery"));
        }
        let width = relation.width();
        self.commons.push(Common {
            relation: Some(relation),
            columns: Vec::new(),
            references: 2,
            is_materialized: Some(true),
            is_correlated: false,
        });
        Ok(BoundRelation::Common { index: self.commons.len() - 1, width })
    }

    /// Puts each WITH query that is read once in place of its name, as PostgreSQL does unless told otherwise; the others,
    /// numbered anew, are what the query has in common.
    pub(super) fn resolve_commons(&mut self, root: &mut BoundRelation) -> Vec<BoundRelation> {
        let mut scalars = std::mem::take(&mut self.scalars);
        let mut kept: Vec<BoundRelation> = Vec::new();
        let mut numbers: Vec<Option<usize>> = Vec::with_capacity(self.commons.len());
        let mut inlined: Vec<Option<BoundRelation>> = Vec::with_capacity(self.commons.len());
        for common in std::mem::take(&mut self.commons) {
            let Some(mut relation) = common.relation.filter(|_| common.references > 0) else {
                numbers.push(None);
                inlined.push(None);
                continue;
            };
            replace(&mut relation, &numbers, &mut inlined);
            let is_inlined = common.is_materialized != Some(true) && common.references == 1;
            numbers.push((!is_inlined).then_some(kept.len()));
            inlined.push(is_inlined.then(|| relation.clone()));
            if !is_inlined {
                kept.push(relation);
            }
        }
        replace(root, &numbers, &mut inlined);
        scalars.iter_mut().for_each(|scalar| replace(&mut scalar.relation, &numbers, &mut inlined));
        self.scalars = scalars;
        kept
    }
}

fn replace(relation: &mut BoundRelation, numbers: &[Option<usize>], inlined: &mut [Option<BoundRelation>]) {
    if let BoundRelation::Common { index, .. } = relation {
        match (numbers.get(*index).copied().flatten(), inlined.get(*index).cloned().flatten()) {
            (Some(number), _) => *index = number,
            (None, Some(whole)) => *relation = whole,
            // A WITH query is bound before what names it.
            (None, None) => unreachable!("every WITH query that is named was kept"),
        }
        return;
    }
    relation.inputs_mut().into_iter().for_each(|input| replace(input, numbers, inlined));
}
