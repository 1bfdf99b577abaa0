//! Why a statement goes upstream: one variant per cause, counted as a metric label and shown to the operator.
//!
//! "Not answerable here" is a value, not an error: every stage may return it and the session relays.

use std::borrow::Cow;
use std::fmt;

/// Why upstream answers a statement. `label()` is the metric label (bounded cardinality);
/// `Display` adds the detail for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamReason {
    // -- asked for, or the session's state
    /// `SET freshet.route = 'relay'`.
    RouteSetting,
    /// freshet runs as a plain relay (mirroring is off or cannot work; detail says why).
    RelayOnly(Cow<'static, str>),
    /// The session is connected to a database that is not mirrored.
    OtherDatabase,
    /// The session's line ends at another server than the mirror's: an address was given to another while the old one lives.
    OtherServer,
    /// Something in this session may have changed state that freshet cannot see.
    OpaqueSession(Cow<'static, str>),
    /// The transaction has written, locked, or runs an unknown statement.
    TransactionWrote,
    /// REPEATABLE READ or SERIALIZABLE: the transaction has a snapshot of its own upstream.
    IsolationLevel,
    /// The transaction is in the failed state; upstream says so.
    FailedTransaction,
    /// Earlier messages of this session are still unanswered or un-synced upstream.
    Outstanding,
    /// A setting of the session has a value that freshet does not reproduce.
    SessionSetting(Cow<'static, str>),
    /// Settings of an application's own by `current_setting`, which upstream is asked for first (detail: which, with ", " between
    /// them).
    CustomSettings(Cow<'static, str>),
    // -- the protocol unit
    /// A unit of messages of a form that is not answered locally (detail: which).
    UnitForm(&'static str),
    /// Larger than a statement that is worth looking at.
    TooLong,
    // -- the statement
    /// Does not parse here. Upstream decides whether it is an error.
    NotParsed(Cow<'static, str>),
    /// Not a query: a write, DDL, a utility statement.
    NotAQuery(&'static str),
    /// A construct the engine does not know, by name.
    Unsupported(Cow<'static, str>),
    /// An unknown function, operator or cast with these argument types.
    UnknownFunction(Cow<'static, str>),
    /// Volatile, or depends on something that is not tracked.
    Volatile(Cow<'static, str>),
    /// A name that resolves to nothing mirrored-able here (may be an error; upstream says so).
    UnknownRelation(Cow<'static, str>),
    UnknownColumn(Cow<'static, str>),
    /// A type that is not mirrored (a column of it is used).
    UnsupportedType(Cow<'static, str>),
    /// Order or comparison of text under a collation that is not reproduced exactly.
    Collation(Cow<'static, str>),
    /// The types of this shape's result or parameters differ from upstream's description.
    ShapeMismatch,
    // -- the tables
    /// The table is not mirrored (detail: why not, or that it is being copied).
    TableNotMirrored(Cow<'static, str>),
    /// It is known when the table has last changed, but its rows are not here (detail: why).
    TableTracked(Cow<'static, str>),
    /// The role may not read it, or row security applies; upstream decides.
    Privilege(Cow<'static, str>),
    RowSecurity(Cow<'static, str>),
    // -- freshness
    /// The barrier was not satisfied within the wait budget.
    WaitBudget,
    /// The visible transactions are no prefix of the applied ones for the tables in use.
    NotAPrefix,
    /// The mirror's stream or the barrier connection is down, or too far behind.
    MirrorBehind(Cow<'static, str>),
    /// The catalog changed under the statement.
    CatalogChanged,
    /// The session's pinned snapshot does not have it (detail: why).
    Snapshot(Cow<'static, str>),
    // -- audit
    /// The first execution of this shape: upstream's answer is the oracle.
    FirstRun,
    /// Likewise, but upstream raised an error: there was nothing to compare with.
    UpstreamError,
    /// Chosen as a sample for the audit.
    AuditSample,
    /// Upstream and freshet differed once on this shape.
    Quarantined,
    // -- execution
    /// An error while answering locally (overflow, division by zero, bad cast): upstream reports it.
    LocalError(Cow<'static, str>),
    /// Over the memory, row or time budget.
    OverBudget(&'static str),
}

impl UpstreamReason {
    /// The metric label: the variant in snake case, without the detail.
    pub fn label(&self) -> &'static str {
        match self {
            Self::RouteSetting => "route_setting",
            Self::RelayOnly(_) => "relay_only",
            Self::OtherDatabase => "other_database",
            Self::OtherServer => "other_server",
            Self::OpaqueSession(_) => "opaque_session",
            Self::TransactionWrote => "transaction_wrote",
            Self::IsolationLevel => "isolation_level",
            Self::FailedTransaction => "failed_transaction",
            Self::Outstanding => "outstanding",
            Self::SessionSetting(_) => "session_setting",
            Self::CustomSettings(_) => "custom_settings",
            Self::UnitForm(_) => "unit_form",
            Self::TooLong => "too_long",
            Self::NotParsed(_) => "not_parsed",
            Self::NotAQuery(_) => "not_a_query",
            Self::Unsupported(_) => "unsupported",
            Self::UnknownFunction(_) => "unknown_function",
            Self::Volatile(_) => "volatile",
            Self::UnknownRelation(_) => "unknown_relation",
            Self::UnknownColumn(_) => "unknown_column",
            Self::UnsupportedType(_) => "unsupported_type",
            Self::Collation(_) => "collation",
            Self::ShapeMismatch => "shape_mismatch",
            Self::TableNotMirrored(_) => "table_not_mirrored",
            Self::TableTracked(_) => "table_tracked",
            Self::Privilege(_) => "privilege",
            Self::RowSecurity(_) => "row_security",
            Self::WaitBudget => "wait_budget",
            Self::NotAPrefix => "not_a_prefix",
            Self::MirrorBehind(_) => "mirror_behind",
            Self::CatalogChanged => "catalog_changed",
            Self::Snapshot(_) => "snapshot",
            Self::FirstRun => "first_run",
            Self::UpstreamError => "upstream_error",
            Self::AuditSample => "audit_sample",
            Self::Quarantined => "quarantined",
            Self::LocalError(_) => "local_error",
            Self::OverBudget(_) => "over_budget",
        }
    }

    /// Upstream's reply to a statement that is refused for this may be kept, if its text alone tells what it depends on.
    pub fn leaves_reply_to_keep(&self) -> bool {
        matches!(
            self,
            Self::Unsupported(_)
                | Self::NotParsed(_)
                | Self::UnknownFunction(_)
                // A whole row, among others.
                | Self::UnknownColumn(_)
                | Self::UnsupportedType(_)
                | Self::Collation(_)
                | Self::LocalError(_)
        )
    }

    fn detail(&self) -> Option<&str> {
        match self {
            Self::RelayOnly(d)
            | Self::OpaqueSession(d)
            | Self::SessionSetting(d)
            | Self::CustomSettings(d)
            | Self::NotParsed(d)
            | Self::Unsupported(d)
            | Self::UnknownFunction(d)
            | Self::Volatile(d)
            | Self::UnknownRelation(d)
            | Self::UnknownColumn(d)
            | Self::UnsupportedType(d)
            | Self::Collation(d)
            | Self::TableNotMirrored(d)
            | Self::TableTracked(d)
            | Self::Privilege(d)
            | Self::RowSecurity(d)
            | Self::MirrorBehind(d)
            | Self::Snapshot(d)
            | Self::LocalError(d) => Some(d),
            Self::UnitForm(d) | Self::NotAQuery(d) | Self::OverBudget(d) => Some(d),
            Self::RouteSetting
            | Self::OtherDatabase
            | Self::OtherServer
            | Self::TransactionWrote
            | Self::IsolationLevel
            | Self::FailedTransaction
            | Self::Outstanding
            | Self::TooLong
            | Self::ShapeMismatch
            | Self::WaitBudget
            | Self::NotAPrefix
            | Self::CatalogChanged
            | Self::FirstRun
            | Self::UpstreamError
            | Self::AuditSample
            | Self::Quarantined => None,
        }
    }
}

impl fmt::Display for UpstreamReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail() {
            Some(detail) => write!(f, "{}: {detail}", self.label()),
            None => f.write_str(self.label()),
        }
    }
}
