//! Fuzzing on the stable toolchain: inputs are mutated from the corpus in `tests/fuzz/corpus`, and one that made a target
//! behave in a new way (the number that it returns) is mutated further. A failing input is written to `tests/fuzz/found`.

pub mod targets;

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longer inputs show nothing that shorter ones do not.
const INPUT_BYTES_MAX: usize = 4096;
/// Inputs that are kept for their behaviour.
const POOL_MAX: usize = 4096;

/// Numbers where lengths and counts go wrong.
const NUMBERS: [i32; 16] =
    [-1, 0, 1, 3, 4, 5, 8, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x00ff_ffff, i32::MAX, i32::MIN];

/// A target: panics where something is wrong; else how it behaved.
pub type Target = fn(&[u8]) -> u64;

/// The folder of a target's inputs.
pub fn corpus(name: &str) -> PathBuf {
    crate::folder().join("fuzz/corpus").join(name)
}

/// Runs the corpus, then mutations of it, at most `FRESHET_FUZZ_INPUTS` (5,000) in `FRESHET_FUZZ_SECONDS` (20), from the seed in
/// `FRESHET_FUZZ_SEED` (1); panics with the input's file where the target does. How many inputs were run.
#[expect(clippy::print_stdout, reason = "the figures of a run, for whoever reads its log")]
pub fn run(name: &str, target: Target) -> u64 {
    let of_environment = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let limit = Duration::from_secs(of_environment("FRESHET_FUZZ_SECONDS").unwrap_or(20));
    let inputs_max = of_environment("FRESHET_FUZZ_INPUTS").unwrap_or(5_000);
    // The same path each time, unless another is asked for: a change is judged by what it changed.
    let seed = of_environment("FRESHET_FUZZ_SEED").unwrap_or(1);
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut files: Vec<PathBuf> = fs::read_dir(corpus(name)).expect("a corpus").flatten().map(|e| e.path()).collect();
    files.sort();
    let mut pool: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("readable")).collect();
    assert!(!pool.is_empty(), "{name} has no corpus");
    let mut seen: HashSet<u64> = pool.iter().map(|input| checked(name, target, input, seed)).collect();
    let mut count = pool.len() as u64;
    let started = Instant::now();
    while started.elapsed() < limit && count < inputs_max {
        let input = chance.mutated(&pool);
        let is_new = seen.insert(checked(name, target, &input, seed));
        if is_new && pool.len() < POOL_MAX {
            pool.push(input);
        }
        count += 1;
    }
    println!("{name}: {count} inputs in {:.0?}, {} kept, seed {seed}", started.elapsed(), pool.len());
    count
}

fn checked(name: &str, target: Target, input: &[u8], seed: u64) -> u64 {
    catch_unwind(AssertUnwindSafe(|| target(input))).unwrap_or_else(|_| {
        let folder = crate::folder().join("fuzz/found");
        let file = folder.join(format!("{name}-{:016x}", fold(input.iter().map(|byte| u64::from(*byte)))));
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input));
        panic!("{name}, seed {seed}: {} ({written:?}); once mended, it belongs into the corpus", file.display())
    })
}

/// One number out of many.
pub fn fold(items: impl Iterator<Item = u64>) -> u64 {
    items.fold(0xcbf2_9ce4_8422_2325, |folded, item| (folded ^ item).wrapping_mul(0x0100_0000_01b3))
}

/// A small generator (xorshift).
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// The same seed, the same sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// One of them.
    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// 0 to `bound` - 1.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % bound.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.below(256).to_le_bytes()[0]
    }

    /// Some bytes' place in an input.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(64) + 1)
    }

    fn mutated(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = pool[self.below(pool.len())].clone();
        for _ in 0..=self.below(5) {
            self.mutate(&mut input, pool);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let at = self.below(input.len());
        match self.below(9) {
            0 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            1 if !input.is_empty() => input[at] = self.byte(),
            2 => {
                let number = NUMBERS[self.below(NUMBERS.len())].to_be_bytes();
                let number = &number[if self.below(2) == 0 { 0 } else { 2 }..];
                let end = (at + number.len()).min(input.len());
                input[at..end].copy_from_slice(&number[..end - at]);
            }
            3 => input.truncate(at),
            4 => drop(input.drain(self.range(input.len()))),
            5 => {
                let copy = input[self.range(input.len())].to_vec();
                input.splice(at..at, copy);
            }
            6 => {
                let other = &pool[self.below(pool.len())];
                let piece = other[self.range(other.len())].to_vec();
                input.splice(at..at, piece);
            }
            7 => {
                // A head of one, a tail of another.
                let other = &pool[self.below(pool.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let byte = self.byte();
                input.insert(at, byte);
            }
        }
    }
}
