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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::PgType::{self, Bool, Date, Timestamp, Timestamptz};
    use crate::types::Value;

    const fn of(pg_type: PgType) -> ExprType {
        ExprType { pg_type, typmod: -1, collation: Collation::None }
    }

    /// The types that are compared, and what makes the value one of them.
    fn converted(order: &str, types: [PgType; 2], column_at: usize) -> ([PgType; 2], Option<&'static str>) {
        let function = functions::operators(order).iter().find(|known| known.arguments == types).expect("known");
        let operand = |at: usize| match at == column_at {
            true => BoundExpr::Column { index: 0, expr_type: of(types[at]) },
            false => BoundExpr::Literal { value: Value::Null, expr_type: of(types[at]) },
        };
        let mut expr = BoundExpr::Call { function, arguments: vec![operand(0), operand(1)], expr_type: of(Bool) };
        convert_in(&mut expr).expect("has no error");
        let BoundExpr::Call { function, arguments, .. } = expr else { panic!("a call") };
        let made = match &arguments[1 - column_at] {
            BoundExpr::Call { function, .. } => Some(function.name),
            _ => None,
        };
        assert!(matches!(arguments[column_at], BoundExpr::Column { .. }) && function.name == order);
        ([function.arguments[0], function.arguments[1]], made)
    }

    #[test]
    fn a_value_becomes_one_of_the_columns_type() {
        for order in ["<", "<=", ">", ">=", "=", "<>"] {
            for value in [Date, Timestamp] {
                let expected = ([Timestamptz; 2], Some("comparable_moment"));
                assert_eq!(converted(order, [Timestamptz, value], 0), expected, "{order}");
                assert_eq!(converted(order, [value, Timestamptz], 1), expected, "{order}");
            }
            assert_eq!(converted(order, [Timestamp, Date], 0), ([Timestamp; 2], Some("comparable_time")));
            // A local time is at no one moment for all zones.
            assert_eq!(converted(order, [Timestamp, Timestamptz], 0), ([Timestamp, Timestamptz], None));
            assert_eq!(converted(order, [Timestamptz; 2], 0), ([Timestamptz; 2], None));
        }
        for value in [Timestamp, Timestamptz] {
            for (order, reversed, made) in [
                ("<", ">", "date_not_below"),
                (">=", "<=", "date_not_below"),
                ("<=", ">=", "date_not_above"),
                (">", "<", "date_not_above"),
            ] {
                assert_eq!(converted(order, [Date, value], 0), ([Date; 2], Some(made)), "{order}");
                assert_eq!(converted(reversed, [value, Date], 1), ([Date; 2], Some(made)), "{reversed}");
            }
            // No date is at noon.
            assert_eq!(converted("=", [Date, value], 0), ([Date, value], None));
        }
    }
}
