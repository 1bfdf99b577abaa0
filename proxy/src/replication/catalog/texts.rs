//! Texts that PostgreSQL makes of stored queries.
//!
//! It takes ACCESS SHARE on every relation that the query names and keeps it until the transaction ends (PostgreSQL: ruleutils.c,
//! `AcquireRewriteLocks`). Who waited there for a migration with such locks in hand would be waited for by the migration's next
//! statement, and the migration, which waited last, would be the deadlock's victim. So each text is asked for in a subtransaction that
//! is rolled back, locks and all, and whoever holds the table is waited for only a moment.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use freshet_engine::types::Oid;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, SimpleQueryMessage, Transaction};

use crate::upstream::UpstreamError;

/// A twentieth of deadlock_timeout's default.
const LOCK_WAIT: &str = "50ms";

/// So many are asked for at once, of a millisecond each: nobody who wants one of the tables waits longer for it.
const ASKED_AT_ONCE: usize = 16;

/// After so many of which somebody holds a table, the rest is left for the next time.
const LOCKED_MAX: usize = 8;

/// What became of each text that was asked for.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Without those of what was dropped since the snapshot.
    pub(super) read: HashMap<Oid, String>,
    /// Somebody holds a table that it names.
    pub(super) locked: HashSet<Oid>,
}

/// The bodies of users' functions that were stored as queries (BEGIN ATOMIC).
pub(super) async fn of_functions(transaction: &Transaction<'_>) -> Result<Texts, UpstreamError> {
    let stored = "SELECT oid FROM pg_proc WHERE oid >= 16384 AND prosqlbody IS NOT NULL";
    let oids: Vec<Oid> = transaction.query(stored, &[]).await?.iter().map(|row| row.get(0)).collect();
    read(transaction, "pg_get_function_sqlbody($)", &oids).await
}

/// The texts that `call` (SQL, with `$` for an OID) makes of `oids`.
pub(super) async fn read(transaction: &Transaction<'_>, call: &str, oids: &[Oid]) -> Result<Texts, UpstreamError> {
    let mut texts = Texts::default();
    for some in oids.chunks(ASKED_AT_ONCE) {
        if texts.locked.len() >= LOCKED_MAX {
            texts.locked.extend(some);
        } else if ask(transaction, call, some, &mut texts).await? != Asked::Told {
            for one in some {
                if ask(transaction, call, std::slice::from_ref(one), &mut texts).await? == Asked::Locked {
                    texts.locked.insert(*one);
                }
            }
        }
    }
    Ok(texts)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Told,
    /// A lock was not to be had in time.
    Locked,
    /// It was dropped, or what it names was, between one look of the function and its next.
    Gone,
}

async fn ask(
    transaction: &Transaction<'_>,
    call: &str,
    oids: &[Oid],
    texts: &mut Texts,
) -> Result<Asked, UpstreamError> {
    let mut sql = String::new();
    for oid in oids {
        let call = call.replace('$', &oid.to_string());
        let _ = write!(
            sql,
            "SAVEPOINT text; SET LOCAL lock_timeout = '{LOCK_WAIT}'; SELECT {oid}, {call}; \
             ROLLBACK TO SAVEPOINT text; RELEASE SAVEPOINT text;"
        );
    }
    match transaction.simple_query(&sql).await {
        Ok(messages) => {
            for message in messages {
                let SimpleQueryMessage::Row(row) = message else { continue };
                if let (Some(Ok(oid)), Some(text)) = (row.get(0).map(str::parse), row.get(1)) {
                    texts.read.insert(oid, text.to_owned());
                }
            }
            Ok(Asked::Told)
        }
        Err(error) => {
            let asked = outcome(&error).ok_or(error)?;
            transaction.batch_execute("ROLLBACK TO SAVEPOINT text; RELEASE SAVEPOINT text").await?;
            Ok(asked)
        }
    }
}

/// None: it says nothing of the text. Of what is gone PostgreSQL's functions only say that they did not expect it ("could not open
/// relation with OID", "cache lookup failed").
fn outcome(error: &Error) -> Option<Asked> {
    match error.code()? {
        code if [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) => Some(Asked::Locked),
        code if *code == SqlState::INTERNAL_ERROR => Some(Asked::Gone),
        _ => None,
    }
}
