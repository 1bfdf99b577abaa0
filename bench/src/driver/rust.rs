//! The matrix by tokio-postgres, on one thread.

use std::io;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::runtime::Runtime;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, NoTls, Row, SimpleQueryMessage, Statement};

use crate::driver::{Driver, IN_FLIGHT, Mode, POOL, Place};
use crate::load::{Measured, thread_time};
use crate::wire::PATIENCE;

pub(super) struct TokioPostgres {
    runtime: Runtime,
    /// By system.
    open: Vec<Open>,
}

/// Connections to one system, each with the statement prepared.
struct Open {
    clients: Vec<(Client, Statement)>,
    parameters: Vec<Vec<i32>>,
}

impl TokioPostgres {
    pub(super) fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, open: Vec::new() })
    }

    /// An error if the systems answer with different rows, on any of the connections.
    pub(super) fn compare(&self) -> io::Result<()> {
        let rows = |open: &Open| self.runtime.block_on(open.rows());
        let all = self.open.iter().map(rows).collect::<io::Result<Vec<_>>>()?;
        match all.windows(2).all(|pair| pair[0] == pair[1]) && all.first().is_some_and(|rows| !rows.is_empty()) {
            true => Ok(()),
            false => Err(io::Error::other("tokio-postgres gets different rows from the three systems")),
        }
    }
}

impl Driver for TokioPostgres {
    fn name(&self) -> &'static str {
        "tokio-postgres"
    }

    fn open(&mut self, places: &[Place], sql: &str, parameters: &[Vec<i32>]) -> io::Result<()> {
        self.open.clear();
        for place in places {
            let clients = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, connect(place, sql)).await });
            let clients = clients.map_err(io::Error::other)??;
            self.open.push(Open { clients, parameters: parameters.to_vec() });
        }
        Ok(())
    }

    fn run(&mut self, system: usize, mode: Mode, seconds: f64) -> io::Result<Measured> {
        let (open, limit) = (&self.open[system], Duration::from_secs_f64(seconds));
        let before = thread_time();
        let began = Instant::now();
        let (count, latencies_ns) = match mode {
            Mode::Single => self.runtime.block_on(single(open, 0, limit))?,
            Mode::Pipeline => (self.runtime.block_on(pipeline(open, limit))?, Vec::new()),
            Mode::Pool10 => self.runtime.block_on(pool(open, limit))?,
        };
        let elapsed = began.elapsed();
        Ok(Measured::new(count, elapsed, thread_time().saturating_sub(before), &latencies_ns))
    }

    fn last_route(&mut self, system: usize) -> io::Result<(String, String)> {
        let (client, _) = &self.open[system].clients[0];
        let asked = self.runtime.block_on(client.simple_query("SHOW freshet.last")).map_err(io::Error::other)?;
        let row = asked.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let cell = |at: usize| row.and_then(|row| row.get(at)).unwrap_or_default().to_owned();
        Ok((cell(0), cell(1)))
    }
}

async fn connect(place: &Place, sql: &str) -> io::Result<Vec<(Client, Statement)>> {
    let mut clients = Vec::new();
    for _ in 0..POOL {
        let (client, connection) = tokio_postgres::connect(&place.url(), NoTls).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        client.batch_execute(place.setting).await.map_err(io::Error::other)?;
        let statement = client.prepare(sql).await.map_err(io::Error::other)?;
        clients.push((client, statement));
    }
    Ok(clients)
}

impl Open {
    /// The rows of every execution by every connection, sorted.
    async fn rows(&self) -> io::Result<Vec<Vec<Cells>>> {
        let cells = |row: &Row| (0..row.len()).map(|at| row.get::<_, Option<Raw>>(at).map(|raw| raw.0)).collect();
        let mut all = Vec::new();
        for connection in 0..POOL {
            for n in 0..self.parameters.len() {
                let mut rows: Vec<Cells> = self.ask(connection, n).await?.iter().map(cells).collect();
                rows.sort_unstable();
                all.push(rows);
            }
        }
        Ok(all)
    }

    async fn once(&self, connection: usize, n: usize) -> io::Result<usize> {
        Ok(self.ask(connection, n).await?.len())
    }

    /// A hang is an error.
    async fn ask(&self, connection: usize, n: usize) -> io::Result<Vec<Row>> {
        let (client, statement) = &self.clients[connection];
        let values = self.parameters[n % self.parameters.len()].iter();
        let values: Vec<&(dyn ToSql + Sync)> = values.map(|value| value as _).collect();
        let reply = tokio::time::timeout(PATIENCE, client.query(statement, &values));
        reply.await.map_err(io::Error::other)?.map_err(io::Error::other)
    }
}

/// A row as its bytes; none for NULL.
type Cells = Vec<Option<Vec<u8>>>;

/// A value of any type as it came.
struct Raw(Vec<u8>);

impl FromSql<'_> for Raw {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

async fn single(open: &Open, connection: usize, limit: Duration) -> io::Result<(usize, Vec<u64>)> {
    let (began, mut latencies_ns) = (Instant::now(), Vec::new());
    while began.elapsed() < limit {
        let started = Instant::now();
        std::hint::black_box(open.once(connection, connection + latencies_ns.len()).await?);
        latencies_ns.push(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok((latencies_ns.len(), latencies_ns))
}

async fn pipeline(open: &Open, limit: Duration) -> io::Result<usize> {
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed() < limit {
        try_join_all((0..IN_FLIGHT).map(|n| open.once(0, n))).await?;
        count += IN_FLIGHT;
    }
    Ok(count)
}

async fn pool(open: &Open, limit: Duration) -> io::Result<(usize, Vec<u64>)> {
    let all = try_join_all((0..POOL).map(|connection| single(open, connection, limit))).await?;
    let latencies_ns: Vec<u64> = all.into_iter().flat_map(|(_, latencies_ns)| latencies_ns).collect();
    Ok((latencies_ns.len(), latencies_ns))
}
