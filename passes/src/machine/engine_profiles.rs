//! The profile of each engine: as fitted to published speeds, and as measured on one machine.

use super::{Engine, EngineProfile, Topology, fitted};

impl EngineProfile {
    /// Returns the profile of an engine.
    pub const fn of(engine: Engine) -> &'static EngineProfile {
        match engine {
            Engine::Tpc => &TPC,
            Engine::LlamaCpp => &fitted::LLAMA_CPP,
            Engine::IkLlamaCpp => &fitted::IK_LLAMA_CPP,
        }
    }

    /// Returns the profile of an engine on a machine, with the constants measured on that machine.
    pub fn on(engine: Engine, topology: &Topology) -> EngineProfile {
        let profile = EngineProfile::of(engine);
        match topology.calibration_for(engine) {
            Some(calibration) => calibration.apply_to(profile),
            None => *profile,
        }
    }
}

/// tpc's own: a design target, since its kernels are not measured yet. Kernels as llama.cpp's, which is the least that they
/// are built for; one-shot reductions in the program itself instead of a call between programs.
static TPC: EngineProfile = EngineProfile {
    reduction_latencies: 1.0,
    reduction_growth: 0.5,
    handover_us: 20.0,
    ..fitted::LLAMA_CPP
};
