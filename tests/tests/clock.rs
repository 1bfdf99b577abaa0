//! now() and its kin, answered here: the moment is one between the client's request and its reply, by upstream's clock; it
//! stands still in a transaction and is never kept.

use std::time::{Duration, Instant};

use freshet_tests::client::{bind, describe, execute, parse, sync};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::{RawClient, RawReply};

const WAIT: Duration = Duration::from_secs(20);

struct Clocks {
    direct: RawClient,
    through: RawClient,
    _freshet: Freshet,
}

impl Clocks {
    fn start(setup: &str) -> Self {
        let cluster = Cluster::shared();
        let database = cluster.database();
        cluster.psql(&database, setup);
        let freshet = Freshet::start(&cluster.url(&database), |_| {});
        let direct = RawClient::connect(cluster.address(), "postgres", &database).expect("connects");
        let through = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
        Self { direct, through, _freshet: freshet }
    }

    /// Repeats until it is answered here; that reply, and upstream's clock before and after it.
    fn bracketed(&mut self, sql: &str, is_extended: bool) -> (i64, RawReply, i64) {
        let limit = Instant::now() + WAIT;
        loop {
            let before = self.clock();
            let reply = match is_extended {
                true => self.through.extended(sql, &[], 0),
                false => self.through.simple(sql),
            };
            let reply = reply.expect("answers");
            let after = self.clock();
            let last = self.through.last().expect("answers");
            if last.0 == "local" {
                return (before, reply, after);
            }
            assert!(Instant::now() < limit, "{sql}: answered by {last:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Microseconds since 1970, by upstream.
    fn clock(&mut self) -> i64 {
        number(
            &self.direct.simple("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").expect("answers"),
        )
    }
}

fn text(reply: &RawReply) -> String {
    let row = reply.rows().into_iter().next().unwrap_or_else(|| panic!("no row: {:?}", reply.error()));
    String::from_utf8(row[0].clone().expect("no NULL")).expect("text")
}

fn number(reply: &RawReply) -> i64 {
    text(reply).parse().expect("a number")
}

const MOMENTS: [&str; 5] =
    ["now()", "current_timestamp", "transaction_timestamp()", "statement_timestamp()", "localtimestamp::timestamptz"];

#[test]
fn the_moment_is_between_request_and_reply() {
    let mut clocks = Clocks::start("");
    for freshness in ["exact", "session"] {
        clocks.through.simple(&format!("SET freshet.freshness = '{freshness}'")).expect("answers");
        for is_extended in [false, true] {
            for moment in MOMENTS {
                let sql = format!("SELECT (extract(epoch FROM {moment}) * 1000000)::bigint");
                let (before, reply, after) = clocks.bracketed(&sql, is_extended);
                let told = number(&reply);
                assert!(before <= told && told <= after, "{freshness} {sql}: {before} {told} {after}");
            }
        }
    }
}

#[test]
fn a_moment_is_not_kept() {
    let mut clocks = Clocks::start("");
    clocks.through.simple("SET freshet.freshness = 'session'").expect("answers");
    let first = text(&clocks.bracketed("SELECT now()", false).1);
    clocks.through.simple("SET freshet.route = 'auto'").expect("answers");
    for _ in 0..3 {
        let next = text(&clocks.bracketed("SELECT now()", false).1);
        assert_ne!(first, next);
    }
}

#[test]
fn today_and_ranges_of_time_are_upstreams() {
    let mut clocks = Clocks::start(
        "CREATE TABLE visits (id int PRIMARY KEY, at timestamptz, day date);
         INSERT INTO visits SELECT i, now() - i * interval '7 hours', current_date - i FROM generate_series(-20, 400) i",
    );
    for zone in ["UTC", "America/New_York", "Pacific/Kiritimati"] {
        for client in [&mut clocks.direct, &mut clocks.through] {
            client.simple(&format!("SET TimeZone = '{zone}'")).expect("answers");
        }
        for sql in [
            "SELECT count(*) FROM visits WHERE at > now() - interval '3 days'",
            "SELECT count(*) FROM visits WHERE at >= date_trunc('month', now()) AND at < date_trunc('month', now() + interval '1 month')",
            "SELECT count(*) FROM visits WHERE at BETWEEN current_date - 30 AND current_date",
            "SELECT count(*) FROM visits WHERE day = current_date",
            "SELECT count(*) FROM visits WHERE day >= CAST((NOW() + INTERVAL '-30 day') AS date)",
            "SELECT current_date::text || ' ' || date_trunc('day', localtimestamp)::text",
            "SELECT count(*) FROM visits WHERE extract(year FROM age(at)) = 0",
            "SELECT date_trunc('day', now()) = current_date",
        ] {
            let expected = text(&clocks.direct.simple(sql).expect("answers"));
            let (_, got, _) = clocks.bracketed(sql, false);
            assert_eq!(text(&got), expected, "{zone} {sql}");
        }
    }
}

#[test]
fn a_block_has_one_moment_and_it_is_upstreams() {
    let mut clocks = Clocks::start("");
    clocks.bracketed("SELECT now()", false);
    clocks.through.simple("BEGIN").expect("answers");
    let first = text(&clocks.through.simple("SELECT now()").expect("answers"));
    assert_eq!(clocks.through.last().expect("answers").0, "local");
    // Upstream was asked for it, and for no more.
    let asked =
        "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";
    let asked = text(&clocks.direct.simple(asked).expect("answers"));
    assert!(asked.starts_with("SELECT CAST(CAST(EXTRACT(epoch FROM pg_catalog.now())"), "{asked}");
    clocks.through.simple("SET freshet.route = 'relay'").expect("answers");
    let upstreams = text(&clocks.through.simple("SELECT now()").expect("answers"));
    assert_eq!(clocks.through.last().expect("answers").0, "relay");
    assert_eq!(first, upstreams);
    clocks.through.simple("SET freshet.route = 'auto'").expect("answers");
    let again = text(&clocks.through.extended("SELECT now()", &[], 0).expect("answers"));
    assert_eq!((first.clone(), "local"), (again, &*clocks.through.last().expect("answers").0));
    let both = clocks.through.simple("SELECT now(); SELECT now()").expect("answers");
    assert!(both.rows().iter().all(|row| row[0].as_deref() == Some(first.as_bytes())), "{first}");
    clocks.through.simple("SELECT statement_timestamp()").expect("answers");
    let (route, reason) = clocks.through.last().expect("answers");
    assert!(route == "relay" && reason.starts_with("volatile"), "{route} {reason}");
    clocks.through.simple("COMMIT").expect("answers");
    clocks.through.simple("BEGIN").expect("answers");
    assert_ne!(text(&clocks.through.simple("SELECT now()").expect("answers")), first);
    clocks.through.simple("COMMIT AND CHAIN").expect("answers");
    let chained = text(&clocks.through.simple("SELECT now()").expect("answers"));
    assert_eq!(clocks.through.last().expect("answers").0, "local");
    clocks.through.simple("SET freshet.route = 'relay'").expect("answers");
    assert_eq!(text(&clocks.through.simple("SELECT now()").expect("answers")), chained);
    clocks.through.simple("SET freshet.route = 'auto'").expect("answers");
    // Another block within one message.
    let next = text(&clocks.through.simple("COMMIT; BEGIN; SELECT now()").expect("answers"));
    assert_ne!(next, chained);
    assert_eq!(text(&clocks.through.simple("SELECT now()").expect("answers")), next);
    clocks.through.simple("ROLLBACK").expect("answers");
    // Statements of one string are one transaction, too.
    let both = clocks.through.simple("SELECT now(); SELECT now()").expect("answers");
    let rows = both.rows();
    assert_eq!((rows.len(), &rows[0]), (2, &rows[1]));
}

/// As drivers send it that begin a transaction before each statement: verified there, and answered there.
#[test]
fn a_statement_that_comes_in_blocks_alone_is_verified_there() {
    let mut clocks = Clocks::start(
        "CREATE TABLE seen (id int PRIMARY KEY, at timestamptz);
         INSERT INTO seen SELECT n, now() - n * interval '1 hour' FROM generate_series(1, 100) n",
    );
    let sql = "SELECT count(*), max(at) FROM seen WHERE at > now() - interval '1 day'";
    let limit = Instant::now() + WAIT;
    loop {
        clocks.through.simple("BEGIN").expect("answers");
        let reply = clocks.through.simple(sql).expect("answers");
        let last = clocks.through.last().expect("answers");
        clocks.through.simple("ROLLBACK").expect("answers");
        assert_eq!(reply.text(), clocks.direct.simple(sql).expect("answers").text());
        if last.0 == "local" {
            break;
        }
        assert!(Instant::now() < limit, "{last:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    // With the block's time known, no barrier is needed for the clock: the session's own writes are enough.
    clocks.through.simple("SET freshet.freshness = 'session'").expect("answers");
    for number in 101..110 {
        clocks.through.simple(&format!("INSERT INTO seen VALUES ({number}, now())")).expect("answers");
        clocks.through.simple("BEGIN").expect("answers");
        let reply = clocks.through.simple(sql).expect("answers");
        let last = clocks.through.simple("SHOW freshet.last").expect("answers").rows();
        assert_eq!(last[0][0..3], [Some(b"local".to_vec()), Some(b"".to_vec()), Some(b"session".to_vec())]);
        clocks.through.simple("ROLLBACK").expect("answers");
        assert_eq!(reply.text(), clocks.direct.simple(sql).expect("answers").text());
    }
}

/// As pgjdbc begins a block: BEGIN and the first statement of it with one Sync. What is relayed in the block has the same time.
#[test]
fn a_block_that_begins_with_its_first_statement_has_one_time() {
    let mut clocks = Clocks::start(
        "CREATE TABLE visits (id int PRIMARY KEY, at timestamptz); INSERT INTO visits VALUES (1, '2020-01-01')",
    );
    let first = "SELECT now() AS now, count(*) FROM visits WHERE at < now() - interval '1 day'";
    let group = |begin: &str, sql: &str| {
        [
            parse("", begin),
            bind("", "", &[], 0),
            execute("", 0),
            parse("", sql),
            bind("", "", &[], 0),
            describe('P', ""),
            execute("", 0),
            sync(),
        ]
        .concat()
    };
    let ask = |client: &mut RawClient, begin: &str, sql: &str| {
        client.send(&group(begin, sql)).expect("is sent");
        client.read_reply().expect("answers")
    };
    let tags = |reply: &RawReply| reply.frames.iter().map(|(tag, _)| *tag).collect::<Vec<u8>>();
    for begin in ["BEGIN", "BEGIN READ ONLY", "START TRANSACTION ISOLATION LEVEL READ COMMITTED"] {
        let limit = Instant::now() + WAIT;
        loop {
            let found = ask(&mut clocks.through, begin, first);
            let (route, reason) = clocks.through.last().expect("answers");
            let later = text(&clocks.through.simple("SELECT now(), pg_backend_pid() FROM visits").expect("answers"));
            assert_eq!(clocks.through.last().expect("answers").0, "relay");
            let again = text(&clocks.through.simple("SELECT now() AS again, count(*) FROM visits").expect("answers"));
            assert_eq!([text(&found), again], [later.clone(), later], "{begin}: {route} {reason}");
            clocks.through.simple("COMMIT").expect("answers");
            let expected = ask(&mut clocks.direct, begin, first);
            clocks.direct.simple("COMMIT").expect("answers");
            assert_eq!(tags(&found), tags(&expected), "{begin}: {route} {reason}");
            if route == "local" {
                break;
            }
            assert!(Instant::now() < limit, "{begin}: {route} {reason}");
        }
    }
    // What fails behind it leaves a failed block.
    for sql in ["SELECT now(), 1 / count(*) FROM visits WHERE at > now()", "SELECT now(), nothing FROM visits"] {
        for _ in 0..3 {
            let (found, expected) = (ask(&mut clocks.through, "BEGIN", sql), ask(&mut clocks.direct, "BEGIN", sql));
            assert_eq!((tags(&found), found.error()), (tags(&expected), expected.error()), "{sql}");
            for client in [&mut clocks.through, &mut clocks.direct] {
                let refused = client.simple("SELECT 1").expect("answers").error();
                assert!(refused.is_some_and(|error| error.contains("aborted")), "{sql}");
                client.simple("ROLLBACK").expect("answers");
            }
        }
    }
}
