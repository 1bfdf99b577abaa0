//! Which aggregate of a plan can be brought up to date from the changes of a table, and from what.
//!
//! Between the only scan of the table and the aggregate above it lie operators that make of each row what they would make of it
//! alone. So the rows that a change takes away and those that it adds can be sent through them by themselves, and what comes out
//! is what the aggregate's input loses and gains (the delta rule of incremental view maintenance). Kept are its groups, each
//! with what its aggregates are made of: counts, sums, extremes.
//!
//! Only where the result cannot depend on which rows of a group came first, or on rows that are gone: keys and extremes of types whose
//! equal values are the same, sums that are exact and whose display scale all values share.

use crate::binder::BoundExpr;
use crate::catalog::RelationId;
use crate::catalog::functions::{AggregateFunction, RANK, RANK_PADDED, TEXT_AT};
use crate::planner::Plan;
use crate::planner::expression::{any, is_same, type_of};
use crate::planner::node::{Aggregate, Call, PlanNode, Scan, SideKind};
use crate::planner::rules::for_each_expression_mut;
use crate::reason::UpstreamReason;
use crate::types::numeric::arithmetic::precision_and_scale;
use crate::types::{Numeric, PgType, Value};

/// An aggregate of a plan, and what is kept of it.
#[derive(Clone, Debug)]
pub struct Upkeep {
    /// Where the plan has it; a plan's nodes stay where they are.
    pub address: usize,
    /// What its scan reads.
    pub table: RelationId,
    /// Every table below it, as its scan names it.
    pub tables: Vec<RelationId>,
    /// Its input and groups, with the calls that are kept; the first is count(*).
    pub base: Aggregate,
    /// By call of `base`: what it is.
    pub kept: Vec<Kept>,
    /// By call of the plan's aggregate: how it comes from those of `base`.
    pub parts: Vec<Part>,
}

/// What is kept for each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Count,
    /// Of values that all have this display scale.
    Sum {
        scale: u16,
    },
    Least {
        pg_type: PgType,
        /// The call that counts its values.
        count: usize,
    },
    /// Likewise.
    Greatest {
        pg_type: PgType,
        count: usize,
    },
}

/// A call's result, by calls of the base. Without a value that counts it is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Count(usize),
    Sum { sum: usize, count: usize, scale: u16, result: PgType },
    Average { sum: usize, count: usize, scale: u16 },
    Extreme { extreme: usize, pg_type: PgType },
}

impl Upkeep {
    /// The aggregate above the only scan for which `is_changed`. None: there is no such, or it has to be computed from all rows.
    pub fn of(plan: &Plan, is_changed: &dyn Fn(&Scan) -> bool) -> Option<Self> {
        let mut changed = plan.scans().into_iter().filter(|scan| is_changed(scan));
        let (scan, None) = (changed.next()?, changed.next()) else { return None };
        let aggregate = plan.trees().find_map(|tree| match place(tree, scan) {
            Place::Under(aggregate) => Some(aggregate),
            Place::Elsewhere | Place::Rows | Place::Beyond => None,
        })?;
        let mut tables = Vec::new();
        let mut input = aggregate.input.clone();
        check(&mut input, plan.parameters.len(), &mut tables).ok()?;
        let mut upkeep = Self {
            address: std::ptr::from_ref(aggregate).addr(),
            table: scan.table,
            tables,
            base: Aggregate { input, groups: aggregate.groups.clone(), calls: Vec::new(), arguments: Vec::new() },
            kept: Vec::new(),
            parts: Vec::new(),
        };
        upkeep.base.arguments.clone_from(&aggregate.arguments);
        let mut own = PlanNode::Aggregate(Aggregate { input: Box::new(PlanNode::OneRow), ..aggregate.clone() });
        for_each_expression_mut(&mut own, &mut |expr| check_expression(expr, plan.parameters.len())).ok()?;
        let is_plain = |group: &BoundExpr| match type_of(group) {
            PgType::Bool => true,
            PgType::Numeric => fixed_scale(group, &aggregate.input).is_some(),
            PgType::Bpchar => is_padded(group, &aggregate.input),
            pg_type => pg_type.is_plainly_equal(),
        };
        if !aggregate.groups.iter().all(is_plain) {
            return None;
        }
        upkeep.keep(AggregateFunction::CountStar, None, None, PgType::Int8, Kept::Count);
        for call in &aggregate.calls {
            let part = upkeep.part(call)?;
            upkeep.parts.push(part);
        }
        Some(upkeep)
    }

    /// The scan of its table.
    pub fn scan(&self) -> Option<&Scan> {
        fn find(node: &PlanNode, table: RelationId) -> Option<&Scan> {
            if let PlanNode::Scan(scan) = node {
                return (scan.table == table).then_some(scan);
            }
            let mut found = None;
            node.for_each_input(&mut |input| found = found.or_else(|| find(input, table)));
            found
        }
        find(&self.base.input, self.table)
    }

    /// The call in terms of what is kept.
    fn part(&mut self, call: &Call) -> Option<Part> {
        if call.is_distinct || !call.order.is_empty() || !call.extra.is_empty() {
            return None;
        }
        let filter = call.filter.as_ref();
        let argument = call.argument.map(|argument| self.base.arguments[argument].clone());
        let pg_type = argument.as_ref().map(type_of);
        let count = |upkeep: &mut Self| {
            let function =
                if call.argument.is_some() { AggregateFunction::Count } else { AggregateFunction::CountStar };
            upkeep.keep(function, call.argument, filter, PgType::Int8, Kept::Count)
        };
        match (call.function, pg_type) {
            (AggregateFunction::CountStar | AggregateFunction::Count, _) => Some(Part::Count(count(self))),
            (AggregateFunction::Sum | AggregateFunction::Avg, Some(pg_type)) => {
                let (scale, result) = match pg_type {
                    PgType::Int2 | PgType::Int4 => (0, PgType::Int8),
                    PgType::Int8 => (0, PgType::Numeric),
                    PgType::Numeric => (fixed_scale(argument.as_ref()?, &self.base.input)?, PgType::Numeric),
                    _ => return None,
                };
                let sum = self.keep(AggregateFunction::Sum, call.argument, filter, result, Kept::Sum { scale });
                let count = count(self);
                Some(match call.function {
                    AggregateFunction::Sum => Part::Sum { sum, count, scale, result },
                    _ => Part::Average { sum, count, scale },
                })
            }
            (AggregateFunction::Min | AggregateFunction::Max, Some(pg_type)) if pg_type.is_ordinal() => {
                let count = count(self);
                let kept = match call.function {
                    AggregateFunction::Min => Kept::Least { pg_type, count },
                    _ => Kept::Greatest { pg_type, count },
                };
                let extreme = self.keep(call.function, call.argument, filter, pg_type, kept);
                Some(Part::Extreme { extreme, pg_type })
            }
            _ => None,
        }
    }

    /// The place of a call among those that are kept.
    fn keep(
        &mut self,
        function: AggregateFunction,
        argument: Option<usize>,
        filter: Option<&BoundExpr>,
        result: PgType,
        kept: Kept,
    ) -> usize {
        let is_it = |call: &Call| {
            call.function == function
                && call.argument == argument
                && match (&call.filter, filter) {
                    (None, None) => true,
                    (Some(own), Some(filter)) => is_same(own, filter),
                    _ => false,
                }
        };
        if let Some(known) = self.base.calls.iter().position(is_it) {
            return known;
        }
        self.base.calls.push(Call {
            function,
            argument,
            extra: Vec::new(),
            is_distinct: false,
            order: Vec::new(),
            filter: filter.cloned(),
            result,
        });
        self.kept.push(kept);
        self.kept.len() - 1
    }
}

/// Where a scan lies, as seen from a node.
enum Place<'p> {
    Elsewhere,
    /// Below it, and each of the scan's rows makes the node's rows by itself.
    Rows,
    /// Below it, but not so.
    Beyond,
    /// Below this aggregate, to which each row comes by itself.
    Under(&'p Aggregate),
}

fn place<'p>(node: &'p PlanNode, scan: &Scan) -> Place<'p> {
    match node {
        PlanNode::Scan(own) if std::ptr::eq(own, scan) => Place::Rows,
        PlanNode::Filter { input, .. } | PlanNode::Project { input, .. } => place(input, scan),
        PlanNode::Expand(expand) => place(&expand.input, scan),
        PlanNode::Join(join) => first_place(join.inputs.iter(), scan),
        PlanNode::SideJoin(join) => match place(&join.left, scan) {
            Place::Elsewhere => not_by_rows(place(&join.right, scan)),
            found if join.kind == SideKind::Full => not_by_rows(found),
            found => found,
        },
        PlanNode::Aggregate(aggregate) => match place(&aggregate.input, scan) {
            Place::Rows => Place::Under(aggregate),
            found => found,
        },
        _ => {
            let mut inputs = Vec::new();
            node.for_each_input(&mut |input| inputs.push(input));
            not_by_rows(first_place(inputs.into_iter(), scan))
        }
    }
}

fn first_place<'p>(mut inputs: impl Iterator<Item = &'p PlanNode>, scan: &Scan) -> Place<'p> {
    let found = inputs.find_map(|input| match place(input, scan) {
        Place::Elsewhere => None,
        found => Some(found),
    });
    found.unwrap_or(Place::Elsewhere)
}

fn not_by_rows(place: Place<'_>) -> Place<'_> {
    match place {
        Place::Rows => Place::Beyond,
        found => found,
    }
}

/// An error: what the node gives may depend on more than the rows of its tables and the statement's own parameters.
fn check(node: &mut PlanNode, parameters: usize, tables: &mut Vec<RelationId>) -> Result<(), UpstreamReason> {
    match node {
        PlanNode::OneRow
        | PlanNode::Filter { .. }
        | PlanNode::Project { .. }
        | PlanNode::Join(_)
        | PlanNode::SideJoin(_)
        | PlanNode::Expand(_)
        | PlanNode::Values { .. }
        | PlanNode::Series { .. }
        | PlanNode::Append { .. } => {}
        PlanNode::Scan(scan) => tables.push(scan.table),
        _ => return Err(beyond()),
    }
    for_each_expression_mut(node, &mut |expr| check_expression(expr, parameters))?;
    crate::planner::rules::for_each_input_mut(node, &mut |input| check(input, parameters, tables))
}

/// Values of subqueries are others when their tables change, and places in a learnt order when texts come.
fn check_expression(expr: &BoundExpr, parameters: usize) -> Result<(), UpstreamReason> {
    let is_open = any(expr, &|part| match part {
        BoundExpr::Parameter { index, .. } => *index >= parameters,
        BoundExpr::Call { function, .. } => {
            [&RANK, &RANK_PADDED, &TEXT_AT].into_iter().any(|learnt| std::ptr::eq(learnt, *function))
        }
        _ => false,
    });
    if is_open { Err(beyond()) } else { Ok(()) }
}

fn beyond() -> UpstreamReason {
    UpstreamReason::Unsupported("not kept up".into())
}

/// The display scale that every value of a numeric expression over the columns of `input` has (numeric.c: numeric_mul adds the scales,
/// numeric_add and numeric_sub take the larger one). None: they may differ.
fn fixed_scale(expr: &BoundExpr, input: &PlanNode) -> Option<u16> {
    match expr {
        BoundExpr::Column { index, expr_type } if expr_type.pg_type == PgType::Numeric => {
            scale_of_column(input, *index, expr_type.typmod)
        }
        BoundExpr::Literal { value: Value::Numeric(Numeric::Finite { scale, .. }), .. } => Some(*scale),
        BoundExpr::Call { function, arguments, .. } => match (function.name, &arguments[..]) {
            ("numeric", [integer]) => {
                matches!(type_of(integer), PgType::Int2 | PgType::Int4 | PgType::Int8).then_some(0)
            }
            ("-" | "+", [operand]) => fixed_scale(operand, input),
            ("+" | "-", [left, right]) => Some(fixed_scale(left, input)?.max(fixed_scale(right, input)?)),
            ("*", [left, right]) => fixed_scale(left, input)?.checked_add(fixed_scale(right, input)?),
            _ => None,
        },
        _ => None,
    }
}

/// Where a column of a node comes from.
enum Origin<'n> {
    /// A table's own.
    Table,
    /// Computed, from the rows of that node.
    Computed(&'n BoundExpr, &'n PlanNode),
}

fn origin(node: &PlanNode, column: usize) -> Option<Origin<'_>> {
    match node {
        PlanNode::Scan(_) => Some(Origin::Table),
        PlanNode::Filter { input, .. } => origin(input, column),
        PlanNode::Project { input, expressions } => Some(Origin::Computed(expressions.get(column)?, input)),
        PlanNode::Join(join) => {
            let (input, column) = join.input_at(column);
            origin(input, column)
        }
        PlanNode::SideJoin(join) => {
            let (side, column) = join.side_at(column)?;
            origin(side, column)
        }
        PlanNode::Expand(expand) if column < expand.input.width() => origin(&expand.input, column),
        _ => None,
    }
}

/// A table's own column has the scale that it is declared with.
fn scale_of_column(node: &PlanNode, column: usize, typmod: i32) -> Option<u16> {
    match origin(node, column)? {
        Origin::Table => u16::try_from(precision_and_scale(typmod)?.1.max(0)).ok(),
        Origin::Computed(expr, input) => fixed_scale(expr, input),
    }
}

/// Whether equal values of a char(n) are the same bytes, as a table's own are: padded to the declared length (varchar.c: bpchar).
fn is_padded(expr: &BoundExpr, input: &PlanNode) -> bool {
    let BoundExpr::Column { index, expr_type } = expr else { return false };
    match origin(input, *index) {
        Some(Origin::Table) => expr_type.typmod >= 0,
        Some(Origin::Computed(expr, input)) => is_padded(expr, input),
        None => false,
    }
}
