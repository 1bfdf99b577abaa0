//! Replies whose first rows are sent before all are made.

use std::sync::Arc;

use super::*;
use crate::session::answer::early::EarlyPiece;

/// Five pieces of rows.
fn long_reply() -> Reply {
    let rows = (0..5).map(|n| message(b'D', &[0, 1, 0, 0, 0, 1, b'0' + n]).into()).chain([complete().into()]);
    Reply { rows: rows.collect(), ..reply() }
}

fn begin(machine: &mut Machine, reply: &Reply, pieces: usize) {
    let head = Arc::new(Reply { rows: Vec::new(), ..reply.clone() });
    for rows in &reply.rows[..pieces] {
        machine.begin_answer(&EarlyPiece { head: Arc::clone(&head), rows: rows.clone() });
    }
}

fn units() -> Vec<Vec<u8>> {
    vec![
        sql("SELECT 1"),
        [parse("", "SELECT 1"), bind(""), execute(), SYNC.to_vec()].concat(),
        [
            parse("", "SELECT 1"),
            message(b'D', b"S\0"),
            bind(""),
            message(b'D', b"P\0"),
            execute(),
            message(b'C', b"P\0"),
            SYNC.to_vec(),
        ]
        .concat(),
    ]
}

fn decided(unit: &[u8]) -> Machine {
    let mut machine = machine();
    machine.receive_client(unit);
    assert_eq!(machine.advance(), Step::Decide);
    machine
}

#[test]
fn a_reply_that_has_begun_is_the_same_in_the_end() {
    for unit in units() {
        let whole = {
            let mut machine = decided(&unit);
            machine.answer_locally(&long_reply());
            machine.to_client.take()
        };
        for pieces in 0..=5 {
            let mut machine = decided(&unit);
            begin(&mut machine, &long_reply(), pieces);
            assert_eq!(machine.has_begun_answer(), pieces > 0);
            let begun = machine.to_client.take();
            assert_eq!(tags(&begun).matches('D').count(), pieces);
            machine.answer_locally(&long_reply());
            assert_eq!([begun, machine.to_client.take()].concat(), whole, "{pieces}");
            assert!(!machine.has_begun_answer());
            // The next one begins anew.
            assert_eq!(tags(&answered(&mut machine, &sql("SELECT 2"))), "TCZ");
        }
    }
}

#[test]
fn a_reply_that_has_begun_may_end_with_an_error() {
    for unit in units() {
        let mut machine = decided(&unit);
        begin(&mut machine, &long_reply(), 2);
        let begun = tags(&machine.to_client.take());
        assert!(begun.ends_with("TDD") || begun == "12DD", "{begun}");
        machine.cancel_locally();
        assert_eq!(tags(&machine.to_client.take()), "EZ");
        assert!(!machine.has_begun_answer());
        assert_eq!(tags(&answered(&mut machine, &sql("SELECT 2"))), "TCZ");
    }
}
