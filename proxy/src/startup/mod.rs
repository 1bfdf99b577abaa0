//! From an accepted connection to a logged-in session: [`negotiate`] reads what the client opens with,
//! [`authenticate`] relays the log-in between client and upstream. Side exit: a CancelRequest, which [`cancel`] brings to
//! the session it means and which is then relayed. [`binding`] tells the operator whether SCRAM works.
//!
//! The start-up packet is forwarded byte for byte and upstream decides everything; freshet only looks on, removes what
//! cannot work (SCRAM-SHA-256-PLUS between a plain and an encrypted leg) and refuses what would be a hole (a log-in
//! without a challenge, for a client that is not local).

pub mod authenticate;
pub mod binding;
pub mod cancel;
pub mod negotiate;
pub mod own;

use std::io;

use tokio::io::AsyncWriteExt;

use crate::error::Refusal;
use crate::net::Line;
use crate::wire::error::write_error;

/// How a start-up ended without a session.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The client went away, or sent what is no start-up packet; PostgreSQL closes without a word, too.
    #[error("client: {0}")]
    Client(&'static str),
    #[error("line: {0}")]
    Io(#[from] io::Error),
    /// The client was told.
    #[error("{}", .0.fields().message)]
    Refused(Refusal),
    /// Upstream ended it; the client has its message.
    #[error("upstream refused the log-in")]
    UpstreamEnded,
    #[error("log-in took too long")]
    Timeout,
    /// Nothing has begun that a drain would wait for.
    #[error("freshet is shutting down")]
    ShuttingDown,
}

/// Tells the client and closes; errors on the way do not matter any more.
pub async fn refuse(mut client: Line, refusal: Refusal) -> StartupError {
    let mut out = Vec::new();
    write_error(&mut out, &refusal.fields());
    let _ = client.send(&out).await;
    let _ = client.shutdown().await;
    StartupError::Refused(refusal)
}
