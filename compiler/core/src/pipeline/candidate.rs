//! A strategy that was compared with others.

use tpc_passes::plan::Estimate;

use crate::placement::SplitMode;

/// A strategy that was compared with others.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// Its mode.
    pub mode: SplitMode,
    /// Its estimated times.
    pub estimate: Estimate,
    /// Bytes of weights, caches and states on the fullest device.
    pub fullest: u64,
    /// True if it fits the memory that the topology states.
    pub fits: bool,
    /// Its price in microseconds per decoded token, with prompts and memory weighed in.
    pub cost: f64,
    /// True if it is chosen.
    pub chosen: bool,
    /// True if its speeds differ from the chosen one's by less than the estimates' error.
    pub within_error: bool,
}
