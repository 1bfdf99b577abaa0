//! SET, RESET, SHOW and transaction modes (VariableSetStmt and its kin in gram.y).

use super::{Argument, Isolation, SetConfig, StatementKind, TransactionModes};
use crate::statement::lexer::{Token, TokenKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    Session,
    /// Until the end of the transaction.
    Local,
}

/// The value that SET gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    Default,
    /// The items of the list, unquoted: names folded, numbers as written.
    Items(Vec<String>),
    /// FROM CURRENT, an interval as time zone, anything else.
    Unknown,
}

/// After SET.
pub(super) fn set_kind(tokens: &[Token<'_>]) -> StatementKind {
    use StatementKind as K;
    let word = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
    if word(0, "session") && word(1, "characteristics") {
        return K::SetSessionCharacteristics(transaction_modes(tokens.get(4..).unwrap_or(&[])));
    }
    if word(0, "transaction") {
        return if word(1, "snapshot") { K::Unknown } else { K::SetTransaction(transaction_modes(&tokens[1..])) };
    }
    if word(0, "constraints") {
        return K::SetConstraints;
    }
    let (scope, tokens) = match tokens {
        [first, rest @ ..] if first.is_word("local") => (SettingScope::Local, rest),
        // `SET session = ...` is no setting; SESSION AUTHORIZATION is told apart below.
        [first, second, ..] if first.is_word("session") && !second.is_word("authorization") => {
            (SettingScope::Session, &tokens[1..])
        }
        _ => (SettingScope::Session, tokens),
    };
    setting(scope, tokens)
}

fn setting(scope: SettingScope, tokens: &[Token<'_>]) -> StatementKind {
    use StatementKind as K;
    let set = |name: &str, value| K::Set { scope, name: name.to_owned(), value };
    match tokens {
        [first, second, ..] if first.is_word("session") && second.is_word("authorization") => {
            K::SetSessionAuthorization
        }
        [first, rest @ ..]
            if first.is_word("role") && !rest.first().is_some_and(|t| t.is_symbol("=") || t.is_word("to")) =>
        {
            set("role", items(rest))
        }
        [first, second, rest @ ..] if first.is_word("time") && second.is_word("zone") => {
            let value = match rest {
                [only] if only.is_word("local") || only.is_word("default") => SettingValue::Default,
                // An interval with fields is several tokens: an unknown value.
                _ => items(rest),
            };
            set("timezone", value)
        }
        [first, value] if first.is_word("schema") => set("search_path", items(std::slice::from_ref(value))),
        [first] if first.is_word("names") => set("client_encoding", SettingValue::Default),
        [first, value] if first.is_word("names") => {
            let is_default = value.is_word("default");
            set("client_encoding", if is_default { SettingValue::Default } else { items(std::slice::from_ref(value)) })
        }
        [first, second, ..] if first.is_word("xml") && second.is_word("option") => {
            set("xmloption", SettingValue::Unknown)
        }
        _ => generic_setting(scope, tokens),
    }
}

/// `name {TO | =} {DEFAULT | list}`.
fn generic_setting(scope: SettingScope, tokens: &[Token<'_>]) -> StatementKind {
    let Some((name, rest)) = setting_name(tokens) else { return StatementKind::Unknown };
    let value = match rest {
        [to, only] if (to.is_word("to") || to.is_symbol("=")) && only.is_word("default") => SettingValue::Default,
        [to, list @ ..] if to.is_word("to") || to.is_symbol("=") => items(list),
        _ => SettingValue::Unknown,
    };
    // The same by its name.
    match name.as_str() {
        "session_authorization" => StatementKind::SetSessionAuthorization,
        _ => StatementKind::Set { scope, name, value },
    }
}

/// `name` or `prefix.name`, lower case: settings' names are case-insensitive even when quoted.
fn setting_name<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(String, &'t [Token<'a>])> {
    let mut name = tokens.first()?.name()?.to_ascii_lowercase();
    let mut at = 1;
    while tokens.get(at).is_some_and(|token| token.is_symbol(".")) {
        name.push('.');
        name.push_str(&tokens.get(at + 1)?.name()?.to_ascii_lowercase());
        at += 2;
    }
    Some((name, &tokens[at..]))
}

/// var_list.
fn items(tokens: &[Token<'_>]) -> SettingValue {
    let mut values = Vec::new();
    for item in tokens.split(|token| token.is_symbol(",")) {
        let (sign, item) = match item {
            [sign, rest @ ..] if sign.is_symbol("-") => ("-", rest),
            [sign, rest @ ..] if sign.is_symbol("+") => ("", rest),
            _ => ("", item),
        };
        let [token] = item else { return SettingValue::Unknown };
        let value = match token.kind {
            TokenKind::Word | TokenKind::QuotedName if sign.is_empty() => token.name(),
            TokenKind::Integer | TokenKind::Decimal => Some(token.text.into()),
            _ if sign.is_empty() => token.string_value(),
            _ => None,
        };
        let Some(value) = value else { return SettingValue::Unknown };
        values.push(format!("{sign}{value}"));
    }
    SettingValue::Items(values)
}

/// After RESET.
pub(super) fn reset_kind(tokens: &[Token<'_>]) -> StatementKind {
    use StatementKind as K;
    match tokens {
        [only] if only.is_word("all") => K::Reset { name: None },
        [first, second] if first.is_word("time") && second.is_word("zone") => {
            K::Reset { name: Some("timezone".into()) }
        }
        [first, second] if first.is_word("session") && second.is_word("authorization") => K::SetSessionAuthorization,
        [first, second, ..] if first.is_word("transaction") && second.is_word("isolation") => {
            K::Reset { name: Some("transaction_isolation".into()) }
        }
        _ => match setting_name(tokens) {
            Some((name, [])) if name == "session_authorization" => K::SetSessionAuthorization,
            Some((name, [])) => K::Reset { name: Some(name) },
            _ => K::Unknown,
        },
    }
}

/// After SHOW.
pub(super) fn show_kind(tokens: &[Token<'_>]) -> StatementKind {
    let name = match tokens {
        [first, second] if first.is_word("time") && second.is_word("zone") => "timezone".to_owned(),
        [first, second, third]
            if first.is_word("transaction") && second.is_word("isolation") && third.is_word("level") =>
        {
            "transaction_isolation".to_owned()
        }
        [first, second] if first.is_word("session") && second.is_word("authorization") => {
            "session_authorization".to_owned()
        }
        _ => match setting_name(tokens) {
            Some((name, [])) => name,
            _ => return StatementKind::Unknown,
        },
    };
    StatementKind::Show { name }
}

/// `[WORK | TRANSACTION] mode [,] mode...`; the last of a kind counts.
pub(super) fn transaction_modes(tokens: &[Token<'_>]) -> TransactionModes {
    let mut modes = TransactionModes::default();
    let word = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
    for at in 0..tokens.len() {
        if word(at, "isolation") && word(at + 1, "level") {
            modes.isolation = if word(at + 2, "serializable") {
                Some(Isolation::Serializable)
            } else if word(at + 2, "repeatable") {
                Some(Isolation::RepeatableRead)
            } else if word(at + 3, "uncommitted") {
                Some(Isolation::ReadUncommitted)
            } else {
                Some(Isolation::ReadCommitted)
            };
        } else if word(at, "read") && word(at + 1, "only") {
            modes.read_only = Some(true);
        } else if word(at, "read") && word(at + 1, "write") {
            modes.read_only = Some(false);
        } else if word(at, "deferrable") {
            modes.deferrable = Some(at == 0 || !word(at - 1, "not"));
        }
    }
    modes
}

/// The calls of `SELECT set_config(name, value, is_local) [AS label], ...`: nothing but such calls, with constants or
/// parameters for arguments, so that each runs once and in order. Empty if it is anything else.
pub(super) fn set_configs(tokens: &[Token<'_>]) -> Vec<SetConfig> {
    let [select, rest @ ..] = tokens else { return Vec::new() };
    if !select.is_word("select") || !rest.iter().any(|token| token.name().as_deref() == Some("set_config")) {
        return Vec::new();
    }
    let mut calls = Vec::new();
    let mut depth = 0_usize;
    let is_separator = |token: &Token<'_>| {
        if token.is_symbol("(") {
            depth += 1;
        } else if token.is_symbol(")") {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && token.is_symbol(",")
    };
    for item in rest.split(is_separator) {
        match set_config(item) {
            Some(call) => calls.push(call),
            None => return Vec::new(),
        }
    }
    calls
}

/// One item of the list.
fn set_config(item: &[Token<'_>]) -> Option<SetConfig> {
    let item = match item {
        [schema, point, rest @ ..] if schema.is_word("pg_catalog") && point.is_symbol(".") => rest,
        _ => item,
    };
    let [function, open, rest @ ..] = item else { return None };
    let close = rest.iter().position(|token| token.is_symbol(")"))?;
    let is_label = match &rest[close + 1..] {
        [] => true,
        [label] => label.name().is_some() && !label.is_word("from") && !label.is_word("where"),
        [as_word, label] => as_word.is_word("as") && label.name().is_some(),
        _ => false,
    };
    if function.name().as_deref() != Some("set_config") || !open.is_symbol("(") || !is_label {
        return None;
    }
    let mut arguments = rest[..close].split(|token| token.is_symbol(","));
    let (name, value, is_local) = (arguments.next()?, arguments.next()?, arguments.next()?);
    let call = SetConfig { name: argument(name)?, value: argument(value)?, is_local: argument(is_local)? };
    arguments.next().is_none().then_some(call)
}

/// A constant or a parameter, also with a cast to the type that it has anyway.
fn argument(tokens: &[Token<'_>]) -> Option<Argument> {
    let token = match tokens {
        [token] => token,
        [token, cast, name]
            if cast.is_symbol("::") && (name.is_word("text") || name.is_word("bool") || name.is_word("boolean")) =>
        {
            token
        }
        _ => return None,
    };
    match token.kind {
        TokenKind::Parameter => Some(Argument::Parameter(token.text[1..].parse::<usize>().ok()?.checked_sub(1)?)),
        TokenKind::Word if token.is_word("null") => Some(Argument::Null),
        TokenKind::Word if token.is_word("true") || token.is_word("false") => {
            Some(Argument::Text(token.text.to_ascii_lowercase()))
        }
        _ => token.string_value().map(|text| Argument::Text(text.into_owned())),
    }
}
