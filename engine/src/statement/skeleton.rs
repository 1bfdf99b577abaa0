//! A text with its integers left open, to know the next one of a series (`WHERE id = 17`, `WHERE id = 18`) without reading it.

use std::ops::Range;

use crate::statement::lexer::{self, TokenKind};

/// A statement's text, and where it has integers that another may stand for.
#[derive(Clone, Debug)]
pub struct Skeleton {
    text: Box<[u8]>,
    /// Ascending, never adjacent.
    holes: Box<[Range<usize>]>,
}

impl Skeleton {
    /// Of a text that only an equal one fits.
    pub fn closed(text: &[u8]) -> Self {
        Self { text: text.into(), holes: Box::default() }
    }

    /// With a hole for every integer of the text; where it does not lex, for none.
    pub fn open(text: &[u8]) -> Self {
        let tokens = std::str::from_utf8(text).ok().and_then(|text| lexer::tokens(text).ok()).unwrap_or_default();
        // Beside a point, a digit more may be another token.
        let is_point = |at: Option<usize>| at.and_then(|at| text.get(at)) == Some(&b'.');
        let is_whole = |hole: &Range<usize>| !is_point(hole.start.checked_sub(1)) && !is_point(Some(hole.end));
        let integers = tokens.iter().filter(|token| token.kind == TokenKind::Integer);
        let holes = integers.map(|token| token.start..token.end()).filter(is_whole).collect();
        Self { text: text.into(), holes }
    }

    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Whether `text` has the same tokens but for the values of integers, and the same comments and space between them.
    pub fn fits(&self, text: &[u8]) -> bool {
        let (mut rest, mut from) = (text, 0);
        for hole in &self.holes {
            let Some(after) = rest.strip_prefix(&self.text[from..hole.start]) else { return false };
            // What follows in the text of its own is no digit: the lexer took all there were.
            let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            (rest, from) = (&after[digits..], hole.end);
        }
        rest == &self.text[from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integers_may_differ() {
        let skeleton = Skeleton::open(b"SELECT a1, 'x7', $1 FROM t2 -- 3\n WHERE id = 17 AND b>(5)");
        assert!(skeleton.has_holes());
        for (text, fits) in [
            ("SELECT a1, 'x7', $1 FROM t2 -- 3\n WHERE id = 17 AND b>(5)", true),
            ("SELECT a1, 'x7', $1 FROM t2 -- 3\n WHERE id = 0 AND b>(123456789012345678901234567890)", true),
            ("SELECT a2, 'x7', $1 FROM t2 -- 3\n WHERE id = 17 AND b>(5)", false),
            ("SELECT a1, 'x8', $1 FROM t2 -- 3\n WHERE id = 17 AND b>(5)", false),
            ("SELECT a1, 'x7', $2 FROM t2 -- 3\n WHERE id = 17 AND b>(5)", false),
            ("SELECT a1, 'x7', $1 FROM t2 -- 4\n WHERE id = 17 AND b>(5)", false),
            ("SELECT a1, 'x7', $1 FROM t2 -- 3\n WHERE id =  AND b>(5)", false),
            ("SELECT a1, 'x7', $1 FROM t2 -- 3\n WHERE id = 1.5 AND b>(5)", false),
            ("SELECT a1, 'x7', $1 FROM t2 -- 3\n WHERE id = 1e5 AND b>(5)", false),
            ("SELECT a1, 'x7', $1 FROM t2 -- 3\n WHERE id = 17 AND b>(5))", false),
            ("SELECT a1, 'x7', $1 FROM t2 -- 3\n WHERE id = 17 AND b>(", false),
            ("", false),
        ] {
            assert_eq!(skeleton.fits(text.as_bytes()), fits, "{text}");
        }
    }

    #[test]
    fn what_fits_has_the_same_kinds_of_tokens() {
        let kinds = |text: &str| lexer::tokens(text).map(|list| list.iter().map(|t| t.kind).collect::<Vec<_>>());
        for text in ["SELECT 1", "SELECT 1..2", "x.5 + 3", "1;2", "a[1:2]", "1/*2*/3", "-1", "1-2", "1::int4", "(1)"] {
            let skeleton = Skeleton::open(text.as_bytes());
            let other: String = text.split('1').collect::<Vec<_>>().join("907");
            assert_eq!(
                skeleton.fits(other.as_bytes()) && other != text,
                skeleton.has_holes() && text.contains('1'),
                "{text}"
            );
            assert_eq!(kinds(text), kinds(&other));
        }
    }

    #[test]
    fn a_closed_one_fits_its_own_text_only() {
        for skeleton in [Skeleton::closed(b"SELECT 1"), Skeleton::open(b"SELECT 'unfinished")] {
            assert!(!skeleton.has_holes() && skeleton.fits(&skeleton.text) && !skeleton.fits(b"SELECT 2"));
        }
    }
}
