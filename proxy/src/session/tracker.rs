//! The settings of one session and its transaction, followed as upstream acknowledges statements.
//!
//! PostgreSQL undoes settings with the transaction (guc.c, AtEOXact_GUC), so each open transaction keeps what was in force
//! before it (`base`), what will be after COMMIT (`after`: without SET LOCAL), and both again for each savepoint. Outside
//! a block every unit of messages is a transaction by itself, up to ReadyForQuery.
//!
//! What cannot be known from the text stays [`Value::Unknown`] until upstream reports it (five settings it does by
//! itself) or a probe asks. Unknown values are undone like others: a ROLLBACK makes them known again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use freshet_config::FreshnessMode;
use freshet_engine::types::CustomSettings;

use crate::freshness::pins::Choice;
use crate::session::change::{self, Change, Name, NewValue, Reprinted, UNREAD};
use crate::session::settings::{Interner, Path, PathKey, Probed, SessionSettings, SettingsValues};
use crate::session::state::{Isolation, RouteSetting, Transaction};
use crate::session::variables::{
    ASKED, CLIENT_ENCODING, CONFORMING_STRINGS, COUNT, DEFAULT_ISOLATION, IDLE_TIMEOUTS, KEYED, LISTENS, NAMES,
    REPORTED, ROLE, SEARCH_PATH, SERVER_VERSION, SESSION_USER, STATEMENT_TIMEOUT, SYNCHRONOUS_COMMIT, TEMPORARY,
    UNLISTED, UNUSUALLY_SET, is_unusual, timeout_ms,
};
use crate::wire::query::TransactionStatus;

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// As after log-in, or after RESET; [`Tracker::defaults`] has it once it was told.
    Default,
    Known(Arc<str>),
    Unknown,
}

/// Freshet's own settings, which upstream does not know. None: the default.
#[derive(Clone, Debug, Default)]
pub struct Own {
    pub freshness: Option<FreshnessMode>,
    pub route: Option<RouteSetting>,
    /// The same [`Choice`] wherever it is in force: what it leads to is found once.
    pub snapshot: Option<Arc<Choice>>,
    pub snapshot_strict: Option<bool>,
}

/// A new value of one of them. None: back to the default.
#[derive(Clone, Debug)]
pub enum OwnChange {
    Freshness(Option<FreshnessMode>),
    Route(Option<RouteSetting>),
    Snapshot(Option<Arc<Choice>>),
    SnapshotStrict(Option<bool>),
}

#[derive(Clone, Debug)]
struct Values {
    slots: [Value; COUNT],
    own: Own,
    /// What upstream told of an application's own settings, by the role that was in force: some are not every role's to see.
    custom: Arc<BTreeMap<Arc<str>, Arc<CustomSettings>>>,
}

/// Of an application's own settings so many are kept in mind, and so many bytes of their values.
const CUSTOM_MAX: usize = 64;
const CUSTOM_BYTES_MAX: usize = 64 << 10;

/// One bit for each slot that SET LOCAL has set.
type Slots = u32;

const ALL_SLOTS: Slots = Slots::MAX;

/// Savepoints that are remembered; whoever makes more loses local answers after a ROLLBACK TO an older one.
const SAVEPOINTS_MAX: usize = 10_000;

#[derive(Debug)]
struct Savepoint {
    name: Name,
    current: Arc<Values>,
    after: Arc<Values>,
    local: Slots,
    is_tainted: bool,
    /// Made since the last ReadyForQuery.
    is_of_unit: bool,
}

/// Settings of an application's own that may have been set.
#[derive(Debug)]
enum SetCustom {
    Named(Vec<Arc<str>>),
    Any,
}

impl SetCustom {
    fn add(&mut self, name: &Arc<str>) {
        match self {
            Self::Named(names) if names.contains(name) => {}
            Self::Named(names) if names.len() < CUSTOM_MAX => names.push(Arc::clone(name)),
            Self::Named(_) | Self::Any => *self = Self::Any,
        }
    }

    fn has(&self, name: &Arc<str>) -> bool {
        match self {
            Self::Named(names) => names.contains(name),
            Self::Any => true,
        }
    }
}

/// A transaction: a block, or a unit of messages outside of one.
#[derive(Debug)]
struct Open {
    is_block: bool,
    base: Arc<Values>,
    after: Arc<Values>,
    local: Slots,
    isolation: Option<Isolation>,
    is_tainted: bool,
    /// Which of an application's own settings may have been set in it, perhaps up to its end alone.
    custom: SetCustom,
    savepoints: Vec<Savepoint>,
    /// How many there were below these, of which nothing is known any more.
    forgotten: usize,
}

impl Open {
    /// What will be in force after the transaction, or a part of it, however that ends.
    fn for_each_other(&mut self, mut change: impl FnMut(&mut Arc<Values>)) {
        change(&mut self.base);
        change(&mut self.after);
        for savepoint in &mut self.savepoints {
            change(&mut savepoint.current);
            change(&mut savepoint.after);
        }
    }
}

/// When upstream's session has last looked which schemas of its path count. Up to PostgreSQL 16 it looks again when the path is
/// set, when it has become another role, and when a schema changes, but not when memberships do (namespace.c,
/// recomputeNamespacePath).
#[derive(Debug)]
enum PathFound {
    /// Under the catalog in use: what was found is the same for every session.
    Now,
    /// Maybe before it: what a probe tells, for one version of the catalog, holds for this session alone.
    Before(Option<(PathKey, u64, Path)>),
}

/// See the head of the module.
#[derive(Debug)]
pub struct Tracker {
    database: Arc<str>,
    current: Arc<Values>,
    open: Option<Open>,
    /// The block has failed: all it takes is ROLLBACK, or COMMIT in its stead.
    has_failed: bool,
    /// What [`Value::Default`] stands for, as far as it was told.
    defaults: [Option<Arc<str>>; COUNT],
    /// As upstream last said by itself.
    reported: [Option<Arc<str>>; REPORTED],
    /// What made settings unknown.
    opaque: Option<Arc<str>>,
    opaque_is_new: bool,
    path_found: PathFound,
    /// Outside of a transaction that was seen to begin something has run that may have set one of an application's own settings.
    has_run: bool,
    /// Some [`Values`] may have custom ones.
    knows_custom: bool,
    /// What was made of `current`, and for which state of the catalog.
    resolved: Option<(Arc<Values>, u64, Arc<SessionSettings>)>,
}

impl Tracker {
    /// A session right after log-in.
    pub fn new(database: &str) -> Self {
        let mut slots = [const { Value::Default }; COUNT];
        slots[TEMPORARY] = Value::Unknown;
        slots[LISTENS] = Value::Unknown;
        slots[UNLISTED] = Value::Known("".into());
        Self {
            database: database.into(),
            current: Arc::new(Values { slots, own: Own::default(), custom: Arc::default() }),
            open: None,
            has_failed: false,
            defaults: [const { None }; COUNT],
            reported: [const { None }; REPORTED],
            opaque: None,
            opaque_is_new: false,
            path_found: PathFound::Now,
            has_run: false,
            knows_custom: false,
            resolved: None,
        }
    }

    /// A statement is acknowledged.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Commit { chain } => self.end(true, *chain),
            Change::Rollback { chain } => self.end(false, *chain),
            Change::Begin(isolation) => {
                let open = self.open();
                open.is_block = true;
                open.isolation = isolation.or(open.isolation);
            }
            Change::Savepoint(name) => self.savepoint(name),
            Change::Release(name) => {
                let at = self.find(name);
                if let (Some(at), Some(open)) = (at, &mut self.open) {
                    open.savepoints.truncate(at);
                }
            }
            Change::RollbackTo(name) => self.rollback_to(name),
            Change::Isolation(isolation) => self.open().isolation = *isolation,
            Change::Set { slot, value, is_local } => {
                let value = match value {
                    // Of another session user than the log-in's, it is that one's.
                    NewValue::Default if *slot == ROLE && !self.is_of_login() => Value::Unknown,
                    NewValue::Default => Value::Default,
                    NewValue::Known(value) => Value::Known(Arc::clone(value)),
                    NewValue::SessionUser => self.value(SESSION_USER).map_or(Value::Unknown, Value::Known),
                    NewValue::Unknown => Value::Unknown,
                };
                self.set(*slot, &value, *is_local);
                if *slot == SEARCH_PATH {
                    self.path_found = PathFound::Now;
                }
            }
            Change::SetUnlisted { name, is_reset, is_local } => {
                self.set_unlisted(name, *is_reset, *is_local);
                self.custom_is_set(Some(name));
                // What a probe says from now on is not the default; after a RESET it may be.
                if is_unusual(name) {
                    let value = if *is_reset { Value::Unknown } else { Value::Known(Arc::clone(name)) };
                    self.set(UNUSUALLY_SET, &value, *is_local);
                }
            }
            Change::SetCustom(name) => {
                self.custom_is_set(Some(name));
            }
            Change::SetOwn { name, value, is_local } => {
                if let Some(change) = OwnChange::read(name, value.as_deref()) {
                    self.set_own(change, *is_local);
                }
            }
            Change::ResetAll => self.reset_all(),
            Change::DiscardAll => {
                self.reset_all();
                self.set(SESSION_USER, &Value::Default, false);
                let is_plain = self.defaults[ROLE].is_some() && self.defaults[ROLE] == self.defaults[SESSION_USER];
                self.set(ROLE, if is_plain { &Value::Default } else { &Value::Unknown }, false);
                self.set(TEMPORARY, &Value::Known("f".into()), false);
                self.set(LISTENS, &Value::Known("f".into()), false);
                // It commits at once, whatever comes behind it in one pipeline (xact.c, XACT_FLAGS_NEEDIMMEDIATECOMMIT).
                if !self.is_in_block() {
                    self.end(true, false);
                }
            }
            Change::DiscardTemporary => self.set(TEMPORARY, &Value::Known("f".into()), false),
            Change::SessionAuthorization => {
                // It resets the role outside of the stack that is followed here.
                self.forget(ROLE);
                self.forget(SESSION_USER);
            }
            Change::Temporary => self.set(TEMPORARY, &Value::Unknown, false),
            Change::Listen => self.set_after(LISTENS, Value::Known("t".into())),
            Change::UnlistenAll => self.set_after(LISTENS, Value::Known("f".into())),
            Change::Unlisten => {
                let after = &self.open().after.slots[LISTENS];
                if *after != Value::Known("f".into()) {
                    self.set_after(LISTENS, Value::Unknown);
                }
            }
            Change::Call(_) => self.forget_all("calls set_config"),
            Change::Opaque(reason) => {
                self.forget_all(reason);
                // DO or CALL may have committed, and what fails behind it in the same pipeline takes that back no more.
                if !self.is_in_block() {
                    let unknown = Arc::clone(&self.current);
                    self.open().base = unknown;
                }
            }
            Change::Unread => {
                self.forget_all(UNREAD);
                (0..COUNT).filter(|slot| *slot != UNLISTED).for_each(|slot| self.forget(slot));
            }
        }
    }

    /// A statement has run, or failed: any but one that only changes settings or the transaction may have set what is an application's own,
    /// by a function or by loading a library.
    pub fn has_run(&mut self, changes: &[Change]) {
        if changes.is_empty() || !changes.iter().all(Change::is_control) {
            match &mut self.open {
                Some(open) => open.custom = SetCustom::Any,
                None => self.has_run = true,
            }
            self.forget_custom(None);
        }
    }

    /// What upstream says of an application's own settings.
    pub fn learn_custom(&mut self, told: &CustomSettings) {
        let Some(role) = self.value(ROLE) else { return };
        let bytes =
            |(name, value): (&Arc<str>, &Option<Arc<str>>)| name.len() + value.as_ref().map_or(0, |value| value.len());
        let known = || self.current.custom.values().flat_map(|of_role| of_role.iter());
        let has_room = known().count() + told.len() <= CUSTOM_MAX
            && known().chain(told).map(bytes).sum::<usize>() <= CUSTOM_BYTES_MAX;
        if !has_room {
            self.forget_custom(None);
        }
        let learn = |values: &mut Arc<Values>, told: CustomSettings| {
            let of_roles = Arc::make_mut(&mut Arc::make_mut(values).custom);
            Arc::make_mut(of_roles.entry(Arc::clone(&role)).or_default()).extend(told);
        };
        self.knows_custom = true;
        learn(&mut self.current, told.clone());
        let Some(open) = &mut self.open else { return };
        // The others may have been set up to the end of the transaction alone.
        let lasting = told.iter().filter(|(name, _)| !open.custom.has(name));
        let lasting: CustomSettings = lasting.map(|(name, value)| (name.clone(), value.clone())).collect();
        if lasting.is_empty() {
            return;
        }
        open.for_each_other(|values| learn(values, lasting.clone()));
    }

    /// That of an application's own settings, or any, may have been set in the transaction that is open, or opens with it.
    fn custom_is_set(&mut self, name: Option<&Arc<str>>) {
        match name {
            Some(name) => self.open().custom.add(name),
            None => self.open().custom = SetCustom::Any,
        }
        self.forget_custom(name.map(|name| &**name));
    }

    /// That of an application's own settings, or all of them, is to be asked for again: now and after the transaction, however it ends.
    fn forget_custom(&mut self, name: Option<&str>) {
        // There may be thousands of savepoints.
        if !self.knows_custom {
            return;
        }
        self.knows_custom = name.is_some();
        let forget = |values: &mut Arc<Values>| {
            let is_it = |of_role: &Arc<CustomSettings>| name.is_none_or(|name| of_role.contains_key(name));
            if !values.custom.values().any(is_it) {
                return;
            }
            let custom = &mut Arc::make_mut(values).custom;
            match name {
                Some(name) => Arc::make_mut(custom).values_mut().for_each(|of_role| {
                    Arc::make_mut(of_role).remove(name);
                }),
                None => *custom = Arc::default(),
            }
        };
        forget(&mut self.current);
        if let Some(open) = &mut self.open {
            open.for_each_other(forget);
        }
    }

    /// A statement failed that would have made this change. What it did is undone with its transaction, unless it has
    /// ended some by itself (CALL, DO).
    pub fn failed(&mut self, changes: &[Change]) {
        let may_commit = changes.iter().any(|change| matches!(change, Change::Opaque(_)));
        if may_commit && !self.is_in_block() {
            changes.iter().for_each(|change| self.apply(change));
        }
    }

    fn is_in_block(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_block)
    }

    /// ReadyForQuery: the end of a unit. `taints`: something in it may have written or locked.
    pub fn ready(&mut self, status: TransactionStatus, has_error: bool, taints: bool) {
        match status {
            TransactionStatus::Idle => {
                self.has_run = false;
                self.end(!has_error, false);
                self.has_failed = false;
            }
            TransactionStatus::InTransaction | TransactionStatus::Failed => {
                if !self.is_in_block() {
                    // It began in a way that was not seen.
                    let open = self.open();
                    open.is_block = true;
                    open.isolation = None;
                    open.custom = SetCustom::Any;
                }
                self.has_failed = status == TransactionStatus::Failed;
                if let Some(open) = &mut self.open {
                    open.is_tainted |= taints;
                    // What wrote may stand before a savepoint of the same unit, which does not take it back then.
                    let of_unit = open.savepoints.iter_mut().rev().take_while(|savepoint| savepoint.is_of_unit);
                    for savepoint in of_unit {
                        savepoint.is_tainted |= taints;
                        savepoint.is_of_unit = false;
                    }
                }
            }
        }
        if status != TransactionStatus::Failed {
            self.take_reports();
        }
    }

    /// ParameterStatus.
    pub fn report(&mut self, name: &[u8], value: &[u8]) {
        let Some(slot) = NAMES[..REPORTED].iter().position(|known| known.as_bytes() == name) else { return };
        // Not UTF-8: whatever it is, it is not known here.
        self.reported[slot] = std::str::from_utf8(value).ok().map(Arc::from);
        if self.reported[slot].is_none() {
            self.forget(slot);
        }
    }

    /// What was reported is in force: when a unit is over, or outside of one.
    pub fn take_reports(&mut self) {
        for slot in 0..REPORTED {
            if let Some(value) = self.reported[slot].clone() {
                self.learn(slot, value);
            }
        }
    }

    /// The probe's answer; `catalog_version` as of when it was sent.
    pub fn probed(&mut self, probed: &Probed, interner: &Interner, catalog_version: u64) {
        self.learn_path(probed, interner, catalog_version);
        for (slot, value) in probed.values.iter().enumerate() {
            self.learn(slot, Arc::clone(value));
        }
        for (reported, value) in self.reported.iter_mut().zip(&probed.values) {
            *reported = Some(Arc::clone(value));
        }
        self.learn(ROLE, Arc::clone(&probed.role));
        self.learn(SESSION_USER, Arc::clone(&probed.session_user));
        let flag = |is_set: bool| -> Arc<str> { if is_set { "t".into() } else { "f".into() } };
        self.learn(TEMPORARY, flag(probed.has_temporary_objects));
        self.learn(LISTENS, flag(probed.listens));
        self.learn(UNUSUALLY_SET, Arc::clone(&probed.unusually_set));
        self.opaque = None;
    }

    fn learn_path(&mut self, probed: &Probed, interner: &Interner, catalog_version: u64) {
        let key = self.path_key(&probed.role, &probed.values[SEARCH_PATH]);
        let path = Arc::clone(&probed.search_path);
        let keeps_path = keeps_path(&probed.values[SERVER_VERSION]);
        match &mut self.path_found {
            // Asked as another role than the last time, it has looked again.
            PathFound::Before(told) if keeps_path && told.as_ref().is_none_or(|(of, ..)| of.role == key.role) => {
                *told = Some((key, catalog_version, path));
            }
            found => {
                *found = PathFound::Now;
                interner.learn_path(key, catalog_version, path);
            }
        }
    }

    /// Upstream's configuration changed: defaults may have. A value that a probe told may be one, too.
    pub fn forget_defaults(&mut self) {
        self.forget_custom(None);
        for slot in (0..ASKED).chain([UNUSUALLY_SET]) {
            if matches!(self.current.slots[slot], Value::Known(_)) {
                self.forget(slot);
            }
        }
        self.defaults = [const { None }; COUNT];
        self.reported = [const { None }; REPORTED];
        self.path_found = PathFound::Before(None);
        self.resolved = None;
        // A block may have begun under another default than was known here.
        if let Some(open) = &mut self.open {
            open.isolation = None;
        }
    }

    /// The catalog changed: a role may have another name, or see other schemas.
    pub fn forget_roles(&mut self) {
        for slot in [ROLE, SESSION_USER] {
            self.defaults[slot] = None;
            if self.current.slots[slot] != Value::Default {
                self.forget(slot);
            }
        }
        self.path_found = PathFound::Before(None);
        self.resolved = None;
    }

    /// The settings, if all are known; the path in force as of `catalog_version`.
    pub fn settings(&mut self, interner: &Interner, catalog_version: u64) -> Option<Arc<SessionSettings>> {
        if let Some((values, version, settings)) = &self.resolved
            && *version == catalog_version
            && Arc::ptr_eq(values, &self.current)
        {
            return Some(Arc::clone(settings));
        }
        let role = self.value(ROLE)?;
        let asked: Vec<Arc<str>> = (0..ASKED).map(|slot| self.value(slot)).collect::<Option<_>>()?;
        let has_temporary_objects = &*self.value(TEMPORARY)? != "f";
        let key = self.path_key(&role, &asked[SEARCH_PATH]);
        let search_path = match &self.path_found {
            PathFound::Before(told) if keeps_path(&asked[SERVER_VERSION]) => {
                let told = told.as_ref().filter(|(of, version, _)| *of == key && *version == catalog_version);
                Arc::clone(&told?.2)
            }
            PathFound::Before(_) | PathFound::Now => interner.path(&key, catalog_version)?,
        };
        let (unlisted, unusual) = (self.value(UNLISTED)?, self.value(UNUSUALLY_SET)?);
        let unlisted = if unlisted.is_empty() { unusual } else { unlisted };
        self.value(LISTENS)?;
        let (values, custom) = (asked[..KEYED].to_vec(), self.current.custom.get(&role).cloned().unwrap_or_default());
        let values = SettingsValues { role, search_path, has_temporary_objects, unlisted, values, custom };
        let settings = interner.intern(values);
        self.resolved = Some((Arc::clone(&self.current), catalog_version, Arc::clone(&settings)));
        Some(settings)
    }

    fn path_key(&self, role: &Arc<str>, search_path: &Arc<str>) -> PathKey {
        PathKey { database: Arc::clone(&self.database), role: Arc::clone(role), search_path: Arc::clone(search_path) }
    }

    /// Nothing has changed since [`Tracker::settings`].
    pub fn still_resolved(&self) -> Option<&Arc<SessionSettings>> {
        let (values, _, settings) = self.resolved.as_ref()?;
        Arc::ptr_eq(values, &self.current).then_some(settings)
    }

    pub fn transaction(&self) -> Transaction {
        match &self.open {
            Some(open) if open.is_block => {
                Transaction { isolation: open.isolation, is_tainted: open.is_tainted, ..Transaction::default() }
            }
            Some(_) | None => Transaction::default(),
        }
    }

    /// The values by which results are printed; None: one is not known.
    pub fn printed_by(&self) -> Option<Vec<Arc<str>>> {
        let prints = |slot: &usize| change::printed_by(*slot) != Reprinted::Nothing;
        (0..ASKED).filter(prints).map(|slot| self.value(slot)).collect()
    }

    /// The session listens for notifications, as far as is known.
    pub fn listens(&self) -> bool {
        self.value(LISTENS).is_some_and(|listens| &*listens == "t")
    }

    /// Savepoints of the open block.
    pub fn savepoints(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.forgotten + open.savepoints.len())
    }

    pub fn knows_savepoint(&self, name: &str) -> bool {
        self.open.as_ref().is_some_and(|open| open.savepoints.iter().any(|savepoint| *savepoint.name == *name))
    }

    /// What made the settings unknown.
    pub fn opaque(&self) -> Option<&Arc<str>> {
        self.opaque.as_ref()
    }

    /// The same, once for each time.
    pub fn newly_opaque(&mut self) -> Option<Arc<str>> {
        if std::mem::take(&mut self.opaque_is_new) { self.opaque.clone() } else { None }
    }

    /// The session may have temporary tables.
    pub fn may_have_temporary_objects(&self) -> bool {
        self.value(TEMPORARY).is_none_or(|has_some| &*has_some != "f")
    }

    pub fn own(&self) -> Own {
        self.current.own.clone()
    }

    /// A probe inside the block would not be cut off by a time limit, and with it the block. Long enough for any probe.
    pub fn may_probe_inside(&self) -> bool {
        const ENOUGH_MS: u64 = 500;
        let limit = self.value(STATEMENT_TIMEOUT).and_then(|limit| timeout_ms(&limit));
        limit.is_some_and(|limit| limit == 0 || limit >= ENOUGH_MS)
    }

    /// None: not known, or no limit.
    pub fn statement_timeout(&self) -> Option<Duration> {
        let limit = timeout_ms(&self.value(STATEMENT_TIMEOUT)?)?;
        (limit > 0).then(|| Duration::from_millis(limit))
    }

    /// Upstream may end the session for being idle, as far as is known.
    pub fn may_end_when_idle(&self) -> bool {
        self.idle_pause(Duration::MAX).is_some()
    }

    /// How long upstream may take the session for idle while it is in use: at most `most`, and little beside the limits. None: it ends none.
    pub fn idle_pause(&self, most: Duration) -> Option<Duration> {
        let limits = IDLE_TIMEOUTS.into_iter().map(|slot| self.text(slot).and_then(timeout_ms));
        let pauses = limits.filter(|limit| *limit != Some(0));
        pauses.map(|limit| limit.map_or(most, |limit| most.min(Duration::from_millis(limit) / 4))).min()
    }

    /// Its commits wait for synchronous standbys; false where that is not known.
    pub fn waits_for_standbys(&self) -> bool {
        self.value(SYNCHRONOUS_COMMIT).is_some_and(|value| matches!(&*value, "on" | "remote_write" | "remote_apply"))
    }

    /// Whether quotes in this text may end elsewhere than the lexer takes them to.
    pub fn distrusts(&self, sql: &[u8]) -> bool {
        let is = |slot, value: &str| self.value(slot).is_some_and(|known| &*known == value);
        (sql.contains(&b'\\') && !is(CONFORMING_STRINGS, "on")) || (!sql.is_ascii() && !is(CLIENT_ENCODING, "UTF8"))
    }

    /// Whether it is not known how upstream reads this text, so that asking would tell.
    pub fn may_come_to_trust(&self, sql: &[u8]) -> bool {
        (sql.contains(&b'\\') && self.value(CONFORMING_STRINGS).is_none())
            || (!sql.is_ascii() && self.value(CLIENT_ENCODING).is_none())
    }

    /// Whether the end of the transaction, or of a part of it, changes nothing for [`Self::distrusts`].
    pub fn reads_texts_alike(&self) -> bool {
        let Some(open) = &self.open else { return true };
        let is_alike = |other: &Arc<Values>| {
            [CONFORMING_STRINGS, CLIENT_ENCODING].iter().all(|slot| other.slots[*slot] == self.current.slots[*slot])
        };
        let parts = open.savepoints.iter().flat_map(|savepoint| [&savepoint.current, &savepoint.after]);
        [&open.base, &open.after].into_iter().chain(parts).all(is_alike)
    }

    /// Sets one of freshet's own.
    pub fn set_own(&mut self, change: OwnChange, is_local: bool) {
        self.open();
        if let Some(open) = self.open.as_mut().filter(|_| !is_local) {
            Arc::make_mut(&mut open.after).own.take(change.clone());
        }
        Arc::make_mut(&mut self.current).own.take(change);
    }

    fn open(&mut self) -> &mut Open {
        let isolation = self.value(DEFAULT_ISOLATION).and_then(|level| Isolation::parse(&level));
        let has_run = self.has_run;
        self.open.get_or_insert_with(|| Open {
            is_block: false,
            base: Arc::clone(&self.current),
            after: Arc::clone(&self.current),
            local: 0,
            isolation,
            is_tainted: false,
            custom: if has_run { SetCustom::Any } else { SetCustom::Named(Vec::new()) },
            savepoints: Vec::new(),
            forgotten: 0,
        })
    }

    fn end(&mut self, commits: bool, chain: bool) {
        let Some(open) = self.open.take() else { return };
        self.current = if commits && !self.has_failed { open.after } else { open.base };
        self.has_failed = false;
        if chain {
            let (is_block, isolation) = (open.is_block, open.isolation);
            let next = self.open();
            (next.is_block, next.isolation) = (is_block, isolation);
        }
    }

    fn savepoint(&mut self, name: &Name) {
        let current = Arc::clone(&self.current);
        let Some(open) = &mut self.open else { return };
        if open.savepoints.len() >= SAVEPOINTS_MAX {
            open.forgotten += open.savepoints.len();
            open.savepoints.clear();
        }
        let (after, local, is_tainted) = (Arc::clone(&open.after), open.local, open.is_tainted);
        open.savepoints.push(Savepoint { name: name.clone(), current, after, local, is_tainted, is_of_unit: true });
    }

    fn find(&self, name: &Name) -> Option<usize> {
        self.open.as_ref()?.savepoints.iter().rposition(|savepoint| savepoint.name == *name)
    }

    fn rollback_to(&mut self, name: &Name) {
        self.has_failed = false;
        let (Some(at), Some(open)) = (self.find(name), &mut self.open) else {
            return self.forget_all("a savepoint that is not known");
        };
        open.savepoints.truncate(at + 1);
        if let Some(savepoint) = open.savepoints.last() {
            self.current = Arc::clone(&savepoint.current);
            open.after = Arc::clone(&savepoint.after);
            (open.local, open.is_tainted) = (savepoint.local, savepoint.is_tainted);
        }
    }

    fn set(&mut self, slot: usize, value: &Value, is_local: bool) {
        self.open();
        Arc::make_mut(&mut self.current).slots[slot] = value.clone();
        let Some(open) = &mut self.open else { return };
        if is_local {
            open.local |= 1 << slot;
        } else {
            Arc::make_mut(&mut open.after).slots[slot] = value.clone();
            open.local &= !(1 << slot);
        }
    }

    /// In force once the transaction has committed.
    fn set_after(&mut self, slot: usize, value: Value) {
        let open = self.open();
        Arc::make_mut(&mut open.after).slots[slot] = value;
        // What is found out meanwhile is no news of it.
        open.local |= 1 << slot;
    }

    /// Names add up until RESET ALL; a RESET takes back only one that stands alone.
    fn set_unlisted(&mut self, name: &Arc<str>, is_reset: bool, is_local: bool) {
        let known = self.value(UNLISTED).unwrap_or_default();
        let is_named = known.split(", ").any(|one| one == &**name);
        let value = match (is_reset, known.is_empty(), is_named) {
            (true, _, true) if *known == **name => "".into(),
            (true, ..) | (false, false, true) => return,
            (false, true, _) => Arc::clone(name),
            (false, false, false) if known.len() > 1000 => return,
            (false, false, false) => format!("{known}, {name}").into(),
        };
        self.set(UNLISTED, &Value::Known(value), is_local);
    }

    /// RESET ALL passes over what has its default now (guc.c, ResetAllOptions), so that what SET LOCAL TO DEFAULT hides
    /// comes back with the end of the transaction.
    fn reset_all(&mut self) {
        let local = self.open().local;
        self.custom_is_set(None);
        for slot in (0..ASKED).chain([UNUSUALLY_SET]) {
            if self.current.slots[slot] == Value::Default {
                continue;
            }
            if local & (1 << slot) == 0 {
                self.set(slot, &Value::Default, false);
            } else {
                // Whether upstream passes over this one is not known in all cases.
                self.set(slot, &Value::Unknown, false);
                self.set(slot, &Value::Default, true);
            }
        }
        self.set(UNLISTED, &Value::Known("".into()), local & (1 << UNLISTED) != 0);
        let own = std::mem::take(&mut Arc::make_mut(&mut self.current).own);
        if let Some(open) = &mut self.open {
            let after = &mut Arc::make_mut(&mut open.after).own;
            after.freshness = after.freshness.filter(|_| own.freshness.is_none());
            after.route = after.route.filter(|_| own.route.is_none());
            after.snapshot = after.snapshot.take().filter(|_| own.snapshot.is_none());
            after.snapshot_strict = after.snapshot_strict.filter(|_| own.snapshot_strict.is_none());
        }
    }

    /// Unknown now and after the transaction, whether it commits or not.
    fn forget(&mut self, slot: usize) {
        let forget = |values: &mut Arc<Values>| Arc::make_mut(values).slots[slot] = Value::Unknown;
        forget(&mut self.current);
        if let Some(open) = &mut self.open {
            open.for_each_other(forget);
        }
    }

    /// All unknown, up to a ROLLBACK.
    fn forget_all(&mut self, reason: &str) {
        self.custom_is_set(None);
        for slot in (0..COUNT).filter(|slot| *slot != UNLISTED) {
            self.set(slot, &Value::Unknown, false);
        }
        if let Some(open) = &mut self.open {
            // By SET or by SET LOCAL, that is the question.
            open.local = ALL_SLOTS;
        }
        self.opaque = Some(reason.into());
        self.opaque_is_new = true;
    }

    /// The session user is certain to be the one of the log-in.
    fn is_of_login(&self) -> bool {
        let user = self.value(SESSION_USER);
        user.is_some() && user == self.defaults[SESSION_USER]
    }

    fn value(&self, slot: usize) -> Option<Arc<str>> {
        self.known(slot).cloned()
    }

    fn text(&self, slot: usize) -> Option<&str> {
        self.known(slot).map(|value| &**value)
    }

    fn known(&self, slot: usize) -> Option<&Arc<str>> {
        match &self.current.slots[slot] {
            Value::Default => self.defaults[slot].as_ref(),
            Value::Known(value) => Some(value),
            Value::Unknown => None,
        }
    }

    /// Upstream says what is in force.
    fn learn(&mut self, slot: usize, value: Arc<str>) {
        if self.current.slots[slot] == Value::Default {
            match &self.defaults[slot] {
                None => {
                    self.defaults[slot] = Some(value);
                    self.resolved = None;
                    return;
                }
                Some(known) if *known == value => return,
                // Whether the default is another one now or something has set it unseen (a function that has just been replaced)
                // is not told: what a RESET gives is asked for then.
                Some(_) => self.defaults[slot] = None,
            }
        }
        let value = Value::Known(value);
        if self.current.slots[slot] != value {
            Arc::make_mut(&mut self.current).slots[slot] = value.clone();
        }
        if let Some(open) = &mut self.open
            && open.local & (1 << slot) == 0
            && open.after.slots[slot] == Value::Unknown
        {
            Arc::make_mut(&mut open.after).slots[slot] = value;
        }
    }
}

/// See [`PathFound`].
fn keeps_path(server_version: &str) -> bool {
    !server_version.parse::<u32>().is_ok_and(|version| version >= 170_000)
}

impl Own {
    /// Of names and values in a start-up packet; and the first that is none there, which counts for nothing.
    pub fn of(settings: &[(String, String)]) -> (Self, Option<&(String, String)>) {
        let (mut own, mut refused) = (Self::default(), None);
        for setting in settings {
            match OwnChange::read(&setting.0, Some(&setting.1)) {
                // A snapshot is taken when it is asked for.
                Some(OwnChange::Snapshot(_)) | None => refused = refused.or(Some(setting)),
                Some(change) => own.take(change),
            }
        }
        (own, refused)
    }

    fn take(&mut self, change: OwnChange) {
        match change {
            OwnChange::Freshness(mode) => self.freshness = mode,
            OwnChange::Route(route) => self.route = route,
            OwnChange::Snapshot(choice) => self.snapshot = choice,
            OwnChange::SnapshotStrict(is_strict) => self.snapshot_strict = is_strict,
        }
    }
}

impl OwnChange {
    /// By its text; None: no such name or value.
    fn read(name: &str, value: Option<&str>) -> Option<Self> {
        let change = match (name, value) {
            ("freshness", None) => Self::Freshness(None),
            ("freshness", Some(value)) => {
                Self::Freshness(Some(FreshnessMode::parse(value).filter(|mode| *mode != FreshnessMode::Standby)?))
            }
            ("route", None) => Self::Route(None),
            ("route", Some(value)) => Self::Route(Some(RouteSetting::parse(value)?)),
            ("snapshot", value) => Self::Snapshot(value.and_then(Choice::read).map(Arc::new)),
            ("snapshot_strict", None) => Self::SnapshotStrict(None),
            ("snapshot_strict", Some(value)) => Self::SnapshotStrict(Some(truth(value)?)),
            _ => return None,
        };
        Some(change)
    }
}

/// A boolean as PostgreSQL reads one that is written in full.
pub fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}
