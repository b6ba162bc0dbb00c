use tpc_passes::plan::Estimate;

use crate::placement::SplitMode;

/// A strategy that was compared with others.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// `none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`.
    pub name: String,
    /// The split mode.
    pub mode: SplitMode,
    /// Positions of each stage's devices.
    pub stages: Vec<Vec<usize>>,
    /// True if devices that share tensors divide KV caches by cells.
    pub cells: bool,
    /// The estimated times.
    pub estimate: Estimate,
    /// Stored bytes on the fullest device.
    pub fullest: u64,
    /// Stored bytes on the fullest device, as a fraction of its memory.
    pub filled: f64,
    /// True if the strategy fits the memory.
    pub fits: bool,
    /// Cost in microseconds: the decoded token's time with prompts and the price of memory.
    pub cost: f64,
    /// True if the strategy is chosen.
    pub chosen: bool,
    /// True if the speeds are within the estimates' error of the chosen strategy's speeds.
    pub within_error: bool,
}
