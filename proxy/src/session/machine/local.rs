//! Local answers, and what they leave behind: the client believes in an unnamed statement or portal that upstream
//! does not have, or no longer in one that it has.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ahash::HashMap;

use crate::session::answer::early::EarlyPiece;
use crate::session::answer::{Arrival, Form, PreparedStatement, Reply, Unit};
use crate::session::buffer::OutBuffer;
use crate::session::control::{self, Control, begins_with};
use crate::session::effect::{Effect, Written};
use crate::session::intercept;
use crate::session::machine::group::statements;
use crate::session::machine::portal::Portal;
use crate::session::machine::{
    CopyIn, ExpectedKind, Machine, Named, PortalBefore, Undo, Unnamed, UnnamedPortal, is_too_long, kept_bytes,
};
use crate::session::settings::{PROBE_NAME, Question, write_probe};
use crate::session::state::FirstQuery;
use crate::wire::error::{ErrorFields, write_error};
use crate::wire::extended::{
    BIND_COMPLETE, Bind, CLOSE_COMPLETE, Execute, FLUSH, NO_DATA, PARSE_COMPLETE, Parse, SYNC, Target, write_bind,
    write_close, write_execute, write_parse,
};
use crate::wire::frame::{Frames, HEADER_LENGTH, write_c_string, write_frame};
use crate::wire::query::{TransactionStatus, query, write_ready_for_query};

/// What is held of a group before it is asked whether to wait for its end.
const LONG_GROUP_BYTES: usize = 16 * 1024;
/// What PostgreSQL says (ProcessInterrupts).
const CANCELLED: ErrorFields<'static> = ErrorFields::error("57014", "canceling statement due to user request");

/// Rows that wait here are printed, by settings that have been changed since. Upstream can print them anew, but may have them in
/// another order: which were handed out already could not be told.
const OUTDATED_ROWS: ErrorFields<'static> = ErrorFields {
    hint: Some("Change such settings before the first row is fetched, or behind the last one."),
    ..ErrorFields::error(
        "0A000",
        "the other rows of this portal or cursor were printed before DateStyle, TimeZone, extra_float_digits, \
         client_encoding or the like was changed",
    )
};

/// Its own message is for upstream's log.
const FAIL_BLOCK: &[u8] = b"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014', \
    MESSAGE = 'canceling statement due to user request, while freshet answered it'; END $$";

/// Of statements that upstream is given to answer as the client expects it.
const OWN_NAME: &[u8] = b"freshet_own";

/// One execution under names of freshet's own, closed again, as a unit: five replies beside CommandComplete.
pub(super) fn write_own_execution(out: &mut Vec<u8>, sql: &[u8]) {
    write_own(out, sql);
    out.extend_from_slice(SYNC);
}

/// Likewise within other messages.
fn write_own(out: &mut Vec<u8>, sql: &[u8]) {
    write_parse(out, OWN_NAME, sql);
    write_bind(out, OWN_NAME, OWN_NAME);
    write_execute(out, OWN_NAME);
    write_close(out, Target::Portal(OWN_NAME));
    write_close(out, Target::Statement(OWN_NAME));
}

/// A complete unit as an answerer sees it, or the form that is not answered locally. `prepared` finds the statement that
/// the client knows under a name, if the unit does not make it itself.
pub fn view<'a>(
    bytes: &'a [u8],
    prepared: impl FnOnce(&[u8]) -> Option<&'a Arc<PreparedStatement>>,
) -> Result<Unit<'a>, &'static str> {
    let mut unit = Unit {
        form: Form::Execute,
        sql: &[],
        parameter_types: &[],
        bind: None,
        prepared: None,
        describes_statement: false,
        describes_portal: false,
        bytes,
        arrival: None,
    };
    let mut parse: Option<Parse<'_>> = None;
    let mut is_executed = false;
    let mut described: Option<&[u8]> = None;
    for frame in Frames::new(bytes) {
        match frame.tag {
            b'Q' => {
                unit.form = Form::Simple;
                unit.sql = query(frame.body).ok_or("malformed Query")?;
                unit.describes_portal = true;
                return Ok(unit);
            }
            // What was described before it is another statement.
            b'P' if parse.is_none() && unit.bind.is_none() && described.is_none() => {
                parse = Some(Parse::view(frame.body).ok_or("malformed Parse")?);
            }
            b'B' if unit.bind.is_none() => {
                let bind = Bind::view(frame.body).ok_or("malformed Bind")?;
                if !bind.portal.is_empty() {
                    return Err("named portal");
                }
                unit.bind = Some(bind);
            }
            b'D' if !is_executed => match Target::view(frame.body).ok_or("malformed Describe")? {
                Target::Statement(name) => {
                    unit.describes_statement = true;
                    described = Some(name);
                }
                Target::Portal(b"") if unit.bind.is_some() => unit.describes_portal = true,
                Target::Portal(_) => return Err("Describe of another portal"),
            },
            b'E' if unit.bind.is_some() && !is_executed => {
                let execute = Execute::view(frame.body).ok_or("malformed Execute")?;
                if execute.rows_max > 0 || !execute.portal.is_empty() {
                    return Err("row limit or named portal");
                }
                is_executed = true;
            }
            b'C' if is_executed && Target::view(frame.body) == Some(Target::Portal(b"")) => {}
            b'S' => break,
            b'E' => return Err("several executions"),
            _ => return Err("messages in another order"),
        }
    }
    if unit.bind.is_some() && !is_executed {
        return Err("Bind without Execute");
    }
    let name = unit.bind.map(|bind| bind.statement).or(parse.map(|parse| parse.name)).or(described);
    let name = name.ok_or("no statement")?;
    if described.is_some_and(|described| described != name) {
        return Err("Describe of another statement");
    }
    match parse {
        Some(parse) if parse.name != name => return Err("Parse of another statement"),
        Some(parse) => {
            (unit.sql, unit.parameter_types) = (parse.sql, parse.parameter_types);
            if !name.is_empty() {
                return Err("Parse of a named statement");
            }
            unit.form = if unit.bind.is_some() { Form::Execute } else { Form::Prepare };
        }
        None => {
            let prepared = prepared(name).ok_or("unknown statement")?;
            (unit.sql, unit.parameter_types) = (&prepared.sql, &prepared.parameter_types);
            unit.prepared = Some(prepared);
            if unit.bind.is_none() {
                return Err("Describe alone");
            }
        }
    }
    Ok(unit)
}

/// What answers the messages of a plain unit, up to ReadyForQuery.
pub fn write_reply(out: &mut OutBuffer, unit: &[u8], reply: &Reply) {
    write_rest(out, unit, reply, None);
}

/// Likewise. `begun`: what comes before the rows is written, and so many pieces of them.
fn write_rest(out: &mut OutBuffer, unit: &[u8], reply: &Reply, begun: Option<usize>) {
    let mut frames = Frames::new(unit);
    if begun.is_some() {
        frames.find(|frame| matches!(frame.tag, b'Q' | b'E'));
        push_rows(out, reply, begun.unwrap_or(0));
    }
    for frame in frames {
        write_before_rows(out, frame.tag, frame.body, reply);
        if matches!(frame.tag, b'Q' | b'E') {
            push_rows(out, reply, 0);
        }
    }
}

fn push_rows(out: &mut OutBuffer, reply: &Reply, from: usize) {
    reply.rows.iter().skip(from).for_each(|piece| out.push_shared(piece));
}

/// What answers one message, rows aside.
fn write_before_rows(out: &mut OutBuffer, tag: u8, body: &[u8], reply: &Reply) {
    match tag {
        b'Q' => out.push(&reply.columns),
        b'P' => out.push(PARSE_COMPLETE),
        b'B' => out.push(BIND_COMPLETE),
        b'D' => {
            let columns = match Target::view(body) {
                Some(Target::Statement(_)) => {
                    out.push(&reply.parameters);
                    &reply.statement_columns
                }
                Some(Target::Portal(_)) | None => &reply.columns,
            };
            out.push(if columns.is_empty() { NO_DATA } else { columns });
        }
        b'C' => out.push(CLOSE_COMPLETE),
        _ => {}
    }
}

/// [`Machine::prepared`], where other parts of the machine are changed meanwhile.
pub(super) fn find_prepared<'a>(
    virtual_statements: &'a HashMap<Box<[u8]>, Arc<PreparedStatement>>,
    statements: &'a HashMap<Box<[u8]>, Named>,
    unnamed: &'a Unnamed,
    name: &[u8],
) -> Option<&'a Arc<PreparedStatement>> {
    if !name.is_empty() {
        let named = || statements.get(name).map(|named| &named.statement);
        return virtual_statements.get(name).or_else(named);
    }
    match unnamed {
        Unnamed::Upstream(known) => known.as_ref(),
        Unnamed::Local { statement, .. } => Some(statement),
        Unnamed::Destroyed => None,
    }
}

impl Machine {
    /// The statement that the client knows under this name.
    pub fn prepared(&self, name: &[u8]) -> Option<&Arc<PreparedStatement>> {
        find_prepared(&self.virtual_statements, &self.statements, &self.unnamed, name)
    }

    /// [`view`] of the unit at hand.
    pub fn unit(&self) -> Result<Unit<'_>, &'static str> {
        let unit = view(self.unit_bytes(), |name| self.prepared(name))?;
        Ok(Unit { arrival: Some(self.arrival()), ..unit })
    }

    /// The first execution of the group whose end is yet to come, where so much of it is held that upstream could have begun.
    pub fn long_group(&self) -> Option<Unit<'_>> {
        if self.scanned - self.taken < LONG_GROUP_BYTES {
            return None;
        }
        let mut parsed = None;
        for frame in Frames::new(self.unit_bytes()) {
            match frame.tag {
                b'P' => parsed = Parse::view(frame.body),
                b'B' => {
                    let bind = Bind::view(frame.body)?;
                    let parse = parsed.filter(|parse| parse.name == bind.statement);
                    let prepared = if parse.is_some() { None } else { self.prepared(bind.statement) };
                    let (sql, parameter_types) = match (parse, prepared) {
                        (Some(parse), _) => (parse.sql, parse.parameter_types),
                        (None, Some(prepared)) => (&*prepared.sql, &*prepared.parameter_types),
                        (None, None) => return None,
                    };
                    return Some(Unit {
                        form: Form::Execute,
                        sql,
                        parameter_types,
                        bind: Some(bind),
                        prepared,
                        describes_statement: false,
                        describes_portal: false,
                        bytes: &[],
                        arrival: None,
                    });
                }
                _ => {}
            }
        }
        None
    }

    /// The statements that the unit at hand has, names, or binds.
    pub fn unit_texts(&self) -> Vec<&[u8]> {
        let mut texts = Vec::new();
        for frame in Frames::new(self.unit_bytes()) {
            texts.extend(match frame.tag {
                b'Q' => query(frame.body),
                b'P' => Parse::view(frame.body).map(|parse| parse.sql),
                b'B' => Bind::view(frame.body)
                    .and_then(|bind| self.prepared(bind.statement))
                    .map(|statement| &statement.sql[..]),
                _ => None,
            });
        }
        texts
    }

    /// Of the unit at hand.
    pub fn arrival(&self) -> Arrival {
        let place = |at: usize| self.given_up + at as u64;
        Arrival { end: place(self.scanned), received: place(self.incoming.len()) }
    }

    /// Queues rows of the reply to the unit at hand, the first ones or the next. [`Machine::answer_locally`] gets the whole reply.
    pub fn begin_answer(&mut self, piece: &EarlyPiece) {
        if self.begun.is_none() {
            let incoming = std::mem::take(&mut self.incoming);
            for frame in Frames::new(&incoming[self.taken..self.scanned]) {
                write_before_rows(&mut self.to_client, frame.tag, frame.body, &piece.head);
                if matches!(frame.tag, b'Q' | b'E') {
                    break;
                }
            }
            self.incoming = incoming;
        }
        *self.begun.get_or_insert(0) += 1;
        self.to_client.push_shared(&piece.rows);
    }

    /// Whether rows of the unit at hand are on their way to the client.
    pub fn has_begun_answer(&self) -> bool {
        self.begun.is_some()
    }

    /// Answers the unit at hand from here.
    pub fn answer_locally(&mut self, reply: &Reply) {
        let incoming = std::mem::take(&mut self.incoming);
        let unit = &incoming[self.taken..self.scanned];
        write_rest(&mut self.to_client, unit, reply, self.begun.take());
        if reply.account.is_query {
            self.state.note_answer();
        }
        let status = self.state.status;
        self.to_client.write(|out| write_ready_for_query(out, status));
        self.leave_behind(unit);
        self.finish_locally(incoming);
    }

    /// What the client believes in after a plain unit that was answered from here.
    pub(super) fn leave_behind(&mut self, unit: &[u8]) {
        for frame in Frames::new(unit) {
            match frame.tag {
                b'Q' => {
                    self.unnamed = Unnamed::Destroyed;
                    self.portals.remove(b"");
                    self.unnamed_portal = UnnamedPortal::Destroyed;
                }
                b'P' => self.note_local_parse(frame.bytes, frame.body),
                b'B' if self.state.status != TransactionStatus::Idle => {
                    let bound = Bind::view(frame.body).and_then(|bind| self.prepared(bind.statement));
                    if let Some(statement) = bound.cloned() {
                        self.portals.remove(b"");
                        self.unnamed_portal = UnnamedPortal::Local {
                            bind: frame.body.to_vec(),
                            statement,
                            savepoints: self.tracker.savepoints(),
                        };
                    }
                }
                b'C' => self.unnamed_portal = UnnamedPortal::Destroyed,
                _ => {}
            }
        }
    }

    pub(super) fn note_local_parse(&mut self, frame: &[u8], body: &[u8]) {
        if self.is_unnamed_already(frame) {
            return;
        }
        let Some(parse) = Parse::view(body) else { return };
        // What is answered from here reads and does nothing else.
        let statement = self.prepare_with(&parse, Effect::Neutral, None, Written::NOTHING);
        self.note_read(parse.sql);
        if parse.name.is_empty() {
            self.unnamed = Unnamed::Local { statement, parse: frame.to_vec() };
        } else if self.has_room() && !is_too_long(parse.name) {
            self.remember_virtual(parse.name, statement);
        }
    }

    /// Upstream takes a snapshot to parse a query, which makes it one of its block (postgres.c, `exec_parse_message`; analyze.c,
    /// `analyze_requires_snapshot`: not for SHOW and its like).
    pub(super) fn note_read(&mut self, sql: &[u8]) {
        let is_of_block = self.state.status == TransactionStatus::InTransaction;
        let is_query =
            [&b"select"[..], b"with", b"values", b"table", b"("].into_iter().any(|word| begins_with(sql, word));
        if is_of_block && is_query && !intercept::is_for_freshet(sql, self.limits.schema) {
            self.state.note_answer();
        }
    }

    /// The unnamed statement is the one that this Parse makes, by the same settings and catalog.
    fn is_unnamed_already(&self, frame: &[u8]) -> bool {
        let Unnamed::Local { statement, parse } = &self.unnamed else { return false };
        *parse == frame
            && statement.settings.load(Relaxed) == self.settings_number()
            && statement.path.load(Relaxed) == self.state.settings.as_ref().map_or(0, |settings| settings.path)
            && statement.catalog.load(Relaxed) == self.state.catalog_version
    }

    /// Answers the unit at hand with an error, as upstream would, outside of a block or in one that has failed. In an open one
    /// the block must fail, upstream's too: [`Machine::fail_locally`].
    pub fn refuse_locally(&mut self, error: &ErrorFields<'_>) {
        let incoming = std::mem::take(&mut self.incoming);
        let status = self.state.status;
        self.to_client.write(|out| {
            write_error(out, error);
            write_ready_for_query(out, status);
        });
        // Which of the messages took effect does not matter: the next use of either needs a Parse anyway.
        self.unnamed = Unnamed::Destroyed;
        self.unnamed_portal = UnnamedPortal::Destroyed;
        self.finish_locally(incoming);
    }

    /// The client's cancel request ends the unit at hand, which was about to be answered from here: whatever comes before its
    /// first execution is in order. A transaction block has failed then, so upstream's is made to fail, too.
    pub fn cancel_locally(&mut self) {
        self.fail_locally(&CANCELLED);
    }

    /// Fails the unit at hand with an error of freshet's own, and with it the open block, upstream's too.
    pub fn fail_locally(&mut self, error: &ErrorFields<'_>) {
        let has_begun = self.begun.take().is_some();
        let incoming = std::mem::take(&mut self.incoming);
        for frame in Frames::new(&incoming[self.taken..self.scanned]) {
            match frame.tag {
                b'P' => {
                    let Some(parse) = Parse::view(frame.body) else { break };
                    let may_be_new = self.knows_all_statements() && !is_too_long(parse.name);
                    let is_new = may_be_new && self.prepared(parse.name).is_none();
                    if !parse.name.is_empty() && !is_new {
                        break;
                    }
                    let statement = self.prepare(&parse);
                    self.parse_ahead(&parse, frame.bytes, statement);
                    if !has_begun {
                        self.to_client.push(PARSE_COMPLETE);
                    }
                }
                b'B' if !has_begun => self.to_client.push(BIND_COMPLETE),
                b'B' => {}
                _ => break,
            }
        }
        self.incoming = incoming;
        self.end_with(error);
    }

    /// Likewise, before anything is known of the unit: its first message fails.
    pub fn cancel_unread(&mut self) {
        self.forget_unread();
        self.end_with(&CANCELLED);
    }

    /// The unit at hand fails at its first message, with the error (the body of an ErrorResponse) that upstream gave to what
    /// freshet asked it for the unit's sake. If that was in a block, the block has failed by it.
    pub fn fail_unread(&mut self, error: &[u8]) {
        self.forget_unread();
        self.to_client.write(|out| write_frame(out, b'E', |out| out.extend_from_slice(error)));
        self.end_failed();
    }

    /// The unit at hand begins with a plain ROLLBACK, by either protocol; others may follow it in one string.
    pub fn rolls_back(&self) -> bool {
        let texts = self.unit_texts();
        let first = texts.first().and_then(|text| statements(text)?.first().copied());
        first.is_some_and(|sql| control::read(sql) == Some(Control::Rollback))
    }

    /// Parse of the unnamed statement drops the one before even if it fails.
    fn forget_unread(&mut self) {
        if self.unit_bytes().starts_with(b"P") && self.unit_bytes().get(HEADER_LENGTH) == Some(&0) {
            self.unnamed = Unnamed::Destroyed;
        }
    }

    /// The unit at hand fetches rows that are printed by settings no longer in force.
    pub fn refuse_outdated_rows(&mut self) {
        self.fail_locally(&OUTDATED_ROWS);
    }

    /// So does an Execute. In its place upstream raises the error, so that whatever the Execute is part of fails there, too.
    pub(super) fn refuse_execution(&mut self) {
        self.refuse(&OUTDATED_ROWS);
    }

    /// Upstream raises this error.
    pub(super) fn refuse(&mut self, error: &ErrorFields<'_>) {
        let ErrorFields { sqlstate, message, hint, .. } = error;
        let hint = hint.map(|hint| format!(", HINT = '{hint}'")).unwrap_or_default();
        let sql =
            format!("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{sqlstate}', MESSAGE = '{message}'{hint}; END $$");
        self.close_leftover();
        self.to_upstream.write(|out| {
            write_parse(out, OWN_NAME, sql.as_bytes());
            write_bind(out, OWN_NAME, OWN_NAME);
            write_close(out, Target::Statement(OWN_NAME));
            write_execute(out, OWN_NAME);
        });
        self.expect_own(ExpectedKind::Parse(Some(OWN_NAME.into())));
        self.expect_own(ExpectedKind::Bind);
        self.expect_own(ExpectedKind::Close);
        self.is_unsynced = true;
        self.expect(ExpectedKind::Execute);
    }

    fn end_with(&mut self, error: &ErrorFields<'_>) {
        self.to_client.write(|out| write_error(out, error));
        if self.state.status == TransactionStatus::InTransaction {
            self.to_upstream.write(|out| write_own_execution(out, FAIL_BLOCK));
            self.expect_quiet(ExpectedKind::Failing);
            self.state.status = TransactionStatus::Failed;
            self.tracker.ready(TransactionStatus::Failed, true, false);
        }
        self.end_failed();
    }

    /// What follows the error: ReadyForQuery, or nothing up to the Sync of a group that ended with Flush.
    fn end_failed(&mut self) {
        // Those of a failed block are there again behind ROLLBACK TO, if they are older than the savepoint (portalmem.c).
        if self.state.status == TransactionStatus::Idle {
            self.portals.clear();
        }
        self.portals.remove(b"");
        self.unnamed_portal = UnnamedPortal::Destroyed;
        if self.unit_bytes().ends_with(FLUSH) {
            (self.has_open_group, self.ignores_group) = (true, true);
        } else {
            let status = self.state.status;
            self.to_client.write(|out| write_ready_for_query(out, status));
            if self.unit_bytes().starts_with(b"Q") {
                self.unnamed = Unnamed::Destroyed;
            }
            self.close_group();
        }
        self.taken = self.scanned;
        if self.state.status == TransactionStatus::Idle {
            self.unnamed_portal = UnnamedPortal::Upstream;
            self.state.transaction.first_query = FirstQuery::None;
        }
    }

    fn finish_locally(&mut self, incoming: Vec<u8>) {
        self.end_unit();
        self.incoming = incoming;
        self.taken = self.scanned;
    }

    /// ReadyForQuery was written.
    pub(super) fn end_unit(&mut self) {
        self.close_group();
        if self.state.status == TransactionStatus::Idle {
            self.portals.clear();
            self.unnamed_portal = UnnamedPortal::Upstream;
            self.state.transaction.first_query = FirstQuery::None;
        }
    }

    /// Asks upstream for the settings; the answer is [`super::Event::Probed`]. Only where [`Machine::is_settled`]; when in a
    /// transaction block, tells [`crate::session::settings`].
    pub fn probe(&mut self) {
        self.ask(Question::Settings);
    }

    /// As [`Machine::probe`]; the answer is [`super::Event::TimeTold`].
    pub fn ask(&mut self, question: Question) {
        self.state.note_query(FirstQuery::Upstream);
        self.to_upstream.write(|out| write_probe(out, &question));
        self.probe_reply = Some((question, Vec::new()));
        for kind in [
            ExpectedKind::Parse(None),
            ExpectedKind::Bind,
            ExpectedKind::Execute,
            ExpectedKind::Close,
            ExpectedKind::Close,
            ExpectedKind::Sync(Effect::Neutral),
        ] {
            self.expect_own(kind);
        }
        // The unit at hand is looked at again once the answer is there.
        self.scanned = self.taken;
    }

    /// Shows upstream that the session is in use, unless it ends none for being idle.
    pub fn keep_alive(&mut self) {
        if self.tracker.may_end_when_idle() && self.is_settled() {
            self.to_upstream.push(SYNC);
            self.expect_quiet(ExpectedKind::QuietSync);
        }
    }

    pub(super) fn remember_statement(&mut self, name: Box<[u8]>, named: Named) {
        self.forget_statement(&name);
        self.statement_bytes += kept_bytes(&name, &named.statement);
        self.statements.insert(name, named);
    }

    pub(super) fn remember_virtual(&mut self, name: &[u8], statement: Arc<PreparedStatement>) {
        self.forget_virtual(name);
        self.virtual_bytes += kept_bytes(name, &statement);
        self.virtual_statements.insert(name.into(), statement);
    }

    /// Makes upstream's unnamed statement what the client believes it to be, before a message that uses it.
    pub(super) fn restore_unnamed_statement(&mut self) {
        match std::mem::replace(&mut self.unnamed, Unnamed::Upstream(None)) {
            Unnamed::Upstream(known) => self.unnamed = Unnamed::Upstream(known),
            Unnamed::Local { statement, parse } => {
                self.to_upstream.push(&parse);
                self.unnamed = Unnamed::Upstream(Some(Arc::clone(&statement)));
                let undo = Undo::Unnamed(Unnamed::Local { statement, parse });
                self.expect_own_or(ExpectedKind::Parse(None), Some(undo));
            }
            Unnamed::Destroyed => {
                self.to_upstream.write(|out| write_close(out, Target::Statement(b"")));
                self.expect_own_or(ExpectedKind::Close, Some(Undo::Unnamed(Unnamed::Destroyed)));
            }
        }
    }

    /// Likewise a named statement.
    pub(super) fn restore_statement(&mut self, name: &[u8]) {
        let Some(named) = self.statements.get_mut(name) else { return };
        if let Some(parse) = named.parse.take() {
            let statement = Arc::clone(&named.statement);
            self.to_upstream.push(&parse);
            let undo = Undo::Named(name.into(), Named { statement, parse: Some(parse) });
            self.expect_own_or(ExpectedKind::Parse(Some(name.into())), Some(undo));
        }
    }

    /// Statements that freshet has left behind would be in its way: they are closed as soon as nothing of the client's is
    /// under way.
    pub(super) fn close_leftovers(&mut self) {
        let is_free = !self.owes() && !self.is_unsynced && !self.is_skipping && self.copy_in == CopyIn::No;
        if !self.has_leftovers || !is_free {
            return;
        }
        self.has_leftovers = false;
        for name in [OWN_NAME, PROBE_NAME] {
            self.to_upstream.write(|out| write_close(out, Target::Statement(name)));
            self.expect_quiet(ExpectedKind::Close);
        }
        self.to_upstream.push(SYNC);
        self.expect_quiet(ExpectedKind::QuietSync);
    }

    /// Likewise, within messages of the client's.
    fn close_leftover(&mut self) {
        if self.has_leftovers {
            self.to_upstream.write(|out| write_close(out, Target::Statement(OWN_NAME)));
            self.expect_own(ExpectedKind::Close);
        }
    }

    /// Upstream gets a portal of this name, so that it refuses another; of a statement that a failed block accepts. It goes
    /// with the error.
    pub(super) fn occupy_portal(&mut self, name: &[u8]) {
        if !self.portals.occupy(name) {
            return;
        }
        self.close_leftover();
        self.to_upstream.write(|out| {
            write_parse(out, OWN_NAME, b"ROLLBACK");
            write_bind(out, name, OWN_NAME);
            write_close(out, Target::Statement(OWN_NAME));
        });
        self.expect_own(ExpectedKind::Parse(Some(OWN_NAME.into())));
        self.expect_own(ExpectedKind::Bind);
        self.expect_own(ExpectedKind::Close);
    }

    /// Binds a portal upstream as the client bound it here, and runs it: `rows` of it, 0 all, None not at all. `values`: what
    /// stands in the Bind behind its names. `undo`: what is to be if it is not bound.
    fn bind_upstream(
        &mut self,
        portal: &[u8],
        statement: &PreparedStatement,
        values: &[u8],
        rows: Option<u32>,
        undo: Option<Undo>,
    ) {
        self.close_leftover();
        self.to_upstream.write(|out| {
            write_frame(out, b'P', |out| {
                write_c_string(out, OWN_NAME);
                write_c_string(out, &statement.sql);
                let count = u16::try_from(statement.parameter_types.len() / 4).unwrap_or(0);
                out.extend_from_slice(&count.to_be_bytes());
                out.extend_from_slice(&statement.parameter_types);
            });
            write_frame(out, b'B', |out| {
                write_c_string(out, portal);
                write_c_string(out, OWN_NAME);
                out.extend_from_slice(values);
            });
            if let Some(rows) = rows {
                write_frame(out, b'E', |out| {
                    write_c_string(out, portal);
                    out.extend_from_slice(&rows.to_be_bytes());
                });
            }
            write_close(out, Target::Statement(OWN_NAME));
        });
        self.expect_own(ExpectedKind::Parse(Some(OWN_NAME.into())));
        self.expect_own_or(ExpectedKind::Bind, undo);
        if rows.is_some() {
            self.expect_own(ExpectedKind::Execute);
        }
        self.expect_own(ExpectedKind::Close);
    }

    /// A statement of freshet's own within the client's messages. `undo`: what is to be if it is not run, or fails.
    pub(super) fn run_own(&mut self, sql: &[u8], undo: Option<Undo>) {
        self.close_leftover();
        self.to_upstream.write(|out| write_own(out, sql));
        self.expect_own(ExpectedKind::Parse(Some(OWN_NAME.into())));
        self.expect_own(ExpectedKind::Bind);
        self.expect_own_or(ExpectedKind::Execute, undo);
        self.expect_own(ExpectedKind::Close);
        self.expect_own(ExpectedKind::Close);
    }

    /// Has upstream read a statement under a name of freshet's own, and run nothing.
    pub(super) fn parse_own(&mut self, sql: &[u8]) {
        self.close_leftover();
        self.to_upstream.write(|out| {
            write_parse(out, OWN_NAME, sql);
            write_close(out, Target::Statement(OWN_NAME));
        });
        self.expect_own(ExpectedKind::Parse(Some(OWN_NAME.into())));
        self.expect_own(ExpectedKind::Close);
    }

    pub(super) fn sync_quietly(&mut self) {
        self.to_upstream.push(SYNC);
        self.expect_quiet(ExpectedKind::QuietSync);
    }

    /// Before something goes upstream that needs portals which live here: upstream gets these, each where it stands. Their further
    /// rows are of upstream's present, and what the block has written since Bind is in them: those that are not needed there stay.
    /// Where it stands is a number of rows, which are the same only by an order that is total.
    pub(super) fn restore_portals(&mut self, is_wanted: impl Fn(&[u8], &Portal) -> bool, is_query: bool) {
        if !self.may_restore_portals() {
            return;
        }
        let origins = self.portals.give(self.tracker.savepoints(), is_wanted);
        if origins.is_empty() {
            return;
        }
        for (name, origin) in origins {
            if self.upstream_portals.len() < self.limits.prepared_statements_max {
                self.upstream_portals.insert(name.clone());
            }
            let rows = (origin.fetched > 0).then_some(origin.fetched);
            self.bind_upstream(&name, &origin.statement, &origin.values, rows, None);
        }
        if is_query {
            // An error must not make upstream ignore the Query.
            self.sync_quietly();
        }
    }

    pub(super) fn may_restore_portals(&self) -> bool {
        !self.portals.is_empty() && self.state.status == TransactionStatus::InTransaction
    }

    fn undo_portal(&self, place: UnnamedPortal) -> Undo {
        Undo::Portal(Box::new(PortalBefore { place, portal: None, transaction: self.transactions }))
    }

    /// Upstream may have an unnamed portal that is not the client's any more. Closed before anything that may fail: what the client
    /// sends behind that, not knowing, would be about it.
    pub(super) fn close_stale_portal(&mut self) {
        if !matches!(self.unnamed_portal, UnnamedPortal::Upstream) && self.upstream_portals.remove(b"".as_slice()) {
            self.to_upstream.write(|out| write_close(out, Target::Portal(b"")));
            self.expect_own(ExpectedKind::Close);
        }
    }

    /// Likewise the unnamed portal: bound again and run to its end, where the client left it.
    pub(super) fn restore_unnamed_portal(&mut self) {
        if !matches!(self.unnamed_portal, UnnamedPortal::Upstream) {
            // What is bound instead only reads.
            self.portal_changes.remove(b"".as_slice());
        }
        match std::mem::replace(&mut self.unnamed_portal, UnnamedPortal::Upstream) {
            UnnamedPortal::Upstream => {}
            // Messages about it are answered here, in their turn; see `advance_group`.
            UnnamedPortal::Held => self.unnamed_portal = UnnamedPortal::Held,
            UnnamedPortal::Local { bind, statement, savepoints } => {
                let values = bind.splitn(3, |byte| *byte == 0).nth(2).unwrap_or_default().to_vec();
                let before = UnnamedPortal::Local { bind, statement: Arc::clone(&statement), savepoints };
                let undo = self.undo_portal(before);
                self.upstream_portals.insert(Box::default());
                self.bind_upstream(b"", &statement, &values, Some(0), Some(undo));
            }
            UnnamedPortal::Destroyed => {
                self.to_upstream.write(|out| write_close(out, Target::Portal(b"")));
                let undo = self.undo_portal(UnnamedPortal::Destroyed);
                self.expect_own_or(ExpectedKind::Close, Some(undo));
            }
        }
    }
}
