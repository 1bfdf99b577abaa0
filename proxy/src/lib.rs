//! Everything that touches the network: sessions, upstream connections, replication, the operator's endpoints.
//!
//! Modules in the order data flows; each may import only those above it (beside its own parts).

pub mod wire;

pub mod upstream;
