//! Tests of `classify`.

use super::*;
use crate::statement::lexer::tokens;

fn of(sql: &str) -> Classification {
    classify(&tokens(sql).expect("lexes"))
}

#[test]
fn kinds() {
    use StatementKind as K;
    let set = |name: &str, items: &[&str]| K::Set {
        scope: SettingScope::Session,
        name: name.into(),
        value: SettingValue::Items(items.iter().map(|item| (*item).to_owned()).collect()),
    };
    let read_uncommitted = TransactionModes { isolation: Some(Isolation::ReadUncommitted), ..Default::default() };
    for (sql, kind) in [
        ("", K::Empty),
        ("SELECT 1", K::Query),
        ("(SELECT 1) UNION (SELECT 2)", K::Query),
        ("WITH a AS (SELECT 1) SELECT * FROM a", K::Query),
        ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", K::Write),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", K::Write),
        ("WITH a AS MATERIALIZED (UPDATE t SET x = 1 RETURNING x) SELECT 1", K::Write),
        // Behind names.
        (
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n FROM r) SEARCH DEPTH FIRST BY n SET o UPDATE t SET v = 0",
            K::Write,
        ),
        (
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n FROM r) CYCLE n SET c USING path DELETE FROM t",
            K::Write,
        ),
        (
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n FROM r) CYCLE n SET c USING key MERGE INTO t USING r \
             ON true WHEN MATCHED THEN DELETE",
            K::Write,
        ),
        ("WITH a AS (SELECT 1 AS update) SELECT a.update, \"delete\" FROM a, t FOR UPDATE", K::Write),
        ("WITH a AS (SELECT 1) SELECT a.update, \"delete\", 'insert' FROM a, t FOR UPDATE", K::Query),
        ("WITH a AS (SELECT 1) SELECT 1 FROM a, t FOR NO KEY UPDATE SKIP LOCKED", K::Query),
        ("SELECT (update) FROM t", K::Query),
        ("SELECT 1 INTO t", K::Ddl),
        ("BEGIN", K::Begin(TransactionModes::default())),
        (
            "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            K::Begin(TransactionModes {
                isolation: Some(Isolation::RepeatableRead),
                read_only: Some(true),
                deferrable: None,
            }),
        ),
        ("START TRANSACTION READ WRITE", K::Begin(TransactionModes { read_only: Some(false), ..Default::default() })),
        ("COMMIT AND CHAIN", K::CommitAndChain),
        ("COMMIT AND NO CHAIN", K::Commit),
        ("END", K::Commit),
        ("ABORT", K::Rollback),
        ("ROLLBACK TO SAVEPOINT s", K::RollbackToSavepoint),
        ("COMMIT PREPARED 'x'", K::CommitPrepared),
        ("PREPARE TRANSACTION 'x'", K::PrepareTransaction),
        ("PREPARE p AS SELECT 1", K::Prepare { name: "p".into() }),
        ("DEALLOCATE PREPARE ALL", K::Deallocate { name: None }),
        ("DEALLOCATE p", K::Deallocate { name: Some("p".into()) }),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            K::SetSessionCharacteristics(read_uncommitted),
        ),
        ("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", K::SetTransaction(read_uncommitted)),
        ("set search_path = \"public\", \"Other\"", set("search_path", &["public", "Other"])),
        ("SET SESSION TIMEZONE TO 'UTC'", set("timezone", &["UTC"])),
        ("SET TIME ZONE 'UTC'", set("timezone", &["UTC"])),
        ("SET TIME ZONE -8", set("timezone", &["-8"])),
        ("SET DateStyle = ISO, DMY", set("datestyle", &["iso", "dmy"])),
        ("SET extra_float_digits TO 3", set("extra_float_digits", &["3"])),
        ("SET freshet.freshness = 'session'", set("freshet.freshness", &["session"])),
        ("SET NAMES 'utf8'", set("client_encoding", &["utf8"])),
        ("SET SCHEMA 'x'", set("search_path", &["x"])),
        (
            "SET LOCAL work_mem = DEFAULT",
            K::Set { scope: SettingScope::Local, name: "work_mem".into(), value: SettingValue::Default },
        ),
        ("SET ROLE X", set("role", &["x"])),
        ("SET role TO 'X'", set("role", &["X"])),
        ("SET ROLE NONE", set("role", &["none"])),
        ("RESET ROLE", K::Reset { name: Some("role".into()) }),
        ("SET SESSION AUTHORIZATION x", K::SetSessionAuthorization),
        ("SET SESSION SESSION AUTHORIZATION x", K::SetSessionAuthorization),
        ("RESET ALL", K::Reset { name: None }),
        ("RESET search_path", K::Reset { name: Some("search_path".into()) }),
        ("SHOW transaction isolation level", K::Show { name: "transaction_isolation".into() }),
        ("SHOW freshet.last", K::Show { name: "freshet.last".into() }),
        ("DISCARD ALL", K::DiscardAll),
        ("COPY t FROM STDIN", K::CopyIn),
        ("COPY (SELECT a FROM t) TO STDOUT", K::CopyOut),
        ("COPY (DELETE FROM t RETURNING *) TO STDOUT", K::Write),
        ("COPY (WITH x AS (SELECT 1 AS n) UPDATE t SET v = 0 FROM x WHERE id = x.n RETURNING id) TO STDOUT", K::Write),
        ("COPY (WITH x AS (SELECT 1) SELECT * FROM t FOR UPDATE) TO STDOUT", K::CopyOut),
        ("COPY t (a, update) TO STDOUT", K::CopyOut),
        ("EXPLAIN (ANALYZE) SELECT 1", K::Explain { analyze: true, query: 18..26 }),
        ("EXPLAIN (costs off, \"analyze\") SELECT 1", K::Explain { analyze: true, query: 31..39 }),
        ("EXPLAIN (U&\"analyze\") SELECT 1", K::Explain { analyze: true, query: 22..30 }),
        ("EXPLAIN (\"Analyze\", costs off) SELECT 1", K::Explain { analyze: false, query: 31..39 }),
        (
            "declare \"SQL_CUR1\" cursor with hold for SELECT 1",
            K::DeclareCursor { name: "SQL_CUR1".into(), with_hold: true, query: 40..48 },
        ),
        ("fetch 2048 in \"SQL_CUR1\"", K::Fetch),
        ("TRUNCATE t", K::Ddl),
        ("refresh materialized view concurrently m", K::Ddl),
        ("CALL p()", K::Unknown),
        ("DO $$ begin end $$", K::Unknown),
        ("FROB", K::Unknown),
    ] {
        assert_eq!(of(sql).kind, kind, "{sql}");
    }
}

#[test]
fn read_only_needs_known_functions_only() {
    for sql in [
        "SELECT count(*), sum(x) FILTER (WHERE y IN (1, 2)) FROM t WHERE a = ANY ('{1}') GROUP BY date_trunc('day', d)",
        "SELECT a->>'b', coalesce(a, '') FROM t AS u (a, b) JOIN (SELECT 1) v (c) USING (c)",
        "WITH x (a) AS (SELECT 1) SELECT pg_catalog.lower('A') FROM x",
        "SELECT substring(a FROM 1 FOR 2), extract(year FROM d), CAST(a AS numeric(10, 2)) FROM t",
        "VALUES (1), (2)",
        "WITH x AS (SELECT 1), y (a, b) AS MATERIALIZED (SELECT 1, 2) SELECT * FROM y",
    ] {
        assert!(of(sql).is_read_only(), "{sql}: {:?}", of(sql));
    }
    for sql in [
        "SELECT nextval('s')",
        "SELECT my_function(a) FROM t",
        "SELECT public.lower(a) FROM t",
        "SELECT public.date(a) FROM t",
        "SELECT \"Lower\"(a) FROM t",
        "SELECT U&\"set_config\"('a', 'b', false)",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t FOR NO KEY UPDATE SKIP LOCKED",
        "SELECT set_config('search_path', 'x', false)",
        "SELECT pg_advisory_lock(1)",
        "DELETE FROM t",
    ] {
        assert!(!of(sql).is_read_only(), "{sql}");
    }
}

#[test]
fn set_config_is_read_or_opaque() {
    let text = |text: &str| Argument::Text(text.into());
    let call = |name, value, is_local| SetConfig { name, value, is_local };
    let known = of("SELECT pg_catalog.set_config('search_path', '', false)");
    let expected = call(text("search_path"), text(""), text("false"));
    assert_eq!((known.set_configs, known.opaque), (vec![expected], None));
    let known =
        of("select set_config('a.b', $1, true) as x, set_config('role', $2::text, $3) y, set_config('c', null, 't')");
    let expected = vec![
        call(text("a.b"), Argument::Parameter(0), text("true")),
        call(text("role"), Argument::Parameter(1), Argument::Parameter(2)),
        call(text("c"), Argument::Null, text("t")),
    ];
    assert_eq!((known.set_configs, known.opaque), (expected, None));
    for sql in [
        "SELECT set_config('a' || 'b', 'c', false)",
        "SELECT set_config(name, 'x', true) FROM t",
        "SELECT set_config('a', 'b', true) FROM t",
        "SELECT set_config('a', 'b', true) WHERE false",
        "SELECT set_config('a', 'b', true), 1",
        "SELECT CASE WHEN true THEN set_config('a', 'b', true) END",
        "SELECT * FROM set_config('a', 'b', true)",
        "SELECT set_config('a', set_config('b', 'c', true), true)",
        "WITH x AS (SELECT set_config('a', 'b', true)) SELECT 1",
        "INSERT INTO t SELECT set_config('a', 'b', true)",
    ] {
        assert_eq!(of(sql).set_configs, [], "{sql}");
        assert!(of(sql).opaque.is_some(), "{sql}");
    }
}

#[test]
fn state_out_of_sight_is_opaque() {
    for sql in [
        "CREATE TEMP TABLE t (a int)",
        "CREATE TABLE pg_temp.t (a int)",
        "SELECT 1 INTO TEMPORARY t",
        "EXECUTE p",
        "CALL p()",
        "DO $$ $$",
        "LOAD 'x'",
        "SET search_path FROM CURRENT",
        "INSERT INTO t SELECT f(1)",
    ] {
        assert!(of(sql).opaque.is_some(), "{sql}");
    }
    for sql in [
        "CREATE TABLE t (a int)",
        "INSERT INTO t (a, b) VALUES (1, lower('x')) ON CONFLICT (a) DO NOTHING",
        "UPDATE t SET a = 1 WHERE b IN (1)",
        "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
        "COMMIT",
        "LISTEN x",
    ] {
        assert_eq!(of(sql).opaque, None, "{sql}");
    }
}

#[test]
fn writes_name_their_relation() {
    let written = |sql| of(sql).written;
    let one = |name: &[&str]| Some(vec![name.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>()]);
    assert_eq!(written("INSERT INTO public.\"T\" (a) VALUES (1)"), one(&["public", "T"]));
    assert_eq!(written("UPDATE ONLY t SET a = 1"), one(&["t"]));
    assert_eq!(written("DELETE FROM t WHERE a = 1"), one(&["t"]));
    assert_eq!(written("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE"), one(&["t"]));
    assert_eq!(written("COPY t (a) FROM STDIN"), one(&["t"]));
    assert_eq!(written("WITH x AS (DELETE FROM a RETURNING *) INSERT INTO b SELECT * FROM x"), None);
    assert_eq!(written("SELECT 1"), Some(vec![]));
    assert_eq!(written("TRUNCATE t"), None);
}

#[test]
fn behind_the_list_of_distinct_on_functions_are_called() {
    for sql in [
        "SELECT DISTINCT ON (1) bump()",
        "SELECT DISTINCT ON (a, lower(b)) bump() FROM t",
        "SELECT x FROM (SELECT DISTINCT ON ((a)) bump() FROM t) q (x)",
    ] {
        assert_eq!(of(sql).opaque.as_deref(), Some("calls bump"), "{sql}");
    }
    assert_eq!(of("SELECT DISTINCT ON (a) a FROM (SELECT 1) bump (a)").opaque, None);
    // A keyword calls nothing, unless users have a function of its name.
    let keyed = of("SELECT key(1) FROM t WHERE a IN (2)");
    assert_eq!(keyed.opaque, None);
    assert!(keyed.calls.iter().any(|name| name == "key"));
}
