use tpc_ggml::engines::{Devices, Prediction, SplitUse};
use tpc_gguf::TensorName;
use tpc_passes::machine::Engine;

use super::Model;
use crate::placement::{Placement, Target};

/// A split mode that is not compared because the engine refuses it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExcludedMode {
    /// The mode.
    pub name: String,
    /// The engine and its release.
    pub engine: String,
    /// The reason that ends a run first.
    pub reason: Prediction,
}

/// Lists the reasons why an engine fails to split a model's tensors as requested, sorted by the time at which they end
/// a run. Empty if tpc knows no failure.
pub fn tensor_failures(engine: Engine, model: &Model, placement: &Placement) -> Vec<Prediction> {
    if engine == Engine::Tpc {
        return Vec::new();
    }
    let build = placement.build_of(engine);
    let on_host = |name: &str| is_on_host(placement, name);
    let backends = placement.backends();
    let split = placement.tensor_split.as_deref().unwrap_or_default();
    build.predict(
        &model.geometry,
        &SplitUse {
            devices: Devices {
                count: placement.devices.len(),
                proportions: split,
            },
            backends: &backends,
            caches_on_host: placement.kv_on_host,
            on_host: &on_host,
        },
    )
}

pub(crate) fn tensor_limit(
    engine: Engine,
    model: &Model,
    placement: &Placement,
) -> Option<Prediction> {
    tensor_failures(engine, model, placement).into_iter().next()
}

/// True if an override puts a tensor of this name on the host.
pub fn is_on_host(placement: &Placement, name: &str) -> bool {
    let mut overrides = placement.overrides.iter();
    if let Some(first) = overrides.find(|o| o.matches(name) == Ok(true)) {
        return first.target == Target::Host;
    }
    let Some((layer, rest)) = TensorName::parse(name).block() else {
        return false;
    };
    placement.host_experts.contains(u64::from(layer)) && rest.contains("_exps")
}
