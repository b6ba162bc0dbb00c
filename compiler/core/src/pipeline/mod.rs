//! From a model file to verified programs.

mod divide;
mod fitting;
mod size;
mod strategies;

pub use size::{CacheSizes, ModelSize};
pub use strategies::Candidate;

use tpc_ir::{Bindings, Op, Symbol, Verified, stage};
use tpc_passes::machine::Workload;
use tpc_passes::plan::{Choice, PlanRequest, Planned, estimate};
use tpc_passes::prove::{Proof, Refutation, prove};
use tpc_passes::rewrite::Report as RewriteReport;

use crate::placement::{Placement, ResolvedPlacement, SplitMode};
use tpc_diag::{Diagnostic, codes};
use tpc_ggml::capture::CapturedGraph;
use tpc_gguf::GgufFile;
use tpc_models::{ArchError, Drafting, LowerOptions, Lowered, Summary};

use divide::{Division, invalid};
use fitting::Fitting;
use strategies::Strategy;

pub use tpc_passes::plan::{Breakdown, Estimate};

/// A model's graph, and the facts of its header.
#[derive(Clone, Debug)]
pub struct Model {
    /// The graph.
    pub graph: Verified<stage::Model>,
    /// The facts of its header.
    pub summary: Summary,
}

/// A planned, verified model.
#[derive(Debug)]
pub struct Compiled {
    /// The model's graph, and the facts of its header.
    pub model: Model,
    /// How it is divided.
    pub mode: SplitMode,
    /// The strategies that were compared, the chosen one included; empty where the user chose.
    pub candidates: Vec<Candidate>,
    /// The place of every layer, and of single weights and states.
    pub resolved: ResolvedPlacement,
    /// The request that the plan answers.
    pub request: PlanRequest,
    /// Factors and choice.
    pub planned: Planned,
    /// The sharded graph before rewriting: every unreduced sum is reduced where it arises.
    pub eager: Verified<stage::Sharded>,
    /// The sharded graph, rewritten.
    pub sharded: Verified<stage::Sharded>,
    /// The report on rewriting.
    pub rewriting: RewriteReport,
    /// The programs of the host and of every device.
    pub programs: Verified<stage::Programs>,
    /// Sizes of the KV caches.
    pub caches: CacheSizes,
    /// The size of the model.
    pub size: ModelSize,
    /// Estimated times.
    pub estimate: Estimate,
    /// The proof that the programs compute what the model's graph says, or why there is none.
    pub proof: Result<Proof, Box<Refutation>>,
}

impl Compiled {
    /// Why the plan is not to be used: its programs are not proved (TPC0391).
    pub fn unproved(&self) -> Option<Diagnostic> {
        self.proof.as_ref().err().map(|r| refuted(r))
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
        drafting: placement.drafting,
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
    let Lowered { graph, summary } =
        tpc_models::lower(header, &options).map_err(|e| one(e.into()))?;
    let graph = Verified::new(graph).map_err(invalid)?;
    let caches = CacheSizes::new(
        options.n_ctx,
        summary.window,
        placement.ubatch_size,
        placement.parallel,
    );
    compile_graph(
        Model { graph, summary },
        caches,
        ModelSize::of_file(file),
        placement,
    )
}

/// The context that a captured graph is planned for when nobody says.
pub const CAPTURE_CONTEXT: u64 = 4096;

/// The architecture of a captured graph, for people.
const CAPTURE: &str = "capture";

/// Plans a captured graph and proves the plan.
///
/// # Errors
/// TPC0400 for sizes out of range, TPC0163 when tokens are to be drafted, or TPC0390 when the verifier rejects the result.
pub fn compile_capture(
    captured: &CapturedGraph,
    placement: &Placement,
) -> Result<Compiled, Vec<Diagnostic>> {
    let n_ctx = placement.ctx_size.unwrap_or(CAPTURE_CONTEXT);
    in_range(n_ctx, placement)?;
    if placement.drafting != Drafting::None {
        let reason = "it is planned as it was captured".to_owned();
        let arch = CAPTURE;
        return Err(vec![ArchError::NoDrafts { arch, reason }.into()]);
    }
    let graph = captured.graph.clone();
    let size = ModelSize::of_graph(&graph);
    let summary = Summary {
        arch: CAPTURE,
        name: graph.name.clone(),
        n_layer: u64::from(captured.n_layer),
        n_draft: 0,
        ignored_drafts: None,
        n_embd: 0,
        n_vocab: 0,
        n_ctx_train: n_ctx,
        window: None,
        unused: Vec::new(),
        ignored: Vec::new(),
    };
    let caches = CacheSizes::new(n_ctx, None, placement.ubatch_size, placement.parallel);
    compile_graph(Model { graph, summary }, caches, size, placement)
}

fn in_range(n_ctx: u64, placement: &Placement) -> Result<(), Vec<Diagnostic>> {
    for (option, n) in [
        ("--ctx-size", n_ctx),
        ("--ubatch-size", placement.ubatch_size),
        ("--parallel", placement.parallel),
    ] {
        if n == 0 || n > MAX_CONTEXT {
            let message = format!("{n} is outside the range 1 to {MAX_CONTEXT}");
            let d = Diagnostic::new(&codes::COMMAND_LINE, option, message);
            return Err(vec![
                d.help(format!("give a number from 1 to {MAX_CONTEXT}")),
            ]);
        }
    }
    Ok(())
}

/// Plans a model's graph and proves the plan.
fn compile_graph(
    model: Model,
    caches: CacheSizes,
    size: ModelSize,
    placement: &Placement,
) -> Result<Compiled, Vec<Diagnostic>> {
    let workload = Workload::new(
        caches.n_ctx,
        caches.n_ctx_swa,
        placement.ubatch_size,
        placement.parallel,
    );
    let (strategies, mut candidates) = strategies::ranked(&model, &workload, caches, placement)?;
    let fitting = Fitting {
        model: &model.graph,
        placement,
        batch: memory_batch(&workload, caches),
    };
    let (strategy, divided) = fitting.first(strategies, &mut candidates)?;
    let Strategy {
        mode,
        resolved,
        request,
        ..
    } = strategy;
    let Division {
        planned,
        eager,
        sharded,
        rewriting,
        programs,
    } = divided;
    let estimate = estimate(&planned, &sharded, &request);
    let proof = prove(&model.graph, &programs);
    Ok(Compiled {
        model,
        mode,
        candidates,
        resolved,
        request,
        planned,
        eager,
        sharded,
        rewriting,
        programs,
        caches,
        size,
        estimate,
        proof,
    })
}

/// Programs that do not compute what the model says.
fn refuted(r: &Refutation) -> Diagnostic {
    let mut message = r.to_string();
    if let Some(found) = &r.found {
        message += &format!("\n  the device has  {found}");
    }
    if let Some(expected) = &r.expected {
        message += &format!("\n  the model says  {expected}");
    }
    let entity = if r.value.is_empty() {
        "programs".to_owned()
    } else {
        r.value.clone()
    };
    let d = Diagnostic::new(&codes::UNPROVED, entity, message);
    d.help(
        "`tpc verify --numeric` tells whether the programs are wrong or the proof lacks a rule: it runs a small model that \
         is divided alike; either is a fault of tpc: please report it with the command and the model's header",
    )
}

/// The largest batch of a prompt, with a full cache.
fn memory_batch(workload: &Workload, caches: CacheSizes) -> Bindings {
    workload
        .prefill
        .with(Symbol::NKv, caches.n_ctx)
        .with(Symbol::NKvSwa, caches.n_ctx_swa)
}

impl Compiled {
    /// The batch that decodes one token.
    pub fn decode_batch(&self) -> Bindings {
        self.request.workload.decode
    }

    /// The largest batch of a prompt, with a full cache: what memory is sized for.
    pub fn memory_batch(&self) -> Bindings {
        memory_batch(&self.request.workload, self.caches)
    }

    /// Whether every device and the host have the memory for their programs, as far as the topology says what they have.
    pub fn fits(&self) -> bool {
        fitting::fits(&self.programs, &self.request, &self.memory_batch())
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
