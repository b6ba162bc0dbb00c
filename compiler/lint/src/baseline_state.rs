use schemars::JsonSchema;
use serde::Serialize;

/// The relation of a finding to the accepted findings. The words are SARIF's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BaselineState {
    /// The finding is accepted.
    Unchanged,
    /// The finding is not accepted.
    New,
}

impl BaselineState {
    /// Returns SARIF's word.
    pub const fn word(self) -> &'static str {
        match self {
            BaselineState::Unchanged => "unchanged",
            BaselineState::New => "new",
        }
    }
}
