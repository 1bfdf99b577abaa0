//! A client, a session's [`Machine`] and a [`Backend`] behind it. What a session decides with an answerer is decided here by
//! chance, under the conditions of `session::Session`: whatever may be answered locally is, or is relayed.

use freshet::session::answer::{Form, ObservedReply, Observer, Reply, Unit};
use freshet::session::control::{self, Control, Decision};
use freshet::session::effect::{Effect, effects, worst};
use freshet::session::machine::group::{Answer, Group, Item, is_several};
use freshet::session::machine::{Event, Machine, MachineLimits, Step, WatchEnd};
use freshet::session::settings::{Interner, Question};
use freshet::session::state::{Login, SessionState};
use freshet::wire::extended::write_parameter_description;
use freshet::wire::frame::{Frames, write_frame};
use freshet::wire::query::{TransactionStatus, write_command_complete};
use freshet_config::FreshnessMode;

use crate::model::Backend;
use crate::model::statement::{Rows, Statement, formats, integer, split};

const LIMITS: MachineLimits = MachineLimits {
    statement_bytes_max: 4096,
    group_bytes_max: 4096,
    prepared_statements_max: 100,
    answers_locally: true,
    tells_keys: true,
    schema: "freshet",
};

/// Marks the asynchronous messages that come in between.
const MARK: &[u8] = b"asynchronous\0";

/// See the head of the module.
pub struct Play {
    pub machine: Machine,
    pub backend: Backend,
    interner: Interner,
    chance: Chance,
    /// On their way.
    from_client: Vec<u8>,
    to_backend: Vec<u8>,
    from_backend: Vec<u8>,
    client_got: Vec<u8>,
    /// Units answered here.
    pub answered: usize,
    /// Cancel requests and signs of life come in between.
    pub is_disturbed: bool,
    /// Units that a request ended here.
    pub cancelled: usize,
    /// Of the backend's, those that the session was told of.
    writes_known: usize,
    is_write_announced: bool,
    has_probed: bool,
}

/// A small generator, so that each step's chances depend on its own byte only.
#[derive(Clone, Copy, Debug, Default)]
struct Chance(u64);

impl Chance {
    /// A number below `bound`; without chance always 0.
    fn below(&mut self, bound: usize) -> usize {
        if self.0 == 0 {
            return 0;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % bound
    }
}

impl Default for Play {
    fn default() -> Self {
        Self {
            machine: Machine::new(SessionState::new(Login::default(), FreshnessMode::Exact), LIMITS, None),
            backend: Backend::default(),
            interner: Interner::default(),
            chance: Chance::default(),
            from_client: Vec::new(),
            to_backend: Vec::new(),
            from_backend: Vec::new(),
            client_got: Vec::new(),
            answered: 0,
            is_disturbed: false,
            cancelled: 0,
            writes_known: 0,
            is_write_announced: false,
            has_probed: false,
        }
    }
}

impl Play {
    /// The client sends; what else happens meanwhile is up to `chance`.
    pub fn send(&mut self, bytes: &[u8], chance: u8) {
        self.chance = Chance(u64::from(chance).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.from_client.extend_from_slice(bytes);
        if self.chance.below(3) == 0 {
            return self.settle();
        }
        for _ in 0..self.chance.below(6) {
            match self.chance.below(5) {
                0 | 1 => self.client_sends(),
                2 => self.backend_works(),
                3 => self.backend_speaks(),
                _ => drop(self.advance()),
            }
            if self.is_disturbed && self.chance.below(4) == 1 {
                self.machine.keep_alive();
            }
        }
    }

    /// Until nothing moves any more.
    pub fn settle(&mut self) {
        loop {
            let before = self.moved();
            self.client_sends();
            if self.from_client.is_empty() && self.advance() == Step::Held {
                self.machine.release();
            }
            self.backend_works();
            self.backend_speaks();
            self.advance();
            if self.moved() == before && self.from_client.is_empty() && self.is_quiet() {
                return;
            }
        }
    }

    /// What the client got, without the asynchronous messages.
    pub fn client_got(&self) -> Vec<u8> {
        let frames = Frames::new(&self.client_got);
        assert!(rest(&self.client_got).is_empty(), "half a frame for the client");
        frames.filter(|frame| !frame.body.ends_with(MARK)).flat_map(|frame| frame.bytes.to_vec()).collect()
    }

    fn is_quiet(&self) -> bool {
        self.to_backend.is_empty() && self.from_backend.is_empty() && self.machine.to_upstream.is_empty()
    }

    fn moved(&self) -> [usize; 5] {
        let lengths = [&self.from_client, &self.to_backend, &self.from_backend, &self.client_got].map(Vec::len);
        [lengths[0], lengths[1], lengths[2], lengths[3], self.machine.held_bytes()]
    }

    fn client_sends(&mut self) {
        let count = portion(&mut self.chance, self.from_client.len());
        let bytes: Vec<u8> = self.from_client.drain(..count).collect();
        self.machine.receive_client(&bytes);
        self.advance();
    }

    fn backend_works(&mut self) {
        self.to_backend.extend(self.machine.to_upstream.take());
        let whole: Vec<u8> = {
            let mut frames = Frames::new(&self.to_backend);
            let frames: Vec<_> = frames.by_ref().collect();
            let count = frames.len() - if frames.is_empty() { 0 } else { self.chance.below(frames.len()) };
            frames[..count].iter().flat_map(|frame| frame.bytes.to_vec()).collect()
        };
        for frame in Frames::new(&whole) {
            let before = self.from_backend.len();
            self.backend.receive(frame, &mut self.from_backend);
            if before < self.from_backend.len() || self.chance.below(8) == 1 {
                self.interrupt();
            }
        }
        self.to_backend.drain(..whole.len());
    }

    /// An asynchronous message, now and then.
    fn interrupt(&mut self) {
        let body: &[u8] = match self.chance.below(40) {
            1 => b"N\0",
            2 => b"A",
            3 => b"Sapplication_name\0",
            4 => b"STimeZone\0",
            _ => return,
        };
        write_frame(&mut self.from_backend, body[0], |out| {
            out.extend_from_slice(&body[1..]);
            out.extend_from_slice(MARK);
        });
    }

    fn backend_speaks(&mut self) {
        let count = portion(&mut self.chance, self.from_backend.len());
        let bytes: Vec<u8> = self.from_backend.drain(..count).collect();
        assert!(self.machine.receive_upstream(&bytes), "frames from upstream are whole");
        self.note_events();
        self.advance();
    }

    fn advance(&mut self) -> Step {
        loop {
            self.note_events();
            let step = self.machine.advance();
            self.client_got.extend(self.machine.to_client.take());
            if step != Step::Decide {
                return step;
            }
            self.decide();
        }
    }

    fn note_events(&mut self) {
        for event in self.machine.take_events() {
            match event {
                Event::Probed(probed) => {
                    // A block may have failed meanwhile.
                    if let Ok(probed) = probed {
                        self.machine.tracker.probed(&probed, &self.interner, 0);
                        self.machine.state.settings = None;
                    }
                }
                Event::TimeTold(told) => {
                    assert!(told.is_ok() || self.machine.state.status == TransactionStatus::Failed);
                }
                Event::CustomTold(_) => unreachable!("nobody asks for settings of an application's own"),
                Event::BlockFailed(_) => unreachable!("nobody cancels"),
                Event::WriteAcknowledged(effect, _) => self.is_write_announced |= effect.may_write(),
                Event::NotAwaited | Event::LacksIdentity(_) => {}
                Event::Relayed(_) => self.has_probed = false,
                Event::Observed(observed) => observed.observer.observe(observed.reply),
            }
        }
    }

    /// Everything is at rest, and both sides agree.
    pub fn check(&mut self, direct: &Backend) -> Result<(), String> {
        self.note_events();
        let written = self.backend.writes_committed() > self.writes_known;
        self.writes_known = self.backend.writes_committed();
        if written && !std::mem::take(&mut self.is_write_announced) {
            return Err("a write was not announced".to_string());
        }
        self.is_write_announced = false;
        if let Some(why) = self.machine.lost() {
            return Err(format!("lost: {why}"));
        }
        if !self.machine.is_settled() || self.machine.held_bytes() > 0 {
            return Err(format!("not at rest: {} bytes held", self.machine.held_bytes()));
        }
        if self.machine.state.status != direct.status() || self.backend.status() != direct.status() {
            let seen = (self.machine.state.status, self.backend.status(), direct.status());
            return Err(format!("transaction status: machine, upstream, direct: {seen:?}"));
        }
        // Of a failed block's portals nothing can be told: none can be run. The unnamed one is closed when it is next used.
        let has_failed = direct.status() == TransactionStatus::Failed;
        let is_alien = |name: &&[u8]| !name.is_empty() && !direct.portal_names().contains(name);
        if let Some(name) = self.backend.portal_names().into_iter().find(is_alien).filter(|_| !has_failed) {
            return Err(format!("portal {:?} exists upstream only", String::from_utf8_lossy(name)));
        }
        let (here, there) = (self.backend.statement_names(), direct.statement_names());
        if here != there {
            return Err(format!("statements upstream {here:?}, direct {there:?}"));
        }
        Ok(())
    }

    // What `session::Session` does with a complete unit.

    fn decide(&mut self) {
        if self.machine.state.settings.is_none() {
            self.machine.state.settings = self.machine.tracker.settings(&self.interner, 0);
        }
        if self.is_disturbed && self.chance.below(6) == 1 && self.cancel() {
            return;
        }
        let Ok(unit) = self.machine.unit() else {
            return self.decide_group();
        };
        let state = &self.machine.state;
        let wants = self.chance.below(4) < 3;
        if wants
            && may_answer(state)
            && let Some(reply) = answer(&unit)
        {
            // As if it needed the block's now().
            let is_in_block = state.status == TransactionStatus::InTransaction;
            if is_in_block && self.may_probe() && self.chance.below(4) == 1 {
                self.has_probed = true;
                return self.machine.ask(Question::Time);
            }
            self.answered += 1;
            return self.machine.answer_locally(&reply);
        }
        let several = unit.form == Form::Simple && is_several(unit.sql);
        if several || unit.form == Form::Prepare || control::read(unit.sql).is_some() {
            return self.decide_group();
        }
        let effect = unit.prepared.map_or_else(|| worst(&effects(unit.sql)), |prepared| prepared.effect);
        if obstacle(effect, &self.machine.state, self.may_probe()) {
            return self.relay();
        }
        if self.machine.state.settings.is_none() {
            return self.probe();
        }
        match answer(&unit).filter(|_| wants) {
            Some(reply) => {
                self.answered += 1;
                self.machine.answer_locally(&reply);
            }
            None => self.relay(),
        }
    }

    /// Ends the unit at hand as a session does that was computing it, or waiting for the probe.
    fn cancel(&mut self) -> bool {
        if self.machine.state.status == TransactionStatus::Failed {
            return false;
        }
        let bytes = self.machine.unit_bytes().to_vec();
        let is_computing = self.machine.unit().is_ok() || self.machine.group(&bytes).is_ok();
        if is_computing && may_answer(&self.machine.state) && self.chance.below(2) == 1 {
            self.machine.cancel_locally();
        } else {
            self.machine.cancel_unread();
        }
        self.cancelled += 1;
        true
    }

    /// Once for each decision; in a block only if no time limit would cut it off.
    fn may_probe(&self) -> bool {
        !self.has_probed && (!self.machine.state.is_in_transaction() || self.machine.tracker.may_probe_inside())
    }

    fn probe(&mut self) {
        self.has_probed = true;
        self.machine.probe();
    }

    fn relay(&mut self) {
        let observer = self.observer();
        self.machine.relay_unit(observer);
    }

    /// Sometimes somebody watches.
    fn observer(&mut self) -> Option<Box<dyn Observer>> {
        (self.chance.below(3) == 1).then(|| Box::new(Watcher(10 + self.chance.below(500))) as Box<dyn Observer>)
    }

    fn decide_group(&mut self) {
        let bytes = self.machine.unit_bytes().to_vec();
        let Ok(group) = self.machine.group(&bytes) else {
            return self.relay();
        };
        let mut state = self.machine.state.clone();
        let wants = self.chance.below(4) < 3;
        let may_probe = self.may_probe();
        if common_obstacle(&group, &state, may_probe) {
            return self.relay();
        }
        let mut answers = Vec::new();
        for (at, item) in group.items.iter().enumerate() {
            let knows_what = |sql: &[u8]| self.machine.knows_what_is_named(sql);
            match decide_item(item, &group, &mut state, wants, may_probe, knows_what) {
                Decided::Answer(answer) => answers.push(answer),
                Decided::Probe => return self.probe(),
                Decided::Relay => {
                    let is_description = matches!(item, Item::DescribeStatement { .. });
                    let end = if is_description { WatchEnd::Description } else { WatchEnd::Execution };
                    let observer = self.observer();
                    return self.machine.relay_group(observer, end, group.executions_before(at));
                }
            }
        }
        self.answered += 1;
        self.machine.answer_group(group, answers);
    }
}

/// Looks at what it is given.
struct Watcher(usize);

impl Observer for Watcher {
    fn bytes_max(&self) -> usize {
        self.0
    }

    fn observe(self: Box<Self>, reply: ObservedReply) {
        assert!(reply.is_truncated || rest(&reply.bytes).is_empty(), "half a frame for the observer");
        assert!(reply.bytes.len() <= self.0, "more than was asked for");
    }
}

enum Decided {
    Answer(Answer),
    Relay,
    Probe,
}

fn decide_item(
    item: &Item<'_>,
    group: &Group<'_>,
    state: &mut SessionState,
    wants: bool,
    may_probe: bool,
    knows_what: impl Fn(&[u8]) -> bool,
) -> Decided {
    let Some(unit) = item.question() else { return Decided::Answer(Answer::None) };
    if let Some(control) = control::read(unit.sql) {
        if unit.form == Form::Prepare {
            return Decided::Answer(Answer::None);
        }
        if !wants || control == Control::Deallocate && !group.is_of_one_statement() {
            return Decided::Relay;
        }
        return match control::decide(control, state, || knows_what(unit.sql)) {
            Decision::Answer => Decided::Answer(Answer::Control(control)),
            Decision::Ask => Decided::Probe,
            Decision::Relay => Decided::Relay,
        };
    }
    let effect = unit.prepared.map_or_else(|| worst(&effects(unit.sql)), |prepared| prepared.effect);
    if obstacle(effect, state, may_probe) {
        return Decided::Relay;
    }
    if state.settings.is_none() {
        return Decided::Probe;
    }
    match answer(&unit).filter(|_| wants) {
        Some(reply) => Decided::Answer(Answer::Reply(reply)),
        None => Decided::Relay,
    }
}

fn common_obstacle(group: &Group<'_>, state: &SessionState, may_probe: bool) -> bool {
    if state.status == TransactionStatus::Failed {
        return true;
    }
    group.items.iter().filter_map(Item::question).any(|unit| {
        let effect = unit.prepared.map_or_else(|| worst(&effects(unit.sql)), |prepared| prepared.effect);
        control::read(unit.sql).is_none() && effect != Effect::Neutral && obstacle(effect, state, may_probe)
    })
}

fn may_answer(state: &SessionState) -> bool {
    state.settings.is_some()
        && match state.status {
            TransactionStatus::Idle => true,
            TransactionStatus::InTransaction => state.transaction.allows_answers(),
            TransactionStatus::Failed => false,
        }
}

fn obstacle(effect: Effect, state: &SessionState, may_probe: bool) -> bool {
    let is_certain = state.settings.is_some() || state.is_in_transaction();
    match effect {
        Effect::Begin(_) | Effect::Settings => is_certain,
        Effect::Neutral if state.settings.is_none() && !may_probe => true,
        Effect::Neutral => match state.status {
            TransactionStatus::Failed => true,
            TransactionStatus::InTransaction => !state.transaction.allows_answers(),
            TransactionStatus::Idle => false,
        },
        _ => true,
    }
}

/// What an engine would answer: rows that cannot fail, as the backend would give them.
fn answer(unit: &Unit<'_>) -> Option<Reply> {
    let pieces = split(unit.sql);
    let [text] = pieces.as_slice() else { return None };
    let Statement::Rows(rows) = Statement::read(text) else { return None };
    let mut parameters = Vec::new();
    write_parameter_description(&mut parameters, &vec![23; rows.parameters]);
    let statement_columns = rows.description(&[]).into();
    let reply = Reply { parameters: parameters.into(), statement_columns, ..Reply::default() };
    if rows.fails || (unit.form == Form::Simple && rows.parameters > 0) {
        return None;
    }
    let Some(bind) = &unit.bind else {
        let all = if unit.form == Form::Simple { all_rows(&rows, 0, &[]) } else { Vec::new() };
        return Some(Reply { columns: rows.description(&[]).into(), rows: vec![all.into()], ..reply });
    };
    if bind.parameter_count != rows.parameters {
        return None;
    }
    let formats = formats(bind.result_formats, rows.columns.len())?;
    let parameter = match bind.values().next() {
        Some(value) => integer(value, bind.parameter_formats).ok()?,
        None => 0,
    };
    let columns = if unit.describes_portal { rows.description(&formats).into() } else { bytes::Bytes::new() };
    Some(Reply { columns, rows: vec![all_rows(&rows, parameter, &formats).into()], ..reply })
}

fn all_rows(rows: &Rows, parameter: i32, formats: &[i16]) -> Vec<u8> {
    let mut out = Vec::new();
    for row in 0..rows.values.len() {
        rows.write_row(row, parameter, formats, &mut out);
    }
    write_command_complete(&mut out, &format!("SELECT {}", rows.values.len()));
    out
}

/// All of it, or less.
fn portion(chance: &mut Chance, length: usize) -> usize {
    if length > 0 && chance.below(2) == 1 { 1 + chance.below(length) } else { length }
}

/// What is behind the whole frames.
fn rest(bytes: &[u8]) -> &[u8] {
    let mut frames = Frames::new(bytes);
    frames.by_ref().for_each(drop);
    frames.rest()
}
