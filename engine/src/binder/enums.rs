//! Enums: labels under the operators and aggregates of anyenum (enum.c), and casts to and from text, which go by the input and output
//! functions (parse_coerce.c, find_coercion_pathway).
//!
//! Equal labels are equal values, so equality is that of text by bytes; order is that of the labels' places.

use crate::binder::coerce::ranked_comparison;
use crate::binder::expression::unknown_function;
use crate::binder::typed::{CollationStrength, Typed};
use crate::binder::{AggregateCall, Binder, Bound, BoundExpr, ExprType, Reader, unsupported};
use crate::catalog::functions::{self, AggregateFunction, CastContext, Function, LABEL};
use crate::catalog::order::Order;
use crate::catalog::{Collation, EnumEntry};
use crate::reason::UpstreamReason;
use crate::statement::ast::{Call, TypeName};
use crate::types::{EnumType, PgType};

/// How labels are compared for equality.
const BYTES: ExprType = ExprType { pg_type: PgType::Text, typmod: -1, collation: Collation::C };

/// The first enum type among these.
pub(super) fn enum_among<'t>(operands: impl IntoIterator<Item = &'t Typed>) -> Option<EnumType> {
    operands.into_iter().find_map(|operand| match operand.pg_type() {
        PgType::Enum(labels) => Some(labels),
        _ => None,
    })
}

impl Binder<'_> {
    /// The enum type that a name means. None: it may mean another type, or none.
    pub(super) fn enum_named(&self, written: &TypeName) -> Option<PgType> {
        let is_meant = |entry: &&EnumEntry| {
            let in_schema = match &written.schema {
                Some(schema) => *entry.schema == **schema,
                None => entry.is_only && self.context.search_path.contains(&entry.schema),
            };
            // Whoever names it must be able to look into its schema; in the text of a view that is done.
            let may_look = entry.is_schema_public || matches!(self.reader, Reader::View { .. });
            entry.labels.name() == written.name && in_schema && may_look
        };
        let entry = self.catalog.enum_types.values().filter(|_| !written.is_system).find(is_meant)?;
        Some(PgType::Enum(entry.labels))
    }

    /// All of one enum, untyped ones read as its labels. No other operator takes an enum, unless users define one.
    fn labels_of(&mut self, symbol: &str, labels: EnumType, operands: Vec<Typed>) -> Bound<Vec<Typed>> {
        let types: Vec<PgType> = operands.iter().map(Typed::pg_type).collect();
        if self.catalog.user_operators.may_take(symbol, &types) {
            return Err(unsupported(format!("operator {symbol} of {}", labels.name())));
        }
        let of = PgType::Enum(labels);
        let operands = operands.into_iter().map(|operand| self.coerce(operand, of, CastContext::Implicit));
        operands.collect()
    }

    pub(super) fn enum_equality(
        &mut self,
        labels: EnumType,
        operands: Vec<Typed>,
    ) -> Bound<(&'static Function, Typed, Typed)> {
        let operands = self.labels_of("=", labels, operands)?;
        let mut operands = operands.into_iter().map(|operand| operand.relabelled(BYTES));
        let (Some(left), Some(right)) = (operands.next(), operands.next()) else {
            return Err(unsupported("equality"));
        };
        let of_text = [PgType::Text, PgType::Text];
        let equal = functions::operators("=").iter().find(|known| known.arguments == of_text);
        Ok((*equal.ok_or_else(|| unsupported("equality"))?, left, right))
    }

    pub(super) fn enum_comparison(&mut self, symbol: &str, labels: EnumType, operands: Vec<Typed>) -> Bound<Typed> {
        match symbol {
            "=" | "<>" => {
                let operands = self.labels_of(symbol, labels, operands)?;
                let operands = operands.into_iter().map(|operand| operand.relabelled(BYTES)).collect();
                let of_text = [PgType::Text, PgType::Text];
                let comparison = functions::operators(symbol).iter().find(|known| known.arguments == of_text);
                self.call(comparison.ok_or_else(|| unsupported("equality"))?, operands, -1)
            }
            "<" | "<=" | ">" | ">=" => {
                let operands = self.labels_of(symbol, labels, operands)?;
                ranked_comparison(symbol, operands, Order::Labels(labels))
            }
            _ => Err(unsupported(format!("operator {symbol} of {}", labels.name()))),
        }
    }

    /// Another item of a list of which the first has been compared: of the enum if there is one, else of the type given.
    pub(super) fn listed(&mut self, item: Typed, labels: Option<EnumType>, element: PgType) -> Bound<Typed> {
        match labels {
            Some(labels) => {
                let item = self.coerce(item, PgType::Enum(labels), CastContext::Implicit)?;
                Ok(item.relabelled(BYTES))
            }
            None => self.coerce(item, element, CastContext::Implicit),
        }
    }

    /// min and max of an enum. None: the call is another one.
    pub(super) fn enum_extreme(
        &mut self,
        call: &Call,
        arguments: &[Typed],
    ) -> Option<Bound<(AggregateCall, CollationStrength)>> {
        let function = match call.name.as_str() {
            "min" => AggregateFunction::Min,
            "max" => AggregateFunction::Max,
            _ => return None,
        };
        let [argument] = arguments else { return None };
        enum_among(arguments)?;
        if call.is_star || self.is_contested_for(call, &[argument.pg_type()]) {
            return Some(Err(unknown_function(call, arguments)));
        }
        // The smallest and the largest are the same however often, and in which order, values come.
        let aggregate = AggregateCall {
            function,
            argument: Some(argument.expr.clone()),
            extra: Vec::new(),
            is_distinct: call.is_distinct,
            order: Vec::new(),
            filter: None,
            expr_type: ExprType { typmod: -1, ..argument.expr_type },
        };
        Some(Ok((aggregate, CollationStrength::None)))
    }

    /// A cast to a string type, by enum_out: as an assignment or written out (find_coercion_pathway).
    pub(super) fn label_as_text(&mut self, typed: Typed, to: PgType, context: CastContext) -> Bound<Typed> {
        let is_string = matches!(to, PgType::Text | PgType::Varchar | PgType::Bpchar);
        if !is_string || context < CastContext::Assignment {
            let from = typed.pg_type().name();
            return Err(UpstreamReason::UnknownFunction(format!("cast from {from} to {}", to.name()).into()));
        }
        let (expr_type, strength) = self.plain_type(to)?;
        Ok(Typed { strength, ..typed.relabelled(expr_type) })
    }

    /// The reverse, by enum_in: only as written out.
    pub(super) fn text_as_label(&mut self, typed: Typed, labels: EnumType, context: CastContext) -> Bound<Typed> {
        let is_string = matches!(typed.pg_type(), PgType::Text | PgType::Varchar);
        if !is_string || context < CastContext::Explicit {
            let from = typed.pg_type().name();
            return Err(UpstreamReason::UnknownFunction(format!("cast from {from} to {}", labels.name()).into()));
        }
        let expr_type = ExprType { pg_type: PgType::Enum(labels), typmod: -1, collation: Collation::None };
        let arguments = vec![typed.expr, BoundExpr::collation(labels.number())];
        let expr = BoundExpr::Call { function: &LABEL, arguments, expr_type };
        Ok(Typed { expr, expr_type, strength: CollationStrength::None, origin: None })
    }
}
