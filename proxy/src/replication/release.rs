//! Frees writers that wait for freshet as a synchronous standby: a physical walsender of the same name that acknowledges
//! everything and keeps nothing.
//!
//! freshet does so itself whenever its stream does not run, since nothing is served then: a temporary slot cannot be made while
//! a commit waits, because it waits for running transactions. `freshet release` does so when freshet does not come back. Either
//! way nobody may be served from a mirror that relies on being waited for.

use std::time::Duration;

use bytes::{Buf, BufMut};
use freshet_engine::types::Lsn;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::replication::stream::{Ask, ended_by, text, write_status};
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connection::Connection;
use crate::upstream::{ServerError, UpstreamError};

const ANSWER: Duration = Duration::from_secs(10);
/// Said again as often: what is acknowledged before the walsender has caught up frees nobody (PostgreSQL:
/// SyncRepReleaseWaiters).
const STATUS_EVERY: Duration = Duration::from_millis(100);

/// Between two attempts to connect.
const RETRY: Duration = Duration::from_secs(1);

/// Frees writers in the background, until [`Freeing::end`].
pub struct Freeing(JoinSet<()>);

impl Freeing {
    pub fn start(address: &UpstreamAddress, name: &str) -> Self {
        let (address, name) = (address.clone(), name.to_string());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut told = String::new();
            loop {
                let error = match Releaser::connect(&address, &name).await {
                    Ok(releaser) => releaser.run().await,
                    Err(error) => error,
                };
                if error.to_string() != told {
                    told = error.to_string();
                    tracing::warn!(%error, standby = %name, "commits that wait for freshet are not freed at the moment");
                }
                sleep(RETRY).await;
            }
        });
        Self(task)
    }

    /// Returns when nothing is acknowledged any more.
    pub async fn end(mut self) {
        self.0.shutdown().await;
    }
}

/// A walsender that streams the log as to a physical standby.
pub struct Releaser {
    connection: Connection,
    at: Lsn,
}

impl Releaser {
    /// Connects as standby `name`; the role needs REPLICATION, and pg_hba.conf a line for database `replication`.
    pub async fn connect(address: &UpstreamAddress, name: &str) -> Result<Self, UpstreamError> {
        let parameters = [("replication", "true"), ("application_name", name)];
        let mut connection = Connection::open(address, &parameters).await?;
        let system = timeout(ANSWER, connection.simple_query("IDENTIFY_SYSTEM")).await;
        let system = system.map_err(|_| UpstreamError::Timeout("IDENTIFY_SYSTEM"))??;
        let (timeline, position) = (text(&system, 1)?, text(&system, 2)?);
        let at = position.parse().map_err(|_| UpstreamError::Protocol("no position"))?;
        let command = format!("START_REPLICATION PHYSICAL {position} TIMELINE {timeline}");
        postgres_protocol::message::frontend::query(&command, connection.outgoing())?;
        connection.flush().await?;
        let mut releaser = Self { connection, at };
        releaser.acknowledge().await?;
        Ok(releaser)
    }

    /// Acknowledges whatever comes, until the connection ends.
    pub async fn run(mut self) -> UpstreamError {
        loop {
            let outcome = tokio::select! {
                received = self.receive() => received,
                () = sleep(STATUS_EVERY) => self.acknowledge().await,
            };
            if let Err(error) = outcome {
                return error;
            }
        }
    }

    async fn receive(&mut self) -> Result<(), UpstreamError> {
        let frame = self.connection.read_frame().await?;
        match frame.tag {
            b'd' => {}
            b'W' | b'N' | b'S' => return Ok(()),
            b'E' => return Err(UpstreamError::Server(ServerError::parse(&frame.body))),
            tag => return Err(ended_by(tag)),
        }
        let mut body = frame.body;
        match body.first() {
            // XLogData: where it starts, where the log ends, time, then the log itself.
            Some(b'w') if body.len() >= 25 => {
                body.advance(1);
                let start = body.get_u64();
                body.advance(16);
                self.at = self.at.max(Lsn(start + body.len() as u64));
            }
            Some(b'k') if body.len() >= 18 => {
                body.advance(1);
                self.at = self.at.max(Lsn(body.get_u64()));
            }
            _ => return Err(UpstreamError::Protocol("torn replication message")),
        }
        self.acknowledge().await
    }

    async fn acknowledge(&mut self) -> Result<(), UpstreamError> {
        let at = self.at;
        let outgoing = self.connection.outgoing();
        outgoing.put_u8(b'd');
        outgoing.put_i32(4 + 1 + 8 * 4 + 1);
        write_status(outgoing, at, Ask::Nothing);
        self.connection.flush().await
    }
}

/// Whether a standby of this name is connected to upstream. One that is still starting does not count: it acknowledges nothing, and
/// the walsender of a freshet that was killed while its slot was made waits, without noticing, for the very commits that wait for it.
pub async fn is_connected(address: &UpstreamAddress, name: &str) -> Result<bool, UpstreamError> {
    let mut connection = Connection::open(address, &[("application_name", "freshet release")]).await?;
    let sql = format!(
        "SELECT count(*) FROM pg_stat_replication WHERE lower(application_name) = lower('{name}') AND state <> 'startup'"
    );
    let rows =
        timeout(ANSWER, connection.simple_query(&sql)).await.map_err(|_| UpstreamError::Timeout("question"))??;
    Ok(text(&rows, 0)? != "0")
}
