//! Expressions: transformExpr of parse_expr.c, ParseFuncOrColumn and make_op.

use crate::binder::coerce::{Needs, check_collation, is_collatable};
use crate::binder::enums::enum_among;
use crate::binder::notation::{is_bit, parameter_names};
use crate::binder::resolve;
use crate::binder::scope::Scope;
use crate::binder::subquery::Subquery;
use crate::binder::typed::{CollationStrength, Typed, has_column, is_fixed, size};
use crate::binder::window::NamedWindow;
use crate::binder::{AggregateCall, Binder, Bound, BoundExpr, ExprType, WindowCall, cannot_raise, unsupported};
use crate::catalog::Collation;
use crate::catalog::functions::{self, ArgumentType, Candidate, CastContext, CastMethod, Function};
use crate::reason::UpstreamReason;
use crate::statement::ast::{ArrayItems, ArrayLiteral, Call, CallSchema, Expr, SqlValueFunction};
use crate::types::{PgType, Value};

/// Which clause an expression stands in (ParseExprKind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause {
    JoinOn,
    Where,
    Target,
    Having,
    OrderBy,
    GroupBy,
    Limit,
    Values,
    From,
}

impl Clause {
    pub(super) fn allows_aggregates(self) -> bool {
        match self {
            // An ORDER BY or GROUP BY item is first matched with the targets, which may have them.
            Self::Target | Self::Having | Self::OrderBy => true,
            Self::JoinOn | Self::Where | Self::GroupBy | Self::Limit | Self::Values | Self::From => false,
        }
    }
}

/// One query level while its expressions are bound.
pub(super) struct Level {
    pub(super) scope: Scope,
    pub(super) clause: Clause,
    pub(super) aggregates: Vec<AggregateCall>,
    pub(super) windows: Vec<WindowCall>,
    /// WINDOW.
    pub(super) named_windows: Vec<NamedWindow>,
    pub(super) subqueries: Vec<Subquery>,
    pub(super) inside_aggregate: bool,
    /// In a FILTER, also one of a call over a window: no aggregates, no grouping() (parse_agg.c, EXPR_KIND_FILTER).
    pub(super) inside_filter: bool,
    pub(super) inside_window: bool,
    /// Whether GROUPING() may be asked here; then each such question, by its expressions.
    pub(super) groupings: Vec<Vec<BoundExpr>>,
    /// A row stands as a value, outside of what aggregates take in.
    pub(super) has_row_value: bool,
}

impl Level {
    pub(super) fn new(scope: Scope, clause: Clause) -> Self {
        Self {
            scope,
            clause,
            aggregates: Vec::new(),
            windows: Vec::new(),
            named_windows: Vec::new(),
            subqueries: Vec::new(),
            inside_aggregate: false,
            inside_filter: false,
            inside_window: false,
            groupings: Vec::new(),
            has_row_value: false,
        }
    }

    /// What was bound is an expression over the level's columns, and no more.
    pub(super) fn is_plain(&self) -> bool {
        self.aggregates.is_empty() && self.windows.is_empty() && self.subqueries.is_empty() && self.groupings.is_empty()
    }
}

impl Binder<'_> {
    /// A condition: coerce_to_boolean.
    pub(super) fn condition(&mut self, level: &mut Level, expr: &Expr) -> Bound<BoundExpr> {
        let typed = self.expression(level, expr)?;
        Ok(self.coerce(typed, PgType::Bool, CastContext::Assignment)?.expr)
    }

    /// transformExprRecurse.
    pub(super) fn expression(&mut self, level: &mut Level, expr: &Expr) -> Bound<Typed> {
        match expr {
            Expr::Column(names) => self.column(&level.scope, names),
            Expr::WholeRow(name) => Err(unsupported(format!("the row of {name} as a value"))),
            Expr::Number(digits) => self.number(digits),
            Expr::String(text) => Ok(unknown(Value::Text(text.as_str().into()))),
            Expr::Null => Ok(unknown(Value::Null)),
            Expr::Bool(value) => {
                let (expr_type, strength) = self.plain_type(PgType::Bool)?;
                Ok(Typed::literal(Value::Bool(*value), expr_type, strength))
            }
            Expr::Parameter(number) => self.parameter(*number),
            Expr::Cast { operand, to }
                if to.is_array
                    && let Expr::Array(items) = &**operand =>
            {
                self.array(level, items, Some(to))
            }
            Expr::Array(items) => self.array(level, items, None),
            Expr::Subscript { array, subscript } => self.subscript(level, array, subscript),
            Expr::Slice { array, lower, upper } => self.slice(level, array, lower.as_deref(), upper.as_deref()),
            Expr::Cast { operand, to }
                if let Expr::Cast { operand: text, to: bits } = &**operand
                    && is_bit(bits) =>
            {
                self.number_of_bits(level, text, bits, to)
            }
            Expr::Cast { operand, to } => {
                let (to, typmod) = self.type_named(to)?;
                let operand = self.expression(level, operand)?;
                self.cast(operand, to, typmod)
            }
            Expr::Operator { symbol, left: Some(left), right }
                if let (Expr::Row { items: left, .. }, Expr::Row { items: right, .. }) = (&**left, &**right) =>
            {
                self.row_comparison(level, symbol, left, right)
            }
            Expr::Operator { symbol, left, right } => {
                let left = left.as_ref().map(|left| self.expression(level, left)).transpose()?;
                let right = self.expression(level, right)?;
                if let Some(left) = &left
                    && let Some(typed) = self.array_operator(symbol, left, &right)?
                {
                    return Ok(typed);
                }
                self.operator(symbol, left, right)
            }
            Expr::And(items) => Ok(Typed::bool(BoundExpr::And(self.conditions(level, items)?))),
            Expr::Or(items) => Ok(Typed::bool(BoundExpr::Or(self.conditions(level, items)?))),
            Expr::Not(operand) => Ok(Typed::bool(BoundExpr::Not(Box::new(self.condition(level, operand)?)))),
            Expr::IsNull { operand, negated } => {
                let operand = self.expression(level, operand)?;
                self.null_test(operand, *negated)
            }
            Expr::IsBool { operand, expected, negated } => {
                let is_quantified = has_quantified(operand);
                let operand = Box::new(self.condition(level, operand)?);
                // NULL is in no empty array, and that is false: PostgreSQL makes the outer join below it an inner one all the same
                // (clauses.c, find_nonnullable_rels_walker of a BooleanTest).
                let may_be_false_for_null = matches!((expected, negated), (Some(false), false) | (None, true));
                if may_be_false_for_null && is_quantified {
                    return Err(unsupported("IS FALSE of = ANY"));
                }
                Ok(Typed::bool(BoundExpr::IsBool { operand, expected: *expected, negated: *negated }))
            }
            Expr::IsDistinct { left, right, negated } => self.is_distinct(level, left, right, *negated),
            Expr::Between { operand, low, high, negated, is_symmetric } => {
                let bounds = [&**low, &**high];
                if *is_symmetric {
                    self.between_symmetric(level, operand, bounds, *negated)
                } else {
                    self.between(level, operand, bounds, *negated)
                }
            }
            Expr::In { operand, list, negated } => self.in_list(level, operand, list, *negated),
            Expr::Case { operand, branches, otherwise } => {
                self.case(level, operand.as_deref(), branches, otherwise.as_deref())
            }
            Expr::Coalesce(items) => {
                let items = self.expressions(level, items)?;
                let (items, expr_type, strength) = self.unify_arms(items)?;
                let arguments = items.into_iter().map(|item| item.expr).collect();
                Ok(Typed {
                    expr: BoundExpr::Coalesce { arguments, call: 0, expr_type },
                    expr_type,
                    strength,
                    origin: None,
                })
            }
            Expr::Extreme { greatest, arguments } => self.extreme(level, *greatest, arguments),
            Expr::NullIf(left, right) => self.null_if(level, left, right),
            Expr::Call(call) => self.function_call(level, call),
            Expr::Named(..) => Err(unsupported("named argument of this function")),
            Expr::SqlValue { function, precision } => self.sql_value(*function, *precision),
            Expr::Collate { operand, collation } => self.collate(level, operand, collation),
            Expr::Row { .. } => Err(unsupported("row value")),
            Expr::Subquery(query) => self.scalar_subquery(level, query),
            Expr::Exists(query) => self.exists(level, query),
            Expr::ArrayOf(query) => self.array_of_rows(level, query),
            Expr::InSubquery { symbol, operand, query, negated } => {
                self.in_subquery(level, operand, symbol, query, *negated)
            }
            Expr::Quantified { operand, symbol, is_all, array } => {
                self.quantified(level, operand, symbol, *is_all, array)
            }
            Expr::Grouping(items) => self.grouping_call(level, items),
        }
    }

    pub(super) fn expressions(&mut self, level: &mut Level, list: &[Expr]) -> Bound<Vec<Typed>> {
        list.iter().map(|item| self.expression(level, item)).collect()
    }

    fn conditions(&mut self, level: &mut Level, list: &[Expr]) -> Bound<Vec<BoundExpr>> {
        list.iter().map(|item| self.condition(level, item)).collect()
    }

    /// variable_paramref_hook.
    fn parameter(&mut self, number: usize) -> Bound<Typed> {
        if let Some(argument) = self.argument(number) {
            return argument;
        }
        let index = number - 1;
        if self.parameters.len() < number {
            self.parameters.resize(number, None);
        }
        let (expr_type, strength) = self.plain_type(self.parameters[index].unwrap_or(PgType::Unknown))?;
        Ok(Typed { expr: BoundExpr::Parameter { index, expr_type }, expr_type, strength, origin: None })
    }

    fn null_test(&mut self, operand: Typed, negated: bool) -> Bound<Typed> {
        let operand = match &operand.expr {
            BoundExpr::Parameter { .. } if operand.is_unknown() => {
                return Err(UpstreamReason::UnsupportedType("parameter of undetermined type".into()));
            }
            _ if operand.is_unknown() => self.coerce(operand, PgType::Text, CastContext::Implicit)?,
            _ => operand,
        };
        Ok(Typed::bool(BoundExpr::IsNull { operand: Box::new(operand.expr), negated }))
    }

    /// make_op.
    pub(super) fn operator(&mut self, symbol: &str, left: Option<Typed>, right: Typed) -> Bound<Typed> {
        let mut arguments: Vec<Typed> = left.into_iter().chain([right]).collect();
        if let Some(labels) = enum_among(&arguments)
            && symbol != "||"
        {
            return self.enum_comparison(symbol, labels, arguments);
        }
        let candidate = self.operator_candidate(symbol, &arguments)?;
        if symbol == "||" {
            arguments = self.concatenable(candidate, arguments)?;
        }
        let function = match candidate.function {
            Some(function) => function,
            None if symbol == "||" => self.operator_function("||", &arguments)?,
            None => return Err(unknown_operator(symbol, &arguments)),
        };
        let arguments = self.coerce_arguments(function, arguments)?;
        self.call(function, arguments, -1)
    }

    fn operator_candidate(&self, symbol: &str, arguments: &[Typed]) -> Bound<&'static Candidate> {
        let types: Vec<PgType> = arguments.iter().map(Typed::pg_type).collect();
        let candidates = functions::operator_candidates(symbol);
        let exact = resolve::exact_operator(candidates, &types).or_else(|| resolve::of_texts(candidates, &types));
        // An exact match in pg_catalog wins over whatever users define, as long as pg_catalog is searched first.
        let found = if self.catalog.user_operators.may_take(symbol, &types) {
            exact.filter(|_| self.is_pg_catalog_first())
        } else {
            exact.or_else(|| resolve::best(candidates, &types))
        };
        found.ok_or_else(|| unknown_operator(symbol, arguments))
    }

    fn operator_function(&self, symbol: &str, arguments: &[Typed]) -> Bound<&'static Function> {
        let candidate = self.operator_candidate(symbol, arguments)?;
        candidate.function.ok_or_else(|| unknown_operator(symbol, arguments))
    }

    /// `text || anynonarray` is `$1 || $2::text` (textanycat and anytextcat, SQL functions of pg_proc.dat).
    fn concatenable(&mut self, candidate: &Candidate, arguments: Vec<Typed>) -> Bound<Vec<Typed>> {
        let is_any =
            |argument: &ArgumentType| matches!(argument, ArgumentType::Other(other) if other.name == "anynonarray");
        if !candidate.arguments.iter().any(is_any) {
            return Ok(arguments);
        }
        arguments.into_iter().map(|argument| self.coerce(argument, PgType::Text, CastContext::Explicit)).collect()
    }

    /// make_fn_arguments.
    fn coerce_arguments(&mut self, function: &Function, arguments: Vec<Typed>) -> Bound<Vec<Typed>> {
        let declared = function.arguments;
        let last = declared.last().copied().unwrap_or(PgType::Text);
        arguments
            .into_iter()
            .enumerate()
            .map(|(index, argument)| {
                let to = declared.get(index).copied().unwrap_or(last);
                self.coerce(argument, to, CastContext::Implicit)
            })
            .collect()
    }

    /// transformAExprDistinct: a bare NULL makes it a null test.
    fn is_distinct(&mut self, level: &mut Level, left: &Expr, right: &Expr, negated: bool) -> Bound<Typed> {
        let left = self.expression(level, left)?;
        let right = self.expression(level, right)?;
        if right.is_null_literal() {
            return self.null_test(left, !negated);
        }
        if left.is_null_literal() {
            return self.null_test(right, !negated);
        }
        let (equal, left, right) = self.equality(left, right)?;
        let (left, right) = (Box::new(left.expr), Box::new(right.expr));
        Ok(Typed::bool(BoundExpr::IsDistinct { equal, left, right, negated }))
    }

    /// The = operator of two operands, coerced to what it takes.
    pub(super) fn equality(&mut self, left: Typed, right: Typed) -> Bound<(&'static Function, Typed, Typed)> {
        let arguments = vec![left, right];
        if let Some(labels) = enum_among(&arguments) {
            return self.enum_equality(labels, arguments);
        }
        let equal = self.operator_function("=", &arguments)?;
        let mut coerced = self.coerce_arguments(equal, arguments)?;
        // The call itself is not needed, its check of collations is.
        self.call(equal, coerced.clone(), -1)?;
        let (Some(right), Some(left)) = (coerced.pop(), coerced.pop()) else {
            return Err(unsupported("equality"));
        };
        Ok((equal, left, right))
    }

    pub(super) fn repeat(&mut self, typed: &Typed) -> Bound<Typed> {
        self.spend(size(&typed.expr))?;
        Ok(typed.clone())
    }

    /// A copy of an expression that PostgreSQL transforms anew: a parameter whose type was decided meanwhile has that type.
    fn transformed_again(&mut self, typed: &Typed) -> Bound<Typed> {
        let mut copy = self.repeat(typed)?;
        let is_open = copy.is_unknown() && copy.strength != CollationStrength::Explicit;
        if let BoundExpr::Parameter { index, expr_type } = &mut copy.expr
            && is_open
            && let Some(Some(known)) = self.parameters.get(*index).copied()
        {
            (*expr_type, copy.strength) = self.plain_type(known)?;
            copy.expr_type = *expr_type;
        }
        Ok(copy)
    }

    /// transformAExprBetween: two comparisons of the same operand.
    fn between(&mut self, level: &mut Level, operand: &Expr, bounds: [&Expr; 2], negated: bool) -> Bound<Typed> {
        let operand = self.expression(level, operand)?;
        let (above, below) = if negated { ("<", ">") } else { (">=", "<=") };
        let low = self.expression(level, bounds[0])?;
        let first = self.operator(above, Some(operand.clone()), low)?;
        let again = self.transformed_again(&operand)?;
        let high = self.expression(level, bounds[1])?;
        let second = self.operator(below, Some(again), high)?;
        let parts = vec![first.expr, second.expr];
        Ok(Typed::bool(if negated { BoundExpr::Or(parts) } else { BoundExpr::And(parts) }))
    }

    /// transformAExprBetween, AEXPR_BETWEEN_SYM and AEXPR_NOT_BETWEEN_SYM: `(x >= a AND x <= b) OR (x >= b AND x <= a)`, or
    /// `(x < a OR x > b) AND (x < b OR x > a)`. Each comparison resolves the types of its own copies, in this order.
    fn between_symmetric(
        &mut self,
        level: &mut Level,
        operand: &Expr,
        bounds: [&Expr; 2],
        negated: bool,
    ) -> Bound<Typed> {
        let (above, below) = if negated { ("<", ">") } else { (">=", "<=") };
        let operand = self.expression(level, operand)?;
        let first = self.expression(level, bounds[0])?;
        let above_first = self.operator(above, Some(operand.clone()), first.clone())?.expr;
        let again = self.transformed_again(&operand)?;
        let second = self.expression(level, bounds[1])?;
        let below_second = self.operator(below, Some(again), second.clone())?.expr;
        let mut compared = |symbol: &str, bound: &Typed| -> Bound<BoundExpr> {
            let again = self.transformed_again(&operand)?;
            let bound = self.transformed_again(bound)?;
            Ok(self.operator(symbol, Some(again), bound)?.expr)
        };
        let (above_second, below_first) = (compared(above, &second)?, compared(below, &first)?);
        let ranges = [vec![above_first, below_second], vec![above_second, below_first]].into_iter();
        Ok(Typed::bool(match negated {
            true => BoundExpr::And(ranges.map(BoundExpr::Or).collect()),
            false => BoundExpr::Or(ranges.map(BoundExpr::And).collect()),
        }))
    }

    /// transformAExprIn: items without columns, if more than one, take a common type with the operand (they become an
    /// array); the others are compared one by one.
    fn in_list(&mut self, level: &mut Level, operand: &Expr, list: &[Expr], negated: bool) -> Bound<Typed> {
        if let Expr::Row { items: left, .. } = operand {
            let parts = list.iter().map(|item| match item {
                Expr::Row { items: right, .. } => Ok(self.row_comparison(level, "=", left, right)?.expr),
                _ => Err(unsupported("IN list of rows and values")),
            });
            let any = BoundExpr::Or(parts.collect::<Bound<_>>()?);
            return Ok(Typed::bool(if negated { BoundExpr::Not(Box::new(any)) } else { any }));
        }
        let operand = self.expression(level, operand)?;
        let (mut single, mut listed): (Vec<Typed>, Vec<Typed>) =
            self.expressions(level, list)?.into_iter().partition(|item| has_column(&item.expr));
        if listed.len() == 1 {
            single.append(&mut listed);
        }
        let mut parts = Vec::new();
        if !listed.is_empty() {
            let scalar = self.repeat(&operand)?;
            parts.push(self.array_membership(scalar, listed, negated)?);
        }
        let symbol = if negated { "<>" } else { "=" };
        for item in single {
            let operand = self.repeat(&operand)?;
            let part = self.operator(symbol, Some(operand), item)?;
            parts.push(part.expr);
        }
        Ok(Typed::bool(match parts.len() {
            1 => parts.remove(0),
            _ if negated => BoundExpr::And(parts),
            _ => BoundExpr::Or(parts),
        }))
    }

    /// make_scalar_array_op: the comparison with each item; a NULL among them keeps its meaning.
    fn quantified(
        &mut self,
        level: &mut Level,
        operand: &Expr,
        symbol: &str,
        is_all: bool,
        array: &ArrayLiteral,
    ) -> Bound<Typed> {
        let operand = self.expression(level, operand)?;
        let mut items = match &array.items {
            ArrayItems::Of(array) => {
                let array = self.expression(level, array)?;
                return self.quantified_array(operand, symbol, is_all, array);
            }
            // transformArrayExpr: the items have one type among themselves, text if none is typed.
            ArrayItems::Listed(items) => {
                let items = self.expressions(level, items)?;
                if array.to.is_some() { items } else { self.unify(items)?.0 }
            }
            ArrayItems::Text(items) => items
                .iter()
                .map(|item| unknown(item.as_ref().map_or(Value::Null, |text| Value::Text(text.as_str().into()))))
                .collect(),
        };
        if let Some(to) = &array.to {
            let (to, typmod) = self.type_named(to)?;
            items = items.into_iter().map(|item| self.cast(item, to, typmod)).collect::<Bound<_>>()?;
        }
        if items.is_empty() {
            // It is computed all the same (ExecEvalScalarArrayOp).
            if !cannot_raise(&operand.expr) {
                return Err(unsupported("ANY or ALL of no values, of what may raise an error"));
            }
            // And there has to be such an operator.
            let stand_in = match &array.to {
                Some(to) => {
                    let (expr_type, strength) = self.plain_type(self.type_named(to)?.0)?;
                    Typed::literal(Value::Null, expr_type, strength)
                }
                None => unknown(Value::Null),
            };
            self.operator(symbol, Some(operand), stand_in)?;
            let (expr_type, strength) = self.plain_type(PgType::Bool)?;
            return Ok(Typed::literal(Value::Bool(is_all), expr_type, strength));
        }
        // All of the array is computed first. Constants are, in any case.
        if items.iter().any(|item| !cannot_raise(&item.expr) && !is_fixed(&item.expr)) {
            return Err(unsupported("ANY or ALL of values that may raise an error"));
        }
        let is_untyped = items.iter().all(Typed::is_unknown);
        if operand.is_unknown() && is_untyped {
            return Err(unsupported("array of unknown type"));
        }
        // One for the whole array (parse_collate.c): an item that has one of its own says how the others are compared.
        let plain = self.plain_type(PgType::Text)?.0.collation;
        let is_own = |item: &Typed| {
            let own = item.expr_type.collation;
            !matches!(own, Collation::None) && own != plain && own != operand.expr_type.collation
        };
        if items.iter().any(is_own) {
            return Err(unsupported("ANY or ALL of texts of another collation"));
        }
        // Membership, as IN has it.
        if (symbol == "=" && !is_all) || (symbol == "<>" && is_all) {
            let negated = is_all;
            let labels = enum_among([&operand].into_iter().chain(&items));
            let (equal, operand, first) = self.equality(operand, items.remove(0))?;
            let element = equal.arguments.last().copied().unwrap_or(PgType::Text);
            let mut list = vec![first.expr];
            for item in items {
                list.push(self.listed(item, labels, element)?.expr);
            }
            return Ok(Typed::bool(self.membership(equal, operand.expr, list, negated)?));
        }
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            let operand = self.repeat(&operand)?;
            parts.push(self.operator(symbol, Some(operand), item)?.expr);
        }
        Ok(Typed::bool(if is_all { BoundExpr::And(parts) } else { BoundExpr::Or(parts) }))
    }

    fn array_membership(&mut self, operand: Typed, items: Vec<Typed>, negated: bool) -> Bound<BoundExpr> {
        let mut all = vec![operand];
        all.extend(items);
        let types: Vec<PgType> = all.iter().map(Typed::pg_type).collect();
        let common = super::coerce::common_type(&types)
            .ok_or_else(|| UpstreamReason::UnknownFunction("no common type of an IN list".into()))?;
        let items = all
            .into_iter()
            .enumerate()
            .map(|(index, item)| if index == 0 { Ok(item) } else { self.coerce(item, common, CastContext::Implicit) })
            .collect::<Bound<Vec<_>>>()?;
        let inputs: Vec<&Typed> = items.iter().collect();
        self.input_collation(&inputs, PgType::Text)?;
        let mut items = items.into_iter();
        let (Some(operand), Some(first)) = (items.next(), items.next()) else {
            return Err(unsupported("empty IN list"));
        };
        let labels = enum_among([&operand, &first]);
        let (equal, operand, first) = self.equality(operand, first)?;
        let element = equal.arguments.last().copied().unwrap_or(common);
        let mut list = vec![first.expr];
        for item in items {
            list.push(self.listed(item, labels, element)?.expr);
        }
        self.membership(equal, operand.expr, list, negated)
    }

    /// Whether the operand equals one of the list, all of it coerced already.
    fn membership(
        &mut self,
        equal: &'static Function,
        operand: BoundExpr,
        list: Vec<BoundExpr>,
        negated: bool,
    ) -> Bound<BoundExpr> {
        let is_constant = |item: &BoundExpr| matches!(item, BoundExpr::Literal { .. } | BoundExpr::Parameter { .. });
        if list.iter().all(is_constant) {
            return Ok(BoundExpr::InList { equal, operand: Box::new(operand), list, negated });
        }
        self.spend(list.len() * size(&operand))?;
        let expr_type = ExprType { pg_type: PgType::Bool, typmod: -1, collation: Collation::None };
        let equals = list.into_iter().map(|item| BoundExpr::Call {
            function: equal,
            arguments: vec![operand.clone(), item],
            expr_type,
        });
        let any = BoundExpr::Or(equals.collect());
        Ok(if negated { BoundExpr::Not(Box::new(any)) } else { any })
    }

    /// make_row_comparison_op, as the columns' comparisons: the first that differs decides.
    fn row_comparison(&mut self, level: &mut Level, symbol: &str, left: &[Expr], right: &[Expr]) -> Bound<Typed> {
        if left.len() != right.len() {
            return Err(unsupported("rows of different length"));
        }
        let strict = match symbol {
            "=" | "<>" => None,
            "<" | "<=" => Some("<"),
            ">" | ">=" => Some(">"),
            _ => return Err(unsupported("operator on rows")),
        };
        let mut whole: Option<BoundExpr> = None;
        for (left, right) in left.iter().zip(right).rev() {
            let left = self.expression(level, left)?;
            let right = self.expression(level, right)?;
            let (again_left, again_right) = (self.repeat(&left)?, self.repeat(&right)?);
            whole = Some(match (strict, whole) {
                (None, rest) => {
                    let own = self.operator(symbol, Some(left), right)?.expr;
                    match rest {
                        None => own,
                        Some(rest) if symbol == "=" => BoundExpr::And(vec![own, rest]),
                        Some(rest) => BoundExpr::Or(vec![own, rest]),
                    }
                }
                (Some(_), None) => self.operator(symbol, Some(left), right)?.expr,
                (Some(strict), Some(rest)) => {
                    let differs = self.operator(strict, Some(left), right)?.expr;
                    let equal = self.operator("=", Some(again_left), again_right)?.expr;
                    BoundExpr::Or(vec![differs, BoundExpr::And(vec![equal, rest])])
                }
            });
        }
        whole.map(Typed::bool).ok_or_else(|| unsupported("empty row"))
    }

    /// transformCaseExpr. The default's type counts first.
    fn case(
        &mut self,
        level: &mut Level,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Bound<Typed> {
        let operand = match operand {
            Some(operand) => {
                let operand = self.expression(level, operand)?;
                Some(if operand.is_unknown() {
                    self.coerce(operand, PgType::Text, CastContext::Implicit)?
                } else {
                    operand
                })
            }
            None => None,
        };
        let mut conditions = Vec::new();
        let mut results = Vec::new();
        for (condition, result) in branches {
            conditions.push(match &operand {
                Some(operand) => {
                    let operand = self.repeat(operand)?;
                    let value = self.expression(level, condition)?;
                    self.operator("=", Some(operand), value)?.expr
                }
                None => self.condition(level, condition)?,
            });
            results.push(self.expression(level, result)?);
        }
        let default = self.expression(level, otherwise.unwrap_or(&Expr::Null))?;
        results.insert(0, default);
        let (results, expr_type, strength) = self.unify_arms(results)?;
        let mut results = results.into_iter().map(|result| result.expr);
        let otherwise = Box::new(results.next().ok_or_else(|| unsupported("CASE"))?);
        let branches = conditions.into_iter().zip(results).collect();
        Ok(Typed { expr: BoundExpr::Case { branches, otherwise, expr_type }, expr_type, strength, origin: None })
    }

    fn extreme(&mut self, level: &mut Level, greatest: bool, items: &[Expr]) -> Bound<Typed> {
        let items = self.expressions(level, items)?;
        let (items, expr_type, strength) = self.unify(items)?;
        if is_collatable(expr_type.pg_type) {
            check_collation(expr_type.collation, Needs::Order, "GREATEST or LEAST")?;
        }
        let ranked = expr_type.order();
        let compared = match expr_type.pg_type {
            _ if ranked.is_some() => PgType::Int8,
            // The btree order of varchar is text's.
            PgType::Varchar => PgType::Text,
            // And that of cidr is inet's.
            PgType::Cidr => PgType::Inet,
            pg_type => pg_type,
        };
        let less = functions::operators("<").iter().find(|function| function.arguments == [compared, compared]);
        let less =
            *less.ok_or_else(|| UpstreamReason::UnknownFunction(format!("order of {}", compared.name()).into()))?;
        let items = items.into_iter().map(|item| item.expr);
        let expr = match ranked {
            None => BoundExpr::Extreme { less, greatest, arguments: items.collect(), expr_type },
            // All under the collation that they agree on, whatever each would have by itself.
            Some(order) => {
                let of_ranks = ExprType { pg_type: PgType::Int8, typmod: -1, collation: Collation::None };
                let arguments = items.map(|item| item.ranked(order)).collect();
                let extreme = BoundExpr::Extreme { less, greatest, arguments, expr_type: of_ranks };
                extreme.text_at(order, expr_type.typmod, expr_type)?
            }
        };
        Ok(Typed { expr, expr_type, strength, origin: None })
    }

    /// NULLIF has the type of its first argument as the = operator takes it.
    fn null_if(&mut self, level: &mut Level, left: &Expr, right: &Expr) -> Bound<Typed> {
        let left = self.expression(level, left)?;
        let right = self.expression(level, right)?;
        let labels = enum_among([&left, &right]);
        let (equal, left, right) = self.equality(left, right)?;
        // Its collation is that of both (assign_collations_walker).
        let (collation, strength) = self.input_collation(&[&left, &right], left.pg_type())?;
        let kept = self.repeat(&left)?;
        let kept = match labels {
            // The operator of enums is polymorphic: what it takes is of the enum.
            Some(labels) => {
                kept.relabelled(ExprType { pg_type: PgType::Enum(labels), typmod: -1, collation: Collation::None })
            }
            None if is_collatable(kept.pg_type()) => kept.collated(collation),
            None => kept,
        };
        let condition = self.call(equal, vec![left, right], -1)?;
        let expr_type = kept.expr_type;
        self.note_modifier(expr_type);
        let null = BoundExpr::Literal { value: Value::Null, expr_type };
        let branches = vec![(condition.expr, null)];
        let expr = BoundExpr::Case { branches, otherwise: Box::new(kept.expr), expr_type };
        Ok(Typed { expr, expr_type, strength, origin: None })
    }

    /// SQLValueFunction: all from the transaction's time.
    fn sql_value(&mut self, function: SqlValueFunction, precision: Option<i32>) -> Bound<Typed> {
        let to = match function {
            SqlValueFunction::CurrentDate => PgType::Date,
            SqlValueFunction::CurrentTimestamp => PgType::Timestamptz,
            SqlValueFunction::LocalTime => PgType::Time,
            SqlValueFunction::LocalTimestamp => PgType::Timestamp,
            SqlValueFunction::CurrentTime => return Err(UpstreamReason::UnsupportedType("time with time zone".into())),
        };
        if precision.is_some_and(|precision| !(0..=6).contains(&precision)) {
            return Err(unsupported("precision of the current time"));
        }
        let now = functions::functions("now").iter().find(|function| function.arguments.is_empty());
        let now = *now.ok_or_else(|| UpstreamReason::Volatile("current time".into()))?;
        let now = self.call(now, Vec::new(), -1)?;
        self.cast(now, to, precision.unwrap_or(-1))
    }

    // -- calls

    /// ParseFuncOrColumn.
    fn function_call(&mut self, level: &mut Level, call: &Call) -> Bound<Typed> {
        self.check_execute(call)?;
        if let Some(typed) = self.sql_function(level, call)? {
            return Ok(typed);
        }
        let aggregates = functions::aggregates(&call.name);
        if let Some(over) = &call.over {
            return self.window_call(level, call, over, aggregates);
        }
        if !aggregates.is_empty() {
            return self.aggregate(level, call, aggregates);
        }
        if let Some(json) = self.json_call(level, call)? {
            return Ok(json);
        }
        let is_plain = !call.is_star
            && !call.is_distinct
            && call.filter.is_none()
            && call.order_by.is_empty()
            && call.within_group.is_empty();
        if !is_plain {
            return Err(UpstreamReason::UnknownFunction(call.name.clone().into()));
        }
        let arguments = match parameter_names(&call.name) {
            Some(names) => self.completed(level, call, names)?,
            None => self.expressions(level, &call.arguments)?,
        };
        if let Some(typed) = self.array_function(call, &arguments)? {
            return Ok(typed);
        }
        let types: Vec<PgType> = arguments.iter().map(Typed::pg_type).collect();
        let candidates = functions::function_candidates(&call.name);
        let is_contested = self.is_contested_for(call, &types);
        // Of equal types the one in pg_catalog is taken only where it is looked for first.
        let exact = resolve::exact(candidates, &types).filter(|_| !is_contested || self.is_pg_catalog_first());
        let candidate = match exact {
            Some(exact) => exact,
            None if is_contested => return self.overloading(level, call, arguments),
            None => {
                if let Some(to) = cast_by_name(call, &arguments) {
                    let argument = arguments.into_iter().next().ok_or_else(|| unsupported("cast"))?;
                    return self.coerce(argument, to, CastContext::Explicit);
                }
                resolve::best(candidates, &types).ok_or_else(|| unknown_function(call, &arguments))?
            }
        };
        let function = candidate.function.ok_or_else(|| unknown_function(call, &arguments))?;
        if resolve::is_length_coercion(function) {
            return Err(unsupported(format!("{} called as a function", function.name)));
        }
        let arguments = if candidate.is_variadic {
            self.printed(function, arguments)?
        } else if candidate.arguments.len() != arguments.len() {
            return Err(unknown_function(call, &arguments));
        } else {
            arguments
        };
        let arguments = self.coerce_arguments(function, arguments)?;
        self.call(function, arguments, -1)
    }

    /// Anybody may execute the function, if it is one of PostgreSQL's own.
    pub(super) fn check_execute(&self, call: &Call) -> Bound<()> {
        match self.catalog.restricted.names.contains(call.name.as_str()) {
            true => Err(UpstreamReason::Privilege(format!("function {}", call.name).into())),
            false => Ok(()),
        }
    }

    /// Whether a function of users', or a cast, may be meant unless PostgreSQL's own function matches exactly.
    pub(super) fn is_contested(&self, call: &Call) -> bool {
        self.catalog.added_functions.contains(call.name.as_str())
            || call.schema == CallSchema::SearchPath
                && (self.catalog.user_functions.contains(call.name.as_str()) || self.may_be_cast(call))
    }

    /// Likewise where the arguments' types are known.
    pub(super) fn is_contested_for(&self, call: &Call, arguments: &[PgType]) -> bool {
        self.catalog.added_functions.may_take(&call.name, arguments)
            || call.schema == CallSchema::SearchPath
                && (self.catalog.user_functions.may_take(&call.name, arguments) || self.may_be_cast(call))
    }

    /// A cast to a type of users' that has the function's name (func_get_detail).
    fn may_be_cast(&self, call: &Call) -> bool {
        call.arguments.len() == 1 && self.catalog.user_casts.contains(call.name.as_str())
    }

    /// Arguments of `VARIADIC "any"`: as their output functions print them.
    fn printed(&mut self, function: &Function, arguments: Vec<Typed>) -> Bound<Vec<Typed>> {
        let declared = function.arguments.len().saturating_sub(1);
        arguments
            .into_iter()
            .enumerate()
            .map(|(index, argument)| {
                let pg_type = argument.pg_type();
                // Nothing gives such a parameter a type (parse_param.c, check_parameter_resolution_walker).
                if index >= declared && argument.is_unknown() && matches!(argument.expr, BoundExpr::Parameter { .. }) {
                    return Err(unsupported("a parameter of no type"));
                }
                if index < declared || pg_type == PgType::Unknown {
                    return Ok(argument);
                }
                // A string prints as it is held, char(n) with its blanks.
                if pg_type.is_text_like() {
                    let (collation, _) = self.input_collation(&[&argument], PgType::Text)?;
                    return Ok(argument.relabelled(ExprType { pg_type: PgType::Text, typmod: -1, collation }));
                }
                let unknown = || UpstreamReason::UnknownFunction(format!("output of {}", pg_type.name()).into());
                let output = functions::output_function(pg_type).ok_or_else(unknown)?;
                self.call(output, vec![argument], -1)
            })
            .collect()
    }
}

/// `text(x)`, `date('...')`: a call by the name of a type in pg_catalog that is a cast (func_get_detail).
fn cast_by_name(call: &Call, arguments: &[Typed]) -> Option<PgType> {
    let [argument] = arguments else { return None };
    let to = PgType::ALL.into_iter().find(|to| to.typname() == call.name && *to != PgType::Unknown)?;
    if argument.is_unknown() {
        // A parameter is no constant: only where no function takes it, to a string by its text (find_coercion_pathway).
        let is_string = matches!(to, PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name);
        return (is_string || matches!(argument.expr, BoundExpr::Literal { .. })).then_some(to);
    }
    let cast = functions::cast(argument.pg_type(), to)?;
    matches!(cast.method, CastMethod::BinaryCompatible | CastMethod::ViaText(_)).then_some(to)
}

fn unknown(value: Value) -> Typed {
    let expr_type = ExprType { pg_type: PgType::Unknown, typmod: -1, collation: Collation::None };
    Typed::literal(value, expr_type, CollationStrength::None)
}

fn type_names(arguments: &[Typed]) -> String {
    arguments.iter().map(|argument| argument.pg_type().name()).collect::<Vec<_>>().join(", ")
}

fn unknown_operator(symbol: &str, arguments: &[Typed]) -> UpstreamReason {
    UpstreamReason::UnknownFunction(format!("operator {symbol}({})", type_names(arguments)).into())
}

pub(super) fn unknown_function(call: &Call, arguments: &[Typed]) -> UpstreamReason {
    UpstreamReason::UnknownFunction(format!("{}({})", call.name, type_names(arguments)).into())
}

/// `operand = ANY (array)`, or a condition made of such.
fn has_quantified(condition: &Expr) -> bool {
    match condition {
        Expr::Quantified { .. } => true,
        Expr::And(parts) | Expr::Or(parts) => parts.iter().any(has_quantified),
        Expr::Not(part) | Expr::IsBool { operand: part, .. } => has_quantified(part),
        _ => false,
    }
}
