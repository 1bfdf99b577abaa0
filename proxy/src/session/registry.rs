//! The sessions that are open, for `freshet.sessions`. A session keeps its own record up to date by plain stores; whoever
//! asks reads them as they are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use freshet_engine::reason::UpstreamReason;
use parking_lot::Mutex;

use crate::session::answer::{TextColumn, TextTable};
use crate::session::state::{Login, SessionState};
use crate::statistics::Answered;
use crate::wire::query::TransactionStatus;

/// All open sessions.
#[derive(Default)]
pub struct Sessions {
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    next: u64,
    records: BTreeMap<u64, Arc<Record>>,
}

/// One session.
pub struct Record {
    login: Arc<Login>,
    started: jiff::Timestamp,
    state: AtomicU8,
    route: AtomicU8,
    freshness: Mutex<&'static str>,
    route_setting: Mutex<&'static str>,
    counts: [AtomicU64; 4],
    reason: Mutex<Option<UpstreamReason>>,
    opaque: Mutex<Option<Arc<str>>>,
}

/// A session's place in the list; it leaves the list when this is dropped.
pub struct Entry {
    number: u64,
    open: Arc<Mutex<Open>>,
    pub record: Arc<Record>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.open.lock().records.remove(&self.number);
    }
}

const STATES: [&str; 4] = ["idle", "in transaction", "failed", "active"];
const ACTIVE: u8 = 3;
/// From the client's address to why the session is opaque.
const HIDDEN: std::ops::RangeInclusive<usize> = 4..=9;
/// No statement yet.
const NONE: u8 = u8::MAX;

impl Sessions {
    pub fn enter(&self, state: &SessionState) -> Entry {
        let record = Arc::new(Record {
            login: Arc::clone(&state.login),
            started: jiff::Timestamp::now(),
            state: AtomicU8::new(0),
            route: AtomicU8::new(NONE),
            freshness: Mutex::new(state.freshness.name()),
            route_setting: Mutex::new(state.route.name()),
            counts: Default::default(),
            reason: Mutex::default(),
            opaque: Mutex::default(),
        });
        let mut open = self.open.lock();
        open.next += 1;
        let number = open.next;
        open.records.insert(number, Arc::clone(&record));
        Entry { number, open: Arc::clone(&self.open), record }
    }

    /// The rows of `freshet.sessions`, oldest session first. `role`: whose sessions alone are shown with what they do, as in
    /// pg_stat_activity (pgstatfuncs.c); None: everybody's.
    pub fn table(&self, role: Option<&str>) -> TextTable {
        let columns = vec![
            TextColumn::number("pid"),
            TextColumn::text("user"),
            TextColumn::text("database"),
            TextColumn::text("application_name"),
            TextColumn::text("client"),
            TextColumn::text("started"),
            TextColumn::text("state"),
            TextColumn::text("route"),
            TextColumn::text("reason"),
            TextColumn::text("opaque"),
            TextColumn::number("hits"),
            TextColumn::number("local"),
            TextColumn::number("captures"),
            TextColumn::number("relayed"),
            TextColumn::text("freshness"),
            TextColumn::text("route_setting"),
        ];
        let records: Vec<Arc<Record>> = self.open.lock().records.values().cloned().collect();
        TextTable { columns, rows: records.iter().map(|record| record.row_for(role)).collect() }
    }
}

impl Record {
    /// A statement was answered.
    pub fn note_answer(&self, route: Answered, reason: Option<&UpstreamReason>) {
        self.route.store(route as u8, Ordering::Relaxed);
        self.counts[route as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(reason) = reason {
            *self.reason.lock() = Some(reason.clone());
        }
    }

    /// So many were answered from the cache.
    pub fn note_hits(&self, count: u64) {
        self.route.store(Answered::Hit as u8, Ordering::Relaxed);
        self.counts[Answered::Hit as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// Before the session waits for either side.
    pub fn note_state(&self, status: TransactionStatus, is_active: bool) {
        let state = match status {
            _ if is_active => ACTIVE,
            TransactionStatus::Idle => 0,
            TransactionStatus::InTransaction => 1,
            TransactionStatus::Failed => 2,
        };
        self.state.store(state, Ordering::Relaxed);
    }

    /// After what upstream has answered: what may have changed there.
    pub fn note_settings(&self, state: &SessionState, opaque: Option<&Arc<str>>) {
        *self.freshness.lock() = state.freshness.name();
        *self.route_setting.lock() = state.route.name();
        *self.opaque.lock() = opaque.cloned();
    }

    fn row_for(&self, role: Option<&str>) -> Vec<Option<String>> {
        let mut row = self.row();
        if role.is_some_and(|role| role != self.login.user) {
            row[HIDDEN].fill(None);
        }
        row
    }

    fn row(&self) -> Vec<Option<String>> {
        let route = Answered::ALL.get(usize::from(self.route.load(Ordering::Relaxed)));
        let is_upstreams = matches!(route, Some(Answered::Relay | Answered::Capture));
        let reason = self.reason.lock().as_ref().filter(|_| is_upstreams).map(ToString::to_string);
        let [hits, local, captures, relayed] = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        let Login { user, database, application_name, process_id, client, .. } = &*self.login;
        vec![
            process_id.map(|pid| pid.to_string()),
            Some(user.clone()),
            Some(database.clone()),
            Some(application_name.clone()),
            Some(client.clone()),
            Some(self.started.to_string()),
            STATES.get(usize::from(self.state.load(Ordering::Relaxed))).map(ToString::to_string),
            Some(route.map_or("", |route| route.name()).to_string()),
            Some(reason.unwrap_or_default()),
            Some(self.opaque.lock().as_ref().map(ToString::to_string).unwrap_or_default()),
            Some(hits.to_string()),
            Some(local.to_string()),
            Some(captures.to_string()),
            Some(relayed.to_string()),
            Some((*self.freshness.lock()).to_string()),
            Some((*self.route_setting.lock()).to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use freshet_config::FreshnessMode;

    use super::*;

    #[test]
    fn sessions_come_and_go() {
        let sessions = Sessions::default();
        let login = Login { user: "ann".into(), process_id: Some(7), ..Login::default() };
        let state = SessionState::new(login, FreshnessMode::Exact);
        let entry = sessions.enter(&state);
        let other = sessions.enter(&state);
        entry.record.note_answer(Answered::Relay, Some(&UpstreamReason::FirstRun));
        entry.record.note_state(TransactionStatus::InTransaction, false);
        entry.record.note_settings(&state, Some(&"DO".into()));
        let table = sessions.table(None);
        let of = |name: &str| {
            let at = table.columns.iter().position(|column| column.name == name).expect("a column");
            table.rows[0][at].clone().unwrap_or_default()
        };
        for (name, value) in [
            ("pid", "7"),
            ("user", "ann"),
            ("state", "in transaction"),
            ("route", "relay"),
            ("reason", "first_run"),
            ("opaque", "DO"),
            ("relayed", "1"),
            ("freshness", "exact"),
            ("route_setting", "auto"),
        ] {
            assert_eq!(of(name), value, "{name}");
        }
        assert_eq!(table.rows.len(), 2);
        assert_eq!(sessions.table(Some("ann")).rows, table.rows);
        let seen = &sessions.table(Some("eve")).rows[0];
        assert_eq!((seen[1].as_deref(), seen[6].as_deref(), seen[8].as_deref()), (Some("ann"), None, None));
        assert_eq!(seen[10..], table.rows[0][10..]);
        drop(entry);
        assert_eq!(sessions.table(None).rows.len(), 1);
        drop(other);
        assert!(sessions.table(None).rows.is_empty());
    }
}
