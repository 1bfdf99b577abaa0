//! Calls in named notation and with arguments left out (PostgreSQL: Calling Functions, func_get_detail), and the two casts
//! that make a number of a digest.

use crate::binder::expression::{Level, unknown_function};
use crate::binder::typed::{CollationStrength, Typed};
use crate::binder::{Binder, Bound, ExprType};
use crate::catalog::Collation;
use crate::catalog::functions::{BITS_INT4, BITS_INT8, CastContext};
use crate::statement::ast::{Call, Expr, TypeName};
use crate::types::{PgType, Value};

/// The parameters of pg_catalog's functions that have names (pg_proc.proargnames) and are computed here.
pub(super) fn parameter_names(function: &str) -> Option<&'static [&'static str]> {
    Some(match function {
        "make_date" => &["year", "month", "day"],
        "make_time" => &["hour", "min", "sec"],
        "make_timestamp" => &["year", "month", "mday", "hour", "min", "sec"],
        "make_timestamptz" => &["year", "month", "mday", "hour", "min", "sec", "timezone"],
        "make_interval" => &["years", "months", "weeks", "days", "hours", "mins", "secs"],
        _ => return None,
    })
}

/// bit, bit(n).
pub(super) fn is_bit(written: &TypeName) -> bool {
    written.name == "bit" && written.is_system && !written.is_array
}

impl Binder<'_> {
    /// The arguments in order of the parameters, with the defaults of those that are left out.
    pub(super) fn completed(&mut self, level: &mut Level, call: &Call, names: &[&str]) -> Bound<Vec<Typed>> {
        let is_named = call.arguments.iter().any(|argument| matches!(argument, Expr::Named(..)));
        let has_defaults = call.name == "make_interval";
        let is_short = has_defaults && call.arguments.len() < names.len() && !self.is_contested(call);
        if !is_named && !is_short {
            return self.expressions(level, &call.arguments);
        }
        // Of what is named, users' functions cannot be told apart by types alone.
        if self.is_contested(call) || call.arguments.len() > names.len() {
            return Err(unknown_function(call, &[]));
        }
        let mut slots: Vec<Option<Typed>> = vec![None; names.len()];
        let mut is_positional = true;
        for (at, argument) in call.arguments.iter().enumerate() {
            let (place, value) = match argument {
                Expr::Named(name, value) => {
                    is_positional = false;
                    (names.iter().position(|known| known == name), &**value)
                }
                value => (Some(at).filter(|_| is_positional), value),
            };
            let place = place.filter(|place| slots[*place].is_none()).ok_or_else(|| unknown_function(call, &[]))?;
            slots[place] = Some(self.expression(level, value)?);
        }
        if has_defaults {
            let last = names.len() - 1;
            let zero = |place| match place == last {
                true => (Value::Float8(0.0), PgType::Float8),
                false => (Value::Int4(0), PgType::Int4),
            };
            for (place, slot) in slots.iter_mut().enumerate() {
                let (value, pg_type) = zero(place);
                let expr_type = ExprType { pg_type, typmod: -1, collation: Collation::None };
                slot.get_or_insert_with(|| Typed::literal(value, expr_type, CollationStrength::None));
            }
        }
        let given = slots.iter().take_while(|slot| slot.is_some()).count();
        if slots[given..].iter().any(Option::is_some) {
            return Err(unknown_function(call, &[]));
        }
        Ok(slots.into_iter().flatten().collect())
    }

    /// `text::bit(n)::bigint`, or integer, in one step; else by way of bits.
    pub(super) fn number_of_bits(
        &mut self,
        level: &mut Level,
        text: &Expr,
        bits: &TypeName,
        to: &TypeName,
    ) -> Bound<Typed> {
        let (to, typmod) = self.type_named(to)?;
        let text = self.expression(level, text)?;
        let is_text = matches!(text.pg_type(), PgType::Text | PgType::Varchar);
        let shortcut = match (bits.modifiers.as_slice(), to) {
            ([length @ 1..=64], PgType::Int8) if is_text => Some((*length, &BITS_INT8)),
            ([length @ 1..=32], PgType::Int4) if is_text => Some((*length, &BITS_INT4)),
            _ => None,
        };
        let Some((length, function)) = shortcut else {
            let (bit, length) = self.type_named(bits)?;
            let bits = self.cast(text, bit, length)?;
            return self.cast(bits, to, typmod);
        };
        let text = self.coerce(text, PgType::Text, CastContext::Implicit)?;
        let expr_type = ExprType { pg_type: PgType::Int4, typmod: -1, collation: Collation::None };
        let length = Typed::literal(Value::Int4(length), expr_type, CollationStrength::None);
        self.call(function, vec![text, length], -1)
    }
}
