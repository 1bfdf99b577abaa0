//! The settings that an answer can depend on, interned; and the probe that asks upstream for them.
//!
//! [`crate::session::tracker`] follows most changes without asking. It must ask after log-in, after what cannot be read
//! from the text (functions, DO, CALL, definitions), for values that PostgreSQL puts in a form of its own and does not
//! report, and where the search path in force is not known yet. The probe is one unit of the extended protocol with
//! names of its own, closed within the unit, so that it disturbs neither the unnamed statement nor the unnamed portal;
//! its replies never reach the client.
//!
//! # Within a transaction block
//!
//! It is sent there too, just before a read that would be answered locally, where it does no more than that read would
//! have done upstream. Only under READ COMMITTED: under REPEATABLE READ it would fix the snapshot. Not in a failed block,
//! where it would only be refused; not after a write or lock, since nothing is answered locally then; not with a
//! `statement_timeout` so short that it might cut the probe off and with it fail the block, nor where an operator has taken from
//! roles what it reads ([`PROBED`]). What remains of it are a
//! SELECT in `pg_stat_activity` and AccessShareLocks on `pg_class` and `pg_type` until the block's end. Those make the
//! backend take note of schemas that were made meanwhile, which reading `current_schemas` alone would not.
//!
//! Where the settings are known and only the block's now() is not, that alone is asked ([`Question::Time`]), under the same
//! conditions: no lock remains, and it costs upstream a small part. Before what sets the transaction's modes it is asked in any
//! case: the block fails either way then.
//!
//! Settings of an application's own (`a.b`) are asked for one by one, where a statement that would be answered locally names them
//! ([`Question::Custom`]), and again after anything else that upstream has run meanwhile: functions set them, and so do libraries that
//! are loaded.
//!
//! # What it cannot see
//!
//! Settings that are not asked for: those that change no answer (see [`crate::session::variables`]); one that is not known there keeps the session's reads upstream from SET until RESET. Statements
//! that SQL's PREPARE made: EXECUTE counts as unknown each time. Functions in the temporary schema: PostgreSQL never
//! finds those by an unqualified name. A temporary schema without relations and types captures no name, so that a session
//! that has dropped its temporary tables is answered again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use freshet_engine::types::datetime::zone::of_session;
use freshet_engine::types::numeric::PowerScale;
use freshet_engine::types::{ByteaOutput, CustomSettings, DateOrder, DateStyle, FormatSettings, IntervalStyle};
use parking_lot::Mutex;

use crate::session::state::Isolation;
use crate::session::variables::{ASKED, KEYED, NAMES, READ_BY, UNUSUAL, chooses_rows};
use crate::wire::extended::{SYNC, Target, write_bind, write_close, write_execute, write_parse};
use crate::wire::frame::Frames;
use crate::wire::query::data_row;

/// Equal exactly for equal [`SettingsValues`]: what keys of cached replies carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SettingsId(pub u64);

/// A list of schemas.
pub type Path = Arc<[Arc<str>]>;

/// The values themselves, as `current_setting` shows them: the first [`KEYED`] of [`NAMES`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SettingsValues {
    /// `current_user`: the effective role, after SET ROLE.
    pub role: Arc<str>,
    /// `current_schemas(true)` without the temporary schema: the effective search path with the implicit schemas, existing
    /// ones only.
    pub search_path: Path,
    /// There are temporary tables or types, which win every look-up.
    pub has_temporary_objects: bool,
    /// Settings that are not reproduced here and that the session has changed, or that are unusual from its beginning.
    pub unlisted: Arc<str>,
    pub values: Vec<Arc<str>>,
    /// What statements have asked for of an application's own.
    pub custom: Arc<CustomSettings>,
}

/// What the probe tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    pub role: Arc<str>,
    pub session_user: Arc<str>,
    /// `version()`.
    pub version: Arc<str>,
    /// As [`SettingsValues::search_path`].
    pub search_path: Path,
    pub has_temporary_objects: bool,
    /// It listens on some channel.
    pub listens: bool,
    /// Names of [`UNUSUAL`] settings that have other values.
    pub unusually_set: Arc<str>,
    /// now(), in microseconds since 2000 UTC.
    pub transaction_time: i64,
    /// `pg_postmaster_start_time()`, likewise: which server it is.
    pub started_at: i64,
    /// In the order of [`NAMES`].
    pub values: Vec<Arc<str>>,
}

/// Known, certain settings of a session.
#[derive(Debug)]
pub struct SessionSettings {
    pub id: SettingsId,
    /// Likewise, whatever an application's own settings are: no plan depends on them.
    pub plan: SettingsId,
    /// Equal only for equal search paths in force; never 0.
    pub path: u64,
    /// Equal only where PostgreSQL reads literals alike; never 0.
    pub reading: u64,
    pub values: SettingsValues,
    /// What freshet reproduces of them; the reason if it does not reproduce one of the values.
    pub format: Result<FormatSettings, String>,
    pub default_isolation: Option<Isolation>,
}

impl SessionSettings {
    pub fn role(&self) -> &str {
        &self.values.role
    }

    /// One of the first [`KEYED`] of [`NAMES`].
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.value(name)
    }
}

impl SettingsValues {
    fn value(&self, name: &str) -> Option<&str> {
        let index = NAMES[..KEYED].iter().position(|known| *known == name)?;
        self.values.get(index).map(|value| &**value)
    }
}

/// Gives equal values equal numbers, for all sessions of the program, and remembers what search paths amount to.
#[derive(Default)]
pub struct Interner {
    known: Mutex<States<SettingsValues, Arc<SessionSettings>>>,
    /// Those with settings of an application's own, apart: there may be as many as it has users.
    customs: Mutex<States<(SettingsId, Arc<CustomSettings>), Arc<SessionSettings>>>,
    path_numbers: Mutex<States<Path, u64>>,
    reading_numbers: Mutex<States<Vec<Arc<str>>, u64>>,
    paths: Mutex<States<PathKey, (u64, Path)>>,
}

/// What a search path in force is made from, beside the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathKey {
    pub database: Arc<str>,
    pub role: Arc<str>,
    /// The setting as it was given.
    pub search_path: Arc<str>,
}

/// Above this many different states, or this many bytes of texts in them, a table starts anew with new numbers: a client that makes
/// up role or schema names must not fill memory.
const STATES_MAX: usize = 10_000;
const STATES_BYTES_MAX: usize = 16 << 20;

/// One of the tables.
struct States<K, V> {
    all: HashMap<K, V>,
    bytes: usize,
}

impl<K, V> Default for States<K, V> {
    fn default() -> Self {
        Self { all: HashMap::new(), bytes: 0 }
    }
}

impl<K: Eq + Hash, V> States<K, V> {
    /// `texts`: of the key, one that is not there.
    fn insert<'a>(&mut self, key: K, value: V, texts: impl IntoIterator<Item = &'a Arc<str>>) {
        let bytes: usize = texts.into_iter().map(|text| text.len()).sum();
        if self.all.len() >= STATES_MAX || self.bytes + bytes > STATES_BYTES_MAX {
            (self.all, self.bytes) = (HashMap::new(), 0);
        }
        self.bytes += bytes;
        self.all.insert(key, value);
    }
}

/// A number that nothing has yet.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl Interner {
    pub fn intern(&self, values: SettingsValues) -> Arc<SessionSettings> {
        if !values.custom.is_empty() {
            return self.intern_custom(values);
        }
        let mut known = self.known.lock();
        if let Some(found) = known.all.get(&values) {
            return Arc::clone(found);
        }
        let id = SettingsId(next());
        let mut path_numbers = self.path_numbers.lock();
        let path = path_numbers.all.get(&values.search_path).copied().unwrap_or_else(|| {
            let (number, key) = (next(), Arc::clone(&values.search_path));
            path_numbers.insert(key, number, values.search_path.iter());
            number
        });
        let mut reading_numbers = self.reading_numbers.lock();
        let read_by = values.values.get(..READ_BY).unwrap_or(&values.values);
        let reading = reading_numbers.all.get(read_by).copied().unwrap_or_else(|| {
            let number = next();
            reading_numbers.insert(read_by.to_vec(), number, read_by);
            number
        });
        let settings = Arc::new(SessionSettings {
            id,
            plan: id,
            path,
            reading,
            format: reproduce(&values),
            default_isolation: values.value("default_transaction_isolation").and_then(Isolation::parse),
            values: values.clone(),
        });
        let texts = &settings.values;
        let all = texts.search_path.iter().chain(&texts.values).chain([&texts.role, &texts.unlisted]);
        known.insert(values, Arc::clone(&settings), all);
        settings
    }

    /// Those of an application's own beside what is interned without them.
    fn intern_custom(&self, values: SettingsValues) -> Arc<SessionSettings> {
        let plain = self.intern(SettingsValues { custom: Arc::default(), ..values.clone() });
        let mut customs = self.customs.lock();
        let key = (plain.id, Arc::clone(&values.custom));
        if let Some(found) = customs.all.get(&key) {
            return Arc::clone(found);
        }
        let settings = Arc::new(SessionSettings {
            id: SettingsId(next()),
            plan: plain.id,
            path: plain.path,
            reading: plain.reading,
            format: reproduce(&values),
            default_isolation: plain.default_isolation,
            values: values.clone(),
        });
        let texts = values.custom.iter().flat_map(|(name, value)| std::iter::once(name).chain(value));
        customs.insert(key, Arc::clone(&settings), texts);
        settings
    }

    /// The path in force as of this version of the catalog, if a probe has told it.
    pub fn path(&self, key: &PathKey, catalog_version: u64) -> Option<Path> {
        let paths = self.paths.lock();
        paths.all.get(key).filter(|(version, _)| *version == catalog_version).map(|(_, path)| Arc::clone(path))
    }

    /// `catalog_version` was in force, or not even yet, when the probe was *sent*: one that has come into force since
    /// may not know of what the probe saw, and is found out before anything is answered by it.
    pub fn learn_path(&self, key: PathKey, catalog_version: u64, path: Path) {
        let mut paths = self.paths.lock();
        match paths.all.get_mut(&key) {
            Some(known) if known.0 <= catalog_version => *known = (catalog_version, path),
            Some(_) => {}
            None => {
                let texts = [key.search_path.clone()];
                paths.insert(key, (catalog_version, Arc::clone(&path)), texts.iter().chain(path.iter()));
            }
        }
    }
}

/// The probe's name in the session, gone again when the probe is over.
pub const PROBE_NAME: &[u8] = b"freshet_probe";

/// What upstream is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Everything: [`Probed`].
    Settings,
    /// Only when the open block began: a small part of what everything costs.
    Time,
    /// Only these of an application's own settings, by names that `freshet_engine::catalog::functions::setting::custom_name` gives.
    Custom(Arc<[Arc<str>]>),
}

/// now(), in microseconds since 1970: text, as JSON's numbers are not exact for every reader.
const TIME: &str = "CAST(CAST(EXTRACT(epoch FROM pg_catalog.now()) OPERATOR(pg_catalog.*) 1000000 AS pg_catalog.int8) \
                    AS pg_catalog.text)";
/// When the server was started, likewise.
const STARTED_AT: &str = "CAST(CAST(EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time()) OPERATOR(pg_catalog.*) 1000000 \
                          AS pg_catalog.int8) AS pg_catalog.text)";

/// Appends the probe: six messages whose replies are five and ReadyForQuery.
pub fn write_probe(out: &mut Vec<u8>, question: &Question) {
    let sql = match question {
        Question::Settings => settings_query(),
        Question::Time => format!("SELECT {TIME}"),
        Question::Custom(names) => {
            let values: Vec<String> =
                names.iter().map(|name| format!("pg_catalog.current_setting('{name}', true)")).collect();
            format!("SELECT {}", values.join(", "))
        }
    };
    write_parse(out, PROBE_NAME, sql.as_bytes());
    write_bind(out, PROBE_NAME, PROBE_NAME);
    write_execute(out, PROBE_NAME);
    write_close(out, Target::Portal(PROBE_NAME));
    write_close(out, Target::Statement(PROBE_NAME));
    out.extend_from_slice(SYNC);
}

/// What of PostgreSQL's own it calls and reads that an operator may have taken from roles.
pub const PROBED: &[&str] = &[
    "concat_ws",
    "current_schemas",
    "current_setting",
    "extract",
    "int8",
    "json_build_array",
    "now",
    "pg_class",
    "pg_listening_channels",
    "pg_my_temp_schema",
    "pg_postmaster_start_time",
    "pg_type",
    "version",
];

fn settings_query() -> String {
    let settings: Vec<String> = NAMES.iter().map(|name| format!("pg_catalog.current_setting('{name}')")).collect();
    // One by one: pg_settings would make rows of all that there are. NULL or empty where upstream does not know it.
    let unusual = UNUSUAL.map(|(name, usual)| {
        let value = format!("pg_catalog.current_setting('{name}', true)");
        let told = match chooses_rows(name) {
            true => format!("'{name}=' OPERATOR(pg_catalog.||) {value}"),
            false => format!("'{name}'"),
        };
        format!("CASE WHEN {value} OPERATOR(pg_catalog.<>) ALL (ARRAY['', '{usual}']) THEN {told} END")
    });
    // To ask for the schemas of a path that begins with pg_temp would create it, which shows: PREPARE TRANSACTION no
    // longer fails in the transaction that would else have done so. Such a path counts as having temporary objects.
    let would_create = "(pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0 AND \
                        pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.~) 'pg_temp')";
    format!(
        "SELECT pg_catalog.json_build_array(current_user, session_user, pg_catalog.version(), \
         CASE WHEN {would_create} THEN '{{}}'::pg_catalog.name[] ELSE pg_catalog.current_schemas(true) END, \
         CASE WHEN {would_create} THEN true \
         WHEN pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0 THEN false ELSE EXISTS (SELECT 1 FROM \
         pg_catalog.pg_class WHERE relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) OR EXISTS \
         (SELECT 1 FROM pg_catalog.pg_type WHERE typnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) \
         END, EXISTS (SELECT 1 FROM pg_catalog.pg_listening_channels()), pg_catalog.concat_ws(', ', {}), {TIME}, {STARTED_AT}, {})",
        unusual.join(", "),
        settings.join(", ")
    )
}

/// Reads the probe's reply; None if it failed or is not what was asked for.
pub fn read_probe(reply: &[u8]) -> Option<Probed> {
    let row = Frames::new(reply).find(|frame| frame.tag == b'D')?;
    let json = data_row(row.body).next()??;
    let items: Vec<serde_json::Value> = serde_json::from_slice(json).ok()?;
    let [role, session_user, version, path, has_temporary, listens, unusual, time, started, values @ ..] =
        items.as_slice()
    else {
        return None;
    };
    let text = |value: &serde_json::Value| value.as_str().map(Arc::<str>::from);
    let values: Vec<Arc<str>> = values.iter().map(text).collect::<Option<_>>()?;
    (values.len() == ASKED).then_some(())?;
    let path: Vec<Arc<str>> = path.as_array()?.iter().map(text).collect::<Option<_>>()?;
    Some(Probed {
        role: text(role)?,
        session_user: text(session_user)?,
        version: text(version)?,
        // No schema that a user makes is called so. It counts where it holds something, see `has_temporary_objects`.
        search_path: path.into_iter().filter(|schema| !schema.starts_with("pg_temp_")).collect(),
        has_temporary_objects: has_temporary.as_bool()?,
        listens: listens.as_bool()?,
        unusually_set: text(unusual)?,
        transaction_time: since_2000(time.as_str()?)?,
        started_at: since_2000(started.as_str()?)?,
        values,
    })
}

/// Reads the reply to [`Question::Time`], in microseconds since 2000 UTC; None if it failed or is not what was asked for.
pub fn read_time(reply: &[u8]) -> Option<i64> {
    let row = Frames::new(reply).find(|frame| frame.tag == b'D')?;
    since_2000(std::str::from_utf8(data_row(row.body).next()??).ok()?)
}

/// Reads the reply to [`Question::Custom`]: the values, in order; None if it failed or is not what was asked for.
pub fn read_custom(reply: &[u8], names: &[Arc<str>]) -> Option<CustomSettings> {
    let row = Frames::new(reply).find(|frame| frame.tag == b'D')?;
    let value = |value: Option<&[u8]>| match value {
        Some(text) => std::str::from_utf8(text).ok().map(|text| Some(Arc::from(text))),
        None => Some(None),
    };
    let values: Vec<Option<Arc<str>>> = data_row(row.body).map(value).collect::<Option<_>>()?;
    (values.len() == names.len()).then(|| names.iter().cloned().zip(values).collect())
}

fn since_2000(time: &str) -> Option<i64> {
    time.parse::<i64>().ok()?.checked_sub(UNIX_TO_2000_US)
}

/// Between the beginnings of 1970 and of 2000.
const UNIX_TO_2000_US: i64 = 946_684_800_000_000;

/// The reason of sessions that have temporary tables or types.
pub const TEMPORARY_TABLES: &str = "temporary tables";

/// The values as the engine understands them, or the one it does not reproduce.
fn reproduce(values: &SettingsValues) -> Result<FormatSettings, String> {
    let value = |name: &str| values.value(name).unwrap_or_default();
    let refuse = |name: &str| format!("{name} = {}", value(name));
    let required = [
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
        ("transform_null_equals", "off"),
        ("array_nulls", "on"),
        ("timezone_abbreviations", "Default"),
    ];
    for (name, expected) in required {
        if value(name) != expected {
            return Err(refuse(name));
        }
    }
    // In UTF-8 as good as on (scan.l, check_escape_warning and xqescape).
    if !["on", "safe_encoding"].contains(&value("backslash_quote")) {
        return Err(refuse("backslash_quote"));
    }
    // Below, PostgreSQL tells the client of plain reads too.
    if !["notice", "warning", "error"].contains(&value("client_min_messages")) {
        return Err(refuse("client_min_messages"));
    }
    if values.has_temporary_objects {
        return Err(TEMPORARY_TABLES.to_string());
    }
    // What comes with its value is of no matter here: it is part of the key, for replies of upstream's own.
    if let Some(unlisted) = values.unlisted.split(", ").find(|one| !one.is_empty() && !one.contains('=')) {
        return Err(format!("{unlisted} was changed"));
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
        time_zone: of_session(value("TimeZone")).ok_or_else(|| refuse("TimeZone"))?,
        extra_float_digits: value("extra_float_digits").parse().map_err(|_| refuse("extra_float_digits"))?,
        bytea_output: match value("bytea_output") {
            "hex" => ByteaOutput::Hex,
            "escape" => ByteaOutput::Escape,
            _ => return Err(refuse("bytea_output")),
        },
        custom: Arc::clone(&values.custom),
        power_scale: match value("server_version_num").parse::<u32>() {
            Ok(140_000..160_000) => Some(PowerScale::SixteenDecimals),
            Ok(160_000..190_000) => Some(PowerScale::SixteenDigits),
            Ok(_) | Err(_) => None,
        },
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::wire::query::{write_data_row, write_value};

    /// Else a role from which one of them was taken would have its blocks failed.
    #[test]
    fn what_the_probe_calls_and_reads_is_listed() {
        for (at, _) in settings_query().match_indices("pg_catalog.") {
            let rest = &settings_query()[at + "pg_catalog.".len()..];
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_' || c.is_ascii_digit()).collect();
            // Operators have no letters; types are everybody's.
            assert!(["", "name", "text"].contains(&&*name) || PROBED.contains(&&*name), "{name}");
        }
    }

    /// An ordinary session's settings.
    pub(crate) fn some_probed(time_zone: &str) -> Probed {
        read_probe(&reply(time_zone, false)).expect("well-formed")
    }

    fn reply(time_zone: &str, temporary: bool) -> Vec<u8> {
        let json = format!(
            r#"["ann", "ann", "PostgreSQL 15.1 on x", ["pg_temp_3", "pg_catalog", "public"], {temporary}, false, "", "946684800000001", "946684800000002", "{time_zone}", "ISO, MDY", "postgres", "UTF8", "on",
            "1", "hex", "on", "off", "Default", "on", "safe_encoding", "content", "C", "C", "C", "UTF8", "150018", "notice", "read committed",
            "\"$user\", public", "0", "on", "0", "0"]"#
        );
        let mut out = Vec::new();
        write_data_row(&mut out, 1, |out| write_value(out, Some(json.as_bytes())));
        out
    }

    fn interned(interner: &Interner, time_zone: &str, temporary: bool) -> Arc<SessionSettings> {
        let probed = read_probe(&reply(time_zone, temporary)).expect("well-formed");
        interner.intern(SettingsValues {
            role: probed.role,
            search_path: probed.search_path,
            has_temporary_objects: probed.has_temporary_objects,
            unlisted: "".into(),
            values: probed.values[..KEYED].to_vec(),
            custom: Arc::default(),
        })
    }

    #[test]
    fn the_probe_tells_times_and_which_server_it_was() {
        let probed = some_probed("UTC");
        assert_eq!((probed.transaction_time, probed.started_at), (1, 2));
        assert_eq!(&*probed.values[0], "UTC");
    }

    #[test]
    fn equal_settings_have_equal_numbers() {
        let interner = Interner::default();
        let read = |zone| interned(&interner, zone, false);
        let (first, second, third) = (read("UTC"), read("UTC"), read("Europe/Berlin"));
        assert_eq!(first.id, second.id);
        assert_ne!(first.id, third.id);
        assert_eq!(first.role(), "ann");
        assert_eq!(first.value("TimeZone"), Some("UTC"));
        assert_eq!(first.values.search_path.join(","), "pg_catalog,public");
        assert!(first.format.is_ok(), "{:?}", first.format);
    }

    #[test]
    fn what_is_not_reproduced_is_named() {
        let interner = Interner::default();
        let of = |zone, temporary| interned(&interner, zone, temporary).format.clone().err();
        assert_eq!(of("EST5EDT4,M3.2.0,M11.1.0", false).as_deref(), Some("TimeZone = EST5EDT4,M3.2.0,M11.1.0"));
        assert_eq!([of("<+03>-03", false), of("UTC+3", false)], [None, None]);
        assert_eq!(of("UTC", true).as_deref(), Some("temporary tables"));
    }

    #[test]
    fn paths_hold_for_one_version_of_the_catalog() {
        let interner = Interner::default();
        let key = PathKey { database: "d".into(), role: "ann".into(), search_path: "a, b".into() };
        let path = |schema: &str| -> Path { [Arc::from(schema)].into() };
        interner.learn_path(key.clone(), 2, path("new"));
        interner.learn_path(key.clone(), 1, path("old"));
        assert_eq!(interner.path(&key, 2), Some(path("new")));
        assert_eq!(interner.path(&key, 3), None);
        assert_eq!(interner.path(&PathKey { role: "bob".into(), ..key }, 2), None);
    }

    #[test]
    fn long_texts_do_not_fill_memory() {
        let interner = Interner::default();
        let ordinary = interned(&interner, "UTC", false);
        let mut greatest = 0;
        for n in 0..400 {
            let long: Arc<str> = format!("{n}{}", "x".repeat(200_000)).into();
            let key = PathKey { database: "d".into(), role: "ann".into(), search_path: Arc::clone(&long) };
            let values = SettingsValues { search_path: [long].into(), ..ordinary.values.clone() };
            interner.learn_path(key.clone(), 1, Arc::clone(&values.search_path));
            assert!(interner.path(&key, 1).is_some());
            let settings = interner.intern(values.clone());
            assert_eq!(interner.intern(values).id, settings.id, "known at once");
            greatest = greatest.max(interner.known.lock().bytes).max(interner.paths.lock().bytes);
            assert!(interner.path_numbers.lock().bytes <= STATES_BYTES_MAX);
        }
        assert!(greatest > STATES_BYTES_MAX / 2 && greatest <= STATES_BYTES_MAX, "{greatest}");
        let again = interned(&interner, "UTC", false);
        assert_eq!(again.reading, ordinary.reading, "it is small");
    }

    #[test]
    fn a_time_is_read() {
        let of = |text: &[u8]| {
            let mut out = Vec::new();
            write_data_row(&mut out, 1, |out| write_value(out, Some(text)));
            read_time(&out)
        };
        assert_eq!(of(b"946684800000001"), Some(1));
        assert_eq!((of(b"-9223372036854775808"), of(b"1.5"), of(b"\xff"), read_time(b"")), (None, None, None, None));
    }

    #[test]
    fn a_reply_that_is_not_the_probes_is_refused() {
        assert_eq!(read_probe(b""), None);
        let mut out = Vec::new();
        write_data_row(&mut out, 1, |out| write_value(out, Some(b"[1]")));
        assert_eq!(read_probe(&out), None);
    }
}
