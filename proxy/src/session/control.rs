//! What can be answered before upstream has seen it: plain BEGIN, the end of a block in which upstream was asked nothing, and
//! DEALLOCATE of a statement that is known.
//!
//! Such a statement goes upstream as it came, at once, so that now(), the isolation level, time-outs and what
//! `pg_stat_activity` shows are PostgreSQL's; only its reply, which cannot be another one, is not waited for. Everything
//! with an option whose acceptance depends on upstream (READ WRITE on a standby, DEFERRABLE, AND CHAIN) is relayed. DEALLOCATE
//! becomes Close, which drops the same and is no error where upstream has refused the statement meanwhile.

use freshet_engine::statement::keywords::may_be_name;
use freshet_engine::statement::lexer;

use crate::session::state::{Isolation, SessionState, Transaction};
use crate::wire::query::TransactionStatus;

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
    /// Its name is [`savepoint_name`] of the text.
    Savepoint,
    Release,
    /// Of one statement; its name is [`deallocated_name`] of the text.
    Deallocate,
}

impl Control {
    /// The command tag (PostgreSQL: cmdtaglist.h).
    pub fn tag(self) -> &'static str {
        match self {
            Self::Begin { tag, .. } => tag,
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
            Self::Savepoint => "SAVEPOINT",
            Self::Release => "RELEASE",
            Self::Deallocate => "DEALLOCATE",
        }
    }
}

/// What becomes of a [`Control`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// From here, at once.
    Answer,
    Relay,
    /// The settings must be known first: the default isolation level is one.
    Ask,
}

/// Where the state is what the statement expects, its reply is known, and `state` becomes what it makes of it.
/// `exists`: the savepoint, or statement, that it names.
pub fn decide(control: Control, state: &mut SessionState, exists: impl Fn() -> bool) -> Decision {
    match (control, state.status) {
        (Control::Begin { isolation, .. }, TransactionStatus::Idle) => {
            let Some(settings) = &state.settings else { return Decision::Ask };
            let isolation = isolation.or(settings.default_isolation);
            if !isolation.is_some_and(Isolation::is_per_statement) {
                return Decision::Relay;
            }
            state.transaction = Transaction::new(isolation);
            state.status = TransactionStatus::InTransaction;
        }
        (Control::Commit | Control::Rollback, TransactionStatus::InTransaction)
            if !state.transaction.has_relayed && !state.transaction.is_tainted =>
        {
            state.transaction = Transaction::default();
            state.status = TransactionStatus::Idle;
        }
        // Without a BEGIN that was seen it may be the implicit block of a query behind extended messages (PostgreSQL 18).
        (Control::Savepoint, TransactionStatus::InTransaction) if state.transaction.isolation.is_some() => {}
        (Control::Release, TransactionStatus::InTransaction)
        | (Control::Deallocate, TransactionStatus::Idle | TransactionStatus::InTransaction)
            if exists() => {}
        _ => return Decision::Relay,
    }
    Decision::Answer
}

const FIRST_WORDS: [&[u8]; 9] =
    [b"begin", b"start", b"commit", b"end", b"rollback", b"abort", b"savepoint", b"release", b"deallocate"];

/// Reads one statement; None for anything that is not exactly one of these. Quick to say no.
pub fn read(sql: &[u8]) -> Option<Control> {
    let text = sql.trim_ascii_start();
    let begins = |word: &&[u8]| text.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word));
    if sql.len() > 200 || !FIRST_WORDS.iter().any(begins) {
        return None;
    }
    if deallocated_name(sql).is_some() {
        return Some(Control::Deallocate);
    }
    if savepoint_name(sql).is_some() {
        return Some(if begins(&b"savepoint".as_slice()) { Control::Savepoint } else { Control::Release });
    }
    let words = words(sql)?;
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["commit" | "end"] | ["commit" | "end", "work" | "transaction"] => Some(Control::Commit),
        ["rollback" | "abort"] | ["rollback" | "abort", "work" | "transaction"] => Some(Control::Rollback),
        ["start", "transaction", modes @ ..] => begin("START TRANSACTION", modes),
        ["begin", "work" | "transaction", modes @ ..] | ["begin", modes @ ..] => begin("BEGIN", modes),
        _ => None,
    }
}

/// The name that a plain SAVEPOINT or RELEASE gives.
pub fn savepoint_name(sql: &[u8]) -> Option<Box<str>> {
    let tokens = lexer::tokens(std::str::from_utf8(sql).ok()?).ok()?;
    let name = match without_end(&tokens) {
        [verb, name] if (verb.is_word("savepoint") || verb.is_word("release")) && !name.is_word("savepoint") => name,
        [verb, kind, name] if verb.is_word("release") && kind.is_word("savepoint") => name,
        _ => return None,
    };
    plain_name(name)
}

/// The prepared statement that a plain DEALLOCATE drops.
pub fn deallocated_name(sql: &[u8]) -> Option<Box<str>> {
    let text = sql.trim_ascii_start();
    if !text.get(.."deallocate".len()).is_some_and(|first| first.eq_ignore_ascii_case(b"deallocate")) {
        return None;
    }
    let tokens = lexer::tokens(std::str::from_utf8(sql).ok()?).ok()?;
    match without_end(&tokens) {
        [verb, name] if verb.is_word("deallocate") && !name.is_word("prepare") => plain_name(name),
        [verb, kind, name] if verb.is_word("deallocate") && kind.is_word("prepare") => plain_name(name),
        _ => None,
    }
}

/// A name that PostgreSQL takes as it stands: other keywords are an error, which upstream reports, and what is too long is cut.
fn plain_name(name: &lexer::Token<'_>) -> Option<Box<str>> {
    if name.kind == lexer::TokenKind::Word && !may_be_name(&name.text.to_ascii_lowercase()) {
        return None;
    }
    name.name().filter(|name| name.len() <= lexer::NAME_BYTES_MAX).map(|name| name.as_ref().into())
}

/// The words of a statement that has nothing else, in lower case; without the semicolon that may end it.
pub(super) fn words(sql: &[u8]) -> Option<Vec<String>> {
    let tokens = lexer::tokens(std::str::from_utf8(sql).ok()?).ok()?;
    let word = |token: &lexer::Token<'_>| match token.kind {
        lexer::TokenKind::Word => Some(token.text.to_ascii_lowercase()),
        _ => None,
    };
    without_end(&tokens).iter().map(word).collect()
}

/// A text without the space and the semicolon that may end it.
pub(super) fn trimmed(sql: &[u8]) -> &[u8] {
    let sql = sql.trim_ascii();
    sql.strip_suffix(b";").unwrap_or(sql).trim_ascii_end()
}

/// Whether a text begins with the word, in whichever case.
pub(super) fn begins_with(sql: &[u8], word: &[u8]) -> bool {
    sql.trim_ascii_start().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn without_end<'a>(tokens: &'a [lexer::Token<'a>]) -> &'a [lexer::Token<'a>] {
    match tokens.split_last() {
        Some((last, rest)) if last.is_symbol(";") => rest,
        _ => tokens,
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
        assert_eq!(
            (read(b"SAVEPOINT a;"), read(b"release savepoint \"B\"")),
            (Some(Control::Savepoint), Some(Control::Release))
        );
        assert_eq!(savepoint_name(b"savepoint Ab").as_deref(), Some("ab"));
        assert_eq!(savepoint_name(b"release \"Ab\"").as_deref(), Some("Ab"));
        for (sql, name) in [
            ("DEALLOCATE pdo_stmt_00000001", "pdo_stmt_00000001"),
            ("deallocate prepare \"Ab\" ;", "Ab"),
            ("  DeAllocate Ab", "ab"),
            ("deallocate local", "local"),
            ("deallocate prepare prepare", "prepare"),
        ] {
            assert_eq!(read(sql.as_bytes()), Some(Control::Deallocate), "{sql}");
            assert_eq!(deallocated_name(sql.as_bytes()).as_deref(), Some(name), "{sql}");
        }
        for sql in [
            "begin read write",
            "begin isolation level serializable",
            "begin deferrable",
            "commit and chain",
            "commit prepared 'x'",
            "rollback to s",
            "savepoint select",
            "release savepoint",
            "savepoint a b",
            "deallocate all",
            "deallocate prepare",
            "deallocate prepare all",
            "deallocate a, b",
            "deallocate a; select 1",
            "select 1",
            "begin; select 1",
            "",
        ] {
            assert_eq!(read(sql.as_bytes()), None, "{sql}");
        }
    }
}
