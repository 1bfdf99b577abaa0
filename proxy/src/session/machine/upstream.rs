//! Upstream's replies: matched with what was asked, forwarded as they come, swallowed where freshet itself asked.

use ahash::HashSet;

use crate::session::answer::Relayed;
use crate::session::change::{Change, Reprinted};
use crate::session::effect::{Effect, Written, worst};
use crate::session::machine::{
    CopyIn, Due, Event, Expected, ExpectedKind, Machine, Observed, PortalBefore, Undo, Unnamed, UnnamedPortal, Watch,
    WatchEnd,
};
use crate::session::settings::{Question, read_custom, read_probe, read_time};
use crate::session::state::FirstQuery;
use crate::wire::error::{field, is_fatal};
use crate::wire::frame::{Frames, HEADER_LENGTH, Head, head, write_frame};
use crate::wire::query::TransactionStatus;
use crate::wire::startup::parameter_status;

/// A ParameterStatus or ReadyForQuery is looked at whole; nothing sane comes near this.
const WHOLE_LENGTH_MAX: usize = 64 * 1024;
/// The probe's reply is a few hundred bytes.
const PROBE_LENGTH_MAX: usize = 1024 * 1024;

/// What becomes of a frame from upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Forward,
    /// The reply to a unit ends with it.
    ForwardAsLast,
    /// The reply to one execution or description ends with it, and somebody watches.
    ForwardAsPart,
    /// [`Machine::answered_error`] is passed on in its place: it says why the block has failed.
    Instead,
    Swallow,
    /// The end of a swallowed unit.
    SwallowAsLast,
}

/// What was sent behind a Sync up to which messages were skipped.
#[derive(Default)]
struct Behind {
    /// Statements that those would have made, and that are made there.
    made: HashSet<Box<[u8]>>,
    /// A Parse that made no entry.
    has_nameless: bool,
    /// More than Syncs.
    has_more: bool,
    /// The first that takes the unnamed statement's place.
    unnamed: Option<usize>,
    /// The first that takes the unnamed portal's place.
    portal: Option<usize>,
}

/// Whether a notice tells of what is carried out (log_statement, debug_print_parse), not of what comes of it.
fn is_chatter(body: &[u8]) -> bool {
    field(body, b'V').is_some_and(|severity| severity == b"LOG" || severity.starts_with(b"DEBUG"))
}

impl Machine {
    /// Takes bytes that upstream sent. False: they cannot be told apart from here on, the session must end.
    pub fn receive_upstream(&mut self, bytes: &[u8]) -> bool {
        if self.partial.is_empty() {
            let consumed = self.pass_on(bytes);
            let Some(consumed) = consumed else { return false };
            self.partial.extend_from_slice(&bytes[consumed..]);
            return true;
        }
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        let Some(consumed) = self.pass_on(&joined) else { return false };
        joined.drain(..consumed);
        self.partial = joined;
        true
    }

    /// Deals with the frames at hand; returns how many bytes are dealt with, None for a malformed frame.
    fn pass_on(&mut self, input: &[u8]) -> Option<usize> {
        // `run..at` are the frames to be forwarded that are not copied yet.
        let (mut run, mut at) = (0, 0);
        // What the frame before was and what became of it: rows come in thousands, and one is like the next.
        let mut last = (0, Fate::Forward);
        loop {
            if self.upstream_passing > 0 {
                let count = self.upstream_passing.min(input.len() - at);
                self.upstream_passing -= count;
                if self.passing_is_own {
                    self.forward(&input[run..at]);
                    self.keep_own(&input[at..at + count]);
                    run = at + count;
                }
                at += count;
                if self.upstream_passing > 0 {
                    break;
                }
            }
            if self.lost.is_some() && self.own_expected == 0 {
                // Whatever this says, it may acknowledge anything.
                if at < input.len() && self.limits.answers_locally {
                    self.acknowledge(Effect::Opaque, Written::Anything);
                }
                at = input.len();
                break;
            }
            let rest = &input[at..];
            let (tag, length) = match head(rest) {
                Head::Frame { tag, length } => (tag, length),
                Head::Incomplete => break,
                Head::Malformed => {
                    self.forward(&input[run..at]);
                    return None;
                }
            };
            let may_end_part = matches!(tag, b'I' | b's' | b'T' | b'n') && self.watches_part();
            // A local answer may be written at any moment, and not into the middle of a frame.
            let may_be_in_between = matches!(tag, b'N' | b'A') && !self.owes();
            let is_read = matches!(tag, b'Z' | b'S' | b'C' | b'E');
            let is_compared =
                || matches!(self.expected.front(), Some(Expected { kind: ExpectedKind::QuietDescribe(_), .. }));
            let may_be_chatter = tag == b'N' && self.expected.front().is_some_and(|front| front.is_own);
            let must_be_whole =
                (is_read || may_end_part || may_be_in_between || may_be_chatter || tag == b'T' && is_compared())
                    && length <= WHOLE_LENGTH_MAX;
            if must_be_whole && rest.len() < length {
                break;
            }
            let body = rest.get(HEADER_LENGTH..length.min(rest.len())).unwrap_or_default();
            let count = length.min(rest.len());
            let fate = if last.0 == tag && matches!(tag, b'D' | b'd') { last.1 } else { self.match_reply(tag, body) };
            last = (tag, fate);
            match fate {
                Fate::Forward => {
                    self.upstream_passing = length - count;
                    self.passing_is_own = false;
                    at += count;
                }
                Fate::ForwardAsLast => {
                    at += count;
                    self.forward(&input[run..at]);
                    run = at;
                    if !self.awaits_execution() {
                        self.unit_is_answered();
                    }
                }
                Fate::ForwardAsPart => {
                    at += count;
                    self.forward(&input[run..at]);
                    run = at;
                    self.upstream_passing = length - count;
                    self.passing_is_own = false;
                    self.part_is_answered(tag);
                }
                Fate::Instead => {
                    self.forward(&input[run..at]);
                    let error = self.answered_error.take().unwrap_or_default();
                    let mut frame = Vec::with_capacity(HEADER_LENGTH + error.len());
                    write_frame(&mut frame, b'E', |out| out.extend_from_slice(&error));
                    self.forward(&frame);
                    self.upstream_passing = length - count;
                    self.passing_is_own = true;
                    at += count;
                    run = at;
                }
                Fate::Swallow | Fate::SwallowAsLast => {
                    self.forward(&input[run..at]);
                    if tag != b'N' {
                        self.keep_own(&rest[..count]);
                    }
                    self.upstream_passing = length - count;
                    self.passing_is_own = true;
                    at += count;
                    run = at;
                    if fate == Fate::SwallowAsLast {
                        self.probe_is_answered();
                    }
                }
            }
        }
        self.forward(&input[run..at]);
        (!self.is_contradicted).then_some(at)
    }

    fn forward(&mut self, bytes: &[u8]) {
        self.to_client.push(bytes);
        if let Some(watch) = &mut self.watch
            && watch.skip == 0
        {
            let wanted = watch.reply.bytes.len() + bytes.len();
            if wanted > watch.bytes_max && !watch.reply.is_truncated {
                watch.bytes_max = watch.observer.bytes_max_for(wanted);
            }
            let room = watch.bytes_max.saturating_sub(watch.reply.bytes.len()).min(bytes.len());
            watch.reply.is_truncated |= room < bytes.len();
            watch.reply.bytes.extend_from_slice(&bytes[..room]);
        }
    }

    fn keep_own(&mut self, bytes: &[u8]) {
        if let Some((_, reply)) = &mut self.probe_reply
            && reply.len() < PROBE_LENGTH_MAX
        {
            reply.extend_from_slice(bytes);
        }
    }

    /// Finds out which request a message answers (PostgreSQL: Message Flow). `body` may be incomplete but for Z, S, C and E.
    fn match_reply(&mut self, tag: u8, body: &[u8]) -> Fate {
        if tag == b'N' && self.expected.front().is_some_and(|front| front.is_own) && is_chatter(body) {
            return Fate::Swallow;
        }
        if self.answers_nothing(tag, body) {
            return Fate::Forward;
        }
        while self.expected.front().is_some_and(|front| matches!(front.kind, ExpectedKind::CopyEnd)) {
            self.pop_expected();
        }
        if tag == b'C' && matches!(body, b"COMMIT\0" | b"COMMIT PREPARED\0") {
            self.note_commit();
        }
        let Some(front) = self.expected.front() else {
            // With nothing asked only a FATAL can come (PostgreSQL: terminated by the administrator).
            if tag != b'E' {
                self.lose("reply without a request");
            }
            return Fate::Forward;
        };
        let is_own = front.is_own;
        if matches!(tag, b'C' | b'E') {
            self.note_run(tag, body);
        }
        let Some(front) = self.expected.front() else { return Fate::Forward };
        let fate = if is_own { Fate::Swallow } else { Fate::Forward };
        let part = |machine: &Self| if machine.watches_part() { Fate::ForwardAsPart } else { Fate::Forward };
        match (tag, &front.kind) {
            (b'1', ExpectedKind::QuietParse(_)) => {
                self.pop_expected();
                fate
            }
            (b'T' | b'n', ExpectedKind::QuietDescribe(_)) => {
                self.description_has_come(tag, body);
                fate
            }
            (b'E', ExpectedKind::QuietParse(_) | ExpectedKind::QuietDescribe(_)) => {
                self.answered_error.get_or_insert_with(|| body.into());
                self.quiet_parse_failed();
                fate
            }
            (b'Z', ExpectedKind::QuietSync) => {
                self.quiet_unit_is_done(TransactionStatus::view(body));
                fate
            }
            (b'1' | b'2' | b'3' | b'C', ExpectedKind::Answered(_))
            | (b'1' | b'2' | b'3' | b'E', ExpectedKind::Failing)
            | (b't', ExpectedKind::QuietDescribe(_) | ExpectedKind::Describe)
            | (b'I', ExpectedKind::Query(_)) => fate,
            (b'Z', ExpectedKind::Failing) => {
                self.is_contradicted |= TransactionStatus::view(body) != Some(TransactionStatus::Failed);
                self.pop_expected();
                // The client knows of the error that it was told here.
                self.answered_error = None;
                self.has_leftovers = true;
                self.close_leftovers();
                fate
            }
            (b'Z', ExpectedKind::Answered(status)) => {
                let told = *status;
                self.pop_expected();
                self.answered_is_done(told, TransactionStatus::view(body));
                fate
            }
            // The client has been told otherwise.
            (b'E', ExpectedKind::Answered(_)) => {
                self.answered_error.get_or_insert_with(|| body.into());
                self.has_leftovers = true;
                fate
            }
            (b'D' | b'T', ExpectedKind::Execute | ExpectedKind::Query(_)) => {
                self.has_replied = true;
                fate
            }
            (b'1', ExpectedKind::Parse(_))
            | (b'2', ExpectedKind::Bind)
            | (b'3', ExpectedKind::Close)
            | (b'T' | b'n', ExpectedKind::Describe)
            | (b'C' | b'I' | b's', ExpectedKind::Execute) => {
                match self.pop_expected() {
                    Some(mut entry) if !is_own && matches!(entry.kind, ExpectedKind::Execute) => {
                        self.apply_run(&mut entry.due)
                    }
                    Some(mut entry) => self.apply_due(&mut entry.due),
                    None => {}
                }
                if is_own { fate } else { part(self) }
            }
            // A FunctionCall ends with its result.
            (b'C' | b'V', ExpectedKind::Query(effect)) => {
                let effect = *effect;
                self.has_replied = true;
                if effect.may_write() {
                    // Within a multi-statement string it may not be committed yet; one barrier more does no harm.
                    self.acknowledge(effect, self.written.clone());
                }
                if let Some(mut due) = self.expected.front_mut().map(|front| front.due.take()) {
                    self.apply_run(&mut due);
                    if let Some(front) = self.expected.front_mut() {
                        front.due = due;
                    }
                }
                if is_own { fate } else { part(self) }
            }
            (b'E', _) => self.error_has_come(is_own, body),
            (b'Z', _) => self.match_ready(TransactionStatus::view(body)),
            (b'G', ExpectedKind::Query(_) | ExpectedKind::Execute) => {
                self.begin_copy_in();
                fate
            }
            (b'H', ExpectedKind::Query(_) | ExpectedKind::Execute) | (b'd' | b'c', _) => fate,
            _ => {
                self.lose("reply out of turn");
                Fate::Forward
            }
        }
    }

    /// Takes note of what upstream says unasked; false: it answers a request.
    fn answers_nothing(&mut self, tag: u8, body: &[u8]) -> bool {
        match tag {
            // It comes after the commit, often before the writer has its acknowledgement: who is told may tell others to read.
            b'A' => {
                // Nor need its commit have waited for anybody.
                self.events.push(Event::NotAwaited);
                self.events.push(Event::WriteAcknowledged(Effect::Write, Written::Anything));
            }
            b'N' => self.has_notice = true,
            b'K' | b'v' => {}
            b'S' => self.note_parameter(body),
            b'E' if is_fatal(body) => {
                self.note_end_of_session();
                // Whatever it was that upstream was doing, the client must know that the session ends.
                return self.own_expected > 0;
            }
            _ => return false,
        }
        self.note_asynchronous();
        true
    }

    fn quiet_unit_is_done(&mut self, status: Option<TransactionStatus>) {
        self.pop_expected();
        if status == Some(TransactionStatus::Failed) {
            self.tell_failed_block(self.expected.is_empty());
            self.note_failed_block();
        } else if let Some(error) = self.answered_error.take()
            && self.is_postponed
            && is_cancel(&error)
        {
            // The client has asked to have that cancelled which waits for it.
            self.fail_next(error);
        }
    }

    /// Upstream has come to the end of a statement that the client has been answered. A cancel request may have hit it there:
    /// upstream is asked again for what nobody has seen fail; a block that has failed has failed for the client, too.
    fn answered_is_done(&mut self, told: TransactionStatus, actual: Option<TransactionStatus>) {
        use TransactionStatus::{Failed, Idle, InTransaction};
        if actual == Some(told) {
            self.answered_error = None;
            return;
        }
        let is_last = self.expected.is_empty();
        self.close_leftovers();
        let is_cancelled = self.answered_error.as_ref().is_some_and(|error| is_cancel(error));
        match (told, actual) {
            (InTransaction, Some(Idle)) | (Idle, Some(Failed)) if is_cancelled && is_last => {
                self.answered_error = None;
                self.to_upstream.push(&self.answered);
                self.expect_quiet(ExpectedKind::Answered(told));
            }
            (InTransaction, Some(Failed)) if self.answered_error.is_some() => {
                self.tell_failed_block(is_last);
                if is_last {
                    self.note_failed_block();
                }
            }
            _ => self.is_contradicted = true,
        }
    }

    /// The block has failed by what the client was answered as done: it learns of it with its next message, unless something was sent
    /// behind (not `is_last`), which may have left the block.
    fn tell_failed_block(&mut self, is_last: bool) {
        if let Some(error) = self.answered_error.take_if(|_| is_last) {
            self.fail_next(error);
        }
    }

    fn note_failed_block(&mut self) {
        self.state.status = TransactionStatus::Failed;
        self.tracker.ready(TransactionStatus::Failed, true, false);
    }

    /// Upstream has committed. ReadyForQuery may not tell of it: the next block may be open by then, or the Sync not be sent yet.
    fn note_commit(&mut self) {
        let Some(front) = self.expected.front() else { return };
        let is_own = front.is_own;
        // The client was answered, and the block ended for it then.
        if is_own {
            return;
        }
        self.has_committed = true;
        let effect = worst(&[self.transaction_effect, self.effect_of_front()]);
        if effect.may_write() {
            self.acknowledge(effect, self.written.clone());
        }
        // What follows is of another transaction.
        self.transaction_effect = Effect::Neutral;
    }

    /// An execution is over, or has failed.
    fn note_run(&mut self, tag: u8, body: &[u8]) {
        let Some(front) = self.expected.front() else { return };
        let (is_own, is_execution) = (front.is_own, matches!(front.kind, ExpectedKind::Execute));
        let ends_block = tag == b'C' && matches!(body, b"COMMIT\0" | b"ROLLBACK\0" | b"PREPARE TRANSACTION\0");
        if ends_block && (is_execution || matches!(front.kind, ExpectedKind::Query(_))) {
            // What follows in this unit may be another block. A part of one may have been rolled back, too, which by a Query is told
            // apart: the block has had its first query all the same (snapmgr.c, FirstSnapshotSet).
            if body != b"ROLLBACK\0" || !matches!(front.kind, ExpectedKind::Query(Effect::Neutral)) {
                self.state.transaction.first_query = FirstQuery::None;
            }
            self.state.transaction.time = None;
        }
        // What it does outside of a block may be committed by now, long before the Sync (procedures commit by themselves, also those that
        // fail later; xact.h, XACT_FLAGS_NEEDIMMEDIATECOMMIT).
        let is_outside = self.state.status == TransactionStatus::Idle;
        if is_execution && !is_own && is_outside && self.effect_of_front() == Effect::Opaque {
            self.acknowledge(Effect::Opaque, Written::Anything);
        }
    }

    /// Of the unit that upstream is answering.
    fn effect_of_front(&self) -> Effect {
        let of_unit = self.expected.iter().find_map(|entry| match entry.kind {
            ExpectedKind::Query(effect) | ExpectedKind::Sync(effect) => Some(effect),
            _ => None,
        });
        of_unit.unwrap_or(self.unit_effect)
    }

    /// Upstream ends the session, or is gone. What it was asked to do last it may have done, and only the answer is missing: who
    /// comes back to look must see it.
    pub fn note_end_of_session(&mut self) {
        let of_units = self.expected.iter().map(|entry| match entry.kind {
            ExpectedKind::Query(effect) | ExpectedKind::Sync(effect) => effect,
            _ => Effect::Neutral,
        });
        let may_have_written = of_units.chain([self.transaction_effect, self.unit_effect]).any(Effect::may_write);
        // A block that nobody has asked to end is rolled back.
        if may_have_written && self.owes() {
            self.acknowledge(Effect::Opaque, Written::Anything);
        }
    }

    /// The session has written, and the client is about to learn that.
    fn acknowledge(&mut self, effect: Effect, written: Written) {
        if effect == Effect::Opaque || self.has_notice || !self.tracker.waits_for_standbys() {
            self.events.push(Event::NotAwaited);
        }
        self.events.push(Event::WriteAcknowledged(effect, written));
    }

    fn note_asynchronous(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.reply.has_asynchronous = true;
        }
    }

    /// A statement is acknowledged: what it changes is so.
    fn apply_due(&mut self, due: &mut Due) {
        for change in due.as_mut().and_then(|due| due.pop_front()).unwrap_or_default() {
            self.apply_change(&change);
        }
    }

    /// Likewise, when it has run.
    fn apply_run(&mut self, due: &mut Due) {
        self.tracker.has_run(due.as_ref().and_then(|due| due.front()).map_or(&[], |changes| changes));
        self.apply_due(due);
    }

    /// A change is in force; portals and cursors follow transactions and savepoints (PostgreSQL: portalmem.c).
    pub(super) fn apply_change(&mut self, change: &Change) {
        let reprinted = change.reprints();
        let printed_by = (reprinted != Reprinted::Nothing).then(|| self.tracker.printed_by()).flatten();
        self.tracker.apply(change);
        let depth = self.tracker.savepoints();
        match change {
            Change::Commit { .. } | Change::Rollback { .. } => {
                // Where the next block has begun with it, ReadyForQuery does not tell. COMMIT of a failed one is none.
                let is_committed = self.has_committed && matches!(change, Change::Commit { .. });
                self.cursors.end_of_transaction(is_committed);
                self.forget_portals();
            }
            Change::RollbackTo(_) => {
                self.portals.roll_back_to(depth);
                self.cursors.roll_back_to(depth);
                let is_gone = match &self.unnamed_portal {
                    UnnamedPortal::Local { savepoints, .. } => *savepoints >= depth,
                    UnnamedPortal::Held => !self.portals.contains(b""),
                    UnnamedPortal::Upstream | UnnamedPortal::Destroyed => false,
                };
                if is_gone {
                    self.unnamed_portal = UnnamedPortal::Upstream;
                }
            }
            Change::Release(_) => {
                self.portals.release_to(depth);
                self.cursors.release_to(depth);
                if let UnnamedPortal::Local { savepoints, .. } = &mut self.unnamed_portal {
                    *savepoints = depth.min(*savepoints);
                }
            }
            // A SET to what is in force already.
            _ if printed_by.is_some() && printed_by == self.tracker.printed_by() => {}
            _ => {
                self.portals.note_reprinted(reprinted, depth);
                self.cursors.note_reprinted(reprinted, depth);
            }
        }
    }

    /// A reported setting changed, by whatever means. In force when the unit is over.
    fn note_parameter(&mut self, body: &[u8]) {
        if let Some((name, value)) = parameter_status(body) {
            self.tracker.report(name, value);
        }
        if self.expected.is_empty() {
            self.tracker.take_reports();
        }
        if self.tracker.still_resolved().is_none() {
            self.state.settings = None;
        }
    }

    /// In answer to a request.
    fn error_has_come(&mut self, is_own: bool, body: &[u8]) -> Fate {
        // Not translated, as the text is. With a detail it is of a publication with a condition or a list of columns: not freshet's.
        if field(body, b'R') == Some(b"CheckCmdReplicaIdentity") && field(body, b'D').is_none() {
            self.events.push(Event::LacksIdentity(field(body, b'M').unwrap_or_default().into()));
        }
        let fate = self.match_error(is_own, body);
        // Of a failed block, or of the statement that was not made.
        let hides_why = self.answered_error.is_some() && matches!(field(body, b'C'), Some(b"25P02" | b"26000"));
        if fate == Fate::Forward && hides_why { Fate::Instead } else { fate }
    }

    /// An error of an extended message makes upstream ignore everything up to the next Sync; one of a Query or at a
    /// Sync is followed by ReadyForQuery.
    fn match_error(&mut self, is_own: bool, body: &[u8]) -> Fate {
        self.has_error = true;
        if let Some(watch) = &mut self.watch {
            watch.reply.has_error = true;
        }
        if let CopyIn::Running { has_sync } = self.copy_in {
            self.copy_in = CopyIn::No;
            if has_sync {
                // Whether upstream read that Sync before or after the error cannot be known.
                self.lose("Sync around a failing COPY");
                return Fate::Forward;
            }
        }
        self.tracker.has_run(&[]);
        if let Some(changes) = self.expected.front().and_then(|front| front.due.as_ref()?.front()) {
            self.tracker.failed(changes);
        }
        let front_ends_with_ready =
            self.expected.front().is_some_and(|e| matches!(e.kind, ExpectedKind::Query(_) | ExpectedKind::Sync(_)));
        if front_ends_with_ready {
            self.take_query_back(body);
            return if is_own { Fate::Swallow } else { Fate::Forward };
        }
        // An own Parse that fails does so in the place of the client's message that needs it: PostgreSQL, too, analyses a
        // statement again when it is bound. The probe's failure is the probe's.
        let is_sync = |kind: &ExpectedKind| matches!(kind, ExpectedKind::Sync(_) | ExpectedKind::QuietSync);
        let mut skipped = Vec::new();
        while self.expected.front().is_some_and(|front| !is_sync(&front.kind)) {
            skipped.extend(self.pop_expected());
        }
        let is_alone = self.expected.front().is_some_and(|front| matches!(front.kind, ExpectedKind::QuietSync));
        let is_for_nobody = is_own && (is_alone || self.probe_reply.is_some());
        let has_own = skipped.iter().any(|e| e.is_own && matches!(e.kind, ExpectedKind::Bind | ExpectedKind::Execute));
        // The first is the one that failed. Parse of the unnamed statement drops the one before even then.
        if let Some(Expected { kind: ExpectedKind::Parse(None), is_own: false, undo, .. }) = skipped.first_mut() {
            *undo = Some(Box::new(Undo::Unnamed(Unnamed::Upstream(None))));
        }
        // A Bind leaves the portal before it only where it fails before it makes one (postgres.c, exec_bind_message).
        if let Some(Expected { kind: ExpectedKind::Bind, is_own: false, undo, .. }) = skipped.first_mut()
            && !matches!(field(body, b'C'), Some(b"26000" | b"25P02" | b"08P01"))
        {
            *undo = None;
        }
        self.take_back(skipped);
        self.is_skipping = self.expected.is_empty();
        self.has_leftovers |= has_own;
        if is_for_nobody { Fate::Swallow } else { Fate::Forward }
    }

    /// Upstream skipped these messages. What was sent behind the Sync took them for done, and is looked at once for all of them:
    /// there may be thousands on either side.
    fn take_back(&mut self, skipped: Vec<Expected>) {
        let behind = self.tell_behind(&skipped);
        for entry in skipped.into_iter().rev() {
            if let ExpectedKind::Parse(Some(name)) = &entry.kind
                && !behind.made.contains(name)
                && self.forget_statement(name).is_some()
            {
                // One more of that name, sent behind, was taken for a second.
                self.has_unknown_statements |= behind.has_nameless;
            }
            match entry.undo.map(|undo| *undo) {
                Some(Undo::Unnamed(unnamed)) => self.take_unnamed_back(unnamed, &behind),
                Some(Undo::Query(unnamed, portal)) => {
                    self.take_unnamed_back(unnamed, &behind);
                    if let Some(before) = portal {
                        self.take_portal_back(before, behind.portal);
                    }
                }
                // One more of that name, sent behind, will be refused; what else was may drop it.
                Some(Undo::Named(name, _)) if self.statements.contains_key(&name) || behind.has_more => {
                    self.has_unknown_statements = true;
                }
                Some(Undo::Named(name, named)) => self.remember_statement(name, named),
                Some(Undo::Cursor(moved)) => self.cursors.put_back(moved),
                Some(Undo::Portal(before)) => self.take_portal_back(before, behind.portal),
                None => {}
            }
        }
    }

    fn take_unnamed_back(&mut self, unnamed: Unnamed, behind: &Behind) {
        match behind.unnamed.and_then(|at| self.expected.get_mut(at)?.undo.as_mut()?.unnamed()) {
            Some(before) => *before = unnamed,
            None => self.unnamed = unnamed,
        }
    }

    /// `behind`: the first that took its place, among what was sent since.
    fn take_portal_back(&mut self, before: Box<PortalBefore>, behind: Option<usize>) {
        if before.transaction != self.transactions {
            return;
        }
        if let Some(replaced) = behind.and_then(|at| self.expected.get_mut(at)?.undo.as_mut()?.portal()) {
            *replaced = before;
            return;
        }
        let PortalBefore { place, portal, .. } = *before;
        self.unnamed_portal = place;
        if let Some(portal) = portal {
            self.portals.put_back(b"", portal);
        }
    }

    /// A Query that a failed block refuses, or whose first statement cannot be read or analysed, leaves the unnamed portal
    /// (postgres.c, exec_simple_query; privileges are asked for later, by its own).
    fn take_query_back(&mut self, body: &[u8]) {
        let code = field(body, b'C').unwrap_or_default();
        if self.has_replied || code != b"25P02" && (!code.starts_with(b"42") || code == b"42501") {
            return;
        }
        let front = self.expected.front_mut().and_then(|front| front.undo.as_deref_mut());
        if let Some(Undo::Query(_, portal)) = front
            && let Some(before) = portal.take()
        {
            let is_behind = |later: &mut Expected| later.undo.as_mut().is_some_and(|undo| undo.portal().is_some());
            let behind = self.expected.iter_mut().position(is_behind);
            self.take_portal_back(before, behind);
        }
    }

    /// Tells what was sent behind the Sync that these messages were not done: what it does is uncertain where one of them is undone,
    /// and a Close of a statement that was not made, should it be skipped, does not bring that back.
    fn tell_behind(&mut self, skipped: &[Expected]) -> Behind {
        let has_undo = skipped
            .iter()
            .any(|entry| matches!(entry.undo.as_deref(), Some(Undo::Unnamed(_) | Undo::Query(..) | Undo::Named(..))));
        let names = skipped.iter().filter_map(|entry| match &entry.kind {
            ExpectedKind::Parse(Some(name)) if !name.is_empty() => Some(&**name),
            _ => None,
        });
        let not_made: HashSet<&[u8]> = names.collect();
        let mut untold = not_made.clone();
        let mut behind = Behind::default();
        for (at, later) in self.expected.iter_mut().enumerate() {
            behind.has_more |= !matches!(later.kind, ExpectedKind::Sync(_) | ExpectedKind::QuietSync);
            match &mut later.kind {
                ExpectedKind::Parse(Some(name)) if name.is_empty() => behind.has_nameless = true,
                ExpectedKind::Parse(Some(name)) if not_made.contains(&**name) => {
                    untold.remove(&**name);
                    behind.made.insert(name.clone());
                }
                ExpectedKind::Sync(effect) | ExpectedKind::Query(effect) if has_undo => *effect = Effect::Opaque,
                ExpectedKind::Execute if has_undo => {
                    later.due = Some(Box::new([Box::new([Change::Unread]) as Box<_>].into()));
                }
                _ => {}
            }
            if let Some(undo) = later.undo.as_deref_mut() {
                behind.unnamed = behind.unnamed.or_else(|| undo.unnamed().map(|_| at));
                behind.portal = behind.portal.or_else(|| undo.portal().map(|_| at));
            }
            // The first that is about the name.
            if matches!(later.undo.as_deref(), Some(Undo::Named(closed, _)) if untold.remove(&**closed)) {
                later.undo = None;
            }
        }
        behind
    }

    /// ReadyForQuery: everything up to the next Query or Sync is answered.
    fn match_ready(&mut self, status: Option<TransactionStatus>) -> Fate {
        let Some(status) = status else {
            self.lose("unknown transaction status");
            return Fate::Forward;
        };
        loop {
            let Some(entry) = self.pop_expected() else {
                self.lose("ReadyForQuery without a request");
                return Fate::Forward;
            };
            let (ExpectedKind::Query(effect) | ExpectedKind::Sync(effect)) = entry.kind else {
                continue;
            };
            self.copy_in = CopyIn::No;
            self.has_replied = false;
            if !entry.is_own && status == TransactionStatus::Failed && !self.has_error {
                self.tell_failed_block(self.expected.is_empty());
            }
            self.state.status = status;
            if entry.is_own {
                if status == TransactionStatus::Failed {
                    self.tracker.ready(status, true, false);
                }
                self.close_leftovers();
                return Fate::SwallowAsLast;
            }
            self.answered_error = None;
            self.close_leftovers();
            self.note_end_of_unit(effect, status);
            return Fate::ForwardAsLast;
        }
    }

    fn note_end_of_unit(&mut self, effect: Effect, status: TransactionStatus) {
        self.transaction_effect = worst(&[self.transaction_effect, effect]);
        let is_committed = std::mem::take(&mut self.has_committed);
        if status == TransactionStatus::Idle {
            let committed = std::mem::replace(&mut self.transaction_effect, Effect::Neutral);
            if committed.may_write() {
                self.acknowledge(committed, self.written.clone());
            }
            // What was sent behind may write, too.
            if self.expected.is_empty() {
                self.written = Written::NOTHING;
            }
            self.end_of_transaction(is_committed);
            // What was sent behind is of the next transaction, or begins it: only upstream knows how that ends.
            self.state.transaction.has_relayed = self.owes();
            // What was sent behind may have bound some since, which are yet to be executed.
            if !self.owes() {
                self.portal_changes.clear();
            }
        }
        self.has_notice = false;
        let has_error = std::mem::take(&mut self.has_error);
        self.tracker.ready(status, has_error, effect.may_write());
        self.take_tracked();
        // It is the last that was sent, or what was sent behind makes no statement.
        if self.drops_statements && (has_error || !self.owes()) {
            self.drops_statements = false;
            if !has_error {
                self.has_unknown_statements = false;
                self.virtual_statements.clear();
                self.virtual_bytes = 0;
            }
        }
        self.has_unknown_statements |= has_error && self.may_keep_statement;
        self.may_keep_statement &= self.owes();
        self.events.push(Event::Relayed(Relayed { effect, has_error, status }));
    }

    /// The state as it is now that nothing is outstanding.
    pub(super) fn take_tracked(&mut self) {
        let transaction = self.tracker.transaction();
        self.state.transaction.isolation = transaction.isolation;
        self.state.transaction.is_tainted = transaction.is_tainted;
        self.state.listens = self.tracker.listens();
        self.state.settings = self.tracker.still_resolved().cloned();
        self.state.take_own(self.tracker.own());
    }

    /// The whole reply is forwarded: the observer may have it.
    fn unit_is_answered(&mut self) {
        if let Some(Watch { observer, mut reply, .. }) = self.watch.take() {
            reply.status = self.state.status;
            self.events.push(Event::Observed(Observed { observer, reply }));
        }
    }

    /// The portal that is watched lives on, and may be executed in the next unit.
    fn awaits_execution(&self) -> bool {
        self.state.status == TransactionStatus::InTransaction
            && self
                .watch
                .as_ref()
                .is_some_and(|watch| watch.portal.is_some() && watch.skip == 0 && !watch.reply.has_error)
    }

    fn watches_part(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.end != WatchEnd::Ready)
    }

    /// The reply to one execution or description is forwarded, the last frame perhaps only in part.
    fn part_is_answered(&mut self, tag: u8) {
        let Some(watch) = &mut self.watch else { return };
        let is_execution = matches!(tag, b'C' | b'I' | b's');
        if watch.skip > 0 {
            watch.skip -= usize::from(is_execution);
            return;
        }
        let is_end = if watch.end == WatchEnd::Description { matches!(tag, b'T' | b'n') } else { is_execution };
        if is_end {
            watch.reply.is_suspended = tag == b's';
            watch.reply.is_truncated |= self.upstream_passing > 0;
            self.unit_is_answered();
        }
    }

    fn probe_is_answered(&mut self) {
        if let Some((question, reply)) = self.probe_reply.take() {
            self.has_error = false;
            // The block may have failed behind an answer, and the probe for that.
            let before = self.answered_error.take();
            let found = || Frames::new(&reply).find(|frame| frame.tag == b'E').map(|frame| frame.body.into());
            let error = || before.or_else(found);
            self.events.push(match question {
                Question::Settings => Event::Probed(read_probe(&reply).map(Box::new).ok_or_else(error)),
                Question::Time => Event::TimeTold(read_time(&reply).ok_or_else(error)),
                Question::Custom(names) => Event::CustomTold(read_custom(&reply, &names).ok_or_else(error)),
            });
        }
    }

    /// CopyInResponse: Syncs that were sent ahead are ignored upstream, up to CopyDone or CopyFail.
    fn begin_copy_in(&mut self) {
        self.copy_in = CopyIn::Running { has_sync: false };
        while let Some(next) = self.expected.get(1) {
            match next.kind {
                ExpectedKind::Sync(effect) => {
                    self.unit_effect = worst(&[self.unit_effect, effect]);
                    self.expected.remove(1);
                }
                ExpectedKind::CopyEnd => {
                    self.expected.remove(1);
                    self.copy_ends -= 1;
                    self.copy_in = CopyIn::No;
                    return;
                }
                ExpectedKind::Parse(_)
                | ExpectedKind::Bind
                | ExpectedKind::Close
                | ExpectedKind::Describe
                | ExpectedKind::Execute
                | ExpectedKind::Query(_)
                | ExpectedKind::QuietParse(_)
                | ExpectedKind::QuietDescribe(_)
                | ExpectedKind::QuietSync
                | ExpectedKind::Answered(_)
                | ExpectedKind::Failing => {
                    self.lose("messages sent ahead into a COPY");
                    return;
                }
            }
        }
        // The client's next Sync is the one that counts.
        self.is_unsynced = self.expected.front().is_some_and(|front| matches!(front.kind, ExpectedKind::Execute));
    }
}

/// Whether an ErrorResponse says that a statement was cancelled, by request or for a time limit.
fn is_cancel(body: &[u8]) -> bool {
    field(body, b'C') == Some(b"57014")
}
