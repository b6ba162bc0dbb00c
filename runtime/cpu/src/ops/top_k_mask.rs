//! Masks of sparse attention with picked cells.
#![allow(unsafe_code)]

use tpc_ir::op::{TopKMask, TopKMaskOperands};

use crate::elements::{int, row, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::view::View;

#[derive(Debug)]
struct Masked(TopKMask);

pub(super) fn top_k_mask(op: TopKMask, request: &Request<'_>) -> Selected {
    let mut expected = vec![Elements::Real, Elements::Int];
    if op.has_scores {
        expected.push(Elements::Real);
    }
    let more = usize::from(op.has_members) + usize::from(op.has_extra);
    expected.extend([Elements::Int; 2].iter().take(more));
    request.expect(&expected, &[Elements::Real])?;
    Ok(Box::new(Masked(op)))
}

const fn wrong() -> KernelError {
    KernelError::Shape {
        what: "wrong number of operands or results",
    }
}

/// The sizes that rows share.
struct Bounds {
    cells: usize,
    picks: usize,
}

fn bounds(of: &TopKMaskOperands<View>, y: &View) -> Result<Bounds, KernelError> {
    let rows = y.ne[1..].iter();
    let fits = |t: &View| t.ne[1..] == y.ne[1..];
    let broadcast = of.mask.ne[1..]
        .iter()
        .zip(rows)
        .all(|(m, n)| *m == 1 || m == n);
    let members = of.members.is_none_or(|t| t.ne[2..] == [1, 1]);
    let scored = of
        .scores
        .zip(of.members)
        .is_none_or(|(s, m)| s.ne[0] == m.ne[1]);
    let all =
        fits(&of.picks) && of.scores.is_none_or(|t| fits(&t)) && of.extra.is_none_or(|t| fits(&t));
    ensure(
        of.mask.ne[0] == y.ne[0] && broadcast && members && scored && all,
        "mismatched sizes of the mask, the picks and the result",
    )?;
    let cells = y.ne[0];
    let picks = match (of.members, of.scores) {
        (Some(t), _) => t.ne[1],
        (None, Some(t)) => t.ne[0],
        (None, None) => cells,
    };
    Ok(Bounds { cells, picks })
}

fn position(index: i64, bound: usize) -> Option<usize> {
    usize::try_from(index).ok().filter(|&i| i < bound)
}

/// Calls `keep` with the cells of a row.
///
/// # Safety
/// The views have the sizes that [`bounds`] has checked, and the row exists.
unsafe fn each_cell(
    of: &TopKMaskOperands<View>,
    bounds: &Bounds,
    ([i1, i2, i3], scores): ([usize; 3], Option<&[f32]>),
    mut keep: impl FnMut(usize),
) {
    // SAFETY: caller's contract; every index is below its axis.
    unsafe {
        for j in 0..of.picks.ne[0] {
            let Some(pick) = position(int(&of.picks, [j, i1, i2, i3]), bounds.picks) else {
                continue;
            };
            if scores.is_some_and(|s| s[pick].is_nan() || s[pick] == f32::NEG_INFINITY) {
                continue;
            }
            let Some(members) = &of.members else {
                position(pick as i64, bounds.cells).map(&mut keep);
                continue;
            };
            for k in 0..members.ne[0] {
                position(int(members, [k, pick, 0, 0]), bounds.cells).map(&mut keep);
            }
        }
        if let Some(extra) = &of.extra {
            for j in 0..extra.ne[0] {
                position(int(extra, [j, i1, i2, i3]), bounds.cells).map(&mut keep);
            }
        }
    }
}

impl Launch for Masked {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        let n = |at: usize| operands.get(at).map_or(0, |s| s[0]);
        let scores = if self.0.has_scores { n(2) } else { 0 };
        bytes_for(&[n(0), n(0), scores])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let operands = call.operands;
        let [y] = call.results else {
            return Err(wrong());
        };
        let of = self.0.roles(operands).ok_or_else(wrong)?;
        let bounds = bounds(&of, y)?;
        let n_scores = of.scores.map_or(0, |t| t.ne[0]);
        let [buffer, out, score_buffer] =
            floats(call.scratch, [bounds.cells, bounds.cells, n_scores])?;
        for i in call.worker.items(y.rows()) {
            let at = y.indices(i);
            let [i1, i2, i3] = at;
            let of_mask = [i1 % of.mask.ne[1], i2 % of.mask.ne[2], i3 % of.mask.ne[3]];
            // SAFETY: caller's contract; the sizes are checked; the result row is this worker's.
            unsafe {
                let mask = row(&of.mask, of_mask, buffer);
                let scores = of.scores.map(|t| row(&t, at, score_buffer));
                out.fill(f32::NEG_INFINITY);
                each_cell(&of, &bounds, (at, scores), |c| out[c] = mask[c]);
                write_row(y, y.row(at), 0, out);
            }
        }
        Ok(())
    }
}
