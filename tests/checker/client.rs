//! A client that outlives its connections: what is lost is told from what is refused, and the next call connects anew.

use std::net::SocketAddr;
use std::time::Duration;

use freshet_tests::raw::{RawClient, RawReply};

/// Why a statement has no result.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The connection ended, or never began. Whether the statement took effect is not known.
    Lost,
    /// An error of the statement: SQLSTATE and text.
    Refused { state: String, message: String },
}

/// One user's connection to PostgreSQL or to freshet.
pub(crate) struct Client {
    address: SocketAddr,
    user: &'static str,
    database: String,
    /// Run after each log-in.
    setup: Vec<String>,
    raw: Option<RawClient>,
    /// Counts the connections: a new one is a new session.
    pub(crate) session: u64,
}

/// A reply and how it was made.
pub(crate) struct Read {
    pub(crate) reply: RawReply,
    /// `local`, `hit`, `relay` or `capture`; None: not known, or not asked of freshet.
    pub(crate) route: Option<String>,
    pub(crate) reason: String,
    /// It took no round trip to know that it is fresh.
    pub(crate) is_at_once: bool,
}

impl Read {
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.route.as_deref(), Some("local" | "hit"))
    }

    /// The rows as numbers; None if a cell is none.
    pub(crate) fn numbers(&self) -> Option<Vec<Vec<i64>>> {
        let number = |cell: Option<Vec<u8>>| String::from_utf8(cell?).ok()?.parse().ok();
        self.reply.rows().into_iter().map(|row| row.into_iter().map(number).collect()).collect()
    }

    /// The error that it is.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        refusal(&self.reply)
    }
}

/// How a statement is sent.
pub(crate) enum Form<'a> {
    Simple,
    /// The extended protocol, with parameters.
    Extended(&'a [Option<&'a str>]),
}

impl Client {
    pub(crate) fn new(address: SocketAddr, user: &'static str, database: &str, setup: &[&str]) -> Self {
        let setup = setup.iter().filter(|sql| !sql.is_empty()).map(ToString::to_string).collect();
        Self { address, user, database: database.to_string(), setup, raw: None, session: 0 }
    }

    /// Ends the connection; the next call makes a new one.
    pub(crate) fn hang_up(&mut self) {
        self.raw = None;
    }

    /// Where a CancelRequest for what it asks goes, and what it says.
    pub(crate) fn key(&self) -> Option<(SocketAddr, [u8; 8])> {
        Some((self.address, self.raw.as_ref()?.key()?))
    }

    pub(crate) fn run(&mut self, sql: &str) -> Result<RawReply, Trouble> {
        self.reply_to(sql, &Form::Simple)
    }

    /// As [`Self::run`]; an error of the statement is a reply like any other.
    pub(crate) fn ask(&mut self, sql: &str) -> Result<RawReply, Trouble> {
        self.exchange(|raw| raw.simple(sql))
    }

    /// A statement through freshet, and how freshet says that it was answered. Errors are replies.
    pub(crate) fn read(&mut self, sql: &str, form: &Form<'_>) -> Result<Read, Trouble> {
        let reply = self.exchange(|raw| send(raw, sql, form))?;
        let last = self.exchange(|raw| raw.simple("SHOW freshet.last")).map(|reply| reply.rows()).unwrap_or_default();
        let Some(last) = last.into_iter().next() else {
            self.hang_up();
            return Ok(Read { reply, route: None, reason: String::new(), is_at_once: false });
        };
        let text = |at: usize| String::from_utf8_lossy(last[at].as_deref().unwrap_or_default()).into_owned();
        // The fifth is for how long it was waited, in microseconds.
        Ok(Read { reply, route: Some(text(0)), reason: text(1), is_at_once: text(4) == "0" })
    }

    /// A statement past freshet; errors are replies.
    pub(crate) fn read_past(&mut self, sql: &str, form: &Form<'_>) -> Result<Read, Trouble> {
        let reply = self.exchange(|raw| send(raw, sql, form))?;
        Ok(Read { reply, route: None, reason: String::new(), is_at_once: false })
    }

    fn reply_to(&mut self, sql: &str, form: &Form<'_>) -> Result<RawReply, Trouble> {
        let reply = self.exchange(|raw| send(raw, sql, form))?;
        match refusal(&reply) {
            None => Ok(reply),
            Some(trouble) => Err(trouble),
        }
    }

    fn exchange<T>(&mut self, talk: impl FnOnce(&mut RawClient) -> std::io::Result<T>) -> Result<T, Trouble>
    where
        T: Fatal,
    {
        self.connect()?;
        let Some(raw) = &mut self.raw else { return Err(Trouble::Lost) };
        match talk(raw) {
            Ok(reply) if !reply.is_fatal() => Ok(reply),
            Ok(_) | Err(_) => {
                self.raw = None;
                Err(Trouble::Lost)
            }
        }
    }

    fn connect(&mut self) -> Result<(), Trouble> {
        if self.raw.is_some() {
            return Ok(());
        }
        let lost = |_| {
            std::thread::sleep(Duration::from_millis(20));
            Trouble::Lost
        };
        let mut raw = RawClient::connect(self.address, self.user, &self.database).map_err(lost)?;
        for sql in &self.setup {
            let reply = raw.simple(sql).map_err(lost)?;
            if let Some(trouble) = refusal(&reply) {
                return Err(trouble);
            }
        }
        self.raw = Some(raw);
        self.session += 1;
        Ok(())
    }
}

fn send(raw: &mut RawClient, sql: &str, form: &Form<'_>) -> std::io::Result<RawReply> {
    match form {
        Form::Simple => raw.simple(sql),
        Form::Extended(parameters) => raw.extended(sql, parameters, 0),
    }
}

/// Whether a reply ended the session.
trait Fatal {
    fn is_fatal(&self) -> bool;
}

impl Fatal for RawReply {
    fn is_fatal(&self) -> bool {
        self.bodies(b'E').iter().any(|body| matches!(field(body, b'V').as_deref(), Some("FATAL" | "PANIC")))
    }
}

fn refusal(reply: &RawReply) -> Option<Trouble> {
    let body = *reply.bodies(b'E').first()?;
    let state = field(body, b'C').unwrap_or_default();
    Some(Trouble::Refused { state, message: field(body, b'M').unwrap_or_default() })
}

/// One field of an ErrorResponse.
fn field(body: &[u8], code: u8) -> Option<String> {
    let fields = body.split(|byte| *byte == 0);
    let found = fields.into_iter().find(|field| field.first() == Some(&code))?;
    Some(String::from_utf8_lossy(&found[1..]).into_owned())
}
