//! # Cases of every op
//!
//! The [suite] that holds the kernels of an executor against the reference, and its random operands: sizes, element types and attributes
//! of every op ([`generator`]), and tensors with gaps and with axes in any order ([`Stored`]). The same name and number make the
//! same [`Case`] everywhere.

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
