//! Splits a graph into its layers, and finds alike layers.
//!
//! Layers are *alike* if they have equal [shapes](shape): the same instructions except for names. Callers compare other
//! properties through their own [`View`]: types before splits; shardings and places after. Planning solves alike layers
//! once, shrinking keeps one of each kind, and rewriting uses the same [`layer_runs`].
//!
//! The proof does not use this module, so it does not share the planner's errors.

mod cut;
mod prologue;
mod shape;

pub use cut::{insts_by_layer, layer_runs, live_out};
pub use prologue::{Prologue, Section};
pub use shape::{Operand, Shape, Step, View, shape};
