use tpc_ir::op::{Norm, NormApply, NormKind, NormStats};

use crate::error::ExecError;
use crate::tensor::{Tensor, buffer};

struct Affine {
    shift: f64,
    factor: f64,
}

/// Computes shift and factor from the mean, the mean square deviation and, for L2, the sum of squares.
fn affine(kind: NormKind, eps: f32, mean: f64, moment: f64, squares: f64) -> Affine {
    let eps = f64::from(eps);
    let (shift, factor) = match kind {
        NormKind::Rms => (0.0, 1.0 / (moment + eps).sqrt()),
        NormKind::Layer => (mean, 1.0 / (moment + eps).sqrt()),
        NormKind::L2 => (0.0, 1.0 / squares.sqrt().max(eps)),
    };
    Affine { shift, factor }
}

fn squares(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum()
}

/// Applies to every row the function that `of` returns for the row's index and elements.
fn per_row(x: &Tensor, of: impl Fn(usize, &[f64]) -> Affine) -> Result<Tensor, ExecError> {
    let mut out = buffer(x.dims())?;
    if !x.is_empty() {
        for (i, row) in x.reals()?.chunks_exact(x.dims()[0]).enumerate() {
            let a = of(i, row);
            out.extend(row.iter().map(|v| (v - a.shift) * a.factor));
        }
    }
    Tensor::reals_of(x.dims(), out)
}

pub(super) fn norm(op: &Norm, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    per_row(operands[0], |_, row| {
        let n = row.len() as f64;
        let squares = squares(row);
        let mean = row.iter().sum::<f64>() / n;
        let moment = match op.kind {
            NormKind::Layer => row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n,
            NormKind::Rms | NormKind::L2 => squares / n,
        };
        affine(op.kind, op.eps, mean, moment, squares)
    })
}

pub(super) fn norm_stats(op: &NormStats, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let values = x.reals()?;
    let [n, d1, d2, d3] = x.dims();
    let width = op.kind.stats() as usize;
    let dims = [width, d1, d2, d3];
    let mut out = buffer(dims)?;
    for row in 0..d1 * d2 * d3 {
        let row = &values[row * n..(row + 1) * n];
        if width == 2 {
            out.push(row.iter().sum());
        }
        out.push(squares(row));
    }
    Tensor::reals_of(dims, out)
}

pub(super) fn norm_apply(op: &NormApply, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let stats = operands[1].reals()?;
    let width = op.kind.stats() as usize;
    let n = op.n as f64;
    per_row(operands[0], |i, _| {
        let stat = &stats[i * width..(i + 1) * width];
        let squares = stat[width - 1];
        let mean = stat[0] / n;
        let moment = match op.kind {
            NormKind::Layer => (squares / n - mean * mean).max(0.0),
            NormKind::Rms | NormKind::L2 => squares / n,
        };
        affine(op.kind, op.eps, mean, moment, squares)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, noise, real, run};
    use super::*;

    #[test]
    fn rows_are_normalised_each_by_its_own_statistic() {
        let x = real(&[2, 2], &[3.0, 4.0, 0.0, 2.0]);
        let of = |kind, eps| run(Norm { kind, eps }, &[&x], &[2, 2]);
        let (a, b) = (12.5_f64.sqrt(), 2.0_f64.sqrt());
        let expected = [3.0 / a, 4.0 / a, 0.0, 2.0 / b];
        close(&of(NormKind::Rms, 0.0), &expected);
        close(&of(NormKind::Layer, 0.0), &[-1.0, 1.0, -1.0, 1.0]);
        close(&of(NormKind::L2, 0.0), &[0.6, 0.8, 0.0, 1.0]);
        // `eps` is added under the root. For the L2 norm, `eps` is a lower bound of the norm.
        let (c, d) = (0.5 / 1.25_f64.sqrt(), 0.5_f64.sqrt());
        close(&of(NormKind::Layer, 1.0), &[-c, c, -d, d]);
        close(&of(NormKind::L2, 4.0), &[0.6, 0.8, 0.0, 0.5]);
    }

    #[test]
    fn two_steps_over_a_split_axis_are_one_over_the_whole() {
        let x = noise(&[10, 3], 7);
        let (left, right) = (x.slice(0, 0, 4), x.slice(0, 4, 6));
        let (left, right) = (left.expect("ok"), right.expect("ok"));
        for kind in NormKind::ALL {
            let eps = 1e-5;
            let whole = run(Norm { kind, eps }, &[&x], &[10, 3]);
            let width = kind.stats() as usize;
            let stats = |t| run(NormStats { kind }, &[t], &[width, 3]);
            let (a, b) = (stats(&left), stats(&right));
            let sum: Vec<f64> = a
                .reals()
                .expect("real")
                .iter()
                .zip(b.reals().expect("real").iter())
                .map(|(a, b)| a + b)
                .collect();
            let sum = real(&[width, 3], &sum);
            let op = NormApply { kind, eps, n: 10 };
            let part = run(op.clone(), &[&left, &sum], &[4, 3]);
            close(
                &part,
                &whole.slice(0, 0, 4).expect("ok").reals().expect("real"),
            );
            let part = run(op, &[&right, &sum], &[6, 3]);
            close(
                &part,
                &whole.slice(0, 4, 6).expect("ok").reals().expect("real"),
            );
        }
    }

    #[test]
    fn an_empty_part_of_a_row_adds_nothing_to_the_statistic() {
        let none = real(&[0, 2], &[]);
        let kind = NormKind::Layer;
        close(&run(NormStats { kind }, &[&none], &[2, 2]), &[0.0; 4]);
        let op = Norm { kind, eps: 0.0 };
        assert!(run(op, &[&none], &[0, 2]).is_empty());
        let op = NormApply {
            kind,
            eps: 0.0,
            n: 8,
        };
        assert!(run(op, &[&none, &real(&[2, 2], &[1.0; 4])], &[0, 2]).is_empty());
    }
}
