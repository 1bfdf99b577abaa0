//! The overview for a README: ratios by suite, what grows and how, under the conditions of the runs.

use std::fmt::Write as _;

use super::curves::exponents;
use super::{Collected, described, factor, goals, number, pairs};
use crate::spread::geometric_mean;

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";

pub(super) fn text(collected: &Collected) -> String {
    let mut text = goals::text(&goals::outcomes(collected));
    text.push_str(
        "\n| suite | | against | cases | geometric mean | below 1 | lowest |\n|---|---|---|---|---|---|---|\n",
    );
    for suite in &collected.suites {
        let ratios = suite.ratios();
        for (subject, reference) in pairs(&ratios) {
            let of_pair = || ratios.iter().filter(|r| r.subject == subject && r.reference == reference);
            let medians: Vec<f64> = of_pair().map(|r| r.ratio.median).collect();
            let below = medians.iter().filter(|median| **median < 1.0).count();
            let lowest = of_pair().min_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median));
            let lowest = lowest.map_or(String::new(), |r| format!("{}: {}", r.case, factor(r.ratio.median)));
            let (name, mean) = (&suite.name, factor(geometric_mean(&medians)));
            let _ = writeln!(
                text,
                "| {name} | {subject} | {reference} | {} | {mean} | {below} | {lowest} |",
                medians.len()
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
        let _ = writeln!(text, "\n{}: {}", suite.name, described(&suite.run));
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
