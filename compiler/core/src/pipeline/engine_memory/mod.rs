//! The memory of a plan as its engine allocates it.
//!
//! tpc's own programs determine tpc's memory. Another engine keeps other weights on the host, has other caches, and
//! reserves buffers for its own graph. This module follows llama.cpp; [`MemoryFacts`] has the numbers that differ
//! between releases.
//!
//! - `slots` counts cache cells and the tokens of a batch;
//! - `stored` assigns weights, caches and states to places, cut by [`TensorCut`](tpc_ggml::engines::TensorCut);
//! - `build` makes the engine's graph in the engine's evaluation `order`;
//! - `schedule` assigns ops to places and copies tensors that another place reads;
//! - `buffers` replays the schedule with the `allocator`.

mod allocator;
mod buffers;
mod build;
mod order;
mod schedule;
mod slots;
mod stored;
mod tensor;

use std::collections::BTreeMap;

use tpc_ggml::engines::{BackendMemory, HeadSizes, MemoryFacts};
use tpc_ir::{Device, Graph, Output, Place, Value};
use tpc_passes::footprint::Footprint;
use tpc_passes::layers::Prologue;
use tpc_passes::machine::Engine;
use tpc_passes::place::LayerPlacement;
use tpc_passes::plan::PlanRequest;

use super::Model;
use crate::placement::Placement;
use schedule::Scheduler;
use slots::Slots;
use stored::{Owner, Places};
use tpc_models::Drafting;

/// The architecture name of captured graphs. The engine's rules do not know their tensor names.
const CAPTURE: &str = "capture";

/// Returns the memory facts of the placement's engine; `None` if tpc's own count applies.
pub fn facts(placement: &Placement) -> Option<&'static MemoryFacts> {
    match placement.engine {
        Engine::LlamaCpp => placement.build.memory.as_ref(),
        Engine::Tpc | Engine::IkLlamaCpp => None,
    }
}

struct PlacedModel<'a> {
    facts: &'a MemoryFacts,
    model: &'a Model,
    graph: &'a Graph,
    placement: &'a Placement,
    layers: &'a LayerPlacement,
    places: Places<'a>,
}

/// Computes the bytes per place as the placement's engine allocates them; `None` if tpc's own count applies. Caches
/// hold `ctx_size` tokens.
pub(crate) fn footprints(
    model: &Model,
    placement: &Placement,
    request: &PlanRequest,
    ctx_size: u64,
) -> Option<BTreeMap<Place, Footprint>> {
    let facts = facts(placement)?;
    if model.summary.arch == CAPTURE {
        return None;
    }
    let graph: &Graph = &model.graph;
    let layers = &request.layer_placement;
    let heads = HeadSizes::of_graph(graph);
    let shares: Vec<f64> = match layers.stages.as_slice() {
        [_] => request.stage_device_weights(0),
        _ => Vec::new(),
    };
    let placed = PlacedModel {
        facts,
        model,
        graph,
        placement,
        layers,
        places: Places {
            facts,
            graph,
            layers,
            heads: &heads,
            prologue: Prologue::of_graph(graph),
            arch: model.summary.arch,
            n_layer: model.summary.n_layer,
            shares: &shares,
            states_on_host: placement.kv_on_host,
        },
    };
    let slots = Slots::new(facts, placement, model.summary.window, ctx_size);
    let mut out: BTreeMap<Place, Footprint> = BTreeMap::new();
    out.insert(Place::Host, Footprint::default());
    for d in 0..request.devices.len() {
        out.insert(Place::Device(Device::new(d)), Footprint::default());
    }
    placed.places.count(&slots, placement, &mut out);
    let wanted = |is: fn(&str) -> bool| -> Vec<Value> {
        let named = graph.outputs.iter().filter_map(|o| match o {
            Output::Named(name, v) if is(name) => Some(*v),
            _ => None,
        });
        named.collect()
    };
    let main = order::order(graph, &wanted(|n| !n.starts_with("draft")), &[]);
    placed.compute(
        &slots,
        &main,
        &wanted(|n| !n.starts_with("draft")),
        &mut out,
    );
    if placement.drafting != Drafting::None {
        let wanted = wanted(|n| n.starts_with("draft"));
        let order = order::order(graph, &wanted, &main);
        placed.compute(&slots.of_draft(), &order, &wanted, &mut out);
    }
    placed.add_expert_cache(&mut out);
    Some(out)
}

impl PlacedModel<'_> {
    fn compute(
        &self,
        slots: &Slots,
        order: &[tpc_ir::Inst],
        outputs: &[Value],
        out: &mut BTreeMap<Place, Footprint>,
    ) {
        let back_end = self.facts.of(&self.placement.backends());
        // To the scheduler, the devices of a tensor split are one device.
        let host = self.layers.stages.len();
        let place = |v: Value| match self.places.owner(v) {
            Owner::Host => Some(host),
            Owner::Stage(s) => Some(s),
            Owner::Device(d) => {
                let stage = self.layers.stages.iter().position(|s| s.contains(&d));
                Some(stage.unwrap_or(0))
            }
        };
        let settings = build::Settings {
            graph: self.graph,
            batch: slots.batch(),
            flash_attention: self.placement.flash_attention,
            copies_caches: back_end.copies_caches && slots.batch().get(tpc_ir::Symbol::NTokens) > 1,
            mixes_batches: !(self.facts.tokens_alone.iter()).any(|a| a == self.model.summary.arch),
            snapshots: slots.snapshots,
            value_width: self.places.value_width(),
            place: &place,
            output: match self.places.section(self.layers.epilogue) {
                Owner::Host => host,
                Owner::Stage(s) | Owner::Device(s) => s,
            },
        };
        let graph = build::build(&settings, order, outputs);
        let scheduler = Scheduler {
            facts: self.facts,
            back_end,
            host,
            is_pipeline: self.is_pipeline(back_end),
        };
        let scheduled = scheduler.schedule(graph);
        let mut alignments = vec![self.facts.device_alignment; host];
        alignments.push(self.facts.host_alignment);
        let sizes = buffers::sizes(&scheduled, &alignments);
        for (stage, &bytes) in self.layers.stages.iter().zip(&sizes) {
            for &d in stage {
                let print = out.entry(Place::Device(Device::new(d))).or_default();
                print.compute = print.compute.saturating_add(bytes);
            }
        }
        let print = out.entry(Place::Host).or_default();
        print.compute = print.compute.saturating_add(sizes[host]);
    }

    /// True if the engine keeps several batches in flight: all layers are on devices, in several stages.
    fn is_pipeline(&self, back_end: BackendMemory) -> bool {
        let all = self.layers.layers.iter().chain([&self.layers.epilogue]);
        let on_devices = all
            .into_iter()
            .all(|p| self.places.section(*p) != Owner::Host);
        back_end.pipelines
            && self.layers.stages.len() > 1
            && on_devices
            && !self.placement.kv_on_host
            && self.layers.overrides.is_empty()
            && self.placement.engine_options.expert_cache == 0
    }

    /// Adds the devices' cache of host experts, divided in proportion to layers.
    fn add_expert_cache(&self, out: &mut BTreeMap<Place, Footprint>) {
        let bytes = self.placement.engine_options.expert_cache;
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        for place in &self.layers.layers {
            if let Owner::Stage(s) = self.places.section(*place) {
                for &d in &self.layers.stages[s] {
                    *counts.entry(d).or_default() += 1;
                }
            }
        }
        let all: u64 = counts.values().sum();
        for (d, n) in counts {
            let print = out.entry(Place::Device(Device::new(d))).or_default();
            let part = u128::from(bytes) * u128::from(n) / u128::from(all.max(1));
            print.compute = print
                .compute
                .saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
        }
    }
}
