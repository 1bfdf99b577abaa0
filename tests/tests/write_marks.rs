//! Session mode: whose reads wait for a barrier after a write through freshet. With the barrier's backend stopped, a read
//! that is still answered here needed none, and one that needs one is relayed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;
use freshet_tests::marks::{StoppedBarriers, start};
use freshet_tests::raw::RawClient;

const SCHEMA: &str = "
    CREATE TABLE plain (id int PRIMARY KEY, n int);
    CREATE TABLE other (id int PRIMARY KEY, n int);
    CREATE TABLE triggered (id int PRIMARY KEY, n int);
    CREATE TABLE parent (id int PRIMARY KEY, n int);
    CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE, n int);
    CREATE TABLE checked (id int PRIMARY KEY, other int REFERENCES other, n int);
    CREATE TABLE computed (id int PRIMARY KEY, n int);
    INSERT INTO plain VALUES (1, 0), (2, 0); INSERT INTO other VALUES (1, 0); INSERT INTO triggered VALUES (1, 0);
    INSERT INTO parent SELECT n, 0 FROM generate_series(1, 9) n; INSERT INTO child SELECT n, n, 0 FROM generate_series(1, 9) n;
    INSERT INTO checked VALUES (1, 1, 0); INSERT INTO computed VALUES (1, 0);
    CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE other SET n = n + 1; RETURN NULL; END';
    CREATE TRIGGER follow AFTER UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION follow();
    CREATE FUNCTION add_other() RETURNS int LANGUAGE plpgsql AS 'BEGIN UPDATE other SET n = n + 1; RETURN 1; END';
    ALTER TABLE computed ALTER COLUMN n SET DEFAULT add_other();
    CREATE VIEW seen AS SELECT * FROM other;";
const TABLES: [&str; 7] = ["plain", "other", "triggered", "parent", "child", "checked", "computed"];

struct Bench<'a> {
    cluster: &'a Cluster,
    address: SocketAddr,
    database: String,
    writer: RawClient,
    reader: RawClient,
}

impl Bench<'_> {
    fn read(&mut self, table: &str) -> (String, String) {
        let reply = self.reader.simple(&format!("SELECT sum(n), count(*) FROM {table}")).expect("answers");
        assert_eq!(reply.error(), None, "{table}");
        let (route, _) = self.reader.last().expect("answers");
        let upstream = self.cluster.psql(&self.database, &format!("SELECT sum(n), count(*) FROM {table}"));
        assert_eq!(reply.text(), upstream, "{table}, {route}");
        (route, upstream)
    }

    fn is_here(&mut self, table: &str) -> bool {
        self.read(table).0 != "relay"
    }

    /// Until all tables are answered here without waiting.
    fn settle(&mut self) {
        let limit = Instant::now() + Duration::from_secs(30);
        while TABLES.iter().filter(|table| !self.is_here(table)).count() > 0 {
            assert!(Instant::now() < limit, "nothing is answered here");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn write(&mut self, sql: &str) {
        let reply = self.writer.simple(sql).expect("answers");
        assert_eq!(reply.error(), None, "{sql}");
    }

    /// The tables whose reads need no barrier after this write.
    fn unmarked_after(&mut self, sql: &str) -> Vec<&'static str> {
        self.unmarked_when(|bench| bench.write(sql))
    }

    fn unmarked_when(&mut self, happens: impl FnOnce(&mut Self)) -> Vec<&'static str> {
        self.settle();
        let _stopped = StoppedBarriers::new(self.cluster);
        happens(self);
        let mut unmarked = Vec::new();
        for table in TABLES {
            // A relayed read raises what its session requires: one session for each.
            self.reader = RawClient::connect(self.address, "postgres", &self.database).expect("connects");
            if self.is_here(table) {
                unmarked.push(table);
            }
        }
        unmarked
    }
}

#[test]
fn only_readers_of_what_may_have_been_written_wait() {
    let cluster = Cluster::start(&[]);
    let (database, freshet) = start(&cluster, SCHEMA, &TABLES);
    let connect = || RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let mut bench = Bench {
        cluster: &cluster,
        address: freshet.address(),
        writer: connect(),
        reader: connect(),
        database: database.clone(),
    };
    let all_but = |table: &str| TABLES.into_iter().filter(|name| *name != table).collect::<Vec<_>>();

    assert_eq!(bench.unmarked_after("UPDATE plain SET n = n + 1 WHERE id = 1"), all_but("plain"));
    assert_eq!(bench.unmarked_after("INSERT INTO public.plain VALUES (3, 3)"), all_but("plain"));
    assert_eq!(bench.unmarked_after("BEGIN; DELETE FROM plain WHERE id = 3; COMMIT"), all_but("plain"));
    // The session is in a block again when its unit ends.
    bench.write("BEGIN; UPDATE plain SET n = n + 1 WHERE id = 1");
    assert_eq!(bench.unmarked_after("COMMIT; BEGIN"), all_but("plain"));
    bench.write("COMMIT");
    // Checking a foreign key writes nothing.
    assert_eq!(bench.unmarked_after("UPDATE checked SET n = n + 1"), all_but("checked"));
    assert_eq!(bench.unmarked_after("UPDATE child SET n = n + 1"), all_but("child"));
    let nothing: [&str; 0] = [];
    for sql in [
        "UPDATE triggered SET n = n + 1",
        "DELETE FROM parent WHERE id = 1",
        "INSERT INTO computed (id) VALUES (2)",
        "UPDATE seen SET n = n + 1",
        "SELECT add_other()",
        "DO $$ BEGIN UPDATE plain SET n = n + 1; END $$",
        "WITH w AS (UPDATE other SET n = n + 1 RETURNING n) INSERT INTO plain SELECT 10, n FROM w",
        "CREATE TRIGGER follow AFTER UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION follow()",
    ] {
        assert_eq!(bench.unmarked_after(sql), nothing, "{sql}");
    }
    assert_eq!(bench.unmarked_after("UPDATE plain SET n = n + 1 WHERE id = 1"), nothing, "it has a trigger now");
    // Who is told of a commit that its writer has no acknowledgement of yet may tell others to read.
    let mut listener = connect();
    assert_eq!(listener.simple("LISTEN news").expect("answers").error(), None);
    let told = bench.unmarked_when(|bench| {
        bench.cluster.psql(&bench.database, "NOTIFY news");
        assert_eq!(listener.read_frame().expect("a notification").0, b'A');
    });
    assert_eq!(told, nothing, "a notification");
    bench.write("DROP TRIGGER follow ON plain");
    // What the old session has run may have left anything, a temporary table for one.
    bench.writer = connect();
    assert_eq!(bench.unmarked_after("UPDATE plain SET n = n + 1 WHERE id = 1"), all_but("plain"));
    bench.write("CREATE TEMP TABLE plain (id int, n int); CREATE TRIGGER follow AFTER UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION follow()");
    bench.write("INSERT INTO pg_temp.plain VALUES (1, 1)");
    assert_eq!(
        bench.unmarked_after("UPDATE plain SET n = n + 1 WHERE id = 1"),
        nothing,
        "a temporary table goes by its name"
    );
}
