//! Attention to rows that are keys and values at once, of tokens and of blocks of tokens.

/// Attention of all heads to rows that are both key and value. There is one row per token of the window, `attn_kv`, and
/// one per block of consecutive tokens of the whole sequence. `attention.compress_ratios` gives the tokens of a block
/// per layer; a ratio of 0 means a layer without blocks.
///
/// The row of a block is a weighted sum of the products `attn_compressor_kv` with its tokens. The weights are, per
/// element, a softmax of the products `attn_compressor_gate` plus `attn_compressor_ape`. The row is normalised and
/// rotated to the position of its first token. The last part of rows is rotated, and the same part of the output is
/// rotated back. The output is projected by `attn_output_a`, in `attention.output_group_count` groups of heads, and
/// then by `attn_output_b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedForm {
    /// Tokens per block of the blocks that the indexer selects. The rows of these blocks also cover the block before,
    /// by separate projections. The indexer selects the `attention.indexer.top_k` best blocks. Its keys are rows of
    /// blocks too, of `indexer_compressor_kv`.
    pub indexed: u64,
    /// Tokens of blocks that a token attends to all of.
    pub plain: u64,
}
