//! The constants of the model. `docs/src/cuda.md` has their sources, and a test compares predictions with measurements.

/// Cycles from an instruction of a warp to its next, if no other warp delays it. Fitted to the kernels of a token.
pub const CYCLES_PER_INSTRUCTION: f64 = 5.5;

/// Microseconds from a load of weights to its use, with other loads in flight. Fitted to the kernels of a token.
pub const LOAD_US: f64 = 1.25;

/// Instructions per cycle of a scheduler with enough warps. Assumed.
pub const ISSUE_SHARE: f64 = 0.7;

/// Microseconds of a launch that starts after the previous launch has ended, without a graph of several kernels.
pub const SERIAL_LAUNCH_US: f64 = 1.9;

/// Microseconds of a launch after a full edge of a graph.
pub const FULL_LAUNCH_US: f64 = 1.7;

/// Microseconds of a launch after a programmatic edge.
pub const PROGRAMMATIC_LAUNCH_US: f64 = 0.7;

/// Microseconds of a kernel until its first operands have arrived, and from its last sum to the end of its stores.
pub const START_US: f64 = 1.6;

/// Microseconds of an op on the host, with its edges. Assumed.
pub const HOST_US: f64 = 10.0;

/// Microseconds of the host before and after a step: inputs, views, logits. Assumed.
pub const STEP_US: f64 = 100.0;

/// Microseconds of an edge between cards with a direct link, beyond a full edge. Estimated in a review, not measured.
pub const EDGE_US: f64 = 5.0;

/// The share of the specified bandwidth that kernels reach on cards that were not measured. Assumed.
pub const ASSUMED_BANDWIDTH_SHARE: f64 = 0.9;

/// The relative error of predicted speeds of decoding.
pub const DECODE_ERROR: f64 = 0.2;

/// The relative error of predicted speeds of prompts. Assumed: the kernels of prompts were not measured.
pub const PROMPT_ERROR: f64 = 0.4;

/// The relative error of predicted times of single kernels.
pub const KERNEL_ERROR: f64 = 0.3;

/// Weights that a `dp4a` multiplies with one of the two terms, per lane.
pub(super) const IDP_WEIGHTS: f64 = 2.0;
