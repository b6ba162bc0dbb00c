//! Restores parameters that lowering adapts to a device's part.

use std::rc::Rc;

use tpc_ir::op::{HeadWindow, Repeat, SetSlice};
use tpc_ir::{Dim, Interval, Op};

use super::{Axes, Part};
use crate::prove::index_set::{NotExpressible, clip};
use crate::prove::language::Mask;

/// Returns the op on whole operands, and the mask of the rows that the parts compute.
///
/// Every op whose parameters depend on the part must be listed here; otherwise its proof fails, because ops with
/// different parameters are different.
pub(super) fn lift_parameters(
    op: &Op,
    parts: &[Rc<Part>],
    axes: &[Axes],
    model: Option<&Op>,
) -> Result<(Op, Option<Mask>), NotExpressible> {
    let mut whole = op.clone();
    let mut found = None;
    match &mut whole {
        Op::GetRows(o) if parts.len() == 2 => found = mask(o.window.take(), parts, axes, (0, 1))?,
        Op::MulMatId(o) if parts.len() == 3 => found = mask(o.window.take(), parts, axes, (0, 2))?,
        Op::AddId(o) if parts.len() == 3 => found = mask(o.window.take(), parts, axes, (1, 1))?,
        Op::FlashAttn(o) if parts.len() >= 4 => {
            all_heads(&mut o.heads, o.max_bias, parts, axes)?;
        }
        Op::SoftMax(o) if !parts.is_empty() => {
            all_heads(&mut o.heads, o.max_bias, parts, axes)?;
        }
        Op::Repeat(Repeat { dims }) if parts.len() == 1 => {
            for ((d, pattern), size) in dims.iter_mut().zip(&axes[0]).zip(&parts[0].ty.dims) {
                if let Some(p) = pattern {
                    let times = d.checked_div(&p.count(size)?).ok_or(NotExpressible)?;
                    *d = times.checked_mul(size).ok_or(NotExpressible)?;
                }
            }
        }
        Op::Slice(o) => {
            let axis = usize::try_from(o.axis).map_err(|_| NotExpressible)?;
            if axes[0].get(axis).is_none_or(Option::is_some) {
                return Err(NotExpressible);
            }
        }
        Op::SetSlice(o) => start_on_whole(o, parts, axes, model)?,
        _ => {}
    }
    Ok((whole, found))
}

/// Returns the rows or experts of the operand's axis `at`; `None` for all.
fn mask(
    window: Option<Interval>,
    parts: &[Rc<Part>],
    axes: &[Axes],
    at: (usize, usize),
) -> Result<Option<Mask>, NotExpressible> {
    let (operand, axis) = at;
    let total = parts[operand].ty.dims[axis].clone();
    match (window, &axes[operand][axis]) {
        (None, None) => Ok(None),
        (Some(rows), None) if rows.start == 0 && total == rows.len => Ok(None),
        (Some(rows), Some(pattern)) => {
            let total = total.as_const().ok_or(NotExpressible)?;
            let mut held = pattern.refine(&Dim::ONE, &total.into())?;
            held.retain(|r| r.len > 0);
            let matches = match held.as_slice() {
                [] => rows.len == 0,
                [one] => *one == rows,
                _ => false,
            };
            matches
                .then_some(Some(Mask { rows, total }))
                .ok_or(NotExpressible)
        }
        _ => Err(NotExpressible),
    }
}

/// Removes the window of heads from an op with ALiBi. Fails unless the window has the part's heads.
fn all_heads(
    window: &mut Option<HeadWindow>,
    max_bias: f32,
    parts: &[Rc<Part>],
    axes: &[Axes],
) -> Result<(), NotExpressible> {
    let pattern = &axes[0][2];
    let Some(HeadWindow { heads, total }) = window.take() else {
        // Without ALiBi, all heads are equal.
        let alike = pattern.is_none() || max_bias <= 0.0;
        return alike.then_some(()).ok_or(NotExpressible);
    };
    let whole = &parts[0].ty.dims[2];
    let held = match pattern {
        Some(p) => p.refine(&Dim::ONE, whole)?,
        None => vec![Interval {
            start: 0,
            len: total,
        }],
    };
    let matches = *whole == total && held == heads;
    matches.then_some(()).ok_or(NotExpressible)
}

/// Replaces the start of a `set_slice` by the model's start. Fails unless the device holds `op.start` indices before
/// the model's start.
fn start_on_whole(
    op: &mut SetSlice,
    parts: &[Rc<Part>],
    axes: &[Axes],
    model: Option<&Op>,
) -> Result<(), NotExpressible> {
    let axis = usize::try_from(op.axis).map_err(|_| NotExpressible)?;
    let Some(pattern) = axes[0].get(axis).ok_or(NotExpressible)? else {
        return Ok(());
    };
    let Some(Op::SetSlice(of_model)) = model else {
        return Err(NotExpressible);
    };
    let local = op.start.as_const().ok_or(NotExpressible)?;
    let start = of_model.start.as_const().ok_or(NotExpressible)?;
    let held = pattern.refine(&Dim::ONE, &parts[0].ty.dims[axis])?;
    let before: u64 = clip(&held, 0, start).iter().map(|r| r.len).sum();
    if before != local || of_model.axis != op.axis {
        return Err(NotExpressible);
    }
    op.start = of_model.start.clone();
    Ok(())
}
