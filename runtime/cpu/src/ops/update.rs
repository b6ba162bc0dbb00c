//! Writes slices in place, in the tensor's element type.
#![allow(unsafe_code)]

use tpc_ir::op::{SetRows, SetSlice};
use tpc_ir::{CellParts, DType};

use super::movement::copy;
use super::rows::index;
use crate::elements::{CHUNK, int, read_row, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};
use crate::view::View;
use crate::worker::Worker;

/// Checks that the op keeps its first operand's type and does not cut blocks.
fn updates(axis: usize, request: &Request<'_>) -> Result<(), &'static str> {
    let dst = request.operands.first();
    if dst != request.results.first() {
        return Err("the types of result and destination differ");
    }
    if axis == 0 && dst.is_some_and(|t| t.is_quantised()) {
        return Err("the op would set single elements of blocks");
    }
    Ok(())
}

/// True if the worker writes this piece of a row. The owner depends only on the destination, so two rows for one
/// position are written in order.
fn owns(worker: &Worker<'_>, [i1, i2, i3]: [usize; 3], chunk: usize) -> bool {
    (i1 + i2 + i3 + chunk) % worker.count() == worker.index()
}

/// Calls `f` with start and length of each of the worker's pieces.
fn each_owned(worker: &Worker<'_>, row: [usize; 3], n: usize, mut f: impl FnMut(usize, usize)) {
    for chunk in (0..n.div_ceil(CHUNK)).filter(|&c| owns(worker, row, c)) {
        f(chunk * CHUNK, CHUNK.min(n - chunk * CHUNK));
    }
}

fn same_sizes(dst: &View, y: &View) -> Result<(), KernelError> {
    ensure(
        dst.ne == y.ne,
        "mismatched sizes of the destination and the result",
    )
}

/// Copies the worker's pieces of the destination to the result, unless they share memory.
///
/// # Safety
/// Same as [`crate::Kernel::run`].
unsafe fn copy_owned(worker: &Worker<'_>, dst: &View, y: &View) -> Result<(), KernelError> {
    same_sizes(dst, y)?;
    let same = dst.ptr == y.ptr && dst.nb == y.nb;
    for i in 0..if same { 0 } else { y.rows() } {
        let row = y.indices(i);
        each_owned(worker, row, y.ne[0], |at, len| {
            let unit = y.dtype.block_len() as usize;
            let piece = |v: &View| {
                let ptr = v.row(row).wrapping_add(at / unit * v.nb[0]);
                View::new(ptr, v.dtype, [len, 1, 1, 1], v.nb)
            };
            // SAFETY: the piece is within both rows, and belongs to this worker.
            let copied = unsafe { copy(&Worker::alone(), &piece(dst), &piece(y)) };
            debug_assert_eq!(copied, Ok(()));
        });
    }
    Ok(())
}

/// Writes slices along axis 1, 2 or 3 by index.
#[derive(Debug)]
struct Scatter {
    axis: usize,
    cells: Option<CellParts>,
}

#[derive(Debug)]
struct ScatterElements {
    cells: Option<CellParts>,
}

/// Returns the destination of an index read from data; `None` for a cell of parts that the destination does not hold.
fn slot(value: i64, cells: Option<CellParts>, bound: usize) -> Result<Option<usize>, KernelError> {
    let Some(cells) = cells else {
        return index("slice to set", value, bound).map(Some);
    };
    let cell = index("slice to set", value, usize::MAX)? as u64;
    match cells.local(cell) {
        Some(local) if local < bound as u64 => Ok(Some(local as usize)),
        Some(_) => Err(KernelError::Index {
            what: "slice to set",
            index: value,
            bound,
        }),
        None => Ok(None),
    }
}

pub(super) fn set_rows(op: &SetRows, request: &Request<'_>) -> Selected {
    let axis = super::axis(op.axis)?;
    let operands = [Elements::Real, Elements::Real, Elements::Int];
    request.expect(&operands, &[Elements::Real])?;
    updates(axis, request)?;
    Ok(match axis {
        0 => Box::new(ScatterElements { cells: op.cells }),
        _ => Box::new(Scatter {
            axis,
            cells: op.cells,
        }),
    })
}

fn check_rows(axis: usize, [dst, rows, indices]: [&View; 3]) -> Result<(), KernelError> {
    let others = (0..4).filter(|&i| i != axis);
    let mut others = others.map(|i| dst.ne[i] == rows.ne[i]);
    ensure(others.all(|same| same), "mismatched sizes of dst and rows")?;
    let [n, p, q, more] = indices.ne;
    let batch = |of: usize, n: usize| n == 1 || axis == 1 && n == dst.ne[of];
    let fits = n == rows.ne[axis] && batch(2, p) && batch(3, q) && more == 1;
    ensure(fits, "wrong number of index entries")
}

impl Launch for Scatter {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([dst, rows, indices], [y]) = call.views()?;
        check_rows(self.axis, [&dst, &rows, &indices])?;
        let whole = y.ne[0].is_multiple_of(y.dtype.block_len() as usize);
        ensure(whole, "rows of the destination are not whole blocks")?;
        let worker = call.worker;
        // SAFETY: caller's contract.
        unsafe { copy_owned(worker, &dst, &y)? };
        let (p, q) = (indices.ne[1], indices.ne[2]);
        let mut buffer = [0.0; CHUNK];
        for i in 0..rows.rows() {
            let from = rows.indices(i);
            let entry = [from[self.axis - 1], from[1] % p, from[2] % q, 0];
            let entry = match self.axis {
                1 => entry,
                _ => [entry[0], 0, 0, 0],
            };
            // SAFETY: the index has this entry.
            let value = unsafe { int(&indices, entry) };
            let Some(place) = slot(value, self.cells, y.ne[self.axis])? else {
                continue;
            };
            let mut to = from;
            to[self.axis - 1] = place;
            each_owned(worker, to, y.ne[0], |at, len| {
                let buffer = &mut buffer[..len];
                // SAFETY: the rows exist, and the piece is this worker's.
                unsafe {
                    read_row(&rows, rows.row(from), at, buffer);
                    write_row(&y, y.row(to), at, buffer);
                }
            });
        }
        Ok(())
    }
}

impl Launch for ScatterElements {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([dst, rows, indices], [y]) = call.views()?;
        check_rows(0, [&dst, &rows, &indices])?;
        same_sizes(&dst, &y)?;
        let n = rows.ne[0];
        let same = dst.ptr == y.ptr && dst.nb == y.nb;
        for i in call.worker.items(y.rows()) {
            let row = y.indices(i);
            let line = |v: &View| View::new(v.row(row), v.dtype, [v.ne[0], 1, 1, 1], v.nb);
            let (to, from) = (line(&y), line(&rows));
            if !same {
                // SAFETY: the rows exist; the result row is this worker's.
                unsafe { copy(&Worker::alone(), &line(&dst), &to)? };
            }
            let mut buffer = [0.0; CHUNK];
            for at in (0..n).step_by(CHUNK) {
                let buffer = &mut buffer[..CHUNK.min(n - at)];
                // SAFETY: the elements exist; indices are checked.
                unsafe {
                    read_row(&from, from.ptr, at, buffer);
                    for (i, value) in buffer.iter().enumerate() {
                        let entry = int(&indices, [at + i, 0, 0, 0]);
                        if let Some(place) = slot(entry, self.cells, y.ne[0])? {
                            write_row(&to, to.ptr, place, &[*value]);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Replace {
    axis: usize,
    start: usize,
}

pub(super) fn set_slice(op: &SetSlice, request: &Request<'_>) -> Selected {
    let axis = super::axis(op.axis)?;
    request.expect(&[Elements::Real; 2], &[Elements::Real])?;
    updates(axis, request)?;
    let start = op.start.as_const().ok_or("the sizes are not bound")?;
    Ok(Box::new(Replace {
        axis,
        start: start as usize,
    }))
}

impl Launch for Replace {
    fn resize(&mut self, size: usize) -> Result<(), KernelError> {
        self.start = size;
        Ok(())
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([dst, src], [y]) = call.views()?;
        same_sizes(&dst, &y)?;
        let others = (0..4).filter(|&i| i != self.axis);
        let mut others = others.map(|i| dst.ne[i] == src.ne[i]);
        ensure(others.all(|same| same), "mismatched sizes of dst and src")?;
        let (n, len) = (y.ne[self.axis], src.ne[self.axis]);
        let end = self.start.saturating_add(len);
        ensure(end <= n, "the slice ends beyond the axis")?;
        let part = |v: &View, start: usize, end: usize| v.sliced(self.axis, start, end - start);
        // SAFETY: caller's contract; the parts do not overlap.
        unsafe {
            if dst.ptr != y.ptr || dst.nb != y.nb {
                for (from, to) in [(0, self.start), (end, n)] {
                    copy(call.worker, &part(&dst, from, to), &part(&y, from, to))?;
                }
            }
            convert(call.worker, &src, &part(&y, self.start, end))
        }
    }
}

/// Copies like [`copy`], for real numbers of any type.
///
/// # Safety
/// Same as [`copy`].
unsafe fn convert(worker: &Worker<'_>, x: &View, y: &View) -> Result<(), KernelError> {
    let plain = |t: DType| !t.is_quantised();
    let whole = plain(y.dtype) || y.ne[0].is_multiple_of(y.dtype.block_len() as usize);
    ensure(whole, "rows of the destination are not whole blocks")?;
    // SAFETY: caller's contract.
    unsafe { copy(worker, x, y) }
}
