//! One conversation of freshet's own with upstream: start-up, simple queries, prepared statements, raw frames.
//!
//! Beside tokio-postgres (see [`crate::upstream::service`]) because that speaks no replication protocol, and
//! because the freshness barrier wants one write and one read per question, on the task that waits for it.

use bytes::{Buf, Bytes, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::net::Line;
use crate::tls::certificate::Certificate;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::authenticate::Exchange;
use crate::upstream::connect;
use crate::upstream::{ServerError, UpstreamError};

/// PostgreSQL's own limit on a message (PQ_LARGE_MESSAGE_LIMIT).
const FRAME_BYTES_MAX: usize = 0x3fff_ffff;
const READ_BYTES: usize = 64 * 1024;
/// Tag and length.
const HEADER_BYTES: usize = 5;

/// One message: its tag and its body without tag and length.
#[derive(Clone, Debug)]
pub struct Frame {
    pub tag: u8,
    pub body: Bytes,
}

/// The values of a DataRow; None is NULL.
pub type Row = Vec<Option<Bytes>>;

/// Logged in and ready for a question.
pub struct Connection {
    line: Line,
    incoming: BytesMut,
    outgoing: BytesMut,
    /// Of the serving process: what `pg_terminate_backend` and `pg_stat_activity` call `pid`.
    pub process_id: i32,
}

impl Connection {
    /// Connects and logs in. `parameters` go into the start-up packet beside user and database
    /// (`replication=database`, `options`, ...).
    pub async fn open(address: &UpstreamAddress, parameters: &[(&str, &str)]) -> Result<Self, UpstreamError> {
        let mut refused = None;
        let attempts = address.attempts();
        for (number, attempt) in attempts.iter().enumerate() {
            let line = match connect::open_by(address, *attempt, address.connect_timeout).await {
                Ok(line) => line,
                Err(error) => return Err(UpstreamError::Io(error).after(refused)),
            };
            let has_other = number + 1 < attempts.len() && connect::has_other(*attempt, &line);
            match Self::log_in(line, address, parameters).await {
                // 28000: pg_hba.conf does not admit this kind of line. A wrong password stays wrong on another.
                Err(UpstreamError::Server(error)) if has_other && error.code == "28000" => refused = Some(error),
                Err(error) => return Err(error.after(refused)),
                Ok(connection) => return Ok(connection),
            }
        }
        Err(UpstreamError::Protocol("no kind of line is allowed"))
    }

    async fn log_in(line: Line, address: &UpstreamAddress, parameters: &[(&str, &str)]) -> Result<Self, UpstreamError> {
        let (incoming, outgoing) = (BytesMut::with_capacity(READ_BYTES), BytesMut::new());
        let mut connection = Self { line, incoming, outgoing, process_id: 0 };
        let started = timeout(address.connect_timeout, connection.start_up(address, parameters));
        started.await.map_err(|_| UpstreamError::Timeout("start-up"))??;
        Ok(connection)
    }

    async fn start_up(&mut self, address: &UpstreamAddress, parameters: &[(&str, &str)]) -> Result<(), UpstreamError> {
        // Everything freshet asks is ASCII or UTF-8, whatever the role's default encoding is.
        let own = [("user", address.user.as_str()), ("database", &address.database), ("client_encoding", "UTF8")];
        frontend::startup_message(own.into_iter().chain(parameters.iter().copied()), &mut self.outgoing)?;
        self.flush().await?;
        let mut exchange = Exchange::default();
        let mut is_authenticated = false;
        loop {
            let mut frame = self.read_frame().await?;
            match frame.tag {
                b'R' => {
                    is_authenticated = exchange.answer(frame.body, address, self)?;
                    self.flush().await?;
                }
                b'K' if frame.body.len() >= 8 => self.process_id = frame.body.get_i32(),
                b'Z' if is_authenticated => return Ok(()),
                b'E' => return Err(UpstreamError::Server(ServerError::parse(&frame.body))),
                b'S' | b'N' | b'v' => {}
                _ => return Err(UpstreamError::Protocol("unexpected message during start-up")),
            }
        }
    }

    /// Runs SQL by the simple protocol; the rows of all its statements, in text.
    pub async fn simple_query(&mut self, sql: &str) -> Result<Vec<Row>, UpstreamError> {
        frontend::query(sql, &mut self.outgoing)?;
        self.flush().await?;
        self.collect().await
    }

    /// Prepares `sql` under `name`; parameter types are inferred by upstream.
    pub async fn prepare(&mut self, name: &str, sql: &str) -> Result<(), UpstreamError> {
        frontend::parse(name, sql, std::iter::empty(), &mut self.outgoing)?;
        frontend::sync(&mut self.outgoing);
        self.flush().await?;
        self.collect().await.map(drop)
    }

    /// Runs a prepared statement; parameters and results in binary.
    pub async fn execute(&mut self, name: &str, parameters: &[&[u8]]) -> Result<Vec<Row>, UpstreamError> {
        self.send_execute(name, parameters)?;
        self.flush().await?;
        self.collect().await
    }

    /// The first half of [`Connection::execute`], up to the outgoing buffer.
    pub fn send_execute(&mut self, name: &str, parameters: &[&[u8]]) -> Result<(), UpstreamError> {
        let value = |parameter: &&[u8], buffer: &mut BytesMut| {
            buffer.extend_from_slice(parameter);
            Ok(IsNull::No)
        };
        let bound = frontend::bind("", name, [1], parameters, value, [1], &mut self.outgoing);
        bound.map_err(|_| UpstreamError::Protocol("parameters too long"))?;
        frontend::execute("", 0, &mut self.outgoing)?;
        frontend::sync(&mut self.outgoing);
        Ok(())
    }

    /// Rows up to ReadyForQuery, or the first error.
    pub async fn collect(&mut self) -> Result<Vec<Row>, UpstreamError> {
        let mut rows = Vec::new();
        let mut first_error = None;
        loop {
            let frame = self.read_frame().await?;
            match frame.tag {
                b'D' => rows.push(parse_row(frame.body)?),
                b'E' => {
                    let error = ServerError::parse(&frame.body);
                    // After FATAL the line closes: there is no ReadyForQuery to wait for.
                    let is_final = error.severity != "ERROR";
                    let error = first_error.get_or_insert(error);
                    if is_final {
                        return Err(UpstreamError::Server(error.clone()));
                    }
                }
                b'Z' => return first_error.map_or(Ok(rows), |error| Err(UpstreamError::Server(error))),
                b'G' | b'H' | b'W' => return Err(UpstreamError::Protocol("a query must not start a COPY here")),
                _ => {}
            }
        }
    }

    /// The next message. Cancel safe: bytes read so far stay in the buffer.
    pub async fn read_frame(&mut self) -> Result<Frame, UpstreamError> {
        loop {
            if let Some(frame) = self.buffered_frame()? {
                return Ok(frame);
            }
            self.incoming.reserve(READ_BYTES);
            if self.line.read_buf(&mut self.incoming).await? == 0 {
                return Err(UpstreamError::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// The next message if it has arrived in full.
    pub fn buffered_frame(&mut self) -> Result<Option<Frame>, UpstreamError> {
        let Some((tag, length)) = whole_frame(&self.incoming)? else { return Ok(None) };
        let mut body = self.incoming.split_to(length).freeze();
        body.advance(HEADER_BYTES);
        Ok(Some(Frame { tag, body }))
    }

    /// Hands `take` the body of each CopyData that has arrived, where it lies, up to another message or one that is not
    /// all here: COPY sends a message per row, and a reference count for each is a tenth of a first copy's time.
    pub fn drain_copy_data<E: From<UpstreamError>>(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut taken = 0;
        while let Some((b'd', length)) = whole_frame(&self.incoming[taken..])? {
            take(&self.incoming[taken + HEADER_BYTES..taken + length])?;
            taken += length;
        }
        self.incoming.advance(taken);
        Ok(())
    }

    /// What SCRAM can bind this line to, if anything.
    pub(super) fn end_point_digest(&self) -> Option<Vec<u8>> {
        end_point_digest(&self.line)
    }

    /// Messages to be sent by the next [`Connection::flush`].
    pub fn outgoing(&mut self) -> &mut BytesMut {
        &mut self.outgoing
    }

    pub async fn flush(&mut self) -> Result<(), UpstreamError> {
        self.line.send(&self.outgoing).await?;
        self.outgoing.clear();
        Ok(())
    }

    /// Says good-bye; errors do not matter any more.
    pub async fn terminate(mut self) {
        frontend::terminate(&mut self.outgoing);
        let _ = self.flush().await;
        let _ = self.line.shutdown().await;
    }
}

/// Tag and length, both counted, of the message that `bytes` begin with; None: not all of it is here.
fn whole_frame(bytes: &[u8]) -> Result<Option<(u8, usize)>, UpstreamError> {
    let Some([tag, length @ ..]) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
    if !(4..=FRAME_BYTES_MAX).contains(&length) {
        return Err(UpstreamError::Protocol("message of an impossible length"));
    }
    Ok((bytes.len() > length).then_some((*tag, length + 1)))
}

/// tls-server-end-point of a line.
pub(super) fn end_point_digest(line: &Line) -> Option<Vec<u8>> {
    Certificate::parse(line.peer_certificate()?)?.end_point_digest()
}

/// Reads the body of a DataRow.
pub fn parse_row(mut body: Bytes) -> Result<Row, UpstreamError> {
    const TORN: UpstreamError = UpstreamError::Protocol("torn DataRow");
    let columns = if body.len() >= 2 { body.get_u16() } else { return Err(TORN) };
    let mut row = Row::with_capacity(usize::from(columns));
    for _ in 0..columns {
        if body.len() < 4 {
            return Err(TORN);
        }
        let length = body.get_i32();
        row.push(match usize::try_from(length) {
            Err(_) => None,
            Ok(length) if length <= body.len() => Some(body.split_to(length)),
            Ok(_) => return Err(TORN),
        });
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_torn_ones_refused() {
        let body = Bytes::from_static(b"\0\x02\0\0\0\x01a\xff\xff\xff\xff");
        assert_eq!(parse_row(body.clone()).unwrap(), [Some(Bytes::from_static(b"a")), None]);
        for end in 0..body.len() {
            assert!(parse_row(body.slice(..end)).is_err(), "cut at {end}");
        }
    }
}
