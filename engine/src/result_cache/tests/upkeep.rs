//! Groups kept up with changes: through random histories they give what all rows give, and only where they can.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::super::*;
use super::survival::{Dice, HIGH, LOW, Row, T, U, World, row, rows_of};
use crate::catalog::functions::EvalContext;
use crate::executor::Limits;
use crate::types::{FormatSettings, Value};
use crate::{Engine, EngineOptions, Prepared};

/// Each with whether its groups can be kept up with changes of t (or of `whole`).
const STATEMENTS: [(&str, bool); 24] = [
    ("SELECT tenant, count(*), sum(n), avg(n), min(n), max(day) FROM t GROUP BY tenant", true),
    ("SELECT count(*), sum(amount), avg(amount), min(day) FROM t WHERE n < $1", true),
    ("SELECT count(*), sum(n), max(n) FROM t WHERE n = 99", true),
    ("SELECT name, sum(amount * n) FROM t GROUP BY name HAVING count(*) > 30 ORDER BY 2 DESC, 1", true),
    ("SELECT count(*) FILTER (WHERE n > $1), sum(n) FILTER (WHERE tenant = 2), count(tenant) FROM t", true),
    ("SELECT u.name, count(*), sum(t.amount) FROM t JOIN u ON u.id = t.tenant GROUP BY u.name", true),
    ("SELECT u.name, count(u.id), count(*) FROM t LEFT JOIN u ON u.id = t.tenant AND u.n > 3 GROUP BY 1", true),
    ("SELECT day, count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.tenant) GROUP BY day", true),
    ("SELECT name, count(*) FROM t WHERE tenant NOT IN (SELECT id FROM u WHERE n > 4) GROUP BY name", true),
    ("SELECT DISTINCT name, tenant FROM t", true),
    ("SELECT amount, count(*) FROM t GROUP BY amount", true),
    ("SELECT tenant, sum(n), max(n) FROM whole GROUP BY tenant", true),
    ("SELECT count(*) FROM whole WHERE n > 3", true),
    ("SELECT a.name, a.c, u.n FROM (SELECT name, count(*) c FROM t GROUP BY name) a JOIN u ON u.id = a.c % 20", true),
    ("SELECT tenant, sum(n) * 100.0 / (SELECT count(*) FROM u) FROM t GROUP BY tenant", true),
    (
        "WITH w AS (SELECT tenant, count(*) c FROM t GROUP BY tenant) SELECT a.tenant, b.c FROM w a JOIN w b USING (c)",
        true,
    ),
    ("SELECT tenant, sum(n) FROM t WHERE n > (SELECT min(n) FROM u) GROUP BY tenant", false),
    ("SELECT tenant, count(DISTINCT n) FROM t GROUP BY tenant", false),
    ("SELECT tenant, sum(n::float8) FROM t GROUP BY tenant", false),
    ("SELECT sum(CASE WHEN n > 3 THEN amount ELSE 0 END) FROM t", false),
    ("SELECT max(name) FROM t", false),
    ("SELECT count(*) FROM t a JOIN t b ON a.n = b.id", false),
    ("SELECT count(*) FROM (SELECT n FROM t ORDER BY id LIMIT 50) a", false),
    ("SELECT count(*) FROM t FULL JOIN u ON u.id = t.tenant", false),
];

fn engine() -> Engine {
    Engine::new(EngineOptions {
        result_bytes_max: 0,
        reply_bytes_max: 0,
        join_bytes_max: 1 << 20,
        plan_bytes_max: 1 << 20,
        limits: Limits::default(),
    })
}

struct Reader {
    sql: &'static str,
    prepared: Arc<Prepared>,
    parameters: Vec<Value>,
    reply: CachedReply,
    done: HashMap<&'static str, usize>,
}

impl Reader {
    fn new(world: &World, sql: &'static str, dice: &mut Dice) -> Self {
        let prepared = Arc::new(world.prepare(sql));
        let parameters: Vec<Value> = prepared.plan.parameters.iter().map(|_| Value::Int4(dice.below(12))).collect();
        let reply = world.keep(&prepared, &parameters);
        Self { sql, prepared, parameters, reply, done: HashMap::new() }
    }

    /// Answers at the world's moment from the reply before it, and is right.
    fn read(&mut self, world: &World, engine: &Engine) -> Done {
        let Self { sql, prepared, parameters, reply, .. } = self;
        let snapshot = world.snapshot();
        let changes = |table, after, through| world.changes_between(table, after, through);
        let course = reply.course(&prepared.held_plan(), &snapshot, &changes);
        let settings = FormatSettings::default();
        let eval = EvalContext { settings: &settings, transaction_time: None, orders: None };
        let never = Arc::new(AtomicBool::new(false));
        let run = engine.run_course(crate::Pace::Full, &course, &prepared.plan, &snapshot, parameters, &eval, &never);
        let ((batches, groups, done), _) = run.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let answer = world.answer(prepared, parameters).expect("an answer");
        assert_eq!(rows_of(prepared, &batches), answer, "{sql} with {parameters:?}, {done:?}");
        if let Some(together) = world.answer_by_several(prepared, parameters).expect("an answer") {
            assert_eq!(together, answer, "{sql} with {parameters:?}, by several threads");
            *self.done.entry("by several").or_default() += 1;
        }
        let elapsed_us = if matches!(done, Done::Updated | Done::Checked) { 10 } else { 1_000 };
        let keep = Keep::after(&course, done, groups, &prepared.held_plan(), elapsed_us, reply.keep.rest);
        *reply = CachedReply { keep, ..world.keep(prepared, parameters) };
        let name = match done {
            Done::Anew => "anew",
            Done::Unable => "unable",
            Done::Kept => "kept",
            Done::Updated => "updated",
            Done::Checked => "checked",
            Done::Wrong => panic!("{sql} with {parameters:?}: the groups differ"),
        };
        *self.done.entry(name).or_default() += 1;
        done
    }
}

fn random_row(dice: &mut Dice, id: i32) -> Row {
    let tenant = Some(dice.below(6)).filter(|tenant| *tenant > 0);
    row(id, tenant, dice.below(10), ["a", "b", "c", "ab"][dice.below(4) as usize], dice.below(12))
}

fn filled(dice: &mut Dice) -> World {
    let mut world = World::new();
    for (table, rows) in [(T, 200), (U, 20), (LOW, 100), (HIGH, 100)] {
        let rows: Vec<Row> = (0..rows).map(|id| random_row(dice, id)).collect();
        world.change(table, &[], &rows);
    }
    world
}

/// Up to three rows of a table go, come or change.
fn change(world: &mut World, dice: &mut Dice) {
    let table = [T, T, T, T, U, LOW, HIGH][dice.below(7) as usize];
    let gone: BTreeSet<i32> = (0..dice.below(3)).map(|_| dice.below(20)).collect();
    let gone: Vec<i32> = gone.into_iter().collect();
    let mut come: Vec<i32> = gone.iter().copied().filter(|_| dice.below(3) > 0).collect();
    come.extend((0..24).find(|id| world.place(table, *id).is_none()).filter(|_| dice.below(2) == 0));
    let come: Vec<Row> = come.into_iter().map(|id| random_row(dice, id)).collect();
    world.change(table, &gone, &come);
}

/// What comes in one transaction and goes in the next is both gained and lost between two reads.
#[test]
fn an_extreme_that_came_and_went_is_not_the_extreme() {
    let sql = "SELECT tenant, count(*), max(n), min(n), count(n) FILTER (WHERE n > 90) FROM t GROUP BY tenant";
    let mut dice = Dice(7);
    let engine = engine();
    let of = |id: i32, n: i32| row(id, Some(if id < 97 { 1 } else { 2 }), 1, "a", n);
    for (top, course) in [
        // The same row anew, and away.
        (vec![(vec![99], vec![of(99, 99)]), (vec![99], vec![])], Done::Unable),
        // Another that is as great, and away with it.
        (vec![(vec![], vec![of(100, 99)]), (vec![99, 100], vec![])], Done::Unable),
        // A greater one comes and goes; then one that stays.
        (vec![(vec![], vec![of(100, 200)]), (vec![100], vec![]), (vec![99], vec![of(99, 150)])], Done::Unable),
        (vec![(vec![99], vec![of(99, 150)]), (vec![98], vec![])], Done::Updated),
        // In one transaction it is sure.
        (vec![(vec![99], vec![of(99, 99)])], Done::Updated),
        // All of a group, of which none is left.
        (vec![(vec![], vec![of(100, 99)]), (vec![97, 98, 99, 100], vec![])], Done::Updated),
    ] {
        let mut world = World::new();
        let rows: Vec<Row> = (0..100).map(|id| of(id, id)).collect();
        world.change(T, &[], &rows);
        let mut reader = Reader::new(&world, sql, &mut dice);
        world.change(T, &[5], &[of(5, 5)]);
        assert_eq!(reader.read(&world, &engine), Done::Kept);
        for (gone, come) in &top {
            world.change(T, gone, come);
        }
        assert_eq!(reader.read(&world, &engine), course, "{top:?}");
    }
}

#[test]
fn groups_kept_up_give_what_all_rows_give() {
    let mut dice = Dice(20_261_122);
    let mut totals: HashMap<(&str, &str), usize> = HashMap::new();
    for _ in 0..12 {
        let mut world = filled(&mut dice);
        let engine = engine();
        let mut readers: Vec<Reader> = STATEMENTS.iter().map(|(sql, _)| Reader::new(&world, sql, &mut dice)).collect();
        for _ in 0..40 {
            (0..=dice.below(3)).for_each(|_| change(&mut world, &mut dice));
            for reader in &mut readers {
                if dice.below(4) > 0 {
                    reader.read(&world, &engine);
                }
            }
        }
        for reader in readers {
            for (name, count) in reader.done {
                *totals.entry((reader.sql, name)).or_default() += count;
            }
        }
    }
    let count = |sql, name| totals.get(&(sql, name)).copied().unwrap_or(0);
    for (sql, is_kept) in STATEMENTS {
        let updated = count(sql, "updated");
        // Of the scalar subquery's own table there is something to keep.
        let is_tried = is_kept || sql.contains("FROM u)");
        assert!(updated > 30 || !is_kept, "{sql}: {totals:?}");
        assert!(is_tried || updated + count(sql, "kept") + count(sql, "unable") == 0, "{sql}: {totals:?}");
        // Those over the other table, too; rows of one value are found by an index instead.
        let is_shared = is_kept && !sql.contains("FROM whole") && !sql.contains("n = 99");
        assert!(count(sql, "by several") > 100 || !is_shared, "{sql}: {totals:?}");
    }
    assert!(totals.iter().any(|((_, name), count)| *name == "unable" && *count > 0), "{totals:?}");
}

#[test]
fn now_and_then_all_rows_are_asked_whether_the_groups_are_right() {
    let mut dice = Dice(3);
    let mut world = filled(&mut dice);
    let engine = engine();
    // One of the groups is that of NULL.
    let sql = "SELECT tenant, name, count(*), sum(amount) FROM t GROUP BY tenant, name";
    let mut reader = Reader::new(&world, sql, &mut dice);
    for _ in 0..200 {
        change(&mut world, &mut dice);
        reader.read(&world, &engine);
    }
    assert!(reader.done["checked"] >= 2 && reader.done["updated"] > 50, "{:?}", reader.done);
}

#[test]
fn the_last_row_of_a_group_takes_the_group_along() {
    let mut dice = Dice(1);
    let mut world = filled(&mut dice);
    let engine = engine();
    let mut reader = Reader::new(&world, "SELECT name, count(*), min(n) FROM t GROUP BY name", &mut dice);
    world.change(T, &[], &[row(1_000, None, 0, "new", 5)]);
    assert_eq!(reader.read(&world, &engine), Done::Kept);
    world.change(T, &[1_000], &[]);
    assert_eq!(reader.read(&world, &engine), Done::Updated, "its smallest value goes, too, but nobody asks for it");
    world.change(T, &[], &[row(1_000, None, 0, "new", 5), row(1_001, None, 0, "new", 6)]);
    assert_eq!(reader.read(&world, &engine), Done::Updated);
    world.change(T, &[1_000], &[]);
    assert_eq!(reader.read(&world, &engine), Done::Unable, "the next smallest value is not known");
    world.change(T, &[1_001], &[row(1_001, None, 0, "new", 6)]);
    assert_eq!(reader.read(&world, &engine), Done::Updated, "the smallest value goes and comes");
}

#[test]
fn nothing_is_kept_up_where_it_does_not_pay() {
    let mut dice = Dice(2);
    let mut world = filled(&mut dice);
    let engine = engine();
    let sql = "SELECT tenant, count(*) FROM t GROUP BY tenant";
    let mut quick = Reader::new(&world, sql, &mut dice);
    quick.reply = CachedReply { elapsed_us: 100, ..quick.reply };
    let mut reader = Reader::new(&world, sql, &mut dice);
    world.change(T, &[1], &[]);
    assert_eq!(quick.read(&world, &engine), Done::Anew, "it is quick without");
    assert_eq!(reader.read(&world, &engine), Done::Kept);
    let many: Vec<i32> = (20..60).collect();
    world.change(T, &many, &[]);
    assert_eq!(reader.read(&world, &engine), Done::Kept, "much has changed");
    world.change(U, &[1], &[]);
    world.change(T, &[2], &[]);
    assert_eq!(reader.read(&world, &engine), Done::Updated, "another table does not matter");
    // A dimension changes: what it is joined with has more rows.
    let mut joined =
        Reader::new(&world, "SELECT u.name, count(*) FROM t JOIN u ON u.id = t.tenant GROUP BY 1", &mut dice);
    world.change(U, &[2], &[]);
    assert_eq!(joined.read(&world, &engine), Done::Anew);
}
