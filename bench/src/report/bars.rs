//! Ratio bars: a row for each case, a column for each system that freshet is compared with, a bar for each of freshet's
//! modes, from 1 to the ratio on a log axis. A colour is a mode; which side of 1 a bar lies on, its place says.

use maud::{Markup, html};

use super::scale::{Log, label};
use super::{Ratio, number};

/// What fits into the page.
const PAGE_WIDTH: f64 = 1_176.0;
const LABEL_WIDTH_MIN: f64 = 120.0;
/// Of a letter of a label, on the wide side.
const LETTER_WIDTH: f64 = 6.4;
const COLUMN_WIDTH: f64 = 214.0;
/// For the number behind the bars.
const NUMBER_WIDTH: f64 = 50.0;
const GAP: f64 = 18.0;
const BAR_HEIGHT: f64 = 11.0;
const ROW_GAP: f64 = 6.0;
const HEAD: f64 = 46.0;

pub(super) fn chart(ratios: &[&Ratio<'_>]) -> Markup {
    let (cases, subjects) = (distinct(ratios, |r| r.case), distinct(ratios, |r| r.subject));
    let references = distinct(ratios, |r| r.reference);
    let label_width = label_width(&cases);
    let columns = ((PAGE_WIDTH - label_width) / (COLUMN_WIDTH + GAP)).floor().max(1.0) as usize;
    html! {
        (legend(&subjects))
        @for some in references.chunks(columns) {
            @let shown: Vec<&Ratio<'_>> = ratios.iter().filter(|r| some.contains(&r.reference)).copied().collect();
            div.chart { (table(&shown, &subjects, some, label_width)) }
        }
    }
}

fn label_width(cases: &[&str]) -> f64 {
    let longest = cases.iter().map(|case| case.chars().count()).max().unwrap_or(0);
    (longest as f64 * LETTER_WIDTH + 12.0).max(LABEL_WIDTH_MIN)
}

/// A case, the modes that it was measured in, and where it begins.
struct Row<'a> {
    case: &'a str,
    subjects: Vec<&'a str>,
    top: f64,
}

impl Row<'_> {
    fn height(&self) -> f64 {
        BAR_HEIGHT * self.subjects.len() as f64 + ROW_GAP
    }

    fn top_of(&self, subject: &str) -> f64 {
        self.top + BAR_HEIGHT * self.subjects.iter().position(|one| *one == subject).unwrap_or(0) as f64
    }
}

/// A row is as high as it has bars: an empty place would put them beside their label.
fn rows<'a>(ratios: &[&Ratio<'a>], subjects: &[&'a str]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for case in distinct(ratios, |r| r.case) {
        let is_measured = |subject: &&&str| ratios.iter().any(|r| r.case == case && r.subject == **subject);
        let top = rows.last().map_or(HEAD, |row| row.top + row.height());
        rows.push(Row { case, subjects: subjects.iter().filter(is_measured).copied().collect(), top });
    }
    rows
}

fn table(ratios: &[&Ratio<'_>], subjects: &[&str], references: &[&str], label_width: f64) -> Markup {
    let rows = rows(ratios, subjects);
    let width = label_width + references.len() as f64 * (COLUMN_WIDTH + GAP);
    let height = rows.last().map_or(HEAD, |row| row.top + row.height()) + 8.0;
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img" {
            @for (at, row) in rows.iter().enumerate() {
                @if at % 2 == 1 { rect.band x="0" y=(row.top - ROW_GAP / 2.0) width=(width) height=(row.height()) {} }
                text.case x=(label_width - 8.0) y=(row.top + (row.height() - ROW_GAP) / 2.0 + 4.0) text-anchor="end" { (row.case) }
            }
            @for (column, reference) in references.iter().enumerate() {
                @let left = label_width + column as f64 * (COLUMN_WIDTH + GAP);
                @let of_column: Vec<&Ratio<'_>> = ratios.iter().filter(|r| r.reference == *reference).copied().collect();
                @let axis = axis(&of_column, left);
                text.head x=(left + (COLUMN_WIDTH - NUMBER_WIDTH) / 2.0) y="14" text-anchor="middle" { "x " (reference) }
                (grid(&axis, left, height))
                @for ratio in of_column {
                    @let mode = subjects.iter().position(|s| *s == ratio.subject).unwrap_or(0);
                    @if let Some(row) = rows.iter().find(|row| row.case == ratio.case) {
                        (bar(ratio, &axis, mode, row.top_of(ratio.subject), left + COLUMN_WIDTH))
                    }
                }
            }
        }
    }
}

/// The whole spans have room on it, not the medians alone.
fn axis(ratios: &[&Ratio<'_>], left: f64) -> Log {
    let values = ratios.iter().flat_map(|r| [r.ratio.min, r.ratio.median, r.ratio.max]).chain([0.5, 2.0]);
    Log::around(values, left, left + COLUMN_WIDTH - NUMBER_WIDTH)
}

fn grid(axis: &Log, left: f64, height: f64) -> Markup {
    let (top, one) = (HEAD - 8.0, axis.place(1.0));
    html! {
        rect.below x=(left) y=(top) width=(one - left) height=(height - top) {}
        @for tick in axis.ticks() {
            @let x = axis.place(tick);
            line.grid x1=(x) x2=(x) y1=(top) y2=(height) {}
            text.tick x=(x) y=(HEAD - 14.0) text-anchor="middle" { (label(tick)) }
        }
        line.one x1=(one) x2=(one) y1=(top) y2=(height) {}
    }
}

fn bar(ratio: &Ratio<'_>, axis: &Log, mode: usize, top: f64, right: f64) -> Markup {
    let (one, end) = (axis.place(1.0), axis.place(ratio.ratio.median));
    let middle = top + BAR_HEIGHT / 2.0 - 0.5;
    let shown =
        format!("{} x ({} to {})", number(ratio.ratio.median), number(ratio.ratio.min), number(ratio.ratio.max));
    html! {
        g {
            title { (ratio.case) ", " (ratio.subject) " against " (ratio.reference) ": " (shown) }
            rect class=(format!("mode{mode}")) x=(one.min(end)) y=(top) width=((end - one).abs().max(1.0)) height=(BAR_HEIGHT - 1.0) {}
            line.span x1=(axis.place(ratio.ratio.min)) x2=(axis.place(ratio.ratio.max)) y1=(middle) y2=(middle) {}
            text class=(if ratio.ratio.median < 1.0 { "value worse" } else { "value" }) x=(right) y=(top + BAR_HEIGHT - 2.0) text-anchor="end" {
                (number(ratio.ratio.median))
            }
        }
    }
}

fn legend(subjects: &[&str]) -> Markup {
    html! {
        p.legend {
            @for (mode, subject) in subjects.iter().enumerate() {
                span { svg width="12" height="12" { rect class=(format!("mode{mode}")) width="12" height="12" {} } " " (subject) }
            }
        }
    }
}

fn distinct<'a>(ratios: &[&Ratio<'a>], of: impl Fn(&Ratio<'a>) -> &'a str) -> Vec<&'a str> {
    let mut all = Vec::new();
    for ratio in ratios {
        if !all.contains(&of(ratio)) {
            all.push(of(ratio));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::Spread;

    #[test]
    fn bars_stand_beside_the_label_of_their_case() {
        let ratio = Spread { median: 2.0, min: 0.001, max: 300.0 };
        let of = |case, subject| Ratio { case, subject, reference: "upstream", ratio };
        let all = [of("a", "session"), of("a", "exact"), of("b", "exact")];
        let all: Vec<&Ratio<'_>> = all.iter().collect();
        let rows = rows(&all, &["session", "exact"]);
        assert_eq!([rows[0].height(), rows[1].height()], [28.0, 17.0]);
        assert!((rows[1].top_of("exact") - rows[1].top).abs() < 1e-9, "no empty place above it");
        let axis = axis(&all, 0.0);
        assert!(axis.place(0.001) < axis.place(0.002) && axis.place(300.0) > axis.place(250.0), "spans are not cut");
        assert!(label_width(&["x".repeat(46).as_str()]) > 290.0);
    }
}
