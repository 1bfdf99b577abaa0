//! What freshet is meant to reach, held against a file of results: how many cases reach it, and the one that is farthest off.

mod wanted;

use std::fmt::Write as _;

use maud::{Markup, html};

use super::{Collected, Suite, number};
use crate::report::goals::wanted::Measure::{Added, AddedMedian, Kept, MeanRatio, Ratio, TimesP99, Value};
use crate::report::goals::wanted::{Goal, Measure, REDIS, STALE, Wanted, all};
use crate::results::{Better, Figure};
use crate::spread::{geometric_mean, median, paired};

/// A goal and what the file has of it.
pub(super) struct Outcome {
    what: &'static str,
    suite: &'static str,
    wanted: Wanted,
    is_counted: bool,
    /// By case; none: not measured.
    values: Vec<(String, f64)>,
    /// How the subject says that it was answered, where that is not for sure what the title says; of how many reads.
    remarks: Vec<String>,
}

impl Outcome {
    fn met(&self) -> usize {
        self.values.iter().filter(|(_, value)| self.wanted.is_met(*value)).count()
    }

    fn is_missed(&self) -> bool {
        self.is_counted && self.met() < self.values.len()
    }

    /// The case that is farthest off and its value, then what else there is to say.
    fn farthest(&self) -> String {
        let worst = self.worst().map(|(case, value)| format!("{case}: {}", number(*value)));
        worst.into_iter().chain(self.remarks.iter().cloned()).collect::<Vec<_>>().join("; ")
    }

    /// The case that is farthest off, or nearest to it.
    fn worst(&self) -> Option<&(String, f64)> {
        let margin = |(_, value): &(String, f64)| self.wanted.margin(*value);
        self.values.iter().min_by(|a, b| margin(a).total_cmp(&margin(b)))
    }
}

/// Those that the file has something of.
pub(super) fn outcomes(collected: &Collected) -> Vec<Outcome> {
    let outcome = |goal: Goal| {
        let suite = collected.suites.iter().find(|suite| suite.name == goal.suite)?;
        let values = values(suite, &goal);
        let remarks = match goal.measure {
            Ratio { .. } if goal.suite == "driver" => notes(suite, &goal),
            Value { subject, metric: STALE } => checked(suite, subject),
            _ => Vec::new(),
        };
        let Goal { what, suite, wanted, is_counted, .. } = goal;
        (!values.is_empty()).then_some(Outcome { what, suite, wanted, is_counted, values, remarks })
    };
    all().into_iter().filter_map(outcome).collect()
}

/// What the file says about how the subject of a ratio was answered.
fn notes(suite: &Suite, goal: &Goal) -> Vec<String> {
    let Ratio { subject, metric, .. } = goal.measure else { return Vec::new() };
    let is_it = |figure: &&Figure| {
        (goal.is_of)(&figure.case) && figure.system == subject && figure.metric == metric && !figure.note.is_empty()
    };
    let noted = suite.figures.iter().filter(is_it);
    noted.map(|figure| format!("{}: answered by {}", figure.case, figure.note)).collect()
}

/// How many reads were compared in all cases: the note of each case's `reads` begins with its number.
fn checked(suite: &Suite, subject: &str) -> Vec<String> {
    let reads = suite.figures.iter().filter(|figure| figure.system == subject && figure.metric == "reads");
    let counts = reads.filter_map(|figure| figure.note.split_whitespace().next()?.parse::<u64>().ok());
    let all: u64 = counts.sum();
    if all == 0 { Vec::new() } else { vec![format!("{all} reads checked")] }
}

fn values(suite: &Suite, goal: &Goal) -> Vec<(String, f64)> {
    let mut cases: Vec<&str> = Vec::new();
    for case in suite.figures.iter().map(|figure| &*figure.case).filter(|case| (goal.is_of)(case)) {
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    let valued = cases.into_iter().filter_map(|case| Some((case.to_owned(), value(suite, &goal.measure, case)?)));
    let valued: Vec<(String, f64)> = valued.collect();
    match goal.measure {
        MeanRatio { .. } if !valued.is_empty() => {
            let ratios: Vec<f64> = valued.iter().map(|(_, ratio)| *ratio).collect();
            vec![(format!("{} cases", ratios.len()), geometric_mean(&ratios))]
        }
        _ => valued,
    }
}

fn value(suite: &Suite, measure: &Measure, case: &str) -> Option<f64> {
    let find = |case: &str, system: &str, metric: &str| {
        let is_it =
            |figure: &&Figure| is_named(&figure.system, system) && (metric.is_empty() || figure.metric == metric);
        suite.figures.iter().filter(|figure| figure.case == case).find(is_it)
    };
    let figure = |system: &str, metric: &str| find(case, system, metric);
    let quantile = |system: &str, wanted: f64| {
        let latency = suite.latencies.iter().find(|one| one.case == case && one.system == system)?;
        latency.quantiles.iter().find(|(quantile, _)| *quantile == wanted).map(|(_, us)| *us)
    };
    match *measure {
        Ratio { subject, reference, metric } | MeanRatio { subject, reference, metric } => {
            let (subject, reference) = (figure(subject, metric)?, figure(reference, metric)?);
            let ratio = match subject.better {
                Better::More => paired(&subject.rounds, &reference.rounds),
                Better::Less | Better::Neither => paired(&reference.rounds, &subject.rounds),
            };
            Some(ratio.median)
        }
        Value { subject, metric } => Some(median(figure(subject, metric)?.rounds.iter().copied())),
        Added { subject, reference, metric } => {
            let rounds = figure(subject, metric)?.rounds.iter().zip(&figure(reference, metric)?.rounds);
            Some(median(rounds.map(|(one, other)| one - other)))
        }
        AddedMedian { subject, reference } => Some(quantile(subject, 0.5)? - quantile(reference, 0.5)?),
        TimesP99 { subject, reference } => Some(quantile(subject, 0.99)? / quantile(reference, 0.99)?),
        Kept { subject, of } => {
            let rate = |case: &str| Some(median(find(case, subject, "rate")?.rounds.iter().copied()));
            Some(rate(case)? / rate(of)?)
        }
    }
}

fn is_named(system: &str, name: &str) -> bool {
    if name == REDIS { ["Redis", "Valkey"].contains(&system) } else { system == name }
}

/// As a table of Markdown.
pub(super) fn text(outcomes: &[Outcome]) -> String {
    let mut text = "| goal | suite | wanted | reached | farthest off |\n|---|---|---|---|---|\n".to_owned();
    for outcome in outcomes {
        let worst = outcome.farthest();
        let (all, met) = (outcome.values.len(), outcome.met());
        let (mark, wanted) = (if outcome.is_missed() { "**" } else { "" }, outcome.wanted.text());
        let (what, suite) = (outcome.what, outcome.suite);
        let _ = writeln!(text, "| {what} | {suite} | {wanted} | {mark}{met} of {all}{mark} | {worst} |");
    }
    text
}

/// The same for the page.
pub(super) fn table(outcomes: &[Outcome]) -> Markup {
    html! {
        @if !outcomes.is_empty() {
            h2 { "goals" }
            table.overview {
                thead { tr { th { "goal" } th { "suite" } th.number { "wanted" } th.number { "reached" } th { "farthest off" } } }
                tbody {
                    @for outcome in outcomes {
                        tr class=[outcome.is_missed().then_some("missed")] {
                            td { (outcome.what) } td { (outcome.suite) } td.number { (outcome.wanted.text()) }
                            td.number { (outcome.met()) " of " (outcome.values.len()) }
                            td { (outcome.farthest()) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::ResultsFile;

    #[test]
    fn no_two_goals_have_the_same_title() {
        let mut titles: Vec<(&str, &str)> = all().iter().map(|goal| (goal.what, goal.suite)).collect();
        let count = titles.len();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), count);
        assert!(titles.windows(2).all(|pair| pair[0].0 != pair[1].0), "of several suites neither");
    }

    #[test]
    fn a_goal_against_redis_counts_valkey_too() {
        let file = ResultsFile::of("kv");
        let mut results = file.opened();
        for (system, value) in [("freshet session", 50.0), ("Valkey", 100.0)] {
            results.figure("8 connections/read", system, ("rate", "/s", Better::More), &[value], "").expect("written");
        }
        let text = text(&outcomes(&file.collected()));
        assert!(text.contains("| kv | ≥ 1 | **0 of 1** | 8 connections/read: 0.500 |"), "{text}");
    }

    /// On shared cores it cannot be met: it must not look like a goal that was missed.
    #[test]
    fn a_goal_for_unshared_cores_is_shown_and_not_missed() {
        let file = ResultsFile::of("relay");
        let mut results = file.opened();
        for (system, value) in [("freshet", 70.0), ("direct", 100.0)] {
            let metric = ("rate", "units/s", Better::More);
            results.figure("batch of 10,000, tcp", system, metric, &[value], "").expect("written");
        }
        let outcomes = outcomes(&file.collected());
        let text = text(&outcomes);
        assert!(text.contains("not counted) | relay | ≥ 0.99 | 0 of 1 | batch of 10,000, tcp: 0.700 |"), "{text}");
        assert!(!table(&outcomes).into_string().contains("missed"));
    }

    #[test]
    fn stale_answers_say_of_how_many_reads() {
        let file = ResultsFile::of("freshness");
        let mut results = file.opened();
        for case in ["exact, 0 commits/s", "exact, 300 commits/s"] {
            let mut figure = |metric, value, note| {
                results.figure(case, "freshet exact", (metric, "", Better::Less), &[value], note).expect("written");
            };
            figure("reads", 100.0, "1000 reads, each compared");
            figure(STALE, 0.0, "");
        }
        let text = text(&outcomes(&file.collected()));
        assert!(text.contains("2000 reads checked"), "{text}");
    }

    #[test]
    fn a_goal_names_the_case_that_is_farthest_off() {
        let file = ResultsFile::of("relay");
        let mut results = file.opened();
        for (case, ours) in [("select-simple, tcp", 96.0), ("insert-simple, tcp", 80.0), ("idle, tcp", 1.0)] {
            for (system, value) in [("freshet", ours), ("cheapest relay", 100.0)] {
                results.figure(case, system, ("rate", "units/s", Better::More), &[value], "").expect("written");
            }
        }
        for (system, us) in [("freshet", [130.0, 150.0]), ("direct", [100.0, 125.0])] {
            results.figure("latency, tcp", system, ("p50", "us", Better::Less), &us, "").expect("written");
        }
        let outcomes = outcomes(&file.collected());
        let text = text(&outcomes);
        assert!(text.contains("| relay | ≥ 0.95 | **1 of 2** | insert-simple, tcp: 0.800 |"), "{text}");
        assert!(text.contains("| relay | ≤ 40 | 1 of 1 | latency, tcp: 27.5 |"), "{text}");
        assert_eq!(outcomes.len(), 2, "nothing of what was not measured: {text}");
    }
}
