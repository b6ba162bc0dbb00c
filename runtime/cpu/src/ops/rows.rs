//! Reads rows by index.
#![allow(unsafe_code)]

use tpc_ir::Interval;
use tpc_ir::op::GetRows;

use super::pointwise::{Piece, each_chunk, read_piece};
use crate::elements::{int, write_index};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};
use crate::view::View;

pub(super) fn index(what: &'static str, index: i64, bound: usize) -> Result<usize, KernelError> {
    usize::try_from(index)
        .ok()
        .filter(|&i| i < bound)
        .ok_or(KernelError::Index { what, index, bound })
}

/// Returns an index read from data, relative to `window`, or `None` if outside. The index must be below `bound`.
pub(crate) fn windowed(
    what: &'static str,
    value: i64,
    window: Option<Interval>,
    bound: usize,
) -> Result<Option<usize>, KernelError> {
    let Some(window) = window else {
        return index(what, value, bound).map(Some);
    };
    let global = index(what, value, usize::MAX)? as u64;
    let local = global.checked_sub(window.start).filter(|&i| i < window.len);
    local.map(|i| index(what, i as i64, bound)).transpose()
}

/// Computes `out[:, r, i, j] = data[:, index[r, i, j], i, j]`.
#[derive(Debug)]
struct Gather {
    window: Option<Interval>,
}

#[derive(Debug)]
struct GatherInts(Gather);

pub(super) fn get_rows(op: &GetRows, request: &Request<'_>) -> Selected {
    let gather = Gather { window: op.window };
    if request.operands.first().is_some_and(|t| t.is_integer()) {
        request.expect(&[Elements::Int; 2], &[Elements::Int])?;
        return Ok(Box::new(GatherInts(gather)));
    }
    request.expect(&[Elements::Real, Elements::Int], &[Elements::Real])?;
    Ok(Box::new(gather))
}

impl Gather {
    fn check(&self, [data, indices, y]: [&View; 3]) -> Result<(), KernelError> {
        let [r, p, q, more] = indices.ne;
        let fits = y.ne == [data.ne[0], r, p, q] && data.ne[2..] == [p, q] && more == 1;
        ensure(
            fits,
            "mismatched sizes of the table, the index and the result",
        )
    }

    /// Returns the table row of a result row.
    ///
    /// # Safety
    /// The views fit, and the result has the row.
    unsafe fn source(
        &self,
        data: &View,
        indices: &View,
        [i1, i2, i3]: [usize; 3],
    ) -> Result<Option<usize>, KernelError> {
        // SAFETY: the index has an entry for every row of the result.
        let value = unsafe { int(indices, [i1, i2, i3, 0]) };
        windowed("row", value, self.window, data.ne[1])
    }
}

impl Launch for Gather {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([data, indices], [y]) = call.views()?;
        self.check([&data, &indices, &y])?;
        // SAFETY: caller's contract; the views fit; rows are checked.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                let [_, i2, i3] = piece.row;
                match self.source(&data, &indices, piece.row)? {
                    Some(i1) => {
                        let row = [i1, i2, i3];
                        read_piece(&data, Piece { row, ..piece }, chunk);
                    }
                    None => chunk.fill(0.0),
                }
                Ok(())
            })
        }
    }
}

impl Launch for GatherInts {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([data, indices], [y]) = call.views()?;
        self.0.check([&data, &indices, &y])?;
        for i in call.worker.items(y.rows()) {
            let [i1, i2, i3] = y.indices(i);
            // SAFETY: caller's contract; the views fit; rows are checked.
            unsafe {
                let source = self.0.source(&data, &indices, [i1, i2, i3])?;
                for i0 in 0..y.ne[0] {
                    let value = source.map_or(0, |row| int(&data, [i0, row, i2, i3]));
                    // Two's complement preserves the bits of negative numbers.
                    write_index(&y, [i0, i1, i2, i3], value as usize);
                }
            }
        }
        Ok(())
    }
}
