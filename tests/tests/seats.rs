//! Sessions of mode exact that are answered here all the time move to the thread of the barrier. Nobody can tell, but by speed.

use std::time::{Duration, Instant};

use freshet_tests::client::{RawClient, bind, execute, message, parse, query, rows, sync, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;

const WAIT: Duration = Duration::from_secs(30);
/// More than it takes to move.
const HITS: usize = 400;
const CLIENTS: usize = 6;

struct Stand {
    cluster: &'static Cluster,
    database: String,
    freshet: Freshet,
    clients: Vec<RawClient>,
}

impl Stand {
    /// Sessions on two threads, each of which has had more hits than it takes to move.
    fn start(mode: &str) -> Self {
        let cluster = Cluster::shared();
        let database = cluster.database();
        cluster.psql(
            &database,
            "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL); INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i;
             CREATE TABLE copied (line text)",
        );
        let freshet = Freshet::start(&cluster.url(&database), |settings| {
            settings.limits.worker_threads = 2;
        });
        let clients = (0..CLIENTS).map(|_| {
            let mut client = RawClient::log_in(freshet.port(), &database);
            client.query(&format!("SET freshet.freshness = '{mode}'"));
            client.send(&[parse("by_id", "SELECT id, n FROM t WHERE id = $1"), sync()].concat());
            client.read_until('Z');
            client
        });
        let clients = clients.collect();
        let mut stand = Self { cluster, database, clients, freshet };
        for at in 0..CLIENTS {
            stand.until_hit(at);
            (0..HITS).for_each(|_| assert_eq!(stand.read(at, 1), "0"));
        }
        stand
    }

    fn read(&mut self, client: usize, id: usize) -> String {
        let client = &mut self.clients[client];
        client.send(&[bind("", "by_id", &[Some(&id.to_string())], 0), execute("", 0), sync()].concat());
        let reply = client.read_until('Z');
        rows(&reply).first().and_then(|row| row[1].clone()).unwrap_or_else(|| panic!("no row: {}", tags(&reply)))
    }

    fn until_hit(&mut self, client: usize) {
        let limit = Instant::now() + WAIT;
        while self.last(client)[0] != "hit" {
            assert!(Instant::now() < limit, "no hit");
            self.read(client, 1);
        }
    }

    /// Route, freshness and what was waited.
    fn last(&mut self, client: usize) -> [String; 3] {
        let reply = self.clients[client].query("SHOW freshet.last");
        let row = rows(&reply).remove(0);
        [0, 2, 4].map(|at| row[at].clone().unwrap_or_default())
    }

    fn moved(&self) -> usize {
        self.freshet.status(&self.database, "sessions_beside_barrier").parse().expect("a number")
    }

    fn until_upstream_has(&self, sessions: &str) {
        let limit = Instant::now() + WAIT;
        let sql =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'moved'";
        while self.cluster.psql(&self.database, sql).trim() != sessions {
            assert!(Instant::now() < limit, "upstream does not have {sessions} sessions");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn sessions_that_wait_for_barriers_move_and_go_on_as_before() {
    let mut stand = Stand::start("exact");
    let moved = stand.moved();
    // Which thread a session began on, others decide, too: the two threads have as many, give or take one.
    assert!((2..CLIENTS).contains(&moved), "{moved} of {CLIENTS} sessions moved");
    for round in 1..20 {
        // Past freshet; the next read of each session has it.
        stand.cluster.psql(&stand.database, &format!("UPDATE t SET n = {round} WHERE id = 1"));
        for at in 0..CLIENTS {
            assert_eq!(stand.read(at, 1), round.to_string());
            assert_eq!(stand.read(at, 1), round.to_string());
            let [route, freshness, waited] = stand.last(at);
            assert_eq!((&*route, &*freshness), ("hit", "exact"));
            assert!(waited.parse::<u64>().expect("a number") > 0, "a hit in exact mode has waited");
        }
    }
    for at in 0..CLIENTS {
        let client = &mut stand.clients[at];
        client.query("SET application_name = 'moved'");
        assert_eq!(tags(&client.query("BEGIN; INSERT INTO t VALUES (100, 1); ROLLBACK")), "CCCZ");
        client.send(&query("COPY copied FROM STDIN"));
        client.read_until('G');
        client.send(&[message(b'd', b"one\ntwo\n"), message(b'c', b"")].concat());
        assert_eq!(tags(&client.read_until('Z')), "CZ");
        assert_eq!(tags(&client.query("COPY copied TO STDOUT")).matches('d').count(), 2 * (at + 1));
        assert_eq!(stand.read(at, 2), "0");
    }
    stand.until_upstream_has(&CLIENTS.to_string());
    // They end without a word.
    stand.clients.clear();
    stand.until_upstream_has("0");
    let limit = Instant::now() + WAIT;
    while stand.moved() > 0 {
        assert!(Instant::now() < limit, "places that are not given back");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_drain_ends_sessions_that_have_moved() {
    let mut stand = Stand::start("exact");
    assert!(stand.moved() > 0);
    stand.freshet.drain();
    for client in &mut stand.clients {
        let rest = client.read_to_end();
        assert!(rest.windows(5).any(|window| window == b"57P01"), "{}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn sessions_that_do_not_wait_stay_where_they_are() {
    let stand = Stand::start("session");
    assert_eq!(stand.moved(), 0);
}
