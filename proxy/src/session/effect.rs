//! What a relayed statement may do to the session's state and to tables, judged from its text alone.
//!
//! Deliberately shallow and pessimistic: whatever is not recognised is [`Effect::Opaque`], which costs one probe before
//! the next local answer and never correctness. Reading further (functions in views, triggers) is the binder's affair.

use crate::session::state::Isolation;

/// What one statement may do, from harmless to unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads, or changes nothing that local answers depend on.
    Neutral,
    /// Opens a transaction block; None: at the default isolation level.
    Begin(Option<Isolation>),
    /// Ends one.
    End,
    /// Writes rows, or locks.
    Write,
    /// Drops prepared statements, among other things.
    Discard,
    /// Unknown: settings, role, temporary tables and rows may all have changed.
    Opaque,
}

impl Effect {
    /// Whether rows upstream may differ afterwards.
    pub fn may_write(self) -> bool {
        matches!(self, Self::Write | Self::Opaque)
    }
}

/// The effects of a query string, statement by statement.
pub fn effects(sql: &[u8]) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut tokens = Vec::new();
    let mut scanner = Scanner { rest: sql };
    loop {
        match scanner.next_token() {
            Some(Token::Semicolon) => effects.extend(judge(&std::mem::take(&mut tokens))),
            Some(token) => tokens.push(token),
            None => break,
        }
    }
    effects.extend(judge(&tokens));
    effects
}

/// The worst of a query string, for a place that holds one effect: anything but a single statement that is neither
/// neutral nor a write is judged by [`effects`].
pub fn worst(effects: &[Effect]) -> Effect {
    let rank = |effect: &Effect| match effect {
        Effect::Neutral => 0,
        Effect::Begin(_) => 1,
        Effect::End => 2,
        Effect::Write => 3,
        Effect::Discard => 4,
        Effect::Opaque => 5,
    };
    effects.iter().copied().max_by_key(rank).unwrap_or(Effect::Neutral)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a [u8]),
    /// A quoted identifier, also a string constant: never a keyword.
    Quoted,
    Open,
    Semicolon,
    Other,
}

/// PostgreSQL's lexical rules as far as needed to find words outside quotes and comments (SQL Syntax, Lexical Structure).
struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        loop {
            let (first, after) = self.rest.split_first()?;
            match first {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.rest = after,
                b'-' if after.first() == Some(&b'-') => {
                    let end = after.iter().position(|b| *b == b'\n').unwrap_or(after.len());
                    self.rest = &after[end..];
                }
                b'/' if after.first() == Some(&b'*') => self.skip_comment(),
                b'\'' | b'"' => {
                    self.skip_quoted(*first);
                    return Some(Token::Quoted);
                }
                b'$' => {
                    self.skip_dollar();
                    return Some(Token::Other);
                }
                b';' => {
                    self.rest = after;
                    return Some(Token::Semicolon);
                }
                b'(' => {
                    self.rest = after;
                    return Some(Token::Open);
                }
                _ if is_word(*first) && !first.is_ascii_digit() => {
                    let end = self.rest.iter().position(|b| !is_word(*b)).unwrap_or(self.rest.len());
                    let (word, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    // E'..' strings have backslash escapes: a quote inside may be escaped.
                    if word.eq_ignore_ascii_case(b"e") && rest.first() == Some(&b'\'') {
                        self.skip_escaped();
                        return Some(Token::Quoted);
                    }
                    return Some(Token::Word(word));
                }
                _ => {
                    self.rest = after;
                    return Some(Token::Other);
                }
            }
        }
    }

    fn skip_comment(&mut self) {
        let mut depth = 0;
        while let Some((first, after)) = self.rest.split_first() {
            let pair = (*first, after.first().copied());
            if pair == (b'/', Some(b'*')) || pair == (b'*', Some(b'/')) {
                depth += if *first == b'/' { 1 } else { -1 };
                self.rest = &after[1..];
                if depth == 0 {
                    return;
                }
            } else {
                self.rest = after;
            }
        }
    }

    /// A doubled quote is two quoted pieces side by side, which is as good.
    fn skip_quoted(&mut self, quote: u8) {
        let body = &self.rest[1..];
        self.rest = body.iter().position(|b| *b == quote).map_or(&[], |end| &body[end + 1..]);
    }

    fn skip_escaped(&mut self) {
        let mut at = 1;
        while at < self.rest.len() && self.rest[at] != b'\'' {
            at += if self.rest[at] == b'\\' { 2 } else { 1 };
        }
        self.rest = self.rest.get(at + 1..).unwrap_or_default();
    }

    /// `$tag$ ... $tag$`, or just `$1`.
    fn skip_dollar(&mut self) {
        let after = &self.rest[1..];
        let tag_length = after.iter().position(|b| !is_word(*b) || *b == b'$').unwrap_or(after.len());
        if after.get(tag_length) != Some(&b'$') || after.first().is_some_and(u8::is_ascii_digit) {
            self.rest = after;
            return;
        }
        let (tag, body) = self.rest.split_at(tag_length + 2);
        self.rest = body.windows(tag.len()).position(|w| w == tag).map_or(&[], |end| &body[end + tag.len()..]);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn judge(tokens: &[Token<'_>]) -> Option<Effect> {
    let is = |index: usize, word: &str| matches!(tokens.get(index), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word.as_bytes()));
    // Leading parentheses do not change what a SELECT is.
    let first = tokens.iter().position(|token| *token != Token::Open)?;
    let has = |word: &str| (first..tokens.len()).any(|index| is(index, word));
    let Some(Token::Word(verb)) = tokens.get(first) else {
        return Some(Effect::Opaque);
    };
    let verb = verb.to_ascii_lowercase();
    // INSERT INTO table (columns): the only list that follows a user's name without being a call.
    let column_list = (0..tokens.len()).find(|index| is(*index, "into")).map_or(0, |into| into + 1);
    let is_column_list =
        |index: usize| column_list > 0 && is(first, "insert") && (column_list..=column_list + 2).contains(&index);
    let calls_only_known =
        || calls(tokens).all(|(index, word)| is_column_list(index) || is_harmless_before_parenthesis(word));
    Some(match verb.as_slice() {
        b"begin" => begin(tokens, first + 1),
        b"start" if is(first + 1, "transaction") => begin(tokens, first + 2),
        b"commit" | b"end" | b"abort" if !has("chain") && !has("prepared") => Effect::End,
        b"rollback" if is(first + 1, "to") || is(first + 2, "to") => Effect::Neutral,
        b"rollback" if !has("chain") && !has("prepared") => Effect::End,
        b"commit" | b"rollback" if has("prepared") => Effect::Write,
        b"savepoint" | b"release" | b"show" | b"fetch" | b"move" | b"close" | b"listen" | b"unlisten" | b"notify" => {
            Effect::Neutral
        }
        b"select" | b"values" | b"table" | b"with" => {
            // Data-modifying statements stand in WITH only; FOR UPDATE and its kin lock.
            let modifies = has("with") && ["insert", "update", "delete", "merge"].into_iter().any(has);
            let locks = (first..tokens.len())
                .any(|at| is(at, "for") && ["update", "share", "no", "key"].into_iter().any(|word| is(at + 1, word)));
            let writes = modifies || locks || has("into");
            match (calls_only_known(), writes) {
                (false, _) => Effect::Opaque,
                // SELECT INTO may make a temporary table.
                (true, true) if has("into") && !has("insert") => Effect::Opaque,
                (true, true) => Effect::Write,
                (true, false) => Effect::Neutral,
            }
        }
        b"insert" | b"update" | b"delete" | b"merge" | b"truncate" | b"lock" | b"copy" if calls_only_known() => {
            Effect::Write
        }
        b"vacuum" | b"analyze" | b"analyse" | b"checkpoint" | b"reindex" | b"comment" => Effect::Write,
        b"discard" | b"deallocate" => Effect::Discard,
        _ => Effect::Opaque,
    })
}

fn begin(tokens: &[Token<'_>], from: usize) -> Effect {
    let words: Vec<Vec<u8>> = tokens
        .get(from..)
        .unwrap_or_default()
        .iter()
        .filter_map(|token| match token {
            Token::Word(word) => Some(word.to_ascii_lowercase()),
            Token::Quoted | Token::Open | Token::Semicolon | Token::Other => None,
        })
        .collect();
    let Some(level) = words.iter().position(|word| word == b"level") else {
        return Effect::Begin(None);
    };
    let level = words.get(level + 1..).unwrap_or_default();
    Effect::Begin(Some(match (level.first().map(Vec::as_slice), level.get(1).map(Vec::as_slice)) {
        (Some(b"read"), Some(b"committed")) => Isolation::ReadCommitted,
        (Some(b"read"), Some(b"uncommitted")) => Isolation::ReadUncommitted,
        (Some(b"repeatable"), _) => Isolation::RepeatableRead,
        _ => Isolation::Serializable,
    }))
}

/// The words that stand right before an opening parenthesis, and where; a quoted name there is `"`.
fn calls<'a>(tokens: &'a [Token<'a>]) -> impl Iterator<Item = (usize, &'a [u8])> {
    tokens.windows(2).enumerate().filter_map(|(index, pair)| match pair {
        [Token::Word(word), Token::Open] => Some((index, *word)),
        [Token::Quoted, Token::Open] => Some((index, b"\"".as_slice())),
        _ => None,
    })
}

/// Keywords of the grammar, types, and built-in functions that read and write no state. A user's function of the same
/// name hides here; it would have to change settings to matter.
fn is_harmless_before_parenthesis(word: &[u8]) -> bool {
    const KNOWN: &[&str] = &[
        "abs",
        "all",
        "and",
        "any",
        "array",
        "as",
        "avg",
        "between",
        "bool_and",
        "bool_or",
        "by",
        "case",
        "cast",
        "ceil",
        "ceiling",
        "char",
        "coalesce",
        "concat",
        "count",
        "cross",
        "cube",
        "date",
        "date_part",
        "date_trunc",
        "dense_rank",
        "distinct",
        "else",
        "except",
        "exists",
        "extract",
        "filter",
        "first_value",
        "float",
        "floor",
        "from",
        "greatest",
        "group",
        "having",
        "ilike",
        "in",
        "initcap",
        "inner",
        "intersect",
        "interval",
        "join",
        "key",
        "lag",
        "last_value",
        "lateral",
        "lead",
        "least",
        "left",
        "length",
        "like",
        "limit",
        "ln",
        "lower",
        "lpad",
        "ltrim",
        "max",
        "min",
        "mod",
        "not",
        "now",
        "ntile",
        "nullif",
        "numeric",
        "offset",
        "on",
        "or",
        "over",
        "partition",
        "percentile_cont",
        "position",
        "power",
        "primary",
        "rank",
        "recursive",
        "replace",
        "returning",
        "right",
        "rollup",
        "round",
        "row",
        "row_number",
        "rpad",
        "rtrim",
        "select",
        "set",
        "sets",
        "sign",
        "some",
        "split_part",
        "sqrt",
        "strpos",
        "substr",
        "substring",
        "sum",
        "table",
        "then",
        "time",
        "timestamp",
        "timestamptz",
        "to_char",
        "to_date",
        "to_timestamp",
        "trim",
        "trunc",
        "union",
        "unique",
        "upper",
        "using",
        "values",
        "varchar",
        "version",
        "when",
        "where",
        "window",
        "with",
        "within",
    ];
    let lower = word.to_ascii_lowercase();
    KNOWN.binary_search_by(|known| known.as_bytes().cmp(&lower)).is_ok()
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
            ("select set_config('search_path', 'x', false)", &[Effect::Opaque]),
            ("select \"Set_It\"(1)", &[Effect::Opaque]),
            ("select * from t for update", &[Effect::Write]),
            ("select * into x from t", &[Effect::Opaque]),
            ("with x as (insert into t values (1) returning a) select * from x", &[Effect::Write]),
            ("with x as (insert into t(a) values (1) returning a) select * from x", &[Effect::Opaque]),
            ("BEGIN", &[Effect::Begin(None)]),
            ("begin isolation level repeatable read", &[Effect::Begin(Some(Isolation::RepeatableRead))]),
            (
                "START TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE",
                &[Effect::Begin(Some(Isolation::Serializable))],
            ),
            ("/* a; /* b */ */ COMMIT -- ; x", &[Effect::End]),
            ("rollback to savepoint s", &[Effect::Neutral]),
            ("rollback", &[Effect::End]),
            ("commit and chain", &[Effect::Opaque]),
            ("insert into t values (1, 'a;b', $x$;$x$)", &[Effect::Write]),
            ("insert into s.t (a, b) values (1, 2)", &[Effect::Write]),
            ("insert into t (a) values (f(1))", &[Effect::Opaque]),
            ("update t set a = lower(b)", &[Effect::Write]),
            ("update t set a = f(b)", &[Effect::Opaque]),
            ("SET x = 1", &[Effect::Opaque]),
            ("do $$ begin; end $$", &[Effect::Opaque]),
            ("DISCARD ALL", &[Effect::Discard]),
            ("begin; select 1; end", &[Effect::Begin(None), Effect::Neutral, Effect::End]),
            ("select E'a\\'b;', 'x'", &[Effect::Neutral]),
            ("", &[]),
            (" ; ", &[]),
        ];
        for (sql, expected) in cases {
            assert_eq!(effects(sql.as_bytes()), *expected, "{sql}");
        }
    }

    #[test]
    fn the_known_words_are_sorted_and_any_bytes_are_scanned() {
        assert!(is_harmless_before_parenthesis(b"WITHIN") && is_harmless_before_parenthesis(b"abs"));
        for text in [&b"'"[..], b"$a$", b"e'\\", b"/*", b"--", b"\"\"\"", b"$", b"E'", b"$$x"] {
            let _ = effects(text);
        }
    }
}
