//! The sampling options.

use std::time::{SystemTime, UNIX_EPOCH};

use tpc_text::Settings;

/// The sampling options; the defaults are llama.cpp's.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Divide logits by this temperature; 0 takes the likeliest token.
    #[arg(
        long = "temp",
        alias = "temperature",
        value_name = "X",
        default_value_t = 0.8,
        allow_hyphen_values = true
    )]
    temperature: f32,
    /// Sample from the N likeliest tokens; 0 or less: all tokens.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 40,
        allow_hyphen_values = true
    )]
    top_k: i64,
    /// Sample from the likeliest tokens whose probabilities sum to this number.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.95,
        allow_hyphen_values = true
    )]
    top_p: f32,
    /// Sample from tokens with at least this fraction of the likeliest token's probability.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.05,
        allow_hyphen_values = true
    )]
    min_p: f32,
    /// Make recent tokens less likely by this factor; 1 turns the penalty off.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 1.0,
        allow_hyphen_values = true
    )]
    repeat_penalty: f32,
    /// Subtract this from a token's logit for each occurrence among recent tokens.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_hyphen_values = true
    )]
    frequency_penalty: f32,
    /// Subtract this from a token's logit if it is among recent tokens.
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_hyphen_values = true
    )]
    presence_penalty: f32,
    /// Number of recent tokens that penalties apply to; -1: the whole text.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i64).range(-1..)
    )]
    repeat_last_n: i64,
    /// Seed of random choices; -1: a new seed each time [default: 0; serve: -1].
    #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
    seed: Option<i64>,
}

impl SamplingArgs {
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            temperature: self.temperature,
            top_k: usize::try_from(self.top_k).unwrap_or(0),
            top_p: self.top_p,
            min_p: self.min_p,
            window: usize::try_from(self.repeat_last_n).unwrap_or(usize::MAX),
            repetition: self.repeat_penalty,
            frequency: self.frequency_penalty,
            presence: self.presence_penalty,
            bias: Vec::new(),
            seed: u64::try_from(self.seed.unwrap_or(0)).unwrap_or_else(|_| any_seed()),
        }
    }

    /// Returns the seed that the options give; `None` for a new seed each time.
    pub(crate) fn given_seed(&self) -> Option<u64> {
        self.seed.and_then(|seed| u64::try_from(seed).ok())
    }
}

fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}
