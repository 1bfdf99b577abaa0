//! A small proxy between freshet and PostgreSQL that delays, cuts and resets connections, by kind and direction.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::ledger::locked;

/// What a connection is for, told from its start-up packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Walsender,
    /// Freshet's others: barrier, nudge, catalog, copies.
    Own,
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToFreshet,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Walsender, Kind::Own, Kind::Client];
pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::ToServer, Direction::ToFreshet];

/// In force while not zero.
#[derive(Default)]
struct Fault {
    delay_ms: AtomicU64,
    /// Bytes are held back.
    cut: AtomicU64,
}

struct Shared {
    /// Where new connections get to.
    upstream: Mutex<SocketAddr>,
    faults: [[Fault; 2]; 3],
    open: Mutex<Vec<(Kind, TcpStream)>>,
}

/// The running proxy.
pub(crate) struct FaultProxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl FaultProxy {
    pub(crate) fn start(upstream: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared =
            Arc::new(Shared { upstream: Mutex::new(upstream), faults: Default::default(), open: Mutex::default() });
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&of_thread);
                std::thread::spawn(move || serve(&shared, client));
            }
        });
        Ok(Self { port, shared })
    }

    /// Those that are open stay where they are.
    pub(crate) fn lead_to(&self, upstream: SocketAddr) {
        *locked(&self.shared.upstream) = upstream;
    }

    pub(crate) fn delay(&self, kind: Kind, direction: Direction, milliseconds: u64) {
        self.shared.faults[kind as usize][direction as usize].delay_ms.store(milliseconds, SeqCst);
    }

    pub(crate) fn cut(&self, kind: Kind, direction: Direction) {
        self.shared.faults[kind as usize][direction as usize].cut.store(1, SeqCst);
    }

    pub(crate) fn reset(&self, kind: Kind) {
        for (_, stream) in locked(&self.shared.open).extract_if(.., |(of, _)| *of == kind) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets everything pass again.
    pub(crate) fn mend(&self) {
        for fault in self.shared.faults.iter().flatten() {
            fault.delay_ms.store(0, SeqCst);
            fault.cut.store(0, SeqCst);
        }
    }
}

fn serve(shared: &Arc<Shared>, mut client: TcpStream) {
    let mut first = [0; 65536];
    let Ok(length) = client.read(&mut first) else { return };
    let kind = kind_of(&first[..length]);
    let upstream = *locked(&shared.upstream);
    let Ok(mut server) = TcpStream::connect(upstream) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    if server.write_all(&first[..length]).is_err() {
        return;
    }
    let (Ok(from_server), Ok(to_client), Ok(kept)) = (server.try_clone(), client.try_clone(), client.try_clone())
    else {
        return;
    };
    {
        let mut open = locked(&shared.open);
        // Those that ended have no peer any more.
        open.retain(|(_, stream)| stream.peer_addr().is_ok());
        open.push((kind, kept));
    }
    let back = Arc::clone(shared);
    std::thread::spawn(move || pump(&back, kind, Direction::ToFreshet, from_server, to_client));
    pump(shared, kind, Direction::ToServer, client, server);
}

fn kind_of(packet: &[u8]) -> Kind {
    let has = |text: &[u8]| packet.windows(text.len()).any(|window| window == text);
    if has(b"replication\0") {
        Kind::Walsender
    } else if has(b"application_name\0freshet") {
        Kind::Own
    } else {
        Kind::Client
    }
}

fn pump(shared: &Shared, kind: Kind, direction: Direction, mut from: TcpStream, mut to: TcpStream) {
    let fault = &shared.faults[kind as usize][direction as usize];
    let mut bytes = [0; 65536];
    while let Ok(length) = from.read(&mut bytes) {
        while fault.cut.load(SeqCst) != 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        match fault.delay_ms.load(SeqCst) {
            0 => {}
            delay => std::thread::sleep(Duration::from_millis(delay)),
        }
        if length == 0 || to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
