//! ggml's tensor split: the rules of its multi-device back end (`ggml-backend-meta`), which llama.cpp uses for `-sm
//! tensor`.
//!
//! The back end infers how the devices hold each tensor of a graph: split along one axis, mirrored, or as a partial
//! sum. Names determine the state of weights and caches, op rules the state of other tensors. If a rule rejects the
//! sources, the process aborts. For a captured graph, this module predicts the result:
//!
//! 1. `weights` gives the leaves their states.
//! 2. `infer` applies the op `rules` up to the first refused op. `silent` finds accepted ops with a wrong result.
//! 3. [`repair`] searches for an equivalent graph that ggml accepts.
//! 4. `report` turns faults and repairs into diagnostics.
//!
//! The rules do not affect tpc's plans.

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
