use std::collections::BTreeMap;

use tpc_ir::op::Copy;
use tpc_ir::{Graph, InstData, Op, Output, Place, Value};

use super::assign::readers;
use super::{LayerPlacement, PlaceOverride, PlacedGraph};

/// Rebuilds `graph` in `out`, with each instruction at its place. `out` already has the devices and groups.
///
/// A value is copied at most once to each place that reads it. Weights are stored at every place that uses them, unless
/// an override assigns one place; constants are made there.
pub(super) fn insert(
    graph: &Graph,
    placement: &LayerPlacement,
    places: &[Place],
    out: Graph,
) -> PlacedGraph {
    let readers = readers(graph, places);
    let mut copies = Copies {
        from: graph,
        out,
        versions: vec![BTreeMap::new(); graph.values().len()],
        origin: vec![None; graph.values().len()],
    };
    let mut mirrored = Vec::new();
    for (inst, data) in graph.insts() {
        let place = places[inst.index()];
        if matches!(data.op, Op::Weight(_)) || data.op.is_constant() {
            let v = data.results[0];
            let place_override = placement.overrides.get(&v);
            let mut stored = vec![place];
            if !matches!(
                place_override,
                Some(PlaceOverride::Host | PlaceOverride::Device(_))
            ) && !readers[v.index()].is_empty()
            {
                stored.clone_from(&readers[v.index()]);
            }
            for place in stored {
                let made = copies.define(data, Vec::new(), place);
                if place_override == Some(&PlaceOverride::Mirrored) {
                    mirrored.extend(made);
                }
            }
            continue;
        }
        let operands = data
            .operands
            .iter()
            .map(|&v| copies.arrive(v, place, data.layer))
            .collect();
        copies.define(data, operands, place);
        // Send inputs before all work.
        if let Op::Input(_) = data.op {
            for &place in &readers[data.results[0].index()] {
                copies.arrive(data.results[0], place, None);
            }
        }
    }
    for output in &graph.outputs {
        let new = match output {
            Output::Named(name, v) => {
                Output::Named(name.clone(), copies.arrive(*v, Place::Host, None))
            }
            Output::State { state, value } => {
                let (place, state) = copies.copy_source(*state);
                let layer = graph.inst(graph.value(*value).def.0).layer;
                let value = copies.arrive(*value, place, layer);
                Output::State { state, value }
            }
        };
        copies.out.outputs.push(new);
    }
    PlacedGraph {
        graph: copies.out,
        mirrored,
    }
}

struct Copies<'a> {
    from: &'a Graph,
    out: Graph,
    /// Per value of the model's graph, the copy at each place.
    versions: Vec<BTreeMap<Place, Value>>,
    /// The place that defines each value first.
    origin: Vec<Option<Place>>,
}

impl Copies<'_> {
    fn define(&mut self, data: &InstData, operands: Vec<Value>, place: Place) -> Vec<Value> {
        let types = data
            .results
            .iter()
            .map(|&v| self.from.value(v).ty.clone())
            .collect();
        let made = self
            .out
            .push(data.op.clone(), operands, types, place, data.layer);
        let made = self.out.inst(made).results.clone();
        for (&v, &new) in data.results.iter().zip(&made) {
            self.out.value_mut(new).name = self.from.value(v).name.clone();
            self.versions[v.index()].insert(place, new);
            self.origin[v.index()].get_or_insert(place);
        }
        made
    }

    fn copy_source(&self, v: Value) -> (Place, Value) {
        let place = self.origin[v.index()];
        let place = place.expect("invariant: values are defined before they are used");
        (place, self.versions[v.index()][&place])
    }

    /// Returns the value at `place`, copying it if necessary. A copy belongs to the reading layer, unless the value
    /// comes from outside all layers.
    fn arrive(&mut self, v: Value, place: Place, layer: Option<u32>) -> Value {
        if let Some(&there) = self.versions[v.index()].get(&place) {
            return there;
        }
        let (_, source) = self.copy_source(v);
        let layer = layer.filter(|_| self.from.inst(self.from.value(v).def.0).layer.is_some());
        let ty = self.from.value(v).ty.clone();
        let made = self.out.push(Copy, vec![source], vec![ty], place, layer);
        let made = self.out.inst(made).results[0];
        self.out.value_mut(made).name = self.from.value(v).name.clone();
        self.versions[v.index()].insert(place, made);
        made
    }
}
