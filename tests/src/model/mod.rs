//! PostgreSQL's side of the protocol as a model: what a backend answers to any order of messages, for the few statements of
//! [`statement`] (PostgreSQL: tcop/postgres.c, utils/mmgr/portalmem.c, access/transam/xact.c, version 15).
//!
//! `tests/protocol.rs` holds the model against a real server. [`script`] makes random conversations, [`play`] puts a session's
//! machine between a client and a model, and [`compare`] compares what the client gets with a model alone.

pub mod compare;
pub mod play;
pub mod script;
pub mod statement;

use std::collections::BTreeMap;
use std::sync::Arc;

use freshet::wire::error::{ErrorFields, write_error};
use freshet::wire::extended::{
    BIND_COMPLETE, Bind, CLOSE_COMPLETE, Execute, NO_DATA, PARSE_COMPLETE, PORTAL_SUSPENDED, Parse, Target,
    write_parameter_description,
};
use freshet::wire::frame::{Frame, write_frame};
use freshet::wire::query::{
    EMPTY_QUERY_RESPONSE, TransactionStatus, query, write_command_complete, write_ready_for_query,
};

use crate::model::statement::{Rows, Statement, formats, integer, split};

/// The SQLSTATE of a failure.
type Done<T = ()> = Result<T, &'static str>;

const PROTOCOL_VIOLATION: &str = "08P01";
const DIVISION_BY_ZERO: &str = "22012";
const ACTIVE_TRANSACTION: &str = "25001";
const NO_ACTIVE_TRANSACTION: &str = "25P01";
const FAILED_TRANSACTION: &str = "25P02";
const NO_STATEMENT: &str = "26000";
const NO_PORTAL: &str = "34000";
const NO_SAVEPOINT: &str = "3B001";
const SYNTAX_ERROR: &str = "42601";
const NO_PARAMETER: &str = "42P02";
const DUPLICATE_PORTAL: &str = "42P03";
const DUPLICATE_STATEMENT: &str = "42P05";
const PORTAL_NOT_READY: &str = "55000";

/// One backend.
#[derive(Clone, Debug)]
pub struct Backend {
    status: TransactionStatus,
    /// After an error in an extended message.
    is_skipping: bool,
    statements: BTreeMap<Vec<u8>, Arc<Statement>>,
    unnamed: Option<Arc<Statement>>,
    portals: BTreeMap<Vec<u8>, Portal>,
    savepoints: Vec<String>,
    /// The open transaction has a snapshot: its isolation level is settled.
    has_snapshot: bool,
    /// An unnamed statement was described in this unit: a machine in between may have had to prepare it, by a snapshot.
    has_described: bool,
    /// That of the open transaction is REPEATABLE READ.
    is_serial: bool,
    /// The open transaction has written.
    has_written: bool,
    writes_committed: usize,
    is_undefined: bool,
    is_unusual: bool,
    /// Since the last Sync.
    has_executed: bool,
    is_mixed: bool,
}

#[derive(Clone, Debug)]
struct Portal {
    statement: Arc<Statement>,
    formats: Vec<i16>,
    parameter: i32,
    /// Rows that are handed out.
    position: usize,
    state: PortalState,
    /// Savepoints that were set when it was made.
    level: usize,
    /// Made by Bind; one of a simple Query is left behind by an error only.
    is_bound: bool,
    /// Its plan was released with the failed transaction: it does not end a block any more.
    is_released: bool,
}

impl Portal {
    fn new(statement: Arc<Statement>, level: usize) -> Self {
        Self {
            statement,
            formats: Vec::new(),
            parameter: 0,
            position: 0,
            state: PortalState::Ready,
            level,
            is_bound: false,
            is_released: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortalState {
    Ready,
    Done,
    Failed,
}

impl Default for Backend {
    fn default() -> Self {
        Self {
            status: TransactionStatus::Idle,
            is_skipping: false,
            statements: BTreeMap::new(),
            unnamed: None,
            portals: BTreeMap::new(),
            savepoints: Vec::new(),
            has_snapshot: false,
            has_described: false,
            is_serial: false,
            has_written: false,
            writes_committed: 0,
            is_undefined: false,
            is_unusual: false,
            has_executed: false,
            is_mixed: false,
        }
    }
}

impl Backend {
    /// Answers one message.
    pub fn receive(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) {
        self.is_mixed |= frame.tag == b'Q' && self.has_executed;
        self.has_executed = frame.tag == b'E' || (self.has_executed && frame.tag != b'S');
        if frame.tag == b'S' {
            self.is_skipping = false;
            self.end_implicit_transaction();
            return write_ready_for_query(out, self.status);
        }
        if self.is_skipping {
            return;
        }
        let done = match frame.tag {
            b'Q' => self.query(frame.body, out),
            b'P' => self.parse(frame.body, out),
            b'B' => self.bind(frame.body, out),
            b'D' => self.describe(frame.body, out),
            b'E' => self.execute(frame.body, out),
            b'C' => self.close(frame.body, out),
            _ => Ok(()),
        };
        if let Err(sqlstate) = done {
            self.fail(sqlstate, out);
            self.is_skipping = frame.tag != b'Q';
        }
        if frame.tag == b'Q' {
            write_ready_for_query(out, self.status);
        }
    }

    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    /// Whether a simple query came behind Execute without a Sync between. PostgreSQL 18 keeps the block of the pipeline open
    /// behind it; this model ends it, as those before do.
    pub fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    /// Transactions that wrote and are over.
    pub fn writes_committed(&self) -> usize {
        self.writes_committed
    }

    /// A message was about the unnamed portal of a simple Query that failed in a block. PostgreSQL 15 reads freed memory then
    /// (exec_execute_message: `portal->stmts` is of the Query's own memory), and now and then crashes.
    pub fn is_undefined(&self) -> bool {
        self.is_undefined
    }

    /// Something came that a machine in between is known to answer differently:
    /// - a failed block was asked to describe an unnamed statement, or a portal, without columns: BEGIN and COMMIT live in the
    ///   machine (through: an error);
    /// - in a failed block a Bind was refused for its parameters: a statement that lives in the machine is refused for the block;
    /// - BEGIN ISOLATION LEVEL where rows were read already: if the machine answered those, upstream knows of no snapshot
    ///   (through: no error).
    pub fn is_unusual(&self) -> bool {
        self.is_unusual
    }

    /// Names of prepared statements.
    pub fn statement_names(&self) -> Vec<&[u8]> {
        self.statements.keys().map(Vec::as_slice).collect()
    }

    /// Names of portals that can still be run.
    pub fn portal_names(&self) -> Vec<&[u8]> {
        let ready = self.portals.iter().filter(|(_, portal)| portal.state == PortalState::Ready);
        ready.map(|(name, _)| name.as_slice()).collect()
    }

    fn query(&mut self, body: &[u8], out: &mut Vec<u8>) -> Done {
        let sql = query(body).ok_or(PROTOCOL_VIOLATION)?;
        self.unnamed = None;
        let statements: Vec<Statement> = split(sql).into_iter().map(Statement::read).collect();
        if statements.contains(&Statement::Invalid(SYNTAX_ERROR)) {
            return Err(SYNTAX_ERROR);
        }
        if statements.is_empty() {
            out.extend_from_slice(EMPTY_QUERY_RESPONSE);
        }
        let mut is_implicit_block = statements.len() > 1;
        for statement in statements {
            self.check_block(statement.ends_block())?;
            self.has_snapshot |= statement.needs_snapshot();
            if let Statement::Invalid(sqlstate) = statement {
                return Err(sqlstate);
            }
            if statement.parameters() > 0 {
                return Err(NO_PARAMETER);
            }
            // It is left behind where the statement fails.
            let portal =
                Portal { state: PortalState::Failed, ..Portal::new(Arc::new(statement), self.savepoints.len()) };
            let statement = Arc::clone(&portal.statement);
            self.portals.insert(Vec::new(), portal);
            match &*statement {
                Statement::Rows(rows) => {
                    out.extend(rows.description(&[]));
                    rows.write(0, None, 0, &[], out)?;
                }
                Statement::Discard if is_implicit_block || self.status != TransactionStatus::Idle => {
                    return Err(ACTIVE_TRANSACTION);
                }
                other => {
                    let tag = self.command(other, out)?;
                    write_command_complete(out, &tag);
                }
            }
            self.portals.remove(&b""[..]);
            // BEGIN makes the block a real one; what follows its end is in an implicit one again.
            is_implicit_block = is_implicit_block && self.status == TransactionStatus::Idle;
        }
        self.end_implicit_transaction();
        Ok(())
    }

    fn parse(&mut self, body: &[u8], out: &mut Vec<u8>) -> Done {
        let parse = Parse::view(body).ok_or(PROTOCOL_VIOLATION)?;
        if parse.name.is_empty() {
            self.unnamed = None;
        }
        let pieces = split(parse.sql);
        let statement = match pieces.as_slice() {
            [] => Statement::Empty,
            [one] => Statement::read(one),
            _ => Statement::Invalid(SYNTAX_ERROR),
        };
        if statement == Statement::Invalid(SYNTAX_ERROR) {
            return Err(SYNTAX_ERROR);
        }
        self.check_block(statement.ends_block() || statement == Statement::Empty)?;
        self.has_snapshot |= statement.is_analysed();
        if let Statement::Invalid(sqlstate) = statement {
            return Err(sqlstate);
        }
        if parse.name.is_empty() {
            self.unnamed = Some(Arc::new(statement));
        } else {
            self.prepare(parse.name, statement)?;
        }
        out.extend_from_slice(PARSE_COMPLETE);
        Ok(())
    }

    fn prepare(&mut self, name: &[u8], statement: Statement) -> Done {
        if self.statements.contains_key(name) {
            return Err(DUPLICATE_STATEMENT);
        }
        self.statements.insert(name.into(), Arc::new(statement));
        Ok(())
    }

    fn statement(&self, name: &[u8]) -> Done<Arc<Statement>> {
        let found = if name.is_empty() { self.unnamed.as_ref() } else { self.statements.get(name) };
        found.cloned().ok_or(NO_STATEMENT)
    }

    fn bind(&mut self, body: &[u8], out: &mut Vec<u8>) -> Done {
        let bind = Bind::view(body).ok_or(PROTOCOL_VIOLATION)?;
        let statement = self.statement(bind.statement)?;
        if bind.parameter_count != statement.parameters() {
            self.is_unusual |= self.status == TransactionStatus::Failed;
            return Err(PROTOCOL_VIOLATION);
        }
        self.check_block(statement.ends_block())?;
        self.has_snapshot |= statement.is_analysed();
        if !bind.portal.is_empty() && self.portals.contains_key(bind.portal) {
            return Err(DUPLICATE_PORTAL);
        }
        let parameter = match bind.values().next() {
            None => 0,
            Some(value) => integer(value, bind.parameter_formats)?,
        };
        let formats = match statement.rows() {
            Some(rows) => formats(bind.result_formats, rows.columns.len()).ok_or(PROTOCOL_VIOLATION)?,
            None => Vec::new(),
        };
        let portal = Portal { formats, parameter, is_bound: true, ..Portal::new(statement, self.savepoints.len()) };
        self.portals.insert(bind.portal.into(), portal);
        out.extend_from_slice(BIND_COMPLETE);
        Ok(())
    }

    fn describe(&mut self, body: &[u8], out: &mut Vec<u8>) -> Done {
        let description = match Target::view(body).ok_or(PROTOCOL_VIOLATION)? {
            Target::Statement(name) => {
                let statement = self.statement(name)?;
                let has_failed = self.status == TransactionStatus::Failed;
                self.has_described |= name.is_empty();
                self.is_unusual |= has_failed && name.is_empty() && statement.rows().is_none();
                self.check_block(statement.rows().is_none())?;
                write_parameter_description(out, &vec![23; statement.parameters()]);
                statement.rows().map(|rows| rows.description(&[]))
            }
            Target::Portal(name) => {
                let portal = self.portals.get(name).ok_or(NO_PORTAL)?;
                self.is_undefined |= !portal.is_bound;
                self.is_unusual |= self.status == TransactionStatus::Failed && portal.statement.rows().is_none();
                self.check_block(portal.statement.rows().is_none())?;
                portal.statement.rows().map(|rows| rows.description(&portal.formats))
            }
        };
        out.extend_from_slice(description.as_deref().unwrap_or(NO_DATA));
        Ok(())
    }

    fn execute(&mut self, body: &[u8], out: &mut Vec<u8>) -> Done {
        let execute = Execute::view(body).ok_or(PROTOCOL_VIOLATION)?;
        let portal = self.portals.get_mut(execute.portal).ok_or(NO_PORTAL)?;
        let statement = Arc::clone(&portal.statement);
        self.is_undefined |= !portal.is_bound;
        if *statement == Statement::Empty {
            out.extend_from_slice(EMPTY_QUERY_RESPONSE);
            return Ok(());
        }
        if self.status == TransactionStatus::Failed && (portal.is_released || !statement.ends_block()) {
            return Err(FAILED_TRANSACTION);
        }
        if portal.state != PortalState::Ready {
            return Err(PORTAL_NOT_READY);
        }
        if let Some(rows) = statement.rows() {
            let limit = usize::try_from(execute.rows_max).ok().filter(|limit| *limit > 0);
            let written = rows.write(portal.position, limit, portal.parameter, &portal.formats, out);
            match written {
                Ok(count) => portal.position += count,
                Err(_) => portal.state = PortalState::Failed,
            }
            return written.map(drop);
        }
        portal.state = PortalState::Failed;
        self.has_snapshot |= statement.needs_snapshot();
        let tag = self.command(&statement, out)?;
        // The end of a transaction takes the portal with it.
        if let Some(portal) = self.portals.get_mut(execute.portal) {
            portal.state = PortalState::Done;
        }
        write_command_complete(out, &tag);
        Ok(())
    }

    fn close(&mut self, body: &[u8], out: &mut Vec<u8>) -> Done {
        match Target::view(body).ok_or(PROTOCOL_VIOLATION)? {
            Target::Statement(b"") => self.unnamed = None,
            Target::Statement(name) => drop(self.statements.remove(name)),
            Target::Portal(name) => drop(self.portals.remove(name)),
        }
        out.extend_from_slice(CLOSE_COMPLETE);
        Ok(())
    }

    /// Runs what returns no rows; its command tag.
    fn command(&mut self, statement: &Statement, out: &mut Vec<u8>) -> Done<String> {
        let is_idle = self.status == TransactionStatus::Idle;
        let tag = match statement {
            Statement::Begin { tag, is_serial } => {
                if !is_idle {
                    warn(ACTIVE_TRANSACTION, out);
                }
                if *is_serial && !self.is_serial && (self.has_snapshot || !self.savepoints.is_empty()) {
                    self.is_unusual |= self.has_snapshot;
                    return Err(ACTIVE_TRANSACTION);
                }
                self.is_unusual |= *is_serial && self.has_described;
                self.is_serial |= is_serial;
                self.status = TransactionStatus::InTransaction;
                *tag
            }
            Statement::Commit | Statement::Rollback => {
                if is_idle {
                    warn(NO_ACTIVE_TRANSACTION, out);
                }
                let commits = *statement == Statement::Commit && self.status != TransactionStatus::Failed;
                self.end_transaction(commits);
                if commits { "COMMIT" } else { "ROLLBACK" }
            }
            Statement::Savepoint(name) => {
                self.check_in_block()?;
                self.savepoints.push(name.clone());
                "SAVEPOINT"
            }
            Statement::RollbackTo(name) => {
                let level = self.savepoint(name)?;
                self.portals.retain(|_, portal| portal.level < level);
                self.savepoints.truncate(level);
                self.status = TransactionStatus::InTransaction;
                "ROLLBACK"
            }
            Statement::Release(name) => {
                let level = self.savepoint(name)?;
                self.portals.values_mut().for_each(|portal| portal.level = portal.level.min(level - 1));
                self.savepoints.truncate(level - 1);
                "RELEASE"
            }
            Statement::Write => {
                self.has_written = true;
                "UPDATE 0"
            }
            Statement::Set => "SET",
            Statement::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            Statement::Deallocate(Some(name)) => {
                self.statements.remove(name.as_bytes()).ok_or(NO_STATEMENT)?;
                "DEALLOCATE"
            }
            Statement::Prepare(name, prepared) => {
                self.prepare(name.as_bytes(), Statement::Rows(prepared.clone()))?;
                "PREPARE"
            }
            Statement::Discard => {
                self.statements.clear();
                "DISCARD ALL"
            }
            Statement::Empty | Statement::Rows(_) | Statement::Invalid(_) => unreachable!("no command"),
        };
        Ok(tag.to_string())
    }

    fn savepoint(&self, name: &str) -> Done<usize> {
        self.check_in_block()?;
        let found = self.savepoints.iter().rposition(|known| known == name);
        found.map(|index| index + 1).ok_or(NO_SAVEPOINT)
    }

    fn check_in_block(&self) -> Done {
        if self.status == TransactionStatus::Idle { Err(NO_ACTIVE_TRANSACTION) } else { Ok(()) }
    }

    /// In a failed block only what ends it is done, and what does nothing.
    fn check_block(&self, is_exempt: bool) -> Done {
        if self.status == TransactionStatus::Failed && !is_exempt { Err(FAILED_TRANSACTION) } else { Ok(()) }
    }

    fn end_implicit_transaction(&mut self) {
        if self.status == TransactionStatus::Idle {
            self.end_transaction(true);
        }
    }

    fn end_transaction(&mut self, commits: bool) {
        self.status = TransactionStatus::Idle;
        self.portals.clear();
        self.savepoints.clear();
        (self.has_snapshot, self.has_described, self.is_serial) = (false, false, false);
        self.writes_committed += usize::from(std::mem::take(&mut self.has_written) && commits);
    }

    fn fail(&mut self, sqlstate: &str, out: &mut Vec<u8>) {
        write_error(out, &ErrorFields::error(sqlstate, ""));
        match self.status {
            TransactionStatus::Idle => self.end_transaction(false),
            TransactionStatus::InTransaction => {
                self.status = TransactionStatus::Failed;
                let level = self.savepoints.len();
                for portal in self.portals.values_mut().filter(|portal| portal.level >= level) {
                    portal.is_released = portal.is_bound;
                    if portal.state == PortalState::Ready {
                        portal.state = PortalState::Failed;
                    }
                }
            }
            TransactionStatus::Failed => {}
        }
    }
}

impl Rows {
    /// Rows from `position` on, and what ends the run; how many.
    fn write(
        &self,
        position: usize,
        limit: Option<usize>,
        parameter: i32,
        formats: &[i16],
        out: &mut Vec<u8>,
    ) -> Done<usize> {
        let left = self.values.len() - position;
        let count = limit.map_or(left, |limit| limit.min(left));
        for row in position..position + count {
            self.write_row(row, parameter, formats, out);
        }
        if limit == Some(count) {
            out.extend_from_slice(PORTAL_SUSPENDED);
        } else if self.fails {
            return Err(DIVISION_BY_ZERO);
        } else {
            write_command_complete(out, &format!("SELECT {count}"));
        }
        Ok(count)
    }
}

/// NoticeResponse of the severity WARNING.
fn warn(sqlstate: &str, out: &mut Vec<u8>) {
    write_frame(out, b'N', |out| out.extend(format!("SWARNING\0VWARNING\0C{sqlstate}\0M\0\0").bytes()));
}
