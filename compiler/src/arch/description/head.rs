//! What leaves the last block.

use super::{KeyUse, Presence};

/// What leaves the last block.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadForm {
    /// `output`, the projection to logits. A file without an optional one projects by its token embedding.
    pub output: Presence,
    /// Bias of the logits.
    pub bias: Presence,
    /// Whether `logit_scale` multiplies the logits.
    pub logit_scale: KeyUse,
    /// Whether `final_logit_softcapping` bounds the logits.
    pub softcap: KeyUse,
}
