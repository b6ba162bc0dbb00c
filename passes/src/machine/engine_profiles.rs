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

    /// Returns an engine's profile, with the machine's calibration if measured.
    pub fn on(engine: Engine, topology: &Topology) -> EngineProfile {
        let profile = EngineProfile::of(engine);
        match topology.calibration_for(engine) {
            Some(calibration) => calibration.apply_to(profile),
            None => *profile,
        }
    }
}

/// tpc's profile: a design target with llama.cpp's kernels. On an H200, tpc's kernels decode as fast as this estimate;
/// prompts take 5 to 16 times as long. Reductions are one-shot kernels of the program instead of calls between programs.
static TPC: EngineProfile = EngineProfile {
    reduction_latencies: 1.0,
    reduction_growth: 0.5,
    handover_us: 20.0,
    ..fitted::LLAMA_CPP
};
