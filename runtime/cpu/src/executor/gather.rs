//! Row lookup in packed weights, used for tables that products also read.
#![allow(unsafe_code)]

use tpc_ir::{DType, Interval};

use super::product::Packed;
use crate::elements::int;
use crate::error::KernelError;
use crate::launch::ensure;
use crate::ops::{each_chunk, windowed};
use crate::product::Isa;
use crate::view::View;
use crate::worker::Worker;

/// Computes `out[:, r, i, j] = weight[:, indices[r, i, j], i, j]`; rows outside the window give zero.
///
/// # Safety
/// Same as [`crate::Kernel::run`].
pub(super) unsafe fn get_rows(
    worker: &Worker<'_>,
    isa: Isa,
    (weight, window): (&Packed, Option<Interval>),
    [indices, out]: [&View; 2],
) -> Result<(), KernelError> {
    let format = &weight.format;
    let [r, p, q, more] = indices.ne;
    let fits = out.ne == [format.part().k(), r, p, q] && weight.stack == [p, q] && more == 1;
    ensure(
        fits && matches!(indices.dtype, DType::I32 | DType::I64),
        "mismatched sizes of the table, the index and the result",
    )?;
    // SAFETY: caller's contract; the views fit: the index has an entry for every row of the result.
    unsafe {
        each_chunk(worker, out, |piece, chunk| {
            let [i1, i2, i3] = piece.row;
            let index = int(indices, [i1, i2, i3, 0]);
            let Some(row) = windowed("row", index, window, format.rows())? else {
                chunk.fill(0.0);
                return Ok(());
            };
            let matrix = weight.matrix(i3 * p + i2)?;
            let read = matrix.read_row(isa, row, piece.at, chunk);
            read.map_err(|_| KernelError::Shape {
                what: "a packed weight's row cannot be read",
            })
        })
    }
}
