//! Everything that takes part: three PostgreSQLs with the same tables, and what stands in front of them.
//!
//! One has nothing attached and is what is called upstream; one has a bare receiver that decodes every change and keeps
//! none (what writes cost at least once somebody follows them), behind it the relays; one is freshet's.

use std::io;
use std::net::SocketAddr;

use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::cluster::{Cluster, binaries};
use tempfile::TempDir;

use crate::process::{Process, postmaster};
use crate::servers::{Server, address, start_pgbouncer, wait_until_mirrored};
use crate::throughput::workloads::{self, Statement, Workload};
use crate::wire::{Client, query_message};

pub(crate) const DATABASE: &str = "bench";
pub(crate) const UPSTREAM: &str = "upstream";
pub(crate) const FOLLOWED: &str = "upstream with a receiver";
pub(crate) const CHEAPEST: &str = "cheapest relay";
pub(crate) const PGBOUNCER: &str = "PgBouncer";
pub(crate) const EXACT: &str = "freshet exact";
pub(crate) const SESSION: &str = "freshet session";
pub(crate) const CANNED: &str = "canned reply";
pub(crate) const BARRIER: &str = "group barrier";

pub(crate) struct Systems {
    plain: Cluster,
    followed: Cluster,
    mirrored: Cluster,
    cheapest: Server,
    freshet: Server,
    pgbouncer: Option<(Process, SocketAddr)>,
    _receiver: Process,
    pub(crate) folder: TempDir,
}

/// A server under test on one workload.
pub(crate) struct Target {
    pub(crate) system: &'static str,
    pub(crate) address: SocketAddr,
    /// The server's own process, unless it is PostgreSQL.
    pub(crate) process: Option<u32>,
    /// Which of the clusters works for it.
    pub(crate) postmaster: u32,
}

impl Systems {
    pub(crate) fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
        let log = folder.path().join("servers.log");
        // Writes are as durable as they are by default.
        let start = || -> io::Result<Cluster> {
            let cluster = Cluster::start(&["shared_buffers=256MB", "max_wal_size=4GB", "fsync=on"]);
            cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
            let mut client = Client::connect(address(&cluster), "postgres", DATABASE)?;
            for table in workloads::tables() {
                table.load_upstream(&mut client)?;
            }
            cluster.psql(DATABASE, "VACUUM");
            Ok(cluster)
        };
        let (plain, followed, mirrored) = (start()?, start()?, start()?);
        followed.psql(DATABASE, "CREATE PUBLICATION bench FOR ALL TABLES");
        let url = followed.url(DATABASE);
        let flags = "--slot=bench --plugin=pgoutput --create-slot --start -f /dev/null \
                     -o proto_version=1 -o publication_names=bench";
        let arguments: Vec<_> = ["-d", &url].into_iter().chain(flags.split_whitespace()).map(Into::into).collect();
        let receiver = Process::start(binaries().join("pg_recvlogical"), &arguments, &log)?;
        let cheapest = Server::start(&["serve-cheapest", &address(&followed).to_string()], &log)?;
        let pgbouncer = start_pgbouncer(folder.path(), "127.0.0.1", followed.port(), DATABASE, &log)?;
        let tables = workloads::tables();
        let names: Vec<String> = tables.iter().map(|table| format!("public.{}", table.name)).collect();
        let freshet = Server::start(&["serve-freshet", &mirrored.url(DATABASE), &names.join(",")], &log)?;
        wait_until_mirrored(freshet.address, DATABASE, names.len())?;
        Ok(Self { plain, followed, mirrored, cheapest, freshet, pgbouncer, _receiver: receiver, folder })
    }

    pub(crate) fn version(&self) -> String {
        self.plain.psql("postgres", "SHOW server_version")
    }

    pub(crate) fn upstream_url(&self) -> String {
        self.plain.url(DATABASE)
    }

    pub(crate) fn upstream(&self) -> SocketAddr {
        address(&self.plain)
    }

    /// Without the ceilings, which know one workload's replies each.
    pub(crate) fn targets(&self) -> io::Result<Vec<Target>> {
        let [plain, followed, mirrored] = [&self.plain, &self.followed, &self.mirrored].map(postmaster);
        let (followed, mirrored) = (followed?, mirrored?);
        let direct = |system, cluster: &Cluster, postmaster| Target {
            system,
            address: address(cluster),
            process: None,
            postmaster,
        };
        let before = |system, server: &Server, postmaster| Target {
            system,
            address: server.address,
            process: Some(server.process.id),
            postmaster,
        };
        let mut targets = vec![
            direct(UPSTREAM, &self.plain, plain?),
            before(EXACT, &self.freshet, mirrored),
            before(SESSION, &self.freshet, mirrored),
            direct(FOLLOWED, &self.followed, followed),
            before(CHEAPEST, &self.cheapest, followed),
        ];
        if let Some((process, address)) = &self.pgbouncer {
            let (system, address, process) = (PGBOUNCER, *address, Some(process.id));
            targets.push(Target { system, address, process, postmaster: followed });
        }
        Ok(targets)
    }

    /// Rows of a table in each cluster, all added up.
    pub(crate) fn count(&self, table: &str) -> io::Result<u64> {
        let clusters = [&self.plain, &self.followed, &self.mirrored];
        let counts =
            clusters.map(|cluster| cluster.psql(DATABASE, &format!("SELECT count(*) FROM {table}")).parse::<u64>());
        counts.into_iter().map(|count| count.map_err(io::Error::other)).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Simple,
    /// Bind, Execute, Sync of a statement that the connection has prepared.
    Prepared,
}

impl Protocol {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Prepared => "prepared",
        }
    }
}

/// A workload's messages: what each connection sends first, and then in turn.
pub(crate) struct Messages {
    pub(crate) first: Vec<Vec<u8>>,
    pub(crate) units: Vec<Vec<u8>>,
}

pub(crate) fn messages(workload: &Workload, protocol: Protocol) -> Messages {
    let mut texts: Vec<&str> = Vec::new();
    for statement in &workload.statements {
        if !texts.contains(&statement.sql) {
            texts.push(statement.sql);
        }
    }
    let name = |sql: &str| format!("s{}", texts.iter().position(|text| *text == sql).unwrap_or(0));
    let unit = |statement: &Statement| match protocol {
        Protocol::Simple => query_message(&statement.text()),
        Protocol::Prepared => [bind("", &name(statement.sql), &statement.values(), 0), execute("", 0), sync()].concat(),
    };
    let first = match protocol {
        Protocol::Simple => Vec::new(),
        Protocol::Prepared => texts.iter().map(|sql| [parse(&name(sql), sql), sync()].concat()).collect(),
    };
    Messages { first, units: workload.statements.iter().map(unit).collect() }
}
