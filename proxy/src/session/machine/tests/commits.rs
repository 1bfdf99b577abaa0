//! Who hears of what was committed, and when.

use super::*;

/// In a block that has written, with nothing outstanding.
fn written() -> Machine {
    let mut machine = probed(&Interner::default());
    for text in ["BEGIN", "UPDATE t SET a = 1"] {
        relayed(&mut machine, &sql(text));
        upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    }
    machine.take_events();
    machine
}

/// Whether somebody must hear of a write since this was asked last.
fn acknowledges(machine: &mut Machine) -> bool {
    machine.take_events().iter().any(|event| matches!(event, Event::WriteAcknowledged(..)))
}

/// After `COMMIT; BEGIN` the session is in a block: nobody heard of what had been committed.
#[test]
fn a_commit_is_told_of_whatever_follows_it() {
    let committed = message(b'C', b"COMMIT\0");
    let mut machine = written();
    relayed(&mut machine, &sql("COMMIT; BEGIN"));
    upstream_says(&mut machine, &[&committed[..8]]);
    assert!(!acknowledges(&mut machine), "the client has not got it either");
    upstream_says(&mut machine, &[&committed[8..]]);
    assert!(acknowledges(&mut machine));
    upstream_says(&mut machine, &[&message(b'C', b"BEGIN\0"), &ready(b'T')]);
    assert!(!acknowledges(&mut machine), "the next block has written nothing");
    relayed(&mut machine, &sql("COMMIT"));
    upstream_says(&mut machine, &[&committed, &ready(b'I')]);
    assert!(!acknowledges(&mut machine));
    // As extended messages up to one Sync.
    let step = |text: &str| [parse("", text), bind(""), execute()].concat();
    let done = |tag: &[u8]| [PARSE_COMPLETE, BIND_COMPLETE, &message(b'C', tag)].concat();
    let mut machine = probed(&Interner::default());
    let unit = ["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT", "BEGIN"].map(step).concat();
    relayed(&mut machine, &[unit, SYNC.to_vec()].concat());
    upstream_says(&mut machine, &[&done(b"BEGIN\0"), &done(b"INSERT 0 1\0")]);
    assert!(!acknowledges(&mut machine));
    upstream_says(&mut machine, &[&done(b"COMMIT\0")]);
    assert!(acknowledges(&mut machine));
    upstream_says(&mut machine, &[&done(b"BEGIN\0"), &ready(b'T')]);
    // Before the Sync is sent.
    let mut machine = written();
    relayed(&mut machine, &[step("COMMIT"), message(b'H', b"")].concat());
    upstream_says(&mut machine, &[&done(b"COMMIT\0")]);
    assert!(acknowledges(&mut machine));
    let mut machine = probed(&Interner::default());
    relayed(&mut machine, &[step("COMMIT PREPARED 'x'"), message(b'H', b"")].concat());
    upstream_says(&mut machine, &[&done(b"COMMIT PREPARED\0")]);
    assert!(acknowledges(&mut machine));
}

/// A commit that waited for a standby was in doubt when the session was ended, and nobody heard of it.
#[test]
fn what_may_be_committed_is_told_of_when_upstream_ends_the_session() {
    let fatal = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0");
    let mut machine = written();
    relayed(&mut machine, &sql("COMMIT"));
    upstream_says(&mut machine, &[&fatal]);
    assert!(acknowledges(&mut machine));
    // Without a word.
    let mut machine = probed(&Interner::default());
    relayed(&mut machine, &[parse("", "INSERT INTO t VALUES (1)"), bind(""), execute(), SYNC.to_vec()].concat());
    machine.note_end_of_session();
    assert!(acknowledges(&mut machine));
    let mut machine = written();
    upstream_says(&mut machine, &[&fatal]);
    assert!(!acknowledges(&mut machine), "rolled back");
    let mut machine = probed(&Interner::default());
    relayed(&mut machine, &sql("SELECT 1"));
    machine.note_end_of_session();
    assert!(!acknowledges(&mut machine), "it only reads");
}

/// A procedure commits by itself, long before the Sync, and may fail after that.
#[test]
fn what_an_execution_may_have_committed_is_told_of_with_its_reply() {
    let call = [parse("", "CALL p()"), bind(""), execute(), message(b'H', b"")].concat();
    for end in [message(b'C', b"CALL\0"), message(b'E', b"\0")] {
        let mut machine = probed(&Interner::default());
        relayed(&mut machine, &call);
        upstream_says(&mut machine, &[PARSE_COMPLETE, BIND_COMPLETE]);
        assert!(!acknowledges(&mut machine));
        upstream_says(&mut machine, &[&end]);
        assert!(acknowledges(&mut machine));
    }
}

/// Only an error of upstream's would bring the statements back that these replace.
#[test]
fn texts_that_wait_for_their_replies_are_bounded() {
    let mut machine = machine();
    let one = parse("", &"x".repeat(4_000));
    let all = one.repeat(2 * UNDO_BYTES_MAX / 4_000);
    let sent = relayed(&mut machine, &all);
    assert!(sent.len() < UNDO_BYTES_MAX / 10 * 11, "{}", sent.len());
    assert!(machine.undo_bytes <= UNDO_BYTES_MAX + one.len());
    assert!(sent.ends_with(FLUSH), "or upstream keeps its replies to itself");
    let mut left = all.len() + FLUSH.len() - sent.len();
    while left > 0 {
        let owed = machine.expected.len();
        upstream_says(&mut machine, &[&PARSE_COMPLETE.repeat(owed)]);
        let sent = relayed(&mut machine, b"");
        let flushes = usize::from(sent.ends_with(FLUSH)) * FLUSH.len();
        assert!(sent.len() > flushes);
        left -= sent.len() - flushes;
    }
}
