//! Every metric: name, labels and help text, in one file. Modules get a clone of [`Metrics`] and count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use crate::statistics::Answered;

/// How a statement was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabels {
    /// hit, local, capture, relay.
    pub route: &'static str,
    /// `UpstreamReason::label`; empty for hit and local.
    pub reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabel {
    pub route: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DatabaseLabel {
    pub database: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct TableLabel {
    pub database: String,
    /// With its schema.
    pub table: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CauseLabel {
    pub cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DirectionLabel {
    /// from_client, from_upstream.
    pub direction: &'static str,
}

/// Handles to all metrics; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    pub statements: Family<RouteLabels, Counter>,
    pub statement_seconds: Family<RouteLabel, Histogram>,
    pub sessions: Gauge,
    pub sessions_total: Counter,
    pub refused: Family<CauseLabel, Counter>,
    pub cancel_requests: Counter,
    pub lost_sessions: Family<CauseLabel, Counter>,
    pub opaque: Family<CauseLabel, Counter>,
    pub session_bytes: Family<DirectionLabel, Counter>,
    pub probes: Counter,
    pub barriers: Counter,
    pub full_barriers: Counter,
    pub nudges: Counter,
    pub over_budget: Counter,
    pub not_a_prefix: Counter,
    pub catalog_changes: Counter,
    pub replies_survived: Counter,
    pub replies_updated: Counter,
    pub replies_refreshed: Counter,
    pub replies_outdated: Family<CauseLabel, Counter>,
    pub join_sides_extended: Counter,
    pub barrier_wait_seconds: Histogram,
    pub audits: Counter,
    pub wrong_answers: Counter,
    pub lag_seconds: Gauge<f64, AtomicU64>,
    pub lag_bytes: Gauge,
    pub wal_kept_bytes: Gauge,
    pub mirrored_tables: Gauge,
    pub mirrored_bytes: Gauge,
    pub mirrored_databases: Gauge,
    pub database_ready: Family<DatabaseLabel, Gauge>,
    pub database_mirrored_bytes: Family<DatabaseLabel, Gauge>,
    pub table_mirrored_bytes: Family<TableLabel, Gauge>,
    pub database_lag_seconds: Family<DatabaseLabel, Gauge<f64, AtomicU64>>,
    pub result_cache_bytes: Gauge,
    pub result_cache_entries: Gauge,
    pub plans: Gauge,
    pub plan_bytes: Gauge,
    pub join_cache_bytes: Gauge,
    /// Statements by route again, for the page, in the order of [`Answered`].
    routes: Arc<[AtomicU64; 4]>,
    /// The series of hits, and of relayed statements, in `statements` and `statement_seconds`.
    hits: Counter,
    hit_seconds: Histogram,
    relay_seconds: Histogram,
    registry: Arc<Registry>,
}

/// A hit takes some microseconds, and so does what freshet adds to a relayed statement; a lock shared by all sessions
/// would be felt.
const OBSERVED_ONE_IN: u64 = 64;

/// Waits for freshness, from 20 µs to about 0.6 s.
pub fn wait_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_02, 2.0, 16))
}

/// From 20 µs to about 10 s.
fn statement_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_02, 2.0, 20))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// A new metric by that name.
fn registered<M: Metric + Default + Clone>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("freshet");
        let r = &mut registry;
        let statements: Family<RouteLabels, Counter> =
            registered(r, "statements", "Statements answered, by route and by the reason for going upstream");
        let statement_seconds = Family::new_with_constructor(statement_histogram as fn() -> Histogram);
        r.register(
            "statement_seconds",
            "From a complete unit of messages to its answer in the client's queue, by route; of hits and relays one in 64",
            statement_seconds.clone(),
        );
        let sessions = registered(r, "sessions", "Sessions that are logged in");
        let sessions_total = registered(r, "sessions_opened", "Sessions that have logged in");
        let refused = registered(r, "refused", "Connections refused by freshet itself, by cause");
        let cancel_requests = registered(r, "cancel_requests", "CancelRequests passed on");
        let lost_sessions =
            registered(r, "opaque_sessions", "Sessions passed through unread from some point on, by cause");
        let opaque =
            registered(r, "settings_lost", "Statements after which a session's settings were not known, by their kind");
        let session_bytes = registered(r, "session_bytes", "Bytes received in sessions, by direction");
        let probes = registered(r, "probes", "Times a session's settings were asked of upstream");
        let barriers = registered(r, "barriers", "Freshness barriers sent upstream");
        let full_barriers = registered(r, "full_barriers", "Barriers that compared the catalog");
        let nudges = registered(r, "nudges", "Messages that made upstream flush its log");
        let over_budget = registered(r, "reads_over_budget", "Reads relayed because freshness took too long");
        let not_a_prefix = registered(r, "reads_between_commits", "Reads relayed while commits were becoming visible");
        let catalog_changes = registered(r, "catalog_changes", "Times the catalog in use was not the one in force");
        let replies_survived = registered(r, "replies_survived", "Kept replies that outlived a change of their tables");
        let replies_updated =
            registered(r, "replies_updated", "Replies computed from an outdated one and the changes since");
        let replies_refreshed = registered(r, "replies_refreshed", "Replies computed before they were asked for");
        let replies_outdated =
            registered(r, "replies_outdated", "Kept replies that changes of their tables made useless, by cause");
        let join_sides_extended = registered(
            r,
            "join_sides_extended",
            "Kept sides of joins that got appended rows instead of being built again",
        );
        let barrier_wait_seconds = wait_histogram();
        r.register("barrier_wait_seconds", "How long reads waited for freshness", barrier_wait_seconds.clone());
        let audits = registered(r, "audits", "Local answers compared with upstream's");
        let wrong_answers =
            registered(r, "wrong_answers", "Audits that found a difference; the statement's shape is relayed since");
        let lag_seconds = registered(r, "lag_seconds", "How far the mirror is behind upstream");
        let lag_bytes = registered(r, "lag_bytes", "The same in bytes of WAL");
        let wal_kept_bytes = registered(r, "wal_kept_bytes", "WAL that upstream keeps for freshet's slots");
        let mirrored_tables = registered(r, "mirrored_tables", "Tables in memory and ready");
        let mirrored_bytes =
            registered(r, "mirrored_bytes", "Memory that the mirrors take: tables and the changes kept beside them");
        let mirrored_databases = registered(r, "mirrored_databases", "Databases that have a mirror");
        let database_ready = registered(r, "database_ready", "1: statements that read this database can be answered");
        let database_mirrored_bytes =
            registered(r, "database_mirrored_bytes", "Likewise, of this database's mirror alone");
        let table_mirrored_bytes = registered(r, "table_mirrored_bytes", "Of this table's rows and their indexes");
        let database_lag_seconds = registered(
            r,
            "database_lag_seconds",
            "Age of what session mode reads of this database; NaN: it reads nothing",
        );
        let result_cache_bytes = registered(r, "result_cache_bytes", "Memory that cached replies take");
        let result_cache_entries = registered(r, "result_cache_entries", "Cached replies");
        let plans = registered(r, "plans", "Plans kept");
        let plan_bytes = registered(r, "plan_bytes", "Memory that kept plans take");
        let join_cache_bytes = registered(r, "join_cache_bytes", "Memory that kept sides of joins take");
        let hit = Answered::Hit.name();
        let hits = statements.get_or_create_owned(&RouteLabels { route: hit, reason: "" });
        let hit_seconds = statement_seconds.get_or_create_owned(&RouteLabel { route: hit });
        let relay_seconds = statement_seconds.get_or_create_owned(&RouteLabel { route: Answered::Relay.name() });
        Self {
            statements,
            statement_seconds,
            sessions,
            sessions_total,
            refused,
            cancel_requests,
            lost_sessions,
            opaque,
            session_bytes,
            probes,
            barriers,
            full_barriers,
            nudges,
            over_budget,
            not_a_prefix,
            catalog_changes,
            replies_survived,
            replies_updated,
            replies_refreshed,
            replies_outdated,
            join_sides_extended,
            barrier_wait_seconds,
            audits,
            wrong_answers,
            lag_seconds,
            lag_bytes,
            wal_kept_bytes,
            mirrored_tables,
            mirrored_bytes,
            mirrored_databases,
            database_ready,
            database_mirrored_bytes,
            table_mirrored_bytes,
            database_lag_seconds,
            result_cache_bytes,
            result_cache_entries,
            plans,
            plan_bytes,
            join_cache_bytes,
            routes: Arc::default(),
            hits,
            hit_seconds,
            relay_seconds,
            registry: Arc::new(registry),
        }
    }

    /// Counts one statement on its route; how many there were before.
    pub fn count_route(&self, route: Answered) -> u64 {
        self.routes[route as usize].fetch_add(1, Ordering::Relaxed)
    }

    /// A statement answered from the cache. The hot path of all sessions together: no look-up by label, and the
    /// histogram, which has a lock, gets one in [`OBSERVED_ONE_IN`].
    pub fn count_hit(&self, elapsed: Duration) {
        self.hits.inc();
        if self.count_route(Answered::Hit).is_multiple_of(OBSERVED_ONE_IN) {
            self.hit_seconds.observe(elapsed.as_secs_f64());
        }
    }

    /// Several together; `elapsed`: all of them.
    pub fn count_hits(&self, count: u64, elapsed: Duration) {
        self.hits.inc_by(count);
        let before = self.routes[Answered::Hit as usize].fetch_add(count, Ordering::Relaxed);
        // Where one of them is one to be observed.
        if before.next_multiple_of(OBSERVED_ONE_IN) < before + count {
            self.hit_seconds.observe(elapsed.as_secs_f64() / count as f64);
        }
    }

    /// Likewise a relayed statement; `counter` is its series in `statements`.
    pub fn count_relay(&self, counter: &Counter, elapsed: Duration) {
        counter.inc();
        if self.count_route(Answered::Relay).is_multiple_of(OBSERVED_ONE_IN) {
            self.relay_seconds.observe(elapsed.as_secs_f64());
        }
    }

    /// Statements so far on each route.
    pub fn route_totals(&self) -> [(Answered, u64); 4] {
        Answered::ALL.map(|route| (route, self.routes[route as usize].load(Ordering::Relaxed)))
    }

    /// All of them in the OpenMetrics text format.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_rendered() {
        let metrics = Metrics::new();
        metrics.statements.get_or_create(&RouteLabels { route: "relay", reason: "first_run" }).inc();
        metrics.sessions.set(3);
        let text = metrics.render();
        assert!(text.contains("freshet_statements_total{route=\"relay\",reason=\"first_run\"} 1"), "{text}");
        assert!(text.contains("freshet_sessions 3"), "{text}");
        assert!(text.contains("freshet_wrong_answers_total 0"), "{text}");
    }
}
