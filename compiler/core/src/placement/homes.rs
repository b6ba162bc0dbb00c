//! Which part of a model lives where, by what the user asks for.

use std::collections::BTreeMap;

use tpc_ir::{Bindings, Graph, Inst, InstData, Op, Value};
use tpc_passes::layers::Prologue;
use tpc_passes::place::{Home, Homes, Pin};

use super::{HostExperts, Override, Placement, Target, Unit, by_layers};
use tpc_diag::Diagnostic;

/// Homes, and what came of the overrides.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Where the parts live.
    pub homes: Homes,
    /// Per override, the tensors that it places.
    pub placed: Vec<usize>,
    /// Tensors of experts that `--n-cpu-moe` and `--cpu-moe` place.
    pub experts: usize,
}

/// Settles where the parts of a model's graph of so many blocks live when its layers run through these stages, whose
/// `shares` divide them. `batch` gives the sizes of the caches.
///
/// # Errors
/// When a pattern cannot be matched.
pub fn settle(
    graph: &Graph,
    n_layer: u64,
    placement: &Placement,
    stages: Vec<Vec<usize>>,
    shares: &[f64],
    batch: &Bindings,
) -> Result<Settled, Diagnostic> {
    let n = usize::try_from(n_layer).unwrap_or(usize::MAX).min(1 << 16);
    let mut out = Settled {
        homes: Homes::together(placement.devices.len()),
        placed: vec![0; placement.overrides.len()],
        experts: 0,
    };
    let pinned = pins(graph, placement, &mut out)?;
    // The first layers stay on the host; the output counts as a layer after the last.
    let on_host = placement
        .n_gpu_layers
        .map_or(0, |kept| (n as u64 + 1).saturating_sub(kept)) as usize;
    let mut units = units(graph, n, &pinned, batch);
    // What precedes the layers lives where the first layer does.
    units[..on_host.min(n + 1) + usize::from(on_host > n)]
        .iter_mut()
        .for_each(|u| u.bytes = 0);
    let stage = by_layers(&units, shares);
    let home = |unit: usize| Home::Stage(stage.get(unit).copied().unwrap_or(0));
    out.homes = Homes {
        stages,
        before: if on_host > 0 { Home::Host } else { home(0) },
        layers: (0..n)
            .map(|l| if l < on_host { Home::Host } else { home(l + 1) })
            .collect(),
        after: if on_host > n { Home::Host } else { home(n + 1) },
        pins: pinned,
    };
    Ok(out)
}

/// The weights and states that do not live at the home of their layer.
fn pins(
    graph: &Graph,
    placement: &Placement,
    out: &mut Settled,
) -> Result<BTreeMap<Value, Pin>, Diagnostic> {
    let mut pins = BTreeMap::new();
    let experts = experts(graph, placement.host_experts);
    for (_, data) in graph.insts() {
        let Some(&v) = data.results.first() else {
            continue;
        };
        match &data.op {
            Op::Weight(w) => {
                if let Some((i, o)) = first_match(&placement.overrides, &w.tensor)? {
                    out.placed[i] += 1;
                    let pin = match o.target {
                        Target::Host => Pin::Host,
                        Target::Device(d) => Pin::Device(d),
                        Target::Mirrored => Pin::Mirrored,
                    };
                    pins.insert(v, pin);
                } else if experts.contains(&v) {
                    out.experts += 1;
                    pins.insert(v, Pin::Host);
                }
            }
            // Recurrent states are read and written whole by every token: they stay.
            Op::State(_) if placement.kv_on_host && graph.value(v).ty.counts_cells() => {
                pins.insert(v, Pin::Host);
            }
            _ => {}
        }
    }
    Ok(pins)
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

/// The weights that the experts of these layers are made of: whatever is selected by expert.
fn experts(graph: &Graph, layers: HostExperts) -> Vec<Value> {
    let selected = |(_, d): (Inst, &InstData)| match d.op {
        _ if d.layer.is_none_or(|l| !layers.contains(u64::from(l))) => None,
        Op::MulMatId(_) => Some(d.operands[0]),
        Op::AddId(_) => Some(d.operands[1]),
        _ => None,
    };
    let source = |mut v: Value| {
        while !graph.def_op(v).is_leaf() && graph.inst(graph.value(v).def.0).operands.len() == 1 {
            v = graph.inst(graph.value(v).def.0).operands[0];
        }
        v
    };
    graph.insts().filter_map(selected).map(source).collect()
}

/// Bytes of what comes before the layers, of each layer, and of what comes after, as far as it is not pinned.
fn units(
    graph: &Graph,
    n_layer: usize,
    pins: &BTreeMap<Value, Pin>,
    batch: &Bindings,
) -> Vec<Unit> {
    let mut out = vec![Unit::default(); n_layer + 2];
    let prologue = Prologue::of_graph(graph);
    for (inst, data) in graph.insts() {
        if !matches!(data.op, Op::Weight(_) | Op::State(_)) || pins.contains_key(&data.results[0]) {
            continue;
        }
        let unit = match data.layer {
            Some(l) => (l as usize).min(n_layer.saturating_sub(1)) + 1,
            None if prologue.contains(inst) => 0,
            None => n_layer + 1,
        };
        let bytes = graph.value(data.results[0]).ty.bytes(batch).unwrap_or(0);
        out[unit].bytes = out[unit].bytes.saturating_add(bytes);
    }
    out
}
