//! How programs are made for CUDA devices and run on them.

use tpc_cpu::CpuTarget;
use tpc_ir::program::{FileTarget, Stored, Target};
use tpc_ir::{Op, Place, TensorType};
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

/// CUDA devices as a target of programs: they store weights as the file does, their host as the CPU does, and buffers begin at
/// multiples of 256 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CudaTarget;

impl Target for CudaTarget {
    fn stored(
        &self,
        place: Place,
        weight: &TensorType,
        readers: &[(&Op, usize)],
    ) -> Option<Stored> {
        match place {
            Place::Host => CpuTarget.stored(place, weight, readers),
            _ => FileTarget.stored(place, weight, readers),
        }
    }

    fn alignment(&self) -> u64 {
        256
    }
}
