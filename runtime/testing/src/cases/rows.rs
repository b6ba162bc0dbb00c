//! Cases for products, and for access by index.

use tpc_ir::op::*;
use tpc_ir::{CELL_BLOCK, CellParts, DType, Dim, Interval};
use tpc_runtime::Data;

use super::data::{CACHES, count, float, integer, ints, readable, real, result, sizes};
use super::{Arg, Case};
use crate::random::Random;

fn row(random: &Random) -> usize {
    match random.below(3) {
        0 => 256 * random.within(1, 3),
        1 => 32 * random.within(1, 6),
        _ => random.within(1, 100),
    }
}

pub(super) fn mul_mat(_: &str, random: &Random) -> Case {
    let (k, m, n) = (row(random), random.within(1, 40), random.within(1, 70));
    let (p, q) = (random.within(1, 2), random.within(1, 2));
    let (p_b, q_b) = (p * random.within(1, 3), q * random.within(1, 2));
    let a = real(random, readable(random, k), [k, m, p, q], 1.0);
    let b = real(random, readable(random, k), [k, n, p_b, q_b], 1.0);
    Case::new(MulMat, vec![a, b], (result(random), [m, n, p_b, q_b]))
        .within(2e-6, (k as f64).sqrt())
}

/// Returns a window of `total` items (`None` for all), and its length.
fn window(random: &Random, total: usize) -> (Option<Interval>, usize) {
    if random.one_in(2) {
        return (None, total);
    }
    let start = random.below(total);
    let len = random.within(1, total - start);
    let (first, n) = (start as u64, len as u64);
    (
        Some(Interval {
            start: first,
            len: n,
        }),
        len,
    )
}

pub(super) fn mul_mat_id(_: &str, random: &Random) -> Case {
    let (k, m, total) = (row(random), random.within(1, 40), random.within(1, 6));
    let (window, experts) = window(random, total);
    let (used, tokens) = (random.within(1, 4), random.within(1, 5));
    let rows = if random.one_in(2) { used } else { 1 };
    let w = real(random, readable(random, k), [k, m, experts, 1], 1.0);
    let x = real(random, readable(random, k), [k, rows, tokens, 1], 1.0);
    let ids = ints(random, [used, tokens, 1, 1], |r, _| r.below(total));
    let out = (result(random), [m, used, tokens, 1]);
    Case::new(MulMatId { window }, vec![w, x, ids], out).within(2e-6, (k as f64).sqrt())
}

pub(super) fn add_id(_: &str, random: &Random) -> Case {
    let (m, total) = (row(random), random.within(1, 6));
    let (window, experts) = window(random, total);
    let (used, tokens) = (random.within(1, 4), random.within(1, 5));
    let dims = [m, used, tokens, 1];
    let x = real(random, readable(random, m), dims, 1.0);
    let bias = real(random, readable(random, m), [m, experts, 1, 1], 1.0);
    let ids = ints(random, [used, tokens, 1, 1], |r, _| r.below(total));
    Case::new(AddId { window }, vec![x, bias, ids], (result(random), dims))
        .in_place(0, 0)
        .within(2e-7, 1.0)
}

pub(super) fn get_rows(_: &str, random: &Random) -> Case {
    let (n, total) = (row(random), random.within(1, 30));
    let (window, rows) = window(random, total);
    let (r, p, q) = (
        random.within(0, 9),
        random.within(1, 3),
        random.within(1, 2),
    );
    let dims = [n, rows, p, q];
    let index = ints(random, [r, p, q, 1], |random, _| random.below(total));
    let op = GetRows { window };
    if random.one_in(6) {
        let table = ints(random, dims, |r, _| r.below(1000));
        let out = (super::data::integer(random), [n, r, p, q]);
        return Case::new(op, vec![table, index], out);
    }
    let table = real(random, readable(random, n), dims, 1.0);
    Case::new(op, vec![table, index], (result(random), [n, r, p, q])).within(0.0, 1e-3)
}

fn destination(random: &Random, dims: [usize; 4], axis: usize) -> Arg {
    let fits = |t: tpc_ir::DType| dims[0].is_multiple_of(t.block_len() as usize);
    let dtype = random.pick(&CACHES);
    let dtype = match axis {
        0 => float(random),
        _ if fits(dtype) => dtype,
        _ => float(random),
    };
    real(random, dtype, dims, 1.0)
}

pub(super) fn set_rows(_: &str, random: &Random) -> Case {
    if random.one_in(4) {
        return set_cells(random);
    }
    let axis = random.pick(&[0, 1, 1, 1, 2, 3]);
    let mut dims = sizes(random);
    if count(dims) == 0 {
        dims = [32, 4, 2, 2];
    }
    if random.one_in(2) {
        dims[0] = dims[0].next_multiple_of(32);
    }
    let dst = destination(random, dims, axis);
    let mut from = dims;
    from[axis] = random.within(0, 5);
    let rows = real(random, readable(random, from[0]), from, 1.0);
    let (p, q) = match axis {
        1 => (random.pick(&[1, dims[2]]), random.pick(&[1, dims[3]])),
        _ => (1, 1),
    };
    let index = ints(random, [from[axis], p, q, 1], |r, _| r.below(dims[axis]));
    let out = (dst.dtype, dims);
    let axis = axis as u64;
    Case::new(SetRows::along(axis), vec![dst, rows, index], out).in_place(0, 0)
}

/// Writes the cells of some parts of a cache. In one case of four, all rows belong to other parts.
fn set_cells(random: &Random) -> Case {
    let axis = random.pick(&[0, 1, 2, 2, 3]);
    let of = random.within(1, 5);
    let first = random.below(of);
    let count = random.within(1, of - first);
    let parts = CellParts {
        first: first as u64,
        count: count as u64,
        of: of as u64,
    };
    let rounds = random.within(1, 2);
    let mut dims = [random.pick(&[32, 64, 20, 576]), 1, 1, 1];
    for n in dims.iter_mut().take(axis) {
        *n = random.pick(&[*n, 2 * *n]);
    }
    dims[axis] = rounds * count * CELL_BLOCK;
    let dst = destination(random, dims, axis);
    let mut from = dims;
    from[axis] = random.within(0, 9);
    let rows = real(random, readable(random, from[0]), from, 1.0);
    let none = count < of && random.one_in(4);
    let cells = 0..(rounds * of * CELL_BLOCK) as u64;
    let cells: Vec<u64> = cells
        .filter(|&cell| !none || parts.local(cell).is_none())
        .collect();
    let index = ints(random, [from[axis], 1, 1, 1], |r, _| {
        r.pick(&cells) as usize
    });
    let out = (dst.dtype, dims);
    let op = SetRows {
        axis: axis as u64,
        cells: Some(parts),
    };
    Case::new(op, vec![dst, rows, index], out).in_place(0, 0)
}

/// Makes a case that writes the cell `value` to the first of two parts of a cache of 128 cells.
pub(crate) fn set_cell(value: i64) -> Case {
    let arg = |dtype, dims, data| Arg { dtype, dims, data };
    let zeros = |n| Data::F64(vec![0.0; n]);
    let dims = [4, CELL_BLOCK, 1, 1];
    let dst = arg(DType::F32, dims, zeros(4 * CELL_BLOCK));
    let rows = arg(DType::F32, [4, 1, 1, 1], zeros(4));
    let index = arg(DType::I32, [1; 4], Data::Int(vec![value]));
    let op = SetRows {
        axis: 1,
        cells: Some(CellParts {
            first: 0,
            count: 1,
            of: 2,
        }),
    };
    Case::new(op, vec![dst, rows, index], (DType::F32, dims))
}

pub(super) fn set_slice(_: &str, random: &Random) -> Case {
    let axis = random.below(4);
    let mut dims = sizes(random);
    if count(dims) == 0 {
        dims = [32, 4, 2, 2];
    }
    let dst = destination(random, dims, axis);
    let mut from = dims;
    let start = random.below(dims[axis]);
    from[axis] = random.within(0, dims[axis] - start);
    let src = real(random, readable(random, from[0]), from, 1.0);
    let op = SetSlice {
        axis: axis as u64,
        start: Dim::constant(start as u64),
    };
    let out = (dst.dtype, dims);
    Case::new(op, vec![dst, src], out).in_place(0, 0)
}

pub(super) fn ngram_rows(_: &str, random: &Random) -> Case {
    let (factors, each) = (random.within(2, 5), random.within(1, 3));
    let (tokens, seqs) = (random.within(1, 40), random.within(1, 3));
    let tables = (factors - 1) * each;
    let dims = [factors - 1 + tokens, seqs, 1, 1];
    let mut x = real(random, DType::F32, dims, 1.0);
    let end = random.below(9) as u64;
    x.data = Data::F64((0..count(dims)).map(|_| random.below(9) as f64).collect());
    let table = |i: usize| Interval {
        start: 100 * i as u64,
        len: random.within(1, 100) as u64,
    };
    let op = NgramRows {
        factors: (0..factors)
            .map(|_| random.below(usize::MAX) as u64)
            .collect(),
        tables: (0..tables).map(table).collect(),
        end,
    };
    Case::new(op, vec![x], (integer(random), [tables, tokens, seqs, 1]))
}
