//! What a sampler is told.

use tpc_diag::Diagnostic;

use crate::codes;

/// How tokens are chosen. The defaults are those of llama.cpp (`common_params_sampling`).
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Logits are divided by it; 0 takes the likeliest token.
    pub temperature: f32,
    /// So many tokens at most are considered; 0 is no limit.
    pub top_k: usize,
    /// The likeliest tokens that have this probability together are considered; 1 is no limit.
    pub top_p: f32,
    /// Tokens of at least this part of the likeliest one's probability are considered; 0 is no limit.
    pub min_p: f32,
    /// The penalties look back so many tokens.
    pub window: usize,
    /// Positive logits of tokens in the window are divided by it, others multiplied; 1 is no penalty.
    pub repetition: f32,
    /// Is taken from the logit of a token in the window once for each time that it is there.
    pub frequency: f32,
    /// Is taken from the logit of a token in the window once.
    pub presence: f32,
    /// Equal seeds give equal choices.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            window: 64,
            repetition: 1.0,
            frequency: 0.0,
            presence: 0.0,
            seed: 0,
        }
    }
}

impl Settings {
    /// The settings that take the likeliest token.
    pub fn greedy() -> Settings {
        Settings {
            temperature: 0.0,
            ..Settings::default()
        }
    }

    /// # Errors
    /// A number out of range.
    pub(super) fn check(&self) -> Result<(), Diagnostic> {
        let ranges = [
            ("temperature", self.temperature, 0.0, f32::MAX),
            ("top-p", self.top_p, 0.0, 1.0),
            ("min-p", self.min_p, 0.0, 1.0),
            (
                "the repetition penalty",
                self.repetition,
                f32::MIN_POSITIVE,
                f32::MAX,
            ),
            ("the frequency penalty", self.frequency, f32::MIN, f32::MAX),
            ("the presence penalty", self.presence, f32::MIN, f32::MAX),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                let message = format!("{name} is {value}");
                let help = match high {
                    f32::MAX if low == f32::MIN => "give a finite number".to_owned(),
                    f32::MAX if low == 0.0 => {
                        "give a finite number that is not negative".to_owned()
                    }
                    f32::MAX => "give a positive number".to_owned(),
                    _ => format!("give a number from {low} to {high}"),
                };
                return Err(Diagnostic::new(&codes::SAMPLING, name, message).help(help));
            }
        }
        Ok(())
    }
}
