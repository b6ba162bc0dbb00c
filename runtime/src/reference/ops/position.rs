use tpc_ir::op::{Side, Tri};

use crate::error::ExecError;
use crate::tensor::{Tensor, buffer};

pub(super) fn cumsum(operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let mut out = buffer(x.dims())?;
    if !x.is_empty() {
        for row in x.reals()?.chunks_exact(x.dims()[0]) {
            out.extend(row.iter().scan(0.0, |sum, v| {
                *sum += v;
                Some(*sum)
            }));
        }
    }
    Tensor::reals_of(x.dims(), out)
}

pub(super) fn tri(op: &Tri, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let [n, rows, ..] = x.dims();
    let kept = |i: usize, row: usize| {
        let diagonal = u128::from(op.offset) + row as u128;
        match op.keep {
            Side::Lower => (i as u128) < diagonal,
            Side::LowerDiag => i as u128 <= diagonal,
            Side::Upper => i as u128 > diagonal,
            Side::UpperDiag => i as u128 >= diagonal,
        }
    };
    let mut out = buffer(x.dims())?;
    for (at, &v) in x.reals()?.iter().enumerate() {
        let fill = f64::from(op.fill);
        out.push(if kept(at % n, at / n % rows) { v } else { fill });
    }
    Tensor::reals_of(x.dims(), out)
}

pub(super) fn diag(operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let [n, _, p, q] = x.dims();
    let dims = [n, n, p, q];
    let mut out = buffer(dims)?;
    if !x.is_empty() {
        for row in x.reals()?.chunks_exact(n) {
            for (j, &v) in row.iter().enumerate() {
                out.extend((0..n).map(|i| if i == j { v } else { 0.0 }));
            }
        }
    }
    Tensor::reals_of(dims, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, real, run};
    use super::*;
    use tpc_ir::op::{Cumsum, Diag};

    #[test]
    fn sums_and_diagonals_by_hand() {
        let x = real(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        close(
            &run(Cumsum, &[&x], &[3, 2]),
            &[1.0, 3.0, 6.0, 4.0, 9.0, 15.0],
        );
        let row = real(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
        let expected = [1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0];
        close(&run(Diag, &[&row], &[2, 2, 2]), &expected);
        assert_eq!(code(Diag, &[&x], &[3, 3]), "TPC0502");
    }

    #[test]
    fn triangles_by_hand() {
        let x = real(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for (keep, offset, expected) in [
            (Side::Lower, 0, [0.0, 0.0, 0.0, 4.0, 0.0, 0.0]),
            (Side::LowerDiag, 0, [1.0, 0.0, 0.0, 4.0, 5.0, 0.0]),
            (Side::LowerDiag, 1, [1.0, 2.0, 0.0, 4.0, 5.0, 6.0]),
            (Side::Upper, 0, [0.0, 2.0, 3.0, 0.0, 0.0, 6.0]),
            (Side::UpperDiag, 0, [1.0, 2.0, 3.0, 0.0, 5.0, 6.0]),
        ] {
            let fill = 0.0;
            close(&run(Tri { keep, offset, fill }, &[&x], &[3, 2]), &expected);
        }
        let op = Tri {
            keep: Side::LowerDiag,
            offset: 0,
            fill: f32::NEG_INFINITY,
        };
        let masked = run(op, &[&x], &[3, 2]);
        assert_eq!(masked.reals().expect("real")[1], f64::NEG_INFINITY);
    }
}
