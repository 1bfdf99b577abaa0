//! The servers that are compared: the cheapest relay, freshet in its configurations and PgBouncer, each a process of its
//! own in front of one PostgreSQL, reached over TCP and over its Unix socket.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freshet_tests::cluster::Cluster;
use tempfile::TempDir;

use crate::poolers::start_pgbouncer;
use crate::process::{Process, postmaster, used};
use crate::relay::units::{self, Units};
use crate::servers::{Server, free_address, wait_for};
use crate::wire::{Client, query_message};

pub(crate) const DATABASE: &str = "bench";

/// How a server reaches PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    Tcp,
    Unix,
}

impl Leg {
    pub(crate) const ALL: [Self; 2] = [Self::Tcp, Self::Unix];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
    }
}

/// What a client may talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Direct,
    Cheapest,
    PgBouncer,
    /// Mirroring as by default: every statement is looked at, and relayed because its table cannot be mirrored.
    Freshet,
    /// The same freshet after `SET freshet.route = 'relay'`.
    FreshetRoute,
    /// `mirror.tables = "none"`: a plain relay.
    FreshetOff,
    /// PostgreSQL's replies without any work: what the load can drive at most.
    Canned,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Cheapest => "cheapest relay",
            Self::PgBouncer => "PgBouncer",
            Self::Freshet => "freshet",
            Self::FreshetRoute => "freshet route=relay",
            Self::FreshetOff => "freshet tables=none",
            Self::Canned => "canned reply",
        }
    }

    pub(crate) fn is_freshet(self) -> bool {
        matches!(self, Self::Freshet | Self::FreshetRoute | Self::FreshetOff)
    }
}

/// One way to PostgreSQL.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) leg: Leg,
    pub(crate) address: SocketAddr,
    /// None for PostgreSQL itself.
    pub(crate) process: Option<u32>,
    /// The first process of PostgreSQL.
    postmaster: u32,
}

impl Line {
    pub(crate) fn name(&self) -> String {
        match self.kind {
            // They reach nothing.
            Kind::Direct | Kind::Canned => self.kind.name().to_string(),
            _ => format!("{}, {}", self.kind.name(), self.leg.name()),
        }
    }

    /// See [`used`].
    pub(crate) fn used(&self) -> [Duration; 3] {
        used(self.process, Some(self.postmaster))
    }

    /// A connection with everything prepared.
    pub(crate) fn connect(&self) -> io::Result<Client> {
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", self.name()));
        let mut client = Client::connect(self.address, "postgres", DATABASE).map_err(named)?;
        if self.kind == Kind::FreshetRoute {
            client.query(&query_message("SET freshet.route = 'relay'")).map_err(named)?;
        }
        units::prepare(&mut client).map_err(named)?;
        Ok(client)
    }
}

/// PostgreSQL, and the folder of its Unix socket.
pub(crate) struct Upstream {
    // Dropped first, so that PostgreSQL does not miss its socket's folder.
    pub(crate) cluster: Cluster,
    folder: TempDir,
}

impl Upstream {
    pub(crate) fn start(settings: &[&str]) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
        // PostgreSQL and PgBouncer may run as another user.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777))?;
        let socket = format!("unix_socket_directories={}", folder.path().display());
        let settings: Vec<&str> = settings.iter().copied().chain([socket.as_str()]).collect();
        let cluster = Cluster::start(&settings);
        cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        Ok(Self { cluster, folder })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.cluster.port()))
    }

    /// A connection string for freshet.
    pub(crate) fn url(&self, leg: Leg) -> String {
        let port = self.cluster.port();
        match leg {
            Leg::Tcp => self.cluster.url(DATABASE),
            Leg::Unix => {
                format!("postgres:///{DATABASE}?host={}&user=postgres&port={port}", self.folder.path().display())
            }
        }
    }

    /// Where the servers' complaints go.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("servers.log")
    }
}

/// Everything in front of PostgreSQL on one leg; all ends when this is dropped.
pub(crate) struct Servers {
    /// PostgreSQL itself comes first.
    pub(crate) lines: Vec<Line>,
    pub(crate) leg: Leg,
    log: PathBuf,
    processes: Vec<Process>,
    /// Why PgBouncer takes no part.
    pub(crate) missing: Option<String>,
}

impl Servers {
    /// `freshet` is the program under test.
    pub(crate) fn start(upstream: &Upstream, leg: Leg, freshet: &Path) -> io::Result<Self> {
        let postmaster = postmaster(&upstream.cluster)?;
        let direct = Line { kind: Kind::Direct, leg, address: upstream.address(), process: None, postmaster };
        let mut servers = Self { lines: vec![direct], leg, log: upstream.log(), processes: Vec::new(), missing: None };
        servers.start_cheapest(upstream)?;
        servers.start_pgbouncer(upstream)?;
        servers.start_freshet(upstream, freshet, "auto")?;
        servers.start_freshet(upstream, freshet, "none")?;
        Ok(servers)
    }

    fn start_cheapest(&mut self, upstream: &Upstream) -> io::Result<()> {
        let target = match self.leg {
            Leg::Tcp => upstream.address().to_string(),
            Leg::Unix => {
                let name = format!(".s.PGSQL.{}", upstream.cluster.port());
                upstream.folder.path().join(name).display().to_string()
            }
        };
        let arguments = ["serve-cheapest".into(), target.into()];
        let mut process = Process::start(std::env::current_exe()?, &arguments, &upstream.log())?;
        let address = process.line()?.parse().map_err(io::Error::other)?;
        self.add(Kind::Cheapest, address, process);
        Ok(())
    }

    /// For these units alone; it ends with what is returned.
    pub(crate) fn start_canned(&self, units: &Units) -> io::Result<(Line, Server)> {
        let path = self.log.with_file_name("replies.json");
        let pairs = units::replies(&mut self.lines[0].connect()?, units)?;
        std::fs::write(&path, serde_json::to_vec(&pairs)?)?;
        let server = Server::start(&["serve-canned", &path.display().to_string()], &self.log)?;
        let (address, process) = (server.address, Some(server.process.id));
        Ok((Line { kind: Kind::Canned, address, process, ..self.lines[0].clone() }, server))
    }

    fn start_freshet(&mut self, upstream: &Upstream, program: &Path, tables: &str) -> io::Result<()> {
        let (process, address) = start_freshet(upstream, self.leg, program, tables)?;
        if tables == "none" {
            self.add(Kind::FreshetOff, address, process);
            return Ok(());
        }
        self.add(Kind::Freshet, address, process);
        let same = self.lines.last().map(|line| Line { kind: Kind::FreshetRoute, ..*line });
        self.lines.extend(same);
        Ok(())
    }

    fn start_pgbouncer(&mut self, upstream: &Upstream) -> io::Result<()> {
        let folder = upstream.folder.path();
        let host = match self.leg {
            Leg::Tcp => "127.0.0.1".to_string(),
            Leg::Unix => folder.display().to_string(),
        };
        let started = start_pgbouncer(folder, &host, upstream.cluster.port(), DATABASE, &upstream.log())?;
        match started {
            Ok((process, address)) => self.add(Kind::PgBouncer, address, process),
            Err(reason) => self.missing = Some(reason),
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind, address: SocketAddr, process: Process) {
        // PostgreSQL itself came first.
        let postmaster = self.lines[0].postmaster;
        self.lines.push(Line { kind, leg: self.leg, address, process: Some(process.id), postmaster });
        self.processes.push(process);
    }
}

/// The program itself, with every other setting at its default; returns once it is ready.
pub(crate) fn start_freshet(
    upstream: &Upstream,
    leg: Leg,
    program: &Path,
    tables: &str,
) -> io::Result<(Process, SocketAddr)> {
    let (listen, admin) = (free_address()?, free_address()?);
    let flags = [
        ("--upstream", upstream.url(leg)),
        ("--listen", listen.to_string()),
        ("--admin", admin.to_string()),
        ("--tables", tables.to_string()),
    ];
    let arguments: Vec<OsString> = flags.into_iter().flat_map(|(flag, value)| [flag.into(), value.into()]).collect();
    let process = Process::start(program, &arguments, &upstream.log())?;
    wait_for(|| is_ready(admin).unwrap_or(false), "freshet")
        .map_err(|error| io::Error::other(format!("{error}: {}", last_lines(&upstream.log()))))?;
    Ok((process, listen))
}

fn is_ready(admin: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(admin)?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply.starts_with("HTTP/1.1 200"))
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}
