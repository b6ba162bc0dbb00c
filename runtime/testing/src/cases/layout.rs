//! Cases for reductions, sorting, constants, and ops that move elements.

use tpc_ir::op::*;
use tpc_ir::{DType, Dim, Interval};
use tpc_runtime::Data;

use super::data::{count, float, integer, ints, readable, real, result, sizes};
use super::{Arg, Case};
use crate::random::Random;

pub(super) fn hadamard(_: &str, random: &Random) -> Case {
    let n = 1 << random.below(8);
    let out = (result(random), [n, n, 1, 1]);
    Case::new(Hadamard { n: n as u64 }, Vec::new(), out).within(1e-7, 1e-3)
}

pub(super) fn arange(_: &str, random: &Random) -> Case {
    let mut n = random.within(0, 700);
    let step = random.pick(&[1.0, -0.25]);
    let mut op = Arange::new(3.5, step, Dim::constant(n as u64));
    if random.below(2) == 0 {
        let [first, gap, second] = [(); 3].map(|()| random.below(n / 4 + 1) as u64);
        let (one, other) = (gap, gap + first + gap);
        let held = [
            Interval::from_bounds(one, one + first),
            Interval::from_bounds(other, other + second),
        ];
        op.held = held[..=random.below(2)].to_vec().into();
        n = op.held.iter().flatten().map(|r| r.len as usize).sum();
    }
    Case::new(op, Vec::new(), (result(random), [n, 1, 1, 1])).within(1e-7, 1.0)
}

pub(super) fn sum(_: &str, random: &Random) -> Case {
    let axis = random.below(4);
    let dims = sizes(random);
    let x = real(random, readable(random, dims[0]), dims, 1.0);
    let mut out = dims;
    out[axis] = 1;
    let axis = axis as u64;
    Case::new(Sum { axis }, vec![x], (result(random), out)).within(1e-6, 8.0)
}

pub(super) fn mean(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = real(random, readable(random, dims[0]), dims, 1.0);
    let [n, a, b, c] = dims;
    let n = Dim::constant(n.max(1) as u64);
    Case::new(Mean { n }, vec![x], (result(random), [1, a, b, c])).within(1e-6, 1.0)
}

pub(super) fn cumsum(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = real(random, readable(random, dims[0]), dims, 1.0);
    Case::new(Cumsum, vec![x], (result(random), dims))
        .in_place(0, 0)
        .within(1e-6, 1.0)
}

fn scores(random: &Random, dims: [usize; 4]) -> Arg {
    let mut x = real(random, float(random), dims, 4.0);
    if let Data::F64(v) = &mut x.data {
        for x in v {
            *x = match random.below(50) {
                0 => f64::NAN,
                1 => f64::NEG_INFINITY,
                _ => x.round() / 2.0,
            };
        }
    }
    x
}

pub(super) fn top_k(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = scores(random, dims);
    let [n, a, b, c] = dims;
    let k = random.within(0, n);
    let op = TopK { k: k as u64 };
    Case::new(op, vec![x], (integer(random), [k, a, b, c]))
}

pub(super) fn top_mask(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = scores(random, dims);
    let op = TopMask {
        k: random.within(0, dims[0] + 1) as u64,
    };
    Case::new(op, vec![x], (result(random), dims))
}

pub(super) fn top_k_mask(_: &str, random: &Random) -> Case {
    let op = TopKMask {
        has_scores: random.one_in(2),
        has_members: random.one_in(2),
        has_extra: random.one_in(2),
    };
    let [cells, a, b, c] = sizes(random);
    let mut mask_rows = [a, b, c];
    for n in &mut mask_rows {
        if random.one_in(3) {
            *n = (*n).min(1);
        }
    }
    let [m1, m2, m3] = mask_rows;
    let n_picks = match op.has_scores || op.has_members {
        true => random.within(0, 9),
        false => cells,
    };
    // Some indices are out of range.
    let around = |bound: usize| move |r: &Random, _| r.below(bound + 3);
    let mut operands = vec![
        real(random, float(random), [cells, m1, m2, m3], 1.0),
        ints(random, [random.within(0, 7), a, b, c], around(n_picks)),
    ];
    if op.has_scores {
        operands.push(scores(random, [n_picks, a, b, c]));
    }
    if op.has_members {
        let sizes = [random.within(0, 4), n_picks, 1, 1];
        operands.push(ints(random, sizes, around(cells)));
    }
    if op.has_extra {
        operands.push(ints(random, [random.within(0, 3), a, b, c], around(cells)));
    }
    let dtype = operands[0].dtype;
    Case::new(op, operands, (dtype, [cells, a, b, c])).within(0.0, 1e-3)
}

pub(super) fn arg_sort(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = scores(random, dims);
    let order = random.pick(&SortOrder::ALL);
    Case::new(ArgSort { order }, vec![x], (integer(random), dims))
}

fn anything(random: &Random, dims: [usize; 4]) -> Arg {
    if random.one_in(4) {
        return ints(random, dims, |r, _| r.below(1000));
    }
    real(random, readable(random, dims[0]), dims, 1.0)
}

fn converted(random: &Random, x: &Arg) -> DType {
    if x.dtype.is_integer() || random.one_in(2) {
        x.dtype
    } else {
        result(random)
    }
}

pub(super) fn copy(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = anything(random, dims);
    let out = (converted(random, &x), dims);
    Case::new(Copy, vec![x], out).within(0.0, 1e-3)
}

pub(super) fn reshape(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = anything(random, dims);
    let [a, b, c, d] = dims;
    let block = x.dtype.block_len() as usize;
    let to = match random.below(4) {
        0 => dims,
        1 => [a * b, c, d, 1],
        2 => [a, b * c, 1, d],
        _ if block == 1 => [d, c, a, b],
        _ => [a, d, c, b],
    };
    let op = Reshape {
        dims: to.map(|n| Dim::constant(n as u64)),
    };
    let out = (x.dtype, to);
    Case::new(op, vec![x], out)
}

pub(super) fn permute(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = anything(random, dims);
    let mut axes = random.order::<4>();
    if x.dtype.is_quantised() {
        let rest = random.order::<3>();
        axes = [0, 1 + rest[0], 1 + rest[1], 1 + rest[2]];
    }
    let mut to = [0; 4];
    for (from, axis) in axes.into_iter().enumerate() {
        to[axis] = dims[from];
    }
    let dtype = if axes[0] == 0 {
        converted(random, &x)
    } else {
        x.dtype
    };
    let op = Permute {
        axes: axes.map(|a| a as u64),
    };
    Case::new(op, vec![x], (dtype, to)).within(0.0, 1e-3)
}

pub(super) fn slice(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = anything(random, dims);
    let axis = random.below(4);
    let block = if axis == 0 {
        x.dtype.block_len() as usize
    } else {
        1
    };
    let n = dims[axis] / block;
    let start = random.within(0, n);
    let len = random.within(0, n - start);
    let mut to = dims;
    to[axis] = len * block;
    let op = Slice {
        axis: axis as u64,
        start: Dim::constant((start * block) as u64),
        len: Dim::constant((len * block) as u64),
    };
    let out = (converted(random, &x), to);
    Case::new(op, vec![x], out).within(0.0, 1e-3)
}

pub(super) fn concat(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let axis = random.below(4);
    let first = anything(random, dims);
    let (dtype, mut to) = (first.dtype, dims);
    let mut operands = vec![first];
    for _ in 0..random.below(4) {
        let mut dims = dims;
        let block = if axis == 0 {
            dtype.block_len() as usize
        } else {
            1
        };
        dims[axis] = block * random.within(0, 3);
        to[axis] += dims[axis];
        operands.push(match dtype.is_integer() {
            true => Arg {
                dtype,
                ..ints(random, dims, |r, _| r.below(1000))
            },
            false => real(random, dtype, dims, 1.0),
        });
    }
    let op = Concat { axis: axis as u64 };
    Case::new(op, operands, (dtype, to))
}

pub(super) fn repeat(_: &str, random: &Random) -> Case {
    let mut dims = sizes(random);
    dims = dims.map(|n| n.max(1));
    let x = anything(random, dims);
    let to = dims.map(|n| n * random.pick(&[1, 1, 2, 3]));
    let op = Repeat {
        dims: to.map(|n| Dim::constant(n as u64)),
    };
    let out = (x.dtype, to);
    Case::new(op, vec![x], out)
}

pub(super) fn pad(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = anything(random, dims);
    let axis = random.below(4);
    let block = if axis == 0 { x.dtype.block_len() } else { 1 };
    let part = || block * random.below(3) as u64;
    let (before, after) = (part(), part());
    let mut to = dims;
    to[axis] += (before + after) as usize;
    let op = Pad {
        axis: axis as u64,
        before,
        after,
    };
    let out = (x.dtype, to);
    Case::new(op, vec![x], out)
}

pub(super) fn tri(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = real(random, readable(random, dims[0]), dims, 1.0);
    let op = Tri {
        keep: random.pick(&Side::ALL),
        offset: random.below(5) as u64,
        fill: random.pick(&[0.0, -1.0]),
    };
    Case::new(op, vec![x], (result(random), dims))
        .in_place(0, 0)
        .within(0.0, 1e-3)
}

pub(super) fn diag(_: &str, random: &Random) -> Case {
    let (n, p, q) = (
        random.within(0, 40),
        random.within(1, 3),
        random.within(1, 2),
    );
    let x = real(random, float(random), [n, 1, p, q], 1.0);
    Case::new(Diag, vec![x], (result(random), [n, n, p, q])).within(0.0, 1e-3)
}

pub(super) fn pool_2d(_: &str, random: &Random) -> Case {
    let window = [random.within(1, 3), random.within(1, 3)];
    let pad = [random.below(window[0]), random.below(window[1])];
    let stride = [random.within(1, 3), random.within(1, 3)];
    let dims = [
        random.within(3, 12),
        random.within(3, 12),
        random.within(1, 3),
        random.within(1, 2),
    ];
    let x = real(random, float(random), dims, 1.0);
    assert!(count(dims) > 0);
    let size = |i: usize| (dims[i] + 2 * pad[i] - window[i]) / stride[i] + 1;
    let op = Pool2d {
        kind: random.pick(&PoolKind::ALL),
        window: window.map(|n| n as u64),
        stride: stride.map(|n| n as u64),
        pad: pad.map(|n| n as u64),
    };
    let out = (result(random), [size(0), size(1), dims[2], dims[3]]);
    Case::new(op, vec![x], out).within(1e-6, 1.0)
}
