//! Harness for the black-box tests: throwaway PostgreSQL clusters, freshet in process, raw protocol clients.

pub mod cluster;
