//! The settings that an answer can depend on: asked of upstream by one probe on the client's own session, interned.
//!
//! PostgreSQL reports only some settings by ParameterStatus; role, search_path and most formats it does not. So after
//! anything that may have changed them, and before the next local answer, the session asks. The probe is one unit of
//! the extended protocol with names of its own, closed within the unit, so that it disturbs neither the unnamed
//! statement nor the unnamed portal; its replies never reach the client.

use std::collections::HashMap;
use std::sync::Arc;

use freshet_engine::types::{ByteaOutput, DateOrder, DateStyle, FormatSettings, IntervalStyle};
use parking_lot::Mutex;

use crate::session::state::Isolation;
use crate::wire::extended::{SYNC, Target, write_bind, write_close, write_execute, write_parse};
use crate::wire::frame::Frames;
use crate::wire::query::data_row;

/// Equal exactly for equal [`SettingsValues`]: what keys of cached replies carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SettingsId(pub u64);

/// The values themselves, as `current_setting` shows them, in the order of [`NAMES`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SettingsValues {
    /// `current_user`: the effective role, after SET ROLE.
    pub role: String,
    /// `current_schemas(true)`: the effective search path with the implicit schemas, existing ones only.
    pub search_path: Vec<Arc<str>>,
    /// There are temporary tables or types, which win every look-up.
    pub has_temporary_objects: bool,
    values: Vec<String>,
}

/// Known, certain settings of a session.
#[derive(Debug)]
pub struct SessionSettings {
    pub id: SettingsId,
    pub values: SettingsValues,
    /// What freshet reproduces of them; the reason if it does not reproduce one of the values.
    pub format: Result<FormatSettings, String>,
    pub default_isolation: Option<Isolation>,
}

/// Every setting that can change an answer's bytes or meaning, or what a transaction sees.
const NAMES: [&str; 19] = [
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "extra_float_digits",
    "bytea_output",
    "client_encoding",
    "standard_conforming_strings",
    "default_transaction_isolation",
    "row_security",
    "transform_null_equals",
    "timezone_abbreviations",
    "array_nulls",
    "xmloption",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "server_encoding",
    "search_path",
    "session_replication_role",
];

impl SessionSettings {
    pub fn role(&self) -> &str {
        &self.values.role
    }

    /// One of [`NAMES`].
    pub fn value(&self, name: &str) -> Option<&str> {
        let index = NAMES.iter().position(|known| *known == name)?;
        self.values.values.get(index).map(String::as_str)
    }
}

/// Gives equal values equal numbers, for all sessions of the program.
#[derive(Default)]
pub struct Interner {
    known: Mutex<HashMap<SettingsValues, Arc<SessionSettings>>>,
}

/// Above this many different states the table starts anew with new numbers: a client that makes up role or schema
/// names must not fill memory.
const STATES_MAX: usize = 10_000;

impl Interner {
    pub fn intern(&self, values: SettingsValues) -> Arc<SessionSettings> {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let mut known = self.known.lock();
        if let Some(found) = known.get(&values) {
            return Arc::clone(found);
        }
        if known.len() >= STATES_MAX {
            known.clear();
        }
        let id = SettingsId(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let settings = Arc::new(SessionSettings {
            id,
            format: reproduce(&values),
            default_isolation: Isolation::parse(&values.values[7]),
            values: values.clone(),
        });
        known.insert(values, Arc::clone(&settings));
        settings
    }
}

/// The probe's name in the session, gone again when the probe is over.
const PROBE_NAME: &[u8] = b"freshet_probe";

/// Appends the probe: six messages whose replies are five and ReadyForQuery.
pub fn write_probe(out: &mut Vec<u8>) {
    let settings: Vec<String> = NAMES.iter().map(|name| format!("pg_catalog.current_setting('{name}')")).collect();
    // To ask for the schemas of a path that begins with pg_temp would create it, which shows: PREPARE TRANSACTION no
    // longer fails in the transaction that would else have done so. Such a path counts as having temporary objects.
    let would_create = "(pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0 AND \
                        pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.~) 'pg_temp')";
    let sql = format!(
        "SELECT pg_catalog.json_build_array(current_user, \
         CASE WHEN {would_create} THEN '{{}}'::pg_catalog.name[] ELSE pg_catalog.current_schemas(true) END, \
         CASE WHEN {would_create} THEN true \
         WHEN pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0 THEN false ELSE EXISTS (SELECT 1 FROM \
         pg_catalog.pg_class WHERE relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) OR EXISTS \
         (SELECT 1 FROM pg_catalog.pg_type WHERE typnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) \
         END, {})",
        settings.join(", ")
    );
    write_parse(out, PROBE_NAME, sql.as_bytes());
    write_bind(out, PROBE_NAME, PROBE_NAME);
    write_execute(out, PROBE_NAME);
    write_close(out, Target::Portal(PROBE_NAME));
    write_close(out, Target::Statement(PROBE_NAME));
    out.extend_from_slice(SYNC);
}

/// Reads the probe's reply; None if it failed or is not what was asked for.
pub fn read_probe(reply: &[u8]) -> Option<SettingsValues> {
    let row = Frames::new(reply).find(|frame| frame.tag == b'D')?;
    let json = data_row(row.body).next()??;
    let items: Vec<serde_json::Value> = serde_json::from_slice(json).ok()?;
    let [role, path, has_temporary, values @ ..] = items.as_slice() else {
        return None;
    };
    let text = |value: &serde_json::Value| value.as_str().map(str::to_string);
    let values: Vec<String> = values.iter().map(text).collect::<Option<_>>()?;
    (values.len() == NAMES.len()).then_some(())?;
    let path = path.as_array()?.iter().map(|schema| schema.as_str().map(Arc::from)).collect::<Option<_>>()?;
    Some(SettingsValues {
        role: text(role)?,
        search_path: path,
        has_temporary_objects: has_temporary.as_bool()?,
        values,
    })
}

/// The values as the engine understands them, or the one it does not reproduce.
fn reproduce(values: &SettingsValues) -> Result<FormatSettings, String> {
    let value = |name: &str| {
        let index = NAMES.iter().position(|known| *known == name).unwrap_or_default();
        values.values.get(index).map_or("", String::as_str)
    };
    let refuse = |name: &str| format!("{name} = {}", value(name));
    let required = [
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
        ("transform_null_equals", "off"),
        ("timezone_abbreviations", "Default"),
    ];
    for (name, expected) in required {
        if value(name) != expected {
            return Err(refuse(name));
        }
    }
    if values.has_temporary_objects {
        return Err("temporary tables".to_string());
    }
    let (style, order) = value("DateStyle").split_once(", ").ok_or_else(|| refuse("DateStyle"))?;
    Ok(FormatSettings {
        date_style: match style {
            "ISO" => DateStyle::Iso,
            "SQL" => DateStyle::Sql,
            "Postgres" => DateStyle::Postgres,
            "German" => DateStyle::German,
            _ => return Err(refuse("DateStyle")),
        },
        date_order: match order {
            "MDY" => DateOrder::Mdy,
            "DMY" => DateOrder::Dmy,
            "YMD" => DateOrder::Ymd,
            _ => return Err(refuse("DateStyle")),
        },
        interval_style: match value("IntervalStyle") {
            "postgres" => IntervalStyle::Postgres,
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => return Err(refuse("IntervalStyle")),
        },
        // Names of the tz database only: POSIX strings, fixed offsets and abbreviations are upstream's to interpret.
        time_zone: jiff::tz::TimeZone::get(value("TimeZone")).map_err(|_| refuse("TimeZone"))?,
        extra_float_digits: value("extra_float_digits").parse().map_err(|_| refuse("extra_float_digits"))?,
        bytea_output: match value("bytea_output") {
            "hex" => ByteaOutput::Hex,
            "escape" => ByteaOutput::Escape,
            _ => return Err(refuse("bytea_output")),
        },
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::wire::query::{write_data_row, write_value};

    /// An ordinary session's settings.
    pub(crate) fn some_values() -> SettingsValues {
        read_probe(&reply("UTC", false)).expect("well-formed")
    }

    fn reply(time_zone: &str, temporary: bool) -> Vec<u8> {
        let json = format!(
            r#"["ann", ["pg_catalog", "public"], {temporary}, "{time_zone}", "ISO, MDY", "postgres", "1", "hex", "UTF8", "on",
            "read committed", "on", "off", "Default", "on", "content", "C", "C", "C", "UTF8", "\"$user\", public", "origin"]"#
        );
        let mut out = Vec::new();
        write_data_row(&mut out, 1, |out| write_value(out, Some(json.as_bytes())));
        out
    }

    #[test]
    fn equal_settings_have_equal_numbers() {
        let interner = Interner::default();
        let read = |zone, temporary| interner.intern(read_probe(&reply(zone, temporary)).expect("well-formed"));
        let (first, second, third) = (read("UTC", false), read("UTC", false), read("Europe/Berlin", false));
        assert_eq!(first.id, second.id);
        assert_ne!(first.id, third.id);
        assert_eq!(first.role(), "ann");
        assert_eq!(first.value("TimeZone"), Some("UTC"));
        assert_eq!(first.default_isolation, Some(Isolation::ReadCommitted));
        assert!(first.format.is_ok());
    }

    #[test]
    fn what_is_not_reproduced_is_named() {
        let interner = Interner::default();
        let of = |zone, temporary| interner.intern(read_probe(&reply(zone, temporary)).expect("well-formed"));
        assert_eq!(of("<+03>-03", false).format.as_ref().err().map(String::as_str), Some("TimeZone = <+03>-03"));
        assert_eq!(of("UTC", true).format.as_ref().err().map(String::as_str), Some("temporary tables"));
    }

    #[test]
    fn a_reply_that_is_not_the_probes_is_refused() {
        assert_eq!(read_probe(b""), None);
        let mut out = Vec::new();
        write_data_row(&mut out, 1, |out| write_value(out, Some(b"[1]")));
        assert_eq!(read_probe(&out), None);
    }
}
