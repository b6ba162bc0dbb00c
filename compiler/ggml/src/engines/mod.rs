//! Facts about other engines: facts per release, as data, and predictions from them.
//!
//! - `build` has the types of a release's facts, `registry` the list of releases; each is one file in `data`;
//! - `basis` has the evidence for a statement, `outcome` the ends of runs that fail;
//! - `feed_forward` has the feed-forward matrices of a layer, `geometry` the rest of a model's geometry;
//! - `shares` computes the share of each of llama.cpp's devices;
//! - `tensor_cut` computes the parts of a tensor from its name and the `head_sizes` of its layer;
//! - `memory` has the numbers that determine a release's memory use;
//! - `cache_kernels` has the cache types that the attention kernels of back ends support;
//! - `condition` has the conditions that make a tensor split fail, `prediction` the predicted end of a run.
//!
//! A release's file lists the conditions that end a run, with the outcome and the evidence. Runs of the engine are the
//! oracle: a row of `peer/geometry-*.json` that contradicts a prediction is a failing test.

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
