//! Pinned snapshots: one moment for a whole dashboard (`SET freshet.snapshot`), also over several connections.
//!
//! A [`Pinned`] is the mirror at one exact barrier, under a [`Token`]. A session asks for one by its [`Choice`]; statements
//! are still bound to the catalog in force and wait for a barrier as ever, which proves it and the privileges by it, but read
//! the pinned rows. A table whose schema has changed since, or that was not mirrored then, is not in it.
//!
//! Tokens belong to a role, expire, and are bounded in number and in the memory that nothing else holds. Like everything in
//! the mirror they end with the life of the stream that they were taken from.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_engine::catalog::RelationId;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::snapshot::{Snapshot, Unions};
use freshet_engine::table::{Chunk, TableVersion};
use parking_lot::Mutex;

use crate::freshness::exposure::BarrierNumber;
use crate::freshness::{Freshness, Served};

/// What of the settings concerns pinned snapshots.
#[derive(Clone, Copy, Debug)]
pub struct PinOptions {
    /// Snapshots at a time.
    pub pins_max: usize,
    /// A snapshot ends after this long.
    pub age_max: Duration,
    /// Rows and indexes that only pinned snapshots still hold.
    pub bytes_max: usize,
}

impl Default for PinOptions {
    fn default() -> Self {
        Self { pins_max: 64, age_max: Duration::from_secs(300), bytes_max: 512 << 20 }
    }
}

/// How often age and memory are looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A moment of all tables may fail where one of them is just copied again, commits became visible in another order, or the
/// catalog has changed and is being read again. After this long the session is told.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// Names a pinned snapshot. Not to be guessed; whoever has it still needs the role and its privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(u128);

impl Token {
    fn fresh() -> Self {
        let half = || u128::from(std::hash::RandomState::new().build_hasher().finish());
        Self(half() << 64 | half())
    }

    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The mirror at one moment, kept.
#[derive(Debug)]
pub struct Pinned {
    pub token: Token,
    role: Box<str>,
    snapshot: Arc<Snapshot>,
    /// Upstream's clock at the barrier: now() of every statement that reads the snapshot.
    statement_time: Option<i64>,
    /// The life of the stream that it belongs to.
    epoch: u64,
    taken_at: Instant,
    unions: Unions,
}

/// What a session has asked for by `SET freshet.snapshot`, and what it got.
#[derive(Debug)]
pub struct Choice {
    wanted: Wanted,
    /// Once it was taken or found.
    pinned: OnceLock<(Token, Weak<Pinned>)>,
}

#[derive(Debug)]
enum Wanted {
    Latest,
    Shared(Token),
    /// No form of a token.
    Unknown,
}

impl Choice {
    /// None: `off`, the session is released.
    pub fn read(text: &str) -> Option<Self> {
        let wanted = match text {
            "" => return None,
            off if off.eq_ignore_ascii_case("off") || off.eq_ignore_ascii_case("none") => return None,
            latest if latest.eq_ignore_ascii_case("latest") => Wanted::Latest,
            token => Token::parse(token).map_or(Wanted::Unknown, Wanted::Shared),
        };
        Some(Self { wanted, pinned: OnceLock::new() })
    }

    /// The snapshot's token; None: none was taken yet, or it is gone.
    pub fn token(&self) -> Option<Token> {
        let (token, pinned) = self.pinned.get()?;
        (pinned.strong_count() > 0).then_some(*token)
    }

    /// Keeps the replies of different snapshots apart.
    pub fn token_bytes(&self) -> [u8; 16] {
        self.pinned.get().map_or(0, |(token, _)| token.0).to_be_bytes()
    }
}

/// All pinned snapshots of a mirror.
#[derive(Debug, Default)]
pub struct Pins {
    pins: Mutex<HashMap<Token, Arc<Pinned>>>,
}

impl Pins {
    fn find(&self, token: Token, role: &str, options: &PinOptions) -> Option<Arc<Pinned>> {
        let pins = self.pins.lock();
        let found = pins.get(&token).filter(|pinned| *pinned.role == *role);
        found.filter(|pinned| pinned.taken_at.elapsed() <= options.age_max).cloned()
    }

    /// Where there are too many, those that no session uses give way, the oldest first. False: all are in use.
    fn insert(&self, pinned: Arc<Pinned>, options: &PinOptions) -> bool {
        let mut pins = self.pins.lock();
        pins.retain(|_, pinned| pinned.taken_at.elapsed() <= options.age_max);
        while pins.len() >= options.pins_max.max(1) {
            let unused = pins.values().filter(|pinned| Arc::weak_count(pinned) == 0);
            let Some(token) = unused.min_by_key(|pinned| pinned.taken_at).map(|pinned| pinned.token) else {
                return false;
            };
            pins.remove(&token);
        }
        pins.insert(pinned.token, pinned);
        true
    }

    /// Ends those that are too old, of an earlier life of the stream, or over the memory that pinned snapshots may hold: first
    /// those that no session uses, the oldest before the newer.
    pub(super) fn enforce(&self, options: &PinOptions, epoch: Option<u64>, current: Option<&Snapshot>) {
        let mut pins = self.pins.lock();
        if pins.is_empty() {
            return;
        }
        let mut ended: Vec<Arc<Pinned>> = Vec::new();
        let is_over = |pinned: &Pinned| pinned.taken_at.elapsed() > options.age_max || Some(pinned.epoch) != epoch;
        ended.extend(pins.extract_if(|_, pinned| is_over(pinned)).map(|(_, pinned)| pinned));
        while let Some(current) = current
            && held_bytes(pins.values(), current) > options.bytes_max
        {
            let next = pins.values().min_by_key(|pinned| (Arc::weak_count(pinned) > 0, pinned.taken_at));
            let Some(token) = next.map(|pinned| pinned.token) else { break };
            tracing::warn!(%token, "pinned snapshots hold too much memory: one ends before its time");
            ended.extend(pins.remove(&token));
        }
        drop(pins);
        drop(ended);
    }

    fn clear(&self) {
        let ended = std::mem::take(&mut *self.pins.lock());
        drop(ended);
    }

    /// Their number, and the memory that only they hold.
    pub(super) fn size(&self, current: Option<&Snapshot>) -> (usize, usize) {
        let pins = self.pins.lock();
        (pins.len(), current.map_or(0, |current| held_bytes(pins.values(), current)))
    }
}

/// What `pins` hold together and the newest versions of the tables do not.
fn held_bytes<'a>(pins: impl Iterator<Item = &'a Arc<Pinned>>, current: &Snapshot) -> usize {
    let address = |chunk: &Arc<Chunk>| Arc::as_ptr(chunk);
    let of = |version: &Arc<TableVersion>| version.chunks.iter().map(|v| address(&v.chunk)).collect::<Vec<_>>();
    let mut counted: HashSet<*const Chunk> = current.tables.values().flat_map(of).collect();
    let mut bytes = 0;
    for (relation, version) in pins.flat_map(|pinned| &pinned.snapshot.tables) {
        if current.tables.get(relation).is_some_and(|newest| Arc::ptr_eq(newest, version)) {
            continue;
        }
        for of_version in version.chunks.iter() {
            bytes += of_version.alive.as_ref().map_or(0, |alive| alive.len() / 8);
            if counted.insert(address(&of_version.chunk)) {
                bytes += of_version.chunk.bytes();
            }
        }
    }
    bytes
}

fn gone() -> UpstreamReason {
    UpstreamReason::Snapshot("it has expired or was given up".into())
}

impl Freshness {
    /// The snapshot that a session has chosen: taken, or found, when it is first asked for.
    pub async fn pinned(
        &self,
        choice: &Choice,
        role: &str,
        session_requires: BarrierNumber,
    ) -> Result<Arc<Pinned>, UpstreamReason> {
        let pinned = match (choice.pinned.get(), &choice.wanted) {
            (Some((_, known)), _) => known.upgrade().ok_or_else(gone)?,
            (None, Wanted::Latest) => self.pin(role, session_requires).await?,
            (None, Wanted::Shared(token)) => {
                self.pins.find(*token, role, &self.shared.options.pins).ok_or_else(gone)?
            }
            (None, Wanted::Unknown) => return Err(UpstreamReason::Snapshot("there is none of this name".into())),
        };
        choice.pinned.get_or_init(|| (pinned.token, Arc::downgrade(&pinned)));
        if *pinned.role != *role {
            return Err(UpstreamReason::Snapshot("it was taken by another role".into()));
        }
        let is_young = pinned.taken_at.elapsed() <= self.shared.options.pins.age_max;
        // Everything that was read from a stream ends with it.
        let is_of_this_life = self.shared.replication.running()?.epoch == pinned.epoch;
        if is_young && is_of_this_life { Ok(pinned) } else { Err(gone()) }
    }

    /// All mirrored tables at a barrier of now.
    async fn pin(&self, role: &str, session_requires: BarrierNumber) -> Result<Arc<Pinned>, UpstreamReason> {
        let replication = &self.shared.replication;
        let asked_at = Instant::now();
        loop {
            let epoch = replication.running()?.epoch;
            let relations = replication.followed();
            let served = self.acquire_tables(None, FreshnessMode::Exact, &relations, session_requires).await;
            let served = match served {
                Ok(served) if replication.running()?.epoch == epoch => served,
                Err(reason) if asked_at.elapsed() > PATIENCE => return Err(reason),
                Ok(_) | Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let pinned = Arc::new(Pinned {
                token: Token::fresh(),
                role: role.into(),
                snapshot: served.snapshot,
                statement_time: served.statement_time,
                epoch,
                taken_at: Instant::now(),
                unions: Unions::default(),
            });
            return match self.pins.insert(Arc::clone(&pinned), &self.shared.options.pins) {
                true => Ok(pinned),
                false => Err(UpstreamReason::OverBudget("freshness.snapshots_max")),
            };
        }
    }

    /// The pinned rows of `relations`, under the catalog of `now`: a moment that proves that it, and so the privileges that
    /// were checked by it, are in force.
    pub fn at_pinned(&self, pinned: &Pinned, now: &Served, relations: &[RelationId]) -> Result<Served, UpstreamReason> {
        let catalog = &now.snapshot.catalog;
        let mut tables = HashMap::new();
        for relation in catalog.expand(relations).into_iter().filter(|relation| !catalog.is_derived(*relation)) {
            let schema = catalog.tables.get(&relation).ok_or(UpstreamReason::CatalogChanged)?;
            let missing = |why: &str| UpstreamReason::Snapshot(format!("table {} {why}", schema.name).into());
            let rows = pinned.snapshot.tables.get(&relation).ok_or_else(|| missing("is not in it"))?;
            if rows.schema != *schema {
                return Err(missing("has changed since"));
            }
            tables.insert(relation, Arc::clone(rows));
        }
        let snapshot = Snapshot { catalog: Arc::clone(catalog), ..pinned.snapshot.with_tables(tables) };
        let snapshot = pinned.unions.complete(Arc::new(snapshot), relations)?;
        Ok(Served { snapshot, statement_time: pinned.statement_time, wait_us: now.wait_us, barrier: now.barrier })
    }

    /// The mirror has ended, and they with it.
    pub fn give_up_pins(&self) {
        self.pins.clear();
    }

    /// How many snapshots are pinned, and the memory that only they hold.
    pub fn pinned_size(&self) -> (usize, usize) {
        let exposed = self.shared.exposure.newest();
        self.pins.size(exposed.as_ref().map(|exposed| &*exposed.snapshot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(role: &str) -> Arc<Pinned> {
        Arc::new(Pinned {
            token: Token::fresh(),
            role: role.into(),
            snapshot: Arc::default(),
            statement_time: None,
            epoch: 1,
            taken_at: Instant::now(),
            unions: Unions::default(),
        })
    }

    #[test]
    fn a_token_reads_back_from_its_text_and_nothing_else_is_one() {
        let token = Token::fresh();
        assert_eq!(Token::parse(&token.to_string()), Some(token));
        assert_ne!(token, Token::fresh());
        for text in ["", "latest", "+1234567890123456789012345678901", "1234"] {
            assert_eq!(Token::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_token_is_of_one_role_and_ends() {
        let (pins, options) = (Pins::default(), PinOptions::default());
        let mine = pinned("me");
        let token = mine.token;
        assert!(pins.insert(mine, &options));
        assert!(pins.find(token, "me", &options).is_some());
        assert!(pins.find(token, "you", &options).is_none());
        assert!(pins.find(token, "me", &PinOptions { age_max: Duration::ZERO, ..options }).is_none());
        pins.enforce(&options, Some(2), None);
        assert!(pins.find(token, "me", &options).is_none(), "of an earlier life of the stream");
    }

    #[test]
    fn unused_snapshots_give_way_and_used_ones_do_not() {
        let (pins, options) = (Pins::default(), PinOptions { pins_max: 2, ..PinOptions::default() });
        let (first, second, third) = (pinned("me"), pinned("me"), pinned("me"));
        let (held_first, held_third) = (Arc::downgrade(&first), Arc::downgrade(&third));
        let unused = second.token;
        assert!(pins.insert(first, &options) && pins.insert(second, &options) && pins.insert(third, &options));
        assert!(held_first.upgrade().is_some() && pins.find(unused, "me", &options).is_none());
        assert!(!pins.insert(pinned("me"), &options), "both are in use");
        drop(held_third);
        assert!(pins.insert(pinned("me"), &options));
    }
}
