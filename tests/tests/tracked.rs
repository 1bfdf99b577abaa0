//! Tables without room in the mirror: it is known when they have last changed, so upstream's replies over them are kept, exactly as
//! long as nothing changes; and the table that is read most per byte is the one that has room.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::raw::RawClient;
use freshet_tests::world::World;

const WAIT: Duration = Duration::from_secs(60);
/// One of the tables below has room, two have not.
const MEMORY: u64 = 4 << 20;

const SETUP: &str = "CREATE TABLE one (id int PRIMARY KEY, name text);
    INSERT INTO one SELECT n, md5(n::text) FROM generate_series(1, 60000) n;
    CREATE TABLE two (id int PRIMARY KEY, name text);
    INSERT INTO two SELECT n, md5(n::text) FROM generate_series(1, 60000) n;
    CREATE TABLE parts (id int, at int, name text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
    CREATE TABLE parts_large PARTITION OF parts FOR VALUES FROM (0) TO (10);
    CREATE TABLE parts_small PARTITION OF parts FOR VALUES FROM (10) TO (20);
    INSERT INTO parts SELECT n, n % 10, md5(n::text) FROM generate_series(1, 60000) n;
    INSERT INTO parts VALUES (1, 11, 'small');
    ANALYZE";

struct Stand {
    world: World,
    client: RawClient,
}

impl Stand {
    fn start(mode: FreshnessMode) -> Self {
        let world = World::start_with(mode, SETUP, |settings| settings.mirror.memory_bytes_max = MEMORY);
        let client = world.client();
        Self { world, client }
    }

    /// One of the two is mirrored, and there is no room for the other.
    fn crowded(mode: FreshnessMode) -> Self {
        let mut stand = Self::start(mode);
        stand.until(ONE, "hit");
        stand.until(TWO, "hit");
        assert_eq!((stand.state("one"), stand.state("two")), ("mirrored".into(), "tracked".into()));
        stand
    }

    /// The first cell, and how it was answered. It is what upstream says.
    fn ask(&mut self, sql: &str) -> (String, String, String) {
        let reply = self.client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(reply.error(), None, "{sql}");
        let cell = reply.rows()[0][0].clone().map(String::from_utf8).expect("not null").expect("text");
        assert_eq!(cell, self.world.past(sql), "{sql}");
        let (route, reason) = self.client.last().expect("answers");
        (cell, route, reason)
    }

    /// The table `one` is read as often as whatever is asked meanwhile: however often that is, nothing drives it out.
    fn until(&mut self, sql: &str, route: &str) {
        let limit = Instant::now() + WAIT;
        loop {
            self.client.simple(ONE).expect("answers");
            let (_, by, reason) = self.ask(sql);
            if by == route {
                return;
            }
            assert!(Instant::now() < limit, "{sql}: {by} {reason}, {:?}", self.states());
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    fn states(&mut self) -> Vec<(String, String)> {
        let reply = self.client.simple("SELECT name, state FROM freshet.tables ORDER BY name").expect("answers");
        let text = |cell: &Option<Vec<u8>>| String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned();
        reply.rows().iter().map(|row| (text(&row[0]), text(&row[1]))).collect()
    }

    fn state(&mut self, table: &str) -> String {
        let name = format!("public.{table}");
        self.states().into_iter().find(|(known, _)| *known == name).map_or(String::new(), |(_, state)| state)
    }

    fn until_state(&mut self, table: &str, state: &str, mut meanwhile: impl FnMut(&mut Self)) {
        let limit = Instant::now() + WAIT;
        while self.state(table) != state {
            meanwhile(self);
            assert!(Instant::now() < limit, "{table}: {:?}", self.states());
            std::thread::sleep(Duration::from_millis(25));
        }
    }
}

const ONE: &str = "SELECT max(id) FROM one";
const TWO: &str = "SELECT max(id) FROM two";

#[test]
fn replies_over_a_table_without_room_are_kept_exactly_as_long_as_it_does_not_change() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let mut stand = Stand::crowded(mode);
        let joined = "SELECT count(*) FROM one JOIN two USING (id)";
        stand.until(joined, "hit");
        // Past freshet, of which mode session learns within its lag; through it, of which both know.
        if mode == FreshnessMode::Exact {
            stand.world.past("INSERT INTO two VALUES (70001, 'x')");
            let (cell, route, _) = stand.ask(TWO);
            assert_eq!((&*cell, route == "hit"), ("70001", false));
            stand.until(TWO, "hit");
        }
        stand.client.simple("UPDATE two SET id = 70002 WHERE id = (SELECT max(id) FROM two)").expect("answers");
        assert_eq!(stand.ask(TWO).0, "70002");
        stand.until(TWO, "hit");
        stand.client.simple("DELETE FROM two WHERE id > 50000").expect("answers");
        assert_eq!((stand.ask(TWO).0, stand.ask(joined).0), ("50000".to_owned(), "50000".to_owned()));
        stand.until(joined, "hit");
        // A change of the other table alone.
        stand.client.simple("DELETE FROM one WHERE id > 49990").expect("answers");
        assert_eq!(stand.ask(joined).0, "49990");
        stand.until(TWO, "hit");
        // A statement that uses the clock is nothing to keep.
        let timed = "SELECT count(*) FROM two WHERE now() < '2001-01-01'";
        for _ in 0..5 {
            assert_eq!(stand.ask(timed).1, "relay", "{:?}", stand.states());
        }
        // From here on there is room, and it may be copied again at any moment.
        stand.client.simple("TRUNCATE two").expect("answers");
        assert_eq!(stand.ask(joined).0, "0");
        // It has its room again once it is read much more than the others.
        stand.world.past("ALTER TABLE two ADD COLUMN more int DEFAULT 7");
        stand.until_state("two", "mirrored", |stand| drop(stand.ask(TWO.replace("max(id)", "count(more)").as_str())));
    }
}

/// What was known of its size is of rows that are gone.
#[test]
fn a_table_that_has_become_small_has_its_room() {
    let mut stand = Stand::crowded(FreshnessMode::Exact);
    stand.world.past("DELETE FROM two WHERE id > 100");
    stand.world.past("VACUUM FULL two");
    stand.until_state("two", "mirrored", |stand| drop(stand.ask(TWO)));
    assert_eq!(stand.state("one"), "mirrored");
    stand.until(&format!("{TWO} WHERE id > 5"), "local");
}

#[test]
fn a_partition_without_room_is_tracked_and_the_others_are_mirrored() {
    let mut stand = Stand::start(FreshnessMode::Exact);
    stand.until(ONE, "hit");
    let all = "SELECT count(*) FROM parts";
    stand.until(all, "hit");
    assert_eq!((stand.state("parts_large"), stand.state("parts_small")), ("tracked".into(), "mirrored".into()));
    for change in ["INSERT INTO parts VALUES (2, 12, 'x')", "DELETE FROM parts WHERE id < 100 AND at < 5"] {
        stand.world.past(change);
        assert_ne!(stand.ask(all).1, "hit", "{change}");
        stand.until(all, "hit");
    }
    stand.until("SELECT count(*) FROM parts_small", "local");
}

#[test]
fn the_table_that_is_read_most_has_the_room() {
    let mut stand = Stand::crowded(FreshnessMode::Exact);
    // They change places, whatever is asked meanwhile being right.
    stand.until_state("two", "mirrored", |stand| {
        for n in 0..20 {
            stand.ask(&format!("SELECT max(id) FROM two WHERE id <> {n}"));
        }
    });
    stand.until_state("one", "tracked", |_| {});
    stand.until(&format!("{TWO} WHERE id > 5"), "local");
    stand.until(ONE, "hit");
    stand.world.past("INSERT INTO one VALUES (99999, 'x')");
    assert_eq!(stand.ask(ONE).0, "99999");
}
