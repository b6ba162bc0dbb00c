use tpc_ir::op::{
    Arange, Concat, FlashAttn, Glu, GluKind, Permute, Repeat, Rope, RopeMode, SetRows, Slice,
    SoftMax, TopKMask,
};
use tpc_ir::{Dim, Value};

use super::append::{OpaqueReason, form, push};
use super::memory::{Memory, dims};
use super::operands::Operands;
use super::record::Record;
use crate::op;

/// Returns a gated activation of two operands, or of the halves of one operand.
pub(super) fn gate(
    m: &mut Memory<'_>,
    t: &Record,
    kind: GluKind,
    p: &op::Glu,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let mut op = Glu::new(kind);
    if kind.takes_alpha() {
        op.alpha = p.alpha;
    }
    if kind.takes_limit() {
        op.limit = p.limit;
    }
    let half = t.ne()[0];
    // ggml drops the last element of odd rows.
    let is_odd = |v: Value| m.graph.value(v).ty.dims[0] != Dim::constant(2 * half);
    if let &[both] = values
        && (p.swapped || is_odd(both))
    {
        let mut part = |start| {
            let slice = Slice {
                axis: 0,
                start: Dim::constant(start),
                len: Dim::constant(half),
            };
            m.push(slice, vec![both], &t.name)
        };
        let mut halves = vec![part(0)?, part(half)?];
        if p.swapped {
            halves.reverse();
        }
        return push(m, t, op.into(), halves);
    }
    if p.swapped {
        return Err(form("two operands in the other order"));
    }
    push(m, t, op.into(), values.to_vec())
}

/// Writes rows by index (axis 1 in ggml), which gives the destination a new value.
pub(super) fn set_rows(
    m: &mut Memory<'_>,
    t: &Record,
    operands: Operands<'_>,
) -> Result<Vec<Value>, OpaqueReason> {
    let (&[rows, index, old], &[_, _, target]) = (operands.values, operands.records) else {
        return Err(form("a number of operands other than three"));
    };
    if m.tensors[target].layout != t.layout || m.tensors[target].root != t.root {
        return Err(form("a result other than its destination"));
    }
    if m.shape(t.root) != m.tensors[t.root].ne() {
        return set_columns(m, t, rows, index);
    }
    // The indices repeat along the batch axes of the rows.
    let of = |v: Value| m.graph.value(v).ty.dims.clone();
    let [_, n, p, q] = of(rows);
    let whole = [n, p, q, Dim::ONE];
    let index = match of(index) == whole {
        true => index,
        false => m.push(Repeat { dims: whole }, vec![index], &t.name)?,
    };
    push(m, t, SetRows::along(1).into(), vec![old, rows, index])
}

/// Writes elements by index to a transposed cache, which stores a channel's cells contiguously. A token has an index
/// per channel; the first is the cell number.
fn set_columns(
    m: &mut Memory<'_>,
    t: &Record,
    rows: Value,
    index: Value,
) -> Result<Vec<Value>, OpaqueReason> {
    let [_, channels, ..] = m.shape(t.root);
    let elements = m.graph.value(rows).ty.elements();
    let tokens = elements.and_then(|n| n.as_const()).unwrap_or(0) / channels;
    let old = m.whole(t.root)?;
    let rows = m.reshape(rows, [channels, tokens, 1, 1], &t.name)?;
    let turn = Permute { axes: [1, 0, 2, 3] };
    let rows = m.push(turn, vec![rows], &t.name)?;
    let index = m.reshape(index, [channels, tokens, 1, 1], &t.name)?;
    let first = Slice {
        axis: 0,
        start: Dim::ZERO,
        len: Dim::ONE,
    };
    let index = m.push(first, vec![index], &t.name)?;
    let index = m.reshape(index, [tokens, 1, 1, 1], &t.name)?;
    let written = m.push(SetRows::along(0), vec![old, rows, index], &t.name)?;
    Ok(vec![written])
}

fn rotation(p: &op::Rope) -> Result<Rope, OpaqueReason> {
    let sections = p.sections;
    let mode = match p.mode {
        op::RopeMode::Norm => RopeMode::Norm,
        op::RopeMode::Neox => RopeMode::Neox,
        op::RopeMode::Mrope => RopeMode::Mrope { sections },
        op::RopeMode::Imrope => RopeMode::Imrope { sections },
        op::RopeMode::Vision => return Err(form("image RoPE")),
    };
    Ok(Rope {
        mode,
        n_dims: p.n_dims,
        n_ctx_orig: p.n_ctx_orig,
        freq_base: p.freq_base,
        freq_scale: p.freq_scale,
        ext_factor: p.ext_factor,
        attn_factor: p.attn_factor,
        beta_fast: p.beta_fast,
        beta_slow: p.beta_slow,
    })
}

pub(super) fn rope(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::Rope,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    rotate(m, t, rotation(p)?, p.offset, values.to_vec())
}

pub(super) fn rope_back(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::Rope,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let op = rotation(p)?;
    if op.ext_factor != 0.0 {
        return Err(form("an inverse rotation with extrapolated frequencies"));
    }
    let freq_scale = -op.freq_scale;
    let back = Rope { freq_scale, ..op };
    rotate(m, t, back, p.offset, values.to_vec())
}

/// Rotates rows from index `offset` on.
fn rotate(
    m: &mut Memory<'_>,
    t: &Record,
    op: Rope,
    offset: u64,
    mut all: Vec<Value>,
) -> Result<Vec<Value>, OpaqueReason> {
    if all.is_empty() {
        return Err(form("no operand"));
    }
    // ggml uses the leading factors.
    if let Some(factors) = all.get_mut(2) {
        let used = op.n_dims / 2;
        if m.graph.value(*factors).ty.dims[0]
            .as_const()
            .is_some_and(|n| n > used)
        {
            let slice = Slice {
                axis: 0,
                start: Dim::ZERO,
                len: Dim::constant(used),
            };
            *factors = m.push(slice, vec![*factors], &t.name)?;
        }
    }
    if offset == 0 {
        return push(m, t, op.into(), all);
    }
    let (x, n) = (all[0], t.ne()[0]);
    let rest = n
        .checked_sub(offset)
        .ok_or_else(|| form("an offset beyond the row"))?;
    let mut part = |start, len| {
        let (start, len) = (Dim::constant(start), Dim::constant(len));
        m.push(
            Slice {
                axis: 0,
                start,
                len,
            },
            vec![x],
            &t.name,
        )
    };
    let (head, tail) = (part(0, offset)?, part(offset, rest)?);
    all[0] = tail;
    let tail = m.push(op, all, &t.name)?;
    push(m, t, Concat { axis: 0 }.into(), vec![head, tail])
}

fn without_padding(
    m: &mut Memory<'_>,
    t: &Record,
    mask: Value,
    rows: u64,
) -> Result<Value, OpaqueReason> {
    if m.graph.value(mask).ty.dims[1]
        .as_const()
        .is_none_or(|n| n <= rows)
    {
        return Ok(mask);
    }
    let slice = Slice {
        axis: 1,
        start: Dim::ZERO,
        len: Dim::constant(rows),
    };
    Ok(m.push(slice, vec![mask], &t.name)?)
}

fn no_mask(m: &mut Memory<'_>, t: &Record, cells: u64, rows: u64) -> Result<Value, OpaqueReason> {
    let zeros = Arange::new(0.0, 0.0, Dim::constant(cells));
    let row = m.push(zeros, Vec::new(), &t.name)?;
    let all = Repeat {
        dims: dims([cells, rows, 1, 1]),
    };
    Ok(m.push(all, vec![row], &t.name)?)
}

fn lacks(t: &Record, source: usize) -> bool {
    t.src.get(source).is_none_or(Option::is_none)
}

pub(super) fn soft_max(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::SoftMax,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let mut all = values.to_vec();
    let [cells, rows, ..] = t.ne();
    if all.len() > 1 && lacks(t, 1) {
        all.insert(1, no_mask(m, t, cells, rows)?);
    }
    if let Some(mask) = all.get(1).copied() {
        all[1] = without_padding(m, t, mask, rows)?;
    }
    let op = SoftMax {
        scale: p.scale,
        max_bias: p.max_bias,
        heads: None,
    };
    push(m, t, op.into(), all)
}

/// Keeps the mask in picked cells. Scores, the members of picks, and extra cells are optional sources.
pub(super) fn top_k_mask(
    m: &mut Memory<'_>,
    t: &Record,
    operands: Operands<'_>,
) -> Result<Vec<Value>, OpaqueReason> {
    let op = TopKMask {
        has_scores: !lacks(t, 2),
        has_members: !lacks(t, 3),
        has_extra: !lacks(t, 4),
    };
    push(m, t, op.into(), operands.values.to_vec())
}

pub(super) fn flash_attn(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::FlashAttnExt,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let mut all = values.to_vec();
    let [_, _, tokens, _] = t.ne();
    if all.len() > 2 && lacks(t, 3) {
        let cells = m.graph.value(all[1]).ty.dims[1].as_const();
        let cells = cells.ok_or_else(|| form("an unknown number of cells"))?;
        all.insert(3, no_mask(m, t, cells, tokens)?);
    }
    if all.len() < 4 {
        return Err(form("too few operands"));
    }
    // The result is [dv, heads, tokens].
    all[3] = without_padding(m, t, all[3], tokens)?;
    let op = FlashAttn {
        scale: p.scale,
        max_bias: p.max_bias,
        softcap: p.softcap,
        heads: None,
        lse: false,
    };
    push(m, t, op.into(), all)
}
