//! ggml ops that become several IR ops, or an IR op on fewer operands.

use tpc_ir::op::{
    Binary, BinaryKind, Cast, Concat, LightningIndexer, Mean, MulMat, Norm, NormKind, Pad, Permute,
    Pool2d, PoolKind, Repeat, Scale, Slice, Sum, TopK, Unary, UnaryKind,
};
use tpc_ir::{Dim, RANK, Value};

use super::append::{OpaqueReason, fits, form, push, to_array};
use super::memory::{Memory, dims};
use super::operands::Operands;
use super::record::{Layout, Record};
use super::trace::Trace;
use crate::op;

fn sizes(m: &Memory<'_>, v: Value) -> [u64; RANK] {
    let dims = &m.graph.value(v).ty.dims;
    std::array::from_fn(|i| dims[i].as_const().unwrap_or(0))
}

const ADD: Binary = Binary {
    kind: BinaryKind::Add,
};
const MUL: Binary = Binary {
    kind: BinaryKind::Mul,
};
const SWAPPED: Permute = Permute { axes: [1, 0, 2, 3] };

pub(super) fn copy(
    m: &mut Memory<'_>,
    t: &Record,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [x] = to_array(values)?;
    let from = m.graph.value(x).ty.dtype;
    if t.writes() || from == t.dtype {
        return Ok(vec![m.reshape(x, t.ne(), &t.name)?]);
    }
    if from.is_integer() || !Cast::TYPES.contains(&t.dtype) {
        return Err(form("a conversion of integers or to blocks"));
    }
    let x = m.push(Cast { to: t.dtype }, vec![x], &t.name)?;
    Ok(vec![m.reshape(x, t.ne(), &t.name)?])
}

pub(super) fn concat(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::Concat,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    if let [part] = values {
        return fits(m, t, *part);
    }
    push(m, t, Concat { axis: p.axis }.into(), values.to_vec())
}

pub(super) fn sum(
    m: &mut Memory<'_>,
    t: &Record,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [mut x] = to_array(values)?;
    for (axis, n) in (0..).zip(sizes(m, x)) {
        if n != 1 || axis == 0 {
            x = m.push(Sum { axis }, vec![x], &t.name)?;
        }
    }
    fits(m, t, x)
}

pub(super) fn mean(
    m: &mut Memory<'_>,
    t: &Record,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [x] = to_array(values)?;
    let n = m.graph.value(x).ty.dims[0].clone();
    push(m, t, Mean { n }.into(), vec![x])
}

pub(super) fn argmax(
    m: &mut Memory<'_>,
    t: &Record,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [x] = to_array(values)?;
    let top = m.push(TopK { k: 1 }, vec![x], &t.name)?;
    let rows = m.reshape(top, t.ne(), &t.name)?;
    fits(m, t, rows)
}

/// Returns the sum of the operand's repetitions: parts with the result's length along each axis.
pub(super) fn repeat_back(
    m: &mut Memory<'_>,
    t: &Record,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [mut x] = to_array(values)?;
    let mut ne = sizes(m, x);
    for axis in 0..RANK {
        let n = t.ne()[axis];
        if n == 0 || !ne[axis].is_multiple_of(n) {
            return Err(form("a size that is not a multiple of the result's size"));
        }
        let times = ne[axis] / n;
        if times == 1 {
            continue;
        }
        ne[axis] = n;
        let inner: u64 = ne[..=axis].iter().product();
        let outer: u64 = ne[axis + 1..].iter().product();
        x = m.reshape(x, [inner, times, outer, 1], &t.name)?;
        x = m.push(Sum { axis: 1 }, vec![x], &t.name)?;
    }
    let x = m.reshape(x, t.ne(), &t.name)?;
    fits(m, t, x)
}

pub(super) fn group_norm(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::GroupNorm,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [x] = to_array(values)?;
    let groups = p.groups;
    let [w, h, channels, n] = sizes(m, x);
    if groups == 0 || !channels.is_multiple_of(groups) {
        return Err(form("groups of unequal size"));
    }
    let rows = m.reshape(x, [w * h * (channels / groups), groups, n, 1], &t.name)?;
    let norm = Norm {
        kind: NormKind::Layer,
        eps: p.eps,
    };
    let normed = m.push(norm, vec![rows], &t.name)?;
    let x = m.reshape(normed, t.ne(), &t.name)?;
    fits(m, t, x)
}

/// Appends the product of the transposed operands: `out[i, j] = Σ_k a[i, k] · b[j, k]`.
pub(super) fn out_prod(
    m: &mut Memory<'_>,
    t: &Record,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [a, b] = to_array(values)?;
    if [a, b]
        .iter()
        .any(|&v| m.graph.value(v).ty.dtype.is_quantised())
    {
        return Err(form(
            "quantised elements with blocks across the contraction",
        ));
    }
    let a = m.push(SWAPPED, vec![a], &t.name)?;
    let b = m.push(SWAPPED, vec![b], &t.name)?;
    push(m, t, MulMat.into(), vec![a, b])
}

/// Returns the first operand with the second written to a view of it.
pub(super) fn set(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::SetView,
    operands: Operands<'_>,
) -> Result<Vec<Value>, OpaqueReason> {
    replace_view(m, t, p, operands, |_, _, new| Ok(new))
}

/// Returns the first operand with the second added to a view of it.
pub(super) fn accumulate(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::SetView,
    operands: Operands<'_>,
) -> Result<Vec<Value>, OpaqueReason> {
    replace_view(m, t, p, operands, |m, old, new| {
        Ok(m.push(ADD, vec![old, new], &t.name)?)
    })
}

fn replace_view(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::SetView,
    operands: Operands<'_>,
    with: impl FnOnce(&mut Memory<'_>, Value, Value) -> Result<Value, OpaqueReason>,
) -> Result<Vec<Value>, OpaqueReason> {
    let ([a, b], &[_, part]) = (to_array(operands.values)?, operands.records) else {
        return Err(form("a number of operands other than two"));
    };
    let [nb1, nb2, nb3] = p.nb;
    let part = &m.tensors[part];
    let layout = Layout {
        ne: part.ne(),
        nb: [part.dtype.block_bytes(), nb1, nb2, nb3],
        offset: p.offset,
    };
    if m.graph.value(a).ty.dtype != part.dtype {
        return Err(form("operands of different element types"));
    }
    let no_box = || form("a view that is not one range per factor of the first operand");
    let old = m.look(a, part, &layout)?.ok_or_else(no_box)?;
    let new = with(m, old, b)?;
    let v = m.update(a, part, &layout, new)?.ok_or_else(no_box)?;
    fits(m, t, v)
}

pub(super) fn pool_2d(p: &op::Pool2d) -> Pool2d {
    Pool2d {
        kind: match p.kind {
            op::PoolKind::Max => PoolKind::Max,
            op::PoolKind::Avg => PoolKind::Avg,
        },
        window: p.window,
        stride: p.stride,
        pad: p.pad,
    }
}

pub(super) fn pad(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::Pad,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [mut x] = to_array(values)?;
    if p.circular {
        return Err(form("circular padding"));
    }
    for axis in 0..RANK {
        let (before, after) = (p.before[axis], p.after[axis]);
        if before > 0 || after > 0 {
            let axis = axis as u64;
            let pad = Pad {
                axis,
                before,
                after,
            };
            x = m.push(pad, vec![x], &t.name)?;
        }
    }
    fits(m, t, x)
}

/// Rolls each axis: elements beyond the end move to the start.
pub(super) fn roll(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::Roll,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [mut x] = to_array(values)?;
    for (axis, n) in sizes(m, x).into_iter().enumerate() {
        let size = i64::try_from(n).map_err(|_| form("an axis of more than 2^63 indices"))?;
        let shift = i64::from(p.shifts[axis])
            .rem_euclid(size.max(1))
            .unsigned_abs();
        if shift == 0 {
            continue;
        }
        let axis = axis as u64;
        let mut part = |start, len| {
            let (start, len) = (Dim::constant(start), Dim::constant(len));
            m.push(Slice { axis, start, len }, vec![x], &t.name)
        };
        let (end, start) = (part(n - shift, shift)?, part(0, n - shift)?);
        x = m.push(Concat { axis }, vec![end, start], &t.name)?;
    }
    fits(m, t, x)
}

pub(super) fn lightning_indexer(
    m: &mut Memory<'_>,
    t: &Record,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [q, k, w, mask] = to_array(values)?;
    let scores = m.push(LightningIndexer, vec![q, k, w], &t.name)?;
    push(m, t, ADD.into(), vec![scores, mask])
}

/// Returns the sum of the streams `x: [n, hc, tokens]`, weighted by `w: [hc, tokens]` or by the sigmoid of `w: [n,
/// hc, tokens]`.
pub(super) fn hc_pre(
    m: &mut Memory<'_>,
    t: &Record,
    p: &op::HcPre,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let [x, w] = to_array(values)?;
    let w = if p.gated {
        let kind = UnaryKind::Sigmoid;
        m.push(Unary { kind }, vec![w], &t.name)?
    } else {
        let [hc, tokens, ..] = sizes(m, w);
        m.reshape(w, [1, hc, tokens, 1], &t.name)?
    };
    let weighed = m.push(MUL, vec![x, w], &t.name)?;
    let mut sum = m.push(Sum { axis: 1 }, vec![weighed], &t.name)?;
    if p.scale != 1.0 {
        let (scale, bias) = (p.scale, 0.0);
        sum = m.push(Scale { scale, bias }, vec![sum], &t.name)?;
    }
    let sum = m.reshape(sum, t.ne(), &t.name)?;
    fits(m, t, sum)
}

/// Mixes the streams `residual: [n, hc, tokens]` using `comb: [hc, hc, tokens]`, if present, with destinations on
/// axis 0. Adds `x: [n, tokens]`, weighted by `post: [hc, tokens]`, to each stream.
pub(super) fn hc_post(
    m: &mut Memory<'_>,
    t: &Record,
    values: &[Value],
) -> Result<Vec<Value>, OpaqueReason> {
    let (first, comb) = match values {
        [first @ .., comb] if first.len() == 3 => (first, Some(*comb)),
        all => (all, None),
    };
    let [x, residual, post] = to_array(first)?;
    let [n, hc, tokens, _] = t.ne();
    let mixed = match comb {
        Some(comb) => {
            let sources = m.push(SWAPPED, vec![residual], &t.name)?;
            let mixes = m.push(SWAPPED, vec![comb], &t.name)?;
            m.push(MulMat, vec![sources, mixes], &t.name)?
        }
        None => residual,
    };
    let x = m.reshape(x, [n, 1, tokens, 1], &t.name)?;
    let all = Repeat {
        dims: dims([n, hc, tokens, 1]),
    };
    let x = m.push(all, vec![x], &t.name)?;
    let post = m.reshape(post, [1, hc, tokens, 1], &t.name)?;
    let weighed = m.push(MUL, vec![x, post], &t.name)?;
    push(m, t, ADD.into(), vec![mixed, weighed])
}

/// Appends an AdamW step, which writes both moments, and returns the new weights. The last operand has the rate, the
/// moments' decays, `eps`, the weight decay, and the moments' corrections.
pub(super) fn adamw(
    m: &mut Memory<'_>,
    t: &Record,
    operands: Operands<'_>,
) -> Result<Vec<Value>, OpaqueReason> {
    let [w, g, m1, m2, parameters] = to_array(operands.values)?;
    let &[weights, _, first, second, _] = operands.records else {
        return Err(form("an operand without elements"));
    };
    let owns = |&r: &usize| m.tensors[r].is_leaf() && m.tensors[r].root == r;
    let apart = first != second && ![first, second].contains(&m.tensors[weights].root);
    if ![first, second].iter().all(owns) || !apart {
        return Err(form("moments without their own memory"));
    }
    let name = &t.name;
    let mut given = Vec::new();
    for i in 0..7 {
        let slice = Slice {
            axis: 0,
            start: Dim::constant(i),
            len: Dim::ONE,
        };
        given.push(m.push(slice, vec![parameters], name)?);
    }
    let [rate, keep1, keep2, eps, decay, whole1, whole2] = to_array(&given)?;
    let rest = Scale {
        scale: -1.0,
        bias: 1.0,
    };
    let [g1, g2] = [g, m.push(MUL, vec![g, g], name)?];
    let mut moments = Vec::new();
    for (old, keep, new, record) in [(m1, keep1, g1, first), (m2, keep2, g2, second)] {
        let part = m.push(rest.clone(), vec![keep], name)?;
        let kept = m.push(MUL, vec![old, keep], name)?;
        let added = m.push(MUL, vec![new, part], name)?;
        let moment = m.push(ADD, vec![kept, added], name)?;
        let made = m.write(record, moment)?;
        m.later.push(Trace {
            record,
            reads: Vec::new(),
            made,
        });
        moments.push(moment);
    }
    let [m1, m2] = to_array(&moments)?;
    let m1 = m.push(MUL, vec![m1, whole1], name)?;
    let m2 = m.push(MUL, vec![m2, whole2], name)?;
    let kind = UnaryKind::Sqrt;
    let root = m.push(Unary { kind }, vec![m2], name)?;
    let root = m.push(ADD, vec![root, eps], name)?;
    let kind = BinaryKind::Div;
    let step = m.push(Binary { kind }, vec![m1, root], name)?;
    let step = m.push(MUL, vec![step, rate], name)?;
    let lost = m.push(MUL, vec![rate, decay], name)?;
    let keep = m.push(rest, vec![lost], name)?;
    let kept = m.push(MUL, vec![w, keep], name)?;
    let kind = BinaryKind::Sub;
    push(m, t, Binary { kind }.into(), vec![kept, step])
}
