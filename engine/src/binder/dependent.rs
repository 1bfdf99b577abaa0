//! The general way to make a subquery a join with the rows around it (Neumann and Kemper, "Unnesting Arbitrary Queries",
//! 2015), for those whose conditions cannot be moved up: their tables are joined with the *domain*, the different values that
//! the outer rows have for the subquery, and all that is done to their rows is done for each of these values.
//!
//! A domain costs a pass over the outer rows, and its pairs with the inner rows are what PostgreSQL looks at, too, without an
//! index. So it comes second, after [`super::decorrelate`].

use crate::binder::choice::takes_order;
use crate::binder::coerce::check_groupable;
use crate::binder::decorrelate::{INT8, counts, first_of_each, is_count, mentions, placeholder, reordered, row_number};
use crate::binder::harmless::are_sure;
use crate::binder::query::RowLimits;
use crate::binder::relation::{AGGREGATE_BASE, any_column, as_outer, is_own_column, map_columns};
use crate::binder::subquery::{all_of, conjuncts};
use crate::binder::typed::{CollationStrength, Typed, children};
use crate::binder::{
    AggregateCall, Binder, Bound, BoundExpr, BoundRelation, ExprType, JoinKind, MatchKind, RowsCall, SortKey,
    WindowCall, unsupported,
};
use crate::catalog::Collation;
use crate::types::{PgType, Value};

/// What a relation that is written out several times counts for, so that subqueries within subqueries end early.
const NODES_OF_COPY: usize = 5_000;

/// What a subquery wants to know of the rows of a level: some of their columns, each combination of values once; or, where
/// these cannot be told apart here, for every row, with a number that can.
struct Domain {
    relation: BoundRelation,
    level: usize,
    /// The level's columns, in the relation's order.
    columns: Vec<(usize, ExprType)>,
    /// The last column is the row's number, and the only one that rows are told apart by.
    is_numbered: bool,
}

/// A subquery that depends on nothing any more.
pub(super) struct Independent {
    /// The rows that it is asked for.
    pub(super) left: BoundRelation,
    /// The subquery's columns, then those of the domain.
    pub(super) right: BoundRelation,
    /// By which a row of the left finds its rows: over left's columns, then right's.
    pub(super) ties: Vec<BoundExpr>,
}

impl Domain {
    fn width(&self) -> usize {
        self.columns.len()
    }

    fn types(&self) -> impl Iterator<Item = ExprType> {
        self.columns.iter().map(|(_, expr_type)| *expr_type)
    }

    /// The types of the columns that its rows are told apart by.
    fn key_types(&self) -> impl Iterator<Item = ExprType> {
        self.types().skip(if self.is_numbered { self.width() - 1 } else { 0 })
    }

    /// These columns, where the domain's begin at `base`.
    fn keys_at(&self, base: usize) -> impl Iterator<Item = BoundExpr> {
        self.at(base).skip(if self.is_numbered { self.width() - 1 } else { 0 })
    }

    /// Its columns where they begin at `base`.
    fn at(&self, base: usize) -> impl Iterator<Item = BoundExpr> {
        self.types().enumerate().map(move |(at, expr_type)| BoundExpr::Column { index: base + at, expr_type })
    }

    /// An expression over rows that have the domain's columns from `base` on.
    fn put(&self, expr: &mut BoundExpr, base: usize) {
        map_columns(expr, &|index| match as_outer(index) {
            Some((of, column)) if of == self.level => {
                self.columns.iter().position(|(known, _)| *known == column).map_or(index, |at| base + at)
            }
            _ => index,
        });
    }

    /// Likewise, of what was written over `left_width` columns and others behind them, which are `moved` places further now.
    fn put_between(&self, expr: &mut BoundExpr, left_width: usize, base: usize, moved: usize) {
        map_columns(expr, &|index| if is_own_column(index) && index >= left_width { index + moved } else { index });
        self.put(expr, base);
    }
}

impl Binder<'_> {
    /// `right`, which depends on `left` as level `level`, without doing so.
    pub(super) fn independent(
        &mut self,
        left: BoundRelation,
        mut right: BoundRelation,
        level: usize,
    ) -> Bound<Independent> {
        self.independents += 1;
        let left = self.settled(left)?;
        let (left_width, right_width) = (left.width(), right.width());
        let mut columns: Vec<(usize, ExprType)> = Vec::new();
        right.for_each_expression(&mut |expr| collect(expr, level, &mut columns));
        let is_numbered = columns.iter().any(|(_, expr_type)| !tells_apart(*expr_type));
        let left = if is_numbered { numbered(left) } else { left };
        if is_numbered {
            columns.push((left_width, INT8));
        }
        let left = self.shared_unless_correlated(left)?;
        let wanted =
            columns.iter().map(|(index, expr_type)| BoundExpr::Column { index: *index, expr_type: *expr_type });
        let mut values = BoundRelation::Project { input: Box::new(left.clone()), expressions: wanted.collect() };
        if !is_numbered {
            let types = columns.iter().map(|(_, expr_type)| *expr_type).collect();
            values = BoundRelation::Distinct { input: Box::new(values), columns: types };
        }
        let relation = self.shared_unless_correlated(values)?;
        let domain = Domain { relation, level, columns, is_numbered };
        let left_width = left.width();
        let right = self.for_each(right, &domain)?;
        let first = domain.width() - domain.key_types().count();
        let mut ties = Vec::with_capacity(domain.width());
        for (at, (column, expr_type)) in domain.columns.iter().enumerate().skip(first) {
            ties.push(self.is_same_value(*column, left_width + right_width + at, *expr_type)?);
        }
        Ok(Independent { left, right, ties })
    }

    /// What depends on a level further out cannot be computed once; that level then finds it written out several times.
    fn shared_unless_correlated(&mut self, mut relation: BoundRelation) -> Bound<BoundRelation> {
        if !relation.is_correlated() {
            return self.shared(relation);
        }
        self.spend(NODES_OF_COPY)?;
        Ok(relation)
    }

    /// Conditions of a join between two relations that have the domain's columns.
    fn same_of_domain(&mut self, domain: &Domain, left: usize, right: usize) -> Bound<Vec<BoundExpr>> {
        let types: Vec<ExprType> = domain.key_types().collect();
        let first = domain.width() - types.len();
        let tie =
            |(at, expr_type): (usize, &ExprType)| self.is_same_value(left + first + at, right + first + at, *expr_type);
        types.iter().enumerate().map(tie).collect()
    }

    /// Rows that have only what the domain's are told apart by behind their own `width` columns, with all of its columns there.
    fn regained(&mut self, relation: BoundRelation, width: usize, domain: &Domain) -> Bound<BoundRelation> {
        if !domain.is_numbered {
            return Ok(relation);
        }
        let number = self.is_same_value(width, width + domain.width(), INT8)?;
        let (left, right) = (Box::new(relation), Box::new(domain.relation.clone()));
        let joined = BoundRelation::Join { kind: JoinKind::Inner, left, right, condition: Some(number) };
        let order: Vec<usize> = (0..width).chain(width + 1..=width + domain.width()).collect();
        Ok(reordered(joined, &order))
    }

    /// The rows with what the domain's are told apart by alone behind their own `width` columns.
    fn keyed(relation: BoundRelation, width: usize, domain: &Domain) -> BoundRelation {
        if !domain.is_numbered {
            return relation;
        }
        reordered(relation, &(0..width).chain([width + domain.width() - 1]).collect::<Vec<_>>())
    }

    /// IS NOT DISTINCT FROM.
    fn is_same_value(&mut self, left: usize, right: usize, expr_type: ExprType) -> Bound<BoundExpr> {
        let strength =
            if expr_type.collation == Collation::None { CollationStrength::None } else { CollationStrength::Implicit };
        let column = |index| Typed { expr: BoundExpr::Column { index, expr_type }, expr_type, strength, origin: None };
        let (equal, left, right) = self.equality(column(left), column(right))?;
        let (left, right) = (Box::new(left.expr), Box::new(right.expr));
        Ok(BoundExpr::IsDistinct { equal, left, right, negated: true })
    }

    /// The relation for each row of the domain. Output: its own columns, then the domain's.
    fn for_each(&mut self, mut relation: BoundRelation, domain: &Domain) -> Bound<BoundRelation> {
        self.spend(1)?;
        let level = domain.level;
        if matches!(relation, BoundRelation::OneRow) {
            return Ok(domain.relation.clone());
        }
        let width = relation.width();
        if !relation.any_expression(&|expr| mentions(expr, level)) {
            let (left, right) = (Box::new(relation), Box::new(domain.relation.clone()));
            return Ok(BoundRelation::Join { kind: JoinKind::Cross, left, right, condition: None });
        }
        match relation {
            BoundRelation::Filter { input, mut predicate } => {
                domain.put(&mut predicate, width);
                Ok(BoundRelation::Filter { input: Box::new(self.for_each(*input, domain)?), predicate })
            }
            BoundRelation::Project { input, mut expressions } => {
                let base = input.width();
                expressions.iter_mut().for_each(|expr| domain.put(expr, base));
                expressions.extend(domain.at(base));
                Ok(BoundRelation::Project { input: Box::new(self.for_each(*input, domain)?), expressions })
            }
            BoundRelation::Join { kind, left, right, condition } => {
                self.join_for_each(kind, *left, *right, condition, domain)
            }
            BoundRelation::Match { kind, left, right, condition, test } => {
                self.match_for_each(kind, *left, *right, [condition, test], domain)
            }
            BoundRelation::Aggregate { input, groups, aggregates } => {
                self.aggregate_for_each(*input, groups, aggregates, domain)
            }
            BoundRelation::Distinct { input, mut columns } => {
                columns.extend(domain.key_types());
                let input = Box::new(Self::keyed(self.for_each(*input, domain)?, width, domain));
                self.regained(BoundRelation::Distinct { input, columns }, width, domain)
            }
            BoundRelation::DistinctOn { input, mut keys } => {
                keys.iter_mut().for_each(|key| domain.put(key, width));
                keys.extend(domain.keys_at(width));
                let shown = std::mem::replace(&mut self.order_shows, true);
                let input = self.for_each(*input, domain);
                self.order_shows = shown;
                Ok(BoundRelation::DistinctOn { input: Box::new(input?), keys })
            }
            BoundRelation::Window { input, calls } => self.window_for_each(*input, calls, domain),
            BoundRelation::Sort { input, mut keys } => {
                keys.iter_mut().for_each(|key| domain.put(&mut key.expr, width));
                let input = self.for_each(*input, domain)?;
                // Else nobody sees it, but its errors.
                let stays = self.order_shows || !are_sure(&input, &keys);
                Ok(if stays { BoundRelation::Sort { input: Box::new(input), keys } } else { input })
            }
            BoundRelation::Limit { input, limit, offset, with_ties } => {
                self.limit_for_each(*input, RowLimits { limit, offset, with_ties }, domain)
            }
            BoundRelation::SetOperation { operation, is_all, left, right, mut columns } => {
                columns.extend(domain.key_types());
                let left = Box::new(Self::keyed(self.for_each(*left, domain)?, width, domain));
                let right = Box::new(Self::keyed(self.for_each(*right, domain)?, width, domain));
                let both = BoundRelation::SetOperation { operation, is_all, left, right, columns };
                self.regained(both, width, domain)
            }
            BoundRelation::Append { inputs, mut columns } => {
                columns.extend(domain.types());
                let inputs = inputs.into_iter().map(|input| self.for_each(input, domain)).collect::<Bound<_>>()?;
                Ok(BoundRelation::Append { inputs, columns })
            }
            BoundRelation::Values { rows, mut columns } => {
                columns.extend(domain.types());
                let row = |mut expressions: Vec<BoundExpr>| {
                    expressions.iter_mut().for_each(|expr| domain.put(expr, 0));
                    expressions.extend(domain.at(0));
                    BoundRelation::Project { input: Box::new(domain.relation.clone()), expressions }
                };
                Ok(BoundRelation::Append { inputs: rows.into_iter().map(row).collect(), columns })
            }
            BoundRelation::Expand { input, functions, is_numbered, keeps_empty } => {
                let input_width = input.width();
                let put = |mut call: RowsCall| {
                    call.arguments.iter_mut().for_each(|argument| domain.put(argument, input_width));
                    call
                };
                let functions = functions.into_iter().map(put).collect();
                let input = Box::new(self.for_each(*input, domain)?);
                let expanded = BoundRelation::Expand { input, functions, is_numbered, keeps_empty };
                Ok(moved_back(expanded, input_width, domain, width))
            }
            BoundRelation::OneRow
            | BoundRelation::Scan { .. }
            | BoundRelation::Common { .. }
            | BoundRelation::Dependent { .. }
            | BoundRelation::Series { .. }
            | BoundRelation::Recursive { .. }
            | BoundRelation::Working { .. } => Err(unsupported("correlated subquery: recursion or series")),
        }
    }

    fn join_for_each(
        &mut self,
        kind: JoinKind,
        mut left: BoundRelation,
        mut right: BoundRelation,
        condition: Option<BoundExpr>,
        domain: &Domain,
    ) -> Bound<BoundRelation> {
        if kind == JoinKind::Full {
            return Err(unsupported("correlated subquery: full join"));
        }
        let (left_width, right_width) = (left.width(), right.width());
        let is_inner = matches!(kind, JoinKind::Inner | JoinKind::Cross);
        let is_tied = |side: &mut BoundRelation| side.any_expression(&|expr| mentions(expr, domain.level));
        let is_right_tied = is_tied(&mut right);
        // Rows of the kept side are there for each value.
        let is_left_tied = !is_inner || !is_right_tied || is_tied(&mut left);
        let moved = if is_left_tied { domain.width() } else { 0 };
        let base = if is_left_tied { left_width } else { left_width + right_width };
        let mut parts: Vec<BoundExpr> = condition.into_iter().flat_map(conjuncts).collect();
        parts.iter_mut().for_each(|part| domain.put_between(part, left_width, base, moved));
        if is_left_tied && is_right_tied {
            parts.extend(self.same_of_domain(domain, left_width, left_width + moved + right_width)?);
        }
        let left = if is_left_tied { self.for_each(left, domain)? } else { left };
        let right = if is_right_tied { self.for_each(right, domain)? } else { right };
        let always = BoundExpr::Literal { value: Value::Bool(true), expr_type: ExprType::BOOL };
        let condition = all_of(parts).or_else(|| (!is_inner).then_some(always));
        let kind = match (is_inner, &condition) {
            (true, Some(_)) => JoinKind::Inner,
            (true, None) => JoinKind::Cross,
            (false, _) => kind,
        };
        let joined = BoundRelation::Join { kind, left: Box::new(left), right: Box::new(right), condition };
        Ok(if is_left_tied { moved_back(joined, left_width, domain, left_width + right_width) } else { joined })
    }

    /// Of the two conditions, the first is that of the join, the other the comparison of IN.
    fn match_for_each(
        &mut self,
        kind: MatchKind,
        left: BoundRelation,
        mut right: BoundRelation,
        conditions: [Option<BoundExpr>; 2],
        domain: &Domain,
    ) -> Bound<BoundRelation> {
        let (left_width, right_width, added) = (left.width(), right.width(), domain.width());
        let is_right_tied = right.any_expression(&|expr| mentions(expr, domain.level));
        let [condition, test] = conditions.map(|condition| {
            condition.map(|mut condition| {
                domain.put_between(&mut condition, left_width, left_width, added);
                condition
            })
        });
        let mut parts: Vec<BoundExpr> = condition.into_iter().flat_map(conjuncts).collect();
        if is_right_tied {
            parts.extend(self.same_of_domain(domain, left_width, left_width + added + right_width)?);
        }
        let left = Box::new(self.for_each(left, domain)?);
        let right = Box::new(if is_right_tied { self.for_each(right, domain)? } else { right });
        let width = match kind {
            MatchKind::Semi | MatchKind::Anti => left_width,
            MatchKind::Mark => left_width + 1,
            MatchKind::Single => left_width + right_width,
        };
        let matched = BoundRelation::Match { kind, left, right, condition: all_of(parts), test };
        Ok(moved_back(matched, left_width, domain, width))
    }

    fn aggregate_for_each(
        &mut self,
        input: BoundRelation,
        mut groups: Vec<BoundExpr>,
        mut aggregates: Vec<AggregateCall>,
        domain: &Domain,
    ) -> Bound<BoundRelation> {
        let base = input.width();
        let order_shows = aggregates.iter().any(|call| takes_order(call.function) && call.order.is_empty());
        let shown = std::mem::replace(&mut self.order_shows, order_shows);
        let input = self.for_each(input, domain);
        self.order_shows = shown;
        let input = Box::new(input?);
        let mut put = |expr: &mut BoundExpr| domain.put(expr, base);
        groups.iter_mut().for_each(&mut put);
        for call in &mut aggregates {
            call.argument.iter_mut().chain(&mut call.extra).chain(&mut call.filter).for_each(&mut put);
            call.order.iter_mut().for_each(|key| put(&mut key.expr));
        }
        let (known, calls) = (groups.len(), aggregates.len());
        groups.extend(domain.keys_at(base));
        let added = groups.len() - known;
        if known > 0 {
            let grouped = BoundRelation::Aggregate { input, groups, aggregates };
            let order: Vec<usize> =
                (0..known).chain(known + added..known + added + calls).chain(known..known + added).collect();
            return self.regained(reordered(grouped, &order), known + calls, domain);
        }
        // There is a row also where nothing is to be taken in.
        let width = domain.width();
        let columns = aggregates.iter().enumerate().map(|(at, call)| {
            let column = BoundExpr::Column { index: width + added + at, expr_type: call.expr_type };
            if !counts(call.function) {
                return column;
            }
            let zero = BoundExpr::Literal { value: Value::Int8(0), expr_type: INT8 };
            BoundExpr::Coalesce { arguments: vec![column, zero], call: 0, expr_type: call.expr_type }
        });
        let expressions = columns.chain(domain.at(0)).collect();
        let right = Box::new(BoundRelation::Aggregate { input, groups, aggregates });
        // The number alone, or all columns.
        let condition = all_of(self.same_of_domain(domain, 0, width + added - domain.width())?);
        let left = Box::new(domain.relation.clone());
        let input = Box::new(BoundRelation::Join { kind: JoinKind::Left, left, right, condition });
        Ok(BoundRelation::Project { input, expressions })
    }

    fn window_for_each(
        &mut self,
        input: BoundRelation,
        mut calls: Vec<WindowCall>,
        domain: &Domain,
    ) -> Bound<BoundRelation> {
        let width = input.width();
        for call in &mut calls {
            call.expressions_mut().into_iter().for_each(|expr| domain.put(expr, width));
            call.partition.extend(domain.keys_at(width));
        }
        let all = width + calls.len();
        let windowed = BoundRelation::Window { input: Box::new(self.for_each(input, domain)?), calls };
        Ok(moved_back(windowed, width, domain, all))
    }

    fn limit_for_each(&mut self, input: BoundRelation, limits: RowLimits, domain: &Domain) -> Bound<BoundRelation> {
        // A number that is not known yet may raise.
        if ![&limits.limit, &limits.offset].into_iter().flatten().all(is_count) {
            return Err(unsupported("LIMIT in a correlated subquery"));
        }
        let width = input.width();
        let (input, mut keys) = match input {
            BoundRelation::Sort { input, keys } => (*input, keys),
            other => (other, Vec::new()),
        };
        keys.iter_mut().for_each(|key: &mut SortKey| domain.put(&mut key.expr, width));
        let input = self.for_each(input, domain)?;
        let order = keys.clone();
        let first = first_of_each(input, domain.keys_at(width).collect(), keys, limits)?;
        // Without the number.
        let first = first_columns(first, width + domain.width());
        Ok(match self.order_shows && !order.is_empty() {
            true => BoundRelation::Sort { input: Box::new(first), keys: order },
            false => first,
        })
    }

    /// JOIN LATERALs that were left for when WHERE is known.
    pub(super) fn settled(&mut self, mut relation: BoundRelation) -> Bound<BoundRelation> {
        if !has_dependent(&relation) {
            return Ok(relation);
        }
        for input in relation.inputs_mut() {
            *input = self.settled(std::mem::replace(input, BoundRelation::OneRow))?;
        }
        let BoundRelation::Dependent { kind, left, right, level, condition } = relation else { return Ok(relation) };
        let width = left.width() + right.width();
        let left_width = left.width();
        let Independent { left, right, ties } = self.independent(*left, *right, level)?;
        let moved = left.width() - left_width;
        let mut parts: Vec<BoundExpr> = condition.into_iter().flat_map(conjuncts).collect();
        for part in &mut parts {
            map_columns(part, &|index| if is_own_column(index) && index >= left_width { index + moved } else { index });
        }
        let condition = all_of(ties.into_iter().chain(parts).collect());
        let joined = BoundRelation::Join { kind, left: Box::new(left), right: Box::new(right), condition };
        let order: Vec<usize> = (0..left_width).chain(left_width + moved..width + moved).collect();
        let expressions = order.into_iter().map(placeholder).collect();
        Ok(BoundRelation::Project { input: Box::new(joined), expressions })
    }
}

/// Whether equal values of the type are the same here, whatever they are: then they are as good as the row.
pub(super) fn tells_apart(expr_type: ExprType) -> bool {
    let is_plain = match expr_type.pg_type {
        PgType::Numeric => expr_type.typmod >= 0,
        PgType::Float4 | PgType::Float8 | PgType::Interval | PgType::Json | PgType::Jsonb | PgType::Array(_) => false,
        _ => true,
    };
    is_plain && check_groupable(expr_type, "correlated subquery").is_ok()
}

/// The rows with a number each.
fn numbered(relation: BoundRelation) -> BoundRelation {
    let number = row_number(Vec::new(), Vec::new());
    BoundRelation::Window { input: Box::new(relation), calls: vec![number] }
}

/// A relation whose domain columns, behind the first `left` columns, are to be the last of all; it has `width` others.
fn moved_back(relation: BoundRelation, left: usize, domain: &Domain, width: usize) -> BoundRelation {
    let added = domain.width();
    let order: Vec<usize> = (0..left).chain(left + added..width + added).chain(left..left + added).collect();
    reordered(relation, &order)
}

fn first_columns(relation: BoundRelation, width: usize) -> BoundRelation {
    BoundRelation::Project { input: Box::new(relation), expressions: (0..width).map(placeholder).collect() }
}

/// Adds the columns of that level that the expression reads.
pub(super) fn collect(expr: &BoundExpr, level: usize, columns: &mut Vec<(usize, ExprType)>) {
    if let BoundExpr::Column { index, expr_type } = expr
        && let Some((of, column)) = as_outer(*index)
        && of == level
        && columns.iter().all(|(known, _)| *known != column)
    {
        columns.push((column, *expr_type));
    }
    children(expr).into_iter().for_each(|child| collect(child, level, columns));
}

/// Within FROM.
pub(super) fn has_dependent(relation: &BoundRelation) -> bool {
    matches!(relation, BoundRelation::Dependent { .. }) || relation.inputs().into_iter().any(has_dependent)
}

/// Filters by a conjunct of WHERE, before a JOIN LATERAL where it is about the rows to its left alone.
pub(super) fn filtered_early(relation: BoundRelation, part: BoundExpr) -> BoundRelation {
    let is_of_left = |left: &BoundRelation| !any_column(&part, &|index| index >= left.width());
    match relation {
        BoundRelation::Dependent { kind, left, right, level, condition } if is_of_left(&left) => {
            let left = Box::new(filtered_early(*left, part));
            BoundRelation::Dependent { kind, left, right, level, condition }
        }
        BoundRelation::Join { kind, left, right, condition }
            if kind != JoinKind::Full && is_of_left(&left) && has_dependent(&left) =>
        {
            let left = Box::new(filtered_early(*left, part));
            BoundRelation::Join { kind, left, right, condition }
        }
        // Whatever other conjuncts came before it.
        BoundRelation::Filter { input, predicate } if goes_left(&input, &part) => {
            BoundRelation::Filter { input: Box::new(filtered_early(*input, part)), predicate }
        }
        other => BoundRelation::Filter { input: Box::new(other), predicate: part },
    }
}

/// Whether [`filtered_early`] takes it to the left of a JOIN LATERAL.
fn goes_left(relation: &BoundRelation, part: &BoundExpr) -> bool {
    let is_of_left = |left: &BoundRelation| !any_column(part, &|index| index >= left.width());
    match relation {
        BoundRelation::Dependent { left, .. } => is_of_left(left),
        BoundRelation::Join { kind, left, .. } => *kind != JoinKind::Full && is_of_left(left) && has_dependent(left),
        BoundRelation::Filter { input, .. } => goes_left(input, part),
        _ => false,
    }
}

/// Whether a conjunct asks nothing but columns of FROM.
pub(super) fn is_plain(part: &BoundExpr) -> bool {
    !any_column(part, &|index| index >= AGGREGATE_BASE && as_outer(index).is_none())
}
