//! Every suite, one after the other, each within its budget of time; all of them run even if one fails.

use crate::console::say;
use std::ffi::OsString;
use std::io::{self};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A suite's arguments, its budget in minutes, and seconds of a quick run.
struct Suite {
    name: &'static str,
    minutes: u64,
    quick_seconds: u64,
    /// A part, where the whole takes too long for a quick run of everything, and the seconds of the whole.
    quick_only: Option<(&'static str, u64)>,
}

const SUITES: [Suite; 10] = [
    Suite { name: "engine", minutes: 12, quick_seconds: 30, quick_only: None },
    Suite { name: "batch", minutes: 38, quick_seconds: 80, quick_only: None },
    Suite { name: "throughput", minutes: 32, quick_seconds: 45, quick_only: None },
    Suite { name: "hits", minutes: 15, quick_seconds: 20, quick_only: None },
    Suite { name: "kv", minutes: 12, quick_seconds: 15, quick_only: None },
    Suite { name: "freshness", minutes: 7, quick_seconds: 25, quick_only: None },
    Suite { name: "scale", minutes: 14, quick_seconds: 15, quick_only: None },
    Suite { name: "tpch", minutes: 11, quick_seconds: 15, quick_only: None },
    Suite { name: "driver", minutes: 13, quick_seconds: 25, quick_only: None },
    Suite { name: "relay", minutes: 26, quick_seconds: 30, quick_only: Some(("select-prepared", 200)) },
];

/// What a suite may take, or the part of it that a quick run of everything has.
pub(crate) fn budget(name: &str, quick: bool, only: Option<&str>) -> Option<Duration> {
    let suite = SUITES.iter().find(|suite| suite.name == name)?;
    let seconds = match suite.quick_only {
        _ if !quick => 60 * suite.minutes,
        Some((part, whole)) if only != Some(part) => whole,
        Some(_) | None => suite.quick_seconds,
    };
    Some(Duration::from_secs(seconds))
}

/// Runs each in a process of its own: what one leaves behind in memory does not matter to the next.
pub(crate) fn run(quick: bool, results: Option<&Path>) -> io::Result<()> {
    let mut failed = Vec::new();
    let mut spent = String::new();
    for suite in SUITES {
        let part = suite.quick_only.map(|(part, _)| part);
        let budget = budget(suite.name, quick, part).unwrap_or_default();
        let began = Instant::now();
        let status = Command::new(std::env::current_exe()?).args(arguments(&suite, quick, results, budget)).status()?;
        if !status.success() {
            failed.push(suite.name);
        }
        let elapsed = began.elapsed();
        let verdict = if elapsed > budget { ", over its budget" } else { "" };
        spent.push_str(&format!("{}: {:.0} s of {} s{verdict}\n", suite.name, elapsed.as_secs_f64(), budget.as_secs()));
    }
    say(spent.trim_end());
    if failed.is_empty() { Ok(()) } else { Err(io::Error::other(format!("failed: {}", failed.join(", ")))) }
}

/// A suite over twice its budget stops.
fn arguments(suite: &Suite, quick: bool, results: Option<&Path>, budget: Duration) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![suite.name.into(), "--stop-after".into()];
    arguments.push((2 * budget).as_secs().to_string().into());
    if quick {
        arguments.push("--quick".into());
        if let Some((part, _)) = suite.quick_only {
            arguments.extend(["--only".into(), part.into()]);
        }
    }
    if let Some(results) = results {
        arguments.extend(["--results".into(), results.into()]);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_these_budgets() {
        let readme = include_str!("../README.md");
        for Suite { name, minutes, quick_seconds, .. } in SUITES {
            let line = format!("| {name} | {minutes} | {quick_seconds} |");
            assert!(readme.contains(&line), "{line}");
        }
    }

    #[test]
    fn a_full_run_ends_within_three_hours_and_a_quick_one_within_five_minutes() {
        assert!(SUITES.iter().map(|suite| suite.minutes).sum::<u64>() <= 180);
        assert!(SUITES.iter().map(|suite| suite.quick_seconds).sum::<u64>() <= 300);
    }
}
