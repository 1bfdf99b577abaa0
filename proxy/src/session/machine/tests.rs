//! The state machine by itself: scripts of both sides' bytes, in legal and random orders.

mod begun;
mod commits;
mod portals;

use freshet_config::FreshnessMode;
use proptest::prelude::*;

use super::*;
use crate::session::answer::{Form, Reply};
use crate::session::settings::Interner;
use crate::session::state::{Isolation, Login, Transaction};
use crate::wire::extended::*;
use crate::wire::frame::{Frames, write_frame};
use crate::wire::query::*;

const LIMITS: MachineLimits = MachineLimits {
    statement_bytes_max: 4096,
    group_bytes_max: 4096,
    prepared_statements_max: 100,
    answers_locally: true,
    tells_keys: true,
    schema: "freshet",
};

fn machine() -> Machine {
    Machine::new(SessionState::new(Login::default(), FreshnessMode::Exact), LIMITS, None)
}

pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, tag, |out| out.extend_from_slice(body));
    out
}

pub(super) fn sql(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

pub(super) fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

fn bind(statement: &str) -> Vec<u8> {
    message(b'B', format!("\0{statement}\0\0\0\0\0\0\0").as_bytes())
}

fn execute() -> Vec<u8> {
    message(b'E', b"\0\0\0\0\0")
}

pub(super) fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

pub(super) fn complete() -> Vec<u8> {
    message(b'C', b"SELECT 1\0")
}

fn reply() -> Reply {
    Reply {
        parameters: message(b't', b"\0\0").into(),
        statement_columns: message(b'T', b"\0\0").into(),
        columns: message(b'T', b"\0\0").into(),
        rows: vec![complete().into()],
        ..Reply::default()
    }
}

pub(super) fn tags(bytes: &[u8]) -> String {
    Frames::new(bytes).map(|frame| char::from(frame.tag)).collect()
}

/// Feeds a unit and lets it go upstream; what went there.
fn relayed(machine: &mut Machine, bytes: &[u8]) -> Vec<u8> {
    machine.receive_client(bytes);
    while machine.advance() == Step::Decide {
        machine.relay_unit(None);
    }
    machine.to_upstream.take()
}

/// Feeds a unit and answers it locally; what the client got.
fn answered(machine: &mut Machine, bytes: &[u8]) -> Vec<u8> {
    machine.receive_client(bytes);
    assert_eq!(machine.advance(), Step::Decide);
    machine.answer_locally(&reply());
    assert_eq!(machine.advance(), Step::Wait);
    assert!(machine.to_upstream.is_empty());
    machine.to_client.take()
}

pub(super) fn upstream_says(machine: &mut Machine, pieces: &[&[u8]]) -> Vec<u8> {
    assert!(machine.receive_upstream(&pieces.concat()));
    machine.to_client.take()
}

#[test]
fn what_is_relayed_is_unchanged_in_both_directions() {
    let mut machine = machine();
    let unit = [parse("", "SELECT 1"), bind(""), message(b'D', b"P\0"), execute(), SYNC.to_vec()].concat();
    assert_eq!(relayed(&mut machine, &unit), unit);
    assert!(!machine.is_settled());
    let replies = [PARSE_COMPLETE, BIND_COMPLETE, &message(b'T', b"\0\0"), &complete(), &ready(b'I')].concat();
    // Byte by byte: frames are put together again, and every byte comes out.
    for byte in &replies {
        assert!(machine.receive_upstream(&[*byte]));
    }
    assert_eq!(machine.to_client.take(), replies);
    assert!(machine.is_settled());
    assert!(matches!(machine.take_events().as_slice(), [Event::Relayed(Relayed { has_error: false, .. })]));
}

#[test]
fn a_unit_is_held_until_its_sync_and_no_longer_than_asked() {
    let mut machine = machine();
    machine.receive_client(&parse("", "SELECT 1"));
    assert_eq!(machine.advance(), Step::Held);
    assert!(machine.to_upstream.is_empty());
    machine.release();
    assert_eq!(machine.to_upstream.take(), parse("", "SELECT 1"));
    // The rest of the unit must follow its beginning.
    let rest = [bind(""), execute(), SYNC.to_vec()].concat();
    assert_eq!(relayed(&mut machine, &rest), rest);
}

#[test]
fn a_flush_sends_what_is_held() {
    let mut machine = machine();
    let group = [parse("s", "SELECT 1"), message(b'D', b"Ss\0"), message(b'H', b"")].concat();
    assert_eq!(relayed(&mut machine, &group), group);
    upstream_says(&mut machine, &[PARSE_COMPLETE, &message(b't', b"\0\0"), &message(b'T', b"\0\0")]);
    assert!(!machine.is_settled(), "the transaction is open until the Sync");
    let rest = [bind("s"), execute(), SYNC.to_vec()].concat();
    assert_eq!(relayed(&mut machine, &rest), rest);
    upstream_says(&mut machine, &[BIND_COMPLETE, &complete(), &ready(b'I')]);
    assert!(machine.is_settled());
    // Now it is a statement that upstream has, and a unit of its own.
    machine.receive_client(&rest);
    assert_eq!(machine.advance(), Step::Decide);
    let unit = machine.unit().expect("answerable");
    assert_eq!((unit.form, unit.sql, unit.prepared.is_some()), (Form::Execute, &b"SELECT 1"[..], true));
}

#[test]
fn local_answers_have_every_reply_in_order() {
    let mut machine = machine();
    assert_eq!(tags(&answered(&mut machine, &sql("SELECT 1"))), "TCZ");
    let unit = [parse("", "SELECT 1"), message(b'D', b"S\0"), bind(""), message(b'D', b"P\0"), execute()];
    let unit = [unit.concat(), message(b'C', b"P\0"), SYNC.to_vec()].concat();
    assert_eq!(tags(&answered(&mut machine, &unit)), "1tT2TC3Z");
    assert_eq!(tags(&answered(&mut machine, &[bind(""), execute(), SYNC.to_vec()].concat())), "2CZ");
}

#[test]
fn a_locally_parsed_statement_reaches_upstream_before_its_bind() {
    let mut machine = machine();
    let unit = [parse("", "SELECT 7"), bind(""), execute(), SYNC.to_vec()].concat();
    answered(&mut machine, &unit);
    let again = [bind(""), execute(), SYNC.to_vec()].concat();
    assert_eq!(relayed(&mut machine, &again), [parse("", "SELECT 7"), again.clone()].concat());
    let got = upstream_says(&mut machine, &[PARSE_COMPLETE, BIND_COMPLETE, &complete(), &ready(b'I')]);
    assert_eq!(tags(&got), "2CZ", "the reply to freshet's own Parse is swallowed");
    assert!(machine.is_settled());
    assert_eq!(relayed(&mut machine, &again), again, "once is enough");
}

#[test]
fn a_local_simple_query_destroys_the_unnamed_statement_upstream_too() {
    let mut machine = machine();
    relayed(&mut machine, &[parse("", "SELECT 1"), SYNC.to_vec()].concat());
    upstream_says(&mut machine, &[PARSE_COMPLETE, &ready(b'I')]);
    answered(&mut machine, &sql("SELECT 2"));
    let unit = [bind(""), execute(), SYNC.to_vec()].concat();
    assert_eq!(tags(&relayed(&mut machine, &unit)), "CBES");
    let error = message(b'E', b"SERROR\0\0");
    assert_eq!(tags(&upstream_says(&mut machine, &[CLOSE_COMPLETE, &error, &ready(b'I')])), "EZ");
    assert!(machine.is_settled());
}

#[test]
fn after_an_error_everything_up_to_the_sync_is_skipped() {
    let mut machine = machine();
    let unit = [parse("a", "SELECT x"), parse("b", "SELECT 1"), bind("b"), execute(), SYNC.to_vec()].concat();
    relayed(&mut machine, &unit);
    let next = sql("SELECT 2");
    relayed(&mut machine, &next);
    upstream_says(&mut machine, &[&message(b'E', b"\0"), &ready(b'I')]);
    assert!(!machine.is_settled());
    upstream_says(&mut machine, &[&message(b'T', b"\0\0"), &complete(), &ready(b'I')]);
    assert!(machine.is_settled());
    machine.receive_client(&[bind("b"), execute(), SYNC.to_vec()].concat());
    assert_eq!(machine.advance(), Step::Decide);
    assert!(machine.unit().is_err(), "neither statement came to be");
}

#[test]
fn an_error_before_the_sync_is_sent_ignores_a_query_too() {
    let mut machine = machine();
    let group = [parse("", "SELECT x"), message(b'H', b"")].concat();
    relayed(&mut machine, &group);
    upstream_says(&mut machine, &[&message(b'E', b"\0")]);
    relayed(&mut machine, &sql("SELECT 1"));
    relayed(&mut machine, SYNC);
    upstream_says(&mut machine, &[&ready(b'I')]);
    assert!(machine.is_settled(), "one ReadyForQuery is all that comes");
}

/// Feeds bytes while what is owed allows it, and has upstream answer each time with as many of `reply` as are owed.
fn sent_by_turns(machine: &mut Machine, reply: &[u8]) -> usize {
    let mut sent = 0;
    while !machine.expected.is_empty() {
        assert!(machine.expected.len() <= OWED_MAX, "{}", machine.expected.len());
        let owed = machine.expected.len();
        upstream_says(machine, &[&reply.repeat(owed)]);
        sent += relayed(machine, b"").len();
    }
    sent
}

#[test]
fn who_is_too_far_ahead_of_upstream_waits_for_it() {
    let mut machine = machine();
    relayed(&mut machine, &sql("SELECT pg_sleep(60)"));
    let syncs = SYNC.repeat(3 * OWED_MAX);
    assert_eq!(relayed(&mut machine, &syncs).len(), (OWED_MAX - 1) * SYNC.len());
    assert!(machine.owes_too_much());
    // Nor is the rest sent unread at the end of the client's stream.
    machine.client_closed();
    assert_eq!(relayed(&mut machine, b""), b"");
    upstream_says(&mut machine, &[&message(b'T', b"\0\0"), &complete(), &ready(b'I')]);
    assert_eq!(relayed(&mut machine, b""), SYNC);
    let rest = sent_by_turns(&mut machine, &ready(b'I'));
    assert_eq!(rest + OWED_MAX * SYNC.len(), syncs.len());
    assert!(machine.is_settled() && machine.lost().is_none());
    assert!(machine.expected.capacity() < OWED_MAX, "what room there was is given back");
}

#[test]
fn replies_without_a_sync_let_more_be_sent() {
    let mut machine = machine();
    let pair = [bind("s"), execute()].concat();
    let pairs = pair.repeat(OWED_MAX);
    assert_eq!(relayed(&mut machine, &pairs).len(), pairs.len() / 2);
    let answers = [BIND_COMPLETE, &complete()].concat();
    upstream_says(&mut machine, &[&answers.repeat(100)]);
    assert_eq!(relayed(&mut machine, b"").len(), pair.len() * 100);
    // Upstream skips the rest, and owes nothing for it.
    upstream_says(&mut machine, &[&message(b'E', b"\0")]);
    assert_eq!(relayed(&mut machine, b"").len(), pair.len() * (OWED_MAX / 2 - 100));
    assert!(machine.expected.is_empty());
    relayed(&mut machine, SYNC);
    upstream_says(&mut machine, &[&ready(b'I')]);
    assert!(machine.is_settled() && machine.lost().is_none());
}

#[test]
fn ends_of_copies_are_not_waited_for() {
    let mut machine = machine();
    relayed(&mut machine, &sql("COPY t FROM STDIN"));
    let ends = message(b'c', b"").repeat(OWED_MAX);
    assert_eq!(relayed(&mut machine, &ends), ends);
    assert!(!machine.owes_too_much() && machine.lost().is_none());
    upstream_says(&mut machine, &[&message(b'G', b"\0\0\0"), &complete(), &ready(b'I')]);
    assert!(machine.is_settled());
    relayed(&mut machine, &sql("COPY t FROM STDIN"));
    assert_eq!(relayed(&mut machine, &[&ends[..], &ends].concat()).len(), 2 * ends.len());
    assert_eq!(machine.lost(), Some("too many ends of COPY"));
    assert!(machine.expected.len() <= OWED_MAX + 1);
}

#[test]
fn syncs_during_copy_in_are_not_answered() {
    let mut machine = machine();
    let unit = [parse("", "COPY t FROM STDIN"), bind(""), execute(), SYNC.to_vec()].concat();
    relayed(&mut machine, &unit);
    upstream_says(&mut machine, &[PARSE_COMPLETE, BIND_COMPLETE, &message(b'G', b"\0\0\0")]);
    let data = [message(b'd', b"1\n"), message(b'c', b"")].concat();
    assert_eq!(relayed(&mut machine, &data), data);
    assert!(!machine.is_settled());
    relayed(&mut machine, SYNC);
    upstream_says(&mut machine, &[&complete(), &ready(b'I')]);
    assert!(machine.is_settled());
    assert!(machine.lost().is_none());
}

#[test]
fn a_copy_by_simple_query_ends_with_its_ready() {
    let mut machine = machine();
    relayed(&mut machine, &sql("COPY t FROM STDIN"));
    // The whole COPY sent ahead of upstream's answer.
    relayed(&mut machine, &[message(b'd', b"1\n"), message(b'c', b"")].concat());
    upstream_says(&mut machine, &[&message(b'G', b"\0\0\0"), &complete(), &ready(b'I')]);
    assert!(machine.is_settled());
    let events = machine.take_events();
    assert!(events.iter().any(|event| matches!(event, Event::WriteAcknowledged(Effect::Write, _))), "{events:?}");
}

#[test]
fn large_frames_pass_without_being_held() {
    let mut machine = machine();
    let large = sql(&format!("SELECT '{}'", "x".repeat(10_000)));
    machine.receive_client(&large[..5000]);
    assert_eq!(machine.advance(), Step::Wait);
    assert_eq!(machine.to_upstream.take(), large[..5000]);
    machine.receive_client(&large[5000..]);
    assert_eq!(machine.to_upstream.take(), large[5000..]);
    let row = message(b'D', &vec![b'y'; 100_000]);
    assert!(machine.receive_upstream(&row[..50_000]));
    assert_eq!(machine.to_client.take(), row[..50_000]);
    assert!(!machine.is_settled());
    let got = upstream_says(&mut machine, &[&row[50_000..], &complete(), &ready(b'I')]);
    assert_eq!(got.len(), 50_005 + complete().len() + 6);
    assert!(machine.is_settled());
}

#[test]
fn asynchronous_messages_stay_between_local_answers() {
    let mut machine = machine();
    let notification = message(b'A', b"\0\0\0\x01channel\0payload\0");
    assert!(machine.receive_upstream(&notification[..10]));
    machine.receive_client(&sql("SELECT 1"));
    assert_eq!(machine.advance(), Step::Wait, "half a message is on its way to the client");
    assert_eq!(relayed(&mut machine, b""), sql("SELECT 1"));
    assert!(machine.receive_upstream(&notification[10..]));
    assert_eq!(machine.to_client.take(), notification);
}

#[test]
fn the_probe_is_invisible_and_its_failure_too() {
    let settings = |machine: &mut Machine| {
        machine.receive_client(&sql("SELECT 1"));
        assert_eq!(machine.advance(), Step::Decide);
        machine.probe();
        assert_eq!(machine.advance(), Step::Wait);
        assert_eq!(tags(&machine.to_upstream.take()), "PBECCS");
    };
    let mut machine = machine();
    settings(&mut machine);
    let mut row = Vec::new();
    write_data_row(&mut row, 1, |out| write_value(out, Some(b"[]")));
    let pieces: [&[u8]; 8] =
        [PARSE_COMPLETE, BIND_COMPLETE, &row, &complete(), CLOSE_COMPLETE, CLOSE_COMPLETE, &ready(b'I'), b""];
    assert_eq!(upstream_says(&mut machine, &pieces), b"");
    assert!(matches!(machine.take_events().as_slice(), [Event::Probed(Err(None))]));
    assert_eq!(machine.advance(), Step::Decide, "the unit is looked at again");
    machine.relay_unit(None);
    upstream_says(&mut machine, &[&complete(), &ready(b'I')]);
    machine.to_upstream.take();
    machine.take_events();
    settings(&mut machine);
    assert_eq!(upstream_says(&mut machine, &[&message(b'E', b"SERROR\0\0"), &ready(b'I')]), b"");
    assert!(matches!(machine.take_events().as_slice(), [Event::Probed(Err(Some(error)))] if **error == *b"SERROR\0\0"));
}

const CANCEL: &[u8] = b"SERROR\0VERROR\0C57014\0Mcanceling statement due to user request\0\0";

#[test]
fn a_probe_that_is_cancelled_ends_the_unit_that_waits_for_it() {
    for (status, unit, expected) in [
        (b'I', sql("SELECT 1"), "EZ"),
        (b'E', sql("SELECT 1"), "EZ"),
        (b'I', [parse("", "SELECT 1"), bind(""), execute(), SYNC.to_vec()].concat(), "EZ"),
        (b'I', [parse("s", "SELECT 1"), message(b'H', b"")].concat(), "E"),
    ] {
        let mut machine = machine();
        machine.receive_client(&unit);
        assert_eq!(machine.advance(), Step::Decide);
        machine.probe();
        let error = message(b'E', CANCEL);
        assert_eq!(upstream_says(&mut machine, &[&error, &ready(status)]), b"");
        let events = machine.take_events();
        let [Event::Probed(Err(Some(body)))] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(machine.advance(), Step::Decide);
        machine.fail_unread(body);
        let got = machine.to_client.take();
        assert_eq!(tags(&got), expected);
        assert!(got.starts_with(&error), "upstream's own words");
        assert_eq!(got.last() == Some(&status), expected == "EZ");
        machine.to_upstream.take();
        if expected == "E" {
            assert_eq!(tags(&relayed(&mut machine, &[execute(), SYNC.to_vec()].concat())), "");
            assert_eq!(machine.to_client.take(), ready(b'I'));
        }
        assert!(machine.is_settled());
        assert!(machine.prepared(b"s").is_none(), "its Parse failed");
    }
}

#[test]
fn the_end_of_the_session_is_told_even_while_freshet_asks() {
    let fatal = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0");
    let mut probing = machine();
    probing.probe();
    assert_eq!(upstream_says(&mut probing, &[&fatal]), fatal);
    let mut preparing = machine();
    group(&mut preparing, &[parse("s", "SELECT 1"), SYNC.to_vec()].concat(), vec![group::Answer::None]);
    assert_eq!(upstream_says(&mut preparing, &[&fatal]), fatal);
}

/// Answers a group locally; what goes upstream behind the answer.
pub(super) fn group(machine: &mut Machine, bytes: &[u8], answers: Vec<group::Answer>) -> Vec<u8> {
    machine.receive_client(bytes);
    assert_eq!(machine.advance(), Step::Decide);
    let group = machine.group(bytes).expect("answerable");
    machine.answer_group(group, answers);
    machine.to_client.take();
    machine.to_upstream.take()
}

pub(super) fn controlled(machine: &mut Machine, text: &str) -> Vec<u8> {
    let control = crate::session::control::read(text.as_bytes()).expect("control");
    group(machine, &sql(text), vec![group::Answer::Control(control)])
}

#[test]
fn control_that_is_cancelled_behind_its_answer_is_sent_again() {
    let error = message(b'E', CANCEL);
    let interner = Interner::default();
    let mut machine = probed(&interner);
    assert_eq!(controlled(&mut machine, "BEGIN"), sql("BEGIN"));
    assert_eq!(upstream_says(&mut machine, &[&error, &ready(b'I')]), b"");
    // Before that, what it may have left.
    let closing = |machine: &mut Machine| {
        let sent = machine.to_upstream.take();
        assert_eq!(tags(&sent), "CCSQ");
        assert!(machine.receive_upstream(&[CLOSE_COMPLETE, CLOSE_COMPLETE, &ready(b'I')].concat()));
        sent[sent.len() - sql("BEGIN").len()..].to_vec()
    };
    assert_eq!(closing(&mut machine), sql("BEGIN"));
    assert_eq!(upstream_says(&mut machine, &[&complete(), &ready(b'T')]), b"");
    // A block in which upstream was asked nothing has failed by the cancelled COMMIT, and ends all the same.
    assert_eq!(controlled(&mut machine, "COMMIT"), sql("COMMIT"));
    assert_eq!(upstream_says(&mut machine, &[&error, &ready(b'E')]), b"");
    assert!(closing(&mut machine).ends_with(b"COMMIT\0"));
    assert_eq!(upstream_says(&mut machine, &[&complete(), &ready(b'I')]), b"");
    assert_eq!(machine.state.status, TransactionStatus::Idle);
    assert!(machine.take_events().is_empty());
}

#[test]
fn a_block_that_failed_behind_an_answer_has_failed_for_the_client() {
    let mut machine = probed(&Interner::default());
    controlled(&mut machine, "BEGIN");
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    controlled(&mut machine, "SAVEPOINT a");
    assert_eq!(upstream_says(&mut machine, &[&message(b'E', CANCEL), &ready(b'E')]), b"");
    assert_eq!(machine.state.status, TransactionStatus::Failed);
    assert!(matches!(machine.take_events().as_slice(), [Event::BlockFailed(error)] if **error == *CANCEL));
    assert_eq!(tags(&machine.to_upstream.take()), "CCS");
    // Another error than a cancelled one contradicts what the client was told.
    let mut machine = probed(&Interner::default());
    controlled(&mut machine, "BEGIN");
    assert!(!machine.receive_upstream(&[message(b'E', b"SERROR\0C42601\0\0"), ready(b'I')].concat()));
}

/// DataRows of one column of this type, and their description.
fn rows_of(type_oid: u32, count: usize) -> Reply {
    let mut columns = Vec::new();
    let field = Field { name: b"v", table_oid: 16_384, attnum: 1, type_oid, type_length: 4, typmod: -1, format: 0 };
    write_row_description(&mut columns, [field].into_iter());
    let mut rows = Vec::new();
    for row in 0..count {
        write_data_row(&mut rows, 1, |out| write_value(out, Some(row.to_string().as_bytes())));
    }
    rows.extend(complete());
    Reply { columns: columns.into(), rows: vec![rows.into()], ..Reply::default() }
}

const INT4: u32 = 23;

/// In a block, with a portal `C_1` that two rows were fetched from.
fn fetching(type_oid: u32) -> Machine {
    bound(type_oid, &[message(b'E', b"C_1\0\0\0\0\x02")])
}

/// In a block, with a portal `C_1` and these messages behind its Bind.
fn bound(type_oid: u32, behind: &[Vec<u8>]) -> Machine {
    let mut machine = probed(&Interner::default());
    controlled(&mut machine, "BEGIN");
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    let unit = [
        parse("", "SELECT v FROM q WHERE NOT done ORDER BY v"),
        message(b'B', b"C_1\0\0\0\0\0\0\0\0"),
        behind.concat(),
        SYNC.to_vec(),
    ];
    let mut answers = vec![group::Answer::None, group::Answer::Reply(rows_of(type_oid, 5))];
    answers.extend(behind.iter().map(|_| group::Answer::None));
    assert_eq!(group(&mut machine, &unit.concat(), answers), b"");
    machine
}

/// A fetch loop that wrote between its fetches lost rows: any text that was not known made upstream run the query again, over what
/// the block had written, and skip as many rows as had been fetched.
#[test]
fn a_portal_stays_as_it_was_bound_unless_a_text_needs_it_upstream() {
    let mut machine = fetching(INT4);
    for text in [
        "UPDATE q SET done = true WHERE v < 2",
        "DO $$ BEGIN END $$",
        "SELECT f(1)",
        "CREATE TABLE other (a int)",
        "DROP TABLE other",
        "SELECT closed FROM small",
    ] {
        assert_eq!(relayed(&mut machine, &sql(text)), sql(text), "{text}");
        upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    }
    let next = [message(b'E', b"C_1\0\0\0\0\x02"), SYNC.to_vec()].concat();
    assert_eq!(relayed(&mut machine, &next), b"");
    let got = machine.to_client.take();
    assert_eq!(tags(&got), "DDsZ");
    let values: Vec<Vec<u8>> = Frames::new(&got)
        .filter(|frame| frame.tag == b'D')
        .flat_map(|frame| data_row(frame.body).flatten().map(<[u8]>::to_vec).collect::<Vec<_>>())
        .collect();
    assert_eq!(values, [b"2", b"3"]);
    for text in [
        "FETCH 1 FROM \"C_1\"",
        "SELECT f('C_1')",
        "CLOSE ALL",
        "SELECT * FROM pg_cursors",
        "ALTER TABLE q ADD COLUMN x int",
        "DO $$ BEGIN EXECUTE 'TRUNCATE q'; END $$",
    ] {
        let sent = relayed(&mut fetching(INT4), &sql(text));
        assert_eq!(tags(&sent), "PBECSQ", "{text}");
        assert!(sent.ends_with(&sql(text)));
    }
    // By extended messages.
    let unit = [parse("", "FETCH 1 FROM \"C_1\""), bind(""), execute(), SYNC.to_vec()].concat();
    assert_eq!(tags(&relayed(&mut fetching(INT4), &unit)), "PBECPBES");
}

/// The driver's next cursor moved all that were open.
#[test]
fn a_cursor_stays_as_it_was_declared_unless_it_is_named() {
    let mut machine = probed(&Interner::default());
    controlled(&mut machine, "BEGIN");
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    let first = "declare \"SQL_CUR1\" cursor for SELECT v FROM q;fetch 2 in \"SQL_CUR1\"";
    let answers = vec![group::Answer::Reply(rows_of(INT4, 5)), group::Answer::None];
    assert_eq!(group(&mut machine, &sql(first), answers), b"");
    for text in [
        "UPDATE q SET done = true",
        "declare \"SQL_CUR2\" cursor for SELECT v FROM q WHERE is_closed OR small",
        "fetch 4 in \"SQL_CUR2\"",
        "fetch 4 in \"SQL_CUR11\"",
    ] {
        assert_eq!(relayed(&mut machine, &sql(text)), sql(text), "{text}");
        upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    }
    assert!(machine.has_cursor("SQL_CUR1"));
    assert_eq!(tags(&relayed(&mut machine, &sql("move 1 in \"SQL_CUR1\""))), "QQ");
    assert!(!machine.has_cursor("SQL_CUR1"));
}

/// A machine whose settings are known.
pub(super) fn probed(interner: &Interner) -> Machine {
    let mut machine = machine();
    machine.tracker.probed(&crate::session::settings::tests::some_probed("UTC"), interner, 0);
    machine.state.settings = machine.tracker.settings(interner, 0);
    assert!(machine.state.settings.is_some());
    machine
}

/// A statement made while a temporary table had one of its names was executed by the mirrored table of that name later.
#[test]
fn a_statement_made_beside_temporary_objects_is_of_no_catalog() {
    let mut machine = probed(&Interner::default());
    machine.state.catalog_version = 7;
    let catalog = |machine: &Machine, name: &[u8]| {
        let statement = machine.prepared(name).expect("prepared");
        statement.catalog.load(std::sync::atomic::Ordering::Relaxed)
    };
    relayed(&mut machine, &[parse("before", "SELECT * FROM t WHERE a = $1"), SYNC.to_vec()].concat());
    upstream_says(&mut machine, &[PARSE_COMPLETE, &ready(b'I')]);
    assert_eq!(catalog(&machine, b"before"), 7);
    relayed(&mut machine, &sql("CREATE TEMP TABLE t (a int)"));
    relayed(&mut machine, &[parse("behind", "SELECT * FROM t WHERE a = $1"), SYNC.to_vec()].concat());
    assert_eq!(catalog(&machine, b"behind"), 0, "it may be there already");
    upstream_says(&mut machine, &[&complete(), &ready(b'I'), PARSE_COMPLETE, &ready(b'I')]);
    relayed(&mut machine, &[parse("after", "SELECT * FROM t WHERE a = $1"), SYNC.to_vec()].concat());
    upstream_says(&mut machine, &[PARSE_COMPLETE, &ready(b'I')]);
    assert_eq!(catalog(&machine, b"after"), 0);
    let after = machine.prepared(b"after").expect("prepared");
    assert!(after.inferred.get().is_some_and(|types| types.is_empty()), "no plan with a parameter has these types");
}

/// Upstream analyses a statement again when a table has changed, by the settings of then, and keeps that.
#[test]
fn a_statement_that_was_bound_under_other_settings_is_of_none() {
    let settings = |machine: &Machine, name: &[u8]| {
        machine.prepared(name).map(|statement| statement.settings.load(std::sync::atomic::Ordering::Relaxed))
    };
    for use_of_it in [bind("a"), message(b'D', b"Sa\0")] {
        let interner = Interner::default();
        let mut machine = probed(&interner);
        let first = machine.settings_number();
        relayed(&mut machine, &[parse("a", "SELECT 1"), parse("b", "SELECT 1"), bind("a"), SYNC.to_vec()].concat());
        upstream_says(&mut machine, &[PARSE_COMPLETE, PARSE_COMPLETE, BIND_COMPLETE, &ready(b'I')]);
        assert_eq!(settings(&machine, b"a"), Some(first));
        relayed(&mut machine, &sql("SET extra_float_digits = 0"));
        upstream_says(&mut machine, &[&complete(), &ready(b'I')]);
        machine.state.settings = machine.tracker.settings(&interner, 0);
        relayed(&mut machine, &[use_of_it, SYNC.to_vec()].concat());
        assert_ne!(machine.settings_number(), first);
        assert_eq!((settings(&machine, b"a"), settings(&machine, b"b")), (Some(0), Some(first)));
    }
}

#[test]
fn settings_are_uncertain_after_what_may_change_them() {
    let interner = Interner::default();
    for (text, stays) in [
        ("SELECT 1", true),
        ("BEGIN", true),
        ("INSERT INTO t VALUES (1)", true),
        ("SET a.b = 1", true),
        ("SET search_path = a", false),
        ("SELECT f(1)", false),
    ] {
        let mut machine = probed(&interner);
        relayed(&mut machine, &sql(text));
        upstream_says(&mut machine, &[&complete(), &ready(b'I')]);
        assert_eq!(machine.state.settings.is_some(), stays, "{text}");
        assert_eq!(machine.tracker.settings(&interner, 0).is_some(), stays, "{text}");
    }
    let mut machine = probed(&interner);
    upstream_says(&mut machine, &[&message(b'S', b"TimeZone\0Asia/Tokyo\0")]);
    let settings = machine.tracker.settings(&interner, 0).expect("reported");
    assert_eq!(settings.value("TimeZone"), Some("Asia/Tokyo"));
}

#[test]
fn a_setting_is_in_force_once_it_is_acknowledged_and_until_it_is_undone() {
    let interner = Interner::default();
    let mut machine = probed(&interner);
    let digits = |machine: &mut Machine| {
        let settings = machine.tracker.settings(&interner, 0).expect("known");
        settings.value("extra_float_digits").unwrap_or_default().to_string()
    };
    let error = message(b'E', b"SERROR\0\0");
    relayed(&mut machine, &sql("SET extra_float_digits = 0; SELECT 1/0"));
    assert!(machine.state.settings.is_none(), "not while it is outstanding");
    upstream_says(&mut machine, &[&complete(), &error, &ready(b'I')]);
    assert_eq!(digits(&mut machine), "1", "one implicit transaction");
    relayed(&mut machine, &sql("SET extra_float_digits = 0; COMMIT; SELECT 1/0"));
    upstream_says(&mut machine, &[&complete(), &complete(), &error, &ready(b'I')]);
    assert_eq!(digits(&mut machine), "0");
    // By the extended protocol, with parameters.
    let call = parse("", "SELECT set_config($1, $2, false)");
    let values = message(b'B', b"\0\0\0\0\0\x02\0\0\0\x12extra_float_digits\0\0\0\x012\0\0");
    relayed(&mut machine, &[call, values, execute(), SYNC.to_vec()].concat());
    upstream_says(&mut machine, &[PARSE_COMPLETE, BIND_COMPLETE, &complete(), &ready(b'I')]);
    assert_eq!(digits(&mut machine), "2");
    // Bound, and not executed.
    relayed(&mut machine, &[parse("", "SET extra_float_digits = 3"), bind(""), SYNC.to_vec()].concat());
    upstream_says(&mut machine, &[PARSE_COMPLETE, BIND_COMPLETE, &ready(b'I')]);
    assert_eq!(digits(&mut machine), "2");
    // Skipped after an error.
    let unit = [parse("", "SELECT x"), parse("s", "RESET extra_float_digits"), bind("s"), execute(), SYNC.to_vec()];
    relayed(&mut machine, &unit.concat());
    upstream_says(&mut machine, &[&error, &ready(b'I')]);
    assert_eq!(digits(&mut machine), "2");
}

#[test]
fn transactions_are_followed() {
    let mut machine = probed(&Interner::default());
    relayed(&mut machine, &sql("BEGIN"));
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    let clean = Transaction { has_relayed: true, ..Transaction::new(Some(Isolation::ReadCommitted)) };
    assert_eq!(machine.state.transaction, clean);
    relayed(&mut machine, &sql("SAVEPOINT a"));
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    relayed(&mut machine, &sql("UPDATE t SET a = 1"));
    machine.take_events();
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    assert!(machine.state.transaction.is_tainted);
    relayed(&mut machine, &sql("ROLLBACK TO a"));
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    assert_eq!(machine.state.transaction, clean, "nothing of its own is left");
    machine.take_events();
    relayed(&mut machine, &sql("COMMIT"));
    upstream_says(&mut machine, &[&complete(), &ready(b'I')]);
    assert_eq!(machine.state.transaction, Transaction::default());
    let events = machine.take_events();
    assert!(events.iter().any(|event| matches!(event, Event::WriteAcknowledged(Effect::Write, _))), "{events:?}");
    // A block that ends and one that begins in the same text.
    relayed(&mut machine, &sql("BEGIN"));
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    relayed(&mut machine, &sql("COMMIT; BEGIN ISOLATION LEVEL SERIALIZABLE"));
    upstream_says(&mut machine, &[&complete(), &complete(), &ready(b'T')]);
    assert_eq!(machine.state.transaction.isolation, Some(Isolation::Serializable));
    relayed(&mut machine, &sql("COMMIT AND CHAIN"));
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    assert_eq!(machine.state.transaction.isolation, Some(Isolation::Serializable));
}

/// Whatever a client makes long of its statements counts.
#[test]
fn prepared_statements_are_kept_within_bounds() {
    let limits = MachineLimits { prepared_statements_max: 10_000, ..LIMITS };
    let mut machine = Machine::new(SessionState::new(Login::default(), FreshnessMode::Exact), limits, None);
    for n in 0..2_000_u16 {
        let types = [&900_u16.to_be_bytes()[..], &[0; 3_600]].concat();
        let made = message(b'P', &[format!("{n}\0SELECT 1\0").as_bytes(), &types].concat());
        relayed(&mut machine, &[made, SYNC.to_vec()].concat());
        upstream_says(&mut machine, &[PARSE_COMPLETE, &ready(b'I')]);
    }
    assert!(machine.statement_bytes <= STATEMENT_BYTES_MAX + 4_096, "{}", machine.statement_bytes);
    assert!(machine.prepared(b"0").is_some() && machine.prepared(b"1999").is_none());
    for n in 0..2_000_u16 {
        relayed(&mut machine, &[message(b'C', format!("S{n}\0").as_bytes()), SYNC.to_vec()].concat());
        upstream_says(&mut machine, &[CLOSE_COMPLETE, &ready(b'I')]);
    }
    assert_eq!((machine.statement_bytes, machine.statements.len()), (0, 0));
    // Those of freshet's own have the same bound, and are given back likewise.
    let mut machine = Machine::new(SessionState::new(Login::default(), FreshnessMode::Exact), limits, None);
    let show = [parse("own", "SHOW freshet.route"), SYNC.to_vec()].concat();
    group(&mut machine, &show, vec![group::Answer::None]);
    assert_eq!((machine.virtual_bytes, machine.statement_bytes), ("own".len() + "SHOW freshet.route".len(), 0));
    relayed(&mut machine, &[message(b'C', b"Sown\0"), SYNC.to_vec()].concat());
    assert_eq!((machine.virtual_bytes, machine.virtual_statements.len()), (0, 0));
}

/// PostgreSQL compares 63 bytes of a name.
#[test]
fn longer_names_than_postgresql_compares_are_upstreams() {
    let mut machine = machine();
    let (name, longer) = ("n".repeat(63), "n".repeat(64));
    let make = |name: &str| [parse(name, "SELECT 1"), SYNC.to_vec()].concat();
    relayed(&mut machine, &make(&name));
    upstream_says(&mut machine, &[PARSE_COMPLETE, &ready(b'I')]);
    assert!(machine.prepared(name.as_bytes()).is_some());
    relayed(&mut machine, &[message(b'C', format!("S{longer}\0").as_bytes()), SYNC.to_vec()].concat());
    upstream_says(&mut machine, &[CLOSE_COMPLETE, &ready(b'I')]);
    assert!(machine.prepared(name.as_bytes()).is_none());
    assert!(machine.group(&make(&longer)).is_err());
    relayed(&mut machine, &make(&longer));
    upstream_says(&mut machine, &[PARSE_COMPLETE, &ready(b'I')]);
    assert!(machine.statements.is_empty() && !machine.knows_all_statements());
    let bound = message(b'B', format!("{longer}\0\0\0\0\0\0\0\0").as_bytes());
    assert!(machine.group(&[bound.clone(), SYNC.to_vec()].concat()).is_err());
    relayed(&mut machine, &[bound, SYNC.to_vec()].concat());
    assert!(machine.upstream_portals.contains(name.as_bytes()), "another Bind by this name is refused");
}

#[test]
fn an_observer_gets_the_whole_reply_and_nothing_else() {
    use std::sync::{Arc, Mutex};
    struct Keep(Arc<Mutex<Option<ObservedReply>>>, usize);
    impl Observer for Keep {
        fn bytes_max(&self) -> usize {
            self.1
        }
        fn observe(self: Box<Self>, reply: ObservedReply) {
            *self.0.lock().unwrap() = Some(reply);
        }
    }
    for (max, kept) in [(1000, "TCZ"), (8, "T")] {
        let seen = Arc::new(Mutex::new(None));
        let mut machine = machine();
        machine.receive_client(&[sql("SELECT 1"), sql("SELECT 2")].concat());
        assert_eq!(machine.advance(), Step::Decide);
        machine.relay_unit(Some(Box::new(Keep(Arc::clone(&seen), max))));
        assert_eq!(machine.advance(), Step::Wait);
        let one = [message(b'T', b"\0\0"), complete(), ready(b'I')].concat();
        upstream_says(&mut machine, &[&one, &one]);
        for event in machine.take_events() {
            if let Event::Observed(observed) = event {
                observed.observer.observe(observed.reply);
            }
        }
        let reply = seen.lock().unwrap().take().expect("observed");
        assert_eq!((tags(&reply.bytes).as_str(), reply.is_truncated), (kept, max == 8));
        assert_eq!((reply.has_error, reply.has_asynchronous, reply.status), (false, false, TransactionStatus::Idle));
    }
}

#[test]
fn a_malformed_message_goes_upstream_as_it_is() {
    let mut machine = machine();
    let broken = [sql("SELECT 1"), vec![b'Q', 0, 0, 0, 1, 9, 9]].concat();
    machine.receive_client(&broken);
    while machine.advance() == Step::Decide {
        machine.relay_unit(None);
    }
    machine.advance();
    assert_eq!(machine.to_upstream.take(), broken);
    assert!(machine.lost().is_some());
    let anything = b"E\0\0\0\x05\0 and more";
    assert_eq!(upstream_says(&mut machine, &[anything]), anything);
}

fn any_message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(sql("SELECT 1")),
        Just(sql("BEGIN; COMMIT")),
        Just(parse("", "SELECT $1")),
        Just(parse("s", "SELECT 1")),
        Just(bind("")),
        Just(bind("s")),
        Just(message(b'D', b"S\0")),
        Just(message(b'D', b"P\0")),
        Just(execute()),
        Just(message(b'C', b"Ss\0")),
        Just(SYNC.to_vec()),
        Just(SYNC.to_vec()),
        Just(message(b'H', b"")),
        Just(message(b'd', b"data")),
        Just(message(b'c', b"")),
    ]
}

/// What PostgreSQL answers, one message at a time, as far as counts go (postgres.c, SocketBackend and PostgresMain).
#[derive(Default)]
struct Model {
    is_skipping: bool,
    errors: Vec<bool>,
    answered: usize,
}

impl Model {
    fn answer(&mut self, frame: &[u8], out: &mut Vec<u8>) {
        let tag = frame[0];
        if tag == b'S' {
            self.is_skipping = false;
            out.extend(ready(b'I'));
            return;
        }
        if self.is_skipping || matches!(tag, b'H' | b'd' | b'c') {
            return;
        }
        let fails = self.errors.get(self.answered).copied().unwrap_or(false);
        self.answered += 1;
        if fails {
            out.extend(message(b'E', b"SERROR\0\0"));
        }
        match tag {
            b'Q' if fails => out.extend(ready(b'I')),
            b'Q' => out.extend([message(b'T', b"\0\0"), complete(), ready(b'I')].concat()),
            _ if fails => self.is_skipping = true,
            b'P' => out.extend_from_slice(PARSE_COMPLETE),
            b'B' => out.extend_from_slice(BIND_COMPLETE),
            b'C' => out.extend_from_slice(CLOSE_COMPLETE),
            b'D' if frame[5] == b'S' => out.extend([message(b't', b"\0\0"), message(b'T', b"\0\0")].concat()),
            b'D' => out.extend(message(b'T', b"\0\0")),
            b'E' => out.extend(complete()),
            _ => {}
        }
    }
}

proptest! {
    /// In any order of messages, errors and deliveries the machine keeps count, and nothing is lost.
    #[test]
    fn replies_are_matched_in_any_order(
        messages in proptest::collection::vec(any_message(), 1..40),
        errors in proptest::collection::vec(proptest::bool::weighted(0.15), 40),
        local in proptest::collection::vec(any::<bool>(), 40),
        delay in proptest::collection::vec(0usize..4, 40),
    ) {
        let mut machine = machine();
        let mut model = Model { errors, ..Model::default() };
        let (mut waiting, mut units, mut readies) = (Vec::new(), 0usize, 0usize);
        let expected = messages.iter().filter(|m| m[0] == b'S').count();
        for (index, bytes) in messages.iter().chain([&SYNC.to_vec()]).enumerate() {
            machine.receive_client(bytes);
            loop {
                match machine.advance() {
                    Step::Decide if local[units % local.len()] && machine.unit().is_ok_and(|unit| matches!(unit.form, Form::Simple | Form::Execute | Form::Prepare)) => machine.answer_locally(&reply()),
                    Step::Decide => machine.relay_unit(None),
                    Step::Wait | Step::Held => break,
                }
                units += 1;
            }
            for frame in Frames::new(&machine.to_upstream.take()) {
                model.answer(frame.bytes, &mut waiting);
            }
            if delay[index % delay.len()] == 0 {
                prop_assert!(machine.receive_upstream(&std::mem::take(&mut waiting)));
            }
            let seen = machine.to_client.take();
            readies += tags(&seen).matches('Z').count();
        }
        // Some messages wait for replies to those before them.
        while machine.held_bytes() > 0 || !waiting.is_empty() || !machine.to_upstream.is_empty() {
            machine.release();
            for frame in Frames::new(&machine.to_upstream.take()) {
                model.answer(frame.bytes, &mut waiting);
            }
            prop_assert!(machine.receive_upstream(&std::mem::take(&mut waiting)));
            while machine.advance() == Step::Decide {
                machine.relay_unit(None);
            }
            readies += tags(&machine.to_client.take()).matches('Z').count();
        }
        prop_assert!(machine.lost().is_none(), "{:?}", machine.lost());
        prop_assert!(machine.is_settled());
        prop_assert_eq!(machine.own_expected, 0);
        // Each Sync has its ReadyForQuery, and each Query that was not skipped.
        prop_assert!(readies > expected);
    }

    #[test]
    fn any_bytes_from_either_side_are_borne(
        client in proptest::collection::vec(any::<u8>(), 0..300),
        upstream in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut machine = machine();
        machine.receive_client(&client);
        while machine.advance() == Step::Decide {
            machine.relay_unit(None);
        }
        machine.client_closed();
        while machine.advance() == Step::Decide {
            machine.relay_unit(None);
        }
        let sent = machine.to_upstream.take();
        prop_assert!(client.starts_with(&sent));
        let _ = machine.receive_upstream(&upstream);
    }
}

/// A text with a backslash, or beyond ASCII, sent behind a SET that has not been acknowledged is read by what that SET says.
#[test]
fn a_text_behind_a_change_of_how_texts_are_read_is_not_understood() {
    const WITH_BACKSLASH: &[u8] = br"UPDATE t SET v = 'x\' WHERE id = 1 --' WHERE id = 2";
    const BEYOND_ASCII: &[u8] = "UPDATE t SET v = 'ä' WHERE id = 1".as_bytes();
    let reported = |name: &str, value: &str| message(b'S', format!("{name}\0{value}\0").as_bytes());
    let steady = || {
        let mut machine = machine();
        let both = [reported("standard_conforming_strings", "on"), reported("client_encoding", "UTF8")].concat();
        upstream_says(&mut machine, &[&both]);
        machine
    };
    let is_read = |machine: &Machine, text: &[u8]| machine.judge(text).effects == [Effect::Write];
    let done = [message(b'C', b"SET\0"), ready(b'I')].concat();
    let inside = [message(b'C', b"SET\0"), ready(b'T')].concat();
    for change in [
        "SET standard_conforming_strings = off",
        "SET client_encoding = 'LATIN1'",
        "SET NAMES 'LATIN1'",
        "RESET ALL",
        "DISCARD ALL",
        "DO $$ $$",
        "SELECT set_config('standard_conforming_strings', 'off', false)",
    ] {
        let mut machine = steady();
        assert!(is_read(&machine, WITH_BACKSLASH) && is_read(&machine, BEYOND_ASCII));
        relayed(&mut machine, &sql(change));
        assert!(!is_read(&machine, WITH_BACKSLASH) && !is_read(&machine, BEYOND_ASCII), "{change}");
        assert!(is_read(&machine, b"UPDATE t SET v = 'x' WHERE id = 1"), "{change}: they say nothing of ASCII");
    }
    // As extended messages of one unit.
    let mut machine = steady();
    let unit = [parse("", "SET standard_conforming_strings = off"), bind(""), execute()].concat();
    relayed(&mut machine, &unit);
    machine.release();
    assert!(!is_read(&machine, WITH_BACKSLASH));
    // What changes nothing of the kind may be under way.
    let mut machine = steady();
    relayed(
        &mut machine,
        &[sql("BEGIN"), sql("SET work_mem = '1MB'"), sql("UPDATE t SET v = 1"), sql("COMMIT")].concat(),
    );
    assert!(is_read(&machine, WITH_BACKSLASH) && is_read(&machine, BEYOND_ASCII));
    // The end of the transaction takes it back.
    let mut machine = steady();
    let off = reported("standard_conforming_strings", "off");
    relayed(&mut machine, &sql("SET standard_conforming_strings = off"));
    upstream_says(&mut machine, &[&message(b'C', b"SET\0"), &off, &ready(b'I')]);
    assert!(!is_read(&machine, WITH_BACKSLASH));
    relayed(&mut machine, &sql("BEGIN"));
    upstream_says(&mut machine, &[&inside]);
    relayed(&mut machine, &sql("SET LOCAL standard_conforming_strings = on"));
    let on = reported("standard_conforming_strings", "on");
    upstream_says(&mut machine, &[&message(b'C', b"SET\0"), &on, &ready(b'T')]);
    assert!(is_read(&machine, WITH_BACKSLASH), "nothing is under way");
    relayed(&mut machine, &sql("COMMIT"));
    assert!(!is_read(&machine, WITH_BACKSLASH), "it is off again where this arrives");
    upstream_says(&mut machine, &[&off, &done]);
    assert!(!is_read(&machine, WITH_BACKSLASH));
}
