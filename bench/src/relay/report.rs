//! Tables of the relay suite, ratios round by round, and which target each meets.

use std::fmt::Write as _;

use serde::Serialize;

use crate::console::print;
use crate::relay::copy::Copied;
use crate::relay::idle::Idle;
use crate::relay::rates::{Round, Series};
use crate::relay::servers::Kind;
use crate::relay::syscalls::Calls;
use crate::spread::{Spread, spread};

/// Everything that was measured, for `--json` and for the list of targets.
#[derive(Default, Serialize)]
pub(crate) struct Report {
    figures: Vec<Figure>,
    targets: Vec<Target>,
}

/// One server on one workload; medians over the rounds.
#[derive(Serialize)]
struct Figure {
    workload: String,
    server: String,
    rate: Spread,
    processor_us: f64,
    p50_us: f64,
    p99_us: f64,
    to_direct: Option<Spread>,
    to_cheapest: Option<Spread>,
    to_pgbouncer: Option<Spread>,
}

#[derive(Serialize)]
struct Target {
    what: String,
    server: String,
    wanted: &'static str,
    measured: f64,
    is_met: bool,
}

impl Report {
    /// Rates of one workload. `unit` is what a rate counts, times `scale`.
    pub(crate) fn rates(&mut self, workload: &str, series: &[Series<'_>], unit: &str, scale: f64) {
        let mut text = format!(
            "\n{workload}\n{:26} {:>10} {:>19} {:>8} {:>8} {:>8} {:>20} {:>20} {:>20}\n",
            "server", unit, "min..max", "cpu us", "p50 us", "p99 us", "x direct", "x cheapest", "x PgBouncer"
        );
        for one in series {
            let to = |kind: Kind| ratio(one, series.iter().find(|other| other.line.kind == kind)?);
            let figure = Figure {
                workload: workload.to_string(),
                server: one.line.name(),
                rate: spread(one.rounds.iter().map(|round| round.rate * scale)),
                processor_us: middle(one, |round| round.processor_us),
                p50_us: middle(one, |round| round.p50_us),
                p99_us: middle(one, |round| round.p99_us),
                to_direct: to(Kind::Direct),
                to_cheapest: to(Kind::Cheapest),
                to_pgbouncer: to(Kind::PgBouncer),
            };
            let _ = writeln!(
                text,
                "{:26} {:>10.0} {:>19} {:>8.1} {:>8.0} {:>8.0} {:>20} {:>20} {:>20}",
                figure.server,
                figure.rate.median,
                format!("{:.0}..{:.0}", figure.rate.min, figure.rate.max),
                figure.processor_us,
                figure.p50_us,
                figure.p99_us,
                shown(figure.to_direct),
                shown(figure.to_cheapest),
                shown(figure.to_pgbouncer),
            );
            self.figures.push(figure);
        }
        print(&text);
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

    pub(crate) fn copies(&mut self, copied: &[Copied<'_>], bytes: usize) {
        let [mut into, mut out] = [Vec::new(), Vec::new()];
        let clone = |series: &Series<'_>| series.rounds.clone();
        for one in copied {
            into.push(Series { line: one.into.line, rounds: clone(&one.into) });
            out.push(Series { line: one.out.line, rounds: clone(&one.out) });
        }
        for (direction, series) in [("in", into), ("out", out)] {
            let workload = format!("COPY {direction}, {} MB (cpu us per MB)", bytes / 1_000_000);
            self.rates(&workload, &series, "MB/s", 1e-6);
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
            if one.into.line.kind.is_freshet() {
                self.aim("COPY, resident memory in MB", &one.into, "< 64", peak, peak < 64.0);
            }
        }
        print(&text);
    }

    pub(crate) fn idle(&mut self, idle: &[Idle]) {
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
            self.targets.push(Target {
                what: format!("{} idle sessions, KB each", one.sessions),
                server: format!("freshet tables={}", one.tables),
                wanted: "<= 50",
                measured: each,
                is_met: each <= 50.0,
            });
        }
        print(&text);
    }

    pub(crate) fn calls(calls: &[Calls]) {
        if calls.is_empty() {
            return;
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
        }
        print(&text);
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
