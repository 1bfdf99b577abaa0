//! Refresh ahead: replies that are polled are made anew right after a change, so that the next poll is a hit; and only those.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::raw::RawClient;
use freshet_tests::world::World;

const WAIT: Duration = Duration::from_secs(30);
const SETUP: &str = "CREATE TABLE sales (id int PRIMARY KEY, shop int, amount numeric(10, 2));
    INSERT INTO sales SELECT n, n % 50, n % 997 FROM generate_series(1, 60000) n";
/// Not what can be brought up to date from the changes alone, and long enough to be worth it.
const POLLED: &str = "SELECT shop, count(DISTINCT amount), max(id) FROM sales GROUP BY shop ORDER BY shop";
/// Another shape over the same table.
const COUNT: &str = "SELECT count(*) FROM sales";

struct Stand {
    world: World,
    client: RawClient,
}

impl Stand {
    fn start(mode: FreshnessMode, percent: u64) -> Self {
        let world = World::start_with(mode, SETUP, |settings| settings.cache.refresh_ahead_percent = percent);
        let client = world.client();
        Self { world, client }
    }

    fn rows(&mut self, sql: &str) -> Vec<String> {
        let reply = self.client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(reply.error(), None, "{sql}");
        let cell = |cell: &Option<Vec<u8>>| String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned();
        reply.rows().iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("|")).collect()
    }

    /// Asks once; it is upstream's answer. How it came about.
    fn poll(&mut self) -> String {
        let rows = self.rows(POLLED).join("\n");
        let route = self.client.last().expect("answers").0;
        assert_eq!(rows, self.world.past(POLLED));
        route
    }

    fn until_hit(&mut self) {
        let limit = Instant::now() + WAIT;
        while self.poll() != "hit" {
            assert!(Instant::now() < limit, "{:?}", self.client.last());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn refreshes(&mut self) -> u64 {
        let rows = self.rows("SELECT statement, refreshes FROM freshet.statements");
        let row = rows.iter().find(|row| row.contains("distinct amount")).expect("counted");
        row.rsplit('|').next().and_then(|count| count.parse().ok()).expect("a number")
    }

    fn until_refreshed(&mut self, before: u64) {
        let limit = Instant::now() + WAIT;
        while self.refreshes() == before {
            assert!(Instant::now() < limit, "not refreshed");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn change(&self, n: u32) {
        self.world.past(&format!("INSERT INTO sales VALUES ({}, {}, 1)", 100_000 + n, n % 50));
    }
}

#[test]
fn a_polled_reply_is_there_again_before_it_is_asked_for() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let mut stand = Stand::start(mode, 100);
        stand.until_hit();
        stand.change(0);
        // Somebody has to ask once after a change, to be known as one who polls.
        let limit = Instant::now() + WAIT;
        while stand.rows(POLLED).join("\n") != stand.world.past(POLLED) {
            assert!(Instant::now() < limit, "the change does not arrive");
        }
        stand.until_hit();
        for n in 1..6 {
            let before = stand.refreshes();
            stand.change(n);
            stand.until_refreshed(before);
            // The moment that sessions read in that mode is the one of a heartbeat.
            let count = stand.world.past(COUNT);
            while stand.rows(COUNT).concat() != count {
                assert!(Instant::now() < limit, "the change does not arrive");
            }
            assert_eq!(stand.poll(), "hit", "{n}");
        }
    }
}

#[test]
fn what_nobody_asks_for_is_refreshed_once_at_most() {
    let mut stand = Stand::start(FreshnessMode::Exact, 100);
    stand.until_hit();
    stand.change(0);
    stand.until_hit();
    let before = stand.refreshes();
    stand.change(1);
    stand.until_refreshed(before);
    // Each change has been looked at once a statement asked for later is answered with it.
    for n in 2..12 {
        stand.change(n);
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(stand.refreshes(), before + 1);
    assert_ne!(stand.poll(), "hit");
    // Asked for again, it is watched again.
    stand.until_hit();
    stand.change(20);
    stand.until_hit();
    let before = stand.refreshes();
    stand.change(21);
    stand.until_refreshed(before);
    assert_eq!(stand.poll(), "hit");
}

#[test]
fn it_is_off_unless_asked_for_and_a_change_of_the_catalog_ends_it() {
    let mut stand = Stand::start(FreshnessMode::Exact, 0);
    for n in 0..3 {
        stand.until_hit();
        stand.change(n);
        assert_ne!(stand.poll(), "hit");
    }
    assert_eq!(stand.refreshes(), 0);
    let mut stand = Stand::start(FreshnessMode::Exact, 100);
    for n in 0..3 {
        stand.until_hit();
        stand.change(n);
    }
    stand.world.past("ALTER TABLE sales ALTER COLUMN amount TYPE int USING amount::int + 1");
    stand.until_hit();
    stand.world.past("UPDATE sales SET amount = amount + 1 WHERE shop < 25");
    stand.until_hit();
}
