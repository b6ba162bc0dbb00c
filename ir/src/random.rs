//! Random numbers, the same in every run and on every machine.

/// The generator SplitMix64 (Steele, Lea and Flood 2014). Any seed works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Returns a generator with this seed.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`; 0 if `n` is 0.
    pub const fn below(&mut self, n: usize) -> usize {
        let n = if n == 0 { 1 } else { n as u64 };
        (self.next_u64() % n) as usize
    }

    /// Returns a number in [-1, 1) that f32 holds exactly.
    pub const fn signed(&mut self) -> f64 {
        (self.next_u64() >> 40) as f64 / 8_388_608.0 - 1.0
    }
}

/// The generator xorshift64 (Marsaglia 2003), for recorded data that depend on its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xorshift64(u64);

impl Xorshift64 {
    /// Returns a generator with this nonzero seed.
    pub const fn new(seed: u64) -> Xorshift64 {
        Xorshift64(seed)
    }

    /// Returns the next 64 bits; the high bits have the best quality.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut random = SplitMix64::new(1_234_567);
        let found: Vec<u64> = (0..5).map(|_| random.next_u64()).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_stay_in_their_ranges() {
        let mut random = SplitMix64::new(1);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert!((0..1000).all(|_| (-1.0..1.0).contains(&random.signed())));
        assert_eq!(random.below(0), 0);
        let mut other = Xorshift64::new(1);
        assert_eq!(
            [other.next_u64(), other.next_u64()],
            [0x4082_2041, 0x1000_4106_0c01_1441]
        );
    }
}
