//! Rewrites the sharded graph by equality saturation: merges, delays and moves copies and collectives to their cheapest
//! positions.
//!
//! `shard` reduces every sum at its origin. Rewriting finds the cheapest equal graph:
//!
//! 1. `skeleton.rs` cuts the graph into sections without names. Alike sections are rewritten once.
//! 2. `saturate.rs` makes a skeleton an e-graph of terms (`language.rs`) with types, places and shardings
//!    (`analysis.rs`), and applies the `rules/`.
//! 3. `problem.rs` prices all terms by the planner's cost model (`price.rs`). `extract.rs` chooses one term per
//!    e-class, for the cheapest graph and for the cheapest graph that sums in the order of one device (`order.rs`).
//! 4. `emit.rs` makes the choice a template, and `template.rs` instantiates it for every alike section.
//!
//! The verifier checks the result. Limits count rounds and terms, not time, so results are reproducible; the report
//! names sections that reach a limit.

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
