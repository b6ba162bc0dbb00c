/// Draft blocks (multi-token prediction): the last `nextn_predict_layers` of `block_count`. Each reads `nextn.eh_proj ·
/// [nextn.enorm(embedding); nextn.hnorm(hidden state)]`, with the embedding of the next token and the hidden state of
/// the model or the previous draft block. An ordinary layer with attention follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftForm {
    /// Hidden state that a block reads.
    pub input: DraftInput,
    /// Candidate tensors of the output norm: the first in the file, or else the model's norm.
    pub norms: &'static [&'static str],
    /// Kind of the output norm.
    pub norm: DraftNorm,
}

impl DraftForm {
    /// Choices of most architectures: the normalised hidden state, and a norm per block.
    pub const CLASSIC: DraftForm = DraftForm {
        input: DraftInput::Normalised,
        norms: &["nextn.shared_head_norm"],
        norm: DraftNorm::Model,
    };
}

/// Kind of a draft block's output norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftNorm {
    /// The model's.
    Model,
    /// A layer norm without a bias, with `attention.layer_norm_epsilon`.
    Layer,
}

/// Hidden state that a draft block reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftInput {
    /// Input of the projection to logits, after the norm.
    Normalised,
    /// Residual stream, before the norm.
    Residual,
}
