//! A lowered model and the facts about it that reports show.

use tpc_ir::{Graph, Window};

use super::stretch::Stretch;

/// A lowered model.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredModel {
    /// The model on one place.
    pub graph: Graph,
    /// The facts that reports show.
    pub summary: Summary,
}

/// The facts about a model that reports show.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The architecture's name.
    pub arch: &'static str,
    /// `general.name`, or the architecture's name.
    pub name: String,
    /// Number of layers.
    pub n_layer: u64,
    /// Number of draft blocks in the graph, which follow the layers.
    pub n_draft: u64,
    /// Draft blocks of the file that are not part of the graph.
    pub ignored_drafts: Option<IgnoredDrafts>,
    /// Width of the residual stream, in elements.
    pub n_embd: u64,
    /// Number of tokens in the vocabulary.
    pub n_vocab: u64,
    /// Longest context that the model was trained for, in tokens.
    pub n_ctx_train: u64,
    /// The context that the file's scaling of the rotation reaches beyond that.
    pub stretch: Option<Stretch>,
    /// The attention window of the layers that have one; `None` if no layer does.
    pub window: Option<Window>,
    /// Tensors of the file that the architecture does not know, in file order.
    pub unused: Vec<String>,
    /// Tensors of the file that the architecture knows and the graph does not use, in file order: tensors of draft
    /// blocks, and older forms of other tensors.
    pub ignored: Vec<String>,
}

impl Summary {
    /// Returns the number of layers and draft blocks in the graph.
    pub const fn n_block(&self) -> u64 {
        self.n_layer.saturating_add(self.n_draft)
    }
}

/// Draft blocks of a file that are not part of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredDrafts {
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of their tensors.
    pub bytes: u64,
}
