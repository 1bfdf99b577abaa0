//! What the operator is told about the mirror: the stream as a whole, and each table.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use freshet_engine::catalog::TableSchema;
use freshet_engine::types::Lsn;

use crate::replication::bootstrap::Publication;
use crate::replication::stream::ServerIdentity;

/// Where the stream stands.
#[derive(Clone, Debug)]
pub enum StreamState {
    /// Not (or no longer) running; readers are relayed meanwhile.
    Down(Cow<'static, str>),
    /// Cannot run until the operator mends something.
    RelayOnly(Cow<'static, str>),
    Running(Arc<Running>),
}

impl fmt::Display for StreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down(why) => write!(f, "down: {why}"),
            Self::RelayOnly(why) => write!(f, "relay only: {why}"),
            Self::Running(_) => f.write_str("running"),
        }
    }
}

/// One life of the stream. Everything in the mirror belongs to exactly one.
#[derive(Debug)]
pub struct Running {
    /// Counts lives.
    pub epoch: u64,
    pub server: ServerIdentity,
    pub publication: Publication,
}

/// One table, as `freshet.tables` shows it.
#[derive(Clone, Debug)]
pub struct TableReport {
    pub schema: Arc<TableSchema>,
    /// `mirrored`, `copying`, `tracked` or `relayed`.
    pub state: &'static str,
    /// Why it is not mirrored; empty if it is.
    pub reason: String,
    /// SQL that would let it be mirrored; empty if none is needed or known.
    pub remedy: String,
    pub rows: u64,
    pub bytes: u64,
    pub generation: Lsn,
}

/// One column of a table in memory, as `freshet.columns` shows it.
#[derive(Clone, Debug)]
pub struct ColumnReport {
    pub table: Arc<TableSchema>,
    /// Index into the table's columns.
    pub column: usize,
    /// None: its values are not held, and what reads it is upstream's.
    pub bytes: Option<u64>,
}

/// The stream, as `freshet.status` shows it.
#[derive(Clone, Debug)]
pub struct StreamReport {
    pub state: StreamState,
    pub applied: Lsn,
    /// Transactions applied since the start.
    pub transactions: u64,
    /// Resident estimate of all mirrored tables.
    pub bytes: u64,
    pub restarts: u64,
    /// Of upstream's log that it keeps for the slot, as of the last look.
    pub wal_kept_bytes: u64,
    /// Whether the event trigger fires.
    pub event_trigger: &'static str,
    pub catalog_version: u64,
}

/// Counters of the stream, for metrics.
#[derive(Debug, Default)]
pub struct StreamCounters {
    /// Transactions applied that changed a published table.
    pub transactions: AtomicU64,
    /// Lives of the stream that ended.
    pub restarts: AtomicU64,
    pub catalog_loads: AtomicU64,
    /// Bytes of upstream's log that it keeps for the slot, as of the last look.
    pub wal_kept_bytes: AtomicU64,
    /// First copies that were finished.
    pub copies: AtomicU64,
}
