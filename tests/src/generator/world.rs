//! One world: tables and rows in a database of its own, a freshet before it, sessions of five settings, and statements.

use std::sync::Mutex;

use super::check::{Asked, Bound, MODES, Mode, Pair, SETTINGS, Verdict};
use super::dice::Dice;
use super::grammar::{Choice, Grammar, Statement};
use super::mutate::{may_choose, mutated};
use super::schema::{Table, random_tables};
use super::script::{Script, execute, tables_of};
use super::sentence::{Constants, Kind, Sentence};
use super::shrink::{shrink_statement, shrink_tables};
use super::values::enum_setup;
use super::{Options, Report};
use crate::cluster::Cluster;
use crate::freshet::Freshet;

/// Options of CREATE DATABASE: bytewise, and by ICU.
const DATABASES: [&str; 3] = ["", "", "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"];
/// Every so many statements rows change.
const CHANGE_EVERY: usize = 25;

/// The shapes that are mutated, and their tables.
const SHAPES: [&str; 2] = [include_str!("../../sql/templates.sql"), include_str!("../../sql/queries.sql")];
const SHAPES_SETUP: &str = include_str!("../../sql/queries.setup.sql");

struct World<'w> {
    cluster: &'w Cluster,
    number: u64,
    seed: u64,
    tables: Vec<Table>,
    database: &'static str,
    /// What made the rows what they are now.
    setup: Vec<String>,
}

pub(super) fn run(
    cluster: &Cluster,
    options: &Options,
    number: u64,
    report: &Mutex<Report>,
    is_over: &dyn Fn() -> bool,
) {
    let mut dice = Dice::new(options.seed.wrapping_mul(1_000_003).wrapping_add(number));
    let database = *dice.pick(&DATABASES);
    // Every fifth world is one of mutated shapes.
    let tables = if number % 5 == 4 { Vec::new() } else { random_tables(&mut dice) };
    let setup = match tables.is_empty() {
        true => statements(SHAPES_SETUP),
        false => std::iter::once(enum_setup()).chain(tables.iter().flat_map(Table::setup)).collect(),
    };
    let mut world = World { cluster, number, seed: options.seed, tables, database, setup };
    let name = cluster.database_with(database);
    execute(cluster, &name, &world.setup);
    let freshet = Freshet::start(&cluster.url(&name), |_| {});
    freshet.read_until_mirrored(&name, &tables_of(&world.setup));
    let direct = cluster.address();
    let mut pairs: Vec<Pair> = SETTINGS.iter().map(|set| Pair::new(direct, freshet.address(), &name, set)).collect();
    for count in 0..options.statements {
        if is_over() {
            break;
        }
        if count % CHANGE_EVERY == CHANGE_EVERY - 1 {
            world.change(&mut dice, &name);
        }
        world.ask(&mut dice, &mut pairs, report);
    }
    drop((pairs, freshet));
    cluster.drop_database(&name);
    report.lock().expect("no thread panicked").worlds += 1;
}

/// Statements of a script, comments left out.
fn statements(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    let whole = lines.join("\n");
    whole
        .split(";\n")
        .map(|sql| sql.trim().trim_end_matches(';').replace('\n', " "))
        .filter(|sql| !sql.is_empty())
        .collect()
}

impl World<'_> {
    /// Changes rows while they are mirrored.
    fn change(&mut self, dice: &mut Dice, database: &str) {
        if self.tables.is_empty() {
            return;
        }
        let at = dice.roll(self.tables.len());
        let sql = self.tables[at].change(dice);
        // A value that a type's length does not take, an id that is too large...: then nothing changes.
        let wrapped = format!("DO $do$ BEGIN {sql}; EXCEPTION WHEN OTHERS THEN NULL; END $do$");
        execute(self.cluster, database, std::slice::from_ref(&wrapped));
        self.setup.push(wrapped);
    }

    fn ask(&self, dice: &mut Dice, pairs: &mut [Pair], report: &Mutex<Report>) {
        let settings = dice.roll(SETTINGS.len());
        let mode = *dice.pick(&MODES);
        let (kind, statement) = self.statement(dice);
        let asked = asked(&statement, mode);
        let verdict = pairs[settings].verdict(&asked);
        let failure = matches!(verdict, Verdict::Differs(_)).then(|| {
            let pair = &mut pairs[settings];
            let (smaller, verdict) = shrink_statement(pair, &statement, mode, &verdict);
            self.saved(&smaller, mode, settings, &verdict)
        });
        let mut report = report.lock().expect("no thread panicked");
        let share = report.shares.entry(kind).or_default();
        share.asked += 1;
        match verdict {
            Verdict::Local => share.local += 1,
            Verdict::Refused => share.refused += 1,
            Verdict::Skipped => share.skipped += 1,
            Verdict::Free => {
                share.free += 1;
                report.free.push(asked.sql);
            }
            Verdict::Relayed(reason) => report.reasons.entry(reason).or_insert_with(|| (0, asked.sql)).0 += 1,
            Verdict::Differs(_) => {}
        }
        report.failures.extend(failure);
    }

    fn statement(&self, dice: &mut Dice) -> (&'static str, Statement) {
        if !self.tables.is_empty() {
            let seed = dice.roll(usize::MAX) as u64;
            let statement = Grammar::new(Dice::new(seed), &self.tables).statement();
            let is_bound = statement.free.is_empty() && statement.choice == Choice::Nothing;
            return (if is_bound { "generated" } else { "tied" }, statement);
        }
        let shapes: Vec<String> = SHAPES.into_iter().flat_map(statements).collect();
        let shape = dice.pick(&shapes).clone();
        let sql = mutated(dice, &shape);
        let choice = if may_choose(&sql) { Choice::Rows } else { Choice::Nothing };
        ("mutated", Statement { choice, ..Statement::new(Sentence::text(Kind::Query, sql)) })
    }

    /// The smallest script that still fails, saved.
    fn saved(
        &self,
        statement: &Statement,
        mode: Mode,
        settings: usize,
        verdict: &Verdict,
    ) -> (std::path::PathBuf, String) {
        let script = Script {
            head: String::new(),
            database: self.database.to_owned(),
            setup: self.setup.clone(),
            settings: SETTINGS[settings].iter().map(|setting| (*setting).to_owned()).collect(),
            asked: asked(statement, mode),
        };
        let (mut script, verdict) = shrink_tables(self.cluster, script, &self.tables, verdict);
        let how = match &verdict {
            Verdict::Differs(how) => how.clone(),
            other => format!("not seen again: {other:?}"),
        };
        script.head = format!("Found by the generator, seed {}, world {}: {how}", self.seed, self.number);
        let text = script.text();
        (script.save(), text)
    }
}

pub(super) fn asked(statement: &Statement, mode: Mode) -> Asked {
    let (sql, parameters) = statement.sentence().written(mode.constants);
    let order = statement.order.iter().map(|(at, _)| *at).collect();
    let bound = Bound { order, free: statement.free.clone(), choice: statement.choice };
    // Written out, whatever a script says.
    let mode = Mode { constants: Constants::Written, ..mode };
    Asked { sql, parameters, mode, bound }
}
