//! The space of configurations: what may differ from what was asked for, and how people type it.

use std::fmt;

use tpc_ir::DType;

use crate::pipeline::{Way, ways};
use crate::placement::{HostExperts, Placement, SplitMode};

/// A change of what was asked for. Shown as the option that people type in its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another split mode.
    Mode(SplitMode),
    /// Another device for a model that is not split.
    MainDevice(usize),
    /// Other shares of the devices.
    Shares(Vec<f64>),
    /// The experts of the first layers on the host.
    HostExperts(u64),
    /// So many layers on the devices, of so many; the output counts as one.
    GpuLayers {
        /// On the devices.
        kept: u64,
        /// In all.
        all: u64,
    },
    /// The caches on the host.
    KvOnHost,
    /// Other types of the K and the V cache.
    Caches {
        /// What was asked for.
        asked: [DType; 2],
        /// What they are now.
        types: [DType; 2],
    },
    /// A smaller context.
    Context {
        /// What was asked for.
        asked: u64,
        /// What it is now.
        cells: u64,
    },
    /// Fewer sequences.
    Sequences {
        /// What was asked for.
        asked: u64,
        /// What they are now.
        count: u64,
    },
    /// Smaller batches.
    Batch(u64),
}

impl Change {
    /// Changes a placement.
    pub fn apply(&self, to: &mut Placement) {
        match self {
            Change::Mode(mode) => to.split_mode = *mode,
            Change::MainDevice(d) => to.main_device = Some(*d),
            Change::Shares(shares) => to.tensor_split = Some(shares.clone()),
            Change::HostExperts(n) => to.host_experts = HostExperts::First(*n),
            Change::GpuLayers { kept, .. } => to.n_gpu_layers = Some(*kept),
            Change::KvOnHost => to.kv_on_host = true,
            Change::Caches { types, .. } => [to.cache_type_k, to.cache_type_v] = *types,
            Change::Context { cells, .. } => to.ctx_size = Some(*cells),
            Change::Sequences { count, .. } => to.parallel = *count,
            Change::Batch(n) => to.ubatch_size = *n,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Mode(mode) => write!(f, "-sm {}", mode.name()),
            Change::MainDevice(d) => write!(f, "-mg {d}"),
            Change::Shares(shares) => {
                let shown: Vec<String> = shares.iter().map(ToString::to_string).collect();
                write!(f, "-ts {}", shown.join(","))
            }
            Change::HostExperts(n) => write!(f, "-ncmoe {n}"),
            Change::GpuLayers { kept, .. } => write!(f, "-ngl {kept}"),
            Change::KvOnHost => f.write_str("-nkvo"),
            Change::Caches { types: [k, v], .. } => write!(f, "-ctk {k} -ctv {v}"),
            Change::Context { cells, .. } => write!(f, "-c {cells}"),
            Change::Sequences { count, .. } => write!(f, "-np {count}"),
            Change::Batch(n) => write!(f, "-ub {n}"),
        }
    }
}

/// The sorts of things that a configuration gives up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Class {
    /// Context.
    pub(super) context: bool,
    /// Precision of the caches.
    pub(super) caches: bool,
    /// Sequences.
    pub(super) sequences: bool,
}

impl Class {
    /// All classes of a placement's configurations; those that give up less first.
    pub(super) fn all(placement: &Placement) -> Vec<Class> {
        let bit = |n: u32, i: u32| n & (1 << i) != 0;
        let mut out: Vec<Class> = (0..8)
            .map(|n| Class {
                context: bit(n, 1),
                caches: bit(n, 0),
                sequences: bit(n, 2),
            })
            .filter(|c| !c.sequences || placement.parallel > 1)
            .collect();
        out.sort_by_key(|c| c.count());
        out
    }

    fn count(self) -> usize {
        [self.context, self.caches, self.sequences]
            .into_iter()
            .filter(|&given| given)
            .count()
    }

    /// Whether all that this gives up is given up by the other as well.
    pub(super) fn is_within(self, other: Class) -> bool {
        (!self.context || other.context)
            && (!self.caches || other.caches)
            && (!self.sequences || other.sequences)
    }
}

/// The order in which more and more goes to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chain {
    /// Experts go before whole layers.
    pub(super) experts: bool,
    /// The caches are on the host.
    pub(super) kv: bool,
    /// Everything is there at once: a small model may be faster without any step from the host to a device.
    pub(super) all: bool,
}

/// What is on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offload {
    /// The experts of the first layers, so many of them.
    pub(super) experts: u64,
    /// The first layers, so many of them; the output counts as the last.
    pub(super) layers: u64,
    /// The caches.
    pub(super) kv: bool,
}

/// A configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    /// The way to divide, by position.
    pub(super) way: usize,
    pub(super) chain: Chain,
    /// The position in the chain: with each one more is on the host.
    pub(super) level: u64,
    /// The types of the caches, by position: 0 for those that were asked for.
    pub(super) caches: usize,
    pub(super) cells: u64,
    pub(super) parallel: u64,
    pub(super) ubatch: u64,
}

/// A way to divide, with shares of its own where they are changed.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) way: Way,
    /// The shares instead of those that were asked for.
    pub(super) shares: Option<Vec<f64>>,
}

/// The types of both caches that are tried, the most precise first.
const CACHES: [DType; 2] = [DType::Q8_0, DType::Q4_0];
/// The context over the depth for which speeds are estimated where nobody says it: a context that is asked for is used.
const FILLED: u64 = 4;
/// The smallest context that is tried, unless a smaller one was asked for.
const LEAST_CELLS: u64 = 512;
/// The smallest batch that is tried.
const LEAST_BATCH: u64 = 32;

/// The configurations beside the one that was asked for.
pub(super) struct Space<'a> {
    pub(super) base: &'a Placement,
    /// The cells that were asked for, or the model's.
    pub(super) cells: u64,
    pub(super) n_block: u64,
    pub(super) has_experts: bool,
    pub(super) has_caches: bool,
    pub(super) ways: Vec<Shared>,
    /// The types of the K and the V cache, those asked for first.
    pub(super) caches: Vec<[DType; 2]>,
    /// Whether speeds are those at a part of the context that was asked for, instead of those at depth 0.
    pub(super) filled: bool,
}

impl<'a> Space<'a> {
    /// The ways to divide among the devices of a placement that have a word of their own. Groups in sequence have none: they
    /// are strategies of `auto` alone, which decides about them anew with every change.
    pub(super) fn ways(base: &Placement) -> Vec<Shared> {
        let auto = Placement {
            split_mode: SplitMode::Auto,
            ..base.clone()
        };
        let all = ways(&auto).into_iter();
        let all = all.filter(|w| w.mode != SplitMode::Hybrid);
        let plain = |way: &Way| Shared {
            way: way.clone(),
            shares: None,
        };
        let mut all: Vec<Way> = all.collect();
        if base.split_mode == SplitMode::None {
            // The device that was asked for, beside the roomiest.
            for way in ways(base) {
                if !all.contains(&way) {
                    all.push(way);
                }
            }
        }
        let mut out: Vec<Shared> = all.iter().map(plain).collect();
        if let Some(shares) = by_memory(base) {
            let shared = all.into_iter().filter(|w| w.mode != SplitMode::None);
            out.extend(shared.map(|way| Shared {
                way,
                shares: Some(shares.clone()),
            }));
        }
        out
    }

    /// The pairs of cache types that are tried: those asked for, and smaller ones.
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

    /// Whether the devices have unlike memory.
    pub(super) fn devices_differ(&self) -> bool {
        let memory = |d: usize| self.base.topology.device(d).usable_memory();
        (1..self.base.devices.len()).any(|d| memory(d) != memory(0))
    }

    /// The chains that a configuration can follow.
    pub(super) fn chains(&self) -> Vec<Chain> {
        let kv = match self.has_caches && !self.base.kv_on_host {
            true => vec![false, true],
            false => vec![self.base.kv_on_host],
        };
        let experts = match self.has_experts {
            true => vec![true, false],
            false => vec![false],
        };
        let pairs = kv
            .into_iter()
            .flat_map(|kv| experts.iter().map(move |&e| (e, kv)));
        let chain = |(experts, kv)| Chain {
            experts,
            kv,
            all: false,
        };
        let all = Chain {
            experts: false,
            kv: self.base.kv_on_host,
            all: true,
        };
        pairs.map(chain).chain([all]).collect()
    }

    /// The last position of a chain: everything is on the host.
    pub(super) fn last_level(&self, chain: Chain) -> u64 {
        let layers = self.n_block + 1;
        layers + if chain.experts { self.n_block } else { 0 }
    }

    /// What is on the host at a point.
    pub(super) fn offload(&self, point: &Point) -> Offload {
        let before = if point.chain.experts { self.n_block } else { 0 };
        Offload {
            experts: match point.chain.experts {
                true => point.level.min(self.n_block),
                false => 0,
            },
            layers: point.level.saturating_sub(before),
            kv: point.chain.kv,
        }
    }

    /// The contexts of a class: the one asked for, or the powers of two below it.
    pub(super) fn contexts(&self, class: Class) -> Vec<u64> {
        if !class.context {
            return vec![self.cells];
        }
        let least = LEAST_CELLS.min(self.cells / 2).max(1);
        let mut at = self.cells.next_power_of_two() / 2;
        let mut out = Vec::new();
        while at >= least {
            if at < self.cells {
                out.push(at);
            }
            at /= 2;
        }
        out
    }

    /// The positions of the cache types of a class.
    pub(super) fn cache_levels(&self, class: Class) -> Vec<usize> {
        match class.caches {
            true => (1..self.caches.len()).filter(|_| self.has_caches).collect(),
            false => vec![0],
        }
    }

    /// The numbers of sequences of a class.
    pub(super) fn sequences(&self, class: Class) -> Vec<u64> {
        let asked = self.base.parallel;
        match class.sequences {
            true => halves(asked, 1),
            false => vec![asked],
        }
    }

    /// The batches that are tried: the one asked for and two smaller ones.
    pub(super) fn batches(&self) -> Vec<u64> {
        let asked = self.base.ubatch_size;
        let smaller = halves(asked, LEAST_BATCH).into_iter().take(2);
        std::iter::once(asked).chain(smaller).collect()
    }

    /// The class of a point.
    pub(super) fn class(&self, point: &Point) -> Class {
        Class {
            context: point.cells < self.cells,
            caches: point.caches > 0,
            sequences: point.parallel < self.base.parallel,
        }
    }

    /// What a point changes.
    pub(super) fn changes(&self, point: &Point) -> Vec<Change> {
        let base = self.base;
        let mut out = Vec::new();
        let Shared { way, shares } = &self.ways[point.way];
        if way.mode != base.split_mode && base.devices.len() > 1 {
            out.push(Change::Mode(way.mode));
        }
        let main = way
            .main_device()
            .filter(|&d| d != base.main_device.unwrap_or(0));
        out.extend(main.map(Change::MainDevice));
        out.extend(shares.clone().map(Change::Shares));
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
        if point.cells != self.cells {
            let (asked, cells) = (self.cells, point.cells);
            out.push(Change::Context { asked, cells });
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

    /// The placement at a point.
    pub(super) fn placement(&self, point: &Point) -> Placement {
        let mut out = self.base.clone();
        self.changes(point).iter().for_each(|c| c.apply(&mut out));
        if self.filled {
            out.depth = (self.cells / FILLED).min(point.cells);
        }
        out
    }
}

/// The halves of a number, down to `least`.
fn halves(n: u64, least: u64) -> Vec<u64> {
    let mut out = Vec::new();
    let mut at = n / 2;
    while at >= least.max(1) {
        out.push(at);
        at /= 2;
    }
    out
}

/// Shares in proportion to usable memory, in GiB; `None` where memory is not known or alike, or these were asked for.
fn by_memory(placement: &Placement) -> Option<Vec<f64>> {
    let gib = |d: usize| {
        let usable = placement.topology.device(d).usable_memory()?;
        Some((usable / f64::from(1 << 30) * 10.0).round() / 10.0)
    };
    let shares: Option<Vec<f64>> = (0..placement.devices.len()).map(gib).collect();
    let shares = shares.filter(|s| s.iter().all(|&x| x > 0.0))?;
    // Without proportions, alike devices have alike shares.
    let even = vec![shares.first()?.to_bits(); shares.len()];
    let asked = placement.tensor_split.clone();
    let differs = match asked {
        Some(asked) => shares.len() > 1 && asked != shares,
        None => shares.iter().map(|s| s.to_bits()).ne(even),
    };
    differs.then_some(shares)
}
