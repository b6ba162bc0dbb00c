//! Log-probabilities of a sampled token and of its alternatives.

use super::candidate::Candidate;

/// The log-probabilities at one position of an answer: the softmax of the model's logits, before any setting.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenRecord {
    /// The sampled token.
    pub id: u32,
    /// The natural logarithm of the token's probability.
    pub logprob: f32,
    /// The likeliest tokens with their log-probabilities, likelier tokens first, then smaller ids. Tokens of
    /// probability zero are missing.
    pub top: Vec<(u32, f32)>,
}

impl TokenRecord {
    /// Creates the record of a token with its `top` likeliest alternatives. Logits are never NaN.
    pub(super) fn new(id: u32, logits: &[f32], top: usize) -> TokenRecord {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let above = |logit: f32| f64::from(logit) - f64::from(largest);
        // Add in id order, so that the sum is the same on every machine.
        let sum: f64 = logits.iter().map(|&l| above(l).exp()).sum();
        let log_sum = sum.ln();
        let logprob = |logit: f32| ((above(logit) - log_sum) as f32).max(f32::MIN);
        let finite = (0u32..).zip(logits.iter().copied());
        let finite = finite.filter(|&(_, logit)| top > 0 && logit > f32::NEG_INFINITY);
        let mut best: Vec<Candidate> = finite.map(|(id, logit)| Candidate { logit, id }).collect();
        if top > 0 && top < best.len() {
            best.select_nth_unstable_by(top - 1, Candidate::order);
            best.truncate(top);
        }
        best.sort_unstable_by(Candidate::order);
        let own = logits.get(id as usize).copied();
        TokenRecord {
            id,
            logprob: logprob(own.unwrap_or(f32::NEG_INFINITY)),
            top: best.iter().map(|c| (c.id, logprob(c.logit))).collect(),
        }
    }
}
