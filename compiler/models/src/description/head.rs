use super::presence::{KeyUse, Presence};

/// The end of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadForm {
    /// The result of the model.
    pub result: ModelResult,
    /// Scores of a text, from its pooled embedding.
    pub scores: ScoreForm,
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
    /// `final_logit_sigmoid_capping`, `[a, b, c]`: the logits are `a σ((x + b) / c)`. If `a` or `c` is 0: off.
    pub sigmoid: KeyUse,
    /// Tokens that a text model never generates: the first, and the first after. Their logits are the lowest number.
    pub hidden: Option<[u64; 2]>,
}

/// The result of a model for each output token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelResult {
    /// Logits of the vocabulary.
    Logits,
    /// The last hidden state after the norm, an embedding. `output` is ignored.
    Hidden,
    /// An embedding of `embedding_length_out` numbers, by default `embedding_length`: the product of `output` with the
    /// last hidden state after the norm.
    Projected,
}

/// Scores of a text from its pooled embedding: `cls`, the function, `cls.norm`, `cls.output`, each if the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreForm {
    /// Hyperbolic tangent.
    Tanh,
    /// The exact GELU of the mean of all tokens.
    GeluOfMean,
    /// Same as [`Self::Tanh`]; the scores are probabilities.
    Probabilities,
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
