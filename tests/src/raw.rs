//! A client that sees frames: what two servers must agree on byte for byte.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// One connection, trust authentication, blocking.
pub struct RawClient {
    stream: TcpStream,
    received: Vec<u8>,
    key: Option<[u8; 8]>,
}

/// Tag and body.
pub type Frame = (u8, Vec<u8>);

/// The reply to one unit, ReadyForQuery included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawReply {
    pub frames: Vec<Frame>,
}

impl RawReply {
    pub fn bodies(&self, tag: u8) -> Vec<&[u8]> {
        self.frames.iter().filter(|(t, _)| *t == tag).map(|(_, body)| body.as_slice()).collect()
    }

    pub fn rows(&self) -> Vec<Vec<Option<Vec<u8>>>> {
        self.bodies(b'D').into_iter().map(cells).collect()
    }

    /// The rows, in text format, as `psql -At` prints them.
    pub fn text(&self) -> String {
        let text = |cell: &Option<Vec<u8>>| String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned();
        let row = |row: &Vec<Option<Vec<u8>>>| row.iter().map(text).collect::<Vec<_>>().join("|");
        self.rows().iter().map(row).collect::<Vec<_>>().join("\n")
    }

    /// The fields of the first ErrorResponse.
    pub fn error(&self) -> Option<String> {
        let body = *self.bodies(b'E').first()?;
        Some(String::from_utf8_lossy(body).replace('\0', " ").trim().to_string())
    }

    /// All but the rows: descriptions, tags, errors, status, in order.
    pub fn envelope(&self) -> Vec<&Frame> {
        self.frames.iter().filter(|(tag, _)| !b"DSN".contains(tag)).collect()
    }
}

fn cells(body: &[u8]) -> Vec<Option<Vec<u8>>> {
    let count = usize::from(u16::from_be_bytes([body[0], body[1]]));
    let mut at = 2;
    let mut cells = Vec::with_capacity(count);
    for _ in 0..count {
        let length = i32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes"));
        at += 4;
        match usize::try_from(length) {
            Ok(length) => {
                cells.push(Some(body[at..at + length].to_vec()));
                at += length;
            }
            Err(_) => cells.push(None),
        }
    }
    cells
}

impl RawClient {
    pub fn connect(address: SocketAddr, user: &str, database: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", user, "database", database] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        let length = u32::try_from(body.len() + 4).expect("short");
        stream.write_all(&[&length.to_be_bytes(), body.as_slice()].concat())?;
        let mut client = Self { stream, received: Vec::new(), key: None };
        let reply = client.read_reply()?;
        client.key = reply.bodies(b'K').first().and_then(|body| (*body).try_into().ok());
        match reply.error() {
            Some(error) => Err(io::Error::other(error)),
            None => Ok(client),
        }
    }

    /// BackendKeyData, where it is of protocol 3.0.
    pub fn key(&self) -> Option<[u8; 8]> {
        self.key
    }

    /// A CancelRequest; returns when the server has closed the line, as it does once it has passed it on.
    pub fn cancel(address: SocketAddr, key: [u8; 8]) -> io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
        let code = 80_877_102_u32.to_be_bytes();
        stream.write_all(&[&16_u32.to_be_bytes()[..], &code, &key].concat())?;
        let _ = stream.read(&mut [0])?;
        Ok(())
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Frames up to ReadyForQuery.
    pub fn read_reply(&mut self) -> io::Result<RawReply> {
        let mut reply = RawReply::default();
        loop {
            let frame = self.read_frame()?;
            let is_last = frame.0 == b'Z';
            reply.frames.push(frame);
            if is_last {
                return Ok(reply);
            }
        }
    }

    pub fn read_frame(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(header) = self.received.get(..5) {
                let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
                if self.received.len() > length {
                    let body = self.received[5..=length].to_vec();
                    let tag = self.received[0];
                    self.received.drain(..=length);
                    return Ok((tag, body));
                }
            }
            let mut buffer = [0; 65536];
            let read = read_some(&mut self.stream, &mut buffer)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.received.extend_from_slice(&buffer[..read]);
        }
    }

    pub fn simple(&mut self, sql: &str) -> io::Result<RawReply> {
        self.send(&frame(b'Q', &[sql.as_bytes(), b"\0"].concat()))?;
        self.read_reply()
    }

    /// Parse, Bind, Describe of the portal, Execute, Sync, all unnamed. Parameters as text, their types inferred.
    pub fn extended(&mut self, sql: &str, parameters: &[Option<&str>], result_format: i16) -> io::Result<RawReply> {
        let parameters: Vec<(u32, Option<&str>)> = parameters.iter().map(|text| (0, *text)).collect();
        self.extended_of(sql, &parameters, result_format)
    }

    /// Likewise, with the parameters' declared types (0: to be inferred).
    pub fn extended_of(
        &mut self,
        sql: &str,
        parameters: &[(u32, Option<&str>)],
        result_format: i16,
    ) -> io::Result<RawReply> {
        let count = u16::try_from(parameters.len()).expect("few").to_be_bytes();
        let is_declared = parameters.iter().any(|(oid, _)| *oid != 0);
        let mut parse = [b"\0", sql.as_bytes(), b"\0"].concat();
        match is_declared {
            true => {
                parse.extend_from_slice(&count);
                parameters.iter().for_each(|(oid, _)| parse.extend_from_slice(&oid.to_be_bytes()));
            }
            false => parse.extend_from_slice(&[0, 0]),
        }
        let mut unit = frame(b'P', &parse);
        let mut bind = b"\0\0\0\0".to_vec();
        bind.extend_from_slice(&count);
        for (_, parameter) in parameters {
            match parameter {
                None => bind.extend_from_slice(&(-1_i32).to_be_bytes()),
                Some(text) => {
                    bind.extend_from_slice(&u32::try_from(text.len()).expect("short").to_be_bytes());
                    bind.extend_from_slice(text.as_bytes());
                }
            }
        }
        bind.extend_from_slice(&[0, 1]);
        bind.extend_from_slice(&result_format.to_be_bytes());
        unit.extend(frame(b'B', &bind));
        unit.extend(frame(b'D', b"P\0"));
        unit.extend(frame(b'E', b"\0\0\0\0\0"));
        unit.extend(frame(b'S', b""));
        self.send(&unit)?;
        self.read_reply()
    }

    /// `SHOW freshet.last`: route and reason of the previous statement.
    pub fn last(&mut self) -> io::Result<(String, String)> {
        let reply = self.simple("SHOW freshet.last")?;
        let row = reply.rows().into_iter().next().ok_or_else(|| io::Error::other("SHOW freshet.last has no row"))?;
        let text = |at: usize| row.get(at).cloned().flatten().map(|c| String::from_utf8_lossy(&c).into_owned());
        Ok((text(0).unwrap_or_default(), text(1).unwrap_or_default()))
    }
}

/// A message of the protocol.
pub fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short");
    [&[tag], length.to_be_bytes().as_slice(), body].concat()
}

/// As `read`, also where a signal, or a machine that was stopped for a while, has interrupted it: with a time-out that is an error (signal(7)).
pub fn read_some(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
