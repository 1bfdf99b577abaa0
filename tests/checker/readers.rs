//! Readers: registers, money, lists and bulk through freshet, each read held against what was known when it began.

use crate::client::{Client, Form, Read, Trouble};
use crate::ledger::{FIRST_THROUGH, Floor, REGISTERS, SLOTS, Vector};
use crate::lists::{self, Known};
use crate::random::Random;
use crate::sales::{self, SOLD, SUMS};
use crate::skew::{self, DUTIES, HOLDINGS};
use crate::world::{Kind, LISTS, Mode, World, pause, standby_state};
use crate::writers::{ACCOUNTS, TOTAL};

/// All slots at one moment, over three tables.
const VECTOR: &str = "SELECT r.id, r.value, c.value, s.value FROM registers r JOIN copies c ON c.id = r.id \
                      JOIN solo s ON s.id = r.id ORDER BY r.id";
const VECTOR_FROM: &str = "SELECT r.id, r.value, c.value, s.value FROM registers r JOIN copies c ON c.id = r.id \
                           JOIN solo s ON s.id = r.id WHERE r.id >= $1 ORDER BY r.id";
/// The same, never answered here.
const VECTOR_RELAYED: &str = "SELECT r.id, r.value, c.value, s.value FROM registers r JOIN copies c ON c.id = r.id \
                              JOIN solo s ON s.id = r.id WHERE random() >= 0 ORDER BY r.id";
/// The same, which is not computed here but kept as upstream has answered it.
const VECTOR_KEPT: &str = "SELECT r.id, r.value, c.value, s.value FROM registers r JOIN copies c ON c.id = r.id \
                           JOIN solo s ON s.id = r.id WHERE point(r.id, 0) ~= point(r.id, 0) ORDER BY r.id";
/// One of them: in session mode it does not wait for writes to the others.
const REGISTER: &str = "SELECT value FROM registers WHERE id = $1";
const MONEY: &str =
    "SELECT sum(a.balance + s.balance), count(*) FROM accounts a JOIN savings s ON s.id = a.id WHERE a.id >= 0";
const LIST: &str = "SELECT n FROM entries WHERE list = $1 ORDER BY n";
const BULK: &str = "SELECT batch, count(*), sum(n) FROM bulk GROUP BY batch ORDER BY batch";
const OWN: &str = "SELECT n FROM own WHERE id = $1";

/// What session mode may be behind for changes made past freshet (`max_lag_ms`).
pub(crate) const LAG_MAX: std::time::Duration = std::time::Duration::from_millis(1_000);

/// A statement of every shape that the readers use, for verifying them while nothing changes.
pub(crate) fn shapes() -> Vec<(&'static str, Vec<Option<&'static str>>)> {
    let mut shapes = vec![
        (VECTOR, vec![]),
        (VECTOR_FROM, vec![Some("0")]),
        (REGISTER, vec![Some("0")]),
        (MONEY, vec![]),
        (LIST, vec![Some("0")]),
        (BULK, vec![]),
        (OWN, vec![Some("0")]),
        (SUMS, vec![]),
        (SOLD, vec![]),
    ];
    shapes.extend(skew::shapes());
    shapes
}

/// Reads until the end.
pub(crate) fn read(world: &World, number: u64) {
    let mut reader = Reader {
        world,
        number,
        through: world.through(&[]),
        direct: world.past(&[]),
        random: world.random(500 + number),
        last: [0; SLOTS],
        last_was: String::new(),
        session: 0,
        own: 0,
    };
    while world.goes_on() {
        match reader.step() {
            Ok(()) => {}
            Err(Trouble::Lost) => world.count("reads lost"),
            Err(Trouble::Refused { state, message }) => {
                world.count(&format!("reads refused {state}"));
                world.note(&format!("reader {number}: {state} {message}"));
                reader.through.hang_up();
                reader.direct.hang_up();
            }
        }
        if reader.random.one_in(8) {
            pause(&mut reader.random, 10);
        }
    }
}

/// Counts how often commits waited for freshet, and why not.
pub(crate) fn look_at_standby(world: &World) {
    let mut through = world.through(&[]);
    while world.goes_on() {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let Some(state) = standby_state(&mut through) else { continue };
        world.count("looks");
        world.count(&format!("looks {}", state.split(',').next().unwrap_or_default()));
    }
}

/// Counts how kept replies live on: through changes that do not matter, brought up to date, computed ahead.
pub(crate) fn look_at_replies(world: &World) {
    const ASKED: &str = "SELECT survivals, updates, refreshes FROM freshet.statements";
    const SIDES: &str = "SELECT value FROM freshet.status WHERE name = 'join_sides_extended'";
    const NAMES: [&str; 4] =
        ["replies that survived", "replies brought up to date", "replies computed ahead", "sides of joins extended"];
    let mut through = world.through(&[]);
    let mut before = [0; 4];
    while world.goes_on() {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let (Ok(reply), Ok(sides)) = (through.run(ASKED), through.run(SIDES)) else { continue };
        let number = |cell: &Option<Vec<u8>>| {
            String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).parse::<u64>().unwrap_or(0)
        };
        let mut now = [0_u64; 4];
        for row in reply.rows() {
            now.iter_mut().zip(&row).for_each(|(sum, cell)| *sum += number(cell));
        }
        now[3] = sides.rows().first().map_or(0, |row| number(&row[0]));
        for (name, (now, before)) in NAMES.iter().zip(now.iter().zip(before)) {
            // A freshet that was started anew counts from 0.
            world.add(name, if *now < before { *now } else { now - before });
        }
        before = now;
    }
}

struct Reader<'a> {
    world: &'a World,
    number: u64,
    through: Client,
    direct: Client,
    random: Random,
    /// What this session has seen, and how and when.
    last: Vector,
    last_was: String,
    session: u64,
    own: i64,
}

impl Reader<'_> {
    fn step(&mut self) -> Result<(), Trouble> {
        match self.random.below(71) {
            0..12 => self.vector(VECTOR, &Form::Simple).map(|_| ()),
            12..18 => self.vector(VECTOR_FROM, &Form::Extended(&[Some("0")])).map(|_| ()),
            18..21 => self.vector(VECTOR_RELAYED, &Form::Simple).map(|_| ()),
            21..23 => self.block(),
            23..27 => self.causality(),
            27..31 => self.money(),
            31..35 => self.list(),
            35..36 => self.bulk(),
            36..52 => self.register(),
            52..56 => self.own(),
            // They take long, and the others are what most mistakes are found by.
            56 if self.random.one_in(4) => self.sums(),
            57 => self.ask(SOLD, &Form::Simple).map(|read| sales::check_sold(self.world, &read)),
            58..61 => {
                let sql = *self.random.pick(&[DUTIES, HOLDINGS]);
                self.ask(sql, &Form::Simple).map(|read| skew::check(self.world, sql, &read))
            }
            // What is kept is found soon after.
            _ => {
                self.vector(VECTOR_KEPT, &Form::Simple)?;
                self.vector(VECTOR_KEPT, &Form::Simple).map(|_| ())
            }
        }
    }

    /// A statement through freshet, counted.
    fn ask(&mut self, sql: &str, form: &Form<'_>) -> Result<Read, Trouble> {
        let read = self.through.read(sql, form)?;
        if let Some(error) = read.reply.error() {
            self.world.violated(Kind::Wrong, format!("{sql}: {error}"));
            return Err(Trouble::Refused { state: "?".to_string(), message: error });
        }
        self.world.count("reads");
        match read.route.as_deref() {
            Some(route) => self.world.count(&format!("reads {route}")),
            None => self.world.count("reads whose route was lost"),
        }
        if read.is_local() && read.is_at_once {
            self.world.count("reads here without a round trip");
        }
        if !read.is_local() {
            self.world.count(&format!("relayed: {}", read.reason.split(':').next().unwrap_or_default()));
        }
        Ok(read)
    }

    fn vector(&mut self, sql: &str, form: &Form<'_>) -> Result<Vector, Trouble> {
        let floor = self.world.registers.floor();
        let read = self.ask(sql, form)?;
        let Some(vector) = self.parse(&read) else { return Err(Trouble::Lost) };
        self.check(&vector, &floor, &read);
        Ok(vector)
    }

    /// Torn and uncommitted states are found here.
    fn parse(&self, read: &Read) -> Option<Vector> {
        let rows = read.numbers().filter(|rows| rows.len() == REGISTERS);
        let Some(rows) = rows else {
            self.world.violated(Kind::Wrong, format!("registers: {:?}", read.reply));
            return None;
        };
        let mut vector = [0; SLOTS];
        for (register, row) in rows.iter().enumerate() {
            if row[0] != register as i64 || row[1] != row[2] || row[1] >= 1_000_000_000 {
                self.world.violated(Kind::Wrong, format!("register {register} is {row:?} ({:?})", read.route));
                return None;
            }
            vector[register] = row[1];
            vector[REGISTERS + register] = row[3];
        }
        Some(vector)
    }

    fn check(&mut self, vector: &Vector, floor: &Floor, read: &Read) {
        let world = self.world;
        let how = || format!("(reader {}, {:?}, {:?})", self.number, read.route, vector);
        if self.session != self.through.session && world.mode == Mode::Session {
            self.last = [0; SLOTS];
        }
        self.session = self.through.session;
        let is_current = world.mode.is_exact() || (!read.is_local() && read.route.is_some());
        let is_excused = world.hazards.excuse_seen(floor.at);
        if is_excused {
            let has_missed = |known: &Vector| vector.iter().zip(known).any(|(value, known)| value < known);
            let missed = [("acknowledged", &floor.newest), ("seen", &floor.seen)];
            missed.iter().filter(|(_, known)| has_missed(known)).for_each(|(what, _)| {
                world.count(&format!("reads that missed what was {what}, as they may"));
            });
            world.count("reads that may miss what was seen");
        }
        for slot in 0..SLOTS {
            let value = vector[slot];
            if value < self.last[slot] && !is_excused {
                let text = format!("slot {slot} is {value} after {} ({}) {}", self.last[slot], self.last_was, how());
                world.violated(Kind::NonMonotonic, text);
            }
            let is_bound = is_current || slot % REGISTERS >= FIRST_THROUGH;
            let bound = if is_bound { floor.acknowledged[slot] } else { self.bound_by_lag(slot, floor) };
            if value < bound {
                world.violated(Kind::Stale, format!("slot {slot} is {value}, acknowledged was {bound} {}", how()));
            }
            if is_current && !is_excused && value < floor.seen[slot] {
                world.violated(Kind::Stale, format!("slot {slot} is {value}, seen was {} {}", floor.seen[slot], how()));
            }
            if world.mode == Mode::Session && !is_bound {
                let overtaken = (value < floor.acknowledged[slot]).then(|| world.registers.overtaken_at(slot, value));
                let age = overtaken.flatten().map(|at| floor.at.saturating_duration_since(at));
                world.note_age(age.unwrap_or_default());
            }
        }
        if let Err(other) = world.registers.order(vector) {
            world.violated(Kind::Wrong, format!("no one order has {vector:?} and {other:?} {}", how()));
        }
        world.registers.note_seen(vector);
        self.last = *vector;
        let (began, ended) = (floor.at.duration_since(world.started), world.started.elapsed());
        self.last_was = format!("{:?} {} {began:.3?} to {ended:.3?}", read.route, read.reason);
    }

    fn bound_by_lag(&self, slot: usize, floor: &Floor) -> i64 {
        let at = floor.at.checked_sub(LAG_MAX);
        at.and_then(|at| self.world.registers.acknowledged_at(slot, at)).unwrap_or_default()
    }

    /// One register by its key, held against the same bounds.
    fn register(&mut self) -> Result<(), Trouble> {
        let slot = self.random.below(REGISTERS as u64) as usize;
        let floor = self.world.registers.floor();
        let text = slot.to_string();
        let read = self.ask(REGISTER, &Form::Extended(&[Some(&text)]))?;
        let world = self.world;
        let value = match read.numbers().as_deref() {
            Some([row]) if row.len() == 1 && row[0] < 1_000_000_000 => row[0],
            _ => {
                world.violated(Kind::Wrong, format!("register {slot} is {:?}", read.reply));
                return Err(Trouble::Lost);
            }
        };
        if self.session != self.through.session && world.mode == Mode::Session {
            self.last = [0; SLOTS];
        }
        self.session = self.through.session;
        let how = || format!("(reader {}, by its key, {:?})", self.number, read.route);
        let is_excused = world.hazards.excuse_seen(floor.at);
        if value < self.last[slot] && !is_excused {
            let text = format!("slot {slot} is {value} after {} ({}) {}", self.last[slot], self.last_was, how());
            world.violated(Kind::NonMonotonic, text);
        }
        let is_current = world.mode.is_exact() || (!read.is_local() && read.route.is_some());
        let is_bound = is_current || slot >= FIRST_THROUGH;
        let acknowledged = if is_bound { floor.acknowledged[slot] } else { self.bound_by_lag(slot, &floor) };
        let bound = if is_current && !is_excused { acknowledged.max(floor.seen[slot]) } else { acknowledged };
        if value < bound {
            world.violated(Kind::Stale, format!("slot {slot} is {value}, known was {bound} {}", how()));
        }
        self.last[slot] = value;
        world.count("reads by key");
        Ok(())
    }

    /// In a transaction block; under REPEATABLE READ both reads are of one moment.
    fn block(&mut self) -> Result<(), Trouble> {
        let is_repeatable = self.random.one_in(2);
        self.through.run(if is_repeatable { "BEGIN ISOLATION LEVEL REPEATABLE READ" } else { "BEGIN" })?;
        let first = self.vector(VECTOR, &Form::Simple)?;
        if is_repeatable {
            let second = self.ask(VECTOR, &Form::Simple)?;
            if self.parse(&second).is_some_and(|second| second != first) {
                self.world.violated(Kind::Wrong, format!("two reads of one snapshot differ: {first:?}"));
            }
        } else {
            self.vector(VECTOR, &Form::Simple)?;
        }
        self.through.run("COMMIT")?;
        Ok(())
    }

    /// Nothing was shown before upstream shows it; in exact mode, what upstream has shown is shown.
    fn causality(&mut self) -> Result<(), Trouble> {
        let shown = self.vector(VECTOR, &Form::Simple)?;
        let reply = self.direct.run(VECTOR)?;
        let read = Read { reply, route: None, reason: String::new(), is_at_once: false };
        let Some(upstream) = self.parse(&read) else { return Ok(()) };
        self.world.count("reads followed by a direct one");
        for slot in 0..SLOTS {
            if upstream[slot] < shown[slot] {
                let text = format!("slot {slot} was shown as {}, upstream still has {}", shown[slot], upstream[slot]);
                self.world.violated(Kind::Early, text);
            }
        }
        if let Err(other) = self.world.registers.order(&upstream) {
            self.world.violated(Kind::Wrong, format!("no one order has upstream's {upstream:?} and {other:?}"));
        }
        self.world.registers.note_seen(&upstream);
        if self.world.mode.is_exact() {
            self.vector(VECTOR, &Form::Simple)?;
        }
        Ok(())
    }

    fn money(&mut self) -> Result<(), Trouble> {
        let read = self.ask(MONEY, &Form::Simple)?;
        let expected = vec![vec![TOTAL, ACCOUNTS as i64]];
        if read.numbers().as_ref() != Some(&expected) {
            self.world.violated(Kind::Wrong, format!("money: {:?} ({:?})", read.numbers(), read.route));
        }
        Ok(())
    }

    /// Some times in a row, while the catalog is still the same: the first are compared, then made of all rows, the others of changes.
    fn sums(&mut self) -> Result<(), Trouble> {
        for _ in 0..14 {
            let read = self.ask(SUMS, &Form::Simple)?;
            sales::check_sums(self.world, &read);
            pause(&mut self.random, 12);
        }
        Ok(())
    }

    fn list(&mut self) -> Result<(), Trouble> {
        let list = self.random.below(LISTS as u64) as usize;
        let known = Known::of(self.world, list);
        let text = list.to_string();
        let read = self.ask(LIST, &Form::Extended(&[Some(&text)]))?;
        lists::check(self.world, list, &known, &read);
        Ok(())
    }

    fn bulk(&mut self) -> Result<(), Trouble> {
        let read = self.ask(BULK, &Form::Simple)?;
        lists::check_bulk(self.world, &read);
        Ok(())
    }

    /// A session sees its own writes, in both modes: nobody else writes this row.
    fn own(&mut self) -> Result<(), Trouble> {
        let id = self.number.to_string();
        // Readers have to go on where nobody is to write through freshet.
        let Ok(through) = self.world.through_gate.try_read() else { return Ok(()) };
        let gate = self.world.write_gate(false);
        self.own += 1;
        self.through.run(&format!("UPDATE own SET n = {} WHERE id = {id} AND n < {}", self.own, self.own))?;
        drop((gate, through));
        let began = std::time::Instant::now();
        let read = self.ask(OWN, &Form::Extended(&[Some(&id)]))?;
        if read.numbers() != Some(vec![vec![self.own]]) && !self.world.hazards.excuse_acknowledged(began) {
            let text = format!("own write of {} is read as {:?} ({:?})", self.own, read.numbers(), read.route);
            self.world.violated(Kind::Stale, text);
        }
        Ok(())
    }
}

/// With nothing written, verifies the readers' shapes and compares random statements with PostgreSQL, now and then.
pub(crate) fn compare(world: &World) {
    let mut through = world.through(&[]);
    let mut direct = world.past(&[]);
    let mut random = world.random(600);
    while world.goes_on() {
        {
            let _gate = world.gate.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            // Nothing is written any more; what was may be missed.
            let rounds = if world.hazards.excuse_seen(std::time::Instant::now()) { 0 } else { 8 };
            for round in 0..rounds {
                let outcome = if round == 0 {
                    verify_shapes(&mut through)
                } else {
                    compare_one(world, &mut through, &mut direct, &mut random)
                };
                if let Err(trouble) = outcome {
                    if let Trouble::Refused { state, message } = trouble {
                        world.note(&format!("comparing: {state} {message}"));
                    }
                    world.count("comparisons lost");
                    through.hang_up();
                    direct.hang_up();
                    break;
                }
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(250));
        pause(&mut random, 300);
    }
}

fn verify_shapes(through: &mut Client) -> Result<(), Trouble> {
    for (sql, parameters) in shapes() {
        let form = if parameters.is_empty() { Form::Simple } else { Form::Extended(&parameters) };
        for _ in 0..2 {
            through.read(sql, &form)?;
        }
    }
    Ok(())
}

fn compare_one(world: &World, through: &mut Client, direct: &mut Client, random: &mut Random) -> Result<(), Trouble> {
    let sql = statement(random);
    let before = direct.ask(&sql)?;
    // A relayed reply makes a newer barrier due for this session: from here on it must see what `before` saw.
    if world.mode == Mode::Session {
        through.run("SELECT 1 WHERE random() < 0")?;
    }
    through.read(&sql, &Form::Simple)?;
    let read = through.read(&sql, &Form::Simple)?;
    let after = direct.ask(&sql)?;
    if before != after {
        world.count("comparisons without a verdict");
        return Ok(());
    }
    world.count("comparisons");
    if read.is_local() {
        world.count("comparisons local");
    }
    if read.reply.frames != before.frames {
        let text = format!("{sql}: {:?} upstream, {:?} here ({:?})", before.rows(), read.reply.rows(), read.route);
        world.violated(Kind::Wrong, text);
    }
    Ok(())
}

/// A random statement with one possible answer, over one or several tables.
fn statement(random: &mut Random) -> String {
    let id = random.below(ACCOUNTS);
    let list = random.below(LISTS as u64);
    let register = random.below(REGISTERS as u64);
    match random.below(12) {
        0 => format!("SELECT id, value FROM registers WHERE id <> {register} ORDER BY value DESC, id"),
        1 => format!(
            "SELECT a.id, a.balance, a.version, s.balance, s.version FROM accounts a JOIN savings s ON s.id = a.id \
             WHERE a.id > {id} ORDER BY a.id"
        ),
        2 => format!(
            "SELECT list, count(*), min(n), max(n), sum(length(note)) FROM entries WHERE list <> {list} \
             GROUP BY list ORDER BY list"
        ),
        3 => format!(
            "SELECT r.id, count(*), max(e.n) FROM registers r JOIN entries e ON e.list = r.id WHERE e.n % 3 = {} \
             GROUP BY r.id ORDER BY r.id",
            random.below(3)
        ),
        4 => format!("SELECT n, note FROM entries WHERE list = {list} ORDER BY n DESC LIMIT {}", random.below(9) + 1),
        5 => format!("SELECT batch, count(*), max(pad) FROM bulk WHERE n > {} GROUP BY batch ORDER BY 1", id * 300),
        6 => format!(
            "SELECT r.id, r.value - s.value AS ahead FROM registers r JOIN solo s ON s.id = r.id AND r.id <= {register} \
             ORDER BY ahead, r.id"
        ),
        7 => format!("SELECT sum(balance), sum(version), avg(balance) FROM accounts WHERE id <= {id}"),
        8 => format!(
            "SELECT e.list, s.balance FROM entries e LEFT JOIN savings s ON s.id = e.list + {id} \
             WHERE e.n % 2 = 0 ORDER BY e.list, e.n"
        ),
        9 => "SELECT DISTINCT list, n % 2 AS odd FROM entries ORDER BY list, odd".to_string(),
        10 => format!("SELECT t.id, t.n, s.value FROM triggered t JOIN solo s ON s.id = t.id WHERE t.id = {register}"),
        _ => format!(
            "SELECT balance, count(*) FROM savings GROUP BY balance HAVING count(*) >= {} ORDER BY balance",
            random.below(2) + 1
        ),
    }
}

/// Whether it is known without asking upstream that a vector is fresh.
pub(crate) fn is_known_at_once(through: &mut Client) -> bool {
    matches!(through.read(VECTOR, &Form::Simple), Ok(read) if read.is_local() && read.is_at_once)
}

/// Whether a vector is answered here, for the end of a run.
pub(crate) fn is_served_here(through: &mut Client) -> bool {
    matches!(through.read(VECTOR, &Form::Simple), Ok(read) if read.is_local())
}
