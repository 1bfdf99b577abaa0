//! SQL text → [`Statement`]s: split at semicolons, classified and, where it is a query of a known form, parsed.
//!
//! Assumes client_encoding UTF8 and `standard_conforming_strings = on`; under other settings nothing is answered here.

pub mod ast;
pub mod classify;
pub mod confined;
pub mod dependencies;
pub mod fingerprint;
pub mod hanging;
pub mod keywords;
pub mod lexer;
pub mod normal;
pub mod parse;
pub mod quiet;
pub mod second_reading;
pub mod skeleton;

use crate::reason::UpstreamReason;
use crate::statement::ast::Query;
use crate::statement::classify::{Classification, StatementKind, classify};
use crate::statement::lexer::Token;

/// Longer texts are relayed unread.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// One statement of a text.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Without comments around it and without the semicolon.
    pub text: String,
    pub classification: Classification,
    syntax: Result<Query, UpstreamReason>,
}

impl Statement {
    /// Its syntax, if it is a query of a form that is known here.
    pub fn query(&self) -> Result<&Query, UpstreamReason> {
        self.syntax.as_ref().map_err(UpstreamReason::clone)
    }
}

/// The statements of `sql`, in order; empty ones are left out, as PostgreSQL does. An error says that the text as a whole
/// cannot be read: then nothing is known of what it does.
pub fn parse(sql: &str) -> Result<Vec<Statement>, UpstreamReason> {
    if sql.len() > TEXT_BYTES_MAX {
        return Err(UpstreamReason::TooLong);
    }
    let tokens = lexer::tokens(sql).map_err(|error| UpstreamReason::NotParsed(error.to_string().into()))?;
    // Where the body of an SQL function ends takes PostgreSQL's grammar, and what follows it may be anything.
    if tokens.windows(2).any(|pair| pair[0].is_word("begin") && pair[1].is_word("atomic")) {
        return Err(UpstreamReason::NotParsed("BEGIN ATOMIC".into()));
    }
    Ok(split(&tokens).into_iter().filter(|part| !part.is_empty()).map(|part| statement(sql, part)).collect())
}

fn statement(sql: &str, tokens: &[Token<'_>]) -> Statement {
    let text = match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => sql[first.start..last.end()].to_owned(),
        _ => String::new(),
    };
    let classification = classify(tokens);
    let syntax = match &classification.kind {
        StatementKind::Query => parse::parse_query(tokens),
        other => Err(UpstreamReason::NotAQuery(kind_name(other))),
    };
    Statement { text, classification, syntax }
}

/// The parts between semicolons; those in parentheses (CREATE RULE) do not separate.
fn split<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut depth = 0_i32;
    tokens
        .split(|token| {
            if token.is_symbol("(") {
                depth += 1;
            } else if token.is_symbol(")") {
                depth -= 1;
            }
            depth <= 0 && token.is_symbol(";")
        })
        .collect()
}

fn kind_name(kind: &StatementKind) -> &'static str {
    use StatementKind as K;
    match kind {
        K::Empty => "empty",
        K::Query => "query",
        K::Write => "write",
        K::Begin(_)
        | K::Commit
        | K::CommitAndChain
        | K::Rollback
        | K::RollbackAndChain
        | K::Savepoint
        | K::ReleaseSavepoint
        | K::RollbackToSavepoint
        | K::PrepareTransaction
        | K::CommitPrepared
        | K::RollbackPrepared
        | K::SetTransaction(_)
        | K::SetSessionCharacteristics(_) => "transaction control",
        K::Set { .. }
        | K::Reset { .. }
        | K::SetSessionAuthorization
        | K::SetConstraints
        | K::DiscardAll
        | K::DiscardSome
        | K::Show { .. } => "setting",
        K::Explain { .. } => "explain",
        K::CopyIn | K::CopyOut => "copy",
        K::Listen | K::Unlisten | K::Notify => "notification",
        K::DeclareCursor { .. } | K::Fetch | K::Move | K::CloseCursor => "cursor",
        K::Prepare { .. } | K::Execute | K::Deallocate { .. } => "prepared statement",
        K::Lock => "lock",
        K::Ddl => "data definition",
        K::Maintenance => "maintenance",
        K::Unknown => "unknown statement",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_split_into_statements() {
        let texts = |sql| parse(sql).map(|list| list.into_iter().map(|s| s.text).collect::<Vec<_>>());
        assert_eq!(texts("BEGIN; /* x */ SELECT ';' ; ;").expect("lexes"), ["BEGIN", "SELECT ';'"]);
        assert_eq!(texts("").expect("lexes"), Vec::<String>::new());
        assert_eq!(texts("CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3").expect("lexes").len(), 2);
        assert!(texts("SELECT 'a").is_err());
        assert_eq!(parse(&" ".repeat(TEXT_BYTES_MAX + 1)).expect_err("too long"), UpstreamReason::TooLong);
    }

    #[test]
    fn an_atomic_body_is_not_split() {
        let sql = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END; SET ROLE x";
        assert!(parse(sql).is_err());
    }

    #[test]
    fn only_queries_have_syntax() {
        let list = parse("SELECT 1; DELETE FROM t; SELECT a[1:2][1] FROM t").expect("lexes");
        assert!(list[0].query().is_ok());
        assert_eq!(list[1].query(), Err(UpstreamReason::NotAQuery("write")));
        assert!(matches!(list[2].query(), Err(UpstreamReason::Unsupported(_))));
    }
}
