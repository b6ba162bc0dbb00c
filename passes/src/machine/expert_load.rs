use std::cell::RefCell;
use std::collections::BTreeMap;

/// Draws devices independently, with probabilities proportional to `shares`. Returns the expected number of draws of
/// the most drawn device.
pub fn expected_max(draws: u64, shares: &[f64]) -> f64 {
    let total: f64 = shares.iter().sum();
    if draws == 0 || total <= 0.0 {
        return 0.0;
    }
    let mean = shares.iter().fold(0.0_f64, |a, &s| a.max(s)) / total * draws as f64;
    if draws > 64 {
        // Normal approximation of the maximum over n binomials.
        let n = shares.iter().filter(|&&s| s > 0.0).count() as f64;
        return (mean + (2.0 * mean * n.ln().max(0.0)).sqrt()).min(draws as f64);
    }
    // P(max ≤ m) = draws! · [xᵈ] Π_devices Σ_{i ≤ m} (p x)ⁱ / i!
    let k = draws as usize;
    let factorial: Vec<f64> = (0..=k)
        .scan(1.0, |f, i| {
            if i > 0 {
                *f *= i as f64;
            }
            Some(*f)
        })
        .collect();
    let series = |s: &f64| -> Vec<f64> {
        let p = s / total;
        (0..=k).map(|j| p.powi(j as i32) / factorial[j]).collect()
    };
    let series: Vec<Vec<f64>> = shares.iter().map(series).collect();
    let at_most = |m: usize| {
        let mut poly = vec![0.0; k + 1];
        poly[0] = 1.0;
        for terms in &series {
            let mut next = vec![0.0; k + 1];
            for (i, c) in poly.iter().enumerate() {
                let last = m.min(k - i);
                for (x, term) in next[i..=i + last].iter_mut().zip(terms) {
                    *x += c * term;
                }
            }
            poly = next;
        }
        poly[k] * factorial[k]
    };
    (0..k).map(|m| 1.0 - at_most(m)).sum()
}

/// A cache of [`expected_max`]: pricing needs the same values for every device and most assignments.
#[derive(Debug, Default)]
pub struct ExpertLoad(RefCell<BTreeMap<(u64, Vec<u64>), f64>>);

impl ExpertLoad {
    /// Returns the expected maximum per device of `draws` independent draws, for devices with `lens` items.
    pub fn expected_max_load(&self, draws: u64, lens: Vec<u64>) -> f64 {
        let mut known = self.0.borrow_mut();
        *known
            .entry((draws, lens))
            .or_insert_with_key(|(draws, lens)| {
                let shares: Vec<f64> = lens.iter().map(|&n| n as f64).collect();
                expected_max(*draws, &shares)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_max_of_small_cases() {
        assert!((expected_max(1, &[1.0; 4]) - 1.0).abs() < 1e-9);
        assert!((expected_max(2, &[1.0, 1.0]) - 1.5).abs() < 1e-9);
        assert!((expected_max(3, &[1.0]) - 3.0).abs() < 1e-9);
        let eight = expected_max(8, &[1.0; 8]);
        assert!(eight > 2.4 && eight < 2.8, "{eight}");
    }
}
