//! Input of inet and cidr (network_in in network.c; inet_net_pton.c): an address with a colon is of IPv6, any other of IPv4.

use super::{Family, Kind, Network};
use crate::types::text::ParseError;

/// A prefix length of more digits overflows there, and what it then means is nobody's intention.
const LENGTH_DIGITS_MAX: usize = 8;
const IPV4_BYTES: usize = 4;
const IPV6_BYTES: usize = 16;

pub(super) fn address(kind: Kind, text: &str) -> Result<Network, ParseError> {
    let bytes = text.as_bytes();
    let is_hexadecimal = matches!(bytes, [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit());
    let is_long = text.split_once('/').is_some_and(|(_, length)| length.len() > LENGTH_DIGITS_MAX);
    let parsed = match kind {
        _ if bytes.contains(&b':') => ipv6(bytes),
        _ if is_long => return Err(ParseError::beyond("a long prefix length")),
        Kind::Inet => ipv4(bytes),
        Kind::Cidr if is_hexadecimal => return Err(ParseError::beyond("a hexadecimal network")),
        Kind::Cidr => ipv4_network(bytes),
    };
    parsed.ok_or_else(|| ParseError::syntax(kind.name()))
}

/// The octets of an IPv4 address that are written, and whatever follows them.
struct Octets {
    octets: [u8; IPV4_BYTES],
    count: usize,
}

impl Octets {
    fn network(&self, bits: u8) -> Network {
        Network { family: Family::V4, bits, address: u32::from_be_bytes(self.octets).into() }
    }
}

/// Decimal octets with points between them, up to a slash or the end. A point may stand behind the last one.
fn octets(text: &[u8]) -> Option<(Octets, &[u8])> {
    let mut read = Octets { octets: [0; IPV4_BYTES], count: 0 };
    let mut rest = text;
    while let (Some(octet), after) = octet(rest)? {
        *read.octets.get_mut(read.count)? = octet;
        read.count += 1;
        rest = match after {
            [b'.', tail @ ..] => tail,
            [] | [b'/', ..] => return Some((read, after)),
            _ => return None,
        };
    }
    (read.count > 0).then_some((read, rest))
}

/// The digits at the front of a text; None in all if they are more than an octet.
fn octet(text: &[u8]) -> Option<(Option<u8>, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, after) = text.split_at(end);
    if digits.is_empty() {
        return Some((None, after));
    }
    let value = digits.iter().try_fold(0u8, |value, digit| value.checked_mul(10)?.checked_add(digit - b'0'))?;
    Some((Some(value), after))
}

/// What follows an IPv4 address: nothing, or a slash and digits. None in all if it is anything else, or too long.
fn ipv4_length(text: &[u8]) -> Option<Option<u8>> {
    match text {
        [] => Some(None),
        [b'/', digits @ ..] => match octet(digits)? {
            (Some(bits), []) if bits <= Family::V4.width() => Some(Some(bits)),
            _ => None,
        },
        _ => None,
    }
}

/// inet_net_pton_ipv4: the length may cover more than what is written only within its last octet.
fn ipv4(text: &[u8]) -> Option<Network> {
    let (read, rest) = octets(text)?;
    match ipv4_length(rest)? {
        Some(bits) => (usize::from(bits / 8) <= read.count).then(|| read.network(bits)),
        None => (read.count == IPV4_BYTES).then(|| read.network(Family::V4.width())),
    }
}

/// inet_cidr_pton_ipv4, without hexadecimal digits.
fn ipv4_network(text: &[u8]) -> Option<Network> {
    let (read, rest) = octets(text)?;
    if text[..text.len() - rest.len()].ends_with(b".") {
        return None;
    }
    let bits = ipv4_length(rest)?.unwrap_or_else(|| class_bits(&read));
    Some(read.network(bits))
}

/// The length that the class of a network without one gives it; the octets that are written count anyway.
fn class_bits(read: &Octets) -> u8 {
    let of_class: u8 = match read.octets[0] {
        240.. => 32,
        192..224 => 24,
        128..192 => 16,
        _ => 8,
    };
    let bits = of_class.max(read.count as u8 * 8);
    if bits == 8 && read.octets[0] == 224 { 4 } else { bits }
}

/// An IPv6 address in the making.
struct Groups {
    bytes: [u8; IPV6_BYTES],
    count: usize,
    /// Where `::` stands.
    gap: Option<usize>,
}

impl Groups {
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes.get_mut(self.count..self.count + bytes.len())?.copy_from_slice(bytes);
        self.count += bytes.len();
        Some(())
    }

    fn push_digits(&mut self, digits: &[u8]) -> Option<()> {
        if digits.is_empty() {
            return Some(());
        }
        let digits = std::str::from_utf8(digits).ok()?;
        self.push(&u16::from_str_radix(digits, 16).ok()?.to_be_bytes())
    }

    /// The whole, with zeros in the gap; a gap of nothing is none.
    fn address(mut self) -> Option<u128> {
        match self.gap {
            Some(_) if self.count == IPV6_BYTES => return None,
            Some(gap) => {
                let behind = self.count - gap;
                self.bytes.copy_within(gap..self.count, IPV6_BYTES - behind);
                self.bytes[gap..IPV6_BYTES - behind].fill(0);
            }
            None if self.count < IPV6_BYTES => return None,
            None => {}
        }
        Some(u128::from_be_bytes(self.bytes))
    }
}

/// inet_cidr_pton_ipv6, which inet goes by, too.
fn ipv6(text: &[u8]) -> Option<Network> {
    let mut rest = match text {
        [b':', tail @ ..] if tail.first() == Some(&b':') => tail,
        [b':', ..] => return None,
        plain => plain,
    };
    let mut groups = Groups { bytes: [0; IPV6_BYTES], count: 0, gap: None };
    let mut bits = Family::V6.width();
    loop {
        let end = rest.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        if digits.len() > 4 {
            return None;
        }
        match after {
            [b':', tail @ ..] => {
                if digits.is_empty() {
                    if groups.gap.replace(groups.count).is_some() {
                        return None;
                    }
                } else if tail.is_empty() {
                    return None;
                }
                groups.push_digits(digits)?;
                rest = tail;
                continue;
            }
            [b'.', ..] => {
                let (octets, length) = embedded(rest)?;
                groups.push(&octets)?;
                bits = length.unwrap_or(bits);
            }
            [b'/', length @ ..] => {
                groups.push_digits(digits)?;
                bits = ipv6_length(length)?;
            }
            [] => groups.push_digits(digits)?,
            _ => return None,
        }
        return Some(Network { family: Family::V6, bits, address: groups.address()? });
    }
}

/// An IPv4 address as the last groups, with the length behind it (getv4). Octets may be missing.
fn embedded(text: &[u8]) -> Option<([u8; IPV4_BYTES], Option<u8>)> {
    let (mut octets, mut count) = ([0; IPV4_BYTES], 0);
    let mut rest = text;
    loop {
        let (value, after) = octet(rest)?;
        let digits = &rest[..rest.len() - after.len()];
        if digits.len() > 1 && digits[0] == b'0' {
            return None;
        }
        *octets.get_mut(count)? = value.unwrap_or(0);
        count += 1;
        match after {
            [] => return value.map(|_| (octets, None)),
            [b'/', length @ ..] => return Some((octets, Some(ipv6_length(length)?))),
            [b'.', tail @ ..] => rest = tail,
            _ => return None,
        }
    }
}

/// Digits without a zero in front, 128 at most (getbits).
fn ipv6_length(digits: &[u8]) -> Option<u8> {
    match octet(digits)? {
        (Some(bits), []) if bits <= Family::V6.width() && (digits.len() == 1 || digits[0] != b'0') => Some(bits),
        _ => None,
    }
}
