//! Which operator or function a call means: func_select_candidate and its callers (parse_func.c, parse_oper.c).
//!
//! Works on the complete list of pg_catalog's candidates, so that an overload that is not computed here can win and send
//! the statement upstream.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::catalog::functions::{ArgumentType, Candidate, Function};
use crate::types::PgType;

/// The candidate whose argument types are exactly these.
pub(super) fn exact(candidates: &'static [Candidate], arguments: &[PgType]) -> Option<&'static Candidate> {
    candidates.iter().find(|candidate| {
        !candidate.is_variadic
            && candidate.arguments.len() == arguments.len()
            && candidate.arguments.iter().zip(arguments).all(|(have, want)| *have == ArgumentType::Known(*want))
    })
}

/// binary_oper_exact: an untyped operand is first taken to be of the other's type.
pub(super) fn exact_operator(candidates: &'static [Candidate], arguments: &[PgType]) -> Option<&'static Candidate> {
    match *arguments {
        [PgType::Unknown, right] => exact(candidates, &[right, right]),
        [left, PgType::Unknown] => exact(candidates, &[left, left]),
        _ => exact(candidates, arguments),
    }
}

/// The candidate for texts, if all arguments are untyped: whatever users declare, strings come first there, and text among them
/// (func_select_candidate, its steps for unknown inputs).
pub(super) fn of_texts(candidates: &'static [Candidate], arguments: &[PgType]) -> Option<&'static Candidate> {
    let texts = vec![PgType::Text; arguments.len()];
    arguments.iter().all(|argument| *argument == PgType::Unknown).then(|| exact(candidates, &texts))?
}

/// func_match_argtypes, then func_select_candidate.
pub(super) fn best(candidates: &'static [Candidate], arguments: &[PgType]) -> Option<&'static Candidate> {
    let applicable = candidates.iter().filter(|candidate| {
        let count = candidate.arguments.len();
        let fits = if candidate.is_variadic {
            arguments.len() >= count
        } else {
            arguments.len() <= count && arguments.len() + candidate.defaults >= count
        };
        fits && are_coercible(arguments, candidate)
    });
    let mut remaining: Vec<_> = applicable.collect();
    if remaining.len() <= 1 {
        return remaining.pop();
    }
    remaining = with_most(remaining, |candidate| exact_matches(candidate, arguments));
    if remaining.len() == 1 {
        return remaining.pop();
    }
    remaining = with_most(remaining, |candidate| preferred_matches(candidate, arguments));
    if remaining.len() == 1 {
        return remaining.pop();
    }
    if !arguments.contains(&PgType::Unknown) {
        return None;
    }
    remaining = by_category_of_unknowns(remaining, arguments);
    if remaining.len() == 1 {
        return remaining.pop();
    }
    by_type_of_knowns(remaining, arguments)
}

/// can_coerce_type in implicit context, for all arguments.
fn are_coercible(arguments: &[PgType], candidate: &Candidate) -> bool {
    let fits = arguments.iter().enumerate().all(|(index, from)| match argument_at(candidate, index) {
        Some(ArgumentType::Known(to)) => is_implicitly_coercible(*from, to),
        Some(ArgumentType::Other(other)) => other.accepts(*from),
        None => false,
    });
    fits && polymorphic_arguments_agree(arguments, candidate)
}

/// enforce_generic_type_consistency for `anyelement`, whose actual types must be one. (`anycompatible` unifies by common
/// type; with the types held here it occurs beside arrays only, which match nothing but untyped literals.)
fn polymorphic_arguments_agree(arguments: &[PgType], candidate: &Candidate) -> bool {
    let mut element_types = arguments.iter().enumerate().filter_map(|(index, from)| {
        let is_element =
            matches!(argument_at(candidate, index), Some(ArgumentType::Other(other)) if other.name == "anyelement");
        (is_element && *from != PgType::Unknown).then_some(*from)
    });
    match element_types.next() {
        Some(first) => element_types.all(|other| other == first),
        None => true,
    }
}

fn argument_at(candidate: &Candidate, index: usize) -> Option<ArgumentType> {
    let last = candidate.arguments.len().checked_sub(1)?;
    let index = if candidate.is_variadic { index.min(last) } else { index };
    candidate.arguments.get(index).copied()
}

pub(super) fn is_implicitly_coercible(from: PgType, to: PgType) -> bool {
    from == to || from == PgType::Unknown || IMPLICIT_CASTS.contains(&(from, to))
}

/// pg_cast's implicit casts, whether or not they are computed here.
static IMPLICIT_CASTS: LazyLock<HashSet<(PgType, PgType)>> = LazyLock::new(|| {
    let known = |name: &str| PgType::ALL.into_iter().find(|known| known.typname() == name);
    let cast = |line: &str| {
        let mut words = line.split(' ');
        let pair = (known(words.next()?)?, known(words.next()?)?);
        (words.next()? == "i").then_some(pair)
    };
    include_str!("../catalog/functions/pg_cast.txt").lines().filter_map(cast).collect()
});

fn with_most(candidates: Vec<&'static Candidate>, count: impl Fn(&Candidate) -> usize) -> Vec<&'static Candidate> {
    let most = candidates.iter().map(|candidate| count(candidate)).max().unwrap_or(0);
    candidates.into_iter().filter(|candidate| count(candidate) == most).collect()
}

fn known_arguments<'a>(arguments: &'a [PgType]) -> impl Iterator<Item = (usize, PgType)> + 'a {
    arguments.iter().copied().enumerate().filter(|(_, pg_type)| *pg_type != PgType::Unknown)
}

fn exact_matches(candidate: &Candidate, arguments: &[PgType]) -> usize {
    known_arguments(arguments)
        .filter(|(index, from)| argument_at(candidate, *index) == Some(ArgumentType::Known(*from)))
        .count()
}

/// Exact, or to the preferred type of the argument's own category.
fn preferred_matches(candidate: &Candidate, arguments: &[PgType]) -> usize {
    known_arguments(arguments)
        .filter(|(index, from)| {
            argument_at(candidate, *index).is_some_and(|to| {
                let from = ArgumentType::Known(*from);
                to == from || (to.is_preferred() && to.category() == from.category())
            })
        })
        .count()
}

/// Untyped arguments take the string category if any candidate has it there, else the one that all agree on.
fn by_category_of_unknowns(candidates: Vec<&'static Candidate>, arguments: &[PgType]) -> Vec<&'static Candidate> {
    let mut slots = Vec::new();
    for (index, _) in arguments.iter().enumerate().filter(|(_, pg_type)| **pg_type == PgType::Unknown) {
        let accepted: Vec<ArgumentType> =
            candidates.iter().filter_map(|candidate| argument_at(candidate, index)).collect();
        let Some(first) = accepted.first() else { return candidates };
        let has_string = accepted.iter().any(|accepted| accepted.category() == 'S');
        let category = if has_string { 'S' } else { first.category() };
        if !has_string && accepted.iter().any(|accepted| accepted.category() != category) {
            return candidates;
        }
        let has_preferred = accepted.iter().any(|accepted| accepted.category() == category && accepted.is_preferred());
        slots.push((index, category, has_preferred));
    }
    let fits = |candidate: &Candidate| {
        slots.iter().all(|(index, category, has_preferred)| {
            argument_at(candidate, *index)
                .is_some_and(|to| to.category() == *category && (to.is_preferred() || !has_preferred))
        })
    };
    let kept: Vec<_> = candidates.iter().copied().filter(|candidate| fits(candidate)).collect();
    if kept.is_empty() { candidates } else { kept }
}

/// The last resort: all known arguments have one type, and only one candidate takes it everywhere.
fn by_type_of_knowns(candidates: Vec<&'static Candidate>, arguments: &[PgType]) -> Option<&'static Candidate> {
    let mut known = known_arguments(arguments).map(|(_, pg_type)| pg_type);
    let first = known.next()?;
    if !known.all(|other| other == first) {
        return None;
    }
    let arguments = vec![first; arguments.len()];
    let mut fitting = candidates.into_iter().filter(|candidate| are_coercible(&arguments, candidate));
    let found = fitting.next()?;
    fitting.next().is_none().then_some(found)
}

/// Where it does nothing, the planner puts a relabelled argument in its place, and the row description has its length then
/// (varchar_support and its like). Of an interval, whose modifier nobody writes as a number, the audit's look at the description
/// tells.
pub(super) fn is_length_coercion(function: &Function) -> bool {
    function.result != PgType::Interval
        && function.name == function.result.typname()
        && matches!(function.arguments, [value, PgType::Int4, ..] if *value == function.result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::functions::{function_candidates, operator_candidates};
    use crate::types::PgType::*;

    fn operator(symbol: &str, left: PgType, right: PgType) -> Option<Vec<ArgumentType>> {
        let candidates = operator_candidates(symbol);
        let arguments = [left, right];
        let found = exact_operator(candidates, &arguments).or_else(|| best(candidates, &arguments));
        found.map(|candidate| candidate.arguments.clone())
    }

    fn known(left: PgType, right: PgType) -> Option<Vec<ArgumentType>> {
        Some(vec![ArgumentType::Known(left), ArgumentType::Known(right)])
    }

    /// Expected values from PostgreSQL 15: the operator in the plan, or an error.
    #[test]
    fn operators_resolve_as_in_postgresql() {
        for (symbol, left, right, expected) in [
            ("=", Varchar, Unknown, known(Text, Text)),
            ("=", Bpchar, Unknown, known(Bpchar, Bpchar)),
            ("=", Bpchar, Varchar, known(Bpchar, Bpchar)),
            ("=", Bpchar, Text, known(Text, Text)),
            ("=", Int2, Int8, known(Int2, Int8)),
            ("=", Int4, Numeric, known(Numeric, Numeric)),
            ("=", Int4, Float4, known(Float8, Float4)),
            ("=", Date, Timestamptz, known(Date, Timestamptz)),
            ("=", Int4, Text, None),
            ("=", Bool, Int4, None),
            ("-", Date, Unknown, known(Date, Date)),
            ("+", Date, Unknown, None),
            ("+", Timestamp, Unknown, known(Timestamp, Interval)),
            ("+", Date, Int2, known(Date, Int4)),
            ("+", Date, Int8, None),
            ("*", Interval, Int4, known(Interval, Float8)),
            ("*", Interval, Numeric, known(Interval, Float8)),
            ("*", Float4, Numeric, known(Float4, Float8)),
            ("||", Unknown, Unknown, known(Text, Text)),
            ("||", Varchar, Bpchar, known(Text, Text)),
            ("~~", Varchar, Unknown, known(Text, Text)),
            ("~~", Int4, Unknown, None),
            ("%", Int8, Int4, known(Int8, Int8)),
            ("^", Int4, Int4, known(Float8, Float8)),
            ("<", Unknown, Unknown, known(Text, Text)),
        ] {
            assert_eq!(operator(symbol, left, right), expected, "{left:?} {symbol} {right:?}");
        }
    }

    #[test]
    fn functions_resolve_as_in_postgresql() {
        let of = |name, arguments: &[PgType]| {
            let candidates = function_candidates(name);
            exact(candidates, arguments).or_else(|| best(candidates, arguments)).map(|found| found.arguments.clone())
        };
        let list = |types: &[PgType]| Some(types.iter().map(|known| ArgumentType::Known(*known)).collect::<Vec<_>>());
        assert_eq!(of("round", &[Numeric, Int4]), list(&[Numeric, Int4]));
        assert_eq!(of("round", &[Int4]), list(&[Float8]));
        assert_eq!(of("round", &[Float8, Int4]), None);
        assert_eq!(of("floor", &[Int8]), list(&[Float8]));
        assert_eq!(of("length", &[Varchar]), list(&[Text]));
        assert_eq!(of("length", &[Unknown]), list(&[Text]));
        assert_eq!(of("date_trunc", &[Unknown, Date]), list(&[Text, Timestamptz]));
        assert_eq!(of("date_trunc", &[Unknown, Timestamp]), list(&[Text, Timestamp]));
        assert_eq!(of("timezone", &[Unknown, Unknown]), list(&[Text, Timestamptz]));
        assert_eq!(of("substring", &[Text, Int4, Int4]), list(&[Text, Int4, Int4]));
        assert_eq!(of("abs", &[Unknown]), list(&[Float8]));
    }
}
