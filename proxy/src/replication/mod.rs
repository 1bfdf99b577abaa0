//! Keeps the mirror in step with upstream: one walsender per database, first copies, catalog reloads.
//!
//! Start: [`preflight`] → publication and slot ([`bootstrap`]) → [`catalog`] → [`stream`]. Then tables are handed over
//! one by one ([`bootstrap::HandOver`], [`copy`]). [`supervise`] runs it all ([`applied`] says how far), starts over when a part is lost, and is
//! the door for [`crate::freshness`], which decides at which moment a reader sees the mirror. The only module that uses
//! [`freshet_engine::mirror`].

pub mod applied;
pub mod bootstrap;
pub mod catalog;
pub mod choice;
pub mod copy;
pub mod preflight;
pub mod release;
pub mod standby;
pub mod status;
pub mod stream;
pub mod supervise;
pub mod trigger;
pub mod uptime;
pub mod written;
