//! Passes a client's CancelRequest on. Keys are upstream's own, so the packet goes as it came, whatever its length.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::upstream::address::UpstreamAddress;
use crate::upstream::connect;

/// Sends the packet on a line of its own and waits until upstream closes it, which it does once the signal is sent
/// (PostgreSQL: Canceling Requests in Progress); libpq waits for that close, so it must not come earlier.
pub async fn send(address: &UpstreamAddress, packet: &[u8], limit: Duration) -> io::Result<()> {
    let mut stream = connect::open(address, limit).await?;
    let sent = timeout(limit, async {
        stream.send(packet).await?;
        let mut rest = [0; 16];
        while stream.read(&mut rest).await? > 0 {}
        Ok(())
    });
    sent.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
