//! One system on one case, a value per round: rate, processor time of each process beside it, and latencies.

use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::load::{Measured, histogram};
use crate::results::{Better, Results};
use crate::spread::{Spread, median, paired, spread};

pub(crate) struct Series {
    pub(crate) system: &'static str,
    /// Executions per second.
    pub(crate) rates: Vec<f64>,
    /// Microseconds per execution: the server itself, the PostgreSQL behind it, the client.
    pub(crate) processor_us: [Vec<f64>; 3],
    /// Nanoseconds, of all rounds.
    pub(crate) latency: Histogram<u64>,
    /// Microseconds: the median and the 99th percentile of each round, where single times are known.
    quantiles_us: [Vec<f64>; 2],
    pub(crate) note: String,
}

impl Series {
    pub(crate) fn new(system: &'static str) -> Self {
        let (rates, processor_us, quantiles_us) = Default::default();
        Self { system, rates, processor_us, latency: histogram(), quantiles_us, note: String::new() }
    }

    /// A round, and what server and PostgreSQL used of the processors meanwhile. `depth`: executions that count as one
    /// query of the load.
    pub(crate) fn add(&mut self, round: &Measured, used: [Duration; 2], depth: usize) -> io::Result<()> {
        if round.queries == 0 {
            return Err(io::Error::other(format!("{}: no query", self.system)));
        }
        let executions = round.queries as f64 * depth as f64;
        self.rates.push(round.queries_per_second() * depth as f64);
        for (values, time) in self.processor_us.iter_mut().zip([used[0], used[1], round.client_time]) {
            values.push(time.as_secs_f64() * 1e6 / executions);
        }
        if !round.latency.is_empty() {
            for (values, quantile) in self.quantiles_us.iter_mut().zip([0.5, 0.99]) {
                values.push(round.latency.value_at_quantile(quantile) as f64 / 1000.0);
            }
        }
        self.latency.add(&round.latency).map_err(io::Error::other)
    }

    pub(crate) fn rate(&self) -> Spread {
        spread(self.rates.iter().copied())
    }

    /// A quantile of the latencies, in microseconds.
    pub(crate) fn us(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1000.0
    }

    /// Medians of [`Self::processor_us`].
    pub(crate) fn processor(&self) -> [f64; 3] {
        self.processor_us.each_ref().map(|values| median(values.iter().copied()))
    }

    /// Its rate as a multiple of another's among `all`; nothing of its own.
    pub(crate) fn beside(&self, all: &[Self], name: &str) -> String {
        let other = all.iter().find(|other| other.system == name && other.system != self.system);
        let ratio = other.map(|other| paired(&self.rates, &other.rates));
        ratio.map_or_else(String::new, |ratio| format!("{:.2} ({:.2}..{:.2})", ratio.median, ratio.min, ratio.max))
    }

    /// `of`: `query` or `execution`.
    pub(crate) fn write(&self, results: &mut Results, case: &str, of: &str, at: Option<(&str, f64)>) -> io::Result<()> {
        let unit = format!("{}/s", if of == "query" { "queries" } else { "executions" });
        results.figure_at(case, self.system, ("rate", &unit, Better::More), &self.rates, &self.note, at)?;
        results.processor(case, self.system, &format!("us/{of}"), &self.processor_us, "")?;
        // By round, so that two files can be compared: the distribution is of all rounds together.
        for (metric, values) in ["p50", "p99"].into_iter().zip(&self.quantiles_us) {
            if !values.is_empty() {
                results.figure(case, self.system, (metric, "us", Better::Less), values, "")?;
            }
        }
        results.latency(case, self.system, &self.latency)
    }
}
