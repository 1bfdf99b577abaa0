//! What the operator is told: the stream, and every table that was wanted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use freshet_engine::catalog::{RelationId, TableSchema};
use freshet_engine::mirror::TableState;
use freshet_engine::types::Lsn;

use crate::replication::status::{ColumnReport, StreamCounters, StreamReport, TableReport};
use crate::replication::supervise::{Replication, Wanted};

impl Replication {
    pub fn report(&self) -> StreamReport {
        let shared = &self.shared;
        StreamReport {
            state: (*self.stream_state()).clone(),
            applied: shared.mirror.applied(),
            transactions: self.transactions(),
            bytes: shared.mirror.bytes() as u64,
            restarts: shared.counters.restarts.load(Ordering::Relaxed),
            wal_kept_bytes: shared.counters.wal_kept_bytes.load(Ordering::Relaxed),
            event_trigger: &shared.trigger.load(),
            catalog_version: shared.loaded.load().catalog.version,
        }
    }

    /// Every column of the tables in memory.
    pub fn columns(&self) -> Vec<ColumnReport> {
        let of_table = |(table, bytes): (Arc<TableSchema>, Vec<Option<usize>>)| {
            let report = move |(column, bytes): (usize, Option<usize>)| ColumnReport {
                table: Arc::clone(&table),
                column,
                bytes: bytes.map(|bytes| bytes as u64),
            };
            bytes.into_iter().enumerate().map(report)
        };
        self.shared.mirror.column_bytes().into_iter().flat_map(of_table).collect()
    }

    pub fn counters(&self) -> &StreamCounters {
        &self.shared.counters
    }

    /// A copy of this table is to come or runs, and has not failed again and again.
    pub fn awaits_copy(&self, relation: RelationId) -> bool {
        const FAILURES_MAX: u32 = 3;
        let catalog = Arc::clone(&self.loaded().catalog);
        let tables = self.shared.tables.lock();
        catalog.expand(&[relation]).iter().filter_map(|relation| tables.get(relation)).any(|entry| match entry.state {
            Wanted::Due(..) => entry.failures < FAILURES_MAX,
            Wanted::Copying { .. } => true,
            Wanted::Mirrored { .. } | Wanted::Refused(_) | Wanted::Unfit { .. } => false,
        })
    }

    /// Relations made of others that statements were answered from, or would have been.
    fn derived_tables(&self, of_tables: &[TableReport]) -> Vec<TableReport> {
        let catalog = Arc::clone(&self.loaded().catalog);
        let watched = self.watched();
        let report = |schema: &Arc<TableSchema>, state: &'static str, reason: &str| TableReport {
            schema: Arc::clone(schema),
            state,
            reason: reason.into(),
            remedy: String::new(),
            rows: 0,
            bytes: 0,
            generation: Lsn::default(),
        };
        let views = watched.iter().filter_map(|relation| catalog.views.get(relation));
        let views = views.map(|view| report(&view.schema, "mirrored", "a view: answered from what it reads"));
        let kept = watched.iter().filter_map(|relation| catalog.materialized.get(relation));
        let reason = "a materialized view: upstream's replies are kept until it is refreshed";
        let kept = kept.map(|view| report(&view.schema, "tracked", reason));
        let partitioned = watched.iter().filter_map(|relation| catalog.partitioned.get(relation));
        partitioned
            .map(|partitioned| {
                let leaves = partitioned.leaves.iter().map(|leaf| {
                    of_tables.iter().find(|report| report.schema.id == leaf.table && report.state == "mirrored")
                });
                let mirrored: Vec<&TableReport> = leaves.flatten().collect();
                let (known, all) = (mirrored.len(), partitioned.leaves.len());
                let is_whole = known == all;
                TableReport {
                    schema: Arc::clone(&partitioned.schema),
                    state: if is_whole { "mirrored" } else { "relayed" },
                    reason: if is_whole { String::new() } else { format!("{known} of {all} partitions are mirrored") },
                    remedy: String::new(),
                    rows: mirrored.iter().map(|report| report.rows).sum(),
                    bytes: 0,
                    generation: Lsn(mirrored.iter().map(|report| report.generation.0).max().unwrap_or(0)),
                }
            })
            .chain(views)
            .chain(kept)
            .collect()
    }

    /// Every table that was wanted, and with it what became of it.
    pub fn tables(&self) -> Vec<TableReport> {
        let shared = &self.shared;
        let loaded = shared.loaded.load_full();
        let tables = shared.tables.lock();
        let statuses = shared.mirror.statuses();
        let mut reports = Vec::with_capacity(tables.len());
        for (relation, entry) in tables.iter() {
            let Some(facts) = loaded.tables.get(relation) else { continue };
            let status = statuses.iter().find(|status| status.schema.id == *relation);
            let mut report = TableReport {
                schema: Arc::clone(&facts.schema),
                state: "relayed",
                reason: String::new(),
                remedy: String::new(),
                rows: status.map_or(0, |status| status.rows as u64),
                bytes: status.map_or(0, |status| status.bytes as u64),
                generation: status.map_or(Lsn::default(), |status| status.generation.0),
            };
            match &entry.state {
                Wanted::Due(_, why) => report.reason = why.to_string(),
                Wanted::Copying { rows, .. } => {
                    report.state = "copying";
                    report.rows = rows.load(Ordering::Relaxed);
                    report.reason = "its first copy runs".into();
                }
                Wanted::Mirrored { .. } => match status.map(|status| &status.state) {
                    Some(TableState::Mirrored) => report.state = "mirrored",
                    Some(TableState::Tracked(why)) => (report.state, report.reason) = ("tracked", why.to_string()),
                    Some(TableState::Poisoned(why)) => report.reason = why.to_string(),
                    Some(TableState::Copying) | None => report.reason = "changing".into(),
                },
                Wanted::Refused(refusal) => {
                    report.reason = refusal.why.clone();
                    report.remedy = refusal.remedy.clone().unwrap_or_default();
                }
                Wanted::Unfit { why, .. } => report.reason = why.clone(),
            }
            reports.push(report);
        }
        drop(tables);
        reports.extend(self.derived_tables(&reports));
        reports.sort_by(|a, b| (&a.schema.schema, &a.schema.name).cmp(&(&b.schema.schema, &b.schema.name)));
        reports
    }
}
