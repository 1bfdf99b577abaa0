//! The operators of a [`Plan`](super::Plan): what the executor walks. Columns are positions in the input's output.

use crate::binder::{BoundExpr, SortKey};
use crate::catalog::RelationId;
use crate::catalog::functions::AggregateFunction;
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
    LeftJoin(LeftJoin),
    Aggregate(Aggregate),
    /// With a limit or offset: only those rows of the order.
    Sort {
        input: Box<Self>,
        keys: Vec<SortKey>,
        limit: Option<BoundExpr>,
        offset: Option<BoundExpr>,
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
    /// Over `columns`; all must be true; in evaluation order.
    pub filters: Vec<BoundExpr>,
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

/// Inner join of any number of inputs; output: all inputs' columns one after the other. In which order they are
/// joined is decided at run time, when sizes are known.
#[derive(Clone, Debug)]
pub struct Join {
    pub inputs: Vec<PlanNode>,
    pub equalities: Vec<Equality>,
    /// What is left of the condition, over the output.
    pub filters: Vec<BoundExpr>,
}

/// `left = right`, each side over the columns of one input (numbered as in the join's output).
#[derive(Clone, Debug)]
pub struct Equality {
    pub left_input: usize,
    pub left: BoundExpr,
    pub right_input: usize,
    pub right: BoundExpr,
}

/// Every row of `left`, with the matching rows of `right` or NULLs; output: left's columns, then right's.
#[derive(Clone, Debug)]
pub struct LeftJoin {
    pub left: Box<PlanNode>,
    pub right: Box<PlanNode>,
    /// `left_input` is 0, `right_input` 1.
    pub equalities: Vec<Equality>,
    /// The rest of the join condition, over the output: decides on matches, not on rows.
    pub filters: Vec<BoundExpr>,
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
    pub is_distinct: bool,
    pub filter: Option<BoundExpr>,
    pub result: PgType,
}

impl Scan {
    pub fn new(table: RelationId, columns: Vec<usize>) -> Self {
        Self {
            table,
            outputs: columns.len(),
            columns,
            filters: Vec::new(),
            look_ups: Vec::new(),
            fingerprint: None,
            fingerprint_parameters: Vec::new(),
        }
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
            Self::LeftJoin(join) => join.left.width() + join.right.width(),
            Self::Aggregate(aggregate) => aggregate.groups.len() + aggregate.calls.len(),
            Self::Filter { input, .. } | Self::Sort { input, .. } | Self::Limit { input, .. } => input.width(),
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

impl Join {
    /// Position of each input's first column, and the width as a last entry.
    pub fn bases(&self) -> Vec<usize> {
        let mut bases = vec![0];
        for input in &self.inputs {
            bases.push(bases[bases.len() - 1] + input.width());
        }
        bases
    }
}
