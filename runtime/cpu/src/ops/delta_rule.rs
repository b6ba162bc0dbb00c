//! The gated delta rule: a linear memory that forgets, and replaces the value of a key.
//!
//! Rows of the state are independent of each other. A few rows stay in a first-level cache for a chunk of tokens, so
//! a prompt reads and writes the state once per chunk.
#![allow(unsafe_code)]

use crate::elements::{read_row, real, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::{LANES, exp, fold, lanes, lanes_mut};
use crate::simd::vectorised;
use crate::view::View;

/// Tokens whose keys, queries and gates are decoded together.
const CHUNK: usize = 16;
/// Rows with sums in registers.
const ROWS: usize = 4;

/// The gated delta rule. The state may be updated in place.
#[derive(Debug)]
struct DeltaRule;

pub(super) fn gated_delta_net(request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real; 6], &[Elements::Real; 2])?;
    let mut all = request.operands.iter().chain(request.results);
    if all.any(|t| t.is_quantised()) {
        return Err("a state or activation is quantised");
    }
    Ok(Box::new(DeltaRule))
}

/// Computes `x ← x · decay` for `R` rows. Returns `Σ x · y` of each new `x`, per lane.
#[inline(always)]
fn decayed_dots<const R: usize>(rows: &mut [f32], decay: &[f32], y: &[f32]) -> [f32; R] {
    let n = decay.len();
    let whole = n - n % LANES;
    let mut sums = [[0.0_f32; LANES]; R];
    for at in (0..whole).step_by(LANES) {
        let (decay, y) = (lanes(decay, at), lanes(y, at));
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = lanes_mut(rows, r * n + at);
            for l in 0..LANES {
                x[l] *= decay[l];
                sums[l] = x[l].mul_add(y[l], sums[l]);
            }
        }
    }
    for i in whole..n {
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = &mut rows[r * n + i];
            *x *= decay[i];
            sums[i - whole] = x.mul_add(y[i], sums[i - whole]);
        }
    }
    sums.map(fold)
}

/// Computes `x ← x + k · step` for `R` rows. Returns `Σ x · q` of each new `x`, per lane.
#[inline(always)]
fn stepped_dots<const R: usize>(
    rows: &mut [f32],
    k: &[f32],
    steps: [f32; R],
    q: &[f32],
) -> [f32; R] {
    let n = k.len();
    let whole = n - n % LANES;
    let mut sums = [[0.0_f32; LANES]; R];
    for at in (0..whole).step_by(LANES) {
        let (k, q) = (lanes(k, at), lanes(q, at));
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = lanes_mut(rows, r * n + at);
            for l in 0..LANES {
                x[l] = k[l].mul_add(steps[r], x[l]);
                sums[l] = x[l].mul_add(q[l], sums[l]);
            }
        }
    }
    for i in whole..n {
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = &mut rows[r * n + i];
            *x = k[i].mul_add(steps[r], *x);
            sums[i - whole] = x.mul_add(q[i], sums[i - whole]);
        }
    }
    sums.map(fold)
}

/// A chunk of tokens of a head: elements of a key per token, and one rate per token.
#[derive(Clone, Copy)]
struct Tokens<'a> {
    keys: &'a [f32],
    queries: &'a [f32],
    decays: &'a [f32],
    rates: &'a [f32],
    scale: f32,
}

/// Runs all tokens on `R` rows of the state. `values` has `dv` elements per token. The first `R` are the rows' values,
/// and are overwritten with the results.
#[inline(always)]
fn run_rows<const R: usize>(
    rows: &mut [f32],
    tokens: Tokens<'_>,
    values: &mut [f32],
    (dk, dv): (usize, usize),
) {
    for (t, &rate) in tokens.rates.iter().enumerate() {
        let of = t * dk..(t + 1) * dk;
        let key = &tokens.keys[of.clone()];
        let values = &mut values[t * dv..][..R];
        let mut steps = decayed_dots::<R>(rows, &tokens.decays[of.clone()], key);
        for (step, value) in steps.iter_mut().zip(&*values) {
            *step = rate * (*value - *step);
        }
        let sums = stepped_dots::<R>(rows, key, steps, &tokens.queries[of]);
        for (value, sum) in values.iter_mut().zip(sums) {
            *value = sum * tokens.scale;
        }
    }
}

vectorised! {
    /// Runs a chunk of tokens on all rows of the state.
    fn run_chunk(
        state: &mut [f32],
        tokens: Tokens<'_>,
        values: &mut [f32],
        sizes: (usize, usize),
    ) {
        let (dk, dv) = sizes;
        let whole = dv - dv % ROWS;
        for j in (0..whole).step_by(ROWS) {
            let rows = &mut state[j * dk..][..ROWS * dk];
            run_rows::<ROWS>(rows, tokens, &mut values[j..], sizes);
        }
        for j in whole..dv {
            run_rows::<1>(&mut state[j * dk..][..dk], tokens, &mut values[j..], sizes);
        }
    }
}

vectorised! {
    fn powers(x: &mut [f32]) {
        for x in x {
            *x = exp(*x);
        }
    }
}

fn lengths(operands: &[Sizes]) -> [usize; 6] {
    let [dk, dv, ..] = operands.get(5).copied().unwrap_or_default();
    let tokens = operands.get(2).map_or(0, |v| v[2]).min(CHUNK);
    let keys = tokens * dk;
    [dk * dv, keys, keys, keys, tokens * dv, tokens]
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
        bytes_for(&lengths(operands))
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([q, k, v, g, beta, from], [y, next]) = call.views()?;
        DeltaRule::check([&q, &k, &v, &g, &beta, &from], [&y, &next])?;
        let [dv, heads, n_t, n_s] = v.ne;
        let [dk, key_heads, ..] = k.ne;
        let sizes = [q.ne, k.ne, v.ne, g.ne, beta.ne, from.ne];
        let [state, queries, keys, decays, values, rates] = floats(call.scratch, lengths(&sizes))?;
        let scale = (1.0 / (dk as f64).sqrt()) as f32;
        for unit in call.worker.items(heads * n_s) {
            let (h, s) = (unit % heads, unit / heads);
            // SAFETY: caller's contract; the views fit; the head is this worker's.
            unsafe {
                for j in 0..dv {
                    read_row(&from, from.row([j, h, s]), 0, &mut state[j * dk..][..dk]);
                }
                for first in (0..n_t).step_by(CHUNK) {
                    let n = CHUNK.min(n_t - first);
                    for (i, t) in (first..first + n).enumerate() {
                        let at = [h % key_heads, t, s];
                        read_row(&q, q.row(at), 0, &mut queries[i * dk..][..dk]);
                        read_row(&k, k.row(at), 0, &mut keys[i * dk..][..dk]);
                        read_row(&v, v.row([h, t, s]), 0, &mut values[i * dv..][..dv]);
                        gates(&g, [h, t, s], &mut decays[i * dk..][..dk]);
                        rates[i] = real(&beta, [0, h, t, s]);
                    }
                    let tokens = Tokens {
                        keys,
                        queries,
                        decays,
                        rates: &rates[..n],
                        scale,
                    };
                    run_chunk(state, tokens, values, (dk, dv));
                    for (i, t) in (first..first + n).enumerate() {
                        write_row(&y, y.row([h, t, s]), 0, &values[i * dv..][..dv]);
                    }
                }
                for j in 0..dv {
                    write_row(&next, next.row([j, h, s]), 0, &state[j * dk..][..dk]);
                }
            }
        }
        Ok(())
    }
}

/// Reads the decays of a token and head: one for all elements of a key, or one each.
///
/// # Safety
/// The row exists.
unsafe fn gates(g: &View, at: [usize; 3], out: &mut [f32]) {
    let n = g.ne[0].min(out.len());
    // SAFETY: caller's contract.
    unsafe { read_row(g, g.row(at), 0, &mut out[..n]) };
    powers(&mut out[..n]);
    if n == 1 {
        let gate = out[0];
        out.fill(gate);
    }
}
