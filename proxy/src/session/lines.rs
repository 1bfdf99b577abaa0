//! Moves bytes between two sockets and a [`Machine`]: one read and one write per side and burst, both directions
//! independent, neither side read while the other's queue is over its limit.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::net::Line;
use crate::session::buffer::OutBuffer;
use crate::session::machine::Machine;

/// Read per call.
const READ_BYTES: usize = 64 * 1024;
/// Pieces per write.
const SLICES_MAX: usize = 16;

thread_local! {
    /// One for all sessions of a thread: what is read is handed to the machine at once, so that an idle session owns no
    /// read buffer.
    static SPACE: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// What a turn brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Bytes came in, from either side.
    Received,
    /// Nothing will come any more: both sides are to be closed.
    Over,
    /// Upstream sent bytes that are no frames.
    Broken,
}

/// The two sockets of a session.
pub struct Lines {
    pub client: Line,
    pub upstream: Line,
    /// Bytes that may wait for one side before the other is no longer read.
    pub buffer_max: usize,
    pub bytes_from_client: u64,
    pub bytes_from_upstream: u64,
    client_is_closed: bool,
    upstream_is_closed: bool,
    /// The end of the client's stream has been passed on.
    end_is_sent: bool,
    /// Nothing can be written to upstream any more. What it has said before it went is still the client's: an administrator's FATAL,
    /// for one, while a COPY was under way.
    upstream_is_deaf: bool,
}

impl Lines {
    pub fn new(client: Line, upstream: Line, buffer_max: usize) -> Self {
        Self {
            client,
            upstream,
            buffer_max,
            bytes_from_client: 0,
            bytes_from_upstream: 0,
            client_is_closed: false,
            upstream_is_closed: false,
            end_is_sent: false,
            upstream_is_deaf: false,
        }
    }

    /// Whether [`Self::adopt`] can be.
    pub fn can_move(&self) -> bool {
        !self.client.is_encrypted() && !self.upstream.is_encrypted()
    }

    /// The same lines, served by the event loop of the present thread.
    pub fn adopt(self) -> io::Result<Self> {
        Ok(Self { client: self.client.adopt()?, upstream: self.upstream.adopt()?, ..self })
    }

    /// Writes what is queued, then reads; returns when something was read. Cancel safe: all progress is in the machine.
    pub async fn turn(&mut self, machine: &mut Machine) -> io::Result<Turn> {
        std::future::poll_fn(|cx| self.poll_turn(cx, machine)).await
    }

    /// Whether so much is queued for the client that no more is to be made.
    pub fn is_full(&self, machine: &Machine) -> bool {
        machine.to_client.len() >= self.buffer_max
    }

    /// Writes to the client until it is not. Cancel safe.
    pub async fn relieve(&mut self, machine: &mut Machine) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let written = poll_write(cx, &mut self.client, &mut machine.to_client)?;
            if self.is_full(machine) { written.map(Ok) } else { Poll::Ready(Ok(())) }
        })
        .await
    }

    /// Writes everything that is queued for the client, and closes its line.
    pub async fn finish(&mut self, machine: &mut Machine) {
        let _ = std::future::poll_fn(|cx| poll_write(cx, &mut self.client, &mut machine.to_client)).await;
        let _ = std::future::poll_fn(|cx| Pin::new(&mut self.client).poll_shutdown(cx)).await;
    }

    /// Reads what the client still sends, to its end.
    pub async fn ignore_client(&mut self) {
        let mut space = [0; 1024];
        while self.client.read(&mut space).await.is_ok_and(|read| read > 0) {}
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>, machine: &mut Machine) -> Poll<io::Result<Turn>> {
        // A client that cannot be written to any more ends the session; pending writes are no reason not to read.
        let client_write = poll_write(cx, &mut self.client, &mut machine.to_client)?;
        let upstream_write = poll_write(cx, &mut self.upstream, &mut machine.to_upstream);
        self.upstream_is_deaf |= matches!(upstream_write, Poll::Ready(Err(_)));
        if self.upstream_is_deaf {
            machine.to_upstream.take();
        }
        if upstream_write.is_ready()
            && !self.upstream_is_deaf
            && self.client_is_closed
            && machine.held_bytes() == 0
            && !self.end_is_sent
            && Pin::new(&mut self.upstream).poll_shutdown(cx)?.is_ready()
        {
            self.end_is_sent = true;
        }
        if self.upstream_is_closed {
            return client_write.map(|()| Ok(Turn::Over));
        }
        SPACE.with_borrow_mut(|space| self.poll_read(cx, machine, space))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, machine: &mut Machine, space: &mut [u8]) -> Poll<io::Result<Turn>> {
        let mut turn = Poll::Pending;
        // Who does not read its replies is not read from either (PostgreSQL blocks in send); else answers made here would
        // pile up. Nor is who is too far ahead of upstream.
        let has_room = machine.to_upstream.len() < self.buffer_max
            && machine.to_client.len() < self.buffer_max
            && machine.held_bytes() < self.held_max(machine)
            && !machine.owes_too_much();
        if !self.client_is_closed && has_room {
            let mut buffer = ReadBuf::new(space);
            if Pin::new(&mut self.client).poll_read(cx, &mut buffer)?.is_ready() {
                turn = Poll::Ready(Ok(Turn::Received));
                self.bytes_from_client += buffer.filled().len() as u64;
                match buffer.filled() {
                    [] => {
                        self.client_is_closed = true;
                        machine.client_closed();
                    }
                    bytes => machine.receive_client(bytes),
                }
            }
        }
        if machine.to_client.len() < self.buffer_max {
            let mut buffer = ReadBuf::new(space);
            let is_read = match Pin::new(&mut self.upstream).poll_read(cx, &mut buffer) {
                // As good as its end.
                Poll::Ready(Err(_)) if self.upstream_is_deaf => true,
                read => read?.is_ready(),
            };
            if is_read {
                turn = Poll::Ready(Ok(Turn::Received));
                self.bytes_from_upstream += buffer.filled().len() as u64;
                match buffer.filled() {
                    [] => self.upstream_is_closed = true,
                    bytes if !machine.receive_upstream(bytes) => return Poll::Ready(Ok(Turn::Broken)),
                    _ => {}
                }
            }
        }
        turn
    }

    /// A unit is held whole, so the limit is at least that of one.
    fn held_max(&self, machine: &Machine) -> usize {
        self.buffer_max.max(machine.held_bytes_max() + READ_BYTES)
    }
}

/// Ready when the queue is empty, and TLS has passed on what it took.
fn poll_write(cx: &mut Context<'_>, line: &mut Line, queue: &mut OutBuffer) -> Poll<io::Result<()>> {
    while !queue.is_empty() {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let filled = queue.slices(&mut slices);
        let written = match &slices[..filled] {
            [one] => ready!(Pin::new(&mut *line).poll_write(cx, one))?,
            several => ready!(Pin::new(&mut *line).poll_write_vectored(cx, several))?,
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        queue.consume(written);
    }
    Pin::new(line).poll_flush(cx)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use freshet_config::FreshnessMode;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::session::machine::MachineLimits;
    use crate::session::state::{Login, SessionState};
    use crate::wire::error::{ErrorFields, field, write_error};
    use crate::wire::frame::Frames;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound"));
        let (near, far) = tokio::join!(near, listener.accept());
        (near.expect("connects"), far.expect("accepts").0)
    }

    fn machine() -> Machine {
        let limits = MachineLimits {
            statement_bytes_max: 4096,
            group_bytes_max: 4096,
            prepared_statements_max: 100,
            answers_locally: false,
            tells_keys: false,
            schema: "freshet",
        };
        Machine::new(SessionState::new(Login::default(), FreshnessMode::Exact), limits, None)
    }

    /// PostgreSQL ends with data unread, a COPY's for one: writing to it fails before its last message is read.
    #[tokio::test]
    async fn the_last_words_of_an_upstream_that_cannot_be_written_to_are_passed_on() {
        let ((client, mut peer), (upstream, server)) = (pair().await, pair().await);
        let mut machine = machine();
        let mut lines = Lines::new(Line::Tcp(client), Line::Tcp(upstream), READ_BYTES);
        // Its unread byte makes the end a reset.
        lines.upstream.write_all(b"d").await.expect("written");
        server.readable().await.expect("there");
        let mut fatal = Vec::new();
        write_error(&mut fatal, &ErrorFields::fatal("57P01", "terminating connection due to administrator command"));
        let mut server = server.into_std().expect("a socket");
        server.write_all(&fatal).expect("there is room");
        drop(server);
        machine.to_upstream.write(|out| out.extend_from_slice(b"more"));
        while lines.turn(&mut machine).await.expect("no error before all is read") != Turn::Over {}
        assert!(lines.upstream_is_deaf, "or the test shows nothing");
        lines.finish(&mut machine).await;
        let mut received = Vec::new();
        peer.read_to_end(&mut received).await.expect("read");
        let codes = Frames::new(&received).filter_map(|frame| field(frame.body, b'C').map(<[u8]>::to_vec));
        assert_eq!(codes.collect::<Vec<_>>(), [b"57P01"]);
    }
}
