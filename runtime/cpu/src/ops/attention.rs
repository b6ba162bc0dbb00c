//! Scaled dot-product attention over a cache.
//!
//! A task is a stream's KV head with up to [`ROWS`] query rows: a block of tokens times the query heads that share
//! the KV head. The task reads the cache once, in tiles of [`TILE`] cells decoded to f32. Each row keeps the largest
//! logit, the sum of exponentials and the weighted sum of values. A larger logit rescales both sums (online softmax,
//! Milakov and Gimelshein 2018). Tasks, tiles and bits do not depend on the number of workers.
//!
//! Cells that no row of a task sees may have invalid contents.
#![allow(unsafe_code)]

use tpc_ir::DType;
use tpc_ir::op::FlashAttn;

use super::attention_tile::{
    Cells, GROUP, TILE, add_values, cap, exponentials, mask_logits, scale, scores,
};
use super::slopes::Slopes;
use super::soft_max::mask_row;
use crate::elements::{prefetch_rows, read_row, read_rows, real, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};
use crate::math::{LANES, exp};
use crate::view::View;

/// Maximum number of query rows of a task.
const ROWS: usize = 32;
/// Maximum number of query rows for reading an f16 cache in place.
const FEW: usize = 8;

#[derive(Debug)]
struct Attention {
    scale: f32,
    softcap: f32,
    slopes: Slopes,
    /// True if each row of the result ends with its log-sum-exp.
    lse: bool,
}

pub(super) fn flash_attn(op: &FlashAttn, request: &Request<'_>) -> Selected {
    let operands = [Elements::Real; 5];
    request.expect(
        &operands[..request.operands.len().clamp(4, 5)],
        &[Elements::Real],
    )?;
    Ok(Box::new(Attention {
        scale: op.scale,
        softcap: op.softcap,
        slopes: Slopes::of(op.max_bias, op.heads.as_ref())?,
        lse: op.lse,
    }))
}

struct Tensors<'a> {
    q: &'a View,
    k: &'a View,
    v: &'a View,
    mask: &'a View,
    sinks: Option<&'a View>,
    y: &'a View,
}

impl<'a> Tensors<'a> {
    fn of(
        operands: &'a [View],
        results: &'a [View],
        lse: bool,
    ) -> Result<Tensors<'a>, KernelError> {
        let ([q, k, v, mask, sinks @ ..], [y]) = (operands, results) else {
            return Err(KernelError::Shape {
                what: "wrong number of operands or results",
            });
        };
        let sinks = sinks.first();
        let [dk, tokens, heads, streams] = q.ne;
        let [dk_k, cells, kv_heads, streams_k] = k.ne;
        let dv = v.ne[0];
        let keys = dk_k == dk && streams_k == streams && v.ne[1..] == k.ne[1..];
        ensure(keys, "mismatched sizes of q, k and v")?;
        ensure(
            y.ne == [dv + usize::from(lse), heads, tokens, streams],
            "wrong sizes of the result",
        )?;
        let grouped = heads == 0 || kv_heads > 0 && heads.is_multiple_of(kv_heads);
        ensure(grouped, "KV heads do not divide heads")?;
        let masked = mask.ne[..2] == [cells, tokens] && (cells == 0 || !mask.ne[2..].contains(&0));
        ensure(masked, "wrong sizes of the mask")?;
        let line = |s: &View| s.ne == [heads, 1, 1, 1] && !s.dtype.is_quantised();
        ensure(sinks.is_none_or(line), "wrong sizes of the sinks")?;
        let blocks = |t: &View| t.ne[0].is_multiple_of(t.dtype.block_len() as usize);
        let whole = [q, k, v, y].into_iter().all(blocks) && !mask.dtype.is_quantised();
        ensure(whole, "rows are not whole blocks")?;
        Ok(Tensors {
            q,
            k,
            v,
            mask,
            sinks,
            y,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Task {
    stream: usize,
    kv_head: usize,
    /// First query head and number of heads.
    heads: [usize; 2],
    /// First token and number of tokens.
    tokens: [usize; 2],
}

#[derive(Clone, Copy, Debug)]
struct Tasks {
    kv_heads: usize,
    group: usize,
    tokens: usize,
    /// Query heads and tokens of a task.
    block: [usize; 2],
    count: usize,
}

impl Tasks {
    fn of(t: &Tensors<'_>) -> Tasks {
        let [_, tokens, heads, streams] = t.q.ne;
        let kv_heads = t.k.ne[2];
        let group = heads.checked_div(kv_heads).unwrap_or(0).max(1);
        let across = group.min(ROWS);
        let block = [across, (ROWS / across).min(tokens.max(1))];
        let per_head = group.div_ceil(block[0]) * tokens.div_ceil(block[1]);
        let count = if heads == 0 {
            0
        } else {
            per_head * kv_heads * streams
        };
        Tasks {
            kv_heads,
            group,
            tokens,
            block,
            count,
        }
    }

    fn task(&self, i: usize) -> Task {
        let [across, down] = self.block;
        let head_blocks = self.group.div_ceil(across);
        let token_blocks = self.tokens.div_ceil(down);
        let (head_block, i) = (i % head_blocks, i / head_blocks);
        let (token_block, i) = (i % token_blocks, i / token_blocks);
        let (kv_head, stream) = (i % self.kv_heads, i / self.kv_heads);
        let (head, token) = (head_block * across, token_block * down);
        Task {
            stream,
            kv_head,
            heads: [kv_head * self.group + head, across.min(self.group - head)],
            tokens: [token, down.min(self.tokens - token)],
        }
    }
}

impl Task {
    const fn rows(&self) -> usize {
        self.heads[1] * self.tokens[1]
    }

    /// Returns a row's token and head, ordered by token.
    const fn row(&self, i: usize) -> [usize; 2] {
        let [head, heads] = self.heads;
        [self.tokens[0] + i / heads, head + i % heads]
    }
}

/// Padded widths of key and value rows.
fn widths(dk: usize, dv: usize) -> [usize; 2] {
    [dk.next_multiple_of(LANES), dv.next_multiple_of(LANES)]
}

fn lengths(dk: usize, dv: usize) -> [usize; 6] {
    let [dk, dv] = widths(dk, dv);
    [
        ROWS * dk,
        TILE * dk,
        TILE * dv,
        ROWS * TILE,
        ROWS * TILE,
        ROWS * dv,
    ]
}

/// A worker's memory. Rows of `q` and `keys` have `widths[0]` elements, rows of `values` and `sums` `widths[1]`, and
/// others [`TILE`].
struct Memory<'a> {
    widths: [usize; 2],
    q: &'a mut [f32],
    keys: &'a mut [f32],
    values: &'a mut [f32],
    logits: &'a mut [f32],
    masks: &'a mut [f32],
    sums: &'a mut [f32],
    most: [f32; ROWS],
    total: [f64; ROWS],
    /// True for rows that see a cell of the tile.
    sees: [bool; ROWS],
}

impl Launch for Attention {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        let width = |i: usize| operands.get(i).map_or(0, |s| s[0]);
        bytes_for(&lengths(width(0), width(2)))
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let t = Tensors::of(call.operands, call.results, self.lse)?;
        let heads = t.q.ne[2];
        ensure(
            self.slopes.fit(heads),
            "mismatched heads of q and the window",
        )?;
        let [dk, dv] = [t.q.ne[0], t.v.ne[0]];
        let [q, keys, values, logits, masks, sums] = floats(call.scratch, lengths(dk, dv))?;
        // Pads rows with zeros to whole groups of lanes. Later writes keep the padding.
        keys.fill(0.0);
        values.fill(0.0);
        let mut memory = Memory {
            widths: widths(dk, dv),
            q,
            keys,
            values,
            logits,
            masks,
            sums,
            most: [0.0; ROWS],
            total: [0.0; ROWS],
            sees: [false; ROWS],
        };
        let tasks = Tasks::of(&t);
        for i in call.worker.items(tasks.count) {
            // SAFETY: caller's contract; the views fit; the task is this worker's.
            unsafe { self.attend(&t, tasks.task(i), &mut memory) };
        }
        Ok(())
    }
}

impl Attention {
    /// Computes the rows of a task.
    ///
    /// # Safety
    /// The views fit, and no other thread uses the rows of the result.
    unsafe fn attend(&self, t: &Tensors<'_>, task: Task, m: &mut Memory<'_>) {
        // SAFETY: caller's contract.
        unsafe {
            load_queries(t, task, m);
            let cells = t.k.ne[1];
            for from in (0..cells).step_by(TILE) {
                self.tile(t, task, [from, TILE.min(cells - from)], m);
            }
            self.finish(t, task, m);
        }
    }

    /// Adds the cells `[from, from + n)`.
    ///
    /// # Safety
    /// Same as [`Self::attend`].
    unsafe fn tile(&self, t: &Tensors<'_>, task: Task, [from, n]: [usize; 2], m: &mut Memory<'_>) {
        let [dk, dv] = m.widths;
        let rows = task.rows();
        let mut seen = [false; TILE];
        // SAFETY: the cells exist.
        if !unsafe { load_masks(t, task, [from, n], m, &mut seen) } {
            return;
        }
        let first = seen.iter().position(|s| *s).unwrap_or(0);
        let end = seen.iter().rposition(|s| *s).map_or(n, |last| last + 1);
        let at = [from, task.kv_head, task.stream];
        // Few rows read f16 in place. For more rows, the tile is decoded once.
        let whole = seen[first..end].iter().all(|s| *s) && end.next_multiple_of(GROUP) <= n;
        let in_place = |x: &View| {
            let fits = x.dtype == DType::F16 && x.has_dense_rows() && x.ne[0].is_multiple_of(LANES);
            whole && rows <= FEW && fits
        };
        // SAFETY: the cells exist. If read in place, all cells of their groups exist. Cells that no row sees are not
        // used as numbers.
        unsafe {
            let range = [first, end];
            let keys = cells(t.k, in_place(t.k), at, (&seen, range), m.keys, dk);
            scores(m.q, keys, dk, rows, range, m.logits);
        }
        for row in 0..rows {
            self.weigh(row, task.row(row)[1], t.q.ne[2], m);
        }
        // SAFETY: as above.
        unsafe {
            let range = [first, end];
            let values = cells(t.v, in_place(t.v), at, (&seen, range), m.values, dv);
            add_values(m.logits, values, dv, rows, range, m.sums);
        }
    }

    /// Turns a row's logits into weights. Sums use the whole tile, so a cell's lane is independent of other rows.
    fn weigh(&self, row: usize, head: usize, heads: usize, m: &mut Memory<'_>) {
        let (logits, _) = m.logits[row * TILE..].as_chunks_mut::<TILE>();
        let (mask, _) = m.masks[row * TILE..].as_chunks::<TILE>();
        let (logits, mask) = (&mut logits[0], &mask[0]);
        if !m.sees[row] {
            return logits.fill(0.0);
        }
        let mut factor = self.scale;
        if self.softcap != 0.0 {
            cap(logits, self.scale / self.softcap, self.softcap);
            factor = 1.0;
        }
        let most = mask_logits(logits, factor, mask, self.slopes.slope(head, heads));
        self.rescale(row, most.max(m.most[row]), m);
        let (logits, _) = m.logits[row * TILE..].as_chunks_mut::<TILE>();
        if m.most[row] == f32::NEG_INFINITY {
            logits[0].fill(0.0);
        } else {
            m.total[row] += f64::from(exponentials(&mut logits[0], m.most[row]));
        }
    }

    fn rescale(&self, row: usize, most: f32, m: &mut Memory<'_>) {
        if most > m.most[row] {
            let factor = exp(m.most[row] - most);
            m.total[row] *= f64::from(factor);
            let dv = m.widths[1];
            scale(&mut m.sums[row * dv..][..dv], factor);
            m.most[row] = most;
        }
    }

    /// Adds the sinks and writes the rows.
    ///
    /// # Safety
    /// Same as [`Self::attend`].
    unsafe fn finish(&self, t: &Tensors<'_>, task: Task, m: &mut Memory<'_>) {
        let dv = m.widths[1];
        for row in 0..task.rows() {
            let [token, head] = task.row(row);
            if let Some(sinks) = t.sinks {
                // SAFETY: the sinks have one element per head.
                let sink = unsafe { real(sinks, [head, 0, 0, 0]) };
                self.rescale(row, sink.max(m.most[row]), m);
                if m.most[row] > f32::NEG_INFINITY {
                    m.total[row] += f64::from(exp(sink - m.most[row]));
                }
            }
            let sums = &mut m.sums[row * dv..][..t.v.ne[0]];
            if m.total[row] > 0.0 {
                scale(sums, (1.0 / m.total[row]) as f32);
            } else {
                sums.fill(0.0);
            }
            let to = t.y.row([head, token, task.stream]);
            // SAFETY: the row of the result exists, and is this worker's.
            unsafe { write_row(t.y, to, 0, sums) };
            if self.lse {
                let lse = [(f64::from(m.most[row]) + m.total[row].ln()) as f32];
                // SAFETY: as above; the row has one more element.
                unsafe { write_row(t.y, to, t.v.ne[0], &lse) };
            }
        }
    }
}

/// Decodes the query rows, and clears the sums.
///
/// # Safety
/// The rows exist.
unsafe fn load_queries(t: &Tensors<'_>, task: Task, m: &mut Memory<'_>) {
    let [dk, dv] = m.widths;
    for row in 0..task.rows() {
        let [token, head] = task.row(row);
        let q = &mut m.q[row * dk..][..dk];
        q[t.q.ne[0]..].fill(0.0);
        // SAFETY: caller's contract.
        unsafe {
            read_row(
                t.q,
                t.q.row([token, head, task.stream]),
                0,
                &mut q[..t.q.ne[0]],
            );
        };
        m.sums[row * dv..][..dv].fill(0.0);
        m.most[row] = f32::NEG_INFINITY;
        m.total[row] = 0.0;
    }
}

/// Returns a range of a tile's keys or values: in place, or decoded to rows that are `width` apart. Decoded cells
/// that no row sees are zero.
///
/// # Safety
/// The cells exist. If read in place, they are f16 without gaps.
unsafe fn cells<'a>(
    x: &View,
    in_place: bool,
    [from, kv_head, stream]: [usize; 3],
    (seen, [first, end]): (&[bool; TILE], [usize; 2]),
    out: &'a mut [f32],
    width: usize,
) -> Cells<'a> {
    let at = [from + first, kv_head, stream];
    if in_place {
        prefetch_rows(x, [at[0] + TILE, at[1], at[2]], end - first);
        return Cells::F16(x.row([from, kv_head, stream]), x.nb[1]);
    }
    // SAFETY: caller's contract.
    unsafe { read_rows(x, at, [end - first, TILE], &mut out[first * width..], width) };
    for i in (first..end).filter(|&i| !seen[i]) {
        out[i * width..][..x.ne[0]].fill(0.0);
    }
    Cells::Decoded(out)
}

/// Decodes every row's masks of cells `[from, from + n)`, and marks cells that a row sees. Returns `false` if no row
/// sees a cell.
///
/// # Safety
/// The cells exist.
unsafe fn load_masks(
    t: &Tensors<'_>,
    task: Task,
    [from, n]: [usize; 2],
    m: &mut Memory<'_>,
    seen: &mut [bool; TILE],
) -> bool {
    let mut any = false;
    for row in 0..task.rows() {
        let [token, head] = task.row(row);
        let (done, rest) = m.masks.split_at_mut(row * TILE);
        let mask = &mut rest[..TILE];
        mask[n..].fill(f32::NEG_INFINITY);
        // Most models share a mask between heads.
        if t.mask.ne[2] == 1 && row % task.heads[1] != 0 {
            mask.copy_from_slice(&done[(row - 1) * TILE..]);
            m.sees[row] = m.sees[row - 1];
            continue;
        }
        // SAFETY: caller's contract.
        unsafe {
            read_row(
                t.mask,
                mask_row(t.mask, [token, head, task.stream]),
                from,
                &mut mask[..n],
            );
        };
        m.sees[row] = false;
        for (x, seen) in mask.iter().zip(seen.iter_mut()) {
            let sees = *x != f32::NEG_INFINITY;
            *seen |= sees;
            m.sees[row] |= sees;
        }
        any |= m.sees[row];
    }
    any
}
