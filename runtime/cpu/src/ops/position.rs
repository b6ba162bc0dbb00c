//! Constants, and ops that depend on element positions.
#![allow(unsafe_code)]

use tpc_ir::Interval;
use tpc_ir::op::{Arange, Hadamard, Side, Tri};

use super::pointwise::{each_chunk, read_piece};
use crate::elements::real;
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};

/// The upper or lower triangle of a matrix. The result may share the operand's memory.
#[derive(Debug)]
struct Triangle {
    keep: Side,
    offset: u64,
    fill: f32,
}

#[derive(Debug)]
struct Diagonal;

#[derive(Debug)]
struct Walsh {
    n: usize,
}

#[derive(Debug)]
struct Range {
    start: f64,
    step: f64,
    /// Per run of the device's part: its first element on the device, and over all devices.
    runs: Vec<(usize, usize)>,
}

pub(super) fn tri(op: &Tri, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    Ok(Box::new(Triangle {
        keep: op.keep,
        offset: op.offset,
        fill: op.fill,
    }))
}

pub(super) fn diag(request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    if request.operands[0].is_quantised() {
        return Err("the operand is quantised");
    }
    Ok(Box::new(Diagonal))
}

pub(super) fn hadamard(op: &Hadamard, request: &Request<'_>) -> Selected {
    request.expect(&[], &[Elements::Real])?;
    Ok(Box::new(Walsh { n: op.n as usize }))
}

pub(super) fn arange(op: &Arange, request: &Request<'_>) -> Selected {
    request.expect(&[], &[Elements::Real])?;
    let mut first = 0;
    let mut run = |held: &Interval| {
        let before = first;
        first += held.len as usize;
        (before, held.start as usize)
    };
    Ok(Box::new(Range {
        start: f64::from(op.start),
        step: f64::from(op.step),
        runs: op.held.iter().flatten().map(&mut run).collect(),
    }))
}

impl Range {
    /// Returns the number, over all devices, of an element of the device's part.
    fn number(&self, at: usize) -> usize {
        let begun = self.runs.iter().rfind(|(first, _)| *first <= at);
        begun.map_or(at, |(first, number)| number + (at - first))
    }
}

impl Launch for Triangle {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        ensure(x.ne == y.ne, "mismatched sizes of x and the result")?;
        let kept = |i: usize, row: usize| {
            let (i, diagonal) = (i as u128, u128::from(self.offset) + row as u128);
            match self.keep {
                Side::Lower => i < diagonal,
                Side::LowerDiag => i <= diagonal,
                Side::Upper => i > diagonal,
                Side::UpperDiag => i >= diagonal,
            }
        };
        // SAFETY: caller's contract; the views have equal sizes.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                read_piece(&x, piece, chunk);
                for (i, v) in chunk.iter_mut().enumerate() {
                    if !kept(piece.at + i, piece.row[0]) {
                        *v = self.fill;
                    }
                }
                Ok(())
            })
        }
    }
}

impl Launch for Diagonal {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let [n, one, p, q] = x.ne;
        ensure(
            one == 1 && y.ne == [n, n, p, q],
            "wrong sizes of the diagonals",
        )?;
        // SAFETY: caller's contract; the views fit.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                chunk.fill(0.0);
                let [i1, i2, i3] = piece.row;
                if let Some(v) = i1.checked_sub(piece.at).and_then(|i| chunk.get_mut(i)) {
                    *v = real(&x, [i1, 0, i2, i3]);
                }
                Ok(())
            })
        }
    }
}

impl Launch for Walsh {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([], [y]) = call.views()?;
        ensure(y.ne == [self.n, self.n, 1, 1], "wrong sizes of the matrix")?;
        let unit = (1.0 / (self.n as f64).sqrt()) as f32;
        // SAFETY: caller's contract.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                for (i, v) in chunk.iter_mut().enumerate() {
                    let odd = ((piece.at + i) & piece.row[0]).count_ones() % 2 == 1;
                    *v = if odd { -unit } else { unit };
                }
                Ok(())
            })
        }
    }
}

impl Launch for Range {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([], [y]) = call.views()?;
        // SAFETY: caller's contract.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                for (i, v) in chunk.iter_mut().enumerate() {
                    *v = (self.start + self.number(piece.at + i) as f64 * self.step) as f32;
                }
                Ok(())
            })
        }
    }
}
