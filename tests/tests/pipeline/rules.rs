//! Executes every op's sharding rule with random shapes, splits and numbers of devices. Ranges are uneven, empty or
//! overlapping; operands are whole, split or unreduced.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use tpc_tests::Sweep;

use tpc_ir::op::*;
use tpc_ir::{Dim, Interval, Op, Value};

use super::choices::each_graph;
use super::random::{Builder, Fate, d, split_and_run, unproved_at_most};

pub(crate) type Case = fn(&mut Builder) -> Value;

fn dims(b: &mut Builder) -> [Dim; 4] {
    let t = if b.rng.one_in(2) {
        b.t()
    } else {
        d(b.rng.range(1, 3))
    };
    [
        d(b.rng.range(1, 8)),
        d(b.rng.range(1, 5)),
        t,
        d(b.rng.range(1, 2)),
    ]
}

/// Returns the batch's number of tokens, or a constant, which could be split.
fn tokens(b: &mut Builder) -> Dim {
    if b.rng.one_in(2) {
        b.t()
    } else {
        d(b.rng.range(1, 4))
    }
}

fn unary(b: &mut Builder) -> Value {
    let kind = *b.rng.pick(UnaryKind::ALL);
    let dims = dims(b);
    let positive = matches!(kind, UnaryKind::Sqrt | UnaryKind::Log);
    let x = if positive {
        b.plain(dims)
    } else {
        b.real(dims)
    };
    let x = if positive {
        b.push(
            Unary {
                kind: UnaryKind::Abs,
            },
            vec![x],
        )
    } else {
        x
    };
    b.push(Unary { kind }, vec![x])
}

fn binary(b: &mut Builder) -> Value {
    let kind = *b.rng.pick(BinaryKind::ALL);
    let dims = dims(b);
    let part: [Dim; 4] = std::array::from_fn(|i| match dims[i].as_const() {
        Some(n) => {
            let divisors: Vec<u64> = (1..=n).filter(|k| n.is_multiple_of(*k)).collect();
            d(*b.rng.pick(&divisors))
        }
        None => dims[i].clone(),
    });
    let x = b.real(dims);
    let mut y = b.real(part);
    if kind == BinaryKind::Div {
        y = b.push(
            Unary {
                kind: UnaryKind::Sqr,
            },
            vec![y],
        );
        y = b.push(
            Scale {
                scale: 1.0,
                bias: 0.5,
            },
            vec![y],
        );
    }
    b.push(Binary { kind }, vec![x, y])
}

fn scale(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let bias = if b.rng.one_in(2) { 0.0 } else { 0.25 };
    b.push(Scale { scale: -1.5, bias }, vec![x])
}

fn clamp(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let min = if b.rng.one_in(2) { -0.3 } else { 0.1 };
    b.push(Clamp { min, max: 0.4 }, vec![x])
}

fn cast(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let to = *b.rng.pick(&Cast::TYPES);
    b.push(Cast { to }, vec![x])
}

fn glu(b: &mut Builder) -> Value {
    let mut op = Glu::new(*b.rng.pick(GluKind::ALL));
    if op.kind.takes_alpha() {
        op.alpha = 1.702;
    }
    if op.kind.takes_limit() {
        op.limit = 0.8;
    }
    let mut dims = dims(b);
    if b.rng.one_in(2) {
        dims[0] = dims[0].checked_mul(&d(2)).expect("small");
        let x = b.real(dims);
        return b.push(op, vec![x]);
    }
    let (gate, up) = (b.real(dims.clone()), b.real(dims));
    b.push(op, vec![gate, up])
}

fn leaky_relu(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    b.push(LeakyRelu { slope: 0.1 }, vec![x])
}

fn xielu(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let op = Xielu {
        alpha_n: 0.8,
        alpha_p: 0.7,
        beta: 0.5,
        eps: -0.01,
    };
    b.push(op, vec![x])
}

fn fill(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims.clone());
    let filled = b.push(Fill { value: 0.5 }, vec![x]);
    let kind = BinaryKind::Mul;
    b.push(Binary { kind }, vec![x, filled])
}

/// Builds positions that every device computes, and adds them to a value that may be split.
fn arange(b: &mut Builder) -> Value {
    let t = tokens(b);
    let positions = b.push(Arange::new(1.0, 0.5, t.clone()), Vec::new());
    let (rows, n) = (d(b.rng.range(1, 3)), d(b.rng.range(1, 4)));
    let x = b.real([t, rows, n, d(1)]);
    let kind = BinaryKind::Add;
    b.push(Binary { kind }, vec![x, positions])
}

fn cumsum(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    b.push(Cumsum, vec![x])
}

fn mean(b: &mut Builder) -> Value {
    let dims = dims(b);
    let n = dims[0].clone();
    let x = b.real(dims);
    b.push(Mean { n }, vec![x])
}

fn tri(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let op = Tri {
        keep: *b.rng.pick(&Side::ALL),
        offset: b.rng.range(0, 2),
        fill: *b.rng.pick(&[0.0, 0.25]),
    };
    b.push(op, vec![x])
}

fn diag(b: &mut Builder) -> Value {
    let (n, p, q) = (b.rng.range(1, 4), b.rng.range(1, 4), b.rng.range(1, 3));
    let x = b.real([d(n), d(1), d(p), d(q)]);
    b.push(Diag, vec![x])
}

fn pool_2d(b: &mut Builder) -> Value {
    let (w, h) = (b.rng.range(2, 5), b.rng.range(2, 5));
    let (channels, n) = (b.rng.range(1, 5), b.rng.range(1, 2));
    let x = b.real([d(w), d(h), d(channels), d(n)]);
    let op = Pool2d {
        kind: *b.rng.pick(&PoolKind::ALL),
        window: [2, b.rng.range(1, 2)],
        stride: [b.rng.range(1, 2), 1],
        pad: [b.rng.range(0, 1), 0],
    };
    b.push(op, vec![x])
}

fn lightning_indexer(b: &mut Builder) -> Value {
    let (rows, heads, cells) = (b.rng.range(1, 4), b.rng.range(1, 6), b.rng.range(1, 5));
    let (t, streams) = (tokens(b), b.rng.range(1, 2));
    let q = b.real([d(rows), d(heads), t.clone(), d(streams)]);
    let k = b.real([d(rows), d(1), d(cells), d(streams)]);
    let w = b.real([d(heads), t.clone(), d(1), d(streams)]);
    let score = b.push(LightningIndexer, vec![q, k, w]);
    let mask = b.plain([d(cells), t, d(1), d(1)]);
    let kind = BinaryKind::Add;
    b.push(Binary { kind }, vec![score, mask])
}

fn ngram_rows(b: &mut Builder) -> Value {
    let (n, seqs) = (b.rng.range(3, 6), b.rng.range(1, 4));
    let x = b.real([d(n), d(seqs), d(1), d(1)]);
    let (scale, bias) = (9.0, 4.5);
    let x = b.push(Scale { scale, bias }, vec![x]);
    let table = |i: u64| Interval {
        start: 4 * i,
        len: 4,
    };
    let op = NgramRows {
        factors: vec![5, 7, 11],
        tables: (0..4).map(table).collect(),
        end: 1,
    };
    let rows = b.push(op, vec![x]);
    let dims = [d(4 * (n - 2)), d(seqs), d(1), d(1)];
    let rows = b.push(Reshape { dims }, vec![rows]);
    let table = b.real([d(3), d(16), d(seqs), d(1)]);
    b.push(GetRows { window: None }, vec![table, rows])
}

fn hc_comb(b: &mut Builder) -> Value {
    let hc = b.rng.range(1, 4);
    let n = d((2 + hc) * hc);
    let t = tokens(b);
    let mixes = b.real([n.clone(), t, d(1), d(1)]);
    let scale = b.plain([d(3), d(1), d(1), d(1)]);
    let base = b.plain([n, d(1), d(1), d(1)]);
    let op = HcComb {
        eps: 0.01,
        iterations: b.rng.range(1, 3),
    };
    b.push(op, vec![mixes, scale, base])
}

fn norm(b: &mut Builder) -> Value {
    let kind = *b.rng.pick(&NormKind::ALL);
    let dims = dims(b);
    let x = b.real(dims);
    b.push(Norm { kind, eps: 1e-5 }, vec![x])
}

/// Builds a norm over all heads of a product, then reshapes to heads, as in OLMo 2.
fn norm_over_heads(b: &mut Builder) -> Value {
    let (e, h, n, t) = (
        b.rng.range(1, 4),
        b.rng.range(1, 4),
        b.rng.range(1, 5),
        b.t(),
    );
    let w = b.plain([d(n), d(e * h), d(1), d(1)]);
    let x = b.plain([d(n), t.clone(), d(1), d(1)]);
    let q = b.push(MulMat, vec![w, x]);
    let q = b.push(
        Norm {
            kind: NormKind::Rms,
            eps: 1e-5,
        },
        vec![q],
    );
    let gain = b.plain([d(e * h), d(1), d(1), d(1)]);
    let q = b.push(
        Binary {
            kind: BinaryKind::Mul,
        },
        vec![q, gain],
    );
    b.push(
        Reshape {
            dims: [d(e), d(h), t, d(1)],
        },
        vec![q],
    )
}

fn norm_stats(b: &mut Builder) -> Value {
    let kind = *b.rng.pick(&NormKind::ALL);
    let dims = dims(b);
    let x = b.real(dims);
    b.push(NormStats { kind }, vec![x])
}

fn norm_apply(b: &mut Builder) -> Value {
    let kind = *b.rng.pick(&NormKind::ALL);
    let dims = dims(b);
    let n = dims[0].as_const().expect("dims makes a constant axis 0");
    let x = b.real(dims);
    let stats = b.push(NormStats { kind }, vec![x]);
    b.push(NormApply { kind, eps: 1e-5, n }, vec![x, stats])
}

fn mul_mat(b: &mut Builder) -> Value {
    let (k, m, n) = (d(b.rng.range(1, 8)), d(b.rng.range(1, 6)), b.t());
    let (p, q, r, s) = (
        b.rng.range(1, 3),
        b.rng.range(1, 2),
        b.rng.range(1, 3),
        b.rng.range(1, 2),
    );
    let w = b.real([k.clone(), m, d(p), d(q)]);
    let x = b.real([k, n, d(p * r), d(q * s)]);
    b.push(MulMat, vec![w, x])
}

/// Builds two products: the first split by columns, the second by rows.
fn mul_mat_pair(b: &mut Builder) -> Value {
    let (k, m, n, t) = (
        d(b.rng.range(1, 5)),
        d(b.rng.range(1, 8)),
        d(b.rng.range(1, 5)),
        b.t(),
    );
    let up = b.plain([k.clone(), m.clone(), d(1), d(1)]);
    let down = b.plain([m, n.clone(), d(1), d(1)]);
    let bias = b.plain([n.clone(), d(1), d(1), d(1)]);
    let x = b.plain([k, t.clone(), d(1), d(1)]);
    let y = b.push(MulMat, vec![up, x]);
    let y = b.push(
        Unary {
            kind: UnaryKind::Silu,
        },
        vec![y],
    );
    let y = b.push(MulMat, vec![down, y]);
    let y = b.push(
        Binary {
            kind: BinaryKind::Add,
        },
        vec![y, bias],
    );
    let residual = b.plain([n, t, d(1), d(1)]);
    let kind = *b.rng.pick(&[BinaryKind::Add, BinaryKind::Sub]);
    let operands = if b.rng.one_in(2) {
        vec![y, residual]
    } else {
        vec![residual, y]
    };
    b.push(Binary { kind }, operands)
}

/// Rotates heads by blocks, with an axis of blocks or with all else on one axis.
fn rotation(b: &mut Builder) -> Value {
    let n = 1 << b.rng.range(0, 3);
    let (blocks, heads, t) = (d(b.rng.range(1, 3)), d(b.rng.range(1, 8)), b.t());
    let width = blocks.checked_mul(&d(n)).expect("small");
    let whole = [width, heads.clone(), t.clone(), d(1)];
    let x = b.real(whole.clone());
    let rest = Dim::product(&[blocks.clone(), heads.clone(), t.clone()]).expect("small");
    let cut = if b.rng.one_in(2) {
        [d(n), blocks, heads, t]
    } else {
        [d(n), rest, d(1), d(1)]
    };
    let x = b.push(Reshape { dims: cut }, vec![x]);
    let matrix = b.push(Hadamard { n }, Vec::new());
    let y = b.push(MulMat, vec![matrix, x]);
    b.push(Reshape { dims: whole }, vec![y])
}

fn expert_parts(b: &mut Builder) -> (u64, u64, Dim) {
    (b.rng.range(1, 5), b.rng.range(1, 3), b.t())
}

fn mul_mat_id(b: &mut Builder) -> Value {
    let (e, used, t) = expert_parts(b);
    let (k, m) = (d(b.rng.range(1, 6)), d(b.rng.range(1, 5)));
    let w = b.plain([k.clone(), m, d(e), d(1)]);
    let rows = if b.rng.one_in(2) { used } else { 1 };
    let x = b.real([k, d(rows), t.clone(), d(1)]);
    let ids = b.index([d(used), t, d(1), d(1)], e);
    b.push(MulMatId { window: None }, vec![w, x, ids])
}

fn add_id(b: &mut Builder) -> Value {
    let (e, used, t) = expert_parts(b);
    let m = d(b.rng.range(1, 5));
    let x = b.real([m.clone(), d(used), t.clone(), d(1)]);
    let bias = b.plain([m, d(e), d(1), d(1)]);
    let ids = b.index([d(used), t, d(1), d(1)], e);
    b.push(AddId { window: None }, vec![x, bias, ids])
}

/// Builds a feed-forward with experts: gate and up with biases, down, weighted sum.
fn experts(b: &mut Builder) -> Value {
    let (e, used, t) = expert_parts(b);
    let (n, f) = (d(b.rng.range(1, 5)), d(b.rng.range(1, 6)));
    let ids = b.index([d(used), t.clone(), d(1), d(1)], e);
    let x = b.plain([n.clone(), d(1), t.clone(), d(1)]);
    let half = |b: &mut Builder| {
        let w = b.plain([n.clone(), f.clone(), d(e), d(1)]);
        let bias = b.plain([f.clone(), d(e), d(1), d(1)]);
        let y = b.push(MulMatId { window: None }, vec![w, x, ids]);
        b.push(AddId { window: None }, vec![y, bias, ids])
    };
    let (gate, up) = (half(b), half(b));
    let y = b.push(Glu::new(GluKind::Swiglu), vec![gate, up]);
    let down = b.plain([f, n.clone(), d(e), d(1)]);
    let mut y = b.push(MulMatId { window: None }, vec![down, y, ids]);
    if b.rng.one_in(2) {
        let bias = b.plain([n.clone(), d(e), d(1), d(1)]);
        y = b.push(AddId { window: None }, vec![y, bias, ids]);
    }
    let weights = b.plain([d(1), d(used), t.clone(), d(1)]);
    let y = b.push(
        Binary {
            kind: BinaryKind::Mul,
        },
        vec![y, weights],
    );
    let y = b.push(Sum { axis: 1 }, vec![y]);
    b.push(
        Reshape {
            dims: [n, t, d(1), d(1)],
        },
        vec![y],
    )
}

fn get_rows(b: &mut Builder) -> Value {
    let (n, rows, p) = (
        d(b.rng.range(1, 5)),
        b.rng.range(1, 6),
        d(b.rng.range(1, 2)),
    );
    let data = b.real([n, d(rows), p.clone(), d(1)]);
    let index = b.index([b.t(), p, d(1), d(1)], rows);
    b.push(GetRows { window: None }, vec![data, index])
}

fn set_rows(b: &mut Builder) -> Value {
    let axis = b.rng.range(0, 2);
    let cells = b.tokens + b.rng.range(0, 3);
    let mut sizes: [Dim; 4] = std::array::from_fn(|_| d(b.rng.range(1, 4)));
    sizes[axis as usize] = d(cells);
    let dst = b.real(sizes.clone());
    sizes[axis as usize] = b.t();
    let rows = b.real(sizes);
    let index = b.index([b.t(), d(1), d(1), d(1)], cells);
    b.push(SetRows::along(axis), vec![dst, rows, index])
}

/// Writes to a slice of a cache, or of a value that may be unreduced.
fn set_slice(b: &mut Builder) -> Value {
    let axis = b.rng.range(0, 2);
    let (before, len, after) = (b.rng.range(0, 2), b.rng.range(0, 3), b.rng.range(1, 2));
    let mut sizes: [Dim; 4] = std::array::from_fn(|_| d(b.rng.range(1, 4)));
    sizes[axis as usize] = d(before + len + after);
    let dst = b.real(sizes.clone());
    sizes[axis as usize] = d(len);
    let src = b.real(sizes);
    let start = d(before);
    let y = b.push(SetSlice { axis, start }, vec![dst, src]);
    b.push(
        Scale {
            scale: 2.0,
            bias: 0.0,
        },
        vec![y],
    )
}

fn ssm_conv(b: &mut Builder) -> Value {
    let (taps, channels, seqs) = (b.rng.range(1, 4), d(b.rng.range(1, 6)), b.rng.range(1, 3));
    let steps = tokens(b).checked_add(&d(taps - 1)).expect("small");
    let x = b.real([steps, channels.clone(), d(seqs), d(1)]);
    let c = b.real([d(taps), channels, d(1), d(1)]);
    b.push(SsmConv, vec![x, c])
}

fn ssm_scan(b: &mut Builder) -> Value {
    let (n, dim, each) = (b.rng.range(1, 4), b.rng.range(1, 3), b.rng.range(1, 4));
    let (groups, seqs, t) = (b.rng.range(1, 4), b.rng.range(1, 2), tokens(b));
    let heads = groups * each;
    let has_ids = b.rng.one_in(2);
    let cells = if has_ids {
        seqs + b.rng.range(0, 2)
    } else {
        seqs
    };
    let state = b.real([d(n), d(dim), d(heads), d(cells)]);
    let x = b.real([d(dim), d(heads), t.clone(), d(seqs)]);
    let dt = b.real([d(heads), t.clone(), d(seqs), d(1)]);
    let a_len = if b.rng.one_in(2) { 1 } else { n };
    let a = b.real([d(a_len), d(heads), d(1), d(1)]);
    let gate = |b: &mut Builder| b.real([d(n), d(groups), t.clone(), d(seqs)]);
    let (bs, cs) = (gate(b), gate(b));
    let mut operands = vec![state, x, dt, a, bs, cs];
    if has_ids {
        operands.push(b.index([d(seqs), d(1), d(1), d(1)], cells));
    }
    let [y, state] = b.push_two(SsmScan, operands);
    b.also.push(state);
    y
}

/// Builds a Mamba-2 block: one product cut into gate, convolved part and time steps; the convolved part is cut into x,
/// B and C.
fn mamba_block(b: &mut Builder) -> Value {
    let (n, dim, each, groups) = (
        b.rng.range(1, 3),
        b.rng.range(1, 3),
        b.rng.range(1, 3),
        b.rng.range(1, 3),
    );
    let (width, taps, t) = (b.rng.range(1, 4), b.rng.range(1, 3), b.t());
    let heads = groups * each;
    let (inner, gates) = (heads * dim, groups * n);
    let channels = inner + 2 * gates;
    let w = b.plain([d(width), d(inner + channels + heads), d(1), d(1)]);
    let x = b.plain([d(width), t.clone(), d(1), d(1)]);
    let all = b.push(MulMat, vec![w, x]);
    let cut = |b: &mut Builder, of: Value, start: u64, len: u64, dims: [Dim; 4]| {
        let slice = Slice {
            axis: 0,
            start: d(start),
            len: d(len),
        };
        let y = b.push(slice, vec![of]);
        b.push(Reshape { dims }, vec![y])
    };
    let by_head = [d(dim), d(heads), t.clone(), d(1)];
    let z = cut(b, all, 0, inner, by_head.clone());
    let conv = cut(
        b,
        all,
        inner,
        channels,
        [d(channels), t.clone(), d(1), d(1)],
    );
    let conv = b.push(Permute { axes: [1, 0, 2, 3] }, vec![conv]);
    let before = b.plain([d(taps - 1), d(channels), d(1), d(1)]);
    let conv = b.push(Concat { axis: 0 }, vec![before, conv]);
    let filter = b.plain([d(taps), d(channels), d(1), d(1)]);
    let conv = b.push(SsmConv, vec![conv, filter]);
    let silu = Unary {
        kind: UnaryKind::Silu,
    };
    let conv = b.push(silu, vec![conv]);
    let xs = cut(b, conv, 0, inner, by_head);
    let by_group = [d(n), d(groups), t.clone(), d(1)];
    let bs = cut(b, conv, inner, gates, by_group.clone());
    let cs = cut(b, conv, inner + gates, gates, by_group);
    let dt = cut(
        b,
        all,
        inner + channels,
        heads,
        [d(heads), t.clone(), d(1), d(1)],
    );
    let state = b.plain([d(n), d(dim), d(heads), d(2)]);
    let a = b.plain([d(1), d(heads), d(1), d(1)]);
    let ids = b.index([d(1), d(1), d(1), d(1)], 2);
    let [y, after] = b.push_two(SsmScan, vec![state, xs, dt, a, bs, cs, ids]);
    let start = d(1);
    let cache = b.push(SetSlice { axis: 3, start }, vec![state, after]);
    b.also.push(cache);
    let y = b.push(Glu::new(GluKind::Swiglu), vec![z, y]);
    let flat = Reshape {
        dims: [d(inner), t, d(1), d(1)],
    };
    let y = b.push(flat, vec![y]);
    let out = b.plain([d(inner), d(width), d(1), d(1)]);
    b.push(MulMat, vec![out, y])
}

fn gated_delta_net(b: &mut Builder) -> Value {
    let (dk, dv, times) = (b.rng.range(1, 4), b.rng.range(1, 4), b.rng.range(1, 4));
    let (keys, seqs, t) = (b.rng.range(1, 4), b.rng.range(1, 2), tokens(b));
    let heads = keys * times;
    let row = |b: &mut Builder, n: u64, h: u64| b.real([d(n), d(h), t.clone(), d(seqs)]);
    let (q, k, v) = (row(b, dk, keys), row(b, dk, keys), row(b, dv, heads));
    let gates = if b.rng.one_in(2) { 1 } else { dk };
    let (g, beta) = (row(b, gates, heads), row(b, 1, heads));
    let state = b.real([d(dk), d(dv), d(heads), d(seqs)]);
    let [y, state] = b.push_two(GatedDeltaNet, vec![q, k, v, g, beta, state]);
    b.also.push(state);
    y
}

fn wkv(b: &mut Builder) -> Value {
    let (dk, dv, heads) = (b.rng.range(1, 4), b.rng.range(1, 4), b.rng.range(1, 6));
    let (seqs, t) = (b.rng.range(1, 2), tokens(b));
    let row = |b: &mut Builder, n: u64| b.real([d(n), d(heads), t.clone(), d(seqs)]);
    let mut operands = vec![row(b, dk), row(b, dk), row(b, dk), row(b, dv)];
    operands.push(b.real([d(dk), d(dv), d(heads), d(seqs)]));
    match b.rng.range(0, 2) {
        0 => {}
        1 => operands.push(b.real([d(dk), d(heads), d(1), d(1)])),
        _ => operands.extend([row(b, dk), row(b, dk)]),
    }
    let [y, state] = b.push_two(Wkv, operands);
    b.also.push(state);
    y
}

fn rope(b: &mut Builder) -> Value {
    let half = b.rng.range(1, 3);
    let rest = b.rng.range(0, 2);
    let heads = b.rng.range(1, 5);
    let tokens = tokens(b);
    let x = b.real([d(2 * half + rest), d(heads), tokens.clone(), d(1)]);
    let sections = [1, 0, 1, 1];
    let mode = *b.rng.pick(&[
        RopeMode::Norm,
        RopeMode::Neox,
        RopeMode::Mrope { sections },
        RopeMode::Imrope { sections },
    ]);
    let n = tokens.checked_mul(&d(mode.positions())).expect("small");
    let positions = b.index([n, d(1), d(1), d(1)], 50);
    let op = Rope {
        mode,
        n_dims: 2 * half,
        n_ctx_orig: 64,
        freq_base: 10000.0,
        freq_scale: 1.0,
        ext_factor: 0.0,
        attn_factor: 1.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
    };
    let mut operands = vec![x, positions];
    if b.rng.one_in(2) {
        let f = b.plain([d(half), d(1), d(1), d(1)]);
        let f = b.push(
            Unary {
                kind: UnaryKind::Sqr,
            },
            vec![f],
        );
        operands.push(b.push(
            Scale {
                scale: 1.0,
                bias: 1.0,
            },
            vec![f],
        ));
    }
    b.push(op, operands)
}

fn soft_max(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims.clone());
    let mut operands = vec![x];
    let mut op = SoftMax::with_scale(0.7);
    if b.rng.one_in(2) {
        let [n, rows, heads, streams] = dims;
        let repeated = |b: &mut Builder, n: &Dim| match b.rng.one_in(3) {
            true => n.clone(),
            false => d(1),
        };
        let batches = [repeated(b, &heads), repeated(b, &streams)];
        let [p, q] = batches;
        operands.push(b.plain([n, rows, p, q]));
        if heads.as_const().is_some() && b.rng.one_in(2) {
            op.max_bias = 8.0;
        }
        if b.rng.one_in(2) {
            operands.push(b.plain([heads, d(1), d(1), d(1)]));
        }
    }
    b.push(op, operands)
}

fn flash_attn(b: &mut Builder) -> Value {
    let (dk, dv, cells) = (
        d(b.rng.range(1, 4)),
        d(b.rng.range(1, 4)),
        d(b.rng.range(1, 5)),
    );
    let (kv, g, t) = (b.rng.range(1, 4), b.rng.range(1, 4), b.t());
    let q = b.real([dk.clone(), t.clone(), d(kv * g), d(1)]);
    let k = b.real([dk, cells.clone(), d(kv), d(1)]);
    let v = b.real([dv, cells.clone(), d(kv), d(1)]);
    let mask = b.plain([cells, t, d(1), d(1)]);
    let mut operands = vec![q, k, v, mask];
    if b.rng.one_in(2) {
        operands.push(b.plain([d(kv * g), d(1), d(1), d(1)]));
    }
    let max_bias = if b.rng.one_in(3) { 8.0 } else { 0.0 };
    let softcap = if b.rng.one_in(3) { 5.0 } else { 0.0 };
    b.push(
        FlashAttn {
            scale: 0.5,
            max_bias,
            softcap,
            heads: None,
            lse: false,
        },
        operands,
    )
}

fn merge_attn(b: &mut Builder) -> Value {
    let (heads, parts, t) = (b.rng.range(1, 5), b.rng.range(1, 4), b.t());
    let width = d(b.rng.range(2, 6));
    let mut operands = vec![b.real([width, d(heads), t, d(parts)])];
    if b.rng.one_in(2) {
        operands.push(b.plain([d(heads), d(1), d(1), d(1)]));
    }
    b.push(MergeAttn, operands)
}

fn sum(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let axis = *b.rng.pick(&[0, 1, 3]);
    b.push(Sum { axis }, vec![x])
}

fn top_mask(b: &mut Builder) -> Value {
    let dims = dims(b);
    let n = dims[0].as_const().expect("dims makes a constant axis 0");
    let x = b.real(dims);
    let k = b.rng.range(1, n + 1);
    let mask = b.push(TopMask { k }, vec![x]);
    let bounds = Clamp {
        min: -1.0,
        max: 1.0,
    };
    b.push(bounds, vec![mask])
}

fn top_k(b: &mut Builder) -> Value {
    let dims = dims(b);
    let n = dims[0].as_const().expect("dims makes a constant axis 0");
    let x = b.real(dims);
    let k = b.rng.range(1, n);
    b.push(TopK { k }, vec![x])
}

/// Hides cells of a mask that has the picks' rows, or one row for all.
fn top_k_mask(b: &mut Builder) -> Value {
    let (cells, picks, streams) = (b.rng.range(1, 6), b.rng.range(1, 5), b.rng.range(1, 3));
    let op = TopKMask {
        has_scores: b.rng.one_in(2),
        has_members: b.rng.one_in(2),
        has_extra: b.rng.one_in(2),
    };
    let n_picks = if op.has_scores || op.has_members {
        picks
    } else {
        cells
    };
    let rows = |n: u64, t: Dim, s: u64| [d(n), t, d(s), d(1)];
    let is_shared = b.rng.one_in(2);
    let mask_rows = if is_shared {
        rows(cells, d(1), 1)
    } else {
        rows(cells, b.t(), streams)
    };
    let mask = b.real(mask_rows);
    let top = b.rng.range(1, 3);
    let picked = b.index(rows(top, b.t(), streams), n_picks);
    let mut operands = vec![mask, picked];
    if op.has_scores {
        let scores = rows(n_picks, b.t(), streams);
        operands.push(b.plain(scores));
    }
    if op.has_members {
        operands.push(b.index([d(2), d(n_picks), d(1), d(1)], cells));
    }
    if op.has_extra {
        let extra = rows(1, b.t(), streams);
        operands.push(b.index(extra, cells));
    }
    let mask = b.push(op, operands);
    let bounds = Clamp {
        min: -9.0,
        max: 9.0,
    };
    b.push(bounds, vec![mask])
}

fn argsort(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let order = *b.rng.pick(&SortOrder::ALL);
    b.push(ArgSort { order }, vec![x])
}

fn reshape(b: &mut Builder) -> Value {
    let (p, q, r, s, t) = (
        b.rng.range(1, 4),
        b.rng.range(1, 4),
        b.rng.range(1, 4),
        b.rng.range(1, 2),
        b.t(),
    );
    let m = |x: u64, t: &Dim| t.checked_mul(&d(x)).expect("small");
    let shapes = [
        [d(p * q), d(r), t.clone(), d(s)],
        [d(p), d(q * r), t.clone(), d(s)],
        [d(p), d(q), m(r, &t), d(s)],
        [d(p * q * r), m(s, &t), d(1), d(1)],
        [d(p * q), m(r * s, &t), d(1), d(1)],
    ];
    let (from, to) = (b.rng.pick(&shapes).clone(), b.rng.pick(&shapes).clone());
    let x = b.real(from);
    let x = b.push(Reshape { dims: to }, vec![x]);
    b.push(
        Unary {
            kind: UnaryKind::Tanh,
        },
        vec![x],
    )
}

fn permute(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let axes = *b.rng.pick(&[
        [0, 2, 1, 3],
        [1, 0, 2, 3],
        [3, 2, 1, 0],
        [1, 2, 0, 3],
        [2, 0, 1, 3],
    ]);
    b.push(Permute { axes }, vec![x])
}

/// Builds a product cut into segments, like a fused QKV.
fn slice(b: &mut Builder) -> Value {
    let (e, h, n, t) = (
        b.rng.range(1, 3),
        b.rng.range(1, 4),
        b.rng.range(1, 4),
        b.t(),
    );
    let (hq, hk) = (h * b.rng.range(1, 3), h);
    let w = b.plain([d(n), d(e * (hq + 2 * hk)), d(1), d(1)]);
    let x = b.plain([d(n), t.clone(), d(1), d(1)]);
    let y = b.push(MulMat, vec![w, x]);
    let cut = |b: &mut Builder, start: u64, heads: u64| {
        let y = b.push(
            Slice {
                axis: 0,
                start: d(start * e),
                len: d(heads * e),
            },
            vec![y],
        );
        let y = b.push(
            Reshape {
                dims: [d(e), d(heads), t.clone(), d(1)],
            },
            vec![y],
        );
        b.push(Permute { axes: [0, 2, 1, 3] }, vec![y])
    };
    let (q, k, v) = (cut(b, 0, hq), cut(b, hq, hk), cut(b, hq + hk, hk));
    let mask = b.plain([t.clone(), t.clone(), d(1), d(1)]);
    let op = FlashAttn {
        scale: 1.0,
        max_bias: 0.0,
        softcap: 0.0,
        heads: None,
        lse: false,
    };
    let y = b.push(op, vec![q, k, v, mask]);
    b.push(
        Reshape {
            dims: [d(e * hq), t, d(1), d(1)],
        },
        vec![y],
    )
}

fn concat(b: &mut Builder) -> Value {
    let axis = b.rng.range(0, 2);
    let dims = dims(b);
    let mut operands = Vec::new();
    for _ in 0..b.rng.range(1, 3) {
        let mut part = dims.clone();
        part[axis as usize] = d(b.rng.range(1, 4));
        operands.push(b.real(part));
    }
    let y = b.push(Concat { axis }, operands);
    b.push(
        Scale {
            scale: 2.0,
            bias: 0.0,
        },
        vec![y],
    )
}

fn repeat(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims.clone());
    let dims = dims.map(|n| n.checked_mul(&d(b.rng.range(1, 3))).expect("small"));
    b.push(Repeat { dims }, vec![x])
}

fn pad(b: &mut Builder) -> Value {
    let dims = dims(b);
    let x = b.real(dims);
    let (axis, before, after) = (b.rng.range(0, 1), b.rng.range(0, 2), b.rng.range(0, 2));
    b.push(
        Pad {
            axis,
            before,
            after,
        },
        vec![x],
    )
}

pub(crate) const CASES: &[(&str, Case)] = &[
    ("unary", unary),
    ("binary", binary),
    ("scale", scale),
    ("clamp", clamp),
    ("cast", cast),
    ("glu", glu),
    ("leaky_relu", leaky_relu),
    ("xielu", xielu),
    ("fill", fill),
    ("arange", arange),
    ("cumsum", cumsum),
    ("mean", mean),
    ("tri", tri),
    ("diag", diag),
    ("pool_2d", pool_2d),
    ("lightning_indexer", lightning_indexer),
    ("hc_comb", hc_comb),
    ("ngram_rows", ngram_rows),
    ("norm", norm),
    ("norm over heads", norm_over_heads),
    ("norm_stats", norm_stats),
    ("norm_apply", norm_apply),
    ("mul_mat", mul_mat),
    ("mul_mat pair", mul_mat_pair),
    ("rotation", rotation),
    ("mul_mat_id", mul_mat_id),
    ("add_id", add_id),
    ("experts", experts),
    ("get_rows", get_rows),
    ("set_rows", set_rows),
    ("set_slice", set_slice),
    ("ssm_conv", ssm_conv),
    ("ssm_scan", ssm_scan),
    ("mamba block", mamba_block),
    ("gated_delta_net", gated_delta_net),
    ("wkv", wkv),
    ("rope", rope),
    ("soft_max", soft_max),
    ("flash_attn", flash_attn),
    ("merge_attn", merge_attn),
    ("sum", sum),
    ("top_k", top_k),
    ("top_mask", top_mask),
    ("top_k_mask", top_k_mask),
    ("argsort", argsort),
    ("reshape", reshape),
    ("permute", permute),
    ("slice", slice),
    ("concat", concat),
    ("repeat", repeat),
    ("pad", pad),
];

fn check(name: &str, case: Case, cases: u32) -> Result<BTreeSet<&'static str>, String> {
    let (ran, names) = (Cell::new(0), RefCell::new(BTreeSet::new()));
    let outcome = each_graph(cases.into(), |mut b| {
        let out = case(&mut b);
        let own = b.graph.insts().map(|(_, i)| i.op.name());
        names.borrow_mut().extend(own);
        if let Fate::Ran = split_and_run(b, out) {
            ran.set(ran.get() + 1);
        }
    });
    outcome.map_err(|e| format!("{name}: {e}"))?;
    let ran = ran.get();
    if ran * 5 < cases {
        return Err(format!("{name}: only {ran} of {cases} splits ran"));
    }
    Ok(names.into_inner())
}

#[test]
fn every_rule_holds_when_executed() {
    let mut seen = BTreeSet::new();
    let mut failed = Vec::new();
    for (name, case) in CASES {
        match check(name, *case, Sweep::asked().pick(200, 600)) {
            Ok(names) => seen.extend(names),
            Err(e) => failed.push(e),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    unproved_at_most(40);
    // Leaves and opaque ops have no rule. Transfers occur in every case above, or in the interpreter's tests.
    let apart = [
        "weight",
        "input",
        "state",
        "opaque",
        "copy",
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
    ];
    for name in Op::NAMES.iter().flat_map(|n| n.iter()) {
        assert!(
            seen.contains(name) || apart.contains(name),
            "`{name}` is in no case"
        );
    }
}
