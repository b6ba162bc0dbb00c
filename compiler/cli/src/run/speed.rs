//! Formats the line about a run's speed.

use std::time::Duration;

use tpc_engine::generate::{Rate, Speed};

/// Formats the speed and the loading time. The generation speed excludes an answer's first token, which the prompt's
/// batch computes.
pub(super) fn line(speed: &Speed, loading: Duration) -> String {
    let drafts = match speed.drafted {
        0 => String::new(),
        n => format!("; {} of {n} drafted tokens accepted", speed.accepted),
    };
    format!(
        "prompt {} tokens{}; generated {} tokens{}{drafts}; loaded in {:.2} s",
        speed.prompt.tokens,
        rate(speed.prompt),
        speed.begun + speed.steps.tokens,
        rate(speed.steps),
        loading.as_secs_f64()
    )
}

/// Formats a rate, such as `, 12.3 t/s`.
fn rate(r: Rate) -> String {
    let seconds = r.time.as_secs_f64();
    match r.tokens > 0 && seconds > 0.0 {
        true => format!(", {:.2} t/s", r.tokens as f64 / seconds),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use tpc_engine::generate::Step;

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
        let text = line(&speed, Duration::from_millis(1500));
        let expected = "prompt 10 tokens, 5.00 t/s; generated 3 tokens, 0.50 t/s; \
                        1 of 3 drafted tokens accepted; loaded in 1.50 s";
        assert_eq!(text, expected);
        let none = line(&Speed::default(), Duration::ZERO);
        assert_eq!(
            none,
            "prompt 0 tokens; generated 0 tokens; loaded in 0.00 s"
        );
    }
}
