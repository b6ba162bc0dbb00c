use std::time::Duration;

/// Token counts and time of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Number of tokens.
    pub tokens: usize,
    /// Number of prompt tokens.
    pub prompt: usize,
    /// Number of first tokens of answers.
    pub begun: usize,
    /// Number of later tokens of answers.
    pub generated: usize,
    /// Number of drafted tokens.
    pub drafted: usize,
    /// Number of accepted drafts.
    pub accepted: usize,
    /// Time of the batch.
    pub time: Duration,
}

/// A number of tokens and their time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Number of tokens.
    pub tokens: usize,
    /// Time for the tokens.
    pub time: Duration,
}

/// Sums over all batches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speed {
    /// Prompt tokens.
    pub prompt: Rate,
    /// Answer tokens, without the first token of each answer.
    pub steps: Rate,
    /// Number of first tokens of answers.
    pub begun: usize,
    /// Number of drafted tokens.
    pub drafted: usize,
    /// Number of accepted drafts.
    pub accepted: usize,
}

impl Speed {
    /// Adds a batch. Prompts and answers share the batch's time in proportion to their tokens.
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
