//! What an operator can set: `freshet.toml`, then `FRESHET_*` variables, then flags, checked into [`Settings`].
//!
//! [`KEYS`] is the one table of keys: it drives the file reader, the variables, the flags and the error texts.
//! A wrong file yields all its problems at once ([`ConfigErrors`]), each with line, key and what would be right.

pub mod error;
mod file;
mod keys;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use error::Problems;
pub use error::{ConfigErrors, Problem};
pub use keys::{KEYS, Key, Takes};

/// The annotated default file, as shipped.
pub const DEFAULT_FILE: &str = include_str!("../freshet.toml");

/// Everything that can be set, grouped as the file is. `freshet.toml` documents each key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub upstream: Upstream,
    pub listen: Listen,
    pub mirror: Mirror,
    pub freshness: Freshness,
    pub cache: Cache,
    pub limits: Limits,
    pub audit: Audit,
    pub admin: Admin,
    pub log: Log,
}

/// The real PostgreSQL.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// `postgres://user[:password]@host[:port]/database`; freshet's own connections log in with it.
    /// Empty: not set, which [`Settings::load`] refuses.
    pub url: String,
    pub connect_timeout_ms: u64,
}

/// Where and whom freshet serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Listen {
    pub addresses: Vec<ListenAddress>,
    pub sessions_max: usize,
    pub login_timeout_ms: u64,
    pub drain_timeout_ms: u64,
    pub keepalive_idle_ms: u64,
    pub allow_passwordless_upstream: bool,
    /// None: no TLS with clients.
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub tls_client_ca: Option<PathBuf>,
    pub tls_required: bool,
}

impl Listen {
    /// Whether clients over TCP must use TLS. In the clear they could not show the certificate that is asked of them.
    pub fn requires_tls(&self) -> bool {
        self.tls_required || self.tls_client_ca.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// `host:port`.
    Tcp(String),
    /// The socket is `DIRECTORY/.s.PGSQL.5433`, named as libpq looks for it; or the path is that of such a file.
    Directory(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Directory(path) => write!(f, "{}", path.display()),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    pub tables: TableChoice,
    pub databases: DatabaseChoice,
    /// That of the URL included.
    pub databases_max: usize,
    /// 0: never given back.
    pub database_idle_ms: u64,
    pub publication: String,
    pub set_replica_identity_full: bool,
    pub event_trigger: bool,
    pub copy_workers: usize,
    pub memory_bytes_max: u64,
    /// 0: no bound.
    pub wal_kept_bytes_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableChoice {
    /// What is read is mirrored.
    Auto,
    /// Nothing is mirrored: freshet is a plain relay.
    None,
    /// These, as `table` or `schema.table`.
    List(Vec<String>),
}

/// Databases that are mirrored when they are read, beside that of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseChoice {
    One,
    Auto,
    List(Vec<String>),
}

impl Mirror {
    /// What a transaction may take while it is put together, in bytes: one that would not fit into the mirror is not worth more. Small mirrors
    /// have something, so that an ordinary bulk load does not end them.
    pub fn transaction_bytes_max(&self) -> u64 {
        self.memory_bytes_max.clamp(64 * MIB, 1_024 * MIB)
    }

    /// How many databases share memory and caches.
    pub fn shares(&self) -> u64 {
        match &self.databases {
            DatabaseChoice::One => 1,
            DatabaseChoice::Auto => self.databases_max as u64,
            DatabaseChoice::List(names) => (self.databases_max as u64).min(1 + names.len() as u64),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Freshness {
    pub mode: FreshnessMode,
    pub wait_budget_ms: u64,
    pub max_lag_ms: u64,
    pub standby_name: String,
    pub snapshots_max: usize,
    pub snapshot_age_max_ms: u64,
    pub snapshot_bytes_max: u64,
}

/// What a read may miss (design: Freshness).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FreshnessMode {
    Exact,
    Session,
    Standby,
}

impl FreshnessMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Session => "session",
            Self::Standby => "standby",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Exact, Self::Session, Self::Standby].into_iter().find(|mode| mode.name() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Of results, joins and plans together; 0: each has its own bound alone.
    pub bytes_max: u64,
    pub result_bytes_max: u64,
    pub reply_bytes_max: u64,
    pub join_bytes_max: u64,
    pub plan_bytes_max: u64,
    pub shared_wait_ms: u64,
    pub capture_bytes_max: u64,
    pub refresh_ahead_percent: u64,
}

impl Cache {
    /// Results, joins and plans cut in proportion, so that they fit together.
    pub fn within_budget(&self) -> Self {
        let wanted =
            u128::from(self.result_bytes_max) + u128::from(self.join_bytes_max) + u128::from(self.plan_bytes_max);
        let budget = u128::from(self.bytes_max);
        if budget == 0 || wanted <= budget {
            return self.clone();
        }
        // No more than it was.
        let cut = |bytes: u64| u64::try_from(u128::from(bytes) * budget / wanted).unwrap_or(bytes);
        Self {
            result_bytes_max: cut(self.result_bytes_max),
            join_bytes_max: cut(self.join_bytes_max),
            plan_bytes_max: cut(self.plan_bytes_max),
            ..self.clone()
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub worker_threads: usize,
    pub statement_bytes_max: usize,
    /// Of the messages up to a Sync together.
    pub group_bytes_max: usize,
    pub prepared_statements_max: usize,
    pub session_buffer_bytes: usize,
    pub query_memory_bytes_max: u64,
    /// Of all statements together.
    pub queries_memory_bytes_max: u64,
    pub query_rows_max: u64,
    pub query_join_rows_max: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// One in so many executions is compared; 0: only the first of each shape.
    pub sample_one_in: u64,
    /// A shape that took so many times as long here as upstream when it was compared is relayed for a while; 0: never.
    pub slower_times: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// `host:port`; empty: no HTTP.
    pub address: String,
    /// Required on other than loopback addresses.
    pub token: String,
    /// The name of the virtual schema in SQL.
    pub schema: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    pub format: LogFormat,
    /// A level, or `target=level` directives separated by commas.
    pub level: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

const MIB: u64 = 1024 * 1024;

impl Default for Upstream {
    fn default() -> Self {
        Self { url: String::new(), connect_timeout_ms: 5_000 }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            addresses: vec![ListenAddress::Tcp("127.0.0.1:5433".to_string())],
            sessions_max: 2_000,
            login_timeout_ms: 60_000,
            drain_timeout_ms: 5_000,
            keepalive_idle_ms: 60_000,
            allow_passwordless_upstream: false,
            tls_certificate: None,
            tls_key: None,
            tls_client_ca: None,
            tls_required: false,
        }
    }
}

impl Default for Mirror {
    fn default() -> Self {
        Self {
            tables: TableChoice::Auto,
            databases: DatabaseChoice::One,
            databases_max: 4,
            database_idle_ms: 600_000,
            publication: "freshet".to_string(),
            set_replica_identity_full: false,
            event_trigger: false,
            copy_workers: 2,
            memory_bytes_max: 2_048 * MIB,
            wal_kept_bytes_max: 16_384 * MIB,
        }
    }
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            mode: FreshnessMode::Exact,
            wait_budget_ms: 20,
            max_lag_ms: 1_000,
            standby_name: "freshet".to_string(),
            snapshots_max: 64,
            snapshot_age_max_ms: 300_000,
            snapshot_bytes_max: 512 << 20,
        }
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            bytes_max: 0,
            result_bytes_max: 256 * MIB,
            reply_bytes_max: 8 * MIB,
            join_bytes_max: 256 * MIB,
            plan_bytes_max: 64 * MIB,
            shared_wait_ms: 1_000,
            capture_bytes_max: 64 * MIB,
            refresh_ahead_percent: 0,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            worker_threads: 0,
            statement_bytes_max: 256 * 1024,
            group_bytes_max: 1024 * 1024,
            prepared_statements_max: 10_000,
            session_buffer_bytes: 256 * 1024,
            query_memory_bytes_max: 1_024 * MIB,
            queries_memory_bytes_max: 2_048 * MIB,
            query_rows_max: 1_000_000,
            query_join_rows_max: 200_000_000,
        }
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self { sample_one_in: 1_000, slower_times: 3 }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self { address: "127.0.0.1:9433".to_string(), token: String::new(), schema: "freshet".to_string() }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".to_string() }
    }
}

/// The three places a setting can come from, in rising priority.
#[derive(Clone, Debug, Default)]
pub struct Sources<'a> {
    pub file: Option<&'a Path>,
    /// The environment; only `FRESHET_*` is looked at.
    pub variables: Vec<(String, OsString)>,
    /// Flags as `(key path, value)`, e.g. `("upstream.url", "postgres://...")`; a repeated one makes a list.
    pub flags: Vec<(&'static str, String)>,
}

impl Settings {
    /// Reads all sources. Either every setting is right, or every problem is reported.
    pub fn load(sources: &Sources<'_>) -> Result<Self, ConfigErrors> {
        Self::load_checked(sources, |_| Vec::new())
    }

    /// [`Settings::load`] with a further check of what only others can judge, such as files that keys name. Its problems
    /// get the place of their key and stand beside the others.
    pub fn load_checked(
        sources: &Sources<'_>,
        check: impl FnOnce(&Self) -> Vec<Problem>,
    ) -> Result<Self, ConfigErrors> {
        let mut settings = Self::default();
        let mut problems = Problems::default();
        if let Some(path) = sources.file {
            match std::fs::read_to_string(path) {
                Ok(text) => file::read(&mut settings, &path.display().to_string(), &text, &mut problems),
                Err(error) => problems.found.push(Problem::unreadable(path, &error)),
            }
        }
        keys::read_variables(&mut settings, &sources.variables, &mut problems);
        keys::read_flags(&mut settings, &sources.flags, &mut problems);
        settings.check_together(&mut problems);
        for problem in check(&settings) {
            problems.add_to_key(problem);
        }
        problems.into_result(settings)
    }

    /// Reads the text of a file over the defaults, without the checks that need the other sources.
    pub fn from_file_text(name: &str, text: &str) -> Result<Self, ConfigErrors> {
        let mut settings = Self::default();
        let mut problems = Problems::default();
        file::read(&mut settings, name, text, &mut problems);
        problems.into_result(settings)
    }

    fn check_together(&self, problems: &mut Problems) {
        if self.upstream.url.is_empty() {
            problems.add_to_key(Problem::new(
                "upstream.url",
                "is not set",
                "give --upstream postgres://user@host:port/database, or [upstream] url in the file",
            ));
        }
        let listen = &self.listen;
        let tls = |key: &str, what: &str, remedy: &str| Problem::new(key, what, remedy);
        match (&listen.tls_certificate, &listen.tls_key) {
            (Some(_), None) => problems.add_to_key(tls(
                "listen.tls_key",
                "is not set although listen.tls_certificate is",
                "name the file with the certificate's private key",
            )),
            (None, Some(_)) => problems.add_to_key(tls(
                "listen.tls_certificate",
                "is not set although listen.tls_key is",
                "name the file with the certificate",
            )),
            (None, None) if listen.requires_tls() => problems.add_to_key(tls(
                "listen.tls_certificate",
                "is not set although listen.tls_required or listen.tls_client_ca is",
                "without a certificate there is no TLS with clients: set listen.tls_certificate and listen.tls_key",
            )),
            (None, None) | (Some(_), Some(_)) => {}
        }
        if !self.admin.address.is_empty() && !is_loopback(&self.admin.address) && self.admin.token.is_empty() {
            problems.add_to_key(Problem::new(
                "admin.token",
                "is not set although admin.address is not a loopback address",
                "set a token, or listen on 127.0.0.1",
            ));
        }
        if self.freshness.mode == FreshnessMode::Standby && self.mirror.tables == TableChoice::None {
            problems.add_to_key(Problem::new(
                "freshness.mode",
                "is \"standby\" although mirror.tables is \"none\"",
                "without a mirror nothing acknowledges what waits for it: take another mode, or let tables be mirrored",
            ));
        }
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(flags: Vec<(&'static str, String)>) -> Sources<'static> {
        Sources { file: None, variables: Vec::new(), flags }
    }

    #[test]
    fn the_shipped_file_states_the_defaults_and_every_key() {
        let settings = Settings::from_file_text("freshet.toml", DEFAULT_FILE).expect("the shipped file is right");
        assert_eq!(settings, Settings::default());
        for key in KEYS {
            let (section, name) = key.path.split_once('.').expect("section.name");
            let after = DEFAULT_FILE.split_once(&format!("[{section}]")).expect("section present").1;
            let group = after.split("\n[").next().unwrap_or(after);
            assert!(group.lines().any(|line| line.starts_with(&format!("{name} = "))), "{} is documented", key.path);
        }
    }

    #[test]
    fn flags_beat_variables_beat_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(
            file.path(),
            "[upstream]\nurl = \"postgres://a@f/d\"\n[freshness]\nwait_budget_ms = 1\nmax_lag_ms = 1\nmode = \"session\"\n",
        )
        .expect("written");
        let settings = Settings::load(&Sources {
            file: Some(file.path()),
            variables: vec![
                ("FRESHET_FRESHNESS_WAIT_BUDGET_MS".to_string(), "2".into()),
                ("FRESHET_FRESHNESS_MAX_LAG_MS".to_string(), "2".into()),
                ("HOME".to_string(), "/".into()),
            ],
            flags: vec![("freshness.max_lag_ms", "3".to_string())],
        })
        .expect("all right");
        let expected =
            Freshness { mode: FreshnessMode::Session, wait_budget_ms: 2, max_lag_ms: 3, ..Freshness::default() };
        assert_eq!(settings.freshness, expected);
        assert_eq!(settings.upstream.url, "postgres://a@f/d");
    }

    #[test]
    fn a_url_alone_is_enough_and_its_absence_is_said() {
        let url = "postgres://postgres@localhost:5432/shop".to_string();
        let settings = Settings::load(&sources(vec![("upstream.url", url.clone())])).expect("enough");
        assert_eq!(settings.upstream.url, url);
        let errors = Settings::load(&sources(vec![])).expect_err("no upstream");
        assert!(errors.to_string().contains("upstream.url is not set"), "{errors}");
    }

    #[test]
    fn databases_are_one_or_those_that_are_read_or_a_list_and_share_what_there_is() {
        let load = |text: &str| {
            let url = "upstream.url".to_string();
            let flags = vec![("upstream.url", format!("postgres://u@h/{url}")), ("mirror.databases", text.to_string())];
            Settings::load(&sources(flags)).map(|settings| (settings.mirror.shares(), settings.mirror.databases))
        };
        assert_eq!(load("one").expect("right"), (1, DatabaseChoice::One));
        assert_eq!(load("auto").expect("right"), (4, DatabaseChoice::Auto));
        let twice = DatabaseChoice::List(vec!["Shop".into(), "stock".into()]);
        assert_eq!(load("stock,Shop,stock").expect("right"), (3, twice));
        for (wrong, why) in [("auto,shop", "takes"), ("shop,one", "takes"), (&*"x".repeat(64), "at most 63 bytes")] {
            let errors = load(wrong).expect_err("wrong").to_string();
            assert!(errors.contains("mirror.databases") && errors.contains(why), "{errors}");
        }
    }

    #[test]
    fn a_slip_in_the_choice_of_tables_is_no_table() {
        let load = |text: &str| {
            let flags = vec![("upstream.url", "postgres://u@h/d".to_string()), ("mirror.tables", text.to_string())];
            Settings::load(&sources(flags)).map(|settings| settings.mirror.tables).map_err(|errors| errors.to_string())
        };
        for (slip, word) in [("autp", "auto"), ("Auto", "auto"), ("non", "none"), ("NONE", "none")] {
            let told = load(slip).expect_err(slip);
            let words = format!("did you mean {word:?}? A table of that name is written public.{slip}");
            assert!(told.contains(&words), "{told}");
        }
        for right in ["public.autp", "tauto_s", "orders", "autp,orders"] {
            assert!(matches!(load(right), Ok(TableChoice::List(_))), "{right}");
        }
    }

    #[test]
    fn repeated_flags_make_a_list() {
        let settings = Settings::load(&sources(vec![
            ("upstream.url", "postgres://u@h/d".to_string()),
            ("listen.addresses", "0.0.0.0:5433".to_string()),
            ("listen.addresses", "/run/freshet".to_string()),
            ("mirror.tables", "flights,public.planes".to_string()),
        ]))
        .expect("all right");
        assert_eq!(
            settings.listen.addresses,
            [ListenAddress::Tcp("0.0.0.0:5433".to_string()), ListenAddress::Directory("/run/freshet".into())]
        );
        assert_eq!(settings.mirror.tables, TableChoice::List(vec!["flights".to_string(), "public.planes".to_string()]));
    }

    #[test]
    fn all_problems_are_reported_at_once_with_line_and_remedy() {
        let text = "[upstream]\nurl = \"mysql://x\"\n\n[freshnes]\nmode = \"exact\"\n\n[freshness]\nwait_budget = 5\nmode = \"exat\"\nmax_lag_ms = \"1s\"\n\n[limits]\nsession_buffer_bytes = 3\n";
        let errors = Settings::from_file_text("f.toml", text).expect_err("five problems");
        let shown = errors.to_string();
        for expected in [
            "f.toml:2: upstream.url",
            "f.toml:4: [freshnes] is no section; did you mean [freshness]?",
            "f.toml:8: freshness.wait_budget is no key; did you mean freshness.wait_budget_ms?",
            "f.toml:9: freshness.mode",
            "did you mean \"exact\"?",
            "f.toml:10: freshness.max_lag_ms",
            "a whole number",
            "f.toml:13: limits.session_buffer_bytes",
        ] {
            assert!(shown.contains(expected), "{expected:?} in\n{shown}");
        }
        assert_eq!(errors.problems.len(), 6);
    }

    #[test]
    fn a_word_that_is_no_level_does_not_silence_the_log() {
        let load = |level: &str| {
            let url = ("upstream.url", "postgres://u@h/d".to_string());
            let loaded = Settings::load(&sources(vec![url, ("log.level", level.to_string())]));
            loaded.map(|settings| settings.log.level).map_err(|errors| errors.to_string())
        };
        for right in ["warn", "INFO", "off", "info,freshet::session=debug", "freshet=trace, tokio_postgres=off"] {
            assert_eq!(load(right).as_deref(), Ok(right));
        }
        for (wrong, near) in [
            ("warning", "did you mean warn?"),
            ("inof", "did you mean info?"),
            ("err", "did you mean error? It takes levels"),
            ("freshet::session", "; it takes levels"),
            ("info,freshet=loud", "t takes levels"),
            ("info,=debug", "It takes levels"),
            ("", "; it takes levels"),
        ] {
            let told = load(wrong).expect_err(wrong);
            assert!(told.contains("log.level cannot be") && told.contains(near), "{told}");
        }
    }

    #[test]
    fn a_misspelt_variable_is_an_error_too() {
        let errors = Settings::load(&Sources {
            variables: vec![
                ("FRESHET_UPSTREAM_URL".to_string(), "postgres://u@h/d".into()),
                ("FRESHET_FRESHNESS_MOD".to_string(), "exact".into()),
            ],
            ..Sources::default()
        })
        .expect_err("a typing error");
        assert!(errors.to_string().contains("did you mean FRESHET_FRESHNESS_MODE?"), "{errors}");
    }

    #[test]
    fn what_kubernetes_sets_beside_a_service_named_freshet_is_no_setting() {
        let load = |links: &[(&str, &str)]| {
            let variable = |(name, value): &(&str, &str)| (name.to_string(), OsString::from(value));
            let mut variables = vec![("FRESHET_UPSTREAM_URL".to_string(), OsString::from("postgres://u@h/d"))];
            variables.extend(links.iter().map(variable));
            Settings::load(&Sources { variables, ..Sources::default() }).map(drop).map_err(|errors| errors.to_string())
        };
        let links = [
            ("FRESHET_SERVICE_HOST", "10.0.0.1"),
            ("FRESHET_SERVICE_PORT", "5433"),
            ("FRESHET_SERVICE_PORT_POSTGRES", "5433"),
            ("FRESHET_PORT", "tcp://10.0.0.1:5433"),
            ("FRESHET_PORT_5433_TCP", "tcp://10.0.0.1:5433"),
            ("FRESHET_PORT_5433_TCP_PROTO", "tcp"),
            ("FRESHET_PORT_5433_TCP_PORT", "5433"),
            ("FRESHET_PORT_5433_TCP_ADDR", "10.0.0.1"),
            ("FRESHET_ADMIN_PORT_9433_TCP_ADDR", "10.0.0.1"),
        ];
        assert_eq!(load(&links), Ok(()));
        for wrong in [("FRESHET_PORT", "5433"), ("FRESHET_LISTEN_PORT", "5433"), ("FRESHET_PORT_TCP", "5433")] {
            assert!(load(&[wrong]).is_err_and(|told| told.contains("is no setting")), "{wrong:?}");
        }
    }

    #[test]
    fn a_variable_that_is_no_text_is_told_by_its_name() {
        use std::os::unix::ffi::OsStringExt;
        let variables = vec![("FRESHET_UPSTREAM_URL".to_string(), OsString::from_vec(vec![b'p', 0xff]))];
        let errors = Settings::load(&Sources { variables, ..Sources::default() }).expect_err("no text").to_string();
        assert!(errors.contains("environment: FRESHET_UPSTREAM_URL: upstream.url is not UTF-8"), "{errors}");
        assert!(!errors.contains("is not set"), "{errors}");
    }

    #[test]
    fn an_open_admin_address_needs_a_token() {
        let with = |token: &str| {
            let mut flags =
                vec![("upstream.url", "postgres://u@h/d".to_string()), ("admin.address", "0.0.0.0:9433".to_string())];
            flags.extend((!token.is_empty()).then(|| ("admin.token", token.to_string())));
            Settings::load(&sources(flags))
        };
        assert!(with("").is_err());
        assert!(with("secret").is_ok());
    }

    #[test]
    fn a_standby_that_mirrors_nothing_is_refused_with_the_line_of_its_mode_beside_all_else() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let text = "[mirror]\ntables = \"none\"\n[freshness]\nmode = \"standby\"\nmax_lag_ms = \"x\"\n";
        std::fs::write(file.path(), text).expect("written");
        let load = |flags| Settings::load(&Sources { file: Some(file.path()), variables: Vec::new(), flags });
        let shown = load(vec![]).expect_err("three problems").to_string();
        let place = file.path().display();
        assert!(shown.contains(&format!("{place}:4: freshness.mode is \"standby\" although mirror.tables")), "{shown}");
        assert!(shown.contains("upstream.url is not set") && shown.contains(":5: freshness.max_lag_ms"), "{shown}");
        let flags = vec![("upstream.url", "postgres://u@h/d".to_string()), ("freshness.max_lag_ms", "5".to_string())];
        let exact = [flags.clone(), vec![("freshness.mode", "exact".to_string())]].concat();
        let auto = [flags, vec![("mirror.tables", "auto".to_string())]].concat();
        for (flags, is_mode) in [(exact, true), (auto, false)] {
            let shown = load(flags).expect_err("the file's lag is wrong").to_string();
            assert!(!shown.contains("freshness.mode"), "{is_mode}: {shown}");
        }
    }

    #[test]
    fn one_bound_for_all_caches_cuts_each_in_proportion() {
        let whole = Cache::default();
        let of = |bytes_max| Cache { bytes_max, ..whole.clone() }.within_budget();
        let sum = |cache: &Cache| cache.result_bytes_max + cache.join_bytes_max + cache.plan_bytes_max;
        assert_eq!((sum(&of(0)), sum(&of(u64::MAX))), (sum(&whole), sum(&whole)));
        let cut = of(72 << 20);
        assert_eq!((cut.result_bytes_max, cut.join_bytes_max, cut.plan_bytes_max), (32 << 20, 32 << 20, 8 << 20));
        let off = Cache { bytes_max: 1_000, join_bytes_max: 0, ..whole.clone() }.within_budget();
        assert_eq!((off.result_bytes_max, off.join_bytes_max, off.plan_bytes_max), (800, 0, 200));
        let huge = Cache { bytes_max: u64::MAX, result_bytes_max: u64::MAX, ..whole }.within_budget();
        assert!(huge.result_bytes_max < u64::MAX);
    }

    #[test]
    fn a_name_that_the_schema_of_freshet_cannot_have_is_refused() {
        for (schema, is_free) in [("public", false), ("pg_catalog", false), ("pg_x", false), ("cache", true)] {
            let text = format!("[admin]\nschema = \"{schema}\"\n");
            let told = Settings::from_file_text("f.toml", &text).map(drop).map_err(|errors| errors.to_string());
            assert_eq!(told.is_ok(), is_free, "{schema}");
            assert!(told.err().is_none_or(|told| told.contains("f.toml:2: admin.schema") && told.contains("upstream")));
        }
    }

    #[test]
    fn a_key_that_is_set_twice_is_named() {
        let text = "[mirror]\ntables = \"auto\"\ncopy_workers = 1\ntables = \"none\"\n[mirror]\n";
        let told = Settings::from_file_text("f.toml", text).expect_err("twice").to_string();
        assert!(told.contains("f.toml:4: duplicate key tables"), "{told}");
        assert!(told.contains("f.toml:5: duplicate key mirror"), "{told}");
    }

    #[test]
    fn broken_toml_is_reported_with_its_line() {
        let errors = Settings::from_file_text("f.toml", "[listen]\nsessions_max = = 3\n").expect_err("broken");
        assert!(errors.to_string().contains("f.toml:2"), "{errors}");
    }
}
