//! What the rules make of a query, read as explain prints it. That they keep the answer is tested in the executor.

use std::collections::HashMap;

use super::explain::explain;
use super::*;
use crate::binder::SortKey;
use crate::catalog::functions::{AggregateFunction, EvalError, Function};
use crate::catalog::{Catalog, Collation, RelationId};
use crate::types::Value;

const fn of(pg_type: PgType) -> ExprType {
    ExprType { pg_type, typmod: -1, collation: Collation::None }
}

fn column(index: usize) -> BoundExpr {
    BoundExpr::Column { index, expr_type: of(PgType::Int4) }
}

fn int(value: i32) -> BoundExpr {
    BoundExpr::Literal { value: Value::Int4(value), expr_type: of(PgType::Int4) }
}

macro_rules! operator {
    ($name:ident, $symbol:literal, $result:ident) => {
        static $name: Function = Function::immutable(
            $symbol,
            &[PgType::Int4, PgType::Int4],
            PgType::$result,
            |_, _, _| Err(EvalError::Raises("only planned, never run".to_owned())),
            "test",
        );
    };
}
operator!(EQUAL, "=", Bool);
operator!(GREATER, ">", Bool);
operator!(TIMES, "*", Int4);
operator!(DIVIDE, "/", Int4);

fn call(function: &'static Function, left: BoundExpr, right: BoundExpr) -> BoundExpr {
    BoundExpr::Call { function, arguments: vec![left, right], expr_type: of(function.result) }
}

fn scan(id: u32, columns: usize) -> Box<BoundRelation> {
    Box::new(BoundRelation::Scan { table: RelationId(id), columns: (0..columns).collect() })
}

fn join(
    kind: JoinKind,
    left: Box<BoundRelation>,
    right: Box<BoundRelation>,
    on: Option<BoundExpr>,
) -> Box<BoundRelation> {
    Box::new(BoundRelation::Join { kind, left, right, condition: on })
}

fn filter(input: Box<BoundRelation>, predicate: BoundExpr) -> Box<BoundRelation> {
    Box::new(BoundRelation::Filter { input, predicate })
}

fn project(input: Box<BoundRelation>, expressions: Vec<BoundExpr>) -> Box<BoundRelation> {
    Box::new(BoundRelation::Project { input, expressions })
}

fn explained(root: Box<BoundRelation>, outputs: usize) -> String {
    explained_by_keys(root, outputs, &[])
}

#[expect(clippy::boxed_local, reason = "as the builders above return it")]
fn explained_by_keys(root: Box<BoundRelation>, outputs: usize, keys: &[(u32, &[usize])]) -> String {
    let output = OutputColumn { name: "c".into(), table_oid: 0, attnum: 0, expr_type: of(PgType::Int4) };
    let query = BoundQuery {
        root: *root,
        output: vec![output; outputs],
        parameters: vec![],
        commons: vec![],
        scalars: vec![],
        tables: vec![],
        views: Vec::new(),
        keys: keys.iter().map(|(table, key)| (RelationId(*table), key.to_vec())).collect(),
        uses_time: false,
        uses_statement_time: false,
        folds_settings: false,
        custom_settings: Vec::new(),
        required: Vec::new(),
        zone_names: Vec::new(),
        definitions: 0,
    };
    explain(&crate::executor::plan(query).expect("no constant raises"), &Catalog::default())
}

#[test]
fn predicates_of_a_comma_join_reach_the_scans_and_equalities_are_hashed() {
    // SELECT t2.c1 FROM t1, t2 WHERE t1.c0 = t2.c0 AND t1.c1 > 5 AND t1.c0 = 7
    let predicate = BoundExpr::And(vec![
        call(&EQUAL, column(0), column(3)),
        call(&GREATER, column(1), int(5)),
        call(&EQUAL, column(0), int(7)),
    ]);
    let query = project(filter(join(JoinKind::Cross, scan(1, 3), scan(2, 2), None), predicate), vec![column(4)]);
    assert_eq!(
        explained(query, 1),
        "Project #2\n  Join on #0 = #1\n    \
         Scan table 1 [0] where (#1 > 5) AND (#0 = 7); look-up possible by 1 column(s)\n    \
         Scan table 2 [0, 1] where (#0 = 7); look-up possible by 1 column(s)\n"
    );
}

#[test]
fn an_or_gives_up_what_all_its_branches_say_and_restricts_each_input() {
    // t1, t2 WHERE (t1.c0 = t2.c0 AND t1.c1 > 5 AND t2.c1 > 1) OR (t2.c1 > 2 AND t1.c1 > 7 AND t1.c0 = t2.c0)
    let branch = |first: i32, second: i32| {
        let mut parts = vec![
            call(&EQUAL, column(0), column(2)),
            call(&GREATER, column(1), int(first)),
            call(&GREATER, column(3), int(second)),
        ];
        if second == 2 {
            parts.reverse();
        }
        BoundExpr::And(parts)
    };
    let either = BoundExpr::Or(vec![branch(5, 1), branch(7, 2)]);
    let joined = || join(JoinKind::Cross, scan(1, 2), scan(2, 2), None);
    assert_eq!(
        explained(filter(joined(), either.clone()), 4),
        "Join on #0 = #2; also (((#1 > 5) AND (#3 > 1)) OR ((#3 > 2) AND (#1 > 7)))\n  \
         Scan table 1 [0, 1] where ((#1 > 5) OR (#1 > 7))\n  Scan table 2 [0, 1] where ((#1 > 1) OR (#1 > 2))\n"
    );
    // One branch says no more than what all say.
    let with_plain = BoundExpr::Or(vec![either, call(&EQUAL, column(0), column(2))]);
    assert_eq!(
        explained(filter(joined(), with_plain), 4),
        "Join on #0 = #2\n  Scan table 1 [0, 1]\n  Scan table 2 [0, 1]\n"
    );
}

#[test]
fn ors_within_ors_are_read_once() {
    // N(0) = t1.c0 = 0 AND t2.c0 = 0; N(k) = (t2.c0 = k AND N(k-1)) OR (t1.c0 = k AND t2.c0 = k): reading a part twice would
    // read the innermost a million times and more.
    let both = |k: i32| BoundExpr::And(vec![call(&EQUAL, column(0), int(k)), call(&EQUAL, column(2), int(k))]);
    let nested = (1..24).fold(both(0), |inner, k| {
        BoundExpr::Or(vec![BoundExpr::And(vec![call(&EQUAL, column(2), int(k)), inner]), both(k)])
    });
    let text = explained(filter(join(JoinKind::Cross, scan(1, 2), scan(2, 2), None), nested), 4);
    assert!(text.contains("Scan table 2 [0, 1] where"), "{text}");
}

#[test]
fn an_outer_join_keeps_the_rows_that_an_or_in_its_condition_excludes() {
    let branch = |n| BoundExpr::And(vec![call(&GREATER, column(1), int(n)), call(&GREATER, column(3), int(n))]);
    let on = BoundExpr::Or(vec![branch(1), branch(2)]);
    assert_eq!(
        explained(join(JoinKind::Left, scan(1, 2), scan(2, 2), Some(on)), 4),
        "Left join; also (((#1 > 1) AND (#3 > 1)) OR ((#1 > 2) AND (#3 > 2))) (every pair)\n  \
         Scan table 1 [0, 1]\n  Scan table 2 [0, 1] where ((#1 > 1) OR (#1 > 2))\n"
    );
}

#[test]
fn equalities_of_one_class_lead_from_every_member_to_every_other() {
    // t1, t2, t3 WHERE t1.c0 = t2.c0 AND t2.c0 = t3.c0
    let predicate = BoundExpr::And(vec![call(&EQUAL, column(0), column(1)), call(&EQUAL, column(1), column(2))]);
    let both = join(JoinKind::Cross, join(JoinKind::Cross, scan(1, 1), scan(2, 1), None), scan(3, 1), None);
    let query = BoundQuery {
        root: BoundRelation::Filter { input: both, predicate },
        output: vec![],
        parameters: vec![],
        commons: vec![],
        scalars: vec![],
        tables: vec![],
        views: vec![],
        keys: HashMap::new(),
        uses_time: false,
        uses_statement_time: false,
        folds_settings: false,
        custom_settings: Vec::new(),
        required: Vec::new(),
        zone_names: Vec::new(),
        definitions: 0,
    };
    let plan = crate::executor::plan(query).expect("planned");
    let PlanNode::Join(join) = &plan.root else { panic!("one join: {plan:?}") };
    assert_eq!((join.equalities.len(), join.implied.len()), (2, 1));
    assert_eq!((join.implied[0].left_input, join.implied[0].right_input), (0, 2));
}

#[test]
fn derived_tables_dissolve_into_one_join() {
    // (SELECT c1, c0 FROM t1 WHERE c2 > 1) a JOIN t2 ON a.c0 = t2.c0 JOIN t3 ON t3.c0 = t2.c1
    let derived = project(filter(scan(1, 3), call(&GREATER, column(2), int(1))), vec![column(1), column(0)]);
    let first = join(JoinKind::Inner, derived, scan(2, 2), Some(call(&EQUAL, column(1), column(2))));
    let both = join(JoinKind::Inner, first, scan(3, 1), Some(call(&EQUAL, column(4), column(3))));
    assert_eq!(
        explained(project(both, vec![column(0)]), 1),
        "Project #1\n  Join on #0 = #2 AND #4 = #3\n    Scan table 1 [0, 1] where (#2 > 1)\n    \
         Scan table 2 [0, 1]\n    Scan table 3 [0]\n"
    );
}

#[test]
fn a_left_join_keeps_its_padding_unless_it_is_filtered_away() {
    let on = || Some(BoundExpr::And(vec![call(&EQUAL, column(0), column(2)), call(&GREATER, column(3), int(1))]));
    let left = || join(JoinKind::Left, scan(1, 2), scan(2, 2), on());
    let above = filter(left(), call(&GREATER, column(1), int(9)));
    assert_eq!(
        explained(above, 4),
        "Left join on #0 = #2\n  Scan table 1 [0, 1] where (#1 > 9)\n  Scan table 2 [0, 1] where (#1 > 1)\n"
    );
    let padded_only = filter(left(), BoundExpr::IsNull { operand: Box::new(column(2)), negated: false });
    assert!(explained(padded_only, 4).starts_with("Filter #2 IS NULL\n  Left join"));
    let never_padded = filter(left(), call(&GREATER, column(3), int(9)));
    assert!(explained(never_padded, 4).starts_with("Join on #0 = #2\n"));
}

#[test]
fn a_sort_of_groups_chooses_the_rows_of_the_kept_side_where_their_key_is_grouped_by() {
    // SELECT c0, c1, max(t2.c1) FROM t1 LEFT JOIN t2 ON t1.c0 = t2.c0 GROUP BY c0, c1 ORDER BY c1 LIMIT 3
    let explained = |groups: Vec<BoundExpr>, argument: BoundExpr, by: usize, keys: &[(u32, &[usize])]| {
        let input = join(JoinKind::Left, scan(1, 2), scan(2, 2), Some(call(&EQUAL, column(0), column(2))));
        let outputs = groups.len() + 1;
        let aggregates = vec![AggregateCall {
            function: AggregateFunction::Max,
            argument: Some(argument),
            extra: vec![],
            is_distinct: false,
            order: vec![],
            filter: None,
            expr_type: of(PgType::Int4),
        }];
        let input = Box::new(BoundRelation::Aggregate { input, groups, aggregates });
        let keys_of_sort = vec![SortKey { expr: column(by), descending: false, nulls_first: false }];
        let input = Box::new(BoundRelation::Sort { input, keys: keys_of_sort });
        let limit = Some(BoundExpr::Literal { value: Value::Int8(3), expr_type: of(PgType::Int8) });
        let limited = Box::new(BoundRelation::Limit { input, limit, offset: None, with_ties: false });
        explained_by_keys(limited, outputs, keys)
    };
    let both = || vec![column(0), column(1)];
    let key: &[(u32, &[usize])] = &[(1, &[0])];
    let chosen = explained(both(), column(3), 1, key);
    assert!(chosen.starts_with("Sort") && chosen.contains("    Left join on #0 = #2\n      Sort"), "{chosen}");
    let is_late = |text: String| assert_eq!(text.matches("Sort").count(), 1, "{text}");
    is_late(explained(both(), column(3), 1, &[]));
    is_late(explained(both(), column(3), 2, key));
    is_late(explained(vec![column(1)], column(3), 0, key));
    is_late(explained(vec![column(0), column(3)], column(3), 0, key));
    is_late(explained(both(), call(&DIVIDE, column(3), column(2)), 1, key));
    // t1 LEFT JOIN t2 ON t1.c0 = t2.c0 LEFT JOIN t3 ON t3.c0 = t2.c1: a third table's row hangs on the second's.
    let both_joined = join(
        JoinKind::Left,
        join(JoinKind::Left, scan(1, 2), scan(2, 2), Some(call(&EQUAL, column(0), column(2)))),
        scan(3, 2),
        Some(call(&EQUAL, column(3), column(4))),
    );
    let groups = vec![column(0), column(5)];
    let grouped = Box::new(BoundRelation::Aggregate { input: both_joined, groups, aggregates: vec![] });
    let keys_of_sort = vec![SortKey { expr: column(0), descending: false, nulls_first: false }];
    let sorted = Box::new(BoundRelation::Sort { input: grouped, keys: keys_of_sort });
    let limit = Some(BoundExpr::Literal { value: Value::Int8(3), expr_type: of(PgType::Int8) });
    let limited = Box::new(BoundRelation::Limit { input: sorted, limit, offset: None, with_ties: false });
    is_late(explained_by_keys(limited, 2, &[(1, &[0]), (3, &[0])]));
    // One row of the right at most: its columns hang on the left's.
    let kept = explained(vec![column(0), column(3)], column(1), 0, &[(1, &[0]), (2, &[0])]);
    assert_eq!(kept.matches("Sort").count(), 2, "{kept}");
}

#[test]
fn columns_of_a_table_hang_on_its_primary_key_where_that_is_grouped_by() {
    let keyed = |id: u32, columns: usize, key: &[usize]| {
        let scan = Scan { key: key.to_vec(), ..Scan::new(RelationId(id), (0..columns).rev().collect()) };
        PlanNode::Scan(scan)
    };
    // Columns 2, 1, 0 of t1, whose key is column 0, and 2, 1, 0 of t2, whose key is 0 and 1.
    let joined = || {
        let join = SideJoin {
            kind: SideKind::Left,
            left: Box::new(keyed(1, 3, &[0])),
            right: Box::new(keyed(2, 3, &[0, 1])),
            equalities: vec![],
            filters: vec![],
            test: None,
            test_key: None,
            is_per_row: false,
            is_lateral: false,
        };
        PlanNode::SideJoin(join)
    };
    let decided = |input: PlanNode, groups: Vec<BoundExpr>| {
        let aggregate = Aggregate { input: Box::new(input), groups, calls: vec![], arguments: vec![] };
        deciding(&aggregate, &|scan| scan.table != RelationId(9))
    };
    let columns = |of: &[usize]| of.iter().map(|index| column(*index)).collect::<Vec<_>>();
    assert_eq!(decided(keyed(1, 3, &[0]), columns(&[0, 2, 1])), [false, true, false]);
    assert_eq!(decided(keyed(1, 3, &[0]), columns(&[0, 1])), [true, true], "without the key");
    assert_eq!(decided(keyed(1, 3, &[]), columns(&[0, 2])), [true, true], "no key");
    assert_eq!(decided(keyed(9, 3, &[0]), columns(&[0, 2])), [true, true], "rows of several moments");
    assert_eq!(decided(keyed(2, 3, &[0, 1]), columns(&[0, 2])), [true, true], "half of the key");
    assert_eq!(decided(keyed(2, 3, &[0, 1]), columns(&[1, 0, 2])), [true, false, true]);
    let computed = vec![column(2), call(&TIMES, column(0), column(0)), column(1)];
    assert_eq!(decided(keyed(1, 3, &[0]), computed), [true, true, false]);
    assert_eq!(decided(joined(), columns(&[2, 0, 3])), [true, false, true]);
    assert_eq!(decided(joined(), columns(&[3, 4, 5])), [true, true, true], "of the padded side");
    let above = PlanNode::Project { input: Box::new(joined()), expressions: columns(&[0, 2, 2]) };
    assert_eq!(decided(above, columns(&[1, 0])), [true, false]);
}

#[test]
fn what_may_raise_an_error_in_a_set_operation_is_computed_whoever_reads_it() {
    let side = |second: BoundExpr| *project(scan(1, 2), vec![column(0), second]);
    let union = |second: BoundExpr| {
        let inputs = vec![side(second), side(column(1))];
        Box::new(BoundRelation::Append { inputs, columns: vec![of(PgType::Int4); 2] })
    };
    let text = explained(project(union(call(&DIVIDE, int(10), column(1))), vec![column(0)]), 1);
    assert!(text.contains("(10 / #1)"), "{text}");
    let text = explained(project(union(int(10)), vec![column(0)]), 1);
    assert!(!text.contains("10") && !text.contains("[0, 1]"), "{text}");
}

#[test]
fn a_side_in_another_type_is_computed_before_it_is_tested() {
    // SELECT c0, 10 / c1 FROM t1 UNION ALL SELECT c0, c1 FROM t2, where t2.c0 is a bigint
    static WIDEN: Function = Function::immutable(
        "int8",
        &[PgType::Int4],
        PgType::Int8,
        |_, _, _| Err(EvalError::Raises("only planned, never run".to_owned())),
        "test",
    );
    let seen_as = |index, pg_type| BoundExpr::Column { index, expr_type: of(pg_type) };
    let wide = BoundExpr::Call { function: &WIDEN, arguments: vec![column(0)], expr_type: of(PgType::Int8) };
    let divided = project(scan(1, 2), vec![column(0), call(&DIVIDE, int(10), column(1))]);
    let plain = project(scan(2, 2), vec![seen_as(0, PgType::Int8), column(1)]);
    let inputs =
        vec![*project(divided, vec![wide, column(1)]), *project(plain, vec![seen_as(0, PgType::Int8), column(1)])];
    let union = Box::new(BoundRelation::Append { inputs, columns: vec![of(PgType::Int8), of(PgType::Int4)] });
    let text = explained(filter(union.clone(), call(&GREATER, column(0), int(1))), 2);
    assert!(text.starts_with("Filter (#0 > 1)\n  Append\n"), "{text}");
    let text = explained(filter(union, call(&GREATER, column(1), int(1))), 2);
    assert!(text.starts_with("Append\n") && text.contains("where ((10 / #1) > 1)"), "{text}");
    // Nothing raises an error: which rows are computed does not show.
    let inputs = [PgType::Varchar, PgType::Text]
        .map(|own| *project(project(scan(1, 1), vec![seen_as(0, own)]), vec![seen_as(0, PgType::Text)]));
    let union = Box::new(BoundRelation::Append { inputs: inputs.to_vec(), columns: vec![of(PgType::Text)] });
    let is_there = BoundExpr::IsNull { operand: Box::new(seen_as(0, PgType::Text)), negated: true };
    let text = explained(filter(union, is_there), 1);
    assert!(text.starts_with("Append\n"), "{text}");
}

#[test]
fn having_on_a_group_key_filters_before_grouping_and_unread_sums_go() {
    let sum = |index| AggregateCall {
        function: AggregateFunction::Sum,
        argument: Some(call(&TIMES, column(index), column(2))),
        extra: vec![],
        is_distinct: false,
        order: vec![],
        filter: None,
        expr_type: of(PgType::Int8),
    };
    let grouped = Box::new(BoundRelation::Aggregate {
        input: scan(1, 4),
        groups: vec![column(3)],
        aggregates: vec![sum(1), sum(0), sum(1)],
    });
    let having = BoundExpr::And(vec![call(&GREATER, column(0), int(3)), call(&GREATER, column(3), int(4))]);
    assert_eq!(
        explained(project(filter(grouped, having), vec![column(0), column(1)]), 2),
        "Project #0, #1\n  Filter (#2 > 4)\n    Aggregate by #2 Sum((#0 * #1)) Sum((#0 * #1))\n      \
         Scan table 1 [1, 2, 3] where (#2 > 3)\n"
    );
}

#[test]
fn limit_moves_into_the_sort_and_stops_predicates() {
    let bigint = |value| Some(BoundExpr::Literal { value: Value::Int8(value), expr_type: of(PgType::Int8) });
    let sort = Box::new(BoundRelation::Sort {
        input: scan(1, 2),
        keys: vec![SortKey { expr: column(1), descending: true, nulls_first: true }],
    });
    for (with_ties, word) in [(false, ""), (true, " with ties")] {
        let input = sort.clone();
        let limited = Box::new(BoundRelation::Limit { input, limit: bigint(5), offset: None, with_ties });
        assert_eq!(
            explained(filter(limited, call(&GREATER, column(0), int(1))), 2),
            format!("Filter (#0 > 1)\n  Sort by #1 DESC NULLS FIRST limit 5{word}\n    Scan table 1 [0, 1]\n")
        );
    }
}

#[test]
fn cheap_predicates_run_first_as_in_postgresql() {
    let dear = call(&GREATER, call(&TIMES, column(0), call(&TIMES, column(0), int(2))), int(1));
    let cheap = call(&GREATER, column(1), int(0));
    assert_eq!(
        explained(filter(scan(1, 2), BoundExpr::And(vec![dear, cheap])), 2),
        "Scan table 1 [0, 1] where (#1 > 0) AND ((#0 * (#0 * 2)) > 1)\n"
    );
}
