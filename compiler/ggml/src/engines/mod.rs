//! Facts about other engines' releases, and predictions from them.
//!
//! The oracle is a run of the engine: a row of `peer/geometry-*.json` that contradicts a prediction is a failing
//! test.

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
