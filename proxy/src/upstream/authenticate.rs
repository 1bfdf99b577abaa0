//! Proves to upstream who freshet is: trust, cleartext, MD5 and SCRAM-SHA-256, with channel binding over TLS
//! (PostgreSQL: Message Flow, Start-up; SASL Authentication).
//!
//! Only for freshet's own connections; a client's authentication is relayed, never answered here.

use bytes::{Buf, Bytes};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use postgres_protocol::message::frontend;

use crate::upstream::UpstreamError;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connection::Connection;
use crate::upstream::security::ChannelBinding;

/// Where the exchange stands.
#[derive(Default)]
pub(super) enum Exchange {
    #[default]
    NotAsked,
    Scram {
        scram: ScramSha256,
        is_bound: bool,
    },
    /// The server's own proof was right; AuthenticationOk must follow.
    Proven {
        is_bound: bool,
    },
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
            (0, Self::Scram { .. }) => return Err(UpstreamError::Authentication("SCRAM was cut short".into())),
            (0 | 3 | 5, Self::NotAsked | Self::Proven { is_bound: false })
                if address.security.channel_binding == ChannelBinding::Require =>
            {
                let what = "channel_binding=require, but upstream does without (it needs TLS and SCRAM-SHA-256-PLUS)";
                return Err(UpstreamError::Authentication(what.into()));
            }
            (0, _) => return Ok(true),
            (3, _) => frontend::password_message(password(address)?, connection.outgoing())?,
            (5, _) => {
                let salt: [u8; 4] =
                    body.as_ref().try_into().map_err(|_| UpstreamError::Protocol("MD5 salt of a wrong length"))?;
                let hash = md5_hash(address.user.as_bytes(), password(address)?, salt);
                frontend::password_message(hash.as_bytes(), connection.outgoing())?;
            }
            (10, _) => {
                let digest = connection.end_point_digest();
                let (mechanism, binding) = choose(&body, digest, address.security.channel_binding)?;
                let scram = ScramSha256::new(password(address)?, binding);
                frontend::sasl_initial_response(mechanism, scram.message(), connection.outgoing())?;
                *self = Self::Scram { scram, is_bound: mechanism == SCRAM_SHA_256_PLUS };
            }
            (11, Self::Scram { scram, .. }) => {
                scram.update(&body).map_err(refused)?;
                frontend::sasl_response(scram.message(), connection.outgoing())?;
            }
            (12, Self::Scram { scram, is_bound }) => {
                scram.finish(&body).map_err(refused)?;
                *self = Self::Proven { is_bound: *is_bound };
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

/// The mechanism and what to say of the channel: bound where both sides can, said to be possible where only upstream
/// seems not to be able, so that nobody in between can hide that it is (RFC 5802, section 6).
fn choose(
    mechanisms: &[u8],
    digest: Option<Vec<u8>>,
    wanted: ChannelBinding,
) -> Result<(&'static str, sasl::ChannelBinding), UpstreamError> {
    let offers = |mechanism: &str| mechanisms.split(|byte| *byte == 0).any(|name| name == mechanism.as_bytes());
    let digest = digest.filter(|_| wanted != ChannelBinding::Disable);
    match digest {
        Some(digest) if offers(SCRAM_SHA_256_PLUS) => {
            Ok((SCRAM_SHA_256_PLUS, sasl::ChannelBinding::tls_server_end_point(digest)))
        }
        _ if wanted == ChannelBinding::Require => Err(UpstreamError::Authentication(
            "channel_binding=require, but upstream offers no SCRAM-SHA-256-PLUS on this line".into(),
        )),
        _ if !offers(SCRAM_SHA_256) => Err(UpstreamError::Authentication("upstream offers no SCRAM-SHA-256".into())),
        Some(_) => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unrequested())),
        None => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unsupported())),
    }
}

fn password(address: &UpstreamAddress) -> Result<&[u8], UpstreamError> {
    let missing = || UpstreamError::Authentication(format!("upstream asks for the password of {}", address.user));
    address.password.as_deref().ok_or_else(missing)
}

fn refused(error: std::io::Error) -> UpstreamError {
    UpstreamError::Authentication(error.to_string())
}
