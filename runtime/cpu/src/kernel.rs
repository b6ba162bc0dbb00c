//! Kernels.

use tpc_ir::{DType, Op};
use tpc_runtime::Options;

use crate::error::{KernelError, Unsupported};
use crate::launch::{Call, Launch, Request, Sizes};
use crate::ops;
use crate::product::Isa;
use crate::simd;
use crate::view::View;
use crate::worker::Worker;

/// An op with known attributes and element types, for any sizes.
#[derive(Debug)]
pub struct Kernel {
    name: &'static str,
    types: Box<[DType]>,
    operands: usize,
    launch: Box<dyn Launch>,
    /// Replaces the best instruction set.
    vectors: Option<simd::Isa>,
}

impl Kernel {
    /// Selects the kernel of `op` for operands and results of these types. Sizes in the op's attributes must be bound
    /// ([`Op::map_dims`]).
    ///
    /// # Errors
    /// Returns [`Unsupported`] for leaves, transfers, and formats that cannot be read or written.
    pub fn select(
        op: &Op,
        operands: &[DType],
        results: &[DType],
        options: Options,
    ) -> Result<Kernel, Unsupported> {
        let request = Request {
            operands,
            results,
            options,
        };
        let launch = ops::select(op, &request).map_err(|reason| Unsupported {
            op: op.name(),
            operands: operands.to_vec(),
            results: results.to_vec(),
            reason,
        })?;
        Ok(Kernel {
            name: op.name(),
            types: operands.iter().chain(results).copied().collect(),
            operands: operands.len(),
            launch,
            vectors: None,
        })
    }

    /// Uses this instruction set instead of the best; results are bit-identical.
    #[must_use]
    pub fn on(self, isa: Isa) -> Kernel {
        Kernel {
            vectors: Some(isa.vectors()),
            ..self
        }
    }

    /// Returns the op's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the scratch bytes of each worker for these sizes.
    pub fn scratch_bytes(&self, operands: &[Sizes], results: &[Sizes]) -> usize {
        self.launch.scratch_bytes(operands, results)
    }

    pub(crate) fn resize(&mut self, size: usize) -> Result<(), KernelError> {
        self.launch.resize(size)
    }

    /// Computes the worker's share of the results. Every worker of a device calls this with the same views. Results
    /// are readable after all workers have returned and met at a barrier.
    ///
    /// # Errors
    /// Returns [`KernelError`] if the views do not match or an index is out of range. The results are then undefined.
    ///
    /// # Safety
    /// Every view's bytes are readable, and the results' bytes are writable, until all workers have returned; no
    /// other thread writes them. Results do not overlap other views, with one exception: a result may share the
    /// memory, element type and strides of an operand that the kernel updates in place or reads element by element.
    #[allow(unsafe_code)]
    pub unsafe fn run(
        &self,
        worker: &Worker<'_>,
        operands: &[View],
        results: &[View],
        scratch: &mut [u8],
    ) -> Result<(), KernelError> {
        let found = operands.iter().chain(results).map(|v| v.dtype);
        if operands.len() != self.operands || !found.eq(self.types.iter().copied()) {
            return Err(KernelError::Shape {
                what: "the number or element types of the views differ",
            });
        }
        let call = Call {
            worker,
            operands,
            results,
            scratch,
        };
        // SAFETY: caller's contract.
        let run = || unsafe { self.launch.run(call) };
        match self.vectors {
            None => run(),
            Some(isa) => simd::with(isa, run),
        }
    }
}
