//! Draft blocks, which follow the last layer and predict further tokens (multi-token prediction).

/// The last `nextn_predict_layers` of `block_count`. Each reads `nextn.eh_proj · [nextn.enorm(embedding);
/// nextn.hnorm(hidden state)]`, of the next token and the hidden state of the model or the previous draft block. An
/// ordinary layer with attention follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftForm {
    /// The hidden state.
    pub input: DraftInput,
    /// Candidate tensors of the output norm: the first in the file, or else the model's norm.
    pub norms: &'static [&'static str],
}

impl DraftForm {
    /// Most architectures: the normalised hidden state, and a norm per block.
    pub const CLASSIC: DraftForm = DraftForm {
        input: DraftInput::Normalised,
        norms: &["nextn.shared_head_norm"],
    };
}

/// The hidden state that a draft block reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftInput {
    /// The input of the projection to logits, after the norm.
    Normalised,
    /// The residual stream, before the norm.
    Residual,
}
