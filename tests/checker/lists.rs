//! Lists that grow and are cut, and bulk transactions: what is inserted and deleted, whole or not at all.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use crate::client::{Client, Read, Trouble};
use crate::ledger::{ABORTED, locked};
use crate::random::Random;
use crate::world::{FIRST_LIST_THROUGH, Kind, World, pause};

/// A longer list is cut to half.
const ITEMS_MAX: usize = 120;

/// Appends to one list until the end.
pub(crate) fn append(world: &World, list: usize) {
    let setup = ["SET lock_timeout = '3s'"];
    let mut client = if list >= FIRST_LIST_THROUGH { world.through(&setup) } else { world.past(&setup) };
    let mut random = world.random(300 + list as u64);
    let mut next = 1;
    while world.goes_on() {
        let gate = world.write_gate(list >= FIRST_LIST_THROUGH);
        match step(world, &mut client, &mut random, list, &mut next) {
            Ok(()) => world.count("list steps"),
            Err(Trouble::Lost) => world.count("writes lost"),
            Err(Trouble::Refused { state, message }) => {
                world.count(&format!("writes refused {state}"));
                world.note(&format!("list {list}: {state} {message}"));
                client.hang_up();
            }
        }
        drop(gate);
        pause(&mut random, 20);
    }
}

/// The next number to commit.
fn number(next: &mut i64) -> i64 {
    *next += 1;
    if *next % 10 == ABORTED {
        *next += 1;
    }
    *next
}

/// A number that must not be seen.
fn aborted_after(next: i64) -> i64 {
    (next / 10 + 1) * 10 + ABORTED
}

fn step(world: &World, client: &mut Client, random: &mut Random, list: usize, next: &mut i64) -> Result<(), Trouble> {
    let insert = |n: i64| format!("INSERT INTO entries VALUES ({list}, {n}, repeat('x', {}))", n % 40);
    let mut appended = Vec::new();
    match random.below(6) {
        0 => {
            *next = aborted_after(*next);
            client.run(&format!("BEGIN; {}", insert(*next)))?;
            client.run("ROLLBACK")?;
        }
        1 => {
            let aborted = aborted_after(*next);
            *next = aborted;
            appended = vec![number(next), number(next)];
            client.run(&format!("BEGIN; {}; SAVEPOINT s; {}", insert(appended[0]), insert(aborted)))?;
            client.run(&format!("ROLLBACK TO s; {}", insert(appended[1])))?;
            client.run("COMMIT")?;
        }
        2 => {
            appended = (0..random.below(30) + 1).map(|_| number(next)).collect();
            let values: Vec<String> = appended.iter().map(|n| format!("({list}, {n}, 'several')")).collect();
            client.run(&format!("INSERT INTO entries VALUES {}", values.join(", ")))?;
        }
        3 => {
            let n = number(next);
            client.run(&insert(n))?;
            // The key changes: the row moves from one number to the next.
            let moved = number(next);
            appended = vec![moved];
            client.run(&format!("UPDATE entries SET n = {moved} WHERE list = {list} AND n = {n}"))?;
        }
        _ => {
            appended = vec![number(next)];
            client.run(&insert(*next))?;
        }
    }
    let cut = {
        let mut acknowledged = locked(&world.lists[list].acknowledged);
        acknowledged.items.extend(appended);
        let middle = acknowledged.items.iter().nth(ITEMS_MAX / 2).copied();
        middle.filter(|_| acknowledged.items.len() > ITEMS_MAX)
    };
    if let Some(cut) = cut {
        world.lists[list].deleting.store(cut, SeqCst);
        client.run(&format!("DELETE FROM entries WHERE list = {list} AND n <= {cut}"))?;
        let mut acknowledged = locked(&world.lists[list].acknowledged);
        acknowledged.items.retain(|n| *n > cut);
        acknowledged.deleted = cut;
        world.count("list cuts");
    }
    Ok(())
}

/// What must be in a list and what must not, when a read begins.
pub(crate) struct Known {
    at: Instant,
    items: Vec<i64>,
    deleted: i64,
}

impl Known {
    pub(crate) fn of(world: &World, list: usize) -> Self {
        let acknowledged = locked(&world.lists[list].acknowledged);
        Self { at: Instant::now(), items: acknowledged.items.iter().copied().collect(), deleted: acknowledged.deleted }
    }
}

/// Checks one reading of a list (its numbers, ascending) that began when `known` was known.
pub(crate) fn check(world: &World, list: usize, known: &Known, read: &Read) {
    let Some(rows) = read.numbers() else {
        return world.violated(Kind::Wrong, format!("list {list}: {:?}", read.reply));
    };
    let found: Vec<i64> = rows.into_iter().flatten().collect();
    if let Some(n) = found.iter().find(|n| **n % 10 == ABORTED) {
        world.violated(Kind::Wrong, format!("list {list} has {n}, which was rolled back"));
    }
    let deleting = world.lists[list].deleting.load(SeqCst);
    let newest = found.last().copied().unwrap_or_default();
    let is_bound = world.mode.is_exact() || list >= FIRST_LIST_THROUGH || !read.is_local();
    let is_current = is_bound && !world.hazards.excuse_acknowledged(known.at);
    let must = |n: &&i64| **n > deleting && (is_current || **n < newest);
    if let Some(n) = known.items.iter().filter(must).find(|n| found.binary_search(n).is_err()) {
        let kind = if *n < newest { Kind::Wrong } else { Kind::Stale };
        let tail = &found[found.len().saturating_sub(5)..];
        world.violated(kind, format!("list {list} lacks {n}, acknowledged; it ends {tail:?} ({:?})", read.route));
    }
    if let Some(n) = found.iter().find(|n| is_current && **n <= known.deleted) {
        let text = format!("list {list} has {n}, deleted with all up to {} ({:?})", known.deleted, read.route);
        world.violated(Kind::Stale, text);
    }
}

pub(crate) const BULK_ROWS: i64 = 4_000;

/// Inserts and deletes whole batches until the end, sometimes with TRUNCATE.
pub(crate) fn bulk(world: &World) {
    let mut client = world.past(&["SET lock_timeout = '3s'"]);
    let mut random = world.random(400);
    let mut batch = 0_i64;
    while world.goes_on() {
        let gate = world.write_gate(false);
        batch += 1;
        let half = BULK_ROWS / 2;
        let insert = |from: i64, to: i64| {
            format!("INSERT INTO bulk SELECT {batch}, n, repeat('b', 40) FROM generate_series({from}, {to}) n")
        };
        let both = format!("{}; SAVEPOINT s; {}", insert(1, half), insert(half + 1, BULK_ROWS));
        let sql = match random.below(4) {
            0 => format!("BEGIN; TRUNCATE bulk; {both}; COMMIT"),
            1 => format!("BEGIN; {both}; ROLLBACK"),
            _ => format!("BEGIN; DELETE FROM bulk WHERE batch < {batch} - 2; {both}; COMMIT"),
        };
        match client.run(&sql) {
            Ok(_) => world.count("bulk transactions"),
            Err(_) => client.hang_up(),
        }
        drop(gate);
        std::thread::sleep(std::time::Duration::from_millis(300));
        pause(&mut random, 1_500);
    }
}

/// Every batch is whole.
pub(crate) fn check_bulk(world: &World, read: &Read) {
    let expected = BULK_ROWS * (BULK_ROWS + 1) / 2;
    let is_whole = |row: &Vec<i64>| row[1] == BULK_ROWS && row[2] == expected;
    match read.numbers() {
        Some(rows) if rows.iter().all(is_whole) => {}
        rows => world.violated(Kind::Wrong, format!("bulk: {rows:?} {:?}", read.reply.error())),
    }
}
