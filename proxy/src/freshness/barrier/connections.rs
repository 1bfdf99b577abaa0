//! The barrier's connections to upstream: the one that asks for moments, with its statements prepared, and the one that
//! nudges.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::freshness::barrier::Shared;
use crate::freshness::fingerprint::{LogGeometry, differing_sql, full_sql, light_sql, moment_sql};
use crate::replication::status::Running;
use crate::upstream::UpstreamError;
use crate::upstream::connection::{Connection, Row};

/// Nudges follow each other no faster: each costs upstream a transaction and a flush.
const NUDGE_PAUSE: Duration = Duration::from_millis(2);

/// Opens the connection that asks; checks that it is at the stream's server.
pub(super) async fn connect(shared: &Shared, running: &Running) -> Result<(Connection, LogGeometry), UpstreamError> {
    let mut connection = open(shared).await?;
    let settings = "SELECT current_setting('wal_block_size'), pg_size_bytes(current_setting('wal_segment_size')), \
                    system_identifier FROM pg_control_system()";
    let rows = connection.simple_query(settings).await?;
    let cell = |column: usize| {
        let cell = rows.first().and_then(|row: &Row| row.get(column)).and_then(Option::as_ref);
        cell.and_then(|bytes| std::str::from_utf8(bytes).ok())
    };
    let number = |column| cell(column).and_then(|text| text.parse().ok()).filter(|number: &u64| *number > 0);
    let (Some(block_bytes), Some(segment_bytes)) = (number(0), number(1)) else {
        return Err(UpstreamError::Protocol("no log geometry"));
    };
    // That it is also the same postmaster, the start time says that every barrier returns.
    if cell(2) != Some(&running.server.system) {
        shared.replication.request_restart();
        return Err(UpstreamError::Protocol("the barrier and the stream are at different servers"));
    }
    connection.prepare("moment", &moment_sql()).await?;
    connection.prepare("light", &light_sql()).await?;
    connection.prepare("full", &full_sql()).await?;
    connection.prepare("differing", &differing_sql()).await?;
    Ok((connection, LogGeometry { block_bytes, segment_bytes }))
}

async fn open(shared: &Shared) -> Result<Connection, UpstreamError> {
    // The barrier statement is planned once, by index, and a nudge must not wait for standbys.
    let options = "-c search_path=pg_catalog -c plan_cache_mode=force_generic_plan -c jit=off -c TimeZone=UTC \
                   -c synchronous_commit=local -c default_transaction_isolation=read\\ committed \
                   -c default_transaction_read_only=off -c statement_timeout=5s -c idle_session_timeout=0 \
                   -c max_parallel_workers_per_gather=0 -c enable_seqscan=off -c enable_hashjoin=off \
                   -c enable_mergejoin=off -c enable_bitmapscan=off";
    let parameters = [("application_name", shared.replication.name()), ("options", options)];
    Connection::open(shared.replication.address(), &parameters).await
}

/// SQL that makes upstream flush its log. Until PostgreSQL 16 a transaction does, at its commit; from 17 on a message can be flushed
/// that is of no transaction, and takes no transaction id.
const NUDGE: [&str; 2] = [
    "SELECT pg_logical_emit_message(true, 'freshet', '')",
    "SELECT pg_logical_emit_message(false, 'freshet', '', flush => true)",
];

/// Makes upstream flush its log whenever asked to.
pub(super) async fn run_nudges(shared: Arc<Shared>, nudge: Arc<Notify>) {
    loop {
        let outcome: Result<(), UpstreamError> = async {
            let mut connection = open(&shared).await?;
            let can_flush = shared.replication.loaded().catalog.server_version >= 170_000;
            connection.prepare("nudge", NUDGE[usize::from(can_flush)]).await?;
            loop {
                nudge.notified().await;
                connection.execute("nudge", &[]).await?;
                shared.counters.nudges.fetch_add(1, Ordering::Relaxed);
                shared.replication.ping();
                sleep(NUDGE_PAUSE).await;
            }
        }
        .await;
        if let Err(error) = outcome {
            tracing::debug!(%error, "the nudge connection is lost");
            sleep(Duration::from_millis(200)).await;
        }
    }
}
