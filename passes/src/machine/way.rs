use serde::{Deserialize, Serialize};

/// A way to use several devices.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Way {
    /// One device.
    #[default]
    Alone,
    /// Layer split.
    Layer,
    /// Tensor split.
    Tensor,
    /// Weights on the host.
    Host,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 4] = [Way::Alone, Way::Layer, Way::Tensor, Way::Host];

    /// Returns the name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Alone => "alone",
            Way::Layer => "layer",
            Way::Tensor => "tensor",
            Way::Host => "host",
        }
    }

    /// Returns the phrase that follows a card's name in messages.
    pub const fn words(self) -> &'static str {
        match self {
            Way::Alone => "without a split",
            Way::Layer => "under a layer split",
            Way::Tensor => "under a tensor split",
            Way::Host => "with weights on the host",
        }
    }
}
