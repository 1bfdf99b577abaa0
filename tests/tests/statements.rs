//! What `freshet.statements`, the page and the log tell of statements: never a constant, and the times of all that was counted.

use std::time::Duration;

use freshet_config::FreshnessMode;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle, until};

const SETUP: &str = "CREATE TABLE users (id int PRIMARY KEY, name text, pw text, born date, seen timestamp);
    INSERT INTO users SELECT n, 'n' || n, md5('s3cret'), DATE '2000-01-01' + n, now() FROM generate_series(1, 3000) n;
    CREATE TABLE nopk (id int, name text)";

fn rows(client: &mut RawClient, sql: &str) -> Vec<Vec<String>> {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
    let text = |cell: Option<Vec<u8>>| String::from_utf8(cell.unwrap_or_default()).expect("UTF-8");
    reply.rows().into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

#[test]
fn no_constant_of_a_statement_is_shown() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut client = world.client();
    // One that is answered here, so that the table is known.
    settle(&mut client, "SELECT id FROM users WHERE id = 7");
    for expression in [
        "pw = md5('s3cret')",
        "name = concat('s3cret', id)",
        "name = lower('s3cret') OR name = upper('s3cret') OR name = coalesce(NULL, 's3cret')",
        "name = format('s3cret %s', id) OR name = replace('s3cret', 'c', 's3cret') OR position('s3cret' IN name) > 3",
        "name = nullif('s3cret', 'x') OR name = $$s3cret$$ OR name = $a$s3cret$a$ OR name = E's3cret\\n'",
        "name = N's3cret' OR name = U&'s3cret' OR name = 's3cret' 's3cret'",
        "name = 's3cret'\n's3cret' OR name ~ 's3cret' OR name SIMILAR TO 's3cret' OR name LIKE ANY (ARRAY['s3cret'])",
        "(id, name) IN (VALUES (1, 's3cret'), (2, 's3cret'))",
        "born = '2026-01-09 s3cret'",
        "seen = 'yesterday s3cret' OR id = 's3cret'",
        "date_part('s3cret', seen) = 1 OR seen + interval 's3cret' > seen",
        "seen AT TIME ZONE 's3cret' > now()",
        "id = 1 's3cret'",
        "to_date('s3cret', 'YYYY') = born OR to_number('s3cret', '99') = id",
    ] {
        for _ in 0..3 {
            let _ = client.simple(&format!("SELECT id, 's3cret' FROM users WHERE {expression}"));
        }
        let (_, reason) = client.last().expect("answers");
        assert!(!reason.contains("s3cret"), "{expression}: {reason}");
    }
    let shown = rows(&mut client, "SELECT * FROM freshet.statements");
    assert!(shown.len() > 10, "{shown:?}");
    for row in shown {
        assert!(!row.iter().any(|cell| cell.contains("s3cret")), "{row:?}");
        assert_ne!(row[1], "0", "a row that counts nothing: {row:?}");
    }
}

#[test]
fn a_role_sees_its_own_statements_unless_it_may_see_all() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let (ann, ben) = (format!("ann_{}", world.database), format!("ben_{}", world.database));
    world.past(&format!("CREATE ROLE {ann} LOGIN; CREATE ROLE {ben} LOGIN; GRANT SELECT ON users TO {ann}, {ben}"));
    let connect = |role: &str| RawClient::connect(world.freshet.address(), role, &world.database).expect("connects");
    let (mut first, mut second) = (connect(&ann), connect(&ben));
    for _ in 0..2 {
        settle(&mut first, "SELECT id FROM users WHERE id = 7");
        settle(&mut first, "SELECT name FROM users WHERE id = 7");
        settle(&mut second, "SELECT id FROM users WHERE id = 8");
    }
    let seen = |client: &mut RawClient| -> Vec<String> {
        let mut texts: Vec<String> =
            rows(client, "SELECT statement FROM freshet.statements").into_iter().map(|mut row| row.remove(0)).collect();
        texts.sort();
        texts
    };
    let all = ["select id from users where id = {int4}", "select name from users where id = {int4}"];
    assert_eq!(seen(&mut world.client()), all);
    assert_eq!(seen(&mut first), all);
    assert_eq!(seen(&mut second), ["<insufficient privilege>", all[0]]);
    // Another role of the same session, by the same plan.
    const SAME: &str = "SELECT max(name) FROM users";
    let mut both = world.client();
    for set in ["SET freshet.route = 'local'", "RESET ROLE", &format!("SET ROLE {ben}")] {
        both.simple(set).expect("answers");
        settle(&mut both, SAME);
    }
    assert_eq!(seen(&mut second), ["<insufficient privilege>", all[0], "select max ( name ) from users"]);
    world.past(&format!("GRANT pg_read_all_stats TO {ben}"));
    assert_eq!(seen(&mut second), [all[0], "select max ( name ) from users", all[1]]);
    world.past(&format!("DROP OWNED BY {ann}, {ben}; DROP ROLE {ann}, {ben}"));
}

#[test]
fn a_semicolon_at_the_end_makes_no_other_statement() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut client = world.client();
    // Before the mirror runs nothing is counted.
    settle(&mut client, "SELECT id FROM users WHERE id = 7");
    for _ in 0..3 {
        client.simple("SELECT * FROM nopk;").expect("answers");
        client.simple("SELECT * FROM nopk").expect("answers");
    }
    let mut shown = rows(&mut client, "SELECT statement, calls FROM freshet.statements");
    shown.retain(|row| row[0].contains("nopk"));
    assert_eq!(shown, [["select * from nopk".to_owned(), "6".to_owned()]]);
}

#[test]
fn what_upstream_answers_because_a_moment_did_not_come_is_timed() {
    let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| settings.freshness.wait_budget_ms = 1);
    let mut client = world.client();
    let sql = "SELECT count(name) FROM users";
    until("it is a hit", || {
        client.simple(sql).expect("answers");
        client.last().expect("answers").0 == "hit"
    });
    let mut direct = world.direct();
    let mut missed = 0;
    until("moments did not come", || {
        // More than is applied in the time that a reader waits.
        direct.simple("UPDATE users SET name = name || 'x'").expect("answers");
        client.simple(sql).expect("answers");
        missed += u32::from(client.last().expect("answers").1 == "wait_budget");
        missed >= 10
    });
    let counted = "SELECT statement, relayed, relay_p50_us, relayed_us FROM freshet.statements";
    let row = rows(&mut client, counted).into_iter().find(|row| row[0].contains("count ( name )")).expect("listed");
    let numbers: Vec<u64> = row[1..].iter().map(|cell| cell.parse().expect("a number")).collect();
    let each = Duration::from_micros(numbers[2] / numbers[0]);
    assert!(numbers[0] >= 10 && numbers[1] > 0 && each > Duration::from_micros(20), "{row:?}");
}
