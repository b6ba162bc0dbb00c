use std::fmt;

use tpc_ggml::llama_cpp::quote;
use tpc_ir::DType;

use crate::placement::{HostExperts, Override, Placement, SplitMode};

/// A change to the request. Displays as the command-line option.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another split mode.
    Mode(SplitMode),
    /// Another device for an unsplit model.
    MainDevice(usize),
    /// Other shares.
    Shares(Vec<f64>),
    /// Overrides that move feed-forward weights of more layers to the host.
    Overrides {
        /// All overrides of the new request.
        all: Vec<Override>,
        /// Number of layers that move to the host.
        layers: usize,
        /// True if only experts move.
        experts: bool,
    },
    /// The number of first layers whose experts are on the host.
    HostExperts(u64),
    /// Number of layers on the devices; the output counts as one layer.
    GpuLayers {
        /// Layers on the devices.
        kept: u64,
        /// All layers.
        all: u64,
    },
    /// Caches on the host.
    KvOnHost,
    /// Other types of the K and V caches.
    Caches {
        /// Requested types of the K and V caches.
        asked: [DType; 2],
        /// New types of the K and V caches.
        types: [DType; 2],
    },
    /// A smaller context.
    Context {
        /// Requested number of cells.
        asked: u64,
        /// New number of cells.
        ctx_size: u64,
    },
    /// Fewer sequences.
    Sequences {
        /// Requested number of sequences.
        asked: u64,
        /// New number of sequences.
        count: u64,
    },
    /// Smaller batches.
    Batch(u64),
}

impl Change {
    /// Applies the change to a placement.
    pub fn apply(&self, to: &mut Placement) {
        match self {
            Change::Mode(mode) => to.split_mode = *mode,
            Change::MainDevice(d) => to.main_device = Some(*d),
            Change::Shares(shares) => to.tensor_split = Some(shares.clone()),
            Change::Overrides { all, .. } => to.overrides.clone_from(all),
            Change::HostExperts(n) => to.host_experts = HostExperts::First(*n),
            Change::GpuLayers { kept, .. } => to.n_gpu_layers = Some(*kept),
            Change::KvOnHost => to.kv_on_host = true,
            Change::Caches { types, .. } => [to.cache_type_k, to.cache_type_v] = *types,
            Change::Context { ctx_size, .. } => to.ctx_size = Some(*ctx_size),
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
            Change::Overrides { all, .. } => {
                let words = |o: &Override| format!("-ot {}", quote(&o.words()));
                let words: Vec<String> = all.iter().map(words).collect();
                f.write_str(&words.join(" "))
            }
            Change::HostExperts(n) => write!(f, "-ncmoe {n}"),
            Change::GpuLayers { kept, .. } => write!(f, "-ngl {kept}"),
            Change::KvOnHost => f.write_str("-nkvo"),
            Change::Caches { types: [k, v], .. } => write!(f, "-ctk {k} -ctv {v}"),
            Change::Context { ctx_size, .. } => write!(f, "-c {ctx_size}"),
            Change::Sequences { count, .. } => write!(f, "-np {count}"),
            Change::Batch(n) => write!(f, "-ub {n}"),
        }
    }
}
