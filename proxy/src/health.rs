//! `freshet health`: whether a freshet of these settings serves on this machine, for the health check of a container.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use freshet_config::{ListenAddress, Settings};

use crate::listener::socket_file;

/// For each step. A health check is given up after a few seconds anyway.
const LIMIT: Duration = Duration::from_secs(2);

/// Asks the admin address, or looks whether somebody listens for clients where there is none. An error says what is wrong.
pub fn health(settings: &Settings) -> Result<(), String> {
    if !settings.admin.address.is_empty() {
        return ask(&settings.admin.address);
    }
    match settings.listen.addresses.first() {
        Some(ListenAddress::Tcp(address)) => connect(address).map(drop),
        Some(ListenAddress::Directory(directory)) => {
            let path = socket_file(directory);
            UnixStream::connect(&path).map(drop).map_err(|error| format!("{}: {error}", path.display()))
        }
        None => Err("listen.addresses is empty".into()),
    }
}

fn ask(address: &str) -> Result<(), String> {
    let failed = |error| format!("{address}: {error}");
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(LIMIT)).map_err(failed)?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").map_err(failed)?;
    let mut reply = Vec::new();
    // The status line is enough.
    stream.take(512).read_to_end(&mut reply).map_err(failed)?;
    match reply.starts_with(b"HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(format!("{address}: {}", String::from_utf8_lossy(&reply).lines().next().unwrap_or("no reply"))),
    }
}

fn connect(address: &str) -> Result<TcpStream, String> {
    let found: Vec<SocketAddr> = address.to_socket_addrs().map_err(|error| format!("{address}: {error}"))?.collect();
    let mut failed = format!("{address}: has no address");
    for at in found {
        match TcpStream::connect_timeout(&at, LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = format!("{at}: {error}"),
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with this.
    fn answering(reply: &'static str) -> (String, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(reply.as_bytes());
        });
        (address, thread)
    }

    #[test]
    fn only_who_says_so_is_healthy() {
        let mut settings = Settings::default();
        for (reply, is_healthy) in
            [("HTTP/1.1 200 OK\r\n\r\nok\n", true), ("HTTP/1.1 503 No\r\n\r\n", false), ("", false)]
        {
            let (address, thread) = answering(reply);
            settings.admin.address = address;
            assert_eq!(health(&settings).is_ok(), is_healthy, "{reply}");
            thread.join().unwrap();
        }
        assert!(health(&settings).unwrap_err().contains("refused"), "nobody is there any more");
    }

    #[test]
    fn without_an_admin_address_who_listens_is_healthy() {
        let mut settings = Settings::default();
        settings.admin.address = String::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        settings.listen.addresses = vec![ListenAddress::Tcp(listener.local_addr().unwrap().to_string())];
        assert_eq!(health(&settings), Ok(()));
        drop(listener);
        assert!(health(&settings).is_err());
        settings.listen.addresses = vec![ListenAddress::Directory("/nope".into())];
        assert!(health(&settings).unwrap_err().starts_with("/nope/.s.PGSQL.5433: "));
    }
}
