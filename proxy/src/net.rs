//! The lines of both legs: TCP, a Unix socket, or TLS over TCP, behind one stream type.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ServerConfig};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// The first byte of a TLS hello, which begins no packet of PostgreSQL's.
const TLS_HANDSHAKE: u8 = 0x16;

/// An open line.
#[derive(Debug)]
pub enum Line {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Boxed: the state of TLS is large, and most sessions have none.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Line {
    /// What is written leaves at once; a peer that vanished is noticed.
    pub fn tcp(stream: TcpStream, keepalive: &TcpKeepalive) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_keepalive(keepalive)?;
        Ok(Self::Tcp(stream))
    }

    /// The same line, served by the event loop of the present thread.
    pub fn adopt(self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => Ok(Self::Tcp(TcpStream::from_std(stream.into_std()?)?)),
            Self::Unix(stream) => Ok(Self::Unix(UnixStream::from_std(stream.into_std()?)?)),
            Self::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The server's half of a TLS handshake.
    pub async fn accept_tls(self, config: Arc<ServerConfig>) -> io::Result<Self> {
        let stream = TlsAcceptor::from(config).accept(self.into_tcp()?).await?;
        Ok(Self::Tls(Box::new(stream.into())))
    }

    /// The client's half.
    pub async fn connect_tls(self, config: Arc<ClientConfig>, name: ServerName<'static>) -> io::Result<Self> {
        let stream = TlsConnector::from(config).connect(name, self.into_tcp()?).await?;
        Ok(Self::Tls(Box::new(stream.into())))
    }

    fn into_tcp(self) -> io::Result<TcpStream> {
        match self {
            Self::Tcp(stream) => Ok(stream),
            // PostgreSQL speaks no TLS over Unix sockets, and none inside TLS.
            Self::Unix(_) | Self::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether the peer's first byte begins a TLS handshake; the byte stays unread.
    pub async fn begins_with_tls(&self) -> io::Result<bool> {
        match self {
            Self::Tcp(stream) => {
                let mut first = [0];
                Ok(stream.peek(&mut first).await? == 1 && first == [TLS_HANDSHAKE])
            }
            Self::Unix(_) | Self::Tls(_) => Ok(false),
        }
    }

    /// Writes all of it, and out of TLS's buffer as well.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes).await?;
        self.flush().await
    }

    /// On this machine: `trust` and `peer` in pg_hba.conf mean it as much as they mean freshet.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Tls(_) => self.address().is_some_and(|peer| peer.ip().to_canonical().is_loopback()),
            Self::Unix(_) => true,
        }
    }

    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    pub fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Where the peer is, for logs and the operator.
    pub fn peer(&self) -> String {
        match self {
            Self::Tcp(_) | Self::Tls(_) => {
                self.address().map_or_else(|| "unknown".to_string(), |peer| peer.to_string())
            }
            Self::Unix(_) => "local".to_string(),
        }
    }

    /// The protocol that both ends agreed on by ALPN.
    pub fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }

    /// The peer's own certificate.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Tls(stream) => stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok(),
            Self::Tls(stream) => stream.get_ref().0.peer_addr().ok(),
            Self::Unix(_) => None,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => poll_read_tls(stream, cx, buf),
        }
    }
}

/// TLS yields one record at a time: after a large one there are more, and one write for all of them is enough.
fn poll_read_tls(
    stream: &mut TlsStream<TcpStream>,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    let start = buf.filled().len();
    loop {
        let before = buf.filled().len();
        match Pin::new(&mut *stream).poll_read(cx, buf) {
            Poll::Ready(Ok(())) if buf.filled().len() - before >= LARGE_RECORD && buf.remaining() > 0 => {}
            Poll::Ready(Ok(())) => return Poll::Ready(Ok(())),
            // Closed without TLS's own good-bye, as a process that was killed does it. PostgreSQL's messages carry
            // their length and its sessions their own good-bye: nothing can be cut off unseen.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(())),
            // The next call says so again.
            Poll::Ready(Err(_)) | Poll::Pending if buf.filled().len() > start => return Poll::Ready(Ok(())),
            ended => return ended,
        }
    }
}

/// A short record is a message that somebody waits for: looking for another would cost a call in vain.
const LARGE_RECORD: usize = 4 * 1024;

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing to do but in TLS, which may hold what the socket did not take.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_tcp_line_sends_at_once_and_watches_its_peer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(77));
        let line = Line::tcp(stream, &keepalive).unwrap();
        let Line::Tcp(stream) = &line else { panic!("TCP") };
        let socket = SockRef::from(stream);
        assert!(stream.nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(77));
        assert!(line.is_local() && !line.is_encrypted() && !line.is_unix());
        assert!(!line.peer().is_empty());
    }

    #[test]
    fn a_session_without_tls_pays_no_room_for_it() {
        assert!(size_of::<Line>() <= size_of::<TcpStream>() + 8);
    }
}
