//! Placing: where every op runs, and the copies that this takes.
//!
//! A model's graph says nothing of places. [`place`] gives every op one, by three rules:
//!
//! 1. weights and states live at the home of their layer (a stage of devices, or the host) unless they are pinned
//!    elsewhere;
//! 2. an op over weights runs where they are, an update of a state where the state is, and what costs much without
//!    reading any (attention, scans) at its home;
//! 3. all other ops run where copies cost least: the cheapest cut between the host and the devices.
//!
//! A value that is wanted at another place is copied there once, by a `copy` op. All that follows sees places and
//! copies as parts of the graph: a split is inferred through a copy as through any other op.

mod assign;
mod copies;
mod cut;

use std::collections::BTreeMap;

use tpc_ir::{DeviceData, Graph, Group, GroupData, Inst, Place, Value};

use crate::machine::{Topology, Workload};

/// Where the parts of a model live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerPlacement {
    /// The devices of each stage, by position; layers run through the stages in order. One stage for a plain tensor
    /// split.
    pub stages: Vec<Vec<usize>>,
    /// Home of what comes before the first layer.
    pub prologue: LayerPlace,
    /// Home of each layer; those beyond the list live in the last stage.
    pub layers: Vec<LayerPlace>,
    /// Home of what comes after the last layer.
    pub epilogue: LayerPlace,
    /// Weights and states of the model's graph with a place of their own.
    pub overrides: BTreeMap<Value, PlaceOverride>,
}

/// Where a layer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerPlace {
    /// On the host.
    Host,
    /// On the devices of a stage.
    Stage(usize),
}

/// Where a weight or state lives that does not live at the home of its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceOverride {
    /// On the host.
    Host,
    /// On one device, whole.
    Device(usize),
    /// On all devices of its stage, whole on each.
    Mirrored,
}

impl LayerPlacement {
    /// Everything on one stage of so many devices.
    pub fn together(devices: usize) -> LayerPlacement {
        LayerPlacement {
            stages: vec![(0..devices).collect()],
            prologue: LayerPlace::Stage(0),
            layers: Vec::new(),
            epilogue: LayerPlace::Stage(0),
            overrides: BTreeMap::new(),
        }
    }

    /// The home of a layer, or of what precedes the layers or follows them.
    pub(crate) fn layer_place(&self, layer: Option<u32>, before: bool) -> LayerPlace {
        match layer {
            Some(l) => {
                let known = self.layers.get(l as usize).copied();
                known.unwrap_or(LayerPlace::Stage(self.stages.len().saturating_sub(1)))
            }
            None if before => self.prologue,
            None => self.epilogue,
        }
    }

    fn place_of(home: LayerPlace) -> Place {
        match home {
            LayerPlace::Host => Place::Host,
            LayerPlace::Stage(s) => Place::Group(Group::new(s)),
        }
    }
}

/// A graph whose values have places.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The graph, with its copies.
    pub graph: Graph,
    /// Values that must stay whole on every device of their stage.
    pub mirrored: Vec<Value>,
}

/// Gives every op of a model's graph its place, and inserts the copies that this takes.
pub fn place(
    graph: &Graph,
    layer_placement: &LayerPlacement,
    devices: &[String],
    topology: &Topology,
    workload: &Workload,
) -> Placed {
    let places = assign::assign(graph, layer_placement, topology, workload);
    let mut out = Graph::new(graph.name.clone());
    let named = |name: &String| DeviceData { name: name.clone() };
    out.devices = devices.iter().map(named).collect();
    let group = |stage: &Vec<usize>| GroupData {
        devices: stage.iter().map(|&d| tpc_ir::Device::new(d)).collect(),
    };
    out.groups = layer_placement.stages.iter().map(group).collect();
    copies::insert(graph, layer_placement, &places, out)
}

/// The group that an instruction runs on; `None` on the host and on single devices, where every value is whole.
pub fn group_of(graph: &Graph, inst: Inst) -> Option<Group> {
    let result = graph.inst(inst).results.first()?;
    match graph.value(*result).place {
        Place::Group(g) => Some(g),
        Place::Host | Place::Device(_) => None,
    }
}

/// The graph with everything on one group of these devices.
pub fn on_group(graph: &Graph, devices: &[String]) -> Graph {
    let layer_placement = LayerPlacement::together(devices.len());
    let workload = Workload::new(1, 1, 1, 1);
    place(
        graph,
        &layer_placement,
        devices,
        &Topology::default(),
        &workload,
    )
    .graph
}
