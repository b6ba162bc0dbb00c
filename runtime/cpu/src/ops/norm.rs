//! Normalisation over axis 0.
#![allow(unsafe_code)]

use std::ops::Range;

use tpc_ir::op::{Norm, NormApply, NormKind, NormStats};

use crate::elements::{CHUNK, read_row, real, row, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::{sum, sum_of_squares, sum_of_squares_about};
use crate::simd::vectorised;
use crate::view::View;
use crate::worker::Worker;

/// The function `x ↦ (x − shift) · factor`.
#[derive(Clone, Copy, Debug)]
struct Affine {
    shift: f32,
    factor: f32,
}

/// Computes shift and factor from a row's mean, second central moment and, for L2, sum of squares.
fn affine(kind: NormKind, eps: f32, mean: f64, moment: f64, squares: f64) -> Affine {
    let eps = f64::from(eps);
    let (shift, factor) = match kind {
        NormKind::Rms => (0.0, 1.0 / (moment + eps).sqrt()),
        NormKind::Layer => (mean, 1.0 / (moment + eps).sqrt()),
        NormKind::L2 => (0.0, 1.0 / squares.sqrt().max(eps)),
    };
    Affine {
        shift: shift as f32,
        factor: factor as f32,
    }
}

vectorised! {
    fn shift_and_scale(x: &mut [f32], shift: f32, factor: f32) {
        for x in x {
            *x = (*x - shift) * factor;
        }
    }
}

/// Returns a worker's rows, and its part of each row.
///
/// If there are few rows, every worker computes the sums of all rows, and writes its part. Meanwhile, operands must
/// not be overwritten.
fn division<'a>(
    worker: &'a Worker<'_>,
    x: &View,
    y: &View,
) -> (impl Iterator<Item = usize> + use<'a>, Range<usize>) {
    let (n, rows) = (y.ne[0], y.rows());
    let units = n.div_ceil(CHUNK);
    let (mut whole, mut divided, mut part) = (0, rows, 0..n);
    if rows < worker.count() && x.ptr != y.ptr && units > 1 {
        (whole, divided) = (rows, 0);
        part = worker.share(units);
        part = part.start * CHUNK..(part.end * CHUNK).min(n);
    }
    ((0..whole).chain(worker.items(divided)), part)
}

/// Writes the worker's share of the normalised `x` to `y`. `of` returns a row's shift and factor.
///
/// # Safety
/// Same as [`crate::Kernel::run`].
unsafe fn per_row(
    worker: &Worker<'_>,
    x: &View,
    y: &View,
    scratch: &mut [u8],
    mut of: impl FnMut([usize; 3], &[f32]) -> Affine,
) -> Result<(), KernelError> {
    ensure(x.ne == y.ne, "mismatched sizes of x and the result")?;
    let n = x.ne[0];
    let whole = n.is_multiple_of(y.dtype.block_len() as usize);
    ensure(whole, "rows of the result are not whole blocks")?;
    let [buffer] = floats(scratch, [n])?;
    let mut chunk = [0.0; CHUNK];
    let (rows, part) = division(worker, x, y);
    for i in rows {
        let at = x.indices(i);
        // SAFETY: the row exists. If the result is the same memory, each row is read before it is written, and by one
        // worker only.
        let Affine { shift, factor } = of(at, unsafe { row(x, at, buffer) });
        for from in part.clone().step_by(CHUNK) {
            let to = (from + CHUNK).min(part.end);
            let chunk = &mut chunk[..to - from];
            // SAFETY: as above.
            unsafe {
                read_row(x, x.row(at), from, chunk);
                shift_and_scale(chunk, shift, factor);
                write_row(y, y.row(at), from, chunk);
            }
        }
    }
    Ok(())
}

#[derive(Debug)]
struct Whole {
    kind: NormKind,
    eps: f32,
}

pub(super) fn norm(op: &Norm, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    Ok(Box::new(Whole {
        kind: op.kind,
        eps: op.eps,
    }))
}

impl Launch for Whole {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&[operands.first().map_or(0, |s| s[0])])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let n = x.ne[0] as f64;
        let of = |_, row: &[f32]| match self.kind {
            NormKind::Layer => {
                let mean = sum(row) / n;
                let moment = sum_of_squares_about(row, mean as f32) / n;
                affine(self.kind, self.eps, mean, moment, 0.0)
            }
            NormKind::Rms | NormKind::L2 => {
                let squares = sum_of_squares(row);
                affine(self.kind, self.eps, 0.0, squares / n, squares)
            }
        };
        // SAFETY: caller's contract.
        unsafe { per_row(call.worker, &x, &y, call.scratch, of) }
    }
}

#[derive(Debug)]
struct Stats {
    kind: NormKind,
}

pub(super) fn norm_stats(op: &NormStats, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    Ok(Box::new(Stats { kind: op.kind }))
}

impl Launch for Stats {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&[operands.first().map_or(0, |s| s[0])])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let width = self.kind.stats() as usize;
        let fits = y.ne[0] == width && y.ne[1..] == x.ne[1..] && !y.dtype.is_quantised();
        ensure(fits, "mismatched sizes of x and the statistic")?;
        let [buffer] = floats(call.scratch, [x.ne[0]])?;
        for i in call.worker.items(x.rows()) {
            let at = x.indices(i);
            // SAFETY: the rows exist; the result row is this worker's.
            unsafe {
                let row = row(&x, at, buffer);
                let stat = [sum(row) as f32, sum_of_squares(row) as f32];
                write_row(&y, y.row(at), 0, &stat[2 - width..]);
            }
        }
        Ok(())
    }
}

/// Normalises rows by their summed statistics. The result may share the operand's memory.
#[derive(Debug)]
struct Applied {
    kind: NormKind,
    eps: f32,
    n: f64,
}

pub(super) fn norm_apply(op: &NormApply, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real; 2], &[Elements::Real])?;
    Ok(Box::new(Applied {
        kind: op.kind,
        eps: op.eps,
        n: op.n as f64,
    }))
}

impl Launch for Applied {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&[operands.first().map_or(0, |s| s[0])])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x, stats], [y]) = call.views()?;
        let width = self.kind.stats() as usize;
        let fits = stats.ne[0] == width && stats.ne[1..] == x.ne[1..];
        ensure(
            fits && !stats.dtype.is_quantised(),
            "mismatched sizes of x and the statistic",
        )?;
        let of = |[i1, i2, i3]: [usize; 3], _: &[f32]| {
            // SAFETY: the statistic has a row for every row of `x`.
            let stat = |i| f64::from(unsafe { real(&stats, [i, i1, i2, i3]) });
            let (squares, mean) = (stat(width - 1), stat(0) / self.n);
            let moment = match self.kind {
                NormKind::Layer => (squares / self.n - mean * mean).max(0.0),
                NormKind::Rms | NormKind::L2 => squares / self.n,
            };
            affine(self.kind, self.eps, mean, moment, squares)
        };
        // SAFETY: caller's contract.
        unsafe { per_row(call.worker, &x, &y, call.scratch, of) }
    }
}
