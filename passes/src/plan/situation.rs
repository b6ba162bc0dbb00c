//! The situation of an estimate: the properties that determine its likely error.

use serde::{Deserialize, Serialize};

/// The kind of a model, by the cost of its tokens.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum ModelKind {
    /// Every weight is read for a token.
    #[default]
    Dense,
    /// Each token has experts.
    Mixture,
    /// Most layers keep a recurrent state, and no token has experts.
    Hybrid,
    /// Less than 2 GB of weights are read for a token, and no token has experts: launches determine the time.
    Small,
}

impl ModelKind {
    /// All kinds.
    pub const ALL: [ModelKind; 4] = [
        ModelKind::Dense,
        ModelKind::Mixture,
        ModelKind::Hybrid,
        ModelKind::Small,
    ];

    /// Models of the kind, in words.
    pub const fn words(self) -> &'static str {
        match self {
            ModelKind::Dense => "dense models",
            ModelKind::Mixture => "mixtures of experts",
            ModelKind::Hybrid => "recurrent models",
            ModelKind::Small => "models of less than 2 GB",
        }
    }
}
