//! Constants of engines, fitted to published speeds and printed by `fit-cost --fit`.

use super::CardClass;
use super::profile::{ClassFactors, EngineProfile, ErrorBand};

/// llama.cpp.
pub(super) const LLAMA_CPP: EngineProfile = EngineProfile {
    product_us: 5.10,
    attention_us: 8.50,
    recurrent_us: 0.500,
    shared_recurrent_us: 8.35,
    light_us: 0.767,
    token_us: 5.02,
    matrix_factor: 17.0,
    bandwidth_share: 0.900,
    bytes_per_cycle: 6.07,
    scattered_bytes_per_cycle: 3.01,
    no_dot_share: 0.524,
    matrix_share: 0.483,
    attention_share: 0.361,
    expert_share: 0.434,
    unpack_cycles: 0.203,
    ported_share: 0.620,
    host_share: 0.540,
    host_us: 17.7,
    host_link_share: 0.322,
    reduction_latencies: 0.757,
    old_reductions: 25.8,
    reduction_growth: 1.00,
    link_share: 1.02,
    handover_us: 308.0,
    overlap: 0.903,
    score_bytes: 0.0,
    classes: ClassFactors::new(&[
        (CardClass::PascalHbm, 0.795, 1.00),
        (CardClass::Pascal, 0.807, 1.37),
        (CardClass::Volta, 0.779, 1.26),
        (CardClass::Turing, 0.890, 0.501),
        (CardClass::AmpereGddr, 0.945, 1.30),
        (CardClass::AmpereHbm, 0.908, 1.36),
        (CardClass::Ada, 1.01, 1.16),
        (CardClass::Hopper, 0.951, 1.01),
        (CardClass::BlackwellGddr, 1.07, 1.38),
        (CardClass::BlackwellHbm, 1.04, 1.00),
        (CardClass::UnifiedNvidia, 0.947, 2.02),
        (CardClass::Polaris, 1.24, 0.931),
        (CardClass::Rdna3, 1.17, 1.41),
        (CardClass::Rdna4, 1.28, 1.09),
        (CardClass::Cdna, 0.519, 0.300),
        (CardClass::Battlemage, 1.64, 0.394),
    ]),
    error: ErrorBand {
        alone: 0.113,
        layer: 0.0650,
        tensor: 0.104,
        host: 0.0960,
    },
};

/// ik_llama.cpp.
pub(super) const IK_LLAMA_CPP: EngineProfile = EngineProfile {
    product_us: 2.37,
    attention_us: 3.94,
    recurrent_us: 0.232,
    shared_recurrent_us: 141.0,
    light_us: 0.356,
    matrix_share: 0.585,
    attention_share: 0.436,
    expert_share: 0.205,
    unpack_cycles: 0.168,
    reduction_latencies: 0.661,
    link_share: 3.44,
    error: ErrorBand {
        alone: 0.106,
        layer: 0.154,
        tensor: 0.134,
        host: 0.114,
    },
    ..LLAMA_CPP
};
