//! A blocking client: large reads, no decoding on the timed path beyond frame headers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// One connection, trust authentication.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

const READ_BYTES: usize = 256 * 1024;

impl Client {
    pub(crate) fn connect(address: SocketAddr, user: &str, database: &str) -> io::Result<Self> {
        Self::connect_with(address, user, database, READ_BYTES)
    }

    /// With a small buffer to begin with: for connections in thousands.
    pub(crate) fn connect_small(address: SocketAddr, user: &str, database: &str) -> io::Result<Self> {
        Self::connect_with(address, user, database, 4096)
    }

    fn connect_with(address: SocketAddr, user: &str, database: &str, buffer_bytes: usize) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", user, "database", database] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        let length = u32::try_from(body.len() + 4).unwrap_or(0);
        stream.write_all(&[&length.to_be_bytes(), body.as_slice()].concat())?;
        let mut client = Self { stream, buffer: vec![0; buffer_bytes], filled: 0 };
        client.read_reply()?;
        Ok(client)
    }

    /// Sends one Query, or messages up to Sync, and reads up to ReadyForQuery; the reply's frames, ReadyForQuery included.
    /// An ErrorResponse is an error.
    pub(crate) fn query(&mut self, message: &[u8]) -> io::Result<&[u8]> {
        self.stream.write_all(message)?;
        self.read_reply()
    }

    /// Sends what is too large to be sent before replies are read: reads them meanwhile, up to one ReadyForQuery.
    pub(crate) fn exchange(&mut self, messages: &[u8]) -> io::Result<&[u8]> {
        let mut writer = self.stream.try_clone()?;
        std::thread::scope(|scope| {
            let sent = scope.spawn(move || writer.write_all(messages));
            let reply = self.read_reply();
            sent.join().map_err(|_| io::Error::other("the writer panicked"))??;
            reply
        })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The socket, for a caller that reads replies itself.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// The socket itself, for what is no reply of a usual size.
    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Reads one frame and nothing behind it; an error if its tag is another.
    pub(crate) fn read_frame_of(&mut self, tag: u8) -> io::Result<()> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header)?;
        let [found, length @ ..] = header;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        self.stream.read_exact(&mut body)?;
        if found == tag {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&body).replace('\0', " ");
        Err(io::Error::other(format!("message {} instead of {}: {body}", char::from(found), char::from(tag))))
    }

    /// Sends several units at once; their replies, one after the other.
    pub(crate) fn pipeline(&mut self, messages: &[u8], units: usize) -> io::Result<&[u8]> {
        self.stream.write_all(messages)?;
        self.read_replies(units)
    }

    pub(crate) fn read_reply(&mut self) -> io::Result<&[u8]> {
        self.read_replies(1)
    }

    fn read_replies(&mut self, mut units: usize) -> io::Result<&[u8]> {
        self.filled = 0;
        let mut at = 0;
        let mut failed_at = None;
        loop {
            while self.filled >= at + 5 {
                let length = u32::from_be_bytes([
                    self.buffer[at + 1],
                    self.buffer[at + 2],
                    self.buffer[at + 3],
                    self.buffer[at + 4],
                ]);
                let end = at + 1 + length as usize;
                if end > self.filled {
                    break;
                }
                match self.buffer[at] {
                    b'E' => failed_at = Some(at + 5..end),
                    b'Z' if units > 1 => units -= 1,
                    b'Z' if end == self.filled => {
                        return match failed_at {
                            None => Ok(&self.buffer[..end]),
                            Some(range) => Err(io::Error::other(format!(
                                "ErrorResponse: {}",
                                String::from_utf8_lossy(&self.buffer[range]).replace('\0', " ")
                            ))),
                        };
                    }
                    _ => {}
                }
                at = end;
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            let read = self.stream.read(&mut self.buffer[self.filled..])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.filled += read;
        }
    }
}

/// The Query message of a text.
pub(crate) fn query_message(sql: &str) -> Vec<u8> {
    let mut message = vec![b'Q'];
    message.extend_from_slice(&u32::try_from(sql.len() + 5).unwrap_or(0).to_be_bytes());
    message.extend_from_slice(sql.as_bytes());
    message.push(0);
    message
}

/// The DataRow bodies of a reply, sorted: what two servers must agree on (none of the workloads returns floats).
pub(crate) fn sorted_rows(reply: &[u8]) -> Vec<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> =
        frames(reply).filter(|(kind, _)| *kind == b'D').map(|(_, body)| body.to_vec()).collect();
    rows.sort_unstable();
    rows
}

/// The cells of the first row, as text.
pub(crate) fn first_row(reply: &[u8]) -> Vec<Option<String>> {
    frames(reply).find(|(kind, _)| *kind == b'D').map(|(_, body)| cells(body)).unwrap_or_default()
}

/// The cells of every row, as text.
pub(crate) fn rows(reply: &[u8]) -> Vec<Vec<Option<String>>> {
    frames(reply).filter(|(kind, _)| *kind == b'D').map(|(_, body)| cells(body)).collect()
}

/// What the last statement of a reply says that it did, such as `SELECT 1`.
pub(crate) fn command_tag(reply: &[u8]) -> Option<String> {
    let last = frames(reply).filter(|(kind, _)| *kind == b'C').last();
    last.map(|(_, body)| String::from_utf8_lossy(body).trim_end_matches('\0').to_owned())
}

/// None for NULL.
fn cells(body: &[u8]) -> Vec<Option<String>> {
    let mut cells = Vec::new();
    let mut at = 2;
    while at + 4 <= body.len() {
        let length = i32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        at += 4;
        let Ok(length) = usize::try_from(length) else {
            cells.push(None);
            continue;
        };
        cells.push(Some(String::from_utf8_lossy(&body[at..at + length]).into_owned()));
        at += length;
    }
    cells
}

fn frames(reply: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header = reply.get(at..at + 5)?;
        let end = at + 1 + u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let frame = (header[0], reply.get(at + 5..end)?);
        at = end;
        Some(frame)
    })
}
