//! A pgoutput encoder for tests: the messages of [`super::pgoutput`] as PostgreSQL writes them.

use super::pgoutput::Cell;
use crate::types::{Lsn, Oid};

pub(crate) fn begin(commit_lsn: Lsn, xid: u32) -> Vec<u8> {
    let mut out = vec![b'B'];
    out.extend(commit_lsn.0.to_be_bytes());
    out.extend(0u64.to_be_bytes());
    out.extend(xid.to_be_bytes());
    out
}

pub(crate) fn commit(commit_lsn: Lsn, end_lsn: Lsn) -> Vec<u8> {
    let mut out = vec![b'C', 0];
    out.extend(commit_lsn.0.to_be_bytes());
    out.extend(end_lsn.0.to_be_bytes());
    out.extend(0u64.to_be_bytes());
    out
}

/// Columns: (part of the identity, name, type OID, typmod).
pub(crate) fn relation(
    oid: Oid,
    schema: &str,
    name: &str,
    identity: u8,
    columns: &[(bool, &str, Oid, i32)],
) -> Vec<u8> {
    let mut out = vec![b'R'];
    out.extend(oid.to_be_bytes());
    for text in [schema, name] {
        out.extend(text.as_bytes());
        out.push(0);
    }
    out.push(identity);
    out.extend((columns.len() as u16).to_be_bytes());
    for (is_identity, name, type_oid, typmod) in columns {
        out.push(u8::from(*is_identity));
        out.extend(name.as_bytes());
        out.push(0);
        out.extend(type_oid.to_be_bytes());
        out.extend(typmod.to_be_bytes());
    }
    out
}

pub(crate) fn insert(oid: Oid, new: &[Cell<'_>]) -> Vec<u8> {
    let mut out = vec![b'I'];
    out.extend(oid.to_be_bytes());
    out.push(b'N');
    tuple(new, &mut out);
    out
}

pub(crate) fn update(oid: Oid, old: Option<(u8, &[Cell<'_>])>, new: &[Cell<'_>]) -> Vec<u8> {
    let mut out = vec![b'U'];
    out.extend(oid.to_be_bytes());
    if let Some((kind, old)) = old {
        out.push(kind);
        tuple(old, &mut out);
    }
    out.push(b'N');
    tuple(new, &mut out);
    out
}

pub(crate) fn delete(oid: Oid, kind: u8, old: &[Cell<'_>]) -> Vec<u8> {
    let mut out = vec![b'D'];
    out.extend(oid.to_be_bytes());
    out.push(kind);
    tuple(old, &mut out);
    out
}

pub(crate) fn truncate(oids: &[Oid]) -> Vec<u8> {
    let mut out = vec![b'T'];
    out.extend((oids.len() as i32).to_be_bytes());
    out.push(0);
    for oid in oids {
        out.extend(oid.to_be_bytes());
    }
    out
}

fn tuple(cells: &[Cell<'_>], out: &mut Vec<u8>) {
    out.extend((cells.len() as u16).to_be_bytes());
    for cell in cells {
        let (kind, bytes) = match cell {
            Cell::Null => (b'n', None),
            Cell::Unchanged => (b'u', None),
            Cell::Text(bytes) => (b't', Some(bytes)),
            Cell::Binary(bytes) => (b'b', Some(bytes)),
        };
        out.push(kind);
        if let Some(bytes) = bytes {
            out.extend((bytes.len() as i32).to_be_bytes());
            out.extend(*bytes);
        }
    }
}
