//! What users and extensions have defined under names of functions and operators, by what it takes: enough to tell that a call
//! cannot mean it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::types::PgType;

/// Functions, or operators, in any schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overloads {
    names: HashMap<Arc<str>, Vec<Overload>>,
}

/// One of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overload {
    /// By argument. None: any number of arguments of any type.
    pub takes: Option<Vec<Taken>>,
    /// The result depends on the arguments alone, as far as whoever compiled it (of functions: whoever keeps the extension) says so.
    pub is_pure: bool,
}

/// What built-in types an argument may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nobody knows.
    Any,
    /// These types (by OID), as they are or converted implicitly, enums among them; none, where it takes another type of the users' own.
    Of(Vec<u32>),
}

impl FromIterator<Arc<str>> for Overloads {
    /// Of these names, whatever they take and do.
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        let anything = || vec![Overload { takes: None, is_pure: false }];
        Self { names: names.into_iter().map(|name| (name, anything())).collect() }
    }
}

impl Overloads {
    pub fn add(&mut self, name: &str, overload: Overload) {
        let known = self.names.entry(name.into()).or_default();
        if !known.contains(&overload) {
            known.push(overload);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Whether one of the name is a candidate for arguments of these types (parse_func.c, func_match_argtypes: each
    /// must be convertible implicitly, which an untyped literal always is).
    pub fn may_take(&self, name: &str, arguments: &[PgType]) -> bool {
        let fits = |takes: &Vec<Taken>| {
            let mut both = takes.iter().zip(arguments);
            takes.len() == arguments.len()
                && both.all(|(taken, of)| match taken {
                    Taken::Any => true,
                    Taken::Of(types) => *of == PgType::Unknown || types.contains(&of.oid()),
                })
        };
        self.of(name).iter().any(|overload| overload.takes.as_ref().is_none_or(fits))
    }

    /// Whether a call by the name depends on its arguments alone, whichever of them it means.
    pub fn are_pure(&self, name: &str) -> bool {
        self.of(name).iter().all(|overload| overload.is_pure)
    }

    /// Whether `value.name` may call one whose result, or effect, is not decided by the value alone (parse_func.c,
    /// ParseFuncOrColumn: what is no column of it is a function of one argument).
    pub fn may_be_column(&self, name: &str) -> bool {
        let takes_one = |overload: &Overload| overload.takes.as_ref().is_none_or(|takes| takes.len() == 1);
        self.of(name).iter().any(|overload| !overload.is_pure && takes_one(overload))
    }

    fn of(&self, name: &str) -> &[Overload] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::PgType::{Int4, Text, Unknown, Varchar};

    #[test]
    fn only_what_can_be_converted_is_taken() {
        let mut overloads = Overloads::default();
        // = (citext, citext), and one that takes an integer, too.
        let own = || Taken::Of(Vec::new());
        overloads.add("=", Overload { takes: Some(vec![own(), own()]), is_pure: true });
        overloads.add("=", Overload { takes: Some(vec![own(), Taken::Any]), is_pure: false });
        assert!(overloads.contains("=") && !overloads.contains("<"));
        for (arguments, may) in [
            (vec![Varchar, Text], false),
            (vec![Varchar, Unknown], false),
            (vec![Unknown, Unknown], true),
            (vec![Unknown, Int4], true),
            (vec![Unknown], false),
        ] {
            assert_eq!(overloads.may_take("=", &arguments), may, "{arguments:?}");
        }
        assert!(!overloads.may_take("<", &[Unknown, Unknown]));
        // % (text, text), as pg_trgm has it.
        let text = || Taken::Of(vec![Text.oid(), Varchar.oid()]);
        overloads.add("%", Overload { takes: Some(vec![text(), text()]), is_pure: true });
        assert!(overloads.may_take("%", &[Varchar, Unknown]) && overloads.may_take("%", &[Unknown, Text]));
        assert!(!overloads.may_take("%", &[Int4, Int4]) && !overloads.may_take("%", &[Int4, Unknown]));
        overloads.add("sum", Overload { takes: None, is_pure: true });
        assert!(overloads.may_take("sum", &[Int4]) && overloads.may_take("sum", &[]));
        assert!(overloads.are_pure("sum") && overloads.are_pure("<") && !overloads.are_pure("="));
        overloads.add("of_row", Overload { takes: Some(vec![own()]), is_pure: false });
        assert!(overloads.may_be_column("of_row") && !overloads.may_be_column("="), "= takes two");
        assert!(!overloads.may_be_column("sum") && !overloads.may_be_column("id"));
    }
}
