//! In which order the inputs of a join are joined: the first is read batch by batch, each of the others is built and
//! probed. Every input is tried as the first; what follows is, step by step, what leaves the fewest rows.
//!
//! Sizes come from [`super::estimate`], the rows of a step from the distinct values of its keys (PostgreSQL:
//! selfuncs.c eqjoinsel), where keys together have at most as many values as their table has rows.

use super::Run;
use super::ranged::Range;
use crate::binder::BoundExpr;
use crate::catalog::functions::EvalError;
use crate::planner::expression::is_same;
use crate::planner::node::{Join, PlanNode, Scan};
use crate::planner::source_of;
use crate::table::TableVersion;

/// What a row costs, in rows that a batch takes through a step: to be put into a build side, and to come out of a step.
const BUILD_COST: f64 = 3.0;
const OUTPUT_COST: f64 = 0.5;
/// A sort above takes few rows of an input that it bounds: it is read first where at least one of so many of its rows is joined.
const LED_ROWS: f64 = 16.0;
/// Of fewer rows it does not matter.
const LED_MIN: usize = if cfg!(debug_assertions) { 8 } else { 4_096 };
/// Of two smaller inputs, either is as good as the other.
const LOOK_ROWS_MIN: usize = 4_096;

impl Run<'_> {
    /// `known`: the rows of inputs that have been read.
    pub(super) fn join_order(&self, join: &Join, known: &[Option<usize>]) -> Result<Vec<usize>, EvalError> {
        // A recursion's rows are few and others every round, as are those of changes; what they are joined with is built once, for the
        // join cache.
        let is_few = |node: &PlanNode| match node {
            PlanNode::Working { .. } => true,
            PlanNode::Scan(scan) => Some(scan.table) == self.changed,
            _ => false,
        };
        let working = join.inputs.iter().position(|input| has_node(input, &is_few));
        if working.is_none()
            && let Some(order) = self.led_order(join, known)?
        {
            return Ok(order);
        }
        if join.inputs.len() == 2 {
            if let Some(first) = working {
                return Ok(vec![first, 1 - first]);
            }
            // The larger one is read.
            let estimates = |estimate: &dyn Fn(&PlanNode) -> usize| -> Vec<usize> {
                join.inputs.iter().zip(known).map(|(input, known)| known.unwrap_or_else(|| estimate(input))).collect()
            };
            let mut sizes = estimates(&|input| self.estimate(input));
            if sizes.iter().any(|rows| *rows > LOOK_ROWS_MIN) {
                sizes = estimates(&|input| self.estimate_closely(input));
            }
            let first = usize::from(sizes[0] < sizes[1]);
            let first = if self.is_better_built(join, first, &sizes) { 1 - first } else { first };
            return Ok(vec![first, 1 - first]);
        }
        let sizing = Sizing::new(self, join, known)?;
        let firsts = working.map_or(0..join.inputs.len(), |first| first..first + 1);
        Ok(sizing.cheapest(firsts).order)
    }

    /// From the input that a sort with a limit bounds ([`super::bound`]): its scan ends soon. None: there is none, or most of its rows would
    /// be read for what the others leave of them.
    fn led_order(&self, join: &Join, known: &[Option<usize>]) -> Result<Option<Vec<usize>>, EvalError> {
        let is_bounded = |node: &PlanNode| match node {
            PlanNode::Scan(scan) => self.bound_of(scan).is_some(),
            PlanNode::Filter { input, .. } | PlanNode::Project { input, .. } => {
                matches!(&**input, PlanNode::Scan(scan) if self.bound_of(scan).is_some())
            }
            _ => false,
        };
        let Some(first) = join.inputs.iter().position(is_bounded).filter(|first| known[*first].is_none()) else {
            return Ok(None);
        };
        if self.estimate(&join.inputs[first]) <= LED_MIN {
            return Ok(None);
        }
        let sizing = Sizing::new(self, join, known)?;
        let led = sizing.order_from(first);
        Ok((led.rows * LED_ROWS >= sizing.rows[first]).then_some(led.order))
    }

    /// Whether joins take the scan's rows as they are read, rather than build them. False: it does not lie below.
    pub(super) fn is_probe(&self, node: &PlanNode, scan: &Scan) -> Result<bool, EvalError> {
        match node {
            PlanNode::Scan(own) => Ok(std::ptr::eq(own, scan)),
            PlanNode::Join(join) => {
                let order = self.join_order(join, &vec![None; join.inputs.len()])?;
                self.is_probe(&join.inputs[order[0]], scan)
            }
            PlanNode::SideJoin(join) => self.is_probe(&join.left, scan),
            PlanNode::Filter { input, .. } | PlanNode::Project { input, .. } => self.is_probe(input, scan),
            PlanNode::Expand(expand) => self.is_probe(&expand.input, scan),
            _ => Ok(false),
        }
    }

    /// How many rows the join gives, as its order is chosen by.
    pub(super) fn joined_rows(&self, join: &Join) -> Result<usize, EvalError> {
        let sizing = Sizing::new(self, join, &vec![None; join.inputs.len()])?;
        Ok(sizing.cheapest(0..join.inputs.len()).rows.ceil() as usize)
    }
}

/// Rows that are put in order where the other input's rows meet few of them each.
const RANGED_ROWS_MAX: usize = 1_000_000;

impl Run<'_> {
    /// Whether the larger of two inputs without keys is to be built: a column of it is bounded on both sides by the other's rows
    /// ([`super::ranged`]), and not the other way round.
    fn is_better_built(&self, join: &Join, larger: usize, sizes: &[usize]) -> bool {
        let bases = join.bases();
        let is_closed = |input: usize| {
            Range::of(&join.filters, bases[input], bases[input + 1]).is_some_and(|range| range.is_closed())
        };
        join.equalities.is_empty() && sizes[larger] <= RANGED_ROWS_MAX && is_closed(larger) && !is_closed(1 - larger)
    }
}

/// What is known of the inputs.
struct Sizing<'j> {
    join: &'j Join,
    rows: Vec<f64>,
    /// Rows of the input's table before its filters.
    unfiltered: Vec<f64>,
    /// Of each equality's left and right side, before filters: they leave fewer rows for a row to meet, not another chance.
    distinct: Vec<[f64; 2]>,
}

/// One way to join the inputs.
struct Order {
    order: Vec<usize>,
    cost: f64,
    /// Of the last step.
    rows: f64,
}

impl<'j> Sizing<'j> {
    fn new(run: &Run<'_>, join: &'j Join, known: &[Option<usize>]) -> Result<Self, EvalError> {
        let bases = join.bases();
        let rows = |(input, known): (&PlanNode, &Option<usize>)| known.unwrap_or_else(|| run.estimate_closely(input));
        let rows: Vec<f64> = join.inputs.iter().zip(known).map(|input| rows(input).max(1) as f64).collect();
        // Of so few rows no values are counted.
        let is_small = rows.iter().all(|rows| *rows <= LOOK_ROWS_MIN as f64);
        let mut unfiltered = rows.clone();
        let mut distinct = Vec::new();
        for equality in join.equalities.iter().chain(&join.implied) {
            let mut sides = [1.0; 2];
            for (side, (input, expr)) in sides.iter_mut().zip(equality.ends()) {
                let origin = if is_small { None } else { origin(run, &join.inputs[input], expr, bases[input]) };
                *side = match origin {
                    Some((table, column)) => {
                        unfiltered[input] = unfiltered[input].max(table.rows as f64);
                        run.distinct(table, column)?
                    }
                    // A grouped column or the like, mostly: nearly a key.
                    None => rows[input],
                };
            }
            distinct.push(sides);
        }
        Ok(Self { join, rows, unfiltered, distinct })
    }

    fn cheapest(&self, firsts: std::ops::Range<usize>) -> Order {
        let orders = firsts.map(|first| self.order_from(first));
        orders.min_by(|a, b| a.cost.total_cmp(&b.cost)).expect("a join has inputs")
    }

    fn order_from(&self, first: usize) -> Order {
        let inputs = self.join.inputs.len();
        let mut order = vec![first];
        let mut rows = self.rows[first];
        let mut cost = rows;
        while order.len() < inputs {
            let left = (0..inputs).filter(|input| !order.contains(input));
            let steps = left.map(|input| {
                let (is_connected, selectivity) = self.selectivity(&order, rows, input);
                (input, is_connected, (rows * self.rows[input] * selectivity).max(1.0))
            });
            // An unconnected input multiplies everything: last.
            let next = steps.min_by(|a, b| {
                let by_rows = a.2.total_cmp(&b.2).then(self.rows[a.0].total_cmp(&self.rows[b.0]));
                b.1.cmp(&a.1).then(by_rows)
            });
            let (input, _, joined) = next.expect("inputs are left");
            cost += self.rows[input] * BUILD_COST + rows + joined * OUTPUT_COST;
            rows = joined;
            order.push(input);
        }
        Order { order, cost, rows }
    }

    /// Whether any equality leads from `attached`, of so many rows, to `input`, and which share of the pairs it keeps.
    fn selectivity(&self, attached: &[usize], rows: f64, input: usize) -> (bool, f64) {
        let mut keys: Vec<&BoundExpr> = Vec::new();
        let (mut of_input, mut of_attached, mut attached_rows) = (1.0, 1.0, rows);
        for (equality, distinct) in self.join.equalities.iter().chain(&self.join.implied).zip(&self.distinct) {
            let Some(end) = equality.end_of(input, attached) else { continue };
            let (own, other) = (equality.ends()[end].1, equality.ends()[1 - end].0);
            // Several ways to one column say it once.
            if keys.iter().any(|key| is_same(key, own)) {
                continue;
            }
            keys.push(own);
            of_input *= distinct[end];
            of_attached *= distinct[1 - end];
            attached_rows = attached_rows.max(self.unfiltered[other]);
        }
        let values = of_input.min(self.unfiltered[input]).max(of_attached.min(attached_rows)).max(1.0);
        (!keys.is_empty(), if keys.is_empty() { 1.0 } else { 1.0 / values })
    }
}

fn has_node(node: &PlanNode, is_it: &dyn Fn(&PlanNode) -> bool) -> bool {
    let mut found = is_it(node);
    node.for_each_input(&mut |input| found = found || has_node(input, is_it));
    found
}

/// The table's column that a key is, if it is one.
pub(super) fn origin<'r>(
    run: &'r Run<'_>,
    node: &PlanNode,
    key: &BoundExpr,
    base: usize,
) -> Option<(&'r TableVersion, usize)> {
    let BoundExpr::Column { index, .. } = key else { return None };
    let (scan, column) = source_of(node, index - base)?;
    Some((run.snapshot.tables.get(&scan.table)?, column))
}
