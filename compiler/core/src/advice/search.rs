use std::collections::BTreeSet;

use tpc_passes::machine::Engine;

use super::advisor::Advisor;
use super::bound::Bound;
use super::change::Change;
use super::class::Class;
use super::compute::Compute;
use super::configuration::Configuration;
use super::effort::{Costs, Effort};
use super::growth::{self, Growth};
use super::leaves::Leaves;
use super::load::Load;
use super::moves::Moves;
use super::point::{Chain, Offload, OffloadOrder, Point};
use super::shares::{SharedWay, Shares, shared_ways};
use super::space::{Edits, Space};
use super::way_profile::WayProfile;
use crate::pipeline::{CompiledModel, in_parallel};
use crate::placement::{Placement, SplitMode};

/// Maximum time of a milder point, relative to the fastest point of its class.
const MILDER: f64 = 1.06;
/// Minimum speedup of a point over a point with fewer losses.
pub(super) const FASTER: f64 = 1.05;
/// Two contexts count as equal if their ratio is at least this.
const AS_MUCH: f64 = 0.75;
/// Cells between two contexts to try.
pub(super) const CELLS: u64 = 256;

pub(super) struct Search<'a> {
    pub(super) advisor: &'a Advisor<'a>,
    pub(super) space: Space<'a>,
    pub(super) bound: Bound,
    pub(super) leaves: Vec<Leaves>,
    pub(super) costs: Vec<Costs>,
    pub(super) effort: Effort,
    /// Kinds of bytes that the engine refuses to have on the host if tensors are split.
    refused: BTreeSet<OnHost>,
    /// Draft blocks after the last layer; each counts as a layer.
    drafting: u64,
    insts: usize,
}

/// Kinds of bytes, true if on the host: experts, whole layers, caches.
type OnHost = [bool; 3];

/// A point with its estimated time per token, in µs.
pub(super) type TimedPoint = (Point, f64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The requested plan does not fit.
    Fit,
    /// The requested plan fits, but may be slow.
    Speed,
}

impl<'a> Search<'a> {
    /// Starts a search from a plan; `None` if the model cannot be planned. Speeds are estimated at the requested depth
    /// if the plan fits, else at a part of the context.
    pub(super) fn new(
        advisor: &'a Advisor<'a>,
        base: &'a Placement,
        compiled: &'a CompiledModel,
        purpose: Purpose,
    ) -> Option<Search<'a>> {
        let caches = Space::cache_types(base);
        // A cache type is excluded if rows are not whole blocks.
        let leaves = |types: [tpc_ir::DType; 2]| {
            let placement = Placement {
                cache_type_k: types[0],
                cache_type_v: types[1],
                ..base.clone()
            };
            let prepared = advisor.origin.prepare(&placement).ok()?;
            let leaves = Leaves::new(&prepared, base).ok()?;
            Some((types, leaves, prepared))
        };
        let mut all: Vec<_> = in_parallel(caches, leaves).into_iter().flatten().collect();
        let asked = [base.cache_type_k, base.cache_type_v];
        let prepared = all.first().filter(|(types, ..)| *types == asked)?;
        let prepared = prepared.2.clone();
        let n_block = compiled.model.summary.n_block();
        let fits = purpose == Purpose::Fit && host_fits(base, compiled);
        let floor = Offload {
            experts: base.host_experts.count(n_block),
            layers: (base.n_gpu_layers).map_or(0, |kept| (n_block + 1).saturating_sub(kept)),
            ..Offload::default()
        };
        let mut ways = shared_ways(base, &prepared);
        let engine = advisor.engine;
        let refuses = |placement: &Placement| {
            let tensor = ways.iter().find(|w| w.way.mode == SplitMode::Tensor);
            tensor.is_some_and(|w| prepared.refuses(engine, placement, &w.way))
        };
        let refused = refused_on_host(engine, base, n_block, &refuses);
        if refused.contains(&[false; 3]) {
            ways.retain(|w| w.way.mode != SplitMode::Tensor);
        }
        let first = &all.first()?.1;
        let space = Space {
            filled: purpose == Purpose::Fit && base.depth == 0,
            base,
            ctx_size: compiled.caches.n_ctx,
            n_block,
            has_experts: first.has_experts(),
            has_caches: first.has_caches(),
            ways,
            caches: all.iter().map(|a| a.0).collect(),
            implied_shares: advisor.implied_shares,
            floor: if fits { floor } else { Offload::default() },
            keeps_host: fits || purpose == Purpose::Speed,
            is_pooled: base.topology.host_is_shared(base.devices.len()),
            moves: match purpose {
                Purpose::Fit => Moves::new(&prepared, base),
                Purpose::Speed => Moves::default(),
            },
        };
        let insts = compiled.model.graph.insts().len();
        let sharing = |w: &SharedWay| w.way.stages.iter().map(Vec::len).max().unwrap_or(1);
        let devices = base.devices.len();
        let costs = space
            .ways
            .iter()
            .map(|w| Costs::of(insts, n_block, (sharing(w), devices)));
        let mut out = Search {
            advisor,
            bound: Bound::new(Compute::of(compiled, base)),
            costs: costs.collect(),
            space,
            leaves: all.drain(..).map(|a| a.1).collect(),
            effort: Effort::new(advisor.limits),
            refused,
            drafting: (compiled.model.summary.ignored_drafts).map_or(0, |d| d.blocks),
            insts,
        };
        out.learn(compiled, purpose)?;
        Some(out)
    }

    pub(super) fn origin(&self, way: usize) -> Point {
        let chain = Chain {
            first: self.space.default_order(),
            kv: self.space.base.kv_on_host,
            all: false,
        };
        Point {
            way,
            chain,
            level: self.space.first_level(chain),
            caches: 0,
            ctx_size: self.space.ctx_size,
            parallel: self.space.base.parallel,
            ubatch: self.space.base.ubatch_size,
        }
    }

    /// Returns a class's points, sorted by estimated time. For each way and chain, this is the mildest point that is
    /// not much slower than the fastest.
    pub(super) fn candidates(&self, class: Class) -> Vec<TimedPoint> {
        let space = &self.space;
        let mut loads: Vec<(Point, Load)> = Vec::new();
        for caches in space.cache_levels(class) {
            for ctx_size in space.contexts(class) {
                for parallel in space.sequences(class) {
                    for ubatch in space.batches() {
                        let point = Point {
                            caches,
                            ctx_size,
                            parallel,
                            ubatch,
                            ..self.origin(0)
                        };
                        let load = self.leaves[caches].load(&point, space.base.devices.len());
                        loads.push((point, load));
                    }
                }
            }
        }
        let mut out: Vec<TimedPoint> = Vec::new();
        for way in 0..space.ways.len() {
            for chain in space.chains() {
                let timed = |(point, load): &(Point, Load)| {
                    let point = Point {
                        way,
                        chain,
                        ..*point
                    };
                    let level = self.least_level(&self.bound.known[way], &point, load)?;
                    let point = Point { level, ..point };
                    Some((point, self.time(&point, load)))
                };
                let all: Vec<TimedPoint> = loads.iter().filter_map(timed).collect();
                let least = all.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
                // The loads are sorted by precision and size, the largest first.
                out.extend(all.into_iter().find(|p| p.1 <= least * MILDER));
            }
        }
        out.sort_by(|a, b| a.1.total_cmp(&b.1));
        // Skip a chain with the same bytes on the host as an earlier chain.
        let mut seen = BTreeSet::new();
        out.retain(|(p, _)| seen.insert((p.way, space.offload(p))));
        out
    }

    /// True if the engine refuses to split tensors with these parts on the host.
    fn is_refused(&self, point: &Point) -> bool {
        let of = self.space.offload(point);
        let host = [of.experts + of.moves > 0, of.layers > 0, of.kv];
        self.space.ways[point.way].way.mode == SplitMode::Tensor && self.refused.contains(&host)
    }

    fn time(&self, point: &Point, load: &Load) -> f64 {
        let offload = self.space.offload(point);
        let asked = self.space.base.ubatch_size;
        let moved = self.space.moves.all.len().max(1) as f64;
        let moved = offload.moves as f64 / moved;
        let times = self
            .bound
            .times(point, (offload, self.space.floor), load, asked);
        times.per_token() * (1.0 + moved)
    }

    fn configuration<'b>(
        &'b self,
        known: &'b WayProfile,
        point: &'b Point,
        load: &'b Load,
    ) -> Configuration<'b> {
        Configuration {
            known,
            shared: &self.space.ways[point.way],
            base: self.space.base,
            point,
            load,
            offload: self.space.offload(point),
        }
    }

    /// Computes a point's load after its moves, and the edits. Returns `None` if the point needs more moves than exist.
    fn settle(&self, known: &WayProfile, point: &Point, load: &Load) -> Option<(Load, Edits)> {
        let it = self.configuration(known, point, load);
        let n = usize::try_from(it.offload.moves).unwrap_or(usize::MAX);
        let (moves, load) = self.bound.move_layers(&it, &self.space.moves.all, n);
        if moves.len() < n {
            return None;
        }
        let overrides = self.space.overrides(&moves);
        let now = Configuration { load: &load, ..it };
        let shares = match &it.shared.shares {
            Shares::Asked => None,
            Shares::Given(shares) => Some(shares.clone()),
            Shares::Counted => self.bound.count_layers(&now, self.drafting),
        };
        Some((load, Edits { shares, overrides }))
    }

    pub(super) fn changes(&self, known: &WayProfile, point: &Point) -> Option<Vec<Change>> {
        let devices = self.space.base.devices.len();
        let load = self.leaves[point.caches].load(point, devices);
        let (_, edits) = self.settle(known, point, &load)?;
        Some(self.space.changes(point, &edits))
    }

    fn after_moves(&self, known: &WayProfile, point: &Point, load: &Load) -> Option<Load> {
        let it = self.configuration(known, point, load);
        let n = usize::try_from(it.offload.moves).unwrap_or(usize::MAX);
        let (moves, load) = self.bound.move_layers(&it, &self.space.moves.all, n);
        (moves.len() == n).then_some(load)
    }

    fn fits(&self, known: &WayProfile, point: &Point, load: &Load) -> bool {
        if point.chain.first != OffloadOrder::Moves {
            return self.bound.fits(&self.configuration(known, point, load));
        }
        let load = self.after_moves(known, point, load);
        load.is_some_and(|load| self.bound.fits(&self.configuration(known, point, &load)))
    }

    fn fits_devices(&self, known: &WayProfile, point: &Point, load: &Load) -> bool {
        if point.chain.first != OffloadOrder::Moves {
            return self
                .bound
                .fits_devices(&self.configuration(known, point, load));
        }
        let load = self.after_moves(known, point, load);
        load.is_some_and(|load| {
            self.bound
                .fits_devices(&self.configuration(known, point, &load))
        })
    }

    /// Returns the lowest level that fits according to the bound; `None` if no level fits or the engine refuses the
    /// level.
    fn least_level(&self, known: &WayProfile, point: &Point, load: &Load) -> Option<u64> {
        let level = self.level_of_devices(known, point, load);
        let at = Point { level, ..*point };
        (!self.is_refused(&at) && self.fits(known, &at, load)).then_some(level)
    }

    /// Returns the lowest level that fits on the devices according to the bound, or else the last level. Ignores the
    /// host's memory.
    pub(super) fn level_of_devices(&self, known: &WayProfile, point: &Point, load: &Load) -> u64 {
        let last = self.space.last_level(point.chain);
        let (mut low, mut high) = (self.space.first_level(point.chain).min(last), last);
        while low < high {
            let middle = low + (high - low) / 2;
            let at = Point {
                level: middle,
                ..*point
            };
            if self.fits_devices(known, &at, load) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    pub(super) fn mildest(&self, class: Class, known: &WayProfile, point: &Point) -> Option<Point> {
        let devices = self.space.base.devices.len();
        let load = |p: &Point| self.leaves[p.caches].load(p, devices);
        let level = self.least_level(known, point, &load(point))?;
        let mut out = Point { level, ..*point };
        if class.context {
            let fits = |steps: u64| {
                let ctx_size = (steps * CELLS).min(self.space.ctx_size - 1);
                let larger = Point { ctx_size, ..out };
                self.fits(known, &larger, &load(&larger))
            };
            let (mut low, mut high) = (out.ctx_size / CELLS, (self.space.ctx_size - 1) / CELLS);
            while low < high {
                let middle = high - (high - low) / 2;
                if fits(middle) {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            out.ctx_size = out.ctx_size.max(low * CELLS);
        }
        Some(out)
    }

    pub(super) fn growth(&mut self) -> Option<Growth> {
        let base = self.space.base;
        let asked = self.origin(0);
        let load = self.leaves.first()?.load(&asked, base.devices.len());
        let all = self.space.n_block + 1;
        let (units, _) = load.divide(Offload {
            experts: base.host_experts.count(self.space.n_block),
            layers: base.n_gpu_layers.map_or(0, |kept| all.saturating_sub(kept)),
            kv: base.kv_on_host,
            moves: 0,
        });
        let taken = self.bound.compute.bytes(&asked);
        let stored = (units.as_slice(), taken);
        let size = (self.insts, self.space.n_block);
        growth::growth(self.advisor, base, stored, size, &mut self.effort)
    }
}

/// True if the host has room for its part of a plan, or if the host's memory is unknown.
fn host_fits(base: &Placement, compiled: &CompiledModel) -> bool {
    let prints = compiled.footprints();
    let host = prints
        .get(&tpc_ir::Place::Host)
        .map_or(0, tpc_passes::footprint::Footprint::total);
    let usable = base.topology.usable_host_memory(base.devices.len());
    usable.is_none_or(|usable| host as f64 <= usable)
}

/// Lists the kinds of bytes on the host that an engine refuses with split tensors. If the engine refuses a split with
/// an empty host, the list contains only that.
fn refused_on_host(
    engine: Engine,
    base: &Placement,
    n_block: u64,
    refuses: &dyn Fn(&Placement) -> bool,
) -> BTreeSet<OnHost> {
    let mut out = BTreeSet::new();
    if engine == Engine::Tpc {
        return out;
    }
    for n in 0..8_u8 {
        let [experts, layers, kv] = [n & 1 != 0, n & 2 != 0, n & 4 != 0];
        let mut placement = Placement {
            kv_on_host: kv,
            n_gpu_layers: layers.then_some(n_block / 2),
            ..base.clone()
        };
        placement.host_experts = match experts {
            true => crate::placement::HostExperts::First(n_block.div_ceil(2)),
            false => crate::placement::HostExperts::NONE,
        };
        if refuses(&placement) {
            out.insert([experts, layers, kv]);
            if n == 0 {
                break;
            }
        }
    }
    out
}

pub(super) fn has_as_much(a: &Point, b: &Point) -> bool {
    a.ctx_size as f64 >= b.ctx_size as f64 * AS_MUCH
}

pub(super) fn milder(a: &Point, b: &Point) -> bool {
    (a.level, std::cmp::Reverse(a.ctx_size)) < (b.level, std::cmp::Reverse(b.ctx_size))
}
