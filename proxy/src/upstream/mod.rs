//! Connections to the real PostgreSQL: those that carry a client's session (relay, cancel), and freshet's own.
//!
//! [`address`] says where (`url`, what is wrong with it), [`security`] how the line is protected, [`connect`] opens it, [`connection`] is freshet's own conversation on it
//! ([`authenticate`] proves who it is), [`service`] the small pool for occasional questions to the catalog.

pub mod address;
pub mod authenticate;
pub mod cancel;
pub mod connect;
pub mod connection;
pub mod relay;
pub mod security;
pub mod service;
mod url;

use std::io;

/// What went wrong on a connection to upstream.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The line: refused, reset, closed.
    #[error("connection to upstream: {0}")]
    Io(#[from] io::Error),
    /// Bytes that are no message of the protocol, or a message out of turn.
    #[error("upstream sent what the protocol does not allow: {0}")]
    Protocol(&'static str),
    /// Upstream asks for a credential that the address does not have, or by a method not spoken here.
    #[error("authentication to upstream: {0}")]
    Authentication(String),
    /// An ErrorResponse.
    #[error("{0}")]
    Server(ServerError),
    /// An address that cannot be used.
    #[error("upstream address: {0}")]
    Address(String),
    /// No answer in time.
    #[error("upstream did not answer in time ({0})")]
    Timeout(&'static str),
}

impl UpstreamError {
    /// The SQLSTATE, where upstream gave one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Server(error) => Some(&error.code),
            Self::Io(_) | Self::Protocol(_) | Self::Authentication(_) | Self::Address(_) | Self::Timeout(_) => None,
        }
    }

    /// What is told where upstream had `refused` the log-in on another kind of line before: its own words are not lost.
    fn after(self, refused: Option<ServerError>) -> Self {
        let Some(first) = refused else { return self };
        match self {
            // There was no other kind of line.
            Self::Io(error) if error.kind() == io::ErrorKind::Unsupported => Self::Server(first),
            Self::Server(last) if last.message == first.message => Self::Server(first),
            Self::Server(last) => {
                let message = format!("{}; before, on another kind of line: {}", last.message, first.message);
                Self::Server(ServerError { message, ..last })
            }
            last => {
                let message = format!("{}; then, on another kind of line: {last}", first.message);
                Self::Server(ServerError { message, ..first })
            }
        }
    }

    /// Whether the connection can still be used: an ErrorResponse below FATAL.
    pub fn is_statement_error(&self) -> bool {
        matches!(self, Self::Server(error) if error.severity == "ERROR")
    }
}

/// The fields of an ErrorResponse that are of use (PostgreSQL: Error and Notice Message Fields).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// Not translated: ERROR, FATAL or PANIC.
    pub severity: String,
    pub code: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
}

impl ServerError {
    /// Reads the body of an ErrorResponse; unknown fields are skipped, a torn body gives what was read.
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { break };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'V' => error.severity = text,
                b'C' => error.code = text,
                b'M' => error.message = text,
                b'D' => error.detail = text,
                b'H' => error.hint = text,
                _ => {}
            }
        }
        error
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} (SQLSTATE {})", self.severity, self.message, self.code)?;
        for (name, text) in [("detail", &self.detail), ("hint", &self.hint)] {
            if !text.is_empty() {
                write!(f, "; {name}: {text}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_response_is_read_field_by_field() {
        let error = ServerError::parse(b"SFEHLER\0VERROR\0C42P01\0Mno such table\0Hlook again\0\0");
        assert_eq!((error.severity.as_str(), error.code.as_str()), ("ERROR", "42P01"));
        assert_eq!(error.to_string(), "ERROR: no such table (SQLSTATE 42P01); hint: look again");
        assert_eq!(ServerError::parse(b""), ServerError::default());
        assert!(UpstreamError::Server(error).is_statement_error());
    }
}
