use std::fmt;

use super::types::FileType;
use tpc_gguf::MetaValue;
use tpc_models::{Arch, WeightForms};

/// The sizes and choices of a synthetic model, checked by [`Spec::parse`].
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The architecture.
    pub arch: &'static Arch,
    /// The `general.name`: the name of the preset, or a name derived from the architecture.
    pub name: String,
    /// The number of layers.
    pub layers: u64,
    /// The number of draft blocks after the layers.
    pub drafts: u64,
    /// The width of the residual stream.
    pub embd: u64,
    /// The number of query heads.
    pub heads: PerLayer,
    /// The number of KV heads.
    pub kv_heads: PerLayer,
    /// The number of elements per head.
    pub head_dim: u64,
    /// The width of the feed-forward network, or of an expert.
    pub ff: PerLayer,
    /// The experts of a mixture of experts.
    pub experts: Option<Experts>,
    /// The number of tokens in the vocabulary.
    pub vocab: u64,
    /// The training context, in tokens.
    pub ctx: u64,
    /// The sliding window, in tokens.
    pub window: Option<u64>,
    /// The seed of the weights.
    pub seed: u64,
    /// The number of random rows per tensor, which the other rows repeat; `None`: all rows are random.
    pub rows: Option<u64>,
    /// The file type, which determines element types.
    pub file_type: FileType,
    /// Optional tensors.
    pub optionals: Optionals,
    /// The projection to logits.
    pub head: Head,
    /// The forms of weights that files store in several ways.
    pub forms: WeightForms,
    /// The file's contents.
    pub contents: Contents,
    /// Metadata with full keys, which replaces computed metadata.
    pub metadata: Vec<(String, MetaValue)>,
}

/// A number for all layers, or one number per layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerLayer {
    /// The same number for all layers.
    Same(u64),
    /// One number per layer.
    Each(Vec<u64>),
}

impl PerLayer {
    /// Returns the number of a layer; 0 beyond the list.
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

/// The counts of a mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// The number of experts.
    pub count: u64,
    /// The number of experts per token.
    pub used: u64,
}

/// Optional tensors: biases, norms, rotary factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optionals {
    /// No optional tensors.
    Without,
    /// All optional tensors.
    With,
}

/// The projection to logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The token embedding matrix.
    Tied,
    /// The tensor `output`.
    Own,
}

/// The contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Metadata and tensor infos.
    Header,
    /// Metadata, tensor infos and tensor data.
    Data,
}
