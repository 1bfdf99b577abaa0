//! Text under a collation whose order upstream tells, and the label of an enum, becomes its rank, wherever a node orders it or takes an extreme of it.
//! (Comparisons are the binder's: only it knows which collation two operands agree on.)
//!
//! Applied first, so that the other rules and the executor see numbers.

use crate::binder::{BoundExpr, ExprType, WindowKind};
use crate::catalog::Collation;
use crate::catalog::functions::AggregateFunction;
use crate::catalog::order::Order;
use crate::planner::expression::expr_type_of;
use crate::planner::node::{Aggregate, PlanNode};
use crate::planner::rules::for_each_input_mut;
use crate::planner::rules::merge::placeholder;
use crate::reason::UpstreamReason;
use crate::types::{PgType, Value};

const INT8: ExprType = ExprType { pg_type: PgType::Int8, typmod: -1, collation: Collation::None };

pub(in crate::planner) fn collate(node: &mut PlanNode) -> Result<(), UpstreamReason> {
    for_each_input_mut(node, &mut collate)?;
    match node {
        PlanNode::Sort { keys, .. } => keys.iter_mut().for_each(|key| rank(&mut key.expr)),
        PlanNode::Aggregate(aggregate) => {
            aggregate.calls.iter_mut().flat_map(|call| &mut call.order).for_each(|key| rank(&mut key.expr));
            if let Some(expressions) = extremes_of(aggregate)? {
                project(node, expressions);
            }
        }
        PlanNode::Window { input, calls } => {
            calls.iter_mut().flat_map(|call| &mut call.order).for_each(|key| rank(&mut key.expr));
            let width = input.width();
            let mut expressions: Vec<BoundExpr> = (0..width).map(placeholder).collect();
            let mut has_text = false;
            for (at, call) in calls.iter_mut().enumerate() {
                let is_extreme =
                    matches!(call.function, WindowKind::Aggregate(AggregateFunction::Min | AggregateFunction::Max));
                let learnt = call.arguments.first().filter(|_| is_extreme).and_then(learnt);
                let Some(order) = learnt else {
                    expressions.push(column(width + at, call.expr_type));
                    continue;
                };
                let shown = std::mem::replace(&mut call.expr_type, INT8);
                let typmod = expr_type_of(&call.arguments[0]).typmod;
                rank(&mut call.arguments[0]);
                expressions.push(column(width + at, INT8).text_at(order, typmod, shown)?);
                has_text = true;
            }
            if has_text {
                project(node, expressions);
            }
        }
        _ => {}
    }
    Ok(())
}

fn column(index: usize, expr_type: ExprType) -> BoundExpr {
    BoundExpr::Column { index, expr_type }
}

fn project(node: &mut PlanNode, expressions: Vec<BoundExpr>) {
    let input = Box::new(std::mem::replace(node, PlanNode::OneRow));
    *node = PlanNode::Project { input, expressions };
}

/// min and max of text as min and max of ranks; what is to be made of the node's columns, if there are any.
fn extremes_of(aggregate: &mut Aggregate) -> Result<Option<Vec<BoundExpr>>, UpstreamReason> {
    let groups = aggregate.groups.len();
    let mut expressions: Vec<BoundExpr> =
        aggregate.groups.iter().enumerate().map(|(index, group)| column(index, expr_type_of(group))).collect();
    let mut has_text = false;
    for (at, call) in aggregate.calls.iter_mut().enumerate() {
        let is_extreme = matches!(call.function, AggregateFunction::Min | AggregateFunction::Max);
        let argument = call.argument.filter(|_| is_extreme).map(|argument| aggregate.arguments[argument].clone());
        let shown = ExprType { pg_type: call.result, typmod: -1, collation: Collation::None };
        let Some((mut argument, order)) = argument.and_then(|argument| Some((argument.clone(), learnt(&argument)?)))
        else {
            expressions.push(column(groups + at, shown));
            continue;
        };
        let typmod = expr_type_of(&argument).typmod;
        rank(&mut argument);
        call.argument = Some(aggregate.arguments.len());
        aggregate.arguments.push(argument);
        call.result = PgType::Int8;
        expressions.push(column(groups + at, INT8).text_at(order, typmod, shown)?);
        has_text = true;
    }
    if has_text {
        drop_unread_arguments(aggregate);
    }
    Ok(has_text.then_some(expressions))
}

fn drop_unread_arguments(aggregate: &mut Aggregate) {
    let is_read = |argument: usize, aggregate: &Aggregate| {
        aggregate.calls.iter().any(|call| call.argument == Some(argument) || call.extra.contains(&argument))
    };
    for argument in (0..aggregate.arguments.len()).rev() {
        if is_read(argument, aggregate) {
            continue;
        }
        aggregate.arguments.remove(argument);
        for call in &mut aggregate.calls {
            let moved = call.argument.iter_mut().chain(&mut call.extra).filter(|read| **read > argument);
            moved.for_each(|read| *read -= 1);
        }
    }
}

/// The order that the expression's value has, if that is one to be looked up.
fn learnt(expr: &BoundExpr) -> Option<Order> {
    expr_type_of(expr).order()
}

fn rank(expr: &mut BoundExpr) {
    let Some(order) = learnt(expr) else { return };
    let text = std::mem::replace(expr, BoundExpr::Literal { value: Value::Null, expr_type: INT8 });
    *expr = text.ranked(order);
}
