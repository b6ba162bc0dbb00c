//! Small models with random weights, and headers of models of any size.
//!
//! A *specification* names an architecture and sizes ([`Spec::parse`] reads it as text); a [`Model`] is what follows
//! from it: metadata, and the tensors that [`arch::expected_tensors_in`](tpc_models::expected_tensors_in) lists, so
//! that there is no second account of what an architecture consists of. Each tensor gets a type as `llama-quantize`
//! would choose it (`types.rs`) and random weights of about unit gain (`weights.rs`).
//!
//! Invariants:
//!
//! - The same specification gives the same bytes, on any machine: the generator and what is made of its numbers use
//!   integers, exact conversions and correctly rounded operations only.
//! - Nothing is written before everything is known to be sound: sizes, types, and the header read back.
//! - This module cannot quantise; whoever writes data brings a [`Quantise`].

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

pub use model::{MAX_DATA_BYTES, Model, Quantise};
pub use presets::{Preset, presets};
pub use spec::{Contents, Experts, Head, Optionals, PerLayer, Spec};
pub use types::Types;
pub use weights::Rng;
