//! The specification of a synthetic model.

use std::fmt;

use super::types::FileType;
use tpc_gguf::MetaValue;
use tpc_models::{Arch, WeightForms};

/// The sizes and choices of a synthetic model. [`Spec::parse`] reads and checks them.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The architecture.
    pub arch: &'static Arch,
    /// `general.name`: the preset's name, or a name derived from the architecture.
    pub name: String,
    /// Number of layers.
    pub layers: u64,
    /// Number of draft blocks, which follow the layers.
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
    /// The experts, if the model is a mixture of experts.
    pub experts: Option<Experts>,
    /// Number of tokens in the vocabulary.
    pub vocab: u64,
    /// Trained context, in tokens.
    pub ctx: u64,
    /// Sliding window, in tokens.
    pub window: Option<u64>,
    /// Seed of the weights.
    pub seed: u64,
    /// The file type, which decides the element types.
    pub file_type: FileType,
    /// The choice of optional tensors.
    pub optionals: Optionals,
    /// The projection to logits.
    pub head: Head,
    /// The forms of weights that files store in different ways.
    pub forms: WeightForms,
    /// The contents of the file.
    pub contents: Contents,
    /// Metadata with full keys. They replace the metadata computed from the sizes.
    pub metadata: Vec<(String, MetaValue)>,
}

/// A number for all layers, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerLayer {
    /// The same number for all layers.
    Same(u64),
    /// One number per layer.
    Each(Vec<u64>),
}

impl PerLayer {
    /// Returns the number of a layer; 0 beyond the end of the list.
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
    /// Number of experts.
    pub count: u64,
    /// Experts per token.
    pub used: u64,
}

/// The optional tensors of a model: biases, norms, rotary factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optionals {
    /// The model lacks all optional tensors.
    Without,
    /// The model has all optional tensors.
    With,
}

/// The projection to logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The token embedding.
    Tied,
    /// The tensor `output`.
    Own,
}

/// The contents of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Metadata and tensor infos only.
    Header,
    /// Metadata, tensor infos and tensor data.
    Data,
}
