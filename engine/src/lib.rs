//! freshet's engine: answers statements from mirrored tables exactly as PostgreSQL would, or refuses.
//!
//! Life of a statement: text → [`statement`] (parse, fingerprint, classify) → [`binder`] (names, types,
//! coercions by PostgreSQL's rules) → [`planner`] (pushdown, pruning, operators) → [`executor`]
//! (vectorised, over arrow arrays, on one immutable [`snapshot::Snapshot`]) → row batches.
//! Life of a change: replication bytes → [`mirror`] (decode, assemble, apply) → next table version → publish.
//!
//! The engine has no sockets, no async and no clock: time, limits and settings are passed in. Whatever it
//! does not know ends in an [`reason::UpstreamReason`], never in an error to a client.

pub mod binder;
pub mod catalog;
pub mod change_log;
pub mod executor;
pub mod join_cache;
pub mod mirror;
pub mod planner;
pub mod reason;
pub mod result_cache;
pub mod snapshot;
pub mod statement;
pub mod table;
pub mod types;
