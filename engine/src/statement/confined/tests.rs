//! What texts are taken to be confined to, and that all others are taken for writes of the whole table.

use super::*;
use crate::statement::lexer::tokens;

/// `column: constants; ...`, with the columns that an upsert goes by behind `/`.
fn of(sql: &str) -> String {
    let tokens = tokens(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let Some(write) = confined(&tokens) else { return "-".to_owned() };
    let constant = |constant: &Constant| {
        let value = match &constant.value {
            ConstantValue::Integer(number) => number.clone(),
            ConstantValue::Text(text) => format!("'{text}'"),
            ConstantValue::Parameter { index, is_alone } => {
                format!("${}{}", index + 1, if *is_alone { "" } else { "+" })
            }
        };
        constant.cast.map_or(value.clone(), |cast| format!("{value}::{cast:?}"))
    };
    let column = |confined: &ConfinedColumn| {
        format!("{}: {}", confined.column, confined.constants.iter().map(constant).collect::<Vec<_>>().join(", "))
    };
    let columns = write.columns.iter().map(column).collect::<Vec<_>>().join("; ");
    write.upserts_by.map_or(columns.clone(), |names| format!("{columns} / {}", names.join(", ")))
}

#[test]
fn updates_and_deletes_are_confined_by_the_columns_that_they_compare_and_do_not_set() {
    for (sql, expected) in [
        ("UPDATE t SET v = 1 WHERE id = 5", "id: 5"),
        ("update only s.t set v = v + 1, w = -v where ID = $1", "id: $1"),
        ("UPDATE t AS x SET v = $1 WHERE x.id = $2 AND v > 3 RETURNING *", "id: $2"),
        ("UPDATE t x SET v = $1 WHERE $2::bigint = x.id", "id: $2::Integer"),
        ("UPDATE t SET v = 1 WHERE (id = -5)", "id: -5"),
        ("UPDATE t SET v = 1 WHERE (a = 1 AND b = 'x') AND ((c) = 3)", "a: 1; b: 'x'; c: 3"),
        ("UPDATE t SET v = 1 WHERE (((a = 1)) AND (b = 'x'))", "a: 1; b: 'x'"),
        ("UPDATE t SET v = 1 WHERE id IN (1, 2, $1)", "id: 1, 2, $1"),
        ("UPDATE t SET v = $1 WHERE id = $1", "id: $1+"),
        ("UPDATE t SET v = $1 WHERE id = $1::int4", "id: $1+::Integer"),
        ("UPDATE t SET \"Odd\" = 1 WHERE \"Id\" = 'a''b'", "Id: 'a'b'"),
        ("UPDATE t SET v = 1 WHERE \"user\" = 'x'", "user: 'x'"),
        ("UPDATE t SET v = 1 WHERE id = (5)::int4 AND w IS NOT NULL AND w <> 3 AND live", "id: 5::Integer"),
        ("UPDATE t SET v = DEFAULT, w = now(), x = 'ä', y = E'\\n', z = 1.5 WHERE id = 5", "id: 5"),
        ("UPDATE t SET v = 1 WHERE id = (((((5)))))", "id: 5"),
        ("DELETE FROM t WHERE id = 5", "id: 5"),
        ("delete from s.t x where x.id = '5'::uuid and now() > y returning id, x.v AS w", "id: '5'::Uuid"),
        // As pgbench, Django, ActiveRecord, Hibernate, SQLAlchemy over asyncpg and psycopg write them.
        ("UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2", "aid: $2"),
        (r#"UPDATE "t" SET "v" = ("t"."v" + 1), "w" = NULL WHERE "t"."id" = 5"#, "id: 5"),
        (r#"DELETE FROM "t" WHERE "t"."id" IN (5)"#, "id: 5"),
        (r#"UPDATE "t" SET "v" = $1, "updated_at" = $2 WHERE "t"."id" = $3"#, "id: $3"),
        ("update t set version=$1, v=$2 where id=$3 and version=$4", "id: $3"),
        ("UPDATE t SET v=$1::VARCHAR, w=$2::TIMESTAMP WITHOUT TIME ZONE WHERE t.id = $3::INTEGER", "id: $3::Integer"),
        ("UPDATE t SET v='x' WHERE t.id = 5", "id: 5"),
        // The key moves, or may.
        ("UPDATE t SET id = 6 WHERE id = 5", "-"),
        ("UPDATE t SET v = 1, id = id + 1 WHERE id = 5 AND a = 1", "a: 1"),
        // No constant for certain.
        ("UPDATE t SET v = 1 WHERE id <> 5", "-"),
        ("UPDATE t SET v = 1 WHERE id = 5 + 1", "-"),
        ("UPDATE t SET v = 1 WHERE id = a", "-"),
        ("UPDATE t SET v = 1 WHERE id IN (1, a)", "-"),
        ("UPDATE t SET v = 1 WHERE id = -5::int4", "-"),
        ("UPDATE t SET v = 1 WHERE id = - -5", "-"),
        ("UPDATE t SET v = 1 WHERE id = 5.0", "-"),
        ("UPDATE t SET v = 1 WHERE id = 'abcd'::varchar(3)", "-"),
        ("UPDATE t SET v = 1 WHERE id = '5'::text::int4", "-"),
        ("UPDATE t SET v = 1 WHERE id = 5::numeric", "-"),
        ("UPDATE t SET v = 1 WHERE id = 'ä'", "-"),
        ("UPDATE t SET v = 1 WHERE id = E'a\\tb'", "-"),
        ("UPDATE t SET v = 1 WHERE -id = 5", "-"),
        ("UPDATE t SET v = 1 WHERE id + 1 = 5", "-"),
    ] {
        assert_eq!(of(sql), expected, "{sql}");
    }
    let many = (0..17).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(of(&format!("DELETE FROM t WHERE id IN ({many})")), "-");
}

/// Each would be confined by id (or k) if what is odd about it were not seen.
#[test]
fn a_text_with_anything_else_in_it_confines_nothing() {
    let long = "x".repeat(64);
    for sql in [
        "UPDATE t SET v = 1",
        "UPDATE t SET v = 1 WHERE id = 5 OR a = 1",
        "UPDATE t SET v = 1 WHERE (id = 5 OR a = 1)",
        "UPDATE t SET v = 1 WHERE id = 5 AND (a = 1 OR b = 1)",
        "UPDATE t SET v = 1 WHERE NOT id = 5",
        "UPDATE t SET v = 1 WHERE NOT (id = 5)",
        "UPDATE t SET v = 1 WHERE id = 5 = a",
        "UPDATE t SET v = 1 WHERE (id = 5) = a",
        "UPDATE t SET v = 1 WHERE a = (id = 5)",
        "UPDATE t SET v = 1 WHERE id = 5 IS NULL",
        "UPDATE t SET v = 1 WHERE id = 5 IS NOT TRUE",
        "UPDATE t SET v = 1 WHERE id = 5 ISNULL",
        "UPDATE t SET v = 1 WHERE id NOT IN (1, 2)",
        "UPDATE t SET v = 1 WHERE id IN (SELECT 1)",
        "UPDATE t SET v = 1 WHERE id IN (1, 2) IS NULL",
        "UPDATE t SET v = 1 WHERE id = 5 AND a BETWEEN 1 AND 2",
        "UPDATE t SET v = 1 WHERE a BETWEEN 1 AND id = 5",
        "UPDATE t SET v = 1 WHERE CASE WHEN true AND id = 5 THEN a END",
        "UPDATE t SET v = 1 WHERE x AND CASE WHEN a THEN b AND id = 5 END",
        "UPDATE t SET v = 1 WHERE (1, id = 5) = (1, true)",
        "UPDATE t SET v = 1 WHERE (id, 1) = (5, 1)",
        "UPDATE t SET v = 1 WHERE user = 'x'",
        "UPDATE t SET v = 1 WHERE u.id = 5",
        "UPDATE t AS x SET v = 1 WHERE t.id = 5",
        "UPDATE t SET v = 1 WHERE s.t.id = 5",
        "UPDATE t SET v = 1 WHERE (t).id = 5",
        "UPDATE t SET v = 1 WHERE id[1] = 5",
        "UPDATE t SET v = 1 WHERE id = U&'5'",
        "UPDATE t SET v = 1 WHERE id = int4 '5'",
        "UPDATE t SET v = 1 WHERE id = CAST(5 AS int)",
        "UPDATE t SET v = 1 WHERE id = 5::myint",
        "UPDATE t SET v = 1 WHERE id = 5::pg_catalog.int4",
        "UPDATE t SET v = 1 WHERE id = 5::int4[]",
        "UPDATE t SET v = 1 WHERE id = ANY ('{5}')",
        "UPDATE t SET v = 1 WHERE id OPERATOR(pg_catalog.=) 5",
        "UPDATE t SET v = 1 WHERE id == 5",
        "UPDATE t SET v = 1 WHERE id = 5 AND a @> b",
        "UPDATE t SET v = 1 WHERE id = 'a' COLLATE \"x\"",
        "UPDATE t SET v = 1 WHERE id = 'a' 'b'",
        "UPDATE t SET v = 1 WHERE CURRENT OF id",
        "UPDATE t SET v = 1 FROM u WHERE t.id = 5",
        "UPDATE t * SET v = 1 WHERE id = 5",
        "UPDATE ONLY (t) SET v = 1 WHERE id = 5",
        "UPDATE t SET v = f(1) WHERE id = 5",
        "UPDATE t SET v = \"now\"() WHERE id = 5",
        "UPDATE t SET v = now(1) WHERE id = 5",
        "UPDATE t SET v = (SELECT 1) WHERE id = 5",
        "UPDATE t SET v = CASE WHEN a THEN 1 ELSE 2 END WHERE id = 5",
        "UPDATE t SET v = ROW(1, 2) WHERE id = 5",
        "UPDATE t SET v = ARRAY[1] WHERE id = 5",
        "UPDATE t SET (v, ID) = (1, 6) WHERE id = 5",
        "UPDATE t SET (v) = (1) WHERE id = 5",
        "UPDATE t SET id[1] = 6 WHERE id = 5",
        "UPDATE t SET id.x = 6 WHERE id = 5",
        "UPDATE t SET v = 1 WHERE id = 5 RETURNING f(v)",
        "UPDATE t SET v = 1 WHERE id = 5 RETURNING (SELECT 1)",
        // Reserved words behind a point are columns' names.
        "UPDATE t SET v = t.case WHERE a = 1 OR t.end = 2 AND id = 5",
        "UPDATE t SET v = 1 WHERE t.case = 1 OR t.end = 2 AND id = 5",
        "UPDATE t SET v = 1 WHERE slot.end = 1 AND id = 5",
        "UPDATE t SET v = 1 WHERE t.returning = 1 AND id = 5",
        "UPDATE t SET v = t.where WHERE id = 5",
        "UPDATE t SET v = 1 WHERE id = 5)",
        "UPDATE t SET v = 1 WHERE id = 5 AND (a = 1",
        "UPDATE t SET v = 1 WHERE (((((((id = 5)))))))",
        "DELETE FROM t USING u WHERE t.id = 5",
        "DELETE FROM t * WHERE id = 5",
        "DELETE FROM ONLY (t) WHERE id = 5",
        "DELETE FROM t",
        "WITH x AS (SELECT 1) UPDATE t SET v = 1 WHERE id = 5",
        "MERGE INTO t USING u ON t.id = 5 WHEN MATCHED THEN DELETE",
        // Names that the server may make others of.
        "UPDATE t SET Ä = 1 WHERE id = 5",
        "UPDATE t SET v = 1 WHERE kÄ = 5",
        &format!("UPDATE t SET {long} = 1 WHERE id = 5"),
        &format!("UPDATE t SET \"{long}\" = 1 WHERE id = 5"),
        &format!("UPDATE t SET v = 1 WHERE {long} = 5"),
        "INSERT INTO t VALUES (1, 'a')",
        "INSERT INTO t (id) VALUES (nextval('s'))",
        "INSERT INTO t (a, b, id) VALUES ((ROW(7, 8)).*, 1)",
        "INSERT INTO t (a, b, id) VALUES (x.*, 1)",
        "INSERT INTO t (id, v) VALUES (1)",
        "INSERT INTO t (id) VALUES (1, 2)",
        "INSERT INTO t (id, v) VALUES (1, 2), (3)",
        "INSERT INTO t (id) SELECT 1",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t (id) OVERRIDING USER VALUE VALUES (1)",
        "INSERT INTO t (id[1]) VALUES (1)",
        "INSERT INTO t (id.x) VALUES (1)",
        "INSERT INTO t (id) VALUES (1), (2) UNION SELECT 3",
        "INSERT INTO t (id) (VALUES (1))",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (lower(id)) DO UPDATE SET v = 1",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id COLLATE \"C\") DO UPDATE SET v = 1",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id int4_ops) DO UPDATE SET v = 1",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) WHERE v > 1 DO UPDATE SET v = 1",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT ON CONSTRAINT c DO UPDATE SET v = 1",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT DO UPDATE SET v = 1",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET (v, id) = (1, 2)",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET v = 1 WHERE t.v = 1 OR t.id = 5",
    ] {
        assert_eq!(of(sql), "-", "{sql}");
    }
}

#[test]
fn inserts_are_confined_by_their_constants() {
    for (sql, expected) in [
        ("INSERT INTO s.t (id, v) VALUES ($1, $2)", "id: $1; v: $2"),
        ("INSERT INTO t AS x (id, v) VALUES (1, now()), (2, NULL) RETURNING id", "id: 1, 2"),
        ("INSERT INTO t (id, v) VALUES (1, DEFAULT) ON CONFLICT DO NOTHING", "id: 1"),
        ("INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (v) DO NOTHING", "id: 1; v: 2"),
        (r#"INSERT INTO "t" ("v", "w") VALUES ('x', CURRENT_TIMESTAMP) RETURNING "t"."id""#, "v: 'x'"),
        // The row that is updated is like the new one in what they conflict in.
        ("INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v", "id: 1; v: 2 / id"),
        (
            "INSERT INTO t (a, b, v) VALUES (1, 2, 3) ON CONFLICT (a, b) DO UPDATE SET b = 4 WHERE t.v < 3 RETURNING a",
            "a: 1; b: 2; v: 3 / a",
        ),
        ("INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v", "id: 1; v: 2 / id"),
    ] {
        assert_eq!(of(sql), expected, "{sql}");
    }
    let many = (0..17).map(|n| format!("({n})")).collect::<Vec<_>>().join(", ");
    assert_eq!(of(&format!("INSERT INTO t (id) VALUES {many}")), "-");
}

#[test]
fn what_it_was_read_by_is_told() {
    let names = |sql: &str| confined(&tokens(sql).expect("lexes")).expect("is confined").names;
    let found = names("UPDATE t SET v = t.w * 2 - now(), x = $1::jsonb WHERE id = 5::int4 AND y != -z AND k IN (1)");
    assert_eq!(found.columns, ["id", "k", "v", "w", "x", "y", "z"]);
    assert_eq!(found.types, ["int4", "jsonb"]);
    assert_eq!(found.functions, ["now"]);
    assert_eq!(found.operators, ["*", "-", "<>", "="]);
    let found = names("INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET w = excluded.u");
    assert_eq!(found.columns, ["id", "u", "v", "w"]);
}

#[test]
fn no_text_makes_it_panic() {
    let pieces =
        ["update", "t", "set", "v", "=", "(", ")", "where", "id", "in", ",", "insert", "into", "values", "$1", "on"];
    let more = ["conflict", "do", "5", "case", "end", "::", "int", "-", "and", "delete", "from", ".", "*", "'x'"];
    let pieces = [&pieces[..], &more].concat();
    let mut seed = 7_u64;
    for _ in 0..20_000 {
        let mut sql = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sql.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            sql.push(' ');
        }
        if let Ok(tokens) = tokens(&sql) {
            let _ = confined(&tokens);
        }
    }
}
