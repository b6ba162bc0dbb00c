//! How fast it was.

use std::time::Duration;

/// What a batch did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// Tokens that were read.
    pub(super) tokens: usize,
    /// Those of prompts among them.
    pub(super) prompt: usize,
    /// The first tokens of answers, which come with their prompts.
    pub(super) begun: usize,
    /// The other tokens of answers.
    pub(super) generated: usize,
    /// Tokens that were guessed before, and those of them that were right.
    pub(super) drafted: usize,
    pub(super) accepted: usize,
    /// The time that it took.
    pub(super) time: Duration,
}

/// Some tokens, and the time that they took.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    tokens: usize,
    time: Duration,
}

/// What the batches of a run took together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    prompt: Rate,
    steps: Rate,
    begun: usize,
    drafted: usize,
    accepted: usize,
}

impl Speed {
    /// Counts a batch. The time of one that mixes prompts and answers is divided by their tokens.
    pub(super) fn count(&mut self, step: &Step) {
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

    /// Tokens that were guessed, and those that were right.
    #[cfg(test)]
    pub(super) const fn drafts(&self) -> (usize, usize) {
        (self.drafted, self.accepted)
    }

    /// Whether anything was read.
    pub(super) const fn began(&self) -> bool {
        self.prompt.tokens > 0
    }

    /// A line that says it, with the time that loading took. The first token of an answer comes with its prompt, so that
    /// the speed of generation is that of the others.
    pub(super) fn line(&self, loading: Duration) -> String {
        let drafts = match self.drafted {
            0 => String::new(),
            n => format!("; {} of {n} drafted tokens accepted", self.accepted),
        };
        format!(
            "prompt {} tokens{}; generated {} tokens{}{drafts}; loaded in {:.2} s",
            self.prompt.tokens,
            rate(self.prompt),
            self.begun + self.steps.tokens,
            rate(self.steps),
            loading.as_secs_f64()
        )
    }
}

/// `, 12.3 t/s`.
fn rate(r: Rate) -> String {
    let seconds = r.time.as_secs_f64();
    match r.tokens > 0 && seconds > 0.0 {
        true => format!(", {:.2} t/s", r.tokens as f64 / seconds),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_of_an_answer_counts_for_its_prompt() {
        let mut speed = Speed::default();
        speed.count(&Step {
            tokens: 10,
            prompt: 10,
            begun: 1,
            time: Duration::from_secs(2),
            ..Step::default()
        });
        speed.count(&Step {
            tokens: 4,
            generated: 2,
            drafted: 3,
            accepted: 1,
            time: Duration::from_secs(4),
            ..Step::default()
        });
        let line = speed.line(Duration::from_millis(1500));
        let expected = "prompt 10 tokens, 5.00 t/s; generated 3 tokens, 0.50 t/s; \
                        1 of 3 drafted tokens accepted; loaded in 1.50 s";
        assert_eq!(line, expected);
        let none = Speed::default().line(Duration::ZERO);
        assert_eq!(
            none,
            "prompt 0 tokens; generated 0 tokens; loaded in 0.00 s"
        );
    }
}
