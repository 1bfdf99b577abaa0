//! Random conversations: the model of PostgreSQL's protocol against PostgreSQL, and a session's machine in front of the model
//! against the model alone.

use std::fs;

use freshet_tests::client::{RawClient, message, query, sync};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::model::Backend;
use freshet_tests::model::compare::{alone, differ, essence, readable};
use freshet_tests::model::script::{self, STEP_LENGTH};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

fn scripts(steps: std::ops::Range<usize>) -> impl Strategy<Value = Vec<[u8; STEP_LENGTH]>> {
    proptest::collection::vec(any::<[u8; STEP_LENGTH]>(), steps)
}

#[test]
fn the_model_answers_as_postgresql_does() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (a int)");
    let cases = if std::env::var_os("FRESHET_LONG").is_some() { 20_000 } else { 300 };
    let knows_mixed = cluster.major() < 18;
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config { cases, failure_persistence: None, ..Config::default() }, rng);
    let outcome = runner.run(&scripts(1..40), |bytes| {
        let steps = script::steps(bytes.as_flattened());
        let messages: Vec<u8> = steps.iter().flat_map(|step| step.messages.concat()).chain(sync()).collect();
        let mut backend = Backend::default();
        let expected = alone(&mut backend, &messages);
        if backend.is_undefined() || (backend.is_mixed() && !knows_mixed) {
            return Ok(());
        }
        let mut client = RawClient::log_in(cluster.port(), &database);
        client.send(&[messages, message(b'X', b"")].concat());
        let got = client.read_to_end();
        let (expected, got) = (essence(&expected), essence(&got));
        prop_assert_eq!(expected.join("\n"), got.join("\n"), "the model first\n{}", readable(&steps));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_differed_once_is_the_same_now() {
    let folder = freshet_tests::folder().join("fuzz/corpus/session");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the corpus").flatten() {
        let bytes = fs::read(entry.path()).expect("readable");
        differ(&bytes).unwrap_or_else(|error| panic!("{}: {error}", entry.path().display()));
        count += 1;
    }
    assert!(count > 10, "the corpus is there: {count}");
}

#[test]
fn a_machine_in_between_changes_nothing() {
    let cases = if std::env::var_os("FRESHET_LONG").is_some() { 300_000 } else { 3_000 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let answered = std::cell::Cell::new(0);
    let outcome = runner.run(&scripts(1..30), |bytes| {
        let count = differ(bytes.as_flattened()).map_err(TestCaseError::fail)?;
        answered.set(answered.get() + count);
        Ok(())
    });
    outcome.unwrap_or_else(|error| {
        let bytes = if let TestError::Fail(_, bytes) = &error { bytes.concat() } else { Vec::new() };
        panic!("{error}\nas bytes: {bytes:?}")
    });
    assert!(answered.get() > 500, "local answers take part: {}", answered.get());
}

/// More than may be owed, in one group, by a client that reads nothing before it has sent all of it.
#[test]
fn a_client_far_ahead_gets_every_reply() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::relay(&cluster.url(&database));
    let execution = [message(b'B', b"\0\0\0\0\0\0\0\0"), message(b'E', b"\0\0\0\0\0")].concat();
    let prepared = message(b'P', b"\0SELECT 1 WHERE false\0\0\0");
    let mut client = RawClient::log_in(freshet.port(), &database);
    client.send(&[prepared, execution.repeat(20_000), sync()].concat());
    let replies = client.read_until('Z');
    assert_eq!(replies.iter().filter(|reply| reply.tag == 'C').count(), 20_000);
    // Each of these is answered, behind a statement that takes its time.
    client.send(&[query("SELECT pg_sleep(0.2)"), sync().repeat(30_000)].concat());
    let readies = (0..30_001).filter(|_| client.read_until('Z').last().is_some_and(|last| last.tag == 'Z'));
    assert_eq!(readies.count(), 30_001);
}
