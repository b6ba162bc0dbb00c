use tpc_ir::op::HcComb;

use crate::error::ExecError;
use crate::tensor::{Tensor, buffer};

fn normalise(matrix: &mut [f64], hc: usize, eps: f64, at: impl Fn(usize, usize) -> usize) {
    for group in 0..hc {
        let sum: f64 = (0..hc).map(|i| matrix[at(group, i)]).sum();
        (0..hc).for_each(|i| matrix[at(group, i)] /= sum + eps);
    }
}

pub(super) fn hc_comb(op: &HcComb, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let (mixes, scale, base) = (
        operands[0].reals()?,
        operands[1].reals()?,
        operands[2].reals()?,
    );
    let [n, tokens, ..] = operands[0].dims();
    let hc = (n + 1).isqrt() - 1;
    let eps = f64::from(op.eps);
    let dims = [hc, hc, tokens, 1];
    let mut out = buffer(dims)?;
    for token in 0..tokens {
        let row = &mixes[token * n..][2 * hc..n];
        let mut matrix: Vec<f64> = Vec::with_capacity(hc * hc);
        for source in 0..hc {
            let at = source * hc;
            let logit = |i: usize| row[at + i] * scale[2] + base[2 * hc + at + i];
            let most = (0..hc).map(logit).fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = (0..hc).map(|i| (logit(i) - most).exp()).collect();
            let sum: f64 = powers.iter().sum();
            matrix.extend(powers.iter().map(|p| p / sum + eps));
        }
        let columns = |destination: usize, source: usize| source * hc + destination;
        let rows = |source: usize, destination: usize| source * hc + destination;
        normalise(&mut matrix, hc, eps, columns);
        for _ in 1..op.iterations {
            normalise(&mut matrix, hc, eps, rows);
            normalise(&mut matrix, hc, eps, columns);
        }
        out.extend(matrix);
    }
    Tensor::reals_of(dims, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, noise, real, run};
    use super::*;

    #[test]
    fn two_streams_by_hand() {
        // Only the last four entries count; equal logits give a matrix of halves.
        let mixes = real(&[8], &[9.0, 9.0, 9.0, 9.0, 1.0, 1.0, 2.0, 2.0]);
        let (scale, base) = (real(&[3], &[9.0, 9.0, 0.5]), real(&[8], &[0.0; 8]));
        let op = HcComb {
            eps: 0.0,
            iterations: 1,
        };
        close(&run(op, &[&mixes, &scale, &base], &[2, 2]), &[0.5; 4]);
        // softmax(ln 3, 0) = (3/4, 1/4) in both rows; columns then sum to 3/2 and 1/2.
        let ln3 = 3.0_f64.ln();
        let mixes = real(&[8], &[0.0, 0.0, 0.0, 0.0, ln3, 0.0, ln3, 0.0]);
        let scale = real(&[3], &[0.0, 0.0, 1.0]);
        let op = HcComb {
            eps: 0.5,
            iterations: 1,
        };
        let (a, b) = (1.25 / 3.0, 0.75 / 2.0);
        close(&run(op, &[&mixes, &scale, &base], &[2, 2]), &[a, b, a, b]);
    }

    #[test]
    fn many_iterations_make_rows_and_columns_sum_to_one() {
        let (mixes, scale, base) = (noise(&[24, 2], 1), noise(&[3], 2), noise(&[24], 3));
        let op = HcComb {
            eps: 1e-6,
            iterations: 20,
        };
        let out = run(op.clone(), &[&mixes, &scale, &base], &[4, 4, 2]);
        for row in out.reals().expect("real").chunks_exact(4) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-4);
        }
        let odd = noise(&[23, 2], 1);
        assert_eq!(
            code(op, &[&odd, &scale, &noise(&[23], 3)], &[4, 4, 2]),
            "TPC0502"
        );
    }
}
