//! Blocks after the last layer that guess further tokens ahead (multi-token prediction).

/// Blocks that guess further tokens ahead: the last `nextn_predict_layers` of `block_count`. Each reads the token that
/// follows those it has seen, beside what the model, or the block before it, makes of these:
/// `nextn.eh_proj · [nextn.enorm(embedding); nextn.hnorm(hidden state)]` enters an ordinary block with attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftForm {
    /// What they make of what the model, or the block before, hands on.
    pub input: DraftInput,
    /// Stems of the norm of what leaves such a block, of which the first that the file has counts; the model's own where
    /// it has none.
    pub norms: &'static [&'static str],
}

impl DraftForm {
    /// The choices of most: the hidden state that is projected to logits, and a norm of each block's own.
    pub const CLASSIC: DraftForm = DraftForm {
        input: DraftInput::Normed,
        norms: &["nextn.shared_head_norm"],
    };
}

/// The hidden state that is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftInput {
    /// After the norm: what is projected to logits.
    Normed,
    /// Before it: the residual stream.
    Residual,
}
