//! Opens the line to upstream: TCP, TLS over it as the address asks, or a Unix socket.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::net::Line;
use crate::tls::ALPN;
use crate::upstream::address::{Endpoint, UpstreamAddress};
use crate::upstream::security::Attempt;
use crate::wire::startup::write_ssl_request;

/// Opens the line in the first way that the address allows, or gives up after `limit`.
pub async fn open(address: &UpstreamAddress, limit: Duration) -> io::Result<Line> {
    open_by(address, address.attempts().first().copied().unwrap_or(Attempt::Plain), limit).await
}

/// Opens the line in one way, or gives up after `limit`.
pub async fn open_by(address: &UpstreamAddress, attempt: Attempt, limit: Duration) -> io::Result<Line> {
    let opened = timeout(limit, async {
        match attempt {
            Attempt::Plain => dial(address).await,
            Attempt::Tls => match encrypt(address, dial(address).await?).await? {
                line if line.is_encrypted() => Ok(line),
                _ => Err(io::Error::other("upstream does not offer TLS, which its URL asks for")),
            },
            Attempt::TlsIfOffered => match encrypt(address, dial(address).await?).await {
                Ok(line) => Ok(line),
                Err(_) => dial(address).await,
            },
        }
    });
    opened.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn dial(address: &UpstreamAddress) -> io::Result<Line> {
    match &address.endpoint {
        Endpoint::Tcp { host, port } => {
            let stream = match address.host_address {
                Some(at) => TcpStream::connect((at, *port)).await?,
                None => TcpStream::connect((host.as_str(), *port)).await?,
            };
            Line::tcp(stream, &address.keepalive)
        }
        Endpoint::Unix(path) => Ok(Line::Unix(UnixStream::connect(path).await?)),
    }
}

/// Asks for TLS; upstream may say no, then the line is as it was.
async fn encrypt(address: &UpstreamAddress, mut line: Line) -> io::Result<Line> {
    let security = &address.security;
    if !security.is_direct {
        let mut request = Vec::new();
        write_ssl_request(&mut request);
        line.send(&request).await?;
        // One byte and no more: whatever somebody slipped in behind it is read by TLS, which it breaks (CVE-2021-23222).
        let mut answer = [0];
        line.read_exact(&mut answer).await?;
        match answer {
            [b'S'] => {}
            [b'N'] => return Ok(line),
            _ => return Err(io::Error::other("upstream does not understand the request for TLS")),
        }
    }
    let line = line.connect_tls(security.tls(), security.server_name.clone()).await;
    let line = line.map_err(|error| io::Error::new(error.kind(), format!("TLS with upstream: {error}")))?;
    if security.is_direct && line.alpn() != Some(ALPN) {
        return Err(io::Error::other("TLS with upstream: it does not confirm that it speaks PostgreSQL (ALPN)"));
    }
    Ok(line)
}

/// Whether the attempts hold another way than the one that this line took.
pub(super) fn has_other(attempt: Attempt, line: &Line) -> bool {
    match attempt {
        Attempt::Plain => !line.is_unix(),
        Attempt::TlsIfOffered => line.is_encrypted(),
        Attempt::Tls => false,
    }
}
