//! What a client says to freshet itself: `SHOW freshet.last`, `SET freshet.freshness = ...`, `SELECT ... FROM
//! freshet.tables`. Read by a small grammar of its own and answered like anything else, in both query protocols.
//!
//! SELECT takes one table with simple conditions, ORDER BY and LIMIT; PostgreSQL's grammar is upstream's affair.

mod call;

use freshet_config::FreshnessMode;
use freshet_engine::reason::UpstreamReason;

use crate::freshness::pins::Choice;
use crate::session::answer::{Account, Reply, TextColumn, TextKind, TextTable};
use crate::session::state::RouteSetting;
use crate::session::tracker::{OwnChange, truth};
use crate::session::{Last, answer};
use crate::statistics::Answered;
use crate::wire::error::{ErrorFields, FAILED_TRANSACTION, write_warning};
use crate::wire::extended::{format_at, write_parameter_description};
use crate::wire::query::{Field, write_command_complete, write_data_row, write_row_description, write_value};

/// A statement for freshet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    ShowLast,
    ShowFreshness,
    ShowRoute,
    ShowSnapshot,
    ShowSnapshotStrict,
    /// None: back to the default.
    SetFreshness(Option<FreshnessMode>),
    SetRoute(Option<RouteSetting>),
    /// `latest` or a token; None: the session is released.
    SetSnapshot(Option<String>),
    SetSnapshotStrict(Option<bool>),
    /// One of those before, by a call of set_config.
    SetConfig(Box<Self>),
    /// One that shows a setting, by a call of current_setting.
    CurrentSetting(Box<Self>),
    Select(Select),
}

/// The command tag of a [`Request`] that returns no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Set,
    /// Until the end of the transaction.
    SetLocal,
    Reset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    pub table: String,
    columns: Vec<SelectItem>,
    conditions: Vec<Condition>,
    /// Column and whether descending.
    order: Vec<(String, bool)>,
    limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SelectItem {
    All,
    Column { name: String, label: String },
    Count { label: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    column: String,
    is_equal: bool,
    value: String,
}

/// What is wrong with it, as PostgreSQL would say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    sqlstate: &'static str,
    message: String,
    hint: Option<&'static str>,
}

impl Refused {
    fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), hint: None }
    }

    pub fn no_table(schema: &str, table: &str) -> Self {
        Self::new("42P01", format!("relation \"{schema}.{table}\" does not exist"))
    }

    /// A unit that is answered nowhere: upstream does not know freshet's tables, freshet not this form.
    pub fn form() -> Self {
        Self::new("0A000", "freshet's own settings and tables take simple units of messages only")
    }

    /// A snapshot that cannot be taken, or is not there.
    pub fn snapshot(asked: &str, reason: &UpstreamReason) -> Self {
        match reason {
            UpstreamReason::Snapshot(_) => Self {
                hint: Some("Snapshots end after freshness.snapshot_age_max_ms, and belong to the role that took them."),
                ..Self::new("22023", format!("invalid snapshot identifier: \"{asked}\""))
            },
            UpstreamReason::OverBudget(which) => {
                Self::new("53400", format!("as many snapshots are in use as {which} allows"))
            }
            reason => Self::new("55000", format!("freshet cannot take a snapshot now: {reason}")),
        }
    }

    /// What `freshet.snapshot_strict` refuses.
    pub fn not_from_snapshot(reason: &UpstreamReason) -> Self {
        Self {
            hint: Some("SET freshet.snapshot_strict = off lets PostgreSQL answer, of its own moment."),
            ..Self::new("0A000", format!("freshet cannot answer this from the pinned snapshot: {reason}"))
        }
    }

    pub fn failed_transaction() -> Self {
        Self::new(FAILED_TRANSACTION.sqlstate, FAILED_TRANSACTION.message)
    }

    pub fn fields(&self) -> ErrorFields<'_> {
        ErrorFields { hint: self.hint, ..ErrorFields::error(self.sqlstate, &self.message) }
    }
}

/// Whether a query string is addressed to freshet. Quick to say no.
pub fn is_for_freshet(sql: &[u8], schema: &str) -> bool {
    read_if_addressed(sql, schema).is_some()
}

/// [`read`], quick to say no.
pub fn read_if_addressed(sql: &[u8], schema: &str) -> Option<Result<(Request, Verb), Refused>> {
    let needle = schema.as_bytes();
    let first = needle.first()?;
    let mut starts = memchr::memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), sql);
    let is_mentioned =
        starts.any(|at| sql.get(at..at + needle.len()).is_some_and(|word| word.eq_ignore_ascii_case(needle)));
    if is_mentioned { read(sql, schema) } else { None }
}

/// Reads a query string; None if it is upstream's.
pub fn read(sql: &[u8], schema: &str) -> Option<Result<(Request, Verb), Refused>> {
    let tokens = tokens(std::str::from_utf8(sql).ok()?)?;
    let mut parser = Parser { tokens: &tokens, schema };
    let first = parser.word()?;
    match first {
        "show" => {
            let name = parser.own_name()?;
            Some(parser.end().and_then(|()| show(&name)).map(|request| (request, Verb::Set)))
        }
        "set" => {
            let is_local = !parser.accept("session") && parser.accept("local");
            let verb = if is_local { Verb::SetLocal } else { Verb::Set };
            let name = parser.own_name()?;
            Some(parser.value().and_then(|value| set(&name, value.as_deref())).map(|request| (request, verb)))
        }
        "reset" => {
            let name = parser.own_name()?;
            Some(parser.end().and_then(|()| set(&name, None)).map(|request| (request, Verb::Reset)))
        }
        "table" => {
            let table = parser.own_name()?;
            let select = Select { table, ..Select::all() };
            Some(parser.end().map(|()| (Request::Select(select), Verb::Set)))
        }
        "select" => {
            let Some(from) = clause(&tokens) else { return call::read(&mut parser) };
            Parser { tokens: tokens.get(from + 1..)?, schema }.own_name()?;
            Some(parser.select().map(|select| (Request::Select(select), Verb::Set)))
        }
        _ => None,
    }
}

/// Where FROM stands that begins the clause: an application may have a table of this name, as in `extract(day FROM freshet.d)`.
fn clause(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().enumerate().position(|(at, token)| {
        match token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth -= 1,
            _ => {}
        }
        let is_of_distinct = || at.checked_sub(1).is_some_and(|at| tokens[at] == Token::Word("distinct".into()));
        depth == 0 && *token == Token::Word("from".into()) && !is_of_distinct()
    })
}

fn show(name: &str) -> Result<Request, Refused> {
    match name {
        "last" => Ok(Request::ShowLast),
        "freshness" => Ok(Request::ShowFreshness),
        "route" => Ok(Request::ShowRoute),
        "snapshot" => Ok(Request::ShowSnapshot),
        "snapshot_strict" => Ok(Request::ShowSnapshotStrict),
        _ => Err(unknown_setting(name)),
    }
}

fn set(name: &str, value: Option<&str>) -> Result<Request, Refused> {
    let invalid = |value: &str, hint: &'static str| Refused {
        hint: Some(hint),
        ..Refused::new("22023", format!("invalid value for parameter \"freshet.{name}\": \"{value}\""))
    };
    match (name, value) {
        ("freshness", None) => Ok(Request::SetFreshness(None)),
        ("freshness", Some("standby")) => {
            Err(Refused::new("0A000", "freshet.freshness = standby can be set for the whole server only"))
        }
        ("freshness", Some(value)) => FreshnessMode::parse(value)
            .map(|mode| Request::SetFreshness(Some(mode)))
            .ok_or_else(|| invalid(value, "Available values: exact, session.")),
        ("route", None) => Ok(Request::SetRoute(None)),
        ("route", Some(value)) => RouteSetting::parse(value)
            .map(|route| Request::SetRoute(Some(route)))
            .ok_or_else(|| invalid(value, "Available values: auto, local, relay.")),
        ("snapshot", value) => {
            Ok(Request::SetSnapshot(value.filter(|v| Choice::read(v).is_some()).map(str::to_string)))
        }
        ("snapshot_strict", None) => Ok(Request::SetSnapshotStrict(None)),
        ("snapshot_strict", Some(value)) => {
            truth(value).map(|is| Request::SetSnapshotStrict(Some(is))).ok_or_else(|| {
                Refused::new("22023", "parameter \"freshet.snapshot_strict\" requires a Boolean value".to_string())
            })
        }
        ("last", _) => Err(Refused::new("55P02", "parameter \"freshet.last\" cannot be changed")),
        _ => Err(unknown_setting(name)),
    }
}

fn unknown_setting(name: &str) -> Refused {
    Refused::new("42704", format!("unrecognized configuration parameter \"freshet.{name}\""))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// An identifier or keyword, in lower case.
    Word(String),
    /// A string or number constant, or a quoted identifier's text.
    Text(String),
    Symbol(char),
}

/// None where the text uses what this grammar has no need of.
fn tokens(sql: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if rest.starts_with("--") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/")?.1;
        } else if first == '\'' || first == '"' {
            let (text, after) = quoted(&rest[1..], first)?;
            tokens.push(if first == '"' { Token::Word(text) } else { Token::Text(text) });
            rest = after;
        } else if first.is_ascii_digit() || first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let is_number = first.is_ascii_digit();
            tokens.push(if is_number { Token::Text(word.to_string()) } else { Token::Word(word.to_lowercase()) });
            rest = after;
        } else {
            tokens.push(Token::Symbol(first));
            rest = &rest[first.len_utf8()..];
        }
    }
    while tokens.last() == Some(&Token::Symbol(';')) {
        tokens.pop();
    }
    Some(tokens)
}

/// Text up to the closing quote, doubled quotes made single, and what follows.
fn quoted(body: &str, quote: char) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut rest = body;
    loop {
        let (piece, after) = rest.split_once(quote)?;
        text.push_str(piece);
        if !after.starts_with(quote) {
            return Some((text, after));
        }
        text.push(quote);
        rest = &after[1..];
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    schema: &'a str,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn word(&mut self) -> Option<&'a str> {
        match self.tokens.first()? {
            Token::Word(word) => {
                self.next();
                Some(word)
            }
            Token::Text(_) | Token::Symbol(_) => None,
        }
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.tokens.first() == Some(&Token::Word(word.to_string()));
        if found {
            self.next();
        }
        found
    }

    fn accept_symbol(&mut self, symbol: char) -> bool {
        let found = self.tokens.first() == Some(&Token::Symbol(symbol));
        if found {
            self.next();
        }
        found
    }

    /// `freshet.NAME`.
    fn own_name(&mut self) -> Option<String> {
        let is_ours = self.word()? == self.schema && self.accept_symbol('.');
        if is_ours { self.word().map(str::to_string) } else { None }
    }

    fn end(&self) -> Result<(), Refused> {
        match self.tokens.first() {
            None => Ok(()),
            Some(Token::Word(text) | Token::Text(text)) => Err(syntax_error(text)),
            Some(Token::Symbol(symbol)) => Err(syntax_error(&symbol.to_string())),
        }
    }

    /// `= value` or `TO value`; None for DEFAULT.
    fn value(&mut self) -> Result<Option<String>, Refused> {
        if !self.accept_symbol('=') && !self.accept("to") {
            return Err(syntax_error("SET"));
        }
        let value = match self.next() {
            Some(Token::Word(word)) if word == "default" => None,
            Some(Token::Word(text) | Token::Text(text)) => Some(text.clone()),
            Some(Token::Symbol(_)) | None => return Err(syntax_error("SET")),
        };
        self.end().map(|()| value)
    }

    fn select(&mut self) -> Result<Select, Refused> {
        let mut columns = Vec::new();
        loop {
            columns.push(self.item()?);
            if !self.accept_symbol(',') {
                break;
            }
        }
        if !self.accept("from") {
            return Err(too_much());
        }
        let table = self.own_name().ok_or_else(too_much)?;
        let mut select = Select { table, columns, conditions: Vec::new(), order: Vec::new(), limit: None };
        if self.accept("where") {
            loop {
                select.conditions.push(self.condition()?);
                if !self.accept("and") {
                    break;
                }
            }
        }
        if self.accept("order") && self.accept("by") {
            loop {
                let column = self.word().ok_or_else(too_much)?.to_string();
                let descending = self.accept("desc");
                if !descending {
                    self.accept("asc");
                }
                select.order.push((column, descending));
                if !self.accept_symbol(',') {
                    break;
                }
            }
        }
        if self.accept("limit") {
            let Some(Token::Text(number)) = self.next() else { return Err(too_much()) };
            select.limit = Some(number.parse().map_err(|_| too_much())?);
        }
        if self.tokens.is_empty() { Ok(select) } else { Err(too_much()) }
    }

    fn item(&mut self) -> Result<SelectItem, Refused> {
        if self.accept_symbol('*') {
            return Ok(SelectItem::All);
        }
        let name = self.word().ok_or_else(too_much)?.to_string();
        if name == "count" && self.accept_symbol('(') {
            if !(self.accept_symbol('*') && self.accept_symbol(')')) {
                return Err(too_much());
            }
            return Ok(SelectItem::Count { label: self.label()?.unwrap_or(name) });
        }
        let label = self.label()?.unwrap_or_else(|| name.clone());
        Ok(SelectItem::Column { name, label })
    }

    fn label(&mut self) -> Result<Option<String>, Refused> {
        match self.accept("as") {
            true => self.word().map(|word| Some(word.to_string())).ok_or_else(too_much),
            false => Ok(None),
        }
    }

    fn condition(&mut self) -> Result<Condition, Refused> {
        let column = self.word().ok_or_else(too_much)?.to_string();
        let is_equal = match self.next() {
            Some(Token::Symbol('=')) => true,
            Some(Token::Symbol('<')) if self.accept_symbol('>') => false,
            Some(Token::Symbol('!')) if self.accept_symbol('=') => false,
            _ => return Err(too_much()),
        };
        match self.next() {
            Some(Token::Text(value)) => Ok(Condition { column, is_equal, value: value.clone() }),
            Some(Token::Word(value)) if value == "true" || value == "false" => {
                Ok(Condition { column, is_equal, value: value.clone() })
            }
            _ => Err(too_much()),
        }
    }
}

fn syntax_error(near: &str) -> Refused {
    Refused::new("42601", format!("syntax error at or near \"{near}\""))
}

fn too_much() -> Refused {
    Refused {
        hint: Some("SELECT columns or count(*) FROM one table WHERE column = 'value' AND ... ORDER BY columns LIMIT n"),
        ..Refused::new("0A000", "freshet's own tables take simple queries only")
    }
}

impl Select {
    /// The table as it is.
    pub fn all() -> Self {
        Self { table: String::new(), columns: vec![SelectItem::All], conditions: vec![], order: vec![], limit: None }
    }

    /// Filters, sorts and projects the table's rows.
    pub fn run(&self, table: &TextTable) -> Result<TextTable, Refused> {
        let position = |name: &str| {
            let found = table.columns.iter().position(|column| column.name == name);
            found.ok_or_else(|| Refused::new("42703", format!("column \"{name}\" does not exist")))
        };
        let mut rows: Vec<&Vec<Option<String>>> = table.rows.iter().collect();
        for condition in &self.conditions {
            let column = position(&condition.column)?;
            // A comparison with NULL is not true.
            rows.retain(|row| {
                row.get(column).and_then(Option::as_ref).is_some_and(|v| (*v == condition.value) == condition.is_equal)
            });
        }
        for (name, descending) in self.order.iter().rev() {
            let column = position(name)?;
            let numeric =
                table.columns.get(column).is_some_and(|c| matches!(c.kind, TextKind::Int8 | TextKind::Float8));
            rows.sort_by(|left, right| {
                let (left, right) =
                    (left.get(column).and_then(Option::as_ref), right.get(column).and_then(Option::as_ref));
                // NULLS LAST ascending, as in PostgreSQL.
                let order = match (left, right) {
                    (Some(left), Some(right)) if numeric => {
                        let number = |text: &String| text.parse::<f64>().unwrap_or_default();
                        number(left).total_cmp(&number(right))
                    }
                    (Some(left), Some(right)) => left.cmp(right),
                    (left, right) => left.is_none().cmp(&right.is_none()),
                };
                if *descending { order.reverse() } else { order }
            });
        }
        if let [SelectItem::Count { .. }] = self.columns.as_slice() {
            let columns = vec![TextColumn::number("count")];
            return Ok(TextTable { columns, rows: vec![vec![Some(rows.len().to_string())]] });
        }
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        let mut picked = Vec::new();
        for item in &self.columns {
            match item {
                SelectItem::All => picked.extend(0..table.columns.len()),
                SelectItem::Column { name, .. } => picked.push(position(name)?),
                SelectItem::Count { .. } => return Err(too_much()),
            }
        }
        let columns = picked.iter().filter_map(|index| table.columns.get(*index).copied()).collect();
        let pick = |row: &Vec<Option<String>>| picked.iter().map(|index| row.get(*index).cloned().flatten()).collect();
        Ok(TextTable { columns, rows: rows.into_iter().map(pick).collect() })
    }

    /// The names that AS gave, by position; None where the column's own name stands.
    fn labels(&self) -> Vec<Option<&str>> {
        self.columns
            .iter()
            .map(|item| match item {
                SelectItem::All => None,
                SelectItem::Column { label, .. } | SelectItem::Count { label } => Some(label.as_str()),
            })
            .collect()
    }
}

/// The one row of `SHOW freshet.last`.
pub fn last_table(last: &Last) -> TextTable {
    let columns = vec![
        TextColumn::text("route"),
        TextColumn::text("reason"),
        TextColumn::text("freshness"),
        TextColumn::text("lsn"),
        TextColumn::number("wait_us"),
        TextColumn::number("elapsed_us"),
        TextColumn::number("rows"),
    ];
    let Account { route, freshness, lsn, wait_us, rows, is_query: _ } = &last.account;
    let route =
        if last.elapsed_us == 0 && *route == Answered::Relay && last.reason.is_none() { "" } else { route.name() };
    let row = vec![
        route.to_string(),
        last.reason.as_ref().map(ToString::to_string).unwrap_or_default(),
        (*freshness).to_string(),
        lsn.map_or_else(String::new, |lsn| lsn.to_string()),
        wait_us.to_string(),
        last.elapsed_us.to_string(),
        rows.to_string(),
    ];
    TextTable { columns, rows: vec![row.into_iter().map(Some).collect()] }
}

/// One value under one name, as SHOW returns it.
pub fn single_value(name: &'static str, value: &str) -> TextTable {
    let columns = vec![TextColumn::text(name)];
    TextTable { columns, rows: vec![vec![Some(value.to_string())]] }
}

/// A reply of rows, in the formats that the unit asks for.
pub fn table_reply(unit: &answer::Unit<'_>, table: &TextTable, select: Option<&Select>) -> Reply {
    let formats = unit.bind.map_or(&[][..], |bind| bind.result_formats);
    let labels = select.map(Select::labels).unwrap_or_default();
    let label = |index: usize| match labels.get(index) {
        // `*` stands for several columns: labels do not line up behind it.
        Some(Some(label)) if labels.iter().all(Option::is_some) => *label,
        _ => table.columns.get(index).map_or("", |column| column.name),
    };
    let fields = |formats: &[u8]| {
        let field = |(index, column): (usize, &TextColumn)| {
            let (type_oid, type_length) = match column.kind {
                TextKind::Text => (25, -1),
                TextKind::Int8 => (20, 8),
                TextKind::Float8 => (701, 8),
                TextKind::Bool => (16, 1),
            };
            let format = format_at(formats, index);
            let name = label(index).as_bytes();
            Field { name, table_oid: 0, attnum: 0, type_oid, type_length, typmod: -1, format }
        };
        let fields: Vec<Field<'_>> = table.columns.iter().enumerate().map(field).collect();
        let mut out = Vec::new();
        write_row_description(&mut out, fields.into_iter());
        out
    };
    let mut rows = Vec::new();
    for row in &table.rows {
        write_data_row(&mut rows, table.columns.len(), |out| {
            for (index, column) in table.columns.iter().enumerate() {
                let value = row.get(index).and_then(Option::as_deref);
                let binary = (format_at(formats, index) == 1).then(|| value.map(|text| to_binary(column.kind, text)));
                match binary {
                    Some(bytes) => write_value(out, bytes.as_deref()),
                    None => write_value(out, value.map(str::as_bytes)),
                }
            }
        });
    }
    let tag = if select.is_some() { format!("SELECT {}", table.rows.len()) } else { "SHOW".to_string() };
    write_command_complete(&mut rows, &tag);
    let mut parameters = Vec::new();
    write_parameter_description(&mut parameters, &[]);
    Reply {
        parameters: parameters.into(),
        statement_columns: fields(&[]).into(),
        columns: fields(formats).into(),
        rows: vec![rows.into()],
        account: Account::default(),
    }
}

fn to_binary(kind: TextKind, text: &str) -> Vec<u8> {
    match kind {
        TextKind::Text => text.as_bytes().to_vec(),
        TextKind::Int8 => text.parse::<i64>().unwrap_or_default().to_be_bytes().to_vec(),
        TextKind::Float8 => text.parse::<f64>().unwrap_or_default().to_be_bytes().to_vec(),
        TextKind::Bool => vec![u8::from(text == "true" || text == "t")],
    }
}

impl Request {
    /// It changes one of freshet's settings.
    pub fn sets(&self) -> bool {
        matches!(self, Self::SetConfig(_)) || self.change().is_some() || self.wants_snapshot()
    }

    /// The new value of a setting that needs nothing else.
    pub fn change(&self) -> Option<OwnChange> {
        match self {
            Self::SetFreshness(mode) => Some(OwnChange::Freshness(*mode)),
            Self::SetRoute(route) => Some(OwnChange::Route(*route)),
            Self::SetSnapshot(None) => Some(OwnChange::Snapshot(None)),
            Self::SetSnapshotStrict(is_strict) => Some(OwnChange::SnapshotStrict(*is_strict)),
            _ => None,
        }
    }

    /// The setting that it shows or sets, with its prefix.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            Self::ShowFreshness | Self::SetFreshness(_) => Some("freshet.freshness"),
            Self::ShowRoute | Self::SetRoute(_) => Some("freshet.route"),
            Self::ShowSnapshot | Self::SetSnapshot(_) => Some("freshet.snapshot"),
            Self::ShowSnapshotStrict | Self::SetSnapshotStrict(_) => Some("freshet.snapshot_strict"),
            Self::SetConfig(request) | Self::CurrentSetting(request) => request.setting(),
            Self::ShowLast | Self::Select(_) => None,
        }
    }

    /// A snapshot must be taken, or found, for the session's role.
    pub fn wants_snapshot(&self) -> bool {
        match self {
            Self::SetSnapshot(Some(_)) => true,
            Self::SetConfig(request) => request.wants_snapshot(),
            _ => false,
        }
    }
}

/// A reply without rows. `is_in_block`: SET LOCAL has an effect.
pub fn tag_reply(verb: Verb, is_in_block: bool) -> Reply {
    let mut rows = Vec::new();
    if verb == Verb::SetLocal && !is_in_block {
        write_warning(&mut rows, "25P01", "SET LOCAL can only be used in transaction blocks");
    }
    write_command_complete(&mut rows, if verb == Verb::Reset { "RESET" } else { "SET" });
    let mut parameters = Vec::new();
    write_parameter_description(&mut parameters, &[]);
    Reply { parameters: parameters.into(), rows: vec![rows.into()], ..Reply::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(sql: &str) -> Option<Result<Request, Refused>> {
        read(sql.as_bytes(), "freshet").map(|found| found.map(|(request, _)| request))
    }

    #[test]
    fn what_is_for_freshet_is_told_from_what_is_not() {
        assert_eq!(request("SHOW freshet.last"), Some(Ok(Request::ShowLast)));
        assert_eq!(request("show Freshet . last ;"), Some(Ok(Request::ShowLast)));
        let session = Some(Ok(Request::SetFreshness(Some(FreshnessMode::Session))));
        assert_eq!(request("SET freshet.freshness = 'session'"), session);
        assert_eq!(request("set session freshet.freshness to session"), session);
        assert_eq!(request("RESET freshet.freshness"), Some(Ok(Request::SetFreshness(None))));
        assert_eq!(request("SET freshet.route = DEFAULT"), Some(Ok(Request::SetRoute(None))));
        for other in [
            "SELECT 'freshet.last'",
            "SHOW search_path",
            "SELECT freshet FROM t",
            "SET a.freshet = 1",
            "",
            "SELECT * FROM freshet",
            "SELECT set_config('freshet.route', $1, true)",
            "SELECT set_config('freshet.route', 'relay', true), 1",
            "SELECT lower('freshet.route')",
            // A table of that name.
            "SELECT extract(day FROM freshet.d) FROM freshet",
            "SELECT 1 IS DISTINCT FROM freshet.id FROM freshet",
            "SELECT trim(both 'x' FROM freshet.s) FROM public.freshet",
        ] {
            assert_eq!(request(other), None, "{other}");
            assert!(!is_for_freshet(other.as_bytes(), "freshet"));
        }
        assert!(is_for_freshet(b"select * from FRESHET.tables", "freshet"));
        let by_call = |request| Some(Ok(Request::SetConfig(Box::new(request))));
        assert_eq!(
            request("SELECT pg_catalog.set_config('freshet.route', 'relay', false)"),
            by_call(Request::SetRoute(Some(RouteSetting::Relay)))
        );
        assert_eq!(request("select set_config('freshet.freshness', NULL, true)"), by_call(Request::SetFreshness(None)));
        let shown = Some(Ok(Request::CurrentSetting(Box::new(Request::ShowRoute))));
        assert_eq!(request("SELECT current_setting('Freshet.Route', true);"), shown);
        assert!(request("SELECT current_setting('freshet.last')").is_some_and(|told| told.is_err()));
    }

    #[test]
    fn wrong_values_are_refused_as_postgresql_would() {
        let state = |sql: &str| request(sql).expect("for freshet").expect_err("wrong").sqlstate;
        assert_eq!(state("SET freshet.freshness = 'fresh'"), "22023");
        assert_eq!(state("SET freshet.route = 3"), "22023");
        assert_eq!(state("SHOW freshet.nosuch"), "42704");
        assert_eq!(state("SET freshet.last = 1"), "55P02");
        assert_eq!(state("SHOW freshet.last foo"), "42601");
        assert_eq!(state("SELECT a + 1 FROM freshet.tables"), "0A000");
    }

    #[test]
    fn selects_filter_sort_and_project() {
        let table = TextTable {
            columns: vec![TextColumn::text("name"), TextColumn::number("size")],
            rows: [("a", Some("9")), ("b", Some("10")), ("c", None), ("b", Some("2"))]
                .map(|(name, size)| vec![Some(name.to_string()), size.map(str::to_string)])
                .to_vec(),
        };
        let run = |sql: &str| {
            let Some(Ok(Request::Select(select))) = request(sql) else { panic!("{sql}") };
            let found = select.run(&table).expect("runs");
            found
                .rows
                .into_iter()
                .map(|row| row.into_iter().map(|v| v.unwrap_or("-".into())).collect::<Vec<_>>().join(","))
                .collect::<Vec<_>>()
        };
        assert_eq!(run("SELECT * FROM freshet.x ORDER BY size DESC"), ["c,-", "b,10", "a,9", "b,2"]);
        assert_eq!(run("SELECT size AS s FROM freshet.x WHERE name = 'b' ORDER BY size LIMIT 1"), ["2"]);
        assert_eq!(run("SELECT count(*) FROM freshet.x WHERE name <> 'b'"), ["2"]);
        assert_eq!(run("TABLE freshet.x").len(), 4);
    }

    #[test]
    fn any_text_is_read() {
        for text in [
            "show freshet.",
            "set freshet.x =",
            "select from freshet.x",
            "select * from freshet.x limit 'a",
            "'",
            "/*",
            "show freshet.last--",
        ] {
            let _ = request(text);
        }
    }
}
