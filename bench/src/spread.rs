//! Several measurements of one thing: median, least and greatest.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// In words: shares of the processors' time that the host took, a value per case.
pub(crate) fn taken_by_host(cases: &[f64]) -> String {
    let all = spread(cases.iter().map(|taken| 100.0 * taken));
    format!("the host took {:.1} % of the processors meanwhile ({:.1} to {:.1})", all.median, all.min, all.max)
}

/// Not a number where there is no value.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> Spread {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (half, last) = (values.len() / 2, values.len().saturating_sub(1));
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    let median = if values.len().is_multiple_of(2) && half > 0 { (at(half - 1) + at(half)) / 2.0 } else { at(half) };
    Spread { median, min: at(0), max: at(last) }
}

pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    spread(values).median
}

/// Round by round: what disturbs the machine disturbs both.
pub(crate) fn paired(one: &[f64], other: &[f64]) -> Spread {
    spread(one.iter().zip(other).map(|(one, other)| one / other))
}

pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}
