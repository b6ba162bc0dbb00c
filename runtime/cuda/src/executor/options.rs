//! How programs are made for CUDA devices and run on them.

use tpc_ir::program::{FileTarget, Stored, Target};
use tpc_ir::{Op, TensorType};
use tpc_runtime::Options;

/// How a program runs on CUDA devices.
#[derive(Clone, Copy, Debug)]
pub struct CudaOptions {
    /// Threads for the ops that the host runs.
    pub threads: usize,
    /// Choices of arithmetic.
    pub options: Options,
}

impl CudaOptions {
    /// So many threads of the host, and defaults.
    pub fn with_threads(threads: usize) -> CudaOptions {
        CudaOptions {
            threads,
            options: Options::default(),
        }
    }
}

/// CUDA devices as a target of programs: weights are stored as in the file, and buffers begin at multiples of 256 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CudaTarget;

impl Target for CudaTarget {
    fn stored(&self, weight: &TensorType, readers: &[(&Op, usize)]) -> Option<Stored> {
        FileTarget.stored(weight, readers)
    }

    fn alignment(&self) -> u64 {
        256
    }
}
