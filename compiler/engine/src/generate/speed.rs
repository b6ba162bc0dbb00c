use std::time::Duration;

/// One batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Tokens read.
    pub tokens: usize,
    /// Prompt tokens among them.
    pub prompt: usize,
    /// First tokens of answers, sampled after their prompts.
    pub begun: usize,
    /// Later tokens of answers.
    pub generated: usize,
    /// Drafted tokens.
    pub drafted: usize,
    /// Accepted drafts.
    pub accepted: usize,
    /// The time of the batch.
    pub time: Duration,
}

/// Tokens and their time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Number of tokens.
    pub tokens: usize,
    /// Their time.
    pub time: Duration,
}

/// Sums over all batches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speed {
    /// Tokens of prompts.
    pub prompt: Rate,
    /// Tokens of answers, without the first of each.
    pub steps: Rate,
    /// First tokens of answers.
    pub begun: usize,
    /// Drafted tokens.
    pub drafted: usize,
    /// Accepted drafts.
    pub accepted: usize,
}

impl Speed {
    /// Adds a batch; prompts and answers share its time in proportion to their tokens.
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

    /// True if a prompt token has been read.
    pub const fn began(&self) -> bool {
        self.prompt.tokens > 0
    }
}
