//! [`KeyHash`]: values of a column told apart, where equality is that of the representation.
//!
//! What writes and what reads a row may name its key by different types (`int8` for an `int4` column): integers hash by their
//! number. Two values that `=` takes for equal have one hash; two hashes are two values, one hash may be two. Never kept
//! beyond the process.

use std::sync::LazyLock;

use crate::types::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(u64);

static HASHER: LazyLock<ahash::RandomState> = LazyLock::new(ahash::RandomState::new);

impl KeyHash {
    /// None: a type whose equal values may have several representations, or NULL, which equals nothing.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int2(v) => Some(Self::of_integer(i64::from(*v))),
            Value::Int4(v) => Some(Self::of_integer(i64::from(*v))),
            Value::Int8(v) => Some(Self::of_integer(*v)),
            Value::Text(text) => Some(Self::of_text(text)),
            Value::Uuid(bytes) => Some(Self::of_uuid(bytes)),
            Value::Network(held) => Some(Self::of_network(held)),
            Value::Date(v) => Some(Self::of_integer(i64::from(*v))),
            Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => Some(Self::of_integer(*v)),
            Value::Null
            | Value::Bool(_)
            | Value::Float4(_)
            | Value::Float8(_)
            | Value::Numeric(_)
            | Value::Interval(_)
            | Value::Bytea(_)
            | Value::Array(_) => None,
        }
    }

    pub fn of_integer(number: i64) -> Self {
        Self(HASHER.hash_one(number))
    }

    /// Of a deterministic collation: equal bytes.
    pub fn of_text(text: &str) -> Self {
        Self(HASHER.hash_one(text))
    }

    pub fn of_uuid(bytes: &[u8; 16]) -> Self {
        Self(HASHER.hash_one(bytes))
    }

    /// Of an inet or a cidr, as it is held.
    pub fn of_network(held: &[u8]) -> Self {
        Self(HASHER.hash_one(held))
    }

    /// A place among `places`, a power of two; `of` tells apart what has the same values.
    pub fn place(self, of: u64, places: usize) -> usize {
        // The multiplier of splitmix64: neighbouring numbers come to lie far apart.
        let mixed = (self.0 ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as usize & (places - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_of_different_integer_types_have_one_hash() {
        let five = KeyHash::of(&Value::Int4(5));
        assert!(five.is_some());
        assert_eq!(KeyHash::of(&Value::Int2(5)), five);
        assert_eq!(KeyHash::of(&Value::Int8(5)), five);
        assert_ne!(KeyHash::of(&Value::Int8(-5)), five);
        assert_eq!(KeyHash::of(&Value::Text("5".into())), Some(KeyHash::of_text("5")));
        assert_eq!(KeyHash::of(&Value::Null), None);
        assert_eq!(KeyHash::of(&Value::Float8(5.0)), None, "0 and -0 are equal");
    }

    #[test]
    fn places_are_spread_by_value_and_by_column() {
        let places = 1 << 12;
        let of_one: std::collections::HashSet<usize> =
            (0..1_000).map(|key| KeyHash::of_integer(key).place(1, places)).collect();
        assert!(of_one.len() > 800, "{}", of_one.len());
        let moved = (0..1_000).filter(|key| {
            let hash = KeyHash::of_integer(*key);
            hash.place(1, places) != hash.place(2, places)
        });
        assert!(moved.count() > 900);
    }
}
