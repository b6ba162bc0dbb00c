//! Architectures: from a GGUF header to the model's graph.
//!
//! An architecture is a *description*, not code: a constant [`Arch`] in one short file per family. The description
//! states the differences from [`Arch::CLASSIC`]: norms, form of the projections, rotation, activation, experts,
//! scales. Building blocks read the description, the hyper-parameters and the tensors, and append instructions. Blocks
//! do not name architectures. An ordinary new architecture takes one file and one line of [`ARCHS`].
//!
//! Modules import downwards only:
//!
//! | module | content |
//! |---|---|
//! | `lowering`, `expected` | the two uses: a graph, and the list of expected tensors |
//! | `families` | the architectures and the registry [`ARCHS`] |
//! | `blocks` | building blocks, which append instructions to a graph |
//! | `source` | requests for tensors, answered by a file or a recorder |
//! | `hparams` | hyper-parameters, read from metadata keys and checked |
//! | `description` | types of descriptions |
//!
//! [`lower`] takes three steps:
//!
//! 1. *Hyper-parameters*: checks every metadata key that the description reads (counts, finite numbers, divisibility).
//! 2. *Assembly*: blocks request tensors by name and expected shape. A file answers with its tensors, and compares
//!    their shapes with the keys that decide them. A recorder accepts and records every request.
//!    [`expected_tensors`] uses the recorder with the same code, so the two cannot differ.
//! 3. *Leftovers*: [`Summary::unused`] lists the file's other tensors. In a well-formed file the list is empty, or has
//!    only tensors of parts that are not lowered.
//!
//! Invariants:
//!
//! - Only headers are read, never tensor data. A bad input causes neither a panic nor more allocation than the graph of
//!   2048 layers needs.
//! - Every value is on the host, every weight is loaded once, and every KV cache is a state whose updated value is among
//!   the outputs. Values have the names in llama.cpp's graphs, if any.
//! - Semantics are llama.cpp's, except for the window of Phi 3, which llama.cpp ignores (see `phi.rs`).

mod blocks;
mod codes;
pub mod description;
mod drafters;
mod error;
mod expected;
mod families;
mod help;
mod hparams;
mod lowering;
mod options;
mod size;
mod source;
mod stretch;
mod summary;
mod towers;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use blocks::{CACHE_TYPES, IK_CACHE_TYPES};
pub use codes::CODES;
pub use description::Arch;
pub use drafters::read_by_draft;
pub use error::ArchError;
pub use expected::{expected_tensors, expected_tensors_in};
pub use families::{ARCHS, find};
pub use lowering::lower;
pub use options::{Drafting, GraphResult, LowerOptions};
pub use source::{ExpectedTensor, TensorRole, WeightForms};
pub use stretch::{RopeScaling, Stretch};
pub use summary::{IgnoredDrafts, LoweredModel, Summary};
pub use towers::Tower;
