//! [`ConfigErrors`]: every problem of a configuration at once, each with its place, its key and what would be right.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::Settings;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `file:line`, the variable or the flag; empty where it concerns a combination.
    pub place: String,
    /// The key's path, e.g. `freshness.mode`; empty for a file that cannot be read or parsed.
    pub key: String,
    /// What is wrong, as the rest of a sentence that begins with the key.
    pub what: String,
    /// What would be right.
    pub remedy: String,
}

impl Problem {
    pub fn new(key: &str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: String::new(), key: key.to_string(), what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        Self::new("", format!("cannot be read: {error}"), "").at(path.display().to_string())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        f.write_str(&self.what)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

/// What was found while the sources are read, and where each key was set, for problems that turn up later.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub(crate) found: Vec<Problem>,
    places: BTreeMap<&'static str, String>,
}

impl Problems {
    pub(crate) fn push(&mut self, problem: Problem) {
        self.found.push(problem);
    }

    pub(crate) fn set_at(&mut self, key: &'static str, place: &str) {
        self.places.insert(key, place.to_string());
    }

    /// A problem of a key whose place is not known to who found it. A key gets one problem of this kind.
    pub(crate) fn add_to_key(&mut self, problem: Problem) {
        if !self.found.iter().any(|found| found.key == problem.key) {
            let place = self.places.get(problem.key.as_str()).cloned().unwrap_or_default();
            self.found.push(problem.at(place));
        }
    }

    pub(crate) fn into_result(self, settings: Settings) -> Result<Settings, ConfigErrors> {
        if self.found.is_empty() { Ok(settings) } else { Err(ConfigErrors { problems: self.found }) }
    }
}

/// Why the configuration was refused; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        write!(f, "{count} problem{} in the configuration:", if count == 1 { "" } else { "s" })?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

/// The candidate that differs least from `word`, if it is near enough to be a slip of the pen.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance over bytes.
pub(crate) fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, r) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(l != r);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("exat", ["exact", "session", "standby"]), Some("exact"));
        assert_eq!(nearest("wait_budget", ["wait_budget_ms", "max_lag_ms"]), Some("wait_budget_ms"));
        assert_eq!(nearest("zzz", ["exact", "session"]), None);
    }
}
