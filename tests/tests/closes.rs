//! Units that begin with Close.

use freshet_tests::client::{bind, close, describe, execute, flush, parse, query, sync, tags};
use freshet_tests::scripted::{Pair, assert_same, burst, play};

const ORDERED: &str = "SELECT id, v FROM t ORDER BY id";

/// pgjdbc closes what it has dropped since the last unit in front of the next one.
#[test]
fn what_begins_with_a_close_is_answered() {
    let mut pair = Pair::start();
    pair.agree("the catalog is known", &[burst(13, &[query(ORDERED)])]);
    let read = [parse("", ORDERED), bind("", "", &[], 0), describe('P', ""), execute("", 0), sync()].concat();
    for (kind, name) in [('S', "nobody"), ('P', "nobody"), ('S', ""), ('P', "")] {
        pair.agree("in front of a read", &[burst(16, &[close(kind, name), read.clone()])]);
        pair.agree("by itself", &[burst(2, &[close(kind, name), sync()]), burst(15, std::slice::from_ref(&read))]);
        pair.agree_in_block("in a block", &[burst(16, &[close(kind, name), read.clone()])]);
    }
    // Statements and portals of upstream's: closed, they are gone, and their names are free.
    let writes = [
        burst(2, &[parse("w", "INSERT INTO t VALUES (1000, 'x')"), sync()]),
        burst(3, &[bind("", "w", &[], 0), execute("", 0), sync()]),
        burst(4, &[query("DELETE FROM t WHERE id = 1000 RETURNING id")]),
        burst(16, &[close('S', "w"), read.clone()]),
        burst(2, &[bind("", "w", &[], 0), execute("", 0), sync()]),
        burst(2, &[parse("w", "SELECT 1"), sync()]),
        burst(17, &[close('S', "w"), close('S', "w"), read.clone()]),
        burst(2, &[query("BEGIN")]),
        burst(
            5,
            &[
                parse("p", "SELECT clock_timestamp() IS NULL, id FROM t"),
                bind("p", "p", &[], 0),
                execute("p", 1),
                sync(),
            ],
        ),
        burst(17, &[close('P', "p"), close('S', "p"), read.clone()]),
        burst(2, &[execute("p", 1), sync()]),
        burst(3, &[close('P', "p"), close('S', "p"), sync()]),
        burst(2, &[query("ROLLBACK")]),
        burst(1, &[close('S', "nobody"), flush()]),
        burst(15, std::slice::from_ref(&read)),
        burst(3, &[close('S', "nobody"), query("")]),
    ];
    for _ in 0..3 {
        assert_same(&play(&mut pair.freshet, &writes), &play(&mut pair.upstream, &writes));
    }
    // What is for freshet is not upstream's because of that.
    for (sql, tags_expected) in [
        ("SHOW freshet.last", "312TDCZ"),
        ("SELECT name FROM freshet.status LIMIT 1", "312TDCZ"),
        ("SET freshet.route = auto", "312nCZ"),
    ] {
        let unit =
            [close('S', "nobody"), parse("", sql), bind("", "", &[], 0), describe('P', ""), execute("", 0), sync()];
        assert_eq!(tags(&play(&mut pair.freshet, &[burst(tags_expected.len(), &unit)])), tags_expected, "{sql}");
    }
    let unit = [
        close('S', "x"),
        parse("", "SET freshet.snapshot_strict = 'blah'"),
        bind("", "", &[], 0),
        execute("", 0),
        sync(),
    ];
    assert_eq!(tags(&play(&mut pair.freshet, &[burst(3, &unit)])), "3EZ");
}
