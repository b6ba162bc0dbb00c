use tpc_ir::op::{ArgSort, Mean, SortOrder, Sum, TopK, TopMask};

use super::elementwise::map;
use super::{around, axis};
use crate::error::ExecError;
use crate::tensor::{Tensor, buffer, count};

pub(super) fn sum(op: &Sum, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let axis = axis(op.axis)?;
    let (inner, n, outer) = around(x.dims(), axis);
    let mut dims = x.dims();
    dims[axis] = 1;
    let values = x.reals()?;
    let mut out: Vec<f64> = buffer(dims)?;
    out.resize(count(dims)?, 0.0);
    for o in 0..outer {
        for i in 0..n {
            let from = &values[(o * n + i) * inner..][..inner];
            let to = &mut out[o * inner..][..inner];
            to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        }
    }
    Tensor::reals_of(dims, out)
}

/// Computes means. The size of `op` must be a constant.
pub(super) fn mean(op: &Mean, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let n = op.n.as_const().unwrap_or(1) as f64;
    map(&sum(&Sum { axis: 0 }, operands)?, |x| x / n)
}

pub(super) fn top_k(op: &TopK, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let [n, d1, d2, d3] = x.dims();
    // Inference ensures that k is within a row.
    let k = op.k as usize;
    let dims = [k, d1, d2, d3];
    let values = x.reals()?;
    let mut out: Vec<i64> = buffer(dims)?;
    for row in 0..d1 * d2 * d3 {
        let order = sorted(&values[row * n..][..n], SortOrder::Descending);
        out.extend(order[..k].iter().map(|&i| i as i64));
    }
    Tensor::ints_of(dims, out)
}

pub(super) fn top_mask(op: &TopMask, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let dims = operands[0].dims();
    let values = operands[0].reals()?;
    let mut out: Vec<f64> = buffer(dims)?;
    out.resize(values.len(), f64::NEG_INFINITY);
    let n = dims[0];
    let k = usize::try_from(op.k).unwrap_or(n).min(n);
    for start in (0..values.len()).step_by(n.max(1)) {
        let order = sorted(&values[start..][..n], SortOrder::Descending);
        for &i in &order[..k] {
            out[start + i] = 0.0;
        }
    }
    Tensor::reals_of(dims, out)
}

/// Returns the indices that sort a row stably, NaN last.
fn sorted(row: &[f64], order: SortOrder) -> Vec<usize> {
    let key = |i: usize| match order {
        _ if row[i].is_nan() => f64::INFINITY,
        SortOrder::Ascending => row[i],
        SortOrder::Descending => -row[i],
    };
    let mut out: Vec<usize> = (0..row.len()).collect();
    out.sort_by(|&a, &b| {
        let by_value = key(a).partial_cmp(&key(b));
        by_value.unwrap_or(std::cmp::Ordering::Equal)
    });
    out
}

pub(super) fn arg_sort(op: &ArgSort, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let x = operands[0];
    let values = x.reals()?;
    let mut out: Vec<i64> = buffer(x.dims())?;
    let n = x.dims()[0];
    if n > 0 {
        for row in values.chunks_exact(n) {
            out.extend(sorted(row, op.order).into_iter().map(|i| i as i64));
        }
    }
    Tensor::ints_of(x.dims(), out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, code, ints, pad, real, results, run};
    use super::*;
    use crate::tensor::Shape;
    use tpc_ir::DType;

    fn top(k: u64, x: &Tensor, dims: &[usize]) -> Tensor {
        let shape = Shape {
            dtype: DType::I32,
            dims: pad(dims),
        };
        let mut out = results(TopK { k }, &[x], &[shape]).expect("ok");
        out.pop().expect("one result")
    }

    #[test]
    fn a_mask_shows_the_largest_and_the_first_of_equals() {
        let hidden = f64::NEG_INFINITY;
        let x = real(&[3, 2], &[1.0, 3.0, 1.0, hidden, 2.0, f64::NAN]);
        let of = |k: u64| {
            run(TopMask { k }, &[&x], &[3, 2])
                .reals()
                .expect("reals")
                .to_vec()
        };
        assert_eq!(of(0), [hidden; 6]);
        assert_eq!(of(1), [hidden, 0.0, hidden, hidden, 0.0, hidden]);
        assert_eq!(of(2), [0.0, 0.0, hidden, 0.0, 0.0, hidden]);
        assert_eq!(of(9), [0.0; 6]);
    }

    #[test]
    fn sums_along_each_axis() {
        let x = real(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        close(&run(Sum { axis: 0 }, &[&x], &[1, 3]), &[3.0, 7.0, 11.0]);
        close(&run(Sum { axis: 1 }, &[&x], &[2, 1]), &[9.0, 12.0]);
        close(
            &run(Sum { axis: 0 }, &[&real(&[0, 2], &[])], &[1, 2]),
            &[0.0; 2],
        );
        assert_eq!(code(Sum { axis: 4 }, &[&x], &[2, 3]), "TPC0502");
    }

    #[test]
    fn a_mean_counts_the_whole_row() {
        let x = real(&[2, 2], &[1.0, 2.0, 3.0, 6.0]);
        let of = |n: u64| Mean { n: n.into() };
        close(&run(of(2), &[&x], &[1, 2]), &[1.5, 4.5]);
        close(&run(of(4), &[&x], &[1, 2]), &[0.75, 2.25]);
    }

    #[test]
    fn the_largest_first_and_ties_by_index() {
        let x = real(&[4, 2], &[1.0, 3.0, 3.0, 2.0, -1.0, -1.0, -2.0, -1.0]);
        assert_eq!(top(3, &x, &[3, 2]), ints(&[3, 2], &[1, 2, 3, 0, 1, 3]));
        let nan = real(&[3], &[f64::NAN, 1.0, f64::INFINITY]);
        assert_eq!(top(2, &nan, &[2]), ints(&[2], &[2, 1]));
        assert!(top(0, &x, &[0, 2]).is_empty());
        assert_eq!(code(TopK { k: 5 }, &[&x], &[5, 2]), "TPC0502");
    }

    #[test]
    fn whole_rows_sort_both_ways() {
        let x = real(
            &[4, 2],
            &[1.0, 3.0, 3.0, 2.0, f64::NAN, -1.0, f64::INFINITY, -1.0],
        );
        let sort = |order| {
            let shape = Shape {
                dtype: DType::I32,
                dims: pad(&[4, 2]),
            };
            let mut out = results(ArgSort { order }, &[&x], &[shape]).expect("ok");
            out.pop().expect("one result")
        };
        assert_eq!(
            sort(SortOrder::Descending),
            ints(&[4, 2], &[1, 2, 3, 0, 2, 1, 3, 0])
        );
        assert_eq!(
            sort(SortOrder::Ascending),
            ints(&[4, 2], &[0, 3, 1, 2, 1, 3, 0, 2])
        );
        assert_eq!(sort(SortOrder::Descending), top(4, &x, &[4, 2]));
    }
}
