//! [`Databases`]: the databases that are mirrored, each by a [`Local`] of its own. That of the URL from the start; others, where
//! the settings allow it, from when they are first read until nobody has read them for a while.
//!
//! A database with a slot cannot be dropped, one with sessions neither renamed, moved nor copied (dbcommands.c), and freshet has
//! both in every database that it mirrors. A statement that wants such a database unused, if it comes through freshet, finds it
//! given back; for one that goes past freshet, the database has to be left alone until it is idle.

pub(super) mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use freshet_config::DatabaseChoice;
use freshet_engine::statement::lexer::NAME_BYTES_MAX;
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::session::answer::{TextTable, Unused, Use};
use crate::session::local::Local;
use crate::session::local::counts::Counts;
use crate::session::local::databases::texts::reads::reads;
use crate::session::local::databases::texts::wants_unused;
use crate::upstream::UpstreamError;

/// Between looks at who is idle and what has ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a database that was given back for a statement is left alone after that.
const HELD_FOR: Duration = Duration::from_secs(10);
/// Likewise one that could not be begun, or whose mirror did not run.
const FAILED_FOR: Duration = Duration::from_secs(10);
/// How long a statement waits for a database to be given back.
const MAKE_WAY_MAX: Duration = Duration::from_secs(8);
/// One whose mirror has not been running for so long gives its place to another that is wished for.
const STUCK_AFTER: Duration = Duration::from_secs(5);
/// One whose mirror does not run and that nobody has read for so long is given back, whatever the settings say: it may be gone.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// What of the settings concerns it.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    pub choice: DatabaseChoice,
    /// Beside that of the URL.
    pub others_max: usize,
    /// One that nobody has read for so long is given back. None: never.
    pub idle_max: Option<Duration>,
}

/// A database's mirror and caches; the token ends the mirror.
pub struct Begun {
    pub local: Arc<Local>,
    pub mirroring: CancellationToken,
}

/// Begins a database, by its name. Called in the runtime that first copies run on.
pub type Begin = dyn Fn(&str) -> Result<Begun, UpstreamError> + Send + Sync;
/// Rows of the virtual schema's relations, for a session of one database; None: of one that is not mirrored. Last the role, if it may
/// see its own statements only.
pub type VirtualTables = dyn Fn(&Databases, Option<&Local>, &str, Option<&str>) -> Option<TextTable> + Send + Sync;

pub struct Databases {
    first: Begun,
    others: RwLock<BTreeMap<String, Place>>,
    /// Of `others`; looked at before the lock is taken.
    count: AtomicUsize,
    /// How often `others` has changed: who has found nothing there looks again after that.
    changes: AtomicU64,
    /// Since the last change somebody has wished for a database that there was no place for.
    is_short: AtomicBool,
    /// Why databases were not mirrored, as the operator was told last.
    told: Mutex<BTreeMap<String, String>>,
    /// What was counted in databases that are not mirrored any more. Locked within `others`.
    ended: Mutex<Counts>,
    options: DatabaseOptions,
    begin: Box<Begin>,
    virtual_tables: Box<VirtualTables>,
    runtime: Handle,
}

enum Place {
    /// Somebody has read it; it is being begun.
    Wished,
    Running {
        begun: Begun,
        used_at: Instant,
        /// When its mirror was last seen to run, or still to begin: its slot may have to wait for a long transaction of upstream,
        /// as that of another in its place would.
        ready_at: Instant,
    },
    /// It is being given back, and not to be begun again before that time.
    Ending(Arc<Local>, Instant),
    Held(Instant),
}

impl Databases {
    /// Called in the runtime that first copies run on.
    pub fn new(
        first: Begun,
        options: DatabaseOptions,
        begin: Box<Begin>,
        virtual_tables: Box<VirtualTables>,
    ) -> Arc<Self> {
        Arc::new(Self {
            first,
            others: RwLock::default(),
            count: AtomicUsize::new(0),
            changes: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            told: Mutex::default(),
            ended: Mutex::default(),
            options,
            begin,
            virtual_tables,
            runtime: Handle::current(),
        })
    }

    /// That of the URL.
    pub fn first(&self) -> &Arc<Local> {
        &self.first.local
    }

    /// That of the URL, then the others by name, as far as they are running or being given back.
    pub fn all(&self) -> Vec<Arc<Local>> {
        let others = self.others.read();
        std::iter::once(&self.first.local).chain(others.values().filter_map(Place::local)).cloned().collect()
    }

    /// What has been counted in all of them, also in those that are not mirrored any more.
    pub fn counts(&self) -> Counts {
        let others = self.others.read();
        let mut counts = *self.ended.lock();
        for local in std::iter::once(&self.first.local).chain(others.values().filter_map(Place::local)) {
            counts.add(local.counts());
        }
        counts
    }

    pub(super) fn virtual_table(&self, of: Option<&Local>, name: &str, role: Option<&str>) -> Option<TextTable> {
        (self.virtual_tables)(self, of, name, role)
    }

    /// To be read before a look at which database is running, which holds until this is another.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    fn note_change(&self, others: &BTreeMap<String, Place>) {
        self.count.store(others.len(), SeqCst);
        self.is_short.store(false, SeqCst);
        self.changes.fetch_add(1, SeqCst);
    }

    /// One of the others that is running.
    pub(super) fn running(&self, name: &str) -> Option<Arc<Local>> {
        if self.count.load(SeqCst) == 0 {
            return None;
        }
        match self.others.read().get(name)? {
            Place::Running { begun, .. } => Some(Arc::clone(&begun.local)),
            Place::Wished | Place::Ending(..) | Place::Held(_) => None,
        }
    }

    /// A session has this query for a database: if it reads, the database is mirrored from soon on, if it may be. False: a
    /// query that does not read.
    pub(super) fn wish(self: &Arc<Self>, name: &str, sql: &[u8]) -> bool {
        let may = match &self.options.choice {
            DatabaseChoice::One => false,
            DatabaseChoice::Auto => true,
            DatabaseChoice::List(names) => names.iter().any(|listed| listed == name),
        };
        // A longer name is cut by PostgreSQL, so that a database would go by several.
        if !may || name.len() > NAME_BYTES_MAX {
            return true;
        }
        if !reads(sql) {
            return false;
        }
        {
            let mut others = self.others.write();
            let taken = others.values().filter(|place| !matches!(place, Place::Held(_))).count();
            if others.contains_key(name) {
                return true;
            }
            if taken >= self.options.others_max {
                self.is_short.store(true, SeqCst);
                return true;
            }
            others.insert(name.to_string(), Place::Wished);
            self.note_change(&others);
        }
        let (databases, name) = (Arc::clone(self), name.to_string());
        self.runtime.spawn(async move { databases.begin(&name).await });
        true
    }

    async fn begin(&self, name: &str) {
        let obstacle = self.first.local.freshness.neighbours().obstacle(name).await;
        let mut others = self.others.write();
        // Gone: freshet ends, or a statement wants it unused.
        let Some(place @ Place::Wished) = others.get_mut(name) else { return };
        // Within the lock, so that nothing is noted for all databases between its beginning and its being one of them.
        let begun = match obstacle {
            Ok(None) => (self.begin)(name).map_err(|error| error.to_string()),
            Ok(Some(why)) => Err(why),
            Err(error) => Err(error.to_string()),
        };
        *place = match begun {
            Ok(begun) => {
                tracing::info!(database = name, "its mirror begins");
                self.told.lock().remove(name);
                let now = Instant::now();
                Place::Running { begun, used_at: now, ready_at: now }
            }
            Err(reason) => {
                if self.told.lock().insert(name.to_string(), reason.clone()).as_ref() != Some(&reason) {
                    tracing::info!(database = name, reason, "it is not mirrored");
                }
                Place::Held(Instant::now() + FAILED_FOR)
            }
        };
        self.note_change(&others);
    }

    /// Gives a database back to upstream, or keeps it from being mirrored; its mirror, if that has to be waited for.
    fn end(&self, name: &str, hold: Duration) -> Option<Arc<Local>> {
        let mut others = self.others.write();
        let until = Instant::now() + hold;
        let place = others.entry(name.to_string()).or_insert(Place::Held(until));
        let ending = match place {
            Place::Running { begun, .. } => {
                begun.local.retire();
                begun.mirroring.cancel();
                let local = Arc::clone(&begun.local);
                *place = Place::Ending(Arc::clone(&local), until);
                Some(local)
            }
            Place::Ending(local, held) => {
                *held = until.max(*held);
                Some(Arc::clone(local))
            }
            Place::Wished => {
                *place = Place::Held(until);
                None
            }
            Place::Held(held) => {
                *held = until.max(*held);
                None
            }
        };
        self.note_change(&others);
        ending
    }

    /// The database that a statement wants nobody to use, if that may be given back for it.
    pub(super) fn in_the_way(&self, sql: &[u8]) -> Option<Unused> {
        if self.options.choice == DatabaseChoice::One {
            return None;
        }
        let is_another = |name: &str| name != self.first.local.database && name.len() <= NAME_BYTES_MAX;
        wants_unused(sql).filter(|unused| is_another(&unused.database))
    }

    /// Before a statement of a session that logged in as `user` goes upstream: the database that it wants unused is given back, and
    /// left alone for a while.
    pub(super) async fn make_way(&self, unused: &Unused, user: &str) {
        let (name, is_copy) = (&*unused.database, unused.use_of_it == Use::Copy);
        let until = tokio::time::Instant::now() + MAKE_WAY_MAX;
        let neighbours = self.first.local.freshness.neighbours();
        // Nobody ends a mirror by asking for what upstream refuses, nor where it cannot be told.
        match tokio::time::timeout_at(until, neighbours.may_dispose(user, name, is_copy)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return,
            Ok(Err(error)) => {
                tracing::warn!(database = name, %error, "not given back to upstream: who may want that was not told");
                return;
            }
            Err(_) => {
                tracing::warn!(database = name, "not given back to upstream: it takes long to tell who may want that");
                return;
            }
        }
        let Some(local) = self.end(name, HELD_FOR) else { return };
        tracing::info!(database = name, "given back to upstream for a statement");
        if tokio::time::timeout_at(until, local.freshness.stopped()).await.is_err() {
            tracing::warn!(database = name, "it takes long to give it back to upstream");
        }
        // From now on: upstream waits for others' sessions, too.
        self.end(name, HELD_FOR);
    }

    /// Gives back what is idle, until `shutdown`; then everything.
    pub async fn run(&self, shutdown: CancellationToken) {
        if self.options.choice == DatabaseChoice::One {
            shutdown.cancelled().await;
        }
        while tokio::time::timeout(LOOK_EVERY, shutdown.cancelled()).await.is_err() {
            self.look(Instant::now());
        }
        let names: Vec<String> = self.others.read().keys().cloned().collect();
        let ending: Vec<Arc<Local>> = names.iter().filter_map(|name| self.end(name, HELD_FOR)).collect();
        self.first.mirroring.cancel();
        for local in ending.iter().chain([&self.first.local]) {
            local.freshness.stopped().await;
        }
    }

    fn look(&self, now: Instant) {
        if self.count.load(SeqCst) == 0 {
            return;
        }
        let mut others = self.others.write();
        let (mut changed, mut stopped, mut idle, mut stuck) = (false, Vec::new(), Vec::new(), None);
        others.retain(|name, place| {
            match place {
                Place::Running { begun, used_at, ready_at } => {
                    if begun.local.is_used.swap(false, SeqCst) {
                        *used_at = now;
                    }
                    if begun.local.freshness.is_ready() || begun.local.freshness.is_beginning() {
                        *ready_at = now;
                    }
                    let (unused, down) = (now - *used_at, now - *ready_at);
                    if is_idle(unused, down, self.options.idle_max) {
                        idle.push(name.clone());
                    } else if down >= STUCK_AFTER && stuck.as_ref().is_none_or(|(longest, _)| down > *longest) {
                        stuck = Some((down, name.clone()));
                    }
                }
                Place::Ending(local, until) if local.freshness.is_stopped() => {
                    self.ended.lock().add(local.counts());
                    stopped.push(Arc::clone(local));
                    *place = Place::Held(*until);
                    changed = true;
                }
                Place::Wished | Place::Ending(..) | Place::Held(_) => {}
            }
            let is_over = matches!(place, Place::Held(until) if *until <= now);
            changed |= is_over;
            !is_over
        });
        let stuck = stuck.filter(|_| self.is_short.load(SeqCst) && idle.is_empty());
        if changed {
            self.note_change(&others);
        }
        drop(others);
        if !stopped.is_empty() {
            // Sessions that say nothing may hold on to it for long; and to free much takes time that others need not wait for.
            self.runtime.spawn_blocking(move || stopped.iter().for_each(|local| local.let_go()));
        }
        for name in idle {
            tracing::info!(database = name, "nobody reads it: given back to upstream");
            self.end(&name, Duration::ZERO);
        }
        if let Some((_, name)) = stuck {
            tracing::warn!(database = name, "its mirror does not run: another database gets its place");
            self.end(&name, FAILED_FOR);
        }
    }

    /// Rows of any database may have been written by a session of `of`: foreign tables lead from one to another.
    pub(super) fn note_rows_written_elsewhere(&self, of: &Local) {
        self.each_but(of, |local| local.freshness.note_rows_written());
    }

    /// Roles are of the whole cluster.
    pub(super) fn note_catalog_changed_elsewhere(&self, of: &Local) {
        self.each_but(of, |local| local.freshness.note_write_acknowledged());
    }

    fn each_but(&self, of: &Local, note: impl Fn(&Local)) {
        if of.number != self.first.local.number {
            note(&self.first.local);
        }
        if self.count.load(SeqCst) == 0 {
            return;
        }
        for place in self.others.read().values() {
            match place {
                Place::Running { begun, .. } if begun.local.number != of.number => note(&begun.local),
                Place::Running { .. } | Place::Wished | Place::Ending(..) | Place::Held(_) => {}
            }
        }
    }
}

/// Whether a database is given back that has not been read, and whose mirror has not run, for so long.
fn is_idle(unused: Duration, down: Duration, idle_max: Option<Duration>) -> bool {
    idle_max.is_some_and(|idle_max| unused >= idle_max) || unused.min(down) >= GONE_AFTER
}

impl Place {
    fn local(&self) -> Option<&Arc<Local>> {
        match self {
            Self::Running { begun, .. } => Some(&begun.local),
            Self::Ending(local, _) => Some(local),
            Self::Wished | Self::Held(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_read_is_idle_after_the_time_set_or_when_it_does_not_run_either() {
        let seconds = Duration::from_secs;
        let ten = Some(seconds(10));
        assert!(is_idle(seconds(10), seconds(0), ten));
        assert!(!is_idle(seconds(9), seconds(100), ten));
        // Never; but it may be gone.
        assert!(!is_idle(seconds(1_000), seconds(0), None));
        assert!(!is_idle(seconds(1), seconds(1_000), None));
        assert!(is_idle(seconds(60), seconds(60), None));
    }
}
