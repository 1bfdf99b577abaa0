//! Random statements over random tables, and mutations of real shapes, have upstream's answers
//! (`src/generator`; `differential/README.md` says how to run it for longer).
//!
//! `FRESHET_TEST_GENERATOR_SECONDS` (120) and `FRESHET_TEST_GENERATOR_SEED` decide how long and which.

use freshet_tests::cluster::Cluster;
use freshet_tests::generator::{Options, run};

/// What must be answered here of what PostgreSQL answers, in percent.
const LOCAL_PERCENT_MIN: [(&str, usize); 3] = [("generated", 60), ("tied", 50), ("mutated", 75)];

#[test]
fn generated_statements_have_upstreams_answers() {
    let options = Options::of_environment(20_261_122, 120);
    let report = run(Cluster::shared(), &options);
    println!("seed {}: {} worlds in {:?}", options.seed, report.worlds, options.duration);
    for (kind, share) in &report.shares {
        println!("{kind}: {share:?}, {} % answered here", share.percent());
    }
    let mut reasons: Vec<_> = report.reasons.iter().collect();
    reasons.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let shown = if std::env::var_os("FRESHET_ALL").is_some() { 1_000 } else { 20 };
    for (reason, (count, sql)) in reasons.iter().take(shown) {
        println!("- {count:>5} {reason}: {sql}");
    }
    for sql in report.free.iter().take(5) {
        println!("- PostgreSQL answers in two ways: {sql}");
    }
    let failures: Vec<String> =
        report.failures.iter().map(|(path, text)| format!("{}\n{text}", path.display())).collect();
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    for (kind, percent) in LOCAL_PERCENT_MIN {
        let share = report.shares.get(kind).cloned().unwrap_or_default();
        assert!(share.percent() >= percent, "{kind}: {share:?}");
    }
}
