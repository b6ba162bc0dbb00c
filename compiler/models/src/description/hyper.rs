/// The connection of sublayers with `hyper_connection.count` parallel residual streams (hyper-connections).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyperForm {
    /// A sublayer reads the gated sum of the streams. Its output, times another gate, is added to each stream. Gates
    /// are sigmoids of the product of `hc_attn_fn` or `hc_ffn_fn` with the norm of all streams together. The model's
    /// output reads the sum with the weights `output_hc_fn`.
    Gated,
    /// Same as [`Self::Gated`], but the output is added to a mixture of all streams. A matrix per token, computed from
    /// further gates, mixes the streams. Its columns and rows are normalised `hyper_connection.sinkhorn_iterations`
    /// times.
    Mixed(StreamsEnd),
    /// A sublayer reads the gated mean of the streams, each normalised by `hc_attn_norm` or `hc_ffn_norm`. The gates
    /// are sigmoids of rank `hyper_connection.low_rank`, from `hc_attn_down` and `hc_attn_up`. The sublayer's output,
    /// times a sigmoid from `hc_attn_inject`, is added to each stream. The model's output reads a gated mean too,
    /// `output_hc_norm`, without a further norm.
    LowRank,
}

/// Combination of the streams that the output reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamsEnd {
    /// Sum with the weights `output_hc_fn`.
    Gated,
    /// Mean of the streams.
    Mean,
}
