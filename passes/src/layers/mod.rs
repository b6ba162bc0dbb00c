//! The layers of a graph: their instructions, the instructions before and after them, and which layers are alike.
//!
//! Layers are *alike* if they have equal [shapes](shape): the same instructions except for names. Other properties that
//! must be equal depend on the caller: only types before splits; shardings and places after. Each caller therefore
//! looks at ops and values through its own [`View`]. Planning solves alike layers once, and shrinking keeps one of each
//! kind. Rewriting cuts a graph into the same [`layer_runs`] and writes them in the form of its e-graph.
//!
//! The proof does not use this module, because it must not depend on the planner's notion of equality.

mod cut;
mod prologue;
mod shape;

pub use cut::{insts_by_layer, layer_runs, live_out};
pub use prologue::{Prologue, Section};
pub use shape::{Operand, Shape, Step, View, shape};
