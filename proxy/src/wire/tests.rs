//! Views and writers against each other, against pgwire's decoder, and against random bytes.

#![allow(clippy::indexing_slicing, clippy::panic)]

use proptest::prelude::*;

use super::error::{ErrorFields, field, write_error};
use super::extended::*;
use super::frame::*;
use super::query::*;
use super::startup::*;

#[test]
fn frames_end_at_the_first_incomplete_one() {
    let mut bytes = Vec::new();
    write_query(&mut bytes, b"SELECT 1");
    bytes.extend_from_slice(SYNC);
    bytes.extend_from_slice(&[b'D', 0, 0, 0, 9, 1]);
    let mut frames = Frames::new(&bytes);
    assert_eq!(frames.next().and_then(|f| query(f.body)), Some(&b"SELECT 1"[..]));
    assert_eq!(frames.next().map(|f| (f.tag, f.body.len())), Some((b'S', 0)));
    assert_eq!(frames.next(), None);
    assert_eq!(frames.rest().len(), 6);
}

#[test]
fn lengths_below_four_are_malformed() {
    assert_eq!(head(&[b'Q', 0, 0, 0, 3]), Head::Malformed);
    assert_eq!(head(&[b'Q', 0xff, 0xff, 0xff, 0xff]), Head::Malformed);
    assert_eq!(head(&[b'Q', 0x7f, 0xff, 0xff, 0xff]), Head::Frame { tag: b'Q', length: 1 << 31 });
    assert_eq!(head(&[b'Q', 0, 0]), Head::Incomplete);
}

#[test]
fn parse_and_bind_are_viewed_without_loss() {
    let parse = b"s1\0SELECT \xff$1\0\0\x01\0\0\0\x17";
    let view = Parse::view(parse).expect("well-formed");
    assert_eq!((view.name, view.sql), (&b"s1"[..], &b"SELECT \xff$1"[..]));
    assert_eq!(oids(view.parameter_types).collect::<Vec<_>>(), [23]);

    let bind = b"\0s1\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
    let view = Bind::view(bind).expect("well-formed");
    assert_eq!(view.values().collect::<Vec<_>>(), [Some(&b"ab"[..]), None]);
    assert_eq!((format_at(view.parameter_formats, 1), format_at(view.result_formats, 0)), (1, 0));
    assert_eq!(Bind::view(&bind[..bind.len() - 1]), None);
}

#[test]
fn the_opening_packet_is_told_apart() {
    let mut startup = Vec::new();
    write_startup(&mut startup, &[("user", "u"), ("database", "d")]);
    let Opening::Startup { packet } = opening(&startup) else {
        panic!("a start-up packet");
    };
    assert_eq!(parameters(packet).collect::<Vec<_>>(), [(&b"user"[..], &b"u"[..]), (b"database", b"d")]);
    assert_eq!(opening(&startup[..20]), Opening::Incomplete);
    let mut ssl = Vec::new();
    write_ssl_request(&mut ssl);
    assert_eq!(opening(&ssl), Opening::SslRequest);
    assert_eq!(opening(&[0, 0, 0x27, 0x15, 0, 3, 0, 0]), Opening::Malformed);
    assert_eq!(opening(&[0x16, 3, 1, 0, 5, 1]), Opening::Malformed);
    let cancel = [0, 0, 0, 16, 4, 0xd2, 0x16, 0x2e, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(opening(&cancel), Opening::CancelRequest { packet: &cancel });
}

#[test]
fn one_mechanism_is_left_out_of_the_list() {
    let mut out = Vec::new();
    write_sasl_without(&mut out, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0", b"SCRAM-SHA-256-PLUS");
    let frame = Frames::new(&out).next().expect("one frame");
    let found = authentication(frame.body).expect("well-formed");
    assert_eq!(found, Authentication::Sasl { mechanisms: b"SCRAM-SHA-256\0\0" });
}

#[test]
fn replies_are_read_by_another_implementation() {
    use pgwire::messages::{DecodeContext, PgWireBackendMessage, ProtocolVersion};
    let mut out = Vec::new();
    out.extend_from_slice(PARSE_COMPLETE);
    out.extend_from_slice(BIND_COMPLETE);
    let one = Field { name: b"n", table_oid: 7, attnum: 2, type_oid: 23, type_length: 4, typmod: -1, format: 1 };
    write_row_description(&mut out, [one].into_iter());
    write_data_row(&mut out, 2, |out| {
        write_value(out, Some(b"x"));
        write_value(out, None);
    });
    write_command_complete(&mut out, "SELECT 1");
    write_error(&mut out, &ErrorFields::error("22012", "division by zero"));
    write_ready_for_query(&mut out, TransactionStatus::InTransaction);
    write_parameter_description(&mut out, &[23, 25]);
    out.extend_from_slice(NO_DATA);
    out.extend_from_slice(CLOSE_COMPLETE);
    out.extend_from_slice(EMPTY_QUERY_RESPONSE);

    let mut buffer = bytes::BytesMut::from(&out[..]);
    let context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
    let mut seen = Vec::new();
    while let Some(message) = PgWireBackendMessage::decode(&mut buffer, &context).expect("decodes") {
        if let PgWireBackendMessage::RowDescription(description) = &message {
            assert_eq!((description.fields[0].table_id, description.fields[0].type_id), (7, 23));
        }
        seen.push(format!("{message:?}").split(['(', ' ']).next().unwrap_or_default().to_string());
    }
    let expected = [
        "ParseComplete",
        "BindComplete",
        "RowDescription",
        "DataRow",
        "CommandComplete",
        "ErrorResponse",
        "ReadyForQuery",
        "ParameterDescription",
        "NoData",
        "CloseComplete",
        "EmptyQueryResponse",
    ];
    assert_eq!(seen, expected);

    let bodies: Vec<&[u8]> = Frames::new(&out).map(|frame| frame.body).collect();
    assert_eq!(row_description(bodies[2]), Some(vec![one]));
    assert_eq!(data_row(bodies[3]).collect::<Vec<_>>(), [Some(&b"x"[..]), None]);
    assert_eq!(command_tag(bodies[4]), Some(&b"SELECT 1"[..]));
    assert_eq!(field(bodies[5], b'C'), Some(&b"22012"[..]));
    assert_eq!(parameter_description(bodies[7]), Some(vec![23, 25]));
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let taken: usize = Frames::new(&bytes).map(|frame| frame.bytes.len()).sum();
        prop_assert!(taken <= bytes.len());
        let _ = (head(&bytes), opening(&bytes), parameters(&bytes).count(), authentication(&bytes));
        let _ = (Parse::view(&bytes), Target::view(&bytes), Execute::view(&bytes), query(&bytes));
        if let Some(bind) = Bind::view(&bytes) {
            prop_assert_eq!(bind.values().count(), bind.parameter_count);
        }
        let _ = (row_description(&bytes), data_row(&bytes).count(), parameter_description(&bytes));
        let _ = (field(&bytes, b'M'), parameter_status(&bytes), command_tag(&bytes));
        let mut out = Vec::new();
        write_sasl_without(&mut out, &bytes, b"X");
    }
}
