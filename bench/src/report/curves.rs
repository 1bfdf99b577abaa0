//! Curves on log axes, small ones side by side: how a cost grows, and how latencies are distributed.

use maud::{Markup, html};

use super::scale::{Log, label};
use crate::fit;
use crate::results::{Figure, Latency};
use crate::spread::spread;

const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 246.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 304.0;
const TOP: f64 = 42.0;
const BOTTOM: f64 = 198.0;
/// Of the style sheet; more curves than that share some.
const COLOURS: usize = 10;

/// A line and its name.
struct Curve<'a> {
    name: &'a str,
    points: Vec<(f64, f64)>,
}

/// One chart per thing that grows: figures whose cases differ only in the size before the slash.
pub(super) fn growth(figures: &[Figure]) -> Markup {
    let titles = titles(figures);
    html! {
        @if !titles.is_empty() {
            h3 { "How it grows" }
            p { "The number behind a name is the fitted exponent: 1 is in proportion, 0 is no growth." }
            div.charts {
                @for title in &titles {
                    (chart(&title.name, &format!("{}, by {}", title.unit, title.by), &curves(figures, title), label, true))
                }
            }
        }
    }
}

/// What the curves of one chart have in common.
#[derive(PartialEq, Eq)]
struct Title {
    name: String,
    unit: String,
    /// What grows.
    by: String,
}

impl Title {
    fn of(figure: &Figure) -> Option<Self> {
        let (by, _) = figure.at.as_ref()?;
        let name = figure.case.rsplit('/').next().unwrap_or(&figure.case);
        Some(Self { name: name.to_owned(), unit: figure.unit.clone(), by: by.clone() })
    }
}

fn titles(figures: &[Figure]) -> Vec<Title> {
    let mut titles = Vec::new();
    for title in figures.iter().filter_map(Title::of) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    // Of one size alone there is nothing to see.
    titles.retain(|title| curves(figures, title).iter().any(|curve| curve.points.len() > 1));
    titles
}

fn curves<'a>(figures: &'a [Figure], title: &Title) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for figure in figures.iter().filter(|figure| Title::of(figure).as_ref() == Some(title)) {
        let Some((_, at)) = &figure.at else { continue };
        let point = (*at, spread(figure.rounds.iter().copied()).median);
        match curves.iter_mut().find(|curve| curve.name == figure.system) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name: &figure.system, points: vec![point] }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    curves
}

/// A curve in one line.
pub(super) struct Exponent {
    pub(super) name: String,
    pub(super) by: String,
    pub(super) system: String,
    pub(super) ends: [(f64, f64); 2],
    pub(super) exponent: f64,
}

pub(super) fn exponents(figures: &[Figure]) -> Vec<Exponent> {
    let mut all = Vec::new();
    for title in titles(figures) {
        for curve in curves(figures, &title) {
            let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { continue };
            let Some(exponent) = fit::exponent(&curve.points) else { continue };
            let name = format!("{}, {}", title.name, title.unit);
            let (by, system) = (title.by.clone(), curve.name.to_owned());
            all.push(Exponent { name, by, system, ends: [*first, *last], exponent });
        }
    }
    all
}

/// One chart per case: microseconds by quantile, the axis by what is left out (half, a tenth, a hundredth...).
pub(super) fn latency(latencies: &[Latency]) -> Markup {
    let mut cases: Vec<&str> = Vec::new();
    for latency in latencies {
        if !cases.contains(&&*latency.case) {
            cases.push(&latency.case);
        }
    }
    let name = |rest: f64| if rest <= 1.0 { "0".to_owned() } else { format!("{}%", trimmed(100.0 - 100.0 / rest)) };
    html! {
        div.charts {
            @for case in cases {
                @let of_case = latencies.iter().filter(|l| l.case == case);
                @let curves: Vec<Curve<'_>> = of_case.map(|l| Curve {
                    name: &l.system,
                    points: l.quantiles.iter().map(|(q, us)| (1.0 / (1.0 - q), *us)).collect(),
                }).collect();
                (chart(case, "us, by quantile", &curves, name, false))
            }
        }
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn chart(
    title: &str,
    axes: &str,
    curves: &[Curve<'_>],
    x_label: impl Fn(f64) -> String,
    with_exponent: bool,
) -> Markup {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let x = Log::around(points().map(|point| point.0), LEFT, RIGHT);
    let y = Log::around(points().map(|point| point.1), BOTTOM, TOP);
    let height = HEIGHT - 24.0 + 15.0 * curves.len() as f64;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) width=(WIDTH) height=(height) role="img" {
            text.head x="4" y="14" { (title) }
            text.tick x="4" y="30" { (axes) }
            @for tick in x.ticks() {
                line.grid x1=(x.place(tick)) x2=(x.place(tick)) y1=(TOP) y2=(BOTTOM) {}
                text.tick x=(x.place(tick)) y=(BOTTOM + 14.0) text-anchor="middle" { (x_label(tick)) }
            }
            @for tick in y.ticks() {
                line.grid x1=(LEFT) x2=(RIGHT) y1=(y.place(tick)) y2=(y.place(tick)) {}
                text.tick x=(LEFT - 5.0) y=(y.place(tick) + 4.0) text-anchor="end" { (label(tick)) }
            }
            @for (at, curve) in curves.iter().enumerate() {
                polyline class=(format!("line{}", at % COLOURS)) points=(path(curve, &x, &y)) {}
                @for (cx, cy) in &curve.points {
                    circle class=(format!("dot{}", at % COLOURS)) cx=(x.place(*cx)) cy=(y.place(*cy)) r="2.5" {}
                }
                @let (left, top) = (LEFT + 18.0, BOTTOM + 34.0 + 15.0 * at as f64);
                line class=(format!("line{}", at % COLOURS)) x1=(left - 16.0) x2=(left - 3.0) y1=(top - 4.0) y2=(top - 4.0) {}
                text.tick x=(left) y=(top) { (curve.name) @if with_exponent { (shown_exponent(curve)) } }
            }
        }
    }
}

/// Behind a name.
fn shown_exponent(curve: &Curve<'_>) -> String {
    fit::exponent(&curve.points).map(|exponent| format!(" ({exponent:.2})")).unwrap_or_default()
}

fn path(curve: &Curve<'_>, x: &Log, y: &Log) -> String {
    let points = curve.points.iter().map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1)));
    points.collect::<Vec<_>>().join(" ")
}
