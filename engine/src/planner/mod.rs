//! From a [`BoundQuery`] to a [`Plan`]: the same rows, computed with less.
//!
//! Rewrites (one per file in [`rules`]): literals folded, predicates pushed to the rows they test, projections merged,
//! unread columns dropped, hashable join equalities found, limits moved into sorts. What depends on the data (join
//! order, which aggregation, index or scan) is decided by the executor, so a plan is valid for every snapshot of its catalog.

pub mod explain;
pub mod expression;
pub mod node;
mod rules;

use crate::binder::{AggregateCall, BoundExpr, BoundQuery, BoundRelation, ExprType, JoinKind, OutputColumn, TableUse};
use crate::catalog::functions::{EvalContext, EvalError};
use crate::planner::expression::{conjuncts, expr_type_of, is_same};
use crate::planner::node::{Aggregate, Call, Join, LeftJoin, PlanNode, Scan};
use crate::reason::UpstreamReason;
use crate::types::{PgType, Value};

/// What the executor runs. Read-only: shared by all sessions that run the statement.
#[derive(Clone, Debug)]
pub struct Plan {
    pub root: PlanNode,
    pub output: Vec<OutputColumn>,
    /// Type of each `$n`.
    pub parameters: Vec<PgType>,
    pub tables: Vec<TableUse>,
    pub uses_time: bool,
    pub folds_settings: bool,
}

/// What the planner asks of the executor, which knows plans but is not known here.
#[derive(Clone, Copy)]
pub struct Abilities {
    /// The value of an expression without columns.
    pub constant: fn(&BoundExpr, &[Value], &EvalContext<'_>) -> Result<Value, EvalError>,
    /// Whether a node's aggregates, groups and order can be run.
    pub check: fn(&PlanNode) -> Result<(), EvalError>,
}

/// Fails if a constant expression of the query raises an error, or an aggregate, grouping or order is not known here.
pub fn plan(query: BoundQuery, abilities: &Abilities) -> Result<Plan, UpstreamReason> {
    let output_types: Vec<ExprType> = query.output.iter().map(|column| column.expr_type).collect();
    let mut root = translate(query.root, Some(&output_types))?;
    rules::fold::fold(&mut root, abilities)?;
    root = rules::pushdown::push(root, Vec::new());
    root = rules::merge::merge(root);
    // Merged joins see each other's inputs only now.
    root = rules::pushdown::push(root, Vec::new());
    rules::prune::prune(&mut root);
    rules::joins::find_equalities(&mut root)?;
    rules::order::order(&mut root)?;
    rules::scans::prepare(&mut root)?;
    check(&mut root, abilities)?;
    Ok(Plan {
        root,
        output: query.output,
        parameters: query.parameters,
        tables: query.tables,
        uses_time: query.uses_time,
        folds_settings: query.folds_settings,
    })
}

fn check(node: &mut PlanNode, abilities: &Abilities) -> Result<(), UpstreamReason> {
    (abilities.check)(node).map_err(|error| UpstreamReason::Unsupported(error.to_string().into()))?;
    rules::for_each_input_mut(node, &mut |input| check(input, abilities))
}

/// `types`: the types of the relation's columns, where the one above knows them.
fn translate(relation: BoundRelation, types: Option<&[ExprType]>) -> Result<PlanNode, UpstreamReason> {
    Ok(match relation {
        BoundRelation::OneRow => PlanNode::OneRow,
        BoundRelation::Scan { table, columns } => PlanNode::Scan(Scan::new(table, columns)),
        BoundRelation::Filter { input, predicate } => {
            let mut predicates = Vec::new();
            conjuncts(predicate, &mut predicates);
            PlanNode::Filter { input: Box::new(translate(*input, types)?), predicates }
        }
        BoundRelation::Project { input, expressions } => {
            PlanNode::Project { input: Box::new(translate(*input, None)?), expressions }
        }
        BoundRelation::Join { kind, left, right, condition } => {
            let (left, right) = (translate(*left, None)?, translate(*right, None)?);
            let mut filters = Vec::new();
            if let Some(condition) = condition {
                conjuncts(condition, &mut filters);
            }
            match kind {
                JoinKind::Inner | JoinKind::Cross => {
                    PlanNode::Join(Join { inputs: vec![left, right], equalities: Vec::new(), filters })
                }
                JoinKind::Left => PlanNode::LeftJoin(LeftJoin {
                    left: Box::new(left),
                    right: Box::new(right),
                    equalities: Vec::new(),
                    filters,
                }),
            }
        }
        BoundRelation::Aggregate { input, groups, aggregates } => {
            let input = Box::new(translate(*input, None)?);
            let mut arguments = Vec::new();
            let calls = aggregates.into_iter().map(|call| translate_call(call, &mut arguments)).collect();
            PlanNode::Aggregate(Aggregate { input, groups, calls, arguments })
        }
        BoundRelation::Distinct { input } => {
            let known = types.map(<[ExprType]>::to_vec).or_else(|| output_types(&input));
            let Some(known) = known else {
                return Err(UpstreamReason::Unsupported("DISTINCT over a whole table in a subquery".into()));
            };
            let groups = known.iter().enumerate();
            let groups = groups.map(|(index, expr_type)| BoundExpr::Column { index, expr_type: *expr_type }).collect();
            let input = Box::new(translate(*input, types)?);
            PlanNode::Aggregate(Aggregate { input, groups, calls: Vec::new(), arguments: Vec::new() })
        }
        BoundRelation::Sort { input, keys } => {
            PlanNode::Sort { input: Box::new(translate(*input, types)?), keys, limit: None, offset: None }
        }
        BoundRelation::Limit { input, limit, offset } => {
            PlanNode::Limit { input: Box::new(translate(*input, types)?), limit, offset }
        }
    })
}

fn translate_call(call: AggregateCall, arguments: &mut Vec<BoundExpr>) -> Call {
    let argument = call.argument.map(|expr| {
        let known = arguments.iter().position(|known| is_same(known, &expr));
        known.unwrap_or_else(|| {
            arguments.push(expr);
            arguments.len() - 1
        })
    });
    Call {
        function: call.function,
        argument,
        is_distinct: call.is_distinct,
        filter: call.filter,
        result: call.expr_type.pg_type,
    }
}

/// The types of the output columns, unless they are a table's own, which no expression names.
fn output_types(relation: &BoundRelation) -> Option<Vec<ExprType>> {
    match relation {
        BoundRelation::OneRow => Some(Vec::new()),
        BoundRelation::Scan { .. } => None,
        BoundRelation::Project { expressions, .. } => Some(expressions.iter().map(expr_type_of).collect()),
        BoundRelation::Join { left, right, .. } => {
            let mut types = output_types(left)?;
            types.extend(output_types(right)?);
            Some(types)
        }
        BoundRelation::Aggregate { groups, aggregates, .. } => {
            let calls = aggregates.iter().map(|call| call.expr_type);
            Some(groups.iter().map(expr_type_of).chain(calls).collect())
        }
        BoundRelation::Filter { input, .. }
        | BoundRelation::Distinct { input }
        | BoundRelation::Sort { input, .. }
        | BoundRelation::Limit { input, .. } => output_types(input),
    }
}

/// The query's own operators, no rule applied: what every rule must agree with.
#[cfg(test)]
pub(crate) fn plan_as_written(query: BoundQuery) -> Result<Plan, UpstreamReason> {
    let output_types: Vec<ExprType> = query.output.iter().map(|column| column.expr_type).collect();
    let root = translate(query.root, Some(&output_types))?;
    let BoundQuery { output, parameters, tables, uses_time, folds_settings, .. } = query;
    Ok(Plan { root, output, parameters, tables, uses_time, folds_settings })
}

#[cfg(test)]
mod tests;
