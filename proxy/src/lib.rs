//! Everything that touches the network: sessions, upstream connections, replication, the operator's endpoints.
//!
//! Modules in the order data flows; each may import only those above it (beside its own parts).

pub mod wire;

pub mod error;
pub mod metrics;
pub mod shutdown;

pub mod net;

pub mod upstream;

pub mod startup;

pub mod session;

pub mod listener;

pub mod server;

pub mod cli;
pub mod log;
