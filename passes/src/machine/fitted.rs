//! Constants of engines, fitted to published speeds by `fit-cost`, which writes this file.

use super::profile::{EngineProfile, ErrorBand};

/// llama.cpp.
pub(super) const LLAMA_CPP: EngineProfile = EngineProfile {
    product_us: 5.60,
    attention_us: 29.9,
    light_us: 0.0500,
    token_us: 123.0,
    matrix_factor: 21.6,
    bandwidth_share: 0.896,
    bytes_per_cycle: 6.10,
    scattered_bytes_per_cycle: 3.26,
    no_dot_share: 0.505,
    matrix_share: 0.807,
    attention_share: 0.371,
    expert_share: 0.318,
    unpack_cycles: 0.116,
    ported_share: 0.622,
    host_share: 0.523,
    host_us: 18.4,
    host_link_share: 0.299,
    reduction_latencies: 1.20,
    reduction_growth: 1.00,
    link_share: 0.602,
    handover_us: 139.0,
    overlap: 0.442,
    score_bytes: 0.0,
    error: ErrorBand {
        alone: 0.0843,
        layer: 0.0485,
        tensor: 0.140,
        host: 0.168,
    },
};

/// ik_llama.cpp.
pub(super) const IK_LLAMA_CPP: EngineProfile = EngineProfile {
    product_us: 6.91,
    attention_us: 36.9,
    light_us: 0.0617,
    matrix_share: 0.786,
    attention_share: 0.361,
    unpack_cycles: 0.119,
    reduction_latencies: 0.342,
    link_share: 1.59,
    error: ErrorBand {
        alone: 0.184,
        layer: 0.168,
        tensor: 0.225,
        host: 0.0642,
    },
    ..LLAMA_CPP
};
