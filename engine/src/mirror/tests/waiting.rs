//! Small transactions that wait until somebody reads.

use super::*;

/// A table without rows, and as many transactions of one new row each.
fn inserted(count: u32) -> (Mirror, Assembler) {
    let schema = schema(7, by_id());
    let (mirror, mut assembler) = mirror_of(&schema, &[]);
    (0..count).for_each(|number| insert(&mirror, &mut assembler, number));
    (mirror, assembler)
}

/// Transaction 100 + `number` inserts the row of that number.
fn insert(mirror: &Mirror, assembler: &mut Assembler, number: u32) {
    let schema = schema(7, by_id());
    let mut changes = stream(&schema);
    changes.insert(&row(number as i32, "small"));
    mirror.apply(transaction(assembler, 100 + number, 2000 + 100 * u64::from(number), &changes.messages));
}

/// As it is after so many transactions.
fn after_of(mirror: &Mirror, transactions: u64) -> Result<usize, UpstreamReason> {
    table(mirror, &seen(100 + transactions, &[]), 7).map(|version| rows(&version).len())
}

#[test]
fn what_a_reader_sees_becomes_one_version_and_the_rest_waits() {
    let (mirror, _) = inserted(20);
    // The first has told what the rows are like, and is a version of its own.
    assert_eq!(mirror.statuses()[0].versions, 2);
    assert!(mirror.pending_after(&seen(119, &[])) && !mirror.pending_after(&seen(120, &[])));
    assert_eq!(after_of(&mirror, 10), Ok(10));
    assert_eq!(mirror.statuses()[0].versions, 3);
    assert_eq!(after_of(&mirror, 5), Err(UpstreamReason::NotAPrefix), "an older moment than one that was asked for");
    assert_eq!(after_of(&mirror, 10), Ok(10));
    assert_eq!(table(&mirror, &seen(120, &[115]), 7).map(drop), Err(UpstreamReason::NotAPrefix));
    assert_eq!(mirror.statuses()[0].versions, 4, "what comes before the one that is not seen may be put together");
    assert_eq!(after_of(&mirror, 20), Ok(20));
    mirror.retire(&seen(120, &[]));
    assert_eq!((mirror.statuses()[0].versions, after_of(&mirror, 20)), (1, Ok(20)));
}

#[test]
fn what_waits_is_newer_than_what_was_shown() {
    let (mirror, mut assembler) = inserted(3);
    let relations = [RelationId(7)];
    let shown = snapshot(&mirror, &seen(103, &[]), &[7]).expect("all of it");
    assert!(mirror.is_newest(&shown, &relations));
    insert(&mirror, &mut assembler, 3);
    assert_eq!(mirror.applied(), Lsn(2000 + 300 + 8));
    assert!(!mirror.is_newest(&shown, &relations), "a commit has been received that it does not show");
    let changes = |mirror: &Mirror, shown: &Snapshot| {
        let since = shown.generation(RelationId(7)).expect("known");
        mirror.changes_between(RelationId(7), since, Generation(Lsn(u64::MAX))).expect("all known").len()
    };
    assert_eq!(changes(&mirror, &shown), 0);
    let now = snapshot(&mirror, &seen(104, &[]), &[7]).expect("all of it");
    assert!(mirror.is_newest(&now, &relations) && !mirror.is_newest(&shown, &relations));
    assert_eq!((changes(&mirror, &shown), changes(&mirror, &now)), (1, 0));
    assert_eq!(now.generation(RelationId(7)), Some(Generation(Lsn(2300))));
}

#[test]
fn without_readers_the_older_half_is_put_together() {
    const COUNT: u32 = 5_000;
    let (mirror, _) = inserted(COUNT);
    let status = &mirror.statuses()[0];
    assert!(status.versions < 12, "{} versions", status.versions);
    assert!(status.rows >= 3_900, "{} rows", status.rows);
    // A moment that a barrier under way may show.
    assert_eq!(after_of(&mirror, u64::from(COUNT) - 400), Ok(COUNT as usize - 400));
    assert_eq!(after_of(&mirror, u64::from(COUNT)), Ok(COUNT as usize));
    for id in [0, 1, 511, 512, 4_999] {
        let head = table(&mirror, &seen(100 + u64::from(COUNT), &[]), 7).expect("the newest");
        assert_eq!(head.find(&[0], &[Value::Int4(id)]).len(), 1);
    }
}

#[test]
fn what_waits_counts_against_the_cap() {
    let schema = schema(7, by_id());
    let (mirror, mut assembler) = mirror_of(&schema, &[]);
    insert(&mirror, &mut assembler, 0);
    let before = mirror.bytes();
    let mut changes = stream(&schema);
    changes.insert(&row(1, &"x".repeat(10_000)));
    mirror.apply(transaction(&mut assembler, 101, 2100, &changes.messages));
    assert!(mirror.bytes() > before + 10_000);
    let limits = MirrorLimits { bytes_max: before + 200_000, ..MirrorLimits::default() };
    let mirror = Mirror::new(limits);
    copy_in(&mirror, &schema, &[], seen(100, &[])).expect("copied");
    for number in 0..40u32 {
        let mut changes = stream(&schema);
        changes.insert(&row(number as i32, &"x".repeat(10_000)));
        mirror.apply(transaction(&mut assembler, 100 + number, 2000 + 100 * u64::from(number), &changes.messages));
        assert!(mirror.bytes() < before + 300_000);
    }
    assert_eq!(mirror.state(schema.id), Some(TableState::Tracked(TrackedBecause::LacksRoom)));
    let known = catalog(&mirror);
    let at = |xmax| mirror.snapshot_at(&seen(xmax, &[]), Lsn(0), &[schema.id], &known).expect("tracked");
    assert_eq!(at(140).generation(schema.id), Some(Generation(Lsn(5900))));
    assert!(at(139).generation(schema.id) < at(140).generation(schema.id));
}

#[test]
fn a_table_that_gives_up_its_rows_keeps_the_generations_of_what_waits() {
    let (mirror, _) = inserted(6);
    drop(mirror.demote(&[RelationId(7)], &TrackedBecause::LacksRoom));
    let known = catalog(&mirror);
    let at = |xmax| mirror.snapshot_at(&seen(xmax, &[]), Lsn(0), &[RelationId(7)], &known).expect("tracked");
    for number in 1..6 {
        let generation = at(101 + number).generation(RelationId(7));
        assert_eq!(generation, Some(Generation(Lsn(2000 + 100 * number))));
    }
}

#[test]
fn what_contradicts_the_rows_is_found_before_anybody_reads_it() {
    let (mirror, mut assembler) = inserted(3);
    assert_eq!(after_of(&mirror, 3), Ok(3));
    let schema = schema(7, by_id());
    let mut changes = stream(&schema);
    changes.insert(&row(1, "once more"));
    mirror.apply(transaction(&mut assembler, 103, 2300, &changes.messages));
    assert_eq!(mirror.state(schema.id), Some(TableState::Mirrored));
    assert!(after_of(&mirror, 4).is_err());
    let why = "an inserted key is already in the mirror";
    assert_eq!(mirror.state(schema.id), Some(TableState::Poisoned(why.into())));
}

#[test]
fn a_large_transaction_comes_behind_what_waits() {
    let (mirror, mut assembler) = inserted(30);
    let schema = schema(7, by_id());
    let mut changes = stream(&schema);
    (100..300).for_each(|id| changes.insert(&row(id, "large")));
    mirror.apply(transaction(&mut assembler, 130, 5000, &changes.messages));
    insert(&mirror, &mut assembler, 31);
    // The newest of those before it are to be had one by one still.
    for number in 20..=30 {
        assert_eq!(after_of(&mirror, number), Ok(number as usize));
    }
    assert_eq!(after_of(&mirror, 31), Ok(230));
    assert_eq!(after_of(&mirror, 32), Ok(231));
}

#[test]
fn a_moment_does_not_wait_for_a_large_transaction() {
    let (mirror, _) = inserted(5);
    let writer = mirror.hold_writer();
    assert_eq!(after_of(&mirror, 5), Err(UpstreamReason::NotAPrefix));
    drop(writer);
    assert_eq!(after_of(&mirror, 5), Ok(5));
}
