//! The mirror against a real PostgreSQL: hand-over under writers, freshness, catalog changes, losses, leftovers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use freshet::freshness::exposure::BarrierNumber;
use freshet::freshness::{Freshness, FreshnessOptions, Served};
use freshet::metrics::wait_histogram;
use freshet::replication::supervise::{MirrorOptions, left_behind, uninstall};
use freshet::upstream::address::UpstreamAddress;
use freshet::upstream::connection::Connection;
use freshet_config::{FreshnessMode, TableChoice};
use freshet_engine::binder::{Reader, TableUse};
use freshet_engine::catalog::{RelationEntry, RelationId};
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::Keys;
use freshet_engine::snapshot::{Snapshot, VisibilitySnapshot};
use freshet_engine::types::access::value_at;
use freshet_engine::types::{Lsn, PgType, Value};
use freshet_tests::cluster::{Cluster, LOGIN_CLEARTEXT, LOGIN_MD5, LOGIN_SCRAM};
use tokio::runtime::Handle;
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;

const NO_BARRIER: BarrierNumber = BarrierNumber(0);

/// A mirror of one database of a cluster.
struct Mirrored {
    freshness: Freshness,
    shutdown: CancellationToken,
    url: String,
}

impl Mirrored {
    async fn start(cluster: &Cluster, database: &str, tables: TableChoice) -> Self {
        Self::with_options(cluster, database, |options| options.tables = tables.clone()).await
    }

    async fn with_options(cluster: &Cluster, database: &str, change: impl FnOnce(&mut MirrorOptions)) -> Self {
        let url = cluster.url(database);
        let mut options = MirrorOptions::new(UpstreamAddress::parse(&url).unwrap());
        change(&mut options);
        let shutdown = CancellationToken::new();
        // A generous budget: these tests share two processors with others.
        let freshness = FreshnessOptions { wait_budget: Duration::from_secs(5), ..FreshnessOptions::default() };
        let freshness =
            Freshness::start(options, freshness, wait_histogram(), &Handle::current(), shutdown.clone()).unwrap();
        Self { freshness, shutdown, url }
    }

    async fn until(&self, what: &str, condition: impl Fn(&Freshness) -> bool) {
        let started = Instant::now();
        while !condition(&self.freshness) {
            let statuses = self.freshness.statuses();
            assert!(started.elapsed() < Duration::from_secs(30), "{what}: {:?} {statuses:?}", self.freshness.report());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn relation(&self, name: &str) -> Option<RelationId> {
        match self.freshness.catalog().relation(Some("public"), name, &[])? {
            RelationEntry::Table(table) => Some(table.id),
            RelationEntry::View(_) | RelationEntry::Materialized(_) | RelationEntry::Other { .. } => None,
        }
    }

    async fn ready(&self) {
        self.until("the stream runs", |freshness| freshness.report().is_ready).await;
    }

    async fn mirrored(&self, name: &str) -> RelationId {
        self.ready().await;
        self.until("the table is in the catalog", |_| self.relation(name).is_some()).await;
        self.freshness.want_table(self.relation(name).unwrap());
        self.until("the table is mirrored", |_| self.state(name) == "mirrored").await;
        self.relation(name).unwrap()
    }

    fn state(&self, name: &str) -> String {
        let statuses = self.freshness.statuses();
        statuses.iter().find(|status| &*status.schema.name == name).map_or("unknown", |status| status.state).to_string()
    }

    /// In exact mode, tried again while the catalog or the stream moves.
    async fn exact(&self, relations: &[RelationId]) -> Served {
        let started = Instant::now();
        loop {
            match self.freshness.acquire(FreshnessMode::Exact, relations, NO_BARRIER).await {
                Ok(served) => return served,
                Err(reason) => assert!(started.elapsed() < Duration::from_secs(30), "{reason}"),
            }
        }
    }

    async fn client(&self) -> Client {
        connect(&self.url).await
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.freshness.stopped().await;
    }
}

/// Waits until upstream is as it should be.
async fn wait_until(what: &str, is_so: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < Duration::from_secs(30), "{what}: not so after 30 s");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The rows of a table as sorted text, one value after the other.
fn rows(snapshot: &Snapshot, relation: RelationId) -> Vec<String> {
    let table = &snapshot.tables[&relation];
    let mut rows = Vec::new();
    for chunk in table.chunks.iter() {
        for row in (0..chunk.chunk.rows).filter(|row| chunk.is_alive(*row)) {
            let cells =
                table.schema.columns.iter().zip(&chunk.chunk.columns).filter_map(|(column, array)| {
                    Some(format!("{:?}", value_at(array.as_ref(), column.pg_type?, row)))
                });
            rows.push(cells.collect::<Vec<_>>().join(","));
        }
    }
    rows.sort();
    assert_eq!(rows.len(), table.rows);
    rows
}

/// The `(bigint, bigint)` rows of a table with a key below `limit`.
fn pairs(snapshot: &Snapshot, relation: RelationId, limit: i64) -> BTreeMap<i64, i64> {
    let mut pairs = BTreeMap::new();
    for chunk in snapshot.tables[&relation].chunks.iter() {
        for row in (0..chunk.chunk.rows).filter(|row| chunk.is_alive(*row)) {
            let cell = |column: usize| match value_at(chunk.chunk.columns[column].as_ref(), PgType::Int8, row) {
                Value::Int8(number) => number,
                other => panic!("{other:?}"),
            };
            let key = cell(0);
            if key < limit {
                assert_eq!(pairs.insert(key, cell(1)), None, "a key twice");
            }
        }
    }
    pairs
}

async fn pairs_upstream(client: &Client, limit: i64) -> BTreeMap<i64, i64> {
    let rows = client.query("SELECT id, v FROM register WHERE id < $1", &[&limit]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// One session that changes `register`: several rows a transaction, savepoints, rollbacks; `acknowledged` rises with
/// every acknowledged commit to its register's value.
async fn write(url: String, writer: i64, acknowledged: Arc<AtomicI64>, stop: Arc<AtomicBool>) {
    let client = connect(&url).await;
    if writer % 2 == 1 {
        client.batch_execute("SET synchronous_commit = off").await.unwrap();
    }
    let mut state = 0x9e37_79b9_u64.wrapping_mul(writer as u64 + 1);
    let mut chance = move |percent: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 100 < percent
    };
    while !stop.load(Ordering::SeqCst) {
        client.batch_execute("BEGIN").await.unwrap();
        let update = format!("UPDATE register SET v = v + 1 WHERE id = {writer} RETURNING v");
        let value: i64 = client.query_one(&update, &[]).await.unwrap().get(0);
        if chance(50) {
            let key = 200 + writer * 50 + value % 50;
            let upsert = format!(
                "SAVEPOINT s; UPDATE register SET v = v + 1 WHERE id = {};
                 INSERT INTO register VALUES ({key}, {value}) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
                100 + writer
            );
            client.batch_execute(&upsert).await.unwrap();
            if chance(30) {
                client.batch_execute("ROLLBACK TO s").await.unwrap();
            }
        }
        if chance(20) {
            let key = 200 + writer * 50 + (value * 7) % 50;
            client.batch_execute(&format!("DELETE FROM register WHERE id = {key}")).await.unwrap();
        }
        if chance(10) {
            let key = 1000 + writer * 2 + value % 2;
            let moved = format!("UPDATE register SET id = {key} WHERE id = {}", 1000 + writer * 2 + (value + 1) % 2);
            client.batch_execute(&moved).await.unwrap();
        }
        if chance(10) {
            client.batch_execute("ROLLBACK").await.unwrap();
        } else {
            client.batch_execute("COMMIT").await.unwrap();
            acknowledged.store(value, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(u64::from(chance(50)) * 3)).await;
    }
}

/// A session that has written and idles in its transaction: the log's end stays unflushed.
async fn idle_in_transaction(url: String, stop: Arc<AtomicBool>) {
    let client = connect(&url).await;
    while !stop.load(Ordering::SeqCst) {
        client.batch_execute("BEGIN; INSERT INTO other VALUES (1)").await.unwrap();
        tokio::time::sleep(Duration::from_millis(150)).await;
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

const REGISTER: &str = "CREATE TABLE register (id bigint PRIMARY KEY, v bigint) WITH (fillfactor = 10);
    CREATE TABLE other (i int);
    INSERT INTO register SELECT g, 0 FROM generate_series(0, 9) g;
    INSERT INTO register SELECT g, 0 FROM generate_series(100, 109) g;
    INSERT INTO register SELECT 1000 + 2 * g, g FROM generate_series(0, 9) g;
    INSERT INTO register SELECT g, g FROM generate_series(10000, 100000) g";

/// The keys that are written.
const WRITTEN: i64 = 10_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hand_over_under_writers_equals_postgresql_and_reads_are_fresh() {
    const WRITERS: i64 = 4;
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, REGISTER);
    let url = cluster.url(&database);
    let stop = Arc::new(AtomicBool::new(false));
    let acknowledged: Vec<Arc<AtomicI64>> = (0..WRITERS).map(|_| Arc::default()).collect();
    let mut tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            tokio::spawn(write(url.clone(), writer, Arc::clone(&acknowledged[writer as usize]), Arc::clone(&stop)))
        })
        .collect();
    tasks.push(tokio::spawn(idle_in_transaction(url.clone(), Arc::clone(&stop))));

    let mirror = Mirrored::start(cluster, &database, TableChoice::Auto).await;
    let client = mirror.client().await;
    let (mut equal, mut fresh, mut later) = (0, 0, 0);
    for round in 0..4 {
        let register = mirror.mirrored("register").await;
        let (started, enough) = (Instant::now(), 11 * (round + 1));
        let is_over = |fresh: u64, elapsed| elapsed > 1_200 && fresh >= enough || elapsed > 15_000;
        while !is_over(fresh, started.elapsed().as_millis()) {
            // Fresh: what was acknowledged before the read is seen; nothing is seen that PostgreSQL does not show after.
            let before: Vec<i64> = acknowledged.iter().map(|value| value.load(Ordering::SeqCst)).collect();
            let Ok(served) = mirror.freshness.acquire(FreshnessMode::Exact, &[register], NO_BARRIER).await else {
                later += 1;
                continue;
            };
            let seen = pairs(&served.snapshot, register, 10);
            let after = pairs_upstream(&client, 10).await;
            for (writer, acknowledged) in before.iter().enumerate() {
                let seen = seen[&(writer as i64)];
                assert!(seen >= *acknowledged, "round {round}, writer {writer}: {seen} < {acknowledged}");
                assert!(
                    seen <= after[&(writer as i64)],
                    "round {round}, writer {writer}: seen before PostgreSQL shows it"
                );
            }
            fresh += 1;
            equal += u32::from(is_equal_under_one_snapshot(&mirror, &client, register).await);
        }
        // The next round copies again, under the same writers.
        mirror.freshness.replication().request_restart();
        mirror.until("started over", |freshness| freshness.report().stream.restarts > round).await;
    }
    stop.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    let register = mirror.mirrored("register").await;
    let served = mirror.exact(&[register]).await;
    assert!(pairs(&served.snapshot, register, i64::MAX) == pairs_upstream(&client, i64::MAX).await);
    assert!(equal >= 20 && fresh >= 40, "compared {equal}, fresh {fresh}, relayed {later}");
    mirror.stop().await;
}

/// Compares with PostgreSQL under the very same snapshot. False: the moment could not be had here.
async fn is_equal_under_one_snapshot(mirror: &Mirrored, client: &Client, relation: RelationId) -> bool {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.unwrap();
    let moment = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text";
    let moment = client.query_one(moment, &[]).await.unwrap();
    let upstream = pairs_upstream(client, WRITTEN).await;
    client.batch_execute("COMMIT").await.unwrap();
    let visible = VisibilitySnapshot::parse(moment.get(0)).unwrap();
    let insert: Lsn = moment.get::<_, &str>(1).parse().unwrap();
    let target = match insert.0 % 8192 {
        header @ (24 | 40) => Lsn(insert.0 - header),
        _ => insert,
    };
    let replication = mirror.freshness.replication();
    let mut applied = replication.applied();
    let arrived = applied.wait_for(|applied| *applied >= target);
    if tokio::time::timeout(Duration::from_secs(2), arrived).await.is_err() {
        return false;
    }
    let catalog = mirror.freshness.catalog();
    // A later barrier may have let go of this moment, or it is no prefix.
    let Ok(snapshot) = replication.snapshot_at(&visible, target, &[relation], &catalog) else { return false };
    let mirrored = pairs(&snapshot, relation, WRITTEN);
    let differs = mirrored.iter().find(|(key, value)| upstream.get(key) != Some(value));
    assert_eq!((mirrored.len(), differs), (upstream.len(), None), "under {visible:?}");
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn truncate_key_changes_and_toasted_values_are_followed() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE t (id int PRIMARY KEY, a text, n numeric(10,2), at timestamptz);
         ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
         INSERT INTO t SELECT g, repeat('x', g * 1000), g, '2020-01-01' FROM generate_series(1, 10) g",
    );
    let mirror = Mirrored::start(cluster, &database, TableChoice::List(vec!["t".into()])).await;
    let t = mirror.mirrored("t").await;
    let client = mirror.client().await;
    for (sql, expected) in [
        ("UPDATE t SET n = n + 1", 10),
        ("UPDATE t SET id = id + 100 WHERE id > 5", 10),
        ("DELETE FROM t WHERE id = 1", 9),
        ("TRUNCATE t", 0),
        ("INSERT INTO t VALUES (1, NULL, NULL, NULL), (2, 'b', 2, '2021-01-01')", 2),
        ("BEGIN; TRUNCATE t; INSERT INTO t VALUES (3, 'c', 3, now()); COMMIT", 1),
    ] {
        client.batch_execute(sql).await.unwrap();
        let served = mirror.exact(&[t]).await;
        assert_eq!(served.snapshot.tables[&t].rows, expected, "{sql}");
        let lengths = client.query_one("SELECT coalesce(sum(length(a)), 0)::int8 FROM t", &[]).await.unwrap();
        let text_of = |row: &String| row.split('"').nth(1).map_or(0, str::len);
        let mirrored: usize = rows(&served.snapshot, t).iter().map(text_of).sum();
        assert_eq!(mirrored as i64, lengths.get::<_, i64>(0), "{sql}");
    }
    let copies = mirror.freshness.replication().counters().copies.load(Ordering::SeqCst);
    assert_eq!(copies, 1, "TRUNCATE needs no new copy");
    mirror.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn catalog_changes_are_in_force_for_the_next_read_and_copy_only_what_changed() {
    // Of its own: roles that other tests make concern every database of a cluster.
    let cluster = &Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE a (id int PRIMARY KEY, x int); INSERT INTO a VALUES (1, 1);
         CREATE TABLE b (id int PRIMARY KEY); INSERT INTO b VALUES (1); CREATE SCHEMA earlier",
    );
    let mirror = Mirrored::start(cluster, &database, TableChoice::Auto).await;
    let (a, b) = (mirror.mirrored("a").await, mirror.mirrored("b").await);
    let client = mirror.client().await;
    let copies = || mirror.freshness.replication().counters().copies.load(Ordering::SeqCst);
    let exact = || mirror.freshness.acquire(FreshnessMode::Exact, std::slice::from_ref(&a), NO_BARRIER);
    assert_eq!(mirror.exact(&[a, b]).await.snapshot.tables.len(), 2);
    assert_eq!(copies(), 2);

    // Each of these matters for `a`; the read right after must not be answered by the old catalog.
    for (sql, copies_again) in [
        ("CREATE TABLE earlier.a (other int)", 0),
        ("CREATE FUNCTION public.lower(int) RETURNS int LANGUAGE sql AS 'SELECT 1'", 0),
        ("REVOKE SELECT ON a FROM PUBLIC; GRANT SELECT ON a TO login_md5", 0),
        ("CREATE ROLE some_group; GRANT some_group TO login_md5", 0),
        ("GRANT USAGE ON SCHEMA earlier TO login_md5", 0),
        ("GRANT SELECT (x) ON a TO login_md5", 0),
        ("ALTER TABLE a ALTER COLUMN x SET DEFAULT 5", 0),
        ("ALTER TABLE a ALTER COLUMN x SET STATISTICS 50", 0),
        ("BEGIN; TRUNCATE a; INSERT INTO a VALUES (1, 1); ALTER TABLE a ALTER COLUMN x DROP DEFAULT; COMMIT", 1),
        ("ALTER TABLE a ADD COLUMN y int DEFAULT 7", 1),
        ("ALTER TABLE a ALTER COLUMN x TYPE int USING x + 1", 1),
        ("ALTER TABLE a RENAME COLUMN x TO z", 1),
        ("ALTER TABLE a ENABLE ROW LEVEL SECURITY; ALTER TABLE a DISABLE ROW LEVEL SECURITY", 0),
    ] {
        mirror.mirrored("a").await;
        mirror.exact(&[a]).await;
        let before = (copies(), mirror.freshness.catalog().version);
        client.batch_execute(sql).await.unwrap();
        if let Ok(served) = exact().await {
            assert!(served.snapshot.catalog.version > before.1, "{sql}: answered by the old catalog");
        }
        let served = {
            mirror.mirrored("a").await;
            mirror.exact(&[a]).await
        };
        assert!(served.snapshot.catalog.version > before.1, "{sql}: the catalog was read again");
        assert_eq!(copies() - before.0, copies_again, "{sql}: copies");
    }
    let x = rows(&mirror.exact(&[a]).await.snapshot, a);
    assert_eq!(x.len(), 1);
    assert!(x[0].contains('2') && x[0].contains('7'), "rewritten rows were copied again: {x:?}");

    // None of these matters: no catalog is read again, no reader relayed. A reload that an earlier statement caused may still be
    // under way, so a quiet round is waited for; one that mattered would be in every round.
    let mut rounds = 0;
    loop {
        mirror.exact(&[a]).await;
        let before = (copies(), mirror.freshness.catalog().version);
        for sql in [
            "ANALYZE a",
            "VACUUM a",
            "CREATE TEMP TABLE a (i int)",
            "CREATE INDEX ON public.a (y)",
            "COMMENT ON TABLE b IS 'x'",
            "DROP TABLE pg_temp.a",
        ] {
            client.batch_execute(sql).await.unwrap();
            assert!(exact().await.is_ok(), "{sql}");
        }
        let after = (copies(), mirror.freshness.catalog().version);
        rounds += 1;
        if after == before {
            break;
        }
        assert!(rounds < 3, "{before:?} became {after:?}");
    }

    client.batch_execute("DROP TABLE public.a").await.unwrap();
    assert!(exact().await.is_err(), "a dropped table is not answered");
    // A reader of `b` alone is not concerned; the next heartbeat notices.
    mirror.exact(&[b]).await;
    mirror.until("it is forgotten", |freshness| !freshness.catalog().tables.contains_key(&a)).await;
    mirror.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_whose_writes_would_break_is_not_published() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE keyless (id int); INSERT INTO keyless VALUES (1);
         CREATE TABLE loses (id int PRIMARY KEY); INSERT INTO loses VALUES (1);
         CREATE TABLE whole (id int); ALTER TABLE whole REPLICA IDENTITY FULL; INSERT INTO whole VALUES (1), (1)",
    );
    let tables = ["keyless", "loses", "whole"].map(String::from).to_vec();
    let mirror = Mirrored::start(cluster, &database, TableChoice::List(tables)).await;
    let whole = mirror.mirrored("whole").await;
    mirror.mirrored("loses").await;
    let client = mirror.client().await;
    client.batch_execute("UPDATE keyless SET id = 2; DELETE FROM keyless").await.unwrap();
    let statuses = mirror.freshness.statuses();
    let keyless = statuses.iter().find(|status| &*status.schema.name == "keyless").unwrap();
    assert_eq!(keyless.state, "relayed");
    assert_eq!(keyless.remedy, "ALTER TABLE public.keyless REPLICA IDENTITY FULL;");

    client.batch_execute("DELETE FROM whole WHERE ctid = (SELECT min(ctid) FROM whole)").await.unwrap();
    assert_eq!(mirror.exact(&[whole]).await.snapshot.tables[&whole].rows, 1);

    // It loses its key: within a heartbeat it is taken out of the publication, and can be written again.
    client.batch_execute("ALTER TABLE loses DROP CONSTRAINT loses_pkey").await.unwrap();
    wait_until("it can be written", async || client.batch_execute("UPDATE loses SET id = 2").await.is_ok()).await;
    assert_eq!(mirror.state("loses"), "relayed");
    mirror.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_are_noticed_at_once_and_mended_and_nothing_is_left_behind() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let mirror = Mirrored::start(&cluster, &database, TableChoice::List(vec!["t".into()])).await;
    let t = mirror.mirrored("t").await;
    let client = mirror.client().await;
    let restarts = || mirror.freshness.report().stream.restarts;

    // The walsender.
    let before = restarts();
    client.batch_execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (2)").await.unwrap();
    let served = mirror.freshness.acquire(FreshnessMode::Exact, &[t], NO_BARRIER).await;
    assert!(served.is_err() || served.unwrap().snapshot.tables[&t].rows == 2);
    mirror.until("it starts over", |_| restarts() > before).await;
    mirror.mirrored("t").await;
    assert_eq!(mirror.exact(&[t]).await.snapshot.tables[&t].rows, 2);

    // The barrier connection (and whatever else freshet has open).
    let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'freshet%' AND query LIKE '%pg_current_snapshot%' AND pid <> pg_backend_pid()";
    client.batch_execute(all).await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (3)").await.unwrap();
    mirror.mirrored("t").await;
    assert_eq!(mirror.exact(&[t]).await.snapshot.tables[&t].rows, 3);

    // Tampering with the publication.
    let publication: String =
        client.query_one("SELECT pubname FROM pg_publication", &[]).await.unwrap().get::<_, &str>(0).to_string();
    client
        .batch_execute(&format!("ALTER PUBLICATION {publication} DROP TABLE t; INSERT INTO t VALUES (4)"))
        .await
        .unwrap();
    let served = mirror.freshness.acquire(FreshnessMode::Exact, &[t], NO_BARRIER).await;
    assert_eq!(served.map(|served| served.snapshot.tables[&t].rows).unwrap_err(), UpstreamReason::CatalogChanged);
    mirror.until("it is published and copied again", |_| mirror.state("t") == "mirrored").await;
    assert_eq!(mirror.exact(&[t]).await.snapshot.tables[&t].rows, 4);

    // The postmaster.
    drop(client);
    cluster.kill();
    mirror.until("the loss is noticed", |freshness| !freshness.report().is_ready).await;
    assert!(mirror.freshness.acquire(FreshnessMode::Session, &[t], NO_BARRIER).await.is_err());
    cluster.restart();
    cluster.psql(&database, "INSERT INTO t VALUES (5)");
    mirror.mirrored("t").await;
    assert_eq!(mirror.exact(&[t]).await.snapshot.tables[&t].rows, 5);

    let url = mirror.url.clone();
    mirror.stop().await;
    let leftovers = "SELECT (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_publication)";
    assert_eq!(cluster.psql(&database, leftovers), "0|0");

    // What a killed freshet leaves behind, uninstall removes.
    let others = "CREATE PUBLICATION freshet_mine; CREATE ROLE app_of_mirror LOGIN PASSWORD 'app'";
    cluster.psql(&database, &format!("CREATE PUBLICATION freshet_0123456789ab; {others}"));
    let address = |url: &str| UpstreamAddress::parse(url).unwrap();
    let (as_app, as_owner) = (address(&url.replacen("postgres@", "app_of_mirror:app@", 1)), address(&url));
    assert!(uninstall(&as_app, "freshet").await.unwrap().is_empty());
    assert!(left_behind(&as_app, "freshet").await.unwrap()[0].why.contains("belongs to postgres"));
    assert_eq!(uninstall(&as_owner, "freshet").await.unwrap(), ["freshet_0123456789ab"]);
}

/// Who vacuumed a table that had lost its key, or made an index of it concurrently, kept it in the publication: it could not be updated
/// for as long as that took.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_lost_its_key_can_be_written_also_while_it_cannot_be_unpublished() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE loses (id int PRIMARY KEY); INSERT INTO loses VALUES (1)");
    let mirror = Mirrored::start(cluster, &database, TableChoice::List(vec!["loses".into()])).await;
    mirror.mirrored("loses").await;
    let (owner, vacuum, client) = (mirror.client().await, mirror.client().await, mirror.client().await);
    owner.batch_execute("BEGIN; ALTER TABLE loses DROP CONSTRAINT loses_pkey").await.unwrap();
    let locking = tokio::spawn(async move {
        vacuum.batch_execute("BEGIN; LOCK TABLE loses IN SHARE UPDATE EXCLUSIVE MODE").await.unwrap();
        vacuum
    });
    let is_in_line =
        "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'loses'::regclass AND mode = 'ShareUpdateExclusiveLock'
                                                         AND granted = $1)";
    let is_held = async |granted: bool| client.query_one(is_in_line, &[&granted]).await.unwrap().get::<_, bool>(0);
    wait_until("somebody waits for the lock", async || is_held(false).await).await;
    owner.batch_execute("COMMIT").await.unwrap();
    let vacuum = locking.await.unwrap();
    wait_until("it can be written", async || client.batch_execute("UPDATE loses SET id = 2").await.is_ok()).await;
    assert!(is_held(true).await, "there was nobody in the way");
    drop(vacuum);
    mirror.stop().await;
}

/// A table is published before it is copied. One that lost its identity meanwhile was noticed when it was to be copied at last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_loses_its_identity_before_its_copy_can_be_written() {
    // Of its own: a slot waits for the writer.
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE t (id int NOT NULL, n int); CREATE UNIQUE INDEX t_id ON t (id); INSERT INTO t VALUES (1, 1), (2, 2);
         ALTER TABLE t REPLICA IDENTITY USING INDEX t_id",
    );
    let mirror = Mirrored::start(&cluster, &database, TableChoice::Auto).await;
    mirror.ready().await;
    mirror.until("the table is in the catalog", |_| mirror.relation("t").is_some()).await;
    let (writer, owner, client) = (mirror.client().await, mirror.client().await, mirror.client().await);
    writer.batch_execute("BEGIN; INSERT INTO t VALUES (3, 3)").await.unwrap();
    mirror.freshness.want_table(mirror.relation("t").unwrap());
    let is_so = async |sql: &str| client.query_one(sql, &[]).await.unwrap().get::<_, bool>(0);
    let is_published = "SELECT EXISTS (SELECT FROM pg_publication_rel)";
    wait_until("it is published", async || is_so(is_published).await).await;
    // It waits for the writer, as the copy does, with the index already of no use.
    let dropping = tokio::spawn(async move { owner.batch_execute("DROP INDEX CONCURRENTLY t_id").await });
    let is_valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 't_id'::regclass";
    wait_until("the index is of no use", async || !is_so(is_valid).await).await;
    wait_until("it can be written", async || client.batch_execute("UPDATE t SET n = 5 WHERE id = 1").await.is_ok())
        .await;
    assert!(!dropping.is_finished(), "the writer was not waited for");
    writer.batch_execute("COMMIT").await.unwrap();
    dropping.await.unwrap().unwrap();
    mirror.stop().await;
}

/// A walsender that is to send an aclitem[] in binary ends: everything was copied again at every change of such a table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_cannot_be_sent_in_binary_does_not_end_the_stream() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let odd = ["acls", "rights", "over_domain", "of_catalog"];
    cluster.psql(
        &database,
        "CREATE TYPE owned AS (a int, acl aclitem); CREATE DOMAIN acls_of AS aclitem[];
         CREATE TABLE acls (id int PRIMARY KEY, c aclitem[]); CREATE TABLE rights (id int PRIMARY KEY, c owned);
         CREATE TABLE over_domain (id int PRIMARY KEY, c acls_of); CREATE TABLE plain (id int PRIMARY KEY, c aclitem);
         CREATE TABLE of_catalog (id int PRIMARY KEY, c pg_namespace)",
    );
    let tables = odd.iter().chain(&["plain"]).map(|table| table.to_string()).collect();
    let mirror = Mirrored::start(cluster, &database, TableChoice::List(tables)).await;
    let plain = mirror.mirrored("plain").await;
    let why = |name: &str| {
        let statuses = mirror.freshness.statuses();
        statuses
            .iter()
            .find(|status| &*status.schema.name == name)
            .map_or(String::new(), |status| status.reason.clone())
    };
    for table in odd {
        mirror.until("it is refused", |_| why(table).ends_with("cannot send in binary")).await;
    }
    let client = mirror.client().await;
    client
        .batch_execute(
            "INSERT INTO acls VALUES (1, '{postgres=r/postgres}'), (2, '{}'); INSERT INTO rights VALUES (1, '(1,postgres=r/postgres)');
             INSERT INTO over_domain VALUES (1, '{postgres=r/postgres}'); INSERT INTO plain VALUES (1, 'postgres=r/postgres');
             INSERT INTO of_catalog SELECT 1, n FROM pg_namespace n WHERE nspname = 'public'",
        )
        .await
        .unwrap();
    assert_eq!(mirror.exact(&[plain]).await.snapshot.tables[&plain].rows, 1);
    assert_eq!(mirror.freshness.report().stream.restarts, 0);
    mirror.stop().await;
}

/// While no stream could be begun, the tables of the one before stayed published: one that lost its key could not be written any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_table_is_published_while_no_stream_runs() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    cluster.psql(
        &database,
        &format!(
            "CREATE ROLE mirrorer LOGIN REPLICATION; ALTER TABLE t OWNER TO mirrorer;
                  GRANT CREATE ON DATABASE {database} TO mirrorer; GRANT USAGE ON SCHEMA public TO mirrorer"
        ),
    );
    let url = cluster.url(&database).replace("postgres@", "mirrorer@");
    let mirror = Mirrored::with_options(&cluster, &database, |options| {
        options.address = UpstreamAddress::parse(&url).unwrap();
        options.tables = TableChoice::List(vec!["t".into()]);
    })
    .await;
    mirror.mirrored("t").await;
    let client = mirror.client().await;
    client.batch_execute("ALTER ROLE mirrorer NOREPLICATION").await.unwrap();
    client.batch_execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication").await.unwrap();
    let is_refused =
        |freshness: &Freshness| matches!(freshness.replication().running(), Err(UpstreamReason::RelayOnly(_)));
    mirror.until("the next life is refused", is_refused).await;
    client.batch_execute("ALTER TABLE t DROP CONSTRAINT t_pkey").await.unwrap();
    wait_until("it can be written", async || client.batch_execute("UPDATE t SET id = id + 1").await.is_ok()).await;
    mirror.stop().await;
}

fn signal(signal: &str, process: i32) {
    let sent = std::process::Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {signal} {process}");
}

/// Ends what it was stopped in the middle of.
struct Stopped(i32);

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("-CONT", self.0);
    }
}

/// The walsender, and whether it does something else than wait.
async fn walsender(client: &Client) -> (i32, bool) {
    let look = "SELECT pid, coalesce(wait_event, '') NOT LIKE 'WalSender%' FROM pg_stat_activity WHERE backend_type = 'walsender'";
    let row = client.query_one(look, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// What sets the replica identity of a table in use asked for its lock for 3 s, over and over: all others queued behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setting_the_identity_of_a_table_in_use_holds_nobody_up() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE keyless (id int); INSERT INTO keyless VALUES (1)");
    let mirror = Mirrored::with_options(cluster, &database, |options| options.set_replica_identity_full = true).await;
    mirror.ready().await;
    mirror.until("the table is in the catalog", |_| mirror.relation("keyless").is_some()).await;
    let (reader, other) = (mirror.client().await, mirror.client().await);
    reader.batch_execute("BEGIN; LOCK TABLE keyless IN ACCESS SHARE MODE").await.unwrap();
    mirror.freshness.want_table(mirror.relation("keyless").unwrap());
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        let asked = Instant::now();
        other.batch_execute("SELECT FROM keyless").await.unwrap();
        assert!(asked.elapsed() < Duration::from_millis(1_500), "it waited for {:?}", asked.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    reader.batch_execute("COMMIT").await.unwrap();
    let keyless = mirror.mirrored("keyless").await;
    assert_eq!(mirror.exact(&[keyless]).await.snapshot.tables[&keyless].rows, 1);
    mirror.stop().await;
}

/// Who waited for a row of a table made its copy be given up, again and again where somebody always waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_goes_on_while_others_wait_for_rows() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    // So many cells that the copy takes long enough to be met while it runs.
    let cells: String = (1..60).map(|n| format!(", c{n} int NOT NULL DEFAULT {n}")).collect();
    cluster.psql(
        &database,
        &format!(
            "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL DEFAULT 0{cells});
             INSERT INTO t SELECT n FROM generate_series(1, 300000) n"
        ),
    );
    let mirror = Mirrored::with_options(&cluster, &database, |options| options.copy_workers = 1).await;
    mirror.ready().await;
    mirror.until("the table is in the catalog", |_| mirror.relation("t").is_some()).await;
    let (client, first) = (mirror.client().await, mirror.client().await);
    mirror.freshness.want_table(mirror.relation("t").unwrap());
    let copying = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT%' AND state = 'active'";
    let copying = client.prepare(copying).await.unwrap();
    let started = Instant::now();
    let stopped = loop {
        assert!(started.elapsed() < Duration::from_secs(30), "it is never found copying");
        if let Some(row) = client.query_opt(&copying, &[]).await.unwrap() {
            let process = row.get(0);
            signal("-STOP", process);
            break Stopped(process);
        }
    };
    let change = "UPDATE t SET n = n + 1 WHERE id = 1";
    first.batch_execute(&format!("BEGIN; {change}")).await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let other = mirror.client().await;
        waiting.push(tokio::spawn(async move { other.batch_execute(change).await }));
    }
    // The second of them waits for the first to have the row.
    let is_waited_for = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 't'::regclass AND NOT granted)";
    let is_waited_for = async || client.query_one(is_waited_for, &[]).await.unwrap().get::<_, bool>(0);
    wait_until("the row is waited for", is_waited_for).await;
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        assert_eq!(mirror.state("t"), "copying");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stopped);
    first.batch_execute("COMMIT").await.unwrap();
    for waiting in waiting {
        waiting.await.unwrap().unwrap();
    }
    let t = mirror.mirrored("t").await;
    assert_eq!(mirror.exact(&[t]).await.snapshot.tables[&t].rows, 300_000);
    mirror.stop().await;
}

/// Tables that an open transaction has written can only be copied when it has ended. They held up all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_copied_while_some_wait_for_their_writers() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    let tables: Vec<String> = (0..6).map(|n| format!("t{n}")).collect();
    for table in &tables {
        cluster.psql(&database, &format!("CREATE TABLE {table} (id int PRIMARY KEY); INSERT INTO {table} VALUES (1)"));
    }
    let mirror = Mirrored::start(&cluster, &database, TableChoice::Auto).await;
    mirror.ready().await;
    mirror.until("the tables are in the catalog", |_| mirror.relation("t5").is_some()).await;
    let writer = mirror.client().await;
    let written: String = tables[..5].iter().map(|table| format!("; INSERT INTO {table} VALUES (2)")).collect();
    writer.batch_execute(&format!("BEGIN{written}")).await.unwrap();
    for table in &tables[..5] {
        mirror.freshness.want_table(mirror.relation(table).unwrap());
    }
    mirror.until("they are copied", |_| tables[..5].iter().all(|table| mirror.state(table) == "copying")).await;
    mirror.freshness.want_table(mirror.relation("t5").unwrap());
    mirror.mirrored("t5").await;
    assert!(tables[..5].iter().all(|table| mirror.state(table) == "copying"));
    writer.batch_execute("COMMIT").await.unwrap();
    for table in &tables[..5] {
        let relation = mirror.mirrored(table).await;
        assert_eq!(mirror.exact(&[relation]).await.snapshot.tables[&relation].rows, 2);
    }
    mirror.stop().await;
}

/// A walsender that decodes what nobody here has asked for says nothing for long: it is not taken for dead, nothing is copied again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walsender_that_is_busy_is_waited_for_and_one_that_is_stopped_is_not() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE bulk (a int, b text)");
    let mirror = Mirrored::start(&cluster, &database, TableChoice::List(vec!["t".into()])).await;
    let t = mirror.mirrored("t").await;
    let (client, other) = (mirror.client().await, mirror.client().await);
    let restarts = || mirror.freshness.report().stream.restarts;
    let read = || mirror.freshness.acquire(FreshnessMode::Exact, std::slice::from_ref(&t), NO_BARRIER);
    let before = restarts();

    let writing = tokio::spawn(async move {
        let bulk = "INSERT INTO bulk SELECT n, md5(n::text) FROM generate_series(1, 1000000) n";
        client.batch_execute(bulk).await.unwrap();
        client
    });
    let started = Instant::now();
    let stopped = loop {
        assert!(started.elapsed() < Duration::from_secs(30), "it is never found busy");
        if let (process, true) = walsender(&other).await {
            signal("-STOP", process);
            let stopped = Stopped(process);
            // It may have come to its end just then.
            tokio::time::sleep(Duration::from_millis(100)).await;
            if walsender(&other).await.1 {
                break stopped;
            }
        }
    };
    let client = writing.await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    let until = Instant::now() + Duration::from_secs(14);
    while Instant::now() < until {
        assert!(read().await.is_err(), "it has not come here");
    }
    assert_eq!(restarts(), before, "it was busy: {:?}", mirror.freshness.report());
    drop(stopped);
    assert_eq!(rows(&mirror.exact(&[t]).await.snapshot, t), ["Int4(1)"]);
    assert_eq!(restarts(), before);

    // Stopped where it has nothing to do.
    let started = Instant::now();
    while walsender(&other).await.1 {
        assert!(started.elapsed() < Duration::from_secs(30), "it is always busy");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (process, _) = walsender(&other).await;
    signal("-STOP", process);
    let stopped = Stopped(process);
    client.batch_execute("INSERT INTO t VALUES (2)").await.unwrap();
    let started = Instant::now();
    while restarts() == before {
        if let Ok(served) = read().await {
            assert_eq!(rows(&served.snapshot, t), ["Int4(1)", "Int4(2)"], "never stale");
        }
        assert!(started.elapsed() < Duration::from_secs(25), "it is waited for: {:?}", mirror.freshness.report());
    }
    assert_eq!(rows(&mirror.exact(&[t]).await.snapshot, t), ["Int4(1)", "Int4(2)"]);
    drop(stopped);
    mirror.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_mode_waits_only_after_writes_and_never_sees_time_run_backwards() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (0)");
    let mirror = Mirrored::start(cluster, &database, TableChoice::Auto).await;
    let t = mirror.mirrored("t").await;
    let client = mirror.client().await;
    mirror
        .until("something is exposed", |freshness| {
            freshness.try_acquire(FreshnessMode::Session, &[t], &Keys::default(), NO_BARRIER).is_some()
        })
        .await;

    let (mut required, mut waits) = (NO_BARRIER, 0);
    for id in 1..=50 {
        client.batch_execute(&format!("INSERT INTO t VALUES ({id})")).await.unwrap();
        match id % 3 {
            0 => mirror.freshness.note_rows_written(),
            1 => mirror.freshness.note_write_acknowledged(),
            // A reply relayed to this session raises its own position only.
            _ => required = mirror.freshness.required_now(),
        }
        // A barrier is due. Where this thread was held up, one may have come by itself; then it shows the write.
        match mirror.freshness.try_acquire(FreshnessMode::Session, &[t], &Keys::default(), required) {
            None => waits += 1,
            Some(found) => assert_eq!(found.served.snapshot.tables[&t].rows, id + 1, "older than the write"),
        }
        let served = mirror.freshness.acquire(FreshnessMode::Session, &[t], required).await.unwrap();
        assert_eq!(served.snapshot.tables[&t].rows, id + 1);
    }
    assert!(waits > 25, "{waits} of 50 had to wait");
    // Written past freshet: seen soon after, without anyone asking for it.
    client.batch_execute("INSERT INTO t VALUES (1000)").await.unwrap();
    mirror
        .until("the change is exposed", |freshness| {
            freshness
                .try_acquire(FreshnessMode::Session, &[t], &Keys::default(), NO_BARRIER)
                .is_some_and(|found| found.served.snapshot.tables[&t].rows == 52)
        })
        .await;
    mirror.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn privileges_are_upstreams() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE t (id int PRIMARY KEY, secret int);
         CREATE ROLE reader_of_id; CREATE ROLE reader_of_nothing; GRANT SELECT (id) ON t TO reader_of_id",
    );
    let mirror = Mirrored::start(cluster, &database, TableChoice::Auto).await;
    let t = mirror.mirrored("t").await;
    let catalog = mirror.freshness.catalog();
    let uses = |columns: &[usize]| [TableUse { table: t, reader: Reader::Session, columns: columns.to_vec() }];
    let privileges = mirror.freshness.privileges();
    for (role, columns, allowed) in [
        ("postgres", &[0_usize, 1][..], true),
        ("reader_of_id", &[0], true),
        ("reader_of_id", &[], true),
        ("reader_of_id", &[0, 1], false),
        ("reader_of_nothing", &[], false),
        ("no such role", &[0], false),
    ] {
        let answer = privileges.check(role, uses(columns).iter(), &catalog).await;
        assert_eq!(answer.is_ok(), allowed, "{role} {columns:?}: {answer:?}");
        assert_eq!(privileges.check_known(role, uses(columns).iter(), &catalog), Some(answer));
    }
    mirror.client().await.batch_execute("REVOKE ALL ON t FROM reader_of_id").await.unwrap();
    mirror.until("the catalog is read again", |freshness| freshness.catalog().version > catalog.version).await;
    assert!(privileges.check("reader_of_id", uses(&[0]).iter(), &mirror.freshness.catalog()).await.is_err());
    mirror.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_cannot_be_mirrored_is_relayed_with_the_remedy() {
    let cluster = Cluster::start(&["wal_level=replica"]);
    let database = cluster.database();
    let mirror = Mirrored::start(&cluster, &database, TableChoice::Auto).await;
    let is_told = |freshness: &Freshness| {
        matches!(freshness.replication().running(),
            Err(UpstreamReason::RelayOnly(why)) if why.contains("ALTER SYSTEM SET wal_level"))
    };
    mirror.until("the reason is told", is_told).await;
    mirror.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_connections_authenticate_by_every_method() {
    let cluster = Cluster::shared();
    for role in [LOGIN_CLEARTEXT, LOGIN_MD5, LOGIN_SCRAM] {
        let url = |password: &str| format!("postgres://{role}:{password}@127.0.0.1:{}/postgres", cluster.port());
        let mut connection = Connection::open(&UpstreamAddress::parse(&url(role)).unwrap(), &[]).await.unwrap();
        let rows = connection.simple_query("SELECT current_user; SELECT NULL").await.unwrap();
        assert_eq!(rows, [vec![Some(role.as_bytes().to_vec().into())], vec![None]], "{role}");
        let error = connection.simple_query("SELECT 1/0").await.unwrap_err();
        assert_eq!((error.code(), error.is_statement_error()), (Some("22012"), true));
        connection.prepare("double", "SELECT 2 * $1::int8").await.unwrap();
        let rows = connection.execute("double", &[&21_i64.to_be_bytes()]).await.unwrap();
        assert_eq!(rows[0][0].as_deref(), Some(&42_i64.to_be_bytes()[..]));

        let refused = Connection::open(&UpstreamAddress::parse(&url("wrong")).unwrap(), &[]).await;
        assert_eq!(refused.err().and_then(|error| error.code().map(String::from)).as_deref(), Some("28P01"), "{role}");
        let missing = format!("postgres://{role}@127.0.0.1:{}/postgres", cluster.port());
        assert!(Connection::open(&UpstreamAddress::parse(&missing).unwrap(), &[]).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_role_that_owns_the_tables_and_may_replicate_suffices() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        &format!(
            "CREATE ROLE mirrorer LOGIN; CREATE TABLE theirs (id int PRIMARY KEY);
             GRANT CREATE ON SCHEMA public TO mirrorer; SET ROLE mirrorer;
             CREATE TABLE mine (id int PRIMARY KEY); INSERT INTO mine VALUES (1); RESET ROLE;
             GRANT CREATE ON DATABASE {database} TO mirrorer"
        ),
    );
    let url = cluster.url(&database).replace("postgres@", "mirrorer@");
    let mirror = Mirrored::with_options(cluster, &database, |options| {
        options.address = UpstreamAddress::parse(&url).unwrap();
        options.tables = TableChoice::List(vec!["mine".into(), "theirs".into()]);
    })
    .await;
    let is_told = |freshness: &Freshness| {
        matches!(freshness.replication().running(),
            Err(UpstreamReason::RelayOnly(why)) if why.contains("ALTER ROLE mirrorer REPLICATION;"))
    };
    mirror.until("the missing attribute is told", is_told).await;
    mirror.client().await.batch_execute("ALTER ROLE mirrorer REPLICATION").await.unwrap();
    let mine = mirror.mirrored("mine").await;
    assert_eq!(mirror.exact(&[mine]).await.snapshot.tables[&mine].rows, 1);
    mirror.until("the other is judged", |_| mirror.state("theirs") == "relayed").await;
    let statuses = mirror.freshness.statuses();
    let theirs = statuses.iter().find(|status| &*status.schema.name == "theirs").unwrap();
    // Nobody is advised to become a superuser.
    assert_eq!(theirs.remedy, "ALTER TABLE public.theirs OWNER TO mirrorer; -- or give freshet the URL of postgres");
    mirror.stop().await;
}
