//! Every error text that freshet itself sends to a client, with its SQLSTATE, in one table.
//!
//! Shaped as PostgreSQL's own, so that drivers react as they do to PostgreSQL (PostgreSQL: Error Codes). Everything
//! else a client sees comes from upstream.

use crate::wire::error::ErrorFields;

/// Why freshet ends a session or refuses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Upstream cannot be reached.
    UpstreamUnreachable,
    /// The line to upstream broke, or carried bytes that are not the protocol.
    UpstreamLost,
    SessionsMax,
    ShuttingDown,
    /// Upstream lets freshet's address in without a password, and the client is elsewhere.
    PasswordlessUpstream,
    /// A request for encryption where none can be asked for any more.
    RepeatedSslRequest,
    RepeatedGssencRequest,
    /// Bytes behind a request for encryption, sent before its answer (CVE-2021-23214).
    BytesBehindSslRequest,
    BytesBehindGssencRequest,
    /// In the clear over TCP, where the settings require TLS.
    TlsRequired,
}

/// PostgreSQL's words (ProcessStartupPacket).
const SLIPPED_IN: &str =
    "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.";

impl Refusal {
    pub fn fields(self) -> ErrorFields<'static> {
        match self {
            Self::UpstreamUnreachable => ErrorFields {
                detail: Some("freshet passes sessions on to upstream, which refused or did not answer the connection."),
                ..ErrorFields::fatal("08001", "could not connect to upstream")
            },
            Self::UpstreamLost => ErrorFields {
                detail: Some("The connection to upstream was lost."),
                ..ErrorFields::fatal("57P01", "terminating connection because upstream closed it")
            },
            Self::SessionsMax => ErrorFields::fatal("53300", "sorry, too many clients already"),
            Self::ShuttingDown => ErrorFields::fatal("57P01", "terminating connection due to administrator command"),
            Self::PasswordlessUpstream => ErrorFields {
                detail: Some("Upstream accepts freshet's address without a password, and this client is not local."),
                hint: Some(
                    "Let pg_hba.conf ask freshet's address for a password, or set [listen] allow_passwordless_upstream.",
                ),
                ..ErrorFields::fatal("28000", "upstream asked for no password")
            },
            Self::RepeatedSslRequest => {
                ErrorFields::fatal("0A000", "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.0")
            }
            Self::RepeatedGssencRequest => {
                ErrorFields::fatal("0A000", "unsupported frontend protocol 1234.5680: server supports 3.0 to 3.0")
            }
            Self::BytesBehindSslRequest => ErrorFields {
                detail: Some(SLIPPED_IN),
                ..ErrorFields::fatal("08P01", "received unencrypted data after SSL request")
            },
            Self::BytesBehindGssencRequest => ErrorFields {
                detail: Some(SLIPPED_IN),
                ..ErrorFields::fatal("08P01", "received unencrypted data after GSSAPI encryption request")
            },
            Self::TlsRequired => ErrorFields {
                hint: Some("Connect with sslmode=require."),
                ..ErrorFields::fatal("28000", "this server admits clients with TLS only")
            },
        }
    }

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamLost => "upstream_lost",
            Self::SessionsMax => "sessions_max",
            Self::ShuttingDown => "shutting_down",
            Self::PasswordlessUpstream => "passwordless_upstream",
            Self::RepeatedSslRequest | Self::RepeatedGssencRequest => "repeated_encryption_request",
            Self::BytesBehindSslRequest | Self::BytesBehindGssencRequest => "bytes_behind_encryption_request",
            Self::TlsRequired => "tls_required",
        }
    }
}
