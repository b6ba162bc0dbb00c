//! Random graphs of 5 to 40 ops, planned and split at random, and executed whole and split.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::op::*;
use tpc_ir::{Dim, Op, Value};

use super::choices::each_graph;
use super::random::{
    Builder, Fate, Verdict, d, judge, plan_and_run, split_and_run, unproved_at_most,
};
use super::rare::{rare, smooth};

/// Builds a graph of values `[n, m, n_tokens]` from random ops on earlier values, weights and inputs.
pub(crate) fn random_graph(b: &mut Builder) -> Value {
    let mut pool: Vec<Value> = Vec::new();
    let sizes = [2, 3, 4, 6, 8];
    for _ in 0..2 {
        let dims = [d(*b.rng.pick(&sizes)), d(*b.rng.pick(&sizes)), b.t(), d(1)];
        pool.push(b.plain(dims));
    }
    let ops = b.rng.range(5, 40);
    for _ in 0..ops {
        let x = *b.rng.pick(&pool);
        pool.push(step(b, &pool, x));
    }
    let mut out = pool[pool.len() - 1];
    for &v in &pool[pool.len().saturating_sub(4)..pool.len() - 1] {
        if b.dims(v) == b.dims(out) {
            out = b.push(
                Binary {
                    kind: BinaryKind::Add,
                },
                vec![out, v],
            );
        }
    }
    out
}

fn constant(dim: &Dim) -> u64 {
    dim.as_const()
        .expect("the generator keeps axes 0 and 1 constant")
}

fn step(b: &mut Builder, pool: &[Value], x: Value) -> Value {
    let [n, m, t, _] = b.dims(x);
    let (n, m) = (constant(&n), constant(&m));
    match b.rng.range(0, 32) {
        0 => {
            let kind = *b.rng.pick(&[
                UnaryKind::Silu,
                UnaryKind::Tanh,
                UnaryKind::Sigmoid,
                UnaryKind::Relu,
            ]);
            b.push(Unary { kind }, vec![x])
        }
        1 => {
            let bias = if b.rng.one_in(2) { 0.0 } else { 0.5 };
            b.push(Scale { scale: 0.7, bias }, vec![x])
        }
        2 | 3 => {
            let fit: Vec<Value> = pool
                .iter()
                .copied()
                .filter(|&y| b.dims(y) == b.dims(x))
                .collect();
            let y = *b.rng.pick(&fit);
            let kind = *b
                .rng
                .pick(&[BinaryKind::Add, BinaryKind::Sub, BinaryKind::Mul]);
            let v = b.push(Binary { kind }, vec![x, y]);
            b.push(
                Unary {
                    kind: UnaryKind::Tanh,
                },
                vec![v],
            )
        }
        4 => {
            let w = b.weight([n, 1, 1, 1]);
            let kind = *b.rng.pick(&[BinaryKind::Add, BinaryKind::Mul]);
            b.push(Binary { kind }, vec![x, w])
        }
        5 | 6 => {
            let kind = *b.rng.pick(&NormKind::ALL);
            b.push(Norm { kind, eps: 1e-3 }, vec![x])
        }
        // Products with weights are most frequent, as in models.
        7..=9 => {
            let out = *b.rng.pick(&[2, 3, 4, 6, 8]);
            let w = b.weight([n, out, 1, 1]);
            let v = b.push(MulMat, vec![w, x]);
            b.push(
                Scale {
                    scale: 0.5,
                    bias: 0.0,
                },
                vec![v],
            )
        }
        10 => b.push(Permute { axes: [1, 0, 2, 3] }, vec![x]),
        11 => {
            let flat = b.push(
                Reshape {
                    dims: [d(n * m), d(1), t.clone(), d(1)],
                },
                vec![x],
            );
            let w = b.weight([n * m, n * m, 1, 1]);
            let flat = b.push(MulMat, vec![w, flat]);
            let flat = b.push(
                Scale {
                    scale: 0.3,
                    bias: 0.0,
                },
                vec![flat],
            );
            b.push(
                Reshape {
                    dims: [d(n), d(m), t, d(1)],
                },
                vec![flat],
            )
        }
        12 if n.is_multiple_of(2) => {
            let start = *b.rng.pick(&[0, n / 2]);
            b.push(
                Slice {
                    axis: 0,
                    start: d(start),
                    len: d(n / 2),
                },
                vec![x],
            )
        }
        13 if n <= 8 => {
            let y = b.push(
                Unary {
                    kind: UnaryKind::Neg,
                },
                vec![x],
            );
            b.push(Concat { axis: 0 }, vec![x, y])
        }
        14 => b.push(SoftMax::with_scale(1.0), vec![x]),
        15 => {
            // Attention over the tokens, with m query heads. The number of KV heads divides m.
            let divisors: Vec<u64> = (1..=m).filter(|k| m.is_multiple_of(*k)).collect();
            let kv = *b.rng.pick(&divisors);
            let wk = b.weight([n * m, n * kv, 1, 1]);
            let wv = b.weight([n * m, n * kv, 1, 1]);
            let flat = b.push(
                Reshape {
                    dims: [d(n * m), t.clone(), d(1), d(1)],
                },
                vec![x],
            );
            let head = |b: &mut Builder, w: Value| {
                let y = b.push(MulMat, vec![w, flat]);
                let y = b.push(
                    Reshape {
                        dims: [d(n), d(kv), t.clone(), d(1)],
                    },
                    vec![y],
                );
                b.push(Permute { axes: [0, 2, 1, 3] }, vec![y])
            };
            let (k, v) = (head(b, wk), head(b, wv));
            let q = b.push(Permute { axes: [0, 2, 1, 3] }, vec![x]);
            let mask = b.plain([t.clone(), t.clone(), d(1), d(1)]);
            let op = FlashAttn {
                scale: 0.3,
                max_bias: 0.0,
                softcap: 0.0,
                heads: None,
                lse: false,
            };
            b.push(op, vec![q, k, v, mask])
        }
        16 => {
            let (experts, used, width) = (4, 2, *b.rng.pick(&[2, 4, 6]));
            let rows = b.push(
                Slice {
                    axis: 1,
                    start: d(0),
                    len: d(1),
                },
                vec![x],
            );
            let ids = b.index([d(used), t.clone(), d(1), d(1)], experts);
            let up = b.weight([n, width, experts, 1]);
            let down = b.weight([width, n, experts, 1]);
            let y = b.push(MulMatId { window: None }, vec![up, rows, ids]);
            let y = b.push(
                Unary {
                    kind: UnaryKind::Silu,
                },
                vec![y],
            );
            let y = b.push(MulMatId { window: None }, vec![down, y, ids]);
            b.push(Sum { axis: 1 }, vec![y])
        }
        17..=19 => elementwise(b, x),
        26..=28 => rare(b, x),
        20..=22 => rows(b, x),
        23 | 24 => recurrent(b, x),
        25 => {
            let (experts, used) = (4, b.rng.range(1, 2));
            let first = Slice {
                axis: 1,
                start: d(0),
                len: d(1),
            };
            let row = b.push(first, vec![x]);
            let router = b.weight([n, experts, 1, 1]);
            let logits = b.push(MulMat, vec![router, row]);
            let ids = if b.rng.one_in(2) {
                b.push(TopK { k: used }, vec![logits])
            } else {
                let order = SortOrder::Descending;
                let sorted = b.push(ArgSort { order }, vec![logits]);
                let best = Slice {
                    axis: 0,
                    start: d(0),
                    len: d(used),
                };
                b.push(best, vec![sorted])
            };
            let dims = [d(used), t, d(1), d(1)];
            let ids = b.push(Reshape { dims }, vec![ids]);
            let weight = b.weight([n, n, experts, 1]);
            let bias = b.weight([n, experts, 1, 1]);
            let y = b.push(MulMatId { window: None }, vec![weight, row, ids]);
            let y = b.push(AddId { window: None }, vec![y, bias, ids]);
            b.push(Sum { axis: 1 }, vec![y])
        }
        _ => {
            let table = b.weight([n, 8, 1, 1]);
            let index = b.index([t, d(1), d(1), d(1)], 8);
            let rows = b.push(GetRows { window: None }, vec![table, index]);
            let rows = b.push(Permute { axes: [0, 2, 1, 3] }, vec![rows]);
            let dims = b.dims(x);
            let rows = b.push(Repeat { dims }, vec![rows]);
            b.push(
                Binary {
                    kind: BinaryKind::Add,
                },
                vec![x, rows],
            )
        }
    }
}

fn tanh(b: &mut Builder, x: Value) -> Value {
    let kind = UnaryKind::Tanh;
    b.push(Unary { kind }, vec![x])
}

/// Appends an elementwise op. Its results stay small.
fn elementwise(b: &mut Builder, x: Value) -> Value {
    let small = tanh(b, x);
    match b.rng.range(0, 4) {
        0 => smooth(b, small),
        1 => {
            let min = if b.rng.one_in(2) { -0.4 } else { 0.1 };
            b.push(Clamp { min, max: 0.5 }, vec![x])
        }
        2 => {
            let kind = UnaryKind::Sqr;
            let y = b.push(Unary { kind }, vec![x]);
            let (scale, bias) = (1.0, 0.5);
            let y = b.push(Scale { scale, bias }, vec![y]);
            let kind = BinaryKind::Div;
            b.push(Binary { kind }, vec![small, y])
        }
        3 => {
            let mut op = Glu::new(*b.rng.pick(GluKind::ALL));
            if op.kind.takes_alpha() {
                op.alpha = 1.702;
            }
            if op.kind.takes_limit() {
                op.limit = 0.8;
            }
            b.push(op, vec![small, x])
        }
        _ => {
            let kind = *b.rng.pick(&NormKind::ALL);
            let n = constant(&b.dims(x)[0]);
            let stats = b.push(NormStats { kind }, vec![x]);
            b.push(NormApply { kind, eps: 1e-3, n }, vec![x, stats])
        }
    }
}

fn rows(b: &mut Builder, x: Value) -> Value {
    let [n, m, t, _] = b.dims(x);
    let (n, m) = (constant(&n), constant(&m));
    match b.rng.range(0, 5) {
        4 if n.is_power_of_two() => {
            let turn = b.push(Hadamard { n }, vec![]);
            b.push(MulMat, vec![turn, x])
        }
        0 => {
            // A cache of rows and its content.
            let cells = 6;
            let cache = b.weight([n * m, cells, 1, 1]);
            let dims = [d(n * m), t.clone(), d(1), d(1)];
            let flat = b.push(Reshape { dims }, vec![x]);
            let index = b.index([t.clone(), d(1), d(1), d(1)], cells);
            let cache = b.push(SetRows::along(1), vec![cache, flat, index]);
            let rows = b.push(GetRows { window: None }, vec![cache, index]);
            let dims = [d(n), d(m), t, d(1)];
            b.push(Reshape { dims }, vec![rows])
        }
        1 if n > 1 => {
            let len = b.rng.range(1, n - 1);
            let start = b.rng.range(0, n - len);
            let part = Slice {
                axis: 0,
                start: d(0),
                len: d(len),
            };
            let part = b.push(part, vec![x]);
            let part = tanh(b, part);
            let start = d(start);
            b.push(SetSlice { axis: 0, start }, vec![x, part])
        }
        2 if n.is_multiple_of(2) => {
            let op = Rope {
                mode: *b.rng.pick(&[RopeMode::Norm, RopeMode::Neox]),
                n_dims: 2 * b.rng.range(1, n / 2),
                n_ctx_orig: 64,
                freq_base: 10000.0,
                freq_scale: 1.0,
                ext_factor: 0.0,
                attn_factor: 1.0,
                beta_fast: 32.0,
                beta_slow: 1.0,
            };
            let positions = b.index([t, d(1), d(1), d(1)], 50);
            b.push(op, vec![x, positions])
        }
        3 if n <= 6 => {
            let (before, after) = (b.rng.range(0, 1), b.rng.range(0, 1));
            let pad = Pad {
                axis: 0,
                before,
                after,
            };
            b.push(pad, vec![x])
        }
        _ => {
            let axis = b.rng.range(0, 1);
            let sum = b.push(Sum { axis }, vec![x]);
            let sum = tanh(b, sum);
            let dims = b.dims(x);
            b.push(Repeat { dims }, vec![sum])
        }
    }
}

/// Appends a convolution over the tokens, or a recurrence with a head per index of axis 1.
fn recurrent(b: &mut Builder, x: Value) -> Value {
    let [n, m, t, _] = b.dims(x);
    let (n, m) = (constant(&n), constant(&m));
    let x = tanh(b, x);
    let dims = [d(n * m), t.clone(), d(1), d(1)];
    let flat = b.push(Reshape { dims }, vec![x]);
    if b.rng.one_in(3) {
        let taps = b.rng.range(1, 3);
        let steps = b.push(Permute { axes: [1, 0, 2, 3] }, vec![flat]);
        let steps = if taps > 1 {
            let before = b.weight([taps - 1, n * m, 1, 1]);
            b.push(Concat { axis: 0 }, vec![before, steps])
        } else {
            steps
        };
        let filter = b.weight([taps, n * m, 1, 1]);
        let y = b.push(SsmConv, vec![steps, filter]);
        let dims = [d(n), d(m), t, d(1)];
        return b.push(Reshape { dims }, vec![y]);
    }
    let project = |b: &mut Builder, dims: [u64; 2]| {
        let [k, heads] = dims;
        let w = b.weight([n * m, k * heads, 1, 1]);
        let y = b.push(MulMat, vec![w, flat]);
        let y = tanh(b, y);
        let dims = [d(k), d(heads), t.clone(), d(1)];
        b.push(Reshape { dims }, vec![y])
    };
    let groups: Vec<u64> = (1..=m).filter(|g| m.is_multiple_of(*g)).collect();
    let groups = *b.rng.pick(&groups);
    let k = b.rng.range(1, 3);
    if b.rng.one_in(2) {
        let (keys, queries) = (project(b, [k, groups]), project(b, [k, groups]));
        let (g, beta) = (project(b, [1, m]), project(b, [1, m]));
        let state = b.weight([k, n, m, 1]);
        let [y, after] = b.push_two(GatedDeltaNet, vec![queries, keys, x, g, beta, state]);
        b.also.push(after);
        return y;
    }
    if b.rng.one_in(3) {
        let mut operands = vec![
            project(b, [k, m]),
            project(b, [k, m]),
            project(b, [k, m]),
            x,
        ];
        operands.push(b.weight([k, n, m, 1]));
        match b.rng.range(0, 2) {
            0 => {}
            1 => operands.push(b.weight([k, m, 1, 1])),
            _ => operands.extend([project(b, [k, m]), project(b, [k, m])]),
        }
        let [y, after] = b.push_two(Wkv, operands);
        b.also.push(after);
        return y;
    }
    let dt = project(b, [m, 1]);
    let dims = [d(m), t.clone(), d(1), d(1)];
    let dt = b.push(Reshape { dims }, vec![dt]);
    let a = b.weight([1, m, 1, 1]);
    let (bs, cs) = (project(b, [k, groups]), project(b, [k, groups]));
    let state = b.weight([k, n, m, 1]);
    let ids = b.index([d(1), d(1), d(1), d(1)], 1);
    let [y, after] = b.push_two(SsmScan, vec![state, x, dt, a, bs, cs, ids]);
    b.also.push(after);
    y
}

/// Ops that random graphs do not have. The planner does not split states alone, the interpreter does not run opaque
/// ops, and only plans have transfers and parts of cells.
const APART: [&str; 8] = [
    "merge_attn",
    "state",
    "opaque",
    "copy",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
];

#[test]
fn plans_of_random_graphs_verify_and_execute_equal() {
    let (split, seen) = (Cell::new(0), RefCell::new(BTreeSet::new()));
    let outcome = each_graph(GRAPHS, |mut b| {
        let out = random_graph(&mut b);
        let names = b.graph.insts().map(|(_, i)| i.op.name());
        seen.borrow_mut().extend(names);
        split.set(split.get() + u64::from(plan_and_run(b, out) > 0));
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
    let (split, seen) = (split.get(), seen.into_inner());
    unproved_at_most(20);
    println!("{split} of {GRAPHS} graphs were split");
    assert!(
        split > GRAPHS / 2,
        "only {split} of {GRAPHS} graphs were split"
    );
    let names = || Op::NAMES.iter().flat_map(|n| n.iter());
    let missing: Vec<&&str> = names()
        .filter(|n| !seen.contains(*n) && !APART.contains(n))
        .collect();
    assert!(missing.is_empty(), "no graph has {missing:?}");
}

#[test]
fn random_splits_of_random_graphs_execute_equal() {
    let ran = Cell::new(0);
    let outcome = each_graph(GRAPHS, |mut b| {
        let out = random_graph(&mut b);
        ran.set(ran.get() + u64::from(matches!(split_and_run(b, out), Fate::Ran)));
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
    let ran = ran.get();
    unproved_at_most(20);
    println!("{ran} of {GRAPHS} splits were carried out");
    assert!(
        ran > GRAPHS / 5,
        "only {ran} of {GRAPHS} splits could be carried out"
    );
}

#[test]
fn what_the_verifier_refuses_is_wrong() {
    let tally = RefCell::new(BTreeMap::<Verdict, u64>::new());
    let outcome = each_graph(GRAPHS, |mut b| {
        let out = random_graph(&mut b);
        if let Some(verdict) = judge(b, out) {
            *tally.borrow_mut().entry(verdict).or_default() += 1;
        }
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
    let tally = tally.into_inner();
    let of = |v| tally.get(&v).copied().unwrap_or(0);
    let (refused, alarms) = (of(Verdict::Refused), of(Verdict::FalseAlarm));
    println!("{alarms} false alarms in {} refusals", refused + alarms);
    assert!(refused > GRAPHS / 5, "{tally:?}");
    // Some refused faults are harmless: a state that programs do not read, or indices that no lookup uses.
    assert!(alarms < refused, "{tally:?}");
}

const GRAPHS: u64 = 250;
