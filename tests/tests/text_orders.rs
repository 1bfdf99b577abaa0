//! Texts in the order of a collation that upstream tells, learnt a few at a time: each answer is upstream's, however many are known.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::world::{World, until};

/// Case, accents, punctuation, blanks, digits, long common beginnings; ties of the library that bytes break.
const SETUP: &str = r#"
    CREATE TABLE names (id int PRIMARY KEY, shelf int, name text COLLATE "en-US-x-icu", other text COLLATE "de-DE-x-icu");
    INSERT INTO names SELECT n, n % 40,
        (ARRAY['Ab', 'ab', 'aB', 'Äb', 'a-b', 'a b', 'z', 'Z', 'é', 'e', 'ß', 'ss', '', 'ab' || repeat('x', 40)])[n % 14 + 1] || (n * 7919 % 6000 / 3),
        md5(n::text) || CASE WHEN n % 3 = 0 THEN 'Ö' ELSE 'o' END
      FROM generate_series(1, 6000) n;
    ANALYZE"#;

#[test]
fn few_texts_at_a_time_find_their_places() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    let ask = |both: &mut Both, sql: &str| {
        until(sql, || {
            let (route, _) = both.routed("nothing", sql);
            route == "local" || route == "hit"
        });
    };
    // Nothing is known; then each shelf has some that are known and some that are not, and constants and derived texts have none.
    for shelf in 0..40 {
        ask(&mut both, &format!("SELECT id, name FROM names WHERE shelf = {shelf} ORDER BY name, id"));
        if shelf % 8 == 0 {
            ask(
                &mut both,
                &format!("SELECT id, other FROM names WHERE shelf = {shelf} ORDER BY other || 'x' DESC, id LIMIT 50"),
            );
            ask(
                &mut both,
                &format!(
                    "SELECT count(*), min(upper(name)), max(name) FROM names WHERE shelf = {shelf} AND name > 'ab{shelf}'"
                ),
            );
        }
    }
    // All at once, and what is written since: before the first, behind the last, among the others.
    ask(&mut both, "SELECT id, name FROM names ORDER BY name, id");
    for (at, name) in ["", " ", "!", "zzzzzz", "ab7a", "Äb1999", "\u{10ffff}", "ab"].into_iter().enumerate() {
        world.past(&format!("INSERT INTO names VALUES ({}, 99, '{name}', '{name}')", 10_000 + at));
        let sql = "SELECT id, name FROM names ORDER BY name, id";
        until(sql, || {
            let (route, _) = both.routed("nothing", sql);
            route == "local"
        });
    }
}

/// From a session that has never sent ASCII alone. Letters that come later, a capital that becomes two characters, and one that is not followed here, also when its row is gone.
#[test]
fn rows_are_found_by_texts_in_one_case() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    let mut ask = |name: &str| {
        for sql in [
            format!("SELECT id, name FROM names WHERE lower(name) = lower('{name}') ORDER BY id"),
            format!("SELECT id, shelf FROM names WHERE shelf < 30 AND upper(name) = upper('{name}') ORDER BY id"),
            format!("SELECT count(*) FROM names WHERE lower(name || '!') = '{name}!'"),
        ] {
            until(&sql, || {
                let (route, _) = both.routed("nothing", &sql);
                route == "local" || route == "hit"
            });
        }
    };
    ["äb200", "AB12", "é1700", "SS3", "none"].into_iter().for_each(&mut ask);
    for (at, name) in ["Ābc", "āBC", "İx", "ǅ", "Ǆ", "ЖУК", "жуК", "äB200"].into_iter().enumerate() {
        world.past(&format!("INSERT INTO names VALUES ({}, {at}, '{name}', '')", 10_000 + at));
        ask(name);
        ask("ab12");
    }
    world.past("UPDATE names SET name = 'ÄB12' WHERE id % 100 = 7");
    ["äb12", "ЖУК", "āBC"].into_iter().for_each(&mut ask);
    world.past("INSERT INTO names VALUES (20000, 1, 'ΣΑΣ', '')");
    world.past("DELETE FROM names WHERE id = 20000");
    ["äb12", "ЖУК", "ǆ"].into_iter().for_each(&mut ask);
}
