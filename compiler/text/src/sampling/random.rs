//! Random numbers that are stable across versions: PCG32, 64-bit XSH-RR (O'Neill 2014).

/// A generator with 2^63 streams; a sampler uses one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Random {
    state: u64,
    increment: u64,
}

impl Random {
    pub(super) fn new(seed: u64, stream: u64) -> Random {
        let mut out = Random {
            state: 0,
            increment: stream << 1 | 1,
        };
        out.next();
        out.state = out.state.wrapping_add(seed);
        out.next();
        out
    }

    pub(super) fn next(&mut self) -> u32 {
        let old = self.state;
        self.state = old
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(self.increment);
        let mixed = ((old >> 18 ^ old) >> 27) & u64::from(u32::MAX);
        let mixed = u32::try_from(mixed).unwrap_or(0);
        mixed.rotate_right(u32::try_from(old >> 59).unwrap_or(0))
    }

    /// Returns a number in [0, 1), in steps of 2^-53.
    pub(super) fn unit(&mut self) -> f64 {
        let bits = u64::from(self.next()) << 32 | u64::from(self.next());
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are from the reference implementation's demo (`pcg32-demo`, seed 42, stream 54).
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut random = Random::new(42, 54);
        let found: Vec<u32> = (0..6).map(|_| random.next()).collect();
        let expected = [
            0xa15c_02b7,
            0x7b47_f409,
            0xba1d_3330,
            0x83d2_f293,
            0xbfa4_784b,
            0xcbed_606e,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn units_fill_their_range() {
        let mut random = Random::new(1, 0);
        let sum: f64 = (0..10_000).map(|_| random.unit()).sum();
        assert!((4_900.0..5_100.0).contains(&sum), "{sum}");
    }
}
