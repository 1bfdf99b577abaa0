//! Rows of six mixed columns into the messages that carry them, in text and in binary: rows per second of one thread.

use std::io;

use freshet_engine::types::encode::{ColumnEncoder, Format, write_rows};

use crate::console::print;
use crate::data::{Table, float, int, score, table, text};
use crate::engine::{Freshet, Options, seconds_each};
use crate::results::{Better, Results};
use crate::spread::spread;

pub(super) const CASE: &str = "reply encoding";
const ROWS: i64 = 200_000;
const SQL: &str = "SELECT id, id::bigint * 1000000007 AS large, name, score, (id / 100.0)::numeric(12,2) AS price, \
                   timestamp '2026-01-01' + id * interval '1 minute' AS at FROM mixed";

fn mixed() -> Table {
    table("mixed", ROWS, vec![int("id", |n| n), text("name", |n| format!("user_{n}")), float("score", score)])
}

/// Computes the rows once and encodes them again and again.
pub(super) fn measure(options: &Options, results: &mut Results) -> io::Result<()> {
    if options.only.as_ref().is_some_and(|only| only != CASE) || results.is_done(CASE) {
        return Ok(());
    }
    let freshet = Freshet::new(crate::data::snapshot(&[mixed()]));
    let prepared = freshet.prepare(SQL)?;
    let batches = freshet.run(&freshet.engine, &prepared)?;
    let mut out = Vec::new();
    for (name, format) in [("text", Format::Text), ("binary", Format::Binary)] {
        let mut once = || {
            out.clear();
            for batch in &batches {
                let columns = batch.columns.iter().zip(&prepared.plan.output);
                let encoder = |(column, output): (_, &freshet_engine::binder::OutputColumn)| {
                    ColumnEncoder::new(column, output.expr_type.pg_type, format, &freshet.settings)
                };
                write_rows(&mut columns.map(encoder).collect::<Vec<_>>(), 0..batch.rows, &mut out);
            }
            std::hint::black_box(&out);
        };
        once();
        let rates: Vec<f64> = seconds_each(options, &mut once).iter().map(|each| ROWS as f64 / 1e6 / each).collect();
        let all = spread(rates.iter().copied());
        print(&format!("{CASE}, {name}: {:.1} ({:.1}..{:.1}) M rows/s of six columns", all.median, all.min, all.max));
        let metric = ("rate", "M rows/s", Better::More);
        results.figure(CASE, &format!("freshet, {name}"), metric, &rates, "six mixed columns, one thread")?;
    }
    results.end(CASE)
}
