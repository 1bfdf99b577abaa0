//! Harness for the black-box tests: throwaway PostgreSQL clusters, freshet in process, raw protocol clients.

use std::path::PathBuf;

pub mod both;
pub mod certificates;
pub mod client;
pub mod cluster;
pub mod corpus;
pub mod fake;
pub mod forward;
pub mod freshet;
pub mod fuzz;
pub mod generator;
pub mod marks;
pub mod model;
pub mod operator;
pub mod programs;
pub mod raw;
pub mod scripted;
pub mod tls;
pub mod world;

/// This package's folder. Asked at run time: checkouts that share compiled tests do not share their files.
pub fn folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}
