//! The projection to logits.

use super::presence::{KeyUse, Presence};

/// The projection to logits.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadForm {
    /// The norm tensor of the last layer's output, if any.
    pub norm: Option<&'static str>,
    /// `output`, the matrix; without it the token embedding.
    pub output: Presence,
    /// Bias of the logits.
    pub bias: Presence,
    /// The effect of `logit_scale` (0: off).
    pub logit_scale: LogitScale,
    /// `final_logit_softcapping`, the bound of the logits.
    pub softcap: KeyUse,
}

/// The effect of `logit_scale` on the logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogitScale {
    /// No factor.
    None,
    /// Logits are multiplied by the key's value.
    Factor,
    /// Logits are multiplied by the key's value, or by this number without the key.
    FactorOr(f32),
    /// Logits are divided by the key's value.
    Divisor,
    /// Logits are divided by the key's value, or without the key by this number divided by `embedding_length`.
    DivisorOrOverWidth(f32),
    /// No key: this number divided by `embedding_length` multiplies them.
    OverWidth(f32),
}
