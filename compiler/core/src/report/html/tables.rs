use serde::Serialize;
use tpc_ir::{Graph, Place};

use super::numbering::number_of;
use super::runs::RangeTable;
use crate::report::sharding::{devices_at, place_name};

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) ranges: RangeTable,
    pub(super) places: Vec<PlaceData>,
}

/// A place with the positions of its devices; empty for the host.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct PlaceData {
    pub(super) name: String,
    pub(super) devices: Vec<usize>,
}

impl Tables {
    pub(super) fn place(&mut self, graph: &Graph, place: Place) -> usize {
        let data = PlaceData {
            name: place_name(graph, place),
            devices: devices_at(graph, place),
        };
        number_of(&mut self.places, data)
    }
}
