//! Rewriting the sharded graph by equality saturation: copies and collectives are merged, delayed and moved to their
//! cheapest positions.
//!
//! `shard` reduces every sum at its origin. Rewriting finds the cheapest equal graph:
//!
//! 1. `skeleton.rs` cuts the graph into sections, and removes their names. Sections alike are rewritten once.
//! 2. `saturate.rs` makes a skeleton an e-graph of terms (`language.rs`), with known types, places and shardings
//!    (`analysis.rs`). It applies the `rules/`, which say which terms are equal.
//! 3. `problem.rs` prices all terms by the planner's cost model (`price.rs`), and `extract.rs` chooses one term per
//!    e-class. It finds the cheapest graph, and the cheapest graph that sums in the order of one device (`order.rs`).
//! 4. `emit.rs` makes the choice a template, and `template.rs` instantiates it for every section alike.
//!
//! The result is a sharded graph like any other, which the verifier checks again. Results do not depend on the clock:
//! limits are counts of rounds and terms, and a section that reaches one is reported.

mod analysis;
mod emit;
mod extract;
mod language;
mod order;
mod price;
mod problem;
mod report;
mod rewriter;
mod rules;
mod saturate;
mod skeleton;
mod template;

pub use price::Machine;
pub use report::{Counts, Limits, Report, SectionReport, StopReason};
pub use rewriter::{RewrittenGraph, rewrite};
pub use rules::{RULES, RewriteRule};
