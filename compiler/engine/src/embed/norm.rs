/// The normalisation of an embedding, with llama.cpp's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalisation {
    /// No change (−1).
    None,
    /// The largest absolute value becomes 32760 (0).
    MaxAbsolute,
    /// The p-norm becomes 1: 1 taxicab, 2 Euclidean.
    Norm(u32),
}

/// The largest absolute value of [`Normalisation::MaxAbsolute`].
const LARGEST: f64 = 32_760.0;

impl Normalisation {
    /// Returns the normalisation of a number from −1 on.
    pub const fn of_number(n: i32) -> Option<Normalisation> {
        match n {
            -1 => Some(Normalisation::None),
            0 => Some(Normalisation::MaxAbsolute),
            p if p > 0 => Some(Normalisation::Norm(p.unsigned_abs())),
            _ => None,
        }
    }

    /// Normalises a vector. A vector of zeros stays as it is.
    pub(super) fn apply(self, row: &[f64]) -> Vec<f32> {
        let size = match self {
            Normalisation::None => 1.0,
            Normalisation::MaxAbsolute => {
                row.iter().fold(0.0, |most: f64, x| most.max(x.abs())) / LARGEST
            }
            Normalisation::Norm(2) => row.iter().map(|x| x * x).sum::<f64>().sqrt(),
            Normalisation::Norm(p) => {
                let p = f64::from(p);
                row.iter()
                    .map(|x| x.abs().powf(p))
                    .sum::<f64>()
                    .powf(1.0 / p)
            }
        };
        let factor = if size > 0.0 { 1.0 / size } else { 0.0 };
        row.iter().map(|x| (x * factor) as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_become_1() {
        let of = |n: i32| Normalisation::of_number(n).map(|n| n.apply(&[3.0, -4.0]));
        assert_eq!(of(-1), Some(vec![3.0, -4.0]));
        assert_eq!(of(0), Some(vec![24_570.0, -32_760.0]));
        assert_eq!(of(1), Some(vec![3.0 / 7.0, -4.0 / 7.0]));
        assert_eq!(of(2), Some(vec![0.6, -0.8]));
        assert_eq!(of(-2), None);
        assert_eq!(Normalisation::Norm(2).apply(&[0.0, 0.0]), [0.0, 0.0]);
        let third = Normalisation::Norm(3).apply(&[3.0, -4.0]);
        let sum: f32 = third.iter().map(|x| x.abs().powi(3)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{third:?}");
    }
}
