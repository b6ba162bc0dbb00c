//! Options of the CPU executor.

use tpc_runtime::Options;

/// Options of the CPU executor.
#[derive(Clone, Copy, Debug)]
pub struct CpuOptions {
    /// Threads of all devices together, at least one per device.
    pub threads: usize,
    /// Choices of arithmetic.
    pub options: Options,
    /// Times launches.
    pub profile: bool,
    /// Weights per token up to which a product takes activations in two int8 terms. Two terms double its time and
    /// almost eliminate rounding.
    pub two_terms: u64,
}

impl CpuOptions {
    /// Default of [`CpuOptions::two_terms`]. Such weights stay in a core's cache between the two passes, and the second
    /// pass takes as long as an empty launch.
    pub const TWO_TERMS: u64 = 1 << 18;

    /// Returns the defaults with this many threads.
    pub fn with_threads(threads: usize) -> CpuOptions {
        CpuOptions {
            threads,
            options: Options::default(),
            profile: false,
            two_terms: CpuOptions::TWO_TERMS,
        }
    }
}
