//! Numbers that look random and are the same every time.

use std::cell::Cell;
use tpc_ir::random::SplitMix64;

/// A generator of the choices of a case.
pub struct Random(Cell<SplitMix64>);

impl Random {
    /// The generator of a name and a number.
    pub fn new(name: &str, seed: u64) -> Random {
        let start = name.bytes().fold(seed + 1, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        Random(Cell::new(SplitMix64::new(start)))
    }

    fn next(&self) -> u64 {
        let mut random = self.0.get();
        let next = random.next_u64();
        self.0.set(random);
        next
    }

    /// A number below `n`, which is above 0.
    pub fn below(&self, n: usize) -> usize {
        ((self.next() >> 33) as usize) % n
    }

    /// A number from `low` to `high`.
    pub fn within(&self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Whether one of `n` chances falls.
    pub fn one_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A number in [-1, 1) that f32 holds.
    pub fn real(&self) -> f64 {
        (self.next() >> 40) as f64 / 8_388_608.0 - 1.0
    }

    /// An order of `0..N`.
    pub fn order<const N: usize>(&self) -> [usize; N] {
        let mut out = std::array::from_fn(|i| i);
        for i in (1..N).rev() {
            out.swap(i, self.below(i + 1));
        }
        out
    }
}
