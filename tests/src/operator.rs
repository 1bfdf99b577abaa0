//! What an operator sees of a running freshet: its HTTP endpoints.

use std::io::{Write, read_to_string};
use std::net::TcpStream;

use crate::cluster::free_port;

/// An address for the endpoints, and who asks there.
pub struct Operator {
    port: u16,
}

impl Operator {
    /// For a freshet that is started with [`Self::address`].
    pub fn new() -> Self {
        Self { port: free_port() }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Head and body.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connects");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        read_to_string(stream).expect("answered")
    }

    /// The value of a metric without labels, or with these: `name{label="value"}`.
    pub fn metric(&self, name: &str) -> u64 {
        let metrics = self.get("/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no {name} in {metrics}"))
    }
}

impl Default for Operator {
    fn default() -> Self {
        Self::new()
    }
}
