//! The matrix by pgx: a small Go program (`bench/pgx`), built here where Go is installed, told what to do line by line.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::console::say;
use crate::driver::{Driver, Mode, Place};
use crate::load::Measured;
use crate::process::{find_program, version};
use crate::results::not_counted;

pub(super) struct Pgx {
    child: Child,
    /// Closed to end it; so it is when the bench ends, by whatever cause.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    systems: Vec<&'static str>,
}

#[derive(Default, Serialize)]
struct Request<'a> {
    op: &'a str,
    system: &'a str,
    url: &'a str,
    setting: &'a str,
    sql: &'a str,
    parameters: &'a [Vec<i32>],
    seconds: f64,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: String,
    count: usize,
    elapsed_ns: u64,
    client_ns: u64,
    latencies_ns: Option<Vec<u64>>,
    digest: String,
    rows: Option<Vec<Vec<Option<String>>>>,
}

const FILES: [(&str, &str); 3] = [
    ("main.go", include_str!("../../pgx/main.go")),
    ("go.mod", include_str!("../../pgx/go.mod")),
    ("go.sum", include_str!("../../pgx/go.sum")),
];

impl Pgx {
    /// Where Go is, and which one.
    pub(super) fn go() -> Option<(PathBuf, String)> {
        let local = PathBuf::from("/usr/local/go/bin/go");
        let go = find_program("go").or_else(|| local.is_file().then_some(local))?;
        let version = version(&go, "version").unwrap_or_default();
        Some((go, version.trim_start_matches("go version ").to_owned()))
    }

    /// The reason where it cannot be built here.
    pub(super) fn start(folder: &Path) -> io::Result<Result<Self, String>> {
        let Some((go, _)) = Self::go() else {
            return Ok(Err("Go is not installed (Debian package golang-go)".into()));
        };
        say("building the Go program");
        let (source, program) = (folder.join("pgx"), folder.join("freshet-bench-pgx"));
        std::fs::create_dir_all(&source)?;
        for (name, text) in FILES {
            std::fs::write(source.join(name), text)?;
        }
        let began = Instant::now();
        let built = Command::new(go).args(["build", "-o"]).arg(&program).arg(".").current_dir(&source).output()?;
        not_counted(began.elapsed());
        if !built.status.success() {
            let text = String::from_utf8_lossy(&built.stderr);
            return Ok(Err(format!("go build: {}", text.lines().last().unwrap_or("failed"))));
        }
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        Ok(Ok(Self { child, input, output: BufReader::new(output), systems: Vec::new() }))
    }

    /// An error if the systems answer with different rows.
    pub(super) fn compare(&mut self) -> io::Result<()> {
        let mut digests = Vec::new();
        for system in self.systems.clone() {
            digests.push(self.ask(&Request { op: "check", system, ..Request::default() })?.digest);
        }
        match digests.windows(2).all(|pair| pair[0] == pair[1] && !pair[0].is_empty()) {
            true => Ok(()),
            false => Err(io::Error::other("pgx gets different rows from the three systems")),
        }
    }

    /// The batch once: every row that one of the systems returned, as text.
    pub(super) fn batch_rows(&mut self, system: usize) -> io::Result<Vec<Vec<Option<String>>>> {
        let request = Request { op: "batch rows", system: self.systems[system], ..Request::default() };
        Ok(self.ask(&request)?.rows.unwrap_or_default())
    }

    /// All parameters with one Sync: rows, time, and processor time of the program.
    pub(super) fn batch(&mut self, system: usize) -> io::Result<(usize, Duration, Duration)> {
        let answer = self.ask(&Request { op: "batch", system: self.systems[system], ..Request::default() })?;
        Ok((answer.count, Duration::from_nanos(answer.elapsed_ns), Duration::from_nanos(answer.client_ns)))
    }

    fn ask(&mut self, request: &Request<'_>) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.input.as_mut().ok_or_else(|| io::Error::other("it has ended"))?.write_all(&line)?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Answer = serde_json::from_str(&line).map_err(|error| io::Error::other(format!("pgx: {error}")))?;
        if answer.error.is_empty() {
            return Ok(answer);
        }
        Err(io::Error::other(format!("pgx: {} {}: {}", request.op, request.system, answer.error)))
    }
}

impl Driver for Pgx {
    fn name(&self) -> &'static str {
        "pgx"
    }

    fn open(&mut self, places: &[Place], sql: &str, parameters: &[Vec<i32>]) -> io::Result<()> {
        self.systems = places.iter().map(|place| place.system).collect();
        for place in places {
            let (system, url, setting) = (place.system, &*place.url(), place.setting);
            self.ask(&Request { op: "open", system, url, setting, sql, parameters, seconds: 0.0 })?;
        }
        Ok(())
    }

    fn run(&mut self, system: usize, mode: Mode, seconds: f64) -> io::Result<Measured> {
        let request = Request { op: mode.name(), system: self.systems[system], seconds, ..Request::default() };
        let answer = self.ask(&request)?;
        let (elapsed, client) = (Duration::from_nanos(answer.elapsed_ns), Duration::from_nanos(answer.client_ns));
        Ok(Measured::new(answer.count, elapsed, client, &answer.latencies_ns.unwrap_or_default()))
    }

    fn last_route(&mut self, system: usize) -> io::Result<(String, String)> {
        let request = Request { op: "last route", system: self.systems[system], ..Request::default() };
        let row = self.ask(&request)?.rows.unwrap_or_default().into_iter().next().unwrap_or_default();
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        Ok((cells.next().unwrap_or_default(), cells.next().unwrap_or_default()))
    }
}

impl Drop for Pgx {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
