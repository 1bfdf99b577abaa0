//! Faults, one after the other: processes killed and stopped, connections cut and delayed, tables and publication changed
//! under the readers. Each is over before the next begins.

use std::process::Command;
use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;

use crate::client::{Client, Trouble};
use crate::fault::{DIRECTIONS, FaultProxy, KINDS};
use crate::random::Random;
use crate::serve::{Served, Serving};
use crate::world::World;

/// What can happen, by name: `--nemeses` chooses.
pub(crate) const NAMES: &[&str] = &[
    "walsender-terminated",
    "barrier-terminated",
    "walsender-stopped",
    "barrier-stopped",
    "freshet-killed",
    "freshet-stopped",
    "postmaster-killed",
    "postmaster-restarted",
    "walsender-killed",
    "delay",
    "cut",
    "reset",
    "publication-dropped",
    "publication-shrunk",
    "rewrite",
    "altered",
    "truncated-copy",
    "log-switched",
    "idle-in-transaction",
    "identity-changed",
    "slot-dropped",
    "catalog-rewritten",
];

/// Likewise, in mode standby only.
pub(crate) const STANDBY_NAMES: &[&str] =
    &["wait-cancelled", "wait-terminated", "wait-cancel-requested", "names-cleared", "commit-escaped", "restart-race"];

pub(crate) struct Nemesis<'a> {
    pub(crate) world: &'a World,
    pub(crate) cluster: &'a Cluster,
    pub(crate) faults: &'a FaultProxy,
    pub(crate) freshet: Option<Served>,
    /// How freshet is started again.
    pub(crate) serving: Serving,
    pub(crate) names: Vec<&'static str>,
    /// Between two of them it is calm for up to about so long.
    pub(crate) calm_ms: u64,
}

impl Nemesis<'_> {
    /// Torments until `end`; then everything works again.
    pub(crate) fn torment(&mut self, end: Instant) {
        let mut random = self.world.random(800);
        let mut client = self.world.past(&["SET lock_timeout = '2s'", "SET client_min_messages = warning"]);
        while self.world.goes_on() && Instant::now() < end {
            self.rest(Duration::from_millis(400 + random.below(self.calm_ms)));
            if self.names.is_empty() || !self.world.goes_on() {
                continue;
            }
            let name = *random.pick(&self.names);
            self.world.count(&format!("nemesis {name}"));
            self.world.note(name);
            self.world.break_off();
            if let Err(trouble) = self.strike(name, &mut random, &mut client) {
                self.world.note(&format!("{name}: {trouble:?}"));
                client.hang_up();
            }
            self.faults.mend();
            self.world.calm_down();
        }
        self.faults.mend();
    }

    /// Waits, but not past the end of the run.
    pub(crate) fn rest(&self, time: Duration) {
        let end = Instant::now() + time;
        while self.world.goes_on() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn strike(&mut self, name: &str, random: &mut Random, client: &mut Client) -> Result<(), Trouble> {
        let short = Duration::from_millis(50 + random.below(1_200));
        match name {
            "walsender-terminated" => terminate(client, WALSENDER)?,
            "barrier-terminated" => terminate(client, BARRIER)?,
            "walsender-stopped" => self.stop(client, WALSENDER, short)?,
            "barrier-stopped" => self.stop(client, BARRIER, short)?,
            "freshet-killed" => self.restart_freshet(),
            "freshet-stopped" => {
                let process = self.freshet.as_ref().map(Served::process).unwrap_or_default();
                self.pause_processes(&[process.to_string()], short / 2);
            }
            "postmaster-killed" => self.without_asynchronous(client, |nemesis| {
                nemesis.cluster.kill();
                nemesis.cluster.restart();
            }),
            "postmaster-restarted" => {
                self.cluster.stop();
                self.cluster.restart();
            }
            "walsender-killed" => {
                let processes = processes(client, WALSENDER)?;
                self.without_asynchronous(client, |nemesis| {
                    signal("KILL", &processes);
                    nemesis.await_crash();
                });
            }
            "delay" => {
                let kind = *random.pick(&KINDS);
                for direction in DIRECTIONS {
                    if !random.one_in(3) {
                        self.faults.delay(kind, direction, 1 + random.below(40));
                    }
                }
                self.rest(short);
            }
            "cut" => {
                self.faults.cut(*random.pick(&KINDS), *random.pick(&DIRECTIONS));
                self.rest(short);
            }
            "reset" => self.faults.reset(*random.pick(&KINDS)),
            "publication-dropped" => {
                for publication in publications(client)? {
                    client.run(&format!("DROP PUBLICATION {publication}"))?;
                }
            }
            "publication-shrunk" => {
                for publication in publications(client)? {
                    client.run(&if random.one_in(2) {
                        format!("ALTER PUBLICATION {publication} DROP TABLE registers, entries")
                    } else {
                        format!("ALTER PUBLICATION {publication} SET (publish = 'insert')")
                    })?;
                }
            }
            "rewrite" => {
                let table = random.pick(&["registers", "entries", "accounts", "solo"]);
                client.run(&format!("VACUUM FULL {table}"))?;
            }
            "altered" => {
                let table = random.pick(&["registers", "copies", "savings", "entries"]);
                client.run(&format!("ALTER TABLE {table} ADD COLUMN extra int DEFAULT 1"))?;
                self.rest(short / 4);
                client.run(&format!("ALTER TABLE {table} DROP COLUMN extra"))?;
            }
            // The same contents, from a new file: a copy that missed it would stay empty.
            "truncated-copy" => {
                client.run(
                    "BEGIN; LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE; CREATE TEMP TABLE kept AS TABLE accounts; \
                     TRUNCATE accounts; INSERT INTO accounts SELECT * FROM kept; DROP TABLE kept; COMMIT",
                )?;
            }
            "log-switched" => {
                client.run("SELECT pg_switch_wal()")?;
                client.run("CHECKPOINT")?;
                client.run("SELECT pg_switch_wal()")?;
            }
            "idle-in-transaction" => {
                client.run("BEGIN; INSERT INTO idle VALUES (1)")?;
                self.rest(short * 2);
                client.run(if random.one_in(2) { "ROLLBACK" } else { "COMMIT" })?;
            }
            "identity-changed" => {
                let table = random.pick(&["registers", "entries", "savings"]);
                client.run(&format!("ALTER TABLE {table} REPLICA IDENTITY FULL"))?;
                self.rest(short);
                client.run(&format!("ALTER TABLE {table} REPLICA IDENTITY DEFAULT"))?;
            }
            "slot-dropped" => {
                terminate(client, WALSENDER)?;
                client.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")?;
            }
            "catalog-rewritten" => self.rewrite_catalog(random)?,
            _ => self.strike_at_standby(name, random)?,
        }
        Ok(())
    }

    pub(crate) fn restart_freshet(&mut self) {
        self.freshet = None;
        match Served::start(&self.serving, self.world.through.port()) {
            Ok(served) => self.freshet = Some(served),
            Err(error) => self.world.note(&format!("freshet does not start: {error}")),
        }
    }

    fn stop(&self, client: &mut Client, which: &str, time: Duration) -> Result<(), Trouble> {
        let processes = processes(client, which)?;
        self.pause_processes(&processes, time);
        Ok(())
    }

    fn pause_processes(&self, processes: &[String], time: Duration) {
        signal("STOP", processes);
        self.rest(time);
        signal("CONT", processes);
    }

    /// Until the postmaster has noticed that a backend was killed, has ended all others and begun anew: a commit that is
    /// acknowledged meanwhile may be lost.
    fn await_crash(&self) {
        let mut client = self.world.past(&[]);
        let limit = Instant::now() + Duration::from_secs(10);
        while client.run("SELECT 1").is_ok() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        while client.run("SELECT 1").is_err() && Instant::now() < limit {}
    }

    /// A crash may lose commits that were acknowledged before they were flushed: none is under way, and all are flushed.
    fn without_asynchronous(&self, client: &mut Client, crash: impl FnOnce(&Self)) {
        let world = self.world;
        let _none = world.asynchronous.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A synchronous commit flushes everything before it.
        if client.run("INSERT INTO idle VALUES (2)").is_ok() {
            crash(self);
        }
    }
}

const WALSENDER: &str = "backend_type = 'walsender'";
const BARRIER: &str = "application_name LIKE 'freshet%' AND backend_type = 'client backend' \
                       AND query LIKE '%pg_current_snapshot%'";

fn processes(client: &mut Client, which: &str) -> Result<Vec<String>, Trouble> {
    texts(client, &format!("SELECT pid::text FROM pg_stat_activity WHERE {which} AND pid <> pg_backend_pid()"))
}

fn publications(client: &mut Client) -> Result<Vec<String>, Trouble> {
    texts(client, "SELECT pubname FROM pg_publication WHERE pubname LIKE 'freshet%'")
}

pub(crate) fn texts(client: &mut Client, sql: &str) -> Result<Vec<String>, Trouble> {
    let rows = client.run(sql)?.rows();
    let cells = rows.into_iter().flatten().flatten();
    Ok(cells.map(|cell| String::from_utf8_lossy(&cell).into_owned()).collect())
}

fn terminate(client: &mut Client, which: &str) -> Result<(), Trouble> {
    let sql =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {which} AND pid <> pg_backend_pid()");
    client.run(&sql).map(|_| ())
}

/// Only to processes of this run: freshet's own, and backends of this run's cluster.
fn signal(signal: &str, processes: &[String]) {
    if !processes.is_empty() {
        let _ = Command::new("kill").arg(format!("-{signal}")).args(processes).status();
    }
}
