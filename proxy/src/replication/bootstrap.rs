//! What the stream needs upstream: the publication, and the hand-over of one table from its first copy to the stream.
//!
//! Hand-over by visibility: keep changes, publish the table, wait for transactions that wrote it before that, lock it,
//! take the snapshot, copy. Lock before snapshot: a rewrite or TRUNCATE committed between would leave the snapshot an
//! empty table. Wait for lockers: a transaction that began before the table was published is delivered in part only.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use freshet_engine::catalog::RelationId;
use freshet_engine::mirror::TrackedBecause;
use freshet_engine::snapshot::VisibilitySnapshot;
use freshet_engine::table::{TableBuilder, TableVersion};
use freshet_engine::types::{Lsn, Oid};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;

use crate::replication::catalog::{TableFacts, UNFIT_IDENTITY, membership_digest_sql, relations_digest_sql};
use crate::replication::copy::{CopyBudget, CopyError, CopySlots, Held, Slot, copy_range, page_ranges, qualified_name};
use crate::replication::stream::STARTED_AT;
use crate::replication::trigger;
use crate::upstream::UpstreamError;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connection::{Connection, Row};
use crate::upstream::service::ServicePool;

/// For connections that copy. A waiting request for a lock holds up those behind it, so it must not wait for long;
/// the copy itself may take as long as it takes, unless nobody is there any more to take what is sent: then upstream gives up its locks.
const COPY_OPTIONS: &str = "-c search_path=pg_catalog -c lock_timeout=2s -c statement_timeout=0 \
                            -c tcp_user_timeout=60s -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 \
                            -c idle_in_transaction_session_timeout=0 -c jit=off -c max_parallel_workers_per_gather=0";
/// A setting since PostgreSQL 17; earlier servers refuse who names it.
const NO_TRANSACTION_TIMEOUT: &str = " -c transaction_timeout=0";

/// [`COPY_OPTIONS`] for this server (`server_version_num`).
fn copy_options(server_version: u32) -> String {
    let latest = if server_version >= 170_000 { NO_TRANSACTION_TIMEOUT } else { "" };
    format!("{COPY_OPTIONS}{latest}")
}
/// How long transactions that wrote the table before it was published may go on before the copy is put off.
const LOCKERS_WAIT_MAX: Duration = Duration::from_secs(300);
/// Between looks whether they have ended, doubling.
const LOCKERS_PAUSE_MIN: Duration = Duration::from_millis(20);
const LOCKERS_PAUSE_MAX: Duration = Duration::from_millis(500);

/// freshet's publication. Its name is the process's own, begins that of its slots and is the `application_name` of its
/// connections: several freshets on one upstream never share one, and what a dead one left behind can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    pub name: String,
    pub oid: Oid,
    /// Of its own catalog row.
    pub digest: i64,
}

/// A name for the publication, slot and connections of this process: `prefix` and twelve hexadecimal digits.
pub fn fresh_name(prefix: &str) -> String {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    let mut name: String =
        prefix.chars().map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '_' }).take(40).collect();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, "freshet_");
    }
    name.push_str(&format!("_{:012x}", random & 0xffff_ffff_ffff));
    name
}

/// Creates the publication anew, empty, and drops those that dead freshets left behind.
pub async fn create_publication(pool: &ServicePool, prefix: &str, name: &str) -> Result<Publication, UpstreamError> {
    drop_abandoned(pool, prefix).await?;
    let client = pool.connection().await?;
    client.batch_execute(&format!("DROP PUBLICATION IF EXISTS {name}")).await?;
    client
        .batch_execute(&format!(
            "CREATE PUBLICATION {name} WITH (publish = 'insert, update, delete, truncate', \
             publish_via_partition_root = false)"
        ))
        .await?;
    let row = client
        .query_one(
            "SELECT oid, hashint8extended(xmin::text::int8, oid::int8) FROM pg_publication WHERE pubname = $1",
            &[&name],
        )
        .await?;
    Ok(Publication { name: name.to_string(), oid: row.get(0), digest: row.get(1) })
}

/// Takes a table out, whatever it is called by now, so that nothing about it can trouble those who write it. One that is gone is out.
/// VACUUM, ANALYZE and CREATE INDEX CONCURRENTLY hold the lock that this needs (publicationcmds.c, OpenTableList), for hours maybe:
/// who meets them gets 55P03 at once.
pub async fn unpublish(pool: &ServicePool, publication: &str, table: RelationId) -> Result<(), UpstreamError> {
    const NAME: &str = "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_publication_rel r ON r.prrelid = c.oid
                          JOIN pg_publication p ON p.oid = r.prpubid WHERE c.oid = $1 AND p.pubname = $2";
    let mut client = pool.connection().await?;
    let transaction = client.transaction().await?;
    let Some(row) = transaction.query_opt(NAME, &[&table.0, &publication]).await? else { return Ok(()) };
    let name: String = row.get(0);
    let drop = format!("SET LOCAL lock_timeout = '200ms'; ALTER PUBLICATION {publication} DROP TABLE ONLY {name}");
    transaction.batch_execute(&drop).await?;
    Ok(transaction.commit().await?)
}

/// Whose transactions a process waits for, to be read by people; None: nobody's.
pub async fn who_holds_up(pool: &ServicePool, process: i32) -> Result<Option<String>, UpstreamError> {
    const WHO: &str = "SELECT string_agg(CASE WHEN b.pid = 0 THEN 'a prepared one (pg_prepared_xacts)'
              ELSE format('process %s of %I in %I, %s, open since %s', b.pid, a.usename, a.datname,
                          coalesce(a.state, 'at work'), coalesce(a.xact_start::text, 'some time')) END, '; ')
         FROM (SELECT DISTINCT unnest(pg_blocking_pids($1))) b (pid) LEFT JOIN pg_stat_activity a USING (pid)";
    Ok(pool.connection().await?.query_one(WHO, &[&process]).await?.get(0))
}

/// Whether UPDATE and DELETE of the table fail as long as it is published.
pub async fn is_harmed(pool: &ServicePool, table: RelationId) -> Result<bool, UpstreamError> {
    let is_harmed = format!("SELECT EXISTS (SELECT FROM pg_class c WHERE c.oid = $1 AND {UNFIT_IDENTITY})");
    Ok(pool.connection().await?.query_one(&is_harmed, &[&table.0]).await?.get(0))
}

/// The digest of the publication's own row (None: it is gone) and that of each member's.
pub async fn membership(
    pool: &ServicePool,
    publication: Oid,
) -> Result<(Option<i64>, HashMap<RelationId, i64>), UpstreamError> {
    let client = pool.connection().await?;
    let own = "SELECT hashint8extended(xmin::text::int8, oid::int8) FROM pg_publication WHERE oid = $1";
    let own = client.query_opt(own, &[&publication]).await?.map(|row| row.get(0));
    let members =
        "SELECT prrelid, hashint8extended(xmin::text::int8, oid::int8) FROM pg_publication_rel WHERE prpubid = $1";
    let members = client.query(members, &[&publication]).await?;
    Ok((own, members.iter().map(|row| (RelationId(row.get(0)), row.get(1))).collect()))
}

/// Drops publications of freshet's naming, owned by a role that we may act as, whose freshet has no connection any more.
/// The names dropped.
pub async fn drop_abandoned(pool: &ServicePool, prefix: &str) -> Result<Vec<String>, UpstreamError> {
    let pattern = naming(prefix);
    for name in trigger::abandoned(pool, &pattern).await? {
        trigger::drop_trigger(pool, &name).await?;
    }
    // Not before: a pool may have one connection.
    let client = pool.connection().await?;
    let abandoned = client
        .query(
            "SELECT pubname FROM pg_publication
              WHERE pubname ~ $1 AND pg_has_role(pubowner, 'USAGE')
                AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = pubname)",
            &[&pattern],
        )
        .await?;
    let names: Vec<String> = abandoned.iter().map(|row| row.get(0)).collect();
    for name in &names {
        client.batch_execute(&format!("DROP PUBLICATION IF EXISTS {name}")).await?;
    }
    Ok(names)
}

/// A publication of freshet's naming that [`drop_abandoned`] leaves.
pub struct Left {
    pub name: String,
    /// For people.
    pub why: String,
    /// It may be dropped by this role, but for who uses it.
    pub is_ours: bool,
}

/// What is left, by name.
pub async fn left_behind(pool: &ServicePool, prefix: &str) -> Result<Vec<Left>, UpstreamError> {
    const LEFT: &str = "
        SELECT pubname, pg_get_userbyid(pubowner)::text, pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname ~ $1
        ORDER BY pubname";
    let pattern = naming(prefix);
    let rows = pool.connection().await?.query(LEFT, &[&pattern]).await?;
    let why = |owner: &str, is_ours| match is_ours {
        true => "a freshet that runs uses it".to_owned(),
        false => format!("it belongs to {owner}: run this as that role, unless a freshet that runs uses it"),
    };
    let left = rows.iter().map(|row| Left { name: row.get(0), why: why(row.get(1), row.get(2)), is_ours: row.get(2) });
    Ok(left.collect())
}

/// What publications of freshet's are called.
fn naming(prefix: &str) -> String {
    format!("^{}_[0-9a-f]{{12}}$", fresh_name(prefix).rsplit_once('_').map_or("", |(prefix, _)| prefix))
}

/// Whether it is gone: a standby keeps what its primary has, and logs who would change it.
pub async fn drop_publication(pool: &ServicePool, name: &str) -> Result<bool, UpstreamError> {
    let client = pool.connection().await?;
    if client.query_one("SELECT pg_is_in_recovery()", &[]).await?.get::<_, bool>(0) {
        return Ok(false);
    }
    client.batch_execute(&format!("DROP PUBLICATION IF EXISTS {name}")).await?;
    Ok(true)
}

/// Why a hand-over was not finished, by what comes next.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// The table is no longer what the catalog said: read the catalog again, then try again.
    #[error("the table changed while it was handed over")]
    CatalogMoved,
    /// Someone waits for a lock that the copy holds up: step aside, try again later.
    #[error("another session waits for a lock on the table")]
    InTheWay,
    #[error("transactions that wrote the table went on for too long")]
    LockersStayed,
    /// What is to be set on it cannot be without waiting for others, or making them wait.
    #[error("it is to be published, or its replica identity to be set, when no other session's lock is in the way")]
    Locked,
    /// It is copied once the catalog that is in use does not have them computed any more.
    #[error("stored columns are not what their expressions give")]
    StoredOtherwise,
    /// It does not fit beside another that is copied.
    #[error("there is no room for it beside another copy")]
    Crowded,
    #[error(transparent)]
    Copy(#[from] CopyError),
}

impl From<UpstreamError> for HandOverError {
    fn from(error: UpstreamError) -> Self {
        Self::Copy(CopyError::Upstream(error))
    }
}

impl From<tokio_postgres::Error> for HandOverError {
    fn from(error: tokio_postgres::Error) -> Self {
        UpstreamError::from(error).into()
    }
}

/// A table that is followed from now on.
pub struct HandedOver {
    /// Its first copy; an error says why there is none.
    pub table: Result<TableVersion, TrackedBecause>,
    pub copied_at: VisibilitySnapshot,
    pub insert_lsn: Lsn,
    /// Of the table's row in pg_publication_rel.
    pub membership: i64,
    /// The memory of the copy, until the mirror counts it.
    pub held: Vec<Held>,
    pub slot: Option<Slot>,
    /// Its stored columns are not what their expressions give.
    pub is_stored_otherwise: bool,
}

/// What a hand-over works with.
#[derive(Clone)]
pub struct HandOver {
    pub pool: ServicePool,
    pub address: UpstreamAddress,
    pub publication: Publication,
    pub facts: TableFacts,
    /// [`LoadedCatalog::stored_columns`](crate::replication::catalog::LoadedCatalog::stored_columns) of it.
    pub stored_columns: Option<String>,
    /// `server_version_num`.
    pub server_version: u32,
    pub workers: usize,
    pub budget: Arc<CopyBudget>,
    pub slots: Arc<CopySlots>,
    /// When the stream's server was started, microseconds since 2000: rows of another are not this mirror's.
    pub started_at: i64,
    pub rows_copied: Arc<AtomicU64>,
}

impl HandOver {
    /// Copies the table. The mirror must already keep its changes.
    pub async fn run(&self) -> Result<HandedOver, HandOverError> {
        self.prepare().await?;
        let slot = tokio::select! {
            slot = self.slots.take() => slot?,
            why = self.harmed() => return Err(why),
        };
        let (leader, anchor) = self.begin().await?;
        let copied = tokio::select! {
            copied = self.copy_and_compare(leader, &anchor) => copied,
            why = self.disturbed() => return Err(why),
        };
        let copied = copied.map_err(|error| match error {
            // Another has a part of the memory, which this one may fit into without it.
            HandOverError::Copy(CopyError::OverMemory) if self.slots.reading() > 1 => HandOverError::Crowded,
            error => error,
        })?;
        let (copied, is_stored_otherwise) = copied;
        let (ranges, held): (Vec<TableBuilder>, Vec<Held>) = copied.into_iter().unzip();
        let table = TableVersion::of_ranges(Arc::clone(&self.facts.schema), ranges);
        Ok(HandedOver { held, slot: Some(slot), is_stored_otherwise, ..anchor.handed_over(Ok(table)) })
    }

    /// Likewise without its rows, for the reason given.
    pub async fn track(&self, why: TrackedBecause) -> Result<HandedOver, HandOverError> {
        self.prepare().await?;
        let (connection, anchor) = self.begin().await?;
        connection.terminate().await;
        Ok(anchor.handed_over(Err(why)))
    }

    async fn prepare(&self) -> Result<(), HandOverError> {
        self.publish().await?;
        self.wait_for_lockers().await
    }

    /// The moment from which the stream tells what changes, and the connection whose transaction sees it.
    async fn begin(&self) -> Result<(Connection, Anchor), HandOverError> {
        let mut leader = self.connect().await?;
        let anchor = self.anchor(&mut leader).await?;
        Ok((leader, anchor))
    }

    async fn connect(&self) -> Result<Connection, UpstreamError> {
        let options = copy_options(self.server_version);
        let parameters = [("application_name", self.publication.name.as_str()), ("options", options.as_str())];
        Connection::open(&self.address, &parameters).await
    }

    /// Adds the table to the publication, unless the table is no longer what was judged fit for it. The lock that ALTER
    /// PUBLICATION takes keeps the identity from being dropped between the check and the commit.
    async fn publish(&self) -> Result<(), HandOverError> {
        let mut client = self.pool.connection().await?;
        let transaction = client.transaction().await?;
        let oids: Vec<Oid> = vec![self.facts.schema.id.0];
        let is_member = "SELECT EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = $1 AND prrelid = $2)";
        if !transaction.query_one(is_member, &[&self.publication.oid, &oids[0]]).await?.get::<_, bool>(0) {
            let name = qualified_name(&self.facts.schema);
            // Shorter than the default of deadlock_timeout, after which an autovacuum that holds the table is cancelled for who waits (proc.c).
            let added = format!(
                "SET LOCAL lock_timeout = '200ms'; ALTER PUBLICATION {} ADD TABLE ONLY {name}",
                self.publication.name
            );
            let is_added = transaction.batch_execute(&added).await;
            is_added.map_err(|error| match error.code() {
                Some(&SqlState::LOCK_NOT_AVAILABLE) => HandOverError::Locked,
                _ => error.into(),
            })?;
        }
        let digest = format!("SELECT {}", relations_digest_sql());
        if transaction.query_one(&digest, &[&oids]).await?.get::<_, i64>(0) != self.facts.digest {
            return Err(HandOverError::CatalogMoved);
        }
        Ok(transaction.commit().await?)
    }

    /// Waits until every transaction that had written the table when it was published has ended (the way of
    /// CREATE INDEX CONCURRENTLY). Locks are given up after the transaction has become visible. A transaction is known by
    /// its xid: PREPARE TRANSACTION takes its virtual one away, and it is as invisible as before. One that has no xid yet has
    /// written nothing.
    async fn wait_for_lockers(&self) -> Result<(), HandOverError> {
        // One look at the locks: between two of them a transaction may be prepared.
        const LOCKERS: &str = "WITH locks AS MATERIALIZED (SELECT * FROM pg_locks)
           SELECT DISTINCT x.transactionid::text
             FROM locks l JOIN locks x ON x.virtualtransaction = l.virtualtransaction
            WHERE l.relation = $1 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
              AND l.granted
              AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
              AND x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock' AND x.granted";
        // And whether the table is harmed: until it is copied or mirrored, nobody else watches that.
        let remaining = format!(
            "SELECT transactionid::text, EXISTS (SELECT FROM pg_class c WHERE c.oid = $2 AND {UNFIT_IDENTITY})
               FROM pg_locks
              WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted AND transactionid::text = ANY ($1)"
        );
        let (table, started) = (self.facts.schema.id.0, Instant::now());
        let mut pause = LOCKERS_PAUSE_MIN;
        let texts = |rows: &[tokio_postgres::Row]| rows.iter().map(|row| row.get(0)).collect::<Vec<String>>();
        let mut lockers = texts(&self.pool.connection().await?.query(LOCKERS, &[&table]).await?);
        let _waiting = (!lockers.is_empty()).then(|| self.slots.wait_for_writers());
        while !lockers.is_empty() {
            if started.elapsed() > LOCKERS_WAIT_MAX {
                return Err(HandOverError::LockersStayed);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOCKERS_PAUSE_MAX);
            let rows = self.pool.connection().await?.query(&remaining, &[&lockers, &table]).await?;
            if rows.first().is_some_and(|row| row.get(1)) {
                return Err(HandOverError::CatalogMoved);
            }
            lockers = texts(&rows);
        }
        Ok(())
    }

    /// Returns when the table's UPDATE and DELETE fail because it is published: as long as it waits, nobody else watches that.
    async fn harmed(&self) -> HandOverError {
        loop {
            sleep(LOCKERS_PAUSE_MAX).await;
            if matches!(is_harmed(&self.pool, self.facts.schema.id).await, Ok(true)) {
                return HandOverError::CatalogMoved;
            }
        }
    }

    /// Locks the table, then takes the snapshot that the copy is made under, and checks that it is the table expected.
    async fn anchor(&self, leader: &mut Connection) -> Result<Anchor, HandOverError> {
        let relation = self.facts.schema.id.0;
        let name = qualified_name(&self.facts.schema);
        leader.simple_query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        leader.simple_query(&format!("LOCK TABLE ONLY {name} IN ACCESS SHARE MODE")).await?;
        let bind = |sql: String| {
            sql.replace("$1", &format!("'{{{relation}}}'")).replace("$2", &self.publication.oid.to_string())
        };
        let rows = leader
            .simple_query(&format!(
                "SELECT pg_current_snapshot(), pg_current_wal_insert_lsn(), pg_export_snapshot(),
                        pg_relation_size({relation}) / current_setting('block_size')::int8, {}, {}, {STARTED_AT}",
                bind(relations_digest_sql()),
                bind(membership_digest_sql()),
            ))
            .await?;
        let row = rows.first().ok_or(UpstreamError::Protocol("a row is missing"))?;
        let anchor = Anchor {
            snapshot: cell(row, 0, VisibilitySnapshot::parse)?,
            insert_lsn: cell(row, 1, |text| text.parse().ok())?,
            exported: cell(row, 2, |text| Some(text.to_string()))?,
            pages: cell(row, 3, |text| text.parse().ok())?,
            membership: cell(row, 5, |text| text.parse().ok())?,
        };
        let digest: i64 = cell(row, 4, |text| text.parse().ok())?;
        if cell(row, 6, |text| text.parse::<i64>().ok())? != self.started_at {
            // The address leads to another server by now, or to this one after a restart; whoever looks after the stream will know.
            return Err(HandOverError::CatalogMoved);
        }
        // No membership: taken out of the publication between the two transactions.
        if digest != self.facts.digest || anchor.membership == 0 {
            return Err(HandOverError::CatalogMoved);
        }
        Ok(anchor)
    }

    /// The ranges, and whether stored columns are others than their expressions give.
    async fn copy_and_compare(&self, mut leader: Connection, anchor: &Anchor) -> Result<(Copied, bool), HandOverError> {
        let copied = self.copy(&mut leader, anchor).await?;
        let mut is_stored_otherwise = false;
        if let Some(differs) = &self.stored_columns {
            let name = qualified_name(&self.facts.schema);
            // Digits enough to tell floats apart.
            leader.simple_query("SET LOCAL extra_float_digits = 3").await?;
            let compared =
                leader.simple_query(&format!("SELECT EXISTS (SELECT FROM ONLY {name} WHERE {differs})")).await;
            is_stored_otherwise = match compared {
                Ok(rows) => rows.first().and_then(|row| row.first()).and_then(Option::as_deref) != Some(b"f"),
                // It would raise now.
                Err(UpstreamError::Server(_)) => true,
                Err(error) => return Err(error.into()),
            };
        }
        leader.terminate().await;
        Ok((copied, is_stored_otherwise))
    }

    /// Copies all ranges at once; the leader's transaction stays open until the others are done, as it owns the snapshot.
    async fn copy(&self, leader: &mut Connection, anchor: &Anchor) -> Result<Copied, HandOverError> {
        let ranges = page_ranges(anchor.pages, self.workers);
        let mut others = JoinSet::new();
        for (index, range) in ranges.iter().copied().enumerate().skip(1) {
            let (hand_over, exported) = (self.clone(), anchor.exported.clone());
            others.spawn(async move {
                let mut connection = hand_over.connect().await?;
                connection
                    .simple_query(&format!(
                        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '{exported}'"
                    ))
                    .await?;
                let schema = Arc::clone(&hand_over.facts.schema);
                let copied =
                    copy_range(&mut connection, schema, range, &hand_over.budget, &hand_over.rows_copied).await?;
                connection.terminate().await;
                Ok::<_, CopyError>((index, copied))
            });
        }
        let schema = Arc::clone(&self.facts.schema);
        let first = copy_range(leader, schema, ranges[0], &self.budget, &self.rows_copied).await?;
        let mut copied = vec![(0, first)];
        while let Some(joined) = others.join_next().await {
            copied.push(joined.map_err(|_| UpstreamError::Protocol("a copy was abandoned"))??);
        }
        copied.sort_by_key(|(index, _)| *index);
        Ok(copied.into_iter().map(|(_, range)| range).collect())
    }

    /// Returns when another session waits for a lock that the copy's ACCESS SHARE holds up, on the table or on one of its indexes (which
    /// planning the copy locks, too): DDL, behind which all readers and writers queue; or for the copy's transaction to end: CREATE INDEX
    /// CONCURRENTLY and its kin, of any table, do so for its lock or its snapshot (indexcmds.c, WaitForOlderSnapshots). Or when the table
    /// has lost its identity: DROP INDEX CONCURRENTLY takes that away with a lock that the copy does not hold up (index.c, index_drop).
    async fn disturbed(&self) -> HandOverError {
        // The locktype: one that waits for a row, or to add a page, names the table as well.
        const WAITS: &str = "SELECT EXISTS (
            SELECT FROM pg_locks
             WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock' AND NOT granted
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND (relation = $1 OR relation IN (SELECT indexrelid FROM pg_index WHERE indrelid = $1)))
            OR EXISTS (
            SELECT FROM pg_locks w JOIN pg_locks h ON h.locktype = 'virtualxid' AND h.virtualxid = w.virtualxid AND h.granted
                   JOIN pg_stat_activity a ON a.pid = h.pid
             WHERE w.locktype = 'virtualxid' AND NOT w.granted AND a.application_name = $2
               AND a.xact_start < clock_timestamp() - interval '100 ms')";
        let table = self.facts.schema.id;
        loop {
            sleep(Duration::from_millis(200)).await;
            let Ok(client) = self.pool.connection().await else { continue };
            if let Ok(row) = client.query_one(WAITS, &[&table.0, &self.publication.name]).await
                && row.get(0)
            {
                return HandOverError::InTheWay;
            }
            drop(client);
            if matches!(is_harmed(&self.pool, table).await, Ok(true)) {
                return HandOverError::CatalogMoved;
            }
        }
    }
}

/// Ranges of a table, in order, with the memory that they take.
type Copied = Vec<(TableBuilder, Held)>;

/// The moment of a first copy.
struct Anchor {
    snapshot: VisibilitySnapshot,
    insert_lsn: Lsn,
    exported: String,
    pages: u64,
    membership: i64,
}

impl Anchor {
    fn handed_over(self, table: Result<TableVersion, TrackedBecause>) -> HandedOver {
        let Self { snapshot: copied_at, insert_lsn, membership, .. } = self;
        let (held, slot, is_stored_otherwise) = (Vec::new(), None, false);
        HandedOver { table, copied_at, insert_lsn, membership, held, slot, is_stored_otherwise }
    }
}

fn cell<T>(row: &Row, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T, UpstreamError> {
    let bytes = row.get(column).and_then(Option::as_ref);
    let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.and_then(parse).ok_or(UpstreamError::Protocol("a value that is not understood"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_names_only_settings_that_the_server_has() {
        assert!(!copy_options(160_014).contains("transaction_timeout"));
        assert!(copy_options(170_000).ends_with("-c transaction_timeout=0"));
    }

    #[test]
    fn names_need_no_quoting_and_differ() {
        let (one, two) = (fresh_name("freshet"), fresh_name("freshet"));
        assert_ne!(one, two);
        assert_eq!(one.len(), "freshet_".len() + 12);
        let odd = fresh_name("Sales-\"x\"; --");
        assert!(fresh_name("9").starts_with("freshet_9_"));
        assert!(odd.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{odd}");
    }
}
