//! Which tables have room: those that are read most per byte.

use freshet_engine::catalog::RelationId;
use freshet_engine::mirror::{TableStatus, reads_per_byte};

use crate::replication::catalog::TableFacts;

/// A table drives others out only if it is read so much more than each of them per byte: a copy costs more than a look.
const BETTER_BY: f64 = 2.0;

/// A table that is followed, with the memory that its rows take or would take.
#[derive(Clone, Debug)]
pub(super) struct Footprint {
    relation: RelationId,
    is_mirrored: bool,
    bytes: usize,
    /// Reads of late.
    weight: f64,
}

impl Footprint {
    pub(super) fn mirrored(status: &TableStatus) -> Self {
        Self { relation: status.schema.id, is_mirrored: true, bytes: status.bytes, weight: status.weight }
    }

    /// `outgrew`: it is known to take more than this; 0 if it has not been tried.
    pub(super) fn tracked(status: &TableStatus, facts: &TableFacts, outgrew: usize) -> Self {
        // If it is more than there is room for then, that is known the next time.
        let bytes = outgrew.max(facts.estimated_bytes());
        Self { relation: status.schema.id, is_mirrored: false, bytes, weight: status.weight }
    }

    fn reads_per_byte(&self) -> f64 {
        reads_per_byte(self.weight, self.bytes)
    }
}

/// A tracked table that is to be mirrored, in place of others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Admitted {
    pub(super) relation: RelationId,
    pub(super) victims: Vec<RelationId>,
}

/// What has to be free for rows of that size, or they would grow over the cap soon after, and be copied again and again.
pub(super) fn needed(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 4)
}

/// The tracked table with the most reads per byte for which there is room, or would be without such as are read much less.
pub(super) fn next(tables: &[Footprint], room: usize) -> Option<Admitted> {
    let by_reads = |a: &&Footprint, b: &&Footprint| a.reads_per_byte().total_cmp(&b.reads_per_byte());
    let mut waiting: Vec<&Footprint> = tables.iter().filter(|table| !table.is_mirrored).collect();
    waiting.sort_by(|a, b| by_reads(b, a));
    let mut mirrored: Vec<&Footprint> = tables.iter().filter(|table| table.is_mirrored).collect();
    mirrored.sort_by(by_reads);
    waiting.into_iter().find_map(|candidate| {
        let needed = needed(candidate.bytes);
        let (mut free, mut victims) = (room, Vec::new());
        let much_less = mirrored
            .iter()
            .filter(|victim| victim.bytes > 0 && victim.reads_per_byte() * BETTER_BY < candidate.reads_per_byte());
        for victim in much_less {
            if free > needed {
                break;
            }
            free += victim.bytes;
            victims.push(victim.relation);
        }
        (free > needed).then_some(Admitted { relation: candidate.relation, victims })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(relation: u32, is_mirrored: bool, bytes: usize, weight: f64) -> Footprint {
        Footprint { relation: RelationId(relation), is_mirrored, bytes, weight }
    }

    fn admitted(relation: u32, victims: &[u32]) -> Option<Admitted> {
        let victims = victims.iter().copied().map(RelationId).collect();
        Some(Admitted { relation: RelationId(relation), victims })
    }

    #[test]
    fn the_table_with_the_most_reads_per_byte_gets_the_room_that_there_is() {
        let tables = [table(1, false, 100, 5.0), table(2, false, 50, 4.0), table(3, false, 500, 100.0)];
        assert_eq!(next(&tables, 300), admitted(2, &[]), "the third does not fit");
        assert_eq!(next(&tables, 2_000), admitted(3, &[]));
        assert_eq!(next(&tables, 60), None, "it would fit, but hardly");
    }

    #[test]
    fn a_table_goes_for_one_that_is_read_much_more_and_for_no_other() {
        let cold = [table(1, true, 100, 1.0), table(2, true, 100, 8.0), table(3, true, 400, 0.0)];
        let with = |candidate| [&cold[..], &[candidate]].concat();
        assert_eq!(next(&with(table(9, false, 300, 9.0)), 0), admitted(9, &[3]));
        assert_eq!(next(&with(table(9, false, 360, 30.0)), 0), admitted(9, &[3, 1]));
        assert_eq!(next(&with(table(9, false, 360, 30.0)), 60), admitted(9, &[3]));
        assert_eq!(next(&with(table(9, false, 450, 60.0)), 0), None, "the second is read as much");
        assert_eq!(next(&with(table(9, false, 300, 0.0)), 100), None, "nobody reads it");
    }
}
