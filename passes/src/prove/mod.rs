//! # The proof: the devices compute the model
//!
//! [`prove`] uses only the model's graph and the programs of all devices, not the plan, the sharded graph or other
//! passes' analyses. From `tpc-ir` it uses only the ops' definitions: types, rules and head groupings.
//!
//! Both graphs are cut into sections, one per layer (`sections.rs`). Each section is an obligation, proved in its own
//! e-graph:
//!
//! 1. The model's values become terms (`language.rs`, `encoding.rs`).
//! 2. The programs' values become terms of the same e-graph, in program order. A device's weight is a *view* `w[p]` of
//!    the model's weight. A copy is its operand, an all-reduce is a sum of its operands, and an all-gather is a
//!    concatenation. The [rules](rules()) say which terms are equal, such as `f(x[p]) = f(x)[r]` and `Σ mul_mat(w[pᵢ],
//!    x[pᵢ]) = mul_mat(w, x)`. A device's value is correct if it ends up in the e-class of the model's value.
//! 3. A value that later sections use must be the model's value or a view of one (`lemma.rs`), as must every output
//!    (`outputs.rs`).
//!
//! If a sum begins in one section and ends in the next, the two are one obligation. Obligations that are equal except
//! for names are proved once (`signature.rs`). Numbers are real numbers here: the order of a sum does not matter. Sizes
//! are symbols, so a proof holds for every number of tokens and cells.
//!
//! If a proof fails, the error names the first op whose value is not justified; `diagnose/` words the message.

mod analysis;
mod boundary;
mod crossing;
mod diagnose;
mod encoding;
mod finite;
mod index_set;
mod interner;
mod justification;
mod knowledge;
mod language;
mod leaves;
mod lemma;
mod obligation;
mod outputs;
mod prover;
mod readings;
mod refutation;
mod relate;
mod relations;
mod rules;
mod sections;
mod signature;
mod structure;
mod term_graph;

pub use prover::{Proof, prove, prove_within, prove_without, rules};
pub use refutation::{Refutation, RefutationReason};
