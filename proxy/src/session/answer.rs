//! The boundary between a session and what may answer in upstream's stead: [`Answerer`], asked once per [`Unit`].
//!
//! The session knows the protocol (which messages make up a unit, what must be replied to each); the answerer knows
//! SQL, caches and freshness. Neither knows the other's part: an answer is rows and descriptions, see [`Reply`].

pub mod early;

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use freshet_config::FreshnessMode;
use freshet_engine::catalog::Catalog;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::CachedReply;
use freshet_engine::types::Lsn;

use crate::freshness::pins::{Choice, Token};
use crate::freshness::privileges::sees_statistics;
use crate::freshness::seats::Seat;
use crate::session::answer::early::EarlyRows;
use crate::session::buffer::OutBuffer;
use crate::session::change::Changes;
use crate::session::effect::{Effect, Written};
use crate::session::meant::Meant;
use crate::session::settings::SessionSettings;
use crate::session::state::{Login, SessionState};
use crate::statistics::{Answered, ShapeStatistics};
use crate::upstream::service::ServicePool;
use crate::wire::extended::Bind;
use crate::wire::query::TransactionStatus;

/// Makes the answerer of each session; one for the whole program, shared by all listeners.
pub trait Answerers: Send + Sync + 'static {
    type Answerer: Answerer;

    /// Called once a client is logged in.
    fn open(&self, login: &Login) -> Self::Answerer;
}

/// One session's door to local answers. Methods without `async` must not block: they run on the session's task,
/// between reading a unit and writing its answer.
pub trait Answerer: Send + 'static {
    /// Before each decision about what the client has sent: another mirror may be the session's by now.
    fn refresh(&mut self) {}

    /// The session has a statement that only reads, and that was not found by [`Self::look_up`].
    fn note_query(&mut self, _sql: &[u8]) {}

    /// Before a statement that may be a definition goes upstream: which database it wants nobody to use, if freshet itself may be
    /// using it. `is_in_block`: it is in a transaction block, or beside other statements of one query string.
    fn in_the_way(&self, _sql: &[u8], _is_in_block: bool) -> Option<Unused> {
        None
    }

    /// Gives that database back to upstream, if it may be. When the client goes away the future is dropped.
    fn make_way(&mut self, _unused: &Unused) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Before any other question, no wait: what answers the units at the head of a burst that are known byte by byte. The hot
    /// path. None: nothing is known. Only asked where `look_up` might be.
    fn known(&mut self, _asking: Asking) -> Option<impl Known> {
        None::<NothingKnown>
    }

    /// After [`Self::known`], no wait: what the unit waits for whose reply is at hand, where the session's mode makes each unit
    /// wait for a moment.
    fn awaited(&mut self, _asking: &Asking, _unit: &RawUnit<'_>) -> Option<Awaited> {
        None
    }

    /// Waits for that; then `known` has the unit's reply if it is still valid. An error: upstream is to answer.
    fn meet(&mut self, _awaited: &Awaited) -> impl Future<Output = Result<(), Relay>> + Send {
        async { Ok(()) }
    }

    /// The session mostly waits for moments: a place where that costs less, if there is one.
    fn seat(&self) -> Option<Seat> {
        None
    }

    /// Nothing is left to decide: the session waits for either side. What was shared by units that came together is given up.
    fn end_burst(&mut self) {}

    /// First question, no wait: is there a kept reply that is valid now? Only asked when
    /// `state.settings` is Some, nothing is outstanding upstream and the transaction allows local answers.
    fn look_up(&mut self, unit: &Unit<'_>, state: &SessionState) -> Option<Reply>;

    /// Second question, no wait: was this statement just refused for what its text alone decides? Asked when a local answer
    /// would be allowed.
    fn refusal(&mut self, _unit: &Unit<'_>, _state: &SessionState, _now: Instant) -> Option<Relay> {
        None
    }

    /// Of a unit that more follow which are not here yet, no wait: why it was refused not long ago, if it would be again.
    fn late_refusal(&self, _unit: &Unit<'_>, _state: &SessionState) -> Option<UpstreamReason> {
        None
    }

    /// Last question, may wait (barrier, execution). On `Relay` the session forwards the unit's bytes unchanged. When the
    /// client goes away the future is dropped. Where there is `early`, the first pieces of the reply's rows may be put there before
    /// all are made; nothing makes a `Relay` of the outcome then but a fault.
    fn answer(
        &mut self,
        unit: &Unit<'_>,
        state: &SessionState,
        early: Option<&Arc<EarlyRows>>,
    ) -> impl Future<Output = Outcome> + Send;

    /// Takes or finds the snapshot that the session asks for: its token. `state` has certain settings.
    fn pin(
        &mut self,
        _choice: &Choice,
        _state: &SessionState,
    ) -> impl Future<Output = Result<Token, UpstreamReason>> + Send {
        async { Err(UpstreamReason::RelayOnly("nothing is mirrored".into())) }
    }

    /// Upstream has acknowledged a statement that may have written (CommandComplete of a simple query, or the
    /// ReadyForQuery that ends the unit or the transaction), and the client has not been told yet. `what` is the worst
    /// effect since the last call; for [`Effect::Write`], `written` has at least what was written.
    fn write_acknowledged(&mut self, what: Effect, written: &Written);

    /// Before [`Self::write_acknowledged`]: the commit may not have waited for synchronous standbys, of which freshet may be one.
    fn note_not_awaited(&mut self) {}

    /// A write of the session's has failed by this message: its table is published and has no replica identity any more.
    fn note_lacks_identity(&mut self, _message: &[u8]) {}

    /// A unit that upstream answered is complete and the client has not been told yet: the session has now seen
    /// upstream's state of this moment, and must not see older later.
    fn relayed(&mut self, unit: &Relayed);

    /// Counts the changes of upstream's configuration that were seen: defaults of settings may have changed with it.
    fn configuration(&self) -> u64;

    /// Whether there may be local answers at all, so that the session's settings are worth knowing.
    fn wants_settings(&self) -> bool;

    /// Whether a session at a server that was started then (microseconds since 2000 UTC) is at the one that answers come from. No
    /// wait; asked for each unit.
    fn is_at_server(&self, _started_at: i64) -> bool {
        true
    }

    /// Whether calls of a function of that name may be answered here.
    fn knows(&self, function: &str) -> bool;

    /// The version of upstream's catalog that is known now.
    fn catalog_version(&self) -> u64;

    /// That catalog, where it says what names of functions mean.
    fn catalog(&self) -> Option<Arc<Catalog>>;

    /// A row set of the virtual schema (`freshet.NAME`) as the role may see it, or None if there is no such relation.
    fn virtual_table(&mut self, name: &str, role: &str) -> impl Future<Output = Option<TextTable>> + Send;

    /// Whether the role may see what others do and ask.
    fn sees_statistics(&mut self, role: &str) -> impl Future<Output = bool> + Send;
}

/// A database that a statement wants nobody to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    pub database: String,
    pub use_of_it: Use,
}

/// What the statement does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Drop,
    Rename,
    /// To another tablespace.
    Move,
    Copy,
}

impl Use {
    /// Upstream refuses it whatever else is (dbcommands.c; utility.c, PreventInTransactionBlock): in a session of that very database,
    /// in a transaction block.
    pub fn is_refused(self, is_own: bool, is_in_block: bool) -> bool {
        is_own && self != Self::Copy || is_in_block && self != Self::Rename
    }
}

/// A complete unit that may be answered locally: one simple Query, or extended messages up to Sync.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
    pub form: Form,
    /// The text of the Query or of the statement, as sent: not necessarily UTF-8, not necessarily one statement.
    pub sql: &'a [u8],
    /// OIDs declared in Parse, four bytes each (see [`crate::wire::extended::oids`]); 0: inferred by upstream.
    pub parameter_types: &'a [u8],
    /// Values and formats; None for [`Form::Simple`] and [`Form::Prepare`].
    pub bind: Option<Bind<'a>>,
    /// The statement where it was prepared by an earlier unit; None where this unit's own Parse makes it.
    pub prepared: Option<&'a Arc<PreparedStatement>>,
    /// Describe of the statement is part of the unit: the reply needs ParameterDescription.
    pub describes_statement: bool,
    /// Describe of the portal is part of the unit (a simple Query always describes).
    pub describes_portal: bool,
    /// The whole unit as it came: what is relayed if it is, and the first-level key of a cached reply together with
    /// the text of `prepared`. Empty for one of several statements.
    pub bytes: &'a [u8],
    /// None: nothing is shared with units before it.
    pub arrival: Option<Arrival>,
}

impl Unit<'_> {
    /// There is no point in looking for a kept reply, by what is known of the unit anyway.
    pub fn is_plain_write(&self) -> bool {
        match self.prepared {
            Some(prepared) => prepared.effect == Effect::Write,
            // UPDATE, INSERT, DELETE; no query begins like that.
            None => self.sql.first().is_some_and(|first| b"uUiIdD".contains(first)),
        }
    }
}

/// Where a unit stands in what the client has sent, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub end: u64,
    /// How much had come when the unit was decided upon: a moment that is found from then on is one for all units up to there.
    pub received: u64,
}

/// What replies may depend on beside the unit, the same for a whole burst.
#[derive(Clone, Debug)]
pub struct Asking {
    pub settings: Arc<SessionSettings>,
    pub freshness: FreshnessMode,
    pub catalog_version: u64,
}

/// A unit of which nothing was read but where it ends, and which statement it binds.
#[derive(Clone, Copy, Debug)]
pub struct RawUnit<'a> {
    pub bytes: &'a [u8],
    /// None where the unit carries its own text.
    pub statement: Option<&'a PreparedStatement>,
    pub arrival: Arrival,
}

/// A kept reply that lacks only a moment at which it is known to be valid.
#[derive(Debug)]
pub struct Awaited {
    pub kept: Arc<CachedReply>,
    pub arrival: Arrival,
    /// [`Asking::catalog_version`].
    pub catalog_version: u64,
}

/// Replies at hand, for units of one burst in their order.
pub trait Known {
    /// Appends the reply, up to ReadyForQuery. False: it is not known, or may not be valid any more; nothing is appended.
    fn answer(&mut self, unit: &RawUnit<'_>, out: &mut OutBuffer) -> bool;

    /// Counts what was answered; the account of the last.
    fn finish(self) -> Account;
}

enum NothingKnown {}

impl Known for NothingKnown {
    fn answer(&mut self, _unit: &RawUnit<'_>, _out: &mut OutBuffer) -> bool {
        false
    }

    fn finish(self) -> Account {
        Account::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Query.
    Simple,
    /// \[Parse\] Bind \[Describe\] Execute(all rows) Sync, unnamed portal.
    Execute,
    /// Parse, with or without Describe, and no execution.
    Prepare,
}

/// A statement that was prepared through the protocol in this session.
#[derive(Debug)]
pub struct PreparedStatement {
    /// Never used twice in a session, so that an answerer can keep notes on it.
    pub id: u64,
    pub sql: Box<[u8]>,
    pub parameter_types: Box<[u8]>,
    /// [`SessionSettings::reading`] at its Parse, which folded its literals; 0: not certain then, or upstream may have analysed it
    /// again under another since, which it does when a table has changed (PostgreSQL: RevalidateCachedQuery).
    pub settings: AtomicU64,
    /// [`meaning_hangs_on_settings`](freshet_engine::statement::hanging::meaning_hangs_on_settings), once somebody has asked for it.
    pub hangs_on_settings: OnceLock<bool>,
    /// The version of the catalog that its description is of. Under another one, upstream must be asked whether it still is
    /// (PostgreSQL: "cached plan must not change result type"). 0: a name in it may have been a temporary table's.
    pub catalog: AtomicU64,
    /// Likewise [`SessionSettings::path`]; 0: not certain. PostgreSQL analyses a statement anew under another search path.
    pub path: AtomicU64,
    /// The parameters' types (OIDs) as they were found first. PostgreSQL keeps them, whatever becomes of the tables.
    pub inferred: OnceLock<Box<[u32]>>,
    /// Upstream describes it otherwise than the client was told.
    pub is_other: AtomicBool,
    /// What its names mean, likewise as far as plans have been made of it.
    pub meant: Meant,
    /// The version of the catalog that gave undeclared parameters their types; 0: names may have meant what it does not have.
    pub typed_under: u64,
    /// The catalog by which `effect` and what follows it were found.
    pub judged_under: u64,
    /// What executing it may do, by its text.
    pub effect: Effect,
    /// What executing it does to the session.
    pub changes: Changes,
    /// The relations that executing it may write, where its effect is a write.
    pub written: Written,
    /// Text and declared types as one number, once somebody has asked for it ([`crate::session::local::recent`]); 0: not yet.
    pub text_number: AtomicU64,
}

/// What becomes of a unit.
pub enum Outcome {
    Local(Reply),
    Relay(Relay),
}

/// Upstream answers.
pub struct Relay {
    pub reason: UpstreamReason,
    /// Gets upstream's reply to this unit.
    pub observer: Option<Box<dyn Observer>>,
    /// Where it is counted how long upstream takes.
    pub shape: Option<Arc<ShapeStatistics>>,
}

impl Relay {
    pub fn because(reason: UpstreamReason) -> Self {
        Self { reason, observer: None, shape: None }
    }
}

/// A local answer, as wire bytes. The session adds ParseComplete, BindComplete, NoData and ReadyForQuery.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// A whole ParameterDescription frame; needed where `describes_statement`.
    pub parameters: Bytes,
    /// A whole RowDescription frame with format codes 0, as Describe of a statement yields; needed where `describes_statement`.
    pub statement_columns: Bytes,
    /// A whole RowDescription frame with the result formats asked for; needed where `describes_portal`, and for a simple Query.
    pub columns: Bytes,
    /// DataRow frames and CommandComplete; empty for [`Form::Prepare`]. Several pieces where that saves a copy.
    pub rows: Vec<Bytes>,
    pub account: Account,
}

/// What `SHOW freshet.last` and the metrics tell of an answer.
#[derive(Clone, Debug, Default)]
pub struct Account {
    pub route: Answered,
    pub freshness: &'static str,
    /// Up to where the mirror was applied; None where it was not involved.
    pub lsn: Option<Lsn>,
    pub wait_us: u64,
    pub rows: u64,
    /// Upstream takes a snapshot for it: a query, not SHOW and not freshet's own.
    pub is_query: bool,
}

/// Sees upstream's reply to one relayed unit: the oracle of the audit, the source of captured replies.
pub trait Observer: Send {
    /// How many bytes of the reply to keep; beyond, `ObservedReply::is_truncated` is set.
    fn bytes_max(&self) -> usize;

    /// Asked when the reply gets longer than that: how many bytes to keep from now on, of `wanted` so far.
    fn bytes_max_for(&mut self, _wanted: usize) -> usize {
        self.bytes_max()
    }

    /// Set by [`Self::observe`] where it keeps the reply for others: the statement then counts as captured.
    fn captured(&self) -> Option<Arc<AtomicBool>> {
        None
    }

    /// The reply is complete, the client has not been told yet. Not called when the connection breaks before.
    fn observe(self: Box<Self>, reply: ObservedReply);
}

/// Upstream's reply to one unit, up to and including ReadyForQuery.
#[derive(Debug)]
pub struct ObservedReply {
    /// Whole frames (see [`crate::wire::frame::Frames`]); the head of them where `is_truncated`.
    pub bytes: Vec<u8>,
    pub is_truncated: bool,
    /// It ends with PortalSuspended: the statement may have more rows than were asked for.
    pub is_suspended: bool,
    pub has_error: bool,
    /// NoticeResponse, NotificationResponse or ParameterStatus came in between.
    pub has_asynchronous: bool,
    pub status: TransactionStatus,
}

/// A unit that upstream answered.
#[derive(Clone, Debug)]
pub struct Relayed {
    pub effect: Effect,
    pub has_error: bool,
    pub status: TransactionStatus,
}

/// A small table of text, as the virtual schema serves it.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    pub columns: Vec<TextColumn>,
    pub rows: Vec<Vec<Option<String>>>,
}

#[derive(Clone, Copy, Debug)]
pub struct TextColumn {
    pub name: &'static str,
    pub kind: TextKind,
}

impl TextColumn {
    pub const fn text(name: &'static str) -> Self {
        Self { name, kind: TextKind::Text }
    }

    pub const fn number(name: &'static str) -> Self {
        Self { name, kind: TextKind::Int8 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    Text,
    Int8,
    Float8,
    Bool,
}

/// Relays everything: what runs before there is an engine, and where mirroring is off.
#[derive(Clone)]
pub struct RelayOnly {
    /// To ask what roles may see.
    pub pool: ServicePool,
}

impl Answerers for RelayOnly {
    type Answerer = Self;

    fn open(&self, _login: &Login) -> Self {
        self.clone()
    }
}

impl Answerer for RelayOnly {
    fn look_up(&mut self, _unit: &Unit<'_>, _state: &SessionState) -> Option<Reply> {
        None
    }

    async fn answer(&mut self, _unit: &Unit<'_>, _state: &SessionState, _early: Option<&Arc<EarlyRows>>) -> Outcome {
        Outcome::Relay(Relay::because(UpstreamReason::RelayOnly("no engine".into())))
    }

    fn write_acknowledged(&mut self, _what: Effect, _written: &Written) {}

    fn relayed(&mut self, _unit: &Relayed) {}

    fn configuration(&self) -> u64 {
        0
    }

    fn wants_settings(&self) -> bool {
        false
    }

    fn knows(&self, _function: &str) -> bool {
        false
    }

    fn catalog_version(&self) -> u64 {
        0
    }

    fn catalog(&self) -> Option<Arc<Catalog>> {
        None
    }

    async fn virtual_table(&mut self, _name: &str, _role: &str) -> Option<TextTable> {
        None
    }

    async fn sees_statistics(&mut self, role: &str) -> bool {
        sees_statistics(&self.pool, role).await
    }
}
