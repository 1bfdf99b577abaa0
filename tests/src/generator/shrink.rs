//! From a statement that fails to a small one, then from its tables to few rows.

use std::time::{Duration, Instant};

use super::check::{Mode, Pair, Verdict};
use super::grammar::Statement;
use super::schema::Table;
use super::script::Script;
use super::world::asked;
use crate::cluster::Cluster;

/// For the statement, and for its tables.
const TIME_MAX: Duration = Duration::from_secs(40);

/// The smallest statement found that fails in the same way, and how it fails.
pub(super) fn shrink_statement(
    pair: &mut Pair,
    statement: &Statement,
    mode: Mode,
    verdict: &Verdict,
) -> (Statement, Verdict) {
    let limit = Instant::now() + TIME_MAX;
    let (mut smallest, mut how) = (statement.clone(), verdict.clone());
    'smaller: loop {
        for simpler in smallest.simpler() {
            if Instant::now() > limit {
                break 'smaller;
            }
            let found = pair.verdict(&asked(&simpler, mode));
            if found.class() == verdict.class() {
                (smallest, how) = (simpler, found);
                continue 'smaller;
            }
        }
        break;
    }
    (smallest, how)
}

/// The same with fewer tables and rows, each time in a database of its own: what is not seen there is no regression.
pub(super) fn shrink_tables(
    cluster: &Cluster,
    script: Script,
    tables: &[Table],
    verdict: &Verdict,
) -> (Script, Verdict) {
    let limit = Instant::now() + TIME_MAX;
    let (mut smallest, mut how) = (script, verdict.clone());
    let fails = |script: Script| -> Option<(Script, Verdict)> {
        if Instant::now() > limit {
            return None;
        }
        let found = script.verdict(cluster);
        (found.class() == verdict.class()).then_some((script, found))
    };
    // The changes that were made while the tables were mirrored may not matter.
    let is_named = |table: &&Table| smallest.asked.sql.contains(&table.name);
    let mut kept: Vec<Table> = tables.iter().filter(is_named).cloned().collect();
    // Types come before the tables that have them.
    let types: Vec<String> = smallest.setup.iter().filter(|sql| sql.starts_with("CREATE TYPE")).cloned().collect();
    let with = |script: &Script, tables: &[Table]| Script {
        setup: types.iter().cloned().chain(tables.iter().flat_map(Table::setup)).collect(),
        ..script.clone()
    };
    if kept.is_empty() {
        return fails(smallest.clone()).unwrap_or((smallest, how));
    }
    match fails(with(&smallest, &kept)) {
        Some(found) => (smallest, how) = found,
        None => return fails(smallest.clone()).unwrap_or((smallest, Verdict::Free)),
    }
    for at in 0..kept.len() {
        let mut size = kept[at].rows.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < kept[at].rows.len() {
                let mut fewer = kept.clone();
                let end = (from + size).min(fewer[at].rows.len());
                fewer[at].rows.drain(from..end);
                match fails(with(&smallest, &fewer)) {
                    Some(found) => {
                        (smallest, how) = found;
                        kept = fewer;
                    }
                    None => from += size,
                }
            }
            size /= 2;
        }
    }
    (smallest, how)
}
