//! Servers of the bench's own program (freshet, ceilings, the cheapest relay), and what a suite waits for before it times.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use freshet_tests::cluster::{Cluster, binaries};

use crate::process::Process;
use crate::wire::{Client, first_row, query_message, rows, sorted_rows};

/// A process of this program that serves on a free port until dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
}

impl Server {
    /// What it writes to standard error goes to `log`.
    pub(crate) fn start(arguments: &[&str], log: &Path) -> io::Result<Self> {
        let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
        let mut process = Process::start(std::env::current_exe()?, &arguments, log)?;
        let line = process.line()?;
        let address = line.parse().map_err(|_| {
            let log = std::fs::read_to_string(log).unwrap_or_default();
            let last = log.lines().last().unwrap_or("no reason given");
            io::Error::other(format!("{} did not start: {last}", arguments[0].to_string_lossy()))
        })?;
        Ok(Self { address, process })
    }
}

pub(crate) fn wait_for(mut is_there: impl FnMut() -> bool, what: &str) -> io::Result<()> {
    let limit = Instant::now() + Duration::from_secs(20);
    while !is_there() {
        if Instant::now() > limit {
            return Err(io::Error::other(format!("{what}: not within 20 s")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

pub(crate) fn address(cluster: &Cluster) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], cluster.port()))
}

/// What of PostgreSQL's configuration its figures depend on, for the conditions of a run.
pub(crate) fn configuration(cluster: &Cluster) -> (&'static str, String) {
    let names =
        "'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size', 'work_mem', 'wal_level'";
    let sql = format!(
        "SELECT string_agg(name || ' ' || current_setting(name), ', ' ORDER BY name) FROM pg_settings WHERE name IN ({names})"
    );
    ("PostgreSQL's", cluster.psql("postgres", &sql).replace(", ", " "))
}

/// Until so many tables are mirrored; an error names what is not after two minutes.
pub(crate) fn wait_until_mirrored(address: SocketAddr, database: &str, tables: usize) -> io::Result<()> {
    let limit = Instant::now() + Duration::from_secs(120);
    let mut client = Client::connect(address, "postgres", database)?;
    let message = query_message("SELECT name, state, reason FROM freshet.tables");
    loop {
        let rows = sorted_rows(client.query(&message)?);
        let mirrored = rows.iter().filter(|row| row.windows(8).any(|part| part == b"mirrored")).count();
        if mirrored >= tables {
            return Ok(());
        }
        if Instant::now() > limit {
            let shown: Vec<_> = rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
            return Err(io::Error::other(format!("not mirrored within 120 s: {shown:?}")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Freshet as a synchronous standby, once upstream shows that all commits wait for it.
pub(crate) fn start_standby(cluster: &Cluster, database: &str, tables: &[String], log: &Path) -> io::Result<Server> {
    let arguments = ["serve-freshet", &cluster.url(database), &tables.join(","), "--freshness", "standby"];
    let freshet = Server::start(&arguments, log)?;
    wait_until_mirrored(freshet.address, database, tables.len())?;
    cluster.psql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (freshet)'");
    cluster.reload();
    let mut client = Client::connect(freshet.address, "postgres", database)?;
    let message = query_message("SELECT name, value FROM freshet.status");
    let is_synchronous = |reply: &[u8]| {
        let is_state = |row: &Vec<Option<String>>| row.first().is_some_and(|name| name.as_deref() == Some("standby"));
        let state = rows(reply).into_iter().find(is_state).and_then(|row| row.into_iter().nth(1).flatten());
        state.is_some_and(|state| state.starts_with("synchronous"))
    };
    wait_for(|| client.query(&message).is_ok_and(is_synchronous), "freshet as a synchronous standby")?;
    Ok(freshet)
}

/// Bytes that the mirrored tables take in freshet's memory, and those of the same tables upstream, without indexes.
pub(crate) fn sizes(freshet: &mut Client, upstream: &mut Client, tables: &[&str]) -> io::Result<[f64; 2]> {
    let names = tables.iter().map(|table| format!("pg_table_size('{table}')")).collect::<Vec<_>>().join(" + ");
    let number = |client: &mut Client, sql: &str| {
        let cell = first_row(client.query(&query_message(sql))?).pop().flatten();
        cell.and_then(|text| text.parse::<f64>().ok()).ok_or_else(|| io::Error::other(format!("no number: {sql}")))
    };
    let mirrored = rows(freshet.query(&query_message("SELECT name, bytes FROM freshet.tables"))?);
    let bytes = mirrored.iter().filter_map(|row| row.get(1)?.as_ref()?.parse::<f64>().ok()).sum();
    Ok([bytes, number(upstream, &format!("SELECT {names}"))?])
}

/// `pg_recvlogical`, which has every change of the cluster's tables decoded and throws it away: the least that following takes.
pub(crate) fn start_receiver(cluster: &Cluster, database: &str, log: &Path) -> io::Result<Process> {
    cluster.psql(database, "CREATE PUBLICATION bench FOR ALL TABLES");
    let url = cluster.url(database);
    let flags = "--slot=bench --plugin=pgoutput --create-slot --start -f /dev/null \
                 -o proto_version=1 -o publication_names=bench";
    let arguments: Vec<_> = ["-d", &url].into_iter().chain(flags.split_whitespace()).map(Into::into).collect();
    let receiver = Process::start(binaries().join("pg_recvlogical"), &arguments, log)?;
    wait_for(|| is_received(cluster), "the receiver")?;
    Ok(receiver)
}

/// Whether that gets changes from its slot.
pub(crate) fn is_received(cluster: &Cluster) -> bool {
    let sql = "SELECT count(*) FROM pg_stat_replication r JOIN pg_replication_slots s ON s.active_pid = r.pid \
               WHERE s.slot_name = 'bench' AND r.state = 'streaming'";
    cluster.psql("postgres", sql) == "1"
}

/// How the previous statement of this session was answered, and why.
pub(crate) fn last_route(client: &mut Client) -> io::Result<(String, String)> {
    let last = first_row(client.query(&query_message("SHOW freshet.last"))?);
    let cell = |at: usize| last.get(at).cloned().flatten().unwrap_or_default();
    Ok((cell(0), cell(1)))
}

/// Sends the texts that `next` makes until one is answered in a `wanted` way (its shape has been verified, its reply kept),
/// the time is up, or the reason is one that does not go away; the route and its reason then.
pub(crate) fn settle(
    client: &mut Client,
    mut next: impl FnMut() -> String,
    wanted: &[&str],
    patience: Duration,
) -> io::Result<(String, String)> {
    let limit = Instant::now() + patience;
    loop {
        client.query(&query_message(&next()))?;
        let (route, reason) = last_route(client)?;
        let is_final = FINAL.iter().any(|start| reason.starts_with(start));
        if wanted.contains(&route.as_str()) || is_final || Instant::now() > limit {
            return Ok((route, reason));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reasons that are the statement's own; for others it may be answered otherwise a moment later.
const FINAL: [&str; 8] = [
    "not_parsed",
    "not_a_query",
    "unsupported",
    "unknown_function",
    "volatile",
    "collation",
    "quarantined",
    "shape_mismatch",
];
