//! Mixtures of experts.

use super::Presence;

/// Whether layers have experts.
#[derive(Clone, Debug, PartialEq)]
pub enum Experts {
    /// No layer has.
    Never,
    /// Every layer of a file with `expert_count` has.
    IfCounted(ExpertForm),
    /// Every layer has.
    Always(ExpertForm),
}

impl Experts {
    /// The form of the experts, where there may be some.
    pub const fn form(&self) -> Option<&ExpertForm> {
        match self {
            Experts::Never => None,
            Experts::IfCounted(form) | Experts::Always(form) => Some(form),
        }
    }
}

/// A mixture of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertForm {
    /// What makes weights of the router's logits.
    pub gating: Gating,
    /// Bias of the router.
    pub router_bias: Presence,
    /// Biases of the experts.
    pub bias: Presence,
}

/// What makes weights of the router's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// Softmax over all experts; the weights of those selected are divided by their sum.
    SoftmaxNormalised,
    /// Softmax over the experts selected by their logits.
    SoftmaxOfSelected,
}
