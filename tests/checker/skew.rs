//! Write skew: who reads two rows and then changes one of them. Under SERIALIZABLE PostgreSQL lets no two such transactions commit that
//! cannot have come one after the other, and can only tell by the reads that it has seen: one that was answered here breaks what
//! both have looked at.
//!
//! Of the two doctors of a ward one is always on call, and what the two accounts of a couple hold together is never below nothing. Every
//! writer of both is serializable, so every moment that anybody is shown is one after a row of transactions that keep to that.

use crate::client::{Client, Form, Read, Trouble};
use crate::random::Random;
use crate::world::{Kind, World, pause};

/// Few, so that two transactions often meet at one.
const WARDS: u64 = 3;
const COUPLES: u64 = 3;

/// Clients at it; every third goes past freshet.
pub(crate) const WRITERS: u64 = 5;

/// Both of a ward or couple; outside of SERIALIZABLE they are answered here.
const DOCTORS: &str = "SELECT doctor, duty FROM doctors WHERE ward = $1 ORDER BY doctor";
const ONE_DOCTOR: &str = "SELECT duty FROM doctors WHERE ward = $1 AND doctor = $2";
const JOINT: &str = "SELECT side, balance FROM joint WHERE couple = $1 ORDER BY side";
/// All of them, for readers.
pub(crate) const DUTIES: &str = "SELECT ward, sum(duty) FROM doctors GROUP BY ward ORDER BY ward";
pub(crate) const HOLDINGS: &str = "SELECT couple, sum(balance) FROM joint GROUP BY couple ORDER BY couple";

pub(crate) fn schema() -> String {
    format!(
        "CREATE TABLE doctors (ward int, doctor int, duty int NOT NULL, PRIMARY KEY (ward, doctor));
         CREATE TABLE joint (couple int, side int, balance bigint NOT NULL, PRIMARY KEY (couple, side));
         INSERT INTO doctors SELECT w, d, 1 FROM generate_series(0, {WARDS} - 1) w, generate_series(0, 1) d;
         INSERT INTO joint SELECT c, s, 50 FROM generate_series(0, {COUPLES} - 1) c, generate_series(0, 1) s;"
    )
}

/// Statements to be compared with PostgreSQL while nothing changes, so that nothing but the isolation level keeps them from being
/// answered here.
pub(crate) fn shapes() -> Vec<(&'static str, Vec<Option<&'static str>>)> {
    vec![
        (DOCTORS, vec![Some("0")]),
        (ONE_DOCTOR, vec![Some("0"), Some("1")]),
        (JOINT, vec![Some("0")]),
        (DUTIES, vec![]),
        (HOLDINGS, vec![]),
    ]
}

/// How a transaction comes to be serializable.
const SERIALIZABLE: [&[&str]; 4] = [
    &["BEGIN ISOLATION LEVEL SERIALIZABLE"],
    &["BEGIN", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"],
    &["SET default_transaction_isolation = 'serializable'", "BEGIN"],
    &["BEGIN", "SET transaction_isolation = 'serializable'"],
];

/// Writes until the end.
pub(crate) fn write(world: &World, number: u64) {
    let is_through = !number.is_multiple_of(3);
    let setup = ["SET lock_timeout = '3s'"];
    let client = if is_through { world.through(&setup) } else { world.past(&setup) };
    let mut writer = Writer { world, is_through, client, random: world.random(900 + number) };
    while world.goes_on() {
        let gate = world.write_gate(is_through);
        let outcome = writer.transaction();
        drop(gate);
        match outcome {
            Ok(()) => world.count("serializable transactions committed"),
            Err(Trouble::Lost) => world.count("writes lost"),
            Err(Trouble::Refused { state, .. }) if state == "40001" => {
                world.count("serializable transactions refused 40001");
                if writer.client.run("ROLLBACK; RESET default_transaction_isolation").is_err() {
                    writer.client.hang_up();
                }
                // Again at once, as an application does.
                continue;
            }
            Err(Trouble::Refused { state, message }) => {
                world.count(&format!("writes refused {state}"));
                world.note(&format!("serializable: {state} {message}"));
                writer.client.hang_up();
            }
        }
        pause(&mut writer.random, 150);
    }
}

struct Writer<'a> {
    world: &'a World,
    is_through: bool,
    client: Client,
    random: Random,
}

impl Writer<'_> {
    fn transaction(&mut self) -> Result<(), Trouble> {
        let begin = *self.random.pick(&SERIALIZABLE);
        for sql in begin {
            self.client.run(sql)?;
        }
        if self.random.one_in(2) {
            self.ward()?
        } else {
            self.couple()?
        }
        self.client.run("COMMIT")?;
        if begin.len() > 1 {
            self.client.run("RESET default_transaction_isolation")?;
        }
        Ok(())
    }

    /// A doctor goes off duty if the other one is on it, and comes back at any time.
    fn ward(&mut self) -> Result<(), Trouble> {
        let (ward, doctor) = (self.random.below(WARDS).to_string(), self.random.below(2).to_string());
        let duties: i64 = if self.random.one_in(2) {
            self.read(DOCTORS, &[&ward])?.iter().map(|row| row[1]).sum()
        } else {
            let first = self.read(ONE_DOCTOR, &[&ward, "0"])?;
            pause(&mut self.random, 3);
            let second = self.read(ONE_DOCTOR, &[&ward, "1"])?;
            first.iter().chain(&second).map(|row| row[0]).sum()
        };
        if duties == 0 {
            self.violated(format!("nobody of ward {ward} is on call"));
        }
        let duty = i64::from(duties < 2 || self.random.one_in(3));
        pause(&mut self.random, 6);
        self.client.run(&format!("UPDATE doctors SET duty = {duty} WHERE ward = {ward} AND doctor = {doctor}"))?;
        Ok(())
    }

    /// One of a couple takes out what both have, or pays in.
    fn couple(&mut self) -> Result<(), Trouble> {
        let (couple, side) = (self.random.below(COUPLES).to_string(), self.random.below(2));
        let held: i64 = self.read(JOINT, &[&couple])?.iter().map(|row| row[1]).sum();
        if held < 0 {
            self.violated(format!("couple {couple} has {held}"));
        }
        let by = if held == 0 { 60 } else { -held.min(60) };
        pause(&mut self.random, 6);
        self.client
            .run(&format!("UPDATE joint SET balance = balance + {by} WHERE couple = {couple} AND side = {side}"))?;
        Ok(())
    }

    /// Within the transaction; what was decided by anything else than upstream's own rows is a finding even if it did no harm.
    fn read(&mut self, sql: &str, parameters: &[&str]) -> Result<Vec<Vec<i64>>, Trouble> {
        let parameters: Vec<Option<&str>> = parameters.iter().map(|text| Some(*text)).collect();
        let form = Form::Extended(&parameters);
        let read = if self.is_through { self.client.read(sql, &form)? } else { self.client.read_past(sql, &form)? };
        if let Some(trouble) = read.trouble() {
            return Err(trouble);
        }
        // Where that is planted, the harm that it does has to be found.
        if read.is_local() && !self.world.stop_at_first {
            self.violated(format!("{sql} was answered here ({:?}) within a serializable transaction", read.route));
        }
        self.world.count("reads within serializable transactions");
        read.numbers().ok_or(Trouble::Lost)
    }

    fn violated(&self, text: String) {
        let how = if self.is_through { "through freshet" } else { "past it" };
        self.world.violated(Kind::Wrong, format!("write skew ({how}): {text}"));
    }
}

/// What [`DUTIES`] or [`HOLDINGS`] gave: no ward without a doctor, no couple in debt.
pub(crate) fn check(world: &World, sql: &str, read: &Read) {
    let (rows_expected, least) = if sql == DUTIES { (WARDS, 1) } else { (COUPLES, 0) };
    let is_right = |rows: &Vec<Vec<i64>>| rows.len() as u64 == rows_expected && rows.iter().all(|row| row[1] >= least);
    if !read.numbers().as_ref().is_some_and(is_right) {
        world.violated(Kind::Wrong, format!("write skew: {sql}: {:?} ({:?})", read.numbers(), read.route));
    }
}

/// Why a run has not tried it: in one that is long enough to have, transactions were committed and refused.
pub(crate) fn is_tried(world: &World) -> bool {
    let committed = world.counter("serializable transactions committed");
    let refused = world.counter("serializable transactions refused 40001");
    committed > 20 && refused > 0
}
