//! The *shape* of a statement.
//!
//! Statements of one shape differ only in literals that cannot change types, names or the code that answers them, so
//! that the first-run audit of one speaks for the others. In doubt a literal stays in the shape.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use crate::statement::classify::{Classification, StatementKind, classify, is_harmless};
use crate::statement::keywords::is_keyword;
use crate::statement::lexer::{self, Lexer, Token, TokenKind, fold};
use crate::types::{Oid, PgType};

/// What statements that differ only in lifted literals have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Keywords and unquoted names in lower case, one space between tokens, `{int4}` and the like for literals.
    pub text: String,
    /// Of `text`; stable within a build.
    pub hash: u64,
}

/// The shape of `sql`, without semicolons at its end; of text that does not lex, the text itself.
pub fn shape(sql: &str) -> Shape {
    let text = lifted(sql).unwrap_or_else(|| sql.to_owned());
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Shape { hash: hasher.finish(), text }
}

/// A shape, or what stands for one, as it may be shown to anybody: without the strings that carry meaning, which may be secrets all
/// the same. Numbers are there only as ordinals and in types.
pub fn shown(shape: &str) -> String {
    let mut shown = String::with_capacity(shape.len());
    let mut rest = shape;
    while !rest.is_empty() {
        let piece = rest.trim_ascii_start();
        if piece.len() < rest.len() {
            shown.push(' ');
        }
        // No token begins with a brace: it is a placeholder.
        let placeholder = piece.strip_prefix('{').and_then(|inner| inner.find('}')).map(|end| end + 2);
        let (text, end) = match (placeholder, Lexer::new(piece).next()) {
            (Some(end), _) => (&piece[..end], end),
            (None, Some(Ok(token))) => (if is_text(&token) { TEXT } else { token.text }, token.end()),
            (None, Some(Err(_))) => return NOT_READ.to_owned(),
            (None, None) => break,
        };
        shown.push_str(text);
        rest = &piece[end..];
    }
    shown
}

const NOT_READ: &str = "(not read)";
const TEXT: &str = "{text}";

fn is_text(token: &Token<'_>) -> bool {
    use TokenKind as K;
    matches!(token.kind, K::String | K::EscapeString | K::DollarString | K::OtherString)
}

/// A token as it may be shown, which a constant may not.
pub(crate) fn without_value<'a>(token: &Token<'a>) -> Cow<'a, str> {
    match token.kind {
        TokenKind::Word => fold(token.text),
        TokenKind::QuotedName | TokenKind::Symbol | TokenKind::Parameter => token.text.into(),
        TokenKind::Integer | TokenKind::Decimal => "{number}".into(),
        TokenKind::String | TokenKind::EscapeString | TokenKind::DollarString | TokenKind::OtherString => TEXT.into(),
    }
}

/// What stands for the shape of a statement that could not be bound. It may not be a query, or may call anything: then no constant
/// is part of it.
pub fn unbound(sql: &str) -> String {
    let Ok(tokens) = lexer::tokens(sql) else { return NOT_READ.to_owned() };
    let Some(first) = tokens.iter().find(|token| !token.is_symbol("(")) else { return String::new() };
    if !["select", "with", "values", "table"].iter().any(|word| first.is_word(word)) {
        return if first.kind == TokenKind::Word { format!("{} ...", fold(first.text)) } else { NOT_READ.to_owned() };
    }
    let Classification { kind, calls, .. } = classify(&tokens);
    let keeps = |name: &String| is_harmless(name) && !DIGESTS.contains(&name.as_str()) || is_keyword(name);
    if kind == StatementKind::Query && calls.iter().all(keeps) {
        return shape(sql).text;
    }
    let mut text = String::with_capacity(sql.len());
    for token in &tokens {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&without_value(token));
    }
    without_end(text)
}

/// The semicolons at a statement's end are no part of it.
fn without_end(mut shape: String) -> String {
    shape.truncate(shape.trim_end_matches(" ;").len());
    shape
}

/// What is given to these may be a secret.
const DIGESTS: [&str; 7] = ["convert_to", "encode", "md5", "sha224", "sha256", "sha384", "sha512"];

fn lifted(sql: &str) -> Option<String> {
    let mut shape = ShapeWriter::new(sql);
    let mut lexer = Lexer::new(sql).peekable();
    while let Some(token) = lexer.next() {
        let token = token.ok()?;
        let next = lexer.peek().and_then(|next| next.as_ref().ok());
        shape.token(&token, next);
    }
    Some(without_end(shape.text))
}

/// A statement with parameters in the place of literals: one plan for all that differ in these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifted {
    pub text: String,
    /// Of the statement as it was written.
    pub shape: String,
    /// By parameter: the type that the literal has by itself, 0 for a string's (make_const: int4, int8 or numeric; unknown),
    /// and its value as its type's input function takes it.
    pub literals: Vec<(Oid, String)>,
}

/// More literals than this would make more parameters than a plan is worth.
const LITERALS_MAX: usize = 64;

/// Puts parameters in the place of literals that are a whole operand of a comparison, or an item of an IN list. None: there
/// are none, or it is better not tried.
///
/// A parameter of the literal's type, or of an undeclared one, is resolved as the literal is (parse_param.c,
/// variable_coerce_param_hook; coerce_type for unknown literals); only its value is not known when the plan is made. Elsewhere that
/// would matter: PostgreSQL computes what is constant when it plans and raises its errors then (clauses.c,
/// eval_const_expressions), a number may be an ordinal, and an expression may have to be the same as another one.
pub fn lift(sql: &str) -> Option<Lifted> {
    let tokens = lexer::tokens(sql).ok()?;
    let is_word = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
    let has_sets = |at: usize| {
        is_word(at, "rollup") || is_word(at, "cube") || (is_word(at, "grouping") && is_word(at + 1, "sets"))
    };
    if (0..tokens.len()).any(|at| tokens[at].kind == TokenKind::Parameter || has_sets(at)) {
        return None;
    }
    let (mut shape, mut text, mut literals) =
        (ShapeWriter::new(sql), String::with_capacity(sql.len() + 16), Vec::new());
    let mut end = 0;
    // A minus sign where a literal could stand.
    let mut sign: Option<&Token<'_>> = None;
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        let begins = sign.is_some() || (at > 0 && shape.is_operand(&tokens[at - 1]));
        let is_operand = begins && next.is_none_or(ends_operand) && !is_of_literals(&tokens[..at]);
        let before = sign.take();
        sign = (begins && before.is_none() && token.is_symbol("-")).then_some(token);
        let kind = shape.placeholder(token, next).filter(|_| is_operand);
        let found = kind.and_then(|kind| if before.is_some() { negative(token, kind) } else { literal(token, kind) });
        if let Some((oid, value)) = found {
            text.push_str(&sql[end..before.unwrap_or(token).start]);
            end = token.end();
            literals.push((oid, value));
            // Spaces: a name may end in a dollar sign and digits.
            text.push_str(&format!(" ${} ", literals.len()));
        }
        shape.token(token, next);
    }
    text.push_str(&sql[end..]);
    (1..=LITERALS_MAX).contains(&literals.len()).then(|| Lifted { text, shape: without_end(shape.text), literals })
}

/// Whether what is compared is a literal by itself: `1 = 2` PostgreSQL folds before it looks at what else there is (clauses.c).
fn is_of_literals(before: &[Token<'_>]) -> bool {
    const WORDS: [&str; 9] = ["where", "and", "or", "not", "on", "having", "when", "select", "distinct"];
    let [.., begin, literal, comparison] = before else { return false };
    let is_literal = matches!(literal.kind, TokenKind::Integer | TokenKind::Decimal | TokenKind::String);
    let begins = begin.is_symbol("(") || begin.is_symbol(",") || WORDS.iter().any(|word| begin.is_word(word));
    let compares = ["=", "<>", "!=", "<", "<=", ">", ">="].iter().any(|symbol| comparison.is_symbol(symbol));
    is_literal && begins && compares
}

/// What may follow an operand of a comparison that is nothing but one literal.
fn ends_operand(next: &Token<'_>) -> bool {
    const WORDS: [&str; 20] = [
        "and",
        "or",
        "group",
        "order",
        "having",
        "limit",
        "offset",
        "fetch",
        "window",
        "union",
        "intersect",
        "except",
        "then",
        "else",
        "when",
        "end",
        "from",
        "as",
        "where",
        "for",
    ];
    [")", ",", ";"].iter().any(|symbol| next.is_symbol(symbol)) || WORDS.iter().any(|word| next.is_word(word))
}

/// The type and the value of a literal that a parameter can stand for.
fn literal(token: &Token<'_>, kind: &str) -> Option<(Oid, String)> {
    match kind {
        "{int4}" => Some((PgType::Int4.oid(), token.text.to_owned())),
        "{int8}" => Some((PgType::Int8.oid(), token.text.to_owned())),
        // Larger ones may be beyond the floating-point number that they are compared with.
        "{numeric}" if token.text.len() <= 30 && !token.text.contains(['e', 'E']) => {
            Some((PgType::Numeric.oid(), token.text.to_owned()))
        }
        "{text}" | "{text with backslash}" => Some((0, token.string_value()?.into_owned())),
        _ => None,
    }
}

/// Likewise behind a minus sign, which is part of the constant (gram.y, doNegate); its type is that of the whole (make_const).
fn negative(token: &Token<'_>, kind: &str) -> Option<(Oid, String)> {
    let (oid, value) = literal(token, kind).filter(|(oid, _)| *oid != 0)?;
    let value = format!("-{value}");
    let oid = match value.parse::<i64>() {
        Ok(whole) if i32::try_from(whole).is_ok() => PgType::Int4.oid(),
        Ok(_) => PgType::Int8.oid(),
        Err(_) => oid,
    };
    Some((oid, value))
}

/// More literals of the same kind. One alone is another operation: a comparison, not a list.
const REPEATED: &str = "...";

/// What an open parenthesis belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// Grouping, a subquery, arguments of an ordinary call.
    Plain,
    /// `IN (`: two or more literals of one kind are alike, however many.
    InList,
    /// The right side of a comparison of rows.
    Row,
    /// `= ANY (`.
    Array,
    /// Arguments of a call whose first argument is a value (to_timestamp, to_date); the second is a format.
    DateInput,
    /// Arguments of a call that takes any text, or whatever the others are of.
    AnyText,
    /// `ARRAY[`: alike as in a list of IN.
    Elements,
    /// A row of VALUES.
    ValuesRow,
    /// `numeric(`, `varchar(`...: the numbers are part of a type.
    TypeModifier,
}

struct Parenthesis {
    opened: Opened,
    /// Inside GROUP BY or ORDER BY at this level: a number may be an ordinal.
    in_item_list: bool,
    /// How many commas so far.
    commas: usize,
}

/// What the last token was, as far as it tells whether a string that follows is a plain value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A comparison, LIKE, BETWEEN, or the AND in it.
    Comparison,
    /// `@>`, `<@`, `&&`.
    Containment,
    /// `||`.
    Concatenation,
    /// INTERVAL.
    Interval,
    /// ANY, SOME or ALL behind a comparison.
    Quantifier,
    /// IN.
    In,
    /// GROUP or ORDER: BY follows.
    GroupOrOrder,
    /// The name of a date or time type: a string that follows is its literal.
    DateType,
    /// The name of a type that takes modifiers.
    ModifiedType,
    /// to_timestamp, to_date.
    DateFunction,
    /// See [`TEXT_FUNCTIONS`].
    TextFunction,
    /// ARRAY.
    Array,
    /// VALUES, or the comma behind a row of it.
    Values,
    /// A row of VALUES has ended.
    ValuesRow,
    /// DISTINCT.
    Distinct,
    /// DISTINCT ON: numbers in the parentheses that follow are ordinals.
    DistinctOn,
    /// A placeholder of this kind.
    Placeholder(&'static str),
    /// A comma after such a placeholder in an IN list; not yet written.
    CommaAfter(&'static str),
    Other,
}

struct ShapeWriter {
    text: String,
    /// Whatever word follows is a column's name.
    is_behind_dot: bool,
    parentheses: Vec<Parenthesis>,
    /// Of the parentheses, those in item lists: not counted anew for each literal, however deep they nest.
    item_lists: usize,
    last: Last,
    /// The last token was an open parenthesis or a comma.
    begins_item: bool,
    /// Parameters that stand in IN lists, and the numbers of the others, as they come. There may be 65,535.
    listed: HashSet<String>,
    numbered: HashMap<String, usize>,
}

impl ShapeWriter {
    fn new(sql: &str) -> Self {
        Self {
            text: String::with_capacity(sql.len()),
            is_behind_dot: false,
            parentheses: Vec::new(),
            item_lists: 0,
            last: Last::Other,
            begins_item: false,
            listed: HashSet::new(),
            numbered: HashMap::new(),
        }
    }

    /// Whether a literal behind the last token is the right operand of a comparison, or an item of an IN list.
    fn is_operand(&self, last: &Token<'_>) -> bool {
        let is_item = self.innermost() == Opened::InList && (last.is_symbol("(") || last.is_symbol(","));
        is_item || self.last == Last::Comparison
    }

    fn token(&mut self, token: &Token<'_>, next: Option<&Token<'_>>) {
        if let Some(kind) = self.placeholder(token, next) {
            if token.kind == TokenKind::Parameter {
                self.listed.insert(token.text.to_owned());
            }
            self.write_placeholder(kind);
            self.begins_item = false;
            return;
        }
        self.begins_item = token.is_symbol("(") || token.is_symbol(",");
        if let (Last::Placeholder(kind), true) = (self.last, token.is_symbol(",") && self.is_in_list()) {
            self.last = Last::CommaAfter(kind);
            return;
        }
        self.flush_comma();
        let closed = self.track(token, next);
        self.is_behind_dot = token.is_symbol(".");
        let text = match token.kind {
            TokenKind::Word => fold(token.text),
            TokenKind::Parameter => self.number(token.text).into(),
            _ => token.text.into(),
        };
        self.write(&text);
        self.last = match self.last {
            _ if closed == Some(Opened::ValuesRow) => Last::ValuesRow,
            Last::ValuesRow if token.is_symbol(",") => Last::Values,
            last => kind_of(token, &text, last),
        };
    }

    /// A parameter's number among those outside of IN lists, so that the length of a list does not show.
    fn number(&mut self, parameter: &str) -> String {
        if self.listed.contains(parameter) {
            return format!("{parameter} listed");
        }
        let next = self.numbered.len() + 1;
        format!("${}", self.numbered.entry(parameter.to_owned()).or_insert(next))
    }

    fn write_placeholder(&mut self, kind: &'static str) {
        if self.last != Last::CommaAfter(kind) {
            self.flush_comma();
            self.write(kind);
        } else if !self.text.ends_with(REPEATED) {
            self.write(REPEATED);
        }
        self.last = Last::Placeholder(kind);
    }

    fn flush_comma(&mut self) {
        if matches!(self.last, Last::CommaAfter(_)) {
            self.write(",");
            self.last = Last::Other;
        }
    }

    fn write(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// What stands for the literal; None: it is none, or it stays.
    fn placeholder(&self, token: &Token<'_>, next: Option<&Token<'_>>) -> Option<&'static str> {
        match token.kind {
            TokenKind::Integer | TokenKind::Decimal => {
                let stays = self.innermost() == Opened::TypeModifier || self.in_item_list();
                (!stays).then(|| number_kind(token.text))
            }
            TokenKind::String if self.last == Last::Interval => {
                interval_kind(token.text).filter(|_| !self.in_item_list() && !next.is_some_and(is_field))
            }
            TokenKind::String => {
                let is_value = match self.last {
                    Last::Comparison | Last::DateType | Last::Containment | Last::Concatenation => true,
                    _ if next.is_some_and(|next| next.is_symbol("||") || is_comparison(next)) => true,
                    Last::In
                    | Last::GroupOrOrder
                    | Last::ModifiedType
                    | Last::Interval
                    | Last::Quantifier
                    | Last::DateFunction
                    | Last::TextFunction
                    | Last::Array
                    | Last::Values
                    | Last::ValuesRow
                    | Last::Distinct
                    | Last::DistinctOn
                    | Last::Placeholder(_)
                    | Last::CommaAfter(_)
                    | Last::Other => self.is_listed_value(next),
                };
                let is_cast_to_date = self.last != Last::DateType && next.is_some_and(|next| next.is_symbol("::"));
                let stays = self.in_item_list() || !(is_value || is_cast_to_date) || is_special(token);
                let is_contained = self.last == Last::Containment || self.innermost() == Opened::Array;
                (!stays).then(|| if is_contained { contained_kind(token.text) } else { string_kind(token.text) })
            }
            TokenKind::Word
            | TokenKind::QuotedName
            | TokenKind::EscapeString
            | TokenKind::DollarString
            | TokenKind::OtherString
            | TokenKind::Symbol => None,
            TokenKind::Parameter => (self.innermost() == Opened::InList).then_some("{parameter}"),
        }
    }

    /// An item of a list, or an argument that is a value and nothing else.
    fn is_listed_value(&self, next: Option<&Token<'_>>) -> bool {
        match self.parentheses.last() {
            Some(parenthesis) => match parenthesis.opened {
                Opened::AnyText | Opened::ValuesRow => {
                    self.begins_item && next.is_some_and(|next| next.is_symbol(",") || next.is_symbol(")"))
                }
                Opened::InList | Opened::Elements => matches!(self.last, Last::CommaAfter(_) | Last::Other),
                Opened::DateInput => parenthesis.commas == 0,
                Opened::Row | Opened::Array => self.begins_item,
                Opened::Plain | Opened::TypeModifier => false,
            },
            None => false,
        }
    }

    fn innermost(&self) -> Opened {
        self.parentheses.last().map_or(Opened::Plain, |parenthesis| parenthesis.opened)
    }

    /// Literals of one kind are alike, however many.
    fn is_in_list(&self) -> bool {
        matches!(self.innermost(), Opened::InList | Opened::Elements)
    }

    fn in_item_list(&self) -> bool {
        self.item_lists > 0
    }

    /// Follows parentheses and the clauses whose numbers are ordinals. What has been closed.
    fn track(&mut self, token: &Token<'_>, next: Option<&Token<'_>>) -> Option<Opened> {
        if self.parentheses.is_empty() {
            self.parentheses.push(Parenthesis { opened: Opened::Plain, in_item_list: false, commas: 0 });
        }
        if token.is_symbol("[") {
            let opened = if self.last == Last::Array { Opened::Elements } else { Opened::Plain };
            self.parentheses.push(Parenthesis { opened, in_item_list: false, commas: 0 });
        } else if token.is_symbol("(") {
            let opened = match self.last {
                Last::In => Opened::InList,
                Last::TextFunction => Opened::AnyText,
                Last::Values => Opened::ValuesRow,
                Last::ModifiedType | Last::DateType | Last::Interval => Opened::TypeModifier,
                Last::DateFunction => Opened::DateInput,
                Last::Quantifier if !next.is_some_and(begins_query) => Opened::Array,
                Last::Comparison if !next.is_some_and(begins_query) => Opened::Row,
                Last::Comparison
                | Last::Containment
                | Last::Concatenation
                | Last::Quantifier
                | Last::GroupOrOrder
                | Last::Array
                | Last::ValuesRow
                | Last::Distinct
                | Last::DistinctOn
                | Last::Placeholder(_)
                | Last::CommaAfter(_)
                | Last::Other => Opened::Plain,
            };
            let in_item_list = self.last == Last::DistinctOn;
            self.parentheses.push(Parenthesis { opened, in_item_list, commas: 0 });
            self.item_lists += usize::from(in_item_list);
        } else if (token.is_symbol(")") || token.is_symbol("]")) && self.parentheses.len() > 1 {
            let closed = self.parentheses.pop()?;
            self.item_lists -= usize::from(closed.in_item_list);
            return Some(closed.opened);
        } else if let Some(innermost) = self.parentheses.last_mut() {
            if token.is_symbol(",") {
                innermost.commas += 1;
                return None;
            }
            let was_in_item_list = innermost.in_item_list;
            if token.is_word("by") && self.last == Last::GroupOrOrder {
                innermost.in_item_list = true;
            } else if !self.is_behind_dot && ITEM_LIST_END.iter().any(|word| token.is_word(word)) {
                innermost.in_item_list = false;
            }
            self.item_lists = self.item_lists + usize::from(innermost.in_item_list) - usize::from(was_in_item_list);
        }
        None
    }
}

/// The words that end GROUP BY or ORDER BY at their level.
const ITEM_LIST_END: [&str; 11] =
    ["having", "limit", "offset", "fetch", "window", "union", "intersect", "except", "for", "select", "where"];

/// Date and time types, whose literals are values.
const DATE_TYPES: [&str; 3] = ["date", "timestamp", "timestamptz"];

/// Functions that do the same with every text, and forms whose arguments are all of one type. A string among them is of a type that it
/// does not tell.
const TEXT_FUNCTIONS: [&str; 16] = [
    "lower",
    "upper",
    "initcap",
    "length",
    "char_length",
    "btrim",
    "ltrim",
    "rtrim",
    "replace",
    "strpos",
    "starts_with",
    "concat",
    "coalesce",
    "nullif",
    "greatest",
    "least",
];

const MODIFIED_TYPES: [&str; 16] = [
    "numeric",
    "decimal",
    "dec",
    "varchar",
    "char",
    "character",
    "varying",
    "bpchar",
    "nchar",
    "bit",
    "float",
    "time",
    "timetz",
    "current_timestamp",
    "localtimestamp",
    "zone",
];

fn kind_of(token: &Token<'_>, folded: &str, last: Last) -> Last {
    match token.kind {
        TokenKind::Symbol => match folded {
            "=" | "<>" | "!=" | "<" | ">" | "<=" | ">=" => Last::Comparison,
            "@>" | "<@" | "&&" => Last::Containment,
            "||" => Last::Concatenation,
            _ => Last::Other,
        },
        TokenKind::Word => match folded {
            "like" | "ilike" | "between" | "and" => Last::Comparison,
            "symmetric" | "asymmetric" if last == Last::Comparison => Last::Comparison,
            "in" => Last::In,
            "group" | "order" => Last::GroupOrOrder,
            "to_timestamp" | "to_date" => Last::DateFunction,
            "array" => Last::Array,
            "values" => Last::Values,
            _ if TEXT_FUNCTIONS.contains(&folded) => Last::TextFunction,
            "distinct" => Last::Distinct,
            "on" if last == Last::Distinct => Last::DistinctOn,
            "with" | "without" | "time" if last == Last::DateType => Last::DateType,
            "zone" if last == Last::DateType => Last::DateType,
            "interval" => Last::Interval,
            "any" | "some" | "all" if last == Last::Comparison => Last::Quantifier,
            _ if DATE_TYPES.contains(&folded) => Last::DateType,
            _ if MODIFIED_TYPES.contains(&folded) => Last::ModifiedType,
            _ => Last::Other,
        },
        TokenKind::QuotedName
        | TokenKind::String
        | TokenKind::EscapeString
        | TokenKind::DollarString
        | TokenKind::OtherString
        | TokenKind::Integer
        | TokenKind::Decimal
        | TokenKind::Parameter => Last::Other,
    }
}

/// The type of a numeric constant (make_const): int4, int8 or numeric by size. A constant at the edge may carry its
/// sign into another type, so the edge has a kind of its own.
fn number_kind(text: &str) -> &'static str {
    match text.parse::<u64>() {
        Ok(0..=0x7fff_ffff) => "{int4}",
        Ok(0x8000_0000) => "{int4 edge}",
        Ok(0x8000_0001..=0x7fff_ffff_ffff_ffff) => "{int8}",
        Ok(0x8000_0000_0000_0000) => "{int8 edge}",
        Ok(_) => "{numeric}",
        Err(_) => "{numeric}",
    }
}

/// A backslash matters in a LIKE pattern.
fn string_kind(text: &str) -> &'static str {
    if text.contains('\\') { "{text with backslash}" } else { "{text}" }
}

/// What is contained, or contains: an array, an object or something else of JSON.
fn contained_kind(text: &str) -> &'static str {
    match text.trim_start_matches(['\'', ' ']).chars().next() {
        _ if text.contains('\\') => "{contained with backslash}",
        Some('{') => "{braces}",
        Some('[') => "{brackets}",
        _ => "{contained}",
    }
}

/// A whole number of one unit; the unit is part of the shape.
fn interval_kind(text: &str) -> Option<&'static str> {
    let (number, unit) = text.strip_prefix('\'')?.strip_suffix('\'')?.split_once(' ')?;
    let is_number = (1..=9).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit());
    let kind = match unit {
        "second" | "seconds" => "{interval second}",
        "minute" | "minutes" => "{interval minute}",
        "hour" | "hours" => "{interval hour}",
        "day" | "days" => "{interval day}",
        "week" | "weeks" => "{interval week}",
        "month" | "months" => "{interval month}",
        "year" | "years" => "{interval year}",
        _ => return None,
    };
    is_number.then_some(kind)
}

/// INTERVAL '1 day' HOUR: a field that the literal is cut to.
fn is_field(next: &Token<'_>) -> bool {
    ["year", "month", "day", "hour", "minute", "second"].iter().any(|word| next.is_word(word))
}

fn is_comparison(token: &Token<'_>) -> bool {
    ["=", "<>", "!=", "<", ">", "<=", ">="].iter().any(|symbol| token.is_symbol(symbol))
}

fn begins_query(next: &Token<'_>) -> bool {
    ["select", "with", "values"].iter().any(|word| next.is_word(word)) || next.is_symbol("(")
}

/// Words that a date or number reads as something else than a plain value: now, today, epoch, infinity, nan...
fn is_special(token: &Token<'_>) -> bool {
    let Some(value) = token.string_value() else { return true };
    let value = value.trim_start().trim_start_matches(['+', '-']).to_ascii_lowercase();
    ["now", "today", "tomorrow", "yesterday", "epoch", "inf", "-inf", "allballs", "nan"]
        .iter()
        .any(|word| value.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(left: &str, right: &str) -> bool {
        shape(left) == shape(right)
    }

    #[test]
    fn statements_that_differ_in_values_share_a_shape() {
        assert!(same("SELECT a FROM t WHERE b = 1 AND c = 'x'", "select A from T where b = 77 and c='y z'"));
        assert!(same("SELECT a FROM t WHERE b IN (1,2,3)", "SELECT a FROM t WHERE b IN (4, 5)"));
        assert!(same("SELECT a FROM t WHERE b IN ('x','y')", "SELECT a FROM t WHERE b IN ('z','a','b')"));
        assert!(same("SELECT a FROM t WHERE d >= DATE '2020-01-01'", "SELECT a FROM t WHERE d >= DATE '2021-02-03'"));
        assert!(same(
            "SELECT a FROM t WHERE d > '2020-01-01'::timestamp",
            "SELECT a FROM t WHERE d > '2021'::timestamp"
        ));
        assert!(same("SELECT a FROM t WHERE lower(b) = LOWER('X')", "SELECT a FROM t WHERE lower(b) = lower('y')"));
        assert!(same(
            "SELECT a FROM t WHERE upper(b::text) LIKE upper('%x%') AND coalesce(c, 'd') = 'e'",
            "SELECT a FROM t WHERE upper(b::text) LIKE upper('%yz%') AND coalesce(c, '') = 'f'"
        ));
        assert!(same(
            "SELECT a FROM t WHERE b = ANY (ARRAY['x','y']) AND c[1] IN ('z')",
            "SELECT a FROM t WHERE b = ANY (ARRAY['u','v','w']) AND c[2] IN ('z')"
        ));
        assert!(same(
            "SELECT a FROM t JOIN (VALUES ('x', 1), ('y', 2)) v (k, n) ON k = b",
            "SELECT a FROM t JOIN (VALUES ('u', 3), ('v', 4)) v (k, n) ON k = b"
        ));
        assert!(same("SELECT a FROM t LIMIT 10 OFFSET 5", "SELECT a FROM t LIMIT 20 OFFSET 50"));
        assert!(same(
            "SELECT a FROM t WHERE d < TO_TIMESTAMP('2004-01-01 00:00:00', 'YYYY-MM-DD HH24:MI:SS')",
            "SELECT a FROM t WHERE d < TO_TIMESTAMP('2005-01-01 00:00:00', 'YYYY-MM-DD HH24:MI:SS')"
        ));
        assert!(same("SELECT a -- x\n FROM t", "SELECT a FROM t"));
        for (left, right) in [
            (
                "SELECT a FROM t WHERE (d, b) < ('2023-01-05', 5) LIMIT 3",
                "SELECT a FROM t WHERE (d, b) < ('2024-02-06', 77) LIMIT 9",
            ),
            ("SELECT a FROM t WHERE c @> '{x}' AND e && '{y,z}'", "SELECT a FROM t WHERE c @> '{y,z}' AND e && '{}'"),
            ("SELECT a FROM t WHERE j @> '{\"n\": 1}'", "SELECT a FROM t WHERE j @> '{\"m\": [2]}'"),
            (
                "SELECT a FROM t WHERE b = ANY ('{1,2}') AND 'x' = ANY (c)",
                "SELECT a FROM t WHERE b = ANY ('{3}') AND 'y' = ANY (c)",
            ),
            ("SELECT a FROM t WHERE c LIKE '%' || 'r1' || '%'", "SELECT a FROM t WHERE c LIKE '%' || 'r2' || '%'"),
            (
                "SELECT a FROM t WHERE d > now() - interval '3 days'",
                "SELECT a FROM t WHERE d > now() - INTERVAL '14 days'",
            ),
            ("SELECT a FROM t WHERE b IN ($1, $2) AND c = $3", "SELECT a FROM t WHERE b IN ($1,$2,$3,$4) AND c = $5"),
        ] {
            assert!(same(left, right), "{left} | {right}");
        }
    }

    #[test]
    fn literals_that_carry_meaning_stay() {
        for (left, right) in [
            ("SELECT a, b FROM t GROUP BY 1", "SELECT a, b FROM t GROUP BY 2"),
            ("SELECT a, b FROM t ORDER BY 1 DESC", "SELECT a, b FROM t ORDER BY 2 DESC"),
            ("SELECT a FROM (SELECT a, b FROM t ORDER BY 1) s", "SELECT a FROM (SELECT a, b FROM t ORDER BY 2) s"),
            ("SELECT date_trunc('month', a) FROM t", "SELECT date_trunc('day', a) FROM t"),
            ("SELECT a::numeric(10, 2) FROM t", "SELECT a::numeric(10, 3) FROM t"),
            ("SELECT CAST(a AS character varying(3)) FROM t", "SELECT CAST(a AS character varying(4)) FROM t"),
            ("SELECT a::timestamp(3) FROM t", "SELECT a::timestamp(4) FROM t"),
            ("SELECT a + INTERVAL '1 day' FROM t", "SELECT a + INTERVAL '1 month' FROM t"),
            ("SELECT to_char(a, 'YYYY') FROM t", "SELECT to_char(a, 'MM') FROM t"),
            ("SELECT to_date('2020', 'YYYY')", "SELECT to_date('2020', 'MM')"),
            ("SELECT a AT TIME ZONE 'UTC' FROM t", "SELECT a AT TIME ZONE 'EST' FROM t"),
            ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = 3000000000"),
            ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = 1.0"),
            ("SELECT a FROM t WHERE b = -2147483648", "SELECT a FROM t WHERE b = -1"),
            ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = '1'"),
            ("SELECT a FROM t WHERE b LIKE 'x\\_'", "SELECT a FROM t WHERE b LIKE 'x_'"),
            ("SELECT a FROM t WHERE d > 'now'", "SELECT a FROM t WHERE d > '2020-01-01'"),
            ("SELECT a FROM t WHERE \"B\" = 1", "SELECT a FROM t WHERE b = 1"),
            ("SELECT a FROM t WHERE b = $1 AND c = $1", "SELECT a FROM t WHERE b = $1 AND c = $2"),
            ("SELECT a FROM t WHERE b IN ($1, $2) AND c = $1", "SELECT a FROM t WHERE b IN ($1, $2) AND c = $3"),
            ("SELECT a FROM t WHERE j @> '{\"n\": 1}'", "SELECT a FROM t WHERE j @> '[1]'"),
            ("SELECT a FROM t WHERE b = ANY (SELECT 'x')", "SELECT a FROM t WHERE b = ANY (SELECT 'y')"),
            ("SELECT a FROM t WHERE b = (SELECT 'x')", "SELECT a FROM t WHERE b = (SELECT 'y')"),
            (
                "SELECT a FROM t WHERE b > (CASE WHEN c THEN 'x' END)",
                "SELECT a FROM t WHERE b > (CASE WHEN c THEN 'y' END)",
            ),
            ("SELECT a + INTERVAL '1 day' HOUR FROM t", "SELECT a + INTERVAL '2 day' HOUR FROM t"),
            ("SELECT a + INTERVAL '1 1:00' FROM t", "SELECT a + INTERVAL '2 1:00' FROM t"),
            ("SELECT a FROM t GROUP BY a || 'x'", "SELECT a FROM t GROUP BY a || 'y'"),
            ("SELECT a FROM t WHERE b IN (1, 2)", "SELECT a FROM t WHERE b IN (1, 2.0)"),
            ("SELECT a FROM t WHERE b IN (1, 2)", "SELECT a FROM t WHERE b IN (1)"),
            ("SELECT 'a'", "SELECT 'b'"),
            ("SELECT DISTINCT ON (1) a, b FROM t", "SELECT DISTINCT ON (2) a, b FROM t"),
            ("SELECT rows, a, b FROM t ORDER BY rows, 2", "SELECT rows, a, b FROM t ORDER BY rows, 3"),
            ("SELECT a, b FROM t ORDER BY t.offset, 1", "SELECT a, b FROM t ORDER BY t.offset, 2"),
        ] {
            assert!(!same(left, right), "{left} | {right}");
        }
    }

    #[test]
    fn literals_become_parameters() {
        let sql =
            "SELECT a FROM t WHERE b=5 AND c LIKE'x%' AND d IN (1.50, 3000000000) AND e BETWEEN 'p' AND 'q' LIMIT 7";
        let lifted = lift(sql).expect("some");
        assert_eq!(
            lifted.text,
            "SELECT a FROM t WHERE b= $1  AND c LIKE $2  AND d IN ( $3 ,  $4 ) AND e BETWEEN  $5  AND  $6  LIMIT 7"
        );
        let values: Vec<(Oid, &str)> = lifted.literals.iter().map(|(oid, value)| (*oid, &**value)).collect();
        assert_eq!(values, [(23, "5"), (0, "x%"), (1700, "1.50"), (20, "3000000000"), (0, "p"), (0, "q")]);
        assert_eq!(lifted.shape, shape(&sql.replace("'p'", "'o'").replace("b=5", "b = 17")).text);
        let symmetric = lift("SELECT a FROM t WHERE a NOT BETWEEN SYMMETRIC 9 AND 1").expect("some");
        assert_eq!(symmetric.text, "SELECT a FROM t WHERE a NOT BETWEEN SYMMETRIC  $1  AND  $2 ");
        assert_eq!(lift("SELECT a FROM t WHERE b = 'it''s'").map(|l| l.literals), Some(vec![(0, "it's".to_owned())]));
        let negative =
            lift("SELECT a FROM t WHERE a > -7 AND b IN (- 21474836, -2147483649) AND c <= -1.50 AND d - 1 = 2 - e");
        let negative = negative.expect("some");
        assert_eq!(
            negative.text,
            "SELECT a FROM t WHERE a >  $1  AND b IN ( $2 ,  $3 ) AND c <=  $4  AND d - 1 = 2 - e"
        );
        let values: Vec<(Oid, &str)> = negative.literals.iter().map(|(oid, value)| (*oid, &**value)).collect();
        assert_eq!(values, [(23, "-7"), (23, "-21474836"), (20, "-2147483649"), (1700, "-1.50")]);
        assert!(lift("SELECT CASE WHEN a = 1 THEN 2 ELSE 3 END FROM t").is_some_and(|l| l.literals.len() == 1));
    }

    #[test]
    fn what_means_more_than_its_value_is_no_parameter() {
        for sql in [
            "SELECT a FROM t",
            "SELECT a, b FROM t ORDER BY 1",
            "SELECT a, count(*) FROM t GROUP BY 1",
            "SELECT DISTINCT ON (1) a FROM t",
            "SELECT DISTINCT ON ((1), a) a FROM t",
            "SELECT a FROM t WHERE d = DATE '2020-01-01'",
            "SELECT a FROM t WHERE d = timestamp with time zone '2020-01-01'",
            "SELECT a FROM t WHERE d > 'now' AND b = - -2147483648",
            "SELECT a::numeric(10, 2), 'x', date_trunc('month', d) FROM t",
            "SELECT a FROM t WHERE b = $1 AND c = 1",
            // Constants that are computed when the statement is planned, and may raise errors then.
            "SELECT a + 1, 10 / 0, 70000::int2, '99999'::numeric(5,2) FROM t",
            "SELECT a FROM t WHERE b = 2147483647 + 1 AND c > '5'::int2 AND d = -7::int2 AND e = -1e400",
            "SELECT a FROM t WHERE b = -7 + 1 AND c = a - 7 AND d = -(7) AND e = - '7'",
            "SELECT a FROM t WHERE b = 5 COLLATE x AND c LIKE 'x' ESCAPE '!' AND 5 + b > c",
            "SELECT a FROM t LIMIT 5 OFFSET 2",
            "SELECT a FROM t FETCH FIRST 5 ROWS ONLY",
            "SELECT rows, a FROM t ORDER BY rows, 1",
            "SELECT a FROM t ORDER BY t.offset, 1",
            "SELECT a = 1, count(*) FROM t GROUP BY ROLLUP (a = 1, a)",
            "SELECT a = 1, count(*) FROM t GROUP BY GROUPING SETS ((a = 1), (a))",
        ] {
            assert_eq!(lift(sql), None, "{sql}");
        }
        assert_eq!(lift(&format!("SELECT a FROM t WHERE b IN (1{})", ", 1".repeat(LITERALS_MAX))), None);
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for (sql, expected) in [
            ("CREATE ROLE app PASSWORD 's3cret'", "create ..."),
            ("SELECT login('ann', 's3cret', 5)", "select login ( {text} , {text} , {number} )"),
            ("SELECT id FROM u WHERE pw = md5('s3cret')", "select id from u where pw = md5 ( {text} )"),
            ("SELECT 'open", "(not read)"),
        ] {
            assert_eq!(unbound(sql), expected);
            assert_eq!(shown(expected), expected);
        }
        assert_eq!(unbound("SELECT date_trunc('day', at) FROM t"), shape("SELECT date_trunc('day', at) FROM t").text);
    }

    #[test]
    fn no_string_of_a_shape_is_shown() {
        for literal in [
            "'s3cret'",
            "'it''s s3cret'",
            "E's3\\'cret'",
            "$$s3cret$$",
            "$a$s3'cret$a$",
            "N's3cret'",
            "U&'s3cret'",
            "B'01'",
            "X'1F'",
            "'s3'\n'cret'",
            "'s3' 'cret'",
            "'{s3cret'",
        ] {
            for sql in [
                format!("SELECT {literal}, lower({literal}) FROM t"),
                format!("SELECT a FROM t WHERE b = {literal} AND md5({literal}) ~ {literal}"),
                format!("SELECT a FROM t WHERE b SIMILAR TO {literal} OR b LIKE ANY (ARRAY[{literal}, {literal}])"),
                format!("SELECT a FROM t WHERE b IN ({literal}, {literal}) AND c::varchar(7) = {literal} || {literal}"),
                format!("VALUES ({literal}), (coalesce(NULL, {literal}))"),
                format!("SELECT login({literal}), \"Name\" FROM t ORDER BY nullif(b, {literal}), 2"),
            ] {
                for text in [shown(&shape(&sql).text), shown(&unbound(&sql))] {
                    assert!(
                        !["s3", "cret", "01", "1F", "'", "$"].iter().any(|part| text.contains(part)),
                        "{sql}: {text}"
                    );
                    assert!(text.contains(TEXT), "{sql}: {text}");
                }
            }
        }
        let sql = "SELECT 'a', b::numeric(10, 2), c FROM t WHERE b = $1 AND c IN ('x', 'y') AND d @> '{1}' ORDER BY 2";
        let expected = "select {text} , b :: numeric ( 10 , 2 ) , c from t where b = $1 and c in ( {text} ... ) and d @> {braces} \
                        order by 2";
        assert_eq!(shown(&shape(sql).text), expected);
        // What does not lex is its own shape.
        assert_eq!(shown(&shape("SELECT 's3cret").text), NOT_READ);
        assert_eq!(shown("(other statements)"), "(other statements)");
    }

    #[test]
    fn semicolons_at_the_end_are_no_part_of_a_shape() {
        assert!(same("SELECT a FROM t", "SELECT a FROM t ; ;"));
        assert!(!same("SELECT ' ;'", "SELECT ''"));
        assert_eq!(unbound("SELECT login(1);"), unbound("SELECT login(1)"));
        let texts = |sql: &str| lift(sql).map(|lifted| lifted.literals.len());
        assert_eq!(
            [texts("SELECT a FROM t WHERE 1 = 2 OR b = 3"), texts("SELECT a FROM t WHERE b % 2 = 1")],
            [Some(1); 2]
        );
        assert_eq!(
            [texts("SELECT a FROM t WHERE (1 = 1)"), texts("SELECT a FROM t WHERE b IN (1, 2)")],
            [None, Some(2)]
        );
        let lifted = lift("SELECT a FROM t WHERE b = 1;").expect("one literal");
        assert_eq!(lifted.shape, shape("SELECT a FROM t WHERE b = 1").text);
    }
}
