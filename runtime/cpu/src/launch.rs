//! Kernel selection and kernel calls.

use tpc_ir::{DType, RANK};
use tpc_runtime::Options;

use crate::elements::{is_readable, is_writable};
use crate::error::KernelError;
use crate::view::View;
use crate::worker::Worker;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) operands: &'a [DType],
    pub(crate) results: &'a [DType],
    pub(crate) options: Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elements {
    Real,
    Int,
}

impl Request<'_> {
    pub(crate) fn expect(
        &self,
        operands: &[Elements],
        results: &[Elements],
    ) -> Result<(), &'static str> {
        if operands.len() != self.operands.len() {
            return Err("unexpected number of operands");
        }
        if results.len() != self.results.len() {
            return Err("unexpected number of results");
        }
        for (dtype, wanted) in self.operands.iter().zip(operands) {
            match wanted {
                Elements::Real if !is_readable(*dtype) => {
                    return Err("an operand's type cannot be read as real numbers");
                }
                Elements::Int if !dtype.is_integer() => {
                    return Err("an operand's elements are not integers");
                }
                Elements::Real | Elements::Int => {}
            }
        }
        for (dtype, wanted) in self.results.iter().zip(results) {
            match wanted {
                Elements::Real if !is_writable(*dtype) => {
                    return Err("a result's type cannot be written as real numbers");
                }
                Elements::Int if !matches!(dtype, DType::I32 | DType::I64) => {
                    return Err("the result's indices are not i32 or i64");
                }
                Elements::Real | Elements::Int => {}
            }
        }
        Ok(())
    }
}

/// A kernel, or the reason for its absence.
pub(crate) type Selected = Result<Box<dyn Launch>, &'static str>;

/// Sizes of a tensor in elements.
pub type Sizes = [usize; RANK];

pub(crate) struct Call<'a> {
    pub(crate) worker: &'a Worker<'a>,
    pub(crate) operands: &'a [View],
    pub(crate) results: &'a [View],
    /// This worker's memory, [`Launch::scratch_bytes`] long.
    pub(crate) scratch: &'a mut [u8],
}

impl Call<'_> {
    /// Returns the operands and results if their number is right.
    pub(crate) fn views<const N: usize, const M: usize>(
        &self,
    ) -> Result<([View; N], [View; M]), KernelError> {
        match (self.operands.try_into(), self.results.try_into()) {
            (Ok(operands), Ok(results)) => Ok((operands, results)),
            _ => Err(KernelError::Shape {
                what: "wrong number of operands or results",
            }),
        }
    }
}

/// Returns an error with the text `what` if `holds` is false.
pub(crate) const fn ensure(holds: bool, what: &'static str) -> Result<(), KernelError> {
    if holds {
        Ok(())
    } else {
        Err(KernelError::Shape { what })
    }
}

pub(crate) fn bytes_for(lengths: &[usize]) -> usize {
    lengths.iter().map(|n| n * 4).sum::<usize>() + 64
}

/// Splits scratch memory into undefined slices, the first aligned to a cache line.
pub(crate) fn floats<const N: usize>(
    scratch: &mut [u8],
    lengths: [usize; N],
) -> Result<[&mut [f32]; N], KernelError> {
    let (needed, found) = (bytes_for(&lengths), scratch.len());
    let short = KernelError::Scratch { needed, found };
    let skip = scratch.as_ptr().align_offset(64);
    let aligned = scratch.get_mut(skip..).ok_or(short)?;
    // SAFETY: every bit pattern is an f32.
    #[allow(unsafe_code)]
    let (_, mut rest, _) = unsafe { aligned.align_to_mut::<f32>() };
    let mut out = lengths.map(|_| <&mut [f32]>::default());
    for (slot, n) in out.iter_mut().zip(lengths) {
        (*slot, rest) = rest.split_at_mut_checked(n).ok_or(short)?;
    }
    Ok(out)
}

pub(crate) trait Launch: std::fmt::Debug + Send + Sync {
    fn scratch_bytes(&self, _operands: &[Sizes], _results: &[Sizes]) -> usize {
        0
    }

    /// Sets the kernel's size attribute ([`crate::ops::size_of`]).
    fn resize(&mut self, _size: usize) -> Result<(), KernelError> {
        Ok(())
    }

    /// Computes the worker's share of the results.
    ///
    /// # Safety
    /// Same as [`crate::Kernel::run`].
    #[allow(unsafe_code)]
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError>;
}
