//! Bytes of one pgoutput message → [`LogicalMessage`], borrowing from the bytes.
//!
//! PostgreSQL: Logical Replication Message Formats, protocol version 1 (src/backend/replication/logical/proto.c).
//! Any malformed input is a [`DecodeError`]: nothing here panics or allocates by an unchecked length.
//! Messages of later protocol versions (streaming, two-phase) are refused by kind; freshet does not ask for them.

#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::types::{Lsn, Oid};

/// One message of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogicalMessage<'a> {
    Begin {
        /// Where the transaction's commit record starts.
        commit_lsn: Lsn,
        /// Top-level, 32 bits: widen it near a snapshot's xmax.
        xid: u32,
    },
    Commit {
        commit_lsn: Lsn,
        /// Where the commit record ends: the only position in a transaction that marks progress.
        end_lsn: Lsn,
    },
    Origin {
        name: &'a str,
    },
    Relation(RelationMessage<'a>),
    Type {
        oid: Oid,
    },
    Insert {
        relation: Oid,
        new: TupleBytes<'a>,
    },
    Update {
        relation: Oid,
        old: Option<OldTuple<'a>>,
        new: TupleBytes<'a>,
    },
    Delete {
        relation: Oid,
        old: OldTuple<'a>,
    },
    Truncate {
        relations: Vec<Oid>,
    },
    /// `pg_logical_emit_message`.
    Message {
        is_transactional: bool,
        lsn: Lsn,
        prefix: &'a str,
        content: &'a [u8],
    },
}

/// The layout in which a relation's tuples follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationMessage<'a> {
    pub oid: Oid,
    /// Empty for pg_catalog.
    pub schema: &'a str,
    pub name: &'a str,
    /// `pg_class.relreplident`: d, n, f or i.
    pub identity: u8,
    pub columns: Vec<RelationColumn<'a>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationColumn<'a> {
    pub is_identity: bool,
    pub name: &'a str,
    pub type_oid: Oid,
    pub typmod: i32,
}

/// What an UPDATE or DELETE says of the old row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldTuple<'a> {
    /// Only the identity's columns have values, the others are sent as NULL.
    Key(TupleBytes<'a>),
    /// REPLICA IDENTITY FULL.
    Full(TupleBytes<'a>),
}

/// One column of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell<'a> {
    Null,
    /// An out-of-line (TOASTed) value that the UPDATE did not touch; it is not sent.
    Unchanged,
    Text(&'a [u8]),
    Binary(&'a [u8]),
}

/// A tuple in its wire form, checked by [`decode`]: walking it cannot fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TupleBytes<'a> {
    columns: u16,
    /// The cells, without the leading column count.
    cells: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("replication message ends early")]
    Truncated,
    #[error("replication message has {0} bytes too many")]
    Trailing(usize),
    #[error("unknown replication message kind {0:#04x}")]
    UnknownKind(u8),
    #[error("unexpected tuple or column kind {0:#04x} in a replication message")]
    UnknownPart(u8),
    #[error("negative length in a replication message")]
    NegativeLength,
    #[error("name in a replication message is not UTF-8")]
    NotUtf8,
}

/// Decodes one message (the payload of one XLogData).
pub fn decode(bytes: &[u8]) -> Result<LogicalMessage<'_>, DecodeError> {
    let mut reader = Reader { rest: bytes };
    let message = match reader.u8()? {
        b'B' => {
            let commit_lsn = reader.lsn()?;
            reader.skip(8)?;
            LogicalMessage::Begin { commit_lsn, xid: reader.u32()? }
        }
        b'C' => {
            reader.skip(1)?;
            let commit_lsn = reader.lsn()?;
            let end_lsn = reader.lsn()?;
            reader.skip(8)?;
            LogicalMessage::Commit { commit_lsn, end_lsn }
        }
        b'O' => {
            reader.skip(8)?;
            LogicalMessage::Origin { name: reader.name()? }
        }
        b'R' => LogicalMessage::Relation(relation(&mut reader)?),
        b'Y' => {
            let oid = reader.u32()?;
            reader.name()?;
            reader.name()?;
            LogicalMessage::Type { oid }
        }
        b'I' => {
            let relation = reader.u32()?;
            LogicalMessage::Insert { relation, new: new_tuple(&mut reader)? }
        }
        b'U' => update(&mut reader)?,
        b'D' => {
            let relation = reader.u32()?;
            let old = match reader.u8()? {
                b'K' => OldTuple::Key(reader.tuple()?),
                b'O' => OldTuple::Full(reader.tuple()?),
                part => return Err(DecodeError::UnknownPart(part)),
            };
            LogicalMessage::Delete { relation, old }
        }
        b'T' => truncate(&mut reader)?,
        b'M' => {
            let is_transactional = reader.u8()? & 1 != 0;
            let lsn = reader.lsn()?;
            let prefix = reader.name()?;
            let length = reader.length()?;
            LogicalMessage::Message { is_transactional, lsn, prefix, content: reader.take(length)? }
        }
        kind => return Err(DecodeError::UnknownKind(kind)),
    };
    match reader.rest.len() {
        0 => Ok(message),
        surplus => Err(DecodeError::Trailing(surplus)),
    }
}

fn relation<'a>(reader: &mut Reader<'a>) -> Result<RelationMessage<'a>, DecodeError> {
    let oid = reader.u32()?;
    let schema = reader.name()?;
    let name = reader.name()?;
    let identity = reader.u8()?;
    let count = reader.u16()?;
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(RelationColumn {
            is_identity: reader.u8()? & 1 != 0,
            name: reader.name()?,
            type_oid: reader.u32()?,
            typmod: reader.u32()?.cast_signed(),
        });
    }
    Ok(RelationMessage { oid, schema, name, identity, columns })
}

fn new_tuple<'a>(reader: &mut Reader<'a>) -> Result<TupleBytes<'a>, DecodeError> {
    match reader.u8()? {
        b'N' => reader.tuple(),
        part => Err(DecodeError::UnknownPart(part)),
    }
}

fn update<'a>(reader: &mut Reader<'a>) -> Result<LogicalMessage<'a>, DecodeError> {
    let relation = reader.u32()?;
    let (old, new) = match reader.u8()? {
        b'N' => (None, reader.tuple()?),
        b'K' => (Some(OldTuple::Key(reader.tuple()?)), new_tuple(reader)?),
        b'O' => (Some(OldTuple::Full(reader.tuple()?)), new_tuple(reader)?),
        part => return Err(DecodeError::UnknownPart(part)),
    };
    Ok(LogicalMessage::Update { relation, old, new })
}

fn truncate<'a>(reader: &mut Reader<'a>) -> Result<LogicalMessage<'a>, DecodeError> {
    let count = reader.length()?;
    // CASCADE and RESTART IDENTITY: neither matters here, every truncated and published table is listed.
    reader.skip(1)?;
    let mut relations = Vec::new();
    for _ in 0..count {
        relations.push(reader.u32()?);
    }
    Ok(LogicalMessage::Truncate { relations })
}

impl<'a> TupleBytes<'a> {
    pub fn columns(&self) -> usize {
        usize::from(self.columns)
    }

    /// The cells in column order.
    pub fn cells(&self) -> Cells<'a> {
        Cells { left: self.columns, reader: Reader { rest: self.cells } }
    }

    /// The wire form of the cells, to be kept and read again by [`TupleBytes::from_checked`].
    pub fn as_bytes(&self) -> &'a [u8] {
        self.cells
    }

    /// A tuple that was taken apart into [`Self::columns`] and [`Self::as_bytes`]. On other bytes the walk ends early.
    pub fn from_checked(columns: usize, cells: &'a [u8]) -> Self {
        Self { columns: u16::try_from(columns).unwrap_or(u16::MAX), cells }
    }
}

impl std::fmt::Debug for TupleBytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.cells()).finish()
    }
}

/// Walks the cells of a tuple.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    left: u16,
    reader: Reader<'a>,
}

impl<'a> Iterator for Cells<'a> {
    type Item = Cell<'a>;

    fn next(&mut self) -> Option<Cell<'a>> {
        self.left = self.left.checked_sub(1)?;
        self.reader.cell().ok()
    }
}

#[derive(Clone, Debug)]
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn skip(&mut self, length: usize) -> Result<(), DecodeError> {
        self.take(length).map(|_| ())
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    fn lsn(&mut self) -> Result<Lsn, DecodeError> {
        self.array().map(u64::from_be_bytes).map(Lsn)
    }

    /// A signed count or length that must not be negative.
    fn length(&mut self) -> Result<usize, DecodeError> {
        let length = self.array().map(i32::from_be_bytes)?;
        usize::try_from(length).map_err(|_| DecodeError::NegativeLength)
    }

    /// A NUL-terminated string.
    fn name(&mut self) -> Result<&'a str, DecodeError> {
        let end = memchr::memchr(0, self.rest).ok_or(DecodeError::Truncated)?;
        let name = self.take(end)?;
        self.skip(1)?;
        std::str::from_utf8(name).map_err(|_| DecodeError::NotUtf8)
    }

    fn cell(&mut self) -> Result<Cell<'a>, DecodeError> {
        match self.u8()? {
            b'n' => Ok(Cell::Null),
            b'u' => Ok(Cell::Unchanged),
            b't' => {
                let length = self.length()?;
                self.take(length).map(Cell::Text)
            }
            b'b' => {
                let length = self.length()?;
                self.take(length).map(Cell::Binary)
            }
            part => Err(DecodeError::UnknownPart(part)),
        }
    }

    fn tuple(&mut self) -> Result<TupleBytes<'a>, DecodeError> {
        let columns = self.u16()?;
        let start = self.rest;
        for _ in 0..columns {
            self.cell()?;
        }
        let length = start.len().saturating_sub(self.rest.len());
        let cells = start.get(..length).ok_or(DecodeError::Truncated)?;
        Ok(TupleBytes { columns, cells })
    }
}

#[cfg(test)]
// A test may panic: that is how it fails.
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::panic, clippy::expect_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mirror::encoder;

    fn cells<'a>(tuple: &TupleBytes<'a>) -> Vec<Cell<'a>> {
        tuple.cells().collect()
    }

    #[test]
    fn begin_and_commit_carry_positions_and_the_transaction() {
        let begin = encoder::begin(Lsn(0x16_B374_D848), 701);
        assert_eq!(decode(&begin), Ok(LogicalMessage::Begin { commit_lsn: Lsn(0x16_B374_D848), xid: 701 }));
        let commit = encoder::commit(Lsn(7), Lsn(9));
        assert_eq!(decode(&commit), Ok(LogicalMessage::Commit { commit_lsn: Lsn(7), end_lsn: Lsn(9) }));
    }

    #[test]
    fn a_relation_lists_its_columns() {
        let bytes = encoder::relation(5, "public", "t", b'f', &[(true, "id", 23, -1), (false, "note", 1043, 14)]);
        let Ok(LogicalMessage::Relation(relation)) = decode(&bytes) else { panic!("not a relation") };
        assert_eq!((relation.oid, relation.schema, relation.name, relation.identity), (5, "public", "t", b'f'));
        assert_eq!(
            relation.columns[1],
            RelationColumn { is_identity: false, name: "note", type_oid: 1043, typmod: 14 }
        );
        assert!(relation.columns[0].is_identity);
    }

    #[test]
    fn an_update_keeps_key_full_and_new_tuples_apart() {
        let key = [Cell::Binary(b"\0\0\0\x01"), Cell::Null];
        let new = [Cell::Binary(b"\0\0\0\x02"), Cell::Unchanged];
        let bytes = encoder::update(5, Some((b'K', &key)), &new);
        let Ok(LogicalMessage::Update { relation: 5, old: Some(OldTuple::Key(old)), new: decoded }) = decode(&bytes)
        else {
            panic!("not an update by key")
        };
        assert_eq!((cells(&old), cells(&decoded)), (key.to_vec(), new.to_vec()));

        let bytes = encoder::update(5, Some((b'O', &key)), &new);
        assert!(matches!(decode(&bytes), Ok(LogicalMessage::Update { old: Some(OldTuple::Full(_)), .. })));
        let bytes = encoder::update(5, None, &new);
        assert!(matches!(decode(&bytes), Ok(LogicalMessage::Update { old: None, .. })));
    }

    #[test]
    fn a_truncate_lists_its_tables_and_a_message_its_content() {
        assert_eq!(decode(&encoder::truncate(&[4, 9])), Ok(LogicalMessage::Truncate { relations: vec![4, 9] }));
        let mut bytes = vec![b'M', 1];
        bytes.extend(12u64.to_be_bytes());
        bytes.extend(b"freshet\0");
        bytes.extend(3i32.to_be_bytes());
        bytes.extend(b"abc");
        assert_eq!(
            decode(&bytes),
            Ok(LogicalMessage::Message { is_transactional: true, lsn: Lsn(12), prefix: "freshet", content: b"abc" })
        );
    }

    #[test]
    fn messages_of_the_streaming_protocol_are_refused_by_kind() {
        for kind in *b"SEcAbPKrp" {
            assert_eq!(decode(&[kind, 0, 0, 0, 0]), Err(DecodeError::UnknownKind(kind)));
        }
        assert_eq!(decode(&[]), Err(DecodeError::Truncated));
    }

    #[test]
    fn a_negative_or_huge_length_is_an_error() {
        let mut bytes = vec![b'I', 0, 0, 0, 5, b'N', 0, 1, b't'];
        bytes.extend((-1i32).to_be_bytes());
        assert_eq!(decode(&bytes), Err(DecodeError::NegativeLength));
        let end = bytes.len() - 4;
        bytes[end..].copy_from_slice(&i32::MAX.to_be_bytes());
        assert_eq!(decode(&bytes), Err(DecodeError::Truncated));
        let mut truncate = vec![b'T'];
        truncate.extend(i32::MAX.to_be_bytes());
        truncate.push(0);
        assert_eq!(decode(&truncate), Err(DecodeError::Truncated));
    }

    #[derive(Clone, Debug)]
    enum OwnedCell {
        Null,
        Unchanged,
        Text(Vec<u8>),
        Binary(Vec<u8>),
    }

    impl OwnedCell {
        fn cell(&self) -> Cell<'_> {
            match self {
                Self::Null => Cell::Null,
                Self::Unchanged => Cell::Unchanged,
                Self::Text(bytes) => Cell::Text(bytes),
                Self::Binary(bytes) => Cell::Binary(bytes),
            }
        }
    }

    fn any_tuple() -> impl Strategy<Value = Vec<OwnedCell>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
        let cell = prop_oneof![
            Just(OwnedCell::Null),
            Just(OwnedCell::Unchanged),
            bytes().prop_map(OwnedCell::Text),
            bytes().prop_map(OwnedCell::Binary),
        ];
        proptest::collection::vec(cell, 0..6)
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(oid: u32, old in any_tuple(), new in any_tuple(), kind in 0..4) {
            let old: Vec<Cell<'_>> = old.iter().map(OwnedCell::cell).collect();
            let new: Vec<Cell<'_>> = new.iter().map(OwnedCell::cell).collect();
            let bytes = match kind {
                0 => encoder::insert(oid, &new),
                1 => encoder::update(oid, None, &new),
                2 => encoder::update(oid, Some((b'O', &old)), &new),
                _ => encoder::delete(oid, b'K', &old),
            };
            match decode(&bytes).expect("well-formed") {
                LogicalMessage::Insert { relation, new: decoded } => {
                    prop_assert_eq!((relation, cells(&decoded)), (oid, new));
                }
                LogicalMessage::Update { relation, old: decoded_old, new: decoded } => {
                    prop_assert_eq!((relation, cells(&decoded)), (oid, new));
                    if let Some(OldTuple::Full(decoded)) = decoded_old {
                        prop_assert_eq!(cells(&decoded), old);
                    } else {
                        prop_assert!(decoded_old.is_none());
                    }
                }
                LogicalMessage::Delete { relation, old: OldTuple::Key(decoded) } => {
                    prop_assert_eq!((relation, cells(&decoded)), (oid, old));
                }
                other => prop_assert!(false, "decoded as {other:?}"),
            }
            // Every proper prefix is refused, and so is a longer message.
            for end in 0..bytes.len() {
                prop_assert!(decode(&bytes[..end]).is_err());
            }
            let mut longer = bytes.clone();
            longer.push(0);
            prop_assert_eq!(decode(&longer), Err(DecodeError::Trailing(1)));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(
            kind in proptest::sample::select(b"BCORYIUDTMSEc?".to_vec()),
            rest in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(b'n'), Just(b'N')], 0..80),
        ) {
            let mut bytes = vec![kind];
            bytes.extend(rest);
            if let Ok(message) = decode(&bytes) {
                let _ = format!("{message:?}");
            }
        }
    }
}
