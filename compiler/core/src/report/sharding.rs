use tpc_ir::{Graph, Op, Place, RANK, Sharding, Value};

use super::plan::{Ranges, ShardingReport};

/// Reports the sharding of a value of the sharded graph.
pub fn sharding_report(graph: &Graph, value: Value) -> ShardingReport {
    let data = graph.value(value);
    let sharding: &Sharding = &data.sharding;
    let axis = (0..RANK).find(|&a| sharding.axes[a].is_some());
    let Some(axis) = axis else {
        return ShardingReport {
            kind: "mirrored",
            axis: None,
            ranges: Ranges::Single(Vec::new()),
        };
    };
    if matches!(graph.def_op(value), Op::State(state) if state.cells.is_some()) {
        return ShardingReport {
            kind: "cells",
            axis: Some(axis),
            ranges: Ranges::Single(Vec::new()),
        };
    }
    let runs: Vec<Vec<[u64; 2]>> = (0..graph.ranks(data.place))
        .map(|rank| {
            let runs = sharding
                .intervals(axis, &data.ty.dims[axis], &graph.classes, rank)
                .unwrap_or_default();
            runs.iter().map(|r| [r.start, r.len]).collect()
        })
        .collect();
    let ranges = if runs.iter().all(|r| r.len() <= 1) {
        Ranges::Single(
            runs.iter()
                .map(|r| r.first().copied().unwrap_or([0, 0]))
                .collect(),
        )
    } else {
        Ranges::Segments(runs)
    };
    ShardingReport {
        kind: "split",
        axis: Some(axis),
        ranges,
    }
}

/// Returns a place's name: `tp0`, `host`, or a device's name.
pub(super) fn place_name(graph: &Graph, place: Place) -> String {
    match place {
        Place::Device(d) => graph.device(d).name.clone(),
        Place::Group(g) => match graph.group(g).devices.as_slice() {
            [one] => graph.device(*one).name.clone(),
            _ => place.to_string(),
        },
        Place::Host => place.to_string(),
    }
}

pub(super) fn devices_at(graph: &Graph, place: Place) -> Vec<usize> {
    match place {
        Place::Host => Vec::new(),
        Place::Device(d) => vec![d.index()],
        Place::Group(g) => graph.group(g).devices.iter().map(|d| d.index()).collect(),
    }
}
