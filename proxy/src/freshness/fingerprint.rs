//! The catalog fingerprint: evaluated inside the barrier statement, under the same snapshot, and compared with what
//! the catalog in use was read from (`crate::replication::catalog` says which rows count).
//!
//! Cost, PostgreSQL 15.18, whole prepared statement including the round trip, median: the moment alone 0.015 ms; with
//! the common rows 0.075 ms; with 1, 5, 100 tables of 15 columns 0.12, 0.22, 2.1 ms. Nothing of that is paid while no
//! transaction ends upstream: catalog rows change by transactions only, and between two equal snapshots none has ended, so
//! that what was found under one holds under the other. (A CASE around the digests does not save it: the executor begins
//! every node of a plan, which alone takes 0.2 ms.)

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use freshet_engine::catalog::{RelationId, TableSchema};
use freshet_engine::snapshot::VisibilitySnapshot;
use freshet_engine::types::{Lsn, Oid};

use crate::replication::catalog::{
    LoadedCatalog, common_digest_sql, differing_relations_sql, membership_digest_sql, publication_digest_sql,
    relations_digest_sql, whole_publication_sql,
};
use crate::replication::status::Running;
use crate::replication::supervise::Replication;
use crate::upstream::UpstreamError;
use crate::upstream::connection::Row;

/// What every barrier asks: the moment. All of one row is evaluated under one snapshot.
const MOMENT: &str = "pg_current_snapshot(), pg_current_wal_insert_lsn(), statement_timestamp(), \
                      pg_postmaster_start_time(), pg_conf_load_time()";

/// The moment alone.
pub fn moment_sql() -> String {
    format!("SELECT {MOMENT}")
}

/// SQL for one int8: how many relations `$first` are not in the files, or not of the names and schemas, that follow them. Rows that are
/// changed before their table is rewritten in the same transaction (ALTER TABLE ... USING) may come without a word of that: by the log, the
/// table is another from its next row on. (A walsender that has heard of the change otherwise describes the table before the first of
/// those rows; it need not have.) And what a client has written by its name may be another table since: the stream tells nothing of one
/// that is not published.
fn moved_sql(first: usize) -> String {
    let [file, name, schema] = [first + 1, first + 2, first + 3];
    format!(
        "(SELECT count(*) FROM unnest(${first}::oid[], ${file}::oid[], ${name}::text[], ${schema}::text[])
                    AS known (relation, file, name, schema)
            LEFT JOIN pg_class c ON c.oid = known.relation
            LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relfilenode IS DISTINCT FROM known.file OR c.relname <> known.name OR n.nspname <> known.schema)"
    )
}

/// The moment, what the publication `$1` is as a whole (see [`Moment::publication`]), and how many of the relations `$2` are not
/// as `$3` to `$5` say.
pub fn light_sql() -> String {
    format!("SELECT {MOMENT}, {}, {}", whole_publication_sql(1), moved_sql(2))
}

/// The moment, the publication as a whole, relations `$3` to `$6` as above, and the digests of relations `$1` and publication
/// `$2`.
pub fn full_sql() -> String {
    let (common, relations) = (common_digest_sql(), relations_digest_sql());
    let (membership, publication) = (membership_digest_sql(), publication_digest_sql());
    format!(
        "SELECT {MOMENT}, {}, {}, {common}, {relations}, {membership} # {publication}",
        whole_publication_sql(2),
        moved_sql(3)
    )
}

/// Those of the relations `$1` whose digest is not the one in `$2`, as oid[].
pub fn differing_sql() -> String {
    format!("SELECT {}", differing_relations_sql())
}

/// Relations, the files that their rows here are of (0: they have none), and what they are called.
pub type Files = Vec<(RelationId, Oid, Arc<TableSchema>)>;

/// The parameters of [`light_sql`] and [`full_sql`] in binary.
pub struct Parameters {
    relations: BytesMut,
    publication: [u8; 4],
    /// Of the relations that are looked at, with their files, names and schemas.
    files: [BytesMut; 4],
}

impl Parameters {
    pub fn new(relations: &[RelationId], files: &Files, running: &Running) -> Self {
        Self {
            relations: oid_array(relations.iter().map(|relation| relation.0)),
            publication: running.publication.oid.to_be_bytes(),
            files: [
                oid_array(files.iter().map(|(relation, ..)| relation.0)),
                oid_array(files.iter().map(|(_, file, _)| *file)),
                text_array(files.iter().map(|(.., schema)| &*schema.name)),
                text_array(files.iter().map(|(.., schema)| &*schema.schema)),
            ],
        }
    }

    pub fn of_light(&self) -> [&[u8]; 5] {
        let [relations, files, names, schemas] = &self.files;
        [&self.publication, relations, files, names, schemas]
    }

    pub fn of_full(&self) -> [&[u8]; 6] {
        let [relations, files, names, schemas] = &self.files;
        [&self.relations, &self.publication, relations, files, names, schemas]
    }
}

/// The parameters of [`differing_sql`] in binary. None: one of the relations is unknown to the catalog.
pub fn of_differing(relations: &[RelationId], catalog: &LoadedCatalog) -> Option<[BytesMut; 2]> {
    const INT8_TYPE: u32 = 20;
    let digest = |relation: &RelationId| Some(catalog.relations_digest(&[*relation])?.to_be_bytes());
    let digests: Vec<[u8; 8]> = relations.iter().map(digest).collect::<Option<_>>()?;
    let relations = oid_array(relations.iter().map(|relation| relation.0));
    Some([relations, array(INT8_TYPE, digests.iter().map(|digest| &digest[..]))])
}

/// The answer to [`differing_sql`] (PostgreSQL: arrayfuncs.c, array_send).
pub fn differing(row: &Row) -> Result<Vec<RelationId>, UpstreamError> {
    let bytes = row.first().and_then(Option::as_ref).ok_or(TORN)?;
    let (numbers, []) = bytes.as_chunks::<4>() else { return Err(TORN) };
    match numbers.iter().map(|number| u32::from_be_bytes(*number)).collect::<Vec<u32>>().as_slice() {
        [0, _, _] => Ok(Vec::new()),
        [1, 0, _, count, _, elements @ ..] if elements.len() == 2 * *count as usize => {
            Ok(elements.chunks_exact(2).map(|element| RelationId(element[1])).collect())
        }
        _ => Err(TORN),
    }
}

fn oid_array(oids: impl ExactSizeIterator<Item = Oid>) -> BytesMut {
    const OID_TYPE: u32 = 26;
    let bytes: Vec<[u8; 4]> = oids.map(u32::to_be_bytes).collect();
    array(OID_TYPE, bytes.iter().map(|oid| &oid[..]))
}

fn text_array<'t>(texts: impl ExactSizeIterator<Item = &'t str>) -> BytesMut {
    const TEXT_TYPE: u32 = 25;
    array(TEXT_TYPE, texts.map(str::as_bytes))
}

/// As array_recv takes it.
fn array<'e>(element_type: u32, elements: impl ExactSizeIterator<Item = &'e [u8]>) -> BytesMut {
    let mut array = BytesMut::with_capacity(20 + 8 * elements.len());
    array.put_i32(i32::from(elements.len() > 0));
    array.put_i32(0);
    array.put_u32(element_type);
    if elements.len() > 0 {
        array.put_u32(elements.len() as u32);
        array.put_i32(1);
    }
    for element in elements {
        array.put_u32(element.len() as u32);
        array.put_slice(element);
    }
    array
}

/// What a full barrier must return for `catalog` to be in force.
pub struct Expected {
    pub catalog: Arc<LoadedCatalog>,
    pub digests: Digests,
    /// Of each relation, what is in [`Digests`] of its membership of the publication.
    pub memberships: Vec<i64>,
}

/// The three digests of a full barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digests {
    common: i64,
    relations: i64,
    membership: i64,
}

impl Digests {
    /// Whether only relations' own rows can make the difference.
    pub fn differ_by_relations_alone(&self, other: &Self) -> bool {
        (self.common, self.membership) == (other.common, other.membership)
    }
}

impl Expected {
    /// None: one of the relations is not mirrored (any more).
    pub fn new(replication: &Replication, running: &Running, relations: &[RelationId]) -> Option<Self> {
        let catalog = replication.loaded();
        let memberships = replication.memberships(relations)?;
        let digests = Digests {
            common: catalog.catalog.digest,
            relations: catalog.relations_digest(relations)?,
            membership: memberships.iter().fold(running.publication.digest, |digest, membership| digest ^ membership),
        };
        Some(Self { catalog, digests, memberships })
    }
}

/// What a barrier returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub visible: VisibilitySnapshot,
    /// Where the log ended, headers not yet taken off.
    pub insert_lsn: Lsn,
    /// Microseconds since 2000, as are all times here.
    pub statement_time: i64,
    pub started_at: i64,
    pub configured_at: i64,
    /// Another after every change of the publication or of its list of tables, whoever makes it: without a word in the
    /// stream, changes of a table that was taken out are missing from then on. None: not asked.
    pub publication: Option<i64>,
    /// How many of the tables that were asked for are in other files.
    pub moved: i64,
    /// None: not asked.
    pub digests: Option<Digests>,
}

impl Moment {
    pub fn parse(row: &Row) -> Result<Self, UpstreamError> {
        let number = |column| int8(row.get(column));
        let (publication, moved, digests) = match row.len() {
            5 => (None, 0, None),
            7 => (Some(number(5)?), number(6)?, None),
            10 => {
                let digests = Digests { common: number(7)?, relations: number(8)?, membership: number(9)? };
                (Some(number(5)?), number(6)?, Some(digests))
            }
            _ => return Err(TORN),
        };
        Ok(Self {
            visible: snapshot(row.first())?,
            insert_lsn: Lsn(int8(row.get(1))? as u64),
            statement_time: int8(row.get(2))?,
            started_at: int8(row.get(3))?,
            configured_at: int8(row.get(4))?,
            publication,
            moved,
            digests,
        })
    }
}

const TORN: UpstreamError = UpstreamError::Protocol("a barrier's row is not understood");

fn int8(cell: Option<&Option<Bytes>>) -> Result<i64, UpstreamError> {
    let bytes = cell.and_then(Option::as_ref).ok_or(TORN)?;
    bytes.as_ref().try_into().map(i64::from_be_bytes).map_err(|_| TORN)
}

/// `pg_snapshot` in binary: count, xmin, xmax, transactions in progress (PostgreSQL: xid8funcs.c pg_snapshot_send).
fn snapshot(cell: Option<&Option<Bytes>>) -> Result<VisibilitySnapshot, UpstreamError> {
    let bytes = cell.and_then(Option::as_ref).ok_or(TORN)?;
    let (count, numbers) = bytes.split_first_chunk::<4>().ok_or(TORN)?;
    let (numbers, rest) = numbers.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|number| u64::from_be_bytes(*number));
    let (xmin, xmax) = (numbers.next().ok_or(TORN)?, numbers.next().ok_or(TORN)?);
    let mut in_progress: Vec<u64> = numbers.collect();
    if !rest.is_empty() || usize::try_from(i32::from_be_bytes(*count)) != Ok(in_progress.len()) {
        return Err(TORN);
    }
    in_progress.sort_unstable();
    Ok(VisibilitySnapshot { xmin, xmax, in_progress })
}

/// Sizes that decide where the log has headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGeometry {
    pub block_bytes: u64,
    pub segment_bytes: u64,
}

impl LogGeometry {
    /// The end of the last record before an insert position. The insert position is past the header of a page that has
    /// been begun; no record ends inside a header, so taking it off is exact (PostgreSQL: xlog_internal.h,
    /// SizeOfXLogShortPHD 24 and SizeOfXLogLongPHD 40).
    pub fn record_end(self, insert: Lsn) -> Lsn {
        match insert.0 {
            lsn if lsn % self.segment_bytes == 40 => Lsn(lsn - 40),
            lsn if lsn % self.block_bytes == 24 => Lsn(lsn - 24),
            lsn => Lsn(lsn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_read_from_binary_and_torn_ones_refused() {
        let mut bytes = BytesMut::new();
        bytes.put_i32(2);
        for number in [10_u64, 20, 15, 12] {
            bytes.put_u64(number);
        }
        let bytes = bytes.freeze();
        let expected = VisibilitySnapshot { xmin: 10, xmax: 20, in_progress: vec![12, 15] };
        assert_eq!(snapshot(Some(&Some(bytes.clone()))).unwrap(), expected);
        for end in 0..bytes.len() {
            assert!(snapshot(Some(&Some(bytes.slice(..end)))).is_err(), "cut at {end}");
        }
        assert!(snapshot(None).is_err());
    }

    #[test]
    fn headers_of_pages_and_segments_are_taken_off() {
        let geometry = LogGeometry { block_bytes: 8192, segment_bytes: 16 << 20 };
        let end = |lsn: &str| geometry.record_end(lsn.parse().unwrap()).to_string();
        assert_eq!(end("0/2000028"), "0/2000000");
        assert_eq!(end("0/2006018"), "0/2006000");
        // A long header is at the start of a segment only, a short one never there.
        assert_eq!(end("0/2006028"), "0/2006028");
        assert_eq!(end("0/2006017"), "0/2006017");
    }
}
