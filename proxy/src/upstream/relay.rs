//! The line to upstream that carries one client's session; its bytes are the session's affair.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::net::Line;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connect;
use crate::wire::frame::Frames;

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
        if let Err(error) = line.send(packet).await {
            return refused.ok_or(error);
        }
        let mut said = Vec::new();
        if number + 1 == attempts.len() || !connect::has_other(*attempt, &line) {
            return Ok((line, said));
        }
        let is_refused = timeout(limit, async {
            loop {
                match first_word(&said) {
                    Some(tag) => break Ok::<_, io::Error>(tag == b'E'),
                    None if said.len() > SAID_MAX || line.read_buf(&mut said).await? == 0 => break Ok(false),
                    None => {}
                }
            }
        });
        // One that accepts and says nothing is as good as not there.
        if !is_refused.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))? {
            return Ok((line, said));
        }
        refused = Some((line, said));
    }
    refused.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// What may come before upstream's first word is short.
const SAID_MAX: usize = 64 * 1024;

/// The tag of the first message that is a decision: versions are negotiated and notices given before it.
fn first_word(said: &[u8]) -> Option<u8> {
    let mut frames = Frames::new(said);
    let decides = |tag: u8| !matches!(tag, b'v' | b'N');
    let whole = frames.by_ref().map(|frame| frame.tag).find(|tag| decides(*tag));
    whole.or_else(|| frames.rest().first().copied().filter(|tag| decides(*tag)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::frame::write_frame;

    #[test]
    fn the_first_word_is_behind_notices_and_negotiation() {
        let mut said = Vec::new();
        assert_eq!(first_word(&said), None);
        write_frame(&mut said, b'v', |body| body.extend([0; 8]));
        for end in 0..=said.len() {
            assert_eq!(first_word(&said[..end]), None, "{end}");
        }
        write_frame(&mut said, b'N', |body| body.push(0));
        assert_eq!(first_word(&said), None);
        said.push(b'E');
        assert_eq!(first_word(&said), Some(b'E'));
        assert_eq!(first_word(b"R"), Some(b'R'));
    }
}
