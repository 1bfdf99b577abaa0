//! A table is swapped for another by its name, as migrations without downtime do: in session mode, too, a session sees its own
//! acknowledged write, wherever the swap was made.

use std::time::Duration;

use freshet_config::FreshnessMode;
use freshet_tests::raw::{RawClient, frame};
use freshet_tests::world::{World, settle, until};

const SETUP: &str = "CREATE TABLE counts (k int PRIMARY KEY, v int); INSERT INTO counts SELECT k, 0 FROM generate_series(1, 50) k;
    CREATE TABLE parts (k int PRIMARY KEY, v int) PARTITION BY RANGE (k);
    CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (25); CREATE TABLE parts_high PARTITION OF parts DEFAULT;
    INSERT INTO parts SELECT k, 0 FROM generate_series(1, 50) k;
    CREATE FUNCTION bump(k int) RETURNS void LANGUAGE sql AS 'UPDATE counts SET v = v + 1 WHERE k = $1'";
const ROUNDS: usize = 12;

fn run(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
    reply.text()
}

/// Another writer waits for the lock that the swap holds, writes into the table that has the name by then, and reads.
fn swap(by: impl Fn(&World) -> RawClient, table: &str, write: impl Fn(usize) -> String, changes: &str) {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut migration, mut writer) = (by(&world), world.client());
    for round in 0..ROUNDS {
        let k = round % 9 + 1;
        let read = format!("SELECT v FROM {table} WHERE k = {k}");
        let settled = settle(&mut writer, &read);
        assert!(settled.route != "relay", "{round}: {}", settled.reason);
        let before: i32 = run(&mut writer, &read).parse().expect("a number");
        run(&mut migration, &format!("BEGIN; LOCK TABLE {table}"));
        writer.send(&frame(b'Q', format!("{}\0", write(k)).as_bytes())).expect("sends");
        until("the writer waits", || {
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query = ";
            world.past(&format!("{waiting}$${}$$", write(k))) == "1"
        });
        run(&mut migration, changes);
        run(&mut migration, "COMMIT");
        assert_eq!(writer.read_reply().expect("answers").error(), None);
        let seen: i32 = run(&mut writer, &read).parse().expect("a number");
        assert_eq!(seen, before + 1, "{round}: {:?}", writer.last());
        run(&mut migration, &format!("DROP TABLE {table}_old"));
        std::thread::sleep(Duration::from_millis(1));
    }
}

const PLAIN: &str = "CREATE TABLE counts_new (LIKE counts INCLUDING ALL); INSERT INTO counts_new SELECT * FROM counts;
    ALTER TABLE counts RENAME TO counts_old; ALTER TABLE counts_new RENAME TO counts";

fn update(table: &str) -> impl Fn(usize) -> String {
    let table = table.to_owned();
    move |k| format!("UPDATE {table} SET v = v + 1 WHERE k = {k}")
}

#[test]
fn a_swap_past_freshet_hides_no_own_write() {
    swap(World::direct, "counts", update("counts"), PLAIN);
}

#[test]
fn a_swap_through_freshet_hides_no_own_write() {
    swap(World::client, "counts", update("counts"), PLAIN);
}

#[test]
fn a_write_that_names_no_table_is_seen_in_the_one_that_has_the_name() {
    swap(World::direct, "counts", |k| format!("SELECT bump({k})"), PLAIN);
}

#[test]
fn a_partitioned_table_is_swapped_as_well() {
    let changes = "CREATE TABLE parts_new (k int PRIMARY KEY, v int) PARTITION BY RANGE (k);
        CREATE TABLE parts_all PARTITION OF parts_new DEFAULT; INSERT INTO parts_new SELECT * FROM parts;
        ALTER TABLE parts RENAME TO parts_old; ALTER TABLE parts_new RENAME TO parts;
        ALTER TABLE parts_all RENAME TO parts_all_2; ";
    let rename = "DO $$ BEGIN EXECUTE format('ALTER TABLE parts_all_2 RENAME TO %I', 'p' || txid_current()); END $$";
    swap(World::direct, "parts", update("parts"), &format!("{changes}{rename}"));
}

#[test]
fn a_table_of_another_schema_takes_the_place() {
    let changes = "CREATE SCHEMA IF NOT EXISTS shelf; DROP TABLE IF EXISTS shelf.counts;
        CREATE TABLE shelf.counts (LIKE counts INCLUDING ALL); INSERT INTO shelf.counts SELECT * FROM counts;
        ALTER TABLE counts RENAME TO counts_old";
    let moves = "DO $$ BEGIN EXECUTE format('ALTER INDEX counts_pkey RENAME TO %I', 'p' || txid_current()); END $$;
        ALTER TABLE shelf.counts SET SCHEMA public";
    swap(World::direct, "counts", update("counts"), &format!("{changes}; {moves}"));
}
