//! jsonb as it is held: the text that jsonb_out prints, which is canonical (keys unique and in order, one space behind each
//! colon and comma, numbers as numerics print, one way to escape). Parts of it are parts of the text.
//!
//! json is held as the text that it was given as ([`super::plain_json`]); [`write_value`] makes it of values of other types.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::str::Chars;

use super::array::{ArrayView, element_value};
use super::text::{self, ParseError};
use super::{FormatSettings, Numeric, PgType, Value};

/// Nesting that is followed here.
pub(super) const DEPTH_MAX: usize = 200;

/// A value within canonical text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

/// In their order (jsonb.h, jbvType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Null,
    String,
    Number,
    Boolean,
    Array,
    Object,
}

impl Kind {
    /// jsonb_typeof.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }
}

/// By how it begins.
pub(super) fn kind_of(text: &str) -> Kind {
    match text.as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Boolean,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

impl<'a> Json<'a> {
    /// `text` must be canonical.
    pub fn of(text: &'a str) -> Self {
        Self(text)
    }

    pub fn text(self) -> &'a str {
        self.0
    }

    pub fn kind(self) -> Kind {
        kind_of(self.0)
    }

    fn is_container(self) -> bool {
        matches!(self.kind(), Kind::Object | Kind::Array)
    }

    /// Keys (as written, quoted) and values of an object.
    pub fn members(self) -> Members<'a> {
        Members { rest: if self.kind() == Kind::Object { inner(self.0) } else { "" } }
    }

    /// Elements of an array.
    pub fn elements(self) -> Elements<'a> {
        Elements { rest: if self.kind() == Kind::Array { inner(self.0) } else { "" } }
    }

    /// getKeyJsonValueFromContainer; None: no object, or no such key.
    pub fn get(self, key: &str) -> Option<Self> {
        self.members().find(|(own, _)| string_is(own, key)).map(|(_, value)| value)
    }

    /// jsonb_array_element: negative numbers count from the end. None: no array, or no such element.
    pub fn at(self, index: i64) -> Option<Self> {
        let index = if index < 0 { self.elements().count() as i64 + index } else { index };
        self.elements().nth(usize::try_from(index).ok()?)
    }

    /// One step of a path: a key, or a number where it is an array (jsonfuncs.c, jsonb_get_element).
    pub fn step(self, step: &str) -> Option<Self> {
        match self.kind() {
            Kind::Object => self.get(step),
            Kind::Array => self.at(index_of_step(step)?.into()),
            _ => None,
        }
    }

    /// Appends what `->>` makes of the value; false: NULL.
    pub fn write_text(self, out: &mut String) -> bool {
        write_as_text(self.0, out)
    }

    /// `?`: a key, a string among the elements, or the string itself (jsonb_op.c, jsonb_exists).
    pub fn has(self, key: &str) -> bool {
        match self.kind() {
            Kind::Object => self.get(key).is_some(),
            Kind::Array => self.elements().any(|element| element.is_string(key)),
            _ => self.is_string(key),
        }
    }

    fn is_string(self, text: &str) -> bool {
        self.kind() == Kind::String && string_is(self.0, text)
    }

    /// `@>` (jsonb_op.c jsonb_contains; jsonb_util.c JsonbDeepContains). A lone scalar counts as an array of one, but
    /// contains no array. None: numbers too long to compare.
    pub fn contains(self, part: Self) -> Option<bool> {
        match (self.kind(), part.kind()) {
            (Kind::Object, Kind::Object) | (Kind::Array, Kind::Array) => self.holds(part),
            (Kind::Object, _) | (_, Kind::Object | Kind::Array) => Some(false),
            (Kind::Array, _) => any(self.elements(), |element| element.is_same_scalar(part)),
            _ => self.is_same_scalar(part),
        }
    }

    /// Of two containers.
    fn holds(self, part: Self) -> Option<bool> {
        let of_one = |own: Self, wanted: Self| match (own.is_container(), wanted.is_container()) {
            (true, true) if own.kind() == wanted.kind() => own.holds(wanted),
            (false, false) => own.is_same_scalar(wanted),
            _ => Some(false),
        };
        if self.kind() == Kind::Object {
            for (key, wanted) in part.members() {
                // Keys are written in one way only.
                let own = self.members().find(|(own, _)| *own == key);
                if own.is_none_or(|(_, own)| of_one(own, wanted) == Some(false)) {
                    return Some(false);
                }
                of_one(own?.1, wanted)?;
            }
            return Some(true);
        }
        for wanted in part.elements() {
            if !any(self.elements(), |own| of_one(own, wanted))? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// `=` (jsonb_util.c, compareJsonbContainers): numbers as numbers, whatever their scale. None: too long to compare.
    pub fn equals(self, other: Self) -> Option<bool> {
        if self.0 == other.0 {
            return Some(true);
        }
        match (self.kind(), other.kind()) {
            (Kind::Object, Kind::Object) => {
                all_equal(
                    self.members(),
                    other.members(),
                    |(a, mine), (b, theirs)| {
                        if a == b { mine.equals(theirs) } else { Some(false) }
                    },
                )
            }
            (Kind::Array, Kind::Array) => all_equal(self.elements(), other.elements(), Self::equals),
            _ => self.is_same_scalar(other),
        }
    }

    /// The order of jsonb (jsonb_util.c, compareJsonbContainers). An array that is empty is less than a scalar, as it always has
    /// been there. None: texts that differ, which the database's collation orders, or numbers too long to compare.
    pub fn order(self, other: Self) -> Option<Ordering> {
        match (self.kind(), other.kind()) {
            (Kind::Array, kind) if kind < Kind::Array && self.0 == "[]" => Some(Ordering::Less),
            (kind, Kind::Array) if kind < Kind::Array && other.0 == "[]" => Some(Ordering::Greater),
            _ => self.order_of_parts(other),
        }
    }

    fn order_of_parts(self, other: Self) -> Option<Ordering> {
        if self.0 == other.0 {
            return Some(Ordering::Equal);
        }
        match (self.kind(), other.kind()) {
            (Kind::Object, Kind::Object) => {
                let counted = self.members().count().cmp(&other.members().count());
                let mut parts = self
                    .members()
                    .zip(other.members())
                    .flat_map(|((a, mine), (b, theirs))| [(Self(a), Self(b)), (mine, theirs)]);
                first_difference(counted, &mut parts)
            }
            (Kind::Array, Kind::Array) => {
                let counted = self.elements().count().cmp(&other.elements().count());
                first_difference(counted, &mut self.elements().zip(other.elements()))
            }
            (Kind::String, Kind::String) => None,
            (Kind::Number, Kind::Number) => {
                let (a, b) = (Numeric::parse(self.0).ok()?, Numeric::parse(other.0).ok()?);
                Some(a.cmp(b))
            }
            (Kind::Boolean, Kind::Boolean) => Some((self.0 == "true").cmp(&(other.0 == "true"))),
            (mine, theirs) => Some(mine.cmp(&theirs)),
        }
    }

    /// Whether values that are equal to it are written as it is: no number has a fraction that ends in 0.
    pub fn is_plain(self) -> bool {
        match self.kind() {
            Kind::Object => self.members().all(|(_, value)| value.is_plain()),
            Kind::Array => self.elements().all(Self::is_plain),
            Kind::Number => !(self.0.contains('.') && self.0.ends_with('0')),
            _ => true,
        }
    }

    /// Appends `||` (jsonfuncs.c, IteratorConcat): objects become one, the right one's values count; else arrays do, and what
    /// is none is an array of itself.
    pub fn write_concatenated(self, other: Self, out: &mut String) {
        if self.kind() == Kind::Object && other.kind() == Kind::Object {
            let kept = self.members().filter(|(key, _)| other.members().all(|(theirs, _)| theirs != *key));
            let mut members: Vec<_> = kept.chain(other.members()).collect();
            members.sort_by(|(a, _), (b, _)| in_order_of_keys(&meant(a), &meant(b)));
            return write_object(members.into_iter(), out);
        }
        let items = |json: Self| if json.kind() == Kind::Array { json.elements().collect() } else { vec![json] };
        write_array(items(self).into_iter().chain(items(other)), out);
    }

    /// Appends `-` with a text (jsonb_delete). Whether that can be: not from a scalar.
    pub fn write_without(self, is_dropped: impl Fn(&str) -> bool, out: &mut String) -> bool {
        match self.kind() {
            Kind::Object => write_object(self.members().filter(|(key, _)| !is_dropped(&meant(key))), out),
            Kind::Array => {
                let is_named = |element: &Self| element.kind() == Kind::String && is_dropped(&meant(element.0));
                write_array(self.elements().filter(|element| !is_named(element)), out);
            }
            _ => return false,
        }
        true
    }

    /// Appends an array without its element of that number, from the end if negative (jsonb_delete_idx).
    pub fn write_without_element(self, index: i64, out: &mut String) {
        let index = if index < 0 { self.elements().count() as i64 + index } else { index };
        write_array(self.elements().enumerate().filter(|(at, _)| *at as i64 != index).map(|(_, element)| element), out);
    }

    /// Appends the indented form (jsonb.c, JsonbToCStringIndent): four spaces for each level.
    pub fn write_indented(self, level: usize, out: &mut String) {
        let line = |level: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n("    ", level));
        };
        match self.kind() {
            Kind::Object => {
                out.push('{');
                for (number, (key, value)) in self.members().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    line(level + 1, out);
                    out.push_str(key);
                    out.push_str(": ");
                    value.write_indented(level + 1, out);
                }
                line(level, out);
                out.push('}');
            }
            Kind::Array => {
                out.push('[');
                for (number, element) in self.elements().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    line(level + 1, out);
                    element.write_indented(level + 1, out);
                }
                line(level, out);
                out.push(']');
            }
            _ => out.push_str(self.0),
        }
    }

    fn is_same_scalar(self, other: Self) -> Option<bool> {
        match (self.kind(), other.kind()) {
            (Kind::Number, Kind::Number) if self.0 != other.0 => {
                let (a, b) = (Numeric::parse(self.0).ok()?, Numeric::parse(other.0).ok()?);
                Some(a.cmp(b).is_eq())
            }
            _ => Some(self.0 == other.0 && !self.is_container()),
        }
    }
}

/// Whether both have as many items, and equal ones.
fn all_equal<T>(
    mut left: impl Iterator<Item = T>,
    mut right: impl Iterator<Item = T>,
    equals: impl Fn(T, T) -> Option<bool>,
) -> Option<bool> {
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Some(true),
            (Some(mine), Some(theirs)) => {
                if !equals(mine, theirs)? {
                    return Some(false);
                }
            }
            _ => return Some(false),
        }
    }
}

/// The more parts, the greater; else the first that differs tells.
fn first_difference<'a>(counted: Ordering, parts: &mut dyn Iterator<Item = (Json<'a>, Json<'a>)>) -> Option<Ordering> {
    if counted.is_ne() {
        return Some(counted);
    }
    for (mine, theirs) in parts {
        let order = mine.order_of_parts(theirs)?;
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

/// lengthCompareJsonbString.
fn in_order_of_keys(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

fn write_object<'a>(members: impl Iterator<Item = (&'a str, Json<'a>)>, out: &mut String) {
    out.push('{');
    for (number, (key, value)) in members.enumerate() {
        out.push_str(if number > 0 { ", " } else { "" });
        out.push_str(key);
        out.push_str(": ");
        out.push_str(value.0);
    }
    out.push('}');
}

fn write_array<'a>(elements: impl Iterator<Item = Json<'a>>, out: &mut String) {
    out.push('[');
    for (number, element) in elements.enumerate() {
        out.push_str(if number > 0 { ", " } else { "" });
        out.push_str(element.0);
    }
    out.push(']');
}

/// Whether `test` is true of any; None if it is of none and unknown of one.
fn any<'a>(items: impl Iterator<Item = Json<'a>>, test: impl Fn(Json<'a>) -> Option<bool>) -> Option<bool> {
    let mut is_known = true;
    for item in items {
        match test(item) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}

/// Without the brackets.
fn inner(text: &str) -> &str {
    text.get(1..text.len().saturating_sub(1)).unwrap_or_default()
}

/// Where the value at the start of a text ends: before the next comma.
pub(super) fn end_of_value(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Behind the closing quote of the string that begins at `start`.
pub(super) fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

pub struct Members<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (key, after) = self.rest.split_at(end_of_string(self.rest.as_bytes(), 0));
        let after = after.strip_prefix(": ")?;
        let (value, rest) = after.split_at(end_of_value(after));
        self.rest = rest.strip_prefix(", ").unwrap_or_default();
        Some((key, Json(value)))
    }
}

pub struct Elements<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (value, rest) = self.rest.split_at(end_of_value(self.rest));
        self.rest = rest.strip_prefix(", ").unwrap_or_default();
        Some(Json(value))
    }
}

/// Whether a written string means `text`.
fn string_is(written: &str, text: &str) -> bool {
    meant(written) == text
}

/// Appends what `->>` makes of a written value; false: NULL.
pub(super) fn write_as_text(written: &str, out: &mut String) -> bool {
    match kind_of(written) {
        Kind::Null => return false,
        Kind::String => unescape(written, out),
        _ => out.push_str(written),
    }
    true
}

/// The number that a step of a path is, where it leads into an array: strtoint takes leading white space and a sign.
pub(super) fn index_of_step(step: &str) -> Option<i32> {
    step.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']).parse().ok()
}

/// What a written string means.
pub fn meant(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(inner(written));
    }
    let mut meant = String::with_capacity(written.len());
    unescape(written, &mut meant);
    Cow::Owned(meant)
}

/// Appends what a written string means.
fn unescape(written: &str, out: &mut String) {
    let mut characters = inner(written).chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('b') => out.push('\x08'),
            Some('f') => out.push('\x0c'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            // escape_json writes only control characters so.
            Some('u') => {
                let first = four_digits(&mut characters).unwrap_or(0);
                out.extend(char::from_u32(first).or_else(|| {
                    let mut ahead = characters.clone();
                    let whole = second_half(first, &mut ahead)?;
                    characters = ahead;
                    Some(whole)
                }));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
}

/// Of an escape; None: others follow.
fn four_digits(characters: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |code, _| Some(code * 16 + characters.next()?.to_digit(16)?))
}

/// The character of which this is the first half, where the second follows, escaped too (common/jsonapi.c, json_lex_string).
fn second_half(high: u32, characters: &mut Chars<'_>) -> Option<char> {
    let is_escape = characters.next() == Some('\\') && characters.next() == Some('u');
    let low = four_digits(characters).filter(|low| is_escape && (0xdc00..0xe000).contains(low))?;
    (0xd800..0xdc00).contains(&high).then(|| char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)))?
}

/// Appends a text as a string (utils/adt/json.c, escape_json).
pub fn escape(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Appends what to_json makes of a value that is not NULL (json.c, datum_to_json). `settings` ask for the ISO style of dates.
/// Not understood: arrays of several dimensions.
pub fn write_value(
    value: &Value,
    pg_type: PgType,
    settings: &FormatSettings,
    out: &mut String,
) -> Result<(), ParseError> {
    let printed = || {
        let mut printed = Vec::new();
        text::write(value, pg_type, settings, &mut printed);
        String::from_utf8(printed).map_err(|_| ParseError::beyond("text in json"))
    };
    match (pg_type, value) {
        (_, Value::Null) => out.push_str("null"),
        (_, Value::Bool(value)) => out.push_str(if *value { "true" } else { "false" }),
        (PgType::Json | PgType::Jsonb, Value::Text(json)) => out.push_str(json),
        (_, Value::Text(text)) => escape(text, out),
        (PgType::Int2 | PgType::Int4 | PgType::Int8, _) => out.push_str(&printed()?),
        (PgType::Float4 | PgType::Float8 | PgType::Numeric, _) => {
            let number = printed()?;
            // NaN and the infinities are no numbers of JSON's.
            if number.ends_with(|last: char| last.is_ascii_digit()) {
                out.push_str(&number);
            } else {
                escape(&number, out);
            }
        }
        (PgType::Timestamp | PgType::Timestamptz, _) => {
            out.push('"');
            write_moment(&printed()?, pg_type == PgType::Timestamptz, out);
            out.push('"');
        }
        (PgType::Array(element), Value::Array(bytes)) => {
            let array = ArrayView::of(bytes);
            if array.depth() > 1 {
                return Err(ParseError::beyond("json of an array of several dimensions"));
            }
            out.push('[');
            for (number, item) in array.elements().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                let item = item.map_or(Ok(Value::Null), |item| element_value(element.pg_type(), item))?;
                write_value(&item, element.pg_type(), settings, out)?;
            }
            out.push(']');
        }
        _ => escape(&printed()?, out),
    }
    Ok(())
}

/// The XSD style of what was printed in the ISO style (datetime.c, EncodeDateTime): a T before the time, minutes in each offset.
fn write_moment(printed: &str, has_offset: bool, out: &mut String) {
    let Some((date, rest)) = printed.split_once(' ') else { return out.push_str(printed) };
    let (time, era) = rest.split_once(' ').map_or((rest, None), |(time, era)| (time, Some(era)));
    out.push_str(date);
    out.push('T');
    out.push_str(time);
    let is_whole_hour = time.rfind(['+', '-']).is_some_and(|sign| !time[sign..].contains(':'));
    if has_offset && is_whole_hour {
        out.push_str(":00");
    }
    if let Some(era) = era {
        out.push(' ');
        out.push_str(era);
    }
}

/// jsonb_in: the canonical text.
pub fn parse(text: &str) -> Result<String, ParseError> {
    let mut parser = Parser { text, at: 0 };
    let mut out = String::with_capacity(text.len());
    parser.value(&mut out, 0)?;
    parser.skip_space();
    if parser.at < text.len() { Err(parser.wrong()) } else { Ok(out) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn wrong(&self) -> ParseError {
        ParseError::syntax("json")
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn value(&mut self, out: &mut String, depth: usize) -> Result<(), ParseError> {
        if depth > DEPTH_MAX {
            return Err(ParseError::beyond("deeply nested json"));
        }
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(out, depth),
            Some(b'[') => self.array(out, depth),
            Some(b'"') => {
                let string = self.string()?;
                escape(&string, out);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            _ => {
                let rest = &self.text[self.at..];
                let word = ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word));
                let word = word.ok_or_else(|| self.wrong())?;
                self.at += word.len();
                out.push_str(word);
                Ok(())
            }
        }
    }

    /// Keys in order of length, then bytes; of equal ones the last counts (jsonb_util.c, uniqueifyJsonbObject).
    fn object(&mut self, out: &mut String, depth: usize) -> Result<(), ParseError> {
        self.at += 1;
        let mut members: Vec<(String, String)> = Vec::new();
        if !self.accept(b'}') {
            loop {
                self.skip_space();
                let key = if self.peek() == Some(b'"') { self.string()? } else { return Err(self.wrong()) };
                if !self.accept(b':') {
                    return Err(self.wrong());
                }
                let mut value = String::new();
                self.value(&mut value, depth + 1)?;
                match members.iter_mut().find(|(own, _)| *own == key) {
                    Some(member) => member.1 = value,
                    None => members.push((key, value)),
                }
                if self.accept(b'}') {
                    break;
                }
                if !self.accept(b',') {
                    return Err(self.wrong());
                }
            }
        }
        members.sort_by(|(a, _), (b, _)| in_order_of_keys(a, b));
        out.push('{');
        for (number, (key, value)) in members.iter().enumerate() {
            out.push_str(if number > 0 { ", " } else { "" });
            escape(key, out);
            out.push_str(": ");
            out.push_str(value);
        }
        out.push('}');
        Ok(())
    }

    fn array(&mut self, out: &mut String, depth: usize) -> Result<(), ParseError> {
        self.at += 1;
        out.push('[');
        if !self.accept(b']') {
            loop {
                self.value(out, depth + 1)?;
                if self.accept(b']') {
                    break;
                }
                if !self.accept(b',') {
                    return Err(self.wrong());
                }
                out.push_str(", ");
            }
        }
        out.push(']');
        Ok(())
    }

    /// JSON's grammar of numbers, then numeric's output.
    fn number(&mut self, out: &mut String) -> Result<(), ParseError> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let leading = self.at;
        let whole = self.digits();
        if whole == 0 || (whole > 1 && self.text.as_bytes()[leading] == b'0') {
            return Err(self.wrong());
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.wrong());
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(self.wrong());
            }
        }
        if self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.') {
            return Err(self.wrong());
        }
        let mut printed = Vec::new();
        Numeric::parse(&self.text[start..self.at])?.write_text(&mut printed);
        out.push_str(std::str::from_utf8(&printed).map_err(|_| self.wrong())?);
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Result<String, ParseError> {
        let mut string = String::new();
        let mut characters = self.text[self.at + 1..].char_indices();
        let start = self.at + 1;
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.at = start + at + 1;
                    return Ok(string);
                }
                control if control < ' ' => return Err(self.wrong()),
                '\\' => match characters.next().map(|(_, escaped)| escaped) {
                    Some(plain @ ('"' | '\\' | '/')) => string.push(plain),
                    Some('b') => string.push('\x08'),
                    Some('f') => string.push('\x0c'),
                    Some('n') => string.push('\n'),
                    Some('r') => string.push('\r'),
                    Some('t') => string.push('\t'),
                    // Halves of a pair alone, and \u0000, are errors.
                    Some('u') => {
                        let mut rest = characters.as_str().chars();
                        let found = four_digits(&mut rest)
                            .filter(|code| *code > 0)
                            .and_then(|code| char::from_u32(code).or_else(|| second_half(code, &mut rest)));
                        let read = characters.as_str().len() - rest.as_str().len();
                        // All of what is read is ASCII.
                        characters.by_ref().take(read).for_each(drop);
                        string.push(found.ok_or_else(|| ParseError::beyond("escape in json"))?);
                    }
                    _ => return Err(self.wrong()),
                },
                other => string.push(other),
            }
        }
        Err(self.wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_becomes_canonical() {
        for (given, expected) in [
            (
                r#" {"b" : 1, "aa":[1,2 ,{}], "a":"x\/\u00e9\n", "b":-0.50e2} "#,
                r#"{"a": "x/é\n", "b": -50, "aa": [1, 2, {}]}"#,
            ),
            ("[]", "[]"),
            ("1.10", "1.10"),
            ("-0", "0"),
            ("1e3", "1000"),
            (r#""\u0001""#, r#""\u0001""#),
            (" null", "null"),
        ] {
            assert_eq!(parse(given).as_deref(), Ok(expected), "{given}");
        }
        for wrong in [
            "",
            "{",
            "[1,]",
            "01",
            "1.",
            "'a'",
            "tru",
            "truex",
            "1 2",
            "\"a",
            "{\"a\"}",
            "[1 2]",
            "1e",
            "\"\u{1}\"",
            "+1",
            ".5",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Expected values from PostgreSQL 15.
    #[test]
    fn values_become_json() {
        let settings = FormatSettings::default();
        let made = |pg_type, given: &str| {
            let value = text::parse(pg_type, -1, given, &settings).unwrap();
            let mut out = String::new();
            write_value(&value, pg_type, &settings, &mut out).map(|()| out)
        };
        for (pg_type, text, expected) in [
            (PgType::Bool, "t", "true"),
            (PgType::Int8, "-7", "-7"),
            (PgType::Numeric, "1.50", "1.50"),
            (PgType::Numeric, "NaN", "\"NaN\""),
            (PgType::Float8, "1e20", "1e+20"),
            (PgType::Float8, "-Infinity", "\"-Infinity\""),
            (PgType::Text, "a\"\\\n\u{1}é", "\"a\\\"\\\\\\n\\u0001é\""),
            (PgType::Date, "2024-02-29", "\"2024-02-29\""),
            (PgType::Timestamp, "2024-02-29 12:34:56.7", "\"2024-02-29T12:34:56.7\""),
            (PgType::Timestamp, "infinity", "\"infinity\""),
            (PgType::Timestamp, "0044-03-15 01:02:03 BC", "\"0044-03-15T01:02:03 BC\""),
            (PgType::Timestamptz, "2024-02-29 12:34:56+00", "\"2024-02-29T12:34:56+00:00\""),
            (PgType::Timestamptz, "0044-03-15 01:02:03+00 BC", "\"0044-03-15T01:02:03+00:00 BC\""),
            (PgType::Json, "{\"a\" :1}", "{\"a\" :1}"),
            (PgType::Array(crate::types::Element::Int4), "{1,NULL}", "[1,null]"),
            (PgType::Array(crate::types::Element::Text), "{}", "[]"),
        ] {
            assert_eq!(made(pg_type, text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn parts_are_found() {
        let json = parse(r#"{"a":{"b":[10,"x,y]",null,{"c":true}]},"q\"":"z","n":null}"#).unwrap();
        let json = Json::of(&json);
        let text = |json: Option<Json<'_>>| {
            let mut out = String::new();
            json.is_some_and(|json| json.write_text(&mut out)).then_some(out)
        };
        assert_eq!(text(json.get("q\"")).as_deref(), Some("z"));
        assert_eq!(text(json.get("n")), None);
        let list = json.step("a").and_then(|a| a.step("b")).unwrap();
        assert_eq!(text(list.at(1)).as_deref(), Some("x,y]"));
        assert_eq!(list.at(-1).unwrap().text(), r#"{"c": true}"#);
        assert_eq!((list.at(4), list.at(-5), list.elements().count()), (None, None, 4));
        assert!(list.has("x,y]") && !list.has("10") && json.has("n"));
    }

    #[test]
    fn containment_is_deep() {
        let contains = |whole: &str, part: &str| {
            let (whole, part) = (parse(whole).unwrap(), parse(part).unwrap());
            Json::of(&whole).contains(Json::of(&part)).unwrap()
        };
        assert!(contains(r#"{"a":1,"b":{"c":[1,2.0]}}"#, r#"{"b":{"c":[2]}}"#));
        assert!(contains(r#"["a",["b","c"]]"#, r#"[["c"]]"#) && contains(r#"["a"]"#, r#""a""#));
        assert!(!contains(r#""a""#, r#"["a"]"#) && !contains("{}", "[]") && !contains("[[1]]", "[1]"));
        assert!(contains("[1,1,2]", "[2,2,1]") && contains("{}", "{}") && !contains("[]", "1"));
    }
}
