//! The client's messages: held while they may become a unit that is answered locally, else forwarded as they come.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use crate::session::answer::{ObservedReply, Observer, PreparedStatement};
use crate::session::change::{Change, Changes, Parameters, Reprinted, of_call};
use crate::session::effect::{Effect, Judged, Written, drops_all_statements, is_plain_query, makes_statement, worst};
use crate::session::intercept;
use crate::session::machine::portal::Portal;
use crate::session::machine::{
    CopyIn, Expected, ExpectedKind, Machine, Named, OWED_MAX, PortalBefore, PortalChanges, Step, UNDO_BYTES_MAX, Undo,
    Unnamed, UnnamedPortal, Watch, WatchEnd, WatchedPortal, compared, is_too_long, kept_bytes,
};
use crate::session::meant::Meant;
use crate::session::state::{FirstQuery, Isolation, Transaction};
use crate::session::{control, cursor};
use crate::wire::extended::{Bind, Execute, Parse, Target, oids};
use crate::wire::frame::{Frames, HEADER_LENGTH, Head, head};
use crate::wire::query::{TransactionStatus, query};

/// Enough of an oversize message to see the names at its beginning (PostgreSQL: NAMEDATALEN is 64, but
/// statement names may be longer).
const PREFIX_LENGTH: usize = 1024;

impl Machine {
    /// Takes bytes that the client sent; [`Machine::advance`] looks at them.
    pub fn receive_client(&mut self, mut bytes: &[u8]) {
        if self.incoming.is_empty() {
            let passing = if self.lost.is_some() { bytes.len() } else { self.client_passing.min(bytes.len()) };
            self.client_passing = self.client_passing.saturating_sub(passing);
            // CopyData needs no second look: it is neither held nor answered.
            let count = passing + self.copy_data(&bytes[passing..]);
            self.to_upstream.push(&bytes[..count]);
            bytes = &bytes[count..];
        }
        self.incoming.extend_from_slice(bytes);
    }

    /// How many bytes at the head of `bytes` are CopyData; the last frame's rest is to be passed on when it comes.
    fn copy_data(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        let is_copying = matches!(self.copy_in, CopyIn::Running { .. });
        if !is_copying || self.client_passing > 0 || self.lost.is_some() || self.probe_reply.is_some() {
            return at;
        }
        while let Head::Frame { tag: b'd', length } = head(&bytes[at..]) {
            let count = length.min(bytes.len() - at);
            self.client_passing = length - count;
            at += count;
        }
        at
    }

    /// Goes through the client's bytes as far as they can be dealt with.
    pub fn advance(&mut self) -> Step {
        let incoming = std::mem::take(&mut self.incoming);
        let mut step = self.advance_over(&incoming);
        if self.is_client_closed && step == Step::Held {
            self.release_over(&incoming);
            step = self.advance_over(&incoming);
        }
        if self.is_client_closed
            && step == Step::Wait
            && self.probe_reply.is_none()
            && !self.is_postponed
            && !self.owes_too_much()
        {
            self.end_over(&incoming);
        }
        self.incoming = incoming;
        self.compact();
        step
    }

    /// What is left at the end of the client's stream. Half a message is upstream's to judge; so is what would wait for an answer
    /// that upstream gives at a Sync, which will not come. Upstream must see the end, or it keeps the session's locks.
    fn end_over(&mut self, incoming: &[u8]) {
        let is_half = match head(&incoming[self.scanned..]) {
            Head::Frame { length, .. } => incoming.len() - self.scanned < length,
            Head::Incomplete => true,
            Head::Malformed => false,
        };
        if !(is_half || self.is_unsynced || self.expected.is_empty()) {
            return;
        }
        // Of a message that is ignored upstream has not had the beginning.
        if self.client_ignoring == 0 {
            self.to_upstream.push(&incoming[self.taken..]);
        }
        self.taken = incoming.len();
        self.scanned = self.taken;
    }

    fn advance_over(&mut self, incoming: &[u8]) -> Step {
        loop {
            if self.probe_reply.is_some() && self.lost.is_none() {
                return Step::Wait;
            }
            if self.is_postponed && self.lost.is_none() {
                if self.awaits_parse() {
                    return Step::Wait;
                }
                self.is_postponed = false;
                self.release_over(incoming);
                continue;
            }
            if self.lost.is_some() {
                self.to_upstream.push(&incoming[self.taken..]);
                self.taken = incoming.len();
                self.scanned = self.taken;
                return Step::Wait;
            }
            if self.client_passing > 0 {
                let count = self.client_passing.min(incoming.len() - self.taken);
                self.to_upstream.push(&incoming[self.taken..self.taken + count]);
                self.client_passing -= count;
                self.taken += count;
                self.scanned = self.taken;
                if self.client_passing > 0 {
                    return Step::Wait;
                }
            }
            if self.client_ignoring > 0 {
                let count = self.client_ignoring.min(incoming.len() - self.taken);
                self.client_ignoring -= count;
                self.taken += count;
                self.scanned = self.taken;
                if self.client_ignoring > 0 {
                    return Step::Wait;
                }
            }
            if self.owes_too_much() {
                return Step::Wait;
            }
            let is_holding = self.scanned > self.taken;
            let rest = &incoming[self.scanned..];
            let (tag, length) = match head(rest) {
                Head::Frame { tag, length } => (tag, length),
                Head::Incomplete if is_holding => return Step::Held,
                Head::Incomplete => return Step::Wait,
                // Upstream answers it as it does: FATAL, "invalid message length", and closes.
                Head::Malformed => {
                    self.release_over(incoming);
                    self.lose("malformed message from the client");
                    continue;
                }
            };
            let is_whole = rest.len() >= length;
            if !is_holding && let Some(step) = self.advance_group(rest, tag, length) {
                match step {
                    Step::Decide => continue,
                    Step::Wait | Step::Held => return Step::Wait,
                }
            }
            if is_holding || self.may_begin_unit(tag, rest) {
                let is_long = length > self.limits.statement_bytes_max;
                if is_long || is_holding && self.scanned - self.taken + length > self.limits.group_bytes_max {
                    if is_holding {
                        self.release_over(incoming);
                        continue;
                    }
                } else if !is_whole {
                    return if is_holding { Step::Held } else { Step::Wait };
                } else if is_holding || self.is_worth_holding(&rest[..length]) {
                    match tag {
                        b'Q' if !is_holding => {
                            self.scanned += length;
                            return Step::Decide;
                        }
                        b'P' | b'B' | b'D' | b'E' | b'C' => {
                            self.scanned += length;
                            continue;
                        }
                        // PostgreSQL refuses one with a body.
                        b'S' | b'H' if is_holding && length == HEADER_LENGTH => {
                            self.scanned += length;
                            return Step::Decide;
                        }
                        _ => {
                            self.release_over(incoming);
                            if is_holding {
                                continue;
                            }
                        }
                    }
                }
            }
            if !self.relay_at(incoming, tag, length) {
                return Step::Wait;
            }
        }
    }

    /// A frame that concerns nothing upstream has: a portal that lives here, the end of a group answered here. None: it is
    /// no such frame; Decide: it is dealt with; Wait: more must come first, from either side.
    fn advance_group(&mut self, rest: &[u8], tag: u8, length: usize) -> Option<Step> {
        let frame = rest.get(..length);
        match tag {
            b'S' | b'X' if self.ignores_group => {
                frame?;
                self.ignores_group = false;
                if tag == b'X' || self.is_unsynced {
                    return None;
                }
                self.answer_end_of_group(tag);
            }
            _ if self.ignores_group => {
                self.client_ignoring = length;
                return Some(Step::Decide);
            }
            // In the middle of a COPY nothing is, and upstream refuses it at once.
            b'E' | b'D' | b'C' | b'B'
                if !self.portals.is_empty()
                    && self.copy_in == CopyIn::No
                    && length <= self.limits.statement_bytes_max =>
            {
                let Some(frame) = frame else { return Some(Step::Wait) };
                if self.is_skipping || !self.is_about_portal(tag, frame) {
                    return None;
                }
                if !self.is_in_turn() {
                    return Some(Step::Wait);
                }
                if !self.answer_portal_message(tag, &frame[HEADER_LENGTH..]) {
                    return None;
                }
            }
            b'S' | b'H' if self.has_open_group && self.is_settled() && length == HEADER_LENGTH => {
                frame?;
                self.answer_end_of_group(tag);
            }
            _ => return None,
        }
        self.was_used = true;
        self.taken += length;
        self.scanned = self.taken;
        Some(Step::Decide)
    }

    /// pg8000 has a statement described in a unit of its own; pgjdbc closes in front of the next statement what it has dropped since the
    /// last.
    fn may_begin_unit(&self, tag: u8, frame: &[u8]) -> bool {
        let is_of_statement = || frame.get(HEADER_LENGTH) == Some(&b'S');
        let may_begin = match tag {
            b'Q' | b'P' | b'B' => true,
            b'D' => self.limits.answers_locally && is_of_statement(),
            b'C' => self.limits.answers_locally,
            _ => false,
        };
        may_begin && self.is_settled()
    }

    /// A plain relay holds only what is addressed to freshet itself.
    fn is_worth_holding(&self, frame: &[u8]) -> bool {
        self.limits.answers_locally || self.is_for_freshet(frame)
    }

    /// Whether a whole `Q`, `P` or `B` is about freshet's own settings and tables.
    fn is_for_freshet(&self, frame: &[u8]) -> bool {
        let body = &frame[HEADER_LENGTH..];
        match frame[0] {
            b'Q' => query(body).is_some_and(|sql| intercept::is_for_freshet(sql, self.limits.schema)),
            b'P' => Parse::view(body).is_some_and(|parse| intercept::is_for_freshet(parse.sql, self.limits.schema)),
            b'B' => Bind::view(body).is_some_and(|bind| self.virtual_statements.contains_key(bind.statement)),
            _ => false,
        }
    }

    /// Something for freshet itself is held.
    pub fn holds_own(&self) -> bool {
        Frames::new(self.unit_bytes()).any(|frame| self.is_for_freshet(frame.bytes))
    }

    /// Forwards the frame at `taken`, as much of it as is there. False: more of it must come first.
    fn relay_at(&mut self, incoming: &[u8], tag: u8, length: usize) -> bool {
        let rest = &incoming[self.taken..];
        let is_large = length > self.limits.statement_bytes_max;
        let needed = match tag {
            b'Q' | b'P' | b'B' | b'D' | b'E' | b'C' if is_large => length.min(PREFIX_LENGTH),
            b'Q' | b'P' | b'B' | b'D' | b'E' | b'C' => length,
            _ => HEADER_LENGTH,
        };
        if rest.len() < needed {
            return false;
        }
        // Something for freshet in the middle of a pipeline waits until upstream has answered what came before.
        // In the middle of a COPY upstream refuses what is no part of it, and says nothing before that.
        let is_copying = self.copy_in != CopyIn::No;
        let waits = !is_large && self.owes() && !self.is_unsynced && !self.is_skipping && !is_copying;
        // So does what must be decided upon in any case.
        let is_strict = self.state.is_strict();
        if waits && matches!(tag, b'Q' | b'P' | b'B') && (is_strict || self.is_for_freshet(&rest[..length])) {
            return false;
        }
        let count = length.min(rest.len());
        let keeps_much = || self.undo_bytes > UNDO_BYTES_MAX && matches!(tag, b'P' | b'Q' | b'C');
        let must_be_in_turn =
            || keeps_much() || self.may_be_skipped(tag, &rest[..count]) || self.wants_portals(tag, &rest[..count]);
        if !is_copying && must_be_in_turn() && !self.is_in_turn() {
            return false;
        }
        self.note_relayed(tag, &rest[..count], length <= count);
        self.to_upstream.push(&rest[..count]);
        self.client_passing = length - count;
        self.taken += count;
        self.scanned = self.taken;
        true
    }

    /// Whether a message sets or uses the unnamed statement, which upstream does not have as the client believes, and
    /// upstream might skip it for an error that is not known yet: then it would be uncertain what upstream has.
    fn may_be_skipped(&self, tag: u8, frame: &[u8]) -> bool {
        let body = frame.get(HEADER_LENGTH..).unwrap_or_default();
        let is_unnamed = || match tag {
            b'Q' => true,
            b'P' => body.first() == Some(&0),
            b'B' => body.split(|byte| *byte == 0).nth(1) == Some(b""),
            b'D' | b'C' => body == b"S\0",
            _ => false,
        };
        // One that is sent for it, in an earlier unit, may fail.
        let is_sent = || {
            let mut of_earlier = self.expected.iter().rev().skip_while(|e| !matches!(e.kind, ExpectedKind::Sync(_)));
            self.own_expected > self.quiet_expected
                && of_earlier.any(|entry| {
                    entry.is_own && matches!(entry.undo.as_deref(), Some(Undo::Unnamed(_) | Undo::Query(..)))
                })
        };
        if matches!(tag, b'B' | b'D') && !self.is_skipping && is_unnamed() && is_sent() {
            return true;
        }
        let may_fail = |kind: &ExpectedKind| !matches!(kind, ExpectedKind::Close);
        let of_unit = || self.expected.iter().rev().take_while(|entry| !matches!(entry.kind, ExpectedKind::Sync(_)));
        self.is_unsynced
            && !self.is_skipping
            && matches!(self.unnamed, Unnamed::Local { .. } | Unnamed::Destroyed)
            && is_unnamed()
            && of_unit().any(|entry| may_fail(&entry.kind))
    }

    /// Whether upstream gets the portals that live here before this message: it must be known then that the block has not
    /// failed, or they would be neither here nor there.
    fn wants_portals(&self, tag: u8, frame: &[u8]) -> bool {
        let body = frame.get(HEADER_LENGTH..).unwrap_or_default();
        let text = match tag {
            _ if self.is_skipping || !self.may_restore_portals() => return false,
            b'Q' => query(body).unwrap_or(body),
            b'P' => Parse::view(body).map_or(body, |parse| parse.sql),
            b'B' => {
                let reprinted = self.reprinted_by_bind(body);
                let statement = Bind::view(body).and_then(|bind| self.prepared(bind.statement));
                return self.portals.any(|name, portal| {
                    let is_meant =
                        |statement: &Arc<PreparedStatement>| portal.is_meant(name, &statement.sql, statement.effect);
                    portal.is_reprinted_whole(reprinted) || statement.is_some_and(is_meant)
                });
            }
            _ => return false,
        };
        let judged = self.judge(text);
        let effect = worst(&judged.effects);
        let reprinted = if tag == b'Q' { self.reprinted(&judged.changes, None) } else { Reprinted::Nothing };
        self.portals.any(|name, portal| portal.is_meant(name, text, effect) || portal.is_reprinted_whole(reprinted))
    }

    /// What of the rows that are not sent yet is printed otherwise once these changes are made.
    fn reprinted(&self, changes: &Changes, parameters: Option<&Parameters<'_>>) -> Reprinted {
        let changes = changes.iter().flat_map(|changes| changes.iter());
        let bound = changes.flat_map(|changes| self.bound(changes, parameters));
        bound.map(|change| change.reprints()).max().unwrap_or_default()
    }

    /// Nothing where no rows wait.
    fn reprinted_by_bind(&self, body: &[u8]) -> Reprinted {
        let bind = if self.may_restore_portals() { Bind::view(body) } else { None };
        let Some(bind) = bind else { return Reprinted::Nothing };
        let Some(statement) = self.prepared(bind.statement) else { return Reprinted::Nothing };
        let parameters = Parameters::new(Some(bind), &statement.parameter_types);
        self.reprinted(&statement.changes, Some(&parameters))
    }

    /// Forwards what is held, without waiting for the rest of the unit.
    pub fn release(&mut self) {
        if self.awaits_parse() {
            self.is_postponed = true;
            return;
        }
        let incoming = std::mem::take(&mut self.incoming);
        self.release_over(&incoming);
        self.incoming = incoming;
        self.compact();
    }

    /// Up to a message about a portal that lives here: that one, and what follows it, is dealt with message by message.
    fn release_over(&mut self, incoming: &[u8]) {
        for frame in Frames::new(&incoming[self.taken..self.scanned]) {
            // A Bind that nothing is ahead of is in its turn.
            let waits = frame.tag != b'B' || self.owes();
            if waits && !self.is_skipping && self.is_about_portal(frame.tag, frame.bytes) {
                break;
            }
            if self.may_be_skipped(frame.tag, frame.bytes) {
                break;
            }
            self.note_relayed(frame.tag, frame.bytes, true);
            self.to_upstream.push(frame.bytes);
            self.taken += frame.bytes.len();
        }
        self.scanned = self.taken;
    }

    /// The client has sent all it will: what is held goes on once it is dealt with.
    pub fn client_closed(&mut self) {
        self.is_client_closed = true;
    }

    /// The complete unit after [`Step::Decide`].
    pub fn unit_bytes(&self) -> &[u8] {
        &self.incoming[self.taken..self.scanned]
    }

    /// Upstream answers the unit; `observer` sees the reply.
    pub fn relay_unit(&mut self, observer: Option<Box<dyn Observer>>) {
        self.relay_group(observer, WatchEnd::Ready, 0);
    }

    /// Like [`Machine::relay_unit`]; the observer sees one part of the reply, after `skip` executions and up to `end`.
    pub fn relay_group(&mut self, observer: Option<Box<dyn Observer>>, end: WatchEnd, skip: usize) {
        self.watch = observer.map(|observer| Watch {
            bytes_max: observer.bytes_max(),
            observer,
            reply: ObservedReply {
                bytes: Vec::new(),
                is_truncated: false,
                is_suspended: false,
                has_error: false,
                has_asynchronous: false,
                status: self.state.status,
            },
            end,
            skip,
            portal: None,
        });
        self.release();
    }

    /// Like [`Machine::relay_group`], of a group that binds a portal and does not execute it: the observer sees the first execution
    /// of it, in one of the next units of the block, if nothing else comes before.
    pub fn relay_bind(&mut self, observer: Option<Box<dyn Observer>>, skip: usize, portal: &[u8]) {
        self.relay_group(observer, WatchEnd::Execution, skip);
        if let Some(watch) = &mut self.watch {
            watch.portal = Some(WatchedPortal { name: portal.into(), is_executed: false });
        }
    }

    /// Something is sent behind the group that bound the watched portal: what is not about that has another reply.
    fn mind_watch(&mut self, tag: u8, body: &[u8]) {
        let Some(portal) = self.watch.as_mut().and_then(|watch| watch.portal.as_mut()) else { return };
        if portal.is_executed || matches!(tag, b'S' | b'H') {
            return;
        }
        let is_about_it = match tag {
            b'E' => Execute::view(body).is_some_and(|execute| execute.portal == &*portal.name),
            b'D' => Target::view(body) == Some(Target::Portal(&portal.name)),
            _ => false,
        };
        portal.is_executed = tag == b'E';
        if !is_about_it {
            self.watch = None;
        }
    }

    /// Books a message that goes upstream: what it will answer, what it may change, what must go before it.
    pub(super) fn note_relayed(&mut self, tag: u8, frame: &[u8], is_whole: bool) {
        let body = frame.get(HEADER_LENGTH..).unwrap_or_default();
        self.mind_watch(tag, body);
        match tag {
            b'S' => {
                if let CopyIn::Running { has_sync } = &mut self.copy_in {
                    *has_sync = true;
                    return;
                }
                (self.is_unsynced, self.is_skipping) = (false, false);
                self.close_group();
                let effect = std::mem::replace(&mut self.unit_effect, Effect::Neutral);
                self.expect(ExpectedKind::Sync(effect));
                return;
            }
            b'c' | b'f' => {
                match self.copy_in {
                    CopyIn::Running { .. } => self.copy_in = CopyIn::No,
                    CopyIn::No if self.copy_ends >= OWED_MAX => self.lose("too many ends of COPY"),
                    CopyIn::No if self.owes() => {
                        self.copy_ends += 1;
                        self.expect(ExpectedKind::CopyEnd);
                    }
                    CopyIn::No => {}
                }
                return;
            }
            _ => {}
        }
        // Everything else is ignored upstream until the Sync.
        if self.is_skipping {
            return;
        }
        self.state.transaction.has_relayed = true;
        // Nothing but its data may reach a COPY that is running.
        if tag != b'd' {
            self.close_stale_portal();
        }
        match tag {
            b'Q' => self.note_query(body, is_whole),
            b'F' => {
                let due = [Box::new([Change::Opaque("a function call".into())]) as Box<[Change]>];
                self.expect_with(ExpectedKind::Query(Effect::Opaque), Some(Box::new(due.into())), None);
            }
            b'P' => self.note_parse(body, is_whole),
            b'B' => self.note_bind(body, is_whole),
            b'D' => self.note_describe(body),
            b'E' => self.note_execute(body),
            b'C' => self.note_close(body, is_whole),
            // Flush asks for what is owed anyway, but leaves the transaction open.
            b'H' | b'd' | b'X' => {}
            _ => self.lose("unknown message from the client"),
        }
    }

    fn note_query(&mut self, body: &[u8], is_whole: bool) {
        self.mind_cursors(body);
        let text = query(body);
        let sql = text.filter(|_| is_whole);
        let Judged { effects, changes, written } = sql.map_or_else(Judged::unread, |sql| self.judge(sql));
        self.written.add(&written);
        effects.iter().for_each(|effect| self.apply_effect(*effect, sql.unwrap_or_default(), true));
        let own = worst(&effects);
        self.show_query(own, text);
        // Extended messages without a Sync are of the same transaction: it ends them, too.
        let effect = worst(&[own, self.unit_effect]);
        let reprinted = self.reprinted(&changes, None);
        self.reprint_cursors(reprinted);
        let is_wanted = |name: &[u8], portal: &Portal| {
            portal.is_meant(name, text.unwrap_or(body), own) || portal.is_reprinted_whole(reprinted)
        };
        self.restore_portals(is_wanted, true);
        self.portals.forget_given(|name| cursor::names(text.unwrap_or(body), name));
        // By a failed block.
        let goes_back = |changes: &[Change]| changes.iter().any(|change| matches!(change, Change::RollbackTo(_)));
        let is_accepted = effects.iter().any(|effect| matches!(effect, Effect::End | Effect::Chain))
            || changes.iter().flat_map(|changes| changes.iter()).any(|changes| goes_back(changes));
        let due = changes.map(|changes| Box::new(changes.iter().map(|c| self.bound(c, None)).collect()));
        self.unit_effect = Effect::Neutral;
        self.is_unsynced = false;
        self.close_group();
        // Malformed, it is refused before it has any effect.
        let unnamed =
            (!is_whole || text.is_some()).then(|| std::mem::replace(&mut self.unnamed, Unnamed::Upstream(None)));
        self.drops_statements = sql.is_some_and(drops_all_statements);
        // Only a statement takes the unnamed portal's place, and none that a failed block refuses (postgres.c, exec_simple_query).
        let is_run = !effects.is_empty() && (self.state.status != TransactionStatus::Failed || is_accepted);
        let portal = if is_run { self.replace_unnamed_portal() } else { None };
        self.expect_with(ExpectedKind::Query(effect), due, unnamed.map(|unnamed| Undo::Query(unnamed, portal)));
    }

    fn note_describe(&mut self, body: &[u8]) {
        self.is_unsynced = true;
        match Target::view(body) {
            Some(Target::Statement(name)) => {
                if name.is_empty() {
                    self.restore_unnamed_statement();
                } else {
                    self.restore_statement(name);
                    self.refuse_other(name);
                }
                self.note_analysis(name);
            }
            Some(Target::Portal(b"")) => self.restore_unnamed_portal(),
            Some(Target::Portal(_)) | None => {}
        }
        self.expect(ExpectedKind::Describe);
    }

    fn note_execute(&mut self, body: &[u8]) {
        self.is_unsynced = true;
        let portal = body.split(|byte| *byte == 0).next().unwrap_or_default();
        if Execute::view(body).is_some_and(|execute| execute.portal.is_empty()) {
            self.restore_unnamed_portal();
        }
        self.portals.forget_given(|name| name == portal);
        let changes = self.portal_changes.get(compared(portal));
        let drops = changes.and_then(|changes| changes.drops.clone());
        let changes = match is_too_long(portal) {
            true => Some(Box::new([Change::Unread]) as Box<[Change]>),
            false => changes.map(|changes| changes.settings.clone()).filter(|settings| !settings.is_empty()),
        };
        if let Some(statement) = drops {
            self.apply_effect(statement.effect, &statement.sql, false);
        }
        self.expect_with(ExpectedKind::Execute, changes.map(|changes| Box::new([changes].into())), None);
    }

    fn note_close(&mut self, body: &[u8], is_whole: bool) {
        self.is_unsynced = true;
        let mut undo = None;
        match Target::view(body) {
            Some(Target::Statement(b"")) => {
                undo = Some(Undo::Unnamed(std::mem::replace(&mut self.unnamed, Unnamed::Upstream(None))));
            }
            Some(Target::Statement(name)) => {
                self.has_unknown_statements |= is_too_long(name);
                let name = compared(name);
                undo = self.forget_statement(name).map(|named| Undo::Named(name.into(), named));
                self.forget_virtual(name);
            }
            Some(Target::Portal(b"")) => undo = self.replace_unnamed_portal().map(Undo::Portal),
            Some(Target::Portal(name)) => self.portals.remove(name),
            // Malformed: upstream refuses it.
            None if is_whole => return self.expect(ExpectedKind::Bind),
            None => {}
        }
        self.expect_with(ExpectedKind::Close, None, undo);
    }

    fn note_parse(&mut self, body: &[u8], is_whole: bool) {
        let was_unsynced = std::mem::replace(&mut self.is_unsynced, true);
        let name = body.split(|byte| *byte == 0).next().unwrap_or_default();
        let statement = if is_whole { Parse::view(body).map(|parse| self.prepare(&parse)) } else { None };
        if is_whole && !has_two_names(body) {
            // Refused before it has any effect.
            return self.expect(ExpectedKind::Parse(Some(Box::default())));
        }
        let text = Parse::view(body).map_or(body, |parse| parse.sql);
        self.mind_cursors_of_statement(Some(text), was_unsynced);
        let effect = statement.as_ref().map_or(Effect::Opaque, |statement| statement.effect);
        self.show_query(effect, Some(text));
        self.restore_portals(|name, portal| portal.is_meant(name, text, effect), false);
        self.portals.forget_given(|name| effect == Effect::Opaque || cursor::names(text, name));
        if name.is_empty() {
            let before = std::mem::replace(&mut self.unnamed, Unnamed::Upstream(statement));
            return self.expect_with(ExpectedKind::Parse(None), None, Some(Undo::Unnamed(before)));
        }
        // Upstream refuses a name that is taken; the entry there is still the right one.
        let is_known = self.statements.contains_key(name);
        if !is_known {
            self.forget_virtual(name);
        }
        let is_new = !is_known && !is_too_long(name) && self.has_room();
        let statement = statement.filter(|_| is_new);
        if statement.is_none() && !is_known {
            (self.has_unknown_statements, self.drops_statements) = (true, false);
        }
        let made: Option<Box<[u8]>> = statement.map(|statement| {
            self.remember_statement(name.into(), Named { statement, parse: None });
            name.into()
        });
        self.expect(ExpectedKind::Parse(Some(made.unwrap_or_default())));
    }

    /// Within a group of which upstream has seen nothing so far: what PostgreSQL refuses behind a query of its transaction, or behind
    /// anything that was run in it, VACUUM and a new isolation level for two, and what it allows there alone, LOCK for one, must find that
    /// there (xact.c, PreventInTransactionBlock and CheckTransactionBlock; variable.c). A SHOW takes no snapshot, and a Parse, or a Bind, runs
    /// nothing.
    fn show_query(&mut self, effect: Effect, text: Option<&[u8]>) {
        let has_query = self.state.transaction.first_query == FirstQuery::Here;
        let is_due = self.has_open_group
            && self.state.status == TransactionStatus::Idle
            && (has_query || self.has_run_here)
            && (effect != Effect::Neutral || !text.is_some_and(is_plain_query));
        if !is_due {
            return;
        }
        let has_run = std::mem::take(&mut self.has_run_here);
        if has_query {
            self.state.transaction.first_query = FirstQuery::Upstream;
        }
        match (has_run, has_query) {
            (true, true) => self.run_own(b"SELECT 1", None),
            (true, false) => self.run_own(b"SHOW server_version", None),
            (false, _) => self.parse_own(b"SELECT 1"),
        }
    }

    /// A new statement out of a Parse.
    pub(super) fn prepare(&mut self, parse: &Parse<'_>) -> Arc<PreparedStatement> {
        let judged = self.judge(parse.sql);
        self.prepare_with(parse, worst(&judged.effects), judged.changes, judged.written)
    }

    pub(super) fn prepare_with(
        &mut self,
        parse: &Parse<'_>,
        effect: Effect,
        changes: Changes,
        written: Written,
    ) -> Arc<PreparedStatement> {
        self.next_statement += 1;
        let is_plain = self.means_what_is_mirrored();
        // What upstream has inferred from a temporary table is not known here. Where nothing tells of one but that much is unknown,
        // the types are taken to be those of the first plan that upstream executes the statement beside.
        let may_infer = self.tracker.opaque().is_some();
        let path = self.state.settings.as_ref().map_or(0, |settings| settings.path);
        Arc::new(PreparedStatement {
            id: self.next_statement,
            sql: parse.sql.into(),
            parameter_types: parse.parameter_types.into(),
            settings: AtomicU64::new(self.settings_number()),
            hangs_on_settings: OnceLock::new(),
            catalog: AtomicU64::new(if is_plain { self.state.catalog_version } else { 0 }),
            path: AtomicU64::new(if is_plain { path } else { 0 }),
            inferred: if is_plain || may_infer { OnceLock::new() } else { OnceLock::from(declared_types(parse)) },
            is_other: AtomicBool::new(false),
            meant: Meant::new(Some(parse.sql).filter(|_| !parse.name.is_empty()), self.catalog.as_deref()),
            typed_under: if is_plain { self.state.catalog_version } else { 0 },
            judged_under: self.judging_catalog(),
            effect,
            changes,
            written,
            text_number: AtomicU64::new(0),
        })
    }

    /// Names in a text that upstream reads now are not those of temporary objects.
    fn means_what_is_mirrored(&self) -> bool {
        let is_opaque = |entry: &Expected| {
            matches!(entry.kind, ExpectedKind::Query(Effect::Opaque) | ExpectedKind::Sync(Effect::Opaque))
        };
        // What is under way has made the settings uncertain.
        let may_come = self.state.settings.is_none() && self.expected.iter().any(is_opaque);
        !may_come
            && !self.tracker.may_have_temporary_objects()
            && worst(&[self.transaction_effect, self.unit_effect]) != Effect::Opaque
    }

    fn note_bind(&mut self, body: &[u8], is_whole: bool) {
        let was_unsynced = std::mem::replace(&mut self.is_unsynced, true);
        if is_whole && !has_two_names(body) {
            return self.expect(ExpectedKind::Bind);
        }
        let mut names = body.split(|byte| *byte == 0);
        let portal = names.next().unwrap_or_default();
        let statement = names.next().unwrap_or_default();
        let known = if statement.is_empty() {
            self.restore_unnamed_statement();
            match &self.unnamed {
                Unnamed::Upstream(known) => known.clone(),
                Unnamed::Local { .. } | Unnamed::Destroyed => None,
            }
        } else {
            self.restore_statement(statement);
            self.refuse_other(statement);
            self.statements.get(statement).map(|named| Arc::clone(&named.statement))
        };
        self.note_analysis(statement);
        self.mind_cursors_of_statement(known.as_ref().map(|known| &*known.sql), was_unsynced);
        let known = known.filter(|statement| self.is_as_judged(statement));
        let effect = known.as_ref().map_or(Effect::Opaque, |statement| statement.effect);
        self.show_query(effect, known.as_ref().map(|statement| &*statement.sql));
        let bind = if is_whole { Bind::view(body) } else { None };
        match &known {
            Some(statement) => {
                let types = &statement.parameter_types;
                self.written.add_bound(&statement.written, bind.as_ref(), types, statement.typed_under);
            }
            None => self.written = Written::Anything,
        }
        // Its Execute names a portal alone.
        let reprinted = self.reprinted_by_bind(body);
        // It may have been parsed before there was the portal that it names.
        let text = known.as_ref().map_or(&b""[..], |statement| &statement.sql);
        let is_wanted =
            |name: &[u8], portal: &Portal| portal.is_reprinted_whole(reprinted) || portal.is_meant(name, text, effect);
        self.restore_portals(is_wanted, false);
        self.portals.forget_given(|name| cursor::names(text, name));
        let mut undo = None;
        if portal.is_empty() || !is_whole {
            // A Bind that fails leaves the portal before it.
            self.upstream_portals.insert(Box::default());
            undo = self.replace_unnamed_portal().map(Undo::Portal);
        } else if self.portals.contains(portal) {
            self.occupy_portal(portal);
        }
        // Behind what makes way: that forgets what the portal before would change.
        self.note_portal(portal, bind, known.as_ref());
        if !portal.is_empty() && self.upstream_portals.len() < self.limits.prepared_statements_max {
            self.upstream_portals.insert(compared(portal).into());
        }
        self.unit_effect = worst(&[self.unit_effect, effect]);
        // To plan it may run functions, whether it is executed or not.
        if matches!(effect, Effect::Neutral | Effect::Write | Effect::Opaque) {
            self.tracker.has_run(&[]);
        }
        self.expect_with(ExpectedKind::Bind, None, undo);
    }

    /// Upstream may analyse the statement again, and by the settings of now.
    fn note_analysis(&self, name: &[u8]) {
        let now = self.settings_number();
        if let Some(statement) = self.prepared(name).filter(|statement| statement.settings.load(Relaxed) != now) {
            statement.settings.store(0, Relaxed);
        }
    }

    /// By what literals are read now ([`crate::session::settings::SessionSettings::reading`]); 0: not certain.
    pub(super) fn settings_number(&self) -> u64 {
        self.state.settings.as_ref().map_or(0, |settings| settings.reading)
    }

    /// Remembers what executing the portal will change.
    fn note_portal(&mut self, portal: &[u8], bind: Option<Bind<'_>>, statement: Option<&Arc<PreparedStatement>>) {
        let drops =
            statement.filter(|statement| matches!(statement.effect, Effect::Deallocate | Effect::Discard)).cloned();
        let settings: Box<[Change]> = match statement {
            None => Box::new([Change::Unread]),
            Some(statement) => {
                let parameters = Parameters::new(bind, &statement.parameter_types);
                let changes = statement.changes.iter().flat_map(|changes| changes.iter());
                changes.flat_map(|changes| self.bound(changes, Some(&parameters))).collect()
            }
        };
        let portal = compared(portal);
        if settings.is_empty() && drops.is_none() {
            self.portal_changes.remove(portal);
        } else if self.portal_changes.len() < self.limits.prepared_statements_max {
            self.portal_changes.insert(portal.into(), PortalChanges { settings, drops });
        } else {
            self.lose("too many portals that change the session");
        }
    }

    /// Calls of set_config with their parameters; without any, constants alone are known.
    fn bound(&self, changes: &[Change], parameters: Option<&Parameters<'_>>) -> Box<[Change]> {
        let none = Parameters::new(None, &[]);
        let bound = |change: &Change| match change {
            Change::Call(call) => of_call(call, parameters.unwrap_or(&none), self.limits.schema),
            _ => Box::new([change.clone()]),
        };
        changes.iter().flat_map(bound).collect()
    }

    /// At once, when it is sent: names of statements. Settings and transactions wait for the acknowledgement.
    fn apply_effect(&mut self, effect: Effect, sql: &[u8], is_query: bool) {
        match effect {
            Effect::Deallocate => match control::deallocated_name(sql) {
                Some(name) => {
                    let is_known = self.forget_statement(name.as_bytes()).is_some();
                    match is_query {
                        true => self.may_keep_statement |= is_known,
                        // What is sent need not be run.
                        false => self.has_unknown_statements |= is_known,
                    }
                    if self.state.status != TransactionStatus::Failed {
                        self.forget_virtual(name.as_bytes());
                    }
                }
                // What is there keeps its name: PostgreSQL refuses another of it (prepare.c, StorePreparedStatement).
                None if makes_statement(sql) => self.has_unknown_statements = true,
                None => self.forget_statements(),
            },
            Effect::Discard => self.forget_statements(),
            Effect::Neutral
            | Effect::Begin(_)
            | Effect::SetIsolation(_)
            | Effect::End
            | Effect::Chain
            | Effect::Settings
            | Effect::Write
            | Effect::Opaque => {}
        }
    }

    /// A transaction block is open from here on.
    pub(super) fn begin(&mut self, isolation: Option<Isolation>) {
        let default = self.state.settings.as_ref().and_then(|settings| settings.default_isolation);
        // What was read before it, up to the last Sync, is of the same transaction.
        let first_query = self.state.transaction.first_query;
        self.state.transaction = Transaction { first_query, ..Transaction::new(isolation.or(default)) };
        self.tracker.apply(&Change::Begin(isolation));
        self.tracker.ready(TransactionStatus::InTransaction, false, false);
    }

    /// The block, or implicit transaction, is over: its portals go.
    pub(super) fn end_of_transaction(&mut self, is_committed: bool) {
        self.state.transaction = Transaction::default();
        self.cursors.end_of_transaction(is_committed);
        self.forget_portals();
    }

    /// Upstream has ended the transaction, and its portals with it.
    pub(super) fn forget_portals(&mut self) {
        // What was sent behind may have made some since.
        if !self.owes() {
            self.upstream_portals.clear();
        }
        self.portals.clear();
        self.unnamed_portal = UnnamedPortal::Upstream;
        self.transactions += 1;
    }

    /// Upstream has, or will have, the unnamed portal that counts. What was there, if an open block may have it again.
    fn replace_unnamed_portal(&mut self) -> Option<Box<PortalBefore>> {
        let portal = self.portals.take(b"");
        let place = std::mem::replace(&mut self.unnamed_portal, UnnamedPortal::Upstream);
        let transaction = self.transactions;
        let is_of_block = self.state.status != TransactionStatus::Idle;
        is_of_block.then(|| Box::new(PortalBefore { place, portal, transaction }))
    }

    pub(super) fn forget_statement(&mut self, name: &[u8]) -> Option<Named> {
        let named = self.statements.remove(name)?;
        self.statement_bytes -= kept_bytes(name, &named.statement);
        Some(named)
    }

    pub(super) fn forget_virtual(&mut self, name: &[u8]) {
        if let Some(statement) = self.virtual_statements.remove(name) {
            self.virtual_bytes -= kept_bytes(name, &statement);
        }
    }

    /// Some of them are dropped upstream, or all, or one is made; or the statement that would fails.
    fn forget_statements(&mut self) {
        self.has_unknown_statements = true;
        self.statements.clear();
        self.statement_bytes = 0;
    }

    /// Gives up what is dealt with. A burst of many units is not moved for each of them.
    fn compact(&mut self) {
        if self.taken == self.incoming.len() {
            self.incoming.clear();
            self.incoming.shrink_to(4096);
        } else if self.taken >= self.incoming.len() / 2 {
            self.incoming.drain(..self.taken);
        } else {
            return;
        }
        self.given_up += self.taken as u64;
        self.scanned -= self.taken;
        self.taken = 0;
    }
}

/// The parameters' types as far as the client has declared them, 0 for others.
fn declared_types(parse: &Parse<'_>) -> Box<[u32]> {
    oids(parse.parameter_types).collect()
}

/// Whether a Parse or Bind is well-formed as far as it takes effect before upstream may refuse it.
fn has_two_names(body: &[u8]) -> bool {
    body.iter().filter(|byte| **byte == 0).count() >= 2
}
