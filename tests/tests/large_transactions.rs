//! Transactions of some 100,000 rows are no concern of who reads other tables: what they get is right and comes in time, from here or
//! from upstream; and afterwards the large table is answered here, too.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle};

const SETUP: &str = "
    CREATE TABLE bulk (id int PRIMARY KEY, v bigint NOT NULL, note text); INSERT INTO bulk VALUES (0, 0, 'first');
    CREATE TABLE of_exact (id int PRIMARY KEY, v int); INSERT INTO of_exact SELECT n, 0 FROM generate_series(1, 20) n;
    CREATE TABLE of_session (id int PRIMARY KEY, v int); INSERT INTO of_session SELECT n, 0 FROM generate_series(1, 20) n";

const READS: &[&str] = &[
    "SELECT count(*), sum(v), min(id), max(id), count(note) FROM bulk",
    "SELECT id, v, note FROM bulk WHERE id % 9973 < 2 ORDER BY id",
];

/// Each a transaction of its own, or all in one.
const APART: &[&str] = &[
    "INSERT INTO bulk SELECT n, n, 'note ' || n FROM generate_series(1, 300000) n",
    "UPDATE bulk SET v = v + 1",
    "DELETE FROM bulk WHERE id % 2 = 0",
];
const TOGETHER: &[&str] =
    &["BEGIN; INSERT INTO bulk SELECT n, n, 'note ' || n FROM generate_series(1, 300000) n; UPDATE bulk SET v = v + 1;
     DELETE FROM bulk WHERE id % 2 = 0; COMMIT"];

const BUDGET: Duration = Duration::from_millis(500);
/// Beyond the budget: two processors may have PostgreSQL, its walsender and an unoptimised freshet to run.
const MARGIN: Duration = Duration::from_secs(5);
/// An unoptimised freshet takes its time for all the rows.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(180);

/// Tells the readers that it is over, also where a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[derive(Debug, Default)]
struct Seen {
    reads: usize,
    /// Answered here.
    here: usize,
    longest: Duration,
}

/// Changes a table and reads it, again and again: past freshet in mode exact, through it in mode session.
fn read(mode: FreshnessMode, mut through: RawClient, mut direct: RawClient, over: &AtomicBool) -> Seen {
    let name = mode.name();
    let sql = format!("SELECT id, v FROM of_{name} ORDER BY id");
    assert_eq!(through.simple(&format!("SET freshet.freshness = '{name}'")).expect("answers").error(), None);
    settle(&mut through, &sql);
    let mut seen = Seen::default();
    for value in (1_u32..).take_while(|_| !over.load(SeqCst)) {
        let writer = if mode == FreshnessMode::Session { &mut through } else { &mut direct };
        let write = format!("UPDATE of_{name} SET v = {value}");
        assert_eq!(writer.simple(&write).expect("answers").error(), None, "{write}");
        let expected = direct.simple(&sql).expect("answers");
        let asked = Instant::now();
        let reply = through.simple(&sql).expect("answers");
        let took = asked.elapsed();
        let last = through.last().expect("answers");
        assert_eq!(reply, expected, "{name}, {value}: {last:?}");
        assert!(took < BUDGET + MARGIN, "{name}, {value}: {took:?}, {last:?}");
        seen.reads += 1;
        seen.here += usize::from(last.0 != "relay");
        seen.longest = seen.longest.max(took);
    }
    settle(&mut through, &sql);
    seen
}

/// Until the large table is answered here; each answer is upstream's.
fn wait_until_followed(both: &mut Both) {
    let limit = Instant::now() + FOLLOWED_WITHIN;
    for sql in READS {
        while let Some(reason) = both.compare("all changes", sql) {
            assert!(Instant::now() < limit, "{sql}: {reason}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn change_beside_readers(changes: &[&str]) -> [Seen; 2] {
    let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| {
        settings.freshness.wait_budget_ms = BUDGET.as_millis() as u64;
    });
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, READS);
    both.settle("the start", |_| false);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = Over(&over);
        let readers = [FreshnessMode::Exact, FreshnessMode::Session].map(|mode| {
            let (through, direct, over) = (world.client(), world.direct(), &over);
            scope.spawn(move || read(mode, through, direct, over))
        });
        for change in changes {
            assert_eq!(both.direct.simple(change).expect("answers").error(), None, "{change}");
            both.compare_all(change);
        }
        wait_until_followed(&mut both);
        drop(ends);
        readers.map(|reader| reader.join().expect("no panic"))
    })
}

#[test]
fn who_reads_other_tables_is_answered_rightly_and_in_time() {
    // One after the other: each has both processors for itself.
    for changes in [APART, TOGETHER] {
        let seen = change_beside_readers(changes);
        println!("{} statements: {seen:?}", changes.len());
        assert!(seen.iter().all(|seen| seen.here > 0), "{seen:?}");
    }
}
