//! From a model file to verified programs.

use tpc_ir::verify::VerifyError;
use tpc_ir::{Bindings, Graph, Op, Place, Symbol, Window};
use tpc_passes::lower::lower;
use tpc_passes::memory::footprints;
use tpc_passes::plan::{Choice, PlanRequest, Planned, Workload, estimate, plan};
use tpc_passes::shard::shard;

use crate::arch::{self, LowerOptions, Lowered, Summary};
use crate::capture::Captured;
use crate::diag::Diagnostic;
use crate::gguf::{GgufFile, TensorInfo};
use crate::placement::{Placement, SplitMode};

pub use tpc_passes::plan::Estimate;

/// A planned, verified model.
#[derive(Debug)]
pub struct Compiled {
    /// The model's graph and what its header says.
    pub model: Lowered,
    /// What the planner was asked for.
    pub request: PlanRequest,
    /// Factors and choice.
    pub planned: Planned,
    /// The sharded graph.
    pub sharded: Graph,
    /// The programs of the host and of every device.
    pub programs: Graph,
    /// Sizes of the KV caches.
    pub caches: CacheSizes,
    /// How large the model is.
    pub size: ModelSize,
    /// Estimated times.
    pub estimate: Estimate,
}

/// How large a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSize {
    /// Elements of all its tensors.
    pub params: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl ModelSize {
    /// The size that a file's header states.
    fn of_file(file: &GgufFile) -> ModelSize {
        let header = file.header();
        ModelSize {
            params: header.tensors().iter().map(TensorInfo::elements).sum(),
            bytes: u64::try_from(header.data_bytes()).unwrap_or(u64::MAX),
        }
    }

    /// The size of a graph's weights.
    fn of_graph(graph: &Graph) -> ModelSize {
        let batch = Bindings::default();
        let mut out = ModelSize {
            params: 0,
            bytes: 0,
        };
        for (_, inst) in graph.insts() {
            if let Op::Weight(_) = inst.op {
                let ty = &graph.value(inst.results[0]).ty;
                let elements = ty.elements().and_then(|n| n.as_const()).unwrap_or(0);
                out.params = out.params.saturating_add(elements);
                out.bytes = out.bytes.saturating_add(ty.bytes(&batch).unwrap_or(0));
            }
        }
        out
    }
}

/// Cells of the KV caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// Of layers that attend to everything.
    pub n_ctx: u64,
    /// Of layers with a sliding window.
    pub n_ctx_swa: u64,
}

impl CacheSizes {
    /// The sizes for a context: layers with a window keep its tokens per sequence and a batch more,
    /// in steps of 256 as the usual engine does.
    pub fn new(n_ctx: u64, window: Option<Window>, ubatch: u64, parallel: u64) -> CacheSizes {
        let swa = window.map_or(n_ctx, |w| {
            let cells = w.tokens().saturating_mul(parallel).saturating_add(ubatch);
            cells
                .checked_next_multiple_of(256)
                .unwrap_or(n_ctx)
                .min(n_ctx)
        });
        CacheSizes {
            n_ctx,
            n_ctx_swa: swa,
        }
    }
}

/// The limit on `--ctx-size` and the like: far beyond any model, far below what overflows.
pub const MAX_CONTEXT: u64 = 1 << 32;

/// Plans `file` and proves the plan.
///
/// # Errors
/// Diagnostics of the model, or TPC0390 when the verifier rejects the result.
pub fn compile(file: &GgufFile, placement: &Placement) -> Result<Compiled, Vec<Diagnostic>> {
    let one = |d: Diagnostic| vec![d];
    let header = file.header();
    let mut options = LowerOptions {
        cache_type_k: placement.cache_type_k,
        cache_type_v: placement.cache_type_v,
        n_ctx: placement.ctx_size.unwrap_or(0),
    };
    if placement.ctx_size.is_none() {
        let metadata = header.metadata();
        let arch = metadata
            .get_str("general.architecture")
            .map_err(|e| one(e.into()))?
            .unwrap_or_default();
        let trained = metadata
            .get_u64(&format!("{arch}.context_length"))
            .map_err(|e| one(e.into()))?;
        options.n_ctx = trained.unwrap_or(4096).clamp(1, MAX_CONTEXT);
    }
    in_range(options.n_ctx, placement)?;
    let model = arch::lower(header, &options).map_err(|e| one(e.into()))?;
    let caches = CacheSizes::new(
        options.n_ctx,
        model.summary.window,
        placement.ubatch_size,
        placement.parallel,
    );
    compile_graph(model, caches, ModelSize::of_file(file), placement)
}

/// The context that a captured graph is planned for when nobody says.
pub const CAPTURE_CONTEXT: u64 = 4096;

/// Plans a captured graph and proves the plan.
///
/// # Errors
/// TPC0400 for sizes out of range, or TPC0390 when the verifier rejects the result.
pub fn compile_capture(
    captured: &Captured,
    placement: &Placement,
) -> Result<Compiled, Vec<Diagnostic>> {
    let n_ctx = placement.ctx_size.unwrap_or(CAPTURE_CONTEXT);
    in_range(n_ctx, placement)?;
    let graph = captured.graph.clone();
    let size = ModelSize::of_graph(&graph);
    let summary = Summary {
        arch: "capture",
        name: graph.name.clone(),
        n_layer: u64::from(captured.n_layer),
        n_embd: 0,
        n_vocab: 0,
        n_ctx_train: n_ctx,
        window: None,
        unused: Vec::new(),
        aside: Vec::new(),
    };
    let caches = CacheSizes::new(n_ctx, None, placement.ubatch_size, placement.parallel);
    compile_graph(Lowered { graph, summary }, caches, size, placement)
}

fn in_range(n_ctx: u64, placement: &Placement) -> Result<(), Vec<Diagnostic>> {
    for (option, n) in [
        ("--ctx-size", n_ctx),
        ("--ubatch-size", placement.ubatch_size),
        ("--parallel", placement.parallel),
    ] {
        if n == 0 || n > MAX_CONTEXT {
            let message = format!("{n} is out of range");
            let d = Diagnostic::error("TPC0400", option, message);
            return Err(vec![d.help(format!("from 1 to {MAX_CONTEXT}"))]);
        }
    }
    Ok(())
}

/// Plans a model's graph and proves the plan.
fn compile_graph(
    model: Lowered,
    caches: CacheSizes,
    size: ModelSize,
    placement: &Placement,
) -> Result<Compiled, Vec<Diagnostic>> {
    verified("model", &model.graph)?;
    let mut devices: Vec<String> = placement.devices.iter().map(|d| d.name.clone()).collect();
    if placement.split_mode == SplitMode::None {
        devices.truncate(1);
    }
    let workload = Workload::new(
        caches.n_ctx,
        caches.n_ctx_swa,
        placement.ubatch_size,
        placement.parallel,
    );
    let mut request = PlanRequest::new(placement.topology.clone(), workload, devices);
    request.tensor_split = placement
        .tensor_split
        .clone()
        .filter(|_| request.devices.len() > 1);
    let mut divided = divide(&model.graph, &request)?;
    for price in Workload::SCARCE_MEMORY {
        if fits(&divided.programs, &request, &memory_batch(&request, caches)) {
            break;
        }
        request.memory_price = price;
        divided = divide(&model.graph, &request)?;
    }
    let Divided {
        planned,
        sharded,
        programs,
    } = divided;
    let estimate = estimate(&planned, &sharded, &request);
    Ok(Compiled {
        model,
        request,
        planned,
        sharded,
        programs,
        caches,
        size,
        estimate,
    })
}

/// A graph divided among devices, and proved.
struct Divided {
    planned: Planned,
    sharded: Graph,
    programs: Graph,
}

fn divide(graph: &Graph, request: &PlanRequest) -> Result<Divided, Vec<Diagnostic>> {
    let internal = |e: String| {
        vec![
            Diagnostic::error("TPC0390", &graph.name, e)
                .help("this is a fault of tpc; please report it"),
        ]
    };
    let planned = plan(graph, request);
    verified("placed", &planned.graph)?;
    let Planned {
        graph,
        factors,
        analysis,
        users,
        choice,
        ..
    } = &planned;
    let sharded =
        shard(graph, factors, analysis, users, choice).map_err(|e| internal(e.to_string()))?;
    verified("sharded", &sharded)?;
    let programs = lower(&sharded).map_err(|e| internal(e.to_string()))?;
    verified("programs", &programs)?;
    Ok(Divided {
        planned,
        sharded,
        programs,
    })
}

/// Whether every device has the memory for its program, as far as the topology says what it has.
fn fits(programs: &Graph, request: &PlanRequest, batch: &Bindings) -> bool {
    let capacity = |i: usize| request.topology.device(i).memory;
    if (0..request.devices.len()).all(|i| capacity(i).is_none()) {
        return true;
    }
    let prints = footprints(programs, batch);
    prints.iter().all(|(place, print)| match place {
        Place::Device(d) => capacity(d.index()).is_none_or(|c| print.total() as f64 <= c),
        Place::Host | Place::Group(_) => true,
    })
}

/// The largest batch of a prompt, with a full cache.
fn memory_batch(request: &PlanRequest, caches: CacheSizes) -> Bindings {
    request
        .workload
        .prefill
        .with(Symbol::NKv, caches.n_ctx)
        .with(Symbol::NKvSwa, caches.n_ctx_swa)
}

fn verified(stage: &str, graph: &Graph) -> Result<(), Vec<Diagnostic>> {
    let report = |errors: Vec<VerifyError>| {
        errors
            .into_iter()
            .map(|e| {
                Diagnostic::error(
                    "TPC0390",
                    format!("{stage} graph"),
                    format!("{}: {e}", e.code()),
                )
                .help("this is a fault of tpc; please report it")
            })
            .collect()
    };
    tpc_ir::verify::verify(graph).map(|_| ()).map_err(report)
}

impl Compiled {
    /// The batch that decodes one token.
    pub fn decode_batch(&self) -> Bindings {
        self.request.workload.decode
    }

    /// The largest batch of a prompt, with a full cache: what memory is sized for.
    pub fn memory_batch(&self) -> Bindings {
        memory_batch(&self.request, self.caches)
    }

    /// The choice of splits.
    pub fn choice(&self) -> &Choice {
        &self.planned.choice
    }

    /// Number of weights in the sharded graph.
    pub fn weights(&self) -> impl Iterator<Item = (Option<u32>, tpc_ir::Value)> + '_ {
        self.sharded
            .insts()
            .filter(|(_, i)| matches!(i.op, Op::Weight(_)))
            .map(|(_, i)| (i.layer, i.results[0]))
    }
}
