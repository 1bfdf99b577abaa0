//! Accepts the endpoints' clients: so many at a time, and each only as long as it has something to say.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections at a time; one more waits in the socket's queue.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// Until the first bytes.
const FIRST_SILENCE_MAX: Duration = Duration::from_secs(5);
/// Between two reads. Whoever asks once a minute may keep its connection.
const SILENCE_MAX: Duration = Duration::from_secs(90);

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
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        (Visit { stream, silence: Box::pin(tokio::time::sleep(FIRST_SILENCE_MAX)), _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that has a place.
pub(super) struct Visit {
    stream: TcpStream,
    silence: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Visit {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let visit = self.get_mut();
        match Pin::new(&mut visit.stream).poll_read(cx, buf) {
            Poll::Ready(read) => {
                visit.silence.as_mut().reset(Instant::now() + SILENCE_MAX);
                Poll::Ready(read)
            }
            Poll::Pending => visit.silence.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl AsyncWrite for Visit {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
