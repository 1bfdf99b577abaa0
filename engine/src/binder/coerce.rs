//! Types made to agree: literals, parameters, casts, common types (parse_coerce.c) and collations (parse_collate.c).

use crate::binder::array::are_texts;
use crate::binder::expression::Level;
use crate::binder::resolve::is_implicitly_coercible;
use crate::binder::typed::Origin;
use crate::binder::typed::{CollationStrength, Typed};
use crate::binder::{Binder, Bound, BoundExpr, ExprType, unsupported};
use crate::catalog::functions::{self, CastContext, CastMethod, Function, Volatility};
use crate::catalog::order::Order;
use crate::catalog::{Collation, ColumnSchema};
use crate::reason::UpstreamReason;
use crate::statement::ast::{Expr, TypeName};
use crate::types::text::{self, ParseError};
use crate::types::{Element, PgType, Value};

impl Binder<'_> {
    /// coerce_to_target_type without a modifier.
    pub(super) fn coerce(&mut self, typed: Typed, to: PgType, context: CastContext) -> Bound<Typed> {
        if typed.pg_type() == to {
            return Ok(typed);
        }
        if typed.is_unknown() {
            return self.coerce_unknown(typed, to);
        }
        if matches!(typed.pg_type(), PgType::Enum(_)) {
            return self.label_as_text(typed, to, context);
        }
        if let PgType::Enum(labels) = to {
            return self.text_as_label(typed, labels, context);
        }
        if matches!(typed.pg_type(), PgType::Array(_))
            && matches!(to, PgType::Text | PgType::Varchar)
            && CastContext::Assignment <= context
        {
            return self.array_as_text(typed, to);
        }
        let from = typed.pg_type();
        if context == CastContext::Explicit && are_texts(from, to) {
            return self.retyped(typed, to);
        }
        let no_cast = || UpstreamReason::UnknownFunction(format!("cast from {} to {}", from.name(), to.name()).into());
        let cast = functions::cast(from, to).filter(|cast| cast.context <= context).ok_or_else(no_cast)?;
        match cast.method {
            CastMethod::BinaryCompatible => {
                let collation =
                    if is_collatable(to) { self.input_collation(&[&typed], to)?.0 } else { Collation::None };
                Ok(typed.relabelled(ExprType { pg_type: to, typmod: -1, collation }))
            }
            CastMethod::Function(function) | CastMethod::ViaText(function) => {
                if function.arguments.len() != 1 {
                    return Err(no_cast());
                }
                let result = self.call(function, vec![typed], -1)?;
                // A cast function may be shared by several string types.
                let collation = if is_collatable(to) { result.expr_type.collation } else { Collation::None };
                Ok(result.relabelled(ExprType { pg_type: to, typmod: -1, collation }))
            }
        }
    }

    /// An explicit cast, with its modifier (coerce_type_typmod).
    pub(super) fn cast(&mut self, mut typed: Typed, to: PgType, typmod: i32) -> Bound<Typed> {
        if typed.origin.is_some_and(|origin| self.is_of_domain(origin)) {
            // Whatever it is cast to, it is not the column any more.
            typed.origin = None;
            self.casts_domain = true;
        }
        let typed = self.coerce(typed, to, CastContext::Explicit)?;
        if typed.expr_type.typmod == typmod {
            return Ok(typed);
        }
        // A whole number of the one field that an interval's modifier names has nothing to lose.
        let is_whole = to == PgType::Interval && matches!(typed.expr, BoundExpr::Literal { .. });
        if typmod < 0 || is_whole {
            let expr_type = ExprType { typmod, ..typed.expr_type };
            return Ok(typed.relabelled(expr_type));
        }
        let no_function = || UpstreamReason::UnknownFunction(format!("length coercion of {}", to.name()).into());
        let function = functions::length_coercion(to).ok_or_else(no_function)?;
        let mut arguments = vec![typed, int4(typmod)];
        if function.arguments.len() == 3 {
            let is_explicit = ExprType { pg_type: PgType::Bool, typmod: -1, collation: Collation::None };
            arguments.push(Typed::literal(Value::Bool(true), is_explicit, CollationStrength::None));
        }
        self.call(function, arguments, typmod)
    }

    fn is_of_domain(&self, origin: Origin) -> bool {
        let schema = self.catalog.described(origin.table);
        let column = schema.and_then(|schema| schema.columns.iter().find(|column| column.attnum == origin.attnum));
        column.is_some_and(ColumnSchema::is_of_domain)
    }

    /// An untyped literal is read by the type's input function; an untyped parameter takes the type
    /// (variable_coerce_param_hook: the first context decides, another one is an error).
    fn coerce_unknown(&mut self, typed: Typed, to: PgType) -> Bound<Typed> {
        if typed.strength != CollationStrength::Explicit {
            return self.coerce_untyped(typed, to);
        }
        // coerce_type pushes the conversion below COLLATE, and drops that where the type has no collation.
        let collation = typed.expr_type.collation;
        let coerced = self.coerce_untyped(typed, to)?;
        match to {
            PgType::Array(element) if is_collatable(element.pg_type()) => {
                Err(UpstreamReason::Collation("of an array".into()))
            }
            _ if is_collatable(to) => Ok(coerced.under(collation)),
            _ => Ok(coerced),
        }
    }

    fn coerce_untyped(&mut self, typed: Typed, to: PgType) -> Bound<Typed> {
        let (expr_type, strength) = self.plain_type(to)?;
        match typed.expr {
            BoundExpr::Literal { value: Value::Null, .. } => Ok(Typed::literal(Value::Null, expr_type, strength)),
            BoundExpr::Literal { value: Value::Text(text), .. } => {
                let value = self.read(to, &text)?;
                Ok(Typed::literal(value, expr_type, strength))
            }
            BoundExpr::Parameter { index, .. } => {
                let known = *self.parameters[index].get_or_insert(to);
                if known != to {
                    return Err(UpstreamReason::UnsupportedType("inconsistent types of a parameter".into()));
                }
                Ok(Typed { expr: BoundExpr::Parameter { index, expr_type }, expr_type, strength, origin: None })
            }
            _ => Err(unsupported("untyped expression")),
        }
    }

    /// What the input function of `pg_type` makes of a literal.
    fn read(&mut self, pg_type: PgType, literal: &str) -> Bound<Value> {
        self.folds_settings |= depends_on_settings(pg_type, literal);
        text::parse(pg_type, -1, literal, self.context.settings).map_err(|error| match error {
            ParseError::Raises(message) => UpstreamReason::LocalError(message.into()),
            ParseError::DependsOnTime => UpstreamReason::Volatile("literal that depends on the time".into()),
            ParseError::Beyond(message) => UpstreamReason::Unsupported(message.into()),
        })
    }

    /// make_const.
    pub(super) fn number(&mut self, digits: &str) -> Bound<Typed> {
        let is_integer = digits.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        let (value, pg_type) = match digits.parse::<i64>() {
            Ok(number) if is_integer => match i32::try_from(number) {
                Ok(number) => (Value::Int4(number), PgType::Int4),
                Err(_) => (Value::Int8(number), PgType::Int8),
            },
            _ => (self.read(PgType::Numeric, digits)?, PgType::Numeric),
        };
        let expr_type = ExprType { pg_type, typmod: -1, collation: Collation::None };
        Ok(Typed::literal(value, expr_type, CollationStrength::None))
    }

    /// The common type of CASE, COALESCE, GREATEST and the like, with all coerced to it (select_common_type,
    /// coerce_to_common_type).
    pub(super) fn unify(&mut self, items: Vec<Typed>) -> Bound<(Vec<Typed>, ExprType, CollationStrength)> {
        let types: Vec<PgType> = items.iter().map(Typed::pg_type).collect();
        let common = common_type(&types).ok_or_else(|| UpstreamReason::UnknownFunction("no common type".into()))?;
        let items: Vec<Typed> =
            items.into_iter().map(|item| self.coerce(item, common, CastContext::Implicit)).collect::<Bound<_>>()?;
        let (collation, strength) = self.input_collation(&items.iter().collect::<Vec<_>>(), common)?;
        let typmod = common_typmod(&items);
        self.note_modifier(ExprType { pg_type: common, typmod, collation });
        if matches!(common, PgType::Array(_)) {
            for item in &items {
                self.check_element_collation(item.expr_type.collation)?;
            }
        }
        Ok((items, ExprType { pg_type: common, typmod, collation }, strength))
    }

    /// As [`Self::unify`], of the arms of CASE or COALESCE. The planner puts the only arm that is left in the place of the whole
    /// (clauses.c, eval_const_expressions), and what is sorted by it has that arm's collation then, not the one that was derived:
    /// where an arm has another, whatever compares is upstream's. A constant is the same for all rows.
    pub(super) fn unify_arms(&mut self, arms: Vec<Typed>) -> Bound<(Vec<Typed>, ExprType, CollationStrength)> {
        let (arms, mut expr_type, strength) = self.unify(arms)?;
        let is_other = |arm: &Typed| {
            arm.expr_type.collation != expr_type.collation && !matches!(arm.expr, BoundExpr::Literal { .. })
        };
        if is_collatable(expr_type.pg_type) && arms.iter().any(is_other) {
            expr_type.collation = Collation::NonDeterministic(0);
        }
        Ok((arms, expr_type, strength))
    }

    /// A call with arguments of (or binary-compatible with) the declared types; `typmod` is not -1 for length coercions.
    pub(super) fn call(&mut self, function: &'static Function, arguments: Vec<Typed>, typmod: i32) -> Bound<Typed> {
        let (collation, strength) = self.input_collation(&arguments.iter().collect::<Vec<_>>(), PgType::Text)?;
        let has_text = arguments.iter().any(|argument| is_collatable(argument.pg_type()));
        if has_text {
            let needs = match function.name {
                "<" | "<=" | ">" | ">=" => Needs::Order,
                "lower" | "upper" | "~~*" | "!~~*" | "~*" | "!~*" => Needs::Case,
                "initcap" => Needs::Titles,
                _ => Needs::Equality,
            };
            check_collation(collation, needs, function.name)?;
            if let (Needs::Order, Some(collation)) = (needs, collation.learnt_order()) {
                return ranked_comparison(function.name, arguments, Order::Collation(collation));
            }
            if needs == Needs::Case && !matches!(function.name, "~*" | "!~*") {
                return folded_call(function, arguments, (collation, strength));
            }
        }
        if function.volatility == Volatility::Time {
            // With the extended protocol the transaction starts at Parse or Bind, the statement at Execute.
            let of_statement = function.name == "statement_timestamp";
            if *self.uses_statement_time.get_or_insert(of_statement) != of_statement {
                return Err(UpstreamReason::Volatile("statement_timestamp() beside now()".into()));
            }
        }
        if function.name == "current_setting" {
            self.note_setting(&arguments)?;
        }
        let (collation, strength) = match function.result {
            // A name made of text has the text's, one made of nothing its type's (parse_collate.c).
            PgType::Name if !has_text => (Collation::C, CollationStrength::Implicit),
            result if is_collatable(result) => (collation, strength.max(CollationStrength::Implicit)),
            _ => (Collation::None, CollationStrength::None),
        };
        let expr_type = ExprType { pg_type: function.result, typmod, collation };
        let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
        Ok(Typed { expr: BoundExpr::Call { function, arguments, expr_type }, expr_type, strength, origin: None })
    }

    /// The collation that several inputs agree on. Explicit beats implicit, a column's beats the default; what
    /// PostgreSQL calls indeterminate goes upstream at once. Without a collatable input it is the default.
    pub(super) fn input_collation(&self, inputs: &[&Typed], result: PgType) -> Bound<(Collation, CollationStrength)> {
        if !is_collatable(result) {
            return Ok((Collation::None, CollationStrength::None));
        }
        let mut found: Option<(Collation, CollationStrength)> = None;
        for input in inputs.iter().filter(|input| is_collatable(input.pg_type())) {
            let next = (input.expr_type.collation, input.strength);
            found = Some(match found {
                None => next,
                Some(earlier) if earlier.1 != next.1 => {
                    if earlier.1 > next.1 {
                        earlier
                    } else {
                        next
                    }
                }
                Some(earlier) if earlier.0 == next.0 => earlier,
                Some(earlier) if earlier.1 == CollationStrength::Implicit => {
                    let default = self.default_collation()?;
                    if earlier.0 == default {
                        next
                    } else if next.0 == default {
                        earlier
                    } else {
                        return Err(UpstreamReason::Collation("conflicting collations".into()));
                    }
                }
                Some(_) => return Err(UpstreamReason::Collation("conflicting collations".into())),
            });
        }
        match found {
            Some(found) => Ok(found),
            // Only a text result needs the default, but then it must be known.
            None => Ok((self.catalog.default_collation.unwrap_or(Collation::None), CollationStrength::None)),
        }
    }

    /// An explicit collation, by get_collation_oid: along the search path, or in pg_catalog. "POSIX" is another one than "C",
    /// though it compares alike: the two conflict.
    pub(super) fn collate(&mut self, level: &mut Level, operand: &Expr, collation: &[String]) -> Bound<Typed> {
        let within = |schema: &str, name: &str| self.catalog.collations.get(schema)?.get(name).copied();
        let found = match collation {
            [name] => self.context.search_path.iter().find_map(|schema| within(schema, name)),
            // Whoever names another schema must be able to look into it.
            [schema, name] if schema == "pg_catalog" => within(schema, name),
            _ => None,
        };
        let found = found.ok_or_else(|| UpstreamReason::Collation(collation.join(".").into()))?;
        let operand = self.expression(level, operand)?;
        // A literal or parameter may yet become a text of any type.
        if !(is_collatable(operand.pg_type()) || operand.is_unknown()) || operand.is_null_literal() {
            return Err(UpstreamReason::Collation("collation of a type that has none".into()));
        }
        Ok(operand.under(found))
    }

    pub(super) fn default_collation(&self) -> Bound<Collation> {
        let unknown = || UpstreamReason::Collation("the database's default collation is not known".into());
        self.catalog.default_collation.ok_or_else(unknown)
    }

    /// The type of a literal or parameter.
    pub(super) fn plain_type(&self, pg_type: PgType) -> Bound<(ExprType, CollationStrength)> {
        let (collation, strength) = match pg_type {
            PgType::Name => (Collation::C, CollationStrength::Implicit),
            // As ARRAY[...] of such elements has it.
            PgType::Array(element) if is_collatable(element.pg_type()) => {
                (self.default_collation()?, CollationStrength::Implicit)
            }
            _ if is_collatable(pg_type) => (self.default_collation()?, CollationStrength::Implicit),
            _ => (Collation::None, CollationStrength::None),
        };
        Ok((ExprType { pg_type, typmod: -1, collation }, strength))
    }

    /// typenameTypeIdAndMod, for the types held here.
    pub(super) fn type_named(&self, written: &TypeName) -> Bound<(PgType, i32)> {
        let unknown = || UpstreamReason::UnsupportedType(written.name.clone().into());
        if let Some(labels) = self.enum_named(written) {
            return if written.is_array || !written.modifiers.is_empty() { Err(unknown()) } else { Ok((labels, -1)) };
        }
        if written.schema.is_some() {
            return Err(unknown());
        }
        if !written.is_system && self.catalog.user_types.contains(written.name.as_str()) {
            return Err(unknown());
        }
        let is_named = |pg_type: &PgType| {
            pg_type.typname() == written.name && !matches!(pg_type, PgType::Unknown | PgType::Array(_))
        };
        let pg_type = PgType::ALL.into_iter().find(is_named).ok_or_else(unknown)?;
        let typmod = modifier(pg_type, &written.modifiers)
            .ok_or_else(|| unsupported(format!("modifier of type {}", pg_type.name())))?;
        if written.is_array {
            let element = Element::of(pg_type).ok_or_else(unknown)?;
            return Ok((PgType::Array(element), typmod));
        }
        Ok((pg_type, typmod))
    }
}

/// What an operation needs of a collation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Equality,
    /// Upper and lower case of ASCII letters.
    Case,
    /// Where words begin.
    Titles,
    Order,
}

/// One of < <= > >= between the operands' places in the order.
pub(super) fn ranked_comparison(symbol: &str, arguments: Vec<Typed>, order: Order) -> Bound<Typed> {
    let of_ranks = [PgType::Int8, PgType::Int8];
    let comparison = functions::operators(symbol).iter().find(|known| known.arguments == of_ranks);
    let comparison = *comparison.ok_or_else(|| UpstreamReason::Collation(symbol.to_owned().into()))?;
    let arguments = arguments.into_iter().map(|argument| argument.expr.ranked(order)).collect();
    Ok(Typed::bool(BoundExpr::Call { function: comparison, arguments, expr_type: ExprType::BOOL }))
}

/// lower, upper, or ILIKE, which is LIKE of both sides in lower case (like.c, Generic_Text_IC_like).
fn folded_call(
    function: &'static Function,
    arguments: Vec<Typed>,
    (collation, strength): (Collation, CollationStrength),
) -> Bound<Typed> {
    let expr_type = ExprType { pg_type: PgType::Text, typmod: -1, collation };
    let is_upper = function.name == "upper";
    let fold = |text: BoundExpr| {
        let (function, arguments) = match (collation.letters(), is_upper) {
            (Some(collation), _) => {
                let function = if is_upper { &functions::UPPER } else { &functions::LOWER };
                (function, vec![text, BoundExpr::collation(collation)])
            }
            (None, true) => (&functions::UPPER_ASCII, vec![text]),
            (None, false) => (&functions::LOWER_ASCII, vec![text]),
        };
        BoundExpr::Call { function, arguments, expr_type }
    };
    let mut folded = arguments.into_iter().map(|argument| fold(argument.expr));
    let symbol = match function.name {
        "~~*" => "~~",
        "!~~*" => "!~~",
        _ => {
            let expr = folded.next().ok_or_else(|| unsupported("case of nothing"))?;
            return Ok(Typed { expr, expr_type, strength: strength.max(CollationStrength::Implicit), origin: None });
        }
    };
    let of_text = [PgType::Text, PgType::Text];
    let like = functions::operators(symbol).iter().find(|known| known.arguments == of_text);
    let function = *like.ok_or_else(|| unsupported("LIKE"))?;
    Ok(Typed::bool(BoundExpr::Call { function, arguments: folded.collect(), expr_type: ExprType::BOOL }))
}

pub(super) fn check_collation(collation: Collation, needs: Needs, what: &str) -> Bound<()> {
    match (collation, needs) {
        (Collation::C | Collation::Bytewise(_) | Collation::Deterministic(_), _)
        | (Collation::OwnTitles(_), Needs::Equality | Needs::Order | Needs::Case)
        | (Collation::OwnCase(_), Needs::Equality | Needs::Order) => Ok(()),
        (Collation::None | Collation::OwnTitles(_) | Collation::OwnCase(_) | Collation::NonDeterministic(_), _) => {
            Err(UpstreamReason::Collation(what.to_owned().into()))
        }
    }
}

/// Whether values can be grouped or sorted here: the type has an order or equality, and the collation allows it.
pub(super) fn check_comparable(expr_type: ExprType, needs: Needs, what: &'static str) -> Bound<()> {
    match expr_type.pg_type {
        // Its order is one of its own.
        PgType::Jsonb if matches!(needs, Needs::Equality) => Ok(()),
        // json has no equality.
        PgType::Json | PgType::Jsonb | PgType::Unknown => {
            Err(unsupported(format!("{what} of type {}", expr_type.pg_type.name())))
        }
        PgType::Array(element) => check_array_comparable(element, expr_type, needs, what),
        pg_type if is_collatable(pg_type) => check_collation(expr_type.collation, needs, what),
        _ => Ok(()),
    }
}

/// Arrays order as their elements do, strings among them only by bytes; they are grouped by their own bytes.
fn check_array_comparable(element: Element, expr_type: ExprType, needs: Needs, what: &'static str) -> Bound<()> {
    if !element.is_compared() || matches!(needs, Needs::Equality) && !element.is_bytewise() {
        return Err(unsupported(format!("{what} of type {}", expr_type.pg_type.name())));
    }
    if !is_collatable(element.pg_type()) {
        return Ok(());
    }
    if matches!(needs, Needs::Order) && expr_type.collation.learnt_order().is_some() {
        return Err(UpstreamReason::Collation(format!("{what} of arrays of text").into()));
    }
    check_collation(expr_type.collation, needs, what)
}

/// Whether values can be grouped here (GROUP BY, DISTINCT).
pub(super) fn check_groupable(expr_type: ExprType, what: &'static str) -> Bound<()> {
    check_comparable(expr_type, Needs::Equality, what)?;
    check_blanks(expr_type, what)
}

/// Equal values of unlimited char(n) may differ in trailing blanks; which of them is shown is not decided here.
pub(super) fn check_blanks(expr_type: ExprType, what: &'static str) -> Bound<()> {
    if expr_type.pg_type == PgType::Bpchar && expr_type.typmod < 0 {
        return Err(unsupported(format!("{what} of character without length")));
    }
    Ok(())
}

/// Whether `pg_type.typcollation` is set.
pub(super) fn is_collatable(pg_type: PgType) -> bool {
    matches!(pg_type, PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name)
}

pub(super) fn int4(value: i32) -> Typed {
    let expr_type = ExprType { pg_type: PgType::Int4, typmod: -1, collation: Collation::None };
    Typed::literal(Value::Int4(value), expr_type, CollationStrength::None)
}

/// select_common_type. None: the categories differ.
pub(super) fn common_type(types: &[PgType]) -> Option<PgType> {
    let (first, rest) = types.split_first()?;
    let mut chosen = *first;
    for next in rest.iter().copied().filter(|next| *next != PgType::Unknown) {
        if next == chosen {
            continue;
        }
        if chosen == PgType::Unknown {
            chosen = next;
        } else if next.category() != chosen.category() || next.category() == crate::types::TypeCategory::UserDefined {
            // Types of the user-defined category have no casts to each other.
            return None;
        } else if !chosen.is_preferred()
            && is_implicitly_coercible(chosen, next)
            && !is_implicitly_coercible(next, chosen)
        {
            chosen = next;
        }
    }
    Some(if chosen == PgType::Unknown { PgType::Text } else { chosen })
}

/// exprTypmod of CASE and its kin: the inputs', if all have the same.
fn common_typmod(items: &[Typed]) -> i32 {
    let mut typmods = items.iter().map(|item| item.expr_type.typmod);
    match typmods.next() {
        Some(first) if typmods.all(|typmod| typmod == first) => first,
        _ => -1,
    }
}

/// typmodin of the types held here; None: out of range, or one that is not applied here.
fn modifier(pg_type: PgType, written: &[i32]) -> Option<i32> {
    Some(match (pg_type, written) {
        (_, []) => -1,
        // numerictypmodin.
        (PgType::Numeric, [precision @ 1..=1000]) => (precision << 16) + 4,
        (PgType::Numeric, [precision @ 1..=1000, scale @ -1000..=1000]) => ((precision << 16) | (scale & 0x7ff)) + 4,
        // anychar_typmodin.
        (PgType::Varchar | PgType::Bpchar, [length @ 1..=10_485_760]) => length + 4,
        // anytimestamp_typmodin, anytime_typmodin; a larger one is cut with a warning.
        (PgType::Timestamp | PgType::Timestamptz | PgType::Time, [precision @ 0..=6]) => *precision,
        // anybit_typmodin.
        (PgType::Bit | PgType::Varbit, [length @ 1..=83_886_080]) => *length,
        // A field's, as the parser has it.
        (PgType::Interval, [fields]) if *fields >= 0x1_0000 => *fields,
        _ => return None,
    })
}

/// Whether the value of a literal may change with TimeZone, DateStyle or IntervalStyle. ISO dates do not.
fn depends_on_settings(pg_type: PgType, literal: &str) -> bool {
    let is_iso_date = || {
        let bytes = literal.as_bytes();
        bytes.len() >= 10
            && bytes[..10].iter().enumerate().all(|(index, byte)| match index {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            })
            && bytes[10..].iter().all(|byte| byte.is_ascii_digit() || b" T:.".contains(byte))
    };
    match pg_type {
        PgType::Timestamptz => true,
        PgType::Date | PgType::Timestamp => !is_iso_date(),
        PgType::Time => !literal.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte)),
        // IntervalStyle sql_standard spreads a leading minus over all fields.
        PgType::Interval => literal.contains('-'),
        PgType::Array(element) => depends_on_settings(element.pg_type(), literal),
        PgType::Bool
        | PgType::Int2
        | PgType::Int4
        | PgType::Int8
        | PgType::Float4
        | PgType::Float8
        | PgType::Numeric
        | PgType::Text
        | PgType::Varchar
        | PgType::Bpchar
        | PgType::Name
        | PgType::Uuid
        | PgType::Bytea
        | PgType::Inet
        | PgType::Cidr
        | PgType::Bit
        | PgType::Varbit
        | PgType::Json
        | PgType::Jsonb
        | PgType::Enum(_)
        | PgType::Unknown => false,
    }
}
