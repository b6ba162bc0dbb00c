//! The settings of a sampler.

use tpc_diag::Diagnostic;

use crate::codes;

/// Sampling settings. The defaults match llama.cpp (`common_params_sampling`).
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The divisor of the logits; 0 always chooses the likeliest token.
    pub temperature: f32,
    /// The maximum number of candidates; 0 disables the limit.
    pub top_k: usize,
    /// Keeps the likeliest tokens up to this total probability; 1 disables the limit.
    pub top_p: f32,
    /// Keeps tokens with at least this fraction of the largest probability; 0 disables the limit.
    pub min_p: f32,
    /// The number of recent tokens that the penalties apply to.
    pub window: usize,
    /// The repetition penalty of tokens in the window: positive logits are divided by it, negative ones multiplied; 1
    /// disables it.
    pub repetition: f32,
    /// Subtracted from a token's logit per occurrence in the window.
    pub frequency: f32,
    /// Subtracted once from the logit of a token in the window.
    pub presence: f32,
    /// Numbers to add to the logits of tokens, before all other settings. Negative infinity bans a token.
    pub bias: Vec<(u32, f32)>,
    /// The random seed. Equal seeds give equal choices.
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
            bias: Vec::new(),
            seed: 0,
        }
    }
}

impl Settings {
    /// Returns settings that always choose the likeliest token.
    pub fn greedy() -> Settings {
        Settings {
            temperature: 0.0,
            ..Settings::default()
        }
    }

    /// True if penalties do not change logits.
    pub(super) fn has_no_penalty(&self) -> bool {
        self.repetition == 1.0 && self.frequency == 0.0 && self.presence == 0.0
    }

    /// Checks the settings for a vocabulary of `n_vocab` tokens.
    pub(super) fn check(&self, n_vocab: usize) -> Result<(), Diagnostic> {
        self.check_bias(n_vocab)?;
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

    fn check_bias(&self, n_vocab: usize) -> Result<(), Diagnostic> {
        for &(id, bias) in &self.bias {
            let (message, help) = if bias.is_nan() || bias == f32::INFINITY {
                let message = format!("the logit bias of token {id} is {bias}");
                (message, "give a finite number, or -inf to ban the token")
            } else if id as usize >= n_vocab {
                let message = format!("the logit bias names token {id} of {n_vocab}");
                (message, "use ids from this model's tokenizer")
            } else {
                continue;
            };
            let d = Diagnostic::new(&codes::SAMPLING, "the logit bias", message);
            return Err(d.help(help));
        }
        Ok(())
    }
}
