//! Opens the line to upstream: TCP, TLS over it as the address asks, or a Unix socket.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UnixStream, lookup_host};
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
            Attempt::Plain => dial(address, limit).await,
            Attempt::Tls => match encrypt(address, dial(address, limit).await?).await? {
                line if line.is_encrypted() => Ok(line),
                _ => Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "upstream does not offer TLS, which its URL asks for",
                )),
            },
            Attempt::TlsIfOffered => match encrypt(address, dial(address, limit).await?).await {
                Ok(line) => Ok(line),
                Err(_) => dial(address, limit).await,
            },
        }
    });
    opened.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// An error says where.
async fn dial(address: &UpstreamAddress, limit: Duration) -> io::Result<Line> {
    let dialed = dial_endpoint(address, limit).await;
    dialed.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", address.endpoint)))
}

async fn dial_endpoint(address: &UpstreamAddress, limit: Duration) -> io::Result<Line> {
    match &address.endpoint {
        Endpoint::Tcp { host, port } => {
            let stream = match address.host_address {
                Some(at) => TcpStream::connect((at, *port)).await?,
                None => {
                    let found = lookup_host((host.as_str(), *port)).await?.collect();
                    connect_to_one(found, limit).await?
                }
            };
            Line::tcp(stream, &address.keepalive)
        }
        Endpoint::Unix(path) => Ok(Line::Unix(UnixStream::connect(path).await?)),
    }
}

/// The first of a name's addresses that answers. Each gets its share of the time, so that one that swallows everything leaves
/// enough for the others.
async fn connect_to_one(addresses: Vec<SocketAddr>, limit: Duration) -> io::Result<TcpStream> {
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let share = (limit / count).max(SHARE_MIN);
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host's name has no address");
    for address in addresses {
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failed)
}

/// Less is not enough for a line around the world that has lost a packet.
const SHARE_MIN: Duration = Duration::from_secs(1);

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

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
        // Whoever comes behind a full queue is not answered at all.
        let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        full.listen(0).unwrap();
        let silent = full.local_addr().unwrap().as_socket().unwrap();
        let mut queue = Vec::new();
        while let Ok(Ok(stream)) = timeout(Duration::from_millis(200), TcpStream::connect(silent)).await {
            queue.push(stream);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let answers = listener.local_addr().unwrap();
        let limit = Duration::from_secs(2);
        let connected = timeout(limit, connect_to_one(vec![silent, answers], limit)).await;
        assert_eq!(connected.unwrap().unwrap().peer_addr().unwrap(), answers);
        let none = connect_to_one(vec![silent], SHARE_MIN).await;
        assert_eq!(none.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(connect_to_one(Vec::new(), limit).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
