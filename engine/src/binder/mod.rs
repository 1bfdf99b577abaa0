//! From syntax to meaning: names resolved, types and coercions decided as PostgreSQL decides them.
//!
//! In: the parsed statement, a [`Catalog`](crate::catalog::Catalog) and the session's search path.
//! Out: a [`BoundQuery`], relational algebra whose columns are positions, or an `UpstreamReason`.
//!
//! Follows PostgreSQL's parser/ chapter by chapter: from.rs is parse_clause.c's FROM part, expression.rs parse_expr.c,
//! resolve.rs parse_func.c and parse_oper.c, coerce.rs parse_coerce.c and parse_collate.c, grouping.rs parse_agg.c,
//! select.rs and query.rs the rest of analyze.c. What comes out has no subqueries in expressions: subquery.rs puts them
//! beside the rows that they are asked for, decorrelate.rs makes those that depend on these rows joins.

mod aggregate;
mod array;
mod choice;
mod coerce;
mod common;
mod computed;
mod decorrelate;
mod dependent;
mod enums;
mod equated;
mod expression;
mod folded;
mod from;
mod function;
mod grouping;
mod harmless;
mod inherited;
mod json;
mod notation;
mod output_name;
mod part;
mod query;
mod recursive;
mod relation;
mod resolve;
mod rows;
mod scope;
mod select;
mod sets;
mod subquery;
mod target_rows;
mod typed;
mod used;
mod view;
mod window;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub(crate) use self::choice::Choice;
pub use self::choice::{OpenColumns, Summed};
pub use self::computed::computed_columns;
pub(crate) use self::harmless::{cannot_raise, cannot_raise_but, has_value, is_harmless_window, is_whole_pattern};
pub(crate) use self::target_rows::BESIDE_NULL;
pub use self::used::Used;

use crate::catalog::functions::setting::custom_name;
use crate::catalog::functions::{
    AggregateFunction, Function, LABEL_AT, PLACE, RANK, RANK_PADDED, RowsFunction, TEXT_AT, WindowFunction,
    length_coercion,
};
use crate::catalog::order::Order;
use crate::catalog::{Catalog, Collation, ColumnSchema, RelationId};
use crate::reason::UpstreamReason;
use crate::statement::Statement;
use crate::statement::ast::{Exclusion, FrameUnit, SetOperation};
use crate::types::{FormatSettings, Oid, PgType, Value};

/// What binding depends on besides the catalog.
#[derive(Clone, Copy, Debug)]
pub struct BindContext<'a> {
    /// The effective search path, in order, pg_catalog first unless it is listed.
    pub search_path: &'a [Arc<str>],
    pub settings: &'a FormatSettings,
    /// The OIDs that Parse declared for `$1`...; 0: not declared.
    pub parameter_types: &'a [Oid],
}

/// What `statement` means under `catalog`. An error says why upstream answers it, errors of the statement itself included.
pub fn bind(statement: &Statement, catalog: &Catalog, context: &BindContext<'_>) -> Result<BoundQuery, UpstreamReason> {
    let query = statement.query()?;
    if catalog.changes_builtin_types {
        return Err(UpstreamReason::UnknownFunction(
            "a cast between built-in types, or an operator class of one, was added".into(),
        ));
    }
    if catalog.has_security_labels {
        return Err(UpstreamReason::Privilege(
            "security labels, by which a module may mask or refuse what is read".into(),
        ));
    }
    if catalog.restricted.is_behind_operators {
        return Err(UpstreamReason::Privilege("an operator or cast that not everybody may use".into()));
    }
    let mut binder = Binder::new(catalog, context)?;
    let mut bound = binder.bind(query);
    if bound.is_err() && binder.has_computed {
        binder = Binder { computes: true, ..Binder::new(catalog, context)? };
        bound = binder.bind(query);
    }
    if !binder.wants_marks {
        return bound;
    }
    Binder { marks_rows: true, computes: binder.computes, ..Binder::new(catalog, context)? }.bind(query)
}

/// A value's declared type: what RowDescription and the coercion rules need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExprType {
    pub pg_type: PgType,
    /// -1 unless the value is known to obey a modifier (a column, or a cast with one).
    pub typmod: i32,
    pub collation: Collation,
}

impl ExprType {
    pub(crate) const BOOL: Self = Self { pg_type: PgType::Bool, typmod: -1, collation: Collation::None };

    /// The order of its values, if that is not the one of their bytes or numbers.
    pub(crate) fn order(&self) -> Option<Order> {
        match self.pg_type {
            PgType::Enum(labels) => Some(Order::Labels(labels)),
            _ => self.collation.learnt_order().map(Order::Collation),
        }
    }
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
        /// 0, or which call of a function in SQL its only argument has been put in place of. Equal for equal calls: what is
        /// grouped by one function is not by another that computes the same. Planning forgets it.
        call: u32,
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

impl BoundExpr {
    /// A text's place in the order of a collation that upstream has told.
    pub(crate) fn ranked(self, order: Order) -> Self {
        let expr_type = ExprType { pg_type: PgType::Int8, typmod: -1, collation: Collation::None };
        let (function, whose) = match order {
            Order::Labels(labels) => (&PLACE, labels.number()),
            Order::Collation(collation) if self.expr_type().pg_type == PgType::Bpchar => (&RANK_PADDED, collation),
            Order::Collation(collation) => (&RANK, collation),
        };
        Self::Call { function, arguments: vec![self, Self::collation(whose)], expr_type }
    }

    /// The text at a rank, which is this expression, of values that had the modifier `typmod`.
    pub(crate) fn text_at(self, order: Order, typmod: i32, shown: ExprType) -> Result<Self, UpstreamReason> {
        let (function, whose) = match order {
            Order::Labels(labels) => (&LABEL_AT, labels.number()),
            Order::Collation(collation) => (&TEXT_AT, collation),
        };
        let text = Self::Call { function, arguments: vec![self, Self::collation(whose)], expr_type: shown };
        if shown.pg_type != PgType::Bpchar {
            return Ok(text);
        }
        let literal = |value, pg_type| Self::Literal {
            value,
            expr_type: ExprType { pg_type, typmod: -1, collation: Collation::None },
        };
        // Ranks are those of the text without its padding; of char(n) without n, equal ones may differ in it.
        match length_coercion(PgType::Bpchar) {
            Some(function) if typmod >= 0 => {
                let is_explicit = literal(Value::Bool(true), PgType::Bool);
                let arguments = vec![text, literal(Value::Int4(typmod), PgType::Int4), is_explicit];
                Ok(Self::Call { function, arguments, expr_type: shown })
            }
            _ => Err(UpstreamReason::Collation("extreme of character without length".into())),
        }
    }

    /// A collation, or the number of an enum type, as the last argument of the functions that depend on one.
    pub(crate) fn collation(collation: Oid) -> Self {
        let expr_type = ExprType { pg_type: PgType::Int8, typmod: -1, collation: Collation::None };
        Self::Literal { value: Value::Int8(collation.into()), expr_type }
    }

    /// The same value under another type, modifier or collation. Boolean has one label only.
    pub(crate) fn relabel(&mut self, new: ExprType) {
        match self {
            Self::Column { expr_type, .. }
            | Self::Literal { expr_type, .. }
            | Self::Parameter { expr_type, .. }
            | Self::Call { expr_type, .. }
            | Self::Case { expr_type, .. }
            | Self::Coalesce { expr_type, .. }
            | Self::Extreme { expr_type, .. } => *expr_type = new,
            Self::And(_)
            | Self::Or(_)
            | Self::Not(_)
            | Self::IsNull { .. }
            | Self::IsBool { .. }
            | Self::IsDistinct { .. }
            | Self::InList { .. } => {}
        }
    }

    /// What takes a column's place has the type that the reference was bound with. A placeholder has none to give.
    pub(crate) fn labelled_as(mut self, reference: ExprType) -> Self {
        if reference.pg_type != PgType::Unknown {
            self.relabel(reference);
        }
        self
    }

    /// The type of its value.
    pub fn expr_type(&self) -> ExprType {
        match self {
            Self::Column { expr_type, .. }
            | Self::Literal { expr_type, .. }
            | Self::Parameter { expr_type, .. }
            | Self::Call { expr_type, .. }
            | Self::Case { expr_type, .. }
            | Self::Coalesce { expr_type, .. }
            | Self::Extreme { expr_type, .. } => *expr_type,
            Self::And(_)
            | Self::Or(_)
            | Self::Not(_)
            | Self::IsNull { .. }
            | Self::IsBool { .. }
            | Self::IsDistinct { .. }
            | Self::InList { .. } => ExprType { pg_type: PgType::Bool, typmod: -1, collation: Collation::None },
        }
    }
}

/// One aggregate of an [`BoundRelation::Aggregate`].
#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub function: AggregateFunction,
    /// None: count(*).
    pub argument: Option<BoundExpr>,
    /// Further arguments: the delimiter of string_agg, the X of regr_slope(Y, X), the fraction of percentile_cont.
    pub extra: Vec<BoundExpr>,
    pub is_distinct: bool,
    /// In which order the rows of a group are taken in. Empty: any.
    pub order: Vec<SortKey>,
    pub filter: Option<BoundExpr>,
    pub expr_type: ExprType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    /// As `Left`, of a right side that PostgreSQL computes for each row of the left: a subquery in an expression.
    PerRow,
    /// Likewise, of one in FROM.
    Lateral,
    Full,
    Cross,
}

/// What a [`BoundRelation::Match`] tells of the rows on the right that go with a row of the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// The rows of the left that have one. Output: the left's columns.
    Semi,
    /// Those that have none.
    Anti,
    /// Every row of the left; output: its columns and a boolean, IN's answer where there is a test, else EXISTS's.
    Mark,
    /// Every row of the left, beside its one row of the right or NULLs; two are an error.
    Single,
}

/// A function in FROM; its arguments are over the input's columns.
#[derive(Clone, Debug)]
pub struct RowsCall {
    pub function: &'static RowsFunction,
    pub arguments: Vec<BoundExpr>,
    pub columns: Vec<ExprType>,
}

/// What a window function computes over its frame or partition.
#[derive(Clone, Debug)]
pub struct WindowCall {
    pub function: WindowKind,
    pub arguments: Vec<BoundExpr>,
    pub filter: Option<BoundExpr>,
    pub partition: Vec<BoundExpr>,
    pub order: Vec<SortKey>,
    pub frame: WindowFrame,
    pub expr_type: ExprType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    Function(WindowFunction),
    Aggregate(AggregateFunction),
}

/// Rows around the current one that a frame takes in. Without ORDER BY all rows of the partition are peers.
#[derive(Clone, Debug)]
pub struct WindowFrame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    pub end: FrameBound,
    pub exclusion: Exclusion,
}

/// As in the syntax, with row-independent distances: bigint, in RANGE of the type that the key's in_range takes.
#[derive(Clone, Debug)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(BoundExpr),
    CurrentRow,
    Following(BoundExpr),
    UnboundedFollowing,
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
    /// JOIN LATERAL whose right side mentions columns of the left as an outer level's, until WHERE is bound. Output: left's
    /// columns, then right's.
    Dependent {
        kind: JoinKind,
        left: Box<Self>,
        right: Box<Self>,
        level: usize,
        condition: Option<BoundExpr>,
    },
    /// Output: the group expressions, then the aggregates. No groups: exactly one row.
    Aggregate {
        input: Box<Self>,
        groups: Vec<BoundExpr>,
        aggregates: Vec<AggregateCall>,
    },
    /// Output: left's columns, and what `kind` says. Both conditions are over left's columns, then right's; `test` is
    /// the comparison of IN.
    Match {
        kind: MatchKind,
        left: Box<Self>,
        right: Box<Self>,
        condition: Option<BoundExpr>,
        test: Option<BoundExpr>,
    },
    /// Equal rows once (NULLs equal). Output order is free.
    Distinct {
        input: Box<Self>,
        columns: Vec<ExprType>,
    },
    /// The first row of each key (columns of the input), in order of the input.
    DistinctOn {
        input: Box<Self>,
        keys: Vec<BoundExpr>,
    },
    /// All rows of all inputs, whose columns agree.
    Append {
        inputs: Vec<Self>,
        columns: Vec<ExprType>,
    },
    /// INTERSECT or EXCEPT.
    SetOperation {
        operation: SetOperation,
        is_all: bool,
        left: Box<Self>,
        right: Box<Self>,
        columns: Vec<ExprType>,
    },
    Values {
        rows: Vec<Vec<BoundExpr>>,
        columns: Vec<ExprType>,
    },
    /// Output: the input's columns, then the calls'.
    Window {
        input: Box<Self>,
        calls: Vec<WindowCall>,
    },
    /// The rows of [`BoundQuery::commons`] of that number.
    Common {
        index: usize,
        width: usize,
    },
    /// generate_series: start, stop and step, of one type, without columns.
    Series {
        bounds: Vec<BoundExpr>,
        expr_type: ExprType,
    },
    /// Each row of the input beside the rows that functions give for it. Output: the input's columns, then the functions',
    /// side by side with NULLs where one gives fewer rows, then, if asked for, the number of the row among them.
    Expand {
        input: Box<Self>,
        functions: Vec<RowsCall>,
        is_numbered: bool,
        /// Whether a row of the input for which there are none stays, beside NULLs.
        keeps_empty: bool,
    },
    /// WITH RECURSIVE: the rows of `base`, and then, round by round until there are none, those of `step`, which reads the
    /// rows of the round before as `Working` of that number. Not `is_all`: rows that are new.
    Recursive {
        base: Box<Self>,
        step: Box<Self>,
        is_all: bool,
        number: usize,
        columns: Vec<ExprType>,
    },
    Working {
        number: usize,
        columns: Vec<ExprType>,
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
        /// The last row comes with all that are equal to it by the keys of the input, which is a Sort.
        with_ties: bool,
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
    /// Of a table or, in [`BoundQuery::views`], a view.
    pub table: RelationId,
    /// Who reads it.
    pub reader: Reader,
    /// Indexes into the schema's columns that the statement mentions; empty: none (count(*)).
    pub columns: Vec<usize>,
}

/// A subquery whose one value is the same for all rows.
#[derive(Clone, Debug)]
pub struct ScalarQuery {
    pub relation: BoundRelation,
    pub kind: ScalarKind,
    pub pg_type: PgType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    /// The first column of its one row; NULL if there is none, an error if there are two.
    Value,
    /// Whether there is any.
    Exists,
}

/// On whose behalf a relation is read, and how it was found (PostgreSQL: Rules and Privileges).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Named by the statement: its session's role, which must be able to look it up.
    Session,
    /// Read by a view: its owner (None: the session's role). Looked up when the view was made.
    View { owner: Option<Arc<str>> },
    /// A table that inherits from another, read with that one: its own privileges are not looked at (inherit.c,
    /// expand_single_inheritance_child).
    Heir,
    /// Read by a function's body for the session's role, which must be able to look it up.
    Body,
}

/// A statement that is understood. Read-only; shared by all sessions.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    pub root: BoundRelation,
    /// What is computed once and read from several places (WITH queries); each may read those before it.
    pub commons: Vec<BoundRelation>,
    /// Subqueries that depend on nothing, computed first, each one value: `$n` from the number of parameters on.
    pub scalars: Vec<ScalarQuery>,
    pub output: Vec<OutputColumn>,
    /// Type of each `$n`.
    pub parameters: Vec<PgType>,
    pub tables: Vec<TableUse>,
    pub views: Vec<TableUse>,
    /// Of the tables: the indexes of primary keys into the schema's columns.
    pub keys: HashMap<RelationId, Vec<usize>>,
    /// Uses now() or its kin: never cached; needs upstream's time.
    pub uses_time: bool,
    /// That of the statement, not that of its transaction.
    pub uses_statement_time: bool,
    /// Parsed a literal whose meaning depends on TimeZone, DateStyle or IntervalStyle (folded at parse time).
    pub folds_settings: bool,
    /// Names in calls of current_setting, see [`crate::types::FormatSettings::custom`]; in order, each once.
    pub custom_settings: Vec<Arc<str>>,
    /// Made of parameters and literals; where one is NULL, the statement means something else to PostgreSQL's planner.
    pub required: Vec<BoundExpr>,
    /// Texts in the definitions of views and functions that may be names of zones.
    pub zone_names: Vec<String>,
    /// Of the definitions of all views and functions that were read; 0: there are none.
    pub definitions: u64,
}

/// Nodes that one statement may have after copying (BETWEEN, simple CASE and IN repeat their operand; a WITH query is
/// repeated where it is used).
const NODES_MAX: usize = 100_000;

/// Settings of an application's own that one statement may ask for.
const SETTINGS_MAX: usize = 16;

/// How deep relations may lie in each other, which every walk over them recurses through: see [`crate::STACK_BYTES`].
const DEPTH_MAX: usize = 800;

type Bound<T> = Result<T, UpstreamReason>;

/// The state of one statement's binding.
struct Binder<'a> {
    catalog: &'a Catalog,
    context: BindContext<'a>,
    /// As it is outside of views and functions.
    session: BindContext<'a>,
    /// Of what is bound at the moment.
    reader: Reader,
    /// The function whose body is being bound, all those around it, and how many calls there were.
    function: Option<function::Frame>,
    active: Vec<Oid>,
    calls: usize,
    /// The different calls of functions that were replaced, for [`BoundExpr::Coalesce`].
    expansions: Vec<(Oid, Vec<BoundExpr>)>,
    /// Items of FROM before the JOIN that is being bound, out of reach: in PostgreSQL its LATERAL items see them.
    in_front: scope::Scope,
    /// Items of FROM get a column that tells their rows from those that an outer join makes up.
    marks_rows: bool,
    /// They should.
    wants_marks: bool,
    /// Generated columns are computed: only where a statement is not understood without.
    computes: bool,
    /// There are some among the tables' columns.
    has_computed: bool,
    /// Why one of them cannot be.
    uncomputed: Option<UpstreamReason>,
    /// The order of the rows of the subquery that is being made a join shows in an aggregate.
    order_shows: bool,
    required: Vec<BoundExpr>,
    /// What may be names of zones in the texts of views and functions.
    zone_names: Vec<String>,
    definitions: u64,
    /// Of `$n` at n-1; None: not determined yet.
    parameters: Vec<Option<PgType>>,
    tables: Vec<TableUse>,
    /// Some: uses the time, of the transaction or (true) of the statement.
    uses_statement_time: Option<bool>,
    folds_settings: bool,
    custom_settings: BTreeSet<Arc<str>>,
    /// A column of a domain is cast: an expression of its own, also where its value stays as it is.
    casts_domain: bool,
    /// Types of which something is made that would be of a domain, if what it is made of is: an array, whose literals are read with the
    /// domain's checks then, or another row's value beside a default, or the side of USING whose value is taken.
    kept_domains: Vec<PgType>,
    /// Types with a modifier (a length, a scale) of which something is made that has another modifier, or none, if a domain has it: CASE and
    /// the like of a domain and its base type lose it, what has the type of its argument keeps it (parse_coerce.c).
    modified: Vec<PgType>,
    /// How many subqueries have been made joins in the general way.
    independents: usize,
    /// What the statement means hangs on which expressions are the same: it groups, or wants distinct rows.
    tells_same: bool,
    nodes: usize,
    /// The levels around the one at hand that its expressions may refer to, outermost first.
    outer: Vec<scope::Scope>,
    /// The WITH queries in sight, innermost last.
    with: Vec<common::Visible>,
    commons: Vec<common::Common>,
    scalars: Vec<ScalarQuery>,
    recursions: Vec<recursive::Recursion>,
}

impl<'a> Binder<'a> {
    fn new(catalog: &'a Catalog, context: &BindContext<'a>) -> Bound<Self> {
        let declared = |oid: &Oid| match *oid {
            0 => Ok(None),
            oid => match catalog.pg_type(oid) {
                Some(PgType::Unknown) => Ok(None),
                Some(known) => Ok(Some(known)),
                None => Err(UpstreamReason::UnsupportedType(format!("parameter of type {oid}").into())),
            },
        };
        let parameters = context.parameter_types.iter().map(declared).collect::<Bound<_>>()?;
        Ok(Self {
            catalog,
            context: *context,
            session: *context,
            reader: Reader::Session,
            function: None,
            active: Vec::new(),
            calls: 0,
            expansions: Vec::new(),
            in_front: scope::Scope::default(),
            marks_rows: false,
            wants_marks: false,
            computes: false,
            has_computed: false,
            uncomputed: None,
            order_shows: false,
            required: Vec::new(),
            zone_names: Vec::new(),
            definitions: 0,
            parameters,
            tables: Vec::new(),
            uses_statement_time: None,
            folds_settings: false,
            custom_settings: BTreeSet::new(),
            casts_domain: false,
            kept_domains: Vec::new(),
            modified: Vec::new(),
            independents: 0,
            tells_same: false,
            nodes: 0,
            outer: Vec::new(),
            with: Vec::new(),
            commons: Vec::new(),
            scalars: Vec::new(),
            recursions: Vec::new(),
        })
    }

    fn bind(&mut self, query: &crate::statement::ast::Query) -> Bound<BoundQuery> {
        let selected = self.query(query, query::Unknowns::BecomeText)?;
        if self.casts_domain && self.tells_same {
            return Err(unsupported("a cast of a domain's column beside GROUP BY or DISTINCT"));
        }
        if self.may_keep_domain() {
            return Err(unsupported("what would be of a domain, or lose its modifier, made of a domain's column"));
        }
        selected.columns.iter().try_for_each(|column| folded::check_closed(column.is_open))?;
        let output = selected.columns.into_iter().map(|column| column.into_output()).collect();
        // check_variable_parameters: every number up to the highest must have got a type.
        let undetermined = || UpstreamReason::UnsupportedType("parameter of undetermined type".into());
        let parameters: Vec<PgType> = std::mem::take(&mut self.parameters)
            .into_iter()
            .map(|known| known.ok_or_else(undetermined))
            .collect::<Bound<_>>()?;
        for table in &mut self.tables {
            table.columns.sort_unstable();
        }
        let mut root = selected.relation;
        let mut commons = self.resolve_commons(&mut root);
        let scalars = self.scalars.iter_mut().map(|scalar| &mut scalar.relation);
        let relations: Vec<&mut BoundRelation> =
            std::iter::once(&mut root).chain(&mut commons).chain(scalars).collect();
        for relation in relations {
            if relation.is_deeper_than(DEPTH_MAX) {
                return Err(unsupported("a statement of too many parts in each other"));
            }
            subquery::settle(relation, parameters.len())?;
        }
        let is_view = |table: &TableUse| self.catalog.views.contains_key(&table.table);
        let (views, tables): (_, Vec<TableUse>) = std::mem::take(&mut self.tables).into_iter().partition(is_view);
        let key = |used: &TableUse| Some((used.table, self.catalog.tables.get(&used.table)?.primary_key.clone()));
        let keys = tables.iter().filter_map(key).filter(|(_, key)| !key.is_empty()).collect();
        Ok(BoundQuery {
            root,
            commons,
            scalars: std::mem::take(&mut self.scalars),
            output,
            parameters,
            tables,
            views,
            keys,
            uses_time: self.uses_statement_time.is_some(),
            uses_statement_time: self.uses_statement_time == Some(true),
            folds_settings: self.folds_settings,
            custom_settings: std::mem::take(&mut self.custom_settings).into_iter().collect(),
            required: std::mem::take(&mut self.required),
            zone_names: std::mem::take(&mut self.zone_names),
            definitions: self.definitions,
        })
    }

    /// One of the columns that are read is of a domain over such a type. Other than operators and functions of the type itself,
    /// arrays and what is polymorphic keep the domain (parse_coerce.c, enforce_generic_type_consistency).
    fn may_keep_domain(&self) -> bool {
        let is_kept = |column: &ColumnSchema| {
            let is_made =
                |base: PgType| self.kept_domains.contains(&base) || column.typmod >= 0 && self.modified.contains(&base);
            column.is_of_domain() && column.pg_type.is_some_and(is_made)
        };
        let has_one = |used: &TableUse| {
            let schema = self.catalog.described(used.table);
            schema.is_some_and(|schema| used.columns.iter().any(|column| is_kept(&schema.columns[*column])))
        };
        !(self.kept_domains.is_empty() && self.modified.is_empty()) && self.tables.iter().any(has_one)
    }

    /// Notes what is made of a value of that type: see [`Self::modified`].
    fn note_modifier(&mut self, expr_type: ExprType) {
        if expr_type.typmod >= 0 {
            self.modified.push(expr_type.pg_type);
        }
    }

    /// Notes a definition that the statement does not show: that it was read, and what may be names of zones in it.
    fn note_definition(&mut self, definition: impl std::hash::Hash, text: &str) {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        self.definitions = hasher.hash_one((self.definitions, definition, text));
        if text.contains('/') {
            let tokens = crate::statement::lexer::tokens(text).unwrap_or_default();
            let texts = tokens.iter().filter_map(|token| token.string_value());
            self.zone_names.extend(texts.filter(|text| text.contains('/')).map(String::from));
        }
    }

    /// A call of current_setting: upstream is asked for the setting before the statement runs.
    fn note_setting(&mut self, arguments: &[typed::Typed]) -> Bound<()> {
        let name = match arguments.first().map(|name| &name.expr) {
            Some(BoundExpr::Literal { value: Value::Text(name), .. }) => custom_name(name),
            _ => None,
        };
        let name =
            name.ok_or_else(|| UpstreamReason::UnknownFunction("current_setting of PostgreSQL's own settings".into()))?;
        self.custom_settings.insert(name.into());
        if self.custom_settings.len() > SETTINGS_MAX { Err(unsupported("so many settings")) } else { Ok(()) }
    }

    /// Counts nodes made by copying.
    fn spend(&mut self, nodes: usize) -> Bound<()> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > NODES_MAX { Err(UpstreamReason::Unsupported("statement too large".into())) } else { Ok(()) }
    }

    /// Whether a name without a schema finds pg_catalog's objects before anyone else's.
    fn is_pg_catalog_first(&self) -> bool {
        self.context.search_path.first().is_some_and(|schema| &**schema == "pg_catalog")
    }
}

fn unsupported(what: impl Into<std::borrow::Cow<'static, str>>) -> UpstreamReason {
    UpstreamReason::Unsupported(what.into())
}

#[cfg(test)]
mod tests;
