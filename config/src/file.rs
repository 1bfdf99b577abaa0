//! The configuration file: exactly what was written, key by key, each with the line it stands on.

use toml::de::{DeTable, DeValue};

use crate::Settings;
use crate::error::{Problem, Problems, nearest};
use crate::keys::{self, Given};

/// Applies the file's text to `settings`; what is wrong is added to `problems`.
pub(crate) fn read(settings: &mut Settings, file: &str, text: &str, problems: &mut Problems) {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        let mut message = error.message().replace('\n', ", ");
        // It lies where the span says.
        let key = error.span().and_then(|span| text.get(span)).filter(|key| !key.contains('\n'));
        if let Some(key) = key.filter(|_| message == "duplicate key") {
            message = format!("{message} {key}");
        }
        problems.push(Problem::new("", message, "").at(format!("{file}:{line}")));
    }
    for (name, value) in table.get_ref() {
        let section = name.get_ref().as_ref();
        let place = format!("{file}:{}", line_of(text, name.span().start));
        if !keys::sections().contains(&section) {
            problems.push(no_section(section).at(place));
            continue;
        }
        let DeValue::Table(group) = value.get_ref() else {
            problems.push(Problem::new(section, "is a section", format!("write it as [{section}]")).at(place));
            continue;
        };
        for (name, value) in group {
            let path = format!("{section}.{}", name.get_ref());
            let place = format!("{file}:{}", line_of(text, name.span().start));
            match keys::apply(settings, &path, &given(value.get_ref())) {
                Ok(key) => problems.set_at(key, &place),
                Err(problem) => problems.push(problem.at(place)),
            }
        }
    }
}

fn no_section(section: &str) -> Problem {
    let mut problem = match nearest(section, keys::sections()) {
        Some(near) => Problem::new("", format!("[{section}] is no section"), format!("did you mean [{near}]?")),
        None => Problem::new(
            "",
            format!("[{section}] is no section"),
            format!("the sections are {}", keys::sections().join(", ")),
        ),
    };
    problem.key = String::new();
    problem
}

fn given(value: &DeValue<'_>) -> Given {
    match value {
        DeValue::String(text) => Given::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Given::Integer(number),
            Err(_) => Given::Other("a number that is too large"),
        },
        DeValue::Boolean(value) => Given::Bool(*value),
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| match item.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            });
            texts.collect::<Option<Vec<_>>>().map_or(Given::Other("a list of other than strings"), Given::List)
        }
        DeValue::Float(_) => Given::Other("a fractional number"),
        DeValue::Datetime(_) => Given::Other("a date"),
        DeValue::Table(_) => Given::Other("a table"),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
