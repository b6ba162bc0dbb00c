//! The profile of each engine, fitted to published speeds or measured on one machine.

use super::{Engine, EngineProfile, Topology, fitted};

impl EngineProfile {
    /// Returns an engine's profile.
    pub const fn of(engine: Engine) -> &'static EngineProfile {
        match engine {
            Engine::Tpc => &TPC,
            Engine::LlamaCpp => &fitted::LLAMA_CPP,
            Engine::IkLlamaCpp => &fitted::IK_LLAMA_CPP,
        }
    }

    /// Returns an engine's profile with the constants measured on a machine.
    pub fn on(engine: Engine, topology: &Topology) -> EngineProfile {
        let profile = EngineProfile::of(engine);
        match topology.calibration_for(engine) {
            Some(calibration) => calibration.apply_to(profile),
            None => *profile,
        }
    }
}

/// tpc's profile: a design target, since its kernels are not measured yet. Kernels as in llama.cpp, the minimum goal;
/// one-shot reductions in the program instead of a call between programs.
static TPC: EngineProfile = EngineProfile {
    reduction_latencies: 1.0,
    reduction_growth: 0.5,
    handover_us: 20.0,
    ..fitted::LLAMA_CPP
};
