//! First copies that catch up with what the stream has brought meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::*;

/// The same transactions, all received while the table was copied.
fn check_catching_up(identity: ReplicaIdentity, transactions: &[Vec<Op>], at_once: usize) -> Result<(), TestCaseError> {
    let schema = schema(7, identity);
    let copied: Vec<Row> = (0..20).map(|id| Row { id, kind: id % 3, note: Some(format!("copied {id}")) }).collect();
    let mirror = Mirror::new(MirrorLimits::default());
    let mut assembler = Assembler::new(1 << 20);
    assembler.push_bytes(&describe(&schema)).expect("a relation");
    let id = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
    let mut model = copied.clone();
    // Too much for what is left to the last round.
    let long = Row { id: 100, kind: 0, note: Some("x".repeat(100_000)) };
    let mut changes = stream(&schema);
    changes.insert(&long);
    changes.delete(&long);
    mirror.apply(transaction(&mut assembler, 99, 1900, &changes.messages));
    // Received before the end, with something in them: an operation on a row that is not there, or is, does nothing.
    let mut put_together = 0;
    for (number, ops) in transactions.iter().enumerate() {
        let mut changes = stream(&schema);
        for op in ops {
            perform(op, &mut model, &mut changes);
        }
        put_together += usize::from(number < at_once && !changes.messages.is_empty());
        if number == at_once {
            mirror.finish_copy(id, copy(&schema, &copied), seen(99, &[]), Lsn(1000)).expect("copied");
            prop_assert!(mirror.statuses()[0].versions <= 2);
        }
        mirror.apply(transaction(&mut assembler, 100 + number as u32, 2000 + 100 * number as u64, &changes.messages));
    }
    if at_once >= transactions.len() {
        mirror.finish_copy(id, copy(&schema, &copied), seen(99, &[]), Lsn(1000)).expect("copied");
    }
    prop_assert_eq!(mirror.state(schema.id), Some(TableState::Mirrored));
    let visible = seen(100 + transactions.len() as u64, &[]);
    prop_assert_eq!(rows(&table(&mirror, &visible, 7).expect("all visible")), sorted(&model));
    prop_assert_eq!(rows(&table(&mirror, &seen(99, &[]), 7).expect("none visible")), sorted(&copied));
    // Who sees a part of what was put together is refused; there may be nothing but the first, of which nothing is left.
    match table(&mirror, &seen(100, &[]), 7) {
        Err(reason) => prop_assert_eq!((reason, put_together > 0), (UpstreamReason::NotAPrefix, true)),
        Ok(table) => prop_assert_eq!((rows(&table), put_together), (sorted(&copied), 0)),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_copy_catches_up_with_what_came_meanwhile(
        transactions in proptest::collection::vec(proptest::collection::vec(any_op(), 1..14), 1..16),
        at_once in 0..20usize,
        full: bool,
    ) {
        let identity = if full { ReplicaIdentity::Full } else { by_kind_and_id() };
        check_catching_up(identity, &transactions, at_once)?;
    }
}

/// Neither the stream nor anybody else waits for a copy to catch up.
#[test]
fn a_copy_catches_up_while_the_stream_goes_on() {
    const KEYS: i32 = 500;
    let schema = schema(7, by_id());
    let mirror = Mirror::new(MirrorLimits::default());
    let mut assembler = Assembler::new(1 << 20);
    assembler.push_bytes(&describe(&schema)).expect("a relation");
    let id = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
    let rows_then = |turn: i32| (0..KEYS).map(|id| Row { id, kind: turn, note: None }).collect::<Vec<_>>();
    let mut number = 0;
    let mut update = || {
        let (id, turn) = (number % KEYS, number / KEYS);
        let mut changes = stream(&schema);
        let row = |kind| Row { id, kind, note: None };
        changes.update(&row(turn), &row(turn + 1), false);
        number += 1;
        let number = number as u32;
        mirror.apply(transaction(&mut assembler, 100 + number, 2000 + 100 * u64::from(number), &changes.messages));
        number
    };
    (0..40 * KEYS).for_each(|_| _ = update());
    let is_done = AtomicBool::new(false);
    let (finished, waited) = std::thread::scope(|scope| {
        let finishing = scope.spawn(|| {
            let begun = Instant::now();
            mirror.finish_copy(id, copy(&schema, &rows_then(0)), seen(100, &[]), Lsn(1000)).expect("copied");
            is_done.store(true, Ordering::SeqCst);
            begun.elapsed()
        });
        let mut waited = Duration::ZERO;
        while !is_done.load(Ordering::SeqCst) {
            let begun = Instant::now();
            update();
            waited = waited.max(begun.elapsed());
        }
        (finishing.join().expect("no panic"), waited)
    });
    assert!(waited * 2 < finished, "the stream stood still for {waited:?} of {finished:?}");
    assert!(mirror.statuses()[0].versions < 1_000, "{} versions", mirror.statuses()[0].versions);
    while !update().is_multiple_of(KEYS as u32) {}
    let last = update() - 1;
    let turn = last as i32 / KEYS;
    let visible = seen(u64::from(100 + last + 1), &[]);
    assert_eq!(rows(&table(&mirror, &visible, 7).expect("mirrored")), rows_then(turn));
}

/// What was taken out of the buffer is of no use once the copy is not wanted any more.
#[test]
fn a_copy_given_up_is_not_put_in_place() {
    let schema = schema(7, by_id());
    let mirror = Mirror::new(MirrorLimits::default());
    let given_up = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
    drop(mirror.give_up(given_up));
    assert_eq!(mirror.state(schema.id), None);
    assert!(mirror.finish_copy(given_up, copy(&schema, &[]), seen(100, &[]), Lsn(1000)).is_err());
    let next = mirror.start_copy(Arc::clone(&schema)).expect("admitted");
    drop(mirror.give_up(given_up));
    mirror.finish_copy(next, copy(&schema, &[]), seen(100, &[]), Lsn(1000)).expect("not the one that was given up");
    drop(mirror.give_up(given_up));
    assert_eq!(mirror.state(schema.id), Some(TableState::Mirrored));
    drop(mirror.give_up(next));
    assert_eq!(mirror.state(schema.id), None);
}
