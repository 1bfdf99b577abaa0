//! Messages of the stream → whole transactions: [`Assembler`].
//!
//! Tuples are copied, in their wire form, into one buffer per table, so that a transaction holds on to no network
//! buffer and is freed at once. A transaction over the byte limit gives up the rows of its largest tables, which the
//! mirror then poisons.

use std::collections::HashMap;
use std::sync::Arc;

use super::pgoutput::{DecodeError, LogicalMessage, OldTuple, RelationMessage, TupleBytes, decode};
use crate::catalog::{RelationId, ReplicaIdentity, TableSchema};
use crate::types::{Lsn, Oid};

/// A committed transaction, with the rows that it changed in published tables.
#[derive(Clone, Debug)]
pub struct UpstreamTransaction {
    /// Top-level, 32 bits as the stream has it.
    pub xid: u32,
    pub commit_lsn: Lsn,
    /// Everything up to here has been received once this transaction has.
    pub end_lsn: Lsn,
    pub tables: Vec<TableChanges>,
    /// Prefixes of the messages that it left in the log (`pg_logical_emit_message`), each once.
    pub messages: Vec<Box<str>>,
    /// Tables that were described in it, each once. PostgreSQL describes one before its first change, and again before the first after
    /// anything about it was changed (pgoutput.c: rel_sync_cache_relation_cb), even where the description is the same.
    pub described: Vec<RelationId>,
}

/// What one transaction did to one table, in order.
#[derive(Clone, Debug)]
pub struct TableChanges {
    pub relation: RelationId,
    /// The layout of all its tuples. None: the table was only truncated.
    pub layout: Option<Arc<RelationLayout>>,
    pub changes: Vec<RowChange>,
    /// Set when the changes are not all here: the table cannot be followed.
    pub lost: Option<&'static str>,
    tuples: Vec<u8>,
}

/// One change; its tuples are read by [`TableChanges::tuple`].
#[derive(Clone, Copy, Debug)]
pub enum RowChange {
    Insert { new: TupleSpan },
    Update { old: Option<OldSpan>, new: TupleSpan },
    Delete { old: OldSpan },
    Truncate,
}

#[derive(Clone, Copy, Debug)]
pub enum OldSpan {
    Key(TupleSpan),
    Full(TupleSpan),
}

/// Where a tuple lies in its table's buffer.
#[derive(Clone, Copy, Debug)]
pub struct TupleSpan {
    start: u32,
    length: u32,
}

/// The columns of a relation's tuples, as its Relation message gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationLayout {
    pub relation: RelationId,
    /// `pg_class.relreplident`.
    pub identity: u8,
    pub columns: Vec<LayoutColumn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutColumn {
    pub name: Box<str>,
    pub is_identity: bool,
    pub type_oid: Oid,
    pub typmod: i32,
}

/// The stream does not follow the protocol; it must be started anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("replication stream: a change outside a transaction")]
    OutsideTransaction,
    #[error("replication stream: a transaction within a transaction")]
    NestedTransaction,
    #[error("replication stream: a commit that is not of the transaction begun")]
    WrongCommit,
    #[error("replication stream: a change to relation {0}, which has not been described")]
    UnknownRelation(Oid),
    #[error("replication stream: a tuple of {1} columns for relation {0}")]
    WrongColumns(Oid, usize),
}

/// Collects one transaction at a time.
#[derive(Debug)]
pub struct Assembler {
    layouts: HashMap<Oid, Arc<RelationLayout>>,
    pending: Option<Pending>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Pending {
    xid: u32,
    commit_lsn: Lsn,
    tables: Vec<TableChanges>,
    /// Where in `tables` each is, once there are many: a transaction may change thousands of partitions in turn.
    places: HashMap<RelationId, usize>,
    messages: Vec<Box<str>>,
    described: Vec<RelationId>,
    bytes: usize,
}

/// Prefixes kept of one transaction; an application may use any. That of freshet's event trigger is kept besides.
const MESSAGES_MAX: usize = 64;
const OF_TRIGGER: &str = "freshet.ddl";
/// So many tables are gone through faster than a map is made.
const FEW_TABLES: usize = 8;
/// Spans are 32 bits wide.
const TABLE_BYTES_MAX: usize = u32::MAX as usize;

impl Assembler {
    /// `bytes_max`: how much one transaction's rows may take before tables are given up.
    pub fn new(bytes_max: usize) -> Self {
        Self { layouts: HashMap::new(), pending: None, bytes_max: bytes_max.min(TABLE_BYTES_MAX) }
    }

    /// Takes the payload of one XLogData; returns the transaction that it completes.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<Option<UpstreamTransaction>, AssembleError> {
        self.push(decode(bytes)?)
    }

    pub fn push(&mut self, message: LogicalMessage<'_>) -> Result<Option<UpstreamTransaction>, AssembleError> {
        match message {
            LogicalMessage::Begin { commit_lsn, xid } => {
                if self.pending.is_some() {
                    return Err(AssembleError::NestedTransaction);
                }
                self.pending = Some(Pending { xid, commit_lsn, ..Pending::default() });
            }
            LogicalMessage::Commit { commit_lsn, end_lsn } => return self.commit(commit_lsn, end_lsn).map(Some),
            LogicalMessage::Relation(message) => self.describe(&message),
            LogicalMessage::Insert { relation, new } => {
                let table = self.table_of(relation, &[&new])?;
                let new = table.keep(&new);
                self.record(relation, RowChange::Insert { new })?;
            }
            LogicalMessage::Update { relation, old: None, new } => {
                let table = self.table_of(relation, &[&new])?;
                let new = table.keep(&new);
                self.record(relation, RowChange::Update { old: None, new })?;
            }
            LogicalMessage::Update { relation, old: Some(old), new } => {
                let table = self.table_of(relation, &[old.tuple(), &new])?;
                let old = Some(table.keep_old(&old));
                let new = table.keep(&new);
                self.record(relation, RowChange::Update { old, new })?;
            }
            LogicalMessage::Delete { relation, old } => {
                let table = self.table_of(relation, &[old.tuple()])?;
                let old = table.keep_old(&old);
                self.record(relation, RowChange::Delete { old })?;
            }
            LogicalMessage::Truncate { relations } => {
                for relation in relations {
                    self.truncate(relation)?;
                }
            }
            LogicalMessage::Message { is_transactional: true, prefix, .. } => {
                if let Some(pending) = &mut self.pending
                    && (pending.messages.len() < MESSAGES_MAX || prefix == OF_TRIGGER)
                    && !pending.messages.iter().any(|known| **known == *prefix)
                {
                    pending.messages.push(prefix.into());
                }
            }
            LogicalMessage::Origin { .. } | LogicalMessage::Type { .. } | LogicalMessage::Message { .. } => {}
        }
        Ok(None)
    }

    /// What the transaction being received holds so far; None between transactions.
    pub fn pending_bytes(&self) -> Option<usize> {
        self.pending.as_ref().map(|pending| pending.bytes)
    }

    fn describe(&mut self, message: &RelationMessage<'_>) {
        let columns = message.columns.iter().map(|column| LayoutColumn {
            name: column.name.into(),
            is_identity: column.is_identity,
            type_oid: column.type_oid,
            typmod: column.typmod,
        });
        let relation = RelationId(message.oid);
        if let Some(pending) = &mut self.pending
            && !pending.described.contains(&relation)
        {
            pending.described.push(relation);
        }
        let layout = RelationLayout { relation, identity: message.identity, columns: columns.collect() };
        // PostgreSQL repeats itself after every invalidation: an equal layout stays the same one.
        if self.layouts.get(&message.oid).is_none_or(|known| **known != layout) {
            self.layouts.insert(message.oid, Arc::new(layout));
        }
    }

    fn commit(&mut self, commit_lsn: Lsn, end_lsn: Lsn) -> Result<UpstreamTransaction, AssembleError> {
        let pending = self.pending.take().ok_or(AssembleError::OutsideTransaction)?;
        if pending.commit_lsn != commit_lsn {
            return Err(AssembleError::WrongCommit);
        }
        Ok(UpstreamTransaction {
            xid: pending.xid,
            commit_lsn,
            end_lsn,
            tables: pending.tables,
            messages: pending.messages,
            described: pending.described,
        })
    }

    /// The changes of `relation` in the transaction, about to take `tuples`.
    fn table_of(&mut self, relation: Oid, tuples: &[&TupleBytes<'_>]) -> Result<&mut TableChanges, AssembleError> {
        let layout = self.layouts.get(&relation).ok_or(AssembleError::UnknownRelation(relation))?;
        for tuple in tuples {
            if tuple.columns() != layout.columns.len() {
                return Err(AssembleError::WrongColumns(relation, tuple.columns()));
            }
        }
        let pending = self.pending.as_mut().ok_or(AssembleError::OutsideTransaction)?;
        if pending.table(relation).lost.is_none() {
            let bytes = tuples.iter().map(|tuple| tuple.as_bytes().len()).sum::<usize>() + size_of::<RowChange>();
            pending.make_room(bytes, self.bytes_max);
        }
        let table = pending.table(relation);
        match &table.layout {
            Some(known) if !Arc::ptr_eq(known, layout) => table.lose("its layout changed within a transaction"),
            Some(_) => {}
            None => table.layout = Some(Arc::clone(layout)),
        }
        Ok(table)
    }

    fn record(&mut self, relation: Oid, change: RowChange) -> Result<(), AssembleError> {
        let pending = self.pending.as_mut().ok_or(AssembleError::OutsideTransaction)?;
        let table = pending.table(relation);
        if table.lost.is_none() {
            table.changes.push(change);
        }
        Ok(())
    }

    fn truncate(&mut self, relation: Oid) -> Result<(), AssembleError> {
        let pending = self.pending.as_mut().ok_or(AssembleError::OutsideTransaction)?;
        let table = pending.table(relation);
        // What came before no longer matters.
        let freed = table.bytes();
        table.tuples = Vec::new();
        if table.lost.is_none() {
            table.changes = vec![RowChange::Truncate];
        }
        pending.bytes = pending.bytes.saturating_sub(freed);
        Ok(())
    }
}

impl Pending {
    /// The latest table changed is the likeliest to change next.
    fn table(&mut self, relation: Oid) -> &mut TableChanges {
        let relation = RelationId(relation);
        let place = match self.tables.last() {
            Some(table) if table.relation == relation => self.tables.len() - 1,
            _ => self.place(relation),
        };
        if place == self.tables.len() {
            self.tables.push(TableChanges {
                relation,
                layout: None,
                changes: Vec::new(),
                lost: None,
                tuples: Vec::new(),
            });
        }
        &mut self.tables[place]
    }

    /// Where the table is, or goes: behind the others.
    fn place(&mut self, relation: RelationId) -> usize {
        let end = self.tables.len();
        if end < FEW_TABLES {
            return self.tables.iter().position(|table| table.relation == relation).unwrap_or(end);
        }
        if self.places.is_empty() {
            self.places = self.tables.iter().enumerate().map(|(place, table)| (table.relation, place)).collect();
        }
        *self.places.entry(relation).or_insert(end)
    }

    /// Counts `bytes` more; over the limit, drops the largest table's rows.
    fn make_room(&mut self, bytes: usize, bytes_max: usize) {
        self.bytes += bytes;
        while self.bytes > bytes_max {
            let Some(largest) = self.tables.iter_mut().max_by_key(|table| table.bytes()) else { return };
            let freed = largest.bytes();
            if freed == 0 {
                return;
            }
            largest.lose("a transaction exceeded the size limit");
            self.bytes = self.bytes.saturating_sub(freed);
        }
    }
}

impl TableChanges {
    pub fn tuple(&self, span: TupleSpan) -> TupleBytes<'_> {
        let start = span.start as usize;
        let cells = self.tuples.get(start..start + span.length as usize).unwrap_or_default();
        TupleBytes::from_checked(self.layout.as_ref().map_or(0, |layout| layout.columns.len()), cells)
    }

    pub fn bytes(&self) -> usize {
        self.tuples.len() + self.changes.len() * size_of::<RowChange>()
    }

    fn lose(&mut self, why: &'static str) {
        self.lost.get_or_insert(why);
        self.changes = Vec::new();
        self.tuples = Vec::new();
    }

    /// Copies a tuple; a lost table keeps none (its span is never read).
    fn keep(&mut self, tuple: &TupleBytes<'_>) -> TupleSpan {
        let bytes = if self.lost.is_some() { &[] } else { tuple.as_bytes() };
        let span = TupleSpan { start: self.tuples.len() as u32, length: bytes.len() as u32 };
        self.tuples.extend_from_slice(bytes);
        span
    }

    fn keep_old(&mut self, old: &OldTuple<'_>) -> OldSpan {
        match old {
            OldTuple::Key(tuple) => OldSpan::Key(self.keep(tuple)),
            OldTuple::Full(tuple) => OldSpan::Full(self.keep(tuple)),
        }
    }
}

impl<'a> OldTuple<'a> {
    fn tuple(&self) -> &TupleBytes<'a> {
        match self {
            Self::Key(tuple) | Self::Full(tuple) => tuple,
        }
    }
}

/// How a layout's columns meet a schema's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Per column of the layout, the schema's column that takes its values; None where that is not mirrored.
    pub columns: Vec<Option<usize>>,
    /// Columns of the layout that identify a row, in the order of [`ReplicaIdentity::Key`]; empty under FULL.
    pub key: Vec<usize>,
}

impl RelationLayout {
    /// Matches the layout with the schema the table was copied by. An error says what differs: the table has been
    /// altered. (Columns that are not mirrored may be missing: generated columns are not in the stream.)
    pub fn bind(&self, schema: &TableSchema) -> Result<Binding, String> {
        let mut columns = Vec::with_capacity(self.columns.len());
        let mut last = None;
        for column in &self.columns {
            let number = schema.column(&column.name).ok_or_else(|| format!("new column \"{}\"", column.name))?;
            let known = &schema.columns[number];
            if (known.type_oid, known.own_typmod()) != (column.type_oid, column.typmod) {
                return Err(format!("column \"{}\" has another type", column.name));
            }
            // Schema and layout (proto.c, logicalrep_write_attrs) are in the order of attnum: another one means that names have changed
            // places.
            if last.replace(number).is_some_and(|last| last >= number) {
                return Err(format!("column \"{}\" is in another place", column.name));
            }
            columns.push(known.pg_type.map(|_| number));
        }
        for (number, known) in schema.columns.iter().enumerate() {
            if known.pg_type.is_some() && !columns.contains(&Some(number)) {
                return Err(format!("column \"{}\" is gone", known.name));
            }
        }
        let key = self.bind_identity(schema, &columns)?;
        Ok(Binding { columns, key })
    }

    fn bind_identity(&self, schema: &TableSchema, columns: &[Option<usize>]) -> Result<Vec<usize>, String> {
        let other_identity = || "another replica identity".to_string();
        match &schema.identity {
            ReplicaIdentity::Nothing => Err("no replica identity".to_string()),
            ReplicaIdentity::Full if self.identity == b'f' => Ok(Vec::new()),
            ReplicaIdentity::Full => Err(other_identity()),
            ReplicaIdentity::Key(key) => {
                let flagged = self.columns.iter().filter(|column| column.is_identity).count();
                if self.identity == b'f' || flagged != key.len() {
                    return Err(other_identity());
                }
                let position = |column: &usize| {
                    let position = columns.iter().position(|bound| *bound == Some(*column))?;
                    self.columns[position].is_identity.then_some(position)
                };
                key.iter().map(|column| position(column).ok_or_else(other_identity)).collect()
            }
        }
    }
}
