//! Tables of the relay suite, ratios round by round, and which target each meets.

use std::fmt::Write as _;
use std::io;

use crate::console::print;
use crate::relay::copy::Copied;
use crate::relay::idle::Idle;
use crate::relay::rates::{Round, Series};
use crate::relay::servers::Kind;
use crate::relay::syscalls::Calls;
use crate::results::{Better, Results};
use crate::spread::{Spread, spread};

/// Figures go to the results as they come; targets are listed at the end.
pub(crate) struct Report {
    results: Results,
    targets: Vec<Target>,
}

struct Target {
    what: String,
    server: String,
    wanted: &'static str,
    measured: f64,
    is_met: bool,
}

impl Report {
    pub(crate) fn new(results: Results) -> Self {
        Self { results, targets: Vec::new() }
    }

    /// Whether an earlier run under the same conditions has this case.
    pub(crate) fn is_done(&self, case: &str) -> bool {
        self.results.is_done(case)
    }

    pub(crate) fn skip(&mut self, case: &str, reason: &str) -> io::Result<()> {
        self.results.skip(case, reason)
    }

    pub(crate) fn end(&mut self, case: &str) -> io::Result<()> {
        self.results.end(case)
    }

    /// Rates of one workload. `unit` is what a rate counts, times `scale`.
    pub(crate) fn rates(&mut self, workload: &str, series: &[Series<'_>], unit: &str, scale: f64) -> io::Result<()> {
        let mut text = format!(
            "\n{workload}\n{:26} {:>10} {:>19} {:>8} {:>7} {:>7} {:>8} {:>8} {:>20} {:>20} {:>20} {:>20}\n",
            "server",
            unit,
            "min..max",
            "cpu us",
            "PG us",
            "cl. us",
            "p50 us",
            "p99 us",
            "x direct",
            "x cheapest",
            "x PgBouncer",
            "x canned"
        );
        for one in series {
            let to =
                |kind: Kind| shown(series.iter().find(|other| other.line.kind == kind).and_then(|o| ratio(one, o)));
            let rate = spread(one.rounds.iter().map(|round| round.rate * scale));
            let _ = writeln!(
                text,
                "{:26} {:>10.0} {:>19} {:>8.1} {:>7.1} {:>7.1} {:>8.0} {:>8.0} {:>20} {:>20} {:>20} {:>20}",
                one.line.name(),
                rate.median,
                format!("{:.0}..{:.0}", rate.min, rate.max),
                middle(one, |round| round.processor_us[0]),
                middle(one, |round| round.processor_us[1]),
                middle(one, |round| round.processor_us[2]),
                middle(one, |round| round.p50_us),
                middle(one, |round| round.p99_us),
                to(Kind::Direct),
                to(Kind::Cheapest),
                to(Kind::PgBouncer),
                to(Kind::Canned),
            );
            self.figures(workload, one, unit, scale)?;
        }
        print(&text);
        Ok(())
    }

    fn figures(&mut self, workload: &str, one: &Series<'_>, unit: &str, scale: f64) -> io::Result<()> {
        let system = one.line.kind.name();
        let values = |of: fn(&Round) -> f64| one.rounds.iter().map(of).collect::<Vec<_>>();
        let rates: Vec<f64> = one.rounds.iter().map(|round| round.rate * scale).collect();
        self.results.figure(workload, system, ("rate", unit, Better::More), &rates, "")?;
        let used = [0, 1, 2].map(|who| one.rounds.iter().map(|round| round.processor_us[who]).collect::<Vec<_>>());
        let each = if unit == "MB/s" { "us/MB" } else { "us/unit" };
        self.results.processor(workload, system, each, &used, "")?;
        self.results.latency(workload, system, &one.latency)?;
        for (metric, of) in [("p50", (|round| round.p50_us) as fn(&Round) -> f64), ("p99", |round| round.p99_us)] {
            // A copy is no series of units.
            if one.rounds.iter().any(|round| of(round) > 0.0) {
                self.results.figure(workload, system, (metric, "us", Better::Less), &values(of), "")?;
            }
        }
        Ok(())
    }

    /// The ratios to the cheapest relay and to PgBouncer that freshet is held against.
    pub(crate) fn aim_at_relays(&mut self, workload: &str, series: &[Series<'_>], with_pgbouncer: bool) {
        for one in series.iter().filter(|one| one.line.kind.is_freshet()) {
            let to = |kind: Kind| ratio(one, series.iter().find(|other| other.line.kind == kind)?);
            if let Some(ratio) = to(Kind::Cheapest) {
                self.aim(workload, one, ">= 0.95 x cheapest relay", ratio.median, ratio.median >= 0.95);
            }
            if let Some(ratio) = to(Kind::PgBouncer).filter(|_| with_pgbouncer) {
                self.aim(workload, one, ">= 1.05 x PgBouncer", ratio.median, ratio.median >= 1.05);
            }
        }
    }

    /// Microseconds that a server adds at the median, round by round.
    pub(crate) fn aim_at_latency(&mut self, workload: &str, series: &[Series<'_>]) {
        let Some(direct) = series.iter().find(|one| one.line.kind == Kind::Direct) else { return };
        let mut text = format!("{:26} {:>10} {:>19}\n", "added p50 latency, us", "median", "min..max");
        for one in series.iter().filter(|one| one.line.kind != Kind::Direct) {
            let rounds = one.rounds.iter().zip(&direct.rounds);
            let added = spread(rounds.map(|(round, direct)| round.p50_us - direct.p50_us));
            let range = format!("{:.1}..{:.1}", added.min, added.max);
            let _ = writeln!(text, "{:26} {:>10.1} {range:>19}", one.line.name(), added.median);
            if one.line.kind.is_freshet() && one.line.leg == crate::relay::servers::Leg::Tcp {
                self.aim(workload, one, "<= 40 us added", added.median, added.median <= 40.0);
            }
        }
        print(&text);
    }

    pub(crate) fn copies(&mut self, leg: &str, copied: &[Copied<'_>], bytes: usize) -> io::Result<()> {
        let into: Vec<Series<'_>> = copied.iter().map(|one| one.into.clone()).collect();
        let out: Vec<Series<'_>> = copied.iter().map(|one| one.out.clone()).collect();
        for (direction, series) in [("in", into), ("out", out)] {
            let workload = format!("COPY {direction} of {} MB, {leg}", bytes / 1_000_000);
            self.rates(&workload, &series, "MB/s", 1e-6)?;
            let direct = series.iter().find(|one| one.line.kind == Kind::Direct);
            for one in series.iter().filter(|one| one.line.kind.is_freshet()) {
                if let Some(ratio) = direct.and_then(|direct| ratio(one, direct)) {
                    self.aim(&workload, one, ">= 0.9 x direct", ratio.median, ratio.median >= 0.9);
                }
            }
        }
        let mut text = format!("{:26} {:>16}\n", "resident at most", "MB");
        for one in copied.iter().filter(|one| one.peak_kb > 0) {
            let peak = one.peak_kb as f64 / 1024.0;
            let _ = writeln!(text, "{:26} {peak:>16.1}", one.into.line.name());
            let (case, metric) = (format!("COPY, {leg}"), ("resident memory at most", "MB", Better::Less));
            self.results.figure(&case, one.into.line.kind.name(), metric, &[peak], "")?;
            if one.into.line.kind.is_freshet() {
                self.aim("COPY, resident memory in MB", &one.into, "< 64", peak, peak < 64.0);
            }
        }
        print(&text);
        Ok(())
    }

    pub(crate) fn idle(&mut self, idle: &[Idle]) -> io::Result<()> {
        let mut text = String::new();
        for one in idle {
            let each = one.kb_per_session();
            let _ = writeln!(
                text,
                "{} idle sessions, tables={}: {:.1} KB each ({:.1} MB before, {:.1} MB after)",
                one.sessions,
                one.tables,
                each,
                one.before_kb as f64 / 1024.0,
                one.after_kb as f64 / 1024.0
            );
            let (case, server) = (format!("{} idle sessions", one.sessions), format!("freshet tables={}", one.tables));
            self.results.figure(&case, &server, ("memory of each", "KB", Better::Less), &[each], "")?;
            self.targets.push(Target {
                what: format!("{} idle sessions, KB each", one.sessions),
                server,
                wanted: "<= 50",
                measured: each,
                is_met: each <= 50.0,
            });
        }
        print(&text);
        Ok(())
    }

    pub(crate) fn calls(&mut self, leg: &str, calls: &[Calls]) -> io::Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        let mut text = format!(
            "\nsystem calls per unit, one connection\n{:26} {:10} {:>6} {:>6} {:>8} {:>6} {:>6}\n",
            "server", "protocol", "reads", "writes", "in vain", "waits", "others"
        );
        for one in calls {
            let _ = writeln!(
                text,
                "{:26} {:10} {:>6.2} {:>6.2} {:>8.2} {:>6.2} {:>6.2}",
                one.server, one.protocol, one.reads, one.writes, one.in_vain, one.waits, one.others
            );
            let (case, all) =
                (format!("system calls {}, {leg}", one.protocol), one.reads + one.writes + one.waits + one.others);
            self.results.figure(&case, &one.server, ("system calls", "per unit", Better::Less), &[all], "")?;
        }
        print(&text);
        Ok(())
    }

    /// Every target and whether it is met.
    pub(crate) fn summary(&self) {
        let met = self.targets.iter().filter(|target| target.is_met).count();
        let mut text = format!("\ntargets met: {met} of {}\n", self.targets.len());
        for target in self.targets.iter().filter(|target| !target.is_met) {
            let Target { what, server, wanted, measured, .. } = target;
            let _ = writeln!(text, "  missed: {what}: {server}: {measured:.3}, wanted {wanted}");
        }
        print(&text);
    }

    fn aim(&mut self, what: &str, series: &Series<'_>, wanted: &'static str, measured: f64, is_met: bool) {
        self.targets.push(Target { what: what.to_string(), server: series.line.name(), wanted, measured, is_met });
    }
}

/// Round by round: what disturbs the machine disturbs both.
fn ratio(one: &Series<'_>, other: &Series<'_>) -> Option<Spread> {
    if one.line.name() == other.line.name() || other.rounds.is_empty() {
        return None;
    }
    Some(spread(one.rounds.iter().zip(&other.rounds).map(|(one, other)| one.rate / other.rate)))
}

fn middle(series: &Series<'_>, of: impl Fn(&Round) -> f64) -> f64 {
    spread(series.rounds.iter().map(of)).median
}

fn shown(spread: Option<Spread>) -> String {
    spread.map_or_else(String::new, |s| format!("{:.3} ({:.2}..{:.2})", s.median, s.min, s.max))
}
