use tpc_ir::op::OpCategory;
use tpc_ir::{Bindings, Device, Graph, Group, Inst, InstData, Op, Output, Place, Value};

use super::cut::{CutCosts, Side, cheapest_cut};
use super::{LayerPlacement, PlaceOverride};
use crate::layers::Prologue;
use crate::machine::{Topology, Workload};

/// Returns the place of each instruction. A weight without an override has its layer's place, and is stored at every
/// place that uses it.
pub(super) fn assign(
    graph: &Graph,
    placement: &LayerPlacement,
    topology: &Topology,
    workload: &Workload,
) -> Vec<Place> {
    let Anchors {
        layer_places,
        mut places,
        ..
    } = Anchors::new(graph, placement);
    let mut others: Vec<Place> = Vec::new();
    for place in places.iter().flatten() {
        if !matches!(place, Place::Group(_)) && !others.contains(place) {
            others.push(*place);
        }
    }
    others.sort_unstable();
    // The host takes part only if an op other than an input is placed there.
    let host_holds = |(i, d): (Inst, &InstData)| {
        places[i.index()] == Some(Place::Host) && !matches!(d.op, Op::Input(_))
    };
    if !graph.insts().any(host_holds) {
        others.retain(|p| *p != Place::Host);
    }
    for other in others {
        let side = |i: Inst| match places[i.index()] {
            Some(p) if p == other => Side::Other,
            Some(_) => Side::Layer,
            None => Side::Free,
        };
        let costs = CutCosts::new(other, placement, topology, workload);
        for inst in cheapest_cut(graph, &side, &costs) {
            places[inst.index()] = Some(other);
        }
    }
    let place = |(p, layer): (Option<Place>, Place)| p.unwrap_or(layer);
    places.into_iter().zip(layer_places).map(place).collect()
}

/// The places implied by weights and states.
struct Anchors<'a> {
    graph: &'a Graph,
    placement: &'a LayerPlacement,
    layer_places: Vec<Place>,
    places: Vec<Option<Place>>,
    /// The weight that decides the place of each value computed from weights alone.
    weights: Vec<Option<Source>>,
    states: Vec<Option<Place>>,
}

/// A weight that decides the place of ops: a weight with an override first, then the largest.
#[derive(Clone, Copy)]
struct Source {
    overridden: Option<Place>,
    bytes: u64,
}

impl<'a> Anchors<'a> {
    fn new(graph: &'a Graph, placement: &'a LayerPlacement) -> Anchors<'a> {
        let prologue = Prologue::of_graph(graph);
        let layer_place = |(i, d): (Inst, &InstData)| {
            let section = prologue.section(i, d.layer);
            placement.of_section(section).place()
        };
        let mut out = Anchors {
            graph,
            placement,
            layer_places: graph.insts().map(layer_place).collect(),
            places: Vec::with_capacity(graph.insts().len()),
            weights: vec![None; graph.values().len()],
            states: vec![None; graph.values().len()],
        };
        for (inst, data) in graph.insts() {
            let layer = out.layer_places[inst.index()];
            let place = match &data.op {
                Op::Input(_) => Some(Place::Host),
                Op::Weight(_) => Some(out.weight(data.results[0], layer)),
                Op::State(_) => Some(out.state(data.results[0], layer)),
                op => out.op(op, data, layer),
            };
            out.places.push(place);
        }
        out
    }

    fn override_place(&self, v: Value, layer: Place) -> Option<Place> {
        Some(match self.placement.overrides.get(&v)? {
            PlaceOverride::Host => Place::Host,
            PlaceOverride::Device(d) => Place::Device(Device::new(*d)),
            PlaceOverride::Mirrored if layer == Place::Host => Place::Group(Group::new(0)),
            PlaceOverride::Mirrored => layer,
        })
    }

    fn weight(&mut self, v: Value, layer: Place) -> Place {
        let bytes = self.graph.value(v).ty.bytes(&Bindings::default());
        let overridden = self.override_place(v, layer);
        self.weights[v.index()] = Some(Source {
            overridden,
            bytes: bytes.unwrap_or(u64::MAX),
        });
        overridden.unwrap_or(layer)
    }

    fn state(&mut self, v: Value, layer: Place) -> Place {
        let place = self.override_place(v, layer).unwrap_or(layer);
        self.states[v.index()] = Some(place);
        place
    }

    /// Returns the required place of a non-leaf op, if any. An update runs at its state, an op over weights at the
    /// weights, an expensive op at its layer.
    fn op(&mut self, op: &Op, data: &InstData, layer: Place) -> Option<Place> {
        let sources = data.operands.iter().filter_map(|v| self.weights[v.index()]);
        let source = sources.max_by_key(|s| (s.overridden.is_some(), s.bytes));
        let weights_alone = data
            .operands
            .iter()
            .all(|v| self.weights[v.index()].is_some());
        if let Some(source) = source.filter(|_| weights_alone) {
            for v in &data.results {
                self.weights[v.index()] = Some(source);
            }
        }
        let state = data.operands.first().and_then(|v| self.states[v.index()]);
        if op.is_update() || op.is_view() {
            for v in &data.results {
                self.states[v.index()] = state;
            }
        }
        let updated = state.filter(|_| op.is_update());
        let read = source.map(|s| s.overridden.unwrap_or(layer));
        let stays = is_heavy(op) || layer == Place::Host;
        updated.or(read).or(stays.then_some(layer))
    }
}

fn is_heavy(op: &Op) -> bool {
    matches!(op.category(), OpCategory::Product | OpCategory::Heavy)
}

pub(super) fn readers(graph: &Graph, places: &[Place]) -> Vec<Vec<Place>> {
    let mut out: Vec<Vec<Place>> = vec![Vec::new(); graph.values().len()];
    let mut read = |v: Value, place: Place| {
        if !out[v.index()].contains(&place) {
            out[v.index()].push(place);
        }
    };
    for (inst, data) in graph.insts() {
        for &v in &data.operands {
            read(v, places[inst.index()]);
        }
    }
    for output in &graph.outputs {
        match output {
            Output::Named(_, v) => read(*v, Place::Host),
            Output::State { state, value } => {
                read(*value, places[graph.value(*state).def.0.index()]);
            }
        }
    }
    out
}
