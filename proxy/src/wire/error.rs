//! ErrorResponse and NoticeResponse: lists of coded fields (PostgreSQL: Error and Notice Message Fields).

use super::frame::{Reader, write_c_string, write_frame};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Fatal,
}

/// An error as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorFields<'a> {
    pub severity: Severity,
    pub sqlstate: &'a str,
    pub message: &'a str,
    pub detail: Option<&'a str>,
    pub hint: Option<&'a str>,
}

impl<'a> ErrorFields<'a> {
    pub const fn error(sqlstate: &'a str, message: &'a str) -> Self {
        Self { severity: Severity::Error, sqlstate, message, detail: None, hint: None }
    }

    pub const fn fatal(sqlstate: &'a str, message: &'a str) -> Self {
        Self { severity: Severity::Fatal, sqlstate, message, detail: None, hint: None }
    }
}

/// What PostgreSQL says to a statement in a failed block.
pub const FAILED_TRANSACTION: ErrorFields<'static> =
    ErrorFields::error("25P02", "current transaction is aborted, commands ignored until end of transaction block");

/// ErrorResponse.
pub fn write_error(out: &mut Vec<u8>, fields: &ErrorFields<'_>) {
    let severity = match fields.severity {
        Severity::Error => "ERROR",
        Severity::Fatal => "FATAL",
    };
    let coded = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(fields.sqlstate)),
        (b'M', Some(fields.message)),
        (b'D', fields.detail),
        (b'H', fields.hint),
    ];
    write_frame(out, b'E', |out| {
        for (code, text) in coded {
            if let Some(text) = text {
                out.push(code);
                write_c_string(out, text.as_bytes());
            }
        }
        out.push(0);
    });
}

/// NoticeResponse of a warning.
pub fn write_warning(out: &mut Vec<u8>, sqlstate: &str, message: &str) {
    write_frame(out, b'N', |out| {
        for (code, text) in [(b'S', "WARNING"), (b'V', "WARNING"), (b'C', sqlstate), (b'M', message)] {
            out.push(code);
            write_c_string(out, text.as_bytes());
        }
        out.push(0);
    });
}

/// Whether an ErrorResponse ends the session. Its severity is spelled in the server's language but for `V`.
pub fn is_fatal(body: &[u8]) -> bool {
    matches!(field(body, b'V').or_else(|| field(body, b'S')), Some(b"FATAL" | b"PANIC"))
}

/// The field with this code (`C`: SQLSTATE, `M`: message, ...) in an ErrorResponse or NoticeResponse body.
pub fn field(body: &[u8], code: u8) -> Option<&[u8]> {
    let mut reader = Reader::new(body);
    loop {
        let found = reader.u8().filter(|found| *found != 0)?;
        let text = reader.c_string()?;
        if found == code {
            return Some(text);
        }
    }
}
