//! What the operator sees, gathered from metrics, mirror, audit and caches when it is asked for.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::admin::{RouteTotals, Source, Status, TableReport};
use crate::metrics::Metrics;
use crate::session::answer::{TextColumn, TextKind, TextTable};
use crate::session::local::Local;
use crate::statistics::ShapeReport;

/// Statements on the page.
const STATEMENTS_SHOWN: usize = 30;

/// Where the endpoints look.
pub struct Observed {
    pub metrics: Metrics,
    /// None: freshet is a plain relay.
    pub local: Option<Arc<Local>>,
    pub upstream: String,
    pub freshness: &'static str,
}

impl Source for Observed {
    fn status(&self) -> Status {
        self.refresh();
        let local = self.local.as_deref();
        let report = local.map(|local| local.freshness.report());
        Status {
            version: env!("CARGO_PKG_VERSION"),
            upstream: self.upstream.clone(),
            freshness: self.freshness,
            mirror: match &report {
                None => "off".into(),
                Some(report) if report.is_ready => "running".into(),
                Some(report) => format!("{:?}", report.stream.state),
            },
            routes: self.totals(),
            sessions: u64::try_from(self.metrics.sessions.get()).unwrap_or(0),
            lag_ms: report.as_ref().and_then(|report| report.lag_ms),
            lag_bytes: report.as_ref().map(|report| report.lag_bytes),
            audits: self.metrics.audits.get(),
            wrong_answers: self.metrics.wrong_answers.get(),
            tables: local.map(tables).unwrap_or_default(),
            statements: local.map(|local| local.statistics.top(STATEMENTS_SHOWN)).unwrap_or_default(),
        }
    }

    fn metrics(&self) -> String {
        self.refresh();
        self.metrics.render()
    }

    fn readiness(&self) -> Result<(), String> {
        let Some(local) = &self.local else { return Ok(()) };
        let report = local.freshness.report();
        if report.is_ready { Ok(()) } else { Err(format!("the mirror is not running: {:?}", report.stream.state)) }
    }
}

impl Observed {
    fn totals(&self) -> RouteTotals {
        let [(_, hit), (_, local), (_, capture), (_, relay)] = self.metrics.route_totals();
        RouteTotals { hit, local, capture, relay }
    }

    /// Brings the metrics that mirror others' counters up to date.
    fn refresh(&self) {
        let Some(local) = &self.local else { return };
        let metrics = &self.metrics;
        let raise = |counter: &prometheus_client::metrics::counter::Counter, to: u64| {
            counter.inc_by(to.saturating_sub(counter.get()));
        };
        raise(&metrics.audits, local.audit.counters.compared.load(Relaxed));
        raise(&metrics.wrong_answers, local.audit.counters.wrong_answers.load(Relaxed));
        let counters = local.freshness.counters();
        raise(&metrics.barriers, counters.barriers.load(Relaxed));
        raise(&metrics.full_barriers, counters.full_barriers.load(Relaxed));
        raise(&metrics.nudges, counters.nudges.load(Relaxed));
        raise(&metrics.over_budget, counters.over_budget.load(Relaxed));
        raise(&metrics.not_a_prefix, counters.not_a_prefix.load(Relaxed));
        raise(&metrics.catalog_changes, counters.catalog_changes.load(Relaxed));
        let report = local.freshness.report();
        metrics.lag_seconds.set(report.lag_ms.map_or(f64::NAN, |ms| ms as f64 / 1000.0));
        metrics.lag_bytes.set(i64::try_from(report.lag_bytes).unwrap_or(i64::MAX));
        let tables = tables(local);
        let mirrored = tables.iter().filter(|table| table.state == "mirrored").count();
        metrics.mirrored_tables.set(i64::try_from(mirrored).unwrap_or(0));
        metrics.mirrored_bytes.set(tables.iter().map(|table| i64::try_from(table.bytes).unwrap_or(0)).sum());
        let (entries, bytes) = local.result_size();
        metrics.result_cache_entries.set(i64::try_from(entries).unwrap_or(0));
        metrics.result_cache_bytes.set(i64::try_from(bytes).unwrap_or(0));
    }
}

fn tables(local: &Local) -> Vec<TableReport> {
    let mut tables: Vec<TableReport> = local
        .freshness
        .statuses()
        .into_iter()
        .map(|table| TableReport {
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

/// The rows of a relation of the virtual schema.
pub fn virtual_table(local: &Local, name: &str) -> Option<TextTable> {
    match name {
        "tables" => Some(tables_relation(local)),
        "statements" => Some(statements_relation(local)),
        "status" => Some(status_relation(local)),
        _ => None,
    }
}

fn column(name: &'static str, kind: TextKind) -> TextColumn {
    TextColumn { name, kind }
}

fn tables_relation(local: &Local) -> TextTable {
    let columns = vec![
        column("name", TextKind::Text),
        column("state", TextKind::Text),
        column("rows", TextKind::Int8),
        column("bytes", TextKind::Int8),
        column("reason", TextKind::Text),
        column("remedy", TextKind::Text),
        column("generation", TextKind::Text),
    ];
    let mut rows: Vec<Vec<Option<String>>> = local
        .freshness
        .statuses()
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

fn statements_relation(local: &Local) -> TextTable {
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
        "survivals",
        "invalidations",
    ];
    let mut columns = vec![column("statement", TextKind::Text)];
    columns.extend(numbers.map(|name| column(name, TextKind::Int8)));
    columns.extend(["invalidated_by", "reason"].map(|name| column(name, TextKind::Text)));
    let row = |shape: ShapeReport| {
        let routes = [shape.calls(), shape.hits, shape.local, shape.captures, shape.relayed];
        let times = [shape.hit_us, shape.local_us, shape.capture_us];
        let numbers = routes.into_iter().chain([shape.elapsed_us, shape.saved_us]).chain(times.into_iter().flatten());
        let numbers = numbers.chain([shape.survivals, shape.invalidations.iter().sum()]);
        let invalidated_by = shape.invalidated_by();
        let mut cells = vec![Some(shape.statement)];
        cells.extend(numbers.map(|number| Some(number.to_string())));
        cells.extend([Some(invalidated_by), Some(shape.reason)]);
        cells
    };
    let rows = local.statistics.top(crate::statistics::SHAPES_MAX).into_iter().map(row).collect();
    TextTable { columns, rows }
}

fn status_relation(local: &Local) -> TextTable {
    let columns = vec![column("name", TextKind::Text), column("value", TextKind::Text)];
    let report = local.freshness.report();
    let audit = &local.audit.counters;
    let (entries, bytes) = local.result_size();
    let (plans, join_bytes) = local.engine.sizes();
    let (pins, pinned_bytes) = local.freshness.pinned_size();
    let pairs = [
        ("version", env!("CARGO_PKG_VERSION").to_string()),
        ("database", local.database.clone()),
        ("mirror", format!("{:?}", report.stream.state)),
        ("ready", report.is_ready.to_string()),
        ("applied_lsn", report.stream.applied.to_string()),
        ("lag_bytes", report.lag_bytes.to_string()),
        ("lag_ms", report.lag_ms.map_or_else(String::new, |ms| ms.to_string())),
        ("transactions", report.stream.transactions.to_string()),
        ("barriers", local.freshness.counters().barriers.load(Relaxed).to_string()),
        ("stream_restarts", report.stream.restarts.to_string()),
        ("catalog_version", report.stream.catalog_version.to_string()),
        ("audits", audit.compared.load(Relaxed).to_string()),
        ("audits_inconclusive", audit.inconclusive.load(Relaxed).to_string()),
        ("shape_mismatches", audit.shape_mismatches.load(Relaxed).to_string()),
        ("wrong_answers", audit.wrong_answers.load(Relaxed).to_string()),
        ("result_cache_entries", entries.to_string()),
        ("result_cache_bytes", bytes.to_string()),
        ("plans", plans.to_string()),
        ("join_cache_bytes", join_bytes.to_string()),
        ("standby", local.freshness.standby().unwrap_or_default()),
        ("snapshots_pinned", pins.to_string()),
        ("snapshot_bytes", pinned_bytes.to_string()),
    ];
    let rows = pairs.map(|(name, value)| vec![Some(name.to_string()), Some(value)]).into();
    TextTable { columns, rows }
}
