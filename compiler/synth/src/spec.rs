use std::fmt;

use super::types::FileType;
use tpc_gguf::MetaValue;
use tpc_models::{Arch, WeightForms};

/// The sizes and choices of a synthetic model, checked by [`Spec::parse`].
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The architecture.
    pub arch: &'static Arch,
    /// `general.name`: the preset's name, or one derived from the architecture.
    pub name: String,
    /// Number of layers.
    pub layers: u64,
    /// Draft blocks after the layers.
    pub drafts: u64,
    /// Width of the residual stream.
    pub embd: u64,
    /// Query heads.
    pub heads: PerLayer,
    /// KV heads.
    pub kv_heads: PerLayer,
    /// Elements of a head.
    pub head_dim: u64,
    /// Width of the feed-forward network, or of an expert.
    pub ff: PerLayer,
    /// Experts, for a mixture of experts.
    pub experts: Option<Experts>,
    /// Vocabulary size.
    pub vocab: u64,
    /// Trained context, in tokens.
    pub ctx: u64,
    /// Sliding window, in tokens.
    pub window: Option<u64>,
    /// Seed of the weights.
    pub seed: u64,
    /// The file type, which decides element types.
    pub file_type: FileType,
    /// Optional tensors.
    pub optionals: Optionals,
    /// The projection to logits.
    pub head: Head,
    /// Forms of weights that files store in several ways.
    pub forms: WeightForms,
    /// The file's contents.
    pub contents: Contents,
    /// Metadata with full keys; it replaces computed metadata.
    pub metadata: Vec<(String, MetaValue)>,
}

/// A number for all layers, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerLayer {
    /// The same number for all layers.
    Same(u64),
    /// One per layer.
    Each(Vec<u64>),
}

impl PerLayer {
    /// Returns a layer's number; 0 beyond the list.
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

/// Optional tensors: biases, norms, rotary factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optionals {
    /// The model lacks them.
    Without,
    /// All of them.
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

/// The contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Metadata and tensor infos.
    Header,
    /// Also tensor data.
    Data,
}
