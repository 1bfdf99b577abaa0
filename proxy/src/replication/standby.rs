//! Mode `standby`: freshet's walsender is named in `synchronous_standby_names`, so that upstream acknowledges a commit only
//! after freshet has it. [`Standby`] knows whether that is so; as long as it is not, the mode is as `exact`.
//!
//! It is so while upstream says that this walsender is synchronous, that every name in the list is required, and that
//! commits wait by default. Single sessions can still escape (`SET synchronous_commit = local`): some transactions are looked
//! at before they are acknowledged, and one that is visible then did not wait (PostgreSQL: syncrep.c, SyncRepWaitForLSN comes
//! before the transaction leaves the list of running ones).
//!
//! What was confirmed holds for a short time only: whoever takes freshet out of the list while it is cut off must wait as
//! long before relying on it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use freshet_engine::snapshot::VisibilitySnapshot;
use parking_lot::Mutex;

use crate::replication::supervise::Replication;
use crate::replication::uptime::Uptime;
use crate::upstream::UpstreamError;
use crate::upstream::connection::{Connection, Row};

/// Between questions whether commits wait for freshet.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// A question that is not answered by then is as good as a no.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long upstream must have said so before it counts: the checkpointer tells the backends, and may read the
/// configuration after others (PostgreSQL: SyncRepUpdateSyncStandbysDefined).
const SETTLE: Duration = Duration::from_secs(1);
/// One in so many transactions is looked at before it is acknowledged, and the first after this long.
const SAMPLE_ONE_IN: u64 = 16;
const SAMPLE_AFTER: Duration = Duration::from_millis(500);
const SAMPLE_MAX: Duration = Duration::from_millis(100);
/// After a commit that did not wait nothing is believed for this long; twice as long after each further one.
const ESCAPE_PAUSE_MIN: Duration = Duration::from_secs(60);
const ESCAPE_PAUSE_MAX: Duration = Duration::from_secs(3600);

/// Whether commits wait for this freshet.
#[derive(Clone, Debug)]
pub enum StandbyState {
    /// No, or not all of them; why.
    Exact(Cow<'static, str>),
    /// Upstream has said so without a break since then, and last when it was asked at `confirmed`.
    Synchronous { since: Uptime, confirmed: Uptime },
}

/// The synchronous standby that freshet is.
#[derive(Debug)]
pub struct Standby {
    /// In `synchronous_standby_names`.
    pub name: String,
    state: ArcSwap<StandbyState>,
    transactions: AtomicU64,
    /// The last transaction applied that changed a table; above 32 bits: none since the last look.
    last_xid: AtomicU64,
    sampled: Mutex<Option<Instant>>,
    escapes: Mutex<Escapes>,
}

#[derive(Debug, Default)]
struct Escapes {
    count: u32,
    until: Option<Instant>,
}

const NO_XID: u64 = u64::MAX;

impl Standby {
    pub fn new(name: String) -> Self {
        Self {
            name,
            state: ArcSwap::from_pointee(StandbyState::Exact("starting".into())),
            transactions: AtomicU64::new(0),
            last_xid: AtomicU64::new(NO_XID),
            sampled: Mutex::default(),
            escapes: Mutex::default(),
        }
    }

    /// From when on what a barrier shows is all that was acknowledged, but for what has been received since. None: commits
    /// do not wait for freshet, or it is not known any more that they do.
    pub fn synchronous_since(&self, lease: Duration) -> Option<Uptime> {
        match **self.state.load() {
            StandbyState::Synchronous { since, confirmed } if confirmed.elapsed() <= lease => Some(since + SETTLE),
            StandbyState::Synchronous { .. } | StandbyState::Exact(_) => None,
        }
    }

    /// For the operator.
    pub fn report(&self, lease: Duration) -> String {
        match &**self.state.load() {
            StandbyState::Exact(why) => format!("as exact: {why}"),
            StandbyState::Synchronous { since, confirmed } if confirmed.elapsed() <= lease => {
                if since.elapsed() > SETTLE { "synchronous".into() } else { "as exact: settling".into() }
            }
            StandbyState::Synchronous { .. } => "as exact: upstream does not answer".into(),
        }
    }

    fn confirm(&self, asked_at: Uptime) {
        let since = match **self.state.load() {
            StandbyState::Synchronous { since, .. } => since,
            StandbyState::Exact(_) => {
                tracing::info!(standby = %self.name, "commits wait for freshet: reads need no round trip");
                asked_at
            }
        };
        self.state.store(StandbyState::Synchronous { since, confirmed: asked_at }.into());
    }

    /// As mode `exact` from here on.
    pub(super) fn downgrade(&self, why: Cow<'static, str>) {
        let before = self.state.swap(StandbyState::Exact(why.clone()).into());
        if matches!(*before, StandbyState::Synchronous { .. }) {
            tracing::warn!(standby = %self.name, reason = %why, "commits no longer wait for freshet: reads are as in mode exact");
        }
    }

    pub(super) fn note_transaction(&self, xid: u32) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        self.last_xid.store(u64::from(xid), Ordering::Relaxed);
    }

    /// A transaction to be looked at before it is acknowledged.
    fn sample(&self, now: Uptime) -> Option<u32> {
        // What is not looked at now must not be later: once acknowledged it is visible rightly.
        let xid = u32::try_from(self.last_xid.swap(NO_XID, Ordering::Relaxed)).ok()?;
        // Before it has settled, commits need not wait yet, and that they did not says nothing.
        let is_settled = |since: Uptime| now >= since + SETTLE;
        if !matches!(**self.state.load(), StandbyState::Synchronous { since, .. } if is_settled(since)) {
            return None;
        }
        let mut sampled = self.sampled.lock();
        let is_due = self.transactions.load(Ordering::Relaxed) >= SAMPLE_ONE_IN
            || sampled.is_none_or(|at| at.elapsed() > SAMPLE_AFTER);
        if !is_due {
            return None;
        }
        *sampled = Some(Instant::now());
        self.transactions.store(0, Ordering::Relaxed);
        Some(xid)
    }

    fn note_escape(&self, xid: u32) {
        let mut escapes = self.escapes.lock();
        let pause = (ESCAPE_PAUSE_MIN * (1 << escapes.count.min(6))).min(ESCAPE_PAUSE_MAX);
        escapes.count += 1;
        escapes.until = Some(Instant::now() + pause);
        drop(escapes);
        tracing::error!(xid, "a commit was visible before freshet acknowledged it");
        self.downgrade(ESCAPED.into());
    }

    fn is_distrustful(&self) -> bool {
        self.escapes.lock().until.is_some_and(|until| Instant::now() < until)
    }
}

const ESCAPED: &str = "a commit did not wait for freshet: synchronous_commit is local or off in some session, or its wait was \
                       cancelled";

/// What upstream says about its synchronous standbys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandbyFacts {
    /// `synchronous_standby_names`.
    pub names: String,
    /// Of freshet's walsender; None: it is not there, or may not be seen.
    pub sync_state: Option<String>,
    /// Walsenders of freshet's name.
    pub namesakes: i64,
    /// What sessions have by default.
    pub synchronous_commit: String,
    /// Of roles and databases, where it lets commits go without waiting.
    pub exceptions: String,
}

const FACTS: &str = "SELECT current_setting('synchronous_standby_names'),
       (SELECT sync_state FROM pg_stat_replication WHERE pid = PROCESS),
       (SELECT count(*) FROM pg_stat_replication WHERE lower(application_name) = lower('NAME')),
       current_setting('synchronous_commit'),
       (SELECT coalesce(string_agg(concat_ws(' ', 'role ' || r.rolname, 'database ' || d.datname), ', '), '')
          FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = setrole LEFT JOIN pg_database d ON d.oid = setdatabase
         WHERE EXISTS (SELECT FROM unnest(setconfig) AS c
                        WHERE c ~* '^synchronous_commit=' AND c !~* '=(on|true|yes|1|remote_write|remote_apply)$'))";

/// `process`: of freshet's walsender.
fn facts_sql(process: i32, name: &str) -> String {
    FACTS.replace("PROCESS", &process.to_string()).replace("NAME", &name.replace('\'', "''"))
}

/// Whether commits could wait for a freshet of this name, once it is there; else why not. `connection`: one with the settings that the role's
/// sessions have, which the pool's have not.
pub async fn could_be(connection: &mut Connection, name: &str) -> Result<Result<(), Cow<'static, str>>, UpstreamError> {
    let found = facts(&connection.simple_query(&facts_sql(0, name)).await?)?;
    // As if it were.
    let facts = StandbyFacts { sync_state: Some("sync".into()), namesakes: 1, ..found };
    Ok(assess(&facts, name))
}

/// Why reads still need a round trip.
pub fn assess(facts: &StandbyFacts, name: &str) -> Result<(), Cow<'static, str>> {
    let Some(list) = StandbyNames::parse(&facts.names) else {
        return Err("synchronous_standby_names is not understood".into());
    };
    if !list.names.iter().any(|listed| listed.eq_ignore_ascii_case(name)) {
        let remedy = format!(
            "synchronous_standby_names has no \"{name}\": ALTER SYSTEM SET synchronous_standby_names = \
                              'FIRST 1 ({name})'; SELECT pg_reload_conf();"
        );
        return Err(remedy.into());
    }
    if list.required != list.names.len() || list.names.iter().any(|listed| listed == "*") {
        return Err(
            "synchronous_standby_names lets commits go when others than freshet have them: FIRST n with n names".into(),
        );
    }
    match facts.sync_state.as_deref() {
        None => {
            return Err("the state of the walsender cannot be seen: GRANT pg_read_all_stats to freshet's role".into());
        }
        Some("sync" | "quorum") => {}
        Some(state) => return Err(format!("upstream has freshet as a standby of state {state}").into()),
    }
    if facts.namesakes != 1 {
        return Err("another standby goes by the same name".into());
    }
    if !matches!(facts.synchronous_commit.as_str(), "on" | "remote_write" | "remote_apply") {
        return Err(format!("synchronous_commit is {} by default", facts.synchronous_commit).into());
    }
    if !facts.exceptions.is_empty() {
        return Err(format!("synchronous_commit lets commits go without waiting for {}", facts.exceptions).into());
    }
    Ok(())
}

/// `synchronous_standby_names`, read (PostgreSQL: syncrep_gram.y, syncrep_scanner.l).
#[derive(Debug, PartialEq, Eq)]
struct StandbyNames {
    required: usize,
    names: Vec<String>,
}

impl StandbyNames {
    /// None: not understood.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let Some(list) = text.strip_suffix(')') else {
            // `a, b` is FIRST 1 (a, b).
            return Some(Self { required: 1, names: Self::list(text)? });
        };
        let (head, list) = list.split_once('(')?;
        let mut words = head.split_whitespace();
        let first = words.next()?;
        let number = if first.eq_ignore_ascii_case("any") || first.eq_ignore_ascii_case("first") {
            words.next()?
        } else {
            first
        };
        let required = number.parse().ok().filter(|_| words.next().is_none())?;
        Some(Self { required, names: Self::list(list)? })
    }

    fn list(text: &str) -> Option<Vec<String>> {
        let name = |name: &str| match name.trim() {
            "" => None,
            quoted if quoted.starts_with('"') => {
                let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
                Some(inner.replace("\"\"", "\""))
            }
            plain => Some(plain.to_string()),
        };
        // A comma within quotes makes this fail, which only costs the mode.
        if text.trim().is_empty() { Some(Vec::new()) } else { text.split(',').map(name).collect() }
    }
}

impl Replication {
    /// Asks again and again whether commits wait for `process`, the walsender of this life of the stream.
    pub(super) async fn watch_standby(self, process: i32) {
        let Some(standby) = self.standby() else { return };
        loop {
            let outcome: Result<(), UpstreamError> = async {
                let mut connection = Connection::open(self.address(), &[("application_name", self.name())]).await?;
                loop {
                    // A look at a commit has no time for opening one.
                    drop(self.samples().connection().await?);
                    let asked_at = Uptime::now();
                    let sql = facts_sql(process, &standby.name);
                    let rows = tokio::time::timeout(ANSWER_MAX, connection.simple_query(&sql)).await;
                    let facts = facts(&rows.map_err(|_| UpstreamError::Timeout("synchronous standby"))??)?;
                    match assess(&facts, &standby.name) {
                        Err(why) => standby.downgrade(why),
                        Ok(()) if standby.is_distrustful() => standby.downgrade(ESCAPED.into()),
                        Ok(()) => standby.confirm(asked_at),
                    }
                    tokio::time::sleep(ASK_EVERY).await;
                }
            }
            .await;
            if let Err(error) = outcome {
                standby.downgrade(format!("upstream cannot be asked: {error}").into());
                tokio::time::sleep(ASK_EVERY).await;
            }
        }
    }

    /// Before what was received is acknowledged: whether a transaction of it has not waited for that.
    pub(super) async fn look_for_escape(&self) {
        let Some((standby, xid)) = self.standby().and_then(|standby| Some((standby, standby.sample(Uptime::now())?)))
        else {
            return;
        };
        let visible = tokio::time::timeout(SAMPLE_MAX, async {
            let client = self.samples().connection().await?;
            let row = client.query_one("SELECT pg_current_snapshot()::text", &[]).await?;
            Ok::<_, UpstreamError>(VisibilitySnapshot::parse(row.get(0)))
        });
        if let Ok(Ok(Some(snapshot))) = visible.await
            && snapshot.sees(snapshot.widen(xid))
        {
            standby.note_escape(xid);
        }
    }
}

fn facts(rows: &[Row]) -> Result<StandbyFacts, UpstreamError> {
    let row = rows.first().ok_or(UpstreamError::Protocol("a row is missing"))?;
    let cell =
        |at: usize| row.get(at).and_then(Option::as_ref).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(StandbyFacts {
        names: cell(0).unwrap_or_default(),
        sync_state: cell(1),
        namesakes: cell(2).and_then(|count| count.parse().ok()).unwrap_or(0),
        synchronous_commit: cell(3).unwrap_or_default(),
        exceptions: cell(4).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> StandbyFacts {
        StandbyFacts {
            names: "FIRST 1 (freshet)".into(),
            sync_state: Some("sync".into()),
            namesakes: 1,
            synchronous_commit: "on".into(),
            exceptions: String::new(),
        }
    }

    #[test]
    fn names_are_read_as_postgresql_does() {
        let parsed = |text| StandbyNames::parse(text).map(|list| (list.required, list.names.join("/")));
        assert_eq!(parsed("freshet"), Some((1, "freshet".into())));
        assert_eq!(parsed("a, \"B c\""), Some((1, "a/B c".into())));
        assert_eq!(parsed("2 (a, b)"), Some((2, "a/b".into())));
        assert_eq!(parsed("FIRST 2(a,b,c)"), Some((2, "a/b/c".into())));
        assert_eq!(parsed("any 1 (a)"), Some((1, "a".into())));
        assert_eq!(parsed(""), Some((1, String::new())));
        assert_eq!(parsed("FIRST x (a)"), None);
    }

    #[test]
    fn only_where_every_commit_must_wait_for_freshet_does_it_count() {
        assert_eq!(assess(&ready(), "freshet"), Ok(()));
        let all = StandbyFacts { names: "FIRST 2 (other, Freshet)".into(), ..ready() };
        assert_eq!(assess(&all, "freshet"), Ok(()));
        for names in ["", "*", "other", "freshet, other", "ANY 1 (freshet, other)", "FIRST 1 (freshet, *)"] {
            assert!(assess(&StandbyFacts { names: names.into(), ..ready() }, "freshet").is_err(), "{names}");
        }
        assert!(assess(&StandbyFacts { sync_state: None, ..ready() }, "freshet").is_err());
        assert!(assess(&StandbyFacts { sync_state: Some("potential".into()), ..ready() }, "freshet").is_err());
        assert!(assess(&StandbyFacts { namesakes: 2, ..ready() }, "freshet").is_err());
        assert!(assess(&StandbyFacts { synchronous_commit: "local".into(), ..ready() }, "freshet").is_err());
        assert!(assess(&StandbyFacts { exceptions: "role joe".into(), ..ready() }, "freshet").is_err());
    }

    #[test]
    fn what_was_confirmed_ends_and_counts_after_a_while_only() {
        let standby = Standby::new("freshet".into());
        assert!(standby.synchronous_since(SETTLE).is_none());
        let asked_at = Uptime::now();
        standby.confirm(asked_at);
        assert_eq!(standby.synchronous_since(SETTLE), Some(asked_at + SETTLE));
        assert!(standby.synchronous_since(Duration::ZERO).is_none(), "the lease is over");
        standby.note_transaction(4);
        assert_eq!(standby.sample(asked_at), None, "not settled");
        let later = asked_at + SETTLE;
        assert_eq!(standby.sample(later), None, "looked at once");
        standby.note_transaction(5);
        assert_eq!((standby.sample(later), standby.sample(later)), (Some(5), None));
        standby.note_escape(5);
        assert!(standby.synchronous_since(SETTLE).is_none() && standby.is_distrustful());
    }
}
