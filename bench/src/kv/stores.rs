//! The stores under test, each with the same keys: upstream, freshet before a PostgreSQL of its own, Redis or Valkey, and
//! the load generator's ceiling.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::cluster::Cluster;
use tempfile::TempDir;

use crate::console::progress;
use crate::data::{Table, table, text};
use crate::kv::drive::Line;
use crate::kv::exchange::{Exchange, Key, Keys, value};
use crate::kv::resp::{self, Reply, command};
use crate::process::{Process, find_program, postmaster};
use crate::servers::{Server, address, configuration, free_address, wait_for, wait_until_mirrored};
use crate::wire::{Client, query_message};

pub(super) const DATABASE: &str = "bench";
pub(super) const UPSTREAM: &str = "upstream";
pub(super) const SESSION: &str = "freshet session";
pub(super) const EXACT: &str = "freshet exact";
pub(super) const CEILING: &str = "load ceiling";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Read,
    Delete,
}

impl Operation {
    pub(super) const ALL: [Self; 3] = [Self::Create, Self::Read, Self::Delete];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Delete => "delete",
        }
    }

    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Create => "INSERT INTO kv VALUES ($1, $2)",
            Self::Read => "SELECT v FROM kv WHERE k = $1",
            Self::Delete => "DELETE FROM kv WHERE k = $1",
        }
    }

    /// Bind, Execute and Sync of the statement that each connection has prepared.
    pub(super) fn unit(self, key: &Key) -> Vec<u8> {
        let (text, value) = (String::from_utf8_lossy(key), value(key));
        let arguments: &[Option<&str>] = match self {
            Self::Create => &[Some(&text), Some(&value)],
            Self::Read | Self::Delete => &[Some(&text)],
        };
        [bind("", self.name(), arguments, 0), execute("", 0), sync()].concat()
    }

    fn resp(self, key: &Key) -> Exchange {
        let value = value(key);
        let (request, reply) = match self {
            Self::Create => (command(&[b"SET", key, value.as_bytes()]), b"+OK\r\n".to_vec()),
            Self::Read => (command(&[b"GET", key]), format!("${}\r\n{value}\r\n", value.len()).into_bytes()),
            Self::Delete => (command(&[b"DEL", key]), b":1\r\n".to_vec()),
        };
        Exchange::new(request, reply, key)
    }
}

/// What a write waits for before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// The disk: `synchronous_commit = on`, `appendfsync always`.
    Durable,
    /// Nothing; a crash may lose the last second: `synchronous_commit = off`, `appendfsync everysec`.
    Lazy,
}

impl Durability {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Lazy => "not durable",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// With what a session sets first.
    PostgreSql(&'static str),
    Resp,
    Ceiling,
}

pub(super) struct Store {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    protocol: Protocol,
    /// The store's own process, unless it is PostgreSQL, and the PostgreSQL that works for it.
    pub(super) process: Option<u32>,
    pub(super) postmaster: Option<u32>,
    /// By [`Operation`], once they are known.
    exchanges: Vec<Exchange>,
}

impl Store {
    pub(super) fn exchange(&self, operation: Operation) -> &Exchange {
        &self.exchanges[operation as usize]
    }

    /// In mode `exact` writes are what they are in `session`: they are relayed.
    pub(super) fn takes(&self, operation: Operation) -> bool {
        operation == Operation::Read || self.name != EXACT
    }

    /// Connections with the three statements prepared, whose writes are as durable as said from now on.
    pub(super) fn connect(&self, connections: usize, durability: Durability) -> io::Result<Vec<Line>> {
        if self.protocol == Protocol::Resp {
            let value: &[u8] = if durability == Durability::Durable { b"always" } else { b"everysec" };
            let reply = resp::Control::connect(self.address)?.ask(&[b"CONFIG", b"SET", b"appendfsync", value])?;
            expect(reply == Reply::Status("OK".into()), || format!("CONFIG SET: {reply:?}"))?;
        }
        (0..connections).map(|first| Ok(Line::new(self.stream(durability)?, first, connections))).collect()
    }

    fn stream(&self, durability: Durability) -> io::Result<TcpStream> {
        match self.protocol {
            Protocol::PostgreSql(setting) => {
                let mut client = prepared(self.address, setting)?;
                // As it is by default, a session that only reads need not say it.
                if durability == Durability::Lazy {
                    client.query(&query_message("SET synchronous_commit = off"))?;
                }
                Ok(client.into_stream())
            }
            Protocol::Ceiling => Ok(Client::connect_small(self.address, "postgres", DATABASE)?.into_stream()),
            Protocol::Resp => crate::wire::open(self.address),
        }
    }

    /// The correctness gate: each of `sample` is read, deleted, missed, created and read; replies are learnt meanwhile.
    fn check(&mut self, sample: &[Key]) -> io::Result<()> {
        match self.protocol {
            Protocol::PostgreSql(setting) => self.exchanges = check_postgresql(self.address, setting, sample)?,
            Protocol::Resp => {
                check_resp(self.address, sample)?;
                self.exchanges = Operation::ALL.map(|operation| operation.resp(&sample[0])).to_vec();
            }
            Protocol::Ceiling => {}
        }
        Ok(())
    }

    /// All keys are there again, with their values.
    pub(super) fn verify(&self, keys: Keys) -> io::Result<()> {
        let count = match self.protocol {
            Protocol::PostgreSql(setting) => {
                let mut client = prepared(self.address, setting)?;
                let sql = "SELECT count(*) FROM kv WHERE v = 'value_' || k";
                let row = crate::wire::first_row(client.query(&query_message(sql))?);
                row.into_iter().flatten().next().and_then(|text| text.parse().ok())
            }
            Protocol::Resp => match resp::Control::connect(self.address)?.ask(&[b"DBSIZE"])? {
                Reply::Integer(count) => u64::try_from(count).ok(),
                Reply::Status(_) | Reply::Bulk(_) | Reply::Array(_) => None,
            },
            Protocol::Ceiling => Some(keys.count),
        };
        expect(count == Some(keys.count), || format!("{}: {count:?} keys instead of {}", self.name, keys.count))
    }
}

fn expect(is_so: bool, problem: impl FnOnce() -> String) -> io::Result<()> {
    if is_so { Ok(()) } else { Err(io::Error::other(problem())) }
}

fn prepared(address: SocketAddr, setting: &str) -> io::Result<Client> {
    let mut client = Client::connect_small(address, "postgres", DATABASE)?;
    if !setting.is_empty() {
        client.query(&query_message(setting))?;
    }
    for operation in Operation::ALL {
        client.query(&[parse(operation.name(), operation.sql()), sync()].concat())?;
    }
    Ok(client)
}

fn check_postgresql(address: SocketAddr, setting: &str, sample: &[Key]) -> io::Result<Vec<Exchange>> {
    let mut client = prepared(address, setting)?;
    let mut learnt = Vec::new();
    for key in sample {
        let mut ask = |operation: Operation, rows: &[String], tag: &str| -> io::Result<Exchange> {
            let request = operation.unit(key);
            let reply = client.query(&request)?;
            let found: Vec<String> = crate::wire::rows(reply).into_iter().flatten().flatten().collect();
            let (name, shown) = (operation.name(), String::from_utf8_lossy(key));
            expect(found == rows, || format!("{name} {shown}: {found:?} instead of {rows:?}"))?;
            let found = crate::wire::command_tag(reply);
            expect(found.as_deref() == Some(tag), || format!("{name} {shown}: {found:?} instead of {tag}"))?;
            Ok(Exchange::new(request, reply.to_vec(), key))
        };
        let there = [value(key)];
        ask(Operation::Read, &there, "SELECT 1")?;
        let delete = ask(Operation::Delete, &[], "DELETE 1")?;
        ask(Operation::Read, &[], "SELECT 0")?;
        let create = ask(Operation::Create, &[], "INSERT 0 1")?;
        let read = ask(Operation::Read, &there, "SELECT 1")?;
        let all = vec![create, read, delete];
        expect(learnt.is_empty() || learnt == all, || "the same statement is answered in several ways".into())?;
        learnt = all;
    }
    Ok(learnt)
}

fn check_resp(address: SocketAddr, sample: &[Key]) -> io::Result<()> {
    let mut control = resp::Control::connect(address)?;
    for key in sample {
        let value = value(key);
        let there = Reply::Bulk(Some(value.clone().into_bytes()));
        let steps: [(&[&[u8]], Reply); 5] = [
            (&[b"GET", key], there.clone()),
            (&[b"DEL", key], Reply::Integer(1)),
            (&[b"GET", key], Reply::Bulk(None)),
            (&[b"SET", key, value.as_bytes()], Reply::Status("OK".into())),
            (&[b"GET", key], there),
        ];
        for (words, expected) in steps {
            let found = control.ask(words)?;
            expect(found == expected, || format!("{words:?}: {found:?} instead of {expected:?}"))?;
        }
    }
    Ok(())
}

pub(super) struct Stand {
    pub(super) stores: Vec<Store>,
    /// Of each program, by name.
    pub(super) versions: Vec<(&'static str, String)>,
    /// Why Redis does not take part.
    pub(super) missing: Option<String>,
    clusters: [Cluster; 2],
    _servers: Vec<Server>,
    _redis: Option<Process>,
    _folder: TempDir,
}

impl Stand {
    /// Both PostgreSQLs have the same but for wal_level.
    pub(super) fn configuration(&self) -> (&'static str, String) {
        configuration(&self.clusters[0])
    }

    pub(super) fn start(keys: Keys, connections: usize) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
        let log = folder.path().join("servers.log");
        let start = |wal_level| start_cluster(keys, connections, wal_level);
        // Nobody follows the changes of the one.
        let clusters = [start("wal_level=replica")?, start("wal_level=logical")?];
        let freshet = Server::start(&["serve-freshet", &clusters[1].url(DATABASE), "public.kv"], &log)?;
        wait_until_mirrored(freshet.address, DATABASE, 1)?;
        let (redis, missing) = match Redis::start(folder.path(), keys)? {
            Ok(redis) => (Some(redis), None),
            Err(reason) => (None, Some(reason)),
        };
        let postmasters = [postmaster(&clusters[0])?, postmaster(&clusters[1])?];
        let store = |name, address, protocol, process, postmaster| Store {
            name,
            address,
            protocol,
            process,
            postmaster,
            exchanges: Vec::new(),
        };
        let through = |name, setting| {
            let process = Some(freshet.process.id);
            store(name, freshet.address, Protocol::PostgreSql(setting), process, Some(postmasters[1]))
        };
        let mut stores = vec![
            store(UPSTREAM, address(&clusters[0]), Protocol::PostgreSql(""), None, Some(postmasters[0])),
            through(SESSION, "SET freshet.freshness = 'session'"),
            through(EXACT, "SET freshet.freshness = 'exact'"),
        ];
        let mut versions = vec![
            ("freshet", env!("CARGO_PKG_VERSION").to_owned()),
            ("PostgreSQL", clusters[0].psql("postgres", "SHOW server_version")),
        ];
        if let Some(redis) = &redis {
            stores.push(store(redis.name, redis.address, Protocol::Resp, Some(redis.process.id), None));
            versions.push((redis.name, redis.version.clone()));
        }
        check_all(&mut stores, keys)?;
        let file = folder.path().join("exchanges.json");
        std::fs::write(&file, serde_json::to_vec(&stores[0].exchanges)?)?;
        let ceiling = Server::start(&["serve-exchanges", &file.display().to_string()], &log)?;
        let mut last = store(CEILING, ceiling.address, Protocol::Ceiling, Some(ceiling.process.id), None);
        last.exchanges.clone_from(&stores[0].exchanges);
        stores.push(last);
        let servers = vec![freshet, ceiling];
        let redis = redis.map(|redis| redis.process);
        Ok(Self { stores, versions, missing, clusters, _servers: servers, _redis: redis, _folder: folder })
    }
}

/// Freshet's replies have to be upstream's, byte for byte.
fn check_all(stores: &mut [Store], keys: Keys) -> io::Result<()> {
    let sample: Vec<Key> = (0..200).map(|n| keys.at(n * (keys.count / 200))).collect();
    for store in stores.iter_mut() {
        store.check(&sample).map_err(|error| io::Error::other(format!("{}: {error}", store.name)))?;
    }
    for store in stores.iter().filter(|store| store.name.starts_with("freshet")) {
        expect(store.exchanges == stores[0].exchanges, || format!("{}: replies differ from upstream's", store.name))?;
    }
    Ok(())
}

fn table_of(keys: Keys) -> Table {
    let key = move |n: i64| String::from_utf8_lossy(&keys.at(n as u64)).into_owned();
    let value = move |n: i64| value(&keys.at(n as u64));
    table("kv", keys.count as i64, vec![text("k", key), text("v", value)])
}

fn start_cluster(keys: Keys, connections: usize, wal_level: &str) -> io::Result<Cluster> {
    let many = format!("max_connections={}", 2 * connections + 60);
    // Writes are as durable as they are by default.
    let cluster = Cluster::start(&["shared_buffers=256MB", "max_wal_size=4GB", "fsync=on", &many, wal_level]);
    cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    let mut client = Client::connect(address(&cluster), "postgres", DATABASE)?;
    table_of(keys).load_upstream(&mut client)?;
    cluster.psql(DATABASE, "ALTER TABLE kv ADD PRIMARY KEY (k), ALTER v SET NOT NULL, REPLICA IDENTITY DEFAULT");
    cluster.psql(DATABASE, "VACUUM (ANALYZE) kv");
    Ok(cluster)
}

struct Redis {
    name: &'static str,
    version: String,
    address: SocketAddr,
    process: Process,
}

impl Redis {
    /// With an append-only file, the only way in which it can be as durable as PostgreSQL. The reason where it is not
    /// installed.
    fn start(folder: &Path, keys: Keys) -> io::Result<Result<Self, String>> {
        let programs = [("Valkey", "valkey-server"), ("Redis", "redis-server")];
        let found = programs.into_iter().find_map(|(name, program)| Some((name, find_program(program)?)));
        let Some((name, program)) = found else {
            return Ok(Err("not installed (Debian package redis-server, or valkey-server)".into()));
        };
        let output = std::process::Command::new(&program).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap_or_default().to_owned();
        let address = free_address()?;
        let (port, directory) = (address.port().to_string(), folder.display().to_string());
        let arguments = [
            ("--port", &*port),
            ("--bind", "127.0.0.1"),
            ("--dir", &directory),
            ("--logfile", "redis.log"),
            ("--save", ""),
            ("--appendonly", "yes"),
            ("--appendfsync", "no"),
            ("--auto-aof-rewrite-percentage", "0"),
        ];
        let arguments: Vec<_> = arguments.iter().flat_map(|(name, value)| [(*name).into(), (*value).into()]).collect();
        let process = Process::start(program, &arguments, &folder.join("servers.log"))?;
        wait_for(|| TcpStream::connect(address).is_ok(), name)?;
        load_redis(name, address, keys)?;
        Ok(Ok(Self { name, version, address, process }))
    }
}

fn load_redis(name: &str, address: SocketAddr, keys: Keys) -> io::Result<()> {
    const BATCH: u64 = 1_000;
    let bar = progress(&format!("{} keys into {name}", keys.count), keys.count);
    let mut control = resp::Control::connect(address)?;
    for from in (0..keys.count).step_by(BATCH as usize) {
        let batch = from..keys.count.min(from + BATCH);
        let set = |n| {
            let key = keys.at(n);
            command(&[b"SET", &key, value(&key).as_bytes()])
        };
        control.send(&batch.clone().map(set).collect::<Vec<_>>().concat())?;
        for _ in batch {
            let reply = control.read()?;
            expect(reply == Reply::Status("OK".into()), || format!("SET: {reply:?}"))?;
        }
        bar.set_position(from);
    }
    bar.finish_and_clear();
    Ok(())
}
