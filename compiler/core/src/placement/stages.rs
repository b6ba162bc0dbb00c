//! Pipelines: which layers each device or group of devices runs.

/// A layer, the prologue or the epilogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Bytes of weights and states.
    pub bytes: u64,
}

/// Divides consecutive units among stages so that the fullest stage, by its weight, is as empty as possible. Returns the
/// stage of each unit, ascending. A stage of weight 0 gets nothing.
pub fn by_layers(units: &[Unit], shares: &[f64]) -> Vec<usize> {
    let n = units.len();
    let mut sums = vec![0.0; n + 1];
    for (i, u) in units.iter().enumerate() {
        sums[i + 1] = sums[i] + u.bytes as f64;
    }
    let load = |stage: usize, from: usize, to: usize| match (to - from, shares[stage] > 0.0) {
        (0, _) => 0.0,
        (_, false) => f64::INFINITY,
        _ => (sums[to] - sums[from]) / shares[stage],
    };
    // best[s][i]: the fullest of the first s stages when they hold the first i units; and where the last one starts.
    let mut best = vec![vec![(f64::INFINITY, 0_usize); n + 1]; shares.len() + 1];
    best[0][0] = (0.0, 0);
    for stage in 0..shares.len() {
        for to in 0..=n {
            for from in 0..=to {
                let fullest = best[stage][from].0.max(load(stage, from, to));
                if fullest < best[stage + 1][to].0 {
                    best[stage + 1][to] = (fullest, from);
                }
            }
        }
    }
    let mut out = vec![0; n];
    let mut to = n;
    for stage in (0..shares.len()).rev() {
        let from = best[stage + 1][to].1;
        out[from..to].fill(stage);
        to = from;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(bytes: &[u64], shares: &[f64]) -> Vec<usize> {
        let units: Vec<Unit> = bytes.iter().map(|&bytes| Unit { bytes }).collect();
        by_layers(&units, shares)
    }

    #[test]
    fn layers_follow_shares() {
        assert_eq!(shared(&[1, 1, 1, 1], &[1.0, 1.0]), [0, 0, 1, 1]);
        assert_eq!(shared(&[1, 1, 1, 1], &[3.0, 1.0]), [0, 0, 0, 1]);
        assert_eq!(shared(&[4, 1, 1, 1, 1], &[1.0, 1.0]), [0, 1, 1, 1, 1]);
        assert_eq!(shared(&[1, 1], &[0.0, 1.0, 0.0]), [1, 1]);
        assert_eq!(shared(&[], &[1.0]), [0; 0]);
        assert_eq!(shared(&[1], &[1.0, 1.0, 1.0]).len(), 1);
    }
}
