//! The syntax of the queries that are looked at: what gram.y's productions for SELECT produce, and nothing more.
//!
//! Every form in here is one that the binder knows; whatever else PostgreSQL's grammar allows has no type here, so
//! that no clause can be dropped silently. Names are folded already.

/// A name after folding and unquoting.
pub type Name = String;

/// A query expression: WITH list, body, and the clauses that apply to the whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Vec<CommonTable>,
    pub is_recursive: bool,
    pub body: Body,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    /// WITH TIES: the limit's last row comes with all that ORDER BY does not tell from it.
    pub with_ties: bool,
}

impl Query {
    /// Its SELECT, where nothing but targets and FROM stands in it.
    pub fn bare(&self) -> Option<&Select> {
        let Body::Select(select) = &self.body else { return None };
        let is_bare = self.with.is_empty()
            && self.order_by.is_empty()
            && self.limit.is_none()
            && self.offset.is_none()
            && select.quantifier == Quantifier::All
            && select.filter.is_none()
            && select.group_by.is_empty()
            && select.having.is_none()
            && select.windows.is_empty();
        is_bare.then_some(&**select)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Select(Box<Select>),
    /// Rows of equal length.
    Values(Vec<Vec<Expr>>),
    Set {
        operation: SetOperation,
        /// ALL: without removing duplicates.
        is_all: bool,
        left: Box<Query>,
        right: Box<Query>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// `SELECT ...` (simple_select).
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub quantifier: Quantifier,
    pub targets: Vec<Target>,
    /// The comma list.
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub group_by: Vec<GroupItem>,
    pub having: Option<Expr>,
    /// WINDOW.
    pub windows: Vec<(Name, Window)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Quantifier {
    All,
    Distinct,
    DistinctOn(Vec<Expr>),
}

/// group_by_item. The lists of ROLLUP and CUBE have one entry per element, which may be several expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupItem {
    Expr(Expr),
    /// `()`.
    Empty,
    Rollup(Vec<Vec<Expr>>),
    Cube(Vec<Vec<Expr>>),
    Sets(Vec<Self>),
}

/// window_specification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// The window that it is built on.
    pub base: Option<Name>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderItem>,
    pub frame: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    pub end: FrameBound,
    pub exclusion: Exclusion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// opt_window_exclusion_clause: what a frame leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    Nothing,
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// Its peers.
    Ties,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>),
    CurrentRow,
    Following(Box<Expr>),
    UnboundedFollowing,
}

/// What stands after OVER.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    Name(Name),
    Window(Window),
}

/// `name [(columns)] AS [[NOT] MATERIALIZED] (query)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    pub name: Name,
    pub columns: Vec<Name>,
    /// None: PostgreSQL decides.
    pub is_materialized: Option<bool>,
    pub query: Query,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// `*`, or `t.*` / `s.t.*`.
    Star(Vec<Name>),
    Expr {
        expr: Expr,
        label: Option<Name>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Table {
        /// `[table]`, `[schema, table]` or `[database, schema, table]`.
        name: Vec<Name>,
        /// ONLY: without the tables that inherit from it.
        is_only: bool,
        alias: Option<Alias>,
    },
    Subquery {
        query: Box<Query>,
        /// Before PostgreSQL 16 it is required.
        alias: Option<Alias>,
        is_lateral: bool,
    },
    /// A function's rows.
    Function {
        call: Call,
        /// WITH ORDINALITY.
        is_numbered: bool,
        alias: Option<Alias>,
        is_lateral: bool,
    },
    Join {
        kind: JoinType,
        left: Box<Self>,
        right: Box<Self>,
        condition: JoinCondition,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    pub name: Name,
    /// Renames the first columns.
    pub columns: Vec<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinType {
    Inner,
    Left,
    Right,
    Full,
    Cross,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    /// CROSS JOIN.
    None,
    On(Expr),
    Using(Vec<Name>),
    Natural,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
    /// None: PostgreSQL's default, NULLs as larger than everything.
    pub nulls_first: Option<bool>,
}

/// a_expr. Parentheses leave no trace, as in gram.y.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `c`, `t.c`, `s.t.c`.
    Column(Vec<Name>),
    /// `t.*` as a value.
    WholeRow(Name),
    /// Digits as written, with the sign that doNegate folds in.
    Number(String),
    String(String),
    Bool(bool),
    Null,
    /// `$n`, counted from 1.
    Parameter(usize),
    /// `::`, CAST, `type 'literal'`.
    Cast {
        operand: Box<Self>,
        to: TypeName,
    },
    /// An operator by symbol; `!=` is `<>`, LIKE is `~~`.
    Operator {
        symbol: String,
        left: Option<Box<Self>>,
        right: Box<Self>,
    },
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    IsNull {
        operand: Box<Self>,
        negated: bool,
    },
    /// `expected` None is UNKNOWN.
    IsBool {
        operand: Box<Self>,
        expected: Option<bool>,
        negated: bool,
    },
    IsDistinct {
        left: Box<Self>,
        right: Box<Self>,
        negated: bool,
    },
    Between {
        operand: Box<Self>,
        low: Box<Self>,
        high: Box<Self>,
        negated: bool,
        /// SYMMETRIC: between the two, whichever is the greater.
        is_symmetric: bool,
    },
    In {
        operand: Box<Self>,
        list: Vec<Self>,
        negated: bool,
    },
    /// `(a, b)`, or `ROW(a, b)`.
    Row {
        items: Vec<Self>,
        is_explicit: bool,
    },
    /// `(SELECT ...)` as a value.
    Subquery(Box<Query>),
    Exists(Box<Query>),
    /// `ARRAY(SELECT ...)`.
    ArrayOf(Box<Query>),
    /// `operand [NOT] IN (SELECT ...)`; `= ANY` and `<> ALL` mean the same.
    /// `operand symbol ANY (query)`; IN with `=`. Negated: NOT of it, which `ALL` is with the operator's negator.
    InSubquery {
        symbol: String,
        operand: Box<Self>,
        query: Box<Query>,
        negated: bool,
    },
    /// `operand symbol ANY | ALL (array)`.
    Quantified {
        operand: Box<Self>,
        symbol: String,
        is_all: bool,
        array: ArrayLiteral,
    },
    /// `ARRAY[...]`.
    Array(Vec<Self>),
    /// `array[subscript]`.
    Subscript {
        array: Box<Self>,
        subscript: Box<Self>,
    },
    /// `array[lower:upper]`; None: the array's own bound.
    Slice {
        array: Box<Self>,
        lower: Option<Box<Self>>,
        upper: Option<Box<Self>>,
    },
    /// `GROUPING(...)`.
    Grouping(Vec<Self>),
    Case {
        operand: Option<Box<Self>>,
        branches: Vec<(Self, Self)>,
        otherwise: Option<Box<Self>>,
    },
    Coalesce(Vec<Self>),
    /// GREATEST, or LEAST.
    Extreme {
        greatest: bool,
        arguments: Vec<Self>,
    },
    NullIf(Box<Self>, Box<Self>),
    Call(Box<Call>),
    /// `name => value`, an argument of a call.
    Named(Name, Box<Self>),
    /// CURRENT_DATE and its kin.
    SqlValue {
        function: SqlValueFunction,
        precision: Option<i32>,
    },
    Collate {
        operand: Box<Self>,
        collation: Vec<Name>,
    },
}

/// An array that is compared with, item by item.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayLiteral {
    pub items: ArrayItems,
    /// The element type that it is cast to.
    pub to: Option<Box<TypeName>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ArrayItems {
    /// `ARRAY[...]`.
    Listed(Vec<Expr>),
    /// `'{...}'`: None is NULL.
    Text(Vec<Option<String>>),
    /// Anything else: a column, a parameter, a call.
    Of(Box<Expr>),
}

/// `name(arguments)`, or the SQL forms that mean one.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: Name,
    pub schema: CallSchema,
    pub arguments: Vec<Expr>,
    /// `name(*)`.
    pub is_star: bool,
    pub is_distinct: bool,
    /// `name(... ORDER BY ...)`.
    pub order_by: Vec<OrderItem>,
    /// `WITHIN GROUP (ORDER BY ...)`.
    pub within_group: Vec<OrderItem>,
    pub filter: Option<Box<Expr>>,
    pub over: Option<Over>,
}

impl Call {
    /// With nothing but arguments.
    pub fn plain(name: impl Into<Name>, schema: CallSchema, arguments: Vec<Expr>) -> Self {
        Self {
            name: name.into(),
            schema,
            arguments,
            is_star: false,
            is_distinct: false,
            order_by: Vec::new(),
            within_group: Vec::new(),
            filter: None,
            over: None,
        }
    }
}

/// Where a call's name is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallSchema {
    SearchPath,
    /// Written `pg_catalog.name(...)`, or an SQL form such as EXTRACT that gram.y maps to it.
    PgCatalog,
    /// Written with another schema.
    Named(Name),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlValueFunction {
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
}

/// A type as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// As written; pg_catalog's is told by `is_system`.
    pub schema: Option<Box<str>>,
    /// pg_type.typname.
    pub name: Name,
    /// Named by a keyword or through pg_catalog; otherwise the search path decides.
    pub is_system: bool,
    pub modifiers: Vec<i32>,
    /// `name[]`.
    pub is_array: bool,
}
