//! Attention to rows that are keys and values at once, of tokens and of blocks of tokens.

/// Attention of all heads to one row per token of the window, `attn_kv`, which is key and value, and to one row per block
/// of consecutive tokens of the whole sequence. `attention.compress_ratios` gives the tokens of a block per layer; layers
/// where it is 0 have no blocks.
///
/// The row of a block is the sum of the products `attn_compressor_kv` with its tokens, weighted per element by a softmax of
/// those of `attn_compressor_gate` plus `attn_compressor_ape`, normalised, and rotated to its first token. The last part of
/// rows is rotated, and that of the output back. The output is projected by `attn_output_a`, in
/// `attention.output_group_count` groups of heads, and then by `attn_output_b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedForm {
    /// Tokens of blocks whose rows also take in the tokens of the block before, by products of their own, and of which the
    /// indexer selects the `attention.indexer.top_k` best. Its keys are rows of blocks too, of `indexer_compressor_kv`.
    pub indexed: u64,
    /// Tokens of blocks that a token attends to all of.
    pub plain: u64,
}
