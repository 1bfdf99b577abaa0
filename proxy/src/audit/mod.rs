//! Compares local answers with upstream's and keeps the verdict per statement shape.
//!
//! The first execution of a shape is relayed on the client's own session and upstream's reply is the oracle, for types
//! and for rows; later a sample is. A shape that is not verified is never served; a difference quarantines it.

pub mod compare;
