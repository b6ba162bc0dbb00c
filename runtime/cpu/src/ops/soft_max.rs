//! Softmax over rows.
#![allow(unsafe_code)]

use tpc_ir::op::SoftMax;

use super::slopes::Slopes;
use crate::elements::{CHUNK, read_row, real, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::{exp, max, sum};
use crate::simd::vectorised;
use crate::view::View;

/// Computes `softmax(scale · x + slope · mask)` with a sink. The result may share the memory of `x`.
#[derive(Debug)]
struct Rows {
    scale: f32,
    slopes: Slopes,
}

pub(super) fn soft_max(op: &SoftMax, request: &Request<'_>) -> Selected {
    let operands = [Elements::Real; 3];
    request.expect(
        &operands[..request.operands.len().clamp(1, 3)],
        &[Elements::Real],
    )?;
    Ok(Box::new(Rows {
        scale: op.scale,
        slopes: Slopes::of(op.max_bias, op.heads.as_ref())?,
    }))
}

vectorised! {
    pub(super) fn scale_and_mask(x: &mut [f32], scale: f32, mask: &[f32], slope: f32) {
        for (x, m) in x.iter_mut().zip(mask) {
            *x = *x * scale + slope * m;
        }
    }
}

vectorised! {
    pub(super) fn scaled(x: &mut [f32], scale: f32) {
        for x in x {
            *x *= scale;
        }
    }
}

vectorised! {
    pub(super) fn exponentials(x: &mut [f32], max: f32) {
        for x in x {
            *x = exp(*x - max);
        }
    }
}

/// Returns the mask's row for a row of `x`. The mask repeats over batches.
pub(super) fn mask_row(mask: &View, [i1, i2, i3]: [usize; 3]) -> *mut u8 {
    mask.row([i1, i2 % mask.ne[2].max(1), i3 % mask.ne[3].max(1)])
}

impl Launch for Rows {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&[operands.first().map_or(0, |s| s[0])])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let (x, further, y) = match (call.operands, call.results) {
            ([x, further @ ..], [y]) if further.len() < 3 => (x, further, y),
            _ => return ensure(false, "wrong number of operands or results"),
        };
        let (mask, sinks) = (further.first(), further.get(1));
        ensure(x.ne == y.ne, "mismatched sizes of x and the result")?;
        let [n, _, heads, _] = x.ne;
        let fits = |m: &View| m.ne[..2] == x.ne[..2] && (n == 0 || !m.ne[2..].contains(&0));
        ensure(mask.is_none_or(fits), "mismatched sizes of x and the mask")?;
        let line = |s: &View| s.ne == [heads, 1, 1, 1] && !s.dtype.is_quantised();
        ensure(sinks.is_none_or(line), "wrong sizes of the sinks")?;
        ensure(
            self.slopes.fit(heads),
            "mismatched heads of x and the window",
        )?;
        let whole = n.is_multiple_of(y.dtype.block_len() as usize);
        ensure(whole, "rows of the result are not whole blocks")?;
        let [row] = floats(call.scratch, [n])?;
        for i in call.worker.items(x.rows()) {
            let at = x.indices(i);
            let head = at[1];
            // SAFETY: the rows exist; the result row is this worker's, and is read before it is written.
            unsafe {
                read_row(x, x.row(at), 0, row);
                match mask {
                    Some(mask) => {
                        let factors = [self.scale, self.slopes.slope(head, heads)];
                        add_mask(row, factors, mask, mask_row(mask, at));
                    }
                    None => scaled(row, self.scale),
                }
                let sink = sinks.map(|s| real(s, [head, 0, 0, 0]));
                let most = sink.map_or(max(row), |s| s.max(max(row)));
                if most == f32::NEG_INFINITY {
                    row.fill(0.0);
                } else {
                    exponentials(row, most);
                    let sink = sink.map_or(0.0, |s| f64::from(exp(s - most)));
                    scaled(row, (1.0 / (sum(row) + sink)) as f32);
                }
                write_row(y, y.row(at), 0, row);
            }
        }
        Ok(())
    }
}

/// Computes `row ← scale · row + slope · mask`.
///
/// # Safety
/// The mask's row is readable and as long as `row`.
unsafe fn add_mask(row: &mut [f32], [scale, slope]: [f32; 2], mask: &View, from: *const u8) {
    let mut buffer = [0.0; CHUNK];
    for (i, row) in row.chunks_mut(CHUNK).enumerate() {
        let buffer = &mut buffer[..row.len()];
        // SAFETY: caller's contract.
        unsafe { read_row(mask, from, i * CHUNK, buffer) };
        scale_and_mask(row, scale, buffer, slope);
    }
}
