//! Parallel residual streams (hyper-connections).

/// The connection of sublayers and `hyper_connection.count` parallel streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyperForm {
    /// A sublayer reads the gated sum of the streams; its output is added to each, times another gate. Gates are
    /// sigmoids of the product of `hc_attn_fn` or `hc_ffn_fn` with the norm of all streams together. The model's output
    /// reads the sum that `output_hc_fn` weights.
    Gated,
    /// Same as [`Self::Gated`], but the output is added to a mixture of all streams. A matrix per token, computed from
    /// further gates, mixes them. Its columns and rows are normalised `hyper_connection.sinkhorn_iterations` times.
    Mixed(StreamsEnd),
    /// A sublayer reads the gated mean of the streams, each normalised by `hc_attn_norm` or `hc_ffn_norm`. The gates
    /// are sigmoids of rank `hyper_connection.low_rank`, from `hc_attn_down` and `hc_attn_up`. The sublayer's output is
    /// added to each stream times a sigmoid from `hc_attn_inject`. The model's output reads such a mean too,
    /// `output_hc_norm`, without a further norm.
    LowRank,
}

/// The part of the streams that the output reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamsEnd {
    /// The sum that `output_hc_fn` weights.
    Gated,
    /// Their mean.
    Mean,
}
