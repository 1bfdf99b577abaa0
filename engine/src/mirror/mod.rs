//! Changes from upstream's replication stream → the next versions of the mirrored tables.
//!
//! [`pgoutput`] decodes one message, [`assemble`] collects a transaction, [`apply`] turns a transaction's changes to one
//! table into a [`crate::table::TableDelta`], [`publish`] keeps each table's recent versions and cuts a
//! [`crate::snapshot::Snapshot`] out of them. Nothing here reads a socket or a clock.
//!
//! Whatever does not fit (a changed layout, an unknown row, an undecodable value) poisons the table: its reads go
//! upstream until it is copied again. Nothing is guessed.

pub mod apply;
pub mod assemble;
#[cfg(test)]
mod encoder;
pub mod pgoutput;
pub mod publish;
#[cfg(test)]
mod tests;

pub use assemble::{Assembler, UpstreamTransaction};
pub use publish::{CopyId, Freed, Mirror, MirrorLimits, TableState, TableStatus, TrackedBecause, reads_per_byte};
