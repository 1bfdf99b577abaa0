//! Proves to upstream who freshet is: trust, cleartext, MD5 and SCRAM-SHA-256 (PostgreSQL: Message Flow, Start-up).
//!
//! Only for freshet's own connections; a client's authentication is relayed, never answered here.

use bytes::{Buf, Bytes};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::message::frontend;

use crate::upstream::UpstreamError;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connection::Connection;

/// Where the exchange stands.
#[derive(Default)]
pub(super) enum Exchange {
    #[default]
    NotAsked,
    Scram(ScramSha256),
    /// The server's own proof was right; AuthenticationOk must follow.
    Proven,
}

impl Exchange {
    /// Answers one Authentication message (`body` without tag and length). True: AuthenticationOk.
    pub(super) fn answer(
        &mut self,
        mut body: Bytes,
        address: &UpstreamAddress,
        connection: &mut Connection,
    ) -> Result<bool, UpstreamError> {
        if body.len() < 4 {
            return Err(UpstreamError::Protocol("short Authentication message"));
        }
        let request = body.get_i32();
        match (request, &mut *self) {
            // An Ok in the middle of SCRAM would skip the server's proof that it knows the password.
            (0, Self::Scram(_)) => return Err(UpstreamError::Authentication("SCRAM was cut short".into())),
            (0, _) => return Ok(true),
            (3, _) => frontend::password_message(password(address)?, connection.outgoing())?,
            (5, _) => {
                let salt: [u8; 4] =
                    body.as_ref().try_into().map_err(|_| UpstreamError::Protocol("MD5 salt of a wrong length"))?;
                let hash = md5_hash(address.user.as_bytes(), password(address)?, salt);
                frontend::password_message(hash.as_bytes(), connection.outgoing())?;
            }
            (10, _) => {
                if !body.split(|byte| *byte == 0).any(|name| name == b"SCRAM-SHA-256") {
                    return Err(UpstreamError::Authentication("upstream offers no SCRAM-SHA-256".into()));
                }
                let scram = ScramSha256::new(password(address)?, ChannelBinding::unsupported());
                frontend::sasl_initial_response("SCRAM-SHA-256", scram.message(), connection.outgoing())?;
                *self = Self::Scram(scram);
            }
            (11, Self::Scram(scram)) => {
                scram.update(&body).map_err(refused)?;
                frontend::sasl_response(scram.message(), connection.outgoing())?;
            }
            (12, Self::Scram(scram)) => {
                scram.finish(&body).map_err(refused)?;
                *self = Self::Proven;
            }
            (11 | 12, _) => return Err(UpstreamError::Protocol("SASL message out of turn")),
            (other, _) => {
                let what = format!("upstream asks for method {other}, which is not spoken here");
                return Err(UpstreamError::Authentication(what));
            }
        }
        Ok(false)
    }
}

fn password(address: &UpstreamAddress) -> Result<&[u8], UpstreamError> {
    let missing = || UpstreamError::Authentication(format!("upstream asks for the password of {}", address.user));
    address.password.as_deref().ok_or_else(missing)
}

fn refused(error: std::io::Error) -> UpstreamError {
    UpstreamError::Authentication(error.to_string())
}
