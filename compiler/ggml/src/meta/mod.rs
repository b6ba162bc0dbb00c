//! ggml's tensor split: the rules of its multi-device back end (`ggml-backend-meta`), which llama.cpp uses for `-sm
//! tensor`.
//!
//! The back end infers how the devices hold each tensor of a finished graph: split along one axis, mirrored, or as a
//! partial sum. Weights and caches are split by name, other tensors by the op's rule. If a rule
//! rejects the sources, the process aborts. This module predicts that for a captured graph:
//!
//! 1. `weights` gives the leaves their states, with each layer's heads from `layers`; 2. `rules` is the table of ops.
//! `infer` applies it up to the first refused op; `silent` finds accepted ops with a wrong result; 3. [`repair`]
//! searches for an equivalent, accepted graph by equality saturation; 4. `report` turns faults and repairs into
//! diagnostics.
//!
//! The rules are ggml's and do not affect tpc's plans.

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
