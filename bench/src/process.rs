//! Processes of the bench's own: started by a shell that ends them when the bench ends, by whatever cause, and what
//! the system tells about them.
//!
//! The shell holds the reading end of a pipe; when the pipe closes (dropped, or the bench was killed) it ends the process.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use freshet_tests::cluster::Cluster;

/// First line: the process id. Then what the process itself prints.
const OWNER_SCRIPT: &str = r#"
sh -c 'echo $$; exec "$@"' freshet-bench-process "$@" 2>>"$BENCH_LOG" </dev/null &
pid=$!
read -r _
kill -TERM $pid 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill -KILL $pid 2>/dev/null
wait $pid
"#;

/// A running process; ended when dropped.
pub(crate) struct Process {
    owner: Child,
    output: BufReader<ChildStdout>,
    pub(crate) id: u32,
}

impl Process {
    /// Starts `program`; what it writes to standard error goes to `log`.
    pub(crate) fn start(program: impl AsRef<OsStr>, arguments: &[OsString], log: &std::path::Path) -> io::Result<Self> {
        let mut owner = Command::new("sh")
            .args(["-c", OWNER_SCRIPT, "freshet-bench-owner"])
            .arg(program)
            .args(arguments)
            .env("BENCH_LOG", log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = owner.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        let mut process = Self { owner, output: BufReader::new(output), id: 0 };
        process.id = process.line()?.parse().map_err(io::Error::other)?;
        Ok(process)
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.owner.stdin.take());
        let _ = self.owner.wait();
    }
}

/// A program on the path.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// What a program says of its version, in one line; none where it says nothing.
pub(crate) fn version(program: &std::path::Path, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).stdin(Stdio::null()).output().ok()?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&text).lines().next().map(|line| line.trim().to_owned())
}

/// Processor time that all threads of a process have used; of another process only those that still run.
pub(crate) fn processor_time(id: u32) -> Duration {
    if id == std::process::id() {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        return Duration::try_from(time).unwrap_or_default();
    }
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Of a process, such as a postmaster, and of those that it has started, also of those that have ended, such as parallel
/// workers.
pub(crate) fn processor_time_of_family(id: u32) -> Duration {
    let running: Duration = children(id).into_iter().chain([id]).map(processor_time).sum();
    running + ended_children(id)
}

/// Processor time so far of a server, of the PostgreSQL behind it, and of this process, which asks.
pub(crate) fn used(server: Option<u32>, postmaster: Option<u32>) -> [Duration; 3] {
    let upstream = postmaster.map(processor_time_of_family).unwrap_or_default();
    [server.map(processor_time).unwrap_or_default(), upstream, processor_time(std::process::id())]
}

/// What they have used since [`used`] said so. Of this process what looking takes is left out: it grows with PostgreSQL's
/// connections.
pub(crate) fn used_since(before: [Duration; 3], server: Option<u32>, postmaster: Option<u32>) -> [Duration; 3] {
    let client = processor_time(std::process::id());
    let [server, upstream, _] = used(server, postmaster);
    between(before, [server, upstream, client])
}

/// What was used between two looks.
pub(crate) fn between<const WHO: usize>(before: [Duration; WHO], after: [Duration; WHO]) -> [Duration; WHO] {
    std::array::from_fn(|who| after[who].saturating_sub(before[who]))
}

/// In hundredths of a second (proc(5): fields 16 and 17 of /proc/ID/stat, in ticks, of which Linux shows 100 per second).
fn ended_children(id: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // Behind the program's name, which may hold anything, comes field 3.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// The first process of a PostgreSQL.
pub(crate) fn postmaster(cluster: &Cluster) -> io::Result<u32> {
    let text = std::fs::read_to_string(cluster.directory().join("data/postmaster.pid"))?;
    text.lines().next().unwrap_or_default().parse().map_err(io::Error::other)
}

/// The processes that a process has started and that still run.
pub(crate) fn children(id: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// A line of /proc/ID/status in KB, such as `VmRSS` or `VmHWM`.
pub(crate) fn memory_kb(id: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Forgets the high-water mark of a process's memory (Linux: proc(5), clear_refs); false where that is not allowed.
pub(crate) fn reset_memory_peak(id: u32) -> bool {
    std::fs::write(format!("/proc/{id}/clear_refs"), "5").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_ended_process_used_is_its_parents() {
        let before = ended_children(std::process::id());
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", spin]).status().expect("a shell").success());
        assert!(ended_children(std::process::id()) > before);
    }

    #[test]
    fn threads_that_have_ended_count() {
        let before = processor_time(std::process::id());
        let spin = || (0..20_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        std::thread::spawn(spin).join().expect("no panic");
        assert!(processor_time(std::process::id()) > before + Duration::from_millis(1));
    }
}
