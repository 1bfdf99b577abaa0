//! Costs by size: printed as a line of points with the fitted exponent behind them, and kept as curves.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use crate::console::print;
use crate::fit;
use crate::results::{Better, Results};
use crate::spread::median;

/// What a cost is called, and its unit.
pub(super) type Cost = (&'static str, &'static str);

/// What was timed, a value per round.
#[derive(Default)]
pub(super) struct Timed {
    values: Vec<f64>,
    /// Of freshet, PostgreSQL and the client, each time, in the same unit.
    processor: [Vec<f64>; 3],
    /// What is in the processor time beside what was timed.
    pub(super) beside: &'static str,
}

impl Timed {
    /// `factor`: from seconds of processor time to the unit of the value.
    pub(super) fn add(&mut self, value: f64, used: [Duration; 3], factor: f64) {
        self.values.push(value);
        for (values, time) in self.processor.iter_mut().zip(used) {
            values.push(time.as_secs_f64() * factor);
        }
    }
}

pub(super) struct Costs {
    /// What grows.
    part: &'static str,
    curves: Vec<Curve>,
}

struct Curve {
    cost: Cost,
    system: &'static str,
    points: Vec<Point>,
}

struct Point {
    size: u64,
    rounds: Vec<f64>,
    note: String,
    metric: (&'static str, Better),
    /// As in [`Timed`], and what is in it.
    processor: Option<([Vec<f64>; 3], &'static str)>,
}

impl Costs {
    pub(super) fn new(part: &'static str) -> Self {
        Self { part, curves: Vec::new() }
    }

    /// One point, a value per round.
    pub(super) fn add(&mut self, size: u64, cost: Cost, system: &'static str, rounds: Vec<f64>, note: &str) {
        let metric = ("cost", Better::Less);
        self.push(cost, system, Point { size, rounds, note: note.to_owned(), metric, processor: None });
    }

    /// Likewise, with the processor time beside it.
    pub(super) fn add_timed(&mut self, size: u64, cost: Cost, system: &'static str, timed: Timed, note: &str) {
        let processor = Some((timed.processor, timed.beside));
        let (rounds, metric) = (timed.values, ("cost", Better::Less));
        self.push(cost, system, Point { size, rounds, note: note.to_owned(), metric, processor });
    }

    pub(super) fn add_timed_reference(&mut self, size: u64, cost: Cost, system: &'static str, timed: Timed) {
        let processor = Some((timed.processor, timed.beside));
        let (rounds, metric) = (timed.values, ("reference", Better::Neither));
        self.push(cost, system, Point { size, rounds, note: String::new(), metric, processor });
    }

    /// Of something less than the others do, or a part of it: to be seen beside them, not as a ratio.
    pub(super) fn add_reference(&mut self, size: u64, cost: Cost, system: &'static str, rounds: Vec<f64>, note: &str) {
        let metric = ("reference", Better::Neither);
        self.push(cost, system, Point { size, rounds, note: note.to_owned(), metric, processor: None });
    }

    fn push(&mut self, cost: Cost, system: &'static str, point: Point) {
        match self.curves.iter_mut().find(|curve| curve.cost == cost && curve.system == system) {
            Some(curve) => curve.points.push(point),
            None => self.curves.push(Curve { cost, system, points: vec![point] }),
        }
    }

    pub(super) fn report(&self, results: &mut Results) -> io::Result<()> {
        let mut sizes: Vec<u64> = self.curves.iter().flat_map(|c| &c.points).map(|point| point.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut text = format!("\n{:44} {:16}", format!("by {}", self.part), "");
        for size in &sizes {
            let _ = write!(text, " {:>10}", short(*size));
        }
        let _ = writeln!(text, " {:>9} {:>24}", "exponent", "cpu freshet/PG/cl., last");
        for curve in &self.curves {
            let _ = writeln!(text, "{}", curve.line(&sizes));
            for point in &curve.points {
                let (case, at) = (format!("{} {}/{}", short(point.size), self.part, curve.cost.0), point.size as f64);
                let metric = (point.metric.0, curve.cost.1, point.metric.1);
                results.figure_at(&case, curve.system, metric, &point.rounds, &point.note, Some((self.part, at)))?;
                if let Some((values, beside)) = &point.processor {
                    results.processor(&case, curve.system, curve.cost.1, values, beside)?;
                }
            }
        }
        print(&text);
        Ok(())
    }
}

impl Curve {
    fn line(&self, sizes: &[u64]) -> String {
        let mut line = format!("{:44} {:16}", format!("{}, {}", self.cost.0, self.cost.1), self.system);
        for size in sizes {
            let point = self.points.iter().find(|point| point.size == *size);
            let value = point.map(|point| median(point.rounds.iter().copied()));
            let _ = write!(line, " {:>10}", value.map_or(String::new(), shown));
        }
        let points: Vec<(f64, f64)> =
            self.points.iter().map(|p| (p.size as f64, median(p.rounds.iter().copied()))).collect();
        let exponent = fit::exponent(&points).map_or(String::new(), |exponent| format!("{exponent:.2}"));
        let last = self.points.last();
        let processor = last.and_then(|point| point.processor.as_ref()).map_or(String::new(), |(values, _)| {
            values.each_ref().map(|values| shown(median(values.iter().copied()))).join("/")
        });
        let note = last.map_or("", |point| &point.note);
        format!("{line} {exponent:>9} {processor:>24}  {note}")
    }
}

fn shown(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// `10k`, `1M`.
fn short(size: u64) -> String {
    match size {
        size if size >= 1_000_000 && size % 1_000_000 == 0 => format!("{}M", size / 1_000_000),
        size if size >= 1_000 && size % 1_000 == 0 => format!("{}k", size / 1_000),
        size => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_points_and_their_exponent() {
        let mut costs = Costs::new("rows");
        for size in [10_000, 1_000_000] {
            costs.add(size, ("scan", "us"), "freshet", vec![size as f64 / 1e3], "local");
        }
        let line = costs.curves[0].line(&[10_000, 100_000, 1_000_000]);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["scan,", "us", "freshet", "10.00", "1000", "1.00", "local"]);
        let mut timed = Timed::default();
        timed.add(12.5, [3, 0, 4].map(Duration::from_millis), 1e3);
        costs.add_timed(1_000, ("read", "us"), "freshet", timed, "hit");
        let line = costs.curves[1].line(&[1_000]);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["read,", "us", "freshet", "12.50", "3.00/0.00/4.00", "hit"]);
        assert_eq!([500, 1_000, 20_000, 10_000_000].map(short), ["500", "1k", "20k", "10M"]);
    }
}
