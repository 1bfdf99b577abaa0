//! The order of text under collations that are not bytewise, and the case of letters beyond ASCII, as upstream has told it.
//!
//! A deterministic collation orders all texts totally (ties of the library are broken by bytes: varlena.c, varstr_cmp),
//! so the order of a set of texts is a list, and a text's place in it a number: its *rank*. Ranks mean something only
//! within one [`OrderView`], and leave room between each other, so that a few new texts cost little however many are known. A
//! text without a place is noted; the execution that met it has no result, and the proxy asks upstream where the noted texts belong
//! ([`Orders::place`], [`Orders::insert`]).
//!
//! Letters change case one by one: so does the C library (formatting.c, str_tolower by towlower), and so does ICU outside a
//! few languages but for the Greek sigma, which is refused.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::types::{EnumType, Oid};

/// Texts whose places one execution may ask for, and their bytes.
const MISSING_TEXTS_MAX: usize = 100_000;
const MISSING_BYTES_MAX: usize = 8 << 20;
/// Texts of one collation whose places are remembered, and their bytes; beyond, only the last ones asked for are.
const KNOWN_TEXTS_MAX: usize = 400_000;
const KNOWN_BYTES_MAX: usize = 48 << 20;

/// Between the ranks of two texts that were known when the last list was made.
const ROOM: i64 = 1 << 20;
/// So many texts that came since are kept apart from that list.
const ADDED_MAX: usize = 2_048;

/// Everything known of the order of texts, by collation. Lives as long as upstream's process: another one may sort by
/// another version of the library.
#[derive(Debug, Default)]
pub struct Orders {
    upstream_started_at: i64,
    known: RwLock<Arc<HashMap<Oid, Arc<KnownOrder>>>>,
    letters: RwLock<Arc<HashMap<Oid, Letters>>>,
}

/// Of characters beyond ASCII: in lower and in upper case.
pub type Letters = HashMap<char, [Box<str>; 2], ahash::RandomState>;

/// Texts in the order of one collation.
#[derive(Debug, Default)]
pub struct KnownOrder {
    listed: Arc<Listed>,
    added: Arc<Added>,
    bytes: usize,
}

/// The rank of the first is [`ROOM`], that of the next twice as much...
#[derive(Debug, Default)]
struct Listed {
    texts: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u32, ahash::RandomState>,
}

/// With ranks between those.
#[derive(Clone, Debug, Default)]
struct Added {
    texts: BTreeMap<i64, Arc<str>>,
    ranks: HashMap<Arc<str>, i64, ahash::RandomState>,
}

/// What an execution did not know, by collation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Texts without a place.
    pub texts: HashMap<Oid, Vec<Arc<str>>>,
    pub letters: HashMap<Oid, Vec<char>>,
}

impl Orders {
    /// `upstream_started_at`: pg_postmaster_start_time(), microseconds since 2000.
    pub fn new(upstream_started_at: i64) -> Self {
        Self { upstream_started_at, ..Self::default() }
    }

    pub fn upstream_started_at(&self) -> i64 {
        self.upstream_started_at
    }

    /// What is known now.
    pub fn view(&self) -> OrderView {
        OrderView {
            upstream_started_at: self.upstream_started_at,
            known: Arc::clone(&self.known.read()),
            letters: Arc::clone(&self.letters.read()),
            missing: RefCell::default(),
        }
    }

    pub fn known(&self, collation: Oid) -> Arc<KnownOrder> {
        self.known.read().get(&collation).cloned().unwrap_or_default()
    }

    /// Puts an order in force that has all of `fresh`; where it has grown too large, `fresh` alone, which is in order, too.
    pub fn insert(&self, collation: Oid, whole: Vec<Arc<str>>, fresh: &dyn Fn(&str) -> bool) {
        let bytes: usize = whole.iter().map(|text| text.len()).sum();
        let is_large = whole.len() > KNOWN_TEXTS_MAX || bytes > KNOWN_BYTES_MAX;
        let texts = if is_large { whole.into_iter().filter(|text| fresh(text)).collect() } else { whole };
        self.put(collation, KnownOrder::new(texts));
    }

    /// Puts `known`, of the collation, with more texts in force: in order, each with the rank of the known text that it is next behind, or
    /// None before the first. Where that would be too much, `fresh` of all of them.
    pub fn place(
        &self,
        collation: Oid,
        known: &KnownOrder,
        placed: &[(Option<i64>, Arc<str>)],
        fresh: &dyn Fn(&str) -> bool,
    ) {
        match known.with(placed) {
            Some(order) if order.len() <= KNOWN_TEXTS_MAX && order.bytes <= KNOWN_BYTES_MAX => {
                self.put(collation, order)
            }
            _ => self.insert(collation, known.merged(placed), fresh),
        }
    }

    fn put(&self, collation: Oid, order: KnownOrder) {
        let mut known = self.known.write();
        Arc::make_mut(&mut known).insert(collation, Arc::new(order));
    }
}

impl Orders {
    /// Bounded by the number of characters.
    pub fn insert_letters(&self, collation: Oid, letters: Letters) {
        let mut known = self.letters.write();
        Arc::make_mut(&mut known).entry(collation).or_default().extend(letters);
    }
}

impl KnownOrder {
    fn new(texts: Vec<Arc<str>>) -> Self {
        let places = texts.iter().cloned().zip(0..).collect();
        let bytes = texts.iter().map(|text| text.len()).sum();
        Self { listed: Arc::new(Listed { texts, places }), added: Arc::default(), bytes }
    }

    pub fn len(&self) -> usize {
        self.listed.texts.len() + self.added.texts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn has(&self, text: &str) -> bool {
        self.rank(text).is_some()
    }

    pub fn rank(&self, text: &str) -> Option<i64> {
        match self.listed.places.get(text) {
            Some(place) => Some(rank_at(*place as usize)),
            None => self.added.ranks.get(text).copied(),
        }
    }

    fn text(&self, rank: i64) -> Option<&Arc<str>> {
        match rank % ROOM {
            0 => self.listed.texts.get(usize::try_from(rank / ROOM - 1).ok()?),
            _ => self.added.texts.get(&rank),
        }
    }

    /// All with their ranks, in order, from this place of the list on, or from the first.
    pub fn from(&self, place: usize) -> impl Iterator<Item = (i64, &Arc<str>)> {
        let listed = self.listed.texts.iter().enumerate().skip(place).map(|(place, text)| (rank_at(place), text));
        let start = if place == 0 { 0 } else { rank_at(place) };
        let mut listed = listed.peekable();
        let mut added = self.added.texts.range(start..).map(|(rank, text)| (*rank, text)).peekable();
        std::iter::from_fn(move || match (listed.peek(), added.peek()) {
            (Some((of_list, _)), Some((rank, _))) if rank < of_list => added.next(),
            (Some(_), _) => listed.next(),
            (None, _) => added.next(),
        })
    }

    /// Each so manieth text of the list but the first.
    pub fn pivots(&self, step: usize) -> Vec<&str> {
        self.listed.texts.iter().step_by(step).skip(1).map(|text| &**text).collect()
    }

    /// All from that pivot on (0: from the first) and before the next.
    pub fn bucket(&self, step: usize, number: usize) -> impl Iterator<Item = (i64, &Arc<str>)> {
        let next = (number + 1) * step;
        let end = if next < self.listed.texts.len() { rank_at(next) } else { i64::MAX };
        self.from(number * step).take_while(move |(rank, _)| *rank < end)
    }

    /// None: there is no room, or too much would be kept apart.
    fn with(&self, placed: &[(Option<i64>, Arc<str>)]) -> Option<Self> {
        if self.added.texts.len() + placed.len() > ADDED_MAX {
            return None;
        }
        let mut added = Added::clone(&self.added);
        for of_gap in placed.chunk_by(|(one, _), (other, _)| one == other) {
            let before = of_gap[0].0.unwrap_or(0);
            let count = of_gap.len() as i64 + 1;
            let step = match self.next_rank(before) {
                Some(behind) => (behind - before) / count,
                // There is no end of room.
                None => ROOM / 2 - 1,
            };
            for (rank, (_, text)) in (1..).map(|number| before + number * step).zip(of_gap) {
                if step == 0 || rank % ROOM == 0 {
                    return None;
                }
                added.texts.insert(rank, Arc::clone(text));
                added.ranks.insert(Arc::clone(text), rank);
            }
        }
        let bytes = self.bytes + placed.iter().map(|(_, text)| text.len()).sum::<usize>();
        Some(Self { listed: Arc::clone(&self.listed), added: Arc::new(added), bytes })
    }

    /// Of the text next behind the one of that rank.
    fn next_rank(&self, rank: i64) -> Option<i64> {
        let place = usize::try_from(rank / ROOM).unwrap_or(usize::MAX);
        let listed = (place < self.listed.texts.len()).then(|| rank_at(place));
        let added = self.added.texts.range((Bound::Excluded(rank), Bound::Unbounded)).next().map(|(rank, _)| *rank);
        listed.into_iter().chain(added).min()
    }

    fn merged(&self, placed: &[(Option<i64>, Arc<str>)]) -> Vec<Arc<str>> {
        let mut placed = placed.iter().peekable();
        let mut all = Vec::with_capacity(self.len() + placed.len());
        let mut take = |before: Option<i64>, all: &mut Vec<Arc<str>>| {
            while let Some((_, text)) = placed.next_if(|(rank, _)| *rank == before) {
                all.push(Arc::clone(text));
            }
        };
        take(None, &mut all);
        for (rank, text) in self.from(0) {
            all.push(Arc::clone(text));
            take(Some(rank), &mut all);
        }
        all
    }
}

/// Of the text at that place of the list.
fn rank_at(place: usize) -> i64 {
    (place as i64 + 1) * ROOM
}

/// The orders as one execution sees them, and what it has missed.
#[derive(Debug)]
pub struct OrderView {
    upstream_started_at: i64,
    known: Arc<HashMap<Oid, Arc<KnownOrder>>>,
    letters: Arc<HashMap<Oid, Letters>>,
    missing: RefCell<Noted>,
}

/// Whose order it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A collation's, that upstream tells.
    Collation(Oid),
    /// That of an enum's labels.
    Labels(EnumType),
}

/// What a letter is changed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Lower,
    Upper,
}

#[derive(Debug, Default)]
struct Noted {
    texts: HashMap<Oid, hashbrown::HashSet<Arc<str>, ahash::RandomState>>,
    letters: HashMap<Oid, BTreeSet<char>>,
    count: usize,
    bytes: usize,
}

impl OrderView {
    pub fn upstream_started_at(&self) -> i64 {
        self.upstream_started_at
    }

    /// Whether none has been noted.
    pub fn has_all_letters(&self) -> bool {
        self.missing.borrow().letters.is_empty()
    }

    /// The place of `text`; anything if it has none, which is noted. None: too many have none.
    pub fn rank(&self, collation: Oid, text: &str) -> Option<i64> {
        if let Some(rank) = self.known.get(&collation).and_then(|order| order.rank(text)) {
            return Some(rank);
        }
        let mut noted = self.missing.borrow_mut();
        let Noted { texts, count, bytes, .. } = &mut *noted;
        let texts = texts.entry(collation).or_default();
        if !texts.contains(text) {
            texts.insert(text.into());
            *count += 1;
            *bytes += text.len();
        }
        (*count <= MISSING_TEXTS_MAX && *bytes <= MISSING_BYTES_MAX).then_some(0)
    }

    /// The text at a place that [`Self::rank`] gave.
    pub fn text(&self, collation: Oid, rank: i64) -> &str {
        let order = self.known.get(&collation);
        // Only where texts were missing is there none, and then nobody sees the result.
        order.and_then(|order| order.text(rank)).map_or("", |text| text)
    }

    /// Appends `text` with its letters in that case; those that are not known are noted.
    pub fn fold(&self, collation: Oid, text: &str, case: Case, out: &mut String) {
        let known = self.letters.get(&collation);
        for character in text.chars() {
            match (character.is_ascii(), case) {
                (true, Case::Lower) => out.push(character.to_ascii_lowercase()),
                (true, Case::Upper) => out.push(character.to_ascii_uppercase()),
                (false, _) => match known.and_then(|letters| letters.get(&character)) {
                    Some(both) => out.push_str(&both[case as usize]),
                    None => {
                        self.missing.borrow_mut().letters.entry(collation).or_default().insert(character);
                    }
                },
            }
        }
    }

    /// What is to be asked before the execution can have a result. None: it has one, or there is too much to ask.
    pub fn into_missing(self) -> Option<Missing> {
        let noted = self.missing.into_inner();
        if noted.count > MISSING_TEXTS_MAX || noted.bytes > MISSING_BYTES_MAX {
            return None;
        }
        let missing = Missing {
            texts: noted.texts.into_iter().map(|(collation, texts)| (collation, texts.into_iter().collect())).collect(),
            letters: noted
                .letters
                .into_iter()
                .map(|(collation, letters)| (collation, letters.into_iter().collect()))
                .collect(),
        };
        (missing != Missing::default()).then_some(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<Arc<str>> {
        list.iter().map(|text| Arc::from(*text)).collect()
    }

    #[test]
    fn ranks_are_places_and_what_has_none_is_noted() {
        let orders = Orders::new(0);
        orders.insert(100, texts(&["a", "B", "c"]), &|_| true);
        let view = orders.view();
        assert!(view.rank(100, "a") < view.rank(100, "B") && view.rank(100, "B") < view.rank(100, "c"));
        assert_eq!(view.text(100, view.rank(100, "B").unwrap()), "B");
        // A newer order does not reach the view.
        orders.insert(100, texts(&["A", "a", "B", "c"]), &|_| true);
        assert_eq!(view.rank(100, "a"), Some(ROOM));
        assert_eq!(view.into_missing(), None);
        let view = orders.view();
        view.rank(100, "d");
        view.rank(101, "a");
        view.rank(101, "a");
        let missing = view.into_missing().expect("two texts were missing");
        assert_eq!((missing.texts[&100].len(), missing.texts[&101].len()), (1, 1));
    }

    #[test]
    fn letters_change_case_as_upstream_said() {
        let orders = Orders::new(0);
        let view = orders.view();
        view.fold(100, "aÄ", Case::Lower, &mut String::new());
        assert_eq!(view.into_missing().expect("one letter is unknown").letters[&100], ['Ä']);
        orders.insert_letters(100, [('Ä', ["ä".into(), "Ä".into()])].into_iter().collect());
        let (view, mut folded) = (orders.view(), String::new());
        view.fold(100, "BÄ-", Case::Lower, &mut folded);
        assert_eq!((folded.as_str(), view.into_missing()), ("bä-", None));
    }

    #[test]
    fn too_much_that_is_missing_is_not_asked_for() {
        let view = Orders::new(0).view();
        let known = (0..=MISSING_TEXTS_MAX).map(|number| view.rank(100, &number.to_string())).collect::<Vec<_>>();
        assert_eq!((known[0], known[MISSING_TEXTS_MAX]), (Some(0), None));
        assert_eq!(view.into_missing(), None);
    }

    #[test]
    fn a_large_order_is_forgotten_but_for_what_was_asked() {
        let orders = Orders::new(0);
        let all: Vec<Arc<str>> = (0..=KNOWN_TEXTS_MAX).map(|number| number.to_string().into()).collect();
        orders.insert(100, all, &|text| text.len() == 1);
        assert_eq!(orders.known(100).len(), 10);
    }

    /// Numbers by their length, then their digits: an order of its own.
    fn sorted(mut list: Vec<Arc<str>>) -> Vec<Arc<str>> {
        list.sort_by_key(|text| (text.len(), Arc::clone(text)));
        list
    }

    /// What upstream would say of new texts: the rank of the known one before each.
    fn placed(known: &KnownOrder, new: &[Arc<str>]) -> Vec<(Option<i64>, Arc<str>)> {
        let all: Vec<(i64, &Arc<str>)> = known.from(0).collect();
        let before = |new: &Arc<str>| {
            let count = all.partition_point(|(_, text)| (text.len(), *text) < (new.len(), new));
            count.checked_sub(1).map(|at| all[at].0)
        };
        new.iter().map(|text| (before(text), Arc::clone(text))).collect()
    }

    #[test]
    fn texts_that_come_later_have_ranks_between_the_others() {
        let orders = Orders::new(0);
        orders.insert(100, sorted((0..1_000).map(|number| (number * 7).to_string().into()).collect()), &|_| true);
        let mut seed = 5_u64;
        for round in 0..200 {
            let known = orders.known(100);
            let mut new = BTreeSet::new();
            for _ in 0..30 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let number = (seed >> 33) % 100_000;
                new.insert(Arc::<str>::from(number.to_string()));
            }
            // Always behind all others, and always between the same two.
            new.insert((1_000_000 + round).to_string().into());
            new.insert(Arc::from(format!("1{}", "0".repeat(10 + round))));
            let new = sorted(new.into_iter().filter(|text| !known.has(text)).collect());
            orders.place(100, &known, &placed(&known, &new), &|_| true);
        }
        let known = orders.known(100);
        let all: Vec<(i64, Arc<str>)> = known.from(0).map(|(rank, text)| (rank, Arc::clone(text))).collect();
        assert!(all.len() > 5_000 && all.len() == known.len());
        assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0), "ranks rise");
        assert_eq!(
            all.iter().map(|(_, text)| Arc::clone(text)).collect::<Vec<_>>(),
            sorted(all.iter().map(|(_, text)| Arc::clone(text)).collect())
        );
        let view = orders.view();
        for (rank, text) in &all {
            assert_eq!((view.rank(100, text), view.text(100, *rank)), (Some(*rank), &**text));
        }
        // Buckets are the whole, cut at the pivots.
        for step in [3, 64, 100_000] {
            let pivots = known.pivots(step);
            let buckets: Vec<Vec<&str>> = (0..=pivots.len())
                .map(|number| known.bucket(step, number).map(|(_, text)| &**text).collect())
                .collect();
            assert_eq!(buckets.concat(), all.iter().map(|(_, text)| &**text).collect::<Vec<_>>());
            assert!(buckets.iter().skip(1).zip(&pivots).all(|(bucket, pivot)| bucket[0] == *pivot));
        }
        assert_eq!(view.into_missing(), None);
    }
}
