//! What breaks only where every commit waits for freshet: waits that are cancelled, the list of standbys emptied, commits that do not
//! wait. [`Hazards`] says what is not promised meanwhile, and for how long:
//!
//! - A commit whose wait was cancelled may be missed for `max_lag_ms`, if it was made past freshet. Made through it, it is seen as
//!   soon as it is acknowledged.
//! - All commits may be missed as long that come when freshet's name has just been taken out of the list.
//! - What a session with `synchronous_commit` off commits past freshet may be missed as long, until freshet has noticed.
//!
//! What nobody has acknowledged, but somebody has seen, may be missed again as long. Every other commit counts at once, as ever.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use freshet_tests::raw::RawClient;

use crate::client::{Client, Trouble};
use crate::fault::{DIRECTIONS, Kind};
use crate::ledger::{FIRST_THROUGH, REGISTERS, locked};
use crate::nemesis::{Nemesis, texts};
use crate::random::Random;
use crate::readers::{self, LAG_MAX};
use crate::world::{self, Mode, World};

/// How long a state is waited for that need not come.
const WAIT: Duration = Duration::from_secs(4);
/// Likewise, while nobody may write.
const CAUGHT_UP_MAX: Duration = Duration::from_millis(800);
/// Within this commits that wait for nobody any more have to end.
const RELEASE_MAX: Duration = Duration::from_secs(20);
/// Whose commits do not wait for a while: one past freshet, one through it.
const ESCAPERS: [usize; 2] = [0, FIRST_THROUGH];

/// What a long run must have come to.
pub(crate) const WAYS: [&str; 4] = [
    "writes acknowledged with their wait cancelled",
    "commits released by an empty list",
    "escaped commits noticed",
    "restarts while commits waited",
];

const WAITING: &str = "wait_event = 'SyncRep' AND application_name LIKE 'register-%'";

/// By backend, where a CancelRequest for it goes and what it says.
type Key = (SocketAddr, [u8; 8]);

#[derive(Default)]
pub(crate) struct Hazards {
    /// What was seen need not be seen again, in reads that begin before that; the second: nor what was acknowledged.
    lenient: [Mutex<Lenience>; 2],
    /// From when on freshet may not be in the list.
    cleared: Mutex<Option<Instant>>,
    /// Of each register, whether its writer is to commit without waiting, and whether it does.
    pub(crate) is_escaping: [(AtomicBool, AtomicBool); REGISTERS],
    /// freshet has noticed them.
    is_noticed: AtomicBool,
    /// How the statement of a register's writer is cancelled.
    pub(crate) keys: Mutex<[Option<Key>; REGISTERS]>,
}

#[derive(Default)]
struct Lenience {
    is_open: bool,
    until: Option<Instant>,
}

impl Lenience {
    fn covers(&self, at: Instant) -> bool {
        self.is_open || self.until.is_some_and(|until| at < until)
    }
}

/// What may be missed for a while.
#[derive(Clone, Copy)]
enum Missed {
    Seen,
    Acknowledged,
}

impl Hazards {
    /// Whether a read that began then may miss what was seen before.
    pub(crate) fn excuse_seen(&self, at: Instant) -> bool {
        self.lenient.iter().any(|lenience| locked(lenience).covers(at))
    }

    /// Whether a read that began then may miss what was acknowledged.
    pub(crate) fn excuse_acknowledged(&self, at: Instant) -> bool {
        locked(&self.lenient[Missed::Acknowledged as usize]).covers(at)
    }

    /// How long a register's commit that is acknowledged now may be missed.
    pub(crate) fn grace(&self, register: usize, was_cancelled: bool) -> Duration {
        let is_past = register < FIRST_THROUGH;
        let left = locked(&self.cleared).map(|at| LAG_MAX.saturating_sub(at.elapsed())).unwrap_or_default();
        let is_escaped = self.is_escaping[register].1.load(SeqCst) && !self.is_noticed.load(SeqCst);
        if is_past && (was_cancelled || is_escaped) { LAG_MAX } else { left }
    }

    fn begin(&self, missed: Missed) {
        locked(&self.lenient[missed as usize]).is_open = true;
    }

    fn end(&self, missed: Missed, after: Duration) {
        *locked(&self.lenient[missed as usize]) = Lenience { is_open: false, until: Some(Instant::now() + after) };
    }
}

impl Nemesis<'_> {
    pub(crate) fn strike_at_standby(&mut self, name: &str, random: &mut Random) -> Result<(), Trouble> {
        if self.world.mode != Mode::Standby {
            return Ok(());
        }
        // From another database: where a table of the catalog is locked nobody gets in.
        let mut client = Client::new(self.world.direct, "postgres", "postgres", &[]);
        let client = &mut client;
        // What is written through freshet makes it ask anew, since it cannot tell of some writes what they do: then it has nothing to
        // rely on. Where nobody does for a while, reads need no round trip, and miss what freshet was not told of.
        let world = self.world;
        let is_quiet = random.one_in(2);
        let _quiet = is_quiet.then(|| world.through_gate.write().unwrap_or_else(PoisonError::into_inner));
        match name {
            "wait-cancelled" => self.cancel_waits(client, random, "pg_cancel_backend")?,
            "wait-terminated" => self.cancel_waits(client, random, "pg_terminate_backend")?,
            "wait-cancel-requested" => self.cancel_waits(client, random, "")?,
            "names-cleared" => self.clear_names(client, random)?,
            "commit-escaped" => self.let_commits_escape(client, random)?,
            "restart-race" => self.restart_while_waiting(client, random)?,
            _ => {}
        }
        Ok(())
    }

    /// Freshet's stream is held up until some register's commit waits for it; false: none came to.
    fn hold_commits(&self, client: &mut Client, random: &mut Random) -> Result<bool, Trouble> {
        {
            // What has been received must have been shown, else freshet asks.
            let none = random.one_in(2).then(|| self.world.gate.write().unwrap_or_else(PoisonError::into_inner));
            let mut through = self.world.through(&[]);
            let limit = Instant::now() + CAUGHT_UP_MAX;
            while none.is_some() && Instant::now() < limit && !readers::is_known_at_once(&mut through) {
                std::thread::sleep(Duration::from_millis(10));
            }
            self.faults.cut(Kind::Walsender, *random.pick(&DIRECTIONS));
        }
        self.wait_until(client, &format!("SELECT pid::text FROM pg_stat_activity WHERE {WAITING}"), true)
    }

    /// Until there are rows, or none.
    fn wait_until(&self, client: &mut Client, sql: &str, are_wanted: bool) -> Result<bool, Trouble> {
        let limit = Instant::now() + WAIT;
        while self.world.goes_on() && Instant::now() < limit {
            if texts(client, sql)?.is_empty() != are_wanted {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }

    /// `by` a function of PostgreSQL's, or by cancel requests, through freshet for who is there.
    fn cancel_waits(&mut self, client: &mut Client, random: &mut Random, by: &str) -> Result<(), Trouble> {
        let hazards = &self.world.hazards;
        if self.hold_commits(client, random)? {
            hazards.begin(Missed::Seen);
            for _ in 0..random.below(8) + 1 {
                self.cancel(client, by, WAITING)?;
                self.rest(Duration::from_millis(random.below(200)));
            }
            // Until all have gone that were asked to: others come to wait behind them.
            let now = texts(client, "SELECT clock_timestamp()::text")?.concat();
            let victims = format!("{WAITING} AND query_start < '{now}'");
            let limit = Instant::now() + WAIT;
            while self.cancel(client, by, &victims)? > 0 && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(5));
            }
            hazards.end(Missed::Seen, LAG_MAX);
            // Nothing more is excused, while the stream is still held up.
            self.rest(Duration::from_millis(random.below(1_500)));
        }
        self.faults.mend();
        self.regain_trust();
        Ok(())
    }

    /// How many waits were asked to end.
    fn cancel(&self, client: &mut Client, by: &str, victims: &str) -> Result<usize, Trouble> {
        let names = format!("SELECT application_name FROM pg_stat_activity WHERE {victims}");
        if by.is_empty() {
            let waiting = texts(client, &names)?;
            waiting.iter().for_each(|name| self.request_cancel(name));
            return Ok(waiting.len());
        }
        let cancelled = client.run(&format!("SELECT {by}(pid) FROM pg_stat_activity WHERE {victims}"))?.rows().len();
        self.world.add("waits for freshet cancelled", cancelled as u64);
        Ok(cancelled)
    }

    fn request_cancel(&self, name: &str) {
        let register = name.strip_prefix("register-").and_then(|number| number.parse::<usize>().ok());
        let Some(Some((address, key))) = register.map(|register| locked(&self.world.hazards.keys)[register]) else {
            return;
        };
        self.world.count("waits for freshet cancelled by request");
        let _ = RawClient::cancel(address, key);
    }

    /// The list of standbys is emptied while freshet cannot know: what it showed last is believed for `max_lag_ms` and no longer.
    fn clear_names(&mut self, client: &mut Client, random: &mut Random) -> Result<(), Trouble> {
        if self.hold_commits(client, random)? {
            if random.one_in(2) {
                // Nor can it ask.
                self.faults.cut(Kind::Own, *random.pick(&DIRECTIONS));
            }
            self.release_commits(client)?;
            self.world.count("commits released by an empty list");
            self.rest(Duration::from_millis(500 + random.below(2_000)));
        }
        self.faults.mend();
        self.name_freshet(client)?;
        self.regain_trust();
        Ok(())
    }

    fn release_commits(&self, client: &mut Client) -> Result<(), Trouble> {
        let hazards = &self.world.hazards;
        hazards.begin(Missed::Acknowledged);
        *locked(&hazards.cleared) = Some(Instant::now());
        client.run("ALTER SYSTEM SET synchronous_standby_names = ''")?;
        client.run("SELECT pg_reload_conf()")?;
        // The checkpointer lets them go, when it has read that.
        let released =
            self.wait_until(client, "SELECT pid::text FROM pg_stat_activity WHERE wait_event = 'SyncRep'", false);
        *locked(&hazards.cleared) = Some(Instant::now());
        hazards.end(Missed::Acknowledged, LAG_MAX);
        released.map(|_| ())
    }

    fn name_freshet(&self, client: &mut Client) -> Result<(), Trouble> {
        client.run("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (freshet)'")?;
        client.run("SELECT pg_reload_conf()")?;
        *locked(&self.world.hazards.cleared) = None;
        Ok(())
    }

    /// Two writers commit without waiting, until that has been noticed and for a while after: then all is as in mode exact.
    fn let_commits_escape(&mut self, client: &mut Client, random: &mut Random) -> Result<(), Trouble> {
        let hazards = &self.world.hazards;
        hazards.begin(Missed::Seen);
        let escape =
            |wanted| ESCAPERS.iter().for_each(|register| hazards.is_escaping[*register].0.store(wanted, SeqCst));
        escape(true);
        let was_noticed = self.wait_for_state("as exact: a commit did not wait", Duration::from_secs(10));
        if was_noticed {
            self.world.count("escaped commits noticed");
            hazards.is_noticed.store(true, SeqCst);
            self.world.registers.count_at_once();
        }
        hazards.end(Missed::Seen, if was_noticed { Duration::ZERO } else { LAG_MAX });
        if was_noticed {
            self.rest(Duration::from_millis(500 + random.below(1_500)));
        }
        escape(false);
        let is_over = || ESCAPERS.iter().all(|register| !hazards.is_escaping[*register].1.load(SeqCst));
        let limit = Instant::now() + WAIT;
        while !is_over() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        hazards.is_noticed.store(false, SeqCst);
        // On the disk, before anything crashes.
        client.run("SELECT pg_logical_emit_message(true, 'checker', '')")?;
        if is_over() {
            self.regain_trust();
        }
        Ok(())
    }

    /// Whether `freshet.status` comes to say so.
    fn wait_for_state(&self, expected: &str, time: Duration) -> bool {
        let mut through = self.world.through(&[]);
        let limit = Instant::now() + time;
        while self.world.goes_on() && Instant::now() < limit {
            if world::standby_state(&mut through).is_some_and(|state| state.starts_with(expected)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// A freshet that has noticed an escape (it may also take one for such that was made while the list was empty) distrusts for a minute or longer: one that is started anew does not.
    fn regain_trust(&mut self) {
        if self.wait_for_state("as exact: a commit did not wait", Duration::from_millis(700)) {
            self.restart_freshet();
        }
    }

    /// PostgreSQL ends while commits wait: afterwards they are there, and nobody has acknowledged them.
    fn restart_while_waiting(&mut self, client: &mut Client, random: &mut Random) -> Result<(), Trouble> {
        if !self.hold_commits(client, random)? {
            return Ok(());
        }
        self.world.count("restarts while commits waited");
        let hazards = &self.world.hazards;
        hazards.begin(Missed::Seen);
        if random.one_in(2) {
            self.cluster.kill();
        } else {
            // It waits for the walsender to get rid of all.
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(300));
                    self.faults.mend();
                });
                self.cluster.stop();
            });
        }
        self.cluster.restart();
        hazards.end(Missed::Seen, LAG_MAX);
        // freshet may still believe that it is connected.
        self.rest(Duration::from_millis(random.below(1_500)));
        Ok(())
    }

    /// A table of the catalog is rewritten. In mode standby its commit waits for freshet, and that for decoding, and that for the lock:
    /// until the list is emptied from another database, and then everything goes on.
    pub(crate) fn rewrite_catalog(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let table = *random.pick(&["pg_class", "pg_attribute", "pg_proc", "pg_index"]);
        let world: &World = self.world;
        let mut rewriter = world.past(&["SET lock_timeout = '4s'", "SET client_min_messages = warning"]);
        let sql = format!("VACUUM FULL {table}");
        if world.mode != Mode::Standby {
            return rewriter.run(&sql).map(|_| world.count("tables of the catalog rewritten"));
        }
        let mut client = Client::new(world.direct, "postgres", "postgres", &[]);
        let waiting =
            format!("SELECT pid::text FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = '{sql}'");
        std::thread::scope(|scope| {
            let rewriter = scope.spawn(|| rewriter.run(&sql).map(|_| ()));
            let began = Instant::now();
            let mut is_waiting = false;
            while !is_waiting && !rewriter.is_finished() && began.elapsed() < WAIT * 3 {
                is_waiting = texts(&mut client, &waiting).is_ok_and(|found| !found.is_empty());
                std::thread::sleep(Duration::from_millis(5));
            }
            if is_waiting {
                world.count("tables of the catalog rewritten while commits waited");
                self.rest(Duration::from_millis(random.below(800)));
            } else {
                world.note(&format!("{sql} did not come to wait"));
            }
            let released = self.release_commits(&mut client);
            let limit = Instant::now() + RELEASE_MAX;
            while !rewriter.is_finished() && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(10));
            }
            if !rewriter.is_finished() {
                let text = format!("{sql} does not end although nothing waits for freshet");
                world.violated(world::Kind::NotRecovered, text);
            }
            self.rest(LAG_MAX);
            self.name_freshet(&mut client)?;
            released
        })?;
        self.regain_trust();
        Ok(())
    }
}
