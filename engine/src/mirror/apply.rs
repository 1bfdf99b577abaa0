//! The changes of one transaction, or of several in a row, to one table → a [`TableDelta`] on the table's newest version.
//!
//! Rows that they make stay in their wire form until the end, found by the bytes of their key: a value has
//! one binary form, so equal bytes are the same stored value. Only what is left of them is decoded into columns.
//! A row is identified as PostgreSQL does (PostgreSQL: Publication, replica identity): by key, or under FULL by the
//! whole row, of which any one of several equal rows will do.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashTable;

use super::assemble::{Binding, OldSpan, RowChange, TableChanges};
use super::pgoutput::{Cell, TupleBytes};
use crate::catalog::ReplicaIdentity;
use crate::planted::{Bug, is_planted};
use crate::table::build::{CellValue, ChunkBuilder};
use crate::table::{RowAt, TableDelta, TableVersion};
use crate::types::access::value_at;
use crate::types::{FormatSettings, Value, binary, text};

/// Why a table can no longer be followed.
pub type PoisonReason = Cow<'static, str>;

const OTHER_IDENTITY: PoisonReason = Cow::Borrowed("an old row of another replica identity");

/// The net effect on `base` of the changes of these transactions, in their order; `binding` is of the layout that all of them have.
pub fn delta_of(
    base: &Arc<TableVersion>,
    binding: &Binding,
    transactions: &[&TableChanges],
) -> Result<TableDelta, PoisonReason> {
    let mut rows = TransactionRows::new(base, binding);
    for &changes in transactions {
        if let Some(why) = changes.lost {
            return Err(why.into());
        }
        for change in &changes.changes {
            match *change {
                RowChange::Insert { new } => rows.insert(changes.tuple(new))?,
                RowChange::Update { old, new } => {
                    let old = old.map(|old| rows.old_tuple(changes, old)).transpose()?;
                    rows.update(old, changes.tuple(new))?;
                }
                RowChange::Delete { old } => rows.delete(rows.old_tuple(changes, old)?)?,
                RowChange::Truncate => rows.truncate(),
            }
        }
    }
    rows.finish()
}

/// The transactions' own rows and what they have done to the base.
struct TransactionRows<'a> {
    binding: &'a Binding,
    delta: TableDelta,
    /// Schema columns that identify a row, beside `identity`, their positions in a tuple.
    columns: Vec<usize>,
    identity: Vec<usize>,
    by: Identity,
    own: Vec<OwnRow<'a>>,
    /// Alive rows of `own` by the hash of their identity's bytes. Under FULL an entry heads a list of equal rows.
    index: HashTable<u32>,
    hasher: ahash::RandomState,
    settings: FormatSettings,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Identity {
    Key,
    Full,
}

/// A row that one of the transactions has inserted or updated.
struct OwnRow<'a> {
    tuple: TupleBytes<'a>,
    /// What stands in place of the tuple's unchanged cells, by position.
    patches: Vec<(usize, Source<'a>)>,
    hash: u64,
    /// The next of several equal rows, under FULL.
    next_equal: Option<u32>,
    is_alive: bool,
    /// Its key may already be in the table: to be checked in the end.
    is_new_key: bool,
}

/// Where a cell's value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source<'a> {
    Null,
    Text(&'a [u8]),
    Binary(&'a [u8]),
    /// The same column of a row of the base.
    Stored(RowAt),
}

/// A row found by its identity.
#[derive(Clone, Copy)]
enum Found {
    Own(u32),
    Base(RowAt),
}

impl<'a> TransactionRows<'a> {
    fn new(base: &Arc<TableVersion>, binding: &'a Binding) -> Self {
        let by = match base.schema.identity {
            ReplicaIdentity::Key(_) => Identity::Key,
            ReplicaIdentity::Full | ReplicaIdentity::Nothing => Identity::Full,
        };
        let identity: Vec<usize> = match by {
            Identity::Key => binding.key.clone(),
            Identity::Full => (0..binding.columns.len()).filter(|at| binding.columns[*at].is_some()).collect(),
        };
        let columns = identity.iter().filter_map(|at| binding.columns[*at]).collect();
        Self {
            binding,
            delta: TableDelta::new(Arc::clone(base)),
            columns,
            identity,
            by,
            own: Vec::new(),
            index: HashTable::new(),
            hasher: ahash::RandomState::new(),
            settings: FormatSettings::default(),
        }
    }

    fn insert(&mut self, tuple: TupleBytes<'a>) -> Result<(), PoisonReason> {
        if self.unchanged(&tuple).next().is_some() {
            return Err("an inserted row lacks a value".into());
        }
        self.add(tuple, Vec::new(), true)
    }

    fn update(&mut self, old: Option<TupleBytes<'a>>, tuple: TupleBytes<'a>) -> Result<(), PoisonReason> {
        if old.is_none() && self.by == Identity::Full {
            return Err(OTHER_IDENTITY);
        }
        let identity = self.identity_of(old.as_ref().unwrap_or(&tuple))?;
        let found = self.find(&identity)?;
        let mut patches = Vec::new();
        for position in self.unchanged(&tuple).collect::<Vec<_>>() {
            // The old tuple has values for the identity's columns only, which is all of them under FULL.
            let source = match identity_cell(&self.identity, &identity, position) {
                Some(source) if old.is_some() => source,
                _ => self.cell(found, position),
            };
            patches.push((position, source));
        }
        self.remove(found);
        self.add(tuple, patches, old.is_some())
    }

    fn delete(&mut self, old: TupleBytes<'a>) -> Result<(), PoisonReason> {
        let identity = self.identity_of(&old)?;
        let found = self.find(&identity)?;
        if is_planted(Bug::DropDelete) && self.own.is_empty() {
            return Ok(());
        }
        self.remove(found);
        Ok(())
    }

    fn truncate(&mut self) {
        self.own.clear();
        self.index.clear();
        self.delta.truncate();
    }

    fn old_tuple(&self, changes: &'a TableChanges, old: OldSpan) -> Result<TupleBytes<'a>, PoisonReason> {
        match (self.by, old) {
            (Identity::Key, OldSpan::Key(span)) | (Identity::Full, OldSpan::Full(span)) => Ok(changes.tuple(span)),
            (Identity::Key, OldSpan::Full(_)) | (Identity::Full, OldSpan::Key(_)) => Err(OTHER_IDENTITY),
        }
    }

    /// Positions of the mirrored cells that the tuple does not carry.
    fn unchanged(&self, tuple: &TupleBytes<'a>) -> impl Iterator<Item = usize> {
        let binding = self.binding;
        let cells = tuple.cells().enumerate();
        cells.filter_map(|(at, cell)| (cell == Cell::Unchanged && binding.columns[at].is_some()).then_some(at))
    }

    /// The identity's cells of a tuple, in the order of `self.identity`.
    fn identity_of(&self, tuple: &TupleBytes<'a>) -> Result<Vec<Source<'a>>, PoisonReason> {
        let cells = self.identity.iter().map(|position| match tuple.cells().nth(*position) {
            Some(Cell::Null) if self.by == Identity::Full => Ok(Source::Null),
            Some(Cell::Text(bytes)) => Ok(Source::Text(bytes)),
            Some(Cell::Binary(bytes)) => Ok(Source::Binary(bytes)),
            Some(Cell::Null | Cell::Unchanged) | None => Err("a row's identity lacks a value".into()),
        });
        cells.collect()
    }

    fn hash(&self, identity: &[Source<'a>]) -> u64 {
        self.hasher.hash_one(identity)
    }

    fn find(&mut self, identity: &[Source<'a>]) -> Result<Found, PoisonReason> {
        if let Some(own) = self.find_own(identity) {
            return Ok(Found::Own(own));
        }
        let mut values = Vec::with_capacity(identity.len());
        for (column, source) in self.columns.iter().zip(identity) {
            values.push(self.value(*column, source)?);
        }
        let at = match self.by {
            Identity::Key => self.delta.find_one(&self.columns, &values),
            Identity::Full => self.delta.find_identical(&self.columns, values),
        };
        at.map(Found::Base).ok_or_else(|| "a changed row is not in the mirror".into())
    }

    fn find_own(&self, identity: &[Source<'a>]) -> Option<u32> {
        if self.index.is_empty() {
            return None;
        }
        self.index.find(self.hash(identity), |own| self.own_has(*own, identity)).copied()
    }

    fn own_has(&self, own: u32, identity: &[Source<'a>]) -> bool {
        let row = &self.own[own as usize];
        self.identity.iter().zip(identity).all(|(position, source)| row.cell(*position) == *source)
    }

    fn cell(&self, found: Found, position: usize) -> Source<'a> {
        match found {
            Found::Own(own) => self.own[own as usize].cell(position),
            Found::Base(at) => Source::Stored(at),
        }
    }

    fn value(&self, column: usize, source: &Source<'a>) -> Result<Value, PoisonReason> {
        let base = self.delta.base();
        let schema = &base.schema.columns[column];
        let Some(pg_type) = schema.pg_type else { return Ok(Value::Null) };
        let decoded = match source {
            Source::Null => return Ok(Value::Null),
            Source::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text::parse_stored(pg_type, text, &self.settings),
                Err(_) => return Err(format!("column \"{}\" is not UTF-8", schema.name).into()),
            },
            Source::Binary(bytes) => binary::decode_stored(pg_type, bytes),
            Source::Stored(at) => {
                let chunk = &base.chunks[at.chunk as usize].chunk;
                return Ok(value_at(chunk.columns[column].as_ref(), pg_type, at.row as usize));
            }
        };
        decoded.map_err(|error| format!("column \"{}\": {error}", schema.name).into())
    }

    fn remove(&mut self, found: Found) {
        match found {
            Found::Base(at) => self.delta.delete(at),
            Found::Own(own) => {
                let row = &mut self.own[own as usize];
                row.is_alive = false;
                let next = row.next_equal.take();
                let Ok(mut entry) = self.index.find_entry(row.hash, |other| *other == own) else { return };
                match next {
                    Some(next) => *entry.get_mut() = next,
                    None => drop(entry.remove()),
                }
            }
        }
    }

    fn add(
        &mut self,
        tuple: TupleBytes<'a>,
        patches: Vec<(usize, Source<'a>)>,
        is_new_key: bool,
    ) -> Result<(), PoisonReason> {
        let mut row = OwnRow { tuple, patches, hash: 0, next_equal: None, is_alive: true, is_new_key };
        let identity: Vec<Source<'a>> = self.identity.iter().map(|position| row.cell(*position)).collect();
        if self.by == Identity::Key && identity.iter().any(|source| matches!(source, Source::Null | Source::Stored(_)))
        {
            return Err("a row's identity lacks a value".into());
        }
        row.hash = self.hash(&identity);
        let number = self.own.len() as u32;
        match self.find_own(&identity) {
            Some(_) if self.by == Identity::Key => return Err("two rows with one key".into()),
            Some(equal) => {
                row.next_equal = Some(equal);
                if let Ok(mut entry) = self.index.find_entry(row.hash, |own| *own == equal) {
                    *entry.get_mut() = number;
                }
                self.own.push(row);
            }
            None => {
                let hash = row.hash;
                self.own.push(row);
                let own = &self.own;
                self.index.insert_unique(hash, number, |other| own[*other as usize].hash);
            }
        }
        Ok(())
    }

    /// Decodes what is left of the own rows, and checks that no key is there twice.
    fn finish(mut self) -> Result<TableDelta, PoisonReason> {
        let alive = self.own.iter().filter(|row| row.is_alive).count();
        let mut builder = ChunkBuilder::for_rows(Arc::clone(&self.delta.base().schema), alive);
        if self.by == Identity::Key {
            self.check_new_keys()?;
        }
        for row in self.own.iter().filter(|row| row.is_alive) {
            for (position, cell) in row.tuple.cells().enumerate() {
                let Some(column) = self.binding.columns[position] else { continue };
                let value = match cell {
                    Cell::Null => CellValue::Null,
                    Cell::Text(bytes) => CellValue::Text(bytes),
                    Cell::Binary(bytes) => CellValue::Binary(bytes),
                    Cell::Unchanged => self.patched(column, row.cell(position))?,
                };
                builder.append(column, value).map_err(|error| error.to_string())?;
            }
            if builder.end_row() {
                let full = std::mem::replace(&mut builder, ChunkBuilder::new(Arc::clone(&self.delta.base().schema)));
                self.delta.insert(Arc::new(full.finish()));
            }
        }
        if !builder.is_empty() {
            self.delta.insert(Arc::new(builder.finish()));
        }
        Ok(self.delta)
    }

    fn patched(&self, column: usize, source: Source<'a>) -> Result<CellValue<'a>, PoisonReason> {
        Ok(match source {
            Source::Null => CellValue::Null,
            Source::Text(bytes) => CellValue::Text(bytes),
            Source::Binary(bytes) => CellValue::Binary(bytes),
            Source::Stored(_) => CellValue::Value(self.value(column, &source)?),
        })
    }

    /// A key that is already there means that the mirror and the stream disagree, also where a later change has taken it away again:
    /// that of the base would stay.
    fn check_new_keys(&self) -> Result<(), PoisonReason> {
        let mut keys = Vec::new();
        for row in self.own.iter().filter(|row| row.is_new_key) {
            let mut key = Vec::with_capacity(self.columns.len());
            for (column, position) in self.columns.iter().zip(&self.identity) {
                key.push(self.value(*column, &row.cell(*position))?);
            }
            keys.push(key);
        }
        if self.delta.has_any(&self.columns, &keys) {
            return Err("an inserted key is already in the mirror".into());
        }
        Ok(())
    }
}

impl<'a> OwnRow<'a> {
    fn cell(&self, position: usize) -> Source<'a> {
        if let Some((_, source)) = self.patches.iter().find(|(patched, _)| *patched == position) {
            return *source;
        }
        match self.tuple.cells().nth(position) {
            Some(Cell::Text(bytes)) => Source::Text(bytes),
            Some(Cell::Binary(bytes)) => Source::Binary(bytes),
            Some(Cell::Null | Cell::Unchanged) | None => Source::Null,
        }
    }
}

/// The identity's cell at a position of the tuple, if the identity has it.
fn identity_cell<'a>(positions: &[usize], identity: &[Source<'a>], position: usize) -> Option<Source<'a>> {
    positions.iter().position(|at| *at == position).map(|at| identity[at])
}
