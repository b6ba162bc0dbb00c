//! Pooling of images.
#![allow(unsafe_code)]

use tpc_ir::op::{Pool2d, PoolKind};

use super::pointwise::each_chunk;
use crate::elements::real;
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, ensure};

#[derive(Debug)]
struct Windows(Pool2d);

pub(super) fn pool_2d(op: &Pool2d, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    if request.operands[0].is_quantised() {
        return Err("the operand is quantised");
    }
    Ok(Box::new(Windows(op.clone())))
}

impl Windows {
    fn count(&self, axis: usize, n: usize) -> Option<usize> {
        let [pad, size, stride] = [self.0.pad, self.0.window, self.0.stride].map(|p| p[axis]);
        let reach = (n as u64).checked_add(pad.checked_mul(2)?)?;
        let steps = reach.checked_sub(size)?.checked_div(stride)?;
        usize::try_from(steps.checked_add(1)?).ok()
    }

    /// Returns a window's indices, clipped to an axis of `n`. Windows start `pad` before index 0.
    fn window(&self, axis: usize, at: usize, n: usize) -> std::ops::Range<usize> {
        let (pad, size) = (self.0.pad[axis] as usize, self.0.window[axis] as usize);
        let start = at.saturating_mul(self.0.stride[axis] as usize);
        let end = start.saturating_add(size).saturating_sub(pad);
        start.saturating_sub(pad)..end.min(n)
    }
}

impl Launch for Windows {
    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        ensure(
            x.ne[2..] == y.ne[2..],
            "mismatched images of x and the result",
        )?;
        let fits = |i: usize| self.count(i, x.ne[i]) == Some(y.ne[i]);
        ensure(fits(0) && fits(1), "mismatched windows of x and the result")?;
        let area = self.0.window.map(|n| n as f64).iter().product::<f64>();
        // SAFETY: caller's contract; windows are clipped to the operand.
        unsafe {
            each_chunk(call.worker, &y, |piece, chunk| {
                let [row, i2, i3] = piece.row;
                for (i, out) in chunk.iter_mut().enumerate() {
                    let columns = self.window(0, piece.at + i, x.ne[0]);
                    let at = self
                        .window(1, row, x.ne[1])
                        .flat_map(|i1| columns.clone().map(move |i0| [i0, i1, i2, i3]));
                    let elements = at.map(|at| real(&x, at));
                    *out = match self.0.kind {
                        PoolKind::Max => elements.fold(f32::MIN, f32::max),
                        PoolKind::Avg => (elements.map(f64::from).sum::<f64>() / area) as f32,
                    };
                }
                Ok(())
            })
        }
    }
}
