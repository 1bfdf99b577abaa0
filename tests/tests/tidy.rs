//! Keeps what a compiler does not: which module may import which, a head in every file, banned calls, honest documents.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Modules of a crate in the order of its data flow; each may import only those before it.
const ENGINE: &[&str] = &[
    "reason",
    "planted",
    "types",
    "catalog",
    "table",
    "change_log",
    "snapshot",
    "statement",
    "binder",
    "planner",
    "join_cache",
    "executor",
    "result_cache",
    "mirror",
    "prepare",
];
const PROXY: &[&str] = &[
    "log",
    "wire",
    "error",
    "shutdown",
    "statistics",
    "metrics",
    "tls",
    "net",
    "upstream",
    "startup",
    "replication",
    "freshness",
    "audit",
    "session",
    "admin",
    "listener",
    "room",
    "workers",
    "server",
    "check",
    "demo",
    "health",
    "cli",
];

/// A call, where it is allowed, and what to use instead.
const BANNED: &[(&str, &[&str], &str)] = &[
    ("Instant::now", &["proxy/", "bench/", "tests/"], "the engine has no clock: time is passed in"),
    ("SystemTime::now", &["proxy/", "bench/", "tests/"], "the engine has no clock: time is passed in"),
    ("std::net::", &["proxy/", "bench/", "tests/", "config/"], "the engine has no sockets"),
    ("thread::sleep", &["bench/", "tests/"], "waits are on states, by notification"),
    (
        "freshet_engine::mirror",
        &["proxy/src/replication", "proxy/src/freshness", "proxy/src/server", "tests/"],
        "only replication and freshness know the mirror; sessions ask freshness",
    ),
    ("process::exit", &[], "return an ExitCode: what is open must be closed"),
];

fn root() -> PathBuf {
    freshet_tests::folder().parent().expect("tests/ is in the root").to_path_buf()
}

/// Path relative to the root and text of every Rust file of ours.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = [
        "config/src",
        "engine/src",
        "proxy/src",
        "bench/src",
        "bench/duckdb/src",
        "tests/src",
        "tests/tests",
        "tests/checker",
    ]
    .map(|f| root().join(f))
    .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(root()).expect("below the root").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("readable")));
            }
        }
    }
    assert!(found.len() > 50, "the tree was not found");
    found
}

/// The text before the file's own test module.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text)
}

fn is_test_file(name: &str) -> bool {
    name.starts_with("tests/") || name.ends_with("/tests.rs") || name.contains("/tests/")
}

#[test]
fn modules_import_only_what_stands_before_them() {
    let mut problems = BTreeSet::new();
    for (name, text) in sources() {
        for (folder, order) in [("engine/src/", ENGINE), ("proxy/src/", PROXY)] {
            let Some(inside) = name.strip_prefix(folder) else { continue };
            let module = inside.split(['/', '.']).next().unwrap_or_default();
            if is_test_file(&name) || ["lib", "main"].contains(&module) {
                continue;
            }
            let Some(place) = order.iter().position(|m| *m == module) else {
                problems.insert(format!("{module} is not in the list of {folder}"));
                continue;
            };
            for imported in crate_paths(without_tests(&text)) {
                let later = order.iter().position(|m| *m == imported).is_some_and(|at| at > place);
                if later {
                    problems.insert(format!("{module} may not import {imported} ({name})"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The first segments behind `crate::`.
fn crate_paths(text: &str) -> BTreeSet<&str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| {
        line.match_indices("crate::").map(move |(at, found)| {
            let rest = &line[at + found.len()..];
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
        })
    })
    .collect()
}

#[test]
fn every_file_says_what_it_is_for() {
    let bare: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name).collect();
    assert!(bare.is_empty(), "no //! head: {bare:?}");
}

#[test]
fn banned_calls_are_not_made() {
    let mut problems = Vec::new();
    for (name, text) in sources() {
        if name.ends_with("tidy.rs") || is_test_file(&name) {
            continue;
        }
        for (number, line) in without_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for (call, allowed, instead) in BANNED {
                if code.contains(call) && !allowed.iter().any(|place| name.starts_with(place)) {
                    problems.push(format!("{name}:{}: {call}: {instead}", number + 1));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn architecture_names_every_module_and_dependency() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for (folder, order) in [("engine", ENGINE), ("proxy", PROXY)] {
        for module in order {
            assert!(text.contains(&format!("`{module}`")), "{folder}::{module} is not in ARCHITECTURE.md");
        }
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let dependencies = manifest.split("[workspace.dependencies]").nth(1).and_then(|rest| rest.split("\n[").next());
    for line in dependencies.expect("a section of dependencies").lines() {
        let Some((name, _)) = line.split_once(" = ") else { continue };
        let is_ours = name.starts_with("freshet");
        assert!(is_ours || text.contains(&format!("`{name}`")), "ARCHITECTURE.md gives no reason for {name}");
    }
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > 1_000)
        .map(|(name, text)| format!("{name}: {} lines", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "{long:?}");
}
