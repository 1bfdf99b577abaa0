//! DuckDB, where its library can be had.

use freshet_bench_duckdb::{DuckDb, fetch};

use crate::console::say;

/// None, with the reason said: its columns are left out.
pub(crate) fn load() -> Option<DuckDb> {
    match fetch::library().and_then(|path| DuckDb::load(&path)) {
        Ok(library) => Some(library),
        Err(error) => {
            say(&format!("DuckDB: skipped: {error}"));
            None
        }
    }
}

pub(crate) fn version(duckdb: Option<&DuckDb>) -> String {
    duckdb.map_or_else(|| "none".into(), DuckDb::version)
}
