//! The input of the first layer.

use super::presence::{KeyUse, Presence};

/// The input of the first layer.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingForm {
    /// `token_embd`, the table. A file without it uses the matrix of the projection to logits.
    pub table: Presence,
    /// Factor on the token embedding.
    pub scale: EmbeddingScale,
    /// `token_embd_norm`, a norm of the token embedding.
    pub norm: Presence,
    /// True if the token embedding is normalised without a weight.
    pub plain_norm: bool,
    /// Use of `embedding_length_per_layer_input`, the width of embeddings per layer: `per_layer_*`, and in layers
    /// `inp_gate`, `proj` and `post_norm`.
    pub per_layer: KeyUse,
    /// Use of `ple.layers`, which names the layer that reads embeddings of n-grams. Hashes by `ple.layer_multipliers`
    /// select rows of `per_layer_token_embd`. For [`Residual::Hyper`](super::Residual).
    pub ngrams: KeyUse,
    /// `position_embd`, a learned vector per position, added to the token embedding.
    pub positions: Presence,
}

/// Factor on the token embedding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EmbeddingScale {
    /// No factor.
    One,
    /// `√embedding_length`
    RootOfWidth,
    /// `embedding_scale`, if present and not 0.
    Key,
    /// `embedding_scale`, or this number if the key is missing. 0 means no factor.
    KeyOr(f32),
    /// This number.
    Fixed(f32),
}
