//! Portals that live here: a result computed at Bind, handed out Execute by Execute.

use std::collections::VecDeque;
use std::sync::Arc;

use ahash::HashMap;
use bytes::{Buf, Bytes};
use freshet_engine::statement::{lexer, quiet};

use crate::session::answer::{PreparedStatement, Reply};
use crate::session::buffer::OutBuffer;
use crate::session::change::Reprinted;
use crate::session::control::{Control, begins_with};
use crate::session::cursor;
use crate::session::effect::Effect;
use crate::wire::extended::{NO_DATA, PORTAL_SUSPENDED};
use crate::wire::frame::{Frames, HEADER_LENGTH, Head, head};
use crate::wire::query::{Field, row_description, write_command_complete};

/// What a portal runs.
#[derive(Debug)]
enum Content {
    /// DataRow frames and CommandComplete that are not handed out yet; the first piece may be begun.
    Rows(VecDeque<Bytes>),
    /// Transaction control, carried out by its one execution.
    Control(Control, Box<[u8]>),
    /// It was.
    Spent,
    /// Everything is handed out; another Execute finds no rows (PostgreSQL: PortalRunSelect at the end of a portal).
    Ended,
}

/// A bound statement and the rows it has left.
#[derive(Debug)]
pub(super) struct Portal {
    /// RowDescription in the portal's formats; empty for NoData.
    columns: Bytes,
    content: Content,
    /// What ends its executions once its rows are handed out, where the tag has no number of rows: that of SHOW, or SET.
    end: Bytes,
    bytes: usize,
    /// Savepoints of the block when it was bound.
    depth: usize,
    /// Where it comes from, for a named one.
    origin: Option<Origin>,
    /// Upstream has one of the same name, that it may refuse another; see [`super::Machine::occupy_portal`].
    is_occupied: bool,
    /// Savepoints of the block when a setting was changed by which the rows that wait would be printed otherwise.
    outdated_at: Option<usize>,
}

/// What upstream needs to have the portal, too.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) statement: Arc<PreparedStatement>,
    /// The Bind behind its names.
    pub(super) values: Box<[u8]>,
    /// Rows that are handed out.
    pub(super) fetched: u32,
}

/// What an Execute did.
pub(super) enum Executed {
    Rows,
    /// The caller carries it out.
    Control(Control, Box<[u8]>),
}

impl Portal {
    pub(super) fn of_reply(reply: Reply) -> Self {
        let bytes = reply.rows.iter().map(Bytes::len).sum();
        Self::new(reply.columns, Content::Rows(reply.rows.into()), bytes)
    }

    pub(super) fn of_control(control: Control, sql: &[u8]) -> Self {
        Self::new(Bytes::new(), Content::Control(control, sql.into()), sql.len())
    }

    fn new(columns: Bytes, content: Content, bytes: usize) -> Self {
        let end = Bytes::new();
        Self { columns, content, end, bytes, depth: 0, origin: None, is_occupied: false, outdated_at: None }
    }

    pub(super) fn from(mut self, statement: &Arc<PreparedStatement>, values: &[u8]) -> Self {
        self.bytes += statement.sql.len() + values.len();
        self.origin = Some(Origin { statement: Arc::clone(statement), values: values.into(), fetched: 0 });
        self
    }

    pub(super) fn describe(&self, out: &mut OutBuffer) {
        out.push(if self.columns.is_empty() { NO_DATA } else { &self.columns });
    }

    /// Execute: all rows that are left, or at most `rows_max` where it is positive. A run that was asked for exactly what
    /// was left is suspended: only the next one finds the end (PostgreSQL: PortalRunSelect). The tag counts one run's rows.
    pub(super) fn execute(&mut self, rows_max: i32, out: &mut OutBuffer) -> Executed {
        if let Content::Control(..) = self.content
            && let Content::Control(control, sql) = std::mem::replace(&mut self.content, Content::Spent)
        {
            return Executed::Control(control, sql);
        }
        let limit = usize::try_from(rows_max).ok().filter(|limit| *limit > 0);
        let rows = self.hand_out(limit, out);
        if let Some(origin) = &mut self.origin {
            origin.fetched = origin.fetched.saturating_add(u32::try_from(rows).unwrap_or(u32::MAX));
        }
        match &self.content {
            Content::Rows(_) if limit == Some(rows) => out.push(PORTAL_SUSPENDED),
            _ if !self.end.is_empty() => out.push(&self.end),
            _ => out.write(|out| write_command_complete(out, &format!("SELECT {rows}"))),
        }
        Executed::Rows
    }

    /// Appends the next rows, all or at most `limit`; how many there were.
    pub(super) fn hand_out(&mut self, limit: Option<usize>, out: &mut OutBuffer) -> usize {
        let Content::Rows(pieces) = &mut self.content else { return 0 };
        let mut rows = 0;
        while let Some(piece) = pieces.front_mut() {
            let (taken, found, is_end) = take_rows(piece, limit.map(|limit| limit - rows));
            out.push_shared(&piece.split_to(taken));
            rows += found;
            if is_end {
                if !Frames::new(piece).any(|frame| frame.tag == b'C' && frame.body.starts_with(b"SELECT ")) {
                    self.end = piece.clone();
                }
                break;
            }
            if limit == Some(rows) {
                return rows;
            }
            if !piece.has_remaining() {
                pieces.pop_front();
            }
        }
        // A reply ends with CommandComplete; without one there is nothing left to hand out either.
        self.content = Content::Ended;
        rows
    }

    /// Upstream can have it instead.
    fn is_movable(&self, name: &[u8]) -> bool {
        self.origin.is_some() && !name.is_empty() && !self.is_occupied
    }

    /// Whether a text may be about the portal, which to PostgreSQL is a cursor of that name, or a definition is refused because the
    /// portal has one of its tables open (PostgreSQL: CheckTableNotInUse).
    pub(super) fn is_meant(&self, name: &[u8], text: &[u8], effect: Effect) -> bool {
        let has = |word: &[u8]| text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
        let is_opaque = effect == Effect::Opaque;
        let may_name = is_opaque || CURSOR_WORDS.iter().any(|word| has(word));
        let may_define = is_opaque && DEFINITION_WORDS.iter().any(|word| has(word))
            || REWRITES.iter().any(|word| begins_with(text, word));
        has(b"pg_cursors")
            || cursor::closes_all(text)
            || may_name && cursor::names(text, name)
            || may_define && self.tables().iter().any(|table| cursor::names(text, table.as_bytes()))
    }

    /// Rows wait in it that upstream would print otherwise: here they are printed already.
    pub(super) fn is_reprinted(&self, reprinted: Reprinted) -> bool {
        match reprinted {
            Reprinted::Nothing => false,
            Reprinted::SomeTypes => self.has_rows() && !self.is_plain(),
            Reprinted::All => self.has_rows(),
        }
    }

    /// Likewise, and none is handed out yet, so that upstream may begin anew, in whatever order.
    pub(super) fn is_reprinted_whole(&self, reprinted: Reprinted) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.fetched == 0) && self.is_reprinted(reprinted)
    }

    /// A piece begins with a row or with the end.
    fn has_rows(&self) -> bool {
        let Content::Rows(pieces) = &self.content else { return false };
        pieces.iter().any(|piece| piece.first() == Some(&b'D'))
    }

    /// Such a setting has been changed, with so many savepoints open.
    pub(super) fn note_reprinted(&mut self, reprinted: Reprinted, depth: usize) {
        if self.is_reprinted(reprinted) {
            self.outdated_at = self.outdated_at.or(Some(depth));
        }
    }

    /// The rows that wait are printed by settings that are no longer in force.
    pub(super) fn is_outdated(&self) -> bool {
        self.outdated_at.is_some() && self.has_rows()
    }

    /// ROLLBACK TO has left `depth` savepoints: the settings that were changed after the last of them are what they were.
    pub(super) fn restore_settings(&mut self, depth: usize) {
        self.outdated_at = self.outdated_at.filter(|at| *at < depth);
    }

    /// RELEASE has left `depth` savepoints, or the end of the block none: what was changed since belongs to what is around.
    pub(super) fn keep_settings(&mut self, depth: usize) {
        self.outdated_at = self.outdated_at.map(|at| at.min(depth));
    }

    /// As far as is known: tables' columns alone, in text of [`PLAIN_TYPES`]. What is computed may hang on settings whatever its type is.
    fn is_plain(&self) -> bool {
        let fields = self.columns.get(HEADER_LENGTH..).and_then(row_description);
        let is_plain =
            |field: &Field<'_>| field.table_oid != 0 && (field.format != 0 || PLAIN_TYPES.contains(&field.type_oid));
        fields.is_some_and(|fields| fields.iter().all(is_plain))
    }

    /// By name, and their schemas.
    fn tables(&self) -> Vec<String> {
        let sql = self.origin.as_ref().and_then(|origin| std::str::from_utf8(&origin.statement.sql).ok());
        let tokens = sql.and_then(|sql| lexer::tokens(sql).ok()).unwrap_or_default();
        quiet::relation_names(&tokens).map(|name| name.into_owned()).collect()
    }

    /// Of the rows it began with, and of where it comes from.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Types (OIDs) whose texts depend on no setting: bool, name, the integers, text, oid, bpchar, varchar, numeric, uuid.
const PLAIN_TYPES: [u32; 11] = [16, 19, 20, 21, 23, 25, 26, 1042, 1043, 1700, 2950];

/// A statement about a cursor has one of these words.
const CURSOR_WORDS: [&[u8]; 5] = [b"fetch", b"move", b"close", b"current", b"declare"];
/// What is refused for a table in use has one of these.
const DEFINITION_WORDS: [&[u8]; 5] = [b"alter", b"drop", b"truncate", b"index", b"refresh"];
/// Likewise of what changes nothing else.
const REWRITES: [&[u8]; 2] = [b"cluster", b"reindex"];

/// The length and number of the DataRow frames at the head of `piece`, and whether CommandComplete follows them.
fn take_rows(piece: &[u8], limit: Option<usize>) -> (usize, usize, bool) {
    let (mut at, mut rows) = (0, 0);
    while limit.is_none_or(|limit| rows < limit)
        && let Head::Frame { tag, length } = head(&piece[at..])
    {
        if tag != b'D' {
            return (at, rows, true);
        }
        at += length;
        rows += 1;
    }
    (at.min(piece.len()), rows, false)
}

/// The portals of one session.
#[derive(Debug, Default)]
pub(super) struct Portals {
    by_name: HashMap<Box<[u8]>, Portal>,
    bytes: usize,
    /// That upstream was given, behind a savepoint that they are older than: rolled back to, it takes them from upstream alone.
    given: Vec<Given>,
}

/// A portal as it was when upstream was given one in its place.
#[derive(Debug)]
struct Given {
    name: Box<[u8]>,
    portal: Portal,
    /// Savepoints of the block then.
    at: usize,
}

impl Portals {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn contains(&self, name: &[u8]) -> bool {
        self.by_name.contains_key(name)
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Portal> {
        self.by_name.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &[u8]) -> Option<&mut Portal> {
        self.by_name.get_mut(name)
    }

    pub(super) fn is_outdated(&self, name: &[u8]) -> bool {
        self.get(name).is_some_and(Portal::is_outdated)
    }

    /// Transaction control that was carried out.
    pub(super) fn is_spent(&self, name: &[u8]) -> bool {
        self.get(name).is_some_and(|portal| matches!(portal.content, Content::Spent))
    }

    /// False: it was.
    pub(super) fn occupy(&mut self, name: &[u8]) -> bool {
        self.get_mut(name).is_some_and(|portal| !std::mem::replace(&mut portal.is_occupied, true))
    }

    pub(super) fn insert(&mut self, name: &[u8], mut portal: Portal, depth: usize) {
        self.remove(name);
        portal.depth = depth;
        self.bytes += portal.bytes;
        self.by_name.insert(name.into(), portal);
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        drop(self.take(name));
    }

    pub(super) fn take(&mut self, name: &[u8]) -> Option<Portal> {
        self.forget_given(|given| given == name);
        let portal = self.by_name.remove(name)?;
        self.bytes -= portal.bytes;
        Some(portal)
    }

    /// What upstream was given has been moved there, or may have been, or goes.
    pub(super) fn forget_given(&mut self, is_meant: impl Fn(&[u8]) -> bool) {
        let bytes = &mut self.bytes;
        self.given.retain(|given| {
            let goes = is_meant(&given.name);
            *bytes -= if goes { given.portal.bytes } else { 0 };
            !goes
        });
    }

    /// As it was when it was taken.
    pub(super) fn put_back(&mut self, name: &[u8], portal: Portal) {
        let depth = portal.depth;
        self.insert(name, portal, depth);
    }

    /// One of the named portals that upstream can have instead is wanted there.
    pub(super) fn any(&self, is_wanted: impl Fn(&[u8], &Portal) -> bool) -> bool {
        self.by_name.iter().any(|(name, portal)| portal.is_movable(name) && is_wanted(name, portal))
    }

    /// Gives those away, with `depth` savepoints open; returns what upstream needs to have them.
    pub(super) fn give(
        &mut self,
        depth: usize,
        is_wanted: impl Fn(&[u8], &Portal) -> bool,
    ) -> Vec<(Box<[u8]>, Origin)> {
        let wanted = self.by_name.iter().filter(|(name, portal)| portal.is_movable(name) && is_wanted(name, portal));
        let names: Vec<Box<[u8]>> = wanted.map(|(name, _)| name.clone()).collect();
        let mut taken = Vec::new();
        for name in names {
            let Some(portal) = self.take(&name) else { continue };
            let Some(origin) = portal.origin.clone() else { continue };
            if portal.depth < depth {
                self.bytes += portal.bytes;
                self.given.push(Given { name: name.clone(), portal, at: depth });
            }
            taken.push((name, origin));
        }
        taken
    }

    /// ROLLBACK TO has left `depth` savepoints: what was bound after the last of them goes (PostgreSQL: AtSubAbort_Portals), from
    /// upstream too.
    pub(super) fn roll_back_to(&mut self, depth: usize) {
        self.by_name.retain(|_, portal| portal.depth < depth);
        for Given { name, portal, at } in std::mem::take(&mut self.given) {
            if at < depth {
                self.given.push(Given { name, portal, at });
            } else if portal.depth < depth {
                self.by_name.insert(name, portal);
            }
        }
        for portal in self.by_name.values_mut() {
            portal.is_occupied = false;
            portal.restore_settings(depth);
        }
        self.count_bytes();
    }

    /// RELEASE has left `depth` savepoints: what was bound since belongs to the block around (AtSubCommit_Portals).
    pub(super) fn release_to(&mut self, depth: usize) {
        for portal in self.by_name.values_mut() {
            portal.depth = portal.depth.min(depth);
            portal.keep_settings(depth);
        }
        for given in &mut self.given {
            given.at = given.at.min(depth);
            given.portal.depth = given.portal.depth.min(depth);
        }
        // Upstream's is of the same level now.
        self.given.retain(|given| given.portal.depth < given.at);
        self.count_bytes();
    }

    fn count_bytes(&mut self) {
        let given = self.given.iter().map(|given| &given.portal);
        self.bytes = self.by_name.values().chain(given).map(|portal| portal.bytes).sum();
    }

    pub(super) fn note_reprinted(&mut self, reprinted: Reprinted, depth: usize) {
        self.by_name.values_mut().for_each(|portal| portal.note_reprinted(reprinted, depth));
    }

    pub(super) fn clear(&mut self) {
        if !self.is_empty() || !self.given.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::query::{write_data_row, write_value};

    fn portal(rows: usize, per_piece: usize) -> Portal {
        portal_of(&format!("SELECT {rows}"), rows, per_piece)
    }

    fn portal_of(tag: &str, rows: usize, per_piece: usize) -> Portal {
        let mut frames = Vec::new();
        for row in 0..rows {
            let mut out = Vec::new();
            write_data_row(&mut out, 1, |out| write_value(out, Some(row.to_string().as_bytes())));
            frames.push(out);
        }
        let mut end = Vec::new();
        write_command_complete(&mut end, tag);
        frames.push(end);
        let pieces = frames.chunks(per_piece).map(|chunk| Bytes::from(chunk.concat())).collect();
        Portal::of_reply(Reply { rows: pieces, ..Reply::default() })
    }

    fn run(portal: &mut Portal, rows_max: i32) -> String {
        let mut out = OutBuffer::default();
        assert!(matches!(portal.execute(rows_max, &mut out), Executed::Rows));
        let bytes = out.take();
        let frames: Vec<String> = Frames::new(&bytes)
            .map(|frame| match frame.tag {
                b'C' => String::from_utf8_lossy(&frame.body[..frame.body.len() - 1]).into_owned(),
                tag => char::from(tag).to_string(),
            })
            .collect();
        frames.join(" ")
    }

    #[test]
    fn rows_leave_in_portions_whatever_the_pieces() {
        for per_piece in [1, 2, 3, 7] {
            let mut some = portal(5, per_piece);
            assert_eq!(run(&mut some, 2), "D D s");
            assert_eq!(run(&mut some, 2), "D D s");
            assert_eq!(run(&mut some, 2), "D SELECT 1");
            assert_eq!(run(&mut some, 2), "SELECT 0");
            assert_eq!(run(&mut some, 0), "SELECT 0");
            let mut exact = portal(4, per_piece);
            assert_eq!(run(&mut exact, 4), "D D D D s", "the end is not seen yet");
            assert_eq!(run(&mut exact, 4), "SELECT 0");
            assert_eq!(run(&mut portal(3, per_piece), 0), "D D D SELECT 3");
            assert_eq!(run(&mut portal(3, per_piece), -1), "D D D SELECT 3");
            assert_eq!(run(&mut portal(0, per_piece), 10), "SELECT 0");
        }
    }

    #[test]
    fn a_tag_without_a_number_stays_as_it_is() {
        for per_piece in [1, 2] {
            assert_eq!(run(&mut portal_of("SET", 0, per_piece), 0), "SET");
            assert_eq!(run(&mut portal_of("SHOW", 1, per_piece), 0), "D SHOW");
            let mut limited = portal_of("SHOW", 1, per_piece);
            assert_eq!(run(&mut limited, 1), "D s");
            assert_eq!(run(&mut limited, 1), "SHOW");
            assert_eq!(run(&mut limited, 0), "SHOW");
        }
    }
}
