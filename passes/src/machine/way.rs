//! The ways to use several devices.

use serde::{Deserialize, Serialize};

/// The way in which several devices work together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Way {
    /// One device alone.
    #[default]
    Alone,
    /// Layer by layer.
    Layer,
    /// With shared tensors.
    Tensor,
    /// With weights on the host.
    Host,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 4] = [Way::Alone, Way::Layer, Way::Tensor, Way::Host];

    /// Returns its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Alone => "alone",
            Way::Layer => "layer",
            Way::Tensor => "tensor",
            Way::Host => "host",
        }
    }

    /// Returns the way, in words that follow the name of a card.
    pub const fn words(self) -> &'static str {
        match self {
            Way::Alone => "without a split",
            Way::Layer => "under a layer split",
            Way::Tensor => "under a tensor split",
            Way::Host => "with weights on the host",
        }
    }
}
