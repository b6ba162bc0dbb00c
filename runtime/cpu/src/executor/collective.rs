//! Collectives: every device reads the operands of all and writes its own result.
#![allow(unsafe_code)]

use tpc_ir::{DType, Op};

use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::launch::ensure;
use crate::team::Worker;
use crate::view::View;

/// A collective on one element type.
#[derive(Debug)]
pub(super) struct Exchange {
    op: Op,
    /// Copies a part.
    copy: Kernel,
}

impl Exchange {
    pub(super) fn new(op: &Op, copy: Kernel) -> Exchange {
        Exchange {
            op: op.clone(),
            copy,
        }
    }

    /// The worker's share of the result of device `rank`.
    ///
    /// # Safety
    /// As [`Kernel::run`]: operands of all devices are written, and stay until all devices have read them.
    pub(super) unsafe fn run(
        &self,
        worker: &Worker<'_>,
        rank: usize,
        operands: &[View],
        result: &View,
        scratch: &mut [u8],
    ) -> Result<(), KernelError> {
        // SAFETY: the caller's, for every part below: parts of results do not overlap.
        let mut copy =
            |from: View, to: View| unsafe { self.copy.run(worker, &[from], &[to], scratch) };
        match &self.op {
            // SAFETY: the caller's.
            Op::AllReduce(_) => unsafe { sum(worker, operands, result) },
            Op::AllGather(op) => {
                let axis = op.axis as usize;
                ensure(axis < 4, "the axis of a gather")?;
                let mut start = 0;
                for from in operands {
                    let len = from.ne[axis];
                    copy(*from, result.sliced(axis, start, len))?;
                    start += len;
                }
                Ok(())
            }
            Op::ReduceScatter(op) => {
                let axis = op.axis as usize;
                let (start, _) = piece(&op.counts, rank, operands[0].ne, axis)?;
                ensure(operands.len() <= MOST, "participants")?;
                let mut parts = [*result; MOST];
                for (part, operand) in parts.iter_mut().zip(operands) {
                    *part = operand.sliced(axis, start, result.ne[axis]);
                }
                // SAFETY: the caller's.
                unsafe { sum(worker, &parts[..operands.len()], result) }
            }
            Op::AllToAll(op) => {
                let (cut, join) = (op.cut as usize, op.join as usize);
                ensure(join < 4, "the axis of an exchange")?;
                let mut at = 0;
                for from in operands {
                    let (start, len) = piece(&op.counts, rank, from.ne, cut)?;
                    let to = result.sliced(join, at, from.ne[join]);
                    copy(from.sliced(cut, start, len), to)?;
                    at += from.ne[join];
                }
                Ok(())
            }
            _ => Err(KernelError::Shape {
                what: "a collective without a kernel",
            }),
        }
    }
}

/// The indices along an axis that device `rank` gets of these counts; all of them where there are none.
fn piece(
    counts: &[u64],
    rank: usize,
    ne: [usize; 4],
    axis: usize,
) -> Result<(usize, usize), KernelError> {
    ensure(axis < 4, "the axis of an exchange")?;
    if counts.is_empty() {
        return Ok((0, ne[axis]));
    }
    ensure(
        rank < counts.len(),
        "a count of an exchange for each device",
    )?;
    let start: u64 = counts[..rank].iter().sum();
    Ok((start as usize, counts[rank] as usize))
}

/// Devices that may take part.
const MOST: usize = 64;

/// The sum of the operands, in their order.
///
/// # Safety
/// As [`Kernel::run`].
unsafe fn sum(worker: &Worker<'_>, operands: &[View], out: &View) -> Result<(), KernelError> {
    let fits = |v: &View| v.ne == out.ne && v.dtype == DType::F32;
    ensure(
        operands.iter().all(fits) && out.dtype == DType::F32,
        "operands of a sum",
    )?;
    // Rows may be few and long: shares are of pieces of rows.
    const PIECE: usize = 512;
    let pieces = out.ne[0].div_ceil(PIECE);
    for unit in worker.share(pieces * out.rows()) {
        let (row, from) = (out.indices(unit / pieces), unit % pieces * PIECE);
        let n = PIECE.min(out.ne[0] - from);
        let at = |v: &View, i: usize| v.row(row).wrapping_add((from + i) * v.nb[0]).cast::<f32>();
        for i in 0..n {
            // SAFETY: element `from + i` of a row that every view has.
            unsafe {
                let mut sum = at(&operands[0], i).read_unaligned();
                for v in &operands[1..] {
                    sum += at(v, i).read_unaligned();
                }
                at(out, i).write_unaligned(sum);
            }
        }
    }
    Ok(())
}
