//! The ceilings: servers that answer each text with bytes learnt beforehand and do nothing else.
//!
//! `canned` answers at once; `group barrier` first waits for one upstream statement that was sent after the request and
//! is shared by all who wait, the least that exact freshness costs without being told of changes. What came in one read
//! waits once: all of it was asked before.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::NoTls;

/// A unit's bytes (a Query, or messages up to Sync) → reply frames.
pub(crate) type Replies = HashMap<Vec<u8>, Vec<u8>>;

/// AuthenticationOk and ReadyForQuery.
pub(crate) const WELCOME: [u8; 15] = [b'R', 0, 0, 0, 8, 0, 0, 0, 0, b'Z', 0, 0, 0, 5, b'I'];

type Waiting = mpsc::UnboundedSender<oneshot::Sender<()>>;

/// Serves until the process ends. With `upstream` (a connection string) every answer waits for a shared barrier.
pub(crate) async fn serve(listener: TcpListener, replies: Replies, upstream: Option<String>) -> io::Result<()> {
    let replies = Arc::new(replies);
    let barrier = match upstream {
        Some(url) => Some(start_barrier(&url).await?),
        None => None,
    };
    loop {
        let (stream, _) = listener.accept().await?;
        let (replies, barrier) = (Arc::clone(&replies), barrier.clone());
        tokio::spawn(async move {
            let _ = session(stream, &replies, barrier).await;
        });
    }
}

async fn session(mut stream: TcpStream, replies: &Replies, barrier: Option<Waiting>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8192);
    stream.read_buf(&mut buffer).await?;
    buffer.clear();
    stream.write_all(&WELCOME).await?;
    let mut out = Vec::new();
    loop {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        // Where the unit starts that is being read, and its next message.
        let (mut start, mut at) = (0, 0);
        while let Some(header) = buffer.get(at..at + 5) {
            let end = at + 1 + u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            if end > buffer.len() {
                break;
            }
            let is_last = matches!(header[0], b'Q' | b'S');
            at = end;
            if !is_last {
                continue;
            }
            let reply = replies.get(&buffer[start..end]).ok_or_else(|| io::Error::other("an unknown unit"))?;
            start = end;
            out.extend_from_slice(reply);
        }
        buffer.drain(..start);
        if let Some(barrier) = barrier.as_ref().filter(|_| !out.is_empty()) {
            let (done, wait) = oneshot::channel();
            barrier.send(done).map_err(io::Error::other)?;
            wait.await.map_err(io::Error::other)?;
        }
        stream.write_all(&out).await?;
        out.clear();
    }
}

async fn start_barrier(url: &str) -> io::Result<Waiting> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let sql = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text";
    let statement = client.prepare(sql).await.map_err(io::Error::other)?;
    let (sender, mut requests) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    tokio::spawn(async move {
        while let Some(first) = requests.recv().await {
            let mut group = vec![first];
            while let Ok(next) = requests.try_recv() {
                group.push(next);
            }
            if client.query(&statement, &[]).await.is_err() {
                return;
            }
            for waiting in group {
                let _ = waiting.send(());
            }
        }
    });
    Ok(sender)
}

/// Where a server listens, printed by its process for the one that started it.
pub(crate) fn announce(address: SocketAddr) {
    use std::io::Write;
    let _ = writeln!(io::stdout(), "{address}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::query_message;

    /// A pipeline waited once for each of its units, one after the other.
    #[test]
    fn what_came_together_waits_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
            let mut client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connected");
            let (served, _) = listener.accept().await.expect("accepted");
            let (barrier, mut waiting) = mpsc::unbounded_channel();
            let replies = Replies::from([(query_message("SELECT 1"), b"reply".to_vec())]);
            let serving = tokio::spawn(async move { session(served, &replies, Some(barrier)).await });
            client.write_all(b"start-up").await.expect("sent");
            client.read_exact(&mut [0; WELCOME.len()]).await.expect("welcomed");
            client.write_all(&query_message("SELECT 1").repeat(3)).await.expect("sent");
            waiting.recv().await.expect("it waits").send(()).expect("still there");
            let mut reply = [0; 15];
            client.read_exact(&mut reply).await.expect("all three");
            assert_eq!(&reply, b"replyreplyreply");
            drop(client);
            serving.await.expect("no panic").expect("the end");
            assert!(waiting.recv().await.is_none(), "once");
        });
    }
}
