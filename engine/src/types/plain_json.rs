//! json as it is held: the text that it was given as, valid, with its white space, repeated keys and numbers as they were
//! written (PostgreSQL: jsonfuncs.c, which reads it with the parser of common/jsonapi.c for each question).

use super::json::{DEPTH_MAX, Kind, end_of_string, end_of_value, index_of_step, kind_of, meant, write_as_text};
use super::text::ParseError;

/// A value within, without the space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainJson<'a>(&'a str);

/// What a path asks of the level at hand.
#[derive(Clone, Copy, Debug)]
pub struct Step<'s> {
    /// The key, where it is an object.
    pub name: Option<&'s str>,
    /// The element, from the end if negative, where it is an array.
    pub index: Option<i32>,
}

impl<'s> Step<'s> {
    /// Of a path's text (jsonfuncs.c, get_path_all).
    pub fn of(text: &'s str) -> Self {
        Self { name: Some(text), index: index_of_step(text) }
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

impl<'a> PlainJson<'a> {
    pub fn of(text: &'a str) -> Self {
        Self(trimmed(text))
    }

    pub fn text(self) -> &'a str {
        self.0
    }

    pub fn kind(self) -> Kind {
        kind_of(self.0)
    }

    fn inner(self, kind: Kind) -> &'a str {
        let within = self.0.get(1..self.0.len().saturating_sub(1)).filter(|_| self.kind() == kind);
        trimmed(within.unwrap_or_default())
    }

    /// Keys (as written, quoted) and values of an object, in the order of the text.
    pub fn members(self) -> impl Iterator<Item = (&'a str, Self)> {
        let mut rest = self.inner(Kind::Object);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (key, after) = rest.split_at(end_of_string(rest.as_bytes(), 0).min(rest.len()));
            let after = trimmed(after).strip_prefix(':')?;
            let (value, next) = after.split_at(end_of_value(after));
            rest = trimmed(next.strip_prefix(',').unwrap_or_default());
            Some((key, Self::of(value)))
        })
    }

    /// Elements of an array.
    pub fn elements(self) -> impl Iterator<Item = Self> {
        let mut rest = self.inner(Kind::Array);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (value, next) = rest.split_at(end_of_value(rest));
            rest = trimmed(next.strip_prefix(',').unwrap_or_default());
            Some(Self::of(value))
        })
    }

    /// What the last of a document's matches is (get_worker: each one overwrites the one before; where a key is repeated, that is
    /// the last under which the rest of the path leads somewhere). Numbers from the end count in the first array that is met in
    /// that depth, be it on the path or not; so they are followed in the outermost one only.
    pub fn find(self, path: &[Step<'_>]) -> Result<Option<Self>, ParseError> {
        if path.iter().skip(1).any(|step| step.index.is_some_and(|index| index < 0)) {
            return Err(ParseError::beyond("numbers from the end further in"));
        }
        self.find_within(path, 0)
    }

    fn find_within(self, path: &[Step<'_>], depth: usize) -> Result<Option<Self>, ParseError> {
        if depth > DEPTH_MAX {
            return Err(ParseError::beyond("deeply nested json"));
        }
        let Some((step, rest)) = path.split_first() else { return Ok(Some(self)) };
        match (self.kind(), step.name, step.index) {
            (Kind::Object, Some(name), _) => {
                let mut last = None;
                for (_, value) in self.members().filter(|(key, _)| meant(key) == name) {
                    last = value.find_within(rest, depth + 1)?.or(last);
                }
                Ok(last)
            }
            (Kind::Array, _, Some(index)) => {
                let index = i64::from(index);
                let index = if index < 0 { self.elements().count() as i64 + index } else { index };
                match usize::try_from(index).ok().and_then(|index| self.elements().nth(index)) {
                    Some(element) => element.find_within(rest, depth + 1),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// Appends what `->>` makes of the value; false: NULL.
    pub fn write_text(self, out: &mut String) -> bool {
        write_as_text(self.0, out)
    }
}

/// Questions whose answer has strings without escapes read all of the document so, and fail at what no text can be: \u0000, and
/// halves of surrogate pairs alone.
pub fn check_escapes(document: &str) -> Result<(), ParseError> {
    let code_at = |at: usize| {
        let digits = document.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut second = None;
    for (at, _) in document.match_indices("\\u") {
        let is_fine = match code_at(at) {
            Some(0xdc00..0xe000) => second == Some(at),
            Some(0xd800..0xdc00) => {
                second = Some(at + 6);
                matches!(code_at(at + 6), Some(0xdc00..0xe000))
            }
            Some(0) | None => false,
            Some(_) => true,
        };
        if !is_fine {
            return Err(ParseError::beyond("escape in json"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from PostgreSQL 15.
    #[test]
    fn parts_are_found_as_they_were_written() {
        let text =
            r#" {"a" : {"b" : [10 , "x,y]" ,null]} , "a":{"c": 1.50 }, "q\"" : "z\u00e9" , "e" : { } ,"n":null} "#;
        let found = |path: &[&str]| {
            let steps: Vec<Step<'_>> = path.iter().map(|text| Step::of(text)).collect();
            PlainJson::of(text).find(&steps).unwrap().map(PlainJson::text)
        };
        assert_eq!(found(&["a"]), Some(r#"{"c": 1.50 }"#));
        assert_eq!(found(&["a", "b", "1"]), Some(r#""x,y]""#));
        assert_eq!(found(&["a", "c"]), Some("1.50"));
        assert_eq!(found(&["q\""]), Some(r#""z\u00e9""#));
        assert_eq!((found(&["e"]), found(&["e", "x"]), found(&["x"])), (Some("{ }"), None, None));
        let list = PlainJson::of("[ 1 , [ ] ,{}, \"\" ]");
        let at = |index| list.find(&[Step { name: None, index: Some(index) }]).unwrap().map(PlainJson::text);
        assert_eq!((at(0), at(1), at(-1), at(4), at(-5)), (Some("1"), Some("[ ]"), Some("\"\""), None, None));
        assert_eq!((list.elements().count(), PlainJson::of("[ ]").elements().count()), (4, 0));
        for (text, is_fine) in [
            (r#""\u00e9\ud7ff\ue000""#, true),
            (r#""a\uD83D\ude00b\ud83d\uDE00""#, true),
            (r#""\u0000""#, false),
            (r#""\ud83d""#, false),
            (r#""\ude00""#, false),
            (r#""\ud83d \ude00""#, false),
            (r#""\ud83d\ud83d\ude00""#, false),
        ] {
            assert_eq!(check_escapes(text).is_ok(), is_fine, "{text}");
        }
        let mut text = String::new();
        assert!(PlainJson::of(r#""a\uD83D\ude00b\u00e9""#).write_text(&mut text));
        assert_eq!(text, "a😀bé");
    }
}
