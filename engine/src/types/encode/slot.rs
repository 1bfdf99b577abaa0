//! Cells of bounded size, each built in a [`Slot`] of its own: what is stored there with few wide stores is copied later with
//! a constant size, without waiting for the stores.

use super::super::datetime::calendar::{civil_from_days, split};
use super::super::datetime::output::write_offset;
use super::super::numeric::wire::{BASE, HEADER_BYTES, SIGN_NEGATIVE, SIGN_POSITIVE, header, low_digit};

/// The int32 before each cell.
pub(super) const LENGTH_BYTES: usize = 4;

/// Room for a cell with its length. The longest is a timestamp with a year of six digits, a fraction, an offset with seconds and
/// an era: 44 bytes.
pub(super) const SLOT_BYTES: usize = 48;

/// Stores a constant number of bytes in a few moves. `copy_from_slice` of an array is a call and a memmove: the compiler keeps that
/// function of the standard library out of line. Panics if there is no room.
#[inline(always)]
pub(super) fn store<const N: usize>(out: &mut [u8], at: usize, bytes: [u8; N]) {
    let place: &mut [u8; N] = (&mut out[at..at + N]).try_into().expect("as many as N");
    *place = bytes;
}

/// A cell and whatever lies behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot([u8; SLOT_BYTES]);

impl Slot {
    pub(super) const EMPTY: Self = Self([0; SLOT_BYTES]);

    pub(super) fn bytes(&self) -> &[u8; SLOT_BYTES] {
        &self.0
    }

    /// Of the cell, its length included.
    #[inline]
    pub(super) fn length(&self) -> usize {
        let [a, b, c, d, ..] = self.0;
        // -1: NULL.
        LENGTH_BYTES + i32::from_be_bytes([a, b, c, d]).max(0) as usize
    }

    #[inline]
    fn put_length(&mut self, length: usize) {
        store(&mut self.0, 0, (length as u32).to_be_bytes());
    }

    #[inline]
    pub(super) fn put_null(&mut self) {
        store(&mut self.0, 0, (-1i32).to_be_bytes());
    }

    /// A cell of `N` bytes.
    #[inline]
    pub(super) fn put<const N: usize>(&mut self, cell: &[u8; N]) {
        const { assert!(LENGTH_BYTES + N <= SLOT_BYTES) };
        self.put_length(N);
        store(&mut self.0, LENGTH_BYTES, *cell);
    }

    /// False if there is no room for it.
    pub(super) fn put_slice(&mut self, cell: &[u8]) -> bool {
        let Some(room) = self.0.get_mut(LENGTH_BYTES..LENGTH_BYTES + cell.len()) else { return false };
        room.copy_from_slice(cell);
        self.put_length(cell.len());
        true
    }

    /// Stores 16 bytes of which the cell may have fewer.
    #[inline]
    fn store16(&mut self, at: usize, bytes: [u8; 16]) {
        store(&mut self.0, at, bytes);
    }

    /// `mantissa` × 10^-`scale` in decimal notation, `scale` at most 18.
    #[inline]
    pub(super) fn put_decimal(&mut self, mantissa: i64, scale: u16) {
        let magnitude = mantissa.unsigned_abs();
        if magnitude >= LONG_LIMIT || scale >= 15 {
            return self.put_long_decimal(mantissa, scale);
        }
        let (text, length) = short_or_long_decimal(magnitude, scale);
        let sign = usize::from(mantissa < 0);
        self.0[LENGTH_BYTES] = b'-';
        self.store16(LENGTH_BYTES + sign, text.to_le_bytes());
        self.put_length(length + sign);
    }

    /// Any mantissa and scale, from the end on.
    fn put_long_decimal(&mut self, mantissa: i64, scale: u16) {
        /// Sign, 19 digits and point.
        const MAX: usize = 21;
        let mut text = [0u8; MAX];
        let mut at = MAX;
        let mut rest = mantissa.unsigned_abs();
        let mut decimals = usize::from(scale);
        // At least one digit before the point.
        while rest > 0 || decimals > 0 || at == MAX || text[at] == b'.' {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if decimals > 0 {
                decimals -= 1;
                if decimals == 0 {
                    at -= 1;
                    text[at] = b'.';
                }
            }
        }
        if mantissa < 0 {
            at -= 1;
            text[at] = b'-';
        }
        self.put_slice(&text[at..]);
    }

    /// As [`Slot::put_decimal`], in the binary format: see [`super::super::numeric::wire`].
    #[inline]
    pub(super) fn put_decimal_binary(&mut self, mantissa: i64, scale: u16) {
        let mut rest = mantissa.unsigned_abs();
        // The weight of the digit that is next; digits that are zero at the end are not sent.
        let mut weight = -i16::try_from(scale.div_ceil(4)).unwrap_or(0);
        // Digits of 16 bits, the least significant at the bottom: at most six.
        let (mut digits, mut count) = (0u128, 0u32);
        let mut push = |digit: u64| {
            if digit != 0 || count > 0 {
                digits |= u128::from(digit) << (16 * count);
                count += 1;
            }
            weight += 1;
        };
        if !scale.is_multiple_of(4) && rest > 0 {
            let (low, unit) = low_digit(4 - scale % 4);
            push(rest % low * u64::from(unit));
            rest /= low;
        }
        while rest > 0 {
            push(rest % BASE);
            rest /= BASE;
        }
        let weight = if count == 0 { 0 } else { weight - 1 };
        let sign = if mantissa < 0 { SIGN_NEGATIVE } else { SIGN_POSITIVE };
        let start = LENGTH_BYTES + HEADER_BYTES;
        store(&mut self.0, LENGTH_BYTES, header(count as u16, weight, sign, scale));
        self.store16(start, digits.checked_shl(128 - 16 * count).unwrap_or(0).to_be_bytes());
        self.put_length(HEADER_BYTES + 2 * count as usize);
    }
}

/// Below it a number has at most eight digits, at most fifteen.
const SHORT_LIMIT: u32 = 100_000_000;
const LONG_LIMIT: u64 = 1_000_000_000_000_000;

/// Eight digits of a number below [`SHORT_LIMIT`], leading zeros included, the first in the lowest byte: by halves, quarters and
/// eighths at once.
#[inline]
fn eight_digits(number: u32) -> u64 {
    // Each times is a division by multiplication that is right for every number in its lane.
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// Text, its first character in the lowest byte, and its length.
#[inline(always)]
fn short_decimal(number: u32, scale: u32) -> (u128, usize) {
    let digits = eight_digits(number);
    let whole = 8 - scale;
    // One digit stays before the point.
    let zeros = (digits.trailing_zeros() / 8).min(whole - 1);
    let digits = digits | ASCII_ZEROS;
    if scale == 0 {
        return (u128::from(digits >> (8 * zeros)), (8 - zeros) as usize);
    }
    let before = digits & ((1 << (8 * whole)) - 1);
    let after = digits >> (8 * whole);
    let text = u128::from(before) | u128::from(b'.') << (8 * whole) | u128::from(after) << (8 * (whole + 1));
    (text >> (8 * zeros), (9 - zeros) as usize)
}

/// Likewise of a number below [`LONG_LIMIT`], so that of sixteen digits at least one makes room for the point.
#[inline]
fn long_decimal(number: u64, scale: u32) -> (u128, usize) {
    let (high, low) = (number / u64::from(SHORT_LIMIT), number % u64::from(SHORT_LIMIT));
    let digits = u128::from(eight_digits(high as u32)) | u128::from(eight_digits(low as u32)) << 64;
    let zeros = (digits.trailing_zeros() / 8).min(15 - scale);
    let digits = (digits | u128::from(ASCII_ZEROS) | u128::from(ASCII_ZEROS) << 64) >> (8 * zeros);
    if scale == 0 {
        return (digits, (16 - zeros) as usize);
    }
    let whole = 16 - scale - zeros;
    let before = digits & ((1 << (8 * whole)) - 1);
    let text = before | u128::from(b'.') << (8 * whole) | (digits >> (8 * whole)) << (8 * (whole + 1));
    (text, (17 - zeros) as usize)
}

/// One of these two: a number below [`LONG_LIMIT`] with a scale below 8, or one of fewer than 15 decimals.
#[inline(always)]
pub(super) fn short_or_long_decimal(number: u64, scale: u16) -> (u128, usize) {
    match u32::try_from(number) {
        Ok(short) if short < SHORT_LIMIT && scale < 8 => short_decimal(short, u32::from(scale)),
        _ => long_decimal(number, u32::from(scale)),
    }
}

/// `hh:mm:ss` of a second of the day, the first character in the lowest byte.
#[inline]
fn clock(second: u32) -> u64 {
    const COLONS: u64 = 0x3030_3a30_303a_3030;
    let (minute, second) = (second / 60, second % 60);
    let parts = u64::from(minute / 60) | u64::from(minute % 60) << 24 | u64::from(second) << 48;
    let tens = ((parts * 103) >> 10) & 0x000f_0000_0f00_000f;
    (tens | (parts - 10 * tens) << 8) | COLONS
}

/// Dates and timestamps in ISO style: `yyyy-mm-dd hh:mm:ss`, fraction, zone. Neighbouring rows mostly share day and offset, so that
/// these are only written anew when they change.
#[derive(Debug)]
pub(super) struct Iso {
    /// `yyyy-mm-dd `, and room.
    date: [u8; 16],
    /// The day that `date` shows.
    day: i32,
    /// The offset that `zone` shows, in microseconds.
    offset: i64,
    zone: [u8; 16],
    zone_bytes: usize,
}

const DATE_BYTES: usize = 10;
const CLOCK: usize = LENGTH_BYTES + DATE_BYTES + 1;
const FRACTION: usize = CLOCK + 8;

impl Iso {
    pub(super) fn new() -> Self {
        let mut zone = [0; 16];
        zone[..3].copy_from_slice(b"+00");
        // Days are counted from then.
        Self { date: *b"2000-01-01      ", day: 0, offset: 0, zone, zone_bytes: 3 }
    }

    /// False if the year is not of four digits AD, or the date infinite.
    #[inline]
    pub(super) fn put_date(&mut self, day: i32, slot: &mut Slot) -> bool {
        if day != self.day && !self.show_day(day) {
            return false;
        }
        slot.store16(LENGTH_BYTES, self.date);
        slot.put_length(DATE_BYTES);
        true
    }

    /// Likewise of microseconds of local time, with the offset that they have to UTC, if it is to be shown.
    #[inline]
    pub(super) fn put_timestamp(&mut self, local: i64, offset: Option<i64>, slot: &mut Slot) -> bool {
        let (day, microseconds) = split(local);
        if day != self.day && !self.show_day(day) {
            return false;
        }
        let fraction = (microseconds % 1_000_000) as u32;
        slot.store16(LENGTH_BYTES, self.date);
        store(&mut slot.0, CLOCK, clock((microseconds / 1_000_000) as u32).to_le_bytes());
        let mut end = FRACTION;
        if fraction != 0 {
            // The last six of eight digits, without zeros at the end.
            let digits = eight_digits(fraction);
            slot.0[end] = b'.';
            store(&mut slot.0, end + 1, ((digits | ASCII_ZEROS) >> 16).to_le_bytes());
            end += 7 - (digits.leading_zeros() / 8) as usize;
        }
        if let Some(offset) = offset {
            if offset != self.offset {
                self.show_offset(offset);
            }
            slot.store16(end, self.zone);
            end += self.zone_bytes;
        }
        slot.put_length(end - LENGTH_BYTES);
        true
    }

    fn show_day(&mut self, day: i32) -> bool {
        let civil = civil_from_days(day);
        if !(1..=9999).contains(&civil.year) {
            return false;
        }
        // Eight digits: yyyymmdd.
        let digits = eight_digits(civil.year.unsigned_abs() * 10_000 + civil.month * 100 + civil.day) | ASCII_ZEROS;
        let [a, b, c, d, e, f, g, h] = digits.to_le_bytes();
        store(&mut self.date, 0, [a, b, c, d, b'-', e, f, b'-', g, h]);
        self.day = day;
        true
    }

    fn show_offset(&mut self, offset: i64) {
        let mut text = Vec::new();
        write_offset(offset, &mut text);
        self.zone_bytes = text.len().min(self.zone.len());
        self.zone[..self.zone_bytes].copy_from_slice(&text[..self.zone_bytes]);
        self.offset = offset;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cell(put: impl FnOnce(&mut Slot)) -> String {
        let mut slot = Slot::EMPTY;
        put(&mut slot);
        String::from_utf8(slot.bytes()[LENGTH_BYTES..slot.length()].to_vec()).unwrap()
    }

    #[test]
    fn every_lane_of_the_digits_is_right() {
        // All values of a lane of four digits, in either place.
        for number in 0..10_000 {
            assert_eq!(cell(|slot| slot.put_decimal(number, 0)), number.to_string());
            let high = number * 10_000 + 1_234;
            assert_eq!(cell(|slot| slot.put_decimal(high, 0)), high.to_string());
        }
        for second in 0..86_400 {
            let expected = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
            assert_eq!(clock(second).to_le_bytes(), expected.as_bytes());
        }
    }

    #[test]
    fn a_slice_that_does_not_fit_is_not_put() {
        let mut slot = Slot::EMPTY;
        assert!(slot.put_slice(&[7; SLOT_BYTES - LENGTH_BYTES]));
        assert_eq!(slot.length(), SLOT_BYTES);
        assert!(!slot.put_slice(&[7; SLOT_BYTES - LENGTH_BYTES + 1]));
    }

    proptest! {
        #[test]
        fn decimals_of_any_size_print_alike(mantissa in any::<i64>(), cut in 0u32..19, scale in 0u16..=18) {
            let mantissa = mantissa / 10i64.pow(cut);
            let width = usize::from(scale) + 1;
            let digits = format!("{:0width$}", mantissa.unsigned_abs());
            let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
            let sign = if mantissa < 0 { "-" } else { "" };
            let point = if scale > 0 { "." } else { "" };
            prop_assert_eq!(cell(|slot| slot.put_decimal(mantissa, scale)), format!("{sign}{whole}{point}{fraction}"));
        }
    }
}
