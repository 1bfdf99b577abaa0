//! Whose reads wait after a write in session mode: with the barrier's backend stopped, a read that is still answered here needed
//! no barrier.

use std::process::Command;

use freshet_config::{FreshnessMode, TableChoice};

use crate::cluster::Cluster;
use crate::freshet::Freshet;

/// A database of `schema` whose `tables` are mirrored, and a freshet in mode `session` that needs a barrier for nothing but marks.
pub fn start(cluster: &Cluster, schema: &str, tables: &[&str]) -> (String, Freshet) {
    let database = cluster.database();
    cluster.psql(&database, schema);
    let names: Vec<String> = tables.iter().map(|table| format!("public.{table}")).collect();
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.mirror.tables = TableChoice::List(names.clone());
        settings.freshness.mode = FreshnessMode::Session;
        settings.freshness.max_lag_ms = 60_000;
        settings.freshness.wait_budget_ms = 100;
    });
    freshet.wait_until_mirrored(&database, &names.iter().map(String::as_str).collect::<Vec<_>>());
    (database, freshet)
}

/// Barriers that are not answered until this is dropped: a backend that is stopped would keep its cluster from ending.
pub struct StoppedBarriers<'a>(&'a Cluster);

impl<'a> StoppedBarriers<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        signal_barriers(cluster, "-STOP");
        Self(cluster)
    }
}

impl Drop for StoppedBarriers<'_> {
    fn drop(&mut self) {
        signal_barriers(self.0, "-CONT");
    }
}

/// Sends this signal to the backends of the cluster that answer barriers.
fn signal_barriers(cluster: &Cluster, signal: &str) {
    let barriers = cluster.psql(
        "postgres",
        "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'freshet%' AND query LIKE '%pg_current_snapshot%'
            AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
    );
    let processes: Vec<&str> = barriers.lines().collect();
    assert!(!processes.is_empty());
    assert!(Command::new("kill").arg(signal).args(processes).status().expect("kill runs").success());
}
