//! Ids for byte strings. A dictionary is translated once: per entry, not per row.

use ahash::RandomState;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int32Type};
use hashbrown::HashTable;

use super::{KeyTable, Purpose};
use crate::types::PgType;

#[derive(Clone, Debug)]
pub(super) struct TextMap {
    table: HashTable<u32>,
    /// End of each id's bytes in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    /// Which id each entry of `ends` is (NULL takes an id without an entry).
    ids: Vec<u32>,
    null: Option<u32>,
    next: u32,
    hasher: RandomState,
    /// The dictionary met last and the id of each of its entries, NONE where not yet known.
    translated: Option<(ArrayRef, Vec<u32>)>,
}

impl Default for TextMap {
    fn default() -> Self {
        Self {
            table: HashTable::new(),
            ends: Vec::new(),
            bytes: Vec::new(),
            ids: Vec::new(),
            null: None,
            next: 0,
            hasher: RandomState::new(),
            translated: None,
        }
    }
}

impl TextMap {
    pub(super) fn len(&self) -> usize {
        self.next as usize
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * 24
    }

    pub(super) fn assign(&mut self, array: &ArrayRef, pg_type: PgType, purpose: Purpose) -> Vec<u32> {
        if let DataType::Dictionary(..) = array.data_type() {
            return self.assign_dictionary(array, pg_type, purpose);
        }
        let mut ids = Vec::with_capacity(array.len());
        let bytes = Bytes::of(array);
        for row in 0..array.len() {
            let id = if array.is_null(row) { self.null_id(purpose) } else { self.id_of(key(bytes.get(row), pg_type)) };
            ids.push(id);
        }
        ids
    }

    fn assign_dictionary(&mut self, array: &ArrayRef, pg_type: PgType, purpose: Purpose) -> Vec<u32> {
        let array = array.as_dictionary::<Int32Type>();
        let values = array.values();
        let mut translation = match self.translated.take() {
            Some((known, translation)) if is_same_array(&known, values) => translation,
            _ => vec![KeyTable::NONE; values.len()],
        };
        let texts = values.as_string::<i32>();
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let mut ids = Vec::with_capacity(array.len());
        let mut translate = |map: &mut Self, code: i32| {
            let id = translation[code as usize];
            if id != KeyTable::NONE {
                return id;
            }
            let id = map.id_of(key(texts.value(code as usize).as_bytes(), pg_type));
            translation[code as usize] = id;
            id
        };
        let codes = array.keys().values().iter();
        match nulls {
            None => ids.extend(codes.map(|code| translate(self, *code))),
            Some(nulls) => {
                ids.extend(codes.zip(nulls).map(
                    |(code, is_valid)| {
                        if is_valid { translate(self, *code) } else { self.null_id(purpose) }
                    },
                ))
            }
        }
        self.translated = Some((values.clone(), translation));
        ids
    }

    pub(super) fn find(&self, array: &ArrayRef, pg_type: PgType) -> Vec<u32> {
        let null = self.null.unwrap_or(KeyTable::NONE);
        let Some(dictionary) = array.as_dictionary_opt::<Int32Type>() else {
            let bytes = Bytes::of(array);
            let find = |row: usize| if array.is_null(row) { null } else { self.find_one(key(bytes.get(row), pg_type)) };
            return (0..array.len()).map(find).collect();
        };
        let texts = dictionary.values().as_string::<i32>();
        let find_entry = |code: usize| self.find_one(key(texts.value(code).as_bytes(), pg_type));
        let nulls = dictionary.nulls().filter(|nulls| nulls.null_count() > 0);
        let codes = dictionary.keys().values();
        if texts.len() > codes.len() {
            let find = |(row, code): (usize, &i32)| {
                if nulls.is_some_and(|nulls| nulls.is_null(row)) { null } else { find_entry(*code as usize) }
            };
            return codes.iter().enumerate().map(find).collect();
        }
        let translation: Vec<u32> = (0..texts.len()).map(find_entry).collect();
        let find = |(row, code): (usize, &i32)| {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) { null } else { translation[*code as usize] }
        };
        codes.iter().enumerate().map(find).collect()
    }

    fn find_one(&self, text: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(text);
        let entry = self.table.find(hash, |entry| self.entry(*entry) == text);
        entry.map_or(KeyTable::NONE, |entry| self.ids[*entry as usize])
    }

    fn id_of(&mut self, text: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(text);
        if let Some(entry) = self.table.find(hash, |entry| self.entry(*entry) == text) {
            return self.ids[*entry as usize];
        }
        let entry = self.ends.len() as u32;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        self.ids.push(self.next);
        self.next += 1;
        let (ends, bytes, hasher) = (&self.ends, &self.bytes, &self.hasher);
        self.table.insert_unique(hash, entry, |entry| hasher.hash_one(stored(ends, bytes, *entry)));
        self.next - 1
    }

    fn entry(&self, entry: u32) -> &[u8] {
        stored(&self.ends, &self.bytes, entry)
    }

    fn null_id(&mut self, purpose: Purpose) -> u32 {
        if !purpose.takes_null() {
            return KeyTable::NONE;
        }
        let next = &mut self.next;
        *self.null.get_or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }
}

fn stored<'a>(ends: &[usize], bytes: &'a [u8], entry: u32) -> &'a [u8] {
    let entry = entry as usize;
    let start = if entry == 0 { 0 } else { ends[entry - 1] };
    &bytes[start..ends[entry]]
}

/// bpchar compares without its padding (PostgreSQL: varchar.c bpchareq).
fn key(text: &[u8], pg_type: PgType) -> &[u8] {
    if pg_type != PgType::Bpchar {
        return text;
    }
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

/// Whether the two are one allocation, which both keep alive.
fn is_same_array(a: &ArrayRef, b: &ArrayRef) -> bool {
    std::ptr::addr_eq(std::sync::Arc::as_ptr(a), std::sync::Arc::as_ptr(b))
}

/// Text or bytea without a dictionary.
enum Bytes<'a> {
    Text(&'a arrow::array::StringArray),
    Binary(&'a arrow::array::BinaryArray),
}

impl<'a> Bytes<'a> {
    fn of(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Binary => Self::Binary(array.as_binary()),
            _ => Self::Text(array.as_string()),
        }
    }

    fn get(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Text(texts) => texts.value(row).as_bytes(),
            Self::Binary(bytes) => bytes.value(row),
        }
    }
}
