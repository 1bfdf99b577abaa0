//! One self-contained page from a file of results: ratios as bars on a log axis, latency distributions, growth curves,
//! every figure in a table, and what was skipped and why.

mod bars;
mod curves;
mod goals;
mod scale;
mod summary;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::results::{Better, Figure, Latency, Line, Run, Skip, read};
use crate::spread::{Spread, geometric_mean, paired, spread, taken_by_host};

/// Writes the page beside the results, or to `output`.
pub(crate) fn run(results: &Path, output: Option<&Path>) -> io::Result<()> {
    let page = page(&Collected::of(read(results)?)).into_string();
    let path = output.map_or_else(|| results.with_extension("html"), PathBuf::from);
    std::fs::write(&path, page)?;
    writeln!(io::stdout(), "{}", path.display())
}

/// Prints the overview as tables for a README, under the conditions of its runs.
pub(crate) fn markdown(results: &Path) -> io::Result<()> {
    io::stdout().write_all(summary::text(&Collected::of(read(results)?)).as_bytes())
}

/// Puts the overview between the marks of a file, and a short one into another.
pub(crate) fn fill(results: &Path, readme: &Path, short: &Path) -> io::Result<()> {
    let name = results.file_name().unwrap_or_default().to_string_lossy();
    let collected = Collected::of(read(results)?);
    for (path, text) in [(readme, summary::text(&collected)), (short, summary::brief(&collected))] {
        let old = std::fs::read_to_string(path)?;
        let filled = summary::between_marks(&old, &format!("From `{name}`.\n\n{text}"))
            .ok_or_else(|| io::Error::other(format!("{}: the marks are not there", path.display())))?;
        std::fs::write(path, filled)?;
    }
    Ok(())
}

/// The newest of each thing in a file.
#[derive(Default)]
struct Collected {
    suites: Vec<Suite>,
}

struct Suite {
    name: String,
    /// The newest run.
    run: Run,
    /// Of which commit each case's newest figure is: a later run of a part leaves the others as they were.
    commits: BTreeMap<String, String>,
    figures: Vec<Figure>,
    latencies: Vec<Latency>,
    skips: Vec<Skip>,
    /// By case: what share of the processors the host took while it was measured.
    taken: Vec<(String, f64)>,
}

impl Collected {
    fn of(lines: Vec<Line>) -> Self {
        let mut collected = Self::default();
        for line in lines {
            match line {
                Line::Run(run) => match collected.suite(&run.suite) {
                    Some(suite) => suite.run = run,
                    None => collected.suites.push(Suite {
                        name: run.suite.clone(),
                        run,
                        commits: BTreeMap::new(),
                        figures: Vec::new(),
                        latencies: Vec::new(),
                        skips: Vec::new(),
                        taken: Vec::new(),
                    }),
                },
                Line::Figure(figure) => {
                    let is_same = |other: &Figure| {
                        (&other.case, &other.system, &other.metric) == (&figure.case, &figure.system, &figure.metric)
                    };
                    if let Some(suite) = collected.suite(&figure.suite) {
                        suite.commits.insert(figure.case.clone(), suite.run.commit.clone());
                        replace(&mut suite.figures, is_same, figure.clone());
                    }
                }
                Line::Latency(latency) => {
                    let is_same = |other: &Latency| (&other.case, &other.system) == (&latency.case, &latency.system);
                    if let Some(suite) = collected.suite(&latency.suite) {
                        replace(&mut suite.latencies, is_same, latency.clone());
                    }
                }
                Line::Skip(skip) => {
                    if let Some(suite) = collected.suite(&skip.suite) {
                        replace(&mut suite.skips, |other| other.case == skip.case, skip.clone());
                    }
                }
                Line::Done { suite, case, taken: Some(taken) } => {
                    if let Some(suite) = collected.suite(&suite) {
                        replace(&mut suite.taken, |(other, _)| *other == case, (case.clone(), taken));
                    }
                }
                Line::Done { taken: None, .. } => {}
            }
        }
        collected
    }

    fn suite(&mut self, name: &str) -> Option<&mut Suite> {
        self.suites.iter_mut().find(|suite| suite.name == name)
    }
}

fn replace<T>(all: &mut Vec<T>, is_same: impl Fn(&T) -> bool, new: T) {
    match all.iter_mut().find(|one| is_same(one)) {
        Some(place) => *place = new,
        None => all.push(new),
    }
}

/// Freshet in one of its modes against something else, on one case: above 1 freshet is better.
struct Ratio<'a> {
    case: &'a str,
    subject: &'a str,
    reference: &'a str,
    ratio: Spread,
}

impl Suite {
    fn ratios(&self) -> Vec<Ratio<'_>> {
        let is_subject = |figure: &&Figure| figure.system.starts_with("freshet") && figure.better != Better::Neither;
        let main = self.main_metric();
        let mut ratios = Vec::new();
        for subject in self.figures.iter().filter(is_subject) {
            let is_reference = |figure: &&Figure| {
                figure.case == subject.case
                    && figure.metric == subject.metric
                    && figure.metric == main
                    && !figure.system.starts_with("freshet")
                    && figure.system != OWN_SHARE
            };
            for reference in self.figures.iter().filter(is_reference) {
                let ratio = match subject.better {
                    Better::Less => paired(&reference.rounds, &subject.rounds),
                    Better::More | Better::Neither => paired(&subject.rounds, &reference.rounds),
                };
                let (case, subject, reference) = (&*subject.case, &*subject.system, &*reference.system);
                ratios.push(Ratio { case, subject, reference, ratio });
            }
        }
        ratios
    }

    /// The one that most figures have which something else has too: a rate, a time or a cost. Among equals the first.
    fn main_metric(&self) -> &str {
        let scored = || self.figures.iter().filter(|figure| figure.better != Better::Neither);
        let of_others = scored().filter(|figure| !figure.system.starts_with("freshet"));
        let compared: HashSet<(&str, &str)> = of_others.map(|figure| (&*figure.case, &*figure.metric)).collect();
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for figure in scored().filter(|figure| compared.contains(&(&*figure.case, &*figure.metric))) {
            match counts.iter_mut().find(|(metric, _)| *metric == figure.metric) {
                Some((_, count)) => *count += 1,
                None => counts.push((&figure.metric, 1)),
            }
        }
        counts.iter().min_by_key(|(_, count)| Reverse(*count)).map(|(metric, _)| *metric).unwrap_or_default()
    }

    /// Cases whose ratios must not be averaged with those of others: a kept reply and a computed one say different things.
    fn kind(&self, case: &str) -> &'static str {
        let is_relayed = |figure: &Figure| figure.case == case && figure.system == "cheapest relay";
        match &*self.name {
            "batch" if case.ends_with("_nl") => "other literals",
            "batch" if case.ends_with("_nc") => "other comments",
            "batch" if case.ends_with("index_lookup") => "keys by turns",
            "batch" if self.figures.iter().any(is_relayed) => "writes",
            "batch" => "the same text",
            "throughput" if case.starts_with("insert") || case.starts_with("mixed_rw") => "writes",
            "throughput" => "reads",
            "kv" if case.ends_with("/read") || case.ends_with("/read all") => "reads",
            "kv" if case.ends_with("/read again") => "kept replies",
            "kv" => "writes",
            _ => "",
        }
    }

    /// The kinds of the ratios, in the order in which they first appear.
    fn kinds(&self, ratios: &[Ratio<'_>]) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        for kind in ratios.iter().map(|ratio| self.kind(ratio.case)) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// A row for each kind, subject and reference.
    fn sums(&self) -> Vec<Sum<'_>> {
        let ratios = self.ratios();
        let mut sums = Vec::new();
        for kind in self.kinds(&ratios) {
            for (subject, reference) in pairs(&ratios) {
                let is_it =
                    |r: &&Ratio<'_>| (r.subject, r.reference) == (subject, reference) && self.kind(r.case) == kind;
                let medians: Vec<f64> = ratios.iter().filter(is_it).map(|r| r.ratio.median).collect();
                let lowest = ratios.iter().filter(is_it).min_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median));
                let Some(lowest) = lowest.map(|r| (r.case, r.ratio.median)) else { continue };
                let name = if kind.is_empty() { self.name.clone() } else { format!("{}, {kind}", self.name) };
                let (mean, below) = (geometric_mean(&medians), medians.iter().filter(|m| **m < 1.0).count());
                sums.push(Sum { name, subject, reference, cases: medians.len(), mean, below, lowest });
            }
        }
        sums
    }
}

/// Many ratios in one line.
struct Sum<'a> {
    /// The suite, and the kind of its cases where there are several.
    name: String,
    subject: &'a str,
    reference: &'a str,
    cases: usize,
    mean: f64,
    below: usize,
    lowest: (&'a str, f64),
}

/// What older files call PostgreSQL's part of freshet's own cost: no system of its own.
const OWN_SHARE: &str = "PostgreSQL's beside it";

/// Distributions of one suite that are shown without being asked for.
const LATENCIES_SHOWN: usize = 300;

const STYLE: &str = include_str!("style.css");

fn page(collected: &Collected) -> Markup {
    let is_other = collected.suites.iter().any(|suite| suite.run.build != "release");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "freshet: measured" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "freshet: measured" }
                @if is_other {
                    p.warning { "From a build that is not what users run: the figures mean nothing." }
                }
                p {
                    "Every ratio is one of two systems measured in turn in the same run on the same machine. Right of the line at 1, "
                    "freshet is better; left of it, on coloured ground, it is worse. The axes are logarithmic: equal lengths are equal "
                    "factors. A thin line spans the rounds."
                }
                p {
                    "Every statement's rows were compared with PostgreSQL's before anything was timed (in suite engine, which has none, "
                    "with DuckDB's). While the clock runs, relay and kv compare every reply byte by byte; throughput, hits and batch "
                    "compare its bytes with an earlier reply to the same statement and, where they differ, its rows; tpch compares the "
                    "rows after each run; the batches of suite driver compare bytes on the bare protocol and count rows by pgx; "
                    "batch's lookups, hits' survival and storm, the rest of driver, scale and engine fail by an error alone then."
                }
                (goals::table(&goals::outcomes(collected)))
                h2 { "ratios" }
                (overview(collected))
                @for suite in &collected.suites {
                    (section(suite))
                }
            }
        }
    }
}

/// One row per suite, kind of case, subject and reference.
fn overview(collected: &Collected) -> Markup {
    html! {
        table.overview {
            thead { tr { th { "suite" } th { "" } th { "against" } th.number { "cases" } th.number { "geometric mean" } th.number { "below 1" } th { "lowest" } } }
            tbody {
                @for suite in &collected.suites {
                    @for sum in suite.sums() {
                        tr {
                            td { (sum.name) } td { (sum.subject) } td { (sum.reference) }
                            td.number { (sum.cases) }
                            td.number { strong { (factor(sum.mean)) } }
                            td.number { (sum.below) }
                            td { (sum.lowest.0) ": " (factor(sum.lowest.1)) }
                        }
                    }
                }
            }
        }
    }
}

/// In the order in which they first appear.
fn pairs<'a>(ratios: &[Ratio<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut pairs = Vec::new();
    for ratio in ratios {
        if !pairs.contains(&(ratio.subject, ratio.reference)) {
            pairs.push((ratio.subject, ratio.reference));
        }
    }
    pairs
}

fn section(suite: &Suite) -> Markup {
    let ratios = suite.ratios();
    html! {
        section {
            h2 { (suite.name) }
            p.conditions { (described(suite)) }
            @if !ratios.is_empty() { p { "Ratios of: " (suite.main_metric()) "." } }
            @for kind in suite.kinds(&ratios) {
                @let of_kind: Vec<&Ratio<'_>> = ratios.iter().filter(|r| suite.kind(r.case) == kind).collect();
                @if !kind.is_empty() { h3 { (kind) } }
                (bars::chart(&of_kind))
            }
            (curves::growth(&suite.figures))
            @if !suite.latencies.is_empty() {
                // So many that nobody sees what comes behind them are folded.
                details open[suite.latencies.len() <= LATENCIES_SHOWN] { summary { "latency distributions" } (curves::latency(&suite.latencies)) }
            }
            details { summary { "all figures" } (figures(&suite.figures)) }
            @if !suite.skips.is_empty() {
                details { summary { "not measured (" (suite.skips.len()) ")" }
                    ul { @for skip in &suite.skips { li { strong { (skip.case) } ": " (skip.reason) } } }
                }
            }
        }
    }
}

fn described(suite: &Suite) -> String {
    let run = &suite.run;
    let listed = |pairs: &BTreeMap<String, String>| {
        pairs.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    let mut text = format!(
        "commit {}, {} build, {}; {}; {}; {}",
        run.commit,
        run.build,
        run.started,
        listed(&run.machine),
        listed(&run.versions),
        listed(&run.settings)
    );
    let older: Vec<String> = suite
        .commits
        .iter()
        .filter(|(_, commit)| **commit != run.commit)
        .map(|(case, commit)| format!("{case} of {commit}"))
        .collect();
    if !older.is_empty() {
        text.push_str("; of other commits: ");
        text.push_str(&older.join(", "));
    }
    if !suite.taken.is_empty() {
        let taken: Vec<f64> = suite.taken.iter().map(|(_, taken)| *taken).collect();
        text.push_str("; ");
        text.push_str(&taken_by_host(&taken));
    }
    text
}

fn figures(figures: &[Figure]) -> Markup {
    html! {
        table {
            thead { tr { th { "case" } th { "system" } th { "metric" } th.number { "median" } th.number { "min" } th.number { "max" } th { "unit" } th.number { "rounds" } th { "note" } } }
            tbody {
                @for figure in figures {
                    @let all = spread(figure.rounds.iter().copied());
                    tr {
                        td { (figure.case) } td { (figure.system) } td { (figure.metric) }
                        td.number { (number(all.median)) } td.number { (number(all.min)) } td.number { (number(all.max)) }
                        td { (figure.unit) } td.number { (figure.rounds.len()) } td { (figure.note) }
                    }
                }
            }
        }
    }
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

fn factor(value: f64) -> String {
    format!("{} x", number(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Results;

    /// A file of one suite's results, gone with the test.
    pub(super) struct ResultsFile {
        suite: &'static str,
        folder: tempfile::TempDir,
    }

    impl ResultsFile {
        pub(super) fn of(suite: &'static str) -> Self {
            Self { suite, folder: tempfile::tempdir().expect("a folder") }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("results.jsonl")
        }

        /// To write figures to.
        pub(super) fn opened(&self) -> Results {
            Results::open(Some(&self.path()), self.suite, &[], &[]).expect("opened")
        }

        pub(super) fn collected(&self) -> Collected {
            Collected::of(read(&self.path()).expect("read"))
        }
    }

    fn figure(results: &mut Results, case: &str, system: &str, rounds: &[f64]) {
        results.figure(case, system, ("time", "ms", Better::Less), rounds, "").expect("written");
    }

    #[test]
    fn ratios_are_those_of_the_commonest_metric() {
        let file = ResultsFile::of("tpch");
        let mut results = file.opened();
        for system in ["freshet", "upstream"] {
            results.figure("tables", system, ("size", "MB", Better::Less), &[1.0], "").expect("written");
        }
        for case in ["q1", "q2"] {
            figure(&mut results, case, "freshet", &[1.0]);
            figure(&mut results, case, "upstream", &[2.0]);
        }
        let collected = file.collected();
        let cases: Vec<&str> = collected.suites[0].ratios().iter().map(|ratio| ratio.case).collect();
        assert_eq!(cases, ["q1", "q2"]);
    }

    #[test]
    fn kept_and_computed_replies_are_summed_up_apart() {
        let file = ResultsFile::of("batch");
        let mut results = file.opened();
        for (case, ours) in [("scan", 0.5), ("scan_nc", 1.0), ("scan_nl", 2.0)] {
            figure(&mut results, case, "freshet", &[ours]);
            figure(&mut results, case, "upstream", &[2.0]);
        }
        let collected = file.collected();
        let sums = collected.suites[0].sums();
        let means: Vec<(&str, f64)> = sums.iter().map(|sum| (&*sum.name, sum.mean.round())).collect();
        assert_eq!(
            means,
            [("batch, the same text", 4.0), ("batch, other comments", 2.0), ("batch, other literals", 1.0)]
        );
    }

    #[test]
    fn the_newest_figure_counts_and_less_time_is_better() {
        let file = ResultsFile::of("engine");
        let mut results = file.opened();
        figure(&mut results, "a<b", "freshet", &[8.0, 8.0]);
        figure(&mut results, "a<b", "DuckDB", &[4.0, 6.0]);
        figure(&mut results, "a<b", "freshet", &[2.0, 2.0]);
        let collected = file.collected();
        let ratios = collected.suites[0].ratios();
        assert_eq!(ratios.len(), 1);
        assert_eq!(ratios[0].ratio, Spread { median: 2.5, min: 2.0, max: 3.0 });
        run(&file.path(), None).expect("written");
        let page = std::fs::read_to_string(file.path().with_extension("html")).expect("read");
        assert!(page.contains("a&lt;b") && !page.contains("a<b"), "texts are escaped");
        assert!(page.contains("2.50"), "the ratio is shown");
    }
}
