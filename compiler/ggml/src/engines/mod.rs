//! Facts about other engines' releases, and predictions from them.
//!
//! - `build` has the types of a release's facts, `registry` the releases, one file each in `data`;
//! - `basis` has the evidence for a statement, `outcome` the ends of failing runs;
//! - `feed_forward` and `geometry` have the geometry of a model;
//! - `shares` computes each device's share, `tensor_cut` and `head_sizes` the parts of a tensor;
//! - `memory` has memory rules, `cache_kernels` the cache types of attention kernels;
//! - `condition` has the conditions for a failing tensor split, `prediction` the predicted end of a run.
//!
//! The oracle is a run of the engine: a row of `peer/geometry-*.json` that contradicts a prediction is a failing test.

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
