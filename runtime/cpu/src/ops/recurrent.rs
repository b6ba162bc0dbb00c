//! Recurrences over the tokens of a sequence.
#![allow(unsafe_code)]

use super::rows::index;
use crate::elements::{int, read_row, real, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::{LANES, exp, fold, softplus};
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
        for unit in call.worker.share(blocks * n_s) {
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

/// Mamba's selective scan. Without ids, the state may be updated in place.
#[derive(Debug)]
struct Scan;

pub(super) fn ssm_scan(request: &Request<'_>) -> Selected {
    let mut operands = [Elements::Real; 7];
    operands[6] = Elements::Int;
    request.expect(
        &operands[..request.operands.len().clamp(6, 7)],
        &[Elements::Real; 2],
    )?;
    plain(request)?;
    Ok(Box::new(Scan))
}

vectorised! {
    /// Computes `state ← state · decay + b · input`. Returns `Σ state · c` per lane.
    fn scan_step(state: &mut [f32], decay: &[f32], b: &[f32], input: f32, c: &[f32]) -> f32 {
        let mut sums = [0.0_f32; LANES];
        let n = state.len();
        let (decay, b, c) = (&decay[..n], &b[..n], &c[..n]);
        let mut at = 0;
        while at + LANES <= n {
            for (l, sum) in sums.iter_mut().enumerate() {
                let i = at + l;
                state[i] = state[i].mul_add(decay[i], b[i] * input);
                *sum = state[i].mul_add(c[i], *sum);
            }
            at += LANES;
        }
        for i in at..n {
            state[i] = state[i].mul_add(decay[i], b[i] * input);
            sums[i - at] = state[i].mul_add(c[i], sums[i - at]);
        }
        fold(sums)
    }
}

vectorised! {
    fn decays(a: &[f32], delta: f32, out: &mut [f32]) {
        for (out, a) in out.iter_mut().zip(a) {
            *out = exp(delta * a);
        }
    }
}

fn scan_lengths(operands: &[Sizes]) -> [usize; 6] {
    let size = |i: usize| operands.get(i).copied().unwrap_or_default();
    let ([n, head_dim, ..], [a, ..]) = (size(0), size(3));
    [n * head_dim, head_dim, n, n, n, a.max(n)]
}

impl Scan {
    fn check(operands: &[View], results: &[View]) -> Result<(), KernelError> {
        let ([state, x, dt, a, b, c, ids @ ..], [y, next]) = (operands, results) else {
            return ensure(false, "wrong number of operands or results");
        };
        let [d_state, head_dim, heads, cells] = state.ne;
        let [_, _, n_t, n_s] = x.ne;
        let groups = b.ne[1];
        let fits = x.ne[..2] == [head_dim, heads] && dt.ne == [heads, n_t, n_s, 1];
        ensure(fits, "mismatched sizes of the state, x and dt")?;
        let a_fits = (a.ne[0] == 1 || a.ne[0] == d_state) && a.ne[1..] == [heads, 1, 1];
        ensure(a_fits, "wrong sizes of A")?;
        let b_fits = b.ne == [d_state, groups, n_t, n_s] && c.ne == b.ne;
        let grouped = heads == 0 || groups > 0 && heads.is_multiple_of(groups);
        ensure(b_fits && grouped, "mismatched sizes of B and C")?;
        let from = match ids {
            [ids] => ids.ne == [n_s, 1, 1, 1],
            _ => cells == n_s,
        };
        ensure(from, "wrong number of sequence cells")?;
        let out = y.ne == x.ne && next.ne == [d_state, head_dim, heads, n_s];
        ensure(out, "wrong sizes of the results")
    }
}

impl Launch for Scan {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&scan_lengths(operands))
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        Scan::check(call.operands, call.results)?;
        let ([from, x, dt, a, b, c, ids @ ..], [y, next]) = (call.operands, call.results) else {
            return ensure(false, "wrong number of operands or results");
        };
        let sizes: [Sizes; 4] = [from.ne, x.ne, dt.ne, a.ne];
        let [state, inputs, decay, gains, reads, rates] =
            floats(call.scratch, scan_lengths(&sizes))?;
        let [d_state, head_dim, heads, cells] = from.ne;
        let [_, _, n_t, n_s] = x.ne;
        let per_group = heads.checked_div(b.ne[1]).unwrap_or(1);
        for unit in call.worker.share(heads * n_s) {
            let (h, s) = (unit % heads, unit / heads);
            // SAFETY: caller's contract; the views fit; cells are checked; the head is this worker's.
            unsafe {
                let cell = match ids {
                    [ids] => index("cell of a state", int(ids, [s, 0, 0, 0]), cells)?,
                    _ => s,
                };
                for d in 0..head_dim {
                    let row = &mut state[d * d_state..][..d_state];
                    read_row(from, from.row([d, h, cell]), 0, row);
                }
                read_row(a, a.row([h, 0, 0]), 0, &mut rates[..a.ne[0]]);
                if a.ne[0] == 1 {
                    let rate = rates[0];
                    rates.fill(rate);
                }
                for t in 0..n_t {
                    let delta = softplus(real(dt, [h, t, s, 0]));
                    decays(rates, delta, decay);
                    read_row(b, b.row([h / per_group, t, s]), 0, gains);
                    read_row(c, c.row([h / per_group, t, s]), 0, reads);
                    read_row(x, x.row([h, t, s]), 0, inputs);
                    for (d, v) in inputs.iter_mut().enumerate() {
                        let row = &mut state[d * d_state..][..d_state];
                        *v = scan_step(row, decay, gains, *v * delta, reads);
                    }
                    write_row(y, y.row([h, t, s]), 0, inputs);
                }
                for d in 0..head_dim {
                    let row = &state[d * d_state..][..d_state];
                    write_row(next, next.row([d, h, s]), 0, row);
                }
            }
        }
        Ok(())
    }
}

/// The gated delta rule. The state may be updated in place.
#[derive(Debug)]
struct DeltaRule;

pub(super) fn gated_delta_net(request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real; 6], &[Elements::Real; 2])?;
    plain(request)?;
    Ok(Box::new(DeltaRule))
}

vectorised! {
    /// Computes `x ← x · decay`. Returns `Σ x · y` of the new `x`, per lane.
    fn decayed_dot(x: &mut [f32], decay: &[f32], y: &[f32]) -> f32 {
        let n = x.len();
        let (decay, y) = (&decay[..n], &y[..n]);
        let mut sums = [0.0_f32; LANES];
        let mut at = 0;
        while at + LANES <= n {
            for (l, sum) in sums.iter_mut().enumerate() {
                x[at + l] *= decay[at + l];
                *sum = x[at + l].mul_add(y[at + l], *sum);
            }
            at += LANES;
        }
        for i in at..n {
            x[i] *= decay[i];
            sums[i - at] = x[i].mul_add(y[i], sums[i - at]);
        }
        fold(sums)
    }
}

vectorised! {
    /// Computes `x ← x + k · step`. Returns `Σ x · q` of the new `x`, per lane.
    fn stepped_dot(x: &mut [f32], k: &[f32], step: f32, q: &[f32]) -> f32 {
        let n = x.len();
        let (k, q) = (&k[..n], &q[..n]);
        let mut sums = [0.0_f32; LANES];
        let mut at = 0;
        while at + LANES <= n {
            for (l, sum) in sums.iter_mut().enumerate() {
                x[at + l] = k[at + l].mul_add(step, x[at + l]);
                *sum = x[at + l].mul_add(q[at + l], *sum);
            }
            at += LANES;
        }
        for i in at..n {
            x[i] = k[i].mul_add(step, x[i]);
            sums[i - at] = x[i].mul_add(q[i], sums[i - at]);
        }
        fold(sums)
    }
}

fn delta_lengths(operands: &[Sizes]) -> [usize; 5] {
    let [dk, dv, ..] = operands.get(5).copied().unwrap_or_default();
    [dk * dv, dk, dk, dk, dv]
}

impl DeltaRule {
    fn check(
        [q, k, v, g, beta, state]: [&View; 6],
        results: [&View; 2],
    ) -> Result<(), KernelError> {
        let [dv, heads, n_t, n_s] = v.ne;
        let [dk, key_heads, ..] = k.ne;
        let keys = k.ne[2..] == [n_t, n_s] && q.ne == k.ne;
        let grouped = heads == 0 || key_heads > 0 && heads.is_multiple_of(key_heads);
        ensure(keys && grouped, "mismatched sizes of q, k and v")?;
        let gates = (g.ne[0] == 1 || g.ne[0] == dk) && g.ne[1..] == [heads, n_t, n_s];
        ensure(
            gates && beta.ne == [1, heads, n_t, n_s],
            "mismatched sizes of g and beta",
        )?;
        let states = state.ne == [dk, dv, heads, n_s] && results[1].ne == state.ne;
        ensure(
            states && results[0].ne == v.ne,
            "mismatched sizes of the state and the result",
        )
    }
}

impl Launch for DeltaRule {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&delta_lengths(operands))
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([q, k, v, g, beta, from], [y, next]) = call.views()?;
        DeltaRule::check([&q, &k, &v, &g, &beta, &from], [&y, &next])?;
        let [dv, heads, n_t, n_s] = v.ne;
        let [dk, key_heads, ..] = k.ne;
        let sizes = [q.ne, k.ne, v.ne, g.ne, beta.ne, from.ne];
        let [state, query, key, decay, values] = floats(call.scratch, delta_lengths(&sizes))?;
        let scale = (1.0 / (dk as f64).sqrt()) as f32;
        for unit in call.worker.share(heads * n_s) {
            let (h, s) = (unit % heads, unit / heads);
            // SAFETY: caller's contract; the views fit; the head is this worker's.
            unsafe {
                for j in 0..dv {
                    read_row(&from, from.row([j, h, s]), 0, &mut state[j * dk..][..dk]);
                }
                for t in 0..n_t {
                    read_row(&q, q.row([h % key_heads, t, s]), 0, query);
                    read_row(&k, k.row([h % key_heads, t, s]), 0, key);
                    read_row(&v, v.row([h, t, s]), 0, values);
                    let gates = g.ne[0].min(dk);
                    read_row(&g, g.row([h, t, s]), 0, &mut decay[..gates]);
                    decay[..gates].iter_mut().for_each(|x| *x = exp(*x));
                    if gates == 1 {
                        let gate = decay[0];
                        decay.fill(gate);
                    }
                    let rate = real(&beta, [0, h, t, s]);
                    for (j, value) in values.iter_mut().enumerate() {
                        let row = &mut state[j * dk..][..dk];
                        let wanted = *value - decayed_dot(row, decay, key);
                        *value = stepped_dot(row, key, rate * wanted, query) * scale;
                    }
                    write_row(&y, y.row([h, t, s]), 0, values);
                }
                for j in 0..dv {
                    write_row(&next, next.row([j, h, s]), 0, &state[j * dk..][..dk]);
                }
            }
        }
        Ok(())
    }
}
