//! A throwaway PostgreSQL: initdb in a temporary directory, a free port, `wal_level = logical`, gone at the end.
//!
//! The cluster is owned by a small shell process that reads commands from a pipe. When the test process ends, by
//! whatever cause, the pipe closes and the shell stops PostgreSQL and removes the directory: nothing is left behind.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU16, AtomicU64};
use std::sync::{Mutex, OnceLock};

/// Roles made in every cluster, each to be authenticated by the method it is named after; the password is the name.
pub const LOGIN_CLEARTEXT: &str = "login_cleartext";
pub const LOGIN_MD5: &str = "login_md5";
pub const LOGIN_SCRAM: &str = "login_scram";

/// A running PostgreSQL of this test binary.
pub struct Cluster {
    port: u16,
    directory: PathBuf,
    owner: Mutex<Owner>,
}

struct Owner {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// What a cluster's files are made by.
enum Origin<'a> {
    /// initdb; the C library has this locale besides, if it is not empty.
    New(&'a str),
    /// pg_basebackup, from the primary at this port.
    Backup(u16),
}

/// The shell process: one command per line on its input, one answer per line on its output.
const OWNER_SCRIPT: &str = r#"
bin=$1; port=$2; shift 2
directory=$(mktemp -d "${TMPDIR:-/tmp}/freshet-test-XXXXXX") || exit 1
log=$directory/postgres.log
stop() { if [ -n "$pid" ]; then kill -"$1" "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; pid=; fi; }
# By its own file: what answers on the port may be another test's server, which took it first.
is_ready() { [ "$(sed -n '1p;8p' "$directory/data/postmaster.pid" 2>/dev/null | tr -d ' ' | tr '\n' ' ')" = "$pid ready " ]; }
start() {
    "$bin/postgres" -D "$directory/data" -p "$port" "$@" >>"$log" 2>&1 </dev/null &
    pid=$!
    for _ in $(seq 1 600); do
        is_ready && { echo started; return; }
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    echo failed; tail -n 5 "$log" >&2
}
trap 'stop INT; rm -rf "$directory"' EXIT
if [ -n "$FRESHET_TEST_LOCALE" ]; then
    mkdir "$directory/locales" && localedef -i "$FRESHET_TEST_LOCALE" -f UTF-8 "$directory/locales/$FRESHET_TEST_LOCALE.utf8" >"$log" 2>&1
    export LOCPATH=$directory/locales
fi
make() {
    if [ -n "$FRESHET_TEST_PRIMARY" ]; then
        "$bin/pg_basebackup" -h 127.0.0.1 -p "$FRESHET_TEST_PRIMARY" -U postgres -w -D "$directory/data" -R -c fast --no-sync
        return
    fi
    "$bin/initdb" -D "$directory/data" -U postgres -A trust -E UTF8 --locale=C --no-sync || return
    cat >"$directory/data/pg_hba.conf" <<HBA
host all login_cleartext 127.0.0.1/32 password
host all login_md5 127.0.0.1/32 md5
host all login_scram 127.0.0.1/32 scram-sha-256
local all all trust
host all all 127.0.0.1/32 trust
local replication all trust
host replication all 127.0.0.1/32 trust
HBA
}
make >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
echo "$directory"
start "$@"
while read -r command; do
    case $command in
        start) start "$@" ;;
        stop) stop INT; echo stopped ;;
        kill) stop QUIT; echo stopped ;;
        reload) kill -HUP "$pid"; echo reloaded ;;
    esac
done
"#;

impl Cluster {
    /// The cluster that the tests of one binary share; each takes a [`Cluster::database`] of its own. Roles are of the whole
    /// cluster: one made later would be a new catalog for the other tests too. They grant to `guest` and `other_guest`, which
    /// every cluster has, in databases of their own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A cluster of its own, for tests that stop it or need other settings (`name=value`).
    pub fn start(settings: &[&str]) -> Self {
        // Between choosing a free port and using it another process may take it: try again.
        (0..3).find_map(|_| Self::try_start(free_port(), settings, Origin::New(""))).expect("PostgreSQL starts")
    }

    /// A streaming standby of this cluster, which can be read; without the settings that this one was given.
    pub fn standby(&self) -> Self {
        self.standby_with(&[])
    }

    /// Likewise, with other settings.
    pub fn standby_with(&self, settings: &[&str]) -> Self {
        let start = |_| Self::try_start(free_port(), settings, Origin::Backup(self.port));
        (0..3).find_map(start).expect("PostgreSQL starts")
    }

    /// A cluster whose C library has `locale` (`en_US`), in UTF-8. None: this machine cannot make it.
    pub fn with_locale(locale: &str) -> Option<Self> {
        let source = Path::new("/usr/share/i18n/locales").join(locale);
        if !source.exists() || Command::new("localedef").arg("--version").output().is_err() {
            return None;
        }
        (0..3).find_map(|_| Self::try_start(free_port(), &[], Origin::New(locale)))
    }

    #[expect(clippy::zombie_processes, reason = "the owner of a cluster that started is waited for when it is dropped")]
    fn try_start(port: u16, settings: &[&str], origin: Origin<'_>) -> Option<Self> {
        let (locale, primary) = match origin {
            Origin::New(locale) => (locale, String::new()),
            Origin::Backup(primary) => ("", primary.to_string()),
        };
        let mut arguments: Vec<String> = vec![binaries().display().to_string(), port.to_string()];
        let defaults = [
            "listen_addresses=127.0.0.1",
            "wal_level=logical",
            "fsync=off",
            "max_connections=200",
            "max_wal_senders=20",
            "max_replication_slots=20",
            "shared_buffers=64MB",
            "log_min_messages=warning",
        ];
        for setting in defaults.iter().chain(settings) {
            arguments.extend(["-c".to_string(), setting.to_string()]);
        }
        let mut child = as_postgres("sh")
            .args(["-c", OWNER_SCRIPT, "freshet-test-cluster"])
            .args(&arguments)
            .current_dir("/")
            .env("FRESHET_TEST_LOCALE", locale)
            .env("FRESHET_TEST_PRIMARY", &primary)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let commands = child.stdin.take();
        let mut answers = BufReader::new(child.stdout.take().expect("piped"));
        let directory = read_line(&mut answers);
        if directory.is_none() || read_line(&mut answers).as_deref() != Some("started") {
            drop(commands);
            let _ = child.wait();
            return None;
        }
        let directory = PathBuf::from(directory?);
        let owner = Mutex::new(Owner { child, commands, answers });
        let cluster = Self { port, directory, owner };
        if !primary.is_empty() {
            // A standby has its primary's roles.
            return Some(cluster);
        }
        cluster.psql(
            "postgres",
            "SET password_encryption = 'md5'; CREATE ROLE login_md5 LOGIN SUPERUSER PASSWORD 'login_md5';
             SET password_encryption = 'scram-sha-256';
             CREATE ROLE login_scram LOGIN SUPERUSER PASSWORD 'login_scram';
             CREATE ROLE login_cleartext LOGIN SUPERUSER PASSWORD 'login_cleartext';
             CREATE ROLE guest LOGIN; CREATE ROLE other_guest LOGIN",
        );
        Some(cluster)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Where the cluster's files are: `data/`, `postgres.log`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// PostgreSQL's major version.
    pub fn major(&self) -> u32 {
        let number = self.psql("postgres", "SHOW server_version_num");
        number.parse::<u32>().expect("a number") / 10_000
    }

    /// A new, empty database; its name.
    pub fn database(&self) -> String {
        self.database_with("")
    }

    /// Likewise, with options of CREATE DATABASE.
    pub fn database_with(&self, options: &str) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name} {options}"));
        name
    }

    /// Ends whoever is connected with it.
    pub fn drop_database(&self, name: &str) {
        self.psql("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
    }

    /// `postgres://postgres@127.0.0.1:PORT/DATABASE`.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs SQL by psql as the superuser, directly; panics on an error. The result rows, fields separated by `|`.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let output = Command::new(binaries().join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres"])
            .args(["-p", &self.port.to_string(), "-d", database, "-c", sql])
            .output()
            .expect("psql runs");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_string()
    }

    /// Fast shutdown: open transactions are rolled back, sessions get 57P01.
    pub fn stop(&self) {
        self.command("stop");
    }

    /// As if the machine had lost power: sessions just end.
    pub fn kill(&self) {
        self.command("kill");
    }

    /// Starts it again after [`Cluster::stop`] or [`Cluster::kill`].
    pub fn restart(&self) {
        assert_eq!(self.command("start"), "started");
    }

    /// While it is stopped: the next transaction gets this id. What is not frozen then seems to be of the future.
    pub fn set_next_transaction(&self, xid: u32) {
        let data = self.directory.join("data");
        // Two bits for each transaction, 32,768 to a page, 32 pages to a file (clog.c, slru.c).
        let statuses = data.join("pg_xact").join(format!("{:04X}", xid / (32 * 32_768)));
        let run = |mut command: Command| {
            let output = command.output().expect("runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let mut file = as_postgres("truncate");
        file.args(["--size", "262144"]).arg(statuses);
        run(file);
        let mut reset = as_postgres(binaries().join("pg_resetwal"));
        reset.args(["-x", &xid.to_string(), "-D"]).arg(data);
        run(reset);
    }

    /// While it is stopped, a standby that stayed behind `primary`: once started it takes that one's log up to the restore point `point`,
    /// and is a server of its own from there on.
    pub fn recover_to(&self, point: &str, primary: &Self) {
        // Of a name the last setting counts.
        let settings = format!(
            "primary_conninfo = ''\nrestore_command = 'cp \"{}/%f\" \"%p\"'\nrecovery_target_name = '{point}'\nrecovery_target_action = 'promote'\n",
            primary.directory.join("data/pg_wal").display()
        );
        let script = r#"cd "$1" && mv standby.signal recovery.signal && printf %s "$2" >>postgresql.auto.conf"#;
        let mut command = as_postgres("sh");
        command.args(["-c", script, "recover"]).arg(self.directory.join("data")).arg(settings);
        let output = command.output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Reads its configuration files again.
    pub fn reload(&self) {
        self.command("reload");
    }

    fn command(&self, command: &str) -> String {
        let mut owner = self.owner.lock().expect("no test panicked here");
        let pipe = owner.commands.as_mut().expect("open until dropped");
        writeln!(pipe, "{command}").expect("the owner reads");
        read_line(&mut owner.answers).expect("the owner answers")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Ok(owner) = self.owner.get_mut() {
            drop(owner.commands.take());
            let _ = owner.child.wait();
        }
    }
}

/// For a server that is started in a moment. Not one that the system gives to whoever asks for any, as every connection does: it might
/// be taken until then (Linux: ip_local_port_range begins at 32768).
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = std::process::id() as u16 % 500 * 20;
    let port = |_| 20_000 + first.wrapping_add(NEXT.fetch_add(1, Relaxed)) % 12_000;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..12_000).map(port).find(is_free).expect("a free port")
}

/// Where PostgreSQL's programs are: `FRESHET_TEST_PG_BIN`, or the newest installed in Debian's layout, or on the path.
pub fn binaries() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(find_binaries).clone()
}

fn find_binaries() -> PathBuf {
    if let Some(path) = std::env::var_os("FRESHET_TEST_PG_BIN") {
        return PathBuf::from(path);
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok().map(|version| (version, entry.path())))
        .filter(|(_, path)| path.join("bin/initdb").exists())
        .max();
    if let Some((_, path)) = newest {
        return path.join("bin");
    }
    let output = Command::new("pg_config").arg("--bindir").output().expect("PostgreSQL is installed");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// initdb refuses to run as root: then its programs run as the user `postgres`.
fn as_postgres(program: impl AsRef<OsStr>) -> Command {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn read_line(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (from.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tests that chose one port shared a server, and each made its roles there.
    #[test]
    fn a_server_that_answers_on_the_port_is_not_taken_for_the_own_one() {
        let first = Cluster::start(&[]);
        assert!(Cluster::try_start(first.port(), &[], Origin::New("")).is_none());
        assert_eq!(first.psql("postgres", "SELECT 1"), "1");
        first.kill();
        first.restart();
        assert_eq!(first.psql("postgres", "SELECT 1"), "1");
    }
}
