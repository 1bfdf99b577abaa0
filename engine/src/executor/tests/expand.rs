//! Functions in FROM within the budget.

use super::*;
use crate::binder::RowsCall;
use crate::catalog::functions::UNNEST;
use crate::types::{Element, array};

/// unnest of an array of so many integers beside each row.
fn unnest(input: BoundRelation, items: i32) -> BoundRelation {
    let (mut elements, mut bytes) = (Vec::new(), Vec::new());
    (0..items).for_each(|number| array::write_element(&Value::Int4(number), Element::Int4, &mut elements));
    array::write_vector(Element::Int4, items as usize, false, &elements, &mut bytes);
    let array = BoundExpr::Literal { value: Value::Array(bytes.into()), expr_type: of(PgType::Array(Element::Int4)) };
    let arguments = vec![array, BoundExpr::collation(Int4.oid())];
    let functions = vec![RowsCall { function: &UNNEST, arguments, columns: vec![of(Int4)] }];
    BoundRelation::Expand { input: Box::new(input), functions, is_numbered: false, keeps_empty: false }
}

#[test]
fn an_array_is_counted_before_it_is_taken_apart() {
    let limits = Limits { memory_bytes_max: 200_000, ..Limits::default() };
    let of_one = |items| try_rows(unnest(BoundRelation::OneRow, items), &[Int4], &limits);
    assert_eq!(of_one(1_000).expect("fits").len(), 1_000);
    assert!(matches!(of_one(10_000), Err(EvalError::OverBudget("memory"))));
    // One array after another takes the room of the largest: all together would not fit.
    let limits = Limits { memory_bytes_max: 600_000, ..Limits::default() };
    let rows = rows_of(scan(2, &[0]), &[Int4]).len();
    assert!(rows >= 7);
    let all = try_rows(unnest(scan(2, &[0]), 2_000), &[Int4, Int4], &limits);
    assert_eq!(all.expect("fits").len(), rows * 2_000);
}
