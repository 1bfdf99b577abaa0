//! Everything that takes part: three or four PostgreSQLs with the same tables, and what stands in front of them.
//!
//! One has nothing attached, writes no more log than by default, and is what is called upstream; one has a bare receiver that decodes every change and keeps
//! none (what writes cost at least once somebody follows them), behind it the relays; one is freshet's; for one freshet is a
//! synchronous standby.

use std::io;
use std::net::SocketAddr;

use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::cluster::Cluster;
use tempfile::TempDir;

use crate::poolers::{start_pgbouncer, start_pgpool};
use crate::process::{Process, postmaster};
use crate::servers::{Server, address, configuration, is_received, start_receiver, start_standby, wait_until_mirrored};
use crate::throughput::workloads::{self, Statement, Workload};
use crate::wire::{Client, query_message};

pub(crate) const DATABASE: &str = "bench";
pub(crate) const UPSTREAM: &str = "upstream";
pub(crate) const FOLLOWED: &str = "upstream with a receiver";
pub(crate) const CHEAPEST: &str = "cheapest relay";
pub(crate) const PGBOUNCER: &str = "PgBouncer";
pub(crate) const PGPOOL: &str = "pgpool-II, caching";
pub(crate) const EXACT: &str = "freshet exact";
pub(crate) const SESSION: &str = "freshet session";
pub(crate) const STANDBY: &str = "freshet standby";
pub(crate) const CANNED: &str = "canned reply";
pub(crate) const BARRIER: &str = "group barrier";

/// As a PostgreSQL is by default, and as it has to be for whoever follows its changes.
const ALONE: &str = "wal_level=replica";
const FOLLOWABLE: &str = "wal_level=logical";

pub(crate) struct Systems {
    plain: Cluster,
    followed: Cluster,
    mirrored: Cluster,
    /// With a freshet that commits wait for; not in a quick run. Freshet ends first.
    standby: Option<(Server, Cluster)>,
    cheapest: Server,
    freshet: Server,
    /// PgBouncer and pgpool-II, where they are installed.
    poolers: Vec<(&'static str, Process, SocketAddr)>,
    /// And why one of them takes no part.
    pub(crate) missing: Vec<(&'static str, String)>,
    receiver: Process,
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
    /// `pg_recvlogical`, where it follows that cluster.
    pub(crate) receiver: Option<u32>,
}

/// Whether those take part that take long to start, or part in one protocol only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Quick,
    Full,
}

impl Systems {
    pub(crate) fn start(extent: Extent) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
        let log = folder.path().join("servers.log");
        // Writes are as durable as they are by default.
        let start = |wal_level: &str| -> io::Result<Cluster> {
            let cluster = Cluster::start(&["shared_buffers=256MB", "max_wal_size=4GB", "fsync=on", wal_level]);
            cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
            let mut client = Client::connect(address(&cluster), "postgres", DATABASE)?;
            for table in workloads::tables() {
                if wal_level == ALONE { table.load_alone(&mut client)? } else { table.load_upstream(&mut client)? }
            }
            cluster.psql(DATABASE, "VACUUM");
            Ok(cluster)
        };
        let (plain, followed, mirrored) = (start(ALONE)?, start(FOLLOWABLE)?, start(FOLLOWABLE)?);
        let receiver = start_receiver(&followed, DATABASE, &log)?;
        let cheapest = Server::start(&["serve-cheapest", &address(&followed).to_string()], &log)?;
        let pgbouncer = start_pgbouncer(folder.path(), "127.0.0.1", followed.port(), DATABASE, &log)?;
        let pgpool = match extent {
            Extent::Full => start_pgpool(folder.path(), "127.0.0.1", followed.port(), &log)?,
            Extent::Quick => Err("not in a quick run".into()),
        };
        let (mut poolers, mut missing) = (Vec::new(), Vec::new());
        for (name, started) in [(PGBOUNCER, pgbouncer), (PGPOOL, pgpool)] {
            match started {
                Ok((process, address)) => poolers.push((name, process, address)),
                Err(reason) => missing.push((name, reason)),
            }
        }
        let tables = workloads::tables();
        let names: Vec<String> = tables.iter().map(|table| format!("public.{}", table.name)).collect();
        let freshet = Server::start(&["serve-freshet", &mirrored.url(DATABASE), &names.join(",")], &log)?;
        wait_until_mirrored(freshet.address, DATABASE, names.len())?;
        let standby = match extent {
            Extent::Full => {
                let cluster = start(FOLLOWABLE)?;
                Some((start_standby(&cluster, DATABASE, &names, &log)?, cluster))
            }
            Extent::Quick => None,
        };
        Ok(Self { plain, followed, mirrored, standby, cheapest, freshet, poolers, missing, receiver, folder })
    }

    pub(crate) fn version(&self) -> String {
        self.plain.psql("postgres", "SHOW server_version")
    }

    /// All of them have the same.
    pub(crate) fn configuration(&self) -> (&'static str, String) {
        configuration(&self.plain)
    }

    pub(crate) fn upstream_url(&self) -> String {
        self.plain.url(DATABASE)
    }

    pub(crate) fn upstream(&self) -> SocketAddr {
        address(&self.plain)
    }

    /// Without the ceilings, which know one workload's replies each.
    pub(crate) fn targets(&self, protocol: Protocol) -> io::Result<Vec<Target>> {
        let [plain, followed, mirrored] = [&self.plain, &self.followed, &self.mirrored].map(postmaster);
        let (followed, mirrored) = (followed?, mirrored?);
        let receiver = |postmaster: u32| (postmaster == followed).then_some(self.receiver.id);
        let direct = |system, cluster: &Cluster, postmaster| Target {
            system,
            address: address(cluster),
            process: None,
            postmaster,
            receiver: receiver(postmaster),
        };
        let before = |system, server: &Server, postmaster| Target {
            system,
            address: server.address,
            process: Some(server.process.id),
            postmaster,
            receiver: receiver(postmaster),
        };
        let mut targets = vec![
            direct(UPSTREAM, &self.plain, plain?),
            before(EXACT, &self.freshet, mirrored),
            before(SESSION, &self.freshet, mirrored),
            direct(FOLLOWED, &self.followed, followed),
            before(CHEAPEST, &self.cheapest, followed),
        ];
        if let Some((server, cluster)) = &self.standby {
            targets.push(before(STANDBY, server, postmaster(cluster)?));
        }
        // pgpool-II 4.3 acknowledges prepared INSERTs that come without Describe, and their rows are not there afterwards.
        let is_asked = |system: &str| system != PGPOOL || protocol == Protocol::Simple;
        let poolers = self.poolers.iter().filter(|(system, ..)| is_asked(system));
        targets.extend(poolers.map(|(system, process, address)| Target {
            system,
            address: *address,
            process: Some(process.id),
            postmaster: followed,
            receiver: receiver(followed),
        }));
        Ok(targets)
    }

    /// An error where nobody follows the PostgreSQL that is the reference for that: writes there would be too cheap.
    pub(crate) fn check_receiver(&self) -> io::Result<()> {
        if is_received(&self.followed) { Ok(()) } else { Err(io::Error::other("pg_recvlogical no longer follows")) }
    }

    /// Rows of a table in each cluster, all added up.
    pub(crate) fn count(&self, table: &str) -> io::Result<u64> {
        let standby = self.standby.iter().map(|(_, cluster)| cluster);
        let clusters = [&self.plain, &self.followed, &self.mirrored].into_iter().chain(standby);
        let count = |cluster: &Cluster| cluster.psql(DATABASE, &format!("SELECT count(*) FROM {table}")).parse::<u64>();
        clusters.map(|cluster| count(cluster).map_err(io::Error::other)).sum()
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
