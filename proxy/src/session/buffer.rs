//! Bytes on their way out: small pieces are copied together, large shared ones are kept as they are.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Below this size a copy is cheaper than another element in the write.
const SHARE_FROM: usize = 16 * 1024;
/// Written bytes at the head of a queue that is never quite empty are given up in portions of at least this.
const RECLAIM_FROM: usize = 32 * 1024;
/// An emptied buffer keeps at most this much, so that idle sessions stay small.
const KEEP_CAPACITY: usize = 4 * 1024;
/// Larger ones that a thread keeps for all its sessions, and of what size: a stream that goes by in portions would else cost an
/// allocation for each, spread over all that the allocator has of that size.
const SPARES_MAX: usize = 4;
const SPARE_BYTES_MAX: usize = 512 * 1024;

thread_local! {
    static SPARES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A spare with room for so many bytes.
fn take_spare(bytes: usize) -> Option<Vec<u8>> {
    SPARES.with_borrow_mut(|spares| {
        let found = spares.iter().position(|spare| spare.capacity() >= bytes)?;
        Some(spares.swap_remove(found))
    })
}

fn give_spare(mut spare: Vec<u8>) {
    spare.clear();
    if spare.capacity() <= SPARE_BYTES_MAX {
        SPARES.with_borrow_mut(|spares| {
            if spares.len() < SPARES_MAX {
                spares.push(spare);
            }
        });
    }
}

/// A queue of bytes for one socket.
#[derive(Debug, Default)]
pub struct OutBuffer {
    shared: VecDeque<Bytes>,
    tail: Vec<u8>,
    /// Bytes of `tail` that are written already; zero while `shared` is not empty.
    written: usize,
    length: usize,
}

impl OutBuffer {
    pub fn push(&mut self, bytes: &[u8]) {
        self.reclaim();
        self.make_room(bytes.len());
        self.tail.extend_from_slice(bytes);
        self.length += bytes.len();
    }

    pub fn push_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARE_FROM {
            return self.push(bytes);
        }
        if self.tail.len() > self.written {
            let mut tail = Bytes::from(std::mem::take(&mut self.tail));
            tail.advance(self.written);
            self.shared.push_back(tail);
        }
        self.tail.clear();
        self.written = 0;
        self.length += bytes.len();
        self.shared.push_back(bytes.clone());
    }

    /// Appends what `write` appends.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.tail.len();
        write(&mut self.tail);
        self.length += self.tail.len() - before;
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// What to write next, in order; returns how many of `slices` are filled.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let tail = self.tail.get(self.written..).filter(|tail| !tail.is_empty());
        let pieces = self.shared.iter().map(|piece| &**piece).chain(tail);
        let mut filled = 0;
        for (slot, piece) in slices.iter_mut().zip(pieces) {
            *slot = IoSlice::new(piece);
            filled += 1;
        }
        filled
    }

    /// `count` bytes are written.
    pub fn consume(&mut self, mut count: usize) {
        self.length -= count;
        while let Some(front) = self.shared.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.shared.pop_front();
        }
        self.written += count;
        if self.written == self.tail.len() {
            match self.tail.capacity() {
                ..=KEEP_CAPACITY => self.tail.clear(),
                _ => give_spare(std::mem::take(&mut self.tail)),
            }
            self.written = 0;
        }
    }

    fn make_room(&mut self, bytes: usize) {
        let wanted = self.tail.len() + bytes;
        if wanted > KEEP_CAPACITY.max(self.tail.capacity())
            && let Some(mut spare) = take_spare(wanted)
        {
            spare.extend_from_slice(&self.tail);
            let before = std::mem::replace(&mut self.tail, spare);
            if before.capacity() > KEEP_CAPACITY {
                give_spare(before);
            }
        }
    }

    /// A reader that is always a little behind must not make the buffer grow by all that it has read. What is moved is no
    /// more than what was written since the last time.
    fn reclaim(&mut self) {
        if self.written >= RECLAIM_FROM && self.written >= self.tail.len() / 2 {
            self.tail.drain(..self.written);
            self.written = 0;
        }
    }

    /// Everything at once, for tests and for the end of a session.
    pub fn take(&mut self) -> Vec<u8> {
        let mut all: Vec<u8> = self.shared.drain(..).flatten().collect();
        all.extend_from_slice(&self.tail[self.written..]);
        *self = Self::default();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_leave_in_order_and_in_any_portions() {
        let large = Bytes::from(vec![7u8; SHARE_FROM + 3]);
        let mut expected = b"ab".to_vec();
        expected.extend_from_slice(&large);
        expected.extend_from_slice(b"cd");
        for portion in [1, 2, 3, 1000, SHARE_FROM + 4, expected.len()] {
            let mut buffer = OutBuffer::default();
            buffer.push(b"ab");
            buffer.push_shared(&large);
            buffer.push(b"c");
            buffer.write(|out| out.push(b'd'));
            let mut seen = Vec::new();
            while !buffer.is_empty() {
                let mut slices = [IoSlice::new(&[]); 4];
                let filled = buffer.slices(&mut slices);
                let all: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                assert_eq!(all.len(), buffer.len());
                let count = portion.min(all.len());
                seen.extend_from_slice(&all[..count]);
                buffer.consume(count);
            }
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn large_buffers_are_kept_for_others() {
        let piece = vec![1; 64 * 1024];
        for _ in 0..100 {
            let mut buffer = OutBuffer::default();
            buffer.push(b"a");
            buffer.push(&piece);
            let (place, spares) = (buffer.tail.as_ptr(), SPARES.with_borrow(Vec::len));
            buffer.consume(buffer.len());
            assert!(buffer.is_empty() && buffer.tail.capacity() <= KEEP_CAPACITY);
            SPARES.with_borrow(|kept| {
                assert_eq!(kept.len(), spares + 1);
                assert_eq!(kept.last().map(Vec::as_ptr), Some(place));
            });
        }
        assert_eq!(SPARES.with_borrow(Vec::len), 1);
    }

    #[test]
    fn a_queue_that_is_never_empty_stays_small() {
        let mut buffer = OutBuffer::default();
        let piece = vec![1; 8 * 1024];
        buffer.push(&piece);
        for _ in 0..10_000 {
            buffer.push(&piece);
            buffer.consume(piece.len());
            assert_eq!(buffer.len(), piece.len());
        }
        assert!(buffer.tail.capacity() < 4 * RECLAIM_FROM, "{}", buffer.tail.capacity());
    }
}
