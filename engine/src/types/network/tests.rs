//! Values probed from PostgreSQL 15. Its results of all functions are in the cases of `catalog::functions`.

use proptest::prelude::*;

use super::*;
use crate::types::{FormatSettings, Value, binary, text};

fn printed(kind: Kind, text: &str) -> Result<String, ParseError> {
    let mut printed = String::new();
    Network::parse(kind, text)?.write_text(kind, &mut printed);
    Ok(printed)
}

#[test]
fn texts_are_read_as_inet_in_reads_them() {
    for (text, expected) in [
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3/32", "10.1.2.3"),
        ("10.1.2.3/8", "10.1.2.3/8"),
        ("10.1/16", "10.1.0.0/16"),
        ("10/8", "10.0.0.0/8"),
        ("10.1/20", "10.1.0.0/20"),
        ("1.2.3.4.", "1.2.3.4"),
        ("10./8", "10.0.0.0/8"),
        ("::1/128", "::1"),
        ("::1.2", "::1.2.0.0"),
        ("1:2:3:4:5:6:7:8:/64", "1:2:3:4:5:6:7:8/64"),
        ("ABCD::EF01/7", "abcd::ef01/7"),
    ] {
        assert_eq!(printed(Kind::Inet, text).as_deref(), Ok(expected), "{text}");
    }
    let raises = [
        "",
        "10",
        "10.1/24",
        "1.2.3.4/33",
        "256.1.1.1",
        " 1.2.3.4",
        "1.2.3.4 ",
        "::1/129",
        "::1/064",
        ":1",
        "1::2::3",
        "12345::",
    ];
    for text in raises {
        assert!(matches!(printed(Kind::Inet, text), Err(ParseError::Raises(_))), "{text}");
    }
    assert!(matches!(printed(Kind::Inet, "1.2.3.4/4294967304"), Err(ParseError::Beyond(_))));
}

#[test]
fn a_cidr_has_the_length_of_its_class_and_nothing_behind_it() {
    for (text, expected) in [
        ("10", "10.0.0.0/8"),
        ("10.1", "10.1.0.0/16"),
        ("172.16", "172.16.0.0/16"),
        ("192.168", "192.168.0.0/24"),
        ("192.168.1", "192.168.1.0/24"),
        ("224", "224.0.0.0/4"),
        ("225", "225.0.0.0/8"),
        ("224.0", "224.0.0.0/16"),
        ("240", "240.0.0.0/32"),
        ("1.2.3.4", "1.2.3.4/32"),
        ("10.0/30", "10.0.0.0/30"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("::1", "::1/128"),
    ] {
        assert_eq!(printed(Kind::Cidr, text).as_deref(), Ok(expected), "{text}");
    }
    for text in ["10.1.2.3/8", "1.2.3.4.", "10.", "2001:db8::1/32", "::/"] {
        assert!(matches!(printed(Kind::Cidr, text), Err(ParseError::Raises(_))), "{text}");
    }
    assert!(matches!(printed(Kind::Cidr, "0x0a/8"), Err(ParseError::Beyond(_))));
}

#[test]
fn the_first_of_the_longest_runs_of_zeros_is_left_out() {
    for (text, expected) in [
        ("0:0:0:0:0:0:0:0", "::"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:0:0:2:0:0:3:4", "1::2:0:0:3:4"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"),
        ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
        ("::1.2.3.4", "::1.2.3.4"),
        ("::5", "::5"),
        ("::ffff:0:1.2.3.4", "::ffff:0:102:304"),
        ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
    ] {
        assert_eq!(printed(Kind::Inet, text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn values_are_sent_and_received() {
    let settings = FormatSettings::default();
    for (pg_type, text, sent) in [
        (PgType::Inet, "10.1.2.3/8", "020800040a010203".to_owned()),
        (PgType::Cidr, "10.0.0.0/8", "020801040a000000".to_owned()),
        (PgType::Inet, "::1", format!("03800010{:032x}", 1)),
        (PgType::Cidr, "::/0", format!("03000110{:032x}", 0)),
    ] {
        let value = text::parse(pg_type, -1, text, &settings).expect("a value");
        let mut bytes = Vec::new();
        binary::write(&value, pg_type, &mut bytes);
        assert_eq!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), sent, "{text}");
        assert_eq!(binary::decode(pg_type, -1, &bytes), Ok(value));
        for end in 0..bytes.len() {
            assert!(binary::decode(pg_type, -1, &bytes[..end]).is_err());
        }
    }
    // Bits behind the network, a family, a length of network and of address that are none.
    for bytes in
        [[2, 8, 1, 4, 10, 1, 0, 0], [4, 8, 1, 4, 10, 0, 0, 0], [2, 33, 1, 4, 10, 0, 0, 0], [2, 8, 1, 5, 10, 0, 0, 0]]
    {
        assert!(binary::decode(PgType::Cidr, -1, &bytes).is_err(), "{bytes:?}");
    }
    // Which of the two types it says it is counts for nothing.
    let inet = Value::Network(Network::parse(Kind::Inet, "10.0.0.0/8").expect("a value").held().into());
    assert_eq!(binary::decode(PgType::Inet, -1, &[2, 8, 1, 4, 10, 0, 0, 0]), Ok(inet));
}

fn network() -> impl Strategy<Value = Network> {
    (any::<bool>(), any::<u8>(), any::<u128>(), 0u32..128).prop_map(|(is_v4, bits, address, shared)| {
        let family = if is_v4 { Family::V4 } else { Family::V6 };
        // Addresses that have their first bits in common more often than not.
        let address = (address >> shared) & family.ones();
        Network { family, bits: bits % (family.width() + 1), address }
    })
}

/// network_cmp_internal as it is written there: the bits that both have, the lengths, all bits.
fn compared(a: Network, b: Network) -> Ordering {
    let first = |network: Network, bits: u8| Network { bits, ..network }.network_address();
    let shorter = a.bits.min(b.bits);
    (a.family.cmp(&b.family))
        .then_with(|| first(a, shorter).cmp(&first(b, shorter)))
        .then_with(|| a.bits.cmp(&b.bits))
        .then_with(|| a.address.cmp(&b.address))
}

proptest! {
    #[test]
    fn bytes_have_the_order_of_network_cmp(a in network(), b in network()) {
        prop_assert_eq!(a.held().cmp(&b.held()), compared(a, b));
        prop_assert_eq!(a.cmp(&b), compared(a, b));
        prop_assert_eq!(Network::of_held(&a.held()), a);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[0-9a-fx:./ ]{0,24}") {
        for kind in [Kind::Inet, Kind::Cidr] {
            if let Ok(network) = Network::parse(kind, &text) {
                let (mut printed, mut again) = (String::new(), String::new());
                network.write_text(kind, &mut printed);
                network.write_abbreviated(&mut again);
                prop_assert_eq!(Network::parse(kind, &printed).ok(), Some(network));
            }
        }
    }
}
