/// Attention of all heads to rows that serve as key and value: one row per token of the window, `attn_kv`, and one per
/// block of consecutive tokens of the whole sequence. `attention.compress_ratios` gives each layer's tokens per block;
/// 0 means no blocks.
///
/// A block's row is a weighted sum of the products `attn_compressor_kv` with its tokens. The weights are, per element,
/// a softmax of the products `attn_compressor_gate` plus `attn_compressor_ape`. The row is normalised and rotated to
/// the position of its first token. Only the last part of rows is rotated; the same part of the output is rotated back.
/// `attn_output_a` projects the output in `attention.output_group_count` groups of heads, then `attn_output_b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedForm {
    /// Tokens per block in layers whose indexer selects the `attention.indexer.top_k` best blocks. A row also covers
    /// the previous block, by separate projections. The indexer's keys are rows of blocks too, from
    /// `indexer_compressor_kv`.
    pub indexed: u64,
    /// Tokens per block in layers whose tokens attend to all blocks.
    pub plain: u64,
}
