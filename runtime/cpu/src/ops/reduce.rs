//! Sums along an axis.
#![allow(unsafe_code)]

use tpc_ir::op::{Mean, Sum};

use super::pointwise::{Piece, each_chunk, read_piece};
use crate::elements::{CHUNK, read_row, row, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::sum as sum_of;

#[derive(Debug)]
struct RowSums {
    divisor: f64,
}

#[derive(Debug)]
struct AxisSums {
    axis: usize,
}

#[derive(Debug)]
struct Cumulative;

pub(super) fn sum(op: &Sum, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    Ok(match super::axis(op.axis)? {
        0 => Box::new(RowSums { divisor: 1.0 }),
        axis => Box::new(AxisSums { axis }),
    })
}

pub(super) fn mean(op: &Mean, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    let n = op.n.as_const().ok_or("the sizes are not bound")?;
    Ok(Box::new(RowSums { divisor: n as f64 }))
}

pub(super) fn cumsum(request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    Ok(Box::new(Cumulative))
}

impl Launch for RowSums {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&[operands.first().map_or(0, |s| s[0])])
    }

    fn resize(&mut self, size: usize) -> Result<(), KernelError> {
        self.divisor = size as f64;
        Ok(())
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let fits = y.ne[0] == 1 && y.ne[1..] == x.ne[1..] && !y.dtype.is_quantised();
        ensure(fits, "mismatched sizes of x and the sums")?;
        let [buffer] = floats(call.scratch, [x.ne[0]])?;
        for i in call.worker.items(x.rows()) {
            let at = x.indices(i);
            // SAFETY: the rows exist; the result row is this worker's.
            unsafe {
                let total = sum_of(row(&x, at, buffer)) / self.divisor;
                write_row(&y, y.row(at), 0, &[total as f32]);
            }
        }
        Ok(())
    }
}

impl Launch for AxisSums {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let mut expected = x.ne;
        expected[self.axis] = 1;
        ensure(y.ne == expected, "mismatched sizes of x and the sums")?;
        let (mut other, mut totals) = ([0.0; CHUNK], [0.0_f64; CHUNK]);
        // SAFETY: caller's contract; the summed rows exist.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                let (other, totals) = (&mut other[..chunk.len()], &mut totals[..chunk.len()]);
                totals.fill(0.0);
                for i in 0..x.ne[self.axis] {
                    let mut row = piece.row;
                    row[self.axis - 1] = i;
                    read_piece(&x, Piece { row, ..piece }, other);
                    for (total, v) in totals.iter_mut().zip(&*other) {
                        *total += f64::from(*v);
                    }
                }
                for (y, total) in chunk.iter_mut().zip(totals) {
                    *y = *total as f32;
                }
                Ok(())
            })
        }
    }
}

impl Launch for Cumulative {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        ensure(x.ne == y.ne, "mismatched sizes of x and the result")?;
        let whole = y.ne[0].is_multiple_of(y.dtype.block_len() as usize);
        ensure(whole, "rows of the result are not whole blocks")?;
        let mut buffer = [0.0; CHUNK];
        for i in call.worker.items(x.rows()) {
            let at = x.indices(i);
            let mut total = 0.0_f64;
            for from in (0..x.ne[0]).step_by(CHUNK) {
                let chunk = &mut buffer[..CHUNK.min(x.ne[0] - from)];
                // SAFETY: the rows exist; the result row is this worker's; a chunk is read before it is written.
                unsafe {
                    read_row(&x, x.row(at), from, chunk);
                    for v in &mut *chunk {
                        total += f64::from(*v);
                        *v = total as f32;
                    }
                    write_row(&y, y.row(at), from, chunk);
                }
            }
        }
        Ok(())
    }
}
