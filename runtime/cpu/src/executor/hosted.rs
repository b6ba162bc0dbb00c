//! Ops that other executors leave to the host.
#![allow(unsafe_code)]

use tpc_ir::op::Op;
use tpc_ir::program::Program;
use tpc_ir::{Bindings, DType, Dim, Value};
use tpc_runtime::{ExecError, Options};

use super::launches::{most, select, select_bound};
use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::ops::size_of;
use crate::team::Team;
use crate::view::View;

/// An op of a program with its kernel, for executors that run other ops elsewhere. Weights are stored as in the file.
#[derive(Debug)]
pub struct HostedOp {
    kernel: Kernel,
    /// Copies the operand that is updated, where the result lies elsewhere.
    copy: Option<Kernel>,
    operands: usize,
    /// The size that the kernel works with, where it differs from batch to batch.
    size: Option<Dim>,
    scratch: usize,
}

impl HostedOp {
    /// The kernel of an op of a program, with its operands and results.
    ///
    /// # Errors
    /// When there is none, or a size has no value.
    pub fn new(
        program: &Program,
        op: &Op,
        (operands, results): (&[Value], &[Value]),
        options: Options,
    ) -> Result<HostedOp, ExecError> {
        let shape = program.shapes.last().map(|s| s.most).unwrap_or_default();
        let kernel = select_bound(program, op, (operands, results), &shape, options)?;
        let mut scratch = 0;
        for shape in &program.shapes {
            let of = |values: &[Value]| -> Result<Vec<[usize; 4]>, ExecError> {
                let sizes = values.iter().map(|v| most(program, *v, &shape.most));
                sizes.collect()
            };
            scratch = scratch.max(kernel.scratch_bytes(&of(operands)?, &of(results)?));
        }
        let moved = op.is_update() && program.home(operands[0]) != program.home(results[0]);
        let dtype: [DType; 1] = [program.graph.value(results[0]).ty.dtype];
        let copy = Op::Copy(tpc_ir::op::Copy);
        let copy = moved.then(|| select(&copy, &dtype, &dtype, options));
        let size = size_of(op).filter(|size| size.as_const().is_none());
        Ok(HostedOp {
            kernel,
            copy: copy.transpose()?,
            operands: operands.len(),
            size: size.cloned(),
            scratch,
        })
    }

    /// The op works on a batch of these sizes from now on.
    ///
    /// # Errors
    /// When its size has no value, or it cannot work with it.
    pub fn resize(&mut self, sizes: &Bindings) -> Result<(), ExecError> {
        let Some(size) = &self.size else {
            return Ok(());
        };
        let value = size.eval(sizes).and_then(|n| usize::try_from(n).ok());
        let value = value.ok_or_else(|| ExecError::Size {
            what: size.to_string(),
        })?;
        self.kernel.resize(value).map_err(super::io::error)
    }

    /// Runs the op on a team: the views of its operands, then those of its results.
    ///
    /// # Errors
    /// Those of [`Kernel::run`].
    ///
    /// # Safety
    /// As [`Kernel::run`] on these views.
    pub unsafe fn run(&self, team: &mut Team, views: &[View]) -> Result<(), KernelError> {
        let misfit = KernelError::Shape {
            what: "the views of an op of the host",
        };
        let (operands, results) = views.split_at_checked(self.operands).ok_or(misfit)?;
        if let Some(copy) = &self.copy {
            // SAFETY: the caller's.
            team.run(|worker| unsafe { copy.run(worker, &operands[..1], results, &mut []) })?;
        }
        let mut updated = operands.to_vec();
        if self.copy.is_some() {
            updated[0] = results[0];
        }
        team.run(|worker| {
            let mut scratch = vec![0; self.scratch];
            // SAFETY: the caller's.
            unsafe { self.kernel.run(worker, &updated, results, &mut scratch) }
        })
    }
}
