//! # Cases of every op
//!
//! Random operands for the tests that hold the kernels of an executor against the reference: sizes, element types and attributes
//! of every op ([`generator`]), and tensors with gaps and with axes in any order ([`Stored`]). The same name and number make the
//! same [`Case`] everywhere.

mod cases;
mod compare;
mod random;
mod skip;
mod stored;

pub use cases::{Arg, CACHES, Case, Generator, foreign, generator, out_of_range};
pub use compare::{difference, expected, operands, refused};
pub use random::Random;
pub use skip::skip;
pub use stored::Stored;
