//! Options for running programs on the CPU.

use tpc_runtime::Options;

/// Options for running a program on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuOptions {
    /// Threads of all devices together; each device has at least one.
    pub threads: usize,
    /// Choices of arithmetic.
    pub options: Options,
    /// True if launches are timed.
    pub profile: bool,
    /// The most weights per token for which a product takes its activations in two terms of int8; larger products take
    /// one term. Two terms double the time of the product, and almost eliminate the rounding of activations.
    pub two_terms: u64,
}

impl CpuOptions {
    /// The default of [`CpuOptions::two_terms`]. Weights of this size stay in a core's cache between the two passes.
    /// The second pass then takes as long as an empty launch.
    pub const TWO_TERMS: u64 = 1 << 18;

    /// Returns the defaults with `threads` threads.
    pub fn with_threads(threads: usize) -> CpuOptions {
        CpuOptions {
            threads,
            options: Options::default(),
            profile: false,
            two_terms: CpuOptions::TWO_TERMS,
        }
    }
}
