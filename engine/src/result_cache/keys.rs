//! [`Keys`]: of which keys alone a statement reads rows, where its scans say so.

use crate::binder::{BoundExpr, cannot_raise};
use crate::catalog::{Catalog, RelationId};
use crate::executor::scan::as_column_type;
use crate::planner::expression::{is_indexable, type_of};
use crate::planner::node::{LookUp, Scan};
use crate::types::{KeyHash, PgType, Value};

/// Longer lists of values are as good as none.
const KEYS_MAX: usize = 16;
/// Columns of one table.
const COLUMNS_MAX: usize = 4;

/// What one statement with its parameters is confined to: of the tables named here it depends on the rows alone that have one of
/// the keys in the column, in each of the columns named. Tables that are not named are read as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(Box<[KeysOf]>);

/// One column of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysOf {
    pub table: RelationId,
    /// Index into the table's schema.
    pub column: usize,
    pub attnum: i16,
    pub keys: Box<[KeyHash]>,
}

impl Keys {
    /// Of all scans of a statement that was bound with `catalog`. Columns of a table's primary key come first.
    pub fn of(scans: &[Scan], parameters: &[Value], catalog: &Catalog) -> Self {
        let mut all: Vec<KeysOf> = Vec::new();
        // What reads a partitioned table reads its leaves, by whatever columns those have.
        let roots = scans.iter().filter_map(|scan| catalog.partitioned.get(&scan.table));
        let leaves: Vec<RelationId> = roots.flat_map(|root| root.leaves.iter().map(|leaf| leaf.table)).collect();
        for (at, scan) in scans.iter().enumerate() {
            let is_first = !scans[..at].iter().any(|before| before.table == scan.table);
            let is_wanted = is_first && !leaves.contains(&scan.table);
            let Some(schema) = catalog.tables.get(&scan.table).filter(|_| is_wanted) else { continue };
            let of_table: Vec<&Scan> = scans.iter().filter(|other| other.table == scan.table).collect();
            let primary_key = &schema.primary_key[..];
            let mut columns: Vec<usize> = columns_of(scan, primary_key).collect();
            columns.sort_by_key(|column| (!schema.primary_key.contains(column), *column));
            columns.dedup();
            let confined = columns.into_iter().filter_map(|column| {
                let mut keys = Vec::new();
                for scan in &of_table {
                    keys.extend(keys_in(scan, primary_key, column, parameters)?);
                }
                keys.sort_unstable();
                keys.dedup();
                let attnum = schema.columns.get(column)?.attnum;
                let is_short = !keys.is_empty() && keys.len() <= KEYS_MAX;
                is_short.then(|| KeysOf { table: scan.table, column, attnum, keys: keys.into() })
            });
            all.extend(confined.take(COLUMNS_MAX));
        }
        Self(all.into())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The columns by which the table's rows are confined.
    pub fn of_table(&self, table: RelationId) -> impl Iterator<Item = &KeysOf> {
        self.0.iter().filter(move |keys| keys.table == table)
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|of| size_of::<KeysOf>() + of.keys.len() * size_of::<KeyHash>()).sum()
    }
}

/// Schema columns that a filter of the scan may confine.
fn columns_of<'s>(scan: &'s Scan, primary_key: &'s [usize]) -> impl Iterator<Item = usize> + 's {
    look_ups(scan, primary_key).map(|look_up| look_up.column).chain(lists(scan).map(|(column, ..)| column))
}

/// The keys that a row that passes the scan has in this column. None: it may have any.
fn keys_in(scan: &Scan, primary_key: &[usize], column: usize, parameters: &[Value]) -> Option<Vec<KeyHash>> {
    let of_look_up = |look_up: &LookUp| {
        (look_up.column == column).then(|| key(&look_up.value, look_up.column_type, parameters)).flatten()
    };
    if let Some(key) = look_ups(scan, primary_key).find_map(of_look_up) {
        return Some(vec![key]);
    }
    lists(scan)
        .filter(|(of, ..)| *of == column)
        .find_map(|(_, pg_type, list)| list.iter().map(|item| key(item, pg_type, parameters)).collect())
}

/// The number of the first filter that may raise an error, for rows that filters behind it would drop.
fn reached(scan: &Scan) -> usize {
    scan.filters.iter().position(|filter| !cannot_raise(filter)).unwrap_or(scan.filters.len())
}

/// Those that decide on a row before it may raise an error, and those of a whole primary key, by whose index PostgreSQL reads.
fn look_ups<'s>(scan: &'s Scan, primary_key: &'s [usize]) -> impl Iterator<Item = &'s LookUp> {
    let reached = reached(scan);
    let is_named = |column: &usize| scan.look_ups.iter().any(|look_up| look_up.column == *column);
    let is_by_key = !primary_key.is_empty() && primary_key.iter().all(is_named);
    let decides =
        move |look_up: &&LookUp| look_up.filter <= reached || (is_by_key && primary_key.contains(&look_up.column));
    scan.look_ups.iter().filter(decides)
}

/// Likewise the lists: column, type and values.
fn lists(scan: &Scan) -> impl Iterator<Item = (usize, PgType, &[BoundExpr])> {
    scan.filters[..reached(scan)].iter().filter_map(move |filter| listed(scan, filter))
}

/// `column IN (values of its type)`.
fn listed<'s>(scan: &Scan, filter: &'s BoundExpr) -> Option<(usize, PgType, &'s [BoundExpr])> {
    let BoundExpr::InList { operand, list, negated: false, .. } = filter else { return None };
    let BoundExpr::Column { index, expr_type } = &**operand else { return None };
    let pg_type = expr_type.pg_type;
    let is_plain = list.len() <= KEYS_MAX && list.iter().all(|item| is_indexable(pg_type, type_of(item)));
    is_plain.then(|| (scan.columns[*index], pg_type, &list[..]))
}

/// A value that is known before the statement runs. NULL, and what the column cannot hold, equals nothing: then it is not worth
/// an entry.
fn key(value: &BoundExpr, column_type: PgType, parameters: &[Value]) -> Option<KeyHash> {
    let value = match value {
        BoundExpr::Literal { value, .. } => value.clone(),
        // Behind the statement's own are those of subqueries.
        BoundExpr::Parameter { index, .. } => parameters.get(*index)?.clone(),
        _ => return None,
    };
    KeyHash::of(&as_column_type(value, column_type)?)
}
