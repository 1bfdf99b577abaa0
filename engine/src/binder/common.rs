//! WITH queries: bound once where they stand, computed once where they are read from several places.

use std::sync::Arc;

use crate::binder::select::{Selected, SelectedColumn};
use crate::binder::{Binder, Bound, BoundRelation, unsupported};
use crate::reason::UpstreamReason;
use crate::statement::ast::{CommonTable, Query};

/// WITH queries in one list.
const WITH_QUERIES_MAX: usize = 64;

/// A name in sight.
pub(super) struct Visible {
    name: Arc<str>,
    pub(super) meaning: Meaning,
}

/// What a name stands for.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// One of the binder's commons.
    Common(usize),
    /// The rows of the round before, of the recursion of that number.
    Working(usize),
    /// Upstream's, and why.
    Unusable(&'static str),
}

impl Visible {
    pub(super) fn new(name: &str, meaning: Meaning) -> Self {
        Self { name: name.into(), meaning }
    }
}

pub(super) struct Common {
    /// None once it has been put in place of its only reference.
    relation: Option<BoundRelation>,
    columns: Vec<SelectedColumn>,
    references: usize,
    is_materialized: Option<bool>,
    is_correlated: bool,
}

impl Common {
    pub(super) fn relation(&self) -> Option<&BoundRelation> {
        self.relation.as_ref()
    }
}

impl Binder<'_> {
    /// Puts the WITH queries of `query` in sight, one by one: each sees those before it. How many there were before.
    pub(super) fn enter_with(&mut self, query: &Query) -> Bound<usize> {
        let before = self.with.len();
        if query.with.len() > WITH_QUERIES_MAX {
            return Err(unsupported("too many WITH queries"));
        }
        for (position, table) in query.with.iter().enumerate() {
            if query.with[..position].iter().any(|earlier| earlier.name == table.name) {
                return Err(UpstreamReason::UnknownRelation("WITH query name specified more than once".into()));
            }
            let selected = match query.is_recursive {
                true => self.recursive_query(table, query.with[position + 1..].iter())?,
                false => self.source(&table.query)?,
            };
            self.add_common(table, selected)?;
        }
        Ok(before)
    }

    fn add_common(&mut self, table: &CommonTable, mut selected: Selected) -> Bound<()> {
        if table.columns.len() > selected.columns.len() {
            return Err(UpstreamReason::UnknownColumn("more column aliases than columns".into()));
        }
        for (column, name) in selected.columns.iter_mut().zip(&table.columns) {
            column.name = name.as_str().into();
        }
        if selected.relation.reads_working() {
            return Err(unsupported("recursive reference in such a place"));
        }
        let is_correlated = selected.relation.is_correlated();
        // A recursion is computed as far as it is read, unless it is read from several places.
        let is_recursive = matches!(selected.relation, BoundRelation::Recursive { .. });
        self.commons.push(Common {
            relation: Some(selected.relation),
            columns: selected.columns,
            references: 0,
            is_materialized: table.is_materialized.filter(|_| !is_recursive),
            is_correlated,
        });
        self.with.push(Visible::new(&table.name, Meaning::Common(self.commons.len() - 1)));
        Ok(())
    }

    /// The rows and columns that a name stands for, if it is a WITH query's (scanNameSpaceForCTE).
    pub(super) fn common(&mut self, name: &str) -> Bound<Option<(BoundRelation, Vec<SelectedColumn>)>> {
        let index = match self.with.iter().rev().find(|visible| &*visible.name == name).map(|visible| visible.meaning) {
            None => return Ok(None),
            Some(Meaning::Unusable(why)) => return Err(unsupported(why)),
            Some(Meaning::Working(number)) => {
                let recursion = &mut self.recursions[number];
                recursion.references += 1;
                let columns = recursion.columns.clone();
                let types = columns.iter().map(|column| column.expr_type).collect();
                return Ok(Some((BoundRelation::Working { number, columns: types }, columns)));
            }
            Some(Meaning::Common(index)) => index,
        };
        let common = &mut self.commons[index];
        common.references += 1;
        let columns = common.columns.clone();
        // What depends on outer rows is part of the query that it stands in.
        if common.is_correlated && common.is_materialized == Some(true) {
            return Err(unsupported("a correlated WITH query that is materialized"));
        }
        let relation = match common.is_correlated {
            true => common.relation.take().ok_or_else(|| unsupported("correlated WITH query used more than once"))?,
            false => BoundRelation::Common { index, width: columns.len() },
        };
        Ok(Some((relation, columns)))
    }

    /// Rows that several parts of the statement read.
    pub(super) fn shared(&mut self, mut relation: BoundRelation) -> Bound<BoundRelation> {
        if relation.is_correlated() {
            return Err(unsupported("rows read several times in a correlated subquery"));
        }
        if relation.reads_working() {
            return Err(unsupported("rows read several times in a recursive query"));
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
