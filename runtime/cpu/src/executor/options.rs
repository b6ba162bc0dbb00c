//! How programs run on the CPU.

use tpc_runtime::Options;

/// How a program runs on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuOptions {
    /// Threads of all devices together; each device has at least one.
    pub threads: usize,
    /// Choices of arithmetic.
    pub options: Options,
    /// Whether launches are timed.
    pub profile: bool,
    /// Products that read at most so many weights for a token take their activations in two terms of int8, others in one.
    /// The time of the former doubles, and next to nothing is lost to rounding.
    pub two_terms: u64,
}

impl CpuOptions {
    /// What [`CpuOptions::two_terms`] is where nobody says it: weights that stay in the cache of a core between the passes,
    /// of which the second takes as long as a launch does that computes nothing.
    pub const TWO_TERMS: u64 = tpc_ir::program::TWO_TERMS;

    /// So many threads, and defaults.
    pub fn with_threads(threads: usize) -> CpuOptions {
        CpuOptions {
            threads,
            options: Options::default(),
            profile: false,
            two_terms: CpuOptions::TWO_TERMS,
        }
    }
}
