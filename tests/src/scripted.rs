//! Scripts of bursts of messages, the same to PostgreSQL and to freshet: what comes back has to be equal, and answered here.

use std::time::{Duration, Instant};

use crate::client::{Message, RawClient, rows, tags};
use crate::cluster::Cluster;
use crate::freshet::Freshet;

pub const WAIT: Duration = Duration::from_secs(30);

/// A burst, and how many messages answer it.
#[derive(Clone)]
pub struct Burst {
    pub bytes: Vec<u8>,
    pub replies: usize,
}

/// `replies`: how many messages come back.
pub fn burst(replies: usize, messages: &[Vec<u8>]) -> Burst {
    Burst { bytes: messages.concat(), replies }
}

/// The next message; PostgreSQL 18 reports search_path besides.
fn read_reply(client: &mut RawClient) -> Option<Message> {
    let is_path = |message: &Message| message.tag == 'S' && message.body.starts_with(b"search_path\0");
    std::iter::repeat_with(|| client.read_message()).find(|message| !message.as_ref().is_some_and(is_path)).flatten()
}

/// Sends the script and reads all that answers it.
pub fn play(client: &mut RawClient, script: &[Burst]) -> Vec<Message> {
    let mut all = Vec::new();
    for burst in script {
        client.send(&burst.bytes);
        for at in 0..burst.replies {
            match read_reply(client) {
                Some(message) => all.push(message),
                None => panic!("{at} of {} replies, then the end: {}", burst.replies, tags(&all)),
            }
        }
    }
    all
}

/// Sends messages that end with a Sync, or one query string, and reads all that answers them. What is told of settings on the way counts
/// as little as its place does.
pub fn play_unit(client: &mut RawClient, unit: &[u8]) -> Vec<Message> {
    client.send(unit);
    client.read_until('Z').into_iter().filter(|message| message.tag != 'S').collect()
}

/// A session at PostgreSQL and one at freshet before it.
pub struct Pair {
    pub upstream: RawClient,
    pub freshet: RawClient,
    pub server: Freshet,
}

impl Pair {
    /// In a database of its own with a table `t` of ten rows.
    pub fn start() -> Self {
        let cluster = Cluster::shared();
        let database = cluster.database();
        cluster.psql(
            &database,
            "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 10) i",
        );
        let server = Freshet::start(&cluster.url(&database), |_| {});
        let port = cluster.port();
        let (upstream, freshet) = (RawClient::log_in(port, &database), RawClient::log_in(server.port(), &database));
        Self { upstream, freshet, server }
    }

    /// Route and reason of the last statement.
    pub fn last(&mut self) -> (String, String) {
        let reply = self.freshet.query("SHOW freshet.last");
        let row = rows(&reply).into_iter().next().expect("a row");
        (row[0].clone().unwrap_or_default(), row[1].clone().unwrap_or_default())
    }

    /// Plays the script on both sides until freshet answers it by itself; the frames must be equal each time.
    pub fn agree(&mut self, what: &str, script: &[Burst]) {
        let expected = play(&mut self.upstream, script);
        let limit = Instant::now() + WAIT;
        loop {
            let got = play(&mut self.freshet, script);
            assert_eq!(tags(&got), tags(&expected), "{what}");
            assert_eq!(got, expected, "{what}");
            let last = self.last();
            if matches!(last.0.as_str(), "local" | "hit") {
                // Once more, with everything verified: this time no part may have been relayed.
                let before = self.relayed();
                assert_eq!(play(&mut self.freshet, script), expected, "{what}, again");
                assert_eq!(self.relayed(), before, "{what}: a part was relayed");
                return;
            }
            assert!(Instant::now() < limit, "{what}: not answered here but {last:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The same in a transaction block, which may end upstream.
    pub fn agree_in_block(&mut self, what: &str, script: &[Burst]) {
        self.upstream.query("BEGIN");
        let expected = play(&mut self.upstream, script);
        self.upstream.query("COMMIT");
        let limit = Instant::now() + WAIT;
        loop {
            self.freshet.query("BEGIN");
            let got = play(&mut self.freshet, script);
            let last = self.last();
            self.freshet.query("COMMIT");
            self.freshet.query("DEALLOCATE ALL");
            assert_eq!(got, expected, "{what}");
            if matches!(last.0.as_str(), "local" | "hit") {
                return;
            }
            assert!(Instant::now() < limit, "{what}: not answered here but {last:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Statements that went upstream, in all sessions.
    pub fn relayed(&mut self) -> String {
        let reply = self.freshet.query("SELECT value FROM freshet.status WHERE name = 'statements_relay'");
        rows(&reply).into_iter().next().and_then(|row| row[0].clone()).expect("a counter")
    }
}

/// Equal, errors by their code: what PostgreSQL says beside it names its source files.
pub fn assert_same(got: &[Message], expected: &[Message]) {
    assert_eq!(tags(got), tags(expected));
    let comparable = |message: &Message| match message.tag {
        'E' => ::freshet::wire::error::field(&message.body, b'C').map(<[u8]>::to_vec),
        _ => Some(message.body.clone()),
    };
    assert!(got.iter().map(comparable).eq(expected.iter().map(comparable)), "{got:?}\n{expected:?}");
}
