//! Mamba's selective scan.
//!
//! Rows of the state are independent of each other. A few rows stay in a first-level cache for a chunk of tokens.
#![allow(unsafe_code)]

use super::rows::index;
use crate::elements::{int, read_row, real, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::{LANES, exp, fold, lanes, lanes_mut, softplus};
use crate::simd::vectorised;
use crate::view::View;

/// Tokens whose operands are decoded together.
const CHUNK: usize = 16;
/// Rows with sums in registers.
const ROWS: usize = 4;

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
    let mut all = request.operands.iter().chain(request.results);
    if all.any(|t| t.is_quantised()) {
        return Err("a state or activation is quantised");
    }
    Ok(Box::new(Scan))
}

/// A chunk of tokens of a head: `n` elements per token, and one step size per token.
#[derive(Clone, Copy)]
struct Tokens<'a> {
    decays: &'a [f32],
    gains: &'a [f32],
    reads: &'a [f32],
    steps: &'a [f32],
}

/// Computes `row ← row · decay + b · input` for `R` rows. Returns `Σ row · c` of each new row, per lane.
#[inline(always)]
fn scan_step<const R: usize>(
    rows: &mut [f32],
    decay: &[f32],
    b: &[f32],
    inputs: [f32; R],
    c: &[f32],
) -> [f32; R] {
    let n = decay.len();
    let whole = n - n % LANES;
    let mut sums = [[0.0_f32; LANES]; R];
    for at in (0..whole).step_by(LANES) {
        let (decay, b, c) = (lanes(decay, at), lanes(b, at), lanes(c, at));
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = lanes_mut(rows, r * n + at);
            for l in 0..LANES {
                x[l] = x[l].mul_add(decay[l], b[l] * inputs[r]);
                sums[l] = x[l].mul_add(c[l], sums[l]);
            }
        }
    }
    for i in whole..n {
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = &mut rows[r * n + i];
            *x = x.mul_add(decay[i], b[i] * inputs[r]);
            sums[i - whole] = x.mul_add(c[i], sums[i - whole]);
        }
    }
    sums.map(fold)
}

/// Runs all tokens on `R` rows of the state. `values` has `stride` elements per token. The first `R` are the rows' inputs,
/// and are overwritten with the results.
#[inline(always)]
fn scan_rows<const R: usize>(
    rows: &mut [f32],
    tokens: Tokens<'_>,
    values: &mut [f32],
    (n, stride): (usize, usize),
) {
    for (t, &step) in tokens.steps.iter().enumerate() {
        let of = t * n..(t + 1) * n;
        let values = &mut values[t * stride..][..R];
        let mut inputs = [0.0; R];
        for (input, value) in inputs.iter_mut().zip(&*values) {
            *input = *value * step;
        }
        let (decay, b) = (&tokens.decays[of.clone()], &tokens.gains[of.clone()]);
        let sums = scan_step::<R>(rows, decay, b, inputs, &tokens.reads[of]);
        values.copy_from_slice(&sums);
    }
}

vectorised! {
    /// Runs a chunk of tokens on all rows of the state.
    fn scan_chunk(
        state: &mut [f32],
        tokens: Tokens<'_>,
        values: &mut [f32],
        sizes: (usize, usize),
    ) {
        let (n, rows) = sizes;
        let whole = rows - rows % ROWS;
        for d in (0..whole).step_by(ROWS) {
            let some = &mut state[d * n..][..ROWS * n];
            scan_rows::<ROWS>(some, tokens, &mut values[d..], sizes);
        }
        for d in whole..rows {
            scan_rows::<1>(&mut state[d * n..][..n], tokens, &mut values[d..], sizes);
        }
    }
}

vectorised! {
    /// Computes the decays of a token. `rates` has one number for all elements, or one each.
    fn decays(rates: &[f32], step: f32, out: &mut [f32]) {
        if let [rate] = rates {
            out.fill(exp(step * rate));
        } else {
            for (out, rate) in out.iter_mut().zip(rates) {
                *out = exp(step * rate);
            }
        }
    }
}

fn scan_lengths(operands: &[Sizes]) -> [usize; 7] {
    let size = |i: usize| operands.get(i).copied().unwrap_or_default();
    let ([n, head_dim, ..], [_, _, n_t, _], [a, ..]) = (size(0), size(1), size(3));
    let tokens = n_t.min(CHUNK);
    let each = tokens * n;
    [n * head_dim, tokens * head_dim, each, each, each, a, tokens]
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
        let [state, values, decay, gains, reads, rates, steps] =
            floats(call.scratch, scan_lengths(&sizes))?;
        let [n, rows, heads, cells] = from.ne;
        let [_, _, n_t, n_s] = x.ne;
        let per_group = heads.checked_div(b.ne[1]).unwrap_or(1);
        for unit in call.worker.items(heads * n_s) {
            let (h, s) = (unit % heads, unit / heads);
            // SAFETY: caller's contract; the views fit; cells are checked; the head is this worker's.
            unsafe {
                let cell = match ids {
                    [ids] => index("cell of a state", int(ids, [s, 0, 0, 0]), cells)?,
                    _ => s,
                };
                for d in 0..rows {
                    read_row(from, from.row([d, h, cell]), 0, &mut state[d * n..][..n]);
                }
                read_row(a, a.row([h, 0, 0]), 0, rates);
                for first in (0..n_t).step_by(CHUNK) {
                    let count = CHUNK.min(n_t - first);
                    for (i, t) in (first..first + count).enumerate() {
                        let (of, group) = (i * n..(i + 1) * n, [h / per_group, t, s]);
                        steps[i] = softplus(real(dt, [h, t, s, 0]));
                        decays(rates, steps[i], &mut decay[of.clone()]);
                        read_row(b, b.row(group), 0, &mut gains[of.clone()]);
                        read_row(c, c.row(group), 0, &mut reads[of]);
                        let values = &mut values[i * rows..][..rows];
                        read_row(x, x.row([h, t, s]), 0, values);
                    }
                    let tokens = Tokens {
                        decays: decay,
                        gains,
                        reads,
                        steps: &steps[..count],
                    };
                    scan_chunk(state, tokens, values, (n, rows));
                    for (i, t) in (first..first + count).enumerate() {
                        write_row(y, y.row([h, t, s]), 0, &values[i * rows..][..rows]);
                    }
                }
                for d in 0..rows {
                    write_row(next, next.row([d, h, s]), 0, &state[d * n..][..n]);
                }
            }
        }
        Ok(())
    }
}
