//! What all statements that run at the same time use together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why a statement is given up that its own bounds would have let go on.
pub const POOL_IS_EMPTY: &str = "memory of all statements together";

/// A bound for all of them. What one uses is given back when it ends.
#[derive(Debug)]
pub struct MemoryPool {
    used: AtomicUsize,
    bytes_max: usize,
}

impl MemoryPool {
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), bytes_max })
    }

    /// What it has altogether.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// One statement's part of a pool.
#[derive(Debug)]
pub struct Share {
    pool: Arc<MemoryPool>,
    bytes: AtomicUsize,
}

impl Share {
    pub fn of(pool: &Arc<MemoryPool>) -> Self {
        Self { pool: Arc::clone(pool), bytes: AtomicUsize::new(0) }
    }

    /// Makes the part larger; false if the pool has not so much left.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.pool.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| *used <= self.pool.bytes_max)
        });
        if taken.is_ok() {
            *self.bytes.get_mut() += bytes;
        }
        taken.is_ok()
    }
}

impl Share {
    /// Gives back what it has beyond so many bytes.
    pub fn shrink(&self, bytes: usize) {
        let before = self.bytes.fetch_min(bytes, Ordering::Relaxed);
        self.pool.used.fetch_sub(before.saturating_sub(bytes), Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_divided_and_what_was_taken_comes_back() {
        let pool = MemoryPool::new(100);
        let (mut one, mut other) = (Share::of(&pool), Share::of(&pool));
        assert!(one.grow(60) && other.grow(30) && !other.grow(11) && !one.grow(usize::MAX));
        drop(one);
        assert!(other.grow(70) && !other.grow(1));
        assert_eq!(pool.used(), 100);
        other.shrink(30);
        other.shrink(40);
        assert_eq!(pool.used(), 30);
        drop(other);
        assert_eq!(pool.used(), 0);
    }
}
