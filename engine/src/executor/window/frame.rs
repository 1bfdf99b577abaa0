//! Which rows a frame takes in (PostgreSQL: nodeWindowAgg.c, update_frameheadpos, update_frametailpos, row_is_in_frame).
//!
//! A RANGE frame with a distance is walked as PostgreSQL walks it: an edge moves forward only, so that where in_range is not
//! monotone (a month after the 30th and the 31st of January) the rows are the same as upstream's.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType};

use super::Sorted;
use crate::binder::{FrameBound, SortKey, WindowCall};
use crate::catalog::functions::{EvalContext, EvalError};
use crate::executor::eval::{Environment, constant};
use crate::executor::order::compare_floats;
use crate::planner::expression::type_of;
use crate::planted::{Bug, is_planted};
use crate::statement::ast::{Exclusion, FrameUnit};
use crate::types::access::interval_of;
use crate::types::datetime::arithmetic::{add_to_timestamp, add_to_timestamptz, date_to_timestamp};
use crate::types::datetime::calendar::MICROSECONDS_PER_DAY;
use crate::types::datetime::zone::OffsetCursor;
use crate::types::numeric::NumericColumn;
use crate::types::{Interval, Numeric, PgType, Value, interval};

/// A larger distance may overflow PostgreSQL's arithmetic with positions.
const DISTANCE_MAX: i64 = i64::MAX >> 2;

enum Edge {
    Start,
    Before(usize),
    Current,
    After(usize),
    End,
    /// By place in the order: where the frame begins, or ends (exclusive).
    Places(Vec<u32>),
}

pub(super) struct Frames<'s> {
    sorted: &'s Sorted,
    unit: FrameUnit,
    exclusion: Exclusion,
    start: Edge,
    end: Edge,
}

impl<'s> Frames<'s> {
    /// `key`: the values of the only ORDER BY key in sorted order, for RANGE with a distance.
    pub(super) fn new(
        sorted: &'s Sorted,
        call: &WindowCall,
        key: Option<&ArrayRef>,
        environment: Environment<'_>,
    ) -> Result<Self, EvalError> {
        let edge = |bound: &FrameBound, is_start: bool| {
            let (distance, is_before) = match bound {
                FrameBound::UnboundedPreceding => return Ok(Edge::Start),
                FrameBound::CurrentRow => return Ok(Edge::Current),
                FrameBound::UnboundedFollowing => return Ok(Edge::End),
                FrameBound::Preceding(distance) => (distance, true),
                FrameBound::Following(distance) => (distance, false),
            };
            let distance = constant(distance, environment.parameters, environment.context)?;
            if call.frame.unit != FrameUnit::Range {
                let rows = rows(&distance)?;
                return Ok(if is_before { Edge::Before(rows) } else { Edge::After(rows) });
            }
            let (Some(values), [key]) = (key, call.order.as_slice()) else {
                return Err(EvalError::Beyond("RANGE without one key".to_owned()));
            };
            let walk = Walk { sorted, values, key, is_start, is_before };
            Ok(Edge::Places(walk.places(&distance, environment.context)?))
        };
        let frame = &call.frame;
        let (start, end) = (edge(&frame.start, true)?, edge(&frame.end, false)?);
        Ok(Self { sorted, unit: frame.unit, exclusion: frame.exclusion, start, end })
    }

    /// The places from (inclusive) and to (exclusive) that the frame of a place has, before any exclusion.
    pub(super) fn of(&self, at: usize) -> (usize, usize) {
        let sorted = self.sorted;
        let partition = sorted.partition_of[at] as usize;
        let (low, high) = (sorted.partitions[partition], sorted.partitions[partition + 1]);
        if self.unit == FrameUnit::Rows {
            let late = usize::from(is_planted(Bug::ShiftFrame) && matches!(self.start, Edge::Before(_)));
            let start = match &self.start {
                Edge::Start => low,
                Edge::Before(distance) => at.saturating_sub(*distance).max(low) + late,
                Edge::Current => at,
                Edge::After(distance) => at.saturating_add(*distance).min(high),
                Edge::End => high,
                Edge::Places(places) => places[at] as usize,
            };
            let end = match &self.end {
                Edge::Start => low,
                Edge::Before(distance) => (at + 1).saturating_sub(*distance).max(low),
                Edge::Current => at + 1,
                Edge::After(distance) => at.saturating_add(*distance).saturating_add(1).min(high),
                Edge::End => high,
                Edge::Places(places) => places[at] as usize,
            };
            return (start, end);
        }
        let group = sorted.group_of[at] as usize;
        let (first, last) = (sorted.group_of[low] as usize, sorted.group_of[high - 1] as usize);
        let begin = |group: usize| sorted.groups[group];
        let start = match &self.start {
            Edge::Start => low,
            Edge::Before(distance) => begin(group.saturating_sub(*distance).max(first)),
            Edge::Current => begin(group),
            Edge::After(distance) => begin(group.saturating_add(*distance).min(last + 1)),
            Edge::End => high,
            Edge::Places(places) => places[at] as usize,
        };
        let end = match &self.end {
            Edge::Start => low,
            Edge::Before(distance) => begin((group + 1).saturating_sub(*distance).max(first)),
            Edge::Current => begin(group + 1),
            Edge::After(distance) => begin(group.saturating_add(*distance).min(last) + 1),
            Edge::End => high,
            Edge::Places(places) => places[at] as usize,
        };
        (start, end)
    }

    /// The places that the frame of `at` has, in order: what is excluded is one hole, in which the row itself may be left.
    pub(super) fn members(&self, at: usize) -> [Range<usize>; 3] {
        let (start, end) = self.of(at);
        let (from, to) = match self.exclusion {
            Exclusion::Nothing => return [start..end, 0..0, 0..0],
            Exclusion::CurrentRow => (at, at + 1),
            Exclusion::Group | Exclusion::Ties => self.peers(at),
        };
        let is_left = self.exclusion == Exclusion::Ties && (start..end).contains(&at);
        [start..end.min(from), if is_left { at..at + 1 } else { 0..0 }, start.max(to)..end]
    }

    /// Whether the frame of `at` leaves `member` out.
    fn is_excluded(&self, at: usize, member: usize) -> bool {
        let is_peer = || self.sorted.group_of[at] == self.sorted.group_of[member];
        match self.exclusion {
            Exclusion::Nothing => false,
            Exclusion::CurrentRow => member == at,
            Exclusion::Group => is_peer(),
            Exclusion::Ties => member != at && is_peer(),
        }
    }

    /// The place of the frame's row number `distance`, counted from 0 (WinGetFuncArgInFrame with WINDOW_SEEK_HEAD).
    pub(super) fn nth_of_frame(&self, at: usize, distance: usize) -> Option<usize> {
        let (head, tail) = self.of(at);
        let mut place = head.saturating_add(distance);
        let (first, end) = self.peers(at);
        let meets_peers = place >= first && end > head;
        let overlap = first.max(head);
        match self.exclusion {
            Exclusion::Nothing => {}
            Exclusion::CurrentRow if place >= at && at >= head => place += 1,
            Exclusion::Group if meets_peers => place += end - overlap,
            // Even where the current row is not in the frame: then PostgreSQL finds nothing.
            Exclusion::Ties if meets_peers && place == overlap => place = at,
            Exclusion::Ties if meets_peers => place += end - overlap - 1,
            Exclusion::CurrentRow | Exclusion::Group | Exclusion::Ties => {}
        }
        (place >= head && place < tail && !self.is_excluded(at, place)).then_some(place)
    }

    /// The place of the frame's last row (WINDOW_SEEK_TAIL).
    pub(super) fn last_of_frame(&self, at: usize) -> Option<usize> {
        let (head, tail) = self.of(at);
        let mut place = tail.checked_sub(1)?;
        let (first, end) = self.peers(at);
        let meets_peers = place < end && first < tail;
        let overlap = end.min(tail);
        match self.exclusion {
            Exclusion::Nothing => {}
            Exclusion::CurrentRow if place <= at && at < tail => place = place.checked_sub(1)?,
            Exclusion::Group if meets_peers => place = place.checked_sub(overlap - first)?,
            Exclusion::Ties if meets_peers && place == overlap - 1 => place = at,
            Exclusion::Ties if meets_peers => place = place.checked_sub(overlap - 1 - first)?,
            Exclusion::CurrentRow | Exclusion::Group | Exclusion::Ties => {}
        }
        (place >= head && place < tail && !self.is_excluded(at, place)).then_some(place)
    }

    /// Where the group of peers begins and ends.
    fn peers(&self, at: usize) -> (usize, usize) {
        let group = self.sorted.group_of[at] as usize;
        (self.sorted.groups[group], self.sorted.groups[group + 1])
    }
}

/// Raises what PostgreSQL raises for a distance whether or not the function looks at its frame, and whether or not there are
/// rows (calculate_frame_offsets); with RANGE and no rows PostgreSQL allows a negative one.
pub(super) fn check_distances(call: &WindowCall, environment: Environment<'_>) -> Result<(), EvalError> {
    for bound in [&call.frame.start, &call.frame.end] {
        let (FrameBound::Preceding(distance) | FrameBound::Following(distance)) = bound else { continue };
        let is_fine = match constant(distance, environment.parameters, environment.context)? {
            Value::Int2(distance) => distance >= 0,
            Value::Int4(distance) => distance >= 0,
            Value::Int8(distance) => distance >= 0,
            Value::Float8(distance) => distance >= 0.0,
            Value::Numeric(distance) => !distance.is_nan() && distance.signum() >= 0,
            // A time's looks at the microseconds alone, the others' at the whole.
            Value::Interval(span) => interval::comparison_key(&span) >= 0 && span.microseconds >= 0,
            _ => false,
        };
        if !is_fine {
            return Err(negative());
        }
    }
    Ok(())
}

fn negative() -> EvalError {
    EvalError::Raises("frame offset must not be null or negative".to_owned())
}

fn rows(distance: &Value) -> Result<usize, EvalError> {
    match distance {
        Value::Int8(distance) if *distance > DISTANCE_MAX => Err(EvalError::Beyond("frame of so many rows".to_owned())),
        Value::Int8(distance) => usize::try_from(*distance).map_err(|_| negative()),
        _ => Err(negative()),
    }
}

/// How far a distance reaches from one row.
enum Reach<T> {
    To(T),
    /// An infinite distance from infinity towards the other one: PostgreSQL counts every value in, but for NaN (this value),
    /// which is greater than any.
    AllButNan(T),
}

/// One edge of RANGE frames, row by row.
struct Walk<'s> {
    sorted: &'s Sorted,
    values: &'s ArrayRef,
    key: &'s SortKey,
    is_start: bool,
    is_before: bool,
}

impl Walk<'_> {
    fn places(&self, distance: &Value, context: &EvalContext<'_>) -> Result<Vec<u32>, EvalError> {
        // inRangeAsc: in descending order what precedes is larger.
        let subtracts = self.is_before != self.key.descending;
        match type_of(&self.key.expr) {
            pg_type @ (PgType::Int2 | PgType::Int4 | PgType::Int8) => {
                let distance = match distance {
                    Value::Int2(distance) => i64::from(*distance),
                    Value::Int4(distance) => i64::from(*distance),
                    Value::Int8(distance) => *distance,
                    _ => return Err(negative()),
                };
                let values = integers(self.values, pg_type);
                let signed = signed(i128::from(distance), subtracts);
                self.walk(&|at| values[at], &|value| Ok(Reach::To(value + signed)), &|a, b| a.cmp(b))
            }
            PgType::Float4 | PgType::Float8 => self.floats(distance, subtracts),
            PgType::Numeric => self.numerics(distance, subtracts),
            pg_type => {
                let Value::Interval(span) = distance else { return Err(negative()) };
                self.times(pg_type, span, subtracts, context)
            }
        }
    }

    /// in_range_float8_float8.
    fn floats(&self, distance: &Value, subtracts: bool) -> Result<Vec<u32>, EvalError> {
        let Value::Float8(distance) = *distance else { return Err(negative()) };
        let values: Vec<f64> = match type_of(&self.key.expr) {
            PgType::Float4 => {
                self.values.as_primitive::<Float32Type>().values().iter().map(|v| f64::from(*v)).collect()
            }
            _ => self.values.as_primitive::<Float64Type>().values().to_vec(),
        };
        let reach = |base: f64| {
            let away = if subtracts { f64::INFINITY } else { f64::NEG_INFINITY };
            let sum = if subtracts { base - distance } else { base + distance };
            Ok(if distance.is_infinite() && base == away { Reach::AllButNan(f64::NAN) } else { Reach::To(sum) })
        };
        self.walk(&|at| values[at], &reach, &|a, b| compare_floats(*a, *b))
    }

    /// in_range_numeric_numeric.
    fn numerics(&self, distance: &Value, subtracts: bool) -> Result<Vec<u32>, EvalError> {
        let Value::Numeric(distance) = *distance else { return Err(negative()) };
        let values = NumericColumn::of(self.values);
        let away = if subtracts { Numeric::PositiveInfinity } else { Numeric::NegativeInfinity };
        let reach = |base: Numeric| {
            if !distance.is_finite() && base == away {
                return Ok(Reach::AllButNan(Numeric::NaN));
            }
            Ok(Reach::To(if subtracts { base.sub(distance)? } else { base.add(distance)? }))
        };
        self.walk(&|at| values.get(at), &reach, &|a, b| a.cmp(*b))
    }

    /// in_range_date_interval, in_range_time_interval, in_range_timestamp_interval, in_range_timestamptz_interval,
    /// in_range_interval_interval.
    fn times(
        &self,
        pg_type: PgType,
        span: &Interval,
        subtracts: bool,
        context: &EvalContext<'_>,
    ) -> Result<Vec<u32>, EvalError> {
        if pg_type == PgType::Time {
            // Months and days do not count; what leaves the day does not wrap around.
            if span.microseconds > i64::MAX - MICROSECONDS_PER_DAY {
                return Err(EvalError::Beyond("distance that wraps".to_owned()));
            }
            let values = integers(self.values, PgType::Time);
            let signed = signed(i128::from(span.microseconds), subtracts);
            return self.walk(&|at| values[at], &|value| Ok(Reach::To(value + signed)), &|a, b| a.cmp(b));
        }
        if pg_type == PgType::Interval {
            let values = self.values.as_primitive::<IntervalMonthDayNanoType>();
            let reach = |base: Interval| {
                let sum = if subtracts { interval::subtract(&base, span) } else { interval::add(&base, span) };
                Ok(Reach::To(sum?))
            };
            let compare = |a: &Interval, b: &Interval| interval::comparison_key(a).cmp(&interval::comparison_key(b));
            return self.walk(&|at| interval_of(values.value(at)), &reach, &compare);
        }
        let signed = if subtracts { interval::negate(span)? } else { *span };
        let values = match pg_type {
            PgType::Date => {
                let days = self.values.as_primitive::<Int32Type>();
                let timestamp = |at| if days.is_null(at) { Ok(0) } else { date_to_timestamp(days.value(at)) };
                (0..days.len()).map(timestamp).collect::<Result<Vec<i64>, _>>()?
            }
            _ => self.values.as_primitive::<Int64Type>().values().to_vec(),
        };
        let cursor = std::cell::RefCell::new(OffsetCursor::new(&context.settings.time_zone));
        let reach = |base: i64| {
            Ok(Reach::To(match pg_type {
                PgType::Timestamptz => add_to_timestamptz(base, &signed, &mut cursor.borrow_mut())?,
                _ => add_to_timestamp(base, &signed)?,
            }))
        };
        self.walk(&|at| values[at], &reach, &|a, b| a.cmp(b))
    }

    /// The loops of update_frameheadpos and update_frametailpos.
    fn walk<T>(
        &self,
        value: &dyn Fn(usize) -> T,
        reach: &dyn Fn(T) -> Result<Reach<T>, EvalError>,
        compare: &dyn Fn(&T, &T) -> std::cmp::Ordering,
    ) -> Result<Vec<u32>, EvalError> {
        // Which side of the sum is inside: at the start of an ascending frame what is not less.
        let is_less = self.is_start == self.key.descending;
        let mut places = Vec::with_capacity(self.sorted.order.len());
        for partition in self.sorted.partitions.windows(2) {
            let (low, high) = (partition[0], partition[1]);
            let mut place = low;
            for at in low..high {
                let sum = if self.values.is_null(at) { None } else { Some(reach(value(at))?) };
                while place < high {
                    let is_passed = match &sum {
                        Some(sum) if self.values.is_valid(place) => {
                            let is_inside = match sum {
                                Reach::AllButNan(nan) => compare(&value(place), nan).is_ne() || !is_less,
                                Reach::To(sum) if is_less => compare(&value(place), sum).is_le(),
                                Reach::To(sum) => compare(&value(place), sum).is_ge(),
                            };
                            is_inside != self.is_start
                        }
                        _ => self.passes_null(self.values.is_null(place), sum.is_none()),
                    };
                    if !is_passed {
                        break;
                    }
                    place += 1;
                }
                places.push(place as u32);
            }
        }
        Ok(places)
    }

    /// Where one of both is NULL, only the place of NULLs in the order counts.
    fn passes_null(&self, is_null: bool, is_current_null: bool) -> bool {
        match (self.is_start, self.key.nulls_first) {
            (true, true) => is_null && !is_current_null,
            (true, false) => !is_null && is_current_null,
            (false, true) => is_null || !is_current_null,
            (false, false) => !is_null || is_current_null,
        }
    }
}

fn signed(distance: i128, subtracts: bool) -> i128 {
    if subtracts { -distance } else { distance }
}

/// 128 bits, so that no sum overflows; in_range_int8_int8 answers as if it did not.
fn integers(array: &ArrayRef, pg_type: PgType) -> Vec<i128> {
    match pg_type {
        PgType::Int2 => array.as_primitive::<Int16Type>().values().iter().map(|value| i128::from(*value)).collect(),
        PgType::Int4 => array.as_primitive::<Int32Type>().values().iter().map(|value| i128::from(*value)).collect(),
        _ => array.as_primitive::<Int64Type>().values().iter().map(|value| i128::from(*value)).collect(),
    }
}
