//! Random numbers by a seed: the same seed, the same statements on every machine.

/// Marsaglia's xorshift, good enough to choose by.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring numbers.
        Self((seed ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 0 to `sides` - 1.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % sides.max(1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, share: usize) -> bool {
        self.roll(100) < share
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    /// Small numbers more often than large ones.
    pub fn skewed(&mut self, sides: usize) -> usize {
        let first = self.roll(sides);
        first.min(self.roll(sides))
    }
}
