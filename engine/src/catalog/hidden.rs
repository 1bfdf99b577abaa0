//! What users' functions do besides computing: relations whose use runs functions that no statement names (those of a view's
//! query, of triggers, rules, defaults and checks), of which only those count that may change the session, or write although they
//! are read; which functions do neither; and the operators, casts and domains whose functions do.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;

/// By name, whatever the schema: where a name means another relation, the session is asked once more than it need be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenCalls {
    /// Views that may do so when they are read.
    pub read: HashSet<Arc<str>>,
    /// Tables and views that may do so when they are written.
    pub written: HashSet<Arc<str>>,
    /// Names of users' functions, whatever the schema, none of which changes the session, writes or locks.
    pub quiet: HashSet<Arc<str>>,
    /// Operators of users that are computed by others, whatever the schema.
    pub operators: HashSet<Arc<str>>,
    /// Types whose values come about by others: domains that are checked so, what is made of them (tables, too), what is cast so.
    pub types: HashSet<Arc<str>>,
    /// One of these is used where neither its name nor its type's has to stand: a cast that is not written, an operator that keywords stand
    /// for.
    pub is_unseen: bool,
    /// An event trigger may do so, whatever is defined.
    pub fires: bool,
}

impl HiddenCalls {
    /// Whether no relation runs anything.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.written.is_empty()
    }

    /// Whether a call by this name, with or without a schema, can be trusted, if it means a function of users'.
    pub fn is_quiet(&self, name: &str) -> bool {
        let Some((_, plain)) = name.rsplit_once('.') else { return self.quiet.contains(name) };
        // There may be a point in a name.
        self.quiet.contains(plain) && !plain.is_empty() && !name.contains('"') && name.matches('.').count() == 1
    }

    /// How much runs what is not trusted without a name of its own.
    pub fn unnamed_count(&self) -> usize {
        self.operators.len() + self.types.len() + usize::from(self.is_unseen)
    }

    /// The first of these names whose relation may do something that is not seen.
    pub fn first<N: Borrow<str>>(&self, names: impl IntoIterator<Item = N>, is_write: bool) -> Option<N> {
        if self.read.is_empty() && (self.written.is_empty() || !is_write) {
            return None;
        }
        names.into_iter().find(|name| {
            let name = name.borrow();
            self.read.contains(name) || is_write && self.written.contains(name)
        })
    }
}
