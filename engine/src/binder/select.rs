//! One SELECT: targets, WHERE, grouping, ORDER BY, DISTINCT, LIMIT (transformSelectStmt, findTargetlistEntry).

use std::sync::Arc;

use crate::binder::coerce::{Needs, check_comparable, check_groupable};
use crate::binder::equated::is_any_equated;
use crate::binder::expression::{Clause, Level};
use crate::binder::folded::{check_closed, check_modifier, is_of_constants, may_be_left_constant};
use crate::binder::grouping::{Grouping, has_aggregate};
use crate::binder::output_name::output_name;
use crate::binder::query::{RowLimits, Unknowns};
use crate::binder::relation::{SUBQUERY_BASE, WINDOW_BASE, any_column, map_columns};
use crate::binder::scope::{Scope, ScopeColumn};
use crate::binder::sets::untyped;
use crate::binder::subquery::{Asked, asked, check_gates};
use crate::binder::target_rows::{self, add_required, computed_below};
use crate::binder::typed::{Origin, Typed, is_same};
use crate::binder::window::{check_all_used, named_windows};
use crate::binder::{
    Binder, Bound, BoundExpr, BoundRelation, ExprType, OutputColumn, SortKey, WindowCall, unsupported,
};
use crate::catalog::functions::CastContext;
use crate::reason::UpstreamReason;
use crate::statement::ast::{Body, Expr, GroupItem, OrderItem, Quantifier, Query, Select, Target};
use crate::types::{PgType, Value};

/// A bound query: its relation puts out exactly `columns`.
pub(super) struct Selected {
    pub(super) relation: BoundRelation,
    pub(super) columns: Vec<SelectedColumn>,
}

#[derive(Clone)]
pub(super) struct SelectedColumn {
    pub(super) name: Arc<str>,
    pub(super) expr_type: ExprType,
    pub(super) origin: Option<Origin>,
    /// See [`ScopeColumn::is_constant`].
    pub(super) is_constant: bool,
    /// See [`ScopeColumn::is_open`].
    pub(super) is_open: bool,
    /// The literal that it is, where a set operation is still to type it.
    pub(super) untyped: Option<Typed>,
    /// Why nobody may name it: it is not held, and no more than a NULL stands in its place.
    pub(super) unheld: Option<UpstreamReason>,
}

impl Selected {
    /// All its columns are wanted.
    pub(super) fn held(self) -> Bound<Self> {
        match self.columns.iter().find_map(|column| column.unheld.clone()) {
            Some(reason) => Err(reason),
            None => Ok(self),
        }
    }
}

impl SelectedColumn {
    /// Of a table's column it is none, and it is held.
    pub(super) fn computed(name: Arc<str>, expr_type: ExprType) -> Self {
        Self { name, expr_type, origin: None, is_constant: false, is_open: false, untyped: None, unheld: None }
    }

    pub(super) fn into_output(self) -> OutputColumn {
        let (table_oid, attnum) = self.origin.map_or((0, 0), |origin| (origin.table.0, origin.attnum));
        OutputColumn { name: self.name, table_oid, attnum, expr_type: self.expr_type }
    }
}

/// A target list entry; junk ones serve ORDER BY or GROUP BY only.
struct Entry {
    typed: Typed,
    name: Arc<str>,
    is_junk: bool,
    /// As a selected column's.
    unheld: Option<UpstreamReason>,
}

/// An ORDER BY item, by target.
struct Order {
    target: usize,
    descending: bool,
    nulls_first: bool,
}

impl Binder<'_> {
    pub(super) fn select(&mut self, query: &Query, select: &Select, unknowns: Unknowns) -> Bound<Selected> {
        let Some(moved) = target_rows::moved(query, select) else {
            return self.plain_select(query, select, unknowns, false);
        };
        let Body::Select(select) = &moved.body else { return Err(unsupported("a function that returns rows")) };
        self.plain_select(&moved, select, unknowns, true)
    }

    /// `has_rows`: a function that returned rows in the select list is in FROM.
    fn plain_select(&mut self, query: &Query, select: &Select, unknowns: Unknowns, has_rows: bool) -> Bound<Selected> {
        let from = self.bind_from(&select.from)?;
        let mut level = Level::new(from.scope, Clause::Target);
        level.named_windows = named_windows(&select.windows)?;
        // The order is transformSelectStmt's: the first context decides a parameter's type.
        let mut targets = self.targets(&mut level, &select.targets)?;
        level.clause = Clause::Where;
        let filter = select.filter.as_ref().map(|filter| self.condition(&mut level, filter)).transpose()?;
        filter.iter().try_for_each(check_gates)?;
        level.clause = Clause::Having;
        let having = select.having.as_ref().map(|having| self.condition(&mut level, having)).transpose()?;
        let order = self.order_by(&mut level, &mut targets, &query.order_by)?;
        let groups = self.group_by(&mut level, &mut targets, &select.group_by)?;
        let on = self.distinct_on(&mut level, &mut targets, &select.quantifier, &order)?;
        check_all_used(&level)?;
        if has_rows && !level.windows.is_empty() {
            return Err(unsupported("a function that returns rows beside a window"));
        }
        let limits = self.row_limits(query)?;
        let mut columns = Vec::new();
        for target in targets.iter_mut().filter(|target| !target.is_junk) {
            let untyped = match unknowns {
                Unknowns::Stay if select.quantifier == Quantifier::All => untyped(&target.typed)?,
                Unknowns::Stay | Unknowns::BecomeText => None,
            };
            self.resolve_unknown(&mut target.typed)?;
            let Typed { expr_type, origin, .. } = target.typed;
            let unheld = target.unheld.clone();
            let is_constant = is_of_constants(&target.typed.expr, &level.scope);
            let computed = SelectedColumn::computed(target.name.clone(), expr_type);
            columns.push(SelectedColumn { origin, is_constant, untyped, unheld, ..computed });
        }
        targets.iter_mut().try_for_each(|target| self.resolve_unknown(&mut target.typed))?;
        if has_rows {
            let mut add = |target: &Entry| add_required(&target.typed.expr, &level.scope, &mut self.required);
            targets.iter().try_for_each(&mut add)?;
        }
        let mut relation = from.relation;
        if let Some(filter) = filter {
            relation = self.filtered(relation, &level, filter)?;
        }
        relation = self.settled(relation)?;
        let is_grouped =
            !groups.expressions.is_empty() || groups.sets.is_some() || !level.aggregates.is_empty() || having.is_some();
        // What compares whole rows needs every column.
        let compares_rows = is_grouped || select.quantifier == Quantifier::Distinct;
        self.tells_same |= level.aggregates.iter().any(|call| call.is_distinct);
        self.tells_same |=
            select.quantifier != Quantifier::All || !groups.expressions.is_empty() || groups.sets.is_some();
        if compares_rows && let Some(reason) = targets.iter().find_map(|target| target.unheld.clone()) {
            return Err(reason);
        }
        if is_grouped && level.has_row_value {
            // It depends on the key, not on its columns, and a subquery's expressions are nobody's groups (parse_agg.c).
            return Err(unsupported("a row as a value beside GROUP BY"));
        }
        if is_grouped {
            relation = self.grouped(relation, &mut level, groups, having, &mut targets)?;
        } else if !level.groupings.is_empty() {
            return Err(unsupported("GROUPING without GROUP BY"));
        }
        if has_rows && !is_grouped {
            let expressions = targets.iter_mut().map(|target| &mut target.typed.expr).collect();
            relation = computed_below(relation, expressions, &level.scope, level.subqueries.is_empty())?;
        }
        relation = self.windowed(relation, &mut level, &mut targets)?;
        let computed = targets.iter_mut().map(|target| &mut target.typed.expr).collect();
        relation = self.attached(relation, &level, computed)?;
        let relation = finished(relation, &select.quantifier, &targets, order, on, limits)?;
        Ok(Selected { relation, columns })
    }

    /// Computes the window functions, and puts their columns into the targets.
    fn windowed(&mut self, input: BoundRelation, level: &mut Level, targets: &mut [Entry]) -> Bound<BoundRelation> {
        let mut calls = std::mem::take(&mut level.windows);
        if calls.is_empty() {
            return Ok(input);
        }
        let used = calls.iter_mut().flat_map(WindowCall::expressions_mut).collect();
        let input = self.attached(input, level, used)?;
        let width = input.width();
        let place = |index: usize| {
            let call = index.checked_sub(WINDOW_BASE).filter(|_| index < SUBQUERY_BASE);
            call.map_or(index, |call| width + call)
        };
        for target in targets {
            map_columns(&mut target.typed.expr, &place);
        }
        for subquery in &mut level.subqueries {
            if let Asked::In(test) = &mut subquery.kind {
                map_columns(test, &place);
            }
        }
        Ok(BoundRelation::Window { input: Box::new(input), calls })
    }

    /// The targets that DISTINCT ON names; ORDER BY must begin with them (transformDistinctOnClause).
    fn distinct_on(
        &mut self,
        level: &mut Level,
        targets: &mut Vec<Entry>,
        quantifier: &Quantifier,
        order: &[Order],
    ) -> Bound<Vec<usize>> {
        let Quantifier::DistinctOn(items) = quantifier else { return Ok(Vec::new()) };
        level.clause = Clause::OrderBy;
        let mut on: Vec<usize> = Vec::new();
        for item in items {
            let target = self.target_of(level, targets, item)?;
            self.resolve_unknown(&mut targets[target].typed)?;
            check_comparable(targets[target].typed.expr_type, Needs::Order, "DISTINCT ON")?;
            if !on.contains(&target) {
                on.push(target);
            }
        }
        let leading = order.iter().take_while(|key| on.contains(&key.target)).count();
        let covered = on.iter().filter(|target| order[..leading].iter().any(|key| key.target == **target)).count();
        if leading < order.len() && covered < on.len() {
            return Err(unsupported("DISTINCT ON that ORDER BY does not begin with"));
        }
        Ok(on)
    }

    /// transformTargetList.
    fn targets(&mut self, level: &mut Level, list: &[Target]) -> Bound<Vec<Entry>> {
        let mut targets = Vec::new();
        for target in list {
            match target {
                Target::Expr { expr, label } => {
                    let name = label.as_deref().unwrap_or_else(|| output_name(expr)).into();
                    if let Expr::Column(names) = expr
                        && let Some(column) = level.scope.column(names)?.filter(|column| column.expr_type.is_none())
                    {
                        let column = ScopeColumn { name, ..column.clone() };
                        targets.push(self.column_target(&column)?);
                        continue;
                    }
                    let typed = self.expression(level, expr)?;
                    check_modifier(&typed.expr, &level.scope)?;
                    targets.push(Entry { typed, name, is_junk: false, unheld: None });
                }
                Target::Star(qualifier) => self.star(&level.scope, qualifier, &mut targets)?,
            }
        }
        Ok(targets)
    }

    fn star(&mut self, scope: &Scope, qualifier: &[String], targets: &mut Vec<Entry>) -> Bound<()> {
        let columns: Vec<_> = if qualifier.is_empty() {
            scope.visible_columns().filter(|column| &*column.name != target_rows::NAME).cloned().collect()
        } else {
            scope.item(self.in_database(qualifier, 3)?)?.columns.clone()
        };
        if columns.is_empty() {
            return Err(unsupported("* without columns"));
        }
        for column in columns {
            targets.push(self.column_target(&column)?);
        }
        Ok(())
    }

    /// A column as it is. Of a query in FROM, it may be that nobody wants it, so that it need not be held.
    fn column_target(&mut self, column: &ScopeColumn) -> Bound<Entry> {
        let name = Arc::clone(&column.name);
        if column.expr_type.is_some() {
            check_closed(column.is_open)?;
            return Ok(Entry { typed: self.column_reference(column)?, name, is_junk: false, unheld: None });
        }
        self.note_used(column);
        let typed = Typed::bool(BoundExpr::Literal { value: Value::Null, expr_type: ExprType::BOOL });
        Ok(Entry { typed, name, is_junk: false, unheld: Some(self.lacks(column)) })
    }

    /// A column of unknown type becomes text (resolveTargetListUnknowns, addTargetToSortList).
    fn resolve_unknown(&mut self, typed: &mut Typed) -> Bound<()> {
        if typed.is_unknown() {
            *typed = self.coerce(typed.clone(), PgType::Text, CastContext::Implicit)?;
        }
        Ok(())
    }

    fn order_by(&mut self, level: &mut Level, targets: &mut Vec<Entry>, items: &[OrderItem]) -> Bound<Vec<Order>> {
        level.clause = Clause::OrderBy;
        let mut order: Vec<Order> = Vec::new();
        for item in items {
            let target = self.target_of(level, targets, &item.expr)?;
            self.resolve_unknown(&mut targets[target].typed)?;
            check_comparable(targets[target].typed.expr_type, Needs::Order, "ORDER BY")?;
            // A repeated key decides nothing (addTargetToSortList drops it).
            if !order.iter().any(|earlier| earlier.target == target) {
                let nulls_first = item.nulls_first.unwrap_or(item.descending);
                order.push(Order { target, descending: item.descending, nulls_first });
            }
        }
        Ok(order)
    }

    fn group_by(&mut self, level: &mut Level, targets: &mut Vec<Entry>, items: &[GroupItem]) -> Bound<Groups> {
        level.clause = Clause::GroupBy;
        let mut groups = Groups::default();
        // The sets that each item stands for, by positions in the groups; all items together: every combination.
        let mut product: Vec<Vec<usize>> = vec![Vec::new()];
        let mut has_sets = false;
        for item in items {
            has_sets |= !matches!(item, GroupItem::Expr(_));
            let sets = self.grouping_sets(level, targets, item, &mut groups)?;
            if product.len() * sets.len() > GROUPING_SETS_MAX {
                return Err(unsupported("too many grouping sets"));
            }
            let combined = product.iter().flat_map(|before| {
                sets.iter().map(|set| {
                    let mut both = before.clone();
                    set.iter().for_each(|group| {
                        if !both.contains(group) {
                            both.push(*group);
                        }
                    });
                    both
                })
            });
            product = combined.collect();
        }
        if has_sets && groups.is_named_twice {
            return Err(unsupported("grouping sets by one expression under two names"));
        }
        groups.sets = has_sets.then_some(product);
        Ok(groups)
    }

    /// expand_grouping_sets.
    fn grouping_sets(
        &mut self,
        level: &mut Level,
        targets: &mut Vec<Entry>,
        item: &GroupItem,
        groups: &mut Groups,
    ) -> Bound<Vec<Vec<usize>>> {
        let mut all = |binder: &mut Self, items: &[Expr]| {
            items.iter().map(|item| binder.group(level, targets, item, groups)).collect::<Bound<Vec<usize>>>()
        };
        Ok(match item {
            GroupItem::Expr(Expr::Row { items, is_explicit: false }) => vec![all(self, items)?],
            GroupItem::Expr(single) => vec![all(self, std::slice::from_ref(single))?],
            GroupItem::Empty => vec![Vec::new()],
            GroupItem::Rollup(elements) => {
                let elements = elements.iter().map(|items| all(self, items)).collect::<Bound<Vec<_>>>()?;
                (0..=elements.len()).rev().map(|count| elements[..count].concat()).collect()
            }
            GroupItem::Cube(elements) => {
                if elements.len() > 12 {
                    return Err(unsupported("too many grouping sets"));
                }
                let elements = elements.iter().map(|items| all(self, items)).collect::<Bound<Vec<_>>>()?;
                let chosen = |set: usize| {
                    let kept = elements.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
                    kept.flat_map(|(_, element)| element.iter().copied()).collect()
                };
                (0..1_usize << elements.len()).rev().map(chosen).collect()
            }
            GroupItem::Sets(items) => {
                let mut sets = Vec::new();
                for item in items {
                    sets.extend(self.grouping_sets(level, targets, item, groups)?);
                }
                sets
            }
        })
    }

    /// The position of a group expression.
    fn group(&mut self, level: &mut Level, targets: &mut Vec<Entry>, item: &Expr, groups: &mut Groups) -> Bound<usize> {
        let target = self.target_of(level, targets, item)?;
        self.resolve_unknown(&mut targets[target].typed)?;
        let typed = &targets[target].typed;
        if has_aggregate(&typed.expr) || any_column(&typed.expr, &|index| (WINDOW_BASE..SUBQUERY_BASE).contains(&index))
        {
            return Err(unsupported("aggregate in GROUP BY"));
        }
        check_groupable(typed.expr_type, "GROUP BY")?;
        let first = targets.iter().position(|other| is_same(&other.typed.expr, &typed.expr));
        groups.is_named_twice |= first != Some(target);
        let groups = &mut groups.expressions;
        let known = groups.iter().position(|earlier| is_same(earlier, &typed.expr));
        Ok(known.unwrap_or_else(|| {
            groups.push(typed.expr.clone());
            groups.len() - 1
        }))
    }

    /// findTargetlistEntrySQL92, then ...SQL99: an output name, a position, or an expression, which may be added.
    fn target_of(&mut self, level: &mut Level, targets: &mut Vec<Entry>, expr: &Expr) -> Bound<usize> {
        match expr {
            Expr::Column(names) if names.len() == 1 => {
                let name = &names[0];
                // GROUP BY prefers a column of FROM, ORDER BY an output name.
                let prefers_column = level.clause == Clause::GroupBy && level.scope.unqualified(name)?.is_some();
                if !prefers_column && let Some(found) = target_named(targets, name)? {
                    return wanted(targets, found);
                }
            }
            Expr::Number(digits) => {
                let found = position_of(targets.iter().filter(|target| !target.is_junk).count(), digits)?;
                return wanted(targets, found);
            }
            Expr::String(_) | Expr::Null | Expr::Bool(_) => {
                return Err(unsupported("constant in ORDER BY or GROUP BY"));
            }
            _ => {}
        }
        let typed = self.expression(level, expr)?;
        let is_it = |target: &Entry| target.unheld.is_none() && is_same(&target.typed.expr, &typed.expr);
        if let Some(found) = targets.iter().position(is_it) {
            return Ok(found);
        }
        targets.push(Entry { typed, name: "".into(), is_junk: true, unheld: None });
        Ok(targets.len() - 1)
    }

    fn grouped(
        &mut self,
        relation: BoundRelation,
        level: &mut Level,
        groups: Groups,
        mut having: Option<BoundExpr>,
        targets: &mut [Entry],
    ) -> Bound<BoundRelation> {
        // What is asked below the grouping.
        let mut expressions = groups.expressions;
        let mut aggregates = std::mem::take(&mut level.aggregates);
        let asked_below = expressions.clone();
        let used = aggregates.iter_mut().flat_map(|call| {
            let own = call.argument.iter_mut().chain(&mut call.extra).chain(&mut call.filter);
            own.chain(call.order.iter_mut().map(|key| &mut key.expr))
        });
        let input = self.attached(relation, level, used.chain(&mut expressions).collect())?;
        let mut grouping = Grouping::new(asked_below, aggregates.len(), &level.scope);
        // Of those that are written: what a key determines is none (parse_agg.c, finalize_grouping_exprs_walker).
        if !level.groupings.iter().flatten().all(|item| grouping.is_group(item)) {
            return Err(UpstreamReason::UnknownColumn("arguments to GROUPING must be grouped".into()));
        }
        let mut above: Vec<&mut BoundExpr> = targets.iter_mut().map(|target| &mut target.typed.expr).collect();
        above.extend(&mut having);
        above.extend(level.windows.iter_mut().flat_map(WindowCall::expressions_mut));
        if groups.sets.is_none() {
            for expr in &above {
                grouping.add_dependent_columns(self, expr)?;
            }
            // A subquery that is a group itself is answered below.
            let mut trial: Vec<BoundExpr> = above.iter().map(|expr| (**expr).clone()).collect();
            trial.iter_mut().try_for_each(|expr| grouping.rewrite(expr))?;
            for number in asked(trial.iter(), &level.subqueries) {
                grouping.add_subquery(self, &mut level.subqueries[number])?;
            }
        }
        for expr in &mut above {
            grouping.rewrite(expr)?;
        }
        // The groups are as the rows below have them; what was asked there has its place now.
        for number in asked(above.iter().map(|expr| &**expr), &level.subqueries) {
            grouping.rewrite_subquery(&mut level.subqueries[number])?;
        }
        let questions = std::mem::take(&mut level.groupings);
        let sets = match groups.sets {
            Some(sets) => sets,
            None if questions.is_empty() => {
                let relation = grouping.with_definitions(expressions).relation(input, aggregates);
                return self.having(relation, level, having);
            }
            None => vec![(0..grouping.len()).collect()],
        };
        let is_any_folded = || expressions.iter().any(may_be_left_constant);
        if sets.len() > 1 && (is_any_folded() || is_any_equated(&expressions, &input, &self.commons)) {
            return Err(unsupported("grouping sets by a constant or by what is equated"));
        }
        let shared = if sets.len() > 1 { self.shared(input)? } else { input };
        let relation =
            grouping.with_definitions(expressions).relation_of_sets(&shared, &aggregates, &sets, &questions)?;
        // What is asked of the groups is asked behind the grouping (planner.c, subquery_planner, of HAVING with grouping sets).
        self.having(relation.fenced(), level, having)
    }

    fn having(&mut self, relation: BoundRelation, level: &Level, having: Option<BoundExpr>) -> Bound<BoundRelation> {
        match having {
            Some(having) => self.filtered(relation, level, having),
            None => Ok(relation),
        }
    }
}

/// GROUP BY: its expressions, and which of them each grouping set has.
#[derive(Default)]
struct Groups {
    expressions: Vec<BoundExpr>,
    sets: Option<Vec<Vec<usize>>>,
    /// One of them is the same as an output column before it.
    is_named_twice: bool,
}

const GROUPING_SETS_MAX: usize = 4_096;

/// The target, if it is held.
fn wanted(targets: &[Entry], found: usize) -> Bound<usize> {
    targets[found].unheld.clone().map_or(Ok(found), Err)
}

/// The output column of that name; two different ones are ambiguous.
fn target_named(targets: &[Entry], name: &str) -> Bound<Option<usize>> {
    let named = |target: &Entry| !target.is_junk && &*target.name == name;
    let Some(first) = targets.iter().position(named) else { return Ok(None) };
    let is_ambiguous = targets[first + 1..]
        .iter()
        .any(|target| named(target) && !is_same(&target.typed.expr, &targets[first].typed.expr));
    if is_ambiguous {
        return Err(UpstreamReason::UnknownColumn(format!("{name} is ambiguous").into()));
    }
    Ok(Some(first))
}

/// An integer constant counts the output columns from 1; another constant is an error.
pub(super) fn position_of(outputs: usize, digits: &str) -> Bound<usize> {
    match digits.parse::<usize>() {
        Ok(position) if (1..=outputs).contains(&position) => Ok(position - 1),
        _ => Err(UpstreamReason::UnknownColumn("a position that is not in the select list".into())),
    }
}

/// Projection, DISTINCT, ORDER BY and LIMIT over the rows that the targets are computed from. All targets are
/// computed before sorting, as PostgreSQL does, so that an error in any row is met.
fn finished(
    input: BoundRelation,
    quantifier: &Quantifier,
    targets: &[Entry],
    order: Vec<Order>,
    on: Vec<usize>,
    limits: RowLimits,
) -> Bound<BoundRelation> {
    // Junk that ORDER BY does not use served GROUP BY.
    let mut kept: Vec<usize> = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        if !target.is_junk || order.iter().any(|key| key.target == index) || on.contains(&index) {
            kept.push(index);
        }
    }
    let expressions = kept.iter().map(|index| targets[*index].typed.expr.clone()).collect();
    let mut relation = BoundRelation::Project { input: Box::new(input), expressions };
    let outputs = targets.iter().filter(|target| !target.is_junk).count();
    if *quantifier == Quantifier::Distinct {
        if kept.len() > outputs {
            return Err(UpstreamReason::UnknownColumn("ORDER BY of SELECT DISTINCT must be in the select list".into()));
        }
        for target in targets.iter().filter(|target| !target.is_junk) {
            check_groupable(target.typed.expr_type, "DISTINCT")?;
        }
        let columns = kept.iter().map(|index| targets[*index].typed.expr_type).collect();
        relation = BoundRelation::Distinct { input: Box::new(relation), columns };
    }
    let column = |index: usize, target: usize| BoundExpr::Column { index, expr_type: targets[target].typed.expr_type };
    let mut keys = Vec::with_capacity(order.len());
    if !order.is_empty() {
        for key in &order {
            let index = kept.iter().position(|index| *index == key.target).ok_or_else(|| unsupported("ORDER BY"))?;
            keys.push(SortKey {
                expr: column(index, key.target),
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
        }
        relation = BoundRelation::Sort { input: Box::new(relation), keys: keys.clone() };
    }
    if !on.is_empty() {
        let place = |target: &usize| kept.iter().position(|index| index == target).map(|index| column(index, *target));
        let on = on.iter().filter_map(place).collect();
        relation = BoundRelation::DistinctOn { input: Box::new(relation), keys: on };
        // Ties are by what the rows are in order of already.
        if limits.with_ties {
            relation = BoundRelation::Sort { input: Box::new(relation), keys };
        }
    }
    relation = limits.put_over(relation);
    if kept.len() > outputs {
        let expressions = kept[..outputs].iter().enumerate().map(|(index, target)| column(index, *target)).collect();
        relation = BoundRelation::Project { input: Box::new(relation), expressions };
    }
    Ok(relation)
}
