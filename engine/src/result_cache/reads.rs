//! [`Reads`]: how a statement depends on its tables, as far as a change of them can be held against it.

use crate::binder::{BoundExpr, cannot_raise};
use crate::executor::bound::Top;
use crate::planner::Plan;
use crate::planner::expression::{any, bytes_of};
use crate::planner::node::Scan;

/// The scans of a plan, for all replies of one statement.
#[derive(Debug)]
pub struct Reads {
    pub scans: Vec<Scan>,
    /// Where the statement gives the first rows of an order.
    pub top: Option<Top>,
    /// What they take, about.
    pub bytes: usize,
}

impl Reads {
    pub fn of(plan: &Plan) -> Self {
        let own = plan.parameters.len();
        let scans: Vec<Scan> = plan.scans().into_iter().map(|scan| reduced(scan, own)).collect();
        let bytes = scans.iter().map(scan_bytes).sum();
        Self { scans, top: Top::of(plan), bytes }
    }
}

/// The scan without the predicates that read the value of a subquery, which nobody keeps: more rows pass, with all columns
/// that were read, so that more changes count. Where such a predicate may raise an error, those behind it go, too: it is
/// computed for rows that they would drop.
fn reduced(scan: &Scan, parameters: usize) -> Scan {
    let is_kept = |filter: &BoundExpr| {
        !any(filter, &|part| matches!(part, BoundExpr::Parameter { index, .. } if *index >= parameters))
    };
    let mut reduced = Scan { filters: Vec::new(), look_ups: Vec::new(), fingerprint: None, ..scan.clone() };
    let is_passed = |filter: &&BoundExpr| is_kept(filter) || cannot_raise(filter);
    let passed = scan.filters.iter().take_while(is_passed).enumerate();
    for (at, filter) in passed.filter(|(_, filter)| is_kept(filter)) {
        let look_up = scan.look_ups.iter().find(|look_up| look_up.filter == at);
        reduced.look_ups.extend(
            look_up.cloned().map(|look_up| crate::planner::node::LookUp { filter: reduced.filters.len(), ..look_up }),
        );
        reduced.filters.push(filter.clone());
    }
    reduced.find_reached();
    if reduced.filters.len() < scan.filters.len() {
        reduced.outputs = reduced.columns.len();
    }
    reduced
}

fn scan_bytes(scan: &Scan) -> usize {
    let filters: usize = scan.filters.iter().map(bytes_of).sum();
    let look_ups: usize = scan.look_ups.iter().map(|look_up| bytes_of(&look_up.value)).sum();
    size_of::<Scan>() + scan.columns.len() * size_of::<usize>() + filters + look_ups
}
