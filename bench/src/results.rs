//! Results as JSON lines: for each suite one line with the conditions of the run, then figures, latencies and skips.
//!
//! A file may be appended to: what is in it from the same commit, build and settings is not measured again, so that an
//! interrupted run goes on where it was.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line {
    Run(Run),
    Figure(Figure),
    Latency(Latency),
    Skip(Skip),
    /// Everything about a case has been written.
    Done {
        suite: String,
        case: String,
        /// Of the processors' time, 0 to 1, what the machine's host kept for others meanwhile. None: the system does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<f64>,
    },
}

/// The conditions of a suite's figures, which follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) suite: String,
    pub(crate) started: String,
    pub(crate) commit: String,
    /// `release`, or `debug`, whose figures mean nothing.
    pub(crate) build: String,
    pub(crate) machine: BTreeMap<String, String>,
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) settings: BTreeMap<String, String>,
}

/// One system on one case: a value per round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) suite: String,
    pub(crate) case: String,
    pub(crate) system: String,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    #[serde(deserialize_with = "numbers")]
    pub(crate) rounds: Vec<f64>,
    /// Where it stands on a growth curve, and what grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<(String, f64)>,
    /// How it was answered, or what else a reader must know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Better {
    More,
    Less,
    /// Neither: for information.
    Neither,
}

/// JSON has no word for what is not a number: it is written as null.
fn numbers<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let numbers: Vec<Option<f64>> = Vec::deserialize(from)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// A distribution: quantiles and microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) suite: String,
    pub(crate) case: String,
    pub(crate) system: String,
    pub(crate) quantiles: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Skip {
    pub(crate) suite: String,
    pub(crate) case: String,
    pub(crate) reason: String,
}

/// How busy the machine was when the suite began.
const LOAD: &str = "load before";

/// What the host takes is said from here on.
const TAKEN_SAID: f64 = 0.05;

/// Time of all processors so far, in ticks (proc(5): the line `cpu` of /proc/stat).
#[derive(Clone, Copy, Debug)]
struct Ticks {
    all: u64,
    /// That the host of a virtual machine gave to others while it was wanted here.
    stolen: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // user, nice, system, idle, iowait, irq, softirq, steal; what guests use is in user.
        let fields: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        Some(Self { all: fields.iter().sum(), stolen: *fields.get(7)? })
    }

    fn taken_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }
}

/// When the suite of this process is to stop.
static STOP_AT: Mutex<Option<Instant>> = Mutex::new(None);

fn stop_at() -> MutexGuard<'static, Option<Instant>> {
    STOP_AT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now.
pub(crate) fn stop_after(time: Duration) {
    *stop_at() = Some(Instant::now() + time);
}

/// What is no part of the suite, such as building a program for the first time, took so long.
pub(crate) fn not_counted(time: Duration) {
    if let Some(at) = stop_at().as_mut() {
        *at += time;
    }
}

/// Where a suite's results go.
pub(crate) struct Results {
    suite: &'static str,
    file: Option<File>,
    done: HashSet<String>,
    /// When the last case ended.
    ticks: Option<Ticks>,
}

impl Results {
    /// Without a path nothing is kept.
    pub(crate) fn open(
        path: Option<&Path>,
        suite: &'static str,
        versions: &[(&str, String)],
        settings: &[(&str, String)],
    ) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self { suite, file: None, done: HashSet::new(), ticks: Ticks::now() }) };
        let owned = |pairs: &[(&str, String)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        let run = Run {
            suite: suite.to_owned(),
            started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            commit: env!("BENCH_COMMIT").to_owned(),
            build: build().to_owned(),
            machine: machine(),
            versions: owned(versions),
            settings: owned(settings),
        };
        let done = if path.exists() { done_before(&read(path)?, &run) } else { HashSet::new() };
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        cut_torn_line(&mut file)?;
        let mut results = Self { suite, file: Some(file), done, ticks: Ticks::now() };
        results.write(&Line::Run(run))?;
        Ok(results)
    }

    /// Whether the file has this case from an earlier run under the same conditions.
    pub(crate) fn is_done(&self, case: &str) -> bool {
        self.done.contains(case)
    }

    pub(crate) fn figure(
        &mut self,
        case: &str,
        system: &str,
        metric: (&str, &str, Better),
        rounds: &[f64],
        note: &str,
    ) -> io::Result<()> {
        self.figure_at(case, system, metric, rounds, note, None)
    }

    /// `metric`: its name, its unit and which is better. `at`: what grows, and where on its axis this stands.
    pub(crate) fn figure_at(
        &mut self,
        case: &str,
        system: &str,
        (metric, unit, better): (&str, &str, Better),
        rounds: &[f64],
        note: &str,
        at: Option<(&str, f64)>,
    ) -> io::Result<()> {
        self.write(&Line::Figure(Figure {
            suite: self.suite.to_owned(),
            case: case.to_owned(),
            system: system.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            better,
            rounds: rounds.to_vec(),
            at: at.map(|(what, place)| (what.to_owned(), place)),
            note: note.to_owned(),
        }))
    }

    /// What a server, the PostgreSQL behind it and the client used of the processors, a value per round each.
    pub(crate) fn processor(
        &mut self,
        case: &str,
        system: &str,
        unit: &str,
        rounds: &[impl AsRef<[f64]>; 3],
        note: &str,
    ) -> io::Result<()> {
        for (who, values) in ["server", "PostgreSQL", "client"].into_iter().zip(rounds) {
            let metric = format!("processor time of the {who}");
            self.figure(case, system, (&metric, unit, Better::Neither), values.as_ref(), note)?;
        }
        Ok(())
    }

    /// A distribution of nanoseconds, as far as there are values behind a quantile; nothing of a few.
    pub(crate) fn latency(&mut self, case: &str, system: &str, latencies: &Histogram<u64>) -> io::Result<()> {
        const FEW: u64 = 20;
        if latencies.len() < FEW {
            return Ok(());
        }
        let us = |quantile: f64| (quantile, latencies.value_at_quantile(quantile) as f64 / 1000.0);
        let is_known = |quantile: &f64| latencies.len() as f64 * (1.0 - quantile) > 0.999;
        let quantiles = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999].into_iter().filter(is_known).map(us).collect();
        let (suite, case, system) = (self.suite.to_owned(), case.to_owned(), system.to_owned());
        self.write(&Line::Latency(Latency { suite, case, system, quantiles }))
    }

    pub(crate) fn skip(&mut self, case: &str, reason: &str) -> io::Result<()> {
        let _ = writeln!(io::stderr(), "{case}: skipped: {reason}");
        let (suite, case, reason) = (self.suite.to_owned(), case.to_owned(), reason.to_owned());
        self.write(&Line::Skip(Skip { suite, case, reason }))
    }

    /// Everything about the case has been written. An error if it is time to stop.
    pub(crate) fn end(&mut self, case: &str) -> io::Result<()> {
        let now = Ticks::now();
        let before = std::mem::replace(&mut self.ticks, now);
        let taken = now.zip(before).map(|(now, before)| now.taken_since(before));
        self.write(&Line::Done { suite: self.suite.to_owned(), case: case.to_owned(), taken })?;
        if let Some(taken) = taken.filter(|taken| *taken >= TAKEN_SAID) {
            let _ = writeln!(io::stderr(), "{case}: the host took {:.0} % of the processors meanwhile", 100.0 * taken);
        }
        match *stop_at() {
            Some(at) if Instant::now() > at => Err(io::Error::other(format!(
                "stopped after {case}: out of time; with the same --results it goes on there"
            ))),
            _ => Ok(()),
        }
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        file.write_all(&text)
    }
}

/// The lines of a file; an error names the one that is none. A last line without its end was torn when a run was ended:
/// it is left out, which is said.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Line>> {
    let bytes = std::fs::read(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    let whole = whole_lines(&bytes);
    if whole < bytes.len() {
        let _ = writeln!(io::stderr(), "{}: its last line is not complete and does not count", path.display());
    }
    let text = String::from_utf8_lossy(&bytes[..whole]);
    let line = |(at, line): (usize, &str)| {
        let problem = |error| io::Error::other(format!("{}:{}: {error}", path.display(), at + 1));
        serde_json::from_str(line).map_err(problem)
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(line).collect()
}

/// How many bytes are lines with their end.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
}

/// What is appended begins a line of its own.
fn cut_torn_line(file: &mut File) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let whole = whole_lines(&bytes);
    if whole < bytes.len() { file.set_len(whole as u64) } else { Ok(()) }
}

/// What of the machine does not change from one run to the next.
fn hardware(run: &Run) -> impl Iterator<Item = (&String, &String)> {
    run.machine.iter().filter(|(name, _)| *name != LOAD)
}

/// Cases that are complete, from runs of the same suite, commit, build, settings and machine.
fn done_before(lines: &[Line], run: &Run) -> HashSet<String> {
    let mut is_same = false;
    let mut done = HashSet::new();
    for line in lines {
        match line {
            Line::Run(earlier) if earlier.suite == run.suite => {
                is_same = (&earlier.commit, &earlier.build, &earlier.settings, &earlier.versions)
                    == (&run.commit, &run.build, &run.settings, &run.versions)
                    && hardware(earlier).eq(hardware(run));
            }
            Line::Done { suite, case, .. } if is_same && *suite == run.suite => {
                done.insert(case.clone());
            }
            _ => {}
        }
    }
    done
}

/// By the folder, where the code does not tell: `quick` inherits from `release`.
pub(crate) fn build() -> &'static str {
    let is_quick = || std::env::current_exe().is_ok_and(|file| file.parent().is_some_and(|of| of.ends_with("quick")));
    match cfg!(debug_assertions) {
        true => "debug",
        false if is_quick() => "quick",
        false => "release",
    }
}

pub(crate) fn machine() -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    BTreeMap::from([
        ("processor".into(), field(&read("/proc/cpuinfo"), "model name").unwrap_or_default()),
        ("cores".into(), cores.to_string()),
        ("memory".into(), format!("{:.0} GB", memory.unwrap_or_default() / 1e6)),
        ("kernel".into(), read("/proc/sys/kernel/osrelease").trim().to_owned()),
        (LOAD.into(), read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_measured_again_when_a_condition_has_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.jsonl");
        let open = |settings: &str| {
            Results::open(Some(&path), "engine", &[], &[("rounds", settings.to_owned())]).expect("opened")
        };
        let mut first = open("3");
        first.figure("a", "freshet", ("time", "ms", Better::Less), &[1.0, 2.0], "").expect("written");
        first.end("a").expect("written");
        first.figure("b", "freshet", ("time", "ms", Better::Less), &[1.0], "").expect("written");
        assert!(open("3").is_done("a"));
        assert!(!open("3").is_done("b"), "it was interrupted");
        assert!(!open("5").is_done("a"), "other settings");
        assert!(open("3").is_done("a"), "runs with other settings lie between");
        let figures = read(&path).expect("read").into_iter().filter(|line| matches!(line, Line::Figure(_))).count();
        assert_eq!(figures, 2);
    }

    #[test]
    fn what_the_host_takes_is_told_with_each_case() {
        let ticks = |stat: &str| Ticks::parse(stat).expect("ticks");
        let before = ticks("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n");
        let after = ticks("cpu  150 0 70 900 10 0 5 65 9 0\n");
        assert!((after.taken_since(before) - 0.15).abs() < 1e-9, "{}", after.taken_since(before));
        assert!(Ticks::parse("cpu  1 2 3 4\n").is_none(), "an old system");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.jsonl");
        let mut results = Results::open(Some(&path), "engine", &[], &[]).expect("opened");
        results.end("a").expect("written");
        let lines = read(&path).expect("read");
        let taken = lines.iter().find_map(|line| if let Line::Done { taken, .. } = line { *taken } else { None });
        assert!(taken.is_some_and(|taken| (0.0..=1.0).contains(&taken)), "{taken:?}");
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_written_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.jsonl");
        let open = || Results::open(Some(&path), "engine", &[], &[]).expect("opened");
        open().end("a").expect("written");
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(br#"{"kind":"done","suite":"engine","ca"#).expect("written");
        assert_eq!(read(&path).expect("read").len(), 2);
        assert!(open().is_done("a"));
        open().end("b").expect("written");
        assert!(open().is_done("b"));
        let text = std::fs::read_to_string(&path).expect("read");
        std::fs::write(&path, text.replacen("{", "[", 1)).expect("written");
        assert!(read(&path).is_err(), "within the file it is an error");
    }
}
