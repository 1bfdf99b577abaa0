//! What a client opens with: TLS at once, or requests for encryption, then its start-up packet or a CancelRequest.

use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::AsyncReadExt;

use crate::error::Refusal;
use crate::net::Line;
use crate::startup::{StartupError, refuse};
use crate::tls::ALPN;
use crate::wire::startup::{Opening, STARTUP_LENGTH_MAX, opening};

/// A client that has said what it wants.
pub enum Negotiated {
    Startup {
        client: Line,
        packet: Vec<u8>,
        /// Bytes that came behind the packet.
        rest: Vec<u8>,
    },
    Cancel {
        client: Line,
        packet: Vec<u8>,
    },
}

/// What a client has asked for already.
#[derive(Clone, Copy, Default)]
struct Asked {
    ssl: bool,
    gssenc: bool,
}

impl Asked {
    /// Inside TLS no more encryption can be asked for.
    const ALL: Self = Self { ssl: true, gssenc: true };
}

/// Reads up to the start-up packet. Each kind of encryption may be asked for once, in either order, until one is granted
/// (PostgreSQL: ProcessStartupPacket). `tls`: what clients over TCP are offered.
pub async fn negotiate(mut client: Line, tls: Option<Arc<ServerConfig>>) -> Result<Negotiated, StartupError> {
    let mut buffer = Vec::new();
    let mut asked = Asked::default();
    let tls = tls.filter(|_| !client.is_unix());
    if let Some(config) = &tls
        && client.begins_with_tls().await?
    {
        client = client.accept_tls(Arc::clone(config)).await?;
        // Without it some other protocol's client could be talked into speaking to PostgreSQL (PostgreSQL: SSL Session
        // Encryption).
        if client.alpn() != Some(ALPN) {
            return Err(StartupError::Client("direct TLS without the ALPN of PostgreSQL"));
        }
        asked = Asked::ALL;
    }
    loop {
        let found = opening(&buffer);
        let length = found.length();
        match found {
            Opening::Incomplete => {
                // Bounded: once the length word is there, a packet above the cap is malformed.
                if buffer.len() > STARTUP_LENGTH_MAX {
                    return Err(StartupError::Client("start-up packet too long"));
                }
                if client.read_buf(&mut buffer).await? == 0 {
                    return Err(StartupError::Client("closed before the start-up packet"));
                }
            }
            Opening::Malformed => return Err(StartupError::Client("no start-up packet")),
            Opening::SslRequest if asked.ssl => return Err(refuse(client, Refusal::RepeatedSslRequest).await),
            Opening::GssencRequest if asked.gssenc => {
                return Err(refuse(client, Refusal::RepeatedGssencRequest).await);
            }
            // Whoever stands in between may have slipped in what comes behind a request and before its answer: it must
            // not be taken for something said inside TLS.
            Opening::SslRequest if buffer.len() > length => {
                if tls.is_none() {
                    client.send(b"N").await?;
                }
                return Err(refuse(client, Refusal::BytesBehindSslRequest).await);
            }
            Opening::GssencRequest if buffer.len() > length => {
                client.send(b"N").await?;
                return Err(refuse(client, Refusal::BytesBehindGssencRequest).await);
            }
            Opening::SslRequest => {
                buffer.clear();
                asked.ssl = true;
                match &tls {
                    Some(config) => {
                        client.send(b"S").await?;
                        client = client.accept_tls(Arc::clone(config)).await?;
                        asked = Asked::ALL;
                    }
                    None => client.send(b"N").await?,
                }
            }
            Opening::GssencRequest => {
                buffer.clear();
                asked.gssenc = true;
                client.send(b"N").await?;
            }
            Opening::CancelRequest { packet } => {
                let packet = packet.to_vec();
                return Ok(Negotiated::Cancel { client, packet });
            }
            Opening::Startup { packet } => {
                let packet = packet.to_vec();
                let rest = buffer.split_off(length);
                return Ok(Negotiated::Startup { client, packet, rest });
            }
        }
    }
}
