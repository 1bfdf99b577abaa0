//! The goals: what is measured, in which suite and cases, and what is wanted.

/// From figures to one value per case.
pub(super) enum Measure {
    /// Times as good, in a metric that both have, round by round.
    Ratio { subject: &'static str, reference: &'static str, metric: &'static str },
    /// The same over all cases.
    MeanRatio { subject: &'static str, reference: &'static str, metric: &'static str },
    /// The subject's own.
    Value { subject: &'static str, metric: &'static str },
    /// What the subject adds to the reference's.
    Added { subject: &'static str, reference: &'static str, metric: &'static str },
    /// The median of a distribution, in microseconds, less the reference's.
    AddedMedian { subject: &'static str, reference: &'static str },
    /// The 99th percentile as a multiple of the reference's.
    TimesP99 { subject: &'static str, reference: &'static str },
    /// The subject's rate as a share of its own in another case.
    Kept { subject: &'static str, of: &'static str },
}

use Measure::{Added, AddedMedian, Kept, MeanRatio, Ratio, TimesP99, Value};

/// Of the reads that the suite checks.
pub(super) const STALE: &str = "stale answers";

/// Whichever of the two is installed.
pub(super) const REDIS: &str = "Redis or Valkey";

#[derive(Clone, Copy)]
pub(super) enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

use Wanted::{AtLeast, AtMost};

impl Wanted {
    pub(super) fn is_met(self, value: f64) -> bool {
        match self {
            AtLeast(least) => value >= least,
            AtMost(most) => value <= most,
        }
    }

    /// Above 1: met, and by how much.
    pub(super) fn margin(self, value: f64) -> f64 {
        match self {
            AtLeast(least) => value / least,
            AtMost(most) if value > 0.0 => most / value,
            AtMost(_) => f64::INFINITY,
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            AtLeast(least) => format!("≥ {}", shown(least)),
            AtMost(most) => format!("≤ {}", shown(most)),
        }
    }
}

/// A share that is no round number has three digits.
fn shown(value: f64) -> String {
    let short = format!("{value:.3}");
    if short.parse() == Ok(value) { value.to_string() } else { short }
}

pub(super) struct Goal {
    pub(super) what: &'static str,
    pub(super) suite: &'static str,
    pub(super) is_of: fn(&str) -> bool,
    pub(super) measure: Measure,
    pub(super) wanted: Wanted,
    /// Not where every process of the bench shares the cores, as here: shown, and not counted as missed.
    pub(super) is_counted: bool,
}

impl Goal {
    fn not_counted(self) -> Self {
        Self { is_counted: false, ..self }
    }
}

fn goal(what: &'static str, suite: &'static str, is_of: fn(&str) -> bool, measure: Measure, wanted: Wanted) -> Goal {
    Goal { what, suite, is_of, measure, wanted, is_counted: true }
}

const fn rate(subject: &'static str, reference: &'static str) -> Measure {
    Ratio { subject, reference, metric: "rate" }
}

const fn time(subject: &'static str, reference: &'static str) -> Measure {
    Ratio { subject, reference, metric: "time" }
}

fn any(_: &str) -> bool {
    true
}

fn hits_at_eight(case: &str) -> bool {
    ["simple", "extended", "prepared"].iter().any(|name| case == format!("{name}, 8 connections"))
}

fn relayed_units(case: &str) -> bool {
    case.starts_with("select-") || case.starts_with("insert-")
}

/// Reads for which no kept reply fits; the keys of a plain lookup come again.
fn other_literals(case: &str) -> bool {
    case.ends_with("_nl")
}

/// Every goal, in the order of the page.
pub(super) fn all() -> Vec<Goal> {
    [hits(), relayed(), workloads(), engine(), following()].into_iter().flatten().collect()
}

fn hits() -> Vec<Goal> {
    let (session, exact) = ("freshet session", "freshet exact");
    vec![
        goal(
            "kept replies, of the canned reply's rate",
            "hits",
            hits_at_eight,
            rate(session, "canned reply"),
            AtLeast(0.9),
        ),
        goal(
            "kept replies in exact, of the group barrier's rate",
            "hits",
            hits_at_eight,
            rate(exact, "group barrier"),
            AtLeast(0.9),
        ),
        goal(
            "added by exact at one connection, median, us",
            "hits",
            |case| case.ends_with(", 1 connection"),
            AddedMedian { subject: exact, reference: "canned reply" },
            AtMost(200.0),
        ),
        goal(
            "kept replies in a pipeline of 100, of the canned reply's rate",
            "hits",
            |case| case.starts_with("pipeline of 100"),
            rate(session, "canned reply"),
            AtLeast(0.9),
        ),
        goal(
            "kept replies in a pipeline of 100 in exact, of the group barrier's rate",
            "hits",
            |case| case.starts_with("pipeline of 100"),
            rate(exact, "group barrier"),
            AtLeast(0.9),
        ),
        goal(
            "kept replies of 5,000 rows in exact, of the group barrier's rate",
            "hits",
            |case| case.starts_with("5,000 rows"),
            rate(exact, "group barrier"),
            AtLeast(0.9),
        ),
        goal(
            "kept replies of 5,000 rows, of the canned reply's rate",
            "hits",
            |case| case.starts_with("5,000 rows"),
            rate(session, "canned reply"),
            AtLeast(0.95),
        ),
        goal(
            "kept replies, p99 in times the canned reply's",
            "hits",
            |case| case.ends_with("8 connections"),
            TimesP99 { subject: session, reference: "canned reply" },
            AtMost(2.0),
        ),
        goal(
            "kept replies over 1,000 connections, of the rate over 8",
            "hits",
            |case| case == "prepared, 1000 connections",
            Kept { subject: session, of: "prepared, 8 connections" },
            AtLeast(0.85),
        ),
        goal(
            "kept replies in standby, of the canned reply's rate",
            "throughput",
            any,
            rate("freshet standby", "canned reply"),
            AtLeast(0.9),
        ),
        goal(
            "kept replies in standby at 8 connections, of the canned reply's rate",
            "hits",
            hits_at_eight,
            rate("freshet standby", "canned reply"),
            AtLeast(0.9),
        ),
        goal(
            "polls that stay hits while others write, %",
            "hits",
            any,
            Value { subject: session, metric: "polls that are hits" },
            AtLeast(95.0),
        ),
        goal(
            "reads by key, of Redis' or Valkey's rate",
            "kv",
            |case| case.ends_with("read"),
            rate(session, REDIS),
            AtLeast(1.0),
        ),
        goal(
            "reads by key that are kept, of Redis' or Valkey's rate",
            "kv",
            |case| case.ends_with("read again"),
            rate(session, REDIS),
            AtLeast(1.0),
        ),
    ]
}

fn relayed() -> Vec<Goal> {
    let copy = |case: &str| case.starts_with("COPY");
    vec![
        goal(
            "relayed units, of the cheapest relay's rate",
            "relay",
            relayed_units,
            rate("freshet", "cheapest relay"),
            AtLeast(0.95),
        ),
        goal("relayed units, of PgBouncer's rate", "relay", relayed_units, rate("freshet", "PgBouncer"), AtLeast(1.05)),
        goal(
            "added to a relayed unit at one connection, median, us",
            "relay",
            |case| case.starts_with("latency") && case.ends_with("tcp"),
            Added { subject: "freshet", reference: "direct", metric: "p50" },
            AtMost(40.0),
        ),
        goal(
            "relayed batches of 10,000, of the cheapest relay's rate",
            "relay",
            |case| case.starts_with("batch"),
            rate("freshet", "cheapest relay"),
            AtLeast(0.95),
        ),
        goal(
            "relayed batches of 10,000, of direct's rate (wanted where cores are not shared: not counted)",
            "relay",
            |case| case.starts_with("batch"),
            rate("freshet", "direct"),
            AtLeast(0.99),
        )
        .not_counted(),
        goal("relayed COPY, of direct", "relay", copy, rate("freshet", "direct"), AtLeast(0.9)),
        goal(
            "resident memory while COPY passes, MB",
            "relay",
            copy,
            Value { subject: "freshet", metric: "resident memory at most" },
            AtMost(64.0),
        ),
        goal(
            "memory of an idle session, KB",
            "relay",
            |case| case.ends_with("idle sessions"),
            Value { subject: "freshet tables=auto", metric: "memory of each" },
            AtMost(50.0),
        ),
        goal(
            "prepared batches of 10,000 that may be cached, of direct",
            "driver",
            |case| case.starts_with("batch"),
            rate("freshet cached", "direct"),
            AtLeast(1.5),
        ),
        goal(
            "relayed batches of 10,000 by drivers, of direct's rate (wanted where cores are not shared: not counted)",
            "driver",
            |case| case.starts_with("batch"),
            rate("freshet relayed", "direct"),
            AtLeast(0.99),
        )
        .not_counted(),
    ]
}

fn workloads() -> Vec<Goal> {
    let session = "freshet session";
    vec![
        goal(
            "throughput, of upstream's",
            "throughput",
            |case| !case.starts_with("insert"),
            rate(session, "upstream"),
            AtLeast(1.0),
        ),
        goal(
            "mixed_analytical, times upstream's throughput",
            "throughput",
            |case| case.starts_with("mixed_analytical"),
            rate(session, "upstream"),
            AtLeast(190.0),
        ),
        goal(
            "mixed_rw, of the throughput of upstream with a receiver, in session",
            "throughput",
            |case| case.starts_with("mixed_rw"),
            rate(session, "upstream with a receiver"),
            AtLeast(1.1),
        ),
        goal(
            "mixed_rw, of the throughput of upstream with a receiver, in exact",
            "throughput",
            |case| case.starts_with("mixed_rw"),
            rate("freshet exact", "upstream with a receiver"),
            AtLeast(0.9),
        ),
        goal(
            "throughput of inserts, of the cheapest relay with a receiver",
            "throughput",
            |case| case.starts_with("insert"),
            rate(session, "cheapest relay"),
            AtLeast(0.95),
        ),
        goal(
            "reads with other literals, of upstream's speed",
            "batch",
            other_literals,
            time("freshet", "upstream"),
            AtLeast(1.0),
        ),
        goal(
            "reads with other literals, of DuckDB's speed",
            "batch",
            other_literals,
            time("freshet", "DuckDB in process"),
            AtLeast(1.0),
        ),
        goal("writes, of the cheapest relay's speed", "batch", any, time("freshet", "cheapest relay"), AtLeast(0.95)),
        goal("TPC-H, of upstream's speed", "tpch", any, time("freshet", "upstream"), AtLeast(1.0)),
        goal("TPC-H, of DuckDB's speed", "tpch", any, time("freshet", "DuckDB in process"), AtLeast(1.0)),
    ]
}

fn engine() -> Vec<Goal> {
    let of = |titles: [&'static str; 2], subject: &'static str, threads: &'static str| -> [Goal; 2] {
        let mean = MeanRatio { subject, reference: threads, metric: "time" };
        [
            goal(titles[0], "engine", any, mean, AtLeast(3.0)),
            goal(titles[1], "engine", any, time(subject, threads), AtLeast(1.0)),
        ]
    };
    let encoding = |what, subject, least| {
        goal(what, "engine", |case| case == "reply encoding", Value { subject, metric: "rate" }, AtLeast(least))
    };
    let planning = |what, subject, most| {
        goal(what, "engine", |case| case == "planning", Value { subject, metric: "time" }, AtMost(most))
    };
    let one = ["1 thread, times DuckDB's speed, geometric mean", "1 thread, of DuckDB's speed, every statement"];
    let two = ["2 threads, times DuckDB's speed, geometric mean", "2 threads, of DuckDB's speed, every statement"];
    let [mean_1, each_1] = of(one, "freshet", "DuckDB, 1 thread");
    let [mean_2, each_2] = of(two, "freshet, 2 threads", "DuckDB, 2 threads");
    vec![
        mean_1,
        mean_2,
        each_1,
        each_2,
        encoding("rows encoded as text, M/s", "freshet, text", 10.0),
        encoding("rows encoded in binary, M/s", "freshet, binary", 40.0),
        planning("a statement like mixed_analytical planned anew, us", "freshet, anew", 150.0),
        planning("the same by a plan that is kept, us", "freshet, kept", 5.0),
    ]
}

fn following() -> Vec<Goal> {
    let size = |subject, reference, metric| Ratio { subject, reference, metric };
    let mut all = vec![
        goal(
            "first copy, of COPY to /dev/null",
            "scale",
            |case| case == "10M rows/start and first copy",
            Ratio { subject: "freshet", reference: "COPY to /dev/null", metric: "" },
            AtLeast(0.8),
        ),
        goal(
            "TPC-H's tables, heap upstream over memory here",
            "tpch",
            |case| case == "tables in memory",
            size("freshet", "upstream", "size"),
            AtLeast(1.0),
        ),
        goal(
            "one table, heap upstream over memory here",
            "scale",
            |case| case.ends_with("the table itself"),
            size("freshet", "upstream", "cost"),
            AtLeast(1.0),
        ),
    ];
    let applied = |what, metric| {
        goal(what, "freshness", |case| case == "apply", Value { subject: "freshet", metric }, AtLeast(200_000.0))
    };
    all.push(applied("rows of a bulk insert applied per second of a core", "rows applied, insert"));
    all.push(applied("rows of a bulk update applied per second of a core", "rows applied, update"));
    all.push(applied("rows of a bulk delete applied per second of a core", "rows applied, delete"));
    all.extend(fresh());
    all.extend(writers());
    all
}

/// Each mode keeps its own promise: `session` may be stale where others write past freshet.
fn fresh() -> Vec<Goal> {
    let value = |subject, metric| Value { subject, metric };
    let (exact, session, standby) = ("freshet exact", "freshet session", "freshet standby");
    let at_300 = |case: &str| case.ends_with(", 300 commits/s");
    let under = |what, subject, metric, most| goal(what, "freshness", at_300, value(subject, metric), AtMost(most));
    let (median, last) = ("commit to seen, p50", "commit to seen, p99");
    vec![
        under("commit to seen in exact at 300 commits/s, median, us", exact, median, 1_000.0),
        under("commit to seen in session at 300 commits/s, median, us", session, median, 1_000.0),
        under("commit to seen in standby at 300 commits/s, median, us", standby, median, 1_000.0),
        under("commit to seen in exact at 300 commits/s, p99, us", exact, last, 10_000.0),
        under("commit to seen in session at 300 commits/s, p99, us", session, last, 10_000.0),
        under("commit to seen in standby at 300 commits/s, p99, us", standby, last, 10_000.0),
        under("a read in exact at 300 commits/s, median, us", exact, "read, p50", 300.0),
        under("a read in standby at 300 commits/s, median, us", standby, "read, p50", 300.0),
        goal(
            "stale answers in exact, % (nothing fails here: reads under faults are the checker's, tests/checker/README.md)",
            "freshness",
            any,
            value(exact, STALE),
            AtMost(0.0),
        ),
        goal(
            "stale answers in standby, % (nothing fails here: reads under faults are the checker's, tests/checker/README.md)",
            "freshness",
            any,
            value(standby, STALE),
            AtMost(0.0),
        ),
    ]
}

/// What following costs those who commit, at the rate that is fixed for it.
fn writers() -> Vec<Goal> {
    let at_500 = |case: &str| case.ends_with(", 500 commits/s");
    let costs = |what, subject, metric| {
        let measure = Ratio { subject, reference: "alone", metric };
        goal(what, "freshness", at_500, measure, AtLeast(1.0 / 1.03))
    };
    let (exact, session) = ("freshet exact", "freshet session");
    let at_saturation = |what, subject| {
        let measure = Ratio { subject, reference: "receiver", metric: "commits" };
        goal(what, "freshness", |case| case.starts_with("saturation, "), measure, AtLeast(0.97))
    };
    vec![
        at_saturation("commits at saturation beside exact, of those beside a bare receiver", exact),
        at_saturation("commits at saturation beside session, of those beside a bare receiver", session),
        costs("writers' p50 at 500 commits/s, alone over beside exact", exact, "commit, p50"),
        costs("writers' p99 at 500 commits/s, alone over beside exact", exact, "commit, p99"),
        costs("writers' p50 at 500 commits/s, alone over beside session", session, "commit, p50"),
        costs("writers' p99 at 500 commits/s, alone over beside session", session, "commit, p99"),
    ]
}
