//! From a [`BoundQuery`] to a [`Plan`]: the same rows, computed with less.
//!
//! Rewrites (one per file in [`rules`]): text of learnt collations ranked, literals folded, predicates pushed to the rows they test, ORs taken apart, projections merged,
//! unread columns dropped, hashable join equalities found, limits moved into sorts. What depends on the data (join
//! order, which aggregation, index or scan) is decided by the executor, so a plan is valid for every snapshot of its catalog.

mod cost;
pub mod explain;
pub mod expression;
pub mod node;
mod rules;
pub mod upkeep;

use std::sync::Arc;

use crate::binder::{
    AggregateCall, BoundExpr, BoundQuery, BoundRelation, ExprType, JoinKind, MatchKind, OutputColumn, ScalarKind,
    TableUse,
};
use crate::catalog::functions::{EvalContext, EvalError};
use crate::catalog::{Collation, RelationId};
use crate::planner::expression::is_same;
use crate::planner::node::{Aggregate, Call, Expand, Join, PlanNode, Recursive, Scan, SideJoin, SideKind};
use crate::planner::rules::constants::Constants;
pub(crate) use crate::planner::rules::constants::regular_expression;
use crate::planner::rules::disjunctions::split;
pub(crate) use crate::planner::rules::prune::may_raise_at;
use crate::planner::rules::raises;
pub(crate) use crate::planner::rules::unique::{deciding, meets_one, source_of};
use crate::reason::UpstreamReason;
use crate::types::{PgType, Value};

/// What the executor runs. Read-only: shared by all sessions that run the statement.
#[derive(Clone, Debug)]
pub struct Plan {
    pub root: PlanNode,
    /// What several parts read, computed when it is first read.
    pub commons: Vec<PlanNode>,
    /// What is made of parameters alone and may raise an error: computed first, whether a row needs it or not.
    pub constants: Vec<BoundExpr>,
    /// What conditions have that is the same for all rows and may raise an error: computed behind the scalars, whether there is a row or not.
    pub gates: Vec<BoundExpr>,
    /// What must not be NULL, or the statement means something else: see [`BoundQuery::required`].
    pub required: Vec<BoundExpr>,
    /// Values computed before anything else, in order; parameters behind the statement's own.
    pub scalars: Vec<Scalar>,
    pub output: Vec<OutputColumn>,
    /// Type of each `$n`.
    pub parameters: Vec<PgType>,
    pub tables: Vec<TableUse>,
    pub views: Vec<TableUse>,
    pub uses_time: bool,
    pub uses_statement_time: bool,
    pub folds_settings: bool,
    /// See [`BoundQuery::custom_settings`].
    pub custom_settings: Vec<Arc<str>>,
    /// The outermost sort's first rows, up to where its limit ends, and all that are equal to the last of them by its keys.
    pub with_ties: bool,
}

/// A subquery that is one value.
#[derive(Clone, Debug)]
pub struct Scalar {
    pub node: PlanNode,
    pub kind: ScalarKind,
    pub pg_type: PgType,
}

/// A name, and a short list.
const NAME_BYTES: usize = 64;

impl Plan {
    /// Everything that the answer depends on: first the tables, then the views.
    pub fn relations(&self) -> Vec<RelationId> {
        self.tables.iter().chain(&self.views).map(|table| table.table).collect()
    }

    /// Where operators stand.
    pub fn trees(&self) -> impl Iterator<Item = &PlanNode> {
        [&self.root].into_iter().chain(&self.commons).chain(self.scalars.iter().map(|scalar| &scalar.node))
    }

    /// What the plan takes, about. Changes nothing: the walk over expressions is one for changes.
    pub(crate) fn bytes(&mut self) -> usize {
        let scalars = self.scalars.iter_mut().map(|scalar| &mut scalar.node);
        let trees = [&mut self.root].into_iter().chain(&mut self.commons).chain(scalars);
        let operators: usize = trees.map(rules::bytes_of_node).sum();
        let constants: usize =
            self.constants.iter().chain(&self.gates).chain(&self.required).map(expression::bytes_of).sum();
        let output = self.output.len() * (size_of::<OutputColumn>() + NAME_BYTES);
        operators + constants + output + (self.tables.len() + self.views.len()) * (size_of::<TableUse>() + NAME_BYTES)
    }

    /// The sort that the outermost limit is of: what the result is made from, beside rows that each of its rows meets.
    pub fn outermost_sort(&self) -> Option<&PlanNode> {
        let mut node = &self.root;
        loop {
            node = match node {
                PlanNode::Sort { limit: Some(_), .. } => return Some(node),
                PlanNode::Project { input, .. } | PlanNode::Sort { input, offset: None, .. } => input,
                PlanNode::Aggregate(aggregate) => &aggregate.input,
                PlanNode::SideJoin(join) if matches!(join.kind, SideKind::Left | SideKind::Mark | SideKind::Single) => {
                    &join.left
                }
                _ => return None,
            };
        }
    }

    /// Every reading of a table, wherever in the statement.
    pub fn scans(&self) -> Vec<&Scan> {
        fn collect<'p>(node: &'p PlanNode, scans: &mut Vec<&'p Scan>) {
            if let PlanNode::Scan(scan) = node {
                scans.push(scan);
            }
            node.for_each_input(&mut |input| collect(input, scans));
        }
        let mut scans = Vec::new();
        self.trees().for_each(|node| collect(node, &mut scans));
        scans
    }
}

/// Whether something of what computes a plan's rows may raise an error, for whatever rows there are.
pub fn may_raise(plan: &Plan) -> bool {
    raises(&mut plan.root.clone(), |node| match node {
        PlanNode::Sort { .. } => true,
        // More than one match is an error.
        PlanNode::SideJoin(join) => join.kind != SideKind::Single,
        _ => false,
    })
}

/// What the planner asks of the executor, which knows plans but is not known here.
#[derive(Clone, Copy)]
pub struct Abilities {
    /// The value of an expression without columns.
    pub constant: fn(&BoundExpr, &[Value], &EvalContext<'_>) -> Result<Value, EvalError>,
    /// Whether a node's aggregates, groups and order can be run.
    pub check: fn(&PlanNode) -> Result<(), EvalError>,
}

/// Fails if a constant expression of the query raises an error, or an aggregate, grouping or order is not known here.
pub fn plan(query: BoundQuery, abilities: &Abilities) -> Result<Plan, UpstreamReason> {
    // At the top (`LIMIT ALL`) nothing could pass a fence.
    let mut root = match query.root.within_fence() {
        Some(within) => translate(within.clone())?,
        None => translate(query.root)?,
    };
    let mut commons = query.commons.into_iter().map(translate).collect::<Result<Vec<_>, _>>()?;
    let mut scalars = Vec::with_capacity(query.scalars.len());
    for scalar in query.scalars {
        let root = translate(scalar.relation)?;
        // Whether there is any row, and whether there is a second one, shows early.
        let limit = match scalar.kind {
            ScalarKind::Exists => 1,
            ScalarKind::Value => 2,
        };
        let node = PlanNode::Limit { input: Box::new(root), limit: Some(count(limit)), offset: None };
        scalars.push(Scalar { node, kind: scalar.kind, pg_type: scalar.pg_type });
    }
    all(&mut root, &mut commons, &mut scalars).try_for_each(|node| rules::unique::place_keys(node, &query.keys))?;
    all(&mut root, &mut commons, &mut scalars).try_for_each(rules::collate::collate)?;
    all(&mut root, &mut commons, &mut scalars).try_for_each(rules::bounds::convert)?;
    let mut constants = Constants::new(query.parameters.len(), abilities);
    all(&mut root, &mut commons, &mut scalars).try_for_each(|node| constants.gather(node).map(drop))?;
    all(&mut root, &mut commons, &mut scalars).try_for_each(|node| simplify(node, abilities))?;
    // Those that the sides of a UNION ALL have by now.
    all(&mut root, &mut commons, &mut scalars).try_for_each(|node| constants.gather_sides(node))?;
    prune(&mut root, &mut commons, &mut scalars);
    all(&mut root, &mut commons, &mut scalars).try_for_each(|node| finish(node, query.parameters.len(), abilities))?;
    Ok(Plan {
        root,
        commons,
        constants: constants.found,
        gates: constants.gates,
        required: query.required,
        scalars,
        output: query.output,
        parameters: query.parameters,
        tables: query.tables,
        views: query.views,
        uses_time: query.uses_time,
        uses_statement_time: query.uses_statement_time,
        folds_settings: query.folds_settings,
        custom_settings: query.custom_settings,
        with_ties: false,
    })
}

/// The statement's trees.
fn all<'n>(
    root: &'n mut PlanNode,
    commons: &'n mut [PlanNode],
    scalars: &'n mut [Scalar],
) -> impl Iterator<Item = &'n mut PlanNode> {
    std::iter::once(root).chain(commons).chain(scalars.iter_mut().map(|scalar| &mut scalar.node))
}

/// A row count, as a literal.
fn count(rows: i64) -> BoundExpr {
    let expr_type = ExprType { pg_type: PgType::Int8, typmod: -1, collation: Collation::None };
    BoundExpr::Literal { value: Value::Int8(rows), expr_type }
}

fn simplify(node: &mut PlanNode, abilities: &Abilities) -> Result<(), UpstreamReason> {
    rules::fold::fold(node, abilities)?;
    rules::disjunctions::canonicalize(node)?;
    let mut root = std::mem::replace(node, PlanNode::OneRow);
    root = rules::pushdown::push(root, Vec::new());
    root = rules::merge::merge(root);
    // Merged joins see each other's inputs only now.
    *node = rules::pushdown::push(root, Vec::new());
    // What was a subquery's constant stands in expressions by now, as PostgreSQL has it before it folds (pull_up_subqueries).
    rules::fold::fold(node, abilities)?;
    rules::disjunctions::restrict_inputs(node)
}

/// Common rows keep the columns that any reader wants; readers come after what they read.
fn prune(root: &mut PlanNode, commons: &mut [PlanNode], scalars: &mut [Scalar]) {
    rules::prune::prune(root);
    scalars.iter_mut().for_each(|scalar| rules::prune::prune(&mut scalar.node));
    for index in (0..commons.len()).rev() {
        let (before, from) = commons.split_at_mut(index);
        let Some((common, after)) = from.split_first_mut() else { continue };
        let mut readers: Vec<&mut PlanNode> = std::iter::once(&mut *root).chain(after).collect();
        readers.extend(scalars.iter_mut().map(|scalar| &mut scalar.node));
        rules::prune::prune_common(index, common, &mut readers);
        debug_assert!(before.len() == index, "those before it are read by it");
    }
}

fn finish(node: &mut PlanNode, own: usize, abilities: &Abilities) -> Result<(), UpstreamReason> {
    rules::joins::find_equalities(node)?;
    rules::order::order(node)?;
    rules::scans::prepare(node, own)?;
    check(node, abilities)
}

fn check(node: &mut PlanNode, abilities: &Abilities) -> Result<(), UpstreamReason> {
    (abilities.check)(node).map_err(|error| UpstreamReason::Unsupported(error.to_string().into()))?;
    rules::for_each_input_mut(node, &mut |input| check(input, abilities))
}

fn translate(relation: BoundRelation) -> Result<PlanNode, UpstreamReason> {
    let types = |columns: &[ExprType]| columns.iter().map(|column| column.pg_type).collect::<Vec<_>>();
    Ok(match relation {
        BoundRelation::OneRow => PlanNode::OneRow,
        BoundRelation::Scan { table, columns } => PlanNode::Scan(Scan::new(table, columns)),
        BoundRelation::Filter { input, predicate } => {
            PlanNode::Filter { input: Box::new(translate(*input)?), predicates: split([predicate]) }
        }
        BoundRelation::Project { input, expressions } => {
            PlanNode::Project { input: Box::new(translate(*input)?), expressions }
        }
        BoundRelation::Join { kind, left, right, condition } => {
            let (left, right) = (translate(*left)?, translate(*right)?);
            let filters = split(condition);
            let is_per_row = matches!(kind, JoinKind::PerRow | JoinKind::Lateral);
            let is_lateral = kind == JoinKind::Lateral;
            let kind = match kind {
                JoinKind::Inner | JoinKind::Cross => {
                    return Ok(PlanNode::Join(Join::new(vec![left, right], filters)));
                }
                JoinKind::Left | JoinKind::PerRow | JoinKind::Lateral => SideKind::Left,
                JoinKind::Full => SideKind::Full,
            };
            SideJoin { is_per_row, is_lateral, ..side_join(kind, left, right, filters, None) }.into()
        }
        BoundRelation::Dependent { .. } => {
            return Err(UpstreamReason::Unsupported("JOIN LATERAL in this place".into()));
        }
        BoundRelation::Match { kind, left, right, condition, test } => {
            let kind = match kind {
                MatchKind::Semi => SideKind::Semi,
                MatchKind::Anti => SideKind::Anti,
                MatchKind::Mark => SideKind::Mark,
                MatchKind::Single => SideKind::Single,
            };
            side_join(kind, translate(*left)?, translate(*right)?, split(condition), test).into()
        }
        BoundRelation::Aggregate { input, groups, aggregates } => {
            let input = Box::new(translate(*input)?);
            let mut arguments = Vec::new();
            let unseen = |call: &AggregateCall| {
                let argument = call.argument.as_ref().map(|argument| argument.expr_type().pg_type);
                !call.function.depends_on_order(argument)
            };
            let mut aggregates = aggregates;
            for call in aggregates.iter_mut().filter(|call| unseen(call)) {
                // But their errors.
                call.order.retain(|key| rules::prune::may_raise_over(&input, &key.expr));
            }
            let calls = aggregates.into_iter().map(|call| translate_call(call, &mut arguments)).collect();
            PlanNode::Aggregate(Aggregate { input, groups, calls, arguments })
        }
        BoundRelation::Distinct { input, columns } => {
            let groups = columns.iter().enumerate();
            let groups = groups.map(|(index, expr_type)| BoundExpr::Column { index, expr_type: *expr_type }).collect();
            let input = Box::new(translate(*input)?);
            PlanNode::Aggregate(Aggregate { input, groups, calls: Vec::new(), arguments: Vec::new() })
        }
        BoundRelation::DistinctOn { input, keys } => PlanNode::DistinctOn { input: Box::new(translate(*input)?), keys },
        BoundRelation::Append { inputs, columns } => {
            let inputs: Vec<PlanNode> = inputs.into_iter().map(translate).collect::<Result<_, _>>()?;
            let types = types(&columns);
            let is_converted = rules::pushdown::converted(&inputs, &types);
            PlanNode::Append { inputs, types, is_converted }
        }
        BoundRelation::SetOperation { operation, is_all, left, right, columns } => PlanNode::SetOperation {
            operation,
            is_all,
            left: Box::new(translate(*left)?),
            right: Box::new(translate(*right)?),
            types: types(&columns),
        },
        BoundRelation::Values { rows, columns } => PlanNode::Values { rows, types: types(&columns) },
        BoundRelation::Window { input, calls } => PlanNode::Window { input: Box::new(translate(*input)?), calls },
        BoundRelation::Common { index, width } => PlanNode::Common { index, columns: (0..width).collect() },
        BoundRelation::Series { bounds, expr_type } => PlanNode::Series { bounds, pg_type: expr_type.pg_type },
        BoundRelation::Expand { input, functions, is_numbered, keeps_empty } => {
            let input = Box::new(translate(*input)?);
            PlanNode::Expand(Expand { input, functions, is_numbered, keeps_empty })
        }
        BoundRelation::Recursive { base, step, is_all, number, columns } => {
            let (base, step) = (Box::new(translate(*base)?), Box::new(translate(*step)?));
            PlanNode::Recursive(Recursive { base, step, is_all, number, types: types(&columns) })
        }
        BoundRelation::Working { number, columns } => PlanNode::Working { number, types: types(&columns) },
        BoundRelation::Sort { input, keys } => {
            PlanNode::Sort { input: Box::new(translate(*input)?), keys, limit: None, offset: None, with_ties: false }
        }
        BoundRelation::Limit { input, limit, offset, with_ties: true } => match *input {
            BoundRelation::Sort { input, keys } => {
                PlanNode::Sort { input: Box::new(translate(*input)?), keys, limit, offset, with_ties: true }
            }
            _ => return Err(UpstreamReason::Unsupported("FETCH FIRST WITH TIES in this place".into())),
        },
        BoundRelation::Limit { input, limit, offset, with_ties: false } => {
            PlanNode::Limit { input: Box::new(translate(*input)?), limit, offset }
        }
    })
}

fn side_join(
    kind: SideKind,
    left: PlanNode,
    right: PlanNode,
    filters: Vec<BoundExpr>,
    test: Option<BoundExpr>,
) -> SideJoin {
    let (left, right) = (Box::new(left), Box::new(right));
    SideJoin {
        kind,
        left,
        right,
        equalities: Vec::new(),
        filters,
        test,
        test_key: None,
        is_per_row: kind == SideKind::Single,
        is_lateral: false,
    }
}

fn translate_call(call: AggregateCall, arguments: &mut Vec<BoundExpr>) -> Call {
    let mut place = |expr: BoundExpr| {
        // The collation decides an order, and the type what an array is of.
        let is_known = |known: &BoundExpr| is_same(known, &expr) && known.expr_type() == expr.expr_type();
        let known = arguments.iter().position(is_known);
        known.unwrap_or_else(|| {
            arguments.push(expr);
            arguments.len() - 1
        })
    };
    Call {
        function: call.function,
        argument: call.argument.map(&mut place),
        extra: call.extra.into_iter().map(&mut place).collect(),
        is_distinct: call.is_distinct,
        order: call.order,
        filter: call.filter,
        result: call.expr_type.pg_type,
    }
}

/// The query's own operators, no rule applied: what every rule must agree with.
#[cfg(test)]
pub(crate) fn plan_as_written(query: BoundQuery) -> Result<Plan, UpstreamReason> {
    let root = translate(query.root)?;
    let commons = query.commons.into_iter().map(translate).collect::<Result<_, _>>()?;
    let BoundQuery {
        output,
        parameters,
        tables,
        views,
        uses_time,
        uses_statement_time,
        folds_settings,
        custom_settings,
        required,
        ..
    } = query;
    Ok(Plan {
        root,
        commons,
        constants: Vec::new(),
        gates: Vec::new(),
        required,
        scalars: Vec::new(),
        output,
        parameters,
        tables,
        views,
        uses_time,
        uses_statement_time,
        folds_settings,
        custom_settings,
        with_ties: false,
    })
}

#[cfg(test)]
mod tests;
