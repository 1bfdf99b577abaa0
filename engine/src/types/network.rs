//! inet and cidr: an address and how many of its leading bits are the network (network.c).
//!
//! A value is held as bytes whose order is that of the types (network_cmp_internal): the family, the address without what
//! lies behind the network, the number of the network's bits, the address. So equal values have equal bytes, and an inet
//! and the cidr that `=` takes for its equal are held alike.

mod parse;
mod print;

use std::cmp::Ordering;

use super::PgType;
use super::binary::fixed;
use super::text::ParseError;

/// Which of the two types: they differ in what they accept and how they print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Inet,
    Cidr,
}

impl Kind {
    /// None: neither of the two.
    pub fn of(pg_type: PgType) -> Option<Self> {
        match pg_type {
            PgType::Inet => Some(Self::Inet),
            PgType::Cidr => Some(Self::Cidr),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Inet => "inet",
            Self::Cidr => "cidr",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    /// Bits of an address (ip_maxbits).
    pub fn width(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// PGSQL_AF_INET and PGSQL_AF_INET6, as they are sent.
    fn code(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 3,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        match code {
            2 => Some(Self::V4),
            3 => Some(Self::V6),
            _ => None,
        }
    }

    fn bytes(self) -> usize {
        usize::from(self.width() / 8)
    }

    /// All bits of an address set.
    fn ones(self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width()))
    }
}

/// A value, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    pub family: Family,
    /// Of the network, at most the family's width.
    pub bits: u8,
    /// As a number, in the low bits.
    pub address: u128,
}

/// Bytes in front of the address in what inet_send makes: family, bits, whether it is a cidr, length of the address.
const HEADER_BYTES: usize = 4;
/// Where of these it says whether it is a cidr.
const KIND_AT: usize = 2;

impl Network {
    /// What inet_in and cidr_in make of a text.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, ParseError> {
        let network = parse::address(kind, text)?;
        if kind == Kind::Cidr && network.address & network.host_mask() != 0 {
            return Err(ParseError::Raises("invalid cidr value".to_owned()));
        }
        Ok(network)
    }

    /// Takes apart what [`Self::write_held`] made.
    pub fn of_held(held: &[u8]) -> Self {
        let family = if held[0] == Family::V4.code() { Family::V4 } else { Family::V6 };
        let width = family.bytes();
        Self { family, bits: held[1 + width], address: number(&held[2 + width..]) }
    }

    /// Appends the form in which columns hold it.
    pub fn write_held(self, out: &mut Vec<u8>) {
        out.push(self.family.code());
        self.write_address(self.network_address(), out);
        out.push(self.bits);
        self.write_address(self.address, out);
    }

    /// The form in which columns hold it.
    pub fn held(self) -> Vec<u8> {
        let mut held = Vec::with_capacity(2 + 2 * self.family.bytes());
        self.write_held(&mut held);
        held
    }

    /// What inet_recv and cidr_recv make of bytes; which type they say they are is not looked at there either.
    pub fn decode(kind: Kind, bytes: &[u8]) -> Result<Self, ParseError> {
        let wrong = || ParseError::Raises(format!("invalid external \"{}\" value", kind.name()));
        let (&[family, bits, _, length], address) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(wrong)?;
        let family = Family::of_code(family).ok_or_else(wrong)?;
        let address = match family {
            Family::V4 => u128::from(u32::from_be_bytes(fixed(address)?)),
            Family::V6 => u128::from_be_bytes(fixed(address)?),
        };
        let network = Self { family, bits, address };
        if bits > family.width() || usize::from(length) != family.bytes() {
            return Err(wrong());
        }
        if kind == Kind::Cidr && address & network.host_mask() != 0 {
            return Err(wrong());
        }
        Ok(network)
    }

    /// Appends what inet_send and cidr_send make.
    pub fn encode(self, kind: Kind, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.family.code(), self.bits, u8::from(kind == Kind::Cidr), self.family.width() / 8]);
        self.write_address(self.address, out);
    }

    fn write_address(self, address: u128, out: &mut Vec<u8>) {
        out.extend_from_slice(&address.to_be_bytes()[16 - self.family.bytes()..]);
    }

    /// The bits behind the network, set.
    pub fn host_mask(self) -> u128 {
        self.family.ones().checked_shr(self.bits.into()).unwrap_or(0)
    }

    /// The bits of the network, set.
    pub fn net_mask(self) -> u128 {
        self.family.ones() & !self.host_mask()
    }

    pub fn network_address(self) -> u128 {
        self.address & self.net_mask()
    }

    /// The same without what lies behind the network (network_network, inet_to_cidr).
    pub fn network(self) -> Self {
        Self { address: self.network_address(), ..self }
    }

    /// All bits of the address being network.
    pub fn host(self, address: u128) -> Self {
        Self { bits: self.family.width(), address, ..self }
    }

    /// How many leading bits of the addresses agree, `bits_max` at most (bitncommon). Both must be of one family.
    pub fn common_bits(self, other: Self, bits_max: u8) -> u8 {
        let unused = 128 - u32::from(self.family.width());
        let common = (self.address ^ other.address).leading_zeros() - unused;
        u8::try_from(common).map_or(bits_max, |common| common.min(bits_max))
    }

    /// Whether the two are of one family and agree in that many leading bits.
    pub fn agrees(self, other: Self, bits: u8) -> bool {
        self.family == other.family && self.common_bits(other, bits) == bits
    }
}

impl Ord for Network {
    /// network_cmp_internal.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |network: &Self| (network.family, network.network_address(), network.bits, network.address);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Makes what was received as an element of an array say that it is of that type: that byte counts for nothing, but arrays are
/// compared by their bytes.
pub(super) fn mark_kind(kind: Kind, sent: &mut [u8]) {
    if let Some(byte) = sent.get_mut(KIND_AT) {
        *byte = u8::from(kind == Kind::Cidr);
    }
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests;
