//! Look-up in the table: by operator symbol, function name, or pair of cast types.
//!
//! The implemented entries are the `ENTRIES` of the sibling modules. Which candidates exist beside them is data:
//! `pg_operator.txt`, `pg_proc.txt`, `pg_cast.txt` and `pg_type.txt`, taken from the catalogs of PostgreSQL 15
//! (operators that accept a type held here, with all their namesakes; functions likewise, by a list of names).
//! Lines are `name(argument,argument)result`, then ` s`/` v` if stable or volatile, ` null` if not strict; `*` marks
//! the variadic argument.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use super::{
    Function, ROWS_FUNCTIONS, all_aggregates, arithmetic, bits, bucket, cast_number, cast_text, comparison, datetime,
    float, format, json, json_output, network, number_pattern, numeric_arithmetic, numeric_powers, overlap, pattern,
    plain_json, regular, setting, text, text_comparison,
};
use crate::types::{Oid, PgType};

/// Type of one argument of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentType {
    Known(PgType),
    /// A type that the engine does not hold, or a pseudo-type.
    Other(&'static OtherType),
}

/// A type of pg_catalog outside [`PgType`], as far as overload resolution looks at it.
#[derive(Debug, PartialEq, Eq)]
pub struct OtherType {
    /// `pg_type.typname`.
    pub name: &'static str,
    pub oid: Oid,
    /// `pg_type.typcategory`.
    pub category: char,
    pub is_preferred: bool,
    /// The held types with an implicit cast to it.
    implicit_from: Vec<PgType>,
}

impl OtherType {
    /// `can_coerce_type` with implicit context for one argument (PostgreSQL: parse_coerce.c). An untyped literal goes
    /// anywhere; the polymorphic types that take no array or range take any type held here. That polymorphic
    /// arguments must agree with each other is for the caller to check.
    pub fn accepts(&self, from: PgType) -> bool {
        let is_array = matches!(from, PgType::Array(_));
        from == PgType::Unknown
            || matches!(self.name, "any" | "anyelement" | "anycompatible")
            || (self.name == "anynonarray" && !is_array)
            || (self.name == "anyenum" && matches!(from, PgType::Enum(_)))
            || (matches!(self.name, "anyarray" | "anycompatiblearray") && is_array)
            || self.implicit_from.contains(&from)
    }
}

impl ArgumentType {
    /// `pg_type.typcategory`.
    pub fn category(self) -> char {
        match self {
            Self::Known(known) => match known {
                PgType::Bool => 'B',
                PgType::Int2 | PgType::Int4 | PgType::Int8 | PgType::Float4 | PgType::Float8 | PgType::Numeric => 'N',
                PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name => 'S',
                PgType::Date | PgType::Time | PgType::Timestamp | PgType::Timestamptz => 'D',
                PgType::Interval => 'T',
                PgType::Bit | PgType::Varbit => 'V',
                PgType::Uuid | PgType::Bytea | PgType::Json | PgType::Jsonb => 'U',
                PgType::Inet | PgType::Cidr => 'I',
                PgType::Array(_) => 'A',
                PgType::Enum(_) => 'E',
                PgType::Unknown => 'X',
            },
            Self::Other(other) => other.category,
        }
    }

    /// `pg_type.typispreferred`.
    pub fn is_preferred(self) -> bool {
        match self {
            Self::Known(known) => known.is_preferred(),
            Self::Other(other) => other.is_preferred,
        }
    }
}

/// One overload in pg_catalog. The winner of the resolution may have no `function`: not computed here.
#[derive(Debug)]
pub struct Candidate {
    pub arguments: Vec<ArgumentType>,
    /// The last argument repeats, one or more times (`VARIADIC "any"`: each of any type).
    pub is_variadic: bool,
    /// How many of the last arguments may be left out.
    pub defaults: usize,
    /// For `concat` and `concat_ws` the entry takes text: wrap each other argument into its [`output_function`].
    pub function: Option<&'static Function>,
}

/// `pg_cast.castcontext`; the order is that of what a context allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    Implicit,
    Assignment,
    Explicit,
}

/// How a cast is computed.
#[derive(Clone, Copy, Debug)]
pub enum CastMethod {
    Function(&'static Function),
    /// The value stands as it is.
    BinaryCompatible,
    /// Output function of the one type, input function of the other (PostgreSQL: CoerceViaIO), as one entry.
    ViaText(&'static Function),
}

#[derive(Clone, Copy, Debug)]
pub struct Cast {
    pub method: CastMethod,
    /// The weakest context in which it applies: a stronger one may use it too.
    pub context: CastContext,
}

/// Every implemented operator and function, for reports.
pub fn all_functions() -> impl Iterator<Item = &'static Function> {
    ENTRIES.iter().flat_map(|entries| entries.iter())
}

/// Names by which something is called with one argument. A type of such a name outside pg_catalog makes a cast of a call that no
/// function takes exactly (parse_func.c, func_get_detail).
pub fn called_with_one_argument() -> BTreeSet<&'static str> {
    const BY_THE_BINDER: [&str; 16] = [
        "array_ndims",
        "array_to_json",
        "cardinality",
        "first_value",
        "json_agg",
        "json_build_array",
        "jsonb_agg",
        "jsonb_build_array",
        "lag",
        "last_value",
        "lead",
        "ntile",
        "row_to_json",
        "to_json",
        "to_jsonb",
        "unnest",
    ];
    let takes_one = |candidate: &Candidate| {
        let given = candidate.arguments.len();
        candidate.function.is_some() && given > 0 && given - candidate.defaults <= 1
    };
    let named = REGISTRY.functions.iter().filter(|(_, named)| named.candidates.iter().any(takes_one));
    let aggregates = all_aggregates().filter(|aggregate| aggregate.extra.is_empty());
    let of_rows = ROWS_FUNCTIONS.iter().filter(|function| function.arguments.len() - function.optional <= 1);
    let others = aggregates.map(|aggregate| aggregate.name).chain(of_rows.map(|function| function.name));
    named.map(|(name, _)| *name).chain(others).chain(BY_THE_BINDER).collect()
}

/// The implemented operators with that symbol, unary ones with one argument.
pub fn operators(symbol: &str) -> &'static [&'static Function] {
    REGISTRY.operators.get(symbol).map_or(&[], |named| &named.implemented)
}

/// The implemented functions of that name, aggregates excluded.
pub fn functions(name: &str) -> &'static [&'static Function] {
    REGISTRY.functions.get(name).map_or(&[], |named| &named.implemented)
}

/// All of pg_catalog's operators with that symbol, for overload resolution. Empty: none of them is of use here.
pub fn operator_candidates(symbol: &str) -> &'static [Candidate] {
    REGISTRY.operators.get(symbol).map_or(&[], |named| &named.candidates)
}

/// All of pg_catalog's functions of that name, for overload resolution; aggregates and set-returning ones excluded.
/// Empty: the name is not known here, it may well exist.
pub fn function_candidates(name: &str) -> &'static [Candidate] {
    REGISTRY.functions.get(name).map_or(&[], |named| &named.candidates)
}

/// The cast between two types (PostgreSQL: parse_coerce.c, find_coercion_pathway), length coercions aside.
/// None: there is none, or none that is computed here. Between equal types it is `BinaryCompatible`.
pub fn cast(from: PgType, to: PgType) -> Option<Cast> {
    if from == to {
        return Some(Cast { method: CastMethod::BinaryCompatible, context: CastContext::Implicit });
    }
    if let Some(listed) = REGISTRY.casts.get(&(from, to)) {
        return *listed;
    }
    // Any type converts to a text type by assignment, from one explicitly.
    let is_text = |pg_type: PgType| ArgumentType::Known(pg_type).category() == 'S';
    let context = match (is_text(from), is_text(to)) {
        (_, true) => CastContext::Assignment,
        (true, false) => CastContext::Explicit,
        (false, false) => return None,
    };
    Some(Cast { method: CastMethod::ViaText(cast_text::via_text(from, to)?), context })
}

/// The function that applies a type modifier: arguments (value, int4 modifier) or (value, int4 modifier, bool explicit).
pub fn length_coercion(pg_type: PgType) -> Option<&'static Function> {
    let functions = functions(pg_type.typname());
    functions.iter().copied().find(|function| {
        function.arguments.starts_with(&[pg_type, PgType::Int4])
            && (function.arguments.len() == 2 || function.arguments[2..] == [PgType::Bool])
    })
}

/// What the type prints as, as text: `pg_type.typoutput`. Differs from the cast to text for bool and bpchar.
pub fn output_function(from: PgType) -> Option<&'static Function> {
    cast_text::via_text(from, PgType::Text)
}

struct Named {
    implemented: Vec<&'static Function>,
    candidates: Vec<Candidate>,
}

struct Registry {
    operators: HashMap<&'static str, Named>,
    functions: HashMap<&'static str, Named>,
    /// As in pg_cast; None: not computed here.
    casts: HashMap<(PgType, PgType), Option<Cast>>,
}

/// Every implemented operator and function.
static ENTRIES: &[&[Function]] = &[
    datetime::arithmetic::ENTRIES,
    datetime::comparison::ENTRIES,
    datetime::conversion::ENTRIES,
    datetime::parts::ENTRIES,
    arithmetic::MIXED,
    arithmetic::ENTRIES,
    arithmetic::DIVISORS,
    float::OPERATORS,
    float::ENTRIES,
    numeric_arithmetic::ENTRIES,
    numeric_powers::ENTRIES,
    comparison::ENTRIES,
    text_comparison::ENTRIES,
    text::ENTRIES,
    setting::ENTRIES,
    format::ENTRIES,
    pattern::ENTRIES,
    cast_number::ENTRIES,
    cast_text::ENTRIES,
    datetime::pattern::ENTRIES,
    number_pattern::ENTRIES,
    bits::ENTRIES,
    bucket::ENTRIES,
    json::ENTRIES,
    plain_json::ENTRIES,
    network::ENTRIES,
    regular::ENTRIES,
    overlap::ENTRIES,
];

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let other_types = other_types();
    let entries: HashMap<(&str, &[PgType]), &'static Function> = ENTRIES
        .iter()
        .flat_map(|entries| entries.iter())
        .map(|function| ((function.name, function.arguments), function))
        .collect();
    let operators = named(include_str!("pg_operator.txt"), &entries, other_types);
    let functions = named(include_str!("pg_proc.txt"), &entries, other_types);
    let casts = casts(include_str!("pg_cast.txt"), &entries);
    Registry { operators, functions, casts }
});

/// The held type of that `typname`.
fn known_type(typname: &str) -> Option<PgType> {
    PgType::ALL.into_iter().find(|known| known.typname() == typname)
}

static OTHER_TYPES: LazyLock<Vec<OtherType>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        Some(OtherType {
            name: words.next()?,
            oid: words.next()?.parse().ok()?,
            category: words.next()?.chars().next()?,
            is_preferred: words.next()? == "preferred",
            implicit_from: words.next().map_or(Vec::new(), |list| list.split(',').filter_map(known_type).collect()),
        })
    };
    include_str!("pg_type.txt").lines().filter_map(line).collect()
});

fn other_types() -> &'static [OtherType] {
    &OTHER_TYPES
}

fn argument_type(typname: &str, other_types: &'static [OtherType]) -> Option<ArgumentType> {
    known_type(typname)
        .map(ArgumentType::Known)
        .or_else(|| other_types.iter().find(|other| other.name == typname).map(ArgumentType::Other))
}

/// One line of `pg_operator.txt` or `pg_proc.txt`.
struct Signature {
    name: &'static str,
    arguments: Vec<ArgumentType>,
    is_variadic: bool,
    defaults: usize,
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the entries by a test"))]
    properties: &'static str,
}

fn signature(line: &'static str, other_types: &'static [OtherType]) -> Option<Signature> {
    let (name, rest) = line.split_once('(')?;
    let (list, properties) = rest.split_once(')')?;
    let is_variadic = list.contains('*');
    let arguments = list
        .split(',')
        .filter(|argument| !argument.is_empty())
        .map(|argument| argument_type(argument.trim_start_matches('*'), other_types))
        .collect::<Option<Vec<_>>>()?;
    let defaults = properties.split_once("default=").map_or(0, |(_, count)| count.parse().unwrap_or(0));
    Some(Signature { name, arguments, is_variadic, defaults, properties })
}

fn named(
    lines: &'static str,
    entries: &HashMap<(&str, &[PgType]), &'static Function>,
    other_types: &'static [OtherType],
) -> HashMap<&'static str, Named> {
    let mut all: HashMap<&'static str, Named> = HashMap::new();
    for signature in lines.lines().filter_map(|line| signature(line, other_types)) {
        let function = entry_of(&signature, entries);
        let named =
            all.entry(signature.name).or_insert_with(|| Named { implemented: Vec::new(), candidates: Vec::new() });
        named.implemented.extend(function);
        named.candidates.push(Candidate {
            arguments: signature.arguments,
            is_variadic: signature.is_variadic,
            defaults: signature.defaults,
            function,
        });
    }
    all
}

/// The entry that implements the signature. `VARIADIC "any"` is implemented over text.
fn entry_of(
    signature: &Signature,
    entries: &HashMap<(&str, &[PgType]), &'static Function>,
) -> Option<&'static Function> {
    let arguments = signature
        .arguments
        .iter()
        .map(|argument| match argument {
            ArgumentType::Known(known) => Some(*known),
            ArgumentType::Other(other) => (signature.is_variadic && other.name == "any").then_some(PgType::Text),
        })
        .collect::<Option<Vec<_>>>()?;
    entries
        .get(&(signature.name, arguments.as_slice()))
        .copied()
        .filter(|function| function.is_variadic == signature.is_variadic)
}

fn casts(
    lines: &'static str,
    entries: &HashMap<(&str, &[PgType]), &'static Function>,
) -> HashMap<(PgType, PgType), Option<Cast>> {
    lines.lines().filter_map(|line| listed_cast(line, entries)).collect()
}

/// One line of `pg_cast.txt`: source, target, context, method, function. Casts of a type to itself apply a length.
fn listed_cast(
    line: &'static str,
    entries: &HashMap<(&str, &[PgType]), &'static Function>,
) -> Option<((PgType, PgType), Option<Cast>)> {
    let mut words = line.split(' ');
    let (from, to) = (known_type(words.next()?)?, known_type(words.next()?)?);
    let context = match words.next()? {
        "i" => CastContext::Implicit,
        "a" => CastContext::Assignment,
        _ => CastContext::Explicit,
    };
    let method = match words.next()? {
        "b" => Some(CastMethod::BinaryCompatible),
        "f" => entry_of(&signature(words.next()?, &[])?, entries).map(CastMethod::Function),
        // By output and input function of json and jsonb: jsonb prints as valid json.
        _ if from == PgType::Jsonb => Some(CastMethod::BinaryCompatible),
        _ => (from == PgType::Json).then_some(CastMethod::ViaText(&json_output::JSONB_OF)),
    };
    Some(((from, to), method.map(|method| Cast { method, context })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::functions::Volatility;

    /// Every entry must be a line of the data files, with the same result, volatility and strictness.
    #[test]
    fn entries_agree_with_the_catalogs_of_postgresql() {
        let lines = || include_str!("pg_operator.txt").lines().chain(include_str!("pg_proc.txt").lines());
        let listed: Vec<Signature> = lines().filter_map(|line| signature(line, other_types())).collect();
        assert_eq!(listed.len(), lines().count(), "a line could not be read");
        for function in ENTRIES.iter().flat_map(|entries| entries.iter()) {
            let properties = expected_properties(function);
            let found = listed.iter().any(|signature| {
                let one = HashMap::from([((function.name, function.arguments), function)]);
                entry_of(signature, &one).is_some()
                    && signature.properties.split(" default=").next() == Some(properties.as_str())
            });
            assert!(found, "{}({:?}) {properties} is not in pg_catalog", function.name, function.arguments);
        }
    }

    fn expected_properties(function: &Function) -> String {
        let volatility = match function.volatility {
            Volatility::Immutable => "",
            Volatility::Stable | Volatility::Time => " s",
        };
        let strictness = if function.is_strict { "" } else { " null" };
        format!("{}{volatility}{strictness}", function.result.typname())
    }

    #[test]
    fn candidates_include_types_not_held() {
        let concatenations = operator_candidates("||");
        assert!(concatenations.iter().any(|c| c.arguments == [ArgumentType::Known(PgType::Text); 2]));
        let accepts_number =
            |argument: &ArgumentType| matches!(argument, ArgumentType::Other(o) if o.accepts(PgType::Int4));
        assert!(concatenations.iter().any(|c| accepts_number(&c.arguments[0])));
        let oid = OTHER_TYPES.iter().find(|other| other.name == "oid").unwrap();
        assert!(oid.accepts(PgType::Int8) && !oid.accepts(PgType::Numeric) && oid.is_preferred);
    }

    #[test]
    fn operators_resolve_to_entries() {
        assert_eq!(operators("+").iter().filter(|f| f.arguments == [PgType::Int4, PgType::Int8]).count(), 1);
        assert!(operators("@@@").is_empty());
    }
}
