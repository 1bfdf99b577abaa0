//! Limit over Sort becomes a sort that keeps only those rows, before what is then computed for each of them; sorts that nobody
//! sees go.

use std::collections::BTreeSet;

use crate::binder::{BoundExpr, ExprType, SortKey, cannot_raise, is_harmless_window};
use crate::catalog::Collation;
use crate::planner::expression::{columns_of, expr_type_of, for_each_operand_mut, renumber, substitute};
use crate::planner::node::{Aggregate, PlanNode, SideJoin, SideKind};
use crate::planner::rules::unique::{meets_one, tells_apart};
use crate::planner::rules::{for_each_input_mut, raises};
use crate::reason::UpstreamReason;
use crate::types::{PgType, Value};

pub(in crate::planner) fn order(node: &mut PlanNode) -> Result<(), UpstreamReason> {
    for_each_input_mut(node, &mut order)?;
    if let PlanNode::Limit { input, limit, offset } = node {
        sort_only(input, limit, offset);
        if limit.is_none() && offset.is_none() {
            *node = std::mem::replace(&mut **input, PlanNode::OneRow);
        }
    }
    sort_first(node);
    Ok(())
}

/// A sort that keeps some rows only, over subqueries that PostgreSQL computes for each row: it computes them for those that are left
/// (planner.c, make_sort_input_target), which is less here, too. The join keeps order and number of its left side's rows.
fn sort_first(node: &mut PlanNode) {
    match node {
        PlanNode::Project { input, .. } => return sort_first(input),
        PlanNode::Sort { limit: Some(_), .. } => {}
        _ => return,
    }
    if compute_later(node)
        && let PlanNode::Project { input, .. } = node
    {
        return sort_first(input);
    }
    let whole = std::mem::replace(node, PlanNode::OneRow);
    let PlanNode::Sort { input, keys, limit, offset, with_ties } = whole else { return };
    let (mut below, expressions) = match *input {
        PlanNode::Project { input, expressions } => (*input, Some(expressions)),
        other => (other, None),
    };
    let mut own_keys = keys.clone();
    own_keys.iter_mut().for_each(|key| expressions.iter().for_each(|known| substitute(&mut key.expr, known)));
    if !with_ties
        && let PlanNode::Aggregate(aggregate) = &mut below
        && expressions.iter().flatten().all(cannot_raise)
    {
        let sort = OnlyRows { keys: &own_keys, limit: &limit, offset: &offset };
        let is_done = sort.place(aggregate);
        let input = Box::new(projected(below, expressions));
        let (limit, offset) = if is_done { (None, None) } else { (limit, offset) };
        *node = PlanNode::Sort { input, keys, limit, offset, with_ties };
        return;
    }
    // How many rows are kept below where those that OFFSET passes over are computed, too.
    let mut whole = None;
    let moves = match &mut below {
        PlanNode::SideJoin(join) => {
            let (is_postponed, is_silent) = (is_postponed(join), is_silent(join));
            let is_left = |column: &usize| *column < join.left.width();
            let is_sure =
                |expr: &BoundExpr| cannot_raise(expr) || is_postponed && !columns_of(expr).iter().all(is_left);
            let shows_errors = !is_silent || !expressions.iter().flatten().all(cannot_raise);
            // PostgreSQL computes what it asks for of the rows that OFFSET passes over, too (nodeLimit.c), and for WITH TIES of one row
            // more, to see that it is none.
            whole = if shows_errors && offset.is_some() { taken(&limit, &offset) } else { None };
            let computes_others = shows_errors && (with_ties || offset.is_some() && whole.is_none());
            gives_each_once(join)
                && (is_postponed || is_silent)
                && !computes_others
                && own_keys.iter().all(|key| columns_of(&key.expr).iter().all(is_left))
                && expressions.iter().flatten().all(is_sure)
        }
        _ => false,
    };
    match &mut below {
        PlanNode::SideJoin(join) if moves => {
            let (limit_below, offset_below) = match &whole {
                Some(whole) => (Some(whole.clone()), None),
                None => (limit.clone(), offset.clone()),
            };
            let input = std::mem::replace(&mut join.left, Box::new(PlanNode::OneRow));
            let mut sort =
                PlanNode::Sort { input, keys: own_keys, limit: limit_below, offset: offset_below, with_ties };
            sort_first(&mut sort);
            *join.left = sort;
            *node = projected(below, expressions);
            if whole.is_some() {
                let input = Box::new(std::mem::replace(node, PlanNode::OneRow));
                *node = PlanNode::Limit { input, limit, offset };
            }
        }
        _ => *node = PlanNode::Sort { input: Box::new(projected(below, expressions)), keys, limit, offset, with_ties },
    }
}

/// What the rows that a sort keeps are asked for, and no key is made of, is computed for those alone; PostgreSQL does so for what is
/// dear (planner.c, make_sort_input_target), and for all where an index gives the order. What may raise an error is left below.
/// False: there is nothing of the kind.
fn compute_later(node: &mut PlanNode) -> bool {
    let PlanNode::Sort { input, keys, .. } = node else { return false };
    let PlanNode::Project { expressions, .. } = &mut **input else { return false };
    let of_keys: BTreeSet<usize> = keys.iter().flat_map(|key| columns_of(&key.expr)).collect();
    let is_later = |(at, expr): (usize, &BoundExpr)| {
        let is_computed =
            !matches!(expr, BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. });
        is_computed && !of_keys.contains(&at) && !columns_of(expr).is_empty() && cannot_raise(expr)
    };
    let later: Vec<bool> = expressions.iter().enumerate().map(is_later).collect();
    if !later.contains(&true) {
        return false;
    }
    let all = std::mem::take(expressions);
    let mut places = vec![0; all.len()];
    for (at, expr) in all.iter().enumerate().filter(|(at, _)| !later[*at]) {
        places[at] = expressions.len();
        expressions.push(expr.clone());
    }
    let mut above = Vec::with_capacity(all.len());
    for (at, mut expr) in all.into_iter().enumerate() {
        match later[at] {
            true => read_from(&mut expr, expressions),
            false => expr = BoundExpr::Column { index: places[at], expr_type: expr_type_of(&expr) },
        }
        above.push(expr);
    }
    keys.iter_mut().for_each(|key| renumber(&mut key.expr, &|at| places[at]));
    let sort = std::mem::replace(node, PlanNode::OneRow);
    *node = PlanNode::Project { input: Box::new(sort), expressions: above };
    true
}

/// Has the expression read its columns from those of a projection, which gets what it lacks.
fn read_from(expr: &mut BoundExpr, below: &mut Vec<BoundExpr>) {
    if let BoundExpr::Column { index, .. } = expr {
        let known = below.iter().position(|own| matches!(own, BoundExpr::Column { index: of, .. } if of == index));
        let place = known.unwrap_or(below.len());
        if known.is_none() {
            below.push(expr.clone());
        }
        renumber(expr, &|_| place);
        return;
    }
    for_each_operand_mut(expr, &mut |operand| read_from(operand, below));
}

fn projected(below: PlanNode, expressions: Option<Vec<BoundExpr>>) -> PlanNode {
    match expressions {
        Some(expressions) => PlanNode::Project { input: Box::new(below), expressions },
        None => below,
    }
}

/// Whether PostgreSQL computes it for the rows that its sort has left: a subquery of the select list that reads a table for each row, for only
/// that is dear to it (costsize.c, cost_subplan). What stands beside groups or windows may as well be a query in FROM that it computes whole.
fn is_postponed(join: &SideJoin) -> bool {
    fn reads(node: &PlanNode) -> bool {
        let mut found = matches!(node, PlanNode::Scan(_));
        node.for_each_input(&mut |input| found = found || reads(input));
        found
    }
    fn is_flat(node: &PlanNode) -> bool {
        match node {
            PlanNode::Project { input, .. } | PlanNode::Filter { input, .. } => is_flat(input),
            PlanNode::SideJoin(join) => is_flat(&join.left),
            PlanNode::OneRow | PlanNode::Scan(_) | PlanNode::Join(_) => true,
            _ => false,
        }
    }
    let is_subquery = match join.kind {
        // IN is hashed.
        SideKind::Mark => join.test.is_none() && join.test_key.is_none(),
        SideKind::Left => join.is_per_row && !join.is_lateral,
        _ => true,
    };
    is_subquery && reads(&join.right) && is_flat(&join.left)
}

/// Whether each row of the left is given once.
fn gives_each_once(join: &SideJoin) -> bool {
    match join.kind {
        SideKind::Single | SideKind::Mark => true,
        SideKind::Left => meets_one(join),
        SideKind::Full | SideKind::Semi | SideKind::Anti => false,
    }
}

/// Whether the join raises no error, its left side aside.
fn is_silent(join: &mut SideJoin) -> bool {
    (join.kind != SideKind::Single || meets_one(join)) && is_quiet(join)
}

/// How many rows a sort gives up to the end of its limit, if both numbers are known.
fn taken(limit: &Option<BoundExpr>, offset: &Option<BoundExpr>) -> Option<BoundExpr> {
    let number = |expr: &Option<BoundExpr>| match expr {
        Some(BoundExpr::Literal { value: Value::Int8(number @ 0..), .. }) => Some(*number),
        _ => None,
    };
    let (limit, offset) = (number(limit)?, number(offset)?);
    let expr_type = ExprType { pg_type: PgType::Int8, typmod: -1, collation: Collation::None };
    Some(BoundExpr::Literal { value: Value::Int8(limit.checked_add(offset)?), expr_type })
}

/// A sort that keeps some rows, on its way to where these are the rows of a table.
struct OnlyRows<'s> {
    keys: &'s [SortKey],
    limit: &'s Option<BoundExpr>,
    offset: &'s Option<BoundExpr>,
}

impl OnlyRows<'_> {
    /// Groups of which each has the rows that one row of the kept side meets, sorted by what that row says: the rows are chosen before
    /// anything is joined and grouped. PostgreSQL does less than all, too, where an index gives the order; so nothing may raise an error.
    /// False: they are not of that kind.
    fn place(&self, aggregate: &mut Aggregate) -> bool {
        let groups = aggregate.groups.clone();
        let mut keys = self.keys.to_vec();
        if keys.iter().any(|key| columns_of(&key.expr).iter().any(|column| *column >= groups.len()))
            || groups.is_empty()
            || !has_quiet_calls(aggregate)
        {
            return false;
        }
        keys.iter_mut().for_each(|key| substitute(&mut key.expr, &groups));
        let needed: BTreeSet<usize> = keys.iter().flat_map(|key| columns_of(&key.expr)).collect();
        let mut hanging = Vec::new();
        let kept = kept_side(&mut aggregate.input, &needed, &mut hanging);
        let is_told = |column: &usize| is_told(*column, kept, &hanging);
        let is_group = |column: usize| {
            let is_it = |group: &BoundExpr| matches!(group, BoundExpr::Column { index, expr_type } if *index == column && expr_type.pg_type != PgType::Bpchar);
            groups.iter().any(is_it)
        };
        if !groups.iter().all(|group| columns_of(group).iter().all(is_told)) || !tells_apart(kept, &is_group) {
            return false;
        }
        let input = Box::new(std::mem::replace(kept, PlanNode::OneRow));
        let mut sort =
            PlanNode::Sort { input, keys, limit: self.limit.clone(), offset: self.offset.clone(), with_ties: false };
        sort_first(&mut sort);
        *kept = sort;
        true
    }
}

/// The left side of the left joins below that gives all these columns; which ranges of columns are those of sides of which each of its
/// rows meets one at most, the same one wherever it is given.
fn kept_side<'n>(
    node: &'n mut PlanNode,
    needed: &BTreeSet<usize>,
    hanging: &mut Vec<std::ops::Range<usize>>,
) -> &'n mut PlanNode {
    let goes_on = match node {
        PlanNode::SideJoin(join) => {
            matches!(join.kind, SideKind::Left | SideKind::Mark)
                && needed.iter().all(|column| *column < join.left.width())
                && is_quiet(join)
        }
        _ => false,
    };
    if !goes_on {
        return node;
    }
    let PlanNode::SideJoin(join) = node else { unreachable!("nothing else goes on") };
    let width = join.left.width();
    let own = match join.kind {
        SideKind::Mark => Some(width..width + 1),
        _ => meets_one(join).then(|| width..width + join.right.width()),
    };
    let asked: BTreeSet<usize> = asks(join).flat_map(columns_of).filter(|column| *column < width).collect();
    let kept = kept_side(&mut join.left, needed, hanging);
    // What it meets hangs on the kept side's row only if that tells all that it is asked by.
    if asked.iter().all(|column| is_told(*column, kept, hanging)) {
        hanging.extend(own);
    }
    kept
}

/// What decides which rows of the right each row of the left meets, over the columns of both.
fn asks(join: &SideJoin) -> impl Iterator<Item = &BoundExpr> {
    let equalities = join.equalities.iter().chain(&join.test_key).map(|equality| &equality.left);
    equalities.chain(&join.filters).chain(&join.test)
}

/// Whether a row of the kept side has one value of that column, whatever it meets.
fn is_told(column: usize, kept: &PlanNode, hanging: &[std::ops::Range<usize>]) -> bool {
    column < kept.width() || hanging.iter().any(|side| side.contains(&column))
}

/// Whether computing the groups' rows, and the groups, raises no error, whatever the rows are; those of the input aside.
fn has_quiet_calls(aggregate: &Aggregate) -> bool {
    let of_calls =
        aggregate.calls.iter().flat_map(|call| call.filter.iter().chain(call.order.iter().map(|key| &key.expr)));
    aggregate.groups.iter().chain(&aggregate.arguments).chain(of_calls).all(cannot_raise)
        && aggregate.calls.iter().all(|call| {
            let argument = call.argument.map(|at| expr_type_of(&aggregate.arguments[at]).pg_type);
            call.function.cannot_raise(argument)
        })
}

/// Whether nothing of the join but its left side may raise an error.
fn is_quiet(join: &mut SideJoin) -> bool {
    let ends = join.equalities.iter().chain(&join.test_key).flat_map(|equality| [&equality.left, &equality.right]);
    ends.chain(&join.filters).chain(&join.test).all(cannot_raise)
        && !raises(&mut join.right, |node| match node {
            PlanNode::SideJoin(join) => join.kind != SideKind::Single,
            PlanNode::Aggregate(aggregate) => has_quiet_calls(aggregate),
            PlanNode::Window { calls, .. } => calls.iter().all(|call| is_harmless_window(call, &cannot_raise)),
            PlanNode::Sort { .. } => true,
            _ => false,
        })
}

/// Moves the limit into the sort below, through projections (which keep order and number of rows).
fn sort_only(node: &mut PlanNode, limit: &mut Option<BoundExpr>, offset: &mut Option<BoundExpr>) {
    match node {
        PlanNode::Project { input, .. } => sort_only(input, limit, offset),
        PlanNode::Sort { limit: own_limit @ None, offset: own_offset @ None, .. } => {
            *own_limit = limit.take();
            *own_offset = offset.take();
        }
        _ => {}
    }
}
