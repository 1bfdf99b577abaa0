//! The table of keys: name, what it takes, how it is applied, when a change takes effect.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::error::{Problem, Problems, distance, nearest};
use crate::{DatabaseChoice, FreshnessMode, ListenAddress, LogFormat, Settings, TableChoice};

/// One setting.
pub struct Key {
    /// `section.name`.
    pub path: &'static str,
    pub takes: Takes,
    apply: fn(&mut Settings, Checked) -> Result<(), String>,
}

/// What a key accepts.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    Text,
    /// A whole number within bounds, both included.
    Integer {
        min: u64,
        max: u64,
    },
    Bool,
    List,
    OneOf(&'static [&'static str]),
}

/// A value as written, before it is known what the key takes.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Text(String),
    Integer(i64),
    Bool(bool),
    List(Vec<String>),
    /// Something no key takes; the words say what.
    Other(&'static str),
}

/// A value of the kind its key takes.
enum Checked {
    Text(String),
    Integer(u64),
    Bool(bool),
    List(Vec<String>),
}

impl Checked {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Integer(_) | Self::Bool(_) | Self::List(_) => String::new(),
        }
    }

    fn integer(&self) -> u64 {
        match self {
            Self::Integer(number) => *number,
            Self::Text(_) | Self::Bool(_) | Self::List(_) => 0,
        }
    }

    fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    fn list(self) -> Vec<String> {
        match self {
            Self::List(list) => list,
            Self::Text(text) => vec![text],
            Self::Integer(_) | Self::Bool(_) => Vec::new(),
        }
    }
}

/// A day: longer than any time-out that is meant.
const MS_MAX: u64 = 86_400_000;
/// Larger than any machine's memory today.
const BYTES_MAX: u64 = 1 << 50;

const fn integer(min: u64, max: u64) -> Takes {
    Takes::Integer { min, max }
}

macro_rules! key {
    ($path:literal, $takes:expr, |$settings:ident, $value:ident| $apply:expr) => {
        Key {
            path: $path,
            takes: $takes,
            apply: |$settings, $value| {
                $apply;
                Ok(())
            },
        }
    };
    ($path:literal, $takes:expr, try |$settings:ident, $value:ident| $apply:expr) => {
        Key { path: $path, takes: $takes, apply: |$settings, $value| $apply }
    };
}

/// Every key, in the order of the file.
pub const KEYS: &[Key] = &[
    key!("upstream.url", Takes::Text, try |s, v| upstream_url(v.text()).map(|url| s.upstream.url = url)),
    key!("upstream.connect_timeout_ms", integer(1, MS_MAX), |s, v| s.upstream.connect_timeout_ms = v.integer()),
    key!("listen.addresses", Takes::List, try |s, v| addresses(v.list()).map(|list| s.listen.addresses = list)),
    key!("listen.sessions_max", integer(1, 1_000_000), |s, v| s.listen.sessions_max = v.integer() as usize),
    key!("listen.login_timeout_ms", integer(1, MS_MAX), |s, v| s.listen.login_timeout_ms = v.integer()),
    key!("listen.drain_timeout_ms", integer(0, MS_MAX), |s, v| s.listen.drain_timeout_ms = v.integer()),
    key!("listen.keepalive_idle_ms", integer(1_000, MS_MAX), |s, v| s.listen.keepalive_idle_ms = v.integer()),
    key!("listen.allow_passwordless_upstream", Takes::Bool, |s, v| {
        s.listen.allow_passwordless_upstream = v.is_true()
    }),
    key!("listen.tls_certificate", Takes::Text, |s, v| s.listen.tls_certificate = file(v.text())),
    key!("listen.tls_key", Takes::Text, |s, v| s.listen.tls_key = file(v.text())),
    key!("listen.tls_client_ca", Takes::Text, |s, v| s.listen.tls_client_ca = file(v.text())),
    key!("listen.tls_required", Takes::Bool, |s, v| s.listen.tls_required = v.is_true()),
    key!("mirror.tables", Takes::List, try |s, v| table_choice(v.list()).map(|choice| s.mirror.tables = choice)),
    key!("mirror.databases", Takes::List, try |s, v| {
        database_choice(v.list()).map(|choice| s.mirror.databases = choice)
    }),
    key!("mirror.databases_max", integer(1, 64), |s, v| s.mirror.databases_max = v.integer() as usize),
    key!("mirror.database_idle_ms", integer(0, MS_MAX), |s, v| s.mirror.database_idle_ms = v.integer()),
    key!("mirror.publication", Takes::Text, try |s, v| identifier(v.text()).map(|name| s.mirror.publication = name)),
    key!("mirror.set_replica_identity_full", Takes::Bool, |s, v| s.mirror.set_replica_identity_full = v.is_true()),
    key!("mirror.event_trigger", Takes::Bool, |s, v| s.mirror.event_trigger = v.is_true()),
    key!("mirror.copy_workers", integer(1, 64), |s, v| s.mirror.copy_workers = v.integer() as usize),
    key!("mirror.memory_bytes_max", integer(0, BYTES_MAX), |s, v| s.mirror.memory_bytes_max = v.integer()),
    key!("mirror.wal_kept_bytes_max", integer(0, BYTES_MAX), |s, v| s.mirror.wal_kept_bytes_max = v.integer()),
    key!("freshness.mode", Takes::OneOf(&["exact", "session", "standby"]), |s, v| {
        s.freshness.mode = FreshnessMode::parse(&v.text()).unwrap_or(FreshnessMode::Exact)
    }),
    key!("freshness.wait_budget_ms", integer(0, MS_MAX), |s, v| s.freshness.wait_budget_ms = v.integer()),
    key!("freshness.max_lag_ms", integer(1, MS_MAX), |s, v| s.freshness.max_lag_ms = v.integer()),
    key!("freshness.standby_name", Takes::Text, try |s, v| identifier(v.text()).map(|n| s.freshness.standby_name = n)),
    key!("freshness.snapshots_max", integer(1, 100_000), |s, v| s.freshness.snapshots_max = v.integer() as usize),
    key!("freshness.snapshot_age_max_ms", integer(1, MS_MAX), |s, v| s.freshness.snapshot_age_max_ms = v.integer()),
    key!("freshness.snapshot_bytes_max", integer(0, BYTES_MAX), |s, v| s.freshness.snapshot_bytes_max = v.integer()),
    key!("cache.bytes_max", integer(0, BYTES_MAX), |s, v| s.cache.bytes_max = v.integer()),
    key!("cache.result_bytes_max", integer(0, BYTES_MAX), |s, v| s.cache.result_bytes_max = v.integer()),
    key!("cache.reply_bytes_max", integer(0, BYTES_MAX), |s, v| s.cache.reply_bytes_max = v.integer()),
    key!("cache.join_bytes_max", integer(0, BYTES_MAX), |s, v| s.cache.join_bytes_max = v.integer()),
    key!("cache.plan_bytes_max", integer(0, BYTES_MAX), |s, v| s.cache.plan_bytes_max = v.integer()),
    key!("cache.shared_wait_ms", integer(0, MS_MAX), |s, v| s.cache.shared_wait_ms = v.integer()),
    key!("cache.capture_bytes_max", integer(0, BYTES_MAX), |s, v| s.cache.capture_bytes_max = v.integer()),
    key!("cache.refresh_ahead_percent", integer(0, 100), |s, v| s.cache.refresh_ahead_percent = v.integer()),
    key!("limits.worker_threads", integer(0, 1_024), |s, v| s.limits.worker_threads = v.integer() as usize),
    key!("limits.statement_bytes_max", integer(1_024, 1 << 30), |s, v| {
        s.limits.statement_bytes_max = v.integer() as usize
    }),
    key!("limits.group_bytes_max", integer(1_024, 1 << 30), |s, v| s.limits.group_bytes_max = v.integer() as usize),
    key!("limits.prepared_statements_max", integer(0, 10_000_000), |s, v| {
        s.limits.prepared_statements_max = v.integer() as usize
    }),
    key!("limits.session_buffer_bytes", integer(16_384, 1 << 30), |s, v| {
        s.limits.session_buffer_bytes = v.integer() as usize
    }),
    key!("limits.query_memory_bytes_max", integer(0, BYTES_MAX), |s, v| s.limits.query_memory_bytes_max = v.integer()),
    key!("limits.queries_memory_bytes_max", integer(0, BYTES_MAX), |s, v| {
        s.limits.queries_memory_bytes_max = v.integer()
    }),
    key!("limits.query_rows_max", integer(0, BYTES_MAX), |s, v| s.limits.query_rows_max = v.integer()),
    key!("limits.query_join_rows_max", integer(0, BYTES_MAX), |s, v| s.limits.query_join_rows_max = v.integer()),
    key!("audit.sample_one_in", integer(0, BYTES_MAX), |s, v| s.audit.sample_one_in = v.integer()),
    key!("audit.slower_times", integer(0, 1_000), |s, v| s.audit.slower_times = v.integer()),
    key!("admin.address", Takes::Text, try |s, v| host_and_port_or_empty(v.text()).map(|a| s.admin.address = a)),
    key!("admin.token", Takes::Text, |s, v| s.admin.token = v.text()),
    key!("admin.schema", Takes::Text, try |s, v| free_schema(v.text()).map(|name| s.admin.schema = name)),
    key!("log.format", Takes::OneOf(&["text", "json"]), |s, v| {
        s.log.format = if v.text() == "json" { LogFormat::Json } else { LogFormat::Text }
    }),
    key!("log.level", Takes::Text, try |s, v| log_level(v.text()).map(|level| s.log.level = level)),
];

/// The names of the sections, in the order of the file.
pub(crate) fn sections() -> Vec<&'static str> {
    let mut names: Vec<&str> = KEYS.iter().filter_map(|key| key.path.split('.').next()).collect();
    names.dedup();
    names
}

/// Applies one value and tells its key; the problem, if any, has no place yet.
pub(crate) fn apply(settings: &mut Settings, path: &str, given: &Given) -> Result<&'static str, Problem> {
    let Some(key) = KEYS.iter().find(|key| key.path == path) else {
        let section = path.split('.').next().unwrap_or_default();
        let known = || KEYS.iter().map(|key| key.path).filter(|known| known.split('.').next() == Some(section));
        let remedy = match nearest(path, known()).or_else(|| nearest(path, KEYS.iter().map(|key| key.path))) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("the keys of [{section}] are {}", known().collect::<Vec<_>>().join(", ")),
        };
        return Err(Problem::new(path, "is no key", remedy));
    };
    let checked = check(key, given)?;
    let applied = (key.apply)(settings, checked);
    applied.map_err(|remedy| Problem::new(path, format!("cannot be {}", shown(key, given)), remedy))?;
    Ok(key.path)
}

fn check(key: &Key, given: &Given) -> Result<Checked, Problem> {
    let wrong = |remedy: String| Problem::new(key.path, format!("cannot be {}", shown(key, given)), remedy);
    match (key.takes, given) {
        (Takes::Text, Given::Text(text)) => Ok(Checked::Text(text.clone())),
        (Takes::Bool, Given::Bool(value)) => Ok(Checked::Bool(*value)),
        (Takes::List, Given::Text(text)) => {
            Ok(Checked::List(text.split(',').map(|item| item.trim().to_string()).collect()))
        }
        (Takes::List, Given::List(list)) => Ok(Checked::List(list.clone())),
        (Takes::Integer { min, max }, Given::Integer(number)) => u64::try_from(*number)
            .ok()
            .filter(|n| (min..=max).contains(n))
            .map(Checked::Integer)
            .ok_or_else(|| wrong(format!("it takes a whole number from {min} to {max}"))),
        (Takes::OneOf(words), Given::Text(text)) if words.contains(&text.as_str()) => Ok(Checked::Text(text.clone())),
        (Takes::OneOf(words), _) => {
            let near = match given {
                Given::Text(text) => nearest(text, words.iter().copied()),
                Given::Integer(_) | Given::Bool(_) | Given::List(_) | Given::Other(_) => None,
            };
            let list = words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
            Err(wrong(near.map_or(format!("it takes one of {list}"), |near| {
                format!("did you mean {near:?}? It takes one of {list}")
            })))
        }
        (Takes::Integer { min, max }, _) => Err(wrong(format!(
            "it takes a whole number from {min} to {max}, without quotes; the unit is in the key's name"
        ))),
        (Takes::Text, _) => Err(wrong("it takes a string in quotes".to_string())),
        (Takes::Bool, _) => Err(wrong("it takes true or false, without quotes".to_string())),
        (Takes::List, _) => Err(wrong("it takes a list of strings, [\"a\", \"b\"]".to_string())),
    }
}

/// The value as written, but for those that hold a password or a token.
fn shown(key: &Key, given: &Given) -> String {
    match given {
        _ if matches!(key.path, "upstream.url" | "admin.token") => "what it is set to".to_string(),
        Given::Text(text) => format!("{text:?}"),
        Given::Integer(number) => number.to_string(),
        Given::Bool(value) => value.to_string(),
        Given::List(list) => format!("{list:?}"),
        Given::Other(words) => (*words).to_string(),
    }
}

/// `FRESHET_SECTION_NAME` for each key; an unknown `FRESHET_` variable is a problem, as it is most likely a typing error.
pub(crate) fn read_variables(settings: &mut Settings, variables: &[(String, OsString)], problems: &mut Problems) {
    let named: Vec<(String, &Key)> = KEYS.iter().map(|key| (variable_name(key.path), key)).collect();
    for (name, value) in variables {
        // The tests' harness and the bench have variables of their own; FRESHET_CONFIG names the file.
        let is_others = ["FRESHET_TEST_", "FRESHET_BENCH_"].iter().any(|start| name.starts_with(start));
        if !name.starts_with("FRESHET_") || is_others || name == "FRESHET_CONFIG" {
            continue;
        }
        let Some((_, key)) = named.iter().find(|(known, _)| known == name) else {
            if is_service_link(name, value) {
                continue;
            }
            let remedy = nearest(name, named.iter().map(|(known, _)| known.as_str()));
            let remedy = remedy.map(|near| format!("did you mean {near}?")).unwrap_or_default();
            problems.push(Problem::new("", format!("{name} is no setting"), remedy).at("environment"));
            continue;
        };
        let place = format!("environment: {name}");
        let Some(value) = value.to_str() else {
            problems.push(Problem::new(key.path, "is not UTF-8", "").at(place));
            continue;
        };
        // A secret that was made by `echo` ends with a line break, which no setting can.
        match apply(settings, key.path, &from_text(key, value.trim_end_matches(['\r', '\n']))) {
            Ok(key) => problems.set_at(key, &place),
            Err(problem) => problems.push(problem.at(place)),
        }
    }
}

/// What Kubernetes puts into pods beside a Service of freshet's name (Kubernetes: Service, environment variables):
/// `*_SERVICE_HOST`, `*_SERVICE_PORT`, `*_SERVICE_PORT_NAME`, `*_PORT=tcp://...`, `*_PORT_5433_TCP`, `*_PORT_5433_TCP_ADDR`.
fn is_service_link(name: &str, value: &OsStr) -> bool {
    let is_of_port = |port: &str| {
        let mut words = port.split('_');
        words.next().is_some_and(|number| number.parse::<u16>().is_ok())
            && matches!(words.next(), Some("TCP" | "UDP" | "SCTP"))
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.ends_with("_PORT") && value.to_str().is_some_and(|value| value.contains("://"))
        || name.split_once("_PORT_").is_some_and(|(_, port)| is_of_port(port))
}

fn variable_name(path: &str) -> String {
    format!("FRESHET_{}", path.replace('.', "_").to_uppercase())
}

/// Flags arrive as text; a repeated one is a list.
pub(crate) fn read_flags(settings: &mut Settings, flags: &[(&'static str, String)], problems: &mut Problems) {
    let mut seen: Vec<&str> = Vec::new();
    for (path, _) in flags {
        if seen.contains(path) {
            continue;
        }
        seen.push(path);
        let texts: Vec<&str> = flags.iter().filter(|(other, _)| other == path).map(|(_, text)| text.as_str()).collect();
        let given = match KEYS.iter().find(|key| key.path == *path) {
            Some(key) => from_text(key, &texts.join(",")),
            None => Given::Text(texts.join(",")),
        };
        match apply(settings, path, &given) {
            Ok(key) => problems.set_at(key, "command line"),
            Err(problem) => problems.push(problem.at("command line")),
        }
    }
}

fn from_text(key: &Key, text: &str) -> Given {
    match key.takes {
        Takes::Integer { .. } => text.trim().parse().map_or_else(|_| Given::Text(text.to_string()), Given::Integer),
        Takes::Bool => match text.trim() {
            "true" | "on" | "1" | "yes" => Given::Bool(true),
            "false" | "off" | "0" | "no" => Given::Bool(false),
            _ => Given::Text(text.to_string()),
        },
        Takes::Text | Takes::List | Takes::OneOf(_) => Given::Text(text.to_string()),
    }
}

/// The form at a glance; who connects reads the rest (`postgres://user@/database?host=/directory` has no host).
fn upstream_url(text: String) -> Result<String, String> {
    // The shipped file shows the key with nothing in it; that it must be set is checked over all sources.
    match text.is_empty() || text.starts_with("postgres://") || text.starts_with("postgresql://") {
        true => Ok(text),
        false => Err("it takes postgres://user[:password]@host[:port]/database".to_string()),
    }
}

/// The shipped file shows keys of files with nothing in them.
fn file(text: String) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn addresses(list: Vec<String>) -> Result<Vec<ListenAddress>, String> {
    if list.is_empty() {
        return Err("it takes at least one host:port or socket directory".to_string());
    }
    list.into_iter()
        .map(|text| match text.starts_with('/') {
            true => Ok(ListenAddress::Directory(PathBuf::from(text))),
            false => host_and_port(text).map(ListenAddress::Tcp),
        })
        .collect()
}

fn host_and_port(text: String) -> Result<String, String> {
    let form = "an address is host:port (an IPv6 host in brackets) or an absolute socket directory";
    let (host, port) = text.rsplit_once(':').ok_or(form)?;
    let is_bare_v6 = host.contains(':') && !host.starts_with('[');
    if host.is_empty() || is_bare_v6 || port.parse::<u16>().is_err() {
        return Err(form.to_string());
    }
    Ok(text)
}

fn host_and_port_or_empty(text: String) -> Result<String, String> {
    if text.is_empty() { Ok(text) } else { host_and_port(text) }
}

fn table_choice(list: Vec<String>) -> Result<TableChoice, String> {
    match list.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["auto"] => Ok(TableChoice::Auto),
        ["none"] | [] => Ok(TableChoice::None),
        names if names.iter().any(|name| name.is_empty() || matches!(*name, "auto" | "none")) => {
            Err("it takes \"auto\", \"none\", or a list of table names".to_string())
        }
        [name] => match slip_of(name, ["auto", "none"]) {
            Some(word) => Err(format!("did you mean {word:?}? A table of that name is written public.{name}")),
            None => Ok(TableChoice::List(list)),
        },
        _ => Ok(TableChoice::List(list)),
    }
}

/// The word that was meant by one that stands alone and differs from it by a letter, or only by capitals.
fn slip_of<'a>(name: &str, words: [&'a str; 2]) -> Option<&'a str> {
    words.into_iter().find(|word| distance(&name.to_lowercase(), word) <= 1)
}

/// PostgreSQL's NAMEDATALEN, without the end.
const NAME_BYTES_MAX: usize = 63;

fn database_choice(list: Vec<String>) -> Result<DatabaseChoice, String> {
    match list.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["one"] | [] => Ok(DatabaseChoice::One),
        ["auto"] => Ok(DatabaseChoice::Auto),
        names if names.iter().any(|name| name.is_empty() || matches!(*name, "auto" | "one")) => {
            Err("it takes \"one\", \"auto\", or a list of database names".to_string())
        }
        names if names.iter().any(|name| name.len() > NAME_BYTES_MAX) => {
            Err(format!("a database's name has at most {NAME_BYTES_MAX} bytes"))
        }
        _ => {
            let mut list = list;
            list.sort();
            list.dedup();
            Ok(DatabaseChoice::List(list))
        }
    }
}

const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A level, or `target=level`, as often as wanted. The log takes a word that is no level for a target, and is silent otherwise.
fn log_level(text: String) -> Result<String, String> {
    let level_of = |part: &str| match part.rsplit_once('=') {
        Some((target, level)) if !target.trim().is_empty() => level.trim().to_ascii_lowercase(),
        Some(_) | None => part.trim().to_ascii_lowercase(),
    };
    let Some(wrong) = text.split(',').map(level_of).find(|level| !LOG_LEVELS.contains(&level.as_str())) else {
        return Ok(text);
    };
    let is_kin = |level: &&str| !wrong.is_empty() && (wrong.starts_with(level) || level.starts_with(&wrong));
    let near = LOG_LEVELS.into_iter().find(is_kin).or_else(|| nearest(&wrong, LOG_LEVELS));
    let near = near.map_or("it".into(), |near| format!("did you mean {near}? It"));
    Err(format!("{near} takes levels ({}), or target=level, separated by commas", LOG_LEVELS.join(", ")))
}

/// The virtual schema hides one of its name.
fn free_schema(text: String) -> Result<String, String> {
    match identifier(text)? {
        taken if taken == "public" || taken == "information_schema" || taken.starts_with("pg_") => {
            Err("it takes a name that no schema of upstream has".to_string())
        }
        free => Ok(free),
    }
}

/// A name that needs no quoting, so that it reads the same in SQL, logs and files.
fn identifier(text: String) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if text.is_empty()
        || text.len() > NAME_BYTES_MAX
        || !text.chars().all(fits)
        || text.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err("it takes a name of lower-case letters, digits and _ of at most 63 characters".to_string());
    }
    Ok(text)
}
