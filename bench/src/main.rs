//! The `freshet-bench` command.

fn main() {}
