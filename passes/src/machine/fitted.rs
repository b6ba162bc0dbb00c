//! Constants of engines, fitted to published speeds by `fit-cost`, which writes this file.

use super::profile::{EngineProfile, ErrorBand};

/// llama.cpp.
pub(super) const LLAMA_CPP: EngineProfile = EngineProfile {
    product_us: 5.73,
    attention_us: 31.6,
    light_us: 0.0500,
    token_us: 84.5,
    matrix_factor: 22.0,
    bandwidth_share: 0.899,
    bytes_per_cycle: 6.13,
    scattered_bytes_per_cycle: 3.29,
    no_dot_share: 0.502,
    matrix_share: 0.804,
    attention_share: 0.375,
    expert_share: 0.319,
    unpack_cycles: 0.119,
    ported_share: 0.649,
    host_share: 0.515,
    host_us: 12.2,
    host_link_share: 0.634,
    reduction_latencies: 1.20,
    reduction_growth: 1.00,
    link_share: 0.449,
    handover_us: 138.0,
    overlap: 0.444,
    score_bytes: 0.0,
    error: ErrorBand {
        alone: 0.0822,
        layer: 0.0492,
        tensor: 0.139,
        host: 0.164,
    },
};

/// ik_llama.cpp.
pub(super) const IK_LLAMA_CPP: EngineProfile = EngineProfile {
    product_us: 6.94,
    attention_us: 38.3,
    light_us: 0.0605,
    matrix_share: 0.781,
    attention_share: 0.364,
    unpack_cycles: 0.123,
    reduction_latencies: 0.339,
    link_share: 1.62,
    error: ErrorBand {
        alone: 0.186,
        layer: 0.164,
        tensor: 0.221,
        host: 0.0484,
    },
    ..LLAMA_CPP
};
