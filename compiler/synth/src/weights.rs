use tpc_ir::random::SplitMix64;
use tpc_models::{ExpectedTensor, TensorRole};

/// A random generator with the same sequence on every machine.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    /// Returns the generator of a tensor.
    pub fn new(seed: u64, tensor: &str) -> Rng {
        // FNV-1a.
        let hash = tensor.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Rng(SplitMix64::new(
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ hash,
        ))
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns an approximately normal number of mean 0 and variance 1, from four uniform numbers. Exactly normal
    /// numbers need logarithms and cosines, which differ between machines.
    fn normal(&mut self) -> f64 {
        let bits = self.next_u64();
        let sum: u64 = (0..4).map(|i| bits >> (16 * i) & 0xFFFF).sum();
        // Four uniform numbers of 0 to 65535 have mean 4 · 65535 / 2 and variance 4 · (65536² − 1) / 12.
        let variance = (65_536.0 * 65_536.0 - 1.0) / 3.0;
        (sum as f64 - 131_070.0) / f64::sqrt(variance)
    }
}

/// Fills a row of a tensor.
///
/// Matrices and convolution taps have variance `1 / ne[0]`, so that products keep the input's variance. Norms and
/// scales are about 1, biases about 0, rotary factors from 1 to 2, decays about -1. Ids in a row are consecutive.
pub(super) fn fill(tensor: &ExpectedTensor, rng: &mut Rng, row: &mut [f32]) {
    let (mean, deviation) = match tensor.role {
        TensorRole::NormWeight | TensorRole::Scale => (1.0, 0.1),
        TensorRole::Decay => (-1.0, 0.1),
        TensorRole::Bias => (0.0, 0.1),
        TensorRole::Sinks => (0.0, 1.0),
        TensorRole::RopeFactors => {
            let unit = |bits: u64| (bits >> 40) as f32 / (1 << 24) as f32;
            row.iter_mut().for_each(|x| *x = 1.0 + unit(rng.next_u64()));
            return;
        }
        TensorRole::Ids { below } => {
            let first = rng.next_u64();
            let id = |i: u64| (first.wrapping_add(i) % u64::from(below.max(1))) as f32;
            (0..).zip(row).for_each(|(i, x)| *x = id(i));
            return;
        }
        TensorRole::Embedding
        | TensorRole::Output
        | TensorRole::Matrix
        | TensorRole::Taps
        | TensorRole::Experts
        | TensorRole::Router => (0.0, 1.0 / (tensor.ne[0].max(1) as f64).sqrt()),
    };
    row.iter_mut()
        .for_each(|x| *x = (mean + deviation * rng.normal()) as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut rng = Rng::new(1, "x");
        let n = 100_000;
        let x: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mean = x.iter().sum::<f64>() / f64::from(n);
        let variance = x.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        assert!(
            mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02,
            "{mean} {variance}"
        );
    }
}
