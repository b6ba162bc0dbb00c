//! Iterates over a result in chunks, divided among the workers.
#![allow(unsafe_code)]

use crate::elements::{CHUNK, read_row, write_row};
use crate::error::KernelError;
use crate::launch::ensure;
use crate::view::View;
use crate::worker::Worker;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) row: [usize; 3],
    /// The first element, a multiple of [`CHUNK`].
    pub(crate) at: usize,
}

/// Calls `fill` for every chunk of the worker's share of `y`, and writes the chunk. Operands may share the memory of
/// `y`, element by element, because a chunk is read before it is written.
///
/// # Safety
/// The elements of `y` exist, and no other thread writes them; the type is writable.
pub(crate) unsafe fn each_chunk(
    worker: &Worker<'_>,
    y: &View,
    mut fill: impl FnMut(Piece, &mut [f32]) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let n = y.ne[0];
    let whole = n.is_multiple_of(y.dtype.block_len() as usize);
    ensure(whole, "rows of the result are not whole blocks")?;
    let per_row = n.div_ceil(CHUNK);
    let mut buffer = [0.0; CHUNK];
    for unit in worker.items(per_row * y.rows()) {
        let (row, at) = (y.indices(unit / per_row), unit % per_row * CHUNK);
        let chunk = &mut buffer[..CHUNK.min(n - at)];
        fill(Piece { row, at }, chunk)?;
        // SAFETY: the chunk is within the row, and belongs to this worker.
        unsafe { write_row(y, y.row(row), at, chunk) };
    }
    Ok(())
}

/// Reads the elements of `x` at a chunk of a result of the same sizes.
///
/// # Safety
/// The elements exist and are readable.
pub(super) unsafe fn read_piece(x: &View, piece: Piece, out: &mut [f32]) {
    // SAFETY: caller's contract.
    unsafe { read_row(x, x.row(piece.row), piece.at, out) };
}

/// Reads the elements of `x` at a chunk of a larger result; `x` repeats along every axis.
///
/// # Safety
/// The elements of `x` exist and are readable, and `x` is not empty.
pub(super) unsafe fn read_repeated(x: &View, piece: Piece, out: &mut [f32]) {
    let [n, n1, n2, n3] = x.ne;
    let [i1, i2, i3] = piece.row;
    let row = x.row([i1 % n1, i2 % n2, i3 % n3]);
    if n == 1 {
        let mut one = [0.0];
        // SAFETY: the row has one element.
        unsafe { read_row(x, row, 0, &mut one) };
        return out.fill(one[0]);
    }
    let (mut done, mut at) = (0, piece.at % n);
    while done < out.len() {
        let len = (n - at).min(out.len() - done);
        // SAFETY: the elements are within the row, and both ends are whole blocks, as the row is.
        unsafe { read_row(x, row, at, &mut out[done..done + len]) };
        (done, at) = (done + len, 0);
    }
}
