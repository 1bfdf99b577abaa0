//! What a relayed statement may do to the session's state and to rows, judged from its text by the engine's classifier.
//!
//! What is not recognised is [`Effect::Opaque`], which costs a probe before the next local answer, never correctness.

use freshet_engine::statement::classify::{self, Classification, SettingScope, StatementKind, classify};
use freshet_engine::statement::lexer;

use crate::session::state::Isolation;

/// What one statement may do, from harmless to unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads, or changes nothing that local answers depend on.
    Neutral,
    /// Opens a transaction block; None: at the default isolation level.
    Begin(Option<Isolation>),
    /// Changes the open block's isolation level.
    SetIsolation(Isolation),
    /// Ends the block.
    End,
    /// Drops prepared statements.
    Deallocate,
    /// Changes settings or the role.
    Settings,
    /// Back to the state after log-in, as far as asked.
    Discard,
    /// Writes rows, or locks.
    Write,
    /// Unknown: settings, role, temporary tables and rows may all have changed.
    Opaque,
}

impl Effect {
    /// Whether rows upstream may differ afterwards.
    pub fn may_write(self) -> bool {
        matches!(self, Self::Write | Self::Opaque)
    }

    fn rank(self) -> u8 {
        match self {
            Self::Neutral => 0,
            Self::Begin(_) => 1,
            Self::SetIsolation(_) => 2,
            Self::End => 3,
            Self::Deallocate => 4,
            Self::Settings => 5,
            Self::Discard => 6,
            Self::Write => 7,
            Self::Opaque => 8,
        }
    }
}

/// The effects of a query string, statement by statement.
pub fn effects(sql: &[u8]) -> Vec<Effect> {
    let Ok(tokens) = std::str::from_utf8(sql).map_err(drop).and_then(|sql| lexer::tokens(sql).map_err(drop)) else {
        return vec![Effect::Opaque];
    };
    tokens
        .split(|token| token.is_symbol(";"))
        .filter(|statement| !statement.is_empty())
        .map(|statement| of(&classify(statement)))
        .collect()
}

/// The worst of several; of none, [`Effect::Neutral`].
pub fn worst(effects: &[Effect]) -> Effect {
    effects.iter().copied().max_by_key(|effect| effect.rank()).unwrap_or(Effect::Neutral)
}

/// The effect of a classified statement.
pub fn of(classification: &Classification) -> Effect {
    use StatementKind as K;
    let is_opaque = classification.opaque.is_some();
    let unless_opaque = |effect| if is_opaque { Effect::Opaque } else { effect };
    match &classification.kind {
        K::Empty | K::Savepoint | K::ReleaseSavepoint | K::RollbackToSavepoint | K::Show { .. } => Effect::Neutral,
        K::Listen | K::Unlisten | K::Notify | K::Fetch | K::Move | K::CloseCursor | K::Prepare { .. } => {
            Effect::Neutral
        }
        K::Query if !classification.set_configs.is_empty() => unless_opaque(Effect::Settings),
        K::Query if classification.locks_rows => unless_opaque(Effect::Write),
        K::Query | K::CopyOut | K::DeclareCursor { .. } | K::Explain { analyze: false, .. } => {
            unless_opaque(Effect::Neutral)
        }
        K::Write | K::CopyIn => unless_opaque(Effect::Write),
        K::Begin(modes) => Effect::Begin(modes.isolation.map(Isolation::from)),
        K::SetTransaction(modes) => {
            modes.isolation.map_or(Effect::Neutral, |isolation| Effect::SetIsolation(isolation.into()))
        }
        K::Commit | K::Rollback => Effect::End,
        K::PrepareTransaction | K::CommitPrepared | K::RollbackPrepared => Effect::Write,
        K::SetConstraints | K::Lock | K::Maintenance => Effect::Write,
        K::Set { name, .. } if is_harmless(name) => Effect::Neutral,
        K::Reset { name: Some(name) } if is_harmless(name) => Effect::Neutral,
        K::Set { scope: SettingScope::Session | SettingScope::Local, .. } | K::Reset { .. } => Effect::Settings,
        K::SetSessionCharacteristics(_) | K::SetRole | K::SetSessionAuthorization => Effect::Settings,
        K::DiscardAll | K::DiscardSome => Effect::Discard,
        K::Deallocate { .. } => Effect::Deallocate,
        // AND CHAIN: the next block begins with modes of the last, which are not followed here.
        K::CommitAndChain | K::RollbackAndChain => Effect::Opaque,
        K::Explain { analyze: true, .. } | K::Execute | K::Ddl | K::Unknown => Effect::Opaque,
    }
}

impl From<classify::Isolation> for Isolation {
    fn from(isolation: classify::Isolation) -> Self {
        match isolation {
            classify::Isolation::ReadUncommitted => Self::ReadUncommitted,
            classify::Isolation::ReadCommitted => Self::ReadCommitted,
            classify::Isolation::RepeatableRead => Self::RepeatableRead,
            classify::Isolation::Serializable => Self::Serializable,
        }
    }
}

/// Settings that change neither an answer nor which answers are right (PostgreSQL: Server Configuration): limits, logging
/// and the planner's choices. `transaction_isolation` and its kin are not among them.
fn is_harmless(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "application_name",
        "client_min_messages",
        "commit_delay",
        "default_statistics_target",
        "effective_cache_size",
        "effective_io_concurrency",
        "geqo",
        "idle_in_transaction_session_timeout",
        "idle_session_timeout",
        "jit",
        "lock_timeout",
        "maintenance_work_mem",
        "max_parallel_workers_per_gather",
        "plan_cache_mode",
        "random_page_cost",
        "seq_page_cost",
        "statement_timeout",
        "synchronous_commit",
        "temp_buffers",
        "work_mem",
    ];
    NAMES.contains(&name) || name.starts_with("enable_") || name.starts_with("log_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart() {
        let cases: &[(&str, &[Effect])] = &[
            ("SELECT 1", &[Effect::Neutral]),
            ("select count(*) from t where a in (1, 2)", &[Effect::Neutral]),
            ("(select 1) union (select 2);", &[Effect::Neutral]),
            ("select set_config('search_path', 'x', false)", &[Effect::Settings]),
            ("select \"Set_It\"(1)", &[Effect::Opaque]),
            ("select * from t for update", &[Effect::Write]),
            ("select * into x from t", &[Effect::Opaque]),
            ("with x as (insert into t values (1) returning a) select * from x", &[Effect::Write]),
            ("BEGIN", &[Effect::Begin(None)]),
            ("begin isolation level repeatable read", &[Effect::Begin(Some(Isolation::RepeatableRead))]),
            (
                "START TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE",
                &[Effect::Begin(Some(Isolation::Serializable))],
            ),
            ("set transaction isolation level serializable", &[Effect::SetIsolation(Isolation::Serializable)]),
            ("set transaction read only", &[Effect::Neutral]),
            ("/* a; /* b */ */ COMMIT -- ; x", &[Effect::End]),
            ("rollback to savepoint s", &[Effect::Neutral]),
            ("rollback", &[Effect::End]),
            ("commit and chain", &[Effect::Opaque]),
            ("insert into t values (1, 'a;b', $x$;$x$)", &[Effect::Write]),
            ("insert into t (a) values (f(1))", &[Effect::Opaque]),
            ("update t set a = lower(b)", &[Effect::Write]),
            ("SET x.y = 1", &[Effect::Settings]),
            ("SET statement_timeout = 1000", &[Effect::Neutral]),
            ("set role ann", &[Effect::Settings]),
            ("reset all", &[Effect::Settings]),
            ("do $$ begin; end $$", &[Effect::Opaque]),
            ("DISCARD ALL", &[Effect::Discard]),
            ("deallocate all", &[Effect::Deallocate]),
            ("begin; select 1; end", &[Effect::Begin(None), Effect::Neutral, Effect::End]),
            ("create temp table t (a int)", &[Effect::Opaque]),
            ("select 'unfinished", &[Effect::Opaque]),
            ("", &[]),
            (" ; ", &[]),
        ];
        for (sql, expected) in cases {
            assert_eq!(effects(sql.as_bytes()), *expected, "{sql}");
        }
        assert_eq!(effects(b"select '\xff'"), [Effect::Opaque]);
    }

    #[test]
    fn the_worst_of_several_stands_for_all() {
        assert_eq!(worst(&effects(b"begin; update t set a = 1; end")), Effect::Write);
        assert_eq!(worst(&[]), Effect::Neutral);
    }
}
