//! No read is ever stale: registers and a bank under writers that write through freshet and past it, with rollbacks,
//! savepoints and asynchronous commits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use freshet_config::TableChoice;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::{RawClient, frame};

const REGISTERS: usize = 4;
const ACCOUNTS: i64 = 20;
/// Fewer checked reads show nothing.
const READS_MIN: u64 = 100;
const TOTAL: i64 = ACCOUNTS * 100;

/// How long each checker runs.
fn duration() -> Duration {
    Duration::from_secs(if std::env::var_os("FRESHET_LONG").is_some() { 300 } else { 6 })
}

struct Checker {
    direct: SocketAddr,
    through: SocketAddr,
    database: String,
    /// The largest value of each register whose commit was acknowledged.
    acknowledged: [AtomicI64; REGISTERS],
    stop: AtomicBool,
    reads: AtomicU64,
    local: AtomicU64,
    /// Why reads were not answered here, for the report.
    reasons: std::sync::Mutex<std::collections::BTreeMap<String, u64>>,
}

impl Checker {
    fn connect(&self, address: SocketAddr) -> RawClient {
        RawClient::connect(address, "postgres", &self.database).expect("connects")
    }

    /// Increments one register forever; `setup` decides how it commits.
    fn write_register(&self, address: SocketAddr, register: usize, setup: &str) {
        let mut client = self.connect(address);
        run(&mut client, setup);
        let mut value = self.acknowledged[register].load(SeqCst);
        while !self.stop.load(SeqCst) {
            value += 1;
            match value % 4 {
                0 => {
                    run(&mut client, "BEGIN");
                    run(
                        &mut client,
                        &format!("UPDATE registers SET value = {} WHERE id = {register}", value + 1_000_000),
                    );
                    run(&mut client, "ROLLBACK");
                    run(&mut client, &format!("UPDATE registers SET value = {value} WHERE id = {register}"));
                }
                1 => {
                    run(&mut client, "BEGIN; SAVEPOINT s");
                    run(&mut client, &format!("UPDATE registers SET value = -1 WHERE id = {register}"));
                    run(&mut client, "ROLLBACK TO s");
                    run(&mut client, &format!("UPDATE registers SET value = {value} WHERE id = {register}"));
                    run(&mut client, "COMMIT");
                }
                _ => run(&mut client, &format!("UPDATE registers SET value = {value} WHERE id = {register}")),
            }
            self.acknowledged[register].store(value, SeqCst);
            pause();
        }
    }

    /// Moves money between accounts in transactions; the total never changes.
    fn transfer(&self, address: SocketAddr, setup: &str, mut seed: u64) {
        let mut client = self.connect(address);
        run(&mut client, setup);
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as i64
        };
        while !self.stop.load(SeqCst) {
            let (from, to, amount) = (random() % ACCOUNTS, random() % ACCOUNTS, random() % 10);
            // Always in the same order, so that two transfers do not deadlock.
            let (first, second) = (from.min(to), from.max(to));
            let sign = if first == from { -1 } else { 1 };
            run(&mut client, "BEGIN");
            run(&mut client, &format!("UPDATE accounts SET balance = balance + {} WHERE id = {first}", sign * amount));
            run(&mut client, &format!("UPDATE accounts SET balance = balance - {} WHERE id = {second}", sign * amount));
            run(&mut client, if random() % 5 == 0 { "ROLLBACK" } else { "COMMIT" });
            pause();
        }
    }

    /// Reads registers and the bank through freshet; panics on a stale or torn read. `bound` says which registers must
    /// not be older than their acknowledged value.
    fn read(&self, freshness: &str, bound: &[usize]) {
        let mut through = self.connect(self.through);
        let mut direct = self.connect(self.direct);
        run(&mut through, &format!("SET freshet.freshness = '{freshness}'"));
        let mut seen = [0_i64; REGISTERS];
        while !self.stop.load(SeqCst) {
            let before: Vec<i64> = self.acknowledged.iter().map(|value| value.load(SeqCst)).collect();
            let values = numbers(&mut through, "SELECT id, value FROM registers ORDER BY id");
            self.count(&mut through);
            for (register, value) in values.chunks(2).map(|pair| (pair[0] as usize, pair[1])) {
                if bound.contains(&register) {
                    assert!(
                        value >= before[register],
                        "stale in {freshness}: register {register} is {value}, acknowledged {}",
                        before[register]
                    );
                }
                assert!(
                    value >= seen[register],
                    "backwards in {freshness}: register {register} is {value} after {}",
                    seen[register]
                );
                assert!(value < 1_000_000, "uncommitted in {freshness}: register {register} is {value}");
                seen[register] = value;
            }
            // Nothing was shown before upstream showed it.
            let later = numbers(&mut direct, "SELECT id, value FROM registers ORDER BY id");
            for pair in later.chunks(2) {
                assert!(
                    pair[1] >= seen[pair[0] as usize],
                    "too early in {freshness}: {} > {}",
                    seen[pair[0] as usize],
                    pair[1]
                );
            }
            let total = numbers(&mut through, "SELECT sum(balance), count(*) FROM accounts");
            self.count(&mut through);
            assert_eq!(total, [TOTAL, ACCOUNTS], "a torn read in {freshness}");
        }
    }

    fn count(&self, through: &mut RawClient) {
        let (route, reason) = through.last().expect("answers");
        self.reads.fetch_add(1, SeqCst);
        if route == "local" || route == "hit" {
            self.local.fetch_add(1, SeqCst);
        } else {
            *self.reasons.lock().expect("not poisoned").entry(reason).or_default() += 1;
        }
    }
}

fn run(client: &mut RawClient, sql: &str) {
    if sql.is_empty() {
        return;
    }
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
}

fn numbers(client: &mut RawClient, sql: &str) -> Vec<i64> {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
    let cells = reply.rows().into_iter().flatten();
    cells.map(|cell| String::from_utf8(cell.expect("no NULL")).expect("text").parse().expect("a number")).collect()
}

/// Leaves the two cores to the readers now and then.
fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

fn check(freshness: &'static str, past_is_bound: bool) {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        &format!(
            "CREATE TABLE registers (id int PRIMARY KEY, value bigint NOT NULL);
             INSERT INTO registers SELECT n, 0 FROM generate_series(0, {REGISTERS} - 1) n;
             CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL);
             INSERT INTO accounts SELECT n, 100 FROM generate_series(0, {ACCOUNTS} - 1) n;"
        ),
    );
    let tables = ["public.registers", "public.accounts"];
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.mirror.tables = TableChoice::List(tables.map(str::to_string).to_vec());
        settings.audit.sample_one_in = 100;
    });
    freshet.wait_until_mirrored(&database, &tables);
    let checker = Arc::new(Checker {
        direct: cluster.address(),
        through: freshet.address(),
        database: database.clone(),
        acknowledged: Default::default(),
        stop: AtomicBool::new(false),
        reads: AtomicU64::new(0),
        local: AtomicU64::new(0),
        reasons: Default::default(),
    });
    // Verified while nothing changes: the first run of a shape needs two equal moments.
    let mut warm = checker.connect(checker.through);
    for sql in ["SELECT id, value FROM registers ORDER BY id", "SELECT sum(balance), count(*) FROM accounts"] {
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            run(&mut warm, sql);
            let (route, reason) = warm.last().expect("answers");
            if route != "relay" {
                break;
            }
            assert!(Instant::now() < limit, "{sql}: {reason}");
            pause();
        }
    }
    let (direct, through) = (checker.direct, checker.through);
    let asynchronous = "SET synchronous_commit = off";
    // Registers 0 and 1 are written past freshet, 2 and 3 through it.
    let bound: &'static [usize] = if past_is_bound { &[0, 1, 2, 3] } else { &[2, 3] };
    std::thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..2 {
            let checker = Arc::clone(&checker);
            readers.push(scope.spawn(move || checker.read(freshness, bound)));
        }
        let spawn = |work: Box<dyn FnOnce(&Checker) + Send>| {
            let checker = Arc::clone(&checker);
            scope.spawn(move || work(&checker))
        };
        let writers = vec![
            spawn(Box::new(move |c| c.write_register(direct, 0, ""))),
            spawn(Box::new(move |c| c.write_register(direct, 1, asynchronous))),
            spawn(Box::new(move |c| c.write_register(through, 2, ""))),
            spawn(Box::new(move |c| c.write_register(through, 3, asynchronous))),
            spawn(Box::new(move |c| c.transfer(direct, asynchronous, 1))),
            spawn(Box::new(move |c| c.transfer(through, "", 2))),
        ];
        // Thousands on a quiet machine. On a loaded one each may wait for as long as the budget of these tests lets it.
        let (end, limit) = (Instant::now() + duration(), Instant::now() + duration() + Duration::from_secs(60));
        let is_enough = || Instant::now() >= end && checker.reads.load(SeqCst) > READS_MIN || Instant::now() >= limit;
        while !is_enough() && readers.iter().chain(&writers).all(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        checker.stop.store(true, SeqCst);
    });
    let (reads, local) = (checker.reads.load(SeqCst), checker.local.load(SeqCst));
    let reasons = checker.reasons.lock().expect("not poisoned");
    assert!(reads > READS_MIN, "{reads} reads");
    assert!(local * 2 > reads, "only {local} of {reads} reads were answered here: {reasons:?}");
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

#[test]
fn exact_reads_see_every_acknowledged_commit() {
    check("exact", true);
}

#[test]
fn session_reads_see_every_commit_acknowledged_through_freshet() {
    check("session", false);
}

/// Received commits are shown when upstream shows them, which may be later: they are asked for until then, not at the next heartbeat,
/// of which there are two and a half a second.
#[test]
fn a_commit_that_is_received_before_upstream_shows_it_is_looked_for_again() {
    let cluster = Cluster::start(&["synchronous_commit=local"]);
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)");
    let freshet = Freshet::start(&cluster.url(&database), |settings| settings.mirror.tables = TableChoice::Auto);
    freshet.read_until_mirrored(&database, &["t".into()]);
    let connect = |address| RawClient::connect(address, "postgres", &database).expect("connects");
    let (mut writer, mut reader) = (connect(cluster.address()), connect(freshet.address()));
    run(&mut reader, "SET freshet.freshness = 'session'");
    let limit = Instant::now() + Duration::from_secs(60);
    let mut read = || (numbers(&mut reader, "SELECT v FROM t WHERE id = 1"), reader.last().expect("answers").0);
    while read().1 == "relay" {
        assert!(Instant::now() < limit, "not answered here");
    }
    // Who asks for it waits for a standby that never comes.
    cluster.psql(&database, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    cluster.reload();
    while cluster.psql(&database, "SHOW synchronous_standby_names") != "nobody" || read().1 == "relay" {
        assert!(Instant::now() < limit, "not reloaded, or not answered here");
    }
    run(&mut writer, "SET synchronous_commit = on");
    writer.send(&frame(b'Q', b"UPDATE t SET v = 1\0")).expect("sent");
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while cluster.psql(&database, waits) != "1" {
        assert!(Instant::now() < limit, "the writer does not wait");
    }
    let written = cluster.psql(&database, "SELECT pg_current_wal_flush_lsn()");
    let is_received = || {
        let applied = freshet.status(&database, "applied_lsn");
        cluster.psql(&database, &format!("SELECT '{applied}'::pg_lsn >= '{written}'")) == "t"
    };
    while !is_received() {
        assert!(Instant::now() < limit, "not received");
    }
    let barriers = || freshet.status(&database, "barriers").parse::<u64>().expect("a number");
    let (before, limit) = (barriers(), Instant::now() + Duration::from_secs(6));
    while barriers() < before + 30 {
        assert_eq!(read().0, [0], "upstream does not show it yet");
        assert!(Instant::now() < limit, "not looked for: {} barriers", barriers() - before);
    }
    cluster.psql(&database, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    writer.read_reply().expect("answers");
    let limit = Instant::now() + Duration::from_secs(30);
    while read().0 != [1] {
        assert!(Instant::now() < limit, "never shown");
    }
}
