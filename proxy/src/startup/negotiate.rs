//! What a client opens with: requests for encryption (answered `N` until freshet speaks TLS), then its start-up packet or
//! a CancelRequest.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::error::Refusal;
use crate::net::ClientStream;
use crate::startup::{StartupError, refuse};
use crate::wire::startup::{Opening, STARTUP_LENGTH_MAX, opening};

/// A client that has said what it wants.
pub enum Negotiated {
    Startup {
        client: ClientStream,
        packet: Vec<u8>,
        /// Bytes that came behind the packet.
        rest: Vec<u8>,
    },
    Cancel {
        client: ClientStream,
        packet: Vec<u8>,
    },
}

/// Reads up to the start-up packet. Each kind of encryption may be asked for once, in either order
/// (PostgreSQL: ProcessStartupPacket).
pub async fn negotiate(mut client: ClientStream) -> Result<Negotiated, StartupError> {
    let mut buffer = Vec::new();
    let (mut asked_ssl, mut asked_gssenc) = (false, false);
    loop {
        let found = opening(&buffer);
        let length = found.length();
        let repeated = match found {
            Opening::Incomplete => {
                // Bounded: once the length word is there, a packet above the cap is malformed.
                if buffer.len() > STARTUP_LENGTH_MAX {
                    return Err(StartupError::Client("start-up packet too long"));
                }
                if client.read_buf(&mut buffer).await? == 0 {
                    return Err(StartupError::Client("closed before the start-up packet"));
                }
                continue;
            }
            Opening::Malformed => return Err(StartupError::Client("no start-up packet")),
            Opening::SslRequest => std::mem::replace(&mut asked_ssl, true),
            Opening::GssencRequest => std::mem::replace(&mut asked_gssenc, true),
            Opening::CancelRequest { packet } => {
                let packet = packet.to_vec();
                return Ok(Negotiated::Cancel { client, packet });
            }
            Opening::Startup { packet } => {
                let packet = packet.to_vec();
                let rest = buffer.split_off(length);
                return Ok(Negotiated::Startup { client, packet, rest });
            }
        };
        if repeated {
            return Err(refuse(client, Refusal::RepeatedEncryptionRequest).await);
        }
        buffer.drain(..length);
        client.write_all(b"N").await?;
    }
}
