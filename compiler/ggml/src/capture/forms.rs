//! Ops of ggml whose operands or parameters are arranged otherwise in the IR.

use tpc_ir::op::{Concat, FlashAttn, Glu, Permute, Rope, RopeMode, SetRows, Slice, SoftMax};
use tpc_ir::{Dim, Value};

use super::memory::Memory;
use super::ops::{Misfit, form, push};
use super::record::Tensor;

/// A gated activation of two operands, or of one that holds both halves.
pub(super) fn gated(
    m: &mut Memory<'_>,
    t: &Tensor,
    op: Glu,
    all: Vec<Value>,
) -> Result<Vec<Value>, Misfit> {
    let swapped = t.int(1) != 0;
    if let ([both], true) = (all.as_slice(), swapped) {
        let half = t.ne()[0];
        let mut part = |start| {
            let slice = Slice {
                axis: 0,
                start: Dim::constant(start),
                len: Dim::constant(half),
            };
            m.push(slice, vec![*both], &t.name)
        };
        let (up, gate) = (part(0)?, part(half)?);
        return push(m, t, op.into(), vec![gate, up]);
    }
    if swapped {
        return Err(form("two operands in the other order"));
    }
    push(m, t, op.into(), all)
}

/// Rows written by index: along axis 1 in ggml. The memory that they go to becomes a new value.
pub(super) fn set_rows(
    m: &mut Memory<'_>,
    t: &Tensor,
    operands: &[usize],
    values: &[Value],
) -> Result<Vec<Value>, Misfit> {
    let (&[rows, index, old], &[_, _, target]) = (values, operands) else {
        return Err(form("other than three operands"));
    };
    if m.tensors[target].layout != t.layout || m.tensors[target].root != t.root {
        return Err(form("a result that is not what it writes to"));
    }
    if m.held(t.root) != m.tensors[t.root].ne() {
        return set_columns(m, t, rows, index);
    }
    push(m, t, SetRows { axis: 1 }.into(), vec![old, rows, index])
}

/// Elements written by index into a cache that has the cells of a channel side by side. By convention the indices of a
/// token are those of its cell in every channel in order, so that the first is the cell.
fn set_columns(
    m: &mut Memory<'_>,
    t: &Tensor,
    rows: Value,
    index: Value,
) -> Result<Vec<Value>, Misfit> {
    let [_, channels, ..] = m.held(t.root);
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
    let written = m.push(SetRows { axis: 0 }, vec![old, rows, index], &t.name)?;
    Ok(vec![written])
}

/// The rotation that the parameters say.
fn rotation(t: &Tensor) -> Result<Rope, Misfit> {
    let size = |i| u64::try_from(t.int(i)).map_err(|_| form("a negative size"));
    let sections =
        || -> Result<[u64; 4], Misfit> { Ok([size(11)?, size(12)?, size(13)?, size(14)?]) };
    // ggml's bits: 2 halves, 8 sections, 32 sections in turn.
    let mode = match t.int(2) {
        0 => RopeMode::Norm,
        2 => RopeMode::Neox,
        8 => RopeMode::Mrope {
            sections: sections()?,
        },
        40 => RopeMode::Imrope {
            sections: sections()?,
        },
        _ => return Err(form("a mode of rotation that the IR does not have")),
    };
    Ok(Rope {
        mode,
        n_dims: size(1)?,
        n_ctx_orig: size(4)?,
        freq_base: t.float(5),
        freq_scale: t.float(6),
        ext_factor: t.float(7),
        attn_factor: t.float(8),
        beta_fast: t.float(9),
        beta_slow: t.float(10),
    })
}

pub(super) fn rope(
    m: &mut Memory<'_>,
    t: &Tensor,
    _: &[usize],
    values: &[Value],
) -> Result<Vec<Value>, Misfit> {
    rotate(m, t, rotation(t)?, values.to_vec())
}

/// A rotation the other way: by the negative of every angle.
pub(super) fn rope_back(
    m: &mut Memory<'_>,
    t: &Tensor,
    _: &[usize],
    values: &[Value],
) -> Result<Vec<Value>, Misfit> {
    let op = rotation(t)?;
    if op.ext_factor != 0.0 {
        return Err(form("a rotation back with extrapolated frequencies"));
    }
    let freq_scale = -op.freq_scale;
    rotate(m, t, Rope { freq_scale, ..op }, values.to_vec())
}

fn rotate(
    m: &mut Memory<'_>,
    t: &Tensor,
    op: Rope,
    mut all: Vec<Value>,
) -> Result<Vec<Value>, Misfit> {
    if all.is_empty() {
        return Err(form("no operand"));
    }
    // ggml takes the first of as many factors as there are.
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
    // Rows may be rotated from an offset on; before it they stay.
    let offset = u64::try_from(t.int(15)).map_err(|_| form("a negative offset"))?;
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

/// A mask without the rows that ggml pads it with.
fn unpadded(m: &mut Memory<'_>, t: &Tensor, mask: Value, rows: u64) -> Result<Value, Misfit> {
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

pub(super) fn soft_max(
    m: &mut Memory<'_>,
    t: &Tensor,
    _: &[usize],
    values: &[Value],
) -> Result<Vec<Value>, Misfit> {
    let mut all = values.to_vec();
    if t.float(1) != 0.0 {
        return Err(form("ALiBi"));
    }
    if all.len() > 2 {
        return Err(form("attention sinks"));
    }
    if let Some(mask) = all.get(1).copied() {
        all[1] = unpadded(m, t, mask, t.ne()[1])?;
    }
    push(m, t, SoftMax { scale: t.float(0) }.into(), all)
}

pub(super) fn flash_attn(
    m: &mut Memory<'_>,
    t: &Tensor,
    _: &[usize],
    values: &[Value],
) -> Result<Vec<Value>, Misfit> {
    let mut all = values.to_vec();
    if all.len() < 4 {
        return Err(form("no mask"));
    }
    // The result is [dv, heads, tokens].
    all[3] = unpadded(m, t, all[3], t.ne()[2])?;
    let op = FlashAttn {
        scale: t.float(0),
        max_bias: t.float(1),
        softcap: t.float(2),
        heads: None,
    };
    push(m, t, op.into(), all)
}
