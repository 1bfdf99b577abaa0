//! System calls per relayed unit, counted by strace while one connection asks one unit after the other.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::find_program;
use crate::relay::servers::{Kind, Line};
use crate::relay::units::Units;

/// Calls of one process for one unit.
pub(crate) struct Calls {
    pub(crate) server: String,
    pub(crate) protocol: &'static str,
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    /// Reads and writes that found nothing to do.
    pub(crate) in_vain: f64,
    pub(crate) waits: f64,
    pub(crate) others: f64,
}

const UNITS: usize = 1000;

/// The reason where there is no strace, or it may not trace.
pub(crate) fn measure(lines: &[Line], units: &Units) -> io::Result<Result<Vec<Calls>, String>> {
    let Some(strace) = find_program("strace") else {
        return Ok(Err("strace is not installed".into()));
    };
    let mut all = Vec::new();
    for line in lines.iter().filter(|line| line.kind != Kind::FreshetRoute) {
        let Some(process) = line.process else { continue };
        let mut client = line.connect()?;
        for (message, reply) in units.messages.iter().zip(&units.replies) {
            if client.query(message)? != reply {
                return Err(io::Error::other("a reply differs from PostgreSQL's"));
            }
        }
        let file = tempfile::NamedTempFile::new()?;
        let Some(tracer) = attach(&strace, process, file.path())? else {
            return Ok(Err("strace may not trace here".into()));
        };
        for at in 0..UNITS {
            client.query(&units.messages[at % units.messages.len()])?;
        }
        drop(tracer);
        let text = std::fs::read_to_string(file.path())?;
        all.push(count(&text, line.name(), units.protocol.name()));
    }
    Ok(Ok(all))
}

/// strace on its target; detached when dropped.
struct Tracer(std::process::Child);

fn attach(strace: &Path, process: u32, file: &Path) -> io::Result<Option<Tracer>> {
    let child = Command::new(strace)
        .args(["-f", "-q", "-q", "-o"])
        .arg(file)
        .args(["-p", &process.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut tracer = Tracer(child);
    let limit = Instant::now() + Duration::from_secs(5);
    while !is_traced(process) {
        if tracer.0.try_wait()?.is_some() || Instant::now() > limit {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Some(tracer))
}

/// All threads have a tracer.
fn is_traced(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.into_iter().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|id| id.trim() != "0"))
    })
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // On SIGINT strace lets go of its target and ends.
        if let Some(id) = rustix::process::Pid::from_raw(self.0.id().cast_signed()) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
        }
        let _ = self.0.wait();
    }
}

fn count(trace: &str, server: String, protocol: &'static str) -> Calls {
    let (mut reads, mut writes, mut in_vain, mut waits, mut others) = (0, 0, 0, 0, 0);
    for line in trace.lines() {
        // `PID name(...) = result`; the second half of an interrupted call is not another call.
        let call = line.split_once(' ').map_or(line, |(_, call)| call.trim_start());
        if call.contains("EAGAIN") {
            in_vain += 1;
        }
        match call.split_once('(').map(|(name, _)| name) {
            Some("read" | "recvfrom" | "recvmsg" | "readv") => reads += 1,
            Some("write" | "sendto" | "sendmsg" | "writev") => writes += 1,
            Some("epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "poll") => waits += 1,
            Some(name)
                if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit()) =>
            {
                others += 1;
            }
            Some(_) | None => {}
        }
    }
    let per_unit = |count: i32| f64::from(count) / UNITS as f64;
    Calls {
        server,
        protocol,
        reads: per_unit(reads),
        writes: per_unit(writes),
        in_vain: per_unit(in_vain),
        waits: per_unit(waits),
        others: per_unit(others),
    }
}
