//! freshet in a process of its own, so that it can be killed and stopped: this program, started again as `serve`.

use std::io::Read;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use freshet::{log, server, shutdown};
use freshet_config::{FreshnessMode, ListenAddress, Settings, TableChoice};

use crate::world::{Mode, World};

/// Every table of the workloads but those of the catalog's.
pub(crate) const TABLES: [&str; 13] = [
    "public.registers",
    "public.copies",
    "public.solo",
    "public.triggered",
    "public.accounts",
    "public.savings",
    "public.entries",
    "public.bulk",
    "public.own",
    "public.shops",
    "public.sales",
    "public.doctors",
    "public.joint",
];

/// The child; killed when dropped.
pub(crate) struct Served {
    child: Child,
    /// The child ends when this does.
    _stdin: Option<ChildStdin>,
}

/// What freshet is started with.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) mode: Mode,
    /// Where PostgreSQL is reached.
    pub(crate) upstream_port: u16,
    pub(crate) database: String,
    pub(crate) bug: Option<String>,
    pub(crate) has_event_trigger: bool,
}

impl Served {
    /// Listens at `port`.
    pub(crate) fn start(serving: &Serving, port: u16) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let url = format!("postgres://postgres@127.0.0.1:{}/{}", serving.upstream_port, serving.database);
        let trigger = if serving.has_event_trigger { "event-trigger" } else { "none" };
        let bug = serving.bug.as_deref().unwrap_or("none");
        command.args(["serve", &url, &port.to_string(), bug, serving.mode.name(), trigger]).stdin(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        Ok(Self { child, _stdin: stdin })
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child's side: `serve URL PORT BUG MODE TRIGGER`. Returns when its parent has ended.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let [url, port, bug, mode, trigger] = arguments else { return Err("serve URL PORT BUG MODE TRIGGER".to_string()) };
    if bug != "none" {
        plant(bug)?;
    }
    let mut settings = Settings::default();
    settings.upstream.url.clone_from(url);
    settings.listen.addresses = vec![ListenAddress::Tcp(format!("127.0.0.1:{port}"))];
    settings.admin.address = String::new();
    settings.mirror.tables = TableChoice::Auto;
    settings.mirror.event_trigger = trigger == "event-trigger";
    settings.freshness.mode = FreshnessMode::parse(mode).ok_or("no such mode")?;
    // The checker asks what is answered, not how fast.
    settings.freshness.wait_budget_ms = 200;
    settings.audit.sample_one_in = 500;
    settings.audit.slower_times = 0;
    settings.cache.refresh_ahead_percent = 20;
    settings.log.level = std::env::var("FRESHET_TEST_LOG").unwrap_or_else(|_| "off".to_string());
    let _log = log::start(&settings.log);
    let (trigger, _) = shutdown::channel();
    let trigger = Arc::new(trigger);
    let of_parent = Arc::clone(&trigger);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        of_parent.advance(shutdown::Phase::Draining);
        of_parent.advance(shutdown::Phase::Stopping);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async move {
        let listeners = server::bind(&settings).await.map_err(|error| error.to_string())?;
        server::run(settings, listeners, trigger).await.map_err(|error| error.to_string())
    })
}

#[cfg(feature = "planted-bugs")]
fn plant(bug: &str) -> Result<(), String> {
    freshet_engine::planted::plant(bug)
}

#[cfg(not(feature = "planted-bugs"))]
fn plant(bug: &str) -> Result<(), String> {
    Err(format!("{bug}: this build has no planted bugs (--features planted-bugs)"))
}

/// Waits until every table of the workloads is mirrored; None at the end of the run.
pub(crate) fn wait_until_mirrored(world: &World, seconds: u64) -> Option<()> {
    let mut client = world.through(&[]);
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    while std::time::Instant::now() < limit && world.goes_on() {
        for table in TABLES {
            let _ = client.run(&format!("SELECT count(*) FROM {table}"));
        }
        let reply = client.run("SELECT name, state FROM freshet.tables");
        let rows = reply.map(|reply| reply.rows()).unwrap_or_default();
        let is_mirrored = |table: &&str| {
            rows.iter().any(|row| row[0].as_deref() == Some(table.as_bytes()) && row[1].as_deref() == Some(b"mirrored"))
        };
        if TABLES.iter().all(is_mirrored) {
            return Some(());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    None
}
