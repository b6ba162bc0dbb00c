use super::rows::{Peak, Rows, logits_error};
use crate::error::Error;

/// The predictions of a base for one token.
#[derive(Clone, Copy, Debug)]
pub enum BaseRow<'b> {
    /// Log-probabilities of 16 bits: `scale * code + min`.
    Stored {
        /// Difference of neighbouring log-probabilities.
        scale: f32,
        /// The log-probability of code 0.
        min: f32,
        /// A code per token.
        codes: &'b [u16],
    },
    /// Logits.
    Exact(&'b [f32]),
}

/// The difference between two predictions of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenDivergence {
    /// Negative log-likelihood of the token.
    pub nll: f64,
    /// Negative log-likelihood of the token in the base.
    pub base_nll: f64,
    /// Kullback-Leibler divergence from the base.
    pub kld: f64,
    /// Difference of the token's probabilities.
    pub p_diff: f32,
    /// True if both predict the same token.
    pub same_top: bool,
}

/// The smallest log-probability of the base that counts.
const SMALLEST: f32 = -16.0;

fn compare(logits: &[f32], base: impl Fn(usize) -> f32, target: usize) -> TokenDivergence {
    let peak = Peak::of(logits);
    let log_sum = peak.log_sum as f32;
    let nll = peak.max + log_sum - logits[target];
    let base_nll = -base(target);
    let norm = peak.max + log_sum;
    let (mut kld, mut top, mut best) = (0.0, 0, f32::NEG_INFINITY);
    for (i, &logit) in logits.iter().enumerate() {
        let p = base(i);
        if p > best {
            (top, best) = (i, p);
        }
        if p > SMALLEST {
            kld += f64::from(p.exp() * (p - logit + norm));
        }
    }
    TokenDivergence {
        nll: f64::from(nll),
        base_nll: f64::from(base_nll),
        kld,
        p_diff: (-nll).exp() - (-base_nll).exp(),
        same_top: top == peak.index,
    }
}

impl TokenDivergence {
    /// Compares the logits of a token with the base.
    pub fn of(logits: &[f32], base: BaseRow<'_>, target: u32) -> TokenDivergence {
        let target = target as usize;
        match base {
            BaseRow::Stored { scale, min, codes } => {
                compare(logits, |i| scale * f32::from(codes[i]) + min, target)
            }
            BaseRow::Exact(base) => {
                let peak = Peak::of(base);
                let norm = peak.max + peak.log_sum as f32;
                compare(logits, |i| base[i] - norm, target)
            }
        }
    }

    const fn is_finite(&self) -> bool {
        self.nll.is_finite() && self.base_nll.is_finite() && self.kld.is_finite()
    }
}

/// The differences of all tokens so far.
#[derive(Clone, Debug, Default)]
pub struct Divergence {
    /// The differences, in the order of the text.
    pub tokens: Vec<TokenDivergence>,
}

impl Divergence {
    /// Adds rows of logits with their bases and next tokens.
    ///
    /// # Errors
    /// Returns TPC0571 if a difference is not a finite number.
    pub fn add<'b>(
        &mut self,
        rows: &Rows<'_>,
        base: impl Fn(usize) -> BaseRow<'b> + Sync,
        targets: &[u32],
    ) -> Result<(), Error> {
        let found = rows.each(|i| TokenDivergence::of(rows.row(i), base(i), targets[i]));
        if !found.iter().all(TokenDivergence::is_finite) {
            return Err(logits_error());
        }
        self.tokens.extend(found);
        Ok(())
    }
}
