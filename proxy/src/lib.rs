//! Everything that touches the network: sessions, upstream connections, replication, the operator's endpoints.
