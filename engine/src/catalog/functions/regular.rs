//! Regular expressions, as far as PostgreSQL's (regc_lex.c, regcomp.c) provably mean what the `regex` crate's mean.
//!
//! A pattern is read by PostgreSQL's rules for advanced expressions and written anew for the crate: literals, `.`, bracket
//! expressions, `\d \s \w` and their opposites, `^ $`, groups, alternatives, greedy quantifiers. Everything else is refused.
//! Whether there is a match does not depend on how one is chosen. What is matched does: PostgreSQL takes the longest, and of that
//! each part from left to right its longest (regexec.c, ccondissect); the crate takes the first by preference. So where the match
//! itself matters, the pattern may have no alternatives, and one quantifier that leaves a choice, over one character, in each
//! part, that is, in each capturing group and between them: then trying more repetitions first finds each part's longest. Of
//! several such parts the first match is the longest if it goes to the end of the text; else that is not known.
//!
//! Classes of letters depend on the collation beyond ASCII: a pattern that has them, or ignores case, takes ASCII text only. Digits
//! and white space are the same by all collations but for some characters.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::ArrayRef;
use regex::{Captures, Regex};

use super::at_once::go_on;
use super::rows::{Text, end_of, to_bool, to_text, to_text_or_null};
use super::vector::operand;
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Bool, Bpchar, Name, Text as TextType};
use crate::types::Value;

/// What a compiled expression may occupy.
const SIZE_MAX: usize = 1 << 20;
/// Compiled patterns that a thread remembers.
const REMEMBERED_MAX: usize = 64;
/// DUPMAX.
const REPEAT_MAX: u32 = 255;
/// About how many arcs PostgreSQL's automaton may come to have. Beyond a number of bytes (regguts.h, REG_MAX_COMPILE_SPACE; some
/// millions of arcs) PostgreSQL has an error, after up to a second.
const ARCS_MAX: usize = 1_000_000;
/// Kinds of characters that it tells apart beside those that the pattern names: classes and all the others.
const COLOURS_MIN: usize = 8;

struct Compiled {
    regex: Regex,
    needs_ascii: bool,
    needs_plain: bool,
    /// See [`Reader::disputed`].
    disputed: u128,
    /// What is matched is what PostgreSQL would match; if `to_end`, where that goes to the end of the text.
    is_determined: bool,
    to_end: bool,
}

impl Compiled {
    fn check(&self, text: &str) -> Result<(), EvalError> {
        if self.needs_ascii && !text.is_ascii() {
            return Err(beyond("class or case of letters beyond ASCII"));
        }
        if self.needs_plain && !text.chars().all(is_plain) {
            return Err(beyond("a character that is a digit or white space by some collations only"));
        }
        let is_disputed = |byte: u8| byte.is_ascii() && self.disputed >> byte & 1 == 1;
        if self.disputed != 0 && text.bytes().any(is_disputed) {
            return Err(beyond("a character that is in a class by some collations only"));
        }
        Ok(())
    }
}

/// Neither a digit nor white space by any C library, ICU and PostgreSQL's own tables, of whatever age; or ASCII. Blocks of letters,
/// of common symbols and of dashes and quotes.
fn is_plain(character: char) -> bool {
    matches!(character,
        '\0'..='\x7f'
        | '\u{a1}'..='\u{b1}' | '\u{b4}'..='\u{b8}' | '\u{ba}'..='\u{bb}' | '\u{bf}'..='\u{24f}'
        | '\u{386}'..='\u{52f}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{20a0}'..='\u{20bf}'
        | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fe}' | '\u{4e00}'..='\u{9fa5}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{1f300}'..='\u{1f5ff}' | '\u{1f600}'..='\u{1f64f}')
}

fn beyond(what: &str) -> EvalError {
    EvalError::Beyond(format!("regular expression: {what}"))
}

fn compiled(pattern: &str, ignores_case: bool) -> Result<Rc<Compiled>, EvalError> {
    type Remembered = HashMap<(String, bool), Result<Rc<Compiled>, EvalError>>;
    thread_local!(static REMEMBERED: RefCell<Remembered> = RefCell::default());
    REMEMBERED.with_borrow_mut(|remembered| {
        let key = (pattern.to_owned(), ignores_case);
        if let Some(known) = remembered.get(&key) {
            return known.clone();
        }
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        let made = compile(pattern, ignores_case).map(Rc::new);
        remembered.insert(key, made.clone());
        made
    })
}

fn compile(pattern: &str, ignores_case: bool) -> Result<Compiled, EvalError> {
    if ignores_case && !pattern.is_ascii() {
        return Err(beyond("case of letters beyond ASCII"));
    }
    let mut reader = Reader { rest: pattern, written: "(?s)".to_owned(), ..Reader::default() };
    reader.alternatives(0)?;
    if !reader.rest.is_empty() {
        return Err(beyond("unbalanced parenthesis"));
    }
    // Whatever may be left out or come again is joined with all else that may (regc_nfa.c, fixempties), by each kind of characters.
    let colours = COLOURS_MIN + pattern.chars().collect::<HashSet<_>>().len() * (1 + usize::from(ignores_case));
    let pairs = reader.repeated.saturating_mul(reader.repeated);
    if reader.atoms.saturating_add(pairs).saturating_mul(colours) > ARCS_MAX {
        return Err(beyond("too complex"));
    }
    let regex = regex::RegexBuilder::new(&reader.written)
        .case_insensitive(ignores_case)
        .size_limit(SIZE_MAX)
        .build()
        .map_err(|_| beyond("too large"))?;
    let is_divided = reader.is_undecided || (reader.is_nested && reader.choices > 1);
    let is_open = is_divided || reader.has_alternatives || reader.repeats_group;
    Ok(Compiled {
        regex,
        needs_ascii: reader.needs_ascii || ignores_case,
        needs_plain: reader.needs_plain,
        disputed: reader.disputed,
        is_determined: !is_open && reader.length_min > 0,
        to_end: reader.choices > 1,
    })
}

#[derive(Default)]
struct Reader<'p> {
    rest: &'p str,
    /// For the crate.
    written: String,
    needs_ascii: bool,
    /// See [`is_plain`].
    needs_plain: bool,
    /// ASCII characters, a bit each, that ICU puts into other classes than C libraries do (regc_pg_locale.c: pg_wc_isspace,
    /// pg_wc_ispunct).
    disputed: u128,
    has_alternatives: bool,
    repeats_group: bool,
    /// Quantifiers that leave a choice, and those of the part at hand.
    choices: usize,
    choices_here: usize,
    /// A part has several.
    is_undecided: bool,
    /// Groups that are open; and whether a capturing one has been within another, which is a part as a whole before its own parts are.
    groups_open: usize,
    is_nested: bool,
    /// Characters that a match has at least; meaningless with alternatives.
    length_min: usize,
    /// Characters, classes and anchors, as often as they are repeated.
    atoms: usize,
    /// Of these, those that a quantifier is about.
    repeated: usize,
    /// Characters that are themselves; and what is more than a row of these: groups and quantifiers.
    letters: usize,
    structures: usize,
}

/// What a quantifier may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    /// The very one, if it is.
    Character(Option<char>),
    Group,
    /// A group that captures nothing, of nothing but characters that are themselves.
    Word,
    /// `^`, `$`.
    Anchor,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn accept(&mut self, wanted: &str) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn alternatives(&mut self, depth: usize) -> Result<(), EvalError> {
        if depth > 20 {
            return Err(beyond("nesting"));
        }
        loop {
            let mut atoms = 0;
            while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
                self.atom(depth)?;
                atoms += 1;
            }
            // An empty alternative has rules of its own.
            if atoms == 0 {
                return Err(beyond("nothing to match"));
            }
            if !self.accept("|") {
                return Ok(());
            }
            self.has_alternatives = true;
            self.written.push('|');
        }
    }

    fn atom(&mut self, depth: usize) -> Result<(), EvalError> {
        let before = (self.atoms, self.repeated);
        let atom = match self.next() {
            None => return Err(beyond("end")),
            Some('^') => self.anchor("^"),
            Some('$') => self.anchor("$"),
            Some('.') => self.character(".", None),
            Some('(') => {
                let is_plain = !self.rest.starts_with(['?', '*']);
                if !is_plain && !self.accept("?:") {
                    return Err(beyond("look-around or option"));
                }
                self.written.push_str(if is_plain { "(" } else { "(?:" });
                let inside = (self.atoms - self.letters, self.structures);
                self.choices_here *= usize::from(!is_plain);
                self.is_nested |= is_plain && self.groups_open > 0;
                self.groups_open += 1;
                self.alternatives(depth + 1)?;
                if !self.accept(")") {
                    return Err(beyond("unbalanced parenthesis"));
                }
                self.choices_here *= usize::from(!is_plain);
                self.groups_open -= 1;
                self.written.push(')');
                let is_word = !is_plain && (self.atoms - self.letters, self.structures) == inside;
                self.structures += 1;
                if is_word { Atom::Word } else { Atom::Group }
            }
            Some('[') => {
                let set = self.bracket()?;
                self.character(&set, None)
            }
            Some('\\') => {
                let escaped = self.next().ok_or_else(|| beyond("end in a backslash"))?;
                match self.class(escaped) {
                    Some(class) => self.character(&format!("[{class}]"), None),
                    None => {
                        let itself = escape(escaped)?;
                        self.character(&literal(itself), Some(itself))
                    }
                }
            }
            Some('*' | '+' | '?') => return Err(beyond("quantifier of nothing")),
            Some('{') if self.rest.starts_with(|next: char| next.is_ascii_digit()) => {
                return Err(beyond("quantifier of nothing"));
            }
            Some(other) => self.character(&literal(other), Some(other)),
        };
        self.quantifier(atom, before)
    }

    fn anchor(&mut self, written: &str) -> Atom {
        self.written.push_str(written);
        self.atoms += 1;
        Atom::Anchor
    }

    fn character(&mut self, written: &str, itself: Option<char>) -> Atom {
        self.written.push_str(written);
        self.atoms += 1;
        self.length_min += 1;
        self.letters += usize::from(itself.is_some());
        Atom::Character(itself)
    }

    /// `before`: what there was of `atoms` and `repeated` before the atom.
    fn quantifier(&mut self, atom: Atom, before: (usize, usize)) -> Result<(), EvalError> {
        let is_bound = self.rest.starts_with('{') && self.rest[1..].starts_with(|next: char| next.is_ascii_digit());
        if !is_bound && !self.rest.starts_with(['*', '+', '?']) {
            return Ok(());
        }
        let (least, most, written) = match self.next() {
            Some('+') => (1, 1, "+".to_owned()),
            Some('*') => (0, 1, "*".to_owned()),
            Some('?') => (0, 1, "?".to_owned()),
            _ => self.bound()?,
        };
        // A shortest match, and quantifiers of quantifiers.
        let follows = self.rest.starts_with(['*', '+', '?'])
            || (self.rest.starts_with('{') && self.rest[1..].starts_with(|next: char| next.is_ascii_digit()));
        if atom == Atom::Anchor || follows {
            return Err(beyond("quantifier of this kind"));
        }
        self.structures += 1;
        if !self.is_forced(atom) {
            self.choices += 1;
            self.choices_here += 1;
            self.is_undecided |= self.choices_here > 1;
        }
        self.repeats_group |= atom == Atom::Group || (atom == Atom::Word && written != "?");
        let length = self.atoms - before.0;
        let repeated = (least as usize).saturating_mul(length);
        self.length_min = self.length_min.saturating_add(repeated).saturating_sub(length);
        self.written.push_str(&written);
        let copies = (self.atoms - before.0).saturating_mul(most.max(1) as usize);
        (self.atoms, self.repeated) = (before.0.saturating_add(copies), before.1.saturating_add(copies));
        self.letters = self.letters.min(self.atoms);
        Ok(())
    }

    /// What follows the quantifier is another character, which has to be there: how often the one comes is not a question.
    fn is_forced(&self, atom: Atom) -> bool {
        let Atom::Character(Some(itself)) = atom else { return false };
        let mut following = self.rest.chars();
        let other = following.next().filter(|other| is_itself(*other));
        let is_there = !following.as_str().starts_with(['*', '+', '?', '{']);
        is_there && other.is_some_and(|other| !other.eq_ignore_ascii_case(&itself))
    }

    /// After `{`: the least number, how many copies the automaton has, and the whole as it is written.
    fn bound(&mut self) -> Result<(u32, u32, String), EvalError> {
        let wrong = || beyond("repetition count");
        let end = self.rest.find('}').ok_or_else(wrong)?;
        let inside = &self.rest[..end];
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|number| is_plain && *number <= REPEAT_MAX).ok_or_else(wrong)
        };
        let (least, most, written) = match inside.split_once(',') {
            None => (number(inside)?, number(inside)?, format!("{{{}}}", number(inside)?)),
            Some((least, "")) => (number(least)?, number(least)? + 1, format!("{{{},}}", number(least)?)),
            Some((least, most)) if number(least)? <= number(most)? => {
                (number(least)?, number(most)?, format!("{{{},{}}}", number(least)?, number(most)?))
            }
            Some(_) => return Err(wrong()),
        };
        self.rest = &self.rest[end + 1..];
        Ok((least, most, written))
    }

    /// `\d` and its kin, for use within brackets of the crate; None: no class.
    fn class(&mut self, name: char) -> Option<&'static str> {
        let class = match name {
            'd' => "0-9",
            's' => " \\x09-\\x0D",
            'w' => "0-9A-Za-z_",
            'D' => "^0-9",
            'S' => "^ \\x09-\\x0D",
            'W' => "^0-9A-Za-z_",
            _ => return None,
        };
        match name {
            'd' | 'D' => self.needs_plain = true,
            's' | 'S' => {
                self.needs_plain = true;
                self.dispute(DISPUTED_SPACES);
            }
            _ => self.needs_ascii = true,
        }
        Some(class)
    }

    /// After `[`: a bracket expression, in the crate's form.
    fn bracket(&mut self) -> Result<String, EvalError> {
        let mut set = String::from("[");
        if self.accept("^") {
            set.push('^');
        }
        let mut is_first = true;
        loop {
            let start = match self.next().ok_or_else(|| beyond("unbalanced bracket"))? {
                ']' if !is_first => break,
                '[' if self.rest.starts_with([':', '.', '=']) => {
                    set.push_str(self.named_class()?);
                    self.no_range_from_class()?;
                    is_first = false;
                    continue;
                }
                '\\' => {
                    let escaped = self.next().ok_or_else(|| beyond("end in a backslash"))?;
                    if matches!(escaped, 'd' | 's' | 'w') {
                        set.push_str(self.class(escaped).unwrap_or_default());
                        self.no_range_from_class()?;
                        is_first = false;
                        continue;
                    }
                    escape(escaped)?
                }
                plain => plain,
            };
            is_first = false;
            set.push_str(&code(start));
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            if is_range {
                self.next();
                let end = match self.next().ok_or_else(|| beyond("unbalanced bracket"))? {
                    '[' => return Err(beyond("end of a range")),
                    '\\' => escape(self.next().ok_or_else(|| beyond("end in a backslash"))?)?,
                    plain => plain,
                };
                if end < start || self.rest.starts_with("-") && !self.rest.starts_with("-]") {
                    return Err(beyond("range"));
                }
                let _ = write!(set, "-{}", code(end));
            }
        }
        set.push(']');
        Ok(set)
    }

    /// A class begins no range: a hyphen behind it is literal only at the end (regc_lex.c, regcomp.c brackpart).
    fn no_range_from_class(&self) -> Result<(), EvalError> {
        if self.rest.starts_with('-') && !self.rest.starts_with("-]") { Err(beyond("range")) } else { Ok(()) }
    }

    fn dispute(&mut self, characters: &[u8]) {
        self.disputed |= characters.iter().fold(0, |bits, byte| bits | 1 << byte);
    }

    /// After `[`: `:name:]`.
    fn named_class(&mut self) -> Result<&'static str, EvalError> {
        let known = [
            (":alpha:]", "A-Za-z"),
            (":digit:]", "0-9"),
            (":alnum:]", "0-9A-Za-z"),
            (":upper:]", "A-Z"),
            (":lower:]", "a-z"),
            (":space:]", " \\x09-\\x0D"),
            (":punct:]", "!-/:-@\\[-`\\{-~"),
        ];
        let found = known.into_iter().find(|(name, _)| self.accept(name));
        match found {
            Some((":digit:]", _)) => self.needs_plain = true,
            Some((":space:]", _)) => {
                self.needs_plain = true;
                self.dispute(DISPUTED_SPACES);
            }
            Some((":punct:]", _)) => {
                self.needs_ascii = true;
                self.dispute(DISPUTED_SYMBOLS);
            }
            _ => self.needs_ascii = true,
        }
        found.map(|(_, set)| set).ok_or_else(|| beyond("class of characters"))
    }
}

/// ICU: white space.
const DISPUTED_SPACES: &[u8] = b"\x1c\x1d\x1e\x1f";
/// ICU: symbols, not punctuation.
const DISPUTED_SYMBOLS: &[u8] = b"$+<=>^`|~";

/// The character that an escape stands for; letters and digits have meanings of their own.
fn escape(escaped: char) -> Result<char, EvalError> {
    match escaped {
        't' => Ok('\t'),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        'f' => Ok('\x0c'),
        letter if letter.is_alphanumeric() || letter == '_' => Err(beyond("escape")),
        literal => Ok(literal),
    }
}

/// A character that means itself in a pattern, whatever is around it.
fn is_itself(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, ' ' | '/' | ':' | ',' | ';' | '_' | '=' | '"' | '\'' | '@' | '#' | '%')
}

fn literal(character: char) -> String {
    if character.is_ascii_alphanumeric() || !character.is_ascii() { character.to_string() } else { code(character) }
}

fn code(character: char) -> String {
    format!("\\x{{{:X}}}", character as u32)
}

/// Directors and embedded options change what follows.
fn is_special(pattern: &str) -> bool {
    pattern.starts_with("***") || (pattern.starts_with("(?") && !pattern.starts_with("(?:"))
}

fn matches(operands: &[Operand], rows: usize, ignores_case: bool, expected: bool) -> Result<ArrayRef, EvalError> {
    let test = |text: &str, pattern: &str| {
        if is_special(pattern) {
            return Err(beyond("option"));
        }
        let compiled = compiled(pattern, ignores_case)?;
        compiled.check(text)?;
        Ok(compiled.regex.is_match(text) == expected)
    };
    match operand(operands, 1)? {
        Operand::Scalar(Value::Text(pattern)) => {
            let pattern = Arc::clone(pattern);
            to_bool::<(Text,)>(&operands[..1], rows, |(text,)| test(text, &pattern))
        }
        _ => to_bool::<(Text, Text)>(operands, rows, |(text, pattern)| test(text, pattern)),
    }
}

fn like(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    matches(o, rows, false, true)
}

fn unlike(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    matches(o, rows, false, false)
}

fn like_in_any_case(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    matches(o, rows, true, true)
}

fn unlike_in_any_case(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    matches(o, rows, true, false)
}

/// An expression whose matches in the text are PostgreSQL's, as far as [`Compiled::found`] says.
fn determined(text: &str, pattern: &str, ignores_case: bool) -> Result<Rc<Compiled>, EvalError> {
    if is_special(pattern) {
        return Err(beyond("option"));
    }
    let compiled = compiled(pattern, ignores_case)?;
    if !compiled.is_determined {
        return Err(undetermined());
    }
    compiled.check(text)?;
    Ok(compiled)
}

fn undetermined() -> EvalError {
    beyond("which of several matches")
}

impl Compiled {
    /// The first match from `from` on, with its groups.
    fn found<'t>(&self, text: &'t str, from: usize) -> Result<Option<Captures<'t>>, EvalError> {
        let found = self.regex.captures_at(text, from);
        let is_sure = |found: &Captures<'_>| !self.to_end || found.get(0).is_some_and(|all| all.end() == text.len());
        match found {
            Some(found) if !is_sure(&found) => Err(undetermined()),
            found => Ok(found),
        }
    }
}

/// `g` and which case counts; the last of these is in force (parse_re_flags).
fn replacing_flags(flags: &str) -> Result<(bool, bool), EvalError> {
    let (mut is_global, mut ignores_case) = (false, false);
    for flag in flags.chars() {
        match flag {
            'g' => is_global = true,
            'i' => ignores_case = true,
            'c' => ignores_case = false,
            _ => return Err(beyond("flags")),
        }
    }
    Ok((is_global, ignores_case))
}

/// A match's replacement: `\1` to `\9` are groups, `\&` is the match, `\\` a backslash; any other backslash stands for itself
/// (appendStringInfoRegexpSubstr).
fn replacement(by: &str, found: &Captures<'_>, out: &mut String) {
    let mut rest = by;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let group = match rest.bytes().next() {
            Some(digit @ b'1'..=b'9') => usize::from(digit - b'0'),
            Some(b'&') => 0,
            Some(b'\\') => {
                out.push('\\');
                rest = &rest[1..];
                continue;
            }
            _ => {
                out.push('\\');
                continue;
            }
        };
        rest = &rest[1..];
        out.push_str(found.get(group).map_or("", |part| part.as_str()));
    }
    out.push_str(rest);
}

fn replace_in(text: &str, pattern: &str, by: &str, flags: &str, out: &mut String) -> Result<(), EvalError> {
    let (is_global, ignores_case) = replacing_flags(flags)?;
    let compiled = determined(text, pattern, ignores_case)?;
    let mut from = 0;
    // No match is empty.
    while let Some(found) = compiled.found(text, from)? {
        let all = found.get(0).map_or(from..from, |all| all.range());
        out.push_str(&text[from..all.start]);
        replacement(by, &found, out);
        end_of(out.len())?;
        go_on()?;
        from = all.end;
        if !is_global {
            break;
        }
    }
    out.push_str(&text[from..]);
    Ok(())
}

fn replace(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, Text, Text)>(o, rows, |(text, pattern, by), out| replace_in(text, pattern, by, "", out))
}

fn replace_flagged(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text::<(Text, Text, Text, Text)>(o, rows, |(text, pattern, by, flags), out| {
        replace_in(text, pattern, by, flags, out)
    })
}

/// regexp_match: the parts of the first match by group, or the match as a whole where there is no group; false: there is none.
pub(super) fn match_in<'t>(
    text: &'t str,
    pattern: &str,
    flags: &str,
    mut part: impl FnMut(Option<&'t str>),
) -> Result<bool, EvalError> {
    let compiled = determined(text, pattern, ignores_case(flags)?)?;
    let Some(found) = compiled.found(text, 0)? else { return Ok(false) };
    let first = usize::from(found.len() > 1);
    (first..found.len()).for_each(|group| part(found.get(group).map(|part| part.as_str())));
    Ok(true)
}

/// regexp_split_to_array: what lies between the matches, none of which is empty.
pub(super) fn split_in<'t>(
    text: &'t str,
    pattern: &str,
    flags: &str,
    mut part: impl FnMut(&'t str),
) -> Result<(), EvalError> {
    let compiled = determined(text, pattern, ignores_case(flags)?)?;
    let mut from = 0;
    while let Some(found) = compiled.found(text, from)? {
        let all = found.get(0).map_or(from..from, |all| all.range());
        part(&text[from..all.start]);
        go_on()?;
        from = all.end;
    }
    part(&text[from..]);
    Ok(())
}

/// Of flags among which `g` is an error.
fn ignores_case(flags: &str) -> Result<bool, EvalError> {
    let (is_global, ignores_case) = replacing_flags(flags)?;
    if is_global { Err(EvalError::Raises("the \"global\" option".to_owned())) } else { Ok(ignores_case) }
}

/// textregexsubstr: the first group if there is one, else the match; NULL without one.
fn substring(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    to_text_or_null::<(Text, Text)>(o, rows, |(text, pattern), out| {
        let compiled = determined(text, pattern, false)?;
        let captures = compiled.found(text, 0)?;
        let found = captures.and_then(|captures| captures.get(usize::from(captures.len() > 1)));
        out.push_str(found.map_or("", |found| found.as_str()));
        Ok(found.is_some())
    })
}

const TEXTS: &[crate::types::PgType] = &[TextType, TextType];
const THREE: &[crate::types::PgType] = &[TextType, TextType, TextType];
const FOUR: &[crate::types::PgType] = &[TextType, TextType, TextType, TextType];

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("~", TEXTS, Bool, like, "regexp.c textregexeq"),
    Function::immutable("~", &[Name, TextType], Bool, like, "regexp.c nameregexeq"),
    Function::immutable("~", &[Bpchar, TextType], Bool, like, "regexp.c textregexeq (bpcharregexeq)"),
    Function::immutable("!~", TEXTS, Bool, unlike, "regexp.c textregexne"),
    Function::immutable("!~", &[Name, TextType], Bool, unlike, "regexp.c nameregexne"),
    Function::immutable("!~", &[Bpchar, TextType], Bool, unlike, "regexp.c textregexne (bpcharregexne)"),
    Function::immutable("~*", TEXTS, Bool, like_in_any_case, "regexp.c texticregexeq"),
    Function::immutable("!~*", TEXTS, Bool, unlike_in_any_case, "regexp.c texticregexne"),
    Function::immutable("regexp_replace", THREE, TextType, replace, "regexp.c textregexreplace_noopt"),
    Function::immutable("regexp_replace", FOUR, TextType, replace_flagged, "regexp.c textregexreplace"),
    Function::immutable("substring", TEXTS, TextType, substring, "regexp.c textregexsubstr"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_certain_is_refused() {
        for pattern in [
            "", "a|", "(", "a)", "*a", "a**", "^*", "(?=a)", "(?i)a", "\\1", "\\y", "\\ma", "a{3", "a{3,2}", "a{256}",
            "[a", "[b-a]", "[[.a.]]", "a*?", "\\", "[a-c-e]", "[\\D]", "(a|)", "()",
        ] {
            assert!(compile(pattern, false).is_err(), "{pattern}");
        }
        assert!(compile("é", true).is_err());
        for pattern in ["[\\w-.]", "[[:alpha:]-z]", "[^\\d-x]"] {
            assert!(compile(pattern, false).is_err(), "{pattern}");
        }
        assert!(compile("[\\w-]", false).is_ok());
    }

    #[test]
    fn what_collations_class_otherwise_is_refused() {
        let cases = [("\\s", "a\x1c"), ("[^[:space:]]", "\x1f"), ("[[:punct:]]", "a$b"), ("[[:punct:]\\s]", "a^")];
        for (pattern, text) in cases {
            let compiled = compile(pattern, false).unwrap();
            assert!(compiled.check(text).is_err(), "{pattern}");
            assert!(compiled.check("a. b").is_ok(), "{pattern}");
        }
        assert!(compile("\\w", false).unwrap().check("a$b\x1c").is_ok());
    }

    #[test]
    fn what_postgresql_may_find_too_complex_is_refused() {
        for pattern in
            ["x*y*z*".repeat(1_000), "(a|b|c){250}".to_owned(), "((a{30}){30}){30}".to_owned(), "a?".repeat(400)]
        {
            assert!(compile(&pattern, false).is_err(), "{pattern}");
        }
        let mail = "^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,24}$";
        for pattern in [mail, "^\\d{3}-\\d{4}$", "[0-9]{1,150}", &"a long text ".repeat(50), &"(ab|cd)*".repeat(10)] {
            assert!(compile(pattern, true).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn one_quantifier_in_each_part_determines_the_match() {
        let is_determined = |pattern| compile(pattern, false).unwrap().is_determined;
        let to_end = |pattern| compile(pattern, false).unwrap().to_end;
        let host = "^https?://(?:www\\.)?([^/]+)/.*$";
        assert!(is_determined("^https?://([^/]+).*$") && to_end("^https?://([^/]+).*$"));
        assert!(is_determined(host) && is_determined("(a+)(b*)") && is_determined("a*bc+"));
        assert!(!is_determined("[ab]?[bc]?d") && !is_determined("(?:a.)?b") && !is_determined("(?:ab)*c"));
        assert!(!is_determined("x((a?)((?:ab)?))(.*)") && !is_determined("x(?:(a?)((?:ab)?))(.*)"));
        assert!(is_determined("((a)b+)c"));
        assert!(
            !is_determined("(a?b?)")
                && is_determined("s?s?x")
                && !is_determined("s?.?x")
                && !to_end("https?://")
                && !to_end("(a)b+(c)")
        );
        assert!(is_determined("\\s+") && is_determined("^a.*b$") && is_determined("id=(\\d+)") && is_determined("abc"));
        assert!(!is_determined("a*") && !is_determined("a+b+") && !is_determined("a|b") && !is_determined("(ab)+"));
        assert!(!is_determined("a{0,3}") && is_determined("a{1,3}"));
    }
}
