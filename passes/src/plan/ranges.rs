use tpc_ir::Interval;

/// Cuts `size` indices into ranges in proportion to the device weights, at multiples of `granule`.
pub fn proportional(size: u64, granule: u64, device_weights: &[f64]) -> Vec<Interval> {
    let units = size.div_ceil(granule);
    let total: f64 = device_weights.iter().sum();
    let mut sum = 0.0;
    let mut start = 0;
    let mut out = Vec::with_capacity(device_weights.len());
    for (i, &s) in device_weights.iter().enumerate() {
        sum += s;
        let rest_is_empty = device_weights[i + 1..].iter().all(|&s| s <= 0.0);
        let unit = if rest_is_empty {
            units
        } else {
            ((units as f64 * sum / total) + 1e-9).floor() as u64
        };
        let end = if s <= 0.0 {
            start
        } else {
            unit.saturating_mul(granule).min(size).max(start)
        };
        out.push(Interval::from_bounds(start, end));
        start = end;
    }
    out
}

/// Valid range ends in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainCuts {
    /// Each range is inside one major index or covers whole major indices, so a device's groups have equal sizes.
    Uniform,
    /// Ranges may end anywhere; a device may then need one op per group size.
    Free,
}

/// Cuts a chain `major · minor` into flat ranges in proportion to the device weights, at multiples of `granule`.
/// Minimises the heaviest load, then the number of shared major indices. Returns `None` if no cuts exist.
pub fn chain(
    major: u64,
    minor: u64,
    granule: u64,
    cuts_at: ChainCuts,
    device_weights: &[f64],
) -> Option<Vec<Interval>> {
    let size = major.checked_mul(minor)?;
    let cuts: Vec<u64> = (0..=size)
        .filter(|c| c % granule == 0 || *c == size)
        .collect();
    let legal = |a: u64, b: u64| {
        a == b
            || cuts_at == ChainCuts::Free
            || (a.is_multiple_of(minor) && b.is_multiple_of(minor))
            || a / minor == (b - 1) / minor
    };
    let majors = |a: u64, b: u64| {
        if a == b {
            0
        } else {
            b.div_ceil(minor) - a / minor
        }
    };
    // Few cuts match the weights exactly, so limits on the load are tried in ascending order.
    let ideal = size as f64;
    [1.25 * ideal, 4.0 * ideal, f64::INFINITY]
        .into_iter()
        .find_map(|limit| cut_chain_within(&cuts, device_weights, limit, &legal, &majors))
}

/// Returns the cuts that minimise the heaviest load, which is at most `limit`. A load is a range's length divided by
/// the device's share of the weights.
fn cut_chain_within(
    cuts: &[u64],
    device_weights: &[f64],
    limit: f64,
    legal: &impl Fn(u64, u64) -> bool,
    majors: &impl Fn(u64, u64) -> u64,
) -> Option<Vec<Interval>> {
    let total: f64 = device_weights.iter().sum();
    // best[c] = (heaviest load, number of major indices held) for the best cuts of the first devices, ending at
    // cuts[c].
    let mut best: Vec<Option<(f64, u64)>> = vec![None; cuts.len()];
    best[0] = Some((0.0, 0));
    let mut back: Vec<Vec<usize>> = Vec::new();
    for &share in device_weights {
        let mut next: Vec<Option<(f64, u64)>> = vec![None; cuts.len()];
        let mut from = vec![0; cuts.len()];
        for (i, state) in best.iter().enumerate() {
            let Some((load, held)) = *state else { continue };
            for (j, &end) in cuts.iter().enumerate().skip(i) {
                let start = cuts[i];
                let own = if end == start {
                    0.0
                } else {
                    (end - start) as f64 * total / share
                };
                if own > limit || (share <= 0.0 && end > start) {
                    break;
                }
                if !legal(start, end) {
                    continue;
                }
                let candidate = (load.max(own), held + majors(start, end));
                if next[j].is_none_or(|n| {
                    candidate.0 < n.0 - 1e-9 || (candidate.0 < n.0 + 1e-9 && candidate.1 < n.1)
                }) {
                    next[j] = Some(candidate);
                    from[j] = i;
                }
            }
        }
        best = next;
        back.push(from);
    }
    best.last().copied().flatten()?;
    let mut at = cuts.len() - 1;
    let mut out = Vec::with_capacity(device_weights.len());
    for from in back.iter().rev() {
        out.push(Interval::from_bounds(cuts[from[at]], cuts[at]));
        at = from[at];
    }
    out.reverse();
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(r: &[Interval]) -> Vec<u64> {
        r.iter().map(|r| r.len).collect()
    }

    #[test]
    fn proportional_honours_shares_granules_and_zeros() {
        assert_eq!(lens(&proportional(8, 1, &[1.0; 3])), [2, 3, 3]);
        assert_eq!(lens(&proportional(1024, 256, &[3.0, 1.0])), [768, 256]);
        assert_eq!(lens(&proportional(10, 4, &[1.0, 0.0, 2.0])), [4, 0, 6]);
        assert_eq!(lens(&proportional(3, 1, &[1.0; 8])).iter().sum::<u64>(), 3);
        assert_eq!(lens(&proportional(7, 1, &[1.0, 0.0])), [7, 0]);
    }

    #[test]
    fn chains_stay_inside_or_cover_major_indices() {
        assert_eq!(
            lens(&chain(2, 4, 1, ChainCuts::Uniform, &[1.0; 8]).expect("fits")),
            [1; 8]
        );
        assert_eq!(
            lens(&chain(2, 4, 1, ChainCuts::Uniform, &[1.0; 4]).expect("fits")),
            [2; 4]
        );
        let three = chain(2, 6, 1, ChainCuts::Uniform, &[1.0; 3]).expect("fits");
        assert_eq!(lens(&three).iter().sum::<u64>(), 12);
        assert!(three.iter().all(|r| r.start / 6 == (r.end() - 1) / 6 || (r.start % 6 == 0 && r.end() % 6 == 0)));
        assert_eq!(
            lens(&chain(8, 4, 1, ChainCuts::Uniform, &[1.0; 2]).expect("fits")),
            [16, 16]
        );
    }
}
