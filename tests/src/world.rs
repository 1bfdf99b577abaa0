//! A database of the shared cluster with a freshet in front of it.

use freshet_config::{FreshnessMode, Settings};

use crate::cluster::Cluster;
use crate::freshet::Freshet;
use crate::raw::RawClient;

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
            settings.audit.sample_one_in = 0;
            change(settings);
        });
        Self { cluster, database, freshet }
    }

    /// A session through freshet.
    pub fn client(&self) -> RawClient {
        RawClient::connect(self.freshet.address(), "postgres", &self.database).expect("connects")
    }

    /// Runs statements past freshet; what psql prints.
    pub fn past(&self, sql: &str) -> String {
        self.cluster.psql(&self.database, sql)
    }
}
