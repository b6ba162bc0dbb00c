//! # Test cases for every op
//!
//! The [suite] compares an executor's kernels with the reference on random cases. A [`generator`] chooses sizes,
//! element types and attributes; a name and seed give the same [`Case`] on every machine. [`Stored`] tensors have
//! gaps and any order of axes.

mod cases;
mod compare;
mod random;
mod skip;
mod stored;
pub mod suite;

pub use cases::{Arg, CACHES, Case, Generator, foreign, generator, out_of_range};
pub use compare::{aligned_operands, aligned_results, difference, expected, operands};
pub use random::Random;
pub use skip::{skip, skip_optional, skip_without_card};
pub use stored::Stored;
