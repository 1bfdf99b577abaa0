//! The cheapest relay: an epoll loop that copies bytes between each client and its upstream and does nothing else.
//!
//! One thread, level-triggered, one buffer for all: what a proxy costs before it looks at a single byte. A side that
//! cannot take more stops the other from being read.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

const READ_BYTES: usize = 64 * 1024;
/// The listener's mark among the events; others are `2 * connection + side`.
const LISTENER: u64 = u64::MAX;

/// Where bytes go: `host:port`, or a socket's path.
pub(crate) fn serve(listener: &TcpListener, upstream: &str) -> io::Result<()> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut pairs: Vec<Option<[Side; 2]>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        events.clear();
        match epoll::wait(&poll, spare_capacity(&mut events), None) {
            Err(rustix::io::Errno::INTR) => continue,
            waited => waited?,
        };
        for event in &events {
            match event.data.u64() {
                LISTENER => accept(&poll, listener, upstream, &mut pairs)?,
                mark => {
                    let (at, side) = ((mark / 2) as usize, (mark % 2) as usize);
                    let Some(pair) = pairs.get_mut(at).and_then(Option::as_mut) else { continue };
                    let flags = event.flags;
                    if move_bytes(&poll, pair, at, side, flags, &mut buffer).is_err() {
                        pairs[at] = None;
                    }
                }
            }
        }
    }
}

/// One socket of a pair and what it could not take yet.
struct Side {
    line: Line,
    queue: Vec<u8>,
    interest: EventFlags,
}

enum Line {
    Tcp(TcpStream),
    Unix(UnixStream),
}

fn accept(
    poll: &OwnedFd,
    listener: &TcpListener,
    upstream: &str,
    pairs: &mut Vec<Option<[Side; 2]>>,
) -> io::Result<()> {
    let (client, _) = listener.accept()?;
    let opened = if upstream.starts_with('/') {
        UnixStream::connect(upstream).map(Line::Unix)
    } else {
        TcpStream::connect(upstream).map(Line::Tcp)
    };
    // The client sees the end of its connection.
    let Ok(upstream) = opened else { return Ok(()) };
    let lines = [Line::Tcp(client), upstream];
    let at = pairs.iter().position(Option::is_none).unwrap_or(pairs.len());
    for (side, line) in lines.iter().enumerate() {
        line.set_up()?;
        epoll::add(poll, line.fd(), EventData::new_u64((2 * at + side) as u64), EventFlags::IN)?;
    }
    let pair = Some(lines.map(|line| Side { line, queue: Vec::new(), interest: EventFlags::IN }));
    match pairs.get_mut(at) {
        Some(place) => *place = pair,
        None => pairs.push(pair),
    }
    Ok(())
}

/// What an event on `side` calls for; an error ends both.
fn move_bytes(
    poll: &OwnedFd,
    pair: &mut [Side; 2],
    at: usize,
    side: usize,
    flags: EventFlags,
    buffer: &mut [u8],
) -> io::Result<()> {
    let other = 1 - side;
    if flags.contains(EventFlags::OUT) {
        let Side { line, queue, .. } = &mut pair[side];
        let written = line.write(queue)?;
        queue.drain(..written);
        if queue.is_empty() {
            set_interest(poll, pair, at, side, EventFlags::OUT, false)?;
            set_interest(poll, pair, at, other, EventFlags::IN, true)?;
        }
    }
    if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) && pair[other].queue.is_empty() {
        let read = match pair[side].line.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            // The event was for a pair that had this place before.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        let written = pair[other].line.write(&buffer[..read])?;
        if written < read {
            pair[other].queue.extend_from_slice(&buffer[written..read]);
            set_interest(poll, pair, at, side, EventFlags::IN, false)?;
            set_interest(poll, pair, at, other, EventFlags::OUT, true)?;
        }
    }
    Ok(())
}

fn set_interest(
    poll: &OwnedFd,
    pair: &mut [Side; 2],
    at: usize,
    side: usize,
    flag: EventFlags,
    wanted: bool,
) -> io::Result<()> {
    pair[side].interest.set(flag, wanted);
    let (data, interest) = (EventData::new_u64((2 * at + side) as u64), pair[side].interest);
    Ok(epoll::modify(poll, pair[side].line.fd(), data, interest)?)
}

impl Line {
    fn set_up(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)
            }
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }

    /// How much of it the socket took at once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }
}
