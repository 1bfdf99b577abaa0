//! Collects text into an array: a dictionary while few values are distinct, plain strings otherwise.

use std::sync::Arc;

use ahash::RandomState;
use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, NullBufferBuilder, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Int32Type};
use hashbrown::HashTable;

/// More distinct values than this are not kept as a dictionary: its point is that work is done once per value.
const DISTINCT_MAX: usize = 1024;
/// Up to so many rows the share of distinct values says little.
const ROWS_FEW: usize = 256;
/// Beyond [`ROWS_FEW`] rows, at most one in so many may bring a new value.
const ROWS_PER_VALUE_MIN: usize = 4;

/// Up to so many rows, where that is known before, no value is looked for among the others.
const ROWS_PLAIN: usize = 8;

/// A text column in the making.
#[derive(Debug)]
pub(super) struct TextBuilder {
    nulls: NullBufferBuilder,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Dictionary(Dictionary),
    Plain(Strings),
}

/// Strings end to end. `offsets` into `bytes`: where each begins, and where the last ends.
#[derive(Debug)]
struct Strings {
    bytes: String,
    offsets: Vec<i32>,
}

#[derive(Debug)]
struct Dictionary {
    keys: Vec<i32>,
    values: Strings,
    /// Keys by the hash of their value.
    index: HashTable<i32>,
    hasher: RandomState,
    /// The key of the row before: neighbours are often equal.
    last: Option<i32>,
    /// What [`TextBuilder::following`] began with: the values and how many there are.
    inherited: Option<(ArrayRef, usize)>,
}

impl TextBuilder {
    /// 0 rows: it is not known how many.
    pub(super) fn with_capacity(rows: usize) -> Self {
        let nulls = NullBufferBuilder::new(rows);
        let rows = match rows {
            1..=ROWS_PLAIN => Rows::Plain(Strings::with_capacity(rows)),
            _ => Rows::Dictionary(Dictionary::with_capacity(rows)),
        };
        Self { nulls, rows }
    }

    /// Takes over the values of a dictionary array.
    pub(super) fn following(rows: usize, previous: &ArrayRef) -> Self {
        let mut dictionary = Dictionary::with_capacity(rows);
        // Plain strings are no reason to start with them: a small chunk may have had too few rows to tell.
        if let DataType::Dictionary(..) = previous.data_type() {
            let values = previous.as_dictionary::<Int32Type>().values();
            if values.len() <= DISTINCT_MAX {
                dictionary.inherit(values);
            }
        }
        Self { nulls: NullBufferBuilder::new(rows), rows: Rows::Dictionary(dictionary) }
    }

    pub(super) fn append_null(&mut self) {
        self.nulls.append_null();
        match &mut self.rows {
            Rows::Dictionary(dictionary) => dictionary.keys.push(0),
            Rows::Plain(strings) => strings.push(""),
        }
    }

    #[inline]
    pub(super) fn append(&mut self, text: &str) {
        self.nulls.append_non_null();
        match &mut self.rows {
            Rows::Plain(strings) => strings.push(text),
            Rows::Dictionary(dictionary) => {
                if !dictionary.push(text) {
                    let mut strings = dictionary.expand();
                    strings.push(text);
                    self.rows = Rows::Plain(strings);
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nulls.len()
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        let nulls = self.nulls.finish();
        match self.rows {
            Rows::Plain(strings) => Arc::new(strings.into_array(nulls)),
            Rows::Dictionary(mut dictionary) => {
                if dictionary.values.len() == 0 {
                    // A key must point at something, even that of a NULL.
                    dictionary.values.push("");
                }
                let keys = Int32Array::new(dictionary.keys.into(), nulls);
                let values = match dictionary.inherited {
                    Some((values, count)) if count == dictionary.values.len() => values,
                    _ => Arc::new(dictionary.values.into_array(None)),
                };
                Arc::new(DictionaryArray::new(keys, values))
            }
        }
    }
}

impl Strings {
    fn with_capacity(count: usize) -> Self {
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        Self { bytes: String::new(), offsets }
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn get(&self, index: usize) -> &str {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// Panics beyond 2 GiB; chunks are bounded in rows, and a row of upstream's is below 1 GiB.
    #[inline]
    fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.offsets.push(i32::try_from(self.bytes.len()).expect("a chunk's text column is below 2 GiB"));
    }

    fn into_array(mut self, nulls: Option<arrow::buffer::NullBuffer>) -> StringArray {
        self.offsets.shrink_to_fit();
        StringArray::new(OffsetBuffer::new(self.offsets.into()), self.bytes.into_bytes().into(), nulls)
    }
}

impl Dictionary {
    fn with_capacity(rows: usize) -> Self {
        Self {
            keys: Vec::with_capacity(rows),
            values: Strings::with_capacity(0),
            index: HashTable::new(),
            hasher: RandomState::new(),
            last: None,
            inherited: None,
        }
    }

    fn inherit(&mut self, values: &ArrayRef) {
        for value in values.as_string::<i32>().iter() {
            self.insert(value.unwrap_or_default());
        }
        self.inherited = Some((Arc::clone(values), self.values.len()));
    }

    /// False if `text` would be one distinct value too many; nothing is appended then.
    #[inline]
    fn push(&mut self, text: &str) -> bool {
        if let Some(last) = self.last
            && self.values.get(last as usize) == text
        {
            self.keys.push(last);
            return true;
        }
        let hash = self.hasher.hash_one(text);
        let found = self.index.find(hash, |&key| self.values.get(key as usize) == text).copied();
        let key = match found {
            Some(key) => key,
            None if self.is_full() => return false,
            None => self.insert_hashed(text, hash),
        };
        self.last = Some(key);
        self.keys.push(key);
        true
    }

    fn is_full(&self) -> bool {
        let distinct = self.values.len();
        distinct >= DISTINCT_MAX || (self.keys.len() >= ROWS_FEW && distinct * ROWS_PER_VALUE_MIN > self.keys.len())
    }

    fn insert(&mut self, text: &str) {
        self.insert_hashed(text, self.hasher.hash_one(text));
    }

    fn insert_hashed(&mut self, text: &str, hash: u64) -> i32 {
        let key = self.values.len() as i32;
        self.values.push(text);
        let Self { index, values, hasher, .. } = self;
        index.insert_unique(hash, key, |&key| hasher.hash_one(values.get(key as usize)));
        key
    }

    /// The rows as plain strings.
    fn expand(&self) -> Strings {
        let mut strings = Strings::with_capacity(self.keys.capacity());
        for &key in &self.keys {
            // The key of a NULL before the first value points at nothing.
            strings.push(if (key as usize) < self.values.len() { self.values.get(key as usize) } else { "" });
        }
        strings
    }
}
