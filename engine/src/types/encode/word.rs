//! Cells of at most twelve bytes, each made in a register: a [`Word`] is its length and its bytes, and is stored and copied in one go.

use super::slot::{LENGTH_BYTES, short_or_long_decimal, store};

/// The longest cell.
const CELL_BYTES: usize = WORD_BYTES - LENGTH_BYTES;
pub(super) const WORD_BYTES: usize = 16;

/// Numbers nearer to zero have at most ten digits: with sign and point they are no longer than a cell may be, if not more than
/// [`SCALE_MAX`] of the digits are decimals (or a zero comes before the point).
pub(super) const DECIMAL_LIMIT: u64 = 10_000_000_000;
pub(super) const SCALE_MAX: u16 = 9;

/// A cell as the message has it, the first byte in the lowest one, and whatever lies behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u128);

impl Word {
    pub(super) const NULL: Self = Self(u32::MAX as u128);

    /// A cell of `N` bytes.
    #[inline(always)]
    pub(super) fn of<const N: usize>(cell: [u8; N]) -> Self {
        const { assert!(N <= CELL_BYTES) };
        let mut bytes = [0; WORD_BYTES];
        store(&mut bytes, 0, (N as u32).to_be_bytes());
        store(&mut bytes, LENGTH_BYTES, cell);
        Self(u128::from_le_bytes(bytes))
    }

    /// `mantissa` × 10^-`scale` in decimal notation, within the bounds above.
    #[inline(always)]
    pub(super) fn decimal(mantissa: i64, scale: u16) -> Self {
        let (text, length) = short_or_long_decimal(mantissa.unsigned_abs(), scale);
        let is_negative = mantissa < 0;
        let text = if is_negative { text << 8 | u128::from(b'-') } else { text };
        let length = length as u32 + u32::from(is_negative);
        Self(u128::from(length.swap_bytes()) | text << (8 * LENGTH_BYTES))
    }

    #[inline(always)]
    pub(super) fn bytes(self) -> [u8; WORD_BYTES] {
        self.0.to_le_bytes()
    }

    /// Of the cell, its length included.
    #[inline(always)]
    pub(super) fn length(self) -> usize {
        // -1: NULL.
        LENGTH_BYTES + ((self.0 as u32).swap_bytes() as i32).max(0) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::slot::Slot;
    use super::*;

    fn cell(word: Word) -> Vec<u8> {
        word.bytes()[..word.length()].to_vec()
    }

    #[test]
    fn a_word_is_a_cell_of_bytes_or_null() {
        assert_eq!(cell(Word::of(*b"abc")), b"\0\0\0\x03abc");
        assert_eq!(cell(Word::of([7; CELL_BYTES])).len(), WORD_BYTES);
        assert_eq!(cell(Word::NULL), [255; 4]);
    }

    proptest! {
        #[test]
        fn decimals_print_as_in_a_slot(mantissa in any::<i64>(), cut in 0u32..19, scale in 0..=SCALE_MAX) {
            let mantissa = mantissa / 10i64.pow(cut) % DECIMAL_LIMIT as i64;
            let mut slot = Slot::EMPTY;
            slot.put_decimal(mantissa, scale);
            prop_assert_eq!(cell(Word::decimal(mantissa, scale)), slot.bytes()[..slot.length()].to_vec());
        }
    }
}
