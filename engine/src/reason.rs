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
    // -- audit
    /// The first execution of this shape: upstream's answer is the oracle.
    FirstRun,
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
        use UpstreamReason as R;
        match self {
            R::RouteSetting => "route_setting",
            R::RelayOnly(_) => "relay_only",
            R::OtherDatabase => "other_database",
            R::OpaqueSession(_) => "opaque_session",
            R::TransactionWrote => "transaction_wrote",
            R::IsolationLevel => "isolation_level",
            R::FailedTransaction => "failed_transaction",
            R::Outstanding => "outstanding",
            R::SessionSetting(_) => "session_setting",
            R::UnitForm(_) => "unit_form",
            R::TooLong => "too_long",
            R::NotParsed(_) => "not_parsed",
            R::NotAQuery(_) => "not_a_query",
            R::Unsupported(_) => "unsupported",
            R::UnknownFunction(_) => "unknown_function",
            R::Volatile(_) => "volatile",
            R::UnknownRelation(_) => "unknown_relation",
            R::UnknownColumn(_) => "unknown_column",
            R::UnsupportedType(_) => "unsupported_type",
            R::Collation(_) => "collation",
            R::ShapeMismatch => "shape_mismatch",
            R::TableNotMirrored(_) => "table_not_mirrored",
            R::Privilege(_) => "privilege",
            R::RowSecurity(_) => "row_security",
            R::WaitBudget => "wait_budget",
            R::NotAPrefix => "not_a_prefix",
            R::MirrorBehind(_) => "mirror_behind",
            R::CatalogChanged => "catalog_changed",
            R::FirstRun => "first_run",
            R::AuditSample => "audit_sample",
            R::Quarantined => "quarantined",
            R::LocalError(_) => "local_error",
            R::OverBudget(_) => "over_budget",
        }
    }

    fn detail(&self) -> Option<&str> {
        use UpstreamReason as R;
        match self {
            R::RelayOnly(d)
            | R::OpaqueSession(d)
            | R::SessionSetting(d)
            | R::NotParsed(d)
            | R::Unsupported(d)
            | R::UnknownFunction(d)
            | R::Volatile(d)
            | R::UnknownRelation(d)
            | R::UnknownColumn(d)
            | R::UnsupportedType(d)
            | R::Collation(d)
            | R::TableNotMirrored(d)
            | R::Privilege(d)
            | R::RowSecurity(d)
            | R::MirrorBehind(d)
            | R::LocalError(d) => Some(d),
            R::UnitForm(d) | R::NotAQuery(d) | R::OverBudget(d) => Some(d),
            R::RouteSetting
            | R::OtherDatabase
            | R::TransactionWrote
            | R::IsolationLevel
            | R::FailedTransaction
            | R::Outstanding
            | R::TooLong
            | R::ShapeMismatch
            | R::WaitBudget
            | R::NotAPrefix
            | R::CatalogChanged
            | R::FirstRun
            | R::AuditSample
            | R::Quarantined => None,
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
