//! Results that PostgreSQL 15 gave for the same values.

use std::sync::Arc;

use arrow::array::{Float32Array, Float64Array, Int32Array, Int64Array};

use super::*;
use crate::catalog::functions::Spread;
use crate::types::access::value_at;
use crate::types::numeric::NumericBuilder;
use crate::types::{Numeric, Value};

/// One group over the arrays, one update each.
fn whole(
    function: AggregateFunction,
    pg_type: PgType,
    result: PgType,
    arrays: &[ArrayRef],
) -> Result<Value, EvalError> {
    let mut states = accumulator(function, Some(pg_type), &[], pg_type)?;
    for array in arrays {
        let groups = Groups { ids: None, rows: array.len(), count: 1, before: 1, is_complete: true };
        states.update(&groups, Some(array))?;
    }
    Ok(value_at(states.finish(1)?.as_ref(), result, 0))
}

fn doubles(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn numerics(texts: &[&str]) -> ArrayRef {
    let parse = |text: &&str| Some(Numeric::parse(text).expect("a numeric"));
    texts.iter().map(parse).collect::<NumericBuilder>().finish()
}

use AggregateFunction::{Avg, Max, Min, Sum};
use PgType::{Float4, Float8, Int4, Int8};

#[test]
fn float_sums_and_averages_are_those_of_row_order() {
    let tenths = doubles(&[0.1, 0.2, 0.3]);
    assert_eq!(
        whole(Sum, Float8, Float8, std::slice::from_ref(&tenths)).ok(),
        Some(Value::Float8(0.600_000_000_000_000_1))
    );
    assert_eq!(whole(Avg, Float8, Float8, &[tenths]).ok(), Some(Value::Float8(0.200_000_000_000_000_04)));
    let singles: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 0.2, 0.3]));
    assert_eq!(whole(Sum, Float4, Float4, std::slice::from_ref(&singles)).ok(), Some(Value::Float4(0.6)));
    assert_eq!(whole(Avg, Float4, Float8, &[singles]).ok(), Some(Value::Float8(0.200_000_005_463_759_1)));
    let Ok(Value::Float8(zero)) = whole(Sum, Float8, Float8, &[doubles(&[-0.0])]) else { panic!("a sum") };
    assert!(zero.is_sign_negative(), "the first value is the state");
}

#[test]
fn float_overflow_raises_where_postgresql_raises() {
    let raises = |function, values: &[f64]| {
        matches!(whole(function, Float8, Float8, &[doubles(values)]), Err(EvalError::Raises(_)))
    };
    let averages = |values: &[f64]| whole(Avg, Float8, Float8, &[doubles(values)]);
    for too_large in [[1e200, -1e200], [1e308, 1e308], [1.0, -1e140]] {
        let refused = matches!(averages(&too_large), Err(EvalError::Beyond(_)));
        assert!(refused, "the sum of squares may overflow, which only PostgreSQL is to find: {too_large:?}");
    }
    assert_eq!(averages(&[9e139, -9e139, 3e139]).ok(), Some(Value::Float8(1e139)));
    let Ok(Value::Float8(average)) = averages(&[1.0, f64::NAN]) else { panic!("an average") };
    assert!(average.is_nan());
    let spread = AggregateFunction::Spread(Spread::VarPop);
    assert!(raises(spread, &[1e200, -1e200]), "the sum of squares overflows");
    assert!(raises(spread, &[1e308, 1e308]));
    assert!(raises(Sum, &[1e308, 1e308]));
    assert_eq!(
        whole(Sum, Float8, Float8, &[doubles(&[f64::INFINITY, 1e308, 1e308])]).ok(),
        Some(Value::Float8(f64::INFINITY))
    );
    let Ok(Value::Float8(average)) = whole(Avg, Float8, Float8, &[doubles(&[f64::INFINITY, f64::NEG_INFINITY])]) else {
        panic!("an average")
    };
    assert!(average.is_nan());
}

#[test]
fn integer_sums_and_averages_are_exact() {
    let text = |value: Result<Value, EvalError>| match value {
        Ok(Value::Numeric(value)) => value.to_string(),
        other => format!("{other:?}"),
    };
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 2]));
    assert_eq!(text(whole(Avg, Int4, PgType::Numeric, &[ints])), "1.6666666666666667");
    let big: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MAX]));
    assert_eq!(text(whole(Avg, Int8, PgType::Numeric, std::slice::from_ref(&big))), "9223372036854775807");
    assert_eq!(text(whole(Sum, Int8, PgType::Numeric, &[big])), "18446744073709551614");
}

#[test]
fn numeric_sums_take_the_largest_scale_across_forms() {
    let text = |function, arrays: &[ArrayRef]| match whole(function, PgType::Numeric, PgType::Numeric, arrays) {
        Ok(Value::Numeric(value)) => value.to_string(),
        other => format!("{other:?}"),
    };
    let arrays = [numerics(&["1.50"]), numerics(&["2", "2.125"])];
    assert_eq!(text(Sum, &arrays), "5.625");
    assert_eq!(text(Avg, &arrays), "1.8750000000000000");
    let special = [numerics(&["NaN", "2", "Infinity"])];
    assert_eq!(text(Sum, &special), "NaN");
    assert_eq!(text(Avg, &special), "NaN");
    assert_eq!(text(Sum, &[numerics(&["Infinity", "1"])]), "Infinity");
}

#[test]
fn extremes_among_equal_values_that_print_differently_are_refused() {
    let both = [numerics(&["1.0", "1.00"])];
    assert!(matches!(whole(Max, PgType::Numeric, PgType::Numeric, &both), Err(EvalError::Beyond(_))));
    let larger_too = [numerics(&["1.0", "1.00", "7.5"])];
    assert_eq!(
        whole(Max, PgType::Numeric, PgType::Numeric, &larger_too).ok(),
        Some(Value::Numeric(Numeric::Finite { mantissa: 75, scale: 1 }))
    );
    assert!(whole(Min, Float8, Float8, &[doubles(&[0.0, -0.0])]).is_err());
    let Ok(Value::Float8(max)) = whole(Max, Float8, Float8, &[doubles(&[f64::NAN, f64::INFINITY])]) else {
        panic!("a max")
    };
    assert!(max.is_nan());
}
