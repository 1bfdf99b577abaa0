//! Statements with names whose Parse the client has been answered, and upstream is sent behind the answer. It may fail there, or make another
//! statement than the client was told of: a migration commits meanwhile, whose lock the Parse has waited for. So what goes upstream waits
//! until this is known, and a statement that upstream describes otherwise is refused as PostgreSQL refuses one whose result has changed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use crate::session::answer::PreparedStatement;
use crate::session::intercept;
use crate::session::machine::group::{Answer, Item};
use crate::session::machine::{Event, Expected, ExpectedKind, Machine, Named, Unnamed};
use crate::wire::error::ErrorFields;
use crate::wire::extended::{Parse, SYNC, Target, write_describe};
use crate::wire::frame::HEADER_LENGTH;
use crate::wire::query::row_description;

/// What PostgreSQL says (plancache.c, RevalidateCachedQuery).
const ANOTHER_RESULT: ErrorFields<'static> = ErrorFields::error("0A000", "cached plan must not change result type");

/// A Parse that the client has been answered.
#[derive(Debug)]
pub(super) struct QuietParse {
    name: Box<[u8]>,
    frame: Box<[u8]>,
    statement: Arc<PreparedStatement>,
}

/// A statement as the client was told that it is.
#[derive(Debug)]
pub(super) struct Told {
    statement: Arc<PreparedStatement>,
    /// RowDescription, or nothing.
    columns: Bytes,
}

impl Told {
    /// Whether the columns have other names or types, or are not as many. What cannot be read, or is not there as a whole, is not.
    fn is_other(&self, tag: u8, body: &[u8]) -> bool {
        let described = |body: &[u8]| {
            let fields = row_description(body)?;
            Some(fields.iter().map(|field| (field.name.to_vec(), field.type_oid)).collect::<Vec<_>>())
        };
        let ours = self.columns.get(HEADER_LENGTH..).map_or(Some(Vec::new()), described);
        let theirs = if tag == b'n' { Some(Vec::new()) } else { described(body) };
        ours.zip(theirs).is_some_and(|(ours, theirs)| ours != theirs)
    }
}

impl Machine {
    /// A Parse that was answered: an unnamed statement is virtual, a named one is prepared upstream behind the answer, so
    /// that upstream knows it (and judges it) by the catalog of this moment. What shows something of freshet's upstream would
    /// not understand; what sets something it would, and does where the statement is run among others.
    pub(super) fn parse_ahead(&mut self, parse: &Parse<'_>, frame: &[u8], statement: Arc<PreparedStatement>) {
        if parse.name.is_empty() {
            self.unnamed = Unnamed::Local { statement, parse: frame.into() };
            self.note_read(parse.sql);
            return;
        }
        if let Some(request) = intercept::read_if_addressed(parse.sql, self.limits.schema) {
            self.remember_virtual(parse.name, Arc::clone(&statement));
            if !request.is_ok_and(|(request, _)| request.sets()) {
                return;
            }
        }
        self.state.transaction.has_relayed = true;
        self.to_upstream.push(frame);
        self.to_upstream.push(SYNC);
        let quiet = QuietParse { name: parse.name.into(), frame: frame.into(), statement: Arc::clone(&statement) };
        self.expect_quiet(ExpectedKind::QuietParse(Box::new(quiet)));
        self.expect_quiet(ExpectedKind::QuietSync);
        self.remember_statement(parse.name.into(), Named { statement, parse: None });
    }

    /// Which named statements the client is told the columns of by these answers: by a description of the statement, or of the first
    /// portal.
    pub(super) fn told(items: &[Item<'_>], answers: &[Answer]) -> Vec<(Box<[u8]>, Told)> {
        let telling = |statement: &Arc<PreparedStatement>, columns: &Bytes| Told {
            statement: Arc::clone(statement),
            columns: columns.clone(),
        };
        let mut parsed: Vec<&[u8]> = Vec::new();
        let mut told = Vec::new();
        for (item, answer) in items.iter().zip(answers) {
            match (item, answer) {
                (Item::Parse { parse, .. }, _) if !parse.name.is_empty() => parsed.push(parse.name),
                (Item::DescribeStatement { name, statement }, Answer::Reply(reply)) if !name.is_empty() => {
                    told.push(((*name).into(), telling(statement, &reply.statement_columns)));
                }
                (Item::Bind { bind, is_described: true, statement, .. }, Answer::Reply(reply))
                    if parsed.contains(&bind.statement) =>
                {
                    told.push((bind.statement.into(), telling(statement, &reply.columns)));
                }
                _ => {}
            }
        }
        told
    }

    /// Upstream is asked for its own description, behind the answers.
    pub(super) fn compare_told(&mut self, told: Vec<(Box<[u8]>, Told)>) {
        for (name, told) in told {
            // The group may have given the name to another one.
            let is_it = |named: &&Named| named.parse.is_none() && Arc::ptr_eq(&named.statement, &told.statement);
            if self.statements.get(&name).filter(is_it).is_none() {
                continue;
            }
            self.to_upstream.write(|out| write_describe(out, Target::Statement(&name)));
            self.to_upstream.push(SYNC);
            self.expect_quiet(ExpectedKind::QuietDescribe(Box::new(told)));
            self.expect_quiet(ExpectedKind::QuietSync);
        }
    }

    /// Upstream's description, or that there are no columns.
    pub(super) fn description_has_come(&mut self, tag: u8, body: &[u8]) {
        if let Some(Expected { kind: ExpectedKind::QuietDescribe(told), .. }) = self.pop_expected()
            && told.is_other(tag, body)
        {
            told.statement.is_other.store(true, Relaxed);
        }
    }

    /// One of the quiet messages failed: none of its unit was done.
    pub(super) fn quiet_parse_failed(&mut self) {
        while self.expected.front().is_some_and(|front| !matches!(front.kind, ExpectedKind::QuietSync)) {
            if let Some(Expected { kind: ExpectedKind::QuietParse(parse), .. }) = self.pop_expected()
                && let Some(named) = self.statements.get_mut(&parse.name)
                // Another one may have the name by now.
                && Arc::ptr_eq(&named.statement, &parse.statement)
            {
                named.parse = Some(parse.frame);
            }
        }
    }

    /// It is not known yet what upstream makes of a statement. After an error it is once ReadyForQuery has told whether a block has
    /// failed by it: PostgreSQL sends the two apart (elog.c, `send_message_to_frontend`, flushes).
    pub(super) fn awaits_parse(&self) -> bool {
        let is_of_parse =
            |entry: &Expected| matches!(entry.kind, ExpectedKind::QuietParse(_) | ExpectedKind::QuietDescribe(_));
        self.quiet_expected > 0 && (self.answered_error.is_some() || self.expected.iter().any(is_of_parse))
    }

    /// The next unit fails by this error (the body of an ErrorResponse): one that waits to go upstream, which is decided upon anew, or one
    /// that is yet to come.
    pub(super) fn fail_next(&mut self, error: Box<[u8]>) {
        self.events.push(Event::BlockFailed(error));
        if std::mem::take(&mut self.is_postponed) {
            self.watch = None;
            self.scanned = self.taken;
        }
    }

    /// A message that uses the named statement goes upstream, where it is another than the client was told of.
    pub(super) fn refuse_other(&mut self, name: &[u8]) {
        if self.statements.get(name).is_some_and(|named| named.statement.is_other.load(Relaxed)) {
            self.refuse(&ANOTHER_RESULT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::machine::Step;
    use crate::session::machine::tests::{
        complete, controlled, group, message, parse, probed, ready, sql, tags, upstream_says,
    };
    use crate::session::settings::Interner;

    #[test]
    fn what_waits_for_a_parse_that_fails_waits_for_the_end_of_its_unit() {
        let mut machine = probed(&Interner::default());
        controlled(&mut machine, "BEGIN");
        upstream_says(&mut machine, &[&complete(), &ready(b'T')]);
        let sent = group(&mut machine, &[parse("s", "SELECT 1"), SYNC.to_vec()].concat(), vec![Answer::None]);
        assert_eq!(tags(&sent), "PS");
        machine.receive_client(&sql("COMMIT"));
        assert_eq!(machine.advance(), Step::Decide);
        machine.release();
        assert_eq!(machine.advance(), Step::Wait);
        // The error comes alone, then the ReadyForQuery by which the block is known to have failed.
        let error = b"SERROR\0C55P03\0\0";
        assert_eq!(upstream_says(&mut machine, &[&message(b'E', error)]), b"");
        assert_eq!(machine.advance(), Step::Wait);
        assert_eq!(machine.to_upstream.take(), b"", "it would be answered ROLLBACK, without a word of why");
        assert_eq!(upstream_says(&mut machine, &[&ready(b'E')]), b"");
        assert!(matches!(machine.take_events().as_slice(), [Event::BlockFailed(told)] if **told == *error));
        assert_eq!(machine.advance(), Step::Decide, "anew");
    }
}
