//! Everything that touches the network: sessions, upstream connections, replication, the operator's endpoints.
//!
//! Modules in the order data flows; each may import only those above it (beside its own parts).

pub mod wire;

pub mod error;
pub mod metrics;
pub mod shutdown;
pub mod statistics;

pub mod tls;

pub mod net;

pub mod upstream;

pub mod startup;

pub mod replication;

pub mod freshness;

pub mod audit;

pub mod session;

pub mod admin;

pub mod listener;
pub mod room;
pub mod workers;

pub mod server;

pub mod check;
pub mod cli;
pub mod demo;
pub mod health;
pub mod log;
