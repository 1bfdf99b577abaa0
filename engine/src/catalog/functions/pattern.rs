//! LIKE and ILIKE: `%` any characters, `_` one character, `\` before what is meant literally.
//!
//! ILIKE folds ASCII letters; where another character takes part the collation decides, and the kernel refuses.
//! A pattern that ends in a lone `\` raises in PostgreSQL only where matching gets that far: refused always.

use arrow::array::ArrayRef;
use memchr::memmem;

use super::rows::{Argument, Bytes, Text, to_bool, to_text};
use super::vector::operand;
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Bool, Bpchar, Bytea, Name, Text as TextType};
use crate::types::Value;

/// A compiled pattern: runs between `%`, of which the first starts the text and the last ends it.
#[derive(Debug)]
struct Pattern {
    runs: Vec<Run>,
    /// Characters of the longest run that is looked for place by place.
    searched: usize,
}

/// Characters that one match may have to compare: some 50 ms.
const COMPARED_MAX: usize = 1 << 26;

/// Consecutive literals and `_`.
#[derive(Debug, Default)]
struct Run {
    /// Each literal, and how many characters of any kind follow it.
    pieces: Vec<(Vec<u8>, usize)>,
    /// In characters.
    length: usize,
    finder: Option<memmem::Finder<'static>>,
}

impl Pattern {
    fn new(pattern: &[u8], units: Units) -> Result<Self, EvalError> {
        let mut runs = vec![Run::default()];
        let mut bytes = pattern.iter().copied();
        while let Some(byte) = bytes.next() {
            if byte == b'%' {
                runs.push(Run::default());
                continue;
            }
            let run = runs.last_mut().expect("starts with one run and only grows");
            match byte {
                b'_' => run.push_any(),
                b'\\' => {
                    let escaped = bytes.next();
                    run.push_literal(
                        escaped.ok_or_else(|| EvalError::Beyond("LIKE pattern ends in escape".into()))?,
                        units,
                    );
                }
                byte => run.push_literal(byte, units),
            }
        }
        for run in &mut runs {
            if let [(literal, 0)] = run.pieces.as_slice() {
                run.finder = Some(memmem::Finder::new(literal).into_owned());
            }
        }
        let searched = runs.iter().skip(1).filter(|run| run.finder.is_none()).map(|run| run.length).max();
        Ok(Self { runs, searched: searched.unwrap_or(0) })
    }

    /// Where a run of many characters is looked for at each place of a long text, upstream looks: nothing interrupts it here.
    fn is_match(&self, text: &[u8], units: Units) -> Result<bool, EvalError> {
        if text.len().saturating_mul(self.searched) > COMPARED_MAX {
            return Err(EvalError::Beyond("a long pattern in a long text".into()));
        }
        Ok(self.matches(text, units))
    }

    fn matches(&self, text: &[u8], units: Units) -> bool {
        let [first, rest @ ..] = self.runs.as_slice() else { return false };
        let Some(mut text) = first.strip(text, units) else { return false };
        let [middle @ .., last] = rest else { return text.is_empty() };
        for run in middle {
            // The leftmost match leaves the most for the rest.
            match run.find(text, units) {
                Some(after) => text = after,
                None => return false,
            }
        }
        last.ends(text, units)
    }
}

/// What `_` stands for.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Units {
    /// UTF-8.
    Characters,
    Bytes,
}

impl Units {
    /// Whether a unit starts with `byte`.
    fn is_start(self, byte: u8) -> bool {
        self == Self::Bytes || byte & 0xC0 != 0x80
    }

    /// `text` without its first unit.
    fn skip_one(self, text: &[u8]) -> Option<&[u8]> {
        let rest = text.get(1..)?;
        let next = rest.iter().position(|&byte| self.is_start(byte)).unwrap_or(rest.len());
        Some(&rest[next..])
    }
}

impl Run {
    fn push_any(&mut self) {
        self.length += 1;
        match self.pieces.last_mut() {
            Some((_, any)) => *any += 1,
            None => self.pieces.push((Vec::new(), 1)),
        }
    }

    fn push_literal(&mut self, byte: u8, units: Units) {
        self.length += usize::from(units.is_start(byte));
        match self.pieces.last_mut() {
            Some((literal, 0)) => literal.push(byte),
            _ => self.pieces.push((vec![byte], 0)),
        }
    }

    /// What follows the run at the start of `text`.
    fn strip<'a>(&self, mut text: &'a [u8], units: Units) -> Option<&'a [u8]> {
        for (literal, any) in &self.pieces {
            text = text.strip_prefix(literal.as_slice())?;
            for _ in 0..*any {
                text = units.skip_one(text)?;
            }
        }
        Some(text)
    }

    /// What follows the run's leftmost occurrence in `text`.
    fn find<'a>(&self, mut text: &'a [u8], units: Units) -> Option<&'a [u8]> {
        if let Some(finder) = &self.finder {
            return finder.find(text).map(|at| &text[at + finder.needle().len()..]);
        }
        loop {
            if let Some(after) = self.strip(text, units) {
                return Some(after);
            }
            text = units.skip_one(text)?;
        }
    }

    /// Whether the run is the end of `text`.
    fn ends(&self, text: &[u8], units: Units) -> bool {
        if let Some(finder) = &self.finder {
            return text.ends_with(finder.needle());
        }
        let mut start = text.len();
        for _ in 0..self.length {
            let Some(previous) = text[..start].iter().rposition(|&byte| units.is_start(byte)) else { return false };
            start = previous;
        }
        self.strip(&text[start..], units).is_some_and(<[u8]>::is_empty)
    }
}

/// Matches `operands[0]` against the pattern in `operands[1]`, which is mostly a constant.
fn like<A>(operands: &[Operand], rows: usize, units: Units, expected: bool) -> Result<ArrayRef, EvalError>
where
    A: Argument,
    for<'a> A::Item<'a>: AsRef<[u8]>,
{
    match operand(operands, 1)? {
        Operand::Scalar(Value::Text(pattern)) => {
            like_constant::<A>(operands, rows, pattern.as_bytes(), units, expected)
        }
        Operand::Scalar(Value::Bytea(pattern)) => like_constant::<A>(operands, rows, pattern, units, expected),
        _ => to_bool::<(A, A)>(operands, rows, |(text, pattern)| {
            Ok(Pattern::new(pattern.as_ref(), units)?.is_match(text.as_ref(), units)? == expected)
        }),
    }
}

fn like_constant<A>(
    operands: &[Operand],
    rows: usize,
    pattern: &[u8],
    units: Units,
    expected: bool,
) -> Result<ArrayRef, EvalError>
where
    A: Argument,
    for<'a> A::Item<'a>: AsRef<[u8]>,
{
    // A pattern that cannot be compiled matters only if there is a row to match it with.
    let pattern = Pattern::new(pattern, units);
    to_bool::<(A,)>(&operands[..1], rows, |(text,)| match &pattern {
        Ok(pattern) => Ok(pattern.is_match(text.as_ref(), units)? == expected),
        Err(error) => Err(error.clone()),
    })
}

fn text_like(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    like::<Text>(o, rows, Units::Characters, true)
}

fn text_not_like(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    like::<Text>(o, rows, Units::Characters, false)
}

fn bytea_like(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    like::<Bytes>(o, rows, Units::Bytes, true)
}

fn bytea_not_like(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    like::<Bytes>(o, rows, Units::Bytes, false)
}

/// The text in lower case, if it is ASCII.
fn fold(text: &str) -> Result<String, EvalError> {
    if text.is_ascii() { Ok(text.to_ascii_lowercase()) } else { Err(super::text::not_ascii()) }
}

/// like.c, Generic_Text_IC_like: both sides in lower case, then LIKE.
fn text_like_folded(operands: &[Operand], rows: usize, expected: bool) -> Result<ArrayRef, EvalError> {
    let units = Units::Characters;
    let compile = |pattern: &str| fold(pattern).and_then(|pattern| Pattern::new(pattern.as_bytes(), units));
    match operand(operands, 1)? {
        Operand::Scalar(Value::Text(pattern)) => {
            let pattern = compile(pattern);
            to_bool::<(Text,)>(&operands[..1], rows, |(text,)| match &pattern {
                Ok(pattern) => Ok(pattern.is_match(fold(text)?.as_bytes(), units)? == expected),
                Err(error) => Err(error.clone()),
            })
        }
        _ => to_bool::<(Text, Text)>(operands, rows, |(text, pattern)| {
            Ok(compile(pattern)?.is_match(fold(text)?.as_bytes(), units)? == expected)
        }),
    }
}

fn text_ilike(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    text_like_folded(o, rows, true)
}

fn text_not_ilike(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    text_like_folded(o, rows, false)
}

/// `LIKE ... ESCAPE`: the pattern with `\` for its own escape character (like_match.c, do_like_escape).
fn like_escape(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, Text)>(o, rows, |(pattern, escape), out| {
        let mut characters = escape.chars();
        match (characters.next(), characters.next()) {
            (None, _) => out.push_str(&pattern.replace('\\', "\\\\")),
            (Some('\\'), None) => out.push_str(pattern),
            (Some(escape), None) => replace_escape(pattern, escape, out),
            (Some(_), Some(_)) => return Err(EvalError::Raises("invalid escape string".to_owned())),
        }
        Ok(())
    })
}

fn replace_escape(pattern: &str, escape: char, out: &mut String) {
    let mut is_escaped = false;
    for character in pattern.chars() {
        if character == escape && !is_escaped {
            out.push('\\');
            is_escaped = true;
            continue;
        }
        if character == '\\' && !is_escaped {
            out.push('\\');
        }
        out.push(character);
        is_escaped = false;
    }
}

/// The pattern of SIMILAR TO as a regular expression.
fn similar_to_escape(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text,)>(o, rows, |(pattern,), out| similar(pattern, Some('\\'), out))
}

fn similar_to_own_escape(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, Text)>(o, rows, |(pattern, escape), out| {
        let mut characters = escape.chars();
        match (characters.next(), characters.next()) {
            (escape, None) => similar(pattern, escape, out),
            (_, Some(_)) => Err(EvalError::Raises("invalid escape string".to_owned())),
        }
    })
}

/// similar_escape_internal. What brackets and escapes within them mean has changed in minor releases; parts that
/// escape-double-quote separates are for substring() only.
fn similar(pattern: &str, escape: Option<char>, out: &mut String) -> Result<(), EvalError> {
    let beyond = |what: &str| Err(EvalError::Beyond(format!("SIMILAR TO: {what}")));
    out.push_str("^(?:");
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => match characters.next() {
                Some('"') => return beyond("escape-double-quote"),
                Some(escaped) => out.extend(['\\', escaped]),
                None => return beyond("an escape at the end"),
            },
            '[' => {
                out.push('[');
                out.extend(characters.next_if_eq(&'^'));
                let mut count = 0;
                loop {
                    match characters.next() {
                        Some(']') if count > 0 => break,
                        Some(plain) if !matches!(plain, '[' | ']' | '^' | '\\') && Some(plain) != escape => {
                            out.push(plain)
                        }
                        _ => return beyond("brackets"),
                    }
                    count += 1;
                }
                out.push(']');
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => out.extend(['\\', character]),
            other => out.push(other),
        }
    }
    out.push_str(")$");
    Ok(())
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("~~", &[TextType, TextType], Bool, text_like, "like.c textlike"),
    Function::immutable("~~", &[Name, TextType], Bool, text_like, "like.c namelike"),
    Function::immutable("~~", &[Bpchar, TextType], Bool, text_like, "like.c textlike (bpcharlike)"),
    Function::immutable("~~", &[Bytea, Bytea], Bool, bytea_like, "like.c bytealike"),
    Function::immutable("!~~", &[TextType, TextType], Bool, text_not_like, "like.c textnlike"),
    Function::immutable("!~~", &[Name, TextType], Bool, text_not_like, "like.c namenlike"),
    Function::immutable("!~~", &[Bpchar, TextType], Bool, text_not_like, "like.c textnlike (bpcharnlike)"),
    Function::immutable("!~~", &[Bytea, Bytea], Bool, bytea_not_like, "like.c byteanlike"),
    Function::immutable("~~*", &[TextType, TextType], Bool, text_ilike, "like.c texticlike"),
    Function::immutable("~~*", &[Name, TextType], Bool, text_ilike, "like.c nameiclike"),
    Function::immutable("~~*", &[Bpchar, TextType], Bool, text_ilike, "like.c texticlike (bpchariclike)"),
    Function::immutable("!~~*", &[TextType, TextType], Bool, text_not_ilike, "like.c texticnlike"),
    Function::immutable("!~~*", &[Name, TextType], Bool, text_not_ilike, "like.c nameicnlike"),
    Function::immutable("!~~*", &[Bpchar, TextType], Bool, text_not_ilike, "like.c texticnlike (bpcharicnlike)"),
    Function::immutable("like", &[TextType, TextType], Bool, text_like, "like.c textlike"),
    Function::immutable("like", &[Name, TextType], Bool, text_like, "like.c namelike"),
    Function::immutable("notlike", &[TextType, TextType], Bool, text_not_like, "like.c textnlike"),
    Function::immutable("notlike", &[Name, TextType], Bool, text_not_like, "like.c namenlike"),
    Function::immutable("like_escape", &[TextType, TextType], TextType, like_escape, "like_match.c do_like_escape"),
    Function::immutable("similar_to_escape", &[TextType], TextType, similar_to_escape, "regexp.c similar_to_escape_1"),
    Function::immutable(
        "similar_to_escape",
        &[TextType, TextType],
        TextType,
        similar_to_own_escape,
        "regexp.c similar_to_escape_2",
    ),
];
