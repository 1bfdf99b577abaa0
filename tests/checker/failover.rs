//! Upstream's address is given to another server, again and again: `freshet-checker --mode failover`.
//!
//! Every round has a fresh standby, on which every acknowledged commit is. Then one of:
//!
//! - **promotion**: the primary stops, the standby takes its place.
//! - **split brain**: the standby takes its place while the primary lives. Who is connected stays there for a while, and its commits
//!   are acknowledged, too; new connections get to the new one.
//! - **recovery**: the server is replaced by a backup of itself, recovered to a moment that lies behind it. What was acknowledged
//!   later is gone.
//!
//! Each of these begins an *incarnation* of the database, with a number that a row of its own holds and that every write puts beside its
//! value. Of a row that anybody is shown in an incarnation it can be told whether it belongs there: it was written in it, or it is
//! what the incarnation began with. Values only grow, also over a recovery, so that none comes twice.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use freshet_tests::cluster::{Cluster, free_port};

use crate::Options;
use crate::client::{Client, Form, Read, Trouble};
use crate::fault::FaultProxy;
use crate::ledger::locked;
use crate::random::Random;
use crate::report;
use crate::serve::{Served, Serving};
use crate::world::{Kind, Mode, StopAtEnd, World, pause};

/// Each with a writer of its own; those from [`FIRST_THROUGH`] on are written through freshet.
const REGISTERS: usize = 6;
const FIRST_THROUGH: usize = 3;
const READERS: u64 = 4;
/// Within this a standby has caught up, a server been promoted or recovered.
const SERVER_MAX: Duration = Duration::from_secs(60);
/// Within this reads are answered here again, by the new server's rows.
const LOCAL_MAX: Duration = Duration::from_secs(30);

const SETTINGS: &[&str] = &["wal_keep_size=512MB", "wal_sender_timeout=10s", "max_prepared_transactions=50"];
const SCHEMA: &str = "CREATE TABLE server (id int PRIMARY KEY, n bigint NOT NULL); INSERT INTO server VALUES (1, 0);
    CREATE TABLE registers (id int PRIMARY KEY, value bigint NOT NULL, n bigint NOT NULL);";
const VECTOR: &str = "SELECT r.id, r.value, r.n, s.n FROM registers r JOIN server s ON s.id >= 0 ORDER BY r.id";
const VECTOR_FROM: &str =
    "SELECT r.id, r.value, r.n, s.n FROM registers r JOIN server s ON s.id = $1 WHERE r.id >= 0 ORDER BY r.id";
const VECTOR_RELAYED: &str =
    "SELECT r.id, r.value, r.n, s.n FROM registers r JOIN server s ON s.id >= 0 WHERE random() >= 0 ORDER BY r.id";
const REGISTER: &str = "SELECT r.id, r.value, r.n FROM registers r WHERE r.id = $1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    Promotion,
    SplitBrain,
    Recovery,
}

const SWITCHES: [Switch; 3] = [Switch::Promotion, Switch::SplitBrain, Switch::Recovery];

/// A register's value, and in which incarnation it was written.
type Row = (i64, i64);

/// What is known of one incarnation.
#[derive(Clone, Copy, Debug, Default)]
struct Incarnation {
    base: [Row; REGISTERS],
    acknowledged: [i64; REGISTERS],
    /// By reads that may miss nothing.
    seen: [i64; REGISTERS],
}

struct Scene {
    world: World,
    address: FaultProxy,
    incarnations: Mutex<Vec<Incarnation>>,
    /// The one that new connections get to, or one before it.
    current: AtomicUsize,
}

/// True: nothing was found, and enough was tried; or what was planted was found.
pub(crate) fn check(options: &Options) -> Result<bool, String> {
    let primary = Cluster::start(SETTINGS);
    primary.psql("postgres", "CREATE DATABASE failover");
    primary.psql("failover", SCHEMA);
    let fill = format!("INSERT INTO registers SELECT n, 0, 0 FROM generate_series(0, {REGISTERS} - 1) n");
    primary.psql("failover", &fill);
    let address = FaultProxy::start(primary.address()).map_err(|error| error.to_string())?;
    let serving = Serving {
        mode: Mode::Exact,
        upstream_port: address.port,
        database: "failover".to_string(),
        bug: options.bug.clone(),
        has_event_trigger: options.has_event_trigger,
    };
    let port = free_port();
    let served = Served::start(&serving, port).map_err(|error| error.to_string())?;
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let mut world = World::new(Mode::Exact, options.seed, local(address.port), local(port), "failover".to_string());
    world.is_verbose = options.is_verbose;
    world.has_event_trigger = options.has_event_trigger;
    world.stop_at_first = options.bug.is_some();
    let incarnations = Mutex::new(vec![Incarnation::default()]);
    let scene = Scene { world, address, incarnations, current: AtomicUsize::new(0) };
    scene.wait_until_local();
    let version = primary.psql("postgres", "SHOW server_version");
    let outcome = std::thread::scope(|scope| {
        let scene = &scene;
        for register in 0..REGISTERS {
            scope.spawn(move || Writer::new(scene, register).write());
        }
        for number in 0..READERS {
            scope.spawn(move || Reader::new(scene, number).read());
        }
        let _stops = StopAtEnd(&scene.world);
        scene.switch_again_and_again(primary, Duration::from_secs(options.seconds))
    });
    drop(served);
    report::print(&scene.world, &format!("failover, PostgreSQL {version}"));
    outcome?;
    let found = !locked(&scene.world.found).is_empty();
    Ok(found == options.bug.is_some() && (found || scene.is_meaningful()))
}

impl Scene {
    fn is_meaningful(&self) -> bool {
        let count = |name: &str| self.world.counter(name);
        let local = count("reads local") + count("reads hit");
        let switches = SWITCHES.iter().filter(|switch| count(&format!("switches {switch:?}")) > 0).count();
        let is_enough = local * 10 > count("reads") && switches > 1;
        if !is_enough {
            report::say("too little was tried or answered here to say anything");
        }
        is_enough
    }

    /// The first of all kinds in turn, from one that the seed says.
    fn switch_again_and_again(&self, mut primary: Cluster, time: Duration) -> Result<(), String> {
        let end = Instant::now() + time;
        let mut random = self.world.random(800);
        let first = random.below(SWITCHES.len() as u64) as usize;
        for round in 0.. {
            if Instant::now() >= end || !self.world.goes_on() {
                break;
            }
            let switch = if round < SWITCHES.len() {
                SWITCHES[(first + round) % SWITCHES.len()]
            } else {
                *random.pick(&SWITCHES)
            };
            self.world.count(&format!("switches {switch:?}"));
            self.world.note(&format!("{switch:?}"));
            let standby = self.attach(&primary)?;
            self.rest(300 + random.below(1_000));
            let old = match switch {
                Switch::Promotion => {
                    primary.stop();
                    self.promote(&standby, &self.newest())?;
                    Some(primary)
                }
                Switch::SplitBrain => {
                    self.split(&primary, &standby)?;
                    Some(primary)
                }
                Switch::Recovery => {
                    self.recover(&primary, &standby, &mut random)?;
                    None
                }
            };
            primary = standby;
            self.measure(switch);
            self.rest(300 + random.below(1_500));
            // Who has stayed with the old one until now has to go.
            drop(old);
            self.rest(random.below(800));
        }
        Ok(())
    }

    fn rest(&self, milliseconds: u64) {
        std::thread::sleep(Duration::from_millis(milliseconds));
    }

    /// A standby that commits wait for from here on.
    fn attach(&self, primary: &Cluster) -> Result<Cluster, String> {
        let standby = primary.standby_with(SETTINGS);
        configure(primary, "FIRST 1 (walreceiver)");
        let state =
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'walreceiver' AND sync_state = 'sync'";
        wait_until(primary, state, "1")?;
        // One that had not to wait has been written before this one.
        primary.psql("failover", "SELECT pg_logical_emit_message(true, 'checker', '')");
        Ok(standby)
    }

    /// The standby becomes a server of its own, with all that was acknowledged `before`, and the address leads there.
    fn promote(&self, standby: &Cluster, before: &Incarnation) -> Result<(), String> {
        configure(standby, "");
        standby.psql("postgres", "SELECT pg_promote()");
        self.begin(standby, Some(before))
    }

    /// The newest incarnation as it is known now.
    fn newest(&self) -> Incarnation {
        locked(&self.incarnations).last().copied().unwrap_or_default()
    }

    /// While the old server lives. Nothing more is acknowledged there until the address leads to the new one: nobody would know by then
    /// which of it is on the standby.
    fn split(&self, primary: &Cluster, standby: &Cluster) -> Result<(), String> {
        configure(standby, "");
        standby.psql("postgres", "SELECT pg_promote()");
        let gone = "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'walreceiver'";
        wait_until(primary, gone, "0")?;
        self.begin(standby, Some(&self.newest()))?;
        configure(primary, "");
        Ok(())
    }

    /// The standby has stayed behind; the server goes on without it and is then replaced by it, recovered to a moment between.
    fn recover(&self, primary: &Cluster, standby: &Cluster, random: &mut Random) -> Result<(), String> {
        configure(primary, "");
        standby.stop();
        self.rest(random.below(700));
        let point = format!("point_{}", self.current.load(SeqCst));
        let before = self.newest();
        primary.psql("failover", &format!("SELECT pg_create_restore_point('{point}')"));
        self.rest(200 + random.below(1_000));
        primary.stop();
        standby.recover_to(&point, primary);
        standby.restart();
        self.begin(standby, Some(&before))?;
        // A standby of this one is not to stop there.
        for setting in ["recovery_target_name", "recovery_target_action", "restore_command"] {
            standby.psql("postgres", &format!("ALTER SYSTEM RESET {setting}"));
        }
        Ok(())
    }

    /// A new incarnation, on a server that is to be one: what it begins with is noted before anybody gets there.
    fn begin(&self, server: &Cluster, before: Option<&Incarnation>) -> Result<(), String> {
        wait_until(server, "SELECT pg_is_in_recovery()", "f")?;
        let next = self.current.load(SeqCst) + 1;
        server.psql("failover", &format!("UPDATE server SET n = {next}"));
        let rows = server.psql("failover", "SELECT value, n FROM registers ORDER BY id");
        let row = |line: &str| {
            let (value, n) = line.split_once('|')?;
            Some((value.parse().ok()?, n.parse().ok()?))
        };
        let rows: Option<Vec<Row>> = rows.lines().map(row).collect();
        let base: [Row; REGISTERS] =
            rows.and_then(|rows| rows.try_into().ok()).ok_or_else(|| "the registers are not there".to_string())?;
        for register in 0..REGISTERS {
            let kept = before.map(|before| before.acknowledged[register]).unwrap_or_default();
            if base[register].0 < kept {
                return Err(format!(
                    "the new server has lost {kept} of register {register}: it has {:?}",
                    base[register]
                ));
            }
        }
        let acknowledged = base.map(|(value, _)| value);
        locked(&self.incarnations).push(Incarnation { base, acknowledged, seen: acknowledged });
        self.address.lead_to(server.address());
        self.current.store(next, SeqCst);
        Ok(())
    }

    /// How long it took until the new server's rows are answered here.
    fn measure(&self, switch: Switch) {
        let began = Instant::now();
        self.wait_until_local();
        let took = began.elapsed().as_millis() as u64;
        self.world.note(&format!("answered here again after {took} ms"));
        self.world.add(&format!("ms until answered here again, {switch:?}"), took);
    }

    fn wait_until_local(&self) {
        let limit = Instant::now() + LOCAL_MAX;
        let mut reader = Reader::new(self, READERS);
        let mut last = String::new();
        while Instant::now() < limit && self.world.goes_on() {
            match reader.vector(VECTOR, &Form::Simple) {
                Ok(read) if read.is_local() => return,
                Ok(read) => last = read.reason,
                Err(_) => reader.hang_up(),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if self.world.goes_on() {
            self.world.violated(Kind::NotRecovered, format!("the server's rows are not answered here: {last}"));
        }
    }
}

fn configure(server: &Cluster, names: &str) {
    server.psql("postgres", &format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
    server.reload();
}

fn wait_until(server: &Cluster, sql: &str, expected: &str) -> Result<(), String> {
    let limit = Instant::now() + SERVER_MAX;
    while server.psql("postgres", sql) != expected {
        if Instant::now() > limit {
            return Err(format!("{sql} does not become {expected}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Raises one register until the end.
struct Writer<'a> {
    scene: &'a Scene,
    register: usize,
    client: Client,
    random: Random,
    value: i64,
}

impl<'a> Writer<'a> {
    fn new(scene: &'a Scene, register: usize) -> Self {
        let world = &scene.world;
        let client = if register < FIRST_THROUGH { world.past(&[]) } else { world.through(&[]) };
        Self { scene, register, client, random: world.random(100 + register as u64), value: 0 }
    }

    fn write(&mut self) {
        let world = &self.scene.world;
        while world.goes_on() {
            match self.raise() {
                Ok(()) => world.count("writes"),
                Err(Trouble::Lost) => world.count("writes lost"),
                Err(Trouble::Refused { state, .. }) => {
                    world.count(&format!("writes refused {state}"));
                    self.client.hang_up();
                }
            }
            // So that not all stay where they are.
            if self.random.one_in(60) {
                self.client.hang_up();
            }
            pause(&mut self.random, 25);
        }
    }

    fn raise(&mut self) -> Result<(), Trouble> {
        self.value += 1;
        let (register, value) = (self.register, self.value);
        let sql = format!(
            "UPDATE registers SET value = {value}, n = (SELECT n FROM server) WHERE id = {register} AND value < {value} RETURNING id, n"
        );
        let read = self.client.read_past(&sql, &Form::Simple)?;
        if let Some(trouble) = read.trouble() {
            return Err(trouble);
        }
        // Where it took place.
        let row: Option<[i64; 2]> = read.numbers().and_then(|rows| rows.into_iter().next()?.try_into().ok());
        let Some([_, n]) = row else { return Err(Trouble::Lost) };
        if let Some(incarnation) = locked(&self.scene.incarnations).get_mut(n as usize) {
            incarnation.acknowledged[register] = value;
        }
        Ok(())
    }
}

/// Reads through freshet until the end, now and then in a new session.
struct Reader<'a> {
    scene: &'a Scene,
    client: Client,
    is_exact: bool,
    random: Random,
    session: u64,
    /// The session's; None: not known yet.
    incarnation: Option<usize>,
    /// The incarnation that the session cannot be before.
    at_least: usize,
    last: [i64; REGISTERS],
}

impl<'a> Reader<'a> {
    /// Every fourth in mode session.
    fn new(scene: &'a Scene, number: u64) -> Self {
        let world = &scene.world;
        let is_exact = number != 1;
        let client = world.through(&[if is_exact { "" } else { "SET freshet.freshness = 'session'" }]);
        let random = world.random(500 + number);
        Self { scene, client, is_exact, random, session: 0, incarnation: None, at_least: 0, last: [0; REGISTERS] }
    }

    fn read(&mut self) {
        let world = &self.scene.world;
        while world.goes_on() {
            let outcome = match self.random.below(10) {
                0..4 => self.vector(VECTOR, &Form::Simple).map(|_| ()),
                4..6 => self.vector(VECTOR_FROM, &Form::Extended(&[Some("1")])).map(|_| ()),
                6 => self.vector(VECTOR_RELAYED, &Form::Simple).map(|_| ()),
                _ => self.register(),
            };
            match outcome {
                Ok(()) => {}
                Err(Trouble::Lost) => world.count("reads lost"),
                Err(Trouble::Refused { state, .. }) => {
                    world.count(&format!("reads refused {state}"));
                    self.hang_up();
                }
            }
            if self.random.one_in(150) {
                self.hang_up();
            }
            if self.random.one_in(4) {
                pause(&mut self.random, 8);
            }
        }
    }

    fn hang_up(&mut self) {
        self.client.hang_up();
    }

    fn ask(&mut self, sql: &str, form: &Form<'_>) -> Result<(Vec<Incarnation>, Read), Trouble> {
        let at_least = self.scene.current.load(SeqCst);
        // A session that begins does so after this.
        let floor = locked(&self.scene.incarnations).clone();
        let read = self.client.read(sql, form)?;
        let world = &self.scene.world;
        if self.session != self.client.session {
            self.session = self.client.session;
            (self.incarnation, self.at_least, self.last) = (None, at_least, [0; REGISTERS]);
        }
        if let Some(trouble) = read.trouble() {
            return Err(trouble);
        }
        world.count("reads");
        world.count(&format!("reads {}", read.route.as_deref().unwrap_or("whose route was lost")));
        if !read.is_local() {
            world.count(&format!("relayed: {}", read.reason.split(':').next().unwrap_or_default()));
        }
        Ok((floor, read))
    }

    fn vector(&mut self, sql: &str, form: &Form<'_>) -> Result<Read, Trouble> {
        let (floor, read) = self.ask(sql, form)?;
        let rows = read.numbers().filter(|rows| rows.len() == REGISTERS && rows.iter().all(|row| row.len() == 4));
        let Some(rows) = rows else {
            self.violated(Kind::Wrong, &read, format!("{:?}", read.reply));
            return Err(Trouble::Lost);
        };
        let n = rows[0][3] as usize;
        if n < self.at_least {
            let text = format!("of server {n}, in a session that began at {} or later: {rows:?}", self.at_least);
            self.violated(Kind::Stale, &read, text);
        }
        if self.incarnation.is_some_and(|before| before != n) {
            self.violated(Kind::Wrong, &read, format!("of server {n} after {:?}: {rows:?}", self.incarnation));
        }
        self.incarnation = Some(n);
        for row in &rows {
            self.check(&floor, &read, n, row);
        }
        Ok(read)
    }

    /// One of them by its key, where it is known which server the session is at.
    fn register(&mut self) -> Result<(), Trouble> {
        let id = self.random.below(REGISTERS as u64).to_string();
        let before = self.session;
        let (floor, read) = self.ask(REGISTER, &Form::Extended(&[Some(&id)]))?;
        let Some(n) = self.incarnation.filter(|_| before == self.session) else { return Ok(()) };
        match read.numbers().as_deref() {
            Some([row]) => self.check(&floor, &read, n, row),
            _ => self.violated(Kind::Wrong, &read, format!("{:?}", read.reply)),
        }
        Ok(())
    }

    /// One register in incarnation `n`, when `floor` was known.
    fn check(&mut self, floor: &[Incarnation], read: &Read, n: usize, row: &[i64]) {
        let (register, value, written_in) = (row[0] as usize, row[1], row[2]);
        // Known before the address leads there.
        let Some(base) = locked(&self.scene.incarnations).get(n).map(|incarnation| incarnation.base[register]) else {
            return self.violated(Kind::Wrong, read, format!("server {n} is not known"));
        };
        if written_in != n as i64 && (value, written_in) != base {
            let text =
                format!("server {n} began with {base:?} in register {register}, which is {value}, of {written_in}");
            self.violated(Kind::Wrong, read, text);
        }
        if value < self.last[register] {
            let text = format!("register {register} is {value} at server {n}, after {}", self.last[register]);
            self.violated(Kind::NonMonotonic, read, text);
        }
        self.last[register] = value;
        // It may have begun while the read was under way; then nobody had been there before.
        let Some(floor) = floor.get(n) else { return };
        let is_upstream = !read.is_local() && read.route.is_some();
        let is_bound = self.is_exact || is_upstream || register >= FIRST_THROUGH;
        if is_bound && value < floor.acknowledged[register] {
            let acknowledged = floor.acknowledged[register];
            let text = format!("register {register} is {value} at server {n}, acknowledged was {acknowledged}");
            self.violated(Kind::Stale, read, text);
        }
        if self.is_exact {
            if value < floor.seen[register] {
                let text = format!("register {register} is {value} at server {n}, seen was {}", floor.seen[register]);
                self.violated(Kind::Stale, read, text);
            }
            let mut incarnations = locked(&self.scene.incarnations);
            incarnations[n].seen[register] = incarnations[n].seen[register].max(value);
        }
    }

    fn violated(&self, kind: Kind, read: &Read, text: String) {
        let how = format!("({:?} {}, session {})", read.route, read.reason, self.session);
        self.scene.world.violated(kind, format!("{text} {how}"));
    }
}
