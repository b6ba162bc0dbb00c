use tpc_ir::Bindings;
use tpc_passes::machine::{Engine, Workload};
use tpc_passes::plan::PlanRequest;

use super::model::Model;
use crate::placement::{
    CacheSplit, OverriddenPlaces, Placement, ResolvedPlacement, SplitMode, resolve,
};

#[derive(Clone, Debug)]
pub(super) struct Strategy {
    pub(super) number: usize,
    pub(super) mode: SplitMode,
    pub(super) resolved: ResolvedPlacement,
    pub(super) request: PlanRequest,
}

impl Strategy {
    /// True if the strategy has groups of devices that a simpler strategy lacks: in one machine, layers of groups; on
    /// several machines, tensors split between machines.
    pub(super) fn is_group(&self) -> bool {
        let machines = &self.request.topology.machines;
        let stages = &self.request.layer_placement.stages;
        match machines.is_one() {
            true => self.mode == SplitMode::Hybrid,
            false => stages.iter().any(|stage| machines.group(stage).len() > 1),
        }
    }
}

pub(super) fn main_device(mode: SplitMode, stages: &[Vec<usize>]) -> Option<usize> {
    match (mode, stages) {
        (SplitMode::None, [only]) => only.first().copied(),
        _ => None,
    }
}

/// A way to divide a model: a split mode with its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The mode.
    pub mode: SplitMode,
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// Positions of each stage's devices.
    pub stages: Vec<Vec<usize>>,
    /// True if devices that share tensors divide KV caches by cells.
    pub cells: bool,
}

impl Way {
    /// Returns the device of an unsplit model.
    pub fn main_device(&self) -> Option<usize> {
        main_device(self.mode, &self.stages)
    }

    fn new(mode: SplitMode, name: impl Into<String>, stages: Vec<Vec<usize>>) -> Way {
        Way {
            mode,
            name: name.into(),
            stages,
            cells: false,
        }
    }

    /// True if each stage has all devices of one machine.
    pub(super) fn has_whole_machines(&self, placement: &Placement) -> bool {
        let all: Vec<usize> = (0..placement.devices.len()).collect();
        self.stages == placement.topology.machines.group(&all)
    }

    /// Returns this way with KV caches divided by cells; `None` if devices do not share tensors.
    #[must_use]
    pub fn by_cells(&self) -> Option<Way> {
        self.mode.splits_tensors().then(|| Way {
            name: format!("{}, cache by cells", self.name),
            cells: true,
            ..self.clone()
        })
    }
}

/// Lists the ways of a placement's split mode.
pub fn ways(placement: &Placement) -> Vec<Way> {
    let own = ways_by_heads(placement);
    match (placement.cache_split, placement.engine) {
        (CacheSplit::Cells, Engine::Tpc) => {
            let by_cells = |way: Way| way.by_cells().unwrap_or(way);
            own.into_iter().map(by_cells).collect()
        }
        _ => own,
    }
}

fn ways_by_heads(placement: &Placement) -> Vec<Way> {
    let n = placement.devices.len();
    let none = |d: usize| Way::new(SplitMode::None, "none", vec![vec![d]]);
    let layer = || {
        let stages = (0..n).map(|d| vec![d]).collect();
        Way::new(SplitMode::Layer, "layer", stages)
    };
    let tensor = || Way::new(SplitMode::Tensor, "tensor", vec![(0..n).collect()]);
    match placement.split_mode {
        _ if n == 1 => vec![none(0)],
        SplitMode::None => vec![none(placement.main_device.unwrap_or(0))],
        SplitMode::Layer => vec![layer()],
        SplitMode::Tensor => vec![tensor()],
        SplitMode::Hybrid => hybrids(placement),
        SplitMode::Auto => {
            let main = placement.main_device.unwrap_or_else(|| roomiest(placement));
            let mut out = vec![tensor(), layer(), none(main)];
            // Only tpc supports groups in sequence.
            if placement.engine == Engine::Tpc {
                out.extend(hybrids(placement));
            }
            out
        }
    }
}

fn roomiest(placement: &Placement) -> usize {
    let key = |d: usize| {
        let device = placement.topology.device(d);
        (device.usable_memory().unwrap_or(0.0), device.bandwidth)
    };
    let more = |a: (f64, f64), b: (f64, f64)| a.0 > b.0 || a.0 == b.0 && a.1 > b.1;
    (0..placement.devices.len())
        .reduce(|best, d| if more(key(d), key(best)) { d } else { best })
        .unwrap_or(0)
}

/// Lists the ways with layers per group of devices, and tensors split within groups. In one machine, groups have any
/// equal size.
fn hybrids(placement: &Placement) -> Vec<Way> {
    let n = placement.devices.len();
    let devices: Vec<usize> = (0..n).collect();
    let machines = placement.topology.machines.group(&devices);
    let divisions = match machines.as_slice() {
        [_] => (2..n)
            .filter(|size| n.is_multiple_of(*size))
            .map(|size| devices.chunks(size).map(<[usize]>::to_vec).collect())
            .collect(),
        _ => groups_of_machines(&machines),
    };
    divisions.into_iter().map(hybrid).collect()
}

/// Lists the groups to compare on several machines: each machine, half of each machine, and joined machines. No group
/// has a part of a machine and devices of another.
fn groups_of_machines(machines: &[Vec<usize>]) -> Vec<Vec<Vec<usize>>> {
    let n = machines.len();
    let mut out = Vec::new();
    if machines.iter().any(|own| own.len() > 1) {
        out.push(machines.to_vec());
    }
    if machines
        .iter()
        .all(|own| own.len() > 2 && own.len().is_multiple_of(2))
    {
        let halves = |own: &Vec<usize>| -> Vec<Vec<usize>> {
            own.chunks(own.len() / 2).map(<[usize]>::to_vec).collect()
        };
        out.push(machines.iter().flat_map(halves).collect());
    }
    let joined = (2..n).filter(|size| n.is_multiple_of(*size));
    // Larger groups of full machines reduce over a network for every layer, so one size is enough.
    let sizes = if machines.iter().all(|own| own.len() == 1) {
        n
    } else {
        1
    };
    out.extend(
        joined
            .take(sizes)
            .map(|size| machines.chunks(size).map(<[Vec<usize>]>::concat).collect()),
    );
    out
}

fn hybrid(stages: Vec<Vec<usize>>) -> Way {
    let first = stages.first().map_or(0, Vec::len);
    let name = match stages.iter().all(|s| s.len() == first) {
        true => format!("layer of {} × tensor of {first}", stages.len()),
        false => {
            let sizes: Vec<String> = stages.iter().map(|s| s.len().to_string()).collect();
            format!("layer of {} × tensor of {}", stages.len(), sizes.join(", "))
        }
    };
    Way::new(SplitMode::Hybrid, name, stages)
}

pub(super) fn strategy(
    model: &Model,
    workload: Workload,
    placement: &Placement,
    overridden: &OverriddenPlaces,
    way: &Way,
    batch: &Bindings,
) -> Strategy {
    let Way {
        mode,
        stages,
        cells,
        ..
    } = way.clone();
    let names = placement.devices.iter().map(|d| d.name.clone()).collect();
    let mut request = PlanRequest::new(placement.topology.clone(), workload, names);
    request.engine = placement.engine;
    request.sums = placement.sums;
    // Other engines cut tensors at the file's blocks.
    if placement.engine == Engine::Tpc {
        request.storage = placement.storage;
    }
    request.depth = placement.depth;
    request.tensor_split.clone_from(&placement.tensor_split);
    if mode == SplitMode::None {
        request.tensor_split = None;
        request
            .topology
            .give_processor_to(stages.concat().first().copied());
    }
    // Stages hold layers in proportion to shares, or else to memory if known.
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
    if cells {
        request.divide_cells(placement.parallel);
    }
    Strategy {
        number: 0,
        mode,
        resolved,
        request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(machines: &[usize]) -> Vec<Vec<usize>> {
        let mut next = 0;
        let machines: Vec<Vec<usize>> = machines
            .iter()
            .map(|&n| {
                next += n;
                (next - n..next).collect()
            })
            .collect();
        let divisions = groups_of_machines(&machines);
        divisions
            .into_iter()
            .map(|stages| stages.iter().map(Vec::len).collect())
            .collect()
    }

    #[test]
    fn groups_do_not_straddle_machines() {
        assert_eq!(sizes(&[8, 8]), [vec![8, 8], vec![4; 4]]);
        assert_eq!(sizes(&[8; 8]), [vec![8; 8], vec![4; 16], vec![16; 4]]);
        assert_eq!(sizes(&[4, 2]), [vec![4, 2]]);
        assert_eq!(sizes(&[1; 4]), [vec![2; 2]]);
        assert_eq!(sizes(&[1; 8]), [vec![2; 4], vec![4; 2]]);
        assert_eq!(
            hybrid(vec![vec![0, 1], vec![2]]).name,
            "layer of 2 × tensor of 2, 1"
        );
    }
}
