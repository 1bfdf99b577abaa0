//! The frontend/backend protocol as bytes: frames, views of messages, writers of replies. No sockets, no state.
//!
//! Views borrow from the frame and never assume UTF-8; what is forwarded is never re-encoded. Any bytes are answered
//! by `None` or an error, never by a panic (PostgreSQL: Frontend/Backend Protocol, Message Formats).

#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

pub mod error;
pub mod extended;
pub mod frame;
pub mod query;
pub mod startup;

#[cfg(test)]
mod tests;
