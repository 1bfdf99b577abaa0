//! The freshness checker: many clients, some through freshet and some past it, while things break; what each of them reads
//! is held against what must be so. `README.md` says what is checked and what it found.
//!
//! `freshet-checker [--mode exact|session|standby|failover] [--seconds N] [--seed N] [--nemeses all|none|A,B] [--readers N] [--bug NAME]
//! [--event-trigger] [--verbose]`
//! With `--bug` a planted mistake has to be found (needs the feature `planted-bugs`): the run ends at the first finding.

mod client;
mod ddl;
mod failover;
mod fault;
mod ledger;
mod lists;
mod nemesis;
mod random;
mod readers;
mod report;
mod sales;
mod serve;
mod skew;
mod standby;
mod world;
mod writers;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use freshet_tests::cluster::{Cluster, free_port};

use crate::fault::FaultProxy;
use crate::ledger::{REGISTERS, locked};
use crate::nemesis::Nemesis;
use crate::serve::{Served, Serving};
use crate::world::{Kind, LISTS, Mode, StopAtEnd, World};

/// How long freshet has to answer here again once nothing breaks any more.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// In a run that is longer, all that happens seldom has happened.
const OFTEN_ENOUGH: Duration = Duration::from_secs(120);

/// One in so many seeds has freshet's event trigger.
const EVENT_TRIGGER_ONE_IN: u64 = 3;

struct Options {
    mode: Mode,
    /// The scenario of [`failover`], which has clients of its own.
    is_failover: bool,
    seconds: u64,
    seed: u64,
    nemeses: Vec<&'static str>,
    readers: u64,
    calm_ms: u64,
    bug: Option<String>,
    /// By the seed, unless it is asked for.
    has_event_trigger: bool,
    is_verbose: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == "serve" => serve::run(rest).map(|()| true),
        _ => parse(&arguments).and_then(|options| match options.is_failover {
            true => failover::check(&options),
            false => check(&options),
        }),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report::say(&format!("freshet-checker: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options {
        mode: Mode::Exact,
        is_failover: false,
        seconds: 30,
        seed: 1,
        nemeses: Vec::new(),
        readers: 4,
        calm_ms: 2_500,
        bug: None,
        has_event_trigger: false,
        is_verbose: false,
    };
    let mut list = "all";
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
        let number = |text: &String| text.parse::<u64>().map_err(|_| format!("{name}: not a number: {text}"));
        match name.as_str() {
            "--mode" => {
                options.mode = match value()?.as_str() {
                    "exact" => Mode::Exact,
                    "failover" => {
                        options.is_failover = true;
                        Mode::Exact
                    }
                    "session" => Mode::Session,
                    "standby" => Mode::Standby,
                    other => return Err(format!("no mode {other}")),
                }
            }
            "--seconds" => options.seconds = number(value()?)?,
            "--seed" => options.seed = number(value()?)?,
            "--readers" => options.readers = number(value()?)?,
            "--calm-ms" => options.calm_ms = number(value()?)?.max(1),
            "--nemeses" => list = value()?,
            "--bug" => options.bug = Some(value()?.clone()),
            "--event-trigger" => options.has_event_trigger = true,
            "--verbose" => options.is_verbose = true,
            other => return Err(format!("no option {other}")),
        }
    }
    options.has_event_trigger |= options.seed.is_multiple_of(EVENT_TRIGGER_ONE_IN);
    options.nemeses = nemeses(list, options.mode)?;
    Ok(options)
}

fn nemeses(list: &str, mode: Mode) -> Result<Vec<&'static str>, String> {
    let of_standby = if mode == Mode::Standby { nemesis::STANDBY_NAMES } else { &[] };
    let all = || nemesis::NAMES.iter().chain(of_standby);
    match list {
        "all" => return Ok(all().copied().collect()),
        "none" => return Ok(Vec::new()),
        _ => {}
    }
    let known = |name: &str| all().find(|known| **known == name).copied();
    list.split(',').map(|name| known(name).ok_or_else(|| format!("no nemesis {name}"))).collect()
}

/// True: nothing was found, or what was planted was.
fn check(options: &Options) -> Result<bool, String> {
    let cluster = Cluster::start(&[
        "max_prepared_transactions=50",
        "logical_decoding_work_mem=64kB",
        "wal_writer_delay=50ms",
        "wal_sender_timeout=10s",
    ]);
    let database = cluster.database();
    cluster.psql(&database, &schema(options.readers));
    let direct = SocketAddr::from(([127, 0, 0, 1], cluster.port()));
    let faults = FaultProxy::start(direct).map_err(|error| error.to_string())?;
    let port = free_port();
    let serving = Serving {
        mode: options.mode,
        upstream_port: faults.port,
        database: database.clone(),
        bug: options.bug.clone(),
        has_event_trigger: options.has_event_trigger,
    };
    let freshet = Served::start(&serving, port).map_err(|error| error.to_string())?;
    let mut world =
        World::new(options.mode, options.seed, direct, SocketAddr::from(([127, 0, 0, 1], port)), database.clone());
    world.stop_at_first = options.bug.is_some();
    world.is_verbose = options.is_verbose;
    world.has_event_trigger = options.has_event_trigger;
    serve::wait_until_mirrored(&world, 120).ok_or("the tables were not mirrored within two minutes")?;
    if options.mode == Mode::Standby {
        // From here on every commit waits for freshet.
        cluster.psql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (freshet)'");
        cluster.reload();
    }
    let mut nemesis = Nemesis {
        world: &world,
        cluster: &cluster,
        faults: &faults,
        freshet: Some(freshet),
        serving,
        names: options.nemeses.clone(),
        calm_ms: options.calm_ms,
    };
    run(&world, options, &mut nemesis);
    let version = cluster.psql("postgres", "SHOW server_version");
    report::print(&world, &format!("PostgreSQL {version}"));
    let found = !locked(&world.found).is_empty();
    Ok(found == options.bug.is_some() && (found || is_meaningful(&world)))
}

/// A run that answered little here has checked little.
fn is_meaningful(world: &World) -> bool {
    let local = world.counter("reads local") + world.counter("reads hit");
    // In mode standby most of the time has to be one in which reads need no round trip.
    let (waited_for, all) = (world.counter("looks synchronous"), world.counter("looks"));
    let is_standby = world.mode != Mode::Standby || waited_for * 5 > all;
    let enough = local * 10 > world.counter("reads") && world.counter("comparisons local") > 0 && is_standby;
    if !enough {
        report::say("too little was answered here to say anything");
    }
    let mut ways = vec!["replies that survived", "replies computed ahead", "sides of joins extended", "reads capture"];
    // The catalog has to stay the same for some reads in a row.
    if world.started.elapsed() > OFTEN_ENOUGH {
        ways.push("replies brought up to date");
        if world.mode == Mode::Standby {
            ways.extend(standby::WAYS);
        }
    }
    let unused: Vec<&str> = ways.into_iter().filter(|way| world.counter(way) == 0).collect();
    if !unused.is_empty() {
        report::say(&format!("none of: {}", unused.join(", ")));
    }
    if !skew::is_tried(world) {
        report::say("no serializable transactions met");
    }
    enough && unused.is_empty() && skew::is_tried(world)
}

fn run(world: &World, options: &Options, nemesis: &mut Nemesis<'_>) {
    std::thread::scope(|scope| {
        for register in 0..REGISTERS {
            scope.spawn(move || writers::write_register(world, register));
        }
        for is_through in [false, true] {
            scope.spawn(move || writers::transfer(world, is_through));
            scope.spawn(move || sales::trade(world, is_through));
        }
        for list in 0..LISTS {
            scope.spawn(move || lists::append(world, list));
        }
        for number in 0..skew::WRITERS {
            scope.spawn(move || skew::write(world, number));
        }
        scope.spawn(|| lists::bulk(world));
        scope.spawn(|| ddl::change(world));
        scope.spawn(|| readers::compare(world));
        if world.mode == Mode::Standby {
            scope.spawn(|| readers::look_at_standby(world));
        }
        scope.spawn(|| readers::look_at_replies(world));
        for number in 0..options.readers {
            scope.spawn(move || readers::read(world, number));
        }
        let _stops = StopAtEnd(world);
        nemesis.torment(Instant::now() + Duration::from_secs(options.seconds));
        if world.goes_on() && options.bug.is_none() {
            recover(world);
        }
    });
}

/// With nothing broken any more, reads are answered here again.
fn recover(world: &World) {
    let began = Instant::now();
    let mut through = world.through(&[]);
    while began.elapsed() < RECOVERY_MAX {
        if readers::is_served_here(&mut through) {
            return world.add("ms to recover after the last fault", began.elapsed().as_millis() as u64);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let tables = through.run("SELECT name, state, reason FROM freshet.tables").map(|reply| reply.rows());
    let text = |cell: Option<Vec<u8>>| cell.map(|cell| String::from_utf8_lossy(&cell).into_owned()).unwrap_or_default();
    let tables: Vec<Vec<String>> =
        tables.unwrap_or_default().into_iter().map(|row| row.into_iter().map(text).collect()).collect();
    world.violated(Kind::NotRecovered, format!("nothing is answered here: {tables:?}"));
}

fn schema(readers: u64) -> String {
    format!(
        "CREATE ROLE reader; CREATE ROLE joe LOGIN;
         CREATE TABLE registers (id int PRIMARY KEY, value bigint NOT NULL);
         CREATE TABLE copies (id int PRIMARY KEY, value bigint NOT NULL);
         CREATE TABLE solo (id int PRIMARY KEY, value bigint NOT NULL);
         CREATE TABLE triggered (id int PRIMARY KEY, n bigint NOT NULL);
         INSERT INTO registers SELECT n, 0 FROM generate_series(0, {REGISTERS} - 1) n;
         INSERT INTO copies TABLE registers; INSERT INTO solo TABLE registers; INSERT INTO triggered TABLE registers;
         CREATE FUNCTION raise_solo(int, bigint) RETURNS void LANGUAGE sql
             AS 'UPDATE solo SET value = $2 WHERE id = $1 AND value < $2';
         CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql
             AS 'BEGIN UPDATE solo SET value = NEW.n WHERE id = NEW.id AND value < NEW.n; RETURN NULL; END';
         CREATE TRIGGER follow AFTER UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION follow();
         CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL, version int NOT NULL);
         CREATE TABLE savings (id int PRIMARY KEY, balance bigint NOT NULL, version int NOT NULL);
         INSERT INTO accounts SELECT n, 100, 0 FROM generate_series(0, {accounts} - 1) n;
         INSERT INTO savings TABLE accounts;
         CREATE TABLE entries (list int, n bigint, note text, PRIMARY KEY (list, n));
         CREATE TABLE bulk (batch bigint, n int, pad text, PRIMARY KEY (batch, n));
         CREATE TABLE own (id int PRIMARY KEY, n bigint NOT NULL);
         INSERT INTO own SELECT n, 0 FROM generate_series(0, {readers} - 1) n;
         CREATE TABLE idle (n int);
         {sales} {skew}",
        accounts = writers::ACCOUNTS,
        sales = sales::schema(),
        skew = skew::schema(),
    )
}
