//! # Cases of every op
//!
//! The [suite] compares an executor's kernels with the reference on random cases. A [`generator`] picks sizes, element
//! types and attributes; the same name and seed make the same [`Case`] on every machine. [`Stored`] holds tensors with
//! gaps and with axes in any order.

mod cases;
mod compare;
mod random;
mod skip;
mod stored;
pub mod suite;

pub use cases::{Arg, CACHES, Case, Generator, foreign, generator, out_of_range};
pub use compare::{difference, expected, operands};
pub use random::Random;
pub use skip::{skip, skip_without_card};
pub use stored::Stored;
