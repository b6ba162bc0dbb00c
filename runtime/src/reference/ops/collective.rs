use tpc_ir::op::{AllGather, AllToAll, ReduceScatter};

use super::axis;
use super::shape::concat;
use crate::error::ExecError;
use crate::tensor::Tensor;

fn total(operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let mut sum = operands[0].reals()?.into_owned();
    for t in &operands[1..] {
        let values = t.reals()?;
        sum.iter_mut().zip(values.iter()).for_each(|(a, b)| *a += b);
    }
    Tensor::reals_of(operands[0].dims(), sum)
}

/// Cuts `t` along `axis` into pieces of these lengths, whose sum inference has checked.
fn pieces(t: &Tensor, axis: usize, counts: &[u64]) -> Result<Vec<Tensor>, ExecError> {
    let mut start = 0;
    let mut out = Vec::with_capacity(counts.len());
    for &n in counts {
        out.push(t.slice(axis, start, n as usize)?);
        start += n as usize;
    }
    Ok(out)
}

pub(super) fn all_reduce(operands: &[&Tensor]) -> Result<Vec<Tensor>, ExecError> {
    Ok(vec![total(operands)?; operands.len()])
}

pub(super) fn all_gather(op: &AllGather, operands: &[&Tensor]) -> Result<Vec<Tensor>, ExecError> {
    Ok(vec![concat(op.axis, operands)?; operands.len()])
}

pub(super) fn reduce_scatter(
    op: &ReduceScatter,
    operands: &[&Tensor],
) -> Result<Vec<Tensor>, ExecError> {
    let sum = total(operands)?;
    if op.counts.is_empty() {
        return Ok(vec![sum]);
    }
    pieces(&sum, axis(op.axis)?, &op.counts)
}

pub(super) fn all_to_all(op: &AllToAll, operands: &[&Tensor]) -> Result<Vec<Tensor>, ExecError> {
    if op.counts.is_empty() {
        return Ok(vec![operands[0].clone()]);
    }
    let cut = axis(op.cut)?;
    let sent: Result<Vec<Vec<Tensor>>, _> = operands
        .iter()
        .map(|t| pieces(t, cut, &op.counts))
        .collect();
    let sent = sent?;
    (0..op.counts.len())
        .map(|to| {
            let received: Vec<&Tensor> = sent.iter().map(|from| &from[to]).collect();
            concat(op.join, &received)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{noise, pad, real, results};
    use super::*;
    use crate::tensor::Shape;
    use tpc_ir::DType;
    use tpc_ir::op::{AllReduce, Op};

    fn together(op: impl Into<Op>, operands: &[&Tensor], dims: &[[usize; 2]]) -> Vec<Tensor> {
        let shapes: Vec<Shape> = dims
            .iter()
            .map(|d| Shape {
                dtype: DType::F32,
                dims: pad(d),
            })
            .collect();
        results(op, operands, &shapes).expect("the op fits")
    }

    #[test]
    fn all_reduce_sums_in_rank_order() {
        let parts = [[1e100, 1.0], [-1e100, 2.0], [1.0, 3.0]].map(|v| real(&[2, 1], &v));
        let parts: Vec<&Tensor> = parts.iter().collect();
        let out = together(AllReduce, &parts, &[[2, 1]; 3]);
        // Another order would lose the 1.
        assert_eq!(out, vec![real(&[2, 1], &[1.0, 6.0]); 3]);
    }

    #[test]
    fn all_gather_joins_uneven_parts() {
        let x = noise(&[5, 3], 1);
        for (along, cuts) in [(0, [2, 0, 3]), (1, [1, 2, 0])] {
            let parts = pieces(&x, along, &cuts).expect("ok");
            let parts: Vec<&Tensor> = parts.iter().collect();
            let op = AllGather { axis: along as u64 };
            assert_eq!(together(op, &parts, &[[5, 3]; 3]), vec![x.clone(); 3]);
        }
    }

    #[test]
    fn reduce_scatter_is_all_reduce_cut() {
        let (a, b) = (noise(&[5, 3], 1), noise(&[5, 3], 2));
        let whole = together(AllReduce, &[&a, &b], &[[5, 3]; 2]).remove(0);
        let op = ReduceScatter {
            axis: 0,
            counts: vec![5, 0],
        };
        let out = together(op, &[&a, &b], &[[5, 3], [0, 3]]);
        assert_eq!(out[0], whole);
        let op = ReduceScatter {
            axis: 1,
            counts: vec![1, 2],
        };
        let out = together(op, &[&a, &b], &[[5, 1], [5, 2]]);
        assert_eq!(out, pieces(&whole, 1, &[1, 2]).expect("ok"));
    }

    #[test]
    fn all_to_all_turns_one_split_into_another() {
        let x = noise(&[5, 3], 1);
        let by_column = pieces(&x, 1, &[1, 2]).expect("ok");
        let by_row = pieces(&x, 0, &[4, 1]).expect("ok");
        let op = AllToAll {
            cut: 0,
            join: 1,
            counts: vec![4, 1],
        };
        let out = together(op, &[&by_column[0], &by_column[1]], &[[4, 3], [1, 3]]);
        assert_eq!(out, by_row);
    }
}
