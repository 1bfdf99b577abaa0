//! Which commit a release build was made from: results carry it, whatever the working tree has become since.

use std::process::Command;

fn main() {
    // A debug build's figures mean nothing: it need not be made anew for each commit.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = if is_release { commit() } else { "unknown".to_owned() };
    println!("cargo:rustc-env=BENCH_COMMIT={commit}");
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|_| is_release) {
        println!("cargo:rerun-if-changed={log}");
        for folder in ["../engine/src", "../proxy/src", "src"] {
            println!("cargo:rerun-if-changed={folder}");
        }
    }
}

/// `+` where the tree had changes.
fn commit() -> String {
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no", ":!/bench/results"]).unwrap_or_default();
    format!("{commit}{}", if changed.is_empty() { "" } else { "+" })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
