use super::divergence::TokenDivergence;

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// The standard error.
    pub error: f64,
}

/// The fewest values with a standard error.
const FEWEST: usize = 10;

fn count(values: &[TokenDivergence]) -> f64 {
    values.len().max(1) as f64
}

fn sum(values: &[TokenDivergence], of: impl Fn(&TokenDivergence) -> f64) -> f64 {
    values.iter().map(of).sum()
}

impl Mean {
    fn of(values: &[TokenDivergence], of: impl Fn(&TokenDivergence) -> f64) -> Mean {
        let n = count(values);
        let value = sum(values, &of) / n;
        let variance = sum(values, |v| of(v) * of(v)) / n - value * value;
        let error = match variance > 0.0 && values.len() > FEWEST {
            true => (variance / (n - 1.0)).sqrt(),
            false => 0.0,
        };
        Mean { value, error }
    }

    /// Returns the exponential, with its standard error.
    fn exp(self) -> Mean {
        let value = self.value.exp();
        Mean {
            value,
            error: value * self.error,
        }
    }
}

/// The difference of two predictions of a text, summarised as in llama-perplexity.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Number of tokens.
    pub count: usize,
    /// Perplexity.
    pub perplexity: Mean,
    /// Perplexity of the base.
    pub base: Mean,
    /// Correlation of the two negative log-likelihoods.
    pub correlation: f64,
    /// Logarithm of the ratio of the perplexities.
    pub log_ratio: Mean,
    /// Ratio of the perplexities.
    pub ratio: Mean,
    /// Difference of the perplexities.
    pub difference: Mean,
    /// Kullback-Leibler divergence.
    pub kld: Mean,
    /// Difference of a token's probabilities.
    pub p_diff: Mean,
    /// Root of the mean square of the differences.
    pub p_diff_rms: Mean,
    /// Share of tokens with the same best prediction.
    pub same_top: Mean,
}

impl Statistics {
    /// Summarises the differences of tokens.
    pub fn of(tokens: &[TokenDivergence]) -> Statistics {
        let n = count(tokens);
        let log = Mean::of(tokens, |t| t.nll);
        let log_base = Mean::of(tokens, |t| t.base_nll);
        let covariance = match tokens.len() < FEWEST {
            true => 0.0,
            false => {
                let product = sum(tokens, |t| t.nll * t.base_nll) / n;
                (product - log.value * log_base.value) / (n - 1.0)
            }
        };
        let of_difference =
            |a: f64, b: f64, both: f64| (a * a + b * b - 2.0 * both).max(0.0).sqrt();
        let (perplexity, base) = (log.exp(), log_base.exp());
        let log_ratio = Mean {
            value: log.value - log_base.value,
            error: of_difference(log.error, log_base.error, covariance),
        };
        let both = perplexity.value * base.value * covariance;
        let square = Mean::of(tokens, |t| f64::from(t.p_diff) * f64::from(t.p_diff));
        let rms = square.value.sqrt();
        let same = sum(tokens, |t| f64::from(u8::from(t.same_top))) / n;
        Statistics {
            count: tokens.len(),
            perplexity,
            base,
            correlation: match log.error * log_base.error {
                0.0 => 0.0,
                errors => covariance / errors,
            },
            log_ratio,
            ratio: log_ratio.exp(),
            difference: Mean {
                value: perplexity.value - base.value,
                error: of_difference(perplexity.error, base.error, both),
            },
            kld: Mean::of(tokens, |t| t.kld),
            p_diff: Mean::of(tokens, |t| f64::from(t.p_diff)),
            p_diff_rms: Mean {
                value: rms,
                error: match rms {
                    0.0 => 0.0,
                    rms => 0.5 / rms * square.error,
                },
            },
            same_top: Mean {
                value: same,
                error: (same * (1.0 - same) / (n - 1.0).max(1.0)).sqrt(),
            },
        }
    }
}

/// Returns a percentile of sorted values, between neighbours in proportion; 0 without values.
pub fn percentile(sorted: &[f32], fraction: f32) -> f32 {
    let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else {
        return 0.0;
    };
    if fraction <= 0.0 {
        return first;
    }
    if fraction >= 1.0 {
        return last;
    }
    let at = fraction * (sorted.len() - 1) as f32;
    let i = at as usize;
    let part = at - i as f32;
    (1.0 - part) * sorted[i] + part * sorted[(i + 1).min(sorted.len() - 1)]
}
