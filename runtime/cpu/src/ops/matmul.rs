//! Matrix products on views of any type, used if there is no packed kernel.
//!
//! Decodes a few rows at a time and multiplies them with every column of a block. Each element is one [`dot`].
#![allow(unsafe_code)]

use tpc_ir::Interval;
use tpc_ir::op::MulMatId;

use super::rows::windowed;
use crate::elements::{int, read_row, row, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::dot;
use crate::view::View;

const ROWS: usize = 16;
const COLUMNS: usize = 64;

fn scratch_for(operands: &[Sizes]) -> usize {
    let k = operands.first().map_or(0, |s| s[0]);
    bytes_for(&[ROWS * k, k])
}

/// Decodes rows `[first, first + n)`.
///
/// # Safety
/// The rows exist and are readable; `out` has their length.
unsafe fn decode_rows(w: &View, [first, n]: [usize; 2], [i2, i3]: [usize; 2], out: &mut [f32]) {
    let k = w.ne[0];
    if k == 0 {
        return;
    }
    for (i, out) in out[..n * k].chunks_exact_mut(k).enumerate() {
        // SAFETY: caller's contract.
        unsafe { read_row(w, w.row([first + i, i2, i3]), 0, out) };
    }
}

fn products(rows: &[f32], n: usize, x: &[f32]) -> [f32; ROWS] {
    let mut out = [0.0; ROWS];
    if !x.is_empty() {
        for (y, row) in out[..n].iter_mut().zip(rows.chunks_exact(x.len())) {
            *y = dot(row, x);
        }
    }
    out
}

/// Computes `out[i, j] = Σ a[k, i] · b[k, j]` per batch.
#[derive(Debug)]
struct Product;

pub(super) fn mul_mat(request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real; 2], &[Elements::Real])?;
    if request.results[0].is_quantised() {
        return Err("the result of a product is quantised");
    }
    Ok(Box::new(Product))
}

impl Launch for Product {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        scratch_for(operands)
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([a, b], [y]) = call.views()?;
        let [k, m, p, q] = a.ne;
        let [k_b, n, p_b, q_b] = b.ne;
        ensure(
            k == k_b && y.ne == [m, n, p_b, q_b],
            "wrong sizes of the product",
        )?;
        if y.is_empty() {
            return Ok(());
        }
        let fits = p > 0 && q > 0 && p_b.is_multiple_of(p) && q_b.is_multiple_of(q);
        ensure(fits, "batches of a do not divide batches of b")?;
        let [rows, buffer] = floats(call.scratch, [ROWS * k, k])?;
        let (down, across) = (m.div_ceil(ROWS), n.div_ceil(COLUMNS));
        for unit in call.worker.items(down * across * p_b * q_b) {
            let (block, batch) = (unit % (down * across), unit / (down * across));
            let (i2, i3) = (batch % p_b, batch / p_b);
            let (first, from) = (block % down * ROWS, block / down * COLUMNS);
            let count = ROWS.min(m - first);
            // SAFETY: caller's contract; rows and columns exist, and the block is this worker's.
            unsafe {
                decode_rows(&a, [first, count], [i2 / (p_b / p), i3 / (q_b / q)], rows);
                for column in from..(from + COLUMNS).min(n) {
                    let at = [column, i2, i3];
                    let values = products(rows, count, row(&b, at, buffer));
                    write_row(&y, y.row(at), first, &values[..count]);
                }
            }
        }
        Ok(())
    }
}

/// Computes `out[i, u, t] = Σ w[k, i, ids[u, t]] · x[k, u mod rows, t]`. Experts outside the window give zero.
#[derive(Debug)]
struct ExpertProduct {
    window: Option<Interval>,
}

pub(super) fn mul_mat_id(op: &MulMatId, request: &Request<'_>) -> Selected {
    let operands = [Elements::Real, Elements::Real, Elements::Int];
    request.expect(&operands, &[Elements::Real])?;
    if request.results[0].is_quantised() {
        return Err("the result of a product is quantised");
    }
    Ok(Box::new(ExpertProduct { window: op.window }))
}

impl Launch for ExpertProduct {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        scratch_for(operands)
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([w, x, ids], [y]) = call.views()?;
        let [k, m, experts, _] = w.ne;
        let [used, tokens, ..] = ids.ne;
        let fits = x.ne[0] == k && x.ne[2] == tokens && y.ne == [m, used, tokens, 1];
        let ranks = w.ne[3] == 1 && x.ne[3] == 1 && ids.ne[2..] == [1, 1];
        ensure(fits && ranks, "wrong sizes of the experts' product")?;
        if y.is_empty() {
            return Ok(());
        }
        let repeats = x.ne[1] > 0 && used.is_multiple_of(x.ne[1]);
        ensure(repeats, "rows per token of x do not divide rows of ids")?;
        let [rows, buffer] = floats(call.scratch, [ROWS * k, k])?;
        let down = m.div_ceil(ROWS);
        for unit in call.worker.items(down * used * tokens) {
            let (block, at) = (unit % down, unit / down);
            let (u, t) = (at % used, at / used);
            let first = block * ROWS;
            let count = ROWS.min(m - first);
            // SAFETY: caller's contract; the block is this worker's, and the expert is checked.
            unsafe {
                let id = int(&ids, [u, t, 0, 0]);
                let values = match windowed("expert", id, self.window, experts)? {
                    Some(expert) => {
                        decode_rows(&w, [first, count], [expert, 0], rows);
                        products(rows, count, row(&x, [u % x.ne[1], t, 0], buffer))
                    }
                    None => [0.0; ROWS],
                };
                write_row(&y, y.row([u, t, 0]), first, &values[..count]);
            }
        }
        Ok(())
    }
}
