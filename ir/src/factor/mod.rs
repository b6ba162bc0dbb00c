//! The algebra of factor trees.
//!
//! An axis is an ordered product (major → minor) of variables. A variable is a leaf, a product, or a sum
//! (concatenation) of variables. Unification refines variables in place, for every axis that uses them. The verifier
//! labels leaves ([`Label`]) and rejects unification of different labels.

mod describe;
mod label;
mod refine;
mod rules;
mod space;
mod tree;
mod unify;
mod unify_error;

pub use label::Label;
pub use rules::{Axes, solve};
pub use space::{Space, Var};
pub use tree::SplitOf;
pub use unify_error::UnifyError;
