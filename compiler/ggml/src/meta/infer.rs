//! Propagation: the state of every tensor, in the order of computation, up to the first op that is refused.

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

/// Architectures that the engine refuses by name.
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

/// Most devices that the engine splits tensors over.
pub const MAX_DEVICES: usize = 16;

/// What the engine is asked for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Number of devices.
    pub devices: usize,
    /// Their proportions (`-ts`); none for equal ones.
    pub proportions: Vec<f64>,
    /// The architecture, where it is known.
    pub architecture: Option<String>,
    /// Type of cached keys (`-ctk`), where it is not that of the capture.
    pub cache_type_k: Option<DType>,
    /// Type of cached values (`-ctv`), where it is not that of the capture.
    pub cache_type_v: Option<DType>,
    /// The caches of keys and values are on the host (`-nkvo`).
    pub caches_on_host: bool,
    /// Weights on the host (`-ot`, `-cmoe`), by name.
    pub on_host: Vec<String>,
}

impl Setup {
    /// So many equal devices, and nothing else.
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

/// Something that the engine refuses or gets wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The record concerned; `None` when it is the whole graph.
    pub record: Option<usize>,
    /// In words, with the states of the sources.
    pub why: String,
}

/// What was inferred.
#[derive(Clone, Debug)]
pub struct Inference {
    /// The state of every record; none behind a fault.
    pub states: Vec<SplitState>,
    /// The state of every leaf, also behind a fault.
    pub leaves: BTreeMap<usize, SplitState>,
    /// Whether the record is computed on the host.
    pub on_host: Vec<bool>,
    /// What goes wrong, in order. At most one aborts, and it is the last.
    pub faults: Vec<Fault>,
}

impl Inference {
    /// The verdict: the worst that happens first.
    pub fn verdict(&self) -> Verdict {
        let of = |f: &Fault| f.kind.verdict();
        self.faults.iter().map(of).max().unwrap_or(Verdict::Ok)
    }

    /// The op that is not taken.
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

/// What the engine says before it looks at the graph.
fn beforehand(records: &[Record], setup: &Setup) -> Option<Fault> {
    if let Some(name) = &setup.architecture
        && REFUSED.contains(&name.as_str())
    {
        let why = format!("the engine does not split tensors of {name}, by name");
        return Some(of_graph(FaultKind::Architecture, why));
    }
    if setup.devices > MAX_DEVICES {
        let why = format!("{} devices, of {MAX_DEVICES} at most", setup.devices);
        return Some(of_graph(FaultKind::Devices, why));
    }
    let has = |f: &dyn Fn(&Record) -> bool| records.iter().any(f);
    let cached = has(&|t| is_kv(&t.name) && t.is_leaf());
    (cached && !has(&|t| t.is(OpKind::FlashAttnExt))).then(|| {
        let why = "keys and values are cached, and attention is not one op".to_owned();
        of_graph(FaultKind::NoFlash, why)
    })
}

fn is_kv(name: &str) -> bool {
    matches!(TensorName::parse(name).cache(), Some((_, "k" | "v")))
}

/// The state of every tensor, up to what is refused.
pub fn infer(records: &[Record], setup: &Setup) -> Inference {
    let mut out = Inference {
        states: Vec::with_capacity(records.len()),
        leaves: BTreeMap::new(),
        on_host: Vec::with_capacity(records.len()),
        faults: Vec::new(),
    };
    if let Some(fault) = beforehand(records, setup) {
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
        // The host has what it computes whole, and what it reads of the devices is fetched.
        let state = if host {
            Ok(SplitState::Mirrored)
        } else if let Some(state) = out.leaves.get(&i) {
            blocks(t, state, setup).map(|()| state.clone())
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

fn op(records: &[Record], so_far: &Inference, i: usize) -> rules::Inferred {
    let t = &records[i];
    if t.is_empty() || t.src.is_empty() {
        return Ok(SplitState::Mirrored);
    }
    rules::apply(&call(records, &so_far.states, i))
}

/// The record as a rule sees it.
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

/// Whether the host computes it: its own memory, views of that, writes to it, and ops of weights that it holds.
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

/// Whole blocks of the caches as asked for.
fn blocks(t: &Record, state: &SplitState, setup: &Setup) -> Result<(), rules::Rejection> {
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
