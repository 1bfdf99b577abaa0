//! Output of inet and cidr (network.c; inet_net_ntop.c, inet_cidr_ntop.c).

use std::fmt::Write;

use super::{Family, Kind, Network};

const GROUPS: usize = 8;

impl Network {
    /// Appends what inet_out and cidr_out print: an inet of one address goes without its length.
    pub fn write_text(self, kind: Kind, out: &mut String) {
        self.write_host(out);
        if kind == Kind::Cidr || self.bits != self.family.width() {
            self.write_length(out);
        }
    }

    /// The address with its length, always: what a cast to text makes (network_show).
    pub fn write_whole(self, out: &mut String) {
        self.write_host(out);
        self.write_length(out);
    }

    /// The address alone (network_host).
    pub fn write_host(self, out: &mut String) {
        match self.family {
            Family::V4 => write_octets((self.address as u32).to_be_bytes(), out),
            Family::V6 => write_groups(self.address, out),
        }
    }

    /// The network without the octets or groups that it does not cover (cidr_abbrev).
    pub fn write_abbreviated(self, out: &mut String) {
        match (self.family, self.bits) {
            (Family::V4, 0) => out.push('0'),
            (Family::V4, bits) => {
                let octets = (self.network_address() as u32).to_be_bytes();
                write_some_octets(&octets[..usize::from(bits.div_ceil(8))], out);
            }
            (Family::V6, 0) => out.push_str("::"),
            (Family::V6, bits) => write_network_groups(self.network_address(), bits, out),
        }
        self.write_length(out);
    }

    fn write_length(self, out: &mut String) {
        out.push('/');
        out.push_str(itoa::Buffer::new().format(self.bits));
    }
}

fn write_octets(octets: [u8; 4], out: &mut String) {
    write_some_octets(&octets, out);
}

fn write_some_octets(octets: &[u8], out: &mut String) {
    for (place, octet) in octets.iter().enumerate() {
        if place > 0 {
            out.push('.');
        }
        out.push_str(itoa::Buffer::new().format(*octet));
    }
}

fn groups_of(address: u128) -> [u16; GROUPS] {
    std::array::from_fn(|place| (address >> (16 * (GROUPS - 1 - place))) as u16)
}

fn write_group(group: u16, out: &mut String) {
    write!(out, "{group:x}").expect("a String takes whatever is written");
}

/// inet_net_ntop_ipv6: the first of the longest runs of zeros is `::`, if it has two groups; an IPv4 address that is mapped or
/// compatible prints as one.
fn write_groups(address: u128, out: &mut String) {
    let groups = groups_of(address);
    let run = longest_run(&groups);
    let is_ipv4 = run.start == 0 && (run.len() == 6 || (run.len() == 5 && groups[5] == 0xffff));
    for (place, group) in groups.iter().enumerate() {
        if run.contains(&place) {
            if place == run.start {
                out.push(':');
            }
            continue;
        }
        if place > 0 {
            out.push(':');
        }
        if place == 6 && is_ipv4 {
            write_octets((address as u32).to_be_bytes(), out);
            return;
        }
        write_group(*group, out);
    }
    if !run.is_empty() && run.end == GROUPS {
        out.push(':');
    }
}

/// The first of the longest runs of zeros; empty if none has two.
fn longest_run(groups: &[u16; GROUPS]) -> std::ops::Range<usize> {
    let (mut best, mut start) = (0..0, 0);
    for place in 0..=GROUPS {
        if groups.get(place).is_some_and(|group| *group == 0) {
            continue;
        }
        if place - start > best.len() {
            best = start..place;
        }
        start = place + 1;
    }
    if best.len() < 2 { 0..0 } else { best }
}

/// inet_cidr_ntop_ipv6: as many groups as the network reaches into, two at least.
fn write_network_groups(address: u128, bits: u8, out: &mut String) {
    let all = groups_of(address);
    let groups = &all[..usize::from(bits.div_ceil(16)).max(2)];
    let run = run_of_network(groups);
    let is_mapped = run.len() == 5 && all[5] == 0xffff;
    let [.., before_last, last] = address.to_be_bytes();
    let is_compatible = run.len() == 6 || (run.len() == 7 && before_last != 0 && last != 1);
    let is_ipv4 = run.len() != groups.len() && run.start == 0 && (is_compatible || is_mapped);
    let start = out.len();
    for (place, group) in groups.iter().enumerate() {
        if run.contains(&place) {
            if place == run.start {
                out.push(':');
            }
            if place == groups.len() - 1 {
                out.push(':');
            }
        } else if is_ipv4 && place > 5 {
            out.push(if place == 6 { ':' } else { '.' });
            let [high, low] = group.to_be_bytes();
            // The last octet may be left out.
            let shown = if place != 7 || bits > 120 { &[high, low][..] } else { &[high][..] };
            write_some_octets(shown, out);
        } else {
            if out.len() > start {
                out.push(':');
            }
            write_group(*group, out);
        }
    }
}

/// The run of zeros that inet_cidr_ntop_ipv6 leaves out. A run that is no longer than one before it is not forgotten there:
/// the next zeros are counted to it.
fn run_of_network(groups: &[u16]) -> std::ops::Range<usize> {
    let (mut best, mut start, mut length) = (0..0, 0, 0);
    for (place, group) in groups.iter().enumerate() {
        if *group == 0 {
            if length == 0 {
                start = place;
            }
            length += 1;
        } else if length > best.len() {
            best = start..start + length;
            length = 0;
        }
    }
    if length > best.len() { start..start + length } else { best }
}
