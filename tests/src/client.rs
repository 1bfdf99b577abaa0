//! A client that speaks raw bytes, so that a test controls every message and sees every byte.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use freshet::wire::frame::{Frames, HEADER_LENGTH, Head, head, write_frame};
use freshet::wire::startup::write_startup;

use crate::raw::read_some;

/// A connection to PostgreSQL or freshet on this machine.
pub struct RawClient {
    stream: TcpStream,
    received: Vec<u8>,
    /// From BackendKeyData.
    pub key: Vec<u8>,
}

/// One message, without its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub tag: char,
    pub body: Vec<u8>,
}

impl RawClient {
    /// Connects without a word.
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
        stream.set_nodelay(true).expect("a TCP socket");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a TCP socket");
        Self { stream, received: Vec::new(), key: Vec::new() }
    }

    /// Logs in as the superuser, who needs no password; reads up to the first ReadyForQuery.
    pub fn log_in(port: u16, database: &str) -> Self {
        let mut client = Self::connect(port);
        client.start_up(&[("user", "postgres"), ("database", database)]);
        let messages = client.read_until('Z');
        assert_eq!(messages.last().map(|message| message.tag), Some('Z'), "{messages:?}");
        client.key = messages.iter().find(|message| message.tag == 'K').map(|m| m.body.clone()).unwrap_or_default();
        client
    }

    pub fn start_up(&mut self, parameters: &[(&str, &str)]) {
        let mut packet = Vec::new();
        write_startup(&mut packet, parameters);
        self.send(&packet);
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the other side reads");
    }

    /// As [`RawClient::send`], where the other side may have closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub fn query(&mut self, sql: &str) -> Vec<Message> {
        self.send(&query(sql));
        self.read_until('Z')
    }

    /// Messages up to and including the first with this tag, or up to the end of the stream.
    pub fn read_until(&mut self, tag: char) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.read_message() {
            let is_last = message.tag == tag;
            messages.push(message);
            if is_last {
                break;
            }
        }
        messages
    }

    /// None at the end of the stream.
    pub fn read_message(&mut self) -> Option<Message> {
        loop {
            let mut frames = Frames::new(&self.received);
            if let Some(frame) = frames.next() {
                let message = Message { tag: char::from(frame.tag), body: frame.body.to_vec() };
                let rest = self.received.len() - frames.rest().len();
                self.received.drain(..rest);
                return Some(message);
            }
            assert!(head(&self.received) != Head::Malformed, "{:?}", &self.received[..HEADER_LENGTH]);
            let mut space = [0; 65536];
            match read_some(&mut self.stream, &mut space) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&space[..count]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("reading: {error}; so far {:?}", self.received.get(..200)),
            }
        }
    }

    /// One byte outside of any message: the answer to SSLRequest.
    pub fn read_byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).expect("a byte");
        byte[0]
    }

    /// Everything up to the end of the stream.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.received);
        let mut space = [0; 65536];
        loop {
            match read_some(&mut self.stream, &mut space) {
                Ok(0) => return all,
                Ok(count) => all.extend_from_slice(&space[..count]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return all,
                Err(error) => panic!("reading: {error}; so far {} bytes", all.len()),
            }
        }
    }

    /// No more will be sent; what is to come is still read.
    pub fn close_write(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// A second handle on the same connection, for a thread that writes while this one reads.
    pub fn writer(&self) -> TcpStream {
        self.stream.try_clone().expect("a file descriptor")
    }
}

/// The tags of messages, in order.
pub fn tags(messages: &[Message]) -> String {
    messages.iter().map(|message| message.tag).collect()
}

/// The text values of the DataRows.
pub fn rows(messages: &[Message]) -> Vec<Vec<Option<String>>> {
    let text = |value: Option<&[u8]>| value.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let rows = messages.iter().filter(|message| message.tag == 'D');
    rows.map(|row| freshet::wire::query::data_row(&row.body).map(text).collect()).collect()
}

/// Any message.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, tag, |out| out.extend_from_slice(body));
    out
}

pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

pub fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

/// Text parameters, results all of `format`.
pub fn bind(portal: &str, statement: &str, parameters: &[Option<&str>], format: u16) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0\0\0").into_bytes();
    body.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        body.extend(parameter.map_or(-1, |text| text.len() as i32).to_be_bytes());
        body.extend(parameter.unwrap_or_default().as_bytes());
    }
    body.extend([0, 1]);
    body.extend(format.to_be_bytes());
    message(b'B', &body)
}

/// `kind` is `S` or `P`.
pub fn describe(kind: char, name: &str) -> Vec<u8> {
    message(b'D', format!("{kind}{name}\0").as_bytes())
}

pub fn execute(portal: &str, rows_max: i32) -> Vec<u8> {
    let mut body = format!("{portal}\0").into_bytes();
    body.extend(rows_max.to_be_bytes());
    message(b'E', &body)
}

/// `kind` is `S` or `P`.
pub fn close(kind: char, name: &str) -> Vec<u8> {
    message(b'C', format!("{kind}{name}\0").as_bytes())
}

pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

pub fn flush() -> Vec<u8> {
    message(b'H', b"")
}

pub fn terminate() -> Vec<u8> {
    message(b'X', b"")
}
