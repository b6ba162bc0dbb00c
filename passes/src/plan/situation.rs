use serde::{Deserialize, Serialize};

/// The kind of a model. The error of estimates depends on it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum ModelKind {
    /// Every weight is read per token.
    #[default]
    Dense,
    /// A mixture of experts.
    Mixture,
    /// Most layers have a recurrent state; no experts.
    Hybrid,
    /// Less than 2 GB of weights per token and no experts; limited by launches.
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

    /// Returns the plural name in messages.
    pub const fn words(self) -> &'static str {
        match self {
            ModelKind::Dense => "dense models",
            ModelKind::Mixture => "mixtures of experts",
            ModelKind::Hybrid => "recurrent models",
            ModelKind::Small => "models of less than 2 GB",
        }
    }
}
