//! Accepts the endpoints' clients: so many at a time, and each only as long as it keeps going: whoever supervises the process
//! is answered soon, whatever others do. The HTTP of axum::serve has no limits of its own.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections at a time; one more waits at the door.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// While all places are taken, whoever has kept freshet waiting for longer than this gives up its own.
const CROWDED_WAIT_MAX: Duration = Duration::from_secs(1);

/// What freshet waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first request's first bytes.
    Arrival,
    /// The rest of a request's head. The endpoints read nothing behind it and answer at once.
    Head,
    /// That the client takes the reply.
    Reply,
    /// Another request.
    Silence,
}

impl Stage {
    fn wait_max(self) -> Duration {
        Duration::from_secs(match self {
            Self::Arrival | Self::Head => 5,
            Self::Reply => 30,
            // Whoever asks once a minute may keep its connection.
            Self::Silence => 90,
        })
    }
}

pub(super) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Door {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for Door {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        (Visit::new(stream, place), peer)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that has a place.
pub(super) struct Visit {
    stream: TcpStream,
    stage: Stage,
    since: Instant,
    /// Until it is looked again whether that takes too long.
    watch: Pin<Box<Sleep>>,
    place: Option<OwnedSemaphorePermit>,
}

impl Visit {
    fn new(stream: TcpStream, place: Option<OwnedSemaphorePermit>) -> Self {
        let watch = Box::pin(tokio::time::sleep(CROWDED_WAIT_MAX));
        Self { stream, stage: Stage::Arrival, since: Instant::now(), watch, place }
    }

    fn enter(&mut self, stage: Stage) {
        if self.stage != stage {
            (self.stage, self.since) = (stage, Instant::now());
            self.watch.as_mut().reset(self.since + CROWDED_WAIT_MAX);
        }
    }

    /// Ready once the client has kept its place for too long.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            ready!(self.watch.as_mut().poll(cx));
            let is_crowded = self.place.as_ref().is_some_and(|place| place.semaphore().available_permits() == 0);
            if is_crowded || self.since.elapsed() >= self.stage.wait_max() {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.watch.as_mut().reset(Instant::now() + CROWDED_WAIT_MAX);
        }
    }

    fn after_write(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // From the attempt on: a client that takes nothing of it counts as well.
        self.enter(Stage::Reply);
        match written {
            Poll::Ready(written) => Poll::Ready(written),
            Poll::Pending => self.poll_overdue(cx).map(Err),
        }
    }
}

impl AsyncRead for Visit {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let visit = self.get_mut();
        match Pin::new(&mut visit.stream).poll_read(cx, buf) {
            Poll::Ready(read) => {
                if matches!(visit.stage, Stage::Arrival | Stage::Silence) {
                    visit.enter(Stage::Head);
                }
                Poll::Ready(read)
            }
            Poll::Pending => visit.poll_overdue(cx).map(Err),
        }
    }
}

impl AsyncWrite for Visit {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let visit = self.get_mut();
        let written = Pin::new(&mut visit.stream).poll_write(cx, bytes);
        visit.after_write(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let visit = self.get_mut();
        let written = Pin::new(&mut visit.stream).poll_write_vectored(cx, slices);
        visit.after_write(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Comes when all that there is to say has been written.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let visit = self.get_mut();
        let flushed = ready!(Pin::new(&mut visit.stream).poll_flush(cx));
        if visit.stage == Stage::Reply {
            visit.enter(Stage::Silence);
        }
        Poll::Ready(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
