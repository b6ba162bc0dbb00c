//! Hyper-connections.
#![allow(unsafe_code)]

use tpc_ir::op::HcComb;

use crate::elements::{read_row, real, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};

#[derive(Debug)]
struct Mixing {
    eps: f64,
    iterations: u64,
}

pub(super) fn hc_comb(op: &HcComb, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real; 3], &[Elements::Real])?;
    if request.operands.iter().any(|t| t.is_quantised()) {
        return Err("an operand is quantised");
    }
    Ok(Box::new(Mixing {
        eps: f64::from(op.eps),
        iterations: op.iterations,
    }))
}

fn normalise(matrix: &mut [f32], hc: usize, eps: f64, at: impl Fn(usize, usize) -> usize) {
    for group in 0..hc {
        let sum: f64 = (0..hc).map(|i| f64::from(matrix[at(group, i)])).sum();
        for i in 0..hc {
            let x = &mut matrix[at(group, i)];
            *x = (f64::from(*x) / (sum + eps)) as f32;
        }
    }
}

impl Mixing {
    /// Turns logits into the mixing matrix. Rows are the destinations.
    fn settle(&self, matrix: &mut [f32], hc: usize) {
        for row in matrix.chunks_exact_mut(hc) {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let power = |x: f32| libm::exp(f64::from(x) - f64::from(most));
            let sum: f64 = row.iter().map(|&x| power(x)).sum();
            for x in row {
                *x = (power(*x) / sum + self.eps) as f32;
            }
        }
        let columns = |destination: usize, source: usize| source * hc + destination;
        let rows = |source: usize, destination: usize| source * hc + destination;
        normalise(matrix, hc, self.eps, columns);
        for _ in 1..self.iterations {
            normalise(matrix, hc, self.eps, rows);
            normalise(matrix, hc, self.eps, columns);
        }
    }
}

impl Launch for Mixing {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        let n = operands.first().map_or(0, |s| s[0]);
        bytes_for(&[n, n])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([mixes, scale, base], [y]) = call.views()?;
        let [n, tokens, ..] = mixes.ne;
        let hc = (n + 1).isqrt() - 1;
        let square = hc > 0 && (2 + hc) * hc == n && y.ne == [hc, hc, tokens, 1];
        ensure(
            square && !y.dtype.is_quantised(),
            "wrong sizes of the mixes",
        )?;
        let lines = mixes.ne[2..] == [1, 1] && scale.ne[0] >= 3 && base.ne[0] == n;
        ensure(lines, "mismatched sizes of the scale and the base")?;
        let [matrix, bases] = floats(call.scratch, [n, n])?;
        // SAFETY: caller's contract; the views fit; the token's matrix is this worker's.
        unsafe {
            let scale = real(&scale, [2, 0, 0, 0]);
            read_row(&base, base.ptr, 0, bases);
            for token in call.worker.items(tokens) {
                read_row(&mixes, mixes.row([token, 0, 0]), 0, matrix);
                for (x, b) in matrix.iter_mut().zip(&*bases) {
                    *x = x.mul_add(scale, *b);
                }
                let matrix = &mut matrix[2 * hc..];
                self.settle(matrix, hc);
                for (source, row) in matrix.chunks_exact(hc).enumerate() {
                    write_row(&y, y.row([source, token, 0]), 0, row);
                }
            }
        }
        Ok(())
    }
}
