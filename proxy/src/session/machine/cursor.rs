//! Cursors of psqlODBC that live here (see [`crate::session::cursor`]): a result computed at DECLARE, fetched forward.

use ahash::HashMap;

use crate::session::answer::Reply;
use crate::session::change::Reprinted;
use crate::session::machine::portal::Portal;
use crate::session::machine::{ExpectedKind, Machine, Undo};
use crate::session::{control, cursor};
use crate::wire::query::{TransactionStatus, query, write_command_complete, write_query};

/// The view of them all.
const SHOWS_ALL: &[u8] = b"pg_cursors";

/// One cursor.
#[derive(Debug)]
pub(super) struct Cursor {
    portal: Portal,
    with_hold: bool,
    /// Declared in the open block, so that it goes if the block is rolled back.
    is_of_block: bool,
    /// Savepoints of the block when it was declared.
    depth: usize,
    /// As it was declared, and how many rows were fetched: what upstream needs to have it in the same place.
    declaration: Box<[u8]>,
    fetched: usize,
}

/// The cursors of one session.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    by_name: HashMap<Box<str>, Cursor>,
}

/// A cursor that upstream is given, and its name.
pub(super) type Moved = Box<(Box<str>, Cursor)>;

impl Cursors {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// See [`Portal::is_outdated`].
    pub(super) fn is_outdated(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|cursor| cursor.portal.is_outdated())
    }

    pub(super) fn note_reprinted(&mut self, reprinted: Reprinted, depth: usize) {
        self.by_name.values_mut().for_each(|cursor| cursor.portal.note_reprinted(reprinted, depth));
    }

    pub(super) fn bytes(&self) -> usize {
        self.by_name.values().map(|cursor| cursor.portal.bytes()).sum()
    }

    pub(super) fn clear(&mut self) {
        self.by_name.clear();
    }

    /// Upstream was not given it. Of one that it was given, and lost with what followed, nobody knows how far it was fetched.
    pub(super) fn put_back(&mut self, moved: Moved) {
        let (name, cursor) = *moved;
        self.by_name.entry(name).or_insert(cursor);
    }

    /// Forgets those that upstream is to have instead.
    fn take(&mut self, is_wanted: impl Fn(&str, &Cursor) -> bool) -> Vec<(Box<str>, Cursor)> {
        let wanted = self.by_name.iter().filter(|(name, cursor)| is_wanted(name, cursor));
        let names: Vec<Box<str>> = wanted.map(|(name, _)| name.clone()).collect();
        names.iter().filter_map(|name| self.by_name.remove_entry(name)).collect()
    }

    /// The transaction is over (PostgreSQL: PreCommit_Portals, AtAbort_Portals): those WITH HOLD outlive their commit.
    pub(super) fn end_of_transaction(&mut self, is_committed: bool) {
        self.by_name.retain(|_, cursor| cursor.with_hold && (is_committed || !cursor.is_of_block));
        for cursor in self.by_name.values_mut() {
            cursor.is_of_block = false;
            // Whether the end has taken the setting back is not looked at.
            cursor.portal.keep_settings(0);
        }
    }

    /// As of portals; those that outlived an earlier block stay.
    pub(super) fn roll_back_to(&mut self, depth: usize) {
        self.by_name.retain(|_, cursor| !cursor.is_of_block || cursor.depth < depth);
        self.by_name.values_mut().for_each(|cursor| cursor.portal.restore_settings(depth));
    }

    pub(super) fn release_to(&mut self, depth: usize) {
        for cursor in self.by_name.values_mut() {
            cursor.depth = cursor.depth.min(depth);
            cursor.portal.keep_settings(depth);
        }
    }
}

impl Machine {
    /// Whether a RELEASE names a savepoint of the open block, or a DEALLOCATE a prepared statement.
    pub fn knows_what_is_named(&self, sql: &[u8]) -> bool {
        match control::deallocated_name(sql) {
            Some(name) => self.prepared(name.as_bytes()).is_some(),
            None => control::savepoint_name(sql).is_some_and(|name| self.tracker.knows_savepoint(&name)),
        }
    }

    pub fn has_cursor(&self, name: &str) -> bool {
        self.cursors.contains(name)
    }

    pub(super) fn declare_cursor(&mut self, name: &str, with_hold: bool, declaration: &[u8], reply: Reply) {
        let portal = Portal::of_reply(reply);
        let depth = self.tracker.savepoints();
        let declaration = declaration.into();
        let cursor = Cursor { portal, with_hold, is_of_block: true, depth, declaration, fetched: 0 };
        self.cursors.by_name.insert(name.into(), cursor);
        self.to_client.write(|out| write_command_complete(out, "DECLARE CURSOR"));
    }

    pub(super) fn fetch_cursor(&mut self, name: &str, limit: Option<usize>) {
        let Some(cursor) = self.cursors.by_name.get_mut(name) else { return };
        cursor.portal.describe(&mut self.to_client);
        let rows = cursor.portal.hand_out(limit, &mut self.to_client);
        cursor.fetched += rows;
        self.to_client.write(|out| write_command_complete(out, &format!("FETCH {rows}")));
    }

    pub(super) fn close_cursor(&mut self, name: &str) {
        self.cursors.by_name.remove(name);
        self.to_client.write(|out| write_command_complete(out, "CLOSE CURSOR"));
    }

    /// Before a Query goes upstream: it may name cursors that live here, or close them all.
    pub(super) fn mind_cursors(&mut self, body: &[u8]) {
        if self.keeps_cursors() {
            return;
        }
        let text = query(body).unwrap_or(body);
        self.restore_cursors(|name, _| may_concern(text, name));
        if cursor::closes_all(text) {
            self.cursors.clear();
        }
    }

    /// Before a Parse of this text, or a Bind of a statement that has it; None: of one that is not known. Behind other messages of
    /// its group if `is_unsynced`. Upstream runs it later, if at all: what closes all cursors gets them all.
    pub(super) fn mind_cursors_of_statement(&mut self, text: Option<&[u8]>, is_unsynced: bool) {
        if self.keeps_cursors() {
            return;
        }
        let is_wanted = |name: &str| text.is_none_or(|text| may_concern(text, name) || cursor::closes_all(text));
        let wanted = self.cursors.take(|name, _| is_wanted(name));
        let is_any = !wanted.is_empty();
        for moved in wanted.into_iter().map(Box::new) {
            let (name, cursor) = &*moved;
            let forward = move_forward(cursor.fetched, name);
            self.run_own(&cursor.declaration, None);
            self.run_own(forward.as_bytes(), Some(Undo::Cursor(moved)));
        }
        if is_any && !is_unsynced {
            self.sync_quietly();
        }
    }

    /// There is none, or the block takes nothing but its end.
    fn keeps_cursors(&self) -> bool {
        self.cursors.is_empty() || self.state.status == TransactionStatus::Failed
    }

    /// Likewise where it makes upstream print values otherwise, those that nothing was fetched from.
    pub(super) fn reprint_cursors(&mut self, reprinted: Reprinted) {
        if self.state.status != TransactionStatus::Failed {
            self.restore_cursors(|_, cursor| cursor.fetched == 0 && cursor.portal.is_reprinted(reprinted));
        }
    }

    /// Upstream gets these cursors, each where it stands. Its rows are of upstream's present from there on, and what its block has
    /// written since DECLARE is in them, which is why those alone are moved that upstream must have.
    fn restore_cursors(&mut self, is_wanted: impl Fn(&str, &Cursor) -> bool) {
        for (name, cursor) in self.cursors.take(is_wanted) {
            let sql = [&cursor.declaration, &b";"[..], move_forward(cursor.fetched, &name).as_bytes()].concat();
            self.answered.clear();
            write_query(&mut self.answered, &sql);
            self.to_upstream.push(&self.answered);
            self.expect_quiet(ExpectedKind::Answered(self.state.status));
        }
    }
}

/// Whether a text may read of a cursor by its name, or lists all.
fn may_concern(text: &[u8], name: &str) -> bool {
    let shows_all = || text.windows(SHOWS_ALL.len()).any(|window| window.eq_ignore_ascii_case(SHOWS_ALL));
    cursor::names(text, name.as_bytes()) || shows_all()
}

fn move_forward(rows: usize, name: &str) -> String {
    format!("move forward {rows} in \"{name}\"")
}
