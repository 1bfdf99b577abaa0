//! Writers: registers in every form of commit, and money between two tables.
//!
//! A register's statements only ever raise it (`AND value < n`): what a lost connection left behind, and takes effect
//! late, cannot lower it again.

use std::sync::atomic::Ordering::SeqCst;

use crate::client::{Client, Trouble};
use crate::ledger::{REGISTERS, locked};
use crate::random::Random;
use crate::world::{Mode, World, pause};

/// How a register is written; each of the two halves of the registers has one of each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    Plain,
    Asynchronous,
    TwoPhase,
    Slow,
}

const COMMITS: [Commit; 4] = [Commit::Plain, Commit::Asynchronous, Commit::TwoPhase, Commit::Slow];
const ASYNCHRONOUS: &str = "SET synchronous_commit = off";
/// A transaction that was lost between PREPARE and COMMIT PREPARED holds its locks until it is settled.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '3s'";

/// Raises one register until the end.
pub(crate) fn write_register(world: &World, register: usize) {
    let commit = match COMMITS[register % COMMITS.len()] {
        // It would not wait for freshet: then nothing is promised until that is noticed.
        Commit::Asynchronous if world.mode == Mode::Standby => Commit::Plain,
        commit => commit,
    };
    let name = format!("SET application_name = 'register-{register}'");
    let setup = [LOCK_TIMEOUT, &name, if commit == Commit::Asynchronous { ASYNCHRONOUS } else { "" }];
    let is_through = register >= crate::ledger::FIRST_THROUGH;
    let client = if is_through { world.through(&setup) } else { world.past(&setup) };
    let random = world.random(100 + register as u64);
    let mut writer =
        RegisterWriter { world, register, commit, client, random, value: 0, session: 0, was_cancelled: false };
    while world.goes_on() {
        let _gate = world.write_gate(is_through);
        let _kept = (commit == Commit::Asynchronous)
            .then(|| world.asynchronous.read().unwrap_or_else(std::sync::PoisonError::into_inner));
        match writer.write() {
            Ok(()) => {}
            Err(Trouble::Lost) => world.count("writes lost"),
            Err(Trouble::Refused { state, message }) => {
                world.count(&format!("writes refused {state}"));
                world.note(&format!("register {register}: {state} {message}"));
                writer.client.hang_up();
            }
        }
        drop(_kept);
        drop(_gate);
        pause(&mut writer.random, 12);
    }
}

struct RegisterWriter<'a> {
    world: &'a World,
    register: usize,
    commit: Commit,
    client: Client,
    random: Random,
    value: i64,
    session: u64,
    /// The commit at hand did not wait for freshet to the end.
    was_cancelled: bool,
}

impl RegisterWriter<'_> {
    fn write(&mut self) -> Result<(), Trouble> {
        if self.session != self.client.session || self.session == 0 {
            self.settle()?;
            self.session = self.client.session;
            self.world.hazards.is_escaping[self.register].1.store(false, SeqCst);
            locked(&self.world.hazards.keys)[self.register] = self.client.key();
        }
        self.escape()?;
        self.was_cancelled = false;
        self.value += 1;
        let is_pair = self.commit == Commit::TwoPhase || self.random.below(10) < 6;
        match (is_pair, self.commit) {
            (true, Commit::TwoPhase) => self.two_phase()?,
            (true, _) => self.pair()?,
            (false, _) => self.solo()?,
        }
        let slot = if is_pair { self.register } else { REGISTERS + self.register };
        let grace = self.world.hazards.grace(self.register, self.was_cancelled);
        self.world.registers.acknowledge(slot, self.value, grace);
        self.world.count("writes");
        if self.was_cancelled {
            self.world.count("writes acknowledged with their wait cancelled");
        }
        Ok(())
    }

    /// Ends what an earlier session prepared and could not end.
    fn settle(&mut self) -> Result<(), Trouble> {
        let list = format!("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'register-{}-%'", self.register);
        for row in self.client.run(&list)?.rows() {
            let gid = row.into_iter().flatten().next().unwrap_or_default();
            let gid = String::from_utf8_lossy(&gid).into_owned();
            let verb = if gid.contains("-keep-") { "COMMIT" } else { "ROLLBACK" };
            self.run(&format!("{verb} PREPARED '{gid}'"))?;
        }
        Ok(())
    }

    /// Commits without waiting for freshet, or with it again, as is wanted by now.
    fn escape(&mut self) -> Result<(), Trouble> {
        let (is_wanted, is_so) = &self.world.hazards.is_escaping[self.register];
        let is_wanted = is_wanted.load(SeqCst);
        if is_wanted == is_so.load(SeqCst) {
            return Ok(());
        }
        let to = *self.random.pick(&["local", "off"]);
        // What is said in advance holds for what comes in between.
        if is_wanted {
            is_so.store(true, SeqCst);
            return self.client.run(&format!("SET synchronous_commit = {to}")).map(|_| ());
        }
        self.client.run("RESET synchronous_commit")?;
        is_so.store(false, SeqCst);
        Ok(())
    }

    fn run(&mut self, sql: &str) -> Result<(), Trouble> {
        let reply = self.client.run(sql)?;
        let is_warning = |body: &&[u8]| String::from_utf8_lossy(body).contains("canceling wait for synchronous");
        self.was_cancelled |= reply.bodies(b'N').iter().any(is_warning);
        Ok(())
    }

    fn set(&self, table: &str, value: i64) -> String {
        format!("UPDATE {table} SET value = {value} WHERE id = {} AND value < {value}", self.register)
    }

    /// A value that must never be seen.
    fn poison(&self) -> String {
        format!("UPDATE registers SET value = {} WHERE id = {}", 1_000_000_000 + self.value, self.register)
    }

    /// Both tables that hold the value, in one transaction.
    fn pair(&mut self) -> Result<(), Trouble> {
        let (first, second) = (self.set("registers", self.value), self.set("copies", self.value));
        match self.random.below(6) {
            0 => self.run(&format!("{first}; {second}")),
            1 => {
                self.run("BEGIN; SAVEPOINT s")?;
                self.run(&self.poison())?;
                self.run("ROLLBACK TO s")?;
                self.run(&format!("{first}; SAVEPOINT t; {second}; RELEASE t"))?;
                self.run("COMMIT")
            }
            2 => {
                self.run("BEGIN")?;
                self.run(&self.poison())?;
                self.run("ROLLBACK")?;
                self.run(&format!("BEGIN; {first}; {second}; COMMIT"))
            }
            3 => self.run(&format!("WITH other AS ({second}) {first}")),
            4 => self.run(&format!("DO $$ BEGIN {first}; {second}; END $$")),
            _ => {
                self.run("BEGIN")?;
                self.run(&first)?;
                if self.commit == Commit::Slow {
                    pause(&mut self.random, 40);
                }
                self.run(&second)?;
                self.run("COMMIT")
            }
        }
    }

    fn two_phase(&mut self) -> Result<(), Trouble> {
        if self.random.one_in(4) {
            let gid = format!("register-{}-drop-{}", self.register, self.value);
            self.run("BEGIN")?;
            self.run(&self.poison())?;
            self.run(&format!("PREPARE TRANSACTION '{gid}'"))?;
            pause(&mut self.random, 10);
            self.run(&format!("ROLLBACK PREPARED '{gid}'"))?;
        }
        let gid = format!("register-{}-keep-{}", self.register, self.value);
        self.run("BEGIN")?;
        self.run(&self.set("registers", self.value))?;
        self.run(&self.set("copies", self.value))?;
        self.run(&format!("PREPARE TRANSACTION '{gid}'"))?;
        pause(&mut self.random, 20);
        self.run(&format!("COMMIT PREPARED '{gid}'"))
    }

    /// The table that is written alone: by statement, by trigger, by function, by an SQL-level prepared statement.
    fn solo(&mut self) -> Result<(), Trouble> {
        let (register, value) = (self.register, self.value);
        match self.random.below(5) {
            0 => self.run(&format!("UPDATE triggered SET n = {value} WHERE id = {register}")),
            1 => self.run(&format!("SELECT raise_solo({register}, {value})")),
            2 => {
                self.run(&format!("PREPARE raise AS {}", self.set("solo", value)))?;
                self.run("EXECUTE raise")?;
                self.run("DEALLOCATE raise")
            }
            3 => self.run(&format!(
                "INSERT INTO solo VALUES ({register}, {value})
                 ON CONFLICT (id) DO UPDATE SET value = excluded.value WHERE solo.value < excluded.value"
            )),
            _ => self.run(&self.set("solo", value)),
        }
    }
}

pub(crate) const ACCOUNTS: u64 = 12;
pub(crate) const TOTAL: i64 = ACCOUNTS as i64 * 200;

/// Moves money within and between two tables until the end; the total never changes.
pub(crate) fn transfer(world: &World, is_through: bool) {
    write_on(world, is_through, &Work { worker: 200, counts_as: "transfers", pause_ms: 16, write: move_money });
}

/// What a writer does again and again, so that whatever of it is lost leaves the tables as they may be.
pub(crate) struct Work {
    /// Of the one past freshet; the one through it has the next number.
    pub(crate) worker: u64,
    pub(crate) counts_as: &'static str,
    pub(crate) pause_ms: u64,
    pub(crate) write: fn(&mut Client, &mut Random) -> Result<(), Trouble>,
}

/// Writes until the end; past freshet without waiting for the disk.
pub(crate) fn write_on(world: &World, is_through: bool, work: &Work) {
    let setup = [LOCK_TIMEOUT, if is_through || world.mode == Mode::Standby { "" } else { ASYNCHRONOUS }];
    let mut client = if is_through { world.through(&setup) } else { world.past(&setup) };
    let mut random = world.random(work.worker + u64::from(is_through));
    while world.goes_on() {
        let _gate = world.write_gate(is_through);
        let _kept = world.asynchronous.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        match (work.write)(&mut client, &mut random) {
            Ok(()) => world.count(work.counts_as),
            Err(Trouble::Lost) => world.count("writes lost"),
            Err(Trouble::Refused { state, .. }) => {
                world.count(&format!("writes refused {state}"));
                client.hang_up();
            }
        }
        drop(_kept);
        drop(_gate);
        pause(&mut random, work.pause_ms);
    }
}

fn move_money(client: &mut Client, random: &mut Random) -> Result<(), Trouble> {
    let mut account = || (*random.pick(&["accounts", "savings"]), random.below(ACCOUNTS));
    let mut ends = [(account(), -1_i64), (account(), 1)];
    // Always in the same order, so that two transfers do not deadlock.
    ends.sort();
    let amount = random.below(10) as i64;
    client.run("BEGIN")?;
    for ((table, id), sign) in ends {
        client.run(&format!(
            "UPDATE {table} SET balance = balance + {}, version = version + 1 WHERE id = {id}",
            sign * amount
        ))?;
    }
    client.run(if random.one_in(5) { "ROLLBACK" } else { "COMMIT" })?;
    Ok(())
}
