//! Reproducible pseudo-random numbers.

use std::cell::Cell;

/// A pseudo-random generator (xorshift64*, Vigna 2016).
pub struct Random(Cell<u64>);

impl Random {
    /// Creates a generator seeded with a name and a number.
    pub fn new(name: &str, seed: u64) -> Random {
        let start = name.bytes().fold(seed + 1, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let random = Random(Cell::new(start.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
        random.next();
        random.next();
        random
    }

    fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns an integer in `0..n`. `n` must not be 0.
    pub fn below(&self, n: usize) -> usize {
        ((self.next() >> 33) as usize) % n
    }

    /// Returns an integer from `low` to `high`, inclusive.
    pub fn within(&self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Returns true with probability `1/n`.
    pub fn one_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns an element of `from`.
    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns a number in [-1, 1), exact in f32.
    pub fn real(&self) -> f64 {
        (self.next() >> 40) as f64 / 8_388_608.0 - 1.0
    }

    /// Returns a permutation of `0..N`.
    pub fn order<const N: usize>(&self) -> [usize; N] {
        let mut out = std::array::from_fn(|i| i);
        for i in (1..N).rev() {
            out.swap(i, self.below(i + 1));
        }
        out
    }
}
