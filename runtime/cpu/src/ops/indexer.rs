//! Scores of a sparse-attention indexer.
#![allow(unsafe_code)]

use super::attention_tile::{Cells, TILE, scores};
use crate::elements::{read_row, real, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::LANES;
use crate::view::View;

/// Computes `score[c, t] = Σ_h w[h, t] · max(0, q[:, h, t] · k[:, c])` per stream.
#[derive(Debug)]
struct Indexer;

pub(super) fn lightning_indexer(request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real; 3], &[Elements::Real])?;
    if request.operands[2].is_quantised() || request.results[0].is_quantised() {
        return Err("the weights or scores are quantised");
    }
    Ok(Box::new(Indexer))
}

fn lengths(d: usize, heads: usize) -> [usize; 3] {
    let d = d.next_multiple_of(LANES);
    [heads * d, TILE * d, heads * TILE]
}

/// Decodes rows, padded with zeros to `width` elements each.
///
/// # Safety
/// The rows exist.
unsafe fn load(
    x: &View,
    n: usize,
    width: usize,
    at: impl Fn(usize) -> [usize; 3],
    out: &mut [f32],
) {
    for (i, out) in out.chunks_exact_mut(width).take(n).enumerate() {
        let (row, rest) = out.split_at_mut(x.ne[0]);
        rest.fill(0.0);
        // SAFETY: caller's contract.
        unsafe { read_row(x, x.row(at(i)), 0, row) };
    }
}

impl Launch for Indexer {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        let [d, heads, ..] = operands.first().copied().unwrap_or_default();
        bytes_for(&lengths(d, heads))
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([q, k, w], [y]) = call.views()?;
        let [d, heads, tokens, streams] = q.ne;
        let cells = k.ne[2];
        let fits = k.ne == [d, 1, cells, streams] && w.ne == [heads, tokens, 1, streams];
        ensure(
            fits && y.ne == [cells, tokens, 1, streams],
            "wrong sizes of the scores",
        )?;
        let whole = d.is_multiple_of(q.dtype.block_len().max(k.dtype.block_len()) as usize);
        ensure(whole, "rows are not whole blocks")?;
        let [queries, keys, dots] = floats(call.scratch, lengths(d, heads))?;
        let width = d.next_multiple_of(LANES).max(LANES);
        let blocks = cells.div_ceil(TILE);
        let mut loaded = None;
        for unit in call.worker.items(blocks * tokens * streams) {
            let (from, at) = (unit % blocks * TILE, unit / blocks);
            let (token, stream) = (at % tokens, at / tokens);
            let n = TILE.min(cells - from);
            let mut sums = [0.0_f32; TILE];
            // SAFETY: caller's contract; the views fit; the scores are this worker's.
            unsafe {
                if loaded != Some(at) && d > 0 {
                    load(&q, heads, width, |h| [h, token, stream], queries);
                    loaded = Some(at);
                }
                if d > 0 {
                    load(&k, n, width, |c| [0, from + c, stream], keys);
                    scores(queries, Cells::Decoded(keys), width, heads, [0, n], dots);
                } else {
                    dots.fill(0.0);
                }
                for h in 0..heads {
                    let weight = real(&w, [h, token, 0, stream]);
                    for (sum, dot) in sums[..n].iter_mut().zip(&dots[h * TILE..]) {
                        *sum = weight.mul_add(dot.max(0.0), *sum);
                    }
                }
                write_row(&y, y.row([token, 0, stream]), from, &sums[..n]);
            }
        }
        Ok(())
    }
}
