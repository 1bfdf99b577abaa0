//! A statement as a tree: what it says, and at each place what could stand there instead. Shrinking needs no more: a candidate
//! that is no SQL, or means something else, just does not fail the way the statement failed.

use freshet_engine::types::{Oid, PgType};

/// What a part is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An expression of that type.
    Value(PgType),
    Query,
    /// May be left out.
    Optional,
    Plain,
}

#[derive(Clone, Debug)]
pub enum Part {
    Text(String),
    Sub(Sentence),
    /// A constant: written, or sent as a parameter.
    Constant(Constant),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub pg_type: PgType,
    /// None: NULL.
    pub text: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Sentence {
    pub kind: Kind,
    pub parts: Vec<Part>,
}

/// How constants are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constants {
    Written,
    /// As parameters of declared types.
    Declared,
    /// As parameters whose types PostgreSQL infers.
    Inferred,
}

/// A parameter: the declared type (0: to be inferred) and the value's text.
pub type Parameter = (Oid, Option<String>);

impl Sentence {
    pub fn new(kind: Kind) -> Self {
        Self { kind, parts: Vec::new() }
    }

    pub fn text(kind: Kind, text: impl Into<String>) -> Self {
        Self::new(kind).then(text)
    }

    pub fn constant(pg_type: PgType, text: Option<&str>) -> Self {
        let constant = Constant { pg_type, text: text.map(str::to_owned) };
        Self { kind: Kind::Value(pg_type), parts: vec![Part::Constant(constant)] }
    }

    #[must_use]
    pub fn then(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    #[must_use]
    pub fn with(mut self, sentence: Self) -> Self {
        self.parts.push(Part::Sub(sentence));
        self
    }

    /// Several, with a text between.
    #[must_use]
    pub fn list(mut self, items: impl IntoIterator<Item = Self>, between: &str) -> Self {
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self = self.then(between);
            }
            self = self.with(item);
        }
        self
    }

    /// The SQL, and what is sent beside it.
    pub fn written(&self, constants: Constants) -> (String, Vec<Parameter>) {
        let (mut sql, mut parameters) = (String::new(), Vec::new());
        self.write(constants, &mut sql, &mut parameters);
        (sql, parameters)
    }

    fn write(&self, constants: Constants, sql: &mut String, parameters: &mut Vec<Parameter>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => sql.push_str(text),
                Part::Sub(sub) => sub.write(constants, sql, parameters),
                Part::Constant(constant) => match constants {
                    Constants::Written => sql.push_str(&constant.literal()),
                    Constants::Declared | Constants::Inferred => {
                        let oid = if constants == Constants::Declared { constant.pg_type.oid() } else { 0 };
                        parameters.push((oid, constant.text.clone()));
                        sql.push_str(&format!("${}", parameters.len()));
                    }
                },
            }
        }
    }

    /// How many nodes the tree has.
    pub fn size(&self) -> usize {
        1 + self.subs().map(Self::size).sum::<usize>()
    }

    fn subs(&self) -> impl Iterator<Item = &Self> {
        self.parts.iter().filter_map(|part| match part {
            Part::Sub(sub) => Some(sub),
            Part::Text(_) | Part::Constant(_) => None,
        })
    }

    /// Every tree that has one node less to say, the shortest first.
    pub fn simpler(&self) -> Vec<Self> {
        let mut found = self.replacements();
        for (at, part) in self.parts.iter().enumerate() {
            let Part::Sub(sub) = part else { continue };
            for simpler in sub.simpler() {
                let mut whole = self.clone();
                whole.parts[at] = Part::Sub(simpler);
                found.push(whole);
            }
        }
        found.sort_by_key(Self::size);
        found
    }

    /// What could stand in place of this node.
    fn replacements(&self) -> Vec<Self> {
        let mut found = Vec::new();
        match self.kind {
            Kind::Optional if !self.parts.is_empty() => found.push(Self::new(Kind::Optional)),
            Kind::Optional | Kind::Plain => {}
            Kind::Query => self.within(Kind::Query, &mut found),
            Kind::Value(pg_type) => {
                self.within(self.kind, &mut found);
                if self.subs().next().is_some() {
                    found.push(Self::constant(pg_type, None));
                }
            }
        }
        found
    }

    /// The nearest nodes of a kind below this one.
    fn within(&self, kind: Kind, found: &mut Vec<Self>) {
        for sub in self.subs() {
            match sub.kind == kind {
                true => found.push(sub.clone()),
                false => sub.within(kind, found),
            }
        }
    }
}

impl Constant {
    fn literal(&self) -> String {
        let name = sql_name(self.pg_type);
        match &self.text {
            None => format!("NULL::{name}"),
            Some(text) => match self.pg_type {
                // A number behind an operator may begin with a sign.
                PgType::Int4 | PgType::Bool if !text.starts_with('-') => text.clone(),
                _ => format!("'{}'::{name}", text.replace('\'', "''")),
            },
        }
    }
}

/// A type as casts name it: char(n) has a length, so that what is printed does not hang on where it came from.
pub fn sql_name(pg_type: PgType) -> String {
    match pg_type {
        PgType::Bpchar => "char(4)".to_owned(),
        other => other.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_written_or_sent() {
        let sum = Sentence::new(Kind::Value(PgType::Int4))
            .with(Sentence::constant(PgType::Int4, Some("-1")))
            .then(" + ")
            .with(Sentence::constant(PgType::Int4, None));
        assert_eq!(sum.written(Constants::Written).0, "'-1'::integer + NULL::integer");
        let (sql, parameters) = sum.written(Constants::Declared);
        assert_eq!((sql.as_str(), parameters), ("$1 + $2", vec![(23, Some("-1".to_owned())), (23, None)]));
    }

    #[test]
    fn simpler_sentences_leave_out_one_thing() {
        let one = || Sentence::constant(PgType::Int4, Some("1"));
        let query = Sentence::text(Kind::Query, "SELECT ")
            .with(Sentence::new(Kind::Value(PgType::Int4)).with(one()).then(" + ").with(one()))
            .with(Sentence::text(Kind::Optional, " LIMIT 1"));
        let texts: Vec<String> = query.simpler().iter().map(|simpler| simpler.written(Constants::Written).0).collect();
        for expected in ["SELECT 1 LIMIT 1", "SELECT 1 + 1", "SELECT NULL::integer LIMIT 1"] {
            assert!(texts.iter().any(|text| text == expected), "{expected} is not among {texts:?}");
        }
    }
}
