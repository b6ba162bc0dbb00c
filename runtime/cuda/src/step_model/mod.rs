//! Predicts the time of a step on cards, from the machine code of its kernels.
//!
//! - [`KernelTable`] has counts of each kernel's instructions and its registers, by weight type and target.
//!   `kernels.ron` is the table of this repository; a test compares it with NVRTC's code.
//! - [`kernel_time`] computes the time of a launch on a [`Card`].
//! - [`predict`] adds the times along the edges of a step's graph.
//!
//! `docs/src/cuda.md` has the formula, and the error that remains against measurements.

mod card;
mod constants;
mod key;
mod residency;
mod step;
mod table;
mod time;
mod work;

pub use card::{Card, CardLink};
pub use constants::{
    ASSUMED_BANDWIDTH_SHARE, CYCLES_PER_INSTRUCTION, DECODE_ERROR, EDGE_US, FULL_LAUNCH_US,
    HOST_US, ISSUE_SHARE, KERNEL_ERROR, LOAD_US, PROGRAMMATIC_LAUNCH_US, PROMPT_ERROR,
    SERIAL_LAUNCH_US, START_US, STEP_US,
};
pub use key::KernelKey;
pub use residency::{bytes_in_flight, resident_blocks};
pub use step::{Launching, PredictedKernel, StepPrediction, predict, predict_serial};
pub use table::{KernelCounts, KernelTable, NoCounts, table};
pub use time::{Bound, KernelTime, kernel_time};
