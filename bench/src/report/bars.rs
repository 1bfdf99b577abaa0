//! Ratio bars: a row for each case, a column for each system that freshet is compared with, a bar for each of freshet's
//! modes, from 1 to the ratio on a log axis.

use maud::{Markup, html};

use super::scale::{Log, label};
use super::{Ratio, number};

const LABEL_WIDTH: f64 = 210.0;
const COLUMN_WIDTH: f64 = 214.0;
/// So many fit into the page beside each other.
const COLUMNS: usize = 4;
/// For the number behind the bars.
const NUMBER_WIDTH: f64 = 50.0;
const GAP: f64 = 18.0;
const BAR_HEIGHT: f64 = 11.0;
const ROW_GAP: f64 = 6.0;
const HEAD: f64 = 46.0;

pub(super) fn chart(ratios: &[Ratio<'_>]) -> Markup {
    let (cases, subjects) = (distinct(ratios, |r| r.case), distinct(ratios, |r| r.subject));
    let references = distinct(ratios, |r| r.reference);
    html! {
        (legend(&subjects))
        @for some in references.chunks(COLUMNS) {
            div.chart { (columns(ratios, &cases, &subjects, some)) }
        }
    }
}

fn columns(ratios: &[Ratio<'_>], cases: &[&str], subjects: &[&str], references: &[&str]) -> Markup {
    let row_height = BAR_HEIGHT * subjects.len() as f64 + ROW_GAP;
    let width = LABEL_WIDTH + references.len() as f64 * (COLUMN_WIDTH + GAP);
    let is_shown = |case: &&&str| ratios.iter().any(|r| r.case == **case && references.contains(&r.reference));
    let cases: Vec<&str> = cases.iter().filter(is_shown).copied().collect();
    let height = HEAD + cases.len() as f64 * row_height + 8.0;
    let row = |case: &str| HEAD + row_height * cases.iter().position(|c| *c == case).unwrap_or(0) as f64;
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img" {
            @for (at, case) in cases.iter().enumerate() {
                @let y = HEAD + row_height * at as f64;
                @if at % 2 == 1 { rect.band x="0" y=(y - ROW_GAP / 2.0) width=(width) height=(row_height) {} }
                text.case x=(LABEL_WIDTH - 8.0) y=(y + (row_height - ROW_GAP) / 2.0 + 4.0) text-anchor="end" { (case) }
            }
            @for (column, reference) in references.iter().enumerate() {
                @let left = LABEL_WIDTH + column as f64 * (COLUMN_WIDTH + GAP);
                @let of_column: Vec<&Ratio<'_>> = ratios.iter().filter(|r| r.reference == *reference).collect();
                @let axis = axis(&of_column, left);
                text.head x=(left + (COLUMN_WIDTH - NUMBER_WIDTH) / 2.0) y="14" text-anchor="middle" { "x " (reference) }
                (grid(&axis, height))
                @for ratio in of_column {
                    @let mode = subjects.iter().position(|s| *s == ratio.subject).unwrap_or(0);
                    (bar(ratio, &axis, mode, row(ratio.case) + BAR_HEIGHT * mode as f64, left + COLUMN_WIDTH))
                }
            }
        }
    }
}

fn axis(ratios: &[&Ratio<'_>], left: f64) -> Log {
    let values = ratios.iter().map(|r| r.ratio.median).chain([0.5, 2.0]);
    Log::around(values, left, left + COLUMN_WIDTH - NUMBER_WIDTH)
}

fn grid(axis: &Log, height: f64) -> Markup {
    html! {
        @for tick in axis.ticks() {
            @let x = axis.place(tick);
            line.grid x1=(x) x2=(x) y1=(HEAD - 8.0) y2=(height) {}
            text.tick x=(x) y=(HEAD - 14.0) text-anchor="middle" { (label(tick)) }
        }
        line.one x1=(axis.place(1.0)) x2=(axis.place(1.0)) y1=(HEAD - 8.0) y2=(height) {}
    }
}

fn bar(ratio: &Ratio<'_>, axis: &Log, mode: usize, top: f64, right: f64) -> Markup {
    let (one, end) = (axis.place(1.0), axis.place(ratio.ratio.median));
    let middle = top + BAR_HEIGHT / 2.0 - 0.5;
    let class = format!("mode{mode}{}", if ratio.ratio.median < 1.0 { " worse" } else { "" });
    let shown =
        format!("{} x ({} to {})", number(ratio.ratio.median), number(ratio.ratio.min), number(ratio.ratio.max));
    html! {
        g {
            title { (ratio.case) ", " (ratio.subject) " against " (ratio.reference) ": " (shown) }
            rect class=(class) x=(one.min(end)) y=(top) width=((end - one).abs().max(1.0)) height=(BAR_HEIGHT - 1.0) {}
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
            span { svg width="12" height="12" { rect.worse width="12" height="12" {} } " below 1" }
        }
    }
}

fn distinct<'a>(ratios: &[Ratio<'a>], of: impl Fn(&Ratio<'a>) -> &'a str) -> Vec<&'a str> {
    let mut all = Vec::new();
    for ratio in ratios {
        if !all.contains(&of(ratio)) {
            all.push(of(ratio));
        }
    }
    all
}
