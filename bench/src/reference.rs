//! DuckDB, where its library can be had.

use freshet_bench_duckdb::{DuckDb, fetch};

/// Or the reason why its columns are left out.
pub(crate) fn load() -> (Option<DuckDb>, Option<String>) {
    match fetch::library().and_then(|path| DuckDb::load(&path)) {
        Ok(library) => (Some(library), None),
        Err(error) => (None, Some(error.to_string())),
    }
}

pub(crate) fn version(duckdb: Option<&DuckDb>) -> String {
    duckdb.map_or_else(|| "none".into(), DuckDb::version)
}
