//! Message groups beyond the plain unit: several statements, portals with names or row limits, groups that end with
//! Flush. [`Machine::group`] takes one apart; [`Machine::answer_group`] answers it, all of it or nothing.

use std::sync::Arc;

use ahash::{HashMap, HashSet};
use freshet_engine::statement::lexer;

use crate::session::answer::{Form, PreparedStatement, Reply, Unit};
use crate::session::change::Change;
use crate::session::control::{self, Control};
use crate::session::cursor::{self, CursorStatement};
use crate::session::effect;
use crate::session::intercept;
use crate::session::machine::local::write_own_execution;
use crate::session::machine::portal::{Executed, Portal};
use crate::session::machine::{ExpectedKind, Machine, Unnamed, UnnamedPortal, is_too_long};
use crate::session::state::FirstQuery;
use crate::wire::error::{FAILED_TRANSACTION, write_error};
use crate::wire::extended::{
    BIND_COMPLETE, Bind, CLOSE_COMPLETE, Execute, FLUSH, NO_DATA, PARSE_COMPLETE, Parse, SYNC, Target, write_close,
};
use crate::wire::frame::{Frames, HEADER_LENGTH};
use crate::wire::query::{
    EMPTY_QUERY_RESPONSE, TransactionStatus, query, write_command_complete, write_query, write_ready_for_query,
};

/// Why upstream answers what has such a name.
const TOO_LONG: &str = "a name that PostgreSQL cuts off";

/// One message of a group, or one statement of a simple Query's text.
#[derive(Debug)]
pub enum Item<'a> {
    /// `is_judged`: another item of the group finds out whether the statement is one.
    Parse {
        parse: Parse<'a>,
        frame: &'a [u8],
        statement: Arc<PreparedStatement>,
        is_judged: bool,
    },
    DescribeStatement {
        name: &'a [u8],
        statement: Arc<PreparedStatement>,
    },
    /// `is_described`: the portal's columns will be told, in this group or, if rows stay in it, perhaps later.
    Bind {
        bind: Bind<'a>,
        frame: &'a [u8],
        statement: Arc<PreparedStatement>,
        is_described: bool,
    },
    DescribePortal(&'a [u8]),
    Execute(Execute<'a>),
    Close(Target<'a>),
    Statement(&'a [u8]),
    /// A statement about a cursor that may live here, and its text.
    Cursor(CursorStatement<'a>, &'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEnd {
    Query,
    Sync,
    Flush,
}

#[derive(Debug)]
pub struct Group<'a> {
    pub items: Vec<Item<'a>>,
    pub end: GroupEnd,
}

/// What the items so far have made of names: groups may have ten thousands of items.
#[derive(Default)]
struct Made<'a> {
    /// None: closed.
    statements: HashMap<&'a [u8], Option<Arc<PreparedStatement>>>,
    /// False: closed.
    portals: HashMap<&'a [u8], bool>,
}

impl<'a> Made<'a> {
    fn note(&mut self, item: &Item<'a>) {
        match item {
            Item::Parse { parse, statement, .. } => {
                self.statements.insert(parse.name, Some(Arc::clone(statement)));
            }
            Item::Bind { bind, .. } => {
                self.portals.insert(bind.portal, true);
            }
            Item::Close(Target::Statement(name)) => {
                self.statements.insert(name, None);
            }
            Item::Close(Target::Portal(name)) => {
                self.portals.insert(name, false);
            }
            Item::DescribeStatement { .. }
            | Item::DescribePortal(_)
            | Item::Execute(_)
            | Item::Statement(_)
            | Item::Cursor(..) => {}
        }
    }
}

/// What answers an item.
#[derive(Debug)]
pub enum Answer {
    /// The item needs no more than its acknowledgement.
    None,
    Reply(Reply),
    Control(Control),
}

impl Item<'_> {
    /// The item as an answerer is asked about it; None where there is nothing to ask.
    pub fn question(&self) -> Option<Unit<'_>> {
        match self {
            Self::DescribeStatement { statement, .. } | Self::Parse { statement, is_judged: false, .. } => Some(Unit {
                form: Form::Prepare,
                sql: &statement.sql,
                parameter_types: &statement.parameter_types,
                bind: None,
                prepared: Some(statement),
                describes_statement: matches!(self, Self::DescribeStatement { .. }),
                describes_portal: false,
                bytes: &[],
                arrival: None,
            }),
            Self::Bind { bind, statement, is_described, .. } => Some(Unit {
                form: Form::Execute,
                sql: &statement.sql,
                parameter_types: &statement.parameter_types,
                bind: Some(*bind),
                prepared: Some(statement),
                describes_statement: false,
                describes_portal: *is_described,
                bytes: &[],
                arrival: None,
            }),
            Self::Statement(_) | Self::Cursor(CursorStatement::Declare { .. }, _) => Some(Unit {
                form: Form::Simple,
                sql: self.query_text(),
                parameter_types: &[],
                bind: None,
                prepared: None,
                describes_statement: false,
                describes_portal: true,
                bytes: &[],
                arrival: None,
            }),
            Self::Parse { .. }
            | Self::DescribePortal(_)
            | Self::Execute(_)
            | Self::Close(_)
            | Self::Cursor(CursorStatement::Fetch { .. } | CursorStatement::Close { .. }, _) => None,
        }
    }

    /// The query of an item of a simple Query.
    fn query_text(&self) -> &[u8] {
        match self {
            Self::Cursor(CursorStatement::Declare { query, .. }, _) => query.as_bytes(),
            Self::Statement(sql) | Self::Cursor(_, sql) => sql,
            _ => b"",
        }
    }

    /// Whether its reply ends with a message that ends an execution.
    fn is_execution(&self) -> bool {
        matches!(self, Self::Execute(_) | Self::Statement(_) | Self::Cursor(..))
    }
}

impl Group<'_> {
    /// Executions, each in a snapshot of its own if the isolation level is per statement.
    pub fn executions(&self) -> usize {
        let runs = |item: &&Item<'_>| matches!(item, Item::Bind { .. } | Item::Statement(_) | Item::Cursor(..));
        self.items.iter().filter(runs).count()
    }

    /// Nothing but one statement is made, described, bound or run.
    pub fn is_of_one_statement(&self) -> bool {
        let mut ids = self.items.iter().filter_map(|item| match item {
            Item::Parse { statement, .. }
            | Item::DescribeStatement { statement, .. }
            | Item::Bind { statement, .. } => Some(statement.id),
            _ => None,
        });
        let texts = self.items.iter().filter(|item| matches!(item, Item::Statement(_) | Item::Cursor(..))).count();
        let first = ids.next();
        let closes = |item: &Item<'_>| matches!(item, Item::Close(Target::Statement(name)) if !name.is_empty());
        !self.items.iter().any(closes)
            && self.executions() == 1
            && texts + usize::from(first.is_some()) == 1
            && ids.all(|id| Some(id) == first)
    }

    /// Executions that are complete before item `at` is looked at: what an observer of that item's reply must let pass.
    pub fn executions_before(&self, at: usize) -> usize {
        self.items.iter().take(at).filter(|item| item.is_execution()).count()
    }

    /// Whether what comes behind [`Self::executions_before`], up to the next description or the end of the next execution, is about item
    /// `at` alone: its observer takes it for that.
    pub fn is_told_apart(&self, at: usize) -> bool {
        let last = self.items.iter().take(at).rposition(Item::is_execution);
        let start = last.map_or(0, |last| last + 1);
        let is_description = |item: &Item<'_>| matches!(item, Item::DescribeStatement { .. } | Item::DescribePortal(_));
        let is_of = |item: &Item<'_>, of: &PreparedStatement| matches!(item, Item::DescribeStatement { statement, .. } if statement.id == of.id);
        match &self.items[at] {
            Item::Parse { statement, .. } | Item::DescribeStatement { statement, .. } => {
                self.items[start..].iter().find(|item| is_description(item)).is_none_or(|first| is_of(first, statement))
            }
            Item::Bind { bind, statement, .. } => {
                let end = self.items[at..].iter().position(Item::is_execution).map(|behind| at + behind);
                let runs = |item: &Item<'_>| matches!(item, Item::Execute(execute) if execute.portal == bind.portal);
                let is_bound_again =
                    |item: &Item<'_>| matches!(item, Item::Bind { bind: other, .. } if other.portal == bind.portal);
                let before = &self.items[start..at];
                let behind = &self.items[at + 1..end.unwrap_or(self.items.len())];
                let is_own = |item: &Item<'_>| {
                    matches!(item, Item::DescribePortal(portal) if *portal == bind.portal) || is_of(item, statement)
                };
                end.is_none_or(|end| runs(&self.items[end]))
                    && before.iter().all(|item| !is_description(item) || is_of(item, statement))
                    && behind.iter().all(|item| !is_bound_again(item) && (!is_description(item) || is_own(item)))
            }
            _ => true,
        }
    }

    /// The portal that item `at` binds, where the group has no Execute of it.
    pub fn bound_only(&self, at: usize) -> Option<&[u8]> {
        let Some(Item::Bind { bind, .. }) = self.items.get(at) else { return None };
        let runs = |item: &Item<'_>| matches!(item, Item::Execute(execute) if execute.portal == bind.portal);
        (!self.items[at..].iter().any(runs)).then_some(bind.portal)
    }

    /// The first FETCH from the cursor that item `at` declares, and its limit.
    pub fn fetch_of(&self, at: usize) -> Option<(usize, Option<usize>)> {
        let Some(Item::Cursor(CursorStatement::Declare { name: declared, .. }, _)) = self.items.get(at) else {
            return None;
        };
        self.items.iter().enumerate().find_map(|(at, item)| match item {
            Item::Cursor(CursorStatement::Fetch { name, limit }, _) if name == declared => Some((at, *limit)),
            _ => None,
        })
    }

    /// The text from item `at` of a simple Query on, where it is one statement.
    pub fn last_statement(&self, at: usize) -> Option<&[u8]> {
        match self.items.get(at..)? {
            [Item::Statement(sql)] => Some(sql),
            _ => None,
        }
    }

    /// Bytes that portals with names take beside their rows, for as long as they are there.
    pub fn named_portals(&self) -> usize {
        let bytes = |item: &Item<'_>| match item {
            Item::Bind { bind, frame, statement, .. } if !bind.portal.is_empty() => frame.len() + statement.sql.len(),
            _ => 0,
        };
        self.items.iter().map(bytes).sum()
    }

    /// Some rows may stay in a portal after the group.
    pub fn leaves_rows(&self) -> bool {
        let executed = |portal: &[u8]| {
            self.items.iter().any(|item| matches!(item, Item::Execute(e) if e.portal == portal && e.rows_max <= 0))
        };
        self.items.iter().any(|item| match item {
            Item::Bind { bind, .. } => !executed(bind.portal),
            Item::Cursor(..) => true,
            _ => false,
        })
    }
}

impl Machine {
    /// Takes the group in `bytes` apart, or tells what about it is upstream's business: names that are taken or unknown
    /// are errors that only upstream reports.
    pub fn group<'a>(&mut self, bytes: &'a [u8]) -> Result<Group<'a>, &'static str> {
        if let Some(frame) = Frames::new(bytes).next().filter(|frame| frame.tag == b'Q') {
            let sql = query(frame.body).ok_or("malformed Query")?;
            let mut items = Vec::new();
            for sql in statements(sql).ok_or("not lexed")? {
                let item = match cursor::read(sql) {
                    None => Item::Statement(sql),
                    Some(statement) => self.cursor_item(statement, sql, &items)?,
                };
                items.push(item);
            }
            return Ok(Group { items, end: GroupEnd::Query });
        }
        let (mut items, mut made) = (Vec::new(), Made::default());
        let mut end = GroupEnd::Sync;
        for frame in Frames::new(bytes) {
            let item = match frame.tag {
                b'P' => self.parse_item(frame.bytes, frame.body, &made)?,
                b'B' => self.bind_item(frame.bytes, frame.body, &made)?,
                b'D' => match Target::view(frame.body).ok_or("malformed Describe")? {
                    Target::Statement(name) => {
                        Item::DescribeStatement { name, statement: self.known(name, &made).ok_or("unknown statement")? }
                    }
                    Target::Portal(name) if self.has_portal(name, &made) => Item::DescribePortal(name),
                    Target::Portal(_) => return Err("Describe of another portal"),
                },
                b'E' => {
                    let execute = Execute::view(frame.body).ok_or("malformed Execute")?;
                    if !self.has_portal(execute.portal, &made) {
                        return Err("Execute of another portal");
                    }
                    // Message by message it comes to be refused in its turn.
                    if !made.portals.contains_key(execute.portal) && self.portals.is_outdated(execute.portal) {
                        return Err("rows that are printed by other settings");
                    }
                    Item::Execute(execute)
                }
                b'C' => match Target::view(frame.body).ok_or("malformed Close")? {
                    target if is_too_long(target.name()) => return Err(TOO_LONG),
                    target => Item::Close(target),
                },
                b'S' => break,
                b'H' => {
                    end = GroupEnd::Flush;
                    break;
                }
                _ => return Err("messages in another order"),
            };
            made.note(&item);
            items.push(item);
        }
        self.check_portals(&items)?;
        // Portals that stay may be described later.
        let stays = end == GroupEnd::Flush
            || self.state.status != TransactionStatus::Idle
            || items
                .iter()
                .any(|item| matches!(item, Item::Bind { statement, .. } if control::read(&statement.sql).is_some()));
        judge(&mut items, stays);
        Ok(Group { items, end })
    }

    fn parse_item<'a>(&mut self, frame: &'a [u8], body: &'a [u8], made: &Made<'a>) -> Result<Item<'a>, &'static str> {
        let parse = Parse::view(body).ok_or("malformed Parse")?;
        if is_too_long(parse.name) {
            return Err(TOO_LONG);
        }
        if !parse.name.is_empty() {
            if self.known(parse.name, made).is_some() {
                return Err("a statement of that name exists");
            }
            // What is for freshet upstream would not understand, whatever else has that name.
            let is_own = || intercept::is_for_freshet(parse.sql, self.limits.schema) && self.has_room();
            if !self.knows_all_statements() && !is_own() {
                let has_room = self.has_room();
                return Err(if has_room {
                    "a statement of that name may exist"
                } else {
                    "too many prepared statements"
                });
            }
        }
        let statement = self.prepare(&parse);
        Ok(Item::Parse { parse, frame, statement, is_judged: false })
    }

    fn bind_item<'a>(&self, frame: &'a [u8], body: &'a [u8], made: &Made<'a>) -> Result<Item<'a>, &'static str> {
        let bind = Bind::view(body).ok_or("malformed Bind")?;
        if is_too_long(bind.portal) {
            return Err(TOO_LONG);
        }
        let may_be_upstream = self.upstream_portals.contains(bind.portal)
            || self.upstream_portals.len() >= self.limits.prepared_statements_max;
        if !bind.portal.is_empty() && (may_be_upstream || self.has_portal(bind.portal, made)) {
            return Err("a portal of that name exists");
        }
        if self.portals.len() + made.portals.len() >= self.limits.prepared_statements_max && !bind.portal.is_empty() {
            return Err("too many portals");
        }
        let statement = self.known(bind.statement, made).ok_or("unknown statement")?;
        Ok(Item::Bind { bind, frame, statement, is_described: false })
    }

    fn cursor_item<'a>(
        &self,
        statement: CursorStatement<'a>,
        sql: &'a [u8],
        items: &[Item<'a>],
    ) -> Result<Item<'a>, &'static str> {
        let (CursorStatement::Declare { name, .. }
        | CursorStatement::Fetch { name, .. }
        | CursorStatement::Close { name }) = statement;
        let before = items.iter().rev().find_map(|item| match item {
            Item::Cursor(CursorStatement::Declare { name: known, .. }, _) if *known == name => Some(true),
            Item::Cursor(CursorStatement::Close { name: known }, _) if *known == name => Some(false),
            _ => None,
        });
        let exists = before.unwrap_or_else(|| self.has_cursor(name));
        match (matches!(statement, CursorStatement::Declare { .. }), exists) {
            (true, true) => Err("a cursor of that name exists"),
            (false, false) => Err("a cursor of upstream's"),
            _ => Ok(Item::Cursor(statement, sql)),
        }
    }

    /// The statement of that name after the items so far.
    fn known(&self, name: &[u8], made: &Made<'_>) -> Option<Arc<PreparedStatement>> {
        let known = made.statements.get(name);
        known.map_or_else(|| self.prepared(name).cloned(), Clone::clone)
    }

    fn has_portal(&self, name: &[u8], made: &Made<'_>) -> bool {
        made.portals.get(name).copied().unwrap_or_else(|| self.portals.contains(name))
    }

    /// Portals of transaction control are run where they are bound, and once; what runs behind the end of a transaction is
    /// bound there.
    fn check_portals(&self, items: &[Item<'_>]) -> Result<(), &'static str> {
        let mut bound: Option<(&[u8], Control)> = None;
        let (mut made, mut spent): (HashSet<&[u8]>, Vec<&[u8]>) = Default::default();
        let mut has_ended = false;
        for item in items {
            match item {
                Item::DescribePortal(name) if bound.is_some_and(|(portal, _)| portal == *name) => {}
                Item::Execute(execute) if bound.is_some_and(|(portal, _)| portal == execute.portal) => {
                    spent.push(execute.portal);
                    if let Some((_, Control::Commit | Control::Rollback)) = bound.take() {
                        has_ended = true;
                        made.clear();
                    }
                }
                _ if bound.is_some() => return Err("transaction control that is not run at once"),
                Item::Bind { bind, statement, .. } => {
                    bound = control::read(&statement.sql).map(|control| (bind.portal, control));
                    if bound.is_some() && (bind.parameter_count > 0 || !statement.parameter_types.is_empty()) {
                        return Err("transaction control with parameters");
                    }
                    spent.retain(|portal| *portal != bind.portal);
                    made.insert(bind.portal);
                }
                Item::Execute(Execute { portal, .. }) | Item::DescribePortal(portal) => {
                    let is_made = made.contains(portal);
                    if has_ended && !is_made {
                        return Err("a portal of the transaction before");
                    }
                    let is_spent = if is_made { spent.contains(portal) } else { self.portals.is_spent(portal) };
                    if is_spent && matches!(item, Item::Execute(_)) {
                        return Err("transaction control again");
                    }
                }
                Item::Parse { .. }
                | Item::DescribeStatement { .. }
                | Item::Close(_)
                | Item::Statement(_)
                | Item::Cursor(..) => {}
            }
        }
        if bound.is_some() { Err("transaction control that is not run at once") } else { Ok(()) }
    }

    /// Answers the group at hand from here, one answer per item.
    pub fn answer_group(&mut self, group: Group<'_>, answers: Vec<Answer>) {
        let executions = group.executions();
        self.answer_items(group.items, answers);
        self.taken = self.scanned;
        match group.end {
            GroupEnd::Flush => {
                self.has_open_group = true;
                // What follows up to the Sync is of the same transaction.
                self.state.shares_transaction |= executions > 0;
            }
            GroupEnd::Sync => self.finish_group(),
            GroupEnd::Query => {
                self.unnamed = Unnamed::Destroyed;
                self.unnamed_portal = UnnamedPortal::Destroyed;
                self.portals.remove(b"");
                self.finish_group();
            }
        }
    }

    /// How many items of the group, from the first, are a BEGIN that is answered from here, where others come behind it.
    pub fn begins_block(&self, group: &Group<'_>, answers: &[Answer]) -> Option<usize> {
        let run = group.items.iter().position(|item| matches!(item, Item::Execute(_)))?;
        let is_begin = |at: usize| matches!(answers.get(at), Some(Answer::Control(Control::Begin { .. })));
        let mut bound = (0..run).filter(|at| matches!(group.items[*at], Item::Bind { .. }));
        let is_only = bound.next().is_some_and(is_begin) && bound.next().is_none();
        // What is parsed before it and fails would not have begun a block.
        let is_of_begin = |item: &Item<'_>| match item {
            Item::Parse { statement, .. } => control::read(&statement.sql).is_some(),
            _ => true,
        };
        let is_only = is_only && group.items[..run].iter().all(is_of_begin);
        let is_first = self.state.status == TransactionStatus::Idle && !self.has_open_group;
        (is_only && is_first && group.end == GroupEnd::Sync && run + 1 < group.items.len()).then_some(run + 1)
    }

    /// Answers these items, the first of the group at hand, from here; what is behind them is looked at by itself.
    pub fn answer_first(&mut self, items: Vec<Item<'_>>, answers: Vec<Answer>) {
        let frames = Frames::new(self.unit_bytes()).take(items.len());
        let length: usize = frames.map(|frame| frame.bytes.len()).sum();
        self.answer_items(items, answers);
        self.taken += length;
        self.scanned = self.taken;
    }

    /// Answers what the group at hand closes before anything else, so that what comes behind it is looked at by itself. False: there is
    /// no such thing, or nothing comes behind it.
    pub fn answer_leading_closes(&mut self) -> bool {
        if self.state.status == TransactionStatus::Failed {
            return false;
        }
        let unit = self.unit_bytes();
        let count = Frames::new(unit).take_while(|frame| frame.tag == b'C').count();
        let next = Frames::new(unit).nth(count).map(|frame| frame.tag);
        if count == 0 || matches!(next, None | Some(b'S' | b'H')) {
            return false;
        }
        let length: usize = Frames::new(unit).take(count).map(|frame| frame.bytes.len()).sum();
        let closes = unit[..length].to_vec();
        let target = |body| Target::view(body).filter(|target| !is_too_long(target.name()));
        let targets: Option<Vec<Target<'_>>> = Frames::new(&closes).map(|frame| target(frame.body)).collect();
        let Some(targets) = targets else { return false };
        let items: Vec<Item<'_>> = targets.into_iter().map(Item::Close).collect();
        let answers = items.iter().map(|_| Answer::None).collect();
        self.answer_first(items, answers);
        true
    }

    /// Answers the first items of a simple Query from here; upstream gets the statement behind them.
    pub fn answer_beginning(&mut self, items: Vec<Item<'_>>, answers: Vec<Answer>, rest: &[u8]) {
        for (item, answer) in items.into_iter().zip(answers) {
            self.answer_item(item, answer);
        }
        self.taken = self.scanned;
        let mut frame = Vec::new();
        write_query(&mut frame, rest);
        self.note_relayed(b'Q', &frame, true);
        self.to_upstream.push(&frame);
    }

    fn answer_items(&mut self, items: Vec<Item<'_>>, answers: Vec<Answer>) {
        let told = Self::told(&items, &answers);
        for (item, answer) in items.into_iter().zip(answers) {
            self.answer_item(item, answer);
        }
        self.compare_told(told);
    }

    fn answer_item(&mut self, item: Item<'_>, answer: Answer) {
        if matches!(&answer, Answer::Reply(reply) if reply.account.is_query) {
            self.state.note_answer();
        }
        match (item, answer) {
            (Item::Parse { parse, frame, statement, .. }, _) => {
                let is_first = self.state.transaction.first_query == FirstQuery::None;
                if is_first && effect::is_analyzed_by_snapshot(parse.sql) {
                    self.state.note_answer();
                }
                self.parse_ahead(&parse, frame, statement);
                self.to_client.push(PARSE_COMPLETE);
            }
            (Item::DescribeStatement { .. }, Answer::Reply(reply)) => {
                self.to_client.push(&reply.parameters);
                let columns = &reply.statement_columns;
                self.to_client.push(if columns.is_empty() { NO_DATA } else { columns });
            }
            (Item::DescribeStatement { .. }, Answer::Control(_) | Answer::None) => {
                self.to_client.push(NO_PARAMETERS);
                self.to_client.push(NO_DATA);
            }
            (Item::Bind { bind, frame, statement, .. }, answer) => {
                self.to_client.push(BIND_COMPLETE);
                if bind.portal.is_empty() {
                    self.unnamed_portal = UnnamedPortal::Held;
                }
                let portal = match answer {
                    Answer::Reply(reply) if bind.portal.is_empty() => Portal::of_reply(reply),
                    Answer::Reply(reply) => {
                        let names = bind.portal.len() + bind.statement.len() + 2;
                        let values = frame.get(HEADER_LENGTH + names..).unwrap_or_default();
                        Portal::of_reply(reply).from(&statement, values)
                    }
                    Answer::Control(control) => Portal::of_control(control, &statement.sql),
                    Answer::None => return,
                };
                self.portals.insert(bind.portal, portal, self.tracker.savepoints());
            }
            (Item::DescribePortal(name), _) => {
                if let Some(portal) = self.portals.get(name) {
                    portal.describe(&mut self.to_client);
                }
            }
            (Item::Execute(execute), _) => {
                let was_in_block = self.state.status != TransactionStatus::Idle;
                self.execute_portal(&execute);
                // What comes behind the end of a block is of another transaction.
                self.has_run_here = !(was_in_block && self.state.status == TransactionStatus::Idle);
            }
            (Item::Close(target), _) => {
                self.close_locally(target);
                self.to_client.push(CLOSE_COMPLETE);
            }
            (Item::Statement(_), Answer::Reply(reply)) => {
                self.to_client.push(&reply.columns);
                reply.rows.iter().for_each(|piece| self.to_client.push_shared(piece));
            }
            (Item::Statement(sql), Answer::Control(control)) => self.control(control, sql, true),
            (Item::Statement(_), Answer::None) => self.to_client.push(EMPTY_QUERY_RESPONSE),
            (Item::Cursor(CursorStatement::Declare { name, with_hold, .. }, sql), Answer::Reply(reply)) => {
                self.declare_cursor(name, with_hold, sql, reply);
            }
            (Item::Cursor(CursorStatement::Fetch { name, limit }, _), _) => self.fetch_cursor(name, limit),
            (Item::Cursor(CursorStatement::Close { name }, _), _) => self.close_cursor(name),
            (Item::Cursor(CursorStatement::Declare { .. }, _), Answer::None | Answer::Control(_)) => {}
        }
    }

    /// The group that ended with Flush, if there was one, is over.
    pub(super) fn close_group(&mut self) {
        (self.has_open_group, self.has_run_here) = (false, false);
        self.state.shares_transaction = false;
    }

    /// ReadyForQuery. Outside of a block the implicit transaction ends, and its portals with it.
    fn finish_group(&mut self) {
        let status = self.state.status;
        self.to_client.write(|out| write_ready_for_query(out, status));
        self.end_unit();
    }

    fn close_locally(&mut self, target: Target<'_>) {
        match target {
            Target::Portal(b"") => {
                self.portals.remove(b"");
                self.unnamed_portal = UnnamedPortal::Destroyed;
            }
            Target::Portal(name) if self.portals.contains(name) => self.portals.remove(name),
            // It may be one of upstream's, a cursor by SQL among them.
            Target::Portal(_) => self.close_quietly(target),
            Target::Statement(b"") => self.unnamed = Unnamed::Destroyed,
            Target::Statement(name) => {
                self.forget_virtual(name);
                self.forget_statement(name);
                self.close_quietly(target);
            }
        }
    }

    /// Closing what does not exist is no error.
    fn close_quietly(&mut self, target: Target<'_>) {
        self.to_upstream.write(|out| write_close(out, target));
        self.to_upstream.push(SYNC);
        self.expect_quiet(ExpectedKind::Close);
        self.expect_quiet(ExpectedKind::QuietSync);
    }

    /// Whether rows are fetched that are printed by settings no longer in force: from a cursor that the group does not declare.
    pub fn fetches_outdated_rows(&self, group: &Group<'_>) -> bool {
        let fetches = |at: usize| {
            let Item::Cursor(CursorStatement::Fetch { name, .. }, _) = &group.items[at] else { return false };
            let declares = |item: &Item<'_>| match item {
                Item::Cursor(CursorStatement::Declare { name: declared, .. }, _) => declared == name,
                _ => false,
            };
            self.cursors.is_outdated(name) && !group.items[..at].iter().any(declares)
        };
        self.state.status != TransactionStatus::Failed && (0..group.items.len()).any(fetches)
    }

    fn execute_portal(&mut self, execute: &Execute<'_>) {
        let Some(portal) = self.portals.get_mut(execute.portal) else { return };
        match portal.execute(execute.rows_max, &mut self.to_client) {
            Executed::Rows => {}
            Executed::Control(control, sql) => self.control(control, &sql, false),
        }
    }

    /// What is answered at once and carried out upstream behind it.
    pub(super) fn control(&mut self, control: Control, sql: &[u8], is_query: bool) {
        self.to_client.write(|out| write_command_complete(out, control.tag()));
        let status = match control {
            Control::Begin { isolation, .. } => {
                self.begin(isolation);
                TransactionStatus::InTransaction
            }
            Control::Commit | Control::Rollback => {
                self.end_of_transaction(control == Control::Commit);
                // Only freshet's own settings can have changed in it.
                self.tracker.ready(TransactionStatus::Idle, control == Control::Rollback, false);
                self.take_tracked();
                TransactionStatus::Idle
            }
            Control::Savepoint | Control::Release => {
                if let Some(name) = control::savepoint_name(sql) {
                    let is_release = control == Control::Release;
                    self.apply_change(&if is_release { Change::Release(name) } else { Change::Savepoint(name) });
                    // It is complete: what writes next comes behind it.
                    self.tracker.ready(TransactionStatus::InTransaction, false, false);
                }
                TransactionStatus::InTransaction
            }
            Control::Deallocate => {
                if let Some(name) = control::deallocated_name(sql) {
                    self.close_locally(Target::Statement(name.as_bytes()));
                }
                // PostgreSQL takes a snapshot for it (pquery.c, PlannedStmtRequiresSnapshot): it is a query of its block.
                return self.state.note_answer();
            }
        };
        self.answered.clear();
        if is_query {
            write_query(&mut self.answered, sql);
        } else {
            // A Query would destroy upstream's unnamed statement and portal, which the client still believes in.
            write_own_execution(&mut self.answered, sql);
        }
        self.to_upstream.push(&self.answered);
        self.state.status = status;
        self.expect_quiet(ExpectedKind::Answered(status));
    }

    /// Whether the frame at hand is about a portal that lives here.
    pub(super) fn is_about_portal(&self, tag: u8, frame: &[u8]) -> bool {
        if self.portals.is_empty() {
            return false;
        }
        let body = frame.get(HEADER_LENGTH..).unwrap_or_default();
        match tag {
            b'E' => Execute::view(body).is_some_and(|execute| self.portals.contains(execute.portal)),
            b'B' => Bind::view(body).is_some_and(|bind| !bind.portal.is_empty() && self.portals.contains(bind.portal)),
            b'D' | b'C' => matches!(Target::view(body), Some(Target::Portal(name)) if self.portals.contains(name)),
            _ => false,
        }
    }

    /// A message about a portal that lives here is in its turn. False: upstream still owes earlier replies.
    pub(super) fn is_in_turn(&mut self) -> bool {
        if self.owes() || self.upstream_passing > 0 || !self.partial.is_empty() {
            if self.is_unsynced && !self.flush_is_sent {
                self.to_upstream.push(FLUSH);
                self.flush_is_sent = true;
            }
            return false;
        }
        true
    }

    /// Answers such a message. False: upstream is to refuse it.
    pub(super) fn answer_portal_message(&mut self, tag: u8, body: &[u8]) -> bool {
        let has_failed = self.state.status == TransactionStatus::Failed;
        if has_failed && matches!(tag, b'E' | b'D') {
            self.to_client.write(|out| write_error(out, &FAILED_TRANSACTION));
            self.has_open_group |= !self.is_unsynced;
            self.ignores_group = true;
            return true;
        }
        match tag {
            b'B' => return false,
            b'C' if has_failed => {
                if let Some(Target::Portal(name)) = Target::view(body) {
                    self.portals.remove(name);
                }
                return false;
            }
            b'E' => {
                let Some(execute) = Execute::view(body) else { return false };
                if self.portals.is_spent(execute.portal) {
                    // Upstream does not have it; to run it again would be an error there, too.
                    if execute.portal.is_empty() {
                        // It may have one that was bound before.
                        self.portals.remove(b"");
                        self.unnamed_portal = UnnamedPortal::Destroyed;
                    }
                    return false;
                }
                if self.portals.is_outdated(execute.portal) {
                    self.refuse_execution();
                    return true;
                }
                self.execute_portal(&execute);
            }
            b'D' => {
                let Some(Target::Portal(name)) = Target::view(body) else { return false };
                let Some(portal) = self.portals.get(name) else { return false };
                portal.describe(&mut self.to_client);
            }
            _ => {
                if let Some(target) = Target::view(body) {
                    self.close_locally(target);
                }
                self.to_client.push(CLOSE_COMPLETE);
            }
        }
        self.has_open_group |= !self.is_unsynced;
        true
    }

    /// Sync or Flush of a group that upstream has seen nothing of.
    pub(super) fn answer_end_of_group(&mut self, tag: u8) {
        if tag == b'S' {
            self.finish_group();
        }
    }
}

/// Marks each Parse whose statement is described or bound in the same group, and each Bind whose columns are told.
fn judge(items: &mut [Item<'_>], stays: bool) {
    let mut judged = HashSet::default();
    let (mut described, mut ended): (HashSet<&[u8]>, HashSet<&[u8]>) = Default::default();
    for item in items.iter_mut().rev() {
        match item {
            Item::Bind { bind, statement, is_described, .. } => {
                judged.insert(statement.id);
                *is_described = stays || described.contains(bind.portal) || !ended.contains(bind.portal);
                described.remove(bind.portal);
                ended.remove(bind.portal);
            }
            Item::DescribeStatement { statement, .. } => {
                judged.insert(statement.id);
            }
            Item::Parse { statement, is_judged, .. } => *is_judged = judged.contains(&statement.id),
            Item::DescribePortal(portal) => drop(described.insert(portal)),
            Item::Execute(execute) if execute.rows_max <= 0 => drop(ended.insert(execute.portal)),
            Item::Close(Target::Portal(portal)) => drop(ended.insert(portal)),
            Item::Execute(_) | Item::Close(Target::Statement(_)) | Item::Statement(_) | Item::Cursor(..) => {}
        }
    }
}

const NO_PARAMETERS: &[u8] = b"t\0\0\0\x06\0\0";

/// Whether a query string has more than one statement.
pub fn is_several(sql: &[u8]) -> bool {
    let end = sql.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != b';').map_or(0, |last| last + 1);
    sql[..end].contains(&b';') && statements(sql).is_some_and(|statements| statements.len() > 1)
}

/// The statements of a query string, without those that are empty; one empty text if all are. None if PostgreSQL's scanner
/// would reject the string.
pub(super) fn statements(sql: &[u8]) -> Option<Vec<&[u8]>> {
    let text = std::str::from_utf8(sql).ok()?;
    let tokens = lexer::tokens(text).ok()?;
    let pieces = tokens.split(|token| token.is_symbol(";")).filter_map(|tokens| {
        let (first, last) = (tokens.first()?, tokens.last()?);
        sql.get(first.start..last.end())
    });
    let pieces: Vec<&[u8]> = pieces.collect();
    Some(if pieces.is_empty() { vec![b"".as_slice()] } else { pieces })
}
