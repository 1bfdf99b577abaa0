//! Expressions of a wanted type, out of the engine's own table of functions, operators and casts, and the forms of SQL
//! around them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use freshet_engine::catalog::functions::{Function, Volatility, all_functions, cast};
use freshet_engine::types::{Element, PgType};

use super::grammar::{Grammar, Scope};
use super::sentence::{Kind, Sentence, sql_name};
use super::values::{TYPES, any, constants_of, wrong};

/// What gives a value of a type.
static BY_RESULT: LazyLock<BTreeMap<PgType, Vec<&'static Function>>> = LazyLock::new(|| {
    let mut map: BTreeMap<PgType, Vec<&'static Function>> = BTreeMap::new();
    for function in all_functions().filter(|function| is_used(function)) {
        map.entry(function.result).or_default().push(function);
    }
    map
});

/// Names that are keywords: called by their schema.
const KEYWORDS: [&str; 15] = [
    "like",
    "notlike",
    "left",
    "right",
    "overlay",
    "position",
    "substring",
    "timestamp",
    "timestamptz",
    "interval",
    "time",
    "date",
    "timezone",
    "char_length",
    "character_length",
];

fn is_used(function: &Function) -> bool {
    let is_length = PgType::ALL.iter().any(|known| known.typname() == function.name) && function.arguments.len() > 1;
    let is_of_json = function.arguments.iter().any(|pg_type| matches!(pg_type, PgType::Json | PgType::Unknown));
    function.volatility != Volatility::Time && !is_length && !is_of_json && !function.arguments.is_empty()
}

/// Types whose values have an order here and upstream.
pub fn has_order(pg_type: PgType) -> bool {
    !matches!(pg_type, PgType::Json | PgType::Jsonb | PgType::Array(_))
}

/// Types that GROUP BY, DISTINCT and set operations take, whatever the values. Equal values of others may print differently.
pub fn is_grouped(pg_type: PgType) -> bool {
    has_order(pg_type)
        && !matches!(pg_type, PgType::Numeric | PgType::Float4 | PgType::Float8 | PgType::Interval | PgType::Bpchar)
}

/// Whether it is a cast of a label to a string.
fn is_label(from: PgType, to: PgType) -> bool {
    matches!((from, to), (PgType::Enum(_), PgType::Text | PgType::Varchar))
}

impl Grammar<'_> {
    pub fn value(&mut self, levels: &[Scope], pg_type: PgType, depth: usize) -> Sentence {
        if depth == 0 || self.dice.percent(30) {
            return self.leaf(levels, pg_type);
        }
        match self.dice.roll(if pg_type == PgType::Bool { 16 } else { 11 }) {
            0 => self.case(levels, pg_type, depth - 1),
            1 => {
                let items =
                    (0..2 + self.dice.roll(2)).map(|_| self.value(levels, pg_type, depth - 1)).collect::<Vec<_>>();
                Sentence::text(Kind::Value(pg_type), "coalesce(").list(items, ", ").then(")")
            }
            2 if has_order(pg_type) => {
                let name = *self.dice.pick(&["nullif(", "greatest(", "least("]);
                let items = [self.value(levels, pg_type, depth - 1), self.value(levels, pg_type, depth - 1)];
                Sentence::text(Kind::Value(pg_type), name).list(items, ", ").then(")")
            }
            3 => self.cast(levels, pg_type, depth - 1),
            4 if depth >= 2 => self.scalar_query(levels, pg_type, depth - 1),
            5..=10 => self.call(levels, pg_type, depth - 1),
            11..=15 => self.predicate(levels, depth - 1),
            _ => self.leaf(levels, pg_type),
        }
    }

    /// A column or a constant.
    fn leaf(&mut self, levels: &[Scope], pg_type: PgType) -> Sentence {
        if self.dice.percent(75)
            && let Some(column) = self.column(levels, pg_type)
        {
            return Sentence::text(Kind::Value(pg_type), column);
        }
        let (is_wild, dice) = (self.is_wild && self.dice.percent(15), &mut self.dice);
        if is_wild && dice.percent(15) {
            return Sentence::constant(pg_type, Some(*dice.pick(wrong(pg_type))));
        }
        Sentence::constant(pg_type, any(dice, pg_type, is_wild))
    }

    /// A column of that type, mostly of the innermost level.
    pub fn column(&mut self, levels: &[Scope], pg_type: PgType) -> Option<String> {
        let of_type = |scope: &Scope| -> Vec<String> {
            scope.iter().filter(|column| column.pg_type == pg_type).map(|column| column.text.clone()).collect()
        };
        let (inner, outer) = levels.split_last()?;
        if !outer.is_empty() && self.dice.percent(25) {
            let all: Vec<String> = outer.iter().flat_map(of_type).collect();
            if !all.is_empty() {
                return Some(self.dice.pick(&all).clone());
            }
        }
        let own = of_type(inner);
        (!own.is_empty()).then(|| self.dice.pick(&own).clone())
    }

    fn case(&mut self, levels: &[Scope], pg_type: PgType, depth: usize) -> Sentence {
        let mut sentence = Sentence::text(Kind::Value(pg_type), "CASE");
        for _ in 0..1 + self.dice.roll(2) {
            let (condition, value) = (self.value(levels, PgType::Bool, depth), self.value(levels, pg_type, depth));
            sentence = sentence.then(" WHEN ").with(condition).then(" THEN ").with(value);
        }
        if self.dice.percent(70) {
            let otherwise = self.value(levels, pg_type, depth);
            sentence = sentence.then(" ELSE ").with(otherwise);
        }
        sentence.then(" END")
    }

    fn cast(&mut self, levels: &[Scope], pg_type: PgType, depth: usize) -> Sentence {
        let is_text =
            |pg_type: PgType| matches!(pg_type, PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name);
        let from: Vec<PgType> = TYPES
            .into_iter()
            .filter(|from| *from != pg_type && (cast(*from, pg_type).is_some() || is_label(*from, pg_type)))
            .filter(|from| !is_text(*from) || is_text(pg_type))
            .collect();
        if from.is_empty() {
            return self.leaf(levels, pg_type);
        }
        let from = *self.dice.pick(&from);
        let value = self.value(levels, from, depth);
        let name = match pg_type {
            PgType::Numeric if self.dice.percent(40) => {
                (*self.dice.pick(&["numeric(20,2)", "numeric(12,4)"])).to_owned()
            }
            PgType::Varchar if self.dice.percent(40) => "varchar(3)".to_owned(),
            PgType::Timestamp if self.dice.percent(20) => "timestamp(1)".to_owned(),
            other => sql_name(other),
        };
        Sentence::text(Kind::Value(pg_type), "CAST(").with(value).then(format!(" AS {name})"))
    }

    fn call(&mut self, levels: &[Scope], pg_type: PgType, depth: usize) -> Sentence {
        if let PgType::Array(element) = pg_type {
            return self.array(levels, element, depth);
        }
        let Some(functions) = BY_RESULT.get(&pg_type) else { return self.leaf(levels, pg_type) };
        let function = *self.dice.pick(functions);
        let mut types = function.arguments.to_vec();
        if function.is_variadic {
            types.extend((0..self.dice.roll(3)).map(|_| *self.dice.pick(&*TYPES)));
        }
        let arguments: Vec<Sentence> = types
            .iter()
            .enumerate()
            .map(|(at, of)| match constants_of(function.name, at, &types) {
                Some(texts) => Sentence::constant(*of, Some(*self.dice.pick::<&str>(texts))),
                None => self.value(levels, *of, depth),
            })
            .collect();
        called(function, pg_type, arguments)
    }

    fn array(&mut self, levels: &[Scope], element: Element, depth: usize) -> Sentence {
        let kind = Kind::Value(PgType::Array(element));
        let items = |grammar: &mut Self| -> Vec<Sentence> {
            (0..1 + grammar.dice.roll(3)).map(|_| grammar.value(levels, element.pg_type(), depth)).collect()
        };
        match self.dice.roll(4) {
            0 | 1 => Sentence::text(kind, "ARRAY[").list(items(self), ", ").then("]"),
            2 => {
                let array = self.leaf(levels, PgType::Array(element));
                let item = self.value(levels, element.pg_type(), depth);
                Sentence::text(kind, "array_append(").with(array).then(", ").with(item).then(")")
            }
            _ => {
                let array = self.leaf(levels, PgType::Array(element));
                Sentence::text(kind, "(").with(array).then(")[1:2]")
            }
        }
    }

    /// A condition, of the forms of SQL.
    pub fn predicate(&mut self, levels: &[Scope], depth: usize) -> Sentence {
        let bool_kind = Kind::Value(PgType::Bool);
        let pg_type = self.ordered_type(levels);
        let below = depth.saturating_sub(1);
        match self.dice.roll(if depth == 0 { 9 } else { 14 }) {
            0..=2 => {
                let symbol = *self.dice.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let (left, right) = (self.value(levels, pg_type, below), self.value(levels, pg_type, below));
                let collation = if pg_type == PgType::Text && self.dice.percent(20) {
                    let names = ["\"C\"", "\"POSIX\"", "\"default\"", "\"en-US-x-icu\"", "pg_catalog.\"de-x-icu\""];
                    format!(" COLLATE {}", self.dice.pick(&names))
                } else {
                    String::new()
                };
                let collation = Sentence::text(Kind::Optional, collation);
                Sentence::text(bool_kind, "(")
                    .with(left)
                    .with(collation)
                    .then(format!(" {symbol} "))
                    .with(right)
                    .then(")")
            }
            3 => {
                let of = *self.dice.pick(&*TYPES);
                let test = *self.dice.pick(&["IS NULL", "IS NOT NULL"]);
                let value = self.value(levels, of, below);
                Sentence::text(bool_kind, "(").with(value).then(format!(" {test})"))
            }
            4 => {
                let operand = self.value(levels, pg_type, below);
                let items: Vec<Sentence> = (0..1 + self.dice.roll(3)).map(|_| self.leaf(levels, pg_type)).collect();
                let word = *self.dice.pick(&[" IN (", " NOT IN ("]);
                Sentence::text(bool_kind, "(").with(operand).then(word).list(items, ", ").then("))")
            }
            5 => {
                let word = *self.dice.pick(&[" BETWEEN ", " NOT BETWEEN "]);
                let (value, low) = (self.value(levels, pg_type, below), self.leaf(levels, pg_type));
                let high = self.leaf(levels, pg_type);
                Sentence::text(bool_kind, "(").with(value).then(word).with(low).then(" AND ").with(high).then(")")
            }
            6 => {
                let word = *self.dice.pick(&[" IS DISTINCT FROM ", " IS NOT DISTINCT FROM "]);
                let (left, right) = (self.value(levels, pg_type, below), self.leaf(levels, pg_type));
                Sentence::text(bool_kind, "(").with(left).then(word).with(right).then(")")
            }
            7 => {
                let test = *self.dice.pick(&["IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN"]);
                let value = self.value(levels, PgType::Bool, below);
                Sentence::text(bool_kind, "(").with(value).then(format!(" {test})"))
            }
            8 => {
                let element = *self.dice.pick(&[Element::Int4, Element::Text]);
                let symbol = *self.dice.pick(&["= ANY", "<> ALL", "> ANY", "<= ALL"]);
                let (value, array) =
                    (self.leaf(levels, element.pg_type()), self.value(levels, PgType::Array(element), below));
                Sentence::text(bool_kind, "(").with(value).then(format!(" {symbol} (")).with(array).then("))")
            }
            9 => {
                let operand = self.value(levels, PgType::Bool, below);
                Sentence::text(bool_kind, "(NOT ").with(operand).then(")")
            }
            10 | 11 => {
                let word = *self.dice.pick(&[" AND ", " OR "]);
                let items = [self.value(levels, PgType::Bool, below), self.value(levels, PgType::Bool, below)];
                Sentence::text(bool_kind, "(").list(items, word).then(")")
            }
            12 => self.exists(levels, below),
            _ => self.in_query(levels, pg_type, below),
        }
    }

    /// A type of which there are columns, mostly.
    fn ordered_type(&mut self, levels: &[Scope]) -> PgType {
        let own = levels.last().map_or(&[][..], |scope| scope);
        let types: Vec<PgType> = own.iter().map(|column| column.pg_type).filter(|of| has_order(*of)).collect();
        if types.is_empty() || self.dice.percent(10) { PgType::Int4 } else { *self.dice.pick(&types) }
    }
}

/// As it is written: an operator between or before, a cast, or a call.
fn called(function: &Function, pg_type: PgType, mut arguments: Vec<Sentence>) -> Sentence {
    let kind = Kind::Value(pg_type);
    let is_symbol = !function.name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_cast = PgType::ALL.iter().any(|known| known.typname() == function.name) && arguments.len() == 1;
    match arguments.len() {
        1 if is_symbol => Sentence::text(kind, format!("({} ", function.name)).with(arguments.remove(0)).then(")"),
        2 if is_symbol => {
            let right = arguments.remove(1);
            let left = arguments.remove(0);
            Sentence::text(kind, "(").with(left).then(format!(" {} ", function.name)).with(right).then(")")
        }
        _ if is_cast => {
            Sentence::text(kind, "CAST(").with(arguments.remove(0)).then(format!(" AS {})", sql_name(function.result)))
        }
        _ => {
            let schema = if KEYWORDS.contains(&function.name) { "pg_catalog." } else { "" };
            Sentence::text(kind, format!("{schema}{}(", function.name)).list(arguments, ", ").then(")")
        }
    }
}
