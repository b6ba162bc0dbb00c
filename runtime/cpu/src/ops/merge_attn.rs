//! Joins attention over parts of the cells.
#![allow(unsafe_code)]

use super::soft_max::{exponentials, scaled};
use crate::elements::{CHUNK, read_row, real, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::{exp, max, sum};
use crate::simd::vectorised;
use crate::view::View;

/// Computes `Σ exp(lᵢ − l) · oᵢ` in the order of parts, with a sink in the denominator.
#[derive(Debug)]
struct Merge;

pub(super) fn merge_attn(request: &Request<'_>) -> Selected {
    let operands = [Elements::Real; 2];
    request.expect(
        &operands[..request.operands.len().clamp(1, 2)],
        &[Elements::Real],
    )?;
    Ok(Box::new(Merge))
}

vectorised! {
    /// Computes `sums ← sums + weight · x`.
    fn add(sums: &mut [f32], weight: f32, x: &[f32]) {
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum = weight.mul_add(*x, *sum);
        }
    }
}

impl Launch for Merge {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&[operands.first().map_or(0, |s| s[3])])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let (x, sinks, y) = match (call.operands, call.results) {
            ([x, sinks @ ..], [y]) if sinks.len() < 2 => (x, sinks.first(), y),
            _ => return ensure(false, "wrong number of operands or results"),
        };
        let [row, heads, tokens, parts] = x.ne;
        let fits = row.checked_sub(1) == Some(y.ne[0]) && y.ne[1..] == [heads, tokens, 1];
        ensure(fits, "mismatched sizes of the parts and the result")?;
        let line = |s: &View| s.ne == [heads, 1, 1, 1] && !s.dtype.is_quantised();
        ensure(sinks.is_none_or(line), "wrong sizes of the sinks")?;
        let whole = |t: &View| t.ne[0].is_multiple_of(t.dtype.block_len() as usize);
        ensure(whole(x) && whole(y), "rows are not whole blocks")?;
        let [weights] = floats(call.scratch, [parts])?;
        for i in call.worker.items(y.rows()) {
            let [head, token, _] = y.indices(i);
            // SAFETY: the rows exist; the result row is this worker's.
            unsafe {
                let sink = sinks.map(|s| real(s, [head, 0, 0, 0]));
                weigh(x, [head, token], sink, weights);
                merge(x, [head, token], weights, y);
            }
        }
        Ok(())
    }
}

/// Computes the weight of each part of a row. Parts without visible cells have weight 0.
///
/// # Safety
/// The parts have the row.
unsafe fn weigh(x: &View, [head, token]: [usize; 2], sink: Option<f32>, weights: &mut [f32]) {
    for (part, weight) in weights.iter_mut().enumerate() {
        let last = std::slice::from_mut(weight);
        // SAFETY: caller's contract; the log-sum-exp is the row's last element.
        unsafe { read_row(x, x.row([head, token, part]), x.ne[0] - 1, last) };
    }
    let most = sink.map_or(max(weights), |s| s.max(max(weights)));
    if most == f32::NEG_INFINITY {
        return weights.fill(0.0);
    }
    exponentials(weights, most);
    let sink = sink.map_or(0.0, |s| f64::from(exp(s - most)));
    scaled(weights, (1.0 / (sum(weights) + sink)) as f32);
}

/// Writes the weighted sum of a row's parts.
///
/// # Safety
/// The row exists in the parts and the result, and no other thread uses the result's row.
unsafe fn merge(x: &View, [head, token]: [usize; 2], weights: &[f32], y: &View) {
    let (mut sums, mut buffer) = ([0.0; CHUNK], [0.0; CHUNK]);
    for at in (0..y.ne[0]).step_by(CHUNK) {
        let n = CHUNK.min(y.ne[0] - at);
        let (sums, buffer) = (&mut sums[..n], &mut buffer[..n]);
        sums.fill(0.0);
        for (part, &weight) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            // SAFETY: caller's contract.
            unsafe { read_row(x, x.row([head, token, part]), at, buffer) };
            add(sums, weight, buffer);
        }
        // SAFETY: caller's contract.
        unsafe { write_row(y, y.row([head, token, 0]), at, sums) };
    }
}
