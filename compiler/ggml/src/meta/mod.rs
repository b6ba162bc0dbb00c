//! ggml's tensor split: the rules of its multi-device back end (`ggml-backend-meta`), which llama.cpp uses for
//! `-sm tensor`.
//!
//! That back end takes a finished graph and infers how the devices hold each tensor: split along one axis, mirrored, or
//! as a partial sum. Weights and caches are split by their names; every other tensor by the rule of its op. If the rule
//! does not accept the sources, the process aborts. This module predicts that for a captured graph:
//!
//! 1. `weights` gives the leaves their states, with the heads of each layer from `layers`;
//! 2. `rules` is the table of ops. `infer` follows the graph with it to the first op that is refused; `silent` finds
//!    the ops that are accepted and compute a wrong result;
//! 3. [`repair`] searches, by equality saturation, for an equivalent graph that is accepted;
//! 4. `report` makes diagnostics of the faults and repairs.
//!
//! This module does not affect tpc's plans, and it uses ggml's rules, not tpc's. The graph is ggml's, with its strides
//! and views.

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
