//! The names that expressions of one query level may use: parse_relation.c's namespace.

use std::sync::Arc;

use crate::binder::folded::check_closed;
use crate::binder::relation::{is_own_column, map_columns, outer_index};
use crate::binder::typed::{CollationStrength, Origin, Typed};
use crate::binder::{Binder, Bound, BoundExpr, ExprType};
use crate::catalog::Collation;
use crate::reason::UpstreamReason;
use crate::statement::dependencies::SYSTEM;

/// One column of a FROM item.
#[derive(Clone, Debug)]
pub(super) struct ScopeColumn {
    pub(super) name: Arc<str>,
    /// Position in the output of the FROM clause's relation.
    pub(super) index: usize,
    /// For a merged column that is none of the two: over that output.
    pub(super) merged: Option<BoundExpr>,
    /// None: of a type that is not mirrored; wanting it sends the statement upstream.
    pub(super) expr_type: Option<ExprType>,
    pub(super) origin: Option<Origin>,
    /// Of a query: no more than constants and parameters; PostgreSQL's planner may put them in its place.
    pub(super) is_constant: bool,
    /// Of a query: its modifier hangs on which side of a set operation PostgreSQL's planner leaves.
    pub(super) is_open: bool,
    /// Indexes into the binder's table uses and the table's columns, one for each column that it stands for.
    pub(super) uses: Vec<(usize, usize)>,
}

/// A FROM item's row as a value (transformWholeRowRef).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// Its one column: a function's value.
    Value,
    /// All its columns.
    Record,
    /// Likewise, or NULL where an outer join found no row for it.
    Padded,
    /// Of a table or view whose columns have other names here, or of a function's several columns.
    Unknown,
}

/// One FROM item: a table, a subquery, or a join with merged columns (ParseNamespaceItem).
#[derive(Clone, Debug)]
pub(super) struct ScopeItem {
    /// None: a join, not to be named.
    pub(super) name: Option<String>,
    /// For `schema.table.column`: only a table without alias has one.
    pub(super) schema: Option<Arc<str>>,
    /// Whether its columns answer to unqualified names and `*`; not so inside a join with USING.
    pub(super) columns_visible: bool,
    /// A table, which has system columns besides; a view has none.
    pub(super) is_table: bool,
    /// What its name stands for where no column has it.
    pub(super) whole: Whole,
    pub(super) columns: Vec<ScopeColumn>,
    /// NULL only where an outer join found no row.
    pub(super) mark: Option<Box<ScopeColumn>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) items: Vec<ScopeItem>,
}

impl Scope {
    /// checkNameSpaceConflicts. Stricter: tables of one name in two schemas conflict here too.
    pub(super) fn joined(mut self, other: Self) -> Bound<Self> {
        for item in &other.items {
            if item.name.is_some() && self.items.iter().any(|earlier| earlier.name == item.name) {
                return Err(UpstreamReason::UnknownRelation("table name specified more than once".into()));
            }
        }
        self.items.extend(other.items);
        Ok(self)
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &ScopeColumn> {
        self.items.iter().flat_map(|item| &item.columns)
    }

    /// The columns that unqualified names see, in the order of `*`.
    pub(super) fn visible_columns(&self) -> impl Iterator<Item = &ScopeColumn> {
        self.items.iter().filter(|item| item.columns_visible).flat_map(|item| &item.columns)
    }

    /// colNameToVar: None if there is no such column; more than one is an error. A table's system columns are found like any
    /// other (scanNSItemForColumn), and are upstream's.
    pub(super) fn unqualified(&self, name: &str) -> Bound<Option<&ScopeColumn>> {
        // Since PostgreSQL 12 no table has an oid of its own.
        let is_system = name != "oid" && SYSTEM.contains(&name);
        if is_system && self.items.iter().any(|item| item.is_table && item.columns_visible) {
            return Err(unknown(&[name.to_owned()]));
        }
        unique(self.visible_columns(), name)
    }

    /// The item that `t` or `s.t` stands for.
    pub(super) fn item(&self, qualifier: &[String]) -> Bound<&ScopeItem> {
        let found = match qualifier {
            [name] => self.items.iter().find(|item| item.name.as_ref() == Some(name)),
            [schema, name] => self
                .items
                .iter()
                .find(|item| item.name.as_ref() == Some(name) && item.schema.as_deref() == Some(schema)),
            _ => None,
        };
        found.ok_or_else(|| UpstreamReason::UnknownRelation(qualifier.join(".").into()))
    }

    /// The column of that name at this level; None: look further out. A qualifier that is known here decides.
    pub(super) fn column(&self, names: &[String]) -> Bound<Option<&ScopeColumn>> {
        match names {
            [name] => self.unqualified(name),
            [qualifier @ .., name] => {
                let Ok(item) = self.item(qualifier) else { return Ok(None) };
                unique(item.columns.iter(), name)?.map(Some).ok_or_else(|| unknown(names))
            }
            [] => Ok(None),
        }
    }

    /// The same names for nobody to use: found, they send the statement upstream.
    pub(super) fn out_of_reach(&self) -> Self {
        let mut hidden = self.clone();
        for item in &mut hidden.items {
            (item.whole, item.mark) = (Whole::Unknown, None);
            item.columns.iter_mut().for_each(|column| column.expr_type = None);
        }
        hidden
    }

    /// Of an outer join's side whose rows may be missing.
    pub(super) fn may_be_missing(&mut self) {
        for item in self.items.iter_mut().filter(|item| item.whole == Whole::Record) {
            item.whole = Whole::Padded;
        }
    }

    /// Moves every column of the level by so many places to the right.
    pub(super) fn shift(&mut self, by: usize) {
        for column in self.items.iter_mut().flat_map(|item| item.columns.iter_mut().chain(item.mark.as_deref_mut())) {
            column.index += by;
            if let Some(merged) = &mut column.merged {
                map_columns(merged, &|index| if is_own_column(index) { index + by } else { index });
            }
        }
    }
}

pub(super) fn not_held(column: &ScopeColumn) -> UpstreamReason {
    UpstreamReason::UnsupportedType(format!("column {}", column.name).into())
}

fn unknown(names: &[String]) -> UpstreamReason {
    UpstreamReason::UnknownColumn(names.join(".").into())
}

/// The one column of that name; two are ambiguous.
fn unique<'s>(columns: impl Iterator<Item = &'s ScopeColumn>, name: &str) -> Bound<Option<&'s ScopeColumn>> {
    let mut found = columns.filter(|column| &*column.name == name);
    let first = found.next();
    if found.next().is_some() {
        return Err(UpstreamReason::UnknownColumn(format!("{name} is ambiguous").into()));
    }
    Ok(first)
}

impl Binder<'_> {
    /// Without the database's name, which is the first of so many; only the own may be named (transformColumnRef).
    pub(super) fn in_database<'n>(&self, names: &'n [String], all: usize) -> Bound<&'n [String]> {
        match names {
            [database, rest @ ..] if names.len() == all => match *database == self.catalog.database {
                true => Ok(rest),
                false => Err(unknown(names)),
            },
            _ => Ok(names),
        }
    }

    /// transformColumnRef: the nearest level that knows the name. System columns and whole-row references are not found:
    /// they go upstream.
    pub(super) fn column(&mut self, scope: &Scope, names: &[String]) -> Bound<Typed> {
        let names = self.in_database(names, 4)?;
        if let Some(column) = scope.column(names)? {
            let column = column.clone();
            return self.column_reference(&column);
        }
        for level in (0..self.outer.len()).rev() {
            let Some(column) = self.outer[level].column(names)? else { continue };
            let column = column.clone();
            // What is made of it further in is not followed.
            check_closed(column.is_open)?;
            let mut typed = self.column_reference(&column)?;
            map_columns(&mut typed.expr, &|index| if is_own_column(index) { outer_index(level, index) } else { index });
            return Ok(typed);
        }
        // transformWholeRowRef, where that is a value.
        if let [name] = names
            && let Some(item) = scope.items.iter().find(|item| item.name.as_ref() == Some(name))
            && item.whole == Whole::Value
            && !SYSTEM.contains(&name.as_str())
        {
            let column = item.columns[0].clone();
            return self.column_reference(&column);
        }
        self.argument_named(scope, names)?.ok_or_else(|| unknown(names))
    }

    /// The Var of a column, noted as used (markVarForSelectPriv).
    pub(super) fn column_reference(&mut self, column: &ScopeColumn) -> Bound<Typed> {
        let Some(expr_type) = column.expr_type else { return Err(self.lacks(column)) };
        self.note_used(column);
        let strength =
            if expr_type.collation == Collation::None { CollationStrength::None } else { CollationStrength::Implicit };
        let expr = column.merged.clone().unwrap_or(BoundExpr::Column { index: column.index, expr_type });
        Ok(Typed { expr, expr_type, strength, origin: column.origin })
    }

    pub(super) fn note_used(&mut self, column: &ScopeColumn) {
        for (table, index) in &column.uses {
            let used = &mut self.tables[*table].columns;
            if !used.contains(index) {
                used.push(*index);
            }
        }
    }
}
