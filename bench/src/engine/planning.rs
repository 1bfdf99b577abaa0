//! What a statement costs before it runs: read, bound and planned anew, and found among the plans that are kept, with other literals
//! each time.

use std::io;

use freshet_engine::executor::Limits;
use freshet_engine::{Engine, EngineOptions};

use crate::console::print;
use crate::data::{self, star};
use crate::engine::{Freshet, Options, seconds_each};
use crate::results::{Better, Results};
use crate::spread::spread;
use crate::star;

pub(super) const CASE: &str = "planning";
const STATEMENT: &str = "mixed_analytical";
/// Planning asks for little of them.
const ROWS: i64 = 50_000;
const PLANS_BYTES: u64 = 64 << 20;

pub(super) fn measure(options: &Options, results: &mut Results) -> io::Result<()> {
    if options.only.as_ref().is_some_and(|only| only != CASE) || results.is_done(CASE) {
        return Ok(());
    }
    let freshet = Freshet::new(data::snapshot(&star(ROWS)));
    let context = freshet.context();
    let query = star::ALL.iter().find(|query| query.name == STATEMENT);
    let query = query.ok_or_else(|| io::Error::other(format!("no statement is named {STATEMENT}")))?;
    let texts: Vec<String> = (0..100).map(|n| query.varied.replace('@', &n.to_string())).collect();
    for (name, plan_bytes_max) in [("anew", 0), ("kept", PLANS_BYTES)] {
        let engine = Engine::new(EngineOptions {
            result_bytes_max: 0,
            reply_bytes_max: 0,
            join_bytes_max: 0,
            plan_bytes_max,
            limits: Limits::default(),
        });
        let once = |text: &String| {
            let planned = engine.prepare_shared(text, &context);
            std::hint::black_box(&planned);
            planned.is_some()
        };
        if !once(&texts[0]) {
            return Err(io::Error::other(format!("{STATEMENT} has no plan that others share")));
        }
        let mut all_once = || texts.iter().for_each(|text| _ = once(text));
        let each = seconds_each(options, &mut all_once);
        let times: Vec<f64> = each.iter().map(|seconds| seconds * 1e6 / texts.len() as f64).collect();
        let all = spread(times.iter().copied());
        print(&format!("{CASE}, {STATEMENT}, {name}: {:.1} ({:.1}..{:.1}) us", all.median, all.min, all.max));
        results.figure(CASE, &format!("freshet, {name}"), ("time", "us", Better::Less), &times, STATEMENT)?;
    }
    results.end(CASE)
}
