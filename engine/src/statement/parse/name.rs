//! Names and types: ColId, ColLabel, BareColLabel, Typename of gram.y.

use super::{Parsed, Parser, unsupported};
use crate::statement::ast::TypeName;
use crate::statement::keywords::{self, KeywordClass};
use crate::statement::lexer::{NAME_BYTES_MAX, Token, TokenKind, fold};

/// What a word or quoted name may be used as; None for other tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordClass {
    /// No keyword, or quoted.
    Plain,
    Keyword(KeywordClass),
}

impl WordClass {
    pub(super) fn is_column_id(self) -> bool {
        matches!(self, Self::Plain | Self::Keyword(KeywordClass::Unreserved | KeywordClass::ColumnName))
    }

    pub(super) fn is_type_or_function(self) -> bool {
        matches!(self, Self::Plain | Self::Keyword(KeywordClass::Unreserved | KeywordClass::TypeOrFunction))
    }
}

pub(super) fn word_class(token: &Token<'_>) -> Option<WordClass> {
    match token.kind {
        TokenKind::QuotedName => Some(WordClass::Plain),
        TokenKind::Word => Some(match keywords::look_up(&fold(token.text)) {
            Some(keyword) => WordClass::Keyword(keyword.class),
            None => WordClass::Plain,
        }),
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

impl Parser<'_, '_> {
    pub(super) fn peek_is_column_id(&self) -> bool {
        self.peek().and_then(word_class).is_some_and(WordClass::is_column_id)
    }

    pub(super) fn column_id(&mut self) -> Parsed<String> {
        if self.peek_is_column_id() { self.any_name() } else { Err(self.unexpected()) }
    }

    /// ColLabel: any word.
    pub(super) fn column_label(&mut self) -> Parsed<String> {
        self.any_name()
    }

    /// A label without AS, if one is here.
    pub(super) fn bare_label(&mut self) -> Parsed<Option<String>> {
        let is_label = match self.peek() {
            Some(token) if token.kind == TokenKind::QuotedName => true,
            Some(token) if token.kind == TokenKind::Word => {
                keywords::look_up(&fold(token.text)).is_none_or(|keyword| keyword.is_bare_label)
            }
            _ => false,
        };
        if is_label { self.any_name().map(Some) } else { Ok(None) }
    }

    pub(super) fn any_name(&mut self) -> Parsed<String> {
        let name = self.peek().and_then(Token::name).ok_or_else(|| self.unexpected())?;
        if name.len() > NAME_BYTES_MAX {
            return Err(unsupported("name that upstream truncates with a notice"));
        }
        self.at += 1;
        Ok(name.into_owned())
    }

    /// Typename, without SETOF. Dimensions and bounds written after it mean nothing to PostgreSQL; only `[]` is read.
    pub(super) fn type_name(&mut self) -> Parsed<TypeName> {
        let simple = self.element_type()?;
        let is_array = self.accept_symbol("[");
        if is_array {
            self.expect_symbol("]")?;
        }
        if self.peek_is_symbol("[") || self.peek_is_word("array") {
            return Err(unsupported("array type"));
        }
        Ok(TypeName { is_array, ..simple })
    }

    /// SimpleTypename.
    pub(super) fn element_type(&mut self) -> Parsed<TypeName> {
        Ok(match self.keyword_type()? {
            Some(TypeName { name, is_system, modifiers, .. })
                if matches!(name.as_str(), "bpchar" | "bit") && modifiers.is_empty() =>
            {
                // CharacterWithoutLength: CHAR is CHAR(1) as a type, unlimited in a typed literal. Likewise BIT.
                TypeName { schema: None, name, is_system, modifiers: vec![1], is_array: false }
            }
            Some(simple) => simple,
            None => self.generic_type()?,
        })
    }

    /// GenericType.
    fn generic_type(&mut self) -> Parsed<TypeName> {
        let class = self.peek().and_then(word_class).ok_or_else(|| self.unexpected())?;
        let is_qualified = self.peek_at(1).is_some_and(|token| token.is_symbol("."));
        if !class.is_type_or_function() {
            return Err(self.unexpected());
        }
        let (mut schema, mut name) = (None, self.any_name()?);
        if is_qualified {
            self.expect_symbol(".")?;
            schema = Some(std::mem::replace(&mut name, self.column_label()?));
        }
        if self.peek_is_symbol(".") || self.peek_is_symbol("%") {
            return Err(self.unexpected());
        }
        let modifiers = self.type_modifiers()?;
        let is_system = schema.as_deref() == Some("pg_catalog");
        let schema = schema.filter(|_| !is_system).map(String::into_boxed_str);
        Ok(TypeName { schema, name, is_system, modifiers, is_array: false })
    }

    /// The types that gram.y spells with keywords; None if the next token begins none of them.
    pub(super) fn keyword_type(&mut self) -> Parsed<Option<TypeName>> {
        let Some(token) = self.peek().filter(|token| token.kind == TokenKind::Word) else { return Ok(None) };
        let word = fold(token.text).into_owned();
        let plain = |name: &str| match word.as_str() {
            _ if name.is_empty() => None,
            _ => Some(TypeName {
                schema: None,
                name: name.to_owned(),
                is_system: true,
                modifiers: Vec::new(),
                is_array: false,
            }),
        };
        let simple = match word.as_str() {
            "int" | "integer" => plain("int4"),
            "smallint" => plain("int2"),
            "bigint" => plain("int8"),
            "real" => plain("float4"),
            "boolean" => plain("bool"),
            "double" if self.peek_at(1).is_some_and(|token| token.is_word("precision")) => {
                self.at += 1;
                plain("float8")
            }
            "float" | "decimal" | "dec" | "numeric" | "varchar" | "char" | "character" | "timestamp" | "time"
            | "interval" | "bit" => {
                self.at += 1;
                return self.modified_type(&word).map(Some);
            }
            "national" | "nchar" => return Err(unsupported(format!("type {word}"))),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(simple)
    }

    /// The rest of a keyword type that takes modifiers.
    fn modified_type(&mut self, word: &str) -> Parsed<TypeName> {
        let system = |name: &str, modifiers| TypeName {
            schema: None,
            name: name.to_owned(),
            is_system: true,
            modifiers,
            is_array: false,
        };
        Ok(match word {
            "float" => match self.type_modifiers()?.as_slice() {
                [] => system("float8", Vec::new()),
                [1..=24] => system("float4", Vec::new()),
                [25..=53] => system("float8", Vec::new()),
                _ => return Err(unsupported("float precision")),
            },
            "decimal" | "dec" | "numeric" => system("numeric", self.type_modifiers()?),
            "varchar" => system("varchar", self.type_modifiers()?),
            "bit" => {
                let name = if self.accept_word("varying") { "varbit" } else { "bit" };
                system(name, self.type_modifiers()?)
            }
            "char" | "character" => {
                let name = if self.accept_word("varying") { "varchar" } else { "bpchar" };
                system(name, self.type_modifiers()?)
            }
            "timestamp" | "time" => {
                let modifiers = self.type_modifiers()?;
                let with_zone = self.time_zone_option()?;
                let name = if with_zone { format!("{word}tz") } else { word.to_owned() };
                system(&name, modifiers)
            }
            // A larger one would be cut with a warning, and is what a field makes of itself here.
            _ => match self.type_modifiers()? {
                modifiers if modifiers.iter().all(|precision| *precision <= 6) => system("interval", modifiers),
                _ => return Err(unsupported("interval precision")),
            },
        })
    }

    /// opt_timezone: WITH TIME ZONE. `WITH` of anything else belongs to the caller.
    fn time_zone_option(&mut self) -> Parsed<bool> {
        let is_option = self.peek_at(1).is_some_and(|token| token.is_word("time"));
        let with_zone = self.peek_is_word("with");
        if !is_option || !(with_zone || self.peek_is_word("without")) {
            return Ok(false);
        }
        self.at += 2;
        self.expect_word("zone")?;
        Ok(with_zone)
    }

    /// `(n)` or `(n, m)`, whole numbers.
    fn type_modifiers(&mut self) -> Parsed<Vec<i32>> {
        if !self.accept_symbol("(") {
            return Ok(Vec::new());
        }
        let modifiers = self.list(|parser| {
            let sign = if parser.accept_symbol("-") { -1 } else { 1 };
            let token = parser.peek().filter(|token| token.kind == TokenKind::Integer);
            let number = token.and_then(|token| token.text.parse::<i32>().ok()).ok_or_else(|| parser.unexpected())?;
            parser.at += 1;
            Ok(sign * number)
        })?;
        self.expect_symbol(")")?;
        Ok(modifiers)
    }
}
