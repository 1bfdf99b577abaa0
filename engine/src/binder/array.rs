//! Arrays: constructors, subscripts, ANY and ALL, and the functions and operators that take arrays of any element
//! (transformArrayExpr, transformContainerSubscripts, make_scalar_array_op, enforce_generic_type_consistency).

use crate::binder::coerce::{Needs, check_collation, common_type, is_collatable};
use crate::binder::enums::enum_among;
use crate::binder::expression::{Level, unknown_function};
use crate::binder::typed::{CollationStrength, Typed};
use crate::binder::{Binder, Bound, BoundExpr, ExprType, unsupported};
use crate::catalog::Collation;
use crate::catalog::functions::{self, ARRAY_FUNCTIONS, CastContext, Function};
use crate::reason::UpstreamReason;
use crate::statement::ast::{Call, Expr, TypeName};
use crate::types::array::{write_element, write_vector};
use crate::types::{Element, PgType, Value};

fn element_of(typed: &Typed) -> Option<Element> {
    match typed.pg_type() {
        PgType::Array(element) => Some(element),
        _ => None,
    }
}

fn named(name: &str) -> Option<&'static Function> {
    ARRAY_FUNCTIONS.iter().find(|function| function.name == name)
}

impl Binder<'_> {
    /// `ARRAY[...]`, its items of one type, or of the one that it is cast to.
    pub(super) fn array(&mut self, level: &mut Level, items: &[Expr], to: Option<&TypeName>) -> Bound<Typed> {
        let to = match to.map(|to| self.type_named(to)).transpose()? {
            Some((PgType::Array(element), typmod)) => Some((element, typmod)),
            Some(_) => return Err(unsupported("array")),
            None => None,
        };
        self.array_of(level, items, to)
    }

    /// `ARRAY[...]` whose items become elements of that type, with that modifier, one by one (parse_expr.c, transformArrayExpr).
    pub(super) fn array_of(&mut self, level: &mut Level, items: &[Expr], to: Option<(Element, i32)>) -> Bound<Typed> {
        let items = self.expressions(level, items)?;
        let (items, element, typmod) = match to {
            Some((element, typmod)) => {
                let cast = |item| self.cast(item, element.pg_type(), typmod);
                (items.into_iter().map(cast).collect::<Bound<Vec<_>>>()?, element, typmod)
            }
            None if items.is_empty() => return Err(unsupported("empty array of no type")),
            None => {
                let (items, expr_type, _) = self.unify(items)?;
                self.kept_domains.push(expr_type.pg_type);
                let no_array = || unsupported(format!("array of {}", expr_type.pg_type.name()));
                (items, Element::of(expr_type.pg_type).ok_or_else(no_array)?, expr_type.typmod)
            }
        };
        // The items' modifier, if they have one in common, is the array's (nodeFuncs.c, exprTypmod of an ArrayExpr).
        let expr_type = ExprType { typmod, ..self.array_type(element)? };
        for item in items.iter().filter(|item| is_collatable(item.pg_type())) {
            self.check_element_collation(item.expr_type.collation)?;
        }
        let values: Option<Vec<&Value>> = items
            .iter()
            .map(|item| match &item.expr {
                BoundExpr::Literal { value, .. } => Some(value),
                _ => None,
            })
            .collect();
        let expr = match values {
            Some(values) => BoundExpr::Literal { value: array_value(element, &values), expr_type },
            None => {
                let mut arguments: Vec<BoundExpr> = items.into_iter().map(|item| item.expr).collect();
                arguments.push(BoundExpr::collation(element.pg_type().oid()));
                BoundExpr::Call { function: &functions::CONSTRUCT, arguments, expr_type }
            }
        };
        Ok(Typed { expr, expr_type, strength: CollationStrength::Implicit, origin: None })
    }

    /// What is made of arrays and of their elements has the database's collation here: others go upstream.
    pub(super) fn check_element_collation(&self, collation: Collation) -> Bound<()> {
        if collation == Collation::None || collation == self.default_collation()? {
            Ok(())
        } else {
            Err(UpstreamReason::Collation("of an array's elements".into()))
        }
    }

    pub(super) fn array_type(&self, element: Element) -> Bound<ExprType> {
        let collation = match element {
            Element::Text | Element::Varchar => self.default_collation()?,
            _ => Collation::None,
        };
        Ok(ExprType { pg_type: PgType::Array(element), typmod: -1, collation })
    }

    /// `array[subscript]`.
    pub(super) fn subscript(&mut self, level: &mut Level, array: &Expr, subscript: &Expr) -> Bound<Typed> {
        let array = self.expression(level, array)?;
        if array.pg_type() == PgType::Jsonb {
            return self.json_subscript(level, array, subscript);
        }
        let element = element_of(&array).ok_or_else(|| unsupported("subscript"))?;
        let subscript = self.expression(level, subscript)?;
        let subscript = self.coerce(subscript, PgType::Int4, CastContext::Assignment)?;
        let collation = array.expr_type.collation;
        let (expr_type, strength) = self.plain_type(element.pg_type())?;
        let collation = if collation == Collation::None { expr_type.collation } else { collation };
        // The modifier of the array's type is its elements'.
        let expr_type = ExprType { collation, typmod: array.expr_type.typmod, ..expr_type };
        let arguments = vec![array.expr, subscript.expr];
        let expr = BoundExpr::Call { function: functions::subscript(element), arguments, expr_type };
        Ok(Typed { expr, expr_type, strength, origin: None })
    }

    /// `jsonb['key']`, `jsonb[0]` are what `#>` gives for that one step (jsonbsubs.c: a number is its text, and NULL, like what is
    /// not there, gives NULL).
    fn json_subscript(&mut self, level: &mut Level, json: Typed, subscript: &Expr) -> Bound<Typed> {
        let step = self.expression(level, subscript)?;
        let step = match step.pg_type() {
            PgType::Int2 | PgType::Int4 => self.cast(step, PgType::Text, -1)?,
            PgType::Unknown | PgType::Text => self.coerce(step, PgType::Text, CastContext::Implicit)?,
            // One that converts to text as well as to integer is an error, others are rare.
            _ => return Err(unsupported("subscript of jsonb by another type")),
        };
        let expr_type = self.array_type(Element::Text)?;
        let arguments = vec![step.expr, BoundExpr::collation(PgType::Text.oid())];
        let path = Typed {
            expr: BoundExpr::Call { function: &functions::CONSTRUCT, arguments, expr_type },
            expr_type,
            strength: CollationStrength::Implicit,
            origin: None,
        };
        self.operator("#>", Some(json), path)
    }

    /// `operand = ANY (array)`, `operand <> ALL (array)`.
    pub(super) fn quantified_array(
        &mut self,
        operand: Typed,
        symbol: &str,
        is_all: bool,
        array: Typed,
    ) -> Bound<Typed> {
        if enum_among([&operand]).is_some() {
            return Err(unsupported("ANY or ALL of an array of an enum"));
        }
        if !matches!((symbol, is_all), ("=", false) | ("<>", true)) {
            let word = if is_all { "ALL" } else { "ANY" };
            return Err(unsupported(format!("{symbol} {word} of an array that is no list")));
        }
        let element = match element_of(&array) {
            Some(element) => element.pg_type(),
            None if array.is_unknown() && !operand.is_unknown() => {
                // The array's type is that of the operator's right side.
                let right = Typed {
                    expr: BoundExpr::Literal { value: Value::Null, expr_type: ExprType::BOOL },
                    ..array.clone()
                };
                let (_, _, right) = self.equality(operand.clone(), right)?;
                right.pg_type()
            }
            None => return Err(unsupported("ANY or ALL of an array")),
        };
        let of = Element::of(element).filter(|element| element.is_bytewise());
        let of = of.ok_or_else(|| unsupported(format!("ANY or ALL of an array of {}", element.name())))?;
        let array = self.coerce(array, PgType::Array(of), CastContext::Implicit)?;
        let (mut stand_in, strength) = self.plain_type(element)?;
        if array.expr_type.collation != Collation::None {
            stand_in.collation = array.expr_type.collation;
        }
        let stand_in = Typed::literal(Value::Null, stand_in, strength);
        let (_, operand, compared) = self.equality(operand, stand_in)?;
        let is_text = |pg_type| matches!(pg_type, PgType::Text | PgType::Varchar);
        let is_network = |pg_type| matches!(pg_type, PgType::Inet | PgType::Cidr);
        let (left, right) = (operand.pg_type(), compared.pg_type());
        let agrees = (left == right && right == element)
            || (is_text(left) && is_text(right) && is_text(element))
            || (is_network(left) && is_network(right) && is_network(element))
            || (left.is_integer() && right.is_integer() && right == element);
        if !agrees {
            return Err(unsupported(format!("{} = ANY of an array of {}", left.name(), element.name())));
        }
        let arguments = vec![operand.expr, array.expr];
        let any = BoundExpr::Call { function: &functions::EQUALS_ANY, arguments, expr_type: ExprType::BOOL };
        Ok(Typed::bool(if is_all { BoundExpr::Not(Box::new(any)) } else { any }))
    }

    /// `array[lower:upper]`.
    pub(super) fn slice(
        &mut self,
        level: &mut Level,
        array: &Expr,
        lower: Option<&Expr>,
        upper: Option<&Expr>,
    ) -> Bound<Typed> {
        let array = self.expression(level, array)?;
        let element = element_of(&array).ok_or_else(|| unsupported("slice"))?;
        let mut arguments = vec![array.expr];
        for bound in [lower, upper] {
            arguments.push(match bound {
                Some(bound) => {
                    let bound = self.expression(level, bound)?;
                    self.coerce(bound, PgType::Int4, CastContext::Assignment)?.expr
                }
                None => BoundExpr::Literal { value: Value::Bool(false), expr_type: ExprType::BOOL },
            });
        }
        arguments.push(BoundExpr::collation(element.pg_type().oid()));
        let expr_type = array.expr_type;
        let expr = BoundExpr::Call { function: &functions::SLICE, arguments, expr_type };
        Ok(Typed { expr, expr_type, strength: array.strength, origin: None })
    }

    /// `@>`, `<@`, `&&`, `||` and comparisons where a side is an array; None: none is.
    pub(super) fn array_operator(&mut self, symbol: &str, left: &Typed, right: &Typed) -> Bound<Option<Typed>> {
        let comparison = functions::ARRAY_COMPARISONS.iter().find(|(name, _)| *name == symbol);
        let is_known = matches!(symbol, "@>" | "<@" | "&&" | "||") || comparison.is_some();
        let Some(element) = element_of(left).or_else(|| element_of(right)).filter(|_| is_known) else {
            return Ok(None);
        };
        let refused = || unsupported(format!("operator {symbol} of {}", PgType::Array(element).name()));
        let sides = [left.pg_type(), right.pg_type()];
        if self.catalog.user_operators.may_take(symbol, &sides) {
            return Err(refused());
        }
        if symbol == "||" {
            // An untyped literal is an array here, and mostly not meant as one.
            if left.is_unknown() || right.is_unknown() {
                return Err(refused());
            }
            let name = match (element_of(left), element_of(right)) {
                (Some(_), Some(_)) => "array_cat",
                (Some(_), None) => "array_append",
                _ => "array_prepend",
            };
            return self
                .array_part(name, vec![left.clone(), right.clone()], element)?
                .map_or_else(|| Err(refused()), |part| Ok(Some(part)));
        }
        let function = match comparison {
            Some((_, function)) if element.is_compared() => function,
            Some(_) => return Err(refused()),
            None => named(symbol).filter(|_| element.is_bytewise()).ok_or_else(refused)?,
        };
        let of = PgType::Array(element);
        let mut sides = Vec::with_capacity(2);
        for side in [left, right] {
            if side.pg_type() != of && !side.is_unknown() {
                return Err(refused());
            }
            let side = self.coerce(side.clone(), of, CastContext::Implicit)?;
            check_array_equality(&side)?;
            let is_order = comparison.is_some() && !matches!(symbol, "=" | "<>");
            if is_order && side.expr_type.collation.learnt_order().is_some() {
                return Err(UpstreamReason::Collation("of arrays in order".into()));
            }
            sides.push(side);
        }
        let given: Vec<Collation> = sides
            .iter()
            .map(|side| side.expr_type.collation)
            .filter(|collation| *collation != Collation::None)
            .collect();
        if given.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(refused());
        }
        let mut arguments: Vec<BoundExpr> = sides.into_iter().map(|side| side.expr).collect();
        if comparison.is_some() {
            arguments.push(BoundExpr::collation(element.pg_type().oid()));
        }
        Ok(Some(Typed::bool(BoundExpr::Call { function, arguments, expr_type: ExprType::BOOL })))
    }

    /// A call of one of [`functions::ARRAY_PARTS`]: arrays of `element` and what is coercible to it without changing it
    /// (anycompatiblearray, anycompatible). None: no such function, or of other types.
    fn array_part(&mut self, name: &str, arguments: Vec<Typed>, element: Element) -> Bound<Option<Typed>> {
        let fits = |function: &&Function| function.name == name && function.arguments.len() == arguments.len();
        let Some(function) = functions::ARRAY_PARTS.iter().find(fits) else { return Ok(None) };
        if !element.is_compared() && !matches!(name, "array_append" | "array_prepend" | "array_cat") {
            return Err(unsupported(format!("{name} of {}", PgType::Array(element).name())));
        }
        let mut bound = Vec::with_capacity(arguments.len() + 1);
        for (argument, declared) in arguments.into_iter().zip(function.arguments) {
            let to = match declared {
                PgType::Array(_) => PgType::Array(element),
                PgType::Text => element.pg_type(),
                other => *other,
            };
            let is_element = *declared == PgType::Text;
            let given = argument.pg_type();
            let agrees = match declared {
                PgType::Array(_) => given == to,
                // Whichever of the two select_common_type looks at first.
                _ if is_element => {
                    argument.is_unknown() || [[to, given], [given, to]].iter().all(|both| common_type(both) == Some(to))
                }
                _ => true,
            };
            if !agrees {
                return Ok(None);
            }
            let argument = self.coerce(argument, to, CastContext::Implicit)?;
            if is_collatable(element.pg_type()) && (is_element || matches!(declared, PgType::Array(_))) {
                self.check_element_collation(argument.expr_type.collation)?;
            }
            bound.push(argument.expr);
        }
        bound.push(BoundExpr::collation(element.pg_type().oid()));
        let expr_type = match function.result {
            PgType::Array(Element::Int4) => self.array_type(Element::Int4)?,
            PgType::Array(_) => self.array_type(element)?,
            other => self.plain_type(other)?.0,
        };
        let expr = BoundExpr::Call { function, arguments: bound, expr_type };
        Ok(Some(Typed { expr, expr_type, strength: CollationStrength::Implicit, origin: None }))
    }

    /// An array of the parts of a text ([`functions::SPLITS`]); their last argument may be left out.
    fn split(&mut self, call: &Call, arguments: &[Typed]) -> Bound<Option<Typed>> {
        let function = functions::SPLITS.iter().find(|function| function.name == call.name);
        let Some(function) = function.filter(|_| matches!(arguments.len(), 2 | 3)) else { return Ok(None) };
        if self.is_contested(call) {
            return Err(unknown_function(call, arguments));
        }
        let mut bound = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let text = self.coerce(argument.clone(), PgType::Text, CastContext::Implicit)?;
            self.check_element_collation(text.expr_type.collation)?;
            bound.push(text.expr);
        }
        let expr_type = self.array_type(Element::Text)?;
        let expr = BoundExpr::Call { function, arguments: bound, expr_type };
        Ok(Some(Typed { expr, expr_type, strength: CollationStrength::Implicit, origin: None }))
    }

    /// A function of arrays; None: it is another function.
    pub(super) fn array_function(&mut self, call: &Call, arguments: &[Typed]) -> Bound<Option<Typed>> {
        if let Some(split) = self.split(call, arguments)? {
            return Ok(Some(split));
        }
        let is_prepend = call.name == "array_prepend" && arguments.len() == 2;
        let array = if is_prepend { arguments.last() } else { arguments.first() };
        let Some(element) = array.and_then(element_of) else { return Ok(None) };
        let refused = || unknown_function(call, arguments);
        if self.is_contested(call) {
            return Err(refused());
        }
        if let Some(part) = self.array_part(&call.name, arguments.to_vec(), element)? {
            return Ok(Some(part));
        }
        let mut given = arguments.iter().cloned();
        let Some(array) = given.next() else { return Ok(None) };
        if call.name == "array_to_string" && matches!(arguments.len(), 2 | 3) {
            self.check_element_collation(array.expr_type.collation)?;
            let mut bound = vec![array.expr];
            for text in given {
                bound.push(self.coerce(text, PgType::Text, CastContext::Implicit)?.expr);
            }
            bound.push(BoundExpr::collation(element.pg_type().oid()));
            let (expr_type, strength) = self.plain_type(PgType::Text)?;
            let expr = BoundExpr::Call { function: &functions::TO_STRING, arguments: bound, expr_type };
            return Ok(Some(Typed { expr, expr_type, strength, origin: None }));
        }
        let function = named(&call.name).filter(|function| function.arguments.len() == arguments.len());
        let function = function.filter(|function| function.result == PgType::Int4).ok_or_else(refused)?;
        let mut bound = vec![array.expr];
        for number in given {
            bound.push(self.coerce(number, PgType::Int4, CastContext::Implicit)?.expr);
        }
        let (expr_type, strength) = self.plain_type(PgType::Int4)?;
        Ok(Some(Typed {
            expr: BoundExpr::Call { function, arguments: bound, expr_type },
            expr_type,
            strength,
            origin: None,
        }))
    }

    /// An array of texts of another type ([`are_texts`]).
    pub(super) fn retyped(&mut self, array: Typed, to: PgType) -> Bound<Typed> {
        let PgType::Array(element) = to else { return Err(unsupported("array")) };
        self.check_element_collation(array.expr_type.collation)?;
        let expr_type = self.array_type(element)?;
        let arguments = vec![array.expr, BoundExpr::collation(element.pg_type().oid())];
        let expr = BoundExpr::Call { function: &functions::RETYPED, arguments, expr_type };
        Ok(Typed { expr, expr_type, strength: array.strength, origin: None })
    }

    /// What array_out prints (CoerceViaIO).
    pub(super) fn array_as_text(&mut self, array: Typed, to: PgType) -> Bound<Typed> {
        let PgType::Array(element) = array.pg_type() else { return Err(unsupported("output of an array")) };
        let (mut expr_type, mut strength) = self.plain_type(to)?;
        if array.expr_type.collation != Collation::None {
            (expr_type.collation, strength) = (array.expr_type.collation, array.strength);
        }
        let arguments = vec![array.expr, BoundExpr::collation(element.pg_type().oid())];
        let expr = BoundExpr::Call { function: &functions::ARRAY_TEXT, arguments, expr_type };
        Ok(Typed { expr, expr_type, strength, origin: None })
    }
}

/// Of the one type as of the other, they are the same bytes.
pub(super) fn are_texts(from: PgType, to: PgType) -> bool {
    let is_text = |pg_type| matches!(pg_type, PgType::Array(Element::Text | Element::Varchar));
    from != to && is_text(from) && is_text(to)
}

/// Elements that are strings compare as their collation says.
fn check_array_equality(array: &Typed) -> Bound<()> {
    match array.expr_type.collation {
        Collation::None => Ok(()),
        collation => check_collation(collation, Needs::Equality, "equality of array elements"),
    }
}

/// An array of one dimension; of none for no values.
pub(super) fn array_value(element: Element, values: &[&Value]) -> Value {
    let mut elements = Vec::new();
    values.iter().for_each(|value| write_element(value, element, &mut elements));
    let mut whole = Vec::new();
    let has_null = values.iter().any(|value| value.is_null());
    write_vector(element, values.len(), has_null, &elements, &mut whole);
    Value::Array(whole.into())
}
