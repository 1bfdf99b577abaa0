//! What is relayed: a point SELECT and a single-row INSERT, each as a simple query, as Parse to Sync, and prepared.

use std::io;

use freshet_tests::client::{bind, describe, execute, parse, sync};

use crate::data::{Table, int, table, text};
use crate::wire::{Client, query_message};

/// It has an index but no key and no replica identity: it cannot be mirrored, so that its reads are relayed in an ordinary
/// configuration.
pub(crate) fn points() -> Table {
    table("points", 100_000, vec![int("id", |n| n), text("val", |n| format!("value_{n}"))]).with_index("id")
}

/// The small tables.
pub(crate) const SETUP: &str = "
CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, place int, body text);
CREATE TABLE mirrored (id int PRIMARY KEY, val text);
INSERT INTO mirrored SELECT n, 'x' FROM generate_series(1, 100) n;
CREATE UNLOGGED TABLE copied (id int, a bigint, body text);
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Select,
    Insert,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Simple,
    /// Parse, Bind, Describe, Execute, Sync.
    Extended,
    /// Bind, Execute, Sync.
    Prepared,
}

/// One workload: its messages in turn, and the reply that PostgreSQL gave to each.
pub(crate) struct Units {
    pub(crate) statement: Statement,
    pub(crate) protocol: Protocol,
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) replies: Vec<Vec<u8>>,
}

/// Different rows that the SELECTs ask for.
const ROWS: usize = 200;

impl Statement {
    pub(crate) const ALL: [Self; 2] = [Self::Select, Self::Insert];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Insert => "insert",
        }
    }

    fn text(self, argument: &str) -> String {
        match self {
            Self::Select => format!("SELECT id, val FROM points WHERE id = {argument}"),
            Self::Insert => format!("INSERT INTO events (place, body) VALUES ({argument}, 'something happened')"),
        }
    }

    /// The name under which [`prepare`] makes it.
    fn prepared_name(self) -> &'static str {
        self.name()
    }
}

impl Protocol {
    pub(crate) const ALL: [Self; 3] = [Self::Simple, Self::Extended, Self::Prepared];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// Once per connection, before prepared units.
pub(crate) fn prepare(client: &mut Client) -> io::Result<()> {
    for made in preparations() {
        client.query(&made)?;
    }
    Ok(())
}

fn preparations() -> [Vec<u8>; 2] {
    Statement::ALL.map(|statement| [parse(statement.prepared_name(), &statement.text("$1::int")), sync()].concat())
}

/// Everything that a client of these units sends, and PostgreSQL's reply to it.
pub(crate) fn replies(direct: &mut Client, units: &Units) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut pairs: Vec<_> = units.messages.iter().cloned().zip(units.replies.iter().cloned()).collect();
    // The names must be free: the connection may have made them.
    direct.query(&query_message("DEALLOCATE ALL"))?;
    for made in preparations() {
        let reply = direct.query(&made)?.to_vec();
        pairs.push((made, reply));
    }
    Ok(pairs)
}

/// Makes the messages and learns the replies from PostgreSQL itself.
pub(crate) fn learn(direct: &mut Client, statement: Statement, protocol: Protocol) -> io::Result<Units> {
    let messages: Vec<Vec<u8>> = (0..ROWS).map(|at| message(statement, protocol, &(at * 497).to_string())).collect();
    let replies =
        messages.iter().map(|message| direct.query(message).map(<[u8]>::to_vec)).collect::<io::Result<_>>()?;
    Ok(Units { statement, protocol, messages, replies })
}

fn message(statement: Statement, protocol: Protocol, argument: &str) -> Vec<u8> {
    let (name, arguments) = (statement.prepared_name(), [Some(argument)]);
    match protocol {
        Protocol::Simple => query_message(&statement.text(argument)),
        Protocol::Extended => [
            parse("", &statement.text("$1::int")),
            bind("", "", &arguments, 0),
            describe('P', ""),
            execute("", 0),
            sync(),
        ]
        .concat(),
        Protocol::Prepared => [bind("", name, &arguments, 0), execute("", 0), sync()].concat(),
    }
}

/// Executions of the prepared SELECT with one Sync at the end.
pub(crate) fn batch(executions: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for at in 0..executions {
        let argument = (at % 100_000).to_string();
        all.extend(bind("", Statement::Select.prepared_name(), &[Some(&argument)], 0));
        all.extend(execute("", 0));
    }
    all.extend(sync());
    all
}
