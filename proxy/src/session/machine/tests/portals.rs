//! Rows that wait in portals and cursors while a SET changes how they are printed.

use super::*;

const DATE: u32 = 1082;

/// PostgreSQL prints values as it sends them; rows that waited here kept the form of their Bind. Upstream, which got the portal and
/// skipped as many rows as had been handed out, may have them in another order.
#[test]
fn rows_that_are_printed_otherwise_are_upstreams_or_nobodys() {
    let next = [message(b'E', b"C_1\0\0\0\0\x02"), SYNC.to_vec()].concat();
    for (text, changes_dates, changes_all) in [
        ("SET LOCAL DateStyle = 'German'", true, false),
        ("SET TIME ZONE 'UTC'", true, false),
        ("SELECT set_config('extra_float_digits', '0', true)", true, false),
        ("SET client_encoding = 'LATIN1'", true, true),
        ("SET work_mem = '4MB'", false, false),
        ("SELECT set_config('app.tenant', '7', true)", false, false),
        ("SAVEPOINT a", false, false),
    ] {
        for (type_oid, changes) in [(DATE, changes_dates), (INT4, changes_all)] {
            let sent = relayed(&mut bound(type_oid, &[]), &sql(text));
            assert_eq!(tags(&sent), if changes { "PBCSQ" } else { "Q" }, "{text}");
            let mut machine = fetching(type_oid);
            assert_eq!(relayed(&mut machine, &sql(text)), sql(text), "{text}");
            upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
            let sent = relayed(&mut machine, &next);
            assert_eq!(tags(&sent), if changes { "PBCES" } else { "" }, "{text}");
        }
    }
    let unit = [parse("", "SET LOCAL DateStyle = 'German'"), bind(""), execute(), SYNC.to_vec()].concat();
    assert_eq!(tags(&relayed(&mut bound(DATE, &[]), &unit)), "PPBCBES");
    assert_eq!(tags(&relayed(&mut bound(INT4, &[]), &unit)), "PBES");
}

#[test]
fn rows_are_refused_while_they_are_printed_by_other_settings() {
    let next = [message(b'E', b"C_1\0\0\0\0\x02"), SYNC.to_vec()].concat();
    let done = |machine: &mut Machine, text: &str| {
        assert_eq!(relayed(machine, &sql(text)), sql(text));
        upstream_says(machine, &[&complete(), &ready(b'T')]);
    };
    let mut machine = fetching(DATE);
    for text in ["SAVEPOINT a", "SET LOCAL DateStyle = 'German'", "ROLLBACK TO a"] {
        done(&mut machine, text);
    }
    assert_eq!(relayed(&mut machine, &next), b"", "the setting is what it was");
    assert_eq!(tags(&machine.to_client.take()), "DDsZ");
    done(&mut machine, "SET LOCAL DateStyle = 'German'");
    done(&mut machine, "RELEASE a");
    // Among other messages.
    let unit = [parse("", "SELECT 1"), bind(""), execute(), next].concat();
    assert_eq!(tags(&relayed(&mut machine, &unit)), "PBEH");
    assert_eq!(tags(&upstream_says(&mut machine, &[PARSE_COMPLETE, BIND_COMPLETE, &complete()])), "12C");
    assert_eq!(tags(&relayed(&mut machine, b"")), "PBCES");
    let error = message(b'E', b"SERROR\0C0A000\0\0");
    let got = upstream_says(&mut machine, &[PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE, &error, &ready(b'E')]);
    assert_eq!(tags(&got), "EZ");
    assert_eq!((machine.state.status, machine.own_expected), (TransactionStatus::Failed, 0));
    assert!(machine.lost().is_none() && machine.is_settled());
    // Nothing is left to be printed.
    let mut machine = fetching(DATE);
    let rest = [message(b'E', b"C_1\0\0\0\0\x03"), SYNC.to_vec()].concat();
    assert_eq!(relayed(&mut machine, &rest), b"");
    assert_eq!(tags(&machine.to_client.take()), "DDDsZ");
    done(&mut machine, "SET LOCAL DateStyle = 'German'");
    assert_eq!(relayed(&mut machine, &rest), b"");
    assert_eq!(tags(&machine.to_client.take()), "CZ");
}

#[test]
fn a_cursors_rows_are_refused_likewise() {
    const DECLARE: &str = "declare \"SQL_CUR1\" cursor for SELECT v FROM q";
    const FETCH: &str = "fetch 2 in \"SQL_CUR1\"";
    let open = |text: &str| {
        let mut machine = probed(&Interner::default());
        controlled(&mut machine, "BEGIN");
        upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
        let answers = vec![group::Answer::Reply(rows_of(DATE, 5)), group::Answer::None];
        assert_eq!(group(&mut machine, &sql(text), answers), b"");
        machine
    };
    let set = sql("SET LOCAL DateStyle = 'German'");
    assert_eq!(tags(&relayed(&mut open(DECLARE), &set)), "QQ");
    let mut machine = open(&format!("{DECLARE};{FETCH}"));
    assert_eq!(relayed(&mut machine, &set), set);
    upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
    let is_refused = |machine: &mut Machine, text: &str| {
        let unit = sql(text);
        let group = machine.group(&unit).expect("answerable");
        machine.fetches_outdated_rows(&group)
    };
    assert!(is_refused(&mut machine, FETCH));
    let anew = format!("close \"SQL_CUR1\";{DECLARE};{FETCH}");
    assert!(!is_refused(&mut machine, &anew));
    machine.receive_client(&sql(FETCH));
    assert_eq!(machine.advance(), Step::Decide);
    machine.refuse_outdated_rows();
    assert_eq!(tags(&machine.to_client.take()), "EZ");
    assert_eq!(machine.state.status, TransactionStatus::Failed);
}

/// What executing a portal does counts at its Execute, whatever has come since its Bind.
#[test]
fn what_a_portal_does_is_done_when_it_is_executed() {
    let mut machine = probed(&Interner::default());
    let unit = [parse("d", "DEALLOCATE sp"), bind("d"), parse("sp", "SELECT 1"), execute(), SYNC.to_vec()].concat();
    assert_eq!(relayed(&mut machine, &unit), unit);
    assert!(!machine.statements.contains_key(b"sp".as_slice()), "it is made before it is dropped");
    // The reply to a group before comes between the two.
    let mut machine = probed(&Interner::default());
    assert_eq!(relayed(&mut machine, &sql("SHOW x")), sql("SHOW x"));
    let set = [parse("", "SELECT set_config('DateStyle', 'German', false)"), bind("")].concat();
    let flush = message(b'H', b"");
    assert_eq!(relayed(&mut machine, &[&set[..], &flush].concat()), [&set[..], &flush].concat());
    upstream_says(&mut machine, &[&complete(), &ready(b'I')]);
    assert!(machine.state.settings.is_some());
    let rest = [execute(), SYNC.to_vec()].concat();
    assert_eq!(relayed(&mut machine, &rest), rest);
    upstream_says(&mut machine, &[PARSE_COMPLETE, BIND_COMPLETE, &complete(), &ready(b'I')]);
    let style = |machine: &Machine| machine.state.settings.as_ref().map(|settings| settings.format.is_ok());
    assert_ne!(style(&machine), Some(true), "German dates are upstream's, or to be asked for");
}
