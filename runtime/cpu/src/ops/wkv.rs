//! RWKV's recurrence.
#![allow(unsafe_code)]

use crate::elements::{read_row, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::{LANES, fold};
use crate::simd::vectorised;
use crate::view::View;

/// The state may be updated in place.
#[derive(Debug)]
struct Recurrence;

pub(super) fn wkv(request: &Request<'_>) -> Selected {
    let operands = [Elements::Real; 7];
    let n = request.operands.len().clamp(5, 7);
    request.expect(&operands[..n], &[Elements::Real; 2])?;
    let mut all = request.operands.iter().chain(request.results);
    if all.any(|t| t.is_quantised()) {
        return Err("a state or activation is quantised");
    }
    Ok(Box::new(Recurrence))
}

vectorised! {
    /// Computes `Σ x · y` per lane.
    fn read(x: &[f32], y: &[f32]) -> f32 {
        let n = x.len();
        let y = &y[..n];
        let mut sums = [0.0_f32; LANES];
        let mut at = 0;
        while at + LANES <= n {
            for (l, sum) in sums.iter_mut().enumerate() {
                *sum = x[at + l].mul_add(y[at + l], *sum);
            }
            at += LANES;
        }
        for i in at..n {
            sums[i - at] = x[i].mul_add(y[i], sums[i - at]);
        }
        fold(sums)
    }
}

vectorised! {
    /// Computes `x ← x · decay + key · value + back · sum`.
    fn step(x: &mut [f32], decay: &[f32], key: &[f32], value: f32, back: &[f32], sum: f32) {
        let n = x.len();
        let (decay, key, back) = (&decay[..n], &key[..n], &back[..n]);
        for i in 0..n {
            let new = key[i].mul_add(value, back[i] * sum);
            x[i] = x[i].mul_add(decay[i], new);
        }
    }
}

fn lengths(operands: &[Sizes]) -> [usize; 7] {
    let [dk, dv, ..] = operands.get(4).copied().unwrap_or_default();
    [dk * dv, dk, dk, dk, dk, dk, dv]
}

fn check(operands: &[View], results: &[View]) -> Result<(), KernelError> {
    let ([r, w, k, v, state, more @ ..], [y, next]) = (operands, results) else {
        return ensure(false, "wrong number of operands or results");
    };
    let [dv, heads, n_t, n_s] = v.ne;
    let dk = r.ne[0];
    let keys = [dk, heads, n_t, n_s];
    let fits = [r, w, k].iter().all(|t| t.ne == keys);
    let more = match more {
        [] => true,
        [bonus] => bonus.ne == [dk, heads, 1, 1],
        [a, b] => a.ne == keys && b.ne == keys,
        _ => false,
    };
    ensure(fits && more, "mismatched sizes of keys and values")?;
    let states = state.ne == [dk, dv, heads, n_s] && next.ne == state.ne;
    ensure(
        states && y.ne == v.ne,
        "mismatched sizes of the state and the result",
    )
}

impl Launch for Recurrence {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        bytes_for(&lengths(operands))
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        check(call.operands, call.results)?;
        let ([r, w, k, v, from, more @ ..], [y, next]) = (call.operands, call.results) else {
            return ensure(false, "wrong number of operands or results");
        };
        let [dv, heads, n_t, n_s] = v.ne;
        let dk = r.ne[0];
        let sizes: [Sizes; 5] = [r.ne, w.ne, k.ne, v.ne, from.ne];
        let [state, reader, decay, key, seen, back, values] =
            floats(call.scratch, lengths(&sizes))?;
        seen.fill(0.0);
        back.fill(0.0);
        for unit in call.worker.items(heads * n_s) {
            let (h, s) = (unit % heads, unit / heads);
            // SAFETY: caller's contract; the views fit; the head is this worker's.
            unsafe {
                for j in 0..dv {
                    read_row(from, from.row([j, h, s]), 0, &mut state[j * dk..][..dk]);
                }
                for t in 0..n_t {
                    read_row(r, r.row([h, t, s]), 0, reader);
                    read_row(w, w.row([h, t, s]), 0, decay);
                    read_row(k, k.row([h, t, s]), 0, key);
                    read_row(v, v.row([h, t, s]), 0, values);
                    let mut bonus = None;
                    match more {
                        [u] => {
                            read_row(u, u.row([h, 0, 0]), 0, seen);
                            seen.iter_mut().zip(&*key).for_each(|(u, k)| *u *= k);
                            bonus = Some(read(reader, seen));
                        }
                        [a, b] => {
                            read_row(a, a.row([h, t, s]), 0, seen);
                            read_row(b, b.row([h, t, s]), 0, back);
                        }
                        _ => {}
                    }
                    for (j, value) in values.iter_mut().enumerate() {
                        let row = &mut state[j * dk..][..dk];
                        *value = match bonus {
                            Some(bonus) => {
                                let old = read(row, reader);
                                step(row, decay, key, *value, back, 0.0);
                                bonus.mul_add(*value, old)
                            }
                            None => {
                                let sum = read(row, seen);
                                step(row, decay, key, *value, back, sum);
                                read(row, reader)
                            }
                        };
                    }
                    write_row(y, y.row([h, t, s]), 0, values);
                }
                for j in 0..dv {
                    write_row(next, next.row([j, h, s]), 0, &state[j * dk..][..dk]);
                }
            }
        }
        Ok(())
    }
}
