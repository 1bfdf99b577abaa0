//! Aggregates brought up to date: what an execution kept of its groups, less the rows that a change took away, plus those that
//! it added. See [`crate::planner::upkeep`] for which aggregates that is possible of, and why it is exact.
//!
//! What the changes take away and add comes from the same operators, run on a snapshot in which the table has these rows alone. In
//! doubt (a NaN, an extreme that is gone) there is no answer, and the rows are aggregated anew.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type};

use super::accumulate::quotient;
use super::aggregate::TOO_MANY_GROUPS;
use super::arrays::{concatenate, internal};
use super::batch::Batch;
use super::key_table::{KeyTable, Purpose};
use super::{RowBatch, Run, RunContext, State, execute_given, parallel};
use crate::catalog::RelationId;
use crate::catalog::functions::EvalError;
use crate::change_log::RowChanges;
use crate::planner::Plan;
use crate::planner::expression::type_of;
use crate::planner::upkeep::{Kept, Part, Upkeep};
use crate::planted::{Bug, is_planted};
use crate::snapshot::Snapshot;
use crate::table::{Chunk, TableVersion};
use crate::types::access::value_at;
use crate::types::build::ColumnBuilder;
use crate::types::numeric::{NumericBuilder, numeric_at};
use crate::types::{Numeric, PgType, Value};

/// More groups than this are not kept.
pub(super) const GROUPS_MAX: usize = 65_536;

/// The groups of one aggregate at one moment of its tables.
#[derive(Clone, Debug)]
pub struct KeptGroups {
    /// One array per GROUP BY expression.
    keys: Vec<ArrayRef>,
    groups: usize,
    /// By call of [`Upkeep::base`], a value for each group.
    values: Vec<Values>,
}

#[derive(Clone, Debug)]
enum Values {
    Counts(Vec<i64>),
    /// Mantissas, at the sum's one scale; 0 where nothing counts.
    Sums(Vec<i128>),
    /// NULL where nothing counts.
    Extremes(Vec<Value>),
}

/// The changes of one table, oldest first.
pub type TableChanges = (RelationId, Vec<Arc<RowChanges>>);

/// Runs the plan and keeps the groups; None: they are too many, or have values that cannot be kept.
pub fn execute_keeping(
    plan: &Plan,
    upkeep: &Upkeep,
    context: &RunContext<'_>,
) -> Result<(Vec<RowBatch>, Option<KeptGroups>), EvalError> {
    let groups = match parallel::groups(plan, upkeep, context)? {
        Some(groups) => Some(groups),
        None => KeptGroups::compute(plan, upkeep, context, GROUPS_MAX)?,
    };
    match groups {
        Some(groups) => Ok((groups.finish(plan, upkeep, context)?, Some(groups))),
        None => Ok((execute_given(plan, context, None)?, None)),
    }
}

/// Runs the plan with the groups brought up to date by `changes`, which lead to the context's snapshot. None: they cannot be.
pub fn execute_updated(
    plan: &Plan,
    upkeep: &Upkeep,
    groups: &KeptGroups,
    changes: &[TableChanges],
    context: &RunContext<'_>,
) -> Result<Option<(Vec<RowBatch>, KeptGroups)>, EvalError> {
    if changes.is_empty() {
        // Only what is read above the groups has changed.
        return Ok(Some((groups.finish(plan, upkeep, context)?, groups.clone())));
    }
    let compute = |images: fn(&RowChanges) -> &[Arc<Chunk>]| {
        let snapshot = snapshot_of(context.snapshot, upkeep.table, changes, images)?;
        let context = RunContext { snapshot: &snapshot, changed: Some(upkeep.table), ..context.clone() };
        KeptGroups::compute(plan, upkeep, &context, GROUPS_MAX)
    };
    let (Some(lost), Some(gained)) = (compute(|changes| &changes.old)?, compute(|changes| &changes.new)?) else {
        return Ok(None);
    };
    // What one change gives and the next takes is among both else.
    let is_net = changes.iter().all(|(_, changes)| changes.len() <= 1);
    let updated = groups.updated(upkeep, &lost, &gained, is_net)?;
    let Some(groups) = updated.filter(|groups| groups.groups <= GROUPS_MAX) else { return Ok(None) };
    let batches = groups.finish(plan, upkeep, context)?;
    Ok(Some((batches, groups)))
}

/// The snapshot with `table` having only these images of changed rows.
fn snapshot_of(
    snapshot: &Snapshot,
    table: RelationId,
    changes: &[TableChanges],
    images: fn(&RowChanges) -> &[Arc<Chunk>],
) -> Result<Snapshot, EvalError> {
    let known = |relation: &RelationId| {
        let version = snapshot.tables.get(relation);
        version.ok_or_else(|| EvalError::Beyond(format!("table {} is not in the snapshot", relation.0)))
    };
    let mut of_changes: HashMap<RelationId, TableVersion> = HashMap::new();
    for (relation, changes) in changes {
        let version = known(relation)?;
        let chunks: Vec<&Chunk> = changes.iter().flat_map(|changes| images(changes)).map(|chunk| &**chunk).collect();
        of_changes.insert(*relation, TableVersion::of_rows(Arc::clone(&version.schema), &chunks, version.generation));
    }
    let only = match snapshot.catalog.partitioned.get(&table) {
        None => of_changes.remove(&table).ok_or_else(|| EvalError::Beyond("no changes of the table".to_owned()))?,
        Some(partitioned) => {
            for leaf in &partitioned.leaves {
                let version = known(&leaf.table)?;
                let unchanged = || TableVersion::empty(Arc::clone(&version.schema), version.generation);
                of_changes.entry(leaf.table).or_insert_with(unchanged);
            }
            let parts = partitioned.leaves.iter().map(|leaf| (&of_changes[&leaf.table], &leaf.columns[..]));
            TableVersion::union(Arc::clone(&partitioned.schema), parts)
        }
    };
    let mut tables = snapshot.tables.clone();
    tables.insert(table, Arc::new(only));
    Ok(snapshot.with_tables(tables))
}

impl KeptGroups {
    /// None: they are more than `groups_max`, or have values that cannot be kept.
    pub(super) fn compute(
        plan: &Plan,
        upkeep: &Upkeep,
        context: &RunContext<'_>,
        groups_max: usize,
    ) -> Result<Option<Self>, EvalError> {
        let state = State { groups_max, ..State::new(plan, context) };
        let run = Run::new(plan, context, context.parameters, &state);
        let mut result = None;
        let ended = run.aggregate(&upkeep.base, &mut |batch: Batch| {
            result = Some(batch);
            Ok(ControlFlow::Continue(()))
        });
        match ended {
            Err(EvalError::OverBudget(TOO_MANY_GROUPS)) => return Ok(None),
            other => drop(other?),
        }
        let keys = upkeep.base.groups.len();
        let Some(batch) = result else { return Ok(Some(Self::empty(upkeep))) };
        let mut values = Vec::with_capacity(upkeep.kept.len());
        for (at, kept) in upkeep.kept.iter().enumerate() {
            let Some(own) = Values::of(*kept, &batch.column(keys + at)?) else { return Ok(None) };
            values.push(own);
        }
        let keys = (0..keys).map(|key| batch.column(key)).collect::<Result<_, _>>()?;
        Ok(Some(Self { keys, groups: batch.rows, values }))
    }

    fn empty(upkeep: &Upkeep) -> Self {
        let values = upkeep.kept.iter().map(|kept| Values::empty(*kept)).collect();
        let keys = upkeep.base.groups.iter().map(|group| crate::types::access::empty_array(type_of(group))).collect();
        Self { keys, groups: 0, values }
    }

    /// The rest of the plan over the groups.
    pub(super) fn finish(
        &self,
        plan: &Plan,
        upkeep: &Upkeep,
        context: &RunContext<'_>,
    ) -> Result<Vec<RowBatch>, EvalError> {
        let mut columns = self.keys.clone();
        for part in &upkeep.parts {
            columns.push(self.result(*part)?);
        }
        let given = RowBatch { columns, rows: self.groups };
        execute_given(plan, context, Some((upkeep.address, given)))
    }

    fn counts(&self, call: usize) -> &[i64] {
        match &self.values[call] {
            Values::Counts(counts) => counts,
            Values::Sums(_) | Values::Extremes(_) => &[],
        }
    }

    /// The results of a call as its own states would have given them (`accumulate::count`, `integer`, `numeric`, `extreme`).
    fn result(&self, part: Part) -> Result<ArrayRef, EvalError> {
        let sum_of = |sum: usize, count: usize, group: usize| match &self.values[sum] {
            Values::Sums(sums) if self.counts(count)[group] > 0 => Some(sums[group]),
            _ => None,
        };
        Ok(match part {
            Part::Count(count) => Arc::new(Int64Array::from(self.counts(count).to_vec())),
            Part::Sum { sum, count, result: PgType::Int8, .. } => {
                let sums = (0..self.groups).map(|group| match sum_of(sum, count, group) {
                    Some(value) => i64::try_from(value).map(Some).map_err(|_| beyond("a sum of more than 64 bits")),
                    None => Ok(None),
                });
                Arc::new(sums.collect::<Result<Int64Array, _>>()?)
            }
            Part::Sum { sum, count, scale, .. } => {
                let mut results = NumericBuilder::with_capacity(self.groups);
                for group in 0..self.groups {
                    results.append_option(sum_of(sum, count, group).map(|mantissa| Numeric::of_i128(mantissa, scale)));
                }
                results.finish()
            }
            Part::Average { sum, count, scale } => {
                let mut results = NumericBuilder::with_capacity(self.groups);
                for group in 0..self.groups {
                    let sum = sum_of(sum, count, group).map(|mantissa| Numeric::of_i128(mantissa, scale));
                    let average = sum.map(|sum| quotient(sum, self.counts(count)[group])).transpose()?;
                    results.append_option(average);
                }
                results.finish()
            }
            Part::Extreme { extreme, pg_type } => {
                let mut results = ColumnBuilder::with_capacity(pg_type, -1, self.groups);
                if let Values::Extremes(values) = &self.values[extreme] {
                    values.iter().for_each(|value| results.append_value(value));
                }
                results.finish()
            }
        })
    }

    /// The groups of shares of a table as those of the whole. None: it cannot be said.
    pub(super) fn together(parts: Vec<Self>, upkeep: &Upkeep) -> Result<Option<Self>, EvalError> {
        let nothing = Self::empty(upkeep);
        let mut parts = parts.into_iter();
        let Some(mut whole) = parts.next() else { return Ok(None) };
        for part in parts {
            match whole.updated(upkeep, &nothing, &part, true)? {
                Some(groups) => whole = groups,
                None => return Ok(None),
            }
        }
        Ok(Some(whole))
    }

    /// The groups without the rows behind `lost` and with those behind `gained`, of which none is among the lost if `is_net`. None:
    /// it cannot be said.
    fn updated(&self, upkeep: &Upkeep, lost: &Self, gained: &Self, is_net: bool) -> Result<Option<Self>, EvalError> {
        let types: Vec<PgType> = upkeep.base.groups.iter().map(type_of).collect();
        let all = [self, lost, gained];
        let mut keys = Vec::with_capacity(types.len());
        for (at, pg_type) in types.iter().enumerate() {
            let pieces = all.map(|groups| groups.keys[at].clone());
            keys.push(concatenate(*pg_type, &pieces)?);
        }
        let rows = all.iter().map(|groups| groups.groups).sum();
        let (ids, count) = match types.is_empty() {
            true => (vec![0; rows], 1),
            false => {
                let mut table = KeyTable::new(&types, Purpose::Groups, rows)?;
                let ids = table.assign(&keys, rows)?;
                (ids, table.len())
            }
        };
        let (of_lost, of_gained) = ids[self.groups..].split_at(lost.groups);
        let mut values: Vec<Values> = self.values.iter().map(|own| own.resized(count)).collect();
        let mut open = Vec::new();
        for (at, own) in values.iter_mut().enumerate() {
            let (lost, gained) = ((&lost.values[at], of_lost), (&gained.values[at], of_gained));
            match own.update(lost, gained, upkeep.kept[at], is_net) {
                Some(groups) => open.extend(groups.into_iter().map(|group| (at, group))),
                None => return Ok(None),
            }
        }
        let updated = Self { keys, groups: count, values };
        // Where no value is left, NULL is what is left of the extreme.
        let is_known = |(at, group): &(usize, u32)| match upkeep.kept[*at] {
            Kept::Least { count, .. } | Kept::Greatest { count, .. } => updated.counts(count)[*group as usize] == 0,
            Kept::Count | Kept::Sum { .. } => false,
        };
        if !open.iter().all(is_known) {
            return Ok(None);
        }
        updated.without_empty(&ids, !types.is_empty()).map(Some)
    }

    /// Drops groups that have no rows any more, and brings the keys, one per row of `ids` so far, to one per group.
    fn without_empty(mut self, ids: &[u32], has_groups: bool) -> Result<Self, EvalError> {
        if !has_groups {
            return Ok(self);
        }
        let firsts = super::key_table::first_rows(ids, 0, self.groups);
        let kept: Vec<usize> = (0..self.groups).filter(|group| self.counts(0)[*group] > 0).collect();
        let rows = UInt32Array::from_iter_values(kept.iter().map(|group| firsts[*group]));
        for key in &mut self.keys {
            *key = take(key, &rows, None).map_err(internal)?;
        }
        if kept.len() < self.groups {
            self.values.iter_mut().for_each(|values| *values = values.picked(&kept));
        }
        self.groups = kept.len();
        Ok(self)
    }

    /// Whether both have the same groups with the same values.
    pub fn is_same(&self, other: &Self, upkeep: &Upkeep) -> Result<bool, EvalError> {
        if self.groups != other.groups {
            return Ok(false);
        }
        let types: Vec<PgType> = upkeep.base.groups.iter().map(type_of).collect();
        let ids: Vec<u32> = match types.is_empty() {
            true => (0..self.groups as u32).collect(),
            false => {
                let mut table = KeyTable::new(&types, Purpose::Groups, self.groups)?;
                table.assign(&self.keys, self.groups)?;
                table.find(&other.keys, other.groups)?
            }
        };
        let is_same = |(at, id): (usize, &u32)| {
            *id != KeyTable::NONE
                && self.values.iter().zip(&other.values).all(|(a, b)| a.is_identical(*id as usize, b, at))
                && types.iter().zip(self.keys.iter().zip(&other.keys)).all(|(pg_type, (a, b))| {
                    value_at(a, *pg_type, *id as usize).is_identical(&value_at(b, *pg_type, at))
                })
        };
        Ok(ids.iter().enumerate().all(is_same))
    }

    /// About what it occupies.
    pub fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|key| key.get_array_memory_size()).sum();
        let values = self.values.iter().map(|values| match values {
            Values::Counts(counts) => counts.len() * size_of::<i64>(),
            Values::Sums(sums) => sums.len() * size_of::<i128>(),
            Values::Extremes(values) => values.len() * size_of::<Value>(),
        });
        size_of::<Self>() + keys + values.sum::<usize>()
    }
}

impl Values {
    fn empty(kept: Kept) -> Self {
        match kept {
            Kept::Count => Self::Counts(Vec::new()),
            Kept::Sum { .. } => Self::Sums(Vec::new()),
            Kept::Least { .. } | Kept::Greatest { .. } => Self::Extremes(Vec::new()),
        }
    }

    /// None: there is a value that cannot be kept (a NaN, a scale that is not the one that all should have).
    fn of(kept: Kept, array: &ArrayRef) -> Option<Self> {
        match kept {
            Kept::Count => Some(Self::Counts(array.as_primitive::<Int64Type>().values().to_vec())),
            Kept::Sum { .. } if *array.data_type() == DataType::Int64 => {
                let sums = array.as_primitive::<Int64Type>().iter();
                Some(Self::Sums(sums.map(|sum| i128::from(sum.unwrap_or(0))).collect()))
            }
            Kept::Sum { scale } => {
                let sum = |row| match numeric_at(array.as_ref(), row) {
                    None => Some(0),
                    Some(Numeric::Finite { mantissa, scale: own }) if own == scale => Some(mantissa),
                    Some(_) => None,
                };
                (0..array.len()).map(sum).collect::<Option<_>>().map(Self::Sums)
            }
            Kept::Least { pg_type, .. } | Kept::Greatest { pg_type, .. } => {
                Some(Self::Extremes((0..array.len()).map(|row| value_at(array.as_ref(), pg_type, row)).collect()))
            }
        }
    }

    fn resized(&self, groups: usize) -> Self {
        let mut own = self.clone();
        match &mut own {
            Self::Counts(counts) => counts.resize(groups, 0),
            Self::Sums(sums) => sums.resize(groups, 0),
            Self::Extremes(values) => values.resize(groups, Value::Null),
        }
        own
    }

    fn picked(&self, groups: &[usize]) -> Self {
        match self {
            Self::Counts(counts) => Self::Counts(groups.iter().map(|group| counts[*group]).collect()),
            Self::Sums(sums) => Self::Sums(groups.iter().map(|group| sums[*group]).collect()),
            Self::Extremes(values) => Self::Extremes(groups.iter().map(|group| values[*group].clone()).collect()),
        }
    }

    /// Takes away what is lost and adds what is gained, each a value for each of its groups. Some: the groups whose extreme
    /// is not known now, unless they have no values any more; None: nothing is.
    fn update(
        &mut self,
        (lost, of_lost): (&Self, &[u32]),
        (gained, of_gained): (&Self, &[u32]),
        kept: Kept,
        is_net: bool,
    ) -> Option<Vec<u32>> {
        let of_lost = if is_planted(Bug::KeepRows) { &[][..] } else { of_lost };
        match (self, lost, gained) {
            (Self::Counts(own), Self::Counts(lost), Self::Counts(gained)) => {
                of_lost.iter().zip(lost).for_each(|(group, rows)| own[*group as usize] -= rows);
                of_gained.iter().zip(gained).for_each(|(group, rows)| own[*group as usize] += rows);
                own.iter().all(|count| *count >= 0).then(Vec::new)
            }
            (Self::Sums(own), Self::Sums(lost), Self::Sums(gained)) => {
                for (group, sum) in of_lost.iter().zip(lost) {
                    own[*group as usize] = own[*group as usize].checked_sub(*sum)?;
                }
                for (group, sum) in of_gained.iter().zip(gained) {
                    own[*group as usize] = own[*group as usize].checked_add(*sum)?;
                }
                Some(Vec::new())
            }
            (Self::Extremes(own), Self::Extremes(lost), Self::Extremes(gained)) => {
                update_extremes(own, (lost, of_lost), (gained, of_gained), kept, is_net)
            }
            _ => None,
        }
    }

    fn is_identical(&self, at: usize, other: &Self, other_at: usize) -> bool {
        match (self, other) {
            (Self::Counts(own), Self::Counts(other)) => own[at] == other[other_at],
            (Self::Sums(own), Self::Sums(other)) => own[at] == other[other_at],
            (Self::Extremes(own), Self::Extremes(other)) => own[at].is_identical(&other[other_at]),
            _ => false,
        }
    }
}

/// Where the extreme itself is lost, another row may have it too, and the next one is not known, unless what is gained is more
/// extreme than all that is lost, so that it is not lost again; or, if that is sure anyway, as extreme: the groups where it is not.
fn update_extremes(
    own: &mut [Value],
    (lost, of_lost): (&[Value], &[u32]),
    (gained, of_gained): (&[Value], &[u32]),
    kept: Kept,
    is_net: bool,
) -> Option<Vec<u32>> {
    let surpasses = |a: &Value, b: &Value| match (a.ordinal(), b.ordinal(), kept) {
        (Some(a), Some(b), Kept::Least { .. }) => a < b,
        (Some(a), Some(b), _) => a > b,
        (a, b, _) => a.is_some() && b.is_none(),
    };
    let mut open: HashMap<u32, &Value> = HashMap::new();
    for (group, value) in of_lost.iter().zip(lost) {
        let extreme = &mut own[*group as usize];
        if surpasses(value, extreme) {
            return None;
        }
        if !value.is_null() && !surpasses(extreme, value) {
            *extreme = Value::Null;
            open.insert(*group, value);
        }
    }
    for (group, value) in of_gained.iter().zip(gained) {
        let extreme = &mut own[*group as usize];
        let is_known = match open.get(group) {
            Some(lost) => surpasses(value, lost) || is_net && !surpasses(lost, value),
            None => surpasses(value, extreme),
        };
        if is_known {
            extreme.clone_from(value);
            open.remove(group);
        }
    }
    Some(open.into_keys().collect())
}

fn beyond(what: &str) -> EvalError {
    EvalError::Beyond(what.to_owned())
}
