use tpc_ir::op::{AddId, MulMatId};

use super::matmul::Reals;
use super::{rank_at_most, windowed};
use crate::error::ExecError;
use crate::tensor::{Tensor, buffer, count};

pub(super) fn mul_mat_id(op: &MulMatId, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let (w, x) = (operands[0], operands[1]);
    rank_at_most(3, "w", w)?;
    rank_at_most(3, "x", x)?;
    rank_at_most(2, "ids", operands[2])?;
    let ids = operands[2].ints()?;
    let [k, m, experts, _] = w.dims();
    let [_, x_rows, ..] = x.dims();
    let [used, tokens, ..] = operands[2].dims();
    let dims = [m, used, tokens, 1];
    let mut out: Vec<f64> = buffer(dims)?;
    out.resize(count(dims)?, 0.0);
    let (w, x) = (Reals::of(w)?, x.reals()?);
    for t in 0..tokens {
        for u in 0..used {
            let row = t * used + u;
            let Some(expert) = windowed("expert", ids[row], op.window, experts)? else {
                continue;
            };
            let x = &x[(t * x_rows + u % x_rows) * k..][..k];
            for (i, y) in out[row * m..][..m].iter_mut().enumerate() {
                *y = w.dot((expert * m + i) * k, x);
            }
        }
    }
    Tensor::reals_of(dims, out)
}

pub(super) fn add_id(op: &AddId, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let (x, bias) = (operands[0], operands[1]);
    rank_at_most(3, "x", x)?;
    rank_at_most(2, "bias", bias)?;
    rank_at_most(2, "ids", operands[2])?;
    let ids = operands[2].ints()?;
    let [m, used, tokens, _] = x.dims();
    let experts = bias.dims()[1];
    let bias = bias.reals()?;
    let mut out = x.reals()?.into_owned();
    for row in 0..used * tokens {
        if let Some(expert) = windowed("expert", ids[row], op.window, experts)? {
            let bias = &bias[expert * m..][..m];
            for (y, b) in out[row * m..][..m].iter_mut().zip(bias) {
                *y += b;
            }
        }
    }
    Tensor::reals_of(x.dims(), out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, ints, noise, real, run};
    use super::*;
    use tpc_ir::Interval;

    const ALL: MulMatId = MulMatId { window: None };

    #[test]
    fn each_row_meets_the_matrix_of_its_expert() {
        // Expert `e` is the 1 × 2 matrix (e + 1, 10·e).
        let w = real(&[2, 1, 3], &[1.0, 0.0, 2.0, 10.0, 3.0, 20.0]);
        let ids = ints(&[2, 2], &[2, 0, 1, 1]);
        let one = real(&[2, 1, 2], &[1.0, 1.0, 1.0, 2.0]);
        close(
            &run(ALL, &[&w, &one, &ids], &[1, 2, 2]),
            &[23.0, 1.0, 22.0, 22.0],
        );
        let each = real(&[2, 2, 2], &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
        close(
            &run(ALL, &[&w, &each, &ids], &[1, 2, 2]),
            &[3.0, 1.0, 10.0, 2.0],
        );
    }

    #[test]
    fn windows_of_experts_add_up_to_the_whole() {
        let w = noise(&[6, 4, 5], 1);
        let bias = noise(&[4, 5], 2);
        let x = noise(&[6, 1, 3], 3);
        let ids = ints(&[2, 3], &[0, 4, 1, 2, 3, 0]);
        let whole = run(ALL, &[&w, &x, &ids], &[4, 2, 3]);
        let whole = run(AddId { window: None }, &[&whole, &bias, &ids], &[4, 2, 3]);
        let mut sum = vec![0.0; 24];
        for (start, len) in [(0, 2), (2, 3), (5, 0)] {
            let window = Some(Interval { start, len });
            let (s, n) = (start as usize, len as usize);
            let w = w.slice(2, s, n).expect("ok");
            let bias = bias.slice(1, s, n).expect("ok");
            let part = run(MulMatId { window }, &[&w, &x, &ids], &[4, 2, 3]);
            let part = run(AddId { window }, &[&part, &bias, &ids], &[4, 2, 3]);
            for (a, b) in sum.iter_mut().zip(part.reals().expect("real").iter()) {
                *a += b;
            }
        }
        close(&whole, &sum);
    }

    #[test]
    fn an_expert_that_is_none_is_an_error() {
        let w = noise(&[2, 2, 3], 1);
        let x = noise(&[2, 1, 1], 1);
        let of = |id| code(ALL, &[&w, &x, &ints(&[1, 1], &[id])], &[2, 1, 1]);
        assert_eq!(of(3), "TPC0506");
        assert_eq!(of(-1), "TPC0506");
        let bias = noise(&[2, 3], 1);
        let op = AddId { window: None };
        let ids = ints(&[1, 1], &[7]);
        assert_eq!(code(op, &[&x, &bias, &ids], &[2, 1, 1]), "TPC0506");
    }

    #[test]
    fn axes_beyond_those_of_the_op_are_an_error() {
        let (w, x) = (real(&[2, 2, 3, 0], &[]), noise(&[2, 1, 1], 1));
        let ids = ints(&[1, 1], &[0]);
        assert_eq!(code(ALL, &[&w, &x, &ids], &[2, 1, 1]), "TPC0502");
        let bias = real(&[2, 3, 0], &[]);
        let op = AddId { window: None };
        assert_eq!(code(op, &[&x, &bias, &ids], &[2, 1, 1]), "TPC0502");
    }

    #[test]
    fn no_rows_and_no_width() {
        let ids = ints(&[2, 1], &[0, 1]);
        let (w, x) = (real(&[0, 3, 2], &[]), real(&[0, 1, 1], &[]));
        close(&run(ALL, &[&w, &x, &ids], &[3, 2, 1]), &[0.0; 6]);
        let (w, x) = (real(&[4, 0, 2], &[]), noise(&[4, 1, 1], 1));
        assert!(run(ALL, &[&w, &x, &ids], &[0, 2, 1]).is_empty());
    }
}
