//! The session as a state machine without I/O: bytes from either side in, bytes to either side out.
//!
//! [`client`] reads the client's messages, holds what may become a unit and forwards the rest; [`upstream`] matches
//! upstream's replies with what was asked, forwards them and swallows those to freshet's own messages; [`local`]
//! composes local answers and keeps the unnamed statement and portal true to what the client believes they are; [`group`]
//! does so for units of several statements, and [`portal`] keeps results that are fetched in portions. What texts do is read by
//! [`texts`].
//!
//! When the conversation leaves what is understood here (`lost`), both directions are passed through unread for the
//! rest of the session: upstream decides, as it would without freshet.

mod ahead;
mod client;
mod cursor;
pub mod group;
mod known;
pub mod local;
mod portal;
#[cfg(test)]
mod tests;
mod texts;
mod upstream;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use ahash::{HashMap, HashSet};
use freshet_engine::catalog::Catalog;
use freshet_engine::statement::lexer::NAME_BYTES_MAX;
use freshet_engine::statement::skeleton::Skeleton;
use freshet_engine::types::CustomSettings;

use crate::session::answer::{ObservedReply, Observer, PreparedStatement, Relayed};
use crate::session::buffer::OutBuffer;
use crate::session::change::Change;
use crate::session::effect::{Effect, Judged, Written};
use crate::session::machine::ahead::{QuietParse, Told};
use crate::session::machine::cursor::Cursors;
use crate::session::machine::portal::{Portal, Portals};
use crate::session::settings::{Probed, Question};
use crate::session::state::SessionState;
use crate::session::tracker::Tracker;
use crate::wire::frame::HEADER_LENGTH;
use crate::wire::query::TransactionStatus;

/// What to do after the client's bytes were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing more can be done with the bytes at hand.
    Wait,
    /// The beginning of a unit is held back; forward it ([`Machine::release`]) if the rest does not come soon.
    Held,
    /// A complete unit stands at [`Machine::unit_bytes`]: answer it, or [`Machine::relay_unit`].
    Decide,
}

/// Named limits, from the settings.
#[derive(Clone, Copy, Debug)]
pub struct MachineLimits {
    pub statement_bytes_max: usize,
    /// Of a unit of several messages.
    pub group_bytes_max: usize,
    pub prepared_statements_max: usize,
    /// False: a plain relay, units are not held.
    pub answers_locally: bool,
    /// Whether it counts which keys were written: it does in mode session.
    pub tells_keys: bool,
    /// The name of freshet's settings and virtual schema.
    pub schema: &'static str,
}

/// What prepared statements that one session keeps in mind may take, whatever their number; further ones are relayed.
const STATEMENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Replies that upstream may owe before nothing more is read from the client.
///
/// It sends them without being asked to by a Sync: what it has is on its way once it fills its buffer of 8 kB (pqcomm.c,
/// PQ_SEND_BUFFER_SIZE), and so many replies are 40 kB at least. An error, the request for the data of a COPY, and
/// ReadyForQuery it sends at once, and nothing is owed that it skips for an error. So whoever waits here is read from again.
const OWED_MAX: usize = 8 * 1024;
const _: () = assert!(OWED_MAX * HEADER_LENGTH >= 2 * 8192);

/// What of statements is kept beside such replies, in case that upstream skips their messages, before the client's next one has to wait for
/// all of them.
const UNDO_BYTES_MAX: usize = 4 * 1024 * 1024;

/// More than this to be written to the client, and it may be that it does not read; less goes into its socket.
const UNREAD_BYTES: usize = 64 * 1024;
/// Entries that there is room for while nothing is owed.
const OWED_KEPT: usize = 64;

/// Of one: all that a client can make long.
fn kept_bytes(name: &[u8], statement: &PreparedStatement) -> usize {
    name.len() + statement.parameter_types.len() + statement.sql.len()
}

/// What PostgreSQL compares of a statement's or portal's name (dynahash.c, string_compare; NAMEDATALEN).
fn compared(name: &[u8]) -> &[u8] {
    &name[..name.len().min(NAME_BYTES_MAX)]
}

/// It may name the same as another: what has such a name is upstream's, and not kept in mind.
fn is_too_long(name: &[u8]) -> bool {
    name.len() > NAME_BYTES_MAX
}

/// What happens at a portal's Execute, which names the portal alone.
#[derive(Debug)]
struct PortalChanges {
    settings: Box<[Change]>,
    /// DEALLOCATE or DISCARD.
    drops: Option<Arc<PreparedStatement>>,
}

/// What the rest of the program must hear of before the client does.
#[derive(Debug)]
pub enum Event {
    WriteAcknowledged(Effect, Written),
    /// What is acknowledged next may not have waited for synchronous standbys.
    NotAwaited,
    /// A write has failed by this message: its table is published, and has lost its replica identity (PostgreSQL: execReplication.c).
    LacksIdentity(Box<[u8]>),
    Relayed(Relayed),
    Observed(Observed),
    /// The probe's result, or the error that upstream gave instead (the body of its ErrorResponse); None: neither.
    Probed(Result<Box<Probed>, Option<Box<[u8]>>>),
    /// When the open block began, in microseconds since 2000 UTC; or else as with `Probed`.
    TimeTold(Result<i64, Option<Box<[u8]>>>),
    /// Settings of an application's own; or else likewise.
    CustomTold(Result<CustomSettings, Option<Box<[u8]>>>),
    /// The block has failed at a statement that the client has been answered, by this error: it is news to the client.
    BlockFailed(Box<[u8]>),
}

/// An observer and what it is to see.
pub struct Observed {
    pub observer: Box<dyn Observer>,
    pub reply: ObservedReply,
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").field("reply", &self.reply).finish_non_exhaustive()
    }
}

/// One reply, or group of replies, that upstream owes.
#[derive(Debug)]
struct Expected {
    kind: ExpectedKind,
    /// Asked by freshet itself: not for the client.
    is_own: bool,
    /// Nobody waits for it.
    is_quiet: bool,
    due: Due,
    /// What the client believes again, should upstream skip the message.
    undo: Option<Box<Undo>>,
}

#[derive(Debug)]
enum Undo {
    Unnamed(Unnamed),
    Named(Box<[u8]>, Named),
    /// Of an open block.
    Portal(Box<PortalBefore>),
    /// Of a Query: the unnamed statement, and the portal as above.
    Query(Unnamed, Option<Box<PortalBefore>>),
    /// A cursor that upstream gets.
    Cursor(cursor::Moved),
}

/// The unnamed portal's place, and what lived here in it.
#[derive(Debug)]
struct PortalBefore {
    place: UnnamedPortal,
    portal: Option<Portal>,
    /// [`Machine::transactions`] at that time: portals die with their transaction.
    transaction: u64,
}

impl Undo {
    /// Of the texts that only this keeps.
    fn bytes(&self) -> usize {
        match self {
            Self::Unnamed(unnamed) | Self::Query(unnamed, _) => match unnamed {
                Unnamed::Upstream(Some(statement)) => kept_bytes(b"", statement),
                Unnamed::Local { statement, parse } => kept_bytes(b"", statement) + parse.len(),
                Unnamed::Upstream(None) | Unnamed::Destroyed => 0,
            },
            Self::Named(name, named) => kept_bytes(name, &named.statement),
            Self::Portal(_) | Self::Cursor(_) => 0,
        }
    }

    fn unnamed(&mut self) -> Option<&mut Unnamed> {
        match self {
            Self::Unnamed(unnamed) | Self::Query(unnamed, _) => Some(unnamed),
            Self::Named(..) | Self::Portal(_) | Self::Cursor(_) => None,
        }
    }

    fn portal(&mut self) -> Option<&mut Box<PortalBefore>> {
        match self {
            Self::Portal(portal) | Self::Query(_, Some(portal)) => Some(portal),
            Self::Unnamed(_) | Self::Query(_, None) | Self::Named(..) | Self::Cursor(_) => None,
        }
    }
}

/// What statements change once they are acknowledged, in their order; None: nothing.
type Due = Option<Box<VecDeque<Box<[Change]>>>>;

#[derive(Debug)]
enum ExpectedKind {
    /// ParseComplete. None: of the unnamed statement; else the name if this Parse made an entry in `statements`, or nothing.
    Parse(Option<Box<[u8]>>),
    Bind,
    Close,
    Describe,
    Execute,
    /// Everything up to ReadyForQuery: of a Query or FunctionCall.
    Query(Effect),
    /// ReadyForQuery.
    Sync(Effect),
    /// CopyDone or CopyFail was sent: nothing is owed, but it ends a COPY that upstream may yet begin.
    CopyEnd,
    // What follows is quiet: freshet's own, with nobody waiting for it, so that local answers may go on meanwhile.
    /// ParseComplete of a statement whose Parse the client has been answered.
    QuietParse(Box<QuietParse>),
    /// The description of a statement, which the client has been told.
    QuietDescribe(Box<Told>),
    /// ReadyForQuery of freshet's own Sync.
    QuietSync,
    /// CommandComplete and ReadyForQuery of transaction control that the client has been answered, with the status it was
    /// told.
    Answered(TransactionStatus),
    /// An error and ReadyForQuery: upstream is made to fail a block in which the client has been answered with an error.
    Failing,
}

// A pipeline may owe thousands of them.
const _: () = assert!(size_of::<Expected>() <= 48);

/// A named statement, as the client believes it to be.
#[derive(Debug)]
struct Named {
    statement: Arc<PreparedStatement>,
    /// Its Parse, where upstream does not have the statement: it goes there before anything that uses it.
    parse: Option<Box<[u8]>>,
}

/// The unnamed statement, as the client believes it to be.
#[derive(Debug)]
enum Unnamed {
    /// Upstream has it; Some if it is known which.
    Upstream(Option<Arc<PreparedStatement>>),
    /// Its Parse was answered locally; these bytes must reach upstream before anything that uses it there.
    Local { statement: Arc<PreparedStatement>, parse: Vec<u8> },
    /// A local answer destroyed it; upstream may still have one.
    Destroyed,
}

/// The unnamed portal, likewise. Matters only inside a transaction block: at its end portals go.
#[derive(Debug)]
enum UnnamedPortal {
    Upstream,
    /// Bound and executed to the end locally.
    Local {
        bind: Vec<u8>,
        /// What was bound: its name may mean another statement by now.
        statement: Arc<PreparedStatement>,
        /// Of the block when it was bound.
        savepoints: usize,
    },
    /// In [`Machine::portals`], under the empty name.
    Held,
    Destroyed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyIn {
    No,
    /// Upstream reads CopyData; it ignores Sync and Flush until the end (PostgreSQL: COPY Operations).
    Running {
        has_sync: bool,
    },
}

/// Upstream's reply to the unit that is observed, so far.
struct Watch {
    observer: Box<dyn Observer>,
    reply: ObservedReply,
    bytes_max: usize,
    end: WatchEnd,
    /// Executions whose replies come before what is watched.
    skip: usize,
    /// The portal whose execution is watched, where that is not in the same unit.
    portal: Option<WatchedPortal>,
}

/// A portal that was bound, and is executed later if at all.
#[derive(Debug)]
struct WatchedPortal {
    name: Box<[u8]>,
    /// Its Execute was sent.
    is_executed: bool,
}

/// Where the reply ends that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// With ReadyForQuery.
    Ready,
    /// With the end of one execution.
    Execution,
    /// With the description of a statement.
    Description,
}

/// One session. See the head of the module.
pub struct Machine {
    pub state: SessionState,
    pub tracker: Tracker,
    pub to_client: OutBuffer,
    pub to_upstream: OutBuffer,
    limits: MachineLimits,
    // client's side
    incoming: Vec<u8>,
    /// Of `incoming`: before `taken` everything is dealt with, before `scanned` held.
    taken: usize,
    scanned: usize,
    /// Bytes that are no longer in `incoming`, ever.
    given_up: u64,
    /// Bytes of the client's current frame that are still to be forwarded as they come.
    client_passing: usize,
    /// The client has sent all it will.
    is_client_closed: bool,
    // upstream's side
    /// The beginning of a frame that must be seen whole.
    partial: Vec<u8>,
    upstream_passing: usize,
    passing_is_own: bool,
    expected: VecDeque<Expected>,
    /// Of those, the ends of COPYs: they are answered by nothing.
    copy_ends: usize,
    /// Own entries in `expected`.
    own_expected: usize,
    /// Of those, the quiet ones.
    quiet_expected: usize,
    /// Extended messages were forwarded since the last Sync.
    is_unsynced: bool,
    /// The unit at hand goes upstream once it is known what became of the Parses that were answered.
    is_postponed: bool,
    /// After an error, upstream ignores everything up to a Sync that the client has not sent yet.
    is_skipping: bool,
    /// Upstream was asked by a Flush of freshet's own for what it owes.
    flush_is_sent: bool,
    copy_in: CopyIn,
    lost: Option<&'static str>,
    /// Upstream did not do what the client was told it would: the session cannot go on.
    is_contradicted: bool,
    // what the client believes to exist
    statements: HashMap<Box<[u8]>, Named>,
    /// A Parse with a name was not kept in `statements`, so that an unknown name may be one that upstream knows.
    has_unknown_statements: bool,
    /// Upstream was sent a statement that drops them all, and nothing since that would add an unknown one.
    drops_statements: bool,
    /// Upstream was sent what drops one of `statements`: if there is an error, it may have it still.
    may_keep_statement: bool,
    /// What `statements` take.
    statement_bytes: usize,
    /// What the client's messages that are owed a reply keep of statements, see [`Undo::bytes`].
    undo_bytes: usize,
    /// Statements of freshet's own (`SHOW freshet...`) that upstream does not have.
    virtual_statements: HashMap<Box<[u8]>, Arc<PreparedStatement>>,
    /// What they take.
    virtual_bytes: usize,
    next_statement: u64,
    unnamed: Unnamed,
    unnamed_portal: UnnamedPortal,
    /// How many have ended.
    transactions: u64,
    /// To the Query that upstream answers something has come.
    has_replied: bool,
    /// Of the rows that answer the unit at hand, the pieces that are queued already.
    begun: Option<usize>,
    /// Names of portals that upstream has, or had, in this transaction, as far as they are compared.
    upstream_portals: HashSet<Box<[u8]>>,
    /// Portals that live here.
    portals: Portals,
    /// Cursors of psqlODBC that live here.
    cursors: Cursors,
    /// The client is within a group of extended messages that upstream has seen nothing of.
    has_open_group: bool,
    /// A portal of that group has been run here.
    has_run_here: bool,
    /// A message has been answered since somebody asked that is no unit: about a portal, or the end of a group.
    was_used: bool,
    /// That group has failed: its messages are ignored up to its Sync.
    ignores_group: bool,
    /// Bytes of an ignored message that are still to come.
    client_ignoring: usize,
    /// What executing a portal changes, where it changes something.
    portal_changes: HashMap<Box<[u8]>, PortalChanges>,
    // effects
    /// As it was last looked at.
    catalog: Option<Arc<Catalog>>,
    /// The text that was last judged, and what it does.
    judged: RefCell<Option<(Skeleton, Judged)>>,
    /// Worst of the extended messages since the last Sync.
    unit_effect: Effect,
    /// Worst of the open transaction.
    transaction_effect: Effect,
    /// What was written since nothing was owed outside of a transaction, or will be by what was sent.
    written: Written,
    /// The current unit's reply had an error.
    has_error: bool,
    /// It had the tag of a COMMIT that was one.
    has_committed: bool,
    /// A notice or warning came, perhaps of a commit that was kept from waiting for standbys (syncrep.c).
    has_notice: bool,
    watch: Option<Watch>,
    probe_reply: Option<(Question, Vec<u8>)>,
    /// The messages of the last [`ExpectedKind::Answered`].
    answered: Vec<u8>,
    /// Upstream's error to one of those, or to a [`ExpectedKind::QuietParse`].
    answered_error: Option<Box<[u8]>>,
    /// Something of freshet's own has failed upstream before it closed its statement.
    has_leftovers: bool,
    events: Vec<Event>,
}

impl Machine {
    /// A session right after log-in. `opaque`: it is passed through unread, and why.
    pub fn new(state: SessionState, limits: MachineLimits, opaque: Option<&'static str>) -> Self {
        Self {
            tracker: Tracker::new(&state.login.database),
            state,
            to_client: OutBuffer::default(),
            to_upstream: OutBuffer::default(),
            limits,
            incoming: Vec::new(),
            taken: 0,
            scanned: 0,
            given_up: 0,
            client_passing: 0,
            is_client_closed: false,
            partial: Vec::new(),
            upstream_passing: 0,
            passing_is_own: false,
            expected: VecDeque::new(),
            copy_ends: 0,
            own_expected: 0,
            quiet_expected: 0,
            is_unsynced: false,
            is_postponed: false,
            is_skipping: false,
            flush_is_sent: false,
            copy_in: CopyIn::No,
            lost: opaque,
            is_contradicted: false,
            statements: HashMap::default(),
            has_unknown_statements: false,
            drops_statements: false,
            may_keep_statement: false,
            statement_bytes: 0,
            undo_bytes: 0,
            virtual_statements: HashMap::default(),
            virtual_bytes: 0,
            next_statement: 1,
            unnamed: Unnamed::Upstream(None),
            unnamed_portal: UnnamedPortal::Upstream,
            transactions: 0,
            has_replied: false,
            begun: None,
            upstream_portals: HashSet::default(),
            portals: Portals::default(),
            cursors: Cursors::default(),
            has_open_group: false,
            has_run_here: false,
            was_used: false,
            ignores_group: false,
            client_ignoring: 0,
            portal_changes: HashMap::default(),
            catalog: None,
            judged: RefCell::default(),
            unit_effect: Effect::Neutral,
            transaction_effect: Effect::Neutral,
            written: Written::NOTHING,
            has_error: false,
            has_committed: false,
            has_notice: false,
            watch: None,
            probe_reply: None,
            answered: Vec::new(),
            answered_error: None,
            has_leftovers: false,
            events: Vec::new(),
        }
    }

    /// Nothing is outstanding, un-synced or half-way: a local answer may stand here.
    pub fn is_settled(&self) -> bool {
        !self.owes()
            && !self.is_unsynced
            && !self.is_skipping
            && self.copy_in == CopyIn::No
            && self.upstream_passing == 0
            && self.partial.is_empty()
            && self.lost.is_none()
    }

    /// Upstream owes replies that somebody waits for.
    fn owes(&self) -> bool {
        self.expected.len() > self.quiet_expected
    }

    /// Upstream owes so much that the client's next message has to wait.
    pub fn owes_too_much(&self) -> bool {
        self.lost.is_none() && self.expected.len() - self.copy_ends >= OWED_MAX
    }

    /// Upstream is yet to carry out something of which the client need not hear.
    pub fn has_quiet(&self) -> bool {
        self.quiet_expected > 0
    }

    /// The client has used the session by a message that nobody is told of otherwise.
    pub fn take_use(&mut self) -> bool {
        std::mem::take(&mut self.was_used)
    }

    /// PostgreSQL takes no session for idle in the middle of a group, or while it sends what its client does not read yet.
    pub fn looks_idle_wrongly(&self) -> bool {
        self.has_open_group || self.to_client.len() > UNREAD_BYTES
    }

    /// A probe is under way: the client's messages wait for it.
    pub fn is_probing(&self) -> bool {
        self.probe_reply.is_some()
    }

    /// Where a shutdown may end the session: no statement is under way, no transaction open. What the client has sent since may
    /// be the next one.
    pub fn is_between_statements(&self) -> bool {
        self.is_settled()
            && self.expected.is_empty()
            && !self.has_open_group
            && self.state.status == TransactionStatus::Idle
            && self.to_upstream.is_empty()
    }

    /// Of the longest unit that is held.
    pub fn held_bytes_max(&self) -> usize {
        self.limits.statement_bytes_max.max(self.limits.group_bytes_max)
    }

    pub fn answers_locally(&self) -> bool {
        self.limits.answers_locally
    }

    /// Why the session is passed through unread, if it is.
    pub fn lost(&self) -> Option<&'static str> {
        self.lost
    }

    /// Bytes of the client that are held.
    pub fn held_bytes(&self) -> usize {
        self.incoming.len() - self.taken
    }

    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn lose(&mut self, why: &'static str) {
        self.lost.get_or_insert(why);
        self.state.settings = None;
    }

    fn expect(&mut self, kind: ExpectedKind) {
        self.expect_with(kind, None, None);
    }

    /// `due`: until it is acknowledged, the settings are not certain.
    fn expect_with(&mut self, kind: ExpectedKind, due: Due, undo: Option<Undo>) {
        if due.is_some() {
            self.state.settings = None;
        }
        self.undo_bytes += undo.as_ref().map_or(0, Undo::bytes);
        self.expected.push_back(Expected { kind, is_own: false, is_quiet: false, due, undo: undo.map(Box::new) });
    }

    fn expect_own(&mut self, kind: ExpectedKind) {
        self.expect_own_or(kind, None);
    }

    fn expect_own_or(&mut self, kind: ExpectedKind, undo: Option<Undo>) {
        self.own_expected += 1;
        self.expected.push_back(Expected { kind, is_own: true, is_quiet: false, due: None, undo: undo.map(Box::new) });
    }

    /// Like [`Self::expect_own`], but nobody waits for it.
    fn expect_quiet(&mut self, kind: ExpectedKind) {
        self.quiet_expected += 1;
        self.own_expected += 1;
        self.expected.push_back(Expected { kind, is_own: true, is_quiet: true, due: None, undo: None });
    }

    fn pop_expected(&mut self) -> Option<Expected> {
        let entry = self.expected.pop_front()?;
        // The end of a COPY that can no longer begin is answered by nothing.
        while self.expected.front().is_some_and(|front| matches!(front.kind, ExpectedKind::CopyEnd)) {
            self.expected.pop_front();
            self.copy_ends -= 1;
        }
        self.copy_ends -= usize::from(matches!(entry.kind, ExpectedKind::CopyEnd));
        self.own_expected -= usize::from(entry.is_own);
        self.quiet_expected -= usize::from(entry.is_quiet);
        // An error may have put another in its place.
        let bytes = entry.undo.as_ref().map_or(0, |undo| undo.bytes());
        self.undo_bytes = self.undo_bytes.saturating_sub(bytes);
        if self.expected.is_empty() {
            self.undo_bytes = 0;
            self.flush_is_sent = false;
            self.expected.shrink_to(OWED_KEPT);
        }
        Some(entry)
    }

    /// Bytes of rows that wait in portals for the client to fetch them.
    pub fn portal_bytes(&self) -> usize {
        self.portals.bytes() + self.cursors.bytes()
    }

    /// A name that is not in `statements` is not prepared upstream, as far as Parse goes.
    fn knows_all_statements(&self) -> bool {
        !self.has_unknown_statements && self.has_room()
    }

    /// One more statement may be kept in mind.
    fn has_room(&self) -> bool {
        self.statements.len() < self.limits.prepared_statements_max
            && self.virtual_statements.len() < self.limits.prepared_statements_max
            && self.statement_bytes + self.virtual_bytes < STATEMENT_BYTES_MAX
    }
}
