//! The layers of a graph: their instructions, what precedes and follows them, and which of them are alike.
//!
//! Layers are *alike* if they have equal [shapes](shape): the same instructions but for names. Users differ in what else
//! must be equal (types alone before splits, shardings and places after), so each looks at ops and values through a
//! [`View`] of its own. Planning solves alike layers once, shrinking keeps one of each kind. Rewriting cuts a graph into
//! the same [`layer_runs`] and writes them in the form of its e-graph.
//!
//! The proof does not use this module: it must not rest on what planning takes for equal.

mod cut;
mod prologue;
mod shape;

pub use cut::{insts_by_layer, layer_runs, live_out};
pub use prologue::{Prologue, Section};
pub use shape::{Operand, Shape, Step, View, shape};
