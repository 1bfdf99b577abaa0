//! The overview for a README: ratios by suite, what grows and how, under the conditions of the runs.

use std::fmt::Write as _;

use super::curves::exponents;
use super::{Collected, described, factor, goals, number};

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";

pub(super) fn text(collected: &Collected) -> String {
    let mut text = goals::text(&goals::outcomes(collected));
    text.push_str(
        "\n| suite | | against | cases | geometric mean | below 1 | lowest |\n|---|---|---|---|---|---|---|\n",
    );
    for suite in &collected.suites {
        for sum in suite.sums() {
            let (case, lowest) = (sum.lowest.0, factor(sum.lowest.1));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {case}: {lowest} |",
                sum.name,
                sum.subject,
                sum.reference,
                sum.cases,
                factor(sum.mean),
                sum.below
            );
        }
    }
    // Other suites' curves are in the page.
    let growing = collected.suites.iter().filter(|suite| suite.name == "scale");
    let curves: Vec<_> = growing.flat_map(|suite| exponents(&suite.figures)).collect();
    if !curves.is_empty() {
        text.push_str("\n| what | of | by | at least | at most | exponent |\n|---|---|---|---|---|---|\n");
    }
    for curve in curves {
        let [(first, low), (last, high)] = curve.ends;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} at {first} | {} at {last} | {:.2} |",
            curve.name,
            curve.system,
            curve.by,
            number(low),
            number(high),
            curve.exponent
        );
    }
    for suite in &collected.suites {
        let _ = writeln!(text, "\n{}: {}", suite.name, described(suite));
    }
    text
}

/// Few lines: freshet as most use it, against what they have now and what they may compare it with.
pub(super) fn brief(collected: &Collected) -> String {
    let subjects = ["freshet", "freshet session", "freshet cached"];
    let references = [
        "upstream",
        "direct",
        "DuckDB in process",
        "DuckDB, 1 thread",
        "Redis",
        "Valkey",
        "canned reply",
        "cheapest relay",
    ];
    // Of these two the reference is not upstream: what only passes on, and what only repeats.
    let is_wanted = |suite: &str, reference: &str| match reference {
        "canned reply" => suite == "hits",
        "cheapest relay" => suite == "relay",
        _ => suite != "scale" && suite != "relay",
    };
    let mut text =
        "| suite | freshet against | cases | geometric mean | below 1 | lowest |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for suite in &collected.suites {
        for sum in suite.sums() {
            if !subjects.contains(&sum.subject)
                || !references.contains(&sum.reference)
                || !is_wanted(&suite.name, sum.reference)
            {
                continue;
            }
            let (case, lowest) = (sum.lowest.0, factor(sum.lowest.1));
            let (name, reference, mean) = (sum.name, sum.reference, factor(sum.mean));
            let _ =
                writeln!(text, "| {name} | {reference} | {} | {mean} | {} | {case}: {lowest} |", sum.cases, sum.below);
        }
    }
    text
}

/// None where a mark is missing.
pub(super) fn between_marks(text: &str, new: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", new.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::read;
    use crate::results::{Better, Results};

    #[test]
    fn what_is_between_the_marks_is_replaced_and_nothing_else() {
        let text = format!("# a\n{BEGIN}\nold\n{END}\nrest\n");
        let filled = between_marks(&text, "new\n").expect("marks");
        assert_eq!(filled, format!("# a\n{BEGIN}\nnew\n{END}\nrest\n"));
        assert_eq!(between_marks(&filled, "new").as_deref(), Some(&*filled), "again: the same");
        assert_eq!(between_marks("# a\n", "new"), None);
    }

    #[test]
    fn ratios_and_exponents_are_summed_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.jsonl");
        let mut results = Results::open(Some(&path), "scale", &[], &[]).expect("opened");
        for (size, ours, theirs) in [(10.0, 1.0, 2.0), (1_000.0, 10.0, 200.0)] {
            for (system, value) in [("freshet", ours), ("upstream", theirs)] {
                let (case, metric) = (format!("{size} rows/scan"), ("cost", "us", Better::Less));
                results.figure_at(&case, system, metric, &[value], "", Some(("rows", size))).expect("written");
            }
        }
        let text = text(&Collected::of(read(&path).expect("read")));
        assert!(text.contains("| scale | freshet | upstream | 2 | 6.32 x | 0 | 10 rows/scan: 2.00 x |"), "{text}");
        assert!(text.contains("| scan, us | freshet | rows | 1.00 at 10 | 10.0 at 1000 | 0.50 |"), "{text}");
        assert!(text.contains("| scan, us | upstream | rows | 2.00 at 10 | 200 at 1000 | 1.00 |"), "{text}");
    }
}
