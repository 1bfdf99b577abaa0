//! Sessions whose settings are not known, and sessions that are passed through unread: what an operator sees of them. The
//! metrics only rise; what is the case now is told by `freshet.sessions`.

use freshet_config::{FreshnessMode, TableChoice};
use freshet_tests::client::{RawClient as WireClient, tags};
use freshet_tests::operator::Operator;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle, until};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)";

fn ask(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(reply.error(), None, "{sql}");
    reply.text()
}

#[test]
fn what_loses_the_settings_is_counted_by_its_kind_and_shown_until_they_are_known() {
    let operator = Operator::new();
    let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| settings.admin.address = operator.address());
    let (mut client, mut watcher) = (world.client(), world.client());
    let pid = ask(&mut client, "SELECT pg_backend_pid()");
    let why = format!("SELECT opaque FROM freshet.sessions WHERE pid = {pid}");
    let read = "SELECT count(*) FROM t";
    settle(&mut client, read);
    assert_eq!(ask(&mut watcher, &why), "");
    let lost = |cause: &str| operator.metric(&format!("freshet_settings_lost_total{{cause=\"{cause}\"}}"));
    for (count, known_by) in [(1, read), (2, "DISCARD ALL"), (3, "ROLLBACK")] {
        if known_by == "ROLLBACK" {
            ask(&mut client, "BEGIN");
        }
        ask(&mut client, "DO $$ BEGIN END $$");
        assert_eq!(lost("do"), count);
        assert_eq!(ask(&mut watcher, &why), "DO");
        ask(&mut client, known_by);
        // What upstream has answered since, freshet's own question or a statement, tells.
        until(known_by, || {
            ask(&mut client, "SELECT 1");
            settle(&mut client, read);
            ask(&mut watcher, &why).is_empty()
        });
        assert_eq!(lost("do"), count, "{known_by}");
    }
    ask(&mut client, "EXPLAIN ANALYZE SELECT 1");
    assert_eq!((lost("do"), lost("explain_analyze")), (3, 1));
    assert_eq!(ask(&mut watcher, &why), "EXPLAIN ANALYZE");
    drop(client);
    let listed = format!("SELECT count(*) FROM freshet.sessions WHERE pid = {pid}");
    until("it leaves the list", || ask(&mut watcher, &listed) == "0");
}

#[test]
fn sessions_that_are_passed_through_unread_are_counted_when_they_end() {
    let operator = Operator::new();
    let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| settings.admin.address = operator.address());
    let mut watcher = world.client();
    let sessions = "SELECT count(*) FROM freshet.sessions";
    for ended in 0..3 {
        let counted = || operator.get("/metrics").contains("freshet_opaque_sessions_total{");
        assert_eq!(counted(), ended > 0, "only what is passed through unread is counted");
        let mut client = WireClient::connect(world.freshet.port());
        client.start_up(&[("user", "postgres"), ("database", world.database.as_str()), ("replication", "database")]);
        assert_eq!(client.read_until('Z').last().map(|message| message.tag), Some('Z'));
        assert_eq!(tags(&client.query("IDENTIFY_SYSTEM")), "TDCZ");
        assert_eq!(ask(&mut watcher, sessions), "2");
        drop(client);
        until("it leaves the list", || ask(&mut watcher, sessions) == "1");
        let total = format!("freshet_opaque_sessions_total{{cause=\"replication\"}} {}\n", ended + 1);
        until("it is counted", || operator.get("/metrics").contains(&total));
    }
}

/// What others do is told to those who may see it in pg_stat_activity, with a mirror and without one.
#[test]
fn what_others_do_is_shown_to_who_may_see_it() {
    for tables in [TableChoice::Auto, TableChoice::None] {
        let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| settings.mirror.tables = tables.clone());
        world.past("DROP ROLE IF EXISTS looks_on; CREATE ROLE looks_on LOGIN");
        let mut watched = world.client();
        let pid = ask(&mut watched, "SELECT pg_backend_pid()");
        ask(&mut watched, "DO $$ BEGIN END $$");
        let seen = format!("SELECT client, state, opaque, route_setting FROM freshet.sessions WHERE pid = {pid}");
        let connect = |user| RawClient::connect(world.freshet.address(), user, &world.database).expect("connects");
        let shown = |client: &mut RawClient| client.simple(&seen).expect("answers").rows().remove(0);
        let (mut superuser, mut other) = (connect("postgres"), connect("looks_on"));
        let text = |cell: &Option<Vec<u8>>| String::from_utf8_lossy(cell.as_deref().unwrap_or(b"NULL")).into_owned();
        let all: Vec<String> = shown(&mut superuser).iter().map(text).collect();
        assert_eq!(all[1..], ["idle", "DO", "auto"], "{tables:?}");
        let hidden: Vec<String> = shown(&mut other).iter().map(text).collect();
        assert_eq!(hidden, ["NULL", "NULL", "NULL", "auto"], "{tables:?}");
        world.past("GRANT pg_read_all_stats TO looks_on");
        assert_eq!(shown(&mut other).iter().map(text).collect::<Vec<_>>(), all, "{tables:?}");
        drop((superuser, other, watched));
        world.past("DROP ROLE looks_on");
    }
}
