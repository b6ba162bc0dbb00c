//! Sampling of the next token.
//!
//! As in llama.cpp, the order is: constraint and logit bias, penalties, top-k, top-p, min-p, temperature, random draw.
//! Each step sees the candidates of the previous step, so top-p and min-p use probabilities before the temperature.

mod candidate;
mod constraint;
mod mask;
mod random;
mod record;
mod settings;

use std::collections::VecDeque;

use tpc_diag::Diagnostic;

use super::codes;
use candidate::Candidate;
pub use constraint::Constraint;
pub use mask::TokenMask;
use random::Random;
pub use record::TokenRecord;
pub use settings::Settings;

/// The number of tokens that top-p sorts first; they usually reach the requested probability.
const FIRST_SORTED: usize = 256;

/// Chooses tokens for one sequence. After the first token, it allocates only if the vocabulary size changes, or
/// for a constraint or a record.
#[derive(Debug)]
pub struct Sampler {
    settings: Settings,
    random: Random,
    /// The last tokens, at most the window's length.
    recent: VecDeque<u32>,
    /// Each token's occurrences in `recent`.
    counts: Vec<u32>,
    candidates: Vec<Candidate>,
    constraint: Option<Box<dyn Constraint>>,
    /// The tokens that the constraint allows.
    allowed: TokenMask,
    /// The number of alternatives to record; `None` disables records.
    recorded: Option<usize>,
    record: Option<TokenRecord>,
}

impl Sampler {
    /// Creates a sampler for `n_vocab` tokens.
    ///
    /// # Errors
    /// Returns an error if a setting is out of range.
    pub fn new(mut settings: Settings, n_vocab: usize) -> Result<Sampler, Diagnostic> {
        settings.check(n_vocab)?;
        settings.bias.sort_by_key(|&(id, _)| id);
        Ok(Sampler {
            random: Random::new(settings.seed, 0),
            recent: VecDeque::with_capacity(settings.window.min(1 << 20)),
            counts: vec![0; n_vocab],
            candidates: Vec::with_capacity(n_vocab),
            constraint: None,
            allowed: TokenMask::default(),
            recorded: None,
            record: None,
            settings,
        })
    }

    /// Sets the constraint of the next tokens, or removes it. [`Self::sample`] informs the constraint of each token.
    pub fn constrain(&mut self, constraint: Option<Box<dyn Constraint>>) {
        self.constraint = constraint;
    }

    /// Starts to record the log-probability of each token and of the `top` likeliest tokens; `None` ends it.
    pub fn record(&mut self, top: Option<usize>) {
        self.recorded = top;
        self.record = None;
    }

    /// Returns the record of the last token, once.
    pub fn take_record(&mut self) -> Option<TokenRecord> {
        self.record.take()
    }

    /// Forgets all tokens, removes the constraint, and restarts the random numbers.
    pub fn reset(&mut self) {
        self.constraint = None;
        self.record = None;
        self.random = Random::new(self.settings.seed, 0);
        self.recent.clear();
        self.counts.fill(0);
    }

    /// Records a token for the penalties.
    pub fn accept(&mut self, id: u32) {
        if self.settings.window == 0 {
            return;
        }
        if self.recent.len() >= self.settings.window
            && let Some(old) = self.recent.pop_front()
            && let Some(count) = self.counts.get_mut(old as usize)
        {
            *count -= 1;
        }
        self.recent.push_back(id);
        if let Some(count) = self.counts.get_mut(id as usize) {
            *count += 1;
        }
    }

    /// Returns the number of largest logits that determine the next token; `None` if all logits do.
    pub fn wanted(&self) -> Option<usize> {
        let count = match self.settings.temperature == 0.0 {
            true => 1,
            false => self.settings.top_k,
        };
        let all = self.constraint.is_some()
            || self.recorded.is_some()
            || !self.settings.bias.is_empty()
            || !self.settings.has_no_penalty();
        (count > 0 && !all).then_some(count)
    }

    /// Chooses a token from the largest logits, at least [`Self::wanted`]. Returns the token of [`Self::sample`] for all
    /// logits.
    ///
    /// # Errors
    /// Returns the errors of [`Self::sample`].
    pub fn sample_best(&mut self, best: &[(u32, f32)]) -> Result<u32, Diagnostic> {
        self.candidates.clear();
        for &(id, logit) in best {
            check(id, logit)?;
            if logit > f32::NEG_INFINITY {
                self.candidates.push(Candidate { logit, id });
            }
        }
        self.check_candidates(best.len())?;
        self.choose()
    }

    /// Chooses a token from the logits of all tokens, and informs the constraint of it.
    ///
    /// # Errors
    /// Returns an error for an empty list, a NaN, a positive infinity, or only negative infinities; if every token is
    /// banned; and the errors of the constraint.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32, Diagnostic> {
        self.collect(logits)?;
        let id = self.choose()?;
        if let Some(constraint) = &mut self.constraint {
            constraint.accept(id)?;
        }
        self.record = self.recorded.map(|top| TokenRecord::new(id, logits, top));
        Ok(id)
    }

    fn choose(&mut self) -> Result<u32, Diagnostic> {
        if self.settings.temperature == 0.0 {
            let best = self.candidates.iter().min_by(|a, b| a.order(b));
            return best
                .map(|c| c.id)
                .ok_or_else(|| unusable("the list is empty"));
        }
        self.top_k();
        self.top_p();
        self.min_p();
        Ok(self.draw())
    }

    /// Collects the allowed candidates. Applies the bias and the penalties: CTRL's for repetition (Keskar et al. 2019),
    /// OpenAI's for frequency and presence.
    fn collect(&mut self, logits: &[f32]) -> Result<(), Diagnostic> {
        self.allowed.allow_all(logits.len());
        if let Some(constraint) = &mut self.constraint {
            constraint.mask(&mut self.allowed)?;
        }
        let s = &self.settings;
        let neutral = s.has_no_penalty();
        let mut biases = s.bias.iter().peekable();
        let mut finite = false;
        self.candidates.clear();
        for (id, &given) in (0u32..).zip(logits) {
            check(id, given)?;
            finite |= given > f32::NEG_INFINITY;
            let mut logit = given;
            let mut banned = given == f32::NEG_INFINITY || !self.allowed.allows(id);
            while let Some(&(_, bias)) = biases.next_if(|b| b.0 == id) {
                logit += bias;
                banned |= bias == f32::NEG_INFINITY;
            }
            if banned {
                continue;
            }
            let count = self.counts.get(id as usize).copied().unwrap_or(0);
            if count > 0 && !neutral {
                logit = match logit > 0.0 {
                    true => logit / s.repetition,
                    false => logit * s.repetition,
                };
                logit -= count as f32 * s.frequency + s.presence;
            }
            // A finite bias or penalty may overflow a finite logit.
            let logit = logit.clamp(f32::MIN, f32::MAX);
            self.candidates.push(Candidate { logit, id });
        }
        if finite && self.candidates.is_empty() {
            return Err(all_banned(logits.len()));
        }
        self.check_candidates(logits.len())
    }

    /// Checks that one of `n` logits is finite.
    fn check_candidates(&self, n: usize) -> Result<(), Diagnostic> {
        match self.candidates.is_empty() {
            true => Err(unusable(&format!("all {n} logits are negative infinity"))),
            false => Ok(()),
        }
    }

    fn top_k(&mut self) {
        let k = self.settings.top_k;
        if k > 0 && k < self.candidates.len() {
            self.candidates
                .select_nth_unstable_by(k - 1, Candidate::order);
            self.candidates.truncate(k);
        }
    }

    fn largest(&self) -> f32 {
        self.candidates
            .iter()
            .map(|c| c.logit)
            .fold(f32::NEG_INFINITY, f32::max)
    }

    /// Keeps the nucleus of Holtzman et al. (2020).
    fn top_p(&mut self) {
        let p = f64::from(self.settings.top_p);
        if p >= 1.0 {
            return;
        }
        let largest = self.largest();
        let weight = |c: &Candidate| f64::from(c.logit - largest).exp();
        // Add in id order, so that the sum is the same on every machine.
        self.candidates.sort_unstable_by_key(|c| c.id);
        let wanted = p * self.candidates.iter().map(weight).sum::<f64>();
        let (mut sorted, mut so_far) = (0, 0.0);
        while sorted < self.candidates.len() {
            let rest = &mut self.candidates[sorted..];
            let n = sorted.max(FIRST_SORTED).min(rest.len());
            if n < rest.len() {
                rest.select_nth_unstable_by(n - 1, Candidate::order);
            }
            rest[..n].sort_unstable_by(Candidate::order);
            for c in &rest[..n] {
                so_far += weight(c);
                sorted += 1;
                if so_far >= wanted {
                    self.candidates.truncate(sorted);
                    return;
                }
            }
        }
    }

    /// Applies min-p of Nguyen et al. (2024).
    fn min_p(&mut self) {
        let p = self.settings.min_p;
        if p > 0.0 {
            let least = self.largest() + p.ln();
            self.candidates.retain(|c| c.logit >= least);
        }
    }

    fn draw(&mut self) -> u32 {
        let (largest, temperature) = (
            f64::from(self.largest()),
            f64::from(self.settings.temperature),
        );
        let weight = |c: &Candidate| ((f64::from(c.logit) - largest) / temperature).exp();
        self.candidates.sort_unstable_by_key(|c| c.id);
        let sum: f64 = self.candidates.iter().map(weight).sum();
        let mut left = self.random.unit() * sum;
        let mut chosen = 0;
        for c in &self.candidates {
            let w = weight(c);
            if w > 0.0 {
                chosen = c.id;
                left -= w;
                if left < 0.0 {
                    break;
                }
            }
        }
        chosen
    }
}

fn check(id: u32, logit: f32) -> Result<(), Diagnostic> {
    match logit.is_nan() || logit == f32::INFINITY {
        true => Err(unusable(&format!("token {id} has the logit {logit}"))),
        false => Ok(()),
    }
}

fn all_banned(n: usize) -> Diagnostic {
    let message = format!("all {n} tokens are banned, so the answer cannot continue");
    Diagnostic::new(&codes::ALL_BANNED, "sampling", message)
        .help("change the grammar, or remove entries of the logit bias")
}

fn unusable(why: &str) -> Diagnostic {
    let message = format!("the logits are unusable: {why}");
    Diagnostic::new(&codes::LOGITS, "logits", message).help(
        "the model file is probably damaged: compare its checksum with the publisher's and fetch the file again",
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;
