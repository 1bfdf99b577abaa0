//! `SELECT set_config('freshet.route', 'relay', true)` and `SELECT current_setting('freshet.route')`: one call of a
//! function, with constants. Among others in a list, or with parameters, upstream answers it, which takes any name with a
//! point in it, and the session follows what was set.

use super::{Parser, Refused, Request, Token, Verb, set, show};

/// After SELECT; None if it is anything else.
pub(super) fn read(parser: &mut Parser<'_>) -> Option<Result<(Request, Verb), Refused>> {
    let mut function = parser.word()?;
    if function == "pg_catalog" && parser.accept_symbol('.') {
        function = parser.word()?;
    }
    if !parser.accept_symbol('(') {
        return None;
    }
    let Some(Token::Text(name)) = parser.next() else { return None };
    let (schema, name) = name.split_once('.')?;
    if !schema.eq_ignore_ascii_case(parser.schema) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let (request, verb) = match function {
        "set_config" => {
            let value = argument(parser)?;
            let is_local = flag(parser)?;
            let verb = if is_local { Verb::SetLocal } else { Verb::Set };
            (set(&name, value.as_deref()).map(|request| Request::SetConfig(Box::new(request))), verb)
        }
        "current_setting" => {
            if parser.tokens.first() == Some(&Token::Symbol(',')) {
                flag(parser)?;
            }
            let shown = match &*name {
                "last" => Err(Refused::new("22023", "parameter \"freshet.last\" is a row of several values: SHOW it")),
                name => show(name),
            };
            (shown.map(|request| Request::CurrentSetting(Box::new(request))), Verb::Set)
        }
        _ => return None,
    };
    (parser.accept_symbol(')') && parser.tokens.is_empty()).then(|| request.map(|request| (request, verb)))
}

/// `, 'value'` or `, NULL`.
fn argument(parser: &mut Parser<'_>) -> Option<Option<String>> {
    if !parser.accept_symbol(',') {
        return None;
    }
    match parser.next()? {
        Token::Text(text) => Some(Some(text.clone())),
        Token::Word(word) if word == "null" => Some(None),
        Token::Word(_) | Token::Symbol(_) => None,
    }
}

/// `, true` or `, false`.
fn flag(parser: &mut Parser<'_>) -> Option<bool> {
    if !parser.accept_symbol(',') {
        return None;
    }
    match parser.next()? {
        Token::Word(word) if word == "true" => Some(true),
        Token::Word(word) if word == "false" => Some(false),
        Token::Word(_) | Token::Text(_) | Token::Symbol(_) => None,
    }
}
