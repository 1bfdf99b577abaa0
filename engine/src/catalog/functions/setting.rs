//! `current_setting` of what an application calls its own (`app.tenant`): the session asks upstream for the value and has it among its
//! settings, and so in the keys of kept replies, when the statement runs.

use arrow::array::ArrayRef;

use super::rows::to_text;
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Bool, Text};
use crate::types::Value;

/// PostgreSQL's limit for a name (NAMEDATALEN) does not hold here; nobody needs a longer one.
const NAME_BYTES_MAX: usize = 128;

/// The name as PostgreSQL compares it (guc.c, guc_name_compare), if it is one of an application's own: letters, digits and underscores
/// with points between them.
pub fn custom_name(name: &str) -> Option<String> {
    let is_word = |word: &str| {
        let starts = word.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
        starts && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_custom = name.len() <= NAME_BYTES_MAX && name.contains('.') && name.split('.').all(is_word);
    is_custom.then(|| name.to_ascii_lowercase())
}

/// guc.c, GetConfigOptionByName.
fn current_setting(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let is_missing_ok = match o {
        [_] | [_, Operand::Scalar(Value::Bool(false))] => false,
        [_, Operand::Scalar(Value::Bool(true))] => true,
        _ => return Err(EvalError::Beyond("a setting that may be missing or not, by row".to_owned())),
    };
    let name = match o {
        [Operand::Scalar(Value::Text(name)), ..] => custom_name(name),
        _ => None,
    };
    let value = name.and_then(|name| context.settings.custom.get(&*name));
    match value {
        None => Err(EvalError::Beyond("a setting that was not asked for".to_owned())),
        Some(None) if !is_missing_ok => Err(EvalError::Raises("unrecognized configuration parameter".to_owned())),
        Some(None) => to_text::<(super::rows::Text,)>(&[Operand::Scalar(Value::Null)], rows, |_, _| Ok(())),
        Some(Some(value)) => to_text::<(super::rows::Text,)>(&o[..1], rows, |_, out| {
            out.push_str(value);
            Ok(())
        }),
    }
}

const SOURCE: &str = "guc_funcs.c show_config_by_name";

pub(super) static ENTRIES: &[Function] = &[
    Function::stable("current_setting", &[Text], Text, current_setting, SOURCE),
    Function::stable("current_setting", &[Text, Bool], Text, current_setting, SOURCE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_applications_own_settings() {
        assert_eq!(custom_name("Request.JWT.claims").as_deref(), Some("request.jwt.claims"));
        for name in ["timezone", "a.", ".a", "a..b", "a.b c", "a.1", "a.b'", "\u{e4}.b", &"a.".repeat(100)] {
            assert_eq!(custom_name(name), None, "{name}");
        }
    }
}
