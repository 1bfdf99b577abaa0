//! Harness for the black-box tests: throwaway PostgreSQL clusters, freshet in process, raw protocol clients.

pub mod both;
pub mod certificates;
pub mod client;
pub mod cluster;
pub mod corpus;
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
