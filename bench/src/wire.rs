//! A blocking client: large reads, no decoding on the timed path beyond frame headers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection, trust authentication.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

const READ_BYTES: usize = 256 * 1024;
/// Longer than any statement of any suite takes: who waits so long for bytes waits for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A connection whose reads and writes end with an error instead of a hang.
pub(crate) fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// What a socket says when its patience is over is not what a reader would understand.
pub(crate) fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::other(format!("no reply within {} s", PATIENCE.as_secs()))
        }
        _ => error,
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, user: &str, database: &str) -> io::Result<Self> {
        Self::connect_with(address, user, database, READ_BYTES)
    }

    /// With a small buffer to begin with: for connections in thousands.
    pub(crate) fn connect_small(address: SocketAddr, user: &str, database: &str) -> io::Result<Self> {
        Self::connect_with(address, user, database, 4096)
    }

    fn connect_with(address: SocketAddr, user: &str, database: &str, buffer_bytes: usize) -> io::Result<Self> {
        let mut stream = open(address)?;
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
            let read = match self.stream.read(&mut self.buffer[self.filled..]) {
                // By a signal, or a machine that was stopped for a while.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(named)?,
            };
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

/// Whether another reply is the same answer: the same rows, and in the same order what the statement sorts by.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    rows: Vec<Vec<u8>>,
    sorted_by: Vec<usize>,
    keys: Vec<Vec<Option<String>>>,
}

impl Answer {
    /// `sorted_by`: [`crate::rows::sorted_by`].
    pub(crate) fn of(reply: &[u8], sorted_by: &[usize]) -> Self {
        let (rows, keys) = (sorted_rows(reply), keys(reply, sorted_by));
        Self { rows, sorted_by: sorted_by.to_vec(), keys }
    }

    pub(crate) fn is_of(&self, reply: &[u8]) -> bool {
        self.rows == sorted_rows(reply) && self.keys == keys(reply, &self.sorted_by)
    }
}

fn keys(reply: &[u8], sorted_by: &[usize]) -> Vec<Vec<Option<String>>> {
    if sorted_by.is_empty() {
        return Vec::new();
    }
    let key = |row: Vec<Option<String>>| sorted_by.iter().filter_map(|at| row.get(*at).cloned()).collect();
    rows(reply).into_iter().map(key).collect()
}

/// The names of the columns, of a reply that has its RowDescription.
pub(crate) fn column_names(reply: &[u8]) -> Vec<String> {
    let Some((_, mut body)) = frames(reply).find(|(kind, _)| *kind == b'T') else { return Vec::new() };
    body = body.get(2..).unwrap_or_default();
    let mut names = Vec::new();
    while let Some(end) = body.iter().position(|byte| *byte == 0) {
        names.push(String::from_utf8_lossy(&body[..end]).into_owned());
        // Behind a name: table, attribute, type, its size and modifier, and the format.
        body = body.get(end + 19..).unwrap_or_default();
    }
    names
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<u8> {
        let mut body = u16::try_from(cells.len()).expect("few").to_be_bytes().to_vec();
        for cell in cells {
            body.extend(i32::try_from(cell.len()).expect("short").to_be_bytes());
            body.extend(cell.as_bytes());
        }
        let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        [&b"D"[..], &length, &body].concat()
    }

    #[test]
    fn an_answer_in_another_order_is_another_answer() {
        let (one, two) = (row(&["1", "a"]), row(&["2", "a"]));
        let (up, down) = ([&*one, &two].concat(), [&*two, &one].concat());
        assert!(Answer::of(&up, &[]).is_of(&down));
        assert!(Answer::of(&up, &[1]).is_of(&down), "ties");
        assert!(!Answer::of(&up, &[0]).is_of(&down));
    }

    #[test]
    fn columns_are_named_in_a_row_description() {
        let mut body = vec![0, 2];
        for name in ["id", "total"] {
            body.extend(name.bytes().chain([0; 19]));
        }
        let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        assert_eq!(column_names(&[&b"T"[..], &length, &body].concat()), ["id", "total"]);
    }
}
