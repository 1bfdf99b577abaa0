//! Each target for some seconds; `tests/run fuzz` gives each a minute. See `freshet_tests::fuzz`.

use freshet_tests::fuzz::{run, targets};

#[test]
fn framer() {
    assert!(run("framer", targets::framer) > 1_000);
}

#[test]
fn startup() {
    assert!(run("startup", targets::startup) > 1_000);
}

#[test]
fn views() {
    assert!(run("views", targets::views) > 1_000);
}

#[test]
fn machine() {
    assert!(run("machine", targets::machine) > 100);
}

#[test]
fn script() {
    assert!(run("session", targets::script) > 20);
}

#[test]
fn cancelled() {
    assert!(run("session", targets::cancelled) > 20);
}

#[test]
fn sql() {
    assert!(run("sql", targets::sql) > 50);
}

#[test]
fn pgoutput() {
    assert!(run("pgoutput", targets::pgoutput) > 1_000);
}
