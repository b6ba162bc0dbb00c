//! The projection to logits.

use super::presence::{KeyUse, Presence};

/// The projection to logits.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadForm {
    /// Tensor of the norm on the output of the last layer, if it has one.
    pub norm: Option<&'static str>,
    /// `output`, the matrix. A file without it uses the token embedding.
    pub output: Presence,
    /// Bias of the logits.
    pub bias: Presence,
    /// The effect of `logit_scale`, if present and not 0.
    pub logit_scale: LogitScale,
    /// Use of `final_logit_softcapping`, the bound of the logits.
    pub softcap: KeyUse,
}

/// The effect of `logit_scale` on the logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogitScale {
    /// No factor.
    None,
    /// It multiplies them.
    Factor,
    /// It multiplies them; without the key this number does.
    FactorOr(f32),
    /// It divides them.
    Divisor,
    /// It divides them; without the key this number divided by `embedding_length` does.
    DivisorOrOverWidth(f32),
    /// No key: the factor is this number divided by `embedding_length`.
    OverWidth(f32),
}
