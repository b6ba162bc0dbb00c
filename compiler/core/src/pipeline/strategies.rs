//! Strategies to divide a model among devices: on one, by layers, by tensors, or by layers among groups that split
//! tensors.
//!
//! `auto` plans each and takes the cheapest that fits: by the time of a decoded token with prompts weighed in, and by the
//! memory of the fullest device where that is short. Costs that differ by less than the estimates' error are equal.

use tpc_ir::{Bindings, Budget, Graph, Place};
use tpc_passes::machine::Workload;
use tpc_passes::plan::{Estimate, PlanRequest, estimate};

use super::divide::Sharding;
use super::{CacheSizes, Model, in_parallel, memory_batch};
use crate::placement::{Overridden, Placement, ResolvedPlacement, SplitMode, overridden, resolve};
use tpc_diag::Diagnostic;

/// A strategy with the request for its plan.
#[derive(Clone, Debug)]
pub(super) struct Strategy {
    /// Its position among those that were compared.
    pub(super) number: usize,
    pub(super) mode: SplitMode,
    pub(super) resolved: ResolvedPlacement,
    pub(super) request: PlanRequest,
}

/// A strategy, with the plan by which it was compared with others, if it was.
pub(super) struct Ranked {
    pub(super) strategy: Strategy,
    pub(super) sharding: Option<Sharding>,
}

/// A strategy that was compared with others.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// Its mode.
    pub mode: SplitMode,
    /// Its estimated times.
    pub estimate: Estimate,
    /// Bytes of weights, caches and states on the fullest device.
    pub fullest: u64,
    /// Whether it fits the memory that the topology states.
    pub fits: bool,
    /// Its price in microseconds per decoded token, prompts and memory weighed in.
    pub cost: f64,
    /// Whether it is chosen.
    pub chosen: bool,
    /// Whether its speed differs from the fastest one's that fits by less than the estimate's error.
    pub within_error: bool,
}

/// A way to divide a model: its mode, its name, and its stages of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The mode.
    pub mode: SplitMode,
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// The devices of each stage, by position.
    pub stages: Vec<Vec<usize>>,
}

impl Way {
    fn new(mode: SplitMode, name: impl Into<String>, stages: Vec<Vec<usize>>) -> Way {
        Way {
            mode,
            name: name.into(),
            stages,
        }
    }
}

/// The ways to divide a model that a placement's mode admits.
pub fn ways(placement: &Placement) -> Vec<Way> {
    let n = placement.devices.len();
    let none = || Way::new(SplitMode::None, "none", vec![vec![0]]);
    let layer = || {
        let stages = (0..n).map(|d| vec![d]).collect();
        Way::new(SplitMode::Layer, "layer", stages)
    };
    let tensor = || Way::new(SplitMode::Tensor, "tensor", vec![(0..n).collect()]);
    match placement.split_mode {
        _ if n == 1 => vec![none()],
        SplitMode::None => vec![none()],
        SplitMode::Layer => vec![layer()],
        SplitMode::Tensor => vec![tensor()],
        SplitMode::Hybrid => hybrids(n),
        SplitMode::Auto => {
            let mut out = vec![tensor(), layer(), none()];
            out.extend(hybrids(n));
            out
        }
    }
}

/// Groups of equal size, in sequence.
fn hybrids(n: usize) -> Vec<Way> {
    (2..n)
        .filter(|size| n.is_multiple_of(*size))
        .map(|size| {
            let stages = (0..n / size).map(|g| (g * size..(g + 1) * size).collect());
            let name = format!("layer of {} × tensor of {size}", n / size);
            Way::new(SplitMode::Hybrid, name, stages.collect())
        })
        .collect()
}

/// The strategies to divide a model that the mode admits, the cheapest that fits first; and how they compare, if there are
/// several. Whether a strategy fits is judged by weights, caches and states alone.
///
/// # Errors
/// When a pattern cannot be matched, or a plan contradicts itself.
pub(super) fn ranked(
    model: &Model,
    workload: &Workload,
    caches: CacheSizes,
    placement: &Placement,
    budget: &Budget,
) -> Result<(Vec<Ranked>, Vec<Candidate>), Vec<Diagnostic>> {
    let overridden = overridden(&model.graph, placement).map_err(|d| vec![d])?;
    let batch = memory_batch(workload, caches);
    let mut found: Vec<(Ranked, f64)> = Vec::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut all = ways(placement);
    if let [_] = all.as_slice() {
        let only = all.remove(0);
        let strategy = strategy(model, *workload, placement, &overridden, &only, &batch);
        let sharding = None;
        return Ok((vec![Ranked { strategy, sharding }], candidates));
    }
    let compared = in_parallel(all, |way| {
        let strategy = strategy(model, *workload, placement, &overridden, &way, &batch);
        let part = budget.part();
        let sharding = Sharding::new(&model.graph, &strategy.request, &part)?;
        let graph = &sharding.rewritten.graph;
        let estimate = estimate(&sharding.planned, graph, &strategy.request);
        let stored = stored(graph, placement.devices.len(), &batch);
        let sharding = Some(sharding);
        let ranked = Ranked { strategy, sharding };
        Ok::<_, Vec<Diagnostic>>((way, ranked, estimate, stored, part))
    });
    for one in compared {
        let (Way { name, mode, .. }, mut ranked, estimate, stored, part) = one?;
        budget.add(&part);
        ranked.strategy.number = candidates.len();
        let capacity = |d: usize| placement.topology.device(d).usable_memory();
        let over: f64 = (0..stored.len())
            .filter_map(|d| Some((stored[d] as f64 - capacity(d)?).max(0.0)))
            .sum();
        let fits = over <= 0.0;
        let cost = estimate.decode_us
            + Workload::PROMPT_WEIGHT * 1e6 / estimate.prompt_tps
            + shortage_us(&stored, placement);
        candidates.push(Candidate {
            name,
            mode,
            estimate,
            fullest: stored.iter().copied().max().unwrap_or(0),
            fits,
            cost,
            chosen: false,
            within_error: false,
        });
        // What does not fit is worse than anything that does, by how much it is over.
        found.push((ranked, if fits { cost } else { 1e15 * (1.0 + over) }));
    }
    mark_equals(&mut candidates);
    // Costs that differ from the least by rounding alone are equal to it, and the first stays first.
    let least = found.iter().map(|(_, c)| *c).fold(f64::INFINITY, f64::min);
    let cost = |cost: f64| cost.max(least * (1.0 + 1e-9));
    found.sort_by(|(_, a), (_, b)| cost(*a).total_cmp(&cost(*b)));
    let best = preferred(&found, &candidates);
    let best = found.remove(best);
    found.insert(0, best);
    Ok((found.into_iter().map(|(w, _)| w).collect(), candidates))
}

/// The price of memory, in microseconds: none while a tenth of every device stays free, then rising to the time in which
/// the fullest device reads half of what it stores.
fn shortage_us(stored: &[u64], placement: &Placement) -> f64 {
    let of_device = |d: usize| {
        let device = placement.topology.device(d);
        let filled = stored[d] as f64 / device.usable_memory()?.max(1.0);
        let short = ((filled - 0.9) / 0.1).clamp(0.0, 1.0);
        let reading = stored[d] as f64 / device.bandwidth * 1e6;
        Some(short * Workload::MEMORY_PRICE * reading)
    };
    (0..stored.len()).filter_map(of_device).fold(0.0, f64::max)
}

/// Marks the candidates that fit whose speed differs from that of the fastest by less than the estimates' error.
fn mark_equals(candidates: &mut [Candidate]) {
    let fastest = candidates
        .iter()
        .filter(|c| c.fits)
        .map(|c| c.estimate)
        .min_by(|a, b| a.decode_us.total_cmp(&b.decode_us));
    let Some(fastest) = fastest else { return };
    for c in candidates.iter_mut().filter(|c| c.fits) {
        let error = c.estimate.error.max(fastest.error);
        c.within_error = c.estimate.decode_us <= fastest.decode_us * (1.0 + error);
    }
}

/// The position of the strategy to take, of those that are sorted by cost. Those whose cost differs from the least by less
/// than the estimates' error are equal; of equal ones a plain way is taken before a hybrid one, and then the one with the
/// fewest bytes on the fullest device, which leaves room for a longer context.
fn preferred(found: &[(Ranked, f64)], candidates: &[Candidate]) -> usize {
    let of = |i: usize| &candidates[found[i].0.strategy.number];
    let best = of(0);
    if !best.fits {
        return 0;
    }
    let equal = |i: &usize| {
        let error = of(*i).estimate.error.max(best.estimate.error);
        of(*i).fits && found[*i].1 <= found[0].1 * (1.0 + error)
    };
    let key = |i: &usize| (of(*i).mode == SplitMode::Hybrid, of(*i).fullest);
    let equals = (0..found.len()).filter(equal);
    equals.min_by_key(key).unwrap_or(0)
}

/// The request for a plan of the model, divided this way.
pub(super) fn strategy(
    model: &Model,
    workload: Workload,
    placement: &Placement,
    overridden: &Overridden,
    way: &Way,
    batch: &Bindings,
) -> Strategy {
    let Way { mode, stages, .. } = way.clone();
    let names = placement.devices.iter().map(|d| d.name.clone()).collect();
    let mut request = PlanRequest::new(placement.topology.clone(), workload, names);
    request.engine = placement.engine;
    request.depth = placement.depth;
    request.tensor_split.clone_from(&placement.tensor_split);
    if mode == SplitMode::None {
        request.tensor_split = None;
    }
    // Stages hold what their devices' shares allow; of memory, where the topology knows it.
    let memory: Option<Vec<f64>> = (0..placement.devices.len())
        .map(|d| placement.topology.device(d).usable_memory())
        .collect();
    let room = request.tensor_split.clone().or(memory);
    let room = room.unwrap_or_else(|| vec![1.0; placement.devices.len()]);
    let shares: Vec<f64> = stages
        .iter()
        .map(|stage| stage.iter().map(|&d| room[d]).sum())
        .collect();
    let n_layer = model.summary.n_block();
    let resolved = resolve(
        &model.graph,
        n_layer,
        placement,
        overridden,
        stages,
        &shares,
        batch,
    );
    request.layer_placement = resolved.layer_placement.clone();
    if request.tensor_split.is_none() {
        request.limit_device_weights(&model.graph, batch);
    }
    Strategy {
        number: 0,
        mode,
        resolved,
        request,
    }
}

/// Bytes of weights, caches and states on each device of a sharded graph.
fn stored(graph: &Graph, devices: usize, batch: &Bindings) -> Vec<u64> {
    let mut out = vec![0_u64; devices];
    for (_, i) in graph.insts() {
        if !i.op.is_stored() {
            continue;
        }
        let v = graph.value(i.results[0]);
        let mut add = |d: usize, bytes: Option<u64>| {
            out[d] = out[d].saturating_add(bytes.unwrap_or(u64::MAX));
        };
        match v.place {
            Place::Host => {}
            Place::Device(d) => add(d.index(), v.ty.bytes(batch)),
            Place::Group(g) => {
                for (rank, d) in graph.group(g).devices.iter().enumerate() {
                    let local = v.sharding.local_type(&v.ty, &graph.classes, rank);
                    add(d.index(), local.and_then(|t| t.bytes(batch)));
                }
            }
        }
    }
    out
}
