//! What is not computed here but repeated: upstream's own reply is kept, tagged by the state of its tables before it was asked.
//!
//! A barrier tells the tables' generations before the statement is sent. Its reply is of some moment after that barrier and
//! before the reply's end, so it is valid for a reader at a barrier sent after that end that finds the same generations: nothing
//! that the statement reads has changed in between. A change in between makes a reply that is never valid.
//!
//! Kept are replies of statements whose tables are known completely and which depend on nothing else (as bound, or by
//! [`freshet_engine::statement::dependencies`]), outside of transactions or in a READ COMMITTED block that has not written (each of
//! its statements takes a snapshot of its own), without notices or errors, of bounded size.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use bytes::Bytes;
use freshet_config::FreshnessMode;
use freshet_engine::catalog::RelationId;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::{Basis, CachedReply, Found, Keep, Keys, Repeated, ResultKey, Share, Withdrawn};
use freshet_engine::statement::dependencies::{Dependencies as TextDependencies, may_mean_the_time};
use freshet_engine::statement::fingerprint;
use freshet_engine::types::{Oid, PgType};
use parking_lot::Mutex;

use crate::freshness::Served;
use crate::freshness::exposure::BarrierNumber;
use crate::session::answer::{Answerer, ObservedReply, Observer, Relay, Reply};
use crate::session::local::flight::{Boarding, Flight, Outcome};
use crate::session::local::{Local, LocalAnswerer, Request, is_described_by, is_parsed_under};
use crate::session::state::RouteSetting;
use crate::statistics::ShapeStatistics;
use crate::wire::extended::oids;
use crate::wire::frame::Frames;
use crate::wire::query::TransactionStatus;

/// Statements told apart, one per hash.
const PLACES: usize = 4_096;
/// A statement is worth a barrier and a copy of its reply if it comes again within this time.
const REPEATED_WITHIN: Duration = Duration::from_secs(60);
/// One that changes faster than it is asked for is not copied each time.
const PAUSE: Duration = Duration::from_millis(20);
/// So long nobody waits for a reply that was of no use to who did.
const FRUITLESS_FOR: Duration = Duration::from_secs(1);

/// What all sessions share of it.
#[derive(Debug)]
pub struct Captures {
    recent: Mutex<Vec<Option<Recent>>>,
    hasher: ahash::RandomState,
    /// Bytes promised to replies that are being collected.
    collecting: Arc<AtomicUsize>,
    collecting_max: usize,
    reply_max: usize,
    /// Likewise, to large ones that are to be compared.
    comparing: Arc<AtomicUsize>,
}

/// Of all large replies that are to be compared at the same time.
const COMPARING_MAX: usize = 256 << 20;

#[derive(Clone, Copy, Debug)]
struct Recent {
    hash: u64,
    seen_at: Instant,
    captured_at: Option<Instant>,
    /// Who waited for its reply could not use it: its tables change faster than it is answered.
    fruitless_at: Option<Instant>,
}

/// What is to be done with a statement that upstream answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    /// It has not come before, or its reply would not be valid for long enough.
    Nothing,
    /// Its reply is worth waiting for, and keeping where nobody else is about to.
    Wait,
    /// Worth keeping, but not waiting for.
    Keep,
}

/// A share of the memory for collecting; given back when dropped.
#[derive(Debug)]
pub(in crate::session) struct Room {
    taken: Arc<AtomicUsize>,
    bytes: usize,
}

impl Room {
    fn take(taken: &Arc<AtomicUsize>, bytes: usize, max: usize) -> Option<Self> {
        let fits = |others: usize| (bytes > 0 && others + bytes <= max).then_some(others + bytes);
        taken.fetch_update(Relaxed, Relaxed, fits).ok()?;
        Some(Self { taken: Arc::clone(taken), bytes })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Relaxed);
    }
}

impl Captures {
    /// `collecting_max`: of all replies that are being collected; 0: none is.
    pub fn new(collecting_max: usize, reply_max: usize) -> Self {
        let reply_max = reply_max.min(collecting_max);
        let recent = Mutex::new(vec![None; PLACES]);
        let (collecting, comparing) = (Arc::default(), Arc::default());
        Self { recent, hasher: ahash::RandomState::new(), collecting, collecting_max, reply_max, comparing }
    }

    /// What the statement is worth now; it has been seen.
    fn note(&self, key: &ResultKey, now: Instant) -> Worth {
        let hash = self.hasher.hash_one(key.as_bytes());
        let mut recent = self.recent.lock();
        let place = &mut recent[(hash % PLACES as u64) as usize];
        let before = place.filter(|known| known.hash == hash);
        let unknown = Recent { hash, seen_at: now, captured_at: None, fruitless_at: None };
        *place = Some(Recent { seen_at: now, ..before.unwrap_or(unknown) });
        let Some(before) = before else { return Worth::Nothing };
        let since = |at: Instant| now.duration_since(at);
        if since(before.seen_at) >= REPEATED_WITHIN {
            Worth::Nothing
        } else if before.fruitless_at.is_some_and(|at| since(at) < FRUITLESS_FOR) {
            Worth::Keep
        } else {
            Worth::Wait
        }
    }

    /// Whether it is time to keep its reply again; then it is being kept.
    fn is_due(&self, key: &ResultKey, now: Instant) -> bool {
        self.with(key, |known| {
            let is_due = known.captured_at.is_none_or(|at| now.duration_since(at) >= PAUSE);
            if is_due {
                known.captured_at = Some(now);
            }
            is_due
        })
    }

    fn note_fruitless(&self, key: &ResultKey, now: Instant) {
        self.with(key, |known| {
            known.fruitless_at = Some(now);
            true
        });
    }

    /// False: it is not known any more.
    fn with(&self, key: &ResultKey, change: impl FnOnce(&mut Recent) -> bool) -> bool {
        let hash = self.hasher.hash_one(key.as_bytes());
        let mut recent = self.recent.lock();
        recent[(hash % PLACES as u64) as usize].as_mut().filter(|known| known.hash == hash).is_some_and(change)
    }

    fn room(&self) -> Option<Room> {
        Room::take(&self.collecting, self.reply_max, self.collecting_max)
    }

    /// For one reply that is to be compared; none where many are under way.
    pub(in crate::session) fn room_to_compare(&self, bytes: usize) -> Option<Room> {
        Room::take(&self.comparing, bytes, COMPARING_MAX)
    }
}

/// What a reply to be captured depends on.
pub(super) struct Dependencies<'a> {
    pub(super) relations: &'a [RelationId],
    /// Of the relations, those with rows.
    pub(super) tables: &'a [RelationId],
}

impl LocalAnswerer {
    /// The statement cannot be prepared: it is relayed, and if its reply can be kept, that is.
    pub(super) async fn relay_unprepared(
        &mut self,
        request: &Request<'_>,
        reason: UpstreamReason,
    ) -> Result<Reply, Relay> {
        self.look_for_named(request.sql, &reason);
        let Some(read) = self.read_by_text(request, &reason) else { return Err(self.refuse_text(request, reason)) };
        let shape = fingerprint::shape(request.sql).text;
        let statistics = self.local.statistics.shape(&shape, request.settings.role());
        let (tables, relations): (Vec<RelationId>, Vec<RelationId>) =
            (read.with_rows().collect(), read.relations().collect());
        let dependencies = Dependencies { relations: &relations, tables: &tables };
        statistics.set_relations(&relations);
        self.relay_captured(request, &dependencies, &statistics, reason).await
    }

    fn read_by_text(&self, request: &Request<'_>, reason: &UpstreamReason) -> Option<Arc<TextDependencies>> {
        (reason.leaves_reply_to_keep() && may_keep(request)).then(|| self.dependencies_of_text(request))?
    }

    fn dependencies_of_text(&self, request: &Request<'_>) -> Option<Arc<TextDependencies>> {
        self.with_context(request, |context| self.local.engine.dependencies(request.sql, context))
    }

    /// Relays the statement; its reply is kept where that is sound and worth it, and shared with who asks for it meanwhile. The
    /// text, too, must depend on nothing but tables, also of a statement that is bound: a plan says which those are, but not that
    /// no text among their rows is read as a time, which may be `now`.
    pub(super) async fn relay_captured(
        &mut self,
        request: &Request<'_>,
        dependencies: &Dependencies<'_>,
        statistics: &Arc<ShapeStatistics>,
        reason: UpstreamReason,
    ) -> Result<Reply, Relay> {
        if !may_keep(request) || self.local.patience.is_some() || self.dependencies_of_text(request).is_none() {
            return Err(self.refuse(request, Some(statistics), reason));
        }
        let boarding = match self.local.captures.note(&self.key, Instant::now()) {
            Worth::Nothing => Boarding::Alone(None),
            Worth::Keep => self.local.flights.lead(&self.key).map_or(Boarding::Alone(None), Boarding::Lead),
            Worth::Wait => self.local.flights.board(&self.key).await,
        };
        let mut flight = None;
        match boarding {
            Boarding::Lead(leading) => flight = Some(leading),
            Boarding::Landed => {
                if let Some(reply) = self.captured_by_another(request).await {
                    return Ok(reply);
                }
                self.local.captures.note_fruitless(&self.key, Instant::now());
            }
            // Upstream has a processor for each session.
            Boarding::Alone(_) => {}
        }
        let mut relay = self.refuse(request, Some(statistics), reason);
        if let Some(flight) = flight {
            let capture = self.capture(request, dependencies, statistics, flight).await;
            relay.observer = capture.map(|capture| Box::new(capture) as _);
        }
        Err(relay)
    }

    /// The reply that upstream has just given to an equal statement, if it is the answer at a moment after that.
    async fn captured_by_another(&mut self, request: &Request<'_>) -> Option<Reply> {
        let kept = self.local.engine.results.get(&self.key)?;
        self.required = self.required.max(BarrierNumber(kept.barrier));
        self.try_kept(request, &mut None).await.ok()?
    }

    async fn capture(
        &self,
        request: &Request<'_>,
        dependencies: &Dependencies<'_>,
        statistics: &Arc<ShapeStatistics>,
        flight: Flight,
    ) -> Option<Capture> {
        let captures = &self.local.captures;
        if !captures.is_due(&self.key, Instant::now()) {
            return None;
        }
        let room = captures.room()?;
        // Sent before the statement is: the reply is not older.
        let acquired = self.local.freshness.acquire(FreshnessMode::Exact, dependencies.relations, self.required).await;
        if let Err(UpstreamReason::TableNotMirrored(_)) = &acquired {
            dependencies.tables.iter().for_each(|table| self.local.freshness.want_table(*table));
        }
        let tag = acquired.ok().filter(|tag| tag.snapshot.catalog.version == request.catalog_version)?;
        if self.configuration() != request.configuration {
            return None;
        }
        Some(Capture {
            local: Arc::clone(&self.local),
            key: self.key.clone(),
            basis: Basis::of(dependencies.tables.iter().copied(), &tag.snapshot),
            tag,
            relations: dependencies.relations.to_vec(),
            configuration: self.local.freshness.configuration_changes(),
            wants_description: request.unit.describes_portal,
            statistics: Arc::clone(statistics),
            is_kept: Arc::default(),
            started: Instant::now(),
            flight,
            room,
        })
    }
}

/// Whether the unit, as it comes, may have a reply that is kept, whoever makes it.
fn may_keep(request: &Request<'_>) -> bool {
    let unit = request.unit;
    request.route == RouteSetting::Auto
        && request.choice.is_none()
        // Of several statements that share a transaction one may have written. A block that has is not asked for here.
        && !request.shares_transaction
        && !unit.describes_statement
        && is_described_by(unit, request.catalog_version, request.settings)
        // Upstream has read its literals by the settings of its Parse.
        && is_parsed_under(unit, request.settings, true)
        && !unit.bind.iter().any(|bind| bind.values().flatten().any(may_mean_the_time))
        && oids(unit.parameter_types).all(is_plain)
}

/// Whether a parameter declared so prints and compares by its value alone: not one of a type whose text are names of the catalog's, nor a
/// time of day, whose offset is today's.
fn is_plain(parameter: Oid) -> bool {
    parameter == 0 || PgType::from_oid(parameter).is_some_and(|of| of != PgType::Time)
}

/// Sees upstream's reply, and keeps it.
struct Capture {
    local: Arc<Local>,
    key: ResultKey,
    tag: Served,
    relations: Vec<RelationId>,
    basis: Basis,
    /// See [`Freshness::configuration_changes`](crate::freshness::Freshness::configuration_changes).
    configuration: u64,
    wants_description: bool,
    statistics: Arc<ShapeStatistics>,
    is_kept: Arc<AtomicBool>,
    started: Instant,
    /// Lets go of who waits, even if nothing comes of it.
    flight: Flight,
    room: Room,
}

impl Observer for Capture {
    fn bytes_max(&self) -> usize {
        self.room.bytes
    }

    fn captured(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.is_kept))
    }

    fn observe(self: Box<Self>, reply: ObservedReply) {
        let is_whole = !(reply.has_error || reply.is_truncated || reply.is_suspended || reply.has_asynchronous)
            && reply.status != TransactionStatus::Failed;
        let Some(parts) = is_whole.then(|| Parts::of(&reply.bytes)).flatten() else { return };
        if self.wants_description && parts.row_description.is_empty() {
            return;
        }
        let elapsed_us = self.started.elapsed().as_micros() as u64;
        let kept = CachedReply {
            row_description: parts.row_description,
            rows: parts.rows.into(),
            row_count: parts.row_count,
            relations: self.relations,
            basis: self.basis,
            catalog_version: self.tag.snapshot.catalog.version,
            // How upstream read its literals is not known here.
            folds_settings: true,
            elapsed_us,
            // Its rows are of some moment after the basis: of a change and its reverse it may show the one without the other.
            reads: None,
            last: u64::MAX,
            parameters: Box::default(),
            keys: Keys::default(),
            // The reply has ended: a barrier that is not sent yet comes after it.
            barrier: self.local.freshness.required_now().0,
            configuration: self.configuration,
            keep: Keep::default(),
            share: Share::default(),
            found: Found::default(),
            repeated: Repeated::default(),
            // Upstream's own.
            withdrawn: Withdrawn::default(),
            attachment: Arc::clone(&self.statistics) as _,
        };
        self.statistics.note_bytes(kept.rows.len());
        let is_kept = self.local.engine.results.insert(&self.key, Arc::new(kept));
        if is_kept {
            self.is_kept.store(true, SeqCst);
            self.statistics.recount_as_capture(elapsed_us);
        }
        self.flight.land(if is_kept { Outcome::Kept } else { Outcome::NotKept });
    }
}

/// Of a reply, what is kept.
struct Parts {
    /// Empty if there is none.
    row_description: Bytes,
    rows: Bytes,
    row_count: u64,
}

impl Parts {
    /// None: it is not the reply of one query that has come to its end.
    fn of(reply: &[u8]) -> Option<Self> {
        let mut parts = Self { row_description: Bytes::new(), rows: Bytes::new(), row_count: 0 };
        let mut rows = Vec::new();
        let mut is_complete = false;
        for frame in Frames::new(reply) {
            match frame.tag {
                b'1' | b'2' | b'3' | b'n' | b'Z' => {}
                b'T' if parts.row_description.is_empty() && !is_complete => {
                    parts.row_description = Bytes::copy_from_slice(frame.bytes);
                }
                b'D' if !is_complete => {
                    parts.row_count += 1;
                    rows.extend_from_slice(frame.bytes);
                }
                b'C' if !is_complete && frame.body.starts_with(b"SELECT ") => {
                    rows.extend_from_slice(frame.bytes);
                    is_complete = true;
                }
                _ => return None,
            }
        }
        // Without the room beyond them, for which nobody answers.
        parts.rows = rows.into_boxed_slice().into();
        is_complete.then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use freshet_engine::result_cache::KeyParts;

    use super::*;
    use crate::wire::frame::write_frame;

    fn frames(frames: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, body) in frames {
            write_frame(&mut out, *tag, |out| out.extend_from_slice(body));
        }
        out
    }

    #[test]
    fn a_reply_is_taken_apart_or_not_taken() {
        let whole = frames(&[(b'T', b"t"), (b'D', b"a"), (b'D', b"b"), (b'C', b"SELECT 2\0"), (b'Z', b"I")]);
        let parts = Parts::of(&whole).expect("one query");
        assert_eq!(parts.row_count, 2);
        assert_eq!(parts.row_description, frames(&[(b'T', b"t")]));
        assert_eq!(parts.rows, frames(&[(b'D', b"a"), (b'D', b"b"), (b'C', b"SELECT 2\0")]));
        let extended = frames(&[(b'1', b""), (b'2', b""), (b'C', b"SELECT 0\0"), (b'Z', b"I")]);
        assert!(Parts::of(&extended).expect("one query").row_description.is_empty());
        for doubtful in [
            &[(b'T', &b"t"[..]), (b'D', b"a"), (b'E', b"error"), (b'Z', b"I")][..],
            &[(b'N', b"notice"), (b'C', b"SELECT 0\0"), (b'Z', b"I")],
            &[(b'C', b"SELECT 0\0"), (b'C', b"SELECT 0\0"), (b'Z', b"I")],
            &[(b'C', b"INSERT 0 1\0"), (b'Z', b"I")],
            &[(b'D', b"a"), (b's', b""), (b'Z', b"I")],
            &[(b'I', b""), (b'Z', b"I")],
            &[(b'Z', b"I")],
        ] {
            assert!(Parts::of(&frames(doubtful)).is_none(), "{doubtful:?}");
        }
    }

    #[test]
    fn only_what_comes_again_is_collected_and_within_bounds() {
        let captures = Captures::new(1_000, 400);
        let key = |sql: &str| {
            let mut key = ResultKey::default();
            key.set(&KeyParts { sql: sql.as_bytes(), ..KeyParts::default() });
            key
        };
        let begun = Instant::now();
        assert_eq!(captures.note(&key("a"), begun), Worth::Nothing, "for the first time");
        assert_eq!(captures.note(&key("a"), begun), Worth::Wait);
        assert!(captures.is_due(&key("a"), begun));
        assert!(!captures.is_due(&key("a"), begun + PAUSE / 2), "just captured");
        assert!(captures.is_due(&key("a"), begun + PAUSE));
        captures.note_fruitless(&key("a"), begun);
        assert_eq!(captures.note(&key("a"), begun), Worth::Keep);
        assert_eq!(captures.note(&key("a"), begun + FRUITLESS_FOR), Worth::Wait);
        assert_eq!(captures.note(&key("b"), begun), Worth::Nothing);
        assert_eq!(captures.note(&key("b"), begun + REPEATED_WITHIN), Worth::Nothing, "too long ago");
        assert!(!captures.is_due(&key("c"), begun), "not known");
        let (first, second) = (captures.room(), captures.room());
        assert!(first.is_some() && second.is_some() && captures.room().is_none());
        drop(first);
        assert!(captures.room().is_some());
        assert!(Captures::new(0, 400).room().is_none());
    }
}
