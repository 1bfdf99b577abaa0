//! float4 and float8: text exactly as PostgreSQL prints and reads it (float.c, d2s.c, f2s.c).
//!
//! With extra_float_digits above 0 the shortest digits that read back as the same value, as Ryu finds them, except
//! that PostgreSQL's Ryu never prints a decimal that lies exactly between two floats; otherwise `%.*g`.

use super::text::{ParseError, trim_space};

/// FLT_DIG and DBL_DIG: the precisions to which extra_float_digits is added.
const FLOAT4_DIGITS: i32 = 6;
const FLOAT8_DIGITS: i32 = 15;
/// Decimal exponents from which the shortest form uses e-notation (f2s.c, d2s.c: to_chars).
const FLOAT4_EXPONENT_LIMIT: i32 = 6;
const FLOAT8_EXPONENT_LIMIT: i32 = 15;
/// Decimal exponents below this use e-notation, in both forms.
const EXPONENT_MIN: i32 = -4;

/// Appends what float8out prints.
pub fn write_float8(value: f64, extra_float_digits: i32, out: &mut Vec<u8>) {
    if !value.is_finite() || value == 0.0 {
        return write_special(value, out);
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    if extra_float_digits <= 0 {
        let precision = (FLOAT8_DIGITS + extra_float_digits).max(1);
        let digits = Digits::of_rendering(&format!("{:.*e}", precision as usize - 1, value));
        return digits.write(precision, out);
    }
    let mut digits = Digits::of_shortest(ryu::Buffer::new().format_finite(value));
    let (mantissa, exponent) = float8_parts(value);
    if digits.is_halfway(mantissa, exponent) {
        digits = second_shortest(
            digits,
            mantissa,
            exponent,
            |text| text.parse() == Ok(value),
            |precision| format!("{value:.precision$e}"),
        );
    }
    digits.write(FLOAT8_EXPONENT_LIMIT, out);
}

/// The shortest decimal of a float8 as mantissa and scale, where it is one of at most 15 digits and four decimals.
///
/// A decimal of up to 15 digits is the only one of that many that reads back as its float8, so it is the shortest; and its
/// mantissa and a power of ten up to 10^22 are float8s themselves, so that dividing them rounds as reading it does. It never lies
/// half-way between two float8s: it would be a binary fraction of 54 bits, but one that is has fewer bits than its mantissa.
#[inline]
pub(in crate::types) fn short_float8(value: f64, extra_float_digits: i32) -> Option<(i64, u16)> {
    /// 1.5 × 2^52: added, it leaves no place for a fraction.
    const ROUNDING: f64 = 6_755_399_441_055_744.0;
    let rounded = (value * 1e4 + ROUNDING) - ROUNDING;
    // Neither NaN nor an infinity is within.
    let is_short = rounded.abs() < 1e15 && rounded / 1e4 == value && rounded != 0.0 && extra_float_digits > 0;
    is_short.then(|| without_zeros(rounded as i64))
}

/// Likewise of a float4: at most six digits.
#[inline]
pub(in crate::types) fn short_float4(value: f32, extra_float_digits: i32) -> Option<(i64, u16)> {
    /// 1.5 × 2^23.
    const ROUNDING: f32 = 12_582_912.0;
    let rounded = (value * 1e4 + ROUNDING) - ROUNDING;
    let is_short = rounded.abs() < 1e6 && rounded / 1e4 == value && rounded != 0.0 && extra_float_digits > 0;
    is_short.then(|| without_zeros(rounded as i64))
}

/// `mantissa` × 10^-4 with as few decimals as it takes.
#[inline]
fn without_zeros(mut mantissa: i64) -> (i64, u16) {
    let mut scale = 4;
    if mantissa % 100 == 0 {
        mantissa /= 100;
        scale = 2;
    }
    if mantissa % 10 == 0 {
        mantissa /= 10;
        scale -= 1;
        // Of those that are no multiples of a hundred none has another.
        if scale == 1 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale = 0;
        }
    }
    (mantissa, scale)
}

/// Appends what float4out prints.
pub fn write_float4(value: f32, extra_float_digits: i32, out: &mut Vec<u8>) {
    if !value.is_finite() || value == 0.0 {
        return write_special(f64::from(value), out);
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    if extra_float_digits <= 0 {
        let precision = (FLOAT4_DIGITS + extra_float_digits).max(1);
        let digits = Digits::of_rendering(&format!("{:.*e}", precision as usize - 1, value));
        return digits.write(precision, out);
    }
    let mut digits = Digits::of_shortest(ryu::Buffer::new().format_finite(value));
    let (mantissa, exponent) = float4_parts(value);
    if digits.is_halfway(mantissa, exponent) {
        digits = second_shortest(
            digits,
            mantissa,
            exponent,
            |text| text.parse() == Ok(value),
            |precision| format!("{value:.precision$e}"),
        );
    }
    digits.write(FLOAT4_EXPONENT_LIMIT, out);
}

/// NaN, the infinities and the zeros (copy_special_str).
fn write_special(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(if value == 0.0 { b"0".as_slice() } else { b"Infinity" });
}

/// `value` = mantissa × 2^exponent.
fn float8_parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match ((bits >> 52) & 0x7ff) as i32 {
        0 => (fraction, -1074),
        biased => (fraction | 1 << 52, biased - 1075),
    }
}

fn float4_parts(value: f32) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = u64::from(bits & ((1 << 23) - 1));
    match ((bits >> 23) & 0xff) as i32 {
        0 => (fraction, -149),
        biased => (fraction | 1 << 23, biased - 150),
    }
}

/// A positive decimal: `digits` (no zero at either end) with the point after the first, times 10^exponent.
#[derive(Clone, Copy, Debug)]
struct Digits {
    digits: [u8; DIGITS_MAX],
    count: usize,
    exponent: i32,
}

/// 17 digits tell every double apart; `%.15g` and less need fewer.
const DIGITS_MAX: usize = 17;

impl Digits {
    /// From `d.ddde±x`.
    fn of_rendering(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut this = Self { digits: [0; DIGITS_MAX], count: 0, exponent: exponent.parse().unwrap_or(0) };
        for digit in mantissa.bytes().filter(u8::is_ascii_digit).take(DIGITS_MAX) {
            this.digits[this.count] = digit;
            this.count += 1;
        }
        this.without_trailing_zeros()
    }

    /// From ryu's rendering: `123.0`, `0.001`, `1.5e-7`, `1e300`.
    fn of_shortest(text: &str) -> Self {
        let mut this = Self { digits: [0; DIGITS_MAX], count: 0, exponent: 0 };
        let mut is_after_point = false;
        let mut exponent = -1;
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'.' => is_after_point = true,
                b'e' => {
                    exponent += text[at + 1..].parse().unwrap_or(0);
                    break;
                }
                b'0' if this.count == 0 => exponent -= i32::from(is_after_point),
                digit => {
                    exponent += i32::from(!is_after_point);
                    // What follows 17 digits are zeros of a whole number.
                    if this.count < DIGITS_MAX {
                        this.digits[this.count] = digit;
                        this.count += 1;
                    }
                }
            }
        }
        this.exponent = exponent;
        this.without_trailing_zeros()
    }

    fn without_trailing_zeros(mut self) -> Self {
        while self.count > 1 && self.digits[self.count - 1] == b'0' {
            self.count -= 1;
        }
        self
    }

    fn as_slice(&self) -> &[u8] {
        &self.digits[..self.count]
    }

    /// The digits as a whole number, and the power of ten to multiply it with.
    fn as_whole(&self) -> (u64, i32) {
        let whole = self.as_slice().iter().fold(0, |whole, digit| whole * 10 + u64::from(digit - b'0'));
        (whole, self.exponent + 1 - self.count as i32)
    }

    /// Whether this decimal lies exactly half-way between `mantissa` × 2^`exponent` and a neighbour of it.
    fn is_halfway(&self, mantissa: u64, exponent: i32) -> bool {
        // The midpoints are (2m ± 1) × 2^(e-1); below a power of two the gap is half as wide, its midpoint (4m - 1) × 2^(e-2).
        let (whole, power) = self.as_whole();
        let lower = if mantissa.is_power_of_two() {
            (4 * mantissa - 1, exponent - 2)
        } else {
            (2 * mantissa - 1, exponent - 1)
        };
        is_same(whole, power, 2 * mantissa + 1, exponent - 1) || is_same(whole, power, lower.0, lower.1)
    }

    /// In plain notation from 10^-4 to below 10^`limit`, else in e-notation with at least two exponent digits.
    fn write(&self, limit: i32, out: &mut Vec<u8>) {
        let digits = self.as_slice();
        if self.exponent < EXPONENT_MIN || self.exponent >= limit {
            return self.write_scientific(out);
        }
        let Ok(whole_digits) = usize::try_from(self.exponent + 1) else {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + self.exponent.unsigned_abs() as usize - 1, b'0');
            return out.extend_from_slice(digits);
        };
        if whole_digits == 0 {
            out.extend_from_slice(b"0.");
            out.extend_from_slice(digits);
        } else if digits.len() <= whole_digits {
            out.extend_from_slice(digits);
            out.resize(out.len() + whole_digits - digits.len(), b'0');
        } else {
            out.extend_from_slice(&digits[..whole_digits]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole_digits..]);
        }
    }

    fn write_scientific(&self, out: &mut Vec<u8>) {
        let digits = self.as_slice();
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if self.exponent < 0 { b"e-" } else { b"e+" });
        let exponent = self.exponent.unsigned_abs();
        if exponent < 10 {
            out.push(b'0');
        }
        out.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
    }
}

/// Whether `whole` × 10^`power` = `odd` × 2^`exponent`, for an odd number below 2^56 and a whole one below 10^17.
fn is_same(whole: u64, power: i32, odd: u64, exponent: i32) -> bool {
    /// 5^24 has 56 bits: beyond it neither side can hold the factor.
    const POWER_MAX: u32 = 24;
    let twos = whole.trailing_zeros();
    if twos as i32 + power != exponent || power.unsigned_abs() > POWER_MAX {
        return false;
    }
    let whole = u128::from(whole >> twos);
    let fives = 5u128.pow(power.unsigned_abs());
    if power >= 0 { whole * fives == u128::from(odd) } else { whole == u128::from(odd) * fives }
}

/// The shortest decimal strictly between the midpoints, where the very shortest lies on one: the closest with as
/// many digits, else with one more, and so on. Rare: powers of two, mostly.
fn second_shortest(
    shortest: Digits,
    mantissa: u64,
    exponent: i32,
    reads_back: impl Fn(&str) -> bool,
    render: impl Fn(usize) -> String,
) -> Digits {
    for precision in shortest.count - 1..DIGITS_MAX {
        let closest = Digits::of_rendering(&render(precision));
        let unit = precision as i32 - closest.exponent;
        let (whole, power) = closest.as_whole();
        let whole = whole * 10u64.pow((power + unit).unsigned_abs());
        for candidate in [whole, whole + 1, whole - 1].into_iter().filter(|&candidate| candidate > 0) {
            let text = format!("{candidate}e{}", -unit);
            let first = candidate.ilog10() as i32;
            let rendering = format!("{candidate}e{}", first - unit);
            let digits = Digits::of_rendering(&rendering);
            if reads_back(&text) && !digits.is_halfway(mantissa, exponent) {
                return digits;
            }
        }
    }
    shortest
}

/// float8in: surrounding white space, decimal notation, NaN and the infinities in any case.
pub fn parse_float8(text: &[u8]) -> Result<f64, ParseError> {
    let trimmed = trim_space(text);
    if let Some(special) = parse_special(trimmed) {
        return Ok(special);
    }
    let decimal = decimal_syntax(trimmed, "double precision")?;
    let value: f64 = decimal.parse().map_err(|_| ParseError::syntax("double precision"))?;
    if is_lost(value == 0.0, value.is_infinite(), decimal) {
        return Err(ParseError::out_of_range("double precision"));
    }
    Ok(value)
}

/// float4in: as [`parse_float8`], rounded once to a float.
pub fn parse_float4(text: &[u8]) -> Result<f32, ParseError> {
    let trimmed = trim_space(text);
    if let Some(special) = parse_special(trimmed) {
        return Ok(special as f32);
    }
    let decimal = decimal_syntax(trimmed, "real")?;
    let value: f32 = decimal.parse().map_err(|_| ParseError::syntax("real"))?;
    if is_lost(value == 0.0, value.is_infinite(), decimal) {
        return Err(ParseError::out_of_range("real"));
    }
    Ok(value)
}

fn parse_special(text: &[u8]) -> Option<f64> {
    let (is_negative, name) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if name.eq_ignore_ascii_case(b"infinity") || name.eq_ignore_ascii_case(b"inf") {
        return Some(if is_negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    // The C library reads signed NaNs too; which of them print a sign is not worth knowing.
    (name.len() == text.len() && name.eq_ignore_ascii_case(b"nan")).then_some(f64::NAN)
}

/// Checks for `[sign] digits [. digits] [e [sign] digits]`. What strtod reads besides (hexadecimal, `nan(...)`) is
/// left to upstream.
fn decimal_syntax<'a>(trimmed: &'a [u8], type_name: &str) -> Result<&'a str, ParseError> {
    let unsigned = match trimmed {
        [b'-' | b'+', rest @ ..] => rest,
        rest => rest,
    };
    if matches!(unsigned, [b'0', b'x' | b'X', ..] | [b'n' | b'N', b'a' | b'A', b'n' | b'N', ..]) {
        return Err(ParseError::beyond("a notation of the C library"));
    }
    let end = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(unsigned.len());
    let (mantissa, exponent) = unsigned.split_at(end);
    let points = mantissa.iter().filter(|&&byte| byte == b'.').count();
    let digits = mantissa.iter().filter(|byte| byte.is_ascii_digit()).count();
    let exponent_digits = match exponent {
        [_, b'-' | b'+', digits @ ..] | [_, digits @ ..] => Some(digits),
        [] => None,
    };
    let is_exponent_valid = exponent_digits.is_none_or(|d| !d.is_empty() && d.iter().all(u8::is_ascii_digit));
    if digits == 0 || points > 1 || digits + points != mantissa.len() || !is_exponent_valid {
        return Err(ParseError::syntax(type_name));
    }
    std::str::from_utf8(trimmed).map_err(|_| ParseError::syntax(type_name))
}

/// Overflow, or underflow to zero of digits that are not all zero: ERANGE, which float8in reports.
fn is_lost(is_zero: bool, is_infinite: bool, decimal: &str) -> bool {
    let mantissa = decimal.split(['e', 'E']).next().unwrap_or(decimal);
    is_infinite || (is_zero && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9')))
}

#[cfg(test)]
mod tests;
