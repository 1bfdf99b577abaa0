//! A database of the shared cluster with a freshet in front of it.

use std::time::{Duration, Instant};

use freshet_config::{FreshnessMode, Settings};

use crate::cluster::Cluster;
use crate::freshet::Freshet;
use crate::raw::RawClient;

/// How a statement is answered once nothing that passes is in its way.
#[derive(Debug)]
pub struct Settled {
    pub route: String,
    pub reason: String,
}

/// Asks until the statement is answered here, or is over a budget.
pub fn settle(client: &mut RawClient, sql: &str) -> Settled {
    let limit = Instant::now() + WAIT;
    loop {
        let reply = client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(reply.error(), None, "{sql}");
        let (route, reason) = client.last().expect("answers");
        if route != "relay" || reason.contains("over_budget") {
            return Settled { route, reason };
        }
        assert!(Instant::now() < limit, "{sql}: {route} {reason}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a statement that was relayed for this reason may be answered here a moment later.
pub fn will_pass(reason: &str) -> bool {
    let passing =
        ["first_run", "table_not_mirrored", "wait_budget", "not_a_prefix", "mirror_behind", "catalog_changed"];
    passing.iter().any(|start| reason.starts_with(start))
}

/// Waits for it; `what`: for the message when it does not come.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + WAIT;
    while !is_so() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const WAIT: Duration = Duration::from_secs(30);

pub struct World {
    pub cluster: &'static Cluster,
    pub database: String,
    pub freshet: Freshet,
}

impl World {
    /// `setup`: the statements that fill the database. No samples are audited.
    pub fn start(mode: FreshnessMode, setup: &str) -> Self {
        Self::start_with(mode, setup, |_| {})
    }

    pub fn start_with(mode: FreshnessMode, setup: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let cluster = Cluster::shared();
        let database = cluster.database();
        cluster.psql(&database, setup);
        let freshet = Freshet::start(&cluster.url(&database), |settings| {
            settings.freshness.mode = mode;
            change(settings);
        });
        Self { cluster, database, freshet }
    }

    /// A session through freshet.
    pub fn client(&self) -> RawClient {
        RawClient::connect(self.freshet.address(), "postgres", &self.database).expect("connects")
    }

    /// A session past freshet.
    pub fn direct(&self) -> RawClient {
        RawClient::connect(self.cluster.address(), "postgres", &self.database).expect("connects")
    }

    /// Runs statements past freshet; what psql prints.
    pub fn past(&self, sql: &str) -> String {
        self.cluster.psql(&self.database, sql)
    }
}
