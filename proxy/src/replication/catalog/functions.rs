//! Functions written in SQL whose calls may be replaced by what they compute, with whatever else goes by their names.
//!
//! Which qualify: clauses.c, inline_function, as far as the catalog tells. The binder judges the body.

use std::collections::HashMap;
use std::sync::Arc;

use freshet_engine::catalog::{FunctionEntry, SqlFunction};
use freshet_engine::types::{Oid, PgType};
use tokio_postgres::{Row, Transaction};

use crate::replication::catalog::texts::Texts;
use crate::upstream::UpstreamError;

/// 14: language SQL (pg_language.dat). Who may not call it, or may by a grant of their own only, is upstream's to tell.
const FUNCTIONS: &str = "\
    WITH simple AS MATERIALIZED (
        SELECT oid, proname FROM pg_proc
         WHERE oid >= 16384 AND prolang = 14 AND prokind = 'f' AND NOT prosecdef AND NOT proretset
           AND provolatile IN ('i', 's') AND proconfig IS NULL AND proargmodes IS NULL AND provariadic = 0
           AND length(prosrc) <= 16384
           AND (proacl IS NULL
                OR EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0 AND privilege_type = 'EXECUTE')))
    SELECT p.proname::text, nspname::text, p.oid, p.proargtypes::oid[] AS arguments,
           pronargdefaults > 0 OR provariadic <> 0 AS is_flexible,
           EXISTS (SELECT FROM aclexplode(nspacl) WHERE grantee = 0 AND privilege_type = 'USAGE') AS is_schema_public,
           EXISTS (SELECT FROM pg_type t WHERE t.typname = p.proname) AS is_type_name,
           s.oid IS NOT NULL AS is_simple, prorettype, proargnames, prosrc, prosqlbody IS NOT NULL AS is_resolved,
           provolatile = 'i' AS is_immutable, proisstrict
      FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace LEFT JOIN simple s ON s.oid = p.oid
     WHERE p.proname IN (SELECT proname FROM simple)";

pub(super) async fn load(
    transaction: &Transaction<'_>,
    bodies: &Texts,
) -> Result<HashMap<Arc<str>, Vec<FunctionEntry>>, UpstreamError> {
    let mut functions: HashMap<Arc<str>, Vec<FunctionEntry>> = HashMap::new();
    for row in transaction.query(FUNCTIONS, &[]).await? {
        let name: Arc<str> = row.get::<_, &str>(0).into();
        let arguments: Vec<Oid> = row.get("arguments");
        let entry = FunctionEntry {
            schema: row.get::<_, &str>(1).into(),
            oid: row.get(2),
            definition: definition(&row, &name, &arguments, bodies).map(Arc::new),
            arguments,
            is_flexible: row.get("is_flexible"),
            is_schema_public: row.get("is_schema_public"),
            is_type_name: row.get("is_type_name"),
        };
        functions.entry(name).or_default().push(entry);
    }
    Ok(functions)
}

fn definition(row: &Row, name: &Arc<str>, arguments: &[Oid], bodies: &Texts) -> Option<SqlFunction> {
    let is_resolved: bool = row.get("is_resolved");
    let body: Option<&str> = match is_resolved {
        true => bodies.read.get(&row.get("oid")).map(String::as_str),
        false => row.get("prosrc"),
    };
    let names: Option<Vec<String>> = row.get("proargnames");
    let body = body.filter(|_| row.get("is_simple"))?;
    Some(SqlFunction {
        name: Arc::clone(name),
        arguments: arguments.iter().map(|oid| held(*oid)).collect::<Option<_>>()?,
        names: names.unwrap_or_default().iter().map(|name| name.as_str().into()).collect(),
        result: held(row.get("prorettype"))?,
        body: body.into(),
        is_resolved,
        is_immutable: row.get("is_immutable"),
        is_strict: row.get("proisstrict"),
    })
}

/// Types that functions are bound with.
fn held(oid: Oid) -> Option<PgType> {
    let is_plain = |pg_type: &PgType| !matches!(pg_type, PgType::Unknown | PgType::Name | PgType::Array(_));
    PgType::from_oid(oid).filter(is_plain)
}
