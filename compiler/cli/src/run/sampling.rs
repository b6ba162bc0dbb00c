//! The options that say how tokens are chosen.

use std::time::{SystemTime, UNIX_EPOCH};

use tpc_text::Settings;

/// The options that say how tokens are chosen; the defaults are llama.cpp's.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(super) struct SamplingArgs {
    /// Logits are divided by it; 0 takes the likeliest token.
    #[arg(
        long = "temp",
        alias = "temperature",
        value_name = "X",
        default_value_t = 0.8,
        allow_hyphen_values = true
    )]
    temperature: f32,
    /// So many tokens at most are considered; 0 or less is no limit.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 40,
        allow_hyphen_values = true
    )]
    top_k: i64,
    /// The likeliest tokens that have this probability together are considered.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.95,
        allow_hyphen_values = true
    )]
    top_p: f32,
    /// Tokens of at least this part of the likeliest one's probability are considered.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.05,
        allow_hyphen_values = true
    )]
    min_p: f32,
    /// Tokens among the last ones are made so much less likely; 1 is no penalty.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 1.0,
        allow_hyphen_values = true
    )]
    repeat_penalty: f32,
    /// Is taken from the logit of a token once for each time that it is among the last ones.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_hyphen_values = true
    )]
    frequency_penalty: f32,
    /// Is taken from the logit of a token that is among the last ones.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_hyphen_values = true
    )]
    presence_penalty: f32,
    /// The penalties look back so many tokens; -1 is the whole text.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i64).range(-1..)
    )]
    repeat_last_n: i64,
    /// Equal seeds give equal choices; -1 is another each time.
    #[arg(
        long,
        short,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    seed: i64,
}

impl SamplingArgs {
    /// What the sampler is told.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            temperature: self.temperature,
            top_k: usize::try_from(self.top_k).unwrap_or(0),
            top_p: self.top_p,
            min_p: self.min_p,
            window: usize::try_from(self.repeat_last_n).unwrap_or(usize::MAX),
            repetition: self.repeat_penalty,
            frequency: self.frequency_penalty,
            presence: self.presence_penalty,
            seed: u64::try_from(self.seed).unwrap_or_else(|_| any_seed()),
        }
    }
}

/// A seed that differs from run to run.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}
