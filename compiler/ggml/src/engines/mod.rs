//! Facts about other engines: facts per release, as data, and predictions from them.
//!
//! - `build` has the types of a release's facts, `registry` the list of releases; each is one file in `data`;
//! - `basis` has the evidence for a statement, `outcome` the ends of runs that go wrong;
//! - `feed_forward` has the matrices that belong together, `geometry` the rest of a model's geometry, `shares` the parts of it that llama.cpp's devices get;
//! - `tensor_cut` has the parts of every tensor by its name, by `head_sizes`, the sizes of each layer's heads;
//! - `memory` has the numbers that a release's memory depends on;
//! - `cache_kernels` has the cache types that back ends compute attention with;
//! - `condition` has the conditions under which a split of tensors fails, `prediction` the end of a run.
//!
//! A release's file says which conditions end a run, how, and on what evidence. Runs of the engine are the oracle: a row of
//! `peer/geometry-*.json` that contradicts a prediction is a failing test.

mod basis;
mod build;
mod cache_kernels;
mod condition;
mod feed_forward;
mod geometry;
mod head_sizes;
mod memory;
mod outcome;
mod prediction;
mod registry;
mod shares;
mod tensor_cut;

pub use basis::Basis;
pub use build::{Build, Defaults, DroppedMode, Failure, RemovedOption, ShortSums, TensorSplit};
pub use cache_kernels::{CacheKernel, CacheKernels};
pub use condition::{Condition, SplitUse};
pub use feed_forward::FeedForward;
pub use geometry::{Attention, ContractedMatrix, Geometry, HeadRows, LinearAttention};
pub use head_sizes::HeadSizes;
pub use memory::{BackendMemory, MemoryFacts};
pub use outcome::Outcome;
pub use prediction::Prediction;
pub use registry::builds;
pub use shares::{Devices, lcm};
pub use tensor_cut::TensorCut;
pub use tpc_passes::machine::Backend;
