//! Every type that PostgreSQL comes with: a column of it is mirrored exactly, or it is upstream's; and the table follows its changes.

use std::collections::BTreeSet;

use freshet_config::FreshnessMode;
use freshet_engine::types::PgType;
use freshet_tests::both::Both;
use freshet_tests::world::{World, until, will_pass};

/// A table for each, with a NULL.
const TABLES: &str = "
DO $$ DECLARE kind name; BEGIN
    FOR kind IN SELECT typname FROM pg_type
                 WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN ('b', 'e', 'r', 'm', 'c', 'd') ORDER BY oid
    LOOP
        BEGIN
            EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, v pg_catalog.%I)', 'of_' || kind, kind);
            EXECUTE format('INSERT INTO %I VALUES (0, NULL)', 'of_' || kind);
        -- A row type with a pseudo-type in it.
        EXCEPTION WHEN invalid_table_definition THEN NULL;
        END;
    END LOOP;
END $$";

/// Of a row type, a row of its relation.
const ROWS: &str = "
DO $$ DECLARE kind name; BEGIN
    FOR kind IN SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'c' ORDER BY oid
    LOOP
        BEGIN
            EXECUTE format('INSERT INTO %I SELECT 1, whole FROM pg_catalog.%I whole LIMIT 1', 'of_' || kind, kind);
        -- There is no such table, or the relation cannot be read here.
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
END $$";

/// Of an array type, what its elements' table has, and nothing.
const LISTS: &str = "
DO $$ DECLARE element name; list name; BEGIN
    FOR element, list IN SELECT e.typname, a.typname FROM pg_type e JOIN pg_type a ON a.oid = e.typarray
                          WHERE e.typnamespace = 'pg_catalog'::regnamespace AND e.typtype <> 'p' ORDER BY e.oid
    LOOP
        BEGIN
            EXECUTE format('INSERT INTO %I SELECT 1, array_agg(v ORDER BY id) FROM %I', 'of_' || list, 'of_' || element);
            EXECUTE format('INSERT INTO %I VALUES (2, %L)', 'of_' || list, '{}');
        -- There is no such table, or an array of the elements is no list of them (oidvector).
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
END $$";

/// The same values once more, which come by the stream.
const MORE: &str = "
DO $$ DECLARE of_kind name; BEGIN
    FOR of_kind IN SELECT relname FROM pg_class WHERE starts_with(relname, 'of_') AND relkind = 'r' ORDER BY oid
    LOOP
        EXECUTE format('INSERT INTO %I SELECT id + 10, v FROM %I', of_kind, of_kind);
    END LOOP;
END $$";

/// Types, and how values of them are written.
const LITERALS: &[(&str, &[&str])] = &[
    ("bool", &["true", "false"]),
    ("bytea", &["\\x00ff61", ""]),
    ("char", &["a", ""]),
    ("name", &["some name", ""]),
    ("int8", &["9223372036854775807", "-9223372036854775808"]),
    ("int2", &["32767", "-32768"]),
    ("int2vector", &["1 2 3", ""]),
    ("int4", &["2147483647", "-2147483648"]),
    ("regproc", &["now", "-"]),
    ("text", &["größe 'x'", ""]),
    ("oid", &["0", "4294967295"]),
    ("tid", &["(0,1)", "(4294967295,65535)"]),
    ("xid", &["3", "4294967295"]),
    ("cid", &["0", "4294967295"]),
    ("oidvector", &["1 2", ""]),
    ("json", &["{\"a\": [1,  null]}", "null"]),
    ("xml", &["<a>x</a>", "text"]),
    ("xid8", &["0", "18446744073709551615"]),
    ("point", &["(1.5,-2)", "(0,0)"]),
    ("lseg", &["[(0,0),(1,1)]"]),
    ("path", &["((0,0),(1,1),(2,0))", "[(0,0),(1,1)]"]),
    ("box", &["(2,2),(0,0)"]),
    ("polygon", &["((0,0),(1,1),(2,0))"]),
    ("line", &["{1,-1,0}"]),
    ("circle", &["<(0,0),3>"]),
    ("float4", &["1.1", "NaN"]),
    ("float8", &["0.1", "-Infinity"]),
    ("money", &["1234.56", "-0.01"]),
    ("macaddr", &["08:00:2b:01:02:03"]),
    ("macaddr8", &["08:00:2b:01:02:03:04:05"]),
    ("inet", &["10.0.0.7/8", "::1"]),
    ("cidr", &["10.0.0.0/8", "::/0"]),
    ("aclitem", &["postgres=r/postgres", "=r/postgres"]),
    ("bpchar", &["a ", "b"]),
    ("varchar", &["a ", ""]),
    ("date", &["2024-02-29", "infinity"]),
    ("time", &["23:59:59.999999", "24:00:00"]),
    ("timestamp", &["2024-02-29 12:34:56.789", "-infinity"]),
    ("timestamptz", &["2024-07-01 12:00+00", "infinity"]),
    ("interval", &["1 year 2 mons -3 days 04:05:06.7", "-00:00:00.000001"]),
    ("timetz", &["12:00+02", "00:00-15:59"]),
    ("bit", &["101", "0"]),
    ("varbit", &["1010101", ""]),
    ("numeric", &["123456789012345678901234567890.123456789", "NaN"]),
    ("refcursor", &["portal"]),
    ("regprocedure", &["abs(integer)"]),
    ("regoper", &["||/"]),
    ("regoperator", &["+(integer,integer)"]),
    ("regclass", &["pg_class"]),
    ("regcollation", &["\"C\""]),
    ("regtype", &["integer"]),
    ("regrole", &["postgres"]),
    ("regnamespace", &["pg_catalog"]),
    ("regconfig", &["simple"]),
    ("regdictionary", &["simple"]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"]),
    ("pg_lsn", &["0/16B3748", "FFFFFFFF/FFFFFFFF"]),
    ("tsvector", &["'fat':2A 'cat':3", ""]),
    ("tsquery", &["'fat' & !'cat'"]),
    ("jsonb", &["{\"b\": [1,  null], \"a\": {\"c\": \"ü\"}}", "\"text\""]),
    ("jsonpath", &["$.a[*] ? (@ > 1)", "strict $"]),
    ("txid_snapshot", &["10:20:10,14,15"]),
    ("pg_snapshot", &["10:20:10,14,15"]),
    ("int4range", &["[1,5)", "empty"]),
    ("numrange", &["(1.5,)", "[0,0]"]),
    ("tsrange", &["[2024-01-01 00:00,2024-02-01 00:00)"]),
    ("tstzrange", &["[2024-01-01 00:00+00,)"]),
    ("daterange", &["[2024-01-01,2024-02-01)"]),
    ("int8range", &["(,10)"]),
    ("int4multirange", &["{[1,5),[7,9)}", "{}"]),
    ("nummultirange", &["{(1.5,2.5]}"]),
    ("tsmultirange", &["{[2024-01-01 00:00,2024-02-01 00:00)}"]),
    ("tstzmultirange", &["{[2024-01-01 00:00+00,)}"]),
    ("datemultirange", &["{[2024-01-01,2024-02-01)}"]),
    ("int8multirange", &["{(,10)}"]),
];

/// A reason that stays: such a table is not mirrored.
const UNSENT: &str = "cannot send in binary";

fn setup() -> String {
    let mut values = String::new();
    for (name, literals) in LITERALS {
        for (at, literal) in literals.iter().enumerate() {
            let literal = literal.replace('\'', "''");
            values += &format!("INSERT INTO of_{name} VALUES ({}, '{literal}');\n", at + 1);
        }
    }
    format!("{TABLES};\n{values}{ROWS};\n{LISTS}")
}

/// All rows, on both sides; how it was answered, and why not otherwise.
fn ask(both: &mut Both, table: &str, format: i16) -> (String, String) {
    let sql = format!("SELECT id, v FROM {table} ORDER BY id");
    let here = both.through.extended(&sql, &[], format).expect("answers");
    let upstream = both.direct.extended(&sql, &[], format).expect("answers");
    let last = both.through.last().expect("answers");
    assert_eq!(here, upstream, "{sql} in format {format}: {last:?}");
    last
}

/// Asks of each table until nothing that passes is in the way; those that were answered here.
fn settle_each<'t>(tables: &'t [String], mut read: impl FnMut(&str) -> (String, String)) -> BTreeSet<&'t str> {
    let mut waiting: Vec<&'t str> = tables.iter().map(String::as_str).collect();
    let mut answered = BTreeSet::new();
    while !waiting.is_empty() {
        let count = waiting.len();
        until("another table is settled", || {
            waiting.retain(|table| {
                let (route, reason) = read(table);
                if route != "relay" {
                    answered.insert(*table);
                }
                route == "relay" && will_pass(&reason) && !reason.contains(UNSENT)
            });
            waiting.len() < count
        });
    }
    answered
}

#[test]
fn a_column_of_any_built_in_type_is_mirrored_exactly_or_upstreams() {
    let world = World::start(FreshnessMode::Exact, &setup());
    let named = "SELECT relname FROM pg_class WHERE starts_with(relname, 'of_') AND relkind = 'r' ORDER BY oid";
    let tables: Vec<String> = world.past(named).lines().map(String::from).collect();
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    // No reply is kept: each is computed here, or upstream's.
    both.set("SET freshet.route = 'local'");
    let mirrored = settle_each(&tables, |table| both.routed("the start", &format!("SELECT count(*) FROM {table}")));
    let [text, binary] = [0, 1].map(|format| settle_each(&tables, |table| ask(&mut both, table, format)));
    let computed: BTreeSet<&str> = text.intersection(&binary).copied().collect();
    println!(
        "{} types; {} mirrored tables; values of {} types are computed here, of {} upstream's",
        tables.len(),
        mirrored.len(),
        computed.len(),
        tables.len() - computed.len()
    );
    assert!(tables.len() > 250 && mirrored.len() > 150, "nothing was tested");
    let held = PgType::ALL.map(|held| format!("of_{}", held.typname()));
    let lost: Vec<&String> =
        held.iter().filter(|table| tables.contains(table) && !computed.contains(table.as_str())).collect();
    assert!(lost.is_empty(), "held, but upstream's: {lost:?}");

    // Twice more, with replies that are kept; then with rows that have come since.
    both.set("SET freshet.route = 'auto'");
    let restarts = world.freshet.status(&world.database, "stream_restarts");
    for more in [false, false, true] {
        if more {
            world.past(MORE);
        }
        for table in &tables {
            for format in [0, 1] {
                ask(&mut both, table, format);
            }
        }
    }
    assert_eq!(world.freshet.status(&world.database, "stream_restarts"), restarts, "the stream has ended");
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
    assert_eq!(world.freshet.status(&world.database, "shape_mismatches"), "0");
}
