//! What kind of statement it is, and what it may do to the session or to data. From tokens alone.
//!
//! Answers for the session: does it end in a known state? A statement that is not recognised here, or calls a function
//! that is not known to be harmless, is assumed to do anything. What triggers, defaults, checks, rules and views call is
//! not seen from the text: the session finds it by the relations' names ([`crate::catalog::hidden`]). What users' operators and casts
//! call is taken to leave the session alone.

mod settings;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use crate::statement::lexer::{Token, TokenKind, fold};

pub use settings::{SettingScope, SettingValue};

/// What kind of statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// No token at all: EmptyQueryResponse.
    Empty,
    /// SELECT, VALUES, TABLE, WITH ... SELECT: returns rows and writes nothing by itself.
    Query,
    /// INSERT, UPDATE, DELETE, MERGE, also inside WITH.
    Write,
    Begin(TransactionModes),
    Commit,
    /// AND CHAIN: the next transaction begins with the same modes.
    CommitAndChain,
    Rollback,
    RollbackAndChain,
    Savepoint,
    ReleaseSavepoint,
    RollbackToSavepoint,
    PrepareTransaction,
    CommitPrepared,
    RollbackPrepared,
    /// SET TRANSACTION.
    SetTransaction(TransactionModes),
    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetSessionCharacteristics(TransactionModes),
    Set {
        scope: SettingScope,
        name: String,
        value: SettingValue,
    },
    /// None: RESET ALL.
    Reset {
        name: Option<String>,
    },
    SetSessionAuthorization,
    SetConstraints,
    DiscardAll,
    /// PLANS, SEQUENCES, TEMP.
    DiscardSome,
    /// `ALL`: "all".
    Show {
        name: String,
    },
    /// `query`: the bytes of the explained statement.
    Explain {
        analyze: bool,
        query: Range<usize>,
    },
    CopyIn,
    CopyOut,
    Listen,
    Unlisten,
    Notify,
    DeclareCursor {
        name: String,
        with_hold: bool,
        query: Range<usize>,
    },
    Fetch,
    Move,
    CloseCursor,
    Prepare {
        name: String,
    },
    Execute,
    /// None: DEALLOCATE ALL.
    Deallocate {
        name: Option<String>,
    },
    Lock,
    /// CREATE, ALTER, DROP, TRUNCATE, GRANT, SELECT INTO and the like; REFRESH, which what is read from a materialized view
    /// depends on as on its definition.
    Ddl,
    /// VACUUM, ANALYZE, CLUSTER, REINDEX, CHECKPOINT: changes no visible row and no session state.
    Maintenance,
    /// CALL, DO, LOAD, an unknown word: may do anything.
    Unknown,
}

/// The transaction modes a statement names; None: not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A call of `set_config` that runs exactly once, see [`settings::set_configs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetConfig {
    pub name: Argument,
    pub value: Argument,
    pub is_local: Argument,
}

/// An argument that can be told before the statement runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A constant; of a boolean, `true` or `false`.
    Text(String),
    Null,
    /// Counted from 0.
    Parameter(usize),
}

/// What one statement is, from its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classification {
    pub kind: StatementKind,
    /// FOR UPDATE, FOR SHARE and the like, or a function of pg_catalog that locks or writes and does no more.
    pub locks_rows: bool,
    /// Names that look like function calls, folded, without schema, keywords among them that a function may be called by;
    /// sorted. Where users have a function of such a name it may be that one.
    pub calls: Vec<String>,
    /// Where the statement is nothing but calls of set_config: these, in order.
    pub set_configs: Vec<SetConfig>,
    /// The relations that a write names (`[schema, table]` or `[table]`); None: not known, take all.
    pub written: Option<Vec<Vec<String>>>,
    /// Why the session's state may not be known after it, if so: set state outside the protocol's view, called
    /// a function that is not known.
    pub opaque: Option<String>,
}

impl Classification {
    /// A query that by its text neither writes, locks, nor calls anything but known functions without side effects.
    pub fn is_read_only(&self) -> bool {
        self.kind == StatementKind::Query && !self.locks_rows && self.opaque.is_none() && self.set_configs.is_empty()
    }
}

/// Classifies one statement, given its tokens without the semicolon. No function of users' is known.
pub fn classify(tokens: &[Token<'_>]) -> Classification {
    classify_by(tokens, &|_| false)
}

/// Likewise, if calls by names that `is_quiet` (with their schema, if they have one) leave the session and the rows alone where they
/// are none of pg_catalog's.
pub fn classify_by(tokens: &[Token<'_>], is_quiet: &dyn Fn(&str) -> bool) -> Classification {
    let kind = kind(tokens);
    let mut calls = Vec::new();
    let set_configs = if kind == StatementKind::Query { settings::set_configs(tokens) } else { Vec::new() };
    let mut opaque = opaque_kind(&kind, tokens);
    let mut locks_rows = kind == StatementKind::Query && mentions_row_lock(tokens);
    if reads_expressions(&kind) {
        for (_, name, is_keyword) in called_names(tokens) {
            if is_keyword {
                calls.push(name);
                continue;
            }
            let is_followed = name == "set_config" && !set_configs.is_empty();
            if changes_no_setting(&name) {
                locks_rows = true;
            } else if !is_followed && !is_harmless(&name) && !is_quiet(&name) {
                opaque = opaque.or_else(|| Some(format!("calls {name}")));
            }
            calls.push(name);
        }
        calls.sort_unstable();
        calls.dedup();
    }
    let written = written_relations(&kind, tokens);
    Classification { kind, locks_rows, calls, set_configs, written, opaque }
}

fn kind(tokens: &[Token<'_>]) -> StatementKind {
    use StatementKind as K;
    let Some(first) = tokens.iter().find(|token| !token.is_symbol("(")) else { return K::Empty };
    if first.kind != TokenKind::Word {
        return K::Unknown;
    }
    let next_is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is_word(word));
    match &*fold(first.text) {
        "select" | "with" | "values" | "table" => query_kind(tokens),
        "insert" | "update" | "delete" | "merge" => K::Write,
        "begin" => K::Begin(settings::transaction_modes(&tokens[1..])),
        "start" if next_is(1, "transaction") => K::Begin(settings::transaction_modes(&tokens[2..])),
        "commit" | "end" if next_is(1, "prepared") => K::CommitPrepared,
        "commit" | "end" => {
            if chains(tokens) {
                K::CommitAndChain
            } else {
                K::Commit
            }
        }
        "rollback" if next_is(1, "prepared") => K::RollbackPrepared,
        "rollback" if tokens.iter().any(|token| token.is_word("to")) => K::RollbackToSavepoint,
        "rollback" | "abort" => {
            if chains(tokens) {
                K::RollbackAndChain
            } else {
                K::Rollback
            }
        }
        "savepoint" => K::Savepoint,
        "release" => K::ReleaseSavepoint,
        "prepare" if next_is(1, "transaction") => K::PrepareTransaction,
        "prepare" => named(tokens, 1, |name| K::Prepare { name }),
        "execute" => K::Execute,
        "deallocate" => {
            let at = if next_is(1, "prepare") && tokens.len() > 2 { 2 } else { 1 };
            if next_is(at, "all") {
                K::Deallocate { name: None }
            } else {
                named(tokens, at, |name| K::Deallocate { name: Some(name) })
            }
        }
        "set" => settings::set_kind(&tokens[1..]),
        "reset" => settings::reset_kind(&tokens[1..]),
        "show" => settings::show_kind(&tokens[1..]),
        "discard" => {
            if next_is(1, "all") {
                K::DiscardAll
            } else {
                K::DiscardSome
            }
        }
        "explain" => explain_kind(tokens),
        "copy" => copy_kind(tokens),
        "listen" => K::Listen,
        "unlisten" => K::Unlisten,
        "notify" => K::Notify,
        "declare" => declare_kind(tokens),
        "fetch" => K::Fetch,
        "move" => K::Move,
        "close" => K::CloseCursor,
        "lock" => K::Lock,
        "create" | "alter" | "drop" | "truncate" | "grant" | "revoke" | "comment" | "security" | "reassign"
        | "import" | "refresh" => K::Ddl,
        "vacuum" | "analyze" | "analyse" | "cluster" | "reindex" | "checkpoint" => K::Maintenance,
        _ => K::Unknown,
    }
}

fn named(tokens: &[Token<'_>], at: usize, kind: impl FnOnce(String) -> StatementKind) -> StatementKind {
    match tokens.get(at).and_then(Token::name) {
        Some(name) => kind(name.into_owned()),
        None => StatementKind::Unknown,
    }
}

fn chains(tokens: &[Token<'_>]) -> bool {
    tokens.windows(2).any(|pair| pair[0].is_word("and") && pair[1].is_word("chain"))
}

/// Tells queries from data-modifying WITH and SELECT INTO. INTO is reserved.
fn query_kind(tokens: &[Token<'_>]) -> StatementKind {
    if tokens.iter().any(|token| token.is_word("with")) && may_write(tokens) {
        return StatementKind::Write;
    }
    if tokens.iter().any(|token| token.is_word("into")) {
        return StatementKind::Ddl;
    }
    StatementKind::Query
}

const WRITES: [&str; 4] = ["insert", "update", "delete", "merge"];

/// Whether a writing statement may begin within these tokens. What stands before it may be any name (SEARCH ... SET name, CYCLE ...
/// USING name); its words are not reserved, so that a column of such a name is taken for one: a cost, no error.
fn may_write(tokens: &[Token<'_>]) -> bool {
    tokens.iter().enumerate().any(|(at, token)| {
        let is_something_else = match &tokens[..at] {
            [.., before] if before.is_symbol(".") || before.is_word("for") => true,
            [.., first, second, third] => first.is_word("for") && second.is_word("no") && third.is_word("key"),
            _ => false,
        };
        WRITES.iter().any(|word| token.is_word(word)) && !is_something_else
    })
}

fn explain_kind(tokens: &[Token<'_>]) -> StatementKind {
    let mut at = 1;
    let mut analyze = false;
    let is_analyze = |token: &Token<'_>| token.is_word("analyze") || token.is_word("analyse");
    // An option's name may be quoted (gram.y, utility_option_name); U&"..." is not interpreted here.
    let may_be_analyze = |token: &Token<'_>| {
        let is_named = token.name().is_some_and(|name| matches!(&*name, "analyze" | "analyse"));
        is_named || token.kind == TokenKind::OtherString
    };
    if tokens.get(at).is_some_and(|token| token.is_symbol("(")) {
        while at < tokens.len() && !tokens[at].is_symbol(")") {
            // `ANALYZE false` counts as ANALYZE too: harmless.
            analyze |= may_be_analyze(&tokens[at]);
            at += 1;
        }
        at += 1;
    }
    while tokens.get(at).is_some_and(|token| is_analyze(token) || token.is_word("verbose")) {
        analyze |= is_analyze(&tokens[at]);
        at += 1;
    }
    match rest(tokens, at) {
        Some(query) => StatementKind::Explain { analyze, query },
        None => StatementKind::Unknown,
    }
}

/// The bytes from a token to the end of the statement.
fn rest(tokens: &[Token<'_>], at: usize) -> Option<Range<usize>> {
    Some(tokens.get(at)?.start..tokens.last()?.end())
}

/// `COPY t FROM`, `COPY t (a, b) TO`, `COPY (query) TO`.
fn copy_kind(tokens: &[Token<'_>]) -> StatementKind {
    let mut depth = 0;
    for token in tokens {
        if token.is_symbol("(") {
            depth += 1;
        } else if token.is_symbol(")") {
            depth -= 1;
        } else if depth == 0 && token.is_word("from") {
            return StatementKind::CopyIn;
        } else if depth == 0 && token.is_word("to") {
            let is_query = tokens.get(1).is_some_and(|token| token.is_symbol("("));
            return if is_query && may_write(tokens) { StatementKind::Write } else { StatementKind::CopyOut };
        }
    }
    StatementKind::Unknown
}

/// `DECLARE name [options] CURSOR [WITH HOLD] FOR query`.
fn declare_kind(tokens: &[Token<'_>]) -> StatementKind {
    let name = tokens.get(1).and_then(Token::name);
    let cursor = tokens.iter().skip(2).position(|token| token.is_word("cursor")).map(|index| index + 2);
    let (Some(name), Some(cursor)) = (name, cursor) else { return StatementKind::Unknown };
    let options = &tokens[cursor + 1..];
    let with_hold = options.len() > 2 && options[0].is_word("with") && options[1].is_word("hold");
    let without_hold = options.len() > 2 && options[0].is_word("without") && options[1].is_word("hold");
    let at = cursor + 1 + if with_hold || without_hold { 2 } else { 0 };
    if !tokens.get(at).is_some_and(|token| token.is_word("for")) {
        return StatementKind::Unknown;
    }
    match rest(tokens, at + 1) {
        Some(query) => StatementKind::DeclareCursor { name: name.into_owned(), with_hold, query },
        None => StatementKind::Unknown,
    }
}

/// State that the session follows by the statement's kind, or that no local answer depends on, needs no reason here.
fn opaque_kind(kind: &StatementKind, tokens: &[Token<'_>]) -> Option<String> {
    use StatementKind as K;
    if *kind == K::Unknown {
        return Some(unknown_kind(tokens).to_owned());
    }
    // What it runs was prepared by SQL, out of sight.
    if *kind == K::Execute {
        return Some("EXECUTE".to_owned());
    }
    // Names in the temporary schema win over all others (PostgreSQL: search_path).
    let is_temporary = |token: &Token<'_>| {
        token.name().is_some_and(|name| name == "temp" || name == "temporary" || name.starts_with("pg_temp"))
    };
    if *kind == K::Ddl && tokens.iter().any(is_temporary) {
        return Some("temporary objects".to_owned());
    }
    match kind {
        K::Set { value: SettingValue::Unknown, name, .. } if !REPORTED.contains(&name.as_str()) => {
            Some(format!("SET {name} to an unknown value"))
        }
        _ => None,
    }
}

/// What to call a statement that may do anything.
fn unknown_kind(tokens: &[Token<'_>]) -> &'static str {
    let is = |word: &str| tokens.first().is_some_and(|token| token.is_word(word));
    match () {
        () if is("do") => "DO",
        () if is("call") => "CALL",
        () if is("load") => "LOAD",
        () if is("set") || is("reset") => "SET of a form that is not followed",
        () => "unknown statement",
    }
}

/// Settings whose value upstream reports after each change (PostgreSQL: Asynchronous Operations).
const REPORTED: [&str; 6] =
    ["application_name", "client_encoding", "datestyle", "intervalstyle", "standard_conforming_strings", "timezone"];

/// Whether calls in the text are run by it (or stored and run unseen later).
fn reads_expressions(kind: &StatementKind) -> bool {
    use StatementKind as K;
    matches!(
        kind,
        K::Query | K::Write | K::Explain { .. } | K::CopyIn | K::CopyOut | K::DeclareCursor { .. } | K::Prepare { .. }
    )
}

/// Each name before an opening parenthesis, with the index of its token and whether it is a keyword that stands there without
/// calling anything, unless users have a function of its name. Names outside pg_catalog come with their schema, which no harmless
/// function has.
pub(super) fn called_names<'t>(tokens: &'t [Token<'_>]) -> impl Iterator<Item = (usize, String, bool)> + 't {
    let column_list_of = column_lists(tokens);
    tokens.windows(2).enumerate().filter_map(move |(index, pair)| {
        if !pair[1].is_symbol("(") {
            return None;
        }
        if pair[0].kind == TokenKind::OtherString {
            return Some((index, pair[0].text.to_owned(), false));
        }
        let name = pair[0].name()?;
        if index > 1 && tokens[index - 1].is_symbol(".") && !column_list_of.contains(&index) {
            let schema = tokens[index - 2].name().unwrap_or_default();
            let name = if schema == "pg_catalog" { name.into_owned() } else { format!("{schema}.{name}") };
            return Some((index, name, false));
        }
        let is_keyword = pair[0].kind == TokenKind::Word
            && (NOT_CALLED.contains(&*name) || (index > 0 && begins_count(&tokens[index - 1], &pair[0])));
        (!column_list_of.contains(&index)).then(|| (index, name.into_owned(), is_keyword))
    })
}

/// Tokens before a parenthesis that begins a list of columns: `INSERT INTO t (`, `WITH t (`, `AS t (`, `COPY t (`,
/// `WITH ORDINALITY t (`.
fn column_lists(tokens: &[Token<'_>]) -> HashSet<usize> {
    let mut found = HashSet::new();
    let distinct_lists = distinct_lists(tokens);
    for (index, token) in tokens.iter().enumerate() {
        let names_relation = token.is_word("into") || (index == 0 && token.is_word("copy"));
        let mut at = index + 1;
        if names_relation {
            while tokens.get(at + 1).is_some_and(|next| next.is_symbol(".")) {
                at += 2;
            }
            found.insert(at);
        } else {
            let precedes_alias = ["as", "with", "recursive", "ordinality"].iter().any(|word| token.is_word(word));
            let continues_with = token.is_symbol(",") && names_with_query(tokens, at);
            if precedes_alias || continues_with || closes_alias_position(tokens, index, &distinct_lists) {
                found.insert(at);
            }
        }
    }
    found
}

/// `name (columns) AS [[NOT] MATERIALIZED] (SELECT` at this token: after the first, a WITH query follows a comma. A function
/// in FROM may be followed by `AS (`, too, but then by names of columns, which are no reserved words.
fn names_with_query(tokens: &[Token<'_>], at: usize) -> bool {
    if !tokens.get(at + 1).is_some_and(|token| token.is_symbol("(")) {
        return false;
    }
    let mut rest = tokens[at + 1..].iter().skip_while(|token| !token.is_symbol(")")).skip(1);
    if !rest.next().is_some_and(|token| token.is_word("as")) {
        return false;
    }
    let mut rest = rest.skip_while(|token| token.is_word("not") || token.is_word("materialized"));
    let opens = rest.next().is_some_and(|token| token.is_symbol("("));
    opens && rest.next().is_some_and(|token| ["select", "with", "values"].iter().any(|word| token.is_word(word)))
}

/// `) alias (columns)` in FROM, `), name (columns) AS (` in WITH: after a closing parenthesis no function is called, but for that of
/// `DISTINCT ON (...)`.
fn closes_alias_position(tokens: &[Token<'_>], index: usize, distinct_lists: &HashSet<usize>) -> bool {
    tokens[index].is_symbol(")")
        && !distinct_lists.contains(&index)
        && tokens.get(index + 1).is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedName))
}

/// The parentheses that close the lists of `DISTINCT ON (...)`, behind which the select list begins.
pub(super) fn distinct_lists(tokens: &[Token<'_>]) -> HashSet<usize> {
    let mut found = HashSet::new();
    if !tokens.iter().any(|token| token.is_word("distinct")) {
        return found;
    }
    let mut open = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if token.is_symbol("(") {
            let is_list = index > 1 && tokens[index - 1].is_word("on") && tokens[index - 2].is_word("distinct");
            open.push(is_list);
        } else if token.is_symbol(")") && open.pop() == Some(true) {
            found.insert(index);
        }
    }
    found
}

/// `FETCH FIRST (count) ROWS`: FETCH is reserved.
pub(super) fn begins_count(before: &Token<'_>, token: &Token<'_>) -> bool {
    before.is_word("fetch") && (token.is_word("first") || token.is_word("next"))
}

/// Keywords that stand before a parenthesis without calling a function by that name.
static NOT_CALLED: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    "all and any array as asymmetric between by case check coalesce conflict cross cube distinct else end except exists filter from \
     full greatest group grouping having ilike in inner intersect into is join key lateral least left like limit natural \
     not nothing nullif offset on only or order over overlaps partition recursive returning right rollup row select \
     set sets similar some symmetric table tablesample then union unique update using values when where window with within \
     bigint bit boolean char character date dec decimal double float int integer interval national nchar numeric real \
     smallint time timestamp varchar varying timestamptz timetz text int2 int4 int8 float4 float8 bool bpchar varbit uuid json \
     jsonb bytea money current_time current_timestamp localtime localtimestamp extract normalize overlay position \
     substring treat trim xmlconcat xmlelement xmlexists xmlforest xmlparse xmlpi xmlroot xmlserialize xmltable cast \
     materialized copy explain analyze asc desc system bernoulli repeatable cursor for force_quote force_null to"
        .split_ascii_whitespace()
        .collect()
});

/// A function of pg_catalog that neither changes session state nor writes: the immutable and stable ones, and volatile ones
/// that were read. A user's function of the same name is the session's to rule out, which has the catalog ([`Classification::calls`]).
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(name)
}

static HARMLESS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| include_str!("builtin_functions.txt").split_ascii_whitespace().collect());

/// Functions of pg_catalog that write or lock something, but leave the session's settings alone.
pub(super) fn changes_no_setting(name: &str) -> bool {
    const NAMES: [&str; 8] =
        ["currval", "lastval", "nextval", "pg_notify", "pg_sleep_for", "pg_sleep_until", "setseed", "setval"];
    NAMES.contains(&name) || name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_")
}

/// FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE, FOR KEY SHARE. FOR is reserved.
fn mentions_row_lock(tokens: &[Token<'_>]) -> bool {
    tokens
        .windows(2)
        .any(|pair| pair[0].is_word("for") && ["update", "no", "share", "key"].iter().any(|word| pair[1].is_word(word)))
}

fn written_relations(kind: &StatementKind, tokens: &[Token<'_>]) -> Option<Vec<Vec<String>>> {
    let first = tokens.first()?;
    let skip_words = |mut at: usize, words: &[&str]| {
        while tokens.get(at).is_some_and(|token| words.iter().any(|word| token.is_word(word))) {
            at += 1;
        }
        at
    };
    let at = match kind {
        StatementKind::Write if first.is_word("insert") || first.is_word("merge") => skip_words(1, &["into", "only"]),
        StatementKind::Write if first.is_word("update") => skip_words(1, &["only"]),
        StatementKind::Write if first.is_word("delete") => skip_words(1, &["from", "only"]),
        StatementKind::CopyIn => 1,
        StatementKind::Query => return Some(Vec::new()),
        _ => return None,
    };
    // A WITH or another data-modifying part inside names more.
    let modifies_more =
        tokens.windows(2).any(|pair| pair[0].is_symbol("(") && WRITES.iter().any(|word| pair[1].is_word(word)));
    if modifies_more {
        return None;
    }
    let mut name = vec![tokens.get(at)?.name()?.into_owned()];
    let mut at = at + 1;
    while tokens.get(at).is_some_and(|token| token.is_symbol(".")) {
        name.push(tokens.get(at + 1)?.name()?.into_owned());
        at += 2;
    }
    Some(vec![name])
}

#[cfg(test)]
mod tests;
