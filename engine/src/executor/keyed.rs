//! Reading a large table by keys that are known only when the statement runs: those that a list has, or those of the few rows that
//! it is joined with. What PostgreSQL does with a nested loop over an index.
//!
//! A side join whose left side is small runs that first; a join reads its small inputs first and then, step by step, what they
//! lead to. Rows that meet nothing are left out, which changes no answer: they would be by the join. Where such a row may raise an
//! error, it is left out only if PostgreSQL may leave it out, too ([`way`]).

use std::rc::Rc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute::take;

use super::arrays::{concatenate, internal};
use super::batch::Batch;
use super::join::BuildSide;
use super::key_table::{KeyTable, Purpose, first_rows};
use super::scan::{FOUND_PER_ROWS, INDEX_ROWS_MIN, as_column_type, chosen_look_ups};
use super::{Flow, Run, Sink};
use crate::binder::{BoundExpr, has_value, is_harmless_window};
use crate::catalog::functions::{EQUALS_ANY, EvalError};
use crate::planner::expression::{column_equals, is_indexable, is_row_independent, is_same, type_of};
use crate::planner::node::{Aggregate, Call, Equality, Join, Key, PlanNode, Scan, SideJoin, SideKind};
use crate::planner::{Plan, may_raise_at};
use crate::table::TableVersion;
use crate::types::access::value_at;
use crate::types::array::ArrayView;
use crate::types::{PgType, Value, binary};

/// So many rows of the table for each row that is found in it by keys: finding costs more than reading on.
pub(super) const ROWS_PER_FOUND: f64 = if cfg!(debug_assertions) { 2.0 } else { 16.0 };
/// And for each row that the keys are taken from.
const ROWS_PER_KEY: usize = if cfg!(debug_assertions) { 2 } else { 16 };
/// What has fewer rows is not worth leading to.
const LARGE: usize = if cfg!(debug_assertions) { 8 } else { 4_096 };
/// A longer list is not worth sorting out.
pub(super) const LIST_MAX: usize = 4_096;
/// More rows are not read before the others for the keys that they have, which may be fewer.
const FIRST_MAX: usize = 4 * LIST_MAX;

/// What is wanted of a table's column.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Index into the table's schema.
    column: usize,
    keys: KeyTable,
    /// The same one by one, of the column's type, if they are few enough to be looked up.
    values: Option<Vec<Value>>,
}

impl Run<'_> {
    /// The rows of a scan that lists, or the join above, name the keys of. None: it is to be read through.
    pub(super) fn scan_keyed(
        &self,
        scan: &Scan,
        table: &TableVersion,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Flow>, EvalError> {
        if table.rows < INDEX_ROWS_MIN {
            return Ok(None);
        }
        if let Some(wanted) = self.wanted(scan)
            && let Some(values) = &wanted.values
        {
            return self.scan_by_values(scan, table, values.iter().map(|value| (wanted.column, value)), sink);
        }
        for (at, filter) in scan.filters.iter().enumerate() {
            if let Some((column, values)) = self.listed(scan, filter)
                && self.may_find_by(scan, at, table, column)
                && self.is_worth_finding(table, column, values.len())
            {
                return self.scan_by_values(scan, table, values.iter().map(|value| (column, value)), sink);
            }
            if matches!(filter, BoundExpr::Or(_))
                && self.is_quiet_before(scan, at)
                && let Some(flow) = self.scan_alternatives(scan, table, filter, sink)?
            {
                return Ok(Some(flow));
            }
        }
        self.scan_computed(scan, table, sink)
    }

    pub(super) fn wanted(&self, scan: &Scan) -> Option<Rc<Wanted>> {
        self.state.wanted.borrow().get(&std::ptr::from_ref(scan).addr()).cloned()
    }

    /// Without the rows of the batch, which are of the scan's columns, that no key is of.
    pub(super) fn of_wanted(&self, scan: &Scan, batch: Batch) -> Result<Batch, EvalError> {
        let Some(wanted) = self.wanted(scan) else { return Ok(batch) };
        let Some(at) = scan.columns.iter().position(|column| *column == wanted.column) else { return Ok(batch) };
        let found = wanted.keys.find(&[batch.column(at)?], batch.rows)?;
        batch.filter(&found.iter().map(|id| Some(*id != KeyTable::NONE)).collect::<BooleanArray>())
    }

    /// The rows that hold one of these values in the column beside it. None: they are too many.
    pub(super) fn scan_by_values<'v>(
        &self,
        scan: &Scan,
        table: &TableVersion,
        values: impl IntoIterator<Item = (usize, &'v Value)>,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Flow>, EvalError> {
        let keys: Vec<(usize, &Value)> = values.into_iter().collect();
        // Some values may have many more rows than others: then the table is read through.
        let goes_on = |found: usize| self.check_cancelled().map(|()| found * FOUND_PER_ROWS <= table.rows);
        let Some(mut found) = table.find_each(&keys, goes_on)? else { return Ok(None) };
        self.charge(size_of_val(&*found))?;
        found.sort_unstable();
        found.dedup();
        self.scan_rows(scan, table, &found, &scan.filters, sink).map(Some)
    }

    /// The column that a filter confines to a list, and the values of that. NULL equals nothing.
    pub(super) fn listed(&self, scan: &Scan, filter: &BoundExpr) -> Option<(usize, Vec<Value>)> {
        let (operand, mut values) = match filter {
            BoundExpr::InList { operand, list, negated: false, .. } if list.len() <= LIST_MAX => {
                let is_known =
                    |item: &BoundExpr| is_row_independent(item) && is_indexable(type_of(operand), type_of(item));
                let values = if list.iter().all(is_known) { self.constants(list)? } else { return None };
                (&**operand, values)
            }
            BoundExpr::Call { function, arguments, .. } if std::ptr::eq(*function, &raw const EQUALS_ANY) => {
                let [operand, array] = &arguments[..] else { return None };
                let PgType::Array(element) = type_of(array) else { return None };
                if !is_row_independent(array) || !is_indexable(type_of(operand), element.pg_type()) {
                    return None;
                }
                let Value::Array(bytes) = self.constant(array).ok()? else { return None };
                let elements = ArrayView::of(&bytes);
                if elements.len() > LIST_MAX {
                    return None;
                }
                let value = |item: &[u8]| binary::decode(element.pg_type(), -1, item).ok();
                (operand, elements.elements().flatten().map(value).collect::<Option<Vec<_>>>()?)
            }
            BoundExpr::Or(alternatives) if alternatives.len() <= LIST_MAX => {
                // `$1 IS NULL OR customer_id = $1`.
                let is_open = |alternative: &&BoundExpr| {
                    let is_known = is_row_independent(alternative);
                    !(is_known && matches!(self.constant(alternative), Ok(Value::Bool(false) | Value::Null)))
                };
                let left: Vec<&BoundExpr> = alternatives.iter().filter(is_open).collect();
                if let [one] = left[..]
                    && column_equals(one).is_none()
                {
                    return self.listed(scan, one);
                }
                let equal: Vec<_> = left.into_iter().map(column_equals).collect::<Option<_>>()?;
                let (first, _) = *equal.first()?;
                if !equal.iter().all(|(column, _)| is_same(column, first)) {
                    return None;
                }
                (first, equal.into_iter().map(|(_, value)| self.constant(value).ok()).collect::<Option<_>>()?)
            }
            BoundExpr::Call { .. } => {
                let (column, value) = column_equals(filter)?;
                (column, vec![self.constant(value).ok()?])
            }
            _ => return None,
        };
        let BoundExpr::Column { index, expr_type } = operand else { return None };
        values = values.into_iter().filter_map(|value| as_column_type(value, expr_type.pg_type)).collect();
        Some((scan.columns[*index], values))
    }

    /// Whether rows may be found by a filter, and others not be computed with: none before it raises an error, or PostgreSQL reads by the
    /// index of the primary key, too.
    fn may_find_by(&self, scan: &Scan, filter: usize, table: &TableVersion, column: usize) -> bool {
        table.schema.primary_key == [column] || self.is_quiet_before(scan, filter)
    }

    pub(super) fn is_quiet_before(&self, scan: &Scan, filter: usize) -> bool {
        let before = scan.filters.get(scan.reached..filter).unwrap_or_default();
        before.iter().all(|before| self.is_quiet_in(scan, before))
    }

    fn constants(&self, list: &[BoundExpr]) -> Option<Vec<Value>> {
        list.iter().map(|item| self.constant(item).ok()).collect()
    }

    /// Whether so many keys have so few rows, by the number of the column's values, that looking them up is quicker than reading on.
    pub(super) fn is_worth_finding(&self, table: &TableVersion, column: usize, keys: usize) -> bool {
        if keys > LIST_MAX || keys * ROWS_PER_KEY > table.rows || !table.may_index(column) {
            return false;
        }
        self.rows_of(table, column, keys) * ROWS_PER_FOUND <= table.rows as f64
    }

    /// About how many rows of the table have so many of the column's values.
    pub(super) fn rows_of(&self, table: &TableVersion, column: usize, keys: usize) -> f64 {
        let distinct = self.distinct(table, column).unwrap_or(1.0).max(1.0);
        keys as f64 * (table.rows as f64 / distinct).max(1.0)
    }

    /// About how many rows of a scan have the keys that are wanted of it, if any are.
    pub(super) fn wanted_rows(&self, scan: &Scan) -> Option<usize> {
        let wanted = self.wanted(scan)?;
        let table = self.snapshot.tables.get(&scan.table)?;
        Some(self.rows_of(table, wanted.column, wanted.keys.len()).ceil() as usize)
    }

    /// Whether the keys of so many rows may be worth looking up.
    fn may_find(&self, table: &TableVersion, column: usize, rows: usize) -> bool {
        rows <= FIRST_MAX && self.is_worth_finding(table, column, rows.clamp(1, LIST_MAX))
    }

    /// Of a side join whose left side is small beside a table on the right: the rows of the left, read first, and what is wanted of
    /// the table since. None: the right is built first, as ever.
    pub(super) fn left_first(&self, join: &SideJoin) -> Result<Option<LeftFirst<'_>>, EvalError> {
        if join.kind == SideKind::Full || self.changed.is_some() {
            return Ok(None);
        }
        let Some((equality, column, scan)) = self.target_of(join) else { return Ok(None) };
        let table = self.table(scan.table)?;
        let rows = self.estimate_closely(&join.left);
        if rows * ROWS_PER_KEY > table.rows || self.right_leads(join, rows)? {
            return Ok(None);
        }
        let batches = self.collect(&join.left)?;
        let width = join.left.width() + join.right.width();
        let placed = batches.iter().map(|batch| batch.clone().placed(0, width)).collect::<Vec<_>>();
        let wanted = self.keys_of(&placed, &equality.left, scan, column)?;
        // What the join cache keeps is there for the next statement as a whole.
        let keys: Vec<Key<'_>> = join.equalities.iter().map(|equality| equality.key(1)).collect();
        let is_kept = self.identity(&join.right, &keys, join.left.width()).is_some();
        let guard = wanted.filter(|wanted| wanted.values.is_some() || !is_kept).map(|wanted| self.want(scan, wanted));
        Ok(Some(LeftFirst { batches, _wanted: guard }))
    }

    /// The large table that the left side's rows lead to.
    fn target_of<'j>(&self, join: &'j SideJoin) -> Option<(&'j Equality, usize, &'j Scan)> {
        let computed = match join.kind {
            _ if join.is_per_row => Computed::PerRow,
            // What a row that is made up has in place of a value is decided where the side is computed (PlaceHolderVar).
            SideKind::Left | SideKind::Full => Computed::WithValues,
            _ => Computed::Once,
        };
        let base = join.left.width();
        if !join.is_per_row && join.equalities.iter().any(|of| may_raise_at(&join.right, base, &of.right)) {
            return None;
        }
        join.equalities.iter().find_map(|equality| {
            let (column, scan) = self.target(equality, 1, &join.right, join.left.width(), computed)?;
            Some((equality, column, scan))
        })
    }

    /// Of a semi join whose right side, which is built, is small beside a table on the left: what is wanted of that table.
    pub(super) fn left_by_keys(&self, join: &SideJoin, right: &BuildSide) -> Result<Option<WantedHere<'_>>, EvalError> {
        if self.changed.is_some() || right.rows == 0 {
            return Ok(None);
        }
        let Some((equality, column, scan)) = self.left_target_of(join) else { return Ok(None) };
        if right.rows * ROWS_PER_KEY > self.table(scan.table)?.rows {
            return Ok(None);
        }
        let (base, width) = (join.left.width(), join.left.width() + join.right.width());
        let placed = Batch::of_shared(right.columns.clone(), right.rows).placed(base, width);
        let wanted = self.keys_of(std::slice::from_ref(&placed), &equality.right, scan, column)?;
        Ok(wanted.filter(|wanted| wanted.values.is_some()).map(|wanted| self.want(scan, wanted)))
    }

    /// Whether the right side has fewer rows than the left side's so many, and leads to a table on the left.
    fn right_leads(&self, join: &SideJoin, left_rows: usize) -> Result<bool, EvalError> {
        let Some((_, column, scan)) = self.left_target_of(join) else { return Ok(false) };
        let rows = self.estimate_closely(&join.right);
        Ok(rows < left_rows && self.may_find(self.table(scan.table)?, column, rows))
    }

    /// The large table that the right side's rows of a semi join lead to.
    fn left_target_of<'j>(&self, join: &'j SideJoin) -> Option<(&'j Equality, usize, &'j Scan)> {
        if join.kind != SideKind::Semi || join.equalities.iter().any(|of| may_raise_at(&join.left, 0, &of.left)) {
            return None;
        }
        join.equalities.iter().find_map(|equality| {
            let (column, scan) = self.target(equality, 0, &join.left, 0, Computed::Once)?;
            Some((equality, column, scan))
        })
    }

    /// Inputs of a join that are read beforehand: small ones, then tables by their keys, by theirs... None of an input: it is read
    /// as ever. Empty: all are.
    pub(super) fn read_first(&self, join: &Join) -> Result<Vec<Option<Batch>>, EvalError> {
        let bases = join.bases();
        let steps: Vec<KeyStep<'_>> = if self.changed.is_some() { Vec::new() } else { self.key_steps(join, &bases) };
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let mut sizes: Vec<usize> = join.inputs.iter().map(|input| self.estimate_closely(input)).collect();
        let mut known: Vec<Option<Batch>> = vec![None; join.inputs.len()];
        let mut is_tried = vec![false; steps.len()];
        loop {
            let is_open = |at: &usize| {
                let KeyStep { from, input, .. } = steps[*at];
                !is_tried[*at] && sizes[from] <= FIRST_MAX && sizes[input] > LARGE && known[input].is_none()
            };
            let Some(at) = (0..steps.len()).filter(is_open).min_by_key(|at| sizes[steps[*at].from]) else { break };
            is_tried[at] = true;
            let KeyStep { from, key, input, scan, column } = steps[at];
            // By as many keys as there seem to be, before they are read.
            if !self.may_find(self.table(scan.table)?, column, sizes[from]) {
                continue;
            }
            if known[from].is_none() {
                known[from] = Some(self.read(&join.inputs[from])?);
            }
            let placed = known[from].clone().map(|batch| batch.placed(bases[from], bases[join.inputs.len()]));
            let wanted = self.keys_of(placed.as_slice(), key, scan, column)?;
            let Some(wanted) = wanted.filter(|wanted| wanted.values.is_some()) else { continue };
            let guard = self.want(scan, wanted);
            let batch = self.read(&join.inputs[input])?;
            drop(guard);
            sizes[input] = batch.rows;
            known[input] = Some(batch);
        }
        Ok(known)
    }

    /// Where PostgreSQL computes some inputs for each row of the others: those others, as far as they may raise an error, to be read
    /// whatever the former have.
    pub(super) fn read_whole(&self, join: &Join, known: &mut [Option<Batch>]) -> Result<(), EvalError> {
        if !join.per_row.contains(&true) {
            return Ok(());
        }
        let is_quiet = |node: &PlanNode, expr: &BoundExpr| self.is_quiet_over(node, expr);
        for (at, input) in join.inputs.iter().enumerate().filter(|(at, _)| !join.per_row[*at]) {
            if known[at].is_none() && !is_sound(input, &is_quiet) {
                known[at] = Some(self.read(input)?);
            }
        }
        Ok(())
    }

    /// The ways from one input of the join to another that is a large table.
    fn key_steps<'j>(&self, join: &'j Join, bases: &[usize]) -> Vec<KeyStep<'j>> {
        let ends = join.equalities.iter().chain(&join.implied).flat_map(|equality| [(equality, 0), (equality, 1)]);
        // Both sides of a hash join are computed with all of their keys.
        let raises = |input: usize| {
            let mut keys = join.equalities.iter().chain(&join.implied).flat_map(Equality::ends);
            keys.any(|(of, key)| of == input && may_raise_at(&join.inputs[input], bases[input], key))
        };
        let step = |(equality, end): (&'j Equality, usize)| {
            let (input, (from, key)) = (equality.ends()[end].0, equality.ends()[1 - end]);
            let computed = if join.per_row[input] { Computed::PerRow } else { Computed::Once };
            if computed != Computed::PerRow && raises(input) {
                return None;
            }
            let (column, scan) = self.target(equality, end, &join.inputs[input], bases[input], computed)?;
            Some(KeyStep { from, key, input, scan, column })
        };
        ends.filter_map(step).collect()
    }

    /// Whether the scan, which several threads could share, is read by keys instead: by a list, or by those of another input of a join.
    pub(super) fn reads_by_keys(&self, plan: &Plan, scan: &Scan) -> bool {
        let Ok(table) = self.table(scan.table) else { return false };
        let is_listed = |(at, filter): (usize, &BoundExpr)| {
            let listed = self.listed(scan, filter);
            listed.is_some_and(|(column, values)| {
                self.may_find_by(scan, at, table, column) && self.is_worth_finding(table, column, values.len())
            })
        };
        scan.filters.iter().enumerate().any(is_listed) || plan.trees().any(|tree| self.leads_to(tree, scan))
    }

    fn leads_to(&self, node: &PlanNode, scan: &Scan) -> bool {
        let is_quick = |from: &PlanNode, found: &Scan, column: usize| {
            std::ptr::eq(found, scan)
                && self.table(scan.table).is_ok_and(|table| self.may_find(table, column, self.estimate_closely(from)))
        };
        let mut leads = match node {
            PlanNode::Join(join) => {
                let steps = self.key_steps(join, &join.bases());
                steps.iter().any(|step| is_quick(&join.inputs[step.from], step.scan, step.column))
            }
            PlanNode::SideJoin(join) => {
                let by_left =
                    self.target_of(join).is_some_and(|(_, column, found)| is_quick(&join.left, found, column));
                let by_right = || {
                    let target = self.left_target_of(join);
                    target.is_some_and(|(_, column, found)| is_quick(&join.right, found, column))
                };
                by_left || by_right()
            }
            _ => false,
        };
        node.for_each_input(&mut |input| leads = leads || self.leads_to(input, scan));
        leads
    }

    /// The table's column that this end of an equality is, if the table is worth reading by keys. `base`: where the node's columns
    /// begin among those that the equality is over.
    fn target<'n>(
        &self,
        equality: &Equality,
        end: usize,
        node: &'n PlanNode,
        base: usize,
        computed: Computed,
    ) -> Option<(usize, &'n Scan)> {
        let BoundExpr::Column { index, .. } = equality.ends()[end].1 else { return None };
        if equality.is_null_safe || !is_indexable(equality.types[end], equality.types[1 - end]) {
            return None;
        }
        let is_per_row = computed == Computed::PerRow;
        let is_quiet = |node: &PlanNode, expr: &BoundExpr| self.is_quiet_over(node, expr);
        let way = way(node, index.checked_sub(base)?, is_per_row, &is_quiet)?;
        let Way { scan, column, is_quiet, is_unwrapped, .. } = way;
        let table = self.snapshot.tables.get(&scan.table)?;
        // Unless it goes by an index, PostgreSQL computes the conditions of all rows; whether it does hangs on what it takes to be cheaper.
        let is_free = is_quiet && (is_unwrapped || computed != Computed::WithValues);
        if !(is_free || is_per_row) {
            return None;
        }
        let is_large =
            table.rows >= INDEX_ROWS_MIN && table.schema.columns[column].pg_type == Some(equality.types[end]);
        (is_large && Some(scan.table) != self.changed && chosen_look_ups(scan, table).is_none())
            .then_some((column, scan))
    }

    /// The keys that these rows have, to be found in the scan's column. None: too many.
    fn keys_of(
        &self,
        batches: &[Batch],
        key: &BoundExpr,
        scan: &Scan,
        column: usize,
    ) -> Result<Option<Wanted>, EvalError> {
        let table = self.table(scan.table)?;
        let (from, to) = (type_of(key), table.schema.columns[column].pg_type.unwrap_or(PgType::Unknown));
        let mut keys = KeyTable::new(&[from], Purpose::Matches, 0)?;
        let mut distinct: Vec<ArrayRef> = Vec::new();
        for batch in batches {
            let values = self.environment.evaluate_column(key, batch)?;
            let before = keys.len();
            let ids = keys.assign(std::slice::from_ref(&values), batch.rows)?;
            let rows = UInt32Array::from(first_rows(&ids, before, keys.len()));
            distinct.push(take(&values, &rows, None).map_err(internal)?);
            if keys.len() * ROWS_PER_KEY > table.rows {
                return Ok(None);
            }
        }
        keys.settle();
        self.charge(keys.bytes())?;
        let values = match self.is_worth_finding(table, column, keys.len()) {
            true => {
                let all = concatenate(from, &distinct)?;
                let value = |row| as_column_type(value_at(all.as_ref(), from, row), to);
                Some((0..all.len()).filter_map(value).collect())
            }
            false => None,
        };
        Ok(Some(Wanted { column, keys, values }))
    }

    fn want(&self, scan: &Scan, wanted: Wanted) -> WantedHere<'_> {
        let place = std::ptr::from_ref(scan).addr();
        let before = self.state.wanted.borrow_mut().insert(place, Rc::new(wanted));
        WantedHere { run: self.state, place, before }
    }
}

/// From the rows of one input of a join by their key to the rows of another, which are a table's by a column.
#[derive(Clone, Copy)]
struct KeyStep<'j> {
    from: usize,
    key: &'j BoundExpr,
    input: usize,
    scan: &'j Scan,
    column: usize,
}

/// The rows of a side join's left side.
pub(super) struct LeftFirst<'r> {
    pub(super) batches: Vec<Batch>,
    /// As long as the right side is read.
    pub(super) _wanted: Option<WantedHere<'r>>,
}

/// What is wanted of a scan, until dropped: another execution of it wants something else, and so may a join further out.
pub(super) struct WantedHere<'r> {
    run: &'r super::State,
    place: usize,
    before: Option<Rc<Wanted>>,
}

impl Drop for WantedHere<'_> {
    fn drop(&mut self) {
        let mut wanted = self.run.wanted.borrow_mut();
        match self.before.take() {
            Some(before) => wanted.insert(self.place, before),
            None => wanted.remove(&self.place),
        };
    }
}

/// How PostgreSQL computes what is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Computed {
    /// For each row that it is joined with.
    PerRow,
    /// As a whole, or less if it has an index.
    Once,
    /// Likewise, with the values that are selected from it.
    WithValues,
}

/// From a node's column to the scan that its rows with a value in it are made of alone: other rows of the table make other rows of the node.
struct Way<'n> {
    scan: &'n Scan,
    /// Of its table.
    column: usize,
    /// No condition on the way raises an error.
    is_quiet: bool,
    /// Nor does any other expression.
    is_silent: bool,
    /// No other expression that raises an error is computed where it stands, in whichever query.
    is_unwrapped: bool,
    /// It leads through what PostgreSQL computes as a whole, whatever indexes there are: nothing above that may raise an error.
    is_fenced: bool,
}

/// Whether an expression raises no error on the node's rows.
type IsQuiet<'k> = dyn Fn(&PlanNode, &BoundExpr) -> bool + 'k;

impl<'n> Way<'n> {
    /// `node`: what the conditions are over.
    fn past<'e>(
        self,
        conditions: impl IntoIterator<Item = &'e BoundExpr>,
        node: &PlanNode,
        is_quiet: &IsQuiet<'_>,
    ) -> Option<Self> {
        let are_quiet = conditions.into_iter().all(|condition| is_quiet(node, condition));
        self.past_if(are_quiet)
    }

    fn past_if(self, are_quiet: bool) -> Option<Self> {
        let way = Self { is_quiet: self.is_quiet && are_quiet, is_silent: self.is_silent && are_quiet, ..self };
        (are_quiet || !self.is_fenced).then_some(way)
    }
}

/// `is_per_row`: PostgreSQL computes the node for each row of what it is joined with, so that it raises no errors for others; else nothing
/// may be left out that it computes as a whole and that can raise one.
fn way<'n>(node: &'n PlanNode, column: usize, is_per_row: bool, is_quiet: &IsQuiet<'_>) -> Option<Way<'n>> {
    let way = |node: &'n PlanNode, column| way(node, column, is_per_row, is_quiet);
    match node {
        PlanNode::Scan(scan) => {
            let column = *scan.columns.get(column)?;
            Way { scan, column, is_quiet: true, is_silent: true, is_unwrapped: true, is_fenced: false }.past(
                &scan.filters,
                node,
                is_quiet,
            )
        }
        PlanNode::Filter { input, predicates } => way(input, column)?.past(predicates, input, is_quiet),
        PlanNode::Project { input, expressions } => match expressions.get(column)? {
            BoundExpr::Column { index, .. } => {
                let way = way(input, *index)?;
                let is_silent = |expr: &BoundExpr| is_quiet(input, expr);
                let are_silent = expressions.iter().all(is_silent);
                // Where it is part of the query around it, they are computed above the join.
                let are_unwrapped = expressions.iter().all(|expr| is_silent(expr) || is_strict_in_a_column(expr));
                (are_silent || !way.is_fenced).then_some(Way {
                    is_silent: way.is_silent && are_silent,
                    is_unwrapped: way.is_unwrapped && are_unwrapped,
                    ..way
                })
            }
            _ => None,
        },
        PlanNode::Aggregate(aggregate) => match aggregate.groups.get(column)? {
            BoundExpr::Column { index, .. } if is_per_row || is_harmless(aggregate, is_quiet) => {
                Some(Way { is_fenced: !is_per_row, ..way(&aggregate.input, *index)? })
            }
            _ => None,
        },
        PlanNode::Window { input, calls } if column < input.width() => {
            let is_key = |key: &BoundExpr| matches!(key, BoundExpr::Column { index, .. } if *index == column);
            let is_sound = || {
                let is_quiet_here = |expr: &BoundExpr| is_quiet(input, expr);
                is_sound(input, is_quiet) && calls.iter().all(|call| is_harmless_window(call, &is_quiet_here))
            };
            if !calls.iter().all(|call| call.partition.iter().any(is_key)) || !(is_per_row || is_sound()) {
                return None;
            }
            let way = way(input, column)?;
            Some(Way { is_fenced: way.is_fenced || !is_per_row, ..way })
        }
        PlanNode::Join(join) => {
            let (input, column) = join.input_at(column);
            let bases = join.bases();
            let mut keys = join.equalities.iter().chain(&join.implied).flat_map(Equality::ends);
            let raise = keys.any(|(of, key)| may_raise_at(&join.inputs[of], bases[of], key));
            way(input, column)?.past(&join.filters, node, is_quiet)?.past_if(!raise)
        }
        PlanNode::SideJoin(join) if join.kind != SideKind::Full && column < join.left.width() => {
            let base = join.left.width();
            let raises = |equality: &Equality| {
                may_raise_at(&join.left, 0, &equality.left) || may_raise_at(&join.right, base, &equality.right)
            };
            // What is computed for each row of the left side, and may raise an error or find too many, is computed for all of them.
            let is_asked_by_row =
                join.kind == SideKind::Single || (join.is_per_row && !is_sound(&join.right, is_quiet));
            way(&join.left, column)?
                .past(join.filters.iter().chain(&join.test), node, is_quiet)?
                .past_if(!(is_asked_by_row || join.equalities.iter().any(raises)))
        }
        // A subquery with an order is computed by itself (prepjointree.c, is_simple_subquery).
        PlanNode::Sort { input, limit: None, offset: None, .. } => {
            let way = way(input, column).filter(|way| is_per_row || way.is_silent)?;
            Some(Way { is_fenced: way.is_fenced || !is_per_row, ..way })
        }
        _ => None,
    }
}

/// Whether PostgreSQL computes it above an outer join that may make its row up: it is NULL then by itself (prepjointree.c,
/// pullup_replace_vars_callback).
fn is_strict_in_a_column(expr: &BoundExpr) -> bool {
    fn is_strict(expr: &BoundExpr) -> bool {
        match expr {
            BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => true,
            BoundExpr::Call { function, arguments, .. } => function.is_strict && arguments.iter().all(is_strict),
            _ => false,
        }
    }
    is_strict(expr) && !is_row_independent(expr)
}

/// Whether no group raises an error, whatever it has.
fn is_harmless(aggregate: &Aggregate, is_quiet: &IsQuiet<'_>) -> bool {
    let is_quiet_here = |expr: &BoundExpr| is_quiet(&aggregate.input, expr);
    let is_sure = |call: &Call| {
        let argument = call.argument.and_then(|argument| aggregate.arguments.get(argument));
        has_value(call.function, argument) && call.order.is_empty() && call.filter.iter().all(is_quiet_here)
    };
    aggregate.arguments.iter().chain(&aggregate.groups).all(is_quiet_here)
        && aggregate.calls.iter().all(is_sure)
        && is_sound(&aggregate.input, is_quiet)
}

/// Whether nothing that the node's rows are made of raises an error.
fn is_sound(node: &PlanNode, is_quiet: &IsQuiet<'_>) -> bool {
    let are_quiet = |input: &PlanNode, all: &[BoundExpr]| all.iter().all(|expr| is_quiet(input, expr));
    match node {
        PlanNode::Scan(scan) => are_quiet(node, &scan.filters),
        PlanNode::Filter { input, predicates } => are_quiet(input, predicates) && is_sound(input, is_quiet),
        PlanNode::Project { input, expressions } => are_quiet(input, expressions) && is_sound(input, is_quiet),
        PlanNode::Aggregate(aggregate) => is_harmless(aggregate, is_quiet),
        _ => false,
    }
}
