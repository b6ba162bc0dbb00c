//! # Cases of every op
//!
//! The [suite] compares the kernels of an executor with the reference on random cases. A [`generator`] picks the sizes, element
//! types and attributes of an op. [`Stored`] holds tensors with gaps and with axes in any order. The same name and seed make the
//! same [`Case`] on every machine.

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
