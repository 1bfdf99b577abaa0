//! RESP, the protocol of Redis and Valkey: commands as arrays of bulk strings, and their replies.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Status(String),
    Integer(i64),
    /// None for a key that is not there.
    Bulk(Option<Vec<u8>>),
    Array(Vec<Self>),
}

/// The message of a command.
pub(super) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut message = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        message.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        message.extend_from_slice(word);
        message.extend_from_slice(b"\r\n");
    }
    message
}

/// The first reply in `bytes` and its length. None where more has to be read first; an error reply is an error.
pub(super) fn decode(bytes: &[u8]) -> io::Result<Option<(Reply, usize)>> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (line, after) = (String::from_utf8_lossy(&bytes[1..end]), end + 2);
    let number = || line.parse::<i64>().map_err(|_| malformed(&line));
    match bytes[0] {
        b'+' => Ok(Some((Reply::Status(line.into_owned()), after))),
        b'-' => Err(io::Error::other(format!("error reply: {line}"))),
        b':' => Ok(Some((Reply::Integer(number()?), after))),
        b'$' => {
            let Ok(length) = usize::try_from(number()?) else { return Ok(Some((Reply::Bulk(None), after))) };
            let reply = bytes.get(after..after + length + 2);
            Ok(reply.map(|text| (Reply::Bulk(Some(text[..length].to_vec())), after + length + 2)))
        }
        b'*' => {
            let (mut items, mut at) = (Vec::new(), after);
            for _ in 0..number()?.max(0) {
                let Some((item, length)) = bytes.get(at..).map_or(Ok(None), decode)? else { return Ok(None) };
                items.push(item);
                at += length;
            }
            Ok(Some((Reply::Array(items), at)))
        }
        _ => Err(malformed(&String::from_utf8_lossy(&bytes[..end]))),
    }
}

fn malformed(text: &str) -> io::Error {
    io::Error::other(format!("not RESP: {text}"))
}

/// One connection for set-up and checks.
pub(super) struct Control {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Control {
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = crate::wire::open(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub(super) fn ask(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        self.send(&command(words))?;
        self.read()
    }

    /// Commands whose replies are read one by one afterwards.
    pub(super) fn send(&mut self, messages: &[u8]) -> io::Result<()> {
        self.stream.write_all(messages)
    }

    pub(super) fn read(&mut self) -> io::Result<Reply> {
        loop {
            if let Some((reply, length)) = decode(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(reply);
            }
            let mut chunk = [0; 4096];
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.buffer.extend_from_slice(&chunk[..read]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_counted_words() {
        assert_eq!(command(&[b"SET", b"k\r\n", b""]), b"*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
    }

    #[test]
    fn a_reply_is_known_when_all_of_it_is_there() {
        let whole: [(&[u8], Reply); 6] = [
            (b"+OK\r\n", Reply::Status("OK".into())),
            (b":-12\r\n", Reply::Integer(-12)),
            (b"$4\r\na\r\nb\r\n", Reply::Bulk(Some(b"a\r\nb".to_vec()))),
            (b"$0\r\n\r\n", Reply::Bulk(Some(Vec::new()))),
            (b"$-1\r\n", Reply::Bulk(None)),
            (
                b"*2\r\n$1\r\nx\r\n*1\r\n:7\r\n",
                Reply::Array(vec![Reply::Bulk(Some(b"x".to_vec())), Reply::Array(vec![Reply::Integer(7)])]),
            ),
        ];
        for (bytes, reply) in whole {
            assert_eq!(decode(bytes).expect("well-formed"), Some((reply.clone(), bytes.len())));
            for end in 0..bytes.len() {
                assert_eq!(decode(&bytes[..end]).expect("a beginning"), None, "{reply:?} up to {end}");
            }
            // What follows belongs to the next reply.
            let longer = [bytes, b"+OK\r\n".as_slice()].concat();
            assert_eq!(decode(&longer).expect("well-formed"), Some((reply, bytes.len())));
        }
    }

    #[test]
    fn an_error_reply_is_an_error() {
        let error = decode(b"-ERR unknown command\r\n").expect_err("an error");
        assert!(error.to_string().contains("unknown command"));
        assert!(decode(b"hello\r\n").is_err());
        assert!(decode(b"$x\r\n").is_err());
    }
}
