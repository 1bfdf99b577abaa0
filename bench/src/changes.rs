//! Two files of results against each other: what changed beyond the noise of both.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use crate::results::{Better, Figure, Line, Run, read};
use crate::spread::{Spread, paired, spread};

/// Prints what is better and what is worse in `new`, then how far the other systems moved: they did not change, so
/// what moved them was the machine.
pub(crate) fn run(old: &Path, new: &Path) -> io::Result<()> {
    let (old, new) = (read(old)?, read(new)?);
    let mut text = String::new();
    for (name, lines) in [("old", &old), ("new", &new)] {
        for run in runs(lines) {
            let _ = writeln!(text, "{name} {}: commit {}, {} build, {}", run.suite, run.commit, run.build, run.started);
        }
    }
    let changes = changes(&figures(&old), &figures(&new));
    let _ = writeln!(text, "\n{:34} {:24} {:>12} {:>12} {:>8}  verdict", "case", "system", "old", "new", "factor");
    let flagged = |change: &&Change<'_>| change.verdict != Verdict::Noise && change.is_freshet();
    for change in changes.iter().filter(flagged) {
        let _ = writeln!(
            text,
            "{:34} {:24} {:>12.3} {:>12.3} {:>8.2}  {} ({}, {})",
            format!("{}/{}", change.figure.suite, change.figure.case),
            change.figure.system,
            change.old.median,
            change.new.median,
            change.factor(),
            change.verdict.name(),
            change.figure.metric,
            change.figure.unit,
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
    io::stdout().write_all(text.as_bytes())
}

fn runs(lines: &[Line]) -> impl Iterator<Item = &Run> {
    lines.iter().filter_map(|line| if let Line::Run(run) = line { Some(run) } else { None })
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
    verdict: Verdict,
}

impl Change<'_> {
    fn is_freshet(&self) -> bool {
        self.figure.system.starts_with("freshet")
    }

    fn factor(&self) -> f64 {
        self.new.median / self.old.median
    }
}

fn changes<'a>(olds: &[&'a Figure], news: &[&'a Figure]) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for figure in news {
        let Some(before) = olds.iter().find(|before| is_same(before, figure)) else { continue };
        let (old, new) = (spread(before.rounds.iter().copied()), spread(figure.rounds.iter().copied()));
        let raw = verdict(old, new, figure.better);
        let verdict = match relative(before, figure, olds, news) {
            // Beside another system of the same rounds it did not change: that one moved as far.
            Some((old, new)) if verdict(old, new, figure.better) != raw => Verdict::Noise,
            Some(_) | None => raw,
        };
        changes.push(Change { figure, old, new, verdict });
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

/// Beyond the noise: no round of one is among those of the other.
fn verdict(old: Spread, new: Spread, better: Better) -> Verdict {
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

    #[test]
    fn a_slower_machine_is_no_change_of_freshet() {
        let figure = |system: &str, rounds: [f64; 3]| Figure {
            suite: "engine".into(),
            case: "a".into(),
            system: system.into(),
            metric: "time".into(),
            unit: "ms".into(),
            better: Better::Less,
            rounds: rounds.to_vec(),
            at: None,
            note: String::new(),
        };
        let old = [figure("freshet", [1.0, 1.1, 1.2]), figure("DuckDB", [2.0, 2.2, 2.4])];
        let slower = [figure("freshet", [3.0, 3.2, 3.6]), figure("DuckDB", [6.0, 6.4, 7.2])];
        let worse = [figure("freshet", [3.0, 3.2, 3.6]), figure("DuckDB", [2.0, 2.2, 2.4])];
        let verdict_of = |new: &[Figure]| {
            let changes = changes(&old.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>())
                .into_iter()
                .map(|change| change.verdict);
            changes.collect::<Vec<_>>()
        };
        assert_eq!(verdict_of(&slower), [Verdict::Noise, Verdict::Worse]);
        assert_eq!(verdict_of(&worse), [Verdict::Worse, Verdict::Noise]);
    }

    #[test]
    fn only_what_no_round_of_the_other_run_reached_is_a_change() {
        let of = |values: [f64; 3]| spread(values);
        let (old, overlapping, slower) = (of([1.0, 1.1, 1.2]), of([1.15, 1.3, 1.4]), of([1.3, 1.4, 1.5]));
        assert_eq!(verdict(old, overlapping, Better::Less), Verdict::Noise);
        assert_eq!(verdict(old, slower, Better::Less), Verdict::Worse);
        assert_eq!(verdict(old, slower, Better::More), Verdict::Better);
        assert_eq!(verdict(old, slower, Better::Neither), Verdict::Noise);
    }
}
