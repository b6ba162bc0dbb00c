//! The parts of an axis on llama.cpp's devices. Proportions are rounded down to whole units, device by device; the last
//! device gets the remainder. In each further layer of the same kind, the rounding begins with the next device.

use super::geometry::{Attention, LinearAttention};

/// The granule of the tensor split, in elements.
const SPLIT_STEP: u64 = 128;

/// The devices of a tensor split.
#[derive(Clone, Copy, Debug)]
pub struct Devices<'a> {
    /// The number of devices.
    pub count: usize,
    /// The proportions (`-ts`); empty if equal.
    pub proportions: &'a [f64],
}

impl Devices<'_> {
    /// Returns devices with these proportions. Equal proportions are stored as an empty slice.
    pub fn with_proportions(proportions: &[f64]) -> Devices<'_> {
        let equal = proportions.windows(2).all(|w| w[0] == w[1]);
        Devices {
            count: proportions.len(),
            proportions: if equal { &[] } else { proportions },
        }
    }

    /// Returns the parts of `len`, in multiples of `granule`. The rounding begins at device `rotation`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the engine multiplies in single precision and truncates"
    )]
    pub fn parts(&self, len: u64, granule: u64, rotation: usize) -> Vec<u64> {
        let n = self.count.max(1);
        let mut scan: Vec<f32> = Vec::with_capacity(n);
        for turn in 0..n {
            let given = self.proportions.get((turn + rotation) % n);
            let before = scan.last().copied().unwrap_or(0.0);
            scan.push(before + given.copied().unwrap_or(0.0) as f32);
        }
        let total = scan.last().copied().unwrap_or(0.0);
        let granule = granule.max(1);
        let (mut parts, mut low) = (vec![0; n], 0);
        for turn in 0..n {
            let high = match turn + 1 == n {
                true => len,
                false if total > 0.0 => ((len as f32 * scan[turn] / total) as u64).min(len),
                false => len * (turn as u64 + 1) / n as u64,
            };
            let high = match turn + 1 == n {
                true => high,
                false => (high / granule * granule).max(low),
            };
            parts[(turn + rotation) % n] = high - low;
            low = high;
        }
        parts
    }

    /// Returns the number of query rows that stay together: the `group` query elements of a key head, times `rows`
    /// per element, in whole blocks. Blocks are joined up to `step` elements if every device gets a part.
    pub fn query_granule(&self, group: u64, rows: u64, block: u64, step: u64) -> u64 {
        let mut unit = block.max(1);
        while unit < step && unit.saturating_mul(self.count as u64) < group {
            unit *= 2;
        }
        lcm(rows.saturating_mul(group), unit)
    }

    /// Returns a layer's query heads on each device.
    pub fn heads(&self, layer: &Attention, rotation: usize) -> Vec<u64> {
        let group = layer.heads / layer.kv_heads.max(1) * layer.key;
        let twice = if layer.gated { 2 } else { 1 };
        let granule = self.query_granule(group, twice, layer.block, SPLIT_STEP);
        let columns = self.parts(twice * layer.heads * layer.key, granule, rotation);
        let head = (twice * layer.key).max(1);
        columns.into_iter().map(|c| c / head).collect()
    }

    /// Returns a layer's key groups and value heads on each device; the two are rounded independently.
    pub fn linear(&self, layer: &LinearAttention, rotation: usize) -> [Vec<u64>; 2] {
        let granule = state_granule(layer.block, layer.size, SPLIT_STEP);
        let of = |heads: u64| {
            let columns = self.parts(heads * layer.size, granule, rotation);
            let heads = columns.into_iter().map(|c| c / layer.size.max(1));
            heads.collect()
        };
        [of(layer.groups), of(layer.values)]
    }
}

/// Returns the number of recurrence elements that stay together: whole heads and blocks, in multiples of `step`.
pub(super) fn state_granule(block: u64, head: u64, step: u64) -> u64 {
    lcm(lcm(block.max(1), step), head.max(1))
}

/// Returns the least common multiple, or 0 if either number is 0.
pub fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    match x {
        0 => 0,
        gcd => (a / gcd).saturating_mul(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_rounded_down_and_the_last_has_the_rest() {
        let equal = |count| Devices {
            count,
            proportions: &[],
        };
        assert_eq!(equal(3).parts(8, 1, 0), [2, 3, 3]);
        assert_eq!(equal(3).parts(8, 4, 0), [0, 4, 4]);
        assert_eq!(equal(3).parts(8, 4, 1), [4, 0, 4]);
        assert_eq!(equal(2).parts(8, 8, 0), [0, 8]);
        let uneven = Devices {
            count: 2,
            proportions: &[3.0, 1.0],
        };
        assert_eq!(uneven.parts(16, 2, 0), [12, 4]);
        assert_eq!(uneven.parts(16, 2, 1), [12, 4]);
        assert_eq!((lcm(4, 6), lcm(0, 3), lcm(128, 128)), (12, 0, 128));
    }
}
