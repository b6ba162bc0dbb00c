//! Counts the tokens of batches and measures their time.

use std::time::Duration;

/// The counts and the time of one batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Tokens that the model read.
    pub tokens: usize,
    /// Tokens of prompts, included in `tokens`.
    pub prompt: usize,
    /// First tokens of answers, sampled after their prompts.
    pub begun: usize,
    /// Later tokens of answers.
    pub generated: usize,
    /// Drafted tokens in the batch.
    pub drafted: usize,
    /// Accepted drafts.
    pub accepted: usize,
    /// The time of the batch.
    pub time: Duration,
}

/// A number of tokens and their time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// The number of tokens.
    pub tokens: usize,
    /// The time for these tokens.
    pub time: Duration,
}

/// The sums over all batches of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speed {
    /// Tokens of prompts.
    pub prompt: Rate,
    /// Tokens of answers, without each answer's first token.
    pub steps: Rate,
    /// First tokens of answers.
    pub begun: usize,
    /// Drafted tokens.
    pub drafted: usize,
    /// Accepted drafts.
    pub accepted: usize,
}

impl Speed {
    /// Adds a batch. Its time is divided between prompts and answers in proportion to their tokens.
    pub fn count(&mut self, step: &Step) {
        let prompt = match step.tokens {
            0 => Duration::ZERO,
            n => step.time.mul_f64(step.prompt as f64 / n as f64),
        };
        self.prompt.tokens += step.prompt;
        self.prompt.time += prompt;
        self.steps.tokens += step.generated;
        self.steps.time += step.time.saturating_sub(prompt);
        self.begun += step.begun;
        self.drafted += step.drafted;
        self.accepted += step.accepted;
    }

    /// Returns true if a prompt token has been read.
    pub const fn began(&self) -> bool {
        self.prompt.tokens > 0
    }
}
