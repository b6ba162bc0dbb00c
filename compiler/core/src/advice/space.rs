//! The values that a search tries for each setting.

use tpc_ir::DType;

use super::change::Change;
use super::class::Class;
use super::moves::{Move, Moves};
use super::point::{Chain, Offload, OffloadOrder, Point};
use super::shares::SharedWay;
use crate::placement::{Override, Placement, SplitMode};

/// Changes of options that depend on a point's load.
#[derive(Clone, Debug, Default)]
pub(super) struct Edits {
    pub(super) shares: Option<Vec<f64>>,
    /// New overrides, and the number of layers that they move.
    pub(super) overrides: Option<(Vec<Override>, usize)>,
}

const CACHES: [DType; 2] = [DType::Q8_0, DType::Q4_0];
/// Requested context divided by the depth of estimates, if the user gives no depth.
const FILLED: u64 = 4;
/// The smallest context to try, unless the request is smaller.
const LEAST_CELLS: u64 = 512;
const LEAST_BATCH: u64 = 32;

pub(super) struct Space<'a> {
    pub(super) base: &'a Placement,
    /// The requested context in cells, or else the model's.
    pub(super) ctx_size: u64,
    pub(super) n_block: u64,
    pub(super) has_experts: bool,
    pub(super) has_caches: bool,
    pub(super) ways: Vec<SharedWay>,
    /// Types of the K and V caches, the requested pair first.
    pub(super) caches: Vec<[DType; 2]>,
    /// True if speeds are estimated at a part of the context instead of a requested depth.
    pub(super) filled: bool,
    /// True if the user gave no shares. The placement's shares then apply only to a split by layers.
    pub(super) implied_shares: bool,
    pub(super) floor: Offload,
    /// True if parts that the user put on the host stay there.
    pub(super) keeps_host: bool,
    /// True if devices and host share one memory, so that moves free no memory.
    pub(super) is_pooled: bool,
    pub(super) moves: Moves,
}

impl Space<'_> {
    /// Lists the requested pair of cache types, then smaller types.
    pub(super) fn cache_types(base: &Placement) -> Vec<[DType; 2]> {
        let asked = [base.cache_type_k, base.cache_type_v];
        let bits = |t: DType| t.block_bytes() as f64 / t.block_len() as f64;
        let smaller = |t: &DType| {
            asked.iter().all(|&a| bits(*t) <= bits(a)) && asked.iter().any(|&a| bits(*t) < bits(a))
        };
        let mut out = vec![asked];
        out.extend(CACHES.into_iter().filter(smaller).map(|t| [t, t]));
        out
    }

    pub(super) fn devices_differ(&self) -> bool {
        let memory = |d: usize| self.base.topology.device(d).usable_memory();
        (1..self.base.devices.len()).any(|d| memory(d) != memory(0))
    }

    pub(super) fn chains(&self) -> Vec<Chain> {
        if self.is_pooled {
            return vec![Chain {
                first: self.default_order(),
                kv: self.base.kv_on_host,
                all: false,
            }];
        }
        let kv = match self.has_caches && !self.base.kv_on_host {
            true => vec![false, true],
            false => vec![self.base.kv_on_host],
        };
        let mut firsts = vec![self.default_order()];
        if self.has_experts {
            firsts.push(OffloadOrder::Layers);
        }
        let pairs = kv
            .into_iter()
            .flat_map(|kv| firsts.iter().map(move |&first| (first, kv)));
        let chain = |(first, kv)| Chain {
            first,
            kv,
            all: false,
        };
        let kv = self.base.kv_on_host;
        let all = Chain {
            first: OffloadOrder::Layers,
            kv,
            all: true,
        };
        let moves = (!self.moves.all.is_empty()).then_some((OffloadOrder::Moves, kv));
        let moves = moves.map(chain);
        moves
            .into_iter()
            .chain(pairs.map(chain))
            .chain([all])
            .collect()
    }

    pub(super) fn default_order(&self) -> OffloadOrder {
        match self.has_experts {
            true => OffloadOrder::Experts,
            false => OffloadOrder::Layers,
        }
    }

    /// Returns the first level of a chain. The parts that the user put on the host are there.
    pub(super) fn first_level(&self, chain: Chain) -> u64 {
        match chain.first {
            _ if chain.all => self.last_level(chain),
            OffloadOrder::Moves => 0,
            OffloadOrder::Experts => self.floor.experts,
            OffloadOrder::Layers => self.floor.layers,
        }
    }

    pub(super) fn last_level(&self, chain: Chain) -> u64 {
        let layers = self.n_block + 1;
        match chain.first {
            OffloadOrder::Experts if self.is_pooled => self.floor.experts,
            OffloadOrder::Layers if self.is_pooled => self.floor.layers,
            OffloadOrder::Moves => self.moves.all.len() as u64,
            OffloadOrder::Experts => layers + self.n_block,
            OffloadOrder::Layers => layers,
        }
    }

    pub(super) fn offload(&self, point: &Point) -> Offload {
        let mut out = self.floor;
        out.kv = point.chain.kv;
        match point.chain.first {
            OffloadOrder::Moves => out.moves = point.level,
            OffloadOrder::Experts => {
                out.experts = out.experts.max(point.level.min(self.n_block));
                let behind = point.level.saturating_sub(self.n_block);
                out.layers = out.layers.max(behind);
            }
            OffloadOrder::Layers => out.layers = out.layers.max(point.level),
        }
        out
    }

    /// Lists a class's contexts: the requested one, or the powers of two below it.
    pub(super) fn contexts(&self, class: Class) -> Vec<u64> {
        if !class.context {
            return vec![self.ctx_size];
        }
        let least = LEAST_CELLS.min(self.ctx_size / 2).max(1);
        let mut at = self.ctx_size.next_power_of_two() / 2;
        let mut out = Vec::new();
        while at >= least {
            if at < self.ctx_size {
                out.push(at);
            }
            at /= 2;
        }
        out
    }

    pub(super) fn cache_levels(&self, class: Class) -> Vec<usize> {
        match class.caches {
            true => (1..self.caches.len()).filter(|_| self.has_caches).collect(),
            false => vec![0],
        }
    }

    pub(super) fn sequences(&self, class: Class) -> Vec<u64> {
        let asked = self.base.parallel;
        match class.sequences {
            true => halves(asked, 1),
            false => vec![asked],
        }
    }

    pub(super) fn batches(&self) -> Vec<u64> {
        let asked = self.base.ubatch_size;
        let smaller = halves(asked, LEAST_BATCH).into_iter().take(2);
        std::iter::once(asked).chain(smaller).collect()
    }

    pub(super) fn class(&self, point: &Point) -> Class {
        Class {
            context: point.ctx_size < self.ctx_size,
            caches: point.caches > 0,
            sequences: point.parallel < self.base.parallel,
        }
    }

    pub(super) fn changes(&self, point: &Point, edits: &Edits) -> Vec<Change> {
        let base = self.base;
        let mut out = Vec::new();
        let way = &self.ways[point.way].way;
        if way.mode != base.split_mode && base.devices.len() > 1 {
            out.push(Change::Mode(way.mode));
        }
        let main = way
            .main_device()
            .filter(|&d| d != base.main_device.unwrap_or(0));
        out.extend(main.map(Change::MainDevice));
        out.extend(edits.shares.clone().map(Change::Shares));
        if let Some((all, layers)) = edits.overrides.clone() {
            let experts = self.moves.experts;
            out.push(Change::Overrides {
                all,
                layers,
                experts,
            });
        }
        let offload = self.offload(point);
        if offload.experts != base.host_experts.count(self.n_block) {
            out.push(Change::HostExperts(offload.experts));
        }
        let all = self.n_block + 1;
        let kept = all.saturating_sub(offload.layers);
        if base.n_gpu_layers.map_or(all, |n| n.min(all)) != kept {
            out.push(Change::GpuLayers { kept, all });
        }
        if offload.kv && !base.kv_on_host {
            out.push(Change::KvOnHost);
        }
        if point.caches > 0 {
            let (asked, types) = (self.caches[0], self.caches[point.caches]);
            out.push(Change::Caches { asked, types });
        }
        if point.ctx_size != self.ctx_size {
            let (asked, ctx_size) = (self.ctx_size, point.ctx_size);
            out.push(Change::Context { asked, ctx_size });
        }
        if point.parallel != base.parallel {
            let (asked, count) = (base.parallel, point.parallel);
            out.push(Change::Sequences { asked, count });
        }
        if point.ubatch != base.ubatch_size {
            out.push(Change::Batch(point.ubatch));
        }
        out
    }

    pub(super) fn placement(&self, point: &Point, changes: &[Change]) -> Placement {
        let mut out = self.base.clone();
        if self.implied_shares && self.ways[point.way].way.mode != SplitMode::Layer {
            out.tensor_split = None;
        }
        changes.iter().for_each(|c| c.apply(&mut out));
        out.depth = self.depth(point.ctx_size);
        out
    }

    pub(super) fn depth(&self, ctx_size: u64) -> u64 {
        match self.filled {
            true => (self.ctx_size / FILLED).min(ctx_size),
            false => self.base.depth,
        }
    }

    pub(super) fn overrides(&self, moves: &[&Move]) -> Option<(Vec<Override>, usize)> {
        if moves.is_empty() {
            return None;
        }
        Some((self.moves.edit(self.base, moves)?, moves.len()))
    }
}

fn halves(n: u64, least: u64) -> Vec<u64> {
    let mut out = Vec::new();
    let mut at = n / 2;
    while at >= least.max(1) {
        out.push(at);
        at /= 2;
    }
    out
}
