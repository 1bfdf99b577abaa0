//! From syntax to meaning: names resolved, types and coercions decided as PostgreSQL decides them.
//!
//! In: the parsed statement, a [`Catalog`](crate::catalog::Catalog) and the session's search path.
//! Out: a [`BoundQuery`], relational algebra whose columns are positions, or an `UpstreamReason`.

use std::sync::Arc;

use crate::catalog::functions::{AggregateFunction, Function};
use crate::catalog::{Collation, RelationId};
use crate::types::{Oid, PgType, Value};

/// A value's declared type: what RowDescription and the coercion rules need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExprType {
    pub pg_type: PgType,
    /// -1 unless the value is known to obey a modifier (a column, or a cast with one).
    pub typmod: i32,
    pub collation: Collation,
}

/// An expression over the columns of one input.
#[derive(Clone, Debug)]
pub enum BoundExpr {
    /// Position in the input's output.
    Column {
        index: usize,
        expr_type: ExprType,
    },
    Literal {
        value: Value,
        expr_type: ExprType,
    },
    /// `$index+1`, already of its final type.
    Parameter {
        index: usize,
        expr_type: ExprType,
    },
    /// Operator, function or cast from the function table; arguments already coerced.
    Call {
        function: &'static Function,
        arguments: Vec<Self>,
        expr_type: ExprType,
    },
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    IsNull {
        operand: Box<Self>,
        negated: bool,
    },
    /// `IS [NOT] TRUE/FALSE/UNKNOWN`; `expected` None is UNKNOWN.
    IsBool {
        operand: Box<Self>,
        expected: Option<bool>,
        negated: bool,
    },
    /// `IS [NOT] DISTINCT FROM`; `equal` is the = operator of the coerced type.
    IsDistinct {
        equal: &'static Function,
        left: Box<Self>,
        right: Box<Self>,
        negated: bool,
    },
    /// Searched CASE (the simple form becomes comparisons). Branches are evaluated lazily, as PostgreSQL does.
    Case {
        branches: Vec<(Self, Self)>,
        otherwise: Box<Self>,
        expr_type: ExprType,
    },
    Coalesce {
        arguments: Vec<Self>,
        expr_type: ExprType,
    },
    /// GREATEST / LEAST: NULLs ignored; `less` is the < operator of the coerced type.
    Extreme {
        less: &'static Function,
        greatest: bool,
        arguments: Vec<Self>,
        expr_type: ExprType,
    },
    /// `operand [NOT] IN (literals)`, all of one coerced type; `equal` is its = operator. NULLs in the list keep their meaning.
    InList {
        equal: &'static Function,
        operand: Box<Self>,
        list: Vec<Self>,
        negated: bool,
    },
}

/// One aggregate of an [`BoundRelation::Aggregate`].
#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub function: AggregateFunction,
    /// None: count(*).
    pub argument: Option<BoundExpr>,
    pub is_distinct: bool,
    pub filter: Option<BoundExpr>,
    pub expr_type: ExprType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Cross,
}

/// ORDER BY key over the input's columns.
#[derive(Clone, Debug)]
pub struct SortKey {
    pub expr: BoundExpr,
    pub descending: bool,
    pub nulls_first: bool,
}

/// Relational algebra; the output columns of each node are positions for its parent.
#[derive(Clone, Debug)]
pub enum BoundRelation {
    /// One row, no columns: a query without FROM.
    OneRow,
    /// Outputs the named columns (indexes into the table's schema), in this order.
    Scan {
        table: RelationId,
        columns: Vec<usize>,
    },
    Filter {
        input: Box<Self>,
        predicate: BoundExpr,
    },
    Project {
        input: Box<Self>,
        expressions: Vec<BoundExpr>,
    },
    /// Output: left's columns, then right's. `condition` is over that; None only for Cross.
    Join {
        kind: JoinKind,
        left: Box<Self>,
        right: Box<Self>,
        condition: Option<BoundExpr>,
    },
    /// Output: the group expressions, then the aggregates. No groups: exactly one row.
    Aggregate {
        input: Box<Self>,
        groups: Vec<BoundExpr>,
        aggregates: Vec<AggregateCall>,
    },
    /// Equal rows once (NULLs equal). Output order is free.
    Distinct {
        input: Box<Self>,
    },
    Sort {
        input: Box<Self>,
        keys: Vec<SortKey>,
    },
    /// Over bigint expressions without columns; NULL is no limit.
    Limit {
        input: Box<Self>,
        limit: Option<BoundExpr>,
        offset: Option<BoundExpr>,
    },
}

/// One column of the result, as RowDescription carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    pub name: Arc<str>,
    /// Zero unless the column is a plain table column.
    pub table_oid: Oid,
    pub attnum: i16,
    pub expr_type: ExprType,
}

/// One range-table entry: what privileges are checked on and what the answer depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUse {
    pub table: RelationId,
    /// Indexes into the schema's columns that the statement mentions; empty: none (count(*)).
    pub columns: Vec<usize>,
}

/// A statement that is understood. Read-only; shared by all sessions.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    pub root: BoundRelation,
    pub output: Vec<OutputColumn>,
    /// Type of each `$n`.
    pub parameters: Vec<PgType>,
    pub tables: Vec<TableUse>,
    /// Uses now() or its kin: never cached; needs upstream's time.
    pub uses_time: bool,
    /// Parsed a literal whose meaning depends on TimeZone, DateStyle or IntervalStyle (folded at parse time).
    pub folds_settings: bool,
}
