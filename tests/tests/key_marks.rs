//! Session mode: a write through freshet that is confined to keys makes readers of those keys wait for a barrier, and no others.
//! With the barrier's backend stopped, a read that is still answered here needed none, and one that needs one is relayed. Every
//! answer is held against PostgreSQL's.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::marks::{StoppedBarriers, start as start_with};
use freshet_tests::raw::{RawClient, frame};

const SCHEMA: &str = "
    CREATE TABLE t (id int PRIMARY KEY, tenant int, v int);
    INSERT INTO t SELECT n, n % 3, 0 FROM generate_series(1, 9) n;
    CREATE TABLE keyless (id int, v int); CREATE INDEX ON keyless (id); ALTER TABLE keyless REPLICA IDENTITY FULL;
    INSERT INTO keyless SELECT n, 0 FROM generate_series(1, 9) n;
    CREATE TABLE texts (k text PRIMARY KEY, v int); INSERT INTO texts VALUES ('a', 0), ('b', 0);
    CREATE TABLE uuids (k uuid PRIMARY KEY, v int);
    INSERT INTO uuids SELECT format('00000000-0000-0000-0000-00000000000%s', n)::uuid, 0 FROM generate_series(1, 2) n;
    CREATE TABLE addresses (k inet PRIMARY KEY, v int); INSERT INTO addresses VALUES ('10.1.2.3/8', 0), ('10.1.2.3', 0);
    CREATE TABLE networks (k cidr PRIMARY KEY, v int); INSERT INTO networks VALUES ('10.0.0.0/8', 0), ('10.0.0.0/16', 0);
    CREATE TABLE twins (id int PRIMARY KEY, v int); INSERT INTO twins SELECT n, 0 FROM generate_series(1, 4) n;
    CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
        IF pg_trigger_depth() = 1 THEN UPDATE twins SET v = v + 1 WHERE id = NEW.id + 1; END IF; RETURN NULL; END';
    CREATE TRIGGER follow AFTER UPDATE ON twins FOR EACH ROW EXECUTE FUNCTION follow();
    CREATE TABLE parent (id int PRIMARY KEY, v int); INSERT INTO parent SELECT n, 0 FROM generate_series(1, 4) n;
    CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON UPDATE CASCADE ON DELETE CASCADE, v int);
    INSERT INTO child SELECT n, n, 0 FROM generate_series(1, 4) n;
    CREATE TABLE made (id int PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED);
    INSERT INTO made SELECT n, 0 FROM generate_series(1, 4) n;";
const TABLES: [&str; 10] =
    ["t", "keyless", "texts", "uuids", "addresses", "networks", "twins", "parent", "child", "made"];

/// Tables whose writes do not mean what a careless reader of their texts takes them to mean. The columns `long` are of 63 bytes.
const ODD: &str = "
    CREATE TABLE slot (id int PRIMARY KEY, \"end\" int, \"case\" int, note text, v int);
    INSERT INTO slot SELECT n, 0, 0, '', 0 FROM generate_series(1, 4) n;
    CREATE TABLE pairs (a int, b int, id int PRIMARY KEY, v int); INSERT INTO pairs VALUES (1, 1, 1, 0), (2, 2, 2, 0);
    CREATE TABLE long (LONG int PRIMARY KEY, v int); INSERT INTO long SELECT n, 0 FROM generate_series(1, 4) n;
    CREATE TABLE padded (k text PRIMARY KEY, v int); INSERT INTO padded VALUES ('a', 0), ('b', 0);
    CREATE UNIQUE INDEX ON padded (k bpchar_ops);
    CREATE TABLE shifting (k float8 PRIMARY KEY, v int); INSERT INTO shifting SELECT n, 0 FROM generate_series(1, 4) n;
    CREATE TABLE plain (id int PRIMARY KEY, v int); INSERT INTO plain SELECT n, 0 FROM generate_series(1, 4) n;
    CREATE FUNCTION touch(int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN UPDATE plain SET v = v + 1 WHERE id = $1; RETURN true; END';
    CREATE DOMAIN touching AS int CHECK (touch(VALUE));
    CREATE TABLE boxed (id int PRIMARY KEY, v int, of touching[]); INSERT INTO boxed SELECT n, 0 FROM generate_series(1, 4) n;";
const ODD_TABLES: [&str; 7] = ["slot", "pairs", "long", "padded", "shifting", "plain", "boxed"];

struct Bench<'a> {
    cluster: &'a Cluster,
    address: SocketAddr,
    database: String,
    writer: RawClient,
}

impl<'a> Bench<'a> {
    fn start(cluster: &'a Cluster, database: String, freshet: &Freshet) -> Self {
        let address = freshet.address();
        let writer = RawClient::connect(address, "postgres", &database).expect("connects");
        Self { cluster, address, database, writer }
    }

    fn connect(&self) -> RawClient {
        RawClient::connect(self.address, "postgres", &self.database).expect("connects")
    }

    /// Whether it is answered here; the answer is upstream's in any case.
    fn is_here(&self, reader: &mut RawClient, sql: &str) -> bool {
        let reply = reader.simple(sql).expect("answers");
        assert_eq!(reply.error(), None, "{sql}");
        let here = reply.text();
        let (route, _) = reader.last().expect("answers");
        assert_eq!(here, self.cluster.psql(&self.database, sql), "{sql}, {route}");
        route != "relay"
    }

    fn settle(&self, reads: &[&str]) {
        let limit = Instant::now() + Duration::from_secs(30);
        let mut reader = self.connect();
        while reads.iter().filter(|sql| !self.is_here(&mut reader, sql)).count() > 0 {
            assert!(Instant::now() < limit, "not answered here: {reads:?}, {:?}", reader.last());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The reads that need a barrier after what `write` does.
    fn waiting_after<'r>(&mut self, reads: &[&'r str], write: impl FnOnce(&mut RawClient)) -> Vec<&'r str> {
        self.settle(reads);
        let _stopped = StoppedBarriers::new(self.cluster);
        write(&mut self.writer);
        // A relayed read raises what its session requires: one session for each.
        reads.iter().copied().filter(|sql| !self.is_here(&mut self.connect(), sql)).collect()
    }

    fn waiting_after_sql<'r>(&mut self, reads: &[&'r str], sql: &str) -> Vec<&'r str> {
        self.waiting_after(reads, |writer| run(writer, sql))
    }

    /// From here on writes of the table are told apart by what the reads compare.
    fn ask(&mut self, reads: &[&str], table: &str) {
        let waiting = self.waiting_after_sql(reads, &format!("UPDATE {table} SET v = v + 1"));
        assert_eq!(waiting, reads, "all rows were written");
    }
}

fn run(client: &mut RawClient, sql: &str) {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
}

/// Parse with these types, Bind of these binary values, Execute, Sync.
fn run_binary(client: &mut RawClient, sql: &str, types: &[u32], values: &[&[u8]]) {
    let mut parse = [b"s\0", sql.as_bytes(), b"\0"].concat();
    parse.extend((types.len() as u16).to_be_bytes());
    types.iter().for_each(|oid| parse.extend(oid.to_be_bytes()));
    let mut bind = b"\0s\0\0\x01\0\x01".to_vec();
    bind.extend((values.len() as u16).to_be_bytes());
    for value in values {
        bind.extend((value.len() as u32).to_be_bytes());
        bind.extend_from_slice(value);
    }
    bind.extend([0, 0]);
    let close = frame(b'C', b"Ss\0");
    let unit = [frame(b'P', &parse), frame(b'B', &bind), frame(b'E', b"\0\0\0\0\0"), close, frame(b'S', b"")].concat();
    client.send(&unit).expect("sent");
    let reply = client.read_reply().expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
}

fn start(cluster: &Cluster) -> (String, Freshet) {
    start_with(cluster, SCHEMA, &TABLES)
}

const ONE: &str = "SELECT v FROM t WHERE id = 1";
const TWO: &str = "SELECT v FROM t WHERE id = 2";
const THREE: &str = "SELECT id, v FROM t WHERE 3 = id AND tenant < 5";
const BOTH: &str = "SELECT id, v FROM t WHERE id IN (1, 2) ORDER BY id";
const REST: &str = "SELECT sum(v) FROM t WHERE id > 3";
const JOINED: &str = "SELECT t.v, texts.v FROM t JOIN texts ON texts.v >= 0 WHERE t.id = 2 AND texts.k = 'a'";
const READS: [&str; 6] = [ONE, TWO, THREE, BOTH, REST, JOINED];

#[test]
fn only_readers_of_the_keys_written_wait() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start(&cluster);
    let mut bench = Bench::start(&cluster, database, &freshet);
    bench.ask(&READS, "t");
    bench.ask(&[JOINED, "SELECT v FROM texts WHERE k = 'b'"], "texts");

    for sql in [
        "UPDATE t SET v = v + 1 WHERE id = 1",
        "UPDATE public.t AS x SET v = 7 WHERE x.id = '1' AND x.v < 1000 RETURNING *",
        "BEGIN; UPDATE t SET v = v + 1 WHERE id = 1; COMMIT",
        "INSERT INTO t (id, tenant, v) VALUES (1, 1, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t (id, tenant, v) VALUES (1, 1, 5)",
    ] {
        assert_eq!(bench.waiting_after_sql(&READS, sql), [ONE, BOTH, REST], "{sql}");
    }
    let two = [TWO, BOTH, REST, JOINED];
    assert_eq!(bench.waiting_after_sql(&READS, "UPDATE t SET v = v + 1 WHERE id = 2"), two);
    assert_eq!(bench.waiting_after_sql(&READS, "UPDATE texts SET v = v + 1 WHERE k = 'a'"), [JOINED]);
    let nobody: [&str; 0] = [];
    assert_eq!(bench.waiting_after_sql(&READS, "UPDATE texts SET v = v + 1 WHERE k = 'b'"), nobody);

    // The forms of the protocol.
    let by_parameter = "UPDATE t SET v = v + $1 WHERE id = $2";
    let waiting = bench.waiting_after(&READS, |writer| {
        let reply = writer.extended(by_parameter, &[Some("1"), Some("1")], 0).expect("answers");
        assert_eq!(reply.error(), None);
    });
    assert_eq!(waiting, [ONE, BOTH, REST], "text");
    for (types, one, key) in [
        (&[][..], &b"\0\0\0\x01"[..], &b"\0\0\0\x01"[..]),
        (&[23, 20], b"\0\0\0\x01", b"\0\0\0\0\0\0\0\x01"),
        (&[23, 21], b"\0\0\0\x01", b"\0\x01"),
    ] {
        let waiting = bench.waiting_after(&READS, |writer| run_binary(writer, by_parameter, types, &[one, key]));
        assert_eq!(waiting, [ONE, BOTH, REST], "binary, {types:?}");
    }
    let waiting = bench.waiting_after(&READS, |writer| {
        run(writer, "BEGIN");
        run(writer, "UPDATE t SET v = v + 1 WHERE id = 1");
        run_binary(writer, by_parameter, &[], &[b"\0\0\0\x01", b"\0\0\0\x03"]);
        run(writer, "COMMIT");
    });
    assert_eq!(waiting, [ONE, THREE, BOTH, REST], "a block of several");
    let waiting = bench.waiting_after(&READS, |writer| {
        run(writer, "BEGIN; UPDATE t SET v = v + 1 WHERE id = 1; SAVEPOINT s; UPDATE t SET v = 99 WHERE id = 3");
        run(writer, "ROLLBACK TO s; COMMIT");
    });
    assert!(waiting.contains(&ONE) && !waiting.contains(&TWO), "{waiting:?}");
    let waiting = bench.waiting_after(&READS, |writer| {
        run(writer, "BEGIN");
        run(writer, "UPDATE t SET v = 99 WHERE id = 1");
        run(writer, "ROLLBACK");
    });
    assert!(!waiting.contains(&TWO) && !waiting.contains(&JOINED), "{waiting:?}");

    // Not for certain one key, or not one alone.
    let all: Vec<&str> = READS.to_vec();
    for sql in [
        "UPDATE t SET v = v + 1",
        "UPDATE t SET v = v + 1 WHERE id = 1 OR v = 5",
        "UPDATE t SET v = v + 1 WHERE id BETWEEN 1 AND 2",
        "UPDATE t SET id = 12 WHERE id = 2",
        "UPDATE t SET id = 2 WHERE id = 12",
        "UPDATE t SET (v, id) = (3, 13) WHERE id = 3; UPDATE t SET id = 3 WHERE id = 13",
        "UPDATE t SET v = texts.v + 1 FROM texts WHERE t.id = 1 AND texts.k = 'a'",
        "INSERT INTO t SELECT 20, 1, 1",
        "INSERT INTO t (tenant, id, v) VALUES (1, 20, 2) ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET v = 3",
        "INSERT INTO t VALUES (21, 1, 1)",
        "DELETE FROM t WHERE id = 10 + 10",
        "WITH w AS (SELECT 1 AS k) UPDATE t SET v = v + 1 FROM w WHERE t.id = w.k",
        "DO $$ BEGIN UPDATE t SET v = v + 1 WHERE id = 1; END $$",
    ] {
        assert_eq!(bench.waiting_after_sql(&READS, sql), all, "{sql}");
        // What the old session has run may have left anything.
        bench.writer = bench.connect();
    }
    let keys: String = (1..=40).map(|id| format!("UPDATE t SET v = v + 1 WHERE id = {id};")).collect();
    assert_eq!(bench.waiting_after_sql(&READS, &keys), all, "too many keys to be kept");
}

#[test]
fn tables_whose_writes_reach_other_rows_are_marked_whole() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start(&cluster);
    let mut bench = Bench::start(&cluster, database, &freshet);
    let reads = |table: &str, keys: &[&str]| -> Vec<String> {
        keys.iter().map(|key| format!("SELECT v FROM {table} WHERE {key}")).collect()
    };
    let twins = reads("twins", &["id = 1", "id = 2", "id = 4"]);
    let twins: Vec<&str> = twins.iter().map(String::as_str).collect();
    bench.ask(&twins, "twins");
    assert_eq!(bench.waiting_after_sql(&twins, "UPDATE twins SET v = v + 1 WHERE id = 1"), twins, "a trigger");

    let family = [reads("parent", &["id = 1", "id = 4"]), reads("child", &["id = 1", "id = 4"])].concat();
    let family: Vec<&str> = family.iter().map(String::as_str).collect();
    bench.ask(&family, "parent");
    assert_eq!(bench.waiting_after_sql(&family, "UPDATE parent SET id = 9 WHERE id = 3"), family, "it cascades");
    assert_eq!(bench.waiting_after_sql(&family, "DELETE FROM parent WHERE id = 2"), family, "it cascades");
    bench.ask(&family[2..], "child");
    // Checking a foreign key writes nothing.
    assert_eq!(bench.waiting_after_sql(&family, "UPDATE child SET v = 5 WHERE id = 4"), [family[3]]);

    let made = reads("made", &["id = 1", "id = 2"]);
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    bench.ask(&made, "made");
    assert_eq!(bench.waiting_after_sql(&made, "UPDATE made SET v = 3 WHERE id = 1"), [made[0]]);
    assert_eq!(bench.waiting_after_sql(&made, "UPDATE made SET v = 4 WHERE twice = 6"), made, "its key moves");
}

#[test]
fn keys_of_other_types_and_without_a_constraint() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start(&cluster);
    let mut bench = Bench::start(&cluster, database, &freshet);
    let uuid = |n: u8| format!("00000000-0000-0000-0000-00000000000{n}");
    for (table, column, keys, types) in [
        ("keyless", "id", ["1".to_owned(), "2".to_owned()], [23_u32]),
        ("texts", "k", ["a".to_owned(), "b".to_owned()], [25]),
        ("uuids", "k", [uuid(1), uuid(2)], [2950]),
        ("addresses", "k", ["10.1.2.3/8".to_owned(), "10.1.2.3".to_owned()], [869]),
        ("networks", "k", ["10.0.0.0/8".to_owned(), "10.0.0.0/16".to_owned()], [650]),
    ] {
        let reads = keys.each_ref().map(|key| format!("SELECT v FROM {table} WHERE {column} = '{key}'"));
        let reads = reads.each_ref().map(String::as_str);
        bench.ask(&reads, table);
        let [one, two] = reads;
        let by_literal = format!("UPDATE {table} SET v = v + 1 WHERE {column} = '{}'", keys[0]);
        assert_eq!(bench.waiting_after_sql(&reads, &by_literal), [one], "{by_literal}");
        let by_parameter = format!("UPDATE {table} SET v = v + 1 WHERE {column} = $1");
        let binary = match types {
            [23] => 2_i32.to_be_bytes().to_vec(),
            [25] => keys[1].clone().into_bytes(),
            [869] => vec![2, 32, 0, 4, 10, 1, 2, 3],
            [650] => vec![2, 16, 1, 4, 10, 0, 0, 0],
            _ => [&[0; 15][..], &[2]].concat(),
        };
        let waiting = bench.waiting_after(&reads, |writer| run_binary(writer, &by_parameter, &types, &[&binary]));
        assert_eq!(waiting, [two], "{by_parameter}");
    }
}

/// Units that came together share what is found out for the first, but for other keys that may not do.
#[test]
fn a_burst_of_reads_of_several_keys_is_told_apart() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start(&cluster);
    let mut bench = Bench::start(&cluster, database, &freshet);
    let reads = [TWO, ONE, THREE, ONE];
    bench.ask(&READS, "t");
    bench.settle(&READS);
    let (mut reader, mut observer) = (bench.connect(), bench.connect());
    let reader_pid = reader.simple("SELECT pg_backend_pid()").expect("answers").text();
    let mut answered_here = || -> u64 {
        let sql = format!("SELECT hits, local FROM freshet.sessions WHERE pid = '{reader_pid}'");
        let counts = observer.simple(&sql).expect("answers").text();
        counts.split('|').map(|count| count.parse::<u64>().expect("a number")).sum()
    };
    for round in 0..8 {
        let keys = if round % 2 == 0 { [1, 1] } else { [2, 3] };
        let limit = Instant::now() + Duration::from_secs(30);
        let mut before = answered_here();
        loop {
            burst(&mut reader, &reads);
            let now = answered_here();
            if now == std::mem::replace(&mut before, now) + reads.len() as u64 {
                break;
            }
            assert!(Instant::now() < limit, "round {round}: not answered here");
        }
        let stopped = StoppedBarriers::new(bench.cluster);
        keys.iter().for_each(|key| run(&mut bench.writer, &format!("UPDATE t SET v = v + 1 WHERE id = {key}")));
        let here = burst(&mut reader, &reads);
        let answered = answered_here() - before;
        drop(stopped);
        // The first is of a key that was not written, or was.
        assert_eq!(answered > 0, round % 2 == 0, "round {round}: {answered} answered here");
        let upstream = reads.map(|sql| cluster.psql(&bench.database, sql));
        assert_eq!(here, upstream, "round {round}");
        bench.settle(&READS);
    }
}

/// The rows of each, of statements that are sent at once.
fn burst(client: &mut RawClient, reads: &[&str]) -> Vec<String> {
    let units: Vec<u8> = reads.iter().flat_map(|sql| frame(b'Q', &[sql.as_bytes(), b"\0"].concat())).collect();
    client.send(&units).expect("sent");
    let answers = reads.iter().map(|sql| {
        let reply = client.read_reply().expect("answers");
        assert_eq!(reply.error(), None, "{sql}");
        reply.text()
    });
    answers.collect()
}

/// What is read at once from what was shown before must not be older than what the session has seen.
#[test]
fn a_session_sees_its_own_writes_and_never_goes_back() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start(&cluster);
    let bench = Bench::start(&cluster, database, &freshet);
    bench.settle(&READS);
    let (mut writer, mut other) = (bench.connect(), bench.connect());
    for round in 0..60 {
        let key = 1 + round % 3;
        let sql = format!("UPDATE t SET v = v + 1 WHERE id = {key}");
        run(if round % 2 == 0 { &mut writer } else { &mut other }, &sql);
        // Past freshet, before the session's own next write: what it has seen of it, it sees from then on.
        if round % 5 == 0 {
            cluster.psql(&bench.database, "UPDATE t SET v = v + 1 WHERE id = 2");
            run(&mut writer, "UPDATE t SET v = v + 0 WHERE id = 2");
        }
        for reader in [&mut writer, &mut other] {
            for sql in [ONE, TWO, BOTH, REST] {
                // Compared with upstream, where nothing is written meanwhile.
                let _ = bench.is_here(reader, sql);
            }
        }
    }
}

fn point_reads<const N: usize>(table: &str, column: &str, keys: [&str; N]) -> [String; N] {
    keys.map(|key| format!("SELECT v FROM {table} WHERE {column} = {key}"))
}

#[test]
fn texts_that_mean_other_rows_than_they_seem_to_are_waited_for_by_all() {
    let cluster = Cluster::start(&[]);
    let (key, too_long) = ("x".repeat(63), "x".repeat(64));
    let (database, freshet) = start_with(&cluster, &ODD.replace("LONG", &key), &ODD_TABLES);
    let mut bench = Bench::start(&cluster, database, &freshet);
    assert_eq!(freshet.status(&bench.database, "writes_told_by_keys"), "yes");

    let slots = point_reads("slot", "id", ["1", "2"]);
    let slots = slots.each_ref().map(String::as_str);
    bench.ask(&slots, "slot");
    assert_eq!(bench.waiting_after_sql(&slots, "UPDATE slot SET v = v + 1 WHERE id = 1"), [slots[0]]);
    // After a point a reserved word is a column's name.
    let sql = "UPDATE slot SET v = v + 1 WHERE slot.case = 0 OR slot.end = 1 AND slot.id = 1";
    assert_eq!(bench.waiting_after_sql(&slots, sql), slots);
    // The first use of a parameter that PostgreSQL analyses decides its type: here text, of which these are the bytes.
    let sql = "UPDATE slot SET note = $1::text, v = v + 1 WHERE id = $1::int4";
    let waiting = bench.waiting_after(&slots, |writer| run_binary(writer, sql, &[], &[b"0002"]));
    assert_eq!(waiting, slots, "{sql}");
    // Sent before the first is acknowledged, the second is read by what that says.
    let texts =
        ["SET standard_conforming_strings = off", r"UPDATE slot SET note = 'x\' WHERE id = 1 --', v = 9 WHERE id = 2"];
    let waiting = bench.waiting_after(&slots, |writer| drop(burst(writer, &texts)));
    assert_eq!(waiting, slots, "{texts:?}");
    bench.writer = bench.connect();

    let pairs = point_reads("pairs", "b", ["1", "8"]);
    let pairs = pairs.each_ref().map(String::as_str);
    bench.ask(&pairs, "pairs");
    let sql = "INSERT INTO pairs (a, b, id, v) VALUES ((ROW(7, 8)).*, 5, 1)";
    assert_eq!(bench.waiting_after_sql(&pairs, sql), pairs);
    assert_eq!(bench.waiting_after_sql(&pairs, "INSERT INTO pairs (id, v, b) VALUES (6, 1, 8)"), [pairs[1]]);

    // A name that is too long is cut off: the key moves.
    let long = point_reads("long", &key, ["1", "2", "12"]);
    let long = long.each_ref().map(String::as_str);
    bench.ask(&long, "long");
    assert_eq!(bench.waiting_after_sql(&long, &format!("UPDATE long SET v = 1 WHERE {key} = 1")), [long[0]]);
    let sql = format!("UPDATE long SET {too_long} = 12 WHERE {key} = 2");
    assert_eq!(bench.waiting_after_sql(&long, &sql), long);

    // The index takes the new text for equal to another one, whose row is updated.
    let padded = point_reads("padded", "k", ["'a'", "'b'"]);
    let padded = padded.each_ref().map(String::as_str);
    bench.ask(&padded, "padded");
    let sql = "INSERT INTO padded (k, v) VALUES ('a  ', 5) ON CONFLICT (k) DO UPDATE SET v = excluded.v";
    assert_eq!(bench.waiting_after_sql(&padded, sql), padded);
    assert_eq!(bench.waiting_after_sql(&padded, "UPDATE padded SET v = 6 WHERE k = 'a'"), [padded[0]]);

    // The check of a domain inside the array writes another table.
    let plain = point_reads("plain", "id", ["1", "2"]);
    let plain = plain.each_ref().map(String::as_str);
    bench.ask(&plain, "plain");
    assert_eq!(bench.waiting_after_sql(&plain, "UPDATE boxed SET of = '{2}' WHERE id = 1"), plain);
}

/// A prepared statement's parameter keeps the type that its column had.
#[test]
fn a_parameter_of_a_type_that_the_column_had_is_waited_for_by_all() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start_with(&cluster, &ODD.replace("LONG", "k"), &ODD_TABLES);
    let mut bench = Bench::start(&cluster, database, &freshet);
    let sql = "UPDATE shifting SET v = v + 1 WHERE k = $1";
    let parse = frame(b'P', &[b"early\0", sql.as_bytes(), b"\0\0\0"].concat());
    bench.writer.send(&[parse, frame(b'S', b"")].concat()).expect("sent");
    assert_eq!(bench.writer.read_reply().expect("answers").error(), None);
    cluster.psql(&bench.database, "ALTER TABLE shifting ALTER k TYPE int8");
    freshet.wait_until_mirrored(&bench.database, &["public.shifting"]);
    let reads = point_reads("shifting", "k", ["1", "2"]);
    let reads = reads.each_ref().map(String::as_str);
    bench.ask(&reads, "shifting");
    assert_eq!(bench.waiting_after_sql(&reads, "UPDATE shifting SET v = v + 1 WHERE k = 1"), [reads[0]]);
    let bind = [b"\0early\0\0\x01\0\x01\0\x01\0\0\0\x08", &2_f64.to_be_bytes()[..], b"\0\0"].concat();
    let waiting = bench.waiting_after(&reads, |writer| {
        writer.send(&[frame(b'B', &bind), frame(b'E', b"\0\0\0\0\0"), frame(b'S', b"")].concat()).expect("sent");
        assert_eq!(writer.read_reply().expect("answers").error(), None);
    });
    assert_eq!(waiting, reads);
    let waiting = bench.waiting_after(&reads, |writer| run_binary(writer, sql, &[], &[&2_i64.to_be_bytes()]));
    assert_eq!(waiting, [reads[1]], "one that was prepared since");
}

/// Likewise one of a table that the name meant when the statement was parsed, and of a type that the column had in a block that did
/// not end well.
#[test]
fn a_parameter_of_a_type_that_another_table_had_is_waited_for_by_all() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start(&cluster);
    cluster.psql(&database, "CREATE SCHEMA other; CREATE TABLE other.t (id float8 PRIMARY KEY, tenant int, v int)");
    let mut bench = Bench::start(&cluster, database, &freshet);
    let reads = [ONE, TWO];
    bench.ask(&reads, "t");
    let sql = "UPDATE t SET v = v + 1 WHERE id = $1";
    let parse = |name: &str| frame(b'P', &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat());
    let cases: [(&str, &[&str], &[&str]); 4] = [
        ("temporary", &["CREATE TEMP TABLE t (id float8, tenant int, v int)"], &["DISCARD TEMP"]),
        ("hidden", &["SET search_path = other, public"], &["SET search_path = public"]),
        ("undone", &["BEGIN", "ALTER TABLE public.t ALTER id TYPE float8"], &["ROLLBACK"]),
        ("dropped", &["SET search_path = other, public"], &["SET search_path = public", "DROP TABLE other.t"]),
    ];
    for (name, before, after) in cases {
        bench.writer = bench.connect();
        before.iter().for_each(|sql| run(&mut bench.writer, sql));
        bench.writer.send(&[parse(name), frame(b'S', b"")].concat()).expect("sent");
        assert_eq!(bench.writer.read_reply().expect("answers").error(), None);
        after.iter().for_each(|sql| run(&mut bench.writer, sql));
        let bind =
            [b"\0", name.as_bytes(), b"\0\0\x01\0\x01\0\x01\0\0\0\x08", &2_f64.to_be_bytes()[..], b"\0\0"].concat();
        let waiting = bench.waiting_after(&reads, |writer| {
            writer.send(&[frame(b'B', &bind), frame(b'E', b"\0\0\0\0\0"), frame(b'S', b"")].concat()).expect("sent");
            assert_eq!(writer.read_reply().expect("answers").error(), None);
        });
        assert_eq!(waiting, reads, "{name}");
    }
}

/// Extensions have an = of their own for their own types. One over PostgreSQL's types is another matter.
#[test]
fn an_equality_of_the_databases_own_is_said() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start(&cluster);
    let until = |name: &str, expected: &str| {
        let limit = Instant::now() + Duration::from_secs(30);
        while freshet.status(&database, name) != expected {
            assert!(Instant::now() < limit, "{name} is {}", freshet.status(&database, name));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let version = || freshet.status(&database, "catalog_version").parse::<u64>().expect("a number");
    let before = version();
    cluster.psql(
        &database,
        "CREATE TYPE mood AS ENUM ('sad');
         CREATE FUNCTION mood_eq(mood, mood) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'enum_eq';
         CREATE OPERATOR public.= (LEFTARG = mood, RIGHTARG = mood, FUNCTION = mood_eq)",
    );
    let limit = Instant::now() + Duration::from_secs(30);
    while version() == before {
        assert!(Instant::now() < limit, "not noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(freshet.status(&database, "writes_told_by_keys"), "yes");
    cluster.psql(&database, "CREATE OPERATOR public.= (LEFTARG = int4, RIGHTARG = int4, FUNCTION = int4ge)");
    until("writes_told_by_keys", "no: the database has an operator = over PostgreSQL's types");
}
