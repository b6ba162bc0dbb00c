//! How fast it was.

use std::time::Duration;

use super::generate::Answer;
use super::sequence::Reading;

/// What the answers of a run took together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    prompt: Reading,
    generated: usize,
    steps: Reading,
}

impl Speed {
    /// Counts an answer.
    pub(super) fn count(&mut self, answer: &Answer) {
        let add = |sum: &mut Reading, r: Reading| {
            sum.tokens += r.tokens;
            sum.time += r.time;
        };
        add(&mut self.prompt, answer.prompt);
        add(&mut self.steps, answer.steps);
        self.generated += answer.tokens.len();
    }

    /// A line that says it, with the time that loading took. The first token of an answer comes with its prompt, so that
    /// the speed of generation is that of the others.
    pub(super) fn line(&self, loading: Duration) -> String {
        format!(
            "prompt {} tokens{}; generated {} tokens{}; loaded in {:.2} s",
            self.prompt.tokens,
            rate(self.prompt),
            self.generated,
            rate(self.steps),
            loading.as_secs_f64()
        )
    }
}

/// `, 12.3 t/s`.
fn rate(r: Reading) -> String {
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
        let reading = |tokens, seconds| Reading {
            tokens,
            time: Duration::from_secs(seconds),
        };
        speed.count(&Answer {
            tokens: vec![1, 2, 3],
            prompt: reading(10, 2),
            steps: reading(2, 4),
            reader_gone: false,
        });
        let line = speed.line(Duration::from_millis(1500));
        let expected = "prompt 10 tokens, 5.00 t/s; generated 3 tokens, 0.50 t/s; loaded in 1.50 s";
        assert_eq!(line, expected);
        let none = Speed::default().line(Duration::ZERO);
        assert_eq!(
            none,
            "prompt 0 tokens; generated 0 tokens; loaded in 0.00 s"
        );
    }
}
