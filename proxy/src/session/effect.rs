//! What a relayed statement may do to rows and to the session, judged from its text by the engine's classifier: the
//! [`Effect`] decides what follows for freshness and routing, [`crate::session::change`] tells what becomes of settings.
//!
//! What is not recognised is [`Effect::Opaque`], which costs a probe before the next local answer, never correctness.

use std::borrow::Cow;
use std::sync::Arc;

use freshet_engine::catalog::Catalog;
use freshet_engine::statement::classify::{self, Classification, SettingScope, StatementKind, classify, classify_by};
use freshet_engine::statement::confined::confined;
use freshet_engine::statement::{lexer, quiet};

use crate::replication::written::WrittenTable;
use crate::session::change::{self, Change, Changes};
use crate::session::state::Isolation;
use crate::wire::extended::Bind;

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
    /// Ends the block and begins the next like it.
    Chain,
    /// Drops prepared statements, or makes one by SQL.
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
            Self::Chain => 4,
            Self::Deallocate => 5,
            Self::Settings => 6,
            Self::Discard => 7,
            Self::Write => 8,
            Self::Opaque => 9,
        }
    }
}

/// The effects of a query string, statement by statement.
pub fn effects(sql: &[u8]) -> Vec<Effect> {
    let Some(tokens) = read(sql) else { return vec![Effect::Opaque] };
    statements(&tokens).map(|statement| of(&classify(statement))).collect()
}

/// The function that makes a text opaque, without its schema: one that is not pg_catalog's, or changes settings.
pub fn called(sql: &[u8]) -> Option<String> {
    let tokens = read(sql)?;
    let opaque = statements(&tokens).find_map(|statement| classify(statement).opaque)?;
    opaque.strip_prefix("calls ").and_then(|name| name.rsplit('.').next()).map(str::to_owned)
}

/// The relations that statements may have written, by the names that they use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    Named(Vec<WrittenTable>),
    /// Not known: take all.
    Anything,
}

/// More names than this are not kept.
const WRITTEN_MAX: usize = 8;
/// Nor more writes that are confined to keys, of one transaction: then they count as writes of the whole table.
const CONFINED_MAX: usize = 32;

impl Written {
    pub const NOTHING: Self = Self::Named(Vec::new());

    pub fn add(&mut self, other: &Self) {
        match other {
            Self::Named(more) => more.iter().for_each(|table| self.add_table(table.clone())),
            Self::Anything => *self = Self::Anything,
        }
    }

    /// Likewise one execution of a prepared statement that writes `other`.
    pub fn add_bound(&mut self, other: &Self, bind: Option<&Bind<'_>>, types: &[u8], parsed_under: u64) {
        match other {
            Self::Named(more) => more.iter().for_each(|table| self.add_table(table.bound(bind, types, parsed_under))),
            Self::Anything => *self = Self::Anything,
        }
    }

    fn add_table(&mut self, table: WrittenTable) {
        let Self::Named(tables) = self else { return };
        if tables.iter().any(|known| known.covers(&table)) {
            return;
        }
        if table.confined.is_none() {
            tables.retain(|known| known.name != table.name);
        }
        tables.push(table);
        if tables.len() > CONFINED_MAX {
            let mut names: Vec<Arc<[String]>> = tables.drain(..).map(|table| table.name).collect();
            names.sort_unstable();
            names.dedup();
            tables.extend(names.into_iter().map(|name| WrittenTable { name, confined: None }));
        }
        let is_first =
            |(at, table): &(usize, &WrittenTable)| tables[..*at].iter().all(|known| known.name != table.name);
        if tables.len() > WRITTEN_MAX && tables.iter().enumerate().filter(is_first).count() > WRITTEN_MAX {
            *self = Self::Anything;
        }
    }

    fn of(classification: &Classification, tokens: &[lexer::Token<'_>], tells_keys: bool) -> Self {
        use StatementKind as K;
        match (&classification.kind, &classification.written) {
            (K::Write, Some(written)) => {
                let confined = || if tells_keys { confined(tokens) } else { None };
                let table = |name: &Vec<String>| WrittenTable::by(name.as_slice().into(), confined());
                Self::Named(written.iter().map(table).collect())
            }
            (K::CopyIn | K::Query, Some(written)) => {
                Self::Named(written.iter().map(|name| WrittenTable::by(name.as_slice().into(), None)).collect())
            }
            _ => Self::Anything,
        }
    }
}

/// What a query string does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub effects: Vec<Effect>,
    pub changes: Changes,
    /// By those whose effect is [`Effect::Write`].
    pub written: Written,
}

impl Judged {
    /// Of a text that is not read.
    pub fn unread() -> Self {
        let changes = Some([Box::new([Change::Unread]) as Box<[Change]>].into());
        Self { effects: vec![Effect::Opaque], changes, written: Written::Anything }
    }
}

/// [`effects`], and what they do to the session. `schema` is the prefix of freshet's own settings; `tells_keys`: somebody asks which
/// keys were written; `catalog`: upstream's, which tells what users have under the names in it.
pub fn judge(sql: &[u8], schema: &str, tells_keys: bool, catalog: Option<&Catalog>) -> Judged {
    let Some(tokens) = read(sql) else { return Judged::unread() };
    let mut effects = Vec::new();
    let mut changes = Vec::new();
    let mut written = Written::NOTHING;
    for statement in statements(&tokens) {
        let is_quiet = |name: &str| catalog.is_some_and(|catalog| catalog.hidden_calls.is_quiet(name));
        let mut classification = classify_by(statement, &is_quiet);
        if classification.opaque.is_none() && updates_settings(statement) {
            classification.opaque = Some("updates pg_settings".to_owned());
        }
        if classification.opaque.is_none() && writes_catalog(&classification) {
            classification.opaque = Some("writes PostgreSQL's catalog".to_owned());
        }
        if classification.opaque.is_none() {
            classification.opaque = catalog.and_then(|catalog| calls_own(&classification, statement, catalog));
        }
        let effect = of(&classification);
        if effect == Effect::Write {
            written.add(&Written::of(&classification, statement, tells_keys));
        }
        effects.push(effect);
        changes.push(change::of(statement, &classification, schema));
    }
    let is_any = changes.iter().any(|changes| !changes.is_empty());
    Judged { effects, changes: is_any.then(|| changes.into()), written }
}

/// UPDATE of the view pg_settings is set_config, by a rule of PostgreSQL's own (system_views.sql, pg_settings_u).
fn updates_settings(tokens: &[lexer::Token<'_>]) -> bool {
    tokens.iter().any(|token| token.is_word("update"))
        && tokens.iter().any(|token| token.name().is_some_and(|name| name == "pg_settings"))
}

/// A superuser's way of changing definitions and privileges; users' tables may have such names, too.
fn writes_catalog(classification: &Classification) -> bool {
    let is_of_catalog = |name: &Vec<String>| name.last().is_some_and(|table| table.starts_with("pg_"));
    classification.kind == StatementKind::Write
        && classification.written.as_ref().is_some_and(|written| written.iter().any(is_of_catalog))
}

/// Whether it runs a function of users of which nothing is known: by its name, or by that of a relation.
fn calls_own(classification: &Classification, tokens: &[lexer::Token<'_>], catalog: &Catalog) -> Option<String> {
    use StatementKind as K;
    if let Some(name) = quiet::unnamed(tokens, &catalog.hidden_calls) {
        return Some(format!("calls functions of {name}"));
    }
    if catalog.hidden_calls.fires && may_fire(&classification.kind, tokens) {
        return Some("calls functions of an event trigger".to_owned());
    }
    let is_trusted = |name: &str| catalog.user_functions.are_pure(name) || catalog.hidden_calls.is_quiet(name);
    if let Some(name) = classification.calls.iter().find(|name| !is_trusted(name)) {
        return Some(format!("calls {name}"));
    }
    let is_write = match classification.kind {
        // TRUNCATE has triggers, too.
        K::Write | K::CopyIn | K::Ddl => true,
        K::Query | K::CopyOut | K::DeclareCursor { .. } => false,
        _ => return None,
    };
    // Behind a name it is one of a row; behind an expression, of any value.
    let is_call = |(name, is_of_name): &(Cow<'_, str>, bool)| {
        let may_call = if *is_of_name {
            catalog.row_functions.contains(&**name)
        } else {
            catalog.user_functions.may_be_column(name)
        };
        may_call && !catalog.hidden_calls.is_quiet(name)
    };
    if classification.kind != K::Ddl
        && let Some((name, _)) = attributes(tokens).find(is_call)
    {
        return Some(format!("calls {name}"));
    }
    // U&"..." is not interpreted here.
    if tokens.iter().any(|token| token.kind == lexer::TokenKind::OtherString && token.text.ends_with('"')) {
        return Some("calls functions of a name that is not read".to_owned());
    }
    if catalog.hidden_calls.is_empty() {
        return None;
    }
    let found = catalog.hidden_calls.first(quiet::relation_names(tokens), is_write);
    found.map(|name| format!("calls functions of {name}"))
}

/// Whether event triggers may fire for a statement of that kind (PostgreSQL: event_trigger firing matrix): REINDEX and SELECT INTO, too.
fn may_fire(kind: &StatementKind, tokens: &[lexer::Token<'_>]) -> bool {
    use StatementKind as K;
    let has = |word: &str| tokens.iter().any(|token| token.is_word(word));
    match kind {
        K::Ddl => true,
        K::Maintenance => has("reindex"),
        K::Write => {
            has("into") && !tokens.first().is_some_and(|first| first.is_word("insert") || first.is_word("merge"))
        }
        _ => false,
    }
}

/// Names behind a point that are not called like functions; whether the point is behind a name.
fn attributes<'t, 'a>(tokens: &'t [lexer::Token<'a>]) -> impl Iterator<Item = (Cow<'a, str>, bool)> + 't {
    tokens.windows(2).enumerate().filter_map(move |(at, pair)| {
        let is_called = tokens.get(at + 2).is_some_and(|next| next.is_symbol("("));
        let is_of_name = at > 0 && tokens[at - 1].name().is_some();
        if pair[0].is_symbol(".") && !is_called { Some((pair[1].name()?, is_of_name)) } else { None }
    })
}

fn read(sql: &[u8]) -> Option<Vec<lexer::Token<'_>>> {
    lexer::tokens(std::str::from_utf8(sql).ok()?).ok()
}

/// The parts between semicolons, but for those inside of BEGIN ATOMIC ... END.
fn statements<'t, 'a>(tokens: &'t [lexer::Token<'a>]) -> impl Iterator<Item = &'t [lexer::Token<'a>]> {
    // How many ENDs are missing, and whether it is a definition that may have a body.
    let (mut depth, mut begins, mut before) = (0_usize, true, None);
    let mut creates = false;
    let is_end = move |token: &lexer::Token<'a>| {
        let word = |word| token.is_word(word);
        let is_body = creates && word("atomic") && before == Some("begin");
        depth = match depth {
            0 => usize::from(is_body),
            _ if word("end") => depth - 1,
            _ => depth + usize::from(word("case")),
        };
        let is_end = depth == 0 && token.is_symbol(";");
        creates = if begins { word("create") } else { creates };
        (begins, before) = (is_end, word("begin").then_some("begin"));
        is_end
    };
    tokens.split(is_end).filter(|statement| !statement.is_empty())
}

/// Whether this text, and nothing else with it, drops all prepared statements.
pub fn drops_all_statements(sql: &[u8]) -> bool {
    let words = std::str::from_utf8(sql).unwrap_or_default().trim_end().trim_end_matches(';').to_ascii_lowercase();
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    matches!(words.as_slice(), ["discard" | "deallocate", "all"] | ["deallocate", "prepare", "all"])
}

/// Whether this text, and nothing else with it, makes a prepared statement by SQL.
pub fn makes_statement(sql: &[u8]) -> bool {
    read(sql).is_some_and(|tokens| {
        let mut statements = statements(&tokens);
        let is_prepare =
            |statement: &[lexer::Token<'_>]| statement.first().is_some_and(|first| first.is_word("prepare"));
        statements.next().is_some_and(is_prepare) && statements.next().is_none()
    })
}

/// Whether a text may set something of the transaction at hand. Quick to say no.
pub fn sets_transaction(sql: &[u8]) -> bool {
    let mentions = |word: &[u8]| sql.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    if !mentions(b"transaction") && !mentions(b"begin") {
        return false;
    }
    read(sql).is_some_and(|tokens| {
        // BEGIN in a block is a warning, and sets its modes all the same.
        let words = ["set", "begin", "start"];
        let sets = |statement: &[lexer::Token<'_>]| {
            statement.first().is_some_and(|first| words.iter().any(|word| first.is_word(word)))
        };
        statements(&tokens).any(sets)
    })
}

/// Whether PostgreSQL takes a snapshot for it, or for a part of it (utility.c, PlannedStmtRequiresSnapshot): the modes of its block cannot be
/// set behind it.
pub fn takes_snapshot(sql: &[u8]) -> bool {
    const WITHOUT: [&str; 12] = [
        "show",
        "set",
        "listen",
        "unlisten",
        "notify",
        "fetch",
        "move",
        "begin",
        "start",
        "savepoint",
        "release",
        "rollback",
    ];
    read(sql).is_none_or(|tokens| {
        let has_none = |statement: &[lexer::Token<'_>]| {
            statement.first().is_some_and(|first| WITHOUT.iter().any(|word| first.is_word(word)))
        };
        !statements(&tokens).all(has_none)
    })
}

/// Whether a Parse of it takes a snapshot (analyze.c, analyze_requires_snapshot), which makes it a query of its block, as
/// [`takes_snapshot`] says of what is run.
pub fn is_analyzed_by_snapshot(sql: &[u8]) -> bool {
    const WITH: [&str; 11] =
        ["select", "with", "values", "table", "insert", "update", "delete", "merge", "declare", "explain", "call"];
    read(sql).is_some_and(|tokens| {
        let first = tokens.iter().find(|token| !token.is_symbol("("));
        first.is_some_and(|first| WITH.iter().any(|word| first.is_word(word)))
    })
}

/// Whether all of it is queries, to which it is the same whether they are the first of their transaction.
pub fn is_plain_query(sql: &[u8]) -> bool {
    const QUERIES: [&str; 6] = ["select", "with", "values", "table", "show", "explain"];
    read(sql).is_some_and(|tokens| {
        let is_query = |statement: &[lexer::Token<'_>]| {
            let first = statement.iter().find(|token| !token.is_symbol("("));
            first.is_some_and(|first| QUERIES.iter().any(|word| first.is_word(word)))
        };
        statements(&tokens).all(is_query)
    })
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
        K::Listen | K::Unlisten | K::Notify | K::Fetch | K::Move | K::CloseCursor => Effect::Neutral,
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
        K::CommitAndChain | K::RollbackAndChain => Effect::Chain,
        K::PrepareTransaction | K::RollbackPrepared => Effect::Write,
        // What it commits may be anything, of any session.
        K::CommitPrepared => Effect::Opaque,
        K::SetConstraints | K::Lock | K::Maintenance => Effect::Write,
        K::Set { scope: SettingScope::Session | SettingScope::Local, .. } | K::Reset { .. } => {
            unless_opaque(Effect::Settings)
        }
        K::SetSessionCharacteristics(_) | K::SetSessionAuthorization | K::DiscardSome => Effect::Settings,
        K::DiscardAll => Effect::Discard,
        K::Deallocate { .. } | K::Prepare { .. } => Effect::Deallocate,
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
            (
                "create function f() returns int begin atomic select 1; select case when true then 2 end; end; select 1",
                &[Effect::Opaque, Effect::Neutral],
            ),
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
            ("commit and chain", &[Effect::Chain]),
            ("insert into t values (1, 'a;b', $x$;$x$)", &[Effect::Write]),
            ("insert into t (a) values (f(1))", &[Effect::Opaque]),
            ("update t set a = lower(b)", &[Effect::Write]),
            ("SET x.y = 1", &[Effect::Settings]),
            ("SET statement_timeout = 1000", &[Effect::Settings]),
            ("set role ann", &[Effect::Settings]),
            ("reset all", &[Effect::Settings]),
            ("do $$ begin; end $$", &[Effect::Opaque]),
            ("DISCARD ALL", &[Effect::Discard]),
            ("deallocate all", &[Effect::Deallocate]),
            ("prepare p as select 1", &[Effect::Deallocate]),
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
    fn a_view_may_set_what_is_followed() {
        let of = |sql: &str| judge(sql.as_bytes(), "freshet", true, None).effects;
        for sql in [
            "UPDATE pg_catalog.pg_settings SET setting = 'x' WHERE name = 'search_path'",
            "with x as (update \"pg_settings\" set setting = '') select 1",
        ] {
            assert_eq!(of(sql), [Effect::Opaque], "{sql}");
        }
        assert_eq!(of("select setting from pg_settings"), [Effect::Neutral]);
        assert_eq!(of("update settings set setting = 'pg_settings'"), [Effect::Write]);
    }

    #[test]
    fn who_writes_the_catalog_changes_definitions() {
        let of = |sql: &str| judge(sql.as_bytes(), "freshet", true, None).effects;
        for sql in ["UPDATE pg_class SET relacl = NULL WHERE relname = 't'", "DELETE FROM pg_catalog.pg_policy"] {
            assert_eq!(of(sql), [Effect::Opaque], "{sql}");
        }
        assert_eq!(of("update t set pg_class = 1"), [Effect::Write]);
    }

    #[test]
    fn a_function_may_be_written_as_a_column() {
        let names = || ["touch".into()].into_iter();
        let catalog =
            Catalog { user_functions: names().collect(), row_functions: names().collect(), ..Catalog::default() };
        let of_value = Catalog { user_functions: names().collect(), ..Catalog::default() };
        let of = |sql: &str| worst(&judge(sql.as_bytes(), "freshet", true, Some(&catalog)).effects);
        for sql in ["SELECT t.touch FROM t", "SELECT (x).\"touch\" FROM x", "COPY (SELECT t.Touch FROM t) TO STDOUT"] {
            assert_eq!(of(sql), Effect::Opaque, "{sql}");
        }
        for sql in ["SELECT t.id FROM t", "SELECT touch FROM t", "SELECT t.\"Touch\" FROM t", "SELECT 't.touch'"] {
            assert_eq!(of(sql), Effect::Neutral, "{sql}");
        }
        // One that takes no row.
        let of = |sql: &str| worst(&judge(sql.as_bytes(), "freshet", true, Some(&of_value)).effects);
        assert_eq!(of("SELECT t.touch FROM t"), Effect::Neutral);
        assert_eq!(of("SELECT (t.a).touch FROM t"), Effect::Opaque);
    }

    #[test]
    fn the_worst_of_several_stands_for_all() {
        assert_eq!(worst(&effects(b"begin; update t set a = 1; end")), Effect::Write);
        assert_eq!(worst(&[]), Effect::Neutral);
    }

    #[test]
    fn what_is_written_is_known_by_name_or_anything() {
        let named = |names: &[&[&str]]| {
            let table = |name: &&[&str]| WrittenTable::by(name.iter().map(ToString::to_string).collect(), None);
            Written::Named(names.iter().map(table).collect())
        };
        for (sql, expected) in [
            ("INSERT INTO T SELECT 1", named(&[&["t"]])),
            ("update only \"S\".t set a = 1; delete from u", named(&[&["S", "t"], &["u"]])),
            ("COPY t FROM STDIN", named(&[&["t"]])),
            ("merge into t using s on t.a = s.a when matched then delete", named(&[&["t"]])),
            ("select * from t for update", named(&[])),
            ("select 1", named(&[])),
            ("with x as (insert into t values (1) returning a) select * from x", Written::Anything),
            ("with x as (select 1) update t set a = 1", Written::Anything),
            ("PREPARE TRANSACTION 'x'", Written::Anything),
            ("set constraints all immediate", Written::Anything),
            ("lock t; update t set a = 1", Written::Anything),
        ] {
            assert_eq!(judge(sql.as_bytes(), "freshet", true, None).written, expected, "{sql}");
        }
        let many: String = (0..9).map(|n| format!("DELETE FROM t{n};")).collect();
        assert_eq!(judge(many.as_bytes(), "freshet", true, None).written, Written::Anything);
    }

    #[test]
    fn writes_that_are_confined_to_keys_are_kept_apart_up_to_a_number() {
        let of = |sql: &str| match judge(sql.as_bytes(), "freshet", true, None).written {
            Written::Named(tables) => tables.iter().map(|table| table.confined.is_some()).collect(),
            Written::Anything => vec![false; 100],
        };
        assert_eq!(of("UPDATE t SET v = 1 WHERE id = 5"), [true]);
        assert_eq!(of("UPDATE t SET v = 1 WHERE id = 5; UPDATE t SET v = 2 WHERE id = 5"), [true], "the same key");
        assert_eq!(of("UPDATE t SET v = 1 WHERE id = 5; DELETE FROM t WHERE id = 6"), [true, true]);
        assert_eq!(of("UPDATE t SET v = 1 WHERE id = 5; UPDATE t SET v = 2"), [false]);
        assert_eq!(
            of("UPDATE t SET v = 2; UPDATE t SET v = 1 WHERE id = 5; DELETE FROM u WHERE id = 1"),
            [false, true]
        );
        let keys = |count: usize| (0..count).map(|n| format!("DELETE FROM t WHERE id = {n};")).collect::<String>();
        assert_eq!(of(&keys(CONFINED_MAX)), [true; CONFINED_MAX]);
        assert_eq!(of(&keys(CONFINED_MAX + 1)), [false]);
        let tables = |count: usize| (0..count).map(|n| format!("DELETE FROM t{n} WHERE id = 1;")).collect::<String>();
        assert_eq!(of(&tables(WRITTEN_MAX)), [true; WRITTEN_MAX]);
        assert_eq!(of(&tables(WRITTEN_MAX + 1)).len(), 100);
        let untold = judge(b"UPDATE t SET v = 1 WHERE id = 5", "freshet", false, None).written;
        assert_eq!(untold, judge(b"UPDATE t SET v = 1", "freshet", true, None).written);
    }

    #[test]
    fn changes_come_statement_by_statement() {
        let of = |sql: &str| judge(sql.as_bytes(), "freshet", true, None).changes;
        assert_eq!(of("SELECT 1; INSERT INTO t VALUES (1); SET work_mem = '1MB'"), None);
        let changes = of("begin; select 1; set local role Ann; savepoint \"S\"; end").expect("some");
        assert_eq!(changes.len(), 5);
        assert_eq!(*changes[0], [Change::Begin(None)]);
        assert_eq!(*changes[1], []);
        let role = change::NewValue::Known("ann".into());
        let set = Change::Set { slot: crate::session::variables::ROLE, value: role, is_local: true };
        assert_eq!(*changes[2], [set]);
        assert_eq!(*changes[3], [Change::Savepoint("S".into())]);
        assert_eq!(*changes[4], [Change::Commit { chain: false }]);
        for (sql, reason) in [
            ("DO $$ $$", "DO"),
            ("CALL p()", "CALL"),
            ("LOAD 'x'", "LOAD"),
            ("EXECUTE p", "EXECUTE"),
            ("SELECT f(1)", "calls f"),
            ("SELECT set_config('a', 'b', false) FROM t", "calls set_config"),
            ("CREATE TABLE t AS SELECT f(1)", "a definition"),
        ] {
            assert_eq!(of(sql), Some([Box::new([Change::Opaque(reason.into())]) as Box<[Change]>].into()), "{sql}");
        }
        assert_eq!(of("CREATE TEMP TABLE t (a int)"), Some([Box::new([Change::Temporary]) as Box<[Change]>].into()));
        assert_eq!(of("select 'open"), Judged::unread().changes);
        for (sql, change) in [
            ("LISTEN a", Change::Listen),
            ("listen \"A\"", Change::Listen),
            ("UNLISTEN *", Change::UnlistenAll),
            ("UNLISTEN a", Change::Unlisten),
            ("SET Request.x = '1'", Change::SetCustom("request.x".into())),
            ("RESET request.x", Change::SetCustom("request.x".into())),
        ] {
            assert_eq!(of(sql), Some([Box::new([change]) as Box<[Change]>].into()), "{sql}");
        }
        for sql in ["SELECT listened FROM t", "SELECT nextval('s')", "SELECT pg_advisory_lock(1)", "TRUNCATE t"] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }
}
