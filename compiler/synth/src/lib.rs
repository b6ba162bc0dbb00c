//! Small models with random weights, and headers of models of any size.
//!
//! [`Spec::parse`] reads a *specification*: an architecture and sizes. It determines a [`Model`]: metadata, and the
//! tensors of [`tpc_models::expected_tensors_in`], with `llama-quantize`'s element types and random weights of about
//! unit gain.
//!
//! - A specification gives the same bytes on any machine: all operations are on integers, exact, or correctly
//!   rounded.
//! - Sizes, types and the header (read back) are checked before anything is written.
//! - The caller supplies the quantisation ([`Quantise`]).

mod element_types;
mod metadata;
mod model;
mod parse;
mod presets;
mod spec;
mod types;
mod weights;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use model::{MAX_DATA_BYTES, MAX_REPEATED_BYTES, Model, Quantise};
pub use presets::{Preset, presets};
pub use spec::{Contents, Experts, Head, Optionals, PerLayer, Spec};
pub use types::FileType;
pub use weights::Rng;
