/// A layer, the prologue or the epilogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Bytes of weights and states.
    pub bytes: u64,
}

/// Divides units in order among stages by number, as llama.cpp's `-ts`. Returns each unit's stage, ascending.
///
/// A layer belongs to the stage whose interval of the cumulative shares contains the layer's position. The output
/// counts as a layer; the prologue goes with the first layer. Leading units without bytes are on the host and not
/// counted. Stages with weight 0 stay empty.
pub fn by_layers(units: &[Unit], shares: &[f64]) -> Vec<usize> {
    let first = units.iter().position(|u| u.bytes > 0).unwrap_or(0).max(1);
    let counted = units.len().saturating_sub(first).max(1) as f32;
    // llama.cpp uses `f32`, which decides the stage of a layer at a border.
    let mut sum = 0.0_f32;
    let mut ends: Vec<f32> = shares
        .iter()
        .map(|&share| {
            sum += share as f32;
            sum
        })
        .collect();
    ends.iter_mut().for_each(|end| *end /= sum);
    let last = shares.iter().rposition(|&s| s > 0.0).unwrap_or(0);
    (0..units.len())
        .map(|i| {
            let position = i.saturating_sub(first) as f32 / counted;
            ends.iter().position(|&end| end > position).unwrap_or(last)
        })
        .collect()
}

/// Divides units in order among stages. The first unit is the prologue. Minimises the bytes per weight of the fullest
/// stage, then the sum over stages of the squared bytes per weight, so that stages have similar work. The prologue reads
/// only rows of its table, so it is no work. Returns each unit's stage, ascending. Stages with weight 0 stay empty.
pub fn by_bytes(units: &[Unit], shares: &[f64]) -> Vec<usize> {
    let n = units.len();
    let mut sums = vec![0.0; n + 1];
    for (i, u) in units.iter().enumerate() {
        sums[i + 1] = sums[i] + u.bytes as f64;
    }
    let load_of = |stage: usize, from: usize, to: usize| (sums[to] - sums[from]) / shares[stage];
    let load = |stage: usize, from: usize, to: usize| match (to - from, shares[stage] > 0.0) {
        (0, _) => 0.0,
        (_, false) => f64::INFINITY,
        _ => load_of(stage, from, to),
    };
    let (fullest, _) = cheapest(n, shares.len(), f64::max, load);
    // Sums of floats in another order may differ by rounding.
    let limit = fullest * (1.0 + 1e-9);
    let square = |stage: usize, from: usize, to: usize| match load(stage, from, to) {
        load if load > limit => f64::INFINITY,
        _ if to <= from.max(1) => 0.0,
        _ => load_of(stage, from.max(1), to).powi(2) * shares[stage],
    };
    let (_, starts) = cheapest(n, shares.len(), |a, b| a + b, square);
    let mut out = vec![0; n];
    for (stage, &start) in starts.iter().enumerate() {
        out[start..].fill(stage);
    }
    out
}

/// Returns the least cost of a division of `n` units among stages, and each stage's first unit. `cost` returns the cost
/// of the units from `from` to `to` in a stage, which grows with more units; `joined` combines costs of stages.
fn cheapest(
    n: usize,
    stages: usize,
    joined: impl Fn(f64, f64) -> f64,
    cost: impl Fn(usize, usize, usize) -> f64,
) -> (f64, Vec<usize>) {
    // best[s][i]: the least cost of the first i units in the first s stages, and the first unit of the last stage.
    let mut best = vec![vec![(f64::INFINITY, 0_usize); n + 1]; stages + 1];
    best[0][0] = (0.0, 0);
    for stage in 0..stages {
        for to in 0..=n {
            for from in (0..=to).rev() {
                let own = cost(stage, from, to);
                // More units cost at least as much.
                if own > best[stage + 1][to].0 || own.is_infinite() {
                    break;
                }
                let all = joined(best[stage][from].0, own);
                if all <= best[stage + 1][to].0 {
                    best[stage + 1][to] = (all, from);
                }
            }
        }
    }
    let mut starts = vec![0; stages];
    let mut to = n;
    for stage in (0..stages).rev() {
        to = best[stage + 1][to].1;
        starts[stage] = to;
    }
    (best[stages][n].0, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(bytes: &[u64]) -> Vec<Unit> {
        bytes.iter().map(|&bytes| Unit { bytes }).collect()
    }

    #[test]
    fn bytes_follow_shares() {
        let shared = |bytes: &[u64], shares: &[f64]| by_bytes(&units(bytes), shares);
        assert_eq!(shared(&[1, 1, 1, 1], &[1.0, 1.0]), [0, 0, 1, 1]);
        assert_eq!(shared(&[1, 1, 1, 1], &[3.0, 1.0]), [0, 0, 0, 1]);
        assert_eq!(shared(&[4, 1, 1, 1, 1], &[1.0, 1.0]), [0, 1, 1, 1, 1]);
        assert_eq!(shared(&[1, 1], &[0.0, 1.0, 0.0]), [1, 1]);
        // The output is larger than the rest: the other stages share the layers.
        assert_eq!(
            shared(&[1, 1, 1, 1, 1, 1, 1, 9], &[1.0; 4]),
            [0, 0, 0, 1, 1, 2, 2, 3]
        );
        // A table as large as the output fills its stage.
        assert_eq!(
            shared(&[9, 1, 1, 1, 1, 1, 1, 9], &[1.0; 4]),
            [0, 1, 1, 1, 2, 2, 2, 3]
        );
        assert_eq!(
            shared(&[9, 1, 1, 1, 1, 1, 3, 9], &[1.0; 3]),
            [0, 1, 1, 1, 1, 1, 1, 2]
        );
        assert_eq!(shared(&[0, 0, 1, 1], &[1.0, 1.0]), [0, 0, 0, 1]);
        assert_eq!(shared(&[], &[1.0]), [0; 0]);
        assert_eq!(shared(&[1], &[1.0, 1.0, 1.0]).len(), 1);
    }

    #[test]
    fn layers_follow_shares_whatever_they_weigh() {
        let stages = |bytes: &[u64], shares: &[f64]| by_layers(&units(bytes), shares);
        // The embedding, three layers and the output: two of four positions per device.
        assert_eq!(stages(&[9, 1, 1, 1, 1], &[1.0, 1.0]), [0, 0, 0, 1, 1]);
        assert_eq!(stages(&[1, 90, 1, 1, 1], &[1.0, 1.0]), [0, 0, 0, 1, 1]);
        assert_eq!(stages(&[1, 1, 1, 1, 1], &[3.0, 1.0]), [0, 0, 0, 0, 1]);
        // With two layers on the host, three positions remain.
        assert_eq!(
            stages(&[0, 0, 0, 1, 1, 1], &[2.0, 1.0])[3..],
            [0, 0, 1],
            "host layers are not counted"
        );
        assert_eq!(stages(&[1, 1, 1], &[0.0, 1.0, 0.0]), [1, 1, 1]);
        // 37 positions in parts of 25 and 12, with an exact border.
        let many = stages(&[1; 38], &[25.0, 12.0]);
        assert_eq!(many.iter().filter(|&&s| s == 0).count(), 1 + 25);
        assert_eq!(stages(&[], &[1.0]), [0; 0]);
        assert_eq!(stages(&[0, 0], &[1.0, 1.0]).len(), 2);
    }
}
