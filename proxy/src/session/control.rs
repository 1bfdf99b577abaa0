//! Transaction control that can be answered before upstream has seen it: plain BEGIN, and the end of a block in which
//! upstream was asked nothing.
//!
//! Such a statement goes upstream as it came, at once, so that now(), the isolation level, time-outs and what
//! `pg_stat_activity` shows are PostgreSQL's; only its reply, which cannot be another one, is not waited for. Everything
//! with an option whose acceptance depends on upstream (READ WRITE on a standby, DEFERRABLE, AND CHAIN) is relayed.

use freshet_engine::statement::lexer;

use crate::session::state::Isolation;

/// A statement whose reply is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// None: at the default isolation level.
    Begin {
        tag: &'static str,
        isolation: Option<Isolation>,
    },
    Commit,
    Rollback,
}

impl Control {
    /// The command tag (PostgreSQL: cmdtaglist.h).
    pub fn tag(self) -> &'static str {
        match self {
            Self::Begin { tag, .. } => tag,
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
        }
    }
}

/// Reads one statement; None for anything that is not exactly one of these. Quick to say no.
pub fn read(sql: &[u8]) -> Option<Control> {
    let first = sql.iter().find(|byte| !byte.is_ascii_whitespace())?.to_ascii_lowercase();
    if !matches!(first, b'b' | b's' | b'c' | b'e' | b'r' | b'a') || sql.len() > 200 {
        return None;
    }
    let tokens = lexer::tokens(std::str::from_utf8(sql).ok()?).ok()?;
    let tokens = match tokens.split_last() {
        Some((last, rest)) if last.is_symbol(";") => rest,
        _ => &tokens,
    };
    if !tokens.iter().all(|token| token.kind == lexer::TokenKind::Word) {
        return None;
    }
    let words: Vec<String> = tokens.iter().map(|token| token.text.to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["commit" | "end"] | ["commit" | "end", "work" | "transaction"] => Some(Control::Commit),
        ["rollback" | "abort"] | ["rollback" | "abort", "work" | "transaction"] => Some(Control::Rollback),
        ["start", "transaction", modes @ ..] => begin("START TRANSACTION", modes),
        ["begin", "work" | "transaction", modes @ ..] | ["begin", modes @ ..] => begin("BEGIN", modes),
        _ => None,
    }
}

fn begin(tag: &'static str, modes: &[&str]) -> Option<Control> {
    let isolation = match modes {
        [] | ["read", "only"] => None,
        ["isolation", "level", "read", "committed"] | ["isolation", "level", "read", "committed", "read", "only"] => {
            Some(Isolation::ReadCommitted)
        }
        ["isolation", "level", "read", "uncommitted"]
        | ["isolation", "level", "read", "uncommitted", "read", "only"] => Some(Isolation::ReadUncommitted),
        _ => return None,
    };
    Some(Control::Begin { tag, isolation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_fail_is_known_beforehand() {
        let plain = Control::Begin { tag: "BEGIN", isolation: None };
        for sql in ["BEGIN", " begin ;", "begin work", "BEGIN TRANSACTION", "begin read only", "/* x */ BEGIN"] {
            let expected = if sql.starts_with('/') { None } else { Some(plain) };
            assert_eq!(read(sql.as_bytes()), expected, "{sql}");
        }
        let start = Control::Begin { tag: "START TRANSACTION", isolation: Some(Isolation::ReadCommitted) };
        assert_eq!(read(b"START TRANSACTION ISOLATION LEVEL READ COMMITTED"), Some(start));
        for sql in ["commit", "END", "end work", "commit transaction;"] {
            assert_eq!(read(sql.as_bytes()), Some(Control::Commit), "{sql}");
        }
        for sql in ["rollback", "ABORT", "Rollback Work"] {
            assert_eq!(read(sql.as_bytes()), Some(Control::Rollback), "{sql}");
        }
        for sql in [
            "begin read write",
            "begin isolation level serializable",
            "begin deferrable",
            "commit and chain",
            "commit prepared 'x'",
            "rollback to s",
            "select 1",
            "begin; select 1",
            "",
        ] {
            assert_eq!(read(sql.as_bytes()), None, "{sql}");
        }
    }
}
