use tpc_passes::plan::Estimate;

use crate::placement::SplitMode;

/// A strategy that was compared with others.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// The split mode.
    pub mode: SplitMode,
    /// The estimated times.
    pub estimate: Estimate,
    /// Stored bytes (weights, caches, states) on the fullest device.
    pub fullest: u64,
    /// True if it fits the topology's memory.
    pub fits: bool,
    /// Microseconds per decoded token, including prompts and memory.
    pub cost: f64,
    /// True if it is chosen.
    pub chosen: bool,
    /// True if its speeds are within the estimates' error of the chosen one.
    pub within_error: bool,
}
