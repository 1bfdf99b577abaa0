//! [`SessionState`]: what is known of a session beside its messages, and what a local answer may depend on.

use std::sync::Arc;

use freshet_config::FreshnessMode;
use freshet_engine::planted::{Bug, is_planted};

use crate::freshness::pins::Choice;
use crate::session::settings::SessionSettings;
use crate::session::tracker::Own;
use crate::wire::query::TransactionStatus;

/// Who logged in, as far as the start-up packet and upstream's answer to it tell.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// As sent; the effective role is [`SessionSettings::role`].
    pub user: String,
    /// As sent, or the user's name (PostgreSQL: Message Formats, StartupMessage).
    pub database: String,
    pub application_name: String,
    /// From BackendKeyData; None where upstream sends none.
    pub process_id: Option<u32>,
    /// `replication` was asked for: the session is relayed unread.
    pub is_replication: bool,
    /// Where the client is, for the operator.
    pub client: String,
    /// What RESET makes of freshet's own settings: what the start-up packet has, as with every other setting.
    pub defaults: Own,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// As `default_transaction_isolation` shows it.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "read uncommitted" => Some(Self::ReadUncommitted),
            "read committed" => Some(Self::ReadCommitted),
            "repeatable read" => Some(Self::RepeatableRead),
            "serializable" => Some(Self::Serializable),
            _ => None,
        }
    }

    /// As [`Isolation::parse`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read uncommitted",
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }

    /// Whether each statement has a snapshot of its own, so that it may be answered from a newer state
    /// than the one before (PostgreSQL: Transaction Isolation; uncommitted is committed there).
    pub fn is_per_statement(self) -> bool {
        matches!(self, Self::ReadUncommitted | Self::ReadCommitted) || is_planted(Bug::AnswerSerializable)
    }
}

/// The open transaction block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// None: not known, treated as the strictest.
    pub isolation: Option<Isolation>,
    /// It has written, locked, or run something unknown: its reads see what only upstream knows.
    pub is_tainted: bool,
    /// Upstream was asked something in it, so that only upstream knows how it ends.
    pub has_relayed: bool,
    pub first_query: FirstQuery,
    /// Its now(), in microseconds since 2000 UTC, once upstream has been asked.
    pub time: Option<i64>,
}

/// Whose the transaction's first query was. After one, SET TRANSACTION is an error (PostgreSQL: variable.c, whose checks of
/// transaction_isolation, transaction_read_only and transaction_deferrable ask for FirstSnapshotSet).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstQuery {
    #[default]
    None,
    /// It was answered here: upstream would still allow it.
    Here,
    Upstream,
}

impl Transaction {
    /// A block that begins.
    pub fn new(isolation: Option<Isolation>) -> Self {
        Self { isolation, ..Self::default() }
    }

    /// Each of its statements sees what is committed then, and nothing of its own.
    pub fn allows_answers(&self) -> bool {
        !self.is_tainted && self.isolation.is_some_and(Isolation::is_per_statement)
    }
}

/// `SET freshet.route`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RouteSetting {
    #[default]
    Auto,
    /// Skip the result cache, so that the engine runs.
    Local,
    /// Never answer locally.
    Relay,
}

impl RouteSetting {
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Local => "local",
            Self::Relay => "relay",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Auto, Self::Local, Self::Relay].into_iter().find(|route| route.name() == text)
    }
}

/// One session at one moment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionState {
    pub login: Arc<Login>,
    /// None: not certain; [`crate::session::tracker`] or a probe makes it so. Always Some where a unit is offered for a
    /// local answer.
    pub settings: Option<Arc<SessionSettings>>,
    pub status: TransactionStatus,
    pub transaction: Transaction,
    /// The unit is one of several executions up to a Sync: one implicit transaction, whose clock they share.
    pub shares_transaction: bool,
    /// Of the session; [`SessionState::default_freshness`] unless it has set another.
    pub freshness: FreshnessMode,
    pub default_freshness: FreshnessMode,
    pub route: RouteSetting,
    /// Its statements read this snapshot.
    pub snapshot: Option<Arc<Choice>>,
    /// What cannot be answered from the snapshot is an error.
    pub snapshot_strict: bool,
    /// It may listen for notifications: upstream sends those that are due before it answers, so it must be asked.
    pub listens: bool,
    /// What `version()` is, and the role that was told: it may execute it.
    pub version: Option<(Arc<str>, Arc<str>)>,
    /// When the server was started that its line ends at, in microseconds since 2000 UTC, once upstream has been asked: the same as
    /// long as the session lasts.
    pub started_at: Option<i64>,
    /// Of upstream's catalog, as far as the session has asked: what the search path and the role's name in `settings` are
    /// as of; see also [`super::answer::PreparedStatement::catalog`].
    pub catalog_version: u64,
    /// Of upstream's configuration, likewise: how often it had been seen to change.
    pub configuration: u64,
}

impl SessionState {
    /// A fresh session, nothing probed yet.
    pub fn new(login: Login, freshness: FreshnessMode) -> Self {
        let mut state = Self {
            login: Arc::new(login),
            settings: None,
            status: TransactionStatus::Idle,
            transaction: Transaction::default(),
            shares_transaction: false,
            freshness,
            default_freshness: freshness,
            route: RouteSetting::default(),
            snapshot: None,
            snapshot_strict: false,
            listens: false,
            version: None,
            started_at: None,
            catalog_version: 0,
            configuration: 0,
        };
        state.take_own(Own::default());
        state
    }

    /// Freshet's own settings, as they are now.
    pub fn take_own(&mut self, own: Own) {
        let defaults = &self.login.defaults;
        self.freshness = own.freshness.or(defaults.freshness).unwrap_or(self.default_freshness);
        self.route = own.route.or(defaults.route).unwrap_or_default();
        self.snapshot_strict = own.snapshot_strict.or(defaults.snapshot_strict).unwrap_or_default();
        self.snapshot = own.snapshot;
    }

    /// Its reads come from its snapshot or not at all.
    pub fn is_strict(&self) -> bool {
        self.snapshot_strict && self.snapshot.is_some()
    }

    /// A query was answered here.
    pub fn note_answer(&mut self) {
        self.note_query(FirstQuery::Here);
    }

    /// A query of the block at hand, or of the implicit transaction that a BEGIN may yet make one: what freshet asks upstream
    /// outside of a block is not of that.
    pub fn note_query(&mut self, whose: FirstQuery) {
        let is_of_transaction = match self.status {
            TransactionStatus::Idle => whose == FirstQuery::Here,
            TransactionStatus::InTransaction => true,
            TransactionStatus::Failed => false,
        };
        let first = &mut self.transaction.first_query;
        if is_of_transaction && *first != FirstQuery::Upstream {
            *first = whose;
        }
    }

    pub fn is_in_transaction(&self) -> bool {
        self.status != TransactionStatus::Idle
    }

    /// Whether a transaction that only upstream knows the start of gives now() its value.
    pub fn has_upstreams_clock(&self) -> bool {
        self.is_in_transaction() || self.shares_transaction
    }

    /// Of the block that is open, if it is known.
    pub fn transaction_time(&self) -> Option<i64> {
        self.transaction.time.filter(|_| self.status == TransactionStatus::InTransaction)
    }
}
