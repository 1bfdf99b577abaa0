//! The start-up phase: packets without a type byte, requests for encryption, cancel requests, authentication.

use super::frame::{Reader, write_c_string, write_counted, write_frame};

/// PostgreSQL: MAX_STARTUP_PACKET_LENGTH (pqcomm.h) and the length word, which it does not count.
pub const STARTUP_LENGTH_MAX: usize = 10_004;

/// The request code of CancelRequest.
pub const CANCEL_REQUEST: u32 = 1234 << 16 | 5678;
const SSL_REQUEST: u32 = 1234 << 16 | 5679;
const GSSENC_REQUEST: u32 = 1234 << 16 | 5680;

/// What a client may send first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening<'a> {
    /// Not all of it is there.
    Incomplete,
    /// No packet of the protocol (also: a TLS hello, first byte 0x16).
    Malformed,
    SslRequest,
    GssencRequest,
    /// The packet as it came: it is forwarded unread, whatever the length of its key.
    CancelRequest {
        packet: &'a [u8],
    },
    Startup {
        packet: &'a [u8],
    },
}

impl Opening<'_> {
    /// Bytes the packet takes.
    pub fn length(&self) -> usize {
        match self {
            Self::Incomplete | Self::Malformed => 0,
            Self::SslRequest | Self::GssencRequest => 8,
            Self::CancelRequest { packet } | Self::Startup { packet } => packet.len(),
        }
    }
}

/// Reads the packet at the head of `bytes`.
pub fn opening(bytes: &[u8]) -> Opening<'_> {
    let mut reader = Reader::new(bytes);
    let Some(length) = reader.u32() else {
        return Opening::Incomplete;
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if !(8..=STARTUP_LENGTH_MAX).contains(&length) {
        return Opening::Malformed;
    }
    let Some(packet) = bytes.get(..length) else {
        return Opening::Incomplete;
    };
    match reader.u32() {
        Some(SSL_REQUEST) if length == 8 => Opening::SslRequest,
        Some(GSSENC_REQUEST) if length == 8 => Opening::GssencRequest,
        Some(CANCEL_REQUEST) => Opening::CancelRequest { packet },
        // Any protocol version: upstream negotiates (NegotiateProtocolVersion).
        Some(_) => Opening::Startup { packet },
        None => Opening::Malformed,
    }
}

/// The `name value` pairs of a start-up packet, in order.
pub fn parameters(packet: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut reader = Reader::new(packet.get(8..).unwrap_or_default());
    std::iter::from_fn(move || {
        let name = reader.c_string().filter(|name| !name.is_empty())?;
        Some((name, reader.c_string()?))
    })
}

/// A protocol 3.0 start-up packet.
pub fn write_startup(out: &mut Vec<u8>, parameters: &[(&str, &str)]) {
    write_counted(out, |out| {
        out.extend_from_slice(&(3u32 << 16).to_be_bytes());
        for (name, value) in parameters {
            write_c_string(out, name.as_bytes());
            write_c_string(out, value.as_bytes());
        }
        out.push(0);
    });
}

pub fn write_ssl_request(out: &mut Vec<u8>) {
    out.extend_from_slice(&8u32.to_be_bytes());
    out.extend_from_slice(&SSL_REQUEST.to_be_bytes());
}

/// What an Authentication message (`R`) asks of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    Ok,
    /// AuthenticationSASL: the names of the mechanisms, each NUL-terminated, and a final NUL.
    Sasl {
        mechanisms: &'a [u8],
    },
    /// AuthenticationSASLFinal: nothing is asked; it follows a challenge.
    SaslFinal,
    /// Any other: a challenge (cleartext, md5, GSS, SSPI, SASL data, or one that is not known here).
    Challenge(u32),
}

pub fn authentication(body: &[u8]) -> Option<Authentication<'_>> {
    let mut reader = Reader::new(body);
    Some(match reader.u32()? {
        0 => Authentication::Ok,
        10 => Authentication::Sasl { mechanisms: reader.rest() },
        12 => Authentication::SaslFinal,
        code => Authentication::Challenge(code),
    })
}

/// The AuthenticationSASL frame with one mechanism left out.
pub fn write_sasl_without(out: &mut Vec<u8>, mechanisms: &[u8], without: &[u8]) {
    write_frame(out, b'R', |out| {
        out.extend_from_slice(&10u32.to_be_bytes());
        let mut reader = Reader::new(mechanisms);
        while let Some(name) = reader.c_string().filter(|name| !name.is_empty()) {
            if name != without {
                write_c_string(out, name);
            }
        }
        out.push(0);
    });
}

/// ParameterStatus (`S` from upstream): name and value.
pub fn parameter_status(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(body);
    Some((reader.c_string()?, reader.c_string()?))
}
