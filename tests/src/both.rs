//! Two sessions of one user, one through freshet and one with upstream: the same statements, compared frame by frame.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::freshet::Freshet;
use crate::raw::RawClient;

const WAIT: Duration = Duration::from_secs(30);

pub struct Both {
    pub through: RawClient,
    pub direct: RawClient,
    /// What is asked again and again.
    queries: &'static [&'static str],
}

impl Both {
    pub fn open(
        freshet: &Freshet,
        cluster: &Cluster,
        user: &str,
        database: &str,
        queries: &'static [&'static str],
    ) -> Self {
        let direct = cluster.address();
        Self {
            through: RawClient::connect(freshet.address(), user, database).expect("connects"),
            direct: RawClient::connect(direct, user, database).expect("connects"),
            queries,
        }
    }

    /// The same in both sessions.
    pub fn set(&mut self, sql: &str) {
        for client in [&mut self.through, &mut self.direct] {
            assert_eq!(client.simple(sql).expect("answers").error(), None, "{sql}");
        }
    }

    /// Compares one statement's frames; why it was relayed, if it was.
    pub fn compare(&mut self, after: &str, sql: &str) -> Option<String> {
        let (route, reason) = self.routed(after, sql);
        (route == "relay").then_some(reason)
    }

    /// Compares one statement's frames; how it was answered, and why not otherwise.
    pub fn routed(&mut self, after: &str, sql: &str) -> (String, String) {
        let here = self.through.simple(sql).expect("answers");
        let upstream = self.direct.simple(sql).expect("answers");
        let (route, reason) = self.through.last().expect("answers");
        assert_eq!(here, upstream, "after {after}: {sql} ({route} {reason})");
        (route, reason)
    }

    /// Compares every query once.
    pub fn compare_all(&mut self, after: &str) {
        self.queries.iter().for_each(|sql| drop(self.compare(after, sql)));
    }

    /// Until all queries that upstream answers are answered here, but those that `is_relayed`.
    pub fn settle(&mut self, after: &str, is_relayed: impl Fn(&str) -> bool) {
        let limit = Instant::now() + WAIT;
        loop {
            let mut relayed = Vec::new();
            for sql in self.queries {
                let is_error = self.direct.simple(sql).expect("answers").error().is_some();
                let reason = self.compare(after, sql).filter(|_| !is_error && !is_relayed(sql));
                relayed.extend(reason.map(|reason| (*sql, reason)));
            }
            if relayed.is_empty() {
                return;
            }
            assert!(Instant::now() < limit, "after {after}: relayed {relayed:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All queries but those that `is_kept` come to be computed here: a reply of upstream's that was kept, which settles
    /// them too, is no proof of that.
    pub fn assert_computed(&mut self, is_kept: impl Fn(&str) -> bool) {
        assert_eq!(self.through.simple("SET freshet.route = 'local'").expect("answers").error(), None);
        let limit = Instant::now() + WAIT;
        for sql in self.queries.iter().filter(|sql| !is_kept(sql)) {
            loop {
                let last = self.routed("the last change", sql);
                if last.0 == "local" {
                    break;
                }
                assert!(Instant::now() < limit, "{sql}: {last:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        assert_eq!(self.through.simple("SET freshet.route = 'auto'").expect("answers").error(), None);
    }
}
