//! Resolves options to the place of every layer, and of single weights and states.

use std::collections::BTreeMap;

use tpc_ir::op::{Expr, Role, Slot};
use tpc_ir::{Bindings, Graph, Inst, InstData, Op, Value};
use tpc_passes::layers::{Prologue, Section};
use tpc_passes::place::{LayerPlace, LayerPlacement, PlaceOverride};

use super::{HostExperts, Override, Placement, Target, Unit, by_bytes, by_layers};
use tpc_diag::Diagnostic;

/// A placement resolved for a graph.
#[derive(Clone, Debug)]
pub struct ResolvedPlacement {
    /// Places of layers, and of single weights and states.
    pub layer_placement: LayerPlacement,
    /// Number of tensors placed by each override.
    pub override_matches: Vec<usize>,
    /// Number of expert tensors that `--n-cpu-moe` or `--cpu-moe` keep on the host.
    pub host_expert_tensors: usize,
}

/// Resolves the placement for a graph of `n_layer` blocks in these stages.
///
/// `stage_weights` divides the layers among stages: by number if the placement has proportions, otherwise by bytes.
/// `batch` gives the cache sizes.
pub fn resolve(
    graph: &Graph,
    n_layer: u64,
    placement: &Placement,
    overridden: &OverriddenPlaces,
    stages: Vec<Vec<usize>>,
    stage_weights: &[f64],
    batch: &Bindings,
) -> ResolvedPlacement {
    let n = usize::try_from(n_layer).unwrap_or(usize::MAX).min(1 << 16);
    let mut out = ResolvedPlacement {
        layer_placement: LayerPlacement::single_stage(placement.devices.len()),
        override_matches: overridden.matches.clone(),
        host_expert_tensors: overridden.host_expert_tensors,
    };
    let overrides = overridden.places.clone();
    // The first layers stay on the host. The output counts as the last layer.
    let on_host = placement
        .n_gpu_layers
        .map_or(0, |kept| (n as u64 + 1).saturating_sub(kept)) as usize;
    let mut units = units(graph, n, &overrides, batch);
    // The prologue is placed with the first layer.
    if on_host > 0 {
        let gone = &mut units[..=on_host.min(n + 1)];
        gone.iter_mut().for_each(|u| u.bytes = 0);
    }
    // Given proportions count layers, as in llama.cpp. Without proportions, stages balance bytes.
    let stage = match placement.tensor_split {
        Some(_) => by_layers(&units, stage_weights),
        None => by_bytes(&units, stage_weights),
    };
    let on_stage = |unit: usize| LayerPlace::Stage(stage.get(unit).copied().unwrap_or(0));
    let place = |unit: usize, host: bool| {
        if host {
            LayerPlace::Host
        } else {
            on_stage(unit)
        }
    };
    out.layer_placement = LayerPlacement {
        stages,
        prologue: place(0, on_host > 0),
        layers: (0..n).map(|l| place(l + 1, l < on_host)).collect(),
        epilogue: place(n + 1, on_host > n),
        overrides,
    };
    out
}

/// Weights and states with their own place, which does not depend on the way.
#[derive(Clone, Debug)]
pub struct OverriddenPlaces {
    places: BTreeMap<Value, PlaceOverride>,
    matches: Vec<usize>,
    host_expert_tensors: usize,
}

/// Maximum backtracking steps of all patterns on all tensors.
const PATTERN_STEPS: usize = 20_000_000;

/// Matches the patterns against a graph's tensors, once for all ways.
///
/// # Errors
/// Returns TPC0410 if a pattern exceeds its part of the step limit.
pub fn overridden(graph: &Graph, placement: &Placement) -> Result<OverriddenPlaces, Diagnostic> {
    let mut out = OverriddenPlaces {
        places: BTreeMap::new(),
        matches: vec![0; placement.overrides.len()],
        host_expert_tensors: 0,
    };
    let tensors = graph.insts().filter(|(_, d)| matches!(d.op, Op::Weight(_)));
    let matches = tensors.count().saturating_mul(placement.overrides.len());
    let steps = PATTERN_STEPS / matches.max(1);
    let patterns: Vec<Override> = placement
        .overrides
        .iter()
        .map(|o| o.with_step_limit(steps))
        .collect();
    let experts = experts(graph, placement.host_experts);
    for (_, data) in graph.insts() {
        let Some(&v) = data.results.first() else {
            continue;
        };
        match &data.op {
            Op::Weight(w) => {
                if let Some((i, o)) = first_match(&patterns, &w.tensor)? {
                    out.matches[i] += 1;
                    let place = match o.target {
                        Target::Host => PlaceOverride::Host,
                        Target::Device(d) => PlaceOverride::Device(d),
                        Target::Mirrored => PlaceOverride::Mirrored,
                    };
                    out.places.insert(v, place);
                } else if experts.contains(&v) {
                    out.host_expert_tensors += 1;
                    out.places.insert(v, PlaceOverride::Host);
                }
            }
            // Only caches stay on the host. Recurrent states do not, because every token reads and writes the whole
            // state.
            Op::State(_) if placement.kv_on_host && graph.value(v).ty.counts_cells() => {
                out.places.insert(v, PlaceOverride::Host);
            }
            _ => {}
        }
    }
    Ok(out)
}

fn first_match<'a>(
    overrides: &'a [Override],
    name: &str,
) -> Result<Option<(usize, &'a Override)>, Diagnostic> {
    for (i, o) in overrides.iter().enumerate() {
        if o.matches(name)? {
            return Ok(Some((i, o)));
        }
    }
    Ok(None)
}

/// Lists the expert weights of all layers.
pub fn expert_weights(graph: &Graph) -> Vec<Value> {
    experts(graph, HostExperts::All)
}

/// Lists the expert weights of these layers: weights that an index of experts selects from.
fn experts(graph: &Graph, layers: HostExperts) -> Vec<Value> {
    let selected = |(_, d): (Inst, &InstData)| {
        if d.layer.is_none_or(|l| !layers.contains(u64::from(l))) {
            return None;
        }
        let types = |vs: &[Value]| -> Vec<_> { vs.iter().map(|&v| &graph.value(v).ty).collect() };
        let rule = d.op.rule(&types(&d.operands), &types(&d.results));
        rule.roles
            .iter()
            .find_map(|(role, expr)| match (role, expr) {
                (Role::Expert, Expr::Axis(Slot::Operand(o), _)) => Some(d.operands[*o]),
                _ => None,
            })
    };
    let source = |mut v: Value| {
        while !graph.def_op(v).is_leaf() && graph.inst(graph.value(v).def.0).operands.len() == 1 {
            v = graph.inst(graph.value(v).def.0).operands[0];
        }
        v
    };
    graph.insts().filter_map(selected).map(source).collect()
}

/// Counts the bytes of the prologue, each layer and the epilogue, without overridden tensors.
fn units(
    graph: &Graph,
    n_layer: usize,
    overrides: &BTreeMap<Value, PlaceOverride>,
    batch: &Bindings,
) -> Vec<Unit> {
    let mut out = vec![Unit::default(); n_layer + 2];
    let prologue = Prologue::of_graph(graph);
    let shared = prologue.shared_weights(graph);
    for (inst, data) in graph.insts() {
        if !data.op.is_stored() || overrides.contains_key(&data.results[0]) {
            continue;
        }
        let unit = match prologue.section(inst, data.layer) {
            Section::Prologue => 0,
            Section::Layer(l) => (l as usize).min(n_layer.saturating_sub(1)) + 1,
            Section::Epilogue => n_layer + 1,
        };
        let bytes = graph.value(data.results[0]).ty.bytes(batch).unwrap_or(0);
        out[unit].bytes = out[unit].bytes.saturating_add(bytes);
        if shared.contains(&data.results[0]) {
            let epilogue = &mut out[n_layer + 1].bytes;
            *epilogue = epilogue.saturating_add(bytes);
        }
    }
    out
}
