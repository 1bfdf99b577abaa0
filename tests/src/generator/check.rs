//! One statement asked of PostgreSQL and through freshet, and what is to be said of the two answers: equal where PostgreSQL is
//! bound, free where it is free. Where they differ, PostgreSQL is asked again under other plans: what it answers in two ways
//! itself is free, whatever the statement looks like.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use freshet::audit::compare::{ComparedColumn, Freedom, Row, compare};
use freshet::wire::query::row_description;
use freshet_engine::types::PgType;

use super::grammar::Choice;
use super::sentence::{Constants, Parameter};
use crate::corpus::nearness;
use crate::raw::{RawClient, RawReply};
use crate::world::will_pass;

/// Longer than this nobody waits for one answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// Upstream cancels what takes longer: such statements prove nothing.
const TIMEOUT: &str = "SET statement_timeout = '3s'";

/// By which part of the protocol a statement is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    pub is_extended: bool,
    pub is_binary: bool,
    pub constants: Constants,
}

pub const MODES: [Mode; 6] = [
    Mode { is_extended: false, is_binary: false, constants: Constants::Written },
    Mode { is_extended: false, is_binary: false, constants: Constants::Written },
    Mode { is_extended: true, is_binary: false, constants: Constants::Written },
    Mode { is_extended: true, is_binary: true, constants: Constants::Written },
    Mode { is_extended: true, is_binary: true, constants: Constants::Declared },
    Mode { is_extended: true, is_binary: false, constants: Constants::Inferred },
];

/// Settings of sessions that answers depend on.
pub const SETTINGS: [&[&str]; 5] = [
    &[],
    &["SET TimeZone = 'America/New_York'"],
    &["SET TimeZone = 'Europe/Berlin'", "SET DateStyle = 'German, DMY'", "SET extra_float_digits = 0"],
    &["SET DateStyle = 'SQL, MDY'", "SET IntervalStyle = 'postgres_verbose'", "SET bytea_output = 'escape'"],
    &["SET TimeZone = 'Asia/Kolkata'", "SET DateStyle = 'Postgres, DMY'", "SET IntervalStyle = 'iso_8601'"],
];

/// Other plans of upstream's: what they change is free.
const PLANS: [&[&str]; 4] = [
    &["enable_hashagg", "enable_hashjoin"],
    &["enable_nestloop", "enable_mergejoin"],
    &["enable_hashjoin", "enable_nestloop", "enable_sort"],
    &["enable_seqscan", "enable_material", "enable_incremental_sort"],
];

/// A statement as it is sent, and how far its answer is bound.
#[derive(Clone, Debug)]
pub struct Asked {
    pub sql: String,
    pub parameters: Vec<Parameter>,
    pub mode: Mode,
    pub bound: Bound,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Output columns that the rows are ordered by.
    pub order: Vec<usize>,
    /// Output columns that are not compared.
    pub free: Vec<usize>,
    pub choice: Choice,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Local,
    /// PostgreSQL raises an error, and so it came through.
    Refused,
    /// With the reason.
    Relayed(String),
    /// The answers differ as PostgreSQL's own do.
    Free,
    /// Upstream took too long.
    Skipped,
    /// How; the first word is the class.
    Differs(String),
}

impl Verdict {
    /// The class of a difference.
    pub fn class(&self) -> Option<&str> {
        match self {
            Self::Differs(how) => how.split_whitespace().next(),
            Self::Local | Self::Refused | Self::Relayed(_) | Self::Free | Self::Skipped => None,
        }
    }
}

/// A session with PostgreSQL and one through freshet, with the same settings.
pub struct Pair {
    direct: RawClient,
    through: RawClient,
}

impl Pair {
    pub fn new(direct: SocketAddr, through: SocketAddr, database: &str, settings: &[&str]) -> Self {
        let connect = |address| {
            let mut client = RawClient::connect(address, "postgres", database).expect("connects");
            for setting in settings.iter().chain([&TIMEOUT]) {
                assert_eq!(client.simple(setting).expect("answers").error(), None, "{setting}");
            }
            client
        };
        let mut pair = Self { direct: connect(direct), through: connect(through) };
        // The engine runs each time.
        pair.through.simple("SET freshet.route = 'local'").expect("answers");
        pair
    }

    pub fn verdict(&mut self, asked: &Asked) -> Verdict {
        let expected = ask(&mut self.direct, asked);
        if let Some(error) = expected.error() {
            return self.verdict_on_error(asked, &expected, &error);
        }
        let limit = Instant::now() + PATIENCE;
        let mut executions = 0;
        loop {
            let got = ask(&mut self.through, asked);
            executions += 1;
            if got.error().is_some_and(|error| is_timeout(&error)) {
                return Verdict::Skipped;
            }
            if let Some(difference) = differs(asked, &expected, &got) {
                return self.unless_free(asked, &expected, difference);
            }
            let (route, reason) = self.through.last().expect("answers");
            if route == "local" {
                return Verdict::Local;
            }
            if reason.starts_with("quarantined") {
                return self.unless_free(asked, &expected, reason);
            }
            if !will_pass(&reason) && executions > 1 || Instant::now() > limit {
                return Verdict::Relayed(reason);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// An error is upstream's to make, in the same words.
    fn verdict_on_error(&mut self, asked: &Asked, expected: &RawReply, error: &str) -> Verdict {
        if is_timeout(error) {
            return Verdict::Skipped;
        }
        let got = ask(&mut self.through, asked);
        match got.error() {
            Some(other) if is_timeout(&other) => Verdict::Skipped,
            Some(_) if got.envelope() == expected.envelope() => Verdict::Refused,
            // Whether a row that another condition leaves out is computed with is the plan's affair.
            None if hangs_on_rows(error) || PLANS.iter().any(|plan| self.raises_nothing(asked, plan)) => Verdict::Free,
            other => Verdict::Differs(format!("error: expected {error}, got {other:?}")),
        }
    }

    fn unless_free(&mut self, asked: &Asked, expected: &RawReply, difference: String) -> Verdict {
        if PLANS.iter().any(|plan| self.answers_otherwise(asked, expected, plan)) {
            return Verdict::Free;
        }
        Verdict::Differs(difference)
    }

    /// Whether PostgreSQL itself answers otherwise without these ways of planning.
    fn answers_otherwise(&mut self, asked: &Asked, expected: &RawReply, plan: &[&str]) -> bool {
        let other = self.planned_without(asked, plan);
        other.error().is_some() || differs(asked, expected, &other).is_some()
    }

    fn raises_nothing(&mut self, asked: &Asked, plan: &[&str]) -> bool {
        self.planned_without(asked, plan).error().is_none()
    }

    /// PostgreSQL's answer without these ways of planning.
    fn planned_without(&mut self, asked: &Asked, plan: &[&str]) -> RawReply {
        for setting in plan {
            self.direct.simple(&format!("SET {setting} = off")).expect("answers");
        }
        let other = ask(&mut self.direct, asked);
        for setting in plan {
            self.direct.simple(&format!("RESET {setting}")).expect("answers");
        }
        other
    }
}

/// Whether it is an error of computing with a value, as no text is that means none (PostgreSQL: Appendix A, class 22).
fn hangs_on_rows(error: &str) -> bool {
    const OF_TEXTS: [&str; 3] = ["22P02", "22007", "22008"];
    let code = error.split_whitespace().find_map(|field| field.strip_prefix('C').filter(|code| code.len() == 5));
    code.is_some_and(|code| code.starts_with("22") && !OF_TEXTS.contains(&code))
}

fn is_timeout(error: &str) -> bool {
    error.contains("C57014")
}

fn ask(client: &mut RawClient, asked: &Asked) -> RawReply {
    let reply = if asked.mode.is_extended {
        let parameters: Vec<_> = asked.parameters.iter().map(|(oid, text)| (*oid, text.as_deref())).collect();
        client.extended_of(&asked.sql, &parameters, i16::from(asked.mode.is_binary))
    } else {
        client.simple(&asked.sql)
    };
    reply.unwrap_or_else(|error| panic!("{}: {error}", asked.sql))
}

fn rows(reply: &RawReply, free: &[usize]) -> Vec<Row> {
    let row = |row: Vec<Option<Vec<u8>>>| -> Row {
        row.into_iter().enumerate().map(|(at, cell)| cell.filter(|_| !free.contains(&at)).map(Bytes::from)).collect()
    };
    reply.rows().into_iter().map(row).collect()
}

fn differs(asked: &Asked, expected: &RawReply, got: &RawReply) -> Option<String> {
    let Bound { order, free, choice } = &asked.bound;
    if expected.envelope() != got.envelope() {
        return Some(format!("messages: expected {:?}, got {:?}", shown(expected), shown(got)));
    }
    let body = expected.bodies(b'T').first().copied()?;
    let fields = row_description(body).expect("a RowDescription");
    let columns: Vec<ComparedColumn> = fields
        .iter()
        .map(|field| ComparedColumn {
            pg_type: PgType::from_oid(field.type_oid).unwrap_or(PgType::Text),
            is_binary: asked.mode.is_binary,
            nearness: nearness(&asked.sql),
        })
        .collect();
    let (theirs, ours) = (rows(expected, free), rows(got, free));
    let order_columns = order.iter().copied().filter(|at| *at < columns.len() && !free.contains(at)).collect();
    let freedom = Freedom { order_columns, is_limited: false };
    if *choice == Choice::Rows {
        return (theirs.len() != ours.len()).then(|| format!("count: {} rows and {}", theirs.len(), ours.len()));
    }
    let difference = compare(&columns, &freedom, &theirs, &ours, None).err()?;
    Some(format!("rows: {difference:?}\n--   expected {}\n--   got      {}", listed(&theirs), listed(&ours)))
}

fn shown(reply: &RawReply) -> Vec<(char, String)> {
    reply.envelope().iter().map(|(tag, body)| (char::from(*tag), String::from_utf8_lossy(body).into_owned())).collect()
}

fn listed(rows: &[Row]) -> String {
    let cell = |cell: &Option<Bytes>| match cell {
        None => "NULL".to_owned(),
        Some(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
    };
    let row = |row: &Row| format!("({})", row.iter().map(cell).collect::<Vec<_>>().join(", "));
    rows.iter().take(12).map(row).collect::<Vec<_>>().join(" ")
}
