use serde::{Deserialize, Serialize};

/// The end of a failing run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The engine refuses with a message.
    Refuses,
    /// The engine splits by layers instead, with a message.
    SplitsByLayers,
    /// The process ends while loading the model.
    AbortsLoading,
    /// The process ends while it creates the context.
    AbortsAtContext,
    /// The process ends at the first prompt.
    AbortsAtPrompt,
    /// The process ends at the first generated token, after the prompt.
    AbortsAtToken,
    /// The result is wrong, without a message.
    SilentlyWrong,
}

impl Outcome {
    /// Returns the words that follow the engine's name in a message.
    pub const fn words(self) -> &'static str {
        match self {
            Outcome::Refuses => "refuses to load the model",
            Outcome::SplitsByLayers => "splits by layers instead",
            Outcome::AbortsLoading => "aborts while it loads the model",
            Outcome::AbortsAtContext => "aborts when it creates the context",
            Outcome::AbortsAtPrompt => "aborts at the first prompt",
            Outcome::AbortsAtToken => "aborts at the first generated token (prompts pass)",
            Outcome::SilentlyWrong => "computes silently wrong output",
        }
    }

    /// Returns the outcome's word in a table of runs.
    pub const fn class(self) -> &'static str {
        match self {
            Outcome::Refuses => "refused",
            Outcome::SplitsByLayers => "right",
            Outcome::SilentlyWrong => "wrong",
            Outcome::AbortsLoading
            | Outcome::AbortsAtContext
            | Outcome::AbortsAtPrompt
            | Outcome::AbortsAtToken => "abort",
        }
    }
}
