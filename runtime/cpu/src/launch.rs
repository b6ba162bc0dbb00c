//! What a kernel is chosen for, and what it is run on.

use tpc_ir::{DType, RANK};
use tpc_runtime::Options;

use crate::error::KernelError;
use crate::team::Worker;
use crate::view::View;

/// What a kernel is chosen for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// Element types of the operands.
    pub(crate) operands: &'a [DType],
    /// Element types of the results.
    pub(crate) results: &'a [DType],
    /// Choices outside the graph.
    pub(crate) options: Options,
}

/// A kernel, or why there is none.
pub(crate) type Selected = Result<Box<dyn Launch>, &'static str>;

/// Sizes of a tensor in elements.
pub type Sizes = [usize; RANK];

/// What one worker is given of a launch.
pub(crate) struct Call<'a> {
    /// The worker, which says what its share is.
    pub(crate) worker: &'a Worker<'a>,
    /// The operands of the op, in order.
    pub(crate) operands: &'a [View],
    /// The results of the op, in order.
    pub(crate) results: &'a [View],
    /// Memory of this worker alone, as many bytes as [`Launch::scratch_bytes`].
    pub(crate) scratch: &'a mut [u8],
}

/// The code of a kernel.
pub(crate) trait Launch: std::fmt::Debug + Send + Sync {
    /// Bytes that a worker needs beside the views.
    fn scratch_bytes(&self, _operands: &[Sizes], _results: &[Sizes]) -> usize {
        0
    }

    /// Computes the worker's share of the results.
    ///
    /// # Safety
    /// As [`crate::Kernel::run`].
    #[allow(unsafe_code)]
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError>;
}
