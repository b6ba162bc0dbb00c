//! The algebra of factor trees: unification with in-place refinement.
//!
//! An axis is an ordered product (major → minor) of variables; a variable is a leaf, a product, or a sum
//! (concatenation) of variables. Refinement is in place, so that every axis that runs through a variable sees it.
//! Inference works on unlabelled leaves. The verifier works on leaves that carry what a sharding says of them, and
//! unifying two leaves that say different things is an error.

mod label;
mod rules;
mod space;

pub use label::Label;
pub use rules::{Axes, solve};
pub use space::{Cut, Space, SplitOf, Var};
