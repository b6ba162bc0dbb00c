use std::collections::BTreeMap;

use tpc_gguf::TensorName;
use tpc_ir::DType;

use super::fault::{FaultKind, Verdict};
use super::rules::{self, Call, Source};
use super::silent;
use super::states::SplitState;
use super::weights::{Proportions, Weights};
use crate::capture::Record;
use crate::op::{GgmlOp, OpKind};

/// Architectures that llama.cpp refuses to split.
pub const REFUSED: [&str; 30] = [
    "grok",
    "mpt",
    "plamo2",
    "minicpm3",
    "gemma3n",
    "mamba",
    "mamba2",
    "jamba",
    "falcon-h1",
    "olmo2",
    "olmoe",
    "deepseek2",
    "deepseek32",
    "hy_v4",
    "dots3note",
    "glm-dsa",
    "bitnet",
    "t5",
    "nemotron_h",
    "nemotron_h_moe",
    "granitehybrid",
    "minimax-01",
    "minimax-m2",
    "minimax-m3",
    "mistral4",
    "kimi-linear",
    "bailingmoe3",
    "kimi-k3",
    "glm5-next",
    "qwen3tts",
];

/// The maximum number of devices of ggml's split.
pub const MAX_DEVICES: usize = 16;

/// The devices, and the options that affect the split.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The number of devices.
    pub devices: usize,
    /// The proportions (`-ts`); empty if equal.
    pub proportions: Vec<f64>,
    /// The architecture, if known.
    pub architecture: Option<String>,
    /// The type of cached keys (`-ctk`); `None` for the type in the capture.
    pub cache_type_k: Option<DType>,
    /// The type of cached values (`-ctv`); `None` for the type in the capture.
    pub cache_type_v: Option<DType>,
    /// True if KV caches are on the host (`-nkvo`).
    pub caches_on_host: bool,
    /// The names of the weights on the host (`-ot`, `-cmoe`).
    pub on_host: Vec<String>,
}

impl Setup {
    /// Returns a setup of equal devices, without options.
    pub fn new(devices: usize) -> Setup {
        Setup {
            devices,
            proportions: Vec::new(),
            architecture: None,
            cache_type_k: None,
            cache_type_v: None,
            caches_on_host: false,
            on_host: Vec::new(),
        }
    }
}

/// A fault at a record, or in the whole graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The record; `None` for the whole graph.
    pub record: Option<usize>,
    /// The reason, with the states of the sources.
    pub why: String,
}

/// The states and faults of a graph.
#[derive(Clone, Debug)]
pub struct Inference {
    /// The state of every record up to the refused one.
    pub states: Vec<SplitState>,
    /// The state of every leaf.
    pub leaves: BTreeMap<usize, SplitState>,
    /// True for each record that the host computes.
    pub on_host: Vec<bool>,
    /// The faults in order. Only the last fault may abort.
    pub faults: Vec<Fault>,
}

impl Inference {
    /// Returns the worst verdict of the faults.
    pub fn verdict(&self) -> Verdict {
        let verdicts = self.faults.iter().map(|f| f.kind.verdict());
        verdicts.max().unwrap_or(Verdict::Ok)
    }

    /// Returns the fault that aborts.
    pub fn refused(&self) -> Option<&Fault> {
        self.faults
            .iter()
            .find(|f| f.kind.verdict() == Verdict::Crash)
    }
}

fn of_graph(kind: FaultKind, why: String) -> Fault {
    let record = None;
    Fault { kind, record, why }
}

/// Returns the fault of the whole graph, if ggml refuses the graph before the first op.
fn of_setup(records: &[Record], setup: &Setup) -> Option<Fault> {
    if let Some(name) = &setup.architecture
        && REFUSED.contains(&name.as_str())
    {
        let why = format!("llama.cpp refuses -sm tensor for {name}");
        return Some(of_graph(FaultKind::Architecture, why));
    }
    if setup.devices > MAX_DEVICES {
        let why = format!("{} devices, more than {MAX_DEVICES}", setup.devices);
        return Some(of_graph(FaultKind::Devices, why));
    }
    let has = |f: &dyn Fn(&Record) -> bool| records.iter().any(f);
    let cached = has(&|t| is_kv(&t.name) && t.is_leaf());
    (cached && !has(&|t| t.is(OpKind::FlashAttnExt))).then(|| {
        let why = "keys and values are cached, but attention is not a FLASH_ATTN_EXT".to_owned();
        of_graph(FaultKind::NoFlash, why)
    })
}

fn is_kv(name: &str) -> bool {
    matches!(TensorName::parse(name).cache(), Some((_, "k" | "v")))
}

/// Infers the state of every tensor, up to the first refused op.
pub fn infer(records: &[Record], setup: &Setup) -> Inference {
    let mut out = Inference {
        states: Vec::with_capacity(records.len()),
        leaves: BTreeMap::new(),
        on_host: Vec::with_capacity(records.len()),
        faults: Vec::new(),
    };
    if let Some(fault) = of_setup(records, setup) {
        out.faults.push(fault);
        return out;
    }
    let proportions = Proportions::new(setup.devices, &setup.proportions);
    let weights = Weights::new(records, proportions);
    for i in 0..records.len() {
        let host = on_host(records, setup, &out.on_host, i);
        out.on_host.push(host);
        if owns_memory(&records[i]) {
            let state = if host {
                SplitState::Mirrored
            } else {
                weights.state(i)
            };
            out.leaves.insert(i, state);
        }
    }
    for (i, t) in records.iter().enumerate() {
        let host = out.on_host[i];
        // The host holds whole tensors and gathers the parts from the devices.
        let state = if host {
            Ok(SplitState::Mirrored)
        } else if let Some(state) = out.leaves.get(&i) {
            check_leaf(t, state, setup).map(|()| state.clone())
        } else {
            op(records, &out, i)
        };
        match state {
            Ok(state) => {
                out.states.push(state);
                if !host {
                    let found = silent::faults(&call(records, &out.states, i));
                    out.faults
                        .extend(found.into_iter().map(|(kind, why)| Fault {
                            kind,
                            record: Some(i),
                            why,
                        }));
                }
            }
            Err(rejection) => {
                out.faults.push(Fault {
                    kind: rejection.kind,
                    record: Some(i),
                    why: rejection.why,
                });
                return out;
            }
        }
    }
    out
}

fn owns_memory(t: &Record) -> bool {
    t.is_leaf() && !t.is_view
}

fn op(records: &[Record], so_far: &Inference, i: usize) -> rules::InferredState {
    let t = &records[i];
    if t.is_empty() || t.src.is_empty() {
        return Ok(SplitState::Mirrored);
    }
    rules::apply(&call(records, &so_far.states, i))
}

pub(super) fn call<'a>(records: &'a [Record], states: &'a [SplitState], i: usize) -> Call<'a> {
    let t = &records[i];
    let source = |s: &Option<usize>| {
        s.map(|s| Source {
            ne: records[s].ne(),
            nb: records[s].layout.nb,
            dtype: records[s].dtype,
            state: &states[s],
        })
    };
    Call {
        op: &t.op,
        ne: t.ne(),
        nb: t.layout.nb,
        dtype: t.dtype,
        offset: t.src.first().copied().flatten().map_or(0, |s| {
            let from = records[s].layout.offset;
            t.layout.offset.saturating_sub(from)
        }),
        src: t.src.iter().map(source).collect(),
    }
}

/// True if the host computes the record: host memory, views of host memory, writes to it, and ops with a host weight.
fn on_host(records: &[Record], setup: &Setup, so_far: &[bool], i: usize) -> bool {
    let t = &records[i];
    if t.is_view && t.root != i {
        return so_far[t.root];
    }
    if t.is_leaf() {
        let cache = setup.caches_on_host && is_kv(&t.name);
        return cache || setup.on_host.contains(&t.name);
    }
    let held = |&s: &usize| {
        let t = &records[s];
        owns_memory(t) && setup.on_host.contains(&t.name)
    };
    t.src.iter().flatten().any(held)
}

fn check_leaf(t: &Record, state: &SplitState, setup: &Setup) -> Result<(), rules::Rejection> {
    let dtype = match TensorName::parse(&t.name).cache() {
        Some((_, "k")) => setup.cache_type_k.unwrap_or(t.dtype),
        Some((_, "v")) => setup.cache_type_v.unwrap_or(t.dtype),
        _ => t.dtype,
    };
    let call = Call {
        op: &GgmlOp::None,
        ne: t.ne(),
        nb: t.layout.nb,
        dtype,
        offset: 0,
        src: Vec::new(),
    };
    state.split().map_or(Ok(()), |s| rules::check(&call, s))
}
