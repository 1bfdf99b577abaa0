//! The first rows of an order, where the scan leaves out what the sort would drop.

use super::*;

/// Chunks of several sizes; v: from -50 on, in overlapping ranges, every ninth NULL in some chunks, one chunk of NULLs alone.
fn snapshot_of_many() -> Snapshot {
    let value = |chunk: usize, row: i32| match chunk {
        1 => None,
        0 | 3 if row % 9 == 0 => None,
        _ => Some((row * 37 + 11 * chunk as i32) % 200 + 60 * chunk as i32 - 50),
    };
    let chunk = |(at, rows): (usize, i32)| {
        let values: Int32Array = (0..rows).map(|row| value(at, row)).collect();
        let ids = int_array((0..rows).map(|row| row + 10_000 * at as i32));
        vec![ids, Arc::new(values) as ArrayRef, int_array((0..rows).map(|row| row % 7))]
    };
    let mut many = table(1, &[Int4; 3], [400, 50, 9_000, 300, 700, 120].into_iter().enumerate().map(chunk).collect());
    let mut chunks = many.chunks.to_vec();
    let alive = BooleanBuffer::from_iter((0..9_000).map(|row| row % 3 > 0));
    chunks[2] = ChunkVersion { chunk: chunks[2].chunk.clone(), alive: Some(Arc::new(alive)), alive_rows: 6_000 };
    many.chunks = chunks.into();
    let few = table(2, &[Int4, Int4], vec![vec![int_array(0..4), int_array(0..4)]]);
    let tables = [many, few].into_iter().map(|table| (table.schema.id, Arc::new(table))).collect();
    Snapshot { tables, ..Snapshot::default() }
}

fn ordered(input: BoundRelation, descending: bool, nulls_first: bool) -> BoundRelation {
    let keys = vec![SortKey { expr: column(1, Int4), descending, nulls_first }];
    BoundRelation::Sort { input: Box::new(input), keys }
}

fn values(root: BoundRelation) -> Vec<String> {
    let lines = run_as(plan, &snapshot_of_many(), root, &[Int4; 3], &Limits::default()).expect("answered");
    lines.iter().map(|line| line.split(' ').nth(1).expect("three columns").to_owned()).collect()
}

#[test]
fn the_first_rows_are_those_of_the_whole_order() {
    let all = || scan(1, &[0, 1, 2]);
    let some = || filter(all(), call(&LESS, vec![column(2, Int4), int(2)]));
    let matched = || {
        let equal = call(&EQUAL, vec![column(2, Int4), column(3, Int4)]);
        let joined = join(JoinKind::Inner, all(), scan(2, &[0]), Some(equal));
        BoundRelation::Project { input: Box::new(joined), expressions: (0..3).map(|at| column(at, Int4)).collect() }
    };
    let inputs: [&dyn Fn() -> BoundRelation; 3] = [&all, &some, &matched];
    for (number, input) in inputs.into_iter().enumerate() {
        for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
            let whole = values(ordered(input(), descending, nulls_first));
            for (count, offset) in [(1, 0), (5, 3), (30, 0), (64, 64), (300, 10), (2_000, 0)] {
                let first = values(limit(ordered(input(), descending, nulls_first), count, offset));
                let end = ((offset + count) as usize).min(whole.len());
                let what = format!("input {number}, {descending} {nulls_first}, {count} from {offset}");
                assert_eq!(first, whole[(offset as usize).min(end)..end], "{what}");
            }
        }
    }
}

#[test]
fn an_error_that_a_row_would_raise_is_raised() {
    // Row 9,999 of the third chunk is far from the first ones of the order.
    let quotient = call(&DIVIDE, vec![int(1), call(&DIVIDE, vec![column(0, Int4), int(20_000)])]);
    let raising = filter(scan(1, &[0, 1, 2]), call(&GREATER, vec![quotient, int(-1)]));
    let first = limit(ordered(raising, true, false), 1, 0);
    let error = run_as(plan, &snapshot_of_many(), first, &[Int4; 3], &Limits::default());
    assert!(matches!(error, Err(EvalError::Raises(_))), "{error:?}");
}

#[test]
fn from_an_offset_on_ties_come_with_the_last_row() {
    let with_ties = |relation| match relation {
        BoundRelation::Limit { input, limit, offset, .. } => {
            BoundRelation::Limit { input, limit, offset, with_ties: true }
        }
        other => other,
    };
    for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let whole = values(ordered(scan(1, &[0, 1, 2]), descending, nulls_first));
        for (count, offset) in [(0, 0), (0, 3), (1, 0), (5, 30), (2_000, 6_000), (1, 7_000), (70_000, 1), (3, 90_000)] {
            let found = values(with_ties(limit(ordered(scan(1, &[0, 1, 2]), descending, nulls_first), count, offset)));
            let (start, end) = ((offset as usize).min(whole.len()), ((count + offset) as usize).min(whole.len()));
            let ties = match count {
                0 => 0,
                _ => whole[end..].iter().take_while(|value| **value == whole[end - 1]).count(),
            };
            assert_eq!(found, whole[start..end + ties], "{descending} {nulls_first}, {count} from {offset}");
        }
    }
}

#[test]
fn more_ties_than_are_looked_at_at_a_time_come_all() {
    let weekday = SortKey { expr: column(2, Int4), descending: false, nulls_first: false };
    let sorted = BoundRelation::Sort { input: Box::new(scan(1, &[0, 1, 2])), keys: vec![weekday] };
    let ties = |count| match limit(sorted.clone(), count, 0) {
        BoundRelation::Limit { input, limit, .. } => {
            values(BoundRelation::Limit { input, limit, offset: None, with_ties: true }).len()
        }
        _ => 0,
    };
    let of_day = |day| values(filter(scan(1, &[0, 1, 2]), call(&EQUAL, vec![column(2, Int4), int(day)]))).len();
    assert!(of_day(0) > 1_025, "or it says nothing");
    assert_eq!(ties(1), of_day(0));
    assert_eq!(ties(of_day(0) as i64), of_day(0));
    assert_eq!(ties(of_day(0) as i64 + 1), of_day(0) + of_day(1));
}

#[test]
fn with_ties_come_all_that_are_equal_to_the_last_row() {
    fn with_ties(query: BoundQuery) -> Result<Plan, UpstreamReason> {
        Ok(Plan { with_ties: true, ..plan(query)? })
    }
    for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let whole = values(ordered(scan(1, &[0, 1, 2]), descending, nulls_first));
        for (count, offset) in [(1, 0), (5, 30), (100, 0), (9_000, 0)] {
            let root = limit(ordered(scan(1, &[0, 1, 2]), descending, nulls_first), count, offset);
            let lines = run_as(with_ties, &snapshot_of_many(), root, &[Int4; 3], &Limits::default()).expect("answered");
            let end = ((count + offset) as usize).min(whole.len());
            let ties = whole[end..].iter().take_while(|value| **value == whole[end - 1]).count();
            assert_eq!(lines.len(), end + ties, "{descending} {nulls_first}, {count} from {offset}");
        }
    }
}
