//! The line to upstream that carries one client's session; its bytes are the session's affair.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::net::Line;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connect;

/// Opens a line for a client and sends its start-up packet; with it come bytes that upstream has sent already.
///
/// Where the address allows another way (`sslmode` allow and prefer), upstream's first word is awaited: an error means
/// that it does not admit the client on this line, and nobody has been asked for a password yet.
pub async fn open(address: &UpstreamAddress, packet: &[u8], limit: Duration) -> io::Result<(Line, Vec<u8>)> {
    let attempts = address.attempts();
    let mut refused = None;
    for (number, attempt) in attempts.iter().enumerate() {
        let mut line = match connect::open_by(address, *attempt, limit).await {
            Ok(line) => line,
            Err(error) => return refused.ok_or(error),
        };
        line.send(packet).await?;
        let mut first = Vec::new();
        if number + 1 < attempts.len() && connect::has_other(*attempt, &line) {
            line.read_buf(&mut first).await?;
        }
        let is_refused = first.first() == Some(&b'E');
        if !is_refused {
            return Ok((line, first));
        }
        refused = Some((line, first));
    }
    refused.ok_or_else(|| io::ErrorKind::Unsupported.into())
}
