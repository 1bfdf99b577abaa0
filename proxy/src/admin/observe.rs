//! What the operator sees, gathered from metrics, mirror, audit and caches when it is asked for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use freshet_engine::result_cache::Outdated;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use crate::admin::{DatabaseReport, RouteTotals, Source, StatementReport, Status, TableReport};
use crate::freshness::FreshnessReport;
use crate::metrics::{CauseLabel, DatabaseLabel, Metrics, TableLabel};
use crate::replication::status::ColumnReport;
use crate::session::answer::{TextColumn, TextKind, TextTable};
use crate::session::local::Local;
use crate::session::local::databases::Databases;
use crate::shutdown::{Phase, Shutdown};
use crate::statistics::{ShapeReport, Statistics};

/// Statements on the page.
const STATEMENTS_SHOWN: usize = 30;

/// Where the endpoints look.
pub struct Observed {
    pub metrics: Metrics,
    /// None: freshet is a plain relay.
    databases: Option<Arc<Databases>>,
    upstream: String,
    freshness: &'static str,
    shutdown: Shutdown,
    /// The databases that the metrics have lines of.
    shown: Mutex<BTreeSet<String>>,
    /// And the tables.
    shown_tables: Mutex<BTreeSet<TableLabel>>,
    refreshing: Mutex<()>,
}

const RUNNING: &str = "running";
/// State of a table, see [`TableReport`].
const MIRRORED: &str = "mirrored";

/// [`RUNNING`], or why not.
fn mirror_state(report: &FreshnessReport) -> String {
    if report.is_ready { RUNNING.into() } else { report.stream.state.to_string() }
}

impl Source for Observed {
    fn status(&self) -> Status {
        let mirrors = self.mirrors();
        self.refresh(&mirrors);
        let report = mirrors.first().map(|first| &first.report);
        Status {
            version: env!("CARGO_PKG_VERSION"),
            upstream: self.upstream.clone(),
            freshness: self.freshness,
            mirror: report.map_or("off".into(), mirror_state),
            databases: mirrors.iter().map(MirrorReport::database).collect(),
            routes: self.totals(),
            sessions: u64::try_from(self.metrics.sessions.get()).unwrap_or(0),
            lag_ms: report.and_then(|report| report.lag_ms),
            lag_bytes: report.map(|report| report.lag_bytes),
            audits: self.metrics.audits.get(),
            wrong_answers: self.metrics.wrong_answers.get(),
            statements: ranked(&mirrors, ShapeReport::calls, Statistics::top),
            profit: ranked(&mirrors, |shape| shape.lost_us, Statistics::most_lost),
            tables: mirrors.into_iter().flat_map(|mirror| mirror.tables).collect(),
        }
    }

    fn metrics(&self) -> String {
        self.refresh(&self.mirrors());
        self.metrics.render()
    }

    fn readiness(&self) -> Result<(), String> {
        if self.shutdown.phase() != Phase::Running {
            return Err("freshet is shutting down".into());
        }
        let Some(databases) = &self.databases else { return Ok(()) };
        let report = databases.first().freshness.report();
        if report.is_ready { Ok(()) } else { Err(format!("the mirror is not running: {}", report.stream.state)) }
    }
}

impl Observed {
    pub fn new(
        metrics: Metrics,
        databases: Option<Arc<Databases>>,
        upstream: String,
        freshness: &'static str,
        shutdown: Shutdown,
    ) -> Self {
        Self {
            metrics,
            databases,
            upstream,
            freshness,
            shutdown,
            shown: Mutex::default(),
            shown_tables: Mutex::default(),
            refreshing: Mutex::default(),
        }
    }

    fn totals(&self) -> RouteTotals {
        let [(_, hit), (_, local), (_, capture), (_, relay)] = self.metrics.route_totals();
        RouteTotals { hit, local, capture, relay }
    }

    /// Of every database, that of the URL first.
    fn mirrors(&self) -> Vec<MirrorReport> {
        let all = self.databases.as_ref().map(|databases| databases.all()).unwrap_or_default();
        all.into_iter().map(MirrorReport::gather).collect()
    }

    /// Brings the metrics that mirror others' counters up to date.
    fn refresh(&self, all: &[MirrorReport]) {
        let Some(databases) = &self.databases else { return };
        // Two at a time would both add what is missing.
        let _one_at_a_time = self.refreshing.lock();
        let metrics = &self.metrics;
        let into = [
            &metrics.audits,
            &metrics.wrong_answers,
            &metrics.barriers,
            &metrics.full_barriers,
            &metrics.nudges,
            &metrics.over_budget,
            &metrics.not_a_prefix,
            &metrics.catalog_changes,
            &metrics.replies_survived,
            &metrics.replies_updated,
            &metrics.replies_refreshed,
            &metrics.join_sides_extended,
        ];
        let advance = |counter: &Counter, to: u64| _ = counter.inc_by(to.saturating_sub(counter.get()));
        let counts = databases.counts();
        into.into_iter().zip(counts.counts).for_each(|(counter, to)| advance(counter, to));
        for (cause, to) in Outdated::ALL.into_iter().zip(counts.invalidations) {
            advance(&metrics.replies_outdated.get_or_create(&CauseLabel { cause: cause.name() }), to);
        }
        self.refresh_databases(all);
        self.refresh_tables(all);
        let reports = || all.iter().map(|mirror| &mirror.report);
        // The worst; NaN where that of the URL cannot be read. Of one that is just begun or given back its own line tells.
        let lags = reports().map(|report| report.lag_ms.map_or(f64::NAN, |ms| ms as f64 / 1000.0));
        metrics.lag_seconds.set(lags.reduce(|worst, lag| if lag > worst { lag } else { worst }).unwrap_or(f64::NAN));
        let lag_bytes = reports().map(|report| report.lag_bytes).max().unwrap_or(0);
        metrics.lag_bytes.set(i64::try_from(lag_bytes).unwrap_or(i64::MAX));
        let kept = reports().map(|report| report.stream.wal_kept_bytes).sum::<u64>();
        metrics.wal_kept_bytes.set(i64::try_from(kept).unwrap_or(i64::MAX));
        let tables = || all.iter().flat_map(|mirror| &mirror.tables);
        let mirrored = tables().filter(|table| table.state == MIRRORED).count();
        metrics.mirrored_tables.set(i64::try_from(mirrored).unwrap_or(0));
        // As the lines of the databases have it: more than the tables' newest versions, which `freshet.tables` shows.
        metrics.mirrored_bytes.set(reports().map(|report| i64::try_from(report.stream.bytes).unwrap_or(0)).sum());
        metrics.mirrored_databases.set(i64::try_from(all.len()).unwrap_or(0));
        let sizes = all.iter().map(|mirror| mirror.local.result_size());
        let (entries, bytes) = sizes.fold((0, 0), |(entries, bytes), (more, large)| (entries + more, bytes + large));
        metrics.result_cache_entries.set(i64::try_from(entries).unwrap_or(0));
        metrics.result_cache_bytes.set(i64::try_from(bytes).unwrap_or(0));
        let sizes = all.iter().map(|mirror| mirror.local.engine.sizes());
        let (plans, plan_bytes, joins) = sizes.fold((0, 0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1, sum.2 + of.2));
        metrics.plans.set(i64::try_from(plans).unwrap_or(0));
        metrics.plan_bytes.set(i64::try_from(plan_bytes).unwrap_or(0));
        metrics.join_cache_bytes.set(i64::try_from(joins).unwrap_or(0));
    }
}

impl Observed {
    /// What each database has a line of.
    fn refresh_databases(&self, all: &[MirrorReport]) {
        let metrics = &self.metrics;
        let mut shown = self.shown.lock();
        let mut gone = std::mem::take(&mut *shown);
        for report in all.iter().map(MirrorReport::database) {
            let label = DatabaseLabel { database: report.name.clone() };
            let lag = report.lag_ms.map_or(f64::NAN, |ms| ms as f64 / 1000.0);
            metrics.database_ready.get_or_create(&label).set(i64::from(report.mirror == RUNNING));
            metrics.database_mirrored_bytes.get_or_create(&label).set(i64::try_from(report.bytes).unwrap_or(i64::MAX));
            metrics.database_lag_seconds.get_or_create(&label).set(lag);
            gone.remove(&report.name);
            shown.insert(report.name);
        }
        for database in gone {
            let label = DatabaseLabel { database };
            metrics.database_ready.remove(&label);
            metrics.database_mirrored_bytes.remove(&label);
            metrics.database_lag_seconds.remove(&label);
        }
    }

    /// Likewise each table in memory.
    fn refresh_tables(&self, all: &[MirrorReport]) {
        let metrics = &self.metrics;
        let mut shown = self.shown_tables.lock();
        let mut gone = std::mem::take(&mut *shown);
        for table in all.iter().flat_map(|mirror| &mirror.tables).filter(|table| table.bytes > 0) {
            let label = TableLabel { database: table.database.clone(), table: table.name.clone() };
            metrics.table_mirrored_bytes.get_or_create(&label).set(i64::try_from(table.bytes).unwrap_or(i64::MAX));
            gone.remove(&label);
            shown.insert(label);
        }
        for label in gone {
            metrics.table_mirrored_bytes.remove(&label);
        }
    }
}

/// What is told of one database's mirror, all of one look.
struct MirrorReport {
    local: Arc<Local>,
    report: FreshnessReport,
    tables: Vec<TableReport>,
}

impl MirrorReport {
    fn gather(local: Arc<Local>) -> Self {
        Self { report: local.freshness.report(), tables: tables(&local), local }
    }

    fn database(&self) -> DatabaseReport {
        DatabaseReport {
            name: self.local.database.clone(),
            mirror: mirror_state(&self.report),
            tables: self.tables.iter().filter(|table| table.state == MIRRORED).count() as u64,
            bytes: self.report.stream.bytes,
            lag_ms: self.report.lag_ms,
        }
    }
}

/// Of every database, the first ones in this order.
fn ranked(
    mirrors: &[MirrorReport],
    by: impl Fn(&ShapeReport) -> u64,
    first: impl Fn(&Statistics, usize) -> Vec<ShapeReport>,
) -> Vec<StatementReport> {
    let of = |MirrorReport { local, .. }: &MirrorReport| {
        let database = local.database.clone();
        let shapes = first(&local.statistics, STATEMENTS_SHOWN).into_iter();
        shapes.map(move |shape| StatementReport { database: database.clone(), shape })
    };
    let mut all: Vec<StatementReport> = mirrors.iter().flat_map(of).collect();
    all.sort_by_key(|report| std::cmp::Reverse(by(&report.shape)));
    all.truncate(STATEMENTS_SHOWN);
    all
}

fn tables(local: &Local) -> Vec<TableReport> {
    let mut tables: Vec<TableReport> = local
        .freshness
        .statuses()
        .into_iter()
        .map(|table| TableReport {
            database: local.database.clone(),
            name: format!("{}.{}", table.schema.schema, table.schema.name),
            state: table.state,
            rows: table.rows,
            bytes: table.bytes,
            reason: table.reason,
        })
        .collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    tables
}

/// The rows of a relation of the virtual schema, for a session of the database of `local`; None: of one that is not mirrored. As in
/// PostgreSQL, a session sees nothing of what is in other databases, only which there are. `role`: it may see its own statements only.
pub fn virtual_table(
    databases: &Databases,
    local: Option<&Local>,
    name: &str,
    role: Option<&str>,
) -> Option<TextTable> {
    match name {
        "tables" => Some(tables_relation(local)),
        "columns" => Some(columns_relation(local)),
        "statements" => Some(statements_relation(local, role)),
        "databases" => Some(databases_relation(databases)),
        "status" => Some(status_relation(databases, local.unwrap_or(databases.first()))),
        _ => None,
    }
}

fn column(name: &'static str, kind: TextKind) -> TextColumn {
    TextColumn { name, kind }
}

fn databases_relation(databases: &Databases) -> TextTable {
    let columns = vec![
        column("name", TextKind::Text),
        column("mirror", TextKind::Text),
        column("tables", TextKind::Int8),
        column("bytes", TextKind::Int8),
        column("lag_ms", TextKind::Int8),
    ];
    let row = |report: DatabaseReport| {
        let numbers = [report.tables.to_string(), report.bytes.to_string()].map(Some);
        let mut cells = vec![Some(report.name), Some(report.mirror)];
        cells.extend(numbers);
        cells.push(report.lag_ms.map(|ms| ms.to_string()));
        cells
    };
    let rows = databases.all().into_iter().map(|local| row(MirrorReport::gather(local).database())).collect();
    TextTable { columns, rows }
}

fn tables_relation(local: Option<&Local>) -> TextTable {
    let columns = vec![
        column("name", TextKind::Text),
        column("state", TextKind::Text),
        column("rows", TextKind::Int8),
        column("bytes", TextKind::Int8),
        column("reason", TextKind::Text),
        column("remedy", TextKind::Text),
        column("generation", TextKind::Text),
    ];
    let tables = local.map(|local| local.freshness.statuses()).unwrap_or_default();
    let mut rows: Vec<Vec<Option<String>>> = tables
        .into_iter()
        .map(|table| {
            let cells = [
                format!("{}.{}", table.schema.schema, table.schema.name),
                table.state.to_string(),
                table.rows.to_string(),
                table.bytes.to_string(),
                table.reason,
                table.remedy,
                table.generation.to_string(),
            ];
            cells.map(Some).into()
        })
        .collect();
    rows.sort();
    TextTable { columns, rows }
}

/// Of the tables in memory; a column without bytes is not held.
fn columns_relation(local: Option<&Local>) -> TextTable {
    let columns = vec![
        column("table_name", TextKind::Text),
        column("name", TextKind::Text),
        column("type", TextKind::Text),
        column("bytes", TextKind::Int8),
    ];
    let row = |report: ColumnReport| {
        let column = &report.table.columns[report.column];
        let table = format!("{}.{}", report.table.schema, report.table.name);
        let held = column.pg_type.map(|pg_type| pg_type.name().to_owned());
        vec![Some(table), Some(column.name.to_string()), held, report.bytes.map(|bytes| bytes.to_string())]
    };
    let reports = local.map(|local| local.freshness.columns()).unwrap_or_default();
    let mut rows: Vec<Vec<Option<String>>> = reports.into_iter().map(row).collect();
    // Columns stay in their tables' order.
    rows.sort_by(|a, b| a[0].cmp(&b[0]));
    TextTable { columns, rows }
}

fn statements_relation(local: Option<&Local>, role: Option<&str>) -> TextTable {
    let numbers = [
        "calls",
        "hits",
        "local",
        "captures",
        "relayed",
        "elapsed_us",
        "saved_us",
        "hit_wait_p50_us",
        "hit_wait_p99_us",
        "local_p50_us",
        "local_p99_us",
        "capture_p50_us",
        "capture_p99_us",
        "relay_p50_us",
        "relay_p99_us",
        "relayed_us",
        "reply_bytes",
        "survivals",
        "updates",
        "refreshes",
        "invalidations",
    ];
    let mut columns = vec![column("statement", TextKind::Text)];
    columns.extend(numbers.map(|name| column(name, TextKind::Int8)));
    columns.extend(["invalidated_by", "reason"].map(|name| column(name, TextKind::Text)));
    let row = |shape: ShapeReport| {
        let routes = [shape.calls(), shape.hits, shape.local, shape.captures, shape.relayed];
        let times = [shape.hit_us, shape.local_us, shape.capture_us, shape.relay_us];
        let numbers = routes.into_iter().chain([shape.elapsed_us, shape.saved_us]).chain(times.into_iter().flatten());
        let numbers = numbers.chain([shape.relayed_us, shape.bytes]);
        let numbers =
            numbers.chain([shape.survivals, shape.updates, shape.refreshes, shape.invalidations.iter().sum()]);
        let invalidated_by = shape.invalidated_by.clone();
        let mut cells = vec![Some(shape.statement)];
        cells.extend(numbers.map(|number| Some(number.to_string())));
        cells.extend([Some(invalidated_by), Some(shape.reason)]);
        cells
    };
    let top = local.map(|local| local.statistics.top(crate::statistics::SHAPES_MAX)).unwrap_or_default();
    let seen = |shape: ShapeReport| if let Some(role) = role { shape.seen_by(role) } else { shape };
    let rows = top.into_iter().map(seen).map(row).collect();
    TextTable { columns, rows }
}

fn status_relation(databases: &Databases, local: &Local) -> TextTable {
    let columns = vec![column("name", TextKind::Text), column("value", TextKind::Text)];
    let report = local.freshness.report();
    let audit = &local.audit.counters;
    let (entries, bytes) = local.result_size();
    let (plans, plan_bytes, join_bytes) = local.engine.sizes();
    let (pins, pinned_bytes) = local.freshness.pinned_size();
    let pairs = [
        ("version", env!("CARGO_PKG_VERSION").to_string()),
        ("database", local.database.clone()),
        ("databases", databases.all().iter().map(|local| local.database.clone()).collect::<Vec<_>>().join(", ")),
        ("mirror", report.stream.state.to_string()),
        ("ready", report.is_ready.to_string()),
        ("applied_lsn", report.stream.applied.to_string()),
        ("lag_bytes", report.lag_bytes.to_string()),
        ("lag_ms", report.lag_ms.map_or_else(String::new, |ms| ms.to_string())),
        ("transactions", report.stream.transactions.to_string()),
        ("mirror_bytes", report.stream.bytes.to_string()),
        ("barriers", local.freshness.counters().barriers.load(Relaxed).to_string()),
        ("stream_restarts", report.stream.restarts.to_string()),
        ("wal_kept_bytes", report.stream.wal_kept_bytes.to_string()),
        ("event_trigger", report.stream.event_trigger.to_string()),
        ("catalog_version", report.stream.catalog_version.to_string()),
        ("audits", audit.compared.load(Relaxed).to_string()),
        ("audits_inconclusive", audit.inconclusive.load(Relaxed).to_string()),
        ("shape_mismatches", audit.shape_mismatches.load(Relaxed).to_string()),
        ("wrong_answers", audit.wrong_answers.load(Relaxed).to_string()),
        ("result_cache_entries", entries.to_string()),
        ("result_cache_bytes", bytes.to_string()),
        ("plans", plans.to_string()),
        ("plan_bytes", plan_bytes.to_string()),
        ("join_cache_bytes", join_bytes.to_string()),
        ("join_sides_extended", local.engine.join_sides_extended().to_string()),
        ("standby", local.freshness.standby().unwrap_or_default()),
        ("writes_told_by_keys", local.freshness.writes_told_by_keys()),
        ("sessions_beside_barrier", local.freshness.seats().taken().to_string()),
        ("snapshots_pinned", pins.to_string()),
        ("snapshot_bytes", pinned_bytes.to_string()),
    ];
    let rows = pairs.map(|(name, value)| vec![Some(name.to_string()), Some(value)]).into();
    TextTable { columns, rows }
}
