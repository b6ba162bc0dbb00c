use tpc_ir::{Bindings, Verified, Window};
use tpc_passes::machine::Workload;

use super::divide::invalid;
use super::memory::{Memory, memory_batch, shapes};
use super::{CacheSizes, CompiledModel, Model, ModelSize};
use crate::placement::{CacheSplit, Placement};
use tpc_diag::{Diagnostic, codes};
use tpc_ggml::capture::CapturedGraph;
use tpc_ggml::engines::Geometry;
use tpc_gguf::GgufFile;
use tpc_models::{ArchError, Drafting, LowerOptions, LoweredModel, Summary};

/// Maximum of `--ctx-size` and similar options, far above any model and far below an overflow.
pub const MAX_CONTEXT: u64 = 1 << 32;

/// Default context of a captured graph.
pub const CAPTURE_CONTEXT: u64 = 4096;

/// The displayed architecture of a captured graph.
pub const CAPTURE: &str = "capture";

/// The source of a model's graph.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A model file; only its header is needed.
    File(&'a GgufFile),
    /// A captured graph.
    Capture(&'a CapturedGraph),
}

/// A model's graph with the requested caches, ready for planning.
#[derive(Clone, Debug)]
pub struct PlanInput {
    /// The graph and header facts.
    pub model: Model,
    /// Sizes of the caches.
    pub caches: CacheSizes,
    /// The requested context. Each engine divides it into cells in its own way.
    pub ctx_size: u64,
    /// The size of the model.
    pub size: ModelSize,
}

impl Origin<'_> {
    /// Plans the model and proves the plan.
    ///
    /// # Errors
    /// Returns the diagnostics of the model or options (TPC0400 for a depth beyond the context), TPC0396 if the bits of
    /// one device are required and cannot be kept, or TPC0390 if the verifier rejects the programs.
    pub fn compile(self, placement: &Placement) -> Result<CompiledModel, Vec<Diagnostic>> {
        let prepared = self.prepare(placement)?;
        let (depth, cells) = (placement.depth, prepared.caches.n_ctx);
        if depth > cells {
            let message = format!("{depth} tokens do not fit in the context of {cells}");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--depth", message);
            let cure = format!("give at most {cells}, or a larger context with --ctx-size");
            return Err(vec![d.help(cure)]);
        }
        let draft = prepared.draft(placement)?;
        if let Some(d) = draft.bits_error(placement) {
            return Err(vec![d]);
        }
        let compiled = draft.proved(prepared);
        let by_cells = compiled.request.cell_unit > 1;
        if compiled.proof.is_err() && by_cells && placement.cache_split == CacheSplit::Auto {
            // The user did not ask for this division, so a plan by heads is better than none.
            let by_heads = Placement {
                cache_split: CacheSplit::Heads,
                ..placement.clone()
            };
            return self.compile(&by_heads);
        }
        Ok(compiled)
    }

    /// Prepares the graph with the requested caches.
    ///
    /// # Errors
    /// Returns the diagnostics of the model or options.
    pub fn prepare(self, placement: &Placement) -> Result<PlanInput, Vec<Diagnostic>> {
        match self {
            Origin::File(file) => of_file(file, placement),
            Origin::Capture(captured) => of_capture(captured, placement),
        }
    }
}

impl PlanInput {
    pub(super) fn workload(&self, placement: &Placement) -> Workload {
        Workload::new(
            self.caches.n_ctx,
            self.caches.n_ctx_swa,
            placement.ubatch_size,
            placement.parallel,
        )
    }

    /// Returns the sizes of the largest prompt batch with a full cache, which needs the most memory.
    pub fn memory_batch(&self, placement: &Placement) -> Bindings {
        memory_batch(&self.workload(placement))
    }

    pub(super) fn memory(&self, placement: &Placement) -> Memory {
        let shapes = shapes(&self.workload(placement));
        Memory::new(shapes, placement.storage)
    }
}

pub(crate) fn memory_batch_of(
    ctx_size: u64,
    window: Option<Window>,
    ubatch: u64,
    parallel: u64,
) -> Bindings {
    let caches = CacheSizes::new(ctx_size, window, ubatch, parallel);
    let workload = Workload::new(caches.n_ctx, caches.n_ctx_swa, ubatch, parallel);
    memory_batch(&workload)
}

fn of_file(file: &GgufFile, placement: &Placement) -> Result<PlanInput, Vec<Diagnostic>> {
    let one = |d: Diagnostic| vec![d];
    let header = file.header();
    let mut options = LowerOptions {
        cache_type_k: placement.cache_type_k,
        cache_type_v: placement.cache_type_v,
        ctx_size: placement.ctx_size.unwrap_or(0),
        drafting: placement.drafting,
        result: placement.result,
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
        options.ctx_size = trained.unwrap_or(4096).clamp(1, MAX_CONTEXT);
    }
    in_range(options.ctx_size, placement)?;
    let LoweredModel { graph, summary } =
        tpc_models::lower(header, &options).map_err(|e| one(e.into()))?;
    let geometry = Geometry::new(header, Some(&graph));
    let graph = Verified::new(graph).map_err(invalid)?;
    let caches = CacheSizes::new(
        options.ctx_size,
        summary.window,
        placement.ubatch_size,
        placement.parallel,
    );
    Ok(PlanInput {
        model: Model {
            graph,
            summary,
            geometry,
        },
        caches,
        ctx_size: options.ctx_size,
        size: ModelSize::of_file(file),
    })
}

fn of_capture(
    captured: &CapturedGraph,
    placement: &Placement,
) -> Result<PlanInput, Vec<Diagnostic>> {
    let ctx_size = placement.ctx_size.unwrap_or(CAPTURE_CONTEXT);
    in_range(ctx_size, placement)?;
    if placement.drafting != Drafting::None {
        let reason = "tpc plans captured graphs unchanged".to_owned();
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
        n_ctx_train: ctx_size,
        stretch: None,
        window: None,
        unused: Vec::new(),
        ignored: Vec::new(),
    };
    // A captured graph has a fixed number of cells.
    let caches = CacheSizes {
        n_ctx: ctx_size,
        n_ctx_swa: ctx_size,
    };
    Ok(PlanInput {
        model: Model {
            graph,
            summary,
            geometry: Geometry::default(),
        },
        caches,
        ctx_size,
        size,
    })
}

fn in_range(ctx_size: u64, placement: &Placement) -> Result<(), Vec<Diagnostic>> {
    for (option, n) in [
        ("--ctx-size", ctx_size),
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
