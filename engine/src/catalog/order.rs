//! The order of text under collations that are not bytewise, and the case of letters beyond ASCII, as upstream has told it.
//!
//! A deterministic collation orders all texts totally (ties of the library are broken by bytes: varlena.c, varstr_cmp),
//! so the order of a set of texts is a list, and a text's place in it a number: its *rank*. Ranks mean something only
//! within one [`OrderView`]. A text without a place is noted; the execution that met it has no result, and the proxy asks
//! upstream where the noted texts belong ([`Orders::insert`]).
//!
//! Letters change case one by one: so does the C library (formatting.c, str_tolower by towlower), and so does ICU outside a
//! few languages but for the Greek sigma, which is refused.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::types::{EnumType, Oid};

/// Texts whose places one execution may ask for, and their bytes.
const MISSING_TEXTS_MAX: usize = 100_000;
const MISSING_BYTES_MAX: usize = 8 << 20;
/// Texts of one collation whose places are remembered, and their bytes; beyond, only the last ones asked for are.
const KNOWN_TEXTS_MAX: usize = 400_000;
const KNOWN_BYTES_MAX: usize = 48 << 20;

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
    texts: Vec<Arc<str>>,
    ranks: HashMap<Arc<str>, u32, ahash::RandomState>,
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
        let order = Arc::new(KnownOrder::new(texts));
        let mut known = self.known.write();
        Arc::make_mut(&mut known).insert(collation, order);
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
        let ranks = texts.iter().cloned().zip(0..).collect();
        Self { texts, ranks }
    }

    pub fn texts(&self) -> &[Arc<str>] {
        &self.texts
    }

    pub fn has(&self, text: &str) -> bool {
        self.ranks.contains_key(text)
    }
}

/// The orders as one execution sees them, and what it has missed.
#[derive(Debug)]
pub struct OrderView {
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
    /// The place of `text`; anything if it has none, which is noted. None: too many have none.
    pub fn rank(&self, collation: Oid, text: &str) -> Option<i64> {
        if let Some(rank) = self.known.get(&collation).and_then(|order| order.ranks.get(text)) {
            return Some(i64::from(*rank));
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
        order.and_then(|order| order.texts.get(usize::try_from(rank).ok()?)).map_or("", |text| text)
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
        assert_eq!(view.rank(100, "a"), Some(0));
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
        assert_eq!(orders.known(100).texts().len(), 10);
    }
}
