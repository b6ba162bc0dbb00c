use super::presence::{KeyUse, Presence};

/// The input of the first layer.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingForm {
    /// `token_embd`, the table; without it, the matrix of the projection to logits.
    pub table: Presence,
    /// Factor on the token embedding.
    pub scale: EmbeddingScale,
    /// `token_embd_norm`, a norm of the sum of all embeddings.
    pub norm: Presence,
    /// True if the embedding has a norm without weight.
    pub plain_norm: bool,
    /// `embedding_length_per_layer_input`: width of the embeddings per layer. Tensors: `per_layer_*`, and in layers
    /// `inp_gate`, `proj` and `post_norm`.
    pub per_layer: KeyUse,
    /// `per_layer_token_embd`, the embeddings per layer by token. Without it, they are only the projection.
    pub per_layer_tokens: Presence,
    /// `ple.layers`: the layer that reads n-gram embeddings, with [`Residual::Hyper`](super::Residual). Hashes by
    /// `ple.layer_multipliers` select rows of `per_layer_token_embd`.
    pub ngrams: KeyUse,
    /// `position_embd`, a learned vector per position, added to the embedding.
    pub positions: Presence,
    /// `token_types`: the first of `tokenizer.ggml.token_type_count` vectors is added to the embedding.
    pub types: Presence,
}

/// Factor on the token embedding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EmbeddingScale {
    /// No factor.
    One,
    /// `√embedding_length`
    RootOfWidth,
    /// `embedding_scale` (0: off).
    Key,
    /// `embedding_scale` (0: off), or else this number.
    KeyOr(f32),
    /// A fixed number.
    Fixed(f32),
}
