//! The algebra of factor trees: unification with in-place refinement.
//!
//! An axis is an ordered product (major → minor) of variables; a variable is a leaf, a product, or a sum
//! (concatenation) of variables. Refinement is in place, so that every axis that runs through a variable sees it.
//! Inference works on unlabelled leaves. The verifier works on leaves that carry a sharding's [`Label`], and unifying
//! two leaves with different labels is an error.

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
