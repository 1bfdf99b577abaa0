//! The name of an output column without a label: FigureColname of parse_target.c.

use crate::statement::ast::{Body, Expr, Query, Select, SqlValueFunction, Target};

/// The name, `?column?` if nothing suggests one.
pub(super) fn output_name(expr: &Expr) -> &str {
    suggested(expr).map_or("?column?", |suggestion| suggestion.name)
}

struct Suggestion<'a> {
    name: &'a str,
    /// A weak one (of a cast or CASE) gives way to any other.
    is_strong: bool,
}

fn strong(name: &str) -> Option<Suggestion<'_>> {
    Some(Suggestion { name, is_strong: true })
}

/// FigureColnameInternal.
fn suggested(expr: &Expr) -> Option<Suggestion<'_>> {
    match expr {
        Expr::Column(names) => strong(names.last()?),
        Expr::WholeRow(name) => strong(name),
        Expr::Call(call) => strong(&call.name),
        Expr::NullIf(..) => strong("nullif"),
        Expr::Coalesce(_) => strong("coalesce"),
        Expr::Extreme { greatest, .. } => strong(if *greatest { "greatest" } else { "least" }),
        Expr::SqlValue { function, .. } => strong(match function {
            SqlValueFunction::CurrentDate => "current_date",
            SqlValueFunction::CurrentTime => "current_time",
            SqlValueFunction::CurrentTimestamp => "current_timestamp",
            SqlValueFunction::LocalTime => "localtime",
            SqlValueFunction::LocalTimestamp => "localtimestamp",
        }),
        Expr::Collate { operand, .. } => suggested(operand),
        Expr::Cast { operand, to } => stronger(suggested(operand), &to.name),
        Expr::Case { otherwise, .. } => stronger(otherwise.as_deref().and_then(suggested), "case"),
        Expr::Row { .. } => strong("row"),
        Expr::Exists(_) => strong("exists"),
        Expr::Grouping(_) => strong("grouping"),
        Expr::Array(_) | Expr::ArrayOf(_) => strong("array"),
        Expr::Subscript { array, .. } | Expr::Slice { array, .. } => suggested(array),
        // The name of the subquery's column.
        Expr::Subquery(query) => match leftmost(query) {
            Some(select) => match select.targets.first()? {
                Target::Expr { label: Some(label), .. } => strong(label),
                Target::Expr { expr, label: None } => strong(output_name(expr)),
                Target::Star(_) => None,
            },
            None => strong("column1"),
        },
        Expr::InSubquery { .. }
        | Expr::Quantified { .. }
        | Expr::Number(_)
        | Expr::String(_)
        // Before PostgreSQL 15 it is a cast, named bool; upstream's description of the shape tells.
        | Expr::Bool(_)
        | Expr::Null
        | Expr::Named(..)
        | Expr::Parameter(_)
        | Expr::Operator { .. }
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull { .. }
        | Expr::IsBool { .. }
        | Expr::IsDistinct { .. }
        | Expr::Between { .. }
        | Expr::In { .. } => None,
    }
}

/// The SELECT that names the columns; None: VALUES does.
fn leftmost(query: &Query) -> Option<&Select> {
    match &query.body {
        Body::Select(select) => Some(select),
        Body::Values(_) => None,
        Body::Set { left, .. } => leftmost(left),
    }
}

/// The operand's suggestion if it is strong, else the weak `name`.
fn stronger<'a>(operand: Option<Suggestion<'a>>, name: &'a str) -> Option<Suggestion<'a>> {
    operand.filter(|suggestion| suggestion.is_strong).or(Some(Suggestion { name, is_strong: false }))
}
