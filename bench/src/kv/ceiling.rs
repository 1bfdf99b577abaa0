//! The load generator's own ceiling: a server that copies the key of a request into a reply and does nothing else.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use crate::canned::{WELCOME, announce};
use crate::kv::exchange::Exchange;

/// Serves the exchanges in a file, a thread for each connection, until the process ends.
pub(crate) fn serve(file: &Path) -> io::Result<()> {
    let exchanges: Vec<Exchange> = serde_json::from_slice(&std::fs::read(file)?)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    announce(listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept()?;
        let exchanges = exchanges.clone();
        std::thread::spawn(move || session(stream, exchanges));
    }
}

/// What one write sent arrives in one read: messages are short, and the next one waits for this one's reply.
fn session(mut stream: TcpStream, mut exchanges: Vec<Exchange>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 4096];
    let _ = stream.read(&mut buffer)?;
    stream.write_all(&WELCOME)?;
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        let request = &buffer[..read];
        let known = exchanges.iter_mut().find_map(|exchange| Some((exchange.key_of(request)?, exchange)));
        let (key, exchange) = known.ok_or_else(|| io::Error::other("an unknown request"))?;
        exchange.set_key(&key);
        stream.write_all(&exchange.reply)?;
    }
}
