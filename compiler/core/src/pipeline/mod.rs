//! The pipeline from a model file to verified programs.

mod candidate;
mod cells;
mod compiled;
mod divide;
mod draft;
mod engine;
pub mod engine_memory;
mod fitting;
mod memory;
mod model;
mod ordered;
mod origin;
mod outline;
mod parallel;
mod ranking;
mod size;
mod sketch;
mod strategies;

pub use candidate::Candidate;
pub use cells::{CacheSizes, SequenceCells};
pub use compiled::CompiledModel;
pub use draft::Draft;
pub(crate) use engine::tensor_limit;
pub use engine::{ExcludedMode, is_on_host, tensor_failures};
pub use model::Model;
pub(crate) use origin::memory_batch_of;
pub use origin::{CAPTURE, CAPTURE_CONTEXT, MAX_CONTEXT, Origin, PlanInput};
pub use outline::Outline;
pub(crate) use parallel::in_parallel;
pub use size::ModelSize;
pub use sketch::{Sketch, StoredBytes};
pub use strategies::{Way, ways};
pub use tpc_passes::plan::{Breakdown, Estimate};

use crate::placement::Placement;
use tpc_diag::Diagnostic;
use tpc_ggml::capture::CapturedGraph;
use tpc_gguf::GgufFile;

/// Plans `file` and proves the plan.
///
/// # Errors
/// Returns the model's diagnostics, or TPC0390 if the verifier rejects the programs.
pub fn compile(file: &GgufFile, placement: &Placement) -> Result<CompiledModel, Vec<Diagnostic>> {
    Origin::File(file).compile(placement)
}

/// Plans a captured graph and proves the plan.
///
/// # Errors
/// Returns TPC0400 for sizes out of range, TPC0163 if the placement drafts tokens, and TPC0390 if the verifier rejects
/// the programs.
pub fn compile_capture(
    captured: &CapturedGraph,
    placement: &Placement,
) -> Result<CompiledModel, Vec<Diagnostic>> {
    Origin::Capture(captured).compile(placement)
}
