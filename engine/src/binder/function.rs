//! SQL functions: what they compute in place of the call, where PostgreSQL does the same (clauses.c, inline_function) or where
//! nobody can tell the difference: a STABLE one that reads tables is a subquery in the calling statement's snapshot.
//!
//! A body's names are looked up as the session would (its text is parsed when it runs), unless it was stored parsed. It is
//! bound with stand-ins of the declared types for its arguments, which are put in place afterwards: what an argument is must
//! not decide what the body means.

use std::ops::Range;
use std::sync::Arc;

use crate::binder::coerce::is_collatable;
use crate::binder::expression::{Clause, Level, unknown_function};
use crate::binder::folded::{check_closed, may_choose};
use crate::binder::query::Unknowns;
use crate::binder::relation::{AGGREGATE_BASE, as_outer, outer_index};
use crate::binder::resolve::is_implicitly_coercible;
use crate::binder::scope::Scope;
use crate::binder::typed::{CollationStrength, Typed, children, children_mut, is_same, size};
use crate::binder::view::{PATH, SETTINGS};
use crate::binder::{Binder, Bound, BoundExpr, ExprType, NODES_MAX, Reader, unsupported};
use crate::catalog::functions::{CastContext, Function, LOWER, RANK, RANK_PADDED, TEXT_AT, UPPER, Volatility};
use crate::catalog::{Collation, FunctionEntry, SqlFunction};
use crate::reason::UpstreamReason;
use crate::statement::ast::{Call, CallSchema, Expr, Query, Target};
use crate::statement::{self, second_reading};
use crate::types::{Oid, PgType, Value};

/// Parameters that stand for the arguments of functions, [`ARGUMENTS_MAX`] for each call.
const ARGUMENT_BASE: usize = 1 << 48;
const ARGUMENTS_MAX: usize = 1_000;
/// Calls that one statement may have, those within bodies included.
const CALLS_MAX: usize = 1_000;
/// Functions that call each other.
const DEPTH_MAX: usize = 16;

/// The function whose body is being bound.
pub(super) struct Frame {
    name: Arc<str>,
    names: Vec<Arc<str>>,
    stand_ins: Vec<Typed>,
    is_immutable: bool,
    /// Of the binder's tables, those of bodies within this one.
    nested: Vec<Range<usize>>,
}

/// The arguments of one call, to be put in place of their stand-ins.
struct Given {
    base: usize,
    arguments: Vec<BoundExpr>,
    uses: Vec<usize>,
}

impl Binder<'_> {
    /// The call's value, if it is one of a function that is known by its body. None: the name is not that of such functions
    /// only.
    pub(super) fn sql_function(&mut self, level: &mut Level, call: &Call) -> Bound<Option<Typed>> {
        let catalog = self.catalog;
        let unknown = || UpstreamReason::UnknownFunction(call.name.clone().into());
        let entries = catalog.sql_functions.get(call.name.as_str()).map_or(&[][..], |entries| entries);
        let candidates: Vec<&FunctionEntry> = match &call.schema {
            CallSchema::PgCatalog => return Ok(None),
            CallSchema::Named(schema) => entries.iter().filter(|entry| *entry.schema == **schema).collect(),
            CallSchema::SearchPath => self.in_search_path(entries),
        };
        let is_named = matches!(call.schema, CallSchema::Named(_));
        let candidates = visible(candidates);
        if candidates.is_empty() || candidates.iter().any(|entry| &*entry.schema == "pg_catalog") {
            return if is_named { Err(unknown()) } else { Ok(None) };
        }
        let is_plain = !call.is_star
            && !call.is_distinct
            && call.filter.is_none()
            && call.order_by.is_empty()
            && call.within_group.is_empty()
            && call.over.is_none();
        if !is_plain {
            return Err(unknown());
        }
        let arguments = self.expressions(level, &call.arguments)?;
        let entry = chosen(&candidates, &arguments).ok_or_else(|| unknown_function(call, &arguments))?;
        // A name with its schema is looked up in it by who says it.
        let is_looked_up = matches!(self.reader, Reader::Session | Reader::Body);
        if is_named && is_looked_up && !entry.is_schema_public {
            return Err(UpstreamReason::Privilege(format!("schema {}", entry.schema).into()));
        }
        let function = entry.definition.as_ref().ok_or_else(|| unknown_function(call, &arguments))?;
        self.expanded(level, entry.oid, function, arguments).map(Some)
    }

    /// The call's value, if it means a function that is known by its body among others of its name, PostgreSQL's own too: it takes
    /// exactly these arguments (func_get_detail).
    pub(super) fn overloading(&mut self, level: &mut Level, call: &Call, arguments: Vec<Typed>) -> Bound<Typed> {
        let entries =
            self.catalog.sql_functions.get(call.name.as_str()).filter(|_| call.schema == CallSchema::SearchPath);
        let candidates = visible(self.in_search_path(entries.map_or(&[], |entries| entries)));
        let entry = exact(&candidates, &arguments).ok_or_else(|| unknown_function(call, &arguments))?;
        let function = entry.definition.as_ref().ok_or_else(|| unknown_function(call, &arguments))?;
        self.expanded(level, entry.oid, function, arguments)
    }

    fn in_search_path<'c>(&self, entries: &'c [FunctionEntry]) -> Vec<&'c FunctionEntry> {
        let path = self.context.search_path.iter();
        path.flat_map(|schema| entries.iter().filter(|entry| entry.schema == *schema)).collect()
    }

    fn expanded(&mut self, level: &mut Level, oid: Oid, function: &SqlFunction, arguments: Vec<Typed>) -> Bound<Typed> {
        self.spend(NODES_MAX / CALLS_MAX)?;
        if self.active.contains(&oid) || self.active.len() == DEPTH_MAX {
            return Err(unsupported("a function that calls itself"));
        }
        if self.function.as_ref().is_some_and(|outer| outer.is_immutable) && !function.is_immutable {
            return Err(unsupported("an immutable function that calls another kind"));
        }
        let mut coerced = Vec::with_capacity(arguments.len());
        for (argument, to) in arguments.into_iter().zip(&function.arguments) {
            coerced.push(self.coerce(argument, *to, CastContext::Implicit)?);
        }
        let (collation, strength) = self.input_collation(&coerced.iter().collect::<Vec<_>>(), PgType::Text)?;
        let has_modifiers = coerced.iter().any(|argument| argument.expr_type.typmod != -1);
        let base = ARGUMENT_BASE + self.calls * ARGUMENTS_MAX;
        self.calls += 1;
        let frame = Frame {
            name: Arc::clone(&function.name),
            names: function.names.clone(),
            stand_ins: stand_ins(function, base, collation),
            is_immutable: function.is_immutable,
            nested: Vec::new(),
        };
        let mut given = Given {
            base,
            uses: vec![0; coerced.len()],
            arguments: coerced.into_iter().map(|argument| argument.expr).collect(),
        };
        let expansion = self.expansion(oid, &given.arguments);
        let body = self.body(level, oid, function, frame, &mut given)?;
        if has_modifiers && level.clause == Clause::Target && may_choose(&body.expr, &level.scope) {
            return Err(unsupported("a modifier that hangs on which arm is left"));
        }
        let (collation, strength) = if is_collatable(function.result) {
            (collation, strength.max(CollationStrength::Implicit))
        } else {
            (Collation::None, CollationStrength::None)
        };
        let expr_type = ExprType { pg_type: function.result, typmod: -1, collation };
        let value = body.relabelled(expr_type).expr;
        let value = if function.is_strict { unless_null(value, &given, expr_type) } else { value };
        self.spend(size(&value))?;
        let expr = BoundExpr::Coalesce { arguments: vec![value], call: expansion, expr_type };
        Ok(Typed { expr, expr_type, strength, origin: None })
    }

    /// A number for the call, the same for an equal one (equalfuncs.c: the function and its arguments).
    fn expansion(&mut self, oid: Oid, arguments: &[BoundExpr]) -> u32 {
        let is_equal = |(other, of): &(Oid, Vec<BoundExpr>)| {
            *other == oid && of.len() == arguments.len() && of.iter().zip(arguments).all(|(a, b)| is_same(a, b))
        };
        let known = self.expansions.iter().position(is_equal);
        let at = known.unwrap_or_else(|| {
            self.expansions.push((oid, arguments.to_vec()));
            self.expansions.len() - 1
        });
        at as u32 + 1
    }

    /// The body's value, of the declared type, with the arguments in place.
    fn body(
        &mut self,
        level: &mut Level,
        oid: Oid,
        function: &SqlFunction,
        frame: Frame,
        given: &mut Given,
    ) -> Bound<Typed> {
        let query = query_of(function)?;
        self.note_definition((oid, function.is_strict, function.is_immutable, function.result), &function.body);
        let before = (self.scalars.len(), self.tables.len(), self.commons.len());
        let (context, reader) = (self.context, self.reader.clone());
        let (outer_function, with) = (self.function.replace(frame), std::mem::take(&mut self.with));
        let folds_settings = std::mem::take(&mut self.folds_settings);
        self.active.push(oid);
        if function.is_resolved {
            (self.context.search_path, self.context.settings) = (&*PATH, &SETTINGS);
            self.reader = Reader::View { owner: None };
        } else {
            (self.context.search_path, self.context.settings) = (self.session.search_path, self.session.settings);
            self.reader = Reader::Body;
        }
        let bound = match only_expression(&query) {
            Some(expr) => self.expression_body(expr, function),
            None => self.query_body(level, &query, function, given),
        };
        self.active.pop();
        let frame = std::mem::replace(&mut self.function, outer_function);
        (self.context, self.reader, self.with) = (context, reader, with);
        let folded = std::mem::replace(&mut self.folds_settings, folds_settings);
        let mut bound = bound?;
        if !function.is_resolved {
            if folded {
                // When that is read, with a statement that was prepared, is upstream's affair: with each plan.
                return Err(unsupported("a function with a text that is read by the session's settings"));
            }
            self.confirm(function, before.1, &frame.map_or_else(Vec::new, |frame| frame.nested))?;
        }
        if let Some(outer) = &mut self.function {
            outer.nested.push(before.1..self.tables.len());
        }
        if self.commons.len() != before.2 {
            return Err(unsupported("a function with WITH"));
        }
        let reads = self.tables.len() > before.1 || self.scalars.len() > before.0;
        if reads && function.is_immutable {
            return Err(unsupported("an immutable function that reads tables"));
        }
        if function.is_immutable && !is_immutable(&bound.expr) {
            return Err(unsupported("an immutable function that is none"));
        }
        // Before anything is copied.
        let mut uses = vec![0; given.arguments.len()];
        given.count(&bound.expr, &mut uses);
        for scalar in &mut self.scalars[before.0..] {
            scalar.relation.for_each_expression(&mut |expr| given.count(expr, &mut uses));
        }
        let copies = uses.iter().zip(&given.arguments);
        self.spend(copies.map(|(uses, argument)| uses.saturating_mul(size(argument))).fold(0, usize::saturating_add))?;
        given.put(&mut bound.expr);
        for scalar in &mut self.scalars[before.0..] {
            let uses = given.uses.clone();
            scalar.relation.for_each_expression(&mut |expr| given.put(expr));
            // Computed once, for all rows.
            let is_new =
                |(at, before): (usize, &usize)| given.uses[at] > *before && !is_row_independent(&given.arguments[at]);
            if uses.iter().enumerate().any(is_new) {
                return Err(unsupported("a function whose subquery depends on the row"));
            }
        }
        given.check(function, reads)?;
        Ok(bound)
    }

    /// A second reading of a body that was stored as its author wrote it: of the tables from `first` on, it names those that
    /// `nested` bodies do not.
    fn confirm(&self, function: &SqlFunction, first: usize, nested: &[Range<usize>]) -> Bound<()> {
        let own = (first..self.tables.len()).filter(|at| !nested.iter().any(|range| range.contains(at)));
        let own = own.map(|at| &self.tables[at]).filter(|table| table.reader == Reader::Body);
        let names = own.filter_map(|table| self.catalog.described(table.table)).map(|schema| &*schema.name);
        second_reading::confirm(&function.body, names)
    }

    /// `SELECT expression`.
    fn expression_body(&mut self, expr: &Expr, function: &SqlFunction) -> Bound<Typed> {
        let outer = std::mem::take(&mut self.outer);
        let mut level = Level::new(Scope::default(), Clause::Limit);
        let bound = self.expression(&mut level, expr);
        self.outer = outer;
        let bound = bound?;
        if !level.is_plain() {
            return Err(unsupported("such a function's body"));
        }
        self.assigned(bound, function.result)
    }

    /// As a value of another type is stored in a column, or returned, of this one; a literal of no type yet is a text.
    pub(super) fn assigned(&mut self, mut typed: Typed, to: PgType) -> Bound<Typed> {
        if typed.is_unknown() {
            typed = self.coerce(typed, PgType::Text, CastContext::Implicit)?;
        }
        self.coerce(typed, to, CastContext::Assignment)
    }

    /// Any other query: asked for its first row's value.
    fn query_body(
        &mut self,
        level: &mut Level,
        query: &Query,
        function: &SqlFunction,
        given: &mut Given,
    ) -> Bound<Typed> {
        if !query.with.is_empty() {
            return Err(unsupported("a function with WITH"));
        }
        let depth = self.outer.len();
        // The levels around the call are counted, but none of their names is seen.
        let outer = std::mem::replace(&mut self.outer, vec![Scope::default(); depth + 1]);
        let selected = self.query(query, Unknowns::BecomeText);
        self.outer = outer;
        let mut selected = selected?;
        let [column] = selected.columns.as_slice() else { return Err(unsupported("a function of several columns")) };
        check_closed(column.is_open)?;
        let expr_type = column.expr_type;
        if expr_type.pg_type != function.result {
            return Err(unsupported("a function that converts what it reads"));
        }
        // A column of the level's own or of one around it.
        let is_row_s = |argument: &BoundExpr| match argument {
            BoundExpr::Column { index, .. } => *index < AGGREGATE_BASE || as_outer(*index).is_some(),
            other => is_plain(other),
        };
        if !given.arguments.iter().all(is_row_s) {
            return Err(unsupported("a function that reads tables for a computed argument"));
        }
        let further_in = |argument: &BoundExpr| match argument {
            BoundExpr::Column { index, expr_type } if *index < AGGREGATE_BASE => {
                BoundExpr::Column { index: outer_index(depth, *index), expr_type: *expr_type }
            }
            other => other.clone(),
        };
        let mut within = Given {
            base: given.base,
            arguments: given.arguments.iter().map(further_in).collect(),
            uses: std::mem::take(&mut given.uses),
        };
        selected.relation.for_each_expression(&mut |expr| within.put(expr));
        given.uses = within.uses;
        let strength =
            if expr_type.collation == Collation::None { CollationStrength::None } else { CollationStrength::Implicit };
        let expr = self.value_of(level, selected.relation, expr_type);
        Ok(Typed { expr, expr_type, strength, origin: None })
    }

    /// `$n` in a body.
    pub(super) fn argument(&self, number: usize) -> Option<Bound<Typed>> {
        let frame = self.function.as_ref()?;
        let found = number.checked_sub(1).and_then(|at| frame.stand_ins.get(at)).cloned();
        Some(found.ok_or_else(|| UpstreamReason::UnknownColumn(format!("${number}").into())))
    }

    /// An argument by its name, which no column has (functions.c, sql_fn_post_column_ref).
    pub(super) fn argument_named(&self, scope: &Scope, names: &[String]) -> Bound<Option<Typed>> {
        let Some(frame) = &self.function else { return Ok(None) };
        let name = match names {
            [name] => name,
            [function, name] if **function == *frame.name => name,
            _ => return Ok(None),
        };
        let mut items = self.outer.iter().chain([scope]).flat_map(|scope| &scope.items);
        if items.any(|item| item.name.as_ref() == Some(name) || item.name.as_deref() == Some(&*frame.name)) {
            return Err(unsupported("an argument of a table's name"));
        }
        Ok(frame.names.iter().position(|known| **known == **name).map(|at| frame.stand_ins[at].clone()))
    }
}

/// Of functions that take the same, the first in the path hides the others (namespace.c, FuncnameGetCandidates).
fn visible(candidates: Vec<&FunctionEntry>) -> Vec<&FunctionEntry> {
    let mut seen: Vec<&FunctionEntry> = Vec::new();
    for candidate in candidates {
        let is_hidden = |earlier: &&FunctionEntry| earlier.arguments == candidate.arguments;
        if candidate.is_flexible || !seen.iter().any(is_hidden) {
            seen.push(candidate);
        }
    }
    seen
}

/// The function that the arguments decide for: the only one there is, or the one that takes exactly these
/// (parse_func.c, func_get_detail).
fn chosen<'c>(candidates: &[&'c FunctionEntry], arguments: &[Typed]) -> Option<&'c FunctionEntry> {
    let [only] = candidates else { return exact(candidates, arguments) };
    let takes =
        |(to, of): (&Oid, &Typed)| PgType::from_oid(*to).is_some_and(|to| is_implicitly_coercible(of.pg_type(), to));
    let fits = only.arguments.len() == arguments.len() && only.arguments.iter().zip(arguments).all(takes);
    // A call of one argument may be a cast to a type of that name.
    let may_be_cast = only.is_type_name && arguments.len() == 1 && !is_exact(only, arguments);
    (fits && !may_be_cast).then_some(*only)
}

/// The one that takes exactly these, if all take what they say.
fn exact<'c>(candidates: &[&'c FunctionEntry], arguments: &[Typed]) -> Option<&'c FunctionEntry> {
    let is_plain = candidates.iter().all(|entry| !entry.is_flexible);
    candidates.iter().copied().find(|entry| is_plain && is_exact(entry, arguments))
}

fn is_exact(entry: &FunctionEntry, arguments: &[Typed]) -> bool {
    entry.arguments.len() == arguments.len()
        && entry.arguments.iter().zip(arguments).all(|(to, of)| !of.is_unknown() && of.pg_type().oid() == *to)
}

fn stand_ins(function: &SqlFunction, base: usize, collation: Collation) -> Vec<Typed> {
    let stand_in = |(at, pg_type): (usize, &PgType)| {
        let (collation, strength) = match is_collatable(*pg_type) {
            true => (collation, CollationStrength::Implicit),
            false => (Collation::None, CollationStrength::None),
        };
        let expr_type = ExprType { pg_type: *pg_type, typmod: -1, collation };
        Typed { expr: BoundExpr::Parameter { index: base + at, expr_type }, expr_type, strength, origin: None }
    };
    function.arguments.iter().enumerate().map(stand_in).collect()
}

/// The one query that the body consists of.
fn query_of(function: &SqlFunction) -> Bound<Query> {
    let text = function.body.trim();
    let text = match (function.is_resolved, text.strip_prefix("RETURN "), text.strip_prefix("BEGIN ATOMIC")) {
        (false, ..) => text.to_string(),
        (true, Some(expr), _) => format!("SELECT {expr}"),
        (true, None, Some(list)) => list.trim_end().strip_suffix("END").unwrap_or(list).to_string(),
        (true, None, None) => return Err(unsupported("such a function's body")),
    };
    only_query(&text)?.ok_or_else(|| unsupported("a function of several statements"))
}

/// None: there are several statements.
pub(super) fn only_query(text: &str) -> Bound<Option<Query>> {
    let mut statements = statement::parse(text)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(only), true) => only.query().cloned().map(Some),
        _ => Ok(None),
    }
}

/// What inline_function asks of a query.
pub(super) fn only_expression(query: &Query) -> Option<&Expr> {
    let select = query.bare().filter(|select| select.from.is_empty())?;
    match select.targets.as_slice() {
        [Target::Expr { expr, .. }] => Some(expr),
        _ => None,
    }
}

/// STRICT: NULL if any argument is. All are computed before that is asked, so the one that may fail comes first.
fn unless_null(value: BoundExpr, given: &Given, expr_type: ExprType) -> BoundExpr {
    let (plain, computed): (Vec<&BoundExpr>, Vec<&BoundExpr>) =
        given.arguments.iter().partition(|argument| is_plain(argument));
    let is_null = |argument: &BoundExpr| match argument {
        BoundExpr::Literal { value, .. } if !value.is_null() => None,
        other => Some(BoundExpr::IsNull { operand: Box::new(other.clone()), negated: false }),
    };
    let mut tests: Vec<BoundExpr> = computed.into_iter().chain(plain).filter_map(is_null).collect();
    let any = match tests.len() {
        0 => return value,
        1 => tests.remove(0),
        _ => BoundExpr::Or(tests),
    };
    let null = BoundExpr::Literal { value: Value::Null, expr_type };
    BoundExpr::Case { branches: vec![(any, null)], otherwise: Box::new(value), expr_type }
}

/// It cannot fail.
fn is_plain(argument: &BoundExpr) -> bool {
    matches!(argument, BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. })
}

impl Given {
    /// How often each argument would be put.
    fn count(&self, expr: &BoundExpr, uses: &mut [usize]) {
        if let BoundExpr::Parameter { index, .. } = expr
            && let Some(at) = index.checked_sub(self.base).filter(|at| *at < uses.len())
        {
            uses[at] += 1;
        }
        children(expr).into_iter().for_each(|child| self.count(child, uses));
    }

    /// Puts the arguments in place of their stand-ins.
    fn put(&mut self, expr: &mut BoundExpr) {
        if let BoundExpr::Parameter { index, expr_type } = expr
            && let Some(at) = index.checked_sub(self.base).filter(|at| *at < self.arguments.len())
        {
            self.uses[at] += 1;
            let label = *expr_type;
            *expr = self.arguments[at].clone();
            expr.relabel(label);
            return;
        }
        children_mut(expr).into_iter().for_each(|child| self.put(child));
        // A list is of what is the same for all rows.
        if let BoundExpr::InList { equal, operand, list, negated } = expr
            && !list.iter().all(|item| matches!(item, BoundExpr::Literal { .. } | BoundExpr::Parameter { .. }))
        {
            let expr_type = ExprType { pg_type: PgType::Bool, typmod: -1, collation: Collation::None };
            let equals = std::mem::take(list).into_iter().map(|item| {
                let arguments = vec![(**operand).clone(), item];
                BoundExpr::Call { function: equal, arguments, expr_type }
            });
            let any = BoundExpr::Or(equals.collect());
            *expr = if *negated { BoundExpr::Not(Box::new(any)) } else { any };
        }
    }

    /// Where PostgreSQL computes an argument, and how often, shows if that fails. It is computed once where it stands if the
    /// call is replaced, else before the body; that a strict function's are not NULL is tested first either way. And a column
    /// that the body does not use has been seen by the parser all the same.
    fn check(&self, function: &SqlFunction, reads: bool) -> Bound<()> {
        let is_harmless = |(argument, uses): (&BoundExpr, &usize)| match argument {
            BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => true,
            _ if function.is_strict => true,
            BoundExpr::Column { .. } => *uses > 0,
            _ => *uses == 1 && !reads,
        };
        let all = self.arguments.iter().zip(&self.uses).all(is_harmless);
        let computed = self.arguments.iter().filter(|argument| !is_plain(argument)).count();
        if all && (computed < 2 || !function.is_strict) {
            Ok(())
        } else {
            Err(unsupported("a function that uses its argument in such a way"))
        }
    }
}

/// contain_mutable_functions. What stands for lower, upper, ILIKE and the comparison of text under a collation is immutable to
/// PostgreSQL, as these are; it is stable only in that nothing computed from it outlives an execution.
pub(super) fn is_immutable(expr: &BoundExpr) -> bool {
    let stands_for_immutable = |function: &'static Function| {
        [&LOWER, &UPPER, &RANK, &RANK_PADDED, &TEXT_AT].into_iter().any(|known| std::ptr::eq(known, function))
    };
    let is_own = match expr {
        BoundExpr::Call { function, .. } => {
            function.volatility == Volatility::Immutable || stands_for_immutable(function)
        }
        _ => true,
    };
    is_own && children(expr).into_iter().all(is_immutable)
}

fn is_row_independent(expr: &BoundExpr) -> bool {
    !matches!(expr, BoundExpr::Column { .. }) && children(expr).into_iter().all(is_row_independent)
}

/// Whether a stand-in has been left.
pub(super) fn has_stand_in(expr: &BoundExpr) -> bool {
    matches!(expr, BoundExpr::Parameter { index, .. } if *index >= ARGUMENT_BASE)
        || children(expr).into_iter().any(has_stand_in)
}
