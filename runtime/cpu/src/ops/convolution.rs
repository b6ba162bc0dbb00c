//! The convolution over the last tokens of a sequence, before a recurrence.
#![allow(unsafe_code)]

use crate::elements::{read_row, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::simd::vectorised;
use crate::view::View;

const CHANNELS: usize = 64;

/// Computes `out[c, t, s] = Σ_j x[t + j, c, s] · taps[j, c]`.
#[derive(Debug)]
struct Convolution;

fn plain(request: &Request<'_>) -> Result<(), &'static str> {
    let mut all = request.operands.iter().chain(request.results);
    if all.any(|t| t.is_quantised()) {
        return Err("a state or activation is quantised");
    }
    Ok(())
}

pub(super) fn ssm_conv(request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real; 2], &[Elements::Real])?;
    plain(request)?;
    Ok(Box::new(Convolution))
}

vectorised! {
    /// Computes `out ← Σ_j steps[j] · taps[j]` for [`CHANNELS`] adjacent channels.
    fn convolve(steps: &[f32], taps: &[f32], out: &mut [f32; CHANNELS]) {
        let (steps, taps) = (steps.as_chunks::<CHANNELS>().0, taps.as_chunks::<CHANNELS>().0);
        let mut sums = [0.0_f32; CHANNELS];
        for (x, w) in steps.iter().zip(taps) {
            for c in 0..CHANNELS {
                sums[c] = x[c].mul_add(w[c], sums[c]);
            }
        }
        *out = sums;
    }
}

/// Decodes [`CHANNELS`] rows: element `i` of row `c` goes to `out[i · CHANNELS + c]`.
///
/// # Safety
/// The rows exist.
unsafe fn interleave(
    x: &View,
    rows: usize,
    at: impl Fn(usize) -> [usize; 3],
    row: &mut [f32],
    out: &mut [f32],
) {
    for c in 0..rows {
        // SAFETY: caller's contract.
        unsafe { read_row(x, x.row(at(c)), 0, row) };
        for (out, x) in out[c..].iter_mut().step_by(CHANNELS).zip(&*row) {
            *out = *x;
        }
    }
}

impl Launch for Convolution {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        let steps = operands.first().map_or(0, |s| s[0]);
        let taps = operands.get(1).map_or(0, |s| s[0]);
        bytes_for(&[CHANNELS * steps, CHANNELS * taps, steps.max(taps)])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x, taps], [y]) = call.views()?;
        let [steps, channels, n_s, _] = x.ne;
        let reach = taps.ne[0];
        let n_t = y.ne[1];
        let fits = taps.ne[1] == channels && y.ne == [channels, n_t, n_s, 1];
        let ranks = x.ne[3] == 1 && taps.ne[2..] == [1, 1];
        ensure(
            fits && ranks && n_t + reach == steps + 1,
            "wrong sizes of the convolution",
        )?;
        let lengths = [CHANNELS * steps, CHANNELS * reach, steps.max(reach)];
        let [seen, weights, row] = floats(call.scratch, lengths)?;
        seen.fill(0.0);
        weights.fill(0.0);
        let blocks = channels.div_ceil(CHANNELS);
        for unit in call.worker.items(blocks * n_s) {
            let (first, s) = (unit % blocks * CHANNELS, unit / blocks);
            let n = CHANNELS.min(channels - first);
            let mut out = [0.0; CHANNELS];
            // SAFETY: caller's contract; the views fit; the channels are this worker's.
            unsafe {
                interleave(&x, n, |c| [first + c, s, 0], &mut row[..steps], seen);
                interleave(&taps, n, |c| [first + c, 0, 0], &mut row[..reach], weights);
                for t in 0..n_t {
                    let from = &seen[t * CHANNELS..][..reach * CHANNELS];
                    convolve(from, weights, &mut out);
                    write_row(&y, y.row([t, s, 0]), first, &out[..n]);
                }
            }
        }
        Ok(())
    }
}
