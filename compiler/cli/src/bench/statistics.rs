/// Returns the median; NaN for an empty slice.
pub(super) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

pub(super) fn spread(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = sample.iter().map(|s| (s - mean).powi(2)).sum();
    match sample.len() {
        0 | 1 => (mean, 0.0),
        _ => (mean, (squares / (n - 1.0)).sqrt()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_even_and_odd_samples() {
        assert_eq!((median(&[1.0, 2.0, 3.0]), median(&[4.0, 1.0])), (2.0, 2.5));
        assert!(median(&[]).is_nan());
    }
}
