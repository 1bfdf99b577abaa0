//! SQL text → tokens, by the rules of PostgreSQL's scan.l with `standard_conforming_strings` on.
//!
//! The one place that knows quoting: fingerprint, classify and parse all read its tokens, so they cannot disagree
//! about where a string ends. Text that PostgreSQL's scanner rejects is an error here too.

use std::borrow::Cow;

/// What a token is. White space and comments are not tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Unquoted: a keyword or a name, not yet folded.
    Word,
    /// `"..."`.
    QuotedName,
    /// `'...'`.
    String,
    /// `E'...'`.
    EscapeString,
    /// `$tag$...$tag$`.
    DollarString,
    /// `U&'...'`, `U&"..."`, `B'...'`, `X'...'`, `N'...'`: lexed, never interpreted here.
    OtherString,
    Integer,
    /// With a point or an exponent.
    Decimal,
    /// `$1`.
    Parameter,
    /// An operator of one or more characters, or one of `( ) [ ] , ; :`, `::`, `:=`, `..`, `.`, `=>`.
    Symbol,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    /// As written.
    pub text: &'a str,
    /// Byte offset in the SQL text.
    pub start: usize,
}

/// The scanner's error, or a form that is not lexed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {position}")]
pub struct LexError {
    pub problem: &'static str,
    pub position: usize,
}

/// NAMEDATALEN - 1: longer names are truncated upstream, with a notice.
pub const NAME_BYTES_MAX: usize = 63;

impl<'a> Token<'a> {
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }

    /// Whether it is this keyword (given in lower case).
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// The name it stands for: folded if unquoted (downcase_identifier: ASCII only in UTF-8), else unescaped.
    pub fn name(&self) -> Option<Cow<'a, str>> {
        match self.kind {
            TokenKind::Word => Some(fold(self.text)),
            TokenKind::QuotedName => {
                let inner = &self.text[1..self.text.len() - 1];
                Some(if inner.contains('"') { inner.replace("\"\"", "\"").into() } else { inner.into() })
            }
            TokenKind::String
            | TokenKind::EscapeString
            | TokenKind::DollarString
            | TokenKind::OtherString
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Parameter
            | TokenKind::Symbol => None,
        }
    }

    /// The value of a string constant; None if it is not one or its escapes are not interpreted here.
    pub fn string_value(&self) -> Option<Cow<'a, str>> {
        match self.kind {
            TokenKind::String => plain_value(self.text),
            TokenKind::EscapeString => escape_value(&self.text[1..]),
            TokenKind::DollarString => {
                let tag = self.text[1..].find('$')? + 2;
                Some(self.text[tag..self.text.len() - tag].into())
            }
            TokenKind::Word
            | TokenKind::QuotedName
            | TokenKind::OtherString
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Parameter
            | TokenKind::Symbol => None,
        }
    }
}

/// All tokens of `sql`.
pub fn tokens(sql: &str) -> Result<Vec<Token<'_>>, LexError> {
    Lexer::new(sql).collect()
}

/// Iterates over the tokens of one text; ends after the first error.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    sql: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(sql: &'a str) -> Self {
        Self { sql, position: 0 }
    }

    fn byte(&self, at: usize) -> u8 {
        self.sql.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn error(&self, problem: &'static str) -> LexError {
        LexError { problem, position: self.position }
    }

    fn skip_space(&mut self) -> Result<(), LexError> {
        loop {
            match self.byte(self.position) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0c => self.position += 1,
                b'-' if self.byte(self.position + 1) == b'-' => {
                    self.position = line_end(self.sql, self.position);
                }
                b'/' if self.byte(self.position + 1) == b'*' => {
                    self.position = self.comment_end()?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// After the `*/` that closes the comment here; comments nest.
    fn comment_end(&self) -> Result<usize, LexError> {
        let mut depth = 1;
        let mut at = self.position + 2;
        while depth > 0 {
            match (self.byte(at), self.byte(at + 1)) {
                (b'/', b'*') => {
                    depth += 1;
                    at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    at += 2;
                }
                _ if at >= self.sql.len() => return Err(self.error("unterminated comment")),
                _ => at += 1,
            }
        }
        Ok(at)
    }

    fn token(&mut self) -> Result<Token<'a>, LexError> {
        let start = self.position;
        let first = self.byte(start);
        let second = self.byte(start + 1);
        let (kind, end) = match first {
            b'\'' => (TokenKind::String, self.string_end(start, Escapes::None)?),
            b'e' | b'E' if second == b'\'' => {
                (TokenKind::EscapeString, self.string_end(start + 1, Escapes::Backslash)?)
            }
            b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if second == b'\'' => {
                (TokenKind::OtherString, self.string_end(start + 1, Escapes::None)?)
            }
            b'u' | b'U' if second == b'&' && self.byte(start + 2) == b'\'' => {
                (TokenKind::OtherString, self.string_end(start + 2, Escapes::None)?)
            }
            b'u' | b'U' if second == b'&' && self.byte(start + 2) == b'"' => {
                (TokenKind::OtherString, self.quoted_name_end(start + 2)?)
            }
            b'"' => (TokenKind::QuotedName, self.quoted_name_end(start)?),
            b'$' if second.is_ascii_digit() => (TokenKind::Parameter, self.parameter_end()?),
            b'$' => (TokenKind::DollarString, self.dollar_string_end()?),
            b'0'..=b'9' => self.number_end()?,
            b'.' if second.is_ascii_digit() => self.number_end()?,
            _ if is_name_start(first) => (TokenKind::Word, name_end(self.sql, start)),
            _ => (TokenKind::Symbol, self.symbol_end()?),
        };
        if kind == TokenKind::QuotedName && end - start == 2 {
            return Err(self.error("zero-length delimited identifier"));
        }
        self.position = end;
        Ok(Token { kind, text: &self.sql[start..end], start })
    }

    /// End of the string whose opening quote is at `open`, with its continuations after a line break.
    fn string_end(&self, open: usize, escapes: Escapes) -> Result<usize, LexError> {
        let mut at = open + 1;
        loop {
            match self.byte(at) {
                b'\'' if self.byte(at + 1) == b'\'' => at += 2,
                b'\'' => match continuation(self.sql, at + 1) {
                    Some(quote) => at = quote + 1,
                    None => return Ok(at + 1),
                },
                b'\\' if escapes == Escapes::Backslash => at += 2,
                _ if at >= self.sql.len() => return Err(self.error("unterminated quoted string")),
                _ => at += 1,
            }
        }
    }

    fn quoted_name_end(&self, open: usize) -> Result<usize, LexError> {
        let mut at = open + 1;
        loop {
            match self.byte(at) {
                b'"' if self.byte(at + 1) == b'"' => at += 2,
                b'"' => return Ok(at + 1),
                _ if at >= self.sql.len() => return Err(self.error("unterminated quoted identifier")),
                _ => at += 1,
            }
        }
    }

    fn dollar_string_end(&self) -> Result<usize, LexError> {
        let start = self.position;
        let mut at = start + 1;
        if is_name_start(self.byte(at)) {
            while is_name_start(self.byte(at)) || self.byte(at).is_ascii_digit() {
                at += 1;
            }
        }
        if self.byte(at) != b'$' {
            return Err(self.error("stray $"));
        }
        let tag = &self.sql[start..=at];
        let body = at + 1;
        let length = self.sql[body..].find(tag).ok_or_else(|| self.error("unterminated dollar-quoted string"))?;
        Ok(body + length + tag.len())
    }

    fn parameter_end(&self) -> Result<usize, LexError> {
        let end = digits_end(self.sql, self.position + 1);
        if is_name_start(self.byte(end)) {
            return Err(self.error("trailing junk after parameter"));
        }
        Ok(end)
    }

    fn number_end(&self) -> Result<(TokenKind, usize), LexError> {
        let mut kind = TokenKind::Integer;
        let mut end = digits_end(self.sql, self.position);
        // `1..2` is an integer and `..` (PL/pgSQL loops).
        if self.byte(end) == b'.' && self.byte(end + 1) != b'.' {
            kind = TokenKind::Decimal;
            end = digits_end(self.sql, end + 1);
        }
        if matches!(self.byte(end), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            if self.byte(end + 1 + sign).is_ascii_digit() {
                kind = TokenKind::Decimal;
                end = digits_end(self.sql, end + 1 + sign);
            }
        }
        if is_name_start(self.byte(end)) {
            return Err(self.error("trailing junk after numeric literal"));
        }
        Ok((kind, end))
    }

    fn symbol_end(&self) -> Result<usize, LexError> {
        let start = self.position;
        let two = self.sql.as_bytes().get(start..start + 2);
        match self.byte(start) {
            b':' if matches!(two, Some(b"::" | b":=")) => Ok(start + 2),
            b'.' if two == Some(b"..") => Ok(start + 2),
            b'(' | b')' | b'[' | b']' | b',' | b';' | b':' | b'.' => Ok(start + 1),
            byte if OPERATOR_BYTES.contains(&byte) => Ok(operator_end(self.sql, start)),
            _ => Err(self.error("unexpected character")),
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Result<Token<'a>, LexError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.skip_space() {
            self.position = self.sql.len();
            return Some(Err(error));
        }
        if self.position >= self.sql.len() {
            return None;
        }
        let token = self.token();
        if token.is_err() {
            self.position = self.sql.len();
        }
        Some(token)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    None,
    Backslash,
}

const OPERATOR_BYTES: &[u8] = b"~!@#^&|`?+-*/%<>=";

/// ASCII letters fold to lower case, other characters stay.
pub fn fold(word: &str) -> Cow<'_, str> {
    if word.bytes().any(|byte| byte.is_ascii_uppercase()) { word.to_ascii_lowercase().into() } else { word.into() }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn name_end(sql: &str, start: usize) -> usize {
    let rest = &sql.as_bytes()[start..];
    let is_part = |byte: &u8| is_name_start(*byte) || byte.is_ascii_digit() || *byte == b'$';
    start + rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len())
}

fn digits_end(sql: &str, start: usize) -> usize {
    let rest = &sql.as_bytes()[start..];
    start + rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())
}

fn line_end(sql: &str, start: usize) -> usize {
    let rest = &sql.as_bytes()[start..];
    start + memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())
}

/// The longest run of operator characters, cut before a comment, and without trailing `+` or `-` unless the
/// run has a character that SQL does not use (scan.l, rule {operator}).
fn operator_end(sql: &str, start: usize) -> usize {
    let bytes = sql.as_bytes();
    let mut end = start;
    while end < bytes.len() && OPERATOR_BYTES.contains(&bytes[end]) {
        if end > start && matches!(bytes.get(end..end + 2), Some(b"--" | b"/*")) {
            break;
        }
        end += 1;
    }
    let run = &bytes[start..end];
    if run.len() > 1 && !run.iter().any(|byte| b"~!@#^&|`?%".contains(byte)) {
        while end - start > 1 && matches!(bytes[end - 1], b'+' | b'-') {
            end -= 1;
        }
    }
    end
}

/// The opening quote that continues a string which ended before `at`: only white space with a line break
/// (and `--` comments after it) between (scan.l, rule {quotecontinue}).
fn continuation(sql: &str, mut at: usize) -> Option<usize> {
    let bytes = sql.as_bytes();
    let mut has_line_break = false;
    loop {
        match bytes.get(at)? {
            b'\n' | b'\r' => {
                has_line_break = true;
                at += 1;
            }
            b' ' | b'\t' | 0x0c => at += 1,
            b'-' if bytes.get(at + 1) == Some(&b'-') => at = line_end(sql, at),
            b'\'' if has_line_break => return Some(at),
            _ => return None,
        }
    }
}

/// None: continued over a line break.
fn plain_value(quoted: &str) -> Option<Cow<'_, str>> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains('\'') {
        return Some(inner.into());
    }
    let mut value = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character == '\'' && characters.next() != Some('\'') {
            return None;
        }
        value.push(character);
    }
    Some(value.into())
}

/// The one-character escapes; octal, hexadecimal and Unicode ones are not interpreted here (None).
fn escape_value(quoted: &str) -> Option<Cow<'_, str>> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains(['\\', '\'']) {
        return Some(inner.into());
    }
    let mut value = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' if characters.next() == Some('\'') => value.push('\''),
            '\'' => return None,
            '\\' => value.push(match characters.next()? {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'x' | 'u' | 'U' | '0'..='9' => return None,
                other => other,
            }),
            other => value.push(other),
        }
    }
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<&str> {
        tokens(sql).expect("lexes").into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_nest_and_end_operators() {
        assert_eq!(texts("a /* x /* y */ z */ b -- c\n d"), ["a", "b", "d"]);
        assert_eq!(texts("1+/*x*/2"), ["1", "+", "2"]);
        assert_eq!(texts("1 --2"), ["1"]);
        assert!(tokens("a /* /* */").is_err());
    }

    #[test]
    fn operators_give_up_a_trailing_sign() {
        assert_eq!(texts("a*-b"), ["a", "*", "-", "b"]);
        assert_eq!(texts("a<-1"), ["a", "<", "-", "1"]);
        assert_eq!(texts("a>=-1"), ["a", ">=", "-", "1"]);
        assert_eq!(texts("a@-b"), ["a", "@-", "b"]);
        assert_eq!(texts("a||b::text"), ["a", "||", "b", "::", "text"]);
        assert_eq!(texts("a!~~*b"), ["a", "!~~*", "b"]);
    }

    #[test]
    fn strings_end_where_postgresql_ends_them() {
        assert_eq!(texts(r"'a\' 'b'"), [r"'a\'", "'b'"]);
        assert_eq!(texts(r"E'a\'b' c"), [r"E'a\'b'", "c"]);
        assert_eq!(texts("'a''b'"), ["'a''b'"]);
        assert_eq!(texts("'a'\n 'b' c"), ["'a'\n 'b'", "c"]);
        assert_eq!(texts("'a' 'b'"), ["'a'", "'b'"]);
        assert_eq!(texts("$$a'b$$ $x$ $$ $x$"), ["$$a'b$$", "$x$ $$ $x$"]);
        assert_eq!(texts("a$1 $1"), ["a$1", "$1"]);
        assert_eq!(texts("U&'d\\0061' X'1F'"), ["U&'d\\0061'", "X'1F'"]);
        assert!(tokens("'a").is_err());
        assert!(tokens("$x$ a").is_err());
        assert!(tokens("\"\"").is_err());
    }

    #[test]
    fn string_values_are_unescaped() {
        let value = |sql| tokens(sql).expect("lexes")[0].string_value().map(Cow::into_owned);
        assert_eq!(value("'it''s'").as_deref(), Some("it's"));
        assert_eq!(value("''''").as_deref(), Some("'"));
        assert_eq!(value(r"'a\n'").as_deref(), Some(r"a\n"));
        assert_eq!(value(r"E'a\n\'b'").as_deref(), Some("a\n'b"));
        assert_eq!(value(r"E'\x41'"), None);
        assert_eq!(value("$q$it's$q$").as_deref(), Some("it's"));
        assert_eq!(value("'a'\n'b'"), None);
        assert_eq!(value("E'a'\n'b'"), None);
    }

    #[test]
    fn numbers_follow_the_scanner() {
        let kinds = |sql| tokens(sql).map(|list| list.iter().map(|t| (t.kind, t.text)).collect::<Vec<_>>());
        assert_eq!(
            kinds("1 1.5 .5 1. 1e5 1.e-2").expect("lexes").iter().filter(|t| t.0 == TokenKind::Decimal).count(),
            5
        );
        assert_eq!(
            kinds("1..2"),
            Ok(vec![(TokenKind::Integer, "1"), (TokenKind::Symbol, ".."), (TokenKind::Integer, "2")])
        );
        assert!(kinds("1a").is_err());
        assert!(kinds("0x1F").is_err());
        assert!(kinds("1_000").is_err());
        assert!(kinds("1e").is_err());
        assert!(kinds("$1a").is_err());
    }

    #[test]
    fn names_fold_ascii_only() {
        let names: Vec<_> =
            tokens("Ab \"A\"\"b\" ÄB").expect("lexes").iter().map(|t| t.name().expect("a name").into_owned()).collect();
        assert_eq!(names, ["ab", "A\"b", "Äb"]);
    }

    #[test]
    fn any_text_lexes_or_fails_without_panic() {
        for sql in
            ["\\", "$", "'", "\"", "E'\\", "$a", "é$", "U&", "/*", "/", "\u{0}", "1e+", "E'\\é'", "@", "'\n", "$é$x$é$"]
        {
            let _ = tokens(sql);
            let _: Vec<_> = Lexer::new(sql).flatten().map(|t| (t.name(), t.string_value())).collect();
        }
    }
}
