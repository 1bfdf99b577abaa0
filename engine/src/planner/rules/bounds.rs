//! A moment compared with a date, a date with a local time...: what is the same for all rows is made one of the other side's type, so that
//! indexes, zones and ranges know it. PostgreSQL has operators for each pair of types and indexes that take them (opclasses of the family
//! datetime_ops).

use crate::binder::{BoundExpr, ExprType};
use crate::catalog::Collation;
use crate::catalog::functions::{self, BOUNDS};
use crate::planner::expression::{is_row_independent, mirrored, try_for_each_operand_mut};
use crate::planner::node::PlanNode;
use crate::planner::rules::{for_each_expression_mut, for_each_input_mut};
use crate::reason::UpstreamReason;

pub(in crate::planner) fn convert(node: &mut PlanNode) -> Result<(), UpstreamReason> {
    for_each_input_mut(node, &mut convert)?;
    for_each_expression_mut(node, &mut convert_in)
}

fn convert_in(expr: &mut BoundExpr) -> Result<(), UpstreamReason> {
    try_for_each_operand_mut(expr, &mut convert_in)?;
    let BoundExpr::Call { function, arguments, .. } = expr else { return Ok(()) };
    let ([left, right], [of_left, of_right]) = (&mut arguments[..], function.arguments) else { return Ok(()) };
    let is_reversed = is_row_independent(left);
    if is_reversed == is_row_independent(right) {
        return Ok(());
    }
    let (types, order, value) = match is_reversed {
        true => ([*of_right, *of_left], mirrored(function.name), left),
        false => ([*of_left, *of_right], function.name, right),
    };
    let Some(bounds) = BOUNDS.iter().find(|bounds| bounds.types == types) else { return Ok(()) };
    let pair = [types[0]; 2];
    let same = functions::operators(function.name).iter().find(|known| known.arguments == pair);
    let (Some(bound), Some(same)) = ((bounds.bound)(order), same) else { return Ok(()) };
    let expr_type = ExprType { pg_type: types[0], typmod: -1, collation: Collation::None };
    let operand = std::mem::replace(value, BoundExpr::Literal { value: crate::types::Value::Null, expr_type });
    *value = BoundExpr::Call { function: bound, arguments: vec![operand], expr_type };
    *function = same;
    Ok(())
}
