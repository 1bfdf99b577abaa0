//! What of an answer hangs on how PostgreSQL orders rows that no ORDER BY tells apart: the values of which columns, and which
//! rows there are. The audit compares the rest. Likewise what hangs on the last bits of floats that were added up in some order.

use crate::binder::relation::any_column;
use crate::binder::typed::{children, is_same};
use crate::binder::{
    AggregateCall, BoundExpr, BoundQuery, BoundRelation, JoinKind, MatchKind, ScalarKind, WindowCall, WindowKind,
};
use crate::catalog::functions::{AggregateFunction, WindowFunction};
use crate::statement::ast::FrameUnit;
use crate::types::PgType;

/// What PostgreSQL may choose, the rows that the outermost LIMIT keeps aside.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    Nothing,
    /// Values of columns. There are as many rows as there are, and the rest of each is what it is.
    Values(OpenColumns),
    /// Rows besides: they are among those of `among`, which no choice decides.
    Rows {
        open: OpenColumns,
        among: Box<BoundQuery>,
    },
    /// Anything: what is chosen is computed with.
    Anything,
}

/// Output columns of which PostgreSQL chooses the values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenColumns {
    pub columns: Vec<usize>,
    /// Those among them whose values, all taken together, are what they are: which row has which is open (row_number, ntile).
    pub permuted: Vec<usize>,
}

/// Of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    /// By output column: its values are open.
    columns: Vec<bool>,
    /// Which rows there are is, or how many.
    rows: bool,
}

/// What of an answer hangs on the order in which floats were added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summed {
    /// Output columns that are such a sum, or computed from one.
    pub columns: Vec<usize>,
    /// Which rows there are.
    pub rows: bool,
}

/// Where PostgreSQL's freedom begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Rows that no ORDER BY tells apart.
    Ties,
    /// Floats that are added up.
    Sums,
}

/// What is known of the rest of the statement.
struct Context {
    source: Source,
    commons: Vec<Open>,
    scalars: Vec<bool>,
    /// Numbers of parameters from here on are scalars.
    parameters: usize,
}

impl BoundQuery {
    /// What PostgreSQL may choose in the answer of this query, which has no outermost LIMIT (any more) that leaves rows open.
    pub(crate) fn choice(&self) -> Choice {
        let context = Context::of(self, Source::Ties);
        let open = context.open(&self.root);
        let columns: Vec<usize> = (0..open.columns.len()).filter(|at| open.columns[*at]).collect();
        if !open.rows && columns.is_empty() {
            return Choice::Nothing;
        }
        if !open.rows {
            let is_permuted = |at: &usize| is_permuted(&self.root, *at, &context);
            let permuted = columns.iter().copied().filter(is_permuted).collect();
            return Choice::Values(OpenColumns { columns, permuted });
        }
        match context.among(&self.root, &self.commons) {
            Some(root) => Choice::Rows {
                open: OpenColumns { columns, permuted: Vec::new() },
                among: Box::new(Self { root, ..self.clone() }),
            },
            None => Choice::Anything,
        }
    }

    /// What of the answer of this query is the same only up to the last bits of sums of floats.
    pub(crate) fn summed(&self) -> Summed {
        let open = Context::of(self, Source::Sums).open(&self.root);
        Summed { columns: (0..open.columns.len()).filter(|at| open.columns[*at]).collect(), rows: open.rows }
    }
}

impl Context {
    /// Scalars may read commons and commons scalars: until nothing more is open.
    fn of(query: &BoundQuery, source: Source) -> Self {
        let closed = |relation: &BoundRelation| Open { columns: vec![false; relation.width()], rows: false };
        let mut context = Self {
            source,
            commons: query.commons.iter().map(closed).collect(),
            scalars: vec![false; query.scalars.len()],
            parameters: query.parameters.len(),
        };
        loop {
            let commons: Vec<Open> = query.commons.iter().map(|common| context.open(common)).collect();
            let is_open = |scalar: &super::ScalarQuery| {
                let open = context.open(&scalar.relation);
                match scalar.kind {
                    ScalarKind::Value => open.rows || open.columns.first() == Some(&true),
                    ScalarKind::Exists => open.rows,
                }
            };
            let scalars: Vec<bool> = query.scalars.iter().map(is_open).collect();
            if commons == context.commons && scalars == context.scalars {
                return context;
            }
            (context.commons, context.scalars) = (commons, scalars);
        }
    }

    /// Whether the value of an expression over these columns is open.
    fn is_open(&self, expr: &BoundExpr, columns: &[bool]) -> bool {
        let own = match expr {
            BoundExpr::Column { index, .. } => columns.get(*index).copied().unwrap_or(false),
            BoundExpr::Parameter { index, .. } => {
                index.checked_sub(self.parameters).and_then(|scalar| self.scalars.get(scalar)) == Some(&true)
            }
            _ => false,
        };
        own || children(expr).into_iter().any(|child| self.is_open(child, columns))
    }

    fn any_open<'e>(&self, expressions: impl IntoIterator<Item = &'e BoundExpr>, columns: &[bool]) -> bool {
        expressions.into_iter().any(|expr| self.is_open(expr, columns))
    }

    fn open(&self, relation: &BoundRelation) -> Open {
        match relation {
            BoundRelation::OneRow | BoundRelation::Scan { .. } | BoundRelation::Working { .. } => {
                Open { columns: vec![false; relation.width()], rows: false }
            }
            BoundRelation::Values { rows, columns } => {
                let column = |at: usize| self.any_open(rows.iter().filter_map(|row| row.get(at)), &[]);
                Open { columns: (0..columns.len()).map(column).collect(), rows: false }
            }
            BoundRelation::Series { bounds, .. } => {
                let is_open = self.any_open(bounds, &[]);
                Open { columns: vec![is_open], rows: is_open }
            }
            BoundRelation::Common { index, .. } => self.commons[*index].clone(),
            BoundRelation::Filter { input, predicate } => {
                let Open { columns, rows } = self.open(input);
                let rows = rows || self.is_open(predicate, &columns);
                Open { columns, rows }
            }
            BoundRelation::Project { input, expressions } => {
                let input = self.open(input);
                let columns = expressions.iter().map(|expr| self.is_open(expr, &input.columns)).collect();
                Open { columns, rows: input.rows }
            }
            BoundRelation::Join { left, right, condition, .. }
            | BoundRelation::Dependent { left, right, condition, .. } => {
                let (left, right) = (self.open(left), self.open(right));
                let columns = [left.columns, right.columns].concat();
                let rows = left.rows || right.rows || self.any_open(condition, &columns);
                Open { columns, rows }
            }
            BoundRelation::Match { kind, left, right, condition, test } => {
                let (left, right) = (self.open(left), self.open(right));
                let both = [left.columns.clone(), right.columns].concat();
                let is_open = right.rows || self.any_open(condition.iter().chain(test), &both);
                match kind {
                    MatchKind::Semi | MatchKind::Anti => Open { columns: left.columns, rows: left.rows || is_open },
                    MatchKind::Mark => {
                        let columns = [left.columns, vec![is_open]].concat();
                        Open { columns, rows: left.rows }
                    }
                    MatchKind::Single => {
                        let of_right = both[left.columns.len()..].iter().map(|column| *column || is_open);
                        Open { columns: left.columns.iter().copied().chain(of_right).collect(), rows: left.rows }
                    }
                }
            }
            BoundRelation::Aggregate { input, groups, aggregates } => {
                let input = self.open(input);
                let is_open = input.rows || self.any_open(groups, &input.columns);
                let calls = aggregates.iter().map(|call| is_open || self.is_aggregate_open(call, &input.columns));
                let columns = groups.iter().map(|_| is_open).chain(calls).collect();
                // What is counted or added up of chosen rows is as open as they are.
                Open { columns, rows: is_open }
            }
            BoundRelation::Distinct { input, .. } => {
                let Open { columns, rows } = self.open(input);
                let rows = rows || columns.contains(&true);
                Open { columns, rows }
            }
            BoundRelation::DistinctOn { input, keys } => {
                let Open { columns, rows } = self.open(input);
                let rows = rows || self.any_open(keys, &columns);
                let is_key =
                    |at: usize| keys.iter().any(|key| matches!(key, BoundExpr::Column { index, .. } if *index == at));
                let is_chosen = self.source == Source::Ties || self.is_sorted_by_open(input, &columns);
                let columns = (0..columns.len()).map(|at| columns[at] || (is_chosen && !is_key(at))).collect();
                Open { columns, rows }
            }
            BoundRelation::Append { inputs, columns } => {
                let inputs: Vec<Open> = inputs.iter().map(|input| self.open(input)).collect();
                let column = |at: usize| inputs.iter().any(|input| input.columns[at]);
                Open { columns: (0..columns.len()).map(column).collect(), rows: inputs.iter().any(|input| input.rows) }
            }
            BoundRelation::SetOperation { left, right, .. } => {
                let (left, right) = (self.open(left), self.open(right));
                let columns: Vec<bool> = left.columns.iter().zip(&right.columns).map(|(a, b)| *a || *b).collect();
                let rows = left.rows || right.rows || columns.contains(&true);
                Open { columns, rows }
            }
            BoundRelation::Window { input, calls } => {
                let Open { mut columns, rows } = self.open(input);
                let of_input = columns.clone();
                columns.extend(calls.iter().map(|call| rows || self.is_window_open(call, &of_input)));
                Open { columns, rows }
            }
            BoundRelation::Expand { input, functions, is_numbered, .. } => {
                let Open { mut columns, rows } = self.open(input);
                let is_open = self.any_open(functions.iter().flat_map(|call| &call.arguments), &columns);
                let added = functions.iter().map(|call| call.columns.len()).sum::<usize>() + usize::from(*is_numbered);
                columns.extend(std::iter::repeat_n(is_open, added));
                Open { columns, rows: rows || is_open }
            }
            BoundRelation::Recursive { base, step, columns, .. } => {
                let sides = [self.open(base), self.open(step)];
                let is_open = sides.iter().any(|side| side.rows || side.columns.contains(&true));
                Open { columns: vec![is_open; columns.len()], rows: is_open }
            }
            BoundRelation::Sort { input, .. } => self.open(input),
            // Ties come whole, unless an offset begins among some.
            BoundRelation::Limit { input, limit, offset: None, with_ties: true } => {
                let Open { columns, rows } = self.open(input);
                let rows = rows || self.any_open(limit, &columns) || self.is_sorted_by_open(input, &columns);
                Open { columns, rows }
            }
            // A fence chooses none.
            BoundRelation::Limit { input, .. } if self.source == Source::Ties => {
                let open = self.open(input);
                Open { rows: open.rows || relation.within_fence().is_none(), ..open }
            }
            BoundRelation::Limit { input, limit, offset, .. } => {
                let Open { columns, rows } = self.open(input);
                let is_open = self.any_open(limit.iter().chain(offset), &columns);
                Open { rows: rows || is_open || self.is_sorted_by_open(input, &columns), columns }
            }
        }
    }

    /// Whether what is open decides the order of its rows.
    fn is_sorted_by_open(&self, relation: &BoundRelation, columns: &[bool]) -> bool {
        match relation {
            BoundRelation::Sort { keys, .. } => self.any_open(keys.iter().map(|key| &key.expr), columns),
            // Of the order below the columns say nothing more: any that is open may have decided it.
            BoundRelation::Project { input, .. } => self.is_sorted_by_open(input, &self.open(input).columns),
            _ => false,
        }
    }

    /// The order of equal rows shows in what is put together, unless it is put in the order of itself.
    fn is_aggregate_open(&self, call: &AggregateCall, columns: &[bool]) -> bool {
        let mut expressions = call.argument.iter().chain(&call.extra).chain(&call.filter);
        let computed = expressions.any(|expr| self.is_open(expr, columns));
        let by_open = call.order.iter().any(|key| self.is_open(&key.expr, columns));
        let is_in_own_order = || {
            let by_itself = |argument: &BoundExpr| call.order.iter().any(|key| is_same(&key.expr, argument));
            call.argument.as_ref().is_some_and(by_itself)
                && call.extra.iter().all(|extra| !any_column(extra, &|_| true))
        };
        computed
            || by_open
            || match self.source {
                Source::Ties => takes_order(call.function) && !is_in_own_order(),
                Source::Sums => adds_floats(call.function, call.argument.as_ref()),
            }
    }

    fn is_window_open(&self, call: &WindowCall, columns: &[bool]) -> bool {
        let expressions = call.arguments.iter().chain(&call.filter).chain(&call.partition);
        let mut all = expressions.chain(call.order.iter().map(|key| &key.expr));
        let is_source = match (self.source, call.function) {
            (Source::Ties, _) => hangs_on_ties(call),
            (Source::Sums, WindowKind::Aggregate(function)) => adds_floats(function, call.arguments.first()),
            (Source::Sums, WindowKind::Function(_)) => false,
        };
        is_source || all.any(|expr| self.is_open(expr, columns))
    }

    /// A relation whose rows no choice decides, all rows of `relation` among them. None: it is not known here.
    fn among(&self, relation: &BoundRelation, commons: &[BoundRelation]) -> Option<BoundRelation> {
        let open = self.open(relation);
        if !open.rows {
            return Some(relation.clone());
        }
        let below = |input: &BoundRelation| self.among(input, commons).map(Box::new);
        Some(match relation {
            BoundRelation::Project { input, expressions } => {
                BoundRelation::Project { input: below(input)?, expressions: expressions.clone() }
            }
            BoundRelation::Filter { input, predicate } => {
                let is_open = self.is_open(predicate, &self.open(input).columns);
                match below(input)? {
                    input if is_open => *input,
                    input => BoundRelation::Filter { input, predicate: predicate.clone() },
                }
            }
            BoundRelation::Join { kind: kind @ (JoinKind::Inner | JoinKind::Cross), left, right, condition } => {
                let columns = [self.open(left).columns, self.open(right).columns].concat();
                let kept = condition.clone().filter(|condition| !self.is_open(condition, &columns));
                let kind = if kept.is_some() { *kind } else { JoinKind::Cross };
                BoundRelation::Join { kind, left: below(left)?, right: below(right)?, condition: kept }
            }
            BoundRelation::Append { inputs, columns } => BoundRelation::Append {
                inputs: inputs.iter().map(|input| self.among(input, commons)).collect::<Option<_>>()?,
                columns: columns.clone(),
            },
            BoundRelation::Common { index, .. } => self.among(&commons[*index], commons)?,
            BoundRelation::Sort { input, .. }
            | BoundRelation::Limit { input, .. }
            | BoundRelation::Distinct { input, .. }
            | BoundRelation::DistinctOn { input, .. } => self.among(input, commons)?,
            // Its values are not compared; it only holds their places.
            BoundRelation::Window { input, calls } => {
                BoundRelation::Window { input: below(input)?, calls: calls.clone() }
            }
            _ => return None,
        })
    }
}

/// Whether the order of its rows shows.
pub(super) fn takes_order(function: AggregateFunction) -> bool {
    matches!(function, AggregateFunction::StringAgg | AggregateFunction::ArrayAgg)
}

/// Whether the last bits of the result are those of the order in which its rows were taken in.
fn adds_floats(function: AggregateFunction, argument: Option<&BoundExpr>) -> bool {
    match function {
        AggregateFunction::Sum | AggregateFunction::Avg | AggregateFunction::Spread(_) => {
            argument.is_some_and(|argument| matches!(argument.expr_type().pg_type, PgType::Float4 | PgType::Float8))
        }
        AggregateFunction::Regression(_) => true,
        _ => false,
    }
}

/// Whether the order of a window's peers shows.
fn hangs_on_ties(call: &WindowCall) -> bool {
    match call.function {
        WindowKind::Function(WindowFunction::Rank | WindowFunction::DenseRank) => false,
        WindowKind::Function(WindowFunction::PercentRank | WindowFunction::CumeDist) => false,
        WindowKind::Function(_) => true,
        WindowKind::Aggregate(function) => call.frame.unit == FrameUnit::Rows || takes_order(function),
    }
}

/// Whether an output column is a window function's that numbers rows, handed up as it is.
fn is_permuted(relation: &BoundRelation, at: usize, context: &Context) -> bool {
    match relation {
        BoundRelation::Project { input, expressions } => match &expressions[at] {
            BoundExpr::Column { index, .. } => is_permuted(input, *index, context),
            _ => false,
        },
        BoundRelation::Sort { input, .. } => is_permuted(input, at, context),
        BoundRelation::Window { input, calls } => {
            let of_input = context.open(input).columns;
            let Some(call) = at.checked_sub(of_input.len()).and_then(|call| calls.get(call)) else { return false };
            let numbers =
                matches!(call.function, WindowKind::Function(WindowFunction::RowNumber | WindowFunction::Ntile));
            let mut by = call.partition.iter().chain(&call.arguments);
            numbers && !by.any(|expr| context.is_open(expr, &of_input))
        }
        _ => false,
    }
}
