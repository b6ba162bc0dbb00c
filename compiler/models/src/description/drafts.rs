//! Draft blocks, which follow the last layer and predict further tokens (multi-token prediction).

/// Draft blocks: the last `nextn_predict_layers` of `block_count`. The input of each is
/// `nextn.eh_proj · [nextn.enorm(embedding); nextn.hnorm(hidden state)]`, of the next token and of the hidden state of
/// the model or the draft block before. An ordinary layer with attention follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftForm {
    /// The hidden state that a draft block reads.
    pub input: DraftInput,
    /// Candidate tensors of the output norm. The first one in the file is used. Without any, the model's own norm is
    /// used.
    pub norms: &'static [&'static str],
}

impl DraftForm {
    /// The choices of most architectures: the normalised hidden state, and a norm per block.
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
