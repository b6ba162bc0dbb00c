//! Casts, and ops that move elements without arithmetic.
#![allow(unsafe_code)]

use tpc_ir::op::{Concat, Pad};
use tpc_ir::{DType, RANK};

use super::pointwise::{each_chunk, read_piece};
use crate::elements::{CHUNK, is_readable, is_writable};
use crate::error::KernelError;
use crate::launch::{Call, Launch, Request, Selected, ensure};
use crate::view::View;
use crate::worker::Worker;

const fn blocks(x: &View) -> usize {
    x.ne[0].div_ceil(x.dtype.block_len() as usize)
}

/// Copies `n` blocks that are `nb[0]` apart. The views give the block size.
///
/// # Safety
/// The source and destination blocks exist; no other thread uses the destination.
unsafe fn copy_blocks(x: &View, from: *const u8, y: &View, to: *mut u8, n: usize) {
    let bytes = y.dtype.block_bytes() as usize;
    if x.has_dense_rows() && y.has_dense_rows() {
        // SAFETY: caller's contract; the blocks are contiguous and may overlap.
        return unsafe { std::ptr::copy(from, to, n * bytes) };
    }
    for i in 0..n {
        let (from, to) = (from.wrapping_add(i * x.nb[0]), to.wrapping_add(i * y.nb[0]));
        // SAFETY: as above.
        unsafe { std::ptr::copy(from, to, bytes) };
    }
}

/// Copies the worker's share of `x` to `y`, which has the same sizes. Converts elements if the types differ.
///
/// # Safety
/// Same as [`crate::Kernel::run`]. If the types differ, both can be converted.
pub(super) unsafe fn copy(worker: &Worker<'_>, x: &View, y: &View) -> Result<(), KernelError> {
    ensure(x.ne == y.ne, "mismatched sizes of source and copy")?;
    let (x, y) = match (x.flat(), y.flat()) {
        (Some(x), Some(y)) => (x, y),
        _ => (*x, *y),
    };
    if x.dtype != y.dtype {
        // SAFETY: caller's contract.
        return unsafe {
            each_chunk(worker, &y, |piece, chunk| {
                read_piece(&x, piece, chunk);
                Ok(())
            })
        };
    }
    let n = blocks(&y);
    let per_row = n.div_ceil(CHUNK);
    for unit in worker.items(per_row * y.rows()) {
        let (row, at) = (y.indices(unit / per_row), unit % per_row * CHUNK);
        let (from, to) = (x.row(row), y.row(row));
        let (from, to) = (
            from.wrapping_add(at * x.nb[0]),
            to.wrapping_add(at * y.nb[0]),
        );
        // SAFETY: the blocks are within the rows, and these blocks of `y` belong to this worker.
        unsafe { copy_blocks(&x, from, &y, to, CHUNK.min(n - at)) };
    }
    Ok(())
}

fn converts(from: DType, to: DType) -> bool {
    from == to || is_readable(from) && is_writable(to)
}

/// A reshape, contiguous copy or cast. The order of elements stays.
#[derive(Debug)]
struct Flatten;

pub(super) fn flatten(request: &Request<'_>) -> Selected {
    match (request.operands, request.results) {
        (&[from], &[to]) if converts(from, to) => Ok(Box::new(Flatten)),
        (&[_], &[_]) => Err("the types do not convert"),
        _ => Err("wrong number of operands or results"),
    }
}

impl Launch for Flatten {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        ensure(x.len() == y.len(), "the number of elements changes")?;
        if x.ne == y.ne {
            // SAFETY: caller's contract.
            return unsafe { copy(call.worker, &x, &y) };
        }
        if let (Some(x), Some(y)) = (x.flat(), y.flat()) {
            // SAFETY: caller's contract.
            return unsafe { copy(call.worker, &x, &y) };
        }
        let block = x.dtype.block_len() as usize;
        let whole = x.ne[0].is_multiple_of(block) && y.ne[0].is_multiple_of(block);
        ensure(
            x.dtype == y.dtype && whole,
            "rows of a reshape are not whole blocks",
        )?;
        let (n, m) = (blocks(&x), blocks(&y));
        for i in call.worker.items(y.rows()) {
            let to = y.row(y.indices(i));
            for j in 0..m {
                let at = i * m + j;
                let from = x.row(x.indices(at / n)).wrapping_add(at % n * x.nb[0]);
                // SAFETY: both views have the same number of blocks, and these blocks of `y` belong to this worker.
                unsafe { copy_blocks(&x, from, &y, to.wrapping_add(j * y.nb[0]), 1) };
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Transposed {
    order: [usize; RANK],
}

pub(super) fn permute(axes: [u64; RANK], request: &Request<'_>) -> Selected {
    let mut order = [RANK; RANK];
    for (from, &to) in axes.iter().enumerate() {
        let to = usize::try_from(to).ok().filter(|&to| to < RANK);
        order[to.ok_or("the axes are not a permutation")?] = from;
    }
    if order.contains(&RANK) {
        return Err("the axes are not a permutation");
    }
    match (request.operands, request.results) {
        (&[from], &[to]) if !converts(from, to) => Err("the types do not convert"),
        (&[from], &[_]) if from.is_quantised() && order[0] != 0 => {
            Err("axis 0 of a quantised tensor cannot move")
        }
        (&[_], &[_]) => Ok(Box::new(Transposed { order })),
        _ => Err("wrong number of operands or results"),
    }
}

impl Launch for Transposed {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        // SAFETY: caller's contract.
        unsafe { copy(call.worker, &x.permuted(self.order), &y) }
    }
}

#[derive(Debug)]
struct Part {
    axis: usize,
    start: usize,
    /// Elements that must stay together along the axis.
    unit: usize,
}

const CUT: &str = "the slice cuts a block";

pub(super) fn slice(axis: u64, start: Option<u64>, request: &Request<'_>) -> Selected {
    let axis = super::axis(axis)?;
    let start = start.ok_or("the sizes are not bound")? as usize;
    match (request.operands, request.results) {
        (&[from], &[to]) if converts(from, to) => {
            let unit = if axis == 0 { from.block_len() } else { 1 } as usize;
            match start.is_multiple_of(unit) {
                true => Ok(Box::new(Part { axis, start, unit })),
                false => Err(CUT),
            }
        }
        (&[_], &[_]) => Err("the types do not convert"),
        _ => Err("wrong number of operands or results"),
    }
}

impl Launch for Part {
    fn resize(&mut self, size: usize) -> Result<(), KernelError> {
        self.start = size;
        ensure(size.is_multiple_of(self.unit), CUT)
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let len = y.ne[self.axis];
        let end = self.start.checked_add(len);
        let within = end.is_some_and(|end| end <= x.ne[self.axis]);
        ensure(within, "the slice ends beyond the axis")?;
        // SAFETY: caller's contract; the slice is within the operand.
        unsafe { copy(call.worker, &x.sliced(self.axis, self.start, len), &y) }
    }
}

/// Concatenation along an axis, with zeros before and after.
#[derive(Debug)]
struct Joined {
    axis: usize,
    before: usize,
    after: usize,
}

fn one_type(request: &Request<'_>) -> Result<DType, &'static str> {
    let &[result] = request.results else {
        return Err("wrong number of results");
    };
    if request.operands.is_empty() {
        return Err("no operands");
    }
    let same = request.operands.iter().all(|&t| t == result);
    if same {
        Ok(result)
    } else {
        Err("the types of operands and result differ")
    }
}

pub(super) fn concat(op: &Concat, request: &Request<'_>) -> Selected {
    one_type(request)?;
    Ok(Box::new(Joined {
        axis: super::axis(op.axis)?,
        before: 0,
        after: 0,
    }))
}

pub(super) fn pad(op: &Pad, request: &Request<'_>) -> Selected {
    let block = one_type(request)?.block_len();
    let axis = super::axis(op.axis)?;
    let whole = op.before.is_multiple_of(block) && op.after.is_multiple_of(block);
    if axis == 0 && !whole {
        return Err("the zeros are not whole blocks");
    }
    Ok(Box::new(Joined {
        axis,
        before: op.before as usize,
        after: op.after as usize,
    }))
}

/// Zeroes the worker's share of `y`. In every format, a block of zero bytes is zero.
///
/// # Safety
/// Same as [`crate::Kernel::run`].
unsafe fn zero(worker: &Worker<'_>, y: &View) {
    let bytes = y.dtype.block_bytes() as usize;
    for i in worker.items(y.rows()) {
        let row = y.row(y.indices(i));
        for j in 0..blocks(y) {
            // SAFETY: the block exists and is this worker's.
            unsafe { row.wrapping_add(j * y.nb[0]).write_bytes(0, bytes) };
        }
    }
}

impl Launch for Joined {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let &[y] = call.results else {
            return ensure(false, "wrong number of results");
        };
        let sizes = call.operands.iter().map(|x| x.ne[self.axis]);
        let all = sizes.chain([self.before, self.after]);
        let total = all.fold(0, usize::saturating_add);
        ensure(total == y.ne[self.axis], "wrong total size along the axis")?;
        let block = y.dtype.block_len() as usize;
        let mut at = self.before;
        for x in call.operands {
            let aligned = self.axis > 0 || at.is_multiple_of(block);
            ensure(aligned, "an operand begins within a block")?;
            let part = y.sliced(self.axis, at, x.ne[self.axis]);
            // SAFETY: caller's contract; the parts do not overlap.
            unsafe { copy(call.worker, x, &part)? };
            at += x.ne[self.axis];
        }
        for (start, len) in [(0, self.before), (at, self.after)] {
            // SAFETY: caller's contract; the parts do not overlap.
            unsafe { zero(call.worker, &y.sliced(self.axis, start, len)) };
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Tiled;

pub(super) fn repeat(request: &Request<'_>) -> Selected {
    match (one_type(request)?, request.operands) {
        (_, [_]) => Ok(Box::new(Tiled)),
        _ => Err("wrong number of operands"),
    }
}

impl Launch for Tiled {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        if y.is_empty() {
            return Ok(());
        }
        let fits = |i: usize| x.ne[i] > 0 && y.ne[i].is_multiple_of(x.ne[i]);
        ensure(
            (0..RANK).all(fits),
            "sizes of x do not divide sizes of the result",
        )?;
        let whole = x.ne[0].is_multiple_of(x.dtype.block_len() as usize);
        ensure(whole, "rows are not whole blocks")?;
        let n = blocks(&x);
        let [_, n1, n2, n3] = x.ne;
        for i in call.worker.items(y.rows()) {
            let [i1, i2, i3] = y.indices(i);
            let (from, to) = (x.row([i1 % n1, i2 % n2, i3 % n3]), y.row([i1, i2, i3]));
            for at in (0..blocks(&y)).step_by(n) {
                // SAFETY: the row of `x` exists and fits in the row of `y`, which belongs to this worker.
                unsafe { copy_blocks(&x, from, &y, to.wrapping_add(at * y.nb[0]), n) };
            }
        }
        Ok(())
    }
}
