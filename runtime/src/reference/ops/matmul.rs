use std::borrow::Cow;

use crate::error::ExecError;
use crate::tensor::{Data, Tensor, buffer, count};

/// Real elements in the tensor's precision.
pub(super) enum Reals<'a> {
    F64(Cow<'a, [f64]>),
    F32(&'a [f32]),
}

impl<'a> Reals<'a> {
    pub(super) fn of(t: &'a Tensor) -> Result<Reals<'a>, ExecError> {
        Ok(match t.data() {
            Data::F32(v) => Reals::F32(v),
            Data::F64(_) | Data::Int(_) => Reals::F64(t.reals()?),
        })
    }

    pub(super) fn dot(&self, at: usize, b: &[f64]) -> f64 {
        match self {
            Reals::F64(a) => dot(&a[at..at + b.len()], b),
            Reals::F32(a) => dot(&a[at..at + b.len()], b),
        }
    }

    pub(super) fn append(&self, at: usize, n: usize, out: &mut Vec<f64>) {
        match self {
            Reals::F64(a) => out.extend_from_slice(&a[at..at + n]),
            Reals::F32(a) => out.extend(a[at..at + n].iter().map(|&x| f64::from(x))),
        }
    }
}

/// Computes a dot product in eight interleaved sums, in an order independent of the number of columns.
pub(super) fn dot<T: Copy + Into<f64>>(a: &[T], b: &[f64]) -> f64 {
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0_f64; 8];
    for (a, b) in a8.iter().zip(b8) {
        for i in 0..8 {
            sums[i] += a[i].into() * b[i];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(&a, b)| a.into() * b).sum();
    let [s0, s1, s2, s3, s4, s5, s6, s7] = sums;
    ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7)) + rest
}

pub(super) fn mul_mat(operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let (a, b) = (operands[0], operands[1]);
    let [k, m, p, q] = a.dims();
    let [_, n, p_b, q_b] = b.dims();
    let dims = [m, n, p_b, q_b];
    let mut out: Vec<f64> = buffer(dims)?;
    out.resize(count(dims)?, 0.0);
    if out.is_empty() || k == 0 {
        return Tensor::reals_of(dims, out);
    }
    let (a, b) = (Reals::of(a)?, b.reals()?);
    for i3 in 0..q_b {
        for i2 in 0..p_b {
            let batch_a = (i3 / (q_b / q)) * p + i2 / (p_b / p);
            let batch_b = i3 * p_b + i2;
            let b = &b[batch_b * k * n..][..k * n];
            let c = &mut out[batch_b * m * n..][..m * n];
            // Each row of `a` serves all columns while it is in the cache.
            for row in 0..m {
                let at = (batch_a * m + row) * k;
                for (col, b) in b.chunks_exact(k).enumerate() {
                    c[col * m + row] = a.dot(at, b);
                }
            }
        }
    }
    Tensor::reals_of(dims, out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, noise, pad, real, run};
    use super::*;
    use tpc_ir::op::MulMat;

    fn naive(a: &Tensor, b: &Tensor) -> Vec<f64> {
        let ([k, m, p, q], [_, n, pb, qb]) = (a.dims(), b.dims());
        let (a, b) = (a.reals().expect("real"), b.reals().expect("real"));
        let mut out = Vec::new();
        for i3 in 0..qb {
            for i2 in 0..pb {
                for j in 0..n {
                    for i in 0..m {
                        let ba = i3 * q / qb * p + i2 * p / pb;
                        let bb = i3 * pb + i2;
                        out.push(
                            (0..k)
                                .map(|l| a[(ba * m + i) * k + l] * b[(bb * n + j) * k + l])
                                .sum(),
                        );
                    }
                }
            }
        }
        out
    }

    #[test]
    fn batches_of_b_share_those_of_a() {
        for (a, b, out) in [
            ([19, 3, 1, 1], [19, 2, 1, 1], [3, 2, 1, 1]),
            ([8, 3, 2, 1], [8, 2, 6, 1], [3, 2, 6, 1]),
            ([5, 2, 2, 3], [5, 4, 4, 6], [2, 4, 4, 6]),
        ] {
            let (a, b) = (noise(&a, 1), noise(&b, 2));
            close(&run(MulMat, &[&a, &b], &out), &naive(&a, &b));
        }
    }

    #[test]
    fn a_product_by_hand() {
        let a = real(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = real(&[2, 1], &[10.0, 1.0]);
        close(&run(MulMat, &[&a, &b], &[2, 1]), &[12.0, 34.0]);
    }

    #[test]
    fn f32_weights_give_the_same_bits_as_widened_ones() {
        let values: Vec<f32> = (0..60).map(|i| (i as f32).sin()).collect();
        let wide: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        let narrow = Tensor::new(pad(&[20, 3]), Data::F32(values)).expect("ok");
        let b = noise(&[20, 2], 3);
        assert_eq!(
            run(MulMat, &[&narrow, &b], &[3, 2]),
            run(MulMat, &[&real(&[20, 3], &wide), &b], &[3, 2])
        );
    }

    #[test]
    fn nothing_contracted_is_zero() {
        let (a, b) = (real(&[0, 3], &[]), real(&[0, 2], &[]));
        close(&run(MulMat, &[&a, &b], &[3, 2]), &[0.0; 6]);
        let (a, b) = (real(&[4, 0], &[]), noise(&[4, 2], 1));
        assert!(run(MulMat, &[&a, &b], &[0, 2]).is_empty());
        let (a, b) = (real(&[4, 2, 0], &[]), real(&[4, 2, 0], &[]));
        assert!(run(MulMat, &[&a, &b], &[2, 2, 0]).is_empty());
    }

    #[test]
    fn rows_must_agree() {
        let (a, b) = (noise(&[4, 2], 1), noise(&[5, 2], 1));
        assert_eq!(code(MulMat, &[&a, &b], &[2, 2]), "TPC0502");
        assert_eq!(code(MulMat, &[&a], &[2, 2]), "TPC0502");
        assert_eq!(code(MulMat, &[&a, &a], &[2, 3]), "TPC0503");
    }
}
