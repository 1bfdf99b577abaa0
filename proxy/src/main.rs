//! The `freshet` command.

fn main() {}
