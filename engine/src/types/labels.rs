//! Enum types of upstream's. A value is held as its label, as enum_out prints it; labels have the order of pg_enum.enumsortorder.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use parking_lot::RwLock;

use super::Oid;

/// Definitions kept, and the bytes of their labels: they stay for the life of the process, so that a type is copied like any other.
const DEFINITIONS_MAX: usize = 10_000;
const LABEL_BYTES_MAX: usize = 16 << 20;

/// An enum type with the labels that one reading of the catalog found. Types that differ in a label are different, and so are those of
/// which a label was another one in between: rows may have come with that.
#[derive(Clone, Copy)]
pub struct EnumType(&'static Definition);

struct Definition {
    number: u32,
    oid: Oid,
    name: Box<str>,
    labels: Vec<Box<str>>,
    places: HashMap<Box<str>, i64, ahash::RandomState>,
}

#[derive(Default)]
struct Known {
    by_content: HashMap<(Oid, i64, Box<str>, Vec<Box<str>>), EnumType, ahash::RandomState>,
    all: Vec<EnumType>,
    label_bytes: usize,
}

static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(RwLock::default);

impl EnumType {
    /// The type of this OID and `typname` with these labels, in order; `changes` is another number after each change of them. None: too
    /// many types have been seen.
    pub fn of(oid: Oid, changes: i64, name: &str, labels: &[&str]) -> Option<Self> {
        let labels: Vec<Box<str>> = labels.iter().map(|label| Box::from(*label)).collect();
        let content = (oid, changes, Box::from(name), labels);
        if let Some(known) = KNOWN.read().by_content.get(&content) {
            return Some(*known);
        }
        let mut known = KNOWN.write();
        if let Some(known) = known.by_content.get(&content) {
            return Some(*known);
        }
        let bytes = known.label_bytes + content.3.iter().map(|label| label.len()).sum::<usize>();
        if known.all.len() >= DEFINITIONS_MAX || bytes > LABEL_BYTES_MAX {
            return None;
        }
        let (_, _, name, labels) = content.clone();
        let places = labels.iter().cloned().zip(0..).collect();
        let number = u32::try_from(known.all.len()).ok()?;
        let new = Self(Box::leak(Box::new(Definition { number, oid, name, labels, places })));
        known.label_bytes = bytes;
        known.all.push(new);
        known.by_content.insert(content, new);
        Some(new)
    }

    /// The type that [`Self::number`] stands for.
    pub fn of_number(number: u32) -> Option<Self> {
        KNOWN.read().all.get(number as usize).copied()
    }

    /// Its own within this process.
    pub fn number(self) -> u32 {
        self.0.number
    }

    pub fn oid(self) -> Oid {
        self.0.oid
    }

    /// `pg_type.typname`.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The place of a label in the type's order, from 0. None: the type has no such label.
    pub fn place(self, label: &str) -> Option<i64> {
        self.0.places.get(label).copied()
    }

    /// The label at a place.
    pub fn label(self, place: i64) -> Option<&'static str> {
        self.0.labels.get(usize::try_from(place).ok()?).map(|label| &**label)
    }
}

impl fmt::Debug for EnumType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.name, self.0.oid)
    }
}

impl PartialEq for EnumType {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for EnumType {}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}

impl PartialOrd for EnumType {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EnumType {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.number.cmp(&other.0.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_definitions_are_one_type_and_others_are_not() {
        let mood = EnumType::of(70_001, 1, "mood", &["sad", "ok", "happy"]).expect("room");
        assert_eq!(EnumType::of(70_001, 1, "mood", &["sad", "ok", "happy"]), Some(mood));
        assert_eq!(EnumType::of_number(mood.number()), Some(mood));
        assert_eq!((mood.place("sad"), mood.place("happy"), mood.place("glad")), (Some(0), Some(2), None));
        assert_eq!((mood.label(1), mood.label(3), mood.label(-1)), (Some("ok"), None, None));
        for other in [
            EnumType::of(70_002, 1, "mood", &["sad", "ok", "happy"]),
            EnumType::of(70_001, 1, "mood", &["sad", "happy", "ok"]),
            EnumType::of(70_001, 1, "temper", &["sad", "ok", "happy"]),
            EnumType::of(70_001, 1, "mood", &["sad", "ok", "happy", "glad"]),
            EnumType::of(70_001, 2, "mood", &["sad", "ok", "happy"]),
        ] {
            assert!(other.is_some_and(|other| other != mood), "{other:?}");
        }
    }
}
