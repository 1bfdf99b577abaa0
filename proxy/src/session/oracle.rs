//! Upstream's reply as the oracle: compares description and rows of one relayed execution with the engine's.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use freshet_config::FreshnessMode;
use freshet_engine::Pace;
use freshet_engine::binder::{OpenColumns, OutputColumn, Summed};
use freshet_engine::catalog::RelationId;
use freshet_engine::catalog::functions::{EvalContext, EvalError};
use freshet_engine::catalog::order::Missing;
use freshet_engine::executor::point::PointRow;
use freshet_engine::planner::Plan;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::{Course, Pieces};
use freshet_engine::snapshot::Snapshot;
use freshet_engine::statement::fingerprint;
use freshet_engine::types::encode::Format;
use freshet_engine::types::{FormatSettings, PgType, Value};
use freshet_engine::{Choice, Prepared};
use tokio::time::timeout;

use crate::audit::compare::{ComparedColumn, Difference, Freedom, Nearness, Row, compare, compare_open};
use crate::audit::{Agreement, Encodings};
use crate::freshness::Served;
use crate::freshness::exposure::BarrierNumber;
use crate::session::answer::{ObservedReply, Observer, PreparedStatement};
use crate::session::local::capture::Room;
use crate::session::local::{Local, local_error};
use crate::session::meant::Names;
use crate::session::reply::{Run, fields, rows_of_point};
use crate::session::settings::SessionSettings;
use crate::wire::extended::parameter_description;
use crate::wire::frame::Frames;
use crate::wire::query::{Field, data_row, row_description};

/// A comparison that takes longer than this, and than so many times upstream's time, is given up.
const JUDGING_MIN: Duration = Duration::from_secs(60);
const JUDGING_TIMES: u32 = 20;
/// How often one comparison asks for the order of texts.
const ORDER_QUESTIONS_MAX: usize = 4;
/// A larger reply is not kept for comparison; its shape stays unverified, hence relayed.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// Up to this every session may keep one, however many do.
const SMALL_BYTES_MAX: usize = 128 << 10;

const TOO_LONG: &str = "its comparison took too long";
const TOO_LARGE: &str = "its reply is too large to be compared";

/// Observes one relayed unit.
pub(super) struct Oracle {
    local: Arc<Local>,
    prepared: Arc<Prepared>,
    settings: Arc<SessionSettings>,
    /// None: the unit only prepares, there are no rows to compare.
    execution: Option<Execution>,
    /// For a large reply.
    /// How much of the reply is kept, and room for it beyond what every reply has.
    bytes_max: usize,
    room: Vec<Room>,
    /// The reply is longer than any that is compared.
    is_too_large: bool,
}

struct Execution {
    parameters: Vec<Value>,
    formats: Vec<Format>,
    /// From the barrier before.
    before: Served,
    /// now(), where it is known.
    transaction_time: Option<i64>,
    /// How often upstream's configuration had been seen to change by then.
    configuration: u64,
    /// Only the first rows were asked for.
    is_suspended: bool,
    started: Instant,
    /// Upstream's time for it, with what it took to pass its reply on.
    took: Duration,
}

impl Oracle {
    /// For an execution.
    pub(super) fn new(
        local: &Arc<Local>,
        prepared: &Arc<Prepared>,
        settings: &Arc<SessionSettings>,
        parameters: Vec<Value>,
        formats: Vec<Format>,
        before: Served,
        transaction_time: Option<i64>,
    ) -> Self {
        let configuration = local.freshness.configuration_changes();
        let execution = Some(Execution {
            parameters,
            formats,
            before,
            transaction_time,
            configuration,
            is_suspended: false,
            started: Instant::now(),
            took: Duration::MAX,
        });
        Self { execution, ..Self::of_description(local, prepared, settings) }
    }

    /// For a unit that prepares without executing.
    pub(super) fn of_description(
        local: &Arc<Local>,
        prepared: &Arc<Prepared>,
        settings: &Arc<SessionSettings>,
    ) -> Self {
        Self {
            local: Arc::clone(local),
            prepared: Arc::clone(prepared),
            settings: Arc::clone(settings),
            execution: None,
            bytes_max: SMALL_BYTES_MAX,
            room: Vec::new(),
            is_too_large: false,
        }
    }
}

impl Observer for Oracle {
    fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Room is taken as the reply grows: a statement that waits upstream, or whose client does not read, would have the room of all others.
    fn bytes_max_for(&mut self, wanted: usize) -> usize {
        self.is_too_large |= wanted > REPLY_BYTES_MAX;
        let larger = wanted.next_power_of_two().min(REPLY_BYTES_MAX);
        if self.execution.is_some()
            && !self.is_too_large
            && let Some(room) = self.local.captures.room_to_compare(larger - self.bytes_max)
        {
            self.room.push(room);
            self.bytes_max = larger;
        }
        self.bytes_max
    }

    fn observe(self: Box<Self>, reply: ObservedReply) {
        if reply.is_truncated && self.is_too_large {
            // To try each time would cost two barriers and the copy for nothing.
            return self.local.audit.refused(&self.prepared.identity, UpstreamReason::OverBudget(TOO_LARGE));
        }
        if reply.has_error || reply.is_truncated {
            self.local.audit.inconclusive();
            return;
        }
        let is_described = match compare_descriptions(&self.prepared.plan, &reply.bytes) {
            Ok(is_described) => is_described,
            Err(difference) => {
                tokio::spawn(note_mismatch(self.local, self.prepared, difference));
                return;
            }
        };
        match self.execution {
            // asyncpg binds a cursor's portal in a unit of its own, and executes it in the next.
            Some(_) if !is_executed(&reply) => self.local.audit.inconclusive(),
            None if is_described => self.local.audit.described(&self.prepared.identity),
            None => {}
            Some(mut execution) => {
                execution.is_suspended = reply.is_suspended;
                execution.took = execution.started.elapsed();
                let Self { local, prepared, settings, room, .. } = *self;
                tokio::spawn(compare_rows(local, prepared, settings, execution, reply.bytes, is_described, room));
            }
        }
    }
}

fn is_executed(reply: &ObservedReply) -> bool {
    reply.is_suspended || Frames::new(&reply.bytes).any(|frame| frame.tag == b'C')
}

/// Upstream described the statement otherwise than it is planned here. If the catalog that it was planned by is still in force, it
/// will do so again; else there is another plan next time.
async fn note_mismatch(local: Arc<Local>, prepared: Arc<Prepared>, difference: String) {
    let relations = prepared.plan.relations();
    match local.freshness.acquire(FreshnessMode::Exact, &relations, BarrierNumber::default()).await {
        Ok(served) if served.snapshot.catalog.version == prepared.catalog_version => {
            tracing::warn!(statement = %fingerprint::shown(&prepared.shape.text), %difference, "upstream describes this statement differently; it is relayed from now on");
            local.audit.mismatched(&prepared.identity);
        }
        Ok(_) | Err(_) => local.audit.inconclusive(),
    }
}

/// Notes that upstream still executes a prepared statement under a newer catalog or another search path: its description has not
/// changed, or upstream would have raised an error (PostgreSQL: RevalidateCachedQuery).
pub(super) struct StillDescribed {
    statement: Arc<PreparedStatement>,
    names: Names,
    catalog_version: u64,
    path: u64,
}

impl StillDescribed {
    /// `catalog_version`: known before the execution, so not newer than what it ran under. `path`: the session's. `names`: what
    /// they mean then, if it still is described.
    pub(super) fn new(statement: &Arc<PreparedStatement>, names: Names, catalog_version: u64, path: u64) -> Self {
        Self { statement: Arc::clone(statement), names, catalog_version, path }
    }
}

impl Observer for StillDescribed {
    fn bytes_max(&self) -> usize {
        0
    }

    fn observe(self: Box<Self>, reply: ObservedReply) {
        if !reply.has_error {
            let Self { statement, names, catalog_version, path } = *self;
            statement.meant.set(names);
            statement.catalog.store(catalog_version, Relaxed);
            statement.path.store(path, Relaxed);
        }
    }
}

/// Compares upstream's descriptions with the binder's: whether the reply has one of the result, or, for people, what differs.
fn compare_descriptions(plan: &Plan, reply: &[u8]) -> Result<bool, String> {
    let mut is_described = false;
    for frame in Frames::new(reply) {
        match frame.tag {
            b't' => {
                let ours: Vec<u32> = plan.parameters.iter().map(|pg_type| pg_type.oid()).collect();
                let theirs = parameter_description(frame.body).unwrap_or_default();
                if theirs != ours {
                    return Err(format!("types of parameters: {theirs:?} upstream, {ours:?} here"));
                }
            }
            b'T' => {
                let ours = fields(plan, &vec![Format::Text; plan.output.len()]);
                let mut theirs = row_description(frame.body).unwrap_or_default();
                // Formats are what the client asked for, not what the statement is.
                theirs.iter_mut().for_each(|field| field.format = 0);
                if theirs.len() != ours.len() {
                    return Err(format!("{} columns upstream, {} here", theirs.len(), ours.len()));
                }
                if let Some(column) = (0..ours.len()).find(|&column| theirs[column] != ours[column]) {
                    let (theirs, ours) = (shown(&theirs[column]), shown(&ours[column]));
                    return Err(format!("column {}: {theirs} upstream, {ours} here", column + 1));
                }
                is_described = true;
            }
            _ => {}
        }
    }
    Ok(is_described)
}

/// For people.
fn shown(field: &Field<'_>) -> String {
    let Field { name, table_oid, attnum, type_oid, typmod, .. } = field;
    let name = String::from_utf8_lossy(name);
    format!("{name:?} of type {type_oid} ({typmod}), column {attnum} of {table_oid}")
}

/// The barrier after, then the engine's answer for the state that did not change between the two barriers.
async fn compare_rows(
    local: Arc<Local>,
    prepared: Arc<Prepared>,
    settings: Arc<SessionSettings>,
    execution: Execution,
    reply: Vec<u8>,
    is_described: bool,
    _room: Vec<Room>,
) {
    let Some(_judging) = local.audit.begin(&prepared.identity) else { return local.audit.inconclusive() };
    let after =
        local.freshness.acquire(FreshnessMode::Exact, &prepared.plan.relations(), BarrierNumber::default()).await;
    let relations: Vec<RelationId> = prepared.plan.tables.iter().map(|table| table.table).collect();
    let state = after.ok().and_then(|after| {
        let state = state_between(&execution.before.snapshot, &after.snapshot, &relations)?;
        Some((after, state)).filter(|_| state == State::Still || !prepared.plan.uses_time)
    });
    // Settings that upstream answered under may have changed with its configuration.
    let is_configured_alike = local.freshness.configuration_changes() == execution.configuration;
    let Some((after, state)) = state.filter(|_| is_configured_alike) else { return local.audit.inconclusive() };
    let snapshot = Arc::clone(&execution.before.snapshot);
    let freshness = local.freshness.clone();
    let upstreams = Upstreams { reply, is_described, state, time: execution.transaction_time.or(after.statement_time) };
    let allowed = JUDGING_MIN.max(execution.took.saturating_mul(JUDGING_TIMES));
    let abandoned = Arc::new(AtomicBool::new(false));
    let is_abandoned = Arc::clone(&abandoned);
    let judge = move || {
        let Ok(format) = &settings.format else {
            local.audit.inconclusive();
            return None;
        };
        let (local, prepared, is_abandoned) = (&*local, &*prepared, &is_abandoned);
        Case { local, prepared, format, execution: &execution, upstreams: &upstreams, is_abandoned }.judge()
    };
    let judge = Arc::new(judge);
    for _ in 0..=ORDER_QUESTIONS_MAX {
        let work = Arc::clone(&judge);
        let mut judging = tokio::task::spawn_blocking(move || work());
        // A panic in the engine must not become a verdict.
        match timeout(allowed, &mut judging).await {
            Err(_) => {
                abandoned.store(true, Relaxed);
                // Until then it counts as one, with its reply.
                let _ = judging.await;
                return;
            }
            Ok(Err(_)) => return tracing::error!("the audit of a statement panicked"),
            Ok(Ok(None)) => return,
            Ok(Ok(Some(missing))) => {
                if let Err(error) = freshness.orders().learn(&snapshot.catalog.orders, &missing).await {
                    return tracing::warn!(%error, "the order of texts could not be asked");
                }
            }
        }
    }
}

/// What became of the tables between the two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Still,
    /// Upstream answered as of the first barrier, or of a moment soon after it. An answer that is equal to that of the barrier says
    /// as much as ever; one that is not says nothing. (Where a table is written all the time, nothing else is to be had of a
    /// statement that takes long.)
    Moving,
}

/// None: the answers cannot be compared.
fn state_between(before: &Snapshot, after: &Snapshot, relations: &[RelationId]) -> Option<State> {
    let generation = |snapshot: &Snapshot, relation| Some(snapshot.tables.get(relation)?.generation);
    if before.catalog.version != after.catalog.version {
        return None;
    }
    let mut state = State::Still;
    for relation in relations {
        if generation(before, relation)? != generation(after, relation)? {
            state = State::Moving;
        }
    }
    Some(state)
}

/// So often what was slow is done again, to see whether it always is.
const AGAIN_MAX: usize = 2;

/// Upstream's answer.
struct Upstreams {
    reply: Vec<u8>,
    is_described: bool,
    state: State,
    /// Its transaction's, or that of the barrier after it.
    time: Option<i64>,
}

/// One execution of a statement, and upstream's answer to it.
struct Case<'a> {
    local: &'a Local,
    prepared: &'a Prepared,
    format: &'a FormatSettings,
    execution: &'a Execution,
    upstreams: &'a Upstreams,
    is_abandoned: &'a Arc<AtomicBool>,
}

/// Why there is nothing to judge.
enum Unjudged {
    /// Upstream has to tell the order of these texts first.
    Unordered(Arc<Missing>),
    /// Not wrong, only not answerable.
    Refused(UpstreamReason),
    Inconclusive,
}

impl Case<'_> {
    /// None: judged, or nothing to be said. Else upstream has to tell the order of these texts first.
    fn judge(&self) -> Option<Arc<Missing>> {
        let Self { local, prepared, .. } = self;
        let judgement = self.judgement();
        // What differs is no less wrong for that.
        if self.is_abandoned.load(Relaxed) && !matches!(judgement, Ok((Judgement::Differs(_), _))) {
            local.audit.refused(&prepared.identity, UpstreamReason::OverBudget(TOO_LONG));
            return None;
        }
        match judgement {
            Ok((Judgement::Agrees, answers)) => {
                let agreement = Agreement {
                    encodings: Encodings::of(&self.execution.formats),
                    with_columns: self.upstreams.is_described,
                    is_whole: answers.is_whole,
                };
                local.audit.upstream_took(&prepared.identity, self.execution.took);
                // In this order: in between it would be served.
                if local.audit.is_too_slow(answers.took, self.execution.took) {
                    local.audit.slow(&prepared.identity);
                }
                local.audit.agreed(&prepared.identity, agreement);
            }
            Ok((Judgement::Open(_) | Judgement::Differs(_), _)) if self.upstreams.state == State::Moving => {
                local.audit.inconclusive();
            }
            // Another choice among equals may be the difference; it decides nothing.
            Ok((Judgement::Open(why), _)) => {
                local.audit.refused(&prepared.identity, UpstreamReason::Unsupported(why.into()));
            }
            Ok((Judgement::Differs(difference), answers)) => {
                report(prepared, &difference, &answers.theirs, &answers.ours);
                local.audit.differed(&prepared.identity);
            }
            Ok((Judgement::Unordered(missing), _)) | Err(Unjudged::Unordered(missing)) => return Some(missing),
            // To try each time would cost two barriers for nothing.
            Err(Unjudged::Refused(reason)) => local.audit.refused(&prepared.identity, reason),
            Err(Unjudged::Inconclusive) => local.audit.inconclusive(),
        }
        None
    }

    fn judgement(&self) -> Result<(Judgement, Answers), Unjudged> {
        let prepared = self.prepared;
        let (mut answers, moving) = self.answers()?;
        if compare(&answers.columns, &answers.freedom, &answers.theirs, &answers.ours, None).is_ok() {
            return Ok((Judgement::Agrees, answers));
        }
        let rows_of = |plan: &Plan| -> Result<Vec<Row>, EvalError> {
            let mut rows = self.rows_at(plan, self.upstreams.time)?;
            forget(&moving, &mut rows);
            Ok(rows)
        };
        if let Some(unlimited) = &prepared.unlimited {
            answers.all = match rows_of(unlimited) {
                Ok(rows) => Some(rows),
                Err(EvalError::Unordered(missing)) => return Err(Unjudged::Unordered(missing)),
                // Too many to choose from: only an equal answer says something.
                Err(_) => return Err(Unjudged::Inconclusive),
            };
        }
        answers.freedom.is_limited = answers.all.is_some();
        Ok((answers.judgement(&prepared.choice, &prepared.summed, &rows_of), answers))
    }

    /// Both answers without the columns that move with upstream's clock, and those.
    fn answers(&self) -> Result<(Answers, Vec<usize>), Unjudged> {
        let Self { prepared, execution, upstreams, .. } = self;
        let began = Instant::now();
        let frames = match self.frames() {
            Ok(frames) => frames,
            Err(EvalError::Unordered(missing)) => return Err(Unjudged::Unordered(missing)),
            Err(error) => return Err(Unjudged::Refused(local_error(error))),
        };
        let mut took = began.elapsed();
        // Mostly every byte is the same, and then no row need be taken apart: of a large reply that takes long, and many times its memory.
        let is_clocked = prepared.plan.uses_time && execution.transaction_time.is_none();
        let is_equal = !is_clocked && !execution.is_suspended && is_same_data(&upstreams.reply, &frames);
        let (mut theirs, mut ours) = match is_equal {
            true => (Vec::new(), Vec::new()),
            false => (rows(&upstreams.reply), rows_of(&frames)),
        };
        let has_rows = frames.iter().any(|piece| piece.first() == Some(&b'D'));
        drop(frames);
        for _ in 0..AGAIN_MAX {
            if !self.local.audit.is_too_slow(took, execution.took) {
                break;
            }
            // The first time, indexes and sides of joins are made that others find; a short time may have been another's.
            let began = Instant::now();
            if self.frames_at(&prepared.plan, upstreams.time).is_err() {
                break;
            }
            took = took.min(began.elapsed());
        }
        let mut moving = Vec::new();
        if is_clocked {
            // Upstream's clock stood somewhere between the two barriers': what is the same at both is compared.
            let earlier = self.rows_at(&prepared.plan, execution.before.statement_time);
            let found = earlier.ok().and_then(|earlier| moving_columns(&earlier, &ours));
            moving = found.ok_or(Unjudged::Inconclusive)?;
            forget(&moving, theirs.iter_mut().chain(&mut ours));
        }
        // As if the statement had a LIMIT of as many rows.
        let all = execution.is_suspended.then(|| ours.clone());
        if execution.is_suspended {
            ours.truncate(theirs.len());
        }
        let is_known = |column: &usize| !moving.contains(column);
        let order_columns = prepared.order_columns.iter().copied().take_while(is_known).collect();
        let answers = Answers {
            columns: compared_columns(prepared, execution),
            freedom: Freedom { order_columns, is_limited: false },
            is_whole: match is_equal {
                true => has_rows && !prepared.plan.output.is_empty(),
                false => !execution.is_suspended && theirs.first().is_some_and(|row| row.len() > moving.len()),
            },
            theirs,
            ours,
            all,
            took,
        };
        Ok((answers, moving))
    }

    /// What a client would have got as of the barrier before the execution: one row is found in a way of its own.
    fn frames(&self) -> Result<Pieces, EvalError> {
        let plan = &self.prepared.plan;
        let Execution { before, parameters, formats, .. } = self.execution;
        match PointRow::of(plan, &before.snapshot, parameters) {
            Some(point) => {
                let limits = self.local.engine.limits(Pace::Quick);
                Ok(rows_of_point(plan, &point, formats, self.format, limits)?.frames)
            }
            None => self.frames_at(plan, self.upstreams.time),
        }
    }

    /// The engine's answer to a plan, as of the same moment.
    fn rows_at(&self, plan: &Plan, transaction_time: Option<i64>) -> Result<Vec<Row>, EvalError> {
        Ok(rows_of(&self.frames_at(plan, transaction_time)?))
    }

    fn frames_at(&self, plan: &Plan, transaction_time: Option<i64>) -> Result<Pieces, EvalError> {
        let eval = EvalContext { settings: self.format, transaction_time, orders: None };
        let Execution { before, parameters, formats, .. } = self.execution;
        let run = Run { plan, snapshot: &before.snapshot, parameters, eval, formats, pace: Pace::Full, early: None };
        Ok(run.rows(&self.local.engine, &Course::Anew, self.is_abandoned)?.frames)
    }
}

fn compared_columns(prepared: &Prepared, execution: &Execution) -> Vec<ComparedColumn> {
    let columns = prepared.plan.output.iter().zip(&execution.formats).enumerate();
    let compared = |(at, (column, format)): (usize, (&OutputColumn, &Format))| ComparedColumn {
        pg_type: column.expr_type.pg_type,
        is_binary: *format == Format::Binary,
        nearness: if prepared.summed.columns.contains(&at) { Nearness::Summed } else { Nearness::Exact },
    };
    columns.map(compared).collect()
}

const OF_TIES: &str = "rows that no ORDER BY tells apart decide the answer";
const OF_SUMS: &str = "the last bits of sums of floats decide the answer";

/// Two answers to one statement.
struct Answers {
    columns: Vec<ComparedColumn>,
    freedom: Freedom,
    theirs: Vec<Row>,
    ours: Vec<Row>,
    /// Ours without the outermost limit, if there is one.
    all: Option<Vec<Row>>,
    /// There are rows, all of them, and something of each is compared.
    is_whole: bool,
    /// Our time for it.
    took: Duration,
}

enum Judgement {
    Agrees,
    /// They differ, and may, because of this.
    Open(&'static str),
    Differs(Difference),
    /// Upstream has to tell the order of these texts first.
    Unordered(Arc<Missing>),
}

impl From<Result<(), Difference>> for Judgement {
    fn from(compared: Result<(), Difference>) -> Self {
        compared.map_or_else(Self::Differs, |()| Self::Agrees)
    }
}

impl Answers {
    /// Equal, or as far apart as PostgreSQL's choice allows. `rows_of`: the engine's answer to another plan, at the same moment.
    fn judgement(
        &self,
        choice: &Choice,
        summed: &Summed,
        rows_of: &dyn Fn(&Plan) -> Result<Vec<Row>, EvalError>,
    ) -> Judgement {
        match self.judged_by(choice, rows_of) {
            Judgement::Differs(_) if summed.rows => Judgement::Open(OF_SUMS),
            // What is near is equal already: sums that cancel out, or that are printed, rounded or compared.
            Judgement::Differs(_) if !summed.columns.is_empty() => {
                let blurred_rows_of = |plan: &Plan| Ok(self.blurred(summed, rows_of(plan)?));
                match self.loosened(summed).judged_by(choice, &blurred_rows_of) {
                    Judgement::Agrees => Judgement::Open(OF_SUMS),
                    other => other,
                }
            }
            found => found,
        }
    }

    /// Both answers as they are compared where sums may have cancelled out: NULLs stay what they are, floats differ by little.
    fn loosened(&self, summed: &Summed) -> Self {
        let mut columns = self.columns.clone();
        summed.columns.iter().for_each(|at| columns[*at].nearness = Nearness::Cancelled);
        let is_told = |column: &usize| !summed.columns.contains(column);
        let order_columns = self.freedom.order_columns.iter().copied().take_while(is_told).collect();
        Self {
            columns,
            freedom: Freedom { order_columns, ..self.freedom },
            theirs: self.blurred(summed, self.theirs.clone()),
            ours: self.blurred(summed, self.ours.clone()),
            all: self.all.clone().map(|all| self.blurred(summed, all)),
            ..*self
        }
    }

    /// What was made of sums and is no float may be any value.
    fn blurred(&self, summed: &Summed, mut rows: Vec<Row>) -> Vec<Row> {
        let is_float = |at: &&usize| matches!(self.columns[**at].pg_type, PgType::Float4 | PgType::Float8);
        for at in summed.columns.iter().filter(|at| !is_float(at)) {
            rows.iter_mut().filter_map(|row| row[*at].as_mut()).for_each(|cell| *cell = Bytes::new());
        }
        rows
    }

    fn judged_by(&self, choice: &Choice, rows_of: &dyn Fn(&Plan) -> Result<Vec<Row>, EvalError>) -> Judgement {
        let Self { columns, freedom, theirs, ours, all, .. } = self;
        let strict = compare(columns, freedom, theirs, ours, all.as_deref());
        if strict.is_ok() {
            return Judgement::Agrees;
        }
        match choice {
            Choice::Nothing => strict.into(),
            Choice::Anything => Judgement::Open(OF_TIES),
            Choice::Values(open) => {
                judged(compare_open(columns, freedom, open, [theirs, ours], all.as_deref()), open, freedom.is_limited)
            }
            Choice::Rows { open, among } => {
                let among = match rows_of(among) {
                    Ok(among) => among,
                    Err(EvalError::Unordered(missing)) => return Judgement::Unordered(missing),
                    // Too many, or an error in a row that is not chosen.
                    Err(_) => return Judgement::Open(OF_TIES),
                };
                let chosen = Freedom { is_limited: true, ..freedom.clone() };
                match compare_open(columns, &chosen, open, [theirs, ours], Some(&among)) {
                    // How many rows there are, and in which order, may be a part of what is chosen.
                    Err(Difference::RowCount { .. } | Difference::Order { .. }) => Judgement::Open(OF_TIES),
                    compared => judged(compared, open, true),
                }
            }
        }
    }
}

/// Nothing was found where PostgreSQL chooses nothing. Values that were not compared at all may be wrong, too.
fn judged(compared: Result<(), Difference>, open: &OpenColumns, is_limited: bool) -> Judgement {
    let is_compared = |column| !is_limited && open.permuted.contains(column);
    match compared {
        Ok(()) if open.columns.iter().all(is_compared) => Judgement::Agrees,
        Ok(()) => Judgement::Open(OF_TIES),
        Err(difference) => Judgement::Differs(difference),
    }
}

/// Makes the cells of these columns equal.
fn forget<'r>(columns: &[usize], rows: impl IntoIterator<Item = &'r mut Row>) {
    rows.into_iter().for_each(|row| columns.iter().for_each(|at| row[*at] = None));
}

/// The columns that differ between two answers of the same rows; None: other rows.
fn moving_columns(earlier: &[Row], later: &[Row]) -> Option<Vec<usize>> {
    if earlier.len() != later.len() {
        return None;
    }
    let width = later.first().map_or(0, Vec::len);
    let differs = |column: &usize| earlier.iter().zip(later).any(|(a, b)| a[*column] != b[*column]);
    let moving: Vec<usize> = (0..width).filter(differs).collect();
    (moving.is_empty() || moving.len() < width || later.len() == 1).then_some(moving)
}

/// Values may be confidential: the log gets digests of both answers, not the rows.
fn report(prepared: &Prepared, difference: &Difference, theirs: &[Row], ours: &[Row]) {
    tracing::error!(
        statement = %fingerprint::shown(&prepared.shape.text),
        ?difference,
        upstream = %digest(theirs),
        local = %digest(ours),
        "freshet's answer differs from upstream's; the statement is relayed from now on"
    );
}

fn digest(rows: &[Row]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    rows.hash(&mut hasher);
    format!("{} rows, {:016x}", rows.len(), hasher.finish())
}

fn rows_of(pieces: &Pieces) -> Vec<Row> {
    pieces.iter().flat_map(|piece| rows(piece)).collect()
}

/// Whether upstream's reply has the same rows in the same order, byte for byte, as ours, which are followed by how many they are.
fn is_same_data(reply: &[u8], ours: &Pieces) -> bool {
    let mut pieces = ours.iter().map(|piece| &piece[..]);
    let mut rest: &[u8] = &[];
    let mut has_next = |mut wanted: &[u8]| {
        while !wanted.is_empty() {
            while rest.is_empty() {
                let Some(piece) = pieces.next() else { return false };
                rest = piece;
            }
            let count = wanted.len().min(rest.len());
            if wanted[..count] != rest[..count] {
                return false;
            }
            (wanted, rest) = (&wanted[count..], &rest[count..]);
        }
        true
    };
    let mut data = Frames::new(reply).filter(|frame| matches!(frame.tag, b'D' | b'C'));
    data.all(|frame| has_next(frame.bytes))
}

fn rows(reply: &[u8]) -> Vec<Row> {
    let data = Frames::new(reply).filter(|frame| frame.tag == b'D');
    data.map(|frame| data_row(frame.body).map(|cell| cell.map(Bytes::copy_from_slice)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_the_same_rows_however_they_are_cut() {
        let frame = |tag: u8, body: &[u8]| {
            let mut out = Vec::new();
            crate::wire::frame::write_frame(&mut out, tag, |out| out.extend_from_slice(body));
            out
        };
        let (first, second, end) = (frame(b'D', b"one"), frame(b'D', b"two"), frame(b'C', b"SELECT 2\0"));
        let reply = [frame(b'T', b"columns"), first.clone(), second.clone(), end.clone(), frame(b'Z', b"I")].concat();
        let ours = [&first[..], &second, &end].concat();
        for cut in 0..=ours.len() {
            let (head, tail) = ours.split_at(cut);
            let pieces = Pieces::from_iter([head, tail].map(Bytes::copy_from_slice));
            assert!(is_same_data(&reply, &pieces), "cut at {cut}");
        }
        let of = |parts: &[&[u8]]| Pieces::from(Bytes::from(parts.concat()));
        for other in
            [&[&second[..], &first, &end][..], &[&first, &end], &[&first, &second, &second, &end], &[&first], &[]]
        {
            assert!(!is_same_data(&reply, &of(other)), "{other:?}");
        }
    }

    /// A text, a float and what is printed of it, the latter two made of sums.
    fn answers(theirs: &[[&str; 3]], ours: &[[&str; 3]]) -> Answers {
        let column = |pg_type, nearness| ComparedColumn { pg_type, is_binary: false, nearness };
        let cell = |text: &&str| (*text != "NULL").then(|| Bytes::copy_from_slice(text.as_bytes()));
        let rows = |rows: &[[&str; 3]]| rows.iter().map(|row| row.iter().map(cell).collect()).collect::<Vec<Row>>();
        Answers {
            columns: vec![
                column(PgType::Text, Nearness::Exact),
                column(PgType::Float8, Nearness::Summed),
                column(PgType::Text, Nearness::Summed),
            ],
            freedom: Freedom::default(),
            theirs: rows(theirs),
            ours: rows(ours),
            all: None,
            is_whole: true,
            took: Duration::ZERO,
        }
    }

    fn judgement(theirs: [&str; 3], ours: [&str; 3], rows: bool) -> &'static str {
        let summed = Summed { columns: vec![1, 2], rows };
        let none = |_: &Plan| Err(EvalError::OverBudget("no plan"));
        match answers(&[theirs], &[ours]).judgement(&Choice::Nothing, &summed, &none) {
            Judgement::Agrees => "agrees",
            Judgement::Open(_) => "open",
            Judgement::Differs(_) => "differs",
            Judgement::Unordered(_) => "unordered",
        }
    }

    /// Whatever else hangs on ties: nothing that was chosen is another value.
    #[test]
    fn a_limit_s_other_rows_agree_if_they_are_among_all() {
        let all = [["a", "1", "1"], ["b", "2", "2"]];
        let mut limited = answers(&all[..1], &all[1..]);
        limited.freedom.is_limited = true;
        limited.all = Some(answers(&all, &[]).theirs);
        let open = OpenColumns { columns: vec![2], permuted: Vec::new() };
        let none = |_: &Plan| Err(EvalError::OverBudget("no plan"));
        let judgement = limited.judgement(&Choice::Values(open), &Summed::default(), &none);
        assert!(matches!(judgement, Judgement::Agrees));
    }

    #[test]
    fn sums_of_floats_may_cancel_out_and_are_no_other_sums() {
        let with = |theirs, ours| judgement(theirs, ours, false);
        assert_eq!(with(["a", "0.3", "0.3"], ["a", "0.30000000000000004", "0.3"]), "agrees");
        assert_eq!(with(["a", "0", "0"], ["a", "-1.1e-13", "-1.1e-13"]), "open");
        assert_eq!(with(["a", "0.3", "0.3"], ["a", "0.30000000000000004", "0.30000000000000004"]), "open");
        assert_eq!(with(["a", "5", "5"], ["a", "7", "7"]), "differs");
        assert_eq!(with(["a", "0", "0"], ["a", "NULL", "NULL"]), "differs");
        assert_eq!(with(["a", "0", "0"], ["a", "0", "NULL"]), "differs");
        assert_eq!(with(["a", "0", "0"], ["b", "0", "0"]), "differs");
        assert_eq!(judgement(["a", "0", "0"], ["b", "0", "0"], true), "open", "which rows there are hangs on sums");
    }
}
