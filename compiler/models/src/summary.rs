use tpc_ir::{Graph, Window};

use super::stretch::Stretch;

/// A lowered model.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredModel {
    /// The model's graph on one place.
    pub graph: Graph,
    /// Facts for reports.
    pub summary: Summary,
}

/// Facts about a model for reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The architecture's name.
    pub arch: &'static str,
    /// `general.name`, or the architecture's name.
    pub name: String,
    /// Number of layers.
    pub n_layer: u64,
    /// Draft blocks in the graph, after the layers.
    pub n_draft: u64,
    /// Draft blocks of the file outside the graph.
    pub ignored_drafts: Option<IgnoredDrafts>,
    /// Width of the residual stream, in elements.
    pub n_embd: u64,
    /// Number of tokens in the vocabulary.
    pub n_vocab: u64,
    /// Training context in tokens.
    pub n_ctx_train: u64,
    /// Context beyond `n_ctx_train` that the file's scaling reaches.
    pub stretch: Option<Stretch>,
    /// The attention window, if any layer has one.
    pub window: Option<Window>,
    /// Tensors unknown to the architecture, in file order.
    pub unused: Vec<String>,
    /// Known tensors that the graph does not use, in file order: tensors of draft blocks, and older forms of other
    /// tensors.
    pub ignored: Vec<String>,
}

impl Summary {
    /// Returns the number of layers and draft blocks in the graph.
    pub const fn n_block(&self) -> u64 {
        self.n_layer.saturating_add(self.n_draft)
    }
}

/// Draft blocks of a file outside the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredDrafts {
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of their tensors.
    pub bytes: u64,
}
