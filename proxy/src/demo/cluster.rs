//! The demo's throwaway PostgreSQL: initdb in a temporary directory, a free port, logical decoding on, gone at the end.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::DemoError;

/// Stops PostgreSQL and removes its files when dropped, and also when this process dies without dropping it
/// (its shell owner notices that the pipe closed).
pub(super) struct Cluster {
    pub(super) port: u16,
    owner: Child,
}

/// Runs as the owner of the cluster: prints one line when PostgreSQL accepts connections, ends when its input closes.
const OWNER_SCRIPT: &str = r#"
bin=$1; port=$2
directory=$(mktemp -d "${TMPDIR:-/tmp}/freshet-demo-XXXXXX") || exit 1
cd "$directory" || exit 1
stop() { [ -z "$pid" ] || { kill -INT "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; }; cd /; rm -rf "$directory"; }
# By its own file: what answers on the port may be another server, which took it first.
is_ready() { [ "$(sed -n '1p;8p' data/postmaster.pid 2>/dev/null | tr -d ' ' | tr '\n' ' ')" = "$pid ready " ]; }
trap stop EXIT
trap '' INT
"$bin/initdb" -D data -U postgres -A trust -E UTF8 --locale=C --no-sync >log 2>&1 || { tail -n 3 log >&2; exit 1; }
"$bin/postgres" -D data -p "$port" -k "$directory" -c listen_addresses=127.0.0.1 -c wal_level=logical \
    -c shared_buffers=256MB -c max_wal_size=2GB -c log_min_messages=warning >>log 2>&1 </dev/null &
pid=$!
for attempt in $(seq 1 600); do
    is_ready && { echo ready; break; }
    kill -0 "$pid" 2>/dev/null || { tail -n 5 log >&2; exit 1; }
    sleep 0.05
done
read -r end
"#;

impl Cluster {
    pub(super) fn start() -> Result<Self, DemoError> {
        let binaries = find_binaries().ok_or(DemoError::NoPostgres)?;
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(DemoError::Cluster)?.port();
        let mut command = as_unprivileged();
        command.args(["sh", "-c", OWNER_SCRIPT, "freshet-demo"]).arg(&binaries).arg(port.to_string());
        let mut owner = command
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(DemoError::Cluster)?;
        let mut line = String::new();
        if let Some(stdout) = owner.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(DemoError::Cluster)?;
        }
        let cluster = Self { port, owner };
        if line.trim() != "ready" {
            return Err(DemoError::Cluster(std::io::Error::other(
                "PostgreSQL did not start (its last words are above)",
            )));
        }
        Ok(cluster)
    }

    /// The connection string of the demo's database.
    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.owner.stdin.take());
        let _ = self.owner.wait();
    }
}

/// `THROWAWAY_PG_BIN`, else the newest server in Debian's layout, else what `pg_config` names.
fn find_binaries() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("THROWAWAY_PG_BIN") {
        return Some(folder.into()).filter(|folder: &PathBuf| folder.join("initdb").exists());
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder)| folder.join("initdb").exists())
        .max();
    if let Some((_, folder)) = newest {
        return Some(folder);
    }
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    folder.join("initdb").exists().then_some(folder)
}

/// PostgreSQL refuses to run as root: then its programs run as the user `postgres`.
fn as_unprivileged() -> Command {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]);
        command
    } else {
        Command::new("env")
    }
}
