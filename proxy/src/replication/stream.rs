//! The conversation with one walsender: frames in, transactions to the mirror, acknowledgements out.
//!
//! Protocol: PostgreSQL, Streaming Replication Protocol and Logical Streaming Replication Protocol. A keepalive's LSN
//! means that everything up to it has been delivered (the walsender sets sentPtr after it queued the output); an
//! XLogData's does not, and is not used. Acknowledging promptly makes the walsender send a keepalive per WAL flush.
//!
//! Nobody is served anything stale by a walsender that says nothing: what it has not delivered is waited for and then relayed. How
//! long it is believed in is a matter of when the mirror comes back, and of not copying everything again for nothing.

use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use freshet_engine::mirror::{Assembler, UpstreamTransaction};
use freshet_engine::types::Lsn;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::replication::catalog::micros;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connection::{Connection, Frame, Row};
use crate::upstream::{ServerError, UpstreamError};

/// A walsender that says nothing for this long is asked; after twice as long it counts as lost, unless upstream says that it is busy.
const SILENCE: Duration = Duration::from_secs(4);
/// One that upstream says waits for something to do has this long to prove it: the answer may be on its way.
const LAST_WORD: Duration = Duration::from_secs(1);
/// Of freshet's walsender. While it decodes a transaction of which nothing is to be sent, it reads what it is asked, and answers, once
/// half of this has passed since the last time (walsender.c, WalSndUpdateProgress; 15 to 18, and 14 since 14.4). Where nothing is acknowledged for all
/// of it, it ends: a large transaction may take long to be applied here.
const SENDER_TIMEOUT: Duration = Duration::from_secs(60);
/// A busy one that has said nothing for so long is stopped, or cannot be heard.
const BUSY_MAX: Duration = Duration::from_secs(SENDER_TIMEOUT.as_secs() / 2 + 2 * SILENCE.as_secs());
/// Statements on the walsender connection other than slot creation.
const ANSWER: Duration = Duration::from_secs(10);
/// Where more than this comes at once there is no rest: it would be what limits the stream.
const RESTED_BYTES_MAX: usize = 16 * 1024;

/// Which server a connection ended up at. Two connections that differ must never be combined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    pub system: String,
    pub timeline: String,
    /// `pg_postmaster_start_time()`, microseconds since 2000.
    pub started_at: i64,
}

/// Where the stream delivers to.
pub trait Sink {
    /// A transaction in full, in commit order.
    fn apply(&self, transaction: UpstreamTransaction);
    /// Everything up to here has been delivered.
    fn advance(&self, lsn: Lsn);
    fn applied(&self) -> Lsn;
    /// Lets those who wait for a position look again.
    fn show(&self);
    /// Whether upstream says that this walsender is there and does something else than wait.
    fn is_busy(&self, walsender: i32) -> impl Future<Output = bool> + Send;
    /// What was applied is about to be acknowledged.
    fn before_acknowledgement(&self) -> impl Future<Output = ()> + Send;
    /// Blocks for a little if there is no hurry: more is taken in one go then.
    fn rest(&self) -> impl Future<Output = ()> + Send;
}

/// A replication connection; [`Walsender::stream`] turns it into the stream.
pub struct Walsender {
    connection: Connection,
    pub identity: ServerIdentity,
}

/// SQL for [`ServerIdentity::started_at`], an int8.
pub const STARTED_AT: &str = "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8 - 946684800000000";

/// From PostgreSQL 17 on a transaction that is decoded has a limit of its own, too.
const UNLIMITED: &str = "CASE WHEN current_setting('server_version_num')::int >= 170000
                              THEN set_config('transaction_timeout', '0', false) END";

/// How often a walsender looks whether freshet is still there while it waits.
const LOOK_FOR_CLIENT: &str = "5s";

/// [`ServerIdentity::started_at`] of the server where a new line gets to.
pub async fn server_started_at(address: &UpstreamAddress) -> Result<i64, UpstreamError> {
    let mut connection = Connection::open(address, &[]).await?;
    let asked = timeout(ANSWER, connection.simple_query(&format!("SELECT {STARTED_AT}"))).await;
    let started = asked.map_err(|_| UpstreamError::Timeout("the server's start time"))??;
    connection.terminate().await;
    text(&started, 0)?.parse().map_err(|_| UpstreamError::Protocol("no start time"))
}

impl Walsender {
    /// Connects in replication mode. `name` shows in pg_stat_replication.
    pub async fn connect(address: &UpstreamAddress, name: &str) -> Result<Self, UpstreamError> {
        // Limits of the role or the database are for statements of people: the slot waits for others' transactions, and decoding for their locks.
        let options =
            format!("-c wal_sender_timeout={}s -c lock_timeout=0 -c statement_timeout=0", SENDER_TIMEOUT.as_secs());
        let parameters = [("replication", "database"), ("application_name", name), ("options", &*options)];
        let mut connection = Connection::open(address, &parameters).await?;
        let asked = timeout(ANSWER, async {
            let system = connection.simple_query("IDENTIFY_SYSTEM").await?;
            let started = connection.simple_query(&format!("SELECT {STARTED_AT}, {UNLIMITED}")).await?;
            Ok::<_, UpstreamError>((system, started))
        });
        let (system, started) = asked.await.map_err(|_| UpstreamError::Timeout("IDENTIFY_SYSTEM"))??;
        let identity = ServerIdentity {
            system: text(&system, 0)?,
            timeline: text(&system, 1)?,
            started_at: text(&started, 0)?.parse().map_err(|_| UpstreamError::Protocol("no start time"))?,
        };
        Ok(Self { connection, identity })
    }

    /// The serving process, for `pg_terminate_backend`.
    pub fn process_id(&self) -> i32 {
        self.connection.process_id
    }

    /// Creates a temporary slot. Waits until every transaction that is writing now has ended, however long that takes: whoever gives up
    /// must terminate the process, which by itself looks at its connection every few seconds only.
    pub async fn create_slot(&mut self, slot: &str) -> Result<(), UpstreamError> {
        self.look_for_client().await?;
        let command = format!("CREATE_REPLICATION_SLOT {slot} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT");
        self.connection.simple_query(&command).await.map(drop)
    }

    /// The process would wait for its slot, and keep log for it, also after freshet was killed. A replication command does not arm
    /// PostgreSQL's look at the connection, SQL just before it does, with what was set before that (postgres.c, `start_xact_command`,
    /// `ProcessInterrupts`). Not every platform can look (pqcomm.c): there it waits as ever.
    async fn look_for_client(&mut self) -> Result<(), UpstreamError> {
        match self
            .connection
            .simple_query(&format!("SET client_connection_check_interval = '{LOOK_FOR_CLIENT}'; SELECT 1"))
            .await
        {
            Ok(_) | Err(UpstreamError::Server(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Starts streaming from the slot. Slot and publication names are freshet's own and need no quoting.
    /// `messages`: those of pg_logical_emit_message, too, whoever sends them.
    pub async fn start(&mut self, slot: &str, publication: &str, messages: bool) -> Result<(), UpstreamError> {
        let command = format!(
            "START_REPLICATION SLOT {slot} LOGICAL 0/0 (proto_version '1', publication_names '{publication}', \
             binary 'true', messages '{messages}')"
        );
        postgres_protocol::message::frontend::query(&command, self.connection.outgoing())?;
        self.connection.flush().await?;
        loop {
            let frame = timeout(ANSWER, self.connection.read_frame()).await;
            let frame = frame.map_err(|_| UpstreamError::Timeout("START_REPLICATION"))??;
            match frame.tag {
                b'W' => return Ok(()),
                b'E' => return Err(UpstreamError::Server(ServerError::parse(&frame.body))),
                b'N' | b'S' => {}
                _ => return Err(UpstreamError::Protocol("unexpected message before CopyBothResponse")),
            }
        }
    }

    /// Delivers to `sink` until the connection or the protocol fails; `ping` asks the walsender for a keepalive.
    pub async fn stream(&mut self, sink: &impl Sink, ping: &Notify, transaction_bytes_max: usize) -> UpstreamError {
        let mut receiver =
            Receiver { assembler: Assembler::new(transaction_bytes_max), reply_requested: false, bytes: 0 };
        let mut acknowledged = Lsn::default();
        let process = self.process_id();
        let mut silence = Silence::new(Instant::now());
        loop {
            let outcome: Result<(), UpstreamError> = async {
                // Everything that has arrived is applied before it is shown and acknowledged once.
                self.drain(&mut receiver, sink)?;
                sink.show();
                if sink.applied() > acknowledged || receiver.reply_requested {
                    // Only what has been applied until now is acknowledged after the look.
                    acknowledged = sink.applied();
                    sink.before_acknowledgement().await;
                    receiver.reply_requested = false;
                    self.send_status(acknowledged, Ask::Nothing).await?;
                    if std::mem::take(&mut receiver.bytes) <= RESTED_BYTES_MAX {
                        sink.rest().await;
                    }
                }
                tokio::select! {
                    frame = self.connection.read_frame() => {
                        silence = Silence::new(Instant::now());
                        receiver.receive(frame?, sink)
                    }
                    // One that has been asked and has not read it yet would only have to read more.
                    () = ping.notified(), if !silence.asked => self.send_status(acknowledged, Ask::Keepalive).await,
                    () = tokio::time::sleep_until(silence.until) => {
                        let is_busy = silence.asked && sink.is_busy(process).await;
                        let longer = silence.longer(Instant::now(), is_busy);
                        let asks = !silence.asked;
                        silence = longer.ok_or(UpstreamError::Timeout("the walsender is silent"))?;
                        if asks { self.send_status(acknowledged, Ask::Keepalive).await } else { Ok(()) }
                    }
                }
            }
            .await;
            if let Err(error) = outcome {
                return error;
            }
        }
    }

    /// Takes every message that has arrived in full.
    fn drain(&mut self, receiver: &mut Receiver, sink: &impl Sink) -> Result<(), UpstreamError> {
        loop {
            self.connection.drain_copy_data(|body| receiver.receive_copy_data(body, sink))?;
            let Some(frame) = self.connection.buffered_frame()? else { return Ok(()) };
            receiver.receive(frame, sink)?;
        }
    }

    /// Standby status update: what is applied counts as written and flushed, there is nothing to keep.
    async fn send_status(&mut self, applied: Lsn, ask: Ask) -> Result<(), UpstreamError> {
        let outgoing = self.connection.outgoing();
        outgoing.put_u8(b'd');
        outgoing.put_i32(4 + 1 + 8 * 4 + 1);
        write_status(outgoing, applied, ask);
        self.connection.flush().await
    }

    /// Says good-bye and waits until the walsender has gone, and with it the temporary slot.
    pub async fn close(mut self) {
        postgres_protocol::message::frontend::terminate(self.connection.outgoing());
        let _ = timeout(Duration::from_secs(2), async {
            self.connection.flush().await?;
            loop {
                self.connection.read_frame().await?;
            }
            #[allow(unreachable_code)]
            Ok::<(), UpstreamError>(())
        })
        .await;
    }
}

/// How long the walsender may still say nothing.
struct Silence {
    since: Instant,
    until: Instant,
    /// It has been asked to say something.
    asked: bool,
    /// It was found waiting for something to do, although it has been asked.
    doubted: bool,
}

impl Silence {
    fn new(now: Instant) -> Self {
        Self { since: now, until: now + SILENCE, asked: false, doubted: false }
    }

    /// When `until` has come; `is_busy` counts once it has been asked. None: it is lost.
    fn longer(&self, now: Instant, is_busy: bool) -> Option<Self> {
        let believed = |until, doubted| Some(Self { since: self.since, until, asked: true, doubted });
        match is_busy {
            _ if !self.asked => believed(now + SILENCE, false),
            true if now - self.since < BUSY_MAX => believed(now + SILENCE, false),
            false if !self.doubted => believed(now + LAST_WORD, true),
            true | false => None,
        }
    }
}

/// What a message says that ends the stream.
pub(super) fn ended_by(tag: u8) -> UpstreamError {
    match tag {
        // CopyDone or CommandComplete: a walsender has sent all there is, and PostgreSQL shuts down (walsender.c, WalSndDone).
        b'c' | b'C' => {
            let what = "upstream has ended the stream, as it does when it shuts down";
            UpstreamError::Io(std::io::Error::new(std::io::ErrorKind::ConnectionAborted, what))
        }
        _ => UpstreamError::Protocol("unexpected message in the stream"),
    }
}

/// What a status update asks of the walsender.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Nothing,
    Keepalive,
}

pub(super) fn write_status(buffer: &mut BytesMut, applied: Lsn, ask: Ask) {
    buffer.put_u8(b'r');
    for _ in ["written", "flushed", "applied"] {
        buffer.put_u64(applied.0);
    }
    buffer.put_i64(micros(std::time::SystemTime::now()));
    buffer.put_u8(u8::from(ask == Ask::Keepalive));
}

pub(super) fn text(rows: &[Row], column: usize) -> Result<String, UpstreamError> {
    let cell = rows.first().and_then(|row| row.get(column)).and_then(Option::as_ref);
    let cell = cell.ok_or(UpstreamError::Protocol("a value is missing"))?;
    Ok(String::from_utf8_lossy(cell).into_owned())
}

struct Receiver {
    assembler: Assembler,
    reply_requested: bool,
    /// Received since the last acknowledgement.
    bytes: usize,
}

impl Receiver {
    fn receive(&mut self, frame: Frame, sink: &impl Sink) -> Result<(), UpstreamError> {
        match frame.tag {
            b'd' => self.receive_copy_data(&frame.body, sink),
            b'E' => Err(UpstreamError::Server(ServerError::parse(&frame.body))),
            b'N' | b'S' => Ok(()),
            tag => Err(ended_by(tag)),
        }
    }

    fn receive_copy_data(&mut self, mut body: &[u8], sink: &impl Sink) -> Result<(), UpstreamError> {
        const TORN: UpstreamError = UpstreamError::Protocol("torn replication message");
        self.bytes += body.len();
        match body.first() {
            // XLogData: start, end, time, then one pgoutput message.
            Some(b'w') if body.len() > 25 => {
                let assembled = self.assembler.push_bytes(&body[25..]);
                let assembled = assembled.map_err(|error| {
                    tracing::error!(%error, "the replication stream cannot be understood");
                    UpstreamError::Protocol("a message of the stream that is not understood")
                })?;
                if let Some(transaction) = assembled {
                    sink.apply(transaction);
                }
            }
            Some(b'k') if body.len() >= 18 => {
                body.advance(1);
                let delivered = Lsn(body.get_u64());
                body.advance(8);
                self.reply_requested |= body.get_u8() == 1;
                sink.advance(delivered);
            }
            _ => return Err(TORN),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many seconds it is lost that has said nothing.
    fn lost_after(is_busy_at: impl Fn(u64) -> bool) -> u64 {
        let begun = Instant::now();
        let mut silence = Silence::new(begun);
        loop {
            let seconds = (silence.until - begun).as_secs();
            match silence.longer(silence.until, is_busy_at(seconds)) {
                Some(longer) => silence = longer,
                None => return seconds,
            }
        }
    }

    #[test]
    fn a_silent_walsender_is_believed_in_while_it_is_busy_and_not_for_ever() {
        assert_eq!(lost_after(|_| false), 9, "it waits, and has been asked");
        assert_eq!(lost_after(|_| true), 40, "it would have answered by then");
        assert_eq!(lost_after(|second| second < 20), 21, "it was busy, and has nothing to say");
        assert_eq!(lost_after(|second| second != 8), 41, "just not at the moment");
        assert!(BUSY_MAX > SENDER_TIMEOUT / 2);
    }

    #[test]
    fn a_stream_that_upstream_ends_is_no_error_of_the_protocol() {
        for tag in [b'c', b'C'] {
            let told = ended_by(tag).to_string();
            assert_eq!(told, "connection to upstream: upstream has ended the stream, as it does when it shuts down");
        }
        assert!(matches!(ended_by(b'T'), UpstreamError::Protocol(_)));
    }

    #[test]
    fn a_status_update_has_the_layout_of_the_protocol() {
        let mut buffer = BytesMut::new();
        write_status(&mut buffer, Lsn(0x0102), Ask::Keepalive);
        assert_eq!(buffer.len(), 34);
        assert_eq!((buffer[0], buffer[33]), (b'r', 1));
        assert_eq!(buffer[1..9], buffer[9..17]);
        assert_eq!(buffer[7..9], [1, 2]);
    }
}
