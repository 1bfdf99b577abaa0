//! ln and exp of decimal values, as binary fixed point: an integer × 2^-places. The error is below 2^(16 - places), so that
//! callers know how many digits are right.

use std::sync::LazyLock;

use num_bigint::{BigInt, BigUint};

/// The most places that a caller may ask for.
pub(super) const PLACES_MAX: u64 = 384;

/// ln(`magnitude` × 10^-`scale`) for a magnitude above zero.
pub(super) fn ln(magnitude: u128, scale: u16, places: u64) -> BigInt {
    let numerator = BigUint::from(magnitude);
    let denominator = power_of_ten(u32::from(scale));
    // The argument is f × 2^exponent with f between 1/2 and 2.
    let exponent = numerator.bits().cast_signed() - denominator.bits().cast_signed();
    let shift = places.cast_signed() - exponent;
    let f = if shift >= 0 { (numerator << shift) / denominator } else { (numerator >> -shift) / denominator };
    // f × factor / 64 is 1 + e with |e| at most 1/64.
    let first = u64::try_from(&f >> (places - 32)).expect("f is below 2");
    let factor = ((64u64 << 32) + first / 2) / first;
    let one = BigInt::from(1) << places;
    let near_one = BigInt::from((f * factor) >> 6);
    let series = double_atanh(&(((&near_one - &one) << places) / (near_one + one)), places);
    series - logarithm(factor, places) + logarithm(2, places) * (exponent + 6)
}

/// e^(`argument` × 2^-`places`) as a mantissa with `places`, between 1/2 and 2, and the power of two that it is multiplied by.
pub(super) fn exp(argument: &BigInt, places: u64) -> (BigUint, i64) {
    const HALVINGS: u64 = 8;
    let ln_two = logarithm(2, places);
    let half = BigInt::from(1) << (places - 1);
    let exponent: BigInt = (((argument << places) / &ln_two) + half) >> places;
    let multiple: BigInt = (logarithm(2, PLACES_MAX) * &exponent) >> (PLACES_MAX - places);
    let rest: BigInt = (argument - multiple) >> HALVINGS;
    let mut sum = (BigInt::from(1) << places) + &rest;
    let mut term = rest.clone();
    for order in 2u32.. {
        term = ((term * &rest) >> places) / order;
        if term.bits() < 2 {
            break;
        }
        sum += &term;
    }
    for _ in 0..HALVINGS {
        sum = (&sum * &sum) >> places;
    }
    let exponent = i64::try_from(exponent).expect("callers bound the argument");
    (sum.magnitude().clone(), exponent)
}

pub(super) fn power_of_ten(exponent: u32) -> BigUint {
    match super::power_of_ten(exponent) {
        Some(power) => BigUint::from(power.unsigned_abs()),
        None => BigUint::from(10u32).pow(exponent),
    }
}

/// 2 atanh(z), which is ln((1 + z) / (1 - z)), for a small z.
fn double_atanh(z: &BigInt, places: u64) -> BigInt {
    let square = (z * z) >> places;
    let (mut sum, mut power) = (z.clone(), z.clone());
    for order in (3u32..).step_by(2) {
        power = (power * &square) >> places;
        // Shifted down, a negative number ends at -1.
        if power.bits() < 2 {
            break;
        }
        sum += &power / order;
    }
    sum << 1
}

/// ln of a whole number up to 128.
fn logarithm(of: u64, places: u64) -> BigInt {
    &LOGARITHMS[of as usize] >> (GUARDED_PLACES - places)
}

/// The sums of up to 128 series are as exact as one of fewer places.
const GUARDED_PLACES: u64 = PLACES_MAX + 32;

static LOGARITHMS: LazyLock<Vec<BigInt>> = LazyLock::new(|| {
    let mut logarithms = vec![BigInt::ZERO, BigInt::ZERO];
    for number in 2..=128u32 {
        // n / (n - 1) is (1 + z) / (1 - z) for z = 1 / (2n - 1).
        let z = (BigInt::from(1) << GUARDED_PLACES) / (2 * number - 1);
        let step = double_atanh(&z, GUARDED_PLACES);
        logarithms.push(&logarithms[number as usize - 1] + step);
    }
    logarithms
});

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: &BigInt, places: u64) -> String {
        ((value * BigInt::from(power_of_ten(50))) >> places).to_string()
    }

    #[test]
    fn logarithms_and_exponentials_are_those_of_tables() {
        assert_eq!(decimal(&ln(2, 0, 256), 256), "69314718055994530941723212145817656807550013436025");
        assert_eq!(decimal(&ln(10, 0, 256), 256), "230258509299404568401799145468436420760110148862877");
        assert_eq!(decimal(&ln(1, 1, 384), 384), "-230258509299404568401799145468436420760110148862878");
        let one = BigInt::from(1) << 256u32;
        let (mantissa, exponent) = exp(&one, 256);
        let e = BigInt::from(mantissa << exponent);
        assert_eq!(decimal(&e, 256), "271828182845904523536028747135266249775724709369995");
    }
}
