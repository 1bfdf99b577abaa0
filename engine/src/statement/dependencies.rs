//! Which tables a query reads that is not bound here, if its reply depends on nothing else: what its upstream reply may be kept by.
//!
//! Nothing is computed by this reading, so it need not understand the statement, only miss nothing. The first reader takes
//! every word for the worst that it can be: whatever names a relation is read, whatever stands before a parenthesis is called,
//! in any place. The second, the parser that also confirms what is bound, must find no further relation, and nothing that reads
//! a text as a date (which may say `now`). What is in doubt is refused; then the statement is relayed, and nothing is kept.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    Query, Select, SelectItem, Statement, TableAlias, TableFactor, Value,
};
use sqlparser::ast::{Visit, Visitor};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use crate::catalog::{Catalog, ColumnSchema, RelationEntry, RelationId, TableSchema};
use crate::statement::classify::{begins_count, distinct_lists};
use crate::statement::lexer::{self, Token, TokenKind, fold};
use crate::types::PgType;

/// A longer text is not read twice more.
const TEXT_BYTES_MAX: usize = 16 << 10;
const NESTING_MAX: usize = 150;

/// What is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    pub tables: BTreeSet<RelationId>,
    pub views: BTreeSet<RelationId>,
    /// Materialized views: their rows change by REFRESH, whatever they were made from.
    pub materialized: BTreeSet<RelationId>,
}

impl Dependencies {
    /// What they take, about.
    pub fn bytes(&self) -> usize {
        // A node of a set has room for more than it has.
        (self.tables.len() + self.views.len() + self.materialized.len()) * 2 * size_of::<RelationId>()
            + size_of::<Self>()
    }

    pub fn relations(&self) -> impl Iterator<Item = RelationId> {
        self.with_rows().chain(self.views.iter().copied())
    }

    /// Of the relations, those that have rows of their own.
    pub fn with_rows(&self) -> impl Iterator<Item = RelationId> {
        self.tables.iter().chain(&self.materialized).copied()
    }
}

/// What the statement reads; an error says what is in doubt.
pub fn dependencies(sql: &str, catalog: &Catalog, search_path: &[Arc<str>]) -> Result<Dependencies, String> {
    if catalog.changes_builtin_types || catalog.has_row_casts {
        return Err("casts or operator classes of the database's own".to_owned());
    }
    if catalog.has_security_labels {
        return Err("security labels".to_owned());
    }
    if catalog.restricted.is_behind_operators {
        return Err("an operator or cast that not everybody may use".to_owned());
    }
    let mut found = Dependencies::default();
    read(sql, catalog, search_path, &mut found)?;
    Ok(found)
}

/// Both readings of one text, and of the views that it names. Whether a time without a date may be among its values.
fn read(sql: &str, catalog: &Catalog, search_path: &[Arc<str>], found: &mut Dependencies) -> Result<bool, String> {
    if sql.len() > TEXT_BYTES_MAX {
        return Err("a long text".to_owned());
    }
    let tokens = lexer::tokens(sql).map_err(|error| error.to_string())?;
    let end = tokens.iter().rposition(|token| !token.is_symbol(";")).map_or(0, |last| last + 1);
    let mut words = Words { catalog, search_path, found, has_times: false, converts_zones: false };
    words.read(&tokens[..end])?;
    let (mut has_times, converts_zones) = (words.has_times, words.converts_zones);
    let described: Vec<&Arc<TableSchema>> =
        found.relations().chain(found.materialized.iter().copied()).filter_map(|id| catalog.described(id)).collect();
    described.iter().try_for_each(|table| check_columns(table, catalog))?;
    has_times |= described.iter().any(|table| table.columns.iter().any(|column| TIMES.contains(&type_of(column))));
    if converts_zones && has_times {
        return Err("a time of the day in another zone".to_owned());
    }
    let statement = parse(sql)?;
    let mut tree = Tree { total: References::of(&statement), ..Tree::default() };
    let _ = statement.visit(&mut tree);
    if tree.databases.iter().any(|database| *database != catalog.database) {
        return Err("a relation of another database".to_owned());
    }
    let is_read = |schema: Option<&str>, name: &str| match catalog.relation(schema, name, search_path) {
        Some(RelationEntry::Table(table)) => found.tables.contains(&table.id),
        Some(RelationEntry::View(view)) => found.views.contains(&view.schema.id),
        Some(RelationEntry::Materialized(view)) => found.materialized.contains(&view.id),
        Some(RelationEntry::Other { .. }) | None => false,
    };
    tree.check(&is_read, &described)?;
    Ok(has_times)
}

/// Whether a value given by the client could mean the time, or another thing tomorrow (datetime.c, DecodeSpecial).
pub fn may_mean_the_time(value: &[u8]) -> bool {
    let without = |left_out: &[u8]| value.iter().copied().filter(|byte| !left_out.contains(byte)).collect::<Vec<u8>>();
    // An array or a range takes these out of its elements before they are read (arrayfuncs.c, array_in; rangetypes.c,
    // range_parse_bound); a quote that was escaped stays in.
    names_the_time(value)
        || value.contains(&b'\\') && names_the_time(&without(b"\\"))
        || (value.contains(&b'\\') || value.contains(&b'"')) && names_the_time(&without(b"\\\""))
}

fn names_the_time(value: &[u8]) -> bool {
    // A word of its own: letters that follow each other are one field (datetime.c, ParseDateTime).
    let is_letter = |at: Option<usize>| at.and_then(|at| value.get(at)).is_some_and(u8::is_ascii_alphabetic);
    let is_at = |word: &&str, at: usize| {
        let end = at + word.len();
        value.get(at..end).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
            && !is_letter(at.checked_sub(1))
            && !is_letter(Some(end))
    };
    ["now", "today", "tomorrow", "yesterday"].iter().any(|word| (0..value.len()).any(|at| is_at(word, at)))
}

fn parse(sql: &str) -> Result<Statement, String> {
    let statements = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(NESTING_MAX)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| error.to_string())?;
    match <[Statement; 1]>::try_from(statements) {
        Ok([statement @ Statement::Query(_)]) => Ok(statement),
        Ok(_) | Err(_) => Err("not one query".to_owned()),
    }
}

/// The type that values of the column have: of a domain that is held, the one below it.
fn type_of(column: &ColumnSchema) -> u32 {
    column.pg_type.map_or(column.type_oid, PgType::oid)
}

/// Values of types that are not built in, or whose text depends on names in the catalog, change without their rows. Those of enums do so
/// only with their labels, which the catalog has; those of well-known extensions do not, and a domain's are those of the type below it.
fn check_columns(table: &TableSchema, catalog: &Catalog) -> Result<(), String> {
    const FIRST_NORMAL: u32 = 16_384;
    // Row types of the system's own tables and views (access/transam.h, FirstGenbkiObjectId), which may have columns of such.
    const ROWS: std::ops::Range<u32> = 10_000..FIRST_NORMAL;
    // The types reg... and aclitem.
    const BY_NAME: [u32; 12] = [24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191, 1033];
    const ARRAYS: [u32; 12] = [1008, 2207, 2208, 2209, 2210, 2211, 3735, 3770, 4090, 4097, 4192, 1034];
    let is_known = |oid: u32| catalog.enums.contains_key(&oid) || catalog.plain_types.contains(&oid);
    let is_own = |oid: u32| oid >= FIRST_NORMAL && !is_known(oid);
    let is_doubtful = |oid: u32| is_own(oid) || ROWS.contains(&oid) || BY_NAME.contains(&oid) || ARRAYS.contains(&oid);
    match table.columns.iter().find(|column| is_doubtful(type_of(column))) {
        Some(column) => Err(format!("the type of column {}", column.name)),
        None => Ok(()),
    }
}

/// time, and arrays of it.
const TIMES: [u32; 2] = [1083, 1183];

/// The first reader.
struct Words<'a> {
    catalog: &'a Catalog,
    search_path: &'a [Arc<str>],
    found: &'a mut Dependencies,
    /// Times without a date may be among the values.
    has_times: bool,
    /// AT TIME ZONE, or what that calls: of a time, which becomes one with a zone by itself, the offset is today's (date.c, timetz_zone,
    /// time_timetz).
    converts_zones: bool,
}

/// Words that make a query more than a reading of tables, or its reply depend on who asks and when.
const REFUSED: [&str; 31] = [
    "table",
    "into",
    "insert",
    "update",
    "delete",
    "merge",
    "share",
    "tablesample",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "current_role",
    "current_user",
    "session_user",
    "user",
    "current_catalog",
    "current_schema",
    "system_user",
    "xmltable",
    "json_table",
    "xmlparse",
    "xmlserialize",
    "xmlelement",
    "xmlforest",
    "xmlroot",
    "xmlpi",
    "xmlconcat",
    "treat",
    "nextval",
];
/// System columns, by any spelling.
pub(crate) const SYSTEM: [&str; 7] = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "oid"];
/// Words of the grammar that may stand before a parenthesis without being called.
const GRAMMAR: [&str; 78] = [
    "select",
    "from",
    "where",
    "and",
    "or",
    "not",
    "in",
    "exists",
    "any",
    "some",
    "all",
    "values",
    "as",
    "on",
    "using",
    "join",
    "by",
    "having",
    "limit",
    "offset",
    "union",
    "intersect",
    "except",
    "distinct",
    "between",
    "symmetric",
    "asymmetric",
    "like",
    "ilike",
    "to",
    "escape",
    "case",
    "when",
    "then",
    "else",
    "over",
    "filter",
    "group",
    "cast",
    "extract",
    "substring",
    "position",
    "overlay",
    "trim",
    "coalesce",
    "nullif",
    "greatest",
    "least",
    "row",
    "array",
    "grouping",
    "rollup",
    "cube",
    "sets",
    "lateral",
    "materialized",
    "is",
    "collate",
    "set",
    "with",
    "normalize",
    "numeric",
    "decimal",
    "dec",
    "varchar",
    "char",
    "character",
    "varying",
    "nchar",
    "timestamp",
    "time",
    "interval",
    "bit",
    "float",
    "precision",
    "both",
    "leading",
    "trailing",
];
/// Not immutable only because they print values or read times by the session's settings, which are part of the key.
const BY_SETTINGS: [&str; 27] = [
    "generate_series",
    "quote_literal",
    "quote_nullable",
    "make_timestamptz",
    // In an encoding of which the arguments tell the name.
    "length",
    "to_number",
    "to_char",
    "to_date",
    "to_timestamp",
    "date_trunc",
    "date_part",
    "concat",
    "concat_ws",
    "array_to_string",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
    "json_build_object",
    "jsonb_build_object",
    "json_build_array",
    "jsonb_build_array",
    "to_json",
    "to_jsonb",
    "row_to_json",
    "array_to_json",
    "timezone",
];

/// Columns that built-in functions in FROM give by themselves; none is the name of a function or type.
const BY_FUNCTIONS: [&str; 3] = ["key", "value", "ordinality"];

/// Immutable for pg_proc, but not alike for everybody and for ever: by `quote_all_identifiers`, by what a dictionary says,
/// by which conversion is the default one.
const NOT_QUITE_IMMUTABLE: [&str; 3] = ["convert", "quote_ident", "ts_lexize"];

impl Words<'_> {
    fn read(&mut self, tokens: &[Token<'_>]) -> Result<(), String> {
        let begins = ["select", "with", "values"];
        let first = tokens.first().ok_or("empty")?;
        if !first.is_symbol("(") && !begins.iter().any(|word| first.is_word(word)) {
            return Err("not a query".to_owned());
        }
        let distinct_lists = distinct_lists(tokens);
        for (at, token) in tokens.iter().enumerate() {
            let next = tokens.get(at + 1);
            let doubt = || format!("\"{}\"", token.text);
            match token.kind {
                TokenKind::String | TokenKind::EscapeString | TokenKind::DollarString => {
                    let value = token.string_value().ok_or_else(doubt)?;
                    if may_mean_the_time(value.as_bytes()) {
                        return Err(doubt());
                    }
                }
                TokenKind::OtherString => return Err(doubt()),
                // (x).f may be f(x), or a cast (parse_func.c, ParseFuncOrColumn).
                TokenKind::Symbol
                    if (token.is_symbol(")") || token.is_symbol("]"))
                        && next.is_some_and(|next| next.is_symbol("."))
                        && tokens.get(at + 2).is_none_or(|of| !of.is_symbol("*")) =>
                {
                    return Err("a part of a value, or a function of it".to_owned());
                }
                TokenKind::Symbol if token.is_symbol(";") || !self.catalog.user_operators.are_pure(token.text) => {
                    return Err(doubt());
                }
                // Text search by a configuration that the key does not have.
                TokenKind::Symbol if token.text.starts_with("@@") => return Err(doubt()),
                TokenKind::Word | TokenKind::QuotedName => {
                    let name = token.name().ok_or_else(doubt)?;
                    let is_word = token.kind == TokenKind::Word;
                    // Likewise functions by which operators of such times go, which take a time, too.
                    if name.contains("timetz") || is_word && name == "time" && is_zoned(&tokens[at + 1..]) {
                        return Err(doubt());
                    }
                    let is_behind =
                        |word| at.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|t| t.is_word(word));
                    self.converts_zones |= name == "timezone" || is_word && name == "time" && is_behind("at");
                    self.has_times |=
                        name == "make_time" || name == "time" && !["at", "with", "without"].into_iter().any(is_behind);
                    let is_refused = is_word && (REFUSED.contains(&&*name) || !self.are_pure(operators_of(tokens, at)));
                    if is_refused || self.is_doubtful(&name) {
                        return Err(doubt());
                    }
                    let is_count = at.checked_sub(1).is_some_and(|before| begins_count(&tokens[before], token));
                    let is_call = next.is_some_and(|next| next.is_symbol("("))
                        && !is_named(tokens, at, &distinct_lists)
                        && !is_count;
                    if is_call && !(is_word && GRAMMAR.contains(&&*name)) && !self.may_be_called(&name) {
                        return Err(format!("function {name}"));
                    }
                    let qualified = match (next, tokens.get(at + 2)) {
                        (Some(dot), Some(of)) if dot.is_symbol(".") => of.name(),
                        _ => None,
                    };
                    self.read_name(&name, qualified.as_deref())?;
                }
                TokenKind::Symbol | TokenKind::Integer | TokenKind::Decimal | TokenKind::Parameter => {}
            }
        }
        Ok(())
    }

    /// A name that nothing good is known of, whatever it stands for here.
    fn is_doubtful(&self, name: &str) -> bool {
        SYSTEM.contains(&name)
            || name.starts_with("pg_") && !name.starts_with("pg_size_")
            || name.starts_with("reg") && name.len() > 6 && is_reg_type(name)
            || !self.catalog.user_functions.are_pure(name)
            || self.catalog.user_types.contains(name)
    }

    fn are_pure(&self, operators: &[&str]) -> bool {
        operators.iter().all(|operator| self.catalog.user_operators.are_pure(operator))
    }

    fn may_be_called(&self, name: &str) -> bool {
        let is_known = BY_SETTINGS.contains(&name)
            || self.catalog.immutable_functions.contains(name) && !NOT_QUITE_IMMUTABLE.contains(&name);
        is_known && !self.catalog.user_casts.contains(name)
    }

    /// Everything that the name could be of relations.
    fn read_name(&mut self, name: &str, qualified: Option<&str>) -> Result<(), String> {
        let entry = self.catalog.relation(None, name, self.search_path);
        entry.map_or(Ok(()), |entry| self.take(entry, name))?;
        if let (Some(of), true) = (qualified, self.catalog.schemas.contains_key(name)) {
            let entry = self.catalog.relation(Some(name), of, self.search_path);
            return entry.map_or_else(|| Err(format!("{name}.{of}")), |entry| self.take(entry, of));
        }
        Ok(())
    }

    fn take(&mut self, entry: &RelationEntry, name: &str) -> Result<(), String> {
        match entry {
            RelationEntry::Table(table) => {
                refuse_zoned_times(table, name)?;
                let all = self.catalog.with_heirs(table.id).map_err(|why| format!("relation {name}, {why}"))?;
                self.found.tables.extend(all);
                Ok(())
            }
            // Its definition names everything with its schema; none names itself.
            RelationEntry::View(view) if self.found.views.insert(view.schema.id) => {
                self.has_times |= read(&view.definition, self.catalog, &["pg_catalog".into()], self.found)?;
                Ok(())
            }
            RelationEntry::View(_) => Ok(()),
            RelationEntry::Materialized(view) => {
                refuse_zoned_times(view, name)?;
                self.found.materialized.insert(view.id);
                Ok(())
            }
            RelationEntry::Other { .. } => Err(format!("relation {name}")),
        }
    }
}

/// timetz, and arrays of it: what they are in another zone hangs on the day.
fn refuse_zoned_times(table: &TableSchema, name: &str) -> Result<(), String> {
    match table.columns.iter().any(|column| matches!(column.type_oid, 1266 | 1270)) {
        true => Err(format!("relation {name}, which has times with zones")),
        false => Ok(()),
    }
}

/// The operators that a word stands for: they are looked for by these names in the whole search path (gram.y; parse_clause.c,
/// transformJoinUsingClause).
fn operators_of(tokens: &[Token<'_>], at: usize) -> &'static [&'static str] {
    let is = |word: &str| tokens[at].is_word(word);
    let is_near = |near: Option<&Token<'_>>, word: &str| near.is_some_and(|near| near.is_word(word));
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let compares_case = is("case") && !is_near(tokens.get(at + 1), "when");
    let is_distinct_from = is("distinct") && (is_near(before, "is") || is_near(before, "not"));
    if is("like") {
        &["~~", "!~~"]
    } else if is("ilike") {
        &["~~*", "!~~*"]
    } else if is("similar") {
        &["~", "!~"]
    } else if is("in") {
        &["=", "<>"]
    } else if is("between") {
        &["<", "<=", ">", ">="]
    } else if is("nullif") || is("using") || is("natural") || compares_case || is_distinct_from {
        &["="]
    } else {
        &[]
    }
}

/// Whether what stands here gets a name, with names for its columns, and is not called: `... AS d (x)`, `f() d (x)`, `WITH d (x)`.
fn is_named(tokens: &[Token<'_>], at: usize, distinct_lists: &HashSet<usize>) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    tokens[before].is_symbol(")") && !distinct_lists.contains(&before) && !tokens[at].is_word("operator")
        || ["as", "with", "recursive"].iter().any(|word| tokens[before].is_word(word))
}

/// Of a type `time`: `[(precision)] WITH TIME ZONE` follows.
fn is_zoned(rest: &[Token<'_>]) -> bool {
    let rest = match rest {
        [open, _, close, rest @ ..] if open.is_symbol("(") && close.is_symbol(")") => rest,
        rest => rest,
    };
    rest.first().is_some_and(|token| token.is_word("with"))
}

/// Types that are names in the catalog.
fn is_reg_type(name: &str) -> bool {
    matches!(
        name,
        "regclass"
            | "regproc"
            | "regprocedure"
            | "regoper"
            | "regoperator"
            | "regtype"
            | "regrole"
            | "regnamespace"
            | "regconfig"
            | "regdictionary"
            | "regcollation"
    )
}

/// The second reader: what it has found.
#[derive(Default)]
struct Tree {
    /// References to relations in the whole statement.
    total: References,
    common: BTreeSet<String>,
    /// Names of WITH queries that may be those of tables somewhere: those have to be known.
    shared: BTreeSet<String>,
    functions: BTreeSet<String>,
    /// Without schema, or with one.
    relations: Vec<(Option<String>, String)>,
    /// Databases that relations are said to be of.
    databases: BTreeSet<String>,
    /// Names that the statement gives to values.
    aliases: BTreeSet<String>,
    /// By what names the items of FROM go that are functions, and which names their columns are given.
    called: BTreeMap<String, BTreeSet<String>>,
    /// What stands before and behind a dot.
    qualified: BTreeSet<(String, String)>,
    /// Columns that are cast to a date or time, and what stands before their dot.
    timed: BTreeSet<(Option<String>, String)>,
    /// By what names relations in FROM go, with their own (which may be those of WITH queries); and what else there is.
    tables: BTreeSet<(String, String)>,
    others: BTreeSet<String>,
    has_others: bool,
    doubt: Option<String>,
}

impl Tree {
    /// `is_read`: whether the first reader took this name for a table that is read, too.
    fn check(self, is_read: &dyn Fn(Option<&str>, &str) -> bool, tables: &[&Arc<TableSchema>]) -> Result<(), String> {
        if let Some(doubt) = self.doubt {
            return Err(doubt);
        }
        for (schema, name) in &self.relations {
            let is_common = self.common.contains(name) && !self.shared.contains(name);
            let is_own = schema.is_none() && (is_common || self.functions.contains(name));
            if !is_own && !is_read(schema.as_deref(), name) {
                return Err(format!("relation {name}"));
            }
        }
        // x.f of a value may be f(x) or a cast of it (ParseFuncOrColumn), and the row of a function in FROM may be a value.
        let is_column = |called: &str, of: &BTreeSet<String>, column: &String| {
            called == column || of.contains(column) || BY_FUNCTIONS.contains(&column.as_str())
        };
        for (item, column) in &self.qualified {
            if self.called.get(item).is_some_and(|of| !is_column(item, of, column)) {
                return Err(format!("{item}.{column}"));
            }
        }
        for (item, column) in &self.timed {
            // Other items may give a text of that name, also by a name that nobody has written (FigureColname).
            let is_tables = match item {
                Some(item) => {
                    let mut tables = self.tables.iter().filter(|(alias, _)| alias == item).peekable();
                    let is_other = self.others.contains(item) || self.called.contains_key(item);
                    tables.peek().is_some() && !is_other && tables.all(|(_, table)| !self.common.contains(table))
                }
                None => !self.has_others && self.common.is_empty() && self.called.is_empty(),
            };
            if !is_tables {
                return Err(format!("{column} as a date or time, of what is no table"));
            }
            let types = tables.iter().filter_map(|table| Some(type_of(&table.columns[table.column(column)?])));
            let types: Vec<u32> = types.collect();
            // date, time, timestamp, timestamptz, timetz: nothing to be read as a text.
            let is_time = |oid: &u32| matches!(oid, 1082 | 1083 | 1114 | 1184 | 1266);
            if self.aliases.contains(column) || types.is_empty() || !types.iter().all(is_time) {
                return Err(format!("{column} as a date or time"));
            }
        }
        Ok(())
    }

    /// A function in FROM. Where several go by one name, only what all of them have is known to be a column.
    fn note_call(&mut self, function: Option<String>, alias: Option<&TableAlias>) {
        let columns: BTreeSet<String> =
            alias.into_iter().flat_map(|alias| &alias.columns).map(|column| name(&column.name)).collect();
        let Some(item) = alias.map(|alias| name(&alias.name)).or(function) else { return };
        let known = self.called.entry(item).or_insert_with(|| columns.clone());
        known.retain(|column| columns.contains(column));
    }

    /// Names that an alias gives to columns.
    fn note_columns(&mut self, alias: Option<&TableAlias>) {
        self.aliases.extend(alias.into_iter().flat_map(|alias| &alias.columns).map(|column| name(&column.name)));
    }

    fn check_cast(&mut self, data_type: &DataType, of: &Expr) {
        let written = data_type.to_string().to_lowercase();
        let base = written.split(['(', '[']).next().unwrap_or_default().trim();
        let is_plain = matches!(
            base,
            "text"
                | "varchar"
                | "character varying"
                | "char"
                | "character"
                | "bpchar"
                | "name"
                | "int"
                | "integer"
                | "int2"
                | "int4"
                | "int8"
                | "smallint"
                | "bigint"
                | "numeric"
                | "decimal"
                | "dec"
                | "real"
                | "float"
                | "float4"
                | "float8"
                | "double precision"
                | "bool"
                | "boolean"
                | "uuid"
                | "json"
                | "jsonb"
                | "bytea"
                | "interval"
                | "inet"
                | "cidr"
                | "bit"
                | "bit varying"
                | "varbit"
                | "money"
        );
        let is_time = ["date", "time", "timestamp", "timestamptz", "timetz"]
            .iter()
            .any(|word| base == *word || base.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')));
        if !is_plain && (!is_time || written.contains('[') || !self.is_time_already(of)) {
            self.doubt = Some(format!("a cast to {written}"));
        }
    }

    /// Whether the value is a constant, which the first reader has seen, a parameter, which the caller looks at, or surely no
    /// text.
    fn is_time_already(&mut self, of: &Expr) -> bool {
        match of {
            Expr::Value(value) => matches!(
                value.value,
                Value::SingleQuotedString(_)
                    | Value::EscapedStringLiteral(_)
                    | Value::DollarQuotedString(_)
                    | Value::Placeholder(_)
                    | Value::Null
            ),
            Expr::Nested(inner) => self.is_time_already(inner),
            Expr::Identifier(column) => {
                self.timed.insert((None, name(column)));
                true
            }
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [.., item, column] => {
                    self.timed.insert((Some(name(item)), name(column)));
                    true
                }
                _ => false,
            },
            Expr::Function(function) => {
                let called = function.name.0.last().and_then(|part| part.as_ident()).map(name);
                let times = ["date_trunc", "date_bin", "to_timestamp", "to_date", "make_date", "make_timestamp"];
                called.is_some_and(|called| match called.as_str() {
                    "min" | "max" => first_argument(function).is_some_and(|first| self.is_time_already(first)),
                    called => times.contains(&called),
                })
            }
            // A time and an interval; of other types there is no such operator, or its result is none to be cast.
            Expr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, .. } => self.is_time_already(left),
            // Checked by itself.
            Expr::Cast { data_type, .. } => {
                matches!(data_type, DataType::Date | DataType::Timestamp(..) | DataType::Time(..))
            }
            Expr::AtTimeZone { timestamp, .. } => self.is_time_already(timestamp),
            _ => false,
        }
    }
}

impl Visitor for Tree {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let Some(with) = &query.with else { return ControlFlow::Continue(()) };
        let within = References::of(query);
        let names: Vec<String> = with.cte_tables.iter().map(|table| name(&table.alias.name)).collect();
        for (at, table) in with.cte_tables.iter().enumerate() {
            // Outside of the query it is not known, and without RECURSIVE not in its own definition and those before it.
            let of_definition = References::of(&table.query);
            let later = names[at..].iter().filter(|later| !with.recursive && of_definition.0.contains_key(*later));
            self.shared.extend(later.cloned());
            if self.total.0.get(&names[at]) != within.0.get(&names[at]) {
                self.shared.insert(names[at].clone());
            }
        }
        self.common.extend(names);
        with.cte_tables.iter().for_each(|table| self.note_columns(Some(&table.alias)));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.aliases.insert(name(alias));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } = factor
        {
            self.note_columns(alias.as_ref());
        }
        match factor {
            TableFactor::Table { name: called, args: Some(_), alias, .. }
            | TableFactor::Function { name: called, alias, .. } => {
                let called = called.0.last().and_then(|part| part.as_ident()).map(name);
                self.note_call(called.clone(), alias.as_ref());
                self.functions.extend(called);
            }
            TableFactor::Table { name: table, alias, sample: None, .. } => {
                if let Some(table) = table.0.last().and_then(|part| part.as_ident()) {
                    let alias = alias.as_ref().map_or(table, |alias| &alias.name);
                    self.tables.insert((name(alias), name(table)));
                }
            }
            TableFactor::UNNEST { alias, .. } => self.note_call(Some("unnest".to_owned()), alias.as_ref()),
            TableFactor::TableFunction { alias, .. } => self.note_call(None, alias.as_ref()),
            TableFactor::Table { sample: Some(_), .. } => self.doubt = Some("a sample".to_owned()),
            TableFactor::Derived { alias, .. } | TableFactor::NestedJoin { alias: alias @ Some(_), .. } => {
                self.others.extend(alias.as_ref().map(|alias| name(&alias.name)));
                self.has_others = true;
            }
            TableFactor::NestedJoin { .. } => {}
            _ => self.has_others = true,
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let parts: Option<Vec<String>> = relation.0.iter().map(|part| part.as_ident().map(name)).collect();
        match parts.as_deref() {
            Some([relation]) => self.relations.push((None, relation.clone())),
            Some([schema, relation]) => self.relations.push((Some(schema.clone()), relation.clone())),
            Some([database, schema, relation]) => {
                self.databases.insert(database.clone());
                self.relations.push((Some(schema.clone()), relation.clone()));
            }
            _ => self.doubt = Some(format!("relation {relation}")),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::CompoundIdentifier(parts) => {
                if let [.., item, column] = &parts[..] {
                    self.qualified.insert((name(item), name(column)));
                }
            }
            Expr::Cast { data_type, expr, .. } => self.check_cast(data_type, expr),
            Expr::TypedString(typed) => {
                let constant = Expr::Value(typed.value.clone());
                self.check_cast(&typed.data_type, &constant);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn first_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// How often names without a schema stand for relations.
#[derive(Default)]
struct References(BTreeMap<String, usize>);

impl References {
    fn of(node: &impl Visit) -> Self {
        let mut references = Self::default();
        let _ = node.visit(&mut references);
        references
    }
}

impl Visitor for References {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if let [part] = &relation.0[..]
            && let Some(ident) = part.as_ident()
        {
            *self.0.entry(name(ident)).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

/// As PostgreSQL knows it: folded unless quoted.
fn name(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { fold(&ident.value).into_owned() }
}

#[cfg(test)]
mod tests;
