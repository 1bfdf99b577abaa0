//! UTC offsets of a time zone, remembered between transitions so that a column costs one look-up per transition.
//!
//! Ambiguous and missing local times resolve as PostgreSQL does (datetime.c, DetermineTimeZoneOffset): a time in a
//! gap takes the offset from before it, a repeated time the offset from after the transition.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_SECOND, UNIX_EPOCH_DAYS, civil_from_days, split,
};

/// Seconds from 1970 to 2000.
const UNIX_EPOCH_SECONDS: i64 = UNIX_EPOCH_DAYS as i64 * 86_400;
/// The rules of every zone repeat with the calendar, each 400 years (zic's YEARSPERREPEAT; src/timezone/localtime.c).
const CYCLE: i64 = 146_097 * MICROSECONDS_PER_DAY;
/// 9000-01-01: later moments are looked up whole cycles earlier, inside jiff's range of years.
const LAST_LOOKED_UP: i64 = 2_556_698 * MICROSECONDS_PER_DAY;
/// No local time is farther from UTC.
const TRANSITION_MARGIN: i64 = 26 * MICROSECONDS_PER_HOUR;

/// From `start` (inclusive) to `end` the zone's offset is `offset`, all in microseconds.
#[derive(Clone, Copy, Debug)]
struct Period {
    start: i64,
    end: i64,
    offset: i64,
}

impl Period {
    #[inline]
    fn contains(&self, timestamp: i64) -> bool {
        self.start <= timestamp && timestamp < self.end
    }
}

/// Converts between UTC and a zone's local time. Make one per column; it learns the zone's periods as it meets them.
#[derive(Clone, Debug)]
pub struct OffsetCursor {
    zone: TimeZone,
    is_fixed: bool,
    current: Period,
    /// Every period met so far, by start.
    met: Vec<Period>,
    /// Answers by stretch of time, direct-mapped: rows in no order cost a comparison each. Empty until worth filling.
    slots: Vec<Slot>,
    misses: u32,
}

/// One stretch of 2^[`SLOT_BITS`] microseconds, with at most one transition in it or near it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    stretch: i64,
    transition: i64,
    before: i64,
    after: i64,
}

/// 12.7 days: shorter than the time between any two transitions that matter.
const SLOT_BITS: u32 = 40;
/// Nine years of stretches.
const SLOTS: usize = 256;
/// Single values and short columns do without slots.
const MISSES_BEFORE_SLOTS: u32 = 8;
/// A transition that is not near: after every timestamp, with room to add an offset.
const NO_TRANSITION: i64 = i64::MAX - CYCLE;

impl OffsetCursor {
    pub fn new(zone: &TimeZone) -> Self {
        let (is_fixed, current) = match zone.to_fixed_offset() {
            Ok(offset) => (true, Period { start: i64::MIN, end: i64::MAX, offset: microseconds(offset) }),
            Err(_) => (false, Period { start: 0, end: 0, offset: 0 }),
        };
        Self { zone: zone.clone(), is_fixed, current, met: Vec::new(), slots: Vec::new(), misses: 0 }
    }

    /// Local minus UTC at a moment, in microseconds.
    #[inline]
    pub fn offset_at(&mut self, timestamp: i64) -> i64 {
        if self.is_fixed {
            return self.current.offset;
        }
        match self.slot(timestamp) {
            Some(slot) if timestamp < slot.transition => slot.before,
            Some(slot) => slot.after,
            None => self.offset_outside_slots(timestamp),
        }
    }

    /// The local time of a moment. Infinite values must not get here.
    #[inline]
    pub fn to_local(&mut self, timestamp: i64) -> i64 {
        timestamp.wrapping_add(self.offset_at(timestamp))
    }

    /// The moment of a local time. Infinite values must not get here.
    #[inline]
    pub fn from_local(&mut self, local: i64) -> i64 {
        if self.is_fixed {
            return local.wrapping_sub(self.current.offset);
        }
        if let Some(slot) = self.slot(local) {
            if local < slot.transition + slot.before.min(slot.after) {
                return local.wrapping_sub(slot.before);
            }
            if local >= slot.transition + slot.before.max(slot.after) {
                return local.wrapping_sub(slot.after);
            }
        }
        self.resolve_outside_slots(local)
    }

    #[inline]
    fn slot(&self, time: i64) -> Option<&Slot> {
        let stretch = time >> SLOT_BITS;
        self.slots.get(stretch as usize % SLOTS).filter(|slot| slot.stretch == stretch)
    }

    #[cold]
    fn offset_outside_slots(&mut self, timestamp: i64) -> i64 {
        self.fill_slot(timestamp);
        self.offset_in_period(timestamp)
    }

    /// As DetermineTimeZoneOffset resolves it near a transition.
    #[cold]
    fn resolve_outside_slots(&mut self, local: i64) -> i64 {
        if self.slot(local).is_none() {
            self.fill_slot(local);
        }
        let (looked_up, shift) = within_cycle(local);
        let offset = match self.zone.to_ambiguous_timestamp(civil(looked_up)).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        looked_up - microseconds(offset) + shift
    }

    /// Prepares the stretch that `time`, of UTC or local, lies in, unless it has several transitions.
    fn fill_slot(&mut self, time: i64) {
        self.misses = self.misses.saturating_add(1);
        if self.misses < MISSES_BEFORE_SLOTS {
            return;
        }
        if self.slots.is_empty() {
            self.slots = vec![Slot { stretch: i64::MIN, transition: 0, before: 0, after: 0 }; SLOTS];
        }
        let stretch = time >> SLOT_BITS;
        let start = stretch << SLOT_BITS;
        // Local times of the stretch may be moments a little outside it.
        let first = start.saturating_sub(TRANSITION_MARGIN);
        let last = start.saturating_add((1 << SLOT_BITS) + TRANSITION_MARGIN);
        let before = self.offset_in_period(first);
        let transition = self.current.end;
        let slot = if transition > last {
            Slot { stretch, transition: NO_TRANSITION, before, after: before }
        } else {
            let after = self.offset_in_period(transition);
            if self.current.end <= last {
                return;
            }
            Slot { stretch, transition, before, after }
        };
        self.slots[stretch as usize % SLOTS] = slot;
    }

    fn offset_in_period(&mut self, timestamp: i64) -> i64 {
        if !self.current.contains(timestamp) {
            self.move_to(timestamp);
        }
        self.current.offset
    }

    /// The zone's abbreviation at a moment ("EST").
    pub fn write_abbreviation(&self, timestamp: i64, out: &mut Vec<u8>) {
        let (looked_up, _) = within_cycle(timestamp);
        let info = self.zone.to_offset_info(moment(looked_up));
        if info.abbreviation() != NAMELESS {
            out.extend_from_slice(info.abbreviation().as_bytes());
        }
    }

    fn move_to(&mut self, timestamp: i64) {
        let after = self.met.partition_point(|period| period.start <= timestamp);
        if let Some(period) = after.checked_sub(1).and_then(|index| self.met.get(index))
            && period.contains(timestamp)
        {
            self.current = *period;
            return;
        }
        self.current = self.look_up(timestamp);
        self.met.insert(after, self.current);
    }

    fn look_up(&self, timestamp: i64) -> Period {
        let (looked_up, shift) = within_cycle(timestamp);
        let at = moment(looked_up);
        let offset = microseconds(self.zone.to_offset(at));
        let next = self.zone.following(at).next().map(|transition| of_moment(transition.timestamp()));
        // `preceding` is strict; transitions are at whole seconds.
        let just_after = at + jiff::SignedDuration::from_secs(1);
        let previous = self.zone.preceding(just_after).next().map(|transition| of_moment(transition.timestamp()));
        let (mut start, mut end) = (previous.unwrap_or(i64::MIN), next.unwrap_or(i64::MAX));
        if shift != 0 {
            start = start.max(LAST_LOOKED_UP - CYCLE);
        }
        if shift != 0 || end > LAST_LOOKED_UP {
            end = end.min(LAST_LOOKED_UP);
        }
        Period { start: start.saturating_add(shift), end: end.saturating_add(shift), offset }
    }
}

/// A zone that a statement names: an IANA name, or one of the spellings of UTC. None: not certain to be what
/// PostgreSQL takes it for (an abbreviation, a POSIX specification, an unknown name).
pub fn named(name: &str) -> Option<TimeZone> {
    const UTC_NAMES: [&str; 7] = ["utc", "gmt", "uct", "zulu", "z", "universal", "etc/utc"];
    if UTC_NAMES.iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
        // "Z" and "zulu" are abbreviations in the Default set, "universal" a zone; all mean offset 0.
        return Some(TimeZone::UTC);
    }
    let is_region = name.contains('/') && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_-+".contains(&b));
    if is_region { TimeZone::get(name).ok() } else { None }
}

/// A session's zone, by the setting's value: a name of the zone database, or what SET TIME ZONE makes of a number or an interval,
/// `<+05:30>-05:30` (pgtz.c, pg_tzset_offset; drivers do that for UTC). Other POSIX
/// specifications with a name or rules of their own are upstream's, but for [`posix`].
pub fn of_session(value: &str) -> Option<TimeZone> {
    let Some(offset) = value.strip_prefix('<') else { return TimeZone::get(value).ok().or_else(|| posix(value)) };
    let (shown, counted) = offset.split_once('>')?;
    let (sign, digits) = shown.split_at_checked(1)?;
    let is_mirrored = match sign {
        "+" => counted.strip_prefix('-') == Some(digits),
        "-" => counted.strip_prefix('+') == Some(digits),
        _ => false,
    };
    let mut parts = digits.split(':').map(|part| part.parse::<i32>().ok().filter(|_| part.len() == 2));
    let mut next = || parts.next().unwrap_or(Some(0));
    let seconds = next()? * 3_600 + next()? * 60 + next()?;
    if !is_mirrored || parts.next().is_some() {
        return None;
    }
    let offset = Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()?;
    // The one knows no minutes in a name, the other has a name of its own for UTC.
    let mut zones = TimeZone::posix(value).ok().into_iter().chain([TimeZone::fixed(offset)]);
    zones.find(|zone| {
        let info = zone.to_offset_info(Timestamp::UNIX_EPOCH);
        info.offset() == offset && info.abbreviation() == shown
    })
}

/// The abbreviation of a zone that has none.
const NAMELESS: &str = "---";

/// `GMT-02:00` and, without a name, `+02:00`: hours west of Greenwich (localtime.c, tzparse, of what is no name of a zone).
fn posix(value: &str) -> Option<TimeZone> {
    let (name, offset) = value.split_at(value.find(['+', '-'])?);
    // Longer ones are cut off where they are printed (datetime.c, MAXTZLEN).
    let is_name =
        name.is_empty() || (3..=10).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    let (sign, offset) = offset.split_at_checked(1)?;
    let number = |digits: &str, most: u32| {
        let is_number = matches!(digits.len(), 1 | 2) && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|number| is_number && *number <= most)
    };
    let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "0"));
    let (hours, minutes) = (number(hours, 23)?, number(minutes, 59)?);
    let name = if name.is_empty() { NAMELESS } else { name };
    is_name.then(|| TimeZone::posix(&format!("<{name}>{sign}{hours:02}:{minutes:02}")).ok()).flatten()
}

/// Moments, in seconds since 1970, whose offsets tell whether upstream has the same data for a zone: releases of the
/// zone database differ, and so do builds of it before 1970. Both sides of every transition known here, and samples
/// dense enough to meet one that is not. Upstream's offset at a moment `t` is
/// `extract(epoch FROM timezone(name, to_timestamp(t))) - t`, ours [`offset_seconds_at`].
pub fn telling_moments(zone: &TimeZone) -> Vec<i64> {
    const WEEK: i64 = 7 * 86_400;
    // 1840, before any standard time, 1970 and 2100.
    const FIRST: i64 = -4_102_444_800;
    const END: i64 = 4_102_444_800;
    let start = Timestamp::from_second(FIRST).unwrap_or(Timestamp::UNIX_EPOCH);
    let transitions = zone.following(start).map(|transition| transition.timestamp().as_second());
    let mut moments: Vec<i64> = transitions.take_while(|&at| at < END).flat_map(|at| [at - 1, at]).collect();
    moments.extend((FIRST..0).step_by(5 * WEEK as usize));
    moments.extend((0..END).step_by(WEEK as usize));
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// Local minus UTC, in seconds, at a moment in seconds since 1970.
pub fn offset_seconds_at(zone: &TimeZone, unix_seconds: i64) -> i32 {
    zone.to_offset(Timestamp::from_second(unix_seconds).unwrap_or(Timestamp::UNIX_EPOCH)).seconds()
}

/// The timestamp moved back whole cycles to where jiff knows it, and the distance.
#[inline]
fn within_cycle(timestamp: i64) -> (i64, i64) {
    if timestamp < LAST_LOOKED_UP {
        return (timestamp, 0);
    }
    let shift = ((timestamp - LAST_LOOKED_UP) / CYCLE + 1) * CYCLE;
    (timestamp - shift, shift)
}

fn microseconds(offset: Offset) -> i64 {
    i64::from(offset.seconds()) * MICROSECONDS_PER_SECOND
}

/// The second that a timestamp before [`LAST_LOOKED_UP`] lies in.
fn moment(timestamp: i64) -> Timestamp {
    let seconds = timestamp.div_euclid(MICROSECONDS_PER_SECOND) + UNIX_EPOCH_SECONDS;
    // Both ends of PostgreSQL's range are inside jiff's once `within_cycle`; garbage under a NULL is clamped.
    Timestamp::from_second(seconds.max(Timestamp::MIN.as_second())).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn of_moment(moment: Timestamp) -> i64 {
    (moment.as_second() - UNIX_EPOCH_SECONDS) * MICROSECONDS_PER_SECOND
}

fn civil(local: i64) -> DateTime {
    let (days, microseconds) = split(local);
    let date = civil_from_days(days);
    let seconds = microseconds / MICROSECONDS_PER_SECOND;
    DateTime::new(
        date.year as i16,
        date.month as i8,
        date.day as i8,
        (seconds / 3_600) as i8,
        (seconds / 60 % 60) as i8,
        (seconds % 60) as i8,
        0,
    )
    .unwrap_or(DateTime::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::datetime::calendar::days_from_civil;

    fn local(year: i32, month: u32, day: i64, hour: i64, minute: i64) -> i64 {
        days_from_civil(year, month, day) * MICROSECONDS_PER_DAY + (hour * 60 + minute) * 60 * MICROSECONDS_PER_SECOND
    }

    fn hours(count: i64) -> i64 {
        count * MICROSECONDS_PER_HOUR
    }

    #[test]
    fn numbers_of_hours_are_zones_of_sessions() {
        let seconds = |value| of_session(value).map(|zone| offset_seconds_at(&zone, 0));
        let known = [("<+00>-00", 0), ("<+02>-02", 7_200), ("<-03>+03", -10_800), ("<+05:30>-05:30", 19_800)];
        for (value, expected) in known {
            assert_eq!(seconds(value), Some(expected), "{value}");
        }
        for other in ["<+02>+02", "<+02>-03", "<02>-02", "<+2>-2", "<>", "<+02", "<EST>5", "<+00:00:00:00>-00:00:00:00"]
        {
            assert_eq!(seconds(other), None, "{other}");
        }
        assert!(of_session("Europe/Berlin").is_some());
        assert_eq!(
            [seconds("UTC+2"), seconds("GMT-02:00"), seconds("+2:30")],
            [Some(-7_200), Some(7_200), Some(-9_000)]
        );
        for other in
            ["+", "UTC+", "+02:00:30", "+24", "+2:60", "AB+1", "EST5EDT4,M3.2.0,M11.1.0", "UTC+2:", "+-2", "+0 2"]
        {
            assert_eq!(seconds(other), None, "{other}");
        }
    }

    #[test]
    fn gaps_take_the_offset_before_and_folds_the_one_after() {
        let zone = TimeZone::get("America/New_York").expect("bundled zone");
        let cursor = &mut OffsetCursor::new(&zone);
        let gap = local(2024, 3, 10, 2, 30);
        assert_eq!(cursor.from_local(gap), gap + hours(5));
        assert_eq!(cursor.to_local(gap + hours(5)), gap + hours(1));
        let fold = local(2024, 11, 3, 1, 30);
        assert_eq!(cursor.from_local(fold), fold + hours(5));
        // Both moments of the repeated hour show it.
        assert_eq!(cursor.to_local(fold + hours(4)), fold);
        assert_eq!(cursor.to_local(fold + hours(5)), fold);
    }

    #[test]
    fn periods_met_before_are_found_again_in_any_order() {
        let zone = TimeZone::get("Australia/Lord_Howe").expect("bundled zone");
        let walked = &mut OffsetCursor::new(&zone);
        let moments: Vec<i64> =
            (0..4_000).map(|step: i64| (step * 7_919 % 4_000) * 30 * hours(24) - hours(24_000)).collect();
        for _ in 0..2 {
            for &moment in &moments {
                let fresh = OffsetCursor::new(&zone).offset_at(moment);
                assert_eq!(walked.offset_at(moment), fresh, "{moment}");
                assert_eq!(walked.from_local(moment), OffsetCursor::new(&zone).from_local(moment), "{moment}");
            }
        }
        assert!(walked.met.is_sorted_by_key(|period| period.start));
    }

    #[test]
    fn rules_repeat_each_400_years() {
        let zone = TimeZone::get("Europe/Berlin").expect("bundled zone");
        let cursor = &mut OffsetCursor::new(&zone);
        for year in [8_999, 9_000, 9_999, 10_000, 294_275] {
            assert_eq!(cursor.offset_at(local(year, 1, 1, 0, 0)), hours(1), "winter {year}");
            assert_eq!(cursor.offset_at(local(year, 7, 1, 0, 0)), hours(2), "summer {year}");
            assert_eq!(cursor.from_local(local(year, 7, 1, 2, 0)), local(year, 7, 1, 0, 0));
        }
    }

    #[test]
    fn telling_moments_surround_every_transition() {
        let zone = TimeZone::get("Africa/Casablanca").expect("bundled zone");
        let moments = telling_moments(&zone);
        let changes =
            moments.windows(2).filter(|pair| offset_seconds_at(&zone, pair[0]) != offset_seconds_at(&zone, pair[1]));
        assert!(changes.clone().count() > 50, "clocks changed often there");
        for pair in changes {
            assert_eq!(pair[1] - pair[0], 1, "a change between samples at {pair:?}");
        }
        assert!(!telling_moments(&TimeZone::UTC).is_empty());
    }

    #[test]
    fn names_are_zones_only_where_that_is_certain() {
        for utc in ["UTC", "gmt", "Z", "Etc/UTC"] {
            assert_eq!(named(utc), Some(TimeZone::UTC), "{utc}");
        }
        assert!(named("america/new_york").is_some());
        for unclear in ["EST", "CST6CDT", "+05:30", "Mars/Phobos", ""] {
            assert_eq!(named(unclear), None, "{unclear}");
        }
    }
}
