//! The settings that local answers depend on, what SET makes of a value, and the settings that change no answer.

use std::sync::Arc;

use freshet_engine::statement::classify::SettingValue;
use freshet_engine::statement::keywords::is_keyword;
use freshet_engine::statement::lexer::NAME_BYTES_MAX;
use freshet_engine::statement::quiet::CHOOSING_ROWS;

/// What is asked of upstream by `current_setting`, in this order; the first [`KEYED`] are part of a cached reply's key,
/// the first [`REPORTED`] upstream tells by ParameterStatus after each change (PostgreSQL: Asynchronous Operations).
pub const NAMES: [&str; ASKED] = [
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "client_encoding",
    "standard_conforming_strings",
    "extra_float_digits",
    "bytea_output",
    "row_security",
    "transform_null_equals",
    "timezone_abbreviations",
    "array_nulls",
    "backslash_quote",
    "xmloption",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "server_encoding",
    "server_version_num",
    "client_min_messages",
    "default_transaction_isolation",
    "search_path",
    "statement_timeout",
    "synchronous_commit",
    "idle_session_timeout",
    "idle_in_transaction_session_timeout",
];
pub const REPORTED: usize = 5;
pub const KEYED: usize = 21;
/// The first so many are all that decides how PostgreSQL reads a literal when it analyses a statement.
pub const READ_BY: usize = 18;
pub const ASKED: usize = 25;

// Slots by name, where one is needed by itself.
pub const CLIENT_ENCODING: usize = 3;
pub const CONFORMING_STRINGS: usize = 4;
pub const SERVER_VERSION: usize = 17;
pub const DEFAULT_ISOLATION: usize = 19;
/// As written; the path in force depends on the role and on which schemas there are.
pub const SEARCH_PATH: usize = 20;
pub const STATEMENT_TIMEOUT: usize = 21;
/// Changes no answer, but says whether the session's commits wait for a synchronous freshet.
pub const SYNCHRONOUS_COMMIT: usize = 22;
/// Change no answer, but say whether upstream ends a session that it hears nothing of.
pub const IDLE_TIMEOUTS: [usize; 2] = [23, 24];
/// `current_user`.
pub const ROLE: usize = 25;
/// `session_user`.
pub const SESSION_USER: usize = 26;
/// `t` if there are temporary tables or types.
pub const TEMPORARY: usize = 27;
/// The names of settings that the session changed and that are not known here; empty if there are none.
pub const UNLISTED: usize = 28;
/// `t` if notifications are listened for.
pub const LISTENS: usize = 29;
/// Which of [`UNUSUAL`] are not as usual, in whatever way they were set.
pub const UNUSUALLY_SET: usize = 30;
/// All of them.
pub const COUNT: usize = 31;

/// The slot of a setting, case-insensitively.
pub fn slot(name: &str) -> Option<usize> {
    if name.eq_ignore_ascii_case("role") {
        return Some(ROLE);
    }
    NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))
}

/// How a value was given, which decides what becomes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given<'a> {
    /// By SET.
    Items(&'a SettingValue),
    /// By `set_config`.
    Text(&'a str),
}

/// The value that `current_setting` will show; None where that is PostgreSQL's to say. It accepts the statement or
/// does not: here only the accepted value's form matters.
pub fn canonical(slot: usize, given: Given<'_>) -> Option<Arc<str>> {
    let text = match given {
        Given::Items(SettingValue::Items(items)) if slot == SEARCH_PATH => return quoted_list(items),
        Given::Items(SettingValue::Items(items)) => match items.as_slice() {
            [only] => only.as_str(),
            _ => return None,
        },
        Given::Items(SettingValue::Default | SettingValue::Unknown) => return None,
        Given::Text(text) => text,
    };
    let lower = || text.to_ascii_lowercase();
    let one_of =
        |names: &[&str]| names.iter().find(|name| name.eq_ignore_ascii_case(text)).map(|name| Arc::from(*name));
    match NAMES.get(slot).copied() {
        None if slot == ROLE => {
            let is_name = !text.is_empty() && text != "none" && text.len() <= NAME_BYTES_MAX;
            is_name.then(|| text.into())
        }
        Some("search_path") => Some(text.into()),
        Some("extra_float_digits") => {
            text.parse::<i8>().ok().filter(|digits| (-15..=3).contains(digits)).map(|digits| digits.to_string().into())
        }
        Some("bytea_output") => one_of(&["hex", "escape"]),
        Some("xmloption") => one_of(&["content", "document"]),
        Some("row_security" | "transform_null_equals" | "array_nulls") => match lower().as_str() {
            "on" | "true" | "yes" | "1" => Some("on".into()),
            "off" | "false" | "no" | "0" => Some("off".into()),
            _ => None,
        },
        Some("synchronous_commit") => match lower().as_str() {
            "on" | "true" | "yes" | "1" => Some("on".into()),
            "off" | "false" | "no" | "0" => Some("off".into()),
            _ => one_of(&["local", "remote_write", "remote_apply"]),
        },
        // Of two names for each value it shows one.
        Some("backslash_quote") => one_of(&["on", "off", "safe_encoding"]),
        Some("client_min_messages") => one_of(&["notice", "warning", "error", "log", "debug1", "debug2", "debug5"]),
        Some("default_transaction_isolation") => {
            one_of(&["read uncommitted", "read committed", "repeatable read", "serializable"])
        }
        Some("statement_timeout" | "idle_session_timeout" | "idle_in_transaction_session_timeout") => {
            timeout_ms(text).map(|_| text.into())
        }
        Some("timezone_abbreviations" | "lc_monetary" | "lc_numeric" | "lc_time") if !text.is_empty() => {
            Some(text.into())
        }
        // What is reported is known when the statement is over.
        _ => None,
    }
}

/// As SET stores a list of names (PostgreSQL: GUC_LIST_QUOTE, quote_identifier). None with a keyword: some are quoted.
fn quoted_list(items: &[String]) -> Option<Arc<str>> {
    if items.iter().any(|item| is_keyword(item) || item.len() > NAME_BYTES_MAX) {
        return None;
    }
    let quote = |item: &String| {
        let mut bytes = item.bytes();
        let is_plain = bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if is_plain { item.clone() } else { format!("\"{}\"", item.replace('"', "\"\"")) }
    };
    Some(items.iter().map(quote).collect::<Vec<_>>().join(", ").into())
}

/// A time limit in milliseconds, as SET takes and SHOW returns it: whole numbers, with or without a unit.
pub fn timeout_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// What a change of a setting means for local answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Followed in this slot.
    Followed(usize),
    /// The open transaction's isolation level.
    Isolation,
    SessionAuthorization,
    /// Of freshet's own.
    Own,
    /// Of an application, or an extension's: changes the answers of statements that ask for it.
    Custom,
    /// Changes no answer.
    Harmless,
    /// Not known here, so it may.
    Unlisted,
}

/// `name` in lower case; `schema` is the prefix of freshet's own settings.
pub fn meaning(name: &str, schema: &str) -> Meaning {
    if let Some(slot) = slot(name) {
        return Meaning::Followed(slot);
    }
    match name {
        "transaction_isolation" => Meaning::Isolation,
        "session_authorization" => Meaning::SessionAuthorization,
        _ if name.split_once('.').is_some_and(|(prefix, _)| prefix == schema) => Meaning::Own,
        _ if chooses_rows(name) => Meaning::Unlisted,
        _ if is_custom(name) => Meaning::Custom,
        _ if is_harmless(name) => Meaning::Harmless,
        _ => Meaning::Unlisted,
    }
}

/// Settings that change answers where they are not as a fresh cluster has them, with what they are there; asked for by each probe, since a
/// role's, a database's and a client's (PGOPTIONS) are in force without a SET.
pub const UNUSUAL: [(&str, &str); 11] = [
    ("enable_indexscan", "on"),
    ("gin_fuzzy_search_limit", "0"),
    ("quote_all_identifiers", "off"),
    ("restrict_nonsystem_relation_kind", ""),
    ("hnsw.ef_search", "40"),
    ("hnsw.iterative_scan", "off"),
    ("hnsw.max_scan_tuples", "20000"),
    ("hnsw.scan_mem_multiplier", "1"),
    ("ivfflat.iterative_scan", "off"),
    ("ivfflat.max_probes", "32768"),
    ("ivfflat.probes", "1"),
];

/// Whether the setting is among those, by its name in lower case.
pub fn is_unusual(name: &str) -> bool {
    UNUSUAL.iter().any(|(known, _)| *known == name)
}

/// Settings by which an approximate index gives other rows, or is not used. No operator that has such an index is computed here.
pub fn chooses_rows(name: &str) -> bool {
    CHOOSING_ROWS.iter().any(|prefix| name.starts_with(prefix)) || name == "enable_indexscan"
}

/// A prefix with a point: an extension's, or made up by the application for its policies and triggers. The engine does not know extensions'
/// operators. auto_explain alone speaks to the client by itself.
fn is_custom(name: &str) -> bool {
    name.contains('.') && !name.starts_with("auto_explain.")
}

/// Settings that change neither an answer nor which answers are right (PostgreSQL: Server Configuration), by the reason.
fn is_harmless(name: &str) -> bool {
    // The planner's choices and the executor's means: the same rows, in an order that is free anyway.
    const MEANS: &[&str] = &[
        "constraint_exclusion",
        "cursor_tuple_fraction",
        "debug_parallel_query",
        "default_statistics_target",
        "effective_cache_size",
        "effective_io_concurrency",
        "force_parallel_mode",
        "from_collapse_limit",
        "hash_mem_multiplier",
        "join_collapse_limit",
        "logical_decoding_work_mem",
        "maintenance_io_concurrency",
        "maintenance_work_mem",
        "max_parallel_maintenance_workers",
        "max_parallel_workers",
        "max_parallel_workers_per_gather",
        "max_stack_depth",
        "min_parallel_index_scan_size",
        "min_parallel_table_scan_size",
        "parallel_leader_participation",
        "parallel_setup_cost",
        "parallel_tuple_cost",
        "plan_cache_mode",
        "random_page_cost",
        "recursive_worktable_factor",
        "seq_page_cost",
        "synchronize_seqscans",
        "temp_buffers",
        "temp_file_limit",
        "vacuum_buffer_usage_limit",
        "work_mem",
    ];
    // Time limits of things that a local answer does not do: wait for locks, idle. (statement_timeout is followed;
    // transaction_timeout ends the session upstream, whoever answers.)
    const LIMITS: &[&str] = &[
        "client_connection_check_interval",
        "deadlock_timeout",
        "lock_timeout",
        "tcp_keepalives_count",
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
        "tcp_user_timeout",
        "transaction_timeout",
        "wal_sender_timeout",
    ];
    // Names, logs and statistics for the operator. What reaches the client of them needs client_min_messages.
    const OPERATION: &[&str] = &[
        "application_name",
        "compute_query_id",
        "exit_on_error",
        "stats_fetch_consistency",
        "track_activities",
        "track_counts",
        "track_functions",
        "track_io_timing",
        "track_wal_io_timing",
        "update_process_title",
    ];
    // Only writes, definitions and maintenance look at them.
    const WRITES: &[&str] = &[
        "backend_flush_after",
        "check_function_bodies",
        "commit_delay",
        "commit_siblings",
        "default_table_access_method",
        "default_tablespace",
        "default_toast_compression",
        "default_transaction_deferrable",
        "default_transaction_read_only",
        "gin_pending_list_limit",
        "lo_compat_privileges",
        "password_encryption",
        "session_replication_role",
        "temp_tablespaces",
        "transaction_deferrable",
        "transaction_read_only",
        "wal_compression",
        "wal_init_zero",
        "wal_recycle",
        "wal_skip_threshold",
    ];
    // Messages of errors, and functions that the engine does not compute: what uses them is relayed.
    const ELSEWHERE: &[&str] =
        &["default_text_search_config", "dynamic_library_path", "escape_string_warning", "lc_messages", "xmlbinary"];
    const PREFIXES: &[&str] = &["enable_", "log_", "geqo", "jit", "cpu_", "vacuum_", "debug_print_", "debug_pretty_"];
    [MEANS, LIMITS, OPERATION, WRITES, ELSEWHERE].iter().any(|group| group.contains(&name))
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_where_their_names_say() {
        assert_eq!(slot("timezone"), Some(0));
        assert_eq!(slot("client_encoding"), Some(CLIENT_ENCODING));
        assert_eq!(slot("standard_conforming_strings"), Some(CONFORMING_STRINGS));
        assert_eq!(slot("server_version_num"), Some(SERVER_VERSION));
        assert_eq!(slot("default_transaction_isolation"), Some(DEFAULT_ISOLATION));
        assert_eq!(slot("STATEMENT_TIMEOUT"), Some(STATEMENT_TIMEOUT));
        assert_eq!(slot("synchronous_commit"), Some(SYNCHRONOUS_COMMIT));
        assert_eq!(slot("search_path"), Some(SEARCH_PATH));
        let idle = ["idle_session_timeout", "idle_in_transaction_session_timeout"];
        assert_eq!(idle.map(slot), IDLE_TIMEOUTS.map(Some));
        assert_eq!(slot("work_mem"), None);
    }

    #[test]
    fn values_take_the_form_that_is_shown() {
        let items = |items: &[&str]| SettingValue::Items(items.iter().map(|item| (*item).to_string()).collect());
        let by_set = |name: &str, values: &[&str]| canonical(slot(name).unwrap(), Given::Items(&items(values)));
        let text = |text: &str| Some(Arc::from(text));
        assert_eq!(by_set("search_path", &["$user", "public", "A\"b", ""]), text(r#""$user", public, "A""b", """#));
        assert_eq!(by_set("search_path", &["user", "public"]), None, "quoted upstream");
        assert_eq!(by_set("extra_float_digits", &["+3"]), text("3"));
        assert_eq!(by_set("extra_float_digits", &["4"]), None);
        assert_eq!(by_set("bytea_output", &["Escape"]), text("escape"));
        assert_eq!(by_set("row_security", &["TRUE"]), text("on"));
        assert_eq!(by_set("row_security", &["tr"]), None);
        assert_eq!(by_set("synchronous_commit", &["FALSE"]), text("off"));
        assert_eq!(by_set("synchronous_commit", &["Remote_Write"]), text("remote_write"));
        assert_eq!(by_set("timezone", &["UTC"]), None, "upstream reports it");
        assert_eq!(by_set("role", &["none"]), None);
        assert_eq!(by_set("role", &["Ann"]), text("Ann"));
        assert_eq!(by_set("lc_monetary", &["C", "D"]), None);
        assert_eq!(canonical(SEARCH_PATH, Given::Text("a,  b")), text("a,  b"));
        assert_eq!(canonical(SEARCH_PATH, Given::Items(&SettingValue::Default)), None);
    }

    #[test]
    fn time_limits_are_read_with_their_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1500", Some(1500)),
            ("2s", Some(2000)),
            (" 3 min ", Some(180_000)),
            ("1d", Some(86_400_000)),
        ] {
            assert_eq!(timeout_ms(text), expected, "{text}");
        }
        for text in ["", "1.5s", "-1", "1us", "99999999999999999999"] {
            assert_eq!(timeout_ms(text), None, "{text}");
        }
    }

    #[test]
    fn settings_are_told_apart() {
        let of = |name| meaning(name, "freshet");
        assert_eq!(of("search_path"), Meaning::Followed(SEARCH_PATH));
        assert_eq!(of("enable_seqscan"), Meaning::Harmless);
        assert_eq!(of("request.jwt.claims"), Meaning::Custom);
        assert_eq!(of("freshet.route"), Meaning::Own);
        assert_eq!(of("hnsw.ef_search"), Meaning::Unlisted);
        assert_eq!(of("diskann.query_rescore"), Meaning::Unlisted);
        assert_eq!(of("vchordrq.probes"), Meaning::Unlisted);
        assert!(UNUSUAL.iter().all(|(name, _)| of(name) == Meaning::Unlisted));
        assert_eq!(of("auto_explain.log_level"), Meaning::Unlisted);
        assert_eq!(of("zero_damaged_pages"), Meaning::Unlisted);
        assert_eq!(of("transaction_isolation"), Meaning::Isolation);
    }
}
