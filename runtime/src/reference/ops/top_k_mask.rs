use tpc_ir::op::TopKMask;

use crate::error::ExecError;
use crate::tensor::{Tensor, buffer};

pub(super) fn top_k_mask(op: TopKMask, operands: &[&Tensor]) -> Result<Tensor, ExecError> {
    let wrong = || ExecError::Malformed {
        what: format!("top_k_mask with {} operands", operands.len()),
    };
    let of = op.roles(operands).ok_or_else(wrong)?;
    let [cells, m1, m2, m3] = of.mask.dims();
    let [top, d1, d2, d3] = of.picks.dims();
    let (mask, picks) = (of.mask.reals()?, of.picks.ints()?);
    let scores = of.scores.map(Tensor::reals).transpose()?;
    let members = of.members.map(Tensor::ints).transpose()?;
    let extra = of.extra.map(Tensor::ints).transpose()?;
    let each = of.members.map_or(1, |t| t.dims()[0]);
    let n_picks = match (of.members, of.scores) {
        (Some(t), _) => t.dims()[1],
        (None, Some(t)) => t.dims()[0],
        (None, None) => cells,
    };
    let n_extra = of.extra.map_or(0, |t| t.dims()[0]);
    let dims = [cells, d1, d2, d3];
    let mut out: Vec<f64> = buffer(dims)?;
    for row in 0..d1 * d2 * d3 {
        let [i1, i2, i3] = [row % d1, row / d1 % d2, row / (d1 * d2)];
        let from = ((i3 % m3 * m2 + i2 % m2) * m1 + i1 % m1) * cells;
        out.resize(out.len() + cells, f64::NEG_INFINITY);
        let start = out.len() - cells;
        let mut keep = |cell: i64| {
            if let Some(c) = position(cell, cells) {
                out[start + c] = mask[from + c];
            }
        };
        for &pick in &picks[row * top..][..top] {
            let Some(p) = position(pick, n_picks) else {
                continue;
            };
            let is_live = |s: f64| s > f64::NEG_INFINITY;
            if scores
                .as_ref()
                .is_some_and(|s| !is_live(s[row * n_picks + p]))
            {
                continue;
            }
            match members {
                Some(members) => members[p * each..][..each].iter().for_each(|&c| keep(c)),
                None => keep(pick),
            }
        }
        if let Some(extra) = extra {
            extra[row * n_extra..][..n_extra]
                .iter()
                .for_each(|&c| keep(c));
        }
    }
    Tensor::reals_of(dims, out)
}

fn position(index: i64, bound: usize) -> Option<usize> {
    usize::try_from(index).ok().filter(|&i| i < bound)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ints, real, run};
    use super::*;

    const HIDDEN: f64 = f64::NEG_INFINITY;

    fn mask(op: TopKMask, operands: &[&Tensor], dims: &[usize]) -> Vec<f64> {
        run(op, operands, dims).reals().expect("reals").to_vec()
    }

    #[test]
    fn picked_cells_keep_their_mask() {
        let op = TopKMask {
            has_scores: false,
            has_members: false,
            has_extra: false,
        };
        // The mask has one row for both rows of picks. The op skips picks that are out of range.
        let x = real(&[4], &[0.0, 1.0, HIDDEN, 3.0]);
        let picks = ints(&[2, 2], &[3, 1, -1, 4]);
        assert_eq!(
            mask(op, &[&x, &picks], &[4, 2]),
            [HIDDEN, 1.0, HIDDEN, 3.0, HIDDEN, HIDDEN, HIDDEN, HIDDEN]
        );
    }

    #[test]
    fn picks_are_blocks_with_scores_and_extra_cells() {
        let op = TopKMask {
            has_scores: true,
            has_members: true,
            has_extra: true,
        };
        let x = real(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let picks = ints(&[3], &[0, 1, 2]);
        let scores = real(&[3], &[0.5, HIDDEN, f64::NAN]);
        // Block 0 has cells 4 and none, block 1 has cell 0, block 2 has cell 1.
        let members = ints(&[2, 3], &[4, -1, 0, 0, 1, 1]);
        let extra = ints(&[2], &[2, 9]);
        assert_eq!(
            mask(op, &[&x, &picks, &scores, &members, &extra], &[5]),
            [HIDDEN, HIDDEN, 3.0, HIDDEN, 5.0]
        );
    }
}
