//! Assigns a place to every op, and inserts copies between places.
//!
//! [`place`] applies three rules:
//!
//! 1. Weights and states are at the place of their layer (a stage of devices, or the host) unless overridden.
//! 2. An op over weights runs at the weights, and an update at its state. An expensive op without weights or states
//!    (attention, scans) runs at the place of its layer.
//! 3. A minimum cut between the host and the devices places all other ops, so that copies are cheapest.
//!
//! A `copy` op brings a value once to each other place that reads it. Later passes treat copies like other ops: factors
//! are inferred through them.

mod assign;
mod copies;
mod cut;
mod min_cut;

use std::collections::BTreeMap;

use tpc_ir::{DeviceData, Graph, Group, GroupData, Inst, Place, Value};

use crate::layers::Section;
use crate::machine::{Topology, Workload};

/// The places of layers, and of single weights and states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerPlacement {
    /// The devices of each stage, by position, in layer order; one stage for a plain tensor split.
    pub stages: Vec<Vec<usize>>,
    /// The prologue's place.
    pub prologue: LayerPlace,
    /// The place of each layer; the last stage for layers beyond the list.
    pub layers: Vec<LayerPlace>,
    /// The epilogue's place.
    pub epilogue: LayerPlace,
    /// The model's weights and states with a place of their own.
    pub overrides: BTreeMap<Value, PlaceOverride>,
}

/// The place of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerPlace {
    /// On the host.
    Host,
    /// On the devices of a stage.
    Stage(usize),
}

impl LayerPlace {
    fn place(self) -> Place {
        match self {
            LayerPlace::Host => Place::Host,
            LayerPlace::Stage(s) => Place::Group(Group::new(s)),
        }
    }
}

/// The place of a weight or state that is not at its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceOverride {
    /// On the host.
    Host,
    /// Whole on one device.
    Device(usize),
    /// Whole on all devices of its stage.
    Mirrored,
}

impl LayerPlacement {
    /// Places all layers on one stage of `devices` devices.
    pub fn single_stage(devices: usize) -> LayerPlacement {
        LayerPlacement {
            stages: vec![(0..devices).collect()],
            prologue: LayerPlace::Stage(0),
            layers: Vec::new(),
            epilogue: LayerPlace::Stage(0),
            overrides: BTreeMap::new(),
        }
    }

    pub(crate) fn of_section(&self, section: Section) -> LayerPlace {
        match section {
            Section::Layer(l) => {
                let known = self.layers.get(l as usize).copied();
                known.unwrap_or(LayerPlace::Stage(self.stages.len().saturating_sub(1)))
            }
            Section::Prologue => self.prologue,
            Section::Epilogue => self.epilogue,
        }
    }
}

/// A graph with places.
#[derive(Clone, Debug)]
pub struct PlacedGraph {
    /// The graph, with copies.
    pub graph: Graph,
    /// Values that must stay whole on every device of their stage.
    pub mirrored: Vec<Value>,
}

/// Places every op of a model's graph and inserts copies.
pub fn place(
    graph: &Graph,
    placement: &LayerPlacement,
    devices: &[String],
    topology: &Topology,
    workload: &Workload,
) -> PlacedGraph {
    let places = assign::assign(graph, placement, topology, workload);
    let mut out = graph.without_insts();
    let (values, insts) = (graph.values().len(), graph.insts().len());
    out.reserve(values + values / 8, insts + insts / 8);
    let named = |name: &String| DeviceData { name: name.clone() };
    out.devices = devices.iter().map(named).collect();
    let group = |stage: &Vec<usize>| GroupData {
        devices: stage.iter().map(|&d| tpc_ir::Device::new(d)).collect(),
    };
    out.groups = placement.stages.iter().map(group).collect();
    copies::insert(graph, placement, &places, out)
}

/// Returns the group of an instruction; `None` on the host and on single devices.
pub fn group_of(graph: &Graph, inst: Inst) -> Option<Group> {
    let result = graph.inst(inst).results.first()?;
    match graph.value(*result).place {
        Place::Group(g) => Some(g),
        Place::Host | Place::Device(_) => None,
    }
}

/// Returns the graph with all ops on one group of devices.
pub fn place_on_group(graph: &Graph, devices: &[String]) -> Graph {
    let placement = LayerPlacement::single_stage(devices.len());
    let workload = Workload::new(1, 1, 1, 1);
    place(graph, &placement, devices, &Topology::default(), &workload).graph
}
