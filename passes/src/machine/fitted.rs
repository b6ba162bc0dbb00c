//! Constants of engines, fitted to published speeds by `fit-cost`, which writes this file.

use super::profile::{EngineProfile, ErrorBand};

/// llama.cpp.
pub(super) const LLAMA_CPP: EngineProfile = EngineProfile {
    product_us: 5.62,
    attention_us: 35.4,
    light_us: 0.0500,
    token_us: 41.4,
    matrix_factor: 16.8,
    bandwidth_share: 0.884,
    bytes_per_cycle: 6.16,
    scattered_bytes_per_cycle: 3.09,
    no_dot_share: 0.511,
    matrix_share: 0.628,
    attention_share: 0.239,
    score_bytes: 0.0,
    unpack_cycles: 0.488,
    ported_share: 0.687,
    host_share: 0.516,
    host_us: 16.0,
    host_link_share: 0.618,
    reduction_latencies: 1.07,
    reduction_growth: 1.22,
    link_share: 0.278,
    handover_us: 95.9,
    overlap: 0.426,
    error: ErrorBand {
        alone: 0.0806,
        layer: 0.0450,
        tensor: 0.124,
        host: 0.0784,
    },
};

/// ik_llama.cpp.
pub(super) const IK_LLAMA_CPP: EngineProfile = EngineProfile {
    product_us: 4.89,
    attention_us: 30.8,
    light_us: 0.0435,
    matrix_share: 0.843,
    attention_share: 0.321,
    unpack_cycles: 0.364,
    reduction_latencies: 0.349,
    link_share: 1.39,
    error: ErrorBand {
        alone: 0.146,
        layer: 0.181,
        tensor: 0.0864,
        host: 0.0434,
    },
    ..LLAMA_CPP
};
