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
    /// By argument: it takes values of a type of the users' own, to which nothing built-in is converted implicitly. None: any
    /// number of arguments of any type.
    pub takes_own: Option<Vec<bool>>,
    /// The result depends on the arguments alone, as far as whoever compiled it says so.
    pub is_pure: bool,
}

impl FromIterator<Arc<str>> for Overloads {
    /// Of these names, whatever they take and do.
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        let anything = || vec![Overload { takes_own: None, is_pure: false }];
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

    pub fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Whether one of the name is a candidate for arguments of these built-in types (parse_func.c, func_match_argtypes: each
    /// must be convertible implicitly, which an untyped literal always is).
    pub fn may_take(&self, name: &str, arguments: &[PgType]) -> bool {
        let fits = |takes_own: &Vec<bool>| {
            let mut both = takes_own.iter().zip(arguments);
            takes_own.len() == arguments.len() && both.all(|(is_own, of)| !is_own || *of == PgType::Unknown)
        };
        self.of(name).iter().any(|overload| overload.takes_own.as_ref().is_none_or(fits))
    }

    /// Whether a call by the name depends on its arguments alone, whichever of them it means.
    pub fn are_pure(&self, name: &str) -> bool {
        self.of(name).iter().all(|overload| overload.is_pure)
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
    fn a_type_of_the_users_own_takes_nothing_else() {
        let mut overloads = Overloads::default();
        // = (citext, citext), and one that takes an integer, too.
        overloads.add("=", Overload { takes_own: Some(vec![true, true]), is_pure: true });
        overloads.add("=", Overload { takes_own: Some(vec![true, false]), is_pure: false });
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
        overloads.add("sum", Overload { takes_own: None, is_pure: true });
        assert!(overloads.may_take("sum", &[Int4]) && overloads.may_take("sum", &[]));
        assert!(overloads.are_pure("sum") && overloads.are_pure("<") && !overloads.are_pure("="));
    }
}
