//! The load: a thread per connection, one request at a time, every reply compared with what it has to be.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::kv::exchange::{Exchange, Keys};
use crate::load::{Measured, histogram, record, thread_time};

/// A connection and the positions of its keys: every `of`-th, from `first` on.
pub(super) struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
    first: u64,
    of: u64,
}

/// From which of a connection's own keys to which.
pub(super) type Stretch = std::ops::Range<u64>;

impl Line {
    pub(super) fn new(stream: TcpStream, first: usize, of: usize) -> Self {
        Self { stream, buffer: vec![0; 64 * 1024], first: first as u64, of: of as u64 }
    }

    /// How many keys are this connection's own.
    pub(super) fn share(&self, keys: Keys) -> u64 {
        (keys.count + self.of - 1 - self.first) / self.of
    }

    pub(super) fn position(&self, turn: u64, keys: Keys) -> u64 {
        self.first + self.of * (turn % self.share(keys))
    }

    /// Sends the request and reads until the reply is whole; other bytes than expected are an error at once.
    fn once(&mut self, exchange: &Exchange) -> io::Result<()> {
        self.stream.write_all(&exchange.request)?;
        let mut filled = 0;
        while filled < exchange.reply.len() {
            let read = self.stream.read(&mut self.buffer[filled..]).map_err(crate::wire::named)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            if !exchange.reply.starts_with(&self.buffer[..filled]) {
                let found = String::from_utf8_lossy(&self.buffer[..filled]).replace('\0', " ");
                let key = exchange.key_of(&exchange.request).unwrap_or_default();
                return Err(io::Error::other(format!("key {}: unexpected: {found}", String::from_utf8_lossy(&key))));
            }
        }
        Ok(())
    }
}

/// When all connections stop, unless the time is up before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// So that none is measured while others have ended.
    OneIsThrough,
    AllAreThrough,
}

/// Each connection goes through its stretch. How far each came.
pub(super) fn run(
    lines: &mut [Line],
    exchange: &Exchange,
    keys: Keys,
    stretches: &[Stretch],
    (until, limit): (Until, Duration),
) -> io::Result<(Measured, Vec<u64>)> {
    let (start, is_over) = (Barrier::new(lines.len()), AtomicBool::new(false));
    let results: Vec<io::Result<Measured>> = std::thread::scope(|scope| {
        let threads = lines.iter_mut().zip(stretches).map(|(line, stretch)| {
            let (start, is_over, exchange, stretch) = (&start, &is_over, exchange.clone(), stretch.clone());
            scope.spawn(move || {
                // Who has nothing to do is no reason for the others to stop.
                let has_work = !stretch.is_empty();
                let result = one_thread(line, exchange, keys, stretch, limit, start, is_over);
                if (has_work && until == Until::OneIsThrough) || result.is_err() {
                    is_over.store(true, Ordering::Relaxed);
                }
                result
            })
        });
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|result| result.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))).collect()
    });
    let mut total = Measured { queries: 0, elapsed: Duration::ZERO, latency: histogram(), client_time: Duration::ZERO };
    let mut counts = Vec::new();
    for result in results {
        let measured = result?;
        counts.push(measured.queries);
        total.queries += measured.queries;
        total.elapsed = total.elapsed.max(measured.elapsed);
        total.latency.add(&measured.latency).map_err(io::Error::other)?;
        total.client_time += measured.client_time;
    }
    Ok((total, counts))
}

fn one_thread(
    line: &mut Line,
    mut exchange: Exchange,
    keys: Keys,
    stretch: Stretch,
    limit: Duration,
    start: &Barrier,
    is_over: &AtomicBool,
) -> io::Result<Measured> {
    let (mut queries, mut latency) = (0, histogram());
    start.wait();
    let before = thread_time();
    let began = Instant::now();
    let mut now = began;
    for turn in stretch {
        if now - began >= limit || is_over.load(Ordering::Relaxed) {
            break;
        }
        exchange.set_key(&keys.at(line.position(turn, keys)));
        line.once(&exchange)?;
        let done = Instant::now();
        record(&mut latency, done - now);
        now = done;
        queries += 1;
    }
    let client_time = thread_time().saturating_sub(before);
    Ok(Measured { queries, elapsed: now - began, latency, client_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_all_keys_among_them() {
        let keys = Keys { count: 10 };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let stream = || TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let lines: Vec<Line> = (0..3).map(|first| Line::new(stream(), first, 3)).collect();
        let mut positions: Vec<u64> = Vec::new();
        for line in &lines {
            positions.extend((0..line.share(keys)).map(|turn| line.position(turn, keys)));
        }
        positions.sort_unstable();
        assert_eq!(positions, (0..10).collect::<Vec<_>>());
        assert_eq!(lines[0].position(4, keys), 0, "the fifth of four keys is the first again");
    }

    #[test]
    fn another_reply_than_expected_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut server, _) = listener.accept().expect("accepted");
        // Shorter than what is expected: waiting for the rest would never end.
        server.write_all(b"-ERR\r\n").expect("sent");
        let exchange = Exchange::new(b"GET 1234567".to_vec(), b"$13\r\nvalue_1234567\r\n".to_vec(), b"1234567");
        let error = Line::new(stream, 0, 1).once(&exchange).expect_err("an error");
        assert!(error.to_string().contains("-ERR"), "{error}");
    }
}
