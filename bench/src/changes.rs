//! Two files of results against each other: what changed beyond the noise of both, and what only one of them has.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use crate::results::{Better, Figure, Latency, Line, Run, read};
use crate::spread::{Spread, paired, spread, taken_by_host};

/// Rounds from which on least and greatest say something about the noise.
const ROUNDS_MIN: usize = 3;
/// What fewer have to differ by, either way, to be more than noise.
const EFFECT_MIN: f64 = 1.2;
/// The same of a 99th percentile, which scatters more: few times lie beyond it.
const TAIL_EFFECT_MIN: f64 = 1.5;
const TAIL: &str = "p99";

/// Prints what is better and what is worse in `new`, then how far the other systems moved: they did not change, so
/// what moved them was the machine. How many of freshet's figures are worse.
pub(crate) fn run(old: &Path, new: &Path) -> io::Result<usize> {
    let (old, new) = (with_quantiles(read(old)?), with_quantiles(read(new)?));
    let mut text = String::new();
    for (name, lines) in [("old", &old), ("new", &new)] {
        for run in runs(lines).values() {
            let _ = writeln!(text, "{name} {}: commit {}, {} build, {}", run.suite, run.commit, run.build, run.started);
        }
    }
    for (name, lines) in [("old", &old), ("new", &new)] {
        for (suite, taken) in taken(lines) {
            let _ = writeln!(text, "{name} {suite}: {}", taken_by_host(&taken));
        }
    }
    for difference in differences(&runs(&old), &runs(&new)) {
        let _ = writeln!(text, "not the same conditions: {difference}");
    }
    let (olds, news) = (figures(&old), figures(&new));
    for (name, some, others) in [("old", &olds, &news), ("new", &news, &olds)] {
        for (suite, what) in only_in(some, others) {
            let _ = writeln!(text, "only in {name}: {suite}: {}", what.join("; "));
        }
    }
    let changes = changes(&olds, &news);
    text.push_str(&table(&changes));
    io::stdout().write_all(text.as_bytes())?;
    Ok(changes.iter().filter(|change| change.is_freshet() && change.verdict == Verdict::Worse).count())
}

fn table(changes: &[Change<'_>]) -> String {
    let mut text = format!("\n{:34} {:24} {:>12} {:>12} {:>8}  verdict\n", "case", "system", "old", "new", "factor");
    let flagged = |change: &&Change<'_>| change.verdict != Verdict::Noise && change.is_freshet();
    for change in changes.iter().filter(flagged) {
        let _ = writeln!(
            text,
            "{:34} {:24} {:>12.3} {:>12.3} {:>8.2}  {} ({}, {}{})",
            format!("{}/{}", change.figure.suite, change.figure.case),
            change.figure.system,
            change.old.median,
            change.new.median,
            change.factor(),
            change.verdict.name(),
            change.figure.metric,
            change.figure.unit,
            change.caution(),
        );
    }
    let count = |is_freshet: bool, verdict: Verdict| {
        changes.iter().filter(|change| change.is_freshet() == is_freshet && change.verdict == verdict).count()
    };
    for (name, is_freshet) in [("freshet", true), ("other systems (the machine, then)", false)] {
        let _ = writeln!(
            text,
            "{name}: {} better, {} worse, {} within the noise",
            count(is_freshet, Verdict::Better),
            count(is_freshet, Verdict::Worse),
            count(is_freshet, Verdict::Noise)
        );
    }
    let few = changes.iter().filter(|change| change.rounds < ROUNDS_MIN).count();
    if few > 0 {
        let [least, of_tails] = [EFFECT_MIN, TAIL_EFFECT_MIN].map(|effect| 100.0 * (effect - 1.0));
        let _ = writeln!(
            text,
            "{few} figures have fewer than {ROUNDS_MIN} rounds: of them less than {least:.0} % is taken for noise, of a {TAIL} \
             less than {of_tails:.0} %"
        );
    }
    text
}

/// The newest of each suite.
fn runs(lines: &[Line]) -> BTreeMap<&str, &Run> {
    let runs = lines.iter().filter_map(|line| if let Line::Run(run) = line { Some(run) } else { None });
    runs.map(|run| (&*run.suite, run)).collect()
}

/// By suite, case by case.
fn taken(lines: &[Line]) -> BTreeMap<&str, Vec<f64>> {
    let mut by_suite: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in lines {
        if let Line::Done { suite, taken: Some(taken), .. } = line {
            by_suite.entry(suite).or_default().push(*taken);
        }
    }
    by_suite
}

/// Of suites that both have: machine, versions, settings and build. How loaded a machine was is no part of it.
fn differences(olds: &BTreeMap<&str, &Run>, news: &BTreeMap<&str, &Run>) -> Vec<String> {
    let mut all = Vec::new();
    for (suite, new) in news {
        let Some(old) = olds.get(suite) else { continue };
        if old.build != new.build {
            all.push(format!("{suite}: build {} -> {}", old.build, new.build));
        }
        for (old, new) in [(&old.machine, &new.machine), (&old.versions, &new.versions), (&old.settings, &new.settings)]
        {
            let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names.into_iter().filter(|name| *name != "load before" && old.get(*name) != new.get(*name)) {
                let of =
                    |pairs: &BTreeMap<String, String>| pairs.get(name).map_or("not said", String::as_str).to_owned();
                all.push(format!("{suite}: {name} {} -> {}", of(old), of(new)));
            }
        }
    }
    all
}

/// By suite, cases and systems that the other file does not have, as `case (system, system)`.
fn only_in<'a>(some: &[&'a Figure], others: &[&Figure]) -> BTreeMap<&'a str, Vec<String>> {
    let mut missing: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for figure in some {
        let is_there = |other: &&Figure| {
            (&other.suite, &other.case, &other.system) == (&figure.suite, &figure.case, &figure.system)
        };
        let systems = missing.entry((&figure.suite, &figure.case)).or_default();
        if !others.iter().any(is_there) && !systems.contains(&&*figure.system) {
            systems.push(&figure.system);
        }
    }
    let mut by_suite: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((suite, case), systems) in missing.into_iter().filter(|(_, systems)| !systems.is_empty()) {
        by_suite.entry(suite).or_default().push(format!("{case} ({})", systems.join(", ")));
    }
    by_suite
}

/// The newest of each.
fn figures(lines: &[Line]) -> Vec<&Figure> {
    let mut all: Vec<&Figure> = Vec::new();
    for line in lines {
        let Line::Figure(figure) = line else { continue };
        match all.iter_mut().find(|other| is_same(other, figure)) {
            Some(place) => *place = figure,
            None => all.push(figure),
        }
    }
    all
}

/// Distributions as figures of one round, where the file has no median of each round.
fn with_quantiles(mut lines: Vec<Line>) -> Vec<Line> {
    let is_by_round = |latency: &Latency| {
        lines.iter().any(|line| {
            let Line::Figure(figure) = line else { return false };
            (&figure.suite, &figure.case) == (&latency.suite, &latency.case)
                && latency.system.starts_with(&figure.system)
                && figure.metric.ends_with("p50")
        })
    };
    let alone = lines.iter().filter_map(|line| match line {
        Line::Latency(latency) if !is_by_round(latency) => Some(latency),
        _ => None,
    });
    let added: Vec<Line> = alone.flat_map(quantiles).map(Line::Figure).collect();
    lines.extend(added);
    lines
}

fn quantiles(latency: &Latency) -> impl Iterator<Item = Figure> + '_ {
    [(0.5, "p50"), (0.99, TAIL)].into_iter().filter_map(|(wanted, metric)| {
        let (_, us) = latency.quantiles.iter().find(|(quantile, _)| *quantile == wanted)?;
        Some(Figure {
            suite: latency.suite.clone(),
            case: latency.case.clone(),
            system: latency.system.clone(),
            metric: metric.to_owned(),
            unit: "us".to_owned(),
            better: Better::Less,
            rounds: vec![*us],
            at: None,
            note: String::new(),
        })
    })
}

fn is_same(one: &Figure, other: &Figure) -> bool {
    (&one.suite, &one.case, &one.system, &one.metric) == (&other.suite, &other.case, &other.system, &other.metric)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Better,
    Worse,
    Noise,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "WORSE",
            Self::Noise => "noise",
        }
    }
}

struct Change<'a> {
    figure: &'a Figure,
    old: Spread,
    new: Spread,
    /// Of the file that has fewer.
    rounds: usize,
    verdict: Verdict,
}

impl Change<'_> {
    fn is_freshet(&self) -> bool {
        self.figure.system.starts_with("freshet")
    }

    fn factor(&self) -> f64 {
        self.new.median / self.old.median
    }

    fn caution(&self) -> &'static str {
        match self.rounds {
            0 | 1 => "; one round only",
            2 => "; two rounds only",
            _ => "",
        }
    }
}

fn changes<'a>(olds: &[&'a Figure], news: &[&'a Figure]) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for figure in news {
        let Some(before) = olds.iter().find(|before| is_same(before, figure)) else { continue };
        let (old, new) = (spread(before.rounds.iter().copied()), spread(figure.rounds.iter().copied()));
        let rounds = before.rounds.len().min(figure.rounds.len());
        let effect = if figure.metric == TAIL { TAIL_EFFECT_MIN } else { EFFECT_MIN };
        let raw = verdict(old, new, (rounds, effect), figure.better);
        let verdict = match relative(before, figure, olds, news) {
            // Beside another system of the same rounds it did not change: that one moved as far.
            Some((old, new)) if verdict(old, new, (rounds, effect), figure.better) != raw => Verdict::Noise,
            Some(_) | None => raw,
        };
        changes.push(Change { figure, old, new, rounds, verdict });
    }
    changes
}

/// One of freshet's figures in proportion to another system's of the same case, round by round, in both files.
fn relative(before: &Figure, after: &Figure, olds: &[&Figure], news: &[&Figure]) -> Option<(Spread, Spread)> {
    let is_freshet = |figure: &Figure| figure.system.starts_with("freshet");
    if !is_freshet(after) {
        return None;
    }
    let beside = |figure: &Figure, other: &Figure| {
        (&figure.suite, &figure.case, &figure.metric) == (&other.suite, &other.case, &other.metric)
            && !is_freshet(other)
    };
    let new = news.iter().find(|other| beside(after, other))?;
    let old = olds.iter().find(|other| is_same(other, new))?;
    Some((paired(&before.rounds, &old.rounds), paired(&after.rounds, &new.rounds)))
}

/// Beyond the noise: no round of one is among those of the other, and where rounds are too few to show how far they
/// scatter, the medians are a factor of `effect` apart besides.
fn verdict(old: Spread, new: Spread, (rounds, effect): (usize, f64), better: Better) -> Verdict {
    let factor = (new.median / old.median).max(old.median / new.median);
    if rounds < ROUNDS_MIN && factor < effect {
        return Verdict::Noise;
    }
    let (is_more, is_less) = (new.min > old.max, new.max < old.min);
    match better {
        Better::More if is_more => Verdict::Better,
        Better::More if is_less => Verdict::Worse,
        Better::Less if is_less => Verdict::Better,
        Better::Less if is_more => Verdict::Worse,
        Better::More | Better::Less | Better::Neither => Verdict::Noise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(case: &str, system: &str, rounds: &[f64]) -> Figure {
        Figure {
            suite: "engine".into(),
            case: case.into(),
            system: system.into(),
            metric: "time".into(),
            unit: "ms".into(),
            better: Better::Less,
            rounds: rounds.to_vec(),
            at: None,
            note: String::new(),
        }
    }

    fn verdicts(old: &[Figure], new: &[Figure]) -> Vec<Verdict> {
        let changes = changes(&old.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>());
        changes.iter().map(|change| change.verdict).collect()
    }

    #[test]
    fn a_slower_machine_is_no_change_of_freshet() {
        let old = [figure("a", "freshet", &[1.0, 1.1, 1.2]), figure("a", "DuckDB", &[2.0, 2.2, 2.4])];
        let slower = [figure("a", "freshet", &[3.0, 3.2, 3.6]), figure("a", "DuckDB", &[6.0, 6.4, 7.2])];
        let worse = [figure("a", "freshet", &[3.0, 3.2, 3.6]), figure("a", "DuckDB", &[2.0, 2.2, 2.4])];
        assert_eq!(verdicts(&old, &slower), [Verdict::Noise, Verdict::Worse]);
        assert_eq!(verdicts(&old, &worse), [Verdict::Worse, Verdict::Noise]);
    }

    #[test]
    fn only_what_no_round_of_the_other_run_reached_is_a_change() {
        let of = |values: [f64; 3]| spread(values);
        let (old, overlapping, slower) = (of([1.0, 1.1, 1.2]), of([1.15, 1.3, 1.4]), of([1.3, 1.4, 1.5]));
        assert_eq!(verdict(old, overlapping, (3, EFFECT_MIN), Better::Less), Verdict::Noise);
        assert_eq!(verdict(old, slower, (3, EFFECT_MIN), Better::Less), Verdict::Worse);
        assert_eq!(verdict(old, slower, (3, EFFECT_MIN), Better::More), Verdict::Better);
        assert_eq!(verdict(old, slower, (3, EFFECT_MIN), Better::Neither), Verdict::Noise);
    }

    /// A single round is its own least and greatest: any difference at all was called a change.
    #[test]
    fn one_round_against_one_has_to_differ_by_much() {
        let of = |value: f64| [figure("a", "freshet", &[value])];
        assert_eq!(verdicts(&of(1.0), &of(1.1)), [Verdict::Noise]);
        assert_eq!(verdicts(&of(1.0), &of(1.5)), [Verdict::Worse]);
        let (old, new) = (of(1.0), of(1.5));
        assert!(table(&changes(&[&old[0]], &[&new[0]])).contains("one round only"));
    }

    /// A file of one case: a value of `p99` by round, or none and the distribution alone.
    fn file(folder: &Path, name: &str, p99: &[f64], us: f64) -> std::path::PathBuf {
        let path = folder.join(name);
        let mut lines = Vec::new();
        for system in ["freshet", "canned reply"] {
            // What freshet is compared with stays as it is.
            let of = |us: f64| if system == "freshet" { us } else { 70.0 };
            let rounds: Vec<f64> = p99.iter().map(|us| of(*us)).collect();
            for (metric, rounds) in [("p50", vec![50.0; p99.len()]), (TAIL, rounds)] {
                if !p99.is_empty() {
                    lines.push(Line::Figure(Figure { metric: metric.into(), ..figure("a", system, &rounds) }));
                }
            }
            let quantiles = vec![(0.5, 50.0), (0.99, of(us))];
            lines.push(Line::Latency(Latency {
                suite: "engine".into(),
                case: "a".into(),
                system: system.into(),
                quantiles,
            }));
        }
        let text: String = lines.iter().map(|line| serde_json::to_string(line).expect("written") + "\n").collect();
        std::fs::write(&path, text).expect("written");
        path
    }

    /// Distributions were left out: a tail twice as long was no change.
    #[test]
    fn a_p99_that_doubled_is_worse() {
        let folder = tempfile::tempdir().expect("a folder");
        let worse = |old: &[f64], old_us: f64, new: &[f64], new_us: f64| {
            let old = file(folder.path(), "old.jsonl", old, old_us);
            run(&old, &file(folder.path(), "new.jsonl", new, new_us)).expect("compared")
        };
        assert_eq!(worse(&[100.0, 105.0, 110.0], 105.0, &[200.0, 210.0, 220.0], 210.0), 1, "by round");
        assert_eq!(worse(&[], 105.0, &[], 210.0), 1, "distributions alone");
        assert_eq!(worse(&[], 105.0, &[200.0, 210.0, 220.0], 210.0), 1, "an older file beside a newer");
        assert_eq!(worse(&[], 105.0, &[], 140.0), 0, "a third more of one tail says nothing");
        assert_eq!(worse(&[100.0, 150.0, 210.0], 150.0, &[180.0, 190.0, 220.0], 190.0), 0, "they overlap");
    }

    #[test]
    fn what_one_file_alone_has_is_named() {
        let old = [figure("a", "freshet", &[1.0]), figure("a", "DuckDB", &[1.0]), figure("b", "freshet", &[1.0])];
        let new = [figure("a", "freshet", &[1.0])];
        let missing = only_in(&old.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>());
        assert_eq!(missing["engine"], ["a (DuckDB)", "b (freshet)"]);
    }

    #[test]
    fn other_conditions_are_named_but_not_another_load() {
        let run = |cores: &str, load: &str| Run {
            suite: "engine".into(),
            started: String::new(),
            commit: String::new(),
            build: "release".into(),
            machine: BTreeMap::from([("cores".into(), cores.into()), ("load before".into(), load.into())]),
            versions: BTreeMap::new(),
            settings: BTreeMap::new(),
        };
        let (old, new) = (run("2", "1.0"), run("4", "3.0"));
        let found = differences(&BTreeMap::from([("engine", &old)]), &BTreeMap::from([("engine", &new)]));
        assert_eq!(found, ["engine: cores 2 -> 4"]);
    }
}
