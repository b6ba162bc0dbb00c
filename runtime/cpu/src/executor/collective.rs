//! Collectives. Every device reads all operands and writes its own result.
#![allow(unsafe_code)]

use tpc_ir::{DType, Op};

use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::launch::ensure;
use crate::view::View;
use crate::worker::Worker;

#[derive(Debug)]
pub(super) struct Exchange {
    op: Op,
    copy: Kernel,
}

impl Exchange {
    pub(super) fn new(op: &Op, copy: Kernel) -> Exchange {
        Exchange {
            op: op.clone(),
            copy,
        }
    }

    /// Computes the worker's share of device `rank`'s result.
    ///
    /// # Safety
    /// Same as [`Kernel::run`]. The operands of all devices are written, and stay valid until all devices have read
    /// them.
    pub(super) unsafe fn run(
        &self,
        worker: &Worker<'_>,
        rank: usize,
        parts: Parts<'_>,
        result: &View,
        scratch: &mut [u8],
    ) -> Result<(), KernelError> {
        // SAFETY: caller's contract, for every part below: parts of results do not overlap.
        let mut copy =
            |from: View, to: View| unsafe { self.copy.run(worker, &[from], &[to], scratch) };
        match &self.op {
            // SAFETY: caller's contract.
            Op::AllReduce(_) => unsafe { sum(worker, parts, result) },
            Op::AllGather(op) => {
                let axis = op.axis as usize;
                ensure(axis < 4, "invalid axis of a gather")?;
                let mut start = 0;
                for from in parts.views {
                    let len = from.ne[axis];
                    copy(*from, result.sliced(axis, start, len))?;
                    start += len;
                }
                Ok(())
            }
            Op::ReduceScatter(op) => {
                let axis = op.axis as usize;
                let (start, _) = piece(&op.counts, rank, parts.views[0].ne, axis)?;
                ensure(parts.views.len() <= MOST, "participants")?;
                let mut pieces = [*result; MOST];
                for (i, (piece, part)) in pieces.iter_mut().zip(parts.views).enumerate() {
                    *piece = part.sliced(axis, parts.within(i, start)?, result.ne[axis]);
                }
                let views = &pieces[..parts.views.len()];
                // SAFETY: caller's contract.
                unsafe { sum(worker, Parts { views, ..parts }, result) }
            }
            Op::AllToAll(op) => {
                let (cut, join) = (op.cut as usize, op.join as usize);
                ensure(join < 4, "invalid axis of an exchange")?;
                let mut at = 0;
                for (i, from) in parts.views.iter().enumerate() {
                    let (start, len) = piece(&op.counts, rank, from.ne, cut)?;
                    let to = result.sliced(join, at, from.ne[join]);
                    copy(from.sliced(cut, parts.within(i, start)?, len), to)?;
                    at += from.ne[join];
                }
                Ok(())
            }
            _ => Err(KernelError::Shape {
                what: "the CPU does not support this collective",
            }),
        }
    }
}

/// The operands of a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    /// The operands, or the blocks of [ranks](tpc_runtime::ranks::Blocks).
    pub(super) views: &'a [View],
    /// The level of each block in the tree of sums; empty if each operand is a device's.
    pub(super) levels: &'a [u32],
    /// The first index of each operand along the axis that the collective cuts; empty if all operands are whole.
    pub(super) bases: &'a [usize],
}

impl<'a> Parts<'a> {
    /// Returns one whole operand per device.
    pub(super) const fn all(views: &'a [View]) -> Parts<'a> {
        Parts {
            views,
            levels: &[],
            bases: &[],
        }
    }

    fn level(&self, i: usize) -> u32 {
        self.levels.get(i).copied().unwrap_or(0)
    }

    /// Returns the place of index `start` in operand `i`.
    fn within(&self, i: usize, start: usize) -> Result<usize, KernelError> {
        let base = self.bases.get(i).copied().unwrap_or(0);
        let within = start.checked_sub(base);
        within.ok_or(KernelError::Shape {
            what: "a part of an exchange is missing",
        })
    }
}

/// Returns device `rank`'s start and length along an axis, or the whole axis if `counts` is empty.
fn piece(
    counts: &[u64],
    rank: usize,
    ne: [usize; 4],
    axis: usize,
) -> Result<(usize, usize), KernelError> {
    ensure(axis < 4, "invalid axis of an exchange")?;
    if counts.is_empty() {
        return Ok((0, ne[axis]));
    }
    ensure(rank < counts.len(), "the exchange has too few counts")?;
    let start: u64 = counts[..rank].iter().sum();
    Ok((start as usize, counts[rank] as usize))
}

const MOST: usize = 64;

const LANES: usize = 16;

type Lanes = [f32; LANES];

fn add(a: Lanes, b: Lanes) -> Lanes {
    std::array::from_fn(|i| a[i] + b[i])
}

/// A binary tree of sums: devices 0 and 1, devices 2 and 3, then these two sums. The sum equals one device's sum bit
/// for bit if each device holds an equal subtree of the [whole sum](crate::product::Part).
struct Tree {
    /// Sums that wait for their sibling.
    waiting: [Lanes; Tree::DEPTH],
    depth: usize,
    count: usize,
}

impl Tree {
    /// At most one sum waits per bit of the device count.
    const DEPTH: usize = (usize::BITS - MOST.leading_zeros()) as usize;

    const EMPTY: Tree = Tree {
        waiting: [[0.0; LANES]; Tree::DEPTH],
        depth: 0,
        count: 0,
    };

    /// Adds a sum of `1 << level` devices.
    fn push(&mut self, mut x: Lanes, level: u32) {
        self.count += 1 << level;
        for _ in level..self.count.trailing_zeros() {
            self.depth -= 1;
            x = add(x, self.waiting[self.depth]);
        }
        self.waiting[self.depth] = x;
        self.depth += 1;
    }

    fn sum(&self) -> Lanes {
        let mut waiting = self.waiting[..self.depth].iter().rev();
        let last = waiting.next().copied().unwrap_or([0.0; LANES]);
        waiting.fold(last, |sum, x| add(sum, *x))
    }
}

/// Sums the operands in the order of [`Tree`].
///
/// # Safety
/// Same as [`Kernel::run`].
pub(super) unsafe fn sum(
    worker: &Worker<'_>,
    parts: Parts<'_>,
    out: &View,
) -> Result<(), KernelError> {
    let operands = parts.views;
    let fits = |v: &View| v.ne == out.ne && v.dtype == DType::F32;
    ensure(
        operands.len() <= MOST && operands.iter().all(fits) && out.dtype == DType::F32,
        "mismatched operands of a sum",
    )?;
    // Splits rows, because there may be few long rows.
    const PIECE: usize = 512;
    let pieces = out.ne[0].div_ceil(PIECE);
    for unit in worker.items(pieces * out.rows()) {
        let (row, from) = (out.indices(unit / pieces), unit % pieces * PIECE);
        let n = PIECE.min(out.ne[0] - from);
        for i in (0..n).step_by(LANES) {
            let lanes = LANES.min(n - i);
            let at = |v: &View, lane: usize| {
                let i = from + i + lane;
                v.row(row).wrapping_add(i * v.nb[0]).cast::<f32>()
            };
            let mut tree = Tree::EMPTY;
            for (device, v) in operands.iter().enumerate() {
                let mut x = [0.0; LANES];
                if lanes == LANES && v.nb[0] == size_of::<f32>() {
                    // SAFETY: the view has sixteen adjacent elements, starting at `from + i`.
                    x = unsafe { at(v, 0).cast::<Lanes>().read_unaligned() };
                } else {
                    for (lane, x) in x[..lanes].iter_mut().enumerate() {
                        // SAFETY: element `from + i + lane` exists in the row.
                        *x = unsafe { at(v, lane).read_unaligned() };
                    }
                }
                tree.push(x, parts.level(device));
            }
            for (lane, sum) in tree.sum()[..lanes].iter().enumerate() {
                // SAFETY: the element exists in the result and is this worker's.
                unsafe { at(out, lane).write_unaligned(*sum) };
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_trees() {
        let sum = |numbers: &[f32]| {
            let mut tree = Tree::EMPTY;
            numbers.iter().for_each(|&x| tree.push([x; LANES], 0));
            let sums = tree.sum();
            assert!(sums.iter().all(|s| *s == sums[0]));
            sums[0]
        };
        let x = [1e8, 1.0, -1e8, 3.0, 0.5, 1e7, 7.0, -1e7];
        assert_eq!(sum(&x[..1]), x[0]);
        assert_eq!(sum(&x[..3]), (x[0] + x[1]) + x[2]);
        assert_eq!(sum(&x[..4]), (x[0] + x[1]) + (x[2] + x[3]));
        let half = |x: &[f32]| (x[0] + x[1]) + (x[2] + x[3]);
        assert_eq!(sum(&x), half(&x[..4]) + half(&x[4..]));
        assert_eq!(sum(&x[..7]), half(&x[..4]) + ((x[4] + x[5]) + x[6]));
        assert_eq!(sum(&[1.0; MOST]), MOST as f32);
        let mut tree = Tree::EMPTY;
        for (block, level) in [
            (sum(&x[..2]), 1),
            (x[2], 0),
            (x[3], 0),
            (sum(&x[4..6]), 1),
            (x[6], 0),
        ] {
            tree.push([block; LANES], level);
        }
        assert_eq!(tree.sum()[0], sum(&x[..7]));
    }
}
