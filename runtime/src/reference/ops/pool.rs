use tpc_ir::op::{Pool2d, PoolKind};

use crate::error::ExecError;
use crate::tensor::{Tensor, buffer};

/// Returns the indices of a window within an axis of `n`. The first window starts `pad` before index 0.
fn window(op: &Pool2d, axis: usize, at: usize, n: usize) -> std::ops::Range<usize> {
    let (pad, size) = (op.pad[axis] as usize, op.window[axis] as usize);
    let start = at * op.stride[axis] as usize;
    start.saturating_sub(pad)..(start + size).saturating_sub(pad).min(n)
}

pub(super) fn pool_2d(
    op: &Pool2d,
    operands: &[&Tensor],
    dims: [usize; 4],
) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let [w, h, channels, n] = x.dims();
    let values = x.reals()?;
    let area = op.window.map(|n| n as f64).iter().product::<f64>();
    let mut out = buffer(dims)?;
    for image in 0..channels * n {
        for row in 0..dims[1] {
            for column in 0..dims[0] {
                let columns = window(op, 0, column, w);
                let elements = window(op, 1, row, h)
                    .flat_map(|y| columns.clone().map(move |x| (image * h + y) * w + x))
                    .map(|at| values[at]);
                out.push(match op.kind {
                    PoolKind::Max => elements.fold(-f64::from(f32::MAX), f64::max),
                    PoolKind::Avg => elements.sum::<f64>() / area,
                });
            }
        }
    }
    Tensor::reals_of(dims, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, real, run};
    use super::*;

    #[test]
    fn windows_step_and_reach_beyond_the_ends() {
        let x = real(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let op = |kind, pad| Pool2d {
            kind,
            window: [2, 2],
            stride: [1, 2],
            pad,
        };
        close(&run(op(PoolKind::Max, [0, 0]), &[&x], &[2, 1]), &[5.0, 6.0]);
        close(&run(op(PoolKind::Avg, [0, 0]), &[&x], &[2, 1]), &[3.0, 4.0]);
        let padded = run(op(PoolKind::Avg, [1, 1]), &[&x], &[4, 2]);
        close(&padded, &[0.25, 0.75, 1.25, 0.75, 1.0, 2.25, 2.75, 1.5]);
        let wide = Pool2d {
            window: [4, 1],
            ..op(PoolKind::Max, [0, 0])
        };
        assert_eq!(code(wide, &[&x], &[1, 1]), "TPC0502");
    }
}
