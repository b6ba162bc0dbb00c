//! The place of every op.

use tpc_ir::op::OpCategory;
use tpc_ir::{Graph, Group, Inst, InstData, Op, Output, Place, Value};

use super::cut::{Side, Transfers, cheapest_cut};
use super::{LayerPlace, LayerPlacement, PlaceOverride};
use crate::layers::Prologue;
use crate::machine::{Topology, Workload};

/// The place of each instruction, by index. Weights that are not pinned have that of their home; they are stored
/// wherever they are used.
pub(super) fn assign(
    graph: &Graph,
    layer_placement: &LayerPlacement,
    topology: &Topology,
    workload: &Workload,
) -> Vec<Place> {
    let mut fixed = Fixed::of(graph, layer_placement);
    let mut others: Vec<Place> = Vec::new();
    for place in fixed.own.iter().flatten() {
        if !matches!(place, Place::Group(_)) && !others.contains(place) {
            others.push(*place);
        }
    }
    others.sort_unstable();
    // The host takes part only where it holds more than the inputs.
    let host_holds = |(i, d): (Inst, &InstData)| {
        fixed.own[i.index()] == Some(Place::Host) && !matches!(d.op, Op::Input(_))
    };
    if !graph.insts().any(host_holds) {
        others.retain(|p| *p != Place::Host);
    }
    for other in others {
        let side = |i: Inst| match fixed.own[i.index()] {
            Some(p) if p == other => Side::Other,
            Some(_) => Side::Home,
            None => Side::Free,
        };
        let transfers = Transfers::between(other, layer_placement, topology, workload);
        for inst in cheapest_cut(graph, &side, &transfers) {
            fixed.own[inst.index()] = Some(other);
        }
    }
    let home = |(i, p): (usize, &Option<Place>)| p.unwrap_or(fixed.layer_places[i]);
    fixed.own.iter().enumerate().map(home).collect()
}

/// Places that follow from where weights and states are.
struct Fixed {
    /// Per instruction, its home.
    layer_places: Vec<Place>,
    /// Per instruction, the place that it must have.
    own: Vec<Option<Place>>,
}

impl Fixed {
    fn of(graph: &Graph, layer_placement: &LayerPlacement) -> Fixed {
        let prologue = Prologue::of_graph(graph);
        let home_of =
            |(i, d): (Inst, &InstData)| layer_placement.layer_place(d.layer, prologue.contains(i));
        let layer_homes: Vec<LayerPlace> = graph.insts().map(home_of).collect();
        let mut out = Fixed {
            layer_places: layer_homes
                .iter()
                .map(|&h| LayerPlacement::place_of(h))
                .collect(),
            own: vec![None; layer_homes.len()],
        };
        // Per value: the bytes and the place of the weights that it is made of alone; the state that it is a view of.
        let mut weights: Vec<Option<(u64, Option<Place>)>> = vec![None; graph.values().len()];
        let mut states: Vec<Option<Place>> = vec![None; graph.values().len()];
        for (inst, data) in graph.insts() {
            let i = inst.index();
            let home = out.layer_places[i];
            let pin = |v: Value| match layer_placement.overrides.get(&v)? {
                PlaceOverride::Host => Some(Place::Host),
                PlaceOverride::Device(d) => Some(Place::Device(tpc_ir::Device::new(*d))),
                PlaceOverride::Mirrored => Some(match home {
                    Place::Host => Place::Group(Group::new(0)),
                    home => home,
                }),
            };
            let place = match &data.op {
                Op::Input(_) => Some(Place::Host),
                Op::Weight(_) => {
                    let v = data.results[0];
                    let bytes = graph.value(v).ty.bytes(&tpc_ir::Bindings::default());
                    let pinned = pin(v);
                    weights[v.index()] = Some((bytes.unwrap_or(u64::MAX), pinned));
                    Some(pinned.unwrap_or(home))
                }
                Op::State(_) => {
                    let v = data.results[0];
                    let place = pin(v).unwrap_or(home);
                    states[v.index()] = Some(place);
                    Some(place)
                }
                op => {
                    let made_of = data.operands.iter().filter_map(|v| weights[v.index()]);
                    // Of several places, that of the most bytes.
                    let over = made_of.max_by_key(|(bytes, pinned)| (pinned.is_some(), *bytes));
                    let all = data.operands.iter().all(|v| weights[v.index()].is_some());
                    if let (Some(over), true) = (over, all) {
                        data.results
                            .iter()
                            .for_each(|v| weights[v.index()] = Some(over));
                    }
                    let updates = op.is_update();
                    let state = data.operands.first().and_then(|v| states[v.index()]);
                    if updates || op.is_view() {
                        data.results.iter().for_each(|v| states[v.index()] = state);
                    }
                    match (over, state.filter(|_| updates)) {
                        (_, Some(place)) => Some(place),
                        (Some((_, pinned)), None) => Some(pinned.unwrap_or(home)),
                        (None, None) => (is_heavy(op) || home == Place::Host).then_some(home),
                    }
                }
            };
            out.own[i] = place;
        }
        out
    }
}

/// Whether an op does so much on its operands that it does not follow them to another place.
fn is_heavy(op: &Op) -> bool {
    matches!(op.category(), OpCategory::Product | OpCategory::Heavy)
}

/// The places that want each value, the one that defines it left out.
pub(super) fn wanted(graph: &Graph, places: &[Place]) -> Vec<Vec<Place>> {
    let mut out: Vec<Vec<Place>> = vec![Vec::new(); graph.values().len()];
    let mut want = |v: Value, place: Place| {
        if !out[v.index()].contains(&place) {
            out[v.index()].push(place);
        }
    };
    for (inst, data) in graph.insts() {
        for &v in &data.operands {
            want(v, places[inst.index()]);
        }
    }
    for output in &graph.outputs {
        match output {
            Output::Named(_, v) => want(*v, Place::Host),
            Output::State { state, value } => {
                want(*value, places[graph.value(*state).def.0.index()]);
            }
        }
    }
    out
}
