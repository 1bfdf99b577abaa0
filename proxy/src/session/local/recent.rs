//! Replies that were just repeated, found by the bytes of a whole unit: no message is read, no key put together, nothing
//! allocated. In front of the result cache, which they are hits of.
//!
//! One [`Table`] for the sessions of each thread, so that its lock is free whenever a session takes it; small, and part of
//! the result cache's bytes. A place holds what the unit is in full (bytes, settings, and the bound statement's text by a
//! number that stands for nothing else), so that equal hashes are not taken for equal units. Whether a reply is valid is
//! asked of the reply itself each time, as for one found in the cache. Every now and then a hit is let pass to the cache,
//! which so learns what is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use ahash::HashMap;
use freshet_engine::result_cache::CachedReply;
use parking_lot::{Mutex, MutexGuard};

use crate::session::answer::PreparedStatement;
use crate::session::settings::SettingsId;

/// Of the bytes that kept replies may take, the share of this.
const SHARE: u64 = 16;
/// More than this is not needed to be quick.
const BYTES_MAX: u64 = 32 << 20;
/// A larger reply costs more to write than to find.
pub(super) const FRAMES_BYTES_MAX: usize = 4 << 10;
/// Of the unit itself.
const UNIT_BYTES_MAX: usize = 2 << 10;
/// Places of a table, a power of two. Two of them are possible for a unit.
const PLACES: usize = 4 << 10;
const WAYS: usize = 2;
/// What a place takes beside the bytes it has.
const PLACE_OVERHEAD_BYTES: usize = 192;
/// One hit in so many is the cache's.
const PASSES_ONE_IN: u8 = 128;
/// Texts of prepared statements that have numbers; beyond, they get new ones.
const TEXTS_MAX: usize = 4_096;
const TEXT_BYTES_MAX: usize = 4 << 20;

/// What all sessions share of it.
pub struct Recents {
    tables: Box<[Mutex<Table>]>,
    hasher: ahash::RandomState,
    texts: Mutex<Texts>,
}

/// The units that sessions of one thread have repeated.
pub(super) struct Table {
    places: Box<[Option<Box<Place>>]>,
    bytes: usize,
    bytes_max: usize,
    /// Where room was last made.
    hand: usize,
}

/// A unit and its reply.
pub(super) struct Place {
    hash: u64,
    settings: SettingsId,
    /// Of the statement that is bound; 0: the text is in the unit.
    text: u64,
    unit: Box<[u8]>,
    pub(super) kept: Arc<CachedReply>,
    /// Up to ReadyForQuery.
    pub(super) frames: Box<[u8]>,
    uses: u8,
    is_used: bool,
}

#[derive(Default)]
struct Texts {
    known: HashMap<Box<[u8]>, u64>,
    bytes: usize,
}

/// Whose reply is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    pub(super) settings: SettingsId,
    pub(super) text: u64,
    pub(super) unit: &'a [u8],
}

impl Recents {
    /// `result_bytes_max`: what kept replies may take; this takes its share of it, see [`Recents::share`].
    pub fn new(result_bytes_max: u64) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(64);
        let bytes_max = usize::try_from(Self::share(result_bytes_max)).unwrap_or(usize::MAX) / threads;
        Self {
            tables: (0..threads).map(|_| Mutex::new(Table::new(bytes_max))).collect(),
            hasher: ahash::RandomState::new(),
            texts: Mutex::default(),
        }
    }

    pub fn share(result_bytes_max: u64) -> u64 {
        (result_bytes_max / SHARE).min(BYTES_MAX)
    }

    /// What the places take.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(|table| table.lock().bytes).sum()
    }

    /// Drops everything.
    pub(super) fn clear(&self) {
        for table in &self.tables {
            let mut table = table.lock();
            *table = Table::new(table.bytes_max);
        }
        *self.texts.lock() = Texts::default();
    }

    /// The table of the thread that asks.
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static THREAD: usize = THREADS.fetch_add(1, Relaxed);
        }
        self.tables[THREAD.with(|thread| *thread) % self.tables.len()].lock()
    }

    pub(super) fn hash(&self, wanted: &Wanted<'_>) -> u64 {
        self.hasher.hash_one((wanted.settings, wanted.text, wanted.unit))
    }

    /// The number of the statement's text and declared types.
    pub(super) fn text_number(&self, statement: &PreparedStatement) -> u64 {
        let known = statement.text_number.load(Relaxed);
        if known > 0 {
            return known;
        }
        let count = (statement.parameter_types.len() as u64).to_le_bytes();
        let text = [&count[..], &statement.parameter_types, &statement.sql].concat();
        let number = self.texts.lock().number(text.into());
        statement.text_number.store(number, Relaxed);
        number
    }
}

impl Texts {
    fn number(&mut self, text: Box<[u8]>) -> u64 {
        if let Some(number) = self.known.get(&text) {
            return *number;
        }
        if self.known.len() >= TEXTS_MAX || self.bytes >= TEXT_BYTES_MAX {
            *self = Self::default();
        }
        // A statement keeps its number, also when its database is mirrored anew: none is ever given twice.
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Relaxed) + 1;
        self.bytes += text.len();
        self.known.insert(text, number);
        number
    }
}

impl Place {
    fn is(&self, hash: u64, wanted: &Wanted<'_>) -> bool {
        self.hash == hash && self.settings == wanted.settings && self.text == wanted.text && *self.unit == *wanted.unit
    }

    fn bytes(&self) -> usize {
        // The cache may have given the reply up.
        PLACE_OVERHEAD_BYTES + self.unit.len() + self.frames.len() + self.kept.resident_bytes()
    }
}

impl Table {
    fn new(bytes_max: usize) -> Self {
        Self { places: Box::default(), bytes: 0, bytes_max, hand: 0 }
    }

    /// The unit's reply. None also where it is the cache's turn to be asked.
    pub(super) fn find(&mut self, hash: u64, wanted: &Wanted<'_>) -> Option<&Place> {
        let first = first_of(hash);
        let ways = self.places.get_mut(first..first + WAYS)?;
        let place = ways.iter_mut().flatten().find(|place| place.is(hash, wanted))?;
        place.is_used = true;
        place.uses = place.uses.wrapping_add(1) % PASSES_ONE_IN;
        (place.uses > 0).then_some(&**place)
    }

    /// Whether this reply of the unit is here.
    pub(super) fn has(&self, hash: u64, wanted: &Wanted<'_>, kept: &Arc<CachedReply>) -> bool {
        let first = first_of(hash);
        let ways = self.places.get(first..first + WAYS).unwrap_or_default();
        ways.iter().flatten().any(|place| place.is(hash, wanted) && Arc::ptr_eq(&place.kept, kept))
    }

    /// In place of what is known of the unit, or of another that is not used much.
    pub(super) fn insert(&mut self, hash: u64, wanted: &Wanted<'_>, kept: &Arc<CachedReply>, frames: Vec<u8>) {
        let place = Place {
            hash,
            settings: wanted.settings,
            text: wanted.text,
            unit: wanted.unit.into(),
            kept: Arc::clone(kept),
            frames: frames.into(),
            uses: 0,
            is_used: false,
        };
        let bytes = place.bytes();
        if place.frames.len() > FRAMES_BYTES_MAX || place.unit.len() > UNIT_BYTES_MAX || bytes > self.bytes_max / 16 {
            return;
        }
        if self.places.is_empty() {
            self.places = std::iter::repeat_with(|| None).take(PLACES).collect();
        }
        let first = first_of(hash);
        let ways = &mut self.places[first..first + WAYS];
        let same = ways.iter().position(|known| known.as_ref().is_some_and(|known| known.is(hash, wanted)));
        let idle = || ways.iter().position(|known| known.as_ref().is_none_or(|known| !known.is_used));
        let way = same.or_else(idle).unwrap_or_else(|| {
            // One that is used all the time will be again when the next one looks for a place.
            ways.iter_mut().flatten().for_each(|known| known.is_used = false);
            (hash >> 32) as usize % WAYS
        });
        self.remove(first + way);
        self.make_room(bytes);
        self.bytes += bytes;
        self.places[first + way] = Some(Box::new(place));
    }

    /// What was not used since the hand came by goes first.
    fn make_room(&mut self, bytes: usize) {
        for _ in 0..2 * PLACES {
            if self.bytes + bytes <= self.bytes_max {
                return;
            }
            self.hand = (self.hand + 1) % PLACES;
            match &mut self.places[self.hand] {
                Some(place) if place.is_used => place.is_used = false,
                Some(_) => self.remove(self.hand),
                None => {}
            }
        }
    }

    fn remove(&mut self, at: usize) {
        if let Some(place) = self.places[at].take() {
            self.bytes -= place.bytes();
        }
    }
}

/// The first of the places that are possible.
fn first_of(hash: u64) -> usize {
    hash as usize % PLACES / WAYS * WAYS
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use freshet_engine::result_cache::{Basis, Found, Keep, Keys, Repeated, Share, Withdrawn};

    use super::*;
    use crate::session::effect::{Effect, Written};
    use crate::session::meant::Meant;

    fn kept(bytes: usize) -> Arc<CachedReply> {
        Arc::new(CachedReply {
            row_description: Bytes::new(),
            rows: vec![0; bytes].into(),
            row_count: 1,
            relations: Vec::new(),
            basis: Basis::default(),
            catalog_version: 1,
            folds_settings: false,
            elapsed_us: 0,
            reads: None,
            last: u64::MAX,
            parameters: Box::default(),
            keys: Keys::default(),
            barrier: 0,
            configuration: 0,
            keep: Keep::default(),
            share: Share::default(),
            found: Found::default(),
            repeated: Repeated::default(),
            withdrawn: Withdrawn::default(),
            attachment: Arc::new(()),
        })
    }

    fn wanted(unit: &[u8]) -> Wanted<'_> {
        Wanted { settings: SettingsId(1), text: 0, unit }
    }

    #[test]
    fn a_place_is_of_one_unit_even_where_hashes_are_equal() {
        let mut table = Table::new(1 << 20);
        table.insert(7, &wanted(b"one"), &kept(1), b"reply".to_vec());
        let frames = |table: &mut Table, wanted| table.find(7, &wanted).map(|place| place.frames.to_vec());
        assert_eq!(frames(&mut table, wanted(b"one")), Some(b"reply".to_vec()));
        assert_eq!(frames(&mut table, wanted(b"two")), None);
        assert_eq!(frames(&mut table, Wanted { settings: SettingsId(2), ..wanted(b"one") }), None);
        assert_eq!(frames(&mut table, Wanted { text: 3, ..wanted(b"one") }), None);
        table.insert(7, &wanted(b"two"), &kept(1), b"other".to_vec());
        table.insert(7, &wanted(b"one"), &kept(1), b"newer".to_vec());
        assert_eq!(frames(&mut table, wanted(b"one")), Some(b"newer".to_vec()));
        assert_eq!(frames(&mut table, wanted(b"two")), Some(b"other".to_vec()));
    }

    #[test]
    fn some_hits_are_the_caches() {
        let mut table = Table::new(1 << 20);
        table.insert(7, &wanted(b"one"), &kept(1), Vec::new());
        let passed = (0..10 * u64::from(PASSES_ONE_IN)).filter(|_| table.find(7, &wanted(b"one")).is_none()).count();
        assert_eq!(passed, 10);
    }

    #[test]
    fn a_storm_stays_within_its_bytes_and_leaves_what_is_used() {
        let bytes_max = 400_000;
        let mut table = Table::new(bytes_max);
        let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
        let hot = hasher.hash_one(b"hot");
        table.insert(hot, &wanted(b"hot"), &kept(100), vec![0; 100]);
        let mut lost = 0;
        for n in 0..20_000_u64 {
            if table.find(hot, &wanted(b"hot")).is_none() {
                lost += 1;
                table.insert(hot, &wanted(b"hot"), &kept(100), vec![0; 100]);
            }
            let unit = n.to_le_bytes();
            table.insert(hasher.hash_one(unit), &wanted(&unit), &kept(100), vec![0; 100]);
            assert!(table.bytes <= bytes_max);
        }
        assert!(lost < 400, "{lost}: with what is passed to the cache");
        let counted: usize = table.places.iter().flatten().map(|place| place.bytes()).sum();
        assert_eq!(counted, table.bytes);
        table.insert(1, &wanted(b"large"), &kept(bytes_max), Vec::new());
        assert!(table.find(1, &wanted(b"large")).is_none());
        let mut none = Table::new(0);
        none.insert(1, &wanted(b"one"), &kept(1), Vec::new());
        assert!(none.places.is_empty());
    }

    #[test]
    fn a_text_has_a_number_of_its_own() {
        let statement = |sql: &[u8], types: &[u8]| PreparedStatement {
            id: 1,
            sql: sql.into(),
            parameter_types: types.into(),
            settings: AtomicU64::new(0),
            hangs_on_settings: std::sync::OnceLock::new(),
            catalog: AtomicU64::new(0),
            path: AtomicU64::new(0),
            inferred: std::sync::OnceLock::new(),
            is_other: std::sync::atomic::AtomicBool::new(false),
            meant: Meant::default(),
            typed_under: 0,
            judged_under: 0,
            effect: Effect::Neutral,
            changes: None,
            written: Written::NOTHING,
            text_number: AtomicU64::new(0),
        };
        let recents = Recents::new(1 << 20);
        let one = recents.text_number(&statement(b"SELECT 1", b""));
        assert_eq!(recents.text_number(&statement(b"SELECT 1", b"")), one);
        // What is text in the one is types in the other.
        let types = recents.text_number(&statement(b" 1", b"SELECT"));
        assert!(one > 0 && types > 0 && one != types);
        for n in 0..TEXTS_MAX + 1 {
            recents.text_number(&statement(n.to_string().as_bytes(), b""));
        }
        assert!(recents.text_number(&statement(b"SELECT 1", b"")) > one, "forgotten, and not given to another");
        // Nor by another database's mirror, which the statement may come to.
        let other = Recents::new(1 << 20);
        assert!(other.text_number(&statement(b"SELECT 2", b"")) > one);
        recents.clear();
        assert_eq!(recents.bytes(), 0);
    }
}
