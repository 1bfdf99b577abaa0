//! First copies: which table is next, and what becomes of it.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use freshet_engine::catalog::RelationId;
use freshet_engine::mirror::{CopyId, TableState, TableStatus, TrackedBecause};
use freshet_engine::reason::UpstreamReason;
use freshet_engine::table::Generation;
use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;

use crate::replication::bootstrap::{self, HandOver, HandOverError, HandedOver};
use crate::replication::catalog::TableFacts;
use crate::replication::copy::{CopyError, qualified_name};
use crate::replication::status::StreamState;
use crate::replication::supervise::admission::{self, Footprint};
use crate::replication::supervise::{
    COPIES_MAX, Entry, RETRY_MAX, Replication, Stored, TICK, Unfit, WAITING_MAX, Wanted,
};
use crate::upstream::UpstreamError;

/// A table that could not be held is tried again after these times, if it has changed.
const UNFIT_MIN: Duration = Duration::from_secs(30);
const UNFIT_MAX: Duration = Duration::from_secs(3_600);
/// A copy that came to nothing is tried again no sooner than after as long as it took, at most this: upstream is read for nothing for half
/// of the time.
const COPY_PAUSE_MAX: Duration = Duration::from_secs(300);
/// A table that was in use when its replica identity was to be set is tried again after pauses that grow up to this.
const LOCKED_PAUSE_MAX: Duration = Duration::from_secs(300);

impl Entry {
    /// What the table takes that is being copied, about.
    fn copied_bytes(&self) -> Option<usize> {
        let Wanted::Copying { facts, .. } = &self.state else { return None };
        Some(admission::needed(self.outgrew.max(facts.estimated_bytes())))
    }

    /// Of one with a value that cannot be held: that may be gone by now.
    fn is_to_be_tried_again(&mut self, generation: Generation, now: Instant) -> bool {
        let unfit = self.unfit.get_or_insert(Unfit { since: now, generation, pause: UNFIT_MIN });
        let is_due = now.duration_since(unfit.since) >= unfit.pause && generation != unfit.generation;
        if is_due {
            *unfit = Unfit { since: now, generation, pause: (unfit.pause * 2).min(UNFIT_MAX) };
        }
        is_due
    }
}

/// A copy that may run.
struct BegunCopy {
    relation: RelationId,
    attempt: u64,
    /// None: all there is to do at first is to set its replica identity.
    copy: Option<CopyId>,
    facts: TableFacts,
    rows: Arc<AtomicU64>,
}

/// A table that the mirror follows from now on.
struct Followed {
    /// How many rows it has here.
    rows: Result<usize, TrackedBecause>,
    membership: i64,
}

enum NotFollowed {
    HandOver(HandOverError),
    Finish(UpstreamReason),
}

impl Replication {
    /// Starts copies of tables that are due, and puts poisoned ones in line again.
    pub(super) async fn copy_tables(self) {
        let shared = &self.shared;
        let mut copies = JoinSet::new();
        loop {
            self.requeue();
            // Of those that wait for their tables' writers, so many more than read.
            while copies.len() < COPIES_MAX + shared.slots.waiting().min(WAITING_MAX) {
                let Some(begun) = self.begin_copy() else { break };
                copies.spawn_on(self.clone().copy_table(begun), &shared.copiers);
            }
            tokio::select! {
                () = shared.wanted.notified() => {}
                Some(_) = copies.join_next() => {}
                () = sleep(TICK) => {}
            }
        }
    }

    /// Poisoned tables are copied again, and tracked ones for which there is, or is made, room.
    fn requeue(&self) {
        let shared = &self.shared;
        self.free(shared.mirror.recount());
        // Others have been finished, or grown, since a copy began that still runs.
        shared.budget.set_bytes_max(shared.mirror.room());
        let mut tables = shared.tables.lock();
        let statuses = shared.mirror.statuses();
        let mut forgotten = Vec::new();
        for status in &statuses {
            let Some(entry) = tables.get_mut(&status.schema.id) else { continue };
            let why = match (&entry.state, &status.state) {
                (Wanted::Mirrored { .. }, TableState::Poisoned(why)) => why,
                (Wanted::Mirrored { .. }, TableState::Tracked(why)) if entry.has_rows => {
                    tracing::info!(table = %status.schema.name, %why, "tracked: its rows are given up");
                    entry.has_rows = false;
                    continue;
                }
                _ => continue,
            };
            tracing::warn!(table = %status.schema.name, %why, "the table is copied again");
            forgotten.push(status.schema.id);
            entry.fail(format!("poisoned: {why}"));
            // Most likely its schema changed.
            shared.reload.notify_one();
        }
        let mut victims = Vec::new();
        // The room that is there may be another copy's.
        let copying = tables.values().filter_map(Entry::copied_bytes).collect::<Vec<usize>>();
        if copying.len() <= shared.slots.waiting() {
            // Those that wait for their writers take theirs when they read.
            let room = copying.iter().fold(shared.mirror.room(), |room, bytes| room.saturating_sub(*bytes));
            victims = self.make_room(&mut tables, statuses, room, &mut forgotten);
        }
        drop(tables);
        let mut freed = shared.mirror.demote(&victims, &TrackedBecause::LacksRoom);
        freed.add(shared.mirror.forget(&forgotten));
        self.free(freed);
    }

    /// Puts tracked tables in line again (they are to be `forgotten`): those whose time has come, and one for which there is room
    /// without the rows of those that are returned.
    fn make_room(
        &self,
        tables: &mut HashMap<RelationId, Entry>,
        statuses: Vec<TableStatus>,
        room: usize,
        forgotten: &mut Vec<RelationId>,
    ) -> Vec<RelationId> {
        let mut footprints = Vec::with_capacity(statuses.len());
        for status in statuses {
            let Some(entry) = tables.get_mut(&status.schema.id) else { continue };
            let Wanted::Mirrored { facts, .. } = &entry.state else { continue };
            match &status.state {
                TableState::Mirrored => footprints.push(Footprint::mirrored(&status)),
                TableState::Tracked(TrackedBecause::LacksRoom) => {
                    entry.outgrew = entry.outgrew.max(status.bytes_once);
                    footprints.push(Footprint::tracked(&status, facts, entry.outgrew));
                }
                TableState::Tracked(TrackedBecause::Unfit(_)) => {
                    if entry.is_to_be_tried_again(status.generation, Instant::now()) {
                        forgotten.push(status.schema.id);
                        entry.state = Wanted::Due(Instant::now(), "it has changed since it could not be held".into());
                    }
                }
                TableState::Poisoned(_) | TableState::Copying => {}
            }
        }
        let Some(admitted) = admission::next(&footprints, room) else { return Vec::new() };
        if let Some(entry) = tables.get_mut(&admitted.relation) {
            forgotten.push(admitted.relation);
            entry.state = Wanted::Due(Instant::now(), "there is room for it".into());
        }
        admitted.victims
    }

    /// Picks the next table that is due and lets the mirror keep its changes.
    fn begin_copy(&self) -> Option<BegunCopy> {
        let shared = &self.shared;
        while let Some(picked) = self.pick() {
            if picked.facts.refusal.is_some() {
                return Some(picked);
            }
            let begun = shared.mirror.start_copy(Arc::clone(&picked.facts.schema));
            let mut tables = shared.tables.lock();
            // Not if the stream was lost since it was picked; one that is lost from here on clears the mirror after this.
            let entry = tables.get_mut(&picked.relation).filter(|entry| entry.attempt == picked.attempt);
            match (begun, entry) {
                (Ok(copy), Some(_)) => return Some(BegunCopy { copy: Some(copy), ..picked }),
                (Ok(copy), None) => {
                    drop(tables);
                    self.free(shared.mirror.give_up(copy));
                }
                (Err(reason), Some(entry)) => entry.refuse(picked.facts.layout, reason.to_string()),
                (Err(_), None) => {}
            }
        }
        None
    }

    /// The table that has been due for longest: it is being copied from now on.
    fn pick(&self) -> Option<BegunCopy> {
        let shared = &self.shared;
        let mut tables = shared.tables.lock();
        // Looked at under the lock: a stream that is lost from here on comes by this entry after this.
        let StreamState::Running(_) = &**shared.stream.load() else { return None };
        let loaded = shared.loaded.load_full();
        let now = Instant::now();
        let due = |(relation, entry): (&RelationId, &Entry)| match entry.state {
            Wanted::Due(at, _) if at <= now => Some((at, *relation)),
            _ => None,
        };
        let mut due: Vec<(Instant, RelationId)> = tables.iter().filter_map(due).collect();
        due.sort_unstable();
        for (_, relation) in &due {
            let Some(entry) = tables.get_mut(relation) else { continue };
            let Some(facts) = loaded.tables.get(relation) else {
                entry.fail("not in the catalog".into());
                continue;
            };
            if let Some(refusal) = facts.refusal.as_ref().filter(|refusal| shared.options.keeps_refused(refusal)) {
                entry.state = Wanted::Refused(refusal.clone());
                // Should it be a member of the publication, it is no longer to be one.
                shared.reload.notify_one();
                continue;
            }
            let rows = Arc::new(AtomicU64::new(0));
            entry.attempt += 1;
            entry.state = Wanted::Copying { facts: facts.clone(), rows: Arc::clone(&rows) };
            let (relation, attempt, facts) = (*relation, entry.attempt, facts.clone());
            return Some(BegunCopy { relation, attempt, copy: None, facts, rows });
        }
        None
    }

    async fn copy_table(self, begun: BegunCopy) {
        let shared = &self.shared;
        let (relation, copy) = (begun.relation, begun.copy);
        let started = Instant::now();
        let panicked = |_| Err(UpstreamError::Protocol("its copy panicked").into());
        let handed_over = AssertUnwindSafe(self.hand_over(&begun.facts, Arc::clone(&begun.rows))).catch_unwind();
        let outcome = tokio::select! {
            outcome = handed_over => match outcome.unwrap_or_else(panicked) {
                Ok(copied) => self.finish_copy(copy, copied).await.map_err(NotFollowed::Finish),
                Err(error) => Err(NotFollowed::HandOver(error)),
            },
            reason = self.given_up(copy) => Err(NotFollowed::Finish(reason)),
        };
        let elapsed = started.elapsed();
        let mut withdrawn = Ok(());
        if let (Err(_), Some(copy)) = (&outcome, copy) {
            self.free(shared.mirror.give_up(copy));
            withdrawn = self.withdraw(relation, begun.attempt).await;
        }
        self.settle(begun, outcome, elapsed);
        // Not before: as long as it is being copied it belongs in the publication.
        if let Err(error) = withdrawn {
            self.note_still_published(relation, &error).await;
        }
    }

    /// What becomes of a table whose copy has come to its end.
    fn settle(&self, begun: BegunCopy, outcome: Result<Followed, NotFollowed>, elapsed: Duration) {
        let shared = &self.shared;
        let BegunCopy { relation, attempt, facts, .. } = begun;
        let name = qualified_name(&facts.schema);
        let pause_min = elapsed.min(COPY_PAUSE_MAX);
        // Whoever changes the entry of a table that is being copied forgets the copy, finished or not: if it is still this one's, so is
        // what the mirror has.
        let mut tables = shared.tables.lock();
        let Some(entry) = tables.get_mut(&relation).filter(|entry| entry.attempt == attempt) else {
            // Its schema changed or the stream was lost meanwhile; someone else has dealt with it.
            return;
        };
        match outcome {
            Ok(Followed { rows, membership }) => {
                entry.failures = 0;
                entry.state = Wanted::Mirrored { facts, membership };
                shared.counters.copies.fetch_add(1, Ordering::Relaxed);
                entry.has_rows = rows.is_ok();
                match rows {
                    Ok(rows) => tracing::info!(table = %name, rows, ?elapsed, "mirrored"),
                    Err(why) => tracing::info!(table = %name, %why, "tracked: its rows stay upstream"),
                }
            }
            Err(NotFollowed::Finish(reason)) => entry.put_off(reason.to_string(), pause_min, RETRY_MAX),
            Err(NotFollowed::HandOver(error)) => {
                match error {
                    // Definitions come and go.
                    HandOverError::CatalogMoved
                    | HandOverError::InTheWay
                    | HandOverError::Locked
                    | HandOverError::StoredOtherwise => {
                        tracing::debug!(table = %name, why = %error, "its copy is put off");
                    }
                    HandOverError::LockersStayed | HandOverError::Crowded | HandOverError::Copy(_) => {
                        tracing::info!(table = %name, %error, "not mirrored");
                    }
                }
                match error {
                    HandOverError::CatalogMoved | HandOverError::StoredOtherwise => {
                        shared.reload.notify_one();
                        entry.fail(error.to_string());
                    }
                    // A short pause will do, as nothing was read. The next try waits anew for all who write the table by then.
                    HandOverError::LockersStayed => entry.fail(error.to_string()),
                    HandOverError::InTheWay | HandOverError::Crowded | HandOverError::Copy(_) => {
                        entry.put_off(error.to_string(), pause_min, RETRY_MAX);
                    }
                    HandOverError::Locked => entry.put_off(error.to_string(), Duration::ZERO, LOCKED_PAUSE_MAX),
                }
            }
        }
        drop(tables);
        shared.wanted.notify_one();
    }

    /// A table that is to wait for another try leaves the publication meanwhile: nobody would notice that it loses its identity.
    async fn withdraw(&self, relation: RelationId, attempt: u64) -> Result<(), UpstreamError> {
        let is_current = self.shared.tables.lock().get(&relation).is_some_and(|entry| entry.attempt == attempt);
        let (true, Ok(running)) = (is_current, self.running()) else { return Ok(()) };
        bootstrap::unpublish(&self.shared.pool, &running.publication.name, relation).await
    }

    /// Returns when the mirror has given the copy up (too much has changed meanwhile): the rest of the rows would be read for nothing.
    async fn given_up(&self, copy: Option<CopyId>) -> UpstreamReason {
        let Some(copy) = copy else { return std::future::pending().await };
        loop {
            sleep(TICK).await;
            if let Some(reason) = self.shared.mirror.given_up_because(copy) {
                return reason;
            }
        }
    }

    /// Puts what was copied into the mirror, with all that the stream has brought meanwhile: on a thread that may be busy for long.
    async fn finish_copy(&self, copy: Option<CopyId>, copied: HandedOver) -> Result<Followed, UpstreamReason> {
        let HandedOver { table, copied_at, insert_lsn, membership, held, slot, .. } = copied;
        let given_up = || UpstreamReason::TableNotMirrored("its copy was given up".into());
        let copy = copy.ok_or_else(given_up)?;
        let rows = table.as_ref().map(|table| table.rows).map_err(TrackedBecause::clone);
        let shared = Arc::clone(&self.shared);
        let finished = tokio::task::spawn_blocking(move || match table {
            Ok(table) => shared.mirror.finish_copy(copy, table, copied_at, insert_lsn),
            Err(why) => shared.mirror.finish_tracked(copy, why, copied_at, insert_lsn),
        });
        finished.await.map_err(|_| given_up())??;
        drop((held, slot));
        Ok(Followed { rows, membership })
    }

    /// Notes how the copied table's stored columns compared. An error: the catalog in use has them computed, and they are not that.
    fn note_stored(
        &self,
        relation: RelationId,
        compared: Option<String>,
        copied: HandedOver,
    ) -> Result<HandedOver, HandOverError> {
        let mut stored = self.shared.stored.lock();
        let Some(compared) = compared else {
            stored.remove(&relation);
            return Ok(copied);
        };
        let is_otherwise = copied.is_stored_otherwise;
        let before = stored.insert(relation, Stored { compared, is_otherwise });
        match (before.is_some_and(|before| before.is_otherwise), is_otherwise) {
            (false, true) => return Err(HandOverError::StoredOtherwise),
            (true, false) => self.shared.reload.notify_one(),
            (false, false) | (true, true) => {}
        }
        Ok(copied)
    }

    /// All others queue behind the ACCESS EXCLUSIVE lock that this asks for: it waits for a moment only.
    async fn set_full_identity(&self, facts: &TableFacts) -> Result<(), HandOverError> {
        let mut client = self.shared.pool.connection().await?;
        let transaction = client.transaction().await?;
        let name = qualified_name(&facts.schema);
        // The catalog in use may be that of before it was set.
        const IS_SET: &str = "SELECT FROM pg_class WHERE oid = $1 AND relreplident = 'f'";
        if transaction.query_opt(IS_SET, &[&facts.schema.id.0]).await?.is_some() {
            return Ok(());
        }
        let set = format!("SET LOCAL lock_timeout = '50ms'; ALTER TABLE ONLY {name} REPLICA IDENTITY FULL");
        match transaction.batch_execute(&set).await {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => return Err(HandOverError::Locked),
            set => set?,
        }
        transaction.commit().await?;
        tracing::info!(table = name, "set REPLICA IDENTITY FULL");
        Ok(())
    }

    async fn hand_over(&self, facts: &TableFacts, rows_copied: Arc<AtomicU64>) -> Result<HandedOver, HandOverError> {
        let shared = &self.shared;
        if facts.refusal.is_some() {
            self.set_full_identity(facts).await?;
            return Err(HandOverError::CatalogMoved);
        }
        let StreamState::Running(running) = &**shared.stream.load() else {
            return Err(HandOverError::CatalogMoved);
        };
        let room = shared.mirror.room();
        shared.budget.set_bytes_max(room);
        let hand_over = HandOver {
            pool: shared.pool.clone(),
            address: shared.options.address.clone(),
            publication: running.publication.clone(),
            facts: facts.clone(),
            stored_columns: self.loaded().stored_columns.get(&facts.schema.id).cloned(),
            server_version: self.loaded().catalog.server_version,
            workers: shared.options.copy_workers.max(1),
            budget: Arc::clone(&shared.budget),
            slots: Arc::clone(&shared.slots),
            started_at: running.server.started_at,
            rows_copied,
        };
        // Do not start what cannot end well.
        if facts.estimated_bytes() > room {
            return hand_over.track(TrackedBecause::LacksRoom).await;
        }
        let compared = hand_over.stored_columns.clone();
        let copied = hand_over.run().await.and_then(|copied| self.note_stored(facts.schema.id, compared, copied));
        match copied {
            Err(HandOverError::Copy(CopyError::OverMemory)) => {
                // A copy that ran beside it may have taken room, and be finished.
                let room = room.min(shared.mirror.room());
                if let Some(entry) = shared.tables.lock().get_mut(&facts.schema.id) {
                    entry.outgrew = entry.outgrew.max(room);
                }
                hand_over.track(TrackedBecause::LacksRoom).await
            }
            Err(HandOverError::Crowded) => hand_over.track(TrackedBecause::LacksRoom).await,
            Err(HandOverError::Copy(CopyError::NotHeld(why))) => hand_over.track(TrackedBecause::Unfit(why)).await,
            copied => copied,
        }
    }
}

#[cfg(test)]
mod tests {
    use freshet_engine::types::Lsn;

    use super::*;

    #[test]
    fn pauses_grow_within_their_bounds() {
        let mut entry = Entry::due("new");
        let mut pauses = |count: usize, pause_min: u64, pause_max: u64| {
            let put_off = |_| {
                let now = Instant::now();
                entry.put_off("busy".into(), Duration::from_secs(pause_min), Duration::from_secs(pause_max));
                let Wanted::Due(at, _) = entry.state else { panic!("it is due") };
                (at - now).as_secs()
            };
            (0..count).map(put_off).collect::<Vec<u64>>()
        };
        assert_eq!(pauses(14, 0, 300), [0, 0, 0, 0, 1, 3, 6, 12, 25, 51, 102, 204, 300, 300]);
        assert_eq!(pauses(2, 0, 10), [10, 10]);
        assert_eq!(pauses(2, 60, 10), [60, 60], "a copy took that long");
    }

    #[test]
    fn what_could_not_be_held_is_tried_again_after_changes_and_less_and_less_often() {
        let mut entry = Entry::due("new");
        let begun = Instant::now();
        let mut tried = Vec::new();
        for second in 0..7_200 {
            // Changed all the time, but for the first minute.
            let generation = Generation(Lsn(second.max(60)));
            if entry.is_to_be_tried_again(generation, begun + Duration::from_secs(second)) {
                tried.push(second);
            }
        }
        assert_eq!(tried, [61, 121, 241, 481, 961, 1921, 3841]);
    }
}
