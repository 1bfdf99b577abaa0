//! Operators and functions of inet and cidr (network.c). There are none for cidr alone but abbrev and set_masklen: it goes as inet.

use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;

use super::rows::{Argument, Binaries, Bytes, to_bool, to_bytes, to_number, to_text};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Bool, Cidr, Inet, Int4, Int8, Text};
use crate::types::network::{Family, Kind, Network};

/// inet or cidr.
struct Address;

impl Argument for Address {
    type Item<'a> = Network;
    type View<'a> = Binaries<'a>;
    fn view(operand: &Operand) -> Result<Option<Binaries<'_>>, EvalError> {
        Bytes::view(operand)
    }
    fn nulls<'a>(view: &Self::View<'a>) -> Option<&'a NullBuffer> {
        Bytes::nulls(view)
    }
    fn at<'a>(view: &Self::View<'a>, row: usize) -> Self::Item<'a> {
        Network::of_held(Bytes::at(view, row))
    }
}

/// A rule over two addresses.
trait Pair {
    fn holds(a: Network, b: Network) -> bool;
}

macro_rules! pair {
    ($name:ident, |$a:ident, $b:ident| $holds:expr) => {
        struct $name;
        impl Pair for $name {
            fn holds($a: Network, $b: Network) -> bool {
                $holds
            }
        }
    };
}

pair!(Within, |a, b| a.bits > b.bits && a.agrees(b, b.bits));
pair!(WithinOrEqual, |a, b| a.bits >= b.bits && a.agrees(b, b.bits));
pair!(Around, |a, b| Within::holds(b, a));
pair!(AroundOrEqual, |a, b| WithinOrEqual::holds(b, a));
pair!(Overlapping, |a, b| a.agrees(b, a.bits.min(b.bits)));
pair!(SameFamily, |a, b| a.family == b.family);

fn holds<P: Pair>(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bool::<(Address, Address)>(o, rows, |(a, b)| Ok(P::holds(a, b)))
}

/// Another address for each.
trait Change {
    fn of(network: Network) -> Network;
}

macro_rules! change {
    ($name:ident, |$network:ident| $changed:expr) => {
        struct $name;
        impl Change for $name {
            fn of($network: Network) -> Network {
                $changed
            }
        }
    };
}

change!(NetworkOf, |n| n.network());
change!(Broadcast, |n| Network { address: n.address | n.host_mask(), ..n });
change!(NetMask, |n| n.host(n.net_mask()));
change!(HostMask, |n| n.host(n.host_mask()));
change!(Not, |n| Network { address: !n.address & all_ones(n.family), ..n });

fn changed<C: Change>(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bytes::<(Address,)>(o, rows, |(network,), out| {
        C::of(network).write_held(out);
        Ok(())
    })
}

fn all_ones(family: Family) -> u128 {
    Network { family, bits: 0, address: 0 }.host_mask()
}

fn family(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_number::<(Address,), i32>(o, rows, |(network,)| {
        Ok(match network.family {
            Family::V4 => 4,
            Family::V6 => 6,
        })
    })
}

fn mask_length(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_number::<(Address,), i32>(o, rows, |(network,)| Ok(network.bits.into()))
}

fn host(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Address,)>(o, rows, |(network,), out| {
        network.write_host(out);
        Ok(())
    })
}

fn show(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Address,)>(o, rows, |(network,), out| {
        network.write_whole(out);
        Ok(())
    })
}

fn abbreviate(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Address,)>(o, rows, |(network,), out| {
        network.write_text(Kind::Inet, out);
        Ok(())
    })
}

fn abbreviate_network(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Address,)>(o, rows, |(network,), out| {
        network.write_abbreviated(out);
        Ok(())
    })
}

/// -1 is the whole address.
fn with_length(network: Network, length: i32) -> Result<Network, EvalError> {
    let width = network.family.width();
    let bits = if length == -1 { Some(width) } else { u8::try_from(length).ok().filter(|bits| *bits <= width) };
    let bits = bits.ok_or_else(|| EvalError::Raises("invalid mask length".to_owned()))?;
    Ok(Network { bits, ..network })
}

fn set_length(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bytes::<(Address, i32)>(o, rows, |(network, length), out| {
        with_length(network, length)?.write_held(out);
        Ok(())
    })
}

fn set_network_length(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bytes::<(Address, i32)>(o, rows, |(network, length), out| {
        with_length(network, length)?.network().write_held(out);
        Ok(())
    })
}

fn of_one_family(a: Network, b: Network, what: &str) -> Result<(), EvalError> {
    if a.family == b.family { Ok(()) } else { Err(EvalError::Raises(format!("cannot {what}"))) }
}

/// The smallest network that has both.
fn merge(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bytes::<(Address, Address)>(o, rows, |(a, b), out| {
        of_one_family(a, b, "merge addresses from different families")?;
        let bits = a.common_bits(b, a.bits.min(b.bits));
        Network { bits, ..a }.network().write_held(out);
        Ok(())
    })
}

fn and(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    combined(o, rows, |a, b| a & b)
}

fn or(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    combined(o, rows, |a, b| a | b)
}

fn combined(o: &[Operand], rows: usize, combine: fn(u128, u128) -> u128) -> Result<ArrayRef, EvalError> {
    to_bytes::<(Address, Address)>(o, rows, |(a, b), out| {
        of_one_family(a, b, "combine inet values of different sizes")?;
        Network { address: combine(a.address, b.address), bits: a.bits.max(b.bits), ..a }.write_held(out);
        Ok(())
    })
}

/// internal_inetpl: past either end of the family's addresses it raises.
fn moved(network: Network, by: i64) -> Result<Network, EvalError> {
    let distance = u128::from(by.unsigned_abs());
    let address = if by < 0 { network.address.checked_sub(distance) } else { network.address.checked_add(distance) };
    let address = address.filter(|address| *address <= all_ones(network.family));
    let address = address.ok_or_else(|| EvalError::Raises("result is out of range".to_owned()))?;
    Ok(Network { address, ..network })
}

fn plus(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bytes::<(Address, i64)>(o, rows, |(network, by), out| {
        moved(network, by)?.write_held(out);
        Ok(())
    })
}

fn added_to(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bytes::<(i64, Address)>(o, rows, |(by, network), out| {
        moved(network, by)?.write_held(out);
        Ok(())
    })
}

fn minus(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_bytes::<(Address, i64)>(o, rows, |(network, by), out| {
        // The smallest bigint is its own negative there.
        moved(network, by.wrapping_neg())?.write_held(out);
        Ok(())
    })
}

/// inetmi: in two's complement of 128 bits, so that addresses far enough apart are near each other.
fn distance(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_number::<(Address, Address), i64>(o, rows, |(a, b)| {
        of_one_family(a, b, "subtract inet values of different sizes")?;
        let distance = a.address.wrapping_sub(b.address).cast_signed();
        i64::try_from(distance).map_err(|_| EvalError::Raises("result is out of range".to_owned()))
    })
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("<<", &[Inet, Inet], Bool, holds::<Within>, "network.c network_sub"),
    Function::immutable("<<=", &[Inet, Inet], Bool, holds::<WithinOrEqual>, "network.c network_subeq"),
    Function::immutable(">>", &[Inet, Inet], Bool, holds::<Around>, "network.c network_sup"),
    Function::immutable(">>=", &[Inet, Inet], Bool, holds::<AroundOrEqual>, "network.c network_supeq"),
    Function::immutable("&&", &[Inet, Inet], Bool, holds::<Overlapping>, "network.c network_overlap"),
    Function::immutable("inet_same_family", &[Inet, Inet], Bool, holds::<SameFamily>, "network.c inet_same_family"),
    Function::immutable("~", &[Inet], Inet, changed::<Not>, "network.c inetnot"),
    Function::immutable("&", &[Inet, Inet], Inet, and, "network.c inetand"),
    Function::immutable("|", &[Inet, Inet], Inet, or, "network.c inetor"),
    Function::immutable("+", &[Inet, Int8], Inet, plus, "network.c inetpl"),
    Function::immutable("+", &[Int8, Inet], Inet, added_to, "system_functions.sql int8pl_inet"),
    Function::immutable("-", &[Inet, Int8], Inet, minus, "network.c inetmi_int8"),
    Function::immutable("-", &[Inet, Inet], Int8, distance, "network.c inetmi"),
    Function::immutable("host", &[Inet], Text, host, "network.c network_host"),
    Function::immutable("text", &[Inet], Text, show, "network.c network_show"),
    Function::immutable("abbrev", &[Inet], Text, abbreviate, "network.c inet_abbrev"),
    Function::immutable("abbrev", &[Cidr], Text, abbreviate_network, "network.c cidr_abbrev"),
    Function::immutable("family", &[Inet], Int4, family, "network.c network_family"),
    Function::immutable("masklen", &[Inet], Int4, mask_length, "network.c network_masklen"),
    Function::immutable("network", &[Inet], Cidr, changed::<NetworkOf>, "network.c network_network"),
    Function::immutable("cidr", &[Inet], Cidr, changed::<NetworkOf>, "network.c inet_to_cidr"),
    Function::immutable("broadcast", &[Inet], Inet, changed::<Broadcast>, "network.c network_broadcast"),
    Function::immutable("netmask", &[Inet], Inet, changed::<NetMask>, "network.c network_netmask"),
    Function::immutable("hostmask", &[Inet], Inet, changed::<HostMask>, "network.c network_hostmask"),
    Function::immutable("set_masklen", &[Inet, Int4], Inet, set_length, "network.c inet_set_masklen"),
    Function::immutable("set_masklen", &[Cidr, Int4], Cidr, set_network_length, "network.c cidr_set_masklen"),
    Function::immutable("inet_merge", &[Inet, Inet], Cidr, merge, "network.c inet_merge"),
];
