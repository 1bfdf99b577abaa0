//! The values of a Bind, or of the literals that a query string has in place of parameters, read by their types.

use freshet_engine::Shared;
use freshet_engine::planner::Plan;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::types::text::ParseError;
use freshet_engine::types::{FormatSettings, PgType, Value, binary, text};

use crate::session::local::Request;
use crate::wire::extended::{are_formats, format_at};

/// The parameter values by their types' input functions; anything doubtful is upstream's.
pub(super) fn parameters(
    plan: &Plan,
    shared: Option<&Shared>,
    request: &Request<'_>,
) -> Result<Vec<Value>, UpstreamReason> {
    if let Some(bind) = &request.unit.bind
        && !(are_formats(bind.parameter_formats, bind.parameter_count)
            && are_formats(bind.result_formats, plan.output.len()))
    {
        return Err(UpstreamReason::UnitForm("format codes"));
    }
    if let Some(shared) = shared {
        let values = shared.literals.iter().zip(&plan.parameters);
        return values.map(|(literal, pg_type)| parameter(literal.as_bytes(), *pg_type, 0, request.format)).collect();
    }
    let Some(bind) = &request.unit.bind else {
        let none = plan.parameters.is_empty();
        return if none { Ok(Vec::new()) } else { Err(UpstreamReason::UnitForm("parameters in a simple query")) };
    };
    if bind.parameter_count != plan.parameters.len() {
        return Err(UpstreamReason::UnitForm("another number of parameters"));
    }
    let values = bind.values().zip(&plan.parameters).enumerate();
    values
        .map(|(at, (raw, pg_type))| {
            raw.map_or(Ok(Value::Null), |raw| {
                parameter(raw, *pg_type, format_at(bind.parameter_formats, at), request.format)
            })
        })
        .collect()
}

fn parameter(raw: &[u8], pg_type: PgType, format: i16, settings: &FormatSettings) -> Result<Value, UpstreamReason> {
    let value = match format {
        0 => match std::str::from_utf8(raw) {
            // PostgreSQL: pg_verify_mbstr, which takes no NUL, either.
            Ok(raw) if !raw.contains('\0') => text::parse(pg_type, -1, raw, settings),
            _ => return Err(UpstreamReason::LocalError("a parameter is not UTF-8 without NUL".into())),
        },
        1 => binary::decode(pg_type, -1, raw),
        _ => return Err(UpstreamReason::UnitForm("an unknown parameter format")),
    };
    value.map_err(|error| match error {
        ParseError::DependsOnTime => UpstreamReason::Volatile("a parameter depends on the time".into()),
        ParseError::Raises(what) | ParseError::Beyond(what) => UpstreamReason::LocalError(what.into()),
    })
}
