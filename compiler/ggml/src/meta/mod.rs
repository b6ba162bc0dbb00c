//! The rules of the engine that graphs are ported to: llama.cpp's backend of several devices, which splits tensors.
//!
//! That engine takes a finished graph and infers how each tensor is held: split along one axis, mirrored, or as a
//! pending sum. Weights and caches are split by their names; for everything else each op has a rule, and what no rule
//! takes aborts the process. Here is what it would say of a captured graph:
//!
//! 1. `weights` gives the leaves their states;
//! 2. `rules` is the table of ops, `infer` follows the graph with it to the first op that is refused, `silent` tells
//!    what is computed, but wrongly;
//! 3. `cure` searches, by equality saturation, for an equivalent graph that is taken; `report` says it all.
//!
//! Nothing here plans for tpc, and nothing of tpc's own rules is used: the engine is seen as it is, on the graph as it
//! sees it, with its strides and views.

mod codes;
mod fault;
mod infer;
mod layers;
pub mod repair;
mod report;
mod rules;
mod silent;
mod states;
mod weights;

pub use codes::CODES;
pub use fault::{FaultKind, Verdict};
pub use infer::{Fault, Inference, MAX_DEVICES, REFUSED, Setup, infer};
pub use layers::expert_layer;
pub use report::diagnose;
pub use rules::{RULES, StateRule};
pub use states::{MAX_SEGMENTS, Segment, Split, SplitState};
