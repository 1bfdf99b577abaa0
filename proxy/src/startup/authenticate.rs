//! The log-in, relayed: upstream asks, the client answers, freshet passes both on until the first ReadyForQuery.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::error::Refusal;
use crate::net::Line;
use crate::startup::{StartupError, refuse};
use crate::wire::frame::{Frames, HEADER_LENGTH, Head, Reader, head};
use crate::wire::startup::{Authentication, authentication, parameters, write_sasl_without};

/// A client that upstream has let in.
pub struct LoggedIn {
    pub client: Line,
    pub upstream: Line,
    pub user: String,
    pub database: String,
    pub application_name: String,
    pub is_replication: bool,
    pub process_id: Option<u32>,
    /// The body of BackendKeyData (process ID and secret) as it came; None where upstream sent none.
    pub backend_key: Option<Vec<u8>>,
    /// Bytes that came behind the log-in, from either side.
    pub client_rest: Vec<u8>,
    pub upstream_rest: Vec<u8>,
}

/// Whether a password is asked of a client that is not local; from `allow_passwordless_upstream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passwordless {
    Allowed,
    ForLocalClients,
}

/// PostgreSQL: PG_MAX_AUTH_TOKEN_LENGTH (auth.c).
const ANSWER_LENGTH_MAX: usize = 65_535 + HEADER_LENGTH;
/// AuthenticationGSSContinue.
const GSS_CONTINUE: u32 = 8;
/// A client may pipeline its first messages behind the start-up packet; more than this waits in its socket.
const CLIENT_AHEAD_MAX: usize = 256 * 1024;
/// Messages of upstream's during log-in: parameters, notices, errors.
const UPSTREAM_FRAME_MAX: usize = 1 << 20;

struct Exchange {
    client: Line,
    upstream: Line,
    from_client: Vec<u8>,
    from_upstream: Vec<u8>,
    to_client: Vec<u8>,
    passwordless: Passwordless,
    was_challenged: bool,
    /// The client's next message must be its answer.
    awaits_answer: bool,
    /// It sends nothing more.
    client_ended: bool,
    is_authenticated: bool,
    /// What upstream says has no frames any more.
    is_plain_text: bool,
    backend_key: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ready,
    Refused,
}

/// Relays until upstream is ready for the first query. `upstream` has the start-up packet; with each line come the
/// bytes that were read from it already.
pub async fn authenticate(
    (client, from_client): (Line, Vec<u8>),
    (upstream, from_upstream): (Line, Vec<u8>),
    packet: &[u8],
    passwordless: Passwordless,
) -> Result<LoggedIn, StartupError> {
    let mut exchange = Exchange {
        client,
        upstream,
        from_client,
        from_upstream,
        to_client: Vec::new(),
        passwordless,
        was_challenged: false,
        awaits_answer: false,
        client_ended: false,
        is_authenticated: false,
        is_plain_text: false,
        backend_key: None,
    };
    if exchange.run().await? == Verdict::Refused {
        return Err(refuse(exchange.client, Refusal::PasswordlessUpstream).await);
    }
    let value = |wanted: &[u8]| {
        let found = parameters(packet).filter(|(name, _)| *name == wanted).last();
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    };
    let user = value(b"user").unwrap_or_default();
    Ok(LoggedIn {
        client: exchange.client,
        upstream: exchange.upstream,
        database: value(b"database").filter(|name| !name.is_empty()).unwrap_or_else(|| user.clone()),
        user,
        application_name: value(b"application_name").unwrap_or_default(),
        is_replication: value(b"replication").is_some_and(|value| !is_false(&value)),
        process_id: exchange.backend_key.as_ref().and_then(|key| Reader::new(key).u32()),
        backend_key: exchange.backend_key,
        client_rest: exchange.from_client,
        upstream_rest: exchange.from_upstream,
    })
}

/// As PostgreSQL reads a boolean; `database` and whatever is not clearly false is taken for replication, which is only
/// relayed more plainly.
fn is_false(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "false" | "fals" | "fal" | "fa" | "f" | "no" | "n" | "off" | "of" | "0"
    )
}

impl Exchange {
    async fn run(&mut self) -> Result<Verdict, StartupError> {
        loop {
            let verdict = self.pass_upstream()?;
            self.client.send(&std::mem::take(&mut self.to_client)).await?;
            if let Some(verdict) = verdict {
                return Ok(verdict);
            }
            self.pass_client().await?;
            if self.client_ended && self.awaits_answer {
                return Err(StartupError::Client("closed during log-in"));
            }
            let may_read_client = !self.client_ended && self.from_client.len() < CLIENT_AHEAD_MAX;
            tokio::select! {
                read = self.upstream.read_buf(&mut self.from_upstream) => {
                    if read? == 0 {
                        // Whatever upstream said last is on its way; the line is closed behind it.
                        let _ = self.client.shutdown().await;
                        return Err(StartupError::UpstreamEnded);
                    }
                }
                read = self.client.read_buf(&mut self.from_client), if may_read_client => {
                    if read? == 0 {
                        if self.from_client.is_empty() {
                            return Err(StartupError::Client("closed during log-in"));
                        }
                        // It has sent all it has to say, and may want to hear what comes of it: the session reads its end again.
                        self.client_ended = true;
                    }
                }
            }
        }
    }

    /// Passes on the client's answers. What it sends unasked waits for the session; what is no answer although it is asked
    /// goes upstream as it is, which refuses it.
    async fn pass_client(&mut self) -> io::Result<()> {
        while !self.is_authenticated {
            let length = match head(&self.from_client) {
                Head::Incomplete => break,
                Head::Frame { tag: b'p', length } if length <= ANSWER_LENGTH_MAX => length,
                Head::Frame { .. } | Head::Malformed if self.awaits_answer => self.from_client.len(),
                Head::Frame { .. } | Head::Malformed => break,
            };
            let Some(answer) = self.from_client.get(..length) else { break };
            self.upstream.send(answer).await?;
            self.from_client.drain(..length);
            self.awaits_answer = false;
        }
        Ok(())
    }

    /// Moves upstream's whole frames to the client, as far as they go.
    fn pass_upstream(&mut self) -> Result<Option<Verdict>, StartupError> {
        let input = std::mem::take(&mut self.from_upstream);
        if self.is_plain_text {
            self.to_client.extend_from_slice(&input);
            return Ok(None);
        }
        let mut frames = Frames::new(&input);
        let mut verdict = None;
        for frame in &mut frames {
            match frame.tag {
                b'R' => match authentication(frame.body) {
                    Some(Authentication::Ok) if !self.may_enter() => {
                        verdict = Some(Verdict::Refused);
                        break;
                    }
                    Some(Authentication::Ok) => self.is_authenticated = true,
                    Some(Authentication::Sasl { mechanisms }) => {
                        self.was_challenged = true;
                        self.awaits_answer = true;
                        if self.must_not_bind_channel() {
                            write_sasl_without(&mut self.to_client, mechanisms, b"SCRAM-SHA-256-PLUS");
                            continue;
                        }
                    }
                    Some(Authentication::Challenge(code)) => {
                        self.was_challenged = true;
                        // Behind GSSAPI's last token nothing may be asked any more.
                        self.awaits_answer = code != GSS_CONTINUE;
                    }
                    Some(Authentication::SaslFinal) | None => self.was_challenged = true,
                },
                b'K' => self.backend_key = Some(frame.body.to_vec()),
                _ => {}
            }
            self.to_client.extend_from_slice(frame.bytes);
            if frame.tag == b'Z' && self.is_authenticated {
                verdict = Some(Verdict::Ready);
                break;
            }
        }
        let rest = frames.rest();
        match head(rest) {
            // A postmaster that cannot fork says so as in protocol 2, without a length, and closes (postmaster.c, report_fork_failure_to_client).
            Head::Malformed | Head::Frame { length: UPSTREAM_FRAME_MAX.., .. } if rest.first() == Some(&b'E') => {
                self.is_plain_text = true;
                self.to_client.extend_from_slice(rest);
                return Ok(None);
            }
            Head::Malformed => return Err(StartupError::Io(io::ErrorKind::InvalidData.into())),
            Head::Frame { length, .. } if length > UPSTREAM_FRAME_MAX => {
                return Err(StartupError::Io(io::ErrorKind::InvalidData.into()));
            }
            Head::Frame { .. } | Head::Incomplete => {}
        }
        self.from_upstream = rest.to_vec();
        Ok(verdict)
    }

    /// Upstream sees freshet's address, not the client's: `trust` for that address must not open the door to all.
    fn may_enter(&self) -> bool {
        self.was_challenged || self.passwordless == Passwordless::Allowed || self.client.is_local()
    }

    /// The client would refuse PLUS offered on a plain line, and upstream would refuse a client that says it saw none
    /// offered where it was: so this only helps, and only where the client's leg is plain.
    fn must_not_bind_channel(&self) -> bool {
        self.upstream.is_encrypted() && !self.client.is_encrypted()
    }
}
