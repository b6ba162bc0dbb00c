//! What leaves the last block.

use super::presence::{KeyUse, Presence};

/// What leaves the last block.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadForm {
    /// Stem of the norm of what leaves the last block.
    pub norm: &'static str,
    /// `output`, the projection to logits. A file without an optional one projects by its token embedding.
    pub output: Presence,
    /// Bias of the logits.
    pub bias: Presence,
    /// What `logit_scale` does to the logits, where present and not 0.
    pub logit_scale: LogitScale,
    /// Whether `final_logit_softcapping` bounds the logits.
    pub softcap: KeyUse,
}

/// What `logit_scale` does to the logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogitScale {
    /// Nothing.
    None,
    /// It multiplies them.
    Factor,
    /// It divides them.
    Divisor,
    /// It is ignored: the factor is this divided by `embedding_length`.
    OverWidth(f32),
}
