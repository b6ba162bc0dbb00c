//! Recurrences over tokens with a matrix per head.
//!
//! Results are packed: the outputs of all tokens, then the states, one per token, the latest first.

use super::Function;
use super::call::{Array, Call};
use crate::error::ExecError;
use crate::tensor::{Tensor, count};

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("rwkv_wkv6", wkv6),
    ("rwkv_wkv7", wkv7),
    ("gated_linear_attn", gated_linear_attn),
    ("gated_delta_net", gated_delta_net),
    ("ssm_scan", ssm_scan),
];

/// Sizes of a linear recurrence: rows `[s, heads, tokens]`, one `s × s` state per head and sequence.
struct Sizes {
    s: usize,
    heads: usize,
    tokens: usize,
    seqs: usize,
}

impl Sizes {
    fn of(call: &Call<'_>, rows: &[&Array<'_>], state: &Array<'_>) -> Result<Sizes, ExecError> {
        let [s, heads, tokens, _] = rows[0].ne;
        let seqs = state.ne[1];
        call.ensure(rows.iter().all(|r| r.ne == rows[0].ne), "row sizes differ")?;
        let states = state.data.len() == s * s * heads * seqs;
        call.ensure(states && seqs > 0, "the state size does not match")?;
        call.ensure(tokens.is_multiple_of(seqs), "sequences differ in length")?;
        let packed = s * heads * tokens + state.data.len();
        call.ensure(
            count(call.result.dims)? == packed,
            "the result size does not match",
        )?;
        Ok(Sizes {
            s,
            heads,
            tokens,
            seqs,
        })
    }

    /// Calls `step` with the start of the rows and the state of every token and head, then packs the results.
    fn scan(
        &self,
        call: &Call<'_>,
        state: &Array<'_>,
        mut step: impl FnMut(usize, usize, &mut [f64], &mut [f64]),
    ) -> Result<Tensor, ExecError> {
        let (s, heads) = (self.s, self.heads);
        let mut states = state.data.to_vec();
        let mut out = vec![0.0; s * heads * self.tokens];
        let each = self.tokens / self.seqs;
        for token in 0..self.tokens {
            let seq = token / each.max(1);
            for head in 0..heads {
                let row = (token * heads + head) * s;
                let state = &mut states[(seq * heads + head) * s * s..][..s * s];
                step(head, row, state, &mut out[row..row + s]);
            }
        }
        out.extend(states);
        call.elements(out)
    }
}

/// Sources `k, v, r, first, decay, state`.
fn wkv6(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let [k, v, r] = [call.array(0)?, call.array(1)?, call.array(2)?];
    let (first, decay, state) = (call.array(3)?, call.array(4)?, call.array(5)?);
    let sizes = Sizes::of(call, &[&k, &v, &r, &decay], &state)?;
    let s = sizes.s;
    call.ensure(
        first.data.len() == s * sizes.heads,
        "the bonus size does not match",
    )?;
    sizes.scan(call, &state, |head, row, state, out| {
        for i in 0..s {
            let (key, read, decay) = (k.data[row + i], r.data[row + i], decay.data[row + i]);
            let bonus = first.data[head * s + i];
            for j in 0..s {
                let kv = key * v.data[row + j];
                let old = state[i * s + j];
                out[j] += read * (kv * bonus + old);
                state[i * s + j] = old * decay + kv;
            }
        }
    })
}

/// Sources `r, decay, k, v, a, b, state`.
fn wkv7(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let [r, w, k] = [call.array(0)?, call.array(1)?, call.array(2)?];
    let [v, a, b] = [call.array(3)?, call.array(4)?, call.array(5)?];
    let state = call.array(6)?;
    let sizes = Sizes::of(call, &[&r, &w, &k, &v, &a, &b], &state)?;
    let s = sizes.s;
    sizes.scan(call, &state, |_, row, state, out| {
        for (i, state) in state.chunks_exact_mut(s.max(1)).enumerate() {
            let value = v.data[row + i];
            let removed: f64 = (0..s).map(|j| a.data[row + j] * state[j]).sum();
            for (j, x) in state.iter_mut().enumerate() {
                let at = row + j;
                *x = *x * w.data[at] + value * k.data[at] + removed * b.data[at];
                out[i] += *x * r.data[at];
            }
        }
    })
}

/// Sources `k, v, q, gate, state`; word: the factor on `q`.
fn gated_linear_attn(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let [k, v, q, g] = [
        call.array(0)?,
        call.array(1)?,
        call.array(2)?,
        call.array(3)?,
    ];
    let state = call.array(4)?;
    let sizes = Sizes::of(call, &[&k, &v, &q, &g], &state)?;
    let (s, scale) = (sizes.s, call.float(0));
    sizes.scan(call, &state, |_, row, state, out| {
        for i in 0..s {
            let (key, query, gate) = (k.data[row + i], q.data[row + i] * scale, g.data[row + i]);
            for j in 0..s {
                let x = &mut state[i * s + j];
                *x = *x * gate + key * v.data[row + j];
                out[j] += query * *x;
            }
        }
    })
}

/// Returns the slot of the state after `token`: 0 for the latest; `None` if it is not among the last `kept` states.
fn place(token: usize, tokens: usize, kept: usize) -> Option<usize> {
    Some(tokens - 1 - token).filter(|&slot| slot < kept)
}

/// Sources: `q, k, v: [s, heads, tokens, seqs]`, a gate per head or per element, `beta`, `state: [s, s, heads, seqs]`.
/// Word: number of states.
fn gated_delta_net(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let [q, k, v] = [call.array(0)?, call.array(1)?, call.array(2)?];
    let (g, beta, state) = (call.array(3)?, call.array(4)?, call.array(5)?);
    let kept = usize::try_from(call.positive(0)?).unwrap_or(1);
    let [s, heads, tokens, seqs] = v.ne;
    call.ensure(
        state.data.len() == s * s * heads * seqs,
        "the state size does not match",
    )?;
    let widths = q.ne[0] == s && k.ne[0] == s && [1, s].contains(&g.ne[0]);
    let filled = !q.ne.contains(&0) && !k.ne.contains(&0);
    call.ensure(widths && filled, "q, k or gate sizes do not match")?;
    let outputs = s * heads * tokens * seqs;
    let packed = outputs + kept.saturating_mul(state.data.len());
    call.ensure(
        count(call.result.dims)? == packed,
        "the result size does not match",
    )?;
    let mut out = vec![0.0; packed];
    let scale = 1.0 / (s as f64).sqrt();
    let row = |a: &Array<'_>, i: usize, head: usize, token: usize, seq: usize| {
        let (h, q) = (head % a.ne[1], seq * a.ne[3] / seqs.max(1));
        a.data[((q * a.ne[2] + token) * a.ne[1] + h) * a.ne[0] + i]
    };
    let fits = |a: &Array<'_>| a.ne[2] == tokens && a.ne[1] > 0 && a.ne[3] > 0;
    call.ensure(
        [&q, &k, &g, &beta].into_iter().all(fits),
        "token counts do not match",
    )?;
    for (seq, head) in (0..seqs).flat_map(|s| (0..heads).map(move |h| (s, h))) {
        let first = (seq * heads + head) * s * s;
        let mut m = state.data[first..][..s * s].to_vec();
        for token in 0..tokens {
            let of = |a: &Array<'_>, i: usize| row(a, i, head, token, seq);
            for (at, x) in m.iter_mut().enumerate() {
                *x *= of(&g, (at % s).min(g.ne[0] - 1)).exp();
            }
            let to = &mut out[((seq * tokens + token) * heads + head) * s..][..s];
            for (j, m) in m.chunks_exact_mut(s.max(1)).enumerate() {
                let known: f64 = (0..s).map(|i| m[i] * of(&k, i)).sum();
                let delta = (of(&v, j) - known) * of(&beta, 0);
                (0..s).for_each(|i| m[i] += of(&k, i) * delta);
                to[j] = (0..s).map(|i| m[i] * of(&q, i)).sum::<f64>() * scale;
            }
            if let Some(slot) = place(token, tokens, kept) {
                let at = outputs + slot * state.data.len() + first;
                out[at..at + s * s].copy_from_slice(&m);
            }
        }
    }
    call.elements(out)
}

/// Sources: `states: [n, dim, heads, cells]`, `x: [dim, heads, tokens, seqs]`, `dt`, `A`, `B`, `C`, and the cell of
/// each sequence. Word: number of states.
fn ssm_scan(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let [states, x, dt] = [call.array(0)?, call.array(1)?, call.array(2)?];
    let [a, b, c] = [call.array(3)?, call.array(4)?, call.array(5)?];
    let cells = call.integers(6)?;
    let kept = usize::try_from(call.positive(0)?).unwrap_or(1);
    let [n, dim, heads, rows] = states.ne;
    let [_, _, tokens, seqs] = x.ne;
    let groups = b.ne[1];
    let sizes = x.ne[..2] == [dim, heads] && b.ne == c.ne && b.ne == [n, groups, tokens, seqs];
    let sizes = sizes && dt.ne == [heads, tokens, seqs, 1] && [1, n].contains(&a.ne[0]);
    call.ensure(sizes && a.ne[1] == heads, "operand sizes do not match")?;
    call.ensure(
        groups > 0 && heads.is_multiple_of(groups),
        "groups do not divide the heads",
    )?;
    let mut chosen = cells
        .iter()
        .map(|&i| usize::try_from(i).ok().filter(|&i| i < rows));
    let chosen: Option<Vec<usize>> = chosen.by_ref().collect();
    let chosen = chosen.ok_or_else(|| call.refused("a cell is out of range"))?;
    call.ensure(
        chosen.len() == seqs,
        "the sequences and cells differ in number",
    )?;
    let (outputs, each) = (x.data.len(), n * dim * heads);
    let packed = outputs + kept.saturating_mul(each * seqs);
    call.ensure(
        count(call.result.dims)? == packed,
        "the result size does not match",
    )?;
    let mut out = vec![0.0; packed];
    for (seq, &cell) in chosen.iter().enumerate() {
        let mut state = states.data[cell * each..][..each].to_vec();
        for token in 0..tokens {
            let at = seq * tokens + token;
            for (row, state) in state.chunks_exact_mut(n.max(1)).enumerate() {
                let head = row / dim;
                let step = dt.data[at * heads + head];
                let step = if step > 20.0 {
                    step
                } else {
                    step.exp().ln_1p()
                };
                let input = x.data[at * heads * dim + row] * step;
                let group = (at * groups + head / (heads / groups)) * n;
                for (i, h) in state.iter_mut().enumerate() {
                    let decay = a.data[head * a.ne[0] + i.min(a.ne[0] - 1)];
                    *h = *h * (step * decay).exp() + b.data[group + i] * input;
                    out[at * heads * dim + row] += *h * c.data[group + i];
                }
            }
            if let Some(slot) = place(token, tokens, kept) {
                let to = outputs + (slot * seqs + seq) * each;
                out[to..to + each].copy_from_slice(&state);
            }
        }
    }
    call.elements(out)
}
