//! Speed: the tokens of batches and their times.

use std::time::Duration;

/// What a batch did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Tokens that were read.
    pub tokens: usize,
    /// Those of prompts among them.
    pub prompt: usize,
    /// The first tokens of answers, which come with their prompts.
    pub begun: usize,
    /// The other tokens of answers.
    pub generated: usize,
    /// Tokens that were guessed before, and those of them that were right.
    pub drafted: usize,
    /// Drafted tokens that were right.
    pub accepted: usize,
    /// The time that it took.
    pub time: Duration,
}

/// Some tokens, and the time that they took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// The tokens.
    pub tokens: usize,
    /// Their time.
    pub time: Duration,
}

/// What the batches of a run took together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speed {
    /// Tokens of prompts.
    pub prompt: Rate,
    /// Tokens of answers but their first ones, which come with prompts.
    pub steps: Rate,
    /// The first tokens of answers.
    pub begun: usize,
    /// Tokens that were drafted.
    pub drafted: usize,
    /// Drafted tokens that were right.
    pub accepted: usize,
}

impl Speed {
    /// Counts a batch. The time of one that mixes prompts and answers is divided by their tokens.
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

    /// Whether anything was read.
    pub const fn began(&self) -> bool {
        self.prompt.tokens > 0
    }
}
