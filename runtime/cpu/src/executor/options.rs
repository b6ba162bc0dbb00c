//! Options of the CPU executor.

use tpc_runtime::Options;

use crate::product::Isa;

/// Options of the CPU executor.
#[derive(Clone, Copy, Debug)]
pub struct CpuOptions {
    /// Total number of threads, at least one per device. Devices with cores take at most one per core.
    pub threads: usize,
    /// Arithmetic options.
    pub options: Options,
    /// True to time launches.
    pub profile: bool,
    /// The maximum number of weights per token of a product with two int8 terms per activation. Two terms double the
    /// product's time and almost eliminate rounding.
    pub two_terms: u64,
    /// The instruction set of the kernels. All sets give the same bits.
    pub isa: Isa,
}

impl CpuOptions {
    /// The default of [`CpuOptions::two_terms`]. A core's cache keeps weights of this size between the passes, so the
    /// second pass takes no longer than an empty launch.
    pub const TWO_TERMS: u64 = crate::target::TWO_TERMS;

    /// Returns the default options with this number of threads.
    pub fn with_threads(threads: usize) -> CpuOptions {
        CpuOptions {
            threads,
            options: Options::default(),
            profile: false,
            two_terms: CpuOptions::TWO_TERMS,
            isa: Isa::best(),
        }
    }
}
