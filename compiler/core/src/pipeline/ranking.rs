//! The strategies of `auto`, ranked by a plan and an estimate for each.
//!
//! The planner takes the cheapest strategy that fits. The cost is the time of a decoded token with its share of prompt
//! tokens, plus a price if memory on the fullest device is scarce. Costs within the estimates' error are equal. Groups
//! of devices in sequence are planned only if they could be chosen.

use tpc_ir::program::SumOrder;
use tpc_ir::{Bindings, Budget, Graph, Op, Place, Symbol};
use tpc_passes::machine::{Engine, Workload};
use tpc_passes::plan::estimate;

use super::candidate::Candidate;
use super::divide::Sharding;
use super::strategies::{Strategy, Way, strategy, ways};
use super::{CAPTURE, ExcludedMode, PlanInput, in_parallel, tensor_limit};
use crate::placement::{CacheSplit, OverriddenPlaces, Placement, SplitMode, overridden};
use tpc_diag::Diagnostic;

/// Number of plans to keep until one is taken. Plans are large, so other strategies are planned again if these plans do
/// not fit.
const HELD: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompareScope {
    All,
    /// All strategies without groups, and groups in sequence that could cost less than the cheapest fitting one.
    Promising,
}

pub(super) struct RankedStrategy {
    pub(super) strategy: Strategy,
    pub(super) sharding: Option<Sharding>,
}

impl RankedStrategy {
    fn hold_plan(self, held: bool) -> RankedStrategy {
        RankedStrategy {
            sharding: self.sharding.filter(|_| held),
            ..self
        }
    }
}

pub(super) struct Ranking {
    pub(super) strategies: Vec<RankedStrategy>,
    /// The compared strategies; empty if the mode has only one.
    pub(super) candidates: Vec<Candidate>,
    pub(super) left_out: Vec<ExcludedMode>,
    pub(super) complete: bool,
}

impl PlanInput {
    /// Ranks the strategies of the mode. A strategy fits if weights, caches and states fit.
    ///
    /// # Errors
    /// Returns an error if a pattern cannot be matched or a planned graph is invalid.
    pub(super) fn ranking(
        &self,
        placement: &Placement,
        compared: CompareScope,
        budget: &Budget,
    ) -> Result<Ranking, Vec<Diagnostic>> {
        let overridden = overridden(&self.model.graph, placement).map_err(|d| vec![d])?;
        let mut all = self.ways(placement);
        if let [_] = all.as_slice() {
            let only = all.remove(0);
            let strategy = self.strategy(placement, &overridden, &only);
            return Ok(Ranking {
                strategies: vec![RankedStrategy {
                    strategy,
                    sharding: None,
                }],
                candidates: Vec::new(),
                left_out: Vec::new(),
                complete: true,
            });
        }
        let mut left_out = Vec::new();
        all.retain(|way| match self.refusal(placement, way) {
            Some(refused) => {
                left_out.push(refused);
                false
            }
            None => true,
        });
        self.retain_fitting(&mut all, placement, &overridden);
        let count = all.len();
        let is_plain = |way: &Way| way.mode != SplitMode::Hybrid;
        let (plain, mut groups): (Vec<Way>, Vec<Way>) = all.into_iter().partition(is_plain);
        let mut found = self.compare(plain, placement, &overridden, budget)?;
        if compared == CompareScope::Promising {
            groups.retain(|way| may_be_chosen(way, &found, placement));
        }
        found.extend(self.compare(groups, placement, &overridden, budget)?);
        let complete = found.len() == count;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut costs: Vec<(RankedStrategy, f64)> = Vec::new();
        for (mut ranked, candidate, cost) in found {
            ranked.strategy.number = candidates.len();
            candidates.push(candidate);
            costs.push((ranked, cost));
        }
        // Costs that differ only by rounding keep their order.
        let least = costs.iter().map(|(_, c)| *c).fold(f64::INFINITY, f64::min);
        let cost = |cost: f64| cost.max(least * (1.0 + 1e-9));
        costs.sort_by(|(_, a), (_, b)| cost(*a).total_cmp(&cost(*b)));
        let best = preferred_position(&costs, &candidates);
        let best = costs.remove(best);
        costs.insert(0, best);
        Ok(Ranking {
            strategies: (0..)
                .zip(costs)
                .map(|(i, (ranked, _))| ranked.hold_plan(i < HELD))
                .collect(),
            candidates,
            left_out,
            complete,
        })
    }

    /// Lists the ways to compare. With `--cache-split auto`, a way whose devices would store the same KV heads is also
    /// listed by cells.
    pub(crate) fn ways(&self, placement: &Placement) -> Vec<Way> {
        let mut out = ways(placement);
        let auto = placement.cache_split == CacheSplit::Auto
            && placement.engine == Engine::Tpc
            && placement.sums != SumOrder::OneDevice
            && self.model.summary.arch != CAPTURE
            && !placement.kv_on_host;
        if auto {
            // Plans by cells take longest, and parts of caches are merged for every layer. Several machines have them
            // only for whole machines.
            let whole = |way: &Way| !placement.is_cluster() || way.has_whole_machines(placement);
            let shares = |way: &&Way| {
                whole(way) && way.stages.iter().any(|s| self.shares_heads(s.len() as u64))
            };
            let more: Vec<Way> = (out.iter().filter(shares))
                .filter_map(Way::by_cells)
                .collect();
            out.extend(more);
        }
        out
    }

    /// True if several of `devices` devices store the same KV heads of an attention over a cache.
    fn shares_heads(&self, devices: u64) -> bool {
        let graph = &self.model.graph;
        graph.insts().any(|(_, data)| match &data.op {
            Op::FlashAttn(_) => {
                let keys = &graph.value(data.operands[1]).ty;
                let heads = keys.dims[2].as_const().unwrap_or(devices);
                let cached = [Symbol::NKv, Symbol::NKvSwa]
                    .into_iter()
                    .any(|s| keys.dims[1].mentions(s));
                cached && !heads.is_multiple_of(devices)
            }
            _ => false,
        })
    }

    fn refusal(&self, placement: &Placement, way: &Way) -> Option<ExcludedMode> {
        if way.mode != SplitMode::Tensor {
            return None;
        }
        let reason = tensor_limit(placement.engine, &self.model, placement)?;
        Some(ExcludedMode {
            name: way.name.clone(),
            engine: placement.build_of(placement.engine).name(),
            reason,
        })
    }

    pub(crate) fn refuses(&self, engine: Engine, placement: &Placement, way: &Way) -> bool {
        way.mode == SplitMode::Tensor && tensor_limit(engine, &self.model, placement).is_some()
    }

    /// Removes ways that cannot fit. Plans of groups take longest, so groups are always removed. Several machines have
    /// many devices, so all ways are removed unless none fits.
    fn retain_fitting(
        &self,
        ways: &mut Vec<Way>,
        placement: &Placement,
        overridden: &OverriddenPlaces,
    ) {
        let on_machines = placement.is_cluster();
        let is_group = |way: &Way| way.mode == SplitMode::Hybrid;
        let fitting: Vec<bool> = (ways.iter())
            .map(|way| {
                let checked = on_machines || is_group(way);
                !checked || self.may_fit(placement, overridden, way)
            })
            .collect();
        let none_fits = !fitting.contains(&true);
        let mut fitting = fitting.into_iter();
        ways.retain(|way| {
            let fits = fitting.next().unwrap_or(true);
            fits || none_fits && !is_group(way)
        });
    }

    /// True if the devices have room for the weights and states of a way.
    fn may_fit(&self, placement: &Placement, overridden: &OverriddenPlaces, way: &Way) -> bool {
        let request = self.strategy(placement, overridden, way).request;
        let batch = self.memory_batch(placement);
        request.has_room(&self.model.graph, &batch, &[])
    }

    fn strategy(
        &self,
        placement: &Placement,
        overridden: &OverriddenPlaces,
        way: &Way,
    ) -> Strategy {
        let workload = self.workload(placement);
        let batch = self.memory_batch(placement);
        strategy(&self.model, workload, placement, overridden, way, &batch)
    }

    /// Plans these ways and computes their costs. A way that does not fit costs more than every way that
    /// fits, in proportion to the missing memory.
    fn compare(
        &self,
        ways: Vec<Way>,
        placement: &Placement,
        overridden: &OverriddenPlaces,
        budget: &Budget,
    ) -> Result<Vec<(RankedStrategy, Candidate, f64)>, Vec<Diagnostic>> {
        let batch = self.memory_batch(placement);
        let planned = in_parallel(ways, |way| {
            let strategy = self.strategy(placement, overridden, &way);
            let part = budget.part();
            let sharding = Sharding::new(&self.model.graph, &strategy.request, &part)?;
            let graph = &sharding.rewritten.graph;
            let estimate = estimate(&sharding.planned, graph, &strategy.request);
            let stored = stored_bytes(graph, placement.devices.len(), &batch);
            let capacity = |d: usize| placement.topology.device(d).usable_memory();
            let over: f64 = (0..stored.len())
                .filter_map(|d| Some((stored[d] as f64 - capacity(d)?).max(0.0)))
                .sum();
            let fits = over <= 0.0;
            let cost = estimate.decode_us
                + Workload::PROMPT_WEIGHT * 1e6 / estimate.prompt_tps
                + shortage_us(&stored, placement);
            let candidate = Candidate {
                name: way.name,
                mode: way.mode,
                stages: way.stages,
                cells: way.cells,
                estimate,
                fullest: stored.iter().copied().max().unwrap_or(0),
                filled: filled(&stored, placement),
                fits,
                cost,
                chosen: false,
                within_error: false,
            };
            let sharding = Some(sharding);
            let ranked = RankedStrategy { strategy, sharding };
            let cost = if fits { cost } else { 1e15 * (1.0 + over) };
            Ok::<_, Vec<Diagnostic>>((ranked, candidate, cost, part))
        });
        let mut out = Vec::new();
        for one in planned {
            let (ranked, candidate, cost, part) = one?;
            budget.add(&part);
            out.push((ranked, candidate, cost));
        }
        Ok(out)
    }
}

/// True if groups in sequence could be chosen. In the best case a group divides the work of its layers evenly, and
/// reductions are free. Groups are excluded if a fitting way without groups costs less than this best case, within the
/// estimate's error. The bound holds only for identical devices.
fn may_be_chosen(
    way: &Way,
    plain: &[(RankedStrategy, Candidate, f64)],
    placement: &Placement,
) -> bool {
    let device = |d: usize| {
        let d = placement.topology.device(d);
        (d.bandwidth, d.flops, d.processor)
    };
    let layer = plain.iter().find(|(_, c, _)| c.mode == SplitMode::Layer);
    let (Some((_, layer, _)), Some(group)) = (layer, way.stages.first()) else {
        return true;
    };
    if (1..placement.devices.len()).any(|d| device(d) != device(0)) {
        return true;
    }
    let (e, size) = (&layer.estimate, group.len() as f64);
    let shared = e.breakdown.weights_us + e.breakdown.attention_us + e.breakdown.other_us;
    let decode = shared / size + e.breakdown.launches_us + e.breakdown.host_us;
    let least = decode + Workload::PROMPT_WEIGHT * 1e6 / (e.prompt_tps * size);
    !plain
        .iter()
        .any(|(_, c, _)| c.fits && c.cost <= least * (1.0 + c.estimate.error))
}

/// Computes the price of scarce memory in microseconds: 0 if a tenth of every device is free, rising to the time in
/// which the fullest device reads half of its stored bytes.
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

/// Returns the filled fraction of the fullest device. The memory of a device is assumed to be [`ASSUMED_MEMORY`] if it
/// is unknown.
fn filled(stored: &[u64], placement: &Placement) -> f64 {
    let of_device = |d: usize| {
        let usable = placement.topology.device(d).usable_memory();
        stored[d] as f64 / usable.unwrap_or(ASSUMED_MEMORY).max(1.0)
    };
    (0..stored.len()).map(of_device).fold(0.0, f64::max)
}

/// The memory of a small card in bytes.
const ASSUMED_MEMORY: f64 = 8e9;

/// Marks fitting candidates whose speeds are within the estimates' error of the chosen candidate's.
pub(super) fn mark_equals(candidates: &mut [Candidate]) {
    let chosen = candidates.iter().find(|c| c.chosen && c.fits);
    let Some(chosen) = chosen.map(|c| c.estimate) else {
        return;
    };
    for c in candidates.iter_mut().filter(|c| c.fits) {
        let error = 1.0 + c.estimate.error.max(chosen.error);
        let alike = |a: f64, b: f64| a <= b * error && b <= a * error;
        c.within_error = alike(c.estimate.decode_us, chosen.decode_us)
            && alike(c.estimate.prompt_tps, chosen.prompt_tps);
    }
}

/// Minimum ratio between two different speeds.
const FASTER: f64 = 1.02;
/// A faster strategy wins only if the fullest device of the slower strategy holds at least this fraction of its bytes.
const ROOMIER: f64 = 0.9;

/// A model that fills at most this fraction of one device is not split, unless a split is faster by more than the
/// estimates' error.
const ENOUGH: f64 = 0.1;

/// True if `better` fits, is faster at decoding or prompts, and slower at neither. `other` may leave only slightly more
/// memory free. Groups must be faster by more than the estimates' error.
fn beats(better: &Candidate, other: &Candidate) -> bool {
    let (a, b) = (&better.estimate, &other.estimate);
    let margin = match (better.mode, other.mode) {
        (SplitMode::Hybrid, mode) if mode != SplitMode::Hybrid => 1.0 + a.error.max(b.error),
        _ => FASTER,
    };
    better.fits
        && a.decode_us <= b.decode_us
        && a.prompt_tps >= b.prompt_tps
        && (a.decode_us * margin <= b.decode_us || a.prompt_tps >= b.prompt_tps * margin)
        && other.fullest as f64 >= better.fullest as f64 * ROOMIER
}

/// True if `other` is the same split with caches by cells, and costs more than with caches by heads. The two estimates
/// have nearly the same error, so a small difference counts.
fn needs_no_cells(heads: &Candidate, other: &Candidate) -> bool {
    let same = heads.mode == other.mode && heads.stages == other.stages;
    same && !heads.cells && other.cells && heads.fits && heads.cost * FASTER < other.cost
}

/// Returns the position of the strategy to take. `found` is sorted by cost. Costs within the estimates' error of the
/// minimum are equal. Of equal costs, strategies that no other beats come first, then strategies without groups. If one
/// device is enough for all equal strategies ([`ENOUGH`]), the strategy of one device is taken; otherwise the fewest
/// bytes on the fullest device decide, because they leave room for context.
fn preferred_position(found: &[(RankedStrategy, f64)], candidates: &[Candidate]) -> usize {
    let of = |i: usize| &candidates[found[i].0.strategy.number];
    let best = of(0);
    if !best.fits {
        return 0;
    }
    let equal = |i: &usize| {
        let error = of(*i).estimate.error.max(best.estimate.error);
        of(*i).fits && found[*i].1 <= found[0].1 * (1.0 + error)
    };
    let is_group = |i: usize| found[i].0.strategy.is_group();
    // A strategy without groups wins against groups, so groups are not its rivals.
    let rivals =
        |i: usize| (0..found.len()).filter(move |&j| j != i && (is_group(i) || !is_group(j)));
    let beaten = |i: usize| rivals(i).any(|j| beats(of(j), of(i)) || needs_no_cells(of(j), of(i)));
    let equals: Vec<usize> = (0..found.len()).filter(equal).collect();
    let single = |&&i: &&usize| of(i).mode == SplitMode::None && of(i).filled <= ENOUGH;
    if let Some(&single) = equals.iter().find(single) {
        return single;
    }
    let key = |i: &usize| (beaten(*i), is_group(*i), of(*i).fullest);
    equals.into_iter().min_by_key(key).unwrap_or(0)
}

fn stored_bytes(graph: &Graph, devices: usize, batch: &Bindings) -> Vec<u64> {
    let batch = batch.in_units(graph.cell_unit.0);
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
            Place::Device(d) => add(d.index(), v.ty.bytes(&batch)),
            Place::Group(g) => {
                for (rank, d) in graph.group(g).devices.iter().enumerate() {
                    let local = v.sharding.local_type(&v.ty, &graph.classes, rank);
                    add(d.index(), local.and_then(|t| t.bytes(&batch)));
                }
            }
        }
    }
    out
}
