//! freshet in process: on a thread and runtime of its own, on a port that the system chose, ended when dropped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use freshet::shutdown::{self, Phase, Trigger};
use freshet::{log, server};
use freshet_config::{ListenAddress, Settings};

use crate::raw::RawClient;

/// A running freshet.
pub struct Freshet {
    port: u16,
    trigger: Arc<Trigger>,
    thread: Option<JoinHandle<()>>,
}

impl Freshet {
    /// In front of `upstream_url`, with the default settings but for what `change` sets. Listens on a free port; no
    /// admin address unless `change` sets one.
    pub fn start(upstream_url: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        settings.upstream.url = upstream_url.to_string();
        settings.listen.addresses = vec![ListenAddress::Tcp("127.0.0.1:0".to_string())];
        settings.listen.drain_timeout_ms = 2_000;
        settings.admin.address = String::new();
        // These tests ask what is answered, not how fast: on a machine under load a barrier may take its time.
        settings.freshness.wait_budget_ms = 2_000;
        // Nor do they wait for the executions that the audit takes for itself.
        settings.audit.sample_one_in = 0;
        // A debug build is slow.
        settings.audit.slower_times = 0;
        settings.log.level = std::env::var("FRESHET_TEST_LOG").unwrap_or_else(|_| "off".to_string());
        change(&mut settings);
        std::mem::forget(log::start(&settings.log));
        let (trigger, _) = shutdown::channel();
        let trigger = Arc::new(trigger);
        let (report, port) = std::sync::mpsc::channel();
        let of_thread = Arc::clone(&trigger);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listeners = server::bind(&settings).await.expect("a free port");
                let first = listeners.first().expect("one address").address();
                report.send(first.rsplit_once(':').and_then(|(_, port)| port.parse().ok())).expect("awaited");
                server::run(settings, listeners, of_thread).await.expect("freshet runs");
            });
        });
        let port = port.recv().expect("freshet starts").unwrap_or(0);
        Self { port, trigger, thread: Some(thread) }
    }

    /// A plain relay: nothing is mirrored.
    pub fn relay(upstream_url: &str) -> Self {
        Self::start(upstream_url, |settings| settings.mirror.tables = freshet_config::TableChoice::None)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Waits until all `tables` (`schema.table`) of `database` are mirrored; panics with their states after a minute.
    pub fn wait_until_mirrored(&self, database: &str, tables: &[&str]) {
        let mut client = RawClient::connect(self.address(), "postgres", database).expect("connects");
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let reply = client.simple("SELECT name, state, reason FROM freshet.tables").expect("answers");
            let text = |cell: &Option<Vec<u8>>| cell.as_ref().map(|c| String::from_utf8_lossy(c).into_owned());
            let states: Vec<Vec<Option<String>>> =
                reply.rows().iter().map(|row| row.iter().map(text).collect()).collect();
            let is_mirrored = |table: &&str| {
                states.iter().any(|row| row[0].as_deref() == Some(*table) && row[1].as_deref() == Some("mirrored"))
            };
            if tables.iter().all(is_mirrored) {
                return;
            }
            assert!(Instant::now() < limit, "not mirrored: {states:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Reads the tables until they are mirrored, which is why they are.
    pub fn read_until_mirrored(&self, database: &str, tables: &[String]) {
        let mut client = RawClient::connect(self.address(), "postgres", database).expect("connects");
        let limit = Instant::now() + Duration::from_secs(60);
        for table in tables {
            loop {
                client.simple(&format!("SELECT count(*) FROM {table}")).expect("answers");
                let (route, reason) = client.last().expect("answers");
                if matches!(route.as_str(), "local" | "hit") {
                    break;
                }
                assert!(Instant::now() < limit, "{table} is not mirrored: {route} {reason}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// One value of `freshet.status`.
    pub fn status(&self, database: &str, name: &str) -> String {
        let mut client = RawClient::connect(self.address(), "postgres", database).expect("connects");
        let reply = client.simple("SELECT name, value FROM freshet.status").expect("answers");
        let rows = reply.rows();
        let row = rows.iter().find(|row| row[0].as_deref() == Some(name.as_bytes()));
        let value = row.and_then(|row| row[1].clone()).unwrap_or_else(|| panic!("{name} is not in freshet.status"));
        String::from_utf8(value).expect("text")
    }

    /// Begins the graceful shutdown; dropping waits for its end.
    pub fn drain(&self) {
        self.trigger.advance(Phase::Draining);
    }
}

impl Drop for Freshet {
    fn drop(&mut self) {
        self.trigger.advance(Phase::Draining);
        self.trigger.advance(Phase::Stopping);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("freshet ended without a panic");
            }
        }
    }
}
