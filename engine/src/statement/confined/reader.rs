//! [`Reader`]: the words of a writing statement one by one. Each method takes what it is named after, or says None: then the text is
//! none of the forms that are read here.
//!
//! Conditions are conjunctions of comparisons; values are constants, columns of the table and plain arithmetic over them. A name is
//! taken only where PostgreSQL's grammar (gram.y) can mean nothing else by it: quoted, or no keyword but an unreserved one, in ASCII
//! (others fold by the server's locale) and not cut off (NAMEDATALEN).

use crate::statement::confined::{CONSTANTS_MAX, Cast, ConfinedColumn, Constant, ConstantValue, Names};
use crate::statement::keywords::{KeywordClass, look_up};
use crate::statement::lexer::{NAME_BYTES_MAX, Token, TokenKind};

/// Parentheses within each other.
const NESTING_MAX: usize = 6;
const ARITHMETIC: [&str; 6] = ["+", "-", "*", "/", "%", "||"];
const COMPARISONS: [(&str, &str); 7] =
    [("=", "="), ("<>", "<>"), ("!=", "<>"), ("<", "<"), (">", ">"), ("<=", "<="), (">=", ">=")];
/// Reserved words that are values.
const VALUES: [&str; 6] = ["null", "true", "false", "current_timestamp", "current_date", "localtimestamp"];
/// Types that values may be cast to, by one word; some are keywords, the others names that somebody may give to a type of his own.
const TYPES: [(&str, Option<Cast>); 26] = [
    ("int2", Some(Cast::Integer)),
    ("int4", Some(Cast::Integer)),
    ("int8", Some(Cast::Integer)),
    ("smallint", Some(Cast::Integer)),
    ("int", Some(Cast::Integer)),
    ("integer", Some(Cast::Integer)),
    ("bigint", Some(Cast::Integer)),
    ("text", Some(Cast::Text)),
    ("varchar", Some(Cast::Text)),
    ("uuid", Some(Cast::Uuid)),
    ("inet", Some(Cast::Network)),
    ("cidr", Some(Cast::Network)),
    ("bool", None),
    ("boolean", None),
    ("numeric", None),
    ("decimal", None),
    ("real", None),
    ("float4", None),
    ("float8", None),
    ("date", None),
    ("timestamp", None),
    ("timestamptz", None),
    ("time", None),
    ("json", None),
    ("jsonb", None),
    ("bytea", None),
];

pub(super) struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    nesting: usize,
    /// What a column of the table may be qualified with.
    qualifier: String,
    has_excluded: bool,
    names: Names,
}

/// What a value is.
#[derive(Clone)]
enum Operand {
    Column(String),
    Constant(Constant),
    Other,
}

impl Operand {
    fn constant(self) -> Option<Constant> {
        match self {
            Self::Constant(constant) => Some(constant),
            Self::Column(_) | Self::Other => None,
        }
    }
}

impl<'t, 'a> Reader<'t, 'a> {
    pub(super) fn new(tokens: &'t [Token<'a>]) -> Self {
        let (qualifier, names) = (String::new(), Names::default());
        Self { tokens, at: 0, nesting: 0, qualifier, has_excluded: false, names }
    }

    /// What was used, each once.
    pub(super) fn names(mut self) -> Names {
        let Names { columns, types, functions, operators } = &mut self.names;
        columns.sort_unstable();
        columns.dedup();
        for names in [types, functions, operators] {
            names.sort_unstable();
            names.dedup();
        }
        self.names
    }

    fn peek(&self) -> Option<&'t Token<'a>> {
        self.tokens.get(self.at)
    }

    fn is_word(&self, word: &str) -> bool {
        self.peek().is_some_and(|token| token.is_word(word))
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.peek().is_some_and(|token| token.is_symbol(symbol))
    }

    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn takes_symbol(&mut self, symbol: &str) -> bool {
        let is_there = self.is_symbol(symbol);
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn word(&mut self, word: &str) -> Option<()> {
        self.takes_word(word).then_some(())
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> Option<()> {
        self.takes_symbol(symbol).then_some(())
    }

    fn name(&mut self) -> Option<String> {
        let token = self.peek()?;
        let name = token.name()?;
        let is_free = token.kind == TokenKind::QuotedName
            || token.kind == TokenKind::Word
                && look_up(&name).is_none_or(|keyword| matches!(keyword.class, KeywordClass::Unreserved));
        let is_plain = is_free && name.is_ascii() && name.len() <= NAME_BYTES_MAX;
        self.at += 1;
        is_plain.then(|| name.into_owned())
    }

    /// `[schema.]table`.
    pub(super) fn target(&mut self) -> Option<()> {
        self.qualifier = self.name()?;
        if self.takes_symbol(".") {
            self.qualifier = self.name()?;
        }
        Some(())
    }

    /// `[[AS] alias]`, before this word or symbol, which is not taken unless it is SET.
    pub(super) fn alias(&mut self, then: &str) -> Option<()> {
        let is_then = |reader: &Self| reader.is_word(then) || reader.is_symbol(then);
        if self.takes_word("as") || !is_then(self) {
            self.qualifier = self.name()?;
        }
        if then == "set" { self.word("set") } else { is_then(self).then_some(()) }
    }

    /// From here on there is the row that was to come.
    pub(super) fn knows_excluded(&mut self) {
        self.has_excluded = true;
    }

    /// Unqualified.
    pub(super) fn column_name(&mut self) -> Option<String> {
        let name = self.name()?;
        self.names.columns.push(name.clone());
        Some(name)
    }

    pub(super) fn columns_in_parentheses(&mut self) -> Option<Vec<String>> {
        self.symbol("(")?;
        let mut names = vec![self.column_name()?];
        while self.takes_symbol(",") {
            names.push(self.column_name()?);
        }
        self.symbol(")")?;
        Some(names)
    }

    /// `(value, ...)`: of each the constant, if it is one.
    pub(super) fn row(&mut self) -> Option<Vec<Option<Constant>>> {
        self.symbol("(")?;
        let mut row = vec![self.value()?];
        while self.takes_symbol(",") {
            row.push(self.value()?);
        }
        self.symbol(")")?;
        Some(row)
    }

    /// What is stored in a column. Inner None: no constant.
    pub(super) fn value(&mut self) -> Option<Option<Constant>> {
        if self.takes_word("default") {
            return Some(None);
        }
        Some(self.expression()?.constant())
    }

    /// `[RETURNING * | value [AS label], ...]`, and the end of the text.
    pub(super) fn returning(&mut self) -> Option<()> {
        if self.takes_word("returning") {
            loop {
                if !self.takes_symbol("*") {
                    self.expression()?;
                    if self.takes_word("as") {
                        self.name()?;
                    }
                }
                if !self.takes_symbol(",") {
                    break;
                }
            }
        }
        self.peek().is_none().then_some(())
    }

    /// A conjunction: the columns that it compares with constants.
    pub(super) fn condition(&mut self) -> Option<Vec<ConfinedColumn>> {
        let mut columns = self.conjunct()?;
        while self.takes_word("and") {
            columns.extend(self.conjunct()?);
        }
        Some(columns)
    }

    /// A comparison, or another conjunction in parentheses.
    fn conjunct(&mut self) -> Option<Vec<ConfinedColumn>> {
        if !self.is_symbol("(") {
            return self.comparison();
        }
        let start = self.at;
        if let Some(columns) = self.nested(Self::condition)
            && (self.peek().is_none() || self.is_word("and") || self.is_word("returning") || self.is_symbol(")"))
        {
            return Some(columns);
        }
        // The parenthesis is around a value only.
        self.at = start;
        self.comparison()
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.nesting >= NESTING_MAX {
            return None;
        }
        self.nesting += 1;
        let found = self.symbol("(").and_then(|()| read(self)).filter(|_| self.takes_symbol(")"));
        self.nesting -= 1;
        found
    }

    /// `value <operator> value`, `value IN (values)`, `value IS [NOT] NULL`, a boolean column by itself.
    fn comparison(&mut self) -> Option<Vec<ConfinedColumn>> {
        let left = self.expression()?;
        if self.takes_word("is") {
            self.takes_word("not");
            self.word("null")?;
            return Some(Vec::new());
        }
        if self.takes_word("in") {
            self.names.operators.push("=");
            let constants = self.row()?.into_iter().collect::<Option<Vec<_>>>();
            let constants = constants.filter(|constants| constants.len() <= CONSTANTS_MAX);
            return Some(match (left, constants) {
                (Operand::Column(column), Some(constants)) => vec![ConfinedColumn { column, constants }],
                _ => Vec::new(),
            });
        }
        let Some((_, operator)) = COMPARISONS.iter().find(|(symbol, _)| self.is_symbol(symbol)) else {
            return matches!(left, Operand::Column(_)).then(Vec::new);
        };
        self.at += 1;
        self.names.operators.push(operator);
        let right = self.expression()?;
        Some(match (left, right) {
            (Operand::Column(column), Operand::Constant(constant))
            | (Operand::Constant(constant), Operand::Column(column))
                if *operator == "=" =>
            {
                vec![ConfinedColumn { column, constants: vec![constant] }]
            }
            _ => Vec::new(),
        })
    }

    fn expression(&mut self) -> Option<Operand> {
        let mut operand = self.term()?;
        while let Some(operator) = ARITHMETIC.iter().find(|symbol| self.is_symbol(symbol)) {
            self.at += 1;
            self.names.operators.push(operator);
            self.term()?;
            operand = Operand::Other;
        }
        Some(operand)
    }

    /// With its casts.
    fn term(&mut self) -> Option<Operand> {
        let is_negative = self.takes_symbol("-");
        let mut operand = self.primary()?;
        let mut is_cast = false;
        while self.takes_symbol("::") {
            operand = self.cast(operand)?;
            is_cast = true;
        }
        if !is_negative {
            return Some(operand);
        }
        // A cast binds tighter than the sign; before a number this is no operator (gram.y, doNegate).
        match operand {
            Operand::Constant(Constant { value: ConstantValue::Integer(number), cast: None })
                if !is_cast && !number.starts_with('-') =>
            {
                let value = ConstantValue::Integer(format!("-{number}"));
                Some(Operand::Constant(Constant { value, cast: None }))
            }
            _ => {
                self.names.operators.push("-");
                Some(Operand::Other)
            }
        }
    }

    fn primary(&mut self) -> Option<Operand> {
        let token = self.peek()?;
        let constant = |value| Operand::Constant(Constant { value, cast: None });
        let found = match token.kind {
            TokenKind::Symbol if token.is_symbol("(") => return self.nested(Self::expression),
            TokenKind::Integer => constant(ConstantValue::Integer(token.text.to_owned())),
            TokenKind::String => match token.string_value().filter(|value| value.is_ascii()) {
                Some(value) => constant(ConstantValue::Text(value.into_owned())),
                None => Operand::Other,
            },
            TokenKind::Parameter => {
                let index = number(token)?.checked_sub(1)?;
                constant(ConstantValue::Parameter { index, is_alone: self.is_alone(index) })
            }
            TokenKind::Decimal | TokenKind::EscapeString | TokenKind::DollarString => Operand::Other,
            TokenKind::Word if VALUES.iter().any(|word| token.is_word(word)) => Operand::Other,
            TokenKind::Word | TokenKind::QuotedName => return self.column_or_now(),
            TokenKind::Symbol | TokenKind::OtherString => return None,
        };
        self.at += 1;
        Some(found)
    }

    fn column_or_now(&mut self) -> Option<Operand> {
        let is_word = self.peek()?.kind == TokenKind::Word;
        let name = self.name()?;
        if self.takes_symbol(".") {
            let is_new_row = self.has_excluded && name == "excluded";
            if !is_new_row && name != self.qualifier {
                return None;
            }
            let column = self.column_name()?;
            return Some(if is_new_row { Operand::Other } else { Operand::Column(column) });
        }
        if self.is_symbol("(") {
            // The one call that is read.
            let is_now = is_word && name == "now";
            self.at += 1;
            self.names.functions.push("now");
            return (is_now && self.takes_symbol(")")).then_some(Operand::Other);
        }
        self.names.columns.push(name.clone());
        Some(Operand::Column(name))
    }

    fn cast(&mut self, operand: Operand) -> Option<Operand> {
        let token = self.peek()?;
        let (name, cast) = TYPES.iter().find(|(name, _)| token.is_word(name))?;
        self.at += 1;
        self.names.types.push(name);
        // A length, or a precision, may change the value.
        let has_modifier = self.is_symbol("(");
        if has_modifier {
            self.modifier()?;
        }
        if matches!(*name, "time" | "timestamp") && (self.is_word("with") || self.is_word("without")) {
            self.at += 1;
            self.word("time")?;
            self.word("zone")?;
        }
        Some(match (operand, cast) {
            (Operand::Constant(Constant { value, cast: None }), Some(cast)) if !has_modifier => {
                Operand::Constant(Constant { value, cast: Some(*cast) })
            }
            _ => Operand::Other,
        })
    }

    /// `(numbers)`.
    fn modifier(&mut self) -> Option<()> {
        self.symbol("(")?;
        loop {
            self.peek().filter(|token| token.kind == TokenKind::Integer)?;
            self.at += 1;
            if !self.takes_symbol(",") {
                return self.symbol(")");
            }
        }
    }

    fn is_alone(&self, index: usize) -> bool {
        let is_same = |token: &&Token<'_>| token.kind == TokenKind::Parameter && number(token) == Some(index + 1);
        self.tokens.iter().filter(is_same).count() == 1
    }
}

fn number(parameter: &Token<'_>) -> Option<usize> {
    parameter.text.get(1..)?.parse().ok()
}
