//! What is shown and kept of a mode at a rate. What did not happen, such as commits at a rate of 0, has no figure.

use std::io;

use hdrhistogram::Histogram;

use crate::console::print;
use crate::freshness::ALONE;
use crate::freshness::measure::Measured;
use crate::load::histogram;
use crate::results::{Better, Results};
use crate::spread::median;

const CORE: &str = "% of a core";
/// Of everybody but the walsender, which has its own.
const UPSTREAMS_TIME: &str = "processor time of the rest of PostgreSQL";
const CLIENTS_TIME: &str = "processor time of the client";

pub(super) fn head() {
    print(&format!(
        "\n{:16} {:>9} {:>9} {:>17} {:>8} {:>19} {:>23} {:>17} {:>8} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "mode",
        "commits/s",
        "achieved",
        "commit us p50 p99",
        "stale %",
        "stale by, p99 max",
        "commit to seen p50 p99",
        "read us, p50 p99",
        "reads/s",
        "freshet %",
        "walsend %",
        "PG rest %",
        "client %",
        "RSS MB, both"
    ));
}

/// `rounds` are those of one system.
pub(super) fn write(case: &str, system: &str, rate: u64, rounds: &[Measured], results: &mut Results) -> io::Result<()> {
    let figures = figures(rounds, system != ALONE);
    let shown = |metric: &str| {
        let figure = figures.iter().find(|figure| figure.metric == metric);
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{:.1}", median(figure.rounds.iter().copied())))
    };
    let pair = |one: &str, other: &str| format!("{} {}", shown(one), shown(other));
    print(&format!(
        "{system:16} {rate:>9} {:>9} {:>17} {:>8} {:>19} {:>23} {:>17} {:>8} {:>9} {:>9} {:>9} {:>9} {:>12}",
        shown("commits achieved"),
        pair("commit, p50", "commit, p99"),
        shown("stale answers"),
        pair("stale by, p99", "stale by, at most"),
        pair("commit to seen, p50", "commit to seen, p99"),
        pair("read, p50", "read, p99"),
        shown("reads"),
        shown("freshet's processor time"),
        shown("walsender's processor time"),
        shown(UPSTREAMS_TIME),
        shown(CLIENTS_TIME),
        pair("freshet's resident memory", "walsender's resident memory")
    ));
    for figure in &figures {
        let metric = (figure.metric, figure.unit, figure.better);
        results.figure(case, system, metric, &figure.rounds, &figure.note)?;
    }
    let all: [(&str, fn(&Measured) -> &Histogram<u64>); 4] = [
        ("commit", |round| &round.commits),
        ("read", |round| &round.reads),
        ("commit to seen", |round| &round.visible),
        ("stale by", |round| &round.staleness),
    ];
    for (name, of) in all {
        let mut whole = histogram();
        for round in rounds {
            whole.add(of(round)).map_err(io::Error::other)?;
        }
        let name = if system == ALONE { format!("{name}, {ALONE}") } else { name.to_owned() };
        results.latency(case, &name, &whole)?;
    }
    Ok(())
}

struct Figure {
    metric: &'static str,
    unit: &'static str,
    better: Better,
    rounds: Vec<f64>,
    note: String,
}

fn figures(rounds: &[Measured], is_followed: bool) -> Vec<Figure> {
    let of = |value: &dyn Fn(&Measured) -> f64| rounds.iter().map(value).collect::<Vec<f64>>();
    let figure = |metric, unit, better, rounds| Figure { metric, unit, better, rounds, note: String::new() };
    let mut all = Vec::new();
    let mut quantiles = |metrics: [&'static str; 2], of_round: fn(&Measured) -> &Histogram<u64>| {
        if rounds.iter().any(|round| of_round(round).is_empty()) {
            return;
        }
        for (metric, quantile) in metrics.into_iter().zip([0.5, 0.99]) {
            let us = |round: &Measured| of_round(round).value_at_quantile(quantile) as f64 / 1000.0;
            all.push(figure(metric, "us", Better::Less, of(&us)));
        }
    };
    quantiles(["commit, p50", "commit, p99"], |round| &round.commits);
    quantiles(["read, p50", "read, p99"], |round| &round.reads);
    quantiles(["commit to seen, p50", "commit to seen, p99"], |round| &round.visible);
    let per_second = |count: u64, round: &Measured| count as f64 / round.seconds;
    let reads: u64 = rounds.iter().map(|round| round.reads.len()).sum();
    all.push(figure("commits achieved", "commits/s", Better::Neither, of(&|one| per_second(one.commits.len(), one))));
    let counted = figure("reads", "reads/s", Better::Neither, of(&|one| per_second(one.reads.len(), one)));
    all.push(Figure { note: format!("{reads} reads, each compared"), ..counted });
    // The reader asks as fast as it can: more is neither.
    all.push(figure(UPSTREAMS_TIME, CORE, Better::Neither, of(&|one| of_core(one, 2))));
    all.push(figure(CLIENTS_TIME, CORE, Better::Neither, of(&|one| of_core(one, 3))));
    if is_followed {
        all.extend(of_followers(rounds, figure));
    }
    all
}

fn of_core(round: &Measured, who: usize) -> f64 {
    100.0 * round.processor[who].as_secs_f64() / round.seconds
}

/// How stale answers are, and what following takes.
fn of_followers(
    rounds: &[Measured],
    figure: impl Fn(&'static str, &'static str, Better, Vec<f64>) -> Figure,
) -> Vec<Figure> {
    let of = |value: &dyn Fn(&Measured) -> f64| rounds.iter().map(value).collect::<Vec<f64>>();
    let share = |round: &Measured| 100.0 * round.stale as f64 / round.reads.len() as f64;
    // Over all answers: those that are not stale are so by nothing.
    let stale_by = |round: &Measured, quantile: f64| {
        let (all, stale) = (round.reads.len() as f64, round.stale as f64);
        let above = (1.0 - quantile) * all;
        if stale <= above { 0.0 } else { round.staleness.value_at_quantile(1.0 - above / stale) as f64 / 1000.0 }
    };
    let most = |round: &Measured| if round.staleness.is_empty() { 0.0 } else { round.staleness.max() as f64 / 1000.0 };
    let megabytes = |round: &Measured, who: usize| round.memory_kb[who] as f64 / 1024.0;
    vec![
        figure("stale answers", "%", Better::Less, of(&share)),
        figure("stale by, p99", "us", Better::Less, of(&|one| stale_by(one, 0.99))),
        figure("stale by, at most", "us", Better::Less, of(&most)),
        figure("freshet's processor time", CORE, Better::Less, of(&|one| of_core(one, 0))),
        figure("walsender's processor time", CORE, Better::Less, of(&|one| of_core(one, 1))),
        figure("freshet's resident memory", "MB", Better::Less, of(&|one| megabytes(one, 0))),
        figure("walsender's resident memory", "MB", Better::Less, of(&|one| megabytes(one, 1))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_did_not_happen_has_no_figure() {
        let mut reads = histogram();
        reads.saturating_record(50_000);
        let round = Measured {
            seconds: 1.0,
            commits: histogram(),
            reads,
            staleness: histogram(),
            visible: histogram(),
            stale: 0,
            processor: [Duration::ZERO; 4],
            memory_kb: [1024, 2048],
        };
        let all = figures(&[round], true);
        let stale_by = all.iter().find(|figure| figure.metric == "stale by, p99").expect("there");
        assert_eq!(stale_by.rounds, [0.0]);
        let names: Vec<&str> = all.iter().map(|figure| figure.metric).collect();
        assert!(!names.contains(&"commit, p50") && !names.contains(&"commit to seen, p50"), "{names:?}");
        assert!(names.contains(&"read, p50") && names.contains(&"stale by, at most"), "{names:?}");
        let memory = all.iter().find(|figure| figure.metric == "walsender's resident memory").expect("there");
        assert_eq!(memory.rounds, [2.0]);
    }
}
