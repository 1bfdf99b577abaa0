//! The operators of a [`Plan`](super::Plan): what the executor walks. Columns are positions in the input's output.

use crate::binder::{BoundExpr, RowsCall, SortKey, WindowCall, cannot_raise};
use crate::catalog::RelationId;
use crate::catalog::functions::AggregateFunction;
use crate::statement::ast::SetOperation;
use crate::types::PgType;

#[derive(Clone, Debug)]
pub enum PlanNode {
    /// One row without columns.
    OneRow,
    Scan(Scan),
    Filter {
        input: Box<Self>,
        /// All must be true; in evaluation order.
        predicates: Vec<BoundExpr>,
    },
    Project {
        input: Box<Self>,
        expressions: Vec<BoundExpr>,
    },
    Join(Join),
    SideJoin(SideJoin),
    Aggregate(Aggregate),
    /// The first row of each key, in order of the input.
    DistinctOn {
        input: Box<Self>,
        keys: Vec<BoundExpr>,
    },
    /// All rows of all inputs, whose columns agree.
    Append {
        inputs: Vec<Self>,
        types: Vec<PgType>,
        /// Which columns a side of a set operation had in another type.
        is_converted: Vec<bool>,
    },
    SetOperation {
        operation: SetOperation,
        is_all: bool,
        left: Box<Self>,
        right: Box<Self>,
        types: Vec<PgType>,
    },
    Values {
        rows: Vec<Vec<BoundExpr>>,
        types: Vec<PgType>,
    },
    /// Output: the input's columns, then the calls'.
    Window {
        input: Box<Self>,
        calls: Vec<WindowCall>,
    },
    /// These columns of the plan's common rows of that number.
    Common {
        index: usize,
        columns: Vec<usize>,
    },
    /// generate_series.
    Series {
        bounds: Vec<BoundExpr>,
        pg_type: PgType,
    },
    Expand(Expand),
    Recursive(Recursive),
    /// The rows of the round before, of the recursion of that number.
    Working {
        number: usize,
        types: Vec<PgType>,
    },
    /// With a limit or offset: only those rows of the order.
    Sort {
        input: Box<Self>,
        keys: Vec<SortKey>,
        limit: Option<BoundExpr>,
        offset: Option<BoundExpr>,
        /// The last of those rows comes with all that are equal to it by the keys.
        with_ties: bool,
    },
    Limit {
        input: Box<Self>,
        limit: Option<BoundExpr>,
        offset: Option<BoundExpr>,
    },
}

#[derive(Clone, Debug)]
pub struct Scan {
    pub table: RelationId,
    /// Indexes into the table's schema: what is read.
    pub columns: Vec<usize>,
    /// So many of `columns`, from the first, are the output; the rest serve the filters.
    pub outputs: usize,
    /// Indexes into the table's schema: the primary key; empty if there is none.
    pub key: Vec<usize>,
    /// Over `columns`; all must be true; in evaluation order.
    pub filters: Vec<BoundExpr>,
    /// The first filter that may raise an error, or their number. Rows that a later one drops are computed with until then.
    pub reached: usize,
    /// Among the filters: equalities of a column with a row-independent value.
    pub look_ups: Vec<LookUp>,
    /// What the filters compute, if that depends on the rows and parameters alone: names this scan's result for the
    /// join cache. The parameters that it reads are in `fingerprint_parameters`.
    pub fingerprint: Option<String>,
    pub fingerprint_parameters: Vec<usize>,
}

/// `column = value` as a way into an index.
#[derive(Clone, Debug)]
pub struct LookUp {
    /// Which of the scan's filters it is.
    pub filter: usize,
    /// Index into the table's schema.
    pub column: usize,
    pub column_type: PgType,
    /// Of the column's type, or, for integers, of any integer type.
    pub value: BoundExpr,
}

/// Rows beside those that functions give for them. Output: the input's columns, the functions' (NULLs where one gives fewer rows
/// than another), the row's number if `is_numbered`.
#[derive(Clone, Debug)]
pub struct Expand {
    pub input: Box<PlanNode>,
    pub functions: Vec<RowsCall>,
    pub is_numbered: bool,
    /// Whether a row without any stays, beside NULLs.
    pub keeps_empty: bool,
}

/// The rows of `base`, then of `step` over those of the round before ([`PlanNode::Working`] of that number), until a round
/// has none. Not `is_all`: only rows that there have not been.
#[derive(Clone, Debug)]
pub struct Recursive {
    pub base: Box<PlanNode>,
    pub step: Box<PlanNode>,
    pub is_all: bool,
    pub number: usize,
    pub types: Vec<PgType>,
}

/// Inner join of any number of inputs; output: all inputs' columns one after the other. In which order they are
/// joined is decided at run time, when sizes are known.
#[derive(Clone, Debug)]
pub struct Join {
    pub inputs: Vec<PlanNode>,
    pub equalities: Vec<Equality>,
    /// What follows from several of them (`a = b AND b = c` says `a = c`): for an input that no other one leads to.
    pub implied: Vec<Equality>,
    /// What is left of the condition, over the output.
    pub filters: Vec<BoundExpr>,
    /// By input: PostgreSQL computes it for each row that the others have together, as [`SideJoin::is_per_row`].
    pub per_row: Vec<bool>,
}

/// `left = right`, each side over the columns of one input (numbered as in the join's output).
#[derive(Clone, Debug)]
pub struct Equality {
    pub left_input: usize,
    pub left: BoundExpr,
    pub right_input: usize,
    pub right: BoundExpr,
    /// As what the operator compares the sides, whatever they are labelled.
    pub types: [PgType; 2],
    /// IS NOT DISTINCT FROM: NULL equals NULL.
    pub is_null_safe: bool,
}

impl Equality {
    /// The inputs and what is compared of each.
    pub fn ends(&self) -> [(usize, &BoundExpr); 2] {
        [(self.left_input, &self.left), (self.right_input, &self.right)]
    }

    /// What a side is compared as, and whether NULL equals NULL.
    pub fn key(&self, end: usize) -> Key<'_> {
        Key { expr: self.ends()[end].1, pg_type: self.types[end], is_null_safe: self.is_null_safe }
    }

    /// The other way round.
    pub fn turned(self) -> Self {
        Self {
            left_input: self.right_input,
            left: self.right,
            right_input: self.left_input,
            right: self.left,
            types: [self.types[1], self.types[0]],
            is_null_safe: self.is_null_safe,
        }
    }

    /// If it leads from one of `attached` to `input`: which of the ends is that of `input`.
    pub fn end_of(&self, input: usize, attached: &[usize]) -> Option<usize> {
        let leads = |own: usize, other: usize| own == input && attached.contains(&other);
        if leads(self.left_input, self.right_input) {
            Some(0)
        } else {
            leads(self.right_input, self.left_input).then_some(1)
        }
    }
}

/// One side of an equality, as rows are found by it.
#[derive(Clone, Copy, Debug)]
pub struct Key<'e> {
    pub expr: &'e BoundExpr,
    pub pg_type: PgType,
    pub is_null_safe: bool,
}

/// What a [`SideJoin`] makes of the rows of `left` and those of `right` that match them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideKind {
    /// Every row of `left`, with the matching rows of `right` or NULLs; output: left's columns, then right's.
    Left,
    /// Likewise, and then the rows of `right` that matched none, with NULLs.
    Full,
    /// The rows of `left` that have a match.
    Semi,
    /// Those that have none.
    Anti,
    /// Every row of `left` and a boolean: whether there is a match on which `test` is true.
    Mark,
    /// As `Left`, with at most one match.
    Single,
}

#[derive(Clone, Debug)]
pub struct SideJoin {
    pub kind: SideKind,
    pub left: Box<PlanNode>,
    pub right: Box<PlanNode>,
    /// `left_input` is 0, `right_input` 1.
    pub equalities: Vec<Equality>,
    /// The rest of the join condition, over left's columns, then right's: decides on matches, not on rows.
    pub filters: Vec<BoundExpr>,
    /// IN's comparison; three-valued, unlike the rest.
    pub test: Option<BoundExpr>,
    /// The same, if it is an equality that can be hashed.
    pub test_key: Option<Equality>,
    /// PostgreSQL computes `right` for each row of `left` by itself.
    pub is_per_row: bool,
    /// It does so in FROM: before it sorts.
    pub is_lateral: bool,
}

/// Output: the groups, then the calls. Without groups: one row.
#[derive(Clone, Debug)]
pub struct Aggregate {
    pub input: Box<PlanNode>,
    pub groups: Vec<BoundExpr>,
    pub calls: Vec<Call>,
    /// What calls aggregate, each computed once.
    pub arguments: Vec<BoundExpr>,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub function: AggregateFunction,
    /// Index into [`Aggregate::arguments`]; None: count(*).
    pub argument: Option<usize>,
    /// Likewise, of further arguments.
    pub extra: Vec<usize>,
    pub is_distinct: bool,
    /// The order in which rows are taken in, if that matters.
    pub order: Vec<SortKey>,
    pub filter: Option<BoundExpr>,
    pub result: PgType,
}

impl Scan {
    pub fn new(table: RelationId, columns: Vec<usize>) -> Self {
        Self {
            table,
            outputs: columns.len(),
            columns,
            key: Vec::new(),
            filters: Vec::new(),
            reached: 0,
            look_ups: Vec::new(),
            fingerprint: None,
            fingerprint_parameters: Vec::new(),
        }
    }

    /// Finds [`Self::reached`]: the filters have changed.
    pub fn find_reached(&mut self) {
        let raising = self.filters.iter().position(|filter| !cannot_raise(filter));
        self.reached = raising.unwrap_or(self.filters.len());
    }
}

impl PlanNode {
    /// Number of output columns.
    pub fn width(&self) -> usize {
        match self {
            Self::OneRow => 0,
            Self::Scan(scan) => scan.outputs,
            Self::Project { expressions, .. } => expressions.len(),
            Self::Join(join) => join.inputs.iter().map(Self::width).sum(),
            Self::SideJoin(join) => join.width(),
            Self::Append { types, .. }
            | Self::SetOperation { types, .. }
            | Self::Values { types, .. }
            | Self::Working { types, .. } => types.len(),
            Self::Recursive(recursive) => recursive.types.len(),
            Self::Expand(expand) => expand.input.width() + expand.own_width(),
            Self::Window { input, calls } => input.width() + calls.len(),
            Self::Common { columns, .. } => columns.len(),
            Self::Series { .. } => 1,
            Self::Aggregate(aggregate) => aggregate.groups.len() + aggregate.calls.len(),
            Self::DistinctOn { input, .. }
            | Self::Filter { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. } => input.width(),
        }
    }

    /// Calls `visit` on each input of the node.
    pub fn for_each_input<'n>(&'n self, visit: &mut dyn FnMut(&'n Self)) {
        match self {
            Self::OneRow
            | Self::Scan(_)
            | Self::Values { .. }
            | Self::Common { .. }
            | Self::Series { .. }
            | Self::Working { .. } => {}
            Self::Expand(expand) => visit(&expand.input),
            Self::Recursive(recursive) => {
                visit(&recursive.base);
                visit(&recursive.step);
            }
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::DistinctOn { input, .. }
            | Self::Window { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. } => visit(input),
            Self::Aggregate(aggregate) => visit(&aggregate.input),
            Self::Join(join) => join.inputs.iter().for_each(visit),
            Self::Append { inputs, .. } => inputs.iter().for_each(visit),
            Self::SideJoin(join) => {
                visit(&join.left);
                visit(&join.right);
            }
            Self::SetOperation { left, right, .. } => {
                visit(left);
                visit(right);
            }
        }
    }

    /// Filters the node unless there is nothing to test.
    pub fn filtered(self, predicates: Vec<BoundExpr>) -> Self {
        if predicates.is_empty() {
            return self;
        }
        Self::Filter { input: Box::new(self), predicates }
    }
}

impl SideJoin {
    /// Number of output columns.
    pub fn width(&self) -> usize {
        match self.kind {
            SideKind::Left | SideKind::Full | SideKind::Single => self.left.width() + self.right.width(),
            SideKind::Semi | SideKind::Anti => self.left.width(),
            SideKind::Mark => self.left.width() + 1,
        }
    }

    /// The side that a column of the output is of, and which of the side's columns it is; None: a mark, which is the join's own.
    pub fn side_at(&self, column: usize) -> Option<(&PlanNode, usize)> {
        match column.checked_sub(self.left.width()) {
            None => Some((&self.left, column)),
            Some(column) if self.kind != SideKind::Mark => Some((&self.right, column)),
            Some(_) => None,
        }
    }
}

impl From<SideJoin> for PlanNode {
    fn from(join: SideJoin) -> Self {
        Self::SideJoin(join)
    }
}

impl Expand {
    /// Number of columns behind the input's.
    pub fn own_width(&self) -> usize {
        self.functions.iter().map(|call| call.columns.len()).sum::<usize>() + usize::from(self.is_numbered)
    }
}

impl Join {
    /// Before any equality is known as such.
    pub fn new(inputs: Vec<PlanNode>, filters: Vec<BoundExpr>) -> Self {
        let per_row = vec![false; inputs.len()];
        Self { inputs, equalities: Vec::new(), implied: Vec::new(), filters, per_row }
    }

    /// The input that a column of the output is of, and which of the input's columns it is.
    pub fn input_at(&self, column: usize) -> (&PlanNode, usize) {
        let bases = self.bases();
        let input = bases.partition_point(|base| *base <= column) - 1;
        (&self.inputs[input], column - bases[input])
    }

    /// Position of each input's first column, and the width as a last entry.
    pub fn bases(&self) -> Vec<usize> {
        let mut bases = vec![0];
        for input in &self.inputs {
            bases.push(bases[bases.len() - 1] + input.width());
        }
        bases
    }
}
