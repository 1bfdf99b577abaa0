//! bit and varbit: held as their digits, a character for each bit, which is what they print as (varbit.c).
//!
//! The order of bit strings is that of these texts byte by byte: bit_cmp compares the bits from the left, filled up with zeros,
//! and then the lengths.

use super::text::ParseError;

/// bit_in and varbit_in without a length: binary digits, behind b if one likes, or hexadecimal ones behind x.
pub fn parse(text: &str) -> Result<String, ParseError> {
    let (digits, width) = match text.as_bytes() {
        [b'x' | b'X', ..] => (&text[1..], 4),
        [b'b' | b'B', ..] => (&text[1..], 1),
        _ => (text, 1),
    };
    let mut bits = String::with_capacity(digits.len() * width);
    for digit in digits.chars() {
        let value = digit.to_digit(1 << width);
        let value = value.ok_or_else(|| ParseError::Raises("not a valid binary or hexadecimal digit".into()))?;
        bits.extend((0..width).rev().map(|place| if (value >> place) & 1 == 1 { '1' } else { '0' }));
    }
    Ok(bits)
}

/// bit_recv and varbit_recv: the number of bits, then as many bytes as they take.
pub fn decode(bytes: &[u8]) -> Result<String, ParseError> {
    let wrong = || ParseError::Raises("invalid length in external bit string".into());
    let (length, data) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
    let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| wrong())?;
    if data.len() != length.div_ceil(8) {
        return Err(wrong());
    }
    Ok((0..length).map(|at| if (data[at / 8] >> (7 - at % 8)) & 1 == 1 { '1' } else { '0' }).collect())
}

/// bit_send and varbit_send.
pub fn encode(bits: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(bits.len() as i32).to_be_bytes());
    for eight in bits.as_bytes().chunks(8) {
        let byte = eight.iter().fold(0u8, |byte, digit| (byte << 1) | (digit - b'0'));
        out.push(byte << (8 - eight.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bits() {
        for (text, bits) in [("101", "101"), ("b01", "01"), ("xF0", "11110000"), ("X", ""), ("", "")] {
            assert_eq!(parse(text).as_deref(), Ok(bits), "{text}");
        }
        for text in ["2", "xg", "b2", " 1", "ä"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sent_bits_are_received() {
        for bits in ["", "1", "10110111", "011111111", "0000000000000000"] {
            let mut bytes = Vec::new();
            encode(bits, &mut bytes);
            assert_eq!(bytes.len(), 4 + bits.len().div_ceil(8));
            assert_eq!(decode(&bytes).as_deref(), Ok(bits));
        }
        assert!(decode(&[0, 0, 0, 9, 1]).is_err() && decode(&[0, 0]).is_err() && decode(&[0xff; 4]).is_err());
    }
}
