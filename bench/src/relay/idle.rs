//! Idle sessions: what each costs in freshet's memory.

use std::io;
use std::path::Path;

use freshet_tests::client::{bind, describe, execute, parse, sync};

use crate::console::say;
use crate::process::memory_kb;
use crate::relay::servers::{DATABASE, Leg, Upstream, start_freshet};
use crate::wire::{Client, query_message};

/// Memory per idle session.
pub(crate) struct Idle {
    pub(crate) sessions: usize,
    /// `mirror.tables` of this freshet.
    pub(crate) tables: &'static str,
    pub(crate) before_kb: u64,
    pub(crate) after_kb: u64,
}

impl Idle {
    pub(crate) fn kb_per_session(&self) -> f64 {
        self.after_kb.saturating_sub(self.before_kb) as f64 / (self.sessions - 1) as f64
    }
}

/// PostgreSQL's part of a session, roughly; more than this machine has is not tried.
const UPSTREAM_KB_PER_SESSION: u64 = 4 * 1024;

/// A cluster of its own, with room for so many. None, and a printed reason, where the machine cannot.
pub(crate) fn measure(freshet: &Path, sessions: usize) -> io::Result<Vec<Idle>> {
    if let Err(reason) = can_hold(sessions) {
        say(&format!("idle sessions: skipped: {reason}"));
        return Ok(Vec::new());
    }
    let connections = format!("max_connections={}", sessions + 50);
    let upstream = Upstream::start(&[&connections])?;
    let mut measured = Vec::new();
    for tables in ["auto", "none"] {
        let (process, address) = start_freshet(&upstream, Leg::Tcp, freshet, tables)?;
        // A first session, so that what all share is there before.
        let first = connect(address)?;
        let before_kb = memory_kb(process.id, "VmRSS");
        let idle = (1..sessions).map(|_| connect(address)).collect::<io::Result<Vec<_>>>()?;
        let after_kb = memory_kb(process.id, "VmRSS");
        measured.push(Idle { sessions, tables, before_kb, after_kb });
        drop((first, idle));
    }
    Ok(measured)
}

/// A session that has said something in both protocols: its buffers have been used.
fn connect(address: std::net::SocketAddr) -> io::Result<Client> {
    let mut client = Client::connect_small(address, "postgres", DATABASE)?;
    client.query(&query_message("SELECT relname FROM pg_class"))?;
    let unit =
        [parse("s", "SELECT $1::text"), bind("", "s", &[Some("x")], 0), describe('P', ""), execute("", 0), sync()];
    client.query(&unit.concat())?;
    Ok(client)
}

/// Whether so many sessions, each with one upstream, have room here; the reason if not.
pub(crate) fn can_hold(sessions: usize) -> Result<(), String> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available: u64 = available.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let needed = sessions as u64 * UPSTREAM_KB_PER_SESSION;
    if available < needed {
        return Err(format!("{sessions} need about {} MB, {} MB are available", needed / 1024, available / 1024));
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let files = limit.maximum.unwrap_or(u64::MAX);
    if files < 2 * sessions as u64 + 200 {
        return Err(format!("{sessions} need twice as many open files, the limit is {files}"));
    }
    Ok(())
}

/// So many connections need more files than a shell allows by default; the servers inherit it.
pub(crate) fn raise_file_limit() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
}
