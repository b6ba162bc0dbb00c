//! What a model is to be like.

use std::fmt;

use super::types::Types;
use tpc_gguf::MetaValue;
use tpc_models::{Arch, WeightForms};

/// The sizes and choices of a synthetic model. [`Spec::parse`] makes them from text and checks them.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The architecture.
    pub arch: &'static Arch,
    /// `general.name`: the preset's name, or one of the architecture.
    pub name: String,
    /// Number of layers.
    pub layers: u64,
    /// Number of blocks after them that guess further tokens ahead.
    pub drafts: u64,
    /// Width of the residual stream.
    pub embd: u64,
    /// Query heads.
    pub heads: PerLayer,
    /// KV heads.
    pub kv_heads: PerLayer,
    /// Elements of a head.
    pub head_dim: u64,
    /// Width of the feed-forward network, or of one expert.
    pub ff: PerLayer,
    /// The experts, if there are any.
    pub experts: Option<Experts>,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Context that the model is trained for, in tokens.
    pub ctx: u64,
    /// Sliding window, in tokens.
    pub window: Option<u64>,
    /// Seed of the weights.
    pub seed: u64,
    /// Element types.
    pub types: Types,
    /// Tensors that the model can do without.
    pub optionals: Optionals,
    /// Where the projection to logits comes from.
    pub head: Head,
    /// Form of the weights that files hold in one of several.
    pub forms: WeightForms,
    /// Whether there are data.
    pub contents: Contents,
    /// Metadata given by their full keys, which replace those that follow from the sizes.
    pub metadata: Vec<(String, MetaValue)>,
}

/// A number for all layers, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerLayer {
    /// The same in all.
    Same(u64),
    /// One per layer.
    Each(Vec<u64>),
}

impl PerLayer {
    /// That of a layer; of one beyond the list, 0.
    pub fn at(&self, layer: u64) -> u64 {
        match self {
            PerLayer::Same(n) => *n,
            PerLayer::Each(list) => {
                let layer = usize::try_from(layer).unwrap_or(usize::MAX);
                list.get(layer).copied().unwrap_or(0)
            }
        }
    }
}

impl fmt::Display for PerLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerLayer::Same(n) => n.fmt(f),
            PerLayer::Each(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                f.write_str(&list.join("/"))
            }
        }
    }
}

/// Counts of a mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How many there are.
    pub count: u64,
    /// How many each token uses.
    pub used: u64,
}

/// Whether the model has tensors that it can do without: biases, norms, rotary factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optionals {
    /// None.
    Without,
    /// All.
    With,
}

/// Where the projection to logits comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// It is the token embedding.
    Tied,
    /// It is `output`.
    Own,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Metadata and tensor infos only.
    Header,
    /// The data too.
    Data,
}
