//! An address that leads to a server, and may lead to another one later, or nowhere.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Forwards each new connection to where the address leads by then.
pub struct Forward {
    pub address: SocketAddr,
    ways: Arc<Mutex<Ways>>,
}

struct Ways {
    /// None: nobody answers.
    target: Option<SocketAddr>,
    open: Vec<TcpStream>,
}

impl Forward {
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let ways = Arc::new(Mutex::new(Ways { target: Some(target), open: Vec::new() }));
        let followed = Arc::clone(&ways);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut ways = followed.lock().expect("not poisoned");
                let Some(Ok(server)) = ways.target.map(TcpStream::connect) else { continue };
                let (Ok(from_server), Ok(to_client)) = (server.try_clone(), client.try_clone()) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                ways.open.extend([client.try_clone(), server.try_clone()].into_iter().flatten());
                drop(ways);
                std::thread::spawn(move || pump(from_server, to_client));
                std::thread::spawn(move || pump(client, server));
            }
        });
        Self { address, ways }
    }

    /// Connections that are open stay where they are.
    pub fn lead_to(&self, target: SocketAddr) {
        self.ways.lock().expect("not poisoned").target = Some(target);
    }

    /// Ends all connections, as the end of a process does, and takes no more.
    pub fn end(&self) {
        let mut ways = self.ways.lock().expect("not poisoned");
        ways.target = None;
        for stream in ways.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
