//! The engine suite: freshet's engine against DuckDB, both in process, and against the machine's memory bandwidth.
//!
//! No sockets, no result cache: both engines have a prepared statement and hand out every column of every row in
//! columnar batches, of which each value is read. Rows are compared before anything is timed. Rounds are interleaved; a round repeats a statement
//! until it has lasted long enough to be measured.

mod cases;
mod encoding;
mod planning;
mod reader;

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use freshet_bench_duckdb::{Database, DuckDb, Statement};
use freshet_engine::catalog::functions::EvalContext;
use freshet_engine::executor::{Limits, RowBatch};
use freshet_engine::snapshot::Snapshot;
use freshet_engine::types::FormatSettings;
use freshet_engine::types::encode::{ColumnEncoder, Format};
use freshet_engine::{Engine, EngineOptions, PrepareContext, Prepared};

use crate::console::{print, say};
use crate::data;
use crate::engine::cases::{Case, Group};
use crate::parts;
use crate::process::processor_time;
use crate::reference;
use crate::results::{Better, Results};
use crate::rows::{Row, compare, sorted_by};
use crate::spread::{geometric_mean, median, paired, spread};
use crate::turns::turns;

pub(crate) struct Options {
    pub(crate) rounds: usize,
    /// Least duration of one round.
    pub(crate) round_ms: u64,
    /// Rows of the star's large tables, one group each.
    pub(crate) sizes: Vec<i64>,
    /// A case, a group (`small`, `50K`...) or both as `50K/large_sort`.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

const FRESHET: &str = "freshet";
const FRESHET_2: &str = "freshet, 2 threads";
const UNCACHED: &str = "freshet, joins not kept";
const DUCKDB_1: &str = "DuckDB, 1 thread";
const DUCKDB_2: &str = "DuckDB, 2 threads";
/// Rows up to which the engine's variants are compared with it: millions as text take longer than they are measured.
const COMPARED_MAX: usize = 200_000;
/// Enough for any of the statements: DuckDB has no such limit by default.
const MEMORY_MAX: usize = 8 << 30;

/// Runs the suite and prints its tables; an error if rows differ.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    let (duckdb, missing) = reference::load();
    let version = reference::version(duckdb.as_ref());
    let versions = [("freshet", env!("CARGO_PKG_VERSION").to_owned()), ("DuckDB", version)];
    let settings = [("rounds", options.rounds.to_string()), ("round", format!("at least {} ms", options.round_ms))];
    let mut results = Results::open(options.results.as_deref(), "engine", &versions, &settings)?;
    if let Some(reason) = missing {
        results.skip("DuckDB", &reason)?;
    }
    let sizes = options.sizes.iter().map(|rows| cases::of_star(*rows));
    let groups: Vec<Group> = std::iter::once(cases::small()).chain(sizes).collect();
    let names = groups.iter().flat_map(|group| {
        let of_case = |case: &Case| [case.name.to_owned(), format!("{}/{}", group.name, case.name)];
        group.cases.iter().flat_map(of_case).chain([group.name.clone()])
    });
    parts::check(options.only.as_deref(), names.chain([encoding::CASE.to_owned(), planning::CASE.to_owned()]))?;
    let bandwidth = bandwidth(options.rounds);
    if !results.is_done("memory bandwidth") {
        let metric = ("bandwidth", "GB/s", Better::Neither);
        results.figure("memory bandwidth", "one thread, a plain loop", metric, &bandwidth, "")?;
        results.end("memory bandwidth")?;
    }
    let bandwidth = median(bandwidth);
    say(&format!("memory bandwidth of a plain loop: {bandwidth:.1} GB/s"));
    let mut ranking = Vec::new();
    for group in &groups {
        one_group(options, group, duckdb.as_ref(), bandwidth, &mut results, &mut ranking)?;
    }
    print(&summary(&mut ranking));
    encoding::measure(options, &mut results)?;
    planning::measure(options, &mut results)
}

/// A case and how many times as fast as DuckDB freshet is, both on one thread and both on two.
type Ranked = (String, f64, f64);

fn one_group(
    options: &Options,
    group: &Group,
    duckdb: Option<&DuckDb>,
    bandwidth: f64,
    results: &mut Results,
    ranking: &mut Vec<Ranked>,
) -> io::Result<()> {
    let title = |case: &Case| format!("{}/{}", group.name, case.name);
    let is_wanted = |case: &Case| {
        options.only.as_ref().is_none_or(|only| *only == group.name || *only == case.name || *only == title(case))
    };
    let mut wanted = Vec::new();
    for case in group.cases.iter().filter(|case| is_wanted(case) && !results.is_done(&title(case))).collect::<Vec<_>>()
    {
        match case.skip {
            Some(reason) => results.skip(&title(case), reason)?,
            None => wanted.push(case),
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    say(&format!("{}: loading the tables", group.name));
    let freshet = Freshet::new(data::snapshot(&group.tables));
    let database = duckdb.map(|duckdb| duckdb.open(1)).transpose().map_err(io::Error::other)?;
    for table in &group.tables {
        if let Some(database) = &database {
            table.load_duckdb(database)?;
        }
    }
    print(&format!(
        "\n{}\n{:18} {:24} {:>10} {:>19} {:>22} {:>8} {:>6}\n",
        group.name, "statement", "engine", "ms", "min..max", "freshet is x times", "GB/s", "%"
    ));
    for case in wanted {
        say(&format!("{}: {}", group.name, case.name));
        let measured = measure(options, case, &freshet, database.as_ref())
            .map_err(|error| io::Error::other(format!("{}: {error}", title(case))))?;
        report(&title(case), group.size, &measured, bandwidth, results, ranking)?;
    }
    Ok(())
}

struct Measured {
    series: Vec<Series>,
    /// Of the columns that the statement mentions, for each of its tables.
    bytes_read: usize,
    rows: usize,
}

/// An engine that took part: milliseconds per execution, one value per round.
struct Series {
    system: &'static str,
    times: Vec<f64>,
    /// Of the processors, by all threads of this process.
    processor: Vec<f64>,
}

fn measure(options: &Options, case: &Case, freshet: &Freshet, database: Option<&Database>) -> io::Result<Measured> {
    let prepared = freshet.prepare(&case.sql)?;
    let statement = database.map(|database| database.prepare(&case.sql)).transpose().map_err(io::Error::other)?;
    let rows = freshet.rows(&prepared)?;
    if let Some(database) = database {
        let expected = database.rows(&case.sql).map_err(io::Error::other)?;
        let names: Vec<String> = prepared.plan.output.iter().map(|column| column.name.to_string()).collect();
        compare(&expected, &rows, case.same, &sorted_by(&case.sql, &names))
            .map_err(|difference| io::Error::other(format!("freshet's rows differ from DuckDB's: {difference}")))?;
    }
    if rows.len() <= COMPARED_MAX {
        for (system, engine) in [(FRESHET_2, &freshet.of_two_threads), (UNCACHED, &freshet.without_joins)] {
            compare(&rows, &freshet.rows_of(engine, &prepared)?, case.same, &[]).map_err(|difference| {
                io::Error::other(format!("{system}: other rows than on one thread: {difference}"))
            })?;
        }
    }
    let mut systems = vec![FRESHET, FRESHET_2, UNCACHED];
    if database.is_some() {
        systems.extend([DUCKDB_1, DUCKDB_2]);
    }
    let new = |system| Series { system, times: Vec::new(), processor: Vec::new() };
    let mut series: Vec<Series> = systems.into_iter().map(new).collect();
    let least = Duration::from_millis(options.round_ms);
    for round in 0..options.rounds {
        for at in turns(round, series.len()) {
            let Series { system, times, processor } = &mut series[at];
            if let Some(database) = database {
                database.set_threads(if *system == DUCKDB_2 { 2 } else { 1 }).map_err(io::Error::other)?;
            }
            let once = || execute(system, freshet, &prepared, statement.as_ref());
            // Caches and branches as they are while it runs again and again.
            if once()? != rows.len() {
                return Err(io::Error::other(format!("{system} returns another number of rows than before")));
            }
            let (before, began) = (processor_time(std::process::id()), Instant::now());
            let each_ms = repeat(least, once)?;
            let elapsed = began.elapsed().as_secs_f64();
            let used = processor_time(std::process::id()).saturating_sub(before);
            processor.push(each_ms * used.as_secs_f64() / elapsed);
            times.push(each_ms);
        }
    }
    Ok(Measured { series, bytes_read: freshet.bytes_read(&prepared), rows: rows.len() })
}

fn execute(
    system: &str,
    freshet: &Freshet,
    prepared: &Prepared,
    statement: Option<&Statement<'_>>,
) -> io::Result<usize> {
    match (system, statement) {
        (FRESHET, _) => Ok(reader::read(&freshet.run(&freshet.engine, prepared)?)),
        (FRESHET_2, _) => Ok(reader::read(&freshet.run(&freshet.of_two_threads, prepared)?)),
        (UNCACHED, _) => Ok(reader::read(&freshet.run(&freshet.without_joins, prepared)?)),
        (_, Some(statement)) => statement.run().map_err(io::Error::other),
        (_, None) => Err(io::Error::other("DuckDB takes no part")),
    }
}

/// Milliseconds of one execution: as often as fits into `least`, at least once.
fn repeat(least: Duration, mut once: impl FnMut() -> io::Result<usize>) -> io::Result<f64> {
    let began = Instant::now();
    let mut times = 0;
    while times == 0 || began.elapsed() < least {
        std::hint::black_box(once()?);
        times += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e3 / f64::from(times))
}

/// Seconds that one of the calls of `once` takes, round by round.
fn seconds_each(options: &Options, once: &mut dyn FnMut()) -> Vec<f64> {
    let least = Duration::from_millis(options.round_ms);
    let rounds = (0..options.rounds).map(|_| {
        let (began, mut times) = (Instant::now(), 0);
        while began.elapsed() < least {
            once();
            times += 1;
        }
        began.elapsed().as_secs_f64() / f64::from(times)
    });
    rounds.collect()
}

/// The engine with tables loaded, one that may use two threads, and one that keeps no build sides of joins from one
/// execution to the next.
struct Freshet {
    engine: Engine,
    of_two_threads: Engine,
    without_joins: Engine,
    snapshot: Snapshot,
    search_path: [Arc<str>; 2],
    settings: FormatSettings,
}

impl Freshet {
    fn new(snapshot: Snapshot) -> Self {
        let options = |join_bytes_max, threads_max| EngineOptions {
            result_bytes_max: 0,
            reply_bytes_max: 0,
            join_bytes_max,
            plan_bytes_max: 64 << 20,
            limits: Limits { memory_bytes_max: MEMORY_MAX, threads_max, ..Limits::default() },
        };
        Self {
            engine: Engine::new(options(256 << 20, 1)),
            of_two_threads: Engine::new(options(256 << 20, 2)),
            without_joins: Engine::new(options(0, 1)),
            snapshot,
            search_path: ["pg_catalog".into(), "public".into()],
            settings: FormatSettings::default(),
        }
    }

    fn context(&self) -> PrepareContext<'_> {
        PrepareContext {
            catalog: &self.snapshot.catalog,
            settings_id: 0,
            search_path: &self.search_path,
            settings: &self.settings,
            parameter_types: &[],
        }
    }

    fn prepare(&self, sql: &str) -> io::Result<Arc<Prepared>> {
        let refused = |reason| io::Error::other(format!("freshet's engine refuses it: {reason:?}"));
        self.engine.prepare(sql, &self.context()).map_err(refused)
    }

    fn run(&self, engine: &Engine, prepared: &Prepared) -> io::Result<Vec<RowBatch>> {
        let eval = EvalContext { settings: &self.settings, transaction_time: None, orders: None };
        engine
            .run(&prepared.plan, &self.snapshot, &[], &eval, &Arc::new(AtomicBool::new(false)))
            .map_err(io::Error::other)
    }

    /// As text, as a client would get them.
    fn rows(&self, prepared: &Prepared) -> io::Result<Vec<Row>> {
        self.rows_of(&self.engine, prepared)
    }

    fn rows_of(&self, engine: &Engine, prepared: &Prepared) -> io::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for batch in self.run(engine, prepared)? {
            let columns = batch.columns.iter().zip(&prepared.plan.output);
            let mut encoders: Vec<_> = columns
                .map(|(array, column)| {
                    ColumnEncoder::new(array, column.expr_type.pg_type, Format::Text, &self.settings)
                })
                .collect();
            let mut bytes = Vec::new();
            for row in 0..batch.rows {
                let cells = encoders.iter_mut().map(|encoder| {
                    bytes.clear();
                    encoder.write(row, &mut bytes);
                    // A length of -1 and nothing behind it: NULL.
                    let is_null = bytes.starts_with(&[0xff; 4]);
                    (!is_null).then(|| String::from_utf8_lossy(&bytes[4..]).into_owned())
                });
                rows.push(cells.collect());
            }
        }
        Ok(rows)
    }

    fn bytes_read(&self, prepared: &Prepared) -> usize {
        let of_table = |table: &freshet_engine::binder::TableUse| {
            let chunks = self.snapshot.tables.get(&table.table).map_or(&[][..], |version| &version.chunks);
            let columns = chunks.iter().flat_map(|chunk| table.columns.iter().map(|at| &chunk.chunk.columns[*at]));
            columns.map(|column| column.get_array_memory_size()).sum::<usize>()
        };
        prepared.plan.tables.iter().map(of_table).sum()
    }
}

fn report(
    case: &str,
    size: Option<i64>,
    measured: &Measured,
    bandwidth: f64,
    results: &mut Results,
    ranking: &mut Vec<Ranked>,
) -> io::Result<()> {
    let times = |system: &str| measured.series.iter().find(|one| one.system == system).map(|one| one.times.as_slice());
    let freshet = times(FRESHET).unwrap_or_default();
    let mut text = String::new();
    for Series { system, times, processor } in &measured.series {
        let all = spread(times.iter().copied());
        let rate = measured.bytes_read as f64 / 1e6 / all.median;
        let ratio = paired(times, freshet);
        let _ = writeln!(
            text,
            "{:18} {system:24} {:>10.3} {:>19} {:>22} {rate:>8.2} {:>6.1}",
            if *system == FRESHET { case.rsplit('/').next().unwrap_or(case) } else { "" },
            all.median,
            format!("{:.3}..{:.3}", all.min, all.max),
            if *system == FRESHET {
                String::new()
            } else {
                format!("{:.2} ({:.2}..{:.2})", ratio.median, ratio.min, ratio.max)
            },
            100.0 * rate / bandwidth,
        );
        let note = format!("{} rows, {} bytes of columns read", measured.rows, measured.bytes_read);
        let at = size.map(|rows| ("rows", rows as f64));
        results.figure_at(case, system, ("time", "ms", Better::Less), times, &note, at)?;
        results.figure(case, system, ("processor time", "ms", Better::Neither), processor, "of all threads")?;
        let share: Vec<f64> =
            times.iter().map(|ms| 100.0 * measured.bytes_read as f64 / 1e6 / ms / bandwidth).collect();
        let of_memory = ("share of memory bandwidth", "%", Better::Neither);
        results.figure(case, system, of_memory, &share, "bytes of the columns mentioned over the time")?;
    }
    results.end(case)?;
    print(&text);
    if let (Some(one), Some(two)) = (times(DUCKDB_1), times(DUCKDB_2)) {
        let of_two = times(FRESHET_2).unwrap_or_default();
        ranking.push((case.to_owned(), paired(one, freshet).median, paired(two, of_two).median));
    }
    Ok(())
}

/// Slowest first, and the means that the design asks for.
fn summary(ranking: &mut [Ranked]) -> String {
    if ranking.is_empty() {
        return String::new();
    }
    ranking.sort_by(|a, b| a.1.min(a.2).total_cmp(&b.1.min(b.2)));
    let mut text = format!("\n{:28} {:>18} {:>18}\n", "freshet is x times as fast as", DUCKDB_1, DUCKDB_2);
    for (case, one, two) in ranking.iter() {
        let _ =
            writeln!(text, "{case:28} {one:>18.2} {two:>18.2}{}", if one.min(*two) < 1.0 { "  below 1" } else { "" });
    }
    let means = |of: fn(&Ranked) -> f64| geometric_mean(&ranking.iter().map(of).collect::<Vec<_>>());
    let _ = writeln!(text, "{:28} {:>18.2} {:>18.2}", "geometric mean", means(|r| r.1), means(|r| r.2));
    text
}

/// GB/s of one thread that adds up numbers far larger than the caches, one value per round.
fn bandwidth(rounds: usize) -> Vec<f64> {
    let words = vec![1_u64; (256 << 20) / 8];
    let once = || {
        let began = Instant::now();
        let sum = std::hint::black_box(&words).iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
        std::hint::black_box(sum);
        (words.len() * 8) as f64 / 1e9 / began.elapsed().as_secs_f64()
    };
    once();
    (0..rounds).map(|_| once()).collect()
}
