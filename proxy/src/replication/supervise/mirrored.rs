//! What [`crate::freshness`] asks of the mirror: moments, digests, changes, and which tables are wanted.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use freshet_config::TableChoice;
use freshet_engine::catalog::{Catalog, RelationEntry, RelationId};
use freshet_engine::change_log::RowChanges;
use freshet_engine::mirror::{TableState, TrackedBecause};
use freshet_engine::planted::{Bug, is_planted};
use freshet_engine::reason::UpstreamReason;
use freshet_engine::snapshot::{Snapshot, VisibilitySnapshot};
use freshet_engine::table::Generation;
use freshet_engine::types::Lsn;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::replication::applied::Attention;
use crate::replication::catalog::LoadedCatalog;
use crate::replication::choice::{Chosen, LEFT_OUT};
use crate::replication::standby::Standby;
use crate::replication::status::{Running, StreamState};
use crate::replication::stream;
use crate::replication::supervise::{Entry, Replication, Wanted};
use crate::replication::written::{Touched, WrittenTable};
use crate::upstream::address::UpstreamAddress;
use crate::upstream::service::ServicePool;

/// Where upstream's address leads is looked at no more often than this, for sessions that are at another server than the stream.
const LOOK_PAUSE: Duration = Duration::from_secs(10);

impl Replication {
    pub fn stream_state(&self) -> Arc<StreamState> {
        self.shared.stream.load_full()
    }

    /// The life of the stream that runs now, or why none does.
    pub fn running(&self) -> Result<Arc<Running>, UpstreamReason> {
        match &**self.shared.stream.load() {
            StreamState::Running(running) => Ok(Arc::clone(running)),
            StreamState::Down(why) => Err(UpstreamReason::MirrorBehind(why.clone())),
            StreamState::RelayOnly(why) => Err(UpstreamReason::RelayOnly(why.clone())),
        }
    }

    /// No life of the stream has come to run or to an end.
    pub fn is_beginning(&self) -> bool {
        self.shared.counters.restarts.load(Ordering::Relaxed) == 0
            && matches!(&**self.shared.stream.load(), StreamState::Down(_))
    }

    /// Changes whenever more has been applied, to the one subscriber that [attends](Self::attend); falls to 0 when the stream is lost.
    pub fn applied(&self) -> watch::Receiver<Lsn> {
        self.shared.applied.subscribe()
    }

    /// What the subscriber of [`Self::applied`] makes of progress from now on; to be said before it reads.
    pub fn attend(&self, attention: Attention) {
        self.shared.applied.attend(attention);
    }

    /// Transactions that changed a mirrored table, since the start.
    pub fn transactions(&self) -> u64 {
        self.shared.counters.transactions.load(Ordering::Relaxed)
    }

    /// Of the catalog in [`Self::loaded`], without sharing it: this is asked for every statement.
    pub fn catalog_version(&self) -> u64 {
        self.shared.loaded.load().catalog.version
    }

    pub fn loaded(&self) -> Arc<LoadedCatalog> {
        self.shared.loaded.load_full()
    }

    pub fn pool(&self) -> &ServicePool {
        &self.shared.pool
    }

    /// A connection of its own for [`crate::replication::standby`].
    pub(in crate::replication) fn samples(&self) -> &ServicePool {
        &self.shared.samples
    }

    pub fn address(&self) -> &UpstreamAddress {
        &self.shared.options.address
    }

    /// `application_name` of freshet's connections, by which other freshets know that this one lives.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Asks the walsender where it is.
    pub fn ping(&self) {
        self.shared.ping.notify_one();
    }

    /// The catalog is not (or may not be) the one in force upstream.
    pub fn request_reload(&self) {
        self.shared.reload.notify_one();
    }

    /// The server is not the one that streams: everything is discarded.
    pub fn request_restart(&self) {
        self.shared.restart.notify_one();
    }

    /// Whether a session's line, to a server that was started then, ends where the stream does: while an old server lives, its
    /// address may be given to another, and new lines get there. Who is elsewhere has it looked at where the address leads now.
    pub fn is_at_server(&self, started_at: i64) -> bool {
        let streams = self.shared.started_at.load(Ordering::Relaxed);
        // Without a stream nothing is answered.
        let is_there = streams == started_at || streams == 0 || is_planted(Bug::IgnoreServer);
        if !is_there {
            self.look_elsewhere();
        }
        is_there
    }

    /// A name may have several addresses: that one session is elsewhere does not say that the stream would get there.
    fn look_elsewhere(&self) {
        let mut looked = self.shared.looked.lock();
        if looked.is_some_and(|at| at.elapsed() < LOOK_PAUSE) {
            return;
        }
        *looked = Some(Instant::now());
        self.shared.elsewhere.notify_one();
    }

    pub(super) async fn look_where_the_address_leads(self) {
        loop {
            self.shared.elsewhere.notified().await;
            let StreamState::Running(running) = &**self.shared.stream.load() else { continue };
            match stream::server_started_at(&self.shared.options.address).await {
                Ok(started_at) if started_at != running.server.started_at => {
                    tracing::warn!(
                        "upstream's address leads to another server than the stream's, which starts over there"
                    );
                    self.request_restart();
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "upstream's address was not looked at"),
            }
        }
    }

    /// The tables that are followed, mirrored and tracked ones, ascending.
    pub fn followed(&self) -> Vec<RelationId> {
        let tables = self.shared.tables.lock();
        let is_followed = |relation: RelationId, entry: &Entry| {
            matches!(entry.state, Wanted::Mirrored { .. })
                && matches!(self.shared.mirror.state(relation), Some(TableState::Mirrored | TableState::Tracked(_)))
        };
        let followed = tables.iter().filter(|(relation, entry)| is_followed(**relation, entry));
        let mut relations: Vec<RelationId> = followed.map(|(relation, _)| *relation).collect();
        relations.sort_unstable();
        relations
    }

    /// The tables of these names (of a partitioned one, its leaves, too; with those that inherit from it), in any schema if the name
    /// has none. None: a write to one of these names may change others' rows, or it is not known what it is, or whether (a
    /// catalog is watched for mirrored tables only).
    pub fn written(&self, written: &[WrittenTable]) -> Option<Vec<Touched>> {
        let loaded = self.loaded();
        let mut touched = Vec::new();
        for written in written {
            let (table, schema) = written.name.split_last()?;
            let schemas = loaded.catalog.schemas.iter();
            let schemas = schemas.filter(|(of, _)| schema.last().is_none_or(|schema| **schema == ***of));
            let before = touched.len();
            // A parameter may have got its type when the name meant another.
            let is_only =
                loaded.catalog.schemas.values().filter(|entries| entries.contains_key(table.as_str())).count() == 1;
            for entry in schemas.filter_map(|(_, entries)| entries.get(table.as_str())) {
                let RelationEntry::Table(table) = entry else { return None };
                let all = loaded.catalog.expand(&loaded.catalog.with_heirs(table.id).ok()?);
                let confined = written.confined.as_ref().filter(|_| all == [table.id]);
                let confined = confined.filter(|confined| loaded.understands(confined.write(), table));
                // A row trigger of a partitioned table is one of its leaves, too; of others it is not known here.
                for id in all {
                    // It has the name, which may be another's by now.
                    if loaded.catalog.is_derived(id) {
                        touched.push(Touched::whole(id));
                        continue;
                    }
                    let facts = loaded.tables.get(&id).filter(|facts| facts.writes_stay)?;
                    touched.push(match confined {
                        Some(confined) => {
                            let since = if is_only { facts.layout_since } else { u64::MAX };
                            Touched::confined(table, confined, since)
                        }
                        None => Touched::whole(id),
                    });
                }
                // Unless it is watched, it may have got some since the catalog was read.
                let is_quiet =
                    || loaded.quiet_roots.contains(&table.id) && self.shared.watched.lock().contains(&table.id);
                if loaded.catalog.is_derived(table.id) && !is_quiet() {
                    return None;
                }
            }
            if touched.len() == before {
                return None;
            }
        }
        let relations: Vec<RelationId> = touched.iter().map(|touched| touched.relation).collect();
        self.membership_digest(&relations).map(|_| touched)
    }

    /// The digest of these tables' rows in pg_publication_rel. None: one of them is not mirrored.
    pub fn membership_digest(&self, relations: &[RelationId]) -> Option<i64> {
        self.memberships(relations).map(|each| each.iter().fold(0, |digest, membership| digest ^ membership))
    }

    /// The digest of each of these tables' rows in pg_publication_rel, 0 for relations made of others. None: one of them is
    /// not mirrored.
    pub fn memberships(&self, relations: &[RelationId]) -> Option<Vec<i64>> {
        let loaded = self.shared.loaded.load();
        let tables = self.shared.tables.lock();
        let membership = |relation: &RelationId| match tables.get(relation).map(|entry| &entry.state) {
            _ if loaded.derived.contains_key(relation) => Some(0),
            Some(Wanted::Mirrored { membership, .. }) => Some(*membership),
            Some(Wanted::Due(..) | Wanted::Copying { .. } | Wanted::Refused(_) | Wanted::Unfit { .. }) | None => None,
        };
        relations.iter().map(membership).collect()
    }

    /// Why statements over these relations cannot be answered, of which one is not mirrored: for people.
    pub fn not_mirrored_because(&self, relations: &[RelationId]) -> String {
        let loaded = self.shared.loaded.load();
        let tables = self.shared.tables.lock();
        let is_listed = matches!(self.shared.options.tables, TableChoice::List(_));
        let why = |relation: &RelationId| {
            let name = &loaded.catalog.tables.get(relation)?.name;
            let Some(entry) = tables.get(relation) else { return is_listed.then(|| format!("{name}: {LEFT_OUT}")) };
            match &entry.state {
                Wanted::Refused(refusal) => Some(format!("{name}: {}", refusal.why)),
                Wanted::Unfit { why, .. } => Some(format!("{name}: {why}")),
                Wanted::Due(..) | Wanted::Copying { .. } | Wanted::Mirrored { .. } => None,
            }
        };
        relations.iter().find_map(why).unwrap_or_else(|| "not mirrored (yet)".to_owned())
    }

    /// The relations made of others that answers were asked from, as far as they are (still) there: what a barrier over
    /// everything compares beside the mirrored tables.
    pub fn watched(&self) -> Vec<RelationId> {
        let loaded = self.shared.loaded.load();
        let watched = self.shared.watched.lock();
        watched.iter().copied().filter(|relation| loaded.derived.contains_key(relation)).collect()
    }

    /// Whether one of them is made of others.
    pub fn has_derived(&self, relations: &[RelationId]) -> bool {
        let loaded = self.shared.loaded.load();
        !loaded.derived.is_empty() && relations.iter().any(|relation| loaded.catalog.is_derived(*relation))
    }

    /// From here on these relations, as far as they are made of others, are [`Self::watched`]. Whether one was not.
    pub fn watch(&self, relations: &[RelationId]) -> bool {
        let loaded = self.shared.loaded.load();
        let derived = relations.iter().filter(|relation| loaded.derived.contains_key(relation));
        let mut watched = self.shared.watched.lock();
        derived.filter(|relation| watched.insert(**relation)).count() > 0
    }

    /// Why statements over these relations cannot be computed here although their tables are followed.
    pub fn tracked_because(&self, relations: &[RelationId]) -> Option<TrackedBecause> {
        let loaded = self.shared.loaded.load();
        self.shared.mirror.tracked_because(&loaded.catalog.expand(relations))
    }

    /// How often each table was asked for of late: which ones are mirrored where there is not enough room for all.
    pub fn set_weights(&self, weights: HashMap<RelationId, f64>) {
        self.shared.mirror.set_weights(weights);
    }

    /// The tables among `relations` that are followed, as `visible` sees them.
    pub fn snapshot_at(
        &self,
        visible: &VisibilitySnapshot,
        required: Lsn,
        relations: &[RelationId],
        catalog: &Arc<Catalog>,
    ) -> Result<Snapshot, UpstreamReason> {
        if !relations.iter().any(|relation| catalog.is_derived(*relation)) {
            return self.shared.mirror.snapshot_at(visible, required, relations, catalog);
        }
        let relations: Vec<RelationId> =
            relations.iter().copied().filter(|relation| !catalog.is_derived(*relation)).collect();
        self.shared.mirror.snapshot_at(visible, required, &relations, catalog)
    }

    /// The changes of a table after one generation, up to another; None if they are not all known.
    pub fn changes_between(
        &self,
        table: RelationId,
        after: Generation,
        through: Generation,
    ) -> Option<Vec<Arc<RowChanges>>> {
        self.shared.mirror.changes_between(table, after, through)
    }

    /// Whether nothing received of these tables is missing from `snapshot`.
    pub fn is_newest(&self, snapshot: &Snapshot, relations: &[RelationId]) -> bool {
        self.shared.mirror.is_newest(snapshot, relations)
    }

    /// Whether transactions have been applied that `visible` does not see.
    pub fn pending_after(&self, visible: &VisibilitySnapshot) -> bool {
        self.shared.mirror.pending_after(visible)
    }

    /// How many transactions have said that they change the catalog.
    pub fn announcements(&self) -> u64 {
        self.shared.announcements.load(Ordering::SeqCst)
    }

    /// Whether one of them was not visible yet to a barrier that looked at the whole catalog.
    pub fn is_announced_after(&self, visible: &VisibilitySnapshot) -> bool {
        let mut announced = self.shared.announced.lock();
        announced.retain(|xid| !visible.sees(visible.widen(*xid)));
        !announced.is_empty()
    }

    /// Whether the moment shows one of them.
    pub fn is_announced_in(&self, visible: &VisibilitySnapshot) -> bool {
        self.shared.announced.lock().iter().any(|xid| visible.sees(visible.widen(*xid)))
    }

    /// The tables that were described in transactions that `visible` sees, each time once: they may be others than their rows here
    /// are of (ALTER TABLE ... USING rewrites them without a word in the log), and only their definitions tell.
    pub fn take_described(&self, visible: &VisibilitySnapshot) -> Vec<RelationId> {
        let mut taken = Vec::new();
        self.shared.described.lock().retain(|(xid, relation)| {
            let is_seen = visible.sees(visible.widen(*xid));
            if is_seen {
                taken.push(*relation);
            }
            !is_seen
        });
        taken
    }

    /// In mode `standby`.
    pub fn standby(&self) -> Option<&Standby> {
        self.shared.standby.as_ref()
    }

    pub fn retire(&self, visible: &VisibilitySnapshot) {
        self.shared.mirror.retire(visible);
    }

    /// A statement would have been answered here if this table were mirrored.
    pub fn want_table(&self, relation: RelationId) {
        let shared = &self.shared;
        let is_auto = shared.options.tables == TableChoice::Auto;
        let loaded = shared.loaded.load();
        let catalog = &loaded.catalog;
        let mut tables = shared.tables.lock();
        let (mut is_new, mut refused) = (false, Vec::new());
        for relation in catalog.expand(&[relation]).into_iter().filter(|relation| !catalog.is_derived(*relation)) {
            match tables.get(&relation).map(|entry| &entry.state) {
                // It may have got a key.
                Some(Wanted::Refused(_)) => refused.extend(loaded.tables.get(&relation)),
                None if is_auto => {
                    is_new = true;
                    tables.insert(relation, Entry::due("waits for its first copy"));
                }
                _ => {}
            }
        }
        drop(tables);
        refused.iter().for_each(|facts| self.look_for_table(&facts.schema.name));
        if is_new {
            shared.wanted.notify_one();
        }
    }

    /// Puts the tables of the configured list in line; names that are not there yet are looked for at every reload.
    pub(super) fn want_listed(&self) {
        let shared = &self.shared;
        if !matches!(shared.options.tables, TableChoice::List(_)) {
            return;
        }
        let loaded = shared.loaded.load();
        let catalog = Arc::clone(&loaded.catalog);
        let mut chosen = Chosen::of(&shared.options.tables, &catalog);
        let mut tables = shared.tables.lock();
        for relation in chosen.tables() {
            tables.entry(relation).or_insert_with(|| Entry::due("waits for its first copy"));
        }
        drop(tables);
        // By name, so that each is told once, however often the catalog is read.
        let refusals = chosen.tables().filter_map(|relation| {
            let facts = loaded.tables.get(&relation)?;
            let refusal = facts.refusal.as_ref().filter(|it| it.stands(shared.options.set_replica_identity_full))?;
            let mend = refusal.remedy.as_ref().map(|sql| format!("; to mend: {sql}")).unwrap_or_default();
            Some((format!("{}.{}", facts.schema.schema, facts.schema.name), format!("{}{mend}", refusal.why)))
        });
        let refusals: Vec<(String, String)> = refusals.collect();
        chosen.unknown.extend(refusals);
        let mut told = shared.unknown.lock();
        for (name, why) in chosen.unknown.iter().filter(|unknown| !told.contains(unknown)) {
            tracing::warn!(database = %catalog.database, name, %why, "mirror.tables names what is not mirrored");
        }
        *told = chosen.unknown;
        drop(told);
        shared.wanted.notify_one();
    }
}
