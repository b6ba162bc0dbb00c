//! What a configuration needs, and about how fast it is, without a plan.
//!
//! The bytes of every layer come from the model's graph. How much of them each device of a stage holds, and how long a
//! token takes with nothing and with everything on the host, come from a sketch per way to divide; in between, times are
//! straight lines. The memory of intermediate values comes from the plan that was asked for, and is corrected by every
//! plan that is drafted.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::program::BatchShape;
use tpc_ir::{Bindings, Device, Place, TensorType};
use tpc_passes::footprint::Footprint;
use tpc_passes::layers::{Prologue, Section};
use tpc_passes::machine::Workload;
use tpc_passes::place::PlaceOverride;

use super::moves::Move;
use super::placed::{Placed, add};
use super::shares::{Shared, Shares, counted};
use super::space::{Offload, Point};
use crate::pipeline::{Compiled, Estimate, Prepared, Sketch, Stored};
use crate::placement::{HostExperts, Placement, overridden, resolve};
use tpc_diag::Diagnostic;

/// Microseconds of a decoded token, and of a token of a prompt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    decode: f64,
    prompt: f64,
}

impl Times {
    pub(super) fn of(estimate: &Estimate) -> Times {
        Times {
            decode: 1e6 / estimate.decode_tps.max(1e-9),
            prompt: 1e6 / estimate.prompt_tps.max(1e-9),
        }
    }

    /// The time of a generated token with the tokens of prompts that come with it.
    pub(super) fn per_token(self) -> f64 {
        self.decode + Workload::PROMPT_WEIGHT * self.prompt
    }

    /// So many times these times.
    pub(super) fn times(self, factor: f64) -> Times {
        Times {
            decode: self.decode * factor,
            prompt: self.prompt * factor,
        }
    }

    /// These times and a part of the way to others.
    fn towards(self, other: Times, part: f64) -> Times {
        Times {
            decode: self.decode + part * (other.decode - self.decode),
            prompt: self.prompt + part * (other.prompt - self.prompt),
        }
    }

    /// These times, changed as another pair of times changes.
    fn changed(self, from: Times, to: Times, part: f64) -> Times {
        Times {
            decode: (self.decode + part * (to.decode - from.decode)).max(0.0),
            prompt: (self.prompt + part * (to.prompt - from.prompt)).max(0.0),
        }
    }
}

/// A tensor or state of the model's graph.
struct Leaf {
    /// Its section: the prologue, a layer, or the epilogue.
    unit: usize,
    ty: TensorType,
    sort: Sort,
    place: Option<PlaceOverride>,
}

#[derive(Clone, Copy)]
enum Sort {
    Expert,
    Weight,
    Cache,
    State,
}

/// What a model stores, with caches of one pair of types.
pub(super) struct Leaves {
    all: Vec<Leaf>,
    units: usize,
    window: Option<tpc_ir::Window>,
}

/// What a configuration stores, before anything is put on the host.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Per section.
    pub(super) units: Vec<Stored>,
    /// Per device, what overrides put there whole.
    pub(super) pinned: Vec<f64>,
    /// What overrides put on the host.
    pub(super) host: f64,
}

/// The room of every device for what it stores.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    /// Beside what overrides put there.
    pub(super) before_compute: Vec<f64>,
    /// Beside intermediate values, too.
    pub(super) all: Vec<f64>,
}

impl Leaves {
    /// The leaves of a model, without the options that move experts, caches and layers to the host.
    ///
    /// # Errors
    /// TPC0410 when a pattern cannot be matched.
    pub(super) fn new(prepared: &Prepared, base: &Placement) -> Result<Leaves, Diagnostic> {
        let graph = &prepared.model.graph;
        let n_block = prepared.model.summary.n_block();
        let plain = Placement {
            host_experts: HostExperts::NONE,
            kv_on_host: false,
            n_gpu_layers: None,
            ..base.clone()
        };
        let together = vec![(0..base.devices.len()).collect()];
        let batch = Bindings::default();
        let places = overridden(graph, &plain)?;
        let resolved = resolve(graph, n_block, &plain, &places, together, &[1.0], &batch);
        let overrides = resolved.layer_placement.overrides;
        let experts: BTreeSet<&str> = prepared.experts();
        let prologue = Prologue::of_graph(graph);
        let n = usize::try_from(n_block).unwrap_or(usize::MAX).min(1 << 16);
        let mut all = Vec::new();
        for (inst, data) in graph.insts().filter(|(_, d)| d.op.is_stored()) {
            let v = data.results[0];
            let ty = graph.value(v).ty.clone();
            let sort = match &data.op {
                tpc_ir::Op::Weight(w) if experts.contains(w.tensor.as_str()) => Sort::Expert,
                tpc_ir::Op::Weight(_) => Sort::Weight,
                _ if ty.counts_cells() => Sort::Cache,
                _ => Sort::State,
            };
            let unit = match prologue.section(inst, data.layer) {
                Section::Prologue => 0,
                Section::Layer(l) => (l as usize).min(n.saturating_sub(1)) + 1,
                Section::Epilogue => n + 1,
            };
            let place = overrides.get(&v).copied();
            all.push(Leaf {
                unit,
                ty,
                sort,
                place,
            });
        }
        Ok(Leaves {
            all,
            units: n + 2,
            window: prepared.model.summary.window,
        })
    }

    /// Whether any of it is an expert.
    pub(super) fn has_experts(&self) -> bool {
        self.all
            .iter()
            .any(|l| matches!(l.sort, Sort::Expert) && l.place.is_none())
    }

    /// Whether any of it is a cache.
    pub(super) fn has_caches(&self) -> bool {
        self.all.iter().any(|l| matches!(l.sort, Sort::Cache))
    }

    /// What is stored for so many cells, sequences and tokens per batch.
    pub(super) fn load(&self, point: &Point, devices: usize) -> Load {
        let batch = crate::pipeline::memory_batch_of(
            point.cells,
            self.window,
            point.ubatch,
            point.parallel,
        );
        let mut out = Load {
            units: vec![Stored::default(); self.units],
            pinned: vec![0.0; devices],
            host: 0.0,
        };
        for leaf in &self.all {
            let bytes = leaf.ty.bytes(&batch).unwrap_or(u64::MAX) as f64;
            match leaf.place {
                Some(PlaceOverride::Host) => out.host += bytes,
                Some(PlaceOverride::Device(d)) => {
                    if let Some(sum) = out.pinned.get_mut(d) {
                        *sum += bytes;
                    }
                }
                Some(PlaceOverride::Mirrored) => {
                    out.pinned.iter_mut().for_each(|sum| *sum += bytes);
                }
                None => {
                    let unit = &mut out.units[leaf.unit];
                    *match leaf.sort {
                        Sort::Expert => &mut unit.experts,
                        Sort::Weight => &mut unit.weights,
                        Sort::Cache => &mut unit.caches,
                        Sort::State => &mut unit.states,
                    } += bytes;
                }
            }
        }
        out
    }
}

impl Load {
    /// What each section keeps on the devices, and the bytes on the host.
    pub(super) fn divided(&self, offload: Offload) -> (Vec<Stored>, f64) {
        let last = self.units.len() - 1;
        let mut host = self.host;
        let kept = |(i, unit): (usize, &Stored)| {
            // The prologue goes with the first layer; the output is the last of all.
            let layer = (i as u64).saturating_sub(1);
            let gone = match i {
                0 => offload.layers > 0,
                i if i == last => offload.layers >= last as u64,
                _ => layer < offload.layers,
            };
            let mut kept = *unit;
            if gone {
                kept = Stored::default();
            } else {
                if i > 0 && i < last && layer < offload.experts {
                    kept.experts = 0.0;
                }
                if offload.kv {
                    kept.caches = 0.0;
                }
            }
            host += unit.total() - kept.total();
            kept
        };
        let kept = self.units.iter().enumerate().map(kept).collect();
        (kept, host)
    }
}

/// The memory of intermediate values, as the plan that was asked for has it: a part per token of a batch, and a part per
/// token and cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compute {
    per_token: f64,
    per_cell: f64,
}

impl Compute {
    /// That of the fullest device of a plan.
    pub(super) fn of(compiled: &Compiled, placement: &Placement) -> Compute {
        let cells = compiled.caches.n_ctx;
        let window = compiled.model.summary.window;
        let few = cells.min(256);
        let at = |cells: u64| {
            let batch = crate::pipeline::memory_batch_of(
                cells,
                window,
                placement.ubatch_size,
                placement.parallel,
            );
            let prints = compiled.footprints_of(BatchShape { most: batch });
            let devices = prints
                .iter()
                .filter(|(place, _)| matches!(place, Place::Device(_)));
            devices.map(|(_, print)| print.compute).max().unwrap_or(0) as f64
        };
        let (most, least) = (at(cells), at(few));
        let tokens = placement.ubatch_size.max(1) as f64;
        let slope = (most - least).max(0.0) / (cells - few).max(1) as f64;
        Compute {
            per_token: (least - slope * few as f64).max(0.0) / tokens,
            per_cell: slope / tokens,
        }
    }

    /// Bytes at a point, before they are corrected.
    pub(super) fn bytes(self, point: &Point) -> f64 {
        (self.per_token + self.per_cell * point.cells as f64) * point.ubatch as f64
    }
}

/// What is known of one way to divide.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Per device, its part of what its stage stores.
    pub(super) parts: Vec<Stored>,
    /// Per device, the memory of intermediate values as a part of what [`Compute`] says.
    compute: Vec<f64>,
    /// The times with nothing on the host.
    times: Times,
}

impl Known {
    /// Devices that hold whole layers, in this time.
    pub(super) fn whole(devices: usize, times: Times) -> Known {
        let all = Stored {
            experts: 1.0,
            weights: 1.0,
            caches: 1.0,
            states: 1.0,
        };
        Known {
            parts: vec![all; devices],
            compute: vec![1.0; devices],
            times,
        }
    }

    /// What a sketch tells.
    pub(super) fn of(sketch: &Sketch, shared: &Shared, devices: usize) -> Known {
        let mut parts = vec![Stored::default(); devices];
        for (stage, members) in shared.way.stages.iter().enumerate() {
            let whole = sketch.stages[stage];
            let even = 1.0 / members.len() as f64;
            let part = |own: f64, whole: f64| if whole > 0.0 { own / whole } else { even };
            for &d in members {
                let own = sketch.parts[d];
                parts[d] = Stored {
                    experts: part(own.experts, whole.experts),
                    weights: part(own.weights, whole.weights),
                    caches: part(own.caches, whole.caches),
                    states: part(own.states, whole.states),
                };
            }
        }
        Known {
            parts,
            compute: vec![1.0; devices],
            times: Times::of(&sketch.estimate),
        }
    }

    /// Learns the memory of intermediate values from a draft at a point.
    pub(super) fn learn(
        &mut self,
        compute: Compute,
        point: &Point,
        prints: &BTreeMap<Place, Footprint>,
    ) {
        let said = compute.bytes(point).max(1.0);
        for (d, part) in self.compute.iter_mut().enumerate() {
            let print = prints.get(&Place::Device(Device::new(d)));
            *part = print.map_or(0.0, |p| p.compute as f64) / said;
        }
    }
}

/// The times with everything of a sort on the host, by one way to divide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes {
    /// With nothing there.
    pub(super) none: Times,
    /// With all experts.
    pub(super) experts: Option<Times>,
    /// With the caches.
    pub(super) kv: Option<Times>,
    /// With all layers.
    pub(super) layers: Option<Times>,
}

/// The bound on configurations.
pub(super) struct Bound {
    pub(super) compute: Compute,
    /// Per way to divide.
    pub(super) known: Vec<Known>,
    pub(super) extremes: Extremes,
}

impl Bound {
    /// A bound that knows nothing of any way to divide.
    pub(super) fn new(compute: Compute) -> Bound {
        Bound {
            compute,
            known: Vec::new(),
            extremes: Extremes {
                none: Times::default(),
                experts: None,
                kv: None,
                layers: None,
            },
        }
    }

    /// Whether a configuration fits, by what is known of its way to divide. Of memory that the host shares with devices only a
    /// draft tells.
    pub(super) fn fits(&self, it: &Placed<'_>) -> bool {
        let (_, host) = it.load.divided(it.offload);
        let devices = it.base.devices.len();
        let room = it.base.topology.usable_host_memory(devices);
        room.is_none_or(|room| host <= room) && self.fits_devices(it)
    }

    /// Whether a configuration fits on the devices, whatever the host has.
    pub(super) fn fits_devices(&self, it: &Placed<'_>) -> bool {
        let (units, _) = it.load.divided(it.offload);
        let rooms = self.rooms(it);
        match it.shares() {
            Some(shares) if it.shared.way.stages.len() > 1 => {
                it.holds_all(&rooms.all, &units, &it.by_shares(&units, shares))
            }
            _ => in_order(&units, it.shared.way.stages.len(), &|stage, stored| {
                it.holds(&rooms.all, stage, stored)
            }),
        }
    }

    /// The room of every device.
    fn rooms(&self, it: &Placed<'_>) -> Rooms {
        let compute = self.compute.bytes(it.point);
        let usable = |d: usize| {
            let usable = it.base.topology.device(d).usable_memory();
            usable.unwrap_or(f64::INFINITY) - it.load.pinned[d]
        };
        let before_compute: Vec<f64> = (0..it.base.devices.len()).map(usable).collect();
        let taken = before_compute.iter().zip(&it.known.compute);
        Rooms {
            all: taken.map(|(room, part)| room - compute * part).collect(),
            before_compute,
        }
    }

    /// The layers of each device that fit, if a way counts them for each configuration and they differ from what was asked.
    pub(super) fn counted(&self, it: &Placed<'_>, drafting: u64) -> Option<Vec<f64>> {
        if it.shared.shares != Shares::Counted {
            return None;
        }
        let (units, _) = it.load.divided(it.offload);
        let rooms = self.rooms(it);
        let holds = |stages: &[usize]| it.holds_all(&rooms.all, &units, stages);
        let counts = counted(&units, &rooms, drafting, &holds);
        let asked = it.base.tensor_split.as_deref();
        let same = |asked| it.by_shares(&units, asked) == it.by_shares(&units, &counts);
        (!asked.is_some_and(same)).then_some(counts)
    }

    /// The first `n` moves of layers to the host, each of which relieves the fullest device that any can relieve, and what is
    /// stored after them.
    pub(super) fn moved<'m>(
        &self,
        it: &Placed<'_>,
        moves: &'m [Move],
        n: usize,
    ) -> (Vec<&'m Move>, Load) {
        let mut load = it.load.clone();
        if n == 0 {
            return (Vec::new(), load);
        }
        let (units, _) = load.divided(it.offload);
        let stages = it.stages_of(&units);
        let mut left: Vec<&Move> = moves.iter().collect();
        let mut out = Vec::new();
        while out.len() < n {
            let now = Placed { load: &load, ..*it };
            let fullness = self.fullness(&now, &stages);
            let mut order: Vec<usize> = (0..fullness.len()).collect();
            order.sort_by(|&a, &b| fullness[b].total_cmp(&fullness[a]));
            let relieves = |m: &Move, d: usize| {
                let unit = usize::try_from(m.layer)
                    .unwrap_or(usize::MAX)
                    .saturating_add(1);
                let stage = stages.get(unit).map(|&s| &it.shared.way.stages[s]);
                m.pinned[d] > 0.0 || m.leaves_layer() && stage.is_some_and(|s| s.contains(&d))
            };
            let next = order
                .iter()
                .find_map(|&d| left.iter().position(|m| relieves(m, d)));
            let Some(next) = next else { break };
            let next = left.remove(next);
            next.apply(&mut load);
            out.push(next);
        }
        (out, load)
    }

    /// The part of its memory that each device needs.
    fn fullness(&self, it: &Placed<'_>, stages: &[usize]) -> Vec<f64> {
        let (units, _) = it.load.divided(it.offload);
        let rooms = self.rooms(it).all;
        let held = it.held(&units, stages);
        let mut out = vec![0.0; rooms.len()];
        for (members, stored) in it.shared.way.stages.iter().zip(&held) {
            for &d in members {
                let usable = it.base.topology.device(d).usable_memory();
                let usable = usable.unwrap_or(f64::INFINITY).max(1.0);
                out[d] = (usable - rooms[d] + it.own(d, stored)) / usable;
            }
        }
        out
    }

    /// The estimated times of a point. What is known of its way has as much on the host as `floor` says.
    pub(super) fn times(
        &self,
        point: &Point,
        (offload, floor): (Offload, Offload),
        load: &Load,
        asked_ubatch: u64,
    ) -> Times {
        let Extremes {
            none,
            experts,
            kv,
            layers,
        } = self.extremes;
        let mut out = self.known[point.way].times;
        if let Some(all) = experts {
            let inner = &load.units[1..load.units.len() - 1];
            let of_first = |n: u64| {
                let n = usize::try_from(n).unwrap_or(usize::MAX).min(inner.len());
                inner[..n].iter().filter(|u| u.experts > 0.0).count() as f64
            };
            let least = of_first(floor.experts);
            let gone = (of_first(offload.experts) - least).max(0.0);
            let left = of_first(u64::MAX) - least;
            out = out.changed(none, all, gone / left.max(1.0));
        }
        if let Some(all) = kv.filter(|_| offload.kv && !floor.kv) {
            out = out.changed(none, all, 1.0);
        }
        if let Some(all) = layers {
            let all_layers = (load.units.len() - 1) as u64;
            let gone = offload.layers.saturating_sub(floor.layers) as f64;
            let left = all_layers.saturating_sub(floor.layers) as f64;
            out = out.towards(all, (gone / left.max(1.0)).min(1.0));
        }
        // Weights are read once per batch: at worst, a prompt takes as long per batch as before.
        out.prompt *= asked_ubatch as f64 / point.ubatch.max(1) as f64;
        out
    }
}

/// Whether consecutive units can be divided among so many stages, each of which holds what it can.
pub(super) fn in_order(
    units: &[Stored],
    stages: usize,
    holds: &dyn Fn(usize, &Stored) -> bool,
) -> bool {
    let (mut stage, mut held) = (0, Stored::default());
    for unit in units {
        loop {
            let mut with = held;
            add(&mut with, unit);
            if holds(stage, &with) {
                held = with;
                break;
            }
            (stage, held) = (stage + 1, Stored::default());
            if stage >= stages {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(weights: f64) -> Stored {
        Stored {
            weights,
            ..Stored::default()
        }
    }

    #[test]
    fn consecutive_units_fill_stages() {
        let room = [3.0, 2.0];
        let holds = |stage: usize, stored: &Stored| stored.total() <= room[stage];
        let fits = |units: &[f64]| {
            let units: Vec<Stored> = units.iter().map(|&w| unit(w)).collect();
            in_order(&units, 2, &holds)
        };
        assert!(fits(&[1.0, 1.0, 1.0, 1.0, 1.0]) && fits(&[3.0, 2.0]) && fits(&[]));
        assert!(!fits(&[2.0, 2.0, 1.0]) && !fits(&[4.0]));
    }

    #[test]
    fn what_goes_to_the_host_leaves_the_devices() {
        let layer = Stored {
            experts: 8.0,
            weights: 1.0,
            caches: 2.0,
            states: 0.0,
        };
        let load = Load {
            units: vec![unit(4.0), layer, layer, unit(4.0)],
            pinned: vec![0.0],
            host: 1.0,
        };
        let host = |experts, layers, kv| {
            let (kept, host) = load.divided(Offload {
                experts,
                layers,
                kv,
                moves: 0,
            });
            let kept: f64 = kept.iter().map(Stored::total).sum();
            assert_eq!(kept + host, 31.0);
            host
        };
        assert_eq!(host(0, 0, false), 1.0);
        assert_eq!(host(1, 0, false), 9.0);
        assert_eq!(host(2, 0, true), 21.0);
        assert_eq!(host(0, 1, false), 16.0);
        assert_eq!(host(2, 1, false), 24.0);
        assert_eq!(host(0, 3, false), 31.0);
    }
}
