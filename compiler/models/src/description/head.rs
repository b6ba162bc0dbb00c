use super::presence::{KeyUse, Presence};

/// The projection to logits.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadForm {
    /// Norm tensor of the last layer's output, if any.
    pub norm: Option<&'static str>,
    /// `output`, the matrix; without it, the token embedding.
    pub output: Presence,
    /// Bias of the logits.
    pub bias: Presence,
    /// Effect of `logit_scale` (0: off).
    pub logit_scale: LogitScale,
    /// `final_logit_softcapping`: bound of the logits.
    pub softcap: KeyUse,
}

/// Effect of `logit_scale` on the logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogitScale {
    /// No factor.
    None,
    /// Multiplies logits by the key's value.
    Factor,
    /// Multiplies logits by the key's value, or by this number without the key.
    FactorOr(f32),
    /// Divides logits by the key's value.
    Divisor,
    /// Divides logits by the key's value, or without the key by this number divided by `embedding_length`.
    DivisorOrOverWidth(f32),
    /// Multiplies logits by this number divided by `embedding_length`, without a key.
    OverWidth(f32),
}
